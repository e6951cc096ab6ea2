//! Does a problem fit a system?

use super::{Constraint, Duration, Form, Problem, Relation, When};
use crate::dynamics::{Observe, QuantityId};

/// The part of a [`Problem`] that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemPart {
    /// [`Problem::intervals`]
    Intervals,
    /// One of [`Problem::durations`].
    Duration(usize),
    /// [`Problem::state`]
    State,
    /// [`Problem::before`]
    Before,
    /// One of [`Problem::profiles`].
    Profile(usize),
    /// [`Problem::coordinates`]
    Coordinates,
    /// [`Problem::rates`]
    Rates,
    /// One of [`Problem::costs`].
    Cost(usize),
    /// One of [`Problem::constraints`].
    Constraint(usize),
    /// [`Problem::bounds`] as a whole.
    Bounds,
    /// The bounds of one control.
    Bound(usize),
    /// [`Problem::parameters`]
    Parameters,
    /// [`Problem::parameter_bounds`] as a whole.
    ParameterBounds,
    /// The bounds of one parameter.
    ParameterBound(usize),
    /// [`Problem::guess`]
    Guess,
    /// [`Problem::guess_states`]
    GuessStates,
    /// [`Problem::episodes`]
    Episodes,
}

impl std::fmt::Display for ProblemPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Intervals => write!(f, "intervals"),
            Self::Duration(i) => write!(f, "durations[{i}]"),
            Self::State => write!(f, "state"),
            Self::Before => write!(f, "before"),
            Self::Profile(i) => write!(f, "profiles[{i}]"),
            Self::Coordinates => write!(f, "coordinates"),
            Self::Rates => write!(f, "rates"),
            Self::Cost(i) => write!(f, "costs[{i}]"),
            Self::Constraint(i) => write!(f, "constraints[{i}]"),
            Self::Bounds => write!(f, "bounds"),
            Self::Bound(i) => write!(f, "bounds[{i}]"),
            Self::Parameters => write!(f, "parameters"),
            Self::ParameterBounds => write!(f, "parameter_bounds"),
            Self::ParameterBound(i) => write!(f, "parameter_bounds[{i}]"),
            Self::Guess => write!(f, "guess"),
            Self::GuessStates => write!(f, "guess_states"),
            Self::Episodes => write!(f, "episodes"),
        }
    }
}

/// A problem that does not fit its system.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{part}: {message}")]
pub struct ProblemError {
    /// Which part of the problem.
    pub part: ProblemPart,
    /// What is wrong with it, and what was expected.
    pub message: String,
}

/// Refuses a part.
pub(super) fn refuse<T>(part: ProblemPart, message: String) -> Result<T, ProblemError> {
    Err(ProblemError { part, message })
}

/// A list that must have so many numbers, all finite.
fn numbers(part: ProblemPart, list: &[f64], n: usize, what: &str) -> Result<(), ProblemError> {
    if list.len() != n {
        let got = list.len();
        return refuse(part, format!("{got} numbers; give {n}, {what}"));
    }
    finite(part, list)
}

pub(super) fn finite(part: ProblemPart, list: &[f64]) -> Result<(), ProblemError> {
    match list.iter().position(|v| !v.is_finite()) {
        Some(i) => refuse(
            part,
            format!("number {i} is {}; give a finite one", list[i]),
        ),
        None => Ok(()),
    }
}

/// Bounds that leave at least one finite value.
fn range(part: ProblemPart, &(lower, upper): &(f64, f64)) -> Result<(), ProblemError> {
    if lower.is_nan() || upper.is_nan() {
        return refuse(
            part,
            format!("({lower}, {upper}) is no range; infinity says that there is no bound"),
        );
    }
    if lower > upper || lower == f64::INFINITY || upper == f64::NEG_INFINITY {
        return refuse(
            part,
            format!("nothing lies between {lower} and {upper}; give the smaller first"),
        );
    }
    Ok(())
}

