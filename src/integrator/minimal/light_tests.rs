//! Chains of very light links between heavy bodies: pressed by stiff contacts, their recursion is singular, and the impulses of the
//! contacts become unknowns of their own.

use super::Minimal;
use super::samples::{contact_options, values};
use crate::dynamics::{
    Differentiable, Equations, Inputs, Knot, SolvedStep, Start, Step, StepError, StepStats,
};
use crate::integrator::checks::{Against, hold, some_adjoint};
use crate::integrator::{Maximal, Mechanical};
use crate::mechanism::{
    BodySpec, ContactSpec, HalfSpaceSpec, JointKind, JointSpec, MechanismBuilder, Shape,
};
use crate::spatial::Pose;

/// Length of a step, s.
const STEP: f64 = 0.005;
/// Difference of what goes into a step.
const APART: f64 = 1e-6;
/// Heights of the trunk at the start, m: at the least the lowest link is 6 cm above the floor.
const HEIGHTS: [f64; 9] = [0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8];

/// A trunk of 1 kg, a link of 3 g below it, and below that an arm of 1 kg and a toe of 1 g; link, arm and toe meet the floor.
fn chain() -> MechanismBuilder {
    let rod = |mass: f64, length: f64| {
        BodySpec::new(mass).shape(Shape::Capsule {
            radius: 0.02,
            length,
        })
    };
    let tip = |friction: f64, z: f64| {
        ContactSpec::new(friction)
            .shape(Shape::Sphere(0.03))
            .at([0.0, 0.0, z])
    };
    let below = |kind, parent: &str, child: &str, axis, length: f64| {
        JointSpec::new(kind, child)
            .parent(parent)
            .axis(axis)
            .anchors([0.0, 0.0, -0.05], [0.0, 0.0, 0.5 * length])
    };
    let knee = below(JointKind::Revolute, "link", "arm", [1.0, 0.0, 0.0], 0.2)
        .spring(5.0, 0.0)
        .damping(0.001)
        .friction(0.2)
        .limits(-0.5, 0.6);
    MechanismBuilder::new()
        .half_space("floor", HalfSpaceSpec::default())
        .body("trunk", rod(1.0, 0.1).free())
        .body("link", rod(0.003, 0.1).contact("tip", tip(1.0, -0.05)))
        .body("arm", rod(1.0, 0.2).contact("tip", tip(0.0, -0.1)))
        .body("toe", rod(0.001, 0.1).contact("tip", tip(1.0, -0.05)))
        .joint(
            "hip",
            below(JointKind::Revolute, "trunk", "link", [0.0, 1.0, 0.0], 0.1).spring(5.0, 0.0),
        )
        .joint("knee", knee)
        .joint(
            "ankle",
            below(JointKind::Spherical, "link", "toe", [1.0, 0.0, 0.0], 0.1),
        )
}

/// Coordinates and rates of a start with the trunk so high.
fn start(height: f64) -> (Vec<f64>, Vec<f64>) {
    let q = vec![0.0, 0.0, height, 0.2, -0.1, 0.1, 0.43, -0.03, 0.0, 0.0, 0.0];
    let rates = vec![0.0, 0.0, 0.0, 0.5, -0.02, 0.3, -0.53, 1.7, 0.0, 0.0, 0.0];
    (q, rates)
}

/// Simulates a number of steps from a height, calls `each` with every step, and returns the final poses.
fn moved<S: Mechanical>(
    s: &S,
    height: f64,
    steps: usize,
    mut each: impl FnMut(&SolvedStep, &StepStats),
) -> Vec<Pose> {
    let (d, p, mut w) = (s.dims(), values(s), s.work());
    let (q, rates) = start(height);
    let (mut x, mut y) = (vec![0.0; d.nx], vec![0.0; d.ny]);
    s.initial(&Start::at_rates(&q, &rates), &p, &mut w, &mut x)
        .expect("starts");
    let mut next = x.clone();
    for k in 0..steps {
        let at = Knot {
            k,
            t: STEP * k as f64,
            h_prev: if k > 0 { STEP } else { 0.0 },
            h: STEP,
        };
        let stats = (s.step(&at, &x, &[], &p, &mut w, &mut next, &mut y)).expect("steps");
        let solved = SolvedStep {
            at,
            x: &x,
            u: &[],
            p: &p,
            y: &y,
            next: &next,
        };
        each(&solved, &stats);
        x.copy_from_slice(&next);
    }
    s.poses(&x)
}

