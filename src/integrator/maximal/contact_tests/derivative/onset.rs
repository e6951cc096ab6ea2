//! Derivatives by friction that is zero.

use super::super::super::Options;
use super::super::super::tests::difference;
use super::super::Run;
use super::scenes::scenes;
use crate::contact::{Cone, ContactOptions};
use crate::dynamics::Differentiable;

/// Friction that is a parameter and 0 has Coulomb's one-sided derivative.
#[test]
fn friction_of_zero_has_its_derivative_from_above() {
    let options = |cone, central_path| {
        let contact = ContactOptions {
            cone,
            central_path,
            warm: false,
            centred: 1e-8,
            ..ContactOptions::default()
        };
        Options {
            tolerance: 1e-13,
            contact,
            ..Options::default()
        }
    };
    let wanted = [
        "ball flying",
        "ball on impact",
        "box sliding",
        "sphere on sphere",
    ];
    // the path rounds a pyramid more: by the facets beside the steepest
    let cones = [
        (Cone::SecondOrder, 1e-9, 1e-6),
        (Cone::Linearized(8), 1e-9, 5e-5),
    ];
    for (cone, kappa, tolerance) in cones {
        for (name, mut b, q, rates, _, steps) in scenes() {
            if !wanted.contains(&name) {
                continue;
            }
            let built = b.build().expect("valid");
            let (mut fields, path) = (built.fields(), ".friction");
            fields.retain(|(p, _)| p.ends_with(path));
            fields.iter().for_each(|(_, f)| b.set(&built, *f, 0.0));
            let paths: Vec<&str> = fields.iter().map(|(p, _)| p.as_str()).collect();
            let mut r = Run::new(
                &b.parameter("mu", &paths),
                &q,
                &rates,
                0.01,
                options(cone, kappa),
            );
            (0..steps).for_each(|_| r.step());
            let d = r.system.dims();
            let after = |mu: f64| {
                let mut inputs = d.inputs();
                inputs.p[0] = mu;
                r.stepped(&r.changed(&inputs))
            };
            let here = r.changed(&d.inputs());
            let zero = after(0.0);
            let (mut w, mut out) = (r.system.work(), d.outputs());
            let linearized = r.system.linearize_in(&here.solved(&zero), &mut w);
            linearized.expect("regular");
            let mut input = d.inputs();
            input.p[0] = 1.0;
            r.system.push_in(&mut w, &input, &mut out);
            // without the value at zero: next to it the path rounds by a constant, kappa/(2 |eta|)
            let off = |e: f64| {
                let at = [e, 2.0 * e, 3.0 * e].map(|e| difference(&r.system, &zero.0, &after(e).0));
                let slope = |i| (8.0 * at[1][i] - 5.0 * at[0][i] - 3.0 * at[2][i]) / (2.0 * e);
                let off = out.x.iter().enumerate().map(|(i, x)| (x - slope(i)).abs());
                off.fold(0.0, f64::max)
            };
            let off = off(3e-4).min(off(1e-4));
            let size = out.x.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            eprintln!("{cone:?} {name}: {size:.1e}, off {off:.1e}");
            assert!(off < tolerance, "{cone:?} {name}: {off:e} of {size:e}");
            assert_eq!(size > 0.05, name != "ball flying", "{name}: {size:e}");
        }
    }
}
