//! Durations, free starts, sums and formulas: the derivatives of the whole, against differences.

use super::*;
use crate::control::{
    ClosedLoop, Constraint, Cost, Duration, Extended, Form, Formula, Objective, Point as Place,
    Quadrature, Relation, Scenarios, Schedule, ScheduleKnot, StartNumber, Sum, When, times,
};
use crate::dynamics::{Observe, Parameter, QuantityId, Step};
use crate::integrator::{Maximal, Mechanical, Options};
use crate::mechanism::samples::{Source, four_bar, tree};
use crate::mechanism::{JointKind, MechanismBuilder, Quantity, Reaction};
use crate::spatial::Vec3;
use nalgebra::DMatrix;

const STEPS: usize = 7;

fn parameter(name: &str, value: f64) -> Parameter {
    Parameter {
        name: name.into(),
        unit: "1".into(),
        value,
    }
}

/// Quantities: coordinate, rate and interval rate of the first joint, a control, its constraint force, energy.
fn system(m: &MechanismBuilder, q: &[f64], has_force: bool) -> Maximal {
    let options = Options {
        tolerance: 1e-13,
        ..Options::default()
    };
    let s = Maximal::new(m.build().expect("valid"), q, options).expect("closes");
    let (joint, direction) = (0, 0);
    let last = match has_force {
        true => Quantity::Constraint {
            joint: 0,
            kind: Reaction::Force,
            axis: Vec3::x(),
        },
        false => Quantity::KineticEnergy,
    };
    s.with_outputs(vec![
        Quantity::Coordinate { joint, direction },
        Quantity::Rate { joint, direction },
        Quantity::IntervalRate { joint, direction },
        Quantity::Control(0),
        Quantity::Energy,
        last,
    ])
}

/// Two durations, a start that is decided, a rate that is a parameter of both, sums (one of what is seen of a step's unknowns,
/// one trapezoidal, one of another), formulas of everything.
fn extended(s: Maximal) -> Extended<Maximal> {
    let id = QuantityId::new;
    let mut e = Extended::new(s, STEPS);
    e.add_parameter(parameter("first duration", 0.12));
    e.add_parameter(parameter("second duration", 0.21));
    e.add_start(StartNumber::Coordinate(0), parameter("initial angle", 0.4));
    e.add_start(StartNumber::Rate(0), parameter("initial rate", 0.7));
    // what a duration is, a rate may be, too
    e.tie_start(StartNumber::Rate(1), e.inner_parameters());
    let name = |n: &str| (n.to_owned(), "1".to_owned());
    let first = e.inner_parameters();
    let work = e.add_sum(Sum {
        name: name("work"),
        terms: vec![
            Cost::square(id(3), 0.1, 2.0, When::Running),
            Cost::square(id(1), 0.2, 1.5, When::Range(1, 4)),
            Cost {
                form: Form::Huber(0.3),
                ..Cost::square(id(5), 0.0, 0.01, When::Running)
            },
        ],
    });
    let half = vec![
        Cost::square(id(1), 0.1, 0.7, When::Running),
        Cost::linear(id(0), 0.4, When::Range(2, 4)),
        Cost::square(id(5), 0.0, 0.01, When::Range(0, STEPS - 2)),
    ];
    let action = e.add_sum(Sum {
        name: name("action"),
        terms: half
            .iter()
            .map(|t| t.summed(Quadrature::Trapezoidal))
            .collect(),
    });
    let (above, below) = (e.sum(work), e.sum(action));
    let both = e.add_sum(Sum {
        name: name("sum of sums"),
        terms: vec![
            Cost::square(above, 0.1, 0.9, When::Running).summed(Quadrature::Trapezoidal),
            Cost::linear(below, 0.3, When::Range(1, 5)).summed(Quadrature::Trapezoidal),
        ],
    });
    let latch = e.add_sum(Sum {
        name: name("angle at knot 2"),
        terms: vec![Cost::linear(id(0), 1.0, When::Knot(2))],
    });
    let (action, both) = (e.sum(action), e.sum(both));
    let (work, latch) = (e.sum(work), e.sum(latch));
    let (t1, t2) = (e.parameter(first), e.parameter(first + 1));
    let turn = e.add_formula(Formula {
        name: name("turn"),
        terms: vec![times(1.0, id(0)), times(-1.0, latch)],
        constant: 0.05,
        ..Formula::default()
    });
    let turn = e.formula(turn);
    let action = e.add_formula(Formula {
        name: name("action up to the knot"),
        terms: vec![times(1.0, action)],
        pending: half,
        ..Formula::default()
    });
    let action = e.formula(action);
    e.add_formula(Formula {
        name: name("mean work by turn"),
        terms: vec![
            times(1.0, work),
            times(0.6, both),
            Cost::square(turn, 0.1, 0.3, When::End),
        ],
        constant: 2.0,
        pending: vec![Cost::square(action, 0.2, 0.5, When::Running)],
        over: vec![times(1.0, t1), times(1.0, t2), times(0.2, turn)],
    });
    e
}

