//! Graphs, random matrices on them, and what must hold for all: agreement with a dense LU and with faer's sparse LU.

use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;

use super::*;

/// SplitMix64: seeded, uniform in [-1, 1].
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    pub(super) fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub(super) fn vector(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.uniform()).collect()
    }
}

pub(super) type Edges = Vec<(usize, usize)>;

/// Points of an a x b x c grid, each joined to its neighbours along the axes.
pub(super) fn grid(a: usize, b: usize, c: usize) -> (usize, Edges) {
    let at = |i, j, k| (i * b + j) * c + k;
    let mut edges = vec![];
    for i in 0..a {
        for j in 0..b {
            for k in 0..c {
                let mut join = |to| edges.push((at(i, j, k), to));
                if i + 1 < a {
                    join(at(i + 1, j, k));
                }
                if j + 1 < b {
                    join(at(i, j + 1, k));
                }
                if k + 1 < c {
                    join(at(i, j, k + 1));
                }
            }
        }
    }
    (a * b * c, edges)
}

/// A body per point and a constraint of `rows` rows per edge, as in a mechanism; the bodies come first.
pub(super) fn mechanism(bodies: usize, joints: &Edges, rows: usize) -> (Vec<Node>, Edges) {
    let mut nodes = vec![Node::regular(6); bodies];
    let mut edges = vec![];
    for &(a, b) in joints {
        edges.extend([(nodes.len(), a), (nodes.len(), b)]);
        nodes.push(Node::constraint(rows, false));
    }
    (nodes, edges)
}

/// Ties `body` to the outside by a constraint of 5 rows.
pub(super) fn anchor(nodes: &mut Vec<Node>, edges: &mut Edges, body: usize) {
    edges.push((nodes.len(), body));
    nodes.push(Node::constraint(5, true));
}

pub(super) fn random_tree(random: &mut Random, bodies: usize) -> Edges {
    (1..bodies).map(|b| (random.below(b), b)).collect()
}

/// All blocks uniform in [-1, 1]. Constraints keep a zero diagonal block.
fn fill_uniform(
    solver: &mut Solver,
    nodes: &[Node],
    edges: &[(usize, usize)],
    random: &mut Random,
) {
    for (node, _) in nodes
        .iter()
        .enumerate()
        .filter(|(_, n)| n.role == Role::Regular)
    {
        solver.block_mut(node, node).fill_with(|| random.uniform());
    }
    for &(a, b) in edges {
        solver.block_mut(a, b).fill_with(|| random.uniform());
        solver.block_mut(b, a).fill_with(|| random.uniform());
    }
}

/// [D, -G'; h G, -eps] with D close to a mass matrix (masses 0.1 to 10) but not symmetric, and random G.
fn fill_saddle(
    solver: &mut Solver,
    nodes: &[Node],
    edges: &[(usize, usize)],
    eps: f64,
    random: &mut Random,
) {
    let h = 0.01;
    for (i, &Node { size, role }) in nodes.iter().enumerate() {
        let mass = 10f64.powf(random.uniform());
        let block = solver.block_mut(i, i);
        for (k, entry) in block.iter_mut().enumerate() {
            let diagonal = (k % (size + 1) == 0) as u8 as f64;
            *entry = match role {
                Role::Regular => mass * (diagonal + 0.1 * random.uniform()),
                Role::Constraint { .. } => eps * h * diagonal,
            };
        }
    }
    for &(a, b) in edges {
        let (constraint, body) = if nodes[a].role == Role::Regular {
            (b, a)
        } else {
            (a, b)
        };
        let rows = nodes[constraint].size;
        let columns = nodes[body].size;
        let g = random.vector(rows * columns);
        solver
            .block_mut(constraint, body)
            .iter_mut()
            .zip(&g)
            .for_each(|(e, g)| *e = h * g);
        let transposed = solver.block_mut(body, constraint);
        for i in 0..rows {
            for j in 0..columns {
                transposed[j + i * columns] = -g[i + j * rows];
            }
        }
    }
}

