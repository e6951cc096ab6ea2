//! What happens at a contact: gap, forces, sliding.

use super::reaction::pull_share;
use super::{Adjoint, KnotData, ReactionSource};
use crate::mechanism::wrench::{add_six, add_wrench, dot};
use crate::mechanism::{
    Ahead, Contact, Field, Meeting, Row, Search, Touch, friction_rows, normal_row,
    rate_derivatives, touch_change,
};
use crate::spatial::{Pose, Vec3};

/// A contact at a knot.
#[derive(Clone, Debug)]
pub struct Contacting {
    /// Gap, normal and point.
    pub touch: Touch,
    /// In the step from the knot; none at the last one.
    pub step: Option<Acting>,
    /// The faces and edges that meet, where those are searched for.
    pub meets: Option<String>,
}

/// What a contact does in a step.
#[derive(Clone, Copy, Debug)]
pub struct Acting {
    /// Normal force, N.
    pub normal: f64,
    /// Size of friction, N.
    pub friction: f64,
    /// Both together, on the child in the world, N.
    pub force: Vec3,
    /// Speed with which the surfaces slide, m/s: what friction acts against, along the mean of the tangents' rows at both
    /// ends of the interval.
    pub slip: f64,
}

/// The interval after a knot: six velocities of every body, and the poses at its end.
#[derive(Clone, Debug)]
pub struct StepInterval {
    /// m/s and rad/s
    pub velocities: Vec<f64>,
    /// Where it ends.
    pub poses: Vec<Pose>,
}

/// Every contact at a knot whose reactions are known, and in the step from it (none at the last knot).
pub fn contacting(k: &KnotData, step: Option<&StepInterval>) -> Vec<Contacting> {
    let mut search = Search::default();
    let all = 0..k.mechanism.contacts.len();
    all.map(|c| contacting_one(k, c, step, &mut search))
        .collect()
}

fn contacting_one(
    k: &KnotData,
    contact: usize,
    step: Option<&StepInterval>,
    search: &mut Search,
) -> Contacting {
    let (c, held, touch, [a, b]) = at_of(k, contact, search);
    let step = step.map(|step| {
        let [normal, x, y] = forces(k, contact);
        let axis = c.frame_axis(&touch);
        let rows = friction_rows(&touch, axis, a, b);
        let m = k.mechanism;
        let (a, b) = (m.pose(&step.poses, c.parent), &step.poses[c.child]);
        let ends = friction_rows(&m.touch_of(c, &held, &step.poses), axis, a, b);
        let along = |row| dot(&step.velocities, c.parent, c.child, row);
        let [first, second] = [0, 1].map(|i| 0.5 * (along(&rows[i]) + along(&ends[i])));
        Acting {
            normal,
            friction: x.hypot(y),
            force: touch.normal * normal + rows[0].force * x + rows[1].force * y,
            slip: first.hypot(second),
        }
    });
    Contacting {
        touch,
        step,
        meets: held.name(),
    }
}

/// The contact as it is in the step from the knot, with what meets there, and the poses of its bodies.
fn at<'a>(k: &KnotData<'a>, contact: usize) -> (&'a Contact, Meeting, Touch, [&'a Pose; 2]) {
    at_of(k, contact, &mut Search::default())
}

/// The same of contacts in turn, of which those of one pair are found by one search.
fn at_of<'a>(
    k: &KnotData<'a>,
    contact: usize,
    search: &mut Search,
) -> (&'a Contact, Meeting, Touch, [&'a Pose; 2]) {
    let (m, c) = (k.mechanism, &k.mechanism.contacts[contact]);
    let ahead = Ahead {
        velocities: k.before,
        h: k.h,
    };
    let held = m.meeting_of(c, k.poses, &ahead, search);
    let touch = m.touch_of(c, &held, k.poses);
    let ends = [m.pose(k.poses, c.parent), &k.poses[c.child]];
    (c, held, touch, ends)
}

pub(super) fn gap(k: &KnotData, contact: usize) -> f64 {
    at(k, contact).2.gap
}

