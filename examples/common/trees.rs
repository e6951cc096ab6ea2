//! Random trees over a floor: one to eight bodies of 10 g to 10 kg, joints of every kind, springs, dampers, limits, joint friction,
//! and shapes that touch the floor.

use crate::drops::lowest;
use least_action::dynamics::{Step, StepError, StepFailure};
use least_action::integrator::{Choice, Mechanical, Options, Substeps, System};
use least_action::mechanism::{
    BodySpec, ContactSpec, Freedom, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Shape,
};
use least_action::rollout::{Balance, RolloutStats, Trajectory, balance};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Time step, s, and how many of them make one second.
pub const STEP: f64 = 0.01;
pub const STEPS: usize = 100;
/// Both integrators.
pub const BOTH: [&str; 2] = ["minimal", "maximal"];

/// Shapes of the bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shapes {
    /// Spheres, boxes and capsules.
    Without,
    /// Cylinders as well.
    WithCylinders,
}

/// A random tree and its start.
#[derive(Clone, Debug)]
pub struct Tree {
    pub builder: MechanismBuilder,
    pub q: Vec<f64>,
    pub rates: Vec<f64>,
}

/// How a tree moved.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub failure: Option<StepError>,
    /// Deepest overlap at any knot, m.
    pub deepest: f64,
    pub stats: RolloutStats,
    /// Largest energy error and largest energy exchanged, J.
    pub energy: [f64; 2],
    /// The knot at which energy grew without work.
    pub grew: Option<usize>,
}

/// Random numbers of a seed.
pub struct Source(Xoshiro256PlusPlus);

impl Source {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub fn between(&mut self, a: f64, b: f64) -> f64 {
        self.0.random_range(a..=b)
    }

    /// Its logarithm is uniform.
    fn scale(&mut self, a: f64, b: f64) -> f64 {
        self.between(a.ln(), b.ln()).exp()
    }

    fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    fn is(&mut self, probability: f64) -> bool {
        self.between(0.0, 1.0) < probability
    }

    fn within(&mut self, size: f64) -> [f64; 3] {
        [0.0; 3].map(|_| self.between(-size, size))
    }
}

impl Tree {
    /// The tree of a seed, of spheres, boxes and capsules.
    pub fn new(seed: u64) -> Self {
        Self::of(seed, Shapes::Without)
    }

    /// The tree of a seed.
    pub fn of(seed: u64, shapes: Shapes) -> Self {
        let s = &mut Source::new(seed);
        let count = 1 + s.below(8);
        // its height follows from the bodies
        let mut builder = MechanismBuilder::new().half_space("floor", HalfSpaceSpec::default());
        for i in 0..count {
            let (mass, size) = (s.scale(0.01, 10.0), s.scale(0.05, 0.3));
            let kinds = match shapes {
                Shapes::Without => 3,
                Shapes::WithCylinders => 4,
            };
            let shape = match s.below(kinds) {
                0 => Shape::Sphere(0.5 * size),
                1 => Shape::Box([0.0; 3].map(|_| size * s.between(0.3, 1.0))),
                2 => Shape::Capsule {
                    radius: 0.2 * size,
                    length: size,
                },
                _ => Shape::Cylinder {
                    radius: 0.3 * size,
                    length: size,
                },
            };
            let mut body = BodySpec::new(mass).shape(shape);
            if s.is(0.6) {
                body = body.contact("skin", ContactSpec::new(s.between(0.0, 1.0)));
            }
            let child = format!("b{i}");
            let is_free = i == 0 && s.is(0.5);
            builder = builder.body(&child, if is_free { body.free() } else { body });
            if is_free {
                continue;
            }
            let parent = if i == 0 {
                "world".into()
            } else {
                format!("b{}", s.below(i))
            };
            let kind = JointKind::ALL[s.below(JointKind::ALL.len())];
            builder = builder.joint(&format!("j{i}"), joint(s, kind, &parent, &child, size));
        }
        builder = with_limits(s, builder);
        let probe = builder.build().expect("a tree over a floor");
        let (mut q, mut rates) = (vec![], vec![]);
        for _ in probe.tree_ids() {
            q.push(s.between(-0.3, 0.3));
            rates.push(s.between(-1.0, 1.0));
        }
        // the floor lies below all bodies
        let clearance = s.between(0.01, 0.3);
        let gap = lowest(&probe, &probe.forward(&q));
        let floor = HalfSpaceSpec {
            offset: if gap.is_finite() {
                gap - clearance
            } else {
                0.0
            },
            ..HalfSpaceSpec::default()
        };
        Self {
            builder: builder.half_space("floor", floor),
            q,
            rates,
        }
    }

