//! Wrappers around wrappers: what they keep of linearizations, their models, and who owns the system.

use crate::common::Source;
use crate::common::case::{chain, system};
use least_action::control::{ClosedLoop, Loop, Pd};
use least_action::dynamics::Start;
use least_action::dynamics::{
    Certificate, Charts, Differentiable, Dims, Equations, Inputs, Knot, KnotPoint, LinearModel,
    Observe, Outputs, QuantityId, Remember, SolvedStep, Step, StepError, StepStats,
    model_by_pushes,
};
use least_action::integrator::{Maximal, Mechanical};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use least_action::without;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `v+ = v + h (u - x^3)`, `x+ = x + h v+`, which counts how often it is linearized.
#[derive(Default)]
struct Spring {
    linearized: AtomicUsize,
}

impl Step for Spring {
    /// h and x of the step last linearized.
    type Work = [f64; 2];

    without!(names, parameters, start, softening);

    fn dims(&self) -> Dims {
        Dims {
            nx: 2,
            nf: 2,
            ndx: 2,
            nu: 1,
            np: 0,
            ny: 0,
        }
    }

    fn work(&self) -> [f64; 2] {
        [f64::NAN; 2]
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        _: &[f64],
        _: &mut [f64; 2],
        next: &mut [f64],
        _: &mut [f64],
    ) -> Result<StepStats, StepError> {
        next[1] = x[1] + at.h * (u[0] - x[0].powi(3));
        next[0] = x[0] + at.h * next[1];
        Ok(StepStats::default())
    }
}

impl Differentiable for Spring {
    without!(smoothing);

    fn linearize_in(&self, at: &SolvedStep, w: &mut [f64; 2]) -> Result<Certificate, StepError> {
        self.linearized.fetch_add(1, Ordering::Relaxed);
        *w = [at.at.h, at.x[0]];
        Ok(Certificate::default())
    }

    fn kept(&self) -> usize {
        2
    }

    fn keep_in(&self, w: &[f64; 2], kept: &mut [f64]) -> bool {
        kept.copy_from_slice(w);
        true
    }

    fn restore_in(
        &self,
        _: &SolvedStep,
        kept: &[f64],
        w: &mut [f64; 2],
    ) -> Result<bool, StepError> {
        w.copy_from_slice(kept);
        Ok(true)
    }

    fn push_in(&self, w: &mut [f64; 2], d: &Inputs, out: &mut Outputs) {
        let [h, x] = *w;
        out.x[1] = d.x[1] + h * (d.u[0] - 3.0 * x * x * d.x[0]);
        out.x[0] = d.x[0] + h * out.x[1];
    }

    fn pull_in(&self, w: &mut [f64; 2], adjoint: &Outputs, out: &mut Inputs) {
        let [h, x] = *w;
        let rate = adjoint.x[1] + h * adjoint.x[0];
        out.clear();
        out.x[0] = adjoint.x[0] - 3.0 * h * x * x * rate;
        (out.x[1], out.u[0]) = (rate, h * rate);
    }
}

impl Equations for Spring {}

impl Charts for Spring {
    without!(charts, model);
}

impl Observe for Spring {
    without!(unknowns);

    fn quantities(&self) -> Vec<(String, String)> {
        ["x", "v"].map(|n| (n.into(), "1".into())).to_vec()
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        _: &mut [f64; 2],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        for (o, q) in out.iter_mut().zip(which) {
            *o = seen.x[q.index()];
        }
        Ok(())
    }

    fn observe_pull_in(
        &self,
        _: &KnotPoint,
        which: &[QuantityId],
        _: &mut [f64; 2],
        adjoint: &[f64],
        out: &mut Inputs,
        _: &mut [f64],
    ) {
        for (a, q) in adjoint.iter().zip(which) {
            out.x[q.index()] += a;
        }
    }
}

fn proportional(s: &impl Observe, [coordinate, rate]: [QuantityId; 2]) -> Pd {
    let one = Loop {
        control: 0,
        coordinate,
        rate,
        gains: (2.0, 0.5),
        reference: Box::new(f64::sin),
        rate_reference: Box::new(f64::cos),
    };
    Pd::new(s, vec![one], true).expect("fits")
}

