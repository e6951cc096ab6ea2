//! The factorization A = Lhat U: U has unit diagonal, Lhat keeps the pivot blocks.
//!
//! Eliminating node p with later neighbours i, j (block Crout form, one product per pair i, j):
//!
//! ```text
//! D_p <- D_p^-1,   U_pj = D_p^-1 A_pj,   A_ij <- A_ij - A_ip U_pj
//! ```
//!
//! Memory: the blocks of p lie together, `[D_p | U_pj ... | A_ip ...]`, nodes in elimination order, so that everything
//! p changes lies behind it and a factorization walks through memory once.

use std::ops::Range;

use super::order::{self, Elimination};
use super::{Node, PatternError, kernel};
use crate::spatial::wide;

/// A pivot block that cannot be inverted; see [`Symbolic::factor`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "the pivot block of node {node} is singular: cancellation leaves only {ratio:.1e} of its diagonal"
)]
pub struct BadPivot {
    /// The node whose block could not be inverted.
    pub node: usize,
    /// Part of the diagonal that cancellation has left; 0 for a vanishing or non-finite pivot.
    pub ratio: f64,
}

/// Pattern, elimination order and memory layout of a block matrix, and the list of operations that factors it.
#[derive(Clone, Debug)]
pub struct Symbolic {
    order: Vec<usize>,
    /// Per node, its place in `pivots`.
    position: Vec<usize>,
    pub(super) pivots: Vec<Pivot>,
    pub(super) edges: Vec<Edge>,
    updates: Vec<Update>,
    /// Blocks end here in the value array; the peaks of [`kernel::invert`], `dim` of them, follow.
    blocks: usize,
    pub(super) dim: usize,
}

/// One elimination.
#[derive(Clone, Debug)]
pub(super) struct Pivot {
    pub(super) node: usize,
    pub(super) rows: Rows,
    /// Its blocks in the value array: the diagonal block, all U_pj, all A_ip.
    pub(super) values: Range<usize>,
    /// End of the U_pj, relative to `values.start`.
    pub(super) upper_end: usize,
    pub(super) edges: Range<usize>,
    pub(super) updates: Range<usize>,
}

/// Where the rows of a node are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) size: usize,
    /// Offset in the user's vectors: natural order.
    pub(super) natural: usize,
    /// Offset in elimination order.
    pub(super) packed: usize,
}

/// One later neighbour i of a pivot p; offsets are relative to the pivot's values.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) position: usize,
    pub(super) rows: Rows,
    /// U_pi, (size of p) x (size of i).
    pub(super) upper: usize,
    /// A_ip, (size of i) x (size of p).
    pub(super) lower: usize,
    pub(super) fill: bool,
}

/// A_ij -= A_ip U_pj. `lower` and `upper` are relative to the pivot's values, `target` to their end.
#[derive(Clone, Debug)]
struct Update {
    rows: usize,
    columns: usize,
    lower: usize,
    upper: usize,
    target: usize,
    /// If i = j, the packed offset of its rows.
    diagonal: Option<usize>,
}

impl Symbolic {
    /// Orders the nodes and lays out the blocks: one per node, two per edge, and the fill.
    ///
    /// # Errors
    /// An edge that names no node or joins a node to itself, a node of size 0 or above 64, a constraint without a regular
    /// neighbour. Edges may be repeated.
    pub fn new(nodes: &[Node], edges: &[(usize, usize)]) -> Result<Self, PatternError> {
        let neighbours = super::neighbours(nodes, edges)?;
        let Elimination { order, later } = order::eliminate(nodes, &neighbours);
        let mut position = vec![0; nodes.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(at, &node)| position[node] = at);

        let mut rows = Vec::with_capacity(nodes.len());
        let mut dim = 0;
        for node in nodes {
            rows.push(Rows {
                size: node.size,
                natural: dim,
                packed: 0,
            });
            dim += node.size;
        }
        let mut packed = 0;
        for &node in &order {
            rows[node].packed = packed;
            packed += nodes[node].size;
        }

        let mut symbolic = Self {
            order,
            position,
            pivots: vec![],
            edges: vec![],
            updates: vec![],
            blocks: 0,
            dim,
        };
        for at in 0..nodes.len() {
            symbolic.lay_out(at, &rows, &later, &neighbours);
        }
        for at in 0..nodes.len() {
            symbolic.list_updates(at);
        }
        Ok(symbolic)
    }

