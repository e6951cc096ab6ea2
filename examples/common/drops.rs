//! Random mechanisms dropped on tilted ground from up to half a metre: boxes, ball-jointed chains of spheres and boxes,
//! four-legged walkers. Joints are damped: without, links whip faster than the longer time steps resolve.

use least_action::dynamics::{Knot, Step, StepError, StepFailure, StepStats};
use least_action::integrator::{Choice, Cone, Mechanical, Options, Substeps, System};
use least_action::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, Mechanism, MechanismBuilder, Shape,
};
use least_action::spatial::{Pose, Vec3, exp};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

/// What a drop is drawn from.
struct Source(Xoshiro256PlusPlus);

impl Source {
    /// Uniform between two numbers.
    fn between(&mut self, a: f64, b: f64) -> f64 {
        self.0.random_range(a..=b)
    }

    /// Its logarithm is uniform.
    fn scale(&mut self, a: f64, b: f64) -> f64 {
        self.between(a.ln(), b.ln()).exp()
    }

    /// A vector in the ball of radius `r`.
    fn vector(&mut self, r: f64) -> Vec3 {
        loop {
            let v = Vec3::from_fn(|_, _| self.between(-1.0, 1.0));
            if v.norm() <= 1.0 {
                return r * v;
            }
        }
    }

    fn edges(&mut self, size: f64) -> [f64; 3] {
        [0.0; 3].map(|_| size * self.between(0.3, 1.3))
    }
}

/// How it is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    pub cone: Cone,
    /// Without dampers in joints.
    pub undamped: bool,
    /// With steps in as many parts as they ask for.
    pub divided: bool,
    /// What steps; the one taken by default, if none.
    pub integrator: Option<&'static str>,
}

/// What is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Box,
    Chain,
    Walker,
}

/// A mechanism above the ground.
#[derive(Debug)]
pub struct Drop {
    pub kind: Kind,
    pub warm: bool,
    /// s
    pub h: f64,
    pub friction: f64,
    /// kg
    pub mass: f64,
    /// m
    pub size: f64,
    pub system: System,
    pub x: Vec<f64>,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub kind: Kind,
    pub warm: bool,
    /// Of every step that was solved.
    pub stats: Vec<StepStats>,
    /// m
    pub lowest: f64,
    pub failure: Option<StepError>,
    pub end: Vec<f64>,
}

/// Smallest gap of any contact where bodies are, m.
pub fn lowest(m: &Mechanism, poses: &[Pose]) -> f64 {
    let gaps = m.contacts.iter().map(|c| m.touch(c, poses).gap);
    gaps.fold(f64::INFINITY, f64::min)
}

fn chain(
    s: &mut Source,
    mut m: MechanismBuilder,
    size: f64,
    mass: f64,
    (mu, damps): (f64, f64),
) -> MechanismBuilder {
    let (n, radius) = (2 + s.0.random_range(0..8), 0.25 * size);
    for i in 0..n {
        let shape = if s.between(0.0, 1.0) < 0.5 {
            Shape::Sphere(radius)
        } else {
            Shape::Box([2.0, 1.5, 1.0].map(|e| e * radius))
        };
        let mut body = BodySpec::new(mass * s.between(0.5, 1.5))
            .shape(shape)
            .contact("all", ContactSpec::new(mu));
        if i == 0 {
            body = body.free();
        } else {
            let joint = JointSpec::new(JointKind::Spherical, &format!("link{i}"))
                .parent(&format!("link{}", i - 1))
                .damping(damps * mass * size * size)
                .anchors([0.5 * size, 0.0, 0.0], [-0.5 * size, 0.0, 0.0]);
            m = m.joint(&format!("ball{i}"), joint);
        }
        m = m.body(&format!("link{i}"), body);
    }
    m
}

