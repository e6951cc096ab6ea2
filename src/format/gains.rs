//! Feedback gains as they are written.

use super::Model;
use crate::dynamics::{Observe, QuantityId, Step, StepError};
use crate::integrator::{Mechanical, System};
use crate::mechanism::{Needs, Quantity};
use crate::optimize::{Gains, Solution};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

/// Name and unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// As in a recording.
    pub name: String,
    /// Unit.
    pub unit: String,
}

/// Linear feedback around a trajectory of a mechanism: at knot `k`
///
/// ```text
/// u = controls + gains d        d = (a, (a - b)/h)
/// ```
///
/// with `a` and `b` the changes of the joint coordinates from the trajectory to what is seen, at the knot and at the knot
/// before, `h` s earlier: the rates are those over the interval before the knot, at the first knot those at the start.
/// What changes with a joint of several free rotations is a rotation vector in the parent's frame. Where loops close,
/// `a` and `b` are coordinates of the loops' tangent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// The equation above, for who finds the file alone.
    pub law: String,
    /// Rows of the gains.
    pub controls: Vec<Named>,
    /// Columns of the gains: the numbers of `d`. A gain has the unit of its row by that of its column.
    pub coordinates: Vec<Named>,
    /// What `state` holds.
    pub states: Vec<Named>,
    /// Share of the time step, at its end, over which rates are taken: below 1 if the plan's steps are made in parts, 0 if their number
    /// varies.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub part: f64,
    /// One a step.
    pub knots: Vec<FeedbackKnot>,
}

impl Feedback {
    /// Files that do not have the part say it in their law.
    pub(super) fn with_part(mut self) -> Self {
        let said = self.law.split_once(PART);
        let said = said.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        if let (Some(said), true) = (said, is_whole(&self.part)) {
            self.part = said;
        }
        self
    }
}

/// Feedback at a knot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedbackKnot {
    /// s
    pub time: f64,
    /// The trajectory's controls.
    pub controls: Vec<f64>,
    /// The trajectory's joint coordinates, then their rates over the interval before.
    pub state: Vec<f64>,
    /// Row by row, controls x coordinates; rows of controls at a bound are zero.
    pub gains: Vec<Vec<f64>>,
    /// Where loops close: `tangent a` is the change of the joint coordinates at the knot. Row by row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tangent: Option<Vec<Vec<f64>>>,
    /// Where loops close: `tangent_before b` is their change at the knot before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tangent_before: Option<Vec<Vec<f64>>>,
}

fn whole() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_whole(part: &f64) -> bool {
    *part == 1.0
}

/// What the law says of steps made in parts, before the share of the last one.
const PART: &str = "; h is the last ";

/// Instead of the share that is the last part of steps.
pub(super) const VARIES: f64 = 0.0;

const LAW: &str = "u = controls + gains d; d = (a, (a - b)/h): changes a of the joint coordinates from the trajectory to what is seen, b at the knot before, h s earlier; at the first knot d = (a, change of the rates)";
const LOOPS: &str = "; changes of the joint coordinates are tangent a and tangent_before b";
const MEMORY: &str = "; then the change of the controls before the knot";

fn rows(m: &DMatrix<f64>) -> Vec<Vec<f64>> {
    m.row_iter().map(|r| r.iter().copied().collect()).collect()
}

