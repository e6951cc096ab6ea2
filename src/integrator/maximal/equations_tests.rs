//! The unsolved equations against differences.

use super::contact_tests::Run;
use super::tests::{
    Situation, assert_close, derivative, difference, displaced, named, situation, systems,
};
use super::{Maximal, Options};
use crate::dynamics::{Column, End, Equations, KnotPoint, UnsolvedStep};
use crate::integrator::composed::tests::pulls_are_products;
use crate::mechanism::samples::Source;
use crate::mechanism::{BodySpec, MechanismBuilder};

/// The unsolved equations, at unknowns that do not solve them: every entry that the structure leaves out is zero, every
/// other as differences have it.
pub(super) fn equations_have_their_derivatives(
    s: &Maximal,
    (at, x, u, mut y): Situation,
    kappa: Option<f64>,
    has_end: bool,
    what: &str,
) {
    let (d, n) = (s.dims(), s.body_count());
    let mut r = Source::new(21);
    y.iter_mut().for_each(|y| *y += 0.05 * r.unit());
    let mut end = x.clone();
    assert!(s.displace(&x, &r.vector(d.nf, 0.1), &mut end));
    let work = || {
        let mut w = s.work();
        if let Some(kappa) = kappa {
            s.set_central_path(&mut w, kappa);
        }
        w
    };
    let all = |at, x: &[f64], u: &[f64], p: &[f64], y: &[f64], end: &[f64]| {
        let start = KnotPoint { at, x, u, p, y };
        let (from, state) = (end, end);
        let seen = UnsolvedStep {
            start,
            end: has_end.then_some(End { from, state }),
        };
        let (mut w, mut out, mut next) = (work(), vec![0.0; d.ny], x.to_vec());
        s.residual(&seen, &mut w, &mut out).expect("a state");
        s.advance(&start, &mut w, &mut next).expect("a state");
        (out, next)
    };
    let p = &s.nominal;
    let (_, next) = all(at, &x, &u, p, &y, &end);
    let structure = s.structure(has_end);
    let mut values = vec![0.0; structure.entries().len()];
    let start = KnotPoint {
        at,
        x: &x,
        u: &u,
        p,
        y: &y,
    };
    let here = UnsolvedStep {
        start,
        // as of the next state itself
        end: has_end.then_some(End {
            from: &next,
            state: &end,
        }),
    };
    s.derivatives(&here, &structure, &mut work(), &mut values)
        .expect("a state");
    pulls_are_products(s, work(), &here, &structure);
    // far fewer products than columns
    let most = 24 * n + d.nu + d.np + 12 + s.contacts.unknowns();
    assert!(structure.groups().len() <= most);
    let times = d.nf + d.nu + d.np + d.ny;
    let columns = Column::count(&d);
    let mut dense = nalgebra::DMatrix::zeros(d.ny + d.nf, columns);
    for (value, &place) in values.iter().zip(structure.entries()) {
        dense[place] = *value;
    }
    for i in 0..columns {
        let by = |e: f64| {
            let (mut c, mut u, mut p, mut y) = (vec![0.0; d.nf], u.clone(), p.clone(), y.clone());
            let (mut at, mut to) = (at, vec![0.0; d.nf]);
            match Column::at(&d, i) {
                Column::Before => at.h_prev += e,
                Column::After => at.h += e,
                Column::State(i) => c[i] = e,
                Column::Control(i) => u[i] += e,
                Column::Parameter(i) => p[i] += e,
                Column::Unknown(i) => y[i] += e,
                Column::End(i) => to[i] = e,
            }
            let (x, end) = (displaced(s, &x, &c), displaced(s, &end, &to));
            let (mut rows, to) = all(at, &x, &u, &p, &y, &end);
            rows.extend(difference(s, &next, &to));
            rows
        };
        let column: Vec<f64> = dense.column(i).iter().copied().collect();
        let name = match i < times {
            true => named(s, i, d.nf + d.nu),
            false => "",
        };
        let kind = Column::at(&d, i);
        let what = format!("{what}: {kind:?} {name}, with an end: {has_end}");
        assert_close(&column, &derivative(1e-4, by), 2e-7, &what);
    }
}

#[test]
fn they_are_those_of_trees_loops_and_elements() {
    for (i, (s, x)) in systems().into_iter().enumerate() {
        for has_end in [false, true] {
            let what = format!("system {i}");
            equations_have_their_derivatives(&s, situation(&s, &x, false), None, has_end, &what);
        }
    }
}

