//! One element and its law, whichever cone it has.

use super::Element;
use super::cone::{Local, Target};
use super::pyramid::{Facets, Pyramid, Residuals};

/// Part of its bound below which friction held what it acted on: at the end of the path that of what slides is nearer to one by many
/// digits.
const STICKING: f64 = 0.99;

/// The facets of an element, where its cone has any.
pub(super) type Sides<'a> = Option<(&'a Pyramid, &'a mut Facets)>;

impl Element {
    /// Onto the central path at `nu`, for the gap and the sliding velocity last evaluated and the normal impulse of
    /// before.
    pub fn start(&mut self, sides: Sides, nu: f64) {
        self.follows = None;
        self.local = self.law.start(self.gap, self.local.g, self.local.eta, nu);
        if let Some((pyramid, f)) = sides {
            pyramid.start(&self.law, &mut self.local, f, nu);
        }
    }

    /// Onto the central path at `nu` from unknowns that are those of the step but for its end, at the sliding velocity
    /// last evaluated. That determines friction only where it slides: where it sticks, what the impulse was is kept.
    pub fn resume(&mut self, sides: Sides, nu: f64) {
        let near = self.law.recentred(&self.local, nu);
        let eta = self.local.eta;
        if sides.is_some() || self.law.frictional && eta[0].hypot(eta[1]) >= near.psi {
            // friction that drives what it is to hold back is no start
            return self.start(sides, nu);
        }
        self.follows = None;
        self.local = Local { eta, ..near };
    }

    /// At the end of the path, touching, sticking or sliding as in the step before; false where that cannot be, for what comes to touch.
    pub fn remain(&mut self, sides: Sides, kappa: f64) -> bool {
        let before = self.local;
        let touches = before.g >= before.s;
        if sides.is_some() || self.law.gap && !touches && self.gap <= 0.0 {
            return false;
        }
        let mut l = before;
        if self.law.gap {
            (l.s, l.g) = match touches {
                true => (kappa / before.g, before.g),
                false => (self.gap, kappa / self.gap),
            };
        }
        self.follows = None;
        if self.law.frictional {
            let (u0, own) = (self.law.bound_at(&before), self.law.bound_at(&l));
            let sticks = before.b[0].hypot(before.b[1]) < STICKING * u0;
            if sticks && (touches || !self.law.gap) {
                // in the cone with the sliding velocity, which is to vanish
                l.psi = (kappa / own).max(2.0 * l.eta[0].hypot(l.eta[1]));
            } else {
                self.law.follow(&mut l, kappa);
                self.follows = Some(kappa);
            }
        }
        self.local = l;
        true
    }

    /// Friction goes with the sliding velocity, on the central path at `kappa`, if it slides; does it?
    pub fn slide_freely(&mut self, sides: Sides, kappa: f64) -> bool {
        let l = &mut self.local;
        let slides = self.law.frictional
            && sides.is_none()
            && l.b[0].hypot(l.b[1]) >= STICKING * self.law.bound_at(l);
        if slides {
            self.law.follow(l, kappa);
            self.follows = Some(kappa);
        }
        slides
    }

    /// Onto the central path at a larger parameter.
    pub fn recentre(&mut self, sides: Sides, kappa: f64) {
        self.local = match sides {
            Some((pyramid, f)) => pyramid.recentred(&self.law, &self.local, f, kappa),
            None => self.law.recentred(&self.local, kappa),
        };
    }

    pub fn linearize(&mut self, sides: Sides) {
        self.is_unknown = false;
        self.linear = match sides {
            Some((pyramid, f)) => pyramid.linearize(&self.law, &self.local, f),
            None => self.law.linearize(&self.local),
        };
    }

