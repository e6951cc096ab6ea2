//! Energies of motion in automatic substeps, and of parts of a mechanism that nothing connects.

use super::energy::{BOTH, is_done, simulate};
use super::{Folder, number};
use serde_json::Value;

/// Mechanisms that lose nothing keep their energy in automatic substeps: their number does not follow each swing.
#[test]
fn automatic_substeps_do_not_drift() {
    let folder = Folder::new("energy_drift");
    let rod = |stiffness: f64, rate: f64| {
        format!(
            "[mechanism.bodies.a]\nmass = 1.0\nshape = {{ box = [0.05, 0.05, 0.4] }}\n[mechanism.joints.s]\nkind = \"revolute\"\n\
             child = \"a\"\naxis = [0, 1, 0]\nchild_anchor = [0, 0, 0.2]\n[mechanism.springs.t]\nparent = \"world\"\nchild = \"a\"\n\
             parent_anchor = [0.5, 0, 0.1]\nchild_anchor = [0, 0, -0.2]\nstiffness = {stiffness}\nrest = 0.2\n\
             [initial]\ns = {{ coordinate = 1.5, rate = {rate} }}\n"
        )
    };
    let pendulum = |stiffness: f64, rate: f64| {
        format!(
            "[mechanism.bodies.a]\nmass = 1.0\nshape = {{ box = [0.05, 0.05, 0.5] }}\n[mechanism.bodies.b]\nmass = 0.5\n\
             shape = {{ box = [0.04, 0.04, 0.5] }}\n[mechanism.joints.s]\nkind = \"revolute\"\nchild = \"a\"\naxis = [0, 1, 0]\n\
             child_anchor = [0, 0, 0.25]\nstiffness = {stiffness}\n[mechanism.joints.e]\nkind = \"revolute\"\nparent = \"a\"\n\
             child = \"b\"\naxis = [0, 1, 0]\nparent_anchor = [0, 0, -0.25]\nchild_anchor = [0, 0, 0.25]\n\
             [initial]\ns = {{ coordinate = 1.5, rate = {rate} }}\ne = {{ coordinate = 0.5, rate = {} }}\n",
            -rate
        )
    };
    for (mechanism, h) in [
        (rod(50.0, 20.0), 0.01),
        (rod(50.0, 20.0), 0.02),
        (rod(500.0, 0.0), 0.01),
        (rod(500.0, 0.0), 0.02),
        (pendulum(0.0, 30.0), 0.01),
        (pendulum(0.0, 30.0), 0.02),
        (pendulum(0.0, 15.0), 0.01),
    ] {
        let text = format!("time_step = {h}\nhorizon = 20\n{mechanism}");
        for integrator in BOTH {
            let v = simulate(&folder, &text, &["--integrator", integrator]);
            assert!(is_done(&v), "{text}");
            let (error, energy) = (
                number(&v, "energy_error_max"),
                number(&v, "energy_initial").abs(),
            );
            println!(
                "{integrator} {h}: {error:.3} of {energy:.1} J, {}",
                v["substeps_mean"]
            );
            assert!(number(&v, "substeps_mean") > 1.0, "{text}");
            assert!(error < 0.008 * energy, "{integrator}: {error} J, {text}");
        }
    }
}

fn warnings(v: &Value) -> Vec<String> {
    let each = v["warnings"].as_array().expect("a list").iter();
    each.map(|w| w.as_str().expect("a sentence").into())
        .collect()
}

