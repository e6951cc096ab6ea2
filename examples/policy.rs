//! Closing the loop around a pendulum: proportional-derivative control along a reference, the feedback that an optimizer
//! found, and a law of one's own. Each is again a system, for rollouts and for optimizers.
//!
//! `cargo run --release --example policy`

use least_action::control::{
    ClosedLoop, Constraint, Cost, Law, Loop, Pd, PolicyRows, Problem, Relation, When,
};
use least_action::dynamics::{Knot, Observe, Parameter, QuantityId, Step, StepError};
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::Quantity;
use least_action::mechanism::{ActuatorSpec, BodySpec, JointKind, JointSpec, MechanismBuilder};
use least_action::optimize;
use least_action::rollout::{RolloutStats, Trajectory};
use std::f64::consts::PI;

/// The quantities of the pendulum, by their places in its list. A policy sees the rate over the interval just past.
const ANGLE: QuantityId = QuantityId::new(0);
const RATE: QuantityId = QuantityId::new(1);
const TORQUE: QuantityId = QuantityId::new(2);
const STEPS: usize = 100;

/// 1 kg at 0.5 m, hanging at angle 0, with a motor.
fn pendulum() -> Result<Maximal, Box<dyn std::error::Error>> {
    let hinge = JointSpec::new(JointKind::Revolute, "bob").axis([0.0, 1.0, 0.0]);
    let mechanism = MechanismBuilder::new()
        .body("bob", BodySpec::new(1.0).inertia([1e-3; 3]))
        .joint("hinge", hinge.anchors([0.0; 3], [0.0, 0.0, 0.5]))
        .actuator("motor", ActuatorSpec::joint("hinge"))
        .build()?;
    let (joint, direction) = (0, 0);
    let quantities = vec![
        Quantity::Coordinate { joint, direction },
        Quantity::IntervalRate { joint, direction },
        Quantity::Control(0),
    ];
    Ok(Maximal::new(mechanism, &[0.0], Options::default())?.with_outputs(quantities))
}

/// From rest at an angle; prints where it ends.
fn simulate<D: Observe>(what: &str, system: &D, angle: f64) -> Result<(), StepError> {
    let problem = Problem::new(system, vec![0.03; STEPS], vec![angle]);
    let mut w = system.work();
    let x0 = problem.start(system, &problem.parameters, &mut w)?;
    let mut t = Trajectory::new(system, problem.intervals, &x0);
    t.roll(system, &mut w, &mut RolloutStats::default())?;
    let (end, mut seen) = (t.knot(STEPS), [0.0; 2]);
    system.observe(&t.knot_point(&end), &[ANGLE, RATE], &mut w, &mut seen)?;
    println!(
        "{what}: {:+.4} rad, {:+.4} rad/s after {:.1} s",
        seen[0], seen[1], end.t
    );
    Ok(())
}

/// Swings up with little torque.
fn swing_up(system: &Maximal) -> Problem {
    let mut p = Problem::new(system, vec![0.03; STEPS], vec![0.0]);
    p.bounds = vec![(-3.0, 3.0)];
    p.guess.fill(0.1);
    p.costs.push(Cost::square(TORQUE, 0.0, 1e-2, When::Running));
    for (quantity, value) in [(ANGLE, PI), (RATE, 0.0)] {
        p.constraints.push(Constraint {
            quantity,
            relation: Relation::Equal,
            value,
            profile: None,
            when: When::End,
        });
    }
    p
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // u = kp (sin t - q) + kd (cos t - rate), its gains parameters of the closed loop
    let system = pendulum()?;
    let tracking = Loop {
        control: 0,
        coordinate: ANGLE,
        rate: RATE,
        gains: (40.0, 4.0),
        reference: Box::new(f64::sin),
        rate_reference: Box::new(f64::cos),
    };
    let policy = Pd::new(&system, vec![tracking], false)?;
    let closed = ClosedLoop::new(system, policy);
    for p in closed.parameters() {
        println!("{} = {} {}", p.name, p.value, p.unit);
    }
    simulate("tracking sin t", &closed, 0.0)?;

    // u = u_k + K_k d, from a start beside that of the plan
    let system = closed.dynamics;
    let problem = swing_up(&system);
    let plan = optimize::solve(&system, &problem)?;
    let feedback = plan.feedback().ok_or("no plan was found")?;
    let closed = ClosedLoop::new(system, feedback);
    simulate("swing-up from 0.05 rad", &closed, 0.05)?;

    // u = -g tanh(rate) with its derivatives: friction that saturates, its size a parameter
    let friction = |_: &Knot,
                    seen: &[f64],
                    _: &[f64],
                    own: &[f64],
                    u: &mut [f64],
                    by: Option<&mut PolicyRows>| {
        let t = seen[0].tanh();
        u[0] = -own[0] * t;
        if let Some(by) = by {
            by.seen[(0, 0)] = -own[0] * (1.0 - t * t);
            by.own[(0, 0)] = -t;
        }
        Ok(())
    };
    let law = Law {
        sees: vec![RATE],
        open: 0,
        parameters: vec![Parameter {
            name: "friction".into(),
            unit: "N m".into(),
            value: 0.8,
        }],
        controls: 1,
        law: friction,
    };
    simulate(
        "friction from 1 rad",
        &ClosedLoop::new(closed.dynamics, law),
        1.0,
    )?;
    Ok(())
}
