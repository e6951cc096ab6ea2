use super::super::quasi_newton::Pairs;
use super::super::{Options, Undefined};
use super::*;

/// `x'Ax/2` where two rows hold, one of them no equation.
struct Bent;

impl Program for Bent {
    fn variables(&self) -> usize {
        3
    }
    fn rows(&self) -> usize {
        2
    }
    fn start(&self) -> Vec<f64> {
        vec![1.0; 3]
    }
    fn row_bounds(&self) -> Vec<(f64, f64)> {
        vec![(1.0, 1.0), (0.0, f64::INFINITY)]
    }
    fn jacobian(&self) -> Vec<(usize, usize)> {
        vec![(0, 0), (0, 1), (1, 1), (1, 2)]
    }
    fn hessian(&self) -> Vec<(usize, usize)> {
        vec![(0, 0), (1, 1), (2, 2), (1, 0), (2, 2)]
    }
    fn evaluate(&mut self, _: &[f64], _: &mut [f64]) -> Result<f64, Undefined> {
        unreachable!("only its patterns are asked for")
    }
    fn differentiate(&mut self, _: &[f64], _: &mut [f64], _: &mut [f64]) -> Result<(), Undefined> {
        unreachable!("only its patterns are asked for")
    }
    fn curve(&mut self, _: &[f64], _: f64, _: &[f64], _: &mut [f64]) -> Result<(), Undefined> {
        unreachable!("only its patterns are asked for")
    }
}

/// Pivots from all of the matrix give the solution of those that its groups have, with and without a curvature that is
/// known by its products.
#[test]
fn pivots_from_all_of_it_solve_the_same() {
    let options = Options::default();
    let model = Model::new(&Bent, &options);
    let jacobian = [1.0, 2.0, -1.0, 1.5];
    let mut kkt = Kkt::new(&Bent, &model, &jacobian, 0.0);
    let mut d = model.derivatives();
    d.jacobian.copy_from_slice(&jacobian);
    kkt.barrier = vec![0.0, 0.0, 0.0, 2.0];
    let mut rhs = kkt.direction();
    (rhs.w, rhs.y) = (vec![1.0, -2.0, 0.5, 0.25], vec![3.0, -1.0]);
    let mut pairs = Pairs::new(2);
    pairs.add(vec![1.0, 0.5, 0.0], vec![2.0, 1.5, -0.5]);
    for low_rank in [None, Some(pairs.matrix())] {
        kkt.low_rank = low_rank;
        assert!(kkt.factor(&model, &[2.0, 1.0, 0.5, 0.3, 0.5], &d, 0.1));
        let (mut own, mut other) = (kkt.direction(), kkt.direction());
        assert!(kkt.solve(&model, &rhs, &mut own) && !kkt.is_pivoted);
        assert!(kkt.pivot() && kkt.solve(&model, &rhs, &mut other) && kkt.is_pivoted);
        own.add(-1.0, &other);
        assert!(own.largest() < 1e-12, "{:.1e}", own.largest());
        let mut left = kkt.direction();
        kkt.residual(&model, &rhs, &other, &mut left);
        assert!(left.largest() < 1e-12, "{:.1e}", left.largest());
    }
    // singular, and so for all
    d.jacobian.fill(0.0);
    kkt.values.fill(0.0);
    assert!(!kkt.pivot());
}
