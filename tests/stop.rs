//! A request to stop is one for the whole process: what asks for it is tested in a process of its own, one test after
//! the other.

use argmin::core::observers::Observe as Observer;
use argmin::core::{Error, KV, State};
use least_action::control::{Constraint, Cost, Problem, Relation, When};
use least_action::dynamics::{
    Explicit, Observe, QuantityId, Real, Smooth, clear_stop, request_stop, stop_requested,
    unstopped,
};
use least_action::format::{self, Overrides};
use least_action::optimize::{
    Checkpoint, Checkpoints, Limits, Method, Remedy, Solve, SolveState, Status,
};
use least_action::rollout::{Trajectory, batch};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Held by the test that runs.
static ALONE: Mutex<()> = Mutex::new(());

/// Asks to stop, or fails, once so many iterations are done; notes what it saw.
struct Limiter {
    after: u64,
    fails: bool,
    seen: Arc<Mutex<Vec<f64>>>,
}

impl Observer<SolveState> for Limiter {
    fn observe_iter(&mut self, state: &SolveState, _: &KV) -> Result<(), Error> {
        let now = state.last().expect("an iteration");
        self.seen.lock().expect("no panic").push(now.objective);
        if state.get_iter() + 1 < self.after {
            return Ok(());
        }
        if self.fails {
            return Err(Error::msg("the observer's own error"));
        }
        request_stop();
        Ok(())
    }
}

#[test]
fn solves_stop() {
    let _alone = ALONE.lock();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/cartpole_swingup.toml");
    let m = format::load(&path)
        .and_then(|d| d.build(&Overrides::default()))
        .expect("a shipped problem");
    let limiter = |after, fails| {
        let seen = Arc::new(Mutex::new(vec![]));
        let own = seen.clone();
        (Limiter { after, fails, seen }, own)
    };
    for method in Method::ALL {
        if method.options().fits(&m.system, &m.problem).is_err() {
            continue;
        }
        let solve = || Solve::new(&m.system, &m.problem).with_method(method);
        // asked before it starts
        request_stop();
        let s = solve().run().expect("solves");
        clear_stop();
        assert_eq!((s.status, s.iterations), (Status::Interrupted, 0));
        let n = m.problem.intervals.len();
        let said = format!("stopped from outside before the first iteration, 0 of {n} steps");
        assert!(s.reason.contains(&said), "{}", s.reason);
        assert_eq!(s.trajectory.steps(), 0);
        // by an observer, after three iterations, and on from there: the straight way
        let (observer, seen) = limiter(3, false);
        let mut kept: Option<Checkpoint> = None;
        let checkpoints = Checkpoints::new(None, Duration::MAX, |c| {
            kept = Some(c);
            Ok(())
        });
        let stopped = solve()
            .with_observer(observer)
            .with_checkpoint(checkpoints)
            .run()
            .expect("solves");
        clear_stop();
        assert_eq!(
            (stopped.status, stopped.iterations),
            (Status::Interrupted, 3)
        );
        assert_eq!(stopped.remedy, Some(Remedy::Resume));
        let objectives: Vec<f64> = stopped.history[1..].iter().map(|i| i.objective).collect();
        assert_eq!(*seen.lock().expect("no panic"), objectives);
        let five = Limits {
            iterations: Some(5),
            ..Limits::default()
        };
        let straight = solve().with_limits(five).run().expect("solves");
        assert_eq!(
            (straight.status, straight.iterations),
            (Status::MaxIterations, 5)
        );
        let two = Limits {
            iterations: Some(2),
            ..Limits::default()
        };
        let resumed = solve()
            .with_limits(two)
            .with_checkpoint(Checkpoints::new(kept, Duration::MAX, |_| Ok(())))
            .run()
            .expect("solves");
        if method == Method::Lbfgs {
            // goes on without its memory
            assert_eq!(resumed.history[..4], straight.history[..4]);
        } else {
            assert_eq!(resumed.history, straight.history, "{method:?}");
        }
        // an observer that fails ends the solve with its error
        let (observer, _) = limiter(2, true);
        let failed = solve().with_observer(observer).run();
        assert!(failed.is_err_and(|e| e.to_string().contains("the observer's own error")));
        // limits of time
        let short = Limits {
            time: Some(Duration::from_nanos(1)),
            ..Limits::default()
        };
        let s = solve().with_limits(short).run().expect("solves");
        assert_eq!((s.status, s.iterations), (Status::Interrupted, 1));
        assert!(s.reason.contains("the limit of"), "{}", s.reason);
    }
}

