//! The unsolved equations of contacts, limits and friction against differences.

use super::super::super::equations::tests::equations_have_their_derivatives;
use super::{Options, Run, scenes, tuned};
use crate::dynamics::Equations;

#[test]
fn unsolved_laws_have_their_derivatives() {
    let mut refused = 0;
    // an effort that is cut is rounded over less than the differences span
    let uncut = scenes().into_iter().filter(|s| s.0 != "machine cut");
    for (name, builder, q, rates, u, steps) in uncut {
        let mut run = Run::new(&tuned(builder), &q, &rates, 0.01, Options::default());
        run.u.copy_from_slice(&u);
        if run.system.check_equations().is_err() {
            refused += 1;
            continue;
        }
        (0..steps).for_each(|_| run.step());
        for kappa in [None, Some(0.0), Some(0.3)] {
            let (at, x, y) = (run.at(), run.x.clone(), run.y.clone());
            let situation = (at, x, run.u.clone(), y);
            let what = format!("{name} at {kappa:?}");
            equations_have_their_derivatives(&run.system, situation, kappa, true, &what);
        }
    }
    // one that bounces
    assert_eq!(refused, 1);
}
