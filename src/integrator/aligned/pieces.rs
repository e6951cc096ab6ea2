//! The step: how it is split.

use super::{Aligned, AlignedWork, MOST, SHORTEST, Strikes, TOUCHING, open_again};
use crate::contact::{Gap, Told, Touching};
use crate::dynamics::{Knot, KnotPoint, StepError, StepStats};

/// Gap that counts as closed, m or rad: the rounding of positions of some ten metres.
const CLOSED: f64 = 1e-15;
/// Overlap, m or rad, at an instant found that no approach explains: what shapes may enter each other by.
const JUMP: f64 = 1e-9;
/// Evaluations of a gap in the search for its instant at most: parabolas take some five, and every fourth halves the bracket, which
/// leaves nothing of it after so many.
const SEARCH: usize = 4 * 53;
/// Halvings of an interval in search of a time at which what flies off is off.
const HALVINGS: usize = 40;

/// Where a piece ends.
enum End {
    /// Where the interval does.
    Knot,
    /// So long after its start, with what then strikes, the first of it by number.
    Strike(f64, usize),
}

/// What an attempt at a piece shows, by what is to be done first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    /// Nothing comes through.
    Nothing,
    /// Something does, at an instant to be found.
    Through,
    /// Something rests from the start.
    Rests,
    /// Something strikes at the start.
    Strikes,
}

impl<S: Strikes> Aligned<S> {
    pub(super) fn solve_pieces(
        &self,
        at: &Knot,
        (x, u, p): (&[f64], &[f64], &[f64]),
        w: &mut AlignedWork<S::Work>,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        let ny = self.inner_dims.ny;
        w.spare.y.copy_from_slice(self.slot(y, self.count(y) - 1));
        y.fill(0.0);
        let mut piece = self.knot(at, x);
        let first = KnotPoint {
            at: piece,
            x,
            u,
            p,
            y: &[],
        };
        self.inner.at_rest(&first, &mut w.own, &mut w.how)?;
        w.struck.fill(0.0);
        let mut stats = StepStats::default();
        let mut n = 0;
        loop {
            let (own, end) = self.solve_piece(n, &piece, at.h, &first, w)?;
            stats = stats.then(&own);
            w.lengths[n] = match end {
                End::Knot => piece.h,
                End::Strike(tau, _) => tau,
            };
            y[ny * n..ny * (n + 1)].copy_from_slice(&w.unknowns[n]);
            y[self.length(n)] = w.lengths[n];
            n += 1;
            match end {
                End::Knot => break,
                End::Strike(tau, element) => {
                    y[self.struck(n - 1)] = element as f64;
                    piece = Knot {
                        k: at.k,
                        t: piece.t + tau,
                        h_prev: tau,
                        h: piece.h - tau,
                    };
                    w.spare.y.copy_from_slice(&w.unknowns[n - 1]);
                }
            }
        }
        y[self.counted()] = n as f64;
        stats.parts = n;
        open_again(&mut w.how);
        let end = KnotPoint {
            at: self.end(at, w.lengths[n - 1]),
            x: &w.between[n - 1],
            ..first
        };
        self.inner.settle(&end, &w.how, &mut w.own, next)?;
        Ok(stats)
    }

    /// Solves a piece, up to the first strike. The guess is in `w.spare.y`.
    fn solve_piece(
        &self,
        n: usize,
        piece: &Knot,
        interval: f64,
        first: &KnotPoint,
        w: &mut AlignedWork<S::Work>,
    ) -> Result<(StepStats, End), StepError> {
        let mut all = StepStats::default();
        // what comes to rest does so where it was found
        let mut keeps = false;
        // every round either returns, or lets an element strike at the knot or touch that did not
        loop {
            let stats = self.attempt(n, piece, first, keeps, w)?;
            all = all.and(&stats);
            match self.look(n == MOST, interval, w) {
                Look::Through => {}
                Look::Rests => {
                    keeps = true;
                    continue;
                }
                Look::Strikes => {
                    keeps = false;
                    continue;
                }
                Look::Nothing => return Ok((all, End::Knot)),
            }
            let Some(tau) = self.instant(n, piece, first, w, &mut all)? else {
                self.touch_through(w);
                keeps = true;
                continue;
            };
            if piece.h - tau < SHORTEST * interval {
                // at the next knot
                all = all.and(&self.attempt(n, piece, first, true, w)?);
                return Ok((all, End::Knot));
            }
            let at_knot = tau < SHORTEST * interval;
            let Some(striking) = self.strike(tau, piece, interval, at_knot, w) else {
                keeps = !at_knot;
                continue;
            };
            return Ok((all, End::Strike(tau, striking)));
        }
    }

