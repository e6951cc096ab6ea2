//! The step's equations, unsolved: for methods whose unknowns are all states and impulses at once.

use super::{Dynamics, Inputs, KnotPoint, Outputs, StepError};

/// The equations of a step, `r(y; x, u, p) = 0` with as many rows as the step has unknowns `y`, and the state that the
/// unknowns lead to. Their derivatives are the blocks of which Newton's method and the linear models are made. States
/// are in the free chart; [`Equations::displace`] moves them in it, [`Equations::separation`] is the way back.
pub trait Equations: Dynamics {
    /// Which derivatives may differ from zero. Rows are those of the residual (ny), then of the next state (nf); columns
    /// are those of the state (nf), the control (nu), the parameters (np), the unknowns (ny), and the intervals before and
    /// after the knot.
    fn structure(&self) -> Structure;

    /// Moves a state by `d` of the free chart (nf). It need not be one that the joints allow. False where it is too far.
    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool;

    /// The change of the free chart (nf) by which [`Equations::displace`] leads from `x` to `to`.
    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]);

    /// The residual `r` (ny): N s, N m s, m or half rad.
    ///
    /// # Errors
    /// When the state is not one of the system.
    fn residual(&self, at: &KnotPoint, w: &mut Self::Work, r: &mut [f64]) -> Result<(), StepError>;

    /// The state that the unknowns lead to.
    ///
    /// # Errors
    /// As [`Equations::residual`].
    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError>;

    /// The derivatives, in the order of [`Structure::entries`]. The unknowns need not solve the step. Rows of the next state
    /// are those of its separation from the state `toward`; of itself where there is none. What was linearized before is
    /// lost.
    ///
    /// # Errors
    /// As [`Equations::residual`].
    fn derivatives(
        &self,
        at: &KnotPoint,
        toward: Option<&[f64]>,
        structure: &Structure,
        w: &mut Self::Work,
        values: &mut [f64],
    ) -> Result<(), StepError>;

    /// The product of the transposed derivatives with an adjoint of the residual (`adjoint.y`) and of the next state
    /// (`adjoint.x`), as [`Equations::derivatives`] has them: into the adjoints of the inputs and of the unknowns.
    ///
    /// # Errors
    /// As [`Equations::residual`].
    fn pull_equations(
        &self,
        at: &KnotPoint,
        toward: Option<&[f64]>,
        adjoint: &Outputs,
        w: &mut Self::Work,
        out: &mut Inputs,
        y: &mut [f64],
    ) -> Result<(), StepError>;
}

/// The places of a sparse matrix that may differ from zero, and groups of columns that share no row: the product with
/// one vector gives all columns of a group (Curtis, Powell and Reid, 1974).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    entries: Vec<(usize, usize)>,
    first: Vec<usize>,
    groups: Vec<Vec<usize>>,
}

impl Structure {
    /// From the rows of each column, of `rows` in all.
    pub fn new(rows: usize, columns: &[Vec<usize>]) -> Self {
        let mut out = Self {
            entries: vec![],
            first: vec![0],
            groups: vec![],
        };
        // rows already taken by each group
        let mut taken: Vec<Vec<bool>> = vec![];
        for (column, own) in columns.iter().enumerate() {
            let mut own = own.clone();
            own.sort_unstable();
            own.dedup();
            let free = |t: &Vec<bool>| own.iter().all(|r| !t[*r]);
            let group = taken.iter().position(free).unwrap_or_else(|| {
                taken.push(vec![false; rows]);
                out.groups.push(vec![]);
                taken.len() - 1
            });
            own.iter().for_each(|r| taken[group][*r] = true);
            out.groups[group].push(column);
            out.entries.extend(own.iter().map(|r| (*r, column)));
            out.first.push(out.entries.len());
        }
        out
    }

    /// Row and column of every entry, column by column.
    pub fn entries(&self) -> &[(usize, usize)] {
        &self.entries
    }

    /// Columns that share no row.
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// Takes the entries of a group's columns from the product with the vector that is 1 at these columns.
    pub fn take(&self, group: usize, product: &[f64], values: &mut [f64]) {
        for &column in &self.groups[group] {
            let own = self.first[column]..self.first[column + 1];
            for (value, (row, _)) in values[own.clone()].iter_mut().zip(&self.entries[own]) {
                *value = product[*row];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Structure;

    #[test]
    fn columns_of_a_group_share_no_row() {
        // tridiagonal: three groups are enough
        let columns: Vec<Vec<usize>> = (0..20_usize)
            .map(|c| (c.saturating_sub(1)..(c + 2).min(20)).rev().collect())
            .collect();
        let s = Structure::new(20, &columns);
        assert_eq!((s.groups().len(), s.entries().len()), (3, 58));
        let entry = |r: usize, c: usize| (r * 31 + c) as f64;
        let mut values = vec![0.0; s.entries().len()];
        for (g, group) in s.groups().iter().enumerate() {
            let mut product = vec![0.0; 20];
            for &(r, c) in s.entries().iter().filter(|(_, c)| group.contains(c)) {
                product[r] += entry(r, c);
            }
            s.take(g, &product, &mut values);
        }
        for (v, &(r, c)) in values.iter().zip(s.entries()) {
            assert_eq!(*v, entry(r, c));
        }
    }
}
