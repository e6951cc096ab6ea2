//! Shapes of links: what of them touches, and what they look like.

use super::assemble::{Assembly, oriented};
use super::mesh;
use super::robot::{Frame, Geometry, Solid};
use crate::format::problem::Names;
use crate::format::recording::Visual;
use crate::format::source::{FormatError, nearest};
use crate::mechanism::{ContactSpec, Surface};
use crate::spatial::{Quat, Vec3};

impl Assembly<'_> {
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
        let chosen: Vec<&str> = match (all, none) {
            (true, _) => robot.links.keys().map(String::as_str).collect(),
            (_, true) => vec![],
            _ => words.iter().map(String::as_str).collect(),
        };
        for name in chosen {
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
                let surface = match self.surface(g) {
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

    fn surface(&self, g: &Geometry) -> Result<Surface, String> {
        match &g.shape {
            Solid::Primitive(surface) => Ok(surface.clone()),
            Solid::Mesh { file, scale } => {
                let triangles = mesh::read(self.source.path(), file, scale)?;
                mesh::hull(&triangles).map(Surface::Hull)
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
