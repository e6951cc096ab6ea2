//! Contact and friction against closed forms, and what the solver of a step must reach.

use crate::drops;
mod books;
mod borders;
mod bounces;
mod capsules;
mod chains;
mod cylinders;
mod fields;
mod flight;
mod impacts;
mod oblique;
mod passage;
mod pyramid;
mod random;
mod rest;
mod rods;
mod rolling;
mod rough;
mod seams;
mod separation;
mod slide;
mod solids;
mod thin;

use least_action::dynamics::{Knot, Step, StepStats};
use least_action::format::{self, Overrides};
use least_action::integrator::Cone;
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, Mechanism, MechanismBuilder, Shape,
};
use least_action::rollout::{RolloutStats, Trajectory};
use least_action::spatial::{Pose, Vec3};

/// A free body of a shape above ground with a normal.
pub fn on_ground(shape: Shape, mass: f64, mu: f64, normal: Vec3) -> MechanismBuilder {
    let body = BodySpec::new(mass)
        .shape(shape)
        .free()
        .contact("all", ContactSpec::new(mu));
    let ground = HalfSpaceSpec {
        normal: normal.into(),
        ..HalfSpaceSpec::default()
    };
    MechanismBuilder::new()
        .body("body", body)
        .half_space("ground", ground)
}

/// A solid of the world in a file.
fn terrain(name: &str, shape: &str, position: [f64; 3], friction: f64) -> String {
    format!(
        "[mechanism.terrain.{name}]\nshape = {shape}\nposition = {position:?}\nfriction = {friction:?}\n"
    )
}

/// A scene whose contacts `c` bounce, at knots or at the instants of impacts, with automatic substeps.
fn bouncing(text: &str, seed: u64) -> String {
    let restitution = [0.2, 0.6, 0.9][seed as usize % 3];
    let impacts = ["knots", "aligned"][seed as usize / 3 % 2];
    let contacts = format!("contacts.c = {{ restitution = {restitution}, ");
    let elastic = text.replace("contacts.c = { ", &contacts);
    assert_ne!(elastic, text, "a scene with contacts `c`");
    let divided = "integrator = { name = \"maximal\", substeps = \"auto\" }";
    let divided = ["maximal", "minimal"].iter().fold(elastic, |text, name| {
        text.replace(&format!("integrator = \"{name}\""), divided)
    });
    divided + &format!("[contact]\nimpacts = \"{impacts}\"\n")
}

/// The mechanism of a file and the poses of its bodies at every knot, or why a step has no solution.
fn motion(text: &str) -> Result<(Mechanism, Vec<Vec<Pose>>), String> {
    let document = format::parse(text, "motion.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let model = document.build(&Overrides::default());
    let model = model.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (s, p) = (&model.system, &model.problem);
    let extended = model.extended();
    let x0 = p.start(&extended, &p.parameters, &mut extended.work());
    let x0 = x0.expect("a start");
    let mut t = Trajectory::new(s, p.intervals.clone(), &x0[..s.dims().nx]);
    t.roll(s, &mut s.work(), &mut RolloutStats::default())
        .map_err(|e| e.to_string())?;
    let knots = (0..=p.intervals.len()).map(|k| s.poses(t.state(k)));
    Ok((s.mechanism().clone(), knots.collect()))
}

/// Fails with all cases that went wrong.
fn none_failed(failed: &[String]) {
    let count = failed.len();
    assert!(failed.is_empty(), "{count} cases: {failed:#?}");
}

/// A cone of friction, started from the step before or not.
pub fn options(cone: Cone, warm: bool) -> Options {
    let mut options = Options::default();
    (options.contact.cone, options.contact.warm) = (cone, warm);
    options
}

/// Steps of equal length.
pub struct Sim {
    pub system: Maximal,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub h: f64,
    pub stats: StepStats,
    pub w: <Maximal as Step>::Work,
    k: usize,
}

impl Sim {
    pub fn of(system: Maximal, x: Vec<f64>, h: f64) -> Self {
        Self {
            w: system.work(),
            y: vec![0.0; system.dims().ny],
            system,
            x,
            h,
            stats: StepStats::default(),
            k: 0,
        }
    }

    pub fn new(b: &MechanismBuilder, q: &[f64], rates: &[f64], h: f64, options: Options) -> Self {
        let m = b.build().expect("valid");
        let system = Maximal::new(m, q, options).expect("closes");
        let x = system
            .start(q, rates, &vec![true; q.len()])
            .expect("a start");
        Self::of(system, x, h)
    }

    /// Where the next step starts.
    pub fn knot(&self) -> Knot {
        Knot {
            k: self.k,
            t: self.k as f64 * self.h,
            h_prev: if self.k == 0 { 0.0 } else { self.h },
            h: self.h,
        }
    }

    pub fn step(&mut self) {
        let at = self.knot();
        let mut next = self.x.clone();
        self.stats = self
            .system
            .step(&at, &self.x, &[], &[], &mut self.w, &mut next, &mut self.y)
            .unwrap_or_else(|e| panic!("step {}: {e}", self.k));
        self.x = next;
        self.k += 1;
    }

    pub fn run(&mut self, seconds: f64) {
        for _ in 0..(seconds / self.h).round() as usize {
            self.step();
        }
    }

    /// Center, velocity and angular velocity (of the interval before) of the first body.
    pub fn body(&self) -> [Vec3; 3] {
        [0, 7, 10].map(|i| Vec3::from_column_slice(&self.x[i..i + 3]))
    }

    pub fn lowest(&self) -> f64 {
        drops::lowest(self.system.mechanism(), &self.system.poses(&self.x))
    }

    /// Normal impulses of the last step, N s, those of blows included.
    pub fn impulses(&self) -> impl Iterator<Item = f64> {
        let own = &self.y[self.system.symbolic().dim()..];
        let m = self.system.mechanism();
        let elastic = m.contacts.iter().any(|c| m.restitution(c) > 0.0);
        // five numbers of every contact at the end, where steps exchange none
        let blows = own.len() - if elastic { 5 * m.contacts.len() } else { 0 };
        m.contacts.iter().enumerate().map(move |(i, c)| {
            let blow = own.get(blows + 5 * i + 1).copied().unwrap_or(0.0);
            c.effective_mass * (own[5 * i + 1] + blow)
        })
    }
}
