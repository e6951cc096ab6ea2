//! The description of what may touch: contacts on bodies, half-spaces of the world, and which of them meet.

use super::body::Body;
use super::builder::{BodySpec, MechanismBuilder, Orientation};
use super::contact::{
    Collider, Contact, HalfSpace, LOWEST, Pair, Surface, is_fine, is_supported, slots,
};
use super::describe_pairs::{FrictionPair, SideNames};
use super::error::{ModelError, nearest};
use super::joint::Joint;
use super::{Field, Mechanism};
use crate::spatial::{Mat3, Vec3, rotation};
use serde::{Deserialize, Serialize};

fn ground() -> String {
    "ground".into()
}

fn meets_ground() -> Vec<String> {
    vec![ground()]
}

/// A surface of a body that may touch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContactSpec {
    /// What touches; the body's own shape by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Surface>,
    /// Its place in the body's frame, m; the body's own shape is about its center of mass.
    #[serde(default)]
    pub position: [f64; 3],
    /// Its orientation on the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// Coulomb friction coefficient; zero by default.
    #[serde(default)]
    pub friction: f64,
    /// Ratio of speeds along the normal after and before an impact, at its knot, 0 to 1; zero by default. A law of impacts between
    /// rigid bodies at one step, not of elastic ones: what happens within a bounce is not resolved, and several contacts
    /// at once may gain or lose energy.
    #[serde(default)]
    pub restitution: f64,
    /// The group it is in; `bodies` by default.
    #[serde(default = "bodies")]
    pub group: String,
    /// Groups it may touch; half-spaces are in `ground` by default. Two colliders meet if one names the other's group.
    #[serde(default = "meets_ground")]
    pub against: Vec<String>,
}

fn bodies() -> String {
    "bodies".into()
}

impl Default for ContactSpec {
    fn default() -> Self {
        Self {
            shape: None,
            position: [0.0; 3],
            orientation: None,
            friction: 0.0,
            restitution: 0.0,
            group: bodies(),
            against: meets_ground(),
        }
    }
}

impl ContactSpec {
    /// The body's own shape, with a friction coefficient, against the ground.
    pub fn new(friction: f64) -> Self {
        Self {
            friction,
            ..Self::default()
        }
    }

    /// What touches, in place of the body's own shape.
    pub fn shape(mut self, shape: impl Into<Surface>) -> Self {
        self.shape = Some(shape.into());
        self
    }

    /// Place on the body, m.
    pub fn at(mut self, position: [f64; 3]) -> Self {
        self.position = position;
        self
    }

    /// The group it is in and those it may touch.
    pub fn group(mut self, group: &str, against: &[&str]) -> Self {
        self.group = group.into();
        self.against = against.iter().map(|g| (*g).to_owned()).collect();
        self
    }

    /// Ratio of speeds along the normal after and before an impact.
    pub fn restitution(mut self, restitution: f64) -> Self {
        self.restitution = restitution;
        self
    }

    fn build(
        &self,
        of: &str,
        name: &str,
        body: usize,
        spec: &BodySpec,
    ) -> Result<Collider, ModelError> {
        let err = |field: &str, message: String, help: &str| {
            ModelError::new(["bodies", of, "contacts", name, field], message, help)
        };
        let position = match self.shape {
            Some(_) => spec.about_center(self.position),
            None => self.position.into(),
        };
        let Some(surface) = self.shape.clone().or(spec.shape.map(Surface::from)) else {
            return Err(err(
                "shape",
                format!(
                    "contact `{name}` of body `{of}` has no shape, and its body has none either"
                ),
                "give shape = \"point\", { sphere = R }, { box = [A, B, C] }, { hull = [[X, Y, Z], ..] }, { capsule = { radius, length } } or { cylinder = .. }",
            ));
        };
        if let Surface::Heights(_) = surface {
            return Err(err(
                "shape",
                format!("contact `{name}` of body `{of}` is a height field"),
                "a height field is terrain, which does not move; give a hull",
            ));
        }
        if !surface.is_valid() {
            return Err(err(
                "shape",
                format!("contact `{name}` of body `{of}` has a length that is not positive"),
                "lengths are in m and positive",
            ));
        }
        if !(self.friction >= 0.0 && self.friction.is_finite()) {
            return Err(err(
                "friction",
                format!(
                    "friction of contact `{name}` of body `{of}` is {}",
                    self.friction
                ),
                "expected a finite number that is not negative",
            ));
        }
        if !(0.0..=1.0).contains(&self.restitution) {
            return Err(err(
                "restitution",
                format!(
                    "restitution of contact `{name}` of body `{of}` is {}",
                    self.restitution
                ),
                "expected a number from 0 to 1",
            ));
        }
        if !self.position.iter().all(|x| x.is_finite()) {
            return Err(err(
                "position",
                format!(
                    "position of contact `{name}` of body `{of}` is {:?}",
                    self.position
                ),
                "give three finite numbers",
            ));
        }
        let orientation = match &self.orientation {
            Some(o) => rotation(&o.quat().ok_or_else(|| {
                err(
                    "orientation",
                    format!("orientation of contact `{name}` of body `{of}` is not a rotation"),
                    "give rpy = [..] or quaternion = [w, x, y, z], finite and not zero",
                )
            })?),
            None => Mat3::identity(),
        };
        Ok(Collider {
            name: format!("{of}.{name}"),
            body: Some(body),
            surface,
            position,
            orientation,
            friction: self.friction,
            restitution: self.restitution,
            seams: vec![],
            buried: vec![],
            by_lowest: false,
        })
    }
}

