//! Work of contacts, limits and joint friction.
//!
//! At a knot the momenta of the intervals before and after it balance the impulses that act there,
//!
//! ```text
//! M (b - a) = G- + G+ + D + J,
//! ```
//!
//! `a` and `b` the velocities of these intervals, as far as the joints allow them at the knot, `G-` and `G+` the impulses of forces
//! over half of either interval, `D` those of dampers and of friction in joints, and `J` those of what touches. The kinetic energy changes
//! by the product of each with `(a + b)/2`. A force over an interval works along its displacement instead, `G- . a + G+ . b`: to second order whatever
//! happens at the knot, and as potential energies change. So that the sum is exact where something strikes, what touches has the
//! rest
//!
//! ```text
//! J . (a + b)/2 + (G- - G+) . (b - a)/2 - (T- - T+)/2,     T = F . y.
//! ```
//!
//! `T` is the error of the motion: half of an impulse acts at either end of an interval, between the velocity at the knot and that
//! of the interval, so that the energy read at a knot has `T-/2` too much. `F` are the impulses of forces and explicit dampers over half of
//! an interval, and `N` those together with implicit dampers, which act at the knot: a spring that a strong damper holds back does not
//! throw what is light. `y` is the change of the velocities by `N` if what is loaded over its interval lets nothing move, and friction in
//! joints holds back what it can: a light foot that is pushed against the ground stays where it is, however far its push would throw it in
//! half a step. The energy error is then the sum over the intervals of `T-/2` at their end less `T+/2` at their start: constant forces do
//! exactly their work, whatever they drive against what, and blows, and what comes to touch or leaves, add nothing. With the rows `C` of
//! what is loaded, the normals, the tangents of what friction holds, and the directions of joints with friction,
//!
//! ```text
//! y = g - X p,     C y = 0 or |p| at its bound,     g = M^-1 N,  X = M^-1 C'.
//! ```
//!
//! `p` has a bound in joints alone, that of friction over half of the interval; which way a joint slides does not matter. Over the interval
//! before, implicit dampers take what they would without the impulses of what was not loaded then: what they do to a blow is no part of `N`.
//!
//! Velocities read at the knot, `v`, add the same of the half before it, from `a` to `v`, with `G+ = 0`.

use super::blow::PLACE;
use super::{BLOW, Element, IMPULSES, Layout, Memory, Source, UNKNOWNS, View};
use crate::mechanism::{Mechanism, Meeting, Row, add_wrench, dot, vec3};
use nalgebra::{DMatrix, DVector};

/// Impulse by the contact's mass, m/s, from which something is loaded: a thousandth of what gravity gives in a step of 0.1 ms, and far above
/// what the central path leaves at open gaps.
const LOADED: f64 = 1e-6;
/// Share of the largest friction below which it holds: the cone of what slides is used up to the central path's `kappa`.
const HOLDS: f64 = 0.99;
/// Part of the contact's mass that a direction gives way by if joints hold it: far above rounding.
const IMMOBILE: f64 = 1e-9;
/// What is added to the diagonal of `K`, by its size, so that places which hold the same can be solved for.
const REDUNDANT: f64 = 1e-10;

/// Where rows of [`KnotBooks`] stand. Row 0 has the momenta before the knot.
const TOUCH: usize = 1;
const EXPLICIT: usize = 2;
const IMPLICIT: usize = 3;
const UNSTRUCK: usize = 4;
/// The row of the momenta after the knot. The impulses of the whole knot follow it in the same order.
const AFTER: usize = 5;
/// Number of rows of the whole knot.
const WHOLE: usize = 4;

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
    /// Work of what touches.
    pub work: ContactWork,
    /// Mean of the velocities before and after them.
    pub mean: Vec<f64>,
    /// Changes of the velocities by forces and dampers before and after the knot, `y`.
    pub yields: [Vec<f64>; 2],
}

/// How many directions of each element are loaded over the interval before a knot: none, the normal, or with tangents that friction holds
/// three. Empty at the start of a trajectory.
#[derive(Clone, Debug, Default)]
pub struct Loads(Vec<usize>);

/// Work of what touches at a knot.
#[derive(Clone, Debug, Default)]
pub struct KnotWork {
    /// From the interval before to the velocities that are read.
    pub before: Exchange,
    /// From the interval before to the one after; none at the end.
    pub whole: Option<Exchange>,
    /// Does something bounce there? The step then starts anew from the velocities after the blow.
    pub bounces: bool,
}

