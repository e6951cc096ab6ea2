//! The arm of `problems/arm_mpc.toml` under receding-horizon control, its real system simulated beside: pushed, and with other masses
//! than its model.

use least_action::dynamics::{Knot, Observe, QuantityId, Step};
use least_action::format::{self, Model, Overrides};
use least_action::integrator::Mechanical;
use least_action::optimize::{RecedingHorizon, receding};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// What the real arm has beside the model's: forces at its forearm; and its masses are parameters.
const REAL: &str = r#"
[mechanism.actuators.push_x]
body = "forearm"
force = [1.0, 0.0, 0.0]

[mechanism.actuators.push_y]
body = "forearm"
force = [0.0, 1.0, 0.0]

[mechanism.actuators.push_z]
body = "forearm"
force = [0.0, 0.0, 1.0]
"#;

/// How a push goes on, and how long it is until the next, s.
const PUSH: f64 = 0.1;
const PAUSE: f64 = 1.5;

/// A run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Steps from tick to tick.
    pub every: usize,
    /// Does the plan's feedback act between ticks?
    pub feedback: bool,
    /// The real masses by those of the model.
    pub masses: f64,
    /// Root mean square of each component of the pushes, N.
    pub push: f64,
    /// s
    pub seconds: f64,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            every: 3,
            feedback: true,
            masses: 1.0,
            push: 0.0,
            seconds: 6.0,
        }
    }
}

/// What came of it, knot by knot.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    pub times: Vec<f64>,
    /// m
    pub target: Vec<[f64; 3]>,
    pub hand: Vec<[f64; 3]>,
    /// Of the hand from the target, m.
    pub error: Vec<f64>,
    /// Of every tick.
    pub ticks: Vec<Duration>,
    pub failures: usize,
}

impl Followed {
    /// Root mean square of the error, m.
    pub fn rms_error(&self) -> f64 {
        (self.error.iter().map(|e| e * e).sum::<f64>() / self.error.len() as f64).sqrt()
    }
}

/// Masses times a factor, as tables of parameters.
fn weighed(model: &Model, factor: f64) -> String {
    let bodies = model.system.mechanism().bodies.iter();
    let of = |b: &least_action::mechanism::Body| {
        let (name, value) = (&b.name, b.mass * factor);
        format!(
            "\n[parameters.{name}_mass]\nof = \"bodies.{name}.mass\"\nvalue = {value}\nfixed = true\n"
        )
    };
    bodies.map(of).collect()
}

/// Runs the arm from where its hand is on the ellipse.
///
/// # Errors
/// Where the file cannot be read, and where the real arm cannot be simulated.
pub fn follow(run: Run) -> Result<Followed, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("problems/arm_mpc.toml");
    let text = std::fs::read_to_string(&path)?;
    let document = format::parse(&text, &path)?;
    let model = document.build(&Overrides::default())?;
    // the same over the whole run and the last window: what varies of the targets there
    let window: f64 = model.problem.intervals.iter().sum();
    let horizon = |line: &str| match line.starts_with("horizon =") {
        true => format!("horizon = {:?}\n", run.seconds + window),
        false => format!("{line}\n"),
    };
    let whole: String = text.lines().map(horizon).collect();
    let course = format::parse(&whole, &path)?.build(&Overrides::default())?;
    let real = text + REAL + &weighed(&model, run.masses);
    let real = format::parse(&real, &path)?.build(&Overrides::default())?;

    let (system, h) = (&model.system, model.problem.intervals[0]);
    let controller =
        RecedingHorizon::new(system, model.problem.clone(), receding::Options::default())?;
    let mut controller = controller.with_profiles(course.problem.profiles.clone())?;
    let hand: Vec<QuantityId> = model.problem.costs[..3]
        .iter()
        .map(|c| c.quantity)
        .collect();

    let d = real.system.dims();
    let (mut w, mut eye) = (real.system.work(), system.work());
    let p = &real.problem.parameters;
    let mut x = real.problem.start(&real.system, p, &mut w)?;
    let (mut next, mut y, mut u) = (x.clone(), vec![0.0; d.ny], vec![0.0; d.nu]);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut out, mut planned) = (
        Followed::default(),
        Knot {
            k: 0,
            t: 0.0,
            h_prev: 0.0,
            h,
        },
    );
    let steps = course.problem.intervals.len() - model.problem.intervals.len();
    for k in 0..=steps {
        let at = Knot {
            k,
            t: k as f64 * h,
            h_prev: if k == 0 { 0.0 } else { h },
            h,
        };
        // the real system has the pushes as additional controls; they follow the motors, in its state as well
        let motors = system.dims().nu;
        let own = &x[..system.dims().nx];
        if k % run.every == 0 {
            let start = Instant::now();
            let tick = controller.tick(&at, own);
            out.ticks.push(start.elapsed());
            out.failures += usize::from(tick.failure.is_some());
            planned = at;
        }
        if run.feedback || k == planned.k {
            controller.control(&at, own, &mut u[..motors]);
        } else {
            u[..motors].copy_from_slice(controller.plan().control(k - planned.k));
        }
        if run.push > 0.0 {
            push(&mut u[motors..], at.t, h, run.push, &mut random);
        }
        let mut seen = [0.0; 3];
        let knot = least_action::dynamics::KnotPoint {
            at,
            x: own,
            u: &u[..motors],
            p: &[],
            y: &[],
        };
        system.observe(&knot, &hand, &mut eye, &mut seen)?;
        let target = [0, 1, 2].map(|i| course.problem.target(&course.problem.costs[i], k));
        let error: f64 = (0..3).map(|i| (seen[i] - target[i]).powi(2)).sum();
        out.times.push(at.t);
        out.target.push(target);
        out.hand.push(seen);
        out.error.push(error.sqrt());
        if k < steps {
            let system = &real.system;
            system.step(&at, &x, &u, p, &mut w, &mut next, &mut y)?;
            x.copy_from_slice(&next);
        }
    }
    Ok(out)
}

/// A force of random direction for a while, then none.
fn push(force: &mut [f64], t: f64, h: f64, size: f64, random: &mut Xoshiro256PlusPlus) {
    let phase = t % PAUSE;
    if phase >= PUSH {
        force.fill(0.0);
    } else if phase < h {
        for f in force {
            let normal: f64 = StandardNormal.sample(random);
            *f = size * normal;
        }
    }
}
