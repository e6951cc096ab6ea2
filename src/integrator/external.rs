//! The work done from outside along a trajectory, knot by knot.

use crate::contact::{ContactWork, Exchange, KnotWork, Loads};
use crate::mechanism::{DamperMotion, Efforts, KnotData, dot};
use crate::spatial::Pose;

/// The work done from outside along a trajectory, J, knot by knot.
#[derive(Clone, Debug, Default)]
pub struct ExternalWork {
    /// Of the actuators, until the knot reached: force times displacement.
    pub actuators: f64,
    /// Sum over the knots that were left, and what the velocities read at the knot reached add to it.
    left: Share,
    here: Share,
    /// Of each actuator since the last [`ExternalWork::end_step`]: displacement, m or rad, and work, J.
    each: Vec<(f64, f64)>,
    /// Displacement of each actuator over the step before.
    earlier: Vec<f64>,
    /// Effort of each actuator at the start of the step, N or N m.
    at_start: Vec<f64>,
    /// Size of the work of each actuator in the last step that ended, J.
    sizes: Vec<f64>,
    /// Poses at the knot reached, and what the actuators exert there.
    poses: Vec<Pose>,
    start: Efforts,
    /// Memory for what they exert at the next knot.
    end: Efforts,
    /// What is to be added where the knot reached is left, if what touches there is known.
    open: Option<Open>,
    /// Does the mechanism have what may touch?
    touches: bool,
    /// Which elements are loaded.
    pub(super) loads: Loads,
    /// Are controls held from knot to knot, and not linear between knots?
    pub(super) holds: bool,
}

/// Work of impulses at a knot.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    dampers: f64,
    contacts: ContactWork,
    unresolved: f64,
}

impl std::ops::AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.dampers += other.dampers;
        self.contacts += other.contacts;
        self.unresolved += other.unresolved;
    }
}

/// An exchange at a knot whose intervals are not all known.
#[derive(Clone, Debug)]
struct Open {
    exchange: Exchange,
    /// Work of the dampers' impulses that are known.
    dampers: f64,
    /// Length of the interval before, s.
    h_prev: f64,
    /// Does something bounce, after which the step starts anew?
    bounces: bool,
    /// Products of the efforts over the intervals before and after with what gives way to them, W.
    efforts: [f64; 2],
}

impl Open {
    /// Work of the impulses with those of the interval `h` after the knot; none is 0.
    fn share(&self, h: f64) -> Share {
        Share {
            dampers: self.dampers,
            contacts: self.exchange.work,
            unresolved: 0.25 * (self.h_prev * self.efforts[0] - h * self.efforts[1]),
        }
    }
}

/// What the actuators do in a step, J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepWork {
    /// Sum of the sizes of their works.
    pub exerted: f64,
    /// The part of it by actuators that moved against their direction of the step before.
    pub reversed: f64,
    /// Work beyond that of efforts that are linear between the knots, because controls are held.
    pub held: f64,
}

/// The mean of two velocities.
fn halfway(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| 0.5 * (a + b)).collect()
}

/// Velocities at a knot without contacts. Those after it are not known yet.
fn without_contacts(k: &KnotData) -> KnotWork {
    let exchange = |mean: Vec<f64>| Exchange {
        yields: [vec![0.0; mean.len()], vec![0.0; mean.len()]],
        mean,
        ..Exchange::default()
    };
    KnotWork {
        before: exchange(halfway(k.before, k.velocities)),
        whole: Some(exchange(k.before.to_vec())),
        bounces: false,
    }
}

impl ExternalWork {
    /// Of the dampers. Of a mechanism that touches nothing it is `d s^2/h` over each interval, `s` the displacement. Where something
    /// may strike, they take part in the blow: the work is that of their impulses at knots with the mean of the velocities
    /// before and after. Both agree to second order in smooth motion. That of implicit dampers, which act at knots, is always the latter.
    pub fn dampers(&self) -> f64 {
        self.left.dampers + self.here.dampers
    }

    /// Of contacts, limits and joint friction.
    pub fn contacts(&self) -> ContactWork {
        let mut out = self.left.contacts;
        out += self.here.contacts;
        out
    }

    /// What actuators do within half a step and the motion does not show, J: [`Balance::error`](crate::rollout::Balance::error) has it,
    /// although the motion may be right.
    ///
    /// In the steps' own equations half of a force's impulse over an interval acts at either end, between the velocity at the knot and
    /// that of the interval. Of the actuators' efforts `F` it is the change of `(h^2/8) F' M^-1 F` over each interval, `M` with what is
    /// loaded then and what friction in joints holds.
    pub fn unresolved(&self) -> f64 {
        self.left.unresolved + self.here.unresolved
    }

    /// Counts from here on: what was done over half of an interval before the start is no part of it.
    pub fn begin(&mut self) {
        self.actuators = 0.0;
        let here = self.here;
        self.left = Share {
            dampers: -here.dampers,
            contacts: ContactWork {
                friction: -here.contacts.friction,
                impacts: -here.contacts.impacts,
            },
            unresolved: -here.unresolved,
        };
        self.each.fill((0.0, 0.0));
    }

