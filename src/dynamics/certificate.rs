//! What a linearization says of itself.

/// Residual from which a step counts as not solved, N s and N m s: a ten-thousandth of what moves a kilogram at a
/// centimetre a second.
const UNSOLVED: f64 = 1e-6;
/// Pivot, relative to its row, below which nothing but rounding is left.
const SINGULAR: f64 = 1e-14;

/// How good a linearization is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Certificate {
    /// Largest residual of the step's equations at the point that was linearized, N s, N m s, m or half rad, and the
    /// largest impulse by which contacts that rounding left beside their central path are off it.
    pub residual: f64,
    /// 1 where another method had to stand in for the usual factorization.
    pub fallbacks: usize,
    /// Parameter of the central path that the derivatives are those of, m^2/s^2; 0 where the system has no contact.
    pub kappa: f64,
    /// Has the system contacts or limits, which act or not by where it is?
    pub has_gaps: bool,
    /// Smallest pivot of the factorization relative to its row, where that was asked for.
    pub smallest_pivot: Option<f64>,
    /// Largest deviation of a contact's products from `kappa`, relative, at the step's own `kappa`.
    pub off_centre: f64,
}

impl Certificate {
    /// The worse of two, in every part.
    pub fn and(&self, other: &Self) -> Self {
        let pivots = [self.smallest_pivot, other.smallest_pivot];
        Self {
            residual: self.residual.max(other.residual),
            fallbacks: self.fallbacks.max(other.fallbacks),
            kappa: self.kappa.max(other.kappa),
            has_gaps: self.has_gaps || other.has_gaps,
            smallest_pivot: pivots.into_iter().flatten().reduce(f64::min),
            off_centre: self.off_centre.max(other.off_centre),
        }
    }

    /// Why the derivatives are not to be trusted, if so; `remedy` is what to do where steps are not solved.
    pub fn refusal(&self, remedy: &str) -> Option<String> {
        let residual = self.residual;
        if !residual.is_finite() {
            return Some(format!(
                "a step where derivatives are taken has numbers that are not finite; {remedy}"
            ));
        }
        if residual > UNSOLVED {
            return Some(format!(
                "a step is solved only to rounding, where derivatives are taken: residual {residual:.1e}; {remedy}"
            ));
        }
        match self.smallest_pivot {
            Some(p) if p < SINGULAR => Some(format!(
                "the step's matrix is singular to working precision: pivot {p:.1e}; take apart what is over-constrained"
            )),
            _ => None,
        }
    }
}
