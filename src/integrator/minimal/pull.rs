//! The transpose of [`push_residual`](super::derivative): virtual displacements outwards, their wrenches inwards.

use super::Minimal;

use super::derivative::{
    Flow, Linear, SIDES, Six, add, damping, over, pull_share, short, turned_back,
};
use super::forces::{to_body, to_world};
use super::kinematics::{along, third};
use super::local::third_by_turn;
use super::parameters::Effect;
use super::work::{Axis, Moved, Work, wide};
use crate::dynamics::Inputs;
use crate::mechanism::Drive;
use crate::spatial::Vec3;

/// What is along each free direction at the knot.
#[inline(always)]
fn dot_each(axes: &[Axis], on: &Vec3, out: &mut [f64]) {
    for (axis, out) in axes.iter().zip(out) {
        *out = axis.left.dot(on);
    }
}

/// Of a joint on the way inwards, what both sides add to: adjoints of the turns of its body and of what is nearer to the world, of free
/// directions that are fixed in a body, of arms by what carries them, and of the coordinates.
struct Sums {
    zphi: Vec3,
    near_phi: Vec3,
    by_slide: Vec3,
    by_turn: Vec3,
    carried: [Vec3; 2],
    knot: [f64; 6],
}

impl Sums {
    const ZERO: Self = {
        let zero = Vec3::new(0.0, 0.0, 0.0);
        Self {
            zphi: zero,
            near_phi: zero,
            by_slide: zero,
            by_turn: zero,
            carried: [zero; 2],
            knot: [0.0; 6],
        }
    };
}

impl Minimal {
    /// Adjoints of the inputs by multipliers `linear.lambda` of the residual, and `linear.seeds` of joints; `linear.flow` holds on
    /// entry what else reaches displacements. Those of rates of displacement behind the knot are left in `linear.rho[1]`.
    pub(super) fn pull_residual(&self, w: &mut Work, l: &mut Linear, out: &mut Inputs) {
        let (at, half) = (l.at, 0.5 * (l.at.h_prev + l.at.h));
        let (mut by_half, mut by_longer) = (0.0, [0.0; 2]);
        wide!(self.displace(w, l, half, (&mut by_half, &mut by_longer)));
        self.pull_couplings(w, &mut l.flow, half);
        self.pull_dampers(w, l, out);
        self.pull_touching(w, l, out);
        wide!(self.pull_inwards(w, l, half, &mut by_longer, out));
        by_half -= (l.lambda.iter().zip(&w.efforts))
            .map(|(lambda, effort)| lambda * effort)
            .sum::<f64>();
        self.pull_numbers(w, l, half, out);
        out.h_prev += 0.5 * by_half + over(by_longer[0], at.h_prev);
        if at.h != 0.0 {
            out.h += 0.5 * by_half + by_longer[1] / at.h;
        }
    }

    /// Virtual displacements outwards, into `change`, and what they say of the bodies' displacements and of the intervals.
    #[inline(always)]
    fn displace(
        &self,
        w: &Work,
        l: &mut Linear,
        half: f64,
        (by_half, by_longer): (&mut f64, &mut [f64; 2]),
    ) {
        for (i, node) in self.nodes.iter().enumerate() {
            let k = &w.knot[i];
            let (mut x, mut turned) =
                (node.near).map_or_else(Default::default, |n| l.flow[n].change);
            x += turned.cross(&k.arms[0]);
            if let Some(seed) = l.seeds.get(i) {
                x += seed.0;
                turned += seed.1;
            }
            let (slides, turns) = w.axes[node.directions()].split_at(node.slides);
            let (by_slides, by_turns) = l.lambda[node.directions()].split_at(node.slides);
            x += along(slides, by_slides);
            turned += along(turns, by_turns);
            x += turned.cross(&k.arms[1]);
            let own = &mut l.flow[i];
            own.change = (x, turned);
            let [past, behind] = &w.momenta[i];
            own.wrench = (
                behind.0 - past.0 - k.force.0 * half - k.touch.0,
                behind.1 - past.1 - k.force.1 * half - k.touch.1,
            );
            *by_half -= k.force.0.dot(&x) + k.force.1.dot(&turned);
            by_longer[0] += past.0.dot(&x) + past.1.dot(&turned);
            by_longer[1] -= behind.0.dot(&x) + behind.1.dot(&turned);
            // all torques turn with the body
            own.z.1 += own.wrench.1.cross(&turned);
            let [of_past, of_behind] = &l.momenta[i];
            let (by, phi) = of_past.change_back(&w.past[i].velocity, past, &own.change);
            own.w[0].0 -= by.0;
            own.w[0].1 -= by.1;
            own.z.1 -= phi;
            let (by, phi) = of_behind.change_back(&w.trial[i].velocity, behind, &own.change);
            add(&mut own.w[1], &by);
            own.z.1 += phi;
        }
    }

