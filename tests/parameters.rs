//! Gradients by parameters of the mechanism and of a policy, through many steps, against central differences.

mod common;
#[path = "../examples/common/knife_edge.rs"]
mod knife_edge;

use common::{Source, Y};
use least_action::control::{ClosedLoop, Cost, Form, Law, Loop, Pd, PolicyRows, Problem, When};
use least_action::dynamics::{Dynamics, Knot, Observe, Parameter, StepError};
use least_action::integrator::{Maximal, Options, Output};
use least_action::mechanism::{
    ActuatorSpec, BodySpec, GearSpec, JointKind, JointSpec, MechanismBuilder, Shape, SpringSpec,
};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use std::sync::Arc;

/// A hinged chain of three bars with motors, springs and dampers.
fn chain() -> MechanismBuilder {
    let mut m = MechanismBuilder::new();
    for i in 0..3 {
        let name = format!("bar{i}");
        m = m.body(
            &name,
            BodySpec::new(1.0 + 0.2 * i as f64).shape(Shape::Box([0.05, 0.05, 0.5])),
        );
        let mut joint = JointSpec::new(JointKind::Revolute, &name)
            .axis(Y)
            .spring(3.0, 0.1)
            .damping(0.4)
            .anchors([0.0; 3], [0.0, 0.0, 0.25]);
        if i > 0 {
            joint = joint
                .parent(&format!("bar{}", i - 1))
                .anchors([0.0, 0.0, -0.25], [0.0, 0.0, 0.25]);
        }
        m = m.joint(&format!("j{i}"), joint);
        m = m.actuator(&format!("u{i}"), ActuatorSpec::joint(&format!("j{i}")));
    }
    m
}

/// A planar five-bar with motors at its feet and a spring across: one loop, two freedoms.
fn five_bar() -> MechanismBuilder {
    let bar = |l: f64| BodySpec::new(l).shape(Shape::Box([0.03, 0.03, l]));
    let hinge = |child: &str, l: f64| {
        JointSpec::new(JointKind::Revolute, child)
            .axis(Y)
            .anchors([0.0; 3], [0.0, 0.0, -l / 2.0])
    };
    let at = |mut j: JointSpec, parent: &str, anchor: [f64; 3]| {
        j = j.parent(parent);
        j.parent_anchor = anchor;
        j
    };
    let mut foot = hinge("right", 0.5);
    foot.parent_anchor = [0.4, 0.0, 0.0];
    let mut tip = at(hinge("right_arm", 0.6), "left_arm", [0.0, 0.0, 0.3]);
    tip.child_anchor = [0.0, 0.0, 0.3];
    MechanismBuilder::new()
        .body("left", bar(0.5))
        .body("left_arm", bar(0.6))
        .body("right", bar(0.5))
        .body("right_arm", bar(0.6))
        .joint("left_foot", hinge("left", 0.5).damping(0.05))
        .joint(
            "left_knee",
            at(hinge("left_arm", 0.6), "left", [0.0, 0.0, 0.25]).spring(0.3, 0.4),
        )
        .joint("right_foot", foot)
        .joint(
            "right_knee",
            at(hinge("right_arm", 0.6), "right", [0.0, 0.0, 0.25]),
        )
        .joint("tip", tip)
        .spring(
            "across",
            SpringSpec {
                parent: "left".into(),
                child: "right".into(),
                parent_anchor: [0.02, 0.0, 0.1],
                child_anchor: [-0.02, 0.0, 0.1],
                stiffness: 4.0,
                rest: 0.3,
                damping: 0.1,
            },
        )
        .actuator("left_motor", ActuatorSpec::joint("left_foot"))
        .actuator("right_motor", ActuatorSpec::joint("right_foot"))
}

