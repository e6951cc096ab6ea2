//! States: how they are stored, made from joint coordinates, and read.

use super::Minimal;
use super::kinematics::{turn, turned_by};
use super::local::Local;
use super::work::Work;
use crate::dynamics::{Start, StepError, StepFailure};
use crate::integrator::failure::starts_at_half_turn;
use crate::mechanism::{Earlier, Mechanism};
use crate::spatial::{Vec3, exp};
use nalgebra::{DMatrix, DVector};

fn too_far(joint: &str) -> StepError {
    StepError {
        failure: StepFailure::Domain,
        element: format!("joint {joint}"),
        time: 0.0,
        residual: f64::NAN,
        message:
            "it turned too far in the interval before; start slower, or with a shorter interval"
                .into(),
    }
}

impl Minimal {
    /// The state at a start: of a start in motion joints were displaced by `before rates` since then, slides and angles by
    /// that difference, balls by that rotation.
    pub(super) fn start_at(&self, start: &Start, w: &Work, x: &mut [f64]) -> Result<(), StepError> {
        self.check_start(start)?;
        let (q, rates) = self.geared_start(&w.model, start.coordinates, start.rates);
        self.write_positions(&q, x);
        x[self.positions..].copy_from_slice(&rates);
        if start.before != 0.0 {
            let mut old = self.before(start, w)?;
            self.gears.close(&w.model, &mut old.q);
            let mut from = x.to_vec();
            self.write_positions(&old.q, &mut from);
            self.write_rates(&from, start.before, x)?;
        }
        Ok(())
    }

    fn check_start(&self, start: &Start) -> Result<(), StepError> {
        let (q, rates, n) = (start.coordinates.len(), start.rates.len(), self.freedoms);
        if (q, rates) != (n, n) {
            let message = format!("{q} coordinates and {rates} rates; give {n} of each");
            return Err(StepError::of_size("the start", message));
        }
        for (node, j) in self.joints() {
            let own = &start.coordinates[node.directions()];
            if j.is_at_half_turn(&j.relative_at(own).r) {
                return Err(starts_at_half_turn(&j.name));
            }
        }
        Ok(())
    }

    /// Joint coordinates into a state.
    fn write_positions(&self, q: &[f64], x: &mut [f64]) {
        for (node, j) in self.joints() {
            let own = &q[node.directions()];
            x[node.place..node.place + node.slides].copy_from_slice(&own[..node.slides]);
            let place = node.turn();
            match node.turns {
                0 => {}
                1 => x[place.start] = own[node.slides],
                _ => {
                    let r = j.relative_at(own).r;
                    x[place].copy_from_slice(&[r.w, r.i, r.j, r.k]);
                }
            }
        }
    }

    /// The rates of an interval between the positions of two states, into the latter.
    fn write_rates(&self, from: &[f64], h: f64, x: &mut [f64]) -> Result<(), StepError> {
        for (node, j) in self.joints() {
            let (place, first) = (node.place, self.positions + node.first);
            for i in 0..node.slides {
                x[first + i] = (x[place + i] - from[place + i]) / h;
            }
            let turned = match node.turns {
                0 => continue,
                1 => {
                    let angle = x[node.turn().start] - from[node.turn().start];
                    exp(&(j.directions[node.slides].unit * angle))
                }
                _ => self.relative(j, node, x) * self.relative(j, node, from).conjugate(),
            };
            // of two quaternions of a rotation the one nearer to none, but an angle knows how far it turned
            let turned = match node.turns {
                1 => turned.into_inner(),
                _ if turned.w < 0.0 => -turned.into_inner(),
                _ => turned.into_inner(),
            };
            if turned.w <= 0.0 {
                return Err(too_far(&j.name));
            }
            for (i, d) in j.directions.iter().enumerate().skip(node.slides) {
                x[first + i] = d.unit.dot(&turned.imag()) * (2.0 / h);
            }
        }
        Ok(())
    }

    /// The state an interval `h` after another, at joint coordinates.
    pub(super) fn state_behind(&self, x: &[f64], q: &[f64], h: f64) -> Vec<f64> {
        let mut out = x.to_vec();
        self.write_positions(q, &mut out);
        // where a joint turned too far its rates are those of before: a guess
        let _ = self.write_rates(x, h, &mut out);
        out
    }

    /// The tree an interval before a start in motion.
    fn before(&self, start: &Start, w: &Work) -> Result<Earlier, StepError> {
        let moved: Vec<f64> = start.rates.iter().map(|r| start.before * r).collect();
        let old = w.model.earlier(start.coordinates, &moved);
        old.ok_or_else(|| too_far("of the start"))
    }

    /// Derivatives of the state at a start by the parameters.
    pub(super) fn start_by_parameters(
        &self,
        start: &Start,
        w: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        let mut x = vec![0.0; self.positions + self.freedoms];
        self.start_at(start, w, &mut x)?;
        let earlier = match start.before {
            0.0 => None,
            _ => {
                let mut old = self.before(start, w)?;
                self.gears.close(&w.model, &mut old.q);
                Some(old.q)
            }
        };
        let rates = &x[self.positions..];
        Ok(self.start_by_gears(start, rates, earlier.as_deref(), w))
    }

