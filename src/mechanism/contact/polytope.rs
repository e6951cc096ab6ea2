//! Convex polytopes: boxes, and hulls of points, whose vertices, edges and faces `parry3d-f64` finds.

use super::seam::Seam;
use super::{Collider, Surface};
use crate::spatial::{Mat3, Vec3};
use parry3d_f64::math::Vector;
use parry3d_f64::shape::ConvexPolyhedron;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};

/// Corners of a face at most: what the fixed buffers of the search hold.
pub(super) const CORNERS: usize = 32;

/// Part of its size that a hull is thick at least: below it `parry3d-f64` takes faces for one.
const THIN: f64 = 1e-6;

const VOLUME: &str = "a hull needs four points at least that are not in one plane";

/// An edge of a polytope.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub ends: [usize; 2],
    /// The faces it is between.
    pub faces: [usize; 2],
    /// Product of their normals, the second by the first.
    pub turn: Vec3,
}

/// A face of a polytope.
#[derive(Clone, Debug)]
pub(super) struct Face {
    /// Outward unit normal.
    pub normal: Vec3,
    /// A corner that no vertex is above of.
    pub top: usize,
    /// Corners, counterclockwise from outside.
    pub corners: Vec<usize>,
    /// From every corner to the next.
    pub edges: Vec<usize>,
}

/// Vertices, edges and faces.
#[derive(Clone, Debug, Default)]
pub(super) struct Polytope {
    pub points: Vec<Vec3>,
    pub edges: Vec<Edge>,
    pub faces: Vec<Face>,
    /// A point inside.
    pub inside: Vec3,
    /// Largest distance of a vertex from the origin, m.
    pub reach: f64,
    /// Least extent along the normal of a face, m.
    pub thickness: f64,
}

impl Polytope {
    /// The hull of points.
    fn new(points: &[Vec3]) -> Result<Self, String> {
        if points.iter().any(|p| !p.iter().all(|x| x.is_finite())) {
            return Err("a hull has a point that is not finite".into());
        }
        let given: Vec<Vector> = points.iter().map(|p| Vector::new(p.x, p.y, p.z)).collect();
        let found = (points.len() >= 4)
            .then(|| ConvexPolyhedron::from_convex_hull(&given))
            .flatten()
            .ok_or(VOLUME)?;
        let points: Vec<Vec3> = (found.points().iter())
            .map(|p| Vec3::new(p.x, p.y, p.z))
            .collect();
        let (corners, sides) = (found.vertices_adj_to_face(), found.edges_adj_to_face());
        let mut faces: Vec<Face> = vec![];
        for f in found.faces() {
            let first = f.first_vertex_or_edge as usize;
            let of = first..first + f.num_vertices_or_edges as usize;
            let to = |list: &[u32]| -> Vec<usize> {
                list[of.clone()].iter().map(|i| *i as usize).collect()
            };
            let corners = to(corners);
            if corners.len() > CORNERS {
                return Err(format!(
                    "a face of a hull has {} corners, {CORNERS} are the most",
                    corners.len()
                ));
            }
            // all corners count (Newell), since coplanar triangles were merged
            let turned = |i: usize| {
                let (p, q) = (points[corners[i]], points[corners[(i + 1) % corners.len()]]);
                (p - points[corners[0]]).cross(&(q - points[corners[0]]))
            };
            let normal = (0..corners.len()).map(turned).sum::<Vec3>();
            let length = normal.norm();
            if length == 0.0 {
                return Err("a hull has a face without area".into());
            }
            let normal = normal / length;
            let height = |i: &usize| normal.dot(&points[*i]);
            let top = (corners.iter().copied())
                .max_by(|i, j| height(i).total_cmp(&height(j)))
                .unwrap_or(0);
            faces.push(Face {
                normal,
                top,
                corners,
                edges: to(sides),
            });
        }
        // parry leaves out those between coplanar triangles, and numbers on
        let mut edges: Vec<Edge> = vec![];
        let mut numbers = vec![usize::MAX; found.edges().len()];
        for (i, e) in found.edges().iter().enumerate() {
            let of = |f: &Face| f.edges.contains(&i);
            let both: Vec<usize> = (0..faces.len()).filter(|f| of(&faces[*f])).collect();
            if let [p, q] = both[..] {
                numbers[i] = edges.len();
                edges.push(Edge {
                    ends: e.vertices.map(|v| v as usize),
                    faces: [p, q],
                    turn: faces[q].normal.cross(&faces[p].normal),
                });
            }
        }
        for f in &mut faces {
            f.edges.iter_mut().for_each(|e| *e = numbers[*e]);
            let n = f.corners.len();
            let joins = |k: usize, e: usize| {
                let ends = [f.corners[k], f.corners[(k + 1) % n]];
                edges
                    .get(e)
                    .is_some_and(|e| e.ends == ends || e.ends == [ends[1], ends[0]])
            };
            // in the corners' order
            let order: Option<Vec<usize>> = (0..n)
                .map(|k| f.edges.iter().copied().find(|e| joins(k, *e)))
                .collect();
            f.edges = order.ok_or("the faces of a hull do not close")?;
        }
        let inside = points.iter().sum::<Vec3>() / points.len() as f64;
        let size = (points.iter()).fold(0.0_f64, |m, p| m.max((p - inside).norm()));
        let thin = |f: &Face| f.normal.dot(&(points[f.top] - inside)) <= THIN * size;
        if faces.iter().any(thin) {
            return Err(VOLUME.into());
        }
        let extent = |f: &Face| {
            let depth = |p: &Vec3| f.normal.dot(&(points[f.top] - p));
            points.iter().map(depth).fold(0.0, f64::max)
        };
        Ok(Self {
            thickness: faces.iter().map(extent).fold(f64::INFINITY, f64::min),
            reach: points.iter().map(Vec3::norm).fold(0.0, f64::max),
            points,
            edges,
            faces,
            inside,
        })
    }
}

