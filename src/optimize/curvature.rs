//! Gauss-Newton curvature of a problem by its controls and free parameters, from the linearized steps in the joint
//! chart.
//!
//! With `x_(k+1) = A_k x_k + B_k u_k + P_k p` and the observed quantities' rows `C_k, D_k, E_k`, the rows
//! `d quantity/d(u, p)` follow by one pass over the trajectory, and `H = sum weight row' row`.

use crate::control::Problem;
use crate::dynamics::{Dims, Knot, LinearModel, Observe, Rows, StepError};
use crate::rollout::Trajectory;
use nalgebra::{DMatrix, DMatrixView};

/// `H` by all controls (knot by knot), then by the free parameters: costs with their weights, constraints with those
/// given, one each at each of its knots; none for zero.
///
/// # Errors
/// When a step cannot be linearized or a quantity not observed.
pub fn gauss_newton<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    t: &Trajectory,
    constraint_weights: &[f64],
    w: &mut D::Work,
) -> Result<DMatrix<f64>, StepError> {
    let (dims, n) = (dynamics.dims(), t.steps());
    let free = problem.free_parameters();
    let (columns, np) = (n * dims.nu, free.len());
    let mut hessian = DMatrix::zeros(columns + np, columns + np);
    // dx_k/du, of which only the columns of the controls before k are not zero, and dx_k/dp
    let mut state = DMatrix::zeros(dims.ndx, columns);
    let mut at = t.knot(0);
    let mut frame = dynamics.frame(&at, t.state(0), &t.p, None, w)?;
    let mut by_p = if np == 0 {
        DMatrix::zeros(dims.ndx, 0)
    } else {
        let start =
            dynamics.initial_by_parameters(&problem.coordinates, &problem.rates, &t.p, w)?;
        frame.project() * start.select_columns(&free)
    };
    let mut model = LinearModel::new(&dims);
    let layout = problem.layout();
    for k in 0..=n {
        let stage = layout.stage(k);
        let active = (k + 1).min(n) * dims.nu;
        if !stage.which.is_empty() {
            let (values, by) = rows(dynamics, &dims, t, &at, &stage.which, w)?;
            let curvature = |&(i, place): &(usize, usize)| {
                let (.., weight) = problem.costs[i].at(values[place], at.h);
                (place, weight)
            };
            let own = constraint_weights.get(layout.constraints(k)).unwrap_or(&[]);
            let constraints = stage.constraints.iter().map(|&(_, place)| place).zip(own);
            let weighted: Vec<(usize, f64)> = stage
                .costs
                .iter()
                .map(curvature)
                .chain(constraints.map(|(place, weight)| (place, *weight)))
                .filter(|(_, weight)| *weight > 0.0)
                .collect();
            let seen = frame.times_embed(&by.x);
            let mut by_controls = &seen * state.columns(0, active);
            // the control at the end is that of the last step
            let mut own = by_controls.columns_mut(active - dims.nu, dims.nu);
            own += &by.u;
            let by_parameters = seen * &by_p + by.p.select_columns(&free);
            let chosen = |m: &DMatrix<f64>| {
                DMatrix::from_fn(weighted.len(), m.ncols(), |i, j| {
                    let (place, weight) = weighted[i];
                    weight.sqrt() * m[(place, j)]
                })
            };
            let (u, p) = (chosen(&by_controls), chosen(&by_parameters));
            let mut add = |row: usize, column: usize, a: DMatrixView<f64>, b: DMatrixView<f64>| {
                let mut block = hessian.view_mut((row, column), (a.ncols(), b.ncols()));
                block.gemm_tr(1.0, &a, &b, 1.0);
            };
            add(0, 0, u.as_view(), u.as_view());
            add(0, columns, u.as_view(), p.as_view());
            add(columns, columns, p.as_view(), p.as_view());
        }
        if k == n {
            break;
        }
        let after = t.knot_after(&at);
        let next = dynamics.frame(&after, t.state(k + 1), &t.p, Some(&frame), w)?;
        dynamics.linearize(&t.solved(&at), w)?;
        dynamics.linear_model(w, &frame, &next, &mut model);
        let moved = &model.a * state.columns(0, active);
        state.columns_mut(0, active).copy_from(&moved);
        let mut own = state.columns_mut(k * dims.nu, dims.nu);
        own += &model.b;
        by_p = &model.a * by_p + model.p.select_columns(&free);
        (frame, at) = (next, after);
    }
    let corner = hessian.view((0, columns), (columns, np)).transpose();
    hessian
        .view_mut((columns, 0), (np, columns))
        .copy_from(&corner);
    Ok(hessian)
}

/// Values and derivatives of quantities at a knot; those of the step's unknowns become such of what goes into the step.
fn rows<D: Observe>(
    dynamics: &D,
    dims: &Dims,
    t: &Trajectory,
    at: &Knot,
    which: &[usize],
    w: &mut D::Work,
) -> Result<(Vec<f64>, Rows), StepError> {
    let seen = t.seen(at);
    let mut values = vec![0.0; which.len()];
    let mut by = Rows::new(dims, which.len());
    dynamics.observe(&seen, which, w, &mut values)?;
    dynamics.observe_rows(&seen, which, w, &mut by);
    if at.k == t.steps() || !which.iter().any(|q| dynamics.needs_unknowns(*q)) {
        return Ok((values, by));
    }
    dynamics.linearize(&t.solved(at), w)?;
    let (mut adjoint, mut inputs) = (dims.outputs(), dims.inputs());
    for (i, q) in which.iter().enumerate() {
        if dynamics.needs_unknowns(*q) {
            let own = by.y.row(i);
            adjoint.y.iter_mut().zip(&own).for_each(|(a, b)| *a = *b);
            dynamics.pull(w, &adjoint, &mut inputs);
            for (m, d) in [
                (&mut by.x, &inputs.x),
                (&mut by.u, &inputs.u),
                (&mut by.p, &inputs.p),
            ] {
                m.row_mut(i).iter_mut().zip(d).for_each(|(m, d)| *m += d);
            }
        }
    }
    Ok((values, by))
}
