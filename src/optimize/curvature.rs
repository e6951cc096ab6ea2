//! Gauss-Newton curvature of a problem by its controls, from the linearized steps in the joint chart.
//!
//! With `x_(k+1) = A_k x_k + B_k u_k` and the observed quantities' rows `C_k, D_k`, the rows `d quantity/du` follow by
//! one pass over the trajectory, and `H = sum weight row' row`.

use crate::control::Problem;
use crate::dynamics::{LinearModel, Observe, Rows, StepError};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;

/// `H` by all controls (knot by knot): costs with their weights, constraints with weight `penalty`.
///
/// # Errors
/// When a step cannot be linearized or a quantity not observed.
pub fn gauss_newton<D: Observe>(
    dynamics: &D,
    problem: &Problem,
    t: &Trajectory,
    penalty: f64,
    w: &mut D::Work,
) -> Result<DMatrix<f64>, StepError> {
    let (dims, n) = (dynamics.dims(), t.steps());
    let columns = n * dims.nu;
    let mut hessian = DMatrix::zeros(columns, columns);
    // dx_k/du, of which only the columns of the controls before k are not zero
    let mut state = DMatrix::zeros(dims.ndx, columns);
    let mut at = t.knot(0);
    let mut frame = dynamics.frame(&at, t.state(0), &t.p, None, w)?;
    let mut model = LinearModel::new(&dims);
    let layout = problem.layout();
    for k in 0..=n {
        let stage = layout.stage(k);
        let active = (k + 1).min(n) * dims.nu;
        let seen = t.seen(&at);
        let mut values = vec![0.0; stage.which.len()];
        let mut by = Rows::new(&dims, stage.which.len());
        dynamics.observe(&seen, &stage.which, w, &mut values)?;
        dynamics.observe_rows(&seen, &stage.which, w, &mut by);
        if k < n {
            dynamics.linearize(&t.solved(&at), w)?;
            // what is seen of the unknowns depends on state and control through the step
            let (mut adjoint, mut inputs) = (dims.outputs(), dims.inputs());
            for i in 0..stage.which.len() {
                if dynamics.needs_unknowns(stage.which[i]) {
                    adjoint
                        .y
                        .iter_mut()
                        .zip(by.y.row(i).iter())
                        .for_each(|(a, b)| *a = *b);
                    dynamics.pull(w, &adjoint, &mut inputs);
                    by.x.row_mut(i)
                        .iter_mut()
                        .zip(&inputs.x)
                        .for_each(|(r, d)| *r += d);
                    by.u.row_mut(i)
                        .iter_mut()
                        .zip(&inputs.u)
                        .for_each(|(r, d)| *r += d);
                }
            }
        }
        let mut rows = frame.times_embed(&by.x) * state.columns(0, active);
        // the control at the end is that of the last step
        let mut own = rows.columns_mut(active - dims.nu, dims.nu);
        own += &by.u;
        let costs = stage
            .costs
            .iter()
            .map(|&(i, place)| (place, problem.costs[i].weight_at(at.h)));
        let constraints = stage.constraints.iter().map(|&(_, place)| (place, penalty));
        let weighted: Vec<(usize, f64)> = costs.chain(constraints).collect();
        let chosen = DMatrix::from_fn(weighted.len(), active, |i, j| {
            let (place, weight) = weighted[i];
            weight.sqrt() * rows[(place, j)]
        });
        let mut block = hessian.view_mut((0, 0), (active, active));
        block.gemm_tr(1.0, &chosen, &chosen, 1.0);
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
        (frame, at) = (next, after);
    }
    Ok(hessian)
}