/// The convex hull of points, collider frame, m.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<[f64; 3]>", into = "Vec<[f64; 3]>")]
pub struct Hull {
    /// As they were given.
    given: Arc<[[f64; 3]]>,
    pub(super) polytope: Arc<Polytope>,
}

impl Hull {
    /// The hull of points.
    ///
    /// # Errors
    /// When they span no volume, are not finite, or a face has more than 32 corners.
    pub fn new(points: &[[f64; 3]]) -> Result<Self, String> {
        let all: Vec<Vec3> = points.iter().map(|p| Vec3::from(*p)).collect();
        Ok(Self {
            given: points.into(),
            polytope: Arc::new(Polytope::new(&all)?),
        })
    }

    /// Corners of every face in turn, m.
    pub(crate) fn outlines(&self) -> impl Iterator<Item = Vec<Vec3>> + '_ {
        let p = &self.polytope;
        p.faces.iter().map(|f| {
            let around = f.corners.iter().chain(f.corners.first());
            around.map(|i| p.points[*i]).collect()
        })
    }

    /// Outward unit normal and corners of every face, counterclockwise from outside, m.
    pub(crate) fn faces(&self) -> impl Iterator<Item = (Vec3, Vec<Vec3>)> + '_ {
        let p = &self.polytope;
        let corners = |f: &Face| f.corners.iter().map(|i| p.points[*i]).collect();
        p.faces.iter().map(move |f| (f.normal, corners(f)))
    }

    /// Its vertices, m.
    pub(crate) fn vertices(&self) -> &[Vec3] {
        &self.polytope.points
    }
}

impl PartialEq for Hull {
    fn eq(&self, other: &Self) -> bool {
        self.given == other.given
    }
}

impl TryFrom<Vec<[f64; 3]>> for Hull {
    type Error = String;
    fn try_from(points: Vec<[f64; 3]>) -> Result<Self, String> {
        Self::new(&points)
    }
}

impl From<Hull> for Vec<[f64; 3]> {
    fn from(hull: Hull) -> Self {
        hull.given.to_vec()
    }
}

impl schemars::JsonSchema for Hull {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hull".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Vec<[f64; 3]>>()
    }
}

/// All boxes but for their sizes: corners at plus and minus one.
static CUBE: LazyLock<Polytope> = LazyLock::new(|| {
    let side = |i: usize, bit: usize| if i >> bit & 1 == 1 { 1.0 } else { -1.0 };
    let corners = (0..8).map(|i| Vec3::new(side(i, 0), side(i, 1), side(i, 2)));
    Polytope::new(&corners.collect::<Vec<_>>()).expect("a cube is a hull")
});

/// Sides of the prism within a cylinder: the middle of one is 3 % of the radius below it.
const SIDES: usize = 12;

/// Prisms within all cylinders but for their sizes: of radius one, ends at plus and minus one.
static PRISM: LazyLock<Polytope> = LazyLock::new(|| {
    let corners = (0..2 * SIDES).map(|i| {
        let (sin, cos) = ((i / 2) as f64 * std::f64::consts::TAU / SIDES as f64).sin_cos();
        Vec3::new(cos, sin, if i % 2 == 1 { 1.0 } else { -1.0 })
    });
    Polytope::new(&corners.collect::<Vec<_>>()).expect("a prism is a hull")
});

/// A polytope of a collider, in the body's frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solid<'a> {
    pub of: &'a Polytope,
    /// Half edges of a box; radius, radius and half length of a cylinder.
    half: Vec3,
    /// Largest distance of a vertex from the place, m.
    reach: f64,
    pub position: Vec3,
    pub orientation: Mat3,
    pub seams: &'a [Seam],
    /// Edges within neighbors, which nothing reaches.
    pub buried: &'a [usize],
    /// Is it a hull of many vertices, whose lowest ones belong to several faces?
    pub is_fine: bool,
}

