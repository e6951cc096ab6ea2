//! Motion that cannot be right, found by its energy: errors without bounds, and growth that no bounded effort explains.

use super::Balance;
use crate::mechanism::Motion;

/// Share of the energy in play above which an energy error is a failure. The step changes the energy of an oscillation by the
/// share `(h omega)^2/4`: a quarter where it is coarse, `h omega = 1`, half at 1.4, all where it becomes unstable, at 2. A smaller
/// value fails coarse results, which a warning suffices for; above 1, unstable springs may pass.
const UNEXPLAINED: f64 = 0.5;
/// Gain by contacts, friction and dampers, in parts of the energy in play before, that is a failure unless the next knot has taken it back: a
/// body that is shot out of another one may lose what it gained at its next impact.
const AT_ONCE: f64 = 2.0;
/// Gain by them, in the same parts, that is warned of, as an energy error is.
const NOTICEABLE: f64 = 0.05;
/// Gain that is rounding where nothing is in play, J.
const UNSEEN: f64 = 1e-9;
/// Knots in sequence at which the error must be that large: what is small at first, before much is in play, may settle.
const SUSTAINED: usize = 8;
/// Steps of the shortest windows in which the error is compared with the energy in play in that window alone; longer ones are
/// this long times powers of two. Half of one is twice [`SUSTAINED`].
const ERROR_WINDOW: usize = 32;
/// Share of all energy that was in play before below which a window is not examined: the errors that fast motion leaves are
/// large against the slow motion after it.
const SMALL: f64 = 1e-3;
/// Share of the energies themselves that rounding may change, over a million steps.
pub(super) const ROUNDING: f64 = 1e-9;
/// Speed of light, m/s.
const FASTEST: f64 = 299_792_458.0;

/// A motion that cannot be right, found by its energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unexplained {
    /// Knot at which it shows.
    pub knot: usize,
    /// What shows.
    pub cause: Cause,
    /// Which of [`Balance::parts`] it shows in, if not in the whole.
    pub part: Option<usize>,
}

/// What shows that a motion cannot be right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// The energy is not a number.
    NotFinite,
    /// A body is faster than light.
    Speed,
    /// The energy changed without work that explains it, by more than half of the energy in play.
    Error {
        /// The change, J.
        error: f64,
        /// The energy in play, J.
        in_play: f64,
    },
    /// Contacts, friction and dampers gave energy, more than half of all else in play.
    Gain {
        /// What they gave, J.
        gain: f64,
        /// The energy in play without their works, J.
        in_play: f64,
    },
    /// The energy grows exponentially by actuators that reverse the motion in each step.
    Reversals {
        /// Knot from which it grows.
        since: usize,
    },
    /// The energy grows by what actuators do because their controls are held over a step.
    Held {
        /// Knot from which it grows.
        since: usize,
        /// What they did by that, J.
        made: f64,
        /// The energy in play else, J.
        in_play: f64,
    },
}

impl Unexplained {
    pub(super) fn new(knot: usize, cause: Cause) -> Self {
        Self {
            knot,
            cause,
            part: None,
        }
    }
}

impl Balance {
    /// The first knot at which the motion cannot be right, and what shows it.
    ///
    /// The energy error counts against the energy in play until then: the largest kinetic energy, or the largest change of the
    /// potential energy or of a work. With forces at knots the error is `(h^2/8) F' M^-1 F` minus its value at the start, `F` the
    /// forces of springs and the like: of an oscillator `(h omega)^2/4` of its energy, and beyond all that is in play exactly where
    /// `h omega > 2`, where it explodes. What actuators add to it ([`Balance::unresolved`]) is taken off: a stiff servo that sets in is right
    /// after its first steps. An explosion that stays small beside what happened before is found in windows of its own,
    /// and one of bodies that nothing connects with the others in their own energy, if nothing does work on them ([`Balance::apart`]). What the
    /// error made until then is not in play.
    ///
    /// The work of actuators explains an explosion that unstable gains cause: [`Balance::unstable_feedback`] finds those.
    pub fn unexplained(&self) -> Option<Unexplained> {
        let whole = [
            self.beyond_numbers(),
            self.error_since_start(),
            self.gain(),
            self.error_within(),
        ];
        let parts = self.parts();
        let parts = parts.iter().enumerate().flat_map(|(i, (_, own))| {
            let found = [own.error_since_start(), own.error_within()];
            found.map(|u| u.map(|u| Unexplained { part: Some(i), ..u }))
        });
        (whole.into_iter().chain(parts))
            .flatten()
            .min_by_key(|u| u.knot)
    }

