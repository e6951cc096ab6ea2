//! What a learner decides as one list of numbers, and where that is in a problem.

use super::{Decide, Settings, spline};
use crate::control::{ObjectiveGradient, Point, Problem};
use crate::optimize::scale;
use nalgebra::{DMatrix, DVector};

/// In what unit a learner counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::optimize) enum Unit {
    /// Of each decision its own: half of the range between its bounds; where one is open, the size of a parameter, at
    /// least one, and one of a control.
    Size,
    /// That of the quantities themselves.
    One,
}

/// The decisions of a learner: controls knot by knot, or knot by knot of their splines, then free parameters; each
/// divided by its unit.
pub(in crate::optimize) struct Decisions {
    nu: usize,
    /// From the knots of splines to steps.
    basis: Option<DMatrix<f64>>,
    /// Numbers of controls.
    controls: usize,
    /// Which parameters.
    free: Vec<usize>,
    unit: Vec<f64>,
    /// Smallest and largest, in units.
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
    /// Where learning starts: the guess, within bounds.
    pub start: Vec<f64>,
}

impl Decisions {
    /// Of a problem that the settings fit.
    pub fn new(problem: &Problem, settings: &Settings, unit: Unit) -> Self {
        let (steps, nu) = (problem.intervals.len(), problem.bounds.len());
        let decides = |what| settings.decide == what || settings.decide == Decide::All;
        let with_controls = decides(Decide::Controls) && nu > 0 && steps > 0;
        let basis = settings.splines.filter(|_| with_controls).map(|knots| {
            // controls act from knot to knot: the last begins where the last interval does
            let mut time = 0.0;
            let starts = problem.intervals.iter().map(|h| {
                let start = time;
                time += h;
                start
            });
            let starts: Vec<f64> = starts.collect();
            let last = starts.last().copied().filter(|t| *t > 0.0).unwrap_or(1.0);
            let at: Vec<f64> = starts.iter().map(|t| t / last).collect();
            spline::natural_basis(&at, knots)
        });
        let rows = match &basis {
            _ if !with_controls => 0,
            Some(basis) => basis.ncols(),
            None => steps,
        };
        let free = match decides(Decide::Parameters) {
            true => problem.free_parameters(),
            false => vec![],
        };
        let of_controls = (0..rows).flat_map(|_| problem.bounds.iter().map(|b| (0.0, *b)));
        let of_parameters = free.iter().map(|&i| {
            let start = problem.parameters.get(i).copied().unwrap_or(0.0);
            (start, problem.parameter_bounds[i])
        });
        let all: Vec<(f64, (f64, f64))> = of_controls.chain(of_parameters).collect();
        let size = |(start, (l, u)): &(f64, (f64, f64))| match unit {
            Unit::One => 1.0,
            Unit::Size => {
                let extent = scale::extent(*start, (*l, *u));
                let half = if (u - l).is_finite() { 0.5 } else { 1.0 };
                // where both bounds are the same there is nothing to decide
                if extent > 0.0 { half * extent } else { 1.0 }
            }
        };
        let unit: Vec<f64> = all.iter().map(size).collect();
        let bound = |of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            let scaled = all.iter().zip(&unit).map(|((_, b), s)| of(b) / s);
            scaled.collect()
        };
        let mut out = Self {
            nu,
            basis,
            controls: rows * nu,
            free,
            lower: bound(|b| b.0),
            upper: bound(|b| b.1),
            unit,
            start: vec![],
        };
        out.start = out.of(&problem.guess, &problem.parameters);
        out
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.unit.len()
    }

    /// The decisions nearest to controls and parameters, within bounds.
    pub fn of(&self, controls: &[f64], parameters: &[f64]) -> Vec<f64> {
        let mut out = match &self.basis {
            None => controls[..self.controls].to_vec(),
            Some(basis) => {
                let mut out = vec![0.0; self.controls];
                for j in 0..self.nu {
                    let own = controls.iter().skip(j).step_by(self.nu).copied();
                    let own = DVector::from_iterator(basis.nrows(), own);
                    for (i, v) in spline::fit(basis, &own).iter().enumerate() {
                        out[i * self.nu + j] = *v;
                    }
                }
                out
            }
        };
        out.extend(self.free.iter().map(|&i| parameters[i]));
        out.iter_mut().zip(&self.unit).for_each(|(v, s)| *v /= s);
        self.clamp(&mut out);
        out
    }

    /// Moves decisions to the nearest within bounds.
    pub fn clamp(&self, decisions: &mut [f64]) {
        clamp(decisions, &self.lower, &self.upper);
    }

    /// The gradient by decisions within bounds, from the one by controls and parameters where they were put. A spline's
    /// overshoot beyond the bounds, which [`Decisions::put`] cuts off, does not count.
    pub fn pull(
        &self,
        decisions: &[f64],
        problem: &Problem,
        gradient: &ObjectiveGradient,
        out: &mut [f64],
    ) {
        let (controls, parameters) = out.split_at_mut(self.controls);
        match &self.basis {
            None => controls.copy_from_slice(&gradient.controls[..self.controls]),
            Some(basis) => {
                controls.fill(0.0);
                let by = gradient.controls.chunks_exact(self.nu).enumerate();
                for (k, by) in by {
                    for (j, (by, (l, h))) in by.iter().zip(&problem.bounds).enumerate() {
                        let knots = 0..basis.ncols();
                        let place = |i: usize| i * self.nu + j;
                        let value = |i: usize| self.unit[place(i)] * decisions[place(i)];
                        let u: f64 = knots.clone().map(|i| basis[(k, i)] * value(i)).sum();
                        if (*l..=*h).contains(&u) {
                            knots.for_each(|i| controls[place(i)] += basis[(k, i)] * by);
                        }
                    }
                }
            }
        }
        for (to, &i) in parameters.iter_mut().zip(&self.free) {
            *to = gradient.parameters[i];
        }
        out.iter_mut().zip(&self.unit).for_each(|(g, s)| *g *= s);
    }

    /// Puts decisions into a point, within bounds; what is not decided stays there as it is.
    pub fn put(&self, decisions: &[f64], problem: &Problem, point: &mut Point) {
        let value = |i: usize| {
            let within = decisions[i].max(self.lower[i]).min(self.upper[i]);
            self.unit[i] * within
        };
        match &self.basis {
            None => (0..self.controls).for_each(|i| point.controls[i] = value(i)),
            Some(basis) => {
                for (k, u) in point.controls.chunks_exact_mut(self.nu).enumerate() {
                    for (j, u) in u.iter_mut().enumerate() {
                        let knots = 0..basis.ncols();
                        *u = knots.map(|i| basis[(k, i)] * value(i * self.nu + j)).sum();
                    }
                }
            }
        }
        if self.controls > 0 {
            // splines overshoot, and units round
            for u in point.controls.chunks_exact_mut(self.nu) {
                for (u, (l, h)) in u.iter_mut().zip(&problem.bounds) {
                    *u = u.max(*l).min(*h);
                }
            }
        }
        for (n, &i) in self.free.iter().enumerate() {
            let (l, h) = problem.parameter_bounds[i];
            point.parameters[i] = value(self.controls + n).max(l).min(h);
        }
    }
}

