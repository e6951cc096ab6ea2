//! The convex hull of a mesh with a bounded number of vertices.
//!
//! The vertices that reach farthest along the axes come first, so that the hull has the extents of the mesh. Then the vertex
//! that is farthest outside of the hull so far follows, again and again. Distances are measured in parts of the extents, so
//! that a thin mesh keeps its thickness.

use crate::mechanism::Hull;
use crate::spatial::Vec3;
use std::collections::HashSet;

/// Part of its extents by which a hull may be smaller than the mesh by default: a ball of 0.1 m then rests 0.2 mm lower at most.
const CUT_OFF: f64 = 1e-3;

/// Vertices of a hull at most by default, however much they leave out. A ball needs some 1200 to lose no more than [`CUT_OFF`]; files
/// have fewer.
pub(super) const VERTICES: usize = 1000;

/// The same if hulls meet each other. Edges are compared with edges then: a search takes a millisecond with this many vertices each, and ten
/// to a hundred with 700.
pub(super) const PAIRED: usize = 128;

/// The same if every vertex is a contact, as on height fields.
pub(super) use crate::mechanism::FEW;

/// Share of the vertices that is tried next if a hull is refused by default.
const FEWER: (usize, usize) = (3, 4);

/// And on request: the search for what meets compares all faces with all vertices, some 1e7 products a knot with this many.
pub(super) const MOST: usize = 2000;

/// Part of the extents by which a vertex is outside at least. Files hold single precision, whose rounding is a tenth of it.
const OUTSIDE: f64 = 1e-6;

/// Part of the extents by which a vertex is in front of a facet at least: rounding of double precision.
const VISIBLE: f64 = 1e-12;

/// A hull, and what was left out.
pub(super) struct Reduced {
    pub hull: Hull,
    /// Vertices of the mesh, each once, and those taken.
    pub given: usize,
    pub taken: usize,
    /// Largest distance of a vertex of the mesh from the hull, m; zero if it is rounding.
    pub beyond: f64,
    /// Largest extent of the mesh, m.
    pub size: f64,
}

/// A triangle of a hull: `normal . x <= offset` inside.
struct Facet {
    corners: [usize; 3],
    normal: Vec3,
    offset: f64,
}

/// A hull to which vertices are added.
struct Growing<'a> {
    points: &'a [Vec3],
    /// Removed facets are `None`, so that numbers of facets stay.
    facets: Vec<Option<Facet>>,
    taken: Vec<usize>,
    /// Of every vertex the facet that it is farthest in front of, and how far.
    farthest: Vec<(usize, f64)>,
}

