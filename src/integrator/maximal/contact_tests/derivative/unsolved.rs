//! The unsolved equations of contacts, limits and friction against differences.

use super::super::super::equations_tests::equations_have_their_derivatives;
use super::scenes::{scenes, tuned};
use super::{Maximal, Options, Run};
use crate::dynamics::{Equations, Knot};
use crate::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Shape,
    TerrainShape, TerrainSpec,
};

#[test]
fn unsolved_laws_have_their_derivatives() {
    let mut refused = 0;
    // an effort that is cut, and a rim about to lie flat, are rounded over less than the differences span; where points are
    // fixed on one, they are elsewhere at other states; and numbers of parts are too large for differences
    let sharp = [
        "box slapping the end of a cylinder",
        "machine cut",
        "cylinder on cylinder",
        "coin that comes to lie",
    ];
    let uncut = scenes().into_iter().filter(|s| !sharp.contains(&s.0));
    for (name, builder, q, rates, u, steps) in uncut {
        let mut run = Run::new(&tuned(builder), &q, &rates, 0.01, Options::default());
        run.u.copy_from_slice(&u);
        if run.system.check_equations().is_err() {
            refused += 1;
            continue;
        }
        (0..steps).for_each(|_| run.step());
        for kappa in [None, Some(0.0), Some(0.3)] {
            let (at, x, y) = (run.at(), run.x.clone(), run.y.clone());
            let what = format!("{name} at {kappa:?}");
            for has_end in [true, false] {
                let situation = (at, x.clone(), run.u.clone(), y.clone());
                equations_have_their_derivatives(&run.system, situation, kappa, has_end, &what);
            }
        }
    }
    // those that bounce
    assert_eq!(refused, 3);
}

/// A mechanism in a plane cannot slide across it.
#[test]
fn what_cannot_slide_is_known() {
    let slides = |kind: JointKind| {
        let body = BodySpec::new(1.0)
            .shape(Shape::Sphere(0.1))
            .contact("skin", ContactSpec::new(0.5));
        let joint = JointSpec::new(kind, "body").axis([0.0, 1.0, 0.0]);
        let builder = MechanismBuilder::new()
            .half_space("floor", HalfSpaceSpec::default())
            .body("body", body)
            .joint("joint", joint);
        let m = builder.build().expect("a mechanism");
        let q = vec![0.3; m.tree_ids().len()];
        let s = Maximal::new(m, &q, Options::default()).expect("a system");
        s.contact_unknowns()[0].slides
    };
    let both = slides(JointKind::Spherical);
    let plane = slides(JointKind::PlanarAxis);
    assert_eq!(both, [true, true]);
    assert_eq!(plane.iter().filter(|s| **s).count(), 1);
}

/// A ball in a plane, above a block whose edge its normal turns around.
fn at_an_edge(axis: [f64; 3]) -> MechanismBuilder {
    let ball = BodySpec::new(1.0)
        .shape(Shape::Sphere(0.1))
        .contact("skin", ContactSpec::new(0.5));
    MechanismBuilder::new()
        .terrain("block", TerrainSpec::new(TerrainShape::Box([0.6; 3]), 0.5))
        .body("ball", ball)
        .joint(
            "plane",
            JointSpec::new(JointKind::PlanarAxis, "ball").axis(axis),
        )
}

/// Around a block the tangent in the plane stays the same one, so that which of them slides holds for every knot of a plan; and
/// a step may lead from its top, where the normal is an axis of the world, to its side, where it is another one.
#[test]
fn what_slides_does_not_change_around_an_edge() {
    for axis in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
        let builder = at_an_edge(axis);
        // the first normal of the plane, the second, and between
        for at in [[0.42, 0.0], [0.0, 0.42], [0.38, 0.36], [0.36, 0.38]] {
            for to in [[0.42, 0.05], [0.05, 0.42], [0.37, 0.37]] {
                let q = [at[0], at[1], 0.3];
                let rates = [(to[0] - at[0]) / 0.05, (to[1] - at[1]) / 0.05, 2.0];
                let run = Run::new(&builder, &q, &rates, 0.05, Options::default());
                assert_eq!(run.system.contact_unknowns()[0].slides, [true, false]);
                // intervals are differenced to both sides
                let at_knot = Knot {
                    h_prev: 0.05,
                    ..run.at()
                };
                let situation = (at_knot, run.x.clone(), run.u.clone(), run.y.clone());
                let what = format!("about {axis:?} from {at:?} to {to:?}");
                equations_have_their_derivatives(&run.system, situation, Some(0.3), true, &what);
            }
        }
    }
}
