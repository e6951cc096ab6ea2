//! The start: joint coordinates and rates by name, loops closed.

use super::problem::{InitialSpec, InitialTable, NumberSpec, StartNumbers};
use super::source::{FormatError, Source, nearest, short};
use crate::control::{Constraint, Draw, Relation, StartNumber};
use crate::dynamics::{Start as From, Step, StepError};
use crate::integrator::{Mechanical, System};
use crate::mechanism::{
    Freedom, Joint, JointKind, Mechanism, ModelError, Quantity, least_squares, unwind,
};
use crate::spatial::{Quat, Vec3, log};
use indexmap::IndexMap;
use nalgebra::{DMatrix, DVector};
use std::collections::HashMap;

/// Largest difference between a coordinate or rate given and the one that keeps the loops closed, m or rad (per s).
const TOLERANCE: f64 = 1e-6;
/// Rounding of a coordinate that starts at its limit, m or rad.
const ROUNDING: f64 = 1e-9;

/// Nothing starts faster, m/s or rad/s: the speed of light. What is faster is a slip, and its energy overflows.
const FASTEST: f64 = 299_792_458.0;
const TOO_FAST: &str = "expected at most 299792458, the speed of light in m/s";

/// Coordinates and rates of the spanning tree.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// m, rad
    pub q: Vec<f64>,
    /// m/s, rad/s
    pub rates: Vec<f64>,
    /// Coordinates that stay as they are when loops are closed.
    pub held: Vec<bool>,
    /// Rates that were given.
    moved: Vec<bool>,
    /// Numbers that are to be found, with their bounds.
    pub free: Vec<(StartNumber, (f64, f64))>,
    /// Numbers that are drawn.
    pub drawn: Vec<Draw>,
    /// Numbers that are those of parameters, by name.
    pub(super) tied: Vec<(StartNumber, String)>,
    /// Coordinates given to joints that close loops: joint, values.
    checks: Vec<(usize, Vec<f64>)>,
}

/// A body whose surface overlaps another's at a state, and a sentence that says so; of several the one that overlaps most.
pub(super) fn overlapping(system: &System, x0: &[f64]) -> Option<(String, String)> {
    let (name, depth) = system.overlap(x0).filter(|(_, depth)| *depth > ROUNDING)?;
    let m = system.mechanism();
    let contact = m.contacts.iter().find(|c| c.name == name)?;
    let body = m.bodies[contact.child].name.clone();
    let message = format!("the surfaces of contact `{name}` overlap by {depth:.3e} m at the start");
    Some((body, message))
}

impl Start {
    /// What the file says.
    pub fn new(
        m: &Mechanism,
        source: &Source,
        initial: &IndexMap<String, InitialSpec>,
    ) -> Result<Self, FormatError> {
        let ids = m.tree_ids();
        let n = ids.len();
        let nearest_zero = ids.iter().map(|(j, i)| {
            let d = &m.joints[*j].directions[*i];
            0.0_f64.max(d.lower).min(d.upper)
        });
        let mut start = Self {
            q: nearest_zero.collect(),
            rates: vec![0.0; n],
            held: vec![false; n],
            moved: vec![false; n],
            free: vec![],
            drawn: vec![],
            tied: vec![],
            checks: vec![],
        };
        let joints = m.joints.iter().enumerate();
        let joints: HashMap<&str, usize> = joints.map(|(i, j)| (j.name.as_str(), i)).collect();
        let firsts = ids.iter().enumerate().filter(|(_, id)| id.1 == 0);
        let firsts: HashMap<usize, usize> = firsts.map(|(k, id)| (id.0, k)).collect();
        for (name, spec) in initial {
            let Some(index) = joints.get(name.as_str()).copied() else {
                let names = m.joints.iter().map(|j| j.name.as_str());
                let message =
                    format!("[initial] refers to the unknown joint or free body `{name}`");
                return Err(source.name_error(&["initial", name], message, nearest(name, names)));
            };
            let table = match spec.clone() {
                InitialSpec::Number(v) => coordinate(StartNumbers::One(v)),
                InitialSpec::Named(name) => coordinate(StartNumbers::Named(name)),
                InitialSpec::List(v) => coordinate(StartNumbers::List(v)),
                InitialSpec::Table(t) => *t,
            };
            let first = firsts.get(&index).copied();
            start.set(m, source, (index, first), &table)?;
        }
        Ok(start)
    }

