//! A small neural network as a policy.

use super::policy::{Policy, PolicyError, PolicyRows};
use crate::dynamics::{Knot, Observe, Parameter, QuantityId, StepError};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A quantity that a network sees: `(quantity - offset) / scale`; or sine and cosine of an angle, that turns do not change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// Scaled.
    Scaled {
        /// Which.
        quantity: QuantityId,
        /// In its unit.
        offset: f64,
        /// In its unit.
        scale: f64,
    },
    /// Both, of an angle in rad.
    SineCosine(QuantityId),
}

impl Input {
    fn quantity(&self) -> QuantityId {
        match *self {
            Self::Scaled { quantity, .. } | Self::SineCosine(quantity) => quantity,
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Scaled { .. } => 1,
            Self::SineCosine(_) => 2,
        }
    }
}

/// A network of `tanh` layers,
///
/// ```text
/// a_0 = inputs,   a_(i+1) = tanh(W_i a_i + b_i),   u = scale tanh(W_n a_n + b_n)
/// ```
///
/// whose weights and biases are the policy's parameters, layer by layer, each row of `W` followed by its `b`.
#[derive(Clone, Debug)]
pub struct Network {
    inputs: Vec<Input>,
    sees: Vec<QuantityId>,
    /// Widths of all layers, inputs and outputs included.
    widths: Vec<usize>,
    /// Largest size of each control.
    scale: Vec<f64>,
    parameters: Vec<Parameter>,
}

impl Network {
    /// For a system: what it sees, the widths of its hidden layers, the largest size of each control. The weights start
    /// normal with variance one by the number of inputs of their layer (Glorot and Bengio 2010 take about that), by the
    /// seed; those of the outputs a hundred times smaller, so that it begins by doing next to nothing; biases at zero.
    ///
    /// # Errors
    /// When a quantity is not there, a layer has no width, or a scale is not positive.
    pub fn new(
        system: &impl Observe,
        inputs: Vec<Input>,
        hidden: &[usize],
        scale: Vec<f64>,
        seed: u64,
    ) -> Result<Self, PolicyError> {
        const LAST: f64 = 0.01;
        let (nu, nq) = (system.controls().len(), system.quantities().len());
        let refused = |why: String| Err(PolicyError(why));
        if let Some(i) = inputs.iter().find(|i| i.quantity().index() >= nq) {
            let place = i.quantity().index();
            return refused(format!("there is no quantity {place}; the system has {nq}"));
        }
        let has_scale = |i: &Input| match i {
            Input::Scaled { scale, offset, .. } => {
                *scale > 0.0 && scale.is_finite() && offset.is_finite()
            }
            Input::SineCosine(_) => true,
        };
        if !inputs.iter().all(has_scale) {
            return refused("the scale of an input is not a positive number".into());
        }
        if inputs.is_empty() || hidden.contains(&0) {
            return refused("a layer has no width; give each at least one".into());
        }
        if scale.len() != nu || scale.iter().any(|s| !(*s > 0.0 && s.is_finite())) {
            return refused(format!("give a positive scale for each of {nu} controls"));
        }
        let first = inputs.iter().map(Input::width).sum();
        let widths: Vec<usize> = std::iter::once(first)
            .chain(hidden.iter().copied())
            .chain([nu])
            .collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let places = Self::places(&widths);
        let parameters = places.into_iter().map(|(layer, row, column)| {
            let n = widths[layer];
            let last = if layer + 2 == widths.len() { LAST } else { 1.0 };
            let draw: f64 = StandardNormal.sample(&mut random);
            Parameter {
                name: Self::name(layer, row, column, n),
                unit: "1".into(),
                value: if column == n {
                    0.0
                } else {
                    last * draw / (n as f64).sqrt()
                },
            }
        });
        let parameters = parameters.collect();
        Ok(Self {
            sees: inputs.iter().map(Input::quantity).collect(),
            inputs,
            widths,
            scale,
            parameters,
        })
    }

    /// Layer, row and column of every weight; a row's bias is the column behind the last.
    fn places(widths: &[usize]) -> Vec<(usize, usize, usize)> {
        let layers = widths.windows(2).enumerate();
        layers
            .flat_map(|(layer, w)| {
                let (n, m) = (w[0], w[1]);
                (0..m).flat_map(move |row| (0..=n).map(move |column| (layer, row, column)))
            })
            .collect()
    }

    fn name(layer: usize, row: usize, column: usize, inputs: usize) -> String {
        match column == inputs {
            true => format!("bias {} {}", layer + 1, row + 1),
            false => format!("weight {} {} {}", layer + 1, row + 1, column + 1),
        }
    }