/// A pendulum whose derivatives ask to stop once they were taken so often: in the midst of a model.
struct Restless {
    left: AtomicI64,
}

impl Smooth for Restless {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], _: &[T], next: &mut [T]) {
        if size_of::<T>() > size_of::<f64>() && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            request_stop();
        }
        next[1] = x[1] + h * (u[0] - x[0].sin() * 9.81);
        next[0] = x[0] + h * next[1];
    }
}

/// A stop within a model is as if the iteration had not begun: what is kept goes on the straight way.
#[test]
fn models_stop() {
    let _alone = ALONE.lock();
    let restless = |left| {
        Explicit::new(Restless {
            left: AtomicI64::new(left),
        })
    };
    let d = restless(0);
    let n = 40;
    let problem = Problem {
        bounds: vec![(-20.0, 20.0)],
        costs: vec![Cost::square(d.control_quantity(0), 0.0, 0.1, When::Running)],
        constraints: vec![Constraint {
            quantity: QuantityId::new(0),
            relation: Relation::Equal,
            value: 3.0,
            profile: None,
            when: When::End,
        }],
        ..Problem::new(&d, vec![0.05; n], vec![0.0, 0.0])
    };
    // learners take no derivatives
    for method in Method::ALL.into_iter().filter(|m| !m.is_learner()) {
        if method.options().fits(&restless(0), &problem).is_err() {
            continue;
        }
        let straight = Solve::new(&d, &problem)
            .with_method(method)
            .run()
            .expect("solves");
        assert!(straight.status.is_solved(), "{}", straight.reason);
        let mut counts = (0, 0);
        for left in [
            n as i64 / 2,
            5 * n as i64 / 2,
            11 * n as i64 / 2,
            33 * n as i64 / 2,
        ] {
            let d = restless(left);
            let mut kept: Option<Checkpoint> = None;
            let checkpoints = Checkpoints::new(None, Duration::MAX, |c| {
                kept = Some(c);
                Ok(())
            });
            let solve = Solve::new(&d, &problem).with_method(method);
            let stopped = solve.with_checkpoint(checkpoints).run().expect("solves");
            clear_stop();
            assert_eq!(stopped.status, Status::Interrupted, "{}", stopped.reason);
            assert_eq!(stopped.trajectory.steps(), n);
            let Some(kept) = kept else {
                // before there was a model: the guess is there, and nothing to go on from
                assert!(
                    stopped.reason.contains("before the first iteration"),
                    "{}",
                    stopped.reason
                );
                assert!(stopped.history.is_empty() && stopped.objective.is_finite());
                counts.0 += 1;
                continue;
            };
            assert_eq!(straight.history[..stopped.history.len()], stopped.history);
            let goes_on = Checkpoints::new(Some(kept), Duration::MAX, |_| Ok(()));
            let solve = Solve::new(&d, &problem).with_method(method);
            let resumed = solve.with_checkpoint(goes_on).run().expect("solves");
            if method == Method::Lbfgs {
                // goes on without its memory
                assert!(resumed.status.is_solved(), "{}", resumed.reason);
            } else {
                assert_eq!(resumed.history, straight.history, "{method:?} {left}");
            }
            counts.1 += 1;
        }
        assert!(counts.0 > 0 && counts.1 > 0, "{method:?} {counts:?}");
    }
}

/// A mass whose steps ask to stop once so many were made: in the midst of a generation.
struct Hasty {
    left: AtomicI64,
}

