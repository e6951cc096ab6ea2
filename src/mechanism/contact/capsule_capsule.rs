//! Capsules of two bodies, in five slots: each end's ball on the other capsule, and the crossing of the axes.
//!
//! The nearest points of parallel segments are not unique, so that a single slot would jump from end to end; the four
//! balls at the ends carry parallel capsules without a jump. Where the nearest points of the two axes lie within both
//! segments, the fifth slot is their distance, `|d . (a x b)|/|a x b| - r_a - r_b`; elsewhere it coincides with the nearest
//! of the first four, continuously and with the same derivatives. Closer to parallel than `PARALLEL` the crossing runs
//! along the axes at the slightest turn, and adds no more than `PARALLEL^2 l^2 / (8 (r_a + r_b))` to what the ends keep
//! apart; there the slot is the ball in the middle of the first capsule on the second, which nothing makes jump.

use super::between::Slot;
use super::crossing::{Crossing, Line};
use super::nearest::{Ball, On};
use super::{Collider, Surface, ball};
use crate::spatial::Pose;

/// Sine of the angle between the axes below which they count as parallel.
const PARALLEL: f64 = 1e-3;

/// Number of slots of two capsules.
pub(super) const SLOTS: usize = 5;

/// The ball of a side.
fn end(of: (&Collider, &Collider), f: usize) -> Slot {
    let (side, along) = (f / 2, if f % 2 == 1 { 1.0 } else { -1.0 });
    let own = if side == 0 { of.0 } else { of.1 };
    Slot::Ball {
        side,
        ball: own.ball(along),
        on: On::Surface,
    }
}

/// What slot `feature` is.
pub(super) fn slot(
    of: (&Collider, &Collider),
    (l1, l2): (f64, f64),
    feature: usize,
    poses: (&Pose, &Pose),
) -> Slot {
    if feature + 1 < SLOTS {
        return end(of, feature);
    }
    let lines = [of.0.axis(), of.1.axis()];
    let Some(c) = Crossing::new(lines, poses, None, PARALLEL) else {
        return Slot::Ball {
            side: 0,
            ball: of.0.ball(0.0),
            on: On::Surface,
        };
    };
    let [s, t] = c.along;
    if s.abs() < 0.5 * l1 && t.abs() < 0.5 * l2 {
        return Slot::Crossing(c);
    }
    // an end of one is nearest to the other
    let apart = |f: usize| {
        let (side, along) = (f / 2, if f % 2 == 1 { 1.0 } else { -1.0 });
        let (ball, on, (p, q)) = if side == 0 {
            (of.0.ball(along), of.1, poses)
        } else {
            (of.1.ball(along), of.0, (poses.1, poses.0))
        };
        ball::touch(&ball, (on, On::Surface), p, q).gap
    };
    let gaps = [apart(0), apart(1), apart(2), apart(3)];
    let mut least = 0;
    for f in 1..4 {
        if gaps[f] < gaps[least] {
            least = f;
        }
    }
    end(of, least)
}

impl Collider {
    /// The ball about a point of its axis, `along` in half lengths.
    #[inline]
    pub(super) fn ball(&self, along: f64) -> Ball {
        let half = match self.surface {
            Surface::Capsule { length, .. } => 0.5 * length,
            _ => 0.0,
        };
        Ball {
            center: self.position + self.orientation.column(2) * (half * along),
            radius: self.surface.radius(),
        }
    }

    /// The axis of a capsule.
    pub(super) fn axis(&self) -> Line {
        Line {
            point: self.position,
            axis: self.orientation.column(2).into(),
            radius: self.surface.radius(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::contact::samples::{CAPSULE, check, check_with, plain, two};
    use crate::mechanism::samples::Source;
    use crate::spatial::{Pose, Quat, Vec3, exp};

    fn at(x: Vec3, turn: Vec3) -> Pose {
        Pose::new(x, exp(&turn))
    }

    #[test]
    fn derivatives_match_differences() {
        check(&two(1, CAPSULE, CAPSULE), 2);
        let m = plain(two(1, CAPSULE, CAPSULE));
        let s = &mut Source::new(5);
        for tilt in [1.5, 0.3, 0.1, 1e-5] {
            let a = at(s.vec3() * 0.05, Vec3::zeros());
            let b = at(
                Vec3::new(0.19, 0.03, 0.02) + s.vec3() * 0.01,
                Vec3::new(tilt, 0.0, 0.0),
            );
            for c in &m.contacts {
                check_with(&m, c, &[a, b], tilt.min(1e-1) * 1e-3);
            }
        }
    }

    /// The least of the slots is the distance of the segments, by sampling.
    #[test]
    fn the_distance_is_that_of_the_segments_less_the_radii() {
        let m = plain(two(1, CAPSULE, CAPSULE));
        let s = &mut Source::new(7);
        let mut crossings = 0;
        for _ in 0..200 {
            let poses = [
                at(s.vec3() * 0.4, s.vec3()),
                at(s.vec3() * 0.4, s.vec3() * 3.0),
            ];
            let gaps: Vec<f64> = m.contacts.iter().map(|c| m.touch(c, &poses).gap).collect();
            let ends = gaps[..4].iter().fold(f64::INFINITY, |m, g| m.min(*g));
            crossings += usize::from(gaps[4] < ends);
            assert!(gaps[4] <= ends + 1e-12);
            let n = 400;
            let place = |p: &Pose, i: i32| {
                p.point(&(Vec3::z() * (0.35 * (f64::from(i) / f64::from(n) * 2.0 - 1.0))))
            };
            let mut least = f64::INFINITY;
            for i in 0..=n {
                let p = place(&poses[0], i);
                // the nearest of the other, in closed form
                let t = poses[1].r.tr_mul(&(p - poses[1].x)).z.clamp(-0.35, 0.35);
                least = least.min((p - poses[1].point(&(Vec3::z() * t))).norm());
            }
            assert!((least - 0.2 - gaps[4]).abs() < 1e-3, "{least} {gaps:?}");
            assert!(least - 0.2 >= gaps[4] - 1e-12);
        }
        assert!(crossings > 20);
    }

    #[test]
    fn crossing_and_parallel_axes() {
        let m = plain(two(1, CAPSULE, CAPSULE));
        let touch = |k: usize, b: Pose| {
            let a = Pose::new(Vec3::zeros(), Quat::identity());
            m.touch(&m.contacts[k], &[a, b])
        };
        let quarter = Vec3::x() * std::f64::consts::FRAC_PI_2;
        let t = touch(4, at(Vec3::new(-0.3, 0.1, 0.2), quarter));
        assert!((t.gap - 0.1).abs() < 1e-15);
        assert!((t.normal + Vec3::x()).norm() < 1e-15);
        assert!((t.point - Vec3::new(-0.15, 0.0, 0.2)).norm() < 1e-15);
        for k in 0..5 {
            let t = touch(k, at(Vec3::new(0.3, 0.0, 0.0), Vec3::zeros()));
            assert!((t.gap - 0.1).abs() < 1e-15);
            let z = [-0.35, 0.35, -0.35, 0.35, 0.0][k];
            assert!((t.point - Vec3::new(0.15, 0.0, z)).norm() < 1e-15);
        }
        // one through the other
        for k in 0..5 {
            let t = touch(k, at(Vec3::zeros(), quarter * f64::from(u8::from(k > 2))));
            assert!((t.normal.norm() - 1.0).abs() < 1e-15 && t.point.norm() < 1.0);
        }
    }
}