    /// The state where the rates are those of an interval before, s, with the parameters as built.
    pub fn in_motion(&self, system: &System, before: f64) -> Result<Vec<f64>, StepError> {
        let p: Vec<f64> = system.parameters().iter().map(|p| p.value).collect();
        let start = From {
            coordinates: &self.q,
            rates: &self.rates,
            before,
        };
        let mut x = vec![0.0; system.dims().nx];
        system.initial(&start, &p, &mut system.work(), &mut x)?;
        Ok(x)
    }

    fn set(
        &mut self,
        m: &Mechanism,
        source: &Source,
        // the joint, and the first of its coordinates in the tree
        (index, first): (usize, Option<usize>),
        t: &InitialTable,
    ) -> Result<(), FormatError> {
        let joint = &m.joints[index];
        let name = joint.name.as_str();
        let err = |field: &str, message: String, help: &str| {
            source.error(&["initial", name, field], message, help)
        };
        // a parameter's value is put in its place later
        let given = |n: &NumberSpec| match n {
            NumberSpec::Given(v) => *v,
            NumberSpec::Named(_) => 0.0,
        };
        let numbers = |field: &str,
                       value: &Option<Vec<NumberSpec>>|
         -> Result<Option<Vec<f64>>, FormatError> {
            let Some(value) = value else { return Ok(None) };
            let values: Vec<f64> = value.iter().map(given).collect();
            let n = joint.directions.len();
            if values.len() != n {
                let names: Vec<String> = (0..n).map(|i| m.coordinate_name((index, i))).collect();
                let message = format!(
                    "{field} of joint `{name}` has {} numbers, expected {n}",
                    values.len()
                );
                let help = if n == 0 {
                    format!(
                        "a joint of kind `{}` does not move; leave it out",
                        joint.kind.name()
                    )
                } else {
                    format!("give one number for each of: {}", names.join(", "))
                };
                return Err(err(field, message, &help));
            }
            if let Some(v) = values.iter().find(|v| !v.is_finite()) {
                return Err(err(
                    field,
                    format!("{field} of `{name}` is {v}"),
                    "expected finite numbers",
                ));
            }
            if let Some(v) = values.iter().find(|v| field == "rate" && v.abs() > FASTEST) {
                return Err(err(
                    field,
                    format!("rate of `{name}` is {v:e} m/s or rad/s"),
                    TOO_FAST,
                ));
            }
            Ok(Some(values))
        };
        if t.coordinate.is_some() && t.guess.is_some() {
            let message = format!("`{name}` has a coordinate and a guess");
            return Err(err(
                "guess",
                message,
                "give `coordinate` to hold it, `guess` to start closing loops from it",
            ));
        }
        let list = |numbers: &Option<StartNumbers>| numbers.as_ref().map(StartNumbers::list);
        let (places, rates) = (list(&t.coordinate), list(&t.rate));
        let from = t.guess.clone().map(|g| StartNumbers::from(g).list());
        let (held, guess) = (numbers("coordinate", &places)?, numbers("guess", &from)?);
        let rate = numbers("rate", &rates)?;
        type Make = fn(usize) -> StartNumber;
        let both: [(_, Make); 2] = [
            (&places, StartNumber::Coordinate),
            (&rates, StartNumber::Rate),
        ];
        let named: Vec<(usize, Make, &String)> = both
            .into_iter()
            .flat_map(|(list, make)| list.iter().flatten().enumerate().map(move |n| (n, make)))
            .filter_map(|((i, n), make)| match n {
                NumberSpec::Named(name) => Some((i, make, name)),
                NumberSpec::Given(_) => None,
            })
            .collect();
        let free = free_start((joint, m.bodies[joint.child].origin), source, t)?;
        let Some(first) = first else {
            if t.free.is_some() {
                let message = format!(
                    "the start of joint `{name}` is to be found, and it closes a loop or does not move"
                );
                return Err(err(
                    "free",
                    message,
                    "free joints of the tree; what closes a loop follows",
                ));
            }
            // a joint that closes a loop, or one that does not move
            if let Some((.., parameter)) = named.first() {
                let message = format!(
                    "joint `{name}` closes a loop: its coordinates follow from the other joints, not from `{parameter}`"
                );
                return Err(err("coordinate", message, "set joints of the tree instead"));
            }
            if rate.is_some() || guess.is_some() || free.is_some() {
                let message = format!(
                    "joint `{name}` closes a loop: its coordinates and rates follow from the other joints"
                );
                return Err(err("rate", message, "set joints of the tree instead"));
            }
            self.checks.extend(held.map(|values| (index, values)));
            return Ok(());
        };
        let own = first..first + joint.directions.len();
        if let Some(values) = held.as_ref().or(guess.as_ref()) {
            self.q[own.clone()].copy_from_slice(values);
            self.held[own.clone()].fill(held.is_some());
        }
        if let Some(values) = rate {
            self.rates[own.clone()].copy_from_slice(&values);
            self.moved[own].fill(true);
        }
        let tied = named.iter();
        self.tied
            .extend(tied.map(|(i, make, parameter)| (make(first + i), (*parameter).clone())));
        if let Some(sought) = &t.free {
            self.find(m, source, (index, first), sought)?;
        }
        if let Some((q, rates)) = free {
            // position and orientation are one pose, its other half zero; so are the velocities
            let placed = t.position.is_some() || t.orientation.is_some();
            let moving = t.velocity.is_some() || t.angular_velocity.is_some();
            for (i, (q, rate)) in q.iter().zip(&rates).enumerate() {
                if placed {
                    (self.q[first + i], self.held[first + i]) = (*q, true);
                }
                if moving {
                    (self.rates[first + i], self.moved[first + i]) = (*rate, true);
                }
            }
        }
        Ok(())
    }

