//! Proportional-derivative control along references that may be tuned as well.

use super::policy::{Policy, PolicyError, PolicyRows};
use crate::dynamics::{Knot, Observe, Parameter, QuantityId, StepError};
use std::f64::consts::TAU;

/// A number that is given, or one of the policy's parameters, by its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tunable {
    /// Given.
    Fixed(f64),
    /// Found.
    Parameter(usize),
}

impl Tunable {
    fn value(self, own: &[f64]) -> f64 {
        match self {
            Self::Fixed(v) => v,
            Self::Parameter(i) => own[i],
        }
    }
}

/// A part of a reference over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// `c`
    Constant(Tunable),
    /// `amplitude sin(2 pi frequency t + phase)`
    Sine {
        /// In the quantity's unit.
        amplitude: Tunable,
        /// In units of `unit`.
        frequency: Tunable,
        /// Hz
        unit: f64,
        /// rad
        phase: Tunable,
    },
    /// Values and rates at the knots; behind the last that one holds.
    Recorded {
        /// In the quantity's unit.
        values: Vec<f64>,
        /// By second.
        rates: Vec<f64>,
    },
}

impl Reference {
    /// Value and rate.
    fn at(&self, at: &Knot, own: &[f64]) -> [f64; 2] {
        match self {
            Self::Constant(c) => [c.value(own), 0.0],
            Self::Sine {
                amplitude,
                frequency,
                unit,
                phase,
            } => {
                let (a, omega) = (amplitude.value(own), TAU * unit * frequency.value(own));
                let (sin, cos) = (omega * at.t + phase.value(own)).sin_cos();
                [a * sin, a * omega * cos]
            }
            Self::Recorded { values, rates } => {
                let last = |list: &[f64]| list.get(at.k).or(list.last()).copied();
                [values, rates].map(|l| last(l).unwrap_or(0.0))
            }
        }
    }

    /// Adds `scale` times the derivatives by the policy's parameters: of the value times the first, of the rate times the
    /// second.
    fn by_own(
        &self,
        at: &Knot,
        own: &[f64],
        [of, of_rate]: [f64; 2],
        add: &mut impl FnMut(usize, f64),
    ) {
        let mut by = |t: Tunable, d: f64| {
            if let Tunable::Parameter(i) = t {
                add(i, d);
            }
        };
        match self {
            Self::Constant(c) => by(*c, of),
            Self::Sine {
                amplitude,
                frequency,
                unit,
                phase,
            } => {
                let (a, f) = (amplitude.value(own), frequency.value(own));
                let omega = TAU * unit * f;
                let (sin, cos) = (omega * at.t + phase.value(own)).sin_cos();
                by(*amplitude, of * sin + of_rate * omega * cos);
                let turned = of * a * cos - of_rate * a * omega * sin;
                by(*phase, turned);
                by(*frequency, TAU * unit * (at.t * turned + of_rate * a * cos));
            }
            Self::Recorded { .. } => (),
        }
    }
}

/// One control by feedback,
///
/// ```text
/// u = kp (r(t) - q) + kd (r'(t) - rate),    with a limit L tanh(u / L) instead of u
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Index of the system's control.
    pub control: usize,
    /// Quantity `q`.
    pub coordinate: QuantityId,
    /// Quantity `rate`; of a mechanism the rate over the interval just past.
    pub rate: QuantityId,
    /// Proportional gain.
    pub kp: Tunable,
    /// Derivative gain.
    pub kd: Tunable,
    /// Its parts add up.
    pub reference: Vec<Reference>,
    /// Is the rate to follow the reference's? Else it is to vanish.
    pub follows_rate: bool,
    /// Largest size of what is exerted, approached smoothly.
    pub limit: Option<f64>,
}

/// Proportional-derivative control of several controls, whose gains and references may share parameters. Controls may
/// stay open beside it, as feed-forward.
#[derive(Clone, Debug)]
pub struct Tracking {
    loops: Vec<Track>,
    parameters: Vec<Parameter>,
    sees: Vec<QuantityId>,
    open: usize,
    times: Vec<f64>,
}

