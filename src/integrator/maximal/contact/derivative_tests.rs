//! Derivatives of steps with contacts against differences, flying, sticking, sliding and rolling.

use super::super::tests::{derivative, difference, displaced};
use super::super::{Maximal, Options, Output};
use super::tests::{Run, cube};
use crate::dynamics::{Dynamics, Knot, Observe, Seen, Solved};
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

fn bouncing() -> MechanismBuilder {
    let b = BodySpec::new(1.0)
        .shape(Shape::Sphere(0.25))
        .free()
        .contact("all", ContactSpec::new(0.3).restitution(0.7));
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

/// Quantities at a knot and their adjoints, states, unknowns and intervals all free.
fn observed(r: &Run, contacts: usize) -> f64 {
    let m = r.system.mechanism().clone();
    let mut outputs = vec![Output::KineticEnergy];
    for i in 0..6 {
        outputs.push(Output::Rate {
            joint: 0,
            direction: i,
        });
    }
    for c in 0..contacts {
        outputs.extend([
            Output::Gap(c),
            Output::NormalForce(c),
            Output::Friction(c),
            Output::Slip(c),
        ]);
    }
    let s = Maximal::new(m, &[0.0; 6], r.system.options())
        .expect("a system")
        .with_outputs(outputs);
    let (d, at, p) = (Dynamics::dims(&s), r.at(), s.nominal.clone());
    let (_, y) = stepped(&s, &at, &r.x, &p);
    let which: Vec<usize> = (0..s.outputs().len()).collect();
    let look = |at: &Knot, x: &[f64], y: &[f64]| {
        let (mut w, mut out) = (Dynamics::work(&s), vec![0.0; which.len()]);
        let seen = Seen {
            at: *at,
            x,
            u: &[],
            p: &p,
            y,
        };
        s.observe(&seen, &which, &mut w, &mut out)
            .unwrap_or_else(|e| panic!("{e}"));
        out
    };
    let mut worst = 0.0_f64;
    for &i in &which {
        let (mut w, mut out) = (Dynamics::work(&s), vec![0.0]);
        let seen = Seen {
            at,
            x: &r.x,
            u: &[],
            p: &p,
            y: &y,
        };
        s.observe(&seen, &[i], &mut w, &mut out).expect("a state");
        let (mut inputs, mut by_y) = (d.inputs(), vec![0.0; d.ny]);
        s.observe_pull(&seen, &[i], &mut w, &[1.0], &mut inputs, &mut by_y);
        let dim = s.symbolic.dim();
        for k in 0..d.nf + d.ny - dim + 2 {
            let exact = match k {
                k if k < d.nf => inputs.x[k],
                k if k < d.nf + d.ny - dim => by_y[dim + k - d.nf],
                k if k == d.nf + d.ny - dim => inputs.h,
                _ => inputs.h_prev,
            };
            let f = |e: f64| {
                let (mut c, mut y, mut at) = (vec![0.0; d.nf], y.clone(), at);
                match k {
                    k if k < d.nf => c[k] = e,
                    k if k < d.nf + d.ny - dim => y[dim + k - d.nf] += e,
                    k if k == d.nf + d.ny - dim => at.h += e,
                    _ => at.h_prev += e,
                }
                vec![look(&at, &displaced(&s, &r.x, &c), &y)[i]]
            };
            let mut best = f64::INFINITY;
            for e in [1e-4, 1e-5, 1e-6, 1e-7] {
                let e = if k < d.nf { e } else { e * r.h };
                best = best.min((derivative(e, f)[0] - exact).abs() / (100.0 + exact.abs()));
            }
            if best > 1e-7 {
                eprintln!("   {:?} by {k}: {exact} {best:e}", s.outputs()[i]);
            }
            worst = worst.max(best);
        }
    }
    worst
}

#[test]
fn derivatives_through_contact_match_differences() {
    let mut cold = Options::default();
    cold.contact.warm = false;
    let slide = [2.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let spin = [1.0, 0.5, 0.0, 0.3, -0.2, 2.0];
    for kappa in [1e-5, 1e-7, 1e-9] {
        cold.contact.central_path = kappa;
        let scenes: [(&str, MechanismBuilder, f64, [f64; 6], usize); 8] = [
            (
                "ball bouncing",
                bouncing(),
                0.26,
                [1.0, 0.0, -2.0, 0.0, 1.0, 0.0],
                1,
            ),
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
            let o = observed(&r, r.system.mechanism().contacts.len());
            eprintln!("{kappa:e} {name}: {:.1e} {:.1e} observed {o:.1e}", e.0, e.1);
        }
    }
}
