//! Gradients of functions of whole rollouts: against differences, and forward against reverse.

use crate::common::*;
use crate::cranks::cranks_at;
use least_action::control::{Constraint, Cost, Problem, Relation, When};
use least_action::dynamics::{Charts, Differentiable, Frame, Knot, Observe, QuantityId, Step};
use least_action::integrator::{Maximal, Mechanical};
use least_action::mechanism::MechanismBuilder;
use least_action::mechanism::{About, Quantity, Reaction};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use least_action::spatial::{Quat, Vec3};

const STEPS: usize = 100;

/// A rollout and a function of it with random weights: costs along the way and at the end, and constraints.
struct Case {
    name: &'static str,
    system: Maximal,
    x0: Vec<f64>,
    frame: Frame,
    problem: Problem,
    multipliers: Vec<f64>,
    u: Vec<f64>,
}

const START: Knot = Knot {
    k: 0,
    t: 0.0,
    h_prev: 0.0,
    h: 0.01,
};

impl Case {
    fn new(
        name: &'static str,
        builder: &MechanismBuilder,
        q: &[f64],
        rates: &[f64],
        h: f64,
    ) -> Self {
        let s = system(builder, q);
        let mut outputs = vec![];
        for (joint, direction) in s.mechanism().coordinates() {
            outputs.push(Quantity::Coordinate { joint, direction });
            outputs.push(Quantity::Rate { joint, direction });
        }
        for body in 0..s.mechanism().bodies.len() {
            let (point, axis) = (Vec3::new(0.1, -0.3, 0.2), Vec3::new(0.6, 0.0, 0.8));
            outputs.push(Quantity::Position { body, point, axis });
            outputs.push(Quantity::Velocity { body, point, axis });
        }
        outputs.extend((0..s.mechanism().actuators.len()).map(Quantity::Control));
        let (axis, target) = (Vec3::new(0.0, 0.6, 0.8), Quat::identity());
        for body in 0..s.mechanism().bodies.len() {
            let in_body = body % 2 == 0;
            outputs.push(Quantity::Orientation { body, target, axis });
            outputs.push(Quantity::AngularVelocity {
                body,
                axis,
                in_body,
            });
        }
        for about in [About::Origin, About::CenterOfMass] {
            outputs.push(Quantity::AngularMomentum { axis, about });
        }
        outputs.extend([
            Quantity::CenterOfMass(axis),
            Quantity::CenterOfMassVelocity(axis),
            Quantity::LinearMomentum(axis),
            Quantity::KineticEnergy,
            Quantity::Energy,
        ]);
        for joint in (0..s.mechanism().joints.len()).filter(|j| s.has_unique_forces(*j)) {
            for kind in [Reaction::Force, Reaction::Torque] {
                outputs.push(Quantity::Constraint { joint, kind, axis });
            }
        }
        let system = s.with_outputs(outputs);
        let x0 = system
            .start(q, rates, &vec![false; q.len()])
            .expect("closes");
        let mut r = Source::new(4);
        let quantities = (0..system.outputs().len()).map(QuantityId::new);
        let mut costs = vec![];
        for when in [When::Running, When::End] {
            // forces have no value at the end
            let valued = |q: &QuantityId| when == When::Running || !system.needs_unknowns(*q);
            for quantity in quantities.clone().filter(valued) {
                costs.push(Cost::square(quantity, 0.3 * r.unit(), 1.0 + r.unit(), when));
            }
        }
        let constraints: Vec<Constraint> = quantities
            .step_by(3)
            .filter(|q| !system.needs_unknowns(*q))
            .map(|quantity| Constraint {
                quantity,
                relation: Relation::Equal,
                value: r.unit(),
                profile: None,
                when: When::End,
            })
            .collect();
        let dims = system.dims();
        // not even
        let intervals = (0..STEPS)
            .map(|k| h * (1.0 + 0.3 * (k as f64).sin()))
            .collect();
        let problem = Problem {
            costs,
            constraints,
            ..Problem::new(&system, intervals, q.to_vec())
        };
        let p = &problem.parameters;
        let frame = system
            .frame(&START, &x0, p, None, &mut system.work())
            .expect("a frame");
        Self {
            name,
            multipliers: r.vector(problem.constraints.len(), 1.0),
            u: r.vector(STEPS * dims.nu, 1.5),
            system,
            x0,
            frame,
            problem,
        }
    }

