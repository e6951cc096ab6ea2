//! The minimizer against the conditions of optimality, on instances without structure.

use super::hinges::{Hinges, Weights};
use crate::mechanism::samples::Source;

/// Decisions, constraints, and the part of these that are equalities.
fn instance(source: &mut Source, n: usize, m: usize, equalities: usize) -> Hinges {
    let root = source.vector(n * n, 1.0);
    let mut h = vec![0.0; n * n];
    for j in 0..n {
        for i in 0..n {
            h[i + j * n] = (0..n).map(|k| root[i + k * n] * root[j + k * n]).sum();
        }
        h[j + j * n] += 1e-3;
    }
    Hinges {
        g: source.vector(n, 3.0),
        costs: (0..n).map(|i| h[i + i * n]).collect(),
        h,
        rows: source.vector(n * m, 1.0),
        c: source.vector(m, 1.0),
        equal: (0..m).map(|i| i < equalities).collect(),
    }
}

/// Moves the constraints so that all hold with some room at a point.
fn made_feasible(mut q: Hinges, source: &mut Source) -> Hinges {
    let n = q.g.len();
    let point = source.vector(n, 1.0);
    for (i, row) in q.rows.chunks_exact(n).enumerate() {
        let room = if q.equal[i] {
            0.0
        } else {
            0.5 * (1.0 + source.unit())
        };
        q.c[i] = -row.iter().zip(&point).map(|(a, d)| a * d).sum::<f64>() - room;
    }
    q
}

fn row_at(q: &Hinges, i: usize, d: &[f64]) -> f64 {
    let row = &q.rows[i * d.len()..(i + 1) * d.len()];
    q.c[i] + row.iter().zip(d).map(|(a, d)| a * d).sum::<f64>()
}

fn estimate(q: &Hinges, by: Weights, i: usize, d: &[f64]) -> f64 {
    let f = by.multipliers[i] + by.penalty * row_at(q, i, d);
    if q.equal[i] { f } else { f.max(0.0) }
}

/// `m(d) - m(0)` with damping, as it is defined.
fn value(q: &Hinges, by: Weights, damping: f64, d: &[f64]) -> f64 {
    let n = d.len();
    let zero = vec![0.0; n];
    let mut sum = 0.0;
    for j in 0..n {
        sum += q.g[j] * d[j];
        sum += 0.5 * damping * q.h[j + j * n] * d[j] * d[j];
        for i in 0..n {
            sum += 0.5 * d[i] * q.h[i + j * n] * d[j];
        }
    }
    for i in 0..q.c.len() {
        let both = [d, &zero].map(|d| estimate(q, by, i, d).powi(2));
        sum += (both[0] - both[1]) / (2.0 * by.penalty);
    }
    sum
}

#[test]
fn nothing_near_is_below_the_minimum() {
    let mut source = Source::new(3);
    for (n, m, equalities) in [
        (1, 3, 0),
        (1, 40, 1),
        (2, 30, 0),
        (4, 400, 2),
        (5, 60, 5),
        (3, 0, 0),
    ] {
        for case in 0..20 {
            let q = instance(&mut source, n, m, equalities);
            let multipliers: Vec<f64> = (0..m)
                .map(|i| {
                    let l = source.unit();
                    if q.equal[i] { l } else { l.max(0.0) }
                })
                .collect();
            let by = Weights {
                multipliers: &multipliers,
                penalty: [0.1, 1.0, 100.0][case % 3],
            };
            let damping = [0.0, 0.3][case % 2];
            let found = q.minimize(by, damping).expect("numbers");
            assert_eq!(q.minimize(by, damping).as_ref(), Some(&found), "same bits");
            let here = value(&q, by, damping, &found.d);
            let gain = -value(&q, by, 0.0, &found.d);
            assert!((found.gain - gain).abs() < 1e-9 * gain.abs().max(1.0));
            // convex: what is a minimum of all near is the minimum
            for size in [1e-3, 1e-1, 1.0] {
                for _ in 0..50 {
                    let mut other = source.vector(n, size);
                    other.iter_mut().zip(&found.d).for_each(|(o, d)| *o += d);
                    let there = value(&q, by, damping, &other);
                    assert!(
                        there >= here - 1e-11 * here.abs().max(1.0),
                        "{there} {here}"
                    );
                }
            }
            // and its slope is none, by differences, which are exact between kinks and small across them
            let e = 1e-4;
            for j in 0..n {
                let at = |e: f64| {
                    let mut d = found.d.clone();
                    d[j] += e;
                    value(&q, by, damping, &d)
                };
                let slope = (at(e) - at(-e)) / (2.0 * e);
                let scale = by.penalty * m as f64 + 1.0;
                assert!(slope.abs() < e * scale, "{slope}");
            }
        }
    }
}

