//! The integrator of a mechanism and the memory of its steps: the graph of the matrix, and where every part's blocks
//! lie in it.

use super::work::{Adjoints, AtEnd, AtKnot, Matrix, Newton};
use super::{
    Damped, DampedElement, DampedState, JointSlots, Maximal, Observation, Options, Work, elements,
};
use crate::block::{Node, Role, Symbolic};
use crate::contact;
use crate::dynamics::{Place, Stage};
use crate::mechanism::{
    Adjoint, Coupling, DamperLaw, Field, Freedom, Mechanism, ModelError, Relative, Row, compliance,
};
use crate::spatial::{Mat3, Pose, Quat, Vec3};
use std::ops::Range;

/// What damps or may come to, and the ranges that belong to each joint, then to each spring.
fn dampers(m: &Mechanism) -> (Vec<Damped>, Vec<Range<usize>>) {
    let (mut all, mut ranges) = (vec![], vec![]);
    for (index, j) in m.joints.iter().enumerate() {
        let first = all.len();
        for (i, d) in j.directions.iter().enumerate() {
            if d.damping > 0.0 || m.is_parameter(Field::Damping((index, i))) {
                all.push(Damped {
                    element: DampedElement::Joint(index, i),
                    parent: j.parent,
                    child: j.child,
                    law: DamperLaw::new(j.implicit),
                    slots: None,
                });
            }
        }
        ranges.push(first..all.len());
    }
    for (index, s) in m.springs.iter().enumerate() {
        let first = all.len();
        if s.damping > 0.0 || m.is_parameter(Field::SpringDamping(index)) {
            all.push(Damped {
                element: DampedElement::Spring(index),
                parent: s.parent,
                child: s.child,
                law: DamperLaw::new(s.implicit),
                slots: None,
            });
        }
        ranges.push(first..all.len());
    }
    (all, ranges)
}

/// The stretches of so many numbers that lie outside all of the ranges.
fn outside(mut ranges: Vec<Range<usize>>, len: usize) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|r| r.start);
    let (mut out, mut at) = (vec![], 0);
    for r in ranges {
        if r.start > at {
            out.push(at..r.start);
        }
        at = r.end;
    }
    out.push(at..len);
    out
}

/// Joint and direction of every angle that is unwound, and the index of each joint's among them.
fn windings(m: &Mechanism) -> (Vec<(usize, usize)>, Vec<Option<usize>>) {
    let (mut all, mut of) = (vec![], vec![]);
    for (index, j) in m.joints.iter().enumerate() {
        let mut directions = j.directions.iter();
        let angle = directions.position(|d| d.freedom == Freedom::Angle);
        of.push(angle.map(|_| all.len()));
        all.extend(angle.map(|i| (index, i)));
    }
    (all, of)
}

/// `G M^-1 G'` of every row of the joints at a configuration.
fn compliances(m: &Mechanism, inverse_inertia: &[Mat3], poses: &[Pose]) -> Vec<f64> {
    let mut out = vec![];
    for j in &m.joints {
        let (a, b) = m.ends(j, poses);
        let relative = j.relative(a, b);
        out.extend((0..j.rows()).map(|i| {
            let row = j.row(i, a, b, &relative);
            compliance(m, inverse_inertia, (j.parent, j.child), &row)
        }));
    }
    out
}

impl Maximal {
    /// Is this one to take, unless a later one suits better? Of any mechanism.
    ///
    /// # Errors
    /// None.
    pub fn suits(_: &Mechanism) -> Result<(), ModelError> {
        Ok(())
    }