/// A second sweep through the wrappers finds every linearization of the first, and gives the same bits.
#[test]
fn linearizations_are_kept_through_wrappers() {
    const STEPS: usize = 12;
    let spring = Arc::new(Spring::default());
    let closed = ClosedLoop::new(
        spring.clone(),
        proportional(&spring, [0, 1].map(QuantityId::new)),
    );
    let names = closed.controls();
    let system = Remember::new(closed, names);
    let mut w = system.work();
    let mut t = Trajectory::new(&system, vec![0.1; STEPS], &[0.4, -0.3, 0.0]);
    t.u = Source::new(3).vector(STEPS, 1.0);
    t.roll(&system, &mut w, &mut RolloutStats::default())
        .expect("rolls");
    let gradient = |sweep: &mut Sweep, w: &mut _| {
        let end = |at: &Knot, _: &mut _, out: &mut Inputs, _: &mut [f64]| {
            if at.k == STEPS {
                out.x.copy_from_slice(&[1.0, -2.0, 0.5]);
            }
            Ok(())
        };
        sweep.run(&system, &t, w, end).expect("regular");
        [sweep.u.clone(), sweep.p.clone(), sweep.x0.clone()].concat()
    };
    let count = || spring.linearized.swap(0, Ordering::Relaxed);
    let fresh = gradient(&mut Sweep::new(&system, &t), &mut w);
    assert_eq!(count(), STEPS);
    let mut keeping = Sweep::new(&system, &t).with_cache(&system, 1 << 20);
    assert_eq!(gradient(&mut keeping, &mut w), fresh);
    assert_eq!(count(), STEPS);
    // memory that knows nothing of the first sweep
    assert_eq!(gradient(&mut keeping, &mut system.work()), fresh);
    assert_eq!(count(), 0);
}

/// What wrappers make of the system's own linear model is what pushes make.
#[test]
fn models_through_wrappers_are_those_of_pushes() {
    let q = [0.9, -0.4, 0.7];
    let inner = system(&chain().parameter("load", &["bodies.bar2.mass"]), &q);
    let policy = proportional(&inner, [0, 2].map(QuantityId::new));
    let closed = ClosedLoop::new(inner, policy);
    let names = closed.controls();
    let s = Remember::new(closed, names);
    let (dims, mut w) = (s.dims(), s.work());
    let p: Vec<f64> = s.parameters().iter().map(|p| p.value).collect();
    let mut x0 = vec![0.0; dims.nx];
    let from = Start::at_rates(&q, &[0.5, -1.0, 0.3]);
    s.initial(&from, &p, &mut w, &mut x0).expect("a start");
    let mut t = Trajectory::new(&s, vec![0.01; 5], &x0);
    t.u = Source::new(4).vector(t.u.len(), 1.0);
    t.roll(&s, &mut w, &mut RolloutStats::default())
        .expect("rolls");
    let at = t.knot(3);
    let from = s.frame(&at, t.state(3), &p, None, &mut w).expect("a frame");
    let to = s.frame(&t.knot(4), t.state(4), &p, Some(&from), &mut w);
    let to = to.expect("a frame");
    let (mut own, mut pushed) = (LinearModel::new(&dims), LinearModel::new(&dims));
    s.linearize(&t.solved(&at), &mut w)
        .expect("regular")
        .linear_model(&from, &to, &mut own);
    model_by_pushes(&s, &mut w, &from, &to, &mut pushed);
    for (a, b) in [
        (&own.a, &pushed.a),
        (&own.b, &pushed.b),
        (&own.p, &pushed.p),
    ] {
        assert!(b.norm() > 1e-3);
        assert!((a - b).norm() < 1e-9 * b.norm(), "{a} {b}");
    }
}

/// An object that owns everything, as one of another language does, and moves between threads.
struct Held {
    shared: Arc<Maximal>,
    system: Remember<ClosedLoop<Arc<Maximal>, Pd>>,
}

#[test]
fn an_object_holds_a_system() {
    let q = [0.9, -0.4, 0.7];
    let held = {
        let shared = Arc::new(system(&chain(), &q));
        let closed = ClosedLoop::new(
            shared.clone(),
            proportional(&shared, [0, 2].map(QuantityId::new)),
        );
        let names = closed.controls();
        let system = Remember::new(closed, names);
        Held { shared, system }
    };
    let end = move |held: &Held| {
        let (s, mut w) = (&held.system, held.system.work());
        let p: Vec<f64> = s.parameters().iter().map(|p| p.value).collect();
        let mut x0 = vec![0.0; s.dims().nx];
        s.initial(&Start::at_rates(&q, &[0.0; 3]), &p, &mut w, &mut x0)
            .expect("a start");
        let mut t = Trajectory::new(s, vec![0.01; 20], &x0);
        t.roll(s, &mut w, &mut RolloutStats::default())
            .expect("rolls");
        held.shared
            .coordinate(t.of_system(&held.shared).state(20), 0, 0)
    };
    let here = end(&held);
    let there = std::thread::spawn(move || end(&held)).join();
    assert_eq!(here.to_bits(), there.expect("ends").to_bits());
    assert!((here - q[0]).abs() > 1e-3);
}
