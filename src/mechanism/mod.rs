//! What there is: bodies, joints, gears, springs, dampers, actuators, users' constraints and potentials, gravity; how joint
//! coordinates become poses; and what can be seen of it all, [`Quantity`], as functions of the [`KnotData`].

mod attached;
mod body;
mod builder;
mod check;
mod contact;
mod coordinate;
mod describe_actuator;
mod describe_body;
mod describe_contact;
mod describe_joint;
mod describe_pairs;
mod describe_terrain;
mod earlier;
mod element;
#[cfg(test)]
pub(crate) mod element_samples;
mod energy;
mod error;
mod gear;
mod groups;
mod joint;
mod kinematics;
mod mirror;
mod mobility;
mod operational;
mod parameter;
mod pull;
mod quantity;
mod range;
mod rank;
mod rotation;
#[cfg(test)]
pub(crate) mod samples;
mod spring;
mod statics;
#[cfg(test)]
mod tests;
mod wrench;

pub use attached::{AttachedConstraint, AttachedPotential, Law};
pub use body::{Body, Shape};
pub use builder::{
    ActuatorSpec, BodySpec, ContactSpec, HalfSpaceSpec, Inertia, JointSpec, Limits,
    MechanismBuilder, Orientation, PerDirection, SpringSpec, WrenchFrame,
};
pub use check::{
    DerivativeError, check_constraint, check_potential, check_velocity_constraint, random_poses,
};
pub use contact::{
    COARSE_SPIN, Collider, Contact, HalfSpace, Heights, Hull, Pair as ContactPair, Surface, Touch,
};
pub use coordinate::{Direction, Freedom};
pub use describe_pairs::{FrictionPair, FrictionPairSpec};
pub use describe_terrain::{TerrainShape, TerrainSpec};
pub use element::{
    Element, ElementSpec, Hessian, HolonomicConstraint, Jacobian, Part, Potential,
    VelocityConstraint,
};
pub use error::ModelError;
pub use gear::{Gear, GearSpec};
pub use joint::{Block, Coupling, Joint, JointKind, Mat6, Relative, Row};
pub use kinematics::Motion;
pub use mirror::{MirrorAxis, MirrorSpec};
pub use mobility::Mobility;
pub use parameter::{Field, NamedParameter};
pub use quantity::{
    About, Acting, Adjoint, Contacting, ForceOf, KnotData, Needs, Past, PowerOf, Quantity,
    Reaction, ReactionSource, StepInterval, contacting,
};
pub use range::Range;
pub(crate) use rank::{RANK, decompose, least_squares};
pub use rotation::Rotation;
pub use spring::{Actuator, Drive, Spring};
pub use statics::Unheld;

pub(crate) use attached::{Rows, stacked};
pub(crate) use contact::{
    Ahead, FEW, Meeting, Search, TURN, friction_rows, normal_row, rate_derivatives, touch_change,
    wrench_derivative,
};
pub(crate) use coordinate::unwind;
pub(crate) use earlier::Earlier;
pub(crate) use energy::{DamperMotion, Efforts};
pub(crate) use joint::Vec6;
pub(crate) use pull::Pair;
pub(crate) use spring::{DamperLaw, displaced_over};
pub(crate) use wrench::{add_wrench, compliance, dot, vec3};

use crate::spatial::{Pose, Vec3};
use kinematics::Tree;
pub(crate) use kinematics::TreeEdge;
use std::sync::LazyLock;

static WORLD: LazyLock<Pose> = LazyLock::new(Pose::identity);

/// A validated mechanism. Made by [`MechanismBuilder::build`].
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// Bodies, in the order they were declared.
    pub bodies: Vec<Body>,
    /// Joints; a body declared free has a floating joint of its own name.
    pub joints: Vec<Joint>,
    /// Springs between points.
    pub springs: Vec<Spring>,
    /// Controls.
    pub actuators: Vec<Actuator>,
    /// Half-spaces of the world that bodies may touch.
    pub half_spaces: Vec<HalfSpace>,
    /// Surfaces of bodies that may touch.
    pub colliders: Vec<Collider>,
    /// Where they may touch.
    pub contacts: Vec<Contact>,
    /// Pairs of colliders of bodies that do not meet because they are excluded by name.
    pub(crate) excluded: Vec<[usize; 2]>,
    /// Friction coefficients of named pairs, which contacts refer to.
    pub friction_pairs: Vec<FrictionPair>,
    /// Constraints besides joints: gears first, then users'.
    pub constraints: Vec<AttachedConstraint>,
    /// Users' potentials.
    pub potentials: Vec<AttachedPotential>,
    /// m/s^2
    pub gravity: Vec3,
    /// Numbers above that are parameters.
    pub parameters: Vec<NamedParameter>,
    pub(crate) tree: Tree,
}

