//! A robot as its file says it: links, joints and transmissions by their names, in their own frames.

use super::element::Element;
use crate::format::source::{FormatError, nearest};
use crate::mechanism::{JointKind, Surface};
use crate::spatial::{Mat3, Quat, Vec3, exp, rotation};
use indexmap::IndexMap;
use std::ops::Range;

/// A frame in another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub x: Vec3,
    pub q: Quat,
}

impl Frame {
    pub const fn identity() -> Self {
        Self {
            x: Vec3::new(0.0, 0.0, 0.0),
            q: Quat::new_unchecked(nalgebra::Quaternion::new(1.0, 0.0, 0.0, 0.0)),
        }
    }

    /// A frame of this one, in the one that this is in.
    pub fn then(&self, inner: &Self) -> Self {
        Self {
            x: self.x + self.q * inner.x,
            q: self.q * inner.q,
        }
    }

    /// `<origin xyz rpy>`; none is the frame itself.
    fn of(e: &Element) -> Result<Self, FormatError> {
        let Some(origin) = e.optional("origin")? else {
            return Ok(Self::identity());
        };
        origin.knows(&["xyz", "rpy"], &[]);
        let [r, p, y] = origin.vector_or("rpy", [0.0; 3])?;
        Ok(Self {
            x: origin.vector_or("xyz", [0.0; 3])?.into(),
            q: Quat::from_euler_angles(r, p, y),
        })
    }
}

/// Mass and its distribution.
pub(super) struct Inertial {
    pub mass: f64,
    /// Link frame, m.
    pub center: Vec3,
    /// About the center, link axes, kg m^2.
    pub inertia: Mat3,
    pub spans: [Range<usize>; 2],
}

/// What a link looks like, or what of it touches.
pub(super) struct Geometry {
    pub frame: Frame,
    pub shape: Solid,
    pub color: Option<[f64; 4]>,
    pub span: Range<usize>,
}

/// Its shape.
pub(super) enum Solid {
    /// One that is given by numbers.
    Primitive(Surface),
    /// A file of triangles, and by what its coordinates are multiplied to be m.
    Mesh { file: String, scale: [f64; 3] },
}

pub(super) struct Link {
    pub inertial: Option<Inertial>,
    pub collisions: Vec<Geometry>,
    pub visuals: Vec<Geometry>,
    pub span: Range<usize>,
}

pub(super) struct Limit {
    pub range: [f64; 2],
    pub effort: Option<f64>,
    pub speed: Option<f64>,
    pub span: Range<usize>,
}

pub(super) struct Mimic {
    pub of: String,
    pub ratio: f64,
    pub offset: f64,
    pub span: Range<usize>,
}

pub(super) struct Joint {
    pub kind: JointKind,
    /// Where the child is at coordinates zero, in the parent's frame.
    pub origin: Frame,
    pub parent: String,
    pub child: String,
    /// In the child's frame, unit length.
    pub axis: Vec3,
    pub limit: Option<Limit>,
    pub damping: f64,
    pub friction: f64,
    pub mimic: Option<Mimic>,
    pub span: Range<usize>,
    pub spans: [Range<usize>; 2],
}

impl Joint {
    /// Holds a joint that mimics one that does not move where that leaves it.
    fn fix(&mut self) {
        let at = self.mimic.take().map_or(0.0, |m| m.offset);
        if self.kind == JointKind::Fixed {
            return;
        }
        let moved = match self.kind {
            JointKind::Prismatic => Frame {
                x: self.axis * at,
                q: Quat::identity(),
            },
            _ => Frame {
                x: Vec3::zeros(),
                q: exp(&(self.axis * at)),
            },
        };
        self.origin = self.origin.then(&moved);
        self.kind = JointKind::Fixed;
        self.limit = None;
    }
}

/// What drives a joint: `reduction` times the torque of the motor.
pub(super) struct Transmission {
    pub actuator: String,
    pub joint: String,
    pub reduction: f64,
    pub span: Range<usize>,
}

pub(super) struct Robot {
    pub name: Option<String>,
    pub links: IndexMap<String, Link>,
    pub joints: IndexMap<String, Joint>,
    pub transmissions: Vec<Transmission>,
    /// What the file says that is left out, a sentence each.
    pub remarks: Vec<String>,
}

const KINDS: [(&str, (JointKind, bool)); 7] = [
    ("revolute", (JointKind::Revolute, true)),
    ("continuous", (JointKind::Revolute, false)),
    ("prismatic", (JointKind::Prismatic, true)),
    ("fixed", (JointKind::Fixed, false)),
    ("floating", (JointKind::Floating, false)),
    ("planar", (JointKind::PlanarAxis, false)),
    ("spherical", (JointKind::Spherical, false)),
];

