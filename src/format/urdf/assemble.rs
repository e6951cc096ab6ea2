//! From links and joints to bodies: what is fixed together is one, and what has no mass is none.

use super::hull;
use super::robot::{Frame, Joint, Link, Robot};
use crate::format::import::{Base, FixedJoints, ImportSpec};
use crate::format::problem::Names;
use crate::format::recording::Visual;
use crate::format::source::{FormatError, Source, nearest};
use crate::mechanism::{
    ActuatorSpec, BodySpec, GearSpec, JointKind, JointSpec, MechanismBuilder, Orientation,
    PerDirection,
};
use crate::spatial::{Mat3, Quat, Vec3, rotation};
use indexmap::IndexMap;
use std::ops::Range;

/// Links that are one body.
pub(super) struct Group {
    /// Names, and their frames in that of the first, which is the body's.
    links: Vec<(String, Frame)>,
    /// The joint that holds it, and the group it is held by.
    joint: Option<(String, usize)>,
    mass: f64,
    /// Name of the body; none of what does not move, or has no mass and moves nothing.
    pub(super) body: Option<String>,
}

/// A robot as bodies.
pub(super) struct Assembly<'a> {
    pub(super) robot: &'a Robot,
    pub(super) import: &'a ImportSpec,
    /// The file that `[import]` stands in.
    told: Option<&'a Source>,
    pub(super) groups: Vec<Group>,
    /// Of each link: its group, and its frame in that of the body.
    pub(super) places: IndexMap<String, (usize, Frame)>,
    pub source: Source,
    pub builder: MechanismBuilder,
    pub remarks: Vec<String>,
    pub visuals: Vec<Visual>,
    /// The largest speeds of joints by name, m/s or rad/s.
    pub speeds: Vec<(String, f64)>,
}

impl<'a> Assembly<'a> {
    pub fn new(
        robot: &'a Robot,
        (import, told): (&'a ImportSpec, Option<&'a Source>),
        source: Source,
    ) -> Result<Self, FormatError> {
        let mut assembly = Self {
            robot,
            import,
            told,
            groups: vec![],
            places: IndexMap::new(),
            source,
            builder: MechanismBuilder::new(),
            remarks: robot.remarks.clone(),
            visuals: vec![],
            speeds: vec![],
        };
        assembly.check_numbers()?;
        assembly.gather()?;
        assembly.name()?;
        assembly.bodies();
        assembly.joints();
        assembly.contacts()?;
        assembly.controls()?;
        assembly.add()?;
        assembly.dress();
        Ok(assembly)
    }

    /// Checks the numbers of `[import]` whether or not the robot has what they are for.
    fn check_numbers(&self) -> Result<(), FormatError> {
        let (friction, vertices) = (self.import.friction, self.import.hull_vertices);
        if !(friction >= 0.0 && friction.is_finite()) {
            let message = format!("friction is {friction}");
            return Err(self.of_import(&["friction"], message, "give a number of at least 0"));
        }
        match vertices.filter(|n| !(4..=hull::MOST).contains(n)) {
            Some(n) => Err(self.of_import(
                &["hull_vertices"],
                format!("hull_vertices is {n}"),
                format!("give a number from 4 to {}", hull::MOST),
            )),
            None => Ok(()),
        }
    }

    pub(super) fn error(
        &self,
        span: &Range<usize>,
        message: String,
        help: impl Into<String>,
    ) -> FormatError {
        self.source.at_span(span.clone(), message, help)
    }

