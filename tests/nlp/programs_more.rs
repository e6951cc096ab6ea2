//! The larger programs, and the hard ones.
use super::*;

pub fn larger() -> Vec<Box<dyn Published>> {
    vec![
        program! { "hs056", {
            let (a, b) = ((1.0_f64 / 4.2).sqrt().asin(), (5.0_f64 / 7.2).sqrt().asin());
            [1.0, 1.0, 1.0, a, a, a, b]
        }, [FREE; 7], [EQ; 4], Some(-3.456), Some(10);
        |x1, x2, x3, x4, x5, x6, x7| -x1 * x2 * x3, [
            x1 - sq(x4.sin()) * 4.2, x2 - sq(x5.sin()) * 4.2, x3 - sq(x6.sin()) * 4.2,
            x1 + x2 * 2.0 + x3 * 2.0 - sq(x7.sin()) * 7.2] },
        program! { "hs077", [2.0; 5], [FREE; 5], [EQ; 2], Some(0.2415051287902), Some(11), [4.602561512118, 5.533357278641, 9.9087601967];
        |x1, x2, x3, x4, x5| sq(x1 - 1.0) + sq(x1 - x2) + sq(x3 - 1.0) + (x4 - 1.0).powi(4) + (x5 - 1.0).powi(6),
            [sq(x1) * x4 + (x4 - x5).sin() - 2.0 * SQRT_2, x2 + x3.powi(4) * sq(x4) - 8.0 - SQRT_2] },
        program! { "hs078", [-2.0, 1.5, 2.0, -1.0, -1.0], [FREE; 5], [EQ; 3], Some(-2.919700408964), Some(4), [-0.823594830085];
        |x| { (product(x), ball_and_products(x)) } },
        program! { "hs079", [2.0; 5], [FREE; 5], [EQ; 3], Some(0.07877682087106), Some(4);
        |x1, x2, x3, x4, x5| sq(x1 - 1.0) + sq(x1 - x2) + sq(x2 - x3) + (x3 - x4).powi(4) + (x4 - x5).powi(4), [
            x1 + sq(x2) + x3.powi(3) - 2.0 - 3.0 * SQRT_2, x2 - sq(x3) + x4 + 2.0 - 2.0 * SQRT_2, x1 * x5 - 2.0] },
        program! { "hs080", [-2.0, 2.0, 2.0, -1.0, -1.0], BOX80, [EQ; 3], Some(0.05394984777027), Some(5), [0.4388512199428];
        |x| { (product(x).exp(), ball_and_products(x)) } },
        program! { "hs081", [-2.0, 2.0, 2.0, -1.0, -1.0], BOX80, [EQ; 3], Some(0.05394984777027), Some(68), [0.4388512199428];
        |x| {
            let c = ball_and_products(x);
            (product(x).exp() - sq(c[2]) * 0.5, c)
        } },
        program! { "hs083", [78.0, 33.0, 27.0, 27.0, 27.0],
            [(78.0, 102.0), (33.0, 45.0), (27.0, 45.0), (27.0, 45.0), (27.0, 45.0)],
            [(0.0, 92.0), (0.0, 20.0), (0.0, 5.0)], Some(-30665.53867178), Some(9);
        |x1, x2, x3, x4, x5| sq(x3) * 5.3578547 + x1 * x5 * 0.8356891 + x1 * 37.293239 - 40792.141, [
            x2 * x5 * 0.0056858 + x1 * x4 * 0.0006262 - x3 * x5 * 0.0022053 + 85.334407,
            x2 * x5 * 0.0071317 + x1 * x2 * 0.0029955 + sq(x3) * 0.0021813 + 80.51249 - 90.0,
            x3 * x5 * 0.0047026 + x1 * x3 * 0.0012547 + x3 * x4 * 0.0019085 + 9.300961 - 20.0] },
        program! { "hs086", [0.0, 0.0, 0.0, 0.0, 1.0], [POS; 5], [POS; 10], Some(-32.34867896572), Some(10);
        |x| {
            let f = sum((0..5).map(|j| {
                x[j] * E[j] + x[j].powi(3) * D3[j] + sum((0..5).map(|i| x[i] * x[j] * C[i][j]))
            }));
            (f, (0..10).map(|i| sum((0..5).map(|j| x[j] * A[i][j])) - B[i]).collect())
        } },
        program! { "hs093", [5.54, 4.4, 12.02, 11.82, 0.702, 0.852], [POS; 6], [POS; 2], Some(135.0759628292), Some(7);
        |x1, x2, x3, x4, x5, x6| x1 * x4 * (x1 + x2 + x3) * (sq(x5) * 0.0607 + 0.0204)
            + x2 * x3 * (x1 + x2 * 1.57 + x4) * (sq(x6) * 0.0437 + 0.0187), [
            x1 * x2 * x3 * x4 * x5 * x6 * 0.001 - 2.07,
            x1 * x4 * sq(x5) * (x1 + x2 + x3) * -0.00062 - x2 * x3 * sq(x6) * (x1 + x2 * 1.57 + x4) * 0.00058 + 1.0] },
        program! { "hs099", [0.5; 7], [(0.0, 1.58); 7], [EQ; 2], Some(-831079891.5101), Some(5);
        |x| {
            let (mut q, mut r, mut s) = (D::from(0.0), D::from(0.0), D::from(0.0));
            let legs = [(50.0, 25.0), (50.0, 25.0), (75.0, 50.0), (75.0, 50.0), (75.0, 50.0), (100.0, 90.0), (100.0, 90.0)];
            for (x, (a, t)) in x.iter().zip(legs) {
                let lift = x.sin() * a - 32.0;
                q += lift * (0.5 * t * t) + s * t;
                s += lift * t;
                r += x.cos() * (a * t);
            }
            (-sq(r), vec![q - 1e5, s - 1e3])
        } },
        program! { "hs100", [1.0, 2.0, 0.0, 4.0, 0.0, 1.0, 1.0], [FREE; 7], [POS; 4], Some(680.6300573744), Some(9);
        |x1, x2, x3, x4, x5, x6, x7| sq(x1 - 10.0) + sq(x2 - 12.0) * 5.0 + x3.powi(4) + sq(x4 - 11.0) * 3.0
            + x5.powi(6) * 10.0 + sq(x6) * 7.0 + x7.powi(4) - x6 * x7 * 4.0 - x6 * 10.0 - x7 * 8.0, [
            sq(x1) * -2.0 - x2.powi(4) * 3.0 - x3 - sq(x4) * 4.0 - x5 * 5.0 + 127.0,
            x1 * -7.0 - x2 * 3.0 - sq(x3) * 10.0 - x4 + x5 + 282.0,
            x1 * -23.0 - sq(x2) - sq(x6) * 6.0 + x7 * 8.0 + 196.0,
            sq(x1) * -4.0 - sq(x2) + x1 * x2 * 3.0 - sq(x3) * 2.0 - x6 * 5.0 + x7 * 11.0] },
        program! { "hs104", [6.0, 3.0, 0.4, 0.2, 6.0, 6.0, 1.0, 0.5], [(0.1, 10.0); 8],
            [POS, POS, POS, POS, (1.0, 4.2)], Some(3.951163440103), Some(8);
        |x1, x2, x3, x4, x5, x6, x7, x8| hs104(x1, x2, x7, x8), [
            x5 * x7 * -0.0588 - x1 * 0.1 + 1.0, x6 * x8 * -0.0588 - (x1 + x2) * 0.1 + 1.0,
            (x3 * -4.0 - x3.powf(-0.71) * 2.0) / x5 - x3.powf(-1.3) * x7 * 0.0588 + 1.0,
            (x4 * -4.0 - x4.powf(-0.71) * 2.0) / x6 - x4.powf(-1.3) * x8 * 0.0588 + 1.0, hs104(x1, x2, x7, x8)] },
        program! { "hs106", [5000.0, 5000.0, 5000.0, 200.0, 350.0, 150.0, 225.0, 425.0],
            [(100.0, 1e4), (1e3, 1e4), (1e3, 1e4), (10.0, 1e3), (10.0, 1e3), (10.0, 1e3), (10.0, 1e3), (10.0, 1e3)],
            [POS; 6], Some(7049.248020529), Some(18);
        |x1, x2, x3, x4, x5, x6, x7, x8| x1 + x2 + x3, [
            (x4 + x6) * -0.0025 + 1.0, (x5 + x7 - x4) * -0.0025 + 1.0, (x8 - x5) * -0.01 + 1.0,
            x1 * x6 - x4 * 833.33252 - x1 * 100.0 + 83333.333,
            x2 * x7 - x5 * 1250.0 - x2 * x4 + x4 * 1250.0, x3 * x8 - 1.25e6 - x3 * x5 + x5 * 2500.0] },
        program! { "hs108", [1.0; 9], [FREE, FREE, FREE, FREE, FREE, FREE, FREE, FREE, POS], [POS; 13],
            Some(-0.75_f64.sqrt()), Some(11), [-0.6749814429301, -0.5];
        |x1, x2, x3, x4, x5, x6, x7, x8, x9| (x1 * x4 - x2 * x3 + x3 * x9 - x5 * x9 + x5 * x8 - x6 * x7) * -0.5, [
            -sq(x3) - sq(x4) + 1.0, -sq(x9) + 1.0, -sq(x5) - sq(x6) + 1.0, -sq(x1) - sq(x2 - x9) + 1.0,
            -sq(x1 - x5) - sq(x2 - x6) + 1.0, -sq(x1 - x7) - sq(x2 - x8) + 1.0,
            -sq(x3 - x5) - sq(x4 - x6) + 1.0, -sq(x3 - x7) - sq(x4 - x8) + 1.0, -sq(x7) - sq(x8 - x9) + 1.0,
            x1 * x4 - x2 * x3, x3 * x9, -x5 * x9, x5 * x8 - x6 * x7] },
        program! { "hs110", [9.0; 10], [(2.001, 9.999); 10], [], Some(-45.77846970745), None;
        |x| {
            let f = sum(x.iter().map(|&x| sq((x - 2.0).ln()) + sq((-x + 10.0).ln())));
            (f - product(x).powf(0.2), vec![])
        } },
        program! { "hs111", [-2.3; 10], [within(100.0); 10], [EQ; 3], Some(-47.76109085937), Some(15);
        |x| { chemistry(&x.iter().map(|x| x.exp()).collect::<Vec<D>>()) } },
        program! { "hs112", [0.1; 10], [from(1e-6); 10], [EQ; 3], Some(-47.76109085937), Some(10);
        |x| { chemistry(x) } },
        program! { "hs113", [2.0, 3.0, 5.0, 5.0, 1.0, 2.0, 7.0, 3.0, 6.0, 10.0], [FREE; 10], [POS; 8],
            Some(24.30620906818), Some(9);
        |x1, x2, x3, x4, x5, x6, x7, x8, x9, x10| sq(x1) + sq(x2) + x1 * x2 - x1 * 14.0 - x2 * 16.0 + sq(x3 - 10.0)
            + sq(x4 - 5.0) * 4.0 + sq(x5 - 3.0) + sq(x6 - 1.0) * 2.0 + sq(x7) * 5.0 + sq(x8 - 11.0) * 7.0
            + sq(x9 - 10.0) * 2.0 + sq(x10 - 7.0) + 45.0, [
            x1 * -4.0 - x2 * 5.0 + x7 * 3.0 - x8 * 9.0 + 105.0, x1 * -10.0 + x2 * 8.0 + x7 * 17.0 - x8 * 2.0,
            x1 * 8.0 - x2 * 2.0 - x9 * 5.0 + x10 * 2.0 + 12.0,
            sq(x1 - 2.0) * -3.0 - sq(x2 - 3.0) * 4.0 - sq(x3) * 2.0 + x4 * 7.0 + 120.0,
            sq(x1) * -5.0 - x2 * 8.0 - sq(x3 - 6.0) + x4 * 2.0 + 40.0,
            sq(x1 - 8.0) * -0.5 - sq(x2 - 4.0) * 2.0 - sq(x5) * 3.0 + x6 + 30.0,
            -sq(x1) - sq(x2 - 2.0) * 2.0 + x1 * x2 * 2.0 - x5 * 14.0 + x6 * 6.0,
            x1 * 3.0 - x2 * 6.0 - sq(x9 - 8.0) * 12.0 + x10 * 7.0] },
        program! { "hs114", [1745.0, 12000.0, 110.0, 3048.0, 1974.0, 89.2, 92.8, 8.0, 3.6, 145.0],
            [(1e-5, 2000.0), (1e-5, 16000.0), (1e-5, 120.0), (1e-5, 5000.0), (1e-5, 2000.0), (85.0, 93.0),
             (90.0, 95.0), (3.0, 12.0), (1.2, 4.0), (145.0, 162.0)],
            [POS, POS, POS, POS, POS, POS, POS, POS, EQ, EQ, EQ], Some(-1768.806963716), Some(13);
        |x| {
            let &[x1, x2, x3, x4, x5, x6, x7, x8, x9, x10] = x else { unreachable!() };
            let (a, b) = (0.99, 0.9);
            let f = x1 * 5.04 + x2 * 0.035 + x3 * 10.0 + x5 * 3.36 - x4 * x7 * 0.063;
            let g1 = x10 * -0.222 - x9 * b + 35.82;
            let g2 = x7 * 3.0 - x10 * a - 133.0;
            let g5 = x1 * 1.12 + x1 * x8 * 0.13167 - x1 * sq(x8) * 0.00667 - x4 * a;
            let g6 = x8 * 1.098 - sq(x8) * 0.038 + x6 * 0.325 - x7 * a + 57.425;
            (f, vec![g1, g2, x9 * (1.0 / b - b) - g1, x10 * (1.0 / a - a) - g2, g5, g6,
                x4 * (1.0 / a - a) - g5, x7 * (1.0 / a - a) - g6, x4 * 1.22 - x1 - x5,
                x3 * 98000.0 / (x4 * x9 + x3 * 1000.0) - x6, (x2 + x5) / x1 - x8])
        } },
        program! { "hs116", [0.5, 0.8, 0.9, 0.1, 0.14, 0.5, 489.0, 80.0, 650.0, 450.0, 150.0, 150.0, 150.0],
            [(0.1, 1.0), (0.1, 1.0), (0.1, 1.0), (1e-4, 0.1), (0.1, 0.9), (0.1, 0.9), (0.1, 1e3), (0.1, 1e3),
             (500.0, 1e3), (0.1, 500.0), (1.0, 150.0), (1e-4, 150.0), (1e-4, 150.0)],
            [POS, POS, POS, (50.0, 250.0), POS, POS, POS, POS, POS, POS, POS, POS, POS, POS],
            Some(97.58750955807), Some(19);
        |x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13| x11 + x12 + x13, [
            x3 - x2, x2 - x1, (x8 - x7) * 0.002 + 1.0, x11 + x12 + x13,
            x13 - x10 * 1.262626 + x3 * x10 * 1.231059, membrane(x2, x5), membrane(x3, x6), membrane(x1, x4),
            x12 - x9 * 1.262626 + x2 * x9 * 1.231059, x11 - x8 * 1.262626 + x1 * x8 * 1.231059,
            x5 * x7 - x1 * x8 - x4 * x7 + x4 * x8,
            (x2 * x9 + x5 * x8 - x1 * x8 - x6 * x9) * -0.002 - x5 - x6 + 1.0,
            x2 * x9 - x3 * x10 - x6 * x9 - x2 * 500.0 + x6 * 500.0 + x2 * x10,
            x2 - 0.9 - (x2 * x10 - x3 * x10) * 0.002] },
        program! { "hs117", {
            let mut start = [0.001; 15];
            start[6] = 60.0;
            start
        }, [POS; 15], [POS; 5], Some(32.34867896572), Some(19);
        |x| {
            let (u, v) = x.split_at(10);
            let cv = |j: usize| sum((0..5).map(|k| v[k] * C[k][j]));
            let f = sum((0..5).map(|j| cv(j) * v[j] + v[j].powi(3) * (2.0 * D3[j])));
            let rows = (0..5).map(|j| {
                cv(j) * 2.0 + sq(v[j]) * (3.0 * D3[j]) + E[j] - sum((0..10).map(|k| u[k] * A[k][j]))
            });
            (f - sum((0..10).map(|k| u[k] * B[k])), rows.collect())
        } },
        program! { "hs118", [20.0, 55.0, 15.0, 20.0, 60.0, 20.0, 20.0, 60.0, 20.0, 20.0, 60.0, 20.0, 20.0, 60.0, 20.0],
            [[(8.0, 21.0), (43.0, 57.0), (3.0, 16.0)], LATER, LATER, LATER, LATER].concat(),
            [&[(0.0, 13.0), (0.0, 14.0), (0.0, 13.0)].repeat(4)[..], &[POS; 5]].concat(),
            Some(664.82045), Some(10);
        |x| {
            let f = sum(x.chunks(3).map(|x| x[0] * 2.3 + sq(x[0]) * 1e-4 + x[1] * 1.7 + sq(x[1]) * 1e-4
                + x[2] * 2.2 + sq(x[2]) * 1.5e-4));
            let steps = x.windows(4).map(|x| x[3] - x[0] + 7.0);
            let sums = x.chunks(3).zip([60.0, 50.0, 70.0, 85.0, 100.0]).map(|(x, w)| x[0] + x[1] + x[2] - w);
            (f, steps.chain(sums).collect())
        } },
        program! { "hs119", [10.0; 16], [(0.0, 5.0); 16], [EQ; 8], Some(244.8996975168), Some(17);
        |x| {
            let p: Vec<D> = x.iter().map(|&x| sq(x) + x + 1.0).collect();
            let f = sum(PAIRS.iter().map(|&(i, j)| p[i - 1] * p[j - 1]));
            let rows = (0..8).map(|i| {
                let ninth = if i == 6 { x[8] * -0.36 } else { D::from(0.0) };
                sum((0..8).map(|j| x[j] * B119[i][j])) + ninth + x[8 + i] - C119[i]
            });
            (f, rows.collect())
        } },
    ]
}

