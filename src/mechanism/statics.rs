//! Statics: the controls that hold a mechanism at rest.
//!
//! At rest the momentum balance of a step says that all forces along the tree's rates cancel,
//!
//! ```text
//! N' (w + B u + sum over contacts C_c' f_c + D' e) = 0,
//! ```
//!
//! with the tangents `N` of the tree that keep loops closed and obey velocity constraints (what these exert drops out), the
//! wrenches `w` of gravity, springs and potentials, of controls `B u`, of contacts that touch `C' f`, and of limits reached and
//! joint friction `D' e`. Controls
//! keep their bounds and effort limits, `|f_t| <= mu f_n`, limits only push, and friction is no larger than Coulomb's.
//! Of all that balance the controls with the least sum of squares are taken.

use super::mobility::null_space;
use super::quantity::{Adjoint, KnotData, Past, Quantity};
use super::wrench::add_wrench;
use super::{Mechanism, Row, friction_rows, normal_row};
use crate::spatial::{Pose, Vec3};
use nalgebra::{DMatrix, DVector};

/// What is nearer than this touches, m: it falls closed within 5 ms, less than a usual time step.
const TOUCH: f64 = 1e-4;
/// A coordinate so near to its limit rests on it, m or rad.
const AT_LIMIT: f64 = 1e-6;
/// Forces count this much beside controls, as squares: it makes them unique, and changes controls by about as much.
const FORCES: f64 = 1e-6;
/// Balanced where what is left is below this part of the largest load: rounding, which [`FORCES`] makes 1e6 times larger,
/// and a hundred times that.
const BALANCED: f64 = 1e-8;
/// Weight of what is left, at first, by what it falls, and where it stays: the smaller, the fewer rounds and the worse
/// conditioned.
const LEFT: (f64, f64, f64) = (1e-2, 0.1, 1e-4);
/// Least that [`LEFT`] is multiplied by: below, rounding decides.
const WEAKEST: f64 = 1e-8;
/// Rounds of multipliers, and Newton's iterations in each: some ten and five are usual.
const ROUNDS: usize = 60;
const ITERATIONS: usize = 100;
/// Part of the predicted gain that a step must keep, and the shortest that is tried.
const SUFFICIENT: f64 = 1e-4;
const SHORTEST: f64 = 1e-10;

/// Nothing that a mechanism has holds it at rest.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "no controls hold the pose: with what they, contacts, limits and friction can exert at most, `{coordinate}` is left with {effort:.4e} {unit}"
)]
pub struct Unheld {
    /// Name of the joint coordinate that is left with most.
    pub coordinate: String,
    /// Generalized force along it, N or N m.
    pub effort: f64,
    /// Of the effort.
    pub unit: &'static str,
}

/// What a variable, or three of them, may be.
#[derive(Clone, Copy, Debug)]
enum Range {
    Between(f64, f64),
    /// A force along the normal and two tangents, by Coulomb's coefficient.
    Cone(f64),
}

/// What acts along the tree's rates.
#[derive(Debug)]
struct Acting {
    /// By variables, first of which are the controls.
    columns: Vec<DVector<f64>>,
    /// With the weights of the squares.
    ranges: Vec<(Range, f64)>,
}

impl Acting {
    fn add(&mut self, range: Range, weight: f64, columns: impl IntoIterator<Item = DVector<f64>>) {
        self.ranges.push((range, weight));
        self.columns.extend(columns);
    }
}

impl Mechanism {
    /// The controls that hold the mechanism at rest at the poses given, with the least sum of squares, all bodies that are
    /// nearer than 0.1 mm in contact. `windings` are unwound angles of the joints that have one, else 0.
    ///
    /// # Errors
    /// When none do: what is left, and along which coordinate.
    pub fn holding_controls(&self, poses: &[Pose], windings: &[f64]) -> Result<Vec<f64>, Unheld> {
        let tree = self.tree_basis(poses);
        let rows = self.rate_jacobian(poses, &tree);
        let free = match rows.nrows() {
            0 => DMatrix::identity(tree.ncols(), tree.ncols()),
            _ => null_space(&rows, None).0,
        };
        let basis = &tree * &free;
        let mut gradient = Adjoint::new(self);
        let at = KnotData {
            mechanism: self,
            poses,
            velocities: &[],
            past: Past::Start(&[]),
            before: &[],
            windings,
            controls: &[],
            reactions: &[],
            h_prev: 0.0,
            part: 1.0,
            h: 0.0,
        };
        Quantity::PotentialEnergy.pull(&at, 1.0, &mut gradient);
        let load = basis.tr_mul(&DVector::from_vec(gradient.poses));
        let acting = self.acting(poses, windings, &basis);
        let (z, left) = least(&acting, &load);
        let Some(left) = left else {
            return Ok(z[..self.actuators.len()].to_vec());
        };
        let along = &free * left;
        let most = along.iamax();
        let id @ (joint, direction) = self.tree_ids()[most];
        Err(Unheld {
            coordinate: self.coordinate_name(id),
            effort: along[most],
            unit: self.joints[joint].directions[direction].force_unit(),
        })
    }

