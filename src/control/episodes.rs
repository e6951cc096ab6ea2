//! Episodes: rollouts whose starts and parameters are drawn at random, and which end where a quantity leaves its range.

use super::Problem;
use super::check::{ProblemError, ProblemPart, finite, refuse};
use super::cost::{Cost, Quadrature};
use crate::dynamics::{Observe, QuantityId};
use rand::SeedableRng;
use rand_distr::{Distribution as _, StandardNormal, StandardUniform};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Rollouts that differ by what is drawn, each from a seed of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episodes {
    /// What is drawn, in this order.
    pub draws: Vec<Draw>,
    /// What ends an episode, the first that holds.
    pub ends: Vec<End>,
    /// Of how many episodes a value is the mean, where it is asked of all.
    pub count: usize,
    /// The seed of the first of them; the others follow.
    pub seed: u64,
}

/// A number that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// Which.
    pub number: Drawn,
    /// From where.
    pub from: Distribution,
}

/// What can be drawn, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// Of [`Problem::coordinates`].
    Coordinate(usize),
    /// Of [`Problem::rates`].
    Rate(usize),
    /// Of [`Problem::parameters`], one that is no decision.
    Parameter(usize),
}

/// How a number is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Anywhere between the two alike.
    Uniform(f64, f64),
    /// Normally, by mean and standard deviation.
    Normal(f64, f64),
}

impl Distribution {
    fn sample(self, random: &mut Xoshiro256PlusPlus) -> f64 {
        match self {
            Self::Uniform(lower, upper) => {
                let part: f64 = StandardUniform.sample(random);
                lower + part * (upper - lower)
            }
            Self::Normal(mean, deviation) => {
                let part: f64 = StandardNormal.sample(random);
                mean + deviation * part
            }
        }
    }
}

/// A condition that ends an episode at the first knot behind the start where it holds: a fall. What the problem wants at
/// that knot and behind it is then not asked; instead the episode costs
///
/// ```text
/// cost + rest (T - t)
/// ```
///
/// with `T - t` what is left of the horizon. At which knot an episode ends is constant in derivatives: where a small change
/// makes it another knot the value jumps, and no derivative tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// Which of the system's quantities.
    pub quantity: QuantityId,
    /// The smallest value that does not end it.
    pub lower: f64,
    /// The largest.
    pub upper: f64,
    /// What ending costs.
    pub cost: f64,
    /// What every second costs that is left of the horizon.
    pub rest: f64,
}

/// Where an episode ended before its horizon did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The knot.
    pub knot: usize,
    /// Which of [`Episodes::ends`].
    pub end: usize,
}

impl Episodes {
    /// The seeds of the episodes that a value is the mean of. Generators are seeded through a mixing function: neighbours
    /// have nothing to do with each other.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + Clone + use<> {
        let first = self.seed;
        (0..self.count as u64).map(move |i| first.wrapping_add(i))
    }

    /// Draws the episode of a seed into a start and parameters, which keep what is not drawn.
    pub fn draw(&self, seed: u64, q: &mut [f64], rates: &mut [f64], p: &mut [f64]) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for d in &self.draws {
            let value = d.from.sample(&mut random);
            match d.number {
                Drawn::Coordinate(i) => q[i] = value,
                Drawn::Rate(i) => rates[i] = value,
                Drawn::Parameter(i) => p[i] = value,
            }
        }
    }

    /// Which of [`Episodes::ends`] these values of their quantities are beyond, the first.
    pub fn ended(&self, values: &[f64]) -> Option<usize> {
        let mut all = self.ends.iter().zip(values);
        // what is not a number is not within
        all.position(|(e, v)| !(e.lower..=e.upper).contains(v))
    }
}

impl Problem {
    /// What ends its episodes.
    pub fn ends(&self) -> &[End] {
        self.episodes.as_ref().map_or(&[], |e| &e.ends)
    }