/// Every number of a planar mechanism that may change without leaving the plane y = 0.
fn tuned(mut m: MechanismBuilder) -> MechanismBuilder {
    let built = m.build().expect("valid");
    for (path, _) in built.fields() {
        let ending = path.rsplit('.').next().unwrap_or_default();
        let out_of_plane = path.contains("inertia") && ending != "yy" || ending == "y";
        let zero = ["stiffness", "damping"].iter().any(|f| path.contains(f))
            && built.get(built.field("", &path).expect("listed")) == 0.0;
        if !out_of_plane && !zero {
            m = m.parameter(&path, &[&path]);
        }
    }
    m
}

fn system(m: &MechanismBuilder, q: &[f64]) -> Maximal {
    let options = Options {
        tolerance: 1e-13,
        ..Options::default()
    };
    let s = Maximal::new(m.build().expect("valid"), q, options).expect("closes");
    let mut outputs = vec![];
    for (joint, direction) in s.mechanism().coordinates() {
        outputs.push(Output::Coordinate { joint, direction });
        outputs.push(Output::Rate { joint, direction });
        outputs.push(Output::IntervalRate { joint, direction });
    }
    outputs.extend((0..s.mechanism().actuators.len()).map(Output::Control));
    s.with_outputs(outputs)
}

struct Case<D> {
    system: D,
    problem: Problem,
}

impl<D: Observe> Case<D> {
    fn rolled(&self, p: &[f64], u: &[f64], w: &mut D::Work) -> Result<Trajectory, StepError> {
        let x0 = self.problem.start(&self.system, p, w)?;
        let mut t = Trajectory::new(&self.system, self.problem.intervals.clone(), &x0);
        t.p.copy_from_slice(p);
        t.u.copy_from_slice(u);
        t.roll(&self.system, w, &mut RolloutStats::default())?;
        Ok(t)
    }

    fn value(&self, p: &[f64], u: &[f64]) -> f64 {
        let (mut w, mut e) = (self.system.work(), self.problem.evaluation());
        let t = self.rolled(p, u, &mut w).expect("solved");
        self.problem
            .evaluate(&self.system, &t, &mut w, &mut e)
            .expect("observed");
        e.objective
    }

    /// Gradient by the parameters, then by the controls.
    fn gradient(&self, p: &[f64], u: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut w, mut e) = (self.system.work(), self.problem.evaluation());
        let t = self.rolled(p, u, &mut w).expect("solved");
        let mut sweep = Sweep::new(&self.system, &t);
        sweep
            .run(&self.system, &t, &mut w, |at, w, out, y| {
                self.problem
                    .pull(&self.system, &t, &[], &mut e, at, w, out, y)
            })
            .expect("regular");
        let start = (&self.problem.coordinates[..], &self.problem.rates[..]);
        sweep
            .through_start(&self.system, start, p, &mut w)
            .expect("closes");
        (sweep.p, sweep.u)
    }

    /// Compares every parameter and some controls with fourth-order differences, relative to the largest of the group.
    fn check(&self, tolerance: f64) {
        let (p, u) = (&self.problem.parameters, &self.problem.guess);
        let (by_p, by_u) = self.gradient(p, u);
        let names = self.system.parameters();
        let at = |v: &[f64], i: usize, e: f64| {
            let mut v = v.to_vec();
            v[i] += e;
            v
        };
        let slope = |f: &dyn Fn(f64) -> f64, e: f64| {
            (8.0 * (f(e) - f(-e)) - (f(2.0 * e) - f(-2.0 * e))) / (12.0 * e)
        };
        let mut worst = 0.0_f64;
        for (i, exact) in by_p.iter().enumerate() {
            let f = |e: f64| self.value(&at(p, i, e), u);
            let error = |e: f64| {
                let difference = slope(&f, e);
                (exact - difference).abs() / difference.abs().max(1e-3 * self.value(p, u))
            };
            let error = error(1e-3).min(error(1e-4));
            println!("{:<40} {exact:+.9e} {error:.1e}", names[i].name);
            assert!(error < tolerance, "{}: {exact} {error:e}", names[i].name);
            worst = worst.max(error);
        }
        let largest = by_u.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        for i in (0..by_u.len()).step_by(37) {
            let difference = slope(&|e| self.value(p, &at(u, i, e)), 1e-3);
            let error = (by_u[i] - difference).abs() / largest;
            assert!(error < tolerance, "control {i}: {} {error:e}", by_u[i]);
        }
        println!("largest error {worst:.1e}");
    }
}

