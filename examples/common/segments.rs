//! Chains of closed segments: experiment 9a of paper 000.

use least_action::integrator::{Choice, Mechanical, Options, System};
use least_action::mechanism::{
    BodySpec, JointKind, JointSpec, MechanismBuilder, ModelError, Shape,
};
use std::f64::consts::FRAC_PI_8;

/// `n` rhombi of four boxes of 0.1 x 0.1 x 1 m and 1 kg hang one from the other, all joints hinges about y. A segment's
/// links 0 and 1 hang from the world or from the lowest corner of the segment above, 2 from 0, 3 from 1; the ends of 2
/// and 3 meet.
fn segments(n: usize) -> MechanismBuilder {
    let (top, bottom) = ([0.0, 0.0, 0.5], [0.0, 0.0, -0.5]);
    let hinge = |parent: &str, child: &str| {
        JointSpec::new(JointKind::Revolute, child)
            .parent(parent)
            .axis([0.0, 1.0, 0.0])
    };
    let mut m = MechanismBuilder::new();
    let (mut above, mut corner) = ("world".to_owned(), [0.0; 3]);
    for s in 0..n {
        let link: [String; 4] = std::array::from_fn(|i| format!("link{s}.{i}"));
        for name in &link {
            m = m.body(name, BodySpec::new(1.0).shape(Shape::Box([0.1, 0.1, 1.0])));
        }
        let joints = [
            hinge(&above, &link[0]).anchors(corner, top),
            hinge(&above, &link[1]).anchors(corner, top),
            hinge(&link[0], &link[2]).anchors(bottom, top),
            hinge(&link[1], &link[3]).anchors(bottom, top),
            hinge(&link[2], &link[3]).anchors(bottom, bottom),
        ];
        for (i, joint) in joints.into_iter().enumerate() {
            m = m.joint(&format!("joint{s}.{i}"), joint);
        }
        [_, _, above, _] = link;
        corner = bottom;
    }
    m
}

/// A chain of segments and its state at rest, all links at pi/8 from the vertical.
pub fn hanging(n: usize) -> Result<(System, Vec<f64>), ModelError> {
    tilted(n, FRAC_PI_8, 0.0)
}

/// A straight chain of segments at rest, tilted from the vertical, all links at the angle `half` from the chain.
pub fn tilted(n: usize, half: f64, tilt: f64) -> Result<(System, Vec<f64>), ModelError> {
    let mechanism = segments(n).build()?;
    let angle = |name: &str| match name.as_bytes().last() {
        Some(b'0' | b'3') => tilt + half,
        _ => tilt - half,
    };
    // a hinge's coordinate is the angle between its links
    let q: Vec<f64> = mechanism
        .tree_ids()
        .iter()
        .map(|&(j, _)| {
            let joint = &mechanism.joints[j];
            let of = |b: usize| angle(&mechanism.bodies[b].name);
            of(joint.child) - joint.parent.map_or(0.0, of)
        })
        .collect();
    let system = System::new(Choice::default(), mechanism, &q, Options::default())?;
    let x0 = system.start(&q, &vec![0.0; q.len()], &vec![true; q.len()])?;
    Ok((system, x0))
}