impl Smooth for Hasty {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], _: &[T], next: &mut [T]) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            request_stop();
        }
        next[1] = x[1] + h * u[0];
        next[0] = x[0] + h * next[1];
    }
}

fn by<'a, D: Observe>(method: Method, d: &'a D, problem: &'a Problem) -> Solve<'a, D> {
    Solve::new(d, problem).with_method(method)
}

/// A stop within a generation is as if it had not begun: what is kept goes on to the same end.
#[test]
fn learners_stop() {
    let _alone = ALONE.lock();
    let hasty = |left| {
        Explicit::new(Hasty {
            left: AtomicI64::new(left),
        })
    };
    let d = hasty(0);
    let n = 20;
    let problem = Problem {
        bounds: vec![(-20.0, 20.0)],
        costs: vec![
            Cost::square(d.control_quantity(0), 0.0, 0.1, When::Running),
            Cost::square(QuantityId::new(0), 1.0, 10.0, When::End),
        ],
        ..Problem::new(&d, vec![0.05; n], vec![0.0, 0.0])
    };
    let limits = Limits {
        iterations: Some(6),
        ..Limits::default()
    };
    for method in Method::ALL.into_iter().filter(|m| m.is_learner()) {
        let straight = by(method, &d, &problem).with_limits(limits).run();
        let straight = straight.expect("solves");
        // a sweep goes over the steps once more
        let swept = straight.gradient_evaluations as i64 * n as i64;
        let all = straight.step_evaluations as i64 + swept;
        // in the guess, in the first generation, in the last
        let mut iterations = vec![];
        for left in [n as i64 / 2, 3 * n as i64 / 2, all - n as i64 / 2] {
            let hasty = hasty(left);
            let mut kept: Option<Checkpoint> = None;
            let checkpoints = Checkpoints::new(None, Duration::MAX, |c| {
                kept = Some(c);
                Ok(())
            });
            let solving = by(method, &hasty, &problem).with_limits(limits);
            let stopped = solving.with_checkpoint(checkpoints).run().expect("solves");
            clear_stop();
            assert_eq!(stopped.status, Status::Interrupted, "{}", stopped.reason);
            let made = stopped.history.len();
            assert_eq!(straight.history[..made], stopped.history);
            iterations.push(made);
            let Some(kept) = kept else {
                assert!(made == 0 && stopped.trajectory.steps() < n);
                continue;
            };
            let rest = Limits {
                iterations: Some(7 - made as u64),
                ..Limits::default()
            };
            let goes_on = Checkpoints::new(Some(kept), Duration::MAX, |_| Ok(()));
            let on = by(method, &d, &problem).with_limits(rest);
            let on = on.with_checkpoint(goes_on);
            let on = on.run().expect("solves");
            assert_eq!(on.history, straight.history, "{method:?} {left}");
            assert_eq!(on.trajectory, straight.trajectory);
            assert_eq!(on.step_evaluations, straight.step_evaluations);
        }
        assert_eq!(iterations, [0, 1, 6], "{method:?}");
    }
}

/// What finishes is not stopped, and hides the request from nobody else.
#[test]
fn finishing_is_not_stopped() {
    let _alone = ALONE.lock();
    let d = Explicit::new(Restless {
        left: AtomicI64::new(0),
    });
    let batched = || {
        let mut all = vec![Trajectory::new(&d, vec![0.05; 10], &[0.1, 0.0]); 50];
        let made = batch(&d, &mut all);
        made.iter().filter(|r| r.is_ok()).count()
    };
    assert!(!request_stop() && stop_requested());
    assert_eq!(batched(), 0);
    unstopped(|| {
        assert!(!stop_requested());
        // its threads neither
        assert_eq!(batched(), 50);
        std::thread::scope(|s| {
            s.spawn(|| assert!(stop_requested()));
        });
        // a second request is known as such
        assert!(request_stop());
    });
    assert!(stop_requested());
    clear_stop();
    assert!(!stop_requested());
    assert_eq!(batched(), 50);
}
