//! The joint chart of trees: recursions over the joints in place of dense bases.
//!
//! A tangent of the tree gives every body the motion of the body before it, carried along, plus its own joint's screws
//! times their rates. Written in world axes at each body's center of mass, carrying is one cross product, and the
//! transpose adds wrenches towards the root, as recursive Newton-Euler does.

use super::Maximal;
use super::assembly::{dot, pose, vec3};
use super::tangent::{pose_before, velocities_between};
use crate::dynamics::{Chart, Frame, Knot};
use crate::mechanism::{Joint, Mechanism, Relative, Row};
use crate::spatial::{Mat3, Pose, RotationLaw, Vec3, rotation};
use nalgebra::DMatrix;
use std::ops::Range;
use std::sync::Arc;

/// A body of the tree.
#[derive(Clone, Debug)]
struct Link {
    body: usize,
    /// The body nearer to the world that it moves with.
    inboard: Option<usize>,
    coordinates: Range<usize>,
    /// Center of mass from that of the body inboard, world axes, m.
    arm: Vec3,
    r: Mat3,
}

/// The tree's tangent at a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Screws {
    /// From the world outwards.
    links: Vec<Link>,
    /// Motion of a coordinate's body at unit rate: velocity of its center of mass and angular velocity, world axes.
    screws: Vec<[f64; 6]>,
}

/// The motion of a joint's child against its parent per rate of direction `i`, parent's axes: slide, turn.
fn unit_motion(j: &Joint, i: usize, rel: &Relative) -> (Vec3, Vec3) {
    let mut rates = [0.0; 6];
    rates[i] = 1.0;
    j.relative_motion(rel, &rates)
}

impl Screws {
    pub(super) fn new(m: &Mechanism) -> Self {
        let mut new = Self::default();
        new.fit(m);
        new
    }

    /// Makes room for a mechanism; none is made where it was there.
    fn fit(&mut self, m: &Mechanism) {
        self.links.clear();
        self.links.extend(m.tree.edges.iter().map(|e| {
            let j = &m.joints[e.joint];
            let (body, inboard) = match (e.reversed, j.parent) {
                (true, Some(parent)) => (parent, Some(j.child)),
                _ => (j.child, j.parent),
            };
            Link {
                body,
                inboard,
                coordinates: e.first..e.first + j.directions.len(),
                arm: Vec3::zeros(),
                r: Mat3::identity(),
            }
        }));
        self.screws.resize(m.tree.coordinates, [0.0; 6]);
    }

    /// Moves to a configuration. Allocates nothing.
    pub(super) fn set(&mut self, m: &Mechanism, poses: &[Pose]) {
        for (e, link) in m.tree.edges.iter().zip(&mut self.links) {
            let j = &m.joints[e.joint];
            let (a, b) = m.ends(j, poses);
            let rel = j.relative(a, b);
            let outboard = &poses[link.body];
            link.r = outboard.r;
            link.arm = link
                .inboard
                .map_or_else(Vec3::zeros, |i| outboard.x - poses[i].x);
            // what turns about the child's anchor, seen from the body that moves, and the sense of the joint
            let (lever, sense) = if e.reversed {
                (a.r * rel.arm, -1.0)
            } else {
                (b.r * j.child_anchor, 1.0)
            };
            for (i, screw) in self.screws[link.coordinates.clone()].iter_mut().enumerate() {
                let (slide, turn) = unit_motion(j, i, &rel);
                let (slide, turn) = (a.r * slide * sense, a.r * turn * sense);
                let velocity = slide + lever.cross(&turn);
                screw[..3].copy_from_slice(velocity.as_slice());
                screw[3..].copy_from_slice(turn.as_slice());
            }
        }
    }

    /// `N' wrench`, coordinate by coordinate, for `W` lanes of wrenches (world axes, six per body), which are lost.
    #[inline(always)]
    pub(super) fn reduce<const W: usize>(
        &self,
        wrench: &mut [[f64; W]],
        mut out: impl FnMut(usize, &[f64; W]),
    ) {
        for link in self.links.iter().rev() {
            let own: [[f64; W]; 6] = std::array::from_fn(|k| wrench[6 * link.body + k]);
            for c in link.coordinates.clone() {
                let mut sum = [0.0; W];
                for (s, own) in self.screws[c].iter().zip(&own) {
                    for (sum, own) in sum.iter_mut().zip(own) {
                        *sum += s * own;
                    }
                }
                out(c, &sum);
            }
            let Some(inboard) = link.inboard else {
                continue;
            };
            let to = &mut wrench[6 * inboard..6 * inboard + 6];
            for (k, own) in own.iter().enumerate() {
                for (to, own) in to[k].iter_mut().zip(own) {
                    *to += own;
                }
            }
            // the moment of the force
            for k in 0..3 {
                let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                for l in 0..W {
                    to[3 + k][l] += link.arm[i] * own[j][l] - link.arm[j] * own[i][l];
                }
            }
        }
    }

