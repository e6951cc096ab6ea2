//! Rotations, the discrete rotational kinematics and momenta of a rigid body, and inertias of shapes.
//!
//! Quaternions are Hamilton's, scalar first where written as four numbers, and map body to world.
//! Small rotations are vectors `phi` in the body frame: `q -> q exp(phi/2)`, so `dq = 1/2 q (0, dphi)`.

use nalgebra::{Matrix3, Quaternion, UnitQuaternion, Vector3};

/// A vector in space.
pub type Vec3 = Vector3<f64>;
/// A 3 x 3 matrix.
pub type Mat3 = Matrix3<f64>;
/// A unit quaternion, body to world.
pub type Quat = UnitQuaternion<f64>;

/// Below it half an angle is its own sine, to rounding, rad.
const SMALL: f64 = 1e-8;

/// `[a]x`, with `[a]x b = a x b`.
#[inline(always)]
pub fn skew(a: &Vec3) -> Mat3 {
    Mat3::new(0.0, -a.z, a.y, a.z, 0.0, -a.x, -a.y, a.x, 0.0)
}

/// `[a]x M` in half the operations of the product.
#[inline(always)]
pub fn skew_times(a: &Vec3, m: &Mat3) -> Mat3 {
    let (x, y, z) = (m.column(0), m.column(1), m.column(2));
    Mat3::from_columns(&[a.cross(&x), a.cross(&y), a.cross(&z)])
}

/// `M [a]x`.
#[inline(always)]
pub fn times_skew(m: &Mat3, a: &Vec3) -> Mat3 {
    let (x, y, z) = (m.column(0), m.column(1), m.column(2));
    Mat3::from_columns(&[y * a.z - z * a.y, z * a.x - x * a.z, x * a.y - y * a.x])
}

/// Rotation vector of `q`, of length at most pi.
pub fn log(q: &Quat) -> Vec3 {
    let (w, v) = if q.w < 0.0 {
        (-q.w, -q.imag())
    } else {
        (q.w, q.imag())
    };
    let n = v.norm();
    if n < SMALL {
        // atan(n/w)/n to second order; w is 1 to 1e-16 here
        v * 2.0
    } else {
        v * (2.0 * n.atan2(w) / n)
    }
}

/// The rotation by the vector `r`.
pub fn exp(r: &Vec3) -> Quat {
    let half = 0.5 * r.norm();
    let sinc = if half < SMALL {
        0.5
    } else {
        0.5 * half.sin() / half
    };
    Quat::new_unchecked(Quaternion::from_parts(half.cos(), r * sinc))
}

/// `a(t) = (1 - (t/2) cot(t/2)) / t^2` and `a'(t)/t`, the coefficient of the inverse Jacobians of the logarithm.
fn log_coefficient(r: &Vec3) -> (f64, f64) {
    let t2 = r.norm_squared();
    if t2 < 1e-2 {
        // series of 1/t^2 (1 - t/2 cot(t/2)); the next term is below 1e-17 here
        let a = 1.0 / 12.0
            + t2 * (1.0 / 720.0 + t2 * (1.0 / 30240.0 + t2 * (1.0 / 1209600.0 + t2 / 47900160.0)));
        let da = 2.0
            * (1.0 / 720.0
                + t2 * (2.0 / 30240.0
                    + t2 * (3.0 / 1209600.0
                        + t2 * (4.0 / 47900160.0 + t2 * 5.0 * 691.0 / 1307674368000.0))));
        (a, da)
    } else {
        let t = t2.sqrt();
        let half = 0.5 * t;
        let cot = half.cos() / half.sin();
        let a = (1.0 - half * cot) / t2;
        // d/dt (1 - t/2 cot(t/2)) = -cot/2 + (t/4)(1 + cot^2)
        let d = -0.5 * cot + 0.25 * t * (1.0 + cot * cot);
        (a, (d - 2.0 * t * a) / (t2 * t))
    }
}

/// `Jr^-1(r) = I + [r]x/2 + a [r]x^2`: the rate of the rotation vector when the rotation is turned from the right.
pub fn right_log_jacobian(r: &Vec3) -> Mat3 {
    let s = skew(r);
    Mat3::identity() + s * 0.5 + s * s * log_coefficient(r).0
}

/// `Jl^-1(r)`, the same when turned from the left; the transpose of [`right_log_jacobian`].
pub fn left_log_jacobian(r: &Vec3) -> Mat3 {
    right_log_jacobian(r).transpose()
}

/// `d/dr (Jr^-1(r) c)` for a constant `c`.
pub fn right_log_jacobian_derivative(r: &Vec3, c: &Vec3) -> Mat3 {
    let (a, da) = log_coefficient(r);
    let rc = r.cross(c);
    skew(c) * -0.5 - (skew(&rc) + skew(r) * skew(c)) * a + r.cross(&rc) * r.transpose() * da
}

/// `sqrt(1 - h^2 w'w/4)`, the scalar part of the rotation increment; `None` outside its domain.
#[inline(always)]
pub fn increment_scalar(w: &Vec3, h: f64) -> f64 {
    (1.0 - 0.25 * h * h * w.norm_squared()).sqrt()
}

