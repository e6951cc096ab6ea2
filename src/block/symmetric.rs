//! Sparse symmetric indefinite matrices: `P A P' = L D L'` with `D` of 1 x 1 and 2 x 2 blocks, and their inertia.
//!
//! The multifrontal method (Duff and Reid, 1983): variables are eliminated front by front, each front a small dense matrix
//! of the variables that it eliminates and of those that they touch. Within a front, pivots are chosen by the threshold
//! test of Duff and Reid; a variable that finds none is handed on to the next front. So nothing is asked of the matrix, and
//! the number of its negative eigenvalues is that of `D` (Sylvester).
//!
//! Which variables are neighbours is a matter of [`groups`](Symmetric::new): those of a group are eliminated side by side.
//! In the systems of optimization a multiplier, whose own diagonal is zero, belongs to a group with a variable that its
//! constraint fixes; then few are handed on.

mod front;

use super::order;
use front::{Eliminated, Panel, stride};
use std::ops::Range;

/// Numbers of positive, negative and vanishing eigenvalues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inertia {
    /// Positive ones.
    pub positive: usize,
    /// Negative ones.
    pub negative: usize,
    /// Those that cancellation has left nothing of.
    pub zero: usize,
}

/// A front: what it eliminates, unless it is handed on, and what that touches.
#[derive(Clone, Debug)]
struct Front {
    /// Eliminated here, then touched.
    variables: Vec<usize>,
    /// How many of them are eliminated.
    own: usize,
    /// Fronts before this one whose remainder it takes up; they are the last on the stack.
    children: usize,
    /// Where the touched variables are among the variables of the front that takes up the remainder.
    outward: Vec<usize>,
    /// Its part of the matrix in `entries`.
    entries: Range<usize>,
}

/// An entry of the matrix, in the lower triangle of its front.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// In the caller's list of values.
    source: u32,
    row: u32,
    column: u32,
}

/// What a front leaves on the stack: a dense square of the variables handed on and of those touched.
#[derive(Clone, Copy, Debug)]
struct Remainder {
    front: usize,
    handed_on: usize,
    /// First of its variables in `stacked_variables`, of its numbers in `stacked`.
    variables: usize,
    numbers: usize,
}

/// Pattern, fronts and factors of a symmetric matrix. Refactoring allocates only where pivots move more variables on than
/// ever before.
#[derive(Clone, Debug)]
pub struct Symmetric {
    dim: usize,
    fronts: Vec<Front>,
    entries: Vec<Entry>,
    /// Largest entry of every row, for the judgement of what cancels.
    scale: Vec<f64>,
    pattern: Vec<(usize, usize)>,
    panels: Vec<Panel>,
    eliminated: Eliminated,
    stack: Vec<Remainder>,
    stacked: Vec<f64>,
    stacked_variables: Vec<usize>,
    square: Vec<f64>,
    local: Vec<f64>,
    inertia: Inertia,
}

/// A child is merged into the front that takes up its remainder where the products that are then made for zeros cost less than
/// the remainder does: a number of it, which is written, read and added, as much as so many products, and a front more as
/// so many. Instructions counted on the arm's and the acrobot's transcriptions.
const MOVED: usize = 6;
const SET_UP: usize = 500;

