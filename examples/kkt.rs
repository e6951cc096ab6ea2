//! The systems that the direct method solves for its steps: which entries they have, and what their elimination costs.
//!
//! `cargo run --release --example kkt -- [FIGURE.svg | FIGURE.png]`
//!
//! A system is that of the first step, `[H + I, J'; J, -D]` with multipliers drawn at random and `D` 1 for
//! inequalities, 0 for equations (no 1 where equations determine a variable): of the six-joint arm's reach over more and more
//! knots, and of chains of hinged links. Times are medians of one factorization and one solution, on one
//! thread, the analysis of the pattern made beforehand:
//!
//! - `condensed`: [`Condensed`], without what equations determine, as the method does it;
//! - `faer LU`: faer's sparse LU with partial pivoting; `faer LBL'`: its sparse Bunch-Kaufman, which pivots within
//!   supernodes only.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::solvers::Solve;
use faer::sparse::linalg::cholesky::{SymmetricOrdering, factorize_symbolic_cholesky};
use faer::sparse::linalg::solvers::{Lu, SymbolicLu};
use faer::sparse::{SparseColMat, Triplet};
use faer::{Conj, Mat, Par, Side};
use least_action::block::Condensed;
use least_action::format::{self, Overrides};
use least_action::optimize::direct::{self, Transcription};
use least_action::optimize::nlp::Program;
use plotters::coord::Shift;
use plotters::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

#[path = "common/font.rs"]
mod font;
use font::take_font;

/// Times of which the median counts.
const RUNS: usize = 7;
const KNOTS: [usize; 5] = [25, 50, 100, 200, 400];
const LINKS: [usize; 6] = [2, 4, 6, 8, 12, 16];
/// Knots of the chains.
const SHORT: usize = 50;

/// A system, lower triangle, with its analysis.
struct System {
    /// Variables; rows are behind them.
    variables: usize,
    entries: Vec<(usize, usize)>,
    values: Vec<f64>,
    condensed: Condensed,
    dim: usize,
}

impl System {
    /// The system of a problem's first step, from its guess.
    fn new(text: &str) -> Result<Self, Box<dyn Error>> {
        let model = format::parse(text, "kkt.toml")?.build(&Overrides::default())?;
        let options = direct::Options::default();
        let guess = direct::guess(&model.system, &model.problem, &options)?;
        let mut program = Transcription::new(&model.system, &model.problem, guess)?;
        let (n, m) = (program.variables(), program.rows());
        let (slopes, curves) = (program.jacobian(), program.hessian());
        let (x, mut rows) = (program.start(), vec![0.0; m]);
        let (mut gradient, mut by) = (vec![0.0; n], vec![0.0; slopes.len()]);
        let mut hessian = vec![0.0; curves.len()];
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(0);
        let y: Vec<f64> = (0..m).map(|_| random.random_range(-1.0..1.0)).collect();
        let undefined = |e: least_action::optimize::nlp::Undefined| e.0;
        program.evaluate(&x, &mut rows).map_err(undefined)?;
        program
            .differentiate(&x, &mut gradient, &mut by)
            .map_err(undefined)?;
        program
            .curve(&x, 1.0, &y, &mut hessian)
            .map_err(undefined)?;
        // a start that is given is no variable
        let held: Vec<bool> = program.bounds().iter().map(|(l, u)| l == u).collect();
        let (mut entries, mut values) = (vec![], vec![]);
        let mut put = |i: usize, j: usize, value: f64| {
            let is_held = |i: usize| held.get(i) == Some(&true);
            if i == j || !is_held(i) && !is_held(j) {
                entries.push((i.max(j), i.min(j)));
                values.push(value);
            }
        };
        (curves.iter().zip(&hessian)).for_each(|((i, j), v)| put(*i, *j, *v));
        let determined = program.determined();
        // impulses that equations determine are not shifted
        let zero: BTreeSet<usize> = determined.iter().flat_map(|b| b.zero.clone()).collect();
        (0..n).for_each(|i| put(i, i, if zero.contains(&i) { 0.0 } else { 1.0 }));
        for (i, (l, u)) in program.row_bounds().into_iter().enumerate() {
            put(n + i, n + i, if l == u { 0.0 } else { -1.0 });
        }
        (slopes.iter().zip(&by)).for_each(|((row, i), v)| put(n + row, *i, *v));
        // each of what belongs to no block by itself
        let group: Vec<usize> = (0..n + m).map(|i| i + n + m).collect();
        Ok(Self {
            variables: n,
            condensed: Condensed::new(&entries, &values, &determined, &group)
                .ok_or("nothing is determined")?,
            dim: n + m,
            entries,
            values,
        })
    }

    /// What is left of `b` by a solution, relative to it.
    fn residual(&self, x: &[f64], b: &[f64]) -> f64 {
        let mut left = b.to_vec();
        for (&(i, j), v) in self.entries.iter().zip(&self.values) {
            left[i] -= v * x[j];
            if i != j {
                left[j] -= v * x[i];
            }
        }
        // numbers that are none stay none
        let largest = |x: &[f64]| {
            x.iter()
                .fold(0.0_f64, |l, x| if x.abs() <= l { l } else { x.abs() })
        };
        largest(&left) / largest(b)
    }