    /// `N rates`: displacements, six per body, rotations in the bodies' axes; added to `out`.
    fn add_spread(&self, rates: impl Fn(usize) -> f64, out: &mut [f64]) {
        let mut motion = vec![(Vec3::zeros(), Vec3::zeros()); self.links.len()];
        for link in &self.links {
            let (mut v, mut w) = link.inboard.map_or_else(Default::default, |i| motion[i]);
            v += w.cross(&link.arm);
            for c in link.coordinates.clone() {
                let rate = rates(c);
                v += vec3(&self.screws[c], 0) * rate;
                w += vec3(&self.screws[c], 3) * rate;
            }
            motion[link.body] = (v, w);
            add(&mut out[6 * link.body..], &v);
            add(&mut out[6 * link.body + 3..], &link.r.tr_mul(&w));
        }
    }

    /// `N' g` for displacements' adjoints `g`, six per body, which are lost.
    fn reduce_row(&self, g: &mut [f64], out: impl FnMut(usize, &[f64; 1])) {
        for link in &self.links {
            let torque = link.r * vec3(g, 6 * link.body + 3);
            g[6 * link.body + 3..6 * link.body + 6].copy_from_slice(torque.as_slice());
        }
        self.reduce::<1>(g.as_chunks_mut().0, out);
    }
}

fn add(out: &mut [f64], d: &Vec3) {
    for (o, d) in out.iter_mut().zip(d) {
        *o += d;
    }
}

/// The row that gives each coordinate's rate: a left inverse of the tangent.
#[derive(Clone, Debug)]
pub(super) struct RateRow {
    pub(super) parent: Option<usize>,
    pub(super) child: usize,
    pub(super) row: Row,
}

/// Rows of all coordinates, in their order.
pub(super) fn rate_rows<'a>(
    m: &'a Mechanism,
    poses: &'a [Pose],
) -> impl Iterator<Item = RateRow> + 'a {
    m.tree.edges.iter().flat_map(move |e| {
        let j = &m.joints[e.joint];
        let (a, b) = m.ends(j, poses);
        let rel = j.relative(a, b);
        (0..j.directions.len()).map(move |i| RateRow {
            parent: j.parent,
            child: j.child,
            row: j.direction_row(i, a, b, &rel),
        })
    })
}

/// How a body's configuration one knot back changes: `dz- = (dx - h dv, turn dphi + jacobian dw)`.
#[derive(Clone, Debug)]
pub(super) struct Back {
    pub(super) turn: Mat3,
    pub(super) jacobian: Mat3,
    pub(super) inverse: Mat3,
}

impl Back {
    pub(super) fn new(law: &RotationLaw, omega: &Vec3, h: f64, s: f64) -> Self {
        let jacobian = law.jacobian(omega, -h, s);
        Self {
            turn: rotation(&law.increment(omega, h, s)),
            jacobian,
            // det = (h s^2)^3 (1 + ...) > 0 inside the domain of the increment
            inverse: jacobian.try_inverse().unwrap_or_else(Mat3::zeros),
        }
    }
}

/// What the rates mean.
#[derive(Clone, Debug)]
enum Rates {
    /// Increments over the interval before.
    Interval {
        h: f64,
        before: Screws,
        rows: Vec<RateRow>,
        back: Vec<Back>,
    },
    /// At the start: those of the velocities, which also follow the configuration.
    Start { follow: DMatrix<f64> },
}

/// The joint chart of a tree at a state.
#[derive(Clone, Debug)]
struct TreeChart {
    here: Screws,
    rows: Vec<RateRow>,
    rates: Rates,
    /// Memory of [`TreeChart::set`].
    poses: Vec<Pose>,
}

impl Default for TreeChart {
    fn default() -> Self {
        Self {
            here: Screws::default(),
            rows: vec![],
            rates: Rates::Start {
                follow: DMatrix::zeros(0, 0),
            },
            poses: vec![],
        }
    }
}

impl Maximal {
    /// [`crate::dynamics::Charts::frame_in`] of trees. Allocates nothing where the frame was one of this system already, but at
    /// the start.
    pub(super) fn tree_frame(&self, at: &Knot, x: &[f64], m: &Mechanism, out: &mut Frame) {
        if let Some(chart) = out.chart_mut::<TreeChart>() {
            return chart.set(self, at, x, m);
        }
        let mut chart = TreeChart::default();
        chart.set(self, at, x, m);
        *out = Frame::Chart(Arc::new(chart));
    }
}

