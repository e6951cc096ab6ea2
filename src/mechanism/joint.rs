//! Joints: sixteen kinds made of two generic constraints with selected rows (paper 000, appendix B).
//!
//! With parent a, child b and their anchors, in the parent's frame,
//!
//! - translation `y = R_a' (x_b + R_b p_b - x_a) - p_a`,
//! - rotation `r = q_a^-1 q_b q_off^-1`, of which the vector part is constrained.
//!
//! Of each, 0, 1 (along the axis), 2 (along its two normals) or 3 rows are constrained; the rest are the joint's
//! free directions, which carry coordinates, springs, dampers and actuators.

use super::coordinate::Direction;
use super::{CoordinateId, Field};
use crate::spatial::{Mat3, Pose, Quat, Vec3, log, rotation, skew, skew_times, times_skew};
use nalgebra::SMatrix;
use serde::{Deserialize, Serialize};

/// 6 x 6: a wrench's derivative by a displacement, both as (linear, angular).
pub type Mat6 = SMatrix<f64, 6, 6>;

/// The kinds of joints. In brackets: constrained rows of the translation, of the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JointKind {
    /// (3, 3)
    Fixed,
    /// (2, 3) slides along the axis
    Prismatic,
    /// (1, 3) slides normal to the axis
    Planar,
    /// (0, 3) translates freely
    FixedOrientation,
    /// (3, 2) turns about the axis
    Revolute,
    /// (2, 2) slides along and turns about the axis
    Cylindrical,
    /// (1, 2) moves in the plane normal to the axis
    PlanarAxis,
    /// (0, 2) translates freely, turns about the axis
    FreeRevolute,
    /// (3, 1) universal joint: turns about the two normals of the axis
    Orbital,
    /// (2, 1)
    PrismaticOrbital,
    /// (1, 1)
    PlanarOrbital,
    /// (0, 1)
    FreeOrbital,
    /// (3, 0) ball and socket
    Spherical,
    /// (2, 0)
    CylindricalFree,
    /// (1, 0)
    PlanarFree,
    /// (0, 0) no constraint: gives a free body its coordinates
    Floating,
}

impl JointKind {
    /// Every kind.
    pub const ALL: [Self; 16] = [
        Self::Fixed,
        Self::Prismatic,
        Self::Planar,
        Self::FixedOrientation,
        Self::Revolute,
        Self::Cylindrical,
        Self::PlanarAxis,
        Self::FreeRevolute,
        Self::Orbital,
        Self::PrismaticOrbital,
        Self::PlanarOrbital,
        Self::FreeOrbital,
        Self::Spherical,
        Self::CylindricalFree,
        Self::PlanarFree,
        Self::Floating,
    ];

    /// Constrained rows of translation and rotation.
    pub fn rows(self) -> (usize, usize) {
        // ALL lists the kinds with the rotation's rows falling from 3 and the translation's from 3 within
        let i = self as usize;
        (3 - i % 4, 3 - i / 4)
    }

    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Prismatic => "prismatic",
            Self::Planar => "planar",
            Self::FixedOrientation => "fixed_orientation",
            Self::Revolute => "revolute",
            Self::Cylindrical => "cylindrical",
            Self::PlanarAxis => "planar_axis",
            Self::FreeRevolute => "free_revolute",
            Self::Orbital => "orbital",
            Self::PrismaticOrbital => "prismatic_orbital",
            Self::PlanarOrbital => "planar_orbital",
            Self::FreeOrbital => "free_orbital",
            Self::Spherical => "spherical",
            Self::CylindricalFree => "cylindrical_free",
            Self::PlanarFree => "planar_free",
            Self::Floating => "floating",
        }
    }

    /// Does the kind refer to an axis?
    pub fn has_axis(self) -> bool {
        let (t, r) = self.rows();
        matches!(t, 1 | 2) || matches!(r, 1 | 2)
    }
}

