//! Springs and dampers between points of two bodies, and actuators.

use super::joint::{Coupling, Joint, Row};
use super::range::Range;
use crate::spatial::{Mat3, Pose, Vec3, skew};

/// A shorter line between two points has no direction, m.
const SHORTEST: f64 = 1e-12;

/// A spring and damper along the line between a point of the parent and a point of the child.
#[derive(Clone, Debug)]
pub struct Spring {
    /// Name, unique among springs.
    pub name: String,
    /// Index of a body, or the world.
    pub parent: Option<usize>,
    /// Index of a body.
    pub child: usize,
    /// Point in the parent's frame, m.
    pub parent_anchor: Vec3,
    /// Point in the child's frame, m.
    pub child_anchor: Vec3,
    /// N/m
    pub stiffness: f64,
    /// Length at which the spring is relaxed, m.
    pub rest: f64,
    /// N s/m
    pub damping: f64,
    /// As of [`Joint::implicit`](super::Joint::implicit).
    pub implicit: bool,
}

impl Spring {
    fn line(&self, a: &Pose, b: &Pose) -> Vec3 {
        b.point(&self.child_anchor) - a.point(&self.parent_anchor)
    }

    /// Distance of the two points, m.
    pub fn length(&self, a: &Pose, b: &Pose) -> f64 {
        self.line(a, b).norm()
    }

    /// The wrench of a force `f` (world) pulling the child's point, and its opposite the parent's.
    fn wrench(&self, f: &Vec3, a: &Pose, b: &Pose) -> Row {
        Row {
            force: *f,
            parent_torque: -self.parent_anchor.cross(&a.r.tr_mul(f)),
            child_torque: self.child_anchor.cross(&b.r.tr_mul(f)),
        }
    }

    /// Derivative of the length, which is also the wrench of a unit force that pushes the points apart.
    pub fn length_row(&self, a: &Pose, b: &Pose) -> Row {
        // where the points meet the line has no direction, and a unit force along it none either
        let n = self.line(a, b).try_normalize(SHORTEST).unwrap_or_default();
        self.wrench(&n, a, b)
    }

    /// The spring's force on the child's point, world frame.
    fn force(&self, a: &Pose, b: &Pose) -> Vec3 {
        let d = self.line(a, b);
        let l = d.norm();
        let slack = if l > SHORTEST { self.rest / l } else { 0.0 };
        d * (-self.stiffness * (1.0 - slack))
    }

    /// The spring's wrench.
    pub fn spring_wrench(&self, a: &Pose, b: &Pose) -> Row {
        self.wrench(&self.force(a, b), a, b)
    }

    /// `scale` times the derivative of the spring's wrench, and of `tension` along the line (the damper's impulse
    /// with its size held), added to `out`.
    pub fn add_derivative(&self, scale: f64, tension: f64, a: &Pose, b: &Pose, out: &mut Coupling) {
        let (f, k) = self.force_by_line(scale, tension, a, b);
        // d line = [-1, R_a [p_a]] on the parent, [1, -R_b [p_b]] on the child
        let (pa, pb) = (skew(&self.parent_anchor), skew(&self.child_anchor));
        let (la, lb) = (a.r * pa, -b.r * pb);
        let ends = [(-k, k * la), (k, k * lb)];
        let (ra, rb) = (-pa * a.r.transpose(), pb * b.r.transpose());
        for (j, (dx, dphi)) in ends.iter().enumerate() {
            let (on_a, on_b) = if j == 0 {
                (&mut out.aa, &mut out.ba)
            } else {
                (&mut out.ab, &mut out.bb)
            };
            on_a.add(0, 0, &-dx);
            on_a.add(0, 3, &-dphi);
            on_a.add(3, 0, &(ra * dx));
            on_a.add(3, 3, &(ra * dphi));
            on_b.add(0, 0, dx);
            on_b.add(0, 3, dphi);
            on_b.add(3, 0, &(rb * dx));
            on_b.add(3, 3, &(rb * dphi));
        }
        // the force is fixed in the world while the arms turn: torque p x R'f
        out.aa.add(3, 3, &-(pa * skew(&a.r.tr_mul(&f))));
        out.bb.add(3, 3, &(pb * skew(&b.r.tr_mul(&f))));
    }

    /// How the line changes when the parent's or the child's anchor moves by `e`.
    fn line_by_anchor(&self, e: &Vec3, parent: bool, a: &Pose, b: &Pose) -> Vec3 {
        if parent { -(a.r * e) } else { b.r * e }
    }

    /// The same of the length.
    pub(crate) fn length_by_anchor(&self, e: &Vec3, parent: bool, a: &Pose, b: &Pose) -> f64 {
        let n = self.line(a, b).try_normalize(SHORTEST).unwrap_or_default();
        n.dot(&self.line_by_anchor(e, parent, a, b))
    }

