//! Free directions of a joint: coordinates, their rates, and the springs, dampers and actuators along them.
//!
//! A translation's coordinate is the child anchor's position along the direction in the parent's frame. A single
//! free rotation has the angle about its axis, continuous along a motion. Two or three free rotations have the
//! components of the logarithm of `r`. Rates are the components of the relative velocity in the parent's frame.

use super::joint::{Coupling, Joint, Relative, Row, Vec6};
use crate::spatial::{
    Mat3, Pose, Quat, Vec3, left_log_jacobian, log, right_log_jacobian,
    right_log_jacobian_derivative,
};
use std::f64::consts::TAU;

/// What a free direction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freedom {
    /// Sliding along the direction, m.
    Slide,
    /// The joint's only rotation: an unwound angle about the direction, rad.
    Angle,
    /// One of two or three rotations: a component of the rotation vector, rad.
    Turn,
}

/// A free direction with what acts along it.
#[derive(Clone, Copy, Debug)]
pub struct Direction {
    /// Sliding or turning.
    pub freedom: Freedom,
    /// Unit vector in the parent's frame.
    pub unit: Vec3,
    /// Name within the joint: `d`; `n1`, `n2`; `x`, `y`, `z` for slides, `angle`; `r1`, `r2`; `rx`, `ry`, `rz` for turns.
    pub name: &'static str,
    /// Spring, N/m or N m/rad.
    pub stiffness: f64,
    /// Coordinate at which the spring is relaxed.
    pub rest: f64,
    /// Damper, N s/m or N m s/rad.
    pub damping: f64,
    /// Coulomb friction, N or N m.
    pub friction: f64,
    /// Smallest coordinate, m or rad; minus infinity where the side is open.
    pub lower: f64,
    /// Largest coordinate, m or rad; infinity where the side is open.
    pub upper: f64,
    /// Ratio of rates after and before a limit is hit, 0 to 1.
    pub restitution: f64,
}

impl Direction {
    pub(crate) fn of_joint(slides: &[Vec3], turns: &[Vec3]) -> Vec<Self> {
        const SLIDES: [&[&str]; 4] = [&[], &["d"], &["n1", "n2"], &["x", "y", "z"]];
        const TURNS: [&[&str]; 4] = [&[], &["angle"], &["r1", "r2"], &["rx", "ry", "rz"]];
        let make = |freedom, unit: &Vec3, name| Self {
            freedom,
            unit: *unit,
            name,
            stiffness: 0.0,
            rest: 0.0,
            damping: 0.0,
            friction: 0.0,
            lower: f64::NEG_INFINITY,
            upper: f64::INFINITY,
            restitution: 0.0,
        };
        let turn = if turns.len() == 1 {
            Freedom::Angle
        } else {
            Freedom::Turn
        };
        let slides = slides
            .iter()
            .zip(SLIDES[slides.len()])
            .map(|(u, n)| make(Freedom::Slide, u, n));
        let turns = turns
            .iter()
            .zip(TURNS[turns.len()])
            .map(|(u, n)| make(turn, u, n));
        slides.chain(turns).collect()
    }

    /// Does its coordinate have a limit?
    pub fn is_limited(&self) -> bool {
        self.lower.is_finite() || self.upper.is_finite()
    }

    /// `m` or `rad`.
    pub fn unit_name(&self) -> &'static str {
        match self.freedom {
            Freedom::Slide => "m",
            _ => "rad",
        }
    }

    /// `N` or `N m`.
    pub fn force_unit(&self) -> &'static str {
        match self.freedom {
            Freedom::Slide => "N",
            _ => "N m",
        }
    }
}

/// Angle of `r` about `e`, in (-2 pi, 2 pi].
#[inline(always)]
fn twist(r: &Quat, e: &Vec3) -> f64 {
    2.0 * e.dot(&r.imag()).atan2(r.w)
}

/// `angle` moved by whole turns to within half a turn of `near`.
#[inline(always)]
pub(crate) fn unwind(angle: f64, near: f64) -> f64 {
    angle - TAU * ((angle - near) / TAU).round()
}

/// Derivative of [`twist`] by a rotation of `r` from the left (`side = 1`) or from the right (`side = -1`).
fn twist_row(r: &Quat, e: &Vec3, side: f64) -> Vec3 {
    let (w, v) = (r.w, r.imag());
    let s = e.dot(&v);
    (e * (w * w) + v.cross(e) * (w * side) + v * s) / (w * w + s * s)
}

impl Joint {
    /// Coordinate of direction `i`; for angles the branch nearest to `near`.
    pub fn coordinate(&self, i: usize, rel: &Relative, near: f64) -> f64 {
        let d = &self.directions[i];
        match d.freedom {
            Freedom::Slide => d.unit.dot(&(rel.arm - self.parent_anchor)),
            Freedom::Angle => unwind(twist(&rel.r, &d.unit), near),
            Freedom::Turn => d.unit.dot(&log(&rel.r)),
        }
    }

