//! The experiments of paper 003: roots of a step in joint coordinates, for chains of revolute links.
//!
//! `cargo run --release --example roots -- [DIRECTORY [FRAMES [STEPS]]]`: time a step by the number of joints for every method, the
//! iterations of FRAMES steps, how residuals fall, and the energy of ten links over STEPS steps beside the semi-implicit Euler
//! method. Links are 1.5 m and 1 kg with an inertia of 1 kg m², angles and rates are random within a quarter turn, h is 1 ms.

use least_action::dynamics::{Knot, KnotPoint, Observe, QuantityId, Step};
use least_action::integrator::minimal::{Guess, Residual, Root, Roots};
use least_action::integrator::{Mechanical, Minimal, Options};
use least_action::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder, Quantity};
use nalgebra::{DMatrix, DVector};
use plotters::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::error::Error;
use std::f64::consts::FRAC_PI_2;
use std::path::Path;
use std::time::Instant;

#[path = "common/figure.rs"]
mod figure;
use figure::{take_font, tell};

type Curve = (String, Vec<(f64, f64)>);

/// Interval, s, and a link's length, m.
const H: f64 = 1e-3;
const LENGTH: f64 = 1.5;
const GRAVITY: f64 = 9.81;
/// The paper stops at this norm of the residual for every joint.
const TOLERANCE: f64 = 1e-9;
/// Iterations of a step at most.
const MOST: usize = 100;
/// Chains of which all methods are timed; dense ones take too long beyond.
const SIZES: [usize; 8] = [2, 5, 10, 20, 30, 50, 70, 100];

/// A chain that hangs from the world, without weight by default.
fn chain(n: usize, gravity: f64, roots: Roots) -> Result<Minimal, Box<dyn Error>> {
    let mut m = MechanismBuilder::new().gravity([0.0, 0.0, -gravity]);
    for i in 0..n {
        let name = format!("link{i}");
        let (parent, anchor) = match i {
            0 => ("world".to_owned(), [0.0; 3]),
            _ => (format!("link{}", i - 1), [0.0, 0.0, -0.5 * LENGTH]),
        };
        let joint = JointSpec::new(JointKind::Revolute, &name)
            .parent(&parent)
            .axis([0.0, 1.0, 0.0])
            .anchors(anchor, [0.0, 0.0, 0.5 * LENGTH]);
        m = m
            .body(&name, BodySpec::new(1.0).inertia([1.0; 3]))
            .joint(&format!("joint{i}"), joint);
    }
    let options = Options {
        max_iterations: MOST,
        ..Options::default()
    };
    let system = Minimal::new(m.build()?, &vec![0.0; n], options)?;
    Ok(system
        .with_roots(roots)?
        .with_outputs(vec![Quantity::Energy]))
}

/// Angles and rates within a quarter turn, or at its rate.
fn random(n: usize, seed: u64) -> Vec<f64> {
    let mut source = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..2 * n)
        .map(|_| source.random_range(-FRAC_PI_2..=FRAC_PI_2))
        .collect()
}

/// What some steps took: microseconds a step (median; not a number where a step was not solved), iterations of each, residuals of the
/// last one's iterates.
struct Taken {
    microseconds: f64,
    iterations: Vec<f64>,
    norms: Vec<f64>,
}

fn run(n: usize, roots: Roots, frames: usize) -> Result<Taken, Box<dyn Error>> {
    let s = chain(n, 0.0, roots)?;
    let start = random(n, n as u64);
    let (mut w, mut y) = (s.work(), vec![0.0; n]);
    let mut x = s.start(&start[..n], &start[n..], &vec![true; n])?;
    let mut next = x.clone();
    let (mut times, mut iterations) = (vec![], vec![]);
    for k in 0..frames {
        let at = knot(k);
        let now = Instant::now();
        let solved = s.step(&at, &x, &[], &[], &mut w, &mut next, &mut y);
        times.push(1e6 * now.elapsed().as_secs_f64());
        let Ok(stats) = solved else {
            break;
        };
        iterations.push(stats.iterations as f64);
        std::mem::swap(&mut x, &mut next);
    }
    times.sort_by(f64::total_cmp);
    let all = iterations.len() == frames;
    Ok(Taken {
        microseconds: if all {
            times[times.len() / 2]
        } else {
            f64::NAN
        },
        iterations,
        norms: s.residual_norms(&w).to_vec(),
    })
}

fn knot(k: usize) -> Knot {
    Knot {
        k,
        t: H * k as f64,
        h_prev: if k == 0 { 0.0 } else { H },
        h: H,
    }
}

