//! Gears: one joint coordinate follows another, `c = ratio c_of + offset`. A mimic joint is the same.
//!
//! With `c_f`, `c_l` the coordinates (angles unwound, so that a gear holds over any number of turns) the constraint is
//!
//! ```text
//! g = c_f - ratio c_l - offset = 0        [m] or [rad], the unit of c_f
//! ```
//!
//! and its impulse, N s or N m s, acts along the follower's direction and `-ratio` times along the leader's, as
//! actuators do. On the joints the rows of the one and the derivative of the other are the same.

use super::attached::{Law, Rows};
use super::element::{Hessian, Jacobian};
use super::error::{ModelError, nearest};
use super::joint::{Coupling, Joint, Row};
use super::{CoordinateId, Field, Freedom, Mechanism, WORLD};
use crate::spatial::Pose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A gear between two joint coordinates: that of `joint` is `ratio` times that of `of`, plus `offset`. Joints with
/// several free directions are named with the direction, as `slider.angle`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GearSpec {
    /// The coordinate that follows.
    pub joint: String,
    /// The coordinate that leads.
    pub of: String,
    /// Not zero; 1, m/rad or rad/m.
    #[serde(default = "one")]
    pub ratio: f64,
    /// m or rad
    #[serde(default)]
    pub offset: f64,
}

fn one() -> f64 {
    1.0
}

impl GearSpec {
    /// `joint = ratio of`.
    pub fn new(joint: &str, of: &str, ratio: f64) -> Self {
        Self {
            joint: joint.into(),
            of: of.into(),
            ratio,
            offset: 0.0,
        }
    }

    /// The follower's coordinate where the leader's is zero, m or rad.
    pub fn offset(mut self, offset: f64) -> Self {
        self.offset = offset;
        self
    }

    /// The gear and the bodies it acts on.
    pub(super) fn build(
        &self,
        name: &str,
        m: &Mechanism,
    ) -> Result<(Gear, Vec<usize>), ModelError> {
        let err = |field: &str, message: String, help: String| {
            ModelError::new(["gears", name, field], message, help)
        };
        let single = |(j, i): CoordinateId| m.joints[j].directions[i].freedom != Freedom::Turn;
        let find = |field: &str, wanted: &str| {
            let found = m.coordinates().find(|id| m.coordinate_name(*id) == wanted);
            let good: Vec<String> = m
                .coordinates()
                .filter(|id| single(*id))
                .map(|id| m.coordinate_name(id))
                .collect();
            let help = || nearest(wanted, good.iter().map(String::as_str));
            match found {
                Some(id) if single(id) => Ok(id),
                Some(_) => Err(err(
                    field,
                    format!(
                        "`{wanted}` is one of several rotations of its joint, which have no angles of their own"
                    ),
                    format!(
                        "gear slides and the angles of joints with one rotation; {}",
                        help()
                    ),
                )),
                None => {
                    let several = m.joint(wanted).map(|j| m.joints[j].directions.len());
                    Err(err(
                        field,
                        match several {
                            Some(n) => {
                                format!(
                                    "joint `{wanted}` has {n} free directions, a gear needs one"
                                )
                            }
                            None => {
                                format!("gear `{name}` refers to the unknown coordinate `{wanted}`")
                            }
                        },
                        help(),
                    ))
                }
            }
        };
        let (follower, leader) = (find("joint", &self.joint)?, find("of", &self.of)?);
        if follower == leader {
            return Err(err(
                "of",
                format!("gear `{name}` ties `{}` to itself", self.of),
                "name two coordinates".into(),
            ));
        }
        if self.ratio == 0.0 || !self.ratio.is_finite() {
            return Err(err(
                "ratio",
                format!("ratio of gear `{name}` is {}", self.ratio),
                "expected a finite number other than zero; to hold a coordinate, fix its joint"
                    .into(),
            ));
        }
        if !self.offset.is_finite() {
            return Err(err(
                "offset",
                format!("offset of gear `{name}` is {}", self.offset),
                "expected a finite number, m or rad".into(),
            ));
        }
        let mut bodies = vec![];
        let mut ends = |(j, _): CoordinateId| {
            let mut place = |b: usize| {
                bodies.iter().position(|x| *x == b).unwrap_or_else(|| {
                    bodies.push(b);
                    bodies.len() - 1
                })
            };
            let j = &m.joints[j];
            (j.parent.map(&mut place), place(j.child))
        };
        let gear = Gear {
            follower,
            leader,
            ratio: self.ratio,
            offset: self.offset,
            ends: [ends(follower), ends(leader)],
        };
        Ok((gear, bodies))
    }
}

