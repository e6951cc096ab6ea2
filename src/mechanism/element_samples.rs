//! Elements as users write them, for the tests of this crate.

use super::*;
use crate::spatial::{Mat3, skew};
use Part::{Angular, Linear};

/// Points of two bodies, in their frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line(pub Vec3, pub Vec3);

impl Line {
    fn span(&self, poses: &[Pose]) -> Vec3 {
        poses[1].point(&self.1) - poses[0].point(&self.0)
    }

    /// A force `f` on the second point and its opposite on the first.
    fn wrench(&self, poses: &[Pose], f: &Vec3, out: &mut Jacobian) {
        out.add(0, 0, &-f, &-self.0.cross(&poses[0].r.tr_mul(f)));
        out.add(0, 1, f, &self.1.cross(&poses[1].r.tr_mul(f)));
    }

    /// Its derivative, with `df = k d(span)`.
    fn hessian(&self, poses: &[Pose], f: &Vec3, k: &Mat3, out: &mut Hessian) {
        for (on, (p, s)) in [(self.0, -1.0), (self.1, 1.0)].iter().enumerate() {
            let turned = skew(p) * poses[on].r.transpose();
            for (by, (q, t)) in [(self.0, -1.0), (self.1, 1.0)].iter().enumerate() {
                let by_dphi = -poses[by].r * skew(q);
                let k = k * (s * t);
                out.add((on, Linear), (by, Linear), &k);
                out.add((on, Linear), (by, Angular), &(k * by_dphi));
                out.add((on, Angular), (by, Linear), &(turned * k));
                out.add((on, Angular), (by, Angular), &(turned * k * by_dphi));
            }
            let local = poses[on].r.tr_mul(f) * *s;
            out.add((on, Angular), (on, Angular), &(skew(p) * skew(&local)));
        }
    }
}

/// A rod between two points: `(|d|^2/l - l)/2 = 0`.
#[derive(Debug)]
pub(crate) struct Rod(pub Line, pub f64);

impl HolonomicConstraint for Rod {
    fn bodies(&self) -> usize {
        2
    }
    fn rows(&self) -> usize {
        1
    }
    fn value(&self, poses: &[Pose], g: &mut [f64]) {
        g[0] = 0.5 * (self.0.span(poses).norm_squared() / self.1 - self.1);
    }
    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
        self.0.wrench(poses, &(self.0.span(poses) / self.1), out);
    }
    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
        let scale = lambda[0] / self.1;
        let f = self.0.span(poses) * scale;
        self.0.hessian(poses, &f, &(Mat3::identity() * scale), out);
    }
}

/// A spring between two points: stiffness and rest length.
#[derive(Debug)]
pub(crate) struct Rubber(pub Line, pub f64, pub f64);

impl Potential for Rubber {
    fn bodies(&self) -> usize {
        2
    }
    fn energy(&self, poses: &[Pose]) -> f64 {
        0.5 * self.1 * (self.0.span(poses).norm() - self.2).powi(2)
    }
    fn gradient(&self, poses: &[Pose], out: &mut Jacobian) {
        let d = self.0.span(poses);
        let f = d * (self.1 * (1.0 - self.2 / d.norm()));
        self.0.wrench(poses, &f, out);
    }
    fn hessian(&self, poses: &[Pose], out: &mut Hessian) {
        let d = self.0.span(poses);
        let (l, n) = (d.norm(), d.normalize());
        let slack = self.2 / l;
        let k = (Mat3::identity() * (1.0 - slack) + n * n.transpose() * slack) * self.1;
        let f = d * (self.1 * (1.0 - slack));
        self.0.hessian(poses, &f, &k, out);
    }
}

/// The second body does not move, seen from the first, along two directions of the first: `(R_0 e_i)'(v_1 - v_0) = 0`.
#[derive(Debug)]
pub(crate) struct Keels(pub [Vec3; 2]);

impl VelocityConstraint for Keels {
    fn bodies(&self) -> usize {
        2
    }
    fn rows(&self) -> usize {
        2
    }
    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
        for (i, e) in self.0.iter().enumerate() {
            let n = poses[0].r * e;
            out.add(i, 0, &-n, &Vec3::zeros());
            out.add(i, 1, &n, &Vec3::zeros());
        }
    }
    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
        let e = self.0[0] * lambda[0] + self.0[1] * lambda[1];
        let turn = poses[0].r * skew(&e);
        out.add((0, Linear), (0, Angular), &turn);
        out.add((1, Linear), (0, Angular), &-turn);
    }
}

/// A knife edge along x of the body's frame: no motion along y.
#[derive(Debug)]
pub(crate) struct Skate;

