//! What the figures say.

use super::axis::{Ticks, decade_ticks, linear_ticks, number};
use super::panel::decimate;
use super::*;
use crate::format::recording::Interval;

pub(super) fn svg(recording: &Recording, figure: Figure) -> Option<String> {
    render(recording, figure, Format::Svg)
        .unwrap()
        .map(|bytes| String::from_utf8(bytes).unwrap())
}

pub(super) fn sheets(recording: &Recording) -> Vec<(String, Sheet)> {
    let named = |f: Figure| Some((format!("{} {f}", recording.title), layout(recording, f)?));
    let overview = layout_overview(recording).map(|s| (format!("{} overview", recording.title), s));
    Figure::ALL
        .into_iter()
        .filter_map(named)
        .chain(overview)
        .collect()
}

/// The samples and the recordings that a careless plot would trip over.
pub(super) fn with_odd() -> Vec<Recording> {
    samples_only()
        .into_iter()
        .chain(degenerate::odd())
        .collect()
}

pub(super) fn samples_only() -> Vec<Recording> {
    degenerate::all().into_iter().map(|(_, r)| r).collect()
}

#[test]
fn names_parse_back() {
    for figure in Figure::ALL {
        assert_eq!(figure.name().parse::<Figure>().unwrap(), figure);
    }
    let names: Vec<_> = Figure::ALL.iter().map(|f| f.name()).collect();
    assert_eq!(
        names.join(" "),
        "coordinates rates controls constraint_forces contacts energy convergence motion"
    );
    let error = "forces".parse::<Figure>().unwrap_err().to_string();
    assert!(
        error.contains("`forces`") && names.iter().all(|n| error.contains(n)),
        "{error}"
    );
}

#[test]
fn samples_have_the_figures_they_hold_data_for() {
    let made = |r: &Recording| Figure::ALL.map(|f| svg(r, f).is_some());
    let without = [true, true, true, true, false, true, true, true];
    assert_eq!(made(&samples::cart_pole()), without);
    assert_eq!(made(&degenerate::single_knot()), without);
    assert_eq!(made(&degenerate::constant()), without);
    assert_eq!(
        made(&samples::five_bar()),
        [true, true, true, true, false, true, false, true]
    );
    assert_eq!(
        made(&samples::top()),
        [true, false, false, false, false, true, false, true]
    );
    assert_eq!(
        made(&samples::sliding_box()),
        [false, false, false, false, true, false, false, true]
    );
    assert_eq!(made(&samples::empty("nothing")), [false; 8]);
    assert!(
        render_overview(&samples::empty("nothing"), Format::Svg)
            .unwrap()
            .is_none()
    );
}

#[test]
fn svg_names_axes_units_and_curves() {
    let r = samples::cart_pole();
    let expected: [(Figure, &[&str]); 7] = [
        (
            Figure::Coordinates,
            &[
                "time [s]",
                "angle [rad]",
                "position [m]",
                "slider",
                "hinge",
                "π",
            ],
        ),
        (
            Figure::Rates,
            &[
                "time [s]",
                "angular rate [rad/s]",
                "velocity [m/s]",
                "hinge rate",
            ],
        ),
        (
            Figure::Controls,
            &["time [s]", "force [N]", "push", "bounds", "−15"],
        ),
        (
            Figure::ConstraintForces,
            &["time [s]", "force [N]", "moment [N m]", "hinge force x"],
        ),
        (
            Figure::Energy,
            &["energy [J]", "kinetic", "work", "energy error [J]", "×10⁻⁹"],
        ),
        (
            Figure::Convergence,
            &["iteration", "objective", "violation", "optimality", "10⁻¹⁵"],
        ),
        (
            Figure::Motion,
            &[
                "x [m]",
                "z [m]",
                "cart",
                "pole",
                "t = 0 s … 2 s, faint to strong",
            ],
        ),
    ];
    for (figure, texts) in expected {
        let svg = svg(&r, figure).unwrap();
        for text in texts.iter().chain(&["Cart-pole swing-up", figure.title()]) {
            assert!(svg.contains(text), "{figure} lacks {text}");
        }
        assert!(
            !svg.contains("000000"),
            "{figure} has a label with rounding noise"
        );
    }
    let top = svg(&samples::top(), Figure::Motion).unwrap();
    assert!(top.contains("Spinning top &lt;heavy &amp; fast&gt;") && top.contains("0.05 m"));
    assert!(top.starts_with("<svg width=\"960\"") && top.trim_end().ends_with("</svg>"));
}

