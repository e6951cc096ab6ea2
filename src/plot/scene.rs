//! What of a recording goes into the picture of the mechanism: which instants, lines, dots and path.

use super::axis::drawable;
use super::project::fixed;
use crate::format::recording::{Contact, Force, Recording};

/// Instants shown.
const INSTANTS: usize = 14;
/// A place that is the same in a body at all knots is to this, m.
const FIXED: f64 = 1e-6;
/// More paths than this would not be read.
const MOST_FEET: usize = 4;
/// A line of more points than this is thinned.
const LINE_POINTS: usize = 500;

pub(super) type BodyLine = (usize, Vec<[f64; 3]>);
pub(crate) type BodyDot = (usize, [f64; 3]);

/// Lines and dots of the bodies; where there are none, the bodies themselves are dots.
pub(super) fn geometry(recording: &Recording) -> (Vec<BodyLine>, Vec<BodyDot>) {
    let moving = recording
        .lines
        .iter()
        .filter_map(|l| Some((l.body?, &l.points)));
    let thin = |points: &Vec<[f64; 3]>| -> Vec<[f64; 3]> {
        let stride = points.len().div_ceil(LINE_POINTS).max(1);
        let rest = points.len() % stride != 1 && stride > 1;
        points
            .iter()
            .step_by(stride)
            .chain(points.last().filter(|_| rest))
            .copied()
            .collect()
    };
    let count = recording.poses.iter().map(Vec::len).max().unwrap_or(0);
    let lines: Vec<BodyLine> = moving
        .map(|(b, points)| (b, thin(points)))
        .filter(|l| l.0 < count)
        .collect();
    let joints = recording
        .dots
        .iter()
        .filter_map(|d| Some((d.body?, d.point)))
        .filter(|d| d.0 < count);
    let mut dots: Vec<BodyDot> = joints.collect();
    if lines.iter().all(|l| l.1.is_empty()) && dots.is_empty() {
        dots = (0..count).map(|b| (b, [0.0; 3])).collect();
    }
    (lines, dots)
}

/// The point of the last body that travels farthest, if it moves: its center of mass, a joint, or the other end of a line
/// from one of these; or else any point of its outlines.
fn tip(
    lines: &[BodyLine],
    dots: &[BodyDot],
    travel: impl Fn(usize, [f64; 3]) -> f64,
) -> Option<BodyDot> {
    let last = lines
        .iter()
        .map(|l| l.0)
        .chain(dots.iter().map(|d| d.0))
        .max()?;
    let of_last = || lines.iter().filter(|l| l.0 == last);
    let mut points: Vec<[f64; 3]> = dots.iter().filter(|d| d.0 == last).map(|d| d.1).collect();
    points.push([0.0; 3]);
    let known = points.len();
    for [a, b] in of_last().filter_map(|l| Some([*l.1.first()?, *l.1.last()?])) {
        let ends = [(a, b), (b, a)].into_iter();
        points.extend(
            ends.filter(|e| points[..known].contains(&e.0))
                .map(|e| e.1)
                .collect::<Vec<_>>(),
        );
    }
    let farthest = |points: Vec<[f64; 3]>| {
        let lengths = points.into_iter().map(|p| (travel(last, p), (last, p)));
        let moving = lengths.filter(|(length, _)| *length > 0.0);
        let longest = moving.max_by(|a, b| a.0.total_cmp(&b.0));
        longest.map(|(_, point)| point)
    };
    farthest(points).or_else(|| farthest(of_last().flat_map(|l| l.1.iter().copied()).collect()))
}

/// Feet: of bodies with a single contact on the ground the point that carries it, or the center of mass where that rolls, as
/// a wheel's or a ball's does.
pub(super) fn feet(recording: &Recording) -> Vec<BodyDot> {
    let on_ground = |body: usize| {
        let all = recording.contacts.iter();
        all.filter(|c| c.parent.is_none() && c.child == body)
            .count()
    };
    let alone = recording.contacts.iter().filter(|c| {
        let carries = !c.forces.is_empty();
        carries && c.parent.is_none() && on_ground(c.child) == 1
    });
    let foot = |c: &Contact| {
        let own = |f: &Force| fixed(recording, f.knot, c.child, f.point);
        let first = own(c.forces.first()?)?;
        let stays = |f: &Force| own(f).is_some_and(|p| (p - first).amax() < FIXED);
        let point = match c.forces.iter().all(stays) {
            true => first.into(),
            false => [0.0; 3],
        };
        Some((c.child, point))
    };
    alone.filter_map(foot).take(MOST_FEET).collect()
}

/// Points of bodies whose paths tell most: feet, or else the [`tip`].
pub(crate) fn traced(
    recording: &Recording,
    travel: impl Fn(usize, [f64; 3]) -> f64,
) -> Vec<BodyDot> {
    let feet = feet(recording);
    if !feet.is_empty() {
        return feet;
    }
    let (lines, dots) = geometry(recording);
    tip(&lines, &dots, travel).into_iter().collect()
}

/// Knots nearest to evenly spaced times, first and last among them.
pub(super) fn instants(time: &[f64]) -> Vec<usize> {
    let last = time.len().saturating_sub(1);
    let ordered =
        time.windows(2).all(|w| w[0] <= w[1]) && time.iter().all(|t| drawable(*t).is_some());
    let nearest = |i: usize| {
        let share = i as f64 / (INSTANTS - 1) as f64;
        if !ordered {
            return (share * last as f64).round() as usize;
        }
        let goal = time[0] + share * (time[last] - time[0]);
        let after = time.partition_point(|t| *t < goal).min(last);
        let before = after.saturating_sub(1);
        if goal - time[before] < time[after] - goal {
            before
        } else {
            after
        }
    };
    let mut found: Vec<usize> = if time.is_empty() {
        Vec::new()
    } else {
        (0..INSTANTS).map(nearest).collect()
    };
    if let Some(end) = found.last_mut() {
        *end = last;
    }
    found.dedup();
    found
}