impl Robot {
    pub fn new(root: &Element) -> Result<Self, FormatError> {
        let parts = ["link", "joint", "transmission", "material"];
        root.knows(&["name", "version"], &parts);
        let mut robot = Self {
            name: root.text_of("name").map(str::to_owned),
            links: IndexMap::new(),
            joints: IndexMap::new(),
            transmissions: vec![],
            remarks: vec![],
        };
        let mut colors = IndexMap::new();
        for m in root.children("material") {
            m.knows(&["name"], &["color"]);
            if let Some(color) = m.optional("color")? {
                colors.insert(m.attribute("name")?.to_owned(), color.vector("rgba")?);
            }
        }
        for e in root.children("link") {
            let name = e.attribute("name")?;
            let link = link(&e, &colors)?;
            if robot.links.insert(name.into(), link).is_some() {
                let message = format!("a second link is called `{name}`");
                return Err(e.wrong("name", message, "give it another name"));
            }
        }
        if robot.links.is_empty() {
            let is_macro = root.node.namespaces().any(|n| n.uri().contains("xacro"));
            let help = match is_macro {
                true => "this is a macro: expand it first, `xacro FILE > robot.urdf`",
                false => "add <link name=\"..\">",
            };
            return Err(root.error("the robot has no links", help));
        }
        for e in root.children("joint") {
            // simulators call the ground so, and files of theirs need not declare it
            let parent = e.child("parent")?;
            if parent.attribute("link")? == "world" && !robot.links.contains_key("world") {
                let link = Link::empty(parent.span());
                robot.links.insert("world".into(), link);
            }
        }
        for e in root.children("joint") {
            let name = e.attribute("name")?;
            let joint = joint(&e, &robot.links)?;
            if robot.joints.insert(name.into(), joint).is_some() {
                let message = format!("a second joint is called `{name}`");
                return Err(e.wrong("name", message, "give it another name"));
            }
        }
        robot.mimics(root)?;
        for e in root.children("transmission") {
            robot.transmission(&e)?;
        }
        Ok(robot)
    }

    /// What mimics follows a joint that is there and moves alike; what follows one that is fixed is fixed.
    fn mimics(&mut self, root: &Element) -> Result<(), FormatError> {
        for e in root.children("joint") {
            let Some(mimic) = e.optional("mimic")? else {
                continue;
            };
            let (name, of) = (e.attribute("name")?, mimic.attribute("joint")?);
            let help = || nearest(of, self.joints.keys().map(String::as_str));
            if !self.joints.contains_key(of) {
                let message = format!("joint `{name}` mimics the unknown joint `{of}`");
                return Err(mimic.wrong("joint", message, help()));
            }
            if self.joints[of].kind == JointKind::Fixed
                || self.joints[name].kind == JointKind::Fixed
            {
                let line = e.reader.line(mimic.span().start);
                self.remarks.push(format!(
                    "line {line}: joint `{name}` mimics `{of}`, and one of them is fixed: it does not move"
                ));
                self.joints[name].fix();
                continue;
            }
            let one = |j: &str| {
                let kind = self.joints[j].kind;
                matches!(kind, JointKind::Revolute | JointKind::Prismatic)
            };
            if of == name || !one(of) || !one(name) {
                let message = format!("joint `{name}` cannot mimic `{of}`");
                let help = "both need one coordinate, and to be two";
                return Err(mimic.wrong("joint", message, help));
            }
        }
        Ok(())
    }

    fn transmission(&mut self, e: &Element) -> Result<(), FormatError> {
        let known = ["type", "joint", "actuator", "mechanicalReduction"];
        e.knows(&["name", "type"], &known);
        let joints: Vec<Element> = e.children("joint").collect();
        let line = e.reader.line(e.span().start);
        let [driven] = joints[..] else {
            self.remarks.push(format!(
                "line {line}: {} drives {} joints, not one: left out",
                e.called(),
                joints.len()
            ));
            return Ok(());
        };
        let name = driven.attribute("name")?;
        // files of a part of a robot keep those of the whole
        if !self.joints.contains_key(name) {
            let help = nearest(name, self.joints.keys().map(String::as_str));
            self.remarks.push(format!(
                "line {line}: {} drives `{name}`, which is no joint of the file: left out; {help}",
                e.called()
            ));
            return Ok(());
        }
        let actuator = e.optional("actuator")?;
        for part in [Some(driven), actuator].into_iter().flatten() {
            part.knows(&["name"], &["mechanicalReduction", "hardwareInterface"]);
        }
        let mut reduction = 1.0;
        for place in [Some(*e), Some(driven), actuator].into_iter().flatten() {
            let Some(given) = place.optional("mechanicalReduction")? else {
                continue;
            };
            let text = given.node.text().unwrap_or_default().trim();
            reduction = match text.parse::<f64>() {
                Ok(r) if r.is_finite() && r != 0.0 => r,
                _ => {
                    let message = format!("mechanicalReduction of {} is `{text}`", e.called());
                    return Err(given.error(message, "expected a number that is not zero"));
                }
            };
        }
        let own = actuator.and_then(|a| a.text_of("name"));
        let mut own = own.or(e.text_of("name")).unwrap_or(name);
        if self.transmissions.iter().any(|t| t.actuator == own) {
            self.remarks.push(format!(
                "line {line}: the actuator `{own}` of {} has the name of another: it is called `{name}`, as its joint",
                e.called()
            ));
            own = name;
        }
        self.transmissions.push(Transmission {
            actuator: own.into(),
            joint: name.into(),
            reduction,
            span: e.span(),
        });
        Ok(())
    }
}

