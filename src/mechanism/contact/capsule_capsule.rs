//! Capsules of two bodies, in five slots: each end's ball on the other capsule, and the crossing of the axes.
//!
//! The nearest points of parallel segments are not unique, so that a single slot would jump from end to end; the four
//! balls at the ends carry parallel capsules without a jump. Where the nearest points of the two axes lie within both
//! segments, the fifth slot is their distance, `|d . (a x b)|/|a x b| - r_a - r_b`; elsewhere it coincides with the nearest
//! of the first four, continuously and with the same derivatives. Closer to parallel than `PARALLEL` the crossing runs
//! along the axes at the slightest turn, and adds no more than `PARALLEL^2 l^2 / (8 (r_a + r_b))` to what the ends keep
//! apart; there the slot is the ball in the middle of the first capsule on the second, which nothing makes jump.

use super::ball;
use super::frame::TouchSlope;
use super::nearest::Ball;
use super::{Collider, Touch};
use crate::spatial::{Mat3, Pose, Vec3, skew, times_skew};

/// Sine of the angle between the axes below which they count as parallel.
const PARALLEL: f64 = 1e-3;

/// Number of slots of two capsules.
pub(super) const SLOTS: usize = 5;

/// What a slot between two colliders is at a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    /// A ball of the first collider (`side` 0) or the second (1) on the other, at `along` half lengths of its axis.
    Ball { side: usize, along: f64 },
    /// The axes cross.
    Crossing(Crossing),
}

/// The nearest points of two axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    /// Axes, world frame.
    axes: [Vec3; 2],
    /// Places of the points along the axes from the middles, m.
    along: [f64; 2],
    /// Unit normal from the first to the second.
    normal: Vec3,
    /// `|a x b|`, with the sign that makes it point from the first to the second.
    sine: f64,
    /// Distance of the axes, m.
    distance: f64,
}

/// The ball of a side.
fn end(f: usize) -> Slot {
    Slot::Ball {
        side: f / 2,
        along: if f % 2 == 1 { 1.0 } else { -1.0 },
    }
}

/// What slot `feature` is.
pub(super) fn slot(
    (first, second): (&Collider, &Collider),
    (l1, l2): (f64, f64),
    feature: usize,
    (a, b): (&Pose, &Pose),
) -> Slot {
    if feature + 1 < SLOTS {
        return end(feature);
    }
    let axes = [
        a.r * first.orientation.column(2),
        b.r * second.orientation.column(2),
    ];
    let cross = axes[0].cross(&axes[1]);
    let square = cross.norm_squared();
    if square < PARALLEL * PARALLEL {
        return Slot::Ball {
            side: 0,
            along: 0.0,
        };
    }
    let span = b.point(&second.position) - a.point(&first.position);
    let cosine = axes[0].dot(&axes[1]);
    let across = axes[1].dot(&span);
    let s = (axes[0].dot(&span) - cosine * across) / square;
    let t = cosine * s - across;
    if s.abs() < 0.5 * l1 && t.abs() < 0.5 * l2 {
        let volume = cross.dot(&span);
        let sine = square.sqrt().copysign(volume);
        return Slot::Crossing(Crossing {
            axes,
            along: [s, t],
            normal: cross / sine,
            sine,
            distance: volume / sine,
        });
    }
    // an end of one is nearest to the other
    let apart = |f: usize| match end(f) {
        Slot::Ball { side, along } => {
            let (ball, on) = if side == 0 {
                (first.ball(along), second)
            } else {
                (second.ball(along), first)
            };
            let (p, q) = if side == 0 { (a, b) } else { (b, a) };
            ball::touch(&ball, on, p, q).gap
        }
        Slot::Crossing(_) => f64::INFINITY,
    };
    let gaps = [apart(0), apart(1), apart(2), apart(3)];
    let mut least = 0;
    for f in 1..4 {
        if gaps[f] < gaps[least] {
            least = f;
        }
    }
    end(least)
}

impl Collider {
    /// The ball about a point of its axis, `along` in half lengths.
    #[inline]
    pub(super) fn ball(&self, along: f64) -> Ball {
        let half = match self.surface {
            super::Surface::Capsule { length, .. } => 0.5 * length,
            _ => 0.0,
        };
        Ball {
            centre: self.position + self.orientation.column(2) * (half * along),
            radius: self.surface.radius(),
        }
    }
}

impl Crossing {
    /// The point of each axis, body frames.
    fn places(&self, of: (&Collider, &Collider)) -> [Vec3; 2] {
        let place = |c: &Collider, s: f64| c.position + c.orientation.column(2) * s;
        [place(of.0, self.along[0]), place(of.1, self.along[1])]
    }

    pub(super) fn touch(&self, of: (&Collider, &Collider), (a, b): (&Pose, &Pose)) -> Touch {
        let [p, q] = self.places(of);
        let (ra, rb) = (of.0.surface.radius(), of.1.surface.radius());
        Touch {
            gap: self.distance - ra - rb,
            normal: self.normal,
            point: (a.point(&p) + b.point(&q) + self.normal * (ra - rb)) * 0.5,
        }
    }

    pub(super) fn slope(&self, of: (&Collider, &Collider), (a, b): (&Pose, &Pose)) -> TouchSlope {
        let [p, q] = self.places(of);
        let [u, v] = self.axes;
        let n = self.normal;
        let d = n * self.distance;
        let cosine = u.dot(&v);
        let spread = of.0.surface.radius() - of.1.surface.radius();
        let flat = (Mat3::identity() - n * n.transpose()) / self.sine;
        // of the points fixed on the bodies, and of the axes
        let by = |p: Mat3, q: Mat3, u_by: Mat3, v_by: Mat3| {
            // u.d = v.d = 0 with d = q + v t - p - u s
            let r = q - p;
            let along = u_by.tr_mul(&d) + r.tr_mul(&u);
            let other = v_by.tr_mul(&d) + r.tr_mul(&v);
            let square = self.sine * self.sine;
            let s = (along - other * cosine) / square;
            let t = (along * cosine - other) / square;
            let normal = flat * (skew(&u) * v_by - skew(&v) * u_by);
            let sum = p + q + u * s.transpose() + v * t.transpose() + normal * spread;
            (normal, sum * 0.5)
        };
        let (zero, one) = (Mat3::zeros(), Mat3::identity());
        let turned = |pose: &Pose, p: &Vec3| -times_skew(&pose.r, p);
        let (own, other) = (of.0.orientation.column(2), of.1.orientation.column(2));
        let all = [
            by(one, zero, zero, zero),
            by(turned(a, &p), zero, turned(a, &own.into()), zero),
            by(zero, one, zero, zero),
            by(zero, turned(b, &q), zero, turned(b, &other.into())),
        ];
        TouchSlope {
            normal: [(all[0].0, all[1].0), (all[2].0, all[3].0)],
            point: [(all[0].1, all[1].1), (all[2].1, all[3].1)],
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
