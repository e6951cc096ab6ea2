//! The discrete Lagrangians: a body's momentum over an interval, and its derivative.
//!
//! Of a body that moves from a knot by the center's velocity `v` and by `w`, twice the vector part of its turn by the interval
//! ([`Moved`], world axes), with `J` its inertia there, `h` signed, `c = h^2/4` and `y = c w'w`, the kinetic parts are `h l`,
//!
//! ```text
//! split  l = (m v'v + w'J w)/2,
//! screw  l = (m v'v + m c B |w x v|^2 + A w'J w)/2,     A = asin(sqrt y)^2/y,   B = (A - 1)/y.
//! ```
//!
//! The latter is `xi'I xi/2` of the logarithm on SE(3): by `phi`, of length `t = 2 asin(sqrt y)`, it turns by `A w'w = phi'phi/h^2`,
//! and of the displacement the part across `phi` is longer along the screw than straight, by `(t/2)/sin(t/2)`, whose square is `A`.
//!
//! The momentum is the derivative by the neighbour, which its displacement `h W` changes by `dv = W_x`, `dw = K W_phi`,
//! `K = s - h/2 [w]`, `s` the scalar part, and which what moves as a whole carries to the knot:
//!
//! ```text
//! f = l_v,     t = K' l_w + h v x f.
//! ```

use super::derivative::Six;
use super::work::{Articulated, AtKnot, Moved};
use crate::mechanism::Vec6;
use crate::spatial::{Mat3, RotationLaw, Vec3, skew, skew_times, times_skew};

/// The discrete Lagrangian of a body's motion over an interval `h`, `L = h T - h/2 (U(z_k) + U(z_k+1))`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lagrangian {
    /// Translation and rotation apart (papers 000 and 002): `T = (m v'v + w'J w)/2`, with `v` the displacement of the center of
    /// mass by `h`, m/s in the world, and `w = 2 vec(q_k^-1 q_k+1)/h`, rad/s in the body.
    #[default]
    Split,
    /// On SE(3) (paper 003): `T = xi' diag(m, J) xi/2`, with `xi = log(g_k^-1 g_k+1)/h` the velocity of the screw that leads from one
    /// pose to the next, m/s and rad/s, body frame, about the center of mass.
    Screw,
}

/// A 6 x 6 matrix of a body, world axes.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    /// Where translation and turn are apart: of the one a number, and of the other.
    pub mass: f64,
    pub turn: Mat3,
    /// Where they are not, all of it instead.
    pub coupled: Option<Articulated>,
}

impl Blocks {
    pub const ZERO: Self = Self {
        mass: 0.0,
        turn: Articulated::ZERO.tt,
        coupled: None,
    };

    #[inline(always)]
    pub fn apart(mass: f64, turn: Mat3) -> Self {
        Self {
            mass,
            turn,
            coupled: None,
        }
    }

    #[inline(always)]
    pub fn coupled(all: Articulated) -> Self {
        Self {
            coupled: Some(all),
            ..Self::ZERO
        }
    }

    /// Change of a momentum `p` of which this is the derivative, where the knot is displaced by `Z`, of it the turn `phi`, the
    /// neighbour by `Z + h W`, and `v` is the velocity: `phi x p + D (W - (phi x v, 0))`. Apart, forces do not turn.
    #[inline(always)]
    pub fn change(&self, v: &Vec3, p: &Six, phi: &Vec3, by: &Six) -> Six {
        match &self.coupled {
            None => (by.0 * self.mass, phi.cross(&p.1) + self.turn * by.1),
            Some(d) => {
                let x = by.0 - phi.cross(v);
                (
                    phi.cross(&p.0) + d.ff * x + d.ft * by.1,
                    phi.cross(&p.1) + d.tf * x + d.tt * by.1,
                )
            }
        }
    }

    /// The transpose: of a virtual displacement the adjoints of `W` and of `phi`, but for the torque's own turn,
    /// `p.1 x turned`, which is the same of all momenta of a body.
    #[inline(always)]
    pub fn change_back(&self, v: &Vec3, p: &Six, (x, turned): &Six) -> (Six, Vec3) {
        match &self.coupled {
            None => ((x * self.mass, self.turn.tr_mul(turned)), Vec3::zeros()),
            Some(d) => {
                let by = d.transposed_times(&(*x, *turned));
                (by, p.0.cross(x) - v.cross(&by.0))
            }
        }
    }