    /// The integrator of a mechanism; `q` are tree coordinates at which its loops close, from which its mobility is
    /// found (see [`Mechanical::start`](crate::integrator::Mechanical::start)).
    ///
    /// # Errors
    /// When the loops do not close there.
    pub fn new(mechanism: Mechanism, q: &[f64], options: Options) -> Result<Self, ModelError> {
        options.contact.validate()?;
        let mobility = mechanism.mobility(q)?;
        let n = mechanism.bodies.len();
        let body = Node {
            size: 6,
            role: Role::Regular,
        };
        let (mut nodes, mut edges) = (vec![body; n], vec![]);
        let mut node_of = vec![];
        for j in &mechanism.joints {
            if j.rows() == 0 {
                node_of.push(None);
                continue;
            }
            node_of.push(Some(nodes.len()));
            edges.push((j.child, nodes.len()));
            edges.extend(j.parent.map(|p| (p, nodes.len())));
            nodes.push(Node {
                size: j.rows(),
                role: Role::Constraint {
                    anchored: j.parent.is_none(),
                },
            });
        }
        let element_nodes = elements::add_nodes(&mechanism, &mut nodes, &mut edges);
        let (mut damped, damped_by) = dampers(&mechanism);
        edges.extend(damped.iter().filter_map(|d| d.parent.map(|p| (p, d.child))));
        edges.extend(contact::edges(&mechanism));
        let symbolic = Symbolic::new(&nodes, &edges).map_err(|e| {
            ModelError::new(
                ["joints"],
                e.to_string(),
                "report this: a built mechanism has a valid graph",
            )
        })?;
        // every slot asked for below is an edge given above
        let slot = |r, c| {
            symbolic
                .slot(r, c)
                .expect("an edge of the graph has its block")
        };
        for d in &mut damped {
            d.slots = d.parent.map(|p| (slot(p, d.child), slot(d.child, p)));
        }
        let bodies: Vec<_> = (0..n).map(|b| slot(b, b)).collect();
        let mut written: Vec<_> = bodies.iter().map(|s| *s..s + 36).collect();
        let (mut slots, mut rows) = (vec![], 0);
        for (j, node) in mechanism.joints.iter().zip(&node_of) {
            slots.push(node.map(|node| {
                let s = JointSlots {
                    offset: symbolic.offset(node),
                    first_row: rows,
                    diagonal: slot(node, node),
                    child: (slot(j.child, node), slot(node, j.child)),
                    parent: j.parent.map(|p| (slot(p, node), slot(node, p))),
                };
                rows += j.rows();
                for (a, b) in [s.child].into_iter().chain(s.parent) {
                    written.extend([a, b].map(|s| s..s + 6 * j.rows()));
                }
                s
            }));
        }
        let (windings, winding_of) = windings(&mechanism);
        let nominal = crate::integrator::parameter::nominal(&mechanism);
        let (held, held_rates) = Self::independent(&mechanism, q, mobility.degrees_of_freedom, &[]);
        let inverse_inertia = mechanism.inverse_inertia();
        let poses = mechanism.forward(q);
        let compliances = compliances(&mechanism, &inverse_inertia, &poses);
        let mut elements = elements::Layout::new(&mechanism, &symbolic, &element_nodes);
        elements.set_compliances(&mechanism, &inverse_inertia, &poses);
        Ok(Self {
            bodies,
            zeros: outside(written, symbolic.values_len()),
            contacts: contact::Layout::new(
                &mechanism,
                (Some(&symbolic), symbolic.dim()),
                &options.contact,
                (&inverse_inertia, &poses),
            ),
            inverse_inertia,
            held,
            held_rates,
            compliances,
            elements,
            mechanism,
            mobility,
            options,
            outputs: vec![],
            symbolic,
            slots,
            rows,
            damped,
            damped_by,
            nominal,
            windings,
            winding_of,
        })
    }

    /// Memory for one thread.
    pub(super) fn work(&self) -> Work {
        Work {
            blow: self.blow_memory(),
            ..self.plain_work()
        }
    }

    /// The same for steps and read-outs without blows.
    pub(super) fn plain_work(&self) -> Work {
        let (m, d, n) = (&self.mechanism, self.dims(), self.body_count());
        let joints = m.joints.len();
        let couplings = joints + m.springs.len() + m.actuators.len();
        let (matrix, dim) = (self.symbolic.values_len(), self.symbolic.dim());
        let relative = Relative {
            arm: Vec3::zeros(),
            r: Quat::identity(),
        };
        let at = Place {
            t: 0.0,
            h_prev: 0.0,
            stage: Stage::Readout(0.0),
        };
        Work {
            model: m.clone(),
            parameters: self.nominal.clone(),
            inverse_inertia: self.inverse_inertia.clone(),
            knot: AtKnot {
                at,
                poses: vec![Pose::identity(); n],
                before: vec![0.0; 6 * n],
                scalar: vec![1.0; n],
                winding: vec![0.0; self.windings.len()],
                relative: vec![relative; joints],
                rows: vec![Row::ZERO; self.rows],
                force: vec![0.0; 6 * n],
                base: vec![0.0; 6 * n],
                damping: vec![DampedState::EMPTY; self.damped.len()],
                commanded: vec![0.0; d.nu],
                control: vec![0.0; d.nu],
                control_slope: vec![1.0; d.nu],
                control_rows: vec![Row::ZERO; d.nu],
            },
            end: AtEnd {
                poses: vec![Pose::identity(); n],
                scalar: vec![1.0; n],
                relative: vec![relative; joints],
                rows: vec![Row::ZERO; self.rows],
                given: vec![Pose::identity(); n],
            },
            newton: Newton {
                y: vec![0.0; dim],
                trial: vec![0.0; dim],
                residual: vec![0.0; dim],
                delta: vec![0.0; dim],
                scratch: vec![0.0; dim],
                kept: vec![0.0; dim],
                ends_flat: false,
            },
            matrix: Matrix {
                values: vec![0.0; matrix],
                original: vec![0.0; matrix],
                own: vec![0.0; self.rows],
                regularization: 0.0,
                softness: 0.0,
                fallback: None,
                uses_fallback: false,
            },
            adjoint: Adjoints {
                mu: vec![0.0; dim],
                zplus: vec![0.0; 6 * n],
                zminus: vec![0.0; 6 * n],
                couplings: vec![Coupling::default(); couplings],
                coupled: false,
                certificate: None,
                next: vec![0.0; d.nf],
                residual: vec![],
            },
            observation: Observation {
                past: vec![Pose::identity(); n],
                windings: vec![0.0; joints],
                reactions: vec![0.0; m.reaction_count()],
                acts: false,
                adjoint: Adjoint::new(m),
                inputs: d.inputs(),
                readout: d.outputs(),
            },
            elements: self.elements.memory(),
            contacts: self
                .contacts
                .memory(self.symbolic.dim(), self.symbolic.values_len()),
            blow: None,
            contacts_left: vec![0.0; self.contacts.unknowns()],
            dampings: vec![],
            turning: crate::integrator::swing::Turning::default(),
            jacobian: None,
        }
    }
}
