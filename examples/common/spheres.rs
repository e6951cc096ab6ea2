//! Chains of spheres on ball joints dropped on the ground: experiment 8b of paper 000.

use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, ModelError, Shape,
};

/// `n` spheres of 0.25 m and 1 kg, 1 m apart, in line, tilted about y, the lowest 0.1 m above the ground; at rest.
pub fn dropped(
    n: usize,
    friction: f64,
    tilt: f64,
    options: Options,
) -> Result<(Maximal, Vec<f64>), ModelError> {
    let mut m = MechanismBuilder::new().half_space("floor", HalfSpaceSpec::default());
    for i in 0..n {
        let mut ball = BodySpec::new(1.0)
            .shape(Shape::Sphere(0.25))
            .contact("all", ContactSpec::new(friction));
        if i == 0 {
            ball = ball.free();
        } else {
            let joint = JointSpec::new(JointKind::Spherical, &format!("ball{i}"))
                .parent(&format!("ball{}", i - 1))
                .anchors([1.0, 0.0, 0.0], [0.0; 3]);
            m = m.joint(&format!("joint{i}"), joint);
        }
        m = m.body(&format!("ball{i}"), ball);
    }
    let mechanism = m.build()?;
    let free = mechanism.joint("ball0").unwrap_or_default();
    let ids = mechanism.tree_ids();
    let start = |&(joint, direction): &(usize, usize)| match direction {
        2 if joint == free => 0.35,
        4 if joint == free => -tilt,
        _ => 0.0,
    };
    let q: Vec<f64> = ids.iter().map(start).collect();
    let system = Maximal::new(mechanism, &q, options)?;
    let x0 = system.start(&q, &vec![0.0; q.len()], &vec![true; q.len()])?;
    Ok((system, x0))
}