    /// The system of an integrator.
    pub fn system(&self, integrator: &str, substeps: Substeps) -> System {
        let choice = Choice::new(integrator, None).expect("an integrator");
        let mechanism = self.builder.build().expect("a tree");
        let choice = choice.in_parts(substeps);
        System::new(choice, mechanism, &self.q, Options::default()).expect("a tree")
    }

    /// Moves for a second.
    pub fn run(&self, integrator: &str) -> Outcome {
        self.run_with(integrator, (STEP, STEPS), Substeps::Auto)
    }

    /// Simulates `steps` steps of length `h`.
    pub fn run_with(
        &self,
        integrator: &str,
        (h, steps): (f64, usize),
        substeps: Substeps,
    ) -> Outcome {
        let s = self.system(integrator, substeps);
        let held = vec![true; self.q.len()];
        let mut out = Outcome {
            failure: None,
            deepest: 0.0,
            stats: RolloutStats::default(),
            energy: [0.0; 2],
            grew: None,
        };
        let x = match s.start(&self.q, &self.rates, &held) {
            Ok(x) => x,
            Err(e) => {
                out.failure = Some(StepError::of_callback("start", 0.0, e));
                return out;
            }
        };
        let mut t = Trajectory::new(&s, vec![h; steps], &x);
        let mut w = s.work();
        out.failure = t.roll(&s, &mut w, &mut out.stats).err();
        t.truncate(out.stats.steps);
        match balance(&s, &t, &mut w) {
            Ok(b) => out.weigh(&b),
            Err(e) => out.failure = out.failure.or(Some(e)),
        }
        for k in 0..=t.steps() {
            if let Ok(depth) = s.penetration_with(&t.p, t.state(k), &mut w) {
                out.deepest = out.deepest.max(depth);
            }
        }
        out
    }
}

impl Outcome {
    fn weigh(&mut self, b: &Balance) {
        self.energy = [b.largest_error(), b.largest_exchange()];
        self.grew = b.unexplained().map(|u| u.knot);
    }

    /// Substeps in the mean.
    pub fn substeps(&self) -> f64 {
        self.stats.parts as f64 / self.stats.steps.max(1) as f64
    }

    /// Did the contacts' solver fail?
    pub fn is_unsolved(&self) -> bool {
        let unsolved = |e: &StepError| {
            matches!(
                e.failure,
                StepFailure::NotConverged | StepFailure::Budget | StepFailure::Singular
            )
        };
        self.failure.as_ref().is_some_and(unsolved)
    }
}

fn joint(s: &mut Source, kind: JointKind, parent: &str, child: &str, size: f64) -> JointSpec {
    let mut joint = JointSpec::new(kind, child)
        .parent(parent)
        .anchors(s.within(0.15), s.within(0.5 * size));
    if kind.has_axis() {
        let mut axis = s.within(1.0);
        axis[s.below(3)] += 2.0;
        joint = joint.axis(axis);
    }
    let is_free = !matches!(kind, JointKind::Fixed);
    if is_free && s.is(0.4) {
        joint = joint.spring(s.scale(1.0, 1000.0), 0.0);
    }
    if is_free && s.is(0.5) {
        joint = joint.damping(s.scale(0.01, 1.0));
        joint.implicit = s.is(0.3);
    }
    if is_free && s.is(0.3) {
        joint = joint.friction(s.scale(0.01, 1.0));
    }
    joint
}

/// With limits on half of the joints' slides and angles.
fn with_limits(s: &mut Source, mut builder: MechanismBuilder) -> MechanismBuilder {
    let built = builder.build().expect("a tree");
    for j in &built.joints {
        let named: Vec<_> = (j.directions.iter())
            .filter(|d| d.freedom != Freedom::Turn)
            .map(|d| (d.name, d.freedom))
            .collect();
        let Some(spec) = builder.joints.get_mut(j.name.as_str()) else {
            continue;
        };
        for (name, freedom) in named {
            if s.is(0.5) {
                let most = if freedom == Freedom::Slide { 0.6 } else { 1.5 };
                let (lower, upper) = (-s.between(0.35, most), s.between(0.35, most));
                *spec = spec.clone().limits_of(name, lower, upper);
            }
        }
    }
    builder
}
