//! A bound of the fastest swing about a knot, for every integrator.
//!
//! For a body alone, `omega^2` is at most the sum over its joints of the force times its lever (and the torque), over the
//! smallest moment of inertia, and for springs of their stiffness times `row M^-1 row'`. That needs no solve and is 1.3 to 6
//! times too large, the more the lighter the body.

use super::mechanical::Swing;
use crate::mechanism::{Mechanism, Row, compliance, damper_shares};
use crate::spatial::{Mat3, Pose, Vec3};

/// Power iterations of a mode: the largest eigenvalue within a tenth. Ten leave 0.76 of it in a tree of the samples whose dampers
/// are scaled, where the largest eigenvalues are close to each other.
pub(super) const ITERATIONS: usize = 30;

/// Parts of a vector that spread evenly, -1/2 to 1/2: multiples of the golden ratio.
pub(super) fn spread(i: usize) -> f64 {
    (0.618_033_988_749_895 * (i + 1) as f64).fract() - 0.5
}

/// No eigenvalue of a symmetric matrix is larger (Gershgorin).
fn largest(m: &Mat3) -> f64 {
    let rows = m.row_iter().map(|r| r.abs().sum());
    rows.fold(0.0, f64::max)
}

/// The largest and its index; a NaN is none.
pub(super) fn most(each: impl Iterator<Item = f64>) -> (usize, f64) {
    each.enumerate().fold(
        (0, 0.0),
        |best, own| if own.1 > best.1 { own } else { best },
    )
}

/// Scales the dampers of `m` to what they add to the masses in the stability limit of explicit forces; `saved` keeps their
/// values for [`restore_dampers`].
///
/// A mass `m` on a spring `k` and a damper `d`, of whose impulses the shares `a` and `b = 1 - a` of the intervals before and
/// after a knot act there, steps by
///
/// ```text
/// (m + b h d) z+ - (2 m + (b - a) h d - h^2 k) z + (m - a h d) z- = 0
/// ```
///
/// Its root reaches -1 at `h^2 k = 4 (m + (b - a) h d/2)`. The default dampers, `a = b`, do not move the limit
/// `h omega = 2` of the undamped spring, however much they slow its motion; implicit ones, `a = 0`, add `h d/2` to the mass.
/// The step's matrix holds `m + b h d`: with `d` scaled by `(b - a)/2b` it is the mass of the limit.
pub(super) fn scale_dampers(m: &mut Mechanism, saved: &mut Vec<f64>) {
    saved.clear();
    for (damping, implicit) in dampers(m) {
        let (before, after) = damper_shares(implicit);
        saved.push(*damping);
        *damping *= 0.5 * (after - before) / after;
    }
}

/// Undoes [`scale_dampers`].
pub(super) fn restore_dampers(m: &mut Mechanism, saved: &[f64]) {
    for ((damping, _), saved) in dampers(m).zip(saved) {
        *damping = *saved;
    }
}

/// All dampers, and whether they are implicit.
fn dampers(m: &mut Mechanism) -> impl Iterator<Item = (&mut f64, bool)> {
    let joints = m.joints.iter_mut().flat_map(|j| {
        let implicit = j.implicit;
        let own = j.directions.iter_mut();
        own.map(move |d| (&mut d.damping, implicit))
    });
    let lines = m.springs.iter_mut().map(|s| (&mut s.damping, s.implicit));
    joints.chain(lines)
}

/// The bound, with what the actuators exert (`efforts`), and a sum over the rows of a joint's constraint times the forces of its
/// multipliers (`exerted`), none where it has no rows; `squares` is memory, a number a body.
pub(super) fn bound(
    m: &Mechanism,
    inverse: &[Mat3],
    poses: &[Pose],
    efforts: impl Iterator<Item = f64>,
    squares: &mut [f64],
    exerted: impl Fn(usize) -> Option<Row>,
) -> Swing {
    squares.fill(0.0);
    for (index, j) in m.joints.iter().enumerate() {
        let Some(row) = exerted(index) else { continue };
        let size = row.force.norm();
        let ends = [
            (j.parent, &j.parent_anchor, &row.parent_torque),
            (Some(j.child), &j.child_anchor, &row.child_torque),
        ];
        for (body, anchor, torque) in ends {
            let Some(b) = body else { continue };
            squares[b] += (size * anchor.norm() + torque.norm()) * largest(&inverse[b]);
        }
    }
    for (c, effort) in m.actuators.iter().zip(efforts) {
        let (parent, child) = m.driven(c);
        let row = c.row(&m.joints, (m.pose(poses, parent), &poses[child]));
        let mut add = |b: usize, torque: &Vec3| {
            squares[b] += effort.abs() * torque.norm() * largest(&inverse[b]);
        };
        add(child, &row.child_torque);
        if let Some(p) = parent {
            add(p, &row.parent_torque);
        }
    }
    let mut stiff = |parent: Option<usize>, child: usize, row: &Row, stiffness: f64| {
        let square = stiffness * compliance(m, inverse, (parent, child), row);
        squares[child] += square;
        if let Some(p) = parent {
            squares[p] += square;
        }
    };
    for j in m.joints.iter().filter(|j| j.has_springs()) {
        let (a, b) = m.ends(j, poses);
        let relative = j.relative(a, b);
        for (i, d) in j.directions.iter().enumerate() {
            if d.stiffness > 0.0 {
                let row = j.direction_row(i, a, b, &relative);
                stiff(j.parent, j.child, &row, d.stiffness);
            }
        }
    }
    for s in &m.springs {
        let row = s.length_row(m.pose(poses, s.parent), &poses[s.child]);
        stiff(s.parent, s.child, &row, s.stiffness);
    }
    let (body, square) = most(squares.iter().copied());
    Swing {
        rate: square.sqrt(),
        bound: square.sqrt(),
        body,
        turn: 0.0,
    }
}
