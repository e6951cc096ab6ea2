//! Chains of spheres dropped on the ground: experiment 8b of paper 000, contacts at the surfaces.

use super::*;
use crate::spheres;

/// Iterations of every step, ascending, and the lowest gap of 500 steps of 0.01 s.
fn dropped(n: usize, friction: f64, tilt: f64, options: Options) -> (Vec<usize>, f64) {
    let (system, x) = spheres::dropped(n, friction, tilt, options).expect("valid");
    let mut s = Sim::of(system, x, 0.01);
    let (mut iterations, mut lowest) = (vec![], f64::INFINITY);
    for _ in 0..500 {
        s.step();
        iterations.push(s.stats.iterations);
        lowest = lowest.min(s.lowest());
    }
    iterations.sort_unstable();
    (iterations, lowest)
}

#[test]
fn chains_of_spheres_are_solved_in_as_many_iterations_as_one() {
    for warm in [false, true] {
        for (friction, tilt) in [(0.5, 0.0), (0.5, 0.1), (1.0, 0.0), (1.0, 0.1)] {
            for n in [1, 2, 5, 10, 20, 40, 100] {
                let (iterations, lowest) =
                    dropped(n, friction, tilt, options(Cone::SecondOrder, warm));
                let at = |share: f64| iterations[(share * 499.0) as usize];
                let figures = [at(0.5), at(0.99), at(1.0)];
                println!("warm {warm} {friction} {tilt} {n}: {figures:?} {lowest:.1e}");
                let bounds = if warm { [4, 16, 40] } else { [7, 14, 20] };
                assert!(
                    figures.iter().zip(bounds).all(|(f, b)| *f <= b),
                    "warm {warm}, friction {friction}, tilt {tilt}, {n} spheres: {figures:?}"
                );
                assert!(lowest >= 0.0, "{lowest:e}");
            }
        }
    }
}

#[test]
fn chains_of_spheres_are_solved_with_linearized_cones() {
    for directions in [4, 8, 16] {
        for warm in [false, true] {
            for n in [1, 5, 40] {
                let cone = options(Cone::Linearized(directions), warm);
                let (iterations, lowest) = dropped(n, 1.0, 0.1, cone);
                let figures = [iterations[250], iterations[499]];
                println!("{directions} directions, warm {warm}, {n}: {figures:?} {lowest:.1e}");
                assert!(figures[0] <= 7 && figures[1] <= 20, "{n}: {figures:?}");
                assert!(lowest >= 0.0, "{lowest:e}");
            }
        }
    }
}
