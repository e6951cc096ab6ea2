//! Cranks whose tips are joined by bars of equal length: parallelograms that pass a singular position whenever they are flat
//! (paper 000, figure 12; IFToMM A02).

use least_action::dynamics::{Step, StepError};
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder};
use least_action::rollout::{RolloutStats, Trajectory, balance};
use rayon::prelude::*;
use std::error::Error;
use std::f64::consts::FRAC_PI_2;

fn revolute(child: &str) -> JointSpec {
    JointSpec::new(JointKind::Revolute, child).axis([0.0, 1.0, 0.0])
}

/// Cranks of 1 m, pivots at x = 0, 1, ..., n, their tips joined by bars of 1 m: paper 000, figure 12 with n = 2. Bars
/// are thin boxes of 1 kg along z; couplers lie along x. Coordinates of the tree: the cranks' angles, from upright,
/// and where the couplers turn against the cranks.
pub fn cranks(n: usize) -> MechanismBuilder {
    Linkage::from(n).builder()
}

/// A row of parallelograms.
#[derive(Clone, Copy, Debug)]
pub struct Linkage {
    pub parallelograms: usize,
    /// Each bar is the parent of the joint at its far end, as in `problems/double_four_bar.toml`. The joint's rows are then
    /// in the frame of the bar, which does not turn, and Newton's iterates differ.
    pub bars_are_parents: bool,
}

impl From<usize> for Linkage {
    fn from(parallelograms: usize) -> Self {
        Self {
            parallelograms,
            bars_are_parents: false,
        }
    }
}

impl Linkage {
    fn builder(self) -> MechanismBuilder {
        build(self.parallelograms, self.bars_are_parents)
    }
}

fn build(n: usize, bars_are_parents: bool) -> MechanismBuilder {
    let thin = 1e-3;
    let mut m = MechanismBuilder::new();
    let third = 1.0 / 12.0;
    // a slender bar: 1/12 across, almost nothing along
    for i in 0..=n {
        m = m.body(
            &format!("crank{i}"),
            BodySpec::new(1.0).inertia([third, third, thin]),
        );
    }
    for i in 0..n {
        m = m.body(
            &format!("bar{i}"),
            BodySpec::new(1.0).inertia([thin, third, third]),
        );
    }
    for i in 0..=n {
        let pivot = [i as f64, 0.0, 0.0];
        m = m.joint(
            &format!("pivot{i}"),
            revolute(&format!("crank{i}")).anchors(pivot, [0.0, 0.0, -0.5]),
        );
    }
    for i in 0..n {
        let left = revolute(&format!("bar{i}"))
            .parent(&format!("crank{i}"))
            .anchors([0.0, 0.0, 0.5], [-0.5, 0.0, 0.0]);
        let (bar, crank) = (format!("bar{i}"), format!("crank{}", i + 1));
        let (on_bar, on_crank) = ([0.5, 0.0, 0.0], [0.0, 0.0, 0.5]);
        let right = if bars_are_parents {
            revolute(&crank).parent(&bar).anchors(on_bar, on_crank)
        } else {
            revolute(&bar).parent(&crank).anchors(on_crank, on_bar)
        };
        m = m
            .joint(&format!("left{i}"), left)
            .joint(&format!("right{i}"), right);
    }
    m
}

/// Tree coordinates of [`cranks`] at the angle `a` from upright, and their rates at 1 rad/s.
pub fn cranks_at(n: usize, a: f64) -> (Vec<f64>, Vec<f64>) {
    let m = cranks(n).build().expect("valid");
    let turns: Vec<f64> = m
        .tree_ids()
        .iter()
        // the couplers keep their direction
        .map(|&(j, _)| {
            if m.joints[j].name.starts_with("pivot") {
                1.0
            } else {
                -1.0
            }
        })
        .collect();
    (turns.iter().map(|t| t * a).collect(), turns)
}

/// A run of [`cranks`].
#[derive(Clone, Debug)]
pub struct Run {
    /// Why it ended early, if it did.
    pub failure: Option<StepError>,
    pub stats: RolloutStats,
    /// Largest error of the energy, J: at all knots, and where the cranks are more than 0.2 rad from flat.
    pub energy: [f64; 2],
    /// Largest gap of any joint, m or half rad: at knots behind steps whose joints did not give way, and where they did.
    pub gap: [f64; 2],
    /// How far the cranks part, m.
    pub spread: f64,
}

/// The mechanism at the angle `a` from upright, turning at `rate`, and its state.
pub fn turning(
    linkage: impl Into<Linkage>,
    a: f64,
    rate: f64,
) -> Result<(Maximal, Vec<f64>), Box<dyn Error>> {
    let linkage = linkage.into();
    let (q, turns) = cranks_at(linkage.parallelograms, a);
    let system = Maximal::new(linkage.builder().build()?, &q, Options::default())?;
    let rates: Vec<f64> = turns.iter().map(|t| t * rate).collect();
    let x0 = system.start(&q, &rates, &vec![true; q.len()])?;
    Ok((system, x0))
}