    /// The transpose, of either as of one coupled.
    pub fn transposed(&self) -> Articulated {
        match &self.coupled {
            None => Articulated {
                ff: Mat3::from_diagonal_element(self.mass),
                tt: self.turn.transpose(),
                ..Articulated::ZERO
            },
            Some(d) => Articulated {
                ff: d.ff.transpose(),
                ft: d.tf.transpose(),
                tf: d.ft.transpose(),
                tt: d.tt.transpose(),
            },
        }
    }
}

impl Articulated {
    /// Of a body about its joint, by its displacement there over the interval times `1/h`.
    #[inline(always)]
    pub(super) fn of_body(lagrangian: Lagrangian, k: &AtKnot, to: &Moved, h: f64) -> Self {
        let [left, right] = [k.arms[1], to.arms[1]];
        let own = lagrangian.derivative(k, to, h);
        if let Some(mut p) = own.coupled {
            p.shift(&left, &right);
            return p;
        }
        let m = own.mass;
        Self {
            ff: Mat3::from_diagonal_element(m),
            ft: skew(&(right * -m)),
            tf: skew(&(left * m)),
            tt: own.turn - (right * m) * left.transpose()
                + Mat3::from_diagonal_element(m * left.dot(&right)),
        }
    }

    pub(super) fn scaled(&self, by: f64) -> Self {
        Self {
            ff: self.ff * by,
            ft: self.ft * by,
            tf: self.tf * by,
            tt: self.tt * by,
        }
    }

    pub(super) fn times(&self, (x, turned): &Six) -> Six {
        (
            self.ff * x + self.ft * turned,
            self.tf * x + self.tt * turned,
        )
    }

    pub(super) fn transposed_times(&self, (x, turned): &Six) -> Six {
        (
            self.ff.tr_mul(x) + self.tf.tr_mul(turned),
            self.ft.tr_mul(x) + self.tt.tr_mul(turned),
        )
    }
}

impl Lagrangian {
    /// Momentum of a body at a knot over the interval `h`, negative where it lies before, world axes, about its center; linear in
    /// mass and inertia.
    #[inline(always)]
    pub(super) fn momentum(
        self,
        mass: f64,
        (inertia, law): (&Mat3, &RotationLaw),
        to: &Moved,
        h: f64,
    ) -> Six {
        match self {
            Self::Split => {
                let p = law.momentum_of_turn(&to.omega, inertia, h, to.scalar);
                (to.velocity * mass, p)
            }
            Self::Screw => of_screw(mass, inertia, to, h),
        }
    }

    /// `D`, its derivative by the neighbour's displacement, times the interval.
    #[inline(always)]
    pub(super) fn derivative(self, k: &AtKnot, to: &Moved, h: f64) -> Blocks {
        match self {
            Self::Split => Blocks::apart(k.mass, turn_jacobian(k, to, h)),
            Self::Screw => Blocks::coupled(derivative_of_screw(k, to, h)),
        }
    }

    /// The same into what holds it, of which it touches no more than it has to.
    #[inline(always)]
    pub(super) fn differentiate(self, k: &AtKnot, to: &Moved, h: f64, out: &mut Blocks) {
        match self {
            Self::Split => {
                (out.mass, out.turn) = (k.mass, turn_jacobian(k, to, h));
                out.coupled = None;
            }
            Self::Screw => *out = self.derivative(k, to, h),
        }
    }

    /// The same by velocities `(v, w)`, linear in the world and angular in the body as the momentum, applied to a change of them;
    /// or the transpose. `body` is its rotation and its inertia, body frame.
    pub(super) fn by_velocities(
        self,
        body: (&Mat3, &Mat3, &RotationLaw),
        (k, to, h): (&AtKnot, &Moved, f64),
        by: &Vec6,
        transposed: bool,
    ) -> Vec6 {
        let (r, j, law) = body;
        let (x, turn) = (
            Vec3::new(by[0], by[1], by[2]),
            Vec3::new(by[3], by[4], by[5]),
        );
        let s = to.scalar;
        let (x, turn) = match self {
            Self::Split => {
                let omega = r.tr_mul(&law.from_chord(&to.omega, h, s));
                let turn = match transposed {
                    true => law.momentum_jacobian_transposed(&omega, j, h, s, &turn),
                    false => law.momentum_jacobian(&omega, j, h, s) * turn,
                };
                (x * k.mass, turn)
            }
            Self::Screw => {
                let d = derivative_of_screw(k, to, h);
                let turn = r * turn;
                let (x, turn) = match transposed {
                    true => {
                        let (x, turn) = d.transposed_times(&(x, turn));
                        (x, law.end_by_velocity_transposed(&to.omega, h, s, &turn))
                    }
                    false => d.times(&(x, law.end_by_velocity(&to.omega, h, s, &turn))),
                };
                (x, r.tr_mul(&turn))
            }
        };
        Vec6::new(x.x, x.y, x.z, turn.x, turn.y, turn.z)
    }
}