fn costs(quantities: usize, r: &mut Source) -> Vec<Cost> {
    let mut out = vec![];
    for quantity in 0..quantities {
        for when in [When::Running, When::End, When::Knot(7)] {
            out.push(Cost {
                quantity,
                target: 0.3 * r.unit(),
                weight: 1.0 + 0.5 * r.unit(),
                when,
                form: Form::Square,
            });
        }
    }
    out
}

#[test]
fn every_parameter_of_a_chain_through_500_steps() {
    let q = [0.9, -0.4, 0.7];
    let system = system(&tuned(chain()), &q);
    let mut r = Source::new(3);
    let nu = system.dims().nu;
    let problem = Problem {
        rates: vec![0.5, -1.0, 0.3],
        costs: costs(system.outputs().len(), &mut r),
        guess: r.vector(500 * nu, 0.5),
        ..Problem::new(&system, vec![0.01; 500], q.to_vec())
    };
    Case { system, problem }.check(1e-6);
}

/// Tree coordinates at which the loops close, from a guess by joint.
fn closed(m: &MechanismBuilder, guess: &[(&str, f64)]) -> Vec<f64> {
    let built = m.build().expect("valid");
    let of = |(joint, _): (usize, usize)| {
        let found = guess.iter().find(|(n, _)| *n == built.joints[joint].name);
        found.map_or(0.0, |g| g.1)
    };
    let mut q: Vec<f64> = built.tree_ids().into_iter().map(of).collect();
    let held = vec![false; q.len()];
    built.close(&mut q, &held).expect("closes");
    q
}

/// Some rates that keep the loops closed and obey the velocity constraints.
fn closed_rates(s: &Maximal, q: &[f64], r: &mut Source) -> Vec<f64> {
    let start = s
        .start(q, &r.vector(q.len(), 0.6), &vec![false; q.len()])
        .expect("closes");
    let m = s.mechanism();
    m.tree_rates(&s.poses(&start), &s.interval_velocities(&start))
}

/// Gears of a joint of the tree with a rack, and of the joint that closes the five-bar with a wheel.
#[test]
fn ratios_and_offsets_of_gears() {
    let mut rail = JointSpec::new(JointKind::Prismatic, "rack").axis([1.0, 0.0, 0.0]);
    rail.parent_anchor = [0.0, 0.0, -0.5];
    let m = five_bar()
        .body("rack", BodySpec::new(0.4).inertia([0.01; 3]))
        .body("wheel", BodySpec::new(0.3).inertia([0.05; 3]))
        .joint("rail", rail)
        .joint("hub", JointSpec::new(JointKind::Revolute, "wheel").axis(Y))
        .gear("rack", GearSpec::new("rail", "left_foot", 0.3).offset(0.05))
        .gear("belt", GearSpec::new("hub", "tip", -1.7).offset(0.4))
        .gear(
            "back",
            GearSpec::new("right_foot", "rail", -1.1).offset(0.2),
        );
    let paths = [
        "gears.rack.ratio",
        "gears.rack.offset",
        "gears.belt.ratio",
        "gears.belt.offset",
        "gears.back.ratio",
        "gears.back.offset",
        "joints.tip.child_anchor.z",
        "bodies.wheel.inertia.yy",
    ];
    let m = paths.iter().fold(m, |m, path| m.parameter(path, &[path]));
    let guess = [("left_foot", -0.3), ("left_knee", 0.9), ("right_foot", 0.3)];
    let q = closed(&m, &guess);
    let system = system(&m, &q);
    assert_eq!(system.mobility().degrees_of_freedom, 1);
    let units: Vec<String> = system.parameters().into_iter().map(|p| p.unit).collect();
    assert_eq!(units[..6], ["m/rad", "m", "1", "rad", "rad/m", "rad"]);
    let mut r = Source::new(8);
    let nu = system.dims().nu;
    let problem = Problem {
        rates: closed_rates(&system, &q, &mut r),
        costs: costs(system.outputs().len(), &mut r),
        guess: r.vector(60 * nu, 0.3),
        ..Problem::new(&system, vec![0.01; 60], q)
    };
    Case { system, problem }.check(1e-6);
}

