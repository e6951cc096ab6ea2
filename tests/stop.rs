//! A request to stop is one for the whole process: what asks for it is tested in a process of its own, in one test.

use argmin::core::observers::Observe as Observer;
use argmin::core::{Error, KV, State};
use least_action::dynamics::{clear_stop, request_stop};
use least_action::format::{self, Overrides};
use least_action::optimize::{
    Checkpoint, Checkpoints, Limits, Method, Remedy, Solve, SolveState, Status,
};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
        let solve = || Solve::new(&m.system, &m.problem).with_method(method);
        // asked before it starts
        request_stop();
        let s = solve().run().expect("solves");
        clear_stop();
        assert_eq!((s.status, s.iterations), (Status::Interrupted, 0));
        assert!(
            s.reason.contains("stopped from outside; still violated: "),
            "{}",
            s.reason
        );
        // by an observer, after three iterations, and on from there: the straight way
        let (observer, seen) = limiter(3, false);
        let mut kept: Option<Checkpoint> = None;
        let checkpoints = Checkpoints::new(None, Duration::MAX, |c| kept = Some(c));
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
            .with_checkpoint(Checkpoints::new(kept, Duration::MAX, |_| ()))
            .run()
            .expect("solves");
        assert_eq!(resumed.history, straight.history);
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
