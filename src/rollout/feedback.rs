//! Growth by feedback that is unstable because its controls act from knot to knot.

use super::Balance;
use super::growth::{Cause, Unexplained};

/// Steps of the shortest windows that are examined for growth, two in each quarter: gains just beyond the limit of stability show
/// in longer ones.
const GROWTH_WINDOW: usize = 8;
/// Growth of the largest kinetic energy from each quarter of a window to the next that is an explosion. A bounded force gives at most
/// `(F t)^2/2m` from rest, also at resonance: 16/9 from the third quarter to the fourth. A reference that jumps makes one such step, and
/// a swing that beats against the quarters makes smaller ones.
const QUARTERLY_GROWTH: f64 = 2.0;
/// Share of the actuators' work done in steps that reverse the motion of the step before, above which the motion is not
/// resolved: an oscillation of four steps a period has half.
const REVERSED: f64 = 0.5;
/// Least work of the actuators in a quarter of a window, as a share of its kinetic energy, that counts as the cause of the growth. The
/// mean of efforts that alternate and grow by a factor `g` from step to step does `4 g/(1 + g)^2` of it: 1 for slow growth, 0.1 for
/// `g = 38`, which ends beyond numbers or the speed of light.
const DRIVEN: f64 = 0.1;
/// Kinetic energy in parts of all that the continuous law explains above which held controls decide the motion: twice the speed. Of
/// 26 000 random stable servos none comes above 1.6; a larger value lets explosions pass that the end of the run bounds.
const DECIDED: f64 = 4.0;
/// Knots of a window at which it must be that large. A reference that jumps during motion makes one.
const DECIDED_KNOTS: usize = 2;
/// Least part of that kinetic energy that held controls must have made. By the balance of energy it is `1 - 1/`[`DECIDED`] if nothing
/// else is wrong.
const MADE: f64 = 0.7;
/// What held controls make over a run and neither the law nor dampers take, in parts of all in play, above which stops, contacts or friction take
/// it, again and again. Of a stable servo it comes to 1 at most.
const TAKEN: f64 = 3.0;
/// Steps of the shortest windows from the start in which references that stand still need no steady growth. Next to both limits of
/// stability a servo overshoots in its first steps.
const SETTLED: usize = 32;
/// Least work of an actuator that takes part in the growth, as a share of the largest.
const PARTAKES: f64 = 0.1;

impl Balance {
    /// The first knot at which feedback has made the energy grow as the law itself does not. It has no meaning for controls that
    /// are given. `stands` is set if references stand still: then growth in leaps is none of theirs.
    ///
    /// Over a step the work of a held effort `u_k` exceeds that of a linear one by `(u_k - u_(k+1)) s/2`, `s` the displacement. A servo
    /// `u = -kp q - kd q'` that acts continuously only stores and dissipates energy. Its linear work is
    /// the fall of `kp q^2/2` less what `kd` takes, to second order, and holding adds the negative damping `kp h/2`. The energy in play
    /// is that at the start of a window, what the potential energy gave since, and the largest linear work since, which
    /// contains the energy stored in servos, the work of moving references, and what a law gives that pumps on purpose. Whatever grows
    /// beyond it is due to holding, however many steps a period has.
    pub fn unstable_feedback(&self, stands: bool) -> Option<Unexplained> {
        let last = self.kinetic.len().checked_sub(1)?;
        let floors = self.floors();
        let growing = windows(last)
            .filter(|w| self.grows_steadily(*w))
            .filter_map(|w| {
                self.held_growth(w, floors[w.0], (w.0 + (w.1 - w.0) / 4, DECIDED_KNOTS))
            });
        let whole = (last >= SETTLED).then_some(last);
        let from_start = lengths(SETTLED, last)
            .chain(whole)
            .filter(|_| stands)
            .filter_map(|n| self.held_growth((0, n), floors[0], (n / 2, DECIDED_KNOTS)));
        growing
            .chain(from_start)
            .chain(self.reversals())
            .min_by_key(|u| u.knot)
    }

    /// The same where a step failed: in windows that end there, also of a few steps, in which an explosion may be over.
    pub fn unstable_feedback_at_end(&self) -> Option<Unexplained> {
        let last = self.kinetic.len().checked_sub(1)?;
        let floors = self.floors();
        let all = lengths(GROWTH_WINDOW, last).chain([last]);
        all.filter_map(|n| {
            let (since, part) = (last - n, (n / 8).max(1));
            self.held_growth((since, last), floors[since], (last.saturating_sub(part), 1))
        })
        .min_by_key(|u| u.knot)
    }

