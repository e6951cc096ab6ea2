//! What is done with a model as a whole.

use super::Model;
use crate::control::Problem;
use crate::dynamics::{QuantityId, Step, StepError, StepFailure};
use crate::integrator::Mechanical;
use crate::mechanism::{ModelError, Quantity};
use crate::optimize::checkpoint::fingerprint;

impl Model {
    /// The same with other values of the parameters, in the mechanism, its description and the problem.
    ///
    /// # Errors
    /// When there is no such mechanism, or it cannot start.
    pub fn with_parameters(&self, p: &[f64]) -> Result<Self, StepError> {
        let (old, m) = (&self.system, self.system.mechanism());
        let parameters = [p, &self.problem.parameters[p.len()..]].concat();
        let x0 = self.problem.start(old, &parameters, &mut old.work())?;
        let mut mechanism = self.mechanism.clone();
        for (tuned, value) in m.parameters.iter().zip(p) {
            for field in &tuned.fields {
                mechanism.set(m, *field, *value);
            }
        }
        // where loops had to close again these are not those of the file
        let tree = m.tree_ids().into_iter();
        let coordinates: Vec<f64> = tree.map(|(j, i)| old.coordinate(&x0, j, i)).collect();
        let meaningless = |e: ModelError| StepError {
            failure: StepFailure::Parameter,
            element: e.path.join("."),
            time: 0.0,
            residual: f64::NAN,
            message: format!("{}; {}", e.message, e.help),
        };
        let mut built = mechanism.build().map_err(meaningless)?;
        // other moments may ask for other laws, but the motion that was found is that of these
        for (body, was) in built.bodies.iter_mut().zip(&m.bodies) {
            body.rotation = was.rotation;
        }
        let system = old.rebuilt(built, &coordinates).map_err(meaningless)?;
        Ok(Self {
            name: self.name.clone(),
            title: self.title.clone(),
            system,
            problem: Problem {
                coordinates,
                parameters,
                ..self.problem.clone()
            },
            extension: self.extension.clone(),
            controls: self.controls,
            is_plain: self.is_plain,
            scenarios: vec![],
            own_controls: self.own_controls,
            policy: self.policy.clone(),
            options: self.options.clone(),
            x0,
            mechanism,
            draw: self.draw.clone(),
            visuals: self.visuals.clone(),
            recorded: self.recorded.clone(),
            remembers: self.remembers,
        })
    }

    /// The model with further quantities, of which costs and constraints added later may speak. Those it had keep their
    /// places, but for the rates of controls that [`Model::extended`] lists behind them: costs and constraints follow them. It is
    /// another model to checkpoints.
    pub fn observing(mut self, quantities: Vec<Quantity>) -> (Self, Vec<QuantityId>) {
        let mut all = self.system.outputs().to_vec();
        let (first, count) = (all.len(), quantities.len());
        let costs = self.problem.costs.iter_mut().map(|c| &mut c.quantity);
        let constraints = self.problem.constraints.iter_mut();
        let ends = self.problem.episodes.iter_mut().flat_map(|e| &mut e.ends);
        let asked = costs.chain(constraints.map(|c| &mut c.quantity));
        let asked = asked.chain(ends.map(|e| &mut e.quantity));
        for rate in asked
            .chain(&mut self.recorded)
            .filter(|q| q.index() >= first)
        {
            *rate = QuantityId::new(rate.index() + count);
        }
        let sums = self.extension.sums.iter_mut().map(|s| &mut s.terms);
        let formulas = self.extension.formulas.iter_mut();
        let terms = sums.chain(formulas.flat_map(|f| [&mut f.terms, &mut f.pending, &mut f.over]));
        for q in terms
            .flatten()
            .map(|t| &mut t.quantity)
            .filter(|q| q.index() >= first)
        {
            *q = QuantityId::new(q.index() + count);
        }
        let bounds = self.extension.bounds.iter_mut().flat_map(|b| &mut b.less);
        for q in bounds.filter(|q| q.index() >= first) {
            *q = QuantityId::new(q.index() + count);
        }
        all.extend(quantities);
        self.system = self.system.with_outputs(all);
        (self, (first..first + count).map(QuantityId::new).collect())
    }

    /// Changes with the mechanism and with what is wanted of it, not with the guess or the method; for checkpoints.
    pub fn fingerprint(&self) -> String {
        let wanted = Problem {
            guess: vec![],
            guess_states: vec![],
            ..self.problem.clone()
        };
        let others: Vec<_> = (self.scenarios.iter())
            .map(|s| (&s.name, &s.model.mechanism, &s.model.policy))
            .collect();
        let system = (self.system.choice(), self.system.outputs());
        fingerprint(&(
            &self.mechanism,
            system,
            wanted,
            &self.extension,
            &self.policy,
            self.own_controls,
            others,
        ))
    }
}