    fn beyond_numbers(&self) -> Option<Unexplained> {
        let cause = |k: usize| {
            let fast = |(v, _): &Motion| v.norm() > FASTEST;
            if !(self.energy(k) - self.work(k)).is_finite() {
                Some(Cause::NotFinite)
            } else if self.velocities[k].iter().any(fast) {
                Some(Cause::Speed)
            } else {
                None
            }
        };
        (0..self.kinetic.len())
            .find_map(|knot| cause(knot).map(|cause| Unexplained::new(knot, cause)))
    }

    /// The first of several knots in sequence, or until the end, at which something is wrong by what was in play until then.
    fn sustained(&self, wrong: impl Fn(usize, &InPlay) -> Option<Cause>) -> Option<Unexplained> {
        let mut play = InPlay::default();
        let mut since: Option<Unexplained> = None;
        let last = self.kinetic.len().checked_sub(1)?;
        for k in 0..=last {
            play.add(self, k);
            let Some(cause) = wrong(k, &play) else {
                since = None;
                continue;
            };
            let first = since.get_or_insert(Unexplained::new(k, cause));
            if k + 1 - first.knot == SUSTAINED || k == last {
                return since;
            }
        }
        None
    }

    /// An error that is large against all that was in play.
    fn error_since_start(&self) -> Option<Unexplained> {
        self.sustained(|k, play| {
            let (error, in_play) = (self.motion_error(k), play.explained());
            let is_large = error.abs() > UNEXPLAINED * in_play + self.floor(play);
            is_large.then_some(Cause::Error { error, in_play })
        })
    }

    /// What contacts, friction and dampers gave until each knot since they had taken most, J. They can only take energy. At the knot of
    /// a blow the energy is that of the mean velocity, which may be less than before and after it: what is back at the next knot was not
    /// taken.
    fn gains(&self) -> Vec<f64> {
        // contacts hold what actuators do within half a step
        let works = |k: usize| {
            let passive = self.dampers[k] + self.friction[k] + self.impacts[k];
            [passive, passive + self.unresolved[k]]
        };
        let mut least = [f64::INFINITY; 2];
        (0..self.kinetic.len())
            .map(|k| {
                let (before, now) = (works(k.saturating_sub(1)), works(k));
                let rises = [0, 1].map(|i| {
                    least[i] = least[i].min(before[i].max(now[i]));
                    (now[i] - least[i]).max(0.0)
                });
                rises[0].min(rises[1])
            })
            .collect()
    }

    /// The largest change until each knot, and over the interval from it, of what actuators do within half a step and the motion does not
    /// show, J. Contacts hold a push until its last knot: if the push is reversed there, they seem to give that much.
    fn within_half_steps(&self) -> Vec<f64> {
        let mut largest = 0.0_f64;
        let each = self.unresolved.windows(2).map(|w| {
            largest = largest.max((w[1] - w[0]).abs());
            largest
        });
        let mut all: Vec<f64> = each.collect();
        all.push(all.last().copied().unwrap_or(0.0));
        all
    }

    /// A gain that is large against all else in play, for several knots or by far.
    fn gain(&self) -> Option<Unexplained> {
        let (gains, halves) = (self.gains(), self.within_half_steps());
        let mut play = InPlay::default();
        let at_once = (0..gains.len()).find_map(|knot| {
            // a body that a push drives onto what it bounces off is too fast at the knot of the blow alone
            let next = gains.get(knot + 1).map_or(f64::INFINITY, |gain| {
                gain + self.motion_error(knot + 1).abs()
            });
            // in play until the knot before
            let (gain, in_play) = (gains[knot].min(next), play.driven());
            play.add(self, knot);
            let least = self.floor(&play) + halves[knot] + UNSEEN;
            let is_large = gain > AT_ONCE * in_play + least;
            is_large.then_some(Unexplained::new(knot, Cause::Gain { gain, in_play }))
        });
        [at_once, self.gain_of(UNEXPLAINED, &gains, &halves)]
            .into_iter()
            .flatten()
            .min_by_key(|u| u.knot)
    }

    /// A gain by contacts, friction and dampers of more than a twentieth of all else in play: not enough for a failure, and too much for a result.
    pub fn noticeable_gain(&self) -> Option<Unexplained> {
        self.gain_of(NOTICEABLE, &self.gains(), &self.within_half_steps())
    }

    /// A gain of more than a share of all else in play, for several knots.
    fn gain_of(&self, share: f64, gains: &[f64], halves: &[f64]) -> Option<Unexplained> {
        self.sustained(|k, play| {
            let (gain, in_play) = (gains[k], play.driven());
            let is_large = gain > share * in_play + self.floor(play) + halves[k] + UNSEEN;
            is_large.then_some(Cause::Gain { gain, in_play })
        })
    }

