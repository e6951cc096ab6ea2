//! Systems made of a mechanism: what everything above the step knows of them, whatever integrator moves them.
//!
//! An integrator gives the [`KnotData`] (poses, velocities at it to second order, reactions) and pulls adjoints of
//! these back to its own state; quantities, the energy balance, recordings and figures are made from that.

use super::external::ExternalWork;
use super::reading::{ReadFrom, Reading, reading};
use crate::contact::{KnotWork, Loads};
use crate::dynamics::{
    Dynamics, Frame, Inputs, Knot, KnotPoint, QuantityId, StepError, StepFailure,
};
use crate::mechanism::{
    Adjoint, Body, CoordinateId, KnotData, Mechanism, Mobility, ModelError, Motion, Needs,
    Quantity, Rows, Unheld, Vec6, vec3,
};
use crate::spatial::{Pose, Vec3};
use nalgebra::DMatrix;

/// A system made of a mechanism.
pub trait Mechanical: Dynamics + Sized {
    /// What moves, as it was built.
    fn mechanism(&self) -> &Mechanism;

    /// How it can move.
    fn mobility(&self) -> Mobility;

    /// What can be observed.
    fn outputs(&self) -> &[Quantity];

    /// Declares what can be observed; costs and constraints refer to these by their places, [`QuantityId`].
    #[must_use]
    fn with_outputs(self, outputs: Vec<Quantity>) -> Self;

    /// Prefers tree coordinates, and their rates, that should be independent at the start: where loops close, the others
    /// follow. As many as can be are; `q` are coordinates at which the loops close.
    #[must_use]
    fn holding(self, q: &[f64], preferred: &[bool]) -> Self;

    /// The same integrator with the same settings and outputs of another mechanism, whose loops close near the tree
    /// coordinates `q`.
    ///
    /// # Errors
    /// When the loops do not close there, or the mechanism has what the integrator does not offer.
    fn rebuilt(&self, mechanism: Mechanism, q: &[f64]) -> Result<Self, ModelError>;

