//! Sparse matrices made of small dense blocks on a graph.
//!
//! A node of the graph is a group of rows and the columns of the same numbers; an edge is a pair of off-diagonal blocks.
//! The block pattern is symmetric, the values are not. [`Symbolic`] orders the nodes, lays out the blocks in one flat
//! array and factors that array in place without pivoting between blocks; on trees it creates no fill and takes time
//! linear in the number of nodes. [`Solver`] adds the safeguards: refinement, and faer's pivoted LU when a block fails.
//!
//! Nothing here knows mechanics, but the rows of a constraint have a place: their own diagonal block is (nearly) zero, as
//! in the saddle-point matrices `[M, -G'; h G, 0]`, so they are eliminated only after what makes them invertible.
//!
//! ```
//! use least_action::block::{Node, Role, Solver};
//!
//! // A particle of mass 2 on the line x + y = 0, pushed along x:  [M, -G'; G, 0] (v, l) = (f, 0).
//! let nodes = [Node::regular(2), Node::constraint(1, true)];
//! let mut solver = Solver::new(&nodes, &[(0, 1)])?;
//! solver.block_mut(0, 0).copy_from_slice(&[2.0, 0.0, 0.0, 2.0]);
//! solver.block_mut(0, 1).copy_from_slice(&[-1.0, -1.0]);
//! solver.block_mut(1, 0).copy_from_slice(&[1.0, 1.0]);
//! solver.factor()?;
//! let mut x = [1.0, 0.0, 0.0];
//! solver.solve(&mut x)?;
//! assert_eq!(x, [0.25, -0.25, -0.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod condensed;
mod fallback;
mod kernel;
mod ldu;
mod order;
pub(crate) mod small;
mod solve;
mod symmetric;
#[cfg(test)]
mod tests;

pub use condensed::{Condensed, Determined};
pub use fallback::{Fallback, FallbackError};
pub use ldu::{BadPivot, Symbolic};
pub use solve::Scratch;
pub use symmetric::{Inertia, Symmetric};

/// When the diagonal block of a node can be inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its own diagonal block is invertible: it may be eliminated at any time.
    Regular,
    /// Its own diagonal block is (nearly) zero: it may be eliminated once its eliminated neighbours make it invertible.
    Constraint {
        /// It also ties its neighbours to something outside the graph.
        anchored: bool,
    },
}

/// A group of rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number of rows, 1 to 64.
    pub size: usize,
    /// When it can be eliminated.
    pub role: Role,
}

impl Node {
    /// A node with an invertible diagonal block.
    pub const fn regular(size: usize) -> Self {
        Self {
            size,
            role: Role::Regular,
        }
    }

    /// A node whose diagonal block is (nearly) zero; `anchored` if it also ties its neighbours to the outside.
    pub const fn constraint(size: usize, anchored: bool) -> Self {
        Self {
            size,
            role: Role::Constraint { anchored },
        }
    }
}

/// What is wrong with a list of nodes and edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// An edge names a node that does not exist.
    #[error("edge {edge} names node {node}, but there are only {nodes} nodes")]
    NoSuchNode {
        /// Index in the list of edges.
        edge: usize,
        /// The node it names.
        node: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// An edge joins a node to itself.
    #[error("edge {edge} joins node {node} to itself; diagonal blocks need no edge")]
    SelfLoop {
        /// Index in the list of edges.
        edge: usize,
        /// The node.
        node: usize,
    },
    /// A node has no rows, or more than a kernel can hold.
    #[error("node {node} has {size} rows; 1 to {} are possible", kernel::MAX_SIZE)]
    Size {
        /// The node.
        node: usize,
        /// Its rows.
        size: usize,
    },
    /// Nothing can make this constraint's block invertible.
    #[error("constraint node {node} has no regular neighbour, so its rows are singular")]
    LooseConstraint {
        /// The constraint.
        node: usize,
    },
}