/// Moves each to the nearest within its bounds.
pub(super) fn clamp(values: &mut [f64], lower: &[f64], upper: &[f64]) {
    for (v, (l, u)) in values.iter_mut().zip(lower.iter().zip(upper)) {
        *v = v.max(*l).min(*u);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> Problem {
        let inf = f64::INFINITY;
        Problem {
            intervals: vec![0.1; 8],
            coordinates: vec![],
            rates: vec![],
            costs: vec![],
            constraints: vec![],
            bounds: vec![(-1.0, 5.0), (-inf, inf)],
            parameters: vec![2.0, 7.0, -30.0],
            parameter_bounds: vec![(0.0, 4.0), (7.0, 7.0), (-inf, 0.0)],
            guess: (0..16).map(|i| 0.25 * f64::from(i)).collect(),
            guess_states: vec![],
            episodes: None,
            profiles: vec![],
            durations: vec![],
            state: None,
            before: 0.0,
        }
    }

    fn at(d: &Decisions, p: &Problem, decisions: &[f64]) -> Point {
        let mut point = Point {
            controls: p.guess.clone(),
            parameters: p.parameters.clone(),
            start: None,
            seed: None,
        };
        d.put(decisions, p, &mut point);
        point
    }

    #[test]
    fn decisions_are_those_asked_for_in_units_of_their_size() {
        let p = problem();
        let of = |decide, unit| {
            let settings = Settings {
                decide,
                ..Settings::default()
            };
            Decisions::new(&p, &settings, unit)
        };
        let all = of(Decide::All, Unit::Size);
        assert_eq!(all.unit[..2], [3.0, 1.0]);
        assert_eq!(all.unit[16..], [2.0, 30.0]);
        assert_eq!((all.lower[17], all.upper[17]), (f64::NEG_INFINITY, 0.0));
        let point = at(&all, &p, &all.start);
        assert_eq!(
            (&point.controls, &point.parameters),
            (&p.guess, &p.parameters)
        );
        assert_eq!(of(Decide::Controls, Unit::Size).len(), 16);
        let parameters = of(Decide::Parameters, Unit::One);
        assert_eq!(parameters.start, [2.0, -30.0]);
        // beyond bounds is at them; what is not free stays
        let point = at(&parameters, &p, &[9.0, 1.0]);
        assert_eq!(point.parameters, [4.0, 7.0, 0.0]);
        assert_eq!(point.controls, p.guess);
    }

    #[test]
    fn splines_keep_a_line_and_the_bounds() {
        let p = problem();
        let settings = Settings {
            splines: Some(4),
            ..Settings::default()
        };
        let d = Decisions::new(&p, &settings, Unit::Size);
        assert_eq!(d.len(), 4 * 2 + 2);
        let point = at(&d, &p, &d.start);
        for (a, b) in point.controls.iter().zip(&p.guess) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
        // knots at the bound overshoot between them
        let mut sharp = d.start.clone();
        [-1.0 / 3.0, 5.0 / 3.0, 5.0 / 3.0, -1.0 / 3.0]
            .iter()
            .enumerate()
            .for_each(|(i, v)| sharp[2 * i] = *v);
        let first = at(&d, &p, &sharp).controls;
        let first: Vec<f64> = first.into_iter().step_by(2).collect();
        assert!(first.iter().all(|u| (-1.0..=5.0).contains(u)), "{first:?}");
        assert!(first.iter().filter(|u| **u == 5.0).count() > 1, "{first:?}");
    }
}
