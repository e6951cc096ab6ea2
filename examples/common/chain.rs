//! Hanging chains of n links: experiment 8a of paper 000.

use least_action::integrator::{Choice, Mechanical, Options, System};
use least_action::mechanism::{
    ActuatorSpec, BodySpec, JointKind, JointSpec, MechanismBuilder, Shape,
};

/// A chain of `n` cylinders of 1 m and 1 kg.
fn chain(n: usize, kind: JointKind) -> MechanismBuilder {
    let mut m = MechanismBuilder::new();
    for i in 0..n {
        let link = BodySpec::new(1.0).shape(Shape::Cylinder {
            radius: 0.05,
            length: 1.0,
        });
        let (parent, anchor) = match i {
            0 => ("world".to_owned(), [0.0; 3]),
            _ => (format!("link{}", i - 1), [0.0, 0.0, -0.5]),
        };
        let joint = JointSpec::new(kind, &format!("link{i}"))
            .parent(&parent)
            .axis([0.0, 1.0, 0.0])
            .anchors(anchor, [0.0, 0.0, 0.5]);
        m = m
            .body(&format!("link{i}"), link)
            .joint(&format!("joint{i}"), joint);
    }
    m
}

/// A chain on hinges about y or on ball joints, with a motor in every joint if it is `driven`, by the integrator of that name, and
/// its state at rest, in line, at 45 degrees.
pub fn hanging(
    n: usize,
    kind: JointKind,
    driven: bool,
    integrator: &str,
) -> Result<(System, Vec<f64>), Box<dyn std::error::Error>> {
    let mut builder = chain(n, kind);
    for i in 0..if driven { n } else { 0 } {
        let motor = ActuatorSpec::joint(&format!("joint{i}"));
        builder = builder.actuator(&format!("motor{i}"), motor);
    }
    let mechanism = builder.build()?;
    let coordinates = mechanism.tree_ids().len();
    let mut q = vec![0.0; coordinates];
    // a ball joint's second coordinate turns about y
    q[usize::from(kind == JointKind::Spherical)] = std::f64::consts::FRAC_PI_4;
    let choice = Choice::new(integrator, None)?;
    let system = System::new(choice, mechanism, &q, Options::default())?;
    let x0 = system.start(&q, &vec![0.0; coordinates], &vec![true; coordinates])?;
    Ok((system, x0))
}
