//! Joint coordinates to poses and back, for trees and for loops.
//!
//! A spanning tree of joints, rooted in the world, gives the tree coordinates; the joints left over (chords) close
//! the loops. A tangent of the tree has one rate per free direction of its joints, in the sense of
//! [`Joint::direction_row`](super::Joint): components of the relative velocity in the parent's frame.

use super::attached::Law;
use super::coordinate::Freedom;
use super::joint::{Joint, Relative, Row, Vec6};
use super::rank::least_squares;
use super::{Mechanism, ModelError};
use crate::spatial::{Pose, Quat, Vec3, exp, left_log_jacobian, log};
use nalgebra::{DMatrix, DVector};

/// Loops are closed below this, m or rad, and further as long as Newton's method gains, by this factor an iteration.
const CLOSED: f64 = 1e-11;
const FALLS: f64 = 0.1;
/// Iterations at most: from afar they go half a radian or metre at a time, which keeps the branch that was guessed.
const CLOSINGS: usize = 100;
const STRIDE: f64 = 0.5;

/// A joint of the spanning tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeEdge {
    pub joint: usize,
    /// The child is nearer to the world than the parent.
    pub reversed: bool,
    /// First of the joint's coordinates among the tree's.
    pub first: usize,
}

/// The spanning tree: edges from the world outwards, and the constraining joints that close loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub edges: Vec<TreeEdge>,
    pub chords: Vec<usize>,
    pub coordinates: usize,
}

/// Linear and angular velocity (world, body frame) or displacement of a body.
pub type Motion = (Vec3, Vec3);

impl Tree {
    /// The tree of the joints that connect what the joints before them leave apart: those of free bodies first, unless another
    /// joint connects the body with the world, then the others in the order of the description, without those marked as closing. All others close loops. The edges are
    /// listed breadth first from the world. Returns the bodies left out, too.
    pub(crate) fn new(bodies: usize, joints: &[Joint]) -> (Self, Vec<usize>) {
        let ends = |j: &Joint| [j.parent.map_or(0, |p| p + 1), j.child + 1];
        let mut at: Vec<Vec<usize>> = vec![vec![]; bodies + 1];
        // a node of the group of connected nodes that each node belongs to
        let mut group: Vec<usize> = (0..=bodies).collect();
        let holds = |j: &Joint, body: usize| {
            j.parent.is_none() && j.child == body && !(j.frees || j.closes)
        };
        let is_free =
            |&i: &usize| joints[i].frees && !joints.iter().any(|j| holds(j, joints[i].child));
        let (free, others): (Vec<_>, Vec<_>) = (0..joints.len()).partition(is_free);
        for i in free.into_iter().chain(others) {
            let [a, b] = ends(&joints[i]).map(|n| root(&mut group, n));
            if a == b || joints[i].closes {
                continue;
            }
            group[b] = a;
            ends(&joints[i]).into_iter().for_each(|n| at[n].push(i));
        }
        // in the order of the description
        at.iter_mut().for_each(|own| own.sort_unstable());
        let mut reached = vec![false; bodies + 1];
        let mut used = vec![false; joints.len()];
        let mut tree = Self::default();
        let mut queue = std::collections::VecDeque::from([0]);
        reached[0] = true;
        while let Some(node) = queue.pop_front() {
            for &i in &at[node] {
                let [parent, child] = ends(&joints[i]);
                let reversed = parent != node;
                let next = if reversed { parent } else { child };
                if reached[next] {
                    continue;
                }
                (used[i], reached[next]) = (true, true);
                tree.edges.push(TreeEdge {
                    joint: i,
                    reversed,
                    first: tree.coordinates,
                });
                tree.coordinates += joints[i].directions.len();
                queue.push_back(next);
            }
        }
        tree.chords = (0..joints.len())
            .filter(|&i| !used[i] && joints[i].rows() > 0)
            .collect();
        let lost = (0..bodies).filter(|b| !reached[b + 1]).collect();
        (tree, lost)
    }
}

