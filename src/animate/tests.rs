//! Scenes of recordings that are made up, and what becomes of them.

use super::film::Film;
use super::frames::NUMBERS;
use super::html::base64;
use super::*;
use crate::format::recording::{Contact, Force, Pose, Recording, Visual};
use crate::mechanism::{BodySpec, ContactSpec, HalfSpaceSpec, MechanismBuilder, Shape};
use crate::spatial::{Quat, Vec3};
use serde_json::{Value, json};

/// A recording without anything but poses: of bodies at `place(time)`.
fn moving(time: Vec<f64>, names: &[&str], place: impl Fn(f64) -> Vec<Pose>) -> Recording {
    let poses: Vec<Vec<Pose>> = time.iter().map(|t| place(*t)).collect();
    let text = json!({
        "title": "Made up", "version": "0", "status": "done", "time": time, "channels": [],
        "bodies": names, "poses": poses, "lines": [], "dots": [],
    });
    serde_json::from_value(text).expect("a recording")
}

/// Turned about z.
fn pose(position: [f64; 3], angle: f64) -> Pose {
    let (sin, cos) = (0.5 * angle).sin_cos();
    Pose {
        position,
        orientation: [cos, 0.0, 0.0, sin],
    }
}

fn times(count: usize, step: f64) -> Vec<f64> {
    (0..count).map(|k| k as f64 * step).collect()
}

/// A box that slides along x on the ground, as a mechanism describes it.
fn sliding() -> Recording {
    let body = BodySpec::new(1.0)
        .shape(Shape::Box([0.4, 0.2, 0.2]))
        .contact("sole", ContactSpec::new(0.5))
        .free();
    let mut described = MechanismBuilder::new().body("box", body);
    described
        .half_spaces
        .insert("ground".into(), HalfSpaceSpec::default());
    let place = |t: f64| vec![pose([t, 0.0, 0.1], t)];
    let mut r = moving(times(21, 0.05), &["box"], place);
    r.mechanism = serde_json::to_value(&described).expect("JSON");
    r.ground = serde_json::from_value(json!([{
        "normal": [0, 0, 1], "corners": [[-1, -1, 0], [2, -1, 0], [2, 1, 0], [-1, 1, 0]],
    }]))
    .expect("ground");
    r
}

fn scene(r: &Recording) -> Scene {
    Scene::new(&[("one", r)]).expect("a scene")
}

#[test]
fn shapes_come_from_the_mechanism() {
    let s = scene(&sliding());
    assert_eq!(s.meshes.len(), 1);
    let run = &s.runs[0];
    assert_eq!((run.parts.len(), run.parts[0].body), (1, Some(0)));
    assert_eq!(s.meshes[0], Mesh::cuboid([0.4, 0.2, 0.2]));
    assert!(s.floor.is_solid && s.floor.normal == Vec3::z() && s.floor.point.z == 0.0);
    assert!((s.size - Vec3::new(0.4, 0.2, 0.2).norm()).abs() < 1e-6);
    // lines that are the shape's own are not drawn again, others are rods
    let mut r = sliding();
    r.lines = serde_json::from_value(json!([
        { "body": 0, "points": [[-0.2, -0.1, 0.1], [0.2, 0.1, -0.1]] },
        { "body": 0, "points": [[0, 0, 0], [0, 0, 0.8]] },
    ]))
    .expect("lines");
    let s = scene(&r);
    // with a ball at the center of mass, where the rod begins
    assert_eq!(s.runs[0].parts.len(), 3);
    assert!((s.meshes[1].bounds().expect("some")[1][2] - 0.8).abs() < 0.02);
}

#[test]
fn meshes_of_a_body_stand_for_its_shapes() {
    let mut r = sliding();
    r.visuals = vec![Visual {
        color: Some([0.1, 0.2, 0.3]),
        vertices: vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        triangles: vec![[0, 1, 2]],
        ..Visual::of(Some(0))
    }];
    let s = scene(&r);
    assert_eq!(s.runs[0].parts.len(), 1);
    assert_eq!(s.runs[0].parts[0].color, [0.1, 0.2, 0.3]);
    assert_eq!(s.meshes[0].indices.len(), 3);
    let text = serde_json::to_value(&r).expect("JSON");
    let back: Recording = serde_json::from_value(text).expect("reads");
    assert_eq!(back, r);
}

