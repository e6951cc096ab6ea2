//! Differential dynamic programming on users' dynamics: linear-quadratic problems against dense solutions, bounds,
//! parameters, constraints, infeasible guesses, published swing-ups.

use crate::planar;

use least_action::control::{Constraint, Cost, Problem, Relation, When};
use least_action::dynamics::{Explicit, Observe, Parameter, QuantityId, Real, Smooth, Start, Step};
use least_action::optimize::ddp::Options;
use least_action::optimize::{Solution, Solve, Status};
use least_action::rollout::{RolloutStats, Sweep, Trajectory};
use nalgebra::{DMatrix, DVector};
use rand::{RngExt, SeedableRng};

fn solve<D: Observe>(d: &D, p: &Problem, options: Options) -> Solution {
    Solve::new(d, p)
        .with_options(options)
        .run()
        .expect("no argmin error")
}

/// Solves, and holds the solution against a simulation of its own.
fn solved<D: Observe>(d: &D, p: &Problem, options: Options) -> Solution {
    let s = solve(d, p, options);
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
    let mut w = d.work();
    let x0 = p.start(d, &s.trajectory.p, &mut w).expect("a start");
    let mut t = Trajectory::new(d, p.intervals.clone(), &x0);
    t.u.copy_from_slice(&s.trajectory.u);
    t.p.copy_from_slice(&s.trajectory.p);
    t.roll(d, &mut w, &mut RolloutStats::default())
        .expect("simulated");
    let mut e = p.evaluation();
    p.evaluate(d, &t, &mut w, &mut e).expect("evaluated");
    assert!((e.objective - s.objective).abs() <= 1e-9 * e.objective.abs().max(1e-9));
    let violation = p.violation(&e, &t.u, &t.p);
    assert!(violation <= options.tolerance, "{violation}");
    let bounds = t.u.iter().zip(p.bounds.iter().cycle());
    assert!(bounds.clone().all(|(u, (l, h))| (*l..=*h).contains(u)));
    s
}

/// `x+ = A x + B u + P p`, `x_0 = q + S p`, outputs `C (x, u, p)`.
struct Linear {
    a: DMatrix<f64>,
    b: DMatrix<f64>,
    p: DMatrix<f64>,
    s: DMatrix<f64>,
    c: DMatrix<f64>,
}

fn times<T: Real>(m: &DMatrix<f64>, v: &[T], out: &mut [T]) {
    for (i, o) in out.iter_mut().enumerate() {
        for (j, v) in v.iter().enumerate() {
            *o += *v * m[(i, j)];
        }
    }
}

impl Linear {
    fn random(nx: usize, nu: usize, np: usize, outputs: usize, seed: u64) -> Self {
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut m = |r, c| DMatrix::from_fn(r, c, |_, _| rng.random_range(-1.0..1.0));
        Self {
            a: m(nx, nx),
            b: m(nx, nu),
            p: m(nx, np),
            s: m(nx, np),
            c: m(outputs, nx + nu + np),
        }
    }
}

impl Smooth for Linear {
    fn states(&self) -> usize {
        self.a.nrows()
    }

    fn controls(&self) -> usize {
        self.b.ncols()
    }

    fn parameters(&self) -> Vec<Parameter> {
        let named = |i| Parameter {
            name: format!("p{i}"),
            unit: "1".into(),
            value: 0.3,
        };
        (0..self.p.ncols()).map(named).collect()
    }

    fn step<T: Real>(&self, _t: f64, _h: T, x: &[T], u: &[T], p: &[T], next: &mut [T]) {
        next.fill(T::from(0.0));
        times(&self.a, x, next);
        times(&self.b, u, next);
        times(&self.p, p, next);
    }

    fn initial<T: Real>(&self, q: &[T], _rates: &[T], p: &[T], x: &mut [T]) {
        for (x, q) in x.iter_mut().zip(q) {
            *x = *q;
        }
        times(&self.s, p, x);
    }

