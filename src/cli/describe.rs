//! `describe`: what a file holds.

use super::{Failure, print_json, unit};
use least_action::control::Form;
use least_action::format::problem::{
    EpisodesSpec, InitialSpec, NumberSpec, PolicySpec, ProblemSpec, StartNumbers,
};
use least_action::format::{Model, Overrides, short};
use least_action::integrator::{Controls, Mechanical, System};
use least_action::mechanism::{Collider, Contact, Direction, Field, Mechanism, Range};
use least_action::spatial::Vec3;
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// A problem or a mechanism
    file: PathBuf,
    /// List every number of the mechanism that can be a parameter, by its path
    #[arg(long)]
    fields: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let document = super::load(&a.file)?;
    let model = document.build(&Overrides::default())?;
    let system = &model.system;
    let m = system.mechanism();
    let mobility = system.mobility();
    let poses = system.poses(&model.x0);
    let mass = m.mass();
    let center = m.bodies.iter().zip(&poses).map(|(b, p)| p.x * b.mass);
    let center = center.sum::<Vec3>() / mass;
    if a.json {
        let joints: Vec<_> = m
            .joints
            .iter()
            .enumerate()
            .map(|(i, j)| {
                let names: Vec<_> = j.directions.iter().map(|d| d.name).collect();
                let limits: Vec<_> = j.directions.iter().map(limits).collect();
                let start: Vec<_> = (0..names.len())
                    .map(|k| system.coordinate_at(&model.x0, &poses, i, k))
                    .collect();
                json!({
                    "name": j.name, "kind": j.kind.name(), "coordinates": names, "limits": limits, "start": start,
                    "closes_loop": m.closes_loop(i),
                })
            })
            .collect();
        let bounds = |i: usize| {
            let (l, u) = bounds(&model, i);
            [l, u].map(|b| b.is_finite().then_some(b))
        };
        let parameters: Vec<_> = model
            .parameters()
            .iter()
            .enumerate()
            .map(|(i, p)| {
                json!({ "name": p.name, "unit": p.unit, "value": p.value, "bounds": bounds(i) })
            })
            .collect();
        let mut value = json!({
            "title": model.title,
            "integrator": system.choice().name(),
            "passed_over": System::passed_over(m).map(|(name, why)| json!({ "name": name, "why": why.message })).collect::<Vec<_>>(),
            "bodies": m.bodies.iter().map(|b| &b.name).collect::<Vec<_>>(),
            "joints": joints,
            "degrees_of_freedom": mobility.degrees_of_freedom,
            "loops": mobility.loops,
            "redundant_rows": mobility.redundant_rows,
            "gears": model.mechanism.gears,
            "friction": friction(m).collect::<Vec<_>>(),
            "half_spaces": m.half_spaces.iter().map(|h| json!({
                "name": h.name, "normal": h.normal.as_slice(), "offset": h.offset, "friction": h.friction,
            })).collect::<Vec<_>>(),
            "terrain": terrain(m).map(|c| json!({
                "name": c.name, "shape": c.surface.kind(), "position": c.position.as_slice(), "friction": c.friction,
            })).collect::<Vec<_>>(),
            "friction_pairs": m.friction_pairs.iter().map(|p| json!({
                "name": p.name, "friction": p.friction,
            })).collect::<Vec<_>>(),
            "contacts": m.contacts.iter().map(|c| json!({
                "name": c.name, "bodies": touching(m, c), "friction": m.friction(c), "restitution": m.restitution(c),
            })).collect::<Vec<_>>(),
            "controls": m.actuators.iter().map(|c| &c.name).collect::<Vec<_>>(),
            "controls_between_knots": model.controls,
            "parameters": parameters,
            "mass": mass,
            "center_of_mass": center.as_slice(),
            "remarks": document.remarks(),
            "fill_in": system.matrix().fill_in,
        });
        if let Some(spec) = document.problem() {
            value["time_step"] = spec.time_step.into();
            value["horizon"] = horizon(spec).into();
            value["steps"] = model.problem.intervals.len().into();
            value["costs"] = json!(spec.costs);
            value["constraints"] = json!(spec.constraints);
            value["phases"] = json!(spec.phases);
            value["policy"] = json!(spec.policy);
            value["scenarios"] = json!(spec.scenarios);
            value["worst_case"] = spec.worst_case.into();
            value["own_controls"] = spec.own_controls.into();
            value["episodes"] = json!(spec.episodes);
            value["quadrature"] = json!(spec.quadrature);
        }
        if a.fields {
            let field = |(path, f): &(String, Field)| json!({ "path": path, "unit": m.field_unit(*f), "value": m.get(*f) });
            value["fields"] = m.fields().iter().map(field).collect();
        }
        print_json(&value);
        return Ok(());
    }
    println!("{}", model.title);
    println!(
        "degrees of freedom {}, loops {}, redundant rows {}, mass {mass:.6} kg, its center at {:.4} {:.4} {:.4} m",
        mobility.degrees_of_freedom,
        mobility.loops,
        mobility.redundant_rows,
        center.x,
        center.y,
        center.z
    );
    println!("integrator {}", system.choice().name());
    for (name, why) in System::passed_over(m) {
        println!("  not `{name}`: {}", why.message);
    }
    println!("bodies");
    for b in &m.bodies {
        let d = b.inertia.diagonal();
        println!(
            "  {:<20} {:>10.4} kg   inertia {:.3e} {:.3e} {:.3e} kg m^2   rotation {}",
            b.name,
            b.mass,
            d.x,
            d.y,
            d.z,
            b.rotation.name()
        );
    }
    println!("joints");
    for (index, j) in m.joints.iter().enumerate() {
        let parent = j.parent.map_or("world", |p| &m.bodies[p].name);
        let at: Vec<String> = j
            .directions
            .iter()
            .enumerate()
            .map(|(i, d)| {
                let value = system.coordinate_at(&model.x0, &poses, index, i);
                let within = if d.is_limited() {
                    let bounces = if d.restitution > 0.0 {
                        format!(" of restitution {}", d.restitution)
                    } else {
                        String::new()
                    };
                    format!(" in [{}, {}]{bounces}", d.lower, d.upper)
                } else {
                    String::new()
                };
                let rubs = if d.friction > 0.0 {
                    format!(" with friction {} {}", d.friction, d.force_unit())
                } else {
                    String::new()
                };
                format!("{} = {value:.4} {}{within}{rubs}", d.name, d.unit_name())
            })
            .collect();
        println!(
            "  {:<20} {} from {parent} to {}{}; starts at {}",
            j.name,
            j.kind.name(),
            m.bodies[j.child].name,
            if m.closes_loop(index) {
                ", closes a loop"
            } else {
                ""
            },
            if at.is_empty() {
                "no coordinate".into()
            } else {
                at.join(", ")
            }
        );
    }
    if !model.mechanism.gears.is_empty() {
        println!("gears");
    }
    for (name, g) in &model.mechanism.gears {
        println!(
            "  {name:<20} {} = {} {} + {}",
            g.joint, g.ratio, g.of, g.offset
        );
    }
    contacts(m);
    if !m.actuators.is_empty() {
        let how = match model.controls {
            Controls::Held => "held from knot to knot",
            Controls::Linear => "linear between knots",
        };
        println!("controls, {how}");
    }
    for (i, c) in m.actuators.iter().enumerate() {
        let bounds = c
            .bounds
            .map_or("unbounded".into(), |(l, u)| format!("{l} to {u}"));
        let cut = match c.effort_limits {
            Range::OPEN => String::new(),
            r => format!(", effort cut at {} and {}", r.lower, r.upper),
        };
        println!("  {:<20} {bounds}{}{cut}", c.name, unit(m.control_unit(i)));
    }
    parameters(&model, a.fields);
    if let Some(spec) = document.problem() {
        wanted(spec, model.problem.intervals.len());
    }
    println!(
        "step matrix: {} unknowns, {} block pairs of fill-in",
        system.matrix().unknowns,
        system.matrix().fill_in
    );
    Ok(())
}

