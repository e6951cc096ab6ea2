//! Contact: colliders on bodies, half-spaces of the world, and the places where they may touch.
//!
//! A [`Contact`] is one place with a signed distance `phi` (m), a unit normal `n` from the parent (or the world) to the
//! child, and one point `c` that serves as the end of both lever arms, so that a force between bodies keeps their angular
//! momentum. For all pairs here `d phi = n . (velocity of the child at c - velocity of the parent at c) dt`.
//!
//! Of most pairs the poses alone say what a place is. Where polytopes, cylinders or a height field are one of them, it is first searched
//! for which features meet ([`Meeting`]): once a step, at its knot, for the places that the bodies would come to; held, they give
//! a gap that is smooth in the poses at the step's end. A derivative is that with what meets held; where it changes, functions
//! of the motion have kinks.

mod ahead;
mod ball;
mod between;
mod capsule_capsule;
mod capsule_polytope;
mod column;
mod corners;
mod crossing;
mod cylinder;
mod edges;
mod frame;
mod half_space;
mod heights;
mod manifold;
mod meeting;
mod nearest;
mod number;
mod overlap;
mod plane;
mod polytope;
mod rim;
mod rim_points;
mod ring;
#[cfg(test)]
mod samples;
mod seam;
mod sphere_box;
mod sphere_capsule;
mod sphere_cylinder;
mod sphere_hull;
mod sphere_sphere;
mod spin;
mod sunk;
mod sway;
mod sweep;
#[cfg(test)]
mod tests;
mod unheld;

pub(crate) use ahead::Ahead;
pub(crate) use between::{is_supported, slots};
pub(crate) use corners::FEW;
pub(in crate::mechanism) use corners::{LOWEST, is_fine};

pub(crate) use frame::{
    FrameAxis, TouchSlope, friction_rows, normal_row, rate_derivatives, touch_change,
    wrench_derivative,
};

use heights::FACETS;
pub use heights::Heights;
pub use polytope::Hull;
pub use spin::COARSE_SPIN;

pub(crate) use meeting::{Meeting, TURN};

use super::{Mechanism, Shape};
use crate::spatial::{Mat3, Pose, Vec3};
use meeting::SLOTS;
use seam::Seam;
use serde::{Deserialize, Serialize};
use sweep::Sweep;

/// What of a body touches, about a place on it: a point, or as the shapes of bodies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// A point.
    Point,
    /// Radius, m.
    Sphere(f64),
    /// Axis along z; `length` is that of the cylindrical part.
    Capsule {
        /// m
        radius: f64,
        /// m
        length: f64,
    },
    /// Axis along z.
    Cylinder {
        /// m
        radius: f64,
        /// m
        length: f64,
    },
    /// Edge lengths along x, y, z, m.
    Box([f64; 3]),
    /// The convex hull of points, m, about the place of the contact.
    Hull(Hull),
    /// Ground of triangles: terrain's alone.
    #[serde(skip)]
    Heights(Heights),
}

impl From<Shape> for Surface {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Sphere(radius) => Self::Sphere(radius),
            Shape::Capsule { radius, length } => Self::Capsule { radius, length },
            Shape::Cylinder { radius, length } => Self::Cylinder { radius, length },
            Shape::Box(edges) => Self::Box(edges),
        }
    }
}

impl Surface {
    /// Are all lengths positive and finite?
    pub(super) fn is_valid(&self) -> bool {
        let ok = |l: &f64| *l > 0.0 && l.is_finite();
        match self {
            // a hull is checked as it is made
            Self::Point | Self::Hull(_) | Self::Heights(_) => true,
            Self::Sphere(radius) => ok(radius),
            Self::Capsule { radius, length } | Self::Cylinder { radius, length } => {
                ok(radius) && ok(length)
            }
            Self::Box(edges) => edges.iter().all(ok),
        }
    }

    /// What it is called.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Sphere(_) => "sphere",
            Self::Capsule { .. } => "capsule",
            Self::Cylinder { .. } => "cylinder",
            Self::Box(_) => "box",
            Self::Hull(_) => "hull",
            Self::Heights(_) => "heights",
        }
    }
}

