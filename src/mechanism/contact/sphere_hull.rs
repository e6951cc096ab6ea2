//! Balls and points on a hull of another body: the distance to the hull, negative with the center inside, less the radius.
//!
//! As on a box it is once continuously differentiable outside; inside, where the nearest face changes, it has a kink.

use super::nearest::{Nearest, apart};
use super::polytope::{Face, Polytope};
use crate::spatial::{Mat3, Vec3};

/// Of the hull; from inside, of the nearest face.
pub(super) fn nearest(p: &Polytope, y: &Vec3) -> Nearest {
    let height = |f: &Face| f.normal.dot(&(y - p.points[f.top]));
    let mut highest = (0, f64::NEG_INFINITY);
    for (i, f) in p.faces.iter().enumerate() {
        let above = height(f);
        if above > highest.1 {
            highest = (i, above);
        }
    }
    let on_plane = |f: &Face| {
        let m = f.normal;
        Nearest {
            point: y - m * height(f),
            normal: m,
            follows: Mat3::identity() - m * m.transpose(),
            curvature: 0.0,
            radius: 0.0,
        }
    };
    // beside which edge of a face it is, if any
    let within = |f: &Face| {
        let n = f.corners.len();
        (0..n).all(|k| {
            let [a, b] = [k, (k + 1) % n].map(|i| p.points[f.corners[i]]);
            f.normal.cross(&(b - a)).dot(&(y - a)) >= 0.0
        })
    };
    if highest.1 <= 0.0 {
        return on_plane(&p.faces[highest.0]);
    }
    // at most one face has the center above it and within its sides
    if let Some(f) = p.faces.iter().find(|f| height(f) > 0.0 && within(f)) {
        return on_plane(f);
    }
    let mut least = (Vec3::zeros(), Mat3::zeros(), f64::INFINITY);
    for e in &p.edges {
        let [a, b] = e.ends.map(|v| p.points[v]);
        let along = b - a;
        let share = along.dot(&(y - a)) / along.norm_squared();
        let point = a + along * share.clamp(0.0, 1.0);
        let apart = (y - point).norm_squared();
        if apart < least.2 {
            let follows = if share > 0.0 && share < 1.0 {
                along * along.transpose() / along.norm_squared()
            } else {
                Mat3::zeros()
            };
            least = (point, follows, apart);
        }
    }
    let (point, follows, _) = least;
    let (normal, curvature) = apart(y, &point, p.faces[highest.0].normal);
    Nearest {
        point,
        normal,
        follows,
        curvature,
        radius: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::contact::samples::{BOX, POINT, SPHERE, check, hull, plain, two};
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Surface, contact::Hull};

    #[test]
    fn derivatives_match_differences() {
        check(&two(1, SPHERE, hull()), 2);
        check(&two(3, hull(), POINT), 4);
    }

    #[test]
    fn a_hull_of_a_boxs_corners_is_that_box() {
        let Surface::Box(edges) = BOX else {
            unreachable!("it is a box")
        };
        let corner = |i: usize| {
            let side = |k: usize| if i >> k & 1 == 1 { 0.5 } else { -0.5 };
            [0, 1, 2].map(|k| side(k) * edges[k])
        };
        let corners: Vec<[f64; 3]> = (0..8).map(corner).collect();
        let hull = Surface::Hull(Hull::new(&corners).expect("valid"));
        let (m, other) = (plain(two(1, SPHERE, BOX)), plain(two(1, SPHERE, hull)));
        let s = &mut Source::new(9);
        for i in 0..200 {
            let poses = [0, 1].map(|_| {
                let mut p = s.pose();
                p.x *= [0.1, 0.2, 0.5][i % 3];
                p
            });
            let touch = |m: &crate::mechanism::Mechanism| m.touch(&m.contacts[0], &poses);
            let (a, b) = (touch(&m), touch(&other));
            assert!((a.gap - b.gap).abs() < 1e-14 && (a.normal - b.normal).norm() < 1e-12);
        }
    }
}