/// A trunk on four legs of two links with spheres for feet; nothing drives the hinges.
fn walker(
    mut m: MechanismBuilder,
    size: f64,
    mass: f64,
    (mu, damps): (f64, f64),
) -> MechanismBuilder {
    let touch = ContactSpec::new(mu);
    let trunk = BodySpec::new(0.6 * mass)
        .shape(Shape::Box([1.0, 0.5, 0.2].map(|e| e * size)))
        .contact("corners", touch.clone())
        .free();
    m = m.body("trunk", trunk);
    let half = 0.2 * size;
    let link = Shape::Box([0.06 * size, 0.06 * size, 2.0 * half]);
    for (i, (x, y)) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]
        .into_iter()
        .enumerate()
    {
        let (thigh, shank) = (format!("thigh{i}"), format!("shank{i}"));
        let foot = touch
            .clone()
            .shape(Shape::Sphere(0.05 * size))
            .at([0.0, 0.0, -half]);
        let hinge = |of: &str, on: &str, at| {
            JointSpec::new(JointKind::Revolute, of)
                .parent(on)
                .axis([0.0, 1.0, 0.0])
                .damping(0.3 * damps * mass * size * size)
                .anchors(at, [0.0, 0.0, half])
        };
        m = m
            .body(&thigh, BodySpec::new(0.07 * mass).shape(link))
            .body(
                &shank,
                BodySpec::new(0.03 * mass).shape(link).contact("foot", foot),
            )
            .joint(
                &format!("hip{i}"),
                hinge(&thigh, "trunk", [0.4 * x * size, 0.3 * y * size, 0.0]),
            )
            .joint(
                &format!("knee{i}"),
                hinge(&shank, &thigh, [0.0, 0.0, -half]),
            );
    }
    m
}

impl Drop {
    /// The drop of a seed, thrown downwards at `speed`, m/s.
    pub fn new(seed: u64, setup: &Setup, speed: f64) -> Self {
        let damps = if setup.undamped { 0.0 } else { 1.0 };
        let s = &mut Source(Xoshiro256PlusPlus::seed_from_u64(seed));
        let kind = [Kind::Box, Kind::Box, Kind::Chain, Kind::Walker][s.0.random_range(0..4)];
        let warm = s.between(0.0, 1.0) < 0.5;
        let h = s.scale(0.001, 0.05);
        let friction = s.between(0.0, 1.5);
        let mass = s.scale(0.01, 100.0);
        // links that whirl turn too far in a long step
        let least = if kind == Kind::Box {
            0.05
        } else {
            f64::max(0.05, 20.0 * h)
        };
        let size = s.scale(least, f64::max(1.0, 1.5 * least));
        let tilt = exp(&(0.3 * Vec3::new(s.between(-1.0, 1.0), s.between(-1.0, 1.0), 0.0)));
        let normal = tilt * Vec3::z();
        let ground = HalfSpaceSpec {
            normal: normal.into(),
            ..HalfSpaceSpec::default()
        };
        let m = MechanismBuilder::new().half_space("ground", ground);
        let (root, builder) = match kind {
            Kind::Box => {
                let body = BodySpec::new(mass)
                    .shape(Shape::Box(s.edges(size)))
                    .contact("corners", ContactSpec::new(friction))
                    .free();
                ("box", m.body("box", body))
            }
            Kind::Chain => ("link0", chain(s, m, size, mass, (friction, damps))),
            Kind::Walker => ("trunk", walker(m, size, mass, (friction, damps))),
        };
        let mechanism = builder.build().expect("a mechanism");
        let free = mechanism.joint(root).expect("a free body");
        // the far end of a long chain is fast
        let count = mechanism.bodies.len() as f64;
        let fastest = if count > 1.0 {
            f64::min(10.0, 3.0 / (size * count))
        } else {
            10.0
        };
        let (turn, spin) = (s.vector(3.0), s.vector(f64::min(fastest, 0.4 / h)));
        let (way, height) = (s.vector(3.0), f64::min(size, 0.5) * s.between(0.0, 1.0));
        let joints = f64::min(1.0, 0.05 / h);
        let (mut q, mut rates) = (vec![], vec![]);
        for (joint, i) in mechanism.tree_ids() {
            let (angle, rate) = match i {
                _ if joint != free => (s.between(-0.7, 0.7), joints * s.between(-1.0, 1.0)),
                0..3 => (0.0, way[i]),
                _ => (turn[i - 3], spin[i - 3]),
            };
            q.push(angle);
            rates.push(rate);
        }
        let mut options = Options::default();
        (options.contact.cone, options.contact.warm) = (setup.cone, warm);
        let substeps = if setup.divided {
            Substeps::Auto
        } else {
            Substeps::One
        };
        let choice = Choice::new(setup.integrator.unwrap_or("auto"), None).expect("an integrator");
        let choice = choice.in_parts(substeps);
        // the free body comes first
        let up = normal * (height - lowest(&mechanism, &mechanism.forward(&q)));
        (0..3).for_each(|i| q[i] += up[i]);
        rates[2] -= speed;
        let system = System::new(choice, mechanism, &q, options).expect("a system");
        let x = system
            .start(&q, &rates, &vec![true; q.len()])
            .expect("a start");
        Self {
            kind,
            warm,
            h,
            friction,
            mass,
            size,
            system,
            x,
        }
    }