/// A surface on a body.
#[derive(Clone, Debug)]
pub struct Collider {
    /// Name, unique among colliders.
    pub name: String,
    /// Body it belongs to; `None` is the world.
    pub body: Option<usize>,
    /// What touches.
    pub surface: Surface,
    /// Place on the body, from the center of mass, body frame, m; in the world.
    pub position: Vec3,
    /// Orientation on the body: collider frame -> body frame.
    pub orientation: Mat3,
    /// Coulomb friction coefficient.
    pub friction: f64,
    /// Ratio of speeds along the normal after and before an impact, 0 to 1: Newton's. With friction, where a body is
    /// wedged between others, that law can give energy (Kane, Levinson, Dynamics, 1985), seen as work of impacts.
    pub restitution: f64,
    /// Edges that solids of the same body close.
    pub(crate) seams: Vec<Seam>,
    /// Edges that solids of the same body surround.
    pub(crate) buried: Vec<usize>,
    /// Are only its lowest vertices contacts with half-spaces, found at every knot?
    pub(crate) by_lowest: bool,
}

/// A half-space of the world: solid where `normal . x < offset`.
#[derive(Clone, Debug)]
pub struct HalfSpace {
    /// Name, unique among half-spaces.
    pub name: String,
    /// Outward unit normal.
    pub normal: Vec3,
    /// Distance of the surface from the origin along the normal, m.
    pub offset: f64,
    /// Coulomb friction coefficient; where `None`, that of what touches it.
    pub friction: Option<f64>,
}

/// The two sides of a contact and the part of them that touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// A feature of a collider on a half-space: a corner of a box, an end of a capsule.
    Ground {
        /// Index of the half-space.
        half_space: usize,
        /// Index of the collider.
        collider: usize,
        /// Which part of the collider.
        feature: usize,
    },
    /// Two colliders.
    Between {
        /// Index of the parent's collider.
        first: usize,
        /// Index of the child's collider.
        second: usize,
        /// Which parts of the colliders.
        feature: usize,
    },
}

impl Pair {
    /// The two colliders, the parent's first, and which parts of them; none of a half-space.
    pub(super) fn between(&self) -> Option<((usize, usize), usize)> {
        match *self {
            Self::Between {
                first,
                second,
                feature,
            } => Some(((first, second), feature)),
            Self::Ground { .. } => None,
        }
    }
}

/// A place where bodies may touch.
#[derive(Clone, Debug)]
pub struct Contact {
    /// Name: that of the colliders and, where there are several, the feature.
    pub name: String,
    /// Body the normal points away from; `None` is the world.
    pub parent: Option<usize>,
    /// Body the normal points to.
    pub child: usize,
    /// What touches.
    pub pair: Pair,
    /// Mass that scales the contact's impulses, kg: about that seen along the normal, `1/(N M^-1 N')`, averaged over the
    /// normal's directions and held constant, so that it has no derivatives.
    pub effective_mass: f64,
    /// The pair of [`Mechanism::friction_pairs`] whose friction coefficient holds, if any.
    pub friction_pair: Option<usize>,
    /// Across the plane that both bodies stay in, along an axis of the world; none where they may leave it, where there are
    /// several, and on half-spaces, whose normals do not turn.
    pub(crate) across: Option<Vec3>,
    /// The part of the gap that is on the parent's side of the point at which forces act. Friction between surfaces that are apart
    /// at the knot has a lever on one body or both that is longer than when they touch; one point for both keeps angular momentum.
    /// The turn that comes of it is shared by moments of inertia, `J_a/(J_a + J_b)`, which is where its energy is least. So
    /// forces act on the surface of what touches the world, or something much heavier. Constant, without derivatives, as
    /// the effective mass is.
    pub(crate) lever_share: f64,
}

impl Contact {
    /// How far off the middle of the gap, toward the child, forces act, in parts of the gap.
    #[inline]
    fn off_middle(&self) -> f64 {
        self.lever_share - 0.5
    }

    /// What its tangents are made from, where it touches so at the start of a step.
    #[inline]
    pub(crate) fn frame_axis(&self, first: &Touch) -> FrameAxis {
        FrameAxis::new(&first.normal, self.across)
    }
}

/// A contact at one configuration; also a change of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touch {
    /// Signed distance, m; negative where the bodies overlap.
    pub gap: f64,
    /// Unit normal, from the parent to the child, world frame.
    pub normal: Vec3,
    /// Point at which forces act on both, world frame. It divides the gap as `lever_share` of the contact says.
    pub point: Vec3,
}

impl Touch {
    /// With the point a part of the gap away from the middle, toward the child.
    fn shifted(self, part: f64) -> Self {
        Self {
            point: self.point + self.normal * (part * self.gap),
            ..self
        }
    }
}

