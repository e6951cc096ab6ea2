//! What a reader relies on: rotations that do not jump, marks of what is wanted, names, colours.

use super::tests::svg;
use super::*;
use crate::format::recording::{Channel, Goal, GoalKind, Group, Place, Recording};
use std::f64::consts::PI;

/// Rotation vectors of the free body `box`.
fn rotations(name: &str, vector: impl Fn(f64) -> [f64; 3]) -> Recording {
    let mut r = samples::empty(name);
    r.time = (0..=400).map(|k| 0.01 * f64::from(k)).collect();
    for i in 0..3 {
        // the shortest vector of the same rotation, as files hold it
        let value = |t: &f64| {
            let v = nalgebra::Vector3::from(vector(*t));
            nalgebra::UnitQuaternion::from_scaled_axis(v).scaled_axis()[i]
        };
        let name = format!("box.r{}", ["x", "y", "z"][i]);
        let values = r.time.iter().map(value).collect();
        let group = Group::Coordinate;
        r.channels
            .push(samples::channel(&name, "rad", group, values));
    }
    r
}

#[test]
fn rotations_do_not_jump() {
    let panels = |r: &Recording| curves::panels(r, Figure::Coordinates);
    let jump = |panels: &[panel::Panel]| {
        let curves = panels.iter().flat_map(|p| &p.curves);
        curves
            .flat_map(|c| c.points.windows(2))
            .filter_map(|w| Some((w[1]?.1 - w[0]?.1).abs()))
            .fold(0.0, f64::max)
    };
    // three turns about an axis, and back: unwound
    let turning = rotations("turning", |t| {
        [0.0, 0.6, 0.8].map(|a| a * 19.0 * (0.8 * t).sin())
    });
    let turned = panels(&turning);
    assert_eq!((turned.len(), turned[0].curves.len()), (1, 3));
    assert!(jump(&turned) < 0.2, "{}", jump(&turned));
    let highest = turned[0].curves[2].points.iter().flatten();
    let highest = highest.map(|p| p.1).fold(0.0, f64::max);
    assert!((highest - 0.8 * 19.0).abs() < 0.1, "{highest}");
    // tumbling past whole turns about changing axes: a quaternion
    let tumbling = rotations("tumbling", |t| {
        let q = nalgebra::UnitQuaternion::from_scaled_axis([0.0, 9.0 * t, 0.0].into())
            * nalgebra::UnitQuaternion::from_scaled_axis([2.0 * t, 0.0, 0.0].into());
        q.scaled_axis().into()
    });
    let tumbled = panels(&tumbling);
    let names: Vec<_> = tumbled[0].curves.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["box.qw", "box.qx", "box.qy", "box.qz"]);
    assert_eq!(tumbled[0].label, "quaternion");
    assert!(jump(&tumbled) < 0.06, "{}", jump(&tumbled));
    // what stays within half a turn is shown as it is
    let small = rotations("small", |t| [0.3 * t.sin(), 0.2 * t.cos(), 0.5 * t]);
    let as_it_is = panels(&small)[0].curves[2].points[100].unwrap().1;
    assert_eq!(Some(as_it_is), small.channels[2].values[100]);
}

#[test]
fn what_is_only_rounding_is_named_and_not_drawn() {
    let mut r = samples::cart_pole();
    for v in r.channels[1].values.iter_mut().flatten() {
        *v *= 1e-12;
    }
    let text = svg(&r, Figure::Coordinates).unwrap();
    assert!(text.contains("zero up to rounding: hinge.") && !text.contains("angle [rad]"));
    // but not where something else is wanted, nor where it is small and drawn in its unit's company
    r.channels[1].goals.push(Goal {
        kind: GoalKind::Equal,
        value: PI,
        first: 100,
        last: 100,
    });
    let text = svg(&r, Figure::Coordinates).unwrap();
    assert!(text.contains("angle [rad]") && text.contains("constraint ="));
    // a figure of nothing else is flat
    r.channels.drain(0..1);
    r.channels[0].goals.clear();
    let stack = curves::stack(&r, Figure::Coordinates).unwrap();
    assert!((stack.panels[0].curves[0].points.iter().flatten()).all(|p| p.1 == 0.0));
    assert!(stack.notes.is_empty());
}

