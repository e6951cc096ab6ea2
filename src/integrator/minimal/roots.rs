//! Methods to find the root of a step, as paper 003 compares them, for trees that touch nothing.
//!
//! All solve `r(rates) = S(z_k)' d = 0` ([`super`]). Exact Newton costs O(n) by the articulated-body recursion; the paper's
//! recursive impulse-based quasi-Newton method (RIQN, its algorithm 3) is the same recursion without motion over the interval,
//! that is, the inverse mass matrix of the knot times the interval; its baselines invert a dense Jacobian, whose entries are
//! `sum over the bodies beyond both joints of S_i' X' D X+ S+_j`, or update an inverse (Broyden 1965), and evaluate the residual
//! joint by joint over all bodies beyond, in O(n^2), as the older scalable variational integrator does.

use super::Minimal;
use super::step::largest;
use super::work::{Articulated, Moved, Work};
use crate::dynamics::{Knot, StepError, StepFailure, StepStats};
use crate::mechanism::ModelError;
use crate::spatial::Vec3;
use nalgebra::{DMatrix, DVector};

/// How a correction follows from a residual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Root {
    /// Newton's method, factors kept while corrections fall fast with them: the fastest. Of every iterate where something else of
    /// [`Roots`] is not the default.
    #[default]
    Fastest,
    /// Newton's method with factors of every iterate, O(n).
    Newton,
    /// With those of the first iterate, O(n).
    Chord,
    /// Paper 003's RIQN, O(n).
    QuasiNewton,
    /// Broyden's updates of the first iterate's inverse, O(n^2).
    Broyden,
    /// Newton's method with a dense Jacobian, O(n^3).
    Dense,
}

impl Root {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Fastest,
        Self::Newton,
        Self::Chord,
        Self::QuasiNewton,
        Self::Broyden,
        Self::Dense,
    ];
}

/// Where to begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guess {
    /// Where the tree is (paper 003: IG1).
    Position,
    /// Where the rates before lead (IG2).
    #[default]
    Velocity,
    /// Where these and the accelerations at the knot lead (IG3).
    Acceleration,
}

/// How the residual is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residual {
    /// By one recursion inwards, O(n).
    #[default]
    Recursive,
    /// Joint by joint, over all bodies beyond, O(n^2).
    Quadratic,
}

/// How roots are found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Roots {
    /// Corrections.
    pub root: Root,
    /// Where they begin.
    pub guess: Guess,
    /// What they are of.
    pub residual: Residual,
    /// Norm of the residual, N s and N m s, to end at. Without, the rule is one on the joints' rates: the correction that would
    /// follow is below the tolerance of [`Options`](crate::integrator::Options).
    pub norm: Option<f64>,
}

/// Memory of the dense methods, and the trial at rest.
pub(super) struct Dense {
    composite: Vec<Articulated>,
    inverse: DMatrix<f64>,
    residual: DVector<f64>,
    last: DVector<f64>,
    step: DVector<f64>,
    rest: Vec<Moved>,
    /// Norms of the residuals of the last step.
    pub norms: Vec<f64>,
}

impl Dense {
    fn new(n: usize, freedoms: usize, dense: bool) -> Self {
        let size = if dense { freedoms } else { 0 };
        Self {
            composite: vec![Articulated::ZERO; n],
            inverse: DMatrix::zeros(size, size),
            residual: DVector::zeros(freedoms),
            last: DVector::zeros(freedoms),
            step: DVector::zeros(freedoms),
            rest: vec![Moved::WORLD; n],
            norms: vec![],
        }
    }
}

impl Minimal {
    /// The same steps, their roots found so.
    ///
    /// # Errors
    /// When other methods than the fastest are asked for where there are gears or dampers between points, or where something touches:
    /// impulses of these are solved for together with the rates.
    pub fn with_roots(self, roots: Roots) -> Result<Self, ModelError> {
        let m = &self.mechanism;
        let is_free = self.bordered() == 0 && self.contacts.is_empty();
        if roots == Roots::default() || is_free {
            return Ok(Self { roots, ..self });
        }
        // constraints of trees are gears; what touches and is none of these is a joint
        let damper = self.dampers.first().map(|d| &m.springs[d.spring]);
        let (kind, name) = match (m.constraints.first(), m.contacts.first(), damper) {
            (Some(gear), ..) => (gear.kind().0, &gear.name),
            (None, Some(contact), _) => ("contacts", &contact.name),
            (None, None, Some(spring)) => ("springs", &spring.name),
            (None, None, None) => {
                let joint = self.touches.iter().position(|t| *t).unwrap_or(0);
                ("joints", &m.joints[self.nodes[joint].joint].name)
            }
        };
        Err(ModelError::new(
            [kind, name],
            format!(
                "impulses of `{name}` are solved for together with the rates, in one way alone"
            ),
            "leave it out, or take `Roots::default()`",
        ))
    }

