//! The step's equations, unsolved: for methods whose unknowns are all states and impulses at once.

use super::{Differentiable, Dims, Inputs, Knot, KnotPoint, Outputs, SolvedStep, StepError};
use std::ops::Range;

/// A step whose unknowns need not solve it.
#[derive(Clone, Copy, Debug)]
pub struct UnsolvedStep<'a> {
    /// Its start, with the unknowns.
    pub start: KnotPoint<'a>,
    /// Its end, where that is a variable of its own: rows of the residual that are functions of the next state alone, as those
    /// of joints, are taken there, and not where the unknowns lead. With all rows zero both are the same.
    pub end: Option<End<'a>>,
}

/// The unknowns of a contact: from `first` on the gap over the interval `s`, the normal impulse `g`, the sliding speed `psi` and
/// two numbers of friction, in m/s (impulses by an effective mass); and as many rows, `s - phi/h`, `s g - kappa`,
/// `u0 psi + b . eta - kappa`, `u0 eta + psi b` ([`crate::contact`]). What there is of `s`, `g`, `psi` is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactUnknowns {
    /// The first one, and the first row.
    pub first: usize,
    /// Are there `s` and `g`? Friction in a joint has none.
    pub has_gap: bool,
    /// Are there `psi` and `b`?
    pub has_friction: bool,
    /// Along which of the two tangents the mechanism can slide. Where it cannot, as across its plane, neither `b` nor its row
    /// means anything.
    pub slides: [bool; 2],
    /// Friction's coefficient `u0/g`, if it is the same number whatever the parameters are.
    pub coefficient: Option<f64>,
    /// Of friction in a joint: its bound `u0` by half of the sum of the intervals that meet at its knot, m/s^2, if it is the same
    /// number whatever the parameters are.
    pub bound: Option<f64>,
    /// The share of the step's interval that the gap is over: below 1 in a substep.
    pub share: f64,
    /// Is the interval before part of the same step, as in all substeps but the first?
    pub is_within: bool,
}

impl ContactUnknowns {
    /// The bound `u0` of friction in a joint, in a step between these intervals.
    pub fn friction_bound(&self, before: f64, after: f64) -> Option<f64> {
        let before = if self.is_within { after } else { before };
        Some(0.5 * self.share * (before + after) * self.bound?)
    }
}

/// The end of a step, as a variable.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The state that the next state's separation is from.
    pub from: &'a [f64],
    /// The state.
    pub state: &'a [f64],
}

impl<'a> End<'a> {
    /// Of a part of the state.
    #[must_use]
    pub fn part(&self, own: Range<usize>) -> Self {
        Self {
            from: &self.from[own.clone()],
            state: &self.state[own],
        }
    }
}

/// The equations of a step, `r(y; x, u, p) = 0` with as many rows as the step has unknowns `y`, and the state that the
/// unknowns lead to. Their derivatives are the blocks of which Newton's method and the linear models are made. States
/// are in the free chart; [`Equations::displace`] moves them in it, [`Equations::separation`] is the way back.
///
/// What is given is for systems without unknowns whose states are plain numbers: nothing is left to solve, and steps and
/// their derivatives are those of [`super::Step`] and [`Differentiable`].
pub trait Equations: Differentiable {
    /// Is there all of it?
    ///
    /// # Errors
    /// What is missing.
    fn check_equations(&self) -> Result<(), String> {
        match self.dims().ny {
            0 => Ok(()),
            _ => Err("the step has unknowns, and no equations of them are offered".into()),
        }
    }

    /// Which derivatives may differ from zero. Rows are those of the residual (ny), then of the next state (nf); columns
    /// are those of the state (nf), the control (nu), the parameters (np), the unknowns (ny), the intervals before and
    /// after the knot, and the end (nf) where it is a variable, `has_end`.
    fn structure(&self, _has_end: bool) -> Structure {
        let d = self.dims();
        let mut columns = vec![(0..d.nf).collect(); d.nf + d.nu + d.np + 2];
        columns.resize(Column::count(&d), vec![]);
        Structure::new(d.nf, &columns)
    }

