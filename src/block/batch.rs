//! Several right-hand sides side by side: every scalar is a lane of `W`, so that the processor's vectors run across the
//! right-hand sides, whatever the sizes of the blocks.

use super::Symbolic;
use super::kernel::MAX_SIZE;
use super::ldu::Rows;

/// Why two mutable borrows of one vector are possible.
const APART: &str = "rows of different nodes do not overlap";

impl Symbolic {
    /// b <- A'^-1 b for `W` right-hand sides with the factors of A; b has one lane per scalar, in natural order. Nodes
    /// that the right-hand sides do not reach in the elimination tree are passed over. Allocates nothing.
    ///
    /// # Panics
    /// If a length does not fit.
    pub fn solve_transposed_lanes<const W: usize>(&self, factored: &[f64], b: &mut [[f64; W]]) {
        assert_eq!(
            factored.len(),
            self.values_len(),
            "length of the value array"
        );
        assert_eq!(b.len(), self.dim, "length of a right-hand side");
        for p in &self.pivots {
            if b[p.rows.range()].as_flattened().iter().all(|b| *b == 0.0) {
                continue;
            }
            let own = &factored[p.values.clone()];
            for i in &self.edges[p.edges.clone()] {
                let [b_p, b_i] = b
                    .get_disjoint_mut([p.rows.range(), i.rows.range()])
                    .expect(APART);
                subtract(i.outward::<true>(own, p.rows.size), b_p, b_i);
            }
        }
        for p in self.pivots.iter().rev() {
            let own = &factored[p.values.clone()];
            for i in &self.edges[p.edges.clone()] {
                let [b_p, b_i] = b
                    .get_disjoint_mut([p.rows.range(), i.rows.range()])
                    .expect(APART);
                subtract(i.inward::<true>(own, p.rows.size), b_i, b_p);
            }
            apply(own, p.rows, b);
        }
    }
}

/// c -= A' b with A (length of b) x (length of c), column-major.
#[inline(always)]
fn subtract<const W: usize>(a: &[f64], b: &[[f64; W]], c: &mut [[f64; W]]) {
    for (column, c) in a.chunks_exact(b.len()).zip(c) {
        let mut sum = *c;
        for (a, b) in column.iter().zip(b) {
            for (sum, b) in sum.iter_mut().zip(b) {
                *sum -= a * b;
            }
        }
        *c = sum;
    }
}

/// b_p <- D' b_p with the inverse pivot block D.
#[inline(always)]
fn apply<const W: usize>(own: &[f64], rows: Rows, b: &mut [[f64; W]]) {
    fn with<const N: usize, const W: usize>(d: &[f64], b: &mut [[f64; W]]) {
        let mut minus = [[0.0; W]; N];
        let minus = &mut minus[..b.len()];
        subtract(d, b, minus);
        for (b, minus) in b.as_flattened_mut().iter_mut().zip(minus.as_flattened()) {
            *b = -minus;
        }
    }
    let (d, b) = (&own[..rows.size * rows.size], &mut b[rows.range()]);
    if rows.size <= 6 {
        with::<6, W>(d, b);
    } else {
        with::<MAX_SIZE, W>(d, b);
    }
}
