//! Parts that are written once and repeated as their mirror image.
//!
//! A reflection `S` takes places `a` to `S a`, inertias `J` to `S J S` and rotations `R` to `S R S`. Axes of slides are taken to
//! `S a`, those of turns, which have a sense besides, to `-S a`: at equal coordinates the copy is the mirror image, rates,
//! limits and efforts included.

use super::builder::{BodySpec, Inertia, JointSpec, MechanismBuilder, Orientation};
use super::contact::{Hull, Surface};
use super::error::ModelError;
use super::joint::JointKind;
use super::rotation::Rotation;
use crate::spatial::{Mat3, Vec3};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Every body, joint, spring, gear and actuator whose name begins with one of `names` is repeated under the other name,
/// mirrored across a plane through the origin of whatever frame it is written in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorSpec {
    /// Beginnings of names, and what takes their place, as `{ right = "left" }`.
    pub names: IndexMap<String, String>,
    /// The axis along which places change their sign.
    pub along: MirrorAxis,
}

/// Normal of the plane of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MirrorAxis {
    /// The plane is x = 0.
    X,
    /// The plane is y = 0.
    Y,
    /// The plane is z = 0.
    Z,
}

impl MirrorSpec {
    /// The name of the image of what has this name, if it has one.
    fn image(&self, name: &str) -> Option<String> {
        let of = |(from, to): (&String, &String)| {
            Some(format!("{to}{}", name.strip_prefix(from.as_str())?))
        };
        self.names.iter().find_map(of)
    }

    /// The same, or the name itself.
    fn or_itself(&self, name: &str) -> String {
        self.image(name).unwrap_or_else(|| name.into())
    }

    fn signs(&self) -> Vec3 {
        let mut signs = Vec3::repeat(1.0);
        signs[self.along as usize] = -1.0;
        signs
    }

    fn place(&self, a: [f64; 3]) -> [f64; 3] {
        Vec3::from(a).component_mul(&self.signs()).into()
    }

    /// Of torques and axes of turns.
    fn turn(&self, a: [f64; 3]) -> [f64; 3] {
        (-Vec3::from(a).component_mul(&self.signs())).into()
    }

    fn orientation(&self, o: Orientation) -> Orientation {
        match o.quat() {
            // what is no rotation is told where it is built
            None => o,
            Some(q) => {
                let [x, y, z] = self.turn([q.i, q.j, q.k]);
                Orientation::Quaternion([q.w, x, y, z])
            }
        }
    }

    fn body(&self, b: &BodySpec) -> BodySpec {
        let mut b = b.clone();
        b.center_of_mass = b.center_of_mass.map(|c| self.place(c));
        if let Some(Inertia::Full(rows)) = &mut b.inertia {
            let s = Mat3::from_diagonal(&self.signs());
            let j = s * Mat3::from_fn(|i, k| rows[i][k]) * s;
            *rows = [0, 1, 2].map(|i| [0, 1, 2].map(|k| j[(i, k)]));
        }
        if let Some(Rotation::SpinAbout(axis)) = &mut b.rotation {
            *axis = self.turn(*axis);
        }
        let contacts = std::mem::take(&mut b.contacts).into_iter();
        b.contacts = contacts
            .map(|(name, mut c)| {
                c.position = self.place(c.position);
                c.orientation = c.orientation.map(|o| self.orientation(o));
                if let Some(Surface::Hull(hull)) = &c.shape {
                    let points: Vec<[f64; 3]> = hull.clone().into();
                    let points: Vec<[f64; 3]> = points.iter().map(|p| self.place(*p)).collect();
                    // an image of a hull is one
                    c.shape = Hull::new(&points).ok().map(Surface::Hull);
                }
                (self.or_itself(&name), c)
            })
            .collect();
        b
    }

    fn joint(&self, name: &str, j: &JointSpec) -> Result<JointSpec, ModelError> {
        use JointKind::{Fixed, Floating, Prismatic, Revolute, Spherical};
        if !matches!(j.kind, Fixed | Floating | Prismatic | Revolute | Spherical) {
            return Err(ModelError::new(
                ["joints", name, "kind"],
                format!(
                    "joint `{name}` of kind `{}` has no mirror image",
                    j.kind.name()
                ),
                "its directions would not be those of the image: write the image out, or chain revolute and prismatic joints",
            ));
        }
        let mut j = j.clone();
        (j.parent, j.child) = (self.or_itself(&j.parent), self.or_itself(&j.child));
        j.axis = j.axis.map(|a| match j.kind {
            Prismatic => self.place(a),
            _ => self.turn(a),
        });
        (j.parent_anchor, j.child_anchor) =
            (self.place(j.parent_anchor), self.place(j.child_anchor));
        j.orientation = j.orientation.map(|o| self.orientation(o));
        Ok(j)
    }
}

impl MechanismBuilder {
    /// The same with the images of [`MechanismBuilder::mirror`] written out.
    ///
    /// # Errors
    /// Where nothing has an image, or an image bears a name that is taken.
    pub fn mirrored(&self) -> Result<Self, ModelError> {
        let mut out = self.clone();
        for (name, mirror) in std::mem::take(&mut out.mirror) {
            out.reflect(&name, &mirror)?;
        }
        Ok(out)
    }