impl Link {
    /// Without mass and shapes.
    fn empty(span: Range<usize>) -> Self {
        Self {
            inertial: None,
            collisions: vec![],
            visuals: vec![],
            span,
        }
    }
}

fn link(e: &Element, colors: &IndexMap<String, [f64; 4]>) -> Result<Link, FormatError> {
    e.knows(&["name"], &["inertial", "visual", "collision"]);
    let mut link = Link::empty(e.span());
    if let Some(i) = e.optional("inertial")? {
        i.knows(&[], &["origin", "mass", "inertia"]);
        let (frame, m, j) = (Frame::of(&i)?, i.child("mass")?, i.child("inertia")?);
        m.knows(&["value"], &[]);
        let mass = m.number("value")?;
        if mass < 0.0 {
            let message = format!("mass of {} is {mass}", e.called());
            return Err(m.wrong("value", message, "expected kg, not negative"));
        }
        let names = ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"];
        j.knows(&names, &[]);
        let mut v = [0.0; 6];
        for (v, name) in v.iter_mut().zip(names) {
            *v = j.number(name)?;
        }
        let [xx, xy, xz, yy, yz, zz] = v;
        let r = rotation(&frame.q);
        link.inertial = Some(Inertial {
            mass,
            center: frame.x,
            inertia: r * Mat3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz) * r.transpose(),
            spans: [m.span(), j.span()],
        });
    }
    for (tag, to) in [
        ("collision", &mut link.collisions),
        ("visual", &mut link.visuals),
    ] {
        for g in e.children(tag) {
            g.knows(&["name"], &["origin", "geometry", "material"]);
            to.push(Geometry {
                frame: Frame::of(&g)?,
                shape: solid(&g.child("geometry")?)?,
                color: color(&g, colors)?,
                span: g.span(),
            });
        }
    }
    Ok(link)
}

fn color(
    e: &Element,
    colors: &IndexMap<String, [f64; 4]>,
) -> Result<Option<[f64; 4]>, FormatError> {
    let Some(material) = e.optional("material")? else {
        return Ok(None);
    };
    material.knows(&["name"], &["color"]);
    match material.optional("color")? {
        Some(own) => own.vector("rgba").map(Some),
        None => Ok(material
            .text_of("name")
            .and_then(|n| colors.get(n))
            .copied()),
    }
}

fn solid(e: &Element) -> Result<Solid, FormatError> {
    let known = ["box", "sphere", "cylinder", "capsule", "mesh"];
    e.knows(&[], &known);
    let mut found = vec![];
    if let Some(b) = e.optional("box")? {
        let edges = b.vector("size")?;
        if let Some(v) = edges.iter().find(|v| **v <= 0.0) {
            let message = format!("{} has an edge of {v} m", b.called());
            return Err(b.wrong("size", message, "expected positive lengths, m"));
        }
        found.push(Solid::Primitive(Surface::Box(edges)));
    }
    if let Some(s) = e.optional("sphere")? {
        let surface = Surface::Sphere(s.length("radius")?);
        found.push(Solid::Primitive(surface));
    }
    for tag in ["cylinder", "capsule"] {
        if let Some(c) = e.optional(tag)? {
            let (radius, length) = (c.length("radius")?, c.length("length")?);
            found.push(Solid::Primitive(match tag {
                "cylinder" => Surface::Cylinder { radius, length },
                _ => Surface::Capsule { radius, length },
            }));
        }
    }
    if let Some(m) = e.optional("mesh")? {
        m.knows(&["filename", "scale"], &[]);
        found.push(Solid::Mesh {
            file: m.attribute("filename")?.into(),
            scale: m.vector_or("scale", [1.0; 3])?,
        });
    }
    let count = found.len();
    match found.pop() {
        Some(solid) if count == 1 => Ok(solid),
        _ => Err(e.error(
            format!("{} has {count} shapes", e.called()),
            format!("give one of <{}>", known.join(">, <")),
        )),
    }
}

