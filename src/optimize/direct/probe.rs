//! Which second derivatives of a knot may differ from zero: probed at points drawn at random.
//!
//! A component of a gradient that does not depend on a variable is the same to the bit whatever that is, so that equality
//! shows what is zero; rounding can only make an entry of too many.

use super::curved::{Curved, Pattern};
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
    let mut patterns = [Pattern::new(width), Pattern::new(width)];
    let constraints = shared.layout.stage(here.at.k).constraints.len();
    for seed in 0..POINTS {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut l = at.clone();
        for list in [&mut l.u, &mut l.y] {
            list.iter_mut().for_each(|v| *v += FAR * unit(random));
        }
        // other states and no moves from them, as where second derivatives are asked for
        let mut moved = |from: &[f64]| -> Vec<f64> {
            let by: Vec<f64> = (0..shared.dims.nf).map(|_| FAR * unit(random)).collect();
            let mut to = from.to_vec();
            // where a chart is narrower it is probed where it is
            if !shared.dynamics.displace(from, &by, &mut to) {
                to.copy_from_slice(from);
            }
            to
        };
        let (x, next) = (moved(here.x), here.next.map(&mut moved));
        let here = &Here {
            at: here.at,
            x: &x,
            next: next.as_deref(),
        };
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
        for (part, pattern) in parts.iter().zip(&mut patterns) {
            let Some(part) = part else { continue };
            let mut all = vec![];
            for i in 0..width {
                let both = (&mut other[..], &mut by[..]);
                if shared.curvature(here, &mut l, w, part, &[i], both).is_err() {
                    // nothing is known
                    by.fill(f64::NAN);
                }
                let change = 2.0 * shared.change(&mut l, i);
                all.push(by.iter().map(|v| v / change).collect());
            }
            if shared.gradient(here, &mut l, w, part, &mut by).is_err() {
                by.fill(f64::NAN);
            }
            pattern.add(&all, &by);
        }
    }
    patterns.map(|p| Curved::new(&p))
}

fn unit(random: &mut impl Rng) -> f64 {
    random.random_range(-1.0..1.0)
}
