//! Tests of cylinders on all that has edges.

use super::{END, LEVEL, Part, leveled, lines, meet, parts};
use crate::mechanism::contact::samples::{
    BOX, CAPSULE, CYLINDER, check_by, check_held, check_with, hull, plain, two,
};
use crate::mechanism::contact::{Ahead, Meeting};
use crate::mechanism::samples::Source;
use crate::mechanism::{Mechanism, Surface};
use crate::spatial::{Pose, Vec3, exp};
use parry3d_f64::math::{Pose3, Vector};
use parry3d_f64::query;
use parry3d_f64::shape::SharedShape;
use std::f64::consts::FRAC_PI_2;

fn least(m: &Mechanism, poses: &[Pose; 2]) -> f64 {
    let gaps = m.contacts.iter().map(|c| m.touch(c, poses).gap);
    gaps.fold(f64::INFINITY, f64::min)
}

#[test]
fn derivatives_match_differences() {
    // a short step: normals turn quickly where an end is nearly flat
    let check = |m: &Mechanism, seed| check_by(m, seed, 1e-5);
    check(&two(1, CYLINDER, BOX), 2);
    check(&two(3, hull(), CYLINDER), 4);
    check(&two(5, CYLINDER, CYLINDER), 6);
    check(&two(7, CYLINDER, CAPSULE), 8);
    check(&two(9, CAPSULE, CYLINDER), 10);
}

/// Ends that lie flat: their corners on a face and on another end, crossings of rims and edges where they stick out, and what
/// lies across one; by radius and length, too.
#[test]
fn derivatives_of_flat_ends_match_differences() {
    let quarter = Vec3::x() * FRAC_PI_2;
    let none = Vec3::zeros();
    let mut kinds = [0; 4];
    for (below, above, height, beside, turn) in [
        (BOX, CYLINDER, 0.1 + 0.25, none, none),
        (BOX, CYLINDER, 0.1 + 0.25, Vec3::new(0.25, 0.1, 0.0), none),
        (CYLINDER, CYLINDER, 0.5, Vec3::new(0.1, 0.05, 0.0), none),
        (CYLINDER, BOX, 0.25 + 0.1, Vec3::new(0.2, 0.0, 0.0), none),
        (
            CYLINDER,
            CYLINDER,
            0.25 + 0.3,
            Vec3::new(0.02, 0.01, 0.0),
            quarter,
        ),
        (CAPSULE, CYLINDER, 0.1 + 0.25, none, none),
    ] {
        let m = plain(two(1, below.clone(), above));
        let lying = match below {
            Surface::Capsule { .. } => quarter,
            _ => none,
        };
        let poses = [
            Pose::new(none, exp(&lying)),
            Pose::new(
                Vec3::z() * (height + 1e-3) + beside,
                exp(&(Vec3::z() * 0.1)) * exp(&turn),
            ),
        ];
        for c in &m.contacts {
            let held = m.meeting(c, &poses, &Ahead::NONE);
            let kind = match held {
                Meeting::Vertex { .. } => 0,
                Meeting::Edges { .. } => 1,
                Meeting::Parts(_) => 2,
                _ => 3,
            };
            // what lies along a rim turns and runs about it so quickly that differences see its fourth derivative, or rounding
            let slope = m.touch_slope(c, &held, &poses);
            let turns = slope
                .normal
                .iter()
                .chain(&slope.point)
                .map(|(x, phi)| x.amax().max(phi.amax()));
            if turns.fold(0.0, f64::max) < 10.0 {
                kinds[kind] += 1;
                check_with(&m, c, &poses, 1e-5);
            }
        }
    }
    assert!(kinds[..3].iter().all(|n| *n > 0), "{kinds:?}");
}

