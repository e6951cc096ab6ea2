//! The law of one contact: a gap complementary to the normal impulse, and friction by maximum dissipation in the
//! second-order cone.
//!
//! All quantities are velocities, m/s (rad/s for rotations): `s = phi(z+)/h`, and the impulses over the contact's
//! effective mass, normal `g` and tangential `b`. With `eta` the sliding velocity, `u0 = mu g` and a given bound
//! (that of friction in joints), `psi` the multiplier of the cone:
//!
//! ```text
//! s g = kappa,    u0 psi + b . eta = kappa,    u0 eta + psi b = 0
//! ```
//!
//! the central path of maximum dissipation, written with the cone's plain Jordan product.

/// Halvings of an interval: its ends are then neighbours.
pub(super) const HALVINGS: usize = 100;

/// The unknowns of a contact, or a change of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Local {
    /// Gap over the interval's length.
    pub s: f64,
    /// Normal impulse.
    pub g: f64,
    /// Multiplier of the friction cone, the sliding speed where it slides.
    pub psi: f64,
    /// Friction impulse.
    pub b: [f64; 2],
    /// Sliding velocity.
    pub eta: [f64; 2],
}

impl Local {
    /// Normal impulse and friction.
    #[inline(always)]
    pub fn impulses(&self) -> [f64; 3] {
        [self.g, self.b[0], self.b[1]]
    }

    /// A step along a direction.
    #[inline(always)]
    pub fn moved(&self, d: &Self, length: f64) -> Self {
        let pair = |a: &[f64; 2], d: &[f64; 2]| [a[0] + length * d[0], a[1] + length * d[1]];
        Self {
            s: self.s + length * d.s,
            g: self.g + length * d.g,
            psi: self.psi + length * d.psi,
            b: pair(&self.b, &d.b),
            eta: pair(&self.eta, &d.eta),
        }
    }
}

/// What holds at a contact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    /// Is there a gap? Friction in joints has none.
    pub gap: bool,
    /// Is there friction?
    pub frictional: bool,
    /// Coulomb's coefficient.
    pub mu: f64,
    /// Bound of the friction impulse beside that.
    pub bound: f64,
}

/// A law linearized at its unknowns: `(dg, db) = c - S (N+ dV, B dV)`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Linear {
    /// Stiffness of the gap, `g/s`.
    pub normal: f64,
    /// `d b / d g`.
    pub drag: [f64; 2],
    /// `-d b / d eta`.
    pub slide: [[f64; 2]; 2],
    /// `-d psi / d g`, `-d psi / d eta`, and the reciprocals of `den` and `psi`.
    pub by_normal: f64,
    pub by_slide: [f64; 2],
    pub den: f64,
    pub psi: f64,
}

impl Linear {
    /// Stiffnesses of the impulses, normal and tangents, by velocities.
    pub fn stiffnesses(&self) -> [f64; 3] {
        let slide = |i: usize| self.slide[i][0].abs().max(self.slide[i][1].abs());
        [self.normal.abs(), slide(0), slide(1)]
    }

    /// Scales of the rows of the impulses where these are unknowns: a row that is stiffer than 1 is divided by its stiffness.
    pub fn row_scales(&self) -> [f64; 3] {
        self.stiffnesses().map(|stiffness| 1.0 / stiffness.max(1.0))
    }
}

/// Right-hand side of a linearized law.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Target {
    /// Residual of the gap.
    pub gap: f64,
    /// Change of normal and friction impulse at velocities held.
    pub c: [f64; 3],
    /// The same of the multiplier.
    pub psi: f64,
}

fn dot(a: &[f64; 2], b: &[f64; 2]) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}

/// Largest `a` with `(u0, u) + a (d0, d)` in the cone, whose interior holds `(u0, u)`.
fn reach(u0: f64, u: &[f64; 2], d0: f64, d: &[f64; 2]) -> f64 {
    // velocities, whose squares neither overflow nor vanish beside one another
    let n = dot(u, u).sqrt();
    let a = d0 * d0 - dot(d, d);
    let b = u0 * d0 - dot(u, d);
    let c = ((u0 - n) * (u0 + n)).max(0.0);
    let mut best = f64::INFINITY;
    let discriminant = b * b - a * c;
    if a.abs() < f64::MIN_POSITIVE {
        if b < 0.0 {
            best = -c / (2.0 * b);
        }
    } else if discriminant >= 0.0 {
        let q = -(b + discriminant.sqrt().copysign(b));
        let other = if q == 0.0 { f64::INFINITY } else { c / q };
        for r in [q / a, other] {
            if r > 0.0 && r < best {
                best = r;
            }
        }
    }
    if d0 < 0.0 {
        best = best.min(-u0 / d0);
    }
    best
}

