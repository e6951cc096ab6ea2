//! The memory of a step in joint coordinates.

use super::Minimal;
use super::border::Border;
use super::contact::Touching;
use super::dampers::Damped;
use super::derivative::Linear;
use super::gears::Geared;
use super::jacobian::Jacobian;
use super::mechanical::Observation;
use super::pivots::Ball;
use super::roots::Dense;
use crate::dynamics::{Inputs, Outputs};
use crate::integrator::swing::Turning;
use crate::mechanism::{Mat6, Mechanism, Vec6};
use crate::spatial::{Mat3, Pose, Quat, RotationLaw, Vec3};

/// Memory of one thread: what is known at a knot, where the trial leads, and the factors.
pub struct Work {
    /// The mechanism with the parameters of the last call.
    pub(super) model: Mechanism,
    pub(super) parameters: Vec<f64>,
    /// Poses of the bodies at the knot.
    pub(super) poses: Vec<Pose>,
    pub(super) knot: Vec<AtKnot>,
    /// Length of the interval before the knot, s.
    pub(super) h_prev: f64,
    pub(super) trial: Vec<Moved>,
    /// How the bodies moved over the interval before, and their momenta then, and behind the knot.
    pub(super) past: Vec<Moved>,
    pub(super) momenta: Vec<[(Vec3, Vec3); 2]>,
    /// What does not depend on the unknowns, along each free direction: impulses, and forces of them.
    pub(super) base: Vec<f64>,
    pub(super) efforts: Vec<f64>,
    /// Positions and rates before, of the state, and the controls as they are asked for.
    pub(super) positions: Vec<f64>,
    pub(super) before: Vec<f64>,
    pub(super) commanded: Vec<f64>,
    /// Corners of what cuts efforts are rounded over the root of it, where derivatives are taken.
    pub(super) relaxed: f64,
    /// Controls within their limits, with their derivatives.
    pub(super) controls: Vec<(f64, f64)>,
    /// Of springs, actuators and potentials on bodies, while linearized: the wrench on a node's body by the displacement of one, both
    /// linear in the world, angular in the body.
    pub(super) couplings: Vec<(usize, usize, Mat6)>,
    /// Of one potential.
    pub(super) gathered: Vec<Pose>,
    pub(super) gradient: Vec<Vec6>,
    pub(super) hessian: Vec<Mat6>,
    /// Lent to what works with it, which gives it back.
    pub(super) linear: Option<Box<Linear>>,
    pub(super) observation: Observation,
    /// Largest relative residual of adjoint solves, where that was asked for.
    pub(super) certificate: Option<f64>,
    /// Of the inertias, for bounds of swings.
    pub(super) inverse_inertia: Vec<Mat3>,
    pub(super) scratch: Vec<f64>,
    /// The dampers' values while an estimate of the fastest swing scales them.
    pub(super) dampings: Vec<f64>,
    pub(super) turning: Turning,
    pub(super) inputs: Inputs,
    pub(super) outputs: Outputs,
    pub(super) touching: Touching,
    pub(super) geared: Geared,
    pub(super) border: Border,
    /// Of dampers between points.
    pub(super) damped: Vec<Damped>,
    pub(super) dense: Option<Box<Dense>>,
    /// Made when it is first asked for.
    pub(super) jacobian: Option<Box<Jacobian>>,
    /// The unknowns: the joints' rates over the interval; those before the last step, and that step.
    pub(super) rates: Vec<f64>,
    pub(super) kept: Vec<f64>,
    pub(super) rows: Vec<f64>,
    pub(super) change: Vec<f64>,
    /// What bodies further out add to a body's matrix on the way inwards; zero between eliminations.
    pub(super) articulated: Vec<Articulated>,
    pub(super) wrenches: Vec<(Vec3, Vec3)>,
    pub(super) axes: Vec<Axis>,
    /// In what order free directions are eliminated where something touches, counted within their joint.
    pub(super) order: Vec<u8>,
    /// Inverses of the joints' pivots, `n x n` by columns behind each other; factors of them where something touches.
    pub(super) inverses: Vec<f64>,
    /// Of every node.
    pub(super) balls: Vec<Ball>,
}

/// A body and its joint at the knot, world axes.
#[derive(Clone, Copy)]
pub(super) struct AtKnot {
    /// From the joint's frame, that of its parent, to the motion of the body against what is nearer to the world.
    pub joint: Mat3,
    /// Relative rotation.
    pub relative: Quat,
    /// Does the joint have springs, dampers?
    pub is_sprung: bool,
    pub is_damped: bool,
    /// From the center of what is nearer to the world (its origin) to the joint, from there to the body's center.
    pub arms: [Vec3; 2],
    pub mass: f64,
    pub inertia: Mat3,
    /// The body's rotation law, its axis in the world.
    pub law: RotationLaw,
    /// Forces of gravity, springs and actuators.
    pub force: (Vec3, Vec3),
    /// Impulses of contacts, limits and friction in the step last linearized.
    pub touch: (Vec3, Vec3),
    /// Momenta of the interval before, and the impulses that do not depend on the unknowns.
    pub base: (Vec3, Vec3),
}

