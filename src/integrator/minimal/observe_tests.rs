//! What is observed does not depend on what the memory was used for before.

use super::samples::{MOVING, START, made, of_both_lagrangians, values};
use crate::dynamics::{Differentiable, KnotPoint, Observe, QuantityId, SolvedStep, Step};
use crate::integrator::Mechanical;

/// Each quantity by itself, with the memory of a step and of those before, and with one of its own.
#[test]
fn quantities_do_not_depend_on_the_memory() {
    let apart = of_both_lagrangians().filter(|(s, ..)| s.contacts.is_empty());
    for (s, q, rates) in apart {
        let (d, p) = (s.dims(), values(&s));
        for intervals in [START, MOVING] {
            let (at, x, u, y, next) = made(&s, &q, &rates, intervals);
            let mut used = s.work();
            let (mut end, mut unknowns) = (next.clone(), y.clone());
            s.step(&at, &x, &u, &p, &mut used, &mut end, &mut unknowns)
                .expect("a step");
            let (x, u, p, y) = (&x[..], &u[..], &p[..], &y[..]);
            let seen = KnotPoint { at, x, u, p, y };
            for i in 0..s.outputs().len() {
                let which = [QuantityId::new(i)];
                let observe = |w: &mut _| {
                    let (mut value, mut by, mut by_y) = ([0.0], d.inputs(), vec![0.0; d.ny]);
                    s.observe_in(&seen, &which, w, &mut value).expect("a state");
                    s.observe_pull_in(&seen, &which, w, &[1.0], &mut by, &mut by_y);
                    let times = vec![value[0], by.h_prev, by.h];
                    [times, by.x, by.u, by.p, by_y].concat()
                };
                let own = observe(&mut s.work());
                let name = s.outputs()[i].name(s.mechanism()).0;
                assert_eq!(observe(&mut used), own, "{name}");
                let next = &next[..];
                let solved = SolvedStep {
                    at,
                    x,
                    u,
                    p,
                    y,
                    next,
                };
                s.linearize_in(&solved, &mut used).expect("regular");
                assert_eq!(observe(&mut used), own, "{name}, behind a linearization");
            }
        }
    }
}
