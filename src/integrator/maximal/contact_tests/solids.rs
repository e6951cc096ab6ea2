//! Boxes that fall on edges of boxes: derivatives of steps that exchange what meets are those of the motion.

use super::Run;
use super::derivative::step_error;
use crate::integrator::Options;
use crate::mechanism::samples::Source;
use crate::mechanism::{BodySpec, ContactSpec, MechanismBuilder, Shape, TerrainShape, TerrainSpec};

/// A box above the edge of another.
fn thrown(seed: u64) -> Run {
    let s = &mut Source::new(seed);
    let contact = ContactSpec::new(0.5).group("bodies", &["ground"]);
    let body = BodySpec::new(1.0)
        .shape(Shape::Box([0.13, 0.18, 0.07]))
        .free()
        .contact("all", contact);
    let block = TerrainSpec::new(TerrainShape::Box([0.32, 0.16, 0.2]), 0.5);
    let m = MechanismBuilder::new()
        .body("one", body)
        .terrain("block", block);
    let [x, y, _] = s.array3();
    let [a, b, c] = s.array3();
    let [u, v, w] = s.array3();
    let q = [0.16 + 0.03 * x, 0.08 * y, 0.25, 2.0 * a, 2.0 * b, 2.0 * c];
    let rates = [0.5 * u, 0.5 * v, w - 1.0, 5.0 * a, 5.0 * c, 5.0 * b];
    Run::new(&m, &q, &rates, 0.01, Options::default())
}

#[test]
fn derivatives_of_exchanges_match_differences() {
    let mut errors = vec![];
    for seed in 0..400 {
        let mut run = thrown(seed);
        for _ in 0..25 {
            let (x, y, k) = (run.x.clone(), run.y.clone(), run.k);
            run.step();
            if !run.exchanged() {
                continue;
            }
            let after = (run.x.clone(), run.y.clone(), run.k);
            (run.x, run.y, run.k) = (x, y, k);
            errors.push((step_error(&mut run), seed, k));
            (run.x, run.y, run.k) = after;
        }
    }
    println!("{errors:?}");
    assert!(errors.len() > 4, "{errors:?}");
    assert!(errors.iter().all(|e| e.0 < 1e-6), "{errors:?}");
}