    fn outputs(&self) -> Vec<(String, String)> {
        let named = |i| (format!("o{i}"), "1".into());
        (0..self.c.nrows()).map(named).collect()
    }

    fn observe<T: Real>(&self, _t: f64, x: &[T], u: &[T], p: &[T], out: &mut [T]) {
        let all: Vec<T> = x.iter().chain(u).chain(p).copied().collect();
        out.fill(T::from(0.0));
        times(&self.c, &all, out);
    }
}

/// A linear-quadratic problem with costs on states, controls, and outputs that mix all, along the way and at the end.
fn linear_problem(nx: usize, nu: usize, np: usize, steps: usize) -> (Explicit<Linear>, Problem) {
    let d = Explicit::new(Linear::random(nx, nu, np, 3, 7));
    let start = (0..nx).map(|i| 1.0 - 0.4 * i as f64).collect();
    let mut p = Problem::new(&d, vec![0.5; steps], start);
    p.rates.clear();
    for i in 0..nx {
        let state = QuantityId::new(i);
        p.costs.push(Cost::square(state, 0.1, 0.4, When::Running));
        p.costs.push(Cost::square(state, -0.2, 3.0, When::End));
    }
    for i in 0..nu {
        p.costs.push(Cost::square(
            d.control_quantity(i),
            0.05,
            0.3,
            When::Running,
        ));
    }
    for i in 0..3 {
        let output = d.output_quantity(i);
        p.costs.push(Cost::square(output, 0.5, 0.7, When::Running));
        p.costs.push(Cost::square(output, -0.5, 0.9, When::End));
        p.costs.push(Cost::square(output, 0.3, 0.2, When::Knot(2)));
    }
    p.parameter_bounds = vec![(f64::NEG_INFINITY, f64::INFINITY); np];
    for (i, u) in p.guess.iter_mut().enumerate() {
        *u = (i as f64).sin();
    }
    (d, p)
}

/// Controls and parameters of a linear-quadratic problem from its dense optimality conditions, the states and the
/// multipliers of the dynamics among the unknowns.
fn dense_solution(d: &Explicit<Linear>, p: &Problem) -> (Vec<f64>, Vec<f64>) {
    let (dims, n, system) = (d.dims(), p.intervals.len(), d.system());
    let (nx, nu, np) = (dims.nx, dims.nu, dims.np);
    let state = |k: usize| k * nx;
    let control = |k: usize| (n + 1) * nx + k.min(n - 1) * nu;
    let parameter = (n + 1) * nx + n * nu;
    let size = parameter + np;
    let rows = (n + 1) * nx;
    let mut kkt = DMatrix::zeros(size + rows, size + rows);
    let mut rhs = DVector::zeros(size + rows);
    for k in 0..=n {
        let h = p.intervals.get(k).copied().unwrap_or(0.0);
        for c in p.costs.iter().filter(|c| c.when.holds(k, n)) {
            let mut row = DVector::zeros(size);
            let q = c.quantity.index();
            if q < nx {
                row[state(k) + q] = 1.0;
            } else if q < nx + nu {
                row[control(k) + q - nx] = 1.0;
            } else {
                let of = system.c.row(q - nx - nu);
                for (j, v) in of.iter().enumerate() {
                    let place = match j {
                        j if j < nx => state(k) + j,
                        j if j < nx + nu => control(k) + j - nx,
                        j => parameter + j - nx - nu,
                    };
                    row[place] = *v;
                }
            }
            let weight = if c.when.is_along() {
                h * c.weight
            } else {
                c.weight
            };
            let mut block = kkt.view_mut((0, 0), (size, size));
            block += &row * row.transpose() * weight;
            let mut part = rhs.rows_mut(0, size);
            part += row * (weight * c.target);
        }
        // x_0 - S p = q; x_(k+1) - A x_k - B u_k - P p = 0
        let mut constraint = DMatrix::zeros(nx, size);
        constraint
            .view_mut((0, state(k)), (nx, nx))
            .fill_with_identity();
        let mut set = |at: usize, m: &DMatrix<f64>| {
            constraint.view_mut((0, at), m.shape()).copy_from(&-m);
        };
        if k == 0 {
            set(parameter, &system.s);
            rhs.rows_mut(size, nx)
                .copy_from(&DVector::from_column_slice(&p.coordinates));
        } else {
            set(state(k - 1), &system.a);
            set(control(k - 1), &system.b);
            set(parameter, &system.p);
        }
        kkt.view_mut((size + k * nx, 0), (nx, size))
            .copy_from(&constraint);
        kkt.view_mut((0, size + k * nx), (size, nx))
            .copy_from(&constraint.transpose());
    }
    let z = kkt.lu().solve(&rhs).expect("regular");
    let part = |from: usize, count: usize| z.rows(from, count).iter().copied().collect();
    (part(control(0), n * nu), part(parameter, np))
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance, "{a} {b}");
    }
}

