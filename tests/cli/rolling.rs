//! Wheels, coins and discs that roll and spin on the ground.

use super::energy::BOTH;
use super::*;

/// Free wheels, coins and rods roll at their speed, whatever they turn by in a step below 3 rad.
#[test]
fn free_wheels_roll_at_their_speed() {
    let folder = Folder::new("contacts_wheels");
    for (radius, length, turn, integrator) in [
        (0.1, 0.05, 0.46, "minimal"),
        (0.1, 0.05, 0.96, "maximal"),
        (0.05, 0.2, 1.4, "minimal"),
        (0.02, 0.3, 2.0, "maximal"),
        (0.3, 0.1, 2.5, "minimal"),
    ] {
        let h = 0.01;
        let speed = radius * turn / h;
        folder.write(
            "wheel.toml",
            &format!(
                "time_step = {h:?}\nhorizon = 1.0\nintegrator = {{ name = \"{integrator}\", substeps = 1 }}\n[mechanism]\n\
                 gravity = [0.0, 0.0, -9.81]\n[mechanism.half_spaces.floor]\n[mechanism.bodies.wheel]\nmass = 1.0\n\
                 shape = {{ cylinder = {{ radius = {radius:?}, length = {length:?} }} }}\nfree = true\n\
                 contacts.tread = {{ friction = 1.0 }}\n[initial]\nwheel = {{ position = [0.0, 0.0, {radius:?}], \
                 orientation = {{ rpy = [1.5707963267948966, 0.0, 0.0] }}, velocity = [{speed:?}, 0.0, 0.0], \
                 angular_velocity = [0.0, 0.0, {spin:?}] }}\n",
                spin = -turn / h,
            ),
        );
        let v = folder.json(&["simulate", "wheel.toml", "--json"]);
        let what = format!("radius {radius}, {turn} rad a step, {integrator}");
        assert_eq!(v["status"], "done", "{what}");
        let x = numbers(&v["final"]["bodies"]["wheel"]["position"])[0];
        assert!((x / speed - 1.0).abs() < 1e-6, "{what}: {x} of {speed} m");
    }
}

/// A tilted coin that rolls in a circle, as its balance of angular momentum has it, keeps its tilt and its energy: no point of its rim is fixed,
/// which would brake it.
#[test]
fn a_tilted_coin_rolls_in_a_circle() {
    let folder = Folder::new("contacts_coin");
    let half_space = "[mechanism.half_spaces.floor]\n";
    let slab = "[mechanism.terrain.floor]\nshape = { box = [4.0, 4.0, 0.2] }\nposition = [0.0, 0.0, -0.1]\nfriction = 1.2\n";
    for (h, ground) in [
        (0.01, half_space),
        (0.01, slab),
        (0.005, slab),
        (0.004, half_space),
        (0.002, half_space),
    ] {
        folder.write(
            "coin.toml",
            &format!(
                "time_step = {h:?}\nhorizon = 0.5\n{ground}[mechanism.bodies.coin]\nmass = 0.2\nfree = true\n\
                 shape = {{ cylinder = {{ radius = 0.05, length = 0.005 }} }}\ncontacts.hull = {{ friction = 1.2 }}\n\
                 [initial.coin]\nposition = [0.0, 0.0, 0.026165233335036082]\norientation = {{ rpy = [0.5, 0.0, 0.0] }}\n\
                 velocity = [1.0320845906956864, 0.0, 0.0]\n\
                 angular_velocity = [0.0, 4.79425538604203, -20.401979044611622]\n"
            ),
        );
        for integrator in BOTH {
            let args = [
                "simulate",
                "coin.toml",
                "--integrator",
                integrator,
                "--json",
            ];
            let v = folder.json(&args);
            let what = format!("{h} {integrator} {ground}");
            assert_eq!(v["status"], "done", "{what}");
            let share = number(&v, "energy_final") / number(&v, "energy_initial");
            assert!((share - 1.0).abs() < 1e-4, "{what}: {share}");
            let height = numbers(&v["final"]["bodies"]["coin"]["position"])[2];
            assert!((height / 0.026_165 - 1.0).abs() < 1e-2, "{what}: {height}");
        }
    }
}

