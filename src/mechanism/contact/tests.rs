//! The description of contacts: what meets, what is refused, and the numbers that are parameters.

use super::Hull;
use super::samples::{BOX, CAPSULE, CYLINDER, POINT, SPHERE, body, hull};
use crate::mechanism::samples::Source;
use crate::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, ModelError,
    Shape, Surface, TerrainShape, TerrainSpec,
};
use crate::spatial::{Pose, Quat, Vec3};

fn ball() -> BodySpec {
    BodySpec::new(2.0).shape(Shape::Sphere(0.1)).free()
}

fn touching(group: &str, against: &[&str]) -> ContactSpec {
    ContactSpec::new(0.5).group(group, against)
}

fn names(m: &MechanismBuilder) -> Vec<String> {
    let m = m.clone().build().expect("valid");
    m.contacts.iter().map(|c| c.name.clone()).collect()
}

fn refused(m: MechanismBuilder) -> ModelError {
    m.build().expect_err("refused")
}

#[test]
fn names_with_dots_are_told_whole() {
    let contact = ContactSpec::new(0.5).group("feet", &["feet"]);
    let m = MechanismBuilder::new()
        .body("leg.left", ball().contact("toe.tip", contact.clone()))
        .body("leg", BodySpec::new(1.0).inertia([1.0; 3]).free());
    let path = |m: MechanismBuilder| refused(m).path;
    let expected = ["bodies", "leg.left", "contacts", "toe.tip", "against"];
    // nothing to touch, an unknown group, a pair that is not supported
    assert_eq!(path(m.clone()), expected);
    let unknown = contact.clone().group("feet", &["fet"]);
    assert_eq!(
        path(MechanismBuilder::new().body("leg.left", ball().contact("toe.tip", unknown))),
        expected
    );
    let boxed = |c: ContactSpec| ball().contact("toe.tip", c.shape(POINT));
    let pair = MechanismBuilder::new()
        .body("leg.left", boxed(contact.clone()))
        .body("leg", boxed(contact));
    let found = path(pair);
    assert!(found[1] == "leg.left" || found[1] == "leg", "{found:?}");
    assert_eq!(found[2..], expected[2..]);
}

#[test]
fn shapes_are_read_and_unknown_ones_are_refused_with_their_names() {
    let read = |shape: &str| toml::from_str::<ContactSpec>(&format!("shape = {shape}"));
    let corner = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for (text, shape) in [
        ("\"point\"", POINT),
        ("{ sphere = 0.13 }", SPHERE),
        ("{ box = [0.6, 0.35, 0.2] }", BOX),
        ("{ capsule = { radius = 0.1, length = 0.7 } }", CAPSULE),
        ("{ cylinder = { radius = 0.3, length = 0.5 } }", CYLINDER),
        (
            "{ hull = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]] }",
            Surface::Hull(Hull::new(&corner).expect("valid")),
        ),
    ] {
        let spec = read(text).expect("valid");
        assert_eq!(spec.shape, Some(shape));
        let again: ContactSpec =
            toml::from_str(&toml::to_string(&spec).expect("written")).expect("read again");
        assert_eq!(again, spec);
    }
    let message = |shape: &str| read(shape).expect_err("unknown").to_string();
    let unknown = message("{ ball = 0.1 }");
    assert!(unknown.contains("unknown variant `ball`"), "{unknown}");
    assert!(
        unknown.contains("`point`") && unknown.contains("`sphere`"),
        "{unknown}"
    );
    let flat = message("{ hull = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]] }");
    assert!(flat.contains("not in one plane"), "{flat}");
    let missing = message("{ capsule = { radius = 0.1 } }");
    assert!(missing.contains("missing field `length`"), "{missing}");
}