/// A half-space of the world, solid where `normal . x < offset`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HalfSpaceSpec {
    /// Outward normal, of any length; along z by default.
    #[serde(default = "up")]
    pub normal: [f64; 3],
    /// Distance of its surface from the origin along the normal, m.
    #[serde(default)]
    pub offset: f64,
    /// Coulomb friction coefficient; by default, that of what touches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friction: Option<f64>,
    /// The group it is in; `ground` by default.
    #[serde(default = "ground")]
    pub group: String,
}

fn up() -> [f64; 3] {
    [0.0, 0.0, 1.0]
}

impl Default for HalfSpaceSpec {
    fn default() -> Self {
        Self {
            normal: up(),
            offset: 0.0,
            friction: None,
            group: ground(),
        }
    }
}

impl HalfSpaceSpec {
    fn build(&self, name: &str) -> Result<HalfSpace, ModelError> {
        let err = |field: &str, message: String, help: &str| {
            ModelError::new(["half_spaces", name, field], message, help)
        };
        let normal = Vec3::from(self.normal);
        let length = normal.norm();
        if !(length > 0.0 && length.is_finite()) {
            return Err(err(
                "normal",
                format!("the normal of half-space `{name}` is {:?}", self.normal),
                "give a direction of finite length that is not zero",
            ));
        }
        if !self.offset.is_finite() {
            return Err(err(
                "offset",
                format!("the offset of half-space `{name}` is {}", self.offset),
                "give a finite distance in m",
            ));
        }
        if let Some(f) = self.friction
            && !(f >= 0.0 && f.is_finite())
        {
            return Err(err(
                "friction",
                format!("friction of half-space `{name}` is {f}"),
                "expected a finite number that is not negative",
            ));
        }
        Ok(HalfSpace {
            name: name.into(),
            normal: normal / length,
            offset: self.offset,
            friction: self.friction,
        })
    }
}

/// Half-spaces, colliders, the contacts between them, and the pairs of colliders that are excluded by name.
pub(super) type Touching = (Vec<HalfSpace>, Vec<Collider>, Vec<Contact>, Vec<[usize; 2]>);