/// Smallest and largest value of a parameter; the same where it is fixed.
fn bounds(model: &Model, parameter: usize) -> (f64, f64) {
    let p = &model.problem;
    let own = p.parameters[parameter];
    p.parameter_bounds
        .get(parameter)
        .copied()
        .unwrap_or((own, own))
}

/// More parameters than these, as a network's weights, are counted and not listed.
const MOST_PARAMETERS: usize = 50;

/// The parameters there are, and what could be others.
fn parameters(model: &Model, all: bool) {
    let m = model.system.mechanism();
    let declared = model.parameters();
    if !declared.is_empty() {
        println!("parameters");
    }
    for (i, p) in declared.iter().enumerate().take(MOST_PARAMETERS) {
        let range = match bounds(model, i) {
            (l, u) if l == u => "fixed".into(),
            (f64::NEG_INFINITY, f64::INFINITY) => "unbounded".into(),
            (l, u) => format!("{l} to {u}"),
        };
        println!("  {:<20} {:>12}{}, {range}", p.name, p.value, unit(&p.unit));
    }
    if declared.len() > MOST_PARAMETERS {
        println!("  and {} more", declared.len() - MOST_PARAMETERS);
    }
    let fields = m.fields();
    if all {
        println!("numbers that can be parameters");
        for (path, f) in &fields {
            println!("  {path:<44} {:>12}{}", m.get(*f), unit(m.field_unit(*f)));
        }
    } else if let Some((path, _)) = fields.first() {
        println!(
            "{} numbers can be parameters, as `{path}`; --fields lists them",
            fields.len()
        );
    }
}

