//! Costs and constraints: functions of a quantity at some knots.

use crate::dynamics::{Knot, QuantityId};

/// Distance from its target at which the curvature of a cost that is no square is taken no larger.
const AT_TARGET: f64 = 1e-9;

/// Where along the trajectory a cost or a constraint holds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At every knot but the last.
    Running,
    /// At the last knot.
    End,
    /// At one knot, counted from 0.
    Knot(usize),
    /// From one knot to another, both included.
    Range(usize, usize),
}

impl When {
    /// Does it hold at knot `k` of a trajectory of `n` steps?
    pub fn holds(self, k: usize, n: usize) -> bool {
        match self {
            Self::Running => k < n,
            Self::End => k == n,
            Self::Knot(at) => k == at,
            Self::Range(first, last) => (first..=last).contains(&k),
        }
    }

    /// Is a cost multiplied by the interval behind its knot? (At the last knot there is none.)
    pub fn is_along(self) -> bool {
        matches!(self, Self::Running | Self::Range(..))
    }

    /// First and last knot of a trajectory of `n` steps at which it holds; none where there is no such knot.
    pub fn knots(self, n: usize) -> Option<(usize, usize)> {
        let (first, last) = match self {
            Self::Running => (0, n.checked_sub(1)?),
            Self::End => (n, n),
            Self::Knot(k) => (k, k),
            Self::Range(first, last) => (first, last.min(n)),
        };
        (first <= last && last <= n).then_some((first, last))
    }
}

/// How a cost grows with the distance `d` of its quantity from the target.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `weight/2 d^2`
    #[default]
    Square,
    /// `weight d`. Where it is an energy or another quantity that cannot fall below its target, its curvature is that of a
    /// square; with a negative weight the quantity is to be large.
    Linear,
    /// `weight |d|`: robust, and zero where it can be, with a kink there.
    Absolute,
    /// Huber's `weight/2 d^2` up to this distance, and `weight delta (|d| - delta/2)` beyond: outliers pull no more than
    /// those at the distance do.
    Huber(f64),
}

impl Form {
    /// Value, slope and the curvature of Gauss and Newton's model of a cost of weight `w` at the distance `d`.
    ///
    /// What is no square has the curvature of the square that touches it at `d` and `-d`: for what grows as `|d|` it lies
    /// above the function everywhere (iteratively reweighted least squares, Holland and Welsch 1977).
    pub fn at(self, w: f64, d: f64) -> (f64, f64, f64) {
        let away = d.abs().max(AT_TARGET);
        match self {
            Self::Square => (0.5 * w * d * d, w * d, w),
            // the square of a root, whose own slope vanishes at the target; what is to be large, or is at its target and
            // falls below, is no such square, and a curvature would hide what can be gained
            Self::Linear if w > 0.0 && d.abs() > AT_TARGET => (w * d, w, w / (2.0 * d.abs())),
            Self::Linear => (w * d, w, 0.0),
            Self::Absolute if d == 0.0 => (0.0, 0.0, w / away),
            Self::Absolute => (w * d.abs(), w * d.signum(), w / away),
            Self::Huber(delta) if d.abs() <= delta => (0.5 * w * d * d, w * d, w),
            Self::Huber(delta) => (
                w * delta * (d.abs() - 0.5 * delta),
                w * delta * d.signum(),
                w * delta / d.abs(),
            ),
        }
    }
}

/// A cost on a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Which of the system's quantities.
    pub quantity: QuantityId,
    /// In the quantity's unit.
    pub target: f64,
    /// What is added to the target from knot to knot: its place in [`Problem::profiles`](super::Problem::profiles).
    pub profile: Option<usize>,
    /// Not negative, unless the cost is linear.
    pub weight: f64,
    /// Where.
    pub when: When,
    /// How it grows.
    pub form: Form,
    /// How it is summed along the way.
    pub quadrature: Quadrature,
}