pub fn hard() -> Vec<Box<dyn Published>> {
    vec![
        // Waechter and Biegler's x1^2 - x2 + a = 0, x1 - x3 - b = 0: from here, methods whose every
        // step meets the linearized rows cannot converge to a feasible point. CUTEst's WACHBIEG has
        // a = -1, b = 1/2; Ipopt itself ends there in local infeasibility at (-1, 0, 0), after 15
        // iterations by the report above. It solves a = b = 1.
        program! { "wachbieg", [-2.0, 3.0, 1.0], [FREE, POS, POS], [EQ; 2], Some(1.0), None;
        |x1, x2, x3| x1, [sq(x1) - x2 - 1.0, x1 - x3 - 0.5] },
        program! { "wachbieg_1_1", [-2.0, 3.0, 1.0], [FREE, POS, POS], [EQ; 2], Some(1.0), None;
        |x1, x2, x3| x1, [sq(x1) - x2 + 1.0, x1 - x3 - 1.0] },
        // Powell's form of Maratos' (Nocedal and Wright, example 15.4), from feasible points:
        // full steps raise both objective and violation however near the optimum (1, 0).
        maratos("maratos_0.1", 0.1),
        maratos("maratos_0.8", 0.8),
        maratos("maratos_1.5", 1.5),
        maratos("maratos_2.5", 2.5),
        // CUTEst's MARATOS.
        program! { "maratos_cutest", [1.1, 0.1], [FREE; 2], [EQ], Some(-1.0), Some(4);
        |x1, x2| (sq(x1) + sq(x2) - 1.0) * 1e-6 - x1, [sq(x1) + sq(x2) - 1.0] },
        program! { "infeasible_linear", [0.0, 0.0], [FREE; 2], [(1.0, 1.0), (3.0, 3.0)], None, None, [], Sort::Infeasible;
        |x1, x2| sq(x1) + sq(x2), [x1 + x2, x1 + x2] },
        program! { "infeasible_square", [2.0], [FREE], [EQ], None, None, [], Sort::Infeasible;
        |x| { (x[0], vec![sq(x[0]) + 1.0]) } },
        program! { "infeasible_disk", [0.5, 0.5], [FREE; 2], [upto(1.0), from(3.0)], None, None, [], Sort::Infeasible;
        |x1, x2| x1 - x2, [sq(x1) + sq(x2), x1 + x2] },
        program! { "infeasible_bounds", [1.0, 1.0], [(0.0, 2.0); 2], [from(5.0)], None, None, [], Sort::Infeasible;
        |x1, x2| sq(x1 - 1.0) + x2, [x1 + x2] },
        // Byrd, Curtis and Nocedal (2010), "Infeasibility detection and SQP methods".
        program! { "infeasible_isolated", [3.0, 2.0], [FREE; 2], [POS; 4], None, None, [], Sort::Infeasible;
        |x1, x2| x1 + x2, [-sq(x1) + x2 - 1.0, -sq(x1) - x2 - 1.0, x1 - sq(x2) - 1.0, -x1 - sq(x2) - 1.0] },
        program! { "infeasible_nactive", [-20.0, 10.0], [FREE; 2], [POS; 3], None, None, [], Sort::Infeasible;
        |x1, x2| x1, [(x1 + sq(x2) + 1.0) * -0.5, x1 - sq(x2), sq(x2) - x1] },
        program! { "redundant_rows", [0.0, 1.0, 5.0], [FREE; 3], [(3.0, 3.0), (6.0, 6.0), EQ], Some(3.0), None, [], Sort::Irregular;
        |x1, x2, x3| sq(x1) + sq(x2) + sq(x3), [x1 + x2 + x3, (x1 + x2 + x3) * 2.0, x1 - x2] },
        program! { "redundant_circle", [1.0, 0.5], [FREE; 2], [(2.0, 2.0), (4.0, 4.0)], Some(-2.0), None, [], Sort::Irregular;
        |x1, x2| x1 + x2, [sq(x1) + sq(x2), (sq(x1) + sq(x2)) * 2.0] },
        program! { "no_interior", [0.0, 0.0], [FREE; 2], [upto(2.0), from(2.0)], Some(0.5), None, [], Sort::Irregular;
        |x1, x2| sq(x1 - 3.0) + sq(x2), [x1 + x2, x1 + x2] },
        // The disk and the half-plane meet in (1, 0) alone, where x2 has no multipliers.
        program! { "touching", [0.0, 1.0], [FREE; 2], [upto(1.0), from(1.0)], Some(0.0), None, [], Sort::Irregular;
        |x1, x2| x2, [sq(x1) + sq(x2), x1] },
        // Complementarity: no feasible point meets MFCQ, the multipliers of (1, 0) are unbounded.
        program! { "complementarity", [0.5, 0.4], [POS; 2], [upto(0.0)], Some(1.0), None, [2.0], Sort::Irregular;
        |x1, x2| sq(x1 - 1.0) + sq(x2 - 1.0), [x1 * x2] },
        // Nocedal and Wright, example 16.4.
        program! { "convex_qp", [2.0, 0.0], [POS; 2], [POS; 3], Some(0.8), None;
        |x1, x2| sq(x1 - 1.0) + sq(x2 - 2.5), [x1 - x2 * 2.0 + 2.0, -x1 - x2 * 2.0 + 6.0, -x1 + x2 * 2.0 + 2.0] },
        program! { "unbounded_linear", [1.0, 2.0], [POS; 2], [EQ], None, None, [], Sort::Unbounded;
        |x1, x2| -x1 - x2, [x1 - x2] },
        program! { "unbounded_cubic", [-1.0, 1.0], [FREE; 2], [POS], None, None, [], Sort::Unbounded;
        |x1, x2| x1.powi(3), [x2 - sq(x1)] },
        program! { "unbounded_square", [1.0, 2.0], [POS; 2], [POS], None, None, [], Sort::Unbounded;
        |x1, x2| -x1 * x2, [x2 - x1] },
    ]
}