/// `H d + g + A'l = 0`, multipliers of inequalities not negative, and zero where these do not hold as equalities.
#[test]
fn multipliers_are_those_of_the_quadratic_program() {
    let mut source = Source::new(8);
    for (n, m, equalities) in [(1, 5, 0), (2, 50, 0), (4, 1000, 0), (4, 30, 2), (6, 9, 6)] {
        for _ in 0..10 {
            let q = instance(&mut source, n, m, equalities);
            let q = made_feasible(q, &mut source);
            let zeros = vec![0.0; m];
            let from = Weights {
                multipliers: &zeros,
                penalty: 0.1,
            };
            let tolerance = 1e-9;
            let found = q.multipliers(from, tolerance).expect("feasible");
            assert_eq!(q.multipliers(from, tolerance).as_ref(), Some(&found));
            // with them the minimum of the model is the solution, whatever the penalty
            let by = Weights {
                multipliers: &found,
                penalty: 0.1,
            };
            let d = q.minimize(by, 0.0).expect("numbers").d;
            let size = found.iter().fold(1.0, |m: f64, l| m.max(l.abs()));
            for j in 0..n {
                let mut slope = q.g[j];
                slope += (0..n).map(|i| q.h[i + j * n] * d[i]).sum::<f64>();
                slope += (0..m).map(|i| q.rows[i * n + j] * found[i]).sum::<f64>();
                assert!(slope.abs() < 1e-6 * size, "{slope} of {size}");
            }
            for (i, l) in found.iter().enumerate() {
                let c = row_at(&q, i, &d);
                if q.equal[i] {
                    assert!(c.abs() < 1e-6 * size, "{c}");
                } else {
                    let holds = c < 1e-6 * size && (*l == 0.0 || c > -1e-6 * size);
                    assert!(*l >= 0.0 && holds, "{l} {c}");
                }
            }
        }
    }
}

/// `d <= -1` and `d >= 1`.
#[test]
fn what_contradicts_itself_has_no_multipliers() {
    let q = Hinges {
        g: vec![0.5],
        h: vec![1.0],
        costs: vec![1.0],
        rows: vec![1.0, -1.0],
        c: vec![1.0, 1.0],
        equal: vec![false; 2],
    };
    let zeros = [0.0; 2];
    let from = Weights {
        multipliers: &zeros,
        penalty: 1.0,
    };
    assert_eq!(q.multipliers(from, 1e-9), None);
    // not numbers
    let q = Hinges {
        h: vec![f64::NAN],
        ..q
    };
    assert_eq!(q.minimize(from, 0.0), None);
}

/// Where nothing is curved the step is bounded still, and without decisions there is none.
#[test]
fn flat_models_and_empty_ones_end() {
    let q = Hinges {
        g: vec![1.0],
        h: vec![0.0],
        costs: vec![0.0],
        rows: vec![-1.0],
        c: vec![-2.0],
        equal: vec![false],
    };
    let zeros = [0.0];
    let by = Weights {
        multipliers: &zeros,
        penalty: 10.0,
    };
    // down to where the hinge pushes as much
    let d = q.minimize(by, 0.0).expect("numbers").d[0];
    assert!((d + 2.1).abs() < 1e-9, "{d}");
    let none = Hinges {
        c: vec![1.0],
        equal: vec![false],
        ..Hinges::default()
    };
    let least = none.minimize(by, 0.0).expect("numbers");
    assert_eq!((least.d, least.gain), (vec![], 0.0));
}
