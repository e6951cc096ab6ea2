//! Energy, the work done from outside, and momentum of a mechanism along a trajectory.

use super::Trajectory;
use crate::dynamics::{Knot, StepError};
use crate::integrator::maximal::{ContactWork, Maximal, Velocities, Work};
use crate::mechanism::Mechanism;
use crate::spatial::{Pose, Vec3};

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
    /// Work of friction until the knot, in contacts and joints; never positive.
    pub friction: Vec<f64>,
    /// Work of impacts along normals, of contacts and limits, until the knot.
    pub impacts: Vec<f64>,
    /// Velocities at the knots.
    pub velocities: Vec<Velocities>,
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
}

/// The energy balance of the first `steps` steps of a trajectory.
///
/// # Errors
/// When the velocities at a knot cannot be read.
pub fn balance(solver: &Maximal, t: &Trajectory, w: &mut Work) -> Result<Balance, StepError> {
    let m = solver.mechanism();
    let mut out = Balance::default();
    let (mut actuators, mut dampers) = (0.0, 0.0);
    let mut previous: Option<Vec<Pose>> = None;
    let (mut pending, mut time) = (0.0, 0.0);
    let mut contacts = ContactWork::default();
    for k in 0..=t.steps() {
        let (at, x) = (
            Knot {
                t: time,
                ..t.knot_at(k)
            },
            t.state(k),
        );
        time += at.h;
        let poses = solver.poses(x);
        let v = solver.knot_velocities(&at, x, t.control(k), w)?;
        let power = solver.control_power(&poses, &v, t.control(k));
        // trapezoidal: half of the interval before with this knot's power, half of the one after
        actuators += pending + 0.5 * at.h_prev * power;
        pending = 0.5 * at.h * power;
        if let Some(old) = &previous {
            dampers -= solver.damped_displacements(old, &poses, |d, s| d * s * s / at.h_prev);
        }
        let y = if k < t.steps() { t.unknowns(k) } else { &[] };
        let [before, after] = solver.contact_work(w, y);
        contacts += before;
        out.friction.push(contacts.friction);
        out.impacts.push(contacts.impacts);
        contacts += after;
        out.kinetic.push(m.kinetic_energy(&v));
        let winding = |joint| solver.winding_angle(x, joint);
        out.potential.push(m.stored_energy(&poses, winding));
        out.actuators.push(actuators);
        out.dampers.push(dampers);
        out.velocities.push(v);
        previous = Some(poses);
    }
    Ok(out)
}

/// Linear momentum and angular momentum about the world's origin.
pub fn momentum(m: &Mechanism, poses: &[Pose], velocities: &Velocities) -> (Vec3, Vec3) {
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
