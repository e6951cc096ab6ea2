//! Policies: the controls of a system computed from what is seen of it.

use super::{add, dot};
use crate::dynamics::{Knot, Observe, Parameter};
use nalgebra::DMatrix;

/// A policy `u = f(s, v, g, t)` for the controls `u` of a system: `s` are the quantities it sees (they must not depend
/// on the control that is about to act), `v` controls that it leaves open, `g` parameters of its own.
pub trait Policy: Sync {
    /// The quantities seen, as indices into the system's list.
    fn sees(&self) -> &[usize];

    /// Number of controls left open.
    fn open(&self) -> usize;

    /// Gains and the like.
    fn parameters(&self) -> Vec<Parameter> {
        vec![]
    }

    /// The system's controls, into `out`.
    fn act(&self, at: &Knot, seen: &[f64], open: &[f64], own: &[f64], out: &mut [f64]);

    /// Their derivatives at the same place, into `by`, which holds zeros.
    fn differentiate(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    );
}

/// A policy that does not fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

/// Derivatives of the system's controls, one row each.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRows {
    /// By the quantities seen.
    pub seen: DMatrix<f64>,
    /// By the open controls.
    pub open: DMatrix<f64>,
    /// By the policy's own parameters.
    pub own: DMatrix<f64>,
}

/// A signal over time, with nothing to differentiate.
pub type Signal = Box<dyn Fn(f64) -> f64 + Send + Sync>;

/// A proportional-derivative law for one control,
/// `u = kp (reference(t) - q) + kd (rate_reference(t) - rate) + feed-forward`.
pub struct Loop {
    /// Index of the system's control.
    pub control: usize,
    /// Quantity `q`.
    pub coordinate: usize,
    /// Quantity `rate`; of a mechanism the rate over the interval just past, as a sampled controller sees it.
    pub rate: usize,
    /// Gains `kp`, `kd`: the policy's parameters, loop by loop.
    pub gains: (f64, f64),
    /// What `q` is to follow.
    pub reference: Signal,
    /// What the rate is to follow.
    pub rate_reference: Signal,
}

/// The unit of a quotient: `N m` by `rad/s` is `N m s/rad`.
fn quotient(of: &str, by: &str) -> String {
    let (by, over) = by.split_once('/').unwrap_or((by, "1"));
    let factors = [of, over].into_iter().filter(|f| *f != "1");
    let above = factors.collect::<Vec<_>>().join(" ");
    match (above.as_str(), by) {
        ("", "1") => "1".into(),
        (_, "1") => above,
        ("", _) => format!("1/{by}"),
        _ => format!("{above}/{by}"),
    }
}

/// Proportional-derivative control: one [`Loop`] for each control that has one; feed-forward controls may stay open.
pub struct Pd {
    loops: Vec<Loop>,
    open: usize,
    sees: Vec<usize>,
    parameters: Vec<Parameter>,
}

impl Pd {
    /// For a system. With `feed_forward` the open controls are added, as many as the system has; else there are none.
    /// The gains are parameters named by their controls, as `kp of motor`, in units of the control by those of the
    /// quantity.
    ///
    /// # Errors
    /// When a loop refers to a control or a quantity that the system does not have.
    pub fn new(
        system: &impl Observe,
        loops: Vec<Loop>,
        feed_forward: bool,
    ) -> Result<Self, PolicyError> {
        let (controls, quantities) = (system.controls(), system.quantities());
        let none = |what: &str, i: usize, of: usize| {
            PolicyError(format!("there is no {what} {i}; the system has {of}"))
        };
        let mut parameters = vec![];
        for l in &loops {
            let control = controls.get(l.control);
            let (name, of) = control.ok_or(none("control", l.control, controls.len()))?;
            let gains = [("kp", l.coordinate, l.gains.0), ("kd", l.rate, l.gains.1)];
            for (kind, quantity, value) in gains {
                let seen = quantities.get(quantity);
                let (_, by) = seen.ok_or(none("quantity", quantity, quantities.len()))?;
                parameters.push(Parameter {
                    name: format!("{kind} of {name}"),
                    unit: quotient(of, by),
                    value,
                });
            }
        }
        Ok(Self {
            open: if feed_forward { controls.len() } else { 0 },
            sees: loops.iter().flat_map(|l| [l.coordinate, l.rate]).collect(),
            loops,
            parameters,
        })
    }