/// One iteration, and what it finds is what a dense solver finds: with parameters, without, and with nothing else.
#[test]
fn linear_quadratic_problems_take_one_iteration() {
    for (nx, nu, np) in [(4, 2, 2), (3, 1, 0), (4, 0, 2), (7, 3, 1)] {
        let (d, p) = linear_problem(nx, nu, np, 12);
        let s = solved(&d, &p, Options::default());
        assert_eq!(s.iterations, 1, "{nx} {nu} {np}");
        let (u, parameters) = dense_solution(&d, &p);
        close(&s.trajectory.u[..u.len()], &u, 1e-10);
        close(&s.trajectory.p, &parameters, 1e-10);
        let gains = s.gains.expect("feedback");
        assert_eq!(gains.feedback.len(), 12);
        assert_eq!(gains.feedback[0].shape(), (nu, nx));
    }
}

/// The first gain is the derivative of the dense solution's first control by the start.
#[test]
fn gains_are_derivatives_of_the_solution() {
    for (nx, nu) in [(3, 1), (5, 2)] {
        let (d, mut p) = linear_problem(nx, nu, 0, 12);
        let gains = solved(&d, &p, Options::default()).gains.expect("feedback");
        let (first, _) = dense_solution(&d, &p);
        for i in 0..nx {
            // linear in the start: a difference over 1 is exact
            p.coordinates[i] += 1.0;
            let (u, _) = dense_solution(&d, &p);
            p.coordinates[i] -= 1.0;
            let by_start: Vec<f64> = (0..nu).map(|j| u[j] - first[j]).collect();
            close(gains.feedback[0].column(i).as_slice(), &by_start, 1e-10);
        }
    }
}

/// States that do not follow from each other are a legal guess, and the gaps close.
#[test]
fn an_infeasible_guess_closes_in_one_iteration() {
    let (d, mut p) = linear_problem(4, 2, 1, 12);
    p.guess_states = (0..13 * 4).map(|i| (0.7 * f64::from(i)).cos()).collect();
    let s = solved(&d, &p, Options::default());
    assert_eq!(s.iterations, 1);
    let (u, parameters) = dense_solution(&d, &p);
    close(&s.trajectory.u, &u, 1e-10);
    close(&s.trajectory.p, &parameters, 1e-10);
}

