//! Which second derivatives of a knot may differ from zero: probed at points drawn at random.
//!
//! A component of a gradient that does not depend on a variable is the same to the bit whatever that is, so that equality
//! shows what is zero; rounding can only make an entry of too many.

use super::curved::Curved;
use super::knot::{Here, Local, Part, Shared};
use crate::dynamics::Observe;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Points probed.
const POINTS: u64 = 2;
/// How far from the guess they are: generic, and within every chart.
const FAR: f64 = 0.1;

/// The Hessian of one kind of knot: that of its equations, and that of its quantities.
pub fn curved<D: Observe>(
    shared: &Shared<D>,
    here: &Here,
    at: &Local,
    w: &mut D::Work,
) -> [Curved; 2] {
    let width = shared.width(here.next.is_some());
    let mut columns = [vec![vec![]; width], vec![vec![]; width]];
    let constraints = shared.layout.stage(here.at.k).constraints.len();
    for seed in 0..POINTS {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut l = at.clone();
        for list in [&mut l.d, &mut l.u, &mut l.y, &mut l.end] {
            list.iter_mut().for_each(|v| *v += FAR * unit(random));
        }
        for &i in shared.free {
            let (lower, upper) = shared.problem.parameter_bounds[i];
            let size = if l.p[i] == 0.0 { 1.0 } else { l.p[i].abs() };
            l.p[i] = (l.p[i] + FAR * size * unit(random)).max(lower).min(upper);
        }
        let mut drawn = |n: usize| -> Vec<f64> { (0..n).map(|_| unit(random)).collect() };
        let (residual, gap) = (drawn(shared.dims.ny), drawn(shared.dims.nf));
        let own = drawn(constraints);
        let parts = [
            here.next.is_some().then_some(Part::Equations {
                residual: &residual,
                gap: &gap,
            }),
            Some(Part::Quantities {
                objective: 1.0,
                constraints: &own,
                by_squares: true,
            }),
        ];
        let (mut other, mut by) = (vec![0.0; width], vec![0.0; width]);
        for (part, columns) in parts.iter().zip(&mut columns) {
            let Some(part) = part else { continue };
            for (i, column) in columns.iter_mut().enumerate() {
                let both = (&mut other[..], &mut by[..]);
                let made = shared.curvature(here, &mut l, w, part, &[i], both);
                if made.is_ok() {
                    column.extend((0..width).filter(|j| by[*j] != 0.0));
                } else {
                    // nothing is known
                    column.extend(0..width);
                }
            }
        }
    }
    columns.map(|mut columns| {
        // symmetric, whatever rounding hides
        for i in 0..width {
            for j in columns[i].clone() {
                columns[j].push(i);
            }
        }
        Curved::new(&columns)
    })
}

fn unit(random: &mut impl Rng) -> f64 {
    random.random_range(-1.0..1.0)
}
