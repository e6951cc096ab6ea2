//! Masses on a line with one hard contact, or friction: the step solves the central path of its complementarity, its
//! derivatives are those at any parameter.
//!
//! With `v~ = v + h (B u + g)` free velocities and the impulse `m_c b` along the row `N`,
//!
//! ```text
//! v+ = v~ + m_c b M^-1 N',   q+ = q + h v+,   m_c = 1 / (N M^-1 N')
//! contact:   s = (N q + gap)/h + N v~ + b,   s b = kappa,   s, b >= 0
//! friction:  N v+ = N v~ + b,   (F, b) o (psi, N v+) = kappa (1, 0),   psi >= |N v+|,  |b| <= F
//! ```

use least_action::dynamics::{
    Certificate, Charts, Differentiable, Dims, Equations, Inputs, Knot, KnotPoint, Observe,
    Outputs, QuantityId, SolvedStep, Step, StepError, StepStats,
};
use least_action::without;
use nalgebra::DMatrix;

/// Parameter of the step, m^2/s^2.
pub const HARD: f64 = 1e-10;

#[derive(Clone, Copy, Debug)]
pub enum Touch {
    /// Gap at `q = 0`, m.
    Contact(f64),
    /// Largest change of velocity per time, m/s^2.
    Friction(f64),
}

