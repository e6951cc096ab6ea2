//! The papers' linearized friction cone: a pyramid of directions `d_i` in the contact's tangent plane.
//!
//! In the units of [`super::cone`], with impulses `b_i >= 0` along the directions and `b = sum d_i b_i`:
//!
//! ```text
//! b_i eta_i = kappa, eta_i = d_i . eta + psi;    t psi = kappa, t = mu g - sum b_i
//! ```
//!
//! `eta_i` and `t` are carried along: computed anew they would lose their digits. What of `d_i . eta + psi - eta_i` is more than
//! rounding, as the sliding velocity is not quite linear, is a residual like that of the gap.
//!
//! Friction is `-mu g d_i` with the `d_i` nearest the sliding velocity. Between two directions it pulls sideways, until the
//! sliding heads midway between them, where it brakes by `mu g cos(pi/n)`: less than the circular cone.

use super::cone::{HALVINGS, Law, Linear, Local, Target};

/// Directions at most.
pub(super) const MOST: usize = 16;

/// What a pyramid adds to the unknowns of a contact, or to a change of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub b: [f64; MOST],
    pub eta: [f64; MOST],
    pub t: f64,
}

impl Point {
    pub const ZERO: Self = Self {
        b: [0.0; MOST],
        eta: [0.0; MOST],
        t: 0.0,
    };

    pub fn moved(&self, d: &Self, length: f64) -> Self {
        let step = |a: &[f64; MOST], d: &[f64; MOST]| std::array::from_fn(|i| a[i] + length * d[i]);
        Self {
            b: step(&self.b, &d.b),
            eta: step(&self.eta, &d.eta),
            t: self.t + length * d.t,
        }
    }
}

/// The pyramid of a contact at an iterate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facets {
    pub at: Point,
    pub direction: Point,
    pub affine: Point,
    pub spare: Point,
    /// What may be returned to on a curve.
    pub point: Point,
    /// Right-hand sides of `b_i eta_i`.
    rhs: [f64; MOST],
    /// What the sliding velocity differs from that carried along.
    off: [f64; MOST],
    /// Change of the bound beside that by the normal impulse.
    pub bound: f64,
}

impl Facets {
    pub const ZERO: Self = Self {
        at: Point::ZERO,
        direction: Point::ZERO,
        affine: Point::ZERO,
        spare: Point::ZERO,
        point: Point::ZERO,
        rhs: [0.0; MOST],
        off: [0.0; MOST],
        bound: 0.0,
    };

    /// With a scaled direction.
    pub fn scaled(&self, scale: f64) -> Self {
        Self {
            direction: Point::ZERO.moved(&self.direction, scale),
            ..*self
        }
    }

    /// No residual is chased.
    pub fn hold(&mut self) {
        self.rhs = [0.0; MOST];
        self.keep();
        self.bound = 0.0;
    }

    /// The sliding velocity is taken for that carried along.
    pub fn keep(&mut self) {
        self.off = [0.0; MOST];
    }
}

/// Residuals of a contact: of `s g`, of each `b_i eta_i`, of `t psi`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residuals {
    pub product: f64,
    pub facets: [f64; MOST],
    pub top: f64,
}

/// The directions, unit vectors in the plane of the two tangents.
#[derive(Clone, Debug, Default)]
pub(super) struct Pyramid(Vec<[f64; 2]>);

impl Pyramid {
    /// So many directions, evenly spread, the first along the first tangent.
    pub fn new(directions: usize) -> Self {
        let n = directions.min(MOST);
        let turn = |i: usize| std::f64::consts::TAU * i as f64 / n as f64;
        Self((0..n).map(|i| [turn(i).cos(), turn(i).sin()]).collect())
    }

    /// Numbers that a contact's facets add to its unknowns.
    pub fn unknowns(&self) -> usize {
        2 * self.0.len() + 1
    }

    /// Takes `t` from the other unknowns, which a change of friction asks for; positive inside the pyramid.
    pub fn close(&self, law: &Law, l: &Local, f: &mut Facets) -> bool {
        f.at.t = law.mu * l.g - f.at.b[..self.0.len()].iter().sum::<f64>();
        f.at.t > 0.0
    }

