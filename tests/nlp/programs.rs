//! Published nonlinear programs: Hock and Schittkowski's (1981), Waechter and Biegler's
//! counterexample (2000), Maratos', and some that cannot be solved.
//!
//! Starts are the published ones; a row `c >= 0` is written as Hock and Schittkowski write it.
//! Optima are recomputed (feasible and first-order optimal to 1e-12, best of several starts).
//! Iteration counts of IPOPT are those of the CUTEst report in github.com/jkitchin/ripopt
//! (benchmarks/cutest, column `i_iter`): C++ Ipopt on the SIF models with mu_strategy=adaptive and
//! tol=1e-8, all else by default. Ipopt 3.14 so set repeats them on these transcriptions to the
//! iteration, but for hs027 (54). With the default monotone strategy it often takes 1 to 5 more.
use num_dual::{Dual64, DualNum, HyperDual64};
use std::f64::consts::{PI, SQRT_2};
use std::marker::PhantomData;

/// How a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The optimum meets first-order conditions.
    Regular,
    /// There is an optimum, but constraint qualifications fail there (or everywhere). Where there
    /// are no multipliers, relaxing bounds by 1e-8 as Ipopt does moves the objective noticeably
    /// (hs013 ends at 0.99458, touching at -1.7e-4).
    Irregular,
    /// No point meets the constraints.
    Infeasible,
    /// The objective falls without bound over the feasible set.
    Unbounded,
}

/// A published program: minimize f(x) where lower <= x <= upper and row bounds hold.
pub trait Published {
    fn name(&self) -> &'static str;
    /// The published starting point; it may violate bounds and rows.
    fn start(&self) -> Vec<f64>;
    /// One pair per variable, infinities where open.
    fn bounds(&self) -> Vec<(f64, f64)>;
    /// Lower and upper of each constraint c_i(x).
    fn rows(&self) -> Vec<(f64, f64)>;
    /// The best known objective; none if infeasible or unbounded.
    fn optimum(&self) -> Option<f64>;
    /// Objectives of other local optima (or KKT points) where solvers may legitimately end.
    fn other_optima(&self) -> &'static [f64];
    fn sort(&self) -> Sort;
    /// IPOPT's published iteration count.
    fn ipopt(&self) -> Option<u32>;
    /// Objective and constraints.
    fn value(&self, x: &[f64]) -> (f64, Vec<f64>);
    /// Gradient and dense rows of the Jacobian.
    fn derivatives(&self, x: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>);
    /// Of sigma f + y'c, dense and symmetric.
    fn hessian(&self, x: &[f64], sigma: f64, y: &[f64]) -> Vec<Vec<f64>>;
}

trait Number: DualNum<Primitive = f64> + Copy {}
impl<D: DualNum<Primitive = f64> + Copy> Number for D {}

/// Objective and constraints over any dual number.
trait Written {
    fn write<D: Number>(x: &[D]) -> (D, Vec<D>);
}

struct Program<W> {
    name: &'static str,
    start: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    rows: Vec<(f64, f64)>,
    optimum: Option<f64>,
    other: &'static [f64],
    sort: Sort,
    ipopt: Option<u32>,
    written: PhantomData<W>,
}

