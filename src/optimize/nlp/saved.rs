//! Where a solve stood, so that it can go on from there.

use super::barrier::Parameter;
use super::filter::Filter;
use super::quasi_newton::Pairs;
use super::solver::Solver;
use super::{Program, Undefined};
use serde::{Deserialize, Serialize};

/// All that decides the next iterations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    w: Vec<f64>,
    y: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    parameter: Parameter,
    filter: Filter,
    violations: (f64, f64),
    /// [`super::kkt::Kkt::threshold`] and [`super::kkt::Kkt::last`]
    factored: (f64, f64),
    tiny: usize,
    pairs: Option<Pairs>,
}

impl Solver {
    /// Where it stands, once it has begun.
    pub fn save(&self) -> Option<Saved> {
        let kkt = self.kkt.as_ref()?;
        Some(Saved {
            w: self.at.w.clone(),
            y: self.at.y.clone(),
            lower: self.at.lower.clone(),
            upper: self.at.upper.clone(),
            parameter: self.parameter.clone(),
            filter: self.filter.clone(),
            violations: self.violations,
            factored: (kkt.threshold, kkt.last),
            tiny: self.tiny,
            pairs: self.pairs.clone(),
        })
    }

    /// Goes on from where a solve of the same program stood that had begun at the same guess.
    pub fn resume(&mut self, program: &mut dyn Program, s: Saved) -> Result<(), Undefined> {
        let at = &mut self.at;
        (at.w, at.y, at.lower, at.upper) = (s.w, s.y, s.lower, s.upper);
        (self.parameter, self.filter) = (s.parameter, s.filter);
        (self.violations, self.tiny) = (s.violations, s.tiny);
        self.pairs.clone_from(&s.pairs);
        if let Some(kkt) = &mut self.kkt {
            (kkt.threshold, kkt.last) = s.factored;
            kkt.low_rank = s.pairs.as_ref().map(Pairs::matrix);
        }
        (self.model).evaluate(program, &self.at.w, &mut self.at.values)?;
        (self.model).differentiate(program, &self.at.w, &mut self.d)?;
        self.trial = self.at.clone();
        self.history.clear();
        self.note(0.0, 0.0);
        Ok(())
    }

    /// Is a kept solve of such a program?
    pub fn fits(&self, s: &Saved) -> bool {
        let sizes = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().all(|v| v.is_finite());
        sizes(&s.w, &self.at.w)
            && sizes(&s.y, &self.at.y)
            && sizes(&s.lower, &self.at.lower)
            && sizes(&s.upper, &self.at.upper)
    }
}