    fn reflect(&mut self, name: &str, mirror: &MirrorSpec) -> Result<(), ModelError> {
        let own = self.clone();
        for from in mirror.names.keys() {
            if !own.bodies.keys().any(|b| b.starts_with(from.as_str())) {
                return Err(ModelError::new(
                    ["mirror", name, "names", from],
                    format!("no body's name begins with `{from}`"),
                    "give the beginning of the names of the bodies that are to be repeated",
                ));
            }
        }
        let taken = |kind: &str, image: &str| {
            ModelError::new(
                ["mirror", name],
                format!("the image of one of the {kind} would be `{image}`, which there is"),
                "choose another beginning, or leave out what was written twice",
            )
        };
        for (k, b) in &own.bodies {
            if let Some(image) = mirror.image(k)
                && self.bodies.insert(image.clone(), mirror.body(b)).is_some()
            {
                return Err(taken("bodies", &image));
            }
        }
        for (k, j) in &own.joints {
            if let Some(image) = mirror.image(k)
                && (self.joints.insert(image.clone(), mirror.joint(k, j)?)).is_some()
            {
                return Err(taken("joints", &image));
            }
        }
        for (k, s) in &own.springs {
            let Some(image) = mirror.image(k) else {
                continue;
            };
            let mut s = s.clone();
            (s.parent, s.child) = (mirror.or_itself(&s.parent), mirror.or_itself(&s.child));
            (s.parent_anchor, s.child_anchor) =
                (mirror.place(s.parent_anchor), mirror.place(s.child_anchor));
            if self.springs.insert(image.clone(), s).is_some() {
                return Err(taken("springs", &image));
            }
        }
        for (k, g) in &own.gears {
            let Some(image) = mirror.image(k) else {
                continue;
            };
            let mut g = g.clone();
            (g.joint, g.of) = (mirror.or_itself(&g.joint), mirror.or_itself(&g.of));
            if self.gears.insert(image.clone(), g).is_some() {
                return Err(taken("gears", &image));
            }
        }
        for (k, a) in &own.actuators {
            let Some(image) = mirror.image(k) else {
                continue;
            };
            let mut a = a.clone();
            a.joint = a.joint.map(|j| mirror.or_itself(&j));
            a.body = a.body.map(|b| mirror.or_itself(&b));
            (a.force, a.point, a.torque) = (
                mirror.place(a.force),
                mirror.place(a.point),
                mirror.turn(a.torque),
            );
            if self.actuators.insert(image.clone(), a).is_some() {
                return Err(taken("actuators", &image));
            }
        }
        let side = |side: &String| {
            let of_body = |body: &String| {
                let contact = side.strip_prefix(body.as_str())?.strip_prefix('.')?;
                Some(format!(
                    "{}.{}",
                    mirror.image(body)?,
                    mirror.or_itself(contact)
                ))
            };
            let contact = own.bodies.keys().find_map(of_body);
            contact.unwrap_or_else(|| mirror.or_itself(side))
        };
        for (k, pair) in &own.friction_pairs {
            let mut pair = pair.clone();
            pair.between = pair.between.each_ref().map(side);
            if pair.between != own.friction_pairs[k].between {
                let image = mirror.image(k).unwrap_or_else(|| format!("{k} {name}"));
                if self.friction_pairs.insert(image.clone(), pair).is_some() {
                    return Err(taken("friction pairs", &image));
                }
            }
        }
        for pair in &own.excluded_pairs {
            let image = pair.each_ref().map(side);
            if image != *pair {
                self.excluded_pairs.push(image);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trunk with a leg, and its image.
    fn robot() -> MechanismBuilder {
        let leg = JointSpec::new(JointKind::Revolute, "right_leg").axis([1.0, 0.0, 0.0]);
        let names = [("right_".into(), "left_".into())].into();
        let along = MirrorAxis::Y;
        MechanismBuilder::new()
            .body("trunk", BodySpec::new(3.0).inertia([0.1; 3]).free())
            .body("right_leg", BodySpec::new(1.0).inertia([0.1; 3]))
            .joint("right_hip", leg.parent("trunk"))
            .mirror("left", MirrorSpec { names, along })
    }

    #[test]
    fn what_has_no_image_is_told() {
        let mut other = robot();
        other.mirror["left"].names = [("rigt_".into(), "left_".into())].into();
        let said = other.mirrored().unwrap_err();
        assert_eq!(said.path, ["mirror", "left", "names", "rigt_"]);
        let mut twice = robot();
        twice.mirror["left"].names = [("right_".into(), "right_".into())].into();
        assert!(
            twice
                .build()
                .unwrap_err()
                .message
                .contains("which there is")
        );
        let mut kind = robot();
        kind.joints["right_hip"].kind = JointKind::Orbital;
        assert!(
            kind.build()
                .unwrap_err()
                .message
                .contains("no mirror image")
        );
    }
}
