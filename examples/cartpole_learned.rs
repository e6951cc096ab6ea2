//! Gains that balance a cart-pole, learnt from nothing by every learner and by gradients of the policy, on the same episodes:
//! the return over the number of rollouts, its mean and its range over seeds.
//!
//! `cargo run --release --example cartpole_learned -- [FIGURE.svg or .png] [rollouts] [seeds]`

use least_action::format::problem::MethodSpec;
use least_action::format::{self, Model, Overrides};
use least_action::optimize::{Iteration, Limits, Method, Solve};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{register_font, text_anchor};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// Points of the curves.
const POINTS: usize = 100;

/// What a method found: its name, and of every seed the return of the best so far at each number of rollouts.
type Learnt = (&'static str, Vec<Vec<f64>>);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or("cartpole_learned.svg".into());
    let most = arguments.next().map_or(Ok(2000), |n| n.parse::<u64>())?;
    let seeds = arguments.next().map_or(Ok(3), |n| n.parse::<u64>())?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/cartpole_learned.toml");
    let mut model = format::load(&file)?.build(&Overrides::default())?;
    // the rollouts are the limit, whatever number of iterations they make
    model.options.max_iterations = Some(most);
    let mut all: Vec<Learnt> = vec![];
    println!("return after {most} rollouts, of {seeds} seeds");
    for method in Method::ALL.into_iter().filter(|m| m.is_learner()) {
        let begun = Instant::now();
        let mut curves = vec![];
        for seed in 1..=seeds {
            curves.push(curve(&learn(&mut model, method, seed, most)?, most));
        }
        let ends: Vec<String> = (curves.iter())
            .filter_map(|c: &Vec<f64>| c.last().map(|v| format!("{v:9.4}")))
            .collect();
        let seconds = begun.elapsed().as_secs_f64() / seeds as f64;
        println!(
            "{:16} {}  {seconds:.1} s a seed",
            method.name(),
            ends.join(" ")
        );
        all.push((method.name(), curves));
    }
    draw(&path, &all, most)?;
    println!("wrote {path}");
    Ok(())
}

/// Settings for a few gains and few rollouts, where those that a method has unless told are for more: small populations, and
/// for `search`, whose noise is in SI units, a noise of the gains' size.
fn set(options: &mut MethodSpec, method: Method, seed: u64) {
    options.seed = Some(seed);
    options.sigma = (method == Method::Search).then_some(5.0);
    options.population = (method == Method::Mppi).then_some(16);
    options.directions = (method == Method::Ars).then_some(8);
}

/// Solves until so many rollouts are made; the history.
fn learn(
    model: &mut Model,
    method: Method,
    seed: u64,
    most: u64,
) -> Result<Vec<Iteration>, Box<dyn Error>> {
    set(&mut model.options, method, seed);
    let system = model.extended();
    let options = model.options.of(method);
    // as many iterations as fit: the first tells how many rollouts one is
    let solve = |iterations| {
        let limits = Limits {
            iterations: Some(iterations),
            ..Limits::default()
        };
        let solve = Solve::new(&system, &model.problem).with_options(options);
        solve.with_limits(limits).run()
    };
    let first = solve(1)?.history;
    let rollouts = |i: usize| first.get(i).and_then(|r| r.rollouts).unwrap_or(0);
    let each = (rollouts(1) - rollouts(0)).max(1);
    Ok(solve((most - rollouts(0)).div_ceil(each))?.history)
}

/// The return of the best so far at evenly spaced numbers of rollouts.
fn curve(history: &[Iteration], most: u64) -> Vec<f64> {
    let at = |i: usize| {
        let rollouts = most * (i as u64 + 1) / POINTS as u64;
        let made = history.iter().take_while(|r| r.rollouts <= Some(rollouts));
        made.last().map_or(f64::NAN, |r| -r.objective)
    };
    (0..POINTS).map(at).collect()
}

/// As the ending of the path says, `.png` or else `.svg`.
fn draw(path: &str, all: &[Learnt], most: u64) -> Result<(), Box<dyn Error>> {
    let size = (960, 600);
    match path.ends_with(".png") {
        true => draw_on(
            BitMapBackend::new(path, size).into_drawing_area(),
            all,
            most,
        ),
        false => draw_on(SVGBackend::new(path, size).into_drawing_area(), all, most),
    }
}

/// Means and ranges of returns over rollouts.
fn draw_on<B: DrawingBackend>(
    root: DrawingArea<B, Shift>,
    all: &[Learnt],
    most: u64,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    let font = include_bytes!("../assets/fonts/DejaVuSans.ttf");
    register_font("sans-serif", FontStyle::Normal, font).map_err(|_| "the font cannot be read")?;
    let colors = [
        RGBColor(0x00, 0x72, 0xb2),
        RGBColor(0xd5, 0x5e, 0x00),
        RGBColor(0x00, 0x9e, 0x73),
        RGBColor(0xcc, 0x79, 0xa7),
        RGBColor(0x4d, 0x4d, 0x4d),
    ];
    let costs = || all.iter().flat_map(|m| m.1.iter().flatten()).map(|v| -v);
    let largest = costs().fold(0.0, f64::max);
    let least = costs().fold(f64::INFINITY, f64::min);
    root.fill(&WHITE)?;
    let (plot, side) = root.split_horizontally(760);
    let mut chart = ChartBuilder::on(&plot)
        .margin(16)
        .caption(
            "Cart-pole, learned: mean and range over seeds",
            ("sans-serif", 20),
        )
        .x_label_area_size(54)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..most as f64, (largest * 1.1..least * 0.9).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xe6, 0xe6, 0xe6))
        .x_desc("rollouts")
        .y_desc("return of the best so far")
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 17))
        .x_label_formatter(&|v| format!("{v:.0}"))
        .y_label_formatter(&|v| format!("−{v}"))
        .draw()?;
    for ((name, curves), (color, i)) in all.iter().zip(colors.into_iter().zip(0..)) {
        let x = |k: usize| most as f64 * (k + 1) as f64 / POINTS as f64;
        let each = |k: usize| curves.iter().map(move |c| -c[k]);
        let known = || (0..POINTS).filter(|&k| each(k).all(f64::is_finite));
        let edge = |k: usize, start, of: fn(f64, f64) -> f64| (x(k), each(k).fold(start, of));
        let lower = known().map(|k| edge(k, f64::INFINITY, f64::min));
        let upper = known().rev().map(|k| edge(k, 0.0, f64::max));
        let band = lower.chain(upper).collect::<Vec<_>>();
        chart.draw_series([Polygon::new(band, color.mix(0.15))])?;
        let mean = |k: usize| (x(k), each(k).sum::<f64>() / curves.len() as f64);
        chart.draw_series(LineSeries::new(known().map(mean), color.stroke_width(2)))?;
        let y = 70 + 26 * i;
        side.draw(&PathElement::new([(0, y), (26, y)], color.stroke_width(2)))?;
        let style = TextStyle::from(("sans-serif", 16)).pos(text_anchor::Pos::new(
            text_anchor::HPos::Left,
            text_anchor::VPos::Center,
        ));
        side.draw(&Text::new(*name, (34, y), style))?;
    }
    root.present()?;
    Ok(())
}
