//! The numbers of a trajectory that commands report.

use least_action::dynamics::{Step, StepError};
use least_action::format::Model;
use least_action::integrator::Mechanical;
use least_action::rollout::{Balance, RolloutStats, Trajectory};
use serde_json::{Value, json};

/// Largest violation of any joint or gear at any knot, m or rad: where steps end whose joints did not give way, and where
/// they did.
pub fn constraint_violations(
    model: &Model,
    t: &Trajectory,
    stats: &RolloutStats,
) -> Result<[f64; 2], StepError> {
    let system = &model.system;
    let mut w = (stats.treated > 0).then(|| system.work());
    let (mut largest, mut at) = ([system.violation(t.state(0)), 0.0], t.knot(0));
    while at.k < t.steps() {
        let gave_way = match &mut w {
            Some(w) => system.gave_way(&t.knot_point(&at), w)?,
            None => false,
        };
        let own = &mut largest[usize::from(gave_way)];
        *own = own.max(system.violation(t.state(at.k + 1)));
        at = t.knot_after(&at);
    }
    Ok(largest)
}

/// The state at the last knot: bodies by name, joints by name.
pub fn final_state(model: &Model, t: &Trajectory, energy: &Balance, k: usize) -> Value {
    let system = &model.system;
    let m = system.mechanism();
    let poses = system.poses(t.state(k));
    let motion = &energy.velocities[k];
    let mut bodies = serde_json::Map::new();
    for (b, (p, (v, w))) in m.bodies.iter().zip(poses.iter().zip(motion)) {
        bodies.insert(
            b.name.clone(),
            json!({
                "position": p.x.as_slice(),
                "orientation": [p.q.w, p.q.i, p.q.j, p.q.k],
                "velocity": v.as_slice(),
                "angular_velocity": w.as_slice(),
            }),
        );
    }
    let mut joints = serde_json::Map::new();
    for (index, j) in m.joints.iter().enumerate() {
        let free = 0..j.directions.len();
        let coordinates: Vec<f64> = free
            .clone()
            .map(|i| system.coordinate(t.state(k), index, i))
            .collect();
        let rates: Vec<f64> = free.map(|i| m.rate(j, i, &poses, motion)).collect();
        joints.insert(
            j.name.clone(),
            json!({ "coordinates": coordinates, "rates": rates }),
        );
    }
    json!({ "bodies": bodies, "joints": joints })
}

/// A step that could not be made.
pub fn failure(e: &StepError) -> Value {
    json!({
        "time": e.time, "element": e.element, "residual": e.residual, "message": e.to_string(),
    })
}

/// Work done until a knot, by kind, J.
pub fn work(b: &Balance, knot: usize) -> Value {
    json!({
        "actuators": b.actuators[knot],
        "dampers": b.dampers[knot],
        "friction": b.friction[knot],
        "impacts": b.impacts[knot],
    })
}

/// Energy from which on a decimal number is too long to read, J.
const LONG: f64 = 1e9;

/// The energy balance to people.
pub fn print_energy(b: &Balance) {
    let last = b.kinetic.len() - 1;
    // no minus in front of nothing
    let joule = |v: f64| match v.abs() < LONG {
        true => format!("{:.6} J", (v * 1e6).round() / 1e6 + 0.0),
        false => format!("{v:.6e} J"),
    };
    let contacts = match (b.friction[last], b.impacts[last]) {
        (0.0, 0.0) => String::new(),
        (f, i) => format!(", of friction {}, of impacts {}", joule(f), joule(i)),
    };
    println!(
        "energy {}, at the end {}; work of actuators {}, of dampers {}{contacts}; error at most {:.1e} J",
        joule(b.energy(0)),
        joule(b.energy(last)),
        joule(b.actuators[last]),
        joule(b.dampers[last]),
        b.largest_error(),
    );
}