    /// The mechanism with the parameters `p`.
    ///
    /// # Errors
    /// When the parameters have no meaning.
    fn mechanism_with<'a>(
        &'a self,
        p: &[f64],
        w: &'a mut Self::Work,
    ) -> Result<&'a Mechanism, StepError>;

    /// The state at the start: tree coordinates `q`, which are moved onto the loops, and rates of the tree, of which
    /// the part that keeps the loops closed and obeys the velocity constraints is taken (nearest by kinetic energy).
    /// `held` marks the coordinates that should stay as they are.
    ///
    /// # Errors
    /// When the loops do not close.
    fn start(&self, q: &[f64], rates: &[f64], held: &[bool]) -> Result<Vec<f64>, ModelError>;

    /// The state after an interval `h` that leads from the state `x` to the poses at tree coordinates `q`.
    fn state_after(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64>;

    /// Poses of all bodies.
    fn poses(&self, x: &[f64]) -> Vec<Pose>;

    /// Velocities of the interval before the knot, of length `h`, or of the instant where there is none.
    fn interval_velocities(&self, x: &[f64], h: f64) -> Vec<Motion>;

    /// Share of a step's interval that the state's velocities are those of, at its end; 0 where they are those of the instant.
    fn last_share(&self) -> f64 {
        1.0
    }

    /// The longest part, of those that each step is made of, by its share of the step. [`Mechanical::swing`] gives rates times that share.
    fn longest_share(&self) -> f64 {
        1.0
    }

    /// Unwound angle of a joint that has one, else 0.
    fn winding_angle(&self, x: &[f64], joint: usize) -> f64;

    /// Evaluates at a knot, into `w`, what quantities need beside poses and controls.
    ///
    /// # Errors
    /// When the state is none of the system, or its velocities cannot be read.
    fn evaluate_knot(
        &self,
        seen: &KnotPoint,
        needs: Needs,
        w: &mut Self::Work,
    ) -> Result<(), StepError>;

    /// The knot as [`Mechanical::evaluate_knot`] left it in `w`.
    fn knot_data<'a>(&'a self, seen: &KnotPoint<'a>, w: &'a Self::Work) -> KnotData<'a>;

    /// The quantity at a knot, where up to three numbers of the state alone tell it; by default none is. The rest of the state, and
    /// parameters, are not looked at, so that they need not be those of the system.
    fn reading(&self, seen: &KnotPoint, quantity: &Quantity) -> Option<Reading> {
        let _ = (seen, quantity);
        None
    }

    /// Of a quantity that is a joint's rate at the knot: its place in [`Adjoint::rates`], and its value at the knot evaluated last; by
    /// default none is.
    fn joint_rate(&self, quantity: &Quantity, w: &Self::Work) -> Option<(usize, f64)> {
        let _ = (quantity, w);
        None
    }

    /// Memory for adjoints of [`KnotData`].
    fn adjoint<'a>(&self, w: &'a mut Self::Work) -> &'a mut Adjoint;

    /// Adds to the adjoints of state, control, parameters, intervals and unknowns those of [`Mechanical::knot_data`].
    fn pull_knot(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        adjoint: &Adjoint,
        out: &mut Inputs,
        y: &mut [f64],
    );

    /// Work of contacts, limits and joint friction at a knot, after the velocities there were read; `None` of a mechanism without them.
    /// At the start of a trajectory `loads` is empty; it then keeps which of them are loaded. Of what the
    /// memory holds of the read-out, only the data of the knot stay.
    ///
    /// # Errors
    /// When the joints' rows at the knot cannot be solved for.
    fn contact_work(
        &self,
        seen: &KnotPoint,
        loads: &mut Loads,
        w: &mut Self::Work,
    ) -> Result<Option<KnotWork>, StepError>;

    /// Adds the work done until the knot, and reads it.
    ///
    /// # Errors
    /// When the velocities at the knot cannot be read.
    fn work_at(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        external: &mut ExternalWork,
    ) -> Result<(), StepError> {
        let all = Needs {
            velocities: true,
            past: true,
            reactions: true,
        };
        self.evaluate_knot(seen, all, w)?;
        let work = self.contact_work(seen, &mut external.loads, w)?;
        external.holds |= self.holds_controls();
        external.add_knot(&self.knot_data(seen, w), seen.u, work);
        Ok(())
    }

    /// Adds the work done within the step from the knot, where the step has knots of its own; by default it has none.
    ///
    /// # Errors
    /// As [`Mechanical::work_at`].
    fn work_within(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        external: &mut ExternalWork,
    ) -> Result<(), StepError> {
        let _ = (seen, w, external);
        Ok(())
    }

    /// Did joints give way in the step from a knot, `seen` with its unknowns, since loops are singular there? Then they are
    /// open at its end, more than the tolerance lets them.
    ///
    /// # Errors
    /// As the step.
    fn gave_way(&self, seen: &KnotPoint, w: &mut Self::Work) -> Result<bool, StepError>;

    /// Does a control act, unchanged, until the next knot?
    fn holds_controls(&self) -> bool {
        false
    }

    /// Where in a state the control of the knot before is, if it is part of it.
    fn previous_controls(&self) -> Option<std::ops::Range<usize>> {
        None
    }

    /// In how many parts the step of these unknowns was made.
    fn parts_after(&self, y: &[f64]) -> usize {
        let _ = y;
        1
    }

    /// How many constraint impulses [`Mechanical::write_tensions`] writes. They are stored after the unknowns of a step, and
    /// [`Mechanical::swing`] reads them there. By default there are none.
    fn tensions(&self) -> usize {
        0
    }

    /// Writes these for the step made last, from the knot `at`, which the memory holds.
    fn write_tensions(&self, at: &Knot, w: &mut Self::Work, out: &mut [f64]) {
        let _ = (at, w, out);
    }

    /// Limits the iterations of a solve with contacts from here on, where it could be divided instead; `usize::MAX` leaves it to the
    /// options of contacts. By default nothing is limited.
    fn limit_iterations(&self, w: &mut Self::Work, most: usize) {
        let _ = (w, most);
    }

    /// What swings fastest about a knot, under springs and under the forces that hold joints together; `seen.y` are the unknowns
    /// of the step before, followed by its [tensions](Mechanical::tensions) if they are known. They are empty if there is no step before.
    /// The forces of that step acted for `weight` (s), half of the sum of the two intervals that meet at its start. Returns a bound if
    /// that is at most `above` (rad/s), else an estimate. Explicit forces are stable while
    /// `h omega < 2`.
    ///
    /// # Errors
    /// When the state is none of the system.
    fn swing(
        &self,
        seen: &KnotPoint,
        weight: f64,
        above: f64,
        w: &mut Self::Work,
    ) -> Result<Swing, StepError>;

    /// Adds how the step made last, which the memory holds, changed the velocities at its knot: of each body, to the place in `out` that
    /// `groups` gives it. Returns false if that is not known, as by default.
    fn add_velocity_changes(
        &self,
        w: &Self::Work,
        groups: &[usize],
        out: &mut [VelocityChange],
    ) -> bool {
        let _ = (w, groups, out);
        false
    }

    /// Where the joint chart at a state is that of tangents of closed loops, the changes of the tree's coordinates by those
    /// of the chart: at the knot and at the knot before. `None` where the chart is that of the tree's coordinates itself.
    fn tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]>;

    /// Where loops close: the tree's coordinates, by their places, of which and of whose rates the joint chart is made; by default it is
    /// made of numbers along the loops, of unit kinetic energy.
    fn chart_coordinates(&self) -> Option<&[usize]> {
        None
    }

    /// Asks for the residuals of the adjoint solves to be computed from here on, which costs a product each.
    fn certify(&self, w: &mut Self::Work);

    /// Largest relative residual `|K' mu - rhs| / |rhs|` of the adjoint solves since [`Mechanical::certify`].
    fn linear_residual(&self, w: &Self::Work) -> Option<f64>;

    /// Size of the step's matrix.
    fn matrix(&self) -> MatrixSize;

    /// Velocities at a knot, second order, with the control that acts there.
    ///
    /// # Errors
    /// When the state is not finite or its constraints are singular.
    fn knot_velocities(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
    ) -> Result<Vec<Motion>, StepError> {
        let needs = Needs {
            velocities: true,
            ..Needs::default()
        };
        self.evaluate_knot(seen, needs, w)?;
        Ok(motions(self.knot_data(seen, w).velocities))
    }

    /// Value of a joint coordinate of the state, angles unwound.
    fn coordinate(&self, x: &[f64], joint: usize, direction: usize) -> f64 {
        self.coordinate_at(x, &self.poses(x), joint, direction)
    }

    /// The same where the poses at the state are known.
    fn coordinate_at(&self, x: &[f64], poses: &[Pose], joint: usize, direction: usize) -> f64 {
        let m = self.mechanism();
        let j = &m.joints[joint];
        let (a, b) = m.ends(j, poses);
        let winding = self.winding_angle(x, joint);
        j.coordinate(direction, &j.relative(a, b), winding)
    }

    /// All coordinates of the spanning tree.
    fn tree_coordinates(&self, x: &[f64]) -> Vec<f64> {
        let (ids, poses) = (self.mechanism().tree_ids().into_iter(), self.poses(x));
        ids.map(|(j, i)| self.coordinate_at(x, &poses, j, i))
            .collect()
    }

    /// Largest violation of a joint, a gear or a user's holonomic constraint at a state, m or rad.
    fn violation(&self, x: &[f64]) -> f64 {
        let (m, poses) = (self.mechanism(), self.poses(x));
        let all = m.constraints.iter().enumerate();
        all.filter(|(_, c)| c.is_holonomic())
            .map(|(i, _)| self.gap(i, (&poses, 0.0), x))
            .fold(m.violation(&poses).0, f64::max)
    }

    /// How far a gear or a user's constraint is from being met at a state, its largest row: `|g(z)|`, m or rad; of a
    /// velocity constraint `|1/2 (A(before) + A(z)) v-|`, m/s or rad/s, over the interval `h` from the poses `before`.
    fn gap(&self, constraint: usize, (before, h): (&[Pose], f64), x: &[f64]) -> f64 {
        let (m, c) = (self.mechanism(), &self.mechanism().constraints[constraint]);
        let n = c.bodies.len();
        let (poses, motion) = (self.poses(x), self.interval_velocities(x, h));
        let mut own = vec![Pose::identity(); n];
        let mut g = vec![0.0; c.rows];
        if c.is_holonomic() {
            let near = |(j, _): CoordinateId| self.winding_angle(x, j);
            c.value(&m.joints, c.gather(&poses, &mut own), near, &mut g);
        } else {
            let mut rows = vec![Vec6::zeros(); c.rows * n];
            for poses in [before, &poses] {
                let at = c.gather(poses, &mut own);
                c.jacobian(&m.joints, at, Rows::Value, &mut rows);
                for (g, row) in g.iter_mut().zip(rows.chunks_exact(n)) {
                    for (row, &b) in row.iter().zip(&c.bodies) {
                        let (v, w) = motion[b];
                        *g += 0.5 * row.dot(&Vec6::new(v.x, v.y, v.z, w.x, w.y, w.z));
                    }
                }
            }
        }
        g.iter().fold(0.0, |m, g| m.max(g.abs()))
    }

    /// Deepest overlap of any two surfaces at a state, m; zero where all gaps are open. Surfaces are where the mechanism
    /// as built has them; see [`Mechanical::penetration_with`].
    fn penetration(&self, x: &[f64]) -> f64 {
        self.mechanism()
            .deepest(&self.poses(x))
            .map_or(0.0, |(_, depth)| depth)
    }

    /// The same for the parameters `p`, which may move surfaces and change their sizes.
    ///
    /// # Errors
    /// When the parameters have no meaning.
    fn penetration_with(&self, p: &[f64], x: &[f64], w: &mut Self::Work) -> Result<f64, StepError> {
        let m = self.mechanism_with(p, w)?;
        if m.contacts.is_empty() {
            return Ok(0.0);
        }
        Ok(m.deepest(&self.poses(x)).map_or(0.0, |(_, depth)| depth))
    }

    /// The contact that overlaps most at a state, and by how much, m.
    fn overlap(&self, x: &[f64]) -> Option<(&str, f64)> {
        self.mechanism().deepest(&self.poses(x))
    }

    /// The spring with the highest frequency at a state, by name, and that frequency if only its two bodies moved,
    /// rad/s. The explicit treatment of springs wants `h omega` below 1 and is unstable from 2 on.
    fn fastest_spring(&self, x: &[f64]) -> Option<(String, f64)> {
        self.mechanism().fastest_spring(&self.poses(x))
    }

    /// The controls that hold the mechanism at rest at the pose of a state; see [`Mechanism::holding_controls`].
    ///
    /// # Errors
    /// When none do.
    fn holding_controls(&self, x: &[f64]) -> Result<Vec<f64>, Unheld> {
        let m = self.mechanism();
        let windings = (0..m.joints.len()).map(|j| self.winding_angle(x, j));
        m.holding_controls(&self.poses(x), &windings.collect::<Vec<_>>())
    }

    /// Does the motion determine the constraint forces of a joint? See [`Mechanism::has_unique_forces`].
    fn has_unique_forces(&self, joint: usize) -> bool {
        let redundant = self.mobility().redundant_rows;
        self.mechanism().has_unique_forces(joint, redundant)
    }
}

