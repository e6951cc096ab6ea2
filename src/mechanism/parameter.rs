//! Numbers of a mechanism that can be changed, differentiated by and optimized, by the path they have in a file.
//!
//! | path | unit |
//! |---|---|
//! | `bodies.NAME.mass` | kg; the inertia stays |
//! | `bodies.NAME.inertia.xx` (`yy`, `zz`, `xy`, `xz`, `yz`) | kg m^2 |
//! | `joints.NAME.stiffness`, `rest`, `damping` (`.DIRECTION` where there are several) | as in the file |
//! | `joints.NAME.friction` (likewise) | N, of rotations N m; above zero |
//! | `joints.NAME.restitution` (likewise) | 1; above zero, at most 1 |
//! | `joints.NAME.limits.lower`, `limits.upper` (likewise) | m, rad; finite, the lower below the upper |
//! | `joints.NAME.parent_anchor.x`, `child_anchor.x` (`y`, `z`) | m; joint coordinates stay, loops close again |
//! | `springs.NAME.stiffness`, `rest`, `damping`, `parent_anchor.x`, `child_anchor.x` | as in the file |
//! | `gears.NAME.ratio`, `offset` | as in the file, the ratio not zero; independent coordinates stay, the others follow |
//! | `actuators.NAME.gain` | 1 |
//! | `actuators.NAME.effort_limits.lower`, `effort_limits.upper` | as in the file; finite, the lower below the upper |
//! | `contacts.BODY.NAME.friction` | 1 |
//! | `contacts.BODY.NAME.restitution` | 1; above zero, at most 1 |
//! | `contacts.BODY.NAME.radius`, `length`, `edges.x`, `position.x` (`y`, `z`) | m; what the contact's shape has; the body's inertia stays |
//! | `half_spaces.NAME.friction` | 1; only where it has one |
//! | `half_spaces.NAME.offset` | m |
//! | `friction_pairs.NAME.friction` | 1 |
//! | `gravity.x` (`y`, `z`) | m/s^2 |
//!
//! What a direction or a contact does not have (joint friction 0, an open limit, restitution 0) is no part of the step,
//! and the step is no continuous function of it there: give such a parameter a start that has a meaning. Friction of
//! contacts may start at, and fall to, 0: the derivative there is Coulomb's one-sided one. A contact whose two sides
//! both have friction has their harmonic mean, which is 0, derivative and all, as long as the other side's is 0.
//!
//! Scalings of the step stay those of the mechanism as built when masses, geometry or gravity change: the effective masses
//! of contacts, limits and joint friction, bodies' sizes in the measure of residuals, and g in `kappa = kappa0 g h` and
//! in the approach speed `2 g h` above which a contact bounces. The first two change no solution, only the unknowns' units;
//! gaps at rest are `kappa / g` with the nominal g in `kappa`.

use super::builder::{Inertia, MechanismBuilder, PerDirection};
use super::error::{ModelError, nearest};
use super::range::Range;
use super::rotation::Rotation;
use super::{Body, CoordinateId, Drive, Freedom, Mechanism};
use crate::spatial::{RotationLaw, Vec3};
use std::collections::HashSet;

/// A number of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Of a body.
    Mass(usize),
    /// Of a body: row and column, row <= column.
    Inertia(usize, usize, usize),
    /// Component.
    Gravity(usize),
    /// Of a joint's direction.
    Stiffness(CoordinateId),
    /// Of a joint's direction.
    Rest(CoordinateId),
    /// Of a joint's direction.
    Damping(CoordinateId),
    /// Coulomb friction of a joint's direction.
    JointFriction(CoordinateId),
    /// Of the limits of a joint's direction.
    LimitRestitution(CoordinateId),
    /// Of a joint's direction.
    LowerLimit(CoordinateId),
    /// Of a joint's direction.
    UpperLimit(CoordinateId),
    /// Joint and component.
    ParentAnchor(usize, usize),
    /// Joint and component.
    ChildAnchor(usize, usize),
    /// Of a spring.
    SpringStiffness(usize),
    /// Of a spring.
    SpringRest(usize),
    /// Of a spring.
    SpringDamping(usize),
    /// Spring and component.
    SpringParentAnchor(usize, usize),
    /// Spring and component.
    SpringChildAnchor(usize, usize),
    /// Of a gear, by its index.
    GearRatio(usize),
    /// Of a gear, by its index.
    GearOffset(usize),
    /// Of an actuator.
    Gain(usize),
    /// Of an actuator.
    LowerEffort(usize),
    /// Of an actuator.
    UpperEffort(usize),
    /// Of a collider, by its index.
    ContactFriction(usize),
    /// Of a collider.
    ContactRestitution(usize),
    /// Of a collider.
    ContactRadius(usize),
    /// Of a collider.
    ContactLength(usize),
    /// Collider and axis.
    ContactEdge(usize, usize),
    /// Collider and component.
    ContactPosition(usize, usize),
    /// Of a half-space that has one.
    HalfSpaceFriction(usize),
    /// Of a half-space.
    HalfSpaceOffset(usize),
    /// Of a friction pair.
    PairFriction(usize),
}

