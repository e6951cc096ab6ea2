//! What can be seen of a system.

use super::{Dims, Dynamics, Inputs, Knot, StepError};
use nalgebra::DMatrix;

/// A quantity of a system: its place in [`Observe::quantities`]. It says nothing of other systems, but one that wraps
/// another keeps the places of its quantities. [`Observe::quantity`] finds one by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuantityId(usize);

impl QuantityId {
    /// The quantity at a place in [`Observe::quantities`].
    pub const fn new(place: usize) -> Self {
        Self(place)
    }

    /// Its place there.
    pub const fn index(self) -> usize {
        self.0
    }
}

/// What can be seen at a knot.
#[derive(Clone, Copy, Debug)]
pub struct KnotPoint<'a> {
    /// Where.
    pub at: Knot,
    /// State at the knot.
    pub x: &'a [f64],
    /// Control that acts there (at the end, the last).
    pub u: &'a [f64],
    /// Parameters.
    pub p: &'a [f64],
    /// Unknowns of the step from the knot; empty at the end.
    pub y: &'a [f64],
}

/// Derivatives of several quantities, one row each: by state (free chart), control, parameters, unknowns and
/// intervals.
#[derive(Clone, Debug)]
pub struct Rows {
    /// rows x nf
    pub x: DMatrix<f64>,
    /// rows x nu
    pub u: DMatrix<f64>,
    /// rows x np
    pub p: DMatrix<f64>,
    /// rows x ny
    pub y: DMatrix<f64>,
    /// By the interval before the knot.
    pub h_prev: Vec<f64>,
    /// By the interval behind it.
    pub h: Vec<f64>,
    /// Memory of rows made by pulls.
    inputs: Inputs,
    unknowns: Vec<f64>,
    adjoint: Vec<f64>,
}

impl Rows {
    /// Zeros.
    pub fn new(dims: &Dims, rows: usize) -> Self {
        let zeros = |n| DMatrix::zeros(rows, n);
        Self {
            x: zeros(dims.nf),
            u: zeros(dims.nu),
            p: zeros(dims.np),
            y: zeros(dims.ny),
            h_prev: vec![0.0; rows],
            h: vec![0.0; rows],
            inputs: dims.inputs(),
            unknowns: vec![0.0; dims.ny],
            adjoint: vec![0.0; rows],
        }
    }
}

/// What costs, constraints, figures and files may see of a system, by place in one list.
///
/// [`Observe::observe`] is what a caller uses; see [`Observed`]. The methods ending in `_in` are what an implementation
/// provides.
pub trait Observe: Dynamics {
    /// Name and unit of every quantity.
    fn quantities(&self) -> Vec<(String, String)>;

    /// The quantity of that name, the first where several have it.
    fn quantity(&self, name: &str) -> Option<QuantityId> {
        let all = self.quantities();
        let place = all.iter().position(|(own, _)| own == name);
        place.map(QuantityId::new)
    }

    /// Does the quantity depend on the unknowns of the step, as a joint's force does? It then has no value at the end.
    fn needs_unknowns(&self, quantity: QuantityId) -> bool;

    /// Values of the quantities listed in `which`.
    ///
    /// # Errors
    /// When a quantity has no value at this state.
    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError>;

    /// Adds to the adjoints of state, control, parameters and unknowns (`y`, as long as those seen) those of the
    /// quantities in `which`. The memory is as [`Observe::observe_in`] left it, with the same arguments.
    fn observe_pull_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        adjoint: &[f64],
        out: &mut Inputs,
        y: &mut [f64],
    );

    /// Derivatives of the quantities in `which`, one row each, by one [`Observe::observe_pull_in`] each unless there is
    /// a shorter way. The memory is as [`Observe::observe_in`] left it.
    fn observe_rows_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        w: &mut Self::Work,
        out: &mut Rows,
    ) {
        rows_by_pulls(self, seen, which, w, out);
    }

    /// Values of the quantities listed in `which`, into `out`, and what their derivatives follow from.
    ///
    /// # Errors
    /// When a quantity has no value at this state.
    fn observe<'a>(
        &'a self,
        seen: &KnotPoint<'a>,
        which: &'a [QuantityId],
        w: &'a mut Self::Work,
        out: &'a mut [f64],
    ) -> Result<Observed<'a, Self>, StepError> {
        self.observe_in(seen, which, w, out)?;
        Ok(Observed {
            system: self,
            seen: *seen,
            which,
            values: out,
            work: w,
        })
    }
}

