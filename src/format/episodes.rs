//! Episodes: from the names of a file to what is drawn, and what ends them.

use super::describe_episodes::{DistributionSpec, EndSpec, EpisodesSpec};
use super::quantity::Quantities;
use super::source::{FormatError, Source, nearest};
use crate::control::{Distribution, Draw, Drawn, End, Episodes};
use crate::dynamics::QuantityId;
use crate::mechanism::Mechanism;

/// The numbers of the start that are drawn.
pub(super) fn starts(
    source: &Source,
    m: &Mechanism,
    spec: &EpisodesSpec,
) -> Result<Vec<Draw>, FormatError> {
    let ids = m.tree_ids();
    let mut out = vec![];
    for (name, start) in &spec.starts {
        let Some(index) = m.joint(name) else {
            let names = m.joints.iter().map(|j| j.name.as_str());
            let message =
                format!("[episodes.starts] refers to the unknown joint or free body `{name}`");
            let path = ["episodes", "starts", name];
            return Err(source.name_error(&path, message, nearest(name, names)));
        };
        let joint = &m.joints[index];
        let first = ids.iter().position(|id| *id == (index, 0));
        type Make = fn(usize) -> Drawn;
        let both: [(&str, _, Make); 2] = [
            ("coordinate", &start.coordinate, Drawn::Coordinate),
            ("rate", &start.rate, Drawn::Rate),
        ];
        for (field, draws, make) in both {
            let Some(draws) = draws else { continue };
            let path = ["episodes", "starts", name.as_str(), field];
            let err = |message: String, help: &str| source.error(&path, message, help);
            let Some(first) = first else {
                let message = format!(
                    "the start of joint `{name}` is drawn, and it closes a loop or does not move"
                );
                return Err(err(
                    message,
                    "draw joints of the tree; what closes a loop follows",
                ));
            };
            let (draws, n) = (draws.as_slice(), joint.directions.len());
            if draws.len() != n {
                let message = format!("{field} of joint `{name}` is drawn {} times", draws.len());
                return Err(err(
                    message,
                    &format!("expected {n}, one for each coordinate"),
                ));
            }
            for (i, draw) in draws.iter().enumerate() {
                let from = distribution(source, &path, *draw)?;
                let d = &joint.directions[i];
                if let (Distribution::Uniform(l, u), "coordinate") = (from, field)
                    && (l < d.lower || u > d.upper)
                {
                    let message = format!(
                        "coordinate of `{name}` is drawn between {l} and {u}, beyond the joint's limits {} and {}",
                        d.lower, d.upper
                    );
                    return Err(err(message, "draw it within its limits"));
                }
                let number = make(first + i);
                out.push(Draw { number, from });
            }
        }
    }
    Ok(out)
}

fn distribution(
    source: &Source,
    path: &[&str],
    draw: DistributionSpec,
) -> Result<Distribution, FormatError> {
    let (DistributionSpec::Uniform([a, b]) | DistributionSpec::Normal([a, b])) = draw;
    let (from, good, help) = match draw {
        DistributionSpec::Uniform(_) => (
            Distribution::Uniform(a, b),
            a <= b,
            "uniform = [smallest, largest], finite",
        ),
        DistributionSpec::Normal(_) => (
            Distribution::Normal(a, b),
            b >= 0.0,
            "normal = [mean, standard deviation], finite, the second not negative",
        ),
    };
    match good && a.is_finite() && b.is_finite() {
        true => Ok(from),
        false => Err(source.error(path, format!("drawn by {a} and {b}"), help)),
    }
}

impl Quantities<'_> {
    /// The quantities that may end an episode.
    pub(super) fn watched(&mut self, spec: &EpisodesSpec) -> Result<Vec<usize>, FormatError> {
        let mut out = vec![];
        for (i, e) in spec.ends.iter().enumerate() {
            let i = format!("ends.{i}");
            let place = ["episodes", i.as_str()];
            let names = self.names(place, &e.quantity, true)?;
            let [name] = names[..] else {
                let message = "a quantity with three components has no place here".into();
                return Err(self.err(place, "quantity", message, "give it an axis"));
            };
            out.push(name);
        }
        Ok(out)
    }
}

/// Episodes of a problem whose parameters have these names and bounds, where `watched` are the quantities of their ends.
pub(super) fn build(
    source: &Source,
    spec: &EpisodesSpec,
    mut draws: Vec<Draw>,
    watched: &[QuantityId],
    parameters: &[(String, (f64, f64))],
) -> Result<Episodes, FormatError> {
    if spec.count == 0 {
        let message = "a value is the mean of 0 episodes";
        return Err(source.error(&["episodes", "count"], message, "expected at least 1"));
    }
    for (name, draw) in &spec.parameters {
        let path = ["episodes", "parameters", name];
        let names = || parameters.iter().map(|p| p.0.as_str());
        let Some(place) = names().position(|n| n == name) else {
            let message = format!("unknown parameter `{name}`");
            return Err(source.name_error(&path, message, nearest(name, names())));
        };
        let (l, u) = parameters[place].1;
        if l < u {
            let message = format!("parameter `{name}` is drawn, and it is to be found");
            return Err(source.error(&path, message, "say fixed = true where it is described"));
        }
        draws.push(Draw {
            number: Drawn::Parameter(place),
            from: distribution(source, &path, *draw)?,
        });
    }
    let ends = spec.ends.iter().zip(watched).enumerate();
    let ends = ends.map(|(i, (e, quantity))| end(source, &i.to_string(), e, *quantity));
    Ok(Episodes {
        draws,
        ends: ends.collect::<Result<_, _>>()?,
        count: spec.count,
        seed: spec.seed,
    })
}

fn end(source: &Source, i: &str, e: &EndSpec, quantity: QuantityId) -> Result<End, FormatError> {
    let refused = |field: &str, message: String, help: &str| {
        Err(source.error(&["episodes", "ends", i, field], message, help))
    };
    let (lower, upper) = (
        e.below.unwrap_or(f64::NEG_INFINITY),
        e.above.unwrap_or(f64::INFINITY),
    );
    if e.below.is_none() && e.above.is_none() {
        let message = "the end of an episode compares its quantity with nothing".into();
        return refused("quantity", message, "add below = .., above = .., or both");
    }
    if lower.is_nan() || upper.is_nan() || lower > upper {
        let message = format!("an episode ends below {lower} and above {upper}");
        return refused("below", message, "expected the smaller number first");
    }
    for (field, value) in [("cost", e.cost), ("rest", e.rest)] {
        if !value.is_finite() {
            let message = format!("{field} of an end is {value}");
            return refused(field, message, "expected a finite number");
        }
    }
    Ok(End {
        quantity,
        lower,
        upper,
        cost: e.cost,
        rest: e.rest,
    })
}