    /// Norms of the residual, N s and N m s, at the iterates of the step solved last, where [`Minimal::with_roots`] asked for
    /// another method than the fastest.
    pub fn residual_norms<'a>(&self, w: &'a Work) -> &'a [f64] {
        w.dense.as_ref().map_or(&[], |d| &d.norms)
    }

    /// Finds the root of the step that was prepared.
    pub(super) fn find(&self, at: &Knot, x: &[f64], w: &mut Work) -> Result<StepStats, StepError> {
        let is_dense = matches!(self.roots.root, Root::Broyden | Root::Dense);
        let mut d = match w.dense.take() {
            Some(d) => d,
            None => Box::new(Dense::new(self.nodes.len(), self.freedoms, is_dense)),
        };
        let found = self.find_in(at, x, w, &mut d);
        w.dense = Some(d);
        found
    }

    fn find_in(
        &self,
        at: &Knot,
        x: &[f64],
        w: &mut Work,
        d: &mut Dense,
    ) -> Result<StepStats, StepError> {
        let (h, roots) = (at.h, self.roots);
        d.norms.clear();
        self.begin(at, x, w, d)?;
        let mut stats = StepStats::default();
        let mut last = f64::INFINITY;
        loop {
            self.leave(h, w, d);
            d.norms.push(d.residual.norm());
            stats.residual = d.residual.norm();
            if roots.norm.is_some_and(|n| stats.residual <= n) {
                break;
            }
            let fails = |failure, body, residual| Err(self.failure(failure, at, body, residual));
            if stats.iterations == self.options.max_iterations {
                return fails(StepFailure::NotConverged, self.nodes[0].body, last);
            }
            self.correct(at, stats.iterations, w, d)?;
            stats.iterations += 1;
            let size = largest(&w.change);
            if size.is_nan() {
                return fails(StepFailure::NotFinite, self.nodes[0].body, last);
            }
            w.kept.copy_from_slice(&w.rates);
            let mut length = 1.0;
            while let Some(body) = self.go(length, h, w) {
                length *= 0.5;
                if length < super::step::SHORTEST {
                    return fails(StepFailure::Domain, body, size);
                }
            }
            d.step.copy_from_slice(&w.change);
            d.step *= length;
            let follows = size * (size / last);
            let is_small = size <= self.options.tolerance
                || (stats.iterations > 1 && follows <= self.options.tolerance);
            if roots.norm.is_none() && is_small {
                stats.residual = if stats.iterations > 1 {
                    size.min(follows)
                } else {
                    size
                };
                break;
            }
            last = size;
        }
        (stats.turned, stats.turn) = self.largest_turn(w, h);
        Ok(stats)
    }

    /// Takes a part of the correction; the body that turns too far then.
    fn go(&self, length: f64, h: f64, w: &mut Work) -> Option<usize> {
        self.take(length, h, w);
        self.lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial)
    }

    /// The guess, and the factors that serve all iterates.
    fn begin(&self, at: &Knot, x: &[f64], w: &mut Work, d: &mut Dense) -> Result<(), StepError> {
        let (h, roots) = (at.h, self.roots);
        let rests = roots.root == Root::QuasiNewton || roots.guess == Guess::Acceleration;
        if rests {
            // the mass matrix, of no motion
            w.rates.fill(0.0);
            self.lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial);
            self.factor(w, h)
                .map_err(|body| self.failure(StepFailure::Singular, at, body, f64::NAN))?;
            d.rest.copy_from_slice(&w.trial);
        }
        match roots.guess {
            Guess::Position => {
                w.rates.fill(0.0);
                self.lead(&w.knot, &w.axes, &w.rates, h, &mut w.trial);
            }
            Guess::Velocity | Guess::Acceleration => self.guess(&x[self.positions..], h, w),
        }
        if roots.guess == Guess::Acceleration {
            self.leave(h, w, d);
            self.by_impulses(w, d);
            w.kept.copy_from_slice(&w.rates);
            if self.go(1.0, h, w).is_some() {
                self.go(0.0, h, w);
            }
        }
        Ok(())
    }

    /// The residual at the trial.
    fn leave(&self, h: f64, w: &mut Work, d: &mut Dense) {
        std::mem::swap(&mut d.last, &mut d.residual);
        match self.roots.residual {
            Residual::Recursive => self.residual_rows(w, h, d.residual.as_mut_slice()),
            Residual::Quadratic => self.residual_by_bodies(w, h, d.residual.as_mut_slice()),
        }
    }

    /// Every body's wrench about every joint that holds it.
    fn residual_by_bodies(&self, w: &mut Work, h: f64, rows: &mut [f64]) {
        self.momenta_left(w, h);
        for (row, base) in rows.iter_mut().zip(&w.base) {
            *row = -base;
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let joint = w.poses[node.body].x - w.knot[i].arms[1];
            for (b, (f, t)) in w.wrenches.iter().enumerate().skip(i) {
                if !self.path(b).any(|k| k == i) {
                    continue;
                }
                let arm = w.poses[self.nodes[b].body].x - joint;
                let about = t + arm.cross(f);
                for (r, index) in node.directions().enumerate() {
                    let on = if r < node.slides { f } else { &about };
                    rows[index] += w.axes[index].left.dot(on);
                }
            }
            if w.model.joints[node.joint].has_dampers() {
                self.damp(w, i, h, &mut rows[node.directions()]);
            }
        }
    }

    /// Minus the mass matrix's inverse, times the interval, applied to the residual.
    fn by_impulses(&self, w: &mut Work, d: &mut Dense) {
        std::mem::swap(&mut w.trial, &mut d.rest);
        w.wrenches.fill(Default::default());
        self.substitute(w, d.residual.as_slice());
        std::mem::swap(&mut w.trial, &mut d.rest);
    }

    /// The correction, into `w.change`.
    fn correct(
        &self,
        at: &Knot,
        iteration: usize,
        w: &mut Work,
        d: &mut Dense,
    ) -> Result<(), StepError> {
        let h = at.h;
        let singular = |body| self.failure(StepFailure::Singular, at, body, f64::NAN);
        match self.roots.root {
            Root::QuasiNewton => self.by_impulses(w, d),
            Root::Fastest | Root::Newton | Root::Chord => {
                let is_chord = self.roots.root == Root::Chord;
                if !is_chord || iteration == 0 {
                    self.factor(w, h).map_err(singular)?;
                    d.rest.copy_from_slice(&w.trial);
                }
                if is_chord {
                    self.by_impulses(w, d);
                } else {
                    w.wrenches.fill(Default::default());
                    self.substitute(w, d.residual.as_slice());
                }
            }
            Root::Dense => {
                self.jacobian_dense(w, h, d);
                let lu = std::mem::replace(&mut d.inverse, DMatrix::zeros(0, 0)).lu();
                let solved = lu.solve(&d.residual);
                let change = solved.ok_or_else(|| singular(self.nodes[0].body))?;
                d.inverse = lu.unpack().2;
                (w.change.iter_mut().zip(change.iter())).for_each(|(to, c)| *to = -c);
            }
            Root::Broyden => {
                if iteration == 0 {
                    self.jacobian_dense(w, h, d);
                    if !d.inverse.try_inverse_mut() {
                        return Err(singular(self.nodes[0].body));
                    }
                } else {
                    // H += (s - H y) s' H / (s' H y)
                    let y = &d.residual - &d.last;
                    let by = &d.inverse * y;
                    let row = d.inverse.tr_mul(&d.step);
                    let scale = 1.0 / d.step.dot(&by);
                    d.inverse.ger(scale, &(&d.step - &by), &row, 1.0);
                }
                let change = &d.inverse * &d.residual;
                (w.change.iter_mut().zip(change.iter())).for_each(|(to, c)| *to = -c);
            }
        }
        Ok(())
    }

    /// Derivative of the residual by the joints' rates of displacement, dense.
    fn jacobian_dense(&self, w: &mut Work, h: f64, d: &mut Dense) {
        let j = &mut d.inverse;
        if j.nrows() != self.freedoms {
            *j = DMatrix::zeros(self.freedoms, self.freedoms);
        }
        j.fill(0.0);
        d.composite.fill(Articulated::ZERO);
        for (i, node) in self.nodes.iter().enumerate().rev() {
            self.turn_axes(w, i, h);
            let mut p = Articulated::of_body(self.lagrangian, &w.knot[i], &w.trial[i], h);
            p.add(&d.composite[i]);
            d.composite[i] = p;
            let n = node.count();
            let mut pivot = [0.0; 36];
            self.add_dampers(w, i, h, &mut pivot[..n * n]);
            for c in 0..n {
                let right = w.axes[node.first + c].right;
                let left = w.axes[node.first + c].left;
                // what a rate along it makes here and nearer to the world, and what it answers to nearer to it
                let (mut on, mut by) = if c < node.slides {
                    (
                        (p.ff * right, p.tf * right),
                        (p.ff.tr_mul(&left), p.ft.tr_mul(&left)),
                    )
                } else {
                    (
                        (p.ft * right, p.tt * right),
                        (p.tf.tr_mul(&left), p.tt.tr_mul(&left)),
                    )
                };
                let along = |v: &(Vec3, Vec3), is_slide: bool| if is_slide { v.0 } else { v.1 };
                for r in 0..n {
                    let axis = &w.axes[node.first + r];
                    j[(node.first + r, node.first + c)] =
                        axis.left.dot(&along(&on, r < node.slides)) + pivot[c * n + r];
                }
                let mut at = i;
                while let Some(near) = self.nodes[at].near {
                    on.1 += (w.knot[near].arms[1] + w.knot[at].arms[0]).cross(&on.0);
                    by.1 += (w.trial[near].arms[1] + w.trial[at].arms[0]).cross(&by.0);
                    let other = &self.nodes[near];
                    for (r, index) in other.directions().enumerate() {
                        let axis = &w.axes[index];
                        let is_slide = r < other.slides;
                        j[(index, node.first + c)] = axis.left.dot(&along(&on, is_slide));
                        j[(node.first + c, index)] = axis.right.dot(&along(&by, is_slide));
                    }
                    at = near;
                }
            }
            if let Some(near) = node.near {
                let left = w.knot[near].arms[1] + w.knot[i].arms[0];
                let right = w.trial[near].arms[1] + w.trial[i].arms[0];
                p.shift(&left, &right);
                d.composite[near].add(&p);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lagrangian;
    use super::super::samples::{MOVING, damped, geared, made, mixed, options};
    use super::*;
    use crate::mechanism::samples::Source;
    use crate::mechanism::{
        BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Shape,
    };

    /// Whatever the method, the guess and the rule to end at, steps are the same.
    #[test]
    fn all_methods_find_the_same_steps() {
        let kinds = [
            JointKind::Spherical,
            JointKind::Revolute,
            JointKind::Orbital,
        ];
        let build = |of: Lagrangian, roots: Roots| {
            let m = mixed(2, &kinds).build().expect("valid");
            let q = Source::new(2).vector(m.tree_ids().len(), 0.6);
            let rates = Source::new(3).vector(q.len(), 1.0);
            let s = Minimal::new(m, &q, options()).expect("a tree");
            let s = s
                .with_lagrangian(of)
                .with_roots(roots)
                .expect("nothing touches");
            let (.., next) = made(&s, &q, &rates, MOVING);
            next
        };
        let guesses = [Guess::Position, Guess::Velocity, Guess::Acceleration];
        let residuals = [Residual::Recursive, Residual::Quadratic];
        let all = Root::ALL.into_iter().flat_map(|root| {
            guesses.into_iter().flat_map(move |guess| {
                residuals.into_iter().flat_map(move |residual| {
                    [None, Some(1e-12)].map(|norm| Roots {
                        root,
                        guess,
                        residual,
                        norm,
                    })
                })
            })
        });
        for roots in all {
            for of in [Lagrangian::Split, Lagrangian::Screw] {
                let (own, next) = (build(of, Roots::default()), build(of, roots));
                let off = own.iter().zip(&next).map(|(a, b)| (a - b).abs());
                let off = off.fold(0.0, f64::max);
                assert!(off < 1e-10, "{of:?}, {roots:?}: {off:.1e}");
            }
        }
    }

    /// What is solved for together with the rates is refused by name, not solved in another way than was asked for.
    #[test]
    fn other_roots_are_refused_where_there_is_more_to_solve_for() {
        let chord = Roots {
            root: Root::Chord,
            ..Roots::default()
        };
        let kinds = [JointKind::Revolute; 3];
        let refused = |builder: MechanismBuilder| {
            let m = builder.build().expect("valid");
            let mut q = vec![0.0; m.tree_ids().len()];
            // above a floor, where there is one
            q.iter_mut().skip(2).take(1).for_each(|z| *z = 1.0);
            let s = Minimal::new(m, &q, options()).expect("a tree");
            let s = s.with_roots(Roots::default()).expect("the default");
            s.with_roots(chord).expect_err("refused").path
        };
        assert_eq!(refused(geared(mixed(3, &kinds), 3, 1))[0], "gears");
        assert_eq!(refused(damped(mixed(3, &kinds), 3)), ["springs", "d0"]);
        let rough = JointSpec::new(JointKind::Revolute, "b").axis([0.0, 1.0, 0.0]);
        let rough = MechanismBuilder::new()
            .body("b", BodySpec::new(1.0).inertia([1.0; 3]))
            .joint("rough", rough.friction(0.5));
        assert_eq!(refused(rough), ["joints", "rough"]);
        let ball = BodySpec::new(1.0).shape(Shape::Sphere(0.1)).free();
        let ball = MechanismBuilder::new()
            .half_space("floor", HalfSpaceSpec::default())
            .body("ball", ball.contact("skin", ContactSpec::new(0.5)));
        assert_eq!(refused(ball)[0], "contacts");
    }
}
