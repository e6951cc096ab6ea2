//! The restoration: the violation alone is minimized, near where the method got stuck.
//!
//! ```text
//! minimize rho sum (p + n) + zeta/2 |D (x - x0)|^2   where   c(x) + n - p is within its bounds,  p, n >= 0
//! ```

use super::model::Values;
use super::solver::Solver;
use super::{Barrier, Curvature, Options, Program, Row, Status, Undefined, largest};

/// Weight of the violation.
const RHO: f64 = 1000.0;
/// The restoration ends where the filter accepts a point whose violation is this part of the one at its start.
const ENOUGH: f64 = 0.9;
/// What holds a restoration near its start fades by this factor where it has converged, down to what is next to nothing beside
/// the weight of the violation; the barrier's parameter then starts here.
const FADING: f64 = 1e-3;
const ALONE: f64 = 1e-8;
const RESTART: f64 = 1e-6;
/// Multipliers of the rows are forgotten where they come out larger.
const LARGEST_MULTIPLIER: f64 = 1e3;

/// The program that minimizes the violation of another one.
struct Elastic<'a> {
    program: &'a mut dyn Program,
    inner: &'a mut Solver,
    /// Where it starts, and what changes of each variable are measured with.
    origin: Vec<f64>,
    scale: Vec<f64>,
    zeta: f64,
    start: Vec<f64>,
    violation: f64,
    values: Values,
    w: Vec<f64>,
    before: Vec<f64>,
}

impl Elastic<'_> {
    fn n(&self) -> usize {
        self.inner.model.n
    }

    fn m(&self) -> usize {
        self.inner.model.m
    }
}

