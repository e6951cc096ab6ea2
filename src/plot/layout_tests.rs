//! Where things are on the sheet.

use super::sheet::{Point, Shape, text_width};
use super::tests::{samples_only, sheets, with_odd};
use super::*;

/// Left, top, right and bottom of a text.
fn text_box(shape: &Shape) -> Option<(String, [f64; 4])> {
    let Shape::Text {
        at,
        text,
        em,
        anchor,
        up,
        ..
    } = shape
    else {
        return None;
    };
    let width = text_width(text, *em);
    let before = match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width / 2.0,
        Anchor::End => width,
    };
    let (above, below) = (0.74 * em, 0.2 * em);
    let edges = match up {
        false => [
            at.0 - before,
            at.1 - above,
            at.0 - before + width,
            at.1 + below,
        ],
        true => [
            at.0 - above,
            at.1 + before - width,
            at.0 + below,
            at.1 + before,
        ],
    };
    Some((text.clone(), edges))
}

#[test]
fn texts_stay_on_the_sheet_and_clear_of_each_other() {
    for (name, sheet) in with_odd().iter().flat_map(sheets) {
        let boxes: Vec<_> = sheet.shapes.iter().filter_map(text_box).collect();
        for (i, (text, a)) in boxes.iter().enumerate() {
            let inside = a[0] >= 0.0 && a[1] >= 0.0 && a[2] <= sheet.size.0 && a[3] <= sheet.size.1;
            assert!(
                inside,
                "{name}: {text} is cut off at {a:?} of {:?}",
                sheet.size
            );
            for (other, b) in &boxes[..i] {
                // Guides at pi may lie closer together than their names are tall only by a hair.
                let apart =
                    a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] + 0.5 || b[3] <= a[1] + 0.5;
                assert!(apart, "{name}: {text} {a:?} overlaps {other} {b:?}");
            }
        }
    }
}

#[test]
fn no_line_runs_through_a_text() {
    for (name, sheet) in samples_only().iter().flat_map(sheets) {
        let boxes: Vec<_> = sheet.shapes.iter().filter_map(text_box).collect();
        for shape in &sheet.shapes {
            // Curves, swatches and bodies; the thinner grid has nothing but the labels beside it.
            let Shape::Path { points, width, .. } = shape else {
                continue;
            };
            if *width < 1.6 {
                continue;
            }
            for pair in points.windows(2) {
                for p in along(pair[0], pair[1]) {
                    let inside =
                        |b: &[f64; 4]| p.0 > b[0] && p.0 < b[2] && p.1 > b[1] && p.1 < b[3];
                    let hit = boxes.iter().find(|(_, b)| inside(b));
                    assert!(hit.is_none(), "{name}: {hit:?} lies on a line at {p:?}");
                }
            }
        }
    }
}

/// Points of a segment, a pixel apart.
fn along(a: Point, b: Point) -> impl Iterator<Item = Point> {
    let steps = (b.0 - a.0).hypot(b.1 - a.1).ceil().max(1.0) as usize;
    (0..=steps).map(move |i| {
        let share = i as f64 / steps as f64;
        (a.0 + share * (b.0 - a.0), a.1 + share * (b.1 - a.1))
    })
}

#[test]
fn a_long_rail_does_not_dwarf_the_motion() {
    let motion = motion::Motion::new(&samples::cart_pole()).unwrap();
    let x = motion.frame(Rect::new(0.0, 0.0, 960.0, 620.0)).x.range;
    assert!(x.1 - x.0 < 2.2 && x.0 < -0.6 && x.1 > 0.6, "{x:?}");
}

#[test]
fn a_metre_is_as_long_along_both_axes() {
    for r in with_odd() {
        let Some(motion) = motion::Motion::new(&r) else {
            continue;
        };
        for (width, height) in [(960.0, 620.0), (400.0, 900.0), (2000.0, 300.0)] {
            let frame = motion.frame(Rect::new(0.0, 0.0, width, height));
            let rect = frame.rect();
            let across = rect.width() / (frame.x.range.1 - frame.x.range.0);
            let along = rect.height() / (frame.y.range.1 - frame.y.range.0);
            // Far from the origin, the ends of a range are themselves rounded.
            let far = frame.x.range.1.abs().max(frame.y.range.1.abs());
            let near = (frame.x.range.1 - frame.x.range.0).min(frame.y.range.1 - frame.y.range.0);
            let rounding = 1e-12 + 4.0 * f64::EPSILON * far / near;
            assert!(
                (across / along - 1.0).abs() < rounding,
                "{}: {across} and {along}",
                r.title
            );
        }
    }
}

#[test]
fn the_picture_fits_its_frame() {
    for r in samples_only() {
        let sheet = layout(&r, Figure::Motion).unwrap();
        let motion = motion::Motion::new(&r).unwrap();
        let frame = motion
            .frame(Rect::new(MARGIN, HEADING, WIDTH - MARGIN, HEADING + 620.0))
            .rect();
        let thick = sheet.shapes.iter().filter_map(|s| match s {
            Shape::Path { points, width, .. } if *width > 3.0 => Some(points),
            _ => None,
        });
        assert!(thick.clone().count() > 0);
        for p in thick.flatten() {
            let inside = p.0 > frame.x0 && p.0 < frame.x1 && p.1 > frame.y0 && p.1 < frame.y1;
            assert!(inside, "{}: {p:?} outside {frame:?}", r.title);
        }
    }
}

#[test]
fn a_frame_takes_the_height_it_asks_for() {
    for r in with_odd() {
        let Some(motion) = motion::Motion::new(&r) else {
            continue;
        };
        let whole = motion.frame(Rect::new(0.0, 0.0, 760.0, 560.0)).rect();
        let height = motion.height(760.0, 560.0);
        let again = motion.frame(Rect::new(0.0, 0.0, 760.0, height)).rect();
        assert!(
            (whole.height() - again.height()).abs() < 1e-6,
            "{}: {whole:?} {again:?}",
            r.title
        );
        assert!(height <= 560.0 + 1e-9);
    }
}
