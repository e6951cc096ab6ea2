//! Parameters: from the paths of a file to numbers of the mechanism, with bounds.

use super::problem::ParameterSpec;
use super::source::{FormatError, Source};
use crate::mechanism::{Field, Mechanism, MechanismBuilder};
use indexmap::IndexMap;

/// Share of its value below which a number that must be positive is not sought.
const LEAST: f64 = 1e-6;

/// Smallest and largest value of each parameter.
pub(super) type Bounds = Vec<(f64, f64)>;

/// Declares the parameters in the description and gives them their values. Returns smallest and largest value of each,
/// the same where it is fixed.
///
/// # Errors
/// When a path, a value or bounds mean nothing.
pub(super) fn declare(
    source: &Source,
    m: &Mechanism,
    parameters: &IndexMap<String, ParameterSpec>,
    builder: &mut MechanismBuilder,
) -> Result<Bounds, FormatError> {
    let mut bounds = vec![];
    for (name, spec) in parameters {
        let err = |field: &str, message: String, help: &str| {
            source.error(&["parameters", name, field], message, help)
        };
        let paths = spec.of.as_slice();
        let mut fields = vec![];
        for (i, path) in paths.iter().enumerate() {
            let i = i.to_string();
            let at = ["parameters", name, "of", &i];
            let found = m.field(name, path);
            fields.push(found.map_err(|e| source.error(&at, e.message, e.help))?);
        }
        if fields.is_empty() {
            let help = "name what it is the value of, as of = \"joints.hinge.damping\"";
            return Err(err("of", format!("parameter `{name}` sets nothing"), help));
        }
        let value = match spec.value {
            Some(v) => v,
            None => own_value(m, &fields, paths).map_err(|message| {
                let help = "give the value that all of them start from: value = ..";
                err("of", format!("parameter `{name}`: {message}"), help)
            })?,
        };
        if let Some(what) = meaningless(&fields, value) {
            let message = format!("parameter `{name}` is {value}");
            if spec.value.is_some() {
                return Err(err("value", message, what));
            }
            let help = format!("{what}: give it a start, value = ..");
            return Err(err("of", message, &help));
        }
        bounds.push(range(name, spec, &fields, value).map_err(|(field, m, h)| err(field, m, h))?);
        for field in &fields {
            if m.get(*field) != value {
                builder.set(m, *field, value);
            }
        }
        builder.parameters.insert(name.clone(), paths.to_vec());
    }
    Ok(bounds)
}

/// The value all of the fields have.
fn own_value(m: &Mechanism, fields: &[Field], paths: &[String]) -> Result<f64, String> {
    let value = m.get(fields[0]);
    match fields.iter().position(|f| m.get(*f) != value) {
        None => Ok(value),
        Some(i) => Err(format!(
            "`{}` is {value} and `{}` is {}",
            paths[0],
            paths[i],
            m.get(fields[i])
        )),
    }
}

/// What is expected, if the fields cannot have the value.
fn meaningless(fields: &[Field], value: f64) -> Option<&'static str> {
    fields.iter().find_map(|f| f.refuses(value))
}

/// Smallest and largest value, or the field that is wrong, message and remedy.
fn range(
    name: &str,
    spec: &ParameterSpec,
    fields: &[Field],
    value: f64,
) -> Result<(f64, f64), (&'static str, String, &'static str)> {
    let least = if fields.iter().any(|f| f.positive() == Some(true)) {
        LEAST * value
    } else if fields.iter().any(|f| f.positive() == Some(false)) {
        0.0
    } else {
        f64::NEG_INFINITY
    };
    let most = fields
        .iter()
        .map(|f| f.largest())
        .fold(f64::INFINITY, f64::min);
    let (lower, upper) = match spec.bounds {
        None => (least, most),
        Some([l, u]) => {
            if l.is_nan() || u.is_nan() || l > u {
                let message = format!("bounds of parameter `{name}` are {l} and {u}");
                let help = "expected the smaller number first; inf where there is none";
                return Err(("bounds", message, help));
            }
            // inf says that nothing is wanted beyond what has a meaning
            for (v, way) in [(l, "fall"), (u, "rise")] {
                if v.is_finite()
                    && let Some(help) = meaningless(fields, v)
                {
                    let message = format!("parameter `{name}` may {way} to {v}");
                    return Err(("bounds", message, help));
                }
            }
            (if l.is_finite() { l } else { least }, u.min(most))
        }
    };
    if !(lower..=upper).contains(&value) {
        let message = format!("parameter `{name}` starts at {value}, outside {lower} to {upper}");
        let field = if spec.value.is_some() {
            "value"
        } else {
            "bounds"
        };
        return Err((field, message, "give a value within the bounds"));
    }
    Ok(if spec.fixed {
        (value, value)
    } else {
        (lower, upper)
    })
}
