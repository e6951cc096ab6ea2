//! Tests of what overlaps at the end of a step.

use super::*;
use crate::mechanism::contact::samples::{BOX, CYLINDER, check_held, hull, plain, two};
use crate::mechanism::samples::Source;
use crate::mechanism::{Mechanism, Surface};
use crate::spatial::exp;
use std::f64::consts::FRAC_PI_2;

fn with<'a>(m: &'a Mechanism, now: &'a [Pose], end: &'a [Pose]) -> Unheld<'a> {
    Unheld::new(
        (&m.colliders[0], &m.colliders[1]),
        [Meeting::Apart; SLOTS],
        ((&now[0], &now[1]), (&end[0], &end[1])),
        5e-10,
    )
}

/// Of bodies that come to overlap by a little, at random or nearly flat, something that does is found, its derivatives are right, and
/// a step that is left with its gap closed would leave them apart along its normal.
#[test]
fn what_overlaps_at_the_end_is_found_with_its_derivatives() {
    let coin = Surface::Cylinder {
        radius: 0.3,
        length: 0.1,
    };
    let mut kinds = [0; 6];
    for (below, above, lying) in [
        (BOX, CYLINDER, 0.0),
        (hull(), coin.clone(), 0.0),
        (CYLINDER, coin, 0.0),
        (CYLINDER, CYLINDER, FRAC_PI_2),
        (BOX, CYLINDER, FRAC_PI_2),
        (BOX, BOX, 0.0),
        (hull(), BOX, 0.0),
    ] {
        let m = plain(two(1, below, above));
        let s = &mut Source::new(3);
        let (mut found, mut all) = (0, 0);
        for i in 0..60 {
            // flat, nearly so, or anyhow; what lies has its side on the other's
            let tilt = [1e-5, 1e-3, 0.03, 3.0][i % 4];
            // lines that are nearly parallel, too
            let yaw = if i % 3 == 0 { 0.01 } else { 0.7 } * s.unit();
            let turn = exp(&(s.vec3() * tilt)) * exp(&(Vec3::z() * yaw));
            let turn = turn * exp(&(Vec3::x() * lying));
            let own = exp(&(Vec3::x()
                * if lying > 0.0 && i % 2 == 0 {
                    lying
                } else {
                    0.0
                }));
            let beside = Vec3::new(0.4 * s.unit(), 0.3 * s.unit(), 0.0);
            let at = |height: f64| {
                let above = Pose::new(beside + Vec3::z() * height, turn);
                [Pose::new(Vec3::zeros(), own), above]
            };
            let apart = |height: f64| {
                let poses = at(height);
                let mut all = with(&m, &poses, &poses);
                all.consider_all();
                all.most
            };
            let (mut low, mut high) = (0.0, 2.0);
            for _ in 0..50 {
                let middle = 0.5 * (low + high);
                if apart(middle) > 0.0 {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            let (now, end) = (at(high + 1e-3), at(high - 1e-6));
            let of = (&m.colliders[0], &m.colliders[1]);
            let poses = ((&now[0], &now[1]), (&end[0], &end[1]));
            all += 1;
            let held = Unheld::find(of, [Meeting::Apart; SLOTS], poses, 5e-10);
            let Some(held) = held.filter(|held| *held != Meeting::Apart) else {
                continue;
            };
            found += 1;
            let touch = between::touch(of, (0, &held), poses.1);
            assert!(touch.gap < 0.0 && touch.gap > -2e-6, "{held:?} {touch:?}");
            let kind = match held {
                Meeting::RimOnFace { .. } => 0,
                Meeting::Vertex { .. } => 1,
                Meeting::Parts([Part::Tip(..), Part::Tip(..)]) => 2,
                Meeting::Parts([Part::Tip(..), _] | [_, Part::Tip(..)]) => 3,
                Meeting::Edges { .. } => 4,
                _ => 5,
            };
            kinds[kind] += 1;
            let slope = m.touch_slope(&m.contacts[0], &held, &end);
            let turns = (slope.normal.iter()).map(|(x, phi)| x.amax().max(phi.amax()));
            if turns.fold(0.0, f64::max) < 10.0 {
                check_held(&m, (&m.contacts[0], &held), &end, 1e-5);
            }
        }
        println!("{found} of {all}, {kinds:?}");
        assert!(found > all * 9 / 10, "{found} of {all}");
    }
    assert!(kinds.iter().all(|n| *n > 0), "{kinds:?}");
}

/// What comes in from beside, over an edge or a rim, or slides off one within the step, is found as well.
#[test]
fn what_comes_in_from_beside_is_found() {
    let coin = Surface::Cylinder {
        radius: 0.3,
        length: 0.1,
    };
    for (below, above) in [
        (BOX, CYLINDER),
        (hull(), coin.clone()),
        (CYLINDER, coin),
        (CYLINDER, CYLINDER),
        (BOX, BOX),
        (hull(), hull()),
    ] {
        let m = plain(two(1, below, above));
        let of = (&m.colliders[0], &m.colliders[1]);
        let s = &mut Source::new(5);
        let (mut found, mut all) = (0, 0);
        for _ in 0..300 {
            let turn = exp(&(s.vec3() * 3.0));
            let beside = Vec3::new(0.5 * s.unit(), 0.4 * s.unit(), 0.0);
            let at = |height: f64| Pose::new(beside + Vec3::z() * height, turn);
            let world = Pose::identity();
            let (mut low, mut high) = (0.0, 2.0);
            for _ in 0..50 {
                let middle = 0.5 * (low + high);
                if Unheld::depth(of, (&world, &at(middle))) < 0.0 {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            let end = at(high - 2e-5);
            let now = Pose::new(end.x + s.vec3() * 5e-3, exp(&(s.vec3() * 0.02)) * end.q);
            let poses = ((&world, &now), (&world, &end));
            if Unheld::depth(of, poses.0) > 0.0 || Unheld::depth(of, poses.1) < 1e-9 {
                continue;
            }
            all += 1;
            let held = Unheld::find(of, [Meeting::Apart; SLOTS], poses, 5e-10);
            found += usize::from(held.is_some_and(|held| held != Meeting::Apart));
        }
        println!(
            "{} {}: {found} of {all}",
            of.0.surface.kind(),
            of.1.surface.kind()
        );
        assert!(all > 50 && found * 50 > all * 49, "{found} of {all}");
    }
}