fn joint(e: &Element, links: &IndexMap<String, Link>) -> Result<Joint, FormatError> {
    let known = [
        "origin", "parent", "child", "axis", "limit", "dynamics", "mimic",
    ];
    e.knows(&["name", "type"], &known);
    let (kind, has_limits) = e.word("type", &KINDS)?;
    let (parent, child) = (e.child("parent")?, e.child("child")?);
    let name = |of: &Element| {
        let name = of.attribute("link")?;
        if links.contains_key(name) {
            return Ok(name.to_owned());
        }
        let message = format!(
            "<{}> of {} is the unknown link `{name}`",
            of.tag(),
            e.called()
        );
        let help = nearest(name, links.keys().map(String::as_str));
        Err(of.wrong("link", message, help))
    };
    let mut axis = Vec3::x();
    if let Some(a) = e.optional("axis")? {
        a.knows(&["xyz"], &[]);
        axis = a.vector("xyz")?.into();
        let needed = kind.has_axis();
        axis = match axis.try_normalize(1e-9) {
            Some(axis) => axis,
            None if !needed => Vec3::x(),
            None => {
                let message = format!("axis of {} has no direction", e.called());
                return Err(a.wrong("xyz", message, "give a vector of non-zero length"));
            }
        };
    }
    let mut joint = Joint {
        kind,
        origin: Frame::of(e)?,
        parent: name(&parent)?,
        child: name(&child)?,
        axis,
        limit: None,
        damping: 0.0,
        friction: 0.0,
        mimic: None,
        span: e.span(),
        spans: [parent.span(), child.span()],
    };
    if joint.parent == joint.child {
        let message = format!("{} joins `{}` to itself", e.called(), joint.child);
        return Err(child.wrong("link", message, "name two links"));
    }
    let note = |of: &Element, what: &str| e.reader.note(what.into(), of.span().start);
    let limit = e.optional("limit")?;
    if limit.is_none() && has_limits && e.optional("mimic")?.is_none() {
        note(e, "a joint without <limit> moves freely");
    }
    if let Some(l) = limit {
        l.knows(&["lower", "upper", "effort", "velocity"], &[]);
        let (lower, upper) = (l.optional_number("lower")?, l.optional_number("upper")?);
        let mut range = [lower.unwrap_or(0.0), upper.unwrap_or(0.0)];
        match lower.or(upper) {
            Some(_) if !has_limits => note(
                &l,
                "limits of a continuous, planar or floating joint are not used",
            ),
            Some(_) if range == [0.0; 2] => note(&l, "limits from 0 to 0 are taken as none"),
            _ => {}
        }
        if !has_limits || range == [0.0; 2] {
            // of a continuous joint, or only of effort and speed
            range = [f64::NEG_INFINITY, f64::INFINITY];
        }
        if range[0] >= range[1] {
            let message = format!("limits of {} are {} and {}", e.called(), range[0], range[1]);
            return Err(l.error(message, "expected lower below upper"));
        }
        let positive = |name: &str| match l.optional_number(name)? {
            Some(v) if v < 0.0 => {
                let message = format!("{name} of {} is {v}", l.called());
                Err(l.wrong(name, message, "expected a number that is not negative"))
            }
            // nothing can move at none: a way of leaving it open
            Some(0.0) => {
                note(&l, &format!("{name} of 0 in <limit> is taken as no limit"));
                Ok(None)
            }
            v => Ok(v),
        };
        joint.limit = Some(Limit {
            range,
            effort: positive("effort")?,
            speed: positive("velocity")?,
            span: l.span(),
        });
    }
    if let Some(d) = e.optional("dynamics")? {
        d.knows(&["damping", "friction"], &[]);
        for (name, to) in [
            ("damping", &mut joint.damping),
            ("friction", &mut joint.friction),
        ] {
            *to = d.optional_number(name)?.unwrap_or(0.0);
            if *to < 0.0 {
                let message = format!("{name} of {} is {to}", d.called());
                let help = "expected a number that is not negative";
                return Err(d.wrong(name, message, help));
            }
        }
    }
    if let Some(m) = e.optional("mimic")? {
        m.knows(&["joint", "multiplier", "offset"], &[]);
        let ratio = m.optional_number("multiplier")?.unwrap_or(1.0);
        if ratio == 0.0 {
            let message = format!("multiplier of {} is 0", m.called());
            return Err(m.wrong(
                "multiplier",
                message,
                "make the joint fixed, or give another",
            ));
        }
        joint.mimic = Some(Mimic {
            of: m.attribute("joint")?.into(),
            ratio,
            offset: m.optional_number("offset")?.unwrap_or(0.0),
            span: m.span(),
        });
    }
    Ok(joint)
}