impl Law {
    /// The bound of the friction impulse.
    #[inline(always)]
    pub fn bound_at(&self, l: &Local) -> f64 {
        self.mu * l.g + self.bound
    }

    /// On the central path at `nu`, given what the gap would be, the normal impulse before, and the sliding velocity.
    pub fn start(&self, gap: f64, before: f64, eta: [f64; 2], nu: f64) -> Local {
        let mut l = Local {
            s: 1.0,
            eta,
            ..Local::default()
        };
        if self.gap {
            let d = gap - before;
            let root = (d * d + 4.0 * nu).sqrt();
            if d > 0.0 {
                l.s = 0.5 * (d + root);
                l.g = nu / l.s;
            } else {
                l.g = 0.5 * (root - d);
                l.s = nu / l.g;
            }
        }
        if self.frictional {
            self.follow(&mut l, nu);
        }
        l
    }

    /// Friction on the central path at `nu` that goes with the sliding velocity and the normal impulse.
    pub fn follow(&self, l: &mut Local, nu: f64) {
        let u0 = self.bound_at(l);
        let a = nu / u0;
        l.psi = 0.5 * (a + (a * a + 4.0 * dot(&l.eta, &l.eta)).sqrt());
        l.b = l.eta.map(|e| -u0 * e / l.psi);
    }

