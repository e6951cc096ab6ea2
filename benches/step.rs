//! One step, one step back, and whole rollouts and reverse sweeps of chains (paper 000, experiments 8a and 9a).
//!
//! `cargo bench --bench step -- [FILTER]`
//!
//! - `forward`: one step of the integrator, Newton iterations included, cycling through the steps of a rollout;
//! - `back`: `linearize` and `pull`, one step of a reverse sweep, in the same way;
//! - `roll`, `sweep`: all steps of a rollout, and the reverse sweep over it.
//!
//! Items are links times steps, so items per second are the inverse of the cost of a link. Chains start at rest at 45
//! degrees. Those of 1000 links take steps of 0.001 s, the others 0.01 s; see `examples/chain.rs`. A closed segment has
//! four links.

#[path = "../examples/common/chain.rs"]
mod chain;
#[path = "../examples/common/segments.rs"]
mod segments;

use divan::Bencher;
use divan::counter::ItemsCount;
use least_action::dynamics::{Differentiable, Step};
use least_action::integrator::System;
use least_action::mechanism::JointKind;
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use std::fmt;

fn main() {
    divan::main();
}

/// A mechanism of so many links or segments.
#[derive(Clone, Copy, Debug)]
enum Case {
    Hinges(usize),
    Balls(usize),
    Segments(usize),
    MinimalHinges(usize),
    MinimalBalls(usize),
}

use Case::{Balls, Hinges, MinimalBalls, MinimalHinges, Segments};

const CASES: [Case; 16] = [
    Hinges(1),
    Hinges(10),
    Hinges(100),
    Hinges(1000),
    Balls(1),
    Balls(10),
    Balls(100),
    Balls(1000),
    Segments(1),
    Segments(10),
    MinimalHinges(10),
    MinimalHinges(100),
    MinimalHinges(1000),
    MinimalBalls(10),
    MinimalBalls(100),
    MinimalBalls(1000),
];

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Hinges(n) => write!(f, "hinges {n}"),
            Balls(n) => write!(f, "balls {n}"),
            Segments(n) => write!(f, "segments {n}"),
            MinimalHinges(n) => write!(f, "hinges {n}, minimal"),
            MinimalBalls(n) => write!(f, "balls {n}, minimal"),
        }
    }
}

/// A simulated trajectory.
struct Rolled {
    system: System,
    trajectory: Trajectory,
    links: usize,
}

impl Rolled {
    fn new(case: Case) -> Self {
        let hanging = |n, kind, integrator| chain::hanging(n, kind, false, integrator);
        let (made, links) = match case {
            Hinges(n) => (hanging(n, JointKind::Revolute, "maximal"), n),
            Balls(n) => (hanging(n, JointKind::Spherical, "maximal"), n),
            MinimalHinges(n) => (hanging(n, JointKind::Revolute, "minimal"), n),
            MinimalBalls(n) => (hanging(n, JointKind::Spherical, "minimal"), n),
            Segments(n) => (segments::hanging(n).map_err(Into::into), 4 * n),
        };
        let (system, x0) = made.expect("valid");
        let (steps, h) = if links < 1000 {
            (100, 0.01)
        } else {
            (20, 0.001)
        };
        let mut trajectory = Trajectory::new(&system, vec![h; steps], &x0);
        trajectory
            .roll(&system, &mut system.work(), &mut RolloutStats::default())
            .expect("simulated");
        Self {
            system,
            trajectory,
            links,
        }
    }

    fn steps(&self) -> usize {
        self.trajectory.steps()
    }
}

#[divan::bench(args = CASES, max_time = 1)]
fn forward(bencher: Bencher, case: Case) {
    let r = Rolled::new(case);
    let (mut w, t) = (r.system.work(), &r.trajectory);
    let (mut next, mut y) = (t.state(0).to_vec(), t.unknowns(0).to_vec());
    // the first step knows no impulses to start from
    let mut steps = (1..r.steps()).cycle();
    bencher.counter(ItemsCount::new(r.links)).bench_local(|| {
        let k = steps.next().expect("without end");
        y.copy_from_slice(t.unknowns(k - 1));
        r.system.step(
            &t.knot(k),
            t.state(k),
            t.control(k),
            &t.p,
            &mut w,
            &mut next,
            &mut y,
        )
    });
}

#[divan::bench(args = CASES, max_time = 1)]
fn back(bencher: Bencher, case: Case) {
    let r = Rolled::new(case);
    let (mut w, t) = (r.system.work(), &r.trajectory);
    let dims = r.system.dims();
    let (mut adjoint, mut inputs) = (dims.outputs(), dims.inputs());
    adjoint.x.fill(1.0);
    let mut steps = (1..r.steps()).rev().cycle();
    bencher.counter(ItemsCount::new(r.links)).bench_local(|| {
        let k = steps.next().expect("without end");
        let linear = r.system.linearize(&t.solved(&t.knot(k)), &mut w);
        linear.map(|mut l| {
            l.pull(&adjoint, &mut inputs);
            l.certificate()
        })
    });
}

#[divan::bench(args = CASES, sample_count = 20, sample_size = 1, max_time = 2)]
fn roll(bencher: Bencher, case: Case) {
    let r = Rolled::new(case);
    let mut w = r.system.work();
    let mut t = r.trajectory.clone();
    let mut stats = RolloutStats::default();
    bencher
        .counter(ItemsCount::new(r.links * r.steps()))
        .bench_local(|| t.roll(&r.system, &mut w, &mut stats));
}

#[divan::bench(args = CASES, sample_count = 20, sample_size = 1, max_time = 2)]
fn sweep(bencher: Bencher, case: Case) {
    let r = Rolled::new(case);
    let mut w = r.system.work();
    let mut s = Sweep::new(&r.system, &r.trajectory);
    bencher
        .counter(ItemsCount::new(r.links * r.steps()))
        .bench_local(|| {
            // the gradient of the last height of the last body
            s.run(&r.system, &r.trajectory, &mut w, |at, _, out, _| {
                if at.k == r.steps() {
                    out.x[6 * (r.links - 1) + 2] = 1.0;
                }
                Ok(())
            })
        });
}