#[test]
fn ticks_are_round_and_labels_short() {
    let labels = |t: &Ticks| {
        t.marks
            .iter()
            .map(|m| m.1.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        labels(&linear_ticks((-0.02, 0.52), 5.0, false)),
        "0.0 0.2 0.4"
    );
    assert_eq!(
        labels(&linear_ticks((-0.3, 0.31), 6.0, false)),
        "−0.2 0.0 0.2"
    );
    assert_eq!(
        labels(&linear_ticks((0.0, 0.3), 3.0, false)),
        "0.0 0.1 0.2 0.3"
    );
    assert_eq!(labels(&linear_ticks((0.0, 2.5), 9.0, true)), "0 1 2");
    let tiny = linear_ticks((-2.1e-9, 2.1e-9), 4.0, false);
    assert_eq!(
        (labels(&tiny).as_str(), tiny.note.as_deref()),
        ("−2 0 2", Some("×10⁻⁹"))
    );
    let large = linear_ticks((0.0, 4.2e7), 4.0, false);
    assert_eq!(
        (labels(&large).as_str(), large.note.as_deref()),
        ("0 2 4", Some("×10⁷"))
    );
    let far = linear_ticks((9.81 - 1.1e-9, 9.81 + 1.1e-9), 5.0, false);
    assert_eq!(
        (labels(&far).as_str(), far.note.as_deref()),
        ("−1.0 −0.5 0.0 0.5 1.0", Some("×10⁻⁹ + 9.81"))
    );
    assert_eq!(
        labels(&decade_ticks((-8.3, 2.3), 6.0)),
        "10⁻⁸ 10⁻⁶ 10⁻⁴ 10⁻² 10⁰ 10²"
    );
    assert_eq!(
        [number(0.1 + 0.2, 4), number(-5.0, 4), number(1.5e-7, 4)],
        ["0.3", "−5", "1.50e−7"]
    );
}

#[test]
fn thinning_keeps_extremes_ends_and_gaps() {
    let mut points: Vec<_> = (0..100_000)
        .map(|k| Some((f64::from(k), (f64::from(k) * 0.01).sin())))
        .collect();
    points[54_321] = Some((54_321.0, 7.0));
    points[67_890] = Some((67_890.0, -7.0));
    points[20_000..20_500].fill(None);
    let kept = decimate(points.clone());
    assert!(kept.len() < 2100, "{}", kept.len());
    assert!(kept.contains(&points[54_321]) && kept.contains(&points[67_890]));
    assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
    assert!(kept.iter().any(Option::is_none));
    assert!(
        kept.iter()
            .flatten()
            .zip(kept.iter().flatten().skip(1))
            .all(|(a, b)| a.0 < b.0)
    );
}

#[test]
fn controls_are_drawn_as_they_act() {
    let mut r = samples::empty("steps");
    r.time = vec![0.0, 1.0, 2.0, 4.0];
    r.channels = vec![samples::channel(
        "push",
        "N",
        crate::format::recording::Group::Control,
        vec![3.0, f64::NAN, 5.0, f64::NAN],
    )];
    let mut points = |interval| {
        r.channels[0].interval = interval;
        curves::panels(&r, Figure::Controls)[0].curves[0]
            .points
            .clone()
    };
    let held = [
        Some((0.0, 3.0)),
        Some((1.0, 3.0)),
        None,
        Some((2.0, 5.0)),
        Some((4.0, 5.0)),
        None,
    ];
    assert_eq!(points(Some(Interval::After)), held);
    // linear between knots, constant over the last interval
    let linear = [Some((0.0, 3.0)), None, Some((2.0, 5.0)), Some((4.0, 5.0))];
    assert_eq!(points(None), linear);
}

#[test]
fn bounds_show_unless_they_squash_the_curve() {
    let mut r = samples::cart_pole();
    let shown = |r: &Recording| svg(r, Figure::Controls).unwrap();
    assert!(shown(&r).contains(">\nbounds\n"));
    (r.channels[4].lower, r.channels[4].upper) = (Some(-1e6), Some(1e6));
    assert!(shown(&r).contains("bounds off scale"));
    (r.channels[4].lower, r.channels[4].upper) = (None, None);
    assert!(!shown(&r).contains("bounds"));
}

#[test]
fn units_never_share_an_axis_and_long_legends_are_cut() {
    let panels = curves::panels(&samples::cart_pole(), Figure::ConstraintForces);
    let labels: Vec<_> = panels
        .iter()
        .map(|p| (p.label.as_str(), p.curves.len()))
        .collect();
    assert_eq!(labels, [("force [N]", 3), ("moment [N m]", 1)]);
    let many = svg(&samples::five_bar(), Figure::ConstraintForces).unwrap();
    assert!(many.contains("loop closure force 8") && many.contains("… 3 more"));
    assert!(!many.contains("loop closure force 9"));
}

#[test]
fn residuals_are_logarithmic_with_zeros_on_the_floor() {
    let stack = curves::stack(&samples::cart_pole(), Figure::Convergence).unwrap();
    let violation: Vec<_> = stack.panels[1].curves[0]
        .points
        .iter()
        .flatten()
        .map(|p| p.1)
        .collect();
    assert!((violation[0] - 2_f64.log10()).abs() < 1e-12);
    assert_eq!(violation.last(), Some(&-16.0));
    assert!(!stack.panels[0].log && stack.panels[1].log);
    let mut r = samples::cart_pole();
    r.convergence[3].violation = -1.0;
    r.convergence[0].objective = 1e6;
    let stack = curves::stack(&r, Figure::Convergence).unwrap();
    assert!(stack.panels[0].log);
    assert_eq!(stack.panels[1].curves[0].points[3], None);
}

#[test]
fn planar_motion_is_seen_straight_on() {
    let shows = |r: &Recording, text: &str| svg(r, Figure::Motion).unwrap().contains(text);
    let mut r = samples::cart_pole();
    r.poses
        .iter_mut()
        .flatten()
        .for_each(|p| p.position[1] = 0.3);
    assert!(shows(&r, "x [m]") && shows(&r, "z [m]"));
    r.poses[50][1].position[1] += 0.1;
    assert!(!shows(&r, "x [m]"));
    assert!(!shows(&samples::top(), "[m]"));
    let mut r = samples::empty("along y");
    r.time = vec![0.0, 1.0];
    r.bodies = vec!["bead".to_owned()];
    let at = |y| crate::format::recording::Pose {
        position: [0.0, y, 0.0],
        orientation: [1.0, 0.0, 0.0, 0.0],
    };
    r.poses = vec![vec![at(0.0)], vec![at(1.0)]];
    assert!(shows(&r, "y [m]"));
}

#[test]
fn segments_are_clipped() {
    let unit = (0.0, 1.0);
    assert_eq!(
        project::clip((-1.0, 0.5), (2.0, 0.5), unit, unit),
        Some([(0.0, 0.5), (1.0, 0.5)])
    );
    assert_eq!(project::clip((-1.0, 1.5), (2.0, 1.5), unit, unit), None);
    assert_eq!(
        project::clip((0.2, 0.3), (0.2, 0.3), unit, unit),
        Some([(0.2, 0.3); 2])
    );
}

#[test]
fn odd_recordings_give_figures_without_broken_numbers() {
    for r in degenerate::odd() {
        for (name, sheet) in sheets(&r) {
            for shape in &sheet.shapes {
                let text = format!("{shape:?}");
                assert!(
                    !text.contains("NaN") && !text.contains("inf"),
                    "{name}: {text}"
                );
            }
            let bytes = paint::paint(&sheet, Format::Svg).unwrap();
            assert!(bytes.len() < 2_000_000, "{name}: {}", bytes.len());
            let svg = String::from_utf8(bytes).unwrap();
            assert!(
                !svg.chars()
                    .any(|c| (c.is_control() && c != '\n') || c == '\u{fffe}'),
                "{name}"
            );
        }
    }
}

#[test]
fn png_has_two_pixels_per_nominal_one_and_shows_the_ink() {
    let r = samples::cart_pole();
    let size = layout(&r, Figure::Controls).unwrap().size;
    let bytes = render(&r, Figure::Controls, Format::Png).unwrap().unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(
        (f64::from(info.width), f64::from(info.height)),
        (2.0 * size.0, 2.0 * size.1)
    );
    assert_eq!(pixels[..3], [255; 3]);
    let blue = pixels
        .chunks(3)
        .filter(|p| **p == [0x00, 0x72, 0xb2])
        .count();
    assert!(blue > 3000, "{blue}");
    let hard = ["not finite", "huge", "many knots"];
    for r in degenerate::odd()
        .iter()
        .filter(|r| hard.contains(&r.title.as_str()))
    {
        assert!(render_overview(r, Format::Png).is_ok(), "{}", r.title);
    }
}

#[test]
fn contacts_are_summed_and_stick_and_slip_told_apart() {
    let r = samples::sliding_box();
    let panels = contacts::panels(&r);
    let labels: Vec<_> = panels.iter().map(|p| p.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "on floor",
            "normal force [N]",
            "friction [N]",
            "gap [m]",
            "slip [m/s]"
        ]
    );
    // it touches from 0.31 s on and sticks from 0.9 s on
    let bar = |i: usize| -> Vec<f64> {
        let ends = panels[0].curves[i].points.iter().flatten();
        ends.map(|p| (p.0 * 1e3).round() / 1e3).collect()
    };
    assert_eq!((bar(0), bar(1)), (vec![0.89, 1.2], vec![0.3, 0.89]));
    // impacts make the axis logarithmic: four corners carry 10 N in the end, and nothing before they touch
    let normal = &panels[1].curves[0].points;
    assert!(panels[1].log && panels[1].curves.len() == 1);
    assert_eq!((normal[0], normal[10]), (None, None));
    assert!((normal[120].unwrap().1 - 1.0).abs() < 1e-12);
    let [friction, bound] = [0, 1].map(|i| &panels[2].curves[i].points);
    assert_eq!(friction[50], bound[50]);
    assert!(friction[110].is_none() && (bound[110].unwrap().1 - 3_f64.log10()).abs() < 1e-12);
    let (gap, slip) = (&panels[3].curves[0].points, &panels[4].curves[0].points);
    assert!((gap[0].unwrap().1 - 0.441).abs() < 1e-9 && slip[10].is_none());
    assert!((slip[40].unwrap().1 - 0.5).abs() < 1e-12);
    let text = svg(&r, Figure::Contacts).unwrap();
    let expected = [
        "4 of 8 touch",
        "least gap",
        "sticks or rolls",
        "μ × normal force",
        "10²",
    ];
    assert!(expected.iter().all(|e| text.contains(e)));
}

