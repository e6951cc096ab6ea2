//! Pairs at random poses, and the checks that every pair passes.

use super::*;
use crate::mechanism::samples::Source;
use crate::mechanism::wrench::dot;
use crate::mechanism::{
    BodySpec, ContactSpec, Coupling, Field, HalfSpaceSpec, MechanismBuilder, Orientation, Row,
    TerrainShape, TerrainSpec,
};

pub(super) const POINT: Surface = Surface::Point;
pub(super) const SPHERE: Surface = Surface::Sphere(0.13);
pub(super) const BOX: Surface = Surface::Box([0.6, 0.35, 0.2]);
pub(super) const CAPSULE: Surface = Surface::Capsule {
    radius: 0.1,
    length: 0.7,
};
pub(super) const CYLINDER: Surface = Surface::Cylinder {
    radius: 0.3,
    length: 0.5,
};

/// A box with slanting sides and one end that is a ridge.
pub(super) fn hull() -> Surface {
    let points = [
        [-0.3, -0.2, -0.15],
        [0.35, -0.15, -0.15],
        [0.3, 0.2, -0.15],
        [-0.25, 0.2, -0.15],
        [-0.2, -0.1, 0.1],
        [0.25, -0.1, 0.12],
        [0.0, 0.12, 0.2],
    ];
    Surface::Hull(Hull::new(&points).expect("it spans a volume"))
}

/// Heights of random rise, row by row.
pub(super) fn rough(s: &mut Source, [rows, columns]: [usize; 2], rise: f64) -> Vec<Vec<f64>> {
    let mut row = || (0..columns).map(|_| rise * s.unit()).collect();
    (0..rows).map(|_| row()).collect()
}

/// A body with one contact over a height field at a place.
pub(super) fn on_field(
    shape: Surface,
    heights: Vec<Vec<f64>>,
    spacing: [f64; 2],
    at: [f64; 3],
) -> Mechanism {
    let field = TerrainShape::Heights { heights, spacing };
    MechanismBuilder::new()
        .body("a", body(&mut Source::new(1), shape, 0.4))
        .terrain("rough", TerrainSpec::new(field, 0.5).at(at))
        .build()
        .expect("valid")
}

/// A free body with one contact, turned and off the center of mass.
pub(super) fn body(s: &mut Source, shape: Surface, friction: f64) -> BodySpec {
    let mut contact = ContactSpec::new(friction)
        .shape(shape)
        .at((s.vec3() * 0.3).into())
        .group("bodies", &["ground", "bodies"]);
    contact.orientation = Some(Orientation::Rpy(s.array3()));
    BodySpec::new(1.5)
        .inertia([0.3, 0.4, 0.5])
        .free()
        .contact("c", contact)
}

/// Two free bodies that may touch.
pub(super) fn two(seed: u64, a: Surface, b: Surface) -> Mechanism {
    let s = &mut Source::new(seed);
    MechanismBuilder::new()
        .body("a", body(s, a, 0.4))
        .body("b", body(s, b, 0.7).inertia([0.1, 0.2, 0.15]))
        .build()
        .expect("valid")
}

/// A free body over an inclined half-space.
pub(super) fn grounded(seed: u64, shape: Surface) -> Mechanism {
    let s = &mut Source::new(seed);
    let ground = HalfSpaceSpec {
        normal: [0.3, -0.2, 1.1],
        offset: -0.4,
        friction: Some(0.9),
        ..HalfSpaceSpec::default()
    };
    MechanismBuilder::new()
        .body("a", body(s, shape, 0.4))
        .half_space("floor", ground)
        .build()
        .expect("valid")
}

/// All colliders' frames in the world's at the identity pose, and forces in the middle of gaps, for distances in closed form.
pub(super) fn plain(mut m: Mechanism) -> Mechanism {
    for c in &mut m.colliders {
        (c.position, c.orientation) = (Vec3::zeros(), Mat3::identity());
    }
    for c in &mut m.contacts {
        c.lever_share = 0.5;
    }
    m
}

fn seven(t: &Touch) -> [f64; 7] {
    let (n, c) = (t.normal, t.point);
    [t.gap, n.x, n.y, n.z, c.x, c.y, c.z]
}

