//! Planar swing-up systems in joint coordinates, as a user would write them: semi-implicit Euler, angles from upright.

use least_action::control::{Constraint, Cost, Problem, Relation, When};
use least_action::dynamics::{Explicit, QuantityId, Real, Smooth};
use std::f64::consts::PI;

const G: f64 = 9.81;

/// `v+ = v + h a`, `q+ = q + h v+`.
fn euler<T: Real>(h: T, x: &[T], a: &[T], next: &mut [T]) {
    let n = a.len();
    for i in 0..n {
        next[n + i] = x[n + i] + h * a[i];
        next[i] = x[i] + h * next[n + i];
    }
}

/// Solution of a symmetric 2 x 2 system.
fn solve<T: Real>([m11, m12, m22]: [T; 3], [f1, f2]: [T; 2]) -> [T; 2] {
    let det = m11 * m22 - m12 * m12;
    [(m22 * f1 - m12 * f2) / det, (m11 * f2 - m12 * f1) / det]
}

/// A driven pendulum: x = (angle, rate).
pub struct Pendulum {
    pub mass: f64,
    pub length: f64,
    pub damping: f64,
}

impl Smooth for Pendulum {
    fn states(&self) -> usize {
        2
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
        let torque = u[0] - x[1] * self.damping + x[0].sin() * (self.mass * G * self.length);
        euler(
            h,
            x,
            &[torque / (self.mass * self.length * self.length)],
            next,
        );
    }
}

/// A pole on a driven cart: x = (cart, angle, rates).
pub struct CartPole {
    pub cart: f64,
    pub pole: f64,
    /// From the hinge to the pole's center of mass.
    pub length: f64,
    /// About the center of mass.
    pub inertia: f64,
}

impl Smooth for CartPole {
    fn states(&self) -> usize {
        4
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
        let (s, c) = x[1].sin_cos();
        let ml = self.pole * self.length;
        let (m11, m22) = (self.cart + self.pole, self.inertia + ml * self.length);
        let forces = [u[0] + s * x[3] * x[3] * ml, s * (ml * G)];
        euler(
            h,
            x,
            &solve([T::from(m11), c * ml, T::from(m22)], forces),
            next,
        );
    }
}

/// Two equal links with one motor: x = (first angle, second relative to the first, rates).
pub struct TwoLinks {
    pub mass: f64,
    pub length: f64,
    /// From a joint to its link's center of mass.
    pub center: f64,
    /// About the center of mass.
    pub inertia: f64,
    pub damping: f64,
    /// Is the motor at the elbow, or at the first joint?
    pub elbow: bool,
}

impl Smooth for TwoLinks {
    fn states(&self) -> usize {
        4
    }

    fn controls(&self) -> usize {
        1
    }

    fn step<T: Real>(&self, _t: f64, h: T, x: &[T], u: &[T], _p: &[T], next: &mut [T]) {
        let (m, l, c, i) = (self.mass, self.length, self.center, self.inertia);
        let (s2, c2) = x[1].sin_cos();
        let (s1, s12) = (x[0].sin(), (x[0] + x[1]).sin());
        let m22 = i + m * c * c;
        let m12 = c2 * (m * l * c) + m22;
        let m11 = c2 * (2.0 * m * l * c) + (2.0 * i + m * (l * l + 2.0 * c * c));
        let coriolis = s2 * (m * l * c);
        let own = s12 * (m * G * c);
        let mut f1 = coriolis * (x[2] * 2.0 + x[3]) * x[3] + s1 * (m * G * (c + l)) + own;
        let mut f2 = own - coriolis * x[2] * x[2];
        f1 -= x[2] * self.damping;
        f2 -= x[3] * self.damping;
        *if self.elbow { &mut f2 } else { &mut f1 } += u[0];
        euler(h, x, &solve([m11, m12, T::from(m22)], [f1, f2]), next);
    }
}

/// The cart-pole of the published comparison: 0.2 kg, inertia about the center of mass.
pub fn cart_pole() -> CartPole {
    CartPole {
        cart: 1.0,
        pole: 0.2,
        length: 0.5,
        inertia: 0.2 / 12.0,
    }
}

/// The acrobot of the published comparison.
pub fn acrobot() -> TwoLinks {
    TwoLinks {
        mass: 1.0,
        length: 1.0,
        center: 0.5,
        inertia: 1.01 / 12.0,
        damping: 0.0,
        elbow: true,
    }
}