/// The circle of a side that is held where the side and another line are nearly parallel, exactly so, too: its derivatives, by radius and
/// length, too, and where it is.
#[test]
fn derivatives_of_circles_on_nearly_parallel_lines_match_differences() {
    let lies = Vec3::x() * FRAC_PI_2;
    let mut crossings = 0;
    for (below, above) in [(CYLINDER, CYLINDER), (BOX, CYLINDER), (CYLINDER, hull())] {
        let m = plain(two(1, below, above));
        let of = (&m.colliders[0], &m.colliders[1]);
        for (i, angle) in [0.0, 1e-6, 1e-4, -5e-3, 0.019].into_iter().enumerate() {
            let turn = exp(&(Vec3::z() * angle)) * exp(&lies);
            // in plan the axes cross a tenth of a meter from their middle
            let beside = Vec3::new(0.1 * angle, 0.03 * i as f64, 0.65);
            let poses = [
                Pose::new(Vec3::zeros(), exp(&lies)),
                Pose::new(beside, turn),
            ];
            let both = (&poses[0], &poses[1]);
            for p in parts(of.0) {
                for q in parts(of.1) {
                    let (side, line) = match (p, q) {
                        (Part::Side, Part::Side | Part::Edge(_)) => (0, q),
                        (Part::Edge(_), Part::Side) => (1, p),
                        _ => continue,
                    };
                    let [u, v] = lines(of, [p, q], both).expect("two lines");
                    let sine = u.cross(&v).norm();
                    if sine > LEVEL {
                        continue;
                    }
                    for share in [-16_000, -3000, 0, 777, 12_000] {
                        let mut held = [line; 2];
                        held[side] = Part::Ring(share);
                        let held = Meeting::Parts(held);
                        check_held(&m, (&m.contacts[0], &held), &poses, 1e-5);
                    }
                    // where the lines cross, to the spacing of places along the axis, the circle's gap is that of the lines
                    let held = leveled(of, [p, q], both, |_| 0.0);
                    if let Part::Ring(share) = held[side]
                        && share.abs() < END
                        && sine > 1e-4
                    {
                        let gap = |parts| meet(of, parts, both, 0.0).map(|t| t.touch(both).gap);
                        let (circle, crossing) = (gap(held), gap([p, q]));
                        let by = circle.zip(crossing).map_or(1.0, |(a, b)| a - b);
                        assert!(by.abs() < 1e-7, "{held:?} at {angle}: {by:e}");
                        crossings += 1;
                    }
                }
            }
        }
    }
    assert!(crossings > 1, "{crossings}");
}

/// Side by side, ends level: a side and a rim meet at either end. Rims that touch beside each other have no normal.
#[test]
fn level_cylinders_side_by_side_are_held_at_both_ends() {
    for (turn, gap) in [
        (Vec3::zeros(), 0.0),
        (Vec3::x() * FRAC_PI_2, 1e-7),
        (Vec3::new(0.3, 0.5, 0.7), -1e-12),
        (Vec3::new(1.3, -0.2, 2.7), 1e-3),
    ] {
        let m = plain(two(1, CYLINDER, CYLINDER));
        let turned = exp(&turn);
        let beside = turned * Vec3::new(0.6 + gap, 0.0, 0.0);
        let poses = [Pose::new(Vec3::zeros(), turned), Pose::new(beside, turned)];
        let mut ends = [0; 2];
        for c in &m.contacts {
            let held = m.meeting(c, &poses, &Ahead::NONE);
            if held == Meeting::Apart {
                continue;
            }
            let t = m.touch_of(c, &held, &poses);
            assert!((t.gap - gap).abs() < 1e-12, "{held:?} {t:?}");
            assert!(
                (t.normal - turned * Vec3::x()).norm() < 1e-9,
                "{held:?} {t:?}"
            );
            let local = turned.inverse() * t.point;
            assert!((local.z.abs() - 0.25).abs() < 1e-9, "{held:?} {t:?}");
            ends[usize::from(local.z > 0.0)] += 1;
            check_with(&m, c, &poses, 1e-5);
        }
        assert_eq!(ends, [2, 2]);
    }
}

