//! The state at the start as a function of the parameters, and its derivative.
//!
//! Joint coordinates and rates are given for the mechanism as built, loops closed. Where a parameter moves an anchor, or
//! sets a gear, as many independent coordinates of the spanning tree as there are degrees of freedom stay as they are;
//! the others follow so that the loops close again. Of their rates as many stay as the velocity constraints leave free.
//! With `z` the configuration, `V = N r` the velocities, `J` and `K` the rows of the loops and of all that binds
//! velocities by the coordinates and rates that follow, `B` those rows by `V`, and `Z dp`, `W dp` what the parameters do
//! to `z` and `V` at held coordinates and rates,
//!
//! ```text
//! J dq = -(G Z + dg/dp) dp,            dz = N dq + Z dp
//! K dr = -(B dV' + dB V) ,             dV = N dr + dV',    dV' = (dN r) dq + W dp
//! ```
//!
//! Of a start in motion the velocities are those of the interval `h` before it, over which the coordinates that stay were
//! displaced by `h r`: with `z` the configuration now and `y` the one before,
//!
//! ```text
//! v = (x_z - x_y)/h,   (s, h/2 w) = q_y^-1 q_z
//! ```

use super::{Maximal, Work};
use crate::dynamics::{Start, StepError, StepFailure};
use crate::integrator::failure::{starts_at_half_turn, turn_bounds};
use crate::mechanism::{
    Earlier, Field, Mechanism, ModelError, Motion, RANK, decompose, least_squares, stacked,
};
use crate::spatial::{Pose, Vec3, log};
use nalgebra::{DMatrix, DVector};

impl Maximal {
    /// Coordinates of the spanning tree that stay when the loops close again, and the rates that stay when the velocity
    /// constraints are met again: those preferred first.
    pub(super) fn independent(
        m: &Mechanism,
        q: &[f64],
        freedoms: usize,
        preferred: &[bool],
    ) -> (Vec<bool>, Vec<bool>) {
        let (loops, laws) = (m.has_loops(), m.has_laws());
        if !(loops || laws) {
            return (vec![true; q.len()], vec![true; q.len()]);
        }
        let poses = m.forward(q);
        let tree = m.tree_basis(&poses);
        let basis = m.closed_basis(&poses, &tree, freedoms, None);
        let held = most_moved(basis.clone(), freedoms, preferred);
        if !laws {
            return (held.clone(), held);
        }
        // of the freedoms those that the velocity constraints leave
        let Some(svd) = decompose(m.velocity_jacobian(&poses, &tree) * &basis) else {
            return (held.clone(), held);
        };
        let floor = RANK * svd.singular_values.max();
        let (mut left, mut count) = (basis.clone(), freedoms);
        let rows = svd.v_t.row_iter().zip(&svd.singular_values);
        for (row, _) in rows.filter(|(_, s)| **s > floor) {
            left -= &basis * row.transpose() * row;
            count -= 1;
        }
        (held, most_moved(left, count, preferred))
    }

    /// The state at coordinates and rates of the tree; see the module.
    pub(super) fn initial_at(
        &self,
        start: &Start,
        w: &Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        let own = self.closed(&w.model, start)?;
        let winding = self.winding_at(&w.model, &own.poses, &own.q);
        let motion = match self.before(&w.model, start)? {
            None => w.model.velocities(&own.poses, &own.rates),
            Some((_, old)) => self.interval_before(&old, &own.poses, start.before)?,
        };
        x.copy_from_slice(&self.state(&own.poses, &motion, &winding));
        Ok(())
    }

    /// The tree and the poses an interval before a start in motion.
    fn before(
        &self,
        m: &Mechanism,
        start: &Start,
    ) -> Result<Option<(Earlier, Vec<Pose>)>, StepError> {
        if start.before == 0.0 {
            return Ok(None);
        }
        self.check_start(start)?;
        let moved: Vec<f64> = start.rates.iter().map(|r| start.before * r).collect();
        let old = m.earlier(start.coordinates, &moved);
        let old = old.ok_or_else(|| StepError {
            failure: StepFailure::Domain,
            element: "the start".into(),
            time: 0.0,
            residual: f64::NAN,
            message: "a joint turned too far in the interval before; start slower, or with a shorter interval".into(),
        })?;
        let poses = self.closed(m, &Start::at_rates(&old.q, start.rates))?.poses;
        Ok(Some((old, poses)))
    }