/// Work at a knot in the making. An integrator replaces its rows, wrenches on bodies, by the changes of velocities that they cause
/// within the joints, after [`Layout::begin_work`] and before [`Layout::end_work`].
pub(crate) struct KnotBooks {
    /// Momenta before the knot, impulses until the velocities that are read of what touches, of explicit dampers and of implicit ones, and
    /// those of the latter without `blow`; unless it is the last knot, momenta after it, and the first three impulses of the whole knot;
    /// then unit impulses along what is loaded.
    pub rows: Vec<f64>,
    /// Length of a row.
    pub dim: usize,
    /// Impulses until the velocities that are read of what was not loaded over the interval before, where implicit dampers take part in
    /// them; an integrator replaces them by the changes of velocities that they cause there with dampers. Else empty.
    pub blow: Vec<f64>,
    /// Impulses of each element, normal and tangents, until the velocities that are read, and of the whole knot.
    impulses: [Vec<[f64; 3]>; 2],
    /// What blows of the whole knot act on at other places than the step: elements there, and impulses, which are not among those above.
    struck: Vec<Struck>,
    loaded: Vec<Loaded>,
    bounces: bool,
}

/// The number of an element, what it is where a blow acts on it, and the impulses there.
type Struck = (usize, Element, [f64; 3]);

