//! How a joint's wrenches turn with the configuration, as a gradient: for multipliers (or velocities) of the two bodies
//! the derivative of `multipliers . wrench(z)`. A few cross products in place of the matrices of
//! [`Joint::add_wrench_derivative`] and of [`Actuator::add_derivative`].

use super::joint::{Joint, Relative};
use super::{Actuator, Drive, Freedom};
use crate::spatial::{Pose, Vec3};

/// (linear, angular) of the parent, then of the child.
pub(crate) type Pair = [(Vec3, Vec3); 2];

fn add(out: &mut Pair, parent: (Vec3, Vec3), child: (Vec3, Vec3)) {
    for ((x, phi), (dx, dphi)) in out.iter_mut().zip([parent, child]) {
        *x += dx;
        *phi += dphi;
    }
}

impl Joint {
    /// The gradient by the displacements of both bodies of `m . (G' lambda)`.
    #[inline]
    pub(crate) fn pull_wrench(
        &self,
        lambda: &[f64],
        m: &Pair,
        (a, b): (&Pose, &Pose),
        rel: &Relative,
    ) -> Pair {
        let mut out = Pair::default();
        let (force, torque) = lambda.split_at(self.translation_rows);
        let (along, about) = self.constrained.split_at(self.translation_rows);
        let sum = |units: &[Vec3], l: &[f64]| {
            let terms = units.iter().zip(l);
            terms.fold(Vec3::zeros(), |sum, (e, l)| sum + e * *l)
        };
        if !along.is_empty() {
            self.pull_force(&sum(along, force), m, (a, b), rel, &mut out);
        }
        if !about.is_empty() {
            self.pull_rotation(&sum(about, torque), m, rel, &mut out);
        }
        out
    }

    /// The same of a force `e`, constant in the parent's frame, at the child's anchor:
    /// `S = R_a e . (b_f - a_f) + a_t . (e x arm) + b_t . (p x R_b' R_a e)`.
    #[inline(always)]
    fn pull_force(
        &self,
        e: &Vec3,
        [(af, at), (bf, bt)]: &Pair,
        (a, b): (&Pose, &Pose),
        rel: &Relative,
        out: &mut Pair,
    ) {
        let p = &self.child_anchor;
        let lever = bt.cross(p);
        let seen = a.r.tr_mul(&(bf - af + b.r * lever));
        // the parent's torque turns with the arm
        let by_arm = at.cross(e);
        let world = a.r * by_arm;
        let on_a = e.cross(&seen) - rel.arm.cross(&by_arm);
        let on_b = lever.cross(&b.r.tr_mul(&(a.r * e))) + p.cross(&b.r.tr_mul(&world));
        add(out, (-world, on_a), (world, on_b));
    }

    /// The same of a torque `nu`, constant in the parent's frame: `S = b_t . (R_b' R_a nu) - a_t . nu`.
    #[inline(always)]
    fn pull_torque(nu: &Vec3, [_, (_, bt)]: &Pair, (a, b): (&Pose, &Pose), out: &mut Pair) {
        let on_a = nu.cross(&a.r.tr_mul(&(b.r * bt)));
        let on_b = bt.cross(&b.r.tr_mul(&(a.r * nu)));
        add(out, (Vec3::zeros(), on_a), (Vec3::zeros(), on_b));
    }

    /// The same of the rotation's rows: with `r = (w, v)`, `S = (w nu.(b - a) - v.(nu x (a + b)))/2`, b the child's
    /// torque multiplier in the frame of `r`.
    #[inline(always)]
    fn pull_rotation(&self, nu: &Vec3, [(_, at), (_, bt)]: &Pair, rel: &Relative, out: &mut Pair) {
        let (w, v) = (rel.r.w, rel.r.imag());
        let bt = self.offset_matrix * bt;
        let by_w = 0.25 * nu.dot(&(bt - at));
        let by_v = (at + bt).cross(nu) * 0.25;
        // dr = (1, -phi_a/2) r and r (1, phi_b/2)
        let (along, cross) = (v * by_w - by_v * w, v.cross(&by_v));
        let on_b = self.offset_matrix.tr_mul(&(-along - cross));
        add(out, (Vec3::zeros(), along - cross), (Vec3::zeros(), on_b));
    }
}

impl Actuator {
    /// The gradient by the displacements of both bodies of `m . (u wrench)`, the wrench that of [`Actuator::row`].
    #[inline]
    pub(crate) fn pull_wrench(
        &self,
        u: f64,
        joints: &[Joint],
        m: &Pair,
        (a, b): (&Pose, &Pose),
    ) -> Pair {
        let (mut out, u) = (Pair::default(), u * self.gain);
        match &self.drive {
            Drive::Joint { joint, direction } => {
                let j = &joints[*joint];
                let d = &j.directions[*direction];
                let unit = d.unit * u;
                match d.freedom {
                    Freedom::Slide => j.pull_force(&unit, m, (a, b), &j.relative(a, b), &mut out),
                    Freedom::Angle | Freedom::Turn => {
                        Joint::pull_torque(&unit, m, (a, b), &mut out);
                    }
                }
            }
            Drive::Wrench {
                force,
                in_body,
                point,
                ..
            } => {
                let [_, (bf, bt)] = m;
                // in the body `bf . R f`, in the world `bt . (p x R' f)`
                let turn = if *in_body {
                    force.cross(&b.r.tr_mul(bf))
                } else {
                    bt.cross(point).cross(&b.r.tr_mul(force))
                };
                out[1].1 = turn * u;
            }
        }
        out
    }
}
