//! What is tried at a step, one after the other: to stay as before, starts from the step before and from forces, bounds of friction, and curves
//! around what stopped them.

use super::start::Cold;
use super::{Failed, NewtonSystem, Solver};

/// One way to a solution.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Newton's method from several starts, then the central path with its turns, down to this multiple of `kappa`. Multiples above 1 are for
    /// steps that rounding keeps from the end of the path; `rounded` counts them. At 1e4 a body rests 1e-5 h above the ground with the default `central_path`.
    Path(f64),
    /// A curve on which friction grows to its full value, then the central path to `kappa`. Of steps of random trees that starts did not solve, central paths solved 9 of 10 in
    /// 150 to 400 iterations each; curves of friction took 800 a level and solved none.
    Friction,
}

/// The ways in the order in which they are tried.
const WAYS: [Way; 5] = [
    Way::Path(1.0),
    Way::Path(10.0),
    Way::Friction,
    Way::Path(1e2),
    Way::Path(FARTHEST),
];
/// The largest multiple of `kappa` at which a step may end.
const FARTHEST: f64 = 1e4;

impl<S: NewtonSystem> Solver<'_, S> {
    /// Solves at the end of the central path; where rounding keeps the step from it, a little before.
    pub(super) fn solve_path(&mut self, y: &[f64], warm: bool) -> Result<(), Failed> {
        let kappa = self.step.contacts().kappa;
        let mut first: Option<Failed> = None;
        for way in WAYS {
            let solved = match way {
                Way::Path(times) => self.solve_at(y, warm && first.is_none(), times * kappa),
                Way::Friction => self.go_by_friction(kappa),
            };
            match solved {
                Ok(()) => {
                    if matches!(way, Way::Path(times) if times > 1.0) {
                        self.stats.rounded = 1;
                    }
                    return Ok(());
                }
                Err(error) if !error.may_retry() => return Err(error.after(first)),
                // the first says most of why
                Err(error) => first = first.or(Some(error)),
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Tries to stay as in the step before, then a warm start and cold ones, then what came nearest, then bounds of friction, then the central
    /// path around what stopped them.
    fn solve_at(&mut self, y: &[f64], warm: bool, kappa: f64) -> Result<(), Failed> {
        // what bounces does not go on as before
        if warm && !self.layout.elastic && self.stay(y, kappa)? && self.refuse_thrown(kappa).is_ok()
        {
            return Ok(());
        }
        let mut failed = None;
        self.kept = None;
        // with light bodies forces alone are so far from the joints that no step length is left, or that they lead to another solution, in
        // which a link has swung around; at a start joints alone may be as far from what contacts allow
        let mut cold = [Cold::Joints, Cold::Forces, Cold::Held].map(Some);
        if self.reads_out {
            cold.swap(0, 1);
        } else if self.begins && self.forces_throw() {
            cold.rotate_right(1);
        }
        let starts = warm.then_some(None).into_iter().chain(cold);
        // a read-out begins from the step from there last
        let from_step = self.reads_out && self.is_known(y);
        for start in starts.chain(from_step.then_some(None)) {
            match start {
                None => self.warm_start(y, kappa),
                Some(from) if self.cold_start(from, 1.0) => {}
                Some(_) => continue,
            }
            match self.follow_motion(kappa) {
                Ok(()) => return Ok(()),
                Err(error) if error.may_retry() => failed = Some(error),
                Err(error) => return Err(error.after(failed)),
            }
            self.stats.restarts += 1;
        }
        // no farther from the end of the path than its end is moved at all
        let own = self.step.contacts().kappa;
        if kappa < FARTHEST * own && self.take_nearly() && self.refuse_thrown(kappa).is_ok() {
            return Ok(());
        }
        self.stats.restarts += 1;
        // farther from the end of the path bounds are the same
        if kappa == own {
            match self.go_by_bounds(kappa) {
                Err(error) if error.may_retry() => {}
                done => return done.map_err(|error| error.after(failed)),
            }
            self.stats.restarts += 1;
        }
        // the last start says most of why
        self.go_around(kappa).map_err(|error| match failed {
            Some(first) if error.may_retry() => first,
            _ => error.after(failed),
        })
    }

    /// Lets friction of what slides follow the sliding velocity. At the end of the path the cone leaves friction only `kappa/u0` of room to
    /// turn, so that steps towards another direction of sliding are cut short. Does anything slide?
    pub(super) fn slide_freely(&mut self, kappa: f64) -> bool {
        let each = self.step.contacts_mut().each(self.layout);
        each.fold(false, |any, (e, s, _)| e.slide_freely(s, kappa) || any)
    }
}