/// The place of a field: here where description and mechanism keep it alike, in `rest` where they do not. `by` is how it
/// is borrowed.
macro_rules! place {
    ($m:expr, $field:expr, ($($by:tt)+), { $($rest:tt)+ }) => {
        match $field {
            Field::Gravity(k) => $($by)+ $m.gravity[k],
            Field::ParentAnchor(j, k) => $($by)+ $m.joints[j].parent_anchor[k],
            Field::ChildAnchor(j, k) => $($by)+ $m.joints[j].child_anchor[k],
            Field::SpringStiffness(s) => $($by)+ $m.springs[s].stiffness,
            Field::SpringRest(s) => $($by)+ $m.springs[s].rest,
            Field::SpringDamping(s) => $($by)+ $m.springs[s].damping,
            Field::SpringParentAnchor(s, k) => $($by)+ $m.springs[s].parent_anchor[k],
            Field::SpringChildAnchor(s, k) => $($by)+ $m.springs[s].child_anchor[k],
            Field::Gain(a) => $($by)+ $m.actuators[a].gain,
            Field::PairFriction(i) => $($by)+ $m.friction_pairs[i].friction,
            $($rest)+
        }
    };
}

/// The place of any field of a mechanism; `optional` for those that not all have.
macro_rules! place_in_mechanism {
    ($m:expr, $field:expr, ($($by:tt)+), $gear:ident, $optional:expr) => {
        place!($m, $field, ($($by)+), {
            Field::Mass(b) => $($by)+ $m.bodies[b].mass,
            Field::Inertia(b, i, k) => $($by)+ $m.bodies[b].inertia[(i, k)],
            Field::Stiffness((j, i)) => $($by)+ $m.joints[j].directions[i].stiffness,
            Field::Rest((j, i)) => $($by)+ $m.joints[j].directions[i].rest,
            Field::Damping((j, i)) => $($by)+ $m.joints[j].directions[i].damping,
            Field::JointFriction((j, i)) => $($by)+ $m.joints[j].directions[i].friction,
            Field::LimitRestitution((j, i)) => $($by)+ $m.joints[j].directions[i].restitution,
            Field::LowerLimit((j, i)) => $($by)+ $m.joints[j].directions[i].lower,
            Field::UpperLimit((j, i)) => $($by)+ $m.joints[j].directions[i].upper,
            Field::LowerEffort(a) => $($by)+ $m.actuators[a].effort_limits.lower,
            Field::UpperEffort(a) => $($by)+ $m.actuators[a].effort_limits.upper,
            Field::GearRatio(g) => $($by)+ $m.$gear(g).ratio,
            Field::GearOffset(g) => $($by)+ $m.$gear(g).offset,
            Field::ContactFriction(c) => $($by)+ $m.colliders[c].friction,
            Field::ContactRestitution(c) => $($by)+ $m.colliders[c].restitution,
            Field::ContactPosition(c, k) => $($by)+ $m.colliders[c].position[k],
            Field::HalfSpaceOffset(h) => $($by)+ $m.half_spaces[h].offset,
            Field::ContactRadius(_)
            | Field::ContactLength(_)
            | Field::ContactEdge(..)
            | Field::HalfSpaceFriction(_) => $optional,
        })
    };
}

/// A named parameter: one number, or several that are always equal.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedParameter {
    /// Name.
    pub name: String,
    /// What it sets.
    pub fields: Vec<Field>,
}

const COMPONENTS: [&str; 3] = ["x", "y", "z"];
const MOMENTS: [(&str, usize, usize); 6] = [
    ("xx", 0, 0),
    ("yy", 1, 1),
    ("zz", 2, 2),
    ("xy", 0, 1),
    ("xz", 0, 2),
    ("yz", 1, 2),
];