/// A joint of a built mechanism.
#[derive(Clone, Debug)]
pub struct Joint {
    /// Name, unique among joints.
    pub name: String,
    /// Which rows are constrained.
    pub kind: JointKind,
    /// Index of the parent body; `None` is the world.
    pub parent: Option<usize>,
    /// Index of the child body.
    pub child: usize,
    /// Unit axis in the parent's frame.
    pub axis: Vec3,
    /// Anchor in the parent's frame, from its center of mass (from the origin for the world), m.
    pub parent_anchor: Vec3,
    /// Anchor in the child's frame, from its center of mass, m.
    pub child_anchor: Vec3,
    /// Orientation of the child in the parent at coordinates zero.
    pub offset: Quat,
    pub(crate) offset_matrix: Mat3,
    /// Constrained directions in the parent's frame: first those of the translation, then the rotation's.
    pub(crate) constrained: Vec<Vec3>,
    pub(crate) translation_rows: usize,
    /// Free directions in the parent's frame, translations first.
    pub directions: Vec<Direction>,
    /// Dampers act at a knot as forces against the rates after it.
    pub implicit: bool,
    /// Closes a loop: never a joint of the spanning tree.
    pub(crate) closes: bool,
    /// The joint of a free body with the world.
    pub(crate) frees: bool,
}

/// One constraint row as the wrench of its unit multiplier: on the parent `(-f, parent_torque)`, on the child
/// `(f, child_torque)`; forces in the world frame, torques in the body frame. The row of `G` is the same numbers.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub(crate) force: Vec3,
    pub(crate) parent_torque: Vec3,
    pub(crate) child_torque: Vec3,
}

impl Row {
    pub(crate) const ZERO: Self = Self {
        force: Vec3::new(0.0, 0.0, 0.0),
        parent_torque: Vec3::new(0.0, 0.0, 0.0),
        child_torque: Vec3::new(0.0, 0.0, 0.0),
    };
}

/// What a joint's rows and forces are computed from at one configuration.
#[derive(Clone, Copy, Debug)]
pub struct Relative {
    /// Position of the child's anchor relative to the parent's center of mass, parent's frame.
    pub arm: Vec3,
    /// Relative rotation `q_a^-1 q_b q_off^-1`.
    pub r: Quat,
}

impl Joint {
    pub(crate) fn new(
        name: String,
        kind: JointKind,
        ends: (Option<usize>, usize),
        axis: Vec3,
        anchors: (Vec3, Vec3),
        offset: Quat,
    ) -> Self {
        let axis = axis.normalize();
        let (n1, n2) = normals(&axis);
        let select = |rows: usize| match rows {
            0 => vec![],
            1 => vec![axis],
            2 => vec![n1, n2],
            _ => vec![Vec3::x(), Vec3::y(), Vec3::z()],
        };
        let (t, r) = kind.rows();
        let mut constrained = select(t);
        constrained.extend(select(r));
        Self {
            name,
            kind,
            parent: ends.0,
            child: ends.1,
            axis,
            parent_anchor: anchors.0,
            child_anchor: anchors.1,
            offset,
            offset_matrix: rotation(&offset),
            constrained,
            translation_rows: t,
            directions: Direction::of_joint(&select(3 - t), &select(3 - r)),
            implicit: false,
            closes: false,
            frees: false,
        }
    }

    /// Number of constraint rows.
    pub fn rows(&self) -> usize {
        self.constrained.len()
    }

    /// The relative position and rotation of the child.
    #[inline(always)]
    pub fn relative(&self, a: &Pose, b: &Pose) -> Relative {
        Relative {
            arm: a.r.tr_mul(&(b.point(&self.child_anchor) - a.x)),
            r: a.q.conjugate() * b.q * self.offset.conjugate(),
        }
    }

