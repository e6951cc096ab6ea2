//! Line work for a mechanism whose file gives none.

use super::recording::{Dot, Ground, Line, Link};
use crate::mechanism::{Collider, ContactPair, HalfSpace, JointKind, Mechanism, Shape, Surface};
use crate::spatial::{Mat3, Pose, Vec3};
use std::collections::HashSet;

/// Corners of a circle's polygon.
const CORNERS: usize = 32;

/// Anchors closer than this are one, m.
const SAME: f64 = 1e-9;

/// The shape of every body and of what touches on it, lines between its joints' anchors, and the world's rails; `travel` tells the smallest and largest coordinate of a joint along the motion.
pub(super) fn lines(m: &Mechanism, travel: impl Fn(usize) -> (f64, f64)) -> Vec<Line> {
    let mut lines = vec![];
    let mut anchors_of: Vec<Vec<Vec3>> = vec![vec![]; m.bodies.len()];
    for j in m.joints.iter().filter(|j| j.kind != JointKind::Floating) {
        let on_parent = j.parent.map(|p| (p, j.parent_anchor));
        for (body, a) in on_parent.into_iter().chain([(j.child, j.child_anchor)]) {
            if anchors_of[body].iter().all(|o| (o - a).norm() > SAME) {
                anchors_of[body].push(a);
            }
        }
    }
    for (b, (body, anchors)) in m.bodies.iter().zip(anchors_of).enumerate() {
        let mut add = |points: Vec<Vec3>| {
            lines.push(Line {
                body: Some(b),
                points: points.into_iter().map(Into::into).collect(),
            });
        };
        match anchors[..] {
            [a, c] => add(vec![a, c]),
            _ => {
                // a joint on the shape needs no line to show where it belongs
                let on = |a: &Vec3| body.shape.as_ref().is_some_and(|s| reaches(s, a));
                let apart = anchors.iter().filter(|a| a.norm() > SAME && !on(a));
                apart.for_each(|a| add(vec![*a, Vec3::zeros()]));
            }
        }
        let own = body.shape.map(Surface::from);
        if let Some(shape) = &own {
            outline(shape).into_iter().for_each(&mut add);
        }
        for c in m.colliders.iter().filter(|c| c.body == Some(b)) {
            let here = c.position == Vec3::zeros() && c.orientation == Mat3::identity();
            if here && own.as_ref() == Some(&c.surface) {
                continue;
            }
            for points in outline(&c.surface) {
                add(points
                    .iter()
                    .map(|p| c.position + c.orientation * p)
                    .collect());
            }
        }
    }
    for c in m.colliders.iter().filter(|c| c.body.is_none()) {
        for points in outline(&c.surface) {
            let placed = points.iter().map(|p| c.position + c.orientation * p);
            lines.push(Line {
                body: None,
                points: placed.map(Into::into).collect(),
            });
        }
    }
    for (index, j) in m.joints.iter().enumerate() {
        if j.kind == JointKind::Prismatic && j.parent.is_none() {
            let (low, high) = travel(index);
            let rail = [
                j.parent_anchor + j.axis * low,
                j.parent_anchor + j.axis * high,
            ];
            lines.push(Line {
                body: None,
                points: rail.map(Into::into).to_vec(),
            });
        }
    }
    lines
}

/// Is a point of the body's frame in the shape, or on it?
fn reaches(shape: &Shape, p: &Vec3) -> bool {
    let across = p.x.hypot(p.y) - SAME;
    match *shape {
        Shape::Box(edges) => (0..3).all(|i| p[i].abs() <= 0.5 * edges[i] + SAME),
        Shape::Sphere(r) => p.norm() <= r + SAME,
        Shape::Cylinder { radius, length } => across <= radius && p.z.abs() <= 0.5 * length + SAME,
        Shape::Capsule { radius, length } => {
            across.hypot((p.z.abs() - 0.5 * length).max(0.0)) <= radius
        }
    }
}

/// What slides from one body to another, from anchor to anchor: no line of either reaches that far.
pub(super) fn links(m: &Mechanism) -> Vec<Link> {
    let slides = m.joints.iter().filter(|j| j.kind == JointKind::Prismatic);
    slides
        .filter_map(|j| {
            Some(Link {
                parent: j.parent?,
                parent_point: j.parent_anchor.into(),
                child: j.child,
                child_point: j.child_anchor.into(),
            })
        })
        .collect()
}

/// Of each half-space the part of its surface below what may touch it: a rectangle, but for what lies in others.
pub(super) fn ground(m: &Mechanism, poses: &[Vec<Pose>]) -> Vec<Ground> {
    let mut ground = vec![];
    for (index, h) in m.half_spaces.iter().enumerate() {
        let on = m.contacts.iter().filter_map(|c| match c.pair {
            ContactPair::Ground {
                half_space,
                collider,
                ..
            } if half_space == index => Some((&m.colliders[collider], c.child)),
            _ => None,
        });
        let on: Vec<_> = on.collect();
        let Some(corners) = rectangle(h, &on, poses) else {
            continue;
        };
        let others = m.half_spaces.iter().enumerate().filter(|o| o.0 != index);
        let corners = others.fold(corners.to_vec(), |left, (_, o)| outside(o, &left));
        if corners.len() > 2 {
            ground.push(Ground {
                normal: h.normal.into(),
                corners: corners.into_iter().map(Into::into).collect(),
            });
        }
    }
    ground
}

