//! Shapes of links: what of them touches, and what they look like.

use super::assemble::{Assembly, oriented};
use super::hull::{self, Vertices};
use super::mesh;
use super::robot::{Frame, Geometry, Solid};
use crate::format::problem::Names;
use crate::format::recording::Visual;
use crate::format::source::{FormatError, nearest};
use crate::mechanism::{ContactSpec, JointKind, Surface, TerrainShape, TerrainSpec};
use crate::spatial::{Quat, Vec3};
use indexmap::IndexMap;

impl<'a> Assembly<'a> {
    /// Collision shapes of the links that are named.
    pub(super) fn contacts(&mut self) -> Result<(), FormatError> {
        let (robot, import) = (self.robot, self.import);
        let has_ground = !import.half_spaces.is_empty() || !import.terrain.is_empty();
        let words: &[String] = import.contacts.as_ref().map_or(&[], Names::as_slice);
        let (all, none) = match words {
            [] => (has_ground && import.contacts.is_none(), true),
            [one] => (one == "all", one == "none"),
            _ => (false, false),
        };
        let grounded: Vec<&str> = match (all, none) {
            (true, _) => robot.links.keys().map(String::as_str).collect(),
            (_, true) => vec![],
            _ => words.iter().map(String::as_str).collect(),
        };
        let groups = self.self_groups()?;
        let others = groups.keys().filter(|l| !grounded.contains(l));
        let chosen: Vec<&str> = grounded.iter().chain(others).copied().collect();
        for name in chosen {
            // a link that only a group takes, as one of all
            let all = all || !grounded.contains(&name);
            let Some(&(group, frame)) = self.places.get(name) else {
                let known = robot.links.keys().map(String::as_str);
                return Err(self.of_import(
                    &["contacts"],
                    format!("[import] names the unknown link `{name}`"),
                    nearest(name, known),
                ));
            };
            let link = self.link(name);
            if !all && link.collisions.is_empty() {
                return Err(self.of_import(
                    &["contacts"],
                    format!("link `{name}` has no collision shape"),
                    format!("give it one: feet.{name}.tip = {{ shape = \"point\", position = [..] }} under [import]"),
                ));
            }
            let Some(body) = self.groups[group].body.clone() else {
                let own = groups.get(name).filter(|_| group == 0);
                if let Some((own, _)) = own {
                    self.hold(name, &frame, own);
                    continue;
                }
                if !all {
                    return Err(self.of_import(
                        &["contacts"],
                        format!("link `{name}` does not move, or has no mass"),
                        "name links that move",
                    ));
                }
                continue;
            };
            for (k, g) in link.collisions.iter().enumerate() {
                let surface = match self.surface((name, g)) {
                    Ok(surface) => surface,
                    Err(why) if all => {
                        self.remarks
                            .push(format!("link `{name}` touches nothing: {why}"));
                        continue;
                    }
                    Err(why) => {
                        let help = "give it another shape under feet, in [import]";
                        let message = format!("collision shape of link `{name}`: {why}");
                        return Err(self.error(&g.span, message, help));
                    }
                };
                let at = frame.then(&g.frame);
                let mut c = ContactSpec::new(import.friction)
                    .shape(surface)
                    .at(at.x.into());
                c.orientation = oriented(&at.q);
                if !grounded.contains(&name) {
                    c.against.clear();
                }
                if let Some((group, against)) = groups.get(name) {
                    c.group.clone_from(group);
                    c.against.extend(against.iter().cloned());
                }
                let called = match link.collisions.len() {
                    1 => name.to_owned(),
                    _ => format!("{name} {}", k + 1),
                };
                let place = ["bodies", &body, "contacts", &called];
                self.source.place(&place, g.span.clone());
                self.builder.bodies[&body].contacts.insert(called, c);
            }
        }
        for (name, feet) in &import.feet {
            let place = self.places.get(name).copied();
            let body = place.and_then(|(g, f)| Some((self.groups[g].body.clone()?, f)));
            let Some((body, frame)) = body else {
                let links = self.places.iter();
                let moving = links.filter(|(_, (g, _))| self.groups[*g].body.is_some());
                return Err(self.of_import(
                    &["feet", name],
                    format!("`{name}` is no link that moves"),
                    nearest(name, moving.map(|(l, _)| l.as_str())),
                ));
            };
            for (foot, given) in feet {
                let mut c = given.clone();
                let own = given
                    .orientation
                    .map_or(Some(Quat::identity()), |o| o.quat());
                let at = frame.then(&Frame {
                    x: given.position.into(),
                    q: own.unwrap_or_default(),
                });
                c.position = at.x.into();
                if own.is_some() {
                    c.orientation = oriented(&at.q);
                }
                if c.friction == 0.0 {
                    c.friction = import.friction;
                }
                let others = &mut self.builder.bodies[&body].contacts;
                if others.insert(foot.clone(), c).is_some() {
                    return Err(self.of_import(
                        &["feet", name, foot],
                        format!("`{foot}` is the name of another contact of the body"),
                        "give it another name, or leave the link out of contacts",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Collision shapes of a link that the world holds, in a group of [import.self_contacts]: terrain.
    fn hold(&mut self, name: &str, frame: &Frame, group: &str) {
        let link = self.link(name);
        for (k, g) in link.collisions.iter().enumerate() {
            let shape = match self.surface((name, g)) {
                Ok(Surface::Box(edges)) => Ok(TerrainShape::Box(edges)),
                Ok(Surface::Hull(hull)) => Ok(TerrainShape::Hull(hull)),
                Ok(_) => Err("of what the world holds, only boxes and meshes do".to_owned()),
                Err(why) => Err(why),
            };
            let shape = match shape {
                Ok(shape) => shape,
                Err(why) => {
                    self.remarks
                        .push(format!("a shape of link `{name}` touches nothing: {why}"));
                    continue;
                }
            };
            let at = frame.then(&g.frame);
            let mut solid = TerrainSpec::new(shape, self.import.friction).at(at.x.into());
            solid.orientation = oriented(&at.q);
            group.clone_into(&mut solid.group);
            let mut called = match link.collisions.len() {
                1 => name.to_owned(),
                _ => format!("{name} {}", k + 1),
            };
            while self.import.terrain.contains_key(&called) {
                called += " of the robot";
            }
            self.builder.terrain.insert(called, solid);
        }
    }

    /// Shapes that the world holds and those of [import.self_contacts] collide by either's mask.
    pub(super) fn meet_held(&mut self, held: &[String]) -> Result<(), FormatError> {
        let masks = self.self_groups()?;
        let b = &mut self.builder;
        for name in held {
            let own = &b.terrain[name].group;
            let mask = masks.values().find(|(group, _)| group == own);
            let mask = mask.map_or(&[][..], |(_, against)| against);
            for c in b.bodies.values_mut().flat_map(|o| o.contacts.values_mut()) {
                if mask.contains(&c.group) && !c.against.contains(own) {
                    c.against.push(own.clone());
                }
            }
        }
        Ok(())
    }

    /// Shapes that the world holds do not collide with bodies on joints of the world.
    pub(super) fn spare_tied(&mut self, held: &[String]) {
        let b = &mut self.builder;
        let on_world = |body: &str| {
            let mut joints = b.joints.values().filter(|j| j.kind != JointKind::Floating);
            joints.any(|j| j.parent == "world" && j.child == body)
        };
        let touch = b
            .bodies
            .iter()
            .filter(|(_, spec)| !spec.contacts.is_empty());
        let tied = touch.filter(|(body, _)| on_world(body));
        let tied: Vec<String> = tied.map(|(body, _)| body.clone()).collect();
        let pairs = held
            .iter()
            .flat_map(|name| tied.iter().map(move |body| [name, body]));
        b.excluded_pairs
            .extend(pairs.map(|pair| pair.map(String::clone)));
    }

    /// The group of every link that [import.self_contacts] takes, and the groups that it collides with.
    fn self_groups(&self) -> Result<IndexMap<&'a str, (String, Vec<String>)>, FormatError> {
        let (robot, groups) = (self.robot, &self.import.self_contacts);
        let mut out: IndexMap<&'a str, (String, Vec<String>)> = IndexMap::new();
        for (name, spec) in groups {
            let path = ["self_contacts", name.as_str()];
            let mask = spec.against.clone();
            let mask = mask.unwrap_or_else(|| vec![name.clone()]);
            if let Some(other) = mask.iter().find(|g| !groups.contains_key(*g)) {
                return Err(self.of_import(
                    &[&path[..], &["against"]].concat(),
                    format!(
                        "group `{name}` of self_contacts is against the unknown group `{other}`"
                    ),
                    nearest(other, groups.keys().map(String::as_str)),
                ));
            }
            let links = spec.links.as_ref().map_or(&[][..], Names::as_slice);
            for link in links.iter().filter(|_| !spec.is_all()) {
                let place = [&path[..], &["links"]].concat();
                let Some((link, found)) = robot.links.get_key_value(link) else {
                    return Err(self.of_import(
                        &place,
                        format!("group `{name}` of self_contacts names the unknown link `{link}`"),
                        nearest(link, robot.links.keys().map(String::as_str)),
                    ));
                };
                if found.collisions.is_empty() {
                    return Err(self.of_import(
                        &place,
                        format!("link `{link}` of self_contacts has no collision shape"),
                        "leave it out, or give it one in the robot's file",
                    ));
                }
                let group = (name.clone(), mask.clone());
                if let Some((other, _)) = out.insert(link, group) {
                    return Err(self.of_import(
                        &place,
                        format!("link `{link}` is in two groups of self_contacts, `{other}` and `{name}`"),
                        "leave it to one of them, and name that in `against` of the others",
                    ));
                }
            }
        }
        let mut rest = groups.iter().filter(|(_, spec)| spec.is_all());
        if let (Some((name, spec)), second) = (rest.next(), rest.next()) {
            if let Some((second, _)) = second {
                return Err(self.of_import(
                    &["self_contacts", second.as_str()],
                    format!(
                        "the groups `{name}` and `{second}` of self_contacts both take all links"
                    ),
                    "give one of them a list of links",
                ));
            }
            let mask = spec.against.clone();
            let mask = mask.unwrap_or_else(|| vec![name.clone()]);
            let shaped = robot.links.iter().filter(|(_, l)| !l.collisions.is_empty());
            for (link, _) in shaped {
                if !out.contains_key(link.as_str()) {
                    out.insert(link, (name.clone(), mask.clone()));
                }
            }
        }
        Ok(out)
    }

    /// Leaves out shapes of [import.self_contacts] that can touch nothing, because all others that they could touch belong to
    /// the same body or to one connected by a joint.
    pub(super) fn leave_out_idle(&mut self) {
        if self.import.self_contacts.is_empty() {
            return;
        }
        let b = &self.builder;
        let connected = |p: &str, q: &str| {
            let mut joints = b.joints.values().filter(|j| j.kind != JointKind::Floating);
            joints.any(|j| (&*j.parent, &*j.child) == (p, q) || (&*j.parent, &*j.child) == (q, p))
        };
        let world = b.half_spaces.values().map(|h| &h.group);
        let world: Vec<&String> = world.chain(b.terrain.values().map(|t| &t.group)).collect();
        let mut idle = vec![];
        for (body, spec) in &b.bodies {
            let others = b
                .bodies
                .iter()
                .filter(|(other, _)| *other != body && !connected(body, other));
            let others: Vec<&ContactSpec> = others.flat_map(|(_, o)| o.contacts.values()).collect();
            let own = spec.contacts.iter();
            for (name, c) in own.filter(|(_, c)| self.import.self_contacts.contains_key(&c.group)) {
                let meets =
                    |o: &&ContactSpec| c.against.contains(&o.group) || o.against.contains(&c.group);
                let grounded = world.iter().any(|g| c.against.contains(g));
                if !grounded && !others.iter().any(meets) {
                    idle.push((body.clone(), name.clone()));
                }
            }
        }
        for (body, name) in idle {
            self.builder.bodies[&body].contacts.shift_remove(&name);
            self.remarks.push(format!(
                "shape `{name}` of self_contacts touches nothing: all that its group is against is on its own body, or on one connected to it by a joint"
            ));
        }
    }

    /// Excluded pairs; a link stands for all its collision shapes.
    pub(super) fn exclude(&mut self) -> Result<(), FormatError> {
        let import = self.import;
        for [p, q] in &import.excluded_pairs {
            let sides = |name: &String| -> Vec<String> {
                let body = self.places.get(name);
                let body = body.and_then(|(group, _)| self.groups[*group].body.as_ref());
                let (Some(link), Some(body)) = (self.robot.links.get(name), body) else {
                    return vec![name.clone()];
                };
                match link.collisions.len() {
                    0 => vec![name.clone()],
                    1 => vec![format!("{body}.{name}")],
                    n => (1..=n).map(|k| format!("{body}.{name} {k}")).collect(),
                }
            };
            let (first, second) = (sides(p), sides(q));
            let exists = |side: &String| {
                let known = &self.builder;
                let mut contacts = (known.bodies.iter())
                    .flat_map(|(b, spec)| spec.contacts.keys().map(move |c| format!("{b}.{c}")));
                known.bodies.contains_key(side)
                    || known.half_spaces.contains_key(side)
                    || known.terrain.contains_key(side)
                    || contacts.any(|c| c == *side)
            };
            for (name, found) in [(p, &first), (q, &second)] {
                if !found.iter().any(exists) && !self.robot.links.contains_key(name) {
                    let links = self.robot.links.keys().map(String::as_str);
                    let world =
                        (self.builder.half_spaces.keys()).chain(self.builder.terrain.keys());
                    return Err(self.of_import(
                        &["excluded_pairs"],
                        format!("excluded_pairs names `{name}`, which is no link, half-space or terrain that may touch"),
                        nearest(name, links.chain(world.map(String::as_str))),
                    ));
                }
            }
            let all = first
                .iter()
                .flat_map(|a| second.iter().map(move |b| (a, b)));
            let known: Vec<[String; 2]> = all
                .filter(|(a, b)| exists(a) && exists(b))
                .map(|(a, b)| [a.clone(), b.clone()])
                .collect();
            self.builder.excluded_pairs.extend(known);
        }
        Ok(())
    }

    /// The surface of a collision shape; a mesh's hull may be smaller than the mesh, which the remarks then say.
    fn surface(&mut self, (link, g): (&str, &Geometry)) -> Result<Surface, String> {
        match &g.shape {
            Solid::Primitive(surface) => Ok(surface.clone()),
            Solid::Mesh { file, scale } => {
                let triangles = mesh::read(self.source.path(), file, scale)?;
                let is_rough = |t: &TerrainSpec| matches!(t.shape, TerrainShape::Heights { .. });
                // then every vertex is a contact
                let few = self.import.terrain.values().any(is_rough);
                let most = match (few, self.import.self_contacts.is_empty()) {
                    (true, _) => hull::FEW,
                    (false, false) => hull::PAIRED,
                    (false, true) => hull::VERTICES,
                };
                let vertices = self.import.hull_vertices.map(Vertices::UpTo);
                let points = triangles.iter().flatten().copied();
                let reduced = hull::reduced(points, vertices.unwrap_or(Vertices::Enough(most)))?;
                if reduced.beyond > 0.0 {
                    self.remarks.push(format!(
                        "collision mesh of link `{link}`: its hull has {} of {} vertices and is up to {:.3} mm ({:.1} % of its size) smaller than the mesh; hull_vertices = N under [import] takes more",
                        reduced.taken,
                        reduced.given,
                        1e3 * reduced.beyond,
                        100.0 * reduced.beyond / reduced.size
                    ));
                }
                Ok(Surface::Hull(reduced.hull))
            }
        }
    }

    /// What bodies look like; a link whose meshes cannot be read looks like what touches of it.
    pub(super) fn dress(&mut self) {
        let mut unread: Vec<String> = vec![];
        for (name, (group, frame)) in &self.places {
            let link = self.link(name);
            let body = self.groups[*group].body.as_ref();
            let body = body.and_then(|b| self.builder.bodies.get_full(b));
            let Some((index, _, spec)) = body else {
                continue;
            };
            let center = Vec3::from(spec.center_of_mass.unwrap_or_default());
            let mut seen = |g: &Geometry| {
                let at = frame.then(&g.frame);
                let mut visual = Visual::of(Some(index));
                visual.color = g.color.map(|[r, g, b, _]| [r, g, b]);
                match &g.shape {
                    Solid::Primitive(surface) => {
                        visual.shape = Some(surface.clone());
                        visual.position = (at.x - center).into();
                        visual.orientation = [at.q.w, at.q.i, at.q.j, at.q.k];
                    }
                    Solid::Mesh { file, scale } => {
                        let triangles = match mesh::read(self.source.path(), file, scale) {
                            Ok(triangles) => triangles,
                            Err(why) => {
                                unread.push(why);
                                return None;
                            }
                        };
                        let (vertices, triangles) = mesh::simplified(&triangles);
                        let placed = |p: Vec3| (at.x + at.q * p - center).map(mesh::rounded).into();
                        visual.vertices = vertices.into_iter().map(placed).collect();
                        visual.triangles = triangles;
                    }
                }
                Some(visual)
            };
            let own: Vec<Visual> = link.visuals.iter().filter_map(&mut seen).collect();
            let others = match own.is_empty() && !link.visuals.is_empty() {
                true => link.collisions.iter().filter_map(&mut seen).collect(),
                false => vec![],
            };
            self.visuals.extend(own.into_iter().chain(others));
        }
        unread.sort();
        unread.dedup();
        if let Some(first) = unread.first() {
            self.remarks.push(format!(
                "{} meshes are not shown, collision shapes in their place where there are any: {first}",
                unread.len()
            ));
        }
    }
}
