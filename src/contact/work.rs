//! Work of contacts, limits and joint friction.
//!
//! At a knot the momenta of the intervals before and after it balance the impulses that act there,
//!
//! ```text
//! M (b - a) = G- + G+ + D + J,
//! ```
//!
//! `a` and `b` the velocities of these intervals, as far as the joints allow them at the knot, `G-` and `G+` the impulses of forces
//! over half of either interval, `D` those of dampers and `J` those of what touches. The kinetic energy changes by the product of
//! each with `(a + b)/2`. A force over an interval works along its displacement instead, `G- . a + G+ . b`: to second order whatever
//! happens at the knot, and as potential energies change. So that the sum is exact where something strikes, what touches has the
//! rest
//!
//! ```text
//! J . (a + b)/2 + (G- - G+) . x/2,     x = M^-1 J' the change of the velocities by impulses J' of blows.
//! ```
//!
//! Velocities read at the knot, `v`, add the same of the half before it, from `a` to `v`, with `G+ = 0`. The energy error is then
//! `G- . (v - a - x)/2` less its value at the start. What has stood since the start only holds, and is no blow: a light leg that is
//! pushed against the ground would be thrown far by its push in half a step. Of all else `J' = J`, so that the error is that of
//! the free motion, and constant forces do exactly their work whatever they drive against what.

use super::{BLOW, Element, IMPULSES, Layout, Memory, UNKNOWNS, View};
use crate::mechanism::{Mechanism, add_wrench, dot, vec3};

/// Impulse by the contact's mass, m/s, from which something stands: a thousandth of what gravity gives in a step of 0.1 ms, and far above
/// what the central path leaves at open gaps.
const LOADED: f64 = 1e-6;

/// Work done at a knot, J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ContactWork {
    /// By friction.
    pub friction: f64,
    /// Along normals: by impacts.
    pub impacts: f64,
}

impl std::ops::AddAssign for ContactWork {
    fn add_assign(&mut self, other: Self) {
        self.friction += other.friction;
        self.impacts += other.impacts;
    }
}

/// What impulses at a knot change, velocities six a body.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Work of what touches, with the mean of the velocities.
    pub work: ContactWork,
    /// Mean of the velocities before and after them.
    pub mean: Vec<f64>,
    /// Change of the velocities by all impulses.
    pub change: Vec<f64>,
    /// The part of it by blows.
    pub blow: Vec<f64>,
    /// Product of the impulses of forces and dampers with the change by blows, J.
    pub others_on_blow: f64,
}

/// Work of what touches at a knot.
#[derive(Clone, Debug, Default)]
pub struct KnotWork {
    /// From the interval before to the velocities that are read.
    pub before: Exchange,
    /// From the interval before to the one after; none at the end.
    pub whole: Option<Exchange>,
}

/// Work at a knot in the making. An integrator turns its rows, wrenches on bodies, into the changes of velocities that they cause
/// within the joints, once after each of [`Layout::begin_work`] and [`Layout::add_blows`].
pub(crate) struct KnotBooks {
    /// Impulses and momenta; then the blows of either exchange.
    pub rows: Vec<Vec<f64>>,
    /// Impulses of each element, normal and tangents, until the velocities that are read, and of the whole knot.
    impulses: [Vec<[f64; 3]>; 2],
    exchanges: [Exchange; 2],
    ends: bool,
}

/// Momenta of bodies that move with these velocities over an interval, at its start; at its end where that is negative.
fn momenta(m: &Mechanism, v: &[f64], h: f64, out: &mut [f64]) {
    for (b, body) in m.bodies.iter().enumerate() {
        let (linear, omega) = (vec3(v, 6 * b) * body.mass, vec3(v, 6 * b + 3));
        let scalar = body.rotation.scalar(&omega, h);
        let angular = body.rotation.momentum(&omega, &body.inertia, h, scalar);
        out[6 * b..6 * b + 3].copy_from_slice(linear.as_slice());
        out[6 * b + 3..6 * b + 6].copy_from_slice(angular.as_slice());
    }
}

/// Half of the sum, and the difference, of two velocities.
fn mean_and_change(a: &[f64], b: &[f64]) -> [Vec<f64>; 2] {
    let each = || a.iter().zip(b);
    [
        each().map(|(a, b)| 0.5 * (a + b)).collect(),
        each().map(|(a, b)| b - a).collect(),
    ]
}

impl Layout {
    /// Adds the wrenches of the impulses at hand.
    pub(crate) fn add_impulses(&self, memory: &Memory, rows: &mut [f64]) {
        if memory.idle {
            return;
        }
        for (e, slot) in memory.elements.iter().zip(&self.slots) {
            for (row, size) in e.rows().into_iter().zip(e.local.impulses()) {
                add_wrench(rows, slot.parent, slot.child, row, slot.mass * size);
            }
        }
    }

    /// The impulses of an element, normal and tangents, until the instant of the read-out, and those of the whole knot, blows
    /// included.
    fn parts(&self, memory: &Memory, (i, e): (usize, &Element), y: &[f64]) -> [[f64; 3]; 2] {
        let read = if memory.idle {
            [0.0; 3]
        } else {
            e.local.impulses()
        };
        if y.is_empty() {
            return [read; 2];
        }
        let own = &y[self.rows + UNKNOWNS * i..];
        let mut all = IMPULSES.map(|place| own[place]);
        if let Some(blow) = y[self.blows()].chunks_exact(BLOW).nth(i) {
            all.iter_mut().zip(&blow[1..]).for_each(|(a, b)| *a += b);
        }
        [read, all]
    }