#[test]
fn frames_are_as_many_as_are_seen() {
    let r = moving(times(1001, 1e-3), &["a"], |t| vec![pose([t, 0.0, 0.0], t)]);
    let frames = Frames::new(&r).expect("frames");
    assert_eq!(frames.len(), 101);
    assert_eq!((frames.knots[0], frames.knots[100]), (0, 1000));
    assert!(frames.knots.windows(2).all(|k| k[1] - k[0] == 10));
    // at the rate itself all are kept
    let r = moving(times(301, 0.01), &["a"], |t| vec![pose([t, 0.0, 0.0], 0.0)]);
    assert_eq!(Frames::new(&r).expect("frames").len(), 301);
    // a last knot that comes too soon is kept, too
    let r = moving(vec![0.0, 0.01, 0.0101], &["a"], |t| {
        vec![pose([t, 0.0, 0.0], 0.0)]
    });
    assert_eq!(Frames::new(&r).expect("frames").knots, [0, 1, 2]);
    // what spins fast needs more of them: it turns by half a rad a knot
    let r = moving(times(101, 1e-3), &["a"], |t| {
        vec![pose([0.0; 3], 500.0 * t)]
    });
    let frames = Frames::new(&r).expect("frames");
    let turns = (1..frames.len()).map(|f| frames.pose(f, 0).1.angle_to(&frames.pose(f - 1, 0).1));
    assert!(turns.fold(0.0, f64::max) <= 1.5 + 1e-6);
    // the sign of a quaternion is next to the one before
    for f in 1..frames.len() {
        let (p, q) = (frames.numbers(f - 1, 0), frames.numbers(f, 0));
        assert!((3..NUMBERS).map(|i| p[i] * q[i]).sum::<f32>() >= 0.0);
    }
}

#[test]
fn between_knots_bodies_go_straight_and_turn_evenly() {
    let r = moving(vec![1.0, 2.0], &["a"], |t| {
        // the second pose in the other sign, which is the same
        let mut p = pose([t, 2.0 * t, 0.0], t - 1.0);
        if t > 1.5 {
            p.orientation = p.orientation.map(|v| -v);
        }
        vec![p]
    });
    let frames = Frames::new(&r).expect("frames");
    let (x, q) = frames.at(1.25)[0];
    assert!((x - Vec3::new(1.25, 2.5, 0.0)).amax() < 1e-6);
    assert!(q.angle_to(&Quat::from_axis_angle(&Vec3::z_axis(), 0.25)) < 1e-6);
    assert_eq!(
        (frames.locate(0.0), frames.locate(3.0)),
        ((0, 0.0), (1, 0.0))
    );
    assert!((frames.at(9.0)[0].0.x - 2.0).abs() < 1e-6);
}

#[test]
fn what_is_no_motion_is_refused() {
    let at = |r: &Recording| Scene::new(&[("one", r)]).expect_err("refused").to_string();
    let mut r = sliding();
    r.poses[7][0].position[1] = f64::NAN;
    let said = at(&r);
    assert!(
        said.contains("`box` at knot 7 (0.35") && said.contains("; "),
        "{said}"
    );
    let mut r = sliding();
    r.poses[2][0].orientation = [0.0; 4];
    assert!(at(&r).contains("knot 2"));
    let mut r = sliding();
    r.poses[2][0].position[0] = 1e300;
    assert!(at(&r).contains("knot 2"));
    let mut r = sliding();
    r.time[4] = r.time[3];
    assert!(at(&r).contains("time at knot 4"));
    assert_eq!(Scene::new(&[]).err(), Some(AnimateError::Empty));
    assert!(at(&moving(vec![], &[], |_| vec![])).contains("no knots"));
}

#[test]
fn forces_outlive_the_knots_they_are_of() {
    let mut r = moving(times(101, 1e-3), &["a"], |_| vec![pose([0.0; 3], 0.0)]);
    let force = |knot: usize, z: f64| Force {
        knot,
        point: [0.1, 0.0, 0.0],
        force: [0.0, 0.0, z],
    };
    r.contacts = vec![Contact {
        name: "a".into(),
        parent: None,
        child: 0,
        friction: 0.0,
        forces: vec![
            force(11, 1.0),
            force(14, 5.0),
            force(20, 2.0),
            force(50, 4.0),
        ],
        meets: vec![],
    }];
    let s = scene(&r);
    let run = &s.runs[0];
    let sizes: Vec<(usize, f32)> = run.arrows.iter().map(|a| (a.frame, a.force[2])).collect();
    assert_eq!(sizes, [(2, 5.0), (5, 4.0)]);
    // over the time before their frames
    assert_eq!(run.arrows_at(0.015).len(), 1);
    assert!(run.arrows_at(0.0205).is_empty() && run.arrows_at(0.0099).is_empty());
    assert!(s.most_force == 5.0 && !s.cuts_forces);
}

#[test]
fn runs_stand_beside_each_other() {
    let (a, b) = (sliding(), sliding());
    let s = Scene::new(&[("first", &a), ("second", &b)]).expect("a scene");
    let apart = s.runs[1].offset - s.runs[0].offset;
    // they move along x
    assert!(apart.x == 0.0 && apart.y > 0.3, "{apart}");
    assert_ne!(s.runs[0].color, s.runs[1].color);
    assert_eq!(s.meshes.len(), 1);
}

#[test]
fn all_of_it_is_in_the_picture() {
    for (width, height) in [(720, 480), (300, 700)] {
        let s = scene(&sliding());
        let camera = camera::Camera::new(&s.view, &Vec3::zeros(), width, height);
        for p in &s.view.points {
            let local = camera.local(p);
            let [x, y] = camera.pixel(&local);
            assert!(local.z > camera.near, "{local}");
            assert!(
                x > 0.0 && x < width as f64 && y > 0.0 && y < height as f64,
                "{x} {y}"
            );
        }
    }
}