/// The last search of [`Mechanism::meeting_of`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Search {
    pair: Option<(usize, usize)>,
    found: Option<manifold::Manifold>,
    /// The ground, the collider, and which of its balls met these triangles.
    ball: Option<(usize, usize, usize)>,
    triangles: [Meeting; FACETS],
    /// How deep two colliders overlap at the poses that they will come to, m.
    depth: Option<((usize, usize), f64)>,
    /// Of a half-space and a hull of many vertices.
    ground: Option<((usize, usize), [Meeting; SLOTS])>,
}

impl Search {
    /// The vertices that a half-space and a hull hold, searched for once.
    fn of(
        &mut self,
        pair: (usize, usize),
        search: impl FnOnce() -> [Meeting; SLOTS],
    ) -> [Meeting; SLOTS] {
        match self.ground {
            Some((known, places)) if known == pair => places,
            _ => self.ground.insert((pair, search())).1,
        }
    }
}

/// Of rates of some 1 in all directions, what of a body's motion across a plane is rounding, m/s and rad/s.
const IN_PLANE: f64 = 1e-10;

impl Mechanism {
    /// Poses and velocities of the bodies at some position with some rates.
    fn generic_motion(&self) -> (Vec<Pose>, Vec<(Vec3, Vec3)>) {
        let generic = |ratio: f64| {
            let all = (1..=self.tree.coordinates).map(|i| (i as f64 * ratio).fract() - 0.5);
            all.collect::<Vec<f64>>()
        };
        let poses = self.forward(&generic(0.618_033_988_749_895));
        let motion = self.velocities(&poses, &generic(0.754_877_666_246_693));
        (poses, motion)
    }

    /// Leaves out contacts of bodies that joints keep from moving against each other: a force there would move nothing.
    pub(super) fn leave_out_still(&mut self) {
        let (poses, motion) = self.generic_motion();
        let twist = |body: Option<usize>| {
            body.map_or_else(Default::default, |b| {
                let (v, spin) = (motion[b].0, poses[b].r * motion[b].1);
                (v - spin.cross(&poses[b].x), spin)
            })
        };
        let moves = |c: &Contact| {
            let [(v, spin), (u, turn)]: [(Vec3, Vec3); 2] = [c.parent, Some(c.child)].map(twist);
            (u - v).amax() >= IN_PLANE || (turn - spin).amax() >= IN_PLANE
        };
        let (moving, still) = std::mem::take(&mut self.contacts)
            .into_iter()
            .partition::<Vec<_>, _>(moves);
        self.contacts = moving;
        let pairs = still.iter().filter_map(|c| c.pair.between());
        self.excluded
            .extend(pairs.map(|((a, b), _)| [a.min(b), a.max(b)]));
    }

    /// Notes in which plane the bodies of contacts stay, if they do, and which of them do not turn.
    pub(super) fn note_planes(&mut self) {
        // whatever the position and the rates, a plane mechanism stays in its plane
        let (poses, motion) = self.generic_motion();
        let turns = |body: usize| motion[body].1.amax() >= IN_PLANE;
        let stays = |body: usize, axis: usize| {
            let (v, spin) = (motion[body].0, poses[body].r * motion[body].1);
            let within = (0..3).filter(|i| *i != axis);
            v[axis].abs() < IN_PLANE && within.map(|i| spin[i].abs()).all(|w| w < IN_PLANE)
        };
        for c in &mut self.contacts {
            if let Pair::Ground { .. } = c.pair {
                continue;
            }
            // what joints keep from turning takes the turn of friction, as the world does
            c.lever_share = match (c.parent.is_some_and(turns), turns(c.child)) {
                (false, true) => 1.0,
                (true, false) => 0.0,
                _ => c.lever_share,
            };
            let both =
                |axis: &usize| c.parent.is_none_or(|p| stays(p, *axis)) && stays(c.child, *axis);
            let mut planes = (0..3).filter(both);
            if let (Some(axis), None) = (planes.next(), planes.next()) {
                c.across = Some(Vec3::ith(axis, 1.0));
            }
        }
    }

