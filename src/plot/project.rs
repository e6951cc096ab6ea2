//! Points of the mechanism in the world, and the direction they are looked at from.

use super::axis::drawable;
use super::sheet::Point;
use crate::format::recording::Recording;
use nalgebra::{Quaternion, UnitQuaternion, Vector3};

pub(super) type World = Vector3<f64>;

/// Where a point fixed to a body (or the world) is at a knot; `None` if that cannot be drawn.
pub(super) fn place(
    recording: &Recording,
    knot: usize,
    body: Option<usize>,
    point: [f64; 3],
) -> Option<World> {
    let mut point = Vector3::from(point);
    if let Some(body) = body {
        let pose = recording.poses.get(knot)?.get(body)?;
        let [w, x, y, z] = pose.orientation;
        let turn = UnitQuaternion::try_new(Quaternion::new(w, x, y, z), 1e-9)?;
        point = turn * point + Vector3::from(pose.position);
    }
    point
        .iter()
        .all(|v| drawable(*v).is_some())
        .then_some(point)
}

/// Where a point of the world is in a body at a knot.
pub(super) fn fixed(
    recording: &Recording,
    knot: usize,
    body: usize,
    point: [f64; 3],
) -> Option<World> {
    let pose = recording.poses.get(knot)?.get(body)?;
    let [w, x, y, z] = pose.orientation;
    let turn = UnitQuaternion::try_new(Quaternion::new(w, x, y, z), 1e-9)?;
    Some(turn.inverse() * (Vector3::from(point) - Vector3::from(pose.position)))
}

/// Right and up on the page, in the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct View {
    right: World,
    up: World,
    /// Names of the axes when a coordinate plane is seen straight on.
    pub plane: Option<[&'static str; 2]>,
}

const NAMES: [&str; 3] = ["x", "y", "z"];

impl View {
    /// Straight onto a coordinate plane when no point leaves its parallel of that plane, else oblique.
    /// `tracks` holds the places of each point over time.
    pub(super) fn choose(tracks: &[Vec<World>]) -> View {
        let span = |points: &mut dyn Iterator<Item = &World>, axis: usize| {
            let (lo, hi) = points.fold((f64::MAX, f64::MIN), |(lo, hi), p| {
                (lo.min(p[axis]), hi.max(p[axis]))
            });
            (hi - lo).max(0.0)
        };
        let all = |axis| span(&mut tracks.iter().flatten(), axis);
        let motion = |axis| {
            tracks
                .iter()
                .map(|t| span(&mut t.iter(), axis))
                .fold(0.0, f64::max)
        };
        let size = (0..3).map(all).fold(0.0, f64::max);
        let still = (0..3).map(motion).fold(0.0, f64::max) <= 1e-9 * size;
        // A mechanism may have some depth and still move in a plane; without motion, its shape decides.
        let flat = |axis: usize| {
            let depth = if still { 1e-6 } else { 0.25 };
            motion(axis) <= 1e-6 * size && all(axis) <= depth * size
        };
        // Gravity is along z as a rule, so planes that show z upwards come first among equals.
        let found = [1, 2, 0]
            .into_iter()
            .filter(|a| flat(*a))
            .min_by(|a, b| all(*a).total_cmp(&all(*b)));
        match found {
            Some(axis) => View::onto(axis),
            None => View::oblique(),
        }
    }

    fn onto(axis: usize) -> View {
        let (a, b) = [(1, 2), (0, 2), (0, 1)][axis];
        let unit = |i| World::from_fn(|row, _| f64::from(u8::from(row == i)));
        View {
            right: unit(a),
            up: unit(b),
            plane: Some([NAMES[a], NAMES[b]]),
        }
    }

    /// Orthographic, from azimuth -60 and elevation 25 degrees.
    fn oblique() -> View {
        let ((sa, ca), (se, ce)) = (
            (-60_f64).to_radians().sin_cos(),
            25_f64.to_radians().sin_cos(),
        );
        View {
            right: World::new(-sa, ca, 0.0),
            up: World::new(-se * ca, -se * sa, ce),
            plane: None,
        }
    }

    pub(super) fn project(&self, point: &World) -> Point {
        (self.right.dot(point), self.up.dot(point))
    }

    /// Directions of the world's axes on the page, y up, with their names.
    pub(super) fn triad(&self) -> [(&'static str, Point); 3] {
        [0, 1, 2].map(|i| (NAMES[i], (self.right[i], self.up[i])))
    }
}

/// The part of a segment inside `x` and `y`, after Liang and Barsky.
pub(super) fn clip(a: Point, b: Point, x: (f64, f64), y: (f64, f64)) -> Option<[Point; 2]> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (step, room) in [
        (-dx, a.0 - x.0),
        (dx, x.1 - a.0),
        (-dy, a.1 - y.0),
        (dy, y.1 - a.1),
    ] {
        if step == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if step < 0.0 {
            enter = enter.max(room / step);
        } else {
            leave = leave.min(room / step);
        }
    }
    let at = |share: f64| (a.0 + share * dx, a.1 + share * dy);
    (enter <= leave).then(|| [at(enter), at(leave)])
}
