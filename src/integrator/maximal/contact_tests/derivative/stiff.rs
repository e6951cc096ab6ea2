//! Derivatives through contacts as stiff as they are by default.

use super::super::super::Options;
use super::super::Run;
use super::scenes::{scenes, tuned};
use crate::contact::{ContactOptions, Impacts, UNKNOWNS};
use crate::dynamics::Differentiable;
use crate::integrator::Mechanical;
use crate::mechanism::samples::Source;

/// Pushes and pulls are one linear map, to far more digits than eliminated contacts leave, and
/// the pulls' residual says so.
#[test]
fn stiff_contacts_take_no_digits() {
    let mut stiffest = 0.0_f64;
    let contact = ContactOptions {
        impacts: Some(Impacts::Knots),
        warm: false,
        ..ContactOptions::default()
    };
    let options = Options {
        contact,
        ..Options::default()
    };
    for (name, b, q, rates, u, steps) in scenes() {
        let mut r = Run::new(&tuned(b), &q, &rates, 0.01, options);
        r.u = u;
        for _ in 0..steps {
            r.step();
        }
        let d = r.system.dims();
        let here = r.changed(&d.inputs());
        let after = r.stepped(&here);
        for own in after.1[r.system.symbolic.dim()..].chunks_exact(UNKNOWNS) {
            stiffest = stiffest.max(own[1] / own[0]);
        }
        let mut w = r.system.work();
        r.system.certify(&mut w);
        let linearized = r.system.linearize_in(&here.solved(&after), &mut w);
        linearized.expect("regular");
        let mut source = Source::new(4);
        let mut fill = |v: &mut [f64]| v.iter_mut().for_each(|v| *v = source.unit());
        let (mut input, mut adjoint) = (d.inputs(), d.outputs());
        fill(&mut input.x);
        fill(&mut input.u);
        fill(&mut input.p);
        fill(&mut adjoint.x);
        let (mut output, mut back) = (d.outputs(), d.inputs());
        r.system.push_in(&mut w, &input, &mut output);
        r.system.pull_in(&mut w, &adjoint, &mut back);
        let products = |a: &[f64], b: &[f64]| -> (f64, f64) {
            let each = a.iter().zip(b).map(|(a, b)| a * b);
            (each.clone().sum(), each.map(f64::abs).sum())
        };
        let forward = products(&adjoint.x, &output.x);
        let reverse = [
            products(&back.x, &input.x),
            products(&back.u, &input.u),
            products(&back.p, &input.p),
        ];
        let sum: f64 = reverse.iter().map(|r| r.0).sum();
        let size = reverse.iter().fold(forward.1, |m, r| m.max(r.1));
        let off = (forward.0 - sum).abs() / size;
        let left = r.system.linear_residual(&w).expect("asked for");
        eprintln!("{name}: {off:.1e}, residual {left:.1e}");
        // seven contacts of one end, or four, are more than what they hold moves in
        let limit = match name {
            "box slapping the end of a cylinder" => 1e-6,
            // points of a rim that are a tenth of a radian apart carry almost as one
            "coin that comes to lie" => 1e-8,
            "cylinder on cylinder" => 1e-10,
            // its limits are scaled by the mass that the arm has along the joint, which is ten times that of two bodies
            "arm bouncing off the floor" => 1e-11,
            _ => 1e-12,
        };
        assert!(off < limit && left < limit, "{name}: {off:.1e} {left:.1e}");
    }
    // eliminated, they would leave 1e-6
    assert!(stiffest > 1e10, "{stiffest:e}");
}