impl Touch {
    /// `b` and its derivative by `d`: the free velocity, for a contact with the gap over the interval.
    fn impulse(self, d: f64, h: f64, kappa: f64) -> (f64, f64) {
        match self {
            Self::Contact(_) => {
                let root = d.hypot(2.0 * kappa.sqrt());
                let b = if d > 0.0 {
                    2.0 * kappa / (d + root)
                } else {
                    0.5 * (root - d)
                };
                (b, -b / root)
            }
            Self::Friction(bound) => {
                // d + b + kappa b / (F^2 - b^2) = 0 grows with b
                let f = bound * h;
                let (mut low, mut high) = (-f, f);
                for _ in 0..200 {
                    let b = 0.5 * (low + high);
                    if d + b + kappa * b / ((f - b) * (f + b)) < 0.0 {
                        low = b;
                    } else {
                        high = b;
                    }
                }
                let b = 0.5 * (low + high);
                let room = (f - b) * (f + b);
                let slope = if room > 0.0 {
                    -1.0 / (1.0 + kappa * (f * f + b * b) / (room * room))
                } else {
                    0.0
                };
                (b, slope)
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct Masses {
    /// kg
    pub mass: Vec<f64>,
    /// m/s^2, of each.
    pub gravity: f64,
    /// Force on each by each control, n x nu.
    pub drive: DMatrix<f64>,
    pub row: Vec<f64>,
    pub touch: Touch,
}

pub struct Work {
    /// Of derivatives, and of steps.
    kappa: f64,
    softness: f64,
    /// 2n x (2n + nu)
    jacobian: DMatrix<f64>,
}

impl Masses {
    fn n(&self) -> usize {
        self.mass.len()
    }

    /// The next state; returns the derivative of `b` by what the contact sees.
    pub fn solve(&self, h: f64, x: &[f64], u: &[f64], kappa: f64, next: &mut [f64]) -> f64 {
        let n = self.n();
        let (q, v) = x.split_at(n);
        let (to, free) = next.split_at_mut(n);
        for i in 0..n {
            let force: f64 = u
                .iter()
                .enumerate()
                .map(|(j, u)| self.drive[(i, j)] * u)
                .sum();
            free[i] = v[i] + h * (force / self.mass[i] - self.gravity);
        }
        let along = |v: &[f64]| self.row.iter().zip(v).map(|(n, v)| n * v).sum::<f64>();
        let gap = match self.touch {
            Touch::Contact(gap) => (along(q) + gap) / h,
            Touch::Friction(_) => 0.0,
        };
        let (b, slope) = self.touch.impulse(gap + along(free), h, kappa);
        for i in 0..n {
            free[i] += self.lever(i) * b;
            to[i] = q[i] + h * free[i];
        }
        slope
    }

    /// m_c M^-1 N'
    fn lever(&self, i: usize) -> f64 {
        let squares = self.row.iter().zip(&self.mass).map(|(n, m)| n * n / m);
        self.row[i] / self.mass[i] / squares.sum::<f64>()
    }
}

impl Step for Masses {
    type Work = Work;

    without!(names, parameters, start);

    fn dims(&self) -> Dims {
        let n = 2 * self.n();
        Dims {
            nx: n,
            nf: n,
            ndx: n,
            nu: self.drive.ncols(),
            np: 0,
            ny: 0,
        }
    }

    fn work(&self) -> Work {
        let d = self.dims();
        Work {
            kappa: 0.0,
            softness: 0.0,
            jacobian: DMatrix::zeros(d.nx, d.nx + d.nu),
        }
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        _: &[f64],
        w: &mut Work,
        next: &mut [f64],
        _: &mut [f64],
    ) -> Result<StepStats, StepError> {
        self.solve(at.h, x, u, w.softness.max(HARD), next);
        Ok(StepStats::default())
    }

    fn soften(&self, w: &mut Work, kappa: f64) -> bool {
        w.softness = kappa;
        true
    }
}

impl Differentiable for Masses {
    without!(keeping);

    fn smoothing(&self, w: &mut Work, kappa: f64) {
        w.kappa = kappa;
    }

    fn linearize_in(&self, at: &SolvedStep, w: &mut Work) -> Result<Certificate, StepError> {
        let (n, h) = (self.n(), at.at.h);
        let kappa = w.kappa.max(w.softness).max(HARD);
        let mut next = vec![0.0; 2 * n];
        let slope = self.solve(h, at.x, at.u, kappa, &mut next);
        let by_position = match self.touch {
            Touch::Contact(_) => slope / h,
            Touch::Friction(_) => 0.0,
        };
        let j = &mut w.jacobian;
        j.fill(0.0);
        for r in 0..n {
            for c in 0..n {
                let same = if r == c { 1.0 } else { 0.0 };
                let moved = self.lever(r) * self.row[c];
                j[(n + r, c)] = moved * by_position;
                j[(n + r, n + c)] = same + moved * slope;
            }
            for c in 0..at.u.len() {
                j[(n + r, 2 * n + c)] = (0..n)
                    .map(|i| j[(n + r, n + i)] * h * self.drive[(i, c)] / self.mass[i])
                    .sum();
            }
            for c in 0..2 * n + at.u.len() {
                j[(r, c)] = h * j[(n + r, c)] + if r == c { 1.0 } else { 0.0 };
            }
        }
        Ok(Certificate {
            kappa,
            has_gaps: true,
            ..Certificate::default()
        })
    }

    fn push_in(&self, w: &mut Work, d: &Inputs, out: &mut Outputs) {
        let all = d.x.iter().chain(&d.u);
        out.x.fill(0.0);
        for (column, d) in w.jacobian.column_iter().zip(all) {
            out.x
                .iter_mut()
                .zip(column.iter())
                .for_each(|(o, c)| *o += c * d);
        }
    }

    fn pull_in(&self, w: &mut Work, adjoint: &Outputs, out: &mut Inputs) {
        out.clear();
        let all = out.x.iter_mut().chain(&mut out.u);
        for (column, o) in w.jacobian.column_iter().zip(all) {
            *o = column.iter().zip(&adjoint.x).map(|(c, a)| c * a).sum();
        }
    }
}

impl Equations for Masses {}

impl Charts for Masses {
    without!(charts, model);
}

/// Positions, velocities, controls.
impl Observe for Masses {
    without!(unknowns);

    fn quantities(&self) -> Vec<(String, String)> {
        let d = self.dims();
        let named = |i| (format!("{i}"), "1".into());
        (0..d.nx + d.nu).map(named).collect()
    }

    fn observe_in(
        &self,
        seen: &KnotPoint,
        which: &[QuantityId],
        _: &mut Work,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let all = |q: &QuantityId| seen.x.iter().chain(seen.u).nth(q.index()).copied();
        for (o, q) in out.iter_mut().zip(which) {
            *o = all(q).unwrap_or(f64::NAN);
        }
        Ok(())
    }

    fn observe_pull_in(
        &self,
        _: &KnotPoint,
        which: &[QuantityId],
        _: &mut Work,
        adjoint: &[f64],
        out: &mut Inputs,
        _: &mut [f64],
    ) {
        for (q, a) in which.iter().zip(adjoint) {
            if let Some(o) = out.x.iter_mut().chain(&mut out.u).nth(q.index()) {
                *o += a;
            }
        }
    }
}
