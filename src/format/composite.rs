//! Quantities that are made of others: sums along the way, values at earlier knots, weighted sums, quotients.

use super::problem::{At, IntegralSpec, Quantity};
use super::quantity::{Named, Place, Quantities};
use super::source::{FormatError, nearest};
use crate::control::{self, Cost, Form, When};
use crate::dynamics::QuantityId;

/// A term on something named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Term {
    name: usize,
    weight: f64,
    target: f64,
    form: Form,
    when: When,
    profile: Option<usize>,
}

/// A sum or a formula, with indices of names instead of quantities.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    title: (String, String),
    terms: Vec<Term>,
    constant: f64,
    over: Vec<Term>,
}

impl Made {
    fn of(terms: &[Term], quantity: impl Fn(usize) -> QuantityId) -> Vec<Cost> {
        let cost = |t: &Term| Cost {
            form: t.form,
            profile: t.profile,
            ..Cost::square(quantity(t.name), t.target, t.weight, t.when)
        };
        terms.iter().map(cost).collect()
    }

    pub fn sum(&self, quantity: impl Fn(usize) -> QuantityId) -> control::Sum {
        control::Sum {
            name: self.title.clone(),
            terms: Self::of(&self.terms, quantity),
        }
    }

    pub fn formula(&self, quantity: impl Fn(usize) -> QuantityId + Copy) -> control::Formula {
        control::Formula {
            name: self.title.clone(),
            terms: Self::of(&self.terms, quantity),
            constant: self.constant,
            over: Self::of(&self.over, quantity),
        }
    }
}

/// The parameter that is the largest cost of all scenarios, and what each scenario's is less that.
pub(super) const WORST: &str = "worst cost";
pub(super) const LESS_WORST: &str = "cost less the worst";

/// `weight` times something named.
fn times(name: usize, weight: f64) -> Term {
    Term {
        name,
        weight,
        target: 0.0,
        form: Form::Linear,
        when: When::End,
        profile: None,
    }
}

