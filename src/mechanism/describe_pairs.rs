//! Named pairs of what may touch: a friction coefficient of their own, or no contact at all.

use super::Field;
use super::builder::MechanismBuilder;
use super::contact::{Collider, Contact, HalfSpace, Pair};
use super::error::{ModelError, nearest};
use serde::{Deserialize, Serialize};

/// The friction coefficient of the contacts between two sides, in place of that which the sides have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrictionPairSpec {
    /// Two sides, in any order. Each is a contact (`BODY.NAME`), a body (all its contacts), a half-space, or a terrain.
    pub between: [String; 2],
    /// Coulomb friction coefficient.
    pub friction: f64,
}

/// A friction coefficient that contacts refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct FrictionPair {
    /// Name of the pair.
    pub name: String,
    /// Coulomb friction coefficient.
    pub friction: f64,
}

/// The names that the sides of contacts go by.
pub(super) struct SideNames {
    /// Of every collider.
    colliders: Vec<Vec<String>>,
    half_spaces: Vec<String>,
}

impl SideNames {
    /// Names of half-spaces and of the colliders of bodies.
    pub fn new(half_spaces: &[HalfSpace], colliders: &[Collider], bodies: &[super::Body]) -> Self {
        let of = |c: &Collider| {
            let body = c.body.map(|b| bodies[b].name.clone());
            [c.name.clone()].into_iter().chain(body).collect()
        };
        Self {
            colliders: colliders.iter().map(of).collect(),
            half_spaces: half_spaces.iter().map(|h| h.name.clone()).collect(),
        }
    }

    /// Adds a collider of a terrain, which goes by the terrain's name and by its own.
    pub fn add_terrain(&mut self, terrain: &str, collider: &Collider) {
        self.colliders
            .push(vec![collider.name.clone(), terrain.to_owned()]);
    }

    fn all(&self) -> impl Iterator<Item = &str> + Clone {
        let half_spaces = self.half_spaces.iter().map(String::as_str);
        let colliders = self.colliders.iter().flatten().map(String::as_str);
        half_spaces.chain(colliders)
    }

    fn is_collider(&self, collider: usize, name: &str) -> bool {
        self.colliders[collider].iter().any(|n| n == name)
    }

    /// Are two colliders the two sides of a pair?
    pub fn are_colliders(&self, (a, b): (usize, usize), [p, q]: &[String; 2]) -> bool {
        self.is_collider(a, p) && self.is_collider(b, q)
            || self.is_collider(a, q) && self.is_collider(b, p)
    }

    /// Are a collider and a half-space the two sides of a pair?
    pub fn are_on_half_space(&self, (a, h): (usize, usize), [p, q]: &[String; 2]) -> bool {
        let ground = &self.half_spaces[h];
        self.is_collider(a, p) && ground == q || self.is_collider(a, q) && ground == p
    }

    fn are_sides(&self, contact: &Contact, pair: &[String; 2]) -> bool {
        match contact.pair {
            Pair::Ground {
                half_space,
                collider,
                ..
            } => self.are_on_half_space((collider, half_space), pair),
            Pair::Between { first, second, .. } => self.are_colliders((first, second), pair),
        }
    }

    /// Returns an error if a side has a name that nothing has.
    fn check(&self, path: &[&str], pair: &[String; 2]) -> Result<(), ModelError> {
        let unknown = pair.iter().find(|side| self.all().all(|n| n != **side));
        let Some(side) = unknown else {
            return Ok(());
        };
        let mut known: Vec<&str> = self.all().collect();
        known.sort_unstable();
        known.dedup();
        Err(ModelError::new(
            path.iter().copied(),
            format!(
                "the pair `{}` and `{}` names `{side}`, which is no contact, body, half-space or terrain that may touch",
                pair[0], pair[1]
            ),
            nearest(side, known.into_iter()),
        ))
    }
}

impl MechanismBuilder {
    /// Is the contact of two colliders excluded by name?
    pub(super) fn excludes(&self, is_pair: impl Fn(&[String; 2]) -> bool) -> bool {
        self.excluded_pairs.iter().any(is_pair)
    }

    /// Returns an error if an excluded pair has a side that does not exist, or the same side twice.
    pub(super) fn check_excluded(&self, names: &SideNames) -> Result<(), ModelError> {
        let mut each = self.excluded_pairs.iter();
        each.try_for_each(|pair| {
            if pair[0] == pair[1] {
                return Err(ModelError::new(
                    ["excluded_pairs"],
                    format!("a pair names `{}` twice", pair[0]),
                    "name two sides; contacts of one body never meet",
                ));
            }
            names.check(&["excluded_pairs"], pair)
        })
    }

    /// Sets the friction pair of every contact; of several that match, the last one in the file.
    pub(super) fn pair_friction(
        &self,
        names: &SideNames,
        contacts: &mut [Contact],
    ) -> Result<Vec<FrictionPair>, ModelError> {
        let mut out = vec![];
        for (i, (name, spec)) in self.friction_pairs.iter().enumerate() {
            let place = |field| ["friction_pairs", name.as_str(), field];
            names.check(&place("between"), &spec.between)?;
            if let Some(expected) = Field::PairFriction(i).refuses(spec.friction) {
                return Err(ModelError::new(
                    place("friction"),
                    format!("friction of the pair `{name}` is {}", spec.friction),
                    expected,
                ));
            }
            let mut found = false;
            for c in contacts.iter_mut() {
                if names.are_sides(c, &spec.between) {
                    c.friction_pair = Some(i);
                    found = true;
                }
            }
            if !found {
                let [p, q] = &spec.between;
                return Err(ModelError::new(
                    place("between"),
                    format!("friction pair `{name}`: no contact exists between `{p}` and `{q}`"),
                    "name the group of one in `against` of the other, or leave the pair out (contacts of one body and of bodies connected by a joint do not collide)",
                ));
            }
            out.push(FrictionPair {
                name: name.clone(),
                friction: spec.friction,
            });
        }
        Ok(out)
    }
}
