//! Contacts in a program: what bounds their unknowns, and their modes once these are known.

use crate::contact::UNKNOWNS;
use crate::dynamics::ContactUnknowns;

/// What a contact does over a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Without impulse; its gap over the interval is at least this, m/s, and its sliding speed was that.
    Open { gap: f64, speed: f64 },
    /// Without a gap, or friction of a joint: with sliding, or without.
    Touching { slides: bool },
}

/// A facet of a contact's friction cone: `normal g - across . b >= 0`, by places among a step's unknowns.
#[derive(Clone, Copy, Debug)]
pub struct Facet {
    contact: usize,
    /// The impulse, and its factor.
    pub normal: (usize, f64),
    /// Friction's numbers, and their factors.
    pub across: [(usize, f64); 2],
    /// The impulse's factor of the facet with the same direction that is inside the cone.
    inscribed: f64,
}

impl Facet {
    /// How far inside it unknowns are.
    pub fn at(&self, y: &[f64]) -> f64 {
        let along = self.across.map(|(i, factor)| factor * y[i]);
        self.normal.1 * y[self.normal.0] - along[0] - along[1]
    }

    /// Derivatives by the unknowns.
    pub fn slopes(&self) -> [(usize, f64); 3] {
        let [a, b] = self.across.map(|(i, factor)| (i, -factor));
        [self.normal, a, b]
    }
}

/// Facets around a cone in space. In a plane it has two sides, and these are the cone.
const FACETS: usize = 8;
/// What touches pushes at least so much; what does not slide is so far inside its cone, and what does is at least so fast; m/s
/// (an impulse by its mass). The steps that a plan is simulated by follow the central path to its end of some 1e-10 m^2/s^2,
/// and round corners by its root; and what is to slide but stands would be held by more friction than there is.
const INSIDE: f64 = 1e-3;

/// The contacts of a program.
pub struct Contacts {
    each: Vec<ContactUnknowns>,
    /// Around the friction cones of a step's contacts, whose coefficient is a number. On the central path the law keeps
    /// friction inside its cone; that iterates stay there as well decides whether the next point of the path is found from
    /// one (a hopper's stride: in some 60 iterations in all, without facets not at all).
    facets: Vec<Facet>,
    /// Step by step, of each; none while they are open questions.
    modes: Vec<Mode>,
}

impl Contacts {
    pub fn new(each: Vec<ContactUnknowns>) -> Self {
        let all = each.iter().enumerate();
        Self {
            facets: all.flat_map(|(i, c)| facets(i, c)).collect(),
            each,
            modes: vec![],
        }
    }

    /// Is that one of the unknowns of a contact, and so one of its rows?
    pub fn has_row(&self, row: usize) -> bool {
        (self.each.iter()).any(|c| (c.first..c.first + UNKNOWNS).contains(&row))
    }

    pub fn any(&self) -> bool {
        !self.each.is_empty()
    }

    /// The modes of a step's contacts.
    fn modes(&self, k: usize) -> impl Iterator<Item = (&ContactUnknowns, Option<Mode>)> {
        let count = self.each.len();
        let own = move |i: usize| self.modes.get(k * count + i).copied();
        self.each.iter().enumerate().map(move |(i, c)| (c, own(i)))
    }

    /// Bounds of a step's unknowns, between these intervals where both are fixed.
    pub fn bound(&self, k: usize, intervals: Option<[f64; 2]>, out: &mut [(f64, f64)]) {
        const HELD: (f64, f64) = (0.0, 0.0);
        const POSITIVE: (f64, f64) = (0.0, f64::INFINITY);
        for (c, mode) in self.modes(k) {
            let out = &mut out[c.first..c.first + 5];
            if c.has_gap {
                (out[0], out[1]) = (POSITIVE, POSITIVE);
            }
            if c.has_friction {
                out[2] = POSITIVE;
                for (out, slides) in out[3..].iter_mut().zip(c.slides) {
                    if !slides {
                        *out = HELD;
                    }
                }
            }
            match mode {
                None => {}
                Some(Mode::Open { gap, speed }) => {
                    out[0] = (gap, f64::INFINITY);
                    out[1] = HELD;
                    out[2] = (speed, speed);
                    (out[3], out[4]) = (HELD, HELD);
                }
                Some(Mode::Touching { slides }) => {
                    if c.has_gap {
                        (out[0], out[1].0) = (HELD, INSIDE);
                    }
                    if c.has_friction {
                        out[2] = match slides {
                            true => (INSIDE, f64::INFINITY),
                            false => HELD,
                        };
                        let bound = intervals.and_then(|[h_prev, h]| c.friction_bound(h_prev, h));
                        if let (false, Some(u0)) = (slides, bound) {
                            // what keeps friction in its bound on the path is freed, as with facets
                            let most = (u0 - INSIDE).max(0.5 * u0);
                            out[3] = (-most, most);
                        }
                    }
                }
            }
        }
    }