impl Quantities<'_> {
    /// The name of a quantity that is made of others; nothing for those that are not. `end`: it is looked at where no
    /// interval follows.
    pub(super) fn composite(
        &mut self,
        place: Place,
        q: &Quantity,
        end: bool,
    ) -> Result<Option<usize>, FormatError> {
        let made = match q {
            Quantity::Parameter(name) => {
                let names = || self.parameters.iter().map(|p| p.0.as_str());
                let found = names().position(|n| n == name).ok_or_else(|| {
                    let message = format!("unknown parameter `{name}`");
                    self.err(place, "quantity.parameter", message, nearest(name, names()))
                })?;
                self.index(Named::Parameter(found))
            }
            Quantity::Time => self.elapsed(When::Running),
            Quantity::Integral(spec) => self.integral(place, spec)?.0,
            Quantity::Mean(spec) => {
                let (sum, when) = self.integral(place, spec)?;
                let (title, unit) = self.title(sum);
                let title = title.replacen("integral", "mean", 1);
                let unit = unit.strip_suffix(" s").unwrap_or(&unit).to_owned();
                let over = vec![times(self.elapsed(when), 1.0)];
                self.formula(Made {
                    title: (title, unit),
                    terms: vec![times(sum, 1.0)],
                    constant: 0.0,
                    over,
                })
            }
            Quantity::ValueAt(spec) => {
                let name = self.single(place, &spec.of, false)?;
                let when = self.one_knot(place, "quantity.value_at.at", &spec.at)?;
                self.latch(name, when)
            }
            Quantity::Sum(spec) => {
                let mut terms = vec![];
                for t in &spec.terms {
                    self.finite(place, t.times)?;
                    terms.push(times(self.single(place, &t.of, end)?, t.times));
                }
                self.finite(place, spec.plus)?;
                let Some(first) = terms.first() else {
                    let message = "a sum has no terms".into();
                    let help = "give terms = [{ of = .., times = .. }, ..]";
                    return Err(self.err(place, "quantity.sum", message, help));
                };
                let unit = self.title(first.name).1;
                let names: Vec<String> = terms.iter().map(|t| self.title(t.name).0).collect();
                self.formula(Made {
                    title: (format!("sum of {}", names.join(" and ")), unit),
                    terms,
                    constant: spec.plus,
                    over: vec![],
                })
            }
            Quantity::Ratio(spec) => {
                let (of, by) = (
                    self.single(place, &spec.of, end)?,
                    self.single(place, &spec.by, end)?,
                );
                let (a, b) = (self.title(of), self.title(by));
                let unit = if a.1 == b.1 {
                    "1".into()
                } else {
                    format!("{}/({})", a.1, b.1)
                };
                self.formula(Made {
                    title: (format!("{} by {}", a.0, b.0), unit),
                    terms: vec![times(of, 1.0)],
                    constant: 0.0,
                    over: vec![times(by, 1.0)],
                })
            }
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    /// A quantity less `scale` times what another was at a knot.
    pub(super) fn difference(
        &mut self,
        place: Place,
        name: usize,
        (other, scale, at): (usize, f64, &At),
    ) -> Result<usize, FormatError> {
        let when = self.one_knot(place, "same_as.at", at)?;
        let latch = self.latch(other, when);
        let (title, unit) = self.title(name);
        Ok(self.formula(Made {
            title: (format!("{title} less {}", self.title(latch).0), unit),
            terms: vec![times(name, 1.0), times(latch, -scale)],
            constant: 0.0,
            over: vec![],
        }))
    }

    /// What something was at a knot: a sum of one term.
    fn latch(&mut self, name: usize, when: When) -> usize {
        let (title, unit) = self.title(name);
        let knot = match when {
            When::Knot(k) => k,
            _ => 0,
        };
        self.sum(Made {
            title: (format!("{title} at knot {knot}"), unit),
            terms: vec![Term {
                when,
                ..times(name, 1.0)
            }],
            constant: 0.0,
            over: vec![],
        })
    }

    /// Time passed while something holds: the integral of one.
    fn elapsed(&mut self, when: When) -> usize {
        let one = self.formula(Made {
            title: ("one".into(), "1".into()),
            terms: vec![],
            constant: 1.0,
            over: vec![],
        });
        self.sum(Made {
            title: ("time".into(), "s".into()),
            terms: vec![Term {
                when,
                ..times(one, 1.0)
            }],
            constant: 0.0,
            over: vec![],
        })
    }

    fn integral(
        &mut self,
        place: Place,
        spec: &IntegralSpec,
    ) -> Result<(usize, When), FormatError> {
        let name = self.single(place, &spec.of, false)?;
        self.finite(place, spec.target)?;
        let when = self.when(place, "quantity.over", &spec.over)?;
        if !when.is_along() {
            let message = "an integral goes over one knot".into();
            let help = "leave `over` out, or give a phase or { range = [first, last] }";
            return Err(self.err(place, "quantity", message, help));
        }
        let (title, unit) = self.title(name);
        let (words, unit) = match spec.form {
            Form::Linear => ("", unit),
            Form::Absolute => ("size of ", unit),
            Form::Square | Form::Huber(_) => ("square of ", format!("({unit})^2")),
        };
        let sum = self.sum(Made {
            title: (format!("integral of {words}{title}"), format!("{unit} s")),
            terms: vec![Term {
                target: spec.target,
                form: spec.form,
                when,
                ..times(name, 1.0)
            }],
            constant: 0.0,
            over: vec![],
        });
        Ok((sum, when))
    }

    fn sum(&mut self, made: Made) -> usize {
        let known = self.sums.iter().position(|s| *s == made);
        let place = known.unwrap_or_else(|| {
            self.sums.push(made);
            self.sums.len() - 1
        });
        self.index(Named::Sum(place))
    }

    fn formula(&mut self, made: Made) -> usize {
        let known = self.formulas.iter().position(|s| *s == made);
        let place = known.unwrap_or_else(|| {
            self.formulas.push(made);
            self.formulas.len() - 1
        });
        self.index(Named::Formula(place))
    }

    /// The name of a quantity with one component.
    fn single(&mut self, place: Place, q: &Quantity, end: bool) -> Result<usize, FormatError> {
        match self.names(place, q, end)?[..] {
            [one] => Ok(one),
            _ => {
                let message = "a quantity with three components has no place here".into();
                let help = "give it an axis";
                Err(self.err(place, "quantity", message, help))
            }
        }
    }

    /// The one knot that is meant, which others follow.
    fn one_knot(&self, place: Place, field: &str, at: &At) -> Result<When, FormatError> {
        match self.when(place, field, at)? {
            When::Knot(k) if k < self.steps => Ok(When::Knot(k)),
            _ => {
                let message = "what is looked back at is one knot before the last".into();
                let help = "give \"start\", { knot = .. }, { start_of = .. } or { end_of = .. }";
                Err(self.err(place, field, message, help))
            }
        }
    }

    fn finite(&self, place: Place, value: f64) -> Result<(), FormatError> {
        if value.is_finite() {
            return Ok(());
        }
        let message = format!("a number of a quantity is {value}");
        Err(self.err(place, "quantity", message, "expected finite numbers"))
    }

    /// What all costs come to, less the parameter that is to be the largest such of all scenarios: a name that must not be
    /// positive at the end.
    pub(super) fn worst(&mut self, costs: Vec<(usize, Cost)>) -> usize {
        let n = self.steps;
        let term = |(name, c): &(usize, Cost)| Term {
            name: *name,
            weight: c.weight,
            target: c.target,
            form: c.form,
            when: c.when,
            profile: c.profile,
        };
        let at_end = |c: &Cost| !c.when.is_along() && c.when.holds(n, n);
        let (last, along): (Vec<_>, Vec<_>) = costs.into_iter().partition(|(_, c)| at_end(c));
        let title = |name: &str| (name.to_owned(), "1".to_owned());
        let sum = self.sum(Made {
            title: title("cost along the way"),
            terms: along.iter().map(term).collect(),
            constant: 0.0,
            over: vec![],
        });
        let found = self.parameters.iter().rposition(|p| p.0 == WORST);
        let worst = self.index(Named::Parameter(found.unwrap_or(0)));
        let mut terms: Vec<Term> = last.iter().map(term).collect();
        terms.extend([times(sum, 1.0), times(worst, -1.0)]);
        self.formula(Made {
            title: title(LESS_WORST),
            terms,
            constant: 0.0,
            over: vec![],
        })
    }

    /// Does it depend on the impulses of a step?
    pub(super) fn is_force(&self, name: usize) -> bool {
        match self.named[name] {
            Named::Output(o) => o.needs().reactions,
            Named::Formula(i) => {
                let f = &self.formulas[i];
                f.terms.iter().chain(&f.over).any(|t| self.is_force(t.name))
            }
            _ => false,
        }
    }

    /// Name and unit.
    pub(super) fn title(&self, name: usize) -> (String, String) {
        match self.named[name] {
            Named::Output(o) => o.name(self.mechanism),
            Named::ControlRate(i) => {
                let unit = self.mechanism.control_unit(i);
                let name = &self.mechanism.actuators[i].name;
                (format!("{name} rate"), format!("{unit}/s"))
            }
            Named::Parameter(i) => self.parameters[i].clone(),
            Named::Sum(i) => self.sums[i].title.clone(),
            Named::Formula(i) => self.formulas[i].title.clone(),
        }
    }
}