impl Collider {
    /// Its polytope, where it is one, and the prism within a cylinder.
    #[inline]
    pub(super) fn solid(&self) -> Option<Solid<'_>> {
        let (of, half, reach) = match &self.surface {
            Surface::Box(edges) => {
                let half = Vec3::from(*edges) * 0.5;
                (&*CUBE, half, half.norm())
            }
            Surface::Hull(hull) => {
                let of = &*hull.polytope;
                (of, Vec3::repeat(1.0), of.reach)
            }
            Surface::Cylinder { radius, length } => {
                let half = Vec3::new(*radius, *radius, 0.5 * length);
                (&*PRISM, half, radius.hypot(half.z))
            }
            _ => return None,
        };
        Some(Solid {
            of,
            half,
            reach,
            position: self.position,
            orientation: self.orientation,
            seams: &self.seams,
            buried: &self.buried,
            is_fine: self.by_lowest,
        })
    }
}

impl Solid<'_> {
    /// Largest distance of a vertex from the place, m.
    #[inline]
    pub fn reach(&self) -> f64 {
        self.reach
    }

    /// The vertex farthest along a direction, collider frame.
    pub fn farthest(&self, n: &Vec3) -> Vec3 {
        let mut best = (Vec3::zeros(), f64::NEG_INFINITY);
        for v in 0..self.of.points.len() {
            let p = self.local(v);
            let along = n.dot(&p);
            if along > best.1 {
                best = (p, along);
            }
        }
        best.0
    }

    /// Of the collider's frame.
    #[inline]
    pub fn local(&self, vertex: usize) -> Vec3 {
        self.of.points[vertex].component_mul(&self.half)
    }

    /// Of the body's frame.
    #[inline]
    pub fn vertex(&self, vertex: usize) -> Vec3 {
        self.position + self.orientation * self.local(vertex)
    }

    /// First end and unit direction of an edge, collider frame.
    #[inline]
    pub fn local_edge(&self, edge: usize) -> (Vec3, Vec3, f64) {
        let [a, b] = self.of.edges[edge].ends.map(|v| self.local(v));
        let length = (b - a).norm();
        (a, (b - a) / length, length)
    }

    /// Is a place of the collider's frame within the outline of a face?
    pub fn is_above(&self, face: usize, y: &Vec3) -> bool {
        let face = &self.of.faces[face];
        let n = face.corners.len();
        let corner = |k: usize| self.local(face.corners[k % n]);
        (0..n).all(|k| {
            let (p, q) = (corner(k), corner(k + 1));
            face.normal.dot(&(q - p).cross(&(y - p))) >= 0.0
        })
    }

    /// How a vertex moves, collider frame, when the radius of a cylinder grows.
    pub fn vertex_by_radius(&self, vertex: usize) -> Vec3 {
        let p = self.of.points[vertex];
        Vec3::new(p.x, p.y, 0.0)
    }

    /// How a vertex moves, collider frame, when the size along `axis` grows: that of a box.
    pub fn vertex_by_size(&self, vertex: usize, axis: usize) -> Vec3 {
        Vec3::ith(axis, 0.5 * self.of.points[vertex][axis])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_and_edges_of_a_cube_and_of_a_cut_one() {
        let p = &*CUBE;
        assert_eq!((p.points.len(), p.edges.len(), p.faces.len()), (8, 12, 6));
        for f in &p.faces {
            assert_eq!(f.normal.amax(), 1.0);
            assert_eq!(f.corners.len(), 4);
        }
        // one corner cut off, and points inside and twice
        let mut points: Vec<[f64; 3]> = p.points.iter().map(|p| (*p).into()).collect();
        points.retain(|p| *p != [1.0; 3]);
        for i in 0..3 {
            let mut q = [1.0; 3];
            q[i] = 0.5;
            points.push(q);
        }
        points.push([0.1, 0.2, 0.3]);
        points.push([-1.0; 3]);
        let hull = Hull::new(&points).expect("valid");
        let p = &hull.polytope;
        assert_eq!((p.points.len(), p.edges.len(), p.faces.len()), (10, 15, 7));
        for f in &p.faces {
            let top = f.normal.dot(&p.points[f.top]);
            assert!(p.points.iter().all(|q| f.normal.dot(q) < top + 1e-14));
            assert!(f.normal.dot(&p.inside) < top - 0.1);
            for (k, e) in f.edges.iter().enumerate() {
                let [a, b] = [f.corners[k], f.corners[(k + 1) % f.corners.len()]];
                let ends = p.edges[*e].ends;
                assert!(ends == [a, b] || ends == [b, a]);
                // counterclockwise
                let along = p.points[b] - p.points[a];
                assert!(f.normal.cross(&along).dot(&(p.inside - p.points[a])) > 0.0);
            }
        }
    }

    #[test]
    fn what_spans_no_volume_is_refused() {
        let flat = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]];
        for points in [&flat[..], &flat[..3], &[[0.1; 3]; 6]] {
            let e = Hull::new(points).expect_err("flat");
            assert!(e.contains("not in one plane"), "{e}");
        }
        let e = Hull::new(&[[f64::NAN; 3]; 5]).expect_err("not finite");
        assert!(e.contains("not finite"), "{e}");
    }
}
