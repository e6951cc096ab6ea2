//! Steps with contacts: one that cannot be solved, and derivatives.

mod corners;
mod cylinders;
mod derivative;
pub(in crate::integrator) use derivative::scenes::scenes;
mod rims;
mod solids;
mod stack;

use super::{Maximal, Options, Work};
use crate::contact::ContactOptions;
use crate::dynamics::{Knot, Start, Step, StepError, StepFailure, StepStats, request_stop};
use crate::mechanism::{BodySpec, ContactSpec, HalfSpaceSpec, MechanismBuilder, Shape};

pub(super) struct Run {
    pub system: Maximal,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub w: Work,
    pub h: f64,
    pub k: usize,
    pub u: Vec<f64>,
    pub stats: StepStats,
}

impl Run {
    pub fn new(b: &MechanismBuilder, q: &[f64], rates: &[f64], h: f64, options: Options) -> Self {
        let m = b.build().expect("a mechanism");
        let system = Maximal::new(m, q, options).expect("a system");
        let d = Step::dims(&system);
        let mut w = Step::work(&system);
        let mut x = vec![0.0; d.nx];
        system
            .initial(&Start::at_rates(q, rates), &system.nominal, &mut w, &mut x)
            .expect("a start");
        Self {
            system,
            x,
            y: vec![0.0; d.ny],
            w,
            h,
            k: 0,
            u: vec![0.0; d.nu],
            stats: StepStats::default(),
        }
    }

    pub fn at(&self) -> Knot {
        Knot {
            k: self.k,
            t: self.k as f64 * self.h,
            h_prev: if self.k == 0 { 0.0 } else { self.h },
            h: self.h,
        }
    }

    pub fn step(&mut self) {
        self.try_step().unwrap_or_else(|e| panic!("{e}"));
    }

    pub fn try_step(&mut self) -> Result<(), StepError> {
        let at = self.at();
        let mut next = self.x.clone();
        self.stats = self.system.step(
            &at,
            &self.x,
            &self.u,
            &self.system.nominal,
            &mut self.w,
            &mut next,
            &mut self.y,
        )?;
        self.x = next;
        self.k += 1;
        Ok(())
    }
}

/// A box on the ground that spins too fast for an interval ten times as long as the one before, and one that lies there:
/// what the step of each comes to, and the iterations it takes.
fn steps(max_iterations: usize) -> [(Result<StepStats, StepError>, usize); 2] {
    let body = BodySpec::new(1.0)
        .shape(Shape::Box([0.2, 0.3, 0.4]))
        .contact("corners", ContactSpec::new(0.5))
        .free();
    let builder = MechanismBuilder::new()
        .half_space("ground", HalfSpaceSpec::default())
        .body("box", body);
    let mut options = Options::default();
    options.contact.max_iterations = max_iterations;
    [60.0, 0.0].map(|spin| {
        let (q, rates) = (
            [0.0, 0.0, 0.2, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, spin, 0.5 * spin, 0.0],
        );
        let mut run = Run::new(&builder, &q, &rates, 0.1, options);
        let at = Knot {
            k: 1,
            t: 0.01,
            h_prev: 0.01,
            h: 0.1,
        };
        let mut next = run.x.clone();
        let (s, p) = (&run.system, &[]);
        let done = s.step(&at, &run.x, &[], p, &mut run.w, &mut next, &mut run.y);
        (done, run.w.contacts.spent())
    })
}

#[test]
fn a_step_takes_no_more_iterations_than_it_may() {
    let [(unsolvable, spent), (rests, few)] = steps(ContactOptions::MAX_ITERATIONS);
    let error = unsolvable.expect_err("no solution");
    println!("{spent} and {few} iterations: {error}");
    assert!(spent > 100 && spent <= ContactOptions::MAX_ITERATIONS);
    // it turns by 6 rad in its step
    assert_eq!(error.element, "body `box`");
    assert!(error.message.contains("turns"), "{error}");
    assert_eq!(rests.expect("solved").iterations, few);
    assert!(few < 20);
    let [(unsolvable, spent), (rests, same)] = steps(100);
    let error = unsolvable.expect_err("no solution");
    assert_eq!(spent, 100);
    assert_eq!(error.element, "body `box`");
    assert!(error.message.contains("turns"), "{error}");
    assert!(rests.is_ok() && same == few);
}

/// A box that friction holds on a slope, from unknowns that solve its step without a central path: neither a gap nor slip where
/// it touches, no impulse where it does not. What friction there is these alone say.
#[test]
fn a_step_whose_unknowns_are_known_begins_there() {
    let body = BodySpec::new(1.0)
        .shape(Shape::Box([0.2, 0.3, 0.4]))
        .contact("corners", ContactSpec::new(0.5))
        .free();
    let builder = MechanismBuilder::new()
        .gravity([3.0, 1.0, -9.81])
        .half_space("ground", HalfSpaceSpec::default())
        .body("box", body);
    let q = [0.0, 0.0, 0.2, 0.0, 0.0, 0.0];
    let mut run = Run::new(&builder, &q, &[0.0; 6], 0.05, Options::default());
    (0..3).for_each(|_| run.step());
    let (at, x) = (run.at(), run.x.clone());
    run.step();
    let held: f64 = run.y[6..].chunks(5).map(|c| c[3].hypot(c[4])).sum();
    assert!(held > 0.1, "friction holds it: {held}");
    let mut y = run.y.clone();
    // known, and nothing but rounding
    y[..6].copy_from_slice(&[0.0, 0.0, 1e-14, 0.0, 0.0, 0.0]);
    for c in y[6..].chunks_mut(5) {
        let touches = c[1] > c[0];
        let zero: &[usize] = if touches { &[0, 2] } else { &[1, 2, 3, 4] };
        zero.iter().for_each(|i| c[*i] = 0.0);
    }
    let (s, p, mut next) = (&run.system, &run.system.nominal, x.clone());
    let stats = s.step(&at, &x, &[], p, &mut run.w, &mut next, &mut y);
    let stats = stats.expect("solved");
    println!("{} iterations", stats.iterations);
    assert!(stats.iterations <= 2 && stats.restarts == 0, "{stats:?}");
    for (a, b) in next.iter().zip(&run.x) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
}

/// In a process of its own: the request is one for the whole process.
#[test]
fn a_stop_request_ends_a_long_step() {
    let name = format!("{}::stopped", module_path!());
    let (_, name) = name.split_once("::").expect("a module of the crate");
    let test = std::env::current_exe().expect("this program");
    let out = std::process::Command::new(test)
        .args(["--exact", name, "--ignored"])
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "called by a_stop_request_ends_a_long_step"]
fn stopped() {
    request_stop();
    let [(unsolvable, spent), (rests, _)] = steps(ContactOptions::MAX_ITERATIONS);
    assert_eq!(
        unsolvable.expect_err("stopped").failure,
        StepFailure::Stopped
    );
    assert_eq!(spent, Options::default().max_iterations);
    // what is soon done is done: it may still be looked at
    assert!(rests.is_ok());
}
