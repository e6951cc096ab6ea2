//! The step's matrix with the impulses of contacts as unknowns of their own, factored with pivots.
//!
//! Eliminated into the blocks of bodies, a stiff contact takes the digits of what is beside it: `s = kappa/g` is 1e-12
//! where a light foot hits the ground, and `g/s` of the size of 1e13. Here the same linear equations
//!
//! ```text
//! A V + m_c [N; B]' p = r,    p_n - K N+ V = 0,    p_t - drag p_n - slide B+ V = 0
//! ```
//!
//! keep rows of moderate size, each divided by its stiffness. Only steps that the blocks fail on come here.

use super::assembly::both;
use super::cone::Linear;
use super::{Layout, Memory};
use crate::block::{Fallback, FallbackError, Node, Symbolic};

/// A block of the step's matrix and its place in the larger one.
#[derive(Clone, Debug)]
struct Copied {
    from: usize,
    to: usize,
    len: usize,
    /// Between bodies, where contacts were added.
    bodies: bool,
}

/// Places of a contact's blocks: of each side the column and the row, and its own.
#[derive(Clone, Debug)]
struct Places {
    sides: [Option<(usize, usize)>; 2],
    own: usize,
}

/// The larger matrix.
#[derive(Clone, Debug)]
pub(super) struct Extended {
    symbolic: Symbolic,
    fallback: Fallback,
    values: Vec<f64>,
    /// A right-hand side and its solution.
    vector: Vec<f64>,
    copied: Vec<Copied>,
    places: Vec<Places>,
}

impl Layout {
    fn extended(&self, step: &Symbolic) -> Result<Extended, FallbackError> {
        let (n, count) = (self.sizes.len(), step.nodes());
        let mut nodes: Vec<_> = (0..count).map(|i| Node::regular(step.size(i))).collect();
        let blocks = step.blocks();
        let mut edges: Vec<_> = blocks
            .iter()
            .filter(|(r, c, _)| r < c)
            .map(|&(r, c, _)| (r, c))
            .collect();
        for slot in &self.slots {
            edges.extend(
                [Some(slot.child), slot.parent]
                    .into_iter()
                    .flatten()
                    .map(|b| (b, nodes.len())),
            );
            nodes.push(Node::regular(3));
        }
        let symbolic =
            Symbolic::new(&nodes, &edges).map_err(|e| FallbackError::Other(e.to_string()))?;
        let at = |r, c| symbolic.slot(r, c).expect("an edge has its block");
        let copied = blocks
            .iter()
            .map(|&(r, c, from)| Copied {
                from,
                to: at(r, c),
                len: symbolic.size(r) * symbolic.size(c),
                bodies: r < n && c < n,
            })
            .collect();
        let places = self.slots.iter().enumerate().map(|(i, slot)| {
            let side = |b| (at(b, count + i), at(count + i, b));
            Places {
                sides: [slot.parent.map(side), Some(side(slot.child))],
                own: at(count + i, count + i),
            }
        });
        Ok(Extended {
            fallback: Fallback::new(&symbolic)?,
            values: vec![0.0; symbolic.values_len()],
            vector: vec![0.0; symbolic.dim()],
            copied,
            places: places.collect(),
            symbolic,
        })
    }

    /// Factors the step's matrix: `values` as last assembled, kept without contacts as well.
    pub(crate) fn factor(
        &self,
        memory: &mut Memory,
        step: &Symbolic,
        values: &[f64],
    ) -> Result<(), FallbackError> {
        let mut x = match memory.extended.take() {
            Some(x) => x,
            None => Box::new(self.extended(step)?),
        };
        x.values.fill(0.0);
        for c in &x.copied {
            let from = if c.bodies { &memory.bare } else { values };
            x.values[c.to..c.to + c.len].copy_from_slice(&from[c.from..c.from + c.len]);
        }
        for ((e, slot), at) in memory.elements.iter().zip(&self.slots).zip(&x.places) {
            let l = if memory.idle {
                // nothing was assembled
                &Linear::default()
            } else {
                &e.linear
            };
            let rows = [both(&e.normal), both(&e.tangents[0]), both(&e.tangents[1])];
            let scale = l.row_scales();
            for (side, place) in at.sides.iter().enumerate() {
                let Some((column, row)) = *place else {
                    continue;
                };
                for k in 0..6 {
                    for (i, wrench) in rows.iter().enumerate() {
                        x.values[column + 6 * i + k] = slot.mass * wrench[side][k];
                    }
                    x.values[row + 3 * k] = -scale[0] * l.normal * e.by_velocity[side][k];
                    for i in 0..2 {
                        let [t, b] = [0, 1].map(|i| e.slide_by_velocity[i][side][k]);
                        let by = l.slide[i][0] * t + l.slide[i][1] * b;
                        x.values[row + 3 * k + 1 + i] = -scale[1 + i] * by;
                    }
                }
            }
            for (i, scale) in scale.into_iter().enumerate() {
                x.values[at.own + 4 * i] = scale;
                if i > 0 {
                    x.values[at.own + i] = -scale * l.drag[i - 1];
                }
            }
        }
        let done = x.fallback.factor(&x.symbolic, &x.values);
        memory.extended = Some(x);
        done
    }
}

impl Memory {
    /// Takes the impulses of the last solution with the factors of [`Layout::factor`] or [`Layout::factor_impulses`], or adds them to
    /// those at hand; none if other factors were used.
    pub(super) fn collect(&mut self, adds: bool) {
        let own = match (&self.extended, &self.delassus) {
            (Some(x), _) => &x.vector[x.vector.len() - 3 * self.elements.len()..],
            (None, Some(d)) => &d.impulses,
            (None, None) => {
                self.collected.clear();
                return;
            }
        };
        if adds {
            let each = self.collected.iter_mut().zip(own);
            each.for_each(|(to, own)| *to += own);
        } else {
            self.collected.clear();
            self.collected.extend_from_slice(own);
        }
    }

    /// Solves with the factors of [`Layout::factor`].
    pub(crate) fn solve(&mut self, out: &mut [f64], transposed: bool) -> Result<(), FallbackError> {
        let Some(x) = &mut self.extended else {
            return Err(FallbackError::NotFactored);
        };
        let (own, impulses) = x.vector.split_at_mut(out.len());
        own.copy_from_slice(out);
        impulses.fill(0.0);
        if transposed {
            x.fallback.solve_transposed(&mut x.vector)?;
        } else {
            x.fallback.solve(&mut x.vector)?;
        }
        out.copy_from_slice(&x.vector[..out.len()]);
        Ok(())
    }
}