    /// Places the blocks of the pivot at `at` behind those of its predecessors.
    fn lay_out(
        &mut self,
        at: usize,
        rows: &[Rows],
        later: &[Vec<usize>],
        neighbours: &[Vec<usize>],
    ) {
        let node = self.order[at];
        let size = rows[node].size;
        let width: usize = later[node].iter().map(|&n| rows[n].size).sum();
        let first_edge = self.edges.len();
        let mut upper = size * size;
        let mut lower = upper + size * width;
        for &other in &later[node] {
            self.edges.push(Edge {
                position: self.position[other],
                rows: rows[other],
                upper,
                lower,
                fill: neighbours[node].binary_search(&other).is_err(),
            });
            upper += size * rows[other].size;
            lower += size * rows[other].size;
        }
        self.pivots.push(Pivot {
            node,
            rows: rows[node],
            values: self.blocks..self.blocks + lower,
            upper_end: upper,
            edges: first_edge..self.edges.len(),
            updates: 0..0,
        });
        self.blocks += lower;
    }

    /// Lists the products that eliminating the pivot at `at` subtracts from later blocks.
    fn list_updates(&mut self, at: usize) {
        let pivot = &self.pivots[at];
        let start = self.updates.len();
        for i in &self.edges[pivot.edges.clone()] {
            for j in &self.edges[pivot.edges.clone()] {
                let target = self
                    .block(i.position, j.position)
                    .expect("neighbours of a pivot become neighbours");
                self.updates.push(Update {
                    rows: i.rows.size,
                    columns: j.rows.size,
                    lower: i.lower,
                    upper: j.upper,
                    target: target - pivot.values.end,
                    diagonal: (i.position == j.position).then_some(i.rows.packed),
                });
            }
        }
        self.pivots[at].updates = start..self.updates.len();
    }

    /// Offset of the block with the given positions in the elimination order.
    fn block(&self, row: usize, column: usize) -> Option<usize> {
        let pivot = &self.pivots[row.min(column)];
        if row == column {
            return Some(pivot.values.start);
        }
        let edges = &self.edges[pivot.edges.clone()];
        let edge = &edges[edges
            .binary_search_by_key(&row.max(column), |e| e.position)
            .ok()?];
        Some(pivot.values.start + if row < column { edge.upper } else { edge.lower })
    }