/// Fourth-order difference of a function of a number about zero.
pub(super) fn difference<const N: usize>(e: f64, f: impl Fn(f64) -> [f64; N]) -> [f64; N] {
    let (p, m, pp, mm) = (f(e), f(-e), f(2.0 * e), f(-2.0 * e));
    std::array::from_fn(|i| (8.0 * (p[i] - m[i]) - (pp[i] - mm[i])) / (12.0 * e))
}

/// The poses with component `i` of the displacement of a body.
pub(super) fn moved(poses: &[Pose], body: usize, i: usize, e: f64) -> Vec<Pose> {
    let mut out = poses.to_vec();
    let mut d = [Vec3::zeros(); 2];
    d[i / 3][i % 3] = e;
    out[body] = out[body].moved(&d[0], &d[1]);
    out
}

/// Wrenches of the force `f` (normal, tangents) on parent and child.
fn wrenches(t: &Touch, c: &Contact, f: &Vec3, (a, b): (&Pose, &Pose)) -> [f64; 12] {
    let [t1, t2] = friction_rows(t, c.frame_axis(t), a, b);
    let mut out = [0.0; 12];
    for (row, f) in [(normal_row(t, a, b), f.x), (t1, f.y), (t2, f.z)] {
        let Row {
            force,
            parent_torque,
            child_torque,
        } = row;
        for k in 0..3 {
            out[k] -= f * force[k];
            out[3 + k] += f * parent_torque[k];
            out[6 + k] += f * force[k];
            out[9 + k] += f * child_torque[k];
        }
    }
    out
}

/// Rates along the normal and the tangents at velocities `v` of all bodies.
fn rates(t: &Touch, v: &[f64], c: &Contact, (a, b): (&Pose, &Pose)) -> [f64; 3] {
    let [t1, t2] = friction_rows(t, c.frame_axis(t), a, b);
    [normal_row(t, a, b), t1, t2].map(|row| dot(v, c.parent, c.child, &row))
}

fn close(given: &[f64], expected: &[f64], what: &str) {
    let scale = expected.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
    for (i, (a, b)) in given.iter().zip(expected).enumerate() {
        let error = (a - b).abs();
        assert!(error < 1e-7 * scale, "{what} [{i}]: {a}, differences {b}");
    }
}

/// Everything that holds for a contact at any configuration, by differences with step `e`.
pub(super) fn check_with(m: &Mechanism, c: &Contact, poses: &[Pose], e: f64) {
    check_held(m, (c, &m.meeting(c, poses, &Ahead::NONE)), poses, e);
}