impl Mechanism {
    /// Every number that can be a parameter at the value it has, with its path.
    pub fn fields(&self) -> Vec<(String, Field)> {
        let mut out = self.all_fields();
        out.retain(|(_, f)| {
            f.refuses(self.get(*f)).is_none()
                && self.is_from_center(*f)
                && self.fixed_inertia(*f).is_none()
        });
        out
    }

    /// Is a place on a body described from its center of mass? One in a frame of the body's own has other numbers here than in
    /// the description.
    fn is_from_center(&self, field: Field) -> bool {
        let body = match field {
            Field::ParentAnchor(j, _) => self.joints[j].parent,
            Field::ChildAnchor(j, _) => Some(self.joints[j].child),
            Field::SpringParentAnchor(s, _) => self.springs[s].parent,
            Field::SpringChildAnchor(s, _) => Some(self.springs[s].child),
            Field::ContactPosition(c, _) => self.colliders[c].body,
            _ => None,
        };
        body.is_none_or(|b| self.bodies[b].origin == Vec3::zeros())
    }

    /// The body whose inertia a field is part of, if its rotation law is made of that inertia.
    fn fixed_inertia(&self, field: Field) -> Option<&Body> {
        let Field::Inertia(b, ..) = field else {
            return None;
        };
        let body = &self.bodies[b];
        matches!(body.rotation, RotationLaw::Free(_)).then_some(body)
    }

    /// With those that can be parameters once they have another value.
    fn all_fields(&self) -> Vec<(String, Field)> {
        let mut out = vec![];
        for (b, body) in self.bodies.iter().enumerate() {
            let name = &body.name;
            out.push((format!("bodies.{name}.mass"), Field::Mass(b)));
            for (moment, i, k) in MOMENTS {
                let path = format!("bodies.{name}.inertia.{moment}");
                out.push((path, Field::Inertia(b, i, k)));
            }
        }
        // a free body's own joint has nothing to change
        let free = self.bodies.iter().filter(|b| b.free);
        let free: HashSet<&str> = free.map(|b| b.name.as_str()).collect();
        let described = |name: &str| !free.contains(name);
        let joints = self.joints.iter().enumerate();
        for (j, joint) in joints.filter(|(_, j)| described(&j.name)) {
            let name = &joint.name;
            for (i, d) in joint.directions.iter().enumerate() {
                let ending = match joint.directions.len() {
                    1 => String::new(),
                    _ => format!(".{}", d.name),
                };
                let id = (j, i);
                let limits = [
                    ("limits.lower", Field::LowerLimit(id)),
                    ("limits.upper", Field::UpperLimit(id)),
                    ("restitution", Field::LimitRestitution(id)),
                ];
                let numbers = [
                    ("stiffness", Field::Stiffness(id)),
                    ("rest", Field::Rest(id)),
                    ("damping", Field::Damping(id)),
                    ("friction", Field::JointFriction(id)),
                ];
                let limits = limits.into_iter().filter(|_| d.freedom != Freedom::Turn);
                for (field, of) in numbers.into_iter().chain(limits) {
                    out.push((format!("joints.{name}.{field}{ending}"), of));
                }
            }
            for (k, c) in COMPONENTS.iter().enumerate() {
                let parent = format!("joints.{name}.parent_anchor.{c}");
                out.push((parent, Field::ParentAnchor(j, k)));
                let child = format!("joints.{name}.child_anchor.{c}");
                out.push((child, Field::ChildAnchor(j, k)));
            }
        }
        for (i, s) in self.springs.iter().enumerate() {
            let name = &s.name;
            for (field, of) in [
                ("stiffness", Field::SpringStiffness(i)),
                ("rest", Field::SpringRest(i)),
                ("damping", Field::SpringDamping(i)),
            ] {
                out.push((format!("springs.{name}.{field}"), of));
            }
            for (k, c) in COMPONENTS.iter().enumerate() {
                let parent = format!("springs.{name}.parent_anchor.{c}");
                out.push((parent, Field::SpringParentAnchor(i, k)));
                let child = format!("springs.{name}.child_anchor.{c}");
                out.push((child, Field::SpringChildAnchor(i, k)));
            }
        }
        for (i, name) in self.gear_names() {
            out.push((format!("gears.{name}.ratio"), Field::GearRatio(i)));
            out.push((format!("gears.{name}.offset"), Field::GearOffset(i)));
        }
        for (i, a) in self.actuators.iter().enumerate() {
            for (field, of) in [
                ("gain", Field::Gain(i)),
                ("effort_limits.lower", Field::LowerEffort(i)),
                ("effort_limits.upper", Field::UpperEffort(i)),
            ] {
                out.push((format!("actuators.{}.{field}", a.name), of));
            }
        }
        let of_bodies = self.colliders.iter().enumerate();
        for (i, c) in of_bodies.filter(|(_, c)| c.body.is_some()) {
            // BODY.NAME
            let name = format!("contacts.{}", c.name);
            out.push((format!("{name}.friction"), Field::ContactFriction(i)));
            let restitution = Field::ContactRestitution(i);
            out.push((format!("{name}.restitution"), restitution));
            let mut surface = c.surface.clone();
            let mut of_shape = |field: &str, of: Field| {
                if surface.number(of).is_some() {
                    out.push((format!("{name}.{field}"), of));
                }
            };
            of_shape("radius", Field::ContactRadius(i));
            of_shape("length", Field::ContactLength(i));
            for (k, c) in COMPONENTS.iter().enumerate() {
                of_shape(&format!("edges.{c}"), Field::ContactEdge(i, k));
            }
            for (k, c) in COMPONENTS.iter().enumerate() {
                let path = format!("{name}.position.{c}");
                out.push((path, Field::ContactPosition(i, k)));
            }
        }
        for (i, h) in self.half_spaces.iter().enumerate() {
            let name = format!("half_spaces.{}", h.name);
            if h.friction.is_some() {
                out.push((format!("{name}.friction"), Field::HalfSpaceFriction(i)));
            }
            out.push((format!("{name}.offset"), Field::HalfSpaceOffset(i)));
        }
        for (i, pair) in self.friction_pairs.iter().enumerate() {
            let path = format!("friction_pairs.{}.friction", pair.name);
            out.push((path, Field::PairFriction(i)));
        }
        for (k, c) in COMPONENTS.iter().enumerate() {
            out.push((format!("gravity.{c}"), Field::Gravity(k)));
        }
        out
    }

