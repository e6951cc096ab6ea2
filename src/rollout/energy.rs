//! Energy, the work done from outside, and momentum of a mechanism along a trajectory.

use super::Trajectory;
use crate::dynamics::{Knot, StepError};
use crate::integrator::{ExternalWork, Mechanical, motions};
use crate::mechanism::{KnotData, Mechanism, Motion, Quantity};
use crate::spatial::{Pose, Vec3};
use std::ops::ControlFlow;

/// Share of the energy at play from which an error that grows is no error any more. A step that is only coarse gains a
/// tenth of it; what is unstable gains all there is.
const UNEXPLAINED: f64 = 0.5;
/// Smallest growth that is looked at, J: of what rests, rounding is all there is.
const LEAST: f64 = 1e-6;

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
    /// Velocities at the knots.
    pub velocities: Vec<Vec<Motion>>,
}

impl Balance {
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

    /// The first knot at which energy has grown by more than half of all that was at play, without work that explains it, or is no
    /// number.
    pub fn unexplained(&self) -> Option<usize> {
        let most = (UNEXPLAINED * self.largest_exchange()).clamp(LEAST, f64::MAX);
        // neither is a NaN nor an infinite one
        let within = |k: &usize| self.error(*k) <= most && self.energy(*k).is_finite();
        (0..self.kinetic.len()).find(|k| !within(k))
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

/// [`balance`] that shows every knot with all that was read of it, which is what takes long, and may be told there to
/// break off: the knots behind are then left out.
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
    let mut at = t.knot(0);
    for k in 0..=t.steps() {
        let seen = t.knot_point(&at);
        system.work_at(&seen, w, &mut external)?;
        if k == 0 {
            external.begin();
        }
        let data = system.knot_data(&seen, w);
        out.kinetic.push(Quantity::KineticEnergy.value(&data));
        out.potential.push(Quantity::PotentialEnergy.value(&data));
        out.velocities.push(motions(data.velocities));
        out.actuators.push(external.actuators);
        out.dampers.push(external.dampers);
        out.friction.push(external.contacts.friction);
        out.impacts.push(external.contacts.impacts);
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
