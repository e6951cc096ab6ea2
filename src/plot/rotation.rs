//! Rotation vectors in figures: unwound where that keeps them smooth, quaternions where it does not.
//!
//! A rotation has many vectors, `u (a + 2 pi k)`; files hold the shortest, which jumps at half a turn. The one nearest to
//! that of the knot before is as smooth as the motion, unless it comes close to a whole turn, where axes are arbitrary.

use crate::format::recording::{Channel, Goal, Group};
use nalgebra::{UnitQuaternion, Vector3};
use std::borrow::Cow;
use std::f64::consts::TAU;

/// A vector may move so many times as far as the body turns: `(a/2)/sin(a/2)`, what an angle `a` of 4.9 rad makes of it.
const STRETCH: f64 = 4.0;
/// Turns below this are rounding, rad.
const STILL: f64 = 1e-6;
/// Vectors longer than this are no motion of a mechanism, rad.
const LONGEST: f64 = 1e6;

const SUFFIXES: [&str; 3] = [".rx", ".ry", ".rz"];

/// The channels with readable rotations.
pub(super) fn readable<'a>(channels: &[&'a Channel]) -> Vec<Cow<'a, Channel>> {
    let (mut out, mut rest) = (vec![], channels);
    while let Some((first, tail)) = rest.split_first() {
        if let [x, y, z, after @ ..] = rest
            && let Some(joint) = joint([x, y, z])
        {
            out.extend(rotation(joint, [x, y, z]));
            rest = after;
        } else {
            out.push(Cow::Borrowed(*first));
            rest = tail;
        }
    }
    out
}

/// The joint whose rotation vector three channels are.
fn joint(channels: [&Channel; 3]) -> Option<&str> {
    let stem = |i: usize| channels[i].name.strip_suffix(SUFFIXES[i]);
    let angles = channels.iter().all(|c| c.unit == "rad");
    (angles && stem(0) == stem(1) && stem(1) == stem(2)).then(|| stem(0))?
}

fn rotation<'a>(joint: &str, channels: [&'a Channel; 3]) -> Vec<Cow<'a, Channel>> {
    let known = |k: usize| -> Option<Vector3<f64>> {
        let [x, y, z] = channels.map(|c| c.values.get(k).copied().flatten());
        let v = Vector3::new(x?, y?, z?);
        (v.norm() < LONGEST).then_some(v)
    };
    let vectors: Vec<_> = (0..channels[0].values.len()).map(known).collect();
    match unwound(&vectors) {
        Some(same) if same == vectors => channels.map(Cow::Borrowed).to_vec(),
        Some(smooth) => (0..3)
            .map(|i| {
                let values = smooth.iter().map(|v| v.map(|v| v[i])).collect();
                Cow::Owned(Channel {
                    values,
                    ..channels[i].clone()
                })
            })
            .collect(),
        None => quaternion(joint, channels, &vectors),
    }
}

/// The vector of the same rotation that is nearest to another.
fn nearest(v: Vector3<f64>, to: Vector3<f64>) -> Vector3<f64> {
    let angle = v.norm();
    let axis = match angle {
        0.0 => to.try_normalize(0.0).unwrap_or_default(),
        a => v / a,
    };
    axis * (angle + TAU * ((axis.dot(&to) - angle) / TAU).round())
}

/// `None` where the vectors move much faster than the body turns.
fn unwound(vectors: &[Option<Vector3<f64>>]) -> Option<Vec<Option<Vector3<f64>>>> {
    let mut out = Vec::with_capacity(vectors.len());
    let mut last: Option<Vector3<f64>> = None;
    for v in vectors {
        let found = match (*v, last) {
            (Some(v), Some(before)) => {
                let turn = |v| UnitQuaternion::from_scaled_axis(v);
                let (now, turned) = (nearest(v, before), turn(v).angle_to(&turn(before)));
                if (now - before).norm() > STRETCH * turned + STILL {
                    return None;
                }
                Some(now)
            }
            (v, _) => v,
        };
        last = found.or(last);
        out.push(found);
    }
    Some(out)
}

/// Four channels; those of knots that follow one another on the same side.
fn quaternion<'a>(
    joint: &str,
    channels: [&Channel; 3],
    vectors: &[Option<Vector3<f64>>],
) -> Vec<Cow<'a, Channel>> {
    let mut last = nalgebra::Vector4::<f64>::zeros();
    let mut numbers = Vec::with_capacity(vectors.len());
    let of = |v: &Vector3<f64>| {
        let q = UnitQuaternion::from_scaled_axis(*v);
        nalgebra::Vector4::new(q.w, q.i, q.j, q.k)
    };
    for v in vectors {
        let q = v.as_ref().map(of);
        let q = q.map(|q| if q.dot(&last) < 0.0 { -q } else { q });
        last = q.unwrap_or(last);
        numbers.push(q);
    }
    // wanted of all three at once, they are wanted of the quaternion
    let mut goals: [Vec<Goal>; 4] = Default::default();
    for x in &channels[0].goals {
        let same = |g: &&Goal| (g.kind, g.first, g.last) == (x.kind, x.first, x.last);
        let [y, z] = [1, 2].map(|i| channels[i].goals.iter().find(same));
        let (Some(y), Some(z)) = (y, z) else { continue };
        let wanted = of(&Vector3::new(x.value, y.value, z.value));
        let there = numbers.get(x.last).copied().flatten().unwrap_or(wanted);
        let side = if wanted.dot(&there) < 0.0 { -1.0 } else { 1.0 };
        for (goals, value) in goals.iter_mut().zip(wanted.iter()) {
            let value = side * value;
            goals.push(Goal { value, ..*x });
        }
    }
    let names = ["qw", "qx", "qy", "qz"].into_iter().zip(goals).enumerate();
    let channel = |(i, (name, goals))| {
        Cow::Owned(Channel {
            name: format!("{joint}.{name}"),
            unit: String::new(),
            group: Group::Coordinate,
            values: numbers.iter().map(|q| q.map(|q| q[i])).collect(),
            interval: None,
            not_unique: false,
            goals,
            lower: None,
            upper: None,
        })
    };
    names.map(channel).collect()
}
