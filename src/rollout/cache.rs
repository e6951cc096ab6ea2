//! Linearizations kept from one reverse sweep for the next over the same trajectory.

use crate::dynamics::{Certificate, Dynamics, Linearization, SolvedStep, StepError};

/// The linearizations of the last steps, as many as memory was allowed for.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    slots: Vec<Slot>,
    steps: usize,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    /// Everything that goes into a linearization: intervals, state, control, parameters, unknowns.
    key: Vec<f64>,
    kept: Vec<f64>,
    certificate: Option<Certificate>,
}

/// The parts of a slot's key.
fn parts<'a>(s: &SolvedStep<'a>, scalars: &'a [f64; 3]) -> [&'a [f64]; 5] {
    [scalars, s.x, s.u, s.p, s.y]
}

impl Cache {
    /// Room for the last of `steps` steps in at most `bytes`.
    pub(super) fn new<D: Dynamics>(dynamics: &D, steps: usize, bytes: usize) -> Self {
        let (d, kept) = (dynamics.dims(), dynamics.kept());
        let key = 3 + d.nx + d.nu + d.np + d.ny;
        let slot = size_of::<Slot>() + size_of::<f64>() * (kept + key);
        let count = if kept == 0 { 0 } else { bytes / slot };
        let empty = Slot {
            key: vec![0.0; key],
            kept: vec![0.0; kept],
            certificate: None,
        };
        Self {
            slots: vec![empty; count.min(steps)],
            steps,
        }
    }

    /// Linearizes a step, from memory if that is still the same step.
    pub(super) fn linearize<'a, D: Dynamics>(
        &mut self,
        dynamics: &'a D,
        s: &SolvedStep,
        w: &'a mut D::Work,
    ) -> Result<Linearization<'a, D>, StepError> {
        let last = self.steps.checked_sub(s.at.k + 1);
        let Some(slot) = last.and_then(|i| self.slots.get_mut(i)) else {
            return dynamics.linearize(s, w);
        };
        let scalars = [s.at.t, s.at.h_prev, s.at.h];
        let mut key = slot.key.as_slice();
        let is_same = parts(s, &scalars).iter().all(|part| {
            let (own, rest) = key.split_at(part.len());
            key = rest;
            own == *part
        });
        let linear = match slot.certificate.take().filter(|_| is_same) {
            Some(certificate) => dynamics.restore(s, (&slot.kept, certificate), w)?,
            None => dynamics.linearize(s, w)?,
        };
        if linear.is_restored() {
            slot.certificate = Some(linear.certificate());
        } else if linear.keep(&mut slot.kept) {
            let mut key = slot.key.as_mut_slice();
            for part in parts(s, &scalars) {
                let (own, rest) = key.split_at_mut(part.len());
                own.copy_from_slice(part);
                key = rest;
            }
            slot.certificate = Some(linear.certificate());
        }
        Ok(linear)
    }
}