impl TreeChart {
    /// Moves to a state.
    fn set(&mut self, system: &Maximal, at: &Knot, x: &[f64], m: &Mechanism) {
        let bodies = x[..13 * m.bodies.len()].chunks_exact(13);
        let poses = &mut self.poses;
        if let Some(h) = at.before() {
            if !matches!(self.rates, Rates::Interval { .. }) {
                self.rates = Rates::Interval {
                    h,
                    before: Screws::default(),
                    rows: vec![],
                    back: vec![],
                };
            }
            if let Rates::Interval {
                h: own,
                before,
                rows,
                back,
            } = &mut self.rates
            {
                poses.clear();
                let of = bodies.clone().zip(&m.bodies);
                poses.extend(of.map(|(s, b)| pose_before(&b.rotation, at, s)));
                *own = h;
                before.fit(m);
                before.set(m, poses);
                rows.clear();
                rows.extend(rate_rows(m, poses));
                back.clear();
                back.extend(bodies.clone().zip(&m.bodies).map(|(s, body)| {
                    let (omega, law) = (vec3(s, 10), &body.rotation);
                    Back::new(law, &omega, h, law.scalar(&omega, h))
                }));
            }
        }
        poses.clear();
        poses.extend(bodies.map(pose));
        if at.before().is_none() {
            let rates = m.tree_rates(poses, &system.velocities_of(x));
            let follow = m.velocity_derivative(poses, &rates);
            self.rates = Rates::Start { follow };
        }
        self.here.fit(m);
        self.here.set(m, poses);
        self.rows.clear();
        self.rows.extend(rate_rows(m, poses));
    }
}

impl Chart for TreeChart {
    fn dims(&self) -> (usize, usize) {
        (12 * self.here.links.len(), 2 * self.rows.len())
    }

    fn embed(&self, joint: &[f64], free: &mut [f64]) {
        let (a, rate) = joint.split_at(self.rows.len());
        free.fill(0.0);
        let (dz, dv) = free.split_at_mut(6 * self.here.links.len());
        self.here.add_spread(|i| a[i], dz);
        match &self.rates {
            Rates::Start { follow } => {
                self.here.add_spread(|i| rate[i], dv);
                for (column, a) in follow.column_iter().zip(a) {
                    dv.iter_mut().zip(&column).for_each(|(v, c)| *v += c * a);
                }
            }
            Rates::Interval {
                h, before, back, ..
            } => {
                before.add_spread(|i| a[i] - h * rate[i], dv);
                for (b, back) in back.iter().enumerate() {
                    let v = (vec3(dz, 6 * b) - vec3(dv, 6 * b)) / *h;
                    let turned = vec3(dv, 6 * b + 3) - back.turn * vec3(dz, 6 * b + 3);
                    let w = back.inverse * turned;
                    dv[6 * b..6 * b + 3].copy_from_slice(v.as_slice());
                    dv[6 * b + 3..6 * b + 6].copy_from_slice(w.as_slice());
                }
            }
        }
    }

    fn embed_transposed(&self, free: &mut [f64], joint: &mut [f64]) {
        let (a, rate) = joint.split_at_mut(self.rows.len());
        let (gz, gv) = free.split_at_mut(6 * self.here.links.len());
        match &self.rates {
            Rates::Start { follow } => {
                for (column, a) in follow.column_iter().zip(&mut *a) {
                    *a = column.iter().zip(&*gv).map(|(c, g)| c * g).sum();
                }
                self.here.reduce_row(gv, |i, g| rate[i] = g[0]);
            }
            Rates::Interval {
                h, before, back, ..
            } => {
                for (b, back) in back.iter().enumerate() {
                    let x = vec3(gv, 6 * b) / -*h;
                    let phi = back.inverse.tr_mul(&vec3(gv, 6 * b + 3));
                    add(&mut gz[6 * b..], &-x);
                    add(&mut gz[6 * b + 3..], &-back.turn.tr_mul(&phi));
                    gv[6 * b..6 * b + 3].copy_from_slice(x.as_slice());
                    gv[6 * b + 3..6 * b + 6].copy_from_slice(phi.as_slice());
                }
                before.reduce_row(gv, |i, g| (a[i], rate[i]) = (g[0], -h * g[0]));
            }
        }
        self.here.reduce_row(gz, |i, g| a[i] += g[0]);
    }