    /// Windows in whose second half the error stays away from all errors in the first quarter, by more than was in play in the
    /// window.
    fn error_within(&self) -> Option<Unexplained> {
        let errors: Vec<f64> = (0..self.kinetic.len())
            .map(|k| self.motion_error(k))
            .collect();
        let range = |of: &[f64]| {
            of.iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), e| {
                    (l.min(*e), h.max(*e))
                })
        };
        self.windows(ERROR_WINDOW, |from, to, floor, play| {
            let n = to - from;
            let (early, late) = (
                range(&errors[from..=from + n / 4]),
                range(&errors[from + n / 2..=to]),
            );
            let gap = (late.0 - early.1).max(early.0 - late.1);
            let in_play = play.size();
            (gap > UNEXPLAINED * in_play + floor).then(|| {
                let error = if late.0 > early.1 { gap } else { -gap };
                Unexplained::new(from + n / 2, Cause::Error { error, in_play })
            })
        })
    }

    /// The earliest find in windows of `shortest` steps times powers of two, each half a length after the one before; with the
    /// least change that counts there, and what was in play within.
    pub(super) fn windows(
        &self,
        shortest: usize,
        found: impl Fn(usize, usize, f64, &InPlay) -> Option<Unexplained>,
    ) -> Option<Unexplained> {
        let last = self.kinetic.len().checked_sub(1)?;
        let floors = self.floors();
        let mut best: Option<Unexplained> = None;
        let mut n = shortest;
        // a window is two halves, each of which it shares with another one, and twice as long a half
        let mut halves: Vec<InPlay> = (0..2 * last / n)
            .map(|i| {
                let mut play = InPlay::default();
                (i * n / 2..=(i + 1) * n / 2).for_each(|k| play.add(self, k));
                play
            })
            .collect();
        while n <= last {
            for (i, pair) in halves.windows(2).enumerate() {
                let from = i * n / 2;
                let own = found(from, from + n, floors[from], &pair[0].with(&pair[1]));
                if let Some(own) = own.filter(|own| best.is_none_or(|b| own.knot < b.knot)) {
                    best = Some(own);
                }
            }
            let pairs = halves.as_chunks().0.iter();
            halves = pairs.map(|[first, second]| first.with(second)).collect();
            n *= 2;
        }
        best
    }

    /// The least change of energy that counts in windows that begin at each knot.
    pub(super) fn floors(&self) -> Vec<f64> {
        let mut play = InPlay::default();
        (0..self.kinetic.len())
            .map(|k| {
                play.add(self, k);
                self.floor(&play) + SMALL * play.size()
            })
            .collect()
    }

    /// The least change of energy that counts.
    fn floor(&self, play: &InPlay) -> f64 {
        self.resolution + ROUNDING * play.largest
    }
}

/// What is in play from knot to knot.
pub(super) struct InPlay {
    kinetic: f64,
    /// Largest kinetic energy without what the error made.
    explained: f64,
    /// Smallest and largest potential energy and works.
    low: [f64; 5],
    high: [f64; 5],
    /// Largest size of an energy.
    largest: f64,
}

impl Default for InPlay {
    fn default() -> Self {
        Self {
            kinetic: 0.0,
            explained: 0.0,
            low: [f64::INFINITY; 5],
            high: [f64::NEG_INFINITY; 5],
            largest: 0.0,
        }
    }
}

impl InPlay {
    pub fn add(&mut self, b: &Balance, k: usize) {
        let (kinetic, potential) = (b.kinetic[k], b.potential[k]);
        self.kinetic = self.kinetic.max(kinetic);
        self.explained = self.explained.max(kinetic - b.motion_error(k).max(0.0));
        self.largest = self.largest.max(kinetic).max(potential.abs());
        let now = [
            potential,
            b.actuators[k],
            b.dampers[k],
            b.friction[k],
            b.impacts[k],
        ];
        for ((low, high), now) in self.low.iter_mut().zip(&mut self.high).zip(now) {
            (*low, *high) = (low.min(now), high.max(now));
        }
    }

    /// What is in play in two pieces.
    fn with(&self, other: &Self) -> Self {
        Self {
            kinetic: self.kinetic.max(other.kinetic),
            explained: self.explained.max(other.explained),
            low: std::array::from_fn(|i| self.low[i].min(other.low[i])),
            high: std::array::from_fn(|i| self.high[i].max(other.high[i])),
            largest: self.largest.max(other.largest),
        }
    }

    /// The largest of a kinetic energy and the changes of the first curves, J.
    fn size_of(&self, kinetic: f64, curves: usize) -> f64 {
        let ranges = self.high.iter().zip(&self.low).take(curves);
        ranges.fold(kinetic, |most, (high, low)| most.max(high - low))
    }

