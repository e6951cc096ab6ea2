//! How contacts change with the numbers of colliders and half-spaces.

use super::ball::Grown;
use super::{Contact, Meeting, Pair, Surface, Touch, between, half_space};
use crate::mechanism::{Field, Mechanism};
use crate::spatial::{Pose, Vec3};
use std::cmp::Ordering;

impl Surface {
    /// A number of it: `None` where it has no such.
    pub(in crate::mechanism) fn number(&mut self, field: Field) -> Option<&mut f64> {
        match (field, self) {
            (
                Field::ContactRadius(_),
                Self::Sphere(r)
                | Self::Capsule { radius: r, .. }
                | Self::Cylinder { radius: r, .. },
            ) => Some(r),
            (
                Field::ContactLength(_),
                Self::Capsule { length, .. } | Self::Cylinder { length, .. },
            ) => Some(length),
            (Field::ContactEdge(_, k), Self::Box(edges)) => edges.get_mut(k),
            _ => None,
        }
    }
}

/// The collider a field belongs to, and the size along which axis it is, if it is one.
fn collider(field: Field) -> Option<(usize, Option<usize>)> {
    match field {
        Field::ContactRadius(c) | Field::ContactPosition(c, _) => Some((c, None)),
        Field::ContactLength(c) => Some((c, Some(2))),
        Field::ContactEdge(c, k) => Some((c, Some(k))),
        _ => None,
    }
}

impl Mechanism {
    /// How the contact changes with a number of the mechanism, with what meets held; `None` where it does not.
    pub(crate) fn touch_by(
        &self,
        c: &Contact,
        held: &Meeting,
        poses: &[Pose],
        field: Field,
    ) -> Option<Touch> {
        match c.pair {
            Pair::Ground {
                half_space,
                collider: own,
                feature,
            } => {
                let (ground, b) = (&self.half_spaces[half_space], &poses[c.child]);
                let still = |gap: f64, point: Vec3| Touch {
                    gap,
                    normal: Vec3::zeros(),
                    point,
                };
                if field == Field::HalfSpaceOffset(half_space) {
                    return Some(still(-1.0, Vec3::zeros()));
                }
                let (_, axis) = collider(field).filter(|(of, _)| *of == own)?;
                let what = (&self.colliders[own], feature, held);
                let by = match (field, axis) {
                    (_, Some(axis)) => half_space::by_size(what, axis, b)?,
                    (Field::ContactPosition(_, k), _) => b.r.column(k).into(),
                    _ => half_space::by_radius(ground, what, b)?,
                };
                Some(still(ground.normal.dot(&by), by))
            }
            Pair::Between {
                first,
                second,
                feature,
            } => {
                let (changed, axis) = collider(field)?;
                let side = [first, second].iter().position(|s| *s == changed)?;
                let (of, ends) = self.sides((first, second), poses);
                let (sign, what) = ([-1.0, 1.0][side], (feature, held));
                let touch = between::touch(of, what, ends);
                // as forces act there
                let part = c.off_middle();
                let placed = |by: Touch| Touch {
                    point: by.point + (touch.normal * by.gap + by.normal * touch.gap) * part,
                    ..by
                };
                // the feature moves along with its body
                let by = match (field, axis) {
                    (Field::ContactRadius(_), _) => {
                        match between::by_radius(of, what, side, ends) {
                            Grown::Moved(by) => by,
                            Grown::Still => return None,
                            Grown::Radius => {
                                return Some(placed(Touch {
                                    gap: -1.0,
                                    normal: Vec3::zeros(),
                                    point: touch.normal * (-0.5 * sign),
                                }));
                            }
                        }
                    }
                    (_, Some(axis)) => between::by_size(of, what, (side, axis), ends)?,
                    (Field::ContactPosition(_, k), _) => [ends.0, ends.1][side].r.column(k).into(),
                    _ => return None,
                };
                let slope = between::slope(of, what, ends);
                Some(placed(Touch {
                    gap: sign * touch.normal.dot(&by),
                    normal: slope.normal[side].0 * by,
                    point: slope.point[side].0 * by,
                }))
            }
        }
    }

    /// The derivative of a contact's friction coefficient by numbers of the mechanism that change alike; where both sides
    /// have friction zero, the one-sided one.
    pub(crate) fn friction_by(&self, c: &Contact, fields: &[Field]) -> f64 {
        if let Some(pair) = c.friction_pair {
            return f64::from(u8::from(fields.contains(&Field::PairFriction(pair))));
        }
        let (own, other) = match c.pair {
            Pair::Ground {
                half_space,
                collider,
                ..
            } => (collider, Field::HalfSpaceFriction(half_space)),
            Pair::Between { first, second, .. } => (first, Field::ContactFriction(second)),
        };
        let change = |of: Field| f64::from(u8::from(fields.contains(&of)));
        let (da, db) = (change(Field::ContactFriction(own)), change(other));
        match self.frictions(c) {
            (_, None) => da,
            (a, Some(b)) if a + b > 0.0 => {
                2.0 * ((b / (a + b)).powi(2) * da + (a / (a + b)).powi(2) * db)
            }
            // of degree one: 2ab/(a+b) along the change itself
            _ => da * db,
        }
    }

    /// The derivative of a contact's restitution; where its sides have the same, that by larger numbers.
    pub(crate) fn restitution_by(&self, c: &Contact, fields: &[Field]) -> f64 {
        let of = |c: usize| {
            let change = fields.contains(&Field::ContactRestitution(c));
            (self.colliders[c].restitution, f64::from(u8::from(change)))
        };
        match c.pair {
            Pair::Ground { collider, .. } => of(collider).1,
            Pair::Between { first, second, .. } => {
                let ((a, da), (b, db)) = (of(first), of(second));
                match a.total_cmp(&b) {
                    Ordering::Greater => da,
                    Ordering::Less => db,
                    Ordering::Equal => da.max(db),
                }
            }
        }
    }
}