    fn project(&self, free: &mut [f64], joint: &mut [f64]) {
        let (a, rate) = joint.split_at_mut(self.rows.len());
        let (dz, dv) = free.split_at_mut(6 * self.here.links.len());
        let along = |rows: &[RateRow], d: &[f64], out: &mut [f64]| {
            for (out, r) in out.iter_mut().zip(rows) {
                *out = dot(d, r.parent, r.child, &r.row);
            }
        };
        along(&self.rows, dz, a);
        match &self.rates {
            Rates::Start { follow } => {
                for (column, a) in follow.column_iter().zip(&*a) {
                    dv.iter_mut().zip(&column).for_each(|(v, c)| *v -= c * a);
                }
                along(&self.rows, dv, rate);
            }
            Rates::Interval { h, rows, back, .. } => {
                for (b, back) in back.iter().enumerate() {
                    let x = vec3(dz, 6 * b) - vec3(dv, 6 * b) * *h;
                    let phi = back.turn * vec3(dz, 6 * b + 3) + back.jacobian * vec3(dv, 6 * b + 3);
                    dv[6 * b..6 * b + 3].copy_from_slice(x.as_slice());
                    dv[6 * b + 3..6 * b + 6].copy_from_slice(phi.as_slice());
                }
                along(rows, dv, rate);
                for (r, a) in rate.iter_mut().zip(a) {
                    *r = (*a - *r) / h;
                }
            }
        }
    }
}

/// Moving along the chart, and back.
impl Maximal {
    /// [`crate::dynamics::Charts::retract`] of trees.
    pub(super) fn retract_tree(
        &self,
        at: &Knot,
        x: &[f64],
        (a, rate): (&[f64], &[f64]),
        m: &Mechanism,
        out: &mut [f64],
    ) {
        let near = self.tree_coordinates_of(m, x);
        let moved = |poses: &[Pose], d: &[f64]| {
            let mut q = m.tree_coordinates(poses, &near);
            m.move_coordinates(&mut q, d);
            (m.forward(&q), q)
        };
        let here = self.poses_of(x);
        let (poses, q) = moved(&here, a);
        let velocities = if let Some(h) = at.before() {
            let b: Vec<f64> = a.iter().zip(rate).map(|(a, r)| a - h * r).collect();
            let (old, _) = moved(&self.poses_before(at, x), &b);
            velocities_between(m, x, (&poses, &old), h)
        } else {
            let mut rates = m.tree_rates(&here, &self.velocities_of(x));
            rates.iter_mut().zip(rate).for_each(|(r, c)| *r += c);
            m.velocities(&poses, &rates)
        };
        let winding = self.winding_near(m, &poses, &q, x);
        out.copy_from_slice(&self.state(&poses, &velocities, &winding));
    }

    /// [`crate::dynamics::Charts::difference`] of trees: the inverse of moving, to first order where a joint has two
    /// free rotations, else exactly.
    pub(super) fn tree_difference(
        &self,
        at: &Knot,
        m: &Mechanism,
        x: &[f64],
        to: &[f64],
        out: &mut [f64],
    ) {
        let (a, rate) = out.split_at_mut(m.tree.coordinates);
        // of two states the poses that `of` reads of a body's numbers
        let along = |of: &dyn Fn(usize, &[f64]) -> Pose, out: &mut [f64]| {
            for e in &m.tree.edges {
                let j = &m.joints[e.joint];
                let relative = |x: &[f64]| {
                    let a = j
                        .parent
                        .map_or_else(Pose::identity, |p| of(p, &x[13 * p..]));
                    j.relative(&a, &of(j.child, &x[13 * j.child..]))
                };
                let (from, to) = (relative(x), relative(to));
                for (i, out) in out[e.first..]
                    .iter_mut()
                    .take(j.directions.len())
                    .enumerate()
                {
                    *out = j.displacement(i, &from, &to);
                }
            }
        };
        along(&|_, s| pose(s), a);
        if let Some(h) = at.before() {
            along(&|b, s| pose_before(&m.bodies[b].rotation, at, s), rate);
            for (r, a) in rate.iter_mut().zip(a) {
                *r = (*a - *r) / h;
            }
        } else {
            let of = |x: &[f64]| m.tree_rates(&self.poses_of(x), &self.velocities_of(x));
            let (from, to) = (of(x), of(to));
            for ((r, from), to) in rate.iter_mut().zip(from).zip(to) {
                *r = to - from;
            }
        }
    }
}

/// Puts a row's entries, as a right-hand side for the velocities at the interval's end, into one lane.
pub(super) fn seed<const W: usize>(
    rhs: &mut [[f64; W]],
    lane: usize,
    r: &RateRow,
    end: impl Fn(usize, &Vec3) -> Vec3,
    h: f64,
) {
    let mut set = |body: usize, f: &Vec3, t: &Vec3| {
        let t = end(body, t);
        for k in 0..3 {
            rhs[6 * body + k][lane] = h * f[k];
            rhs[6 * body + 3 + k][lane] = t[k];
        }
    };
    set(r.child, &r.row.force, &r.row.child_torque);
    if let Some(p) = r.parent {
        set(p, &-r.row.force, &r.row.parent_torque);
    }
}
