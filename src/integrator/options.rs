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
        match self.controls {
            Controls::Held if !self.is_divided => "a smaller time step, or substeps",
            _ => finer_steps(self.is_divided, false),
        }
    }
}

/// What helps a simulation whose steps are too long: automatic substeps only if they can still be turned on. If they are, smaller steps
/// have fewer.
pub fn finer_steps(is_divided: bool, may_divide: bool) -> &'static str {
    match (is_divided, may_divide) {
        (true, _) => "a smaller time step, or a larger number of substeps than automatic ones (substeps = N)",
        (false, true) => "a smaller time step, or substeps = \"auto\"",
        (false, false) => "a smaller time step",
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