fn off(a: &[Pose], b: &[Pose]) -> f64 {
    let each = a.iter().zip(b);
    each.fold(0.0_f64, |m, (a, b)| {
        m.max((a.x - b.x).amax()).max((a.r - b.r).amax())
    })
}

/// Up to the end of the first step whose recursion was singular both integrators are as near as motions that begin 1e-10 m apart: impacts
/// of light links make small differences large.
#[test]
fn singular_steps_are_those_of_maximal_coordinates() {
    let options = contact_options(1e-9, true);
    let (q, _) = start(0.5);
    let build = || chain().build().expect("valid");
    let minimal = Minimal::new(build(), &q, options).expect("a tree");
    let maximal = Maximal::new(build(), &q, options).expect("a tree");
    let mut singular = 0;
    for height in HEIGHTS {
        let mut first = None;
        moved(&minimal, height, 200, |solved, stats| {
            if first.is_none() && stats.fallbacks > 0 {
                first = Some(solved.at.k + 1);
            }
        });
        let Some(steps) = first else { continue };
        singular += 1;
        let own = moved(&minimal, height, steps, |_, _| {});
        let beside = off(&own, &moved(&minimal, height + 1e-10, steps, |_, _| {}));
        let apart = off(&own, &moved(&maximal, height, steps, |_, _| {}));
        assert!(
            beside < 1e-6 && apart < 1e-9 + beside,
            "{height} m, step {steps}: {apart:.1e}, {beside:.1e}"
        );
    }
    assert!(singular > 2, "{singular} motions with singular recursions");
}

#[test]
fn singular_steps_have_their_derivatives() {
    let options = contact_options(1e-9, true);
    let (q, _) = start(0.5);
    let s = Minimal::new(chain().build().expect("valid"), &q, options).expect("a tree");
    let (mut w, mut singular) = (s.work(), 0);
    let mut each = |solved: &SolvedStep, _: &StepStats| {
        let known = s.linearize_in(solved, &mut w).expect("regular");
        if known.fallbacks == 0 || singular > 0 {
            return;
        }
        let solve = |d: &Inputs| {
            let mut at = solved.at;
            at.h += d.h;
            at.h_prev += d.h_prev;
            let mut x = solved.x.to_vec();
            assert!(s.displace(solved.x, &d.x, &mut x));
            let p: Vec<_> = solved.p.iter().zip(&d.p).map(|(p, d)| p + d).collect();
            let (mut to, mut y) = (x.clone(), solved.y.to_vec());
            s.step(&at, &x, &[], &p, &mut s.work(), &mut to, &mut y)?;
            let mut out = vec![0.0; s.dims().nf];
            s.separation(solved.next, &to, &mut out);
            Ok::<_, StepError>(out)
        };
        // steps so close to where friction turns have no differences
        let beside = |i: usize, e: f64| {
            let mut d = s.dims().inputs();
            d.x[i] = e;
            solve(&d).is_ok()
        };
        if !(0..s.dims().nf).all(|i| beside(i, -APART) && beside(i, APART)) {
            return;
        }
        singular += 1;
        let outcome = |d: &Inputs| solve(d).expect("solved");
        let mut adjoint = some_adjoint(&s);
        adjoint.y.fill(0.0);
        hold(
            &s,
            solved,
            &adjoint,
            |i| match i < s.dims().nf {
                true => Against::Differences,
                false => Against::Nothing,
            },
            1e-7,
            (APART, 1e-4),
            outcome,
        );
    };
    for height in HEIGHTS {
        moved(&s, height, 61, &mut each);
    }
    assert!(singular > 0, "no recursion was singular");
}
