//! Triangles of shapes: one tessellation for every kind of file.

use crate::format::recording::Visual;
use crate::mechanism::{Heights, Hull, Surface};
use crate::spatial::{Mat3, Vec3};
use std::f64::consts::{FRAC_PI_2, PI, TAU};

/// Sides of a circle: its polygon is within a quarter of a percent of the radius.
const SIDES: usize = 48;
/// The same of rods, which are thin.
const ROD_SIDES: usize = 10;
/// Rings of a sphere from pole to pole.
const RINGS: usize = 20;
/// Cosine of the turn from which on a rod's corner needs a ball to be round.
const STRAIGHT: f64 = 0.98;
/// Edges of given triangles that turn by more than this are sharp: cosine of 40 degrees.
const SMOOTH: f64 = 0.766;

/// Triangles with a normal at every vertex, in m.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// Of the vertices.
    pub positions: Vec<[f32; 3]>,
    /// Outward, unit length.
    pub normals: Vec<[f32; 3]>,
    /// Three for every triangle, counterclockwise from outside.
    pub indices: Vec<u32>,
}

/// A point of a profile that is turned about z: distance from the axis, height, and the normal in the same plane.
type Profile = (f64, f64, [f64; 2]);

impl Mesh {
    /// The triangles of a surface about its own frame; none of a point.
    pub fn surface(surface: &Surface) -> Mesh {
        match surface {
            Surface::Point => Mesh::default(),
            Surface::Sphere(radius) => Mesh::capsule(*radius, 0.0),
            Surface::Capsule { radius, length } => Mesh::capsule(*radius, *length),
            Surface::Cylinder { radius, length } => Mesh::cylinder(*radius, *length),
            Surface::Box(edges) => Mesh::cuboid(*edges),
            Surface::Hull(hull) => Mesh::hull(hull),
            Surface::Heights(heights) => Mesh::heights(heights),
        }
    }

    /// A box of these edge lengths.
    pub fn cuboid(edges: [f64; 3]) -> Mesh {
        let mut mesh = Mesh::default();
        for axis in 0..3 {
            for side in [-0.5_f64, 0.5] {
                let unit = |i: usize, length: f64| Vec3::ith(i % 3, length);
                let normal = unit(axis, side.signum());
                let middle = unit(axis, side * edges[axis]);
                let u = unit(axis + 1, 0.5 * edges[(axis + 1) % 3]);
                let v = unit(axis + 2, side * edges[(axis + 2) % 3]);
                mesh.face(
                    &normal,
                    &[
                        middle - u - v,
                        middle + u - v,
                        middle + u + v,
                        middle - u + v,
                    ],
                );
            }
        }
        mesh
    }

    /// A cylinder along z with half spheres at its ends; a sphere where it has no length.
    pub fn capsule(radius: f64, length: f64) -> Mesh {
        let ring = |i: usize, shift: f64| {
            let (sin, cos) = (PI * i as f64 / RINGS as f64 - FRAC_PI_2).sin_cos();
            // the poles are on the axis, whatever rounding says
            let cos = if i.is_multiple_of(RINGS) { 0.0 } else { cos };
            (radius * cos, radius * sin + shift, [cos, sin])
        };
        let half = 0.5 * length;
        let lower = (0..=RINGS / 2).map(|i| ring(i, -half));
        let upper = (RINGS / 2..=RINGS).map(|i| ring(i, half));
        let skipped = usize::from(length == 0.0);
        let profile: Vec<Profile> = lower.chain(upper.skip(skipped)).collect();
        Mesh::turned(&profile, SIDES)
    }

    /// A cylinder along z.
    pub fn cylinder(radius: f64, length: f64) -> Mesh {
        Mesh::cone([radius, radius], length, SIDES)
    }

    /// A truncated cone along z: radii at its lower and its upper end.
    fn cone([lower, upper]: [f64; 2], length: f64, sides: usize) -> Mesh {
        let half = 0.5 * length;
        let slope = Vec3::new(length, 0.0, lower - upper).normalize();
        let side = [slope.x, slope.z];
        let profile = [
            (0.0, -half, [0.0, -1.0]),
            (lower, -half, [0.0, -1.0]),
            (lower, -half, side),
            (upper, half, side),
            (upper, half, [0.0, 1.0]),
            (0.0, half, [0.0, 1.0]),
        ];
        Mesh::turned(&profile, sides)
    }

    /// The head of an arrow: a cone along z from the origin, of length and radius one.
    pub fn head() -> Mesh {
        let z = Vec3::z() * 0.5;
        Mesh::cone([1.0, 0.0], 1.0, SIDES / 2).placed(&z, &Mat3::identity())
    }