impl Program for Elastic<'_> {
    fn variables(&self) -> usize {
        self.n() + 2 * self.m()
    }

    fn rows(&self) -> usize {
        self.m()
    }

    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }

    fn bounds(&self) -> Vec<(f64, f64)> {
        let model = &self.inner.model;
        let own = model.lower.iter().zip(&model.upper).take(self.n());
        let mut out: Vec<(f64, f64)> = own.map(|(l, u)| (*l, *u)).collect();
        for (bounds, (held, x)) in out.iter_mut().zip(model.held.iter().zip(&self.origin)) {
            if *held {
                *bounds = (*x, *x);
            }
        }
        out.resize(self.variables(), (0.0, f64::INFINITY));
        out
    }

    fn row_bounds(&self) -> Vec<(f64, f64)> {
        let model = &self.inner.model;
        let of =
            |slack: &Option<usize>| slack.map_or((0.0, 0.0), |s| (model.lower[s], model.upper[s]));
        model.slack.iter().map(of).collect()
    }

    fn jacobian(&self) -> Vec<(usize, usize)> {
        let (n, m) = (self.n(), self.m());
        let mut out = self.inner.model.jacobian.clone();
        out.extend((0..m).map(|i| (i, n + i)));
        out.extend((0..m).map(|i| (i, n + m + i)));
        out
    }

    fn hessian(&self) -> Vec<(usize, usize)> {
        let mut out = self.inner.model.hessian.clone();
        out.extend((0..self.n()).map(|i| (i, i)));
        out
    }

    fn evaluate(&mut self, x: &[f64], rows: &mut [f64]) -> Result<f64, Undefined> {
        let (n, m) = (self.n(), self.m());
        self.w[..n].copy_from_slice(&x[..n]);
        self.w[n..].fill(0.0);
        let (program, w) = (&mut *self.program, &self.w);
        self.inner.model.evaluate(program, w, &mut self.values)?;
        for i in 0..m {
            rows[i] = self.values.rows[i] - x[n + i] + x[n + m + i];
        }
        let elastic: f64 = x[n..].iter().sum();
        let apart = x.iter().zip(&self.origin).zip(&self.scale);
        let apart: f64 = apart.map(|((x, o), d)| (d * (x - o)).powi(2)).sum();
        Ok(RHO * elastic + 0.5 * self.zeta * apart)
    }

    fn differentiate(
        &mut self,
        x: &[f64],
        gradient: &mut [f64],
        jacobian: &mut [f64],
    ) -> Result<(), Undefined> {
        let (n, m) = (self.n(), self.m());
        let mut d = std::mem::take(&mut self.inner.d);
        let done = (self.inner.model).differentiate(self.program, &x[..n], &mut d);
        let own = d.jacobian.len();
        jacobian[..own].copy_from_slice(&d.jacobian);
        self.inner.d = d;
        jacobian[own..own + m].fill(-1.0);
        jacobian[own + m..].fill(1.0);
        for i in 0..n {
            gradient[i] = self.zeta * self.scale[i].powi(2) * (x[i] - self.origin[i]);
        }
        gradient[n..].fill(RHO);
        done
    }

    fn curve(
        &mut self,
        x: &[f64],
        weight: f64,
        y: &[f64],
        hessian: &mut [f64],
    ) -> Result<(), Undefined> {
        let n = self.n();
        let own = hessian.len() - n;
        let before = std::mem::replace(&mut self.inner.model.weight, 0.0);
        let done = (self.inner.model).curve(self.program, &x[..n], y, &mut hessian[..own]);
        self.inner.model.weight = before;
        for (to, scale) in hessian[own..].iter_mut().zip(&self.scale) {
            *to = weight * self.zeta * scale * scale;
        }
        done
    }

    fn accept(&mut self, x: &mut [f64], y: &mut [f64]) -> bool {
        let n = self.n();
        self.before.copy_from_slice(&x[..n]);
        let accepted = (self.inner.model).accept(self.program, &mut x[..n], y);
        for ((origin, before), x) in self.origin.iter_mut().zip(&self.before).zip(x.iter()) {
            *origin += x - before;
        }
        accepted
    }

    fn suffices(&mut self, x: &[f64], slacks: &[f64]) -> bool {
        let n = self.n();
        self.w[..n].copy_from_slice(&x[..n]);
        self.w[n..].copy_from_slice(slacks);
        if self
            .inner
            .model
            .evaluate(self.program, &self.w, &mut self.values)
            .is_err()
        {
            return false;
        }
        let violation = self.values.violation();
        let value = self.inner.barrier_at(&self.w, &self.values);
        let before = self.violation;
        // better than its start by far more than the filter's margins
        violation <= ENOUGH * before && self.inner.filter.accepts((violation, value))
    }

    fn row_name(&self, i: usize) -> String {
        self.program.row_name(i)
    }
}