/// Two light links that fold and snap taut under a ball: tensions grow tenfold within a step.
#[test]
fn light_links_fold_and_snap_taut() {
    let folder = Folder::new("energy_folds");
    let mut sum = 0.0;
    let mut count = 0.0;
    for (i, angles) in [
        [1.1, 1.5],
        [0.6, -1.2],
        [1.4, -2.0],
        [2.4, 2.5],
        [0.8, -2.4],
    ]
    .iter()
    .enumerate()
    {
        for (mass, h) in [(0.1, 0.01), (0.02, 0.01), (0.02, 0.005)] {
            let links: String = ["a", "b"]
                .iter()
                .map(|name| {
                    format!("[mechanism.bodies.{name}]\nmass = {mass}\nshape = {{ capsule = {{ radius = 0.005, length = 0.14 }} }}\n")
                })
                .collect();
            let text = format!(
                "time_step = {h}\nhorizon = 5\n{links}[mechanism.bodies.ball]\nmass = 1.0\nshape = {{ sphere = 0.06 }}\n\
                 [mechanism.joints.s]\nkind = \"revolute\"\nchild = \"a\"\naxis = [0, 1, 0]\nchild_anchor = [0, 0, 0.075]\n\
                 [mechanism.joints.e]\nkind = \"revolute\"\nparent = \"a\"\nchild = \"b\"\naxis = [0, 1, 0]\n\
                 parent_anchor = [0, 0, -0.075]\nchild_anchor = [0, 0, 0.075]\n[mechanism.joints.w]\nkind = \"revolute\"\n\
                 parent = \"b\"\nchild = \"ball\"\naxis = [0, 1, 0]\nparent_anchor = [0, 0, -0.075]\n\
                 [initial]\ns = {}\ne = {}\nw = 0.0\n",
                angles[0], angles[1]
            );
            let v = simulate(&folder, &text, &["--integrator", BOTH[i % 2]]);
            let (error, mean) = (number(&v, "energy_error_max"), number(&v, "substeps_mean"));
            println!("{angles:?}, {mass} kg, {h} s: {error:.3} J, {mean:.1}");
            assert!(is_done(&v), "{text}");
            sum += error;
            count += 1.0;
        }
    }
    // they hold 1 to 4 J, and are chaotic
    assert!(sum / count < 0.25, "mean error {}", sum / count);
}

/// A spring that has no lever at first, and whose rate grows with the square of the angle.
#[test]
fn springs_that_harden_keep_their_energy() {
    let folder = Folder::new("energy_hardens");
    for (i, rate) in [3.0, 4.5, 4.9, 5.5, 8.0, 12.0].iter().enumerate() {
        for h in [0.01, 0.018, 0.02] {
            let text = format!(
                "time_step = {h}\nhorizon = 4.5\n[mechanism]\ngravity = [0, 0, 0]\n[mechanism.bodies.a]\nmass = 1\n\
                 inertia = [0.01, 0.01, 0.01]\n[mechanism.joints.s]\nkind = \"revolute\"\nchild = \"a\"\naxis = [0, 0, 1]\n\
                 [mechanism.springs.t]\nparent = \"world\"\nchild = \"a\"\nparent_anchor = [0.6, 0, 0]\n\
                 child_anchor = [0.3, 0, 0]\nstiffness = 20000\nrest = 0.3\n[initial]\ns = {{ coordinate = 0.0, rate = {rate} }}\n"
            );
            let v = simulate(&folder, &text, &["--integrator", BOTH[i % 2]]);
            let share = number(&v, "energy_error_max") / number(&v, "energy_initial");
            println!("{rate} rad/s, {h} s: {share:.3}, {}", v["substeps_mean"]);
            assert!(is_done(&v) && share < 0.15, "{text}: {share}");
        }
    }
}