    /// Notes which edges of solids their neighbors close. Bodies that fixed joints tie to the world count as the world.
    pub(super) fn note_seams(&mut self) {
        let (poses, motion) = self.generic_motion();
        let mut placed = self.colliders.clone();
        for c in &mut placed {
            if let Some(body) = c.body {
                let (v, w) = motion[body];
                if v.amax() < IN_PLANE && w.amax() < IN_PLANE {
                    c.position = poses[body].point(&c.position);
                    c.orientation = poses[body].r * c.orientation;
                    c.body = None;
                }
            }
        }
        // what each meets on other bodies
        let mut meets = vec![vec![]; placed.len()];
        let mut ground = vec![vec![]; self.half_spaces.len()];
        for c in &self.contacts {
            match c.pair {
                Pair::Ground {
                    half_space,
                    collider,
                    ..
                } => ground[half_space].push(collider),
                Pair::Between { first, second, .. } => {
                    if placed[first].body != placed[second].body {
                        meets[first].push(second);
                        meets[second].push(first);
                    }
                }
            }
        }
        for list in meets.iter_mut().chain(&mut ground) {
            list.sort_unstable();
            list.dedup();
        }
        let all = seam::seams((&placed, &meets), (&self.half_spaces, &ground));
        for (collider, (seams, buried)) in self.colliders.iter_mut().zip(all) {
            collider.seams = seams;
            collider.buried = buried;
        }
    }