    /// A rod along z from the origin, of length and radius one.
    pub fn rod() -> Mesh {
        let z = Vec3::z() * 0.5;
        Mesh::cone([1.0, 1.0], 1.0, ROD_SIDES).placed(&z, &Mat3::identity())
    }

    /// Rods along a line, with round corners.
    pub fn line(points: &[Vec3], radius: f64) -> Mesh {
        let mut mesh = Mesh::default();
        let ball = Mesh::turned(
            &[-2, -1, 0, 1, 2].map(|i| {
                let (sin, cos) = (FRAC_PI_2 * f64::from(i) / 2.0).sin_cos();
                let cos = if i % 2 == 0 && i != 0 { 0.0 } else { cos };
                (radius * cos, radius * sin, [cos, sin])
            }),
            ROD_SIDES,
        );
        let mut before: Option<Vec3> = None;
        for pair in points.windows(2) {
            let along = pair[1] - pair[0];
            let length = along.norm();
            if !(length > 0.0 && length.is_finite()) {
                continue;
            }
            let direction = along / length;
            let turn = facing(&direction);
            if before.is_none_or(|b| b.dot(&direction) < STRAIGHT) {
                mesh.append(&ball.placed(&pair[0], &turn));
            }
            let part = Mesh::cone([radius, radius], length, ROD_SIDES);
            mesh.append(&part.placed(&((pair[0] + pair[1]) * 0.5), &turn));
            before = Some(direction);
        }
        if let Some(end) = points.last() {
            mesh.append(&ball.placed(end, &Mat3::identity()));
        }
        mesh
    }

    /// The faces of a convex hull.
    pub fn hull(hull: &Hull) -> Mesh {
        let mut mesh = Mesh::default();
        for (normal, corners) in hull.faces() {
            mesh.face(&normal, &corners);
        }
        mesh
    }

    /// Ground of triangles, open below.
    pub fn heights(heights: &Heights) -> Mesh {
        let mut mesh = Mesh::default();
        for [a, b, c] in heights.triangles() {
            mesh.face(&(b - a).cross(&(c - a)).normalize(), &[a, b, c]);
        }
        mesh
    }

    /// A convex polygon, seen from the side its normal points to.
    pub fn polygon(normal: &Vec3, corners: &[Vec3]) -> Mesh {
        let mut mesh = Mesh::default();
        mesh.face(normal, corners);
        mesh
    }

    /// Triangles that were given; where they meet at a small angle they look round. What has no area, or corners that do
    /// not exist, is left out.
    pub fn visual(visual: &Visual) -> Mesh {
        let point = |i: u32| visual.vertices.get(i as usize).map(|p| Vec3::from(*p));
        let mut faces: Vec<([u32; 3], Vec3, [Vec3; 3])> = vec![];
        for t in &visual.triangles {
            let [Some(a), Some(b), Some(c)] = t.map(point) else {
                continue;
            };
            // twice the area, by which normals are weighed
            let across = (b - a).cross(&(c - a));
            if across.norm() > 0.0 {
                faces.push((*t, across, [a, b, c]));
            }
        }
        // STL files repeat the corners of every triangle: those at one place belong together
        let place = |p: &Vec3| [p.x, p.y, p.z].map(|v| (v as f32 + 0.0).to_bits());
        let mut around: std::collections::HashMap<[u32; 3], Vec<usize>> = Default::default();
        for (f, (_, _, corners)) in faces.iter().enumerate() {
            for p in corners {
                around.entry(place(p)).or_default().push(f);
            }
        }
        let mut mesh = Mesh::default();
        for (_, across, corners) in &faces {
            let own = across.normalize();
            for p in corners {
                let near = around[&place(p)].iter().map(|f| faces[*f].1);
                let near = near.filter(|other| other.normalize().dot(&own) > SMOOTH);
                let normal: Vec3 = near.sum();
                mesh.vertex(p, &normal.try_normalize(0.0).unwrap_or(own));
            }
            let first = mesh.positions.len() as u32 - 3;
            mesh.indices.extend([first, first + 1, first + 2]);
        }
        mesh
    }

    /// A profile turned about z. It runs upwards on the outside; points at the same place make a sharp edge.
    fn turned(profile: &[Profile], sides: usize) -> Mesh {
        let mut mesh = Mesh::default();
        for (radius, z, [across, up]) in profile {
            for s in 0..sides {
                let (sin, cos) = (TAU * s as f64 / sides as f64).sin_cos();
                let point = Vec3::new(radius * cos, radius * sin, *z);
                mesh.vertex(&point, &Vec3::new(across * cos, across * sin, *up));
            }
        }
        for (i, pair) in profile.windows(2).enumerate() {
            let (below, above) = (pair[0], pair[1]);
            if (below.0, below.1) == (above.0, above.1) {
                continue;
            }
            for s in 0..sides {
                let at = |ring: usize, side: usize| ((i + ring) * sides + side % sides) as u32;
                if below.0 > 0.0 {
                    mesh.indices.extend([at(0, s), at(0, s + 1), at(1, s + 1)]);
                }
                if above.0 > 0.0 {
                    mesh.indices.extend([at(0, s), at(1, s + 1), at(1, s)]);
                }
            }
        }
        mesh
    }

