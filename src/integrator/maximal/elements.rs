//! Gears and users' constraints and potentials in the step: what each stage of the step adds for them.
//!
//! A holonomic constraint enters like a joint: impulses along `G(z)'`, rows `g(z+) = 0`, at a knot `G(z) v = 0`. A
//! velocity constraint has impulses along `A(z)'` and rows `1/2 (A(z) + A(z+)) v+ = 0`, at a knot `A(z) v = 0`. A
//! potential adds minus its gradient at `z` to the forces. Mechanisms without them pay for one comparison a stage.

use super::{Maximal, Work};
use crate::block::{Node, Role, Symbolic};
use crate::dynamics::{Inputs, Stage};
use crate::mechanism::{AttachedConstraint, CoordinateId, Mat6, Mechanism, Rows, Vec6};
use crate::spatial::{Mat3, Pose};

/// Where a constraint's blocks and rows lie.
#[derive(Clone, Debug)]
struct Slots {
    /// First row in the unknowns.
    offset: usize,
    diagonal: usize,
    /// (body by constraint, constraint by body) of each of its bodies.
    bodies: Vec<(usize, usize)>,
    /// First of its six-vectors, one per row and body.
    first: usize,
    /// First of its 6 x 6 blocks.
    block: usize,
}

/// The elements of a mechanism in the matrix of its step.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    constraints: Vec<Slots>,
    /// First 6 x 6 block of each potential.
    potentials: Vec<usize>,
    /// `G M^-1 G'` of every row of the constraints as built; 0 where velocities are constrained.
    compliances: Vec<f64>,
    sizes: Sizes,
}

/// What the memory must hold.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    vectors: usize,
    blocks: usize,
    bodies: usize,
    rows: usize,
}

/// What is computed for the elements.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Rows at the knot, and at its successor as last assembled.
    rows: Vec<Vec6>,
    rows_next: Vec<Vec6>,
    /// `d(A V)/dz` at the knot and at its successor, where it is needed.
    turn: Vec<Vec6>,
    turn_next: Vec<Vec6>,
    /// Derivatives of the impulses' wrenches and of the potentials' gradients by the configuration.
    pub(super) hessian: Vec<Mat6>,
    /// Scratch of one element.
    poses: Vec<Pose>,
    unit: Vec<f64>,
    blocks: Vec<Mat6>,
    gradient: Vec<Vec6>,
}

/// Adds a node for every constraint that is no joint, with edges to its bodies; returns the nodes.
///
/// They count as anchored, which only makes them wait: rows over part of the bodies may be dependent where the rows
/// over all of them are not, so a constraint goes when all its bodies have gone.
pub(super) fn add_nodes(
    m: &Mechanism,
    nodes: &mut Vec<Node>,
    edges: &mut Vec<(usize, usize)>,
) -> Vec<usize> {
    m.constraints
        .iter()
        .map(|c| {
            let node = nodes.len();
            edges.extend(c.bodies.iter().map(|b| (*b, node)));
            nodes.push(Node {
                size: c.rows,
                role: Role::Constraint { anchored: true },
            });
            node
        })
        .collect()
}

impl Layout {
    /// The blocks of the nodes of [`add_nodes`].
    pub(super) fn new(m: &Mechanism, symbolic: &Symbolic, nodes: &[usize]) -> Self {
        let slot = |r, c| {
            symbolic
                .slot(r, c)
                .expect("an edge of the graph has its block")
        };
        let mut out = Self::default();
        let s = &mut out.sizes;
        for (c, &node) in m.constraints.iter().zip(nodes) {
            let n = c.bodies.len();
            out.constraints.push(Slots {
                offset: symbolic.offset(node),
                diagonal: slot(node, node),
                bodies: c
                    .bodies
                    .iter()
                    .map(|&b| (slot(b, node), slot(node, b)))
                    .collect(),
                first: s.vectors,
                block: s.blocks,
            });
            s.vectors += c.rows * n;
            s.blocks += n * n;
            s.rows = s.rows.max(c.rows);
            s.bodies = s.bodies.max(n);
        }
        for p in &m.potentials {
            let n = p.bodies.len();
            out.potentials.push(s.blocks);
            s.blocks += n * n;
            s.bodies = s.bodies.max(n);
        }
        out
    }

