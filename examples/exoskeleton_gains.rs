//! Three sets of gains of an exoskeleton for two patients, paper 000, section 5.4: the authors' own, those that they divide by 4.75 so
//! that a limit of 5 N m is kept, and those found here for that limit on both the motor and the patient's elbow.
//!
//! `cargo run --release --example exoskeleton_gains -- [FIGURE.svg or .png] [KP KD KP KD]`: torques of the elbow's motor and of the
//! patient's elbow and errors of both angles over time. The last gains, of shoulder and elbow, are searched for unless they are given.

use least_action::control::Problem;
use least_action::dynamics::{Observe, QuantityId};
use least_action::format::{self, Overrides};
use least_action::optimize::{Method, Solve};
use least_action::rollout::{RolloutStats, Trajectory};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor;
use std::error::Error;
use std::path::Path;

#[path = "common/font.rs"]
mod font;
use font::take_font;

/// The authors' gains, N m/rad and N m s/rad, and by what they divide them.
const OWN: [f64; 4] = [100.0, 10.0, 50.0, 5.0];
const DIVISOR: f64 = 4.75;
/// Of so many knots one is drawn.
const EVERY: usize = 4;
/// Of the figure and of what is above its panels.
const SIZE: (u32, u32) = (1200, 1240);
const HEAD: u32 = 84;
const COLORS: [RGBColor; 3] = [
    RGBColor(0x99, 0x99, 0x99),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
];

/// What is seen of one set of gains.
struct Run {
    name: String,
    /// Panel by panel: over time, s.
    curves: Vec<Vec<(f64, f64)>>,
}

/// A curve of a panel: what is seen of a patient.
struct Panel {
    title: String,
    quantity: QuantityId,
    /// The cost that tells what is wanted of it.
    cost: Option<usize>,
    /// Smallest and largest value allowed.
    limits: Vec<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or("exoskeleton_gains.svg".into());
    let given: Vec<f64> = arguments.map(|a| a.parse()).collect::<Result<_, _>>()?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/exoskeleton_gains.toml");
    let model = format::load(&file)?.build(&Overrides::default())?;
    let (system, problem) = (model.extended(), &model.problem);
    let found = if given.is_empty() {
        let method = Method::named(&model.options.name).ok_or("no such method")?;
        let solve = Solve::new(&system, problem).with_options(model.options.of(method));
        let found = solve.run()?;
        println!(
            "{:?} after {} iterations",
            found.status,
            found.history.len() - 1
        );
        found.trajectory.p
    } else {
        given
    };
    let adapted = OWN.map(|gain| gain / DIVISOR);
    let sets = [
        ("the authors' own", OWN.to_vec()),
        ("divided by 4.75", adapted.to_vec()),
        ("found here", found),
    ];
    let panels = panels(&system, problem)?;
    let mut runs = vec![];
    for (name, gains) in sets {
        let run = run(&system, problem, &panels, name, &gains)?;
        runs.push(run);
    }
    draw(&path, &panels, &runs)?;
    println!("wrote {path}");
    Ok(())
}

/// Of each patient the quantities with limits, then those with a target: one row of the figure after the other.
fn panels<D: Observe>(system: &D, problem: &Problem) -> Result<Vec<Panel>, Box<dyn Error>> {
    let names = system.quantities();
    let mut all: Vec<Panel> = vec![];
    for c in &problem.constraints {
        match all.iter_mut().find(|p| p.quantity == c.quantity) {
            Some(known) => known.limits.push(problem.limit(c, 0)),
            None => all.push(Panel {
                title: names[c.quantity.index()].0.clone(),
                quantity: c.quantity,
                cost: None,
                limits: vec![problem.limit(c, 0)],
            }),
        }
    }
    for (i, c) in problem.costs.iter().enumerate() {
        all.push(Panel {
            title: names[c.quantity.index()].0.clone(),
            quantity: c.quantity,
            cost: Some(i),
            limits: vec![],
        });
    }
    // the same of one patient after the other becomes side by side
    let patient = |p: &Panel| p.title.split(": ").next().unwrap_or_default().to_owned();
    let first = all.first().map(patient).ok_or("nothing is wanted")?;
    let (left, right): (Vec<_>, Vec<_>) = all.into_iter().partition(|p| patient(p) == first);
    Ok(left
        .into_iter()
        .zip(right)
        .flat_map(<[Panel; 2]>::from)
        .collect())
}