    /// The number at a path.
    ///
    /// # Errors
    /// When there is none, with the nearest path that exists.
    pub fn field(&self, parameter: &str, path: &str) -> Result<Field, ModelError> {
        let mut fields = self.all_fields();
        if let Some((_, f)) = fields.iter().find(|(p, _)| p == path) {
            if !self.is_from_center(*f) {
                return Err(ModelError::new(
                    ["parameters", parameter, "of"],
                    format!("`{path}` lies in a frame that a body has of its own"),
                    "to make it a parameter leave out center_of_mass of the body and give its places from there",
                ));
            }
            if let Some(body) = self.fixed_inertia(*f) {
                return Err(ModelError::new(
                    ["parameters", parameter, "of"],
                    format!("body `{}` of `{path}` has rotation = \"free\"", body.name),
                    "that law has no derivative by the inertia; give the body another rotation, or choose another parameter",
                ));
            }
            return Ok(*f);
        }
        fields.retain(|(_, f)| f.refuses(self.get(*f)).is_none());
        Err(ModelError::new(
            ["parameters", parameter, "of"],
            format!("`{path}` is no number of the mechanism"),
            nearest(path, fields.iter().map(|(p, _)| p.as_str())),
        ))
    }

    /// Value of a field.
    pub fn get(&self, field: Field) -> f64 {
        let optional = || match field {
            Field::HalfSpaceFriction(h) => self.half_spaces[h].friction,
            Field::ContactRadius(c) | Field::ContactLength(c) | Field::ContactEdge(c, _) => {
                let mut surface = self.colliders[c].surface.clone();
                surface.number(field).copied()
            }
            _ => None,
        };
        *place_in_mechanism!(self, field, (&), gear, return optional().unwrap_or(0.0))
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, field: Field, value: f64) {
        if let Field::Inertia(b, i, k) = field {
            self.bodies[b].inertia[(k, i)] = value;
        }
        let place = place_in_mechanism!(
            self,
            field,
            (&mut),
            gear_mut,
            match field {
                Field::HalfSpaceFriction(h) => self.half_spaces[h].friction.insert(value),
                Field::ContactRadius(c) | Field::ContactLength(c) | Field::ContactEdge(c, _) => {
                    match self.colliders[c].surface.number(field) {
                        Some(place) => place,
                        None => return,
                    }
                }
                _ => return,
            }
        );
        *place = value;
    }