    /// Are there none?
    pub(super) fn is_empty(&self) -> bool {
        self.constraints.is_empty() && self.potentials.is_empty()
    }

    pub(super) fn memory(&self) -> Memory {
        let s = &self.sizes;
        let vectors = || vec![Vec6::zeros(); s.vectors];
        Memory {
            rows: vectors(),
            rows_next: vectors(),
            turn: vectors(),
            turn_next: vectors(),
            hessian: vec![Mat6::zeros(); s.blocks],
            poses: vec![Pose::identity(); s.bodies],
            unit: vec![0.0; s.rows],
            blocks: vec![Mat6::zeros(); s.bodies * s.bodies],
            gradient: vec![Vec6::zeros(); s.bodies],
        }
    }

    /// The bodies of every element, and the rows of its constraint.
    pub(super) fn ties(&self, m: &Mechanism) -> Vec<(Vec<usize>, std::ops::Range<usize>)> {
        let constraints = self.slots(m);
        let constraints = constraints.map(|(c, s)| (c.bodies.clone(), s.offset..s.offset + c.rows));
        let potentials = m.potentials.iter().map(|p| (p.bodies.clone(), 0..0));
        constraints.chain(potentials).collect()
    }

    /// The compliances at a configuration.
    pub(super) fn set_compliances(&mut self, m: &Mechanism, inverse: &[Mat3], poses: &[Pose]) {
        self.compliances.clear();
        let mut own = vec![Pose::identity(); self.sizes.bodies];
        let mut rows = vec![Vec6::zeros(); self.sizes.vectors];
        for (c, s) in m.constraints.iter().zip(&self.constraints) {
            let rows = &mut rows[s.vectors(c)];
            let poses = c.gather(poses, &mut own);
            c.jacobian(&m.joints, poses, Rows::Impulse, rows);
            let each = rows.chunks_exact(c.bodies.len());
            let softens = f64::from(u8::from(c.is_holonomic()));
            self.compliances
                .extend(each.map(|row| softens * compliance(m, inverse, &c.bodies, row)));
        }
    }

    /// Every constraint with the first of its rows among those of all.
    fn counted<'a>(
        &'a self,
        m: &'a Mechanism,
    ) -> impl Iterator<Item = (&'a AttachedConstraint, &'a Slots, usize)> {
        let mut row = 0;
        self.slots(m).map(move |(c, s)| {
            row += c.rows;
            (c, s, row - c.rows)
        })
    }

    /// First row of a constraint in the unknowns.
    pub(super) fn offset(&self, constraint: usize) -> usize {
        self.constraints[constraint].offset
    }

    /// Constraint of a row of the unknowns.
    pub(super) fn constraint_of(&self, row: usize) -> Option<usize> {
        self.constraints.iter().rposition(|s| s.offset <= row)
    }

    fn slots<'a>(
        &'a self,
        m: &'a Mechanism,
    ) -> impl Iterator<Item = (&'a AttachedConstraint, &'a Slots)> {
        m.constraints.iter().zip(&self.constraints)
    }
}

impl Slots {
    fn vectors(&self, c: &AttachedConstraint) -> std::ops::Range<usize> {
        self.first..self.first + c.rows * c.bodies.len()
    }

    fn blocks(&self, c: &AttachedConstraint) -> std::ops::Range<usize> {
        self.block..self.block + c.bodies.len() * c.bodies.len()
    }
}

#[inline]
fn six(v: &[f64], body: usize) -> Vec6 {
    Vec6::from_column_slice(&v[6 * body..6 * body + 6])
}

