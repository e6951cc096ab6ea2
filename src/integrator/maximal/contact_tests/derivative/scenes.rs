//! Mechanisms and states at which steps are differentiated.

use crate::mechanism::{
    ActuatorSpec, BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder,
    Rotation, Shape,
};

/// With every number of its contacts, limits, friction and efforts, and its masses a parameter; the inertias of bodies that name
/// their rotation law, too.
pub(super) fn tuned(mut b: MechanismBuilder) -> MechanismBuilder {
    let built = b.build().expect("valid");
    let names_law = b.bodies.values().any(|body| body.rotation.is_some());
    for (path, field) in built.fields() {
        let own = [
            "contacts.",
            "half_spaces.",
            "mass",
            "gain",
            "friction",
            "limits.",
            "restitution",
            "anchor.x",
        ];
        let own = own.iter().any(|p| path.contains(p));
        let is_inertia = names_law && path.contains("inertia");
        if is_inertia || own && (field.positive().is_none() || built.get(field) > 0.0) {
            b = b.parameter(&path, &[&path]);
        }
    }
    b
}

pub(super) fn body(mass: f64, shape: Shape) -> BodySpec {
    let contact = ContactSpec::new(0.4).group("all", &["all", "ground"]);
    BodySpec::new(mass)
        .shape(shape)
        .free()
        .contact("all", contact)
}

/// Two free bodies on a slope, the second above the first.
pub(super) fn pair(a: Shape, b: Shape) -> MechanismBuilder {
    let slope = HalfSpaceSpec {
        normal: [0.1, 0.05, 1.0],
        friction: Some(0.6),
        ..HalfSpaceSpec::default()
    };
    MechanismBuilder::new()
        .body("a", body(1.0, a))
        .body("b", body(0.7, b))
        .half_space("slope", slope)
}

/// Two links that hang, with friction in the upper hinge; the end of the lower one hits the floor
/// in the second step.
pub(super) fn arm() -> MechanismBuilder {
    let tip = ContactSpec::new(0.3)
        .shape(Shape::Sphere(0.05))
        .at([0.0, 0.02, -0.3])
        .restitution(0.6);
    let link = |mass: f64| BodySpec::new(mass).shape(Shape::Box([0.1, 0.12, 0.6]));
    let hinge = |child: &str| {
        JointSpec::new(JointKind::Revolute, child)
            .axis([0.1, 1.0, 0.0])
            .anchors([0.0, 0.0, -0.3], [0.0, 0.0, 0.3])
    };
    let floor = HalfSpaceSpec {
        offset: -1.415,
        ..HalfSpaceSpec::default()
    };
    MechanismBuilder::new()
        .body("upper", link(1.0))
        .body("lower", link(0.7).contact("tip", tip))
        .joint("shoulder", hinge("upper").friction(0.2))
        .joint("elbow", hinge("lower").parent("upper"))
        .half_space("floor", floor)
}

/// A driven slider with friction and limits, and a hinge with both on it.
pub(super) fn machine() -> MechanismBuilder {
    machine_with(|j| j)
}

/// The same with more told of both joints.
pub(super) fn machine_with(more: impl Fn(JointSpec) -> JointSpec) -> MechanismBuilder {
    let slide = JointSpec::new(JointKind::Prismatic, "a").axis([1.0, 0.0, 0.2]);
    let hinge = JointSpec::new(JointKind::Revolute, "b")
        .parent("a")
        .axis([0.0, 1.0, 0.0]);
    let small = Shape::Box([0.2, 0.3, 0.1]);
    MechanismBuilder::new()
        .body("a", BodySpec::new(1.0).shape(small))
        .body("b", BodySpec::new(0.5).shape(small))
        .joint(
            "slide",
            more(slide)
                .friction(0.7)
                .limits(-0.3, 0.1)
                .anchors([0.1, 0.0, 0.0], [0.0, 0.1, 0.05]),
        )
        .joint(
            "hinge",
            more(hinge)
                .friction(0.05)
                .limits(-1.0, 0.5)
                .anchors([0.0, 0.0, -0.2], [0.0, 0.0, 0.4]),
        )
        .actuator(
            "push",
            ActuatorSpec::joint("slide").effort_limits(-4.0, 4.0),
        )
        .actuator("turn", ActuatorSpec::joint("hinge"))
}

pub(super) fn floor(shape: Shape, contact: ContactSpec) -> MechanismBuilder {
    let b = BodySpec::new(1.0)
        .shape(shape)
        .free()
        .contact("all", contact);
    MechanismBuilder::new()
        .body("body", b)
        .half_space("floor", HalfSpaceSpec::default())
}

/// Name, mechanism, coordinates, rates, controls, steps before the one that is differentiated.
pub(in crate::integrator) type Scene = (
    &'static str,
    MechanismBuilder,
    Vec<f64>,
    Vec<f64>,
    Vec<f64>,
    usize,
);

