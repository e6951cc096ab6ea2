//! Other variables for the decisions, in which argmin's solvers see a function of about unit size and curvature: several of
//! their tests are absolute, and conjugate gradients and quasi-Newton memory know nothing of a curvature that spans twelve
//! orders of magnitude, as that of an unstable system does.

use crate::dynamics::Observe;
use crate::optimize::Reduced;
use crate::optimize::augmented::Param;
use argmin::core::{CostFunction, Error, Gradient, Hessian, Jacobian, Operator};
use nalgebra::{Cholesky, DMatrix};
use std::cell::RefCell;
use std::rc::Rc;

/// Added to the diagonal where a curvature is not positive definite, relative to its largest entry, and by how much more it
/// grows; above rounding. Conventional.
const FLOOR: f64 = 1e-14;
const FLOOR_GROWTH: f64 = 100.0;

/// `v = v_0 + L'^-1 z` with `L L'` the curvature where they were made, or `L = 1`; the function times `scale`.
///
/// Along a straight line of controls the states of an unstable system soon leave their linear prediction. Variables that
/// [`Variables::curved`] made follow shooting's feedback there: `z` is a change of the decisions, to which the feedback of the
/// curvature at `v_0` adds what keeps the states at their prediction. To first order it is the same (a retraction: Absil, Mahony
/// and Sepulchre, *Optimization Algorithms on Matrix Manifolds*, 2008, section 4.1), so that derivatives at `z = 0` are right;
/// elsewhere there are none.
#[derive(Clone)]
pub struct Variables {
    origin: Param,
    factor: Option<DMatrix<f64>>,
    /// At the origin, by the decisions, unscaled.
    curvature: Option<DMatrix<f64>>,
    /// Of which it is the square, where the factor is theirs.
    rows: Option<DMatrix<f64>>,
    is_curved: bool,
    /// Added to the diagonal, relative to its largest entry.
    floor: f64,
    /// The last variables, and the decisions that they are, if these can be simulated.
    last: RefCell<Option<(Param, Option<Param>)>>,
    pub scale: f64,
}

impl Variables {
    /// The decisions from `origin`.
    pub fn new(origin: Param, scale: f64) -> Self {
        Self {
            origin,
            factor: None,
            curvature: None,
            rows: None,
            is_curved: false,
            floor: 0.0,
            last: RefCell::new(None),
            scale,
        }
    }

    /// In which the curvature `h` at the origin, times the scale, is the identity.
    pub fn whitened(origin: Param, h: DMatrix<f64>, scale: f64) -> Self {
        let largest = h.diagonal().iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        let mut floor = 0.0;
        let factor = loop {
            let mut h = scale * &h;
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
            curvature: Some(h),
            rows: None,
            is_curved: false,
            floor,
            last: RefCell::new(None),
            scale,
        }
    }

    /// Did rounding take what the curvature has of definiteness?
    pub fn is_singular(&self) -> bool {
        self.floor > 0.0
    }

    /// In which the curvature `J'J` at the origin, times the scale, is the identity, by `J = Q R`: the factor keeps twice the
    /// digits of one of `J'J`. The same where `R` is singular.
    pub fn whitened_by_rows(self, j: DMatrix<f64>) -> Self {
        if j.nrows() < j.ncols() {
            return self;
        }
        let mut l = (self.scale.sqrt() * &j).qr().r().transpose();
        for i in 0..l.ncols() {
            if l[(i, i)] < 0.0 {
                l.column_mut(i).neg_mut();
            }
        }
        // a test against rounding refuses the curvature of unstable systems, whose small entries are right
        let regular = l.diagonal().iter().all(|d| *d > 0.0) && l.iter().all(|x| x.is_finite());
        if !regular {
            return self;
        }
        Self {
            factor: Some(l),
            rows: Some(j),
            floor: 0.0,
            ..self
        }
    }

    /// With feedback.
    pub fn curved(self) -> Self {
        Self {
            is_curved: true,
            ..self
        }
    }

