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
/// the other, of which shorter steps are tried, too.
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
        // laws that are stiff in one input are not in another
        let differences = |shorter: f64| of(&mut derivative(step * shorter, by).into_iter());
        let exact = of(&mut all().take(differences(1.0).len()));
        let off = |differences: &[f64]| {
            let scale = differences.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
            let each = exact.iter().zip(differences).map(|(a, b)| (a - b).abs());
            each.fold(0.0, f64::max) / scale
        };
        let tried = [1.0, 0.125, 0.015_625].map(differences);
        let best = tried.iter().min_by(|a, b| off(a).total_cmp(&off(b)));
        let best = best.expect("three were tried");
        assert_close(&exact, best, tolerance, &format!("input {i}"));
    }
}
