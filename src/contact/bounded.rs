//! Friction whose bounds are given, and the bounds that normal impulses give, by turns.
//!
//! With given bounds (Tresca's friction) a read-out of velocities is a convex program, and a step nearly one. Coulomb's law holds where the
//! bounds are `mu g` of its solution: a fixed point. A read-out has one wherever some velocities that joints allow keep all gaps from closing
//! and no contact slides (Klarbring and Pang, Existence of solutions to discrete semicoercive frictional contact problems, 1998). It is
//! approached from contacts without friction, and Newton's method goes on from there.

use super::interior::PART;
use super::path::NOWHERE;
use super::start::Cold;
use super::{Cone, Element, Failed, NewtonSystem, Solver};

/// Programs at most: from 3 to 30 were needed in random trees.
const PROGRAMS: usize = 40;
/// Iterations of all of them, after which the central path is tried: nine in ten that are solved take at most 150. A link of 1 mg between
/// hinges took up to 1141 iterations a step without this, of which the path needs 183.
const ITERATIONS: usize = 200;
/// Error of the bounds, by the largest, from which on Coulomb's law is tried.
const NEAR: f64 = 0.1;
/// Least part of its error that a bound is moved by, so that the programs end, and the largest. Where friction presses a light body to the
/// ground, an error grows with the bound by a few percent from program to program, and the fixed point is far beyond.
const LEAST_PART: f64 = 0.01;
const LARGEST_PART: f64 = 64.0;
/// Bound of friction where there is none, m/s: the cone needs an interior.
const NONE: f64 = 1e-9;

impl Element {
    /// Does its friction grow with its normal impulse?
    fn is_bounded(&self) -> bool {
        self.law.gap && self.law.frictional
    }
}

impl<S: NewtonSystem> Solver<'_, S> {
    /// Leads the iterate to the solution at `kappa` by bounds of friction.
    pub(super) fn go_by_bounds(&mut self, kappa: f64) -> Result<(), Failed> {
        // pyramids know no bound but `mu g`
        if self.layout.options.cone != Cone::SecondOrder {
            return Err(NOWHERE);
        }
        let mut any = false;
        for e in &mut self.step.contacts_mut().elements {
            (e.whole, e.tangent[0]) = (e.law, 0.0);
            if e.is_bounded() {
                (e.law.mu, e.law.bound) = (0.0, NONE);
                any = true;
            }
        }
        if !any {
            return Err(NOWHERE);
        }
        // starts may have failed because stiff friction took digits from the factors
        let was_pivoted = std::mem::replace(&mut self.is_pivoted, true);
        let done = self.find_bounds(kappa);
        if done.is_err() {
            self.is_pivoted = was_pivoted;
            for e in &mut self.step.contacts_mut().elements {
                e.law = e.whole;
            }
            self.kept = None;
        }
        done
    }

    fn find_bounds(&mut self, kappa: f64) -> Result<(), Failed> {
        let (mut part, start) = (1.0, self.step.contacts().spent);
        for program in 0..PROGRAMS {
            if self.step.contacts().spent > start + ITERATIONS {
                break;
            }
            self.solve_program(program > 0, kappa)?;
            let (mut error, mut largest) = (0.0_f64, 0.0_f64);
            let (mut across, mut square) = (0.0, 0.0);
            let elements = &mut self.step.contacts_mut().elements;
            for e in elements.iter_mut().filter(|e| e.is_bounded()) {
                let bound = (e.whole.mu * e.local.g).max(NONE);
                let (own, before) = (bound - e.law.bound, e.tangent[0]);
                (error, largest) = (error.max(own.abs()), largest.max(bound));
                across += before * (before - own);
                square += (before - own) * (before - own);
                e.tangent[0] = own;
            }
            // Aitken's relaxation of vectors; where errors grow, what is sought is farther
            if across > 0.0 {
                part = (part * across / square).clamp(LEAST_PART, 1.0);
            } else if program > 0 {
                part = (2.0 * part).clamp(1.0, LARGEST_PART);
            }
            if program > 0 && error <= NEAR * largest {
                self.swap_laws();
                self.step.evaluate();
                self.warm(false, kappa);
                match self.follow_motion(kappa) {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        self.swap_laws();
                        if !error.may_retry() {
                            return Err(error);
                        }
                    }
                }
            }
            let elements = &mut self.step.contacts_mut().elements;
            for e in elements.iter_mut().filter(|e| e.is_bounded()) {
                e.law.bound = (e.law.bound + part * e.tangent[0]).max(NONE);
            }
        }
        Err(NOWHERE)
    }

    /// Solves for the velocities with the bounds at hand: from the iterate at hand, then from joints and forces.
    fn solve_program(&mut self, warm: bool, kappa: f64) -> Result<(), Failed> {
        if warm {
            self.step.evaluate();
            self.warm(false, kappa);
            match self.follow(kappa, PART) {
                Err(error) if error.may_retry() => {}
                done => return done,
            }
        }
        if self.cold_start(Cold::Joints, 1.0) {
            match self.follow(kappa, PART) {
                Err(error) if error.may_retry() => {}
                done => return done,
            }
        }
        self.cold_start(Cold::Forces, 1.0);
        self.follow(kappa, PART)
    }

    /// Between the whole law and that with a bound of its own.
    fn swap_laws(&mut self) {
        for e in &mut self.step.contacts_mut().elements {
            std::mem::swap(&mut e.law, &mut e.whole);
        }
    }
}
