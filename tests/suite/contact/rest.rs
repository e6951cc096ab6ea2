//! Bodies that come to rest.

use super::*;
use crate::common::G;
use least_action::integrator::Mechanical;

/// Drops boxes flat from a height and holds their rest against `kappa/g`; returns the largest relative errors of the
/// gap and of the impulses, and the largest speed.
fn drop_boxes(edges: [f64; 3], heights: &[f64]) -> [f64; 3] {
    let mut worst = [0.0_f64; 3];
    for warm in [false, true] {
        for mass in [0.01, 1.0, 100.0] {
            for h in [0.001, 0.01, 0.05] {
                for &height in heights {
                    let b = on_ground(Shape::Box(edges), mass, 0.3, Vec3::z());
                    let z = 0.5 * edges[2] + height;
                    let q = [0.0, 0.0, z, 0.0, 0.0, 0.0];
                    let mut s = Sim::new(&b, &q, &[0.0; 6], h, options(Cone::SecondOrder, warm));
                    let case = format!("warm {warm}, {mass} kg, h {h}, from {height} m");
                    let seconds = (2.0 * height / G).sqrt() + f64::max(0.1, 10.0 * h);
                    for _ in 0..(seconds / h) as usize {
                        s.step();
                        assert!(s.lowest() >= 0.0, "{case}: {:e}", s.lowest());
                    }
                    let [_, v, w] = s.body();
                    let share = s.system.mechanism().contacts[0].effective_mass / mass;
                    let gap = 1e-9 * h * 4.0 * share;
                    let errors = [
                        (s.lowest() / gap - 1.0).abs(),
                        (s.impulses().sum::<f64>() / (mass * G * h) - 1.0).abs(),
                        v.norm().max(w.norm()),
                    ];
                    for ((w, e), bound) in worst.iter_mut().zip(errors).zip([1e-2, 1e-7, 1e-9]) {
                        *w = w.max(e);
                        assert!(e < bound, "{case}: {errors:?}");
                    }
                }
            }
        }
    }
    worst
}

#[test]
fn a_box_at_rest_is_carried_by_its_corners() {
    for (edges, heights) in [
        ([0.5; 3], &[0.0, 0.01, 0.1, 0.4, 1.0, 10.0][..]),
        ([0.6, 0.3, 0.1], &[0.0, 0.4][..]),
    ] {
        let [gap, impulse, speed] = drop_boxes(edges, heights);
        println!("{edges:?}: gap {gap:.1e}, impulses {impulse:.1e}, speed {speed:.1e} m/s");
    }
}
