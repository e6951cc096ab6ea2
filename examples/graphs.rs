//! Experiments 9b-d of paper 000: linear systems on ladders, nets and crystals of growing size.
//!
//! `cargo run --release --example graphs -- [DENSE]`
//!
//! Every node has 6 unknowns, every edge two blocks; all numbers are random. Each system is solved with block LDU,
//! with faer's sparse LU (both with their ordering made beforehand) and, up to DENSE unknowns (2000), with nalgebra's
//! dense LU. Prints the times of factorization and solution, the pairs of off-diagonal blocks that the matrix has and
//! that elimination adds, and the largest difference between any two solutions after one sweep of refinement, beside
//! the largest number of the solution. Fails when that exceeds 1e-10.

#[path = "common/graphs.rs"]
mod graphs;

use faer::linalg::solvers::Solve;
use faer::sparse::linalg::solvers::{Lu, SymbolicLu};
use faer::sparse::{SparseColMat, Triplet};
use faer::{ColMut, Par};
use least_action::block::{Solver, Symbolic};
use nalgebra::{DMatrix, DVector};
use std::time::Instant;

/// The same matrix entry by entry.
fn sparse(matrix: &Solver, edges: &graphs::Edges) -> SparseColMat<usize, f64> {
    let s = matrix.symbolic();
    let mut entries = vec![];
    for (row, col) in graphs::blocks(s.nodes(), edges) {
        let slot = s.slot(row, col).expect("an edge of the graph");
        for (i, &v) in matrix.values()[slot..][..s.size(row) * s.size(col)]
            .iter()
            .enumerate()
        {
            let (r, c) = (i % s.size(row), i / s.size(row));
            entries.push(Triplet::new(s.offset(row) + r, s.offset(col) + c, v));
        }
    }
    SparseColMat::try_new_from_triplets(s.dim(), s.dim(), &entries)
        .expect("every block lies inside the matrix")
}

/// Milliseconds, the least of a few runs, and the result.
fn timed<T>(runs: usize, mut f: impl FnMut() -> T) -> (f64, T) {
    let mut once = || {
        let start = Instant::now();
        let result = f();
        (1e3 * start.elapsed().as_secs_f64(), result)
    };
    let (mut least, mut result) = once();
    for _ in 1..runs {
        let (t, r) = once();
        (least, result) = (least.min(t), r);
    }
    (least, result)
}

/// One sweep of refinement: x += A^-1 (b - A x).
fn refine(s: &Symbolic, values: &[f64], b: &[f64], x: &mut [f64], solve: impl Fn(&mut [f64])) {
    let mut r = vec![0.0; b.len()];
    s.multiply(values, x, &mut r);
    r.iter_mut().zip(b).for_each(|(r, b)| *r = b - *r);
    solve(&mut r);
    x.iter_mut().zip(r).for_each(|(x, d)| *x += d);
}

/// Prints a line; returns the difference of the solutions.
fn compare(name: &str, size: [usize; 3], dense: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let (nodes, edges) = graphs::grid(size);
    let (matrix, b) = graphs::random(&nodes, &edges)?;
    let (s, values, dim) = (matrix.symbolic(), matrix.values(), b.len());

    let mut factors = values.to_vec();
    let (block_ms, solved) = timed(5, || {
        factors.copy_from_slice(values);
        s.factor(&mut factors).map(|()| {
            let mut x = b.clone();
            s.solve(&factors, &mut x);
            x
        })
    });
    let mut x = solved?;
    refine(s, values, &b, &mut x, |r| s.solve(&factors, r));

    let scalars = sparse(&matrix, &edges);
    let symbolic = SymbolicLu::try_new(scalars.symbolic())?;
    let (sparse_ms, solved) = timed(5, || {
        Lu::try_new_with_symbolic(symbolic.clone(), scalars.as_ref()).map(|lu| {
            let mut x = b.clone();
            lu.solve_in_place(ColMut::from_slice_mut(&mut x));
            (lu, x)
        })
    });
    let (lu, mut other) = solved.map_err(|e| format!("{e:?}"))?;
    refine(s, values, &b, &mut other, |r| {
        lu.solve_in_place(ColMut::from_slice_mut(r));
    });
    let mut solutions = vec![x, other];

    let mut dense_ms = None;
    if dim <= dense {
        let mut full = DMatrix::zeros(dim, dim);
        for t in scalars.triplet_iter() {
            full[(t.row, t.col)] = *t.val;
        }
        let right = DVector::from_column_slice(&b);
        let (ms, (lu, solved)) = timed(1, || {
            let lu = full.clone().lu();
            let x = lu.solve(&right);
            (lu, x)
        });
        let mut x = solved.ok_or("the dense matrix is singular")?;
        refine(s, values, &b, x.as_mut_slice(), |r| {
            if let Some(d) = lu.solve(&DVector::from_column_slice(r)) {
                r.copy_from_slice(d.as_slice());
            }
        });
        solutions.push(x.as_slice().to_vec());
        dense_ms = Some(ms);
    }

    let largest = solutions[0].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let mut difference = 0.0_f64;
    for (i, x) in solutions.iter().enumerate() {
        for (x, y) in solutions[..i].iter().flat_map(|y| x.iter().zip(y)) {
            let d = (x - y).abs() / largest;
            // `max` would lose a NaN
            difference = if d > difference || d.is_nan() {
                d
            } else {
                difference
            };
        }
    }
    let [a, b, c] = size;
    println!(
        "{name:8} {:>9} {dim:8} {:6} {:6} {block_ms:9.3} {sparse_ms:9.3} {:>9} {difference:11.1e}",
        format!("{a}x{b}x{c}"),
        edges.len(),
        s.fill_in(),
        dense_ms.map_or("-".into(), |ms| format!("{ms:.1}")),
    );
    Ok(difference)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dense = std::env::args().nth(1).map_or(Ok(2000), |a| a.parse())?;
    // all methods on one thread
    faer::set_global_parallelism(Par::Seq);
    println!(
        "{:8} {:>9} {:>8} {:>6} {:>6} {:>9} {:>9} {:>9} {:>11}",
        "graph",
        "size",
        "unknowns",
        "edges",
        "fill",
        "block ms",
        "faer ms",
        "dense ms",
        "difference"
    );
    let mut cases = vec![];
    cases.extend([10, 25, 50, 75, 100, 151].map(|n| ("ladder", [n, 2, 1])));
    cases.extend([3, 6, 9, 12, 15, 18].map(|n| ("net", [n, n, 1])));
    cases.extend([2, 3, 4, 5, 6].map(|n| ("crystal", [n, n, n])));
    let mut worst = 0.0_f64;
    for (name, size) in cases {
        let d = compare(name, size, dense)?;
        worst = if d > worst || d.is_nan() { d } else { worst };
    }
    if worst.is_nan() || worst > 1e-10 {
        return Err(format!("the solutions differ by {worst:.1e}").into());
    }
    Ok(())
}