#[test]
fn many_contacts_are_few_curves() {
    let one = samples::sliding_box();
    let mut r = one.clone();
    r.bodies = (0..12).map(|b| format!("box {b}")).collect();
    let pose = |p: &Vec<_>| vec![p[0]; 12];
    r.poses = one.poses.iter().map(pose).collect();
    for body in 1..12 {
        let mut contacts = one.contacts.clone();
        contacts.iter_mut().for_each(|c| c.child = body);
        r.contacts.extend(contacts);
        r.channels.extend(one.channels.iter().cloned());
    }
    let panels = contacts::panels(&r);
    assert_eq!(panels[0].rows.len(), 7);
    assert_eq!(
        [&panels[0].rows[0], &panels[0].rows[6]],
        ["box 0", "6 others"]
    );
    let last = |i: usize| panels[1].curves[i].points[110].unwrap().1;
    assert!((last(6) - last(0) - 6_f64.log10()).abs() < 1e-12);
    // nothing is lost where nothing touches
    for c in r.channels.iter_mut().filter(|c| c.unit == "N") {
        c.values.fill(Some(0.0));
    }
    let panels = contacts::panels(&r);
    assert!(panels.len() == 1 && panels[0].label == "gap [m]");
    assert!(
        svg(&r, Figure::Contacts)
            .unwrap()
            .contains("none of 96 touches")
    );
}