/// Restores feasibility, or tells why not.
pub fn restore(
    solver: &mut Solver,
    program: &mut dyn Program,
    observer: &mut dyn FnMut(&Row) -> bool,
) -> Result<(), (Status, String)> {
    let (n, m) = (solver.model.n, solver.model.m);
    let violation = solver.at.values.violation();
    let value = solver.barrier_at(&solver.at.w, &solver.at.values);
    solver.filter.add((violation, value));
    let rows = solver.at.values.rows.clone();
    let mu = solver.parameter.mu.max(largest(&rows));
    let mut options = Options {
        start: mu,
        barrier: Barrier::Monotone,
        largest_gradient: f64::INFINITY,
        // what holds it near its start curves all there is
        curvature: match solver.options.curvature {
            Curvature::LimitedMemory => Curvature::GaussNewton,
            other => other,
        },
        max_iterations: solver.options.max_iterations - solver.made(),
        widening: 0.0,
        violation: f64::INFINITY,
        // it is inside, and what is elastic on its central path
        push: 1e-9,
        ..solver.options
    };
    let mut start = solver.at.w[..n].to_vec();
    // p and n on the central path
    for part in 0..2 {
        start.extend(rows.iter().map(|c| {
            let half = (mu - RHO * c) / (2.0 * RHO);
            let negative = half + (half * half + mu * c / (2.0 * RHO)).sqrt();
            let negative = negative.max(1e-8);
            if part == 0 {
                (c + negative).max(1e-8)
            } else {
                negative
            }
        }));
    }
    let mut origin = solver.at.w[..n].to_vec();
    let wide = solver.at.w.len();
    let at = solver.at.clone();
    let scale: Vec<f64> = origin.iter().map(|x| 1.0 / x.abs().max(1.0)).collect();
    let mut zeta = solver.parameter.mu.sqrt();
    let mut x = origin.clone();
    let (status, reason, slacks) = loop {
        let mut elastic = Elastic {
            scale: scale.clone(),
            origin: origin.clone(),
            zeta,
            start: start.clone(),
            violation,
            values: Values {
                objective: 0.0,
                rows: vec![0.0; m],
            },
            w: vec![0.0; wide],
            before: vec![0.0; n],
            inner: &mut *solver,
            program: &mut *program,
        };
        let mut inner = Solver::new(&elastic, &options, 1);
        let mut history = vec![];
        let (status, reason) = inner.run_from(&mut elastic, None, &mut |row| {
            history.push(*row);
            observer(row)
        });
        let slacks = inner.at.w[n + 2 * m..].to_vec();
        let made = inner.kkt.as_ref().map_or((0, 0), |k| k.factorizations);
        start.copy_from_slice(&inner.at.w[..n + 2 * m]);
        drop(inner);
        let moved = elastic.origin.clone();
        drop(elastic);
        x.copy_from_slice(&start[..n]);
        // a manifold's moves begin anew where they were accepted
        origin.copy_from_slice(&moved);
        solver.count(made);
        // the first is where the restoration began
        solver.history.extend(history.into_iter().skip(1));
        if status != Status::Converged || zeta <= ALONE {
            break (status, reason, slacks);
        }
        // what holds it near its start is no violation
        zeta = (FADING * zeta).max(ALONE);
        options.start = RESTART;
        options.max_iterations = solver.options.max_iterations.saturating_sub(solver.made());
    };
    solver.at = at;
    solver.at.w[..n].copy_from_slice(&x);
    solver.at.w[n..].copy_from_slice(&slacks);
    let (model, at) = (&mut solver.model, &mut solver.at);
    if let Err(e) = model.evaluate(program, &at.w, &mut at.values) {
        return Err((Status::Stalled, e.to_string()));
    }
    let end = match status {
        Status::Stopped if reason.is_empty() => None,
        Status::Stopped => Some((Status::Stopped, reason)),
        Status::MaxIterations => Some((Status::MaxIterations, reason)),
        _ if model.worst(&at.values.rows).0 <= solver.options.violation => {
            let reason = "no step from here is acceptable, and the rows hold";
            Some((Status::Stalled, reason.into()))
        }
        Status::Converged => Some((
            Status::Infeasible,
            "the violation of the rows has a minimum here".into(),
        )),
        _ => Some((
            Status::Stalled,
            format!("the restoration ends {status}: {reason}"),
        )),
    };
    let mu = solver.parameter.mu;
    for i in 0..solver.at.w.len() {
        let (below, above) = solver.model.gaps(&solver.at.w, i);
        for (z, gap, bound) in [
            (&mut solver.at.lower[i], below, solver.model.lower[i]),
            (&mut solver.at.upper[i], above, solver.model.upper[i]),
        ] {
            if bound.is_finite() {
                *z = (mu / gap).min(LARGEST_MULTIPLIER);
            }
        }
    }
    solver.arrive(program);
    solver.forget_rows(LARGEST_MULTIPLIER);
    // the rows before are those of the restoration's own program
    solver.note(1.0, 0.0);
    if let Some((status, reason)) = end {
        let reason = solver.with_rows(program, reason);
        return Err((status, reason));
    }
    Ok(())
}
