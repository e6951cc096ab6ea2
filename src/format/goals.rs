//! What costs and constraints want, for figures: of channels, and where it has a place.

use super::Model;
use super::recording::{Channel, Goal, GoalKind, Group, Interval, Place};
use crate::control::{Form, Relation, When};
use crate::dynamics::{Observe, QuantityId};
use crate::integrator::Mechanical;
use crate::mechanism::{Freedom, Joint, JointKind, Mechanism, Quantity};
use crate::rollout::Trajectory;
use crate::spatial::{Pose, Quat, Vec3, exp, log};

/// More marks than these would hide the picture.
const MOST_PLACES: usize = 100;
/// Places closer than this are one, m.
const SAME: f64 = 1e-9;

/// One cost or constraint: the quantity, and what is wanted of it.
type Wanted = (QuantityId, Goal);

/// A quantity and its value.
type Value = (Quantity, f64);

/// All that a problem wants; costs without weight want nothing.
fn wanted(model: &Model, n: usize) -> Vec<Wanted> {
    let p = &model.problem;
    // what is to be small or large has no place, and what varies has many
    let costs = p
        .costs
        .iter()
        .filter(|c| c.weight > 0.0 && c.profile.is_none());
    let costs = costs.filter(|c| c.form != Form::Linear);
    let costs = costs.map(|c| (c.quantity, GoalKind::Target, c.target, c.when));
    let constraints = p.constraints.iter().filter(|c| c.profile.is_none());
    let constraints = constraints.map(|c| {
        let kind = match c.relation {
            Relation::Equal => GoalKind::Equal,
            Relation::Less => GoalKind::Less,
            Relation::Greater => GoalKind::Greater,
        };
        (c.quantity, kind, c.value, c.when)
    });
    let goal = |(quantity, kind, value, when): (QuantityId, GoalKind, f64, When)| {
        let (first, last) = when.knots(n)?;
        let goal = Goal {
            kind,
            value,
            first,
            last,
        };
        Some((quantity, goal))
    };
    costs.chain(constraints).filter_map(goal).collect()
}

/// Marks the channels with what is wanted of them.
pub(super) fn mark(channels: &mut [Channel], model: &Model, steps: usize) {
    let m = model.system.mechanism();
    let outputs = model.system.outputs();
    let names = model.extended().quantities();
    for (quantity, goal) in wanted(model, steps) {
        let free = outputs
            .get(quantity.index())
            .and_then(|o| of_free_body(m, o));
        let Some((name, unit)) = free.as_ref().or(names.get(quantity.index())) else {
            continue;
        };
        // a control that shares its name with a joint is told apart
        let control = format!("{name} control");
        let is = |c: &&mut Channel| {
            let same = c.name == *name || (c.group == Group::Control && c.name == control);
            same && c.unit == *unit
        };
        let Some(channel) = channels.iter_mut().find(is) else {
            continue;
        };
        // what a quantity shows where a step starts, such a channel shows where it ends
        let later = usize::from(channel.interval == Some(Interval::Before));
        let goal = Goal {
            first: goal.first + later,
            last: (goal.last + later).min(steps),
            ..goal
        };
        if !channel.goals.contains(&goal) {
            channel.goals.push(goal);
        }
    }
}

/// The coordinate or rate of a free body that a quantity of the body is as well: name and unit.
fn of_free_body(m: &Mechanism, quantity: &Quantity) -> Option<(String, String)> {
    let (body, axis, freedom, rate) = match *quantity {
        Quantity::Position { body, point, axis } if point == Vec3::zeros() => {
            (body, axis, Freedom::Slide, false)
        }
        Quantity::Velocity { body, point, axis } if point == Vec3::zeros() => {
            (body, axis, Freedom::Slide, true)
        }
        Quantity::Orientation { body, target, axis } if target == Quat::identity() => {
            (body, axis, Freedom::Turn, false)
        }
        _ => return None,
    };
    let free = |j: &Joint| {
        let plain = j.parent_anchor == Vec3::zeros() && j.child_anchor == Vec3::zeros();
        let kind = j.kind == JointKind::Floating && j.parent.is_none() && j.child == body;
        plain && kind && j.offset == Quat::identity()
    };
    let joint = m.joints.iter().position(free)?;
    let directions = &m.joints[joint].directions;
    let direction = directions
        .iter()
        .position(|d| d.freedom == freedom && d.unit == axis)?;
    let coordinate = match rate {
        true => Quantity::Rate { joint, direction },
        false => Quantity::Coordinate { joint, direction },
    };
    Some(coordinate.name(m))
}

