//! The poses that an animation shows: as many as the eye can tell, and what is between them.

use super::AnimateError;
use super::mesh::vec3;
use crate::format::recording::{Pose, Recording};
use crate::spatial::{Quat, Vec3};
use nalgebra::Quaternion;

/// Frames a second at most: more than screens show.
pub const MOST_RATE: f64 = 100.0;
/// A frame is kept wherever leaving it out would leave bodies to turn by more than this, rad: what turns by half a turn
/// between frames may as well turn the other way.
const MOST_TURN: f64 = 1.5;

/// Numbers of a pose: x, y, z, then the quaternion x, y, z, w.
pub const NUMBERS: usize = 7;

/// Poses of all bodies at some of a recording's knots, interpolated between these.
#[derive(Clone, Debug, PartialEq)]
pub struct Frames {
    /// The knots that are kept.
    pub knots: Vec<usize>,
    /// s
    pub times: Vec<f32>,
    /// `NUMBERS` for every body of every frame; quaternions of unit length, in the sign next to the one before.
    pub poses: Vec<f32>,
    bodies: usize,
}

impl Frames {
    /// Checks the recording's poses and keeps what there is to see of them.
    ///
    /// # Errors
    /// When there is no knot, a time does not ascend, or a pose is not finite or has no orientation.
    pub fn new(recording: &Recording) -> Result<Frames, AnimateError> {
        let r = recording;
        if r.time.is_empty() || r.poses.len() != r.time.len() {
            return Err(AnimateError::Empty);
        }
        if let Some(k) = (0..r.time.len())
            .find(|&k| !r.time[k].is_finite() || (k > 0 && r.time[k] <= r.time[k - 1]))
        {
            return Err(AnimateError::Time {
                knot: k,
                time: r.time[k],
            });
        }
        let bodies = r.bodies.len();
        let mut before: Vec<Quat> = vec![];
        let mut all: Vec<f32> = vec![];
        for (knot, poses) in r.poses.iter().enumerate() {
            if poses.len() != bodies {
                return Err(AnimateError::Empty);
            }
            for (body, pose) in poses.iter().enumerate() {
                let bad = || AnimateError::Pose {
                    body: r.bodies[body].clone(),
                    knot,
                    time: r.time[knot],
                };
                let mut q = orientation(pose).ok_or_else(bad)?;
                match before.get_mut(body) {
                    Some(last) => {
                        if last.dot(&q) < 0.0 {
                            q = Quat::new_unchecked(-q.into_inner());
                        }
                        *last = q;
                    }
                    None => before.push(q),
                }
                let [x, y, z] = pose.position;
                let numbers = [x, y, z, q.i, q.j, q.k, q.w].map(|v| v as f32);
                if !numbers.iter().all(|v| v.is_finite()) {
                    return Err(bad());
                }
                all.extend(numbers);
            }
        }
        let whole = Frames {
            knots: (0..r.time.len()).collect(),
            times: r.time.iter().map(|t| *t as f32).collect(),
            poses: all,
            bodies,
        };
        Ok(whole.thinned(&r.time))
    }

    /// Without what follows the frame before too soon.
    fn thinned(self, time: &[f64]) -> Frames {
        let last = time.len() - 1;
        // knots at this rate are not too soon for the rounding of their times
        let least = (1.0 - 1e-6) / MOST_RATE;
        let mut kept = vec![0];
        for k in 1..=last {
            let from = kept[kept.len() - 1];
            // times this close are one in single precision
            if self.times[k] <= self.times[from] {
                continue;
            }
            if k == last || time[k] - time[from] >= least || self.turns(from, k + 1) {
                kept.push(k);
            }
        }
        let per = NUMBERS * self.bodies;
        Frames {
            times: kept.iter().map(|k| self.times[*k]).collect(),
            poses: (kept.iter())
                .flat_map(|k| self.poses[k * per..(k + 1) * per].iter().copied())
                .collect(),
            knots: kept,
            bodies: self.bodies,
        }
    }

    /// Does a body turn by more than [`MOST_TURN`] from a frame to another?
    fn turns(&self, from: usize, to: usize) -> bool {
        let least = (0.5 * MOST_TURN).cos() as f32;
        (0..self.bodies).any(|b| {
            let (p, q) = (self.numbers(from, b), self.numbers(to, b));
            let dot: f32 = (3..NUMBERS).map(|i| p[i] * q[i]).sum();
            dot.abs() < least
        })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Never: there is one at least.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// From the first to the last, s.
    pub fn span(&self) -> [f64; 2] {
        [self.times[0], self.times[self.len() - 1]].map(f64::from)
    }

    /// Of a body at a frame.
    pub fn numbers(&self, frame: usize, body: usize) -> &[f32] {
        &self.poses[(frame * self.bodies + body) * NUMBERS..][..NUMBERS]
    }

    /// Position and orientation of a body at a frame.
    pub fn pose(&self, frame: usize, body: usize) -> (Vec3, Quat) {
        let n = self.numbers(frame, body);
        let [i, j, k, w] = [n[3], n[4], n[5], n[6]].map(f64::from);
        let q = Quat::new_normalize(Quaternion::new(w, i, j, k));
        (vec3([n[0], n[1], n[2]]), q)
    }

    /// The frame before a time and the share of the way to the next; before the first and behind the last these.
    pub fn locate(&self, time: f64) -> (usize, f64) {
        let last = self.len() - 1;
        let after = self.times.partition_point(|t| f64::from(*t) <= time);
        if after == 0 || after > last {
            return (after.min(last), 0.0);
        }
        let [a, b] = [self.times[after - 1], self.times[after]].map(f64::from);
        (after - 1, (time - a) / (b - a))
    }

    /// Poses of all bodies at a time: along the straight line, and along the great circle.
    pub fn at(&self, time: f64) -> Vec<(Vec3, Quat)> {
        let (frame, share) = self.locate(time);
        (0..self.bodies)
            .map(|b| {
                let (p, q) = self.pose(frame, b);
                if share == 0.0 {
                    return (p, q);
                }
                let (next, r) = self.pose(frame + 1, b);
                // quaternions that are opposite have no way between them
                let turned = q.try_slerp(&r, share, 1e-9).unwrap_or(q);
                (p + (next - p) * share, turned)
            })
            .collect()
    }
}

fn orientation(pose: &Pose) -> Option<Quat> {
    let [w, x, y, z] = pose.orientation;
    let finite = pose
        .orientation
        .iter()
        .chain(&pose.position)
        .all(|v| v.is_finite());
    Quat::try_new(Quaternion::new(w, x, y, z), 1e-9).filter(|_| finite)
}
