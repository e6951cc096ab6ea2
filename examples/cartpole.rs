//! The cart-pole swing-up, described and solved in Rust: a mechanism, a problem, a solver.
//!
//! `cargo run --release --example cartpole`

use least_action::control::{Constraint, Cost, Problem, Relation, When};
use least_action::dynamics::Observe;
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::Quantity;
use least_action::mechanism::{
    ActuatorSpec, BodySpec, JointKind, JointSpec, MechanismBuilder, Shape,
};
use least_action::optimize::{Method, Solve};
use std::f64::consts::PI;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mechanism = MechanismBuilder::new()
        .body(
            "cart",
            BodySpec::new(1.0).shape(Shape::Box([0.4, 0.2, 0.1])),
        )
        .body("pole", BodySpec::new(0.2).inertia([1e-6; 3]))
        .joint(
            "rail",
            JointSpec::new(JointKind::Prismatic, "cart").axis([1.0, 0.0, 0.0]),
        )
        .joint(
            "hinge",
            JointSpec::new(JointKind::Revolute, "pole")
                .parent("cart")
                .axis([0.0, 1.0, 0.0])
                .anchors([0.0; 3], [0.0, 0.0, 0.5]),
        )
        .actuator("push", ActuatorSpec::joint("rail").bounds(-3.0, 3.0))
        .build()?;

    let (rail, hinge) = (0, 1);
    let coordinate = |joint| Quantity::Coordinate {
        joint,
        direction: 0,
    };
    let rate = |joint| Quantity::Rate {
        joint,
        direction: 0,
    };
    let system = Maximal::new(mechanism, &[0.0, 0.0], Options::default())?.with_outputs(vec![
        coordinate(rail),
        coordinate(hinge),
        rate(rail),
        rate(hinge),
        Quantity::Control(0),
    ]);

    let quantity = |name: &str| system.quantity(name).ok_or(format!("no quantity `{name}`"));
    let mut costs = vec![Cost::square(quantity("push")?, 0.0, 0.1, When::Running)];
    let mut constraints = vec![];
    for (name, value) in [
        ("rail", 0.0),
        ("hinge", PI),
        ("rail rate", 0.0),
        ("hinge rate", 0.0),
    ] {
        let quantity = quantity(name)?;
        costs.push(Cost::square(quantity, value, 0.01, When::Running));
        costs.push(Cost::square(quantity, value, 100.0, When::End));
        constraints.push(Constraint {
            quantity,
            relation: Relation::Equal,
            value,
            profile: None,
            when: When::End,
        });
    }
    let problem = Problem {
        costs,
        constraints,
        bounds: vec![(-3.0, 3.0)],
        guess: vec![0.01; 100],
        ..Problem::new(&system, vec![0.05; 100], vec![0.0, 0.0])
    };
    let start = std::time::Instant::now();
    let solution = Solve::new(&system, &problem)
        .with_method(Method::Shooting)
        .run()?;
    println!(
        "{} {}: objective {:.6}, violation {:.1e}, optimality {:.1e}, {} iterations, {} steps, {} gradients, {:.2} s",
        solution.status.name(),
        solution.reason,
        solution.objective,
        solution.violation,
        solution.optimality,
        solution.iterations,
        solution.step_evaluations,
        solution.gradient_evaluations,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
