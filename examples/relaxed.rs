//! Relaxed derivatives of steps through contact tend to those of hard contact linearly as kappa falls.
//!
//! `cargo run --release --example relaxed -- [FIGURE.svg]`
//!
//! [`Differentiable::smoothing`] linearizes the same step on the central path at kappa: by how much, in the Frobenius norm and
//! relative to it, the Jacobian of the next state differs from that of the path's end. Slopes near one are of errors in
//! proportion to kappa.

use least_action::dynamics::{Differentiable, Knot, SolvedStep, Step};
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{BodySpec, ContactSpec, HalfSpaceSpec, MechanismBuilder, Shape};
use plotters::prelude::*;
use std::error::Error;

#[path = "common/figure.rs"]
mod figure;
use figure::{take_font, tell};

/// Interval, s.
const H: f64 = 0.01;
/// Of the step's own central path: an end close enough.
const HARD: f64 = 1e-11;

/// What the body does, its shape, what is special, and steps until it is looked at. Special are gravity along x, height
/// above the ground, velocity along x and spin about y, in SI units.
type Case = (&'static str, Shape, [f64; 4], usize);

const BOX: Shape = Shape::Box([0.5; 3]);
const BALL: Shape = Shape::Sphere(0.25);

const CASES: [Case; 4] = [
    ("box that sticks", BOX, [1.0, 0.0, 0.0, 0.0], 20),
    ("box that slides", BOX, [0.0, 0.0, 1.0, 0.0], 20),
    ("ball that rolls", BALL, [0.0, 0.0, 1.0, 4.0], 20),
    ("ball 1 mm above", BALL, [0.0, 1e-3, 1.0, 0.0], 0),
];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or("relaxed.svg".into());
    let kappas: Vec<f64> = (0..=36)
        .map(|i| 10_f64.powf(-10.0 + 0.25 * f64::from(i)))
        .collect();
    let mut curves = vec![];
    for case in &CASES {
        let errors = errors(case, &kappas)?;
        curves.push((
            case.0,
            kappas.iter().copied().zip(errors).collect::<Vec<_>>(),
        ));
    }
    print!("kappa [m²/s²]");
    curves.iter().for_each(|c| print!("  {:>16}", c.0));
    for i in (0..kappas.len()).step_by(4) {
        print!("\n{:13.0e}", kappas[i]);
        curves.iter().for_each(|c| print!("  {:16.2e}", c.1[i].1));
    }
    print!("\nslope, 1e-8 to 1e-6");
    for (i, (_, points)) in curves.iter().enumerate() {
        let slope = (points[16].1 / points[8].1).log10() / 2.0;
        print!("{slope:w$.3}  ", w = if i == 0 { 12 } else { 16 });
    }
    draw(&path, &curves)?;
    println!("\nwrote {path}");
    Ok(())
}

/// Relative errors of the Jacobian by the state.
fn errors(case: &Case, kappas: &[f64]) -> Result<Vec<f64>, Box<dyn Error>> {
    let (_, shape, [push, height, speed, spin], steps) = *case;
    let body = BodySpec::new(1.0)
        .shape(shape)
        .contact("skin", ContactSpec::new(0.5))
        .free();
    let mechanism = MechanismBuilder::new()
        .gravity([push, 0.0, -9.81])
        .half_space("floor", HalfSpaceSpec::default())
        .body("body", body)
        .build()?;
    let mut options = Options::default();
    options.contact.central_path = HARD;
    let q = [0.0, 0.0, 0.25 + height, 0.0, 0.0, 0.0];
    let system = Maximal::new(mechanism, &q, options)?;
    let start = [speed, 0.0, 0.0, 0.0, spin, 0.0];
    let mut x = system.start(&q, &start, &[true; 6])?;
    let (d, mut w) = (system.dims(), system.work());
    let (mut next, mut y) = (x.clone(), vec![0.0; d.ny]);
    let mut at = Knot {
        k: 0,
        t: 0.0,
        h_prev: 0.0,
        h: H,
    };
    for k in 0..=steps {
        if k > 0 {
            x.copy_from_slice(&next);
            at = Knot {
                k,
                t: k as f64 * H,
                h_prev: H,
                h: H,
            };
        }
        system.step(&at, &x, &[], &[], &mut w, &mut next, &mut y)?;
    }
    let solved = SolvedStep {
        at,
        x: &x,
        u: &[],
        p: &[],
        y: &y,
        next: &next,
    };
    let mut jacobian = |kappa: f64| -> Result<Vec<f64>, Box<dyn Error>> {
        system.smoothing(&mut w, kappa);
        let mut linear = system.linearize(&solved, &mut w)?;
        let mut columns = vec![];
        for i in 0..d.nf {
            let (mut input, mut output) = (d.inputs(), d.outputs());
            input.x[i] = 1.0;
            linear.push(&input, &mut output);
            columns.extend(output.x);
        }
        Ok(columns)
    };
    let hard = jacobian(0.0)?;
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    let size = norm(&mut hard.iter().copied());
    let mut found = vec![];
    for kappa in kappas {
        let relaxed = jacobian(*kappa)?;
        found.push(norm(&mut relaxed.iter().zip(&hard).map(|(a, b)| a - b)) / size);
    }
    Ok(found)
}

/// Errors by kappa, both logarithmic, with a line of slope one.
fn draw(path: &str, curves: &[(&str, Vec<(f64, f64)>)]) -> Result<(), Box<dyn Error>> {
    take_font()?;
    let colors = [
        RGBColor(0x00, 0x72, 0xb2),
        RGBColor(0xd5, 0x5e, 0x00),
        RGBColor(0x00, 0x9e, 0x73),
        RGBColor(0xcc, 0x79, 0xa7),
    ];
    let root = SVGBackend::new(path, (960, 600)).into_drawing_area();
    root.fill(&WHITE)?;
    let (plot, side) = root.split_horizontally(740);
    let mut chart = ChartBuilder::on(&plot)
        .margin(16)
        .caption(
            "Relaxed derivatives of a step against those of hard contact",
            ("sans-serif", 20),
        )
        .x_label_area_size(54)
        .y_label_area_size(80)
        .build_cartesian_2d((1e-10..1e-1).log_scale(), (1e-9..100.0).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xe6, 0xe6, 0xe6))
        .x_desc("central path's parameter κ [m²/s²]")
        .y_desc("relative error of the Jacobian [1]")
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 17))
        .x_label_formatter(&|v| format!("{v:.0e}"))
        .y_label_formatter(&|v| format!("{v:.0e}"))
        .draw()?;
    let line = [1e-7, 1e-2].map(|k| (k, 0.02 * k));
    let gray = RGBColor(0x66, 0x66, 0x66);
    chart.draw_series(DashedLineSeries::new(line, 6, 5, gray.stroke_width(1)))?;
    for ((_, points), color) in curves.iter().zip(colors) {
        chart.draw_series(LineSeries::new(
            points.iter().copied(),
            color.stroke_width(2),
        ))?;
        let dots = points.iter().step_by(4);
        chart.draw_series(dots.map(|p| Circle::new(*p, 3, color.filled())))?;
    }
    let names = curves.iter().map(|c| c.0).chain(["in proportion to κ"]);
    for (i, (name, color)) in names.zip(colors.into_iter().chain([gray])).enumerate() {
        let y = 70 + 26 * i as i32;
        tell(&side, name, y, color)?;
    }
    root.present()?;
    Ok(())
}
