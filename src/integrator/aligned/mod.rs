//! Steps split at the instants of elastic impacts.
//!
//! What bounces at knots bounces up to an interval too early. The motion shows little of it; the map from the start to the end of
//! a step is a sawtooth of the impact's instant, whose exact derivative has the wrong sign: that of the height of a ball behind
//! its first bounce by its height before is +1 where the truth is -1. Here an interval `h` is split where a gap closes:
//!
//! ```text
//! z(tau) = step(z, v-; h-, tau),  gap(z(tau)) = 0
//! blow at z(tau), step from behind it over h - tau, and so on
//! ```
//!
//! so that `tau` is a function of the state, with the derivative `d tau = -(d gap)/(d gap/d tau)` by everything else.
//!
//! - What may bounce does not touch in a first attempt; what then ends behind its surface comes through it. The instant at which
//!   the first does is found by parabolas in a bracket, to rounding. All that is there at that instant (within [`TOUCHING`])
//!   and comes nearer strikes in one blow, by Newton's law.
//! - What would fly for less than two intervals (`2 e v/g`), and what comes through when an interval was split [`MOST`] times,
//!   rests instead: it touches for the interval as what has no restitution does. What rests at a knot, within what the central path
//!   lets it, is treated so from the beginning.
//! - What opens again within an interval after it closed is not seen.
//! - An instant nearer to a knot than [`SHORTEST`] intervals is taken at that knot: the derivative there is that of a blow at a
//!   knot.
//!
//! Every step ends with a read-out, and the next one starts anew from there: a state has velocities of the instant, not of an
//! interval. Where an instant passes from one interval to the next, the motion does not jump; where nothing touches and the control
//! stays, it is that of steps that are not split. The control of a knot acts for the interval behind it, as that of composed
//! steps does. The unknowns of a step are those of its pieces, their lengths, what struck first behind each, and their number.
//! Where several strike at once the instant's derivative is that of the first.

mod derivative;
mod mechanical;
mod pieces;
#[cfg(test)]
mod tests;

use super::mechanical::Mechanical;
use super::within::{charts_within, start_within, step_within};
use crate::contact::{Gap, Told, Touching};
use crate::dynamics::{
    Certificate, Charts, Differentiable, Dims, Equations, Frame, Inputs, Knot, KnotPoint,
    LinearModel, Outputs, Parameter, SolvedStep, Start, Step, StepError, StepFailure, StepStats,
    Stored, model_by_pushes,
};
use nalgebra::DMatrix;
use std::ops::Range;

/// Splits of an interval at most. The flights between bounces shorten by the restitution; a fifth bounce within an interval
/// follows four flights shorter than it.
pub const MOST: usize = 4;
const PIECES: usize = MOST + 1;
/// Gap up to which surfaces are at each other, m or rad: that of two at one instant differs by the rounding of positions.
pub const TOUCHING: f64 = 1e-12;
/// Part of an interval below which there are no pieces: over shorter ones rounding of a gap is a velocity.
pub const SHORTEST: f64 = 1e-6;

/// What splits steps where something strikes asks of an integrator.
pub trait Strikes: Mechanical {
    /// Has anything of the mechanism a restitution?
    fn has_impacts(&self) -> bool;

    /// Number of contacts, limits and frictions.
    fn elements(&self) -> usize;

    /// Tells how elements are at the start of a step: at rest, or without a restitution, they touch; else they are open.
    ///
    /// # Errors
    /// When the state is none of the system.
    fn at_rest(
        &self,
        seen: &KnotPoint,
        w: &mut Self::Work,
        how: &mut [Touching],
    ) -> Result<(), StepError>;

    /// Would an element that strikes with this velocity, m/s or rad/s, fly for less than two intervals?
    fn would_rest(&self, w: &Self::Work, element: usize, approach: f64, interval: f64) -> bool;