    fn vertex(&mut self, point: &Vec3, normal: &Vec3) {
        self.positions
            .push([point.x, point.y, point.z].map(|v| v as f32));
        self.normals
            .push([normal.x, normal.y, normal.z].map(|v| v as f32));
    }

    /// A flat convex polygon, corners counterclockwise from outside.
    fn face(&mut self, normal: &Vec3, corners: &[Vec3]) {
        let first = self.positions.len() as u32;
        corners.iter().for_each(|c| self.vertex(c, normal));
        for i in 2..corners.len() as u32 {
            self.indices.extend([first, first + i - 1, first + i]);
        }
    }

    fn append(&mut self, other: &Mesh) {
        let first = self.positions.len() as u32;
        self.positions.extend(&other.positions);
        self.normals.extend(&other.normals);
        self.indices.extend(other.indices.iter().map(|i| i + first));
    }

    /// The same, turned and moved.
    fn placed(&self, position: &Vec3, turn: &Mat3) -> Mesh {
        let mut mesh = self.clone();
        let to = |v: Vec3| [v.x, v.y, v.z].map(|x| x as f32);
        for p in &mut mesh.positions {
            *p = to(position + turn * vec3(*p));
        }
        for n in &mut mesh.normals {
            *n = to(turn * vec3(*n));
        }
        mesh
    }

    /// Its triangles' corners.
    pub fn triangles(&self) -> impl Iterator<Item = [Vec3; 3]> + '_ {
        let corner = |i: &u32| vec3(self.positions[*i as usize]);
        (self.indices.chunks_exact(3)).map(move |t| [corner(&t[0]), corner(&t[1]), corner(&t[2])])
    }

    /// Smallest and largest coordinates, m; none of a mesh without vertices.
    pub fn bounds(&self) -> Option<[[f32; 3]; 2]> {
        let first = *self.positions.first()?;
        let grow = |[low, high]: [[f32; 3]; 2], p: &[f32; 3]| {
            let each = |f: fn(f32, f32) -> f32, a: [f32; 3]| [0, 1, 2].map(|i| f(a[i], p[i]));
            [each(f32::min, low), each(f32::max, high)]
        };
        Some(self.positions.iter().fold([first, first], grow))
    }
}

/// As double.
pub(super) fn vec3(p: [f32; 3]) -> Vec3 {
    Vec3::from(p.map(f64::from))
}