#[inline]
fn add_six(v: &mut [f64], body: usize, d: &Vec6) {
    for (v, d) in v[6 * body..6 * body + 6].iter_mut().zip(d.iter()) {
        *v += d;
    }
}

/// Product of a row over the bodies of an element with six numbers of each.
fn times(bodies: &[usize], row: &[Vec6], v: &[f64]) -> f64 {
    bodies
        .iter()
        .zip(row)
        .map(|(b, r)| r.dot(&six(v, *b)))
        .sum()
}

/// `row M^-1 row'` of a row over the bodies of an element.
fn compliance(m: &Mechanism, inverse: &[Mat3], bodies: &[usize], row: &[Vec6]) -> f64 {
    let each = bodies.iter().zip(row).map(|(b, r)| {
        let (f, t) = (r.fixed_rows::<3>(0), r.fixed_rows::<3>(3));
        f.norm_squared() / m.bodies[*b].mass + t.dot(&(inverse[*b] * t))
    });
    each.sum()
}

/// Adds `scale` times a row over the bodies of an element.
fn add_row(bodies: &[usize], row: &[Vec6], scale: f64, v: &mut [f64]) {
    for (b, r) in bodies.iter().zip(row) {
        add_six(v, *b, &(r * scale));
    }
}

impl Maximal {
    /// Rows at the knot; forces of the potentials.
    #[inline]
    pub(super) fn prepare_elements(&self, w: &mut Work) {
        if self.elements.is_empty() {
            return;
        }
        let (m, e) = (&w.model, &mut w.elements);
        for (c, s) in self.elements.slots(m) {
            let poses = c.gather(&w.knot.poses, &mut e.poses);
            c.jacobian(&m.joints, poses, Rows::Impulse, &mut e.rows[s.vectors(c)]);
        }
        for p in &m.potentials {
            let n = p.bodies.len();
            for (own, b) in e.poses.iter_mut().zip(&p.bodies) {
                *own = w.knot.poses[*b];
            }
            p.gradient(&e.poses[..n], &mut e.gradient[..n]);
            add_row(&p.bodies, &e.gradient[..n], -1.0, &mut w.knot.force);
        }
    }

    /// Impulses and rows at the trial unknowns; returns the size of the numbers the rows are computed from.
    #[inline]
    pub(super) fn evaluate_elements(&self, w: &mut Work) -> f64 {
        let mut scale = 0.0_f64;
        if self.elements.is_empty() {
            return scale;
        }
        let (m, e, steps, y) = (
            &w.model,
            &mut w.elements,
            w.knot.at.steps(),
            &w.newton.trial,
        );
        let softness = w.matrix.softness * w.knot.at.scale();
        for (c, s, first) in self.elements.counted(m) {
            let (n, own) = (c.bodies.len(), s.vectors(c));
            for (row, lambda) in e.rows[own.clone()].chunks_exact(n).zip(&y[s.offset..]) {
                add_row(&c.bodies, row, -lambda, &mut w.newton.residual);
                scale = scale.max(lambda.abs());
            }
            let out = &mut w.newton.residual[s.offset..s.offset + c.rows];
            let given = y[s.offset..]
                .iter()
                .zip(&self.elements.compliances[first..]);
            let given = given.map(|(lambda, k)| softness * k * lambda);
            if steps && c.is_holonomic() {
                let poses = c.gather(&w.end.poses, &mut e.poses);
                let near =
                    |(j, _): CoordinateId| self.winding_of[j].map_or(0.0, |i| w.knot.winding[i]);
                c.value(&m.joints, poses, near, out);
                out.iter_mut().zip(given).for_each(|(out, g)| *out += g);
                scale = scale.max(c.size(near));
                scale = poses.iter().fold(scale, |s, p| s.max(p.x.amax()));
                continue;
            }
            for ((row, out), given) in e.rows[own.clone()]
                .chunks_exact(n)
                .zip(&mut *out)
                .zip(given)
            {
                *out = times(&c.bodies, row, y) + given;
                scale = scale.max(out.abs());
            }
            if steps {
                let poses = c.gather(&w.end.poses, &mut e.poses);
                let next = &mut e.rows_next[own];
                c.jacobian(&m.joints, poses, Rows::Value, next);
                for (row, out) in next.chunks_exact(n).zip(out) {
                    *out = 0.5 * (*out + times(&c.bodies, row, y));
                }
            }
        }
        scale
    }

