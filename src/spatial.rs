//! Rotations, the discrete rotational kinematics and momenta of a rigid body, and inertias of shapes.
//!
//! Quaternions are Hamilton's, scalar first where written as four numbers, and map body to world.
//! Small rotations are vectors `phi` in the body frame: `q -> q exp(phi/2)`, so `dq = 1/2 q (0, dphi)`.

mod law;

pub use law::{COARSE_TURN, FreeLaw, RotationLaw, increment, increment_scalar};

use nalgebra::{Matrix3, Quaternion, UnitQuaternion, Vector3};

/// Calls what is inlined with the machine's wide instructions, to the same bits on any. A macro, so that what is called is called
/// from one place and becomes part of it.
macro_rules! wide {
    ($call:expr) => {
        match pulp::Arch::new() {
            #[cfg(target_arch = "x86_64")]
            pulp::Arch::V3(simd) => simd.vectorize(|| $call),
            _ => $call,
        }
    };
}
pub(crate) use wide;

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

/// A position and an orientation, with the rotation matrix kept beside the quaternion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Center of mass in the world, m.
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
}