impl Problem {
    /// Does the problem fit the system? Every list has the length that the system asks for, every index points to
    /// something, every number is finite (bounds may be infinite), lower bounds are not above upper ones. Every solver
    /// and [`super::Objective`] check it first. Whether the system takes the coordinates at the start is for
    /// [`crate::dynamics::Step::initial`] to say.
    ///
    /// # Errors
    /// The first part that does not fit, with what was expected.
    pub fn check<D: Observe + ?Sized>(&self, dynamics: &D) -> Result<(), ProblemError> {
        let (d, n) = (dynamics.dims(), self.intervals.len());
        for (i, h) in self.intervals.iter().enumerate() {
            if !(h.is_finite() && *h > 0.0) {
                let message = format!("interval {i} is {h} s; give positive numbers");
                return refuse(ProblemPart::Intervals, message);
            }
        }
        finite(ProblemPart::Coordinates, &self.coordinates)?;
        finite(ProblemPart::Rates, &self.rates)?;
        if let Some(state) = &self.state {
            numbers(ProblemPart::State, state, d.nx, "one for each of the state")?;
        }
        let before = self.before;
        if !(before >= 0.0 && before.is_finite()) {
            let message = format!("it is {before} s; give a positive number, or 0");
            return refuse(ProblemPart::Before, message);
        }
        for (i, profile) in self.profiles.iter().enumerate() {
            numbers(ProblemPart::Profile(i), profile, n + 1, "one for each knot")?;
        }
        self.check_functions(dynamics)?;
        self.check_contradictions()?;
        let counts = [
            (ProblemPart::Bounds, self.bounds.len(), d.nu, "control"),
            (
                ProblemPart::ParameterBounds,
                self.parameter_bounds.len(),
                d.np,
                "parameter",
            ),
        ];
        for (part, got, expected, each) in counts {
            if got != expected {
                return refuse(
                    part,
                    format!("{got} ranges; give {expected}, one for each {each}"),
                );
            }
        }
        for (i, bounds) in self.bounds.iter().enumerate() {
            range(ProblemPart::Bound(i), bounds)?;
        }
        for (i, bounds) in self.parameter_bounds.iter().enumerate() {
            range(ProblemPart::ParameterBound(i), bounds)?;
        }
        numbers(
            ProblemPart::Parameters,
            &self.parameters,
            d.np,
            "one for each parameter of the system",
        )?;
        self.check_durations()?;
        self.check_episodes(dynamics)?;
        // one that is held is what it is held at
        for (i, (p, (l, h))) in self
            .parameters
            .iter()
            .zip(&self.parameter_bounds)
            .enumerate()
        {
            if l == h && p != l {
                return refuse(
                    ProblemPart::ParameterBound(i),
                    format!(
                        "they hold it at {l}, and it is {p}; give the same, or a range to find it in"
                    ),
                );
            }
        }
        let what = format!("{} for each of {n} steps", d.nu);
        numbers(ProblemPart::Guess, &self.guess, n * d.nu, &what)?;
        if !self.guess_states.is_empty() {
            let what = format!("{} for each of {} knots, or none", d.nx, n + 1);
            numbers(
                ProblemPart::GuessStates,
                &self.guess_states,
                (n + 1) * d.nx,
                &what,
            )?;
        }
        Ok(())
    }

    /// Are there values that two constraints of a quantity at a knot both allow?
    pub(crate) fn check_contradictions(&self) -> Result<(), ProblemError> {
        let n = self.intervals.len();
        let allowed = |c: &Constraint, k: usize| {
            let value = self.limit(c, k);
            match c.relation {
                Relation::Equal => (value, value),
                Relation::Less => (f64::NEG_INFINITY, value),
                Relation::Greater => (value, f64::INFINITY),
            }
        };
        for (j, b) in self.constraints.iter().enumerate() {
            for (i, a) in self.constraints[..j].iter().enumerate() {
                if a.quantity != b.quantity {
                    continue;
                }
                let contradict = |k: &usize| {
                    let ((low, high), (l, h)) = (allowed(a, *k), allowed(b, *k));
                    a.when.holds(*k, n) && b.when.holds(*k, n) && low.max(l) > high.min(h)
                };
                if let Some(k) = (0..=n).find(contradict) {
                    let message = format!(
                        "it contradicts constraints[{i}]: no value is {} {} and {} {} at knot {k}; leave one out, or ask for them at different knots",
                        a.relation,
                        self.limit(a, k),
                        b.relation,
                        self.limit(b, k)
                    );
                    return refuse(ProblemPart::Constraint(j), message);
                }
            }
        }
        Ok(())
    }

