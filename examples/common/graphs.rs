//! Matrices of 6 x 6 blocks on grids (experiments 9b-d of paper 000).

use least_action::block::{Node, PatternError, Solver};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Pairs of nodes that have blocks besides the diagonal ones.
pub type Edges = Vec<(usize, usize)>;

/// Points of an `a` x `b` x `c` grid, each joined to its neighbours along the axes: a ladder is n x 2 x 1, a net
/// n x n x 1, a crystal n x n x n.
pub fn grid([a, b, c]: [usize; 3]) -> (Vec<Node>, Edges) {
    let at = |i, j, k| (i * b + j) * c + k;
    let mut edges = vec![];
    for i in 0..a {
        for j in 0..b {
            for k in 0..c {
                let next = [(i + 1, j, k), (i, j + 1, k), (i, j, k + 1)];
                edges.extend(
                    next.iter()
                        .filter(|n| n.0 < a && n.1 < b && n.2 < c)
                        .map(|n| (at(i, j, k), at(n.0, n.1, n.2))),
                );
            }
        }
    }
    (vec![Node::regular(6); a * b * c], edges)
}

/// `n` numbers uniform in [-1, 1].
pub fn numbers(random: &mut Xoshiro256PlusPlus, n: usize) -> Vec<f64> {
    (0..n).map(|_| random.random_range(-1.0..=1.0)).collect()
}

/// A matrix whose blocks, diagonal ones too, are uniform in [-1, 1], and a right-hand side.
pub fn random(nodes: &[Node], edges: &Edges) -> Result<(Solver, Vec<f64>), PatternError> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut matrix = Solver::new(nodes, edges)?;
    for (row, col) in blocks(nodes.len(), edges) {
        let block = matrix.block_mut(row, col);
        block.copy_from_slice(&numbers(&mut random, block.len()));
    }
    let b = numbers(&mut random, matrix.symbolic().dim());
    Ok((matrix, b))
}

/// Rows and columns of all blocks.
pub fn blocks(nodes: usize, edges: &Edges) -> impl Iterator<Item = (usize, usize)> {
    let off_diagonal = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    (0..nodes).map(|i| (i, i)).chain(off_diagonal)
}
