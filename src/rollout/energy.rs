//! Energy, the work done from outside, and momentum of a mechanism along a trajectory.

use super::Trajectory;
use super::growth::{InPlay, ROUNDING};
use crate::dynamics::{Knot, StepError};
use crate::integrator::{ExternalWork, Mechanical, StepWork, motions};
use crate::mechanism::{KnotData, Mechanism, Motion, Quantity};
use crate::spatial::{Pose, Vec3};
use std::ops::ControlFlow;

/// Energies (J) at the knots, from the second-order read-out of the velocities, and the work done until then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Balance {
    /// 1/2 sum m v'v + w'Jw
    pub kinetic: Vec<f64>,
    /// Gravity, springs and users' potentials.
    pub potential: Vec<f64>,
    /// Work of the actuators until the knot.
    pub actuators: Vec<f64>,
    /// Work of the dampers until the knot; never positive.
    pub dampers: Vec<f64>,
    /// Work of friction until the knot, in contacts and joints; above zero by errors of the discretization alone.
    pub friction: Vec<f64>,
    /// Work of impacts along normals, of contacts and limits, until the knot. A knot with a blow has two velocities: those
    /// before it count there, what it does counts behind.
    pub impacts: Vec<f64>,
    /// What actuators do until the knot within half a step and the motion does not show; see [`ExternalWork::unresolved`].
    pub unresolved: Vec<f64>,
    /// Sum of the sizes of the actuators' works in each step until the knot.
    pub exerted: Vec<f64>,
    /// The part of it in steps that moved an actuator against its direction of the step before.
    pub reversed: Vec<f64>,
    /// Work of the actuators until the knot beyond that of efforts which are linear between the knots. It is what a feedback law does
    /// because its controls are held over a step, and would not do if it acted continuously.
    pub held: Vec<f64>,
    /// Of each actuator, the sum of the sizes of its works in each step until the knot.
    pub exerted_by: Vec<Vec<f64>>,
    /// Velocities at the knots.
    pub velocities: Vec<Vec<Motion>>,
    /// Energy that gravity gives the bodies from rest in one step, `sum m (g h)^2/2` of the longest, J: less is not resolved. Without
    /// gravity it is what the central path of contacts does with the forces of springs.
    pub resolution: f64,
    /// Groups of bodies that nothing connects with the others, and on which only gravity, springs and the like act; none if all bodies are
    /// of one group.
    pub apart: Vec<Apart>,
}

/// The energies of bodies that nothing connects with the others, and on which nothing does work; as those of a [`Balance`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Apart {
    /// The bodies.
    pub bodies: Vec<usize>,
    /// J
    pub kinetic: Vec<f64>,
    /// J
    pub potential: Vec<f64>,
    /// J
    pub resolution: f64,
}

impl Apart {
    fn add(&mut self, k: &KnotData, fall: f64) {
        let (m, own) = (k.mechanism, |b: usize| self.bodies.contains(&b));
        let energy = |b: &usize| {
            let (body, (v, w)) = (&m.bodies[*b], k.motion(*b));
            0.5 * (body.mass * v.norm_squared() + w.dot(&(body.inertia * w)))
        };
        let potential = m.stored_energy_of(own, k.poses, |j| k.windings[j]);
        let mass: f64 = self.bodies.iter().map(|b| m.bodies[*b].mass).sum();
        self.resolution = 0.5 * mass * fall * fall;
        self.kinetic.push(self.bodies.iter().map(energy).sum());
        self.potential.push(potential);
    }

    /// The balance of these bodies alone.
    fn balance(&self) -> Balance {
        let none = vec![0.0; self.kinetic.len()];
        Balance {
            kinetic: self.kinetic.clone(),
            potential: self.potential.clone(),
            velocities: vec![vec![]; none.len()],
            actuators: none.clone(),
            dampers: none.clone(),
            friction: none.clone(),
            impacts: none.clone(),
            unresolved: none.clone(),
            exerted: none.clone(),
            reversed: none.clone(),
            held: none,
            resolution: self.resolution,
            ..Balance::default()
        }
    }
}

impl Balance {
    /// The balances of what moves apart, and that of all else together, each with its bodies; none if nothing moves apart.
    pub fn parts(&self) -> Vec<(Vec<usize>, Self)> {
        if self.apart.is_empty() {
            return vec![];
        }
        let count = self.velocities.first().map_or(0, Vec::len);
        let is_apart = |b: &usize| self.apart.iter().any(|own| own.bodies.contains(b));
        let others: Vec<usize> = (0..count).filter(|b| !is_apart(b)).collect();
        // sums of large energies are rounded
        let largest = |curve: &[f64]| curve.iter().fold(0.0, |m: f64, e| m.max(e.abs()));
        let rounded = ROUNDING * largest(&self.kinetic).max(largest(&self.potential));
        let mut rest = Self {
            apart: vec![],
            resolution: self.resolution + rounded,
            ..self.clone()
        };
        for own in &self.apart {
            for k in 0..rest.kinetic.len() {
                rest.kinetic[k] -= own.kinetic[k];
                rest.potential[k] -= own.potential[k];
            }
        }
        let apart = self.apart.iter();
        let mut parts: Vec<_> = apart
            .map(|own| (own.bodies.clone(), own.balance()))
            .collect();
        if !others.is_empty() {
            parts.push((others, rest));
        }
        parts
    }

    /// Energy at knot `k`, J.
    pub fn energy(&self, k: usize) -> f64 {
        self.kinetic[k] + self.potential[k]
    }

    /// Work of everything until knot `k`, J.
    pub fn work(&self, k: usize) -> f64 {
        self.actuators[k] + self.dampers[k] + self.friction[k] + self.impacts[k]
    }

