//! Contacts in a program: what bounds their unknowns, and their modes once these are known.

use crate::dynamics::ContactUnknowns;

/// What a contact does over a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Without impulse; its gap over the interval is at least this, m/s, and its sliding speed was that.
    Open { gap: f64, speed: f64 },
    /// Without a gap, or friction of a joint: with sliding, or without.
    Touching { slides: bool },
}

/// The contacts of a program.
pub struct Contacts {
    each: Vec<ContactUnknowns>,
    /// Step by step, of each; none while they are open questions.
    modes: Vec<Mode>,
}

impl Contacts {
    pub fn new(each: Vec<ContactUnknowns>) -> Self {
        Self {
            each,
            modes: vec![],
        }
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

    /// Bounds of a step's unknowns.
    pub fn bound(&self, k: usize, out: &mut [(f64, f64)]) {
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
                        out[0] = HELD;
                    }
                    if c.has_friction && !slides {
                        out[2] = HELD;
                    }
                }
            }
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
        for (y, h) in unknowns.zip(intervals) {
            for c in &self.each {
                let own = &y[c.first..c.first + 5];
                let (normal, speed) = (own[1], own[2]);
                self.modes.push(if c.has_gap && normal * normal <= kappa {
                    Mode::Open {
                        gap: margin / h,
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