    /// Feedback that is unstable at its time step where stops, contacts or friction bound the motion, so that nothing grows. Over the run held
    /// controls made more than the law itself and dampers took, by three times what was in play: the largest kinetic energy, the largest
    /// change of the potential energy, and the linear work at its largest (see [`Balance::unstable_feedback`]), which moving references do.
    pub fn bounded_feedback(&self) -> Option<Unexplained> {
        let knot = self.kinetic.len().checked_sub(1)?;
        let linear = |k: usize| self.actuators[k] - self.held[k];
        let largest = |curve: &mut dyn Iterator<Item = f64>| curve.fold(0.0, f64::max);
        let change = |k: usize| (self.potential[k] - self.potential[0]).abs();
        let in_play = largest(&mut self.kinetic.iter().copied())
            + largest(&mut (0..=knot).map(change))
            + largest(&mut (0..=knot).map(linear));
        let made = self.held[knot];
        let left = made + linear(knot).min(0.0) + self.dampers[knot];
        let cause = Cause::Held {
            since: 0,
            made,
            in_play,
        };
        (left > TAKEN * in_play).then_some(Unexplained::new(knot, cause))
    }

    /// The actuators that drive the motion between two knots.
    pub fn drivers(&self, from: usize, to: usize) -> Vec<usize> {
        let works = self.exerted_by.iter().map(|curve| curve[to] - curve[from]);
        let works: Vec<f64> = works.collect();
        let least = PARTAKES * works.iter().copied().fold(0.0, f64::max);
        (0..works.len()).filter(|c| works[*c] > least).collect()
    }

    /// Does the largest kinetic energy grow from quarter to quarter?
    fn grows_steadily(&self, (since, to): (usize, usize)) -> bool {
        let ends = [0, 1, 2, 3, 4].map(|i| since + i * (to - since) / 4);
        let most = |i: usize| {
            let own = &self.kinetic[ends[i] + usize::from(i > 0)..=ends[i + 1]];
            own.iter().copied().fold(0.0, f64::max)
        };
        (1..4).all(|i| most(i) > QUARTERLY_GROWTH * most(i - 1))
    }

    /// Returns a window in which held controls raise the kinetic energy above [`DECIDED`] times the energy in play: that of its first
    /// quarter, and what came into play after it. At least `needed` knots after the knot `after` must be above.
    fn held_growth(
        &self,
        (since, to): (usize, usize),
        floor: f64,
        (after, needed): (usize, usize),
    ) -> Option<Unexplained> {
        let quarter = since + (to - since) / 4;
        let start = self.kinetic[since..=quarter].iter().copied();
        let start = floor + start.fold(0.0, f64::max);
        let linear = |k: usize| self.actuators[k] - self.held[k];
        let (mut lowest, mut highest) = (self.potential[since], linear(since));
        let mut knots = 0;
        for knot in since + 1..=to {
            lowest = lowest.min(self.potential[knot]);
            highest = highest.max(linear(knot));
            let given = [self.potential[since] - lowest, highest - linear(since)];
            let in_play = start + given[0] + given[1];
            let (kinetic, made) = (self.kinetic[knot], self.held[knot] - self.held[since]);
            if knot > after && kinetic > DECIDED * in_play && made > MADE * kinetic {
                knots += 1;
                if knots == needed {
                    let cause = Cause::Held {
                        since,
                        made,
                        in_play,
                    };
                    return Some(Unexplained::new(knot, cause));
                }
            }
        }
        None
    }

    /// Windows in which the kinetic energy grows from quarter to quarter by actuators that reverse their motion in each step.
    fn reversals(&self) -> Option<Unexplained> {
        let rise = |curve: &[f64], (a, b): (usize, usize)| curve[b] - curve[a];
        self.windows(GROWTH_WINDOW, |since, to, floor, _| {
            let quarter = (to - since) / 4;
            let mut before = 0.0;
            for i in 0..4 {
                let part = (since + i * quarter, since + (i + 1) * quarter);
                let own = &self.kinetic[part.0 + 1..=part.1];
                let kinetic = own.iter().copied().fold(0.0, f64::max);
                let exerted = rise(&self.exerted, part);
                let reverses = rise(&self.reversed, part) > REVERSED * exerted;
                let grows = exerted > DRIVEN * kinetic && kinetic > QUARTERLY_GROWTH * before;
                if !(reverses && grows) {
                    return None;
                }
                before = kinetic;
            }
            let cause = Cause::Reversals { since };
            (before > floor).then_some(Unexplained::new(to, cause))
        })
    }
}

/// A length times powers of two, up to `last`.
fn lengths(shortest: usize, last: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(shortest), |n| Some(2 * n)).take_while(move |n| *n <= last)
}