    /// Begins the work of what touches at a knot, after the velocities there were read. `y` are the unknowns of the step from the knot,
    /// empty at the last one, `after` the velocities over its interval `h`, and `dim` the length of rows. At the start of a
    /// trajectory `stands` is empty; it then keeps which elements have been loaded at every knot so far.
    pub(crate) fn begin_work(
        &self,
        w: &View,
        memory: &Memory,
        (y, after, h): (&[f64], &[f64], f64),
        dim: usize,
        stands: &mut Vec<bool>,
    ) -> KnotBooks {
        let ends = y.is_empty();
        let each = memory.elements.iter().enumerate();
        let parts: Vec<_> = each.map(|e| self.parts(memory, e, y)).collect();
        let impulses = [0, 1].map(|k| parts.iter().map(|p| p[k]).collect::<Vec<_>>());
        let loaded = memory.elements.iter().zip(&impulses[1]);
        let loaded = loaded.map(|(e, impulses)| e.law.gap && impulses[0] > LOADED);
        if stands.len() == parts.len() {
            stands.iter_mut().zip(loaded).for_each(|(s, l)| *s &= l);
        } else {
            *stands = loaded.collect();
        }
        let mut rows = vec![vec![0.0; dim]; if ends { 2 } else { 4 }];
        for (rows, impulses) in rows.iter_mut().step_by(2).zip(&impulses) {
            self.exert(memory, impulses, rows);
        }
        momenta(w.model, w.before, -w.at.h_prev, &mut rows[1]);
        if !ends {
            momenta(w.model, after, h, &mut rows[3]);
        }
        KnotBooks {
            rows,
            impulses,
            exchanges: Default::default(),
            ends,
        }
    }

    /// Adds the wrenches of the elements' impulses to the rows of the bodies.
    fn exert(&self, memory: &Memory, impulses: &[[f64; 3]], rows: &mut [f64]) {
        for ((e, slot), part) in memory.elements.iter().zip(&self.slots).zip(impulses) {
            for (row, size) in e.rows().into_iter().zip(part) {
                add_wrench(rows, slot.parent, slot.child, row, slot.mass * size);
            }
        }
    }

    /// Goes on with the rows solved for: the velocities at both ends of either exchange, the work, and the blows to be solved for.
    pub(crate) fn add_blows(
        &self,
        w: &View,
        memory: &Memory,
        stands: &[bool],
        books: &mut KnotBooks,
    ) {
        let n = 6 * w.poses.len();
        let rows = std::mem::take(&mut books.rows);
        let count = if books.ends { 1 } else { 2 };
        for k in 0..count {
            let (by_impulses, a) = (&rows[2 * k][..n], &rows[1][..n]);
            let b = if k == 0 { &w.trial[..n] } else { &rows[3][..n] };
            let [mean, change] = mean_and_change(a, b);
            let (mut blows, mut others) = (books.impulses[k].clone(), 0.0);
            let each = memory.elements.iter().zip(&self.slots).zip(stands);
            for (((e, slot), stands), own) in each.zip(&mut blows) {
                if *stands {
                    *own = [0.0; 3];
                    continue;
                }
                for (row, size) in e.rows().into_iter().zip(&*own) {
                    let along = |v: &[f64]| dot(v, slot.parent, slot.child, row);
                    others += slot.mass * size * (along(&change) - along(by_impulses));
                }
            }
            let mut row = vec![0.0; rows[0].len()];
            self.exert(memory, &blows, &mut row);
            books.rows.push(row);
            let work = self.work(memory, &books.impulses[k], &mean);
            books.exchanges[k] = Exchange {
                work,
                mean,
                change,
                blow: vec![],
                others_on_blow: others,
            };
        }
    }

    /// Ends with the blows solved for.
    pub(crate) fn end_work(&self, w: &View, books: KnotBooks) -> KnotWork {
        let n = 6 * w.poses.len();
        let ends = books.ends;
        let [mut before, mut whole] = books.exchanges;
        let mut rows = books.rows.into_iter();
        for exchange in [&mut before, &mut whole] {
            exchange.blow = rows.next().unwrap_or_default();
            exchange.blow.truncate(n);
        }
        KnotWork {
            before,
            whole: (!ends).then_some(whole),
        }
    }

    /// Work of impulses along velocities.
    ///
    /// How simultaneous impulses share what they do to each other is not determined. Where a blow would turn the slip that
    /// friction then stops, the mean has friction drive what it only holds back; as friction never gives energy, what it
    /// would give is counted as spent by the blows of the same instant, up to all that they spend.
    fn work(&self, memory: &Memory, impulses: &[[f64; 3]], mean: &[f64]) -> ContactWork {
        let (mut out, mut given) = (ContactWork::default(), 0.0);
        for ((e, slot), own) in memory.elements.iter().zip(&self.slots).zip(impulses) {
            let mut friction = 0.0;
            for (k, (row, size)) in e.rows().into_iter().zip(own).enumerate() {
                let work = slot.mass * size * dot(mean, slot.parent, slot.child, row);
                if k > 0 {
                    friction += work;
                } else {
                    out.impacts += work;
                }
            }
            given += friction.max(0.0);
            out.friction += friction;
        }
        let spent = given.min(-out.impacts).max(0.0);
        out.friction -= spent;
        out.impacts += spent;
        out
    }
}