    /// The trajectory with controls, start (joint chart) and intervals changed.
    fn rolled(&self, du: &[f64], d0: &[f64], dh: &[f64]) -> Trajectory {
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f64>>();
        let mut x0 = self.x0.clone();
        let (p, mut w) = (&self.problem.parameters, self.system.work());
        self.system
            .retract(&START, &self.x0, p, &self.frame, d0, &mut w, &mut x0)
            .expect("near");
        let mut t = Trajectory::new(&self.system, sum(&self.problem.intervals, dh), &x0);
        t.u = sum(&self.u, du);
        t.roll(
            &self.system,
            &mut self.system.work(),
            &mut RolloutStats::default(),
        )
        .expect("solved");
        t
    }

    fn value(&self, du: &[f64], d0: &[f64], dh: &[f64]) -> f64 {
        let t = self.rolled(du, d0, dh);
        let mut e = self.problem.evaluation();
        self.problem
            .evaluate(&self.system, &t, &mut self.system.work(), &mut e)
            .expect("observed");
        e.objective
            + e.constraints
                .iter()
                .zip(&self.multipliers)
                .map(|(c, m)| c * m)
                .sum::<f64>()
    }

    fn zeros(&self) -> [Vec<f64>; 3] {
        [
            vec![0.0; self.u.len()],
            vec![0.0; self.system.dims().ndx],
            vec![0.0; STEPS],
        ]
    }

    /// The gradient by controls, start and intervals, from one reverse sweep.
    fn gradient(&self, t: &Trajectory) -> [Vec<f64>; 3] {
        let (mut w, mut e) = (self.system.work(), self.problem.evaluation());
        self.problem
            .evaluate(&self.system, t, &mut w, &mut e)
            .expect("observed");
        let mut sweep = Sweep::new(&self.system, t);
        let local = |at: &Knot, w: &mut _, out: &mut _, y: &mut [f64]| {
            self.problem
                .pull(&self.system, t, &self.multipliers, &mut e, at, w, out, y)
        };
        sweep.run(&self.system, t, &mut w, local).expect("regular");
        assert!(
            sweep.certificate.residual < 1e-11,
            "{}: {:e}",
            self.name,
            sweep.certificate.residual
        );
        let start = self
            .frame
            .embed()
            .tr_mul(&nalgebra::DVector::from_vec(sweep.x0));
        [sweep.u, start.as_slice().to_vec(), sweep.intervals]
    }
}