/// The feedback of a solution of the model; `None` where the method found none.
///
/// # Errors
/// When the joint coordinates of the trajectory cannot be observed, or it is none of the model's own system.
pub fn feedback(model: &Model, solution: &Solution) -> Result<Option<Feedback>, StepError> {
    let (Some(gains), t) = (&solution.gains, &solution.trajectory) else {
        return Ok(None);
    };
    let system = model.with_parameters(&t.p)?.system;
    let (got, nx) = (t.state(0).len(), system.dims().nx);
    if got != nx {
        let sizes =
            format!("{got} numbers a state; give one of the model's own system, which has {nx}");
        return Err(StepError::of_size("solution", sizes));
    }
    let m = system.mechanism();
    let ids = m.tree_ids();
    let of = |make: fn(usize, usize) -> Quantity| ids.iter().map(move |&(j, i)| make(j, i));
    let coordinates = of(|joint, direction| Quantity::Coordinate { joint, direction });
    let part = part(&system, t)?;
    let rates = of(|joint, direction| Quantity::IntervalRate { joint, direction });
    let named = |(name, unit): (String, String)| Named { name, unit };
    let controls: Vec<Named> = system.controls().into_iter().map(named).collect();
    let before = system.previous_controls().unwrap_or(0..0).len();
    let mut outputs: Vec<Quantity> = coordinates.chain(rates).collect();
    let tree = outputs.len();
    outputs.extend((0..before).map(Quantity::PreviousControl));
    let states: Vec<Named> = outputs.iter().map(|o| named(o.name(m))).collect();
    let (loops, ndx) = (m.has_loops(), system.dims().ndx - before);
    let mut columns = states[..tree].to_vec();
    if let Some(free) = system.chart_coordinates().filter(|_| loops) {
        let n = ids.len();
        let both = free.iter().copied().chain(free.iter().map(|i| n + i));
        columns = both.map(|i| states[i].clone()).collect();
    } else if loops {
        // columns of the basis have unit kinetic energy
        let both = [("coordinate", "m kg^(1/2)"), ("rate", "m kg^(1/2)/s")];
        let chart = both.iter().flat_map(|c| (1..=ndx / 2).map(move |i| (c, i)));
        columns = chart
            .map(|((of, unit), i)| named((format!("{of} {i} along the loops"), (*unit).into())))
            .collect();
    }
    columns.extend_from_slice(&states[tree..]);
    // rates of controls are functions of the previous control, too: of the one in the state, or of one beside it
    let remembers = width(gains) > ndx + before;
    if remembers && before == 0 {
        columns.extend(controls.iter().map(|c| Named {
            name: format!("{} before", c.name),
            unit: c.unit.clone(),
        }));
    }
    let system = system.with_outputs(outputs);
    let which: Vec<QuantityId> = (0..states.len()).map(QuantityId::new).collect();
    let mut w = system.work();
    let mut knots = Vec::with_capacity(t.steps());
    let mut at = t.knot(0);
    for (k, gain) in gains.feedback.iter().enumerate() {
        let mut state = vec![0.0; states.len()];
        system.observe(&t.knot_point(&at), &which, &mut w, &mut state)?;
        let [tangent, tangent_before] = match system.tangents(gains.frame(k)) {
            Some(both) => both.map(|m| Some(rows(&m))),
            None => [None, None],
        };
        knots.push(FeedbackKnot {
            time: at.t,
            controls: t.control(k).to_vec(),
            state,
            gains: rows(&merged(gain, ndx, before)),
            tangent,
            tangent_before,
        });
        at = t.knot_after(&at);
    }
    let law = [LAW, if loops { LOOPS } else { "" }];
    let sub_interval = match (system.last_share(), part) {
        (0.0, _) => "; steps are split at impacts, and all knots are as the first".into(),
        (_, VARIES) => "; h is the last part of each step, whose number of parts varies".into(),
        (_, 1.0) => String::new(),
        (_, part) => format!("{PART}{part} of the time step"),
    };
    Ok(Some(Feedback {
        law: law.concat() + if remembers || before > 0 { MEMORY } else { "" } + &sub_interval,
        controls,
        coordinates: columns,
        states,
        part,
        knots,
    }))
}

/// The rate that gains act on which are of steps with such a last part.
pub(super) fn rate_seen((joint, direction): (usize, usize), part: f64) -> Quantity {
    match part {
        VARIES => Quantity::IntervalRate { joint, direction },
        share => Quantity::LastRate {
            joint,
            direction,
            share,
        },
    }
}

/// Share of the time step that the last part of all steps is; [`VARIES`] if they have different numbers of parts.
fn part(system: &System, t: &Trajectory) -> Result<f64, StepError> {
    let (mut w, mut at, mut common) = (system.work(), t.knot(0), None);
    for _ in 1..t.steps() {
        at = t.knot_after(&at);
        let seen = t.knot_point(&at);
        system.evaluate_knot(&seen, Needs::default(), &mut w)?;
        let own = system.knot_data(&seen, &w).part;
        if *common.get_or_insert(own) != own {
            return Ok(VARIES);
        }
    }
    Ok(common.unwrap_or(1.0))
}

/// Gains by the previous control of the state, from `place` on, with those by the one that rates of controls refer to, which is the
/// same.
fn merged(gains: &DMatrix<f64>, place: usize, before: usize) -> DMatrix<f64> {
    let whole = place + before;
    if before == 0 || gains.ncols() <= whole {
        return gains.clone();
    }
    let mut out = gains.columns(0, whole).into_owned();
    let mut own = out.columns_mut(place, before);
    own += gains.columns(whole, before);
    out
}

/// Numbers of the chart that the gains act on.
fn width(gains: &Gains) -> usize {
    gains.feedback.first().map_or(0, DMatrix::ncols)
}
