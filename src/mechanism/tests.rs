//! Every residual's derivative against differences, on random configurations of every kind of joint.

use super::joint::{Coupling, Vec6};
use super::kinematics::stack;
use super::samples::{Source, four_bar, spatial_loop, tree};
use super::*;
use crate::spatial::log;

fn displaced(p: &Pose, d: &[f64]) -> Pose {
    p.moved(&Vec3::new(d[0], d[1], d[2]), &Vec3::new(d[3], d[4], d[5]))
}

/// Fourth-order differences of `f(a, b)` by the twelve displacements of two poses.
fn differences(a: &Pose, b: &Pose, f: impl Fn(&Pose, &Pose) -> Vec<f64>) -> Vec<Vec<f64>> {
    let e = 1e-3;
    (0..12)
        .map(|i| {
            let at = |s: f64| {
                let mut d = [0.0; 12];
                d[i] = s * e;
                f(&displaced(a, &d[..6]), &displaced(b, &d[6..]))
            };
            let (p, m, pp, mm) = (at(1.0), at(-1.0), at(2.0), at(-2.0));
            (0..p.len())
                .map(|k| (8.0 * (p[k] - m[k]) - (pp[k] - mm[k])) / (12.0 * e))
                .collect()
        })
        .collect()
}

fn entry(row: &Row, i: usize) -> f64 {
    if i < 6 {
        row.parent()[i]
    } else {
        row.child()[i - 6]
    }
}

fn wrench(row: &Row) -> Vec<f64> {
    (0..12).map(|i| entry(row, i)).collect()
}

fn assert_coupling(c: &Coupling, differences: &[Vec<f64>], what: &str) {
    for (i, column) in differences.iter().enumerate() {
        for (k, d) in column.iter().enumerate() {
            let block = match (k < 6, i < 6) {
                (true, true) => &c.aa,
                (true, false) => &c.ab,
                (false, true) => &c.ba,
                (false, false) => &c.bb,
            };
            let value = block.0[(k % 6, i % 6)];
            assert!((value - d).abs() < 1e-8, "{what}: d{k}/d{i} {value} {d}");
        }
    }
}

fn assert_row(row: &Row, differences: &[Vec<f64>], what: &str) {
    for (i, d) in differences.iter().enumerate() {
        assert!(
            (entry(row, i) - d[0]).abs() < 1e-8,
            "{what}: {i} {} {}",
            entry(row, i),
            d[0]
        );
    }
}

/// A joint of every kind between two bodies, with springs, at a random pose that does not satisfy it.
fn joints() -> Vec<(Joint, Pose, Pose)> {
    let mut out = vec![];
    for (seed, kind) in JointKind::ALL.iter().enumerate() {
        let m = tree(seed as u64, &[JointKind::Floating, JointKind::Fixed, *kind]);
        let mut m = m.build().expect("valid");
        let mut s = Source::new(100 + seed as u64);
        let j = m.joints.pop().expect("three joints");
        out.push((j, s.pose(), s.pose()));
    }
    out
}

#[test]
fn kinds_have_the_rows_of_the_table() {
    use JointKind::*;
    for (kind, rows) in [
        (Fixed, (3, 3)),
        (Prismatic, (2, 3)),
        (FixedOrientation, (0, 3)),
        (Revolute, (3, 2)),
        (PlanarAxis, (1, 2)),
        (Orbital, (3, 1)),
        (FreeOrbital, (0, 1)),
        (Spherical, (3, 0)),
        (Floating, (0, 0)),
    ] {
        assert_eq!(kind.rows(), rows, "{}", kind.name());
    }
    for (j, ..) in joints() {
        let (t, r) = j.kind.rows();
        assert_eq!((j.rows(), j.directions.len()), (t + r, 6 - t - r));
    }
}

#[test]
fn constraint_rows_are_the_derivative_of_the_constraint() {
    for (j, a, b) in joints() {
        let g = differences(&a, &b, |a, b| {
            let mut g = vec![0.0; j.rows()];
            j.constraint(&j.relative(a, b), &mut g);
            g
        });
        for i in 0..j.rows() {
            let row = j.row(i, &a, &b, &j.relative(&a, &b));
            let column: Vec<_> = g.iter().map(|g| vec![g[i]]).collect();
            assert_row(&row, &column, j.kind.name());
        }
    }
}