    /// The largest of them, without the kinetic energy that the error made: that explains no error, J.
    fn explained(&self) -> f64 {
        self.size_of(self.explained, self.low.len())
    }

    /// The largest of the kinetic energy and the changes of the potential energy and the work of actuators, J.
    fn driven(&self) -> f64 {
        self.size_of(self.kinetic, 2)
    }

    /// The largest of them, J.
    pub fn size(&self) -> f64 {
        self.size_of(self.kinetic, self.low.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::feedback::tests::{Between, servo};
    use super::*;
    use crate::mechanism::samples::Source;

    /// A spring in plain steps: the share `(h omega)^2/4` of its energy is off.
    #[test]
    fn springs_pass_where_they_are_resolved() {
        let mut s = Source::new(18);
        for i in 0..600 {
            let size = 0.05 + 3.0 * 0.5 * (1.0 + s.unit());
            let start = [(1.0, 0.0), (0.0, 1.0), (1.0, 0.3)][i % 3];
            let y = size * size;
            // a servo whose force is that of a spring
            let mut b = servo(
                Between::Linear,
                (y, 0.0),
                start,
                usize::MAX,
                [100, 1000][i % 2],
            );
            b.potential = b.actuators.iter().map(|w| -w).collect();
            for curve in [
                &mut b.actuators,
                &mut b.unresolved,
                &mut b.exerted,
                &mut b.reversed,
                &mut b.held,
            ] {
                curve.fill(0.0);
            }
            let found = b.unexplained();
            let what = format!("h omega = {size}, {start:?}: {found:?}");
            if size < 1.3 {
                assert!(found.is_none(), "{what}");
            } else if size > 2.02 {
                assert!(found.is_some(), "{what}");
            }
        }
    }

    /// The energy balance of bodies at rest, with this number of knots.
    fn rest(knots: usize) -> Balance {
        let flat = vec![0.0; knots];
        Balance {
            kinetic: flat.clone(),
            potential: flat.clone(),
            velocities: vec![vec![]; knots],
            actuators: flat.clone(),
            dampers: flat.clone(),
            friction: flat.clone(),
            impacts: flat.clone(),
            unresolved: flat.clone(),
            exerted: flat.clone(),
            reversed: flat.clone(),
            held: flat,
            exerted_by: vec![],
            resolution: 1e-3,
            apart: vec![],
        }
    }

    /// What stays small beside what happened before is found all the same, and what decays is not.
    #[test]
    fn windows_see_what_is_small_beside_the_past() {
        let n = 400;
        let make = |error: &dyn Fn(usize) -> f64| {
            Balance {
                // it falls, and rests from knot 100 on
                potential: (0..=n)
                    .map(|k| 1e3 * (1.0 - k as f64 / 100.0).max(0.0))
                    .collect(),
                impacts: (0..=n)
                    .map(|k| -1e3 * (k as f64 / 100.0).min(1.0))
                    .collect(),
                kinetic: (0..=n).map(error).collect(),
                ..rest(n + 1)
            }
        };
        assert_eq!(make(&|_| 0.0).unexplained(), None);
        let grows = |k: usize| {
            if k < 200 {
                0.0
            } else {
                1e-6 * 1.5_f64.powi(k as i32 - 200).min(3e7)
            }
        };
        let found = make(&grows).unexplained().expect("30 J from nowhere");
        assert!((200..330).contains(&found.knot), "{found:?}");
        // of which a hundredth is no more than the errors of the fall
        assert_eq!(make(&|k| 1e-2 * grows(k)).unexplained(), None);
        // contacts that give back what they took are no explanation
        let mut bounce = make(&|k| if k < 200 { 0.0 } else { 800.0 });
        bounce.impacts[200..].fill(-200.0);
        let found = bounce.unexplained().expect("800 J from contacts");
        assert_eq!(found.knot, 200);
        assert!(matches!(found.cause, Cause::Gain { .. }), "{found:?}");
        // a gain of a tenth of the energy in play is noticeable, a hundredth is not
        let gives = |joule: f64| {
            let mut bounce = make(&|k| if k < 200 { 0.0 } else { joule });
            bounce.impacts[200..].fill(joule - 1e3);
            assert_eq!(bounce.unexplained(), None);
            bounce.noticeable_gain().map(|found| found.knot)
        };
        assert_eq!((gives(100.0), gives(10.0)), (Some(200), None));
        // what the knot of a blow alone lacks is not given at the next
        let mut blow = make(&|k| if k == 200 { -300.0 } else { 0.0 });
        blow.impacts[200] -= 300.0;
        assert_eq!(blow.noticeable_gain(), None);
    }
}