/// Quantities observed, with the memory that their derivatives follow from.
pub struct Observed<'a, D: Observe + ?Sized> {
    system: &'a D,
    seen: KnotPoint<'a>,
    which: &'a [QuantityId],
    values: &'a [f64],
    work: &'a mut D::Work,
}

impl<D: Observe + ?Sized> Observed<'_, D> {
    /// Their values.
    pub fn values(&self) -> &[f64] {
        self.values
    }

    /// Adds to the adjoints of state, control, parameters, intervals and unknowns (`y`, as long as those seen) what
    /// the quantities' adjoints come to.
    pub fn pull(&mut self, adjoint: &[f64], out: &mut Inputs, y: &mut [f64]) {
        let (seen, which) = (&self.seen, self.which);
        self.system
            .observe_pull_in(seen, which, self.work, adjoint, out, y);
    }

    /// Their derivatives, one row each.
    pub fn rows(&mut self, out: &mut Rows) {
        let (seen, which) = (&self.seen, self.which);
        self.system.observe_rows_in(seen, which, self.work, out);
    }
}

/// [`Observe::observe_rows_in`] of any system.
fn rows_by_pulls<D: Observe + ?Sized>(
    system: &D,
    seen: &KnotPoint,
    which: &[QuantityId],
    w: &mut D::Work,
    out: &mut Rows,
) {
    let Rows {
        inputs,
        unknowns,
        adjoint,
        ..
    } = out;
    let y = &mut unknowns[..seen.y.len()];
    adjoint.fill(0.0);
    for i in 0..which.len() {
        inputs.clear();
        y.fill(0.0);
        adjoint[i] = 1.0;
        system.observe_pull_in(seen, which, w, adjoint, inputs, y);
        adjoint[i] = 0.0;
        let set = |m: &mut DMatrix<f64>, v: &[f64]| {
            m.row_mut(i).iter_mut().zip(v).for_each(|(m, v)| *m = *v);
        };
        set(&mut out.x, &inputs.x);
        set(&mut out.u, &inputs.u);
        set(&mut out.p, &inputs.p);
        set(&mut out.y, y);
        (out.h_prev[i], out.h[i]) = (inputs.h_prev, inputs.h);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::{Explicit, Real, Remember, Smooth, Step};

    /// Quantities are its states `x0`, `x1`, then the controls `u0`, `u1`.
    struct Mass;

    impl Smooth for Mass {
        fn states(&self) -> usize {
            2
        }

        fn controls(&self) -> usize {
            2
        }

        fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], _: &[T], next: &mut [T]) {
            next[1] = x[1] + h * (u[0] - u[1]);
            next[0] = x[0] + h * next[1];
        }
    }

    #[test]
    fn quantities_are_found_by_name() {
        let mass = Explicit::new(Mass);
        assert_eq!(mass.quantity("x1"), Some(QuantityId::new(1)));
        assert_eq!(mass.quantity("u0"), Some(mass.control_quantity(0)));
        assert_eq!(mass.quantity("u1"), Some(mass.control_quantity(1)));
        assert_eq!(mass.quantity("x2"), None);
        // one that wraps it keeps their places
        let wrapped = Remember::new(&mass, mass.controls());
        assert_eq!(wrapped.quantity("x1"), mass.quantity("x1"));
        assert_eq!(wrapped.quantity("u0 rate"), Some(QuantityId::new(4)));
    }
}
