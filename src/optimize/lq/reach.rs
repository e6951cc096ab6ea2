//! Whether constraints that stay violated can be met to first order: the certificate of infeasibility.

use super::knot::workers;
use super::lagrangian::Lagrangian;
use super::model::Model;
use super::path::Path;
use crate::control::Problem;
use crate::dynamics::Observe;
use crate::optimize::scale::extent;
use crate::rollout::Trajectory;

/// A decision without bounds may go so many times as far as it is large, or one: it is at rest rather than out of reach.
const OPEN_ROOM: f64 = 100.0;

/// By how much, of what they weigh, constraints `c` can come to hold to first order, with the multipliers' estimates `y` for
/// weights, and the decisions `d` in the box `B` that their bounds leave around the path's:
///
/// ```text
/// - min_(d in B) y' J d / y' c
/// ```
///
/// Below one no `d` in `B` meets the linearized constraints `c + J d` (Farkas' lemma; `y` is not negative where they are
/// inequalities). Where bounds are open, `B` ends at a hundred times a decision's size, and what is small tells of a
/// stationary point instead. Infinite where the path has gaps, or where nothing can be told.
pub fn within_reach<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    lagrangian: &Lagrangian,
    path: &Path,
) -> f64 {
    let pressure = lagrangian.pressure(path);
    if path.has_gaps || pressure.is_nan() || pressure <= 0.0 {
        return f64::INFINITY;
    }
    // the model of the constraints alone
    let problem = &Problem {
        costs: vec![],
        ..problem.clone()
    };
    let mut model = match problem.guess.is_empty() {
        true => Model::of_parameters(dynamics, problem),
        false => Model::new(dynamics, problem),
    };
    let mut workers = workers(dynamics, problem, &model.sizes);
    let mut path = path.clone();
    path.evaluation = problem.evaluation();
    let made = path
        .evaluate(dynamics, problem, &mut workers[0].work)
        .and_then(|()| model.build(dynamics, problem, lagrangian, &mut path, &mut workers));
    if made.is_err() {
        return f64::INFINITY;
    }
    first_order_fall(&model, problem, &path.trajectory) / pressure
}

/// How far the model's function can fall to first order within the box.
fn first_order_fall(model: &Model, problem: &Problem, t: &Trajectory) -> f64 {
    let mut by_controls = vec![0.0; t.u.len()];
    let mut by_parameters = vec![0.0; model.sizes.q];
    model.gradient(&mut by_controls, &mut by_parameters);
    let fall = |g: f64, value: f64, bounds: (f64, f64)| {
        let to_bound = match g > 0.0 {
            true => value - bounds.0,
            false => bounds.1 - value,
        };
        let room = if to_bound.is_finite() {
            to_bound.max(0.0)
        } else {
            OPEN_ROOM * extent(value, (f64::NEG_INFINITY, f64::INFINITY))
        };
        g.abs() * room
    };
    let controls = problem.with_bounds(&t.u).zip(&by_controls);
    let controls = controls.map(|((u, b), g)| fall(*g, *u, *b));
    let parameters = model.free.iter().zip(&by_parameters);
    let parameters = parameters.map(|(&p, g)| fall(*g, t.p[p], problem.parameter_bounds[p]));
    controls.sum::<f64>() + parameters.sum::<f64>()
}
