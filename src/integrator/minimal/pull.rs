//! The transpose of [`push_residual`](super::derivative): virtual displacements outwards, their wrenches inwards.

use super::Minimal;

use super::derivative::{Flow, Linear, SIDES, add, damping, over, short, turned_back};
use super::forces::{to_body, to_world};
use super::kinematics::third;
use super::local::third_by_turn;
use super::parameters::Effect;
use super::work::{Moved, Work};
use crate::dynamics::Inputs;
use crate::mechanism::Drive;
use crate::spatial::Vec3;

impl Minimal {
    /// Adjoints of the inputs by multipliers `linear.lambda` of the residual, and `linear.seeds` of joints; `linear.flow` holds on
    /// entry what else reaches displacements. Those of rates of displacement behind the knot are left in `linear.rho[1]`.
    pub(super) fn pull_residual(&self, w: &mut Work, l: &mut Linear, out: &mut Inputs) {
        let (at, half) = (l.at, 0.5 * (l.at.h_prev + l.at.h));
        let sides = [-at.h_prev, at.h];
        // virtual displacements outwards, into `change`
        for (i, node) in self.nodes.iter().enumerate() {
            let k = &w.knot[i];
            let near = node
                .near
                .map_or_else(Default::default, |n| l.flow[n].change);
            let (mut x, mut turned) = near;
            x += near.1.cross(&k.arms[0]);
            if let Some(seed) = l.seeds.get(i) {
                x += seed.0;
                turned += seed.1;
            }
            for (r, index) in node.directions().enumerate() {
                let moves = w.axes[index].left * l.lambda[index];
                if r < node.slides {
                    x += moves;
                } else {
                    turned += moves;
                }
            }
            x += turned.cross(&k.arms[1]);
            l.flow[i].change = (x, turned);
        }
        let mut by_half = 0.0;
        let mut by_longer = [0.0; 2];
        for (own, (i, k)) in l.flow.iter_mut().zip(w.knot.iter().enumerate()) {
            let (x, turned) = own.change;
            by_half -= k.force.0.dot(&x) + k.force.1.dot(&turned);
            own.z.1 -= k.force.1.cross(&turned) * half;
            own.z.1 -= k.touch.1.cross(&turned);
            own.wrench = (k.force.0 * -half - k.touch.0, k.force.1 * -half - k.touch.1);
            for side in SIDES {
                let sign = if side == 0 { -1.0 } else { 1.0 };
                let (p, v) = (&w.momenta[i][side], &[&w.past, &w.trial][side][i].velocity);
                own.wrench.0 += p.0 * sign;
                own.wrench.1 += p.1 * sign;
                let (by, phi) = l.momenta[i][side].change_back(v, p, &own.change);
                own.w[side].0 += by.0 * sign;
                own.w[side].1 += by.1 * sign;
                own.z.1 += phi * sign;
                by_longer[side] -= (p.0.dot(&x) + p.1.dot(&turned)) * sign;
            }
        }
        self.pull_couplings(w, &mut l.flow, half);
        self.pull_touching(w, l, out);
        l.knot.fill(0.0);
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let (k, j) = (&w.knot[i], &w.model.joints[node.joint]);
            let near_turn = node.near.map_or(Vec3::zeros(), |n| l.flow[n].change.1);
            let own = l.flow[i];
            let force = own.wrench.0;
            let torque = own.wrench.1 + k.arms[1].cross(&force);
            let (zx, mut zphi) = own.z;
            let mut arms = [force.cross(&near_turn), force.cross(&own.change.1)];
            let mut near_phi = Vec3::zeros();
            let lambda = &l.lambda[node.directions()];
            let knot = &mut l.knot[node.directions()];
            // how free directions turn
            let mut by_eta = Vec3::zeros();
            for (r, index) in node.directions().enumerate() {
                let axis = &w.axes[index].left;
                let on = if r < node.slides { &force } else { &torque };
                let adjoint = on * lambda[r];
                let by = axis.cross(&adjoint);
                if node.reversed {
                    zphi += by;
                } else {
                    near_phi += by;
                }
                if node.turns == 2 && r >= node.slides {
                    let seen = k.joint.tr_mul(&adjoint);
                    for e in 0..3 {
                        let unit = &j.directions[r].unit;
                        let eta = Vec3::ith(e, 1.0);
                        by_eta[e] += third_by_turn(j, node, &k.relative, unit, &eta).dot(&seen);
                    }
                }
            }
            if node.turns == 2 {
                for (d, knot) in j.directions.iter().zip(knot.iter_mut()).skip(node.slides) {
                    let eta = d.unit + third(j, node, &k.relative, &d.unit);
                    *knot += eta.dot(&by_eta);
                }
            }
            // arms at the knot, and what displacements say of them
            arms[0] += zx;
            arms[1] += zx;
            let (mut inner, mut carried) = (own.w, [Vec3::zeros(); 2]);
            for side in SIDES {
                let moved = [&w.past, &w.trial][side];
                let (to, h) = (&moved[i], sides[side]);
                let by = node.near.map_or(&Moved::WORLD, |n| &moved[n]);
                let (x, mut turned) = own.w[side];
                turned += to.arms[1].cross(&x);
                zphi += to.drifts[1].cross(&x);
                near_phi += to.drifts[0].cross(&x);
                carried[0] += turned_back(by, &x, h);
                carried[1] += turned_back(to, &x, h);
                for (r, index) in node.directions().enumerate() {
                    let end = &l.ends[index][side];
                    let on = if r < node.slides { &x } else { &turned };
                    l.rho[side][index] = end.0.dot(on);
                    knot[r] += end.1.dot(on);
                }
                inner[side] = (x, turned + to.arms[0].cross(&x));
            }
            l.arms[i] = [arms[0] + carried[0], arms[1] + carried[1]];
            zphi += k.arms[1].cross(&arms[1]);
            near_phi += k.arms[0].cross(&arms[0]);
            let slides = &arms[usize::from(node.reversed)];
            for (r, index) in node.directions().enumerate() {
                let on = if r < node.slides { slides } else { &zphi };
                knot[r] += w.axes[index].left.dot(on);
            }
            self.pull_joint(w, l, i, half, &mut by_longer, out);
            by_half -= node
                .directions()
                .map(|r| l.lambda[r] * w.efforts[r])
                .sum::<f64>();
            if let Some(near) = node.near {
                let to = &mut l.flow[near];
                to.wrench.0 += force;
                to.wrench.1 += torque + k.arms[0].cross(&force);
                to.z.0 += zx;
                to.z.1 += zphi + near_phi;
                for side in SIDES {
                    add(&mut to.w[side], &inner[side]);
                }
            }
        }
        for (out, own) in out.x.iter_mut().zip(&l.knot) {
            *out += own;
        }
        self.pull_numbers(w, l, half, out);
        out.h_prev += 0.5 * by_half + over(by_longer[0], at.h_prev);
        if at.h != 0.0 {
            out.h += 0.5 * by_half + by_longer[1] / at.h;
        }
    }

    /// Springs, dampers, and rates before the knot.
    fn pull_joint(
        &self,
        w: &Work,
        l: &mut Linear,
        i: usize,
        half: f64,
        by_longer: &mut [f64; 2],
        out: &mut Inputs,
    ) {
        let node = &self.nodes[i];
        let j = &w.model.joints[node.joint];
        let own = node.directions();
        let turns = own.start + node.slides..own.end;
        let mut knot = l.springs[i].tr_mul(&short(&l.lambda[turns.clone()])) * -half;
        if j.has_dampers() {
            for side in SIDES {
                let (share, h) = damping(node.shares, &l.at, side);
                let mut size = Vec3::zeros();
                for (r, d) in j.directions.iter().enumerate() {
                    let by = d.damping * share * l.lambda[own.start + r];
                    if r < node.slides {
                        l.rho[side][own.start + r] += h * by;
                    } else {
                        size[r - node.slides] = by;
                    }
                }
                let local = &l.locals[i][side];
                let rho = local.damped_by_end.tr_mul(&size);
                for (to, rho) in l.rho[side][turns.clone()].iter_mut().zip(rho.iter()) {
                    *to += rho;
                }
                knot += local.damped_by_knot.tr_mul(&size);
            }
        }
        let before = short(&l.rho[0][turns.clone()]);
        let (rates, at_knot, longer) = l.locals[i][0].ends_transposed(&before);
        knot += at_knot;
        by_longer[0] += longer;
        for (r, d) in j.directions.iter().enumerate() {
            let index = own.start + r;
            let to = &mut out.x[self.freedoms + index];
            if r < node.slides {
                l.knot[index] += half * d.stiffness * l.lambda[index];
                *to += l.rho[0][index];
                by_longer[0] += l.rho[0][index] * w.before[index];
            } else {
                l.knot[index] += knot[r - node.slides];
                *to += rates[r - node.slides];
            }
        }
    }

    fn pull_couplings(&self, w: &Work, flow: &mut [Flow], half: f64) {
        for (on, by, block) in &w.couplings {
            let rotation = |n: usize| &w.poses[self.nodes[n].body].r;
            let virtual_ = to_body(rotation(*on), &flow[*on].change);
            let z = to_world(rotation(*by), &(block.tr_mul(&virtual_) * -half));
            add(&mut flow[*by].z, &z);
        }
    }

    /// Controls and parameters.
    fn pull_numbers(&self, w: &Work, l: &Linear, half: f64, out: &mut Inputs) {
        let m = &w.model;
        let each = m.actuators.iter().zip(&mut out.u).zip(&w.controls);
        for ((a, out), (_, slope)) in each {
            let mut by = 0.0;
            if let Drive::Joint { joint, direction } = a.drive {
                by = a.gain * l.lambda[self.driven_direction(joint, direction)];
            } else {
                self.each_wrench(w, a, |n, f, t| {
                    let (x, turned) = &l.flow[n].change;
                    by += f.dot(x) + t.dot(turned);
                });
            }
            *out -= half * slope * by;
        }
        for (i, out) in out.p.iter_mut().enumerate() {
            let ends = (&w.past[..], &w.trial[..]);
            self.by_parameter(w, &l.at, ends, i, |effect| {
                *out += match effect {
                    Effect::Body(n, f, t) => {
                        let (x, turned) = &l.flow[n].change;
                        f.dot(x) + t.dot(turned)
                    }
                    Effect::Joint(r, by) => by * l.lambda[r],
                    Effect::Arm(n, side, by) => l.arms[n][side].dot(&by),
                };
            });
        }
    }
}
