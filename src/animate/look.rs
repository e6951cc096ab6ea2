//! What a mechanism looks like: the shapes of its bodies, and rods and balls where it has only lines.

use super::mesh::{Mesh, facing, vec3};
use crate::format::outline::outline;
use crate::format::recording::Recording;
use crate::mechanism::{Mechanism, MechanismBuilder, Orientation, Surface};
use crate::plot::{PALETTE, Rgb};
use crate::spatial::{Mat3, Vec3, rotation};
use std::collections::HashSet;

/// Part of a mechanism's size that the radius of its rods is.
pub(super) const ROD: f64 = 0.007;
/// Radii of a joint's ball in radii of a rod.
const BALL: f64 = 1.8;
/// Part of its size by which a shape's triangles may be within it: lines that near are its own.
const SAGITTA: f64 = 0.02;
/// Share of the palette's colour in a body's, the rest white: bodies are areas, not lines.
const SOFT: f64 = 0.72;
/// Of what does not move.
const WORLD: Rgb = Rgb(0xb8, 0xb4, 0xac);
const WHITE: Rgb = Rgb(0xff, 0xff, 0xff);
const BLACK: Rgb = Rgb(0x00, 0x00, 0x00);

/// Red, green, blue, 0 to 1, sRGB.
pub type Color = [f32; 3];

/// A mesh fixed to a body.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// `None` is the world.
    pub body: Option<usize>,
    pub mesh: Mesh,
    /// In the body's frame.
    pub position: Vec3,
    pub turn: Mat3,
    pub color: Color,
}

/// The colours of a run's bodies: its own, or those of one run among several.
pub(super) fn colors(bodies: usize, run: Option<usize>) -> Vec<Color> {
    let of = |i: usize| PALETTE[i % PALETTE.len()];
    let body = |b: usize| match run {
        None => of(b).mix(WHITE, SOFT),
        // neighbours differ a little in brightness
        Some(run) => of(run).mix(WHITE, SOFT - 0.14 * (b % 3) as f64),
    };
    (0..bodies).map(|b| color(body(b))).collect()
}

pub(super) fn color(rgb: Rgb) -> Color {
    [rgb.0, rgb.1, rgb.2].map(|v| f32::from(v) / 255.0)
}

/// The mechanism that a recording was made of; `None` where it does not say, or is of another version.
fn mechanism(recording: &Recording) -> Option<Mechanism> {
    let described: MechanismBuilder = serde_json::from_value(recording.mechanism.clone()).ok()?;
    described.build().ok()
}

/// A surface on a body of the recording, or on the world.
struct Solid {
    body: Option<usize>,
    surface: Surface,
    position: Vec3,
    turn: Mat3,
}

/// Surfaces of bodies and of the world; of contacts at points there is nothing to see.
fn solids(recording: &Recording) -> Vec<Solid> {
    let Some(m) = mechanism(recording) else {
        return vec![];
    };
    let index = |b: usize| recording.bodies.iter().position(|n| *n == m.bodies[b].name);
    let mut solids: Vec<Solid> = vec![];
    for (b, body) in m.bodies.iter().enumerate() {
        if let (Some(shape), Some(own)) = (body.shape, index(b)) {
            solids.push(Solid {
                body: Some(own),
                surface: shape.into(),
                position: Vec3::zeros(),
                turn: Mat3::identity(),
            });
        }
    }
    for c in &m.colliders {
        let body = match c.body {
            None => None,
            Some(b) => match index(b) {
                None => continue,
                own => own,
            },
        };
        let known = |s: &Solid| {
            let place = (s.position, s.turn) == (c.position, c.orientation);
            s.body == body && place && s.surface == c.surface
        };
        if c.surface != Surface::Point && !solids.iter().any(known) {
            solids.push(Solid {
                body,
                surface: c.surface.clone(),
                position: c.position,
                turn: c.orientation,
            });
        }
    }
    solids
}

impl Shown {
    /// Are all points in a convex mesh, or on it?
    fn holds(&self, points: &[Vec3]) -> bool {
        let local: Vec<Vec3> = (points.iter())
            .map(|p| self.turn.tr_mul(&(p - self.position)))
            .collect();
        let size = (self.mesh.positions.iter()).fold(0.0_f64, |m, p| m.max(vec3(*p).norm()));
        let below = |[a, b, c]: [Vec3; 3]| {
            let across = (b - a).cross(&(c - a));
            let length = across.norm();
            let above = |p: &Vec3| across.dot(&(p - a)) > SAGITTA * size * length;
            !local.iter().any(above)
        };
        self.mesh.triangles().all(below)
    }

    /// Its vertices where the body is at the origin.
    fn points(&self) -> impl Iterator<Item = Vec3> + '_ {
        (self.mesh.positions.iter()).map(|p| self.position + self.turn * vec3(*p))
    }
}

fn turned(orientation: &[f64; 4]) -> Mat3 {
    let quat = Orientation::Quaternion(*orientation).quat();
    quat.map_or_else(Mat3::identity, |q| rotation(&q))
}