/// The methods of the paper's figure 3, then ours.
fn methods(n: usize) -> [(&'static str, Roots); 8] {
    let of = |root, residual| Roots {
        root,
        residual,
        guess: Guess::Acceleration,
        norm: Some(TOLERANCE * n as f64),
    };
    use {Residual::Quadratic, Residual::Recursive};
    [
        ("RIQN, recursive residual", of(Root::QuasiNewton, Recursive)),
        ("RIQN, O(n²) residual", of(Root::QuasiNewton, Quadratic)),
        ("Newton, dense, recursive", of(Root::Dense, Recursive)),
        ("Newton, dense, O(n²)", of(Root::Dense, Quadratic)),
        ("Broyden, recursive", of(Root::Broyden, Recursive)),
        ("Broyden, O(n²)", of(Root::Broyden, Quadratic)),
        ("Newton, O(n) factors", of(Root::Newton, Recursive)),
        ("what is taken by default", Roots::default()),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(word) = args.get(3).or(args.first().filter(|a| a.starts_with('-'))) {
        return Err(format!("unknown word `{word}`; expected DIRECTORY, FRAMES and STEPS").into());
    }
    let directory = args.first().map_or("out/roots", |a| a.as_str());
    let number = |i: usize, default: usize| args.get(i).map_or(Ok(default), |a| a.parse());
    let (frames, steps) = (number(1, 200)?, number(2, 1_000_000)?);
    if frames.min(steps) == 0 {
        return Err("FRAMES and STEPS are to be at least 1".into());
    }
    std::fs::create_dir_all(directory)?;
    take_font()?;
    let to = |name: &str| Path::new(directory).join(name);
    timing(&to("time.svg"), frames)?;
    counting(&to("iterations.svg"), frames)?;
    converging(&to("convergence.svg"))?;
    conserving(&to("energy.svg"), steps)?;
    println!("figures in {directory}");
    Ok(())
}

/// Time a step by the number of joints.
fn timing(path: &Path, frames: usize) -> Result<(), Box<dyn Error>> {
    let mut curves: Vec<Curve> = (methods(1).iter())
        .map(|(name, _)| ((*name).to_owned(), vec![]))
        .collect();
    println!("microseconds a step (median of {frames})");
    print!("{:28}", "joints");
    SIZES.iter().for_each(|n| print!("{n:>9}"));
    println!();
    for (i, curve) in curves.iter_mut().enumerate() {
        print!("{:28}", curve.0);
        for n in SIZES {
            let taken = run(n, methods(n)[i].1, frames)?;
            print!("{:9.1}", taken.microseconds);
            curve.1.push((n as f64, taken.microseconds));
        }
        println!();
    }
    println!("ratios, with those the paper gives");
    for (what, slow, fast, paper) in [
        ("recursive residual, RIQN", 1, 0, [15.0, 32.0]),
        ("RIQN against dense Newton", 2, 0, [3.8, 53.0]),
    ] {
        let ratio = |n: f64| {
            let of = |i: usize| {
                curves[i]
                    .1
                    .iter()
                    .find(|p| p.0 == n)
                    .map_or(f64::NAN, |p| p.1)
            };
            of(slow) / of(fast)
        };
        println!(
            "  {what}: {:.1} at 10 joints (paper {}), {:.1} at 100 (paper {})",
            ratio(10.0),
            paper[0],
            ratio(100.0),
            paper[1]
        );
    }
    let style = Style {
        title: "Time of a step by the number of joints",
        x: "revolute joints [1]",
        y: "time of a step [µs]",
        logarithmic: [true, true],
    };
    draw(path, &style, &curves)
}

/// Iterations of every step.
fn counting(path: &Path, frames: usize) -> Result<(), Box<dyn Error>> {
    let n = 50;
    let mut curves = vec![];
    println!("iterations of {frames} steps of {n} joints, norm of the residual 1e-8");
    for (name, root) in [
        ("Newton", Root::Newton),
        ("RIQN", Root::QuasiNewton),
        ("Broyden", Root::Broyden),
        ("one factor", Root::Chord),
    ] {
        for (guess, which) in [
            (Guess::Position, "IG1"),
            (Guess::Velocity, "IG2"),
            (Guess::Acceleration, "IG3"),
        ] {
            let roots = Roots {
                root,
                guess,
                residual: Residual::Recursive,
                norm: Some(1e-8),
            };
            let all = run(n, roots, frames)?.iterations;
            if all.len() < frames {
                println!(
                    "  {name:10} {which}: step {} is not solved in {MOST} iterations",
                    all.len()
                );
                continue;
            }
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let spread = all.iter().map(|i| (i - mean).powi(2)).sum::<f64>() / all.len() as f64;
            let paper = match (root, guess) {
                (Root::Newton, Guess::Acceleration) => "(paper 4.0)",
                (Root::QuasiNewton, Guess::Acceleration) => "(paper 5.69 ± 1.16)",
                _ => "",
            };
            println!(
                "  {name:10} {which}: {mean:.2} ± {:.2} {paper}",
                spread.sqrt()
            );
            if guess == Guess::Acceleration {
                let points = all.iter().enumerate().map(|(k, i)| (k as f64, *i));
                curves.push((name.to_owned(), points.collect()));
            }
        }
    }
    let style = Style {
        title: "Iterations of each step, 50 joints, from accelerations",
        x: "step [1]",
        y: "iterations [1]",
        logarithmic: [false, false],
    };
    draw(path, &style, &curves)
}

/// Residuals of so many iterates are drawn.
const SHOWN: usize = 16;

/// How the residual falls within a step from where the chain is; of there one factor is RIQN's.
fn converging(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut curves = vec![];
    for (name, root) in [
        ("Newton", Root::Newton),
        ("RIQN", Root::QuasiNewton),
        ("Broyden", Root::Broyden),
    ] {
        let roots = Roots {
            root,
            guess: Guess::Position,
            residual: Residual::Recursive,
            norm: Some(1e-10),
        };
        let norms = run(50, roots, 1)?.norms;
        println!(
            "residuals of {name}: {}",
            norms
                .iter()
                .map(|n| format!("{n:.0e}"))
                .collect::<Vec<_>>()
                .join(" ")
        );
        let points = norms.iter().take(SHOWN).enumerate();
        let points = points.map(|(k, n)| (k as f64, *n));
        curves.push((name.to_owned(), points.collect()));
    }
    let style = Style {
        title: "Residual of a step of 50 joints, from where they are",
        x: "iteration [1]",
        y: "norm of the residual [N s, N m s]",
        logarithmic: [false, true],
    };
    draw(path, &style, &curves)
}

/// Energy of ten links that fall from a random start.
fn conserving(path: &Path, steps: usize) -> Result<(), Box<dyn Error>> {
    let (n, every) = (10, (steps / 500).max(1));
    let start = random(n, 1);
    let s = chain(n, GRAVITY, Roots::default())?;
    let (mut w, mut y) = (s.work(), vec![0.0; n]);
    let mut x = s.start(&start[..n], &start[n..], &vec![true; n])?;
    let (mut next, mut energy) = (x.clone(), [0.0]);
    let (mut own, mut euler) = (vec![], vec![]);
    let mut other = Euler::new(&start);
    let mut first = None;
    for k in 0..=steps {
        let at = knot(k);
        if k % every == 0 {
            let seen = KnotPoint {
                at: Knot { h: 0.0, ..at },
                x: &x,
                u: &[],
                p: &[],
                y: &[],
            };
            s.observe_in(&seen, &[QuantityId::new(0)], &mut w, &mut energy)?;
            let begins = *first.get_or_insert([energy[0], other.energy()]);
            own.push((at.t, energy[0] - begins[0]));
            euler.push((at.t, other.energy() - begins[1]));
        }
        s.step(&at, &x, &[], &[], &mut w, &mut next, &mut y)?;
        std::mem::swap(&mut x, &mut next);
        other.step()?;
    }
    let largest = |c: &[(f64, f64)]| c.iter().fold(0.0_f64, |m, p| m.max(p.1.abs()));
    println!(
        "energy of 10 links over {steps} steps: error at most {:.2e} J, of the semi-implicit Euler method {:.2e} J",
        largest(&own),
        largest(&euler)
    );
    let style = Style {
        title: "Energy of ten links since the start, h = 1 ms",
        x: "time [s]",
        y: "change of the energy [J]",
        logarithmic: [false, false],
    };
    let curves = [
        ("semi-implicit Euler".to_owned(), euler),
        ("in joint coordinates".to_owned(), own),
    ];
    draw(path, &style, &curves)
}

/// The same chain in its plane: absolute angles from hanging down, and their rates.
struct Euler {
    angles: Vec<f64>,
    rates: Vec<f64>,
}

impl Euler {
    fn new(start: &[f64]) -> Self {
        let n = start.len() / 2;
        let sums = |v: &[f64]| {
            let each = v.iter().scan(0.0, |sum, v| {
                *sum += v;
                Some(*sum)
            });
            each.collect()
        };
        Self {
            angles: sums(&start[..n]),
            rates: sums(&start[n..]),
        }
    }

    /// `sum over links of c_i c_j`: how far the center of a link is moved by turns of those it hangs on, by their lengths.
    fn weight(&self, i: usize, j: usize) -> f64 {
        let beyond = (self.angles.len() - 1 - i.max(j)) as f64;
        let own = if i == j { 0.25 } else { 0.5 };
        LENGTH * LENGTH * (beyond + own)
    }

    /// Moment of the weights of all a link carries about its upper end, by gravity.
    fn moment(&self, i: usize) -> f64 {
        LENGTH * ((self.angles.len() - 1 - i) as f64 + 0.5)
    }

    fn mass(&self, i: usize, j: usize) -> f64 {
        let own = if i == j { 1.0 } else { 0.0 };
        own + self.weight(i, j) * (self.angles[i] - self.angles[j]).cos()
    }

    fn energy(&self) -> f64 {
        let n = self.angles.len();
        let mut sum = 0.0;
        for i in 0..n {
            sum -= GRAVITY * self.moment(i) * self.angles[i].cos();
            for j in 0..n {
                sum += 0.5 * self.mass(i, j) * self.rates[i] * self.rates[j];
            }
        }
        sum
    }

    fn step(&mut self) -> Result<(), Box<dyn Error>> {
        let n = self.angles.len();
        let mass = DMatrix::from_fn(n, n, |i, j| self.mass(i, j));
        let torque = DVector::from_fn(n, |i, _| {
            let swing = |j: usize| {
                let apart = self.angles[i] - self.angles[j];
                self.weight(i, j) * apart.sin() * self.rates[j] * self.rates[j]
            };
            -GRAVITY * self.moment(i) * self.angles[i].sin() - (0..n).map(swing).sum::<f64>()
        });
        let faster = mass.cholesky().ok_or("a mass matrix")?.solve(&torque);
        for i in 0..n {
            self.rates[i] += H * faster[i];
            self.angles[i] += H * self.rates[i];
        }
        Ok(())
    }
}

struct Style {
    title: &'static str,
    x: &'static str,
    y: &'static str,
    logarithmic: [bool; 2],
}

/// Curves with their names beside them; logarithmic axes by powers of ten.
fn draw(path: &Path, style: &Style, curves: &[Curve]) -> Result<(), Box<dyn Error>> {
    let colors = [
        RGBColor(0x00, 0x72, 0xb2),
        RGBColor(0x56, 0xb4, 0xe9),
        RGBColor(0xd5, 0x5e, 0x00),
        RGBColor(0xe6, 0x9f, 0x00),
        RGBColor(0xcc, 0x79, 0xa7),
        RGBColor(0x99, 0x33, 0x66),
        RGBColor(0x00, 0x9e, 0x73),
        RGBColor(0x00, 0x00, 0x00),
    ];
    let seen = |axis: usize, v: f64| {
        if style.logarithmic[axis] {
            v.log10()
        } else {
            v
        }
    };
    let points = |c: &Curve| -> Vec<(f64, f64)> {
        let all = c.1.iter().filter(|p| !style.logarithmic[1] || p.1 > 0.0);
        all.map(|p| (seen(0, p.0), seen(1, p.1))).collect()
    };
    let all: Vec<(f64, f64)> = curves.iter().flat_map(points).collect();
    let range = |axis: usize, of: fn(&(f64, f64)) -> f64| {
        let (low, high) = all
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| {
                (l.min(of(p)), h.max(of(p)))
            });
        if style.logarithmic[axis] {
            // whole powers of ten
            return low.floor()..high.ceil();
        }
        let margin = 0.04 * (high - low).max(1e-9);
        low - margin..high + margin
    };
    let label = |axis: usize, v: f64| {
        let v = if style.logarithmic[axis] {
            10_f64.powf(v)
        } else {
            v
        };
        match v.abs() {
            size if size == 0.0 || (0.1..1e4).contains(&size) => {
                format!("{:.*}", usize::from(size < 10.0 && size.fract() != 0.0), v)
            }
            _ => format!("{v:.0e}"),
        }
    };
    let (across, up) = (range(0, |p| p.0), range(1, |p| p.1));
    let labels = |axis: usize, range: &std::ops::Range<f64>| match style.logarithmic[axis] {
        true => (range.end - range.start) as usize + 1,
        false => 11,
    };
    let root = SVGBackend::new(path, (960, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let (plot, side) = root.split_horizontally(700);
    let mut chart = ChartBuilder::on(&plot)
        .margin(16)
        .caption(style.title, ("sans-serif", 20))
        .x_label_area_size(54)
        .y_label_area_size(84)
        .build_cartesian_2d(across.clone(), up.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xe6, 0xe6, 0xe6))
        .x_desc(style.x)
        .y_desc(style.y)
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 17))
        .x_labels(labels(0, &across))
        .y_labels(labels(1, &up))
        .x_label_formatter(&|v| label(0, *v))
        .y_label_formatter(&|v| label(1, *v))
        .draw()?;
    for (i, (curve, color)) in curves.iter().zip(colors).enumerate() {
        let points = points(curve);
        if points.len() <= 60 {
            let dots = points.iter().map(|p| Circle::new(*p, 3, color.filled()));
            chart.draw_series(dots)?;
        }
        chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
        let y = 70 + 26 * i as i32;
        tell(&side, &curve.0, y, color)?;
    }
    root.present()?;
    Ok(())
}