    /// Moves the coordinates that are free, and the rates, onto the closed loops.
    pub fn close(
        &mut self,
        m: &Mechanism,
        source: &Source,
        model_error: impl Fn(&ModelError) -> FormatError,
    ) -> Result<(), FormatError> {
        if !m.has_loops() {
            return Ok(());
        }
        self.engage(m);
        let given = self.q.clone();
        let poses = m
            .close(&mut self.q, &self.held)
            .map_err(|e| model_error(&e))?;
        for (k, id) in m
            .tree_ids()
            .iter()
            .enumerate()
            .filter(|(k, _)| self.held[*k])
        {
            if (self.q[k] - given[k]).abs() > TOLERANCE {
                let name = m.coordinate_name(*id);
                let open = m.loop_residual(&m.forward(&given), &given);
                return Err(source.error(
                    &["initial", &m.joints[id.0].name, "coordinate"],
                    format!(
                        "{} does not hold at `{name}` = {} with what else is given; nearest found: {}",
                        m.closed_by(open.iamax()),
                        given[k],
                        short(if self.q[k].abs() < f64::EPSILON { 0.0 } else { self.q[k] })
                    ),
                    "give fewer joints, the others follow; or say { guess = .. } where the value may move",
                ));
            }
        }
        self.close_rates(m, source, &m.loop_jacobian(&poses, &m.tree_basis(&poses)))
    }

    /// Followers of gears go where their leaders are, and leaders where limits of both allow, as far as neither is given: the nearest
    /// places at which gears hold may lie beyond limits.
    fn engage(&mut self, m: &Mechanism) {
        let ids = m.tree_ids();
        let place = |id| ids.iter().position(|own| *own == id);
        let pairs = || {
            m.gears()
                .filter_map(|g| Some((g, place(g.follower)?, place(g.leader)?)))
        };
        for (g, follower, leader) in pairs() {
            let d = &m.joints[g.follower.0].directions[g.follower.1];
            let [a, b] = [d.lower, d.upper].map(|c| (c - g.offset) / g.ratio);
            if self.held[follower] && !self.held[leader] {
                self.q[leader] = (self.q[follower] - g.offset) / g.ratio;
            } else if !self.held[leader] {
                self.q[leader] = self.q[leader].max(a.min(b)).min(a.max(b));
            }
        }
        let mut known = self.held.clone();
        for (g, follower, leader) in pairs() {
            if !known[follower] {
                self.q[follower] = g.ratio * self.q[leader] + g.offset;
                known[follower] = true;
            }
        }
    }

