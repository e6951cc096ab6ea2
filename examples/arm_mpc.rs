//! Receding-horizon control of a six-joint arm: its hand follows an ellipse, is pushed, and weighs a fifth more than the
//! model says. Twenty-five steps of 20 ms ahead, one iteration a tick.
//!
//! `cargo run --release --example arm_mpc -- [FIGURE.svg]`
//!
//! Prints the error of the hand, how often a tick failed and how long one took, with ticks at every step and at every
//! third, where the plan's feedback acts between them or does not, the model right and a fifth too light. The figure shows
//! the hand and its error over time.

#[path = "common/arm.rs"]
mod arm;
#[path = "common/font.rs"]
mod font;

use arm::{Followed, Run, follow};
use font::take_font;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// Of the pushes, N.
const PUSH: f64 = 40.0;

const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const RED: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
const GRAY: RGBColor = RGBColor(0x66, 0x66, 0x66);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or("arm_mpc.svg".into());
    println!(
        "masses  push [N]  ticks every  feedback  error [mm]  most [mm]  failed  tick [ms], median"
    );
    let mut runs = vec![];
    for (masses, push) in [(1.0, 0.0), (1.2, 0.0), (1.0, PUSH), (1.2, PUSH)] {
        for (every, feedback) in [(1, true), (3, true), (3, false)] {
            let run = Run {
                every,
                feedback,
                masses,
                push,
                ..Run::default()
            };
            let found = follow(run)?;
            let mut ticks = found.ticks.clone();
            ticks.sort_unstable();
            let most = found.error.iter().fold(0.0_f64, |m, e| m.max(*e));
            println!(
                "{masses:6}  {push:8}  {every:11}  {:>8}  {:10.2}  {:9.2}  {:6}  {:.2}",
                if feedback { "yes" } else { "no" },
                1e3 * found.rms_error(),
                1e3 * most,
                found.failures,
                1e3 * ticks[ticks.len() / 2].as_secs_f64()
            );
            runs.push((run, found));
        }
    }
    let of = |masses: f64, push: f64, feedback: bool| {
        let is = |r: &Run| (r.masses, r.push, r.every, r.feedback) == (masses, push, 3, feedback);
        runs.iter().find(|(r, _)| is(r)).map(|r| &r.1)
    };
    let four = [
        of(1.2, PUSH, true),
        of(1.2, PUSH, false),
        of(1.0, 0.0, true),
        of(1.2, 0.0, true),
    ];
    let [Some(with), Some(without), Some(right), Some(wrong)] = four else {
        return Err("a run is missing".into());
    };
    take_font()?;
    if path.ends_with(".png") {
        let root = BitMapBackend::new(&path, (1000, 1000)).into_drawing_area();
        draw(&root, with, without, right, wrong)?;
    } else {
        let root = SVGBackend::new(&path, (1000, 1000)).into_drawing_area();
        draw(&root, with, without, right, wrong)?;
    }
    println!("wrote {path}");
    Ok(())
}

type Curve<'a> = (&'a str, RGBColor, Vec<(f64, f64)>);

fn draw<B: DrawingBackend>(
    root: &DrawingArea<B, Shift>,
    with: &Followed,
    without: &Followed,
    right: &Followed,
    wrong: &Followed,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    root.fill(&WHITE)?;
    let at = |f: &Followed, of: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        let all = f.times.iter().enumerate();
        all.map(|(k, t)| (*t, of(k))).collect()
    };
    let mm = |f: &Followed| at(f, &|k| 1e3 * f.error[k]);
    let hand = |i: usize| -> Vec<Curve> {
        vec![
            ("target", GRAY, at(with, &|k| with.target[k][i])),
            (
                "no feedback between ticks",
                RED,
                at(without, &|k| without.hand[k][i]),
            ),
            (
                "feedback between ticks",
                BLUE,
                at(with, &|k| with.hand[k][i]),
            ),
        ]
    };
    let panels: [(&str, &str, Vec<Curve>); 4] = [
        ("pushed, masses a fifth off", "hand's y [m]", hand(1)),
        ("", "hand's z [m]", hand(2)),
        (
            "",
            "error [mm]",
            vec![
                ("no feedback between ticks", RED, mm(without)),
                ("feedback between ticks", BLUE, mm(with)),
            ],
        ),
        (
            "not pushed",
            "error [mm]",
            vec![
                ("masses a fifth off", RED, mm(wrong)),
                ("model right", GREEN, mm(right)),
            ],
        ),
    ];
    for (area, (title, unit, curves)) in root.split_evenly((4, 1)).iter().zip(panels) {
        let all = curves.iter().flat_map(|c| &c.2);
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| {
            (l.min(p.1), h.max(p.1))
        });
        let (little, legend) = (0.08 * (high - low), 0.7 * (high - low));
        // legends stand below the first curves, and above errors
        let (below, above) = match (unit.starts_with("error"), title.is_empty()) {
            (true, _) => (little, legend),
            (false, false) => (legend, little),
            (false, true) => (little, little),
        };
        let end = with.times.last().copied().unwrap_or(1.0);
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .caption(title, ("sans-serif", 17))
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..end, low - below..high + above)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(0xe6, 0xe6, 0xe6))
            .x_desc("time [s]")
            .y_desc(unit)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 15))
            .draw()?;
        for (name, color, points) in curves {
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
        }
        // those of one place are the same in both of its panels
        if unit.ends_with("z [m]") {
            continue;
        }
        let place = if unit.starts_with("hand") {
            SeriesLabelPosition::LowerLeft
        } else {
            SeriesLabelPosition::UpperRight
        };
        chart
            .configure_series_labels()
            .position(place)
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 13))
            .draw()?;
    }
    root.present()?;
    Ok(())
}
