//! Elastic impacts: the law in the velocities at the knot, and the work they do.

use super::thin::energy;
use super::*;
use crate::common::{fall, list, slopes, start};
use least_action::mechanism::{JointKind, JointSpec};
use least_action::rollout::{Balance, balance};

fn ball(restitution: f64) -> MechanismBuilder {
    let ball = BodySpec::new(1.0)
        .shape(Shape::Sphere(0.1))
        .free()
        .contact("hull", ContactSpec::new(0.0).restitution(restitution));
    MechanismBuilder::new()
        .body("ball", ball)
        .half_space("floor", HalfSpaceSpec::default())
}

fn balanced(b: &MechanismBuilder, q: &[f64], rates: &[f64], seconds: f64, h: f64) -> Balance {
    // rounding of gaps is more than 1e-13 of a short interval
    let s = Maximal::new(b.build().expect("valid"), q, Options::default()).expect("closes");
    let x = s.start(q, rates, &vec![true; q.len()]).expect("a start");
    let t = fall(&s, &x, seconds, h);
    balance(&s, &t, &mut s.work()).expect("read")
}

#[test]
fn a_ball_loses_what_its_blows_take() {
    let q = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    for (restitution, h) in [(1.0, 0.01), (1.0, 0.003), (0.5, 0.01), (0.8, 0.003)] {
        let b = balanced(&ball(restitution), &q, &[0.0; 6], 2.0, h);
        let last = b.kinetic.len() - 1;
        println!(
            "restitution {restitution}, h {h}: impacts {:.3e} J, error {:.1e} J",
            b.impacts[last],
            b.largest_error()
        );
        assert!(b.largest_error() < 1e-7, "{}", b.largest_error());
        if restitution == 1.0 {
            assert!(b.impacts.iter().all(|w| w.abs() < 1e-7), "{:?}", b.impacts);
            assert!((b.energy(last) - b.energy(0)).abs() < 1e-7);
        } else {
            // the first blow leaves the square of the restitution of 0.9 m, as far as the knot hits the floor
            let (first, _) = (b.impacts.iter().enumerate())
                .find(|(_, w)| **w < -0.1)
                .expect("a blow");
            let before = b.kinetic[first - 1];
            let taken = b.impacts[first] + before * (1.0 - restitution * restitution);
            assert!(taken.abs() < 1e-7, "{taken}");
        }
    }
}

/// Two links that swing down and strike the floor with the tip of the lower one.
fn arm(restitution: f64) -> MechanismBuilder {
    let tip = ContactSpec::new(0.0)
        .shape(Shape::Sphere(0.05))
        .at([0.0, 0.0, -0.25])
        .restitution(restitution);
    let link = || BodySpec::new(1.0).shape(Shape::Box([0.1, 0.1, 0.5]));
    let hinge = |child: &str, top: f64| {
        JointSpec::new(JointKind::Revolute, child)
            .axis([0.0, 1.0, 0.0])
            .anchors([0.0, 0.0, top], [0.0, 0.0, 0.25])
    };
    MechanismBuilder::new()
        .body("upper", link())
        .body("lower", link().contact("tip", tip))
        .joint("shoulder", hinge("upper", 0.9))
        .joint("elbow", hinge("lower", -0.25).parent("upper"))
        .half_space("floor", HalfSpaceSpec::default())
}

#[test]
fn blows_beside_joints_keep_the_balance_to_second_order() {
    for restitution in [1.0, 0.6] {
        let errors = [0.01, 0.005, 0.0025, 0.00125].map(|h| {
            let b = balanced(&arm(restitution), &[1.0, 0.8], &[0.0, 0.0], 1.2, h);
            let hits = b.impacts.windows(2).filter(|w| (w[1] - w[0]).abs() > 1e-3);
            let work = b.impacts[b.impacts.len() - 1];
            println!(
                "restitution {restitution}, h {h}: error {:.2e} J, impacts {work:.3e} J, {} blows",
                b.largest_error(),
                hits.count()
            );
            b.largest_error()
        });
        println!("slopes {:.2?}", slopes(&errors));
        assert!(errors[0] < 0.05, "{}", list(&errors));
        // between steps the instant of the blow moves by up to a step
        let slope = (errors[0] / errors[3]).log2() / 3.0;
        assert!((1.7..2.3).contains(&slope), "{}", list(&errors));
    }
}