    /// How rows at the end of the interval depend on the configuration there, at the unknowns last evaluated.
    #[inline]
    pub(super) fn linearize_elements(&self, w: &mut Work) {
        if self.elements.is_empty() || !w.knot.at.steps() {
            return;
        }
        let (m, e, y) = (&w.model, &mut w.elements, &w.newton.trial);
        for (c, s) in self.elements.slots(m) {
            let poses = c.gather(&w.end.poses, &mut e.poses);
            if c.is_holonomic() {
                let next = &mut e.rows_next[s.vectors(c)];
                c.jacobian(&m.joints, poses, Rows::Value, next);
            } else {
                c.turn(
                    (&m.joints, poses),
                    |b| six(y, b),
                    (&mut e.unit, &mut e.blocks),
                    &mut e.turn_next[s.vectors(c)],
                );
            }
        }
    }

    /// Columns and rows of the matrix at the unknowns last evaluated.
    #[inline]
    pub(super) fn assemble_elements(&self, w: &mut Work) {
        if self.elements.is_empty() {
            return;
        }
        self.linearize_elements(w);
        let (m, e, y) = (&w.model, &w.elements, &w.newton.trial);
        let (h, steps) = (w.knot.at.h(), w.knot.at.steps());
        for (c, s) in self.elements.slots(m) {
            let (n, own) = (c.bodies.len(), s.vectors(c));
            for i in 0..c.rows {
                for (k, (&b, &(column, row))) in c.bodies.iter().zip(&s.bodies).enumerate() {
                    let at = own.start + i * n + k;
                    let here = &e.rows[at];
                    // by the configuration at the end of the interval, carried to the velocities
                    let carried = |by: &Vec6| {
                        let (x, phi) = (by.fixed_rows::<3>(0), by.fixed_rows::<3>(3));
                        let omega = six(y, b).fixed_rows::<3>(3).into_owned();
                        let phi = phi.into_owned();
                        let law = &m.bodies[b].rotation;
                        let t = law.jacobian_transposed(&omega, h, w.end.scalar[b], &phi);
                        Vec6::new(h * x[0], h * x[1], h * x[2], t.x, t.y, t.z)
                    };
                    let by_velocity = if !steps {
                        *here
                    } else if c.is_holonomic() {
                        carried(&e.rows_next[at])
                    } else {
                        (here + e.rows_next[at] + carried(&e.turn_next[at])) * 0.5
                    };
                    for j in 0..6 {
                        w.matrix.values[column + 6 * i + j] = -here[j];
                        w.matrix.values[row + c.rows * j + i] = by_velocity[j];
                    }
                }
            }
        }
    }

    /// Adds the regularization to the constraints' diagonals: as for joints for holonomic rows, as in the read-out for
    /// those of velocities.
    #[inline]
    pub(super) fn regularize_elements(&self, w: &mut Work) {
        let factor = w.matrix.regularization;
        let inverse: &[Mat3] = &w.inverse_inertia;
        for (c, s) in self.elements.slots(&w.model) {
            let n = c.bodies.len();
            let h = match w.knot.at.stage {
                Stage::Step(h) if c.is_holonomic() => h,
                _ => 1.0,
            };
            for (i, row) in w.elements.rows[s.vectors(c)].chunks_exact(n).enumerate() {
                let own = compliance(&w.model, inverse, &c.bodies, row);
                w.matrix.values[s.diagonal + i * (c.rows + 1)] += factor * h * own;
            }
        }
    }