    fn check_functions<D: Observe + ?Sized>(&self, dynamics: &D) -> Result<(), ProblemError> {
        let (count, n) = (dynamics.quantities().len(), self.intervals.len());
        let fits = |part, quantity: QuantityId, when: When, at_end: bool| {
            let place = quantity.index();
            if place >= count {
                return refuse(
                    part,
                    format!("there is no quantity {place}; the system has {count}, counted from 0"),
                );
            }
            let (first, last) = match when {
                When::Running | When::End => (0, n),
                When::Knot(k) => (k, k),
                When::Range(first, last) => (first, last),
            };
            if last > n {
                return refuse(
                    part,
                    format!("there is no knot {last}; the last of {n} steps is {n}"),
                );
            }
            if first > last {
                return refuse(
                    part,
                    format!("no knot is from {first} to {last}; give the smaller first"),
                );
            }
            if at_end && dynamics.needs_unknowns(quantity) {
                return refuse(
                    part,
                    format!(
                        "quantity {place} is a force of the step from a knot, and none starts at the last; ask for it at earlier knots"
                    ),
                );
            }
            Ok(())
        };
        for (i, c) in self.costs.iter().enumerate() {
            let part = ProblemPart::Cost(i);
            // what is taken along the way is taken over steps
            fits(part, c.quantity, c.when, c.counts(n, n))?;
            let may_fall = c.weight >= 0.0 || c.form == Form::Linear;
            if !(c.weight.is_finite() && may_fall) {
                return refuse(
                    part,
                    format!(
                        "its weight is {}; give a finite one, negative only where the cost is linear",
                        c.weight
                    ),
                );
            }
            if let Form::Huber(delta) = c.form
                && !(delta > 0.0 && delta.is_finite())
            {
                return refuse(
                    part,
                    format!("Huber's distance is {delta}; give a positive number"),
                );
            }
            self.check_profile(part, c.profile)?;
            finite(part, &[c.target]).or_else(|_| {
                refuse(
                    part,
                    format!("its target is {}; give a finite one", c.target),
                )
            })?;
        }
        for (i, c) in self.constraints.iter().enumerate() {
            let part = ProblemPart::Constraint(i);
            fits(part, c.quantity, c.when, c.when.holds(n, n))?;
            if !c.value.is_finite() {
                return refuse(part, format!("its value is {}; give a finite one", c.value));
            }
            self.check_profile(part, c.profile)?;
        }
        Ok(())
    }

    fn check_profile(&self, part: ProblemPart, profile: Option<usize>) -> Result<(), ProblemError> {
        match profile {
            Some(i) if i >= self.profiles.len() => {
                let count = self.profiles.len();
                refuse(
                    part,
                    format!("there is no profile {i}; the problem has {count}, counted from 0"),
                )
            }
            _ => Ok(()),
        }
    }

