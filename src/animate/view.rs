//! How far a scene reaches, and the camera that sees all of it.

use crate::spatial::Vec3;

/// Half of the vertical angle that is seen: tangent.
pub const TANGENT: f64 = 0.268;
/// Part of the picture that stays free on every side.
const MARGIN: f64 = 0.1;
/// Who goes along sees so many times as much as the bodies, lest nothing tells that they move.
const SURROUNDINGS: f64 = 1.8;
/// A motion is in a plane if it leaves it by less than this part of its size.
const FLAT: f64 = 1e-3;

/// Extremes along these and their opposites stand for all points.
const DIRECTIONS: [[f64; 3]; 13] = [
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [0.0, 0.0, 1.0],
    [1.0, 1.0, 0.0],
    [1.0, -1.0, 0.0],
    [1.0, 0.0, 1.0],
    [1.0, 0.0, -1.0],
    [0.0, 1.0, 1.0],
    [0.0, 1.0, -1.0],
    [1.0, 1.0, 1.0],
    [1.0, 1.0, -1.0],
    [1.0, -1.0, 1.0],
    [1.0, -1.0, -1.0],
];

/// How far points reach.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// By direction, the farthest point back and forth.
    farthest: Vec<[Vec3; 2]>,
    /// How far their middle goes, m.
    pub travel: f64,
    /// The largest span of a body's center along each axis, m.
    pub motion: [f64; 3],
}

impl Extent {
    /// Takes a point in.
    pub fn see(&mut self, point: Vec3) {
        if self.farthest.is_empty() {
            self.farthest = vec![[point; 2]; DIRECTIONS.len()];
        }
        for (direction, [low, high]) in DIRECTIONS.iter().zip(&mut self.farthest) {
            let d = Vec3::from(*direction);
            if d.dot(&point) < d.dot(low) {
                *low = point;
            }
            if d.dot(&point) > d.dot(high) {
                *high = point;
            }
        }
    }

    /// Takes all of another in.
    pub fn add(&mut self, other: &Extent) {
        other.points().for_each(|p| self.see(p));
        self.travel = self.travel.max(other.travel);
        self.motion = [0, 1, 2].map(|i| self.motion[i].max(other.motion[i]));
    }

    /// The points that reach farthest.
    pub fn points(&self) -> impl Iterator<Item = Vec3> + '_ {
        self.farthest.iter().flatten().copied()
    }

    fn along(&self, axis: usize, side: usize) -> f64 {
        self.farthest.get(axis).map_or(0.0, |f| f[side][axis])
    }

    /// Smallest coordinates, m.
    pub fn low(&self) -> Vec3 {
        Vec3::from_fn(|i, _| self.along(i, 0))
    }

    /// Largest coordinates, m.
    pub fn high(&self) -> Vec3 {
        Vec3::from_fn(|i, _| self.along(i, 1))
    }

    /// Of the box around all, m.
    pub fn middle(&self) -> Vec3 {
        (self.low() + self.high()) * 0.5
    }

    /// Half of its diagonal, m.
    pub fn radius(&self) -> f64 {
        (self.high() - self.low()).norm() * 0.5
    }
}

/// Where a scene is looked at from; up is along z.
#[derive(Clone, Debug)]
pub struct View {
    /// Of the eye seen from the target, about z from x, rad.
    pub azimuth: f64,
    /// Of the eye above the target, rad.
    pub elevation: f64,
    /// What is to be seen, m.
    pub points: Vec<Vec3>,
    /// The same where the camera goes with the bodies, which keeps their middle where it is at the start.
    pub close: Vec<Vec3>,
    /// The camera goes with the bodies.
    pub follows: bool,
    /// The least distance, m.
    pub near: f64,
}

impl View {
    /// On all points: what moves in a vertical plane from nearly across it, else from a corner.
    pub(super) fn new(extent: &Extent, close: &Extent, several: bool, follows: bool) -> View {
        let motion = extent.motion;
        let size = motion.iter().fold(0.0_f64, |a, b| a.max(*b));
        let flat = |axis: usize| size > 0.0 && motion[axis] < FLAT * size;
        let (azimuth, elevation) = match (flat(0), flat(1), flat(2)) {
            (_, true, false) => (-75.0, if several { 24.0 } else { 12.0 }),
            (true, false, false) => (15.0, if several { 24.0 } else { 12.0 }),
            (_, _, true) => (-65.0, 45.0),
            _ => (-60.0, 22.0_f64),
        };
        let middle = close.middle();
        let around = |p: Vec3| middle + (p - middle) * SURROUNDINGS;
        View {
            azimuth: f64::to_radians(azimuth),
            elevation: elevation.to_radians(),
            points: extent.points().collect(),
            close: close.points().map(around).collect(),
            follows,
            near: close.radius().max(1e-6),
        }
    }

    /// Right, up and towards the eye, in the world.
    pub fn axes(&self) -> [Vec3; 3] {
        let ((sa, ca), (se, ce)) = (self.azimuth.sin_cos(), self.elevation.sin_cos());
        [
            Vec3::new(-sa, ca, 0.0),
            Vec3::new(-se * ca, -se * sa, ce),
            Vec3::new(ce * ca, ce * sa, se),
        ]
    }

    /// The direction to the light, unit length: from above, over the viewer's left shoulder.
    pub fn light(&self) -> Vec3 {
        let (azimuth, elevation) = (self.azimuth - 0.7, 0.95_f64);
        let ((sa, ca), (se, ce)) = (azimuth.sin_cos(), elevation.sin_cos());
        Vec3::new(ce * ca, ce * sa, se)
    }

    /// What to look at, and from how far, to see all of it in the middle of a picture that is `aspect` times as wide as high.
    pub fn fit(&self, aspect: f64) -> (Vec3, f64) {
        let axes = self.axes();
        let tangents = [TANGENT * aspect, TANGENT].map(|t| t * (1.0 - 2.0 * MARGIN));
        let points = if self.follows {
            &self.close
        } else {
            &self.points
        };
        let mut target = points.iter().sum::<Vec3>() / points.len().max(1) as f64;
        let mut distance = self.near;
        for _ in 0..8 {
            let local: Vec<Vec3> = (points.iter())
                .map(|p| Vec3::from_fn(|i, _| axes[i].dot(&(p - target))))
                .collect();
            let needed = |p: &Vec3| {
                let across = (p.x.abs() / tangents[0]).max(p.y.abs() / tangents[1]);
                across + p.z
            };
            distance = local.iter().map(needed).fold(self.near, f64::max);
            // to the middle of what is seen
            for i in 0..2 {
                let seen = local.iter().map(|p| p[i] / (distance - p.z));
                let (low, high) = seen.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), s| {
                    (l.min(s), h.max(s))
                });
                if low <= high {
                    target += axes[i] * (0.5 * (low + high) * distance);
                }
            }
        }
        (target, distance)
    }
}