fn largest(values: impl Iterator<Item = (usize, f64)>) -> Option<(usize, f64)> {
    values.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

impl<'a> Growing<'a> {
    /// A tetrahedron of `first` vertices if they span one, else with others; none if all are in one plane.
    fn new(points: &'a [Vec3], first: &[usize]) -> Option<Self> {
        let a = *first.first()?;
        let all = || first.iter().copied().chain(0..points.len());
        let best = |height: &dyn Fn(&Vec3) -> f64| {
            let of = |i: usize| (i, height(&points[i]).abs());
            let among = largest(first.iter().map(|i| of(*i))).filter(|b| b.1 > OUTSIDE);
            among.or_else(|| largest(all().map(of)).filter(|b| b.1 > OUTSIDE))
        };
        let p = points[a];
        let (b, _) = best(&|q| (q - p).norm())?;
        let along = (points[b] - p).normalize();
        let (c, _) = best(&|q| along.cross(&(q - p)).norm())?;
        let normal = along.cross(&(points[c] - p)).normalize();
        let (d, _) = best(&|q| normal.dot(&(q - p)))?;
        let mut out = Self {
            points,
            facets: vec![],
            taken: vec![a, b, c, d],
            farthest: vec![(usize::MAX, f64::NEG_INFINITY); points.len()],
        };
        let inside = (p + points[b] + points[c] + points[d]) * 0.25;
        for [i, j, k] in [[a, b, c], [a, b, d], [a, c, d], [b, c, d]] {
            let turned = (points[j] - points[i]).cross(&(points[k] - points[i]));
            let outward = turned.dot(&(points[i] - inside)) > 0.0;
            out.add_facet(if outward { [i, j, k] } else { [i, k, j] });
        }
        Some(out)
    }

    fn add_facet(&mut self, corners: [usize; 3]) {
        let [p, q, r] = corners.map(|i| self.points[i]);
        // a facet without area is no part of the surface
        let Some(normal) = (q - p).cross(&(r - p)).try_normalize(f64::MIN_POSITIVE) else {
            return;
        };
        let facet = Facet {
            corners,
            normal,
            offset: normal.dot(&p),
        };
        let number = self.facets.len();
        for (point, farthest) in self.points.iter().zip(&mut self.farthest) {
            let height = normal.dot(point) - facet.offset;
            if height > farthest.1 {
                *farthest = (number, height);
            }
        }
        self.facets.push(Some(facet));
    }

    fn height(&self, facet: &Facet, vertex: usize) -> f64 {
        facet.normal.dot(&self.points[vertex]) - facet.offset
    }

    fn add(&mut self, vertex: usize) {
        let mut removed = vec![];
        for facet in &mut self.facets {
            let in_front = |f: &mut Facet| f.normal.dot(&self.points[vertex]) - f.offset > VISIBLE;
            removed.extend(facet.take_if(in_front));
        }
        let edges = |f: &Facet| {
            let [a, b, c] = f.corners;
            [(a, b), (b, c), (c, a)]
        };
        let inner: HashSet<(usize, usize)> = removed.iter().flat_map(edges).collect();
        // an edge is on the horizon if the facet on its other side stays
        for (a, b) in removed.iter().flat_map(edges) {
            if !inner.contains(&(b, a)) {
                self.add_facet([a, b, vertex]);
            }
        }
        self.taken.push(vertex);
        for i in 0..self.points.len() {
            let is_gone = self
                .facets
                .get(self.farthest[i].0)
                .is_none_or(Option::is_none);
            if is_gone {
                let all = self.facets.iter().enumerate();
                let heights = all.filter_map(|(k, f)| Some((k, self.height(f.as_ref()?, i))));
                self.farthest[i] = largest(heights).unwrap_or((usize::MAX, f64::NEG_INFINITY));
            }
        }
    }

    /// The vertex that is farthest outside, by more than a part of the extents.
    fn next(&self, left: f64) -> Option<usize> {
        let all = self.farthest.iter().enumerate().map(|(i, f)| (i, f.1));
        largest(all).filter(|(_, by)| *by > left).map(|(i, _)| i)
    }
}

/// How many vertices a hull takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Vertices {
    /// This many at most, from 4 to [`MOST`]; fewer if they contain the whole mesh.
    UpTo(usize),
    /// This many at most; fewer if the hull is smaller than the mesh by no more than [`CUT_OFF`].
    Enough(usize),
}

/// The convex hull of points.
pub(super) fn reduced(
    points: impl Iterator<Item = Vec3>,
    vertices: Vertices,
) -> Result<Reduced, String> {
    let mut known = HashSet::new();
    // zero has two signs
    let bits = |p: &Vec3| [p.x, p.y, p.z].map(|v| (v + 0.0).to_bits());
    let points: Vec<Vec3> = points.filter(|p| known.insert(bits(p))).collect();
    let Vertices::Enough(mut most) = vertices else {
        return reduced_once(&points, vertices);
    };
    loop {
        let done = reduced_once(&points, Vertices::Enough(most));
        if done.is_ok() || most <= FEW {
            return done;
        }
        // a face has more corners than contacts between bodies take
        most = (most.min(points.len()) * FEWER.0 / FEWER.1).max(FEW);
    }
}

