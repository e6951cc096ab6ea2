//! The step's equations, unsolved: those of the recursion, along the joints' free directions.
//!
//! Where a joint turns freely, its three torques are taken along axes that turn with what it holds: of the relative rotation `R` and
//! rows `r` along the axes of the parent, `R' r`. That changes no solution, and Newton's method much: of a thin rod that swings by
//! `d` about one axis a force across makes, to first order, a torque of the size of `d` about the axis that the rod lay along,
//! against the small inertia there; along the rod itself it makes none. (The arm of `tests/damped_arm.toml`, its dampers taken off: 7
//! iterations of [`direct`](crate::optimize::direct), which diverged with rows along the parent's axes.)

use super::Minimal;
use super::derivative::{Flow, Linear, short};
use super::work::Work;
use crate::contact::{IMPULSES, LAW, UNKNOWNS};
use crate::dynamics::{
    Column, ContactUnknowns, Equations, Inputs, KnotPoint, Outputs, StepError, Structure,
    UnsolvedStep,
};
use crate::integrator::parameter;
use crate::mechanism::Drive;
use crate::spatial::{Mat3, RotationLaw, Vec3};

impl Minimal {
    /// Everything at a knot and its unknowns.
    fn evaluate_unsolved(&self, at: &KnotPoint, w: &mut Work) -> Result<(), StepError> {
        parameter::apply(&self.mechanism, at.p, &mut w.parameters, &mut w.model)?;
        self.evaluate_at(&at.at, (at.x, at.u, at.y), &[], w)?;
        w.touching.memory.take_level();
        Ok(())
    }

    /// From a joint to the world, by their nodes.
    pub(super) fn path(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |n| self.nodes[*n].near)
    }

    /// Of every joint, the joints that its equations see: all on the way to what it holds, and to what springs and potentials tie to that.
    fn seen(&self) -> Vec<Vec<bool>> {
        let n = self.nodes.len();
        let mut bodies: Vec<Vec<bool>> = vec![vec![false; n]; n];
        for (b, seen) in bodies.iter_mut().enumerate() {
            self.path(b).for_each(|i| seen[i] = true);
        }
        let m = &self.mechanism;
        let springs = m.springs.iter();
        let ties = springs.map(|s| s.parent.into_iter().chain([s.child]).collect());
        let ties = ties.chain(m.potentials.iter().map(|p| p.bodies.clone()));
        for tied in ties.collect::<Vec<Vec<usize>>>() {
            for (a, b) in tied.iter().flat_map(|a| tied.iter().map(move |b| (*a, *b))) {
                let seen = &mut bodies[self.node_of[a]];
                self.path(self.node_of[b]).for_each(|i| seen[i] = true);
            }
        }
        let mut out = vec![vec![false; n]; n];
        for (b, own) in bodies.iter().enumerate() {
            for j in self.path(b) {
                for (to, seen) in out[j].iter_mut().zip(own) {
                    *to |= seen;
                }
            }
        }
        out
    }

    /// First of the turns of every joint that turns freely, and its relative rotation; axes of one that is reversed turn with what
    /// it holds.
    fn free_turns<'a>(&'a self, w: &'a Work) -> impl Iterator<Item = (usize, Mat3)> + use<'a> {
        let balls = self.nodes.iter().zip(&w.knot);
        let balls = balls.filter(|(node, _)| node.turns_freely());
        balls.map(|(node, k)| {
            (
                node.first + node.slides,
                *k.relative.to_rotation_matrix().matrix(),
            )
        })
    }

    /// The rows along the axes of parents, where some turn with what is held, in memory that is to be given back.
    fn rows_by_parents(&self, w: &mut Work, h: f64) -> Vec<f64> {
        let mut rows = std::mem::take(&mut w.rows);
        if self.nodes.iter().any(super::Node::turns_freely) {
            self.residual_rows(w, h, &mut rows);
        }
        rows
    }

    /// Turns rates of displacement behind the knot, `linear.rho[1]`, into adjoints of the unknowns; also of state and interval.
    pub(super) fn pull_unknowns(&self, w: &Work, l: &Linear, out: &mut Inputs, y: &mut [f64]) {
        let mut longer = 0.0;
        for (i, node) in self.nodes.iter().enumerate() {
            let rho = &l.rho[1][node.directions()];
            let turns = Vec3::from_fn(|r, _| rho.get(node.slides + r).copied().unwrap_or(0.0));
            let (rates, knot, by) = l.locals[i][1].ends_transposed(node.turns, &turns);
            longer += by;
            for (r, index) in node.directions().enumerate() {
                if let Some(r) = r.checked_sub(node.slides) {
                    y[index] += rates[r];
                    out.x[index] += knot[r];
                } else {
                    y[index] += rho[r];
                    longer += rho[r] * w.rates[index];
                }
            }
        }
        out.h += longer / l.at.h;
    }

    /// Rates of displacement behind the knot by changes of the unknowns, of the state and of the interval.
    fn push_unknowns(&self, w: &Work, l: &mut Linear, d: &Inputs, dy: &[f64]) {
        let longer = d.h / l.at.h;
        for (i, node) in self.nodes.iter().enumerate() {
            let of = |v: &[f64]| {
                let own = &v[node.directions()];
                Vec3::from_fn(|r, _| own.get(node.slides + r).copied().unwrap_or(0.0))
            };
            let ends = l.locals[i][1].ends(&of(dy), &of(&d.x), longer);
            for (r, index) in node.directions().enumerate() {
                l.rho[1][index] = match r.checked_sub(node.slides) {
                    Some(r) => ends[r],
                    None => dy[index] + w.rates[index] * longer,
                };
            }
        }
    }
}

