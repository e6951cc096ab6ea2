//! Where contacts and limits change between neighbouring motions: there functions of them have kinks.

use least_action::format::Model;
use least_action::format::recording::Recording;
use least_action::integrator::Mechanical;

/// The first knot at which something touches, rests or sticks in one of three recordings alone, and what. Slower than
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

/// By knot: what touches, rests at a limit or sticks, by name.
type States = Vec<Vec<(String, &'static str)>>;

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
            out.push((format!("limit of {name}"), state));
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
            out.push((format!("friction of {name}"), state));
        }
        out
    };
    (0..knots).map(at).collect()
}