/// Derivative of a body's angular momentum by its turn at the end of an interval, times the interval. Of
/// `s + [u]`, `u = h/2 w`, what is by `w` is `s J + [u] J - [J u]`, and the rate by the turn `s - [u]`: with the symmetric `J` the
/// product less `J u u'` is
///
/// ```text
/// (s + [u]) J (s + [u])' - (u'J u) 1 - [s J u + u x J u].
/// ```
#[inline(always)]
fn turn_jacobian(k: &AtKnot, to: &Moved, h: f64) -> Mat3 {
    if let Some(exact) = k.law.turn_jacobian(&to.omega, &k.inertia, h, to.scalar) {
        return exact;
    }
    let (u, j, s) = (to.omega * (0.5 * h), &k.inertia, to.scalar);
    let ju = j * u;
    let across = skew_times(&u, j);
    let twice = -times_skew(&across, &u);
    let (square, less) = (s * s, u.dot(&ju));
    let q = ju * s + u.cross(&ju);
    // the symmetric part once
    let on = |r: usize| square * j[(r, r)] + 2.0 * s * across[(r, r)] + twice[(r, r)] - less;
    let off = |r: usize, c: usize| {
        square * j[(r, c)] + s * (across[(r, c)] + across[(c, r)]) + twice[(r, c)]
    };
    let (xy, xz, yz) = (off(0, 1), off(0, 2), off(1, 2));
    Mat3::new(
        on(0),
        xy + q.z,
        xz - q.y,
        xy - q.z,
        on(1),
        yz + q.x,
        xz + q.y,
        yz - q.x,
        on(2),
    )
}

/// Coefficients of the powers of `y` in `B`: of `asin(sqrt y)^2` they are `4^n/(2 n^2 C(2n, n))`, from the second on.
const SERIES: [f64; 18] = {
    let mut out = [1.0 / 3.0; 18];
    let mut i = 1;
    while i < out.len() {
        let n = (i + 1) as f64;
        out[i] = out[i - 1] * (2.0 * n * n / ((2.0 * n + 1.0) * (n + 1.0)));
        i += 1;
    }
    out
};

/// `A` and `B`, each with its first and second derivative by `y`.
fn coefficients(y: f64) -> [[f64; 3]; 2] {
    if y < 0.1 {
        // the next terms are below rounding here
        let terms = if y < 1e-3 { 7 } else { SERIES.len() };
        let (mut b, mut db, mut ddb) = (0.0, 0.0, 0.0);
        for c in SERIES[..terms].iter().rev() {
            ddb = ddb * y + 2.0 * db;
            db = db * y + b;
            b = b * y + c;
        }
        let a = [1.0 + y * b, b + y * db, 2.0 * db + y * ddb];
        return [a, [b, db, ddb]];
    }
    let (root, z) = (y.sqrt(), y * (1.0 - y));
    let angle = root.asin();
    // of asin(sqrt y)^2, and of quotients by y
    let first = angle / z.sqrt();
    let all = [angle * angle, first, (0.5 - (0.5 - y) * first) / z];
    let over = |v: [f64; 3]| {
        let (value, first) = (v[0] / y, (v[1] - v[0] / y) / y);
        [value, first, (v[2] - 2.0 * first) / y]
    };
    let a = over(all);
    [a, over([a[0] - 1.0, a[1], a[2]])]
}

/// Of [`Lagrangian::Screw`], `l` by `v` and by `w`, and how far the momentum is carried.
#[inline(never)]
fn of_screw(mass: f64, inertia: &Mat3, to: &Moved, h: f64) -> Six {
    let (v, w, half) = (&to.velocity, &to.omega, 0.5 * h);
    let c = half * half;
    let [a, b] = coefficients(c * w.norm_squared());
    let (f, by) = gradient(mass, inertia, to, c, (&a, &b));
    let t = by * to.scalar + w.cross(&by) * half + v.cross(&f) * h;
    (f, t)
}