    /// The velocities that lead from poses to others in an interval.
    fn interval_before(
        &self,
        old: &[Pose],
        new: &[Pose],
        h: f64,
    ) -> Result<Vec<Motion>, StepError> {
        let each = old.iter().zip(new).enumerate();
        each.map(|(b, (old, new))| {
            let turn = old.q.inverse() * new.q;
            let law = &self.mechanism.bodies[b].rotation;
            let w = law.velocity(&turn, h, None);
            if !law.contains(&w, h) {
                return Err(self.turned_too_far(b, log(&turn).norm(), h));
            }
            Ok(((new.x - old.x) / h, w))
        })
        .collect()
    }

    /// Derivatives of the state at a start in motion, of those of its poses and of the poses an interval before it; `by_h`
    /// are those of the velocities by the interval at given poses.
    fn through_interval(
        &self,
        (new, old): (&DMatrix<f64>, &DMatrix<f64>),
        motion: &[Motion],
        h: f64,
        by_h: Option<usize>,
    ) -> Result<DMatrix<f64>, StepError> {
        let n = new.nrows();
        let mut v = DMatrix::zeros(n, new.ncols());
        for (b, (speed, omega)) in motion.iter().enumerate() {
            let law = &self.mechanism.bodies[b].rotation;
            let s = law.scalar(omega, h);
            let there = law.increment(omega, h, s);
            // dphi_y = -K(-h) dw + R(w h) dphi_z - w/s dh is what turns the pose before
            let inverse = law.jacobian(omega, -h, s).try_inverse();
            let inverse = inverse.ok_or_else(|| self.turned_too_far(b, (omega * h).norm(), h))?;
            for c in 0..new.ncols() {
                let at = |m: &DMatrix<f64>, i: usize| Vec3::from_fn(|j, _| m[(6 * b + i + j, c)]);
                let mut dv = (at(new, 0) - at(old, 0)) / h;
                let mut turned = at(old, 3) - there * at(new, 3);
                if by_h == Some(c) {
                    dv -= speed / h;
                    turned += law.end_by_interval(omega, -h, s, 1.0);
                }
                let dw = inverse * turned;
                for i in 0..3 {
                    v[(6 * b + i, c)] = dv[i];
                    v[(6 * b + 3 + i, c)] = dw[i];
                }
            }
        }
        Ok(stacked(new.clone(), &v))
    }

    fn turned_too_far(&self, body: usize, turn: f64, h: f64) -> StepError {
        StepError {
            failure: StepFailure::Domain,
            element: self.mechanism.bodies[body].name.clone(),
            time: 0.0,
            residual: turn,
            message: format!(
                "turned by {turn:.3} rad in the interval before the start; {}; start slower, or with a shorter interval",
                turn_bounds(&self.mechanism.bodies[body].rotation, h)
            ),
        }
    }

    fn check_start(&self, start: &Start) -> Result<(), StepError> {
        let ids = self.mechanism.tree_ids();
        let (q, rates, n) = (start.coordinates.len(), start.rates.len(), ids.len());
        if (q, rates) != (n, n) {
            let message = format!("{q} coordinates and {rates} rates; give {n} of each");
            return Err(StepError::of_size("the start", message));
        }
        let mut coordinates = start.coordinates;
        for of_joint in ids.chunk_by(|a, b| a.0 == b.0) {
            let (own, others) = coordinates.split_at(of_joint.len());
            let j = &self.mechanism.joints[of_joint[0].0];
            if j.is_at_half_turn(&j.relative_at(own).r) {
                return Err(starts_at_half_turn(&j.name));
            }
            coordinates = others;
        }
        Ok(())
    }

    fn closed(&self, m: &Mechanism, start: &Start) -> Result<Closed, StepError> {
        self.check_start(start)?;
        let mut q = start.coordinates.to_vec();
        let poses = m.close_held(&mut q, &self.held).map_err(|e| open(&e))?;
        let mut rates = start.rates.to_vec();
        if m.has_loops() || m.has_laws() {
            let jacobian = m.rate_jacobian(&poses, &m.tree_basis(&poses));
            let error = &jacobian * DVector::from_column_slice(&rates);
            let follow = follow(
                jacobian,
                DMatrix::from_column_slice(error.len(), 1, error.as_slice()),
                &self.held_rates,
            );
            rates
                .iter_mut()
                .zip(follow.iter())
                .for_each(|(r, d)| *r += d);
        }
        Ok(Closed { q, rates, poses })
    }

