//! A bound of the fastest swing about a knot, for every integrator.
//!
//! For a body alone, `omega^2` is at most the sum over its joints of the force times its lever (and the torque), over the
//! smallest moment of inertia, and for springs of their stiffness times `row M^-1 row'`. That needs no solve and is 1.3 to 6
//! times too large, the more the lighter the body.
//!
//! Where the bound alarms, power iteration gives the mode itself. With the forces `F` of an interval as given, the step's change of
//! velocity by a displacement `dz` is `dv = h P M^-1 (dF/dz) dz`, `P` the projection onto the joints' tangent: a mode of
//! `-P M^-1 dF/dz` with the eigenvalue `omega^2` is stable while `h omega < 2`. What turns `F` with `z` is a joint's impulse, whose
//! direction and lever turn with the bodies, beside springs and efforts. An integrator gives `P M^-1` by the factors of its step's
//! matrix at rest: the number of substeps is the same for all.

use super::mechanical::Swing;
use crate::mechanism::{Coupling, Mat6, Mechanism, Row, Vec6, compliance, vec3};
use crate::spatial::{Mat3, Pose, Vec3};

/// Power iterations of a mode: the largest eigenvalue within a tenth. Ten leave 0.76 of it in a tree of the samples whose dampers
/// are scaled, where the largest eigenvalues are close to each other.
const ITERATIONS: usize = 30;
/// Change of the rate in an iteration below which it has settled, after how many iterations, and how often in a row: then it is found. If the
/// first vector has less than a thousandth of the fastest mode, it may be that of a slower one.
const SETTLED: f64 = 1e-4;
const UNSETTLED: usize = 6;
const IN_A_ROW: usize = 2;

