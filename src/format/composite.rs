//! Quantities that are made of others: sums along the way, values at earlier knots, weighted sums, quotients.

use super::problem::{At, CostSpec, Goal, IntegralSpec, Quantity};
use super::quantity::{Named, Place, Quantities};
use super::source::{FormatError, nearest};
use crate::control::{self, Cost, Form, Quadrature, When};
use crate::dynamics::QuantityId;
use crate::mechanism;

/// A term on something named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Term {
    name: usize,
    weight: f64,
    target: f64,
    form: Form,
    when: When,
    profile: Option<usize>,
    quadrature: Quadrature,
}

/// A sum or a formula, with indices of names instead of quantities.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Made {
    title: (String, String),
    terms: Vec<Term>,
    constant: f64,
    pending: Vec<Term>,
    over: Vec<Term>,
}

impl Made {
    fn of(terms: &[Term], quantity: impl Fn(usize) -> QuantityId) -> Vec<Cost> {
        let cost = |t: &Term| Cost {
            form: t.form,
            profile: t.profile,
            quadrature: t.quadrature,
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
            pending: Self::of(&self.pending, quantity),
            over: Self::of(&self.over, quantity),
        }
    }
}

/// A parameter that bounds what varies.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Extreme {
    /// Its name.
    pub bound: usize,
    /// 1 where it lies above, -1 below.
    pub sign: f64,
    /// Formulas, by their names, that must not be positive.
    pub less: Vec<usize>,
    /// Where they are looked at.
    pub when: When,
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
        quadrature: Quadrature::Left,
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
                    over,
                    ..Made::default()
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
                    ..Made::default()
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
                    over: vec![times(by, 1.0)],
                    ..Made::default()
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
            ..Made::default()
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
            ..Made::default()
        })
    }

    /// Time passed while something holds: the integral of one.
    fn elapsed(&mut self, when: When) -> usize {
        let one = self.formula(Made {
            title: ("one".into(), "1".into()),
            constant: 1.0,
            ..Made::default()
        });
        self.sum(Made {
            title: ("time".into(), "s".into()),
            terms: vec![Term {
                when,
                ..times(one, 1.0)
            }],
            ..Made::default()
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
        let title = (format!("integral of {words}{title}"), format!("{unit} s"));
        let (when, quadrature) = self.counted(name, when);
        let term = Term {
            target: spec.target,
            form: spec.form,
            when,
            quadrature,
            ..times(name, 1.0)
        };
        Ok((self.integrated(title, vec![term]), when))
    }

    /// The sum of terms along the way, up to the knot.
    fn integrated(&mut self, title: (String, String), terms: Vec<Term>) -> usize {
        let halves = |t: &&Term| t.when.is_along() && t.quadrature != Quadrature::Left;
        let pending: Vec<Term> = terms.iter().filter(halves).copied().collect();
        let sum = self.sum(Made {
            title: title.clone(),
            terms,
            ..Made::default()
        });
        if pending.is_empty() {
            return sum;
        }
        self.formula(Made {
            title,
            terms: vec![times(sum, 1.0)],
            pending,
            ..Made::default()
        })
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

    /// A free parameter that the problem adds: its name.
    pub(super) fn add_parameter(
        &mut self,
        place: Place,
        (name, unit): (String, String),
    ) -> Result<usize, FormatError> {
        if self.parameters.iter().any(|p| p.0 == name) {
            let message = format!("two parameters would be called `{name}`");
            let help = "ask for the largest or smallest of a quantity once, or give what is called so another name";
            return Err(self.err(place, "", message, help));
        }
        self.parameters.push((name, unit));
        Ok(self.index(Named::Parameter(self.parameters.len() - 1)))
    }

    /// A cost on the largest or smallest value along the way: a parameter that is free, with the formulas that must not be
    /// positive where it is looked at. Nothing for other costs.
    ///
    /// This is exact, and has no kinks (the epigraph form: Boyd, Vandenberghe, *Convex Optimization*, 4.1.3).
    pub(super) fn extreme(
        &mut self,
        place: Place,
        c: &CostSpec,
    ) -> Result<Option<Extreme>, FormatError> {
        let (spec, sign, word) = match &c.quantity {
            Quantity::Largest(spec) => (spec, 1.0, "largest"),
            Quantity::Smallest(spec) => (spec, -1.0, "smallest"),
            _ => return Ok(None),
        };
        if c.form != Form::Linear || c.weight * sign < 0.0 {
            let message = format!(
                "a cost on the {word} value is not linear, or its weight pulls the wrong way"
            );
            let help = match sign > 0.0 {
                true => {
                    "give form = \"linear\" and a positive weight: the largest value is to be small"
                }
                false => {
                    "give form = \"linear\" and a negative weight: the smallest value is to be large"
                }
            };
            return Err(self.err(place, "form", message, help));
        }
        if !matches!(c.at, At::Running | At::End) || !matches!(c.target, Goal::One(_)) {
            let message = format!("a cost on the {word} value counts once");
            let help = "leave `at` out, and give `over` to the quantity; a target is a number";
            return Err(self.err(place, "at", message, help));
        }
        if spec.size && sign < 0.0 {
            let message = "the smallest size is no convex bound".into();
            let help = "ask for the smallest value, or the largest size";
            return Err(self.err(place, "quantity", message, help));
        }
        let when = self.when(place, "quantity.over", &spec.over)?;
        let of = self.single(place, &spec.of, when.holds(self.steps, self.steps))?;
        let (title, unit) = self.title(of);
        let size = if spec.size { "size of " } else { "" };
        let name = format!("{word} {size}{title}");
        let bound = self.add_parameter(place, (name.clone(), unit.clone()))?;
        let sides = [Some(sign), spec.size.then_some(-1.0)];
        let less = sides.into_iter().flatten().map(|side| {
            self.formula(Made {
                title: (format!("{title} less the {name}"), unit.clone()),
                terms: vec![times(of, side), times(bound, -sign)],
                ..Made::default()
            })
        });
        let less = less.collect();
        Ok(Some(Extreme {
            bound,
            sign,
            less,
            when,
        }))
    }

    /// What all costs come to, less the parameter that is to be the largest such of all scenarios: a name that must not be
    /// positive at the end.
    pub(super) fn less_worst(&mut self, costs: Vec<(usize, Cost)>, worst: usize) -> usize {
        let n = self.steps;
        let term = |(name, c): &(usize, Cost)| Term {
            name: *name,
            weight: c.weight,
            target: c.target,
            form: c.form,
            when: c.when,
            profile: c.profile,
            quadrature: c.quadrature,
        };
        let at_end = |c: &Cost| !c.when.is_along() && c.when.holds(n, n);
        let (last, along): (Vec<_>, Vec<_>) = costs.into_iter().partition(|(_, c)| at_end(c));
        let title = |name: &str| (name.to_owned(), "1".to_owned());
        let along = along.iter().map(term).collect();
        let sum = self.integrated(title("cost along the way"), along);
        let mut terms: Vec<Term> = last.iter().map(term).collect();
        terms.extend([times(sum, 1.0), times(worst, -1.0)]);
        self.formula(Made {
            title: title(LESS_WORST),
            terms,
            ..Made::default()
        })
    }

    /// Is it constant over the interval after a knot, as held controls are?
    pub(super) fn is_held(&self, name: usize) -> bool {
        match self.named[name] {
            Named::Output(mechanism::Quantity::Control(_)) | Named::ControlRate(_) => true,
            Named::Output(_) | Named::Sum(_) => false,
            Named::Parameter(_) => true,
            Named::Formula(i) => {
                let f = &self.formulas[i];
                let all = f.terms.iter().chain(&f.over).chain(&f.pending);
                f.pending.is_empty() && all.clone().all(|t| self.is_held(t.name))
            }
        }
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