    /// Unit of a field.
    pub fn field_unit(&self, field: Field) -> &'static str {
        let turns = |(j, i): CoordinateId| self.joints[j].directions[i].freedom.turns();
        match field {
            Field::Mass(_) => "kg",
            Field::Inertia(..) => "kg m^2",
            Field::Gravity(_) => "m/s^2",
            Field::Stiffness(id) => ["N/m", "N m/rad"][usize::from(turns(id))],
            Field::Rest(id) => ["m", "rad"][usize::from(turns(id))],
            Field::Damping(id) => ["N s/m", "N m s/rad"][usize::from(turns(id))],
            Field::JointFriction(id) => ["N", "N m"][usize::from(turns(id))],
            Field::LowerLimit(id) | Field::UpperLimit(id) => ["m", "rad"][usize::from(turns(id))],
            Field::LowerEffort(a) | Field::UpperEffort(a) => match self.actuators[a].drive {
                Drive::Joint { joint, direction } => {
                    self.joints[joint].directions[direction].force_unit()
                }
                Drive::Wrench { .. } => "1",
            },
            Field::SpringStiffness(_) => "N/m",
            Field::SpringDamping(_) => "N s/m",
            Field::ParentAnchor(..)
            | Field::ChildAnchor(..)
            | Field::SpringRest(_)
            | Field::SpringParentAnchor(..)
            | Field::SpringChildAnchor(..)
            | Field::ContactRadius(_)
            | Field::ContactLength(_)
            | Field::ContactEdge(..)
            | Field::ContactPosition(..)
            | Field::HalfSpaceOffset(_) => "m",
            Field::GearRatio(g) => {
                let gear = self.gear(g);
                match (turns(gear.follower), turns(gear.leader)) {
                    (true, false) => "rad/m",
                    (false, true) => "m/rad",
                    _ => "1",
                }
            }
            Field::GearOffset(g) => ["m", "rad"][usize::from(turns(self.gear(g).follower))],
            Field::Gain(_)
            | Field::LimitRestitution(_)
            | Field::ContactFriction(_)
            | Field::ContactRestitution(_)
            | Field::HalfSpaceFriction(_)
            | Field::PairFriction(_) => "1",
        }
    }

    /// Smallest and largest value of the range a field bounds, where these are not in their order.
    pub(crate) fn disordered(&self, field: Field) -> Option<[f64; 2]> {
        let [lower, upper] = match field {
            Field::LowerLimit((j, i)) | Field::UpperLimit((j, i)) => {
                let d = &self.joints[j].directions[i];
                [d.lower, d.upper]
            }
            Field::LowerEffort(a) | Field::UpperEffort(a) => self.actuators[a].effort_limits.into(),
            _ => return None,
        };
        (lower >= upper).then_some([lower, upper])
    }

    /// Every field that a parameter sets, with the parameter.
    pub(crate) fn parameter_fields(&self) -> impl Iterator<Item = (&NamedParameter, Field)> {
        let each = |p| std::iter::repeat(p);
        self.parameters
            .iter()
            .flat_map(move |p| each(p).zip(p.fields.iter().copied()))
    }

    /// Is `tuned` by some parameter?
    pub(crate) fn is_parameter(&self, field: Field) -> bool {
        self.parameters.iter().any(|p| p.fields.contains(&field))
    }
}

impl Field {
    /// What is expected, if the number cannot have the value.
    pub(crate) fn refuses(self, value: f64) -> Option<&'static str> {
        match self.positive() {
            _ if !value.is_finite() => Some("expected a finite number"),
            Some(true) if value <= 0.0 => Some("expected a positive number"),
            _ if value > self.largest() => Some("expected a number of at most 1"),
            Some(false) if value < 0.0 => Some("expected a number that is not negative"),
            None if value == 0.0 && matches!(self, Self::GearRatio(_)) => {
                Some("expected a number other than zero")
            }
            _ => None,
        }
    }

    /// The largest value with a meaning.
    pub(crate) fn largest(self) -> f64 {
        match self {
            Self::LimitRestitution(_) | Self::ContactRestitution(_) => 1.0,
            _ => f64::INFINITY,
        }
    }

    /// Must the number stay above zero (`Some(true)`), not fall below it (`Some(false)`)?
    pub(crate) fn positive(self) -> Option<bool> {
        match self {
            // with none there is no element, or the law of impacts is another one: the step jumps
            Self::JointFriction(_) | Self::LimitRestitution(_) | Self::ContactRestitution(_) => {
                Some(true)
            }
            Self::Mass(_)
            | Self::ContactRadius(_)
            | Self::ContactLength(_)
            | Self::ContactEdge(..) => Some(true),
            Self::Inertia(_, i, k) if i == k => Some(true),
            Self::Stiffness(_)
            | Self::Damping(_)
            | Self::SpringStiffness(_)
            | Self::SpringDamping(_)
            | Self::SpringRest(_)
            | Self::ContactFriction(_)
            | Self::HalfSpaceFriction(_)
            | Self::PairFriction(_) => Some(false),
            _ => None,
        }
    }
}