/// The rotation over an interval: `(s, h w/2)` with `s` from [`increment_scalar`] (physics: 000, section 3).
#[inline(always)]
pub fn increment(w: &Vec3, h: f64, s: f64) -> Quat {
    Quat::new_unchecked(Quaternion::from_parts(s, w * (0.5 * h)))
}

/// `K = dphi+/dw = h (s I + h^2/4 w w'/s - h/2 [w]x)`: how the angular velocity turns the end of the interval.
#[inline(always)]
pub fn increment_jacobian(w: &Vec3, h: f64, s: f64) -> Mat3 {
    (w * w.transpose() * (0.25 * h * h / s) - skew(w) * (0.5 * h) + Mat3::identity() * s) * h
}

/// `K' t` without forming `K`.
#[inline(always)]
pub fn increment_jacobian_transposed(w: &Vec3, h: f64, s: f64, t: &Vec3) -> Vec3 {
    (t * s + w * (0.25 * h * h * w.dot(t) / s) + w.cross(t) * (0.5 * h)) * h
}

/// `(h |w|)^2` beyond which no step is looked for: at 2 the discrete momentum about a principal axis is largest.
pub(crate) const TURN_DOMAIN: f64 = 2.0;

/// Largest `h |w|` that a step is looked for from, inside that domain.
pub(crate) const START_TURN: f64 = 1.2;

/// Largest `h w` about an axis of what is planned, without solving steps: a little inside that domain, where a principal axis'
/// momentum is within 2 % of its largest, and still grows.
pub(crate) const PLANNED_TURN: f64 = 1.3;

/// Discrete angular momentum `p(w) = s J w + h/2 w x J w`, body frame; with `-h` it is the momentum at the
/// interval's end, `p-`.
#[inline(always)]
pub fn momentum(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    let jw = inertia * w;
    jw * s + w.cross(&jw) * (0.5 * h)
}

/// `dp/dw` of [`momentum`].
#[inline(always)]
pub fn momentum_jacobian(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Mat3 {
    let jw = inertia * w;
    inertia * s - jw * w.transpose() * (0.25 * h * h / s)
        + (skew(w) * inertia - skew(&jw)) * (0.5 * h)
}

/// `(dp/dw)' t` without forming it.
#[inline(always)]
pub fn momentum_jacobian_transposed(w: &Vec3, inertia: &Mat3, h: f64, s: f64, t: &Vec3) -> Vec3 {
    let jw = inertia * w;
    inertia * (t * s + t.cross(w) * (0.5 * h)) - w * (0.25 * h * h / s * jw.dot(t))
        + jw.cross(t) * (0.5 * h)
}

/// `dp/dh` of [`momentum`] (for `p-` call with `-h` and change the sign).
pub fn momentum_rate(w: &Vec3, inertia: &Mat3, h: f64, s: f64) -> Vec3 {
    let jw = inertia * w;
    jw * (-0.25 * h * w.norm_squared() / s) + w.cross(&jw) * 0.5
}

/// A position and an orientation, with the rotation matrix kept beside the quaternion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Centre of mass in the world, m.
    pub x: Vec3,
    /// Body to world.
    pub q: Quat,
    /// The matrix of `q`.
    pub r: Mat3,
}

impl Pose {
    /// The pose at `x` with orientation `q`.
    #[inline(always)]
    pub fn new(x: Vec3, q: Quat) -> Self {
        Self {
            x,
            q,
            r: rotation(&q),
        }
    }

    /// The world frame.
    pub fn identity() -> Self {
        Self::new(Vec3::zeros(), Quat::identity())
    }

    /// World position of a point given in the body frame.
    #[inline(always)]
    pub fn point(&self, p: &Vec3) -> Vec3 {
        self.x + self.r * p
    }

    /// The pose moved by `d`, world frame, and turned by `phi`, body frame.
    pub fn moved(&self, d: &Vec3, phi: &Vec3) -> Self {
        Self::new(self.x + d, self.q * exp(phi))
    }
}