/// All of it wanted, of `count` systems beside each other.
fn problem<D: Observe>(d: &D, q: Vec<f64>, place: impl Fn(usize) -> Vec<QuantityId>) -> Problem {
    let mut source = Source::new(5);
    let mut p = Problem::new(d, vec![0.03, 0.05, 0.04, 0.03, 0.07, 0.06, 0.05], q);
    let np = p.parameters.len();
    p.rates = source.vector(p.coordinates.len(), 0.8);
    let named: Vec<String> = d.parameters().into_iter().map(|p| p.name).collect();
    let of = |name: &str| named.iter().position(|n| n == name).expect("there");
    p.durations = vec![
        Duration {
            first: 0,
            end: 3,
            parameter: of("first duration"),
        },
        Duration {
            first: 4,
            end: 7,
            parameter: of("second duration"),
        },
    ];
    for i in np - 4..np {
        p.parameter_bounds[i] = (0.05, 2.0);
    }
    p.profiles = vec![source.vector(STEPS + 1, 0.3)];
    let (angle, rate, past, force) = (place(0), place(1), place(2), place(5));
    let last = place(usize::MAX);
    for (i, a) in angle.iter().enumerate() {
        p.costs.extend([
            Cost {
                profile: Some(0),
                ..Cost::square(*a, 0.3, 2.0, When::Running)
            },
            Cost::square(rate[i], 0.0, 0.2, When::Running),
            Cost::square(past[i], 0.1, 0.1, When::End),
            Cost {
                form: Form::Huber(0.1),
                ..Cost::square(force[i], 0.2, 0.1, When::Range(0, STEPS - 2))
            },
            Cost::linear(last[i], 0.4, When::End),
        ]);
        p.constraints.push(Constraint {
            profile: Some(0),
            ..Constraint::new(past[i], Relation::Less, -2.0, When::Range(2, STEPS))
        });
        p.constraints
            .push(Constraint::new(last[i], Relation::Equal, 1.0, When::End));
    }
    for c in &mut p.costs {
        c.quadrature = Quadrature::Trapezoidal;
    }
    p.guess = source.vector(p.guess.len(), 1.0);
    p
}

/// Gradients of the augmented Lagrangian, by the stage-wise model, and of the objective, by the sweep.
fn check<D: Observe>(d: &D, p: &Problem) {
    let mut f = Augmented::new(d, p, 3.0);
    let v = f.guess();
    f.roll(&v);
    assert!(f.failed.is_none(), "{:?}", f.failed);
    let g = f.gradient().expect("linearized");
    let largest = g.amax();
    for i in 0..v.len() {
        let mut by = |e: f64| {
            let mut moved = v.clone();
            moved[i] += e;
            f.roll(&moved);
            f.value()
        };
        let difference = |e: f64, by: &mut dyn FnMut(f64) -> f64| (by(e) - by(-e)) / (2.0 * e);
        let (coarse, fine) = (difference(2e-4, &mut by), difference(1e-4, &mut by));
        let best = (4.0 * fine - coarse) / 3.0;
        assert!(
            (g[i] - best).abs() < 1e-7 * largest,
            "decision {i} of {}: {} {best}, largest {largest}",
            v.len(),
            g[i]
        );
    }
    let objective = Objective::new(d, p).expect("fits");
    let (mut w, at) = (objective.work(), objective.guess());
    let g = objective.value_and_gradient(&at, &mut w).expect("swept");
    let largest = g.parameters.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    for i in p.free_parameters() {
        let mut by = |e: f64| {
            let mut moved: Place = at.clone();
            moved.parameters[i] += e;
            objective.value(&moved, &mut w).expect("simulated")
        };
        let mut difference = |e: f64| (by(e) - by(-e)) / (2.0 * e);
        let best = (4.0 * difference(1e-4) - difference(2e-4)) / 3.0;
        let error = (g.parameters[i] - best).abs();
        assert!(
            error < 1e-7 * largest,
            "parameter {i}: {} {best}",
            g.parameters[i]
        );
    }
}

#[test]
fn the_language_has_its_derivatives() {
    use JointKind::{Cylindrical, Revolute, Spherical};
    let kinds = [Revolute, Cylindrical, Spherical];
    let mechanisms = [
        (tree(3, &kinds), vec![0.4, 0.2, -0.3, 0.3, 0.1, 0.5], true),
        (four_bar(), vec![0.4, 1.1, 2.0], false),
    ];
    for (m, q, has_force) in mechanisms {
        let s = system(&m, &q, has_force);
        let q = s.tree_coordinates(
            &s.start(&q, &vec![0.0; q.len()], &vec![true; q.len()])
                .unwrap_or_else(|_| {
                    // a loop: what follows is found
                    let mut closed = q.clone();
                    let mut held = vec![false; q.len()];
                    held[0] = true;
                    s.mechanism().close(&mut closed, &held).expect("closes");
                    s.start(&closed, &vec![0.0; q.len()], &vec![true; q.len()])
                        .expect("closed")
                }),
        );
        let one = extended(s);
        let names = one.quantities().len();
        let p = problem(&one, q.clone(), |i| vec![QuantityId::new(i.min(names - 1))]);
        check(&one, &p);
        // two of them, one heavier
        let other = extended(system(&m, &q, has_force));
        let both = Scenarios::new(
            vec![("a".into(), one, q.len()), ("b".into(), other, q.len())],
            true,
        )
        .expect("fit");
        let twice = [q.clone(), q.iter().map(|q| q + 0.0).collect()].concat();
        let p = problem(&both, twice, |i| {
            let own = QuantityId::new(i.min(names - 1));
            vec![both.quantity_of(0, own), both.quantity_of(1, own)]
        });
        check(&both, &p);
        // with controls that are given: of parameters alone, carried forward
        let controls = Source::new(5).vector(both.dims().nu, 1.0);
        let given = ScheduleKnot {
            gains: DMatrix::zeros(controls.len(), 0),
            seen: vec![],
            controls,
        };
        let played = Schedule::new(vec![], vec![given], false).expect("fits");
        let alone = ClosedLoop::new(&both, played);
        let twice = [q.clone(), q.clone()].concat();
        let p = problem(&alone, twice, |i| {
            let own = QuantityId::new(i.min(names - 1));
            vec![both.quantity_of(0, own), both.quantity_of(1, own)]
        });
        assert!(p.guess.is_empty());
        check(&alone, &p);
    }
}
