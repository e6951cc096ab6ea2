//! Mechanisms and helpers shared by the integration tests. Everything here uses the public interface only.

pub mod case;
pub mod touch;

use least_action::dynamics::StepError;
use least_action::integrator::{Maximal, Mechanical, Options};
use least_action::mechanism::{
    ActuatorSpec, BodySpec, JointKind, JointSpec, MechanismBuilder, Orientation, Shape, SpringSpec,
    WrenchFrame,
};
use least_action::rollout::{RolloutStats, Trajectory};
use least_action::spatial::{Vec3, exp};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub const G: f64 = 9.81;
pub const Y: [f64; 3] = [0.0, 1.0, 0.0];

/// A seeded source of random numbers.
pub struct Source(Xoshiro256PlusPlus);

impl Source {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in [-1, 1].
    pub fn unit(&mut self) -> f64 {
        self.0.random_range(-1.0..=1.0)
    }

    pub fn array3(&mut self) -> [f64; 3] {
        std::array::from_fn(|_| self.unit())
    }

    pub fn vector(&mut self, n: usize, scale: f64) -> Vec<f64> {
        (0..n).map(|_| scale * self.unit()).collect()
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// A body of about a kilogram whose principal axes point anywhere.
    pub fn body(&mut self) -> BodySpec {
        let mut positive = || 0.3 + 0.4 * (1.0 + self.unit());
        let shape = Shape::Box([positive(), positive(), positive()]);
        let mass = 0.5 + positive();
        let r = exp(&Vec3::from(self.array3())).to_rotation_matrix();
        let j = r * shape.inertia(mass) * r.transpose();
        let j = (j + j.transpose()) * 0.5;
        BodySpec::new(mass)
            .inertia_matrix(std::array::from_fn(|i| std::array::from_fn(|k| j[(i, k)])))
    }
}

/// The integrator, solving each step to rounding.
pub fn system(builder: &MechanismBuilder, q: &[f64]) -> Maximal {
    let options = Options {
        tolerance: 1e-13,
        ..Options::default()
    };
    Maximal::new(builder.build().expect("valid"), q, options).expect("closes")
}

/// The integrator and its state at the start.
pub fn start(builder: &MechanismBuilder, q: &[f64], rates: &[f64]) -> (Maximal, Vec<f64>) {
    let s = system(builder, q);
    let x = s.start(q, rates, &vec![true; q.len()]).expect("closes");
    (s, x)
}

/// `n` equal intervals.
pub fn even(seconds: f64, h: f64) -> Vec<f64> {
    vec![h; (seconds / h).round() as usize]
}

/// Simulates under the controls `u(t)`.
pub fn roll(
    s: &impl Mechanical,
    x0: &[f64],
    intervals: Vec<f64>,
    u: impl Fn(f64) -> Vec<f64>,
) -> Result<Trajectory, StepError> {
    let mut t = Trajectory::new(s, intervals, x0);
    let nu = s.dims().nu;
    for k in 0..t.steps() {
        let now = t.knot(k).t;
        t.u[k * nu..(k + 1) * nu].copy_from_slice(&u(now));
    }
    t.roll(s, &mut s.work(), &mut RolloutStats::default())?;
    Ok(t)
}

/// Simulates without controls.
pub fn fall(s: &impl Mechanical, x0: &[f64], seconds: f64, h: f64) -> Trajectory {
    let nu = s.dims().nu;
    roll(s, x0, even(seconds, h), |_| vec![0.0; nu]).expect("solved")
}

/// The classical fourth-order Runge-Kutta method with `n` steps.
pub fn runge_kutta<const N: usize>(
    f: impl Fn(f64, &[f64; N]) -> [f64; N],
    x: [f64; N],
    seconds: f64,
    n: usize,
) -> [f64; N] {
    let h = seconds / n as f64;
    let mut x = x;
    let plus = |x: &[f64; N], d: &[f64; N], s: f64| -> [f64; N] {
        std::array::from_fn(|i| x[i] + s * d[i])
    };
    for k in 0..n {
        let t = k as f64 * h;
        let a = f(t, &x);
        let b = f(t + 0.5 * h, &plus(&x, &a, 0.5 * h));
        let c = f(t + 0.5 * h, &plus(&x, &b, 0.5 * h));
        let d = f(t + h, &plus(&x, &c, h));
        x = std::array::from_fn(|i| x[i] + h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]));
    }
    x
}