/// The fastest swing about a knot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Swing {
    /// Angular frequency, rad/s.
    pub rate: f64,
    /// A bound of it that needs no solve, rad/s.
    pub bound: f64,
    /// Body that swings most.
    pub body: usize,
    /// Fastest turn in the interval before that a rotation law takes for its chord, rad/s.
    pub turn: f64,
    /// The body around which a contact with friction goes fastest, and the rate, rad/s.
    pub spin: (usize, f64),
}

/// How the velocities of two intervals that meet at a knot differ, `dv`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VelocityChange {
    /// Kinetic energies of the intervals before and after the knot, J.
    pub kinetic: [f64; 2],
    /// `dv' M dv/2`, J.
    pub of_change: f64,
    /// Did a contact, a limit or dry friction act?
    pub touches: bool,
}

impl VelocityChange {
    /// Adds those of a body.
    pub(crate) fn add(&mut self, body: &Body, before: &Motion, after: &Motion) {
        let energy =
            |v: Vec3, w: Vec3| 0.5 * (body.mass * v.norm_squared() + w.dot(&(body.inertia * w)));
        self.kinetic[0] += energy(before.0, before.1);
        self.kinetic[1] += energy(after.0, after.1);
        self.of_change += energy(after.0 - before.0, after.1 - before.1);
    }
}

