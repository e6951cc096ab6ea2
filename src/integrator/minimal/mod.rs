//! The same discrete mechanics in joint coordinates: trees, at a cost linear in the number of bodies.
//!
//! The discrete Lagrangian is that of [`Maximal`](super::Maximal), translation and rotation apart ([`Lagrangian::Split`]), so that
//! both make the same trajectory; or, where asked for, that of paper 003 ([`Lagrangian::Screw`]). Where `d_i` are the residuals of the
//! bodies' momenta, without what holds the joints together, and `S(z)` the displacements that the joints allow at a knot, the step solves
//!
//! ```text
//! S(z_k)' d(z_k, z_k+1) = 0
//! ```
//!
//! for the joints' rates over the interval. Its Jacobian is the sum over bodies of `S_i(z_k)' D_i S_i(z_k+1)`, `D_i` the 6 x 6
//! derivative of a body's residual by its displacement, and Newton's method inverts it exactly by the articulated-body
//! recursion, with transforms of the knot on the left and those of the trial on the right.
//!
//! A state holds, joint by joint from the world outwards, its slides (m), its angle (rad, unwound) where it has one, the
//! relative rotation (4, scalar first) where it has two or three; behind them a rate for every free direction: of the interval
//! before the knot, components in the parent's frame, of the instant where there is no interval. Over an interval `h` a joint
//! slides by `h v` and turns by `(sqrt(1 - h^2 w'w/4), h w/2)`.
//!
//! Gears tie coordinates (`gears`); their impulses are unknowns behind the rates and what contacts hold, and the joint chart has
//! coordinates and rates of one of all that are tied together. Springs that damp between points of two bodies (`dampers`) add to the
//! Jacobian a matrix of rank one each, which borders it as gears do (`border`): a step with `m` of both costs O(n m + m^3) more.
//!
//! What touches the world adds to its body within the recursion, limits and friction of a joint to its pivot ([`crate::contact`]).
//!
//! Sources: paper 003 (recursions on a tree), papers 000 and 002 (the discrete Lagrangian), paper 003 (that on SE(3)).

mod border;
mod chart;
mod contact;
mod contact_derivative;
mod dampers;
#[cfg(test)]
mod dampers_tests;
mod derivative;
mod equations;
mod forces;
mod gears;
mod gears_derivative;
#[cfg(test)]
mod gears_tests;
mod jacobian;
mod keep;
#[cfg(test)]
mod keep_tests;
mod kinematics;
mod lanes;
#[cfg(test)]
mod light_tests;
mod local;
mod mechanical;
mod momentum;
#[cfg(test)]
mod observe_tests;
mod parameters;
mod pivots;
mod pull;
mod reading;
mod recursion;
mod roots;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod screw_tests;
mod state;
mod step;
mod stepping;
mod swing;
#[cfg(test)]
mod tests;
mod work;

pub use momentum::Lagrangian;
pub use roots::{Guess, Residual, Root, Roots};
pub use work::Work;

use super::Options;
use super::parameter::nominal;
use crate::contact::Layout;
use crate::dynamics::Dims;
use crate::mechanism::{
    DamperLaw, Freedom, Joint, Law, Mechanism, ModelError, Quantity, ReactionSource,
};
use crate::spatial::{Pose, RotationLaw, Vec3};
use std::ops::Range;

/// A body, with the joint that holds it to what is nearer to the world.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The body.
    body: usize,
    joint: usize,
    /// Is the body the joint's parent?
    reversed: bool,
    /// Of the body nearer to the world.
    near: Option<usize>,
    /// First of the joint's free directions among all.
    first: usize,
    /// Of them slides; turns follow.
    slides: usize,
    turns: usize,
    /// First of its numbers in the state.
    place: usize,
    /// How its dampers act.
    damper: DamperLaw,
}

impl Node {
    fn count(&self) -> usize {
        self.slides + self.turns
    }

    /// Does the joint allow turns alone, and all of them?
    fn is_ball(&self) -> bool {
        self.turns == 3 && self.slides == 0
    }

    /// Does it allow all turns, along axes that what is nearer to the world holds?
    fn turns_freely(&self) -> bool {
        self.turns == 3 && !self.reversed
    }

    fn directions(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count()
    }

    /// Numbers of the state that hold its turn.
    fn turn(&self) -> std::ops::Range<usize> {
        let first = self.place + self.slides;
        first..first + stored(self.turns)
    }
}

