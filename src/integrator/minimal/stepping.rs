//! A step as the contacts' solver sees it: unknowns are velocities of all bodies, which follow from the joints' rates behind them.

use super::Minimal;
use super::contact::{Singular, six};
use super::work::Work;
use crate::contact::{Failed, Memory, NewtonSystem, View};
use crate::dynamics::StepFailure;

/// A step in its memory.
pub(super) struct Stepping<'a> {
    pub system: &'a Minimal,
    pub w: &'a mut Work,
    pub h: f64,
    /// Is what is behind the bodies' numbers by rates of displacement of joints, not by their rates?
    pub by_ends: bool,
    /// Are the gears' impulses left in what a solve leaves?
    pub exerts: bool,
}

impl NewtonSystem for Stepping<'_> {
    fn view(&self) -> View<'_> {
        self.system.view(self.w)
    }

    fn contacts(&self) -> &Memory {
        &self.w.touching.memory
    }

    fn contacts_mut(&mut self) -> &mut Memory {
        &mut self.w.touching.memory
    }

    fn trial(&mut self) -> &mut [f64] {
        &mut self.w.touching.trial
    }

    fn moved(&mut self) {
        let rates = &self.w.touching.trial[self.system.bodies()..];
        self.w.rates.copy_from_slice(rates);
        self.system.close_trial(self.h, self.w);
        self.system.lead_touching(self.w, self.h);
    }

    fn begin(&mut self, out: &mut [f64]) -> bool {
        let (s, w, h) = (self.system, &mut *self.w, self.h);
        let before = std::mem::take(&mut w.before);
        s.guess(&before, h, w);
        w.before = before;
        w.touching.acts = false;
        let mut inside = s.factor(w, h).is_ok();
        if inside {
            s.solve(w, h);
            w.kept.copy_from_slice(&w.rates);
            s.take(1.0, h, w);
            let outside = s.lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial);
            inside = outside.is_none() && w.rates.iter().all(|v| v.is_finite());
            if !inside {
                w.rates.copy_from_slice(&w.kept);
            }
        }
        out[s.bodies()..].copy_from_slice(&w.rates);
        s.lead_touching(w, h);
        out[..s.bodies()].copy_from_slice(&w.touching.trial[..s.bodies()]);
        inside
    }

    fn begin_at(&mut self, y: &[f64], out: &mut [f64]) -> bool {
        let (s, w) = (self.system, &mut *self.w);
        let known = y.iter().any(|v| *v != 0.0);
        if known {
            w.rates.copy_from_slice(y);
            s.close_trial(self.h, w);
        } else {
            let before = std::mem::take(&mut w.before);
            s.guess(&before, self.h, w);
            w.before = before;
        }
        out[s.bodies()..].copy_from_slice(&w.rates);
        s.lead_touching(w, self.h);
        out[..s.bodies()].copy_from_slice(&w.touching.trial[..s.bodies()]);
        known
    }

    fn residual(&self) -> &[f64] {
        &self.w.touching.residual
    }

    fn worst(&self) -> [(f64, usize); 2] {
        let first = self.system.bodies();
        let mut worst = (0.0_f64, first);
        let rows = &self.w.touching.residual[first..];
        for node in &self.system.nodes {
            for (i, index) in node.directions().enumerate() {
                let mut unit = self.system.units[index];
                if node.turns == 2 && i >= node.slides {
                    // near half a turn small rates turn the body fast: rows are torques times the length of that axis
                    unit *= self.w.axes[index].left.norm();
                }
                let r = (rows[index] / unit).abs();
                if r > worst.0 || r.is_nan() {
                    worst = (r, first + index);
                }
            }
        }
        [worst, (0.0, 0)]
    }

    fn evaluate(&mut self) -> (f64, usize, f64) {
        self.system.evaluate_touching(self.w, self.h);
        let [(worst, row), _] = self.worst();
        (worst, row, self.w.touching.floor)
    }

    fn assemble(&mut self, _: bool) {
        self.system.assemble_touching(self.w, self.h);
    }

    fn factor(&mut self, pivots: Option<usize>) -> Result<(), Failed> {
        self.w.touching.acts = true;
        let done = self.system.factor_touching(self.w, self.h);
        done.map_err(|singular| Failed {
            failure: StepFailure::Singular,
            row: match singular {
                Singular::Joint(body) => 6 * body,
                Singular::Impulses => pivots.unwrap_or(0),
            },
            residual: f64::NAN,
        })
    }

    fn solve(&mut self, rhs: &[f64], out: &mut [f64], transposed: bool) {
        if !self.w.touching.has_unknown_impulses {
            return self.solve_once(rhs, out, transposed);
        }
        let mut memory = std::mem::take(&mut self.w.touching.memory);
        let contacts = &self.system.contacts;
        let solve = |rows: &[f64], out: &mut [f64]| self.solve_once(rows, out, transposed);
        match transposed {
            false => contacts.solve_impulses(&mut memory, rhs, out, solve),
            true => contacts.solve_impulses_transposed(&mut memory, rhs, out, solve),
        }
        self.w.touching.memory = memory;
    }

    fn has_pivots(&self) -> bool {
        self.w.touching.has_unknown_impulses
    }

    fn leave(&self, x: &[f64], rows: &mut [f64], transposed: bool) {
        let (s, w, h) = (self.system, &*self.w, self.h);
        let first = s.bodies();
        s.leave_dampers(w, h, x, rows, transposed);
        for (i, node) in s.nodes.iter().enumerate() {
            let (k, to) = (&w.knot[i], &w.trial[i]);
            let (r, v) = (&w.poses[node.body].r, six(x, node.body));
            let model = &w.model.bodies[node.body];
            let body = (r, &model.inertia, &model.rotation);
            let by = (s.lagrangian).by_velocities(body, (k, to, h), &v, transposed);
            let own = &mut rows[6 * node.body..6 * node.body + 6];
            own.iter_mut().zip(by.iter()).for_each(|(to, by)| *to -= by);
            if w.model.joints[node.joint].has_dampers() && node.count() > 0 {
                let n = node.count();
                let (mut along, mut by) = ([0.0; 6], [0.0; 36]);
                along[..n].copy_from_slice(&x[first..][node.directions()]);
                if !self.by_ends {
                    s.to_ends(w, i, h, &mut along[..n]);
                }
                s.add_dampers(w, i, h, &mut by[..n * n]);
                let own = &mut rows[first..][node.directions()];
                for (r, row) in own.iter_mut().enumerate() {
                    for (c, along) in along[..n].iter().enumerate() {
                        let at = if transposed { r * n + c } else { c * n + r };
                        *row -= by[at] * along;
                    }
                }
            }
        }
    }

    fn settle(&self, rows: &mut [f64], transposed: bool) {
        let over = transposed.then_some(self.h);
        let s = self.system;
        s.settle(self.w, rows, over);
        if !self.exerts {
            (s.gears).reduce(&self.w.model, &mut rows[s.bodies()..], |_, _| {});
        }
    }
}

impl Stepping<'_> {
    /// Solves with the factors of the recursion.
    pub(super) fn solve_once(&mut self, rhs: &[f64], out: &mut [f64], transposed: bool) {
        let (s, w, h) = (self.system, &mut *self.w, self.h);
        let (bodies, rows) = rhs.split_at(s.bodies());
        let (moved, tail) = out.split_at_mut(s.bodies());
        s.take_rows(w, h, bodies, transposed);
        if transposed {
            s.solve_transposed(w, rows, tail);
        } else {
            s.substitute(w, rows);
        }
        s.give_changes(w, h, moved, transposed);
        if !transposed {
            if self.by_ends {
                tail.copy_from_slice(&w.change);
            } else {
                // the rates change by what a whole step takes of it
                w.kept.copy_from_slice(&w.rates);
                s.take_freely(1.0, h, w);
                for ((to, rate), kept) in tail.iter_mut().zip(&mut w.rates).zip(&w.kept) {
                    *to = *rate - kept;
                    *rate = *kept;
                }
            }
        }
        tail.iter_mut().for_each(|v| *v = -*v);
    }
}