    /// Derivative of [`Joint::coordinate`] by the displacements of both bodies.
    pub fn coordinate_row(&self, i: usize, a: &Pose, b: &Pose, rel: &Relative) -> Row {
        let d = &self.directions[i];
        match d.freedom {
            Freedom::Slide => self.translation_row(&d.unit, a, b, rel),
            Freedom::Angle => Row::torque(&twist_row(&rel.r, &d.unit, 1.0), a, b),
            Freedom::Turn => Row::torque(&(right_log_jacobian(&log(&rel.r)) * d.unit), a, b),
        }
    }

    /// The unit force or torque along direction `i`: what an actuator exerts. The same row gives the rate.
    pub fn direction_row(&self, i: usize, a: &Pose, b: &Pose, rel: &Relative) -> Row {
        let d = &self.directions[i];
        match d.freedom {
            Freedom::Slide => self.translation_row(&d.unit, a, b, rel),
            _ => Row::torque(&d.unit, a, b),
        }
    }

    /// Displacement along direction `i` from one configuration to another.
    pub fn displacement(&self, i: usize, from: &Relative, to: &Relative) -> f64 {
        let d = &self.directions[i];
        match d.freedom {
            Freedom::Slide => d.unit.dot(&(to.arm - from.arm)),
            Freedom::Angle => unwind(twist(&(to.r * from.r.conjugate()), &d.unit), 0.0),
            Freedom::Turn => d.unit.dot(&log(&(to.r * from.r.conjugate()))),
        }
    }

    /// Derivative of [`Joint::displacement`] by the displacement of the bodies at its end.
    pub fn displacement_end_row(
        &self,
        i: usize,
        from: &Relative,
        to: &Relative,
        a: &Pose,
        b: &Pose,
    ) -> Row {
        let d = &self.directions[i];
        let inc = to.r * from.r.conjugate();
        match d.freedom {
            Freedom::Slide => self.translation_row(&d.unit, a, b, to),
            Freedom::Angle => Row::torque(&twist_row(&inc, &d.unit, 1.0), a, b),
            Freedom::Turn => Row::torque(&(right_log_jacobian(&log(&inc)) * d.unit), a, b),
        }
    }

    /// Derivative of [`Joint::displacement`] by the displacement of the bodies at its start.
    pub fn displacement_start_row(
        &self,
        i: usize,
        from: &Relative,
        to: &Relative,
        a: &Pose,
        b: &Pose,
    ) -> Row {
        let d = &self.directions[i];
        let inc = to.r * from.r.conjugate();
        match d.freedom {
            Freedom::Slide => -self.translation_row(&d.unit, a, b, from),
            Freedom::Angle => Row::torque(&-twist_row(&inc, &d.unit, -1.0), a, b),
            Freedom::Turn => Row::torque(&-(left_log_jacobian(&log(&inc)) * d.unit), a, b),
        }
    }

    /// Does any spring act?
    pub fn has_springs(&self) -> bool {
        self.directions.iter().any(|d| d.stiffness != 0.0)
    }

    /// Does any damper act?
    pub fn has_dampers(&self) -> bool {
        self.directions.iter().any(|d| d.damping != 0.0)
    }

    /// Force and torque of the springs on the child, in the parent's frame: minus the gradient of
    /// `1/2 sum k_i (c_i - rest_i)^2`, along the axes of the joint also where it is not closed. `winding` is the continuous angle where the joint has one.
    pub fn spring_force(&self, rel: &Relative, winding: f64) -> (Vec3, Vec3) {
        let (mut force, mut torque) = (Vec3::zeros(), Vec3::zeros());
        let mut turn = Vec3::zeros();
        for (i, d) in self.directions.iter().enumerate() {
            if d.stiffness == 0.0 {
                continue;
            }
            let f = d.unit * (-d.stiffness * (self.coordinate(i, rel, winding) - d.rest));
            match d.freedom {
                Freedom::Slide => force += f,
                Freedom::Angle => torque += f,
                Freedom::Turn => turn += f,
            }
        }
        if turn != Vec3::zeros() {
            torque += right_log_jacobian(&log(&rel.r)) * turn;
        }
        (force, torque)
    }

    /// The springs' wrenches: of their forces, then of their torques.
    #[inline]
    pub(crate) fn spring_wrench(
        &self,
        rel: &Relative,
        winding: f64,
        a: &Pose,
        b: &Pose,
    ) -> [Row; 2] {
        let (force, torque) = self.spring_force(rel, winding);
        [
            self.translation_row(&force, a, b, rel),
            Row::torque(&torque, a, b),
        ]
    }

    /// The wrench of a unit force of the spring of direction `i`. Where the joint is closed it is the gradient of the coordinate.
    pub(crate) fn spring_row(&self, i: usize, a: &Pose, b: &Pose, rel: &Relative) -> Row {
        match self.directions[i].freedom {
            Freedom::Angle => self.direction_row(i, a, b, rel),
            _ => self.coordinate_row(i, a, b, rel),
        }
    }