    /// The constraint's value `g`, (m, half sine of an angle).
    #[inline(always)]
    pub fn constraint(&self, rel: &Relative, g: &mut [f64]) {
        let y = rel.arm - self.parent_anchor;
        let v = rel.r.imag();
        let (t, r) = self.constrained.split_at(self.translation_rows);
        for (e, g) in t.iter().zip(g.iter_mut()) {
            *g = e.dot(&y);
        }
        for (e, g) in r.iter().zip(g[t.len()..].iter_mut()) {
            *g = e.dot(&v);
        }
    }

    /// Row `i` of the constraint's Jacobian `G`, by `(dx, dphi)` of both bodies.
    #[inline(always)]
    pub fn row(&self, i: usize, a: &Pose, b: &Pose, rel: &Relative) -> Row {
        let e = &self.constrained[i];
        if i < self.translation_rows {
            self.translation_row(e, a, b, rel)
        } else {
            self.rotation_row(e, rel)
        }
    }

    /// How the arm changes when the child's anchor moves by `e`.
    pub(crate) fn arm_by_child_anchor(&self, e: &Vec3, a: &Pose, b: &Pose) -> Vec3 {
        a.r.tr_mul(&(b.r * e))
    }

    /// Derivative of the coordinate of a slide by a component of an anchor; `None` where it does not move it.
    pub(crate) fn coordinate_by_anchor(
        &self,
        (joint, direction): CoordinateId,
        field: Field,
        (a, b): (&Pose, &Pose),
    ) -> Option<f64> {
        let d = &self.directions[direction];
        if d.freedom.turns() {
            return None;
        }
        match field {
            Field::ParentAnchor(of, k) if of == joint => Some(-d.unit[k]),
            Field::ChildAnchor(of, k) if of == joint => {
                let arm = self.arm_by_child_anchor(&Vec3::ith(k, 1.0), a, b);
                Some(d.unit.dot(&arm))
            }
            _ => None,
        }
    }

    /// How the rate along a translation `row` changes when the child's anchor moves by `e`; `omega` gives the angular
    /// velocities.
    pub(crate) fn rate_by_child_anchor(
        &self,
        row: &Vec3,
        e: &Vec3,
        (a, b): (&Pose, &Pose),
        omega: impl Fn(usize) -> Vec3,
    ) -> f64 {
        let on_child = e.cross(&b.r.tr_mul(&(a.r * row))).dot(&omega(self.child));
        let arm = self.arm_by_child_anchor(e, a, b);
        let on_parent = self.parent.map_or(0.0, |p| row.cross(&arm).dot(&omega(p)));
        on_child + on_parent
    }

    /// The wrench of a force `e` along a direction of the parent's frame; it acts at the child's anchor on both.
    #[inline(always)]
    pub(crate) fn translation_row(&self, e: &Vec3, a: &Pose, b: &Pose, rel: &Relative) -> Row {
        let force = a.r * e;
        Row {
            force,
            parent_torque: e.cross(&rel.arm),
            child_torque: self.child_anchor.cross(&b.r.tr_mul(&force)),
        }
    }

    #[inline(always)]
    fn rotation_row(&self, e: &Vec3, rel: &Relative) -> Row {
        let (w, v) = (0.5 * rel.r.w, rel.r.imag());
        let cross = v.cross(e) * 0.5;
        let along = e * w;
        Row {
            force: Vec3::zeros(),
            parent_torque: -(along + cross),
            child_torque: if self.offset == Quat::identity() {
                along - cross
            } else {
                self.offset_matrix.tr_mul(&(along - cross))
            },
        }
    }

