//! What learners found over what it took, as a figure: the mean of several seeds and their range.

use least_action::format::Model;
use least_action::optimize::{Iteration, Limits, Method, Solution, Solve};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::error::Error;

#[path = "figure.rs"]
mod figure;
use figure::{take_font, tell};

/// Points of the curves, evenly along the axis.
pub const POINTS: usize = 100;

/// A learner's name, and of every seed what the best so far is worth at each point.
pub type Learnt = (&'static str, Vec<Vec<f64>>);

/// What a learner did.
pub struct Learning {
    /// Sweeps back of an iteration, each as long as a rollout.
    sweeps: f64,
    pub solution: Solution,
}

/// Solves until so many rollouts are made, where an iteration has so many sweeps back, which count as well.
pub fn learn(
    model: &Model,
    method: Method,
    most: f64,
    sweeps: f64,
) -> Result<Learning, Box<dyn Error>> {
    let system = model.extended();
    let options = model.options.of(method);
    let solve = |iterations| {
        let limits = Limits {
            iterations: Some(iterations),
            ..Limits::default()
        };
        let solve = Solve::new(&system, &model.problem).with_options(options);
        solve.with_limits(limits).run()
    };
    // the first tells how much one takes
    let first = solve(1)?.history;
    let rollouts = |i: usize| first.get(i).and_then(|r| r.rollouts).unwrap_or(0) as f64;
    let each = (rollouts(1) - rollouts(0)).max(1.0) + sweeps;
    let solution = solve(((most - rollouts(0)) / each).ceil().max(1.0) as u64)?;
    Ok(Learning { sweeps, solution })
}

impl Learning {
    /// What the best so far is worth, evenly over so many rollouts.
    pub fn curve(&self, most: f64, worth: impl Fn(&Iteration) -> f64) -> Vec<f64> {
        let took =
            |i: usize, r: &Iteration| r.rollouts.unwrap_or(0) as f64 + self.sweeps * i as f64;
        let at = |point: usize| {
            let most = most * (point + 1) as f64 / POINTS as f64;
            let made = self.solution.history.iter().enumerate();
            let made = made.take_while(|(i, r)| took(*i, r) <= most);
            made.last().map_or(f64::NAN, |(_, r)| worth(r))
        };
        (0..POINTS).map(at).collect()
    }
}

/// What stands around the curves.
pub struct Look<'a> {
    pub caption: &'a str,
    /// What is along the axis, and its end.
    pub x: (&'a str, f64),
    pub y: &'a str,
    pub y_label: &'a dyn Fn(&f64) -> String,
    /// A dashed line at a value, and what it is.
    pub mark: Option<(f64, &'a str)>,
}

/// As the ending of the path says, `.png` or else `.svg`.
pub fn draw<Y>(
    path: &str,
    look: &Look,
    y: impl Fn() -> Y,
    all: &[Learnt],
) -> Result<(), Box<dyn Error>>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let size = (960, 600);
    match path.ends_with(".png") {
        true => draw_on(
            BitMapBackend::new(path, size).into_drawing_area(),
            look,
            y(),
            all,
        ),
        false => draw_on(
            SVGBackend::new(path, size).into_drawing_area(),
            look,
            y(),
            all,
        ),
    }
}

fn draw_on<B: DrawingBackend, Y>(
    root: DrawingArea<B, Shift>,
    look: &Look,
    y: Y,
    all: &[Learnt],
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    take_font()?;
    let colors = [
        RGBColor(0x00, 0x72, 0xb2),
        RGBColor(0xd5, 0x5e, 0x00),
        RGBColor(0x00, 0x9e, 0x73),
        RGBColor(0xcc, 0x79, 0xa7),
        RGBColor(0x4d, 0x4d, 0x4d),
    ];
    let most = look.x.1;
    root.fill(&WHITE)?;
    let (plot, side) = root.split_horizontally(760);
    let mut chart = ChartBuilder::on(&plot)
        .margin(16)
        .caption(look.caption, ("sans-serif", 20))
        .x_label_area_size(54)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..most, y)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xe6, 0xe6, 0xe6))
        .x_desc(look.x.0)
        .y_desc(look.y)
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 17))
        .x_label_formatter(&|v| format!("{v:.0}"))
        .y_label_formatter(look.y_label)
        .draw()?;
    for ((name, curves), (color, i)) in all.iter().zip(colors.into_iter().zip(0..)) {
        let x = |k: usize| most * (k + 1) as f64 / POINTS as f64;
        let each = |k: usize| curves.iter().map(move |c| c[k]);
        let known = || (0..POINTS).filter(|&k| each(k).all(f64::is_finite));
        let edge = |k: usize, start, of: fn(f64, f64) -> f64| (x(k), each(k).fold(start, of));
        let lower = known().map(|k| edge(k, f64::INFINITY, f64::min));
        let upper = known().rev().map(|k| edge(k, f64::NEG_INFINITY, f64::max));
        let band = lower.chain(upper).collect::<Vec<_>>();
        chart.draw_series([Polygon::new(band, color.mix(0.15))])?;
        let mean = |k: usize| (x(k), each(k).sum::<f64>() / curves.len() as f64);
        chart.draw_series(LineSeries::new(known().map(mean), color.stroke_width(2)))?;
        tell(&side, name, 70 + 26 * i, color)?;
    }
    if let Some((value, name)) = look.mark {
        let ends = [(0.0, value), (most, value)];
        chart.draw_series(DashedLineSeries::new(ends, 6, 5, BLACK.stroke_width(1)))?;
        tell(&side, name, 70 + 26 * all.len() as i32, BLACK)?;
    }
    root.present()?;
    Ok(())
}