    /// Adds what the joints' giving way adds to the diagonals.
    pub(super) fn soften_elements(&self, m: &Mechanism, factor: f64, values: &mut [f64]) {
        for (c, s, first) in self.elements.counted(m) {
            let own = &self.elements.compliances[first..first + c.rows];
            for (i, k) in own.iter().enumerate() {
                values[s.diagonal + i * (c.rows + 1)] += factor * k;
            }
        }
    }

    /// Adds the momenta of impulses `lambda` to the bodies'; returns the sum of `d^2 lambda^2`.
    pub(super) fn element_impulses(&self, w: &Work, lambda: &[f64], momenta: &mut [f64]) -> f64 {
        let (m, mut sum) = (&w.model, 0.0);
        for (c, s) in self.elements.slots(m) {
            let rows = w.elements.rows[s.vectors(c)].chunks_exact(c.bodies.len());
            for (row, l) in rows.zip(&lambda[s.offset..]) {
                sum += compliance(m, &w.inverse_inertia, &c.bodies, row) * l * l;
                add_row(&c.bodies, row, *l, momenta);
            }
        }
        sum
    }

    /// What the regularization takes of impulses, into their rows.
    pub(super) fn regularized_elements(&self, w: &Work, out: &mut [f64]) {
        let (m, inverse) = (&w.model, &w.inverse_inertia);
        for (c, s) in self.elements.slots(m) {
            let h = if c.is_holonomic() {
                w.knot.at.scale()
            } else {
                1.0
            };
            let rows = w.elements.rows[s.vectors(c)].chunks_exact(c.bodies.len());
            for (i, row) in rows.enumerate() {
                let own = compliance(m, inverse, &c.bodies, row);
                out[s.offset + i] =
                    w.matrix.regularization * h * own * w.newton.trial[s.offset + i];
            }
        }
    }

    /// Derivatives by the configuration at the solution last assembled, for pushes and pulls.
    #[inline]
    pub(super) fn turn_elements(&self, w: &mut Work) {
        if self.elements.is_empty() {
            return;
        }
        let (m, e, y) = (&w.model, &mut w.elements, &w.newton.trial);
        for (c, s) in self.elements.slots(m) {
            let poses = c.gather(&w.knot.poses, &mut e.poses);
            let lambda = &y[s.offset..s.offset + c.rows];
            c.hessian(&m.joints, poses, lambda, &mut e.hessian[s.blocks(c)]);
            if !w.knot.at.steps() || !c.is_holonomic() {
                c.turn(
                    (&m.joints, poses),
                    |b| six(y, b),
                    (&mut e.unit, &mut e.blocks),
                    &mut e.turn[s.vectors(c)],
                );
            }
        }
        for (p, &first) in m.potentials.iter().zip(&self.elements.potentials) {
            let n = p.bodies.len();
            for (own, b) in e.poses.iter_mut().zip(&p.bodies) {
                *own = w.knot.poses[*b];
            }
            p.hessian(&e.poses[..n], &mut e.hessian[first..first + n * n]);
        }
    }

