//! Closed forms of contact and friction.

use super::super::{Maximal, Options};
use crate::dynamics::{Dynamics, Knot, StepStats};
use crate::mechanism::{BodySpec, ContactSpec, HalfSpaceSpec, MechanismBuilder, Shape};

pub(super) struct Run {
    pub system: Maximal,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub w: super::Work,
    pub h: f64,
    pub k: usize,
    stats: StepStats,
}

impl Run {
    pub fn new(b: &MechanismBuilder, q: &[f64], rates: &[f64], h: f64, options: Options) -> Self {
        let m = b.build().expect("a mechanism");
        let system = Maximal::new(m, q, options).expect("a system");
        let d = Dynamics::dims(&system);
        let mut w = Dynamics::work(&system);
        let mut x = vec![0.0; d.nx];
        system
            .initial(q, rates, &[], &mut w, &mut x)
            .expect("a start");
        Self {
            system,
            x,
            y: vec![0.0; d.ny],
            w,
            h,
            k: 0,
            stats: StepStats::default(),
        }
    }

    pub fn at(&self) -> Knot {
        Knot {
            k: self.k,
            t: self.k as f64 * self.h,
            h_prev: if self.k == 0 { 0.0 } else { self.h },
            h: self.h,
        }
    }

    pub fn step(&mut self) {
        let at = self.at();
        let mut next = self.x.clone();
        self.stats = self
            .system
            .step(&at, &self.x, &[], &[], &mut self.w, &mut next, &mut self.y)
            .unwrap_or_else(|e| panic!("{e}"));
        self.x = next;
        self.k += 1;
    }
}

pub(super) fn cube(mass: f64, mu: f64) -> MechanismBuilder {
    let b = BodySpec::new(mass)
        .shape(Shape::Box([0.5; 3]))
        .free()
        .contact("corners", ContactSpec::new(mu));
    MechanismBuilder::new()
        .body("cube", b)
        .half_space("floor", HalfSpaceSpec::default())
}

#[test]
fn a_box_comes_to_rest() {
    for warm in [false, true] {
        for (mass, h) in [
            (0.01, 0.01),
            (1.0, 0.01),
            (100.0, 0.01),
            (1.0, 0.001),
            (1.0, 0.05),
        ] {
            let mut options = Options::default();
            options.contact.warm = warm;
            let mut r = Run::new(
                &cube(mass, 0.3),
                &[0.0, 0.0, 0.65, 0.0, 0.0, 0.0],
                &[0.0; 6],
                h,
                options,
            );
            let (mut its, mut max, mut least) = (0, 0, 1.0_f64);
            let n = (1.0 / h) as usize;
            for _ in 0..n {
                r.step();
                its += r.stats.iterations;
                max = max.max(r.stats.iterations);
                least = least.min(r.x[2] - 0.25);
            }
            let gap = r.x[2] - 0.25;
            eprintln!(
                "warm {warm} m {mass} h {h}: its {} max {max} least {least:e} gap {gap:e} ({:e}) v {:e}",
                its as f64 / n as f64,
                1e-9 * h,
                r.x[9]
            );
        }
    }
}
