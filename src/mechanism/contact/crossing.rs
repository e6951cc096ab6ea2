//! Two straight lines of two bodies, axes of capsules and edges, whose nearest points are where they cross.
//!
//! With unit directions `a`, `b` and `d` from a point of the first to one of the second line: `phi = n . d - r_a - r_b`,
//! `n = +-(a x b)/|a x b|`, with radii `r` about them.

use super::Touch;
use super::frame::TouchSlope;
use crate::spatial::{Mat3, Pose, Vec3, skew, times_skew};

/// A line on a body, body frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub point: Vec3,
    pub axis: Vec3,
    /// About the line, m.
    pub radius: f64,
}

/// The nearest points of two lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    lines: [Line; 2],
    /// Directions, world frame.
    axes: [Vec3; 2],
    /// Places of the points along the lines, m.
    pub along: [f64; 2],
    /// Unit normal from the first to the second.
    normal: Vec3,
    /// `|a x b|`, with the sign that makes it point from the first to the second.
    sine: f64,
    /// Distance of the lines, m.
    distance: f64,
}

impl Crossing {
    /// Where the sine of their angle is less than `parallel`, none. The normal is along `a x b`, or against it where
    /// `against`; where that is not told, it is the one that makes the distance positive.
    #[inline]
    pub fn new(
        lines: [Line; 2],
        (a, b): (&Pose, &Pose),
        against: Option<bool>,
        parallel: f64,
    ) -> Option<Self> {
        let axes = [a.r * lines[0].axis, b.r * lines[1].axis];
        let cross = axes[0].cross(&axes[1]);
        let square = cross.norm_squared();
        if square < parallel * parallel || square == 0.0 {
            return None;
        }
        let span = b.point(&lines[1].point) - a.point(&lines[0].point);
        let cosine = axes[0].dot(&axes[1]);
        let across = axes[1].dot(&span);
        let s = (axes[0].dot(&span) - cosine * across) / square;
        let t = cosine * s - across;
        let volume = cross.dot(&span);
        let sine = match against {
            None => square.sqrt().copysign(volume),
            Some(false) => square.sqrt(),
            Some(true) => -square.sqrt(),
        };
        Some(Self {
            lines,
            axes,
            along: [s, t],
            normal: cross / sine,
            sine,
            distance: volume / sine,
        })
    }

    /// The point of each line, body frames.
    fn places(&self) -> [Vec3; 2] {
        let [l, m] = &self.lines;
        let [s, t] = self.along;
        [l.point + l.axis * s, m.point + m.axis * t]
    }

    #[inline]
    pub fn touch(&self, (a, b): (&Pose, &Pose)) -> Touch {
        let [p, q] = self.places();
        let [ra, rb] = self.lines.each_ref().map(|l| l.radius);
        Touch {
            gap: self.distance - ra - rb,
            normal: self.normal,
            point: (a.point(&p) + b.point(&q) + self.normal * (ra - rb)) * 0.5,
        }
    }

    pub fn slope(&self, (a, b): (&Pose, &Pose)) -> TouchSlope {
        let [p, q] = self.places();
        let [u, v] = self.axes;
        let n = self.normal;
        let d = n * self.distance;
        let cosine = u.dot(&v);
        let spread = self.lines[0].radius - self.lines[1].radius;
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
        let [own, other] = self.lines.each_ref().map(|l| l.axis);
        let all = [
            by(one, zero, zero, zero),
            by(turned(a, &p), zero, turned(a, &own), zero),
            by(zero, one, zero, zero),
            by(zero, turned(b, &q), zero, turned(b, &other)),
        ];
        TouchSlope {
            normal: [(all[0].0, all[1].0), (all[2].0, all[3].0)],
            point: [(all[0].1, all[1].1), (all[2].1, all[3].1)],
        }
    }
}
