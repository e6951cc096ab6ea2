//! Which integrator, by name.

use super::composed::Order;
use super::system::Kind;
use std::fmt;
use std::num::NonZeroUsize;

/// What names the integrator that suits a mechanism, and is taken by default.
const AUTO: &str = "auto";

/// An integrator and its order: by default the one that suits the mechanism best, of its own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// None is the one that suits.
    kind: Option<Kind>,
    /// Of a higher order than the integrator's own.
    composition: Option<Order>,
    substeps: Substeps,
}

/// In how many parts steps are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Substeps {
    /// One.
    #[default]
    One,
    /// So many equal ones.
    Equal(NonZeroUsize),
    /// As many as the fastest swings ask for; see [`super::divided`].
    Auto,
}

impl From<Kind> for Choice {
    fn from(kind: Kind) -> Self {
        Self {
            kind: Some(kind),
            ..Self::default()
        }
    }
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            kind: None,
            composition: None,
            substeps: Substeps::One,
        }
    }
}

impl Substeps {
    /// Parts of a step at most: more is a smaller time step.
    const MOST: usize = 1000;

    /// `auto`, or a number of equal parts.
    ///
    /// # Errors
    /// When it is none.
    pub fn named(name: &str) -> Result<Self, ChoiceError> {
        match name.parse::<usize>() {
            _ if name == AUTO => Some(Self::Auto),
            Ok(1) => Some(Self::One),
            Ok(n) if n <= Self::MOST => NonZeroUsize::new(n).map(Self::Equal),
            _ => None,
        }
        .ok_or_else(|| ChoiceError {
            of_order: false,
            message: format!("substeps are `{name}`"),
            help: format!(
                "expected a whole number from 1 to {}, or `{AUTO}`",
                Self::MOST
            ),
        })
    }
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
    /// The integrator of a name, or `auto` for the one that suits the mechanism, and an order: 2 where none is given.
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
        let all = || Kind::ALL.iter().map(|k| k.name());
        let kind = Kind::ALL.iter().find(|k| k.name() == name);
        let choice = match kind {
            Some(kind) => Self::from(*kind),
            None if name == AUTO => Self::default(),
            None if Kind::PLANNED.contains(&name) => {
                let message = format!("integrator `{name}` is not available in this version");
                let names: Vec<_> = all().chain([AUTO]).collect();
                return wrong(false, message, &format!("use `{}`", names.join("` or `")));
            }
            None => {
                let names: Vec<_> = [AUTO].into_iter().chain(all()).collect();
                let near = names
                    .iter()
                    .map(|n| (strsim::jaro_winkler(name, n), n))
                    .filter(|(near, _)| *near > 0.8)
                    .max_by(|a, b| a.0.total_cmp(&b.0));
                let help = match near {
                    Some((_, near)) => format!("did you mean `{near}`?"),
                    None => format!("expected one of `{}`", names.join("`, `")),
                };
                return wrong(false, format!("unknown integrator `{name}`"), &help);
            }
        };
        match order {
            None | Some(2) => Ok(choice),
            Some(4) => Ok(choice.composed(Order::Four)),
            Some(6) => Ok(choice.composed(Order::Six)),
            Some(other) => wrong(
                true,
                format!("there is no integrator `{name}` of order {other}"),
                "expected order 2, 4 or 6",
            ),
        }
    }

    /// The integrator's steps composed to a higher order.
    #[must_use]
    pub fn composed(self, order: Order) -> Self {
        match order {
            Order::Equal(n) => self.in_parts(Substeps::Equal(n)),
            order => Self {
                composition: Some(order),
                ..self
            },
        }
    }

    /// Steps divided as their fastest swings ask for.
    #[must_use]
    pub fn divided(self) -> Self {
        self.in_parts(Substeps::Auto)
    }

    /// Steps in so many parts.
    #[must_use]
    pub fn in_parts(self, substeps: Substeps) -> Self {
        Self { substeps, ..self }
    }

    /// In how many parts steps are made.
    pub fn substeps(&self) -> Substeps {
        self.substeps
    }

    /// The compositions of the integrator's steps, one around the other.
    pub(super) fn compositions(&self) -> impl Iterator<Item = Order> + use<> {
        let equal = match self.substeps {
            Substeps::Equal(n) => Some(Order::Equal(n)),
            Substeps::One | Substeps::Auto => None,
        };
        self.composition.into_iter().chain(equal)
    }

    /// Are steps divided on the way?
    pub(super) fn is_divided(&self) -> bool {
        self.substeps == Substeps::Auto
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// Name of the integrator, or `auto`.
    pub fn name(&self) -> &'static str {
        self.kind.map_or(AUTO, Kind::name)
    }

    /// Order of the error in the time step, under controls that stay the same.
    pub fn order(&self) -> usize {
        self.composition.map_or(2, Order::number)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.order() {
            2 => f.write_str(self.name())?,
            order => write!(f, "{} of order {order}", self.name())?,
        }
        match self.substeps {
            Substeps::One => Ok(()),
            Substeps::Equal(n) => write!(f, " in {n} substeps"),
            Substeps::Auto => f.write_str(" in substeps as needed"),
        }
    }
}
