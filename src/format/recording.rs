//! What a run leaves behind: named, unit-carrying channels over knots, the poses of every body,
//! line work to draw the mechanism with, and the convergence history. Figures and files are made from
//! this alone, so `plot` needs nothing but the written JSON.

use crate::mechanism::Surface;
pub use crate::optimize::Iteration;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Forces below this share of the largest are not of surfaces that touch: a figure shows no less.
pub(crate) const LEAST_FORCE: f64 = 1e-4;

/// What a channel shows; figures are drawn per group that is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Joint coordinates (m, rad).
    Coordinate,
    /// Rates of the joint coordinates at the knot (m/s, rad/s).
    Rate,
    /// Controls (N, N m) with their bounds: held from their knot to the next if they belong to the interval after it
    /// ([`Interval::After`]), otherwise linear between knots and constant over the last interval.
    Control,
    /// Constraint forces and moments of joints (N, N m).
    ConstraintForce,
    /// What limits of joints exert along their coordinates, positive where it pushes them up (N, N m): like contacts'
    /// forces those of the interval before the knot, where the limit is reached.
    LimitForce,
    /// What friction of joints exerts along their coordinates (N, N m), of the interval before the knot.
    JointFriction,
    /// How far joints, gears and users' constraints are from being met (m, rad; those on velocities m/s, rad/s, over the
    /// interval before the knot). In files only, no figure draws it.
    Gap,
    /// Gap (m), normal force (N), friction (N) and slip (m/s) of every contact, in this order, contact by contact as in
    /// [`Recording::contacts`]. Forces are those of the interval before the knot ([`Interval::Before`]): the impulse of
    /// a step, over half of the two intervals that meet where the step starts, closes the gap where it ends. So there is
    /// force only where the gap is closed, and none at the first knot. Slip is that which friction acts against where
    /// the step starts; it says something only where there is force.
    Contact,
    /// Kinetic, potential and total energy, and work done from outside (J).
    Energy,
    /// Anything else that was asked for.
    Other,
}

/// The interval that a value at a knot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interval {
    /// That of the step which ends at the knot.
    Before,
    /// That of the step which starts at the knot.
    After,
}

/// How a cost or a constraint compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalKind {
    /// A cost's target.
    Target,
    /// A constraint: equal.
    Equal,
    /// A constraint: not greater.
    Less,
    /// A constraint: not less.
    Greater,
}

/// What a cost or a constraint wants of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Cost or constraint.
    pub kind: GoalKind,
    /// In the channel's unit.
    pub value: f64,
    /// First knot at which it is wanted.
    pub first: usize,
    /// Last knot at which it is wanted.
    pub last: usize,
}

/// A place that costs and constraints want a body to come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Costs' targets, or constraints.
    pub kind: GoalKind,
    /// Index into `bodies`; `None` is the center of mass of all.
    pub body: Option<usize>,
    /// In the world, m; along axes in which nothing is wanted, that of the body at the knot.
    pub point: [f64; 3],
    /// w, x, y, z; where an orientation is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<[f64; 4]>,
    /// The last knot at which it is wanted.
    pub knot: usize,
    /// Of inequalities the direction in the world, unit length, to the side that is allowed; `point` is on the boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<[f64; 3]>,
}

/// One curve: a value per knot. `NaN` is written as `null` (a gap).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// Unique name, e.g. `hinge`, `hinge rate`, `push`.
    pub name: String,
    /// Unit as printed on the axis, e.g. `rad`, `N m`.
    pub unit: String,
    /// Which figure it belongs to.
    pub group: Group,
    /// One value per knot; the last knot of a control has none.
    pub values: Vec<Option<f64>>,
    /// The interval whose step gives the value; none where it is what the knot alone shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Redundant constraints share it in any way: other values are as good.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_unique: bool,
    /// What costs and constraints want of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<Goal>,
    /// Smallest value allowed, where there is one: a control's bound, a coordinate's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Largest value allowed, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

/// Position (m, world) and orientation (w, x, y, z; body to world) of a body.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pose {
    /// Center of mass in the world, m.
    pub position: [f64; 3],
    /// w, x, y, z; body to world.
    pub orientation: [f64; 4],
}

