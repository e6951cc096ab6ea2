//! Factorization and solution of one system: block LDU against faer's sparse LU.
//!
//! `cargo bench --bench block -- [FILTER]`
//!
//! - `block`: [`Solver`], which copies the matrix and factors the copy in place, and one solution;
//! - `fallback`: what [`Solver`] falls back to: faer's numeric factorization, the trial solution and the refinement that
//!   check it, and one refined solution. The symbolic part is made beforehand; all runs on one thread.
//!
//! Matrices: chains of so many hinged links in maximal coordinates, [D, -G'; h G, 0] with random D and G; a ladder, a
//! net and a crystal of random 6 x 6 blocks (paper 000, experiments 9b-d). Items are rows.

#[path = "../examples/common/graphs.rs"]
mod graphs;

use divan::Bencher;
use divan::counter::ItemsCount;
use least_action::block::{Fallback, Method, Node, Solver};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt;

fn main() {
    divan::main();
}

#[derive(Clone, Copy, Debug)]
enum Case {
    Hinges(usize),
    Grid([usize; 3]),
}

const CASES: [Case; 6] = [
    Case::Hinges(10),
    Case::Hinges(100),
    Case::Hinges(1000),
    Case::Grid([151, 2, 1]),
    Case::Grid([18, 18, 1]),
    Case::Grid([6, 6, 6]),
];

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Hinges(n) => write!(f, "hinges {n}"),
            Self::Grid([a, b, c]) => write!(f, "grid {a}x{b}x{c}"),
        }
    }
}

/// The matrix of a step of `n` hinged links: six rows a body, then five a hinge.
fn hinges(n: usize) -> (Solver, Vec<f64>) {
    let h = 0.01;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let mut nodes = vec![Node::regular(6); n];
    let mut edges = vec![];
    for i in 0..n {
        nodes.push(Node::constraint(5, i == 0));
        edges.push((i, n + i));
        if i > 0 {
            edges.push((i - 1, n + i));
        }
    }
    let mut matrix = Solver::new(&nodes, &edges).expect("valid");
    for i in 0..n {
        let mut d = graphs::numbers(&mut random, 36);
        for (k, d) in d.iter_mut().enumerate() {
            *d = 0.1 * *d + f64::from(k % 7 == 0);
        }
        matrix.block_mut(i, i).copy_from_slice(&d);
    }
    for &(body, joint) in &edges {
        let g = graphs::numbers(&mut random, 30);
        for (row, g) in g.chunks(6).enumerate() {
            for (col, g) in g.iter().enumerate() {
                matrix.block_mut(joint, body)[5 * col + row] = h * g;
                matrix.block_mut(body, joint)[6 * row + col] = -g;
            }
        }
    }
    let b = graphs::numbers(&mut random, 11 * n);
    (matrix, b)
}

fn system(case: Case) -> (Solver, Vec<f64>) {
    match case {
        Case::Hinges(n) => hinges(n),
        Case::Grid(size) => {
            let (nodes, edges) = graphs::grid(size);
            graphs::random(&nodes, &edges).expect("valid")
        }
    }
}

#[divan::bench(args = CASES, max_time = 2)]
fn block(bencher: Bencher, case: Case) {
    let (mut matrix, b) = system(case);
    assert_eq!(matrix.factor(), Ok(Method::Block));
    let mut x = b.clone();
    bencher.counter(ItemsCount::new(b.len())).bench_local(|| {
        x.copy_from_slice(&b);
        matrix.factor().and_then(|_| matrix.solve(&mut x))
    });
}

#[divan::bench(args = CASES, max_time = 2)]
fn fallback(bencher: Bencher, case: Case) {
    let (matrix, b) = system(case);
    let mut lu = Fallback::new(matrix.symbolic()).expect("enough memory");
    let mut x = b.clone();
    bencher.counter(ItemsCount::new(b.len())).bench_local(|| {
        x.copy_from_slice(&b);
        lu.factor(matrix.symbolic(), matrix.values())
            .and_then(|()| lu.solve(&mut x))
            .expect("regular");
    });
}