/// Numbers for a message.
pub fn list(numbers: &[f64]) -> String {
    numbers
        .iter()
        .map(|e| format!("{e:.3e}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Slopes `log2(e_i / e_(i+1))` of errors at intervals that halve.
pub fn slopes(errors: &[f64]) -> Vec<f64> {
    errors.windows(2).map(|e| (e[0] / e[1]).log2()).collect()
}

pub fn assert_second_order(what: &str, errors: &[f64]) {
    println!(
        "{what}: errors {}, slopes {:.3?}",
        list(errors),
        slopes(errors)
    );
    for s in slopes(errors) {
        assert!(
            (s - 2.0).abs() < 0.1,
            "{what}: slopes {:?} of {errors:?}",
            slopes(errors)
        );
    }
}

/// Knot times of a trajectory.
pub fn times(t: &Trajectory) -> Vec<f64> {
    (0..=t.steps()).map(|k| t.knot(k).t).collect()
}

/// Times at which samples cross zero, by cubics through (value, rate) at both ends of an interval.
pub fn crossings(t: &[f64], value: &[f64], rate: &[f64]) -> Vec<f64> {
    let mut out = vec![];
    for k in 1..t.len() {
        if (value[k - 1] < 0.0) == (value[k] < 0.0) {
            continue;
        }
        let h = t[k] - t[k - 1];
        let (a, b, da, db) = (value[k - 1], value[k], h * rate[k - 1], h * rate[k]);
        let cubic = |s: f64| {
            let r = 1.0 - s;
            r * r * ((1.0 + 2.0 * s) * a + s * da) + s * s * ((1.0 + 2.0 * r) * b - r * db)
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let mid = 0.5 * (low + high);
            if (cubic(mid) < 0.0) == (a < 0.0) {
                low = mid;
            } else {
                high = mid;
            }
        }
        out.push(t[k - 1] + h * low);
    }
    out
}

pub fn revolute(child: &str) -> JointSpec {
    JointSpec::new(JointKind::Revolute, child).axis(Y)
}

/// A body on a hinge about y at the origin, `length` above its center of mass.
pub fn pendulum(body: BodySpec, length: f64) -> MechanismBuilder {
    MechanismBuilder::new().body("bob", body).joint(
        "hinge",
        revolute("bob").anchors([0.0; 3], [0.0, 0.0, length]),
    )
}

/// 0.1 x 0.1 x 1 m, 1 kg, hanging from its end.
pub fn box_pendulum() -> MechanismBuilder {
    pendulum(BodySpec::new(1.0).shape(Shape::Box([0.1, 0.1, 1.0])), 0.5)
}

/// Two 0.1 m cubes of 1 kg, each 1 m from its pivot; the second hangs from the first's center.
pub fn double_pendulum() -> MechanismBuilder {
    let cube = || BodySpec::new(1.0).shape(Shape::Box([0.1; 3]));
    MechanismBuilder::new()
        .body("upper", cube())
        .body("lower", cube())
        .joint(
            "shoulder",
            revolute("upper").anchors([0.0; 3], [0.0, 0.0, 1.0]),
        )
        .joint(
            "elbow",
            revolute("lower")
                .parent("upper")
                .anchors([0.0; 3], [0.0, 0.0, 1.0]),
        )
}

/// A four-bar linkage of thin boxes, 1 kg/m, in the plane y = 0: crank 0.5, coupler 1.2, rocker 1.0, ground 1.3 m.
/// The crank's angle is counted from upright.
pub const FOUR_BAR: [f64; 4] = [0.5, 1.2, 1.0, 1.3];

pub fn four_bar() -> MechanismBuilder {
    let [crank, coupler, rocker, ground] = FOUR_BAR;
    let bar = |l: f64| BodySpec::new(l).shape(Shape::Box([0.05, 0.05, l]));
    let up = |l: f64| [0.0, 0.0, 0.5 * l];
    let down = |l: f64| [0.0, 0.0, -0.5 * l];
    MechanismBuilder::new()
        .body("crank", bar(crank))
        .body("coupler", bar(coupler))
        .body("rocker", bar(rocker))
        .joint("a", revolute("crank").anchors([0.0; 3], down(crank)))
        .joint(
            "d",
            revolute("rocker").anchors([ground, 0.0, 0.0], down(rocker)),
        )
        .joint(
            "b",
            revolute("coupler")
                .parent("crank")
                .anchors(up(crank), down(coupler)),
        )
        .joint(
            "c",
            revolute("rocker")
                .parent("coupler")
                .anchors(up(coupler), up(rocker)),
        )
}

/// A random tree under a free root: joints of the given kinds with springs and dampers on every other one, and two
/// springs with dampers between points of bodies. Nothing is tied to the world.
pub fn floating_tree(seed: u64, kinds: &[JointKind]) -> MechanismBuilder {
    let mut s = Source::new(seed);
    let mut m = MechanismBuilder::new()
        .gravity([0.0; 3])
        .body("b0", s.body().free());
    for (i, kind) in kinds.iter().enumerate() {
        let (child, parent) = (format!("b{}", i + 1), format!("b{}", s.below(i + 1)));
        m = m.body(&child, s.body());
        let mut joint = JointSpec::new(*kind, &child)
            .parent(&parent)
            .axis(s.array3())
            .anchors(s.array3(), s.array3())
            .orientation(Orientation::Rpy(s.array3()));
        if i % 2 == 0 && kind.rows() != (3, 3) {
            joint = joint.spring(3.0, 0.2).damping(0.4);
        }
        m = m.joint(&format!("j{i}"), joint);
    }
    for i in 0..2 {
        m = m.spring(
            &format!("line{i}"),
            line(&mut s, &format!("b{i}"), &format!("b{}", kinds.len())),
        );
    }
    m
}

pub fn line(s: &mut Source, parent: &str, child: &str) -> SpringSpec {
    SpringSpec {
        parent: parent.into(),
        child: child.into(),
        parent_anchor: s.array3(),
        child_anchor: s.array3(),
        stiffness: 2.0,
        rest: 0.4,
        damping: 0.3,
        implicit: false,
    }
}

/// Four free links in a ring on parallel hinges, with a joint spring, a joint damper and a spring across.
pub fn floating_loop() -> MechanismBuilder {
    let mut s = Source::new(5);
    let corners = [
        [0.5, 0.0, 0.0],
        [0.6, 0.0, 0.1],
        [0.45, 0.0, 0.0],
        [0.6, 0.0, -0.1],
    ];
    let mut m = MechanismBuilder::new().gravity([0.0; 3]);
    for i in 0..4 {
        let b = s.body();
        m = m.body(&format!("b{i}"), if i == 0 { b.free() } else { b });
    }
    for i in 0..4 {
        let (a, b): ([f64; 3], [f64; 3]) = (corners[i], corners[(i + 1) % 4].map(|c| -c));
        let mut joint = revolute(&format!("b{}", (i + 1) % 4))
            .parent(&format!("b{i}"))
            .anchors(a, b);
        if i < 2 {
            joint = joint.spring(2.0, 0.3).damping(0.2);
        }
        // the tree has a branch to either side
        joint.closes = i == 2;
        m = m.joint(&format!("j{i}"), joint);
    }
    m.spring("across", line(&mut s, "b0", "b2"))
}

/// Three links on ball joints with springs and dampers in them and across, a torque in the first joint and a force on
/// the last link.
pub fn ball_chain() -> MechanismBuilder {
    let mut s = Source::new(21);
    let mut m = MechanismBuilder::new();
    for i in 0..3 {
        m = m.body(
            &format!("b{i}"),
            BodySpec::new(1.0).shape(Shape::Box([0.2, 0.3, 0.8])),
        );
        let parent = if i == 0 {
            "world".to_owned()
        } else {
            format!("b{}", i - 1)
        };
        let anchor = if i == 0 { [0.0; 3] } else { [0.0, 0.0, -0.4] };
        let mut joint = JointSpec::new(JointKind::Spherical, &format!("b{i}"))
            .parent(&parent)
            .anchors(anchor, [0.0, 0.0, 0.4])
            .damping(0.15);
        if i > 0 {
            joint = joint.spring(2.0, 0.1);
        }
        m = m.joint(&format!("j{i}"), joint);
    }
    m.spring("line", line(&mut s, "world", "b2"))
        .actuator("torque", ActuatorSpec::joint("j0").direction("ry"))
        .actuator(
            "push",
            ActuatorSpec::wrench("b2", [0.3, 1.0, 0.0], WrenchFrame::Body, [0.0, 0.0, 0.2]),
        )
}

/// A cart on a rail with a pole, driven along the rail.
pub fn cart_pole() -> MechanismBuilder {
    MechanismBuilder::new()
        .body(
            "cart",
            BodySpec::new(1.0).shape(Shape::Box([0.3, 0.2, 0.1])),
        )
        .body("pole", BodySpec::new(0.2).inertia([1e-3, 1e-3, 1e-3]))
        .joint(
            "rail",
            JointSpec::new(JointKind::Prismatic, "cart").axis([1.0, 0.0, 0.0]),
        )
        .joint(
            "pivot",
            revolute("pole")
                .parent("cart")
                .anchors([0.0; 3], [0.0, 0.0, 0.5]),
        )
        .actuator("drive", ActuatorSpec::joint("rail"))
}

/// A tree of several kinds of joints from the world, with springs and dampers and three controls.
pub fn damped_tree() -> MechanismBuilder {
    use JointKind::{Cylindrical, Orbital, Revolute, Spherical};
    let mut s = Source::new(33);
    let mut m = MechanismBuilder::new();
    for (i, kind) in [Revolute, Spherical, Orbital, Cylindrical]
        .into_iter()
        .enumerate()
    {
        let (child, parent) = (
            format!("b{i}"),
            if i == 0 {
                "world".into()
            } else {
                format!("b{}", s.below(i))
            },
        );
        m = m.body(&child, s.body());
        let joint = JointSpec::new(kind, &child)
            .parent(&parent)
            .axis(s.array3())
            .anchors(s.array3(), s.array3())
            .spring(6.0, 0.1)
            .damping(0.4);
        m = m.joint(&format!("j{i}"), joint);
    }
    m.spring("line", line(&mut s, "b0", "b3"))
        .actuator("first", ActuatorSpec::joint("j0"))
        .actuator("slide", ActuatorSpec::joint("j3").direction("d"))
        .actuator(
            "push",
            ActuatorSpec::wrench("b2", [0.0, 0.5, 1.0], WrenchFrame::World, [0.1, 0.0, 0.0]),
        )
}

/// A parallelogram of unit bars with a motor and a damper, near flat where it could fold.
pub fn driven_loop() -> MechanismBuilder {
    let mut m = crate::cranks::cranks(1).actuator("motor", ActuatorSpec::joint("pivot0"));
    let joint = m.joints["left0"].clone().damping(0.2).spring(1.0, 0.0);
    m.joints["left0"] = joint;
    m
}