/// The same of what is held.
pub(super) fn check_held(m: &Mechanism, (c, held): (&Contact, &Meeting), poses: &[Pose], e: f64) {
    let (world, name) = (Pose::identity(), &c.name);
    let ends = |p: &[Pose]| (c.parent.map_or(world, |i| p[i]), p[c.child]);
    let (a, b) = ends(poses);
    let t = m.touch_of(c, held, poses);
    assert!((t.normal.norm() - 1.0).abs() < 1e-14, "{name}: unit normal");
    let slope = m.touch_slope(c, held, poses);
    let row = normal_row(&t, &a, &b);
    let f = Vec3::new(1.3, -0.4, 0.7);
    let mut blocks = Coupling::default();
    let axis = c.frame_axis(&t);
    wrench_derivative(
        (&t, axis),
        &slope,
        &f,
        c.parent.is_none(),
        (&a, &b),
        &mut blocks,
    );
    let v: Vec<f64> = (0..6 * poses.len())
        .map(|i| (1.7 * (i + 1) as f64).sin())
        .collect();
    let bodies = (c.parent, c.child);
    let by_pose = rate_derivatives([0, 1, 2], (&t, axis), &slope, (&a, &b), &v, bodies);
    for side in 0..2 {
        let Some(body) = [c.parent, Some(c.child)][side] else {
            continue;
        };
        for i in 0..6 {
            let what = format!("{name}, side {side}, displacement {i}");
            let by = difference(e, |e| {
                seven(&m.touch_of(c, held, &moved(poses, body, i, e)))
            });
            let torque = [row.parent_torque, row.child_torque][side];
            let force = row.force * [-1.0, 1.0][side];
            let gap = if i < 3 { force[i] } else { torque[i - 3] };
            let pick = |p: &(Mat3, Mat3)| [p.0, p.1][i / 3].column(i % 3).into_owned();
            let (n, p) = (pick(&slope.normal[side]), pick(&slope.point[side]));
            close(&[gap, n.x, n.y, n.z, p.x, p.y, p.z], &by, &what);
            let own = by_pose.map(|by| by[side][i]);
            let by = difference(e, |e| {
                let poses = moved(poses, body, i, e);
                let (a, b) = ends(&poses);
                rates(&m.touch_of(c, held, &poses), &v, c, (&a, &b))
            });
            close(&own, &by, &format!("{what}, rates"));
            let by = difference(e, |e| {
                let poses = moved(poses, body, i, e);
                let (a, b) = ends(&poses);
                wrenches(&m.touch_of(c, held, &poses), c, &f, (&a, &b))
            });
            let (on_a, on_b) = if side == 0 {
                (blocks.aa, blocks.ba)
            } else {
                (blocks.ab, blocks.bb)
            };
            if c.parent.is_some() {
                let own: Vec<f64> = (0..6).map(|k| on_a.0[(k, i)]).collect();
                close(&own, &by[..6], &format!("{what}, wrench on the parent"));
            }
            let own: Vec<f64> = (0..6).map(|k| on_b.0[(k, i)]).collect();
            close(&own, &by[6..], &format!("{what}, wrench on the child"));
        }
    }
    if c.parent.is_some() {
        let w = wrenches(&t, c, &f, (&a, &b));
        let v = |k: usize| Vec3::new(w[k], w[k + 1], w[k + 2]);
        assert_eq!(v(0) + v(6), Vec3::zeros(), "{name}");
        let moment = a.x.cross(&v(0)) + a.r * v(3) + b.x.cross(&v(6)) + b.r * v(9);
        assert!(moment.norm() < 1e-14, "{name}: moment {moment}");
    }
    for (path, field) in m.fields() {
        let value = m.get(field);
        let at = |e: f64| {
            let mut m = m.clone();
            m.set(field, value + e);
            m
        };
        let what = format!("{name} by {path}");
        let by = difference(e, |e| seven(&at(e).touch_of(c, held, poses)));
        let own = (m.touch_by(c, held, poses, field)).map_or([0.0; 7], |t| seven(&t));
        close(&own, &by, &what);
        let by = difference(e, |e| [at(e).friction(c)]);
        close(&[m.friction_by(c, &[field])], &by, &what);
        if let Field::ContactRestitution(_) = field {
            let by = difference(e, |e| [at(e).restitution(c)]);
            close(&[m.restitution_by(c, &[field])], &by, &what);
        }
    }
}

/// Component of a normal where the tangents are made from another axis, and wrenches along them jump.
const TANGENT_CHANGES: f64 = 0.6;

/// All contacts of a mechanism at random poses, the colliders near to each other and far.
pub(super) fn check(m: &Mechanism, seed: u64) {
    check_by(m, seed, 1e-4);
}

/// The same by differences of at most that step.
pub(super) fn check_by(m: &Mechanism, seed: u64, most: f64) {
    let s = &mut Source::new(seed);
    let (mut overlap, mut apart) = (0, 0);
    for i in 0..40 {
        let scale = [0.1, 0.3, 1.0, 2.0][i % 4];
        let poses: Vec<Pose> = m
            .colliders
            .iter()
            .map(|c| {
                let p = s.pose();
                Pose::new(p.x * scale - p.r * c.position, p.q)
            })
            .collect();
        for c in &m.contacts {
            let Touch { gap, normal, .. } = m.touch(c, &poses);
            if (normal.x.abs() - TANGENT_CHANGES).abs() < 1e-2 {
                continue;
            }
            (overlap, apart) = (
                overlap + usize::from(gap < 0.0),
                apart + usize::from(gap > 0.0),
            );
            // a short step where the normal turns quickly
            let slope = m.touch_slope(c, &m.meeting(c, &poses, &Ahead::NONE), &poses);
            let turns = slope.normal.iter().map(|(x, phi)| x.amax().max(phi.amax()));
            let turns = turns.fold(0.0, f64::max);
            check_with(m, c, &poses, most / (1.0 + 0.1 * turns));
        }
    }
    assert!(
        overlap > 0 && apart > 0,
        "{overlap} overlap, {apart} do not"
    );
}