impl Symmetric {
    /// Analyses a pattern: `entries` are places of one triangle (either, the diagonal included where it may differ from
    /// zero), and may repeat; `group` tells the group of every variable, numbered from 0 without gaps.
    ///
    /// # Panics
    /// If an entry or a group is out of range, or there are more entries than 32 bits count.
    pub fn new(entries: &[(usize, usize)], group: &[usize]) -> Self {
        let dim = group.len();
        let groups = group.iter().map(|g| g + 1).max().unwrap_or(0);
        let mut members = vec![vec![]; groups];
        for (variable, &g) in group.iter().enumerate() {
            members[g].push(variable);
        }
        let mut neighbours = vec![vec![]; groups];
        for &(i, j) in entries {
            let (a, b) = (group[i], group[j]);
            if a != b {
                neighbours[a].push(b);
                neighbours[b].push(a);
            }
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let order = order::approximate(&neighbours);
        let fronts = assemble_fronts(&order, &members);
        let mut out = Self {
            dim,
            fronts,
            entries: vec![],
            scale: vec![0.0; dim],
            pattern: entries.to_vec(),
            panels: vec![],
            eliminated: Eliminated::default(),
            stack: vec![],
            stacked: vec![],
            stacked_variables: vec![],
            square: vec![],
            local: vec![],
            inertia: Inertia::default(),
        };
        out.place_entries();
        out
    }

    /// Finds the front and the place of every entry.
    fn place_entries(&mut self) {
        let mut home = vec![0; self.dim];
        for (f, front) in self.fronts.iter().enumerate() {
            front.variables[..front.own]
                .iter()
                .for_each(|v| home[*v] = f);
        }
        let mut of_front = vec![vec![]; self.fronts.len()];
        for (source, &(i, j)) in self.pattern.iter().enumerate() {
            of_front[home[i].min(home[j])].push((source, i, j));
        }
        assert!(
            u32::try_from(self.pattern.len()).is_ok(),
            "more entries than 32 bits count"
        );
        let mut place = vec![0; self.dim];
        for (front, list) in self.fronts.iter_mut().zip(of_front) {
            for (at, v) in front.variables.iter().enumerate() {
                place[*v] = at;
            }
            let start = self.entries.len();
            self.entries
                .extend(list.into_iter().map(|(source, i, j)| Entry {
                    source: source as u32,
                    row: place[i].max(place[j]) as u32,
                    column: place[i].min(place[j]) as u32,
                }));
            front.entries = start..self.entries.len();
        }
    }

    /// Number of variables.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Numbers stored in the factors of the last factorization.
    pub fn stored(&self) -> usize {
        self.eliminated.lower.len()
    }

    /// Variables that the last factorization handed on from a front to the next.
    pub fn handed_on(&self) -> usize {
        let own: Vec<usize> = self.fronts.iter().map(|f| f.own).collect();
        self.panels
            .iter()
            .zip(own)
            .map(|(p, own)| p.candidates - own)
            .sum()
    }

    /// Factors the matrix with these values of the entries, and counts its eigenvalues. `threshold`, below 1/2, is the part
    /// of a column's largest entry that a pivot has at least: larger is more accurate, smaller has less fill. Where the
    /// matrix is singular, solutions have zeros in place of what it does not determine. None where a value is not finite.
    ///
    /// # Panics
    /// If the values are not as many as the entries.
    pub fn factor(&mut self, values: &[f64], threshold: f64) -> Option<Inertia> {
        self.factor_beside(values, &[], threshold)
    }

    /// [`Symmetric::factor`] of what products have left of rows whose entries were as large as `least`: rounding in rows that
    /// have vanished is judged by that.
    pub(super) fn factor_beside(
        &mut self,
        values: &[f64],
        least: &[f64],
        threshold: f64,
    ) -> Option<Inertia> {
        assert_eq!(values.len(), self.pattern.len(), "one value an entry");
        self.scale.fill(0.0);
        self.scale[..least.len()].copy_from_slice(least);
        self.panels.clear();
        for (value, &(i, j)) in values.iter().zip(&self.pattern) {
            if !value.is_finite() {
                return None;
            }
            self.scale[i] = self.scale[i].max(value.abs());
            self.scale[j] = self.scale[j].max(value.abs());
        }
        self.eliminated.clear();
        self.stack.clear();
        self.stacked.clear();
        self.stacked_variables.clear();
        self.inertia = Inertia::default();
        for f in 0..self.fronts.len() {
            self.eliminate(f, values, threshold);
        }
        let is_finite = self.eliminated.diagonal.iter().all(|d| d.is_finite());
        is_finite.then_some(self.inertia)
    }

    /// Assembles a front, eliminates what it can and stacks the remainder.
    fn eliminate(&mut self, f: usize, values: &[f64], threshold: f64) {
        let front = &self.fronts[f];
        let taken = self.stack.len() - front.children;
        let delayed: usize = self.stack[taken..].iter().map(|r| r.handed_on).sum();
        let size = front.variables.len() + delayed;
        let candidates = front.own + delayed;
        // eliminated, handed on to here, touched
        let place = |i: usize| if i < front.own { i } else { i + delayed };
        let index = self.eliminated.variables.len();
        let variables = &mut self.eliminated.variables;
        variables.extend_from_slice(&front.variables[..front.own]);
        for r in &self.stack[taken..] {
            variables
                .extend_from_slice(&self.stacked_variables[r.variables..r.variables + r.handed_on]);
        }
        variables.extend_from_slice(&front.variables[front.own..]);
        let stride = stride(size);
        self.square.clear();
        self.square.resize(size * stride, 0.0);
        let entries = &self.entries[front.entries.clone()];
        let square = &mut self.square;
        if delayed == 0 {
            for e in entries {
                square[e.column as usize * stride + e.row as usize] += values[e.source as usize];
            }
        } else {
            for e in entries {
                let at = place(e.column as usize) * stride + place(e.row as usize);
                square[at] += values[e.source as usize];
            }
        }
        let mut first_delayed = front.own;
        for r in &self.stack[taken..] {
            let outward = &self.fronts[r.front].outward;
            let count = r.handed_on + outward.len();
            let numbers = &self.stacked[r.numbers..r.numbers + count * count];
            let place = |i: usize| match i.checked_sub(r.handed_on) {
                None => first_delayed + i,
                Some(i) => place(outward[i]),
            };
            if delayed == 0 {
                for (j, column) in numbers.chunks_exact(count).enumerate() {
                    let to = outward[j];
                    for (from, value) in outward[j..].iter().zip(&column[j..]) {
                        square[to.min(*from) * stride + to.max(*from)] += value;
                    }
                }
                continue;
            }
            for (j, column) in numbers.chunks_exact(count).enumerate() {
                let to = place(j);
                for (i, value) in column.iter().enumerate().skip(j) {
                    let from = place(i);
                    square[to.min(from) * stride + to.max(from)] += value;
                }
            }
            first_delayed += r.handed_on;
        }
        if let Some(r) = self.stack.get(taken) {
            self.stacked.truncate(r.numbers);
            self.stacked_variables.truncate(r.variables);
        }
        self.stack.truncate(taken);
        let is_last = front.variables.len() == front.own;
        let panel = self.eliminated.factor(
            square,
            index,
            (size, candidates),
            (threshold, is_last),
            &self.scale,
            &mut self.inertia,
        );
        let left = size - panel.pivots;
        if !is_last {
            self.stack.push(Remainder {
                front: f,
                handed_on: candidates - panel.pivots,
                variables: self.stacked_variables.len(),
                numbers: self.stacked.len(),
            });
            let rest = &self.eliminated.variables[index + panel.pivots..];
            self.stacked_variables.extend_from_slice(rest);
            for j in panel.pivots..size {
                let column = &self.square[j * stride + panel.pivots..j * stride + size];
                self.stacked.extend_from_slice(column);
            }
            debug_assert_eq!(rest.len(), left);
        }
        self.panels.push(panel);
    }

    /// `x = A^-1 b` in the place of `b`.
    ///
    /// # Panics
    /// If `b` has another length than the matrix.
    pub fn solve(&mut self, b: &mut [f64]) {
        assert_eq!(b.len(), self.dim, "one number a variable");
        for p in &self.panels {
            self.eliminated.forward(p, b, &mut self.local);
        }
        for p in self.panels.iter().rev() {
            self.eliminated.backward(p, b, &mut self.local);
        }
    }
}

/// The fronts of an elimination order, small ones merged.
fn assemble_fronts(order: &order::Elimination, members: &[Vec<usize>]) -> Vec<Front> {
    let size = |groups: &[usize]| groups.iter().map(|g| members[*g].len()).sum::<usize>();
    let count = members.len();
    // per group: whose front it is eliminated in, groups of that front, and which children were not merged
    let mut merged_into: Vec<Option<usize>> = vec![None; count];
    let mut own: Vec<Vec<usize>> = (0..count).map(|g| vec![g]).collect();
    let mut children = vec![0; count];
    for &g in &order.order {
        let later = &order.later[g];
        let Some(&parent) = later.first() else {
            continue;
        };
        let (mine, theirs) = (size(&own[g]), size(&own[parent]));
        let touched = size(later);
        let whole = theirs + size(&order.later[parent]);
        let products = mine * (whole * whole - touched * touched) / 2;
        if products <= MOVED * touched * touched / 2 + SET_UP {
            merged_into[g] = Some(parent);
            let mut first = std::mem::take(&mut own[g]);
            first.append(&mut own[parent]);
            own[parent] = first;
            children[parent] += children[g];
        } else {
            children[parent] += 1;
        }
    }
    let root = |mut g: usize| {
        while let Some(next) = merged_into[g] {
            g = next;
        }
        g
    };
    let kept: Vec<usize> = (order.order.iter().copied())
        .filter(|g| merged_into[*g].is_none())
        .collect();
    let variables = |g: usize| -> Vec<usize> {
        let groups = own[g].iter().chain(&order.later[g]);
        groups.flat_map(|g| members[*g].iter().copied()).collect()
    };
    let mut place = vec![0; members.iter().map(Vec::len).sum()];
    kept.iter()
        .map(|&g| {
            let own = size(&own[g]);
            let all = variables(g);
            let outward = order.later[g].first().map_or(vec![], |&parent| {
                for (at, v) in variables(root(parent)).into_iter().enumerate() {
                    place[v] = at;
                }
                all[own..].iter().map(|v| place[*v]).collect()
            });
            Front {
                own,
                children: children[g],
                outward,
                entries: 0..0,
                variables: all,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
