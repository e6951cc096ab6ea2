//! A step with a blow at its knot: the velocities are read out, the blow changes them, and the step starts anew from there.
//!
//! Three maps in a row, each solved and differentiated as a step or a read-out is, in a memory of its own:
//!
//! ```text
//! (z, v-, h-) -> v    the read-out at the knot, without what bounces
//! (z, v) -> v'        the blow: M (v' - v) = G' lambda + impulses, G v' = 0, N v' = -e N v
//! (z, v') -> next     the step from momenta M v', of no interval before
//! ```

use super::{Maximal, Work};
use crate::contact::AfterBlow;
use crate::dynamics::{Inputs, Knot, Outputs, Place, Stage, StepError};

/// Memory of a blow.
pub(super) struct Blow {
    read: Work,
    strike: Work,
    /// States at the knot with the velocities before the blow and behind it.
    before: Vec<f64>,
    after: Vec<f64>,
    /// Has the step of this memory a blow?
    struck: bool,
    inputs: Inputs,
    outputs: Outputs,
    /// Change of what the blow did.
    done: Vec<f64>,
}

impl Work {
    /// Has the step last solved or linearized a blow?
    fn is_struck(&self) -> bool {
        self.blow.as_ref().is_some_and(|b| b.struck)
    }
}

impl Maximal {
    /// Memory for blows, where something bounces.
    pub(super) fn blow_memory(&self) -> Option<Box<Blow>> {
        let (d, x) = (self.dims(), vec![0.0; self.dims().nx]);
        (!self.contacts.blows().is_empty()).then(|| {
            Box::new(Blow {
                read: self.plain_work(),
                strike: self.plain_work(),
                before: x.clone(),
                after: x,
                struck: false,
                inputs: d.inputs(),
                outputs: d.outputs(),
                done: vec![0.0; self.contacts.blows().len()],
            })
        })
    }

    /// The step last solved or linearized has no blow.
    pub(super) fn forget_blow(w: &mut Work) {
        if let Some(blow) = &mut w.blow {
            blow.struck = false;
        }
    }

    /// Solves the blow of what bounces according to the step prepared, which is then the one from behind the blow.
    pub(super) fn strike(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        w: &mut Work,
    ) -> Result<(), StepError> {
        let Some(mut blow) = w.blow.take() else {
            return Ok(());
        };
        let done = self.strike_in(at, x, u, w, &mut blow);
        blow.struck = done.is_ok();
        w.blow = Some(blow);
        done
    }

    fn strike_in(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        w: &mut Work,
        blow: &mut Blow,
    ) -> Result<(), StepError> {
        self.apply(&w.parameters, &mut blow.read)?;
        self.apply(&w.parameters, &mut blow.strike)?;
        blow.read.contacts.follow(&w.contacts);
        self.readout(at.readout(), (x, u, &[]), &mut blow.read)?;
        self.with_velocities(x, &blow.read, &mut blow.before);
        blow.strike.contacts.blow(&w.contacts, at.h);
        let anew = |stage| Place {
            t: at.t,
            h_prev: 0.0,
            stage,
        };
        self.prepare(
            anew(Stage::Readout(at.h)),
            &blow.before,
            u,
            &mut blow.strike,
        )?;
        self.readout_contacts(&mut blow.strike, &[])?;
        self.with_velocities(x, &blow.strike, &mut blow.after);
        w.contacts.set_after_blow(true);
        let done = self.prepare(anew(Stage::Step(at.h)), &blow.after, u, w);
        w.contacts.set_after_blow(false);
        done
    }

    /// What the step behind a blow that was solved shows.
    pub(super) fn strikes_after_blow(&self, w: &mut Work) -> AfterBlow {
        let Some(blow) = w.blow.take() else {
            return AfterBlow::Nothing;
        };
        let before = &blow.read.newton.trial[..6 * self.body_count()];
        let (view, memory, ..) = self.split(w);
        let struck = &blow.strike.contacts;
        let shows = (self.contacts).strikes_after_blow(&view, memory, struck, before);
        w.blow = Some(blow);
        shows
    }