/// Runs the mechanism for so many steps.
pub fn run(
    linkage: impl Into<Linkage>,
    (a, rate): (f64, f64),
    h: f64,
    steps: usize,
) -> Result<Run, Box<dyn Error>> {
    let linkage = linkage.into();
    let n = linkage.parallelograms;
    let (s, x0) = turning(linkage, a, rate)?;
    let mut w = s.work();
    let mut t = Trajectory::new(&s, vec![h; steps], &x0);
    let mut stats = RolloutStats::default();
    let failure = t.roll(&s, &mut w, &mut stats).err();
    t.truncate(stats.steps);
    let b = balance(&s, &t, &mut w)?;
    let mut out = Run {
        failure,
        stats,
        energy: [0.0; 2],
        gap: [0.0; 2],
        spread: 0.0,
    };
    for k in 0..=t.steps() {
        let p = s.poses(t.state(k));
        let flat = p[0].x.z.abs() < 0.1;
        out.energy[0] = out.energy[0].max(b.error(k).abs());
        if !flat {
            out.energy[1] = out.energy[1].max(b.error(k).abs());
        }
        let gave_way = k > 0 && s.gave_way(&t.knot_point(&t.knot(k - 1)), &mut w)?;
        let gap = &mut out.gap[usize::from(gave_way)];
        *gap = gap.max(s.violation(t.state(k)));
        for (i, crank) in p.iter().enumerate().take(n + 1) {
            let mut apart = crank.x - p[0].x;
            apart.x -= i as f64;
            out.spread = out.spread.max(apart.norm());
        }
    }
    Ok(out)
}

/// The angle at the start from which, at the rate `rate` > 0, the knot nearest to the first flat position is `distance` past
/// it, rad.
pub fn landing(
    n: usize,
    (a, rate): (f64, f64),
    h: f64,
    distance: f64,
) -> Result<f64, Box<dyn Error>> {
    // angles past the flat position at the knots
    let angles = |a: f64, steps: usize| -> Result<Vec<f64>, Box<dyn Error>> {
        let (s, x0) = turning(n, a, rate)?;
        let mut t = Trajectory::new(&s, vec![h; steps], &x0);
        t.roll(&s, &mut s.work(), &mut RolloutStats::default())?;
        let angle = |k| s.coordinate(t.state(k), 0, 0) - FRAC_PI_2;
        Ok((0..=steps).map(angle).collect())
    };
    let mut steps = 1;
    while angles(a, steps)?[steps] < -0.02 {
        steps += 1;
    }
    // a start before or behind leads elsewhere by about as much: secants
    let off = |a| angles(a, steps).map(|angles| angles[steps] - distance);
    let (mut before, mut start) = (a, a - 1e-3);
    let mut was = off(before)?;
    for _ in 0..20 {
        let now = off(start)?;
        if now.abs() < 1e-13 || now == was {
            break;
        }
        let next = start - now * (start - before) / (now - was);
        (before, was, start) = (start, now, next);
    }
    Ok(start)
}

/// Parallelograms from an angle and a rate at steps of 10/k s between 0.002 and 0.02 s, over 10 s: what is run, how it went, and
/// the largest error of the energy it may have, J, of the step.
pub fn sweep(
    linkage: Linkage,
    start: (f64, f64),
    count: usize,
    limit: impl Fn(f64) -> f64 + Sync,
) -> Vec<(String, Run, f64)> {
    let steps = |i: usize| (500.0 + 4500.0 * i as f64 / count as f64).round() as usize;
    let runs = (0..count).into_par_iter().map(|i| {
        let k = steps(i);
        let h = 10.0 / k as f64;
        let run = run(linkage, start, h, k).map_err(|e| e.to_string());
        (format!("h = 10/{k}"), run.expect("reads"), limit(h))
    });
    runs.collect()
}

/// What the discretization costs two parallelograms, and a margin.
pub fn of_two(h: f64) -> f64 {
    0.12 * (h / 0.01).powi(2)
}

/// The same of forty from 1.5 rad at rest. A compliant step costs up to 0.045 J, which is 1e-4 of the energy exchanged; the
/// smallest jump that was seen cost 0.18 J.
pub fn of_forty(h: f64) -> f64 {
    (0.3 * (h / 0.01).powi(2)).max(0.05)
}

/// Runs whose knots come to 25 distances from flat, from 0 to 0.3 rad, as [`sweep`].
pub fn landings(
    n: usize,
    start: (f64, f64),
    h: f64,
    steps: usize,
    limit: f64,
) -> Vec<(String, Run, f64)> {
    let powers = (0..24).map(|i| 10f64.powf(-12.0 + 0.5 * f64::from(i)));
    let distances: Vec<f64> = std::iter::once(0.0).chain(powers).collect();
    let runs = distances.into_par_iter().map(|d| {
        let go = || -> Result<Run, Box<dyn Error>> {
            run(n, (landing(n, start, h, d)?, start.1), h, steps)
        };
        let run = go().map_err(|e| e.to_string());
        (format!("{n} at {d:.1e}, h {h}"), run.expect("lands"), limit)
    });
    runs.collect()
}