/// A gear of a built mechanism.
#[derive(Clone, Debug)]
pub struct Gear {
    /// The coordinate that follows.
    pub follower: CoordinateId,
    /// The coordinate that leads.
    pub leader: CoordinateId,
    /// Not zero; 1, m/rad or rad/m.
    pub ratio: f64,
    /// m or rad
    pub offset: f64,
    /// Parents and children of both joints among the bodies of the gear.
    ends: [(Option<usize>, usize); 2],
}

impl Mechanism {
    /// Index and name of every gear; they are the first of the constraints.
    pub(super) fn gear_names(&self) -> impl Iterator<Item = (usize, &str)> {
        let all = self.constraints.iter().enumerate();
        all.filter(|(_, c)| matches!(c.law, Law::Gear(_)))
            .map(|(i, c)| (i, c.name.as_str()))
    }

    /// All of them.
    pub(crate) fn gears(&self) -> impl Iterator<Item = &Gear> {
        self.constraints.iter().filter_map(|c| match &c.law {
            Law::Gear(g) => Some(g),
            _ => None,
        })
    }

    /// A gear by its index.
    pub(crate) fn gear(&self, index: usize) -> &Gear {
        match &self.constraints[index].law {
            Law::Gear(g) => Some(g),
            _ => None,
        }
        .expect("a gear's field is made with its index")
    }

    pub(super) fn gear_mut(&mut self, index: usize) -> &mut Gear {
        match &mut self.constraints[index].law {
            Law::Gear(g) => Some(g),
            _ => None,
        }
        .expect("a gear's field is made with its index")
    }

    /// Refuses a parameter that moves an anchor of a geared slide: the gear has no derivative by it.
    pub(super) fn refuse_geared(
        &self,
        parameter: &str,
        path: &str,
        field: Field,
    ) -> Result<(), ModelError> {
        let (Field::ParentAnchor(joint, _) | Field::ChildAnchor(joint, _)) = field else {
            return Ok(());
        };
        let slides = |(j, i): CoordinateId| {
            j == joint && self.joints[j].directions[i].freedom == Freedom::Slide
        };
        let gear = self.constraints.iter().find(|c| match &c.law {
            Law::Gear(g) => slides(g.follower) || slides(g.leader),
            _ => false,
        });
        gear.map_or(Ok(()), |c| {
            Err(ModelError::new(
                ["parameters", parameter, "of"],
                format!("`{path}` moves a slide that gear `{}` ties", c.name),
                "a gear has no derivative by the anchors of its slides; choose another parameter",
            ))
        })
    }
}

/// A coordinate of a gear at given poses of the gear's bodies.
struct Side<'a> {
    joint: &'a Joint,
    direction: usize,
    factor: f64,
    ends: (Option<usize>, usize),
    a: &'a Pose,
    b: &'a Pose,
}