/// A direction of an element that is loaded: the wrench of its unit impulse, and how many of these it bears over half of the intervals before
/// and after the knot; none where it is not loaded.
struct Loaded {
    wrench: Vec<f64>,
    /// That of the contact, kg.
    mass: f64,
    most: [f64; 2],
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

fn less(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Product of wrenches with velocities, J.
fn product(wrenches: &[f64], v: &[f64]) -> f64 {
    wrenches.iter().zip(v).map(|(f, v)| f * v).sum()
}

/// Product of the momenta of velocities with others, J.
fn momentum_product(m: &Mechanism, u: &[f64], v: &[f64]) -> f64 {
    let each = m.bodies.iter().enumerate().map(|(b, body)| {
        let (linear, angular) = (
            vec3(u, 6 * b) * body.mass,
            body.inertia * vec3(u, 6 * b + 3),
        );
        linear.dot(&vec3(v, 6 * b)) + angular.dot(&vec3(v, 6 * b + 3))
    });
    each.sum()
}

/// What forces over an interval do at the knot.
struct Push {
    /// Changes of velocities by explicit dampers, by implicit ones, and by other forces.
    explicit: Vec<f64>,
    implicit: Vec<f64>,
    free: Vec<f64>,
    /// `y`
    yields: Vec<f64>,
    /// `T`, J
    error: f64,
}

impl Push {
    /// Of changes of velocities over the interval before the knot, 0, or after it, 1: all, and of these those by explicit dampers, and
    /// by implicit ones; `unstruck` is what the latter do without a blow at the end of the interval. `moved` are the changes by unit impulses along
    /// what is loaded.
    fn new(
        m: &Mechanism,
        [net, explicit, implicit]: [Vec<f64>; 3],
        unstruck: &[f64],
        (loaded, moved): (&[Loaded], &[&[f64]]),
        interval: usize,
    ) -> Self {
        let mut free = less(&net, &implicit);
        let mut yields: Vec<f64> = free.iter().zip(unstruck).map(|(f, d)| f + d).collect();
        let each = loaded
            .iter()
            .zip(moved)
            .filter(|(l, _)| l.most[interval] > 0.0);
        let mut held: Vec<_> = each
            .map(|(l, x)| (l, x, product(&l.wrench, x)))
            .filter(|(l, _, size)| *size > IMMOBILE * l.mass)
            .map(|(l, x, size)| (l, x, 1.0 / size.sqrt()))
            .collect();
        // what friction cannot hold slides, with all of it
        while !held.is_empty() {
            let mut k = DMatrix::zeros(held.len(), held.len());
            for (i, (l, _, scale)) in held.iter().enumerate() {
                for (j, (_, x, other)) in held[..=i].iter().enumerate() {
                    k[(i, j)] = scale * other * product(&l.wrench, x);
                }
                k[(i, i)] += REDUNDANT;
            }
            let rates = held.iter().map(|(l, _, s)| s * product(&l.wrench, &yields));
            let mut impulses = DVector::from_iterator(held.len(), rates);
            // the lower triangle alone is read
            let Some(k) = k.cholesky() else { break };
            k.solve_mut(&mut impulses);
            let each = held.iter().zip(&impulses);
            let sizes: Vec<_> = each.map(|((_, _, scale), p)| scale * p).collect();
            let slides = |(l, _, _): &(&Loaded, _, _), p: f64| p.abs() > l.most[interval];
            let any = held.iter().zip(&sizes).any(|(own, p)| slides(own, *p));
            let mut each = sizes.iter();
            held.retain(|own| {
                let p = *each.next().unwrap_or(&0.0);
                let most = own.0.most[interval];
                if !any || slides(own, p) {
                    let p = p.clamp(-most, most);
                    let each = yields.iter_mut().zip(own.1.iter());
                    each.for_each(|(y, x)| *y -= p * x);
                }
                any && !slides(own, p)
            });
        }
        let error = momentum_product(m, &free, &yields);
        free.iter_mut().zip(&explicit).for_each(|(f, d)| *f -= d);
        Self {
            explicit,
            implicit,
            free,
            yields,
            error,
        }
    }

    /// All changes of velocities.
    fn net(&self, i: usize) -> f64 {
        self.free[i] + self.explicit[i] + self.implicit[i]
    }

    /// What its displacement does more or less than its impulse with the mean of the velocities that change so, but for the error, J.
    fn rest(&self, m: &Mechanism, change: &[f64]) -> f64 {
        0.5 * (momentum_product(m, &self.free, change) - self.error)
    }
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

    /// Takes blows on other places than those of the step out of the impulses of the whole knot.
    fn struck_elsewhere(
        &self,
        w: &View,
        memory: &Memory,
        y: &[f64],
        [read, whole]: &mut [Vec<[f64; 3]>; 2],
    ) -> Vec<Struck> {
        let Some(blows) = y.get(self.blows()) else {
            return vec![];
        };
        let mut struck = vec![];
        for (i, own) in blows.chunks_exact(BLOW).enumerate() {
            let (e, held) = (&memory.elements[i], Meeting::decoded(own[PLACE]));
            let contact = self.slots[i].contact(w);
            if let Some(contact) = contact
                && own[PLACE] != 0.0
                && held != e.held
                && w.model.has_parts(contact, &held)
            {
                // the read-out before the blow is no part of it
                let size = [0, 1, 2].map(|k| own[k + 1] - read[i][k]);
                let each = whole[i].iter_mut().zip(size);
                each.for_each(|(all, own)| *all -= own);
                let mut there = *e;
                there.set_meeting(w, contact, held, memory.gap_floor());
                struck.push((i, there, size));
            }
        }
        struck
    }

    /// Begins the work of what touches at a knot, after the velocities there were read. `y` are the unknowns of the step from the knot,
    /// empty at the last one, `after` the velocities over its interval `h`, and `dim` the length of rows. At the start of a
    /// trajectory `loads` is empty; it then keeps what is loaded.
    pub(crate) fn begin_work(
        &self,
        w: &View,
        memory: &Memory,
        (y, after, h): (&[f64], &[f64], f64),
        dim: usize,
        loads: &mut Loads,
    ) -> KnotBooks {
        let each = memory.elements.iter().enumerate();
        let parts: Vec<_> = each.map(|e| self.parts(memory, e, y)).collect();
        let mut impulses = [0, 1].map(|k| parts.iter().map(|p| p[k]).collect::<Vec<_>>());
        let blow = self.blow((w, memory), &impulses[0], dim, loads);
        let halves = [w.at.h_prev, h].map(|h| 0.5 * h);
        let loaded = self.loaded((w, memory), (&impulses[1], halves), loads);
        let struck = self.struck_elsewhere(w, memory, y, &mut impulses);
        let ends = if y.is_empty() { 1 } else { 2 };
        let first = if y.is_empty() { AFTER } else { AFTER + WHOLE };
        let mut rows = vec![0.0; dim * (first + loaded.len())];
        let row = |k: usize| dim * k..dim * (k + 1);
        momenta(w.model, w.before, -w.at.h_prev, &mut rows[row(0)]);
        let bounces = self.bounces(y);
        (w.model).each_damper(w.poses, |(parent, child), along, (damping, law), _| {
            let rate = |v: &[f64]| dot(v, parent, child, along);
            let before = law.before() * w.at.h_prev * rate(w.before);
            let read = law.after(w.at.h_prev, 0.0) * rate(w.trial);
            for k in 0..ends {
                // a step after a blow starts anew from the velocities that were read
                let after = match (k, bounces) {
                    (0, _) => read,
                    (_, false) => law.after(w.at.h_prev, h) * h * rate(after),
                    (_, true) => read + law.after(0.0, h) * h * rate(after),
                };
                let own = AFTER * k
                    + if law.is_implicit() {
                        IMPLICIT
                    } else {
                        EXPLICIT
                    };
                let size = -damping * (before + after);
                add_wrench(&mut rows[row(own)], parent, child, along, size);
            }
        });
        for (k, impulses) in impulses.iter().enumerate().take(ends) {
            let each = memory.elements.iter().zip(&self.slots).zip(impulses);
            for ((e, slot), own) in each {
                e.add_impulses(slot, *own, 1.0, &mut rows[row(AFTER * k + TOUCH)]);
            }
        }
        if ends == 2 {
            momenta(w.model, after, h, &mut rows[row(AFTER)]);
            for (i, e, size) in &struck {
                let touch = &mut rows[row(AFTER + TOUCH)];
                e.add_impulses(&self.slots[*i], *size, 1.0, touch);
            }
        }
        let units = rows[dim * first..].chunks_exact_mut(dim);
        for (own, to) in loaded.iter().zip(units) {
            to[..own.wrench.len()].copy_from_slice(&own.wrench);
        }
        KnotBooks {
            rows,
            dim,
            blow,
            impulses,
            struck,
            loaded,
            bounces,
        }
    }

    /// [`KnotBooks::blow`], of the impulses until the velocities that are read.
    fn blow(
        &self,
        (w, memory): (&View, &Memory),
        impulses: &[[f64; 3]],
        dim: usize,
        Loads(before): &Loads,
    ) -> Vec<f64> {
        if !w.model.has_implicit_dampers() || w.at.before().is_none() {
            return vec![];
        }
        let mut out = vec![];
        let each = memory.elements.iter().zip(&self.slots).zip(impulses);
        for (((e, slot), own), before) in each.zip(before) {
            if slot.is_friction() || own[0] <= LOADED {
                continue;
            }
            let new = [0, 1, 2].map(|k| if k < *before { 0.0 } else { own[k] });
            if new != [0.0; 3] {
                out.resize(dim, 0.0);
                e.add_impulses(slot, new, 1.0, &mut out);
            }
        }
        out
    }

    /// Adds what implicit dampers do without the blow, where there is one, after it was solved for.
    pub(crate) fn add_unstruck(&self, w: &View, books: &mut KnotBooks) {
        let n = 6 * w.poses.len();
        let v = less(&w.trial[..n], &books.blow[..n]);
        let to = &mut books.rows[books.dim * UNSTRUCK..books.dim * AFTER];
        (w.model).each_damper(w.poses, |(parent, child), along, (damping, law), _| {
            if law.is_implicit() {
                let after = law.after(w.at.h_prev, 0.0) * dot(&v, parent, child, along);
                let before = law.before() * w.at.h_prev * dot(w.before, parent, child, along);
                add_wrench(to, parent, child, along, -damping * (before + after));
            }
        });
    }

    /// What is loaded over the intervals before and after the knot, by the impulses of the whole knot; keeps the latter. Forces act at
    /// the knot for `halves` of either.
    fn loaded(
        &self,
        (w, memory): (&View, &Memory),
        (impulses, halves): (&[[f64; 3]], [f64; 2]),
        Loads(before): &mut Loads,
    ) -> Vec<Loaded> {
        // gravity is constant: what it does within half a step barely changes
        if !w.model.is_driven() {
            return vec![];
        }
        before.resize(impulses.len(), 0);
        let mut all = vec![];
        let each = memory.elements.iter().zip(&self.slots);
        for ((e, slot), (own, before)) in each.zip(impulses.iter().zip(before)) {
            let mut add = |k: usize, most: [f64; 2]| {
                let mut unit = [0.0; 3];
                unit[k] = 1.0;
                let mut wrench = vec![0.0; 6 * self.sizes.len()];
                e.add_impulses(slot, unit, 1.0, &mut wrench);
                all.push(Loaded {
                    wrench,
                    mass: slot.mass,
                    most,
                });
            };
            if let Source::Friction(j, i) = slot.source {
                let friction = w.model.joints[j].directions[i].friction;
                add(1, halves.map(|half| half * friction / slot.mass));
                continue;
            }
            let after = match own {
                _ if own[0] <= LOADED => 0,
                [g, t, s] if t.hypot(*s) < HOLDS * e.law.mu * g => 3,
                _ => 1,
            };
            for k in 0..after.max(*before) {
                let bears = |loaded: bool| if loaded { f64::INFINITY } else { 0.0 };
                add(k, [bears(k < *before), bears(k < after)]);
            }
            *before = after;
        }
        all
    }

    /// Ends with the rows solved for.
    pub(crate) fn end_work(&self, w: &View, memory: &Memory, books: KnotBooks) -> KnotWork {
        let n = 6 * w.poses.len();
        let rows: Vec<_> = books
            .rows
            .chunks_exact(books.dim)
            .map(|r| &r[..n])
            .collect();
        let (ends, moved) = rows.split_at(rows.len() - books.loaded.len());
        let push = |changes: [Vec<f64>; 3], unstruck: &[f64], interval| {
            let loaded = (&books.loaded[..], moved);
            Push::new(w.model, changes, unstruck, loaded, interval)
        };
        let exchange = |k: usize, after: &[f64], pushes: [Option<&Push>; 2]| {
            let [mean, change] = mean_and_change(ends[0], after);
            let struck = if k == 0 { &[] } else { &books.struck[..] };
            let mut work = self.work(memory, &books.impulses[k], struck, &mean);
            let [before, next] = pushes.map(|p| p.map_or(0.0, |p| p.rest(w.model, &change)));
            work.impacts += before - next;
            Exchange {
                work,
                mean,
                yields: pushes.map(|p| p.map_or_else(|| vec![0.0; n], |p| p.yields.clone())),
            }
        };
        // a start has no interval before
        let before = w.at.before().map(|_| {
            let net = (0..n).map(|i| w.trial[i] - ends[0][i] - ends[TOUCH][i]);
            let changes = [
                net.collect(),
                ends[EXPLICIT].to_vec(),
                ends[IMPLICIT].to_vec(),
            ];
            let unstruck = if books.blow.is_empty() {
                IMPLICIT
            } else {
                UNSTRUCK
            };
            push(changes, ends[unstruck], 0)
        });
        let before = before.as_ref();
        let whole = ends[AFTER..].first_chunk::<WHOLE>().map(|of| {
            // what the half of the interval before leaves
            let left = |row: usize, past: fn(&Push, usize) -> f64| -> Vec<f64> {
                let own = |i: usize| of[row][i] - before.map_or(0.0, |b| past(b, i));
                (0..n).map(own).collect()
            };
            let after = of[0];
            let net = (0..n)
                .map(|i| after[i] - ends[0][i] - of[TOUCH][i] - before.map_or(0.0, |b| b.net(i)));
            let implicit = left(IMPLICIT, |b, i| b.implicit[i]);
            let explicit = left(EXPLICIT, |b, i| b.explicit[i]);
            let changes = [net.collect(), explicit, implicit.clone()];
            exchange(1, after, [before, Some(&push(changes, &implicit, 1))])
        });
        KnotWork {
            before: exchange(0, &w.trial[..n], [before, None]),
            whole,
            bounces: books.bounces,
        }
    }

    /// Work of impulses along velocities.
    ///
    /// How simultaneous impulses share what they do to each other is not determined. Where a blow would turn the slip that
    /// friction then stops, the mean has friction drive what it only holds back; as friction never gives energy, what it
    /// would give is counted as spent by the blows of the same instant, up to all that they spend.
    fn work(
        &self,
        memory: &Memory,
        impulses: &[[f64; 3]],
        struck: &[Struck],
        mean: &[f64],
    ) -> ContactWork {
        let (mut out, mut given) = (ContactWork::default(), 0.0);
        let all = memory.elements.iter().zip(&self.slots).zip(impulses);
        let all = all.map(|((e, slot), own)| (e, slot, own));
        let more = struck.iter().map(|(i, e, own)| (e, &self.slots[*i], own));
        for (e, slot, own) in all.chain(more) {
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