fn maratos(name: &'static str, angle: f64) -> Box<dyn Published> {
    program! { name, [angle.cos(), angle.sin()], [FREE; 2], [(1.0, 1.0)], Some(-1.0), None;
    |x1, x2| (sq(x1) + sq(x2) - 1.0) * 2.0 - x1, [sq(x1) + sq(x2)] }
}

const BOX80: [(f64, f64); 5] = [
    (-2.3, 2.3),
    (-2.3, 2.3),
    (-3.2, 3.2),
    (-3.2, 3.2),
    (-3.2, 3.2),
];

/// The rows of hs078, hs080 and hs081.
fn ball_and_products<D: Number>(x: &[D]) -> Vec<D> {
    let square = sum(x.iter().map(|&x| sq(x)));
    vec![
        square - 10.0,
        x[1] * x[2] - x[3] * x[4] * 5.0,
        x[0].powi(3) + x[1].powi(3) + 1.0,
    ]
}

fn product<D: Number>(x: &[D]) -> D {
    x.iter().copied().product()
}

fn hs104<D: Number>(x1: D, x2: D, x7: D, x8: D) -> D {
    ((x1 / x7).powf(0.67) + (x2 / x8).powf(0.67)) * 0.4 + 10.0 - x1 - x2
}

/// Of hs116.
fn membrane<D: Number>(x: D, y: D) -> D {
    y - x * 0.03475 - x * y * 0.975 + sq(x) * 0.00975
}

