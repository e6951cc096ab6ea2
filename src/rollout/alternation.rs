//! Controls that go up and down from step to step: feedback that is unstable at its time step, also where stops, the ground or limits of
//! effort bound its motion.

use super::Trajectory;

/// Changes of a control, each opposite to the one before, that show instability if they do not decay. Landings make stable servos ring
/// for up to a dozen steps.
const ALTERNATIONS: usize = 16;
/// Share of the largest change in their first half that the largest in their second half exceeds: a limit cycle decays slowly, if at all.
const LASTS: f64 = 0.9;
/// Least of these changes, as a share of the control's largest size among them: smaller ones do not matter.
const FELT: f64 = 1e-2;

/// A control that alternates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternation {
    /// Which.
    pub control: usize,
    /// Knot of the first control of these.
    pub from: usize,
    /// Knot of the last.
    pub to: usize,
}

impl Trajectory {
    /// The longest time in which a control alternates from step to step and does not settle. A stable servo's changes decay. Changes up to
    /// `rounding` (N or N m) are none.
    pub fn alternation(&self, rounding: f64) -> Option<Alternation> {
        let all = (0..self.nu).filter_map(|i| self.alternation_of(i, rounding));
        // of equal ones the first
        all.rev().max_by_key(|a| a.to - a.from)
    }

    fn alternation_of(&self, control: usize, rounding: f64) -> Option<Alternation> {
        let u: Vec<f64> = (0..self.steps())
            .map(|k| self.control(k)[control])
            .collect();
        let changes: Vec<f64> = u.windows(2).map(|u| u[1] - u[0]).collect();
        let most = |part: &[f64]| part.iter().fold(0.0_f64, |most, c| most.max(c.abs()));
        let goes_on = |part: &[f64], own: &[f64]| {
            let (early, late) = part.split_at(part.len() / 2);
            most(late) > LASTS * most(early) && most(late) > (FELT * most(own)).max(rounding)
        };
        let mut longest = None;
        let mut from = 0;
        for part in changes.chunk_by(|a, b| a * b < 0.0) {
            let to = from + part.len();
            let is_longer = longest.is_none_or(|a: Alternation| to - from > a.to - a.from);
            let own = u[from..].windows(ALTERNATIONS + 1);
            let mut each = part.windows(ALTERNATIONS).zip(own);
            if is_longer && each.any(|(part, own)| goes_on(part, own)) {
                longest = Some(Alternation { control, from, to });
            }
            from = to;
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(controls: impl Iterator<Item = f64>) -> Option<Alternation> {
        let u: Vec<f64> = controls.collect();
        let t = Trajectory {
            time: 0.0,
            before: 0.0,
            intervals: vec![0.01; u.len()],
            x: vec![],
            u,
            y: vec![],
            p: vec![],
            nx: 0,
            nu: 1,
            ny: 0,
        };
        t.alternation(1e-9)
    }

    fn turns(k: usize) -> f64 {
        if k.is_multiple_of(2) { 1.0 } else { -1.0 }
    }

    /// Growth, a limit, and a limit of uneven size are found with their knots; decay, and few steps, are not.
    #[test]
    fn what_does_not_settle_is_found() {
        let whole = Some(Alternation {
            control: 0,
            from: 0,
            to: 39,
        });
        assert_eq!(of((0..40).map(|k| turns(k) * 1.2f64.powi(k as i32))), whole);
        assert_eq!(of((0..40).map(turns)), whole);
        let uneven = |k: usize| turns(k) * (1.0 + 0.3 * (k as f64).sin());
        assert_eq!(of((0..40).map(uneven)), whole);
        for ratio in [0.5, 0.9, 0.98] {
            assert_eq!(
                of((0..80).map(|k| turns(k) * f64::powf(ratio, k as f64))),
                None
            );
        }
        assert_eq!(of((0..ALTERNATIONS).map(turns)), None);
        assert_eq!(of((0..200).map(|k| (0.3 * k as f64).sin())), None);
        assert_eq!(of((0..100).map(|k| 1.0 + 1e-3 * turns(k))), None);
        assert_eq!(of((0..100).map(|k| 1e-12 * turns(k))), None);
        let late = |k: usize| if k < 50 { 0.0 } else { turns(k) };
        let found = of((0..100).map(late)).expect("from knot 50 on");
        assert_eq!((found.from, found.to), (49, 99));
        assert_eq!(of([].into_iter()), None);
    }
}