/// A polyline fixed to a body (or to the world), in that body's frame, m.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Index into `bodies`; `None` is the world.
    pub body: Option<usize>,
    /// Corners, m.
    pub points: Vec<[f64; 3]>,
}

/// A joint's anchor, drawn as a dot: on `body` (or the world) at `point`, m.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dot {
    /// Index into `bodies`; `None` is the world.
    pub body: Option<usize>,
    /// In the body's frame, m.
    pub point: [f64; 3],
}

/// A straight line from a point of one body to one of another: what a sliding joint joins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Index of the joint's parent.
    pub parent: usize,
    /// In its frame, m.
    pub parent_point: [f64; 3],
    /// Index of the joint's child.
    pub child: usize,
    /// In its frame, m.
    pub child_point: [f64; 3],
}

/// Two surfaces that may touch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contact {
    /// As in the names of its channels.
    pub name: String,
    /// Index into `bodies`; `None` is the world.
    pub parent: Option<usize>,
    /// Index into `bodies`.
    pub child: usize,
    /// Coefficient of friction.
    pub friction: f64,
    /// Where and how it carries force, knot by knot.
    pub forces: Vec<Force>,
    /// The faces and edges that meet in the interval before each knot, where those are searched for. Not written.
    #[serde(skip)]
    pub meets: Vec<Option<String>>,
}

/// The force of a contact over the interval before a knot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Force {
    /// Index into `time`: where the interval ends and the gap is closed.
    pub knot: usize,
    /// Where the surfaces touch at the knot, in the world, m.
    pub point: [f64; 3],
    /// On the child, in the world, N.
    pub force: [f64; 3],
}

/// The part of a half-space's surface below what may touch it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// Away from what is solid, unit length.
    pub normal: [f64; 3],
    /// Of a convex polygon, in order, in the world, m.
    pub corners: Vec<[f64; 3]>,
}

/// What a body looks like, where that is more than its shape: a mesh of triangles fixed to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visual {
    /// Index into `bodies`; `None` is the world.
    pub body: Option<usize>,
    /// Red, green, blue, 0 to 1, sRGB; one of the animation's own by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<[f64; 3]>,
    /// A solid, about the frame at `position` with `orientation`, instead of triangles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Surface>,
    /// Of the frame that the shape is in, from the body's center of mass, m.
    #[serde(default)]
    pub position: [f64; 3],
    /// Of that frame on the body: w, x, y, z.
    #[serde(default = "upright")]
    pub orientation: [f64; 4],
    /// In the body's frame, from its center of mass, m.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vertices: Vec<[f64; 3]>,
    /// Indices into `vertices`, counterclockwise from outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triangles: Vec<[u32; 3]>,
}

fn upright() -> [f64; 4] {
    [1.0, 0.0, 0.0, 0.0]
}

impl Visual {
    /// Nothing, of a body or of the world.
    pub fn of(body: Option<usize>) -> Self {
        Self {
            body,
            color: None,
            shape: None,
            position: [0.0; 3],
            orientation: upright(),
            vertices: vec![],
            triangles: vec![],
        }
    }
}

/// Everything a figure or a file of a run is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// For figures.
    pub title: String,
    /// Version that wrote it.
    pub version: String,
    /// `simulated`, or the final status of a solve.
    pub status: String,
    /// s, one per knot.
    pub time: Vec<f64>,
    /// All curves.
    pub channels: Vec<Channel>,
    /// Names of the bodies.
    pub bodies: Vec<String>,
    /// `poses[knot][body]`.
    pub poses: Vec<Vec<Pose>>,
    /// Line work of the mechanism.
    pub lines: Vec<Line>,
    /// Anchors of its joints.
    pub dots: Vec<Dot>,
    /// What sliding joints between bodies join.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// What costs and constraints want, where it has a place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// Surfaces of half-spaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ground: Vec<Ground>,
    /// What may touch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contacts: Vec<Contact>,
    /// What animations show of a body in place of the shapes that the mechanism gives it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visuals: Vec<Visual>,
    /// The optimizer's history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub convergence: Vec<Iteration>,
    /// Values of the parameters by name; the mechanism below has them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub parameters: IndexMap<String, f64>,
    /// The mechanism, in the form of the TOML file.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub mechanism: serde_json::Value,
}