/// s
fn horizon(spec: &ProblemSpec) -> f64 {
    let phases = spec.phases.iter().map(|p| p.duration);
    spec.horizon.unwrap_or_else(|| phases.sum())
}

/// What decides the start, beside the numbers that stand there.
fn start(spec: &ProblemSpec) {
    for (name, start) in &spec.initial {
        match start {
            InitialSpec::Named(parameter) => println!("{name} starts at `{parameter}`"),
            InitialSpec::Table(table) => {
                let named = [("", &table.coordinate), (" rate", &table.rate)];
                for (of, numbers) in named {
                    for number in numbers.iter().flat_map(StartNumbers::list) {
                        if let NumberSpec::Named(parameter) = number {
                            println!("{name}{of} starts at `{parameter}`");
                        }
                    }
                }
            }
            InitialSpec::Number(_) | InitialSpec::List(_) => {}
        }
    }
}

/// What computes the controls.
fn policy(policy: &PolicySpec) {
    let beside = if policy.feed_forward {
        ", beside controls that are decided"
    } else {
        ""
    };
    if let Some(network) = &policy.network {
        let (sees, layers) = (network.sees.len(), &network.layers);
        println!("policy: a network of {sees} quantities, hidden layers {layers:?}");
    }
    if let Some(file) = &policy.feedback {
        println!("policy: the feedback of {file}{beside}");
    }
    if policy.controls.is_some() {
        println!("policy: controls that are given{beside}");
    }
    if !policy.loops.is_empty() {
        println!("policy{beside}");
    }
    for l in &policy.loops {
        let gains = format!("kp {}, kd {}", toml(&l.kp), toml(&l.kd));
        let reference = toml(&l.reference);
        println!("  {:<20} {} to {reference}, {gains}", l.control, l.joint);
    }
}

/// What tells scenarios apart, and how they count.
fn scenarios(spec: &ProblemSpec) {
    if spec.scenarios.is_empty() {
        return;
    }
    let how = match (spec.worst_case, spec.own_controls) {
        (true, true) => ", of which the worst counts, with controls of their own",
        (true, false) => ", of which the worst counts",
        (false, true) => ", with controls of their own",
        (false, false) => "",
    };
    println!("scenarios{how}");
    for s in &spec.scenarios {
        let set = s
            .set
            .iter()
            .map(|(path, value)| format!("{path} = {value}"));
        let initial = s.initial.keys().map(|name| format!("{name} elsewhere"));
        let targets = s.targets.iter();
        let targets = targets.map(|(name, goal)| format!("target of {name} {}", toml(goal)));
        let noise = s.noise.iter().map(|n| format!("noise {}", toml(n)));
        let weight = std::iter::once(format!("weight {}", s.weight));
        let all = weight.chain(set).chain(initial).chain(targets).chain(noise);
        println!("  {:<20} {}", s.name, all.collect::<Vec<_>>().join(", "));
    }
}

/// What learners draw, and what ends an episode.
fn episodes(spec: &EpisodesSpec) {
    let last = spec
        .seed
        .saturating_add(spec.count.saturating_sub(1) as u64);
    println!(
        "episodes: the mean of {}, seeds {} to {last}",
        spec.count, spec.seed
    );
    for (name, drawn) in &spec.starts {
        println!("  {name:<20} start {}", toml(drawn));
    }
    for (name, drawn) in &spec.parameters {
        println!("  {name:<20} {}", toml(drawn));
    }
    for end in &spec.ends {
        let sides = [("below", end.below), ("above", end.above)];
        let sides = sides
            .into_iter()
            .filter_map(|(side, at)| Some(format!("{side} {}", at?)));
        println!(
            "  ends where {} is {}, which costs {} and {} a second that is left",
            toml(&end.quantity),
            sides.collect::<Vec<_>>().join(" or "),
            end.cost,
            end.rest
        );
    }
}