    /// Solves the piece as elements are to be treated, over its length; if it `keeps` what met in the last attempt, from there on.
    fn attempt(
        &self,
        n: usize,
        piece: &Knot,
        first: &KnotPoint,
        keeps: bool,
        w: &mut AlignedWork<S::Work>,
    ) -> Result<StepStats, StepError> {
        let (before, after) = w.between.split_at_mut(n);
        let (y, next) = (&mut w.unknowns[n], &mut after[0]);
        let places = self.inner.places();
        y[..places.start].copy_from_slice(&w.spare.y[..places.start]);
        y[places.end..].copy_from_slice(&w.spare.y[places.end..]);
        let told = Told {
            how: &w.how,
            struck: &w.struck,
            keeps,
        };
        let seen = KnotPoint {
            at: *piece,
            x: before.last().map_or(first.x, |x| x),
            ..*first
        };
        self.inner.step_told(&seen, &told, &mut w.own, next, y)
    }

    /// Looks at what came through in the attempt, and keeps it in `w.gaps`. What does so from the start is now treated otherwise, and so is
    /// what rolls on to another place of its own, which comes near too slowly to bounce.
    fn look(&self, is_last: bool, interval: f64, w: &mut AlignedWork<S::Work>) -> Look {
        let mut look = Look::Nothing;
        let each = w.how.iter_mut().zip(&mut w.struck).zip(&mut w.gaps);
        for (i, ((how, struck), seen)) in each.enumerate() {
            *seen = None;
            if *how == Touching::Touches {
                continue;
            }
            let gap = self.inner.gap_of(&w.own, i);
            if gap.end >= 0.0 {
                continue;
            }
            let strikes = gap.start <= TOUCHING && gap.approach >= 0.0;
            let is_slow = self.inner.would_rest(&w.own, i, gap.approach, interval);
            if is_last || strikes || gap.exchanged && is_slow {
                let rests = is_last || *how == Touching::Strikes || is_slow;
                let treated = if rests {
                    (Touching::Touches, Look::Rests)
                } else {
                    (Touching::Strikes, Look::Strikes)
                };
                (*how, look) = (treated.0, look.max(treated.1));
                *struck = self.inner.place_of(&w.own, i);
            } else {
                *seen = Some(gap);
                look = look.max(Look::Through);
            }
        }
        look
    }

    /// Lets touch what came through.
    fn touch_through(&self, w: &mut AlignedWork<S::Work>) {
        for (how, _) in w.how.iter_mut().zip(&w.gaps).filter(|(_, g)| g.is_some()) {
            *how = Touching::Touches;
        }
    }

    /// The first instant, from the start of the piece, at which one of the gaps in `w.gaps` is closed, which is that of the
    /// last attempt; none where what flies off does so for less than can be told from none, and where what meets jumps: `w.gaps` are then
    /// those of what comes through.
    fn instant(
        &self,
        n: usize,
        piece: &Knot,
        first: &KnotPoint,
        w: &mut AlignedWork<S::Work>,
        stats: &mut StepStats,
    ) -> Result<Option<f64>, StepError> {
        let mut least = |t: f64, w: &mut AlignedWork<S::Work>| {
            let short = Knot { h: t, ..*piece };
            *stats = stats.and(&self.attempt(n, &short, first, true, w)?);
            Ok::<_, StepError>(self.least(w))
        };
        let of = |of: fn(&Gap) -> f64, w: &AlignedWork<S::Work>| {
            let each = w.gaps.iter().flatten().map(of);
            each.fold(f64::INFINITY, f64::min)
        };
        let mut hi = (piece.h, of(|g| g.end, w));
        let mut lo = (0.0, of(|g| g.start, w));
        // what left its bracket last
        let mut third = None;
        if lo.1 <= TOUCHING {
            let mut t = piece.h;
            for _ in 0..HALVINGS {
                t *= 0.5;
                let gap = least(t, w)?;
                if gap > TOUCHING {
                    lo = (t, gap);
                    break;
                }
                hi = (t, gap);
            }
            if lo.0 == 0.0 {
                return Ok(None);
            }
        }
        let mut t = 0.0;
        for round in 1..=SEARCH {
            let guess = match third {
                _ if round % 4 == 0 => None,
                None => Some(lo.0 + (hi.0 - lo.0) * lo.1 / (lo.1 - hi.1)),
                Some(third) => root_of_parabola(lo, hi, third),
            };
            let guess = guess.filter(|t| *t > lo.0 && *t < hi.0);
            t = guess.unwrap_or(0.5 * (lo.0 + hi.0));
            let gap = least(t, w)?;
            let place = if gap >= 0.0 { &mut lo } else { &mut hi };
            third = Some(std::mem::replace(place, (t, gap)));
            if gap.abs() <= CLOSED {
                break;
            }
            if hi.0 - lo.0 <= 4.0 * f64::EPSILON * piece.h {
                if hi.1 < -JUMP {
                    // what comes through within nothing is another place of what touched until then
                    t = hi.0;
                    if least(t, w)? < -JUMP {
                        for i in 0..w.how.len() {
                            let gap = self.inner.gap_of(&w.own, i);
                            let comes = self.may_come(i, &gap, w) && gap.end < -JUMP;
                            w.gaps[i] = comes.then_some(gap);
                        }
                        return Ok(None);
                    }
                }
                break;
            }
        }
        Ok(Some(t))
    }