/// The equilibrium of hs111 and hs112.
fn chemistry<D: Number>(x: &[D]) -> (D, Vec<D>) {
    let c = [
        -6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.1, -10.708, -26.662, -22.179,
    ];
    let total = sum(x.iter().copied());
    let rows = vec![
        x[0] + (x[1] + x[2]) * 2.0 + x[5] + x[9] - 2.0,
        x[3] + x[4] * 2.0 + x[5] + x[6] - 1.0,
        x[2] + x[6] + x[7] + x[8] * 2.0 + x[9] - 1.0,
    ];
    (
        sum(x.iter().zip(c).map(|(&x, c)| x * ((x / total).ln() + c))),
        rows,
    )
}

const LATER: [(f64, f64); 3] = [(0.0, 90.0), (0.0, 120.0), (0.0, 60.0)];

// Colville's data, of hs086 and (its dual) hs117.
const A: [[f64; 5]; 10] = [
    [-16.0, 2.0, 0.0, 1.0, 0.0],
    [0.0, -2.0, 0.0, 4.0, 2.0],
    [-3.5, 0.0, 2.0, 0.0, 0.0],
    [0.0, -2.0, 0.0, -4.0, -1.0],
    [0.0, -9.0, -2.0, 1.0, -2.8],
    [2.0, 0.0, -4.0, 0.0, 0.0],
    [-1.0, -1.0, -1.0, -1.0, -1.0],
    [-1.0, -2.0, -3.0, -2.0, -1.0],
    [1.0, 2.0, 3.0, 4.0, 5.0],
    [1.0, 1.0, 1.0, 1.0, 1.0],
];
const B: [f64; 10] = [-40.0, -2.0, -0.25, -4.0, -4.0, -1.0, -40.0, -60.0, 5.0, 1.0];
const C: [[f64; 5]; 5] = [
    [30.0, -20.0, -10.0, 32.0, -10.0],
    [-20.0, 39.0, -6.0, -31.0, 32.0],
    [-10.0, -6.0, 10.0, -6.0, -10.0],
    [32.0, -31.0, -6.0, 39.0, -20.0],
    [-10.0, 32.0, -10.0, -20.0, 30.0],
];
const D3: [f64; 5] = [4.0, 8.0, 10.0, 6.0, 2.0];
const E: [f64; 5] = [-15.0, -27.0, -36.0, -18.0, -12.0];

