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
        assert_eq!(energy.kinetic.len(), 15);
        for (some, count) in [(&thin, kept.len()), (&part, 3)] {
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
