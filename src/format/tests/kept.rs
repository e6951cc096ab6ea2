//! Recordings of some of the knots.

use super::*;
use crate::format::recording::{Force, Group};
use crate::rollout::{RolloutStats, Trajectory};
use std::ops::ControlFlow;

/// A recording that keeps some knots is what is left of one of all, and ends where reading breaks off.
#[test]
fn what_is_kept_is_as_in_a_recording_of_all() {
    let path = |name: &str| format!("{}/problems/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    for name in ["block_push", "acrobot_stops", "quadrotor_waypoints"] {
        let m = load(Path::new(&path(name)))
            .and_then(|d| d.build(&Overrides::default()))
            .expect("a shipped problem");
        let mut t = Trajectory::new(&m.system, m.problem.intervals.clone(), &m.x0);
        t.u.copy_from_slice(&m.problem.guess);
        t.roll(
            &m.system,
            &mut m.system.work(),
            &mut RolloutStats::default(),
        )
        .expect("rolls");
        let all = record(&m, &t, "simulated", &[]).expect("records");
        let n = t.steps();
        let mut read = 0;
        let go_on = &mut |_| {
            read += 1;
            ControlFlow::Continue(())
        };
        let (thin, energy) = record_every(&m, &t, 7, go_on).expect("records");
        // energies are summed over all
        assert_eq!((read, energy.kinetic.len()), (n + 1, n + 1));
        let kept: Vec<usize> = (0..=n).filter(|k| k % 7 == 0 || *k == n).collect();
        let break_off = &mut |k| match k {
            10 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let (part, energy) = record_every(&m, &t, 7, break_off).expect("records");
        let last = n.min(14);
        assert_eq!(energy.kinetic.len(), last + 1);
        let few = kept.iter().filter(|k| **k <= last).count();
        for (some, count) in [(&thin, kept.len()), (&part, few)] {
            assert_eq!((some.time.len(), some.poses.len()), (count, count));
            for (i, &k) in kept[..count].iter().enumerate() {
                assert_eq!((some.time[i], &some.poses[i]), (all.time[k], &all.poses[k]));
                for (a, b) in some.channels.iter().zip(&all.channels) {
                    // no control acts at an end
                    let ends = i + 1 == count && k < n;
                    let value = if ends && a.group == Group::Control {
                        None
                    } else {
                        b.values[k]
                    };
                    assert_eq!((&a.name, a.values[i]), (&b.name, value), "{k}");
                }
            }
            for (a, b) in some.contacts.iter().zip(&all.contacts) {
                let of = |f: &&Force| kept[..count].contains(&f.knot);
                let forces = b.forces.iter().filter(of).map(|f| (f.point, f.force));
                assert!(a.forces.iter().map(|f| (f.point, f.force)).eq(forces));
            }
            let marks = some.channels.iter().flat_map(|c| &c.goals).map(|g| g.last);
            let marks = marks.chain(some.places.iter().map(|p| p.knot));
            assert!(marks.max().is_none_or(|last| last < count));
        }
        assert_eq!(thin.places.len(), all.places.len());
    }
}

#[test]
fn friction_of_a_joint_is_recorded() {
    let text = "time_step = 0.01\nhorizon = 0.1\n[mechanism]\n\
         [mechanism.bodies.sled]\nmass = 2.0\ninertia = [0.1, 0.1, 0.1]\n\
         [mechanism.joints.rail]\nkind = \"prismatic\"\nchild = \"sled\"\naxis = [1, 0, 0]\nfriction = 3.0\n\
         [initial]\nrail = { coordinate = 0.2, rate = 1.5 }\n\
         [[record]]\nquantity = { joint_friction = \"rail\" }\n\
         [[constraints]]\nquantity = { position = { body = \"sled\", axis = \"x\" } }\nless = 0.9\nat = \"running\"\n\
         [[constraints]]\nquantity = { position = { body = \"sled\", axis = \"x\" } }\ngreater = 0.1\nat = \"end\"\n";
    let m = build(text).expect("good");
    let mut t = Trajectory::new(&m.system, m.problem.intervals.clone(), &m.x0);
    t.roll(
        &m.system,
        &mut m.system.work(),
        &mut RolloutStats::default(),
    )
    .expect("rolls");
    let r = record(&m, &t, "simulated", &[]).expect("records");
    let of = |c: &&recording::Channel| c.name == "rail friction";
    let all: Vec<_> = r.channels.iter().filter(of).collect();
    // asked for once more it is the same column
    let [friction] = all[..] else {
        panic!("{} channels", all.len());
    };
    assert_eq!(
        (friction.unit.as_str(), friction.group),
        ("N", Group::JointFriction)
    );
    assert_eq!(friction.values[0], None);
    // against the motion
    for (k, v) in friction.values.iter().enumerate().skip(1) {
        assert!((v.expect("a force") + 3.0).abs() < 1e-5, "{k}: {v:?}");
    }
    // what inequalities allow has a boundary, where the sled is beside it
    let sides: Vec<_> = r
        .places
        .iter()
        .map(|p| (p.kind, (1e9 * p.point[0]).round(), p.allowed))
        .collect();
    assert_eq!(
        sides,
        [
            (recording::GoalKind::Less, 9e8, Some([-1.0, 0.0, 0.0])),
            (recording::GoalKind::Greater, 1e8, Some([1.0, 0.0, 0.0])),
        ]
    );
    let free = text.replace("friction = 3.0\n", "");
    refused(&free, Some(14), &["`rail` has no friction"]);
    let end = text.replacen("joint_friction = \"rail\" }\n", "joint_friction = \"rail\" }\n[[costs]]\nquantity = { joint_friction = \"rail\" }\ntarget = 0.0\nweight = 1.0\nat = \"end\"\n", 1);
    refused(&end, Some(17), &["no value at the end"]);
}