impl VelocityConstraint for Skate {
    fn bodies(&self) -> usize {
        1
    }
    fn rows(&self) -> usize {
        1
    }
    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
        out.add(0, 0, &(poses[0].r * Vec3::y()), &Vec3::zeros());
    }
    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
        let turn = -poses[0].r * skew(&(Vec3::y() * lambda[0]));
        out.add((0, Linear), (0, Angular), &turn);
    }
}

/// A gear with the rows of its value, or with those of its impulses, as a user's element.
#[derive(Debug)]
struct Checked<'a>(&'a Mechanism, &'a AttachedConstraint);

impl Checked<'_> {
    fn rows_of(&self, poses: &[Pose], which: Rows, out: &mut Jacobian) {
        let mut rows = vec![nalgebra::SVector::zeros(); self.1.bodies.len()];
        self.1.jacobian(&self.0.joints, poses, which, &mut rows);
        for (b, row) in rows.iter().enumerate() {
            out.add_six(0, b, row);
        }
    }
}

impl VelocityConstraint for Checked<'_> {
    fn bodies(&self) -> usize {
        self.1.bodies.len()
    }
    fn rows(&self) -> usize {
        1
    }
    fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
        self.rows_of(poses, Rows::Impulse, out);
    }
    fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
        let n = self.1.bodies.len();
        let mut blocks = vec![Mat6::zeros(); n * n];
        self.1.hessian(&self.0.joints, poses, lambda, &mut blocks);
        for (k, block) in blocks.iter().enumerate() {
            out.add_block(k / n, k % n, block);
        }
    }
}

/// Rows of the value against the value; of the impulses against their Hessian.
pub(crate) fn check_gear(
    m: &Mechanism,
    c: &AttachedConstraint,
    poses: &[Pose],
) -> Result<(), DerivativeError> {
    let checked = Checked(m, c);
    check_velocity_constraint(&checked, poses)?;
    // branches near those of these poses, so that differences do not cross one
    let mut g = [0.0];
    c.value(&m.joints, poses, |_| 0.1, &mut g);
    super::check::check_value(
        poses,
        |out| checked.rows_of(poses, Rows::Value, out),
        |moved| {
            let mut h = [0.0];
            c.value(&m.joints, moved, |_| 0.1, &mut h);
            vec![h[0] - g[0]]
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn line() -> Line {
        Line(Vec3::new(0.2, -0.3, 0.4), Vec3::new(-0.1, 0.5, 0.2))
    }

    #[test]
    fn right_derivatives_pass_and_wrong_ones_are_named() {
        for seed in 0..5 {
            let (one, two) = (random_poses(1, seed), random_poses(2, seed));
            check_constraint(&Rod(line(), 0.9), &two).expect("right");
            check_potential(&Rubber(line(), 30.0, 0.4), &two).expect("right");
            check_velocity_constraint(&Keels([Vec3::x(), Vec3::new(0.0, 0.6, 0.8)]), &two)
                .expect("right");
            check_velocity_constraint(&Skate, &one).expect("right");
        }
        /// A skate whose rows turn the wrong way.
        #[derive(Debug)]
        struct Wrong;
        impl VelocityConstraint for Wrong {
            fn bodies(&self) -> usize {
                1
            }
            fn rows(&self) -> usize {
                1
            }
            fn jacobian(&self, poses: &[Pose], out: &mut Jacobian) {
                Skate.jacobian(poses, out);
            }
            fn hessian(&self, poses: &[Pose], lambda: &[f64], out: &mut Hessian) {
                Skate.hessian(poses, &[-lambda[0]], out);
            }
        }
        let error = check_velocity_constraint(&Wrong, &random_poses(1, 3)).unwrap_err();
        assert!(
            error
                .what
                .starts_with("hessian, multiplier of row 0, force x on body 0 by dphi x of body 0"),
            "{error}"
        );
        let error = check_constraint(&Rod(line(), 1.0), &random_poses(1, 3)).unwrap_err();
        assert!(error.what.starts_with("number of bodies"), "{error}");
    }

    #[test]
    fn wrong_descriptions_of_elements_are_named() {
        let body = || BodySpec::new(1.0).shape(Shape::Sphere(0.1)).free();
        let two = || MechanismBuilder::new().body("a", body()).body("b", body());
        let rod: Arc<dyn HolonomicConstraint> = Arc::new(Rod(line(), 1.0));
        for (bodies, message) in [
            (&["a", "c"][..], "`rod` refers to the unknown body `c`"),
            (&["a", "a"], "constraint `rod` names body `a` twice"),
            (&["a"], "constraint `rod` acts on 2 bodies, 1 are named"),
        ] {
            let error = two().constraint("rod", bodies, rod.clone()).build();
            let error = error.expect_err("wrong");
            assert_eq!(error.message, message);
            assert_eq!(error.path[..2], ["constraints", "rod"]);
        }
    }
}
