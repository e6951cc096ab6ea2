//! Derivatives of steps with contacts against differences, flying, sticking, sliding and rolling.

use super::super::tests::{derivative, difference, displaced};
use super::super::{Maximal, Options};
use super::tests::{Run, cube};
use crate::dynamics::{Dynamics, Knot, Solved};
use crate::mechanism::{BodySpec, ContactSpec, HalfSpaceSpec, MechanismBuilder, Shape};

fn sphere(mu: f64) -> MechanismBuilder {
    let b = BodySpec::new(1.0)
        .shape(Shape::Sphere(0.25))
        .free()
        .contact("all", ContactSpec::new(mu));
    MechanismBuilder::new()
        .body("ball", b)
        .half_space("floor", HalfSpaceSpec::default())
}

/// One step, cold, with perturbed inputs: next state's change and the contacts' unknowns.
fn stepped(s: &Maximal, at: &Knot, x: &[f64], p: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let d = Dynamics::dims(s);
    let (mut w, mut next, mut y) = (Dynamics::work(s), x.to_vec(), vec![0.0; d.ny]);
    s.step(at, x, &[], p, &mut w, &mut next, &mut y)
        .unwrap_or_else(|e| panic!("{e}"));
    (next, y)
}

/// Largest errors of the derivatives of the velocities and of the contacts' unknowns, relative to the free response.
fn errors(r: &mut Run) -> (f64, f64) {
    let s = &r.system;
    let (d, at, p) = (Dynamics::dims(s), r.at(), s.nominal.clone());
    let (next, y) = stepped(s, &at, &r.x, &p);
    let solved = Solved {
        at,
        x: &r.x,
        u: &[],
        p: &p,
        y: &y,
        next: &next,
    };
    s.linearize(&solved, &mut r.w).expect("regular");
    let (dim, n) = (s.symbolic.dim(), 6 * s.body_count());
    let (mut worst, mut own) = (0.0_f64, 0.0_f64);
    let mut adjoint = d.outputs();
    let mut source = crate::mechanism::samples::Source::new(3);
    adjoint.x = source.vector(d.nf, 1.0);
    adjoint.y = source.vector(d.ny, 1.0);
    let which = std::env::var("WHICH").map_or(9, |v| v.parse().unwrap());
    for (i, y) in adjoint.y[dim..].iter_mut().enumerate() {
        if which != 9 && i % 5 != which {
            *y = 0.0;
        }
    }
    let mut pulled = d.inputs();
    s.pull(&mut r.w, &adjoint, &mut pulled);
    for i in 0..d.nf + d.np + 2 {
        let (mut input, mut out) = (d.inputs(), d.outputs());
        let by: f64 = match i {
            i if i < d.nf => {
                input.x[i] = 1.0;
                pulled.x[i]
            }
            i if i < d.nf + d.np => {
                input.p[i - d.nf] = 1.0;
                pulled.p[i - d.nf]
            }
            i if i == d.nf + d.np => {
                input.h = 1.0;
                pulled.h
            }
            _ => {
                input.h_prev = 1.0;
                pulled.h_prev
            }
        };
        s.push(&mut r.w, &input, &mut out);
        let pairs = out
            .x
            .iter()
            .zip(&adjoint.x)
            .chain(out.y.iter().zip(&adjoint.y));
        let (product, size) = pairs
            .map(|(a, b)| a * b)
            .fold((0.0, 1.0_f64), |(s, m), p| (s + p, m + p.abs()));
        let transposed = (product - by).abs() / size;
        if transposed > 1e-9 {
            eprintln!("   column {i} transposed {transposed:e}");
        }
        let _ = size;
        let f = |e: f64| {
            let (mut c, mut p, mut at) = (vec![0.0; d.nf], p.clone(), at);
            match i {
                i if i < d.nf => c[i] = e,
                i if i < d.nf + d.np => p[i - d.nf] += e,
                i if i == d.nf + d.np => at.h += e,
                _ => at.h_prev += e,
            }
            let (to, y) = stepped(s, &at, &displaced(s, &r.x, &c), &p);
            let mut out = difference(s, &next, &to);
            out.extend(&y[dim..]);
            out
        };
        // the best of several difference steps: the law is stiff
        let (mut best, mut best_own) = (f64::INFINITY, f64::INFINITY);
        for e in [1e-4, 1e-5, 1e-6, 1e-7] {
            let fd = derivative(e * if i >= d.nf + d.np { r.h } else { 1.0 }, f);
            let free = if i < n {
                1.0 / r.h
            } else if i < 2 * n {
                1.0
            } else {
                10.0
            };
            let error = |a: &[f64], b: &[f64]| {
                a.iter()
                    .zip(b)
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f64::max)
            };
            best = best.min(error(&out.x, &fd[..d.nf]) / free);
            best_own = best_own.min(error(&out.y[dim..], &fd[d.nf..]) / free);
        }
        if best > 1e-6 {
            eprintln!("   column {i}: {best:e} {best_own:e}");
        }
        worst = worst.max(best);
        own = own.max(best_own);
    }
    (worst, own)
}

#[test]
fn derivatives_through_contact_match_differences() {
    let mut cold = Options::default();
    cold.contact.warm = false;
    let slide = [2.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let spin = [1.0, 0.5, 0.0, 0.3, -0.2, 2.0];
    for kappa in [1e-5, 1e-7, 1e-9] {
        cold.contact.central_path = kappa;
        let scenes: [(&str, MechanismBuilder, f64, [f64; 6], usize); 7] = [
            ("ball flying", sphere(0.3), 0.6, spin, 3),
            (
                "ball impact",
                sphere(0.3),
                0.26,
                [1.0, 0.0, -2.0, 0.0, 1.0, 0.0],
                1,
            ),
            ("ball sliding", sphere(0.3), 0.25, slide, 5),
            (
                "ball rolling",
                sphere(0.3),
                0.25,
                [1.0, 0.0, 0.0, 0.0, 4.0, 0.0],
                5,
            ),
            ("box resting", cube(1.0, 0.3), 0.25, [0.0; 6], 5),
            ("box sliding", cube(1.0, 0.3), 0.25, slide, 5),
            (
                "box corner impact",
                cube(1.0, 0.3),
                0.6,
                [1.0, 0.0, -5.0, 2.0, 1.0, 0.0],
                8,
            ),
        ];
        for (name, b, z, rates, steps) in scenes {
            let q = [0.0, 0.0, z, 0.0, 0.0, 0.0];
            let mut r = Run::new(&b, &q, &rates, 0.01, cold);
            for _ in 0..steps {
                r.step();
            }
            let e = errors(&mut r);
            eprintln!("{kappa:e} {name}: {:.1e} {:.1e}", e.0, e.1);
        }
    }
}