/// Coins of 5 cm, 0.2 kg, that roll in small circles and go around by 0.4 to 0.6 rad in a step: their balance of angular momentum gives the rate.
/// Automatic substeps keep the lowest point near; with one step the coin would lie flat after 0.4 s, and that is told.
#[test]
fn coins_that_go_around_fast_keep_rolling() {
    let folder = Folder::new("contacts_coins");
    let (radius, length, mass, gravity) = (0.05_f64, 0.005_f64, 0.2_f64, 9.81_f64);
    let across = mass * (3.0 * radius * radius + length * length) / 12.0;
    let along = 0.5 * mass * radius * radius;
    let half_space = "[mechanism.half_spaces.floor]\n";
    let slab = "[mechanism.terrain.floor]\nshape = { box = [9.0, 9.0, 0.2] }\nposition = [0.0, 0.0, -0.1]\nfriction = 2.5\n";
    for (tilt, circle, h) in [
        (0.35_f64, 0.0, 0.01),
        (0.5, 0.0, 0.01),
        (0.2, 0.01, 0.01),
        (0.2, 0.01, 0.015),
        (0.06, 0.0, 0.01),
    ] {
        let (sin, cos) = tilt.sin_cos();
        // from the center to the lowest point; the circle of the center is at x, the axis in the plane of x and z
        let (x, z) = (
            -0.5 * length * sin + radius * cos,
            -0.5 * length * cos - radius * sin,
        );
        // of the spin about the axis, by the rate of the circle: the lowest point is at rest
        let spin = -(circle + x) / (cos * x - sin * z);
        let w = [spin * sin, 0.0, 1.0 + spin * cos];
        let about = w[0] * sin + w[2] * cos;
        let level = along * about * sin + across * (w[0] - about * sin) + mass * z * circle;
        let rate = (-mass * gravity * x / level).sqrt();
        let body = [
            rate * (cos * w[0] - sin * w[2]),
            rate * (sin * w[0] + cos * w[2]),
        ];
        for ground in [half_space, slab] {
            folder.write(
                "coin.toml",
                &format!(
                    "time_step = {h:?}\nhorizon = 0.45\n{ground}[mechanism.bodies.coin]\nmass = {mass:?}\nfree = true\n\
                     shape = {{ cylinder = {{ radius = {radius:?}, length = {length:?} }} }}\ncontacts.hull = {{ friction = 2.5 }}\n\
                     [initial.coin]\nposition = [{circle:?}, 0.0, {:?}]\norientation = {{ rpy = [0.0, {tilt:?}, 0.0] }}\n\
                     velocity = [0.0, {:?}, 0.0]\nangular_velocity = [{:?}, 0.0, {:?}]\n",
                    1e-12 - z,
                    rate * circle,
                    body[0],
                    body[1],
                ),
            );
            for integrator in BOTH {
                let run = |substeps: &str| {
                    let args = ["simulate", "coin.toml", "--json", "--substeps", substeps];
                    folder.json(&[&args[..], &["--integrator", integrator]].concat())
                };
                let v = run("auto");
                let what = format!("{tilt} {circle} {h} {integrator} {ground}: {rate} rad/s");
                assert_eq!(v["status"], "done", "{what}");
                let share = number(&v, "energy_final") / number(&v, "energy_initial");
                assert!((share - 1.0).abs() < 1e-3, "{what}: {share}");
                let warnings = run("1")["warnings"].to_string();
                assert!(
                    warnings.contains("goes around body `coin`"),
                    "{what}: {warnings}"
                );
            }
        }
    }
}

/// A disc that lies flat and spins, by the torque `mu m g r` of its rim.
#[test]
fn friction_slows_discs_that_spin_fast() {
    let folder = Folder::new("contacts_disc");
    let (radius, spin, duration) = (0.05, 250.0, 0.5);
    folder.write(
        "disc.toml",
        &format!(
            "time_step = 0.01\nhorizon = {duration:?}\n[mechanism.half_spaces.floor]\n[mechanism.bodies.disc]\nmass = 1.0\nfree = true\n\
             shape = {{ cylinder = {{ radius = {radius:?}, length = 0.02 }} }}\ncontacts.hull = {{ friction = 0.5 }}\n\
             [initial.disc]\nposition = [0.0, 0.0, 0.01]\nangular_velocity = [0.0, 0.0, {spin:?}]\n"
        ),
    );
    let lost = 0.5 * 9.81 * 2.0 / radius * duration;
    for integrator in BOTH {
        for h in ["0.02", "0.01", "0.005", "0.0025", "0.001"] {
            let args = [
                "simulate",
                "disc.toml",
                "--step",
                h,
                "--integrator",
                integrator,
                "--json",
            ];
            let v = folder.json(&args);
            let left = numbers(&v["final"]["bodies"]["disc"]["angular_velocity"])[2];
            let off = (spin - left) / lost - 1.0;
            assert!(off.abs() < 0.03, "{integrator} {h}: {left}, off {off}");
        }
    }
}

/// Wheels of files: angles that are rounded to three digits, moments that differ in the third, centers of mass beside the axle by a thousandth of the
/// radius. They turn at their rate, and so does what is described as it is.
#[test]
fn wheels_with_rounded_numbers_turn_at_their_rate() {
    let folder = Folder::new("rolling_rounded");
    for (inertia, tilt, beside, law) in [
        ([0.0025, 0.0025, 0.005], 0.0, 0.0, "spin"),
        ([0.0025, 0.002502, 0.005], 0.0, 0.0, "spin"),
        ([0.00251, 0.0025, 0.005], 0.0, 1e-4, "spin"),
        ([0.0025, 0.0025, 0.005], 0.0008, 0.0, "spin"),
        ([0.00501, 0.005, 0.005], 0.0, 1e-4, "ball"),
    ] {
        let (h, rate) = (0.01, 47.0);
        folder.write(
            "wheel.toml",
            &format!(
                "time_step = {h:?}\nhorizon = 1.0\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n[mechanism.bodies.wheel]\nmass = 1.0\n\
                 inertia = {inertia:?}\n[mechanism.joints.axle]\nkind = \"revolute\"\nchild = \"wheel\"\n\
                 axis = [0.0, {:?}, {:?}]\nchild_anchor = [{beside:?}, 0.0, 0.0]\n[initial]\naxle = {{ rate = {rate:?} }}\n",
                f64::sin(tilt),
                f64::cos(tilt)
            ),
        );
        for integrator in BOTH {
            let run = folder.run(&[
                "simulate",
                "wheel.toml",
                "--json",
                "--integrator",
                integrator,
            ]);
            let what = format!("{integrator}, {inertia:?}, {tilt} rad, {beside} m");
            assert!(!run.err.contains("turned by"), "{what}: {}", run.err);
            let v = run.ended(0).json();
            let angle = numbers(&v["final"]["joints"]["axle"]["coordinates"])[0];
            let off = angle / rate - 1.0;
            assert!(off.abs() < 2e-4, "{what}: {off:e}");
        }
        let described = folder.run(&["describe", "wheel.toml"]).ended(0).out;
        assert!(
            described.contains(&format!("rotation {law}")),
            "{described}"
        );
    }
}