#[test]
fn constraint_wrenches_have_their_derivative() {
    for (j, a, b) in joints() {
        let lambda: Vec<f64> = (0..j.rows()).map(|i| 0.7 - 0.4 * i as f64).collect();
        let total = |a: &Pose, b: &Pose| {
            let rel = j.relative(a, b);
            let mut sum = vec![0.0; 12];
            for (i, l) in lambda.iter().enumerate() {
                let w = wrench(&j.row(i, a, b, &rel));
                sum.iter_mut().zip(w).for_each(|(s, w)| *s += l * w);
            }
            sum
        };
        let mut c = Coupling::default();
        j.add_wrench_derivative(&lambda, 1.0, &a, &b, &mut c);
        assert_coupling(&c, &differences(&a, &b, total), j.kind.name());
    }
}

#[test]
fn velocity_constraints_have_their_derivative() {
    for (j, a, b) in joints() {
        let mut s = Source::new(5);
        let (va, vb) = (
            Vec6::from_fn(|_, _| s.unit()),
            Vec6::from_fn(|_, _| s.unit()),
        );
        let rates = differences(&a, &b, |a, b| {
            let rel = j.relative(a, b);
            (0..j.rows())
                .map(|i| {
                    let row = j.row(i, a, b, &rel);
                    row.parent().dot(&va) + row.child().dot(&vb)
                })
                .collect()
        });
        let mut rows = [([0.0; 6], [0.0; 6]); 6];
        j.rate_derivative(&a, &b, &va.into(), &vb.into(), &mut rows);
        for (i, column) in rates.iter().enumerate() {
            for (k, d) in column.iter().enumerate() {
                let value = if i < 6 {
                    rows[k].0[i]
                } else {
                    rows[k].1[i - 6]
                };
                assert!((value - d).abs() < 1e-8, "{}", j.kind.name());
            }
        }
    }
}

#[test]
fn coordinates_and_displacements_have_their_rows() {
    for (j, a, b) in joints() {
        let rel = j.relative(&a, &b);
        let mut s = Source::new(7);
        let small: Vec<f64> = s.vector(12, 0.3);
        let (a1, b1) = (displaced(&a, &small[..6]), displaced(&b, &small[6..]));
        let rel1 = j.relative(&a1, &b1);
        for i in 0..j.directions.len() {
            let near = j.coordinate(i, &rel, 0.0);
            let d = differences(&a, &b, |a, b| {
                vec![j.coordinate(i, &j.relative(a, b), near)]
            });
            assert_row(&j.coordinate_row(i, &a, &b, &rel), &d, "coordinate");
            let end = differences(&a1, &b1, |a, b| {
                vec![j.displacement(i, &rel, &j.relative(a, b))]
            });
            assert_row(
                &j.displacement_end_row(i, &rel, &rel1, &a1, &b1),
                &end,
                "end",
            );
            let start = differences(&a, &b, |a, b| {
                vec![j.displacement(i, &j.relative(a, b), &rel1)]
            });
            assert_row(
                &j.displacement_start_row(i, &rel, &rel1, &a, &b),
                &start,
                "start",
            );
        }
    }
}

#[test]
fn springs_and_actuators_have_their_derivative() {
    for (mut j, a, b) in joints() {
        for (i, d) in j.directions.iter_mut().enumerate() {
            (d.stiffness, d.rest) = (2.0 + i as f64, 0.1 * i as f64);
        }
        let force = |a: &Pose, b: &Pose| {
            let rel = j.relative(a, b);
            let (f, t) = j.spring_force(&rel, 0.0);
            let (f, t) = (j.translation_row(&f, a, b, &rel), Row::torque(&t, a, b));
            (0..12)
                .map(|i| entry(&f, i) + entry(&t, i))
                .collect::<Vec<_>>()
        };
        let mut c = Coupling::default();
        j.add_spring_derivative(0.0, 1.0, &a, &b, &mut c);
        assert_coupling(&c, &differences(&a, &b, force), "spring");
        // where several rotations are free the wrench is minus the gradient of the energy
        if j.kind.rows().1 == 0 {
            let energy = differences(&a, &b, |a, b| {
                vec![-j.spring_energy(&j.relative(a, b), 0.0)]
            });
            for (f, e) in force(&a, &b).iter().zip(&energy) {
                assert!((f - e[0]).abs() < 1e-8);
            }
        }
        for direction in 0..j.directions.len() {
            let actuator = Actuator {
                gain: 1.7,
                name: "u".into(),
                drive: Drive::Joint {
                    joint: 0,
                    direction,
                },
                bounds: None,
                effort_limits: Range::OPEN,
            };
            let joints = [j.clone()];
            let mut c = Coupling::default();
            actuator.add_derivative(1.3, &joints, (&a, &b), &mut c);
            let d = differences(&a, &b, |a, b| {
                wrench(&actuator.row(&joints, (a, b)))
                    .iter()
                    .map(|w| 1.3 * w)
                    .collect()
            });
            assert_coupling(&c, &d, "actuator");
        }
    }
}