    /// The decisions; `None` where finding them means to simulate what cannot be.
    ///
    /// # Errors
    /// A step from the origin that cannot be linearized.
    pub fn decisions<D: Observe>(
        &self,
        z: &Param,
        reduced: &Reduced<D>,
    ) -> Result<Option<Param>, Error> {
        let mut d = z.clone();
        if let Some(l) = &self.factor {
            // its diagonal is positive
            l.tr_solve_lower_triangular_mut(&mut d);
        }
        if !self.is_curved || self.is_origin(z) {
            return Ok(Some(d + &self.origin));
        }
        if let Some((_, v)) = self.last.borrow().as_ref().filter(|(last, _)| last == z) {
            return Ok(v.clone());
        }
        let v = reduced.with(|f| f.retract(&self.origin, &d))?;
        self.last.replace(Some((z.clone(), v.clone())));
        Ok(v)
    }

    /// Is it where derivatives are known?
    fn is_origin(&self, z: &Param) -> bool {
        z.iter().all(|z| *z == 0.0)
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

impl<D: Observe> Transformed<'_, D> {
    fn decisions(&self, z: &Param) -> Result<Option<Param>, Error> {
        self.by.decisions(z, &self.reduced)
    }

    /// The decisions, where derivatives are asked for.
    fn origin(&self, z: &Param) -> Result<Param, Error> {
        let v = self.decisions(z)?;
        v.ok_or_else(|| Error::msg("there are no derivatives where nothing can be simulated"))
    }
}

impl<D: Observe> CostFunction for Transformed<'_, D> {
    type Param = Param;
    type Output = f64;

    fn cost(&self, z: &Param) -> Result<f64, Error> {
        let value = match self.decisions(z)? {
            Some(v) => self.reduced.cost(&v)?,
            None => self.reduced.failure()?,
        };
        Ok(self.by.scale * value)
    }
}

impl<D: Observe> Gradient for Transformed<'_, D> {
    type Param = Param;
    type Gradient = Param;

    fn gradient(&self, z: &Param) -> Result<Param, Error> {
        let g = self.reduced.gradient(&self.origin(z)?)?;
        Ok(self.by.scale * self.by.gradient(g))
    }
}

/// Conjugate gradients in argmin never end on what is no number.
fn finite(h: DMatrix<f64>) -> Result<DMatrix<f64>, Error> {
    match h.iter().all(|h| h.is_finite()) {
        true => Ok(h),
        false => Err(Error::msg("the curvature is not finite")),
    }
}

impl<D: Observe> Hessian for Transformed<'_, D> {
    type Param = Param;
    type Hessian = DMatrix<f64>;

    /// `s L^-1 H L'^-1`
    fn hessian(&self, z: &Param) -> Result<DMatrix<f64>, Error> {
        if self.by.is_curved && !self.by.is_origin(z) {
            // the trust region asks where it went, and begins from there anew
            return Ok(DMatrix::identity(z.len(), z.len()));
        }
        if let Some(j) = self.by.rows.as_ref().filter(|_| self.by.is_origin(z)) {
            let half = self.by.reduce(j.transpose());
            return finite(self.by.scale * &half * half.transpose());
        }
        let known = self.by.curvature.clone();
        let h = match known.filter(|_| self.by.is_origin(z)) {
            Some(h) => h,
            None => self.reduced.hessian(&self.origin(z)?)?,
        };
        let half = self.by.reduce(h).transpose();
        let whole = self.by.scale * self.by.reduce(half);
        finite(0.5 * (&whole + whole.transpose()))
    }
}

impl<D: Observe> Operator for Transformed<'_, D> {
    type Param = Param;
    type Output = Param;

    fn apply(&self, z: &Param) -> Result<Param, Error> {
        let r = match self.decisions(z)? {
            Some(v) => self.reduced.apply(&v)?,
            None => self.reduced.failed_residuals(self.reduced.failure()?),
        };
        let n = r.len();
        let bent = self.reduced.with(|f| f.bend().len());
        Ok(self.by.scale.sqrt() * r.resize_vertically(n + bent, 0.0))
    }
}

impl<D: Observe> Jacobian for Transformed<'_, D> {
    type Param = Param;
    type Jacobian = DMatrix<f64>;

    /// `s^(1/2) J L'^-1`, with [`Reduced::bent_jacobian`]
    fn jacobian(&self, z: &Param) -> Result<DMatrix<f64>, Error> {
        let j = self.reduced.bent_jacobian(&self.origin(z)?)?;
        let by = self.by.reduce(j.transpose()).transpose();
        Ok(self.by.scale.sqrt() * by)
    }
}