/// To the upright rest from `start`: weights of the states along the way and at the end, of the control.
pub fn upright<S: Smooth>(
    dynamics: &Explicit<S>,
    (h, steps): (f64, usize),
    start: &[f64],
    (along, control, end): (&[f64], f64, &[f64]),
) -> Problem {
    let (q, rates) = start.split_at(start.len() / 2);
    let mut p = Problem::new(dynamics, vec![h; steps], q.to_vec());
    p.rates = rates.to_vec();
    let mut cost = |place, weight, when| {
        p.costs
            .push(Cost::square(QuantityId::new(place), 0.0, weight, when));
    };
    for (i, weight) in along.iter().enumerate() {
        cost(i, *weight, When::Running);
    }
    for (i, weight) in end.iter().enumerate() {
        cost(i, *weight, When::End);
    }
    cost(start.len(), control, When::Running);
    p
}

/// Adds the bound of the control and the goal as a constraint.
pub fn bounded(mut p: Problem, bound: f64) -> Problem {
    p.bounds = vec![(-bound, bound)];
    for quantity in (0..2 * p.rates.len()).map(QuantityId::new) {
        p.constraints.push(Constraint {
            quantity,
            relation: Relation::Equal,
            value: 0.0,
            profile: None,
            when: When::End,
        });
    }
    p
}

/// The published cart-pole, without bounds.
pub fn published_cart_pole(d: &Explicit<CartPole>) -> Problem {
    let weights = (
        &[0.1, 0.1, 0.01, 0.01][..],
        0.01,
        &[100.0, 100.0, 10.0, 10.0][..],
    );
    sines(upright(d, (0.02, 150), &[0.0, PI, 0.0, 0.0], weights))
}

/// The published acrobot, without bounds.
pub fn published_acrobot(d: &Explicit<TwoLinks>) -> Problem {
    let weights = (
        &[0.1, 0.1, 0.01, 0.01][..],
        0.01,
        &[1000.0, 1000.0, 100.0, 100.0][..],
    );
    sines(upright(d, (0.02, 200), &[PI, 0.0, 0.0, 0.0], weights))
}

fn sines(mut p: Problem) -> Problem {
    let wave = |k: usize| (2.0 * PI * k as f64 / 50.0).sin();
    p.guess = (0..p.intervals.len()).map(wave).collect();
    p
}

/// Swing-ups within bounds to a goal: 100 steps of 0.05 s.
pub fn swing_up_pendulum() -> (Explicit<Pendulum>, Problem) {
    let d = Explicit::new(Pendulum {
        mass: 1.0,
        length: 0.5,
        damping: 0.1,
    });
    let p = upright(&d, (0.05, 100), &[PI, 0.0], (&[1e-3; 2], 1e-3, &[]));
    (d, bounded(p, 3.0))
}

/// See [`swing_up_pendulum`].
pub fn swing_up_cart_pole() -> (Explicit<CartPole>, Problem) {
    let d = Explicit::new(CartPole {
        inertia: 0.0,
        ..cart_pole()
    });
    let p = upright(
        &d,
        (0.05, 100),
        &[0.0, PI, 0.0, 0.0],
        (&[0.01; 4], 0.1, &[100.0; 4]),
    );
    (d, bounded(p, 3.0))
}

/// See [`swing_up_pendulum`].
pub fn swing_up_acrobot() -> (Explicit<TwoLinks>, Problem) {
    let d = Explicit::new(TwoLinks {
        center: 1.0,
        inertia: 1.0,
        damping: 1.0,
        ..acrobot()
    });
    let p = upright(
        &d,
        (0.05, 100),
        &[PI, 0.0, 0.0, 0.0],
        (&[1.0; 4], 0.01, &[100.0; 4]),
    );
    (d, bounded(p, 15.0))
}

/// See [`swing_up_pendulum`].
pub fn swing_up_double_pendulum() -> (Explicit<TwoLinks>, Problem) {
    let d = Explicit::new(TwoLinks {
        inertia: 1.0 / 12.0,
        elbow: false,
        ..acrobot()
    });
    let p = upright(
        &d,
        (0.05, 100),
        &[PI, 0.0, 0.0, 0.0],
        (&[1.0; 4], 0.01, &[100.0; 4]),
    );
    (d, bounded(p, 20.0))
}

/// Normal controls, a tenth of the bounds' range wide.
pub fn random_guess(p: &mut Problem, seed: u64) {
    use rand::SeedableRng;
    use rand_distr::{Distribution, Normal};
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    for (u, (l, h)) in p.guess.iter_mut().zip(p.bounds.iter().cycle()) {
        let spread = Normal::new(0.0, 0.1 * (h - l)).expect("finite bounds");
        *u = spread.sample(&mut rng);
    }
}