pub(super) fn pull_gap(k: &KnotData, contact: usize, g: f64, out: &mut Adjoint) {
    let (c, _, touch, [a, b]) = at(k, contact);
    add_wrench(
        &mut out.poses,
        c.parent,
        c.child,
        &normal_row(&touch, a, b),
        g,
    );
}

pub(super) fn gap_by(k: &KnotData, contact: usize, field: Field) -> f64 {
    let m = k.mechanism;
    let (c, held, ..) = at(k, contact);
    m.touch_by(c, &held, k.poses, field).map_or(0.0, |t| t.gap)
}

/// Normal force and the two components of friction, N.
pub(super) fn forces(k: &KnotData, contact: usize) -> [f64; 3] {
    let own = &k.reactions[k.mechanism.reactions(ReactionSource::Contact(contact))];
    [own[0], own[1], own[2]].map(|impulse| impulse / k.share())
}

pub(super) fn friction(k: &KnotData, contact: usize) -> f64 {
    let [_, x, y] = forces(k, contact);
    x.hypot(y)
}

pub(super) fn pull_normal_force(k: &KnotData, contact: usize, g: f64, out: &mut Adjoint) {
    pull_share(k, g * forces(k, contact)[0], out);
    let own = k.mechanism.reactions(ReactionSource::Contact(contact));
    out.reactions[own][0] += g / k.share();
}

pub(super) fn pull_friction(k: &KnotData, contact: usize, g: f64, out: &mut Adjoint) {
    let [_, x, y] = forces(k, contact);
    let size = x.hypot(y);
    pull_share(k, g * size, out);
    if size > 0.0 {
        let own = k.mechanism.reactions(ReactionSource::Contact(contact));
        let own = &mut out.reactions[own];
        let scale = g / (k.share() * size);
        own[1] += scale * x;
        own[2] += scale * y;
    }
}

/// Velocities along the tangents, and their rows.
fn sliding(k: &KnotData, contact: usize) -> ([f64; 2], [Row; 2]) {
    let (c, _, touch, [a, b]) = at(k, contact);
    let rows = friction_rows(&touch, c.frame_axis(&touch), a, b);
    let along = |row| dot(k.velocities, c.parent, c.child, row);
    (rows.each_ref().map(along), rows)
}

/// Speed with which the surfaces slide at the knot, m/s.
pub(super) fn slip(k: &KnotData, contact: usize) -> f64 {
    let [x, y] = sliding(k, contact).0;
    x.hypot(y)
}

pub(super) fn pull_slip(k: &KnotData, contact: usize, g: f64, out: &mut Adjoint) {
    let (slide, rows) = sliding(k, contact);
    let size = slide[0].hypot(slide[1]);
    if size == 0.0 {
        return;
    }
    let (c, held, touch, [a, b]) = at(k, contact);
    for (row, along) in rows.iter().zip(slide) {
        add_wrench(
            &mut out.velocities,
            c.parent,
            c.child,
            row,
            g * along / size,
        );
    }
    // how the rows turn with the configuration
    let slope = k.mechanism.touch_slope(c, &held, k.poses);
    let turns = rate_derivatives(
        [1, 2],
        (&touch, c.frame_axis(&touch)),
        &slope,
        (a, b),
        k.velocities,
        (c.parent, c.child),
    );
    for ([on_parent, on_child], along) in turns.iter().zip(slide) {
        if let Some(p) = c.parent {
            add_six(&mut out.poses, p, on_parent, g * along / size);
        }
        add_six(&mut out.poses, c.child, on_child, g * along / size);
    }
}

pub(super) fn slip_by(k: &KnotData, contact: usize, field: Field) -> f64 {
    let (c, held, touch, [a, b]) = at(k, contact);
    let Some(change) = k.mechanism.touch_by(c, &held, k.poses, field) else {
        return 0.0;
    };
    let [_, rows @ ..] = touch_change(&touch, &change, c.frame_axis(&touch), (a, b));
    let slide = sliding(k, contact).0;
    let size = slide[0].hypot(slide[1]);
    if size == 0.0 {
        return 0.0;
    }
    let along = rows.iter().zip(slide);
    along
        .map(|(row, s)| s / size * dot(k.velocities, c.parent, c.child, row))
        .sum()
}
