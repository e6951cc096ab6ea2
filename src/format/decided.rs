//! What of the start parameters decide: numbers that are to be found within bounds, and those that are the values of others.

use super::initial::Start;
use super::problem::{FreeSpec, Ranges};
use super::source::{FormatError, Source, nearest};
use crate::control::{Draw, Drawn, StartNumber};
use crate::dynamics::{Parameter, Start as From, Step};
use crate::integrator::{Mechanical, System};
use crate::mechanism::Mechanism;
use nalgebra::DMatrix;

/// A coordinate whose derivative of the start is smaller than this part of the largest does not move it.
const UNMOVED: f64 = 1e-9;

/// A number of the start that is to be found, the parameter that stands for it, and its bounds.
pub(super) type Sought = (StartNumber, Parameter, (f64, f64));

impl Start {
    /// What of a joint's start is to be found.
    pub(super) fn find(
        &mut self,
        m: &Mechanism,
        source: &Source,
        (index, first): (usize, usize),
        sought: &FreeSpec,
    ) -> Result<(), FormatError> {
        let joint = &m.joints[index];
        let name = joint.name.as_str();
        type Make = fn(usize) -> StartNumber;
        let both: [(&str, &Option<Ranges>, Make); 2] = [
            ("coordinate", &sought.coordinate, StartNumber::Coordinate),
            ("rate", &sought.rate, StartNumber::Rate),
        ];
        for (field, ranges, make) in both {
            let Some(ranges) = ranges else { continue };
            let (ranges, n) = (ranges.as_slice(), joint.directions.len());
            let err = |message: String, help: &str| {
                source.error(&["initial", name, "free", field], message, help)
            };
            if ranges.len() != n {
                let message = format!("free {field} of joint `{name}` has {} ranges", ranges.len());
                return Err(err(
                    message,
                    &format!("expected {n}, one for each coordinate"),
                ));
            }
            for (i, [lower, upper]) in ranges.iter().enumerate() {
                if lower.is_nan() || upper.is_nan() || lower > upper {
                    let message = format!("{field} of `{name}` between {lower} and {upper}");
                    return Err(err(
                        message,
                        "expected the smaller number first; inf where there is none",
                    ));
                }
                let own = &joint.directions[i];
                let limits = match field {
                    "coordinate" => (own.lower, own.upper),
                    _ => (f64::NEG_INFINITY, f64::INFINITY),
                };
                if *lower < limits.0 || *upper > limits.1 {
                    let message = format!(
                        "{field} of `{name}` between {lower} and {upper}, beyond the joint's limits {} and {}",
                        limits.0, limits.1
                    );
                    return Err(err(message, "free it within its limits"));
                }
                if lower < upper {
                    let number = make(first + i);
                    self.free.push((number, (*lower, *upper)));
                    if field == "coordinate" {
                        self.held[first + i] = true;
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts the values of parameters where they stand for a number of the start.
    pub fn tie(
        &mut self,
        m: &Mechanism,
        source: &Source,
        mut values: Vec<(String, f64)>,
    ) -> Result<(), FormatError> {
        let ids = m.tree_ids();
        let named = |number: StartNumber| match number {
            StartNumber::Coordinate(k) => (k, "coordinate", m.coordinate_name(ids[k])),
            StartNumber::Rate(k) => (k, "rate", format!("{} rate", m.coordinate_name(ids[k]))),
        };
        for (number, _) in &self.free {
            let value = match *number {
                StartNumber::Coordinate(k) => self.q[k],
                StartNumber::Rate(k) => self.rates[k],
            };
            values.push((format!("initial {}", named(*number).2), value));
        }
        for (number, parameter) in &self.tied {
            let (k, field, name) = named(*number);
            let place = ["initial", m.joints[ids[k].0].name.as_str(), field];
            let Some((_, value)) = values.iter().find(|(own, _)| own == parameter) else {
                let message = format!("`{name}` starts at the unknown parameter `{parameter}`");
                let help = nearest(parameter, values.iter().map(|v| v.0.as_str()));
                return Err(source.error(&place, message, help));
            };
            if self.free.iter().any(|(free, _)| free == number) {
                let message = format!("`{name}` starts at `{parameter}`, and is free");
                return Err(source.error(&place, message, "give one of both"));
            }
            match *number {
                StartNumber::Coordinate(k) => self.q[k] = *value,
                StartNumber::Rate(k) => self.rates[k] = *value,
            }
        }
        Ok(())
    }

    /// The numbers that are those of parameters, with the places of these in a list of parameters with their names, which
    /// must not leave the limits of the joints within their `bounds`.
    pub fn ties(
        &self,
        m: &Mechanism,
        source: &Source,
        parameters: &[(String, String)],
        bounds: &[(f64, f64)],
    ) -> Result<Vec<(StartNumber, usize)>, FormatError> {
        let mut out = vec![];
        for (number, parameter) in &self.tied {
            let found = parameters.iter().position(|(name, _)| name == parameter);
            let place = found.expect("`tie` refuses parameters that are unknown");
            out.push((*number, place));
            let (StartNumber::Coordinate(k), (lower, upper)) = (*number, bounds[place]) else {
                continue;
            };
            let id = m.tree_ids()[k];
            let d = &m.joints[id.0].directions[id.1];
            if lower < upper && (lower < d.lower || upper > d.upper) {
                return Err(source.error(
                    &["initial", &m.joints[id.0].name, "coordinate"],
                    format!(
                        "`{}` starts at `{parameter}`, which may be between {lower} and {upper}, beyond the joint's limits {} and {}",
                        m.coordinate_name(id), d.lower, d.upper
                    ),
                    "give the parameter bounds within the limits",
                ));
            }
        }
        Ok(out)
    }

    /// Does a parameter decide a coordinate, or its rate?
    pub fn is_decided(&self, k: usize, rate: bool) -> bool {
        let number = match rate {
            true => StartNumber::Rate(k),
            false => StartNumber::Coordinate(k),
        };
        self.decided().any(|(own, _)| own == number)
    }

    /// The numbers that parameters decide, and where the file says so of a joint.
    fn decided(&self) -> impl Iterator<Item = (StartNumber, [&'static str; 2])> + '_ {
        let free = self
            .free
            .iter()
            .map(|(number, _)| (*number, ["initial", "free"]));
        let tied = self.tied.iter();
        free.chain(tied.map(|(number, _)| (*number, ["initial", "coordinate"])))
    }

    /// Takes what is drawn, which parameters must not decide as well.
    pub fn draw(
        &mut self,
        draws: Vec<Draw>,
        (m, source): (&Mechanism, &Source),
    ) -> Result<(), FormatError> {
        for d in &draws {
            let Some(number) = start_number(d.number) else {
                continue;
            };
            if self.decided().any(|(own, _)| own == number) {
                let (StartNumber::Coordinate(k) | StartNumber::Rate(k)) = number;
                let joint = &m.joints[m.tree_ids()[k].0].name;
                return Err(source.error(
                    &["episodes", "starts", joint],
                    format!("the start of `{joint}` is drawn, and a parameter decides it"),
                    "leave `free` or the parameter out in [initial], or do not draw it",
                ));
            }
        }
        self.drawn = draws;
        Ok(())
    }

    /// The system with the numbers that are to be found or drawn independent of each other.
    pub fn holding(&self, system: System, source: &Source) -> Result<System, FormatError> {
        let drawn = self.drawn.iter().filter_map(|d| start_number(d.number));
        let drawn = drawn.map(|number| (number, ["episodes", "starts"]));
        let chosen: Vec<(StartNumber, [&str; 2])> = self.decided().chain(drawn).collect();
        if chosen.is_empty() {
            return Ok(system);
        }
        let mut preferred = vec![false; self.q.len()];
        for (number, _) in &chosen {
            let (StartNumber::Coordinate(k) | StartNumber::Rate(k)) = *number;
            preferred[k] = true;
        }
        let system = system.holding(&self.q, &preferred);
        let p: Vec<f64> = system.parameters().iter().map(|p| p.value).collect();
        let start = From::at_rates(&self.q, &self.rates);
        let by = system.initial_by_coordinates(&start, &p, &mut system.work());
        for (number, place) in chosen {
            let (k, column) = match number {
                StartNumber::Coordinate(k) => (k, k),
                StartNumber::Rate(k) => (k, self.q.len() + k),
            };
            let follows = |by: &DMatrix<f64>| by.column(column).amax() < UNMOVED * by.amax();
            if by.as_ref().is_ok_and(follows) {
                let m = system.mechanism();
                let id = m.tree_ids()[k];
                let joint = m.joints[id.0].name.as_str();
                let path = match place {
                    ["initial", field] => ["initial", joint, field],
                    [episodes, starts] => [episodes, starts, joint],
                };
                return Err(source.error(
                    &path,
                    format!(
                        "`{}` follows from the others that are to be found or drawn",
                        m.coordinate_name(id)
                    ),
                    "free or draw as many coordinates as there are degrees of freedom at most (see `describe`)",
                ));
            }
        }
        Ok(system)
    }

    /// The parameters that stand for what is to be found: name, unit, and value within its bounds.
    pub fn sought(&self, m: &Mechanism, source: &Source) -> Result<Vec<Sought>, FormatError> {
        let ids = m.tree_ids();
        let mut out = vec![];
        for (number, bounds) in &self.free {
            let (k, value, of, per) = match *number {
                StartNumber::Coordinate(k) => (k, self.q[k], "", ""),
                StartNumber::Rate(k) => (k, self.rates[k], " rate", "/s"),
            };
            let (joint, direction) = ids[k];
            let name = m.coordinate_name(ids[k]);
            let (lower, upper) = *bounds;
            if !(lower..=upper).contains(&value) {
                return Err(source.error(
                    &["initial", &m.joints[joint].name, "free"],
                    format!("`{name}{of}` starts at {value}, outside {lower} to {upper}"),
                    "give a start within the bounds",
                ));
            }
            let unit = m.joints[joint].directions[direction].unit_name();
            let parameter = Parameter {
                name: format!("initial {name}{of}"),
                unit: format!("{unit}{per}"),
                value,
            };
            out.push((*number, parameter, *bounds));
        }
        Ok(out)
    }
}

/// The number of the start that is drawn, if it is one.
fn start_number(drawn: Drawn) -> Option<StartNumber> {
    match drawn {
        Drawn::Coordinate(k) => Some(StartNumber::Coordinate(k)),
        Drawn::Rate(k) => Some(StartNumber::Rate(k)),
        Drawn::Parameter(_) => None,
    }
}
