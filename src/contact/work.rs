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
use crate::mechanism::{Mechanism, Row, dot, vec3};

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

/// Work at a knot in the making. An integrator replaces its rows, wrenches on bodies, by the changes of velocities that they cause
/// within the joints, after [`Layout::begin_work`] and before [`Layout::end_work`].
pub(crate) struct KnotBooks {
    /// Momenta before the knot and blows until the velocities that are read; unless it is the last knot, momenta after it and blows
    /// of the whole knot.
    pub rows: Vec<Vec<f64>>,
    /// Impulses of each element, normal and tangents, until the velocities that are read, and of the whole knot.
    impulses: [Vec<[f64; 3]>; 2],
    /// Wrenches on the bodies of those of them that are blows, and of those that only hold.
    wrenches: [[Vec<f64>; 2]; 2],
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

/// Product of wrenches with velocities, J.
fn product(wrenches: &[f64], v: impl Iterator<Item = f64>) -> f64 {
    wrenches.iter().zip(v).map(|(f, v)| f * v).sum()
}

impl Layout {
    /// Adds the wrenches of the impulses at hand.
    pub(crate) fn add_impulses(&self, memory: &Memory, rows: &mut [f64]) {
        if memory.idle {
            return;
        }
        for (e, slot) in memory.elements.iter().zip(&self.slots) {
            e.add_impulses(slot, e.local.impulses(), 1.0, rows);
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
        let mut rows = vec![vec![0.0; dim]; if y.is_empty() { 2 } else { 4 }];
        let wrenches = [0, 1].map(|k| self.wrenches(memory, &impulses[k], stands));
        for (pair, [blows, _]) in rows.chunks_exact_mut(2).zip(&wrenches) {
            pair[1][..blows.len()].copy_from_slice(blows);
        }
        momenta(w.model, w.before, -w.at.h_prev, &mut rows[0]);
        if let Some(row) = rows.get_mut(2) {
            momenta(w.model, after, h, row);
        }
        KnotBooks {
            rows,
            impulses,
            wrenches,
        }
    }

    /// Wrenches on the bodies of the elements' impulses: of those that are blows, and of those that stand.
    fn wrenches(&self, memory: &Memory, impulses: &[[f64; 3]], stands: &[bool]) -> [Vec<f64>; 2] {
        let mut out = [0, 1].map(|_| vec![0.0; 6 * self.sizes.len()]);
        let each = memory.elements.iter().zip(&self.slots);
        for ((e, slot), (part, stands)) in each.zip(impulses.iter().zip(stands)) {
            e.add_impulses(slot, *part, 1.0, &mut out[usize::from(*stands)]);
        }
        out
    }

    /// Ends with the rows solved for.
    ///
    /// Impulses of forces and dampers times the change by blows are `J' (b - a) - J x`, because the map from impulses to changes of
    /// velocities is symmetric.
    pub(crate) fn end_work(&self, w: &View, memory: &Memory, books: KnotBooks) -> KnotWork {
        let n = 6 * w.poses.len();
        let rows: Vec<_> = books.rows.iter().map(|row| &row[..n]).collect();
        let exchange = |k: usize, after: &[f64]| {
            let [mean, change] = mean_and_change(rows[0], after);
            let blow = rows[2 * k + 1].to_vec();
            let [blows, holds] = &books.wrenches[k];
            let rest = change.iter().zip(&blow).map(|(change, blow)| change - blow);
            Exchange {
                work: self.work(memory, &books.impulses[k], &mean),
                others_on_blow: product(blows, rest) - product(holds, blow.iter().copied()),
                mean,
                change,
                blow,
            }
        };
        KnotWork {
            before: exchange(0, &w.trial[..n]),
            whole: rows.get(2).map(|after| exchange(1, after)),
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
            let work = |row: &Row, size: f64| match size {
                0.0 => 0.0,
                _ => slot.mass * size * dot(mean, slot.parent, slot.child, row),
            };
            out.impacts += work(&e.normal, own[0]);
            let friction = work(&e.tangents[0], own[1]) + work(&e.tangents[1], own[2]);
            given += friction.max(0.0);
            out.friction += friction;
        }
        let spent = given.min(-out.impacts).max(0.0);
        out.friction -= spent;
        out.impacts += spent;
        out
    }
}