impl Cost {
    /// `weight/2 (quantity - target)^2`
    pub fn square(quantity: QuantityId, target: f64, weight: f64, when: When) -> Self {
        Self {
            quantity,
            target,
            profile: None,
            weight,
            when,
            form: Form::Square,
            quadrature: Quadrature::default(),
        }
    }

    /// By what it is multiplied at a knot.
    pub fn share(&self, at: &Knot) -> Share {
        self.quadrature.share(self.when, at)
    }

    /// Does it count at knot `k` of `n` steps?
    pub fn counts(&self, k: usize, n: usize) -> bool {
        self.quadrature.counts(self.when, k, n)
    }

    /// The same, summed along the way by another rule.
    #[must_use]
    pub fn summed(self, quadrature: Quadrature) -> Self {
        Self { quadrature, ..self }
    }

    /// `weight quantity`; to make the quantity large, the weight is negative.
    pub fn linear(quantity: QuantityId, weight: f64, when: When) -> Self {
        Self {
            form: Form::Linear,
            ..Self::square(quantity, 0.0, weight, when)
        }
    }
}

/// A cost at a knot, with its derivatives by the quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Value.
    pub value: f64,
    /// First derivative.
    pub slope: f64,
    /// Curvature of Gauss and Newton's model; see [`Form::at`].
    pub curvature: f64,
}

/// By what costs along the way are multiplied at a knot: the sum over the knots is an integral.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Quadrature {
    /// The interval after the knot; the last knot has none. Exact for held controls, of first order for states.
    #[default]
    Left,
    /// Half of both intervals that meet at the knot, the last knot included: of second order for states. For controls that are
    /// linear between knots these are the weights with which they act: the first control half an interval, the last one and a
    /// half.
    Trapezoidal,
    /// The same for what has no value at the last knot, as forces: its value at the last knot but one serves until the end of the
    /// range. The range must end there.
    Open,
}

/// The share of a knot in a sum, with its derivatives by the intervals before and behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// s, or 1 for what is taken once.
    pub weight: f64,
    /// Derivative by the interval before.
    pub by_h_prev: f64,
    /// Derivative by the interval behind.
    pub by_h: f64,
}

impl Quadrature {
    /// The share of a knot in what is summed. A range goes from its first knot to the one behind its last.
    pub fn share(self, when: When, at: &Knot) -> Share {
        let (by_h_prev, by_h) = match (self, when) {
            (_, When::End | When::Knot(_)) => {
                return Share {
                    weight: 1.0,
                    by_h_prev: 0.0,
                    by_h: 0.0,
                };
            }
            (Self::Left, _) => (0.0, 1.0),
            (Self::Open, When::Range(first, last)) => (
                if at.k > first { 0.5 } else { 0.0 },
                if at.k < last { 0.5 } else { 1.0 },
            ),
            (Self::Trapezoidal, When::Range(first, last)) => {
                let half = |is: bool| if is { 0.5 } else { 0.0 };
                (half(at.k > first), half(at.k <= last))
            }
            (Self::Trapezoidal | Self::Open, _) => (0.5, 0.5),
        };
        // what was before the start is no part of the sum
        let by_h_prev = if at.k == 0 { 0.0 } else { by_h_prev };
        Share {
            weight: by_h_prev * at.h_prev + by_h * at.h,
            by_h_prev,
            by_h,
        }
    }

    /// Does a cost count at knot `k` of `n` steps?
    pub fn counts(self, when: When, k: usize, n: usize) -> bool {
        match (self, when) {
            (Self::Left | Self::Open, When::Running | When::Range(..)) => k < n && when.holds(k, n),
            (Self::Trapezoidal, When::Running) => k <= n,
            (Self::Trapezoidal, When::Range(first, last)) => {
                (first..=(last + 1).min(n)).contains(&k) && first < n
            }
            _ => when.holds(k, n),
        }
    }
}

/// How a quantity compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// `quantity = value`
    Equal,
    /// `quantity <= value`
    Less,
    /// `quantity >= value`
    Greater,
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::Less => "<=",
            Self::Greater => ">=",
        })
    }
}

