//! Strides of a quadruped from half a one, and what the step itself makes of them under linear feedback.

use least_action::control::{ClosedLoop, LinearFeedback};
use least_action::dynamics::{Charts, Differentiable, LinearModel, SolvedStep, Start, Step};
use least_action::integrator::{Mechanical, System};
use least_action::rollout::{RolloutStats, Trajectory};
use least_action::spatial::{Quat, Vec3};
use nalgebra::{DMatrix, DVector};
use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;

pub const LEGS: [&str; 4] = ["FR", "FL", "RR", "RL"];
/// A foot from its shank's center of mass, and the least height at which it is off the floor, m.
const CLEAR: f64 = 1e-4;
const FOOT: [f64; 3] = [0.0, 0.0, -0.1];
/// Of two halves each.
const STRIDES: usize = 20;
/// What a deviation costs: coordinates, m and rad, and rates, m/s and rad/s, beside torques, N m, squared.
const OF_COORDINATES: f64 = 1.0;
const OF_RATES: f64 = 1e-2;
const OF_TORQUES: f64 = 1e-4;
/// Derivatives of the feedback's models are those at this parameter of the contacts' central path, m^2/s^2.
const SMOOTHING: f64 = 1e-4;
/// The trunk's height among the tree's coordinates, and the least one that is not a fall, m: it stands at 0.29.
const HEIGHT: usize = 2;
const FALLEN: f64 = 0.15;
/// States that differ less are the same, m, rad, m/s and rad/s.
const SAME: f64 = 1e-3;

/// With feedback, and without.
pub fn replays(system: &System, half: &Trajectory) -> Result<(Replay, Replay), Box<dyn Error>> {
    let plan = plan(system, half)?;
    let gains = feedback(system, &plan)?;
    let none = gains.iter().map(|k| k * 0.0).collect();
    Ok((
        Replay::of(system, &plan, gains)?,
        Replay::of(system, &plan, none)?,
    ))
}

/// Which feet are off the floor, knot by knot: of a trot those of a diagonal.
pub fn flights(system: &System, half: &Trajectory) -> Vec<String> {
    let at = |k: usize| {
        let up = |leg: &&str| height(system, half.state(k), leg) > CLEAR;
        LEGS.into_iter().filter(up).collect::<Vec<_>>().join("+")
    };
    (0..half.steps()).map(at).collect()
}

/// Of a foot, m.
pub fn height(system: &System, x: &[f64], leg: &str) -> f64 {
    let shank = system.mechanism().body(&format!("{leg}_calf"));
    system.poses(x)[shank.expect("a leg has a shank")]
        .point(&Vec3::from(FOOT))
        .z
}

/// Signs and places of the tree's coordinates in the image on the other side of the plane that the robot walks in.
fn image(system: &System) -> Vec<(usize, f64)> {
    let m = system.mechanism();
    let ids = m.tree_ids();
    let names: Vec<_> = ids.iter().map(|id| m.coordinate_name(*id)).collect();
    let each = names.iter().enumerate().map(|(i, name)| {
        let other = match name.split_at_checked(2) {
            Some(("FR", leg)) => format!("FL{leg}"),
            Some(("FL", leg)) => format!("FR{leg}"),
            Some(("RR", leg)) => format!("RL{leg}"),
            Some(("RL", leg)) => format!("RR{leg}"),
            // the trunk: along and across, turns about either
            _ => return (i, [1.0, -1.0, 1.0, -1.0, 1.0, -1.0][i]),
        };
        // a leg made by `mirror` has the coordinates of the other
        let place = names.iter().position(|n| *n == other);
        (place.unwrap_or(i), 1.0)
    });
    each.collect()
}

fn imaged(of: &[f64], image: &[(usize, f64)]) -> Vec<f64> {
    image.iter().map(|(i, sign)| of[*i] * sign).collect()
}