/// The part of a convex polygon that is not in a half-space.
fn outside(h: &HalfSpace, corners: &[Vec3]) -> Vec<Vec3> {
    let height = |p: &Vec3| h.normal.dot(p) - h.offset;
    let mut left = vec![];
    for (i, a) in corners.iter().enumerate() {
        let b = &corners[(i + 1) % corners.len()];
        let (from, to) = (height(a), height(b));
        if from >= 0.0 {
            left.push(*a);
        }
        if (from < 0.0) != (to < 0.0) {
            left.push(a + (b - a) * (from / (from - to)));
        }
    }
    left
}

/// Around everywhere that the colliders come to.
fn rectangle(h: &HalfSpace, on: &[(&Collider, usize)], poses: &[Vec<Pose>]) -> Option<[Vec3; 4]> {
    let n = &h.normal;
    let axis = if n.x.abs() < 0.8 {
        Vec3::x()
    } else {
        Vec3::y()
    };
    let along = (axis - n * n.dot(&axis)).normalize();
    let sides = [along, n.cross(&along)];
    let mut extent = [(f64::INFINITY, f64::NEG_INFINITY); 2];
    for (collider, body) in on {
        let reach = size(collider);
        for p in poses.iter().filter_map(|p| p.get(*body)) {
            let at = p.point(&collider.position);
            for (side, (low, high)) in sides.iter().zip(&mut extent) {
                let c = side.dot(&at);
                (*low, *high) = (low.min(c - reach), high.max(c + reach));
            }
        }
    }
    let corner = |a: f64, b: f64| n * h.offset + sides[0] * a + sides[1] * b;
    let [(a, b), (c, d)] = extent;
    (a <= b).then(|| [corner(a, c), corner(b, c), corner(b, d), corner(a, d)])
}

/// Largest distance from a collider's center, m.
fn size(c: &Collider) -> f64 {
    match &c.surface {
        Surface::Point => 0.0,
        Surface::Sphere(r) => *r,
        Surface::Capsule { radius, length } => radius + 0.5 * length,
        Surface::Cylinder { radius, length } => radius.hypot(0.5 * length),
        Surface::Box(edges) => 0.5 * Vec3::from(*edges).norm(),
        Surface::Heights(heights) => heights.reach(),
        Surface::Hull(hull) => hull.vertices().iter().map(Vec3::norm).fold(0.0, f64::max),
    }
}

/// The joints' anchors. On the world only those that stay where they are; bodies without any line or joint show
/// their center of mass.
pub(super) fn dots(m: &Mechanism, lines: &[Line]) -> Vec<Dot> {
    let mut dots: Vec<Dot> = vec![];
    for j in m.joints.iter().filter(|j| j.kind != JointKind::Floating) {
        dots.push(Dot {
            body: Some(j.child),
            point: j.child_anchor.into(),
        });
        if j.parent.is_none() && j.kind.rows().0 == 3 {
            dots.push(Dot {
                body: None,
                point: j.parent_anchor.into(),
            });
        }
    }
    let shown = lines.iter().map(|l| l.body);
    let shown: HashSet<usize> = shown.chain(dots.iter().map(|d| d.body)).flatten().collect();
    for b in (0..m.bodies.len()).filter(|b| !shown.contains(b)) {
        dots.push(Dot {
            body: Some(b),
            point: [0.0; 3],
        });
    }
    let mut known = HashSet::new();
    dots.retain(|d| known.insert((d.body, d.point.map(|x| (x + 0.0).to_bits()))));
    dots
}

/// Line work of a surface, in its frame.
pub(crate) fn outline(shape: &Surface) -> Vec<Vec<Vec3>> {
    let (x, y, z) = (Vec3::x(), Vec3::y(), Vec3::z());
    let o = Vec3::zeros();
    match shape.clone() {
        Surface::Point => vec![],
        Surface::Hull(hull) => hull.outlines().collect(),
        Surface::Heights(heights) => heights.outlines().collect(),
        Surface::Box([a, b, c]) => vec![wire_box(a / 2.0, b / 2.0, c / 2.0)],
        Surface::Sphere(r) => vec![
            arc(o, x * r, y * r, 1.0),
            arc(o, x * r, z * r, 1.0),
            arc(o, y * r, z * r, 1.0),
        ],
        Surface::Cylinder {
            radius: r,
            length: l,
        }
        | Surface::Capsule {
            radius: r,
            length: l,
        } => {
            let half = z * (l / 2.0);
            let mut out = vec![arc(half, x * r, y * r, 1.0), arc(-half, x * r, y * r, 1.0)];
            out.extend([x, y, -x, -y].map(|side| vec![side * r + half, side * r - half]));
            if matches!(shape, Surface::Capsule { .. }) {
                for side in [x, y] {
                    out.push(arc(half, side * r, z * r, 0.5));
                    out.push(arc(-half, side * r, -z * r, 0.5));
                }
            }
            out
        }
    }
}

/// The share of an ellipse that starts at `a` towards `b`.
fn arc(center: Vec3, a: Vec3, b: Vec3, share: f64) -> Vec<Vec3> {
    let n = (CORNERS as f64 * share) as usize;
    let angle = |i: usize| std::f64::consts::TAU * share * i as f64 / n as f64;
    (0..=n)
        .map(|i| center + a * angle(i).cos() + b * angle(i).sin())
        .collect()
}

/// All twelve edges in one stroke.
fn wire_box(a: f64, b: f64, c: f64) -> Vec<Vec3> {
    let corner = |i: usize, z: f64| {
        let (x, y) = [(a, b), (-a, b), (-a, -b), (a, -b)][i % 4];
        Vec3::new(x, y, z)
    };
    let mut path: Vec<Vec3> = (0..=4).map(|i| corner(i, -c)).collect();
    for i in 0..4 {
        path.push(corner(i, c));
        if i > 0 {
            path.extend([corner(i, -c), corner(i, c)]);
        }
    }
    path.extend([corner(0, c), corner(0, -c)]);
    path
}
