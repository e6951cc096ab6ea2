//! Which integrator, by name.

use super::composed::Order;
use std::fmt;

/// Names that files and the command line may say; not all are available yet.
const NAMES: [&str; 5] = ["auto", "maximal", "minimal", "natural", "verlet"];

/// An integrator, by name and order: by default in maximal coordinates, second order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Of a higher order than the integrator's own.
    composition: Option<Order>,
}

/// An integrator that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct ChoiceError {
    /// Is it the order that is wrong, not the name?
    pub of_order: bool,
    /// What is wrong.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl Choice {
    /// The integrator of a name, `auto` or `maximal`, and an order: 2 where none is given.
    ///
    /// # Errors
    /// When there is none, with the nearest name.
    pub fn new(name: &str, order: Option<usize>) -> Result<Self, ChoiceError> {
        let wrong = |of_order, message, help: &str| {
            let help = help.into();
            Err(ChoiceError {
                of_order,
                message,
                help,
            })
        };
        match name {
            "auto" | "maximal" => {}
            "minimal" | "natural" | "verlet" => {
                let message = format!("integrator `{name}` is not available in this version");
                return wrong(false, message, "use `maximal`");
            }
            _ => {
                let near = NAMES
                    .iter()
                    .map(|n| (strsim::jaro_winkler(name, n), n))
                    .filter(|(near, _)| *near > 0.8)
                    .max_by(|a, b| a.0.total_cmp(&b.0));
                let help = match near {
                    Some((_, near)) => format!("did you mean `{near}`?"),
                    None => format!("expected one of `{}`", NAMES.join("`, `")),
                };
                return wrong(false, format!("unknown integrator `{name}`"), &help);
            }
        }
        match order {
            None | Some(2) => Ok(Self::default()),
            Some(4) => Ok(Self::composed(Order::Four)),
            Some(6) => Ok(Self::composed(Order::Six)),
            Some(other) => wrong(
                true,
                format!("there is no integrator `{name}` of order {other}"),
                "expected order 2, 4 or 6",
            ),
        }
    }

    /// The integrator's steps composed to a higher order.
    pub fn composed(order: Order) -> Self {
        Self {
            composition: Some(order),
        }
    }

    /// The higher order, if it is one.
    pub fn composition(&self) -> Option<Order> {
        self.composition
    }

    /// Name of the integrator.
    pub fn name(&self) -> &'static str {
        "maximal"
    }

    /// Order of the error in the time step, under controls that stay the same.
    pub fn order(&self) -> usize {
        self.composition.map_or(2, Order::number)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.order() {
            2 => f.write_str(self.name()),
            order => write!(f, "{} of order {order}", self.name()),
        }
    }
}