    pub(super) fn link(&self, name: &str) -> &'a Link {
        &self.robot.links[name]
    }

    /// Puts what is fixed together into groups, each behind the one that holds it.
    fn gather(&mut self) -> Result<(), FormatError> {
        let (links, joints) = (&self.robot.links, &self.robot.joints);
        let mut holders: IndexMap<&str, &str> = IndexMap::new();
        for (name, j) in joints {
            if let Some(other) = holders.insert(&j.child, name) {
                return Err(self.error(
                    &j.spans[1],
                    format!(
                        "link `{}` is the child of two joints, `{other}` and `{name}`",
                        j.child
                    ),
                    "robots of URDF are trees; loops can be closed in a mechanism in TOML",
                ));
            }
        }
        let roots: Vec<&String> = links
            .keys()
            .filter(|l| !holders.contains_key(l.as_str()))
            .collect();
        let root = match roots[..] {
            [root] => root,
            [] => {
                let (_, j) = joints.first().expect("without joints every link is a root");
                return Err(self.error(
                    &j.span,
                    "every link is the child of a joint: there is no root".into(),
                    "joints lead from one root link outwards",
                ));
            }
            [first, second, ..] => {
                return Err(self.error(
                    &links[second].span,
                    format!("`{first}` and `{second}` are both held by no joint"),
                    "a robot has one root link: add a joint between them",
                ));
            }
        };
        let mass = |l: &str| links[l].inertial.as_ref().map_or(0.0, |i| i.mass);
        self.groups.push(Group {
            links: vec![(root.clone(), Frame::identity())],
            joint: None,
            mass: mass(root),
            body: None,
        });
        let mut at: IndexMap<&str, (usize, Frame)> = IndexMap::new();
        at.insert(root, (0, Frame::identity()));
        let mut next = 0;
        while next < at.len() {
            let (parent, (group, frame)) = at
                .get_index(next)
                .map(|(l, p)| (*l, *p))
                .expect("an index below the length");
            next += 1;
            for (name, j) in joints.iter().filter(|(_, j)| j.parent == parent) {
                let here = frame.then(&j.origin);
                let own = mass(&j.child);
                let keeps = self.import.fixed_joints == FixedJoints::Keep
                    && own > 0.0
                    && self.groups[group].mass > 0.0;
                let place = if j.kind == JointKind::Fixed && !keeps {
                    let group_of = &mut self.groups[group];
                    group_of.links.push((j.child.clone(), here));
                    group_of.mass += own;
                    (group, here)
                } else {
                    self.groups.push(Group {
                        links: vec![(j.child.clone(), Frame::identity())],
                        joint: Some((name.clone(), group)),
                        mass: own,
                        body: None,
                    });
                    (self.groups.len() - 1, Frame::identity())
                };
                at.insert(&j.child, place);
            }
        }
        if let Some((name, _)) = links.iter().find(|(l, _)| !at.contains_key(l.as_str())) {
            let j = &joints[holders[name.as_str()]];
            return Err(self.error(
                &j.span,
                format!(
                    "no joints lead from the root `{root}` to link `{name}`: they close a ring"
                ),
                "joints lead from one root link outwards",
            ));
        }
        Ok(())
    }

    /// Which groups are bodies; they go by the name of their first link.
    fn name(&mut self) -> Result<(), FormatError> {
        let count = self.groups.len();
        let mut moves = vec![false; count];
        for i in (0..count).rev() {
            moves[i] |= self.groups[i].mass > 0.0;
            if let (Some((_, by)), true) = (&self.groups[i].joint, moves[i]) {
                moves[*by] = true;
            }
        }
        let is_held = |groups: &[Group], i: usize| {
            let joint = |g: &Group| g.joint.as_ref().map(|(n, by)| (&self.robot.joints[n], *by));
            let mut held = groups.iter().filter_map(joint).filter(|(_, by)| *by == i);
            held.all(|(j, _)| j.kind == JointKind::Floating)
        };
        let fixed = self.import.base == Base::Fixed
            && self.import.fixed_joints == FixedJoints::Merge
            || self.groups[0].mass == 0.0
                && (self.import.base == Base::Fixed || is_held(&self.groups, 0));
        for (i, moves) in moves.into_iter().enumerate() {
            let g = &self.groups[i];
            let first = g.links[0].0.clone();
            if i == 0 && fixed {
                if g.mass > 0.0 {
                    self.remarks.push(format!(
                        "link `{first}` ({} kg) is held by the world; base = \"free\" under [import] lets it fly",
                        crate::format::short(g.mass)
                    ));
                }
            } else if g.mass > 0.0 {
                // a link may be called what only the ground can be
                let own = g.links.iter().find(|l| l.0 != "world");
                self.groups[i].body = Some(own.map_or(first, |l| l.0.clone()));
            } else if !moves {
                if let Some((joint, _)) = &g.joint {
                    self.remarks.push(format!(
                        "joint `{joint}` moves nothing that has a mass: left out with link `{first}`"
                    ));
                }
            } else {
                let help = match i {
                    0 => "give the root link an <inertial>, or base = \"fixed\" under [import]",
                    _ => {
                        "give it an <inertial> with a small mass, or make one joint of the two it is between"
                    }
                };
                return Err(self.error(
                    &self.link(&first).span,
                    format!("link `{first}` has no mass, and moves"),
                    help,
                ));
            }
        }
        for (i, g) in self.groups.iter().enumerate() {
            for (name, frame) in &g.links {
                self.places.insert(name.clone(), (i, *frame));
            }
        }
        Ok(())
    }

    fn bodies(&mut self) {
        for (i, g) in self.groups.iter().enumerate() {
            let Some(name) = &g.body else { continue };
            let parts = g.links.iter().filter_map(|(l, f)| {
                let i = self.link(l).inertial.as_ref()?;
                Some((i, f, f.x + f.q * i.center))
            });
            let mass: f64 = parts.clone().map(|(i, ..)| i.mass).sum();
            let center = parts.clone().map(|(i, _, c)| c * i.mass).sum::<Vec3>() / mass;
            let mut inertia = Mat3::zeros();
            for (part, frame, at) in parts {
                let (r, d) = (rotation(&frame.q), at - center);
                inertia += r * part.inertia * r.transpose();
                inertia += (Mat3::identity() * d.norm_squared() - d * d.transpose()) * part.mass;
            }
            // symmetric to the bit
            let rows = [0, 1, 2].map(|a| [0, 1, 2].map(|b| inertia[(a.min(b), a.max(b))]));
            let mut body = BodySpec::new(mass).inertia_matrix(rows);
            if center != Vec3::zeros() {
                body = body.center_of_mass(center.into());
            }
            let is_free = i == 0 && self.import.base == Base::Free;
            let is_kept = i == 0 && !is_free;
            if is_free {
                body = body.free();
            }
            let link = self.link(name);
            self.source.place(&["bodies", name], link.span.clone());
            if let Some(i) = &link.inertial {
                let [mass, inertia] = i.spans.clone();
                self.source.place(&["bodies", name, "mass"], mass);
                self.source.place(&["bodies", name, "inertia"], inertia);
            }
            self.builder.bodies.insert(name.clone(), body);
            if is_kept {
                let held = JointSpec::new(JointKind::Fixed, name);
                self.builder.joints.insert(format!("{name} held"), held);
            }
        }
    }

    fn joints(&mut self) {
        for g in &self.groups {
            let (Some(child), Some((name, by))) = (&g.body, &g.joint) else {
                continue;
            };
            let j: &Joint = &self.robot.joints[name];
            let parent = self.groups[*by].body.as_deref();
            let at = self.places[&j.parent].1.then(&j.origin);
            let mut spec = JointSpec::new(j.kind, child)
                .anchors(at.x.into(), [0.0; 3])
                .parent(parent.unwrap_or("world"));
            if j.kind.has_axis() {
                spec = spec.axis((at.q * j.axis).into());
            }
            spec.orientation = oriented(&at.q);
            let n = freedoms(j.kind);
            if n > 0 {
                let given = |v: f64| (v > 0.0).then_some(PerDirection::All(v));
                (spec.damping, spec.friction) = (given(j.damping), given(j.friction));
            }
            let place = ["joints", name.as_str()];
            self.source.place(&place, j.span.clone());
            if let Some(l) = &j.limit {
                self.source
                    .place(&[&place[..], &["limits"]].concat(), l.span.clone());
                let [lower, upper] = l.range;
                if self.import.limits && n == 1 && (lower.is_finite() || upper.is_finite()) {
                    spec = spec.limits(lower, upper);
                }
                if let (1, Some(speed)) = (n, l.speed) {
                    self.speeds.push((name.clone(), speed));
                }
            }
            self.builder.joints.insert(name.clone(), spec);
            if let Some(m) = &j.mimic {
                let gear = GearSpec::new(name, &m.of, m.ratio).offset(m.offset);
                self.source.place(&["gears", name], m.span.clone());
                self.builder.gears.insert(name.clone(), gear);
            }
        }
        let (joints, remarks) = (&self.builder.joints, &mut self.remarks);
        self.builder.gears.retain(|name, g| {
            let stays = joints.contains_key(&g.of);
            if !stays {
                remarks.push(format!(
                    "joint `{name}` mimics `{}`, which moves nothing: it moves by itself",
                    g.of
                ));
            }
            stays
        });
    }

    /// An error of `[import]`, which stands in the problem's file.
    pub(super) fn of_import(
        &self,
        path: &[&str],
        message: String,
        help: impl Into<String>,
    ) -> FormatError {
        let source = self.told.unwrap_or(&self.source);
        source.error(&[&["import"], path].concat(), message, help)
    }

    fn controls(&mut self) -> Result<(), FormatError> {
        let robot = self.robot;
        let moving: Vec<&str> = {
            let joints = self.builder.joints.iter();
            let one = joints.filter(|(n, j)| {
                freedoms(j.kind) == 1 && !self.builder.gears.contains_key(n.as_str())
            });
            one.filter_map(|(n, _)| robot.joints.get_key_value(n.as_str()))
                .map(|(n, _)| n.as_str())
                .collect()
        };
        let words: &[String] = self.import.controls.as_ref().map_or(&[], Names::as_slice);
        let by_file =
            words.is_empty() && self.import.controls.is_none() && !robot.transmissions.is_empty();
        let driven: Vec<&str> = match words {
            _ if by_file => vec![],
            [] if self.import.controls.is_some() => vec![],
            [] => moving.clone(),
            [one] if one == "joints" => moving.clone(),
            [one] if one == "none" || one == "transmissions" => vec![],
            list => {
                if let Some(name) = list.iter().find(|n| !moving.contains(&n.as_str())) {
                    return Err(self.of_import(
                        &["controls"],
                        format!("[import] drives `{name}`, which is no joint with one coordinate of its own"),
                        nearest(name, moving.into_iter()),
                    ));
                }
                list.iter().map(String::as_str).collect()
            }
        };
        for name in driven {
            self.drive(name, name, 1.0);
        }
        if by_file || matches!(words, [one] if one == "transmissions") {
            for t in &robot.transmissions {
                if moving.contains(&t.joint.as_str()) {
                    self.drive(&t.actuator, &t.joint, t.reduction);
                    self.source
                        .place(&["actuators", &t.actuator], t.span.clone());
                } else {
                    self.remarks.push(format!(
                        "transmission of `{}` drives no joint with one coordinate of its own: left out",
                        t.joint
                    ));
                }
            }
        }
        Ok(())
    }

    /// What the problem says beside the file.
    fn add(&mut self) -> Result<(), FormatError> {
        let import = self.import;
        for (name, change) in &import.bodies {
            let Some(b) = self.builder.bodies.get_mut(name) else {
                let known = self.builder.bodies.keys().map(String::as_str);
                return Err(self.of_import(
                    &["bodies", name],
                    format!("`{name}` is no body; links that are fixed to each other are one, under the name of the first"),
                    nearest(name, known),
                ));
            };
            b.mass = change.mass.or(b.mass);
            if change.inertia.is_some() {
                b.inertia.clone_from(&change.inertia);
            }
        }
        for (name, change) in &import.joints {
            let Some(j) = self.builder.joints.get_mut(name) else {
                let known = self.builder.joints.keys().map(String::as_str);
                return Err(self.of_import(
                    &["joints", name],
                    format!("`{name}` is no joint that moves"),
                    nearest(name, known),
                ));
            };
            for (to, other) in [
                (&mut j.stiffness, &change.stiffness),
                (&mut j.rest, &change.rest),
                (&mut j.damping, &change.damping),
                (&mut j.friction, &change.friction),
            ] {
                if other.is_some() {
                    to.clone_from(other);
                }
            }
            if change.limits.is_some() {
                j.limits.clone_from(&change.limits);
            }
            j.implicit = change.implicit.unwrap_or(j.implicit);
        }
        // of links that the world holds
        let held: Vec<String> = self.builder.terrain.keys().cloned().collect();
        let b = &mut self.builder;
        b.gravity = import.gravity.unwrap_or(b.gravity);
        b.half_spaces.extend(import.half_spaces.clone());
        b.terrain.extend(import.terrain.clone());
        b.friction_pairs.extend(import.friction_pairs.clone());
        b.springs.extend(import.springs.clone());
        b.gears.extend(import.gears.clone());
        b.actuators.extend(import.actuators.clone());
        self.meet_held(&held)?;
        self.leave_out_idle();
        self.spare_tied(&held);
        self.exclude()?;
        let b = &self.builder;
        if b.bodies.is_empty() {
            return Err(FormatError::of_file(
                self.source.path(),
                "nothing of this robot moves",
                "give a joint that is not fixed, or in a problem base = \"free\" under [import]",
            ));
        }
        if !self.speeds.is_empty() && !import.speed_limits {
            self.remarks.push(format!(
                "limits of speed ({} joints) bind no motion; with speed_limits = true under [import] they are constraints of a problem",
                self.speeds.len()
            ));
        }
        Ok(())
    }

    /// A motor whose torque, `gain` times, acts on a joint as far as the file allows.
    fn drive(&mut self, name: &str, joint: &str, gain: f64) {
        let mut actuator = ActuatorSpec::joint(joint).gain(gain);
        let effort = self.robot.joints[joint]
            .limit
            .as_ref()
            .and_then(|l| l.effort);
        if let Some(effort) = effort {
            let most = effort / gain.abs();
            actuator = actuator.bounds(-most, most);
        }
        self.builder.actuators.insert(name.into(), actuator);
    }
}

fn freedoms(kind: JointKind) -> usize {
    let (slides, turns) = kind.rows();
    6 - slides - turns
}

pub(super) fn oriented(q: &Quat) -> Option<Orientation> {
    (*q != Quat::identity()).then_some(Orientation::Quaternion([q.w, q.i, q.j, q.k]))
}