    /// [`Step::step`] with elements treated so; `seen.y` is the guess.
    ///
    /// # Errors
    /// As the step.
    fn step_told(
        &self,
        seen: &KnotPoint,
        told: &Told,
        w: &mut Self::Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError>;

    /// Which unknowns say what of elements meets, where a step may exchange that.
    fn places(&self) -> Range<usize>;

    /// What of an element met at the end of the step last solved, as such a number; zero where that has none.
    fn place_of(&self, w: &Self::Work, element: usize) -> f64;

    /// How elements were treated in the step of these unknowns.
    fn told(&self, y: &[f64], how: &mut [Touching]);

    /// Gaps of an element in the step last solved or linearized.
    fn gap_of(&self, w: &Self::Work, element: usize) -> Gap;

    /// Adds the derivative of an element's gap at the end of that step, by the free chart of its end and by the parameters.
    fn gap_by(&self, w: &Self::Work, element: usize, out: &mut Inputs);

    /// The state at a knot with the velocities read out there, of elements treated so.
    ///
    /// # Errors
    /// When they cannot be read.
    fn settle(
        &self,
        seen: &KnotPoint,
        how: &[Touching],
        w: &mut Self::Work,
        out: &mut [f64],
    ) -> Result<(), StepError>;

    /// Makes ready for pushes and pulls through what was settled last.
    fn linearize_settled(&self, w: &mut Self::Work);

    /// Change of the state that was settled.
    fn push_settled(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs);

    /// Adjoints of what it was settled from; `adjoint` is that of the state, `spare` memory.
    fn pull_settled(
        &self,
        w: &mut Self::Work,
        adjoint: &[f64],
        spare: &mut Outputs,
        out: &mut Inputs,
    );
}

/// An integrator's steps, split where something strikes.
#[derive(Debug)]
pub struct Aligned<S> {
    inner: Box<S>,
    dims: Dims,
    inner_dims: Dims,
}

/// Memory of one thread.
pub struct AlignedWork<W> {
    /// For everything at a knot, and for steps.
    own: W,
    /// Linearizations of the pieces, as many as any step had, and of the read-out behind the last.
    parts: Vec<W>,
    settled: Option<W>,
    /// How many pieces the step last linearized has.
    linearized: usize,
    /// What memory of further pieces is to be told.
    smoothing: f64,
    softness: f64,
    certified: bool,
    /// States behind the pieces and the one that the last is settled to, the pieces' unknowns and lengths.
    between: Vec<Vec<f64>>,
    unknowns: Vec<Vec<f64>>,
    lengths: [f64; PIECES],
    /// How elements are treated, the places (as [`Strikes::place_of`] tells) with which those strike that do, and what was seen in an attempt.
    how: Vec<Touching>,
    struck: Vec<f64>,
    gaps: Vec<Option<Gap>>,
    /// Derivatives of the gap that closes behind each piece, by what goes into it.
    closing: Vec<Inputs>,
    /// A change or an adjoint on its way through the pieces.
    inputs: Inputs,
    outputs: Outputs,
    spare: Outputs,
}

impl<S: Strikes> Aligned<S> {
    /// Splits an integrator's steps.
    pub fn new(inner: S) -> Self {
        let inner_dims = inner.dims();
        Self {
            dims: Dims {
                ny: PIECES * inner_dims.ny + PIECES + MOST + 1,
                ..inner_dims
            },
            inner: Box::new(inner),
            inner_dims,
        }
    }

    /// A knot as the inner integrator sees it.
    fn knot(&self, at: &Knot, _: &[f64]) -> Knot {
        Knot { h_prev: 0.0, ..*at }
    }

    /// Place among the unknowns of a piece's length.
    fn length(&self, piece: usize) -> usize {
        PIECES * self.inner_dims.ny + piece
    }

    /// Of the element that struck first behind it.
    fn struck(&self, piece: usize) -> usize {
        self.length(PIECES) + piece
    }

    /// Of the number of pieces.
    fn counted(&self) -> usize {
        self.struck(MOST)
    }

    /// Number of pieces of a solved step; 1 where it is not known.
    fn count(&self, y: &[f64]) -> usize {
        y.get(self.counted()).map_or(1, |n| *n as usize).max(1)
    }

    /// Unknowns of a piece of a solved step; none where it is not known.
    fn slot<'a>(&self, y: &'a [f64], piece: usize) -> &'a [f64] {
        let ny = self.inner_dims.ny;
        y.get(ny * piece..ny * (piece + 1)).unwrap_or(&[])
    }

    /// What is seen at the knot, as the inner integrator sees it.
    fn first<'a>(&self, seen: &KnotPoint<'a>) -> KnotPoint<'a> {
        KnotPoint {
            at: Knot {
                // of an unknown step none is known
                h: match seen.y.get(self.length(0)) {
                    Some(length) if *length != 0.0 => *length,
                    _ => seen.at.h,
                },
                ..self.knot(&seen.at, seen.x)
            },
            y: self.slot(seen.y, 0),
            ..*seen
        }
    }

    /// Where a step ends.
    fn end(&self, at: &Knot, last: f64) -> Knot {
        Knot {
            k: at.k,
            t: at.t + at.h,
            h_prev: last,
            h: 0.0,
        }
    }
}

