//! Quantities that are numbers of the state, or rates of the instant.

use super::Minimal;
use super::derivative::{Linear, short};
use super::kinematics::turned_by;
use crate::dynamics::KnotPoint;
use crate::integrator::reading::{ReadFrom, Reading};
use crate::mechanism::{Freedom, Quantity};
use crate::spatial::{Vec3, increment_scalar};

impl Minimal {
    /// Coordinates, and rates of the interval before, as numbers of the state.
    pub(super) fn read_directly(&self, seen: &KnotPoint, quantity: &Quantity) -> Option<Reading> {
        let (joint, direction, is_rate) = match *quantity {
            Quantity::Coordinate { joint, direction } => (joint, direction, false),
            Quantity::IntervalRate { joint, direction } => (joint, direction, true),
            _ => return None,
        };
        let node = &self.nodes[self.node_of_joint[joint]];
        let freedom = self.mechanism.joints[joint].directions[direction].freedom;
        let index = node.first + direction;
        let itself = |value, place| Reading {
            value,
            of: ReadFrom::State(place),
            slopes: [1.0, 0.0, 0.0],
            by_h_prev: 0.0,
        };
        if !is_rate {
            // slides stand before turns; of several rotations it is a logarithm
            let number = || itself(seen.x[node.place + direction], index);
            return (freedom != Freedom::Turn).then(number);
        }
        let (h, rates) = (seen.at.h_prev, &seen.x[self.positions..]);
        if freedom == Freedom::Slide || h == 0.0 {
            return Some(itself(rates[index], self.freedoms + index));
        }
        if node.turns == 2 {
            // the third component of the turn is of the knot, too
            return None;
        }
        // a ball's directions are the axes of its parent, along which the rotation vector is `turned_by(|w|) w/|w|`
        let first = node.first + node.slides;
        let spin = Vec3::from_fn(|i, _| {
            rates[first..node.directions().end]
                .get(i)
                .map_or(0.0, |r| *r)
        });
        let (size, along) = (spin.norm(), rates[index]);
        let slope = 1.0 / increment_scalar(&spin, h);
        let (mean, bends) = match size {
            0.0 => (1.0, 0.0),
            _ => {
                let mean = turned_by(size, h) / (h * size);
                (mean, (slope - mean) / (size * size))
            }
        };
        let mut slopes: [f64; 3] = (spin * (along * bends)).into();
        slopes[direction - node.slides] += mean;
        Some(Reading {
            value: mean * along,
            of: ReadFrom::State(self.freedoms + first),
            slopes,
            by_h_prev: along * (slope - mean) / h,
        })
    }

    /// Adjoints of the rates of the instant as those of rates of displacement, `linear.rho[1]`, and of the state, to which they are added.
    pub(super) fn seed_rates(&self, rates: &[f64], l: &mut Linear, state: &mut [f64]) {
        for (i, node) in self.nodes.iter().enumerate() {
            let by = &rates[node.directions()];
            let (rho, knot, _) =
                l.locals[i][1].rates_transposed(node.turns, &short(&by[node.slides..]));
            for (r, index) in node.directions().enumerate() {
                match r.checked_sub(node.slides) {
                    None => l.rho[1][index] = by[r],
                    Some(r) => {
                        l.rho[1][index] = rho[r];
                        state[index] += knot[r];
                    }
                }
            }
        }
    }
}