/// A rotation that turns z into a direction of unit length.
pub(super) fn facing(direction: &Vec3) -> Mat3 {
    let side = if direction.x.abs() < 0.8 {
        Vec3::x()
    } else {
        Vec3::y()
    };
    let across = direction.cross(&side).normalize();
    Mat3::from_columns(&[across.cross(direction), across, *direction])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn volume(mesh: &Mesh) -> f64 {
        mesh.triangles()
            .map(|[a, b, c]| a.dot(&b.cross(&c)) / 6.0)
            .sum()
    }

    /// Every edge of a triangle is that of another, the other way round; and normals point to the outside of it.
    fn check(mesh: &Mesh, what: &str) {
        let bits = |p: Vec3| [p.x, p.y, p.z].map(|v| (v + 0.0).to_bits());
        let mut edges = HashSet::new();
        for t in mesh.triangles() {
            for i in 0..3 {
                assert!(
                    edges.insert((bits(t[i]), bits(t[(i + 1) % 3]))),
                    "{what}: an edge twice"
                );
            }
        }
        assert!(
            edges.iter().all(|(a, b)| edges.contains(&(*b, *a))),
            "{what} is open"
        );
        let outward = |i: &[u32]| {
            let [a, b, c] = [0, 1, 2].map(|k| vec3(mesh.positions[i[k] as usize]));
            let across = (b - a).cross(&(c - a)).normalize();
            (0..3).all(|k| across.dot(&vec3(mesh.normals[i[k] as usize])) > 0.7)
        };
        assert!(
            mesh.indices.chunks_exact(3).all(outward),
            "{what} is inside out"
        );
        let lengths = mesh.normals.iter().map(|n| (vec3(*n).norm() - 1.0).abs());
        assert!(
            lengths.fold(0.0, f64::max) < 1e-6,
            "{what}: a normal is not of unit length"
        );
    }

    #[test]
    fn shapes_are_closed_and_have_their_volume() {
        let (radius, length) = (0.3, 0.8);
        let disc = PI * radius * radius;
        let ball = 4.0 / 3.0 * PI * radius * radius * radius;
        // a regular polygon's part of its circle
        let sides = TAU / SIDES as f64;
        let part = sides.sin() / sides;
        let corners: Vec<[f64; 3]> = (0..8)
            .map(|i| [0, 1, 2].map(|k| if i >> k & 1 == 1 { 0.5 } else { -0.2 }))
            .collect();
        let hull = Hull::new(&corners).expect("a hull");
        for (surface, expected, least) in [
            (Surface::Box([0.2, 0.3, 0.4]), 0.024, 1.0 - 1e-6),
            (Surface::Hull(hull), 0.343, 1.0 - 1e-6),
            (Surface::Sphere(radius), ball, 0.98),
            (
                Surface::Cylinder { radius, length },
                disc * length,
                part - 1e-6,
            ),
            (
                Surface::Capsule { radius, length },
                disc * length + ball,
                0.985,
            ),
        ] {
            let mesh = Mesh::surface(&surface);
            check(&mesh, surface.kind());
            let share = volume(&mesh) / expected;
            assert!(
                (least..1.0 + 1e-6).contains(&share),
                "{}: {share}",
                surface.kind()
            );
        }
        let [low, high] = Mesh::capsule(radius, length).bounds().expect("some");
        assert!((high[2] - 0.7).abs() < 1e-6 && (low[2] + 0.7).abs() < 1e-6);
        assert!(Mesh::surface(&Surface::Point).indices.is_empty());
    }

    #[test]
    fn arrows_and_rods_are_closed() {
        let head = Mesh::head();
        check(&head, "a head");
        assert_eq!(head.bounds().map(|b| (b[0][2], b[1][2])), Some((0.0, 1.0)));
        check(&Mesh::rod(), "a rod");
        let corner = [Vec3::zeros(), Vec3::x(), Vec3::new(1.0, 1.0, 0.0)];
        // two rods and three balls, which overlap
        let line = Mesh::line(&corner, 0.1);
        let [low, high] = line.bounds().expect("some");
        for (axis, reach) in [(0, 1.1), (1, 1.1), (2, 0.1)] {
            assert!((f64::from(high[axis]) - reach).abs() < 0.02, "{high:?}");
        }
        assert!(low[2] < -0.09);
        assert!(volume(&line) > 0.9 * PI * 0.02);
    }

    #[test]
    fn a_direction_is_faced() {
        for d in [
            Vec3::x(),
            Vec3::y(),
            Vec3::z(),
            -Vec3::z(),
            Vec3::new(1.0, -2.0, 3.0).normalize(),
        ] {
            let turn = facing(&d);
            assert!((turn * Vec3::z() - d).amax() < 1e-12);
            assert!((turn.determinant() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn ground_faces_up() {
        let heights = Heights::new(&[vec![0.0, 0.1, 0.0], vec![0.2, 0.0, 0.1]], [0.5, 0.4]);
        let mesh = Mesh::heights(&heights.expect("heights"));
        assert_eq!(mesh.indices.len(), 3 * 4);
        assert!(mesh.normals.iter().all(|n| n[2] > 0.5));
        assert!(
            mesh.triangles()
                .all(|[a, b, c]| (b - a).cross(&(c - a)).z > 0.0)
        );
    }

    #[test]
    fn given_triangles_are_smooth_where_they_are_flat() {
        // a roof with a shallow and a steep side, each corner given anew as STL files do
        let side = |angle: f64| [angle.cos(), 0.0, -angle.sin()];
        let (o, y) = ([0.0; 3], [0.0, 1.0, 0.0]);
        let visual = |right: [f64; 3]| Visual {
            color: None,
            vertices: vec![o, y, [-1.0, 0.0, 0.0], o, right, y],
            triangles: vec![[0, 1, 2], [3, 4, 5], [0, 0, 1], [0, 1, 9]],
            ..Visual::of(None)
        };
        let shallow = Mesh::visual(&visual(side(0.2)));
        // without area, or without a corner
        assert_eq!(shallow.indices.len(), 6);
        let ridge = |m: &Mesh| (m.normals[0], m.normals[3]);
        let (a, b) = ridge(&shallow);
        assert!((vec3(a) - vec3(b)).norm() < 1e-6);
        let (a, b) = ridge(&Mesh::visual(&visual(side(1.2))));
        assert!((vec3(a) - vec3(b)).norm() > 0.5);
    }
}