/// Size of a step's matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixSize {
    /// Rows.
    pub unknowns: usize,
    /// Pairs of blocks that only the factors have.
    pub fill_in: usize,
    /// What stands in for the usual factorization where that fails or loses digits.
    pub fallback: &'static str,
}

/// Six numbers a body, as motions.
pub(crate) fn motions(velocities: &[f64]) -> Vec<Motion> {
    let each = velocities.chunks_exact(6);
    each.map(|v| (vec3(v, 0), vec3(v, 3))).collect()
}

fn no_output(count: usize, seen: &KnotPoint, quantity: QuantityId) -> StepError {
    StepError {
        failure: StepFailure::NotFinite,
        element: format!("quantity {}", quantity.index()),
        time: seen.at.t,
        residual: f64::NAN,
        message: format!(
            "there are {count} outputs; rates of controls are quantities of the system that remembers them, `Remember`"
        ),
    }
}

fn no_interval(m: &Mechanism, seen: &KnotPoint, quantity: &Quantity) -> StepError {
    let joint = |j: usize| format!("joint `{}`", m.joints[j].name);
    let (element, what) = match *quantity {
        Quantity::Constraint { joint: j, .. } => (joint(j), "a constraint force"),
        Quantity::LimitForce { joint: j, .. } => (joint(j), "a limit's force"),
        Quantity::JointFriction { joint: j, .. } => (joint(j), "a joint's friction"),
        Quantity::NormalForce(c) | Quantity::Friction(c) => (
            format!("contact `{}`", m.contacts[c].name),
            "a contact's force",
        ),
        _ => (quantity.name(m).0, "it"),
    };
    StepError {
        failure: StepFailure::Interval,
        element,
        time: seen.at.t,
        residual: f64::NAN,
        message: format!(
            "{what} has no value at the last knot, where no interval follows; look at a knot before"
        ),
    }
}