/// The gradient points outward at active bounds and vanishes elsewhere.
#[test]
fn bounds_of_controls_and_parameters_are_exact() {
    let (d, mut p) = linear_problem(4, 2, 2, 12);
    p.bounds = vec![(-0.15, 0.1), (f64::NEG_INFINITY, 0.05)];
    p.parameter_bounds = vec![(-0.1, 0.1), (-5.0, 5.0)];
    let options = Options {
        optimality: 1e-13,
        ..Options::default()
    };
    let s = solved(&d, &p, options);
    let (t, mut w, mut e) = (&s.trajectory, d.work(), p.evaluation());
    p.evaluate(&d, t, &mut w, &mut e).expect("evaluated");
    let mut sweep = Sweep::new(&d, t);
    sweep
        .run(&d, t, &mut w, |at, w, out, y| {
            p.pull(&d, t, &[], &mut e, at, w, out, y)
        })
        .expect("swept");
    let by_start = d
        .initial_by_parameters(&Start::at_rates(&p.coordinates, &p.rates), &t.p, &mut w)
        .expect("a start");
    let start = DVector::from_column_slice(&sweep.x0);
    let all_p = by_start.tr_mul(&start) + DVector::from_column_slice(&sweep.p);
    let controls = t.u.iter().zip(&sweep.u).zip(p.bounds.iter().cycle());
    let parameters = t.p.iter().zip(all_p.iter()).zip(&p.parameter_bounds);
    let mut held = 0;
    for ((v, g), (l, h)) in controls.chain(parameters) {
        if v == l {
            assert!(*g >= 0.0, "{g}");
            held += 1;
        } else if v == h {
            assert!(*g <= 0.0, "{g}");
            held += 1;
        } else {
            assert!(g.abs() < 1e-5, "{g}");
        }
    }
    assert!((3..24).contains(&held), "{held}");
}

/// A damped oscillator without controls: x = (position, rate), p = (stiffness, damping).
struct Oscillator;

impl Smooth for Oscillator {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        0
    }

    fn parameters(&self) -> Vec<Parameter> {
        let parameter = |name: &str, unit: &str, value| Parameter {
            name: name.into(),
            unit: unit.into(),
            value,
        };
        vec![
            parameter("stiffness", "N/m", 4.0),
            parameter("damping", "N s/m", 0.1),
        ]
    }

    fn step<T: Real>(&self, _t: f64, h: T, x: &[T], _u: &[T], p: &[T], next: &mut [T]) {
        next[1] = x[1] - h * (p[0] * x[0] + p[1] * x[1]);
        next[0] = x[0] + h * next[1];
    }
}

/// Stiffness is free, damping runs into its bound; where it may not move, it does not.
#[test]
fn parameters_alone_are_optimized() {
    let d = Explicit::new(Oscillator);
    let mut p = Problem::new(&d, vec![0.02; 250], vec![1.0]);
    let [x, v] = [0, 1].map(QuantityId::new);
    p.costs.push(Cost::square(x, 0.0, 1.0, When::Running));
    p.costs.push(Cost::square(v, 0.0, 0.3, When::Running));
    p.parameter_bounds = vec![(0.5, 50.0), (0.05, 1.5)];
    let s = solved(&d, &p, Options::default());
    assert_eq!(s.trajectory.p[1], 1.5);
    // the best stiffness by golden-section-like bracketing
    let value = |stiffness: f64| {
        let mut t = s.trajectory.clone();
        t.p[0] = stiffness;
        let (mut w, mut e) = (d.work(), p.evaluation());
        t.roll(&d, &mut w, &mut RolloutStats::default())
            .expect("simulated");
        p.evaluate(&d, &t, &mut w, &mut e).expect("evaluated");
        e.objective
    };
    let best = s.trajectory.p[0];
    assert!(value(best) < value(best * 1.003) && value(best) < value(best * 0.997));
    p.parameter_bounds[1] = (0.1, 0.1);
    let s = solved(&d, &p, Options::default());
    assert_eq!(s.trajectory.p[1], 0.1);
}

/// A pendulum that may not swing faster than 5 rad/s, nor be pushed harder than 3 N m, comes up, to 1e-9.
#[test]
fn inequalities_along_the_way_hold_to_1e_9() {
    let (d, mut p) = planar::swing_up_pendulum();
    p.constraints.push(Constraint {
        quantity: QuantityId::new(1),
        relation: Relation::Greater,
        value: -5.0,
        profile: None,
        when: When::Running,
    });
    p.constraints.push(Constraint {
        quantity: QuantityId::new(1),
        relation: Relation::Less,
        value: 5.0,
        profile: None,
        when: When::Range(0, 60),
    });
    planar::random_guess(&mut p, 1);
    let options = Options {
        tolerance: 1e-9,
        ..Options::default()
    };
    let s = solved(&d, &p, options);
    assert!(s.violation <= 1e-9, "{}", s.violation);
    let fastest = (0..100).map(|k| s.trajectory.state(k)[1].abs());
    assert!(fastest.fold(0.0, f64::max) > 5.0 - 1e-6);
}