    /// What is left of `q` and its rate.
    fn errors(l: &Loop, t: f64, seen: &[f64]) -> [f64; 2] {
        [(l.reference)(t) - seen[0], (l.rate_reference)(t) - seen[1]]
    }
}

impl Policy for Pd {
    fn sees(&self) -> &[usize] {
        &self.sees
    }

    fn open(&self) -> usize {
        self.open
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn act(&self, at: &Knot, seen: &[f64], open: &[f64], own: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        add(out, 1.0, open.iter());
        let pairs = seen.chunks_exact(2).zip(own.chunks_exact(2));
        for (l, (seen, gains)) in self.loops.iter().zip(pairs) {
            out[l.control] += dot(gains.iter(), &Self::errors(l, at.t, seen));
        }
    }

    fn differentiate(&self, at: &Knot, seen: &[f64], _: &[f64], own: &[f64], by: &mut PolicyRows) {
        by.open.fill_with_identity();
        for (i, l) in self.loops.iter().enumerate() {
            let errors = Self::errors(l, at.t, &seen[2 * i..2 * i + 2]);
            for k in 0..2 {
                by.seen[(l.control, 2 * i + k)] -= own[2 * i + k];
                by.own[(l.control, 2 * i + k)] += errors[k];
            }
        }
    }
}

/// Linear feedback around a plan, `u_k = open + plan_k - K_k (s - s_k)`, as differential dynamic programming gives it.
/// Behind its end the plan's last entry holds on.
#[derive(Clone, Debug)]
pub struct LinearFeedback {
    /// The quantities `s`.
    pub sees: Vec<usize>,
    /// Number of open controls: as many as the system's, or none.
    pub open: usize,
    /// The plan's controls, knot by knot.
    pub controls: Vec<Vec<f64>>,
    /// The plan's quantities `s_k`.
    pub quantities: Vec<Vec<f64>>,
    /// `K_k`, controls x quantities.
    pub gains: Vec<DMatrix<f64>>,
}

impl LinearFeedback {
    /// The plan's entry at a knot.
    fn knot(&self, at: &Knot) -> Option<usize> {
        let shortest = self.gains.len().min(self.controls.len());
        Some(at.k.min(shortest.min(self.quantities.len()).checked_sub(1)?))
    }
}

impl Policy for LinearFeedback {
    fn sees(&self) -> &[usize] {
        &self.sees
    }

    fn open(&self) -> usize {
        self.open
    }

    fn act(&self, at: &Knot, seen: &[f64], open: &[f64], _: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        add(out, 1.0, open.iter());
        let Some(k) = self.knot(at) else { return };
        add(out, 1.0, self.controls[k].iter());
        for (i, out) in out.iter_mut().enumerate() {
            let gains = self.gains[k].row(i);
            let errors = seen.iter().zip(&self.quantities[k]).map(|(s, r)| s - r);
            *out -= gains.iter().zip(errors).map(|(g, e)| g * e).sum::<f64>();
        }
    }

    fn differentiate(&self, at: &Knot, _: &[f64], _: &[f64], _: &[f64], by: &mut PolicyRows) {
        by.open.fill_with_identity();
        if let Some(k) = self.knot(at) {
            by.seen -= &self.gains[k];
        }
    }
}

/// A law written by the user: `law(knot, seen, open, own, u, rows)` computes the controls `u`, and their derivatives
/// where `rows` asks for them.
pub struct Law<F> {
    /// The quantities seen.
    pub sees: Vec<usize>,
    /// Number of open controls.
    pub open: usize,
    /// The law's own parameters.
    pub parameters: Vec<Parameter>,
    /// Controls of the system.
    pub controls: usize,
    /// The law.
    pub law: F,
}

impl<F> Policy for Law<F>
where
    F: Fn(&Knot, &[f64], &[f64], &[f64], &mut [f64], Option<&mut PolicyRows>) + Sync,
{
    fn sees(&self) -> &[usize] {
        &self.sees
    }

    fn open(&self) -> usize {
        self.open
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn act(&self, at: &Knot, seen: &[f64], open: &[f64], own: &[f64], out: &mut [f64]) {
        (self.law)(at, seen, open, own, out, None);
    }

    fn differentiate(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    ) {
        let mut u = vec![0.0; self.controls];
        (self.law)(at, seen, open, own, &mut u, Some(by));
    }
}