#[test]
fn line_springs_and_wrenches_have_their_derivative() {
    let mut s = Source::new(3);
    let (a, b) = (s.pose(), s.pose());
    let m = tree(
        1,
        &[
            JointKind::Floating,
            JointKind::Floating,
            JointKind::Floating,
        ],
    )
    .build()
    .expect("valid");
    let spring = &m.springs[0];
    let row = spring.length_row(&a, &b);
    assert_row(
        &row,
        &differences(&a, &b, |a, b| vec![spring.length(a, b)]),
        "length",
    );
    let energy = differences(&a, &b, |a, b| vec![-spring.energy(a, b)]);
    assert_row(&spring.spring_wrench(&a, &b), &energy, "force");
    let mut c = Coupling::default();
    spring.add_derivative(0.7, -0.4, &a, &b, &mut c);
    let total = differences(&a, &b, |a, b| {
        let (f, n) = (spring.spring_wrench(a, b), spring.length_row(a, b));
        (0..12)
            .map(|i| 0.7 * entry(&f, i) - 0.4 * entry(&n, i))
            .collect()
    });
    assert_coupling(&c, &total, "line spring");
    for actuator in m
        .actuators
        .iter()
        .filter(|c| matches!(c.drive, Drive::Wrench { .. }))
    {
        let world = Pose::identity();
        let mut c = Coupling::default();
        actuator.add_derivative(0.8, &[], (&world, &b), &mut c);
        let d = differences(&world, &b, |_, b| {
            let w = wrench(&actuator.row(&[], (&world, b)));
            // a wrench has no opposite
            (0..12)
                .map(|i| if i < 6 { 0.0 } else { 0.8 * w[i] })
                .collect()
        });
        assert_coupling(&c, &d, "wrench");
    }
}

/// Trees of all kinds of joints, some of them declared from child to parent.
fn trees() -> Vec<Mechanism> {
    let mut out = vec![];
    for seed in 0..8 {
        let mut s = Source::new(seed);
        let kinds: Vec<_> = (0..6).map(|_| JointKind::ALL[s.below(16)]).collect();
        let mut b = tree(seed, &kinds);
        if seed % 2 == 0 {
            // the first body now hangs on the last joint's new parent, the other way round
            let j = b.joints.get_mut("j0").expect("declared");
            j.parent = "extra".into();
            j.child = "b0".into();
            std::mem::swap(&mut j.parent, &mut j.child);
            let extra = b.bodies["b0"].clone();
            b = b.body("extra", extra).joint(
                "root",
                JointSpec::new(JointKind::Revolute, "extra").axis([0.1, 1.0, 0.3]),
            );
            b.joints["root"].child = "extra".into();
        }
        out.push(b.build().expect("valid"));
    }
    out
}

#[test]
fn coordinates_make_poses_that_satisfy_the_joints_and_give_the_coordinates_back() {
    for m in trees() {
        let q = Source::new(2).vector(m.tree.coordinates, 0.8);
        let poses = m.forward(&q);
        assert!(m.violation(&poses).0 < 1e-14);
        for (a, b) in q.iter().zip(m.tree_coordinates(&poses, &q)) {
            assert!((a - b).abs() < 1e-13, "{a} {b}");
        }
        let rates = Source::new(3).vector(m.tree.coordinates, 1.0);
        let motion = m.velocities(&poses, &rates);
        for (a, b) in rates.iter().zip(m.tree_rates(&poses, &motion)) {
            assert!((a - b).abs() < 1e-13, "{a} {b}");
        }
    }
}