/// A hinge that swings between its stops, however slowly: nothing presses it against them.
#[test]
fn limits_of_joints_bounce() {
    for (restitution, start_rate) in [(1.0, 2.0), (0.5, 2.0), (1.0, 0.5), (0.5, 0.1), (0.8, 0.05)] {
        let b = MechanismBuilder::new()
            .gravity([0.0; 3])
            .body(
                "door",
                BodySpec::new(2.0).shape(Shape::Box([0.8, 0.04, 1.0])),
            )
            .joint(
                "hinge",
                JointSpec::new(JointKind::Revolute, "door")
                    .axis([0.0, 0.0, 1.0])
                    .anchors([0.0; 3], [-0.4, 0.0, 0.0])
                    .limits(-0.5, 0.7)
                    .restitution(restitution),
            );
        let (s, x) = start(&b, &[0.0], &[start_rate]);
        let t = fall(&s, &x, 2.4 / start_rate, 0.01);
        let rate = |k: usize| s.interval_velocities(t.state(k), 0.0)[0].1.z;
        // the increment over an interval is a sine of the rate: of second order larger
        let mut expected = rate(1);
        assert!((expected - start_rate).abs() < 2e-4, "{expected}");
        let mut hits = 0;
        for k in 1..=t.steps() {
            if rate(k) * expected < 0.0 {
                expected *= -restitution;
                hits += 1;
            }
            assert!((rate(k) - expected).abs() < 1e-4, "{k}: {}", rate(k));
            let angle = s.coordinate(t.state(k), 0, 0);
            assert!((-0.5..=0.7).contains(&angle), "{k}: {angle}");
        }
        assert!(hits >= 1, "{hits}");
        let b = balance(&s, &t, &mut s.work()).expect("read");
        assert!(b.largest_error() < 1e-6, "{}", b.largest_error());
        let work = b.impacts[b.impacts.len() - 1];
        let taken = b.kinetic[0] * (1.0 - restitution.powi(2 * hits));
        assert!((work + taken).abs() < 1e-6, "{work} {taken}");
    }
}

/// A plate that lands almost flat: the edge that the first blow throws down bounces in the same blow.
#[test]
fn a_plate_that_lands_almost_flat_keeps_its_energy() {
    for (tilt, h) in [
        (0.002, 0.001),
        (0.005, 0.001),
        (0.01, 0.002),
        (0.02, 0.005),
        (0.1, 0.01),
    ] {
        for shape in [
            "box = [0.2, 0.2, 0.02]",
            "cylinder = { radius = 0.1, length = 0.02 }",
        ] {
            let text = format!(
                "time_step = {h}\nhorizon = 0.5\nintegrator = {{ name = \"maximal\", substeps = \"auto\" }}\n[mechanism.half_spaces.floor]\n\
                 [mechanism.bodies.plate]\nmass = 1.0\nfree = true\nshape = {{ {shape} }}\ncontacts.c = {{ restitution = 1.0 }}\n\
                 [initial.plate]\nposition = [0.0, 0.0, 0.4]\norientation = {{ rpy = [0.0, {tilt}, 0.0] }}\n"
            );
            let (m, knots) = motion(&text).expect("solved");
            let n = knots.len();
            let ends = [&knots[..2], &knots[n - 2..]].map(|k| energy(&m, [&k[0], &k[1]], h));
            let off = ends[1] / ends[0] - 1.0;
            println!("{shape}, tilt {tilt}: {off:.1e}");
            // the energies are those of intervals
            assert!(off.abs() < 1e-3, "{shape}, tilt {tilt}, h {h}: {off:e}");
        }
    }
}

/// A ball strikes the second of three in a row, which strikes the third within the same step.
#[test]
fn a_ball_that_a_blow_throws_at_another_bounces_off_it() {
    let ball = |name: &str| {
        format!(
            "[mechanism.bodies.{name}]\nmass = 1.0\nfree = true\nshape = {{ sphere = 0.1 }}\n\
             contacts.c = {{ restitution = 0.9, group = \"all\", against = [\"all\"] }}\n"
        )
    };
    for (h, gap) in [(0.01, 0.001), (0.01, 0.004), (0.005, 0.001)] {
        let text = format!(
            "time_step = {h}\nhorizon = 0.6\nintegrator = {{ name = \"maximal\", substeps = \"auto\" }}\n[mechanism]\ngravity = [0.0, 0.0, 0.0]\n{}{}{}\
             [initial]\na = {{ velocity = [1.0, 0.0, 0.0] }}\nb = {{ position = [0.4, 0.0, 0.0] }}\nc = {{ position = [{}, 0.0, 0.0] }}\n",
            ball("a"),
            ball("b"),
            ball("c"),
            0.6 + gap
        );
        let (_, knots) = motion(&text).expect("solved");
        let n = knots.len();
        let speed = |b: usize| (knots[n - 1][b].x.x - knots[n - 2][b].x.x) / h;
        let own = [0, 1, 2].map(speed);
        println!("h {h}, gap {gap}: {own:?}");
        // 0.95 goes on at each blow, 0.05 stays; then the second is slower than the first, and they meet no more or late
        assert!((own[2] - 0.9025).abs() < 1e-6, "{own:?}");
        assert!((own.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{own:?}");
    }
}