/// Numbers that hold so many turns.
fn stored(turns: usize) -> usize {
    match turns {
        0 | 1 => turns,
        _ => 4,
    }
}

/// The integrator in joint coordinates of one mechanism, a tree.
#[derive(Debug)]
pub struct Minimal {
    mechanism: Mechanism,
    options: Options,
    /// From the world outwards.
    nodes: Vec<Node>,
    /// Of every body, and of every joint.
    node_of: Vec<usize>,
    node_of_joint: Vec<usize>,
    /// Where the reactions of every joint stand among all.
    reactions_of: Vec<Range<usize>>,
    /// Free directions.
    freedoms: usize,
    /// Numbers of positions in a state.
    positions: usize,
    /// Contacts, limits and friction; of every node, does its joint have any?
    contacts: Layout,
    touches: Vec<bool>,
    /// Where what these add to the pivot of every joint stands, the last of all behind.
    pivot_of: Vec<usize>,
    /// What rows of the residual are divided by to be velocities, m/s: kg, of turns kg m.
    units: Vec<f64>,
    gears: gears::Gears,
    /// Springs that damp between points.
    dampers: Vec<dampers::Damper>,
    roots: Roots,
    lagrangian: Lagrangian,
    /// Every joint's place among the unwound angles.
    windings: Vec<Option<usize>>,
    /// What can be observed.
    outputs: Vec<Quantity>,
}

impl Minimal {
    /// The integrator of a tree.
    ///
    /// # Errors
    /// When the mechanism is no tree, or has what this integrator does not offer; [`Maximal`](super::Maximal) does.
    pub fn new(mechanism: Mechanism, q: &[f64], options: Options) -> Result<Self, ModelError> {
        options.contact.validate()?;
        check(&mechanism)?;
        let mut node_of = vec![None; mechanism.bodies.len()];
        let (mut nodes, mut place) = (vec![], 0);
        for (index, e) in mechanism.tree.edges.iter().enumerate() {
            let j = &mechanism.joints[e.joint];
            let (body, near) = match j.parent {
                Some(parent) if e.reversed => (parent, Some(j.child)),
                parent => (j.child, parent),
            };
            node_of[body] = Some(index);
            let slides = (j.directions.iter())
                .filter(|d| d.freedom == Freedom::Slide)
                .count();
            let node = Node {
                body,
                joint: e.joint,
                reversed: e.reversed,
                near: near.and_then(|b| node_of[b]),
                first: e.first,
                slides,
                turns: j.directions.len() - slides,
                place,
                damper: DamperLaw::new(j.implicit),
            };
            place = node.turn().end;
            nodes.push(node);
        }
        // a built mechanism reaches every body from the world
        let node_of: Vec<usize> = node_of.into_iter().flatten().collect();
        let mut node_of_joint = vec![0; nodes.len()];
        for (i, node) in nodes.iter().enumerate() {
            node_of_joint[node.joint] = i;
        }
        // as if each body were alone
        let (inverse_inertia, poses) = (mechanism.inverse_inertia(), mechanism.forward(q));
        let contacts = Layout::new(
            &mechanism,
            (None, mechanism.tree.coordinates),
            &options.contact,
            (&inverse_inertia, &poses),
        );
        let has = |joint: usize| contacts.acts_on(joint);
        let touches = nodes.iter().map(|n| has(n.joint)).collect();
        let mut pivot_of = vec![0];
        for node in &nodes {
            pivot_of.push(pivot_of[pivot_of.len() - 1] + node.count().pow(2));
        }
        let gears = gears::Gears::new(&mechanism, &nodes, &[]);
        let units = units(&mechanism, &nodes, contacts.sizes(), &poses);
        Ok(Self {
            contacts,
            touches,
            pivot_of,
            units,
            gears,
            dampers: dampers::dampers(&mechanism, &node_of),
            roots: Roots::default(),
            lagrangian: Lagrangian::default(),
            windings: (0..mechanism.joints.len()).map(Some).collect(),
            options,
            nodes,
            node_of,
            node_of_joint,
            reactions_of: (0..mechanism.joints.len())
                .map(|j| mechanism.reactions(ReactionSource::Joint(j)))
                .collect(),
            freedoms: mechanism.tree.coordinates,
            positions: place,
            outputs: vec![],
            mechanism,
        })
    }

    /// Is this the integrator to take, by default? It is for all that it offers.
    ///
    /// # Errors
    /// What it does not offer.
    pub fn suits(m: &Mechanism) -> Result<(), ModelError> {
        check(m)
    }