impl MechanismBuilder {
    /// Sets the number behind a field of the mechanism that was built from this description.
    pub fn set(&mut self, m: &Mechanism, field: Field, value: f64) {
        fn entry<'a>(
            v: &'a mut Option<PerDirection>,
            m: &Mechanism,
            (j, i): CoordinateId,
        ) -> &'a mut f64 {
            let n = m.joints[j].directions.len();
            let each = match v.take() {
                None => vec![0.0; n],
                Some(PerDirection::All(a)) => vec![a; n],
                Some(PerDirection::Each(e)) => e,
            };
            match v.insert(PerDirection::Each(each)) {
                PerDirection::Each(each) => &mut each[i],
                PerDirection::All(a) => a,
            }
        }
        let rows = |b: usize| {
            let j = m.bodies[b].inertia;
            [0, 1, 2].map(|i| [j[(i, 0)], j[(i, 1)], j[(i, 2)]])
        };
        *place!(self, field, (&mut), {
            Field::Mass(b) => {
                let spec = &mut self.bodies[b];
                // the inertia stays what it was
                spec.inertia.get_or_insert(Inertia::Full(rows(b)));
                spec.density = None;
                spec.mass.insert(value)
            }
            Field::Inertia(b, i, k) => {
                let spec = &mut self.bodies[b];
                let mut rows = match spec.inertia {
                    Some(Inertia::Full(rows)) => rows,
                    _ => rows(b),
                };
                (rows[i][k], rows[k][i]) = (value, value);
                spec.inertia = Some(Inertia::Full(rows));
                spec.mass.get_or_insert(m.bodies[b].mass);
                spec.density = None;
                // the law that it has, without the equal moments that some ask for
                spec.rotation = match m.bodies[b].rotation {
                    RotationLaw::Chord => Some(Rotation::Chord),
                    RotationLaw::Spin(n) => Some(Rotation::SpinAbout(n.into())),
                    RotationLaw::Free(_) => Some(Rotation::Free),
                    RotationLaw::Ball => None,
                };
                return;
            }
            Field::Stiffness(id) => entry(&mut self.joints[id.0].stiffness, m, id),
            Field::Rest(id) => entry(&mut self.joints[id.0].rest, m, id),
            Field::Damping(id) => entry(&mut self.joints[id.0].damping, m, id),
            Field::JointFriction(id) => entry(&mut self.joints[id.0].friction, m, id),
            Field::LimitRestitution(id) => entry(&mut self.joints[id.0].restitution, m, id),
            Field::LowerLimit(id) => &mut self.joints[id.0].limits_mut(m, id).lower,
            Field::UpperLimit(id) => &mut self.joints[id.0].limits_mut(m, id).upper,
            Field::LowerEffort(a) => {
                &mut self.actuators[a].effort_limits.get_or_insert(Range::OPEN).lower
            },
            Field::UpperEffort(a) => {
                &mut self.actuators[a].effort_limits.get_or_insert(Range::OPEN).upper
            },
            Field::GearRatio(g) => &mut self.gears[g].ratio,
            Field::GearOffset(g) => &mut self.gears[g].offset,
            Field::ContactFriction(_)
            | Field::ContactRestitution(_)
            | Field::ContactRadius(_)
            | Field::ContactLength(_)
            | Field::ContactEdge(..)
            | Field::ContactPosition(..)
            | Field::HalfSpaceFriction(_)
            | Field::HalfSpaceOffset(_) => match self.touching_mut(m, field) {
                Some(place) => place,
                None => return,
            },
        }) = value;
    }
}