/// A joint coordinate's place: joint, direction within the joint.
pub type CoordinateId = (usize, usize);

impl Mechanism {
    /// Every joint coordinate, chords included, in the order of the joints.
    pub fn coordinates(&self) -> impl Iterator<Item = CoordinateId> + '_ {
        self.joints
            .iter()
            .enumerate()
            .flat_map(|(j, joint)| (0..joint.directions.len()).map(move |i| (j, i)))
    }

    /// Name of a joint coordinate: the joint's, with the direction's behind a dot where there are several.
    pub fn coordinate_name(&self, (j, i): CoordinateId) -> String {
        let joint = &self.joints[j];
        if joint.directions.len() == 1 {
            joint.name.clone()
        } else {
            format!("{}.{}", joint.name, joint.directions[i].name)
        }
    }

    /// Index of a body by name.
    pub fn body(&self, name: &str) -> Option<usize> {
        self.bodies.iter().position(|b| b.name == name)
    }

    /// Index of a joint by name.
    pub fn joint(&self, name: &str) -> Option<usize> {
        self.joints.iter().position(|j| j.name == name)
    }

    /// Bodies a control acts on: parent (if it has one) and child.
    pub(crate) fn driven(&self, actuator: &Actuator) -> (Option<usize>, usize) {
        match actuator.drive {
            Drive::Joint { joint, .. } => (self.joints[joint].parent, self.joints[joint].child),
            Drive::Wrench { body, .. } => (None, body),
        }
    }

    /// Name and unit of every control.
    pub fn controls(&self) -> Vec<(String, String)> {
        let actuators = self.actuators.iter().enumerate();
        actuators
            .map(|(i, a)| (a.name.clone(), self.control_unit(i).into()))
            .collect()
    }

    /// Unit of a control. A wrench's is that of its force, or of its torque if it has no force, where these are unit
    /// vectors; the control of another one scales the wrench and has none, `1`.
    pub fn control_unit(&self, i: usize) -> &'static str {
        match self.actuators[i].drive {
            Drive::Joint { joint, direction } => {
                self.joints[joint].directions[direction].force_unit()
            }
            Drive::Wrench { force, torque, .. } => {
                let is_unit = |v: Vec3| (v.norm() - 1.0).abs() < 1e-9;
                match force.norm() {
                    0.0 if is_unit(torque) => "N m",
                    _ if is_unit(force) => "N",
                    _ => "1",
                }
            }
        }
    }

    /// Coordinates of the spanning tree, in its own order.
    pub fn tree_ids(&self) -> Vec<CoordinateId> {
        self.tree
            .edges
            .iter()
            .flat_map(|e| (0..self.joints[e.joint].directions.len()).map(move |i| (e.joint, i)))
            .collect()
    }

    /// Does the mechanism have closed loops? Gears and users' holonomic constraints close loops, too.
    pub fn has_loops(&self) -> bool {
        !self.tree.chords.is_empty() || self.holonomic().next().is_some()
    }

    /// The body whose rotation law takes the largest turn `|h w|` for its chord, and that turn, rad; `velocities` holds six numbers
    /// for each body. A NaN is no turn.
    pub(crate) fn largest_chord_turn(&self, velocities: &[f64], h: f64) -> (usize, f64) {
        let turns = self.bodies.iter().enumerate().map(|(b, body)| {
            let omega = vec3(velocities, 6 * b + 3);
            (b, body.rotation.chord_turn(&omega, h))
        });
        turns.fold(
            (0, 0.0),
            |most, own| if own.1 > most.1 { own } else { most },
        )
    }

    /// Does the joint close a loop of the others, so that its coordinates follow from theirs?
    pub fn closes_loop(&self, joint: usize) -> bool {
        // they ascend
        self.tree.chords.binary_search(&joint).is_ok()
    }

    /// Size of gravity, m/s^2, or where there is none that of the earth: for what wants a scale, not a force.
    pub fn gravity_scale(&self) -> f64 {
        match self.gravity.norm() {
            0.0 => 9.81,
            g => g,
        }
    }

    /// kg
    pub fn mass(&self) -> f64 {
        self.bodies.iter().map(|b| b.mass).sum()
    }

    /// `M v` of stacked body motions, six per body.
    pub(crate) fn mass_times(&self, motion: &[f64], out: &mut [f64]) {
        for (b, (v, out)) in self
            .bodies
            .iter()
            .zip(motion.chunks_exact(6).zip(out.chunks_exact_mut(6)))
        {
            let w = b.inertia * Vec3::new(v[3], v[4], v[5]);
            out.copy_from_slice(&[b.mass * v[0], b.mass * v[1], b.mass * v[2], w.x, w.y, w.z]);
        }
    }
}
