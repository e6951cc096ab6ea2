//! What tests hold derivatives of steps against.

use super::maximal::tests::{assert_close, derivative};
use crate::dynamics::{Differentiable, Inputs, Outputs, SolvedStep};

/// What an input's derivative is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::integrator) enum Against {
    /// Differences, and the pull.
    Differences,
    /// The pull: where it changes there is no step.
    Pull,
    /// Nothing: it leads off the joints.
    Nothing,
}

/// Adjoints without order.
pub(in crate::integrator) fn some_adjoint(s: &impl Differentiable) -> Outputs {
    let d = s.dims();
    Outputs {
        x: (0..d.nf).map(|i| (1.3 * i as f64).sin()).collect(),
        y: (0..d.ny).map(|i| (0.7 * i as f64).cos()).collect(),
    }
}

/// The input of a number: of state, controls, parameters, interval and interval before.
pub(in crate::integrator) fn input(d: &mut Inputs, i: usize) -> &mut f64 {
    let (nx, nu, np) = (d.x.len(), d.u.len(), d.p.len());
    match i {
        i if i < nx => &mut d.x[i],
        i if i < nx + nu => &mut d.u[i - nx],
        i if i < nx + nu + np => &mut d.p[i - nx - nu],
        i if i == nx + nu + np => &mut d.h,
        _ => &mut d.h_prev,
    }
}

/// Holds pushes through a solved step against pulls of an adjoint, and against differences of `outcome`: the outputs, or the first of
/// them, at changed inputs; of those alone that have an adjoint. `exact` is the tolerance of the one, `(step, tolerance)` are of
/// the other.
pub(in crate::integrator) fn hold<S: Differentiable>(
    s: &S,
    solved: &SolvedStep,
    adjoint: &Outputs,
    against: impl Fn(usize) -> Against,
    exact: f64,
    (step, tolerance): (f64, f64),
    outcome: impl Fn(&Inputs) -> Vec<f64>,
) {
    let (dims, mut w) = (s.dims(), s.work());
    s.linearize_in(solved, &mut w).expect("regular");
    let (mut pulled, mut out) = (dims.inputs(), dims.outputs());
    s.pull_in(&mut w, adjoint, &mut pulled);
    for i in 0..dims.nf + dims.nu + dims.np + 2 {
        let what = against(i);
        if what == Against::Nothing {
            continue;
        }
        let mut d = dims.inputs();
        *input(&mut d, i) = 1.0;
        s.push_in(&mut w, &d, &mut out);
        let all = || out.x.iter().chain(&out.y).copied();
        let given = adjoint.x.iter().chain(&adjoint.y);
        let products = all().zip(given).map(|(a, b)| a * b);
        let (pushed, size) = products.fold((0.0, 1.0), |(s, m), p| (s + p, m + p.abs()));
        let own = *input(&mut pulled, i);
        let off = (pushed - own).abs() / size;
        assert!(off < exact, "input {i}: pushed {pushed}, pulled {own}");
        if what == Against::Pull {
            continue;
        }
        let by = |e: f64| {
            let mut d = dims.inputs();
            *input(&mut d, i) = e;
            outcome(&d)
        };
        let of = |all: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
            let seen = all.zip(adjoint.x.iter().chain(&adjoint.y));
            seen.map(|(v, a)| if *a == 0.0 { 0.0 } else { v }).collect()
        };
        let differences = of(&mut derivative(step, by).into_iter());
        let all = of(&mut all().take(differences.len()));
        assert_close(&all, &differences, tolerance, &format!("input {i}"));
    }
}