#[test]
fn slots_have_names_of_their_own() {
    for (shape, count) in [
        (POINT, 1),
        (SPHERE, 1),
        (CAPSULE, 2),
        (BOX, 8),
        (CYLINDER, 10),
        (hull(), 7),
    ] {
        let m = MechanismBuilder::new()
            .body("a", body(&mut Source::new(1), shape, 0.1))
            .half_space("floor", HalfSpaceSpec::default());
        let mut names = names(&m);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
    let m = MechanismBuilder::new()
        .body("a", body(&mut Source::new(1), CAPSULE, 0.1))
        .body("b", body(&mut Source::new(1), CAPSULE, 0.1))
        .body("c", body(&mut Source::new(1), POINT, 0.1));
    assert_eq!(
        names(&m),
        [
            "a.c - with b.c",
            "a.c + with b.c",
            "a.c with b.c -",
            "a.c with b.c +",
            "a.c across with b.c",
            "c.c with a.c",
            "c.c with b.c",
        ]
    );
}

#[test]
fn groups_decide_what_meets() {
    let m = |of_b: ContactSpec| {
        MechanismBuilder::new()
            .body(
                "a",
                ball().contact("skin", touching("ball", &["ball", "ground"])),
            )
            .body("b", ball().contact("skin", of_b))
            .half_space("floor", HalfSpaceSpec::default())
    };
    let ground = "a.skin on floor";
    assert_eq!(
        names(&m(touching("ball", &[]))),
        [ground, "a.skin with b.skin"]
    );
    // one of the two is enough
    assert_eq!(
        names(&m(touching("other", &["ball"]))),
        [ground, "a.skin with b.skin"]
    );
    assert_eq!(
        names(&m(touching("other", &["ground"]))),
        [ground, "b.skin on floor"]
    );
    let alone = refused(m(touching("other", &[])));
    assert_eq!(alone.path, ["bodies", "b", "contacts", "skin", "against"]);
    assert!(alone.message.contains("`b.skin` touches nothing"));
    let unknown = refused(m(touching("other", &["bal"])));
    assert!(unknown.message.contains("`bal`"), "{unknown}");
    assert!(unknown.help.contains("did you mean `ball`"), "{unknown}");
    // the ground need not be there, but something must
    let floating =
        MechanismBuilder::new().body("a", ball().contact("skin", touching("ball", &["ground"])));
    assert!(refused(floating).message.contains("touches nothing"));
}

#[test]
fn neither_one_body_nor_two_tied_by_a_joint_meet() {
    let own = || touching("ball", &["ball", "ground"]);
    let mut second = ball().contact("skin", own());
    second.free = false;
    let m = |kind: JointKind| {
        MechanismBuilder::new()
            .body("a", ball().contact("skin", own()).contact("more", own()))
            .body("b", second.clone())
            .joint("j", JointSpec::new(kind, "b").parent("a"))
            .half_space("floor", HalfSpaceSpec::default())
    };
    let between = |kind| {
        let all = names(&m(kind));
        all.iter().filter(|n| n.contains(" with ")).count()
    };
    assert_eq!(between(JointKind::Spherical), 0);
    assert_eq!(between(JointKind::Floating), 2);
}

#[test]
fn pairs_that_are_not_there_are_refused() {
    let m = MechanismBuilder::new()
        .body("a", body(&mut Source::new(1), POINT, 0.1))
        .body("b", body(&mut Source::new(1), POINT, 0.1));
    let e = refused(m);
    let named = e.message.contains("`a.c`") && e.message.contains("`b.c`");
    assert!(named && e.message.contains("nothing to overlap"), "{e}");
    for a in [POINT, SPHERE] {
        for b in [SPHERE, CAPSULE, CYLINDER, BOX, hull()] {
            for (a, b) in [(a.clone(), b.clone()), (b, a.clone())] {
                let m = MechanismBuilder::new()
                    .body("a", body(&mut Source::new(1), a, 0.1))
                    .body("b", body(&mut Source::new(1), b, 0.1));
                assert_eq!(names(&m).len(), 1);
            }
        }
    }
}

#[test]
fn the_effective_mass_is_that_seen_at_the_contact() {
    let m = MechanismBuilder::new()
        .body(
            "a",
            ball().contact("skin", touching("ball", &["ball", "ground"])),
        )
        .body("b", ball().contact("skin", touching("ball", &["ball"])))
        .half_space("floor", HalfSpaceSpec::default())
        .build()
        .expect("valid");
    assert!((m.contacts[0].effective_mass - 2.0).abs() < 1e-15);
    assert!((m.contacts[1].effective_mass - 1.0).abs() < 1e-15);
}

#[test]
fn numbers_set_in_the_description_are_those_of_the_mechanism() {
    let spec = |shape: Shape| {
        let mut b = BodySpec::new(1.0).shape(shape).free();
        b = b.contact("own", touching("x", &["ground"]));
        b.contact("point", touching("x", &["ground"]).shape(Surface::Point))
    };
    let plane = HalfSpaceSpec {
        friction: Some(0.3),
        ..HalfSpaceSpec::default()
    };
    let builder = MechanismBuilder::new()
        .body("a", spec(Shape::Box([0.3, 0.4, 0.5])))
        .body("b", spec(Shape::Sphere(0.2)))
        .body(
            "c",
            spec(Shape::Capsule {
                radius: 0.2,
                length: 0.4,
            }),
        )
        .half_space("floor", plane)
        .half_space("wall", HalfSpaceSpec::default());
    let m = builder.clone().build().expect("valid");
    let fields = m.fields();
    let paths: Vec<_> = fields
        .iter()
        .map(|(p, _)| p.as_str())
        .filter(|p| p.starts_with("contacts.") || p.starts_with("half_spaces."))
        .collect();
    for path in [
        "contacts.a.own.friction",
        "contacts.a.own.edges.y",
        "contacts.a.point.position.z",
        "contacts.b.own.radius",
        "contacts.c.own.length",
        "half_spaces.floor.friction",
        "half_spaces.wall.offset",
    ] {
        assert!(paths.contains(&path), "{path} in {paths:?}");
    }
    assert!(!paths.contains(&"half_spaces.wall.friction"));
    assert!(!paths.contains(&"contacts.b.own.length"));
    assert_eq!(paths.len(), 6 * 4 + 3 + 1 + 2 + 3);
    for (path, field) in &fields {
        if !paths.contains(&path.as_str()) {
            continue;
        }
        let value = m.get(*field) + 0.25;
        let (mut other, mut description) = (m.clone(), builder.clone());
        other.set(*field, value);
        description.set(&m, *field, value);
        let built = description.build().expect("valid");
        assert_eq!(other.get(*field), value, "{path}");
        for (_, f) in &fields {
            assert_eq!(other.get(*f), built.get(*f), "{path}");
        }
        assert!(field.refuses(f64::NAN).is_some());
        let not_negative = path.ends_with("friction");
        let free = path.contains("position") || path.ends_with("offset");
        assert_eq!(
            field.refuses(0.0).is_some(),
            !not_negative && !free,
            "{path}"
        );
        assert_eq!(field.refuses(-1.0).is_some(), !free, "{path}");
        assert_eq!(m.field_unit(*field), if not_negative { "1" } else { "m" });
    }
}

#[test]
fn terrain_is_solids_of_the_world() {
    let steps = |edges: &[[f64; 2]]| TerrainShape::Steps {
        edges: edges.to_vec(),
        end: 3.0,
        width: 2.0,
        depth: 0.5,
    };
    let stairs = steps(&[[1.0, 0.1], [1.4, 0.3]]);
    let m = |shape: TerrainShape, friction: f64| {
        let place = TerrainSpec::new(shape, friction).at([0.0, 1.0, 0.0]);
        MechanismBuilder::new()
            .body("a", ball().contact("skin", touching("ball", &["ground"])))
            .terrain("stairs", place)
    };
    let built = m(stairs.clone(), 0.4).build().expect("valid");
    let names: Vec<_> = built.contacts.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["a.skin on stairs 1", "a.skin on stairs 2"]);
    let at = |x: f64, z: f64| [Pose::new(Vec3::new(x, 1.0, z), Quat::identity())];
    // on the first tread, beside the second
    let gaps = (built.contacts.iter()).map(|c| built.touch(c, &at(1.25, 0.23)).gap);
    let gaps: Vec<_> = gaps.collect();
    assert!(
        (gaps[0] - 0.03).abs() < 1e-14 && (gaps[1] - 0.05).abs() < 1e-14,
        "{gaps:?}"
    );
    let t = built.touch(&built.contacts[1], &at(2.0, 0.5));
    assert!((t.gap - 0.1).abs() < 1e-14 && (t.normal - Vec3::z()).norm() < 1e-15);
    assert_eq!(built.contacts[0].parent, None);
    assert!((built.contacts[0].effective_mass - 2.0).abs() < 1e-15);
    assert!((built.friction(&built.contacts[0]) - 4.0 / 9.0).abs() < 1e-15);
    for (shape, friction, field, words) in [
        (stairs.clone(), -1.0, "friction", "is -1"),
        (steps(&[]), 0.4, "shape", "no steps"),
        (
            steps(&[[1.0, 0.1], [0.5, 0.2]]),
            0.4,
            "shape",
            "x = 1 m ends at 0.5",
        ),
        (steps(&[[3.5, 0.1]]), 0.4, "shape", "x = 3.5 m ends at 3"),
        (TerrainShape::Box([1.0, 0.0, 1.0]), 0.4, "shape", "is 0"),
    ] {
        let e = refused(m(shape, friction));
        assert_eq!(e.path, ["terrain", "stairs", field]);
        assert!(e.message.contains(words), "{e}");
    }
    // nothing of it is a parameter
    assert!(
        built
            .fields()
            .iter()
            .all(|(path, _)| !path.contains("stairs"))
    );
}

