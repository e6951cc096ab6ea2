//! Groups of bodies that nothing connects with the others.

use super::Mechanism;
use super::attached::Law;

impl Mechanism {
    /// The group of each body: bodies that joints, springs, contacts, gears or users' elements connect, other than through the world, are of
    /// one group. (An actuator drives a joint or one body.) Groups are numbered from zero in the order of their first bodies.
    pub fn groups(&self) -> Vec<usize> {
        let mut group: Vec<usize> = (0..self.bodies.len()).collect();
        let mut connect = |a: usize, b: usize| {
            let (a, b) = (group[a], group[b]);
            let (keep, drop) = (a.min(b), a.max(b));
            let each = group.iter_mut().filter(|g| **g == drop);
            each.for_each(|g| *g = keep);
        };
        let joints = self.joints.iter().map(|j| (j.parent, j.child));
        let springs = self.springs.iter().map(|s| (s.parent, s.child));
        let contacts = self.contacts.iter().map(|c| (c.parent, c.child));
        for (parent, child) in joints.chain(springs).chain(contacts) {
            if let Some(parent) = parent {
                connect(parent, child);
            }
        }
        let constraints = self.constraints.iter().map(|c| &c.bodies);
        let potentials = self.potentials.iter().map(|p| &p.bodies);
        for bodies in constraints.chain(potentials) {
            bodies.windows(2).for_each(|pair| connect(pair[0], pair[1]));
        }
        // each has the number of its first body
        let mut firsts: Vec<usize> = group.clone();
        firsts.sort_unstable();
        firsts.dedup();
        let place = |g: &usize| firsts.partition_point(|first| first < g);
        group.iter().map(place).collect()
    }

    /// Which groups these bodies are of.
    pub(crate) fn mark(groups: &[usize], bodies: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut marked = vec![false; groups.iter().max().map_or(0, |last| last + 1)];
        bodies.for_each(|body| marked[groups[body]] = true);
        marked
    }

    /// Bodies of the groups whose energy does not change: only gravity, springs, gears and users' potentials act on them. None where a
    /// parameter may make a damper.
    pub(crate) fn conservative_groups(&self) -> Vec<Vec<usize>> {
        let groups = self.groups();
        let mut bodies = vec![vec![]; groups.iter().max().map_or(0, |last| last + 1)];
        for (body, group) in groups.iter().enumerate() {
            bodies[*group].push(body);
        }
        let joints = self.joints.iter().filter(|j| {
            let mut directions = j.directions.iter();
            j.has_dampers() || directions.any(|d| d.is_limited() || d.friction > 0.0)
        });
        let springs = self.springs.iter().filter(|s| s.damping != 0.0);
        let has_dampers = self.joints.iter().any(|j| j.has_dampers())
            || self.springs.iter().any(|s| s.damping != 0.0);
        if self.may_damp() && !has_dampers {
            return vec![];
        }
        let constraints = self.constraints.iter();
        let constraints = constraints.filter(|c| !matches!(c.law, Law::Gear(_)));
        let worked_on = (joints.map(|j| j.child))
            .chain(springs.map(|s| s.child))
            .chain(self.actuators.iter().map(|a| self.driven(a).1))
            .chain(self.contacts.iter().map(|c| c.child))
            .chain(constraints.filter_map(|c| c.bodies.first().copied()));
        for body in worked_on {
            bodies[groups[body]].clear();
        }
        bodies.retain(|own| !own.is_empty());
        bodies
    }
}

#[cfg(test)]
mod tests {
    use crate::mechanism::{
        ActuatorSpec, BodySpec, JointKind, JointSpec, MechanismBuilder, SpringSpec,
    };

    /// Bodies hang on the world, joined in pairs, and one has a motor.
    #[test]
    fn groups_are_what_is_connected() {
        let hinge = |parent: Option<&str>, child: &str| {
            let joint = JointSpec::new(JointKind::Revolute, child).axis([0.0, 1.0, 0.0]);
            match parent {
                Some(parent) => joint.parent(parent),
                None => joint,
            }
        };
        let spring = SpringSpec {
            parent: "b".into(),
            child: "e".into(),
            parent_anchor: [0.0; 3],
            child_anchor: [0.0; 3],
            stiffness: 100.0,
            rest: 0.0,
            damping: 0.0,
            implicit: false,
        };
        let body = || BodySpec::new(1.0).inertia([0.1, 0.1, 0.1]);
        let bodies = ["a", "b", "c", "d", "e", "f"];
        let m = bodies
            .iter()
            .fold(MechanismBuilder::new(), |m, name| m.body(name, body()));
        let m = m
            .joint("a", hinge(None, "a"))
            .joint("d", hinge(Some("a"), "d"))
            .joint("b", hinge(None, "b"))
            .joint("c", hinge(None, "c").damping(1.0))
            .joint("e", hinge(None, "e"))
            .joint("f", hinge(None, "f"))
            .spring("s", spring)
            .actuator("m", ActuatorSpec::joint("f"));
        let m = m.build().expect("six bodies on hinges");
        assert_eq!(m.groups(), [0, 1, 2, 0, 1, 3]);
        assert_eq!(m.conservative_groups(), [vec![0, 3], vec![1, 4]]);
    }
}
