//! Penetration depth of two bodies, for starts and for bodies whose contacts exclude each other. Contact features do not show it if
//! one body is deeper in the other than half of its thickness.

use super::between;
use super::cylinder;
use super::heights::Heights;
use super::sweep::{Core, Poses, Sides, about, half_thickness};
use super::{Ahead, Collider, Contact, Pair, Search, Surface};
use crate::mechanism::Mechanism;
use crate::spatial::{Pose, Vec3};
use parry3d_f64::math::Pose3;
use parry3d_f64::query::details::contact_support_map_support_map as overlapping;
use std::collections::HashSet;

/// Part of a body's reach by which it is moved aside where its place is exactly another's: it changes the depth as little.
const ASIDE: f64 = 1e-6;

/// How deep two colliders are in each other, m, by the shortest way out, if that is more than a quarter of the thinner one. What meets
/// there is on another side, and its gaps are not negative.
fn buried(of: Sides, poses: Poses) -> Option<f64> {
    let is_flat = |c: &Collider| matches!(c.surface, Surface::Point | Surface::Heights(_));
    let origin = poses.0.point(&of.0.position);
    let between = (poses.1.point(&of.1.position) - origin).norm();
    if is_flat(of.0) || is_flat(of.1) || between > cylinder::reach(of.0) + cylinder::reach(of.1) {
        return None;
    }
    // of bodies in the same place no direction is the first to be looked at; a little apart one is
    let aside = ASIDE * cylinder::reach(of.0);
    let aside = if between < aside { aside } else { 0.0 };
    let shifted = origin + Vec3::new(1.0, 2.0, 3.0) * aside;
    let core = |of, pose, origin| Core { of, pose, origin };
    let (a, b) = (core(of.0, poses.0, origin), core(of.1, poses.1, shifted));
    let radii = about(of.0) + about(of.1);
    let depth = radii - overlapping(&Pose3::IDENTITY, &a, &b, radii)?.dist;
    // half of where places of contact are those of another side
    let quarter = 0.5 * half_thickness(of.0).min(half_thickness(of.1));
    (depth > quarter).then_some(depth)
}

impl Mechanism {
    /// Pairs of colliders of bodies that no joints connect, and that nothing keeps apart: they pass through each other.
    pub fn loose_pairs(&self) -> Vec<[usize; 2]> {
        let mut group: Vec<usize> = (0..self.bodies.len()).collect();
        for j in &self.joints {
            if let Some(parent) = j.parent {
                let (from, to) = (group[parent], group[j.child]);
                group
                    .iter_mut()
                    .filter(|g| **g == to)
                    .for_each(|g| *g = from);
            }
        }
        let bodies = self.colliders.iter().enumerate();
        let bodies: Vec<_> = bodies.filter_map(|(i, c)| Some((i, c.body?))).collect();
        let pairs = bodies.iter().enumerate().flat_map(|(k, (i, a))| {
            let group = &group;
            let others = bodies[k + 1..]
                .iter()
                .filter(move |(_, b)| group[*a] != group[*b]);
            others.map(move |(j, _)| [*i, *j])
        });
        let meets: HashSet<[usize; 2]> = (self.contacts.iter())
            .filter_map(|c| match c.pair {
                Pair::Between { first, second, .. } => Some([first.min(second), first.max(second)]),
                Pair::Ground { .. } => None,
            })
            .collect();
        let is_loose = |pair: &[usize; 2]| !meets.contains(pair) && !self.excluded.contains(pair);
        pairs.filter(is_loose).collect()
    }

    /// The bodies of one of these pairs that are in each other by more than a quarter of the thinner one, by name.
    pub fn passing(&self, pairs: &[[usize; 2]], poses: &[Pose]) -> Option<[&str; 2]> {
        pairs.iter().find_map(|&[first, second]| {
            let (of, at) = self.sides((first, second), poses);
            buried(of, at)?;
            let name = |c: &Collider| Some(self.bodies[c.body?].name.as_str());
            Some([name(of.0)?, name(of.1)?])
        })
    }

    /// The distance of a ball from a height field, m, or that of a corner from the plane below it or from the border. A plane that is held
    /// of it may be higher beside its triangle.
    fn gap_on_field(&self, c: &Contact, poses: &[Pose]) -> Option<f64> {
        let ((first, second), feature) = c.pair.between()?;
        let (of, at) = self.sides((first, second), poses);
        let Surface::Heights(heights) = &of.0.surface else {
            return None;
        };
        let ball = between::ball_on_field(of, feature)?;
        let y = Heights::local(of.0, at.0, &at.1.point(&ball.center));
        let beside = heights.sides().map(|(n, reach)| n.dot(&y) - reach);
        let out = beside.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let below = heights
            .triangle_below(&y)
            .map(|t| heights.above_plane(t, &y).max(out));
        if ball.radius == 0.0 {
            return Some(below.unwrap_or(f64::INFINITY));
        }
        let nearest = heights.nearest_triangle(&y, ball.radius);
        // what is deeper in the ground than its radius is near none
        let buried = below.filter(|gap| *gap < 0.0).map(|gap| gap - ball.radius);
        let apart = buried.unwrap_or(f64::INFINITY);
        Some(nearest.map_or(apart, |(_, gap, _)| gap))
    }

    /// Which of the places of a whole body on a height field a contact is, if it is one.
    fn place_on_field(&self, c: &Contact) -> Option<usize> {
        let ((first, second), feature) = c.pair.between()?;
        let of = (&self.colliders[first], &self.colliders[second]);
        let place = feature.checked_sub(between::first_place(of));
        place.filter(|_| between::is_on_field(of))
    }

    /// The contact whose surfaces overlap most, and by how much, m.
    pub(crate) fn deepest(&self, poses: &[Pose]) -> Option<(&str, f64)> {
        let mut last = None;
        let buried = |c: &Contact| match c.pair {
            // once for all contacts of two colliders
            Pair::Between { first, second, .. }
                if last.replace((first, second)) != Some((first, second)) =>
            {
                let (of, poses) = self.sides((first, second), poses);
                buried(of, poses)
            }
            _ => None,
        };
        let depths: Vec<_> = self.contacts.iter().map(buried).collect();
        let mut search = Search::default();
        let mut gap = |c: &Contact| {
            if let Some(gap) = self.gap_on_field(c, poses) {
                return gap;
            }
            if let Some(place) = self.place_on_field(c) {
                // that of the pair, once
                let depth = (place == 0).then(|| self.depth(c, poses)).flatten();
                return depth.map_or(f64::INFINITY, |depth| -depth);
            }
            let held = self.meeting_of(c, poses, &Ahead::NONE, &mut search);
            let gap = self.touch_of(c, &held, poses).gap;
            let depth = (gap < 0.0).then(|| self.depth(c, poses)).flatten();
            depth.map_or(gap, |depth| gap.max(-depth))
        };
        let each = self.contacts.iter().zip(depths);
        let each = each.map(|(c, deep)| (c.name.as_str(), deep.unwrap_or_else(|| -gap(c))));
        each.filter(|(_, depth)| *depth > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