    pub(super) fn check_episodes<D: Observe + ?Sized>(
        &self,
        dynamics: &D,
    ) -> Result<(), ProblemError> {
        let Some(episodes) = &self.episodes else {
            return Ok(());
        };
        let refuse = |message: String| refuse(ProblemPart::Episodes, message);
        if episodes.count == 0 {
            return refuse("a value is the mean of 0 of them; give at least 1".into());
        }
        for (i, d) in episodes.draws.iter().enumerate() {
            let (place, count, what) = match d.number {
                Drawn::Coordinate(place) => (place, self.coordinates.len(), "coordinate"),
                Drawn::Rate(place) => (place, self.rates.len(), "rate"),
                Drawn::Parameter(place) => (place, self.parameters.len(), "parameter"),
            };
            if place >= count {
                return refuse(format!(
                    "there is no {what} {place} to draw; the problem has {count}, counted from 0"
                ));
            }
            if episodes.draws[..i].iter().any(|o| o.number == d.number) {
                return refuse(format!("{what} {place} is drawn twice; draw it once"));
            }
            if let Drawn::Parameter(i) = d.number {
                let (l, u) = self.parameter_bounds[i];
                if l < u {
                    return refuse(format!(
                        "parameter {i} is drawn and a decision; give it equal bounds, or draw it not"
                    ));
                }
            } else if self.state.is_some() {
                return refuse(format!(
                    "{what} {place} of the start is drawn, and the start is a state met in motion; leave one out"
                ));
            }
            let (Distribution::Uniform(a, b) | Distribution::Normal(a, b)) = d.from;
            let (good, expected) = match d.from {
                Distribution::Uniform(..) => (a <= b, "the smaller first"),
                Distribution::Normal(..) => (b >= 0.0, "a deviation that is not negative"),
            };
            if !(good && a.is_finite() && b.is_finite()) {
                return refuse(format!(
                    "{what} {place} is drawn by {a} and {b}; give finite numbers, {expected}"
                ));
            }
        }
        let quantities = dynamics.quantities().len();
        for (i, e) in episodes.ends.iter().enumerate() {
            let place = e.quantity.index();
            if place >= quantities {
                return refuse(format!(
                    "ends[{i}]: there is no quantity {place}; the system has {quantities}, counted from 0"
                ));
            }
            if dynamics.needs_unknowns(e.quantity) {
                return refuse(format!(
                    "ends[{i}]: quantity {place} is a force of the step from a knot, which is not made where an episode ends; give a coordinate, a position or a rate"
                ));
            }
            if e.lower.is_nan() || e.upper.is_nan() || e.lower > e.upper {
                return refuse(format!(
                    "ends[{i}]: nothing lies between {} and {}; give the smaller first, infinity where there is no end",
                    e.lower, e.upper
                ));
            }
            finite(ProblemPart::Episodes, &[e.cost, e.rest])?;
        }
        let halves = |c: &Cost| c.when.is_along() && c.quadrature != Quadrature::Left;
        if !episodes.ends.is_empty() && self.costs.iter().any(halves) {
            return refuse(
                "an episode that ends early has no half of an interval to weigh; sum its costs by Quadrature::Left".into(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(from: Distribution, seeds: std::ops::Range<u64>) -> Vec<f64> {
        let episodes = Episodes {
            draws: vec![Draw {
                number: Drawn::Rate(1),
                from,
            }],
            ..Episodes::default()
        };
        let one = |seed| {
            let (mut q, mut rates, mut p) = ([7.0], [7.0; 2], [7.0]);
            episodes.draw(seed, &mut q, &mut rates, &mut p);
            assert_eq!((q, rates[0], p), ([7.0], 7.0, [7.0]));
            rates[1]
        };
        seeds.map(one).collect()
    }

    /// Over neighbouring seeds, as over one generator: mean and deviation within four standard errors.
    #[test]
    fn neighbouring_seeds_are_independent_draws() {
        const N: u64 = 4000;
        let width = 1.0 / 12.0_f64.sqrt();
        for (from, mean, deviation) in [
            (Distribution::Uniform(-3.0, 1.0), -1.0, 4.0 * width),
            (Distribution::Normal(2.0, 0.5), 2.0, 0.5),
        ] {
            let all = draw(from, 10..10 + N);
            let n = N as f64;
            let m = all.iter().sum::<f64>() / n;
            let square = |lag: usize| {
                let pairs = all.iter().zip(&all[lag..]);
                pairs.map(|(a, b)| (a - m) * (b - m)).sum::<f64>() / n
            };
            let error = deviation / n.sqrt();
            assert!((m - mean).abs() < 4.0 * error, "{m}");
            assert!((square(0).sqrt() - deviation).abs() < 4.0 * error);
            // of one draw and the next
            assert!(square(1).abs() < 4.0 * deviation * error, "{}", square(1));
        }
        assert_eq!(
            draw(Distribution::Normal(0.0, 1.0), 3..5),
            draw(Distribution::Normal(0.0, 1.0), 3..5)
        );
    }
}