impl<W: Written> Published for Program<W> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }
    fn bounds(&self) -> Vec<(f64, f64)> {
        self.bounds.clone()
    }
    fn rows(&self) -> Vec<(f64, f64)> {
        self.rows.clone()
    }
    fn optimum(&self) -> Option<f64> {
        self.optimum
    }
    fn other_optima(&self) -> &'static [f64] {
        self.other
    }
    fn sort(&self) -> Sort {
        self.sort
    }
    fn ipopt(&self) -> Option<u32> {
        self.ipopt
    }
    fn value(&self, x: &[f64]) -> (f64, Vec<f64>) {
        W::write(x)
    }
    fn derivatives(&self, x: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut gradient = vec![0.0; x.len()];
        let mut jacobian = vec![vec![0.0; x.len()]; self.rows.len()];
        let mut at: Vec<Dual64> = x.iter().map(|&v| Dual64::new(v, 0.0)).collect();
        for j in 0..x.len() {
            at[j].eps = 1.0;
            let (f, c) = W::write(&at);
            at[j].eps = 0.0;
            gradient[j] = f.eps;
            for (row, c) in jacobian.iter_mut().zip(c) {
                row[j] = c.eps;
            }
        }
        (gradient, jacobian)
    }
    fn hessian(&self, x: &[f64], sigma: f64, y: &[f64]) -> Vec<Vec<f64>> {
        let mut h = vec![vec![0.0; x.len()]; x.len()];
        let mut at: Vec<HyperDual64> = x.iter().map(|&v| v.into()).collect();
        for i in 0..x.len() {
            at[i].eps1 = 1.0;
            for j in 0..=i {
                at[j].eps2 = 1.0;
                let (f, c) = W::write(&at);
                at[j].eps2 = 0.0;
                let weighed = c.iter().zip(y).map(|(c, y)| c.eps1eps2 * y);
                h[i][j] = sigma * f.eps1eps2 + weighed.sum::<f64>();
                h[j][i] = h[i][j];
            }
            at[i].eps1 = 0.0;
        }
        h
    }
}

const INF: f64 = f64::INFINITY;
const FREE: (f64, f64) = (-INF, INF);
/// The constraint c >= 0, or a variable's sign.
const POS: (f64, f64) = (0.0, INF);
/// The constraint c = 0.
const EQ: (f64, f64) = (0.0, 0.0);

fn from(lower: f64) -> (f64, f64) {
    (lower, INF)
}
fn upto(upper: f64) -> (f64, f64) {
    (-INF, upper)
}
fn within(radius: f64) -> (f64, f64) {
    (-radius, radius)
}
fn sq<D: Number>(x: D) -> D {
    x * x
}
fn sum<D: Number>(terms: impl IntoIterator<Item = D>) -> D {
    terms.into_iter().sum()
}
fn rosenbrock<D: Number>(x1: D, x2: D) -> D {
    sq(x2 - sq(x1)) * 100.0 + sq(x1 - 1.0)
}

/// name, start, bounds, rows, optimum, IPOPT's iterations[, other optima[, sort]];
/// |variables| objective, [constraints], or |slice| the pair of them.
macro_rules! program {
    ($($fixed:expr),+; |$x:ident| $both:block) => {
        program!(@ [$($fixed),+], $x, $both)
    };
    ($($fixed:expr),+; |$($v:ident),+| $f:expr, [$($c:expr),* $(,)?]) => {
        program!(@ [$($fixed),+], x, match x {
            &[$($v),+] => ($f, vec![$($c),*]),
            _ => unreachable!(),
        })
    };
    (@ [$name:expr, $start:expr, $bounds:expr, $rows:expr, $opt:expr, $ipopt:expr], $x:ident, $w:expr) => {
        program!(@ [$name, $start, $bounds, $rows, $opt, $ipopt, []], $x, $w)
    };
    (@ [$name:expr, $start:expr, $bounds:expr, $rows:expr, $opt:expr, $ipopt:expr, $other:expr], $x:ident, $w:expr) => {
        program!(@ [$name, $start, $bounds, $rows, $opt, $ipopt, $other, Sort::Regular], $x, $w)
    };
    (@ [$name:expr, $start:expr, $bounds:expr, $rows:expr, $opt:expr, $ipopt:expr, $other:expr, $sort:expr], $x:ident, $w:expr) => {{
        struct This;
        impl Written for This {
            fn write<D: Number>($x: &[D]) -> (D, Vec<D>) {
                $w
            }
        }
        let rows: &[(f64, f64)] = &$rows;
        Box::new(Program::<This> {
            name: $name,
            start: $start.to_vec(),
            bounds: $bounds.to_vec(),
            rows: rows.to_vec(),
            optimum: $opt,
            ipopt: $ipopt,
            other: &$other,
            sort: $sort,
            written: PhantomData,
        }) as Box<dyn Published>
    }};
}

#[path = "programs_more.rs"]
mod more;

