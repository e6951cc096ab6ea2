//! Contacts that do not touch change nothing.

use super::on_ground;
use crate::trees::{BOTH, Tree};
use least_action::dynamics::Step;
use least_action::format::{self, Overrides};
use least_action::integrator::Substeps;
use least_action::mechanism::Shape;
use least_action::rollout::{RolloutStats, Trajectory, balance};
use least_action::spatial::Vec3;
use std::num::NonZeroUsize;
use std::path::Path;

/// A gap by the interval has a rounding above the tolerance from 500 m at 1 ms on: such steps failed, and lower ones took 200 iterations.
#[test]
fn bodies_fall_from_far_above_ground() {
    let can = Shape::Cylinder {
        radius: 0.05,
        length: 0.1,
    };
    for shape in [Shape::Box([0.1, 0.2, 0.3]), can, Shape::Sphere(0.1)] {
        for (height, h) in [
            (20.0, 1e-5),
            (100.0, 1e-3),
            (2e3, 1e-3),
            (2e3, 1e-5),
            (1e5, 1e-2),
        ] {
            for name in BOTH {
                let tree = Tree {
                    builder: on_ground(shape, 1.0, 0.5, Vec3::z()),
                    q: vec![0.0, 0.0, height, 0.1, 0.2, 0.3],
                    rates: vec![0.0; 6],
                };
                let o = tree.run_with(name, (h, 20), Substeps::One);
                let what = format!("{shape:?}, {height} m, {h} s, {name}");
                assert!(o.failure.is_none(), "{what}: {:?}", o.failure);
                let most = o.stats.most_iterations;
                assert!(most <= 20, "{what}: {most} iterations");
                let rounding = 1e-13 * 9.81 * height;
                assert!(o.energy[0] <= rounding, "{what}: {:e} J", o.energy[0]);
            }
        }
    }
}

/// Forces alone threw the light links, and in maximal coordinates the first step came to another solution, with 2 to 24 J more.
#[test]
fn light_links_fly_alike_in_both_coordinates() {
    let text = include_str!("../../light_links_in_flight.toml");
    for parts in [2, 4, 6, 7, 8] {
        let [a, b] = BOTH.map(|name| {
            let overrides = Overrides {
                integrator: Some(name.into()),
                substeps: NonZeroUsize::new(parts).map(Substeps::Equal),
                duration: Some(0.01),
                ..Overrides::default()
            };
            let model = format::parse(text, Path::new("links.toml"))
                .and_then(|d| d.build(&overrides))
                .expect("a mechanism");
            let (s, h) = (&model.system, model.problem.intervals.clone());
            let mut t = Trajectory::new(s, h, &model.x0);
            let mut w = s.work();
            t.roll(s, &mut w, &mut RolloutStats::default())
                .expect("flies");
            let b = balance(s, &t, &mut w).expect("read");
            b.energy(t.steps())
        });
        assert!((a - b).abs() < 1e-6, "{parts} parts: {a} and {b} J");
    }
}
