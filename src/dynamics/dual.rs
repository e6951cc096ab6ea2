//! Numbers that carry their derivatives (forward-mode automatic differentiation; Griewank and Walther, *Evaluating
//! Derivatives*, 2008).

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A real number as formulas see it: `f64`, or [`Dual`] with derivatives. Constants stand on the right, `x * 2.0`, or
/// are made by `T::from(2.0)`.
pub trait Real:
    Copy
    + Debug
    + Send
    + Sync
    + From<f64>
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
{
    /// Without derivatives, e.g. to branch on.
    fn value(self) -> f64;
    /// Sine and cosine.
    fn sin_cos(self) -> (Self, Self);
    /// Exponential.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Angle of the point (`x`, `self`).
    fn atan2(self, x: Self) -> Self;
    /// Integer power.
    fn powi(self, n: i32) -> Self;

    /// Sine.
    fn sin(self) -> Self {
        self.sin_cos().0
    }

    /// Cosine.
    fn cos(self) -> Self {
        self.sin_cos().1
    }

    /// Tangent.
    fn tan(self) -> Self {
        let (s, c) = self.sin_cos();
        s / c
    }

    /// Absolute value; its derivative at zero is that from the right.
    fn abs(self) -> Self {
        if self.value() < 0.0 { -self } else { self }
    }
}

impl Real for f64 {
    fn value(self) -> f64 {
        self
    }

    fn sin_cos(self) -> (Self, Self) {
        self.sin_cos()
    }

    fn exp(self) -> Self {
        self.exp()
    }

    fn ln(self) -> Self {
        self.ln()
    }

    fn sqrt(self) -> Self {
        self.sqrt()
    }

    fn tanh(self) -> Self {
        self.tanh()
    }

    fn atan2(self, x: Self) -> Self {
        self.atan2(x)
    }

    fn powi(self, n: i32) -> Self {
        self.powi(n)
    }
}

/// A number with its derivatives in `N` directions. Nested, `Dual<Dual<f64, N>, N>`, it carries second derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dual<T, const N: usize> {
    /// Value.
    pub value: T,
    /// Derivatives.
    pub by: [T; N],
}

impl<T: Real, const N: usize> Dual<T, N> {
    /// A number that does not change.
    #[inline]
    pub fn constant(value: T) -> Self {
        Self {
            value,
            by: [T::from(0.0); N],
        }
    }

    /// The variable of direction `i`.
    #[inline]
    pub fn variable(value: T, i: usize) -> Self {
        let mut v = Self::constant(value);
        v.by[i] = T::from(1.0);
        v
    }

    /// A function's value and slope at this number.
    #[inline]
    fn chain(self, value: T, slope: T) -> Self {
        Self {
            value,
            by: self.by.map(|d| d * slope),
        }
    }

    /// `value`, with derivatives `a self' + b other'`.
    #[inline]
    fn combine(self, other: Self, value: T, a: T, b: T) -> Self {
        Self {
            value,
            by: std::array::from_fn(|i| self.by[i] * a + other.by[i] * b),
        }
    }
}

impl<T: Real, const N: usize> From<f64> for Dual<T, N> {
    #[inline]
    fn from(value: f64) -> Self {
        Self::constant(T::from(value))
    }
}

impl<T: Real, const N: usize> Neg for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self {
            value: -self.value,
            by: self.by.map(|d| -d),
        }
    }
}

impl<T: Real, const N: usize> Add for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn add(self, o: Self) -> Self {
        Self {
            value: self.value + o.value,
            by: std::array::from_fn(|i| self.by[i] + o.by[i]),
        }
    }
}

impl<T: Real, const N: usize> Sub for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn sub(self, o: Self) -> Self {
        Self {
            value: self.value - o.value,
            by: std::array::from_fn(|i| self.by[i] - o.by[i]),
        }
    }
}

impl<T: Real, const N: usize> Mul for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn mul(self, o: Self) -> Self {
        self.combine(o, self.value * o.value, o.value, self.value)
    }
}

impl<T: Real, const N: usize> Div for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn div(self, o: Self) -> Self {
        let inverse = T::from(1.0) / o.value;
        let value = self.value * inverse;
        self.combine(o, value, inverse, -(value * inverse))
    }
}

impl<T: Real, const N: usize> Add<f64> for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn add(self, o: f64) -> Self {
        Self {
            value: self.value + o,
            ..self
        }
    }
}

impl<T: Real, const N: usize> Sub<f64> for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn sub(self, o: f64) -> Self {
        Self {
            value: self.value - o,
            ..self
        }
    }
}

impl<T: Real, const N: usize> Mul<f64> for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn mul(self, o: f64) -> Self {
        Self {
            value: self.value * o,
            by: self.by.map(|d| d * o),
        }
    }
}

impl<T: Real, const N: usize> Div<f64> for Dual<T, N> {
    type Output = Self;

    #[inline]
    fn div(self, o: f64) -> Self {
        Self {
            value: self.value / o,
            by: self.by.map(|d| d / o),
        }
    }
}

macro_rules! assign {
    ($($op:ident $method:ident $by:ident),*) => {$(
        impl<T: Real, const N: usize> $op for Dual<T, N> {
            #[inline]
            fn $method(&mut self, o: Self) {
                *self = self.$by(o);
            }
        }
    )*};
}

assign!(AddAssign add_assign add, SubAssign sub_assign sub, MulAssign mul_assign mul, DivAssign div_assign div);

impl<T: Real, const N: usize> Real for Dual<T, N> {
    #[inline]
    fn value(self) -> f64 {
        self.value.value()
    }

    #[inline]
    fn sin_cos(self) -> (Self, Self) {
        let (s, c) = self.value.sin_cos();
        (self.chain(s, c), self.chain(c, -s))
    }

    #[inline]
    fn exp(self) -> Self {
        let e = self.value.exp();
        self.chain(e, e)
    }

    #[inline]
    fn ln(self) -> Self {
        self.chain(self.value.ln(), T::from(1.0) / self.value)
    }

    #[inline]
    fn sqrt(self) -> Self {
        let r = self.value.sqrt();
        self.chain(r, T::from(0.5) / r)
    }

    #[inline]
    fn tanh(self) -> Self {
        let t = self.value.tanh();
        self.chain(t, -(t * t) + 1.0)
    }

    #[inline]
    fn atan2(self, x: Self) -> Self {
        let square = self.value * self.value + x.value * x.value;
        let angle = self.value.atan2(x.value);
        self.combine(x, angle, x.value / square, -(self.value / square))
    }

    #[inline]
    fn powi(self, n: i32) -> Self {
        if n == 0 {
            return Self::from(1.0);
        }
        let below = self.value.powi(n - 1);
        self.chain(below * self.value, below * f64::from(n))
    }
}