#[test]
fn ground_and_forces_are_in_the_picture() {
    let mut r = samples::sliding_box();
    let text = svg(&r, Figure::Motion).unwrap();
    let expected = ["ground", "contact force", "N per m", "polygon"];
    assert!(expected.iter().all(|e| text.contains(e)));
    // without depth it is seen edge-on: hatched, not filled
    for line in &mut r.lines {
        line.points.iter_mut().for_each(|p| p[1] = 0.0);
    }
    r.contacts.clear();
    let text = svg(&r, Figure::Motion).unwrap();
    assert!(text.contains("ground") && !text.contains("contact force"));
    assert!(text.contains("x [m]") && !text.contains("polygon"));
    let (whole, bare) = (text.matches("<polyline").count(), {
        r.ground.clear();
        svg(&r, Figure::Motion).unwrap()
    });
    assert!(whole > bare.matches("<polyline").count() + 20 && !bare.contains("ground"));
}

/// Writes all figures of the samples into the folder named by `PLOT_SAMPLES`, to be looked at.
#[test]
fn write_samples() {
    let Ok(folder) = std::env::var("PLOT_SAMPLES") else {
        return;
    };
    std::fs::create_dir_all(&folder).unwrap();
    for (name, recording) in degenerate::all() {
        for format in [Format::Svg, Format::Png] {
            for figure in Figure::ALL {
                if let Some(bytes) = render(&recording, figure, format).unwrap() {
                    std::fs::write(
                        format!("{folder}/{name}_{figure}.{}", format.extension()),
                        bytes,
                    )
                    .unwrap();
                }
            }
            let bytes = render_overview(&recording, format).unwrap().unwrap();
            std::fs::write(
                format!("{folder}/{name}_overview.{}", format.extension()),
                bytes,
            )
            .unwrap();
        }
    }
    for (i, recording) in degenerate::odd().iter().enumerate() {
        if let Some(bytes) = render_overview(recording, Format::Svg).unwrap() {
            std::fs::write(format!("{folder}/odd_{i}.svg"), bytes).unwrap();
        }
    }
}