    /// `d state / dp` in the free chart.
    pub(super) fn initial_jacobian(
        &self,
        start: &Start,
        w: &Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let now = self.at_rates_by_parameters(start, w)?;
        let Some((tree, old)) = self.before(&w.model, start)? else {
            return Ok(now);
        };
        let (h, n) = (start.before, 6 * self.body_count());
        let then = self.at_rates_by_parameters(&Start::at_rates(&tree.q, start.rates), w)?;
        let new = self.closed(&w.model, start)?.poses;
        let motion = self.interval_before(&old, &new, h)?;
        let poses = [now, then].map(|m| m.rows(0, n).into_owned());
        self.through_interval((&poses[0], &poses[1]), &motion, h, None)
    }

    /// The same where the rates are those of the instant.
    fn at_rates_by_parameters(&self, start: &Start, w: &Work) -> Result<DMatrix<f64>, StepError> {
        self.check_start(start)?;
        let (m, dims) = (&w.model, self.dims());
        let moving = |f: &Field| {
            use Field::{ChildAnchor, GearOffset, GearRatio, ParentAnchor};
            matches!(
                f,
                ParentAnchor(..) | ChildAnchor(..) | GearRatio(_) | GearOffset(_)
            )
        };
        if !m.parameters.iter().flat_map(|p| &p.fields).any(moving) {
            return Ok(DMatrix::zeros(dims.nf, dims.np));
        }
        let start = self.closed(m, start)?;
        let motion = m.velocities(&start.poses, &start.rates);
        let n = 6 * self.body_count();
        let (mut z, mut v) = (DMatrix::zeros(n, dims.np), DMatrix::zeros(n, dims.np));
        for (i, p) in m.parameters.iter().enumerate() {
            for field in &p.fields {
                m.move_anchor(
                    *field,
                    &start.poses,
                    &motion,
                    (
                        z.column_mut(i).as_mut_slice(),
                        v.column_mut(i).as_mut_slice(),
                    ),
                );
            }
        }
        if m.has_loops() || m.has_laws() {
            let poses = &start.poses;
            let tree = m.tree_basis(poses);
            let mut gap = m.loop_jacobian(poses, &z);
            let mut tear = DMatrix::zeros(gap.nrows(), dims.np);
            for (i, p) in m.parameters.iter().enumerate() {
                for field in &p.fields {
                    m.open_loops(
                        *field,
                        (&start.q, poses),
                        &motion,
                        (
                            gap.column_mut(i).as_mut_slice(),
                            tear.column_mut(i).as_mut_slice(),
                        ),
                    );
                }
            }
            // zero where nothing loops
            let dq = follow(m.loop_jacobian(poses, &tree), gap, &self.held);
            z += &tree * &dq;
            v += m.velocity_derivative(poses, &start.rates) * dq;
            tear += m.loop_rate_derivative(poses, &motion, &z, &v);
            let tear = stacked(tear, &m.law_rate_derivative(poses, &motion, &z, &v));
            v += &tree * follow(m.rate_jacobian(poses, &tree), tear, &self.held_rates);
        }
        Ok(stacked(z, &v))
    }

    /// `d state / d(q, rates, h)` in the free chart: as [`Maximal::initial_jacobian`], what is given moving instead of the
    /// parameters. What follows from the others moves nothing.
    pub(super) fn initial_by_start(
        &self,
        start: &Start,
        w: &Work,
    ) -> Result<DMatrix<f64>, StepError> {
        self.check_start(start)?;
        let (n, count) = (6 * self.body_count(), start.rates.len());
        let by_tangent = self.at_rates_by_start(start, w)?;
        let tangent = w.model.tangent_by_coordinates(start.coordinates);
        let tangent = tangent.ok_or_else(|| StepError {
            failure: StepFailure::Domain,
            element: "the start".into(),
            time: 0.0,
            residual: f64::NAN,
            message: "a joint is at a whole turn, where its rotation vector has no derivative; start elsewhere".into(),
        })?;
        let mut now = by_tangent.resize_horizontally(2 * count + 1, 0.0);
        let by_q = now.columns(0, count) * &tangent;
        now.columns_mut(0, count).copy_from(&by_q);
        let Some((tree, old)) = self.before(&w.model, start)? else {
            return Ok(now);
        };
        let h = start.before;
        let then = self.at_rates_by_start(&Start::at_rates(&tree.q, start.rates), w)?;
        let then = then.view((0, 0), (n, count));
        let by_moved = then * &tree.by_moved;
        let mut then =
            (then * (&tree.by_tangent * tangent)).resize_horizontally(2 * count + 1, 0.0);
        then.columns_mut(count, count).copy_from(&(&by_moved * h));
        then.set_column(
            2 * count,
            &(by_moved * DVector::from_column_slice(start.rates)),
        );
        let mut now = now.rows(0, n).into_owned();
        // poses at the start do not know how they were reached
        now.columns_mut(count, count + 1).fill(0.0);
        let new = self.closed(&w.model, start)?.poses;
        let motion = self.interval_before(&old, &new, h)?;
        self.through_interval((&now, &then), &motion, h, Some(2 * count))
    }