fn dense(symbolic: &Symbolic, values: &[f64]) -> DMatrix<f64> {
    let mut a = DMatrix::zeros(symbolic.dim(), symbolic.dim());
    for row in 0..symbolic.nodes() {
        for col in 0..symbolic.nodes() {
            if let Some(slot) = symbolic.slot(row, col) {
                let shape = (symbolic.size(row), symbolic.size(col));
                let block = DMatrix::from_column_slice(
                    shape.0,
                    shape.1,
                    &values[slot..][..shape.0 * shape.1],
                );
                a.view_mut((symbolic.offset(row), symbolic.offset(col)), shape)
                    .copy_from(&block);
            }
        }
    }
    a
}

fn relative(x: &[f64], reference: &[f64]) -> f64 {
    let difference: Vec<f64> = x.iter().zip(reference).map(|(x, r)| x - r).collect();
    largest(&difference) / largest(reference)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves with the block factors (or what the driver falls back to), with faer, and densely if that is cheap; plain and
/// transposed. Returns the method used.
fn check(solver: &mut Solver, random: &mut Random) -> Method {
    solver.factor().unwrap();
    let symbolic = solver.symbolic().clone();
    let values = solver.values().to_vec();
    let b = random.vector(symbolic.dim());
    let mut faer = Fallback::new(&symbolic).unwrap();
    faer.factor(&symbolic, &values).unwrap();
    for transposed in [false, true] {
        let (mut x, mut reference) = (b.clone(), b.clone());
        let mut product = vec![0.0; b.len()];
        if transposed {
            solver.solve_transposed_refined(&mut x).unwrap();
            faer.solve_transposed(&mut reference).unwrap();
            symbolic.multiply_transposed(&values, &x, &mut product);
        } else {
            solver.solve_refined(&mut x).unwrap();
            faer.solve(&mut reference).unwrap();
            symbolic.multiply(&values, &x, &mut product);
        }
        assert!(
            relative(&x, &reference) < 1e-10,
            "off faer by {:e}",
            relative(&x, &reference)
        );
        let scale = largest(&values) * largest(&x) + 1.0;
        assert!(
            relative(&product, &b) < 1e-12 * scale,
            "residual {:e}",
            relative(&product, &b)
        );
        if symbolic.dim() <= 400 {
            let a = dense(&symbolic, &values);
            let lu = if transposed {
                a.transpose().lu()
            } else {
                a.lu()
            };
            let reference = lu.solve(&DVector::from_column_slice(&b)).unwrap();
            assert!(
                relative(&x, reference.as_slice()) < 1e-10,
                "off dense by {:e}",
                relative(&x, reference.as_slice())
            );
        }
    }
    solver.method().unwrap()
}

fn check_uniform(points: usize, edges: &Edges, seed: u64) -> (Method, usize) {
    let random = &mut Random(seed);
    let nodes = vec![Node::regular(6); points];
    let mut solver = Solver::new(&nodes, edges).unwrap();
    fill_uniform(&mut solver, &nodes, edges, random);
    (check(&mut solver, random), solver.symbolic().fill_in())
}

fn check_saddle(nodes: &[Node], edges: &Edges, eps: f64, seed: u64) -> Method {
    let random = &mut Random(seed);
    let mut solver = Solver::new(nodes, edges).unwrap();
    fill_saddle(&mut solver, nodes, edges, eps, random);
    check(&mut solver, random)
}

/// Listed by one triangle, places that repeat adding.
#[test]
fn a_triangle_is_pivoted_too() {
    let triangle = [(0, 0), (1, 0), (1, 1), (2, 1), (1, 0)];
    let mut faer = Fallback::of_symmetric(3, &triangle).unwrap();
    // | 2 3 0; 3 4 5; 0 5 0 |
    faer.factor_values(&[2.0, 1.0, 4.0, 5.0, 2.0]).unwrap();
    let mut b = [2.0 + 6.0, 3.0 + 8.0 + 15.0, 10.0];
    faer.solve(&mut b).unwrap();
    for (found, expected) in b.iter().zip([1.0, 2.0, 3.0]) {
        assert!((found - expected).abs() < 1e-14);
    }
    let zeros = [0.0; 5];
    assert!(matches!(
        faer.factor_values(&zeros),
        Err(FallbackError::Singular { .. })
    ));
}

#[test]
fn random_blocks_on_graphs() {
    for seed in 0..10 {
        let random = &mut Random(seed);
        let (bodies, chain) = grid(40, 1, 1);
        assert_eq!(check_uniform(bodies, &chain, seed).1, 0);
        let bodies = 2 + random.below(60);
        let tree = random_tree(random, bodies);
        assert_eq!(check_uniform(bodies, &tree, seed).1, 0);
    }
    for (shape, seed) in [
        ((2, 10, 1), 1),
        ((2, 151, 1), 2),
        ((8, 8, 1), 3),
        ((18, 18, 1), 4),
        ((6, 6, 6), 5),
    ] {
        let (points, edges) = grid(shape.0, shape.1, shape.2);
        let (method, fill) = check_uniform(points, &edges, seed);
        println!(
            "{shape:?}: {method:?}, fill {fill} beside {} edges",
            edges.len()
        );
    }
}

#[test]
fn saddle_points_of_mechanisms() {
    for seed in 0..10 {
        let random = &mut Random(seed);
        let bodies = 1 + random.below(40);
        let tree = random_tree(random, bodies);
        let (mut nodes, mut edges) = mechanism(bodies, &tree, 5);
        if seed % 2 == 0 {
            anchor(&mut nodes, &mut edges, 0);
        }
        assert_eq!(check_saddle(&nodes, &edges, 0.0, seed), Method::Block);
    }
    // Chains tied at both ends, loops and nets: the generic G has full rank as long as there are fewer rows than columns.
    for (shape, rows) in [
        ((12, 1, 1), 5),
        ((2, 20, 1), 3),
        ((6, 6, 1), 2),
        ((3, 3, 3), 1),
        ((2, 151, 1), 3),
        ((10, 10, 1), 3),
    ] {
        let (bodies, joints) = grid(shape.0, shape.1, shape.2);
        let (mut nodes, mut edges) = mechanism(bodies, &joints, rows);
        anchor(&mut nodes, &mut edges, 0);
        if rows < 5 {
            anchor(&mut nodes, &mut edges, bodies - 1);
        }
        assert_eq!(
            check_saddle(&nodes, &edges, 0.0, 7),
            Method::Block,
            "{shape:?}"
        );
    }
}

/// A loop with more rows than it has freedom is solvable only through the regularization of its constraints.
#[test]
fn redundant_constraints_pass_when_regularized() {
    let joints: Edges = vec![(0, 1), (1, 2), (2, 0)];
    let (mut nodes, mut edges) = mechanism(3, &joints, 5);
    (0..3).for_each(|body| anchor(&mut nodes, &mut edges, body));
    let method = |eps| {
        let random = &mut Random(3);
        let mut solver = Solver::new(&nodes, &edges).unwrap();
        fill_saddle(&mut solver, &nodes, &edges, eps, random);
        solver.factor()
    };
    assert_eq!(method(1e-8), Ok(Method::Block));
    let Err(SolveError::Fallback {
        pivot: Some(pivot), ..
    }) = method(0.0)
    else {
        panic!("30 rows on 18 columns")
    };
    assert!(
        nodes[pivot.node].role != Role::Regular && pivot.ratio < 1e-14,
        "{pivot:?}"
    );
}

#[test]
fn mixed_scales_are_not_singular() {
    // Lengths from metres to micrometres: mass 1 beside inertia 1e-12, coupled as strongly as lengths allow.
    let nodes = [
        Node::regular(6),
        Node::constraint(3, false),
        Node::regular(6),
    ];
    let edges = [(0, 1), (1, 2)];
    for length in [1.0, 1e-3, 1e-6, 1e-8] {
        let random = &mut Random(11);
        let mut solver = Solver::new(&nodes, &edges).unwrap();
        fill_saddle(&mut solver, &nodes, &edges, 0.0, random);
        let scale = |i: usize| if i < 3 { 1.0 } else { length };
        for body in [0, 2] {
            let block = solver.block_mut(body, body);
            (0..36).for_each(|k| block[k] *= scale(k % 6) * scale(k / 6));
            (0..18).for_each(|k| solver.block_mut(body, 1)[k] *= scale(k % 6));
            (0..18).for_each(|k| solver.block_mut(1, body)[k] *= scale(k / 3));
        }
        assert_eq!(solver.factor(), Ok(Method::Block), "length {length:e}");
    }
}

#[test]
fn a_singular_matrix_is_an_error_that_names_the_node() {
    let nodes = vec![Node::regular(2); 3];
    let edges = [(0, 1), (1, 2)];
    let identity = [1.0, 0.0, 0.0, 1.0];
    let mut solver = Solver::new(&nodes, &edges).unwrap();
    (0..3).for_each(|node| solver.block_mut(node, node).copy_from_slice(&identity));

    // A node whose own block is singular although it is coupled to nothing that could help.
    let mut singular = solver.clone();
    singular
        .block_mut(2, 2)
        .copy_from_slice(&[1.0, 2.0, 2.0, 4.0]);
    let Err(SolveError::Fallback {
        pivot: Some(pivot),
        error,
    }) = singular.factor()
    else {
        panic!()
    };
    assert_eq!(pivot.node, 2);
    assert!(matches!(error, FallbackError::Singular { .. }), "{error}");
    assert_eq!(singular.solve(&mut [1.0; 6]), Err(SolveError::NotFactored));

    // Cancellation between blocks that leaves rounding: 1/3 - 0.1 / 0.3, entry by entry.
    let mut singular = solver.clone();
    for node in [0, 1] {
        singular
            .block_mut(node, node)
            .copy_from_slice(&[0.3, 0.0, 0.0, 0.7]);
    }
    singular
        .block_mut(0, 1)
        .copy_from_slice(&[0.1, 0.0, 0.0, 0.1]);
    singular
        .block_mut(1, 0)
        .copy_from_slice(&[0.9, 0.0, 0.0, 4.9]);
    let Err(SolveError::Fallback {
        pivot: Some(pivot), ..
    }) = singular.factor()
    else {
        panic!()
    };
    assert!(pivot.node < 2 && pivot.ratio < 1e-14, "{pivot:?}");

    // Not a number, anywhere.
    for (row, col) in [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (2, 2)] {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut broken = solver.clone();
            broken.block_mut(row, col)[1] = bad;
            let mut factored = broken.values().to_vec();
            assert!(
                broken.symbolic().factor(&mut factored).is_err(),
                "{bad} in ({row}, {col})"
            );
            assert!(matches!(
                broken.factor(),
                Err(SolveError::Fallback {
                    error: FallbackError::NotFinite,
                    ..
                })
            ));
        }
    }
    solver.factor().unwrap();
    assert!(
        solver
            .solve_refined(&mut [1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0])
            .is_err()
    );
}