impl MechanismBuilder {
    /// Everything that may touch, and the friction of named pairs.
    pub(super) fn touching(
        &self,
        bodies: &[Body],
        joints: &[Joint],
    ) -> Result<(Touching, Vec<FrictionPair>), ModelError> {
        let half_spaces = self
            .half_spaces
            .iter()
            .map(|(name, h)| h.build(name))
            .collect::<Result<Vec<_>, _>>()?;
        let (mut colliders, mut specs) = (vec![], vec![]);
        for (body, (of, spec)) in self.bodies.iter().enumerate() {
            let spec: &BodySpec = spec;
            for (name, c) in &spec.contacts {
                colliders.push(c.build(of, name, body, spec)?);
                specs.push(c);
            }
        }
        for c in &mut colliders {
            c.by_lowest = is_fine(c);
        }
        self.check_groups(&colliders, &specs, bodies)?;
        let mut names = SideNames::new(&half_spaces, &colliders, bodies);
        let mut contacts = vec![];
        // colliders that would touch something if no pair was excluded
        let mut spared = vec![false; specs.len()];
        let mut excluded = vec![];
        for (i, (c, spec)) in colliders.iter().zip(&specs).enumerate() {
            for (g, plane) in self.half_spaces.values().enumerate() {
                if !spec.against.contains(&plane.group) {
                    continue;
                }
                if self.excludes(|pair| names.are_on_half_space((i, g), pair)) {
                    spared[i] = true;
                } else {
                    on_half_space((i, c), (g, &half_spaces[g]), bodies, &mut contacts);
                }
            }
            for (k, (other, of)) in colliders.iter().zip(&specs).enumerate().skip(i + 1) {
                let meet = spec.against.contains(&of.group) || of.against.contains(&spec.group);
                let apart = matches!((c.body, other.body), (Some(a), Some(b)) if a != b && !tied(joints, a, b));
                if !(meet && apart) {
                    continue;
                }
                if self.excludes(|pair| names.are_colliders((i, k), pair)) {
                    (spared[i], spared[k]) = (true, true);
                    excluded.push([i, k]);
                } else {
                    between((i, c), (k, other), bodies, &mut contacts)?;
                }
            }
        }
        // terrain's colliders follow those of bodies
        let mut groups = vec![];
        for (name, t) in &self.terrain {
            for collider in t.build(name)? {
                names.add_terrain(name, &collider);
                colliders.push(collider);
                groups.push(&t.group);
            }
        }
        for (i, spec) in specs.iter().enumerate() {
            for (k, group) in groups.iter().enumerate() {
                let k = specs.len() + k;
                if !spec.against.contains(group) {
                    continue;
                }
                if self.excludes(|pair| names.are_colliders((i, k), pair)) {
                    spared[i] = true;
                } else {
                    between(
                        (k, &colliders[k]),
                        (i, &colliders[i]),
                        bodies,
                        &mut contacts,
                    )?;
                }
            }
        }
        self.check_excluded(&names)?;
        let touches = |i: usize| {
            contacts.iter().any(|c: &Contact| match c.pair {
                Pair::Ground { collider, .. } => collider == i,
                Pair::Between { first, second, .. } => first == i || second == i,
            })
        };
        if let Some(i) = (0..specs.len()).find(|i| !touches(*i) && !spared[*i]) {
            return Err(contact_error(
                &colliders[i],
                bodies,
                format!("contact `{}` touches nothing", colliders[i].name),
                "add a half-space to [half_spaces] or a solid to [terrain], name the group of another body's contact in `against`, or leave the contact out (contacts of one body, and of bodies tied by a joint, do not meet)",
            ));
        }
        let pairs = self.pair_friction(&names, &mut contacts)?;
        Ok(((half_spaces, colliders, contacts, excluded), pairs))
    }

    /// Refuses groups that nothing is in.
    fn check_groups(
        &self,
        colliders: &[Collider],
        specs: &[&ContactSpec],
        bodies: &[Body],
    ) -> Result<(), ModelError> {
        let default = ground();
        let mut groups = vec![default.as_str()];
        let planes = self.half_spaces.values().map(|h| h.group.as_str());
        let planes = planes.chain(self.terrain.values().map(|t| t.group.as_str()));
        for group in planes.chain(specs.iter().map(|c| c.group.as_str())) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        for (c, spec) in colliders.iter().zip(specs) {
            let unknown = spec.against.iter().find(|g| !groups.contains(&g.as_str()));
            if let Some(group) = unknown {
                return Err(contact_error(
                    c,
                    bodies,
                    format!(
                        "contact `{}` names the group `{group}`, which nothing is in",
                        c.name
                    ),
                    nearest(group, groups.iter().copied()),
                ));
            }
        }
        Ok(())
    }

    /// The description's place of a number of a collider or a half-space.
    pub(super) fn touching_mut(&mut self, m: &Mechanism, field: Field) -> Option<&mut f64> {
        let c = match field {
            Field::HalfSpaceFriction(h) => {
                return self.half_spaces[h].friction.as_mut();
            }
            Field::HalfSpaceOffset(h) => return Some(&mut self.half_spaces[h].offset),
            Field::ContactFriction(c)
            | Field::ContactRestitution(c)
            | Field::ContactRadius(c)
            | Field::ContactLength(c)
            | Field::ContactEdge(c, _)
            | Field::ContactPosition(c, _) => c,
            _ => return None,
        };
        let mut specs = self
            .bodies
            .values_mut()
            .flat_map(|b| b.contacts.values_mut());
        let spec = specs.nth(c)?;
        match field {
            Field::ContactFriction(_) => Some(&mut spec.friction),
            Field::ContactRestitution(_) => Some(&mut spec.restitution),
            Field::ContactPosition(_, k) => spec.position.get_mut(k),
            _ => {
                // the body keeps its own shape
                let own = m.colliders.get(c)?.surface.clone();
                spec.shape.get_or_insert(own).number(field)
            }
        }
    }
}