    /// What the bodies' displacements say of the joints, inwards.
    #[inline(always)]
    fn pull_inwards(
        &self,
        w: &Work,
        l: &mut Linear,
        half: f64,
        by_longer: &mut [f64; 2],
        out: &mut Inputs,
    ) {
        let has_parameters = !out.p.is_empty();
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let k = &w.knot[i];
            let near_turn = node.near.map_or(Vec3::zeros(), |n| l.flow[n].change.1);
            let own = &l.flow[i];
            let force = own.wrench.0;
            let torque = own.wrench.1 + k.arms[1].cross(&force);
            let (zx, mut zphi) = own.z;
            let mut near_phi = Vec3::zeros();
            let mut arms = [
                zx + force.cross(&near_turn),
                zx + force.cross(&own.change.1),
            ];
            let axes = &w.axes[node.directions()];
            let (slides, turns) = axes.split_at(node.slides);
            let (by_slides, by_turns) = l.lambda[node.directions()].split_at(node.slides);
            // free directions turn
            let turned =
                along(slides, by_slides).cross(&force) + along(turns, by_turns).cross(&torque);
            if node.reversed {
                zphi += turned;
            } else {
                near_phi += turned;
            }
            let mut sums = Sums {
                zphi,
                near_phi,
                ..Sums::ZERO
            };
            if node.turns == 2 {
                self.pull_turned(w, l, i, &torque, &mut sums.knot);
            }
            let [past, behind] = own.w;
            let past = self.pull_side::<0>(w, l, (i, has_parameters), past, &mut sums);
            let behind = self.pull_side::<1>(w, l, (i, has_parameters), behind, &mut sums);
            let Sums {
                mut zphi,
                mut near_phi,
                mut by_slide,
                mut by_turn,
                carried,
                mut knot,
            } = sums;
            zphi += k.arms[1].cross(&arms[1]);
            near_phi += k.arms[0].cross(&arms[0]);
            by_slide += arms[usize::from(node.reversed)];
            by_turn += zphi;
            for (r, axis) in axes.iter().enumerate() {
                let on = if r < node.slides { &by_slide } else { &by_turn };
                knot[r] += axis.left.dot(on);
            }
            if has_parameters {
                arms[0] += carried[0];
                arms[1] += carried[1];
                l.arms[i] = arms;
            }
            self.pull_joint(w, l, i, half, (by_longer, &mut knot), out);
            for (out, knot) in out.x[node.directions()].iter_mut().zip(&knot) {
                *out += knot;
            }
            if let Some(near) = node.near {
                let to = &mut l.flow[near];
                to.wrench.0 += force;
                to.wrench.1 += torque + k.arms[0].cross(&force);
                to.z.0 += zx;
                to.z.1 += zphi + near_phi;
                add(&mut to.w[0], &past);
                add(&mut to.w[1], &behind);
            }
        }
    }

    /// Arms, and free directions, where they lead on a side: from adjoints `(x, turned)` of a body as rates of displacement those of
    /// what is nearer to the world. The side is the compiler's to know: what it indexes goes through memory.
    #[inline(always)]
    fn pull_side<const SIDE: usize>(
        &self,
        w: &Work,
        l: &mut Linear,
        (i, has_parameters): (usize, bool),
        (x, mut turned): Six,
        sums: &mut Sums,
    ) -> Six {
        let node = &self.nodes[i];
        let (moved, h) = match SIDE {
            0 => (&w.past[..], -l.at.h_prev),
            _ => (&w.trial[..], l.at.h),
        };
        let to = &moved[i];
        turned += to.arms[1].cross(&x);
        sums.zphi += to.drifts[1].cross(&x);
        sums.near_phi += to.drifts[0].cross(&x);
        if has_parameters {
            let by = node.near.map_or(&Moved::WORLD, |n| &moved[n]);
            sums.carried[0] += turned_back(by, &x, h);
            sums.carried[1] += turned_back(to, &x, h);
        }
        let rho = &mut l.rho[SIDE][node.directions()];
        if node.turns == 2 {
            for (r, (rho, end)) in (rho.iter_mut().zip(&l.ends[node.directions()])).enumerate() {
                let on = if r < node.slides { &x } else { &turned };
                *rho = end[SIDE].0.dot(on);
                sums.knot[r] += end[SIDE].1.dot(on);
            }
        } else {
            // the same of directions that are fixed in a body, by the way back of its turn
            let holds = self.holds(moved, i);
            let (slides, turns) = w.axes[node.directions()].split_at(node.slides);
            let (rho_slides, rho_turns) = rho.split_at_mut(node.slides);
            if node.slides > 0 {
                let back = turned_back(holds, &x, h);
                sums.by_slide += back;
                dot_each(slides, &(x + back * h), rho_slides);
            }
            if node.turns > 0 {
                let back = turned_back(holds, &turned, h);
                sums.by_turn += back;
                dot_each(turns, &(turned + back * h), rho_turns);
            }
        }
        (x, turned + to.arms[0].cross(&x))
    }

    /// Where free directions turn by their own turns: adjoints of the coordinates, by the torque that they bear.
    #[inline(never)]
    fn pull_turned(&self, w: &Work, l: &Linear, i: usize, torque: &Vec3, knot: &mut [f64]) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        let j = &w.model.joints[node.joint];
        let lambda = &l.lambda[node.directions()];
        let mut by_eta = Vec3::zeros();
        for (d, lambda) in j.directions.iter().zip(lambda).skip(node.slides) {
            let seen = k.joint.tr_mul(&(torque * *lambda));
            for e in 0..3 {
                let eta = Vec3::ith(e, 1.0);
                by_eta[e] += third_by_turn(j, node, &k.relative, &d.unit, &eta).dot(&seen);
            }
        }
        for (d, knot) in j.directions.iter().zip(knot).skip(node.slides) {
            let eta = d.unit + third(j, node, &k.relative, &d.unit);
            *knot += eta.dot(&by_eta);
        }
    }

    /// Springs, dampers, and rates before the knot.
    #[inline(always)]
    fn pull_joint(
        &self,
        w: &Work,
        l: &mut Linear,
        i: usize,
        half: f64,
        (by_longer, knot): (&mut [f64; 2], &mut [f64; 6]),
        out: &mut Inputs,
    ) {
        let (node, k) = (&self.nodes[i], &w.knot[i]);
        let j = &w.model.joints[node.joint];
        let own = node.directions();
        if let ([rho], 1) = (&l.rho[0][own.clone()], node.turns)
            && !(k.is_sprung || k.is_damped)
        {
            // of a hinge by itself there is no more
            let (rates, _, longer) = l.locals[i][0].ends_transposed(1, &Vec3::new(*rho, 0.0, 0.0));
            out.x[self.freedoms + own.start] += rates.x;
            by_longer[0] += longer;
            return;
        }
        let turns = own.start + node.slides..own.end;
        let mut by_turn = Vec3::zeros();
        if k.is_sprung {
            by_turn = l.springs[i].tr_mul(&short(&l.lambda[turns.clone()])) * -half;
            for (r, d) in j.directions[..node.slides].iter().enumerate() {
                knot[r] += half * d.stiffness * l.lambda[own.start + r];
            }
        }
        if k.is_damped {
            for side in SIDES {
                let (share, h) = damping(node.damper, &l.at, side);
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
                by_turn += local.damped_by_knot.tr_mul(&size);
            }
            if node.damper.is_implicit() {
                let along = self.displacements(&w.model, node, k, &w.rates, l.at.h);
                let each = l.lambda[own.clone()].iter().zip(&j.directions).zip(along);
                let by = each.map(|((l, d), along)| l * d.damping * along).sum();
                pull_share(node.damper, &l.at, by, out);
            }
        }
        let to = &mut out.x[self.freedoms..][own.clone()];
        let (slides, rates) = l.rho[0][own.clone()].split_at(node.slides);
        for ((to, rho), before) in to.iter_mut().zip(slides).zip(&w.before[own]) {
            *to += rho;
            by_longer[0] += rho * before;
        }
        let (rates, at_knot, longer) = l.locals[i][0].ends_transposed(node.turns, &short(rates));
        by_turn += at_knot;
        by_longer[0] += longer;
        let each = to.iter_mut().zip(knot).skip(node.slides);
        for ((to, knot), (rate, by)) in each.zip(rates.iter().zip(by_turn.iter())) {
            *to += rate;
            *knot += by;
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