/// A regular matrix with a zero pivot block: rows must be exchanged between blocks.
#[test]
fn falls_back_when_only_exchanges_between_blocks_help() {
    let nodes = [Node::regular(1), Node::regular(1)];
    let mut solver = Solver::new(&nodes, &[(0, 1)]).unwrap();
    solver.block_mut(0, 1)[0] = 2.0;
    solver.block_mut(1, 0)[0] = 4.0;
    assert_eq!(solver.factor(), Ok(Method::Pivoted));
    let mut x = [2.0, 4.0];
    solver.solve(&mut x).unwrap();
    assert_eq!(x, [1.0, 1.0]);
    // Nearly so: the pivot passes, but it costs 13 digits, and the correction shows it.
    let (blocks, solution) = ([1e-13, 0.7, 0.3, 1.1], [1.0 / 3.0, 0.9]);
    for (k, entry) in blocks.into_iter().enumerate() {
        solver.block_mut(k % 2, k / 2)[0] = entry;
    }
    let mut x = [0.0; 2];
    solver
        .symbolic()
        .multiply(solver.values(), &solution, &mut x);
    assert_eq!(solver.factor(), Ok(Method::Block));
    solver.solve_refined(&mut x).unwrap();
    assert_eq!(solver.method(), Some(Method::Pivoted));
    assert!(relative(&x, &solution) < 1e-14, "{x:?}");
}