/// About what a contact is `against`.
fn contact_error(
    c: &Collider,
    bodies: &[Body],
    message: impl Into<String>,
    help: impl Into<String>,
) -> ModelError {
    // BODY.NAME, and either may have dots
    let Some(body) = c.body.map(|b| bodies[b].name.as_str()) else {
        return ModelError::new(["terrain", c.name.as_str()], message, help);
    };
    let own = c.name.strip_prefix(body);
    let name = own.and_then(|n| n.strip_prefix('.')).unwrap_or(&c.name);
    ModelError::new(["bodies", body, "contacts", name, "against"], message, help)
}

/// Are the bodies tied directly, by a joint that constrains them?
fn tied(joints: &[Joint], a: usize, b: usize) -> bool {
    joints.iter().any(|j| {
        j.rows() > 0 && ((j.parent, j.child) == (Some(a), b) || (j.parent, j.child) == (Some(b), a))
    })
}

fn on_half_space(
    (i, c): (usize, &Collider),
    (g, ground): (usize, &HalfSpace),
    bodies: &[Body],
    out: &mut Vec<Contact>,
) {
    let Some(body) = c.body else {
        return;
    };
    let mut features: Vec<(String, f64)> = c
        .features()
        .into_iter()
        .map(|(label, arm)| (label, mobility(&bodies[body], &arm)))
        .collect();
    if c.by_lowest {
        // any vertex may be held at any place
        let mean = features.iter().map(|f| f.1).sum::<f64>() / features.len() as f64;
        features.truncate(LOWEST);
        features.iter_mut().for_each(|f| f.1 = mean);
    }
    for (feature, (label, mobility)) in features.iter().enumerate() {
        let space = if label.is_empty() { "" } else { " " };
        out.push(Contact {
            name: format!("{}{space}{label} on {}", c.name, ground.name),
            parent: None,
            child: body,
            pair: Pair::Ground {
                half_space: g,
                collider: i,
                feature,
            },
            effective_mass: 1.0 / mobility,
            friction_pair: None,
            across: None,
            lever_share: 1.0,
        });
    }
}

fn between<'a>(
    mut first: (usize, &'a Collider),
    mut second: (usize, &'a Collider),
    bodies: &[Body],
    out: &mut Vec<Contact>,
) -> Result<(), ModelError> {
    let meet = |a: &Collider, b: &Collider| is_supported(&a.surface, &b.surface);
    if !(meet(first.1, second.1) || meet(second.1, first.1)) {
        let (a, b) = (first.1, second.1);
        let (p, q) = (a.surface.kind(), b.surface.kind());
        return Err(contact_error(
            if a.body.is_some() { a } else { b },
            bodies,
            format!(
                "contacts `{}` ({p}) and `{}` ({q}) meet, but points have nothing to overlap by",
                a.name, b.name
            ),
            "put them in groups that do not name each other, or make one of them a sphere",
        ));
    }
    // the world's is the parent's, whichever it is
    if first.1.body.is_some() && !meet(first.1, second.1) {
        (first, second) = (second, first);
    }
    let ((i, a), (k, b)) = (first, second);
    let Some(child) = b.body else {
        return Ok(());
    };
    let lightness = |c: &Collider, arm| c.body.map_or(0.0, |body| mobility(&bodies[body], arm));
    for (feature, (labels, arms)) in slots((a, b)).iter().enumerate() {
        let names = [
            format!("{}{}", a.name, labels[0]),
            format!("{}{}", b.name, labels[1]),
        ];
        let [p, q] = &names;
        out.push(Contact {
            name: match a.body {
                Some(_) => format!("{p} with {q}"),
                None => format!("{q} on {p}"),
            },
            parent: a.body,
            child,
            pair: Pair::Between {
                first: i,
                second: k,
                feature,
            },
            effective_mass: 1.0 / (lightness(a, &arms[0]) + lightness(b, &arms[1])),
            friction_pair: None,
            across: None,
            lever_share: lever_share(bodies, (a.body, child)),
        });
    }
    Ok(())
}

/// The part of a gap between two bodies on the parent's side of the point at which forces act; see [`Contact::lever_share`].
fn lever_share(bodies: &[Body], (parent, child): (Option<usize>, usize)) -> f64 {
    let turns = |b: usize| bodies[b].inertia.try_inverse().map_or(0.0, |i| i.trace());
    match (parent.map_or(0.0, turns), turns(child)) {
        (0.0, 0.0) => 0.5,
        (a, b) => b / (a + b),
    }
}

/// `N M^-1 N'` of a unit force at a place on a body, averaged over the force's directions, 1/kg.
fn mobility(b: &Body, arm: &Vec3) -> f64 {
    let inverse = b.inertia.try_inverse().unwrap_or_else(Mat3::zeros);
    let spread = Mat3::identity() * arm.norm_squared() - arm * arm.transpose();
    1.0 / b.mass + (inverse * spread).trace() / 3.0
}