#[test]
fn what_is_wanted_is_marked() {
    let mut r = samples::cart_pole();
    let bare = layout(&r, Figure::Coordinates).unwrap().shapes.len();
    let goal = |kind, value, first, last| Goal {
        kind,
        value,
        first,
        last,
    };
    r.channels[0].goals = vec![
        goal(GoalKind::Target, 0.2, 0, 99),
        goal(GoalKind::Less, 0.4, 10, 60),
        goal(GoalKind::Greater, -1e3, 10, 10),
    ];
    (r.channels[0].lower, r.channels[0].upper) = (Some(-0.5), None);
    let sheet = layout(&r, Figure::Coordinates).unwrap();
    assert!(sheet.shapes.len() > bare + 20);
    let text = svg(&r, Figure::Coordinates).unwrap();
    for expected in [
        "target",
        "constraint ≤",
        "constraint ≥ off scale",
        ">\nlimits\n",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    // in space, with what the path is of
    r.places = vec![Place {
        kind: GoalKind::Equal,
        body: Some(1),
        point: [0.3, 0.0, 1.5],
        orientation: Some([0.0, 0.0, 1.0, 0.0]),
        knot: 100,
        allowed: None,
    }];
    r.places.push(Place {
        kind: GoalKind::Less,
        orientation: None,
        allowed: Some([-0.6, 0.0, 0.8]),
        ..r.places[0].clone()
    });
    let text = svg(&r, Figure::Motion).unwrap();
    assert!(text.contains("constraint =") && text.contains("constraint ≤"));
    assert!(text.contains("path of pole"));
    assert!(text.contains("its point 0, 0, −0.25 m"));
    let motion = motion::Motion::new(&r).unwrap();
    let frame = motion.frame(sheet::Rect::new(0.0, 0.0, 900.0, 600.0));
    assert!(frame.y.range.1 > 1.5, "the mark is in the picture");
}

#[test]
fn forces_that_are_not_unique_are_marked() {
    let mut r = samples::five_bar();
    let force = |c: &&mut Channel| c.name.ends_with("force 2");
    r.channels.iter_mut().find(force).unwrap().not_unique = true;
    let text = svg(&r, Figure::ConstraintForces).unwrap();
    assert!(text.contains("force 2 *") && text.contains("* One of many"));
    assert!(!text.contains("force 3 *"));
}

#[test]
fn ten_bodies_have_ten_colours() {
    let colors: Vec<_> = (0..10).map(|i| panel::Ink::nth(i).color).collect();
    let far = |a: sheet::Rgb, b: sheet::Rgb| {
        let d = |a: u8, b: u8| (f64::from(a) - f64::from(b)).powi(2);
        (d(a.0, b.0) + d(a.1, b.1) + d(a.2, b.2)).sqrt()
    };
    for (i, a) in colors.iter().enumerate() {
        assert!(far(*a, sheet::WHITE) > 120.0);
        assert!(colors[..i].iter().all(|b| far(*a, *b) > 60.0), "{i}");
    }
}

#[test]
fn names_the_font_lacks_are_spelled_out_in_bitmaps() {
    assert_eq!(paint::spelled("Größe θ₁ плечо"), "Größe θ₁ плечо");
    assert_eq!(paint::spelled("腕 1"), "[U+8155] 1");
    assert!(sheet::text_width("腕", 14.0) > sheet::text_width("[U+", 14.0));
    let mut r = samples::cart_pole();
    r.channels[1].name = "腕".to_owned();
    let text = svg(&r, Figure::Coordinates).unwrap();
    assert!(text.contains('腕') && !text.contains("U+8155"));
}