    /// Bodies, blocks and factor of every wrench that turns with the configuration: `dr/dz` is the factor times the
    /// blocks.
    pub(super) fn turning<'a>(
        &'a self,
        m: &'a Mechanism,
        half: f64,
    ) -> impl Iterator<Item = (&'a [usize], usize, f64)> {
        let constraints = self
            .elements
            .slots(m)
            .map(|(c, s)| (&c.bodies[..], s.block, -1.0));
        let potentials = m.potentials.iter().zip(&self.elements.potentials);
        constraints.chain(potentials.map(move |(p, s)| (&p.bodies[..], *s, half)))
    }

    /// Adds `dr` of the elements by displacements `dx` at the knot and `zplus` at its successor.
    #[inline]
    pub(super) fn push_elements(
        &self,
        w: &Work,
        (dx, dh): (&[f64], f64),
        zplus: &[f64],
        r: &mut [f64],
    ) {
        if self.elements.is_empty() {
            return;
        }
        let (m, e, steps) = (&w.model, &w.elements, w.knot.at.steps());
        for (bodies, first, factor) in self.turning(m, w.knot.at.half()) {
            let n = bodies.len();
            for (i, on) in bodies.iter().enumerate() {
                let row = &e.hessian[first + i * n..first + (i + 1) * n];
                let sum: Vec6 = row.iter().zip(bodies).map(|(b, by)| b * six(dx, *by)).sum();
                add_six(r, *on, &(sum * factor));
            }
        }
        for (c, s, first) in self.elements.counted(m) {
            let n = c.bodies.len();
            for i in 0..c.rows {
                let own = s.first + i * n..s.first + (i + 1) * n;
                let by = |rows: &[Vec6], v: &[f64]| times(&c.bodies, &rows[own.clone()], v);
                r[s.offset + i] = if !steps {
                    by(&e.turn, dx)
                } else if c.is_holonomic() {
                    by(&e.rows_next, zplus) + dh * self.given_by_element(w, s, first, i)
                } else {
                    0.5 * (by(&e.turn, dx) + by(&e.turn_next, zplus))
                };
            }
        }
    }

    /// The transpose of [`Maximal::push_elements`]: adds to the adjoints of the inputs and of `z+`.
    #[inline]
    pub(super) fn pull_elements(&self, w: &Work, mu: &[f64], zplus: &mut [f64], out: &mut Inputs) {
        if self.elements.is_empty() {
            return;
        }
        let (m, e, steps) = (&w.model, &w.elements, w.knot.at.steps());
        for (bodies, first, factor) in self.turning(m, w.knot.at.half()) {
            let n = bodies.len();
            for (k, by) in bodies.iter().enumerate() {
                let on = bodies.iter().enumerate();
                let sum: Vec6 = on
                    .map(|(i, on)| e.hessian[first + i * n + k].tr_mul(&six(mu, *on)))
                    .sum();
                add_six(&mut out.x, *by, &(sum * factor));
            }
        }
        for (c, s, first) in self.elements.counted(m) {
            let n = c.bodies.len();
            for i in 0..c.rows {
                let own = s.first + i * n..s.first + (i + 1) * n;
                let mu = mu[s.offset + i];
                if steps && w.matrix.softness != 0.0 {
                    out.h += mu * self.given_by_element(w, s, first, i);
                }
                if !steps {
                    add_row(&c.bodies, &e.turn[own], mu, &mut out.x);
                } else if c.is_holonomic() {
                    add_row(&c.bodies, &e.rows_next[own], mu, zplus);
                } else {
                    add_row(&c.bodies, &e.turn[own.clone()], 0.5 * mu, &mut out.x);
                    add_row(&c.bodies, &e.turn_next[own], 0.5 * mu, zplus);
                }
            }
        }
    }

    /// How far a row that gives way does so by the interval.
    fn given_by_element(&self, w: &Work, s: &Slots, first: usize, i: usize) -> f64 {
        w.matrix.softness * self.elements.compliances[first + i] * w.newton.trial[s.offset + i]
    }

    /// Adds to the adjoints of the unknowns of a step what reaches them by the rows, not through `z+`.
    #[inline]
    pub(super) fn pull_element_trial(&self, w: &Work, mu: &[f64], y: &mut [f64]) {
        if self.elements.is_empty() {
            return;
        }
        let e = &w.elements;
        for (c, s) in self.elements.slots(&w.model) {
            let n = c.bodies.len();
            for i in 0..c.rows {
                let own = s.first + i * n..s.first + (i + 1) * n;
                y[s.offset + i] -= times(&c.bodies, &e.rows[own.clone()], mu);
                if !c.is_holonomic() {
                    let half = 0.5 * mu[s.offset + i];
                    add_row(&c.bodies, &e.rows[own.clone()], half, y);
                    add_row(&c.bodies, &e.rows_next[own], half, y);
                }
            }
        }
    }
}