/// The node that names the group of connected nodes of `node`; halves the paths to it.
fn root(group: &mut [usize], mut node: usize) -> usize {
    while group[node] != node {
        group[node] = group[group[node]];
        node = group[node];
    }
    node
}

/// The scalar part of a relative rotation below which a joint with two turns counts as at half a turn: its two rates lose as many
/// digits, of the sixteen there are, as this has.
const HALF_TURN: f64 = 1e-6;

impl Joint {
    /// Has it two turns, and is at half a turn, where the third component of its rate does not follow from these?
    pub(crate) fn is_at_half_turn(&self, relative: &Quat) -> bool {
        let turns = self
            .directions
            .iter()
            .filter(|d| !matches!(d.freedom, Freedom::Slide));
        relative.w.abs() < HALF_TURN && turns.count() == 2
    }

    /// Relative position and rotation at the given coordinates.
    pub(crate) fn relative_at(&self, c: &[f64]) -> Relative {
        let (mut arm, mut turn) = (self.parent_anchor, Vec3::zeros());
        for (d, c) in self.directions.iter().zip(c) {
            match d.freedom {
                Freedom::Slide => arm += d.unit * *c,
                _ => turn += d.unit * *c,
            }
        }
        Relative { arm, r: exp(&turn) }
    }

    /// Relative velocity (slide, turn) in the parent's frame at the given rates. With two free rotations the third
    /// component of the turn follows from the constraint `e . vec(r) = 0`.
    pub(crate) fn relative_motion(&self, rel: &Relative, rates: &[f64]) -> Motion {
        let (mut slide, mut turn) = (Vec3::zeros(), Vec3::zeros());
        for (d, rate) in self.directions.iter().zip(rates) {
            match d.freedom {
                Freedom::Slide => slide += d.unit * *rate,
                _ => turn += d.unit * *rate,
            }
        }
        if self.kind.rows().1 == 1 {
            // e.dv = e.(r_w w + w x v)/2 = 0
            turn -= self.axis * (self.axis.dot(&turn.cross(&rel.r.imag())) / rel.r.w);
        }
        (slide, turn)
    }

    /// Rate of [`Joint::relative_motion`]'s turn, rates held, when the joint moves with `turn`.
    fn relative_motion_rate(&self, rel: &Relative, rates: &[f64], turn: &Vec3) -> Vec3 {
        if self.kind.rows().1 != 1 {
            return Vec3::zeros();
        }
        let (w, v) = (rel.r.w, rel.r.imag());
        let (dw, dv) = (-0.5 * turn.dot(&v), (turn * w + turn.cross(&v)) * 0.5);
        let (_, full) = self.relative_motion(rel, rates);
        let normal = full - self.axis * self.axis.dot(&full);
        let c = self.axis.dot(&normal.cross(&v)) / w;
        let dc = (self.axis.dot(&normal.cross(&dv)) - c * dw) / w;
        self.axis * -dc
    }

    /// Coordinates reached from `rel` (coordinates `c`) by the tangent `d`, to first order in `d`.
    fn coordinates_moved(&self, rel: &Relative, c: &mut [f64], d: &[f64]) {
        let (_, turn) = self.relative_motion(rel, d);
        let turns = self.kind.rows().1;
        let rho = match turns {
            0 => log(&(exp(&turn) * rel.r)),
            1 => log(&rel.r) + left_log_jacobian(&log(&rel.r)) * turn,
            _ => Vec3::zeros(),
        };
        for ((dir, c), d) in self.directions.iter().zip(c).zip(d) {
            match dir.freedom {
                Freedom::Turn => *c = dir.unit.dot(&rho),
                _ => *c += d,
            }
        }
    }
}