    /// `scale` times the derivative of the springs' wrenches, added to `out`.
    pub fn add_spring_derivative(
        &self,
        winding: f64,
        scale: f64,
        a: &Pose,
        b: &Pose,
        out: &mut Coupling,
    ) {
        let rel = self.relative(a, b);
        let (force, torque) = self.spring_force(&rel, winding);
        self.add_force_derivative(&(force * scale), a, b, &rel, out);
        Self::add_torque_derivative(&(torque * scale), a, b, out);
        for (i, d) in self.directions.iter().enumerate() {
            if d.freedom != Freedom::Turn && d.stiffness != 0.0 {
                let wrench = self.direction_row(i, a, b, &rel);
                let row = self.coordinate_row(i, a, b, &rel);
                out.add_outer(-d.stiffness * scale, &wrench, &row);
            }
        }
        if let Some(by_turn) = self.spring_torque_derivative(&rel) {
            for (k, e) in [Vec3::x(), Vec3::y(), Vec3::z()].iter().enumerate() {
                let row = Row::torque(&(by_turn.row(k).transpose() * scale), a, b);
                out.add_outer(1.0, &Row::torque(e, a, b), &row);
            }
        }
    }

    /// Derivative of the torque of springs on several rotations, in the parent's frame, by a turn from the left; `None` where
    /// there are none.
    pub(crate) fn spring_torque_derivative(&self, rel: &Relative) -> Option<Mat3> {
        let (mut stiffness, mut turn) = (Mat3::zeros(), Vec3::zeros());
        for (i, d) in self.directions.iter().enumerate() {
            if d.freedom == Freedom::Turn {
                stiffness -= d.unit * d.unit.transpose() * d.stiffness;
                turn -= d.unit * (d.stiffness * (self.coordinate(i, rel, 0.0) - d.rest));
            }
        }
        (stiffness != Mat3::zeros()).then(|| {
            // torque = Jr^-1(rho) turn(rho), rho turned from the left
            let rho = log(&rel.r);
            let by_rho =
                right_log_jacobian_derivative(&rho, &turn) + right_log_jacobian(&rho) * stiffness;
            by_rho * left_log_jacobian(&rho)
        })
    }

    /// Potential energy of the springs, J.
    pub fn spring_energy(&self, rel: &Relative, winding: f64) -> f64 {
        self.directions
            .iter()
            .enumerate()
            .filter(|(_, d)| d.stiffness != 0.0)
            .map(|(i, d)| 0.5 * d.stiffness * (self.coordinate(i, rel, winding) - d.rest).powi(2))
            .sum()
    }
}

impl Row {
    /// A torque `nu`, given in the parent's frame, on the child and its opposite on the parent.
    #[inline(always)]
    pub(crate) fn torque(nu: &Vec3, a: &Pose, b: &Pose) -> Self {
        Self {
            force: Vec3::zeros(),
            parent_torque: -nu,
            child_torque: b.r.tr_mul(&(a.r * nu)),
        }
    }

    /// The wrench on the parent, or the row's entries for the parent's displacement.
    #[inline(always)]
    pub fn parent(&self) -> Vec6 {
        let (f, t) = (&self.force, &self.parent_torque);
        Vec6::new(-f.x, -f.y, -f.z, t.x, t.y, t.z)
    }

    /// The same for the child.
    #[inline(always)]
    pub fn child(&self) -> Vec6 {
        let (f, t) = (&self.force, &self.child_torque);
        Vec6::new(f.x, f.y, f.z, t.x, t.y, t.z)
    }
}

impl std::ops::Add for Row {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self {
            force: self.force + other.force,
            parent_torque: self.parent_torque + other.parent_torque,
            child_torque: self.child_torque + other.child_torque,
        }
    }
}

impl std::ops::Mul<f64> for Row {
    type Output = Self;
    #[inline(always)]
    fn mul(self, s: f64) -> Self {
        Self {
            force: self.force * s,
            parent_torque: self.parent_torque * s,
            child_torque: self.child_torque * s,
        }
    }
}

impl std::ops::Neg for Row {
    type Output = Self;
    fn neg(self) -> Self {
        Self {
            force: -self.force,
            parent_torque: -self.parent_torque,
            child_torque: -self.child_torque,
        }
    }
}

impl Coupling {
    /// Adds `scale wrench row'`.
    pub(crate) fn add_outer(&mut self, scale: f64, wrench: &Row, row: &Row) {
        let (wa, wb) = (wrench.parent() * scale, wrench.child() * scale);
        let (ra, rb) = (row.parent(), row.child());
        self.aa.0 += wa * ra.transpose();
        self.ab.0 += wa * rb.transpose();
        self.ba.0 += wb * ra.transpose();
        self.bb.0 += wb * rb.transpose();
    }
}