    /// The right-hand side that leads to products `target`.
    pub fn aim(&mut self, sides: Sides, target: f64, corrected: bool) {
        let mut gap = self.gap - self.local.s;
        if gap.abs() <= self.noise {
            // where a body touches in more points than hold it, rounding of the gaps would change the impulses much
            gap = 0.0;
        }
        let affine = corrected.then_some(&self.affine);
        let at = (&self.local, &self.linear);
        self.target = match sides {
            Some((pyramid, f)) => {
                f.bound = 0.0;
                pyramid.compare(&self.local, f, self.slip_noise);
                let r = pyramid.residuals(&self.local, f, target, affine);
                pyramid.response(at, f, gap, &r)
            }
            None => self.law.target(at, gap, target, affine),
        };
    }

    /// No residual of the law is chased.
    pub fn hold(&mut self, sides: Sides) {
        self.target = Target::default();
        if let Some((_, f)) = sides {
            f.hold();
        }
    }

    /// The direction, given what comes through the velocities and, if they are known by themselves, the impulses that answer to it;
    /// returns how far it may be followed.
    pub fn recover(
        &mut self,
        sides: Sides,
        gap: f64,
        eta: [f64; 2],
        impulses: Option<&[f64]>,
    ) -> f64 {
        self.direction = self.law.recover(&self.linear, &self.target, gap, eta);
        if let (Some(impulses), None) = (impulses, &sides) {
            let at = (&self.linear, &self.target);
            self.law.take(&mut self.direction, at, impulses);
        }
        match sides {
            Some((pyramid, f)) => {
                pyramid.recover(&self.law, &self.direction, f);
                pyramid.reach(&self.local, &self.direction, f)
            }
            None if self.follows.is_some() => self.law.reach_of_gap(&self.local, &self.direction),
            None => self.law.reach(&self.local, &self.direction),
        }
    }

    pub fn advance(&mut self, sides: Sides, length: f64) {
        self.local = self.local.moved(&self.direction, length);
        if let Some(kappa) = self.follows {
            self.law.follow(&mut self.local, kappa);
        }
        if let Some((_, f)) = sides {
            f.at = f.at.moved(&f.direction, length);
        }
    }

    /// Sum, number and largest deviation from `kappa` of the products a step along the direction would leave.
    pub fn products(
        &self,
        sides: Option<(&Pyramid, &Facets)>,
        length: f64,
        kappa: f64,
    ) -> (f64, f64, f64) {
        let moved = |l: &Local| {
            if length == 0.0 {
                *l
            } else {
                l.moved(&self.direction, length)
            }
        };
        match sides {
            Some((pyramid, f)) => {
                let at = f.at.moved(&f.direction, length);
                pyramid.products(&moved(&self.local), &at, kappa)
            }
            None => self.law.products(&moved(&self.local), kappa),
        }
    }

    /// How far `scale` times the direction may be followed.
    pub fn reach(&self, sides: Sides, scale: f64) -> f64 {
        let d = Local::default().moved(&self.direction, scale);
        match sides {
            Some((pyramid, f)) => pyramid.reach(&self.local, &d, &f.scaled(scale)),
            None => self.law.reach(&self.local, &d),
        }
    }

    /// The right-hand side of residuals of the gap, of all products, and of a change of the friction bound.
    pub fn target_of(&self, sides: Sides, gap: f64, products: f64, bound: f64) -> Target {
        let (l, at) = (&self.local, (&self.local, &self.linear));
        match sides {
            Some((pyramid, f)) => {
                let r = Residuals {
                    product: products,
                    facets: [products; super::pyramid::MOST],
                    top: products - l.psi * bound,
                };
                f.bound = bound;
                f.keep();
                pyramid.response(at, f, gap, &r)
            }
            None => {
                let vector = l.eta.map(|e| -e * bound);
                self.law
                    .response(at, gap, products, products - l.psi * bound, vector)
            }
        }
    }

    /// Change of all unknowns by the same.
    pub fn answer(&self, sides: Sides, gap: f64, products: f64, bound: f64) -> Local {
        let target = self.target_of(sides, gap, products, bound);
        self.law.recover(&self.linear, &target, 0.0, [0.0; 2])
    }
}