    /// Facets of a step, in the order of their rows.
    pub fn facets(&self) -> &[Facet] {
        &self.facets
    }

    /// Bounds of the rows of a step's facets.
    pub fn bound_facets(&self, k: usize, out: &mut [(f64, f64)]) {
        for (f, to) in self.facets.iter().zip(out) {
            to.0 = match self.modes.get(k * self.each.len() + f.contact) {
                None => 0.0,
                Some(Mode::Touching { slides: false }) => INSIDE,
                Some(_) => f64::NEG_INFINITY,
            };
            to.1 = f64::INFINITY;
        }
    }

    /// Frees the rows that hold by what is held.
    pub fn free(&self, k: usize, out: &mut [(f64, f64)]) {
        const FREE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
        for (c, mode) in self.modes(k) {
            let rows = &mut out[c.first..c.first + 5];
            for (row, slides) in rows[3..].iter_mut().zip(c.slides) {
                if c.has_friction && !slides {
                    *row = FREE;
                }
            }
            match mode {
                None => {}
                Some(Mode::Open { .. }) => rows[1..].fill(FREE),
                Some(Mode::Touching { slides }) => {
                    if c.has_gap {
                        rows[1] = FREE;
                    }
                    if c.has_friction && !slides {
                        rows[2] = FREE;
                    }
                }
            }
        }
    }

    /// Reads the modes of unknowns on the central path: whichever of two that are complementary is larger is not zero.
    pub fn freeze<'a>(
        &mut self,
        unknowns: impl Iterator<Item = &'a [f64]>,
        intervals: &[f64],
        kappa: f64,
        margin: f64,
    ) {
        self.modes.clear();
        for f in &mut self.facets {
            f.normal.1 = f.inscribed;
        }
        for (y, h) in unknowns.zip(intervals) {
            for c in &self.each {
                let own = &y[c.first..c.first + 5];
                let (normal, speed) = (own[1], own[2]);
                self.modes.push(if c.has_gap && normal * normal <= kappa {
                    Mode::Open {
                        gap: margin / (c.share * h),
                        speed,
                    }
                } else {
                    Mode::Touching {
                        slides: 2.0 * speed * speed > kappa,
                    }
                });
            }
        }
    }
}

/// The facets around a contact's cone.
fn facets(contact: usize, c: &ContactUnknowns) -> Vec<Facet> {
    let Some(coefficient) = c.coefficient.filter(|_| c.has_friction) else {
        return vec![];
    };
    let (turns, inscribed) = match c.slides {
        [true, true] => {
            let turns = (0..FACETS).map(|i| i as f64 / FACETS as f64);
            let inscribed = (std::f64::consts::PI / FACETS as f64).cos();
            (turns.collect(), inscribed)
        }
        [true, false] => (vec![0.0, 0.5], 1.0),
        [false, true] => (vec![0.25, 0.75], 1.0),
        [false, false] => return vec![],
    };
    let facet = |turn: f64| {
        let (sin, cos) = (std::f64::consts::TAU * turn).sin_cos();
        Facet {
            contact,
            normal: (c.first + 1, coefficient),
            across: [(c.first + 3, cos), (c.first + 4, sin)],
            inscribed: inscribed * coefficient,
        }
    };
    turns.into_iter().map(facet).collect()
}
