//! Settings of a step, whatever integrator takes it.

use super::held::Controls;
use crate::contact::ContactOptions;

/// Settings of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Largest residual that is accepted: N s, N m s, m, half rad. With contacts, limits or friction of joints every row
    /// is measured as a velocity: m/s.
    pub tolerance: f64,
    /// Newton iterations at most; with contacts from each start, before turns of the central path are followed.
    pub max_iterations: usize,
    /// Of contacts, joint limits and joint friction.
    pub contact: ContactOptions,
    /// How a control acts between knots. [`System`](super::System) follows it; an integrator by itself applies impulses at knots, which
    /// are controls that are linear between knots, to second order.
    pub controls: Controls,
    /// Are steps divided as needed around this integrator? [`System`](super::System) sets it. A step that fails then does not advise
    /// automatic substeps.
    pub is_divided: bool,
}

impl Options {
    /// What helps if a step is too long, whatever method evaluates it: `direct` takes a number of substeps, but no automatic ones, which
    /// are found by solving steps.
    pub(super) fn finer_steps(&self) -> &'static str {
        match !self.is_divided && self.controls == Controls::Held {
            true => "a smaller time step, or substeps",
            false => finer_steps(false),
        }
    }
}

/// What helps a simulation whose steps are too long: automatic substeps only if they can still be turned on.
pub fn finer_steps(may_divide: bool) -> &'static str {
    match may_divide {
        true => "a smaller time step, or substeps = \"auto\"",
        false => "a smaller time step",
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 1e-10,
            max_iterations: 50,
            contact: ContactOptions::default(),
            controls: Controls::default(),
            is_divided: false,
        }
    }
}