    /// Rates that were not given follow from those that were, in the sense of least squares.
    fn close_rates(
        &mut self,
        m: &Mechanism,
        source: &Source,
        loops: &DMatrix<f64>,
    ) -> Result<(), FormatError> {
        if !self.moved.contains(&true) || loops.nrows() == 0 {
            return Ok(());
        }
        let mut free = loops.clone();
        for (mut column, moved) in free.column_iter_mut().zip(&self.moved) {
            if *moved {
                column.fill(0.0);
            }
        }
        let open = loops * DVector::from_column_slice(&self.rates);
        if let Some(d) = least_squares(free, &-open) {
            for (r, d) in self.rates.iter_mut().zip(d.iter()) {
                *r += d;
            }
        }
        let open = loops * DVector::from_column_slice(&self.rates);
        let left = open.amax();
        if left <= TOLERANCE {
            return Ok(());
        }
        let ids = m.tree_ids();
        let first = self.moved.iter().position(|m| *m).and_then(|k| ids.get(k));
        let name = first.map_or("", |id| m.joints[id.0].name.as_str());
        Err(source.error(
            &["initial", name, "rate"],
            format!(
                "{} does not hold at the rates given: it opens at {left:.3e} m/s or rad/s",
                m.closed_by(open.iamax())
            ),
            "give fewer rates; the others follow from them",
        ))
    }