    /// The derivative of the constraint's wrench `G' lambda` by `(dx, dphi)` of parent and child, added to `out`
    /// with the factor `scale`. Of a joint on the world only the child's part.
    pub fn add_wrench_derivative(
        &self,
        lambda: &[f64],
        scale: f64,
        a: &Pose,
        b: &Pose,
        out: &mut Coupling,
    ) {
        let rel = self.relative(a, b);
        let (mut mu, mut nu) = (Vec3::zeros(), Vec3::zeros());
        for (i, (e, l)) in self.constrained.iter().zip(lambda).enumerate() {
            if i < self.translation_rows {
                mu += e * *l;
            } else {
                nu += e * *l;
            }
        }
        if self.translation_rows > 0 {
            self.add_force_derivative(&(mu * scale), a, b, &rel, out);
        }
        if self.rows() > self.translation_rows {
            self.add_rotation_derivative(&(nu * scale), &rel, out);
        }
    }

    /// Derivative of the wrench of a force `mu`, constant in the parent's frame, at the child's anchor.
    pub(crate) fn add_force_derivative(
        &self,
        mu: &Vec3,
        a: &Pose,
        b: &Pose,
        rel: &Relative,
        out: &mut Coupling,
    ) {
        let pb = &self.child_anchor;
        let rel_r = b.r.tr_mul(&a.r); // parent to child
        let c = rel_r * mu;
        out.bb.add(3, 3, &skew_times(pb, &skew(&c)));
        if self.parent.is_none() {
            // the world does not move
            return;
        }
        let turn = times_skew(&a.r, mu); // d force = -turn dphi_a
        out.aa.add(0, 3, &turn);
        out.ba.add(0, 3, &-turn);
        // child's torque p x c, dc = -R_b'R_a [mu] dphi_a + [c] dphi_b
        let carried = times_skew(&rel_r, mu);
        out.ba.add(3, 3, &-skew_times(pb, &carried));
        // parent's torque mu x arm, d arm = R_a'(dx_b - dx_a) - R_a'R_b [p_b] dphi_b + [arm] dphi_a
        let mt = -turn.transpose(); // [mu] R_a'
        out.ab.add(3, 0, &mt);
        out.aa.add(3, 0, &-mt);
        out.ab.add(3, 3, &times_skew(&carried.transpose(), pb));
        out.aa.add(3, 3, &skew_times(mu, &skew(&rel.arm)));
    }

    fn add_rotation_derivative(&self, nu: &Vec3, rel: &Relative, out: &mut Coupling) {
        let (w, v) = (rel.r.w, rel.r.imag());
        let off = &self.offset_matrix;
        // dr = dr/dphi_a dphi_a + dr/dphi_b dphi_b, its scalar and vector parts; those by phi_b turned by the offset:
        // dv_a = ([v] - w)/2, dv_b = ([v] + w)/2 R_off, dw_a = v'/2, dw_b = -v'/2 R_off
        let dvb = (skew(&v) + Mat3::identity() * w) * 0.25;
        let nb = skew_times(nu, &dvb);
        let outer = nu * v.transpose() * 0.25;
        // torque_a = -(w nu + v x nu)/2, torque_b = R_off'(w nu - v x nu)/2
        let bb = nb - outer;
        let plain = self.offset == Quat::identity();
        out.bb
            .add(3, 3, &if plain { bb } else { off.tr_mul(&bb) * off });
        if self.parent.is_none() {
            return;
        }
        let dva = (skew(&v) - Mat3::identity() * w) * 0.25;
        let na = skew_times(nu, &dva);
        let (ab, ba) = (nb + outer, na + outer);
        out.aa.add(3, 3, &(na - outer));
        out.ab.add(3, 3, &if plain { ab } else { ab * off });
        out.ba.add(3, 3, &if plain { ba } else { off.tr_mul(&ba) });
    }

    /// Derivative of a torque `nu`, constant in the parent's frame, on the child and its opposite on the parent.
    pub(crate) fn add_torque_derivative(nu: &Vec3, a: &Pose, b: &Pose, out: &mut Coupling) {
        let rel_r = b.r.transpose() * a.r;
        out.ba.add(3, 3, &-(rel_r * skew(nu)));
        out.bb.add(3, 3, &skew(&(rel_r * nu)));
    }