    /// May an element come through in the last attempt? What of it meets may be another than when it was looked at. What flies off from
    /// the other's surface does not.
    fn may_come(&self, i: usize, gap: &Gap, w: &AlignedWork<S::Work>) -> bool {
        let flies_off = gap.start <= TOUCHING && gap.approach < 0.0;
        w.how[i] != Touching::Touches && (w.gaps[i].is_some() || !flies_off)
    }

    /// The least gap in the last attempt of what may come through.
    fn least(&self, w: &AlignedWork<S::Work>) -> f64 {
        let each = (0..w.how.len()).map(|i| (i, self.inner.gap_of(&w.own, i)));
        let may = each.filter(|(i, gap)| self.may_come(*i, gap, w));
        may.map(|(_, gap)| gap.end).fold(f64::INFINITY, f64::min)
    }

    /// What strikes at the instant found: the first of it, and from here on it is told so. None where the piece is to be solved
    /// again instead, since something comes to rest then, or since the instant is that of the knot at which it starts.
    fn strike(
        &self,
        tau: f64,
        piece: &Knot,
        interval: f64,
        at_knot: bool,
        w: &mut AlignedWork<S::Work>,
    ) -> Option<usize> {
        let least = self.least(w);
        // how fast it comes near then, by the parabola through the three gaps
        let rest = piece.h - tau;
        let mut rests = false;
        for i in 0..w.how.len() {
            let now = self.inner.gap_of(&w.own, i);
            if !self.may_come(i, &now, w) || now.end > least + TOUCHING {
                w.gaps[i] = None;
                continue;
            }
            let before = (now.start - now.end) / tau;
            let approach = match w.gaps[i] {
                Some(gap) if gap.start == now.start => {
                    let after = (now.end - gap.end) / rest;
                    (before * rest + after * tau) / piece.h
                }
                // of what was exchanged meanwhile no later gap is known
                _ => before,
            };
            w.gaps[i] = Some(now);
            let again = at_knot && w.how[i] == Touching::Strikes;
            if again || self.inner.would_rest(&w.own, i, approach, interval) {
                w.how[i] = Touching::Touches;
                rests = true;
            }
        }
        if rests {
            return None;
        }
        if !at_knot {
            open_again(&mut w.how);
        }
        let mut first = None;
        for (i, how) in w.how.iter_mut().enumerate() {
            if w.gaps[i].is_some() {
                *how = Touching::Strikes;
                w.struck[i] = self.inner.place_of(&w.own, i);
                first = first.or(Some(i));
            }
        }
        first.filter(|_| !at_knot)
    }
}

/// The root between the first two of three points on a parabola, where it has one.
fn root_of_parabola(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> Option<f64> {
    // divided differences at b
    let slope = |p: (f64, f64), q: (f64, f64)| (q.1 - p.1) / (q.0 - p.0);
    let (ab, bc) = (slope(a, b), slope(b, c));
    let curvature = (bc - ab) / (c.0 - a.0);
    let rate = ab + curvature * (b.0 - a.0);
    let under = rate * rate - 4.0 * curvature * b.1;
    let size = rate.abs() + under.max(0.0).sqrt();
    let t = b.0 - 2.0 * b.1 / (size * rate.signum());
    (under >= 0.0 && t.is_finite()).then_some(t)
}