    /// The same of `scale` times the spring's wrench and of a held `tension` along the line.
    pub(crate) fn wrench_by_anchor(
        &self,
        e: &Vec3,
        parent: bool,
        scale: f64,
        tension: f64,
        a: &Pose,
        b: &Pose,
    ) -> Row {
        let (force, stiffness) = self.force_by_line(scale, tension, a, b);
        let change = stiffness * self.line_by_anchor(e, parent, a, b);
        let mut row = self.wrench(&change, a, b);
        if parent {
            row.parent_torque -= e.cross(&a.r.tr_mul(&force));
        } else {
            row.child_torque += e.cross(&b.r.tr_mul(&force));
        }
        row
    }

    /// `scale` times the spring's force plus `tension` along the line, and its derivative by the line.
    fn force_by_line(&self, scale: f64, tension: f64, a: &Pose, b: &Pose) -> (Vec3, Mat3) {
        let d = self.line(a, b);
        let l = d.norm();
        let n = d.try_normalize(SHORTEST).unwrap_or_default();
        let f = self.force(a, b) * scale + n * tension;
        let nn = n * n.transpose();
        let inverse = if l > SHORTEST { 1.0 / l } else { 0.0 };
        let slack = self.rest * inverse;
        let k = (Mat3::identity() * (1.0 - slack) + nn * slack) * (-self.stiffness * scale)
            + (Mat3::identity() - nn) * (tension * inverse);
        (f, k)
    }

    /// Potential energy, J.
    pub fn energy(&self, a: &Pose, b: &Pose) -> f64 {
        0.5 * self.stiffness * (self.length(a, b) - self.rest).powi(2)
    }
}

/// Where a control acts.
#[derive(Clone, Debug)]
pub enum Drive {
    /// A force or torque along a free direction of a joint.
    Joint {
        /// Index of the joint.
        joint: usize,
        /// Index among the joint's free directions.
        direction: usize,
    },
    /// A wrench on a body: the control times these.
    Wrench {
        /// Index of the body.
        body: usize,
        /// Force per unit of control.
        force: Vec3,
        /// Is the force turned with the body? Else it is fixed in the world.
        in_body: bool,
        /// Where the force acts, body frame, from the center of mass, m.
        point: Vec3,
        /// Torque per unit of control, body frame, N m.
        torque: Vec3,
    },
}

/// The impulse by which a damper acts at a knot between intervals `h-` and `h`,
///
/// ```text
/// -d (b s- + a s),
/// ```
///
/// where `s-` and `s` are its displacements over both, m or rad. If velocities are read at the knot, no interval follows, and `s` is the
/// rate there. Half of the impulse over an interval acts at either end: `a = b = 1/2`. Implicit dampers act as a force `-d s/h` at the knot
/// does: `b = 0`, `a = (h- + h)/2h`, and `h-/2` for rates that are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DamperLaw {
    is_implicit: bool,
}

impl DamperLaw {
    pub fn new(is_implicit: bool) -> Self {
        Self { is_implicit }
    }

    pub fn is_implicit(self) -> bool {
        self.is_implicit
    }

    /// `b`
    pub fn before(self) -> f64 {
        if self.is_implicit { 0.0 } else { 0.5 }
    }

    /// `a`, of a rate that is read in s; `h` is then 0.
    pub fn after(self, h_prev: f64, h: f64) -> f64 {
        match (self.is_implicit, h == 0.0) {
            (false, false) => 0.5,
            (false, true) => 0.0,
            (true, false) => 0.5 * (h_prev + h) / h,
            (true, true) => 0.5 * h_prev,
        }
    }

    /// How that changes with the intervals before and after.
    pub fn after_by_intervals(self, h_prev: f64, h: f64) -> [f64; 2] {
        match (self.is_implicit, h == 0.0) {
            (false, _) => [0.0; 2],
            (true, false) => [0.5 / h, -0.5 * h_prev / (h * h)],
            (true, true) => [0.5, 0.0],
        }
    }
}

/// By what a rate after a knot displaces: the interval, or 1 if the rate is read there.
pub(crate) fn displaced_over(h: f64) -> f64 {
    if h == 0.0 { 1.0 } else { h }
}

/// A scalar control.
#[derive(Clone, Debug)]
pub struct Actuator {
    /// Name, unique among actuators.
    pub name: String,
    /// Where it acts.
    pub drive: Drive,
    /// What a unit of the control exerts.
    pub gain: f64,
    /// Smallest and largest control.
    pub bounds: Option<(f64, f64)>,
    /// Smallest and largest effort, the gain times the control: beyond it is cut.
    pub effort_limits: Range,
}

/// Width of the rounded corners where an effort is cut, relative to the range.
const CORNER: f64 = 1e-6;

/// `x` kept above zero on the central path `s (s - x) = kappa`, and the derivative.
fn positive(x: f64, kappa: f64) -> (f64, f64) {
    let root = (x * x + 4.0 * kappa).sqrt();
    let s = if x > 0.0 {
        0.5 * (x + root)
    } else {
        2.0 * kappa / (root - x)
    };
    (s, s / root)
}