/// A fast flywheel hides neither the substeps that a spring beside it needs nor its energy error, if nothing connects the two.
#[test]
fn parts_that_nothing_connects_count_alone() {
    let folder = Folder::new("energy_apart");
    let wheel = "[mechanism.bodies.fly]\nmass = 2\ninertia = [0.01, 0.01, 0.02]\n[mechanism.joints.f]\nkind = \"revolute\"\n\
                 child = \"fly\"\naxis = [0, 0, 1]\nparent_anchor = [2, 0, 0]\n";
    let spin = "f = { coordinate = 0, rate = 200 }\n";
    for (i, size) in [0.3, 0.6, 0.9, 1.3, 2.1].iter().enumerate() {
        let h = 0.01;
        let text = |wheel: &str, spin: &str| {
            format!(
                "time_step = {h}\nhorizon = 1\n[mechanism]\ngravity = [0, 0, 0]\n[mechanism.bodies.a]\nmass = 0.1\n\
                 inertia = [0.1, 0.1, 0.1]\n[mechanism.joints.s]\nkind = \"prismatic\"\nchild = \"a\"\naxis = [1, 0, 0]\n\
                 stiffness = {}\n{wheel}[initial]\ns = 0.01\n{spin}",
                0.1 * (size / h) * (size / h)
            )
        };
        let run = |text: &str, substeps: &str| {
            let arguments = ["--integrator", BOTH[i % 2], "--substeps", substeps];
            simulate(&folder, text, &arguments)
        };
        let [alone, beside] = [text("", ""), text(wheel, spin)];
        let (own, v) = (run(&alone, "1"), run(&beside, "1"));
        println!("{size}: {}, {:?}", v["status"], warnings(&v));
        assert_eq!(own["status"], v["status"], "{size}");
        assert_eq!(is_done(&v), *size < 2.0, "{size}");
        if is_done(&v) {
            let named = warnings(&v).iter().any(|w| w.contains("J in play of `a`;"));
            assert_eq!(named, *size > 0.5, "{size}: {v:#}");
        } else {
            let message = v["failure"]["message"].as_str().expect("a sentence");
            assert!(message.contains("J in play of `a`;"), "{message}");
        }
        let [own, v] = [&alone, &beside].map(|text| number(&run(text, "auto"), "substeps_mean"));
        assert!(v >= own, "{size}: {own} substeps alone, {v}");
    }
}

/// The rate of a swing is that of the body, however many substeps a step has.
#[test]
fn swings_are_named_with_their_own_rate() {
    let folder = Folder::new("energy_rates");
    for (i, substeps) in ["1", "2", "4", "6"].iter().enumerate() {
        let count: f64 = substeps.parse().expect("a number");
        let rate = 130.0 * count;
        let text = format!(
            "time_step = 0.01\nhorizon = 1\n[mechanism]\ngravity = [0, 0, 0]\n[mechanism.bodies.a]\nmass = 0.1\n\
             inertia = [0.1, 0.1, 0.1]\n[mechanism.joints.s]\nkind = \"prismatic\"\nchild = \"a\"\naxis = [1, 0, 0]\n\
             stiffness = {}\n[initial]\ns = 0.01\n",
            0.1 * rate * rate
        );
        let arguments = ["--integrator", BOTH[i % 2], "--substeps", substeps];
        let v = simulate(&folder, &text, &arguments);
        let named = format!("swings at {rate:.1} rad/s");
        assert!(warnings(&v).iter().any(|w| w.contains(&named)), "{v:#}");
    }
}

/// Controls that change at knots are exact in any number of substeps: an arm with other torques at each knot takes one.
#[test]
fn changes_of_controls_ask_for_no_substeps() {
    let folder = Folder::new("energy_controls");
    let torques: Vec<f64> = (0..100)
        .map(|k| f64::from((k * 37) % 21) * 0.1 - 1.0)
        .collect();
    for gravity in ["0", "-9.81"] {
        for integrator in BOTH {
            let text = format!(
                "time_step = 0.01\nhorizon = 1\n[mechanism]\ngravity = [0, 0, {gravity}]\n[mechanism.bodies.a]\nmass = 1\n\
                 shape = {{ box = [0.05, 0.05, 0.4] }}\n[mechanism.bodies.b]\nmass = 0.5\nshape = {{ box = [0.05, 0.05, 0.4] }}\n\
                 [mechanism.joints.s]\nkind = \"revolute\"\nchild = \"a\"\naxis = [0, 1, 0]\nchild_anchor = [0, 0, 0.2]\n\
                 [mechanism.joints.e]\nkind = \"revolute\"\nparent = \"a\"\nchild = \"b\"\naxis = [0, 1, 0]\n\
                 parent_anchor = [0, 0, -0.2]\nchild_anchor = [0, 0, 0.2]\n[mechanism.actuators.m]\njoint = \"s\"\n\
                 [guess]\ncontrols = {{ m = {torques:?} }}\n"
            );
            let v = simulate(&folder, &text, &["--integrator", integrator]);
            assert!(is_done(&v), "{v:#}");
            assert_eq!(number(&v, "substeps_mean"), 1.0, "{integrator}, {gravity}");
        }
    }
}