    /// Goes on to the next knot, at the end of an interval (or where the state starts anew), from which `controls` act.
    pub fn add_knot(&mut self, k: &KnotData, controls: &[f64], work: Option<KnotWork>) {
        let (m, poses) = (k.mechanism, k.poses);
        m.efforts(poses, k.velocities, controls, &mut self.end);
        self.each.resize(self.end.efforts.len(), (0.0, 0.0));
        self.touches = work.is_some();
        // a state that starts anew has no interval before
        let follows = !self.poses.is_empty() && k.h_prev != 0.0;
        self.leave(k, follows);
        if follows {
            self.add_interval(k);
        }
        if let Some(work) = work {
            self.read(k, follows, work);
        } else if m.has_implicit_dampers() {
            self.read(k, follows, without_contacts(k));
        }
        std::mem::swap(&mut self.start, &mut self.end);
        self.poses.clear();
        self.poses.extend_from_slice(poses);
    }

    /// Adds what the knot that is left for the next one has done.
    fn leave(&mut self, next: &KnotData, follows: bool) {
        let here = std::mem::take(&mut self.here);
        let Some(mut open) = self.open.take().filter(|_| follows) else {
            // it was the last one
            self.left += here;
            return;
        };
        let (m, h) = (next.mechanism, next.h_prev);
        let mean = &mut open.exchange.mean;
        if !self.touches {
            *mean = halfway(mean, next.before);
        }
        let h_prev = if open.bounces { 0.0 } else { open.h_prev };
        let after = DamperMotion::After(next.poses, [h_prev, h]);
        open.dampers += m.damper_work(&self.poses, after, !self.touches, mean);
        self.left += open.share(h);
    }

    /// Adds the work over the interval before a knot.
    fn add_interval(&mut self, k: &KnotData) {
        let (m, poses) = (k.mechanism, k.poses);
        for (c, own) in self.each.iter_mut().enumerate() {
            let rows = [&self.start.rows[c], &self.end.rows[c]];
            let moved = m.actuator_displacements(c, rows, (&self.poses, poses));
            let start = self.start.efforts[c];
            // at both ends of the interval
            let efforts = [
                start,
                if self.holds {
                    start
                } else {
                    self.end.efforts[c]
                },
            ];
            let work = 0.5 * (efforts[0] * moved[0] + efforts[1] * moved[1]);
            own.0 += 0.5 * (moved[0] + moved[1]);
            own.1 += work;
            self.actuators += work;
            if !self.touches {
                let rates = [self.start.rates[c], self.end.rates[c]];
                let by_rates = 0.5 * k.h_prev * (efforts[0] * rates[0] + efforts[1] * rates[1]);
                self.left.unresolved += 0.5 * (by_rates - work);
            }
        }
        if !self.touches {
            self.left.dampers -= m.damping(&self.poses, poses) / k.h_prev;
        }
    }

    /// Takes up what impulses do at a knot.
    fn read(&mut self, k: &KnotData, follows: bool, work: KnotWork) {
        let h_prev = if follows { k.h_prev } else { 0.0 };
        let efforts = [
            if self.holds && follows {
                &self.start.efforts
            } else {
                &self.end.efforts
            },
            &self.end.efforts,
        ];
        let bounces = work.bounces;
        let open = |exchange: Exchange, motions: &[DamperMotion]| {
            let mut dampers = 0.0;
            for motion in motions.iter().filter(|_| follows) {
                let mean = &exchange.mean;
                dampers += (k.mechanism).damper_work(k.poses, *motion, !self.touches, mean);
            }
            let mut sums = [0.0; 2];
            for (c, row) in self.end.rows.iter().enumerate() {
                let (parent, child) = k.mechanism.driven(&k.mechanism.actuators[c]);
                for (side, sum) in sums.iter_mut().enumerate() {
                    let moves = dot(&exchange.yields[side], parent, child, row);
                    *sum += efforts[side][c] * moves;
                }
            }
            Open {
                exchange,
                dampers,
                h_prev,
                bounces,
                efforts: sums,
            }
        };
        let motions = [
            DamperMotion::Before(&self.poses),
            DamperMotion::Read(k.velocities, h_prev),
        ];
        let before = open(work.before, &motions);
        let until = if bounces { 2 } else { 1 };
        let whole = work.whole.map(|whole| open(whole, &motions[..until]));
        (self.here, self.open) = (before.share(0.0), whole);
    }

    /// Ends a step at the knot reached.
    pub fn end_step(&mut self) -> StepWork {
        let mut out = StepWork::default();
        let n = self.each.len();
        self.earlier.resize(n, 0.0);
        // the first step has no start before
        let has_start = self.at_start.len() == n;
        self.at_start.resize(n, 0.0);
        self.sizes.clear();
        for (c, own) in self.each.iter_mut().enumerate() {
            let ((moved, work), now) = (*own, self.start.efforts[c]);
            out.exerted += work.abs();
            if moved * self.earlier[c] < 0.0 {
                out.reversed += work.abs();
            }
            if self.holds && has_start {
                out.held += work - 0.5 * (self.at_start[c] + now) * moved;
            }
            self.sizes.push(work.abs());
            (self.earlier[c], self.at_start[c], *own) = (moved, now, (0.0, 0.0));
        }
        out
    }

    /// Size of the work of each actuator in the last step that ended, J.
    pub fn sizes(&self) -> &[f64] {
        &self.sizes
    }
}