impl Mechanism {
    /// Pose of a body or of the world.
    #[inline(always)]
    pub fn pose<'a>(&self, poses: &'a [Pose], body: Option<usize>) -> &'a Pose {
        body.map_or(&crate::mechanism::WORLD, |b| &poses[b])
    }

    /// The two poses a joint connects.
    #[inline(always)]
    pub fn ends<'a>(&self, j: &Joint, poses: &'a [Pose]) -> (&'a Pose, &'a Pose) {
        (self.pose(poses, j.parent), &poses[j.child])
    }

    /// Poses of all bodies at the tree's coordinates.
    pub fn forward(&self, q: &[f64]) -> Vec<Pose> {
        let mut poses = vec![Pose::identity(); self.bodies.len()];
        for e in &self.tree.edges {
            let j = &self.joints[e.joint];
            let rel = j.relative_at(&q[e.first..e.first + j.directions.len()]);
            if let (true, Some(parent)) = (e.reversed, j.parent) {
                let b = &poses[j.child];
                let qa = Quat::new_normalize(
                    (b.q * j.offset.conjugate() * rel.r.conjugate()).into_inner(),
                );
                poses[parent] = Pose::new(b.point(&j.child_anchor) - qa * rel.arm, qa);
            } else {
                let a = self.pose(&poses, j.parent);
                let qb = Quat::new_normalize((a.q * rel.r * j.offset).into_inner());
                poses[j.child] = Pose::new(a.point(&rel.arm) - qb * j.child_anchor, qb);
            }
        }
        poses
    }

    /// The tree's coordinates at the given poses; angles on the branch nearest to `near`.
    pub fn tree_coordinates(&self, poses: &[Pose], near: &[f64]) -> Vec<f64> {
        let mut q = vec![0.0; self.tree.coordinates];
        for e in &self.tree.edges {
            let j = &self.joints[e.joint];
            let (a, b) = self.ends(j, poses);
            let rel = j.relative(a, b);
            for i in 0..j.directions.len() {
                q[e.first + i] = j.coordinate(i, &rel, near[e.first + i]);
            }
        }
        q
    }

    /// Velocities of all bodies at the tree's rates.
    pub fn velocities(&self, poses: &[Pose], rates: &[f64]) -> Vec<Motion> {
        let mut motion = vec![(Vec3::zeros(), Vec3::zeros()); self.bodies.len()];
        for e in &self.tree.edges {
            let j = &self.joints[e.joint];
            let (a, b) = self.ends(j, poses);
            let rel = j.relative(a, b);
            let (slide, turn) =
                j.relative_motion(&rel, &rates[e.first..e.first + j.directions.len()]);
            if let (true, Some(parent)) = (e.reversed, j.parent) {
                let (v, w) = motion[j.child];
                let wa = a.r.tr_mul(&(b.r * w)) - turn;
                let va = v + b.r * w.cross(&j.child_anchor) - a.r * (wa.cross(&rel.arm) + slide);
                motion[parent] = (va, wa);
            } else {
                let (v, w) = j.parent.map_or_else(Default::default, |p| motion[p]);
                let wb = b.r.tr_mul(&(a.r * (w + turn)));
                let vb = v + a.r * (w.cross(&rel.arm) + slide) - b.r * wb.cross(&j.child_anchor);
                motion[j.child] = (vb, wb);
            }
        }
        motion
    }

    /// The tree's rates at the given velocities.
    pub fn tree_rates(&self, poses: &[Pose], motion: &[Motion]) -> Vec<f64> {
        let mut rates = vec![0.0; self.tree.coordinates];
        for e in &self.tree.edges {
            let j = &self.joints[e.joint];
            for i in 0..j.directions.len() {
                rates[e.first + i] = self.rate(j, i, poses, motion);
            }
        }
        rates
    }

    /// Rate along direction `i` of a joint.
    pub fn rate(&self, j: &Joint, i: usize, poses: &[Pose], motion: &[Motion]) -> f64 {
        let (a, b) = self.ends(j, poses);
        let row = j.direction_row(i, a, b, &j.relative(a, b));
        row_times(j, &row, motion)
    }

    /// Basis of the tree's tangent: column i holds the bodies' displacements `(dx, dphi)`, six per body, at rate i.
    pub fn tree_basis(&self, poses: &[Pose]) -> DMatrix<f64> {
        let n = self.tree.coordinates;
        let mut basis = DMatrix::zeros(6 * self.bodies.len(), n);
        let mut rates = vec![0.0; n];
        for i in 0..n {
            rates[i] = 1.0;
            let motion = self.velocities(poses, &rates);
            basis.set_column(i, &stack(&motion));
            rates[i] = 0.0;
        }
        basis
    }

    /// `d velocities / d (tangent of the tree)` at constant rates, six rows per body.
    pub fn velocity_derivative(&self, poses: &[Pose], rates: &[f64]) -> DMatrix<f64> {
        let n = self.tree.coordinates;
        let motion = self.velocities(poses, rates);
        let mut out = DMatrix::zeros(6 * self.bodies.len(), n);
        let mut unit = vec![0.0; n];
        for i in 0..n {
            unit[i] = 1.0;
            let moved = self.velocities(poses, &unit);
            out.set_column(
                i,
                &stack(&self.velocity_change(poses, rates, &motion, &unit, &moved)),
            );
            unit[i] = 0.0;
        }
        out
    }

    /// Change of `motion = velocities(rates)` when the configuration moves by `moved = velocities(tangent)`.
    fn velocity_change(
        &self,
        poses: &[Pose],
        rates: &[f64],
        motion: &[Motion],
        tangent: &[f64],
        moved: &[Motion],
    ) -> Vec<Motion> {
        let zero = (Vec3::zeros(), Vec3::zeros());
        let mut change = vec![zero; self.bodies.len()];
        for e in &self.tree.edges {
            let j = &self.joints[e.joint];
            let (a, b) = self.ends(j, poses);
            let rel = j.relative(a, b);
            let own = e.first..e.first + j.directions.len();
            let (slide, turn) = j.relative_motion(&rel, &rates[own.clone()]);
            let (dslide, dturn) = j.relative_motion(&rel, &tangent[own.clone()]);
            let turn_rate = j.relative_motion_rate(&rel, &rates[own], &dturn);
            let of = |list: &[Motion], body: Option<usize>| body.map_or(zero, |b| list[b]);
            let ((_, wa), (_, pa)) = (of(motion, j.parent), of(moved, j.parent));
            let ((_, wb), (_, pb)) = (motion[j.child], moved[j.child]);
            if let (true, Some(parent)) = (e.reversed, j.parent) {
                let (dv, dw) = change[j.child];
                // w_a = R_a'R_b w_b - turn
                let seen = a.r.tr_mul(&(b.r * wb));
                let dwa = a.r.tr_mul(&(b.r * (dw + pb.cross(&wb)))) - pa.cross(&seen) - turn_rate;
                let at_b = wb.cross(&j.child_anchor);
                let at_a = wa.cross(&rel.arm) + slide;
                let dva = dv + b.r * (pb.cross(&at_b) + dw.cross(&j.child_anchor))
                    - a.r * (pa.cross(&at_a) + dwa.cross(&rel.arm) + wa.cross(&dslide));
                change[parent] = (dva, dwa);
            } else {
                let (dv, dw) = of(&change, j.parent);
                // w_b = R_b'R_a (w_a + turn)
                let dwb =
                    b.r.tr_mul(&(a.r * (dw + turn_rate + pa.cross(&(wa + turn))))) - pb.cross(&wb);
                let at_a = wa.cross(&rel.arm) + slide;
                let at_b = wb.cross(&j.child_anchor);
                let dvb = dv + a.r * (pa.cross(&at_a) + dw.cross(&rel.arm) + wa.cross(&dslide))
                    - b.r * (pb.cross(&at_b) + dwb.cross(&j.child_anchor));
                change[j.child] = (dvb, dwb);
            }
        }
        change
    }

    /// Rows of the joints that close loops and of the other holonomic constraints, by the tree's tangent:
    /// `G_chords * basis`.
    pub fn loop_jacobian(&self, poses: &[Pose], basis: &DMatrix<f64>) -> DMatrix<f64> {
        let mut out = DMatrix::zeros(self.loop_rows(), basis.ncols());
        let mut at = 0;
        for &c in &self.tree.chords {
            let j = &self.joints[c];
            let (a, b) = self.ends(j, poses);
            let rel = j.relative(a, b);
            for i in 0..j.rows() {
                let row = j.row(i, a, b, &rel);
                let mut line = basis.rows(6 * j.child, 6).tr_mul(&row.child());
                if let Some(p) = j.parent {
                    line += basis.rows(6 * p, 6).tr_mul(&row.parent());
                }
                out.set_row(at, &line.transpose());
                at += 1;
            }
        }
        self.write_loop_rows(poses, basis, at, &mut out);
        out
    }

    /// `G_c dV + dG_c V` of what closes loops, columns as those of `moved` (displacements) and `change` (of
    /// the velocities `motion`).
    pub(crate) fn loop_rate_derivative(
        &self,
        poses: &[Pose],
        motion: &[Motion],
        moved: &DMatrix<f64>,
        change: &DMatrix<f64>,
    ) -> DMatrix<f64> {
        let mut out = self.loop_jacobian(poses, change);
        let mut at = 0;
        let six = |b: usize| {
            let (v, w) = &motion[b];
            [v.x, v.y, v.z, w.x, w.y, w.z]
        };
        for &c in &self.tree.chords {
            let j = &self.joints[c];
            let (a, b) = self.ends(j, poses);
            let mut rows = [([0.0; 6], [0.0; 6]); 6];
            j.rate_derivative(
                a,
                b,
                &j.parent.map_or([0.0; 6], six),
                &six(j.child),
                &mut rows,
            );
            for (ra, rb) in &rows[..j.rows()] {
                let mut line = moved.rows(6 * j.child, 6).tr_mul(&Vec6::from(*rb));
                if let Some(p) = j.parent {
                    line += moved.rows(6 * p, 6).tr_mul(&Vec6::from(*ra));
                }
                let mut row = out.row_mut(at);
                row += line.transpose();
                at += 1;
            }
        }
        self.add_loop_turns(poses, motion, moved, at, &mut out);
        out
    }

    /// Values of the constraints that close loops, at the tree's coordinates and their poses.
    pub(crate) fn loop_residual(&self, poses: &[Pose], q: &[f64]) -> DVector<f64> {
        let mut g = vec![];
        for &c in &self.tree.chords {
            let j = &self.joints[c];
            let (a, b) = self.ends(j, poses);
            let first = g.len();
            g.resize(first + j.rows(), 0.0);
            j.constraint(&j.relative(a, b), &mut g[first..]);
        }
        for c in self.holonomic() {
            g.extend(self.closing_value(c, poses, q));
        }
        DVector::from_vec(g)
    }

    /// Moves the tree's coordinates by the tangent `d`, to first order.
    pub fn move_coordinates(&self, q: &mut [f64], d: &[f64]) {
        for e in &self.tree.edges {
            let j = &self.joints[e.joint];
            let own = e.first..e.first + j.directions.len();
            let rel = j.relative_at(&q[own.clone()]);
            j.coordinates_moved(&rel, &mut q[own.clone()], &d[own]);
        }
    }

    /// Closes the loops by Newton from the coordinates given, in steps of least size; coordinates marked `held` stay
    /// if the others suffice, else all give way. Error when a loop stays open.
    pub fn close(&self, q: &mut [f64], held: &[bool]) -> Result<Vec<Pose>, ModelError> {
        if !self.has_loops() {
            return Ok(self.forward(q));
        }
        let start = q.to_vec();
        if let Some(poses) = self.close_with(q, held) {
            return Ok(poses);
        }
        q.copy_from_slice(&start);
        if held.iter().any(|h| *h)
            && let Some(poses) = self.close_with(q, &vec![false; q.len()])
        {
            return Ok(poses);
        }
        Err(self.open_loop(q))
    }

    /// The same, but coordinates marked `held` never give way.
    pub(crate) fn close_held(&self, q: &mut [f64], held: &[bool]) -> Result<Vec<Pose>, ModelError> {
        if !self.has_loops() {
            return Ok(self.forward(q));
        }
        self.close_with(q, held).ok_or_else(|| self.open_loop(q))
    }

    /// What stays open most.
    fn open_loop(&self, q: &[f64]) -> ModelError {
        let poses = self.forward(q);
        let gap = |c: &usize| {
            let j = &self.joints[*c];
            let (a, b) = self.ends(j, &poses);
            j.violation(a, b)
        };
        let worst = self.tree.chords.iter().copied();
        let worst = worst.max_by(|a, b| gap(a).total_cmp(&gap(b)));
        let largest = |c| {
            let g = self.closing_value(c, &poses, q);
            g.iter().fold(0.0_f64, |m, g| m.max(g.abs()))
        };
        let attached = self.holonomic().map(|c| (largest(c), c));
        let attached = attached.max_by(|a, b| a.0.total_cmp(&b.0));
        let help =
            "check lengths and anchors, or give [initial] coordinates nearer to a closed position";
        let joint = worst.map(|c| (gap(&c), &self.joints[c].name));
        match (joint, attached) {
            (Some((open, name)), other) if other.is_none_or(|(g, _)| g <= open) => ModelError::new(
                ["joints", name],
                format!(
                    "the loop through joint `{name}` does not close: {open:.3e} m or rad remain open after Newton's method"
                ),
                help,
            ),
            (_, Some((open, c))) => {
                let ((table, word), name) = (c.kind(), &c.name);
                let help = match &c.law {
                    Law::Gear(_) => {
                        "check its ratio and offset, and the gears and joints that tie the same coordinates otherwise"
                    }
                    _ => {
                        "check it, or give [initial] coordinates nearer to a position that meets it"
                    }
                };
                ModelError::new(
                    [table, name],
                    format!(
                        "{word} `{name}` cannot be met: {open:.3e} m or rad remain after Newton's method"
                    ),
                    help,
                )
            }
            // there are loops only where there is one of the two
            (None | Some(_), None) => ModelError::new(["joints"], "the loops do not close", help),
        }
    }

    fn close_with(&self, q: &mut [f64], held: &[bool]) -> Option<Vec<Pose>> {
        let mut last = f64::INFINITY;
        for iteration in 0..CLOSINGS {
            let poses = self.forward(q);
            let g = self.loop_residual(&poses, q);
            let size = g.amax();
            // go on to the rounding floor: stop once below tolerance and no longer falling
            if size < CLOSED && (size == 0.0 || size > FALLS * last || iteration + 10 > CLOSINGS) {
                return Some(poses);
            }
            if q.is_empty() {
                // nothing can give way
                return (size < CLOSED).then_some(poses);
            }
            last = size;
            let mut jacobian = self.loop_jacobian(&poses, &self.tree_basis(&poses));
            for (mut column, held) in jacobian.column_iter_mut().zip(held) {
                if *held {
                    column.fill(0.0);
                }
            }
            let mut d = least_squares(jacobian, &-g)?;
            let largest = d.amax();
            if !largest.is_finite() {
                return None;
            }
            if largest > STRIDE {
                d *= STRIDE / largest;
            }
            self.move_coordinates(q, d.as_slice());
        }
        None
    }

    /// Largest violation of any joint, m or rad, and the joint.
    pub fn violation(&self, poses: &[Pose]) -> (f64, usize) {
        self.joints
            .iter()
            .enumerate()
            .map(|(i, j)| {
                let (a, b) = self.ends(j, poses);
                (j.violation(a, b), i)
            })
            .fold((0.0, 0), |m, v| if v.0 > m.0 { v } else { m })
    }
}

/// `row * V` over the two bodies of a joint.
pub(crate) fn row_times(j: &Joint, row: &Row, motion: &[Motion]) -> f64 {
    let (v, w) = &motion[j.child];
    let child = row.force.dot(v) + row.child_torque.dot(w);
    let parent = j.parent.map_or(0.0, |p| {
        let (v, w) = &motion[p];
        row.parent_torque.dot(w) - row.force.dot(v)
    });
    child + parent
}

/// Six numbers a body.
pub(crate) fn stack(motion: &[Motion]) -> DVector<f64> {
    DVector::from_iterator(
        6 * motion.len(),
        motion
            .iter()
            .flat_map(|(v, w)| [v.x, v.y, v.z, w.x, w.y, w.z]),
    )
}
