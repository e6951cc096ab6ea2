//! Elastic impacts: the law in the velocities at the knot, and the work they do.

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