#[test]
fn many_right_hand_sides_equal_one_by_one() {
    let random = &mut Random(5);
    let nodes: Vec<Node> = (1..=9).map(Node::regular).collect();
    let edges: Vec<_> = (0..9)
        .flat_map(|a| [(a, (a + 1) % 9), (a, (a + 4) % 9)])
        .collect();
    let mut solver = Solver::new(&nodes, &edges).unwrap();
    fill_uniform(&mut solver, &nodes, &edges, random);
    let symbolic = solver.symbolic();
    let mut factored = solver.values().to_vec();
    symbolic.factor(&mut factored).unwrap();
    let mut scratch = symbolic.scratch(7);
    for columns in [0, 1, 2, 7] {
        let b = random.vector(symbolic.dim() * columns);
        let (mut plain, mut transposed) = (b.clone(), b.clone());
        symbolic.solve_many(&factored, &mut plain, columns, &mut scratch);
        symbolic.solve_many_transposed(&factored, &mut transposed, columns, &mut scratch);
        let mut one = b.clone();
        one.chunks_exact_mut(symbolic.dim())
            .for_each(|b| symbolic.solve(&factored, b));
        assert_eq!(plain, one);
        one.copy_from_slice(&b);
        one.chunks_exact_mut(symbolic.dim())
            .for_each(|b| symbolic.solve_transposed(&factored, b));
        assert_eq!(transposed, one);
    }
}