/// Where costs' targets and equations want bodies to be, and the boundaries of what inequalities allow.
pub(super) fn places(model: &Model, t: &Trajectory) -> Vec<Place> {
    let outputs = model.system.outputs();
    let mut by_knot: Vec<((GoalKind, usize), Vec<Value>)> = vec![];
    for (quantity, goal) in wanted(model, t.steps()) {
        let Some(output) = outputs.get(quantity.index()) else {
            continue;
        };
        let key = (goal.kind, goal.last);
        let one = (*output, goal.value);
        match by_knot.iter_mut().find(|k| k.0 == key) {
            Some(known) => known.1.push(one),
            None => by_knot.push((key, vec![one])),
        }
    }
    let mut places: Vec<Place> = vec![];
    for ((kind, knot), wanted) in by_knot {
        let mut at = At {
            kind,
            knot,
            poses: &model.system.poses(t.state(knot)),
            found: vec![],
        };
        match kind {
            GoalKind::Target | GoalKind::Equal => {
                at.positions(model, &wanted);
                at.orientations(&wanted);
                at.coordinates(model, t, &wanted);
            }
            // every one is a boundary of its own
            GoalKind::Less | GoalKind::Greater => {
                for one in &wanted {
                    at.positions(model, std::slice::from_ref(one));
                }
            }
        }
        for place in at.found {
            let same = |p: &Place| {
                let apart = (0..3).map(|i| (p.point[i] - place.point[i]).abs());
                (p.kind, p.body, p.allowed) == (place.kind, place.body, place.allowed)
                    && apart.fold(0.0, f64::max) < SAME
                    && p.orientation.is_some() == place.orientation.is_some()
            };
            if places.len() < MOST_PLACES && !places.iter().any(same) {
                places.push(place);
            }
        }
    }
    places
}

/// The axis of a position.
fn axis_of(quantity: &Quantity) -> Option<Vec3> {
    match *quantity {
        Quantity::Position { axis, .. } | Quantity::CenterOfMass(axis) => Some(axis),
        _ => None,
    }
}

/// What is wanted at a knot.
struct At<'a> {
    kind: GoalKind,
    knot: usize,
    poses: &'a [Pose],
    found: Vec<Place>,
}

impl At<'_> {
    fn add(&mut self, body: Option<usize>, point: Vec3, orientation: Option<Quat>) {
        self.found.push(Place {
            kind: self.kind,
            body,
            point: point.into(),
            orientation: orientation.map(|q| [q.w, q.i, q.j, q.k]),
            knot: self.knot,
            allowed: None,
        });
    }

    /// Of points of bodies, and of the center of mass; what is not wanted stays as it is at the knot.
    fn positions(&mut self, model: &Model, wanted: &[Value]) {
        let bodies = &model.system.mechanism().bodies;
        let masses = || bodies.iter().map(|b| b.mass);
        let mut points: Vec<(Option<(usize, Vec3)>, Vec3)> = vec![];
        for (quantity, value) in wanted {
            let (key, axis) = match *quantity {
                Quantity::Position { body, point, axis } => (Some((body, point)), axis),
                Quantity::CenterOfMass(axis) => (None, axis),
                _ => continue,
            };
            let index = points.iter().position(|p| p.0 == key).unwrap_or_else(|| {
                let here = match key {
                    Some((body, point)) => self.poses[body].point(&point),
                    None => {
                        let each = self.poses.iter().zip(masses());
                        each.map(|(p, m)| p.x * m).sum::<Vec3>() / masses().sum::<f64>()
                    }
                };
                points.push((key, here));
                points.len() - 1
            });
            let point = &mut points[index].1;
            *point += axis * (value - axis.dot(point));
        }
        let allowed = match (self.kind, wanted) {
            (GoalKind::Less, [(quantity, _)]) => axis_of(quantity).map(|a| -a),
            (GoalKind::Greater, [(quantity, _)]) => axis_of(quantity),
            _ => None,
        };
        for (key, point) in points {
            self.add(key.map(|k| k.0), point, None);
            if let Some(place) = self.found.last_mut() {
                place.allowed = allowed.map(Into::into);
            }
        }
    }

    /// Rotations of bodies, shown where the body is wanted, or where it is.
    fn orientations(&mut self, wanted: &[Value]) {
        let mut turns: Vec<(usize, Quat, Vec3)> = vec![];
        for (quantity, value) in wanted {
            let Quantity::Orientation { body, target, axis } = *quantity else {
                continue;
            };
            let known = turns.iter().position(|t| (t.0, t.1) == (body, target));
            let index = known.unwrap_or_else(|| {
                let here = log(&(target.conjugate() * self.poses[body].q));
                turns.push((body, target, here));
                turns.len() - 1
            });
            let turn = &mut turns[index].2;
            *turn += axis * (value - axis.dot(turn));
        }
        for (body, target, turn) in turns {
            let q = target * exp(&turn);
            let wanted = Some([q.w, q.i, q.j, q.k]);
            match self.found.iter_mut().find(|p| p.body == Some(body)) {
                Some(place) => place.orientation = wanted,
                None => self.add(Some(body), self.poses[body].x, Some(q)),
            }
        }
    }

    /// Bodies on joints of which coordinates are wanted; other coordinates as they are at the knot.
    fn coordinates(&mut self, model: &Model, t: &Trajectory, wanted: &[Value]) {
        let (system, m) = (&model.system, model.system.mechanism());
        let (ids, x) = (m.tree_ids(), t.state(self.knot));
        let mut children = vec![];
        let mut q: Vec<f64> = vec![];
        for (quantity, value) in wanted {
            let Quantity::Coordinate { joint, direction } = *quantity else {
                continue;
            };
            let Some(place) = ids.iter().position(|id| *id == (joint, direction)) else {
                continue;
            };
            if q.is_empty() {
                q = ids
                    .iter()
                    .map(|id| system.coordinate(x, id.0, id.1))
                    .collect();
            }
            q[place] = *value;
            if !children.contains(&m.joints[joint].child) {
                children.push(m.joints[joint].child);
            }
        }
        if children.is_empty() {
            return;
        }
        let poses = m.forward(&q);
        for body in children {
            self.add(Some(body), poses[body].x, Some(poses[body].q));
        }
    }
}
