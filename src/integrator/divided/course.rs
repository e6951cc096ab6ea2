//! What divided steps keep of those before: the number of their parts, and how the motion went.

use crate::dynamics::Knot;
use crate::integrator::mechanical::VelocityChange;

/// Parts that are made before their number is halved, if nothing touches. Each change of the number changes the conserved energy by order
/// `(h omega)^2`. A number that follows each swing up and down lets a four-bar on a spring lose 25 of 248 J in 5 s; with this one it is
/// off by 1.8 J. More parts cost time after each fast swing, 1024 for each halving; with 32 steps instead, double pendulums drifted by 5 %.
const KEPT: usize = 1024;

/// Share of the largest kinetic energy that the [jump](Course::goes_on) of a part may be. Of a spring it is `(h omega)^4/4`: this much
/// at `h omega = 0.45`. Of 74 mechanisms whose light links fold or snap taut, or whose springs harden, 12 failed without it, one at
/// 0.03, and none at 0.01, with 7.9, 9.9 and 12.3 parts a step.
const JUMP: f64 = 0.01;
/// How many times larger jumps are in parts that are twice as long.
const TWICE_AS_LONG: f64 = 16.0;
/// Steps of free fall from rest whose kinetic energy is the least that jumps are compared with.
const FALLS: f64 = 4.0;
/// Speed of the same where nothing falls, m/s: slower motion is rounding.
const SLOW: f64 = 1e-6;

/// The number of parts that is kept while nothing touches, and for how many steps half of them would have been enough.
#[derive(Clone, Copy)]
pub(super) struct Hysteresis {
    pub parts: usize,
    pub steps: usize,
}

impl Hysteresis {
    /// Nothing is kept.
    pub const NONE: Self = Self { parts: 1, steps: 0 };

    /// The number for a step that its start asks to have `n` parts.
    pub fn asked(self, n: usize) -> Self {
        let Self { parts, steps } = self;
        if 2 * n > parts {
            Self {
                parts: parts.max(n),
                steps: 0,
            }
        } else if steps * parts < KEPT {
            Self {
                parts,
                steps: steps + 1,
            }
        } else {
            Self {
                parts: parts / 2,
                steps: 0,
            }
        }
    }

    /// After a step that was made in `n` parts. One part more because of a half turn is not kept. The number does not fall as long as parts
    /// that are twice as long would jump too much.
    pub fn made(self, n: usize, courses: &Courses) -> Self {
        if n > self.parts && n.is_power_of_two() {
            Self { parts: n, steps: 0 }
        } else if courses.jump > JUMP / TWICE_AS_LONG {
            Self { steps: 0, ..self }
        } else {
            self
        }
    }
}

/// How the motion of a group of bodies went until a part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    /// Largest kinetic energy, J.
    pub kinetic: f64,
    /// Size `sqrt(a'Ma)` of the accelerations at the last knot, sqrt(kg) m/s^2; 0 where it is not known.
    pub acceleration: f64,
    /// Did something touch in the step?
    pub touched: bool,
}

impl Course {
    /// Goes on over a part that changed velocities so. Returns its jump: `(h^2/8) (|a| - |a_before|)^2` in parts of the largest kinetic energy,
    /// with `|a|^2 = a'Ma`, if `|a|` grows.
    ///
    /// Forces at knots let the energy there err by `(h^2/8) a'Ma`. The jump is what of that comes within one part. Steady forces have none,
    /// however fast bodies turn under them. `h` is the interval before the knot, in which the acceleration grew: a shorter one after it does
    /// not change that.
    pub fn goes_on(&mut self, at: &Knot, change: &VelocityChange, least: f64) -> f64 {
        let before = self.acceleration;
        self.passes(change);
        self.acceleration = (2.0 * change.of_change).sqrt() / (0.5 * (at.h_prev + at.h).abs());
        if before == 0.0 {
            return 0.0;
        }
        let growth = (self.acceleration - before).max(0.0);
        0.125 * (at.h_prev * growth).powi(2) / self.kinetic.max(least)
    }

    /// Goes on over a part whose jump is not looked at.
    pub fn passes(&mut self, change: &VelocityChange) {
        let [before, after] = change.kinetic;
        *self = Self {
            kinetic: self.kinetic.max(before).max(after),
            acceleration: 0.0,
            touched: self.touched,
        };
    }
}

/// How the motions of all groups of bodies went.
pub(super) struct Courses {
    /// Of each group.
    pub each: Vec<Course>,
    /// How the part made last changed velocities.
    pub changes: Vec<VelocityChange>,
    /// The largest jump of the step.
    pub jump: f64,
    /// Is the control at the knot of the next part another one than before?
    pub control_changes: bool,
}

impl Courses {
    /// Of so many groups.
    pub fn of(groups: usize) -> Self {
        Self {
            each: vec![Course::default(); groups],
            changes: vec![VelocityChange::default(); groups],
            jump: 0.0,
            control_changes: false,
        }
    }
}

/// The least kinetic energy (J) that jumps in steps `h` are compared with, of a mass (kg) under gravity (m/s^2).
pub(super) fn least_kinetic(mass: f64, gravity: f64, h: f64) -> f64 {
    0.5 * mass * (FALLS * h * gravity + SLOW).powi(2)
}

/// By how many times more parts a jump asks for; 1 if it is small. It falls with the fourth power of their length.
pub(super) fn times_of_jump(jump: f64) -> f64 {
    (jump / JUMP).sqrt().sqrt().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Velocities `v[k]` of parts `h`: their jumps, of a mass of 1 kg.
    fn jumps(v: &[f64], h: f64) -> Vec<f64> {
        let mut course = Course::default();
        let energy = |v: f64| 0.5 * v * v;
        v.windows(2)
            .map(|v| {
                let at = Knot {
                    k: 1,
                    t: h,
                    h_prev: h,
                    h,
                };
                let change = VelocityChange {
                    touches: false,
                    kinetic: [energy(v[0]), energy(v[1])],
                    of_change: energy(v[1] - v[0]),
                };
                course.goes_on(&at, &change, 0.0)
            })
            .collect()
    }

    /// A spring has jumps of `(h omega)^4/4`, what falls has none, nor has what stops.
    #[test]
    fn jumps_are_those_of_closed_forms() {
        for (i, h) in [0.01, 0.02, 0.05].iter().enumerate() {
            let omega = 2.0 + i as f64;
            let steps = (20.0 / (h * omega)) as usize;
            let v: Vec<f64> = (0..steps).map(|k| (h * omega * k as f64).sin()).collect();
            let most = jumps(&v, *h).into_iter().fold(0.0, f64::max);
            let expected = 0.25 * (h * omega).powi(4);
            assert!((most / expected - 1.0).abs() < 0.1, "{most}, {expected}");
            let falls: Vec<f64> = (0..50).map(|k| 9.81 * h * k as f64).collect();
            assert!(jumps(&falls, *h).iter().all(|jump| *jump < 1e-20));
            let stops: Vec<f64> = (0..50).map(|k| 0.1_f64.powi(k)).collect();
            assert!(jumps(&stops, *h).iter().all(|jump| *jump == 0.0));
        }
    }

    #[test]
    fn jumps_ask_for_parts() {
        assert_eq!(times_of_jump(0.5 * JUMP), 1.0);
        assert!((times_of_jump(16.0 * JUMP) - 2.0).abs() < 1e-12);
    }
}
