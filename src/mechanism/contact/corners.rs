//! Hulls of many vertices on half-spaces and faces: which vertices are contacts.
//!
//! A contact for each vertex costs as much as a body each. Of a convex body few vertices carry, and where it turns by a small angle
//! within a step these are among the lowest. A step holds [`LOWEST`] vertices that are found at its knot: the lowest at the knot
//! and at the predicted pose, and those that are lowest if the body is tilted a little, in directions all around. If its
//! solution leaves another vertex below the half-space, this becomes a contact, and the step is solved again
//! ([`exchange`](crate::contact)), so that no vertex is below whatever was predicted.
//!
//! On a face of another solid the corners of the outline that the hull's face has in common with it are held as those of any polytope. The
//! places that they leave free hold the lowest vertices above that face, and others are exchanged in the same way.

use super::meeting::{Meeting, SLOTS};
use super::polytope::Solid;
use super::{Collider, HalfSpace, Surface};
use crate::spatial::{Pose, Vec3};
use std::f64::consts::TAU;

/// Vertices of a hull up to which each of them is a contact of its own: as many as meshes had by default when all hulls were held so.
pub(crate) const FEW: usize = 32;

/// Vertices that a step holds. A body on a plane rests on three of them, or on the corners of a face; more than eight cost time and save
/// few exchanges.
pub(in crate::mechanism) const LOWEST: usize = 8;

/// Tilt, rad, at which the lowest vertices are searched for beside those without tilt. It is above what a body that rocks turns in a step,
/// so that the corners of the face on which it rests are held, and below the angle between neighbor faces of meshes of a few
/// hundred vertices, so that vertices above that face are not.
const TILT: f64 = 0.05;

/// Part of the hull's reach by which a vertex must be lower than one with a smaller number to be preferred. Of level faces rounding must
/// not decide which vertices are held: impulses of the step before start the next.
const SAME: f64 = 1e-9;

/// Is the collider a hull of more than [`FEW`] vertices? Only the lowest of them are its contacts with half-spaces.
pub(in crate::mechanism) fn is_fine(c: &Collider) -> bool {
    matches!(&c.surface, Surface::Hull(hull) if hull.vertices().len() > FEW)
}

/// The solid of a collider of which only the lowest vertices are contacts with half-spaces.
fn solid(c: &Collider) -> Option<Solid<'_>> {
    c.solid().filter(|_| c.by_lowest)
}

/// A direction of the world in the collider's frame.
fn local(c: &Collider, pose: &Pose, n: &Vec3) -> Vec3 {
    c.orientation.tr_mul(&pose.r.tr_mul(n))
}

/// Numbers of the vertices of a solid that a step holds above a plane: `local` turns a direction into the solid's frame, as it is now (true)
/// and at the next knot.
pub(super) fn choose(
    solid: &Solid,
    n: &Vec3,
    local: impl Fn(bool, &Vec3) -> Vec3,
) -> [usize; LOWEST] {
    let same = SAME * solid.reach();
    // two directions across the normal
    let across = n.cross(&Vec3::ith(n.iamin(), 1.0)).normalize();
    let along = n.cross(&across);
    let mut chosen = [usize::MAX; LOWEST];
    for k in 0..LOWEST {
        let (sin, cos) = (k as f64 * TAU / (LOWEST - 2) as f64).sin_cos();
        let tilt = if k < 2 { 0.0 } else { TILT };
        let up = local(k % 2 == 1, &(n + (across * cos + along * sin) * tilt));
        let (mut lowest, mut at) = (f64::INFINITY, usize::MAX);
        for (i, p) in solid.of.points.iter().enumerate() {
            let height = up.dot(p);
            if height < lowest - same && !chosen[..k].contains(&i) {
                (lowest, at) = (height, i);
            }
        }
        chosen[k] = at;
    }
    chosen
}

/// Holds vertices at free ones of the first places, each at one that its number gives: those that stay held keep their impulses for the next
/// step.
pub(super) fn place(
    places: &mut [Meeting],
    mut vertices: [usize; LOWEST],
    held: impl Fn(usize) -> Option<Meeting>,
) {
    vertices.sort_unstable();
    let places = &mut places[..LOWEST];
    // a pose that is not a number has no lowest vertex
    for vertex in vertices.into_iter().filter(|v| *v != usize::MAX) {
        let Some(held) = held(vertex).filter(|held| !places.contains(held)) else {
            continue;
        };
        let own = vertex % LOWEST;
        let mut order = (own..LOWEST).chain(0..own);
        if let Some(free) = order.find(|k| places[*k] == Meeting::Apart) {
            places[free] = held;
        }
    }
}

/// The vertices that a step holds on a plane with normal `n`, at the pose of the body now and at the next knot.
pub(super) fn search(n: &Vec3, c: &Collider, (now, next): (&Pose, &Pose)) -> [Meeting; SLOTS] {
    let mut places = [Meeting::Apart; SLOTS];
    if let Some(solid) = solid(c) {
        let turned = |is_now, up: &Vec3| local(c, if is_now { now } else { next }, up);
        let chosen = choose(&solid, n, turned);
        place(&mut places, chosen, |vertex| Some(Meeting::Corner(vertex)));
    }
    places
}

/// The lowest vertex of a hull of which only some vertices are held, as it would be held, and its gap.
pub(super) fn lowest(ground: &HalfSpace, c: &Collider, b: &Pose) -> Option<(Meeting, f64)> {
    let solid = solid(c)?;
    let up = local(c, b, &ground.normal);
    let place = ground.normal.dot(&b.point(&c.position)) - ground.offset;
    if place > solid.reach() {
        return None;
    }
    let heights = solid.of.points.iter().map(|p| up.dot(p)).enumerate();
    let (vertex, height) = heights.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((Meeting::Corner(vertex), place + height))
}