/// Simulates, and prints what it costs and the largest torques.
fn run<D: Observe>(
    system: &D,
    problem: &Problem,
    panels: &[Panel],
    name: &str,
    gains: &[f64],
) -> Result<Run, Box<dyn Error>> {
    let mut w = system.work();
    let x0 = problem.start(system, gains, &mut w)?;
    let mut t = Trajectory::new(system, problem.intervals.clone(), &x0);
    t.p.copy_from_slice(gains);
    t.roll(system, &mut w, &mut RolloutStats::default())?;
    let mut e = problem.evaluation();
    problem.evaluate(system, &t, &mut w, &mut e)?;
    let mut curves = vec![];
    println!(
        "{name}: gains {gains:.4?}, tracking cost {:.4}",
        e.objective
    );
    for panel in panels {
        let mut curve = vec![];
        let mut at = t.knot(0);
        for k in 0..=t.steps() {
            let place = e
                .layout
                .stage(k)
                .which
                .iter()
                .position(|q| *q == panel.quantity);
            if let Some(place) = place {
                let value = e.values[e.layout.values(k)][place];
                let target = panel
                    .cost
                    .map_or(0.0, |i| problem.target(&problem.costs[i], k));
                curve.push((at.t, value - target));
            }
            at = t.knot_after(&at);
        }
        let largest = curve.iter().fold(0.0_f64, |m, p| m.max(p.1.abs()));
        let (what, unit) = match panel.cost {
            Some(_) => ("error of ", "rad"),
            None => ("", "N m"),
        };
        println!("  {what}{}: at most {largest:.4} {unit}", panel.title);
        curves.push(curve);
    }
    Ok(Run {
        name: format!("{name}: cost {:.4}", e.objective),
        curves,
    })
}

/// As the ending of the path says, `.png` or else `.svg`.
fn draw(path: &str, panels: &[Panel], runs: &[Run]) -> Result<(), Box<dyn Error>> {
    match path.ends_with(".png") {
        true => draw_on(
            &BitMapBackend::new(path, SIZE).into_drawing_area(),
            panels,
            runs,
        ),
        false => draw_on(
            &SVGBackend::new(path, SIZE).into_drawing_area(),
            panels,
            runs,
        ),
    }
}

fn draw_on<B: DrawingBackend>(
    root: &DrawingArea<B, Shift>,
    panels: &[Panel],
    runs: &[Run],
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    take_font()?;
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(HEAD);
    let left = text_anchor::Pos::new(text_anchor::HPos::Left, text_anchor::VPos::Center);
    let title = TextStyle::from(("sans-serif", 20)).pos(left);
    head.draw(&Text::new(
        "Gains of an exoskeleton for two patients",
        (16, 24),
        title,
    ))?;
    let mut x = 16;
    let mut legend = |name: &str, style: ShapeStyle, width: i32| {
        let text = TextStyle::from(("sans-serif", 15)).pos(left);
        head.draw(&PathElement::new([(x, 60), (x + 26, 60)], style))?;
        let drawn = head.draw(&Text::new(name.to_owned(), (x + 34, 60), text));
        x += width;
        drawn
    };
    for (run, color) in runs.iter().zip(COLORS) {
        legend(&run.name, color.stroke_width(2), 310)?;
    }
    legend("- - limits", BLACK.stroke_width(1), 0)?;
    for (i, (panel, area)) in panels
        .iter()
        .zip(body.split_evenly((panels.len().div_ceil(2), 2)))
        .enumerate()
    {
        let curves = || runs.iter().map(|r| &r.curves[i]);
        // both patients on one scale
        let row = [i / 2 * 2, i / 2 * 2 + 1];
        let both = runs.iter().flat_map(|r| row.map(|i| r.curves.get(i)));
        let values = both
            .flatten()
            .flatten()
            .map(|p| p.1)
            .chain(panel.limits.iter().copied());
        let (low, high) = values.fold((0.0_f64, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        let room = 0.08 * (high - low);
        let last = curves().flatten().fold(0.0_f64, |m, p| m.max(p.0));
        let (patient, what) = panel.title.split_once(": ").unwrap_or(("", &panel.title));
        let (what, unit) = match (panel.cost, what.contains("spring")) {
            (Some(_), _) => (format!("error of {what}"), "error [rad]"),
            (None, true) => ("torque of the patient's elbow".to_owned(), "torque [N m]"),
            (None, false) => ("torque of the elbow's motor".to_owned(), "torque [N m]"),
        };
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .caption(format!("{patient}: {what}"), ("sans-serif", 16))
            .x_label_area_size(44)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..last, low - room..high + room)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(0xe6, 0xe6, 0xe6))
            .x_desc("time [s]")
            .y_desc(unit)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .draw()?;
        for limit in &panel.limits {
            let ends = [(0.0, *limit), (last, *limit)];
            chart.draw_series(DashedLineSeries::new(ends, 6, 4, BLACK.stroke_width(1)))?;
        }
        for (curve, color) in curves().zip(COLORS) {
            let points = curve.iter().step_by(EVERY).copied();
            chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
        }
    }
    root.present()?;
    Ok(())
}