    pub fn read(&self, y: &[f64], f: &mut Facets) {
        let n = self.0.len();
        f.at.b[..n].copy_from_slice(&y[..n]);
        f.at.eta[..n].copy_from_slice(&y[n..2 * n]);
        f.at.t = y[2 * n];
    }

    pub fn write(&self, f: &Facets, y: &mut [f64]) {
        let n = self.0.len();
        y[..n].copy_from_slice(&f.at.b[..n]);
        y[n..2 * n].copy_from_slice(&f.at.eta[..n]);
        y[2 * n] = f.at.t;
    }

    /// Puts the facets on the central path at `nu` for the normal impulse and the sliding velocity of `l`.
    pub fn start(&self, law: &Law, l: &mut Local, f: &mut Facets, nu: f64) {
        let u0 = law.mu * l.g;
        let along = |d: &[f64; 2]| d[0] * l.eta[0] + d[1] * l.eta[1];
        // sum nu/eta_i + nu/psi = mu g, falling in psi
        let least = self.0.iter().map(|d| -along(d)).fold(0.0, f64::max);
        let excess =
            |psi: f64| nu / psi + self.0.iter().map(|d| nu / (along(d) + psi)).sum::<f64>() - u0;
        let (mut low, mut width) = (0.0, (self.0.len() + 1) as f64 * nu / u0);
        while excess(least + width) > 0.0 {
            width *= 2.0;
        }
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + width);
            if excess(least + middle) > 0.0 {
                low = middle;
            } else {
                width = middle;
            }
        }
        l.psi = least + width;
        l.b = [0.0; 2];
        let mut sum = 0.0;
        for (i, d) in self.0.iter().enumerate() {
            f.at.eta[i] = along(d) + l.psi;
            f.at.b[i] = nu / f.at.eta[i];
            sum += f.at.b[i];
            (0..2).for_each(|k| l.b[k] += d[k] * f.at.b[i]);
        }
        f.at.t = u0 - sum;
        if f.at.t <= 0.0 {
            f.at.t = nu / l.psi;
        }
    }

    /// The linearization; see [`Law::linearize`].
    pub fn linearize(&self, law: &Law, l: &Local, f: &Facets) -> Linear {
        let (mut stiffness, mut along, mut outer) = (0.0, [0.0; 2], [[0.0; 2]; 2]);
        for (i, d) in self.0.iter().enumerate() {
            let k = f.at.b[i] / f.at.eta[i];
            stiffness += k;
            for a in 0..2 {
                along[a] += k * d[a];
                for b in 0..2 {
                    outer[a][b] += k * d[a] * d[b];
                }
            }
        }
        let den = 1.0 / (f.at.t + l.psi * stiffness);
        let by_normal = l.psi * law.mu * den;
        let by_slide = along.map(|a| a * l.psi * den);
        let slide = [0, 1].map(|a| [0, 1].map(|b| outer[a][b] - along[a] * by_slide[b]));
        Linear {
            normal: l.g / l.s,
            drag: along.map(|a| a * by_normal),
            slide,
            by_normal,
            by_slide,
            den,
            psi: 0.0,
        }
    }

    /// What of the sliding velocity is not carried along, beyond rounding.
    pub fn compare(&self, l: &Local, f: &mut Facets, noise: f64) {
        f.off = self.off(l, f, noise);
    }

    /// Largest size of that.
    pub fn apart(&self, l: &Local, f: &Facets, noise: f64) -> f64 {
        let off = self.off(l, f, noise);
        off.iter().fold(0.0, |m, o| m.max(o.abs()))
    }

    fn off(&self, l: &Local, f: &Facets, noise: f64) -> [f64; MOST] {
        let mut out = [0.0; MOST];
        for (i, d) in self.0.iter().enumerate() {
            let off = d[0] * l.eta[0] + d[1] * l.eta[1] + l.psi - f.at.eta[i];
            // a NaN is seen
            if off.is_nan() || off.abs() > noise {
                out[i] = off;
            }
        }
        out
    }

    /// What is left of the products to reach `target`; `affine` as in [`Law::target`].
    pub fn residuals(
        &self,
        l: &Local,
        f: &Facets,
        target: f64,
        affine: Option<&Local>,
    ) -> Residuals {
        let mut out = Residuals {
            product: target - l.s * l.g,
            facets: [0.0; MOST],
            top: target - f.at.t * l.psi,
        };
        for i in 0..self.0.len() {
            out.facets[i] = target - f.at.b[i] * f.at.eta[i];
        }
        if let Some(a) = affine {
            out.product -= a.s * a.g;
            out.top -= f.affine.t * a.psi;
            for i in 0..self.0.len() {
                out.facets[i] -= f.affine.b[i] * f.affine.eta[i];
            }
        }
        out
    }

    /// The right-hand side of given residuals.
    pub fn response(
        &self,
        (l, linear): (&Local, &Linear),
        f: &mut Facets,
        gap: f64,
        r: &Residuals,
    ) -> Target {
        let normal = (r.product - l.g * gap) / l.s;
        let (mut sum, mut c, mut along) = (0.0, [0.0; 2], [0.0; 2]);
        for (i, d) in self.0.iter().enumerate() {
            let k = f.at.b[i] / f.at.eta[i];
            let q = r.facets[i] / f.at.eta[i] - k * f.off[i];
            sum += q;
            for a in 0..2 {
                c[a] += d[a] * q;
                along[a] += d[a] * k;
            }
        }
        f.rhs = r.facets;
        let psi = (r.top + l.psi * sum) * linear.den;
        let of = |a: usize| c[a] - along[a] * psi + linear.drag[a] * normal;
        Target {
            gap,
            c: [normal, of(0), of(1)],
            psi,
        }
    }

    /// The facets' share of the direction that [`Law::recover`] gave.
    pub fn recover(&self, law: &Law, d: &Local, f: &mut Facets) {
        let mut sum = 0.0;
        for (i, unit) in self.0.iter().enumerate() {
            let eta = unit[0] * d.eta[0] + unit[1] * d.eta[1] + d.psi + f.off[i];
            f.direction.eta[i] = eta;
            f.direction.b[i] = (f.rhs[i] - f.at.b[i] * eta) / f.at.eta[i];
            sum += f.direction.b[i];
        }
        f.direction.t = law.mu * d.g + f.bound - sum;
    }

    /// Largest step along the direction that keeps everything positive.
    pub fn reach(&self, l: &Local, d: &Local, f: &Facets) -> f64 {
        let mut a = f64::INFINITY;
        let mut bound = |x: f64, dx: f64| {
            if dx < 0.0 {
                a = a.min(-x / dx);
            }
        };
        bound(l.s, d.s);
        bound(l.g, d.g);
        bound(l.psi, d.psi);
        bound(f.at.t, f.direction.t);
        for i in 0..self.0.len() {
            bound(f.at.b[i], f.direction.b[i]);
            bound(f.at.eta[i], f.direction.eta[i]);
        }
        a
    }

    /// Sum and number of the products, and their largest deviation from `kappa`.
    pub fn products(&self, l: &Local, at: &Point, kappa: f64) -> (f64, f64, f64) {
        let facets = (0..self.0.len()).map(|i| at.b[i] * at.eta[i]);
        let all = [l.s * l.g, at.t * l.psi].into_iter().chain(facets);
        let (mut sum, mut off) = (0.0, 0.0_f64);
        for p in all {
            sum += p;
            off = off.max((p - kappa).abs());
        }
        (sum, (self.0.len() + 2) as f64, off)
    }

    /// The point of the central path at `kappa` with the same `s - g`, and each facet's `b_i - eta_i`, `t - psi`.
    pub fn recentred(&self, law: &Law, l: &Local, f: &mut Facets, kappa: f64) -> Local {
        let frictionless = Law {
            frictional: false,
            ..*law
        };
        let mut out = frictionless.start(l.s, l.g, l.eta, kappa);
        let pair = |x: f64, y: f64| {
            let d = x - y;
            let root = (d * d + 4.0 * kappa).sqrt();
            if d > 0.0 {
                let x = 0.5 * (d + root);
                (x, kappa / x)
            } else {
                let y = 0.5 * (root - d);
                (kappa / y, y)
            }
        };
        (f.at.t, out.psi) = pair(f.at.t, l.psi);
        out.b = [0.0; 2];
        for (i, d) in self.0.iter().enumerate() {
            (f.at.b[i], f.at.eta[i]) = pair(f.at.b[i], f.at.eta[i]);
            (0..2).for_each(|k| out.b[k] += d[k] * f.at.b[i]);
        }
        out
    }
}