/// High above the edge at which two treads meet, where the distance from either is that from its solid on both sides.
#[test]
fn distances_do_not_jump_above_a_seam() {
    let steps = TerrainShape::Steps {
        edges: vec![[1.0, 0.1], [1.4, 0.3]],
        end: 3.0,
        width: 2.0,
        depth: 0.5,
    };
    let m = MechanismBuilder::new()
        .body("a", ball().contact("skin", touching("ball", &["ground"])))
        .terrain("stairs", TerrainSpec::new(steps, 0.4))
        .build()
        .expect("valid");
    assert!(m.colliders.iter().any(|c| !c.seams.is_empty()));
    let velocities = [2.0, 0.0, -1.0, 0.0, 0.0, 0.0];
    let ahead = super::Ahead {
        velocities: &velocities,
        h: 0.05,
    };
    const STEP: f64 = 1e-3;
    for c in &m.contacts {
        let gap = |i: u16| {
            let place = Vec3::new(1.2 + STEP * f64::from(i), 0.0, 0.8);
            let poses = [Pose::new(place, Quat::identity())];
            m.touch_of(c, &m.meeting(c, &poses, &ahead), &poses).gap
        };
        for i in 0..400 {
            let (from, to) = (gap(i), gap(i + 1));
            let name = &c.name;
            assert!(
                (to - from).abs() <= STEP + 1e-12,
                "{name} at {i}: {from} {to}"
            );
        }
    }
}

/// Contacts between the sides of a pair have its friction, and its derivative.
#[test]
fn a_friction_pair_replaces_the_friction_of_both_sides() {
    use crate::mechanism::Field;
    use crate::mechanism::contact::samples::check;
    let s = &mut Source::new(21);
    let builder = MechanismBuilder::new()
        .body("a", body(s, SPHERE, 0.4))
        .body("b", body(s, BOX, 0.7));
    for pair in [["a", "b"], ["b.c", "a"], ["a.c", "b.c"]] {
        let m = builder.clone().friction_pair("p", pair, 0.25);
        let m = m.build().expect("valid");
        check(&m, 22);
        for c in &m.contacts {
            assert_eq!(m.friction(c), 0.25, "{pair:?}");
            assert_eq!(m.friction_by(c, &[Field::PairFriction(0)]), 1.0);
            assert_eq!(m.friction_by(c, &[Field::ContactFriction(0)]), 0.0);
        }
    }
    let m = builder.excluded_pair(["a", "b.c"]).build();
    assert!(m.expect("valid").contacts.is_empty());
}