pub fn all() -> Vec<Box<dyn Published>> {
    let mut all = two_variables();
    all.extend(few_variables());
    all.extend(more::larger());
    all.extend(more::hard());
    all
}

fn two_variables() -> Vec<Box<dyn Published>> {
    vec![
        program! { "hs001", [-2.0, 1.0], [FREE, from(-1.5)], [], Some(0.0), Some(28);
        |x1, x2| rosenbrock(x1, x2), [] },
        program! { "hs002", [-2.0, 1.0], [FREE, from(1.5)], [], Some(0.05042618789361), Some(10), [4.941229317989];
        |x1, x2| rosenbrock(x1, x2), [] },
        program! { "hs003", [10.0, 1.0], [FREE, POS], [], Some(0.0), Some(4);
        |x1, x2| x2 + sq(x2 - x1) * 1e-5, [] },
        program! { "hs004", [1.125, 0.125], [from(1.0), POS], [], Some(8.0 / 3.0), Some(4);
        |x1, x2| (x1 + 1.0).powi(3) / 3.0 + x2, [] },
        program! { "hs005", [0.0, 0.0], [(-1.5, 4.0), (-3.0, 3.0)], [],
            Some(-0.75_f64.sqrt() - PI / 3.0), Some(7), [1.228369698609];
        |x1, x2| (x1 + x2).sin() + sq(x1 - x2) - x1 * 1.5 + x2 * 2.5 + 1.0, [] },
        program! { "hs006", [-1.2, 1.0], [FREE; 2], [EQ], Some(0.0), Some(5);
        |x1, x2| sq(x1 - 1.0), [(x2 - sq(x1)) * 10.0] },
        program! { "hs007", [2.0, 2.0], [FREE; 2], [EQ], Some(-3_f64.sqrt()), Some(27);
        |x1, x2| (sq(x1) + 1.0).ln() - x2, [sq(sq(x1) + 1.0) + sq(x2) - 4.0] },
        program! { "hs008", [2.0, 1.0], [FREE; 2], [EQ; 2], Some(-1.0), Some(5);
        |x1, x2| D::from(-1.0), [sq(x1) + sq(x2) - 25.0, x1 * x2 - 9.0] },
        program! { "hs009", [0.0, 0.0], [FREE; 2], [EQ], Some(-0.5), Some(3);
        |x1, x2| (x1 * (PI / 12.0)).sin() * (x2 * (PI / 16.0)).cos(), [x1 * 4.0 - x2 * 3.0] },
        program! { "hs010", [-10.0, 10.0], [FREE; 2], [POS], Some(-1.0), Some(12);
        |x1, x2| x1 - x2, [sq(x1) * -3.0 + x1 * x2 * 2.0 - sq(x2) + 1.0] },
        program! { "hs011", [4.9, 0.1], [FREE; 2], [POS], Some(-8.498464223155), Some(6);
        |x1, x2| sq(x1 - 5.0) + sq(x2) - 25.0, [x2 - sq(x1)] },
        program! { "hs012", [0.0, 0.0], [FREE; 2], [POS], Some(-30.0), Some(6);
        |x1, x2| sq(x1) * 0.5 + sq(x2) - x1 * x2 - x1 * 7.0 - x2 * 7.0,
            [sq(x1) * -4.0 - sq(x2) + 25.0] },
        // At (1, 0) the gradients of the row and of x2's bound oppose each other: no multipliers.
        program! { "hs013", [-2.0, -2.0], [POS; 2], [POS], Some(1.0), Some(47), [], Sort::Irregular;
        |x1, x2| sq(x1 - 2.0) + sq(x2), [(-x1 + 1.0).powi(3) - x2] },
        program! { "hs014", [2.0, 2.0], [FREE; 2], [POS, EQ], Some(9.0 - 2.875 * 7_f64.sqrt()), Some(5);
        |x1, x2| sq(x1 - 2.0) + sq(x2 - 1.0), [sq(x1) * -0.25 - sq(x2) + 1.0, x1 - x2 * 2.0 + 1.0] },
        program! { "hs015", [-2.0, 1.0], [upto(0.5), FREE], [POS; 2], Some(306.5), Some(13), [360.3797671743];
        |x1, x2| rosenbrock(x1, x2), [x1 * x2 - 1.0, x1 + sq(x2)] },
        program! { "hs016", [-2.0, 1.0], [(-0.5, 0.5), upto(1.0)], [POS; 2], Some(0.25), Some(10),
            [23.14466094067];
        |x1, x2| rosenbrock(x1, x2), [x1 + sq(x2), sq(x1) + x2] },
        program! { "hs017", [-2.0, 1.0], [(-0.5, 0.5), upto(1.0)], [POS; 2], Some(1.0), Some(22);
        |x1, x2| rosenbrock(x1, x2), [sq(x2) - x1, sq(x1) - x2] },
        program! { "hs018", [2.0, 2.0], [(2.0, 50.0), (0.0, 50.0)], [POS; 2], Some(5.0), Some(10);
        |x1, x2| sq(x1) * 0.01 + sq(x2), [x1 * x2 - 25.0, sq(x1) + sq(x2) - 25.0] },
        program! { "hs019", [20.1, 5.84], [(13.0, 100.0), (0.0, 100.0)], [POS; 2], Some(-6961.81387558), Some(12);
        |x1, x2| (x1 - 10.0).powi(3) + (x2 - 20.0).powi(3),
            [sq(x1 - 5.0) + sq(x2 - 5.0) - 100.0, -sq(x2 - 5.0) - sq(x1 - 6.0) + 82.81] },
        program! { "hs020", [-2.0, 1.0], [(-0.5, 0.5), FREE], [POS; 3], Some(81.5 - 25.0 * 3_f64.sqrt()), Some(5),
            [40.19872981078];
        |x1, x2| rosenbrock(x1, x2), [x1 + sq(x2), sq(x1) + x2, sq(x1) + sq(x2) - 1.0] },
        program! { "hs021", [-1.0, -1.0], [(2.0, 50.0), within(50.0)], [POS], Some(-99.96), Some(6);
        |x1, x2| sq(x1) * 0.01 + sq(x2) - 100.0, [x1 * 10.0 - x2 - 10.0] },
        program! { "hs022", [2.0, 2.0], [FREE; 2], [POS; 2], Some(1.0), Some(5);
        |x1, x2| sq(x1 - 2.0) + sq(x2 - 1.0), [-x1 - x2 + 2.0, x2 - sq(x1)] },
        program! { "hs023", [3.0, 1.0], [within(50.0); 2], [POS; 5], Some(2.0), Some(9), [9.472135955];
        |x1, x2| sq(x1) + sq(x2), [x1 + x2 - 1.0, sq(x1) + sq(x2) - 1.0, sq(x1) * 9.0 + sq(x2) - 9.0,
            sq(x1) - x2, sq(x2) - x1] },
        program! { "hs024", [1.0, 0.5], [POS; 2], [POS; 3], Some(-1.0), Some(14);
        |x1, x2| (sq(x1 - 3.0) - 9.0) * x2.powi(3) / (27.0 * 3_f64.sqrt()),
            [x1 / 3_f64.sqrt() - x2, x1 + x2 * 3_f64.sqrt(), -x1 - x2 * 3_f64.sqrt() + 6.0] },
    ]
}

