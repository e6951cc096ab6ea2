//! Gauss-Newton curvature of a problem by its controls, from the linearized steps in the joint chart.
//!
//! With `x_(k+1) = A_k x_k + B_k u_k` and the observed quantities' rows `C_k, D_k`, the rows `d quantity/du` follow by
//! one pass over the trajectory, and `H = sum weight row' row`.

use crate::control::{Problem, When};
use crate::dynamics::{Observe, Solved, StepError};
use crate::rollout::Trajectory;
use nalgebra::DMatrix;

/// `H` by all controls (knot by knot): costs with their weights, constraints at the end with weight `penalty`.
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
    let mut frame = dynamics.frame(&t.knot(0), t.state(0), None)?;
    let mut inputs = dims.inputs();
    for k in 0..=n {
        let at = t.knot(k);
        let weighted: Vec<(usize, f64)> = if k < n {
            let running = problem.costs.iter().filter(|c| c.when == When::Running);
            running.map(|c| (c.quantity, c.weight * at.h)).collect()
        } else {
            let end = problem.costs.iter().filter(|c| c.when == When::End);
            let constraints = problem.constraints.iter().map(|c| (c.quantity, penalty));
            end.map(|c| (c.quantity, c.weight))
                .chain(constraints)
                .collect()
        };
        let active = (k + 1).min(n) * dims.nu;
        let mut rows = DMatrix::zeros(weighted.len(), active);
        for (i, (quantity, weight)) in weighted.iter().enumerate() {
            inputs.x.fill(0.0);
            inputs.u.fill(0.0);
            let (which, mut value) = ([*quantity], [0.0]);
            dynamics.observe(&at, t.state(k), t.control(k), &which, w, &mut value)?;
            dynamics.observe_pull(
                &at,
                t.state(k),
                t.control(k),
                &which,
                w,
                &[1.0],
                &mut inputs,
            );
            let by_state = frame
                .embed
                .tr_mul(&nalgebra::DVector::from_column_slice(&inputs.x));
            let mut row = state.columns(0, active).tr_mul(&by_state);
            // the control at the end is that of the last step
            for (r, d) in row
                .rows_mut(active - dims.nu, dims.nu)
                .iter_mut()
                .zip(&inputs.u)
            {
                *r += d;
            }
            rows.set_row(i, &(row * weight.sqrt()).transpose());
        }
        let mut block = hessian.view_mut((0, 0), (active, active));
        block.gemm_tr(1.0, &rows, &rows, 1.0);
        if k == n {
            break;
        }
        let solved = Solved {
            at,
            x: t.state(k),
            u: t.control(k),
            y: t.unknowns(k),
            next: t.state(k + 1),
        };
        let next = dynamics.frame(&t.knot(k + 1), t.state(k + 1), Some(&frame))?;
        dynamics.linearize(&solved, w)?;
        let (a, b) = dynamics.linear_model(w, &frame, &next);
        let moved = a * state.columns(0, active);
        state.columns_mut(0, active).copy_from(&moved);
        let mut own = state.columns_mut(k * dims.nu, dims.nu);
        own += b;
        frame = next;
    }
    Ok(hessian)
}