    /// Energy minus its start minus the work done, J: what the discretization adds.
    pub fn error(&self, k: usize) -> f64 {
        self.energy(k) - self.energy(0) - self.work(k)
    }

    /// The largest [`Balance::error`] in size, J.
    pub fn largest_error(&self) -> f64 {
        (0..self.kinetic.len())
            .map(|k| self.error(k).abs())
            .fold(0.0, f64::max)
    }

    /// [`Balance::error`] without what actuators do within half a step and the motion does not show ([`Balance::unresolved`]), J.
    pub fn motion_error(&self, k: usize) -> f64 {
        self.error(k) - self.unresolved[k]
    }

    /// The largest [`Balance::motion_error`] in size, J.
    pub fn largest_motion_error(&self) -> f64 {
        (0..self.kinetic.len())
            .map(|k| self.motion_error(k).abs())
            .fold(0.0, f64::max)
    }

    /// The largest kinetic energy along the way, or the largest change of the potential energy or of a work, J.
    pub fn in_play(&self) -> f64 {
        let mut play = InPlay::default();
        (0..self.kinetic.len()).for_each(|k| play.add(self, k));
        play.size()
    }

    /// The largest energy that anything took or gave along the way, J.
    pub fn largest_exchange(&self) -> f64 {
        let range = |curve: &[f64]| {
            let low = curve.iter().copied().fold(f64::INFINITY, f64::min);
            curve.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low
        };
        let curves = [
            &self.kinetic,
            &self.potential,
            &self.actuators,
            &self.dampers,
            &self.friction,
            &self.impacts,
        ];
        curves.map(|c| range(c)).into_iter().fold(0.0, f64::max)
    }
}

/// The energy balance of a trajectory.
///
/// # Errors
/// When the velocities at a knot cannot be read.
pub fn balance<S: Mechanical>(
    system: &S,
    t: &Trajectory,
    w: &mut S::Work,
) -> Result<Balance, StepError> {
    balance_with(system, t, w, |_, _| ControlFlow::Continue(()))
}

/// Share of the energy of springs that the central path of contacts may take or give while they press without gravity: at a force `k x` it
/// yields at about 1e-9 m/s, which in 5 s comes to 1e-5 of `k x^2/2` if `x` is 1 mm.
const PRESSED: f64 = 1e-5;

/// [`balance`] that shows every knot with all that was read of it, which is what takes long, and may end there: later knots are then
/// left out.
///
/// # Errors
/// As [`balance`].
pub fn balance_with<S: Mechanical>(
    system: &S,
    t: &Trajectory,
    w: &mut S::Work,
    mut visit: impl FnMut(&Knot, &KnotData) -> ControlFlow<()>,
) -> Result<Balance, StepError> {
    let mut out = Balance::default();
    let mut external = ExternalWork::default();
    let longest = t.intervals.iter().fold(0.0, |m: f64, h| m.max(h.abs()));
    let m = system.mechanism();
    if m.groups().iter().any(|group| *group > 0) {
        let apart = |bodies| Apart {
            bodies,
            ..Apart::default()
        };
        out.apart = m.conservative_groups().into_iter().map(apart).collect();
    }
    let mut at = t.knot(0);
    for k in 0..=t.steps() {
        let seen = t.knot_point(&at);
        system.work_at(&seen, w, &mut external)?;
        let mut step = external.end_step();
        if k == 0 {
            external.begin();
            step = StepWork::default();
        }
        let add = |curve: &mut Vec<f64>, size: f64| {
            curve.push(curve.last().map_or(0.0, |sum| sum + size));
        };
        add(&mut out.exerted, step.exerted);
        add(&mut out.reversed, step.reversed);
        add(&mut out.held, step.held);
        let sizes = external.sizes();
        out.exerted_by.resize(sizes.len(), vec![]);
        for (curve, size) in out.exerted_by.iter_mut().zip(sizes) {
            add(curve, *size);
        }
        let data = system.knot_data(&seen, w);
        let mass: f64 = data.mechanism.bodies.iter().map(|b| b.mass).sum();
        let fall = longest * data.mechanism.gravity.norm();
        out.kinetic.push(Quantity::KineticEnergy.value(&data));
        out.potential.push(Quantity::PotentialEnergy.value(&data));
        let pressed = fall == 0.0 && data.mechanism.may_touch();
        let least = match pressed {
            true => PRESSED * out.potential[k].abs(),
            false => 0.5 * mass * fall * fall,
        };
        out.resolution = out.resolution.max(least);
        out.apart.iter_mut().for_each(|own| own.add(&data, fall));
        out.velocities.push(motions(data.velocities));
        out.actuators.push(external.actuators);
        out.unresolved.push(external.unresolved());
        out.dampers.push(external.dampers());
        let contacts = external.contacts();
        out.friction.push(contacts.friction);
        out.impacts.push(contacts.impacts);
        if visit(&at, &data).is_break() {
            break;
        }
        if k < t.steps() {
            system.work_within(&seen, w, &mut external)?;
        }
        at = t.knot_after(&at);
    }
    Ok(out)
}

/// Linear momentum and angular momentum about the world's origin.
pub fn momentum(m: &Mechanism, poses: &[Pose], velocities: &[Motion]) -> (Vec3, Vec3) {
    m.bodies.iter().zip(poses.iter().zip(velocities)).fold(
        (Vec3::zeros(), Vec3::zeros()),
        |(p, l), (b, (pose, (v, w)))| {
            let linear = v * b.mass;
            (
                p + linear,
                l + pose.x.cross(&linear) + pose.r * (b.inertia * w),
            )
        },
    )
}
