//! Random boxes, chains and walkers dropped on tilted ground.

use super::drops::{Outcome, Summary, outcomes};
use least_action::dynamics::StepFailure;

fn hold(outcomes: &[Outcome], allowed: f64) {
    let s = Summary::of(outcomes.iter());
    println!("{}\n{s}", Summary::HEAD);
    for (seed, o) in outcomes.iter().enumerate() {
        assert!(o.end.iter().all(|x| x.is_finite()), "drop {seed}");
        if let Some(e) = &o.failure {
            println!("drop {seed}: {e}");
            let named = [
                StepFailure::Domain,
                StepFailure::NotConverged,
                StepFailure::Singular,
            ];
            assert!(named.contains(&e.failure) && !e.element.is_empty(), "{e}");
        }
    }
    assert!(s.lowest > -1e-9, "{:e}", s.lowest);
    let unsolved = s.unsolved as f64 / s.drops as f64;
    assert!(unsolved <= allowed, "{} of {}", s.unsolved, s.drops);
    assert!(s.quantile(0.5) <= 9 && s.quantile(0.99) <= 20, "{s}");
}

#[test]
fn random_drops_are_solved() {
    hold(&outcomes(0..300), 0.01);
}

/// `cargo test --release --test contact -- --ignored --nocapture`, some minutes.
#[test]
#[ignore = "long"]
fn ten_thousand_random_drops_are_solved() {
    hold(&outcomes(0..10_000), 0.002);
}

#[test]
fn drops_are_the_same_on_any_number_of_threads() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        let all = pool.install(|| outcomes(0..16));
        let bits = |o: &Outcome| o.end.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        all.iter().map(bits).collect::<Vec<_>>()
    };
    let alone = run(1);
    assert!(alone == run(2) && alone == run(5));
}