/// Anchors beside a knife edge, without and with a gear: the start obeys the velocity constraint whatever they are.
#[test]
fn anchors_beside_a_velocity_constraint() {
    let plane = JointSpec::new(JointKind::PlanarAxis, "skate")
        .axis([0.0, 0.0, 1.0])
        .anchors([0.1, 0.2, 0.0], [0.15, -0.1, 0.05]);
    let shoulder = JointSpec::new(JointKind::Revolute, "arm")
        .parent("skate")
        .axis([0.0, 0.0, 1.0])
        .anchors([0.2, 0.05, 0.0], [-0.3, 0.02, 0.0])
        .spring(2.0, 0.3)
        .damping(0.2);
    let m = MechanismBuilder::new()
        .gravity([1.0, 0.5, -9.81])
        .body("skate", BodySpec::new(2.0).inertia([0.1; 3]))
        .body("arm", BodySpec::new(0.7).shape(Shape::Box([0.6, 0.1, 0.1])))
        .joint("plane", plane)
        .joint("shoulder", shoulder)
        .actuator("motor", ActuatorSpec::joint("shoulder"))
        .velocity_constraint("edge", &["skate"], Arc::new(knife_edge::KnifeEdge));
    let mut paths = vec![
        "joints.plane.parent_anchor.x",
        "joints.plane.child_anchor.x",
        "joints.plane.child_anchor.y",
        "joints.shoulder.parent_anchor.x",
        "joints.shoulder.child_anchor.y",
        "bodies.skate.mass",
    ];
    let declared = |m: &MechanismBuilder, paths: &[&'static str]| {
        let m = m.clone();
        paths.iter().fold(m, |m, path| m.parameter(path, &[path]))
    };
    let plain = declared(&m, &paths);
    let belt = GearSpec::new("shoulder", "plane.angle", 0.8).offset(0.1);
    paths.extend(["gears.belt.ratio", "gears.belt.offset"]);
    let geared = declared(&m.gear("belt", belt), &paths);
    for (m, freedoms) in [(plain, 4), (geared, 3)] {
        let q = closed(&m, &[("plane", 0.4), ("shoulder", 0.42)]);
        let system = system(&m, &q);
        assert_eq!(system.mobility().degrees_of_freedom, freedoms);
        let mut r = Source::new(9);
        let nu = system.dims().nu;
        // not lawful: as many as must follow
        let problem = Problem {
            rates: r.vector(q.len(), 0.8),
            costs: costs(system.outputs().len(), &mut r),
            guess: r.vector(80 * nu, 0.5),
            ..Problem::new(&system, vec![0.01; 80], q)
        };
        for change in [0.0, 0.07] {
            let p: Vec<f64> = problem.parameters.iter().map(|p| p + change).collect();
            let x = problem
                .start(&system, &p, &mut system.work())
                .expect("closes");
            let (pose, (v, _)) = (system.poses(&x)[0], system.interval_velocities(&x)[0]);
            let slip = (pose.r * least_action::spatial::Vec3::y()).dot(&v);
            assert!(slip.abs() < 1e-12 && v.norm() > 0.1, "{change}: {slip} {v}");
        }
        Case { system, problem }.check(1e-6);
    }
}