    /// The state with the velocities that were read out.
    pub(super) fn with_velocities(&self, x: &[f64], w: &Work, out: &mut [f64]) {
        out.copy_from_slice(x);
        let each = out.chunks_exact_mut(13).zip(w.newton.trial.chunks_exact(6));
        for (out, v) in each.take(self.body_count()) {
            out[7..13].copy_from_slice(v);
        }
    }

    /// Writes what the blow did, if there was one.
    pub(super) fn write_blow(&self, w: &Work, y: &mut [f64]) {
        let blow = w.blow.as_ref().filter(|b| b.struck);
        let done = blow.map(|b| [&b.read.contacts, &b.strike.contacts]);
        self.contacts.write_blow(&w.contacts, done, y);
    }

    /// Makes ready for pushes and pulls through the blow; returns how far its products are off the path.
    pub(super) fn linearize_blow(&self, w: &mut Work) -> f64 {
        let mut off = 0.0_f64;
        let certificate = w.adjoint.certificate;
        if let Some(blow) = w.blow.as_mut().filter(|b| b.struck) {
            for w in [&mut blow.read, &mut blow.strike] {
                w.adjoint.certificate = certificate;
                w.adjoint.coupled = false;
                off = off.max(self.contacts.off_centre(&w.contacts));
                self.turn_elements(w);
                self.linearize_readout(w);
            }
        }
        off
    }

    /// Change of the outputs by a change of the inputs.
    pub(super) fn push_through(&self, w: &mut Work, d: &Inputs, out: &mut Outputs) {
        if !w.is_struck() {
            return self.push_step(w, d, out);
        }
        let Some(mut blow) = w.blow.take() else {
            return;
        };
        let n = 6 * self.body_count();
        let Blow {
            read,
            strike,
            inputs,
            outputs,
            done,
            ..
        } = &mut *blow;
        inputs.clone_from(d);
        inputs.h = 0.0;
        self.push_step(read, inputs, outputs);
        done.fill(0.0);
        self.contacts.add_blow(&outputs.y, done);
        inputs.x[n..].copy_from_slice(&outputs.y[..n]);
        (inputs.h, inputs.h_prev) = (d.h, 0.0);
        self.push_step(strike, inputs, outputs);
        self.contacts.add_blow(&outputs.y, done);
        inputs.x[n..].copy_from_slice(&outputs.y[..n]);
        self.push_step(w, inputs, out);
        out.y[self.contacts.blows()].copy_from_slice(done);
        w.blow = Some(blow);
    }

    /// Adjoints of the inputs from those of the outputs.
    pub(super) fn pull_through(&self, w: &mut Work, adjoint: &Outputs, out: &mut Inputs) {
        self.pull_step(w, adjoint, out);
        if !w.is_struck() {
            return;
        }
        let Some(mut blow) = w.blow.take() else {
            return;
        };
        let n = 6 * self.body_count();
        let Blow {
            read,
            strike,
            inputs,
            outputs,
            ..
        } = &mut *blow;
        outputs.x.fill(0.0);
        for (w, reads) in [(strike, false), (read, true)] {
            outputs.y.fill(0.0);
            outputs.y[..n].copy_from_slice(&out.x[n..]);
            self.contacts.pull_blow(&adjoint.y, &mut outputs.y);
            self.pull_step(w, outputs, inputs);
            out.x[n..].fill(0.0);
            let add = |out: &mut [f64], d: &[f64]| {
                out.iter_mut().zip(d).for_each(|(o, d)| *o += d);
            };
            add(&mut out.x, &inputs.x);
            add(&mut out.u, &inputs.u);
            add(&mut out.p, &inputs.p);
            // only the read-out knows of the interval before
            if reads {
                out.h_prev = inputs.h_prev;
            } else {
                out.h += inputs.h;
            }
        }
        for inner in [&blow.read, &blow.strike] {
            let worst = inner.adjoint.certificate.zip(w.adjoint.certificate);
            w.adjoint.certificate = worst.map(|(a, b)| a.max(b));
        }
        w.blow = Some(blow);
    }
}