impl Equations for Minimal {
    fn check_equations(&self) -> Result<(), String> {
        self.contacts.check_equations(&self.mechanism)
    }

    fn structure(&self, has_end: bool) -> Structure {
        let (d, n) = (Self::dims(self), self.freedoms);
        let mut columns: Vec<Vec<usize>> = vec![vec![]; Column::count(&d)];
        let seen = self.seen();
        for (i, node) in self.nodes.iter().enumerate() {
            let by = (0..self.nodes.len()).filter(|j| seen[*j][i]);
            let rows: Vec<usize> = by.flat_map(|j| self.nodes[j].directions()).collect();
            let next = || node.directions().map(|r| d.ny + r);
            for index in node.directions() {
                columns[index] = rows.iter().copied().chain(next()).collect();
                columns[n + index].clone_from(&rows);
                let unknown = &mut columns[Column::Unknown(index).place(&d)];
                unknown.clone_from(&rows);
                unknown.extend(next());
                unknown.push(d.ny + n + index);
            }
        }
        for (i, a) in self.mechanism.actuators.iter().enumerate() {
            columns[Column::Control(i).place(&d)] = match a.drive {
                Drive::Joint { joint, direction } => {
                    let node = &self.nodes[self.node_of_joint[joint]];
                    match node.turns_freely() {
                        true => node.directions().collect(),
                        false => vec![self.driven_direction(joint, direction)],
                    }
                }
                Drive::Wrench { body, .. } => {
                    let joints = self.path(self.node_of[body]);
                    joints.flat_map(|j| self.nodes[j].directions()).collect()
                }
            };
        }
        for i in 0..d.np {
            columns[Column::Parameter(i).place(&d)] = (0..d.ny).collect();
        }
        columns[Column::Before.place(&d)] = (0..n).collect();
        columns[Column::After.place(&d)] = (0..n).chain(d.ny..d.ny + n).collect();
        let first = d.ny - self.gears.count();
        for (row, tie) in (first..).zip(&self.gears.ties) {
            for index in [tie.follower, tie.leader] {
                columns[Column::Unknown(row).place(&d)].push(index);
                if has_end {
                    columns[Column::End(index).place(&d)].push(row);
                } else {
                    columns[index].push(row);
                    columns[Column::Unknown(index).place(&d)].push(row);
                }
            }
            if !has_end {
                columns[Column::After.place(&d)].push(row);
            }
        }
        for (i, (parent, child)) in self.contacts.pairs().enumerate() {
            let first = n + i * UNKNOWNS;
            let ends = parent.into_iter().chain([child]);
            let joints = ends.flat_map(|b| self.path(self.node_of[b]));
            let on: Vec<usize> = joints.flat_map(|j| self.nodes[j].directions()).collect();
            let rows = [first, first + 2, first + 3, first + 4];
            for &index in &on {
                columns[index].extend(rows);
                columns[Column::Unknown(index).place(&d)].extend(rows);
            }
            for (j, own) in LAW.into_iter().enumerate() {
                let column = &mut columns[Column::Unknown(first + j).place(&d)];
                column.extend(own.iter().map(|row| first + row));
                if IMPULSES.contains(&j) {
                    column.extend(&on);
                }
            }
            for times in [Column::Before, Column::After] {
                columns[times.place(&d)].extend(first..first + UNKNOWNS);
            }
        }
        for place in self.contacts.own_rows() {
            columns[Column::Unknown(place).place(&d)].push(place);
        }
        Structure::new(d.ny + d.nf, &columns)
    }

    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        self.move_state(x, d, out);
        out.iter().all(|v| v.is_finite())
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        self.change_between(x, to, out);
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        self.turn_change(x, to, true, adjoint);
    }

    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        self.contacts.places(&self.mechanism).collect()
    }

    fn set_central_path(&self, w: &mut Work, kappa: f64) {
        w.touching.memory.set_level(kappa);
    }

    fn center(&self, at: &UnsolvedStep, w: &mut Work, y: &mut [f64]) -> Result<(), StepError> {
        self.evaluate_unsolved(&at.start, w)?;
        let own = self.beyond_rates_mut(y).0;
        self.with_contacts(w, |contacts, view, memory| {
            contacts.center(view, memory, own)
        });
        Ok(())
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        (0..self.freedoms).map(|i| (self.freedoms + i, i)).collect()
    }

    fn domain(&self, h: f64) -> Vec<(usize, f64)> {
        // rates are twice the sines of half their turns
        let largest = |law: &RotationLaw, axis: &Vec3| match law {
            RotationLaw::Chord => law.planned(axis),
            _ => 2.0 * (0.5 * law.planned(axis)).sin(),
        };
        let mut out = vec![];
        for n in &self.nodes {
            let j = &self.mechanism.joints[n.joint];
            let law = &self.mechanism.bodies[n.body].rotation;
            let turns = j.directions.iter().filter(|d| d.freedom.turns());
            for (i, d) in (n.first + n.slides..).zip(turns) {
                let axis = match n.reversed {
                    true => d.unit,
                    false => j.offset_matrix.tr_mul(&d.unit),
                };
                out.push((i, largest(law, &axis) / h.abs()));
            }
        }
        out
    }

    fn residual(&self, at: &UnsolvedStep, w: &mut Work, r: &mut [f64]) -> Result<(), StepError> {
        self.evaluate_unsolved(&at.start, w)?;
        let h = at.start.at.h;
        self.leave_gears(w, h, at.end.as_ref(), self.beyond_rates_mut(r).1);
        self.residual_rows(w, h, &mut r[..self.freedoms]);
        for (first, turn) in self.free_turns(w) {
            let own = &mut r[first..first + 3];
            own.copy_from_slice(turn.tr_mul(&short(own)).as_slice());
        }
        let law = self.beyond_rates_mut(r).0;
        self.with_contacts(w, |contacts, view, memory| {
            contacts.leave_unsolved(view, memory, law)
        });
        Ok(())
    }

    fn advance(&self, at: &KnotPoint, w: &mut Work, next: &mut [f64]) -> Result<(), StepError> {
        parameter::apply(&self.mechanism, at.p, &mut w.parameters, &mut w.model)?;
        self.locate(at.x, w);
        w.rates.copy_from_slice(&at.y[..self.freedoms]);
        self.write_next(&w.model, w, at.x, at.at.h, next);
        match next.iter().all(|v| v.is_finite()) {
            true => Ok(()),
            false => {
                let failure = crate::dynamics::StepFailure::Domain;
                Err(self.failure(failure, &at.at, self.nodes[0].body, f64::NAN))
            }
        }
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        self.evaluate_unsolved(&at.start, w)?;
        let (d, n, h) = (Self::dims(self), self.freedoms, at.start.at.h);
        self.hold_contacts(w, &mut vec![0.0; self.contacts.unknowns()]);
        let torques = self.rows_by_parents(w, h);
        let mut l = Self::lend(w);
        let mut next = vec![0.0; d.nx];
        self.write_next(&w.model, w, at.start.x, h, &mut next);
        let (mut inputs, mut dy) = (d.inputs(), vec![0.0; d.ny]);
        let (mut product, mut ended) = (vec![0.0; d.ny + d.nf], vec![0.0; d.nf]);
        for (g, group) in structure.groups().iter().enumerate() {
            inputs.clear();
            dy.fill(0.0);
            ended.fill(0.0);
            for &column in group {
                match Column::at(&d, column) {
                    Column::State(i) => inputs.x[i] = 1.0,
                    Column::Control(i) => inputs.u[i] = 1.0,
                    Column::Parameter(i) => inputs.p[i] = 1.0,
                    Column::Unknown(i) => dy[i] = 1.0,
                    Column::Before => inputs.h_prev = 1.0,
                    Column::After => inputs.h = 1.0,
                    // of gears alone
                    Column::End(i) => ended[i] = 1.0,
                }
            }
            self.push_unknowns(w, &mut l, &inputs, &dy);
            let (rates, (contacts, impulses)) = (&dy[..n], self.beyond_rates(&dy));
            let (rows, ends) = product.split_at_mut(d.ny);
            let (law, gears) = self.beyond_rates_mut(rows);
            self.push_given(w, &mut l, &inputs, contacts, law);
            let end = (at.end.as_ref(), &ended[..]);
            self.push_gears(w, &mut l, (&inputs, impulses), end, gears);
            rows[..n].copy_from_slice(&l.rows);
            for (first, turn) in self.free_turns(w) {
                let own = first..first + 3;
                let turned = short(&inputs.x[own.clone()]).cross(&short(&torques[own.clone()]));
                let by = turn.tr_mul(&(short(&rows[own.clone()]) - turned));
                rows[own].copy_from_slice(by.as_slice());
            }
            for (i, rho) in l.rho[1].iter().enumerate() {
                ends[i] = inputs.x[i] + h * rho;
            }
            ends[n..].copy_from_slice(rates);
            if let Some(end) = at.end {
                self.turn_change(end.from, &next, false, ends);
            }
            structure.take(g, &product, values);
        }
        (w.linear, w.rows) = (Some(l), torques);
        Ok(())
    }

    fn pull_equations(
        &self,
        at: &UnsolvedStep,
        adjoint: &Outputs,
        w: &mut Work,
        out: &mut Inputs,
        y: &mut [f64],
        end: &mut [f64],
    ) -> Result<(), StepError> {
        self.evaluate_unsolved(&at.start, w)?;
        let (n, h) = (self.freedoms, at.start.at.h);
        let mut next = adjoint.x.clone();
        if let Some(end) = at.end {
            let mut to = vec![0.0; at.start.x.len()];
            self.write_next(&w.model, w, at.start.x, h, &mut to);
            self.turn_change(end.from, &to, true, &mut next);
        }
        end.fill(0.0);
        out.clear();
        y[..n].copy_from_slice(&next[n..]);
        y[n..].fill(0.0);
        let torques = self.rows_by_parents(w, h);
        let mut l = Self::lend(w);
        let (law, gears) = self.beyond_rates(&adjoint.y);
        l.lambda.copy_from_slice(&adjoint.y[..n]);
        for (first, turn) in self.free_turns(w) {
            let own = &mut l.lambda[first..first + 3];
            own.copy_from_slice((turn * short(own)).as_slice());
        }
        l.flow.fill(Flow::ZERO);
        let (contacts, impulses) = self.beyond_rates_mut(y);
        self.pull_given(w, &mut l, law, out, contacts);
        self.pull_gears(w, &mut l, (gears, out), (at.end.as_ref(), end), impulses);
        for (i, by) in next[..n].iter().enumerate() {
            l.rho[1][i] += h * by;
            out.x[i] += by;
        }
        for (first, _) in self.free_turns(w) {
            let own = first..first + 3;
            let by = short(&l.lambda[own.clone()]).cross(&short(&torques[own.clone()]));
            (out.x[own].iter_mut().zip(&by)).for_each(|(to, by)| *to += by);
        }
        self.pull_unknowns(w, &l, out, y);
        (w.linear, w.rows) = (Some(l), torques);
        Ok(())
    }
}
