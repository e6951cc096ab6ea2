//! A mechanism that is stepped.

use super::super::{Maximal, Options};
use crate::dynamics::{Knot, Step, StepStats};
use crate::mechanism::MechanismBuilder;

pub(super) struct Run {
    pub system: Maximal,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub w: super::super::Work,
    pub h: f64,
    pub k: usize,
    pub u: Vec<f64>,
    pub stats: StepStats,
}

impl Run {
    pub fn new(b: &MechanismBuilder, q: &[f64], rates: &[f64], h: f64, options: Options) -> Self {
        let m = b.build().expect("a mechanism");
        let system = Maximal::new(m, q, options).expect("a system");
        let d = Step::dims(&system);
        let mut w = Step::work(&system);
        let mut x = vec![0.0; d.nx];
        system
            .initial(q, rates, &system.nominal, &mut w, &mut x)
            .expect("a start");
        Self {
            system,
            x,
            y: vec![0.0; d.ny],
            w,
            h,
            k: 0,
            u: vec![0.0; d.nu],
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
            .step(
                &at,
                &self.x,
                &self.u,
                &self.system.nominal,
                &mut self.w,
                &mut next,
                &mut self.y,
            )
            .unwrap_or_else(|e| panic!("{e}"));
        self.x = next;
        self.k += 1;
    }
}