impl Tracking {
    /// For a system; with `feed_forward` as many open controls as it has are added.
    ///
    /// # Errors
    /// When a loop refers to a control, a quantity or a parameter that is not there, or a limit is not positive.
    pub fn new(
        system: &impl Observe,
        loops: Vec<Track>,
        parameters: Vec<Parameter>,
        feed_forward: bool,
    ) -> Result<Self, PolicyError> {
        let (nu, nq) = (system.controls().len(), system.quantities().len());
        let refused = |why: String| Err(PolicyError(why));
        for l in &loops {
            let wrong = [l.coordinate, l.rate].into_iter().find(|q| q.index() >= nq);
            if let Some(q) = wrong {
                return refused(format!(
                    "there is no quantity {}; the system has {nq}",
                    q.index()
                ));
            }
            if l.control >= nu {
                return refused(format!(
                    "there is no control {}; the system has {nu}",
                    l.control
                ));
            }
            if let Some(limit) = l.limit.filter(|v| !(*v > 0.0 && v.is_finite())) {
                return refused(format!("a limit is {limit}; give a positive number"));
            }
            let parts = l.reference.iter().flat_map(|r| match r {
                Reference::Constant(c) => vec![*c],
                Reference::Sine {
                    amplitude,
                    frequency,
                    phase,
                    ..
                } => vec![*amplitude, *frequency, *phase],
                Reference::Recorded { .. } => vec![],
            });
            for t in parts.chain([l.kp, l.kd]) {
                if let Tunable::Parameter(i) = t
                    && i >= parameters.len()
                {
                    let n = parameters.len();
                    return refused(format!("there is no parameter {i}; the policy has {n}"));
                }
            }
        }
        Ok(Self {
            sees: loops.iter().flat_map(|l| [l.coordinate, l.rate]).collect(),
            open: if feed_forward { nu } else { 0 },
            loops,
            parameters,
            times: vec![],
        })
    }

    /// References go by these times of the knots, s, whatever durations that are found make of them: derivatives by a
    /// duration know nothing of what depends on time itself.
    #[must_use]
    pub fn with_times(self, times: Vec<f64>) -> Self {
        Self { times, ..self }
    }

    /// The same for knots at the middles of the intervals, too; what is recorded is interpolated there.
    #[must_use]
    pub fn halved(&self) -> Self {
        let mut out = self.clone();
        out.times = with_middles(&self.times);
        for part in out.loops.iter_mut().flat_map(|l| &mut l.reference) {
            if let Reference::Recorded { values, rates } = part {
                (*values, *rates) = (with_middles(values), with_middles(rates));
            }
        }
        out
    }

    /// Do all references stand still, without feed-forward?
    pub fn stands(&self) -> bool {
        let mut parts = self.loops.iter().flat_map(|l| &l.reference);
        self.open == 0 && parts.all(|r| matches!(r, Reference::Constant(_)))
    }

    fn knot(&self, at: &Knot) -> Knot {
        Knot {
            t: self.times.get(at.k).copied().unwrap_or(at.t),
            ..*at
        }
    }
}

/// Numbers with the means of neighbors between them.
fn with_middles(list: &[f64]) -> Vec<f64> {
    let pairs = list.windows(2);
    let all = pairs.flat_map(|pair| [pair[0], 0.5 * (pair[0] + pair[1])]);
    all.chain(list.last().copied()).collect()
}

impl Track {
    /// What is left of coordinate and rate.
    fn errors(&self, at: &Knot, seen: &[f64], own: &[f64]) -> [f64; 2] {
        let mut errors = [-seen[0], -seen[1]];
        for part in &self.reference {
            let [r, rate] = part.at(at, own);
            errors[0] += r;
            if self.follows_rate {
                errors[1] += rate;
            }
        }
        errors
    }

    /// What is exerted, and its slope by what would be without the limit.
    fn limited(&self, u: f64) -> (f64, f64) {
        match self.limit {
            None => (u, 1.0),
            Some(l) => {
                let t = (u / l).tanh();
                (l * t, 1.0 - t * t)
            }
        }
    }
}

impl Policy for Tracking {
    fn sees(&self) -> &[QuantityId] {
        &self.sees
    }

    fn open(&self) -> usize {
        self.open
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn act(
        &self,
        at: &Knot,
        seen: &[f64],
        open: &[f64],
        own: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let at = &self.knot(at);
        out.fill(0.0);
        super::add(out, 1.0, open.iter());
        for (l, seen) in self.loops.iter().zip(seen.chunks_exact(2)) {
            let [e, rate] = l.errors(at, seen, own);
            let u = l.kp.value(own) * e + l.kd.value(own) * rate;
            out[l.control] += l.limited(u).0;
        }
        Ok(())
    }

    fn differentiate(
        &self,
        at: &Knot,
        seen: &[f64],
        _: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        let at = &self.knot(at);
        by.open.fill_with_identity();
        for (i, (l, seen)) in self.loops.iter().zip(seen.chunks_exact(2)).enumerate() {
            let [e, rate] = l.errors(at, seen, own);
            let gains = [l.kp.value(own), l.kd.value(own)];
            let slope = l.limited(gains[0] * e + gains[1] * rate).1;
            for (k, gain) in gains.iter().enumerate() {
                by.seen[(l.control, 2 * i + k)] -= slope * gain;
            }
            let mut add = |p: usize, d: f64| by.own[(l.control, p)] += slope * d;
            for (gain, error) in [(l.kp, e), (l.kd, rate)] {
                if let Tunable::Parameter(p) = gain {
                    add(p, error);
                }
            }
            for part in &l.reference {
                let of_rate = if l.follows_rate { gains[1] } else { 0.0 };
                part.by_own(at, own, [gains[0], of_rate], &mut add);
            }
        }
        Ok(())
    }
}
