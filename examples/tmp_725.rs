#[path = "common/cranks.rs"]
#[allow(dead_code)]
mod cranks;
use cranks::*;
use least_action::dynamics::Step;
use least_action::integrator::Mechanical;
use least_action::rollout::*;
fn main() {
    let steps: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let h = 10.0 / steps as f64;
    let (s, x0) = turning(
        Linkage {
            parallelograms: 2,
            bars_are_parents: true,
        },
        0.0,
        1.0,
    )
    .unwrap();
    let mut w = s.work();
    let mut t = Trajectory::new(&s, vec![h; steps], &x0);
    let mut st = RolloutStats::default();
    let r = t.roll(&s, &mut w, &mut st);
    println!("{r:?} {st:?}");
    t.truncate(st.steps);
    let steps = st.steps;
    let b = balance(&s, &t, &mut w).unwrap();
    let mut last = 0.0;
    for k in 0..=steps {
        let e = b.error(k);
        let poses = s.poses(t.state(k));
        if (e - last as f64).abs() > 0.02 {
            println!(
                "{k} t={:.4} error {e:.5} sin {:.3e} cos {:.3}",
                k as f64 * h,
                poses[0].x.x,
                poses[0].x.z
            );
        }
        last = e;
    }
}