/// A quantity held at, below or above a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraint {
    /// Which of the system's quantities.
    pub quantity: QuantityId,
    /// Equal, less or greater.
    pub relation: Relation,
    /// In the quantity's unit.
    pub value: f64,
    /// What is added to the value from knot to knot: its place in [`Problem::profiles`](super::Problem::profiles).
    pub profile: Option<usize>,
    /// Where.
    pub when: When,
}

impl Constraint {
    /// `quantity = value`, or as the relation says.
    pub fn new(quantity: QuantityId, relation: Relation, value: f64, when: When) -> Self {
        Self {
            quantity,
            relation,
            value,
            profile: None,
            when,
        }
    }

    /// `dc / d quantity`, where the constraint says `c = 0`, or `c <= 0` for the inequalities.
    pub fn sign(&self) -> f64 {
        match self.relation {
            Relation::Greater => -1.0,
            _ => 1.0,
        }
    }

    /// How far `c` is from being allowed.
    pub fn violation(&self, c: f64) -> f64 {
        match self.relation {
            Relation::Equal => c.abs(),
            _ => c.max(0.0),
        }
    }

    /// Derivative of half the square of [`Constraint::violation`] by `c`.
    pub fn violation_slope(&self, c: f64) -> f64 {
        match self.relation {
            Relation::Equal => c,
            _ => c.max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slopes are those of the values, and the touching square lies above what is robust.
    #[test]
    fn forms_have_their_slopes() {
        let e = 1e-6;
        for form in [Form::Square, Form::Linear, Form::Absolute, Form::Huber(0.5)] {
            for d in [-2.0, -0.5 + 1e-3, -0.1, 0.3, 0.7, 5.0] {
                let (value, slope, curvature) = form.at(2.0, d);
                let difference = (form.at(2.0, d + e).0 - form.at(2.0, d - e).0) / (2.0 * e);
                assert!((slope - difference).abs() < 1e-8, "{form:?} at {d}");
                if form == Form::Linear {
                    continue;
                }
                for other in [-3.0, -0.2, 0.0, 0.4, 8.0] {
                    let above = value + slope * (other - d) + 0.5 * curvature * (other - d).powi(2);
                    assert!(
                        form.at(2.0, other).0 <= above + 1e-12,
                        "{form:?} at {d}, {other}"
                    );
                }
            }
        }
    }

    /// The trapezoidal shares of an interval's two ends add up to the horizon, as those of the left ends do.
    #[test]
    fn shares_add_up_to_the_horizon() {
        let h = [0.1, 0.3, 0.2];
        for quadrature in [Quadrature::Left, Quadrature::Trapezoidal] {
            let mut sum = 0.0;
            for k in 0..=3 {
                let at = Knot {
                    k,
                    t: 0.0,
                    h_prev: if k > 0 { h[k - 1] } else { 0.0 },
                    h: h.get(k).copied().unwrap_or(0.0),
                };
                if quadrature.counts(When::Running, k, 3) {
                    sum += quadrature.share(When::Running, &at).weight;
                }
            }
            assert!((sum - 0.6_f64).abs() < 1e-15, "{quadrature:?}: {sum}");
        }
        // a range and the rest are the whole
        let at = |k: usize| Knot {
            k,
            t: 0.0,
            h_prev: if k > 0 { h[k - 1] } else { 0.0 },
            h: h.get(k).copied().unwrap_or(0.0),
        };
        for (when, expected) in [(When::Range(0, 0), 0.1), (When::Range(1, 2), 0.5)] {
            for q in [Quadrature::Left, Quadrature::Trapezoidal] {
                let counted = (0..=3).filter(|k| q.counts(when, *k, 3));
                let sum: f64 = counted.map(|k| q.share(when, &at(k)).weight).sum();
                assert!((sum - expected).abs() < 1e-15, "{q:?} {when:?}: {sum}");
            }
        }
        assert!(Quadrature::Left.counts(When::End, 3, 3));
    }
}