/// A polyline to the bits of single precision.
fn bits(points: &[Vec3]) -> Vec<[u32; 3]> {
    let of = |p: &Vec3| [p.x, p.y, p.z].map(|v| (v as f32 + 0.0).to_bits());
    points.iter().map(of).collect()
}

/// Everything that is fixed to a body or to the world. `colors` are those of the bodies; `size` tells the mechanism's
/// from points of its bodies.
pub(super) fn shown(
    recording: &Recording,
    colors: &[Color],
    size: impl FnOnce(&[(usize, Vec3)]) -> f64,
) -> Vec<Shown> {
    let r = recording;
    let world = color(WORLD);
    let tint = |body: Option<usize>| body.map_or(world, |b| colors[b]);
    let mut all: Vec<Shown> = vec![];
    let place = |v: &crate::format::recording::Visual| Shown {
        body: v.body,
        mesh: (v.shape.as_ref()).map_or_else(|| Mesh::visual(v), Mesh::surface),
        position: v.position.into(),
        turn: turned(&v.orientation),
        color: v
            .color
            .map_or(tint(v.body), |c| c.map(|x| x.clamp(0.0, 1.0) as f32)),
    };
    all.extend(r.visuals.iter().map(place));
    // bodies that have a look of their own
    let dressed: HashSet<Option<usize>> = all.iter().map(|s| s.body).collect();
    let dressed = |body: Option<usize>| body.is_some() && dressed.contains(&body);
    let mut grids: HashSet<Vec<[u32; 3]>> = HashSet::new();
    for s in solids(r).into_iter().filter(|s| !dressed(s.body)) {
        if let Surface::Heights(_) = s.surface {
            // not convex: its lines are known by where they run
            let placed = |p: Vec3| s.position + s.turn * p;
            let lines = outline(&s.surface).into_iter();
            grids.extend(lines.map(|l| bits(&l.into_iter().map(placed).collect::<Vec<_>>())));
        }
        all.push(Shown {
            body: s.body,
            mesh: Mesh::surface(&s.surface),
            position: s.position,
            turn: s.turn,
            color: tint(s.body),
        });
    }
    let known = |body: Option<usize>, points: &[Vec3]| {
        let own = |s: &&Shown| s.body == body;
        dressed(body) || all.iter().filter(own).any(|s| s.holds(points))
    };
    let mut rods: Vec<(Option<usize>, Vec<Vec3>)> = vec![];
    for line in &r.lines {
        let points: Vec<Vec3> = line.points.iter().map(|p| Vec3::from(*p)).collect();
        let finite = points.iter().all(|p| p.iter().all(|v| v.is_finite()));
        let is_grid = line.body.is_none() && grids.contains(&bits(&points));
        if points.len() > 1 && finite && !is_grid && !known(line.body, &points) {
            rods.push((line.body, points));
        }
    }
    let mut balls: Vec<(Option<usize>, Vec3)> = vec![];
    for dot in &r.dots {
        let point = Vec3::from(dot.point);
        if point.iter().all(|v| v.is_finite()) && !known(dot.body, &[point]) {
            balls.push((dot.body, point));
        }
    }
    // a rod that ends at the center of mass carries it
    for b in 0..r.bodies.len() {
        let body = Some(b);
        let reaches = |(of, points): &&(Option<usize>, Vec<Vec3>)| {
            *of == body && points.iter().any(|p| p.norm() < 1e-9)
        };
        if rods.iter().any(|l| reaches(&l)) && !balls.contains(&(body, Vec3::zeros())) {
            balls.push((body, Vec3::zeros()));
        }
    }
    let of_bodies = all
        .iter()
        .flat_map(|s| s.points().filter_map(|p| Some((s.body?, p))));
    let of_rods = rods
        .iter()
        .flat_map(|(b, points)| points.iter().filter_map(|p| Some(((*b)?, *p))));
    let of_balls = balls.iter().filter_map(|(b, p)| Some(((*b)?, *p)));
    let points: Vec<(usize, Vec3)> = of_bodies.chain(of_rods).chain(of_balls).collect();
    let radius = ROD * size(&points);
    let mut add = |body: Option<usize>, mesh: Mesh, position: Vec3, color: Color| {
        all.push(Shown {
            body,
            mesh,
            position,
            turn: Mat3::identity(),
            color,
        });
    };
    for (body, points) in rods {
        add(body, Mesh::line(&points, radius), Vec3::zeros(), tint(body));
    }
    let darker = |c: Color| {
        let [r, g, b] = c.map(|v| (v * 255.0) as u8);
        color(Rgb(r, g, b).mix(BLACK, 0.75))
    };
    for (body, point) in balls {
        let ball = Mesh::capsule(BALL * radius, 0.0);
        add(body, ball, point, darker(tint(body)));
    }
    all.retain(|s| !s.mesh.indices.is_empty());
    all
}

/// Turn and length of a straight piece, along which a mesh along z is laid.
pub(super) fn along(from: &Vec3, to: &Vec3) -> Option<(Mat3, f64)> {
    let length = (to - from).norm();
    (length > 0.0).then(|| (facing(&((to - from) / length)), length))
}
