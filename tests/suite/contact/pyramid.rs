//! Friction in a linearized cone of `n` directions `d_i` against closed forms. It is `-mu g d_i` for the direction nearest
//! the sliding velocity; between two of them, where what is across the bisector cancels, `mu g cos(pi/n)` along it.

use super::slide::{HALF, PLATE, lying, rates, tilt};
use super::*;
use crate::common::G;
use std::f64::consts::{PI, TAU};

/// Where a block ends that starts at `v0` an angle up to `pi/n` from a direction: place along the direction and across it.
///
/// It is braked along the direction alone until it heads along the bisector, and stays there.
fn end(n: usize, v0: f64, angle: f64, mu: f64) -> [f64; 2] {
    let (half, a) = (PI / n as f64, mu * G);
    let (along, across) = (v0 * angle.cos(), v0 * angle.sin());
    let kept = across / half.tan();
    let first = [
        (along * along - kept * kept) / (2.0 * a),
        across * (along - kept) / a,
    ];
    let speed = across / half.sin();
    let rest = speed * speed / (2.0 * a * half.cos());
    [first[0] + rest * half.cos(), first[1] + rest * half.sin()]
}

#[test]
fn a_block_stops_where_its_pyramid_leads_it() {
    let (v0, mu) = (2.0, 0.5);
    let circular = v0 * v0 / (2.0 * mu * G);
    for n in [4, 6, 8, 16] {
        let mut aside = 0.0_f64;
        for (facet, share) in [(0, 0.0), (1, 0.25), (2, 0.5), (n - 1, 0.75), (1, 1.0)] {
            let angle = share * PI / n as f64;
            let axis = TAU * facet as f64 / n as f64;
            let turned = |angle: f64| Vec3::new(angle.cos(), angle.sin(), 0.0);
            let (normal, q, _) = lying(Vec3::zeros(), HALF);
            let plate = on_ground(PLATE, 1.0, mu, normal);
            let way = rates(v0 * turned(axis + angle));
            let cone = options(Cone::Linearized(n), facet % 2 == 0);
            let mut s = Sim::new(&plate, &q, &way, 0.005, cone);
            s.run(0.7);
            let [x, v, w] = s.body();
            assert!(v.norm() < 1e-8 && w.norm() < 1e-8, "{n} {share}: {v} {w}");
            let [along, across] = end(n, v0, angle, mu);
            let exact = along * turned(axis) + across * turned(axis + 0.5 * PI);
            let error = (x - exact - HALF * Vec3::z()).norm() / circular;
            println!("{n} directions, {share} of the way between two: error {error:.1e}");
            assert!(error < 1e-4, "{n} {share}: {error:e}");
            aside = aside.max((across * angle.cos() - along * angle.sin()).abs());
            if share == 1.0 {
                let longer = x.xy().norm() / circular * (PI / n as f64).cos();
                assert!((longer - 1.0).abs() < 1e-4, "{n}: {longer}");
            }
        }
        println!("{n} directions: {aside:.3} m aside");
    }
}

/// Heading in which a plane tilted by `angle` falls at `from` the first tangent, both rad.
fn heading(angle: f64, from: f64) -> f64 {
    (angle.cos() * from.tan()).atan()
}

/// Creep on the central path in units of `kappa/(mu g h cos)`, where friction is the share `rho` of what it can be, along
/// `from` the first direction: with `x = v/psi` and `c_i` the cosines of the directions to the way,
/// `rho = A/(S + 1)`, `v = x (S + 1)`, `A = sum c_i/(1 - x c_i)`, `S = sum 1/(1 - x c_i)`.
fn creep(n: usize, from: f64, rho: f64) -> f64 {
    let cosines: Vec<f64> = (0..n)
        .map(|i| (TAU * i as f64 / n as f64 - from).cos())
        .collect();
    let sums = |x: f64| {
        let terms = cosines
            .iter()
            .map(|c| (c / (1.0 - x * c), 1.0 / (1.0 - x * c)));
        terms.fold((0.0, 1.0), |(a, s), (da, ds)| (a + da, s + ds))
    };
    let (mut low, mut high) = (0.0, 1.0 / cosines.iter().copied().fold(0.0, f64::max));
    for _ in 0..200 {
        let x = 0.5 * (low + high);
        let (a, s) = sums(x);
        if a < rho * s { low = x } else { high = x }
    }
    low * sums(low).1
}

#[test]
fn a_block_sticks_within_the_pyramid_and_slides_beyond() {
    for n in [4, 6, 8] {
        // along a direction, and between two, where the pyramid is lower
        for from in [0.0, PI / n as f64] {
            for (mu, warm, h) in [(0.2, false, 0.01), (0.5, true, 0.01), (0.5, true, 0.002)] {
                let most = mu * f64::cos(from);
                let on = |margin: f64| {
                    let angle = most.atan() - margin.to_radians();
                    let (normal, q, down) = lying(tilt(angle, heading(angle, from)), HALF);
                    let plate = on_ground(PLATE, 1.0, mu, normal);
                    let cone = options(Cone::Linearized(n), warm);
                    let mut s = Sim::new(&plate, &q, &[0.0; 6], h, cone);
                    s.run(1.0);
                    let [_, v, w] = s.body();
                    let aside = (v - down * v.dot(&down)).norm().max(w.norm());
                    (angle, v.dot(&down), aside)
                };
                let case = format!("{n} directions, {from:.2} rad, friction {mu}, h {h}");
                let (angle, v, aside) = on(0.1);
                let rho = angle.tan() / mu;
                let unit = 1e-9 / (mu * angle.cos());
                let error = (v / (unit * creep(n, from, rho)) - 1.0).abs();
                println!("{case}: creep {v:.2e} m/s, error {error:.1e}, aside {aside:.1e}");
                assert!(error < 1e-4 && aside < 1e-4 * v, "{case}: {error} {aside}");
                if from == 0.0 {
                    // near the cone's surface 2 n times that of the circular cone
                    let times = v / (unit * rho / (1.0 - rho * rho)) / (2.0 * n as f64);
                    assert!((times - 1.0).abs() < 0.05, "{case}: {times}");
                }
                let (angle, v, aside) = on(-1.0);
                let exact = G * (angle.sin() - most * angle.cos()) * (1.0 - 0.5 * h);
                let error = (v / exact - 1.0).abs();
                println!("{case}: sliding, error {error:.1e}, aside {aside:.1e}");
                assert!(error < 1e-4 && aside < 1e-9, "{case}: {error} {aside}");
            }
        }
    }
}