#[test]
fn films_last_as_long_as_they_can_be_watched() {
    let speed = |duration: f64| {
        let still = |_| vec![pose([0.0; 3], 0.0)];
        scene(&moving(vec![0.0, duration], &["a"], still)).speed()
    };
    for (duration, expected) in [
        (5.0, 1.0),
        (0.5, 0.2),
        (1.2, 0.5),
        (2.0, 1.0),
        (100.0, 5.0),
        (21.0, 2.0),
    ] {
        assert!(
            (speed(duration) - expected).abs() < 1e-9,
            "{duration}: {}",
            speed(duration)
        );
    }
}

#[test]
fn a_page_holds_everything_itself() {
    let mut r = sliding();
    r.title = "A <b>bold</b> title </script><script>alert(1)".into();
    r.bodies = vec!["</script> {{script}}".into()];
    let page = render_html(&scene(&r));
    assert!(!page.contains("http"), "something may be fetched");
    assert!(!page.contains("<script>alert"), "text became script");
    assert_eq!(page.matches("</script>").count(), 2);
    let data = page
        .split("type=\"application/json\">")
        .nth(1)
        .expect("data");
    let data = data.split("</script>").next().expect("an end");
    let data: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["title"], json!(r.title));
    assert_eq!(data["runs"][0]["bodies"][0], json!(r.bodies[0]));
    // 21 frames of 7 numbers of 4 bytes
    let poses = data["runs"][0]["poses"].as_str().expect("text");
    assert_eq!(poses.len(), (21_usize * 7 * 4).div_ceil(3) * 4);
}

#[test]
fn long_runs_are_small_pages() {
    let names: Vec<String> = (0..13).map(|b| format!("body {b}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = |t: f64| (0..13).map(|b| pose([t, f64::from(b), 0.0], t)).collect();
    let page = render_html(&scene(&moving(times(10_000, 0.01), &names, place)));
    assert!(page.len() < 6 << 20, "{} bytes", page.len());
}

#[test]
fn base64_is_that_of_its_standard() {
    for (plain, coded) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(plain.bytes()), coded);
    }
    assert_eq!(base64([0xfb, 0xff].into_iter()), "+/8=");
}

#[test]
fn nothing_to_show_is_shown() {
    let still = |_| vec![pose([0.0; 3], 0.0)];
    let without_shapes = moving(times(3, 0.1), &["a"], |t| vec![pose([t, 0.0, 0.0], 0.0)]);
    let one_knot = moving(vec![0.0], &["a"], still);
    let no_bodies = moving(times(2, 0.1), &[], |_| vec![]);
    for r in [without_shapes, one_knot, no_bodies] {
        let s = scene(&r);
        assert!(render_html(&s).contains("Made up"));
        assert!(render_glb(&s).is_ok());
        let film = Film::new(&s, 1.0).expect("a film");
        assert_eq!(film.picture(0.0).len(), 720 * 480 * 3);
    }
    let s = scene(&moving(vec![0.0], &["a"], still));
    let gif = render_film(&s, Format::Gif).expect("a picture");
    assert!(gif.starts_with(b"GIF89a"));
    let png = render_film(&s, Format::Png).expect("a picture");
    let reader = png::Decoder::new(png.as_slice()).read_info().expect("PNG");
    assert!(reader.info().animation_control.is_none());
}

#[test]
fn what_is_in_front_hides_and_shades() {
    let s = scene(&sliding());
    let film = Film::new(&s, 1.0).expect("a film");
    let picture = film.picture(0.5);
    let camera = camera::Camera::new(&s.view, &Vec3::zeros(), 720, 480);
    let at = |p: Vec3| {
        let [x, y] = camera.pixel(&camera.local(&p));
        let from = 3 * (y as usize * 720 + x as usize);
        [0, 1, 2].map(|i| i32::from(picture[from + i]))
    };
    let box_middle = Vec3::new(0.5, 0.0, 0.1);
    let [r, g, b] = at(box_middle);
    assert!(b > r + 50 && b > g, "the box is blue: {r} {g} {b}");
    // its top is lighter than what is turned away from the light
    let [.., top] = at(box_middle + Vec3::new(0.0, 0.0, 0.1));
    assert!(top > b, "{top} {b}");
    // the floor beside it is in its shadow, where the ray to the light meets it
    let light = s.view.light();
    let away = box_middle - light * (0.1 / light.z);
    let beyond = Vec3::new(away.x, away.y, 0.0) - Vec3::new(light.x, light.y, 0.0) * 0.12;
    let (dark, plain) = (at(beyond), at(Vec3::new(0.5, -0.5, 0.0)));
    assert!(dark[0] < plain[0] - 20, "{dark:?} {plain:?}");
}