#[test]
fn empty_and_disconnected_graphs() {
    let mut solver = Solver::new(&[], &[]).unwrap();
    assert_eq!(solver.factor(), Ok(Method::Block));
    assert_eq!(solver.solve_refined(&mut []), Ok(()));
    let mut fallback = Fallback::new(solver.symbolic()).unwrap();
    assert_eq!(fallback.solve(&mut []), Err(FallbackError::NotFactored));
    assert_eq!(fallback.factor(solver.symbolic(), solver.values()), Ok(()));

    let nodes = [
        Node::regular(3),
        Node::regular(8),
        Node::constraint(2, true),
    ];
    assert_eq!(
        check_saddle(&nodes, &vec![(1, 2), (2, 1)], 0.0, 1),
        Method::Block
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Blocks of 1 to 7 rows on any graph, against dense and faer; y'(A x) = x'(A'y) and b'A^-1 c = c'A'^-1 b.
    #[test]
    fn any_graph_any_sizes(sizes in prop::collection::vec(1usize..=7, 1..14), joins in prop::collection::vec((0usize..14, 0usize..14), 0..30), seed: u64) {
        let random = &mut Random(seed);
        let nodes: Vec<Node> = sizes.iter().map(|&s| Node::regular(s)).collect();
        let edges: Edges = joins.iter().map(|&(a, b)| (a % nodes.len(), b % nodes.len())).filter(|(a, b)| a != b).collect();
        let mut solver = Solver::new(&nodes, &edges).unwrap();
        fill_uniform(&mut solver, &nodes, &edges, random);
        // Diagonally heavy, so that rounding does not decide whether the test passes.
        for (node, &Node { size, .. }) in nodes.iter().enumerate() {
            (0..size).for_each(|i| solver.block_mut(node, node)[i * (size + 1)] += 12.0);
        }
        prop_assert_eq!(check(&mut solver, random), Method::Block);

        let symbolic = solver.symbolic().clone();
        let (x, y) = (random.vector(symbolic.dim()), random.vector(symbolic.dim()));
        let (mut ax, mut aty) = (x.clone(), y.clone());
        symbolic.multiply(solver.values(), &x, &mut ax);
        symbolic.multiply_transposed(solver.values(), &y, &mut aty);
        let a = dense(&symbolic, solver.values());
        let reference = &a * DVector::from_column_slice(&x);
        prop_assert!(relative(&ax, reference.as_slice()) < 1e-14);
        let scale = dot(&y.iter().map(|y| y.abs()).collect::<Vec<_>>(), &ax.iter().map(|a| a.abs()).collect::<Vec<_>>());
        prop_assert!((dot(&y, &ax) - dot(&x, &aty)).abs() < 1e-13 * scale);

        let (mut left, mut right) = (x.clone(), y.clone());
        solver.solve(&mut left).unwrap();
        solver.solve_transposed(&mut right).unwrap();
        let scale = y.iter().zip(&left).map(|(a, b)| (a * b).abs()).sum::<f64>();
        prop_assert!((dot(&y, &left) - dot(&x, &right)).abs() < 1e-12 * scale);
    }
}