/// A body by its rotation law on the floor, a sphere of 0.25 m or another shape its surface.
fn turning(rotation: Rotation, inertia: [f64; 3], surface: Shape) -> MechanismBuilder {
    let skin = ContactSpec::new(0.3).shape(surface);
    let mut b = BodySpec::new(1.0).free().contact("skin", skin);
    b.rotation = Some(rotation);
    MechanismBuilder::new()
        .body("body", b.inertia(inertia))
        .half_space("floor", HalfSpaceSpec::default())
}

pub(in crate::integrator) fn scenes() -> Vec<Scene> {
    let sphere = || floor(Shape::Sphere(0.25), ContactSpec::new(0.3));
    let cube = || floor(Shape::Box([0.5; 3]), ContactSpec::new(0.3));
    let lying = Shape::Cylinder {
        radius: 0.2,
        length: 0.5,
    };
    let capsule = Shape::Capsule {
        radius: 0.1,
        length: 0.6,
    };
    let one = |name, b, z: f64, rates: [f64; 6], steps| {
        (
            name,
            b,
            vec![0.0, 0.0, z, 0.0, 0.0, 0.0],
            rates.to_vec(),
            vec![],
            steps,
        )
    };
    let spin = [1.0, 0.5, 0.0, 0.3, -0.2, 2.0];
    let slide = [2.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let two = |name, b, q: [f64; 12], rates: [f64; 12], steps| {
        (name, b, q.to_vec(), rates.to_vec(), vec![], steps)
    };
    let at =
        |z: f64, x: f64, y: f64, top: f64| [0.0, 0.0, z, 0.1, 0.2, 0.3, x, y, top, -0.1, 0.4, 0.2];
    let falling = [
        0.1, 0.0, -0.2, 0.0, 0.5, 0.2, 0.3, -0.1, -2.0, 0.5, 0.2, 0.1,
    ];
    vec![
        one("ball flying", sphere(), 0.6, spin, 3),
        one(
            "ball on impact",
            sphere(),
            0.26,
            [1.0, 0.0, -2.0, 0.0, 1.0, 0.0],
            1,
        ),
        one("ball sliding", sphere(), 0.25, slide, 5),
        one(
            "ball rolling",
            sphere(),
            0.25,
            [1.0, 0.0, 0.0, 0.0, 4.0, 0.0],
            5,
        ),
        one(
            "fast ball rolling",
            turning(Rotation::Ball, [0.025; 3], Shape::Sphere(0.25)),
            0.25,
            [20.0, 0.0, 0.0, 0.0, 80.0, 0.0],
            5,
        ),
        one(
            "fast wheel sliding",
            turning(Rotation::Spin, [0.02, 0.035, 0.02], Shape::Sphere(0.25)),
            0.25,
            [18.0, 0.0, 0.0, 1.0, 90.0, 3.0],
            5,
        ),
        one(
            "fast wheel rolling",
            turning(
                Rotation::SpinAbout([0.0, 1.0, 0.0]),
                [0.02, 0.035, 0.025],
                Shape::Sphere(0.25),
            ),
            0.25,
            [20.0, 0.0, 0.0, 0.0, 80.0, 2.0],
            5,
        ),
        (
            "fast capsule rolling",
            floor(capsule, ContactSpec::new(0.3)),
            vec![0.0, 0.0, 0.1, std::f64::consts::FRAC_PI_2, 0.0, 0.0],
            vec![7.0, 0.0, 0.0, 0.0, 70.0, 0.0],
            vec![],
            3,
        ),
        one(
            "brick by its own axes",
            turning(
                Rotation::Free,
                [0.03, 0.025, 0.01],
                Shape::Box([0.2, 0.4, 0.5]),
            ),
            0.45,
            [3.0, 1.0, -5.0, 30.0, 20.0, -10.0],
            5,
        ),
        one("box sticking", cube(), 0.25, [0.0; 6], 5),
        one("box sliding", cube(), 0.25, slide, 5),
        one(
            "box on a corner",
            cube(),
            0.6,
            [1.0, 0.0, -5.0, 2.0, 1.0, 0.0],
            8,
        ),
        one(
            "ball bouncing",
            floor(Shape::Sphere(0.25), ContactSpec::new(0.3).restitution(0.7)),
            0.28,
            [1.0, 0.0, -2.0, 0.0, 1.0, 0.0],
            1,
        ),
        (
            "arm bouncing off the floor",
            arm(),
            vec![0.3, 0.4],
            vec![-2.0, -3.0],
            vec![],
            1,
        ),
        (
            "machine bouncing off its stops",
            machine_with(|j| j.restitution(0.6)),
            vec![0.086, 0.455],
            vec![1.0, 3.0],
            vec![3.0, 0.5],
            1,
        ),
        (
            "cylinder on its rim",
            floor(lying, ContactSpec::new(0.3)),
            vec![0.0, 0.0, 0.32, 0.4, 0.3, 0.0],
            vec![0.3, 0.0, -1.5, 0.2, 0.0, 1.0],
            vec![],
            4,
        ),
        (
            "capsule rolling",
            floor(capsule, ContactSpec::new(0.3)),
            vec![0.0, 0.0, 0.1, std::f64::consts::FRAC_PI_2, 0.0, 0.0],
            vec![0.4, 0.0, 0.0, 0.0, 4.0, 0.0],
            vec![],
            3,
        ),
        two(
            "sphere on sphere",
            pair(Shape::Sphere(0.2), Shape::Sphere(0.15)),
            at(0.25, 0.05, 0.03, 0.6),
            falling,
            9,
        ),
        two(
            "sphere on box",
            pair(Shape::Sphere(0.2), Shape::Box([0.3, 0.4, 0.2])),
            at(0.25, 0.05, 0.03, 0.65),
            falling,
            9,
        ),
        two(
            "sphere on capsule",
            pair(Shape::Sphere(0.2), capsule),
            at(0.25, 0.05, 0.03, 0.9),
            falling,
            9,
        ),
        two(
            "capsule on capsule",
            pair(
                capsule,
                Shape::Capsule {
                    radius: 0.12,
                    length: 0.5,
                },
            ),
            at(0.45, 0.05, 0.03, 1.2),
            falling,
            9,
        ),
        two(
            "sphere on cylinder",
            pair(Shape::Sphere(0.2), lying),
            at(0.25, 0.05, 0.03, 0.75),
            falling,
            9,
        ),
        two(
            "box on box",
            pair(Shape::Box([0.5, 0.6, 0.3]), Shape::Box([0.3, 0.4, 0.2])),
            at(0.3, 0.05, 0.03, 0.75),
            falling,
            9,
        ),
        two(
            "box beside the middle of a box",
            pair(Shape::Box([0.5, 0.6, 0.3]), Shape::Box([0.3, 0.4, 0.2])),
            at(0.3, 0.3, 0.25, 0.75),
            falling,
            9,
        ),
        two(
            "capsule on box",
            pair(capsule, Shape::Box([0.3, 0.4, 0.2])),
            at(0.45, 0.05, 0.03, 1.0),
            falling,
            9,
        ),
        two(
            "cylinder on box",
            pair(Shape::Box([0.3, 0.4, 0.2]), lying),
            at(0.25, 0.05, 0.03, 0.75),
            falling,
            9,
        ),
        two(
            "box slapping the end of a cylinder",
            pair(lying, Shape::Box([0.3, 0.4, 0.2])),
            at(0.35, 0.05, 0.03, 0.85),
            falling,
            9,
        ),
        two(
            "cylinder on cylinder",
            pair(lying, lying),
            at(0.35, 0.05, 0.03, 0.95),
            falling,
            9,
        ),
        two(
            "capsule on cylinder",
            pair(capsule, lying),
            at(0.45, 0.05, 0.03, 1.15),
            falling,
            9,
        ),
        two(
            "boxes that overlap",
            pair(Shape::Box([0.5, 0.6, 0.3]), Shape::Box([0.3, 0.4, 0.2])),
            [
                0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.05, 0.03, 1.2705, 0.05, 0.08, 0.3,
            ],
            falling.map(|v| 0.05 * v),
            1,
        ),
        // a point fixed on the rim begins deeper than a step pushes out elsewhere
        (
            "coin that comes to lie",
            MechanismBuilder::new()
                .body(
                    "coin",
                    body(
                        0.5,
                        Shape::Cylinder {
                            radius: 0.1,
                            length: 0.04,
                        },
                    ),
                )
                .half_space("floor", HalfSpaceSpec::default()),
            vec![0.0, 0.0, 0.06, 0.0, 0.1, 0.0],
            vec![0.0, 0.0, 0.0, 2.0, 0.0, 1.0],
            vec![],
            9,
        ),
        (
            "machine free",
            machine(),
            vec![0.0, 0.1],
            vec![0.5, 1.0],
            vec![2.0, 0.1],
            3,
        ),
        (
            "machine stuck",
            machine(),
            vec![0.0, 0.02],
            vec![0.0, 0.0],
            vec![2.3, 0.0],
            3,
        ),
        (
            "machine at its stops",
            machine(),
            vec![0.09, 0.49],
            vec![0.5, 1.0],
            vec![3.9, 0.5],
            40,
        ),
        (
            "machine cut",
            machine(),
            vec![0.0, 0.1],
            vec![0.5, 1.0],
            vec![4.000003, 0.1],
            3,
        ),
    ]
}