    /// Falls for 1.5 s, or 600 steps.
    pub fn run(&self) -> Outcome {
        let (s, h) = (&self.system, self.h);
        let steps = ((1.5 / h) as usize).min(600);
        let (mut w, mut y) = (s.work(), vec![0.0; s.dims().ny]);
        let (mut x, mut next) = (self.x.clone(), self.x.clone());
        let mut out = Outcome {
            kind: self.kind,
            warm: self.warm,
            stats: Vec::with_capacity(steps),
            lowest: f64::INFINITY,
            failure: None,
            end: vec![],
        };
        for k in 0..steps {
            let at = Knot {
                k,
                t: k as f64 * h,
                h_prev: if k == 0 { 0.0 } else { h },
                h,
            };
            match s.step(&at, &x, &[], &[], &mut w, &mut next, &mut y) {
                Ok(stats) => out.stats.push(stats),
                Err(e) => {
                    out.failure = Some(e);
                    break;
                }
            }
            std::mem::swap(&mut x, &mut next);
            let lowest = lowest(s.mechanism(), &s.poses(&x));
            out.lowest = if lowest.is_nan() {
                lowest
            } else {
                out.lowest.min(lowest)
            };
        }
        out.end = x;
        out
    }
}

/// The drops of these seeds, faster downwards by `speed`, m/s.
pub fn outcomes(seeds: std::ops::Range<u64>, setup: &Setup, speed: f64) -> Vec<Outcome> {
    let run = |s| Drop::new(s, setup, speed).run();
    seeds.into_par_iter().map(run).collect()
}

/// What many drops amount to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub drops: usize,
    pub steps: usize,
    /// Drops with a step that could not be solved, and those among them where a body turned too far.
    pub unsolved: usize,
    pub domain: usize,
    /// Steps.
    pub rounded: usize,
    pub restarted: usize,
    /// Solved neither from the first start nor from a cold one.
    pub slow: usize,
    pub fallbacks: usize,
    /// Of all steps, ascending.
    pub iterations: Vec<usize>,
    pub residual: f64,
    pub turn: f64,
    pub lowest: f64,
}

impl Summary {
    pub fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Self {
        let mut s = Self {
            lowest: f64::INFINITY,
            ..Self::default()
        };
        for o in outcomes {
            s.drops += 1;
            s.steps += o.stats.len();
            let failed = o.failure.as_ref();
            s.unsolved += usize::from(failed.is_some());
            s.domain += usize::from(failed.is_some_and(|e| e.failure == StepFailure::Domain));
            s.lowest = if o.lowest.is_nan() {
                o.lowest
            } else {
                s.lowest.min(o.lowest)
            };
            for t in &o.stats {
                s.rounded += t.rounded;
                s.restarted += usize::from(t.restarts > 0);
                s.slow += usize::from(t.restarts > usize::from(o.warm));
                s.fallbacks += t.fallbacks;
                s.residual = s.residual.max(t.residual);
                s.turn = s.turn.max(t.turn);
                // of each part
                s.iterations.push(t.iterations / t.parts.max(1));
            }
        }
        s.iterations.sort_unstable();
        s
    }

    /// The iterations that a share of the steps needs at most.
    pub fn quantile(&self, share: f64) -> usize {
        let last = self.iterations.len().saturating_sub(1);
        let i = (share * last as f64) as usize;
        self.iterations.get(i).copied().unwrap_or(0)
    }

    pub const HEAD: &str = "drops    steps  unsolved  domain  rounded  restarted  slow  general  median  mean  p99   max  residual    turn    lowest";
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:5}  {:7}  {:8}  {:6}  {:7}  {:9}  {:4}  {:7}  {:6}  {:4.1}  {:3}  {:4}  {:8.1e}  {:6.2}  {:8.1e}",
            self.drops,
            self.steps,
            self.unsolved,
            self.domain,
            self.rounded,
            self.restarted,
            self.slow,
            self.fallbacks,
            self.quantile(0.5),
            self.iterations.iter().sum::<usize>() as f64 / self.steps.max(1) as f64,
            self.quantile(0.99),
            self.quantile(1.0),
            self.residual,
            self.turn,
            self.lowest,
        )
    }
}