#[test]
fn every_parameter_of_a_loop() {
    // symmetric: the feet 0.4 apart, knees outwards
    let q = [-0.3, 0.9];
    let guess = [q[0], q[1], 0.3, -0.9];
    let m = tuned(five_bar());
    let names = ["left_foot", "left_knee", "right_foot", "right_knee"];
    let closed = closed(&m, &names.into_iter().zip(guess).collect::<Vec<_>>());
    let system = system(&m, &closed);
    assert_eq!(system.mobility().degrees_of_freedom, 2);
    // rates that keep the loop closed
    let mut r = Source::new(5);
    let rates = closed_rates(&system, &closed, &mut r);
    let nu = system.dims().nu;
    let problem = Problem {
        rates,
        costs: costs(system.outputs().len(), &mut r),
        guess: r.vector(60 * nu, 0.3),
        ..Problem::new(&system, vec![0.01; 60], closed)
    };
    Case { system, problem }.check(1e-6);
}

/// Gains, feed-forward and the mechanism's own numbers under proportional-derivative control.
#[test]
fn gains_of_a_closed_loop() {
    let q = [0.9, -0.4, 0.7];
    let m = chain().parameter("load", &["bodies.bar2.mass"]).parameter(
        "reach",
        &["joints.j1.parent_anchor.z", "joints.j2.parent_anchor.z"],
    );
    let inner = system(&m, &q);
    let n = inner.outputs().len();
    let of = |joint: usize| 3 * joint;
    let loops = [0, 2].map(|i| Loop {
        control: i,
        coordinate: of(i),
        rate: of(i) + 2,
        gains: (6.0 + i as f64, 0.8),
        reference: Box::new(move |t| (t + i as f64).sin()),
        rate_reference: Box::new(move |t| (t + i as f64).cos()),
    });
    let policy = Pd::new(&inner, loops.into(), true).expect("fits");
    let system = ClosedLoop::new(inner, policy);
    assert_eq!((system.dims().nu, system.dims().np), (3, 6));
    let gains = system.parameters().split_off(2);
    let names = gains.iter().map(|p| (p.name.as_str(), p.unit.as_str()));
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            ("kp of u0", "N m/rad"),
            ("kd of u0", "N m s/rad"),
            ("kp of u2", "N m/rad"),
            ("kd of u2", "N m s/rad"),
        ]
    );
    let mut r = Source::new(11);
    let problem = Problem {
        rates: vec![0.5, -1.0, 0.3],
        costs: costs(n, &mut r),
        guess: r.vector(3 * 200, 0.5),
        ..Problem::new(&system, vec![0.01; 200], q.to_vec())
    };
    Case { system, problem }.check(1e-6);
}

/// A law of the user's with derivatives of its own: an energy-like swing with saturation.
#[test]
fn a_law_of_the_users() {
    let q = [0.4, 0.1, -0.2];
    let inner = system(&chain(), &q);
    let n = inner.outputs().len();
    let law = |_: &Knot,
               s: &[f64],
               open: &[f64],
               g: &[f64],
               u: &mut [f64],
               by: Option<&mut PolicyRows>| {
        u.fill(0.0);
        u[1] = g[0] * (g[1] * s[1]).tanh() * s[0].cos() + open[0];
        if let Some(by) = by {
            let (t, c) = ((g[1] * s[1]).tanh(), s[0].cos());
            let slope = g[0] * (1.0 - t * t) * c;
            by.seen[(1, 0)] = -g[0] * t * s[0].sin();
            by.seen[(1, 1)] = slope * g[1];
            by.own[(1, 0)] = t * c;
            by.own[(1, 1)] = slope * s[1];
            by.open[(1, 0)] = 1.0;
        }
    };
    let gain = |name: &str, value| Parameter {
        name: name.into(),
        unit: String::new(),
        value,
    };
    let policy = Law {
        sees: vec![0, 5],
        open: 1,
        parameters: vec![gain("size", 2.0), gain("slope", 1.5)],
        controls: 3,
        law,
    };
    let system = ClosedLoop::new(inner, policy);
    let mut r = Source::new(12);
    let problem = Problem {
        costs: costs(n, &mut r),
        guess: r.vector(200, 0.5),
        ..Problem::new(&system, vec![0.01; 200], q.to_vec())
    };
    Case { system, problem }.check(1e-6);
}