    /// Derivative of the wrench of a force or torque `unit`, constant in the parent's frame, along a direction.
    pub(crate) fn add_direction_derivative(
        &self,
        direction: usize,
        unit: &Vec3,
        (a, b): (&Pose, &Pose),
        rel: &Relative,
        out: &mut Coupling,
    ) {
        if self.directions[direction].freedom.turns() {
            Self::add_torque_derivative(unit, a, b, out);
        } else {
            self.add_force_derivative(unit, a, b, rel, out);
        }
    }

    /// `d(G V)/dz`, one pair of rows per constraint row by `(dx, dphi)` of parent and child, for the velocities
    /// `(v, w)` of both: how the velocity constraint turns with the configuration.
    pub fn rate_derivative(
        &self,
        a: &Pose,
        b: &Pose,
        va: &[f64; 6],
        vb: &[f64; 6],
        out: &mut [([f64; 6], [f64; 6])],
    ) {
        // row i is V' d(G' e_i)/dz
        let (va, vb) = (Vec6::from(*va), Vec6::from(*vb));
        let mut unit = [0.0; 6];
        for (i, out) in out.iter_mut().enumerate().take(self.rows()) {
            unit.fill(0.0);
            unit[i] = 1.0;
            let mut c = Coupling::default();
            self.add_wrench_derivative(&unit[..self.rows()], 1.0, a, b, &mut c);
            *out = (
                (c.aa.0.tr_mul(&va) + c.ba.0.tr_mul(&vb)).into(),
                (c.ab.0.tr_mul(&va) + c.bb.0.tr_mul(&vb)).into(),
            );
        }
    }

    /// Largest violation of the constraint in m or rad.
    pub fn violation(&self, a: &Pose, b: &Pose) -> f64 {
        let rel = self.relative(a, b);
        let y = rel.arm - self.parent_anchor;
        let (t, r) = self.constrained.split_at(self.translation_rows);
        let angle = log(&rel.r);
        let translation = t.iter().map(|e| e.dot(&y).abs()).fold(0.0, f64::max);
        // the vector part is half the angle where it is small
        let rotation = r
            .iter()
            .map(|e| {
                if r.len() == 3 {
                    e.dot(&angle).abs()
                } else {
                    2.0 * e.dot(&rel.r.imag()).abs()
                }
            })
            .fold(0.0, f64::max);
        translation.max(rotation)
    }
}

/// 6-vector.
pub(crate) type Vec6 = nalgebra::SVector<f64, 6>;

/// A 6 x 6 block written in 3 x 3 quarters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block(pub Mat6);

impl Block {
    #[inline(always)]
    pub(crate) fn add(&mut self, row: usize, col: usize, m: &Mat3) {
        let mut view = self.0.fixed_view_mut::<3, 3>(row, col);
        view += m;
    }
}

/// Derivative of a pair's wrenches by the pair's displacements: `ab` is d(wrench on a)/d(displacement of b).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coupling {
    /// Parent's wrench by parent's displacement.
    pub aa: Block,
    /// Parent's wrench by child's displacement.
    pub ab: Block,
    /// Child's wrench by parent's displacement.
    pub ba: Block,
    /// Child's wrench by child's displacement.
    pub bb: Block,
}

impl Default for Coupling {
    fn default() -> Self {
        let zero = Block(Mat6::zeros());
        Self {
            aa: zero,
            ab: zero,
            ba: zero,
            bb: zero,
        }
    }
}

/// Two unit vectors that make a right-handed frame `(axis, n1, n2)`; the coordinate axes map to coordinate axes.
fn normals(axis: &Vec3) -> (Vec3, Vec3) {
    // the next coordinate axis after the dominant one, made normal
    let i = axis.iamax();
    let mut n1 = Vec3::zeros();
    n1[(i + 1) % 3] = 1.0;
    let n1 = (n1 - axis * axis.dot(&n1)).normalize();
    (n1, axis.cross(&n1))
}
