//! Swing-ups of a cart-pole and an acrobot with a user's dynamics, as other optimizers publish them.

use argmin::core::observers::Observe as Observer;
use least_action::control::{Cost, Problem, When};
use least_action::dynamics::{Explicit, Real, Smooth};
use least_action::optimize::{IterationState, Solution, ddp};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const G: f64 = 9.81;

struct Silent;
impl Observer<IterationState> for Silent {}

struct CartPole;

impl Smooth for CartPole {
    fn states(&self) -> usize {
        4
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
        let (cart, pole, l, inertia) = (1.0, 0.2, 0.5, 0.2 / 12.0);
        let (s, c) = x[1].sin_cos();
        // M (x'', th'') = (u + m l s th'^2, m g l s)
        let (m11, m12, m22) = (cart + pole, c * (pole * l), inertia + pole * l * l);
        let f1 = u[0] + s * x[3] * x[3] * (pole * l);
        let f2 = s * (pole * G * l);
        let det = T::from(m11 * m22) - m12 * m12;
        next[2] = x[2] + h * ((f1 * m22 - m12 * f2) / det);
        next[3] = x[3] + h * ((f2 * m11 - m12 * f1) / det);
        next[0] = x[0] + h * next[2];
        next[1] = x[1] + h * next[3];
    }
}

struct Acrobot;

impl Smooth for Acrobot {
    fn states(&self) -> usize {
        4
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
        let (m, l, lc, i) = (1.0, 1.0, 0.5, 1.01 / 12.0);
        let (s2, c2) = x[1].sin_cos();
        let s1 = x[0].sin();
        let s12 = (x[0] + x[1]).sin();
        let m22 = i + m * lc * lc;
        let m12 = c2 * (m * l * lc) + m22;
        let m11 = c2 * (2.0 * m * l * lc) + (2.0 * i + m * lc * lc + m * (l * l + lc * lc));
        let coriolis = s2 * (m * l * lc);
        let f1 =
            coriolis * (x[2] * 2.0 + x[3]) * x[3] + s1 * (m * G * (lc + l)) + s12 * (m * G * lc);
        let f2 = u[0] - coriolis * x[2] * x[2] + s12 * (m * G * lc);
        let det = m11 * m22 - m12 * m12;
        next[2] = x[2] + h * ((f1 * m22 - m12 * f2) / det);
        next[3] = x[3] + h * ((m11 * f2 - m12 * f1) / det);
        next[0] = x[0] + h * next[2];
        next[1] = x[1] + h * next[3];
    }
}

fn problem<S: Smooth>(d: &Explicit<S>, start: [f64; 4], steps: usize, end: [f64; 4]) -> Problem {
    let mut p = Problem::new(d, vec![0.02; steps], start[..2].to_vec());
    p.rates = start[2..].to_vec();
    let mut cost = |quantity, weight, when| {
        p.costs.push(Cost {
            quantity,
            target: 0.0,
            weight,
            when,
        });
    };
    for (i, (q, qf)) in [0.1, 0.1, 0.01, 0.01].into_iter().zip(end).enumerate() {
        cost(i, q, When::Running);
        cost(i, qf, When::End);
    }
    cost(4, 0.01, When::Running);
    p.guess = (0..steps)
        .map(|k| (2.0 * std::f64::consts::PI * k as f64 / 50.0).sin())
        .collect();
    p
}

fn run<S: Smooth>(name: &str, d: &Explicit<S>, p: &Problem, goal: f64) {
    let stop = AtomicBool::new(false);
    let mut times = vec![];
    let mut last: Option<Solution> = None;
    for _ in 0..11 {
        let start = Instant::now();
        last = Some(ddp::solve(d, p, ddp::Options::default(), Silent, &stop).expect("solved"));
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let s = last.expect("ran");
    println!(
        "{name}: {} {} objective {:.6} (goal {goal}), optimality {:.1e}, {} iterations, {} steps, {} models, {:.2} ms ({:.3} us per knot and iteration)",
        s.status.name(),
        s.reason,
        s.objective,
        s.optimality,
        s.iterations,
        s.step_evaluations,
        s.gradient_evaluations,
        times[5],
        times[5] * 1e3 / (s.iterations as f64 * p.intervals.len() as f64)
    );
    if std::env::args().len() > 1 {
        for r in &s.history {
            println!(
                "{:4} {:.8} {:.2e} {:.3e} {:.1e}",
                r.iteration, r.objective, r.optimality, r.step_length, r.regularization
            );
        }
    }
}

fn main() {
    let d = Explicit::new(CartPole);
    let p = problem(
        &d,
        [0.0, std::f64::consts::PI, 0.0, 0.0],
        150,
        [100.0, 100.0, 10.0, 10.0],
    );
    run("cart-pole", &d, &p, 1.09527);
    let d = Explicit::new(Acrobot);
    let p = problem(
        &d,
        [std::f64::consts::PI, 0.0, 0.0, 0.0],
        200,
        [1000.0, 1000.0, 100.0, 100.0],
    );
    run("acrobot", &d, &p, 2.74193);
}