/// [`Observe::quantities`](crate::dynamics::Observe::quantities) of any mechanical system.
pub(super) fn quantities<S: Mechanical>(system: &S) -> Vec<(String, String)> {
    let m = system.mechanism();
    system.outputs().iter().map(|o| o.name(m)).collect()
}

/// [`Observe::needs_unknowns`](crate::dynamics::Observe::needs_unknowns) of any mechanical system.
pub(super) fn needs_unknowns<S: Mechanical>(system: &S, quantity: QuantityId) -> bool {
    let output = system.outputs().get(quantity.index());
    output.is_some_and(|o| o.needs().reactions)
}

/// [`Observe::observe_in`](crate::dynamics::Observe::observe_in) of any mechanical system.
pub(super) fn observe<S: Mechanical>(
    system: &S,
    seen: &KnotPoint,
    which: &[QuantityId],
    w: &mut S::Work,
    out: &mut [f64],
) -> Result<(), StepError> {
    let outputs = system.outputs();
    if let Some(q) = which.iter().find(|q| q.index() >= outputs.len()) {
        return Err(no_output(outputs.len(), seen, *q));
    }
    let mut needs: Option<Needs> = None;
    for (q, out) in which.iter().zip(&mut *out) {
        let output = &outputs[q.index()];
        match reading(system, seen, output) {
            Some(read) => *out = read.value,
            None => {
                let own = output.needs_of(system.mechanism());
                needs = Some(needs.unwrap_or_default().and(own));
            }
        }
    }
    let Some(needs) = needs else {
        return Ok(());
    };
    system.evaluate_knot(seen, needs, w)?;
    let data = system.knot_data(seen, w);
    for (q, out) in which.iter().zip(out) {
        let output = &outputs[q.index()];
        if reading(system, seen, output).is_some() {
            continue;
        }
        if output.needs().reactions && data.reactions.is_empty() {
            return Err(no_interval(data.mechanism, seen, output));
        }
        *out = match system.joint_rate(output, w) {
            Some((_, rate)) => rate,
            None => output.value(&data),
        };
    }
    Ok(())
}