fn reduced_once(points: &[Vec3], vertices: Vertices) -> Result<Reduced, String> {
    let (most, left) = match vertices {
        Vertices::UpTo(most) => (most, OUTSIDE),
        Vertices::Enough(most) => (most, CUT_OFF),
    };
    let lower = points
        .iter()
        .fold(Vec3::repeat(f64::INFINITY), |m, p| m.inf(p));
    let upper = (points.iter()).fold(Vec3::repeat(f64::NEG_INFINITY), |m, p| m.sup(p));
    let (extents, middle) = (upper - lower, (lower + upper) * 0.5);
    let size = extents.max();
    let hull_of = |chosen: &[Vec3]| {
        let chosen: Vec<[f64; 3]> = chosen.iter().map(|p| (*p).into()).collect();
        Hull::new(&chosen)
    };
    let has_volume = extents.iter().all(|e| *e > OUTSIDE * size && e.is_finite());
    // few vertices are all taken
    if points.len() <= most.min(FEW) || points.len() <= most && left == OUTSIDE || !has_volume {
        return Ok(Reduced {
            hull: hull_of(points)?,
            given: points.len(),
            taken: points.len(),
            beyond: 0.0,
            size,
        });
    }
    let scaled: Vec<Vec3> = (points.iter())
        .map(|p| (p - middle).component_div(&extents))
        .collect();
    let mut first: Vec<usize> = vec![];
    for axis in 0..3 {
        for sign in [1.0, -1.0] {
            // of a flat end a corner rather than the middle
            let key = |i: &usize| {
                let p = &scaled[*i];
                (sign * p[axis], p.norm_squared())
            };
            let farthest = (0..scaled.len()).max_by(|i, j| {
                let ((a, b), (c, d)) = (key(i), key(j));
                a.total_cmp(&c).then(b.total_cmp(&d))
            });
            first.extend(farthest.filter(|i| !first.contains(i)));
        }
    }
    let Some(mut growing) = Growing::new(&scaled, &first) else {
        return Err("the mesh spans no volume".into());
    };
    for vertex in first {
        if growing.taken.len() < most && growing.farthest[vertex].1 > VISIBLE {
            growing.add(vertex);
        }
    }
    while growing.taken.len() < most {
        let Some(next) = growing.next(left) else {
            break;
        };
        growing.add(next);
    }
    // in meters
    let planes: Vec<(Vec3, f64, f64)> = (growing.facets.iter().flatten())
        .map(|f| (f.normal, f.offset, f.normal.component_div(&extents).norm()))
        .collect();
    let outside = |p: &Vec3| {
        let each = planes
            .iter()
            .map(|(n, offset, scale)| (n.dot(p) - offset) / scale);
        each.fold(0.0, f64::max)
    };
    let beyond = scaled.iter().map(outside).fold(0.0, f64::max);
    let chosen: Vec<Vec3> = growing.taken.iter().map(|i| points[*i]).collect();
    let hull = hull_of(&chosen).map_err(|e| match chosen.len() > FEW {
        true => format!("{e}; a smaller hull_vertices under [import] gives a smaller hull"),
        false => e,
    })?;
    Ok(Reduced {
        hull,
        given: points.len(),
        taken: chosen.len(),
        beyond: if beyond > OUTSIDE * size { beyond } else { 0.0 },
        size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{PI, TAU};

    /// Rings of a sphere of radius one with poles.
    fn sphere(rings: usize, around: usize) -> Vec<Vec3> {
        let ring = |i: usize| {
            let polar = PI * i as f64 / rings as f64;
            (0..around).map(move |k| {
                let turn = TAU * k as f64 / around as f64;
                let across = polar.sin();
                Vec3::new(across * turn.cos(), across * turn.sin(), polar.cos())
            })
        };
        let poles = [Vec3::z(), -Vec3::z()];
        (1..rings).flat_map(ring).chain(poles).collect()
    }

    /// A box of half edges 1, 0.6, 0.3 whose edges are rounded with radius 0.1.
    fn rounded_box() -> Vec<Vec3> {
        let core = Vec3::new(0.9, 0.5, 0.2);
        let round = sphere(16, 32).into_iter();
        round
            .map(|p| core.component_mul(&p.map(|v| if v < 0.0 { -1.0 } else { 1.0 })) + p * 0.1)
            .collect()
    }

    fn cylinder() -> Vec<Vec3> {
        let ring = |z: f64| {
            (0..64).map(move |k| {
                let turn = TAU * f64::from(k) / 64.0;
                Vec3::new(0.3 * turn.cos(), 0.3 * turn.sin(), z)
            })
        };
        let middles = [Vec3::z(), -Vec3::z()];
        ring(-1.0).chain(ring(1.0)).chain(middles).collect()
    }

    fn stretched(by: [f64; 3]) -> Vec<Vec3> {
        let by = Vec3::from(by);
        sphere(24, 32)
            .iter()
            .map(|p| p.component_mul(&by))
            .collect()
    }

    fn extents(points: &[Vec3]) -> Vec3 {
        let lower = points
            .iter()
            .fold(Vec3::repeat(f64::INFINITY), |m, p| m.inf(p));
        let upper = (points.iter()).fold(Vec3::repeat(f64::NEG_INFINITY), |m, p| m.sup(p));
        upper - lower
    }

    /// Largest part of the extents that is cut off in any of many directions.
    fn cut(points: &[Vec3], hull: &Hull) -> f64 {
        let size = extents(points);
        let scaled = |p: &Vec3| p.component_div(&size);
        let support = |all: &[Vec3], n: &Vec3| {
            let each = all.iter().map(|p| n.dot(&scaled(p)));
            each.fold(f64::NEG_INFINITY, f64::max)
        };
        let each = sphere(40, 80).into_iter();
        each.map(|n| support(points, &n) - support(hull.vertices(), &n))
            .fold(0.0, f64::max)
    }

    #[test]
    fn hulls_keep_the_extents_and_cut_off_little() {
        let meshes = [
            ("ball", stretched([0.1; 3]), 0.08),
            ("ellipsoid", stretched([0.3, 0.2, 0.1]), 0.08),
            ("box with rounded edges", rounded_box(), 0.08),
            ("cylinder", cylinder(), 0.08),
            ("long and thin", stretched([2.0, 0.01, 0.02]), 0.08),
            ("scaled", stretched([1e-3, 2e-3, 1.5e-3]), 0.08),
        ];
        for (name, points, most) in meshes {
            let few = reduced(points.iter().copied(), Vertices::UpTo(FEW)).expect(name);
            assert_eq!((few.taken, few.given), (FEW, points.len()), "{name}");
            let (own, given) = (extents(few.hull.vertices()), extents(&points));
            assert_eq!(own, given, "{name}");
            let by = cut(&points, &few.hull);
            println!("{name}: {by:.4}, {:.2e} m of {:.2e}", few.beyond, few.size);
            assert!(by < most, "{name}: {by}");
            // what is reported is not less than the mesh is larger in the directions of its faces
            let planes: Vec<(Vec3, f64)> = (few.hull.faces())
                .map(|(n, corners)| (n, n.dot(&corners[0])))
                .collect();
            let outside = |p: &Vec3| planes.iter().map(|(n, d)| n.dot(p) - d).fold(0.0, f64::max);
            let truth = points.iter().map(outside).fold(0.0, f64::max);
            assert!(
                (few.beyond - truth).abs() < 1e-3 * few.size,
                "{name}: {truth}"
            );
            // more vertices cut off less, measured in parts of the extents as they are chosen
            let more = reduced(points.iter().copied(), Vertices::UpTo(60)).expect(name);
            assert!(cut(&points, &more.hull) < by, "{name}");
        }
    }

    #[test]
    fn hulls_have_as_many_vertices_as_they_need() {
        let meshes = [
            ("ball", stretched([0.1; 3]), 500),
            ("ellipsoid", stretched([0.3, 0.2, 0.1]), 500),
            ("box with rounded edges", rounded_box(), 100),
            ("long and thin", stretched([2.0, 0.01, 0.02]), 500),
            ("coarse", sphere(5, 6), 26),
        ];
        for (name, points, least) in meshes {
            let done = reduced(points.iter().copied(), Vertices::Enough(VERTICES)).expect(name);
            let by = cut(&points, &done.hull);
            println!("{name}: {} of {}, {by:.1e}", done.taken, done.given);
            assert!(by <= CUT_OFF, "{name}: {by}");
            assert!(
                done.beyond <= CUT_OFF * done.size,
                "{name}: {}",
                done.beyond
            );
            assert!((least..=points.len()).contains(&done.taken), "{name}");
        }
        // faces have fewer corners than the ends of the mesh; more are refused only if they are asked for
        let points = cylinder();
        let done = reduced(points.iter().copied(), Vertices::Enough(VERTICES)).expect("a hull");
        let all = reduced(points.iter().copied(), Vertices::UpTo(points.len()));
        let by = cut(&points, &done.hull);
        println!("cylinder: {} of {}, {by:.1e}", done.taken, done.given);
        assert!(all.is_err() && done.taken > FEW && by < 0.01, "{by}");
        // a bound that is reached
        let few = reduced(stretched([0.1; 3]).into_iter(), Vertices::Enough(FEW)).expect("a hull");
        assert_eq!(few.taken, FEW);
        assert!(few.beyond > CUT_OFF * few.size);
    }

    #[test]
    fn all_vertices_are_the_mesh() {
        for points in [stretched([0.1; 3]), rounded_box()] {
            let all = reduced(points.iter().copied(), Vertices::UpTo(MOST)).expect("a hull");
            assert_eq!((all.beyond, all.taken), (0.0, points.len()));
            assert!(cut(&points, &all.hull) < 1e-12);
        }
    }

    #[test]
    fn flat_meshes_are_refused() {
        let points = stretched([1.0; 3]);
        let flat = points.iter().map(|p| Vec3::new(p.x, p.y, 0.0));
        let e = reduced(flat, Vertices::Enough(VERTICES))
            .err()
            .expect("refused");
        assert!(e.contains("not in one plane"), "{e}");
        let tilted = points.iter().map(|p| Vec3::new(p.x, p.y, p.x + p.y));
        assert!(reduced(tilted, Vertices::Enough(VERTICES)).is_err());
    }
}