    /// Scalar dimension of the matrix.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.pivots.len()
    }

    /// Rows of `node`.
    pub fn size(&self, node: usize) -> usize {
        self.pivots[self.position[node]].rows.size
    }

    /// First row of `node` in right-hand sides and solutions, which are in natural node order.
    pub fn offset(&self, node: usize) -> usize {
        self.pivots[self.position[node]].rows.natural
    }

    /// Length of the value array: all blocks, fill included, and `dim` scalars of workspace for [`Symbolic::factor`].
    pub fn values_len(&self) -> usize {
        self.blocks + self.dim
    }

    /// Offset in the value array of the block (row, col), column-major with leading dimension `size(row)`. Fill blocks
    /// have a slot too and must be zero before factoring; `None` means that the block is zero throughout.
    pub fn slot(&self, row: usize, col: usize) -> Option<usize> {
        self.block(*self.position.get(row)?, *self.position.get(col)?)
    }

    /// Nodes in the order of elimination.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Number of pairs of off-diagonal blocks that are zero in the matrix and not in its factors.
    pub fn fill_in(&self) -> usize {
        self.edges.iter().filter(|e| e.fill).count()
    }

    /// The blocks of the matrix itself, without fill: row, column, slot.
    pub fn blocks(&self) -> Vec<(usize, usize, usize)> {
        self.original_blocks().collect()
    }

    /// The edges of the matrix itself: node pairs with their slots, (row, col) and (col, row) both; diagonal included.
    pub(super) fn original_blocks(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.pivots.iter().flat_map(move |p| {
            let start = p.values.start;
            let edges = self.edges[p.edges.clone()]
                .iter()
                .filter(|e| !e.fill)
                .flat_map(move |e| {
                    let other = self.order[e.position];
                    [
                        (p.node, other, start + e.upper),
                        (other, p.node, start + e.lower),
                    ]
                });
            std::iter::once((p.node, p.node, start)).chain(edges)
        })
    }

    /// Replaces the matrix in `values` by its factors. Allocates nothing.
    ///
    /// # Errors
    /// The first pivot block that is singular to working precision. A matrix can be regular and still have such a block,
    /// since rows are exchanged only inside a block; [`super::Solver`] then turns to a pivoted factorization. `values` is
    /// left half factored.
    ///
    /// # Panics
    /// If `values` does not have length [`Symbolic::values_len`].
    pub fn factor(&self, values: &mut [f64]) -> Result<(), BadPivot> {
        assert_eq!(values.len(), self.values_len(), "length of the value array");
        wide!(self.eliminate(values))
    }

    #[inline(always)]
    fn eliminate(&self, values: &mut [f64]) -> Result<(), BadPivot> {
        let (blocks, peaks) = values.split_at_mut(self.blocks);
        peaks.fill(0.0);
        for p in &self.pivots {
            let size = p.rows.size;
            let (own, later) = blocks[p.values.start..].split_at_mut(p.values.len());
            let (diagonal, off_diagonal) = own.split_at_mut(size * size);
            kernel::invert(diagonal, &peaks[p.rows.packed..][..size]).map_err(|ratio| {
                BadPivot {
                    node: p.node,
                    ratio,
                }
            })?;
            kernel::apply::<false, false>(
                size,
                diagonal,
                &mut off_diagonal[..p.upper_end - size * size],
            );
            for u in &self.updates[p.updates.clone()] {
                let target = &mut later[u.target..][..u.rows * u.columns];
                if let Some(packed) = u.diagonal {
                    kernel::raise_peaks(target, &mut peaks[packed..][..u.rows]);
                }
                let lower = &own[u.lower..][..u.rows * size];
                let upper = &own[u.upper..][..size * u.columns];
                kernel::subtract_product::<false, false>(u.rows, size, lower, upper, target);
            }
        }
        Ok(())
    }
}

impl Symbolic {
    /// The smallest ratio of a pivot block's last pivots to what its rows held before elimination took from them, at most
    /// 1: digits that cancellation has left. `factored` is what [`Symbolic::factor`] made.
    pub fn smallest_pivot(&self, factored: &[f64]) -> f64 {
        let (blocks, peaks) = factored.split_at(self.blocks);
        let growth = |size: usize, diagonal: &[f64], peaks: &[f64]| -> f64 {
            (0..size)
                .map(|i| peaks[i] * diagonal[i * (size + 1)].abs())
                .sum()
        };
        let worst = self.pivots.iter().map(|p| {
            let (size, packed) = (p.rows.size, p.rows.packed);
            growth(
                size,
                &blocks[p.values.start..],
                &peaks[packed..packed + size],
            )
        });
        1.0 / worst.fold(1.0, f64::max)
    }
}

impl Rows {
    /// In the user's vectors.
    #[inline(always)]
    pub(super) fn range(self) -> Range<usize> {
        self.natural..self.natural + self.size
    }
}

impl Edge {
    /// What carries x_p to row i, from the values of the pivot p of the given size: A_ip, or U_pi to be transposed.
    #[inline(always)]
    pub(super) fn outward<'a, const TRANSPOSED: bool>(
        &self,
        own: &'a [f64],
        size: usize,
    ) -> &'a [f64] {
        &own[if TRANSPOSED { self.upper } else { self.lower }..][..size * self.rows.size]
    }

    /// What carries x_i to row p: U_pi, or A_ip to be transposed.
    #[inline(always)]
    pub(super) fn inward<'a, const TRANSPOSED: bool>(
        &self,
        own: &'a [f64],
        size: usize,
    ) -> &'a [f64] {
        &own[if TRANSPOSED { self.lower } else { self.upper }..][..size * self.rows.size]
    }
}