/// A straight line from hanging to upright is a guess for the states.
#[test]
fn an_infeasible_swing_up_converges() {
    let (d, mut p) = planar::swing_up_pendulum();
    let line = |k: usize| [std::f64::consts::PI * (1.0 - k as f64 / 100.0), 0.0];
    p.guess_states = (0..=100).flat_map(line).collect();
    let s = solved(&d, &p, Options::default());
    assert!(s.objective < 0.03, "{}", s.objective);
}

#[test]
fn what_cannot_be_reached_is_infeasible() {
    let (d, mut p) = linear_problem(3, 1, 0, 4);
    p.bounds = vec![(-0.1, 0.1)];
    p.constraints.push(Constraint {
        quantity: QuantityId::new(0),
        relation: Relation::Equal,
        value: 100.0,
        profile: None,
        when: When::End,
    });
    let s = solve(&d, &p, Options::default());
    assert_eq!(s.status, Status::Infeasible, "{}", s.reason);
    assert!(s.reason.contains("x0 = 100"), "{}", s.reason);
    assert!(s.violation > 10.0);
}

/// Guesses that make no sense, and horizons without a step, are answered and not panicked on.
#[test]
fn unusable_guesses_are_explained() {
    let (d, mut p) = linear_problem(3, 1, 1, 4);
    p.guess_states = vec![0.0; 7];
    let refused = Solve::new(&d, &p).run().expect_err("of another size");
    assert!(refused.to_string().contains("guess_states: 7"), "{refused}");
    p.guess_states.clear();
    p.guess[2] = f64::INFINITY;
    let refused = Solve::new(&d, &p).run().expect_err("not finite");
    assert!(refused.to_string().contains("finite"), "{refused}");
    // finite, until it is squared
    p.guess[2] = f64::MAX;
    let s = solve(&d, &p, Options::default());
    assert_eq!(s.status, Status::Diverged);
    assert!(s.gains.is_none());
    (p.intervals, p.guess) = (vec![], vec![]);
    p.costs.retain(|c| c.when == When::End);
    let s = solve(&d, &p, Options::default());
    assert_eq!(s.status, Status::Converged, "{}", s.reason);
}

/// The objectives that Crocoddyl and IPOPT reach, in fewer iterations than Crocoddyl's 133 and 371.
#[test]
fn published_swing_ups_are_matched() {
    let d = Explicit::new(planar::cart_pole());
    let s = solved(&d, &planar::published_cart_pole(&d), Options::default());
    assert!(s.objective < 1.095275, "{}", s.objective);
    assert!(s.iterations <= 110, "{}", s.iterations);
    let d = Explicit::new(planar::acrobot());
    let s = solved(&d, &planar::published_acrobot(&d), Options::default());
    assert!(s.objective < 2.741935, "{}", s.objective);
    assert!(s.iterations <= 300, "{}", s.iterations);
}

fn swings_up<S: Smooth>((d, mut p): (Explicit<S>, Problem), objective: f64) {
    for seed in 0..5 {
        planar::random_guess(&mut p, seed);
        let s = solved(&d, &p, Options::default());
        assert!(s.objective < 1.001 * objective, "{seed}: {}", s.objective);
    }
}

#[test]
fn swing_ups_converge_from_random_guesses() {
    swings_up(planar::swing_up_pendulum(), 0.0182);
    swings_up(planar::swing_up_cart_pole(), 1.5888);
    swings_up(planar::swing_up_acrobot(), 48.713);
    swings_up(planar::swing_up_double_pendulum(), 10.335);
}