/// Windows of twice [`GROWTH_WINDOW`] steps times powers of two, each a quarter after the one before, and the whole.
fn windows(last: usize) -> impl Iterator<Item = (usize, usize)> {
    let parts = lengths(2 * GROWTH_WINDOW, last)
        .flat_map(move |n| (0..=last - n).step_by(n / 4).map(move |a| (a, a + n)));
    parts.chain((last >= GROWTH_WINDOW).then_some((0, last)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::mechanism::samples::Source;
    use crate::spatial::Vec3;

    /// What a servo's control is between two samples.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Between {
        Linear,
        Held,
    }

    /// A unit mass under a servo with the gains `y = h^2 kp` and `z = h kd` at `h = 1`, from a place and a speed; from a knot on its
    /// reference is another one.
    pub fn servo(
        between: Between,
        (y, z): (f64, f64),
        start: (f64, f64),
        at: usize,
        n: usize,
    ) -> Balance {
        let (mut x, mut v) = start;
        let mut b = Balance::default();
        let [
            mut earlier,
            mut work,
            mut unresolved,
            mut exerted,
            mut reversed,
            mut held,
        ] = [0.0; 6];
        let mut last = None;
        for k in 0..=n {
            let reference = if k < at { 0.0 } else { start.0 + 0.5 };
            let force = y * (reference - x) - z * v;
            // the linear servo sees the speed of the interval before, as the state has it
            let half = if between == Between::Linear && k > 0 {
                0.5 * force
            } else {
                0.0
            };
            let here = v + half;
            if let Some((old_x, old_force, old_v)) = last {
                let moved: f64 = x - old_x;
                let ends = match between {
                    Between::Linear => [old_force, force],
                    Between::Held => [old_force; 2],
                };
                let own = 0.5 * (ends[0] + ends[1]) * moved;
                work += own;
                unresolved += 0.25 * (ends[0] * old_v + ends[1] * here) - 0.5 * own;
                exerted += own.abs();
                if between == Between::Held {
                    held += 0.5 * (old_force - force) * moved;
                }
                if moved * earlier < 0.0 {
                    reversed += own.abs();
                }
                earlier = moved;
            }
            last = Some((x, force, here));
            b.kinetic.push(0.5 * here * here);
            b.actuators.push(work);
            b.unresolved.push(unresolved);
            b.exerted.push(exerted);
            b.reversed.push(reversed);
            b.held.push(held);
            for curve in [
                &mut b.potential,
                &mut b.dampers,
                &mut b.friction,
                &mut b.impacts,
            ] {
                curve.push(0.0);
            }
            b.velocities
                .push(vec![(Vec3::new(here, 0.0, 0.0), Vec3::zeros())]);
            match between {
                Between::Linear => {
                    v += if k == 0 { 0.5 * force } else { force };
                    x += v;
                }
                Between::Held => {
                    x += v + 0.5 * force;
                    v += force;
                }
            }
        }
        b
    }

    /// Largest factor of a step.
    fn factor(between: Between, (y, z): (f64, f64)) -> f64 {
        let (sum, product) = match between {
            Between::Linear => (2.0 - y - z, 1.0 - z),
            Between::Held => (2.0 - 0.5 * y - z, 1.0 - z + 0.5 * y),
        };
        let square = 0.25 * sum * sum - product;
        match square < 0.0 {
            true => product.sqrt(),
            false => 0.5 * sum.abs() + square.sqrt(),
        }
    }

    /// What shows of a servo.
    fn found(b: &Balance, stands: bool) -> Option<Unexplained> {
        let feedback = b.unstable_feedback(stands);
        b.unexplained().or(feedback)
    }

    /// Gains over four decades, with starts at rest and in motion and with steps of the reference: what is stable passes, what grows
    /// by a factor of a hundred in speed, or a thousand in reversals of linear controls, fails.
    #[test]
    fn servos_pass_where_they_are_stable() {
        let mut s = Source::new(17);
        let mut unit = || 0.5 * (1.0 + s.unit());
        let (mut stable, mut unstable, mut missed) = (0, [0; 2], 0);
        for i in 0..9000 {
            let between = [Between::Linear, Between::Held, Between::Held][i % 3];
            let (y, z) = if i % 3 == 2 {
                // next to `kd = kp h/2`, and without damping
                let y = 10_f64.powf(-3.0 + 3.5 * unit());
                (y, [0.0, 0.3 + 0.4 * unit(), 2.0 * unit()][i / 3 % 3] * y)
            } else {
                let z = 10_f64.powf(-2.0 + 3.3 * unit());
                (z * 10_f64.powf(-4.0 + 4.5 * unit()), z)
            };
            let start = [(0.1, 0.0), (0.1, 0.01), (0.0, 0.01), (1e-3, -0.02)][i / 3 % 4];
            let at = [usize::MAX, 100, 20][i / 12 % 3];
            let n = [20, 50, 200, 1000][i / 36 % 4];
            // of a reference that jumps before the end
            let found = found(&servo(between, (y, z), start, at, n), at > n);
            let what =
                format!("{between:?}, y = {y}, z = {z}, {start:?}, step at {at}, {n}: {found:?}");
            let by = factor(between, (y, z));
            if by < 1.0 {
                assert!(found.is_none(), "{what}, {by}");
                let bounded = servo(between, (y, z), start, at, n).bounded_feedback();
                assert!(bounded.is_none(), "{what}, {by}: {bounded:?}");
                stable += 1;
            } else if by.powi(n as i32) > [1e3, 1e2][usize::from(between == Between::Held)] {
                missed += usize::from(found.is_none());
                unstable[usize::from(y > z)] += 1;
            }
        }
        println!("{stable} stable, {unstable:?} unstable, {missed} of them missed");
        assert!(stable > 2500 && unstable.iter().all(|n| *n > 500));
        // runs whose growth a step of the reference hides
        assert!(
            100 * missed < unstable.iter().sum(),
            "{missed} of {unstable:?}"
        );
    }
}
