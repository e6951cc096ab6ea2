//! How a decision is made from an unbounded number of about unit size.

/// The map from a scaled decision `v` to the decision itself. Controls keep their bounds as constraints; a parameter's
/// bounds may be where the system ends to exist, so it cannot leave them: `m + s sin v` between two bounds,
/// `l + s (sqrt(v^2 + 1) - 1)` above one, its mirror image below one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// `s v`
    Free(f64),
    /// Middle and half range.
    Between(f64, f64),
    /// Bound, and `s`, negative below the bound.
    Beyond(f64, f64),
}

/// How near to a bound, relative to the range or size, a guess may be: at the bound the map does not move.
const OFF_BOUND: f64 = 1e-3;

/// How far a decision may go: the range of its bounds, or where they are open its own size, at least one.
pub(super) fn extent(value: f64, (l, u): (f64, f64)) -> f64 {
    let range = u - l;
    if range.is_finite() {
        range
    } else {
        value.abs().max(1.0)
    }
}

impl Scale {
    /// Of a parameter with these bounds and the given start.
    pub fn of_parameter((l, u): (f64, f64), start: f64) -> Self {
        let size = start.abs().max(1.0);
        match (l.is_finite(), u.is_finite()) {
            (true, true) => Self::Between(0.5 * (l + u), 0.5 * (u - l)),
            (true, false) => Self::Beyond(l, size),
            (false, true) => Self::Beyond(u, -size),
            (false, false) => Self::Free(size),
        }
    }

    /// The decision.
    pub fn value(self, v: f64) -> f64 {
        match self {
            Self::Free(s) => s * v,
            Self::Between(m, s) => m + s * v.sin(),
            Self::Beyond(b, s) => b + s * (v.hypot(1.0) - 1.0),
        }
    }

    /// Between which a scaled decision takes every value between two bounds once.
    pub fn bounds(self) -> Option<(f64, f64)> {
        let quarter = std::f64::consts::FRAC_PI_2;
        matches!(self, Self::Between(..)).then_some((-quarter, quarter))
    }

    /// Its derivative.
    pub fn slope(self, v: f64) -> f64 {
        match self {
            Self::Free(s) => s,
            Self::Between(_, s) => s * v.cos(),
            Self::Beyond(_, s) => s * v / v.hypot(1.0),
        }
    }

    /// Its second derivative.
    pub fn second_derivative(self, v: f64) -> f64 {
        match self {
            Self::Free(_) => 0.0,
            Self::Between(_, s) => -s * v.sin(),
            Self::Beyond(_, s) => s / v.hypot(1.0).powi(3),
        }
    }

    /// The scaled decision of a value, a little inside its bounds.
    pub fn inverse(self, value: f64) -> f64 {
        match self {
            Self::Free(s) => value / s,
            Self::Between(m, s) => {
                let most = 1.0 - OFF_BOUND;
                ((value - m) / s).clamp(-most, most).asin()
            }
            Self::Beyond(b, s) => {
                let root = 1.0 + ((value - b) / s).max(OFF_BOUND);
                (root * root - 1.0).sqrt()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn scales_invert_and_have_their_slopes() {
        let inf = f64::INFINITY;
        for (bounds, value) in [
            ((-1.0, 3.0), 2.5),
            ((2.0, inf), 7.0),
            ((-inf, 2.0), -1.0),
            ((-inf, inf), -4.0),
        ] {
            let s = Scale::of_parameter(bounds, value);
            let v = s.inverse(value);
            assert!((s.value(v) - value).abs() < 1e-12, "{s:?}");
            let slope = (s.value(v + 1e-6) - s.value(v - 1e-6)) / 2e-6;
            assert!((s.slope(v) - slope).abs() < 1e-8, "{s:?}");
            let second_derivative = (s.slope(v + 1e-6) - s.slope(v - 1e-6)) / 2e-6;
            assert!(
                (s.second_derivative(v) - second_derivative).abs() < 1e-8,
                "{s:?}"
            );
            for v in [-30.0, -1.0, 0.0, 5.0] {
                assert!(s.value(v) >= bounds.0 && s.value(v) <= bounds.1, "{s:?}");
            }
        }
    }
}