    fn triplets(&self, both: bool) -> Vec<Triplet<usize, usize, f64>> {
        let all = self.entries.iter().zip(&self.values);
        all.flat_map(|(&(i, j), &v)| {
            let other = (both && i != j).then(|| Triplet::new(j, i, v));
            [Some(Triplet::new(i, j, v)), other].into_iter().flatten()
        })
        .collect()
    }
}

/// Median of the milliseconds that it takes.
fn timed(mut work: impl FnMut()) -> f64 {
    let mut all: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            work();
            1e3 * start.elapsed().as_secs_f64()
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[RUNS / 2]
}

/// Milliseconds of each elimination, and the largest residuals.
fn eliminate(s: &mut System) -> Result<[(f64, f64); 3], Box<dyn Error>> {
    const THRESHOLD: f64 = 1e-8;
    let b: Vec<f64> = (0..s.dim).map(|i| (i as f64).sin()).collect();
    let mut x = b.clone();
    let (values, mut condensed) = (s.values.clone(), s.condensed.clone());
    let mut out = [(0.0, 0.0); 3];
    let mut is_factored = true;
    out[0].0 = timed(|| {
        x.copy_from_slice(&b);
        is_factored &= condensed.factor(&values, THRESHOLD).is_some();
        condensed.solve(&mut x);
    });
    if !is_factored {
        return Err("what equations determine is singular".into());
    }
    out[0].1 = s.residual(&x, &b);
    let n = s.dim;
    let full = SparseColMat::try_new_from_triplets(n, n, &s.triplets(true))
        .map_err(|e| format!("{e:?}"))?;
    let symbolic = SymbolicLu::try_new(full.symbolic()).map_err(|e| format!("{e:?}"))?;
    let mut right = Mat::from_fn(n, 1, |i, _| b[i]);
    let mut failed = None;
    out[1].0 = timed(|| {
        right = Mat::from_fn(n, 1, |i, _| b[i]);
        match Lu::try_new_with_symbolic(symbolic.clone(), full.as_ref()) {
            Ok(lu) => lu.solve_in_place(&mut right),
            Err(e) => failed = Some(format!("{e:?}")),
        }
    });
    x.copy_from_slice(right.col_as_slice(0));
    out[1].1 = s.residual(&x, &b);

    let lower = SparseColMat::try_new_from_triplets(n, n, &s.triplets(false))
        .map_err(|e| format!("{e:?}"))?;
    let order = SymmetricOrdering::Amd;
    let symbolic =
        factorize_symbolic_cholesky(lower.symbolic(), Side::Lower, order, Default::default())
            .map_err(|e| format!("{e:?}"))?;
    let (mut forward, mut inverse) = (vec![0usize; n], vec![0usize; n]);
    let (mut subdiagonal, mut numbers) = (vec![0.0; n], vec![0.0; symbolic.len_val()]);
    let scratch =
        symbolic.factorize_numeric_intranode_lblt_scratch::<f64>(Par::Seq, Default::default());
    let mut memory = MemBuffer::new(scratch);
    let mut other = MemBuffer::new(symbolic.solve_in_place_scratch::<f64>(1, Par::Seq));
    out[2].0 = timed(|| {
        right = Mat::from_fn(n, 1, |i, _| b[i]);
        let factors = symbolic.factorize_numeric_intranode_lblt(
            &mut numbers,
            &mut subdiagonal,
            &mut forward,
            &mut inverse,
            lower.as_ref(),
            Side::Lower,
            Par::Seq,
            MemStack::new(&mut memory),
            Default::default(),
        );
        let memory = MemStack::new(&mut other);
        factors.solve_in_place_with_conj(Conj::No, right.as_mut(), Par::Seq, memory);
    });
    x.copy_from_slice(right.col_as_slice(0));
    out[2].1 = s.residual(&x, &b);
    failed.map_or(Ok(out), |e| Err(e.into()))
}

/// The arm's reach over so many steps.
fn arm(steps: usize) -> Result<String, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/spatial_arm_reach.toml");
    let text = std::fs::read_to_string(path)?;
    Ok(text.replace(
        "horizon = 1.0 ",
        &format!("horizon = {} ", 0.01 * steps as f64),
    ))
}

/// A hanging chain of links with a motor in every hinge.
fn chain(links: usize) -> Result<String, Box<dyn Error>> {
    let mut text = format!(
        "time_step = 0.01\nhorizon = {}\n[mechanism]\n",
        0.01 * SHORT as f64
    );
    for i in 0..links {
        writeln!(
            text,
            "[mechanism.bodies.link_{i}]\nmass = 1.0\nshape = {{ box = [0.05, 0.05, 0.2] }}"
        )?;
        writeln!(
            text,
            "[mechanism.joints.hinge_{i}]\nkind = \"revolute\"\nchild = \"link_{i}\"\naxis = [0.0, 1.0, 0.0]\nchild_anchor = [0.0, 0.0, 0.1]"
        )?;
        if i > 0 {
            let parent = i - 1;
            writeln!(
                text,
                "parent = \"link_{parent}\"\nparent_anchor = [0.0, 0.0, -0.1]"
            )?;
        }
        writeln!(
            text,
            "[mechanism.actuators.motor_{i}]\njoint = \"hinge_{i}\""
        )?;
    }
    for i in 0..links {
        writeln!(
            text,
            "[[costs]]\nquantity = {{ control = \"motor_{i}\" }}\nweight = 0.01\n[[costs]]\nquantity = {{ joint = \"hinge_{i}\" }}\ntarget = 0.1\nweight = 1.0\nat = \"running\""
        )?;
    }
    Ok(text)
}

