use super::{Inertia, Symmetric};
use crate::block::tests::Random;
use faer::{Mat, Side};

/// The dense matrix of entries.
fn dense(n: usize, entries: &[(usize, usize)], values: &[f64]) -> Mat<f64> {
    let mut a = Mat::zeros(n, n);
    for (&(i, j), v) in entries.iter().zip(values) {
        a[(i, j)] += v;
        if i != j {
            a[(j, i)] += v;
        }
    }
    a
}

/// Inertia by eigenvalues.
fn counted(a: &Mat<f64>) -> Inertia {
    let values = a.self_adjoint_eigenvalues(Side::Lower).unwrap();
    let largest = values.iter().fold(0.0_f64, |l, v| l.max(v.abs()));
    let mut out = Inertia::default();
    for v in values {
        *(if v.abs() <= 1e-12 * largest {
            &mut out.zero
        } else if v > 0.0 {
            &mut out.positive
        } else {
            &mut out.negative
        }) += 1;
    }
    out
}

fn unit(r: &mut Random) -> f64 {
    r.below(2_000_001) as f64 / 1e6 - 1.0
}

/// Saddle points `[H, J'; J, 0]` of a chain of stages: `H` indefinite, `J` of full rank.
fn saddle(
    r: &mut Random,
    stages: usize,
    n: usize,
    m: usize,
) -> (Vec<(usize, usize)>, Vec<f64>, usize) {
    let size = n + m;
    let (mut entries, mut values) = (vec![], vec![]);
    let mut set = |i, j, v| {
        entries.push((i, j));
        values.push(v);
    };
    for k in 0..stages {
        let at = k * size;
        for i in 0..n {
            for j in 0..=i {
                if r.below(3) > 0 {
                    set(at + i, at + j, unit(r));
                }
            }
        }
        for i in 0..m {
            for j in 0..n {
                if r.below(2) > 0 {
                    set(at + n + i, at + j, unit(r));
                }
                if k + 1 < stages && r.below(3) == 0 {
                    set(at + size + j, at + n + i, unit(r));
                }
            }
        }
    }
    (entries, values, stages * size)
}

#[test]
fn solutions_and_inertia_are_those_of_the_matrix() {
    for seed in 0..60 {
        let r = &mut Random(seed);
        let (stages, n, m) = (1 + r.below(12), 2 + r.below(9), 1 + r.below(4));
        let (entries, values, dim) = saddle(r, stages, n, m.min(n));
        let a = dense(dim, &entries, &values);
        // each by itself, in pairs, or by stages
        for width in [1, 2, n + m.min(n)] {
            let group: Vec<usize> = (0..dim).map(|i| i / width).collect();
            let mut s = Symmetric::new(&entries, &group);
            for threshold in [1e-8, 0.01, 0.4] {
                let inertia = s.factor(&values, threshold).unwrap();
                let expected = counted(&a);
                // small pivots hide what is singular: growth by their inverse leaves nothing of zeros
                if expected.zero > 0 {
                    assert!(inertia.zero > 0 || threshold < 1e-3, "seed {seed}");
                    continue;
                }
                assert_eq!(inertia, expected, "seed {seed}, groups of {width}");
                let x: Vec<f64> = (0..dim).map(|_| unit(r)).collect();
                let mut b: Vec<f64> = (0..dim)
                    .map(|i| (0..dim).map(|j| a[(i, j)] * x[j]).sum())
                    .collect();
                s.solve(&mut b);
                let error = b
                    .iter()
                    .zip(&x)
                    .fold(0.0_f64, |e, (b, x)| e.max((b - x).abs()));
                let allowed = if threshold < 1e-3 { 1e-4 } else { 1e-8 };
                assert!(error < allowed, "seed {seed}: {error:.1e}");
            }
        }
    }
}

/// Fronts of several windows, whose updates are products: one of all, and one after others that hand on what they cannot pivot
/// with (all rows first).
#[test]
fn large_fronts_are_as_right_as_small_ones() {
    for seed in 0..4 {
        let r = &mut Random(seed);
        let (n, m) = (90, 50);
        let (entries, values, dim) = saddle(r, 1, n, m);
        let a = dense(dim, &entries, &values);
        let rows_first = (0..dim).map(|i| usize::from(i < n)).collect();
        for (group, hands_on) in [(vec![0; dim], false), (rows_first, true)] {
            let mut s = Symmetric::new(&entries, &group);
            assert_eq!(s.factor(&values, 0.1), Some(counted(&a)), "seed {seed}");
            assert!(!hands_on || s.handed_on() >= m || s.fronts.len() == 1);
            let x: Vec<f64> = (0..dim).map(|_| unit(r)).collect();
            let mut b: Vec<f64> = (0..dim)
                .map(|i| (0..dim).map(|j| a[(i, j)] * x[j]).sum())
                .collect();
            s.solve(&mut b);
            let errors = b.iter().zip(&x).map(|(b, x)| (b - x).abs());
            assert!(errors.fold(0.0, f64::max) < 1e-8, "seed {seed}");
        }
    }
}

#[test]
fn what_is_not_determined_is_counted() {
    // a row that is twice another one, and a variable that is nowhere
    let entries = [(0, 0), (1, 1), (3, 0), (3, 1), (4, 0), (4, 1)];
    let values = [2.0, 1.0, 1.0, 1.0, 2.0, 2.0];
    let mut s = Symmetric::new(&entries, &[0, 1, 2, 3, 4]);
    let inertia = s.factor(&values, 0.01).unwrap();
    let expected = Inertia {
        positive: 2,
        negative: 1,
        zero: 2,
    };
    assert_eq!(inertia, expected);
    assert_eq!(s.factor(&[f64::NAN; 6], 0.01), None);
}

#[test]
fn zero_diagonals_need_pairs() {
    let mut s = Symmetric::new(&[(1, 0)], &[0, 1]);
    let inertia = s.factor(&[3.0], 0.01).unwrap();
    assert_eq!((inertia.positive, inertia.negative), (1, 1));
    let mut b = [6.0, 9.0];
    s.solve(&mut b);
    assert_eq!(b, [3.0, 2.0]);
    assert_eq!(s.handed_on(), 0);
}
