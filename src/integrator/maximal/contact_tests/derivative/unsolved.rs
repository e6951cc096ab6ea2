//! The unsolved equations of contacts, limits and friction against differences.

use super::super::super::equations_tests::equations_have_their_derivatives;
use super::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, Maximal, MechanismBuilder, Options,
    Run, Shape, scenes, tuned,
};
use crate::dynamics::Equations;

#[test]
fn unsolved_laws_have_their_derivatives() {
    let mut refused = 0;
    // an effort that is cut is rounded over less than the differences span
    let uncut = scenes().into_iter().filter(|s| s.0 != "machine cut");
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
            let situation = (at, x, run.u.clone(), y);
            let what = format!("{name} at {kappa:?}");
            equations_have_their_derivatives(&run.system, situation, kappa, true, &what);
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