/// Displacements of all bodies between two configurations.
fn between(from: &[Pose], to: &[Pose]) -> nalgebra::DVector<f64> {
    let motion: Vec<Motion> = from
        .iter()
        .zip(to)
        .map(|(a, b)| (b.x - a.x, log(&(a.q.conjugate() * b.q))))
        .collect();
    stack(&motion)
}

#[test]
fn the_tree_basis_and_the_velocity_derivative_match_differences() {
    for m in trees() {
        let n = m.tree.coordinates;
        let (q, rates) = (Source::new(2).vector(n, 0.8), Source::new(3).vector(n, 1.0));
        let poses = m.forward(&q);
        let (basis, change) = (m.tree_basis(&poses), m.velocity_derivative(&poses, &rates));
        let e = 1e-5;
        for i in 0..n {
            let at = |s: f64| {
                let (mut q, mut d) = (q.clone(), vec![0.0; n]);
                d[i] = s * e;
                m.move_coordinates(&mut q, &d);
                m.forward(&q)
            };
            let (p, o) = (at(1.0), at(-1.0));
            let d = between(&o, &p) / (2.0 * e);
            assert!((d - basis.column(i)).amax() < 1e-8);
            let v = |poses: &[Pose]| stack(&m.velocities(poses, &rates));
            let dv = (v(&p) - v(&o)) / (2.0 * e);
            assert!(
                (dv - change.column(i)).amax() < 1e-8,
                "{}",
                m.coordinate_name(m.tree_ids()[i])
            );
        }
    }
}

#[test]
fn loops_close_from_a_guess_and_keep_what_is_held() {
    let m = four_bar().build().expect("valid");
    let mut q = [0.4, 0.0, 0.0];
    let ids: Vec<_> = m
        .tree_ids()
        .iter()
        .map(|&id| m.coordinate_name(id))
        .collect();
    assert_eq!(ids, ["a", "d", "b"]);
    let poses = m.close(&mut q, &[true, false, false]).expect("closes");
    assert_eq!(q[0], 0.4);
    assert!(m.violation(&poses).0 < 1e-12);
    // two held coordinates that do not fit give way
    let mut q = [0.4, -0.9, 0.0];
    let poses = m.close(&mut q, &[true, true, false]).expect("closes");
    assert!(m.violation(&poses).0 < 1e-12);
    // bars too short to meet
    let mut b = four_bar();
    b.joints["d"].parent_anchor = [5.0, 0.0, 0.0];
    let error = b
        .build()
        .expect("valid")
        .close(&mut [0.0; 3], &[false; 3])
        .expect_err("open");
    assert!(error.to_string().contains("does not close"), "{error}");
}

#[test]
fn mobility_counts_freedoms_loops_and_redundant_rows() {
    let m = four_bar().build().expect("valid");
    // a parallelogram is singular when flat: counted as the positions around it
    for q in [[0.3, 0.3, -0.3], [0.0, 0.0, 0.0]] {
        let mobility = m.mobility(&q).expect("closes");
        assert_eq!(
            mobility,
            Mobility {
                degrees_of_freedom: 1,
                loops: 1,
                redundant_rows: 3
            }
        );
    }
    let m = spatial_loop().build().expect("valid");
    let mobility = m.mobility(&vec![0.3; m.tree.coordinates]).expect("closes");
    // 1 + 3 + 2 + 3 freedoms of the joints, 4 rows of the cylindrical one
    assert_eq!(
        (mobility.degrees_of_freedom, mobility.redundant_rows),
        (5, 0)
    );
    let m = tree(4, &[JointKind::Revolute, JointKind::Spherical])
        .build()
        .expect("valid");
    assert_eq!(m.mobility(&[0.0; 4]).expect("a tree").degrees_of_freedom, 4);
}