// Hs119's.
#[rustfmt::skip]
const PAIRS: [(usize, usize); 46] = [
    (1, 1), (1, 4), (1, 7), (1, 8), (1, 16), (2, 2), (2, 3), (2, 7), (2, 10), (3, 3), (3, 7), (3, 9), (3, 10),
    (3, 14), (4, 4), (4, 7), (4, 11), (4, 15), (5, 5), (5, 6), (5, 10), (5, 12), (5, 16), (6, 6), (6, 8), (6, 15),
    (7, 7), (7, 11), (7, 13), (8, 8), (8, 10), (8, 15), (9, 9), (9, 12), (9, 16), (10, 10), (10, 14), (11, 11),
    (11, 13), (12, 12), (12, 14), (13, 13), (13, 14), (14, 14), (15, 15), (16, 16),
];
const B119: [[f64; 8]; 8] = [
    [0.22, 0.20, 0.19, 0.25, 0.15, 0.11, 0.12, 0.13],
    [-1.46, 0.0, -1.30, 1.82, -1.15, 0.0, 0.80, 0.0],
    [1.29, -0.89, 0.0, 0.0, -1.16, -0.96, 0.0, -0.49],
    [-1.10, -1.06, 0.95, -0.54, 0.0, -1.78, -0.41, 0.0],
    [0.0, 0.0, 0.0, -1.43, 1.51, 0.59, -0.33, -0.43],
    [0.0, -1.72, -0.33, 0.0, 1.62, 1.24, 0.21, -0.26],
    [1.12, 0.0, 0.0, 0.31, 0.0, 0.0, 1.12, 0.0],
    [0.0, 0.45, 0.26, -1.10, 0.58, 0.0, -1.03, 0.10],
];
const C119: [f64; 8] = [2.5, 1.1, -3.1, -3.5, 1.3, 2.1, 2.3, -1.5];
