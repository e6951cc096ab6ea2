//! Other variables for the decisions, in which argmin's solvers see a function of about unit size and curvature: several of
//! their tests are absolute, and conjugate gradients and quasi-Newton memory know nothing of a curvature that spans twelve
//! orders of magnitude, as that of an unstable system does.

use crate::dynamics::Observe;
use crate::optimize::Reduced;
use crate::optimize::augmented::Param;
use argmin::core::{CostFunction, Error, Gradient, Hessian, Jacobian, Operator};
use nalgebra::{Cholesky, DMatrix};
use std::rc::Rc;

/// Added to the diagonal where a curvature is not positive definite, relative to its largest entry, and by how much more it
/// grows; above rounding. Conventional.
const FLOOR: f64 = 1e-14;
const FLOOR_GROWTH: f64 = 100.0;

/// `v = v_0 + L'^-1 z` with `L L'` the curvature at `v_0`, or `L = 1`; the function times `scale`.
#[derive(Clone)]
pub struct Variables {
    origin: Param,
    factor: Option<DMatrix<f64>>,
    pub scale: f64,
}

impl Variables {
    /// The decisions from `origin`.
    pub fn new(origin: Param, scale: f64) -> Self {
        Self {
            origin,
            factor: None,
            scale,
        }
    }

    /// In which the curvature `h` at the origin, times the scale, is the identity.
    pub fn whitened(origin: Param, h: &DMatrix<f64>, scale: f64) -> Self {
        let largest = h.diagonal().iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        let mut floor = 0.0;
        let factor = loop {
            let mut h = scale * h;
            for i in 0..h.nrows() {
                h[(i, i)] += floor * scale * largest;
            }
            if let Some(c) = Cholesky::new(h) {
                break Some(c.unpack());
            }
            floor = (FLOOR_GROWTH * floor).max(FLOOR);
            // not even numbers
            if !(floor * largest).is_finite() || largest == 0.0 {
                break None;
            }
        };
        Self {
            origin,
            factor,
            scale,
        }
    }

    /// The decisions.
    pub fn decisions(&self, z: &Param) -> Param {
        let mut v = z.clone();
        if let Some(l) = &self.factor {
            // its diagonal is positive
            l.tr_solve_lower_triangular_mut(&mut v);
        }
        v + &self.origin
    }

    /// From another origin, the same otherwise.
    pub fn move_to(&mut self, origin: &Param) {
        self.origin.copy_from(origin);
    }

    /// A gradient by the variables, from one by the decisions, unscaled.
    pub fn gradient(&self, mut g: Param) -> Param {
        if let Some(l) = &self.factor {
            l.solve_lower_triangular_mut(&mut g);
        }
        g
    }

    /// `L^-1 m`.
    fn reduce(&self, mut m: DMatrix<f64>) -> DMatrix<f64> {
        if let Some(l) = &self.factor {
            l.solve_lower_triangular_mut(&mut m);
        }
        m
    }
}

/// A reduced problem in other variables.
pub struct Transformed<'a, D: Observe> {
    pub reduced: Rc<Reduced<'a, D>>,
    pub by: Rc<Variables>,
}

impl<D: Observe> Clone for Transformed<'_, D> {
    fn clone(&self) -> Self {
        Self {
            reduced: self.reduced.clone(),
            by: self.by.clone(),
        }
    }
}

impl<D: Observe> CostFunction for Transformed<'_, D> {
    type Param = Param;
    type Output = f64;

    fn cost(&self, z: &Param) -> Result<f64, Error> {
        Ok(self.by.scale * self.reduced.cost(&self.by.decisions(z))?)
    }
}

impl<D: Observe> Gradient for Transformed<'_, D> {
    type Param = Param;
    type Gradient = Param;

    fn gradient(&self, z: &Param) -> Result<Param, Error> {
        let g = self.reduced.gradient(&self.by.decisions(z))?;
        Ok(self.by.scale * self.by.gradient(g))
    }
}

impl<D: Observe> Hessian for Transformed<'_, D> {
    type Param = Param;
    type Hessian = DMatrix<f64>;

    /// `s L^-1 H L'^-1`
    fn hessian(&self, z: &Param) -> Result<DMatrix<f64>, Error> {
        let h = self.reduced.hessian(&self.by.decisions(z))?;
        let half = self.by.reduce(h).transpose();
        let whole = self.by.scale * self.by.reduce(half);
        // conjugate gradients in argmin never end on what is no number
        if whole.iter().any(|h| !h.is_finite()) {
            return Err(Error::msg("the curvature is not finite"));
        }
        Ok(0.5 * (&whole + whole.transpose()))
    }
}

impl<D: Observe> Operator for Transformed<'_, D> {
    type Param = Param;
    type Output = Param;

    fn apply(&self, z: &Param) -> Result<Param, Error> {
        Ok(self.by.scale.sqrt() * self.reduced.apply(&self.by.decisions(z))?)
    }
}

impl<D: Observe> Jacobian for Transformed<'_, D> {
    type Param = Param;
    type Jacobian = DMatrix<f64>;

    /// `s^(1/2) J L'^-1`
    fn jacobian(&self, z: &Param) -> Result<DMatrix<f64>, Error> {
        let j = self.reduced.jacobian(&self.by.decisions(z))?;
        let by = self.by.reduce(j.transpose()).transpose();
        Ok(self.by.scale.sqrt() * by)
    }
}