    /// Moves a state by `d` of the free chart (nf). It need not be one that the joints allow. False where it is too far.
    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        for ((o, x), d) in out.iter_mut().zip(x).zip(d) {
            *o = x + d;
        }
        true
    }

    /// The change of the free chart (nf) by which [`Equations::displace`] leads from `x` to `to`.
    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        for ((o, x), to) in out.iter_mut().zip(x).zip(to) {
            *o = to - x;
        }
    }

    /// The adjoint of a separation from `x` to `to` becomes that of a small change (free chart) of `to`.
    fn pull_separation(&self, _x: &[f64], _to: &[f64], _adjoint: &mut [f64]) {}

    /// Components of the next state (free chart) that are unknowns, with those: separations by them are differences.
    fn copies(&self) -> Vec<(usize, usize)> {
        vec![]
    }

    /// Components of the state (free chart) that a step from this knot does not change, whatever its inputs are: of their
    /// rows only the own entry of the state differs from zero.
    fn stays(&self, _at: &Knot) -> Vec<usize> {
        vec![]
    }

    /// Where the unknowns of contacts, limits and friction are.
    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        vec![]
    }

    /// Unknowns of a step over an interval `h` (s) that stay within a size, with it: beyond, the equations have roots that are no
    /// steps.
    fn domain(&self, _h: f64) -> Vec<(usize, f64)> {
        vec![]
    }

    /// The parameter (m^2/s^2) of the central path that the rows of contacts are on from here on; zero are hard contacts.
    fn set_central_path(&self, _w: &mut Self::Work, _kappa: f64) {}

    /// Puts the unknowns of contacts onto their central path, for the states and the velocities given; the others stay.
    ///
    /// # Errors
    /// As [`Equations::residual`].
    fn center(
        &self,
        _at: &UnsolvedStep,
        _w: &mut Self::Work,
        _y: &mut [f64],
    ) -> Result<(), StepError> {
        Ok(())
    }

    /// The residual `r` (ny): N s, N m s, m or half rad; of contacts m/s and m^2/s^2.
    ///
    /// # Errors
    /// When the state is not one of the system.
    fn residual(
        &self,
        _at: &UnsolvedStep,
        _w: &mut Self::Work,
        _r: &mut [f64],
    ) -> Result<(), StepError> {
        Ok(())
    }

    /// The state that the unknowns lead to.
    ///
    /// # Errors
    /// As [`Equations::residual`].
    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        let made = self.step(&at.at, at.x, at.u, at.p, w, next, &mut []);
        made.map(|_| ())
    }

    /// The derivatives, in the order of [`Structure::entries`]. Rows of the next state are those of its separation from
    /// [`End::from`], of itself where there is no end. What was linearized before is lost.
    ///
    /// # Errors
    /// As [`Equations::residual`].
    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut Self::Work,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        let d = self.dims();
        explicitly(self, &at.start, w)?;
        let (mut inputs, mut outputs) = (d.inputs(), d.outputs());
        for (g, group) in structure.groups().iter().enumerate() {
            inputs.clear();
            for &column in group {
                match Column::at(&d, column) {
                    Column::State(i) => inputs.x[i] = 1.0,
                    Column::Control(i) => inputs.u[i] = 1.0,
                    Column::Parameter(i) => inputs.p[i] = 1.0,
                    Column::Before => inputs.h_prev = 1.0,
                    Column::After => inputs.h = 1.0,
                    Column::Unknown(_) | Column::End(_) => {}
                }
            }
            self.push_in(w, &inputs, &mut outputs);
            structure.take(g, &outputs.x, values);
        }
        Ok(())
    }

    /// The product of the transposed derivatives with an adjoint of the residual (`adjoint.y`) and of the next state
    /// (`adjoint.x`), as [`Equations::derivatives`] has them: into the adjoints of the inputs, of the unknowns and of the end.
    ///
    /// # Errors
    /// As [`Equations::residual`].
    fn pull_equations(
        &self,
        at: &UnsolvedStep,
        adjoint: &Outputs,
        w: &mut Self::Work,
        out: &mut Inputs,
        _y: &mut [f64],
        end: &mut [f64],
    ) -> Result<(), StepError> {
        end.fill(0.0);
        explicitly(self, &at.start, w)?;
        self.pull_in(w, adjoint, out);
        Ok(())
    }
}

/// Linearizes a step without unknowns.
fn explicitly<D: Equations + ?Sized>(
    system: &D,
    at: &KnotPoint,
    w: &mut D::Work,
) -> Result<(), StepError> {
    let mut next = vec![0.0; at.x.len()];
    system.advance(at, w, &mut next)?;
    let solved = SolvedStep {
        at: at.at,
        x: at.x,
        u: at.u,
        p: at.p,
        y: &[],
        next: &next,
    };
    system.linearize_in(&solved, w).map(|_| ())
}

