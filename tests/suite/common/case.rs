//! Gradients by parameters and controls, against differences.

use super::{Source, Y};
use least_action::control::{Cost, Problem, When};
use least_action::dynamics::{Observe, QuantityId, StepError};
use least_action::integrator::{Maximal, Mechanical, Minimal, Options};
use least_action::mechanism::Quantity;
use least_action::mechanism::{
    ActuatorSpec, BodySpec, JointKind, JointSpec, MechanismBuilder, Shape, SpringSpec,
};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};

/// A hinged chain of three bars with motors, springs and dampers.
pub fn chain() -> MechanismBuilder {
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
pub fn five_bar() -> MechanismBuilder {
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
                implicit: false,
            },
        )
        .actuator("left_motor", ActuatorSpec::joint("left_foot"))
        .actuator("right_motor", ActuatorSpec::joint("right_foot"))
}

/// With every coordinate, rate and interval rate, then every control, to observe.
pub fn system(m: &MechanismBuilder, q: &[f64]) -> Maximal {
    let options = Options {
        tolerance: 1e-13,
        ..Options::default()
    };
    let s = Maximal::new(m.build().expect("valid"), q, options).expect("closes");
    observing(s)
}

/// The same of a tree in joint coordinates.
pub fn in_joints(m: &MechanismBuilder, q: &[f64]) -> Minimal {
    let s = Minimal::new(m.build().expect("valid"), q, Options::default()).expect("a tree");
    observing(s)
}

fn observing<S: Mechanical>(s: S) -> S {
    let mut outputs = vec![];
    for (joint, direction) in s.mechanism().coordinates() {
        outputs.push(Quantity::Coordinate { joint, direction });
        outputs.push(Quantity::Rate { joint, direction });
        outputs.push(Quantity::IntervalRate { joint, direction });
    }
    outputs.extend((0..s.mechanism().actuators.len()).map(Quantity::Control));
    s.with_outputs(outputs)
}

/// What is to be differentiated.
pub struct Case<D> {
    pub system: D,
    pub problem: Problem,
}

impl<D: Observe> Case<D> {
    pub fn rolled(&self, p: &[f64], u: &[f64], w: &mut D::Work) -> Result<Trajectory, StepError> {
        let x0 = self.problem.start(&self.system, p, w)?;
        let mut t = Trajectory::new(&self.system, self.problem.intervals.clone(), &x0);
        t.p.copy_from_slice(p);
        t.u.copy_from_slice(u);
        t.roll(&self.system, w, &mut RolloutStats::default())?;
        Ok(t)
    }

    pub fn value(&self, p: &[f64], u: &[f64]) -> f64 {
        let (mut w, mut e) = (self.system.work(), self.problem.evaluation());
        let t = self.rolled(p, u, &mut w).expect("solved");
        self.problem
            .evaluate(&self.system, &t, &mut w, &mut e)
            .expect("observed");
        e.objective
    }

    /// Gradient by the parameters, then by the controls.
    pub fn gradient(&self, p: &[f64], u: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut w, mut e) = (self.system.work(), self.problem.evaluation());
        let t = self.rolled(p, u, &mut w).expect("solved");
        let mut sweep = Sweep::new(&self.system, &t);
        sweep
            .run(&self.system, &t, &mut w, |at, w, out, y| {
                self.problem
                    .pull(&self.system, &t, &[], &mut e, at, w, out, y)
            })
            .expect("regular");
        let by = self.problem.by_parameters(&self.system, p, &sweep, &mut w);
        (by.expect("closes"), sweep.u)
    }

    /// Compares every parameter and some controls with fourth-order differences, relative to the largest of the group.
    pub fn check(&self, tolerance: f64) {
        self.check_by(tolerance, [1e-3, 1e-4]);
    }

    /// The same by differences of such steps, the better of two.
    pub fn check_by(&self, tolerance: f64, steps: [f64; 2]) {
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
            let error = error(steps[0]).min(error(steps[1]));
            println!("{:<40} {exact:+.9e} {error:.1e}", names[i].name);
            assert!(error < tolerance, "{}: {exact} {error:e}", names[i].name);
            worst = worst.max(error);
        }
        let largest = by_u.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        for i in (0..by_u.len()).step_by(37) {
            let difference = slope(&|e| self.value(p, &at(u, i, e)), steps[0]);
            let error = (by_u[i] - difference).abs() / largest;
            assert!(error < tolerance, "control {i}: {} {error:e}", by_u[i]);
        }
        println!("largest error {worst:.1e}");
    }
}

/// On every quantity.
pub fn costs(quantities: usize, r: &mut Source) -> Vec<Cost> {
    let mut out = vec![];
    for quantity in (0..quantities).map(QuantityId::new) {
        for when in [When::Running, When::End, When::Knot(7)] {
            out.push(Cost::square(
                quantity,
                0.3 * r.unit(),
                1.0 + 0.5 * r.unit(),
                when,
            ));
        }
    }
    out
}