/// A cylinder and a capsule that roll fast across an edge of a box, their axes at some angle to it.
#[test]
fn what_rolls_obliquely_is_held_by_an_edge() {
    for rod in [CYLINDER, CAPSULE] {
        let radius = rod.radius();
        let m = plain(two(1, rod, BOX));
        for angle in [0.05, 0.2, 0.5, 1.0_f64] {
            let axis = Vec3::new(-angle.sin(), angle.cos(), 0.0);
            let lies = exp(&(Vec3::z() * angle)) * exp(&(-Vec3::x() * FRAC_PI_2));
            let box_at = Vec3::new(-0.3, 0.0, -0.1 - radius);
            let mut poses = [Pose::identity(), Pose::identity()];
            let mut velocities = [0.0; 12];
            for c in &m.colliders {
                let body = c.body.expect("a body's");
                let is_box = matches!(c.surface, Surface::Box(_));
                poses[body] = if is_box {
                    Pose::new(box_at, exp(&Vec3::zeros()))
                } else {
                    Pose::new(Vec3::zeros(), lies)
                };
                if !is_box {
                    let spin = poses[body].r.tr_mul(&(axis * 30.0));
                    velocities[6 * body + 3..6 * body + 6].copy_from_slice(spin.as_slice());
                }
            }
            let ahead = Ahead {
                velocities: &velocities,
                h: 0.01,
            };
            let crosses = m.contacts.iter().any(|c| {
                let held = m.meeting(c, &poses, &ahead);
                let t = m.touch_of(c, &held, &poses);
                held != Meeting::Apart && t.gap.abs() < 1e-12 && t.point.xy().norm() < 1e-9
            });
            assert!(crosses, "{} at {angle}", m.colliders[0].surface.kind());
        }
    }
}

/// What parry's distances are exact to, at least.
const NEAR: f64 = 1e-3;

/// That of parry, whose cylinders have their axis along y.
fn distance(m: &Mechanism, poses: &[Pose; 2]) -> f64 {
    let of = |i: usize| {
        let pose = &poses[i];
        let point = |v: &[f64; 3]| Vector::new(v[0], v[1], v[2]);
        let (shape, turn) = match &m.colliders[i].surface {
            Surface::Cylinder { radius, length } => {
                (SharedShape::cylinder(0.5 * length, *radius), FRAC_PI_2)
            }
            Surface::Capsule { radius, length } => {
                (SharedShape::capsule_z(0.5 * length, *radius), 0.0)
            }
            Surface::Box([x, y, z]) => (SharedShape::cuboid(0.5 * x, 0.5 * y, 0.5 * z), 0.0),
            Surface::Hull(hull) => {
                let all: Vec<[f64; 3]> = hull.clone().into();
                let all: Vec<_> = all.iter().map(point).collect();
                (SharedShape::convex_hull(&all).expect("a hull"), 0.0)
            }
            other => panic!("{other:?}"),
        };
        let q = pose.q * crate::spatial::exp(&(Vec3::x() * turn));
        let by = q.scaled_axis();
        let at = Pose3::new(point(&pose.x.into()), point(&by.into()));
        (shape, at)
    };
    let ((a, p), (b, q)) = (of(0), of(1));
    query::contact(&p, &*a, &q, &*b, 10.0)
        .expect("a supported pair")
        .map_or(f64::INFINITY, |c| c.dist)
}

#[test]
fn gaps_are_those_of_the_bodies_near_contact() {
    let pairs = [
        (CYLINDER, BOX),
        (hull(), CYLINDER),
        (CYLINDER, CYLINDER),
        (CAPSULE, CYLINDER),
    ];
    for (a, b) in pairs {
        let m = plain(two(1, a, b));
        let s = &mut Source::new(7);
        let (mut apart, mut over, mut exact, mut shallow) = (0, 0, 0, 0);
        for _ in 0..4000 {
            let poses = [s.pose(), s.pose()].map(|p| Pose::new(p.x * 0.45, p.q));
            let (truth, found) = (distance(&m, &poses), least(&m, &poses));
            if truth > NEAR {
                apart += 1;
                assert!(found > -1e-9, "apart by {truth}, gap {found}");
                let is_near = truth < 0.1;
                exact += usize::from(is_near && (found - truth).abs() < NEAR);
            } else if truth < -NEAR && truth > -0.02 {
                over += 1;
                shallow += usize::from(found > 0.5 * truth);
            }
        }
        // two rims may be found to meet where they overlap less
        let kinds = [0, 1].map(|i| m.colliders[i].surface.kind());
        assert!(
            apart > 1000 && over > 100 && exact > 500 && shallow <= 1,
            "{kinds:?} {apart} {over} {exact} {shallow}"
        );
    }
}