/// What a column of [`Equations::derivatives`] belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A component of the state, free chart.
    State(usize),
    /// A control.
    Control(usize),
    /// A parameter.
    Parameter(usize),
    /// An unknown of the step.
    Unknown(usize),
    /// The interval before the knot.
    Before,
    /// The interval after it.
    After,
    /// A component of the end (free chart).
    End(usize),
}

impl Column {
    /// The column of that place, of a system of those sizes.
    pub fn at(d: &Dims, place: usize) -> Self {
        let mut left = place;
        for (size, kind) in [
            (d.nf, Self::State as fn(usize) -> Self),
            (d.nu, Self::Control),
            (d.np, Self::Parameter),
            (d.ny, Self::Unknown),
        ] {
            if left < size {
                return kind(left);
            }
            left -= size;
        }
        match left {
            0 => Self::Before,
            1 => Self::After,
            end => Self::End(end - 2),
        }
    }

    /// The way back.
    pub fn place(self, d: &Dims) -> usize {
        let last = d.nf + d.nu + d.np + d.ny;
        match self {
            Self::State(i) => i,
            Self::Control(i) => d.nf + i,
            Self::Parameter(i) => d.nf + d.nu + i,
            Self::Unknown(i) => d.nf + d.nu + d.np + i,
            Self::Before => last,
            Self::After => last + 1,
            Self::End(i) => last + 2 + i,
        }
    }

    /// How many there are.
    pub fn count(d: &Dims) -> usize {
        Self::End(d.nf).place(d)
    }
}

/// The derivatives of a system that another one wraps, without the end and by it; and which were last filled in.
#[derive(Debug, Default)]
pub(crate) struct Part([Option<Inner>; 2], bool);

/// Their structure, found once, their values, and the places of these in the structure around, once they were asked for.
#[derive(Debug)]
struct Inner {
    structure: Structure,
    values: Vec<f64>,
    places: Vec<Option<usize>>,
}

impl Part {
    /// Those of a system, always the same one, by its end or not.
    pub fn of(&mut self, system: &impl Equations, has_end: bool) -> (&Structure, &mut Vec<f64>) {
        let own = &mut self.0[usize::from(has_end)];
        self.1 = has_end;
        let own = own.get_or_insert_with(|| {
            let structure = system.structure(has_end);
            let values = vec![0.0; structure.entries().len()];
            Inner {
                structure,
                values,
                places: vec![],
            }
        });
        (&own.structure, &mut own.values)
    }

    /// Makes the values of a structure around, always the same one, those last filled in, and zeros; rows are the same,
    /// columns those that are told. What has no place there is zero.
    pub fn spread(
        &mut self,
        around: &Structure,
        values: &mut [f64],
        column: impl Fn(usize) -> usize,
    ) {
        values.fill(0.0);
        let Some(own) = &mut self.0[usize::from(self.1)] else {
            return;
        };
        if own.places.is_empty() {
            let entries = own.structure.entries.iter();
            own.places = entries
                .map(|&(i, j)| around.place((i, column(j))))
                .collect();
        }
        for (place, by) in own.places.iter().zip(&own.values) {
            match place {
                Some(i) => values[*i] += by,
                None => debug_assert_eq!(*by, 0.0),
            }
        }
    }

    /// Row, column and value of all entries, as they were last filled in.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let all = self.0[usize::from(self.1)].iter();
        let entries = all.flat_map(|o| o.structure.entries.iter().zip(&o.values));
        entries.map(|((i, j), v)| (*i, *j, *v))
    }
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

    /// Where an entry is among all of them.
    fn place(&self, (row, column): (usize, usize)) -> Option<usize> {
        let own = self.first[column]..self.first[column + 1];
        let place = self.entries[own.clone()].binary_search(&(row, column));
        place.ok().map(|i| own.start + i)
    }

    /// Adds to the value of an entry. One that is none has to be zero.
    pub(crate) fn add(&self, values: &mut [f64], at: (usize, usize), by: f64) {
        if by == 0.0 {
            return;
        }
        match self.place(at) {
            Some(i) => values[i] += by,
            None => debug_assert_eq!(by, 0.0, "row {}, column {}", at.0, at.1),
        }
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