    fn acting(&self, poses: &[Pose], windings: &[f64], basis: &DMatrix<f64>) -> Acting {
        let along = |parent: Option<usize>, child: usize, row: &Row| {
            let mut wrench = vec![0.0; basis.nrows()];
            add_wrench(&mut wrench, parent, child, row, 1.0);
            basis.tr_mul(&DVector::from_vec(wrench))
        };
        let mut out = Acting {
            columns: vec![],
            ranges: vec![],
        };
        for c in &self.actuators {
            let (lower, upper) = c.bounds.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            let (a, b) = (
                c.effort_limits.lower / c.gain,
                c.effort_limits.upper / c.gain,
            );
            let range = match c.gain {
                0.0 => Range::Between(lower, upper),
                _ => Range::Between(lower.max(a.min(b)), upper.min(a.max(b))),
            };
            let (parent, child) = self.driven(c);
            let row = c.row(&self.joints, (self.pose(poses, parent), &poses[child]));
            out.add(range, 1.0, [along(parent, child, &row)]);
        }
        for c in &self.contacts {
            let touch = self.touch(c, poses);
            if touch.gap > TOUCH {
                continue;
            }
            let (a, b) = (self.pose(poses, c.parent), &poses[c.child]);
            let [t1, t2] = friction_rows(&touch, c.frame_axis(&touch), a, b);
            let rows = [normal_row(&touch, a, b), t1, t2];
            let columns = rows.map(|row| along(c.parent, c.child, &row));
            out.add(Range::Cone(self.friction(c)), FORCES, columns);
        }
        for (joint, direction) in self.coordinates() {
            let (j, d) = (
                &self.joints[joint],
                &self.joints[joint].directions[direction],
            );
            let (a, b) = self.ends(j, poses);
            let rel = j.relative(a, b);
            let at = j.coordinate(direction, &rel, windings[joint]);
            let lower = if at < d.lower + AT_LIMIT {
                f64::INFINITY
            } else {
                0.0
            };
            let upper = if at > d.upper - AT_LIMIT {
                f64::INFINITY
            } else {
                0.0
            };
            let range = Range::Between(-d.friction - upper, d.friction + lower);
            if lower + upper + d.friction > 0.0 {
                let row = j.direction_row(direction, a, b, &rel);
                out.add(range, FORCES, [along(j.parent, j.child, &row)]);
            }
        }
        out
    }
}

/// What variables come to at multipliers `y`: `z` within its ranges with the largest `z'A'y - 1/2 z'Wz`, that value, and
/// the derivative `A dz/dy`, where it is asked for.
struct Response {
    z: Vec<f64>,
    value: f64,
    slope: DMatrix<f64>,
}

fn response(acting: &Acting, y: &DVector<f64>, wants_slope: bool) -> Response {
    let n = y.len();
    let mut out = Response {
        z: Vec::with_capacity(acting.columns.len()),
        value: 0.0,
        slope: DMatrix::zeros(n, n),
    };
    for &(range, weight) in &acting.ranges {
        let own = &acting.columns[out.z.len()..];
        match range {
            Range::Between(lower, upper) => {
                let asked = own[0].dot(y) / weight;
                let z = asked.max(lower).min(upper);
                out.value += weight * z * (asked - 0.5 * z);
                out.z.push(z);
                if wants_slope && lower < asked && asked < upper {
                    out.slope.ger(1.0 / weight, &own[0], &own[0], 1.0);
                }
            }
            Range::Cone(mu) => {
                let asked = Vec3::from_fn(|i, _| own[i].dot(y) / weight);
                let (z, by) = onto_cone(&asked, mu);
                out.value += weight * z.dot(&(asked - z * 0.5));
                out.z.extend(z.iter());
                if !wants_slope {
                    continue;
                }
                for (i, a) in own[..3].iter().enumerate() {
                    for (k, b) in own[..3].iter().enumerate() {
                        out.slope.ger(by[(i, k)] / weight, a, b, 1.0);
                    }
                }
            }
        }
    }
    out
}