const NAMES: [&str; 3] = ["condensed", "faer LU", "faer LBL'"];

type Times = Vec<(usize, [(f64, f64); 3])>;

fn sweep(
    what: &str,
    sizes: &[usize],
    text: impl Fn(usize) -> Result<String, Box<dyn Error>>,
) -> Result<Times, Box<dyn Error>> {
    println!(
        "{what:>6} {:>7} {}",
        "rows",
        NAMES.map(|n| format!("{n:>22}")).join(" ")
    );
    let mut out = vec![];
    for &size in sizes {
        let mut s = System::new(&text(size)?)?;
        let found = eliminate(&mut s)?;
        let cells = found.map(|(t, r)| format!("{t:11.2} ms {r:8.0e}"));
        println!("{size:6} {:7} {}", s.dim, cells.join(" "));
        out.push((size, found));
    }
    Ok(out)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "kkt.svg".into());
    faer::set_global_parallelism(Par::Seq);
    println!("median of {RUNS} eliminations, and the residual beside the solution");
    let knots = sweep("knots", &KNOTS, arm)?;
    let links = sweep("links", &LINKS, chain)?;
    let small = System::new(&arm(4)?)?;
    take_font()?;
    let size = (1100, 460);
    if path.ends_with(".png") {
        draw(
            &BitMapBackend::new(&path, size).into_drawing_area(),
            &small,
            &knots,
            &links,
        )?;
    } else {
        draw(
            &SVGBackend::new(&path, size).into_drawing_area(),
            &small,
            &knots,
            &links,
        )?;
    }
    println!("wrote {path}");
    Ok(())
}

fn draw<B: DrawingBackend>(
    root: &DrawingArea<B, Shift>,
    small: &System,
    knots: &Times,
    links: &Times,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(460);
    let n = small.dim as f64;
    let mut chart = ChartBuilder::on(&left)
        .caption("entries, the arm over 4 steps", ("sans-serif", 16))
        .margin(14)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..n, n..0.0)?;
    let labels = |v: &f64| format!("{v:.0}");
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(5)
        .y_labels(5)
        .x_label_formatter(&labels)
        .y_label_formatter(&labels)
        .x_desc("variables, then rows")
        .draw()?;
    let there = small
        .entries
        .iter()
        .zip(&small.values)
        .filter(|(_, v)| **v != 0.0);
    chart.draw_series(there.flat_map(|(&(i, j), _)| {
        let at = |i: usize, j: usize| {
            let (x, y) = (j as f64, i as f64);
            Rectangle::new([(x, y), (x + 1.0, y + 1.0)], BLUE.filled())
        };
        [at(i, j), at(j, i)]
    }))?;
    let border = small.variables as f64;
    chart.draw_series(LineSeries::new([(border, 0.0), (border, n)], GRAY_LINE))?;
    chart.draw_series(LineSeries::new([(0.0, border), (n, border)], GRAY_LINE))?;
    let halves = right.split_evenly((1, 2));
    let titles = [
        ("the arm", "knots", knots),
        ("chains over 50 steps", "links", links),
    ];
    for (area, (title, what, times)) in halves.iter().zip(titles) {
        let first = times.first().map_or(1, |t| t.0) as f64;
        let last = times.last().map_or(1, |t| t.0) as f64;
        let all = || times.iter().flat_map(|(_, t)| t.iter().map(|t| t.0));
        let (low, high) = all().fold((f64::MAX, 0.0_f64), |(l, h), t| (l.min(t), h.max(t)));
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 16))
            .margin(14)
            .x_label_area_size(36)
            .y_label_area_size(70)
            .build_cartesian_2d(
                (0.9 * first..1.1 * last).log_scale(),
                (0.5 * low..30.0 * high).log_scale(),
            )?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(what)
            .y_desc("factor and solve [ms]")
            .x_label_formatter(&labels)
            .y_label_formatter(&labels)
            .draw()?;
        for (i, colour) in [BLUE, RED, ORANGE_LINE].into_iter().enumerate() {
            let line = times.iter().map(|(size, t)| (*size as f64, t[i].0));
            chart
                .draw_series(LineSeries::new(line.clone(), colour.stroke_width(2)))?
                .label(NAMES[i])
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2))
                });
            chart.draw_series(line.map(|at| Circle::new(at, 3, colour.filled())))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE)
            .draw()?;
    }
    root.present()?;
    Ok(())
}

const GRAY_LINE: RGBColor = RGBColor(150, 150, 150);
const ORANGE_LINE: RGBColor = RGBColor(220, 130, 0);