/// Checks nodes and edges; for each node its neighbours, sorted, without repetition.
fn neighbours(nodes: &[Node], edges: &[(usize, usize)]) -> Result<Vec<Vec<usize>>, PatternError> {
    for (node, &Node { size, .. }) in nodes.iter().enumerate() {
        if size == 0 || size > kernel::MAX_SIZE {
            return Err(PatternError::Size { node, size });
        }
    }
    let mut neighbours = vec![Vec::new(); nodes.len()];
    for (edge, &(a, b)) in edges.iter().enumerate() {
        if a.max(b) >= nodes.len() {
            return Err(PatternError::NoSuchNode {
                edge,
                node: a.max(b),
                nodes: nodes.len(),
            });
        }
        if a == b {
            return Err(PatternError::SelfLoop { edge, node: a });
        }
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    for (node, list) in neighbours.iter_mut().enumerate() {
        list.sort_unstable();
        list.dedup();
        let held = list.iter().any(|&other| nodes[other].role == Role::Regular);
        if nodes[node].role != Role::Regular && !held {
            return Err(PatternError::LooseConstraint { node });
        }
    }
    Ok(neighbours)
}

/// Why a [`Solver`] gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SolveError {
    /// The matrix changed since the last factorization, or that one failed.
    #[error("the matrix has not been factored since it was last changed")]
    NotFactored,
    /// The pivoted factorization failed too; the pivot that the block factorization stopped at, if it did, is named.
    #[error("{error}{}", pivot.map(|p| format!(" ({p})")).unwrap_or_default())]
    Fallback {
        /// What the pivoted factorization found.
        error: FallbackError,
        /// Where the block factorization stopped.
        pivot: Option<BadPivot>,
    },
}

/// The factorization in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Block elimination without pivoting between blocks.
    Block,
    /// faer's sparse LU with partial pivoting.
    Pivoted,
}

/// A block matrix with its factors: fill in blocks, [`factor`](Solver::factor), solve.
#[derive(Clone, Debug)]
pub struct Solver {
    symbolic: Symbolic,
    original: Vec<f64>,
    factored: Vec<f64>,
    method: Option<Method>,
    pivot: Option<BadPivot>,
    fallback: Option<Fallback>,
    rhs: Vec<f64>,
    scratch: Vec<f64>,
}

impl Solver {
    /// A correction larger than this beside the solution sends [`Solver::solve_refined`] to the pivoted factorization.
    /// One sweep squares it, so what it accepts has a relative error of 1e-10 at most.
    pub const CORRECTION: f64 = 1e-5;

    /// A zero matrix with the given pattern.
    ///
    /// # Errors
    /// As for [`Symbolic::new`].
    pub fn new(nodes: &[Node], edges: &[(usize, usize)]) -> Result<Self, PatternError> {
        let symbolic = Symbolic::new(nodes, edges)?;
        let values = vec![0.0; symbolic.values_len()];
        let vector = vec![0.0; symbolic.dim()];
        Ok(Self {
            original: values.clone(),
            factored: values,
            method: None,
            pivot: None,
            fallback: None,
            rhs: vector.clone(),
            scratch: vector,
            symbolic,
        })
    }

    /// Pattern and layout.
    pub fn symbolic(&self) -> &Symbolic {
        &self.symbolic
    }

    /// The unfactored matrix.
    pub fn values(&self) -> &[f64] {
        &self.original
    }

    /// The unfactored matrix, to be changed; slots are [`Symbolic::slot`]'s, fill must stay zero.
    pub fn values_mut(&mut self) -> &mut [f64] {
        self.method = None;
        &mut self.original
    }

    /// The block (row, col), column-major `size(row)` x `size(col)`; empty if the pattern has none.
    pub fn block_mut(&mut self, row: usize, col: usize) -> &mut [f64] {
        match self.symbolic.slot(row, col) {
            Some(slot) => {
                let len = self.symbolic.size(row) * self.symbolic.size(col);
                &mut self.values_mut()[slot..][..len]
            }
            None => &mut [],
        }
    }

    /// Factors the matrix, by blocks if possible and else with pivoting; says which.
    ///
    /// # Errors
    /// A matrix that is not finite or singular to working precision.
    pub fn factor(&mut self) -> Result<Method, SolveError> {
        self.factored.copy_from_slice(&self.original);
        self.pivot = self.symbolic.factor(&mut self.factored).err();
        match self.pivot {
            None => self.method = Some(Method::Block),
            Some(_) => self.pivoted()?,
        }
        self.method.ok_or(SolveError::NotFactored)
    }