/// How a body moves from the knot over an interval.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    /// Scalar part of its turn, and twice the vector part by the interval, world axes.
    pub scalar: f64,
    pub omega: Vec3,
    /// Displacement of its center by the interval.
    pub velocity: Vec3,
    /// The arms at the knot, moved, and by how much, by the interval.
    pub arms: [Vec3; 2],
    pub drifts: [Vec3; 2],
}

impl Moved {
    pub const WORLD: Self = Self {
        scalar: 1.0,
        omega: Vec3::new(0.0, 0.0, 0.0),
        velocity: Vec3::new(0.0, 0.0, 0.0),
        arms: [Vec3::new(0.0, 0.0, 0.0); 2],
        drifts: [Vec3::new(0.0, 0.0, 0.0); 2],
    };

    /// How far an arm turns with the body over the interval `h`, by `h`: `(E - 1) arm / h`.
    #[inline(always)]
    pub fn turned(&self, arm: &Vec3, h: f64) -> Vec3 {
        turned((self.scalar, &self.omega), arm, h)
    }

    /// The inverse of `s - half [omega]`, which with half an interval makes of a rate of turning at its end a change of `omega`; with
    /// the negative one of its transpose.
    pub fn spun_back(&self, u: &Vec3, half: f64) -> Vec3 {
        let (s, w) = (self.scalar, &self.omega);
        u * s + w * (half * half / s * w.dot(u)) + w.cross(u) * half
    }
}

/// The same by scalar and vector part.
#[inline(always)]
pub(super) fn turned((scalar, omega): (f64, &Vec3), arm: &Vec3, h: f64) -> Vec3 {
    let across = omega.cross(arm);
    across * scalar + omega.cross(&across) * (0.5 * h)
}

/// A wrench of a body about a point by the displacement of that point and the turn: `[f; n] = [[ff, fn], [nf, nn]] [dx; dphi]`.
#[derive(Clone, Copy)]
pub(super) struct Articulated {
    pub ff: Mat3,
    pub ft: Mat3,
    pub tf: Mat3,
    pub tt: Mat3,
}

impl Articulated {
    pub const ZERO: Self = {
        let none = Mat3::new(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        Self {
            ff: none,
            ft: none,
            tf: none,
            tt: none,
        }
    };
}

/// A free direction of a joint, world axes; of the elimination, what of it is pushed inwards and outwards.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    /// At the knot and at the trial.
    pub left: Vec3,
    pub right: Vec3,
    /// The wrench that a rate along it makes.
    pub wrench: (Vec3, Vec3),
    /// What rate a displacement and a turn nearer to the world make along it.
    pub answer: (Vec3, Vec3),
    /// The rate that the residual makes.
    pub rate: f64,
}

pub(super) use crate::spatial::wide;

impl Minimal {
    pub(super) fn memory(&self) -> Work {
        let (n, freedoms) = (self.nodes.len(), self.freedoms);
        let (zero, none) = (Vec3::zeros(), Mat3::zeros());
        let knot = AtKnot {
            joint: none,
            relative: Quat::identity(),
            is_sprung: false,
            is_damped: false,
            arms: [zero; 2],
            mass: 0.0,
            inertia: none,
            law: RotationLaw::Chord,
            force: (zero, zero),
            touch: (zero, zero),
            base: (zero, zero),
        };
        let axis = Axis {
            left: zero,
            right: zero,
            wrench: (zero, zero),
            answer: (zero, zero),
            rate: 0.0,
        };
        Work {
            model: self.mechanism.clone(),
            parameters: self.nominal(),
            poses: vec![Pose::identity(); self.mechanism.bodies.len()],
            h_prev: 0.0,
            knot: vec![knot; n],
            trial: vec![Moved::WORLD; n],
            past: vec![Moved::WORLD; n],
            momenta: vec![[(zero, zero); 2]; n],
            base: vec![0.0; freedoms],
            efforts: vec![0.0; freedoms],
            positions: vec![0.0; self.positions],
            before: vec![0.0; freedoms],
            commanded: vec![0.0; self.mechanism.actuators.len()],
            relaxed: 0.0,
            controls: vec![(0.0, 1.0); self.mechanism.actuators.len()],
            couplings: vec![],
            gathered: vec![],
            gradient: vec![],
            hessian: vec![],
            linear: Some(Box::new(Linear::new(n, freedoms))),
            observation: Observation::new(&self.mechanism),
            certificate: None,
            inverse_inertia: vec![none; n],
            scratch: vec![0.0; n],
            dampings: vec![],
            turning: Turning::default(),
            inputs: self.dims().inputs(),
            outputs: self.dims().outputs(),
            touching: Touching::new(self),
            geared: Geared::new(self),
            border: Border::new(self),
            damped: self.damped_memory(),
            dense: None,
            jacobian: None,
            rates: vec![0.0; freedoms],
            kept: vec![0.0; freedoms],
            rows: vec![0.0; freedoms],
            change: vec![0.0; freedoms],
            articulated: vec![Articulated::ZERO; n],
            wrenches: vec![(zero, zero); n],
            axes: vec![axis; freedoms],
            order: vec![0; freedoms],
            balls: vec![Ball::NONE; n],
            inverses: vec![0.0; self.nodes.iter().map(|n| n.count().pow(2)).sum()],
        }
    }
}