    /// `d state / d(tangent of the tree, rates)` where the rates are those of the instant.
    fn at_rates_by_start(&self, start: &Start, w: &Work) -> Result<DMatrix<f64>, StepError> {
        self.check_start(start)?;
        let (q, rates) = (start.coordinates, start.rates);
        let m = &w.model;
        let start = self.closed(m, start)?;
        let poses = &start.poses;
        let tree = m.tree_basis(poses);
        let (mut dq, mut dr) = (
            DMatrix::identity(q.len(), q.len()),
            DMatrix::identity(rates.len(), rates.len()),
        );
        let bound = m.has_loops() || m.has_laws();
        if bound {
            let loops = m.loop_jacobian(poses, &tree);
            dq += follow(loops.clone(), loops, &self.held);
            let all = m.rate_jacobian(poses, &tree);
            dr += follow(all.clone(), all, &self.held_rates);
        }
        let z = &tree * &dq;
        let mut v = m.velocity_derivative(poses, &start.rates) * dq;
        if bound {
            let motion = m.velocities(poses, &start.rates);
            let tear = m.loop_rate_derivative(poses, &motion, &z, &v);
            let tear = stacked(tear, &m.law_rate_derivative(poses, &motion, &z, &v));
            v += &tree * follow(m.rate_jacobian(poses, &tree), tear, &self.held_rates);
        }
        let by_rates = tree * dr;
        let (n, by) = (z.nrows(), z.ncols());
        let mut out = stacked(z, &v).resize_horizontally(by + rates.len(), 0.0);
        out.view_mut((n, by), by_rates.shape()).copy_from(&by_rates);
        Ok(out)
    }
}

/// A row of an orthonormal basis shorter than this is rounding.
const UNMOVED: f64 = 1e-12;

/// A coordinate that is preferred is independent of those picked before if they leave it this part of its motion.
const INDEPENDENT: f64 = 1e-3;

/// Picks `count` rows of a basis, one by one the one that the freedoms left over move most; those preferred first.
fn most_moved(mut left: DMatrix<f64>, count: usize, preferred: &[bool]) -> Vec<bool> {
    let whole: Vec<f64> = left.row_iter().map(|r| r.norm()).collect();
    let mut held = vec![false; left.nrows()];
    for _ in 0..count {
        let size = |i: &usize| left.row(*i).norm();
        let wished = |i: &usize| {
            let is = preferred.get(*i).copied().unwrap_or(false);
            is && size(i) > INDEPENDENT * whole[*i]
        };
        let largest = |a: &usize, b: &usize| size(a).total_cmp(&size(b));
        let best = (0..left.nrows()).filter(wished).max_by(largest);
        let best = best.or_else(|| (0..left.nrows()).max_by(largest));
        let Some((best, row)) = best.and_then(|b| Some((b, left.row(b).try_normalize(UNMOVED)?)))
        else {
            break;
        };
        left -= &left * row.transpose() * &row;
        held[best] = true;
    }
    held
}

/// The tree's tangents that make up for `error`, those of the coordinates held being zero.
fn follow(mut jacobian: DMatrix<f64>, error: DMatrix<f64>, held: &[bool]) -> DMatrix<f64> {
    let n = jacobian.ncols();
    for (mut column, held) in jacobian.column_iter_mut().zip(held) {
        if *held {
            column.fill(0.0);
        }
    }
    let zero = DMatrix::zeros(n, error.ncols());
    least_squares(jacobian, &-error).unwrap_or(zero)
}

/// Coordinates, rates and configuration, loops closed.
struct Closed {
    q: Vec<f64>,
    rates: Vec<f64>,
    poses: Vec<Pose>,
}

