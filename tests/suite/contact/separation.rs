//! How far convex bodies are apart, from their supports alone, and scenes of cylinders that fall on a body.

use least_action::mechanism::{Collider, Surface};
use least_action::spatial::{Pose, Vec3};

/// Directions, evenly spread.
const DIRECTIONS: usize = 1200;
/// How many of the best of them are refined: bodies that overlap are about as deep along several, and the least deep is not near the
/// best direction.
const STARTS: usize = 10;
/// Cosine of the angle between two that are.
const BESIDE: f64 = 0.985;
/// Half of the chart about a direction that is searched, first. Where the best is at its border the next is about that, else it is a
/// tenth as large.
const CHART: f64 = 0.1;
const CHARTS: usize = 24;
const SMALLEST: f64 = 1e-7;
const BORDER: f64 = 0.9;
/// Of a golden section: 0.618^48 is 1e-10.
const SECTIONS: usize = 48;
const GOLDEN: f64 = 0.618_033_988_749_895;
/// What overlaps by less is not refined, m: a third of what tests allow.
const TOUCHING: f64 = 3e-10;

/// How far a collider reaches along a direction, from the origin.
fn support(c: &Collider, pose: &Pose, n: &Vec3) -> f64 {
    let local = c.orientation.tr_mul(&pose.r.tr_mul(n));
    let own = match &c.surface {
        Surface::Cylinder { radius, length } => {
            radius * local.x.hypot(local.y) + 0.5 * length * local.z.abs()
        }
        Surface::Box(edges) => 0.5 * Vec3::from(*edges).dot(&local.abs()),
        Surface::Hull(hull) => {
            let points: Vec<[f64; 3]> = hull.clone().into();
            let along = points.iter().map(|p| local.dot(&Vec3::from(*p)));
            along.fold(f64::NEG_INFINITY, f64::max)
        }
        other => panic!("{other:?}"),
    };
    own + n.dot(&pose.point(&c.position))
}

/// The top of a concave function between minus and plus `size`: place and value.
fn top(size: f64, mut f: impl FnMut(f64) -> f64) -> (f64, f64) {
    let (mut low, mut high) = (-size, size);
    let (mut x, mut y) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_x, mut at_y) = (f(x), f(y));
    for _ in 0..SECTIONS {
        if at_x > at_y {
            (high, y, at_y) = (y, x, at_x);
            x = high - GOLDEN * (high - low);
            at_x = f(x);
        } else {
            (low, x, at_x) = (x, y, at_y);
            y = low + GOLDEN * (high - low);
            at_y = f(y);
        }
    }
    if at_x > at_y { (x, at_x) } else { (y, at_y) }
}

/// The best of the directions about one, and its value. `along` is concave over the plane that touches the sphere of normals there, as
/// long as it is positive or nearly so.
fn refined(along: impl Fn(&Vec3) -> f64, start: Vec3) -> f64 {
    let (mut n, mut most) = (start, along(&start));
    let mut size = CHART;
    for _ in 0..CHARTS {
        let other = if n.x.abs() < 0.6 {
            Vec3::x()
        } else {
            Vec3::y()
        };
        let u = n.cross(&other).normalize();
        let v = n.cross(&u);
        let at = |x: f64, y: f64| n + u * x + v * y;
        let row = |x: f64| top(size, |y| along(&at(x, y)));
        let (x, value) = top(size, |x| row(x).1);
        let y = row(x).0;
        let is_better = value > most;
        if is_better {
            (n, most) = (at(x, y).normalize(), value);
        }
        if most > -TOUCHING || size < SMALLEST {
            break;
        }
        if !is_better || x.abs().max(y.abs()) < BORDER * size {
            size *= 0.1;
        }
    }
    most
}

/// The largest separation of two colliders along a unit normal, m: how far they are apart, at least, or how deep they overlap.
pub fn separation((a, p): (&Collider, &Pose), (b, q): (&Collider, &Pose)) -> f64 {
    let along = |n: &Vec3| (-support(a, p, n) - support(b, q, &-n)) / n.norm();
    let spread = |i: usize| {
        let z = 1.0 - 2.0 * (i as f64 + 0.5) / DIRECTIONS as f64;
        let (sin, cos) = (i as f64 * 2.399_963_229_728_653).sin_cos();
        let r = (1.0 - z * z).sqrt();
        Vec3::new(r * cos, r * sin, z)
    };
    let axes = [(a, p), (b, q)].map(|(c, pose)| {
        let r = pose.r * c.orientation;
        [0, 1, 2].map(|k| -> Vec3 { r.column(k).into() })
    });
    let axes = axes.as_flattened().iter().flat_map(|n| [*n, -n]);
    let all = (0..DIRECTIONS).map(spread).chain(axes);
    let mut all: Vec<(f64, Vec3)> = all.map(|n| (along(&n), n)).collect();
    all.sort_by(|c, d| d.0.total_cmp(&c.0));
    let mut most = all[0].0;
    let mut starts: Vec<Vec3> = vec![];
    for (_, n) in all {
        if most > -TOUCHING || starts.len() == STARTS {
            break;
        }
        if starts.iter().all(|s| s.dot(&n) < BESIDE) {
            most = most.max(refined(along, n));
            starts.push(n);
        }
    }
    most
}
