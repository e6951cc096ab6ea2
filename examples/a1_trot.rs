//! The quadruped's trot, found and replayed: half a stride from seeded guesses, then twenty strides by the step itself under linear
//! feedback around them, which holds them against what a solve's tolerance leaves; without it that grows until a step
//! fails. Which feet are off the floor is told knot by knot: those of a diagonal.
//!
//! `cargo run --release --example a1_trot -- [FIGURE.svg or .png] [SEEDS]`: for each seed how the solve ended and how long it took, and
//! how far the replay came; of the last that was found heights of the feet and of the trunk, and how far it is from the plan.

use least_action::dynamics::Step;
use least_action::format::{self, Overrides};
use least_action::integrator::System;
use least_action::optimize::{Method, Solve};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

#[path = "common/figure.rs"]
mod figure;
#[path = "common/strides.rs"]
mod strides;
use figure::{take_font, tell};
use strides::{LEGS, Replay, flights, height, replays};

/// Of the figure, and the least deviation in it.
const SIZE: (u32, u32) = (1000, 800);
const LEAST: f64 = 1e-12;
const COLORS: [RGBColor; 4] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or("a1_trot.svg".into());
    let seeds: u64 = arguments.next().map_or(Ok(1), |a| a.parse())?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/a1_trot.toml");
    let mut model = format::load(&file)?.build(&Overrides::default())?;
    let mut last = None;
    if seeds == 0 {
        return Err("expected at least one seed".into());
    }
    for seed in 1..=seeds {
        model.options.seed = Some(seed);
        let (system, began) = (model.extended(), Instant::now());
        let solve = Solve::new(&system, &model.problem);
        let found = solve.with_options(model.options.of(Method::Direct)).run()?;
        println!(
            "seed {seed}: {:?} after {} iterations, {:.0} s, objective {:.4}, violation {:.1e}",
            found.status,
            found.history.len() - 1,
            began.elapsed().as_secs_f64(),
            found.objective,
            found.violation
        );
        if !found.status.is_solved() {
            continue;
        }
        let half = model.alone(&found.trajectory)?.swap_remove(0);
        println!("  in the air {}", flights(&model.system, &half).join(", "));
        match replays(&model.system, &half) {
            Ok((led, alone)) => {
                println!("  with feedback {led}\n  without {alone}");
                last = Some((half.steps(), led, alone));
            }
            Err(e) => println!("  not replayed: {e}"),
        }
    }
    let (steps, led, alone) = last.ok_or("no seed led to strides that can be replayed")?;
    draw(&path, &model.system, steps, &led, &alone)?;
    println!("wrote {path}");
    Ok(())
}

/// Heights of the feet over the first two strides, and how far both replays are from the plan.
fn draw(
    path: &str,
    system: &System,
    steps: usize,
    led: &Replay,
    alone: &Replay,
) -> Result<(), Box<dyn Error>> {
    match path.ends_with(".png") {
        true => draw_on(
            BitMapBackend::new(path, SIZE).into_drawing_area(),
            (system, steps, led, alone),
        ),
        false => draw_on(
            SVGBackend::new(path, SIZE).into_drawing_area(),
            (system, steps, led, alone),
        ),
    }
}

fn draw_on<B: DrawingBackend>(
    root: DrawingArea<B, Shift>,
    (system, steps, led, alone): (&System, usize, &Replay, &Replay),
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    take_font()?;
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(SIZE.1 / 2);
    let seen = (4 * steps).min(led.off.len() - 1);
    let x = |k: usize| &led.trajectory.state(k)[..system.dims().nx];
    let feet = LEGS.map(|leg| {
        let of = |k: usize| (led.time(k), 1e3 * height(system, x(k), leg));
        (leg, (0..=seen).map(of).collect::<Vec<_>>())
    });
    let off = |name, replay: &Replay| {
        let each = replay.off.iter().enumerate().skip(1);
        let curve = each.map(|(k, off)| (replay.time(k), off.max(LEAST).log10()));
        (name, curve.collect::<Vec<_>>())
    };
    let apart = [off("with feedback", led), off("without", alone)];
    panel(
        &above,
        (
            "A1 trots: its feet over the first two strides",
            "height [mm]",
        ),
        &feet,
        &|v| format!("{v:.1}"),
    )?;
    panel(
        &below,
        (
            "and how far twenty strides are from the plan",
            "largest deviation [m or rad]",
        ),
        &apart,
        &|v| format!("1e{v:.0}"),
    )?;
    root.present()?;
    Ok(())
}

fn panel<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    (caption, y): (&str, &str),
    curves: &[(&str, Vec<(f64, f64)>)],
    label: &dyn Fn(&f64) -> String,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    let all = || curves.iter().flat_map(|c| &c.1);
    let end = all().fold(0.0, |m: f64, p| m.max(p.0));
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| {
        (l.min(p.1), h.max(p.1))
    });
    let room = 0.05 * (high - low);
    let (plot, side) = area.split_horizontally(SIZE.0 as i32 - 160);
    let mut chart = ChartBuilder::on(&plot)
        .margin(14)
        .caption(caption, ("sans-serif", 20))
        .x_label_area_size(50)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..end, low - room..high + room)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xe6, 0xe6, 0xe6))
        .x_desc("time [s]")
        .y_desc(y)
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 17))
        .x_label_formatter(&|v| format!("{v:.1}"))
        .y_label_formatter(label)
        .draw()?;
    for ((name, curve), (color, i)) in curves.iter().zip(COLORS.into_iter().zip(0..)) {
        chart.draw_series(LineSeries::new(
            curve.iter().copied(),
            color.stroke_width(2),
        ))?;
        tell(&side, name, 60 + 26 * i, color)?;
    }
    Ok(())
}