impl Actuator {
    /// The control whose effort, the gain times it, stays within the limits, and its derivative by the control. Above a
    /// limit `l` the effort `e = gain u` becomes `l + s` with `s (s - (e - l)) = kappa`, a cut with corners rounded over
    /// `sqrt(kappa)`, a millionth of the range.
    pub(crate) fn exerted(&self, u: f64) -> (f64, f64) {
        self.cut(u, CORNER * CORNER)
    }

    /// The derivative where the corners are rounded over `sqrt(kappa)` of the range, if that is more.
    pub(crate) fn relaxed_slope(&self, u: f64, kappa: f64) -> f64 {
        self.cut(u, kappa.max(CORNER * CORNER)).1
    }

    fn cut(&self, u: f64, relative: f64) -> (f64, f64) {
        let r = &self.effort_limits;
        if *r == Range::OPEN || self.gain == 0.0 {
            return (u, 1.0);
        }
        let kappa = relative * self.effort_range().powi(2);
        let (mut e, mut slope) = (self.gain * u, 1.0);
        if r.lower.is_finite() {
            let (s, by) = positive(e - r.lower, kappa);
            (e, slope) = (r.lower + s, slope * by);
        }
        if r.upper.is_finite() {
            let (s, by) = positive(r.upper - e, kappa);
            (e, slope) = (r.upper - s, slope * by);
        }
        (e / self.gain, slope)
    }

    /// Size of the range of efforts, an open side taken as 0.
    fn effort_range(&self) -> f64 {
        let open = |v: f64| if v.is_finite() { v } else { 0.0 };
        let r = &self.effort_limits;
        (open(r.upper) - open(r.lower)).abs().max(1e-12)
    }

    /// Derivative of the effort exerted at control `u` by the upper or the lower limit, the corners rounded as in
    /// [`Actuator::relaxed_slope`] and in proportion to the range.
    pub(crate) fn effort_by_limit(&self, u: f64, upper: bool, kappa: f64) -> f64 {
        let (r, size) = (&self.effort_limits, self.effort_range());
        if self.gain == 0.0 {
            return 0.0;
        }
        let relative = kappa.max(CORNER * CORNER);
        let kappa = relative * size * size;
        // d kappa/d limit: the range grows with the upper limit, shrinks with the lower one, an open side being 0
        let open = |v: f64| if v.is_finite() { v } else { 0.0 };
        let grows = (open(r.upper) - open(r.lower)).signum() * if upper { 1.0 } else { -1.0 };
        let by_kappa = 2.0 * relative * size * grows;
        // of s by kappa
        let widen = |x: f64| 1.0 / (x * x + 4.0 * kappa).sqrt();
        let (mut e, mut by) = (self.gain * u, 0.0);
        if r.lower.is_finite() {
            let x = e - r.lower;
            let (s, slope) = positive(x, kappa);
            by = widen(x) * by_kappa + if upper { 0.0 } else { 1.0 - slope };
            e = r.lower + s;
        }
        if r.upper.is_finite() {
            let x = r.upper - e;
            let (_, slope) = positive(x, kappa);
            by = slope * by - widen(x) * by_kappa + if upper { 1.0 - slope } else { 0.0 };
        }
        by
    }

    /// The wrench of a unit of control.
    pub(crate) fn row(&self, joints: &[Joint], poses: (&Pose, &Pose)) -> Row {
        self.unit_row(joints, poses) * self.gain
    }

    /// The same with gain 1; a wrench on a body has no opposite.
    pub(crate) fn unit_row(&self, joints: &[Joint], poses: (&Pose, &Pose)) -> Row {
        let (a, b) = poses;
        match &self.drive {
            Drive::Joint { joint, direction } => {
                let j = &joints[*joint];
                j.direction_row(*direction, a, b, &j.relative(a, b))
            }
            Drive::Wrench {
                force,
                in_body,
                point,
                torque,
                ..
            } => {
                let (world, body) = if *in_body {
                    (b.r * force, *force)
                } else {
                    (*force, b.r.tr_mul(force))
                };
                Row {
                    force: world,
                    parent_torque: Vec3::zeros(),
                    child_torque: point.cross(&body) + torque,
                }
            }
        }
    }

    /// `u` times the derivative of [`Actuator::row`] by the configuration, added to `out`.
    pub(crate) fn add_derivative(
        &self,
        u: f64,
        joints: &[Joint],
        poses: (&Pose, &Pose),
        out: &mut Coupling,
    ) {
        let ((a, b), u) = (poses, u * self.gain);
        match &self.drive {
            Drive::Joint { joint, direction } => {
                let j = &joints[*joint];
                let d = &j.directions[*direction];
                let f = d.unit * u;
                if d.freedom == super::Freedom::Slide {
                    j.add_force_derivative(&f, a, b, &j.relative(a, b), out);
                } else {
                    Joint::add_torque_derivative(&f, a, b, out);
                }
            }
            Drive::Wrench {
                force,
                in_body,
                point,
                ..
            } => {
                if *in_body {
                    out.bb.add(0, 3, &-(b.r * skew(&(force * u))));
                } else {
                    let local = b.r.tr_mul(force) * u;
                    out.bb.add(3, 3, &(skew(point) * skew(&local)));
                }
            }
        }
    }
}