#[test]
fn the_closed_basis_keeps_loops_closed_and_is_orthonormal() {
    let m = spatial_loop().build().expect("valid");
    let mut q = vec![0.3; m.tree.coordinates];
    let poses = m
        .close(&mut q, &vec![false; m.tree.coordinates])
        .expect("closes");
    let tree = m.tree_basis(&poses);
    let z = m.closed_basis(&poses, &tree, 5, None);
    assert!((m.loop_jacobian(&poses, &tree) * &z).amax() < 1e-12);
    let n = &tree * &z;
    assert!((m.mass_matrix(&n) - nalgebra::DMatrix::identity(5, 5)).amax() < 1e-12);
    // alignment undoes an arbitrary rotation of the basis
    let turned =
        &z * nalgebra::DMatrix::from_fn(5, 5, |i, j| f64::from(u8::from((i + 2) % 5 == j)));
    let aligned = m.closed_basis(&poses, &tree, 5, Some(&turned));
    assert!((aligned - turned).amax() < 1e-12);
}

/// What is wrong, where it must be said, and what must be named.
#[test]
fn wrong_descriptions_are_refused_by_name() {
    let good = || {
        MechanismBuilder::new()
            .body("cart", BodySpec::new(1.0).shape(Shape::Sphere(0.1)))
            .joint(
                "rail",
                JointSpec::new(JointKind::Prismatic, "cart").axis([1.0, 0.0, 0.0]),
            )
            .actuator("push", ActuatorSpec::joint("rail").bounds(-1.0, 1.0))
    };
    assert!(good().build().is_ok());
    let cart = || BodySpec::new(1.0).shape(Shape::Sphere(0.1));
    type Case = (MechanismBuilder, &'static str, &'static str);
    let cases: Vec<Case> = vec![
        (MechanismBuilder::new(), "bodies", "no bodies"),
        (
            good().body("cart", BodySpec::new(-1.0).inertia([1.0; 3])),
            "bodies.cart.mass",
            "-1",
        ),
        (
            good().body("cart", BodySpec::new(1.0)),
            "bodies.cart.mass",
            "neither inertia nor shape",
        ),
        (
            good().body("cart", BodySpec::new(1.0).inertia([1.0, 1.0, 3.0])),
            "bodies.cart.inertia",
            "triangle",
        ),
        (
            good().body("cart", BodySpec::new(1.0).inertia([1.0, 0.0, 1.0])),
            "bodies.cart.inertia",
            "principal moment",
        ),
        (
            good().body("pole", cart()),
            "bodies.pole",
            "tied to nothing",
        ),
        (
            good().joint(
                "rail",
                JointSpec::new(JointKind::Prismatic, "crat").axis([1.0, 0.0, 0.0]),
            ),
            "joints.rail.child",
            "did you mean `cart`",
        ),
        (
            good().joint("rail", JointSpec::new(JointKind::Prismatic, "cart")),
            "joints.rail.kind",
            "needs an axis",
        ),
        (
            good().joint(
                "rail",
                JointSpec::new(JointKind::Prismatic, "cart").axis([0.0; 3]),
            ),
            "joints.rail.axis",
            "no direction",
        ),
        (
            good().joint("x", JointSpec::new(JointKind::Fixed, "cart").parent("cart")),
            "joints.x.child",
            "to itself",
        ),
        (
            good().joint("x", JointSpec::new(JointKind::Fixed, "cart").damping(1.0)),
            "joints.x.damping",
            "no free direction",
        ),
        (
            good().joint(
                "x",
                JointSpec::new(JointKind::Spherical, "cart").damping(-1.0),
            ),
            "joints.x.damping",
            "-1",
        ),
        (
            good().actuator("push", ActuatorSpec::joint("rial")),
            "actuators.push.joint",
            "did you mean `rail`",
        ),
        (
            good().actuator("push", ActuatorSpec::joint("rail").bounds(1.0, -1.0)),
            "actuators.push.bounds",
            "[1.0, -1.0]",
        ),
        (
            good()
                .joint("ball", JointSpec::new(JointKind::Spherical, "cart"))
                .actuator("push", ActuatorSpec::joint("ball")),
            "actuators.push.joint",
            "rx, ry, rz",
        ),
        (
            good().actuator("push", ActuatorSpec::default()),
            "actuators.push",
            "needs a joint or a body",
        ),
        (
            good().gravity([0.0, f64::NAN, 0.0]),
            "gravity",
            "not finite",
        ),
    ];
    for (builder, path, message) in cases {
        let error = builder.build().expect_err(message);
        assert_eq!(error.path.join("."), path, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}
