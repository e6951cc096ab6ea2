//! How far convex bodies are apart, from their supports alone, and scenes of cylinders that fall on a body.

use least_action::mechanism::{Collider, Surface};
use least_action::spatial::{Pose, Vec3};

/// Directions of which the best is refined.
const DIRECTIONS: usize = 1200;
/// Half of the chart about a direction that is searched, first, and how often it is searched in a tenth of it.
const CHART: f64 = 0.25;
const CHARTS: usize = 4;
/// Of a golden section: 0.618^48 is 1e-10.
const SECTIONS: usize = 48;
const GOLDEN: f64 = 0.618_033_988_749_895;
/// What is this far apart is not refined, m.
const FAR: f64 = 0.02;

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

/// The largest separation of two colliders along a unit normal, m: how far they are apart, or how deep they overlap. Near a contact the
/// separation is concave over the plane that touches the sphere of normals at one of them.
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
    let (mut n, mut most) = all
        .map(|n| (n, along(&n)))
        .max_by(|c, d| c.1.total_cmp(&d.1))
        .expect("there are some");
    let mut size = CHART;
    for _ in 0..CHARTS {
        if most > FAR {
            break;
        }
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
        if value > most {
            (n, most) = (at(x, row(x).0).normalize(), value);
        }
        size *= 0.1;
    }
    most
}