    /// The point of the central path at `kappa` with the same `s - g` and `b - eta`.
    pub fn recentred(&self, l: &Local, kappa: f64) -> Local {
        let mut out = self.start(l.s, l.g, l.eta, kappa);
        if self.frictional {
            let u0 = self.bound_at(&out);
            let a = [l.b[0] - l.eta[0], l.b[1] - l.eta[1]];
            let size = a[0].hypot(a[1]);
            // u0 psi (1 - |a|^2/(u0 + psi)^2) = kappa, rising in psi where u0 + psi > |a|
            let product = |psi: f64| {
                let t = u0 + psi;
                u0 * psi * ((t - size) * (t + size) / (t * t)) - kappa
            };
            let mut low = (size - u0).max(0.0);
            let mut high = low + kappa / u0 + u0 + size;
            while product(high) < 0.0 {
                high += high - low;
            }
            for _ in 0..HALVINGS {
                let middle = 0.5 * (low + high);
                if product(middle) < 0.0 {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            out.psi = high;
            out.b = a.map(|a| a * u0 / (u0 + high));
            out.eta = a.map(|a| -a * high / (u0 + high));
        }
        out
    }

    /// The linearization at `l`.
    #[inline]
    pub fn linearize(&self, l: &Local) -> Linear {
        let mut out = Linear::default();
        if self.gap {
            out.normal = l.g / l.s;
        }
        if self.frictional {
            let (u0, psi) = (self.bound_at(l), 1.0 / l.psi);
            let den = 1.0 / (u0 - dot(&l.b, &l.eta) * psi);
            out.by_normal = (l.psi - dot(&l.eta, &l.eta) * psi) * self.mu * den;
            out.by_slide = [0, 1].map(|i| (l.b[i] - u0 * l.eta[i] * psi) * den);
            out.drag = [0, 1].map(|i| (l.b[i] * out.by_normal - self.mu * l.eta[i]) * psi);
            for i in 0..2 {
                for j in 0..2 {
                    let own = if i == j { u0 } else { 0.0 };
                    out.slide[i][j] = (own - l.b[i] * out.by_slide[j]) * psi;
                }
            }
            (out.den, out.psi) = (den, psi);
        }
        out
    }

    /// The right-hand side that leads to products `target`, given the gap's residual `phi/h - s`; `affine` is the direction
    /// whose second-order terms are corrected for.
    #[inline]
    pub fn target(
        &self,
        (l, linear): (&Local, &Linear),
        gap: f64,
        target: f64,
        affine: Option<&Local>,
    ) -> Target {
        let (mut product, mut r0) = (target, target);
        let mut along = [0.0; 2];
        if let Some(a) = affine {
            product -= a.s * a.g;
            let du0 = self.mu * a.g;
            r0 -= du0 * a.psi + dot(&a.b, &a.eta);
            along = [0, 1].map(|i| -(du0 * a.eta[i] + a.psi * a.b[i]));
        }
        let u0 = self.bound_at(l);
        self.response(
            (l, linear),
            gap,
            product - l.s * l.g,
            r0 - u0 * l.psi - dot(&l.b, &l.eta),
            [0, 1].map(|i| along[i] - u0 * l.eta[i] - l.psi * l.b[i]),
        )
    }

    /// The right-hand side of given residuals: of the gap, of `s g`, of the cone's scalar and vector part.
    #[inline]
    pub fn response(
        &self,
        (l, linear): (&Local, &Linear),
        gap: f64,
        product: f64,
        scalar: f64,
        vector: [f64; 2],
    ) -> Target {
        let mut out = Target {
            gap,
            ..Target::default()
        };
        if self.gap {
            out.c[0] = (product - l.g * gap) / l.s;
        }
        if self.frictional {
            out.psi = (scalar - dot(&l.eta, &vector) * linear.psi) * linear.den;
            let along =
                |i: usize| (vector[i] - l.b[i] * out.psi) * linear.psi + linear.drag[i] * out.c[0];
            (out.c[1], out.c[2]) = (along(0), along(1));
        }
        out
    }

    /// The change of all unknowns, given those of the gap (over the interval's length) and of the sliding velocity that
    /// come through the velocities.
    #[inline]
    pub fn recover(&self, linear: &Linear, target: &Target, gap: f64, eta: [f64; 2]) -> Local {
        let mut d = Local {
            eta,
            ..Local::default()
        };
        if self.gap {
            d.g = target.c[0] - linear.normal * gap;
            d.s = target.gap + gap;
        }
        if self.frictional {
            d.psi = target.psi - linear.by_normal * d.g - dot(&linear.by_slide, &eta);
            let along = |i: usize| {
                target.c[1 + i] - linear.drag[i] * linear.normal * gap - dot(&linear.slide[i], &eta)
            };
            d.b = [along(0), along(1)];
        }
        d
    }

    /// Takes the impulses that answer to the velocities of a direction, where they are known by themselves and the law is stiff. Those of
    /// a soft one follow from the velocities with a smaller error: the bound of friction may be far below the impulses beside it.
    pub fn take(&self, d: &mut Local, (linear, target): (&Linear, &Target), impulses: &[f64]) {
        if self.gap && linear.normal > 1.0 {
            d.g = target.c[0] + impulses[0];
        }
        if self.frictional {
            d.psi = target.psi - linear.by_normal * d.g - dot(&linear.by_slide, &d.eta);
            for (i, slide) in linear.slide.iter().enumerate() {
                d.b[i] = target.c[1 + i];
                if slide[0].abs().max(slide[1].abs()) > 1.0 {
                    d.b[i] += impulses[1 + i];
                } else if self.gap {
                    d.b[i] += linear.drag[i] * (d.g - target.c[0]) - dot(slide, &d.eta);
                } else {
                    d.b[i] -= dot(slide, &d.eta);
                }
            }
        }
    }

    /// Largest step along `d` that stays in the cones.
    #[inline]
    pub fn reach(&self, l: &Local, d: &Local) -> f64 {
        let mut a = self.reach_of_gap(l, d);
        if self.frictional {
            let du0 = self.mu * d.g;
            a = a
                .min(reach(self.bound_at(l), &l.b, du0, &d.b))
                .min(reach(l.psi, &l.eta, d.psi, &d.eta));
        }
        a
    }

    /// The same of the gap and its impulse alone.
    #[inline]
    pub fn reach_of_gap(&self, l: &Local, d: &Local) -> f64 {
        let mut a = f64::INFINITY;
        if self.gap {
            for (x, dx) in [(l.s, d.s), (l.g, d.g)] {
                if dx < 0.0 {
                    a = a.min(-x / dx);
                }
            }
        }
        a
    }

    /// Sum and number of the products, and their largest deviation from `kappa`.
    #[inline]
    pub fn products(&self, l: &Local, kappa: f64) -> (f64, f64, f64) {
        let (mut sum, mut count, mut off) = (0.0, 0.0, 0.0_f64);
        if self.gap {
            let p = l.s * l.g;
            (sum, count, off) = (p, 1.0, (p - kappa).abs());
        }
        if self.frictional {
            let u0 = self.bound_at(l);
            let p = u0 * l.psi + dot(&l.b, &l.eta);
            sum += p;
            count += 1.0;
            off = off.max((p - kappa).abs());
            for (eta, b) in l.eta.iter().zip(&l.b) {
                off = off.max((u0 * eta + l.psi * b).abs());
            }
        }
        (sum, count, off)
    }
}