fn cases() -> Vec<Case> {
    let (q, turns) = cranks_at(1, 1.45);
    let rates: Vec<f64> = turns.iter().map(|t| -0.7 * t).collect();
    let tree = damped_tree();
    let n = tree.build().expect("valid").tree_ids().len();
    let mut s = Source::new(8);
    let (tree_q, tree_rates) = (s.vector(n, 0.4), s.vector(n, 0.6));
    let mut bar = four_bar().actuator("motor", least_action::mechanism::ActuatorSpec::joint("a"));
    bar.joints["c"] = bar.joints["c"].clone().damping(0.1);
    vec![
        Case::new("cart-pole", &cart_pole(), &[0.1, 2.0], &[0.3, -0.5], 0.02),
        Case::new("damped tree", &tree, &tree_q, &tree_rates, 0.01),
        Case::new("parallelogram near flat", &driven_loop(), &q, &rates, 0.01),
        Case::new("four-bar", &bar, &[0.3, 0.3, 1.2], &[1.0, 0.0, 0.0], 0.01),
    ]
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Differences of fourth order along several directions of each input, every direction of the start.
#[test]
fn sweep_matches_differences() {
    for case in cases() {
        let t = case.rolled(&case.zeros()[0], &case.zeros()[1], &case.zeros()[2]);
        let gradient = case.gradient(&t);
        let mut r = Source::new(17);
        for (input, (what, step)) in [("controls", 1e-3), ("start", 2e-4), ("intervals", 1e-5)]
            .into_iter()
            .enumerate()
        {
            let size = gradient[input].len();
            let directions: Vec<Vec<f64>> = if what == "start" {
                (0..size)
                    .map(|i| (0..size).map(|k| f64::from(u8::from(i == k))).collect())
                    .collect()
            } else {
                // some single numbers and some mixtures
                let single = [0, size / 2, size - 1]
                    .map(|i| (0..size).map(|k| f64::from(u8::from(i == k))).collect());
                single
                    .into_iter()
                    .chain((0..4).map(|_| r.vector(size, 1.0)))
                    .collect()
            };
            let mut worst = 0.0_f64;
            for d in &directions {
                let along = |s: f64| {
                    let mut change = case.zeros();
                    change[input]
                        .iter_mut()
                        .zip(d)
                        .for_each(|(c, d)| *c = s * step * d);
                    case.value(&change[0], &change[1], &change[2])
                };
                let numeric =
                    (8.0 * (along(1.0) - along(-1.0)) - (along(2.0) - along(-2.0))) / (12.0 * step);
                let exact = dot(&gradient[input], d);
                worst = worst.max((numeric - exact).abs() / exact.abs());
            }
            println!(
                "{} by {what}: {worst:.2e} of {}",
                case.name,
                directions.len()
            );
            assert!(worst < 1e-6, "{} by {what}: {worst:e}", case.name);
        }
    }
}

/// One directional derivative, pushed forward through the steps and pulled back by the sweep.
#[test]
fn forward_equals_reverse() {
    for case in cases() {
        let s = &case.system;
        let dims = s.dims();
        let t = case.rolled(&case.zeros()[0], &case.zeros()[1], &case.zeros()[2]);
        let gradient = case.gradient(&t);
        let mut r = Source::new(29);
        let (du, d0) = (r.vector(case.u.len(), 1.0), r.vector(dims.ndx, 1.0));
        let dh = r.vector(STEPS, 0.01);
        let reverse = dot(&gradient[0], &du) + dot(&gradient[1], &d0) + dot(&gradient[2], &dh);
        let (mut w, mut e) = (s.work(), case.problem.evaluation());
        case.problem
            .evaluate(s, &t, &mut w, &mut e)
            .expect("observed");
        let (mut d, mut out, mut local) = (dims.inputs(), dims.outputs(), dims.inputs());
        d.x = (case.frame.embed() * nalgebra::DVector::from_column_slice(&d0))
            .as_slice()
            .to_vec();
        let mut forward = 0.0;
        for k in 0..=STEPS {
            let at = t.knot(k);
            local.clear();
            let y = &mut vec![0.0; if k < STEPS { dims.ny } else { 0 }];
            case.problem
                .pull(s, &t, &case.multipliers, &mut e, &at, &mut w, &mut local, y)
                .expect("observed");
            d.h_prev = if k > 0 { dh[k - 1] } else { 0.0 };
            d.h = dh.get(k).copied().unwrap_or(0.0);
            // at the end the control of the last step acts on
            let own = k.min(STEPS - 1) * dims.nu;
            d.u.copy_from_slice(&du[own..own + dims.nu]);
            forward +=
                dot(&local.x, &d.x) + dot(&local.u, &d.u) + local.h * d.h + local.h_prev * d.h_prev;
            if k < STEPS {
                s.linearize(&t.solved(&at), &mut w)
                    .expect("regular")
                    .push(&d, &mut out);
                forward += dot(y, &out.y);
                d.x.copy_from_slice(&out.x);
            }
        }
        let error = (forward - reverse).abs() / reverse.abs();
        println!("{}: {forward:.12e} {reverse:.12e} {error:.1e}", case.name);
        assert!(error < 1e-10, "{}: {error:e}", case.name);
    }
}

/// The derivative of the start, taken apart: coordinates and rates of a loop's free motion only.
#[test]
fn joint_chart_has_the_mechanism_s_freedom() {
    for case in cases() {
        let dof = case.system.mobility().degrees_of_freedom;
        assert_eq!(case.frame.embed().ncols(), 2 * dof);
        let identity = case.frame.project() * case.frame.embed();
        let off = (identity - nalgebra::DMatrix::identity(2 * dof, 2 * dof)).amax();
        assert!(off < 1e-10, "{}: {off:e}", case.name);
    }
}
