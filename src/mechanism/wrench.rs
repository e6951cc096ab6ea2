//! Wrenches on lists of six numbers a body: force (or displacement, velocity) in the world, torque in the body.

use super::{Coupling, Mechanism, Row, Vec6};
use crate::spatial::{Mat3, Vec3};

/// Three numbers of a list as a vector.
#[inline(always)]
pub(crate) fn vec3(v: &[f64], at: usize) -> Vec3 {
    Vec3::new(v[at], v[at + 1], v[at + 2])
}

/// Six numbers of a body as a vector.
#[inline(always)]
pub(crate) fn six(v: &[f64], body: usize) -> Vec6 {
    Vec6::from_column_slice(&v[6 * body..6 * body + 6])
}

/// Adds `scale` times six numbers to those of a body.
#[inline(always)]
pub(crate) fn add_six(v: &mut [f64], body: usize, d: &Vec6, scale: f64) {
    for (v, d) in v[6 * body..6 * body + 6].iter_mut().zip(d.iter()) {
        *v += scale * d;
    }
}

/// Adds `scale` times a wrench to the six numbers of each body.
#[inline(always)]
pub(crate) fn add_wrench(
    out: &mut [f64],
    parent: Option<usize>,
    child: usize,
    row: &Row,
    scale: f64,
) {
    let f = row.force * scale;
    let t = row.child_torque * scale;
    let o = &mut out[6 * child..6 * child + 6];
    o[0] += f.x;
    o[1] += f.y;
    o[2] += f.z;
    o[3] += t.x;
    o[4] += t.y;
    o[5] += t.z;
    if let Some(p) = parent {
        let t = row.parent_torque * scale;
        let o = &mut out[6 * p..6 * p + 6];
        o[0] -= f.x;
        o[1] -= f.y;
        o[2] -= f.z;
        o[3] += t.x;
        o[4] += t.y;
        o[5] += t.z;
    }
}

/// Six numbers of a body as two vectors.
#[inline(always)]
fn linear_and_angular(v: &[f64], body: usize) -> (Vec3, Vec3) {
    let v = &v[6 * body..6 * body + 6];
    (Vec3::new(v[0], v[1], v[2]), Vec3::new(v[3], v[4], v[5]))
}

/// A wrench's product with six numbers of each body.
#[inline(always)]
pub(crate) fn dot(v: &[f64], parent: Option<usize>, child: usize, row: &Row) -> f64 {
    let (x, p) = linear_and_angular(v, child);
    let on_child = row.force.dot(&x) + row.child_torque.dot(&p);
    match parent {
        None => on_child,
        Some(b) => {
            let (x, p) = linear_and_angular(v, b);
            on_child + (row.parent_torque.dot(&p) - row.force.dot(&x))
        }
    }
}

/// `row M^-1 row'`: how much a unit impulse along a row between two bodies moves along it.
pub(crate) fn compliance(
    m: &Mechanism,
    inverse_inertia: &[Mat3],
    (parent, child): (Option<usize>, usize),
    row: &Row,
) -> f64 {
    let part = |b: usize, t: &Vec3| {
        row.force.norm_squared() / m.bodies[b].mass + t.dot(&(inverse_inertia[b] * t))
    };
    part(child, &row.child_torque) + parent.map_or(0.0, |p| part(p, &row.parent_torque))
}

impl Coupling {
    /// `V' d(wrench)/dz` by the displacements of parent and child, with six numbers `v` of each body.
    pub(crate) fn transposed_times(
        &self,
        v: &[f64],
        parent: Option<usize>,
        child: usize,
    ) -> [Vec6; 2] {
        let vb = six(v, child);
        let mut out = [self.ba.0.tr_mul(&vb), self.bb.0.tr_mul(&vb)];
        if let Some(p) = parent {
            let va = six(v, p);
            out[0] += self.aa.0.tr_mul(&va);
            out[1] += self.ab.0.tr_mul(&va);
        }
        out
    }
}
