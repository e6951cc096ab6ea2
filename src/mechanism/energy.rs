//! Energies of a mechanism, the power of its controls, what its dampers take, and how fast its springs swing.

use super::wrench::dot;
use super::{Body, DamperLaw, Field, Joint, Mechanism, Motion, Row, Spring};
use crate::spatial::{Mat3, Pose, Vec3, log};

/// What the actuators exert at a knot: of each the wrench of a unit effort, the effort, and the rate along it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Efforts {
    pub rows: Vec<Row>,
    pub efforts: Vec<f64>,
    pub rates: Vec<f64>,
}

/// The motion that dampers act against at a knot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DamperMotion<'a> {
    /// From the poses at the knot before.
    Before(&'a [Pose]),
    /// To the poses at the next knot: the intervals before and after are so long.
    After(&'a [Pose], [f64; 2]),
    /// With the velocities read at the knot, six a body, after an interval of this length.
    Read(&'a [f64], f64),
}

impl Mechanism {
    /// Potential energy of gravity (zero at the world's origin), springs and users' potentials, J. `winding` tells the
    /// unwound angle of a joint that has one.
    pub fn stored_energy(&self, poses: &[Pose], winding: impl Fn(usize) -> f64) -> f64 {
        self.stored_energy_of(|_| true, poses, winding)
    }

    /// The same of some bodies only, which nothing connects with the others.
    pub(crate) fn stored_energy_of(
        &self,
        own: impl Fn(usize) -> bool + Copy,
        poses: &[Pose],
        winding: impl Fn(usize) -> f64,
    ) -> f64 {
        let bodies = self.bodies.iter().zip(poses).enumerate();
        let gravity: f64 = bodies
            .filter(|(i, _)| own(*i))
            .map(|(_, (b, p))| -b.mass * self.gravity.dot(&p.x))
            .sum();
        let lines = self.springs.iter().filter(|s| own(s.child));
        let lines: f64 = lines
            .map(|s| s.energy(self.pose(poses, s.parent), &poses[s.child]))
            .sum();
        let joints = self.joints.iter().enumerate();
        let joints: f64 = joints
            .filter(|(_, j)| j.has_springs() && own(j.child))
            .map(|(i, j)| {
                let (a, b) = self.ends(j, poses);
                j.spring_energy(&j.relative(a, b), winding(i))
            })
            .sum();
        gravity + lines + joints + self.potential_energy_of(own, poses)
    }

    /// Kinetic energy `1/2 sum m v'v + w'Jw`, J.
    pub fn kinetic_energy(&self, velocities: &[Motion]) -> f64 {
        let bodies = self.bodies.iter().zip(velocities);
        let twice: f64 = bodies
            .map(|(b, (v, w))| b.mass * v.norm_squared() + w.dot(&(b.inertia * w)))
            .sum();
        0.5 * twice
    }

    /// What a unit effort of each actuator exerts, the efforts that the controls `u` lead to, and the actuators' rates replace those
    /// in `out`.
    pub(crate) fn efforts(&self, poses: &[Pose], velocities: &[f64], u: &[f64], out: &mut Efforts) {
        out.rows.clear();
        out.efforts.clear();
        out.rates.clear();
        for (c, u) in self.actuators.iter().zip(u) {
            let (parent, child) = self.driven(c);
            let ends = (self.pose(poses, parent), &poses[child]);
            let row = c.row(&self.joints, ends);
            out.rates.push(dot(velocities, parent, child, &row));
            out.rows.push(row);
            out.efforts.push(c.exerted(*u).0);
        }
    }

    /// Displacement of an actuator over an interval by its rows at the two ends, m or rad: the displacement of its bodies
    /// along either. It is exact to second order whatever the velocities do within the interval, as at an impact.
    pub(crate) fn actuator_displacements(
        &self,
        actuator: usize,
        rows: [&Row; 2],
        (from, to): (&[Pose], &[Pose]),
    ) -> [f64; 2] {
        let moved = |b: usize| {
            let turn = log(&(from[b].q.conjugate() * to[b].q));
            (to[b].x - from[b].x, turn)
        };
        let (parent, child) = self.driven(&self.actuators[actuator]);
        let (on_child, on_parent) = (moved(child), parent.map(moved));
        rows.map(|row| {
            let (x, turn) = &on_child;
            let by_child = row.force.dot(x) + row.child_torque.dot(turn);
            by_child
                + on_parent.as_ref().map_or(0.0, |(x, turn)| {
                    row.parent_torque.dot(turn) - row.force.dot(x)
                })
        })
    }

    /// `sum d s^2` over all dampers that are not implicit, `s` their displacement from one configuration to another: over an interval
    /// `h`, `h` times the energy they take.
    pub(crate) fn damping(&self, from: &[Pose], to: &[Pose]) -> f64 {
        let joints = self.joints.iter();
        let joints = joints.filter(|j| j.has_dampers() && !j.implicit);
        let joints = joints.flat_map(|j| {
            let ends = [from, to].map(|poses| self.ends(j, poses));
            let [old, new] = ends.map(|(a, b)| j.relative(a, b));
            let own = j.directions.iter().enumerate();
            own.map(move |(i, d)| d.damping * j.displacement(i, &old, &new).powi(2))
        });
        let lines = self.springs.iter().filter(|s| !s.implicit).map(|s| {
            let [old, new] =
                [from, to].map(|poses| s.length(self.pose(poses, s.parent), &poses[s.child]));
            s.damping * (new - old).powi(2)
        });
        joints.chain(lines).sum()
    }

    /// Work at a configuration `at` of the impulses by which dampers act there against a motion; along velocities, six a body.
    pub(crate) fn damper_work(
        &self,
        at: &[Pose],
        motion: DamperMotion,
        only_implicit: bool,
        along: &[f64],
    ) -> f64 {
        let mut out = 0.0;
        self.each_damper(at, |(parent, child), row, (damping, law), damper| {
            if only_implicit && !law.is_implicit() {
                return;
            }
            let displacement = |from: &[Pose], to: &[Pose]| match damper {
                Ok((j, i)) => {
                    let [old, new] = [from, to].map(|poses| self.ends(j, poses));
                    let (old, new) = (j.relative(old.0, old.1), j.relative(new.0, new.1));
                    j.displacement(i, &old, &new)
                }
                Err(s) => {
                    let [old, new] =
                        [from, to].map(|p| s.length(self.pose(p, s.parent), &p[s.child]));
                    new - old
                }
            };
            let moved = match motion {
                DamperMotion::Before(from) => law.before() * displacement(from, at),
                DamperMotion::After(to, [h_prev, h]) => law.after(h_prev, h) * displacement(at, to),
                DamperMotion::Read(velocities, h_prev) => {
                    law.after(h_prev, 0.0) * dot(velocities, parent, child, row)
                }
            };
            out -= damping * moved * dot(along, parent, child, row);
        });
        out
    }

    /// Visits all dampers with their bodies and the row of a unit force at a configuration.
    pub(crate) fn each_damper(
        &self,
        at: &[Pose],
        mut visit: impl FnMut(
            (Option<usize>, usize),
            &Row,
            (f64, DamperLaw),
            Result<(&Joint, usize), &Spring>,
        ),
    ) {
        for j in self.joints.iter().filter(|j| j.has_dampers()) {
            let (a, b) = self.ends(j, at);
            let here = j.relative(a, b);
            for (i, d) in j.directions.iter().enumerate() {
                if d.damping != 0.0 {
                    let row = j.direction_row(i, a, b, &here);
                    let law = DamperLaw::new(j.implicit);
                    visit((j.parent, j.child), &row, (d.damping, law), Ok((j, i)));
                }
            }
        }
        for s in self.springs.iter().filter(|s| s.damping != 0.0) {
            let row = s.length_row(self.pose(at, s.parent), &at[s.child]);
            let law = DamperLaw::new(s.implicit);
            visit((s.parent, s.child), &row, (s.damping, law), Err(s));
        }
    }

    /// Do forces act that are neither gravity nor dampers?
    pub(crate) fn is_driven(&self) -> bool {
        let is_free = self.actuators.is_empty() && self.potentials.is_empty();
        !is_free || !self.springs.is_empty() || self.joints.iter().any(Joint::has_springs)
    }

    /// Are there contacts, limits or joint friction?
    pub fn may_touch(&self) -> bool {
        let mut directions = self.joints.iter().flat_map(|j| &j.directions);
        !self.contacts.is_empty() || directions.any(|d| d.is_limited() || d.friction > 0.0)
    }

    /// Is there an implicit damper?
    pub(crate) fn has_implicit_dampers(&self) -> bool {
        let mut joints = self.joints.iter();
        let mut lines = self.springs.iter();
        joints.any(|j| j.implicit && j.has_dampers())
            || lines.any(|s| s.implicit && s.damping != 0.0)
    }

    /// Is there a damper, or may a parameter make one?
    pub(crate) fn may_damp(&self) -> bool {
        self.joints.iter().any(Joint::has_dampers)
            || self.springs.iter().any(|s| s.damping > 0.0)
            || self
                .parameter_fields()
                .any(|(_, f)| matches!(f, Field::Damping(_) | Field::SpringDamping(_)))
    }

    /// The damper that slows its two bodies fastest at a configuration, by its joint (`Ok`) or spring (`Err`), and how fast
    /// if only these moved, `d/m`, 1/s.
    pub(crate) fn stiffest_damper(&self, poses: &[Pose]) -> Option<(Result<usize, usize>, f64)> {
        let joints = self.joints.iter().enumerate().flat_map(|(index, j)| {
            let (a, b) = self.ends(j, poses);
            let rel = j.relative(a, b);
            let own = j.directions.iter().enumerate();
            own.filter(|(_, d)| d.damping > 0.0).map(move |(i, d)| {
                let row = j.direction_row(i, a, b, &rel);
                (Ok(index), d.damping * self.gives((j.parent, j.child), &row))
            })
        });
        let lines = self.springs.iter().enumerate().map(|(index, s)| {
            let row = s.length_row(self.pose(poses, s.parent), &poses[s.child]);
            (
                Err(index),
                s.damping * self.gives((s.parent, s.child), &row),
            )
        });
        let all = joints.chain(lines).filter(|(_, rate)| *rate > 0.0);
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Name of a joint or a spring that damps.
    pub fn damper_name(&self, element: Result<usize, usize>) -> String {
        match element {
            Ok(joint) => format!("joint `{}`", self.joints[joint].name),
            Err(spring) => format!("spring `{}`", self.springs[spring].name),
        }
    }

    /// `row M^-1 row'` of two bodies.
    pub(super) fn gives(&self, (parent, child): (Option<usize>, usize), row: &Row) -> f64 {
        let part = |b: usize, torque: &Vec3| {
            let body = &self.bodies[b];
            let turn = body
                .inertia
                .cholesky()
                .map_or(0.0, |c| torque.dot(&c.solve(torque)));
            row.force.norm_squared() / body.mass + turn
        };
        part(child, &row.child_torque) + parent.map_or(0.0, |p| part(p, &row.parent_torque))
    }

    /// The spring with the highest frequency at a configuration, by name, and that frequency if only its two bodies moved,
    /// rad/s.
    pub fn fastest_spring(&self, poses: &[Pose]) -> Option<(String, f64)> {
        let joints = self.joints.iter().flat_map(|j| {
            let (a, b) = self.ends(j, poses);
            let rel = j.relative(a, b);
            let own = j.directions.iter().enumerate();
            own.filter(|(_, d)| d.stiffness > 0.0).map(move |(i, d)| {
                let row: Row = j.direction_row(i, a, b, &rel);
                let gives = self.gives((j.parent, j.child), &row);
                (format!("joint `{}`", j.name), d.stiffness * gives)
            })
        });
        let lines = self.springs.iter().filter(|s| s.stiffness > 0.0).map(|s| {
            let row = s.length_row(self.pose(poses, s.parent), &poses[s.child]);
            let gives = self.gives((s.parent, s.child), &row);
            (format!("spring `{}`", s.name), s.stiffness * gives)
        });
        let fastest = joints.chain(lines).max_by(|a, b| a.1.total_cmp(&b.1));
        fastest.map(|(name, square)| (name, square.sqrt()))
    }

    /// Inverse inertia of every body.
    pub(crate) fn inverse_inertia(&self) -> Vec<Mat3> {
        let inverse = |b: &Body| {
            b.inertia
                .cholesky()
                .expect("a built body's inertia is positive definite")
                .inverse()
        };
        self.bodies.iter().map(inverse).collect()
    }
}
