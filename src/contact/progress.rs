//! How far an iterate is from the solution, and how much of that is rounding.

use super::assembly::along_absolute;
use super::{NewtonSystem, Solver};

/// Largest deviation of a product from `kappa`, relative, of what is solved to rounding.
const USABLE: f64 = 1e-3;
/// The same of what is taken if no start comes nearer: as far as the end of the path is moved next if a step has no solution there. Near the
/// end directions of sliding turn in steps of `kappa/u0`, and rounding times `g/s` keeps products of light bodies in cycles of a part of
/// `kappa`; so does rounding that keeps rows and gaps from the tolerance.
const NEARLY: f64 = 10.0;

/// Where an iterate stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Largest residual, m/s, and its row; elements count behind the rows.
    pub residual: f64,
    pub row: usize,
    /// Largest residual of what is solved, by the tolerance or rounding, m/s.
    pub allowed: f64,
    /// Mean product, m^2/s^2.
    pub mean: f64,
    pub sum: f64,
    /// Largest deviation of a product from `kappa`.
    pub off: f64,
    pub done: bool,
    /// Done only as far as rounding allows.
    pub rounded: bool,
    /// Good enough where no more can be had.
    pub usable: bool,
    /// Good enough if no start leads to more.
    pub nearly: bool,
    /// Largest product of a normal impulse with what its gap is off, m^2/s^2.
    pub ahead: f64,
    /// Largest `g/s`.
    pub stiffest: f64,
    /// Largest stiffness of a limit (`g/s`) or of friction in a joint (`u0/psi`), times what the tree of joints shows there by what its
    /// bodies show alone.
    pub masking: f64,
    /// The contacts are where rounding allows them to be; only rows of bodies and joints are left.
    pub settled: bool,
    /// Largest difference of a gap and its slack, m/s, and are all products near the end of the path?
    pub apart: f64,
    pub near: bool,
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Where the iterate last evaluated stands; `floor` is what rounding leaves of the rows, m/s.
    pub(super) fn progress(&self, kappa: f64, floor: f64) -> Progress {
        let (c, view) = (self.step.contacts(), self.step.view());
        let rows = self.step.residual().len();
        let [(mut residual, mut row), (constraints, constraint)] = self.step.worst();
        let mut worse = |r: f64, at: usize| {
            if r > residual || r.is_nan() {
                (residual, row) = (r, at);
            }
        };
        worse(constraints, constraint);
        let center = self.layout.options.centred * kappa;
        let (mut sum, mut count, mut off, mut beyond) = (0.0, 0.0, 0.0_f64, 0.0_f64);
        let (mut apart, mut ahead) = (0.0_f64, 0.0_f64);
        let (mut stiffest, mut masking) = (0.0_f64, 0.0_f64);
        for (i, (e, slot)) in c.elements.iter().zip(&self.layout.slots).enumerate() {
            let (s, k, o) = e.products(c.sides(i, self.layout), 0.0, kappa);
            sum += s;
            count += k;
            off = off.max(o);
            // what rounding of the gap leaves of the product
            let mut rounding = e.floor * e.local.g;
            if e.law.frictional {
                // and rounding of the sliding velocity
                let speed = |row| along_absolute(view.trial, slot.parent, slot.child, row);
                let speed = speed(&e.tangents[0]).max(speed(&e.tangents[1]));
                let bound = e.law.bound_at(&e.local);
                rounding = rounding.max(4.0 * f64::EPSILON * bound * speed);
                masking = masking.max(slot.contrast * bound / e.local.psi);
            }
            beyond = beyond.max(o - rounding);
            if let Some((pyramid, f)) = c.sides(i, self.layout) {
                worse(pyramid.apart(&e.local, f, e.slip_noise), rows + i);
            }
            if e.law.gap {
                // a gap of 2 km over an interval of 1 ms has a rounding of 5e-10 m/s
                let r = (e.gap - e.local.s).abs();
                let r = if r > e.noise.max(f64::EPSILON * e.local.s) || r.is_nan() {
                    r
                } else {
                    0.0
                };
                apart = apart.max(r);
                let stiffness = e.local.g / e.local.s;
                stiffest = stiffest.max(stiffness);
                masking = masking.max(slot.contrast * stiffness);
                if r > e.noise {
                    ahead = ahead.max(r * e.local.g);
                }
                worse(r, rows + i);
            }
        }
        let centred = off <= center;
        let tolerance = self.tolerance;
        let fits = residual <= tolerance;
        let allowed = tolerance.max(floor);
        let near = off <= NEARLY * kappa;
        let solved = residual <= allowed;
        let rounded = solved && beyond <= center;
        let mean = if count > 0.0 { sum / count } else { 0.0 };
        Progress {
            residual,
            row,
            allowed,
            mean,
            sum,
            off,
            done: rounded && sum.is_finite(),
            rounded: !(fits && centred),
            usable: solved && beyond <= USABLE * kappa,
            nearly: solved && near,
            ahead,
            stiffest,
            masking,
            settled: apart <= tolerance && beyond <= center,
            apart,
            near,
        }
    }
}
