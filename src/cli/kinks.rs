//! Where contacts and limits change between neighbouring motions: there functions of them have kinks.

use least_action::format::Model;
use least_action::format::recording::Recording;
use least_action::integrator::Mechanical;
use std::borrow::Cow;

/// The first knot at which something touches, rests or sticks, or meets another place, in one of three recordings alone, and what. Slower than
/// `crawl`, m/s or rad/s, something stands still; nearer than `near`, m or rad, it rests at its limit.
pub fn first_change(
    model: &Model,
    recordings: &[Recording; 3],
    (crawl, near): (f64, f64),
) -> Option<(usize, String)> {
    let [ahead, behind, here] = recordings
        .each_ref()
        .map(|r| states(model, r, (crawl, near)));
    let differ = (0..here.len()).find(|k| ahead[*k] != behind[*k] || here[*k] != behind[*k]);
    differ.and_then(|knot| {
        let all = ahead[knot].iter().zip(&behind[knot]).zip(&here[knot]);
        let mut all = all.filter(|((a, b), c)| a != b || c != b);
        let (((name, state), (_, other)), (_, here)) = all.next()?;
        let other = if state == other { here } else { other };
        Some((knot, format!("{name} {state} or {other} at knot {knot}")))
    })
}

/// By knot: what touches and by which faces and edges, rests at a limit or sticks, by name.
type States = Vec<Vec<(String, Cow<'static, str>)>>;

/// The states of contacts and limits. Of two numbers whose product the central path holds near zero the larger one says
/// which side of the corner the system is on.
fn states(model: &Model, r: &Recording, (crawl, near): (f64, f64)) -> States {
    let m = model.system.mechanism();
    let h = model.problem.intervals.first().copied().unwrap_or(1.0);
    let (mass, knots) = (m.mass(), r.time.len());
    let value = |name: &str, k: usize| {
        let channel = r.channels.iter().find(|c| c.name == name);
        channel.and_then(|c| *c.values.get(k)?).unwrap_or(0.0)
    };
    let at = |k: usize| {
        let mut out = vec![];
        // no interval ends at the first knot, and no force belongs to it
        for c in m.contacts.iter().filter(|_| k > 0) {
            let of = |what: &str, k: usize| value(&format!("{what} of {}", c.name), k);
            let normal = of("normal force", k);
            // the force is that of the interval which ends at the knot
            let closed = normal * h * h / mass > of("gap", k);
            let slack = m.friction(c) * normal - of("friction", k);
            let sticks = slack * h / mass > of("slip", k);
            let state = match (closed, sticks) {
                (false, _) => "open",
                (true, true) => "sticking",
                (true, false) => "sliding",
            };
            let recorded = r.contacts.iter().find(|o| o.name == c.name);
            let meets = recorded.and_then(|o| o.meets.get(k)?.as_ref());
            // the gap of another place is another function
            let state = match meets.filter(|_| closed) {
                Some(meets) => format!("{state} with {meets}").into(),
                None => state.into(),
            };
            out.push((c.name.clone(), state));
        }
        for id in m.coordinates() {
            let d = &m.joints[id.0].directions[id.1];
            if !d.is_limited() {
                continue;
            }
            let name = m.coordinate_name(id);
            let q = value(&name, k);
            let rests = (q - d.lower).min(d.upper - q) < near;
            let state = if rests { "resting" } else { "free" };
            out.push((format!("limit of {name}"), state.into()));
        }
        for id in m.coordinates() {
            if m.joints[id.0].directions[id.1].friction == 0.0 {
                continue;
            }
            let name = m.coordinate_name(id);
            let moved = value(&name, (k + 1).min(knots - 1)) - value(&name, k);
            let state = if moved.abs() < crawl * h {
                "sticking"
            } else {
                "sliding"
            };
            out.push((format!("friction of {name}"), state.into()));
        }
        out
    };
    (0..knots).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use least_action::dynamics::Step;
    use least_action::format::{self, Overrides};
    use least_action::rollout::{RolloutStats, Trajectory};

    /// A block that lies with its corners `beyond` the edge of a ledge.
    fn lying(beyond: f64) -> (Model, Recording) {
        let x = 0.9 + beyond;
        let text = format!(
            "time_step = 0.01\nhorizon = 0.03\n\
             [mechanism.terrain.ledge]\nshape = {{ box = [2.0, 2.0, 0.2] }}\nposition = [0.0, 0.0, -0.1]\nfriction = 0.5\n\
             [mechanism.bodies.block]\nmass = 1.0\nshape = {{ box = [0.2, 0.2, 0.2] }}\nfree = true\n\
             contacts.all = {{ friction = 0.5 }}\n\
             [initial.block]\nposition = [{x}, 0.0, 0.1]\n"
        );
        let document = format::parse(&text, "ledge.toml").expect("a problem");
        let model = document.build(&Overrides::default()).expect("a model");
        let (system, problem) = (&model.system, &model.problem);
        let mut w = system.work();
        let x0 = problem.start(system, &[], &mut w).expect("a start");
        let mut t = Trajectory::new(system, problem.intervals.clone(), &x0);
        t.roll(system, &mut w, &mut RolloutStats::default())
            .expect("simulated");
        let recording = format::record(&model, &t, "simulated", &[]).expect("recorded");
        (model, recording)
    }

    #[test]
    fn what_meets_another_place_is_told() {
        let (model, inside) = lying(-0.01);
        let same = [inside.clone(), lying(-0.02).1, inside.clone()];
        assert_eq!(first_change(&model, &same, (1e-6, 1e-6)), None);
        // corners on the ledge's face, and edges across its edge
        let sides = [lying(0.01).1, inside.clone(), inside];
        let (knot, what) = first_change(&model, &sides, (1e-6, 1e-6)).expect("a change");
        assert_eq!(knot, 1, "{what}");
        for word in ["block.all", "on ledge", "vertex", "sticking with"] {
            assert!(what.contains(word), "{what}");
        }
    }
}