impl Gear {
    fn sides<'a>(&self, joints: &'a [Joint], poses: &'a [Pose]) -> [Side<'a>; 2] {
        let side = |(joint, direction): CoordinateId, factor, ends: (Option<usize>, usize)| Side {
            joint: &joints[joint],
            direction,
            factor,
            ends,
            a: ends.0.map_or(&*WORLD, |p| &poses[p]),
            b: &poses[ends.1],
        };
        [
            side(self.follower, 1.0, self.ends[0]),
            side(self.leader, -self.ratio, self.ends[1]),
        ]
    }

    /// `c_f - ratio c_l - offset`, angles nearest to `near`.
    pub(super) fn value(
        &self,
        joints: &[Joint],
        poses: &[Pose],
        near: impl Fn(CoordinateId) -> f64,
    ) -> f64 {
        let ids = [self.follower, self.leader];
        let sides = self.sides(joints, poses);
        let sum: f64 = sides
            .iter()
            .zip(ids)
            .map(|(s, id)| {
                let rel = s.joint.relative(s.a, s.b);
                s.factor * s.joint.coordinate(s.direction, &rel, near(id))
            })
            .sum();
        sum - self.offset
    }

    /// Size of the coordinates on these branches: many turns round off at many times their size.
    pub(super) fn size(&self, near: impl Fn(CoordinateId) -> f64) -> f64 {
        near(self.follower)
            .abs()
            .max((self.ratio * near(self.leader)).abs())
    }

    pub(super) fn jacobian(
        &self,
        joints: &[Joint],
        poses: &[Pose],
        which: Rows,
        out: &mut Jacobian,
    ) {
        for s in self.sides(joints, poses) {
            let rel = s.joint.relative(s.a, s.b);
            let row: Row = match which {
                Rows::Impulse => s.joint.direction_row(s.direction, s.a, s.b, &rel),
                Rows::Value => s.joint.coordinate_row(s.direction, s.a, s.b, &rel),
            };
            if let Some(p) = s.ends.0 {
                out.add_six(0, p, &(row.parent() * s.factor));
            }
            out.add_six(0, s.ends.1, &(row.child() * s.factor));
        }
    }

    pub(super) fn hessian(&self, joints: &[Joint], poses: &[Pose], lambda: f64, out: &mut Hessian) {
        for s in self.sides(joints, poses) {
            let d = &s.joint.directions[s.direction];
            let unit = d.unit * (lambda * s.factor);
            let mut c = Coupling::default();
            if d.freedom == Freedom::Slide {
                let rel = s.joint.relative(s.a, s.b);
                s.joint.add_force_derivative(&unit, s.a, s.b, &rel, &mut c);
            } else {
                Joint::add_torque_derivative(&unit, s.a, s.b, &mut c);
            }
            let (parent, child) = s.ends;
            out.add_block(child, child, &c.bb.0);
            if let Some(p) = parent {
                out.add_block(p, p, &c.aa.0);
                out.add_block(p, child, &c.ab.0);
                out.add_block(child, p, &c.ba.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::element_samples::check_gear;
    use crate::mechanism::samples::tree;
    use crate::mechanism::{JointKind, MechanismBuilder, random_poses};

    fn geared(gear: GearSpec) -> Result<Mechanism, ModelError> {
        use JointKind::{Cylindrical, Revolute, Spherical};
        let m: MechanismBuilder = tree(3, &[Revolute, Cylindrical, Spherical, Revolute]);
        m.gear("g", gear).build()
    }

    #[test]
    fn its_derivatives_match_differences() {
        for (a, b) in [("j0", "j1.angle"), ("j1.d", "j3"), ("j1.d", "j1.angle")] {
            let m = geared(GearSpec::new(a, b, -1.3).offset(0.4)).expect("valid");
            let c = &m.constraints[0];
            for seed in 0..5 {
                let poses = random_poses(c.bodies.len(), seed);
                check_gear(&m, c, &poses).expect("right");
            }
        }
    }

    #[test]
    fn wrong_gears_are_named() {
        for (gear, field, message, help) in [
            (
                GearSpec::new("j7", "j0", 1.0),
                "joint",
                "gear `g` refers to the unknown coordinate `j7`",
                "valid names: `j0`",
            ),
            (
                GearSpec::new("j0", "j1", 1.0),
                "of",
                "joint `j1` has 2 free directions, a gear needs one",
                "did you mean `j1.",
            ),
            (
                GearSpec::new("j2.rx", "j0", 1.0),
                "joint",
                "`j2.rx` is one of several rotations of its joint, which have no angles of their own",
                "gear slides and the angles of joints with one rotation",
            ),
            (
                GearSpec::new("j0", "j0", 1.0),
                "of",
                "gear `g` ties `j0` to itself",
                "name two",
            ),
            (
                GearSpec::new("j0", "j3", 0.0),
                "ratio",
                "ratio of gear `g` is 0",
                "other than zero",
            ),
            (
                GearSpec::new("j0", "j3", 1.0).offset(f64::NAN),
                "offset",
                "offset of gear `g` is NaN",
                "finite",
            ),
        ] {
            let error = geared(gear).expect_err("wrong");
            assert_eq!(error.path, ["gears", "g", field]);
            assert_eq!(error.message, message);
            assert!(error.help.contains(help), "{}", error.help);
        }
    }

    #[test]
    fn anchors_of_geared_slides_are_no_parameters() {
        use JointKind::{Cylindrical, Revolute};
        let m = || tree(3, &[Revolute, Cylindrical]).parameter("p", &["joints.j1.child_anchor.x"]);
        m().gear("g", GearSpec::new("j1.angle", "j0", 2.0))
            .build()
            .expect("angles do not depend on anchors");
        let error = m()
            .gear("g", GearSpec::new("j1.d", "j0", 2.0))
            .build()
            .expect_err("slides do");
        assert_eq!(error.path, ["parameters", "p", "of"]);
    }
}