/// Moves and separations are inverse to each other, and derivatives toward a state are those of the separation from it.
#[test]
fn separations_take_back_moves() {
    for (s, x) in systems() {
        let (d, mut r) = (s.dims(), Source::new(5));
        let (move_, mut to, mut back) = (r.vector(d.nf, 0.4), x.clone(), vec![0.0; d.nf]);
        assert!(s.displace(&x, &move_, &mut to));
        s.separation(&x, &to, &mut back);
        assert_close(&back, &move_, 1e-12, "the way back");
        assert!(!s.displace(&x, &vec![2.5; d.nf], &mut to.clone()));
        let (weights, change) = (r.vector(d.nf, 1.0), r.vector(d.nf, 1.0));
        let along = derivative(1e-4, |e| {
            let (mut apart, mut moved) = (vec![0.0; d.nf], to.clone());
            let change: Vec<f64> = change.iter().map(|c| e * c).collect();
            assert!(s.displace(&to, &change, &mut moved));
            s.separation(&x, &moved, &mut apart);
            vec![apart.iter().zip(&weights).map(|(a, w)| a * w).sum()]
        });
        let mut pulled = weights.clone();
        s.pull_separation(&x, &to, &mut pulled);
        let product = pulled.iter().zip(&change).map(|(p, c)| p * c).sum();
        assert_close(&[product], &along, 1e-8, "the adjoint of a separation");
        let (at, x, u, y) = situation(&s, &x, false);
        let structure = s.structure(true);
        let mut values = vec![0.0; structure.entries().len()];
        let (x, u, p) = (&x[..], &u[..], &s.nominal[..]);
        let mut w = s.work();
        let start = KnotPoint { at, x, u, p, y: &y };
        let (from, state) = (&to[..], &to[..]);
        let end = Some(End { from, state });
        let here = UnsolvedStep { start, end };
        s.derivatives(&here, &structure, &mut w, &mut values)
            .expect("a state");
        let change = r.vector(d.ny, 0.1);
        let numeric = derivative(1e-4, |e| {
            let y: Vec<f64> = y.iter().zip(&change).map(|(y, c)| y + e * c).collect();
            let (mut next, mut out) = (x.to_vec(), vec![0.0; d.nf]);
            let moved = KnotPoint { at, x, u, p, y: &y };
            s.advance(&moved, &mut s.work(), &mut next)
                .expect("a state");
            s.separation(&to, &next, &mut out);
            out
        });
        let mut exact = vec![0.0; d.nf];
        let first = d.nf + d.nu + d.np;
        for (value, &(row, column)) in values.iter().zip(structure.entries()) {
            if row >= d.ny && (first..first + d.ny).contains(&column) {
                exact[row - d.ny] += value * change[column - first];
            }
        }
        assert_close(&exact, &numeric, 1e-7, "toward a state");
    }
}

/// A body that turns freely has two roots: at `h w` and at `sqrt(4 - (h w)^2)`, which has the same discrete momentum. The
/// second is no step; the domain leaves it out.
#[test]
fn roots_that_are_no_steps_are_outside_the_domain() {
    let body = BodySpec::new(1.0).inertia([0.1, 0.2, 0.3]).free();
    let builder = MechanismBuilder::new().gravity([0.0; 3]).body("top", body);
    let (h, turn) = (0.05, 0.8_f64);
    let rates = [0.0, 0.0, 0.0, 0.0, turn / h, 0.0];
    let mut run = Run::new(&builder, &[0.0; 6], &rates, h, Options::default());
    run.step();
    let (s, at, x) = (&run.system, run.at(), run.x.clone());
    let inside = x[11] * h;
    let other = (4.0 - inside * inside).sqrt();
    let mut w = s.work();
    for turn in [inside, other] {
        let mut y = vec![0.0; s.dims().ny];
        y[4] = turn / h;
        let start = KnotPoint {
            at,
            x: &x,
            u: &[],
            p: &s.nominal,
            y: &y,
        };
        let mut r = vec![1.0; y.len()];
        let step = UnsolvedStep { start, end: None };
        s.residual(&step, &mut w, &mut r).expect("a state");
        assert!(r.iter().all(|r| r.abs() < 1e-12), "{turn}: {r:?}");
    }
    let domain = s.domain(h);
    assert_eq!(domain.len(), 3);
    for (i, largest) in domain {
        assert!((3..6).contains(&i));
        assert!(inside < largest * h && largest * h < other);
    }
}