/// [`Observe::observe_pull_in`](crate::dynamics::Observe::observe_pull_in) of any mechanical system.
pub(super) fn pull<S: Mechanical>(
    system: &S,
    seen: &KnotPoint,
    (which, adjoint): (&[QuantityId], &[f64]),
    w: &mut S::Work,
    out: &mut Inputs,
    y: &mut [f64],
) {
    let outputs = system.outputs();
    let asked = || which.iter().zip(adjoint).filter(|(_, g)| **g != 0.0);
    let read = |q: &QuantityId| reading(system, seen, &outputs[q.index()]);
    let mut others = false;
    for (q, &g) in asked() {
        let Some(read) = read(q) else {
            others = true;
            continue;
        };
        let to = match read.of {
            ReadFrom::State(i) => &mut out.x[i..],
            ReadFrom::Control(i) => &mut out.u[i..],
        };
        to.iter_mut()
            .zip(read.slopes)
            .for_each(|(to, slope)| *to += g * slope);
        out.h_prev += g * read.by_h_prev;
    }
    if !others {
        return;
    }
    let asked = || asked().filter(|(q, _)| read(q).is_none());
    let mut pulled = std::mem::take(system.adjoint(w));
    pulled.clear();
    let data = system.knot_data(seen, w);
    for (q, &g) in asked() {
        let output = &outputs[q.index()];
        match system.joint_rate(output, w) {
            Some((rate, _)) => pulled.rates[rate] += g,
            None => output.pull(&data, g, &mut pulled),
        }
    }
    let asked = || asked().filter(|(q, _)| system.joint_rate(&outputs[q.index()], w).is_none());
    for (p, tuned) in out.p.iter_mut().zip(&data.mechanism.parameters) {
        for field in &tuned.fields {
            for (q, &g) in asked() {
                *p += g * outputs[q.index()].by_field(&data, *field);
            }
        }
    }
    system.pull_knot(seen, w, &pulled, out, y);
    *system.adjoint(w) = pulled;
}

/// What can be observed of a mechanical system; for all alike.
macro_rules! observable {
    ($system:ty $(, $inner:ident: $bound:ident)?) => {
        impl $(<$inner: $bound>)? crate::dynamics::Observe for $system {
            fn quantities(&self) -> Vec<(String, String)> {
                $crate::integrator::mechanical::quantities(self)
            }

            fn needs_unknowns(&self, quantity: $crate::dynamics::QuantityId) -> bool {
                $crate::integrator::mechanical::needs_unknowns(self, quantity)
            }

            fn observe_in(
                &self,
                seen: &$crate::dynamics::KnotPoint,
                which: &[$crate::dynamics::QuantityId],
                w: &mut Self::Work,
                out: &mut [f64],
            ) -> Result<(), $crate::dynamics::StepError> {
                $crate::integrator::mechanical::observe(self, seen, which, w, out)
            }

            fn observe_pull_in(
                &self,
                seen: &$crate::dynamics::KnotPoint,
                which: &[$crate::dynamics::QuantityId],
                w: &mut Self::Work,
                adjoint: &[f64],
                out: &mut $crate::dynamics::Inputs,
                y: &mut [f64],
            ) {
                $crate::integrator::mechanical::pull(self, seen, (which, adjoint), w, out, y);
            }
        }
    };
}
pub(super) use observable;