/// The nearest force within the friction cone, and its derivative.
fn onto_cone(f: &Vec3, mu: f64) -> (Vec3, crate::spatial::Mat3) {
    use crate::spatial::Mat3;
    let size = f.y.hypot(f.z);
    if size <= mu * f.x {
        return (*f, Mat3::identity());
    }
    if mu * size <= -f.x {
        return (Vec3::zeros(), Mat3::zeros());
    }
    let e = Vec3::new(0.0, f.y, f.z) / if size > 0.0 { size } else { 1.0 };
    let normal = (f.x + mu * size) / (1.0 + mu * mu);
    let ray = Vec3::x() + e * mu;
    let along = ray * ray.transpose() / (1.0 + mu * mu);
    if size == 0.0 {
        return (ray * normal, along);
    }
    let across = Mat3::from_diagonal(&Vec3::new(0.0, 1.0, 1.0)) - e * e.transpose();
    (ray * normal, along + across * (mu * normal / size))
}

/// The variables within their ranges with the least weighed squares that balance a load, `sum columns z = load`; or, where
/// none do, those that leave least, with what is left.
///
/// By the method of multipliers (Rockafellar 1976) on the dual problem: each round maximizes
/// `load'y - max_z (z'A'y - 1/2 z'Wz) - left/2 |y - y_before|^2`, which has the gradient `load - A z - left (y - y_before)`, by
/// Newton's method on its piecewise linear gradient. Where nothing balances, the residual tends to the smallest (Chiche,
/// Gilbert 2016).
fn least(acting: &Acting, load: &DVector<f64>) -> (Vec<f64>, Option<DVector<f64>>) {
    let n = load.len();
    let size = if load.amax() > 0.0 { load.amax() } else { 1.0 };
    let scaled = |range: Range| match range {
        Range::Between(l, u) => Range::Between(l / size, u / size),
        cone => cone,
    };
    let unit = Acting {
        columns: acting.columns.clone(),
        ranges: acting
            .ranges
            .iter()
            .map(|(r, w)| (scaled(*r), *w))
            .collect(),
    };
    let (acting, load) = (&unit, load / size);
    let rest = |z: &[f64]| {
        let each = acting.columns.iter().zip(z);
        each.fold(load.clone(), |rest, (a, z)| rest - a * *z)
    };
    let mut y = DVector::zeros(n);
    let mut z = vec![];
    // what moves little for its weight, as a motor with a small gain, must not look like nothing beside what is left
    let mut weakest: f64 = 1.0;
    let mut columns = acting.columns.iter();
    for (range, weight) in &acting.ranges {
        let count = if matches!(range, Range::Cone(_)) {
            3
        } else {
            1
        };
        for column in columns.by_ref().take(count) {
            let moved = column.norm_squared() / weight;
            if moved > 0.0 {
                weakest = weakest.min(moved.max(WEAKEST));
            }
        }
    }
    let mut left = LEFT.0 * weakest;
    for _ in 0..ROUNDS {
        let before = y.clone();
        let value = |y: &DVector<f64>, r: &Response| {
            load.dot(y) - r.value - 0.5 * left * (y - &before).norm_squared()
        };
        for _ in 0..ITERATIONS {
            let here = response(acting, &y, true);
            let gradient = rest(&here.z) - (&y - &before) * left;
            if gradient.amax() < 0.1 * BALANCED {
                break;
            }
            let model = &here.slope + DMatrix::identity(n, n) * left;
            let Some(step) = model.cholesky().map(|c| c.solve(&gradient)) else {
                break;
            };
            let (old, slope) = (value(&y, &here), gradient.dot(&step));
            let mut length = 1.0;
            let found = loop {
                let trial = &y + &step * length;
                let new = value(&trial, &response(acting, &trial, false));
                if new >= old + SUFFICIENT * length * slope {
                    break Some(trial);
                }
                length *= 0.5;
                if length < SHORTEST {
                    break None;
                }
            };
            let Some(next) = found else { break };
            y = next;
        }
        z = response(acting, &y, false).z;
        if rest(&z).amax() < BALANCED {
            z.iter_mut().for_each(|z| *z *= size);
            return (z, None);
        }
        left = (left * LEFT.1).max(LEFT.2 * weakest);
    }
    // a load pushes where what acts does not hold against it
    let left = rest(&z) * -size;
    z.iter_mut().for_each(|z| *z *= size);
    (z, Some(left))
}