    /// Durations share no interval, and are parameters that stay positive.
    fn check_durations(&self) -> Result<(), ProblemError> {
        let (n, count) = (self.intervals.len(), self.parameters.len());
        for (i, d) in self.durations.iter().enumerate() {
            let part = ProblemPart::Duration(i);
            if d.first >= d.end || d.end > n {
                return refuse(
                    part,
                    format!(
                        "no intervals are from {} to before {}; there are {n}, counted from 0",
                        d.first, d.end
                    ),
                );
            }
            let Some((lower, _)) = self.parameter_bounds.get(d.parameter) else {
                return refuse(
                    part,
                    format!(
                        "there is no parameter {}; the system has {count}, counted from 0",
                        d.parameter
                    ),
                );
            };
            if lower.is_nan() || *lower <= 0.0 {
                return refuse(
                    part,
                    format!("it may fall to {lower} s; give its parameter a positive lower bound"),
                );
            }
            let overlaps = |o: &Duration| d.first < o.end && o.first < d.end;
            if let Some(j) = self.durations[..i].iter().position(overlaps) {
                return refuse(
                    part,
                    format!("it shares intervals with durations[{j}]; give each interval to one"),
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Constraint, Cost, Relation};
    use crate::dynamics::{Explicit, Parameter, Real, Smooth};

    /// Two states, one control, one parameter; quantities are the states, then the control.
    struct Cart;

    impl Smooth for Cart {
        fn states(&self) -> usize {
            2
        }

        fn controls(&self) -> usize {
            1
        }

        fn parameters(&self) -> Vec<Parameter> {
            vec![Parameter {
                name: "damping".into(),
                unit: "1/s".into(),
                value: 0.1,
            }]
        }

        fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], p: &[T], next: &mut [T]) {
            next[1] = x[1] + h * (u[0] - p[0] * x[1]);
            next[0] = x[0] + h * next[1];
        }
    }

    #[test]
    fn every_part_that_does_not_fit_is_named() {
        let system = Explicit::new(Cart);
        let good = || {
            let mut p = Problem::new(&system, vec![0.1; 3], vec![0.0]);
            p.costs = vec![Cost::square(QuantityId::new(2), 0.0, 1.0, When::Running)];
            p.constraints = vec![Constraint {
                quantity: QuantityId::new(0),
                relation: Relation::Equal,
                value: 1.0,
                profile: None,
                when: When::Range(1, 3),
            }];
            p.guess_states = vec![0.0; 8];
            p
        };
        assert_eq!(good().check(&system), Ok(()));
        let nan = f64::NAN;
        let infinite = (f64::NEG_INFINITY, f64::INFINITY);
        type Spoil = Box<dyn Fn(&mut Problem)>;
        let cost = |spoil: fn(&mut Cost)| -> Spoil { Box::new(move |p| spoil(&mut p.costs[0])) };
        let constraint = |spoil: fn(&mut Constraint)| -> Spoil {
            Box::new(move |p| spoil(&mut p.constraints[0]))
        };
        let bounds = |b: &[(f64, f64)]| -> Spoil {
            let b = b.to_vec();
            Box::new(move |p| p.bounds.clone_from(&b))
        };
        let own = |b: &[(f64, f64)]| -> Spoil {
            let b = b.to_vec();
            Box::new(move |p| p.parameter_bounds.clone_from(&b))
        };
        let of = |set: fn(&mut Problem)| -> Spoil { Box::new(set) };
        use ProblemPart::{
            Bound, Bounds, Coordinates, Guess, GuessStates, Intervals, ParameterBound,
            ParameterBounds, Parameters, Rates,
        };
        let (first, at) = (ProblemPart::Cost(0), ProblemPart::Constraint(0));
        let cases: Vec<(ProblemPart, &str, Spoil)> = vec![
            (
                Intervals,
                "interval 1 is -0.1",
                of(|p| p.intervals[1] = -0.1),
            ),
            (Intervals, "interval 2 is 0 s", of(|p| p.intervals[2] = 0.0)),
            (Intervals, "NaN", of(|p| p.intervals[0] = f64::NAN)),
            (
                Coordinates,
                "number 0 is NaN",
                of(|p| p.coordinates[0] = f64::NAN),
            ),
            (Rates, "inf", of(|p| p.rates[0] = f64::INFINITY)),
            (
                first,
                "no quantity 3; the system has 3",
                cost(|c| c.quantity = QuantityId::new(3)),
            ),
            (first, "no knot 4", cost(|c| c.when = When::Knot(4))),
            (first, "weight is -1", cost(|c| c.weight = -1.0)),
            (first, "weight is NaN", cost(|c| c.weight = f64::NAN)),
            (first, "target is inf", cost(|c| c.target = f64::INFINITY)),
            (
                at,
                "no quantity 9",
                constraint(|c| c.quantity = QuantityId::new(9)),
            ),
            (at, "no knot 7", constraint(|c| c.when = When::Range(2, 7))),
            (
                at,
                "from 3 to 2",
                constraint(|c| c.when = When::Range(3, 2)),
            ),
            (at, "value is NaN", constraint(|c| c.value = f64::NAN)),
            (
                ProblemPart::Constraint(1),
                "contradicts constraints[0]",
                of(|p| {
                    let relation = Relation::Greater;
                    let value = p.constraints[0].value + 1.0;
                    let other = Constraint {
                        relation,
                        value,
                        ..p.constraints[0]
                    };
                    p.constraints.push(other);
                }),
            ),
            (Bounds, "2 ranges; give 1", bounds(&[infinite; 2])),
            (Bounds, "0 ranges; give 1", bounds(&[])),
            (Bound(0), "between 1 and 0", bounds(&[(1.0, 0.0)])),
            (Bound(0), "no range", bounds(&[(nan, 1.0)])),
            (
                Bound(0),
                "nothing lies",
                bounds(&[(f64::INFINITY, f64::INFINITY)]),
            ),
            (ParameterBounds, "2 ranges; give 1", own(&[infinite; 2])),
            (ParameterBound(0), "no range", own(&[(0.0, nan)])),
            (
                ParameterBound(0),
                "hold it at 2.5, and it is 0.1",
                own(&[(2.5, 2.5)]),
            ),
            (
                Parameters,
                "0 numbers; give 1",
                of(|p| p.parameters.clear()),
            ),
            (
                Parameters,
                "number 0 is NaN",
                of(|p| p.parameters[0] = f64::NAN),
            ),
            (Guess, "4 numbers; give 3", of(|p| p.guess.push(0.0))),
            (Guess, "number 1 is inf", of(|p| p.guess[1] = f64::INFINITY)),
            (
                GuessStates,
                "2 numbers; give 8",
                of(|p| p.guess_states.truncate(2)),
            ),
        ];
        for (part, says, spoil) in cases {
            let mut p = good();
            spoil(&mut p);
            let e = p.check(&system).expect_err(says);
            assert_eq!(e.part, part, "{e}");
            let text = e.to_string();
            assert!(text.contains(says), "{text} / {says}");
            assert!(text.starts_with(&part.to_string()), "{text}");
        }
    }
}