    /// Derivatives of the state at a start by coordinates, rates and the interval before.
    pub(super) fn start_by_coordinates(
        &self,
        start: &Start,
        w: &mut Work,
    ) -> Result<DMatrix<f64>, StepError> {
        self.check_start(start)?;
        let n = self.freedoms;
        let tangent = w.model.tangent_by_coordinates(start.coordinates);
        let tangent = tangent.ok_or_else(|| StepError {
            failure: StepFailure::Domain,
            element: "the start".into(),
            time: 0.0,
            residual: f64::NAN,
            message: "a joint is at a whole turn, where its rotation vector has no derivative; start elsewhere".into(),
        })?;
        let mut out = DMatrix::identity(2 * n, 2 * n + 1);
        out.view_mut((0, 0), (n, n)).copy_from(&tangent);
        for first in [0, n] {
            self.gears.level_rows(&w.model, first, &mut out);
        }
        let h = start.before;
        if h == 0.0 {
            return Ok(out);
        }
        let mut x = vec![0.0; self.positions + n];
        self.start_at(start, w, &mut x)?;
        let old = self.before(start, w)?;
        // of the coordinates then: by coordinates, rates, interval
        let mut then = DMatrix::zeros(n, 2 * n + 1);
        then.columns_mut(0, n)
            .copy_from(&(&old.by_tangent * &tangent));
        then.columns_mut(n, n).copy_from(&(&old.by_moved * h));
        let rates = DVector::from_column_slice(start.rates);
        then.set_column(2 * n, &(&old.by_moved * rates));
        self.gears.level_rows(&w.model, 0, &mut then);
        let tangent = out.view((0, 0), (n, n)).into_owned();
        for (node, j) in self.joints() {
            let own = &x[self.positions..][node.directions()];
            let local = Local::new(j, node, &self.relative(j, node, &x), own, -h);
            for column in 0..=2 * n {
                let now = |i: usize| {
                    if column < n {
                        tangent[(i, column)]
                    } else {
                        0.0
                    }
                };
                let rho = |i: usize| (now(i) - then[(i, column)]) / h;
                let longer = if column == 2 * n { 1.0 / h } else { 0.0 };
                let turns = node.first + node.slides..node.first + node.count();
                let of = |f: &dyn Fn(usize) -> f64| {
                    Vec3::from_fn(|i, _| match turns.start + i {
                        at if at < turns.end => f(at),
                        _ => 0.0,
                    })
                };
                let turned = local.rates(&of(&rho), &of(&now), longer);
                for (i, index) in node.directions().enumerate() {
                    out[(n + index, column)] = match i.checked_sub(node.slides) {
                        None => rho(index) - own[i] * longer,
                        Some(i) => turned[i],
                    };
                }
            }
        }
        Ok(out)
    }

    /// The state at the next knot, from the joints' rates over the interval.
    pub(super) fn write_next(&self, m: &Mechanism, w: &Work, x: &[f64], h: f64, next: &mut [f64]) {
        next[self.positions..].copy_from_slice(&w.rates);
        for (node, k) in self.nodes.iter().zip(&w.knot) {
            let j = &m.joints[node.joint];
            let own = &w.rates[node.directions()];
            for i in 0..node.slides {
                next[node.place + i] = x[node.place + i] + h * own[i];
            }
            let place = node.turn();
            match node.turns {
                0 => {}
                1 => next[place.start] = x[place.start] + turned_by(own[node.slides], h),
                _ => {
                    let spin = turn(j, node, &k.relative, own);
                    let r = Self::turned(&k.relative, &spin, h).into_inner();
                    // unit by construction; one Newton step on the norm keeps rounding from adding up
                    let r = r * (1.5 - 0.5 * r.norm_squared());
                    next[place].copy_from_slice(&[r.w, r.i, r.j, r.k]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dynamics::{Knot, Start, Step, StepFailure};
    use crate::integrator::maximal::Maximal;
    use crate::integrator::minimal::Minimal;
    use crate::integrator::minimal::samples::options;
    use crate::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder};

    /// Two rates do not tell the motion of a joint with two turns at half a turn: what would lose all digits is refused.
    #[test]
    fn two_turns_at_half_a_turn_are_refused() {
        let joint = JointSpec::new(JointKind::Orbital, "body").axis([0.0, 0.0, 1.0]);
        let m = MechanismBuilder::new()
            .body("body", BodySpec::new(1.0).inertia([0.1, 0.2, 0.3]))
            .joint("joint", joint);
        let m = m.build().expect("a body on a joint");
        let at = |off: f64| [std::f64::consts::PI + off, 0.0];
        // along where it is turned: what is across is as fast as 1/w
        let rates = [0.1, 0.0];
        let minimal = Minimal::new(m.clone(), &at(0.1), options()).expect("a tree");
        let maximal = Maximal::new(m, &at(0.1), options()).expect("a mechanism");
        let (mut w, mut x) = (minimal.work(), vec![0.0; minimal.dims().nx]);
        let (mut of_maximal, mut state) = (maximal.work(), vec![0.0; maximal.dims().nx]);
        for (off, failure) in [(0.0, Some(StepFailure::HalfTurn)), (1e-3, None)] {
            let q = at(off);
            let start = Start::at_rates(&q, &rates);
            let found = minimal.initial(&start, &[], &mut w, &mut x);
            assert_eq!(found.err().map(|e| e.failure), failure);
            let found = maximal.initial(&start, &[], &mut of_maximal, &mut state);
            assert_eq!(found.err().map(|e| e.failure), failure);
        }
        let knot = Knot {
            k: 0,
            t: 0.0,
            h_prev: 0.01,
            h: 0.01,
        };
        let (mut next, mut y) = (x.clone(), vec![0.0; minimal.dims().ny]);
        let mut step = |x: &[f64]| minimal.step(&knot, x, &[], &[], &mut w, &mut next, &mut y);
        assert!(step(&x).is_ok());
        x[..4].copy_from_slice(&[1e-9, 1.0, 0.0, 0.0]);
        let e = step(&x).expect_err("at half a turn");
        assert_eq!(e.failure, StepFailure::HalfTurn);
        assert!(e.message.contains("maximal"), "{e}");
    }
}