/// `l_v` and `l_w`.
#[inline(always)]
fn gradient(
    mass: f64,
    inertia: &Mat3,
    to: &Moved,
    c: f64,
    (a, b): (&[f64; 3], &[f64; 3]),
) -> (Vec3, Vec3) {
    let (v, w, mc) = (&to.velocity, &to.omega, mass * c);
    let (x, jw) = (w.cross(v), inertia * w);
    let f = v * mass - w.cross(&x) * (mc * b[0]);
    let along = a[1] * w.dot(&jw) + mc * b[1] * x.norm_squared();
    (f, jw * a[0] + w * (c * along) + v.cross(&x) * (mc * b[0]))
}

/// `D` of [`Lagrangian::Screw`] from the second derivatives of `l`.
#[inline(never)]
fn derivative_of_screw(k: &AtKnot, to: &Moved, h: f64) -> Articulated {
    let (m, j, v, w, s, half) = (
        k.mass,
        &k.inertia,
        &to.velocity,
        &to.omega,
        to.scalar,
        0.5 * h,
    );
    let c = half * half;
    let (mc, square) = (m * c, w.norm_squared());
    let [a, b] = coefficients(c * square);
    let (f, by) = gradient(m, j, to, c, (&a, &b));
    let (x, jw) = (w.cross(v), j * w);
    let (vx, energy, across) = (v.cross(&x), w.dot(&jw), x.norm_squared());
    let diagonal = Mat3::from_diagonal_element;
    // l_vv, l_vw and l_ww
    let vv = diagonal(m + mc * b[0] * square) - w * w.transpose() * (mc * b[0]);
    let vw = (skew(&x) + v * w.transpose() - diagonal(w.dot(v))) * (mc * b[0])
        - w.cross(&x) * w.transpose() * (2.0 * c * mc * b[1]);
    let along = a[1] * energy + mc * b[1] * across;
    let curved = 2.0 * c * c * (a[2] * energy + mc * b[2] * across);
    let turned = jw * (2.0 * c * a[1]) + vx * (2.0 * c * mc * b[1]);
    let ww = j * a[0] + diagonal(c * along + mc * b[0] * v.norm_squared())
        - v * v.transpose() * (mc * b[0])
        + (turned + w * curved) * w.transpose()
        + w * turned.transpose();
    // K' M and M K
    let left = |m: &Mat3| m * s + skew_times(w, m) * half;
    let right = |m: &Mat3| m * s - times_skew(m, w) * half;
    let tt = left(&ww) + skew_times(v, &vw) * h - skew(&by) * half;
    Articulated {
        ff: vv,
        ft: right(&vw),
        tf: left(&vw.transpose()) + (skew_times(v, &vv) - skew(&f)) * h,
        tt: right(&tt) - by * w.transpose() * c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrator::maximal::tests::{assert_close, derivative};
    use crate::mechanism::samples::Source;
    use crate::spatial::{Pose, Quat, exp, left_log_jacobian, log};

    const BOTH: [Lagrangian; 2] = [Lagrangian::Split, Lagrangian::Screw];

    struct Body {
        mass: f64,
        inertia: Mat3,
        law: RotationLaw,
    }

    /// As the definitions have them.
    fn action(of: Lagrangian, body: &Body, a: &Pose, b: &Pose, h: f64) -> f64 {
        let d = a.r.tr_mul(&(b.x - a.x));
        let relative = a.q.inverse() * b.q;
        let (x, turn) = match of {
            Lagrangian::Split => {
                let e = relative.imag();
                let (moment, angle, chord) = match body.law {
                    RotationLaw::Chord => (0.0, 0.0, e.norm_squared()),
                    RotationLaw::Ball => (
                        body.inertia.trace() / 3.0,
                        log(&relative).norm(),
                        e.norm_squared(),
                    ),
                    RotationLaw::Spin(n) => (
                        n.dot(&(body.inertia * n)),
                        2.0 * n.dot(&e).atan2(relative.w),
                        n.dot(&e).powi(2),
                    ),
                    RotationLaw::Free(_) => unreachable!("joint coordinates do not offer it"),
                };
                let chords = 4.0 * (e.dot(&(body.inertia * e)) - moment * chord);
                let turning = moment * angle.powi(2) + chords;
                return (body.mass * d.norm_squared() + turning) / (2.0 * h);
            }
            Lagrangian::Screw => {
                let phi = log(&relative);
                (left_log_jacobian(&phi) * d, phi)
            }
        };
        (body.mass * x.norm_squared() + turn.dot(&(body.inertia * turn))) / (2.0 * h)
    }

    fn displaced(pose: &Pose, d: &Vec6) -> Pose {
        let (x, turn) = (Vec3::new(d[0], d[1], d[2]), Vec3::new(d[3], d[4], d[5]));
        Pose::new(pose.x + x, exp(&turn) * pose.q)
    }

    fn at(body: &Body, a: &Pose) -> AtKnot {
        let zero = Vec3::zeros();
        AtKnot {
            joint: Mat3::identity(),
            relative: Quat::identity(),
            is_sprung: false,
            is_damped: false,
            arms: [zero; 2],
            mass: body.mass,
            inertia: a.r * body.inertia * a.r.transpose(),
            law: body.law.turned(&a.r),
            force: (zero, zero),
            touch: (zero, zero),
            base: (zero, zero),
        }
    }

    fn moved(a: &Pose, b: &Pose, h: f64) -> Moved {
        let by = b.q * a.q.inverse();
        Moved {
            scalar: by.w,
            omega: by.imag() * (2.0 / h),
            velocity: (b.x - a.x) / h,
            ..Moved::WORLD
        }
    }

    fn momentum_of(of: Lagrangian, body: &Body, a: &Pose, b: &Pose, h: f64) -> Vec<f64> {
        let k = at(body, a);
        flat(&of.momentum(k.mass, (&k.inertia, &k.law), &moved(a, b, h), h))
    }

    fn flat((x, turn): &Six) -> Vec<f64> {
        x.iter().chain(turn.iter()).copied().collect()
    }

    fn six(s: &mut Source, size: f64) -> Vec6 {
        Vec6::from_column_slice(&s.vector(6, size))
    }

    /// Bodies between two poses, turned not at all, little, and nearly as far as the domain.
    fn each(mut check: impl FnMut(&Body, &Pose, &Pose, f64, &mut Source)) {
        let mut s = Source::new(5);
        for (i, turn) in [0.0, 1e-9, 1e-4, 0.06, 0.07, 0.6, 0.66, 1.0, 1.5]
            .into_iter()
            .enumerate()
        {
            let axes = Mat3::from_column_slice(&s.vector(9, 0.4));
            let inertia = axes * axes.transpose() + Mat3::from_diagonal(&Vec3::new(0.2, 0.3, 0.4));
            let a = displaced(&Pose::identity(), &six(&mut s, 1.0));
            let mut d = six(&mut s, 0.3);
            let axis = Vec3::new(d[3], d[4], d[5]).normalize();
            d.fixed_rows_mut::<3>(3).copy_from(&(axis * turn));
            let h = if i % 2 == 0 { 0.3 } else { -0.3 };
            let tilted = Vec3::new(0.48, -0.6, 0.64);
            for law in [
                RotationLaw::Chord,
                RotationLaw::Ball,
                RotationLaw::Spin(tilted),
            ] {
                let body = Body {
                    mass: 1.5,
                    inertia,
                    law,
                };
                check(&body, &a, &displaced(&a, &d), h, &mut s);
            }
        }
    }

    #[test]
    fn coefficients_are_those_of_the_arc_sine() {
        for y in [
            0.0, 1e-4, 9.999e-4, 1.001e-3, 0.05, 0.0999, 0.1001, 0.3, 0.49,
        ] {
            let [a, b] = coefficients(y);
            let value = match y {
                0.0 => 1.0,
                y => y.sqrt().asin().powi(2) / y,
            };
            assert!((a[0] - value).abs() < 1e-14, "{y}");
            assert!((1.0 + y * b[0] - value).abs() < 1e-14, "{y}");
            for own in 0..2 {
                for order in 0..2 {
                    let by = |e: f64| vec![coefficients(y + e)[own][order]];
                    let next = coefficients(y)[own][order + 1];
                    if y > 1e-3 {
                        assert_close(&[next], &derivative(1e-4, by), 1e-7, &format!("{y}"));
                    }
                }
            }
        }
        let (below, above) = (coefficients(0.1 - 1e-15), coefficients(0.1 + 1e-15));
        assert_close(below.as_flattened(), above.as_flattened(), 1e-11, "joined");
        let (below, above) = (coefficients(1e-3 - 1e-18), coefficients(1e-3 + 1e-18));
        assert_close(below.as_flattened(), above.as_flattened(), 1e-14, "joined");
    }

    /// At the knot, and, led back over the interval, at the neighbour.
    #[test]
    fn momenta_are_derivatives_of_the_action() {
        for of in BOTH {
            each(|body, a, b, h, _| {
                let axis = |i: usize, e: f64| Vec6::from_fn(|r, _| if r == i { e } else { 0.0 });
                let along = |f: &dyn Fn(&Vec6) -> f64| -> Vec<f64> {
                    let each = (0..6).map(|i| derivative(1e-3, |e| vec![f(&axis(i, e))])[0]);
                    each.collect()
                };
                let before = along(&|d| -action(of, body, &displaced(a, d), b, h));
                let own = momentum_of(of, body, a, b, h);
                assert_close(&own, &before, 1e-9, "at the knot");
                let behind = along(&|d| action(of, body, a, &displaced(b, d), h));
                let own = momentum_of(of, body, b, a, -h);
                assert_close(&own, &behind, 1e-9, "at the neighbour");
            });
        }
    }

    #[test]
    fn momenta_have_their_derivatives() {
        for of in BOTH {
            each(|body, a, b, h, s| {
                let (k, to) = (at(body, a), moved(a, b, h));
                let (z, rate, virtual_) = (six(s, 1.0), six(s, 1.0), six(s, 1.0));
                let parts = |v: &Vec6| (Vec3::new(v[0], v[1], v[2]), Vec3::new(v[3], v[4], v[5]));
                let numeric = derivative(1e-3, |e| {
                    // turns add up to first order alone
                    let b = displaced(&displaced(b, &(z * e)), &(rate * (h * e)));
                    momentum_of(of, body, &displaced(a, &(z * e)), &b, h)
                });
                let p = of.momentum(k.mass, (&k.inertia, &k.law), &to, h);
                let d = of.derivative(&k, &to, h);
                let own = d.change(&to.velocity, &p, &parts(&z).1, &parts(&rate));
                assert_close(&flat(&own), &numeric, 1e-9, "change");
                let (by, phi) = d.change_back(&to.velocity, &p, &parts(&virtual_));
                let phi = phi + p.1.cross(&parts(&virtual_).1);
                let product: f64 =
                    by.0.dot(&parts(&rate).0) + by.1.dot(&parts(&rate).1) + phi.dot(&parts(&z).1);
                let (x, turned) = parts(&virtual_);
                let other = own.0.dot(&x) + own.1.dot(&turned);
                assert_close(&[product], &[other], 1e-13, "adjoint");
                // of velocities
                let velocities = derivative(1e-3, |e| {
                    let (v, w) = parts(&(rate * e));
                    let mut to = to;
                    to.velocity += v;
                    let law = &k.law;
                    let omega = law.from_chord(&to.omega, h, to.scalar) + a.r * w;
                    to.scalar = law.scalar(&omega, h);
                    to.omega = law.chord_velocity(&omega, h, to.scalar);
                    let (f, t) = of.momentum(k.mass, (&k.inertia, &k.law), &to, h);
                    flat(&(f, a.r.tr_mul(&t)))
                });
                let body = (&a.r, &body.inertia, &body.law);
                let own = of.by_velocities(body, (&k, &to, h), &rate, false);
                assert_close(own.as_slice(), &velocities, 1e-9, "by velocities");
                let back = of.by_velocities(body, (&k, &to, h), &virtual_, true);
                assert_close(&[back.dot(&rate)], &[own.dot(&virtual_)], 1e-13, "adjoint");
            });
        }
    }

    /// Over no interval both are the momenta of the instant.
    #[test]
    fn momenta_of_an_instant_are_the_same() {
        each(|body, a, b, h, _| {
            let (k, mut to) = (at(body, a), moved(a, b, h));
            to.scalar = 1.0;
            let of = |l: Lagrangian| flat(&l.momentum(k.mass, (&k.inertia, &k.law), &to, 0.0));
            assert_close(&of(BOTH[0]), &of(BOTH[1]), 1e-15, "momentum");
        });
    }
}
