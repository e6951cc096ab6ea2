//! Edges of two polytopes that cross: how far their common normal keeps the solids apart.

use super::manifold::{PARALLEL, Relative, is_closed};
use super::polytope::Solid;
use super::seam::Closed;
use crate::spatial::Vec3;

/// How deep below the planes beside edges something may be, by the reach of the smaller solid, before they are left out: rounding.
const ROUNDING: f64 = 1e-9;

/// How far a place of the other solid is above the planes beside an edge, by the higher: no normal between those of the planes keeps
/// the other solid farther away.
fn above(s: &Solid, edge: usize, place: &Vec3) -> f64 {
    let height = |f: usize| {
        let face = &s.of.faces[f];
        face.normal.dot(&(place - s.local(face.top)))
    };
    let [p, q] = s.of.edges[edge].faces.map(height);
    let highest = p.max(q);
    if highest > 0.0 {
        f64::INFINITY
    } else {
        highest
    }
}

/// Places of each solid that are near to the other, in the frame of the other.
fn near(a: &Solid, b: &Solid, at: &Relative) -> [Vec3; 2] {
    let to_a = |p: Vec3| at.0 * p + at.1;
    let middle = |s: &Solid| {
        let all = (0..s.of.points.len()).map(|v| s.local(v));
        all.sum::<Vec3>() / s.of.points.len() as f64
    };
    let along = to_a(middle(b)) - middle(a);
    let back = at.0.tr_mul(&along);
    let (own, other) = (a.farthest(&along), b.farthest(&-back));
    [at.0.tr_mul(&(own - at.1)), to_a(other)]
}

/// The arc between the normals of the faces at an edge, in the frame of another solid.
pub(super) struct Arc {
    ends: [Vec3; 2],
    turn: Vec3,
}

impl Arc {
    #[inline]
    pub fn new(a: &Solid, edge: usize, at: &Relative) -> Self {
        let e = &a.of.edges[edge];
        Self {
            ends: e.faces.map(|f| at.0.tr_mul(&a.of.faces[f].normal)),
            turn: at.0.tr_mul(&e.turn),
        }
    }

    /// Does it cross that of an edge of the other solid, mirrored? Else the edges' common normal is none of a face of the difference of the
    /// solids, and another one separates them better.
    #[inline]
    pub fn crosses(&self, b: &Solid, edge: usize) -> bool {
        let o = &b.of.edges[edge];
        let [r, s] = o.faces.map(|f| -b.of.faces[f].normal);
        let (cba, dba) = (r.dot(&self.turn), s.dot(&self.turn));
        if cba * dba >= 0.0 {
            return false;
        }
        let [p, q] = self.ends;
        let (adc, bdc) = (p.dot(&o.turn), q.dot(&o.turn));
        adc * bdc < 0.0 && cba * bdc > 0.0
    }
}

/// Two edges whose common normal separates the solids by more than `least`, and by how much: those that do best of all that cross.
pub(super) fn separating_edges(
    a: &Solid,
    b: &Solid,
    at: &Relative,
    closed: (Closed, Closed),
    (least, allowed): (f64, impl Fn([usize; 2], bool) -> bool),
) -> Option<([usize; 2], bool, f64)> {
    let (mut best, mut most) = (None, least);
    let [of_a, of_b] = near(a, b, at);
    let rounding = ROUNDING * a.reach().min(b.reach());
    for i in 0..a.of.edges.len() {
        if above(a, i, &of_b) < most - rounding {
            continue;
        }
        let arc = Arc::new(a, i, at);
        for k in 0..b.of.edges.len() {
            if !arc.crosses(b, k) {
                continue;
            }
            if above(b, k, &of_a) < most - rounding {
                continue;
            }
            let Some((against, apart)) = crossing(a, b, at, [i, k]) else {
                continue;
            };
            if apart > most {
                let cross = a
                    .local_edge(i)
                    .1
                    .cross(&(at.0 * b.local_edge(k).1))
                    .normalize();
                if is_closed((a, b), at, &if against { -cross } else { cross }, closed) {
                    continue;
                }
                if !allowed([i, k], against) {
                    continue;
                }
                (best, most) = (Some(([i, k], against, apart)), apart);
            }
        }
    }
    best
}

/// Of two edges that cross between their ends: is the normal out of `a` against their product, and how far are they apart?
fn crossing(a: &Solid, b: &Solid, at: &Relative, [i, k]: [usize; 2]) -> Option<(bool, f64)> {
    let (p, u, own) = a.local_edge(i);
    let (q, v, other) = b.local_edge(k);
    let (q, v) = (at.0 * q + at.1, at.0 * v);
    let cross = u.cross(&v);
    let square = cross.norm_squared();
    if square < PARALLEL * PARALLEL {
        return None;
    }
    let span = q - p;
    let (cosine, across) = (u.dot(&v), v.dot(&span));
    let s = (u.dot(&span) - cosine * across) / square;
    let t = cosine * s - across;
    if s < 0.0 || s > own || t < 0.0 || t > other {
        return None;
    }
    let against = cross.dot(&(p - a.of.inside)) < 0.0;
    let apart = cross.dot(&span) / square.sqrt();
    Some((against, if against { -apart } else { apart }))
}

/// Is the normal of two edges out of the first solid against the product of their directions? None if they are parallel.
pub(super) fn is_against(a: &Solid, b: &Solid, at: &Relative, edges: [usize; 2]) -> Option<bool> {
    let ((p, u, _), (_, v, _)) = (a.local_edge(edges[0]), b.local_edge(edges[1]));
    let cross = u.cross(&(at.0 * v));
    let is_crossing = cross.norm_squared() > PARALLEL * PARALLEL;
    is_crossing.then(|| cross.dot(&(p - a.of.inside)) < 0.0)
}

/// Gap of two edges on the side of the first that `against` says, with the second solid so placed, m; none if they are parallel.
pub(super) fn edge_gap(
    (a, b): (&Solid, &Solid),
    at: &Relative,
    (edges, against): ([usize; 2], bool),
) -> Option<f64> {
    let ((p, u, _), (q, v, _)) = (a.local_edge(edges[0]), b.local_edge(edges[1]));
    let n = u.cross(&(at.0 * v)).try_normalize(PARALLEL)?;
    let apart = n.dot(&(at.0 * q + at.1 - p));
    Some(if against { -apart } else { apart })
}