    /// Coordinates must be within the limits of their joints.
    pub fn within(&self, system: &System, source: &Source, x0: &[f64]) -> Result<(), FormatError> {
        let m = system.mechanism();
        let tree: HashMap<_, f64> = m
            .tree_ids()
            .into_iter()
            .zip(self.q.iter().copied())
            .collect();
        for (j, i) in m.coordinates() {
            let (joint, d) = (&m.joints[j], &m.joints[j].directions[i]);
            let at = match tree.get(&(j, i)) {
                Some(q) => *q,
                None => system.coordinate(x0, j, i),
            };
            let (beyond, which, limit) = if at < d.lower {
                (d.lower - at, "below its lower", d.lower)
            } else {
                (at - d.upper, "above its upper", d.upper)
            };
            if beyond > ROUNDING {
                let unit = d.unit_name();
                return Err(source.error(
                    &["initial", &joint.name, "coordinate"],
                    format!(
                        "`{}` starts at {at} {unit}, {which} limit {limit} {unit}",
                        m.coordinate_name((j, i))
                    ),
                    format!(
                        "expected {} to {} {unit}; start there, or change the limits of joint `{}`",
                        d.lower, d.upper, joint.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Surfaces must be outside of each other.
    pub fn apart(system: &System, source: &Source, x0: &[f64]) -> Result<(), FormatError> {
        let help = "move the bodies apart in [initial], put them in groups that do not name each other, or add the pair to excluded_pairs";
        match overlapping(system, x0) {
            Some((_, message)) => Err(source.error(&["initial"], message, help)),
            None => Ok(()),
        }
    }

    /// Coordinates given to joints that close loops must be those found.
    pub fn check(&self, system: &System, source: &Source, x0: &[f64]) -> Result<(), FormatError> {
        let m = system.mechanism();
        for (joint, values) in &self.checks {
            for (i, given) in values.iter().enumerate() {
                let j = &m.joints[*joint];
                let mut found = system.coordinate(x0, *joint, i);
                if j.directions[i].freedom == Freedom::Angle {
                    found = unwind(found, *given);
                }
                if (found - given).abs() > TOLERANCE {
                    return Err(source.error(
                        &["initial", &j.name, "coordinate"],
                        format!(
                            "joint `{}` closes a loop: `{}` follows from the other joints and is {found}, not {given}",
                            j.name,
                            m.coordinate_name((*joint, i))
                        ),
                        "leave it out, or set the other joints so that it fits",
                    ));
                }
            }
        }
        Ok(())
    }
}

fn coordinate(values: StartNumbers) -> InitialTable {
    InitialTable {
        coordinate: Some(values),
        ..InitialTable::default()
    }
}

/// Six coordinates and six rates.
type FreeStart = ([f64; 6], [f64; 6]);

/// Coordinates and rates of a free body from its pose and velocity; `None` if nothing of the kind is given.
fn free_start(
    (joint, origin): (&Joint, Vec3),
    source: &Source,
    t: &InitialTable,
) -> Result<Option<FreeStart>, FormatError> {
    let name = joint.name.as_str();
    let err = |field: &str, message: String, help: &str| {
        source.error(&["initial", name, field], message, help)
    };
    let vectors = [
        ("position", t.position),
        ("velocity", t.velocity),
        ("angular_velocity", t.angular_velocity),
    ];
    let given = vectors.iter().filter(|v| v.1.is_some()).map(|v| v.0);
    let Some(field) = given.chain(t.orientation.map(|_| "orientation")).next() else {
        return Ok(None);
    };
    if joint.kind != JointKind::Floating || joint.parent.is_some() {
        return Err(err(
            field,
            format!(
                "{field} is for free bodies; `{name}` is a joint of kind `{}`",
                joint.kind.name()
            ),
            "give `coordinate` and `rate`",
        ));
    }
    for (other, is) in [
        ("coordinate", t.coordinate.is_some()),
        ("guess", t.guess.is_some()),
        ("rate", t.rate.is_some()),
    ] {
        if is {
            let message = format!("`{name}` has {field} and {other}");
            return Err(err(
                other,
                message,
                "give position, orientation, velocity and angular_velocity, or coordinates and rates",
            ));
        }
    }
    for (field, v) in vectors {
        if let Some(v) = v.filter(|v| v.iter().any(|x| !x.is_finite())) {
            return Err(err(
                field,
                format!("{field} of `{name}` is {v:?}"),
                "expected finite numbers",
            ));
        }
        let moves = field != "position";
        if let Some(v) = v.filter(|v| moves && v.iter().any(|x| x.abs() > FASTEST)) {
            let message = format!("{field} of `{name}` is {v:?}");
            return Err(err(field, message, TOO_FAST));
        }
    }
    let q = match &t.orientation {
        None => Quat::identity(),
        Some(o) => o.quat().ok_or_else(|| {
            err(
                "orientation",
                format!("orientation of `{name}` is not a rotation"),
                "give rpy in rad, or a quaternion w, x, y, z",
            )
        })?,
    };
    let vector = |v: Option<[f64; 3]>| Vec3::from(v.unwrap_or_default());
    // the joint's coordinates are those of the child's anchor and of r = q off^-1
    let arm = joint.child_anchor - origin;
    let slide = vector(t.position) + q * arm - joint.parent_anchor;
    let turn = log(&(q * joint.offset.conjugate()));
    let omega = vector(t.angular_velocity);
    let slide_rate = vector(t.velocity) + q * omega.cross(&arm);
    let turn_rate = q * omega;
    let six = |a: Vec3, b: Vec3| [a.x, a.y, a.z, b.x, b.y, b.z];
    Ok(Some((six(slide, turn), six(slide_rate, turn_rate))))
}

/// Refuses constraints of a coordinate that ask for more than its limits allow.
pub(super) fn reachable(
    m: &Mechanism,
    source: &Source,
    (outputs, constraints): (&[Quantity], &[Constraint]),
) -> Result<(), FormatError> {
    for c in constraints {
        let Some(&Quantity::Coordinate { joint, direction }) = outputs.get(c.quantity.index())
        else {
            continue;
        };
        let d = &m.joints[joint].directions[direction];
        let beyond = match c.relation {
            Relation::Equal => c.value < d.lower || c.value > d.upper,
            Relation::Less => c.value < d.lower,
            Relation::Greater => c.value > d.upper,
        };
        if beyond {
            let name = m.coordinate_name((joint, direction));
            return Err(source.error(
                &["constraints"],
                format!(
                    "`{name}` {} {} is beyond its limits {} and {}",
                    c.relation, c.value, d.lower, d.upper
                ),
                "ask for what the limits allow, or widen them (angles are in rad)",
            ));
        }
    }
    Ok(())
}