    /// The factorization in use; `None` when the matrix was changed since or could not be factored.
    pub fn method(&self) -> Option<Method> {
        self.method
    }

    /// x = A^-1 b in the place of b, unrefined: as good as the pivot blocks are. Not finite if overflow makes it so.
    ///
    /// # Errors
    /// No valid factorization.
    pub fn solve(&mut self, b: &mut [f64]) -> Result<(), SolveError> {
        self.solve_once::<false>(b)
    }

    /// x = A'^-1 b in the place of b, unrefined.
    ///
    /// # Errors
    /// As for [`Solver::solve`].
    pub fn solve_transposed(&mut self, b: &mut [f64]) -> Result<(), SolveError> {
        self.solve_once::<true>(b)
    }

    /// x = A^-1 b in the place of b with one sweep of refinement, whose correction also judges the factors: if it is
    /// larger than [`Solver::CORRECTION`] the pivoted factorization takes over.
    ///
    /// # Errors
    /// No valid factorization; a matrix singular to working precision; a right-hand side that is not finite.
    pub fn solve_refined(&mut self, b: &mut [f64]) -> Result<(), SolveError> {
        self.solve_checked::<false>(b)
    }

    /// x = A'^-1 b in the place of b, refined and checked like [`Solver::solve_refined`].
    ///
    /// # Errors
    /// As for [`Solver::solve_refined`].
    pub fn solve_transposed_refined(&mut self, b: &mut [f64]) -> Result<(), SolveError> {
        self.solve_checked::<true>(b)
    }

    fn solve_once<const TRANSPOSED: bool>(&mut self, b: &mut [f64]) -> Result<(), SolveError> {
        match (self.method, &mut self.fallback) {
            (Some(Method::Block), _) if TRANSPOSED => {
                self.symbolic.solve_transposed(&self.factored, b)
            }
            (Some(Method::Block), _) => self.symbolic.solve(&self.factored, b),
            (Some(Method::Pivoted), Some(fallback)) => {
                let solved = if TRANSPOSED {
                    fallback.solve_transposed(b)
                } else {
                    fallback.solve(b)
                };
                solved.map_err(|error| SolveError::Fallback {
                    error,
                    pivot: self.pivot,
                })?;
            }
            _ => return Err(SolveError::NotFactored),
        }
        Ok(())
    }

    fn solve_checked<const TRANSPOSED: bool>(&mut self, b: &mut [f64]) -> Result<(), SolveError> {
        if self.method == Some(Method::Block) {
            self.rhs.copy_from_slice(b);
            self.solve_once::<TRANSPOSED>(b)?;
            let refine = if TRANSPOSED {
                Symbolic::refine_transposed
            } else {
                Symbolic::refine
            };
            refine(
                &self.symbolic,
                &self.original,
                &self.factored,
                &self.rhs,
                b,
                &mut self.scratch,
            );
            if largest(&self.scratch) <= Self::CORRECTION * largest(b) {
                return Ok(());
            }
            b.copy_from_slice(&self.rhs);
            self.pivoted()?;
        }
        self.solve_once::<TRANSPOSED>(b)
    }

    fn pivoted(&mut self) -> Result<(), SolveError> {
        self.method = None;
        let fail = |error| SolveError::Fallback {
            error,
            pivot: self.pivot,
        };
        let fallback = match &mut self.fallback {
            Some(fallback) => fallback,
            none => none.insert(Fallback::new(&self.symbolic).map_err(fail)?),
        };
        fallback
            .factor(&self.symbolic, &self.original)
            .map_err(fail)?;
        self.method = Some(Method::Pivoted);
        Ok(())
    }
}

/// max |v_i|, NaN if there is one.
fn largest(v: &[f64]) -> f64 {
    v.iter()
        .map(|v| v.abs())
        .fold(0.0, |a, b| if a >= b || a.is_nan() { a } else { b })
}