    /// The colliders of a contact between bodies and the poses of their bodies.
    fn sides<'a>(
        &'a self,
        (first, second): (usize, usize),
        poses: &'a [Pose],
    ) -> ((&'a Collider, &'a Collider), (&'a Pose, &'a Pose)) {
        let (a, b) = (&self.colliders[first], &self.colliders[second]);
        ((a, b), (self.pose(poses, a.body), self.pose(poses, b.body)))
    }

    /// Is what meets at a contact searched for at every knot?
    pub(crate) fn is_searched(&self, c: &Contact) -> bool {
        match c.pair {
            Pair::Ground { collider, .. } => {
                let own = &self.colliders[collider];
                own.by_lowest || cylinder::is_cylinder(own)
            }
            Pair::Between { first, second, .. } => {
                between::is_searched((&self.colliders[first], &self.colliders[second]))
            }
        }
    }

    /// What meets at a contact: searched for at a knot, and held until the next, where bodies will be about as `ahead` says.
    pub(crate) fn meeting(&self, c: &Contact, poses: &[Pose], ahead: &Ahead) -> Meeting {
        self.meeting_of(c, poses, ahead, &mut Search::default())
    }

    /// The same of contacts in turn, of which those of one pair are found by one search.
    #[inline]
    pub(crate) fn meeting_of(
        &self,
        c: &Contact,
        poses: &[Pose],
        ahead: &Ahead,
        last: &mut Search,
    ) -> Meeting {
        let (first, second, feature) = match c.pair {
            Pair::Between {
                first,
                second,
                feature,
            } => (first, second, feature),
            Pair::Ground {
                half_space,
                collider,
                feature,
            } => {
                let (own, now) = (&self.colliders[collider], &poses[c.child]);
                if !self.is_searched(c) {
                    return Meeting::Surfaces;
                }
                let ground = &self.half_spaces[half_space];
                let next = ahead.of(own.body, now);
                if own.by_lowest {
                    let places = last.of((half_space, collider), || {
                        corners::search(&ground.normal, own, (now, &next))
                    });
                    return places[feature];
                }
                let sway = ahead.sway((None, now), (own.body, now), cylinder::reach(own));
                return half_space::meeting(ground, own, feature, (now, &next), &sway);
            }
        };
        let (of, ends) = self.sides((first, second), poses);
        let sweep = || Sweep::new(of, ends, ahead);
        let ahead_of = || [(of.0.body, ends.0), (of.1.body, ends.1)].map(|(b, p)| ahead.of(b, p));
        if !between::is_searched(of) {
            if let Some(held) = between::at_seam(of, feature, ends, ahead_of) {
                return held;
            }
            if last.pair != Some((first, second)) {
                last.pair = Some((first, second));
                last.found = sweep().planes();
            }
            return last.found.map_or(Meeting::Surfaces, |m| m.places[feature]);
        }
        if let Surface::Heights(heights) = &of.0.surface {
            let [p, q] = ahead_of();
            let ways = [ends, (&p, &q)];
            if cylinder::is_cylinder(of.1) {
                if last.pair != Some((first, second)) {
                    last.pair = Some((first, second));
                    let own = (of.1.body, ends.1);
                    let sway = ahead.sway((None, ends.0), own, cylinder::reach(of.1));
                    last.found = Some(heights.search_cylinder(of, ways, &sway));
                }
                return last.found.map_or(Meeting::Apart, |m| m.places[feature]);
            }
            if between::ball_on_field(of, feature).is_none() {
                return Meeting::Apart;
            }
            let ball = (first, second, feature / FACETS);
            if last.ball != Some(ball) {
                let found = between::on_heights(of, feature, ways);
                last.ball = Some(ball);
                last.triangles = found.unwrap_or([Meeting::Apart; FACETS]);
            }
            return last.triangles[feature % FACETS];
        }
        if last.pair != Some((first, second)) {
            last.pair = Some((first, second));
            let [p, q] = ahead_of();
            let size = cylinder::reach(of.0).min(cylinder::reach(of.1));
            let sway = ahead.sway((of.0.body, ends.0), (of.1.body, ends.1), size);
            last.found = between::search(of, ends, (&p, &q), &sway, &sweep());
        }
        let found = last.found.and_then(|m| m.places.get(feature).copied());
        let held = found.unwrap_or(Meeting::Apart);
        if let Some(lines) = between::lines(of, &held, ends)
            && ahead.may_be_parallel(lines, (of.0.body, ends.0), (of.1.body, ends.1))
        {
            return Meeting::Apart;
        }
        held
    }

    /// A contact at a configuration of all bodies.
    pub fn touch(&self, c: &Contact, poses: &[Pose]) -> Touch {
        self.touch_of(c, &self.meeting(c, poses, &Ahead::NONE), poses)
    }

    /// A contact at a configuration of all bodies, with what meets held.
    #[inline]
    pub(crate) fn touch_of(&self, c: &Contact, held: &Meeting, poses: &[Pose]) -> Touch {
        self.touch_at(c, held, (self.pose(poses, c.parent), &poses[c.child]))
    }

    /// The same at the poses of its parent and its child.
    #[inline]
    pub(crate) fn touch_at(&self, c: &Contact, held: &Meeting, at: (&Pose, &Pose)) -> Touch {
        match c.pair {
            Pair::Ground {
                half_space,
                collider,
                feature,
            } => half_space::touch(
                &self.half_spaces[half_space],
                (&self.colliders[collider], feature, held),
                at.1,
            ),
            Pair::Between {
                first,
                second,
                feature,
            } => {
                let of = (&self.colliders[first], &self.colliders[second]);
                between::touch(of, (feature, held), at).shifted(c.off_middle())
            }
        }
    }

    /// The arm of a point fixed on the child whose distance from a half-space is the gap, body frame.
    #[inline]
    pub(crate) fn arm(&self, c: &Contact, held: &Meeting) -> Option<Vec3> {
        match c.pair {
            Pair::Ground {
                collider, feature, ..
            } => half_space::arm(&self.colliders[collider], feature, held),
            Pair::Between { .. } => None,
        }
    }

    /// How normal and point change with the displacements of the bodies, with what meets held.
    pub(crate) fn touch_slope(&self, c: &Contact, held: &Meeting, poses: &[Pose]) -> TouchSlope {
        match c.pair {
            Pair::Ground {
                half_space,
                collider,
                feature,
            } => half_space::slope(
                &self.half_spaces[half_space],
                (&self.colliders[collider], feature, held),
                &poses[c.child],
            ),
            Pair::Between {
                first,
                second,
                feature,
            } => {
                let (of, poses) = self.sides((first, second), poses);
                let slope = between::slope(of, (feature, held), poses);
                match c.off_middle() {
                    0.0 => slope,
                    part => slope.shifted(part, &between::touch(of, (feature, held), poses), poses),
                }
            }
        }
    }

    /// Coulomb friction coefficient of a contact: that of its pair if it has one, else the harmonic mean `2ab/(a+b)` of both
    /// sides if both have one.
    pub fn friction(&self, c: &Contact) -> f64 {
        if let Some(pair) = c.friction_pair {
            return self.friction_pairs[pair].friction;
        }
        match self.frictions(c) {
            (a, Some(b)) if a + b > 0.0 => 2.0 * a * b / (a + b),
            (_, Some(_)) => 0.0,
            (a, None) => a,
        }
    }

    /// Those of the collider (the first) and of the other side.
    fn frictions(&self, c: &Contact) -> (f64, Option<f64>) {
        let of = |c: usize| self.colliders[c].friction;
        match c.pair {
            Pair::Ground {
                half_space,
                collider,
                ..
            } => (of(collider), self.half_spaces[half_space].friction),
            Pair::Between { first, second, .. } => (of(first), Some(of(second))),
        }
    }

    /// Restitution of a contact: the larger of its sides'.
    pub fn restitution(&self, c: &Contact) -> f64 {
        let of = |c: usize| self.colliders[c].restitution;
        match c.pair {
            Pair::Ground { collider, .. } => of(collider),
            Pair::Between { first, second, .. } => of(first).max(of(second)),
        }
    }
}