fn few_variables() -> Vec<Box<dyn Published>> {
    vec![
        program! { "hs026", [-2.6, 2.0, 2.0], [FREE; 3], [EQ], Some(0.0), Some(25);
        |x1, x2, x3| sq(x1 - x2) + (x2 - x3).powi(4), [(sq(x2) + 1.0) * x1 + x3.powi(4) - 3.0] },
        program! { "hs027", [2.0; 3], [FREE; 3], [EQ], Some(0.04), Some(57);
        |x1, x2, x3| sq(x1 - 1.0) * 0.01 + sq(x2 - sq(x1)), [x1 + sq(x3) + 1.0] },
        program! { "hs028", [-4.0, 1.0, 1.0], [FREE; 3], [EQ], Some(0.0), Some(1);
        |x1, x2, x3| sq(x1 + x2) + sq(x2 + x3), [x1 + x2 * 2.0 + x3 * 3.0 - 1.0] },
        program! { "hs029", [1.0; 3], [FREE; 3], [POS], Some(-16.0 * SQRT_2), Some(7);
        |x1, x2, x3| -x1 * x2 * x3, [-sq(x1) - sq(x2) * 2.0 - sq(x3) * 4.0 + 48.0] },
        program! { "hs030", [1.0; 3], [(1.0, 10.0), within(10.0), within(10.0)], [POS], Some(1.0), Some(7);
        |x1, x2, x3| sq(x1) + sq(x2) + sq(x3), [sq(x1) + sq(x2) - 1.0] },
        program! { "hs031", [1.0; 3], [within(10.0), (1.0, 10.0), (-10.0, 1.0)], [POS], Some(6.0), Some(6);
        |x1, x2, x3| sq(x1) * 9.0 + sq(x2) + sq(x3) * 9.0, [x1 * x2 - 1.0] },
        program! { "hs032", [0.1, 0.7, 0.2], [POS; 3], [POS, EQ], Some(1.0), Some(15);
        |x1, x2, x3| sq(x1 + x2 * 3.0 + x3) + sq(x1 - x2) * 4.0,
            [x2 * 6.0 + x3 * 4.0 - x1.powi(3) - 3.0, -x1 - x2 - x3 + 1.0] },
        program! { "hs033", [0.0, 0.0, 3.0], [POS, POS, (0.0, 5.0)], [POS; 2], Some(SQRT_2 - 6.0), Some(9), [-4.0];
        |x1, x2, x3| (x1 - 1.0) * (x1 - 2.0) * (x1 - 3.0) + x3,
            [sq(x3) - sq(x2) - sq(x1), sq(x1) + sq(x2) + sq(x3) - 4.0] },
        program! { "hs034", [0.0, 1.05, 2.9], [(0.0, 100.0), (0.0, 100.0), (0.0, 10.0)], [POS; 2],
            Some(-10_f64.ln().ln()), Some(7);
        |x1, x2, x3| -x1, [x2 - x1.exp(), x3 - x2.exp()] },
        program! { "hs035", [0.5; 3], [POS; 3], [POS], Some(1.0 / 9.0), Some(7);
        |x1, x2, x3| x1 * -8.0 - x2 * 6.0 - x3 * 4.0 + sq(x1) * 2.0 + sq(x2) * 2.0 + sq(x3)
            + x1 * x2 * 2.0 + x1 * x3 * 2.0 + 9.0, [-x1 - x2 - x3 * 2.0 + 3.0] },
        program! { "hs036", [10.0; 3], [(0.0, 20.0), (0.0, 11.0), (0.0, 42.0)], [POS], Some(-3300.0), Some(11);
        |x1, x2, x3| -x1 * x2 * x3, [-x1 - x2 * 2.0 - x3 * 2.0 + 72.0] },
        program! { "hs037", [10.0; 3], [(0.0, 42.0); 3], [POS; 2], Some(-3456.0), Some(11);
        |x1, x2, x3| -x1 * x2 * x3, [-x1 - x2 * 2.0 - x3 * 2.0 + 72.0, x1 + x2 * 2.0 + x3 * 2.0] },
        program! { "hs038", [-3.0, -1.0, -3.0, -1.0], [within(10.0); 4], [], Some(0.0), Some(39);
        |x1, x2, x3, x4| rosenbrock(x1, x2) + sq(x4 - sq(x3)) * 90.0 + sq(x3 - 1.0)
            + (sq(x2 - 1.0) + sq(x4 - 1.0)) * 10.1 + (x2 - 1.0) * (x4 - 1.0) * 19.8, [] },
        program! { "hs039", [2.0; 4], [FREE; 4], [EQ; 2], Some(-1.0), Some(13);
        |x1, x2, x3, x4| -x1, [x2 - x1.powi(3) - sq(x3), sq(x1) - x2 - sq(x4)] },
        program! { "hs040", [0.8; 4], [FREE; 4], [EQ; 3], Some(-0.25), Some(3);
        |x1, x2, x3, x4| -x1 * x2 * x3 * x4, [x1.powi(3) + sq(x2) - 1.0, sq(x1) * x4 - x3, sq(x4) - x2] },
        program! { "hs041", [2.0; 4], [(0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 2.0)], [EQ],
            Some(52.0 / 27.0), Some(7);
        |x1, x2, x3, x4| -x1 * x2 * x3 + 2.0, [x1 + x2 * 2.0 + x3 * 2.0 - x4] },
        program! { "hs042", [1.0; 4], [FREE; 4], [EQ; 2], Some(28.0 - 10.0 * SQRT_2), Some(4);
        |x1, x2, x3, x4| sq(x1 - 1.0) + sq(x2 - 2.0) + sq(x3 - 3.0) + sq(x4 - 4.0),
            [x1 - 2.0, sq(x3) + sq(x4) - 2.0] },
        program! { "hs043", [0.0; 4], [FREE; 4], [POS; 3], Some(-44.0), Some(8);
        |x1, x2, x3, x4| sq(x1) + sq(x2) + sq(x3) * 2.0 + sq(x4) - x1 * 5.0 - x2 * 5.0 - x3 * 21.0 + x4 * 7.0, [
            -sq(x1) - sq(x2) - sq(x3) - sq(x4) - x1 + x2 - x3 + x4 + 8.0,
            -sq(x1) - sq(x2) * 2.0 - sq(x3) - sq(x4) * 2.0 + x1 + x4 + 10.0,
            sq(x1) * -2.0 - sq(x2) - sq(x3) - x1 * 2.0 + x2 + x4 + 5.0] },
        program! { "hs044", [0.0; 4], [POS; 4], [POS; 6], Some(-15.0), Some(24), [-13.0];
        |x1, x2, x3, x4| x1 - x2 - x3 - x1 * x3 + x1 * x4 + x2 * x3 - x2 * x4, [
            -x1 - x2 * 2.0 + 8.0, x1 * -4.0 - x2 + 12.0, x1 * -3.0 - x2 * 4.0 + 12.0,
            x3 * -2.0 - x4 + 8.0, -x3 - x4 * 2.0 + 8.0, -x3 - x4 + 5.0] },
        program! { "hs045", [2.0; 5], [(0.0, 1.0), (0.0, 2.0), (0.0, 3.0), (0.0, 4.0), (0.0, 5.0)], [],
            Some(1.0), Some(11);
        |x1, x2, x3, x4, x5| x1 * x2 * x3 * x4 * x5 / -120.0 + 2.0, [] },
        program! { "hs046", [0.5_f64.sqrt(), 1.75, 0.5, 2.0, 2.0], [FREE; 5], [EQ; 2], Some(0.0), Some(19), [0.02108892862747];
        |x1, x2, x3, x4, x5| sq(x1 - x2) + sq(x3 - 1.0) + (x4 - 1.0).powi(4) + (x5 - 1.0).powi(6),
            [sq(x1) * x4 + (x4 - x5).sin() - 1.0, x2 + x3.powi(4) * sq(x4) - 2.0] },
        program! { "hs048", [3.0, 5.0, -3.0, 2.0, -2.0], [FREE; 5], [EQ; 2], Some(0.0), Some(1);
        |x1, x2, x3, x4, x5| sq(x1 - 1.0) + sq(x2 - x3) + sq(x4 - x5),
            [x1 + x2 + x3 + x4 + x5 - 5.0, x3 - (x4 + x5) * 2.0 + 3.0] },
        program! { "hs049", [10.0, 7.0, 2.0, -3.0, 0.8], [FREE; 5], [EQ; 2], Some(0.0), Some(19);
        |x1, x2, x3, x4, x5| sq(x1 - x2) + sq(x3 - 1.0) + (x4 - 1.0).powi(4) + (x5 - 1.0).powi(6),
            [x1 + x2 + x3 + x4 * 4.0 - 7.0, x3 + x5 * 5.0 - 6.0] },
        program! { "hs050", [35.0, -31.0, 11.0, 5.0, -5.0], [FREE; 5], [EQ; 3], Some(0.0), Some(9);
        |x1, x2, x3, x4, x5| sq(x1 - x2) + sq(x2 - x3) + (x3 - x4).powi(4) + sq(x4 - x5), [
            x1 + x2 * 2.0 + x3 * 3.0 - 6.0, x2 + x3 * 2.0 + x4 * 3.0 - 6.0, x3 + x4 * 2.0 + x5 * 3.0 - 6.0] },
        program! { "hs051", [2.5, 0.5, 2.0, -1.0, 0.5], [FREE; 5], [EQ; 3], Some(0.0), Some(1);
        |x1, x2, x3, x4, x5| sq(x1 - x2) + sq(x2 + x3 - 2.0) + sq(x4 - 1.0) + sq(x5 - 1.0),
            [x1 + x2 * 3.0 - 4.0, x3 + x4 - x5 * 2.0, x2 - x5] },
        program! { "hs052", [2.0; 5], [FREE; 5], [EQ; 3], Some(1859.0 / 349.0), Some(1);
        |x1, x2, x3, x4, x5| sq(x1 * 4.0 - x2) + sq(x2 + x3 - 2.0) + sq(x4 - 1.0) + sq(x5 - 1.0),
            [x1 + x2 * 3.0, x3 + x4 - x5 * 2.0, x2 - x5] },
        program! { "hs053", [2.0; 5], [within(10.0); 5], [EQ; 3], Some(176.0 / 43.0), Some(6);
        |x1, x2, x3, x4, x5| sq(x1 - x2) + sq(x2 + x3 - 2.0) + sq(x4 - 1.0) + sq(x5 - 1.0),
            [x1 + x2 * 3.0, x3 + x4 - x5 * 2.0, x2 - x5] },
        program! { "hs060", [2.0; 3], [within(10.0); 3], [EQ], Some(0.03256820025507), Some(6), [2.189660587582];
        |x1, x2, x3| sq(x1 - 1.0) + sq(x1 - x2) + (x2 - x3).powi(4),
            [x1 * (sq(x2) + 1.0) + x3.powi(4) - (4.0 + 3.0 * SQRT_2)] },
        program! { "hs061", [0.0; 3], [FREE; 3], [EQ; 2], Some(-143.6461421978), Some(10), [-81.91909609463];
        |x1, x2, x3| sq(x1) * 4.0 + sq(x2) * 2.0 + sq(x3) * 2.0 - x1 * 33.0 + x2 * 16.0 - x3 * 24.0,
            [x1 * 3.0 - sq(x2) * 2.0 - 7.0, x1 * 4.0 - sq(x3) - 11.0] },
        program! { "hs062", [0.7, 0.2, 0.1], [(0.0, 1.0); 3], [EQ], Some(-26272.51448732), Some(6);
        |x1, x2, x3| (((x1 + x2 + x3 + 0.03) / (x1 * 0.09 + x2 + x3 + 0.03)).ln() * 255.0
            + ((x2 + x3 + 0.03) / (x2 * 0.07 + x3 + 0.03)).ln() * 280.0
            + ((x3 + 0.03) / (x3 * 0.13 + 0.03)).ln() * 290.0) * -32.174, [x1 + x2 + x3 - 1.0] },
        program! { "hs063", [2.0; 3], [POS; 3], [EQ; 2], Some(961.7151721301), Some(5);
        |x1, x2, x3| -sq(x1) - sq(x2) * 2.0 - sq(x3) - x1 * x2 - x1 * x3 + 1000.0,
            [x1 * 8.0 + x2 * 14.0 + x3 * 7.0 - 56.0, sq(x1) + sq(x2) + sq(x3) - 25.0] },
        program! { "hs064", [1.0; 3], [from(1e-5); 3], [POS], Some(6299.842427922), Some(16);
        |x1, x2, x3| x1 * 5.0 + x1.recip() * 5e4 + x2 * 20.0 + x2.recip() * 7.2e4 + x3 * 10.0 + x3.recip() * 1.44e5,
            [x1.recip() * -4.0 - x2.recip() * 32.0 - x3.recip() * 120.0 + 1.0] },
        program! { "hs065", [-5.0, 5.0, 0.0], [within(4.5), within(4.5), within(5.0)], [POS], Some(0.9535288568048), Some(16);
        |x1, x2, x3| sq(x1 - x2) + sq(x1 + x2 - 10.0) / 9.0 + sq(x3 - 5.0), [-sq(x1) - sq(x2) - sq(x3) + 48.0] },
        program! { "hs066", [0.0, 1.05, 2.9], [(0.0, 100.0), (0.0, 100.0), (0.0, 10.0)], [POS; 2],
            Some(0.5181632741815), Some(10);
        |x1, x2, x3| x3 * 0.2 - x1 * 0.8, [x2 - x1.exp(), x3 - x2.exp()] },
        program! { "hs071", [1.0, 5.0, 5.0, 1.0], [(1.0, 5.0); 4], [from(25.0), (40.0, 40.0)], Some(17.01401728916), Some(8), [27.14642819948, 30.6969384567];
        |x1, x2, x3, x4| x1 * x4 * (x1 + x2 + x3) + x3, [x1 * x2 * x3 * x4, sq(x1) + sq(x2) + sq(x3) + sq(x4)] },
        program! { "hs072", [1.0; 4], [(0.001, 4e5), (0.001, 3e5), (0.001, 2e5), (0.001, 1e5)], [POS; 2],
            Some(727.6793577896), Some(16);
        |x1, x2, x3, x4| x1 + x2 + x3 + x4 + 1.0, [
            x1.recip() * -4.0 - x2.recip() * 2.25 - x3.recip() - x4.recip() * 0.25 + 0.0401,
            x1.recip() * -0.16 - x2.recip() * 0.36 - (x3.recip() + x4.recip()) * 0.64 + 0.010085] },
        program! { "hs073", [1.0; 4], [POS; 4], [POS, POS, EQ], Some(29.89437815914), Some(8);
        |x1, x2, x3, x4| x1 * 24.55 + x2 * 26.75 + x3 * 39.0 + x4 * 40.5, [
            x1 * 2.3 + x2 * 5.6 + x3 * 11.1 + x4 * 1.3 - 5.0,
            x1 * 12.0 + x2 * 11.9 + x3 * 41.8 + x4 * 52.1 - 21.0
                - (sq(x1) * 0.28 + sq(x2) * 0.19 + sq(x3) * 20.5 + sq(x4) * 0.62).sqrt() * 1.645,
            x1 + x2 + x3 + x4 - 1.0] },
        power("hs074", 0.55, 5126.498109595),
        power("hs075", 0.48, 5174.412695378),
        program! { "hs076", [0.5; 4], [POS; 4], [POS; 3], Some(-103.0 / 22.0), Some(7);
        |x1, x2, x3, x4| sq(x1) + sq(x2) * 0.5 + sq(x3) + sq(x4) * 0.5 - x1 * x3 + x3 * x4 - x1 - x2 * 3.0 + x3 - x4, [
            -x1 - x2 * 2.0 - x3 - x4 + 5.0, x1 * -3.0 - x2 - x3 * 2.0 + x4 + 4.0, x2 + x3 * 4.0 - 1.5] },
    ]
}

/// Hs074 and hs075 differ in how far apart the two angles may be.
fn power(name: &'static str, apart: f64, optimum: f64) -> Box<dyn Published> {
    program! { name, [0.0; 4], [(0.0, 1200.0), (0.0, 1200.0), within(apart), within(apart)],
        [from(-apart), from(-apart), EQ, EQ, EQ], Some(optimum), Some(8);
    |x1, x2, x3, x4| x1 * 3.0 + x1.powi(3) * 1e-6 + x2 * 2.0 + x2.powi(3) * (2e-6 / 3.0), [
        x4 - x3, x3 - x4,
        ((-x3 - 0.25).sin() + (-x4 - 0.25).sin()) * 1000.0 + 894.8 - x1,
        ((x3 - 0.25).sin() + (x3 - x4 - 0.25).sin()) * 1000.0 + 894.8 - x2,
        ((x4 - 0.25).sin() + (x4 - x3 - 0.25).sin()) * 1000.0 + 1294.8] }
}
