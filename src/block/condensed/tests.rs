use super::{Condensed, Determined};
use crate::block::tests::Random;
use crate::block::{Inertia, Symmetric};

fn unit(r: &mut Random) -> f64 {
    r.below(2_000_001) as f64 / 1e6 - 1.0
}

struct Chain {
    entries: Vec<(usize, usize)>,
    values: Vec<f64>,
    blocks: Vec<Determined>,
    group: Vec<usize>,
}

/// Stages of a state (some of it determined by rows), of a copy of it that rows make of this state and the last one, and of
/// two variables of its own; everything else is coupled at random, and the last rows of stages may depend on others, with that shift.
fn chain(r: &mut Random, stages: usize, (n, m): (usize, usize), shift: Option<f64>) -> Chain {
    let dependent = shift.is_some();
    let size = 2 * n + m + n + 2;
    let (mut entries, mut values, mut blocks, mut group) = (vec![], vec![], vec![], vec![]);
    let mut set = |i: usize, j: usize, v: f64| {
        entries.push((i, j));
        values.push(v);
    };
    let states = |k: usize| (0..n).map(move |i| k * size + i);
    for k in 0..stages {
        let rows = k * size + n..k * size + n + m;
        let copies = rows.end..rows.end + n;
        let ties = copies.end..copies.end + n;
        let own = ties.end..(k + 1) * size;
        let all: Vec<usize> = states(k).chain(copies.clone()).chain(own).collect();
        for (p, &i) in all.iter().enumerate() {
            set(i, i, 3.0 * unit(r));
            for &j in &all[..p] {
                if r.below(3) == 0 {
                    set(i, j, unit(r));
                }
            }
        }
        if k > 0 {
            for j in states(k - 1) {
                set(copies.start, j, unit(r));
            }
        }
        let mut last = vec![];
        for (p, row) in rows.clone().enumerate() {
            let of: Vec<f64> = states(k).map(|_| unit(r)).collect();
            let of = if dependent && p + 1 == m { last } else { of };
            states(k).zip(&of).for_each(|(j, v)| set(row, j, *v));
            last = of;
        }
        for (row, copy) in ties.clone().zip(copies.clone()) {
            set(row, copy, 1.0 + 0.3 * unit(r));
            states(k).for_each(|j| set(row, j, unit(r)));
            if k > 0 {
                states(k - 1).for_each(|j| set(j, row, unit(r)));
            }
        }
        if let Some(shift) = shift {
            set(rows.end - 1, rows.end - 1, -shift);
        }
        blocks.push(Determined {
            zero: rows.collect(),
            among: states(k).collect(),
            stage: k,
        });
        for (row, copy) in ties.zip(copies) {
            blocks.push(Determined {
                zero: vec![row],
                among: vec![copy],
                stage: k,
            });
        }
        group.extend(std::iter::repeat_n(k, size));
    }
    // something that all see, as time
    let time = stages * size;
    for i in 0..=time {
        if i == time || r.below(2) == 0 {
            set(time, i, unit(r));
        }
    }
    group.push(stages);
    Chain {
        entries,
        values,
        blocks,
        group,
    }
}

/// Those that are there in every pass go first: blocks that others see. Was it singular?
fn solved_as_by_fronts(seed: u64, shift: Option<f64>) -> bool {
    let dependent = shift.is_some();
    let r = &mut Random(seed);
    let (stages, n) = (1 + r.below(5), 2 + r.below(5));
    let m = 2 + r.below(n - 1);
    let mut c = chain(r, stages, (n, m.min(n)), shift);
    let mut whole = Symmetric::new(&c.entries, &c.group);
    let states = c.blocks.iter().filter(|b| b.among.len() > 1);
    let copies = c.blocks.iter().filter(|b| b.among.len() == 1);
    let blocks: Vec<Determined> = states.chain(copies).cloned().collect();
    let mut s = Condensed::new(&c.entries, &c.values, &blocks, &c.group).unwrap();
    let determined = s.without_diagonal().count();
    assert_eq!(determined, stages * (n + m.min(n) - usize::from(dependent)));
    assert_eq!(s.inner.dim() + 2 * determined, c.group.len());
    // shifted by its own entries alone, then all other
    for is_shifted in [false, true, false, true] {
        let expected = whole.factor(&c.values, 0.1).unwrap();
        let found = if is_shifted {
            s.factor_shifted(&c.values, 0.1)
        } else {
            s.factor(&c.values, 0.1)
        };
        assert_eq!(found, Some(expected), "seed {seed}");
        if expected.zero > 0 {
            return true;
        }
        let b: Vec<f64> = c.group.iter().map(|_| unit(r)).collect();
        let (mut x, mut y) = (b.clone(), b);
        whole.solve(&mut x);
        s.solve(&mut y);
        let error = x.iter().zip(&y).fold(0.0_f64, |e, (x, y)| {
            e.max((x - y).abs() / (1.0 + x.abs().max(y.abs())))
        });
        assert!(error < 1e-7, "seed {seed}: {error:.1e}");
        if !dependent {
            for (v, (i, j)) in c.values.iter_mut().zip(&c.entries) {
                let change = if i == j { 2.0 } else { 0.05 };
                if is_shifted || i == j {
                    *v *= 1.0 + change * unit(r);
                }
            }
        }
    }
    false
}

#[test]
fn solutions_and_inertia_are_those_of_the_whole() {
    assert!(!(0..60).any(|seed| solved_as_by_fronts(seed, None)));
}

#[test]
fn rows_that_depend_on_others_are_kept() {
    assert!(!(0..60).any(|seed| solved_as_by_fronts(seed, Some(1e-3))));
    // without a shift nothing but rounding is left of some
    let singular = (0..60).filter(|seed| solved_as_by_fronts(*seed, Some(0.0)));
    assert!(singular.count() >= 5);
}

#[test]
fn blocks_that_are_none_are_left_out() {
    // 2 and 3 are rows of 0 and 1; 4 sees itself through 5, which is a row of another
    let entries = [(0, 0), (1, 1), (2, 0), (3, 1), (3, 2), (4, 4), (5, 4)];
    let values = [1.0, 2.0, 1.0, 1.0, 0.5, 1.0, 1.0];
    let of = |zero: &[usize], among: &[usize]| Determined {
        zero: zero.to_vec(),
        among: among.to_vec(),
        stage: 0,
    };
    let group = [0, 1, 2, 3, 4, 5];
    let coupled = of(&[2, 3], &[0, 1]);
    assert!(Condensed::new(&entries, &values, &[coupled], &group).is_none());
    let blocks = [of(&[2], &[0]), of(&[3], &[1]), of(&[5], &[4])];
    let mut s = Condensed::new(&entries, &values, &blocks, &group).unwrap();
    // the second sees the first one's row
    assert_eq!(s.without_diagonal().collect::<Vec<_>>(), [2, 5]);
    let inertia = s.factor(&values, 0.1).unwrap();
    let all = Inertia {
        positive: 3,
        negative: 3,
        zero: 0,
    };
    assert_eq!(inertia, all);
    // a pivot that has gone
    assert_eq!(s.factor(&[1.0, 2.0, 0.0, 1.0, 0.5, 1.0, 1.0], 0.1), None);
}