/// All strides, from the first knot whose step is the plan's: where feet land a step can end in several ways, and one that starts without
/// the impulses of the step before may find another.
fn plan(system: &System, half: &Trajectory) -> Result<Trajectory, Box<dyn Error>> {
    let (mut w, mut next) = (system.work(), vec![0.0; system.dims().nx]);
    let mut y = vec![0.0; system.dims().ny];
    for first in 0..half.steps() {
        let t = strides(system, half, first)?;
        y.fill(0.0);
        let (x, u) = (t.state(0), t.control(0));
        let made = system.step(&t.knot(0), x, u, &t.p, &mut w, &mut next, &mut y);
        if made.is_ok() && is_same(&next, t.state(1)) {
            return Ok(t);
        }
    }
    Err("no step of the plan is one that starts without impulses".into())
}

fn is_same(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() < SAME)
}

/// All strides from a knot on: every other half is the image of the first, one where the other ends.
fn strides(system: &System, half: &Trajectory, first: usize) -> Result<Trajectory, Box<dyn Error>> {
    let count = 2 * STRIDES;
    let (steps, h) = (half.steps(), half.intervals[0]);
    let image = image(system);
    let controls: Vec<_> = {
        // of the joints that they drive
        let m = system.mechanism();
        let ids = m.tree_ids();
        let names: Vec<_> = ids.iter().map(|id| m.coordinate_name(*id)).collect();
        let place = |name: &String| names.iter().position(|n| n == name);
        let own = system.controls();
        let of = |c: &(String, String)| place(&c.0).map(|i| image[i]);
        let back = |i: usize| own.iter().position(|c| c.0 == names[i]);
        let each = own
            .iter()
            .map(|c| of(c).and_then(|(i, s)| Some((back(i)?, s))));
        each.collect::<Option<_>>()
            .ok_or("a control is of no joint")?
    };
    let coordinates: Vec<_> = (0..=steps)
        .map(|k| system.tree_coordinates(half.state(k)))
        .collect();
    let stride = coordinates[steps][0] - coordinates[0][0];
    let at = |k: usize| {
        let (turn, k) = ((k + first) / steps, (k + first) % steps);
        let mut q = coordinates[k].clone();
        if turn % 2 == 1 {
            q = imaged(&q, &image);
        }
        q[0] += stride * turn as f64;
        q
    };
    let (mut w, p) = (system.work(), &half.p);
    let mut t = Trajectory::new(system, vec![h; count * steps], half.state(0));
    t.p.copy_from_slice(p);
    let (nx, nu) = (system.dims().nx, system.dims().nu);
    for k in 0..=count * steps {
        let q = at(k);
        // a stride goes before the first
        let mut before = at(k + 2 * steps - 1);
        before[0] -= 2.0 * stride;
        let mut rates: Vec<f64> = q.iter().zip(&before).map(|(a, b)| (a - b) / h).collect();
        let turn = |q: &[f64]| Quat::from_scaled_axis(Vec3::from_column_slice(&q[3..6]));
        let spin = (turn(&q) * turn(&before).inverse()).scaled_axis() / h;
        rates[3..6].copy_from_slice(spin.as_slice());
        let start = Start {
            coordinates: &q,
            rates: &rates,
            before: h,
        };
        system.initial(&start, p, &mut w, &mut t.x[k * nx..(k + 1) * nx])?;
        if k < count * steps {
            let u = half.control((k + first) % steps);
            let u = match ((k + first) / steps) % 2 {
                0 => u.to_vec(),
                _ => imaged(u, &controls),
            };
            t.u[k * nu..(k + 1) * nu].copy_from_slice(&u);
        }
    }
    t.before = h;
    Ok(t)
}