/// Parts of a vector that spread evenly, -1/2 to 1/2: multiples of the golden ratio.
fn spread(i: usize) -> f64 {
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
/// A mass `m` on a spring `k` and a damper `d`, of whose impulses the shares `a` and `b = 1 - a` of two equal intervals before and
/// after a knot act there, steps by
///
/// ```text
/// (m + b h d) z+ - (2 m + (b - a) h d - h^2 k) z + (m - a h d) z- = 0
/// ```
///
/// Its root reaches -1 at `h^2 k = 4 (m + (b - a) h d/2)`. The default dampers, `a = b`, do not move the limit
/// `h omega = 2` of the undamped spring, however much they slow its motion. Implicit ones, `a = 0`, add `h d/2` to the mass. The step's
/// matrix has `m + h d`: with half of `d` it is the mass of the limit.
pub(super) fn scale_dampers(m: &mut Mechanism, saved: &mut Vec<f64>) {
    saved.clear();
    for (damping, implicit) in dampers(m) {
        saved.push(*damping);
        *damping *= if implicit { 0.5 } else { 0.0 };
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

/// Twice the kinetic energy of a body, of six velocities each.
pub(super) fn energy(m: &Mechanism, v: &[f64], b: usize) -> f64 {
    let (body, x, turn) = (&m.bodies[b], vec3(v, 6 * b), vec3(v, 6 * b + 3));
    body.mass * x.norm_squared() + turn.dot(&(body.inertia * turn))
}

fn six(v: &[f64], b: usize) -> Vec6 {
    Vec6::from_column_slice(&v[6 * b..6 * b + 6])
}

/// How impulses at a knot turn with the bodies, and the vectors of the power iteration.
#[derive(Debug, Default)]
pub(super) struct Turning {
    /// Of joints, springs between points and actuators: parent, child, and their wrenches by their displacements.
    pairs: Vec<(Option<usize>, usize, Coupling)>,
    /// The wrench on a body by the displacement of another one.
    others: Vec<(usize, usize, Mat6)>,
    displacement: Vec<f64>,
    wrench: Vec<f64>,
    velocity: Vec<f64>,
}

impl Turning {
    /// Takes what joints, springs and actuators exert at `poses`. Forces act for `half`; `winding` is a joint's unwound angle, `impulses`
    /// those of its constraint, none where it has no rows.
    pub fn collect<'a>(
        &mut self,
        (m, poses, half): (&Mechanism, &[Pose], f64),
        winding: impl Fn(usize) -> f64,
        impulses: impl Fn(usize) -> Option<&'a [f64]>,
        efforts: impl Iterator<Item = f64>,
    ) {
        self.pairs.clear();
        self.others.clear();
        for (index, j) in m.joints.iter().enumerate() {
            let (a, b) = m.ends(j, poses);
            let mut c = Coupling::default();
            if j.has_springs() {
                j.add_spring_derivative(winding(index), half, a, b, &mut c);
            }
            if let Some(impulses) = impulses(index) {
                j.add_wrench_derivative(impulses, 1.0, a, b, &mut c);
            }
            self.pairs.push((j.parent, j.child, c));
        }
        for s in &m.springs {
            let mut c = Coupling::default();
            s.add_derivative(half, 0.0, m.pose(poses, s.parent), &poses[s.child], &mut c);
            self.pairs.push((s.parent, s.child, c));
        }
        for (a, effort) in m.actuators.iter().zip(efforts) {
            let (parent, child) = m.driven(a);
            let mut c = Coupling::default();
            let ends = (m.pose(poses, parent), &poses[child]);
            a.add_derivative(half * effort, &m.joints, ends, &mut c);
            self.pairs.push((parent, child, c));
        }
    }

    /// Adds what constraints and potentials over several bodies exert: `factor` times the blocks by pairs of their bodies, by rows.
    pub fn add(&mut self, bodies: &[usize], factor: f64, blocks: &[Mat6]) {
        for (on, row) in bodies.iter().zip(blocks.chunks_exact(bodies.len())) {
            let each = bodies.iter().zip(row);
            (self.others).extend(each.map(|(by, block)| (*on, *by, block * factor)));
        }
    }

    /// Minus the change of the wrenches by the displacement.
    fn turn(&mut self) {
        let (d, out) = (&self.displacement, &mut self.wrench);
        out.fill(0.0);
        let mut take = |body: usize, wrench: Vec6| {
            let own = out[6 * body..6 * body + 6].iter_mut();
            own.zip(wrench.iter()).for_each(|(o, w)| *o -= w);
        };
        for (parent, child, c) in &self.pairs {
            let by = six(d, *child);
            take(*child, c.bb.0 * by);
            if let Some(parent) = *parent {
                let by_parent = six(d, parent);
                take(*child, c.ba.0 * by_parent);
                take(parent, c.aa.0 * by_parent + c.ab.0 * by);
            }
        }
        for (on, by, block) in &self.others {
            take(*on, block * six(d, *by));
        }
    }

    /// The fastest mode, with impulses of an interval `h`. `solve` gives the change of the bodies' velocities by wrenches on them, along
    /// what the joints leave free; six numbers a body each. `of` are the mechanism and its inverse inertias in the memory `w`.
    pub fn power_iteration<W>(
        &mut self,
        w: &mut W,
        of: impl Fn(&W) -> (&Mechanism, &[Mat3]),
        h: f64,
        solve: impl Fn(&mut W, &[f64], &mut [f64]),
    ) -> Option<Swing> {
        let (m, inverse) = of(w);
        let n = m.bodies.len();
        for v in [&mut self.displacement, &mut self.wrench, &mut self.velocity] {
            v.resize(6 * n, 0.0);
        }
        // as much energy in every freedom of every body
        for (b, body) in m.bodies.iter().enumerate() {
            for i in 0..6 {
                let size = if i < 3 {
                    body.mass
                } else {
                    1.0 / inverse[b][(i - 3, i - 3)]
                };
                self.displacement[6 * b + i] = spread(6 * b + i) / size.sqrt();
            }
        }
        let along = |m: &Mechanism, v: &[f64]| (0..n).map(|b| energy(m, v, b)).sum::<f64>();
        let (mut found, mut settled) = (None::<Swing>, 0);
        for iteration in 0..ITERATIONS {
            self.turn();
            solve(w, &self.wrench, &mut self.velocity);
            let (m, _) = of(w);
            let before = along(m, &self.displacement);
            let after = along(m, &self.velocity);
            if !(after.is_finite() && before > 0.0) {
                break;
            }
            if after == 0.0 {
                // what turns does no work along the joints: nothing swings
                found.get_or_insert(Swing::default());
                break;
            }
            let rate = ((after / before).sqrt() / h).sqrt();
            let (body, _) = most((0..n).map(|b| energy(m, &self.velocity, b)));
            let last = found.replace(Swing {
                rate,
                bound: rate,
                body,
                ..Swing::default()
            });
            let change = last.map_or(f64::INFINITY, |last| (rate - last.rate).abs());
            settled = if change < SETTLED * rate {
                settled + 1
            } else {
                0
            };
            if iteration >= UNSETTLED && settled >= IN_A_ROW {
                break;
            }
            let scale = 1.0 / after.sqrt();
            for (d, v) in self.displacement.iter_mut().zip(&self.velocity) {
                *d = scale * v;
            }
        }
        found
    }
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
        ..Swing::default()
    }
}