/// Matrix of a unit quaternion.
#[inline(always)]
pub fn rotation(q: &Quat) -> Mat3 {
    let (w, x, y, z) = (q.w, q.i, q.j, q.k);
    let (x2, y2, z2) = (x + x, y + y, z + z);
    let (xx, yy, zz) = (x * x2, y * y2, z * z2);
    let (xy, xz, yz) = (x * y2, x * z2, y * z2);
    let (wx, wy, wz) = (w * x2, w * y2, w * z2);
    Mat3::new(
        1.0 - yy - zz,
        xy - wz,
        xz + wy,
        xy + wz,
        1.0 - xx - zz,
        yz - wx,
        xz - wy,
        yz + wx,
        1.0 - xx - yy,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx_difference as diff;

    fn approx_difference(a: &Mat3, b: &Mat3) -> f64 {
        (a - b).amax()
    }

    /// Central differences of a vector function.
    fn jacobian(x: &Vec3, f: impl Fn(&Vec3) -> Vec3) -> Mat3 {
        let e = 1e-6;
        Mat3::from_columns(&[0, 1, 2].map(|i| {
            let mut d = Vec3::zeros();
            d[i] = e;
            (f(&(x + d)) - f(&(x - d))) / (2.0 * e)
        }))
    }

    #[test]
    fn products_with_a_skew_matrix_match_it() {
        let (a, m) = (
            Vec3::new(0.3, -1.0, 2.0),
            Mat3::new(1.0, 2.0, -3.0, 0.5, 7.0, 1.5, -2.0, 4.0, 9.0),
        );
        assert!(diff(&skew_times(&a, &m), &(skew(&a) * m)) < 1e-15);
        assert!(diff(&times_skew(&m, &a), &(m * skew(&a))) < 1e-15);
    }

    #[test]
    fn log_inverts_exp() {
        for r in [
            Vec3::new(0.3, -1.0, 2.0),
            Vec3::new(1e-10, 0.0, 1e-11),
            Vec3::new(0.0, 3.1, 0.0),
            Vec3::new(0.02, 0.05, -0.01),
        ] {
            assert!((log(&exp(&r)) - r).norm() < 1e-14 * (1.0 + r.norm()), "{r}");
            assert!((rotation(&exp(&r)) - exp(&r).to_rotation_matrix().matrix()).amax() < 1e-15);
        }
    }

    #[test]
    fn log_jacobians_match_differences() {
        for r in [
            Vec3::new(0.3, -1.0, 2.0),
            Vec3::new(1e-4, 0.0, 2e-4),
            Vec3::new(0.05, 0.06, -0.062),
            Vec3::new(0.1, 0.02, 0.01),
        ] {
            let right = jacobian(&Vec3::zeros(), |d| log(&(exp(&r) * exp(d))));
            let left = jacobian(&Vec3::zeros(), |d| log(&(exp(d) * exp(&r))));
            assert!(diff(&right, &right_log_jacobian(&r)) < 1e-9);
            assert!(diff(&left, &left_log_jacobian(&r)) < 1e-9);
            let c = Vec3::new(0.7, -0.2, 0.4);
            let d = jacobian(&r, |r| right_log_jacobian(r) * c);
            assert!(diff(&d, &right_log_jacobian_derivative(&r, &c)) < 1e-8);
        }
    }

    #[test]
    fn increment_and_momentum_match_differences() {
        let w = Vec3::new(1.0, 5.0, 0.3);
        let j = Mat3::new(1.0, 0.1, 0.2, 0.1, 2.0, -0.1, 0.2, -0.1, 3.0);
        for h in [0.1, -0.1, 0.01] {
            let s = increment_scalar(&w, h);
            let dq = increment(&w, h, s);
            let k = jacobian(&w, |w| {
                log(&(dq.inverse() * increment(w, h, increment_scalar(w, h))))
            });
            assert!(diff(&k, &increment_jacobian(&w, h, s)) < 1e-9);
            let t = Vec3::new(-0.2, 0.9, 0.5);
            let kt = increment_jacobian(&w, h, s).transpose() * t;
            assert!((kt - increment_jacobian_transposed(&w, h, s, &t)).amax() < 1e-15);
            let pt = momentum_jacobian(&w, &j, h, s).transpose() * t;
            assert!((pt - momentum_jacobian_transposed(&w, &j, h, s, &t)).amax() < 1e-14);
            let p = |w: &Vec3, h: f64| momentum(w, &j, h, increment_scalar(w, h));
            let dp = jacobian(&w, |w| p(w, h));
            assert!(diff(&dp, &momentum_jacobian(&w, &j, h, s)) < 1e-8);
            let e = 1e-6;
            let dh = (p(&w, h + e) - p(&w, h - e)) / (2.0 * e);
            assert!((dh - momentum_rate(&w, &j, h, s)).amax() < 1e-8);
        }
    }

    /// physics: a torque-free body keeps its spatial momentum; the sign of the old momentum's gyroscopic term decides.
    #[test]
    fn torque_free_momentum_is_kept() {
        let j = Mat3::from_diagonal(&Vec3::new(1.0, 2.0, 3.0));
        let (mut w, mut q, h) = (Vec3::new(1.0, 5.0, 0.3), Quat::identity(), 0.01);
        let spatial = |w: &Vec3, q: &Quat| q * momentum(w, &j, h, increment_scalar(w, h));
        let start = spatial(&w, &q);
        for _ in 0..1000 {
            let s = increment_scalar(&w, h);
            q *= increment(&w, h, s);
            let old = momentum(&w, &j, -h, s);
            for _ in 0..20 {
                let s = increment_scalar(&w, h);
                let r = momentum(&w, &j, h, s) - old;
                let d = momentum_jacobian(&w, &j, h, s)
                    .try_inverse()
                    .expect("within the domain");
                w -= d * r;
            }
        }
        assert!((spatial(&w, &q) - start).norm() < 5e-13);
    }
}