fn open(e: &ModelError) -> StepError {
    StepError {
        failure: StepFailure::NotConverged,
        element: e.path.join("."),
        time: 0.0,
        residual: f64::NAN,
        message: format!("{}; {}", e.message, e.help),
    }
}

impl Mechanism {
    /// What an anchor of a joint of the tree does to configuration and velocities at held coordinates and rates: all
    /// that hangs on the joint moves by `R_a e` (parent's anchor) or `-R_b e` (child's).
    fn move_anchor(
        &self,
        field: Field,
        poses: &[Pose],
        motion: &[Motion],
        (z, v): (&mut [f64], &mut [f64]),
    ) {
        let (joint, k, parents) = match field {
            Field::ParentAnchor(j, k) => (j, k, true),
            Field::ChildAnchor(j, k) => (j, k, false),
            _ => return,
        };
        let Some(edge) = self.tree.edges.iter().position(|e| e.joint == joint) else {
            return;
        };
        let (j, reversed) = (&self.joints[joint], self.tree.edges[edge].reversed);
        let e = Vec3::from_fn(|i, _| f64::from(u8::from(i == k)));
        let on =
            |body: usize, e: Vec3| (poses[body].r * e, poses[body].r * motion[body].1.cross(&e));
        let (shift, speed) = match (parents, j.parent) {
            (true, Some(p)) => on(p, e),
            (true, None) => (e, Vec3::zeros()),
            (false, _) => on(j.child, -e),
        };
        let sign = if reversed { -1.0 } else { 1.0 };
        for body in self.behind(edge) {
            for i in 0..3 {
                z[6 * body + i] += sign * shift[i];
                v[6 * body + i] += sign * speed[i];
            }
        }
    }

    /// Bodies that hang on an edge of the tree.
    fn behind(&self, edge: usize) -> Vec<usize> {
        let outer = |e: &crate::mechanism::TreeEdge| {
            let j = &self.joints[e.joint];
            if e.reversed {
                (Some(j.child), j.parent)
            } else {
                (j.parent, Some(j.child))
            }
        };
        let mut out: Vec<usize> = outer(&self.tree.edges[edge]).1.into_iter().collect();
        // edges are listed from the world outwards
        for e in &self.tree.edges[edge + 1..] {
            if let (Some(inner), Some(next)) = outer(e)
                && out.contains(&inner)
            {
                out.push(next);
            }
        }
        out
    }

    /// Adds what an anchor of a joint that closes a loop, or a gear, does to the loops' values and to their rates.
    fn open_loops(
        &self,
        field: Field,
        (q, poses): (&[f64], &[Pose]),
        motion: &[Motion],
        (gap, tear): (&mut [f64], &mut [f64]),
    ) {
        let anchor = match field {
            Field::ParentAnchor(j, k) => Some((j, k, true)),
            Field::ChildAnchor(j, k) => Some((j, k, false)),
            _ => None,
        };
        let mut first = 0;
        for &c in &self.tree.chords {
            let j = &self.joints[c];
            if let Some((_, k, parents)) = anchor.filter(|(joint, ..)| *joint == c) {
                let (a, b) = self.ends(j, poses);
                let e = Vec3::from_fn(|i, _| f64::from(u8::from(i == k)));
                for (i, row) in j.constrained[..j.translation_rows].iter().enumerate() {
                    if parents {
                        gap[first + i] -= row[k];
                    } else {
                        gap[first + i] += row.dot(&j.arm_by_child_anchor(&e, a, b));
                        tear[first + i] += j.rate_by_child_anchor(row, &e, (a, b), |b| motion[b].1);
                    }
                }
            }
            first += j.rows();
        }
        let constraints = self.constraints.iter().enumerate();
        for (index, c) in constraints.filter(|(_, c)| c.is_holonomic()) {
            match field {
                Field::GearRatio(g) if g == index => {
                    let leader = self.gear(g).leader;
                    let (j, i) = (&self.joints[leader.0], leader.1);
                    let (a, b) = self.ends(j, poses);
                    gap[first] -= j.coordinate(i, &j.relative(a, b), self.branch(leader, q));
                    tear[first] -= self.rate(j, i, poses, motion);
                }
                Field::GearOffset(g) if g == index => gap[first] -= 1.0,
                _ => {}
            }
            first += c.rows;
        }
    }
}
