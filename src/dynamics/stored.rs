//! The numbers that a state is stored in, as a chart.

use super::Step;

/// A system whose states can be changed and differentiated by the very numbers that they are stored in (`nx`), beside
/// the free chart (`nf`): who holds a state as a vector, as a learner does, has no other. For a body in maximal
/// coordinates 13 numbers stand beside 12. A function is defined at states alone, so that its derivative by stored
/// numbers is the one without a part along what leaves the states, such as the length of a quaternion.
pub trait Stored: Step {
    /// The change of the stored numbers of the state `x` by a change in the free chart.
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]);

    /// Adjoints of the stored numbers of the state `x` from adjoints in the free chart: for every change of stored
    /// numbers `dx` between states, which is `df` in the free chart, `stored . dx = free . df`.
    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]);
}