    /// The names of the parameters of a network with layers of these widths, inputs and outputs included.
    pub fn names(widths: &[usize]) -> Vec<String> {
        let places = Self::places(widths).into_iter();
        places
            .map(|(layer, row, column)| Self::name(layer, row, column, widths[layer]))
            .collect()
    }

    /// Activations of all layers, one after the other.
    fn activations(&self, seen: &[f64], own: &[f64]) -> Vec<f64> {
        let mut all = Vec::with_capacity(self.widths.iter().sum());
        for (input, v) in self.inputs.iter().zip(seen) {
            match *input {
                Input::Scaled { offset, scale, .. } => all.push((v - offset) / scale),
                Input::SineCosine(_) => all.extend([v.sin(), v.cos()]),
            }
        }
        let (mut first, mut weights) = (0, own);
        for w in self.widths.windows(2) {
            for _ in 0..w[1] {
                let (row, rest) = weights.split_at(w[0] + 1);
                weights = rest;
                let inner = super::dot(row[..w[0]].iter(), &all[first..first + w[0]]);
                all.push((inner + row[w[0]]).tanh());
            }
            first += w[0];
        }
        all
    }
}

impl Policy for Network {
    fn sees(&self) -> &[QuantityId] {
        &self.sees
    }

    fn open(&self) -> usize {
        0
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn act(
        &self,
        _: &Knot,
        seen: &[f64],
        _: &[f64],
        own: &[f64],
        out: &mut [f64],
    ) -> Result<(), StepError> {
        let all = self.activations(seen, own);
        let last = &all[all.len() - out.len()..];
        for ((o, a), s) in out.iter_mut().zip(last).zip(&self.scale) {
            *o = s * a;
        }
        Ok(())
    }

    /// By back-propagation, control by control.
    fn differentiate(
        &self,
        _: &Knot,
        seen: &[f64],
        _: &[f64],
        own: &[f64],
        by: &mut PolicyRows,
    ) -> Result<(), StepError> {
        let all = self.activations(seen, own);
        let widest = self.widths.iter().copied().max().unwrap_or(0);
        let (mut adjoint, mut below) = (vec![0.0; widest], vec![0.0; widest]);
        for (u, scale) in self.scale.iter().enumerate() {
            adjoint.fill(0.0);
            adjoint[u] = *scale;
            let (mut end, mut weights) = (all.len(), own.len());
            for w in self.widths.windows(2).rev() {
                let (n, m) = (w[0], w[1]);
                let outs = &all[end - m..end];
                let ins = &all[end - m - n..end - m];
                weights -= m * (n + 1);
                below[..n].fill(0.0);
                for (row, (a, g)) in outs.iter().zip(&adjoint).enumerate() {
                    let g = g * (1.0 - a * a);
                    let first = weights + row * (n + 1);
                    for (column, x) in ins.iter().enumerate() {
                        by.own[(u, first + column)] += g * x;
                        below[column] += g * own[first + column];
                    }
                    by.own[(u, first + n)] += g;
                }
                std::mem::swap(&mut adjoint, &mut below);
                end -= m;
            }
            let mut place = 0;
            for (i, (input, v)) in self.inputs.iter().zip(seen).enumerate() {
                by.seen[(u, i)] += match *input {
                    Input::Scaled { scale, .. } => adjoint[place] / scale,
                    Input::SineCosine(_) => adjoint[place] * v.cos() - adjoint[place + 1] * v.sin(),
                };
                place += input.width();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Reference, Track, Tracking, Tunable};
    use crate::dynamics::{Explicit, Real, Smooth};
    use nalgebra::DMatrix;

    struct Two;

    impl Smooth for Two {
        fn states(&self) -> usize {
            4
        }

        fn controls(&self) -> usize {
            2
        }

        fn step<T: Real>(&self, _: f64, h: T, x: &[T], u: &[T], _: &[T], next: &mut [T]) {
            for i in 0..2 {
                next[2 + i] = x[2 + i] + h * u[i];
                next[i] = x[i] + h * next[2 + i];
            }
        }
    }

    /// Derivatives of a policy at a place, against differences.
    fn check(policy: &dyn Policy, seen: &[f64], open: &[f64], own: &[f64]) {
        let at = Knot {
            k: 3,
            t: 0.7,
            h_prev: 0.1,
            h: 0.1,
        };
        let mut by = PolicyRows {
            seen: DMatrix::zeros(2, seen.len()),
            open: DMatrix::zeros(2, open.len()),
            own: DMatrix::zeros(2, own.len()),
        };
        policy
            .differentiate(&at, seen, open, own, &mut by)
            .expect("acts");
        let of = |lists: &[Vec<f64>; 3]| {
            let mut u = [0.0; 2];
            policy
                .act(&at, &lists[0], &lists[1], &lists[2], &mut u)
                .expect("acts");
            u
        };
        let lists = [seen.to_vec(), open.to_vec(), own.to_vec()];
        for (which, m) in [&by.seen, &by.open, &by.own].into_iter().enumerate() {
            for j in 0..m.ncols() {
                let moved = |e: f64| {
                    let mut lists = lists.clone();
                    lists[which][j] += e;
                    of(&lists)
                };
                let (above, below) = (moved(1e-5), moved(-1e-5));
                for i in 0..2 {
                    let difference = (above[i] - below[i]) / 2e-5;
                    assert!((m[(i, j)] - difference).abs() < 1e-8, "{which} {i} {j}");
                }
            }
        }
        assert!(by.own.norm() > 0.1);
    }

    fn parameters(n: usize) -> Vec<Parameter> {
        let one = |i| Parameter {
            name: format!("g{i}"),
            unit: "1".into(),
            value: 0.5 + 0.3 * i as f64,
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn policies_have_their_derivatives() {
        let system = Explicit::new(Two);
        let id = QuantityId::new;
        let tracking = |feed_forward| {
            let (p, f) = (Tunable::Parameter, Tunable::Fixed);
            let sine = |phase| Reference::Sine {
                amplitude: p(1),
                frequency: p(2),
                unit: 2.0,
                phase,
            };
            let one = Track {
                control: 1,
                coordinate: id(0),
                rate: id(2),
                kp: p(0),
                kd: p(3),
                reference: vec![sine(f(0.4)), Reference::Constant(p(4))],
                follows_rate: true,
                limit: Some(0.8),
            };
            let recorded = Reference::Recorded {
                values: vec![0.1, 0.2],
                rates: vec![1.0, 2.0],
            };
            let other = Track {
                control: 0,
                kd: f(0.2),
                reference: vec![recorded, sine(p(5))],
                follows_rate: false,
                limit: None,
                ..one.clone()
            };
            Tracking::new(&system, vec![one, other], parameters(6), feed_forward)
        };
        let own: Vec<f64> = parameters(6).iter().map(|p| p.value).collect();
        let seen = [0.3, -0.4, 0.3, -0.4];
        check(&tracking(false).expect("fits"), &seen, &[], &own);
        check(&tracking(true).expect("fits"), &seen, &[0.1, 0.2], &own);

        let inputs = vec![
            Input::SineCosine(id(0)),
            Input::Scaled {
                quantity: id(2),
                offset: 0.2,
                scale: 3.0,
            },
        ];
        let scale = vec![2.0, 0.7];
        let network = Network::new(&system, inputs.clone(), &[5, 4], scale.clone(), 7);
        let network = network.expect("fits");
        let own: Vec<f64> = (0..network.parameters.len())
            .map(|i| (1.7 * i as f64).sin())
            .collect();
        check(&network, &[0.8, -1.1], &[], &own);
        // the same by the same seed, next to nothing at first
        let again = Network::new(&system, inputs, &[5, 4], scale, 7).expect("fits");
        assert_eq!(network.parameters, again.parameters);
        let own: Vec<f64> = again.parameters.iter().map(|p| p.value).collect();
        let at = Knot {
            k: 0,
            t: 0.0,
            h_prev: 0.0,
            h: 0.1,
        };
        let mut u = [1.0; 2];
        again
            .act(&at, &[0.8, -1.1], &[], &own, &mut u)
            .expect("acts");
        assert!(u.iter().all(|u| u.abs() < 0.1));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let system = Explicit::new(Two);
        let inputs = vec![Input::SineCosine(QuantityId::new(99))];
        assert!(Network::new(&system, inputs, &[3], vec![1.0; 2], 0).is_err());
        let inputs = vec![Input::SineCosine(QuantityId::new(0))];
        for (hidden, scale) in [
            (vec![0], vec![1.0; 2]),
            (vec![2], vec![1.0]),
            (vec![2], vec![0.0; 2]),
        ] {
            assert!(Network::new(&system, inputs.clone(), &hidden, scale, 0).is_err());
        }
        let track = |kp, control| Track {
            control,
            coordinate: QuantityId::new(0),
            rate: QuantityId::new(2),
            kp,
            kd: Tunable::Fixed(0.0),
            reference: vec![],
            follows_rate: true,
            limit: None,
        };
        for (kp, control) in [(Tunable::Parameter(0), 0), (Tunable::Fixed(1.0), 2)] {
            assert!(Tracking::new(&system, vec![track(kp, control)], vec![], false).is_err());
        }
    }
}