/// Behind a blow what struck is open.
fn open_again(how: &mut [Touching]) {
    let struck = how.iter_mut().filter(|how| **how == Touching::Strikes);
    struck.for_each(|how| *how = Touching::Open);
}

impl<S: Strikes> Step for Aligned<S> {
    type Work = AlignedWork<S::Work>;

    step_within!();
    start_within!();

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut Self::Work,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        if start.before != 0.0 {
            return Err(StepError {
                failure: StepFailure::Unsupported,
                element: "the start".into(),
                time: 0.0,
                residual: f64::NAN,
                message: "it has rates of an interval, and states between impacts have those of instants; give these".into(),
            });
        }
        self.inner.initial(start, p, &mut w.own, x)
    }

    fn work(&self) -> Self::Work {
        let d = &self.inner_dims;
        AlignedWork {
            own: self.inner.work(),
            parts: vec![],
            settled: None,
            linearized: 0,
            smoothing: 0.0,
            softness: 0.0,
            certified: false,
            between: vec![vec![0.0; d.nx]; PIECES + 1],
            unknowns: vec![vec![0.0; d.ny]; PIECES],
            lengths: [0.0; PIECES],
            how: vec![Touching::Open; self.inner.elements()],
            struck: vec![0.0; self.inner.elements()],
            gaps: vec![None; self.inner.elements()],
            closing: vec![d.inputs(); MOST],
            inputs: d.inputs(),
            outputs: d.outputs(),
            spare: d.outputs(),
        }
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut Self::Work,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        self.solve_pieces(at, (x, u, p), w, next, y)
    }

    fn soften(&self, w: &mut Self::Work, kappa: f64) -> bool {
        w.softness = kappa;
        let mut all = true;
        for w in w.memories() {
            all &= self.inner.soften(w, kappa);
        }
        all
    }
}

impl<W> AlignedWork<W> {
    /// All of the inner integrator's.
    fn memories(&mut self) -> impl Iterator<Item = &mut W> {
        let parts = self.parts.iter_mut();
        parts.chain(&mut self.settled).chain([&mut self.own])
    }
}

impl<S: Strikes> Differentiable for Aligned<S> {
    fn linearize_in(&self, at: &SolvedStep, w: &mut Self::Work) -> Result<Certificate, StepError> {
        self.linearize_pieces(at, w)
    }

    fn smoothing(&self, w: &mut Self::Work, kappa: f64) {
        w.smoothing = kappa;
        for w in w.memories() {
            self.inner.smoothing(w, kappa);
        }
    }

    /// Pieces differ in number from step to step.
    fn kept(&self) -> usize {
        0
    }

    fn keep_in(&self, _: &Self::Work, _: &mut [f64]) -> bool {
        false
    }

    fn restore_in(&self, _: &SolvedStep, _: &[f64], _: &mut Self::Work) -> Result<bool, StepError> {
        Ok(false)
    }

    fn push_in(&self, w: &mut Self::Work, d: &Inputs, out: &mut Outputs) {
        self.push_pieces(w, d, out);
    }

    fn pull_in(&self, w: &mut Self::Work, adjoint: &Outputs, out: &mut Inputs) {
        self.pull_pieces(w, adjoint, out);
    }
}

charts_within!(Aligned<S: Strikes>);

/// What strikes when is found by solving a step: there are no equations of it unsolved.
impl<S: Strikes> Equations for Aligned<S> {
    fn check_equations(&self) -> Result<(), String> {
        Err("steps that are split at impacts have no unsolved equations; take impacts at knots, `impacts = \"knots\"`".into())
    }

    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut Self::Work,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        let n = self.pieces(at, w, |_, _, _| Ok(()))?;
        self.settle_again(at, w, |w| &mut w.own)?;
        next.copy_from_slice(&w.between[n]);
        Ok(())
    }
}