    /// The integrator of another discrete Lagrangian; joints, states, forces and read-outs are the same.
    #[must_use]
    pub fn with_lagrangian(self, lagrangian: Lagrangian) -> Self {
        Self { lagrangian, ..self }
    }

    /// What moves, as it was built.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    fn nominal(&self) -> Vec<f64> {
        nominal(&self.mechanism)
    }

    fn dims(&self) -> Dims {
        Dims {
            nx: self.positions + self.freedoms,
            nf: 2 * self.freedoms,
            ndx: 2 * (self.freedoms - self.gears.count()),
            nu: self.mechanism.actuators.len(),
            np: self.mechanism.parameters.len(),
            ny: self.freedoms + self.contacts.unknowns() + self.gears.count(),
        }
    }
}

/// Mass of all that a joint holds, kg, for slides; for turns that times its radius of gyration about the joint, kg m.
fn units(m: &Mechanism, nodes: &[Node], sizes: &[f64], poses: &[Pose]) -> Vec<f64> {
    // of bodies: mass, moment about the origin, inertia about it
    let mut held: Vec<(f64, Vec3, f64)> = vec![(0.0, Vec3::zeros(), 0.0); nodes.len()];
    let mut out = vec![0.0; m.tree.coordinates];
    for (i, node) in nodes.iter().enumerate().rev() {
        let (mass, x) = (m.bodies[node.body].mass, poses[node.body].x);
        let size = sizes[node.body];
        let own = &mut held[i];
        own.0 += mass;
        own.1 += mass * x;
        own.2 += mass * (x.norm_squared() + size * size);
        let (mass, moment, inertia) = *own;
        let j = &m.joints[node.joint];
        let (body, anchor) = if node.reversed {
            (j.parent, j.parent_anchor)
        } else {
            (Some(j.child), j.child_anchor)
        };
        let at = body.map_or(anchor, |b| poses[b].x + poses[b].r * anchor);
        let about = inertia - 2.0 * at.dot(&moment) + mass * at.norm_squared();
        for (k, index) in node.directions().enumerate() {
            out[index] = if k < node.slides {
                mass
            } else {
                (mass * about).sqrt()
            };
        }
        if let Some(near) = node.near {
            let to = &mut held[near];
            to.0 += mass;
            to.1 += moment;
            to.2 += inertia;
        }
    }
    out
}

/// Refuses what joint coordinates do not describe.
fn check(m: &Mechanism) -> Result<(), ModelError> {
    let refused = |path: [&str; 2], what: &str| {
        let (what, help) = (
            format!("{what}, which joint coordinates do not offer"),
            "take the integrator in maximal coordinates, `maximal`",
        );
        Err(ModelError::new(path, what, help))
    };
    let in_tree = |joint: usize| m.tree.edges.iter().any(|e| e.joint == joint);
    if let Some(chord) = (0..m.joints.len()).find(|j| !in_tree(*j)) {
        let name = &m.joints[chord].name;
        return refused(["joints", name], &format!("joint `{name}` closes a loop"));
    }
    let mut bodies = m.bodies.iter();
    if let Some(body) = bodies.find(|b| matches!(b.rotation, RotationLaw::Free(_))) {
        let what = format!("body `{}` has rotation = \"free\"", body.name);
        return refused(["bodies", &body.name], &what);
    }
    let mut limited = m.joints.iter();
    let bounces = |j: &&Joint| {
        let mut each = j.directions.iter();
        each.any(|d| d.is_limited() && d.restitution != 0.0)
    };
    if let Some(j) = limited.find(bounces) {
        let what = format!("joint `{}` bounces off its limits", j.name);
        return refused(["joints", &j.name], &what);
    }
    if let Some(c) = m.contacts.iter().find(|c| c.parent.is_some()) {
        let what = format!("contact `{}` is one between bodies, as a loop is", c.name);
        return refused(["contacts", &c.name], &what);
    }
    if let Some(c) = m.contacts.iter().find(|c| m.restitution(c) != 0.0) {
        let what = format!("contact `{}` bounces", c.name);
        return refused(["contacts", &c.name], &what);
    }
    let mut constraints = m.constraints.iter();
    if let Some(c) = constraints.find(|c| !matches!(c.law, Law::Gear(_))) {
        let what = format!("`{}` is a constraint", c.name);
        return refused([c.kind().0, &c.name], &what);
    }
    gears::check(m)
}