/// Horizon, policy, scenarios, episodes, costs and constraints.
fn wanted(spec: &ProblemSpec, steps: usize) {
    start(spec);
    if spec.phases.is_empty() {
        println!(
            "horizon {} s, {steps} time steps of {} s",
            horizon(spec),
            spec.time_step
        );
    } else {
        println!("horizon {} s, {steps} time steps", horizon(spec));
        println!("phases");
    }
    for p in &spec.phases {
        let free = p
            .bounds
            .map(|[l, u]| format!(", found between {l} and {u} s"));
        let steps = p.steps.map(|n| format!(" in {n} steps"));
        let [free, steps] = [free, steps].map(Option::unwrap_or_default);
        println!("  {:<20} {} s{steps}{free}", p.name, p.duration);
    }
    if let Some(own) = &spec.policy {
        policy(own);
    }
    scenarios(spec);
    if let Some(own) = &spec.episodes {
        episodes(own);
    }
    if !spec.costs.is_empty() {
        let how = match spec.sums_left() {
            true => ", along the way by the interval after each knot (first order)",
            false => "",
        };
        println!("costs{how}");
    }
    for c in &spec.costs {
        let (quantity, target) = (toml(&c.quantity), toml(&c.target));
        let form = match c.form {
            Form::Square => format!("{}/2 |{quantity} - {target}|^2", c.weight),
            Form::Linear => format!("{} ({quantity} - {target})", c.weight),
            Form::Absolute => format!("{} |{quantity} - {target}|", c.weight),
            Form::Huber(delta) => {
                format!("{} huber({quantity} - {target}, {delta})", c.weight)
            }
        };
        println!("  {:<20} {form}", toml(&c.at));
    }
    if !spec.constraints.is_empty() {
        println!("constraints");
    }
    for c in &spec.constraints {
        let sides = [("=", &c.equals), ("<=", &c.less), (">=", &c.greater)];
        let sides = sides.into_iter().filter_map(|(sign, side)| {
            let value = toml(side.as_ref()?);
            Some(format!(" {sign} {value}"))
        });
        let mut sides: String = sides.collect();
        if let Some(same) = &c.same_as {
            let of = same.quantity.as_ref().map_or("its own".into(), toml);
            let (times, plus) = (same.times, same.plus);
            let at = toml(&same.at);
            sides += &match (times, plus) {
                (1.0, 0.0) => format!(" = {of} at {at}"),
                _ => format!(" = {times} {of} at {at} + {plus}"),
            };
        }
        println!("  {:<20} {}{sides}", toml(&c.at), toml(&c.quantity));
    }
}

/// As in the file, on one line.
fn toml(value: &impl serde::Serialize) -> String {
    let value = toml::Value::try_from(value).map(|v| v.to_string());
    value.unwrap_or_default().replace('"', "")
}

/// Joints with Coulomb friction.
fn friction(m: &Mechanism) -> impl Iterator<Item = &str> {
    let joints = m.joints.iter();
    let rubs = joints.filter(|j| j.directions.iter().any(|d| d.friction > 0.0));
    rubs.map(|j| j.name.as_str())
}

/// Smallest and largest coordinate, open sides left out; nothing where there are none.
fn limits(d: &Direction) -> Option<[Option<f64>; 2]> {
    let finite = |v: f64| v.is_finite().then_some(v);
    d.is_limited().then_some([finite(d.lower), finite(d.upper)])
}

/// Names of the bodies of a contact.
fn touching<'a>(m: &'a Mechanism, c: &Contact) -> Vec<&'a str> {
    let bodies = c.parent.into_iter().chain([c.child]);
    bodies.map(|b| m.bodies[b].name.as_str()).collect()
}

/// Half-spaces, and what touches.
fn contacts(m: &Mechanism) {
    if !m.half_spaces.is_empty() {
        println!("half-spaces");
    }
    for h in &m.half_spaces {
        let n = &h.normal;
        println!(
            "  {:<20} normal {:.4} {:.4} {:.4}, offset {} m",
            h.name, n.x, n.y, n.z, h.offset
        );
    }
    if terrain(m).next().is_some() {
        println!("terrain");
    }
    for c in terrain(m) {
        let p = &c.position;
        println!(
            "  {:<20} {} at {:.4} {:.4} {:.4} m; friction {}",
            c.name,
            c.surface.kind(),
            p.x,
            p.y,
            p.z,
            short(c.friction)
        );
    }
    if !m.friction_pairs.is_empty() {
        println!("friction pairs");
    }
    for pair in &m.friction_pairs {
        println!("  {:<20} friction {}", pair.name, short(pair.friction));
    }
    if !m.contacts.is_empty() {
        println!("contacts");
    }
    for c in &m.contacts {
        let pair = c.friction_pair.map(|i| &m.friction_pairs[i].name);
        let of_pair = pair.map_or_else(String::new, |name| format!(" of the pair {name}"));
        println!(
            "  {:<32} {}; friction {}{of_pair}, restitution {}",
            c.name,
            touching(m, c).join(" and "),
            short(m.friction(c)),
            short(m.restitution(c))
        );
    }
}

/// Solids of the world.
fn terrain(m: &Mechanism) -> impl Iterator<Item = &Collider> {
    m.colliders.iter().filter(|c| c.body.is_none())
}