/// Linear-quadratic feedback around a plan, K (nu x ndx) for each step.
fn feedback(system: &System, plan: &Trajectory) -> Result<Vec<DMatrix<f64>>, Box<dyn Error>> {
    let d = system.dims();
    let (mut w, n) = (system.work(), d.ndx);
    let weights = |i| if i < n / 2 { OF_COORDINATES } else { OF_RATES };
    let cost = DMatrix::from_diagonal(&DVector::from_fn(n, |i, _| weights(i)));
    let torques = DMatrix::identity(d.nu, d.nu) * OF_TORQUES;
    let (mut value, mut models, mut gains) = (cost.clone(), vec![], vec![]);
    let (mut y, mut next) = (vec![0.0; d.ny], vec![0.0; d.nx]);
    let mut model = LinearModel::new(&d);
    for k in 0..plan.steps() {
        let at = plan.knot(k);
        let (x, u, p) = (plan.state(k), plan.control(k), &plan.p);
        system.step(&at, x, u, p, &mut w, &mut next, &mut y)?;
        if !is_same(&next, plan.state(k + 1)) {
            return Err(
                format!("the step from knot {k} ends in another way than the plan's").into(),
            );
        }
        let frame = system.frame(&at, x, p, None, &mut w)?;
        let to = system.frame(&plan.knot_after(&at), &next, p, Some(&frame), &mut w)?;
        let solved = SolvedStep {
            at,
            x,
            u,
            p,
            y: &y,
            next: &next,
        };
        system.smoothing(&mut w, SMOOTHING);
        system
            .linearize(&solved, &mut w)?
            .linear_model(&frame, &to, &mut model);
        system.smoothing(&mut w, 0.0);
        models.push((model.a.clone(), model.b.clone()));
    }
    for (a, b) in models.iter().rev() {
        let by = b.tr_mul(&value);
        let hessian = &torques + &by * b;
        let gain = hessian.cholesky().ok_or("no feedback")?.solve(&(&by * a)) * -1.0;
        value = &cost + a.tr_mul(&value) * (a + b * &gain);
        value = (&value + value.transpose()) * 0.5;
        gains.push(gain);
    }
    gains.reverse();
    Ok(gains)
}

/// What the step itself makes of a plan.
pub struct Replay {
    pub trajectory: Trajectory,
    /// Largest deviation of a coordinate from the plan, m or rad, knot by knot, until it falls or a step fails.
    pub off: Vec<f64>,
    /// Largest torque that feedback asked for, N m.
    pub torque: f64,
    /// What ended it before the plan does.
    pub end: Option<String>,
}

impl Replay {
    fn of(
        system: &System,
        plan: &Trajectory,
        gains: Vec<DMatrix<f64>>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut w = system.work();
        let frame = system.frame(&plan.knot(0), plan.state(0), &plan.p, None, &mut w)?;
        let policy = LinearFeedback::new(plan.clone(), gains, vec![frame])?;
        let closed = ClosedLoop::new(system, policy);
        let mut trajectory = Trajectory::new(&closed, plan.intervals.clone(), plan.state(0));
        trajectory.p.copy_from_slice(&plan.p);
        trajectory.before = plan.before;
        let mut off = vec![0.0];
        let (mut memory, mut stats) = (closed.work(), RolloutStats::default());
        let mut end = None;
        let done = trajectory.roll_until(&closed, &mut memory, &mut stats, |seen, _| {
            let planned = system.tree_coordinates(plan.state(seen.at.k));
            let q = system.tree_coordinates(seen.x);
            let each = q.iter().zip(&planned).map(|(a, b)| (a - b).abs());
            off.push(each.fold(0.0, f64::max));
            if q[HEIGHT] >= FALLEN {
                return Ok(ControlFlow::Continue(()));
            }
            end = Some("falls".into());
            Ok(ControlFlow::Break(()))
        });
        if let Err(e) = done {
            end = Some(format!("stops ({e})"));
        }
        trajectory.truncate(off.len() - 1);
        let trajectory = closed.acted(&trajectory, &mut memory)?;
        Ok(Self {
            torque: trajectory.u.iter().fold(0.0, |m: f64, u| m.max(u.abs())),
            trajectory,
            off,
            end,
        })
    }

    /// Time at a knot, s.
    pub fn time(&self, k: usize) -> f64 {
        self.trajectory.intervals[..k].iter().sum()
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let last = self.off.len() - 1;
        let (end, most) = (
            self.time(last),
            self.off.iter().fold(0.0, |m: f64, o| m.max(*o)),
        );
        let how = self.end.as_deref().unwrap_or("is still up");
        write!(
            f,
            "it {how} after {end:.2} s, {most:.1e} m or rad from the plan at most, by {:.1} N m at most",
            self.torque
        )
    }
}
