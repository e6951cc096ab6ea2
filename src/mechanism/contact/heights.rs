//! A height field of the world: ground of triangles over a grid, which balls touch: points, spheres, ends of
//! capsules, corners of boxes and hulls. Cylinders, edges and faces meet it as [`column`](super::column) says.
//!
//! Every ball has three places, each with a triangle that is searched for at a knot and held for a step. For a ball these
//! are the plane on which it goes on and the two nearest triangles that rise from it, or their planes; without such a plane (at an
//! edge or a corner) the three nearest triangles, with the distance from each less the radius, once continuously differentiable.
//! For a point, whose distance has no normal where it touches an edge, it is the triangle below, and those of its
//! neighbors that rise from it, with the distance from their planes: ground that falls away beside it holds nothing.
//! Edges and faces of boxes and hulls, and the sides of capsules, have places beside those of their corners and ends.

use super::Collider;
use super::manifold;
use super::meeting::Meeting;
use super::nearest::{Ball, Nearest, apart};
use super::seam::FLUSH;
use crate::spatial::{Mat3, Pose, Vec3};
use std::sync::Arc;

/// Triangles of a ball.
pub(super) const FACETS: usize = 3;

/// Heights over a grid, collider frame: two triangles a cell, cut from the corner with the least x and y to the opposite
/// one. Around its border are walls, cells of their own, which go down a thousand times as far as the grid is long and wide.
#[derive(Clone, Debug, PartialEq)]
pub struct Heights {
    /// At `(i, j)`, in the order of `i`, then `j`, m. The first and the last of each are the foot of a wall.
    heights: Arc<[f64]>,
    count: [usize; 2],
    spacing: [f64; 2],
    /// The largest height, m.
    pub(super) top: f64,
}

impl Heights {
    /// `heights[i][j]` at `x = i spacing[0]`, `y = j spacing[1]`, m.
    ///
    /// # Errors
    /// When there are not two rows of equal length of two at least, or a number is not finite or a spacing not positive.
    pub fn new(heights: &[Vec<f64>], spacing: [f64; 2]) -> Result<Self, String> {
        let count = [heights.len(), heights.first().map_or(0, Vec::len)];
        if count.iter().any(|n| *n < 2) {
            return Err("it needs two rows of two heights at least".into());
        }
        if let Some(k) = heights.iter().position(|row| row.len() != count[1]) {
            let (row, length, first) = (k + 1, heights[k].len(), count[1]);
            return Err(format!(
                "row {row} of its heights has {length} of them, the first row has {first}"
            ));
        }
        let all: Vec<f64> = heights.iter().flatten().copied().collect();
        if let Some(bad) = all.iter().find(|z| !z.is_finite()) {
            return Err(format!("a height of it is {bad}"));
        }
        if let Some(bad) = spacing.iter().find(|d| !(**d > 0.0 && d.is_finite())) {
            return Err(format!("a spacing of it is {bad}"));
        }
        let length = |k: usize| (count[k] - 1) as f64 * spacing[k];
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let foot = low - DEEP * (length(0) + length(1));
        let walled = |inner: &[f64]| [&[foot], inner, &[foot]].concat();
        let foot_row = vec![foot; count[1]];
        let rows = std::iter::once(&foot_row).chain(heights);
        let rows = rows.chain(std::iter::once(&foot_row));
        Ok(Self {
            top: all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            heights: rows.flat_map(|row| walled(row)).collect(),
            count: count.map(|n| n + 2),
            spacing,
        })
    }

    /// From the first to the last height, m.
    fn length(&self, axis: usize) -> f64 {
        (self.count[axis] - 3) as f64 * self.spacing[axis]
    }

    /// Of a corner along an axis, m.
    fn place(&self, axis: usize, corner: usize) -> f64 {
        let length = self.length(axis);
        if corner == 0 {
            -WALL * length
        } else if corner == self.count[axis] - 1 {
            length * (1.0 + WALL)
        } else {
            (corner - 1) as f64 * self.spacing[axis]
        }
    }

    /// The inverse of `place`: the coordinate in cells.
    fn cells_before(&self, axis: usize, x: f64) -> f64 {
        let length = self.length(axis);
        let beyond = x - x.clamp(0.0, length);
        1.0 + (x - beyond) / self.spacing[axis] + beyond / (WALL * length)
    }

    pub(super) fn corner(&self, i: usize, j: usize) -> Vec3 {
        Vec3::new(
            self.place(0, i),
            self.place(1, j),
            self.heights[i * self.count[1] + j],
        )
    }

    /// Outward normals of the four sides, and how far the field reaches along them, m.
    pub(super) fn sides(&self) -> [(Vec3, f64); 4] {
        [
            (-Vec3::x(), 0.0),
            (-Vec3::y(), 0.0),
            (Vec3::x(), self.length(0)),
            (Vec3::y(), self.length(1)),
        ]
    }

    /// The triangles on both sides of the border beside a place, that of the wall first.
    fn at_border(&self, side: usize, y: &Vec3) -> [usize; 2] {
        let (axis, is_far) = (side % 2, side > 1);
        let (along, count) = (1 - axis, self.count);
        let cell = self.cells_before(along, y[along]);
        let mut at = [cell.clamp(1.0, (count[along] - 3) as f64) as usize; 2];
        let is_upper = is_far != (axis == 1);
        let mut triangle = |cell: usize, is_upper: bool| {
            at[axis] = cell;
            2 * (at[0] * (count[1] - 1) + at[1]) + usize::from(is_upper)
        };
        let (wall, ground) = match is_far {
            true => (count[axis] - 2, count[axis] - 3),
            false => (0, 1),
        };
        [triangle(wall, is_upper), triangle(ground, !is_upper)]
    }

    /// Where a way crosses the border inward first, and the wall that it goes through there, if it is below the border. What begins at the height
    /// of the ground and goes on about level comes from a neighbor that is flush with the field, and goes through no wall. A place that is
    /// less far within a side than below the ground counts as beside the field.
    pub(super) fn entry(&self, [from, to]: [&Vec3; 2]) -> Option<(Vec3, Option<usize>)> {
        let depth = self
            .triangle_below(from)
            .map_or(0.0, |t| -self.above_plane(t, from));
        let sides = self.sides().into_iter().enumerate();
        let entries = sides.filter_map(|(side, (n, reach))| {
            let out = n.dot(from) - reach;
            let inward = -n.dot(&(to - from));
            let share = if out > 0.0 && inward > 0.0 {
                (out / inward).min(1.0)
            } else {
                0.0
            };
            (out > -depth.max(0.0)).then_some((side, share, out))
        });
        let (side, share, _) =
            entries.max_by(|a, b| a.1.total_cmp(&b.1).then(a.2.total_cmp(&b.2)))?;
        let entry = from + (to - from) * share;
        let [wall, ground] = self.at_border(side, &entry);
        let depth = -self.above_plane(ground, &entry);
        let is_level = depth < LEVEL * (to - from).norm();
        let is_flush = is_level && self.above_plane(ground, from).abs() < FLUSH;
        let is_below = depth > FLUSH;
        Some((entry, (is_below && !is_flush).then_some(wall)))
    }

    /// Is a triangle part of a wall?
    fn is_wall(&self, triangle: usize) -> bool {
        let (cell, across) = (triangle / 2, self.count[1] - 1);
        let ends = |i: usize, count: usize| i == 0 || i + 2 == count;
        ends(cell / across, self.count[0]) || ends(cell % across, self.count[1])
    }

    pub(super) fn counts(&self) -> [usize; 2] {
        self.count
    }

    /// Of a corner by its number.
    pub(super) fn indices(&self, corner: usize) -> [usize; 2] {
        [corner / self.count[1], corner % self.count[1]]
    }

    pub(super) fn triangle_count(&self) -> usize {
        2 * (self.count[0] - 1) * (self.count[1] - 1)
    }

    /// Numbers of the corners of a triangle.
    pub(super) fn corner_numbers(&self, triangle: usize) -> [usize; 3] {
        let (cell, across) = (triangle / 2, self.count[1]);
        let from = cell / (across - 1) * across + cell % (across - 1);
        let to = from + across + 1;
        if triangle % 2 == 1 {
            [from, to, from + 1]
        } else {
            [from, from + across, to]
        }
    }

    /// Corners of a triangle, counterclockwise from above.
    pub(super) fn corners(&self, triangle: usize) -> [Vec3; 3] {
        let (cell, upper) = (triangle / 2, triangle % 2 == 1);
        let (i, j) = (cell / (self.count[1] - 1), cell % (self.count[1] - 1));
        let (from, to) = (self.corner(i, j), self.corner(i + 1, j + 1));
        if upper {
            [from, to, self.corner(i, j + 1)]
        } else {
            [from, self.corner(i + 1, j), to]
        }
    }

    /// Corners of every triangle but those of walls, counterclockwise from above, m.
    pub(crate) fn triangles(&self) -> impl Iterator<Item = [Vec3; 3]> + '_ {
        let all = (0..self.triangle_count()).filter(|t| !self.is_wall(*t));
        all.map(|t| self.corners(t))
    }

    /// The triangles of the cells at the border, but those of walls.
    pub(super) fn border(&self) -> impl Iterator<Item = usize> + '_ {
        let across = self.count[1] - 1;
        let is_last = |i: usize, count: usize| i == 1 || i + 3 == count;
        let is_border = move |t: &usize| {
            let (i, j) = (t / 2 / across, t / 2 % across);
            is_last(i, self.count[0]) || is_last(j, self.count[1])
        };
        let all = (0..self.triangle_count()).filter(|t| !self.is_wall(*t));
        all.filter(is_border)
    }

    /// Numbers of corners along the axes, but the feet of walls.
    fn inner(&self) -> [std::ops::Range<usize>; 2] {
        self.count.map(|n| 1..n - 1)
    }

    /// Lines along the grid, m.
    pub(crate) fn outlines(&self) -> impl Iterator<Item = Vec<Vec3>> + '_ {
        let [n, m] = self.inner();
        let (is, js) = (n.clone(), m.clone());
        let along = n.map(move |i| m.clone().map(|j| self.corner(i, j)).collect());
        along.chain(js.map(move |j| is.clone().map(|i| self.corner(i, j)).collect()))
    }

    /// Largest distance from its origin, m.
    pub(crate) fn reach(&self) -> f64 {
        let [n, m] = self.inner();
        let all = n.flat_map(|i| m.clone().map(move |j| (i, j)));
        all.map(|(i, j)| self.corner(i, j).norm())
            .fold(0.0, f64::max)
    }

    pub(super) fn normal([a, b, c]: &[Vec3; 3]) -> Vec3 {
        (b - a).cross(&(c - a)).normalize()
    }

    /// Of the plane of a triangle.
    pub(super) fn nearest_on_plane(&self, triangle: usize, y: &Vec3) -> Nearest {
        let corners = self.corners(triangle);
        let m = Self::normal(&corners);
        Nearest {
            point: y - m * m.dot(&(y - corners[0])),
            normal: m,
            follows: Mat3::identity() - m * m.transpose(),
            curvature: 0.0,
            radius: 0.0,
        }
    }

    /// How far a place is above the plane of a triangle, m.
    pub(super) fn above_plane(&self, triangle: usize, y: &Vec3) -> f64 {
        let corners = self.corners(triangle);
        Self::normal(&corners).dot(&(y - corners[0]))
    }

    /// Of a triangle.
    pub(super) fn nearest_on_triangle(&self, triangle: usize, y: &Vec3) -> Nearest {
        let corners = self.corners(triangle);
        let m = Self::normal(&corners);
        let mut least = (Vec3::zeros(), Mat3::zeros(), f64::INFINITY);
        let mut inside = true;
        for k in 0..3 {
            let (a, b) = (corners[k], corners[(k + 1) % 3]);
            let along = b - a;
            inside &= m.cross(&along).dot(&(y - a)) >= 0.0;
            let share = along.dot(&(y - a)) / along.norm_squared();
            let point = a + along * share.clamp(0.0, 1.0);
            let distance = (y - point).norm_squared();
            if distance < least.2 {
                let follows = if share > 0.0 && share < 1.0 {
                    along * along.transpose() / along.norm_squared()
                } else {
                    Mat3::zeros()
                };
                least = (point, follows, distance);
            }
        }
        if inside {
            return self.nearest_on_plane(triangle, y);
        }
        let (point, follows, _) = least;
        let (normal, curvature) = apart(y, &point, m);
        Nearest {
            point,
            normal,
            follows,
            curvature,
            radius: 0.0,
        }
    }

    /// Length and width of a cell, m.
    pub(super) fn reach_of_cell(&self) -> f64 {
        self.spacing[0] + self.spacing[1]
    }

    /// Height by which a triangle rises from another at least to be one that does: flat ground has none, m.
    fn rise(&self) -> f64 {
        RISES * self.reach_of_cell()
    }

    /// The cell of a place, none beside the grid and its walls.
    fn cell(&self, axis: usize, x: f64) -> Option<usize> {
        let at = self.cells_before(axis, x).floor();
        (at >= 0.0 && at < (self.count[axis] - 1) as f64).then_some(at as usize)
    }

    /// The cells that come within `reach` of a place along an axis.
    pub(super) fn cells(&self, axis: usize, x: f64, reach: f64) -> std::ops::Range<usize> {
        let last = (self.count[axis] - 1) as f64;
        let of = |x: f64| self.cells_before(axis, x).floor();
        let from = of(x - reach).clamp(0.0, last) as usize;
        from..(of(x + reach) + 1.0).clamp(0.0, last) as usize
    }

    /// Coordinates of a place along the grid, in cells.
    pub(super) fn in_cells(&self, y: &Vec3) -> [f64; 2] {
        [0, 1].map(|axis| self.cells_before(axis, y[axis]))
    }

    /// The triangle below or above a place.
    pub(super) fn triangle_below(&self, y: &Vec3) -> Option<usize> {
        let (i, j) = (self.cell(0, y.x)?, self.cell(1, y.y)?);
        let [u, v] = self.in_cells(y);
        let cell = i * (self.count[1] - 1) + j;
        Some(2 * cell + usize::from(v - j as f64 > u - i as f64))
    }

    /// The triangle below a point and the neighbors that rise from it.
    pub(super) fn below(&self, y: &Vec3) -> [Meeting; FACETS] {
        let mut found = [Meeting::Apart; FACETS];
        let (Some(i), Some(j)) = (self.cell(0, y.x), self.cell(1, y.y)) else {
            return found;
        };
        let across = self.count[1] - 1;
        let cell = i * across + j;
        let [u, v] = self.in_cells(y);
        let own = 2 * cell + usize::from(v - j as f64 > u - i as f64);
        found[0] = Meeting::Plane(own);
        let neighbors = if own.is_multiple_of(2) {
            [
                Some(own + 1),
                (i + 2 < self.count[0]).then(|| own + 2 * across + 1),
                (j > 0).then(|| own - 1),
            ]
        } else {
            [
                Some(own - 1),
                (i > 0).then(|| own - 2 * across - 1),
                (j + 1 < across).then(|| own + 1),
            ]
        };
        let corners = self.corners(own);
        let m = Self::normal(&corners);
        let rises = |t: &usize| {
            let above = self.corners(*t).map(|c| m.dot(&(c - corners[0])));
            above.into_iter().fold(0.0, f64::max) > self.rise()
        };
        let gap = |t: &usize| self.above_plane(*t, y);
        let mut left = neighbors.map(|t| t.filter(rises));
        left.sort_by(|a, b| {
            let of = |t: &Option<usize>| t.as_ref().map_or(f64::INFINITY, gap);
            of(a).total_cmp(&of(b))
        });
        for (place, triangle) in found[1..].iter_mut().zip(left) {
            *place = triangle.map_or(Meeting::Apart, Meeting::Plane);
        }
        found
    }

    /// The triangles nearest to a ball of those that are asked for, and their distances from its center.
    fn around(
        &self,
        y: &Vec3,
        radius: f64,
        asked: impl Fn(usize) -> bool,
    ) -> [Option<(usize, f64)>; FACETS] {
        let mut found: [Option<(usize, f64)>; FACETS] = [None; FACETS];
        let across = self.count[1] - 1;
        for i in self.cells(0, y.x, 2.0 * radius) {
            for j in self.cells(1, y.y, 2.0 * radius) {
                for triangle in [2 * (i * across + j), 2 * (i * across + j) + 1] {
                    if !asked(triangle) {
                        continue;
                    }
                    let near = self.nearest_on_triangle(triangle, y);
                    // above the border, a wall is as near as the ground
                    let after = if self.is_wall(triangle) {
                        ON_BORDER * radius
                    } else {
                        0.0
                    };
                    let gap = (y - near.point).norm() + after;
                    if let Some(at) = found
                        .iter()
                        .position(|f| f.is_none_or(|(_, other)| gap < other))
                    {
                        found[at..].rotate_right(1);
                        found[at] = Some((triangle, gap));
                    }
                }
            }
        }
        found
    }

    /// Where a ball comes to that would go from one place to another, but slides on what it meets.
    fn slid(&self, from: &Vec3, to: &Vec3, radius: f64) -> Vec3 {
        let moves = ((to - from).norm() / radius).ceil().clamp(1.0, MOVES);
        let (mut y, mut by) = (*from, (to - from) / moves);
        for _ in 0..moves as usize {
            y += by;
            // in a valley it meets two
            for _ in 0..2 {
                let Some((triangle, _)) = self.around(&y, radius, |_| true)[0] else {
                    break;
                };
                let near = self.nearest_on_triangle(triangle, &y);
                let gap = near.normal.dot(&(y - near.point)) - radius;
                if gap >= 0.0 {
                    break;
                }
                y -= near.normal * gap;
                by -= near.normal * by.dot(&near.normal).min(0.0);
            }
        }
        y
    }

    /// What a ball meets on its way: a plane on which it goes on, and what rises from that. The plane is that of the triangle it comes to,
    /// so that the force is along its normal: the nearest point of a triangle ahead is on its edge yet, and the ball would be stopped by it.
    /// Where the ground falls away, the ball leaves the plane that it is on.
    fn met(&self, from: &Vec3, to: &Vec3, radius: f64) -> [Meeting; FACETS] {
        let end = self.slid(from, to, radius);
        let slack = ON_PLANE * radius;
        let apart = |t: usize, y: &Vec3| self.above_plane(t, y) - radius;
        let is_above = |t: usize| [from, &end].iter().all(|y| apart(t, y) >= -slack);
        let is_inside =
            |(t, distance): (usize, f64), y: &Vec3| distance - radius - apart(t, y) <= slack;
        let own = self.around(&end, radius, |_| true)[0].map(|(t, _)| t);
        // a triangle whose back faces the ball is on the far side of a ridge, except the nearest if the ball is below the ground
        let faces = |t: usize| {
            let in_front = |y: &Vec3| {
                let near = self.nearest_on_triangle(t, y);
                near.normal.dot(&(y - near.point)) >= 0.0
            };
            own == Some(t) || in_front(from) && in_front(&end)
        };
        let nearest = self.around(&end, radius, faces);
        let ahead = nearest[0].filter(|f| is_above(f.0) && is_inside(*f, &end));
        let below = || {
            let own = self.around(from, radius, |_| true)[0];
            own.filter(|f| is_inside(*f, from) && apart(f.0, from) <= TOUCHES * radius)
        };
        let Some((plane, _)) = ahead.or_else(below) else {
            return nearest.map(|f| f.map_or(Meeting::Apart, |(t, _)| Meeting::Triangle(t)));
        };
        let corners = self.corners(plane);
        let m = Self::normal(&corners);
        let rises = |t: usize| {
            let above = self.corners(t).map(|c| m.dot(&(c - corners[0])));
            t != plane && above.into_iter().fold(0.0, f64::max) > self.rise() && faces(t)
        };
        let rising = self.around(&end, radius, rises);
        let mut held = [Meeting::Plane(plane); FACETS];
        for (held, other) in held[1..].iter_mut().zip(rising) {
            *held = match other {
                Some((t, _)) if is_above(t) => Meeting::Plane(t),
                Some((t, _)) => Meeting::Triangle(t),
                None => Meeting::Apart,
            };
        }
        held
    }

    /// What of it a ball meets, at the poses of the ground and of the ball's body, now and at the next knot.
    pub(super) fn search(
        &self,
        ground: &Collider,
        ball: &Ball,
        [now, next]: [(&Pose, &Pose); 2],
    ) -> [Meeting; FACETS] {
        let place = |(a, b): (&Pose, &Pose)| Self::local(ground, a, &b.point(&ball.center));
        if ball.radius > 0.0 {
            self.met(&place(now), &place(next), ball.radius)
        } else {
            let (from, to) = (place(now), place(next));
            let mut met = self.below(&to);
            if met[0] != Meeting::Apart
                && let Some((_, Some(wall))) = self.entry([&from, &to])
            {
                return [Meeting::Plane(wall), Meeting::Apart, Meeting::Apart];
            }
            // the plane ahead is above a point that has yet to come over a ridge
            if let Meeting::Plane(ahead) = met[0]
                && self.above_plane(ahead, &from) < -manifold::TOUCHING
            {
                met[0] = self
                    .triangle_below(&from)
                    .map_or(Meeting::Apart, Meeting::Plane);
            }
            met
        }
    }
}

impl Heights {
    /// A place of the world in the frame of the ground.
    pub(super) fn local(ground: &Collider, pose: &Pose, place: &Vec3) -> Vec3 {
        let z = pose.r.tr_mul(&(place - pose.x));
        ground.orientation.tr_mul(&(z - ground.position))
    }
}

/// Width of a wall, part of the grid's length across it, and depth of all walls, of the grid's length and width: they lean by 1e-12.
const WALL: f64 = 1e-9;
const DEEP: f64 = 1e3;

/// Sine of the angle below which a way is about level: what slides over a flush border and is not held there for a step falls by less.
const LEVEL: f64 = 0.5;

/// Part of the grid's spacing by which a neighbor rises at least to be one that does.
const RISES: f64 = 1e-9;

/// Moves by at most its radius in which a ball's way is followed; what goes farther in a step is followed in longer ones.
const MOVES: f64 = 32.0;

/// Part of a ball's radius that is rounding, where it is on a plane or within its triangle.
const ON_PLANE: f64 = 1e-6;

/// Part of a ball's radius by which a wall must be nearer than the ground to be the nearer one.
const ON_BORDER: f64 = 1e-9;

/// Gap, as a part of its radius, up to which a ball is on a plane that it leaves.
const TOUCHES: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::contact::samples::{
        BOX, CAPSULE, CYLINDER, POINT, SPHERE, check_with, hull, on_field, rough,
    };
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Mechanism, Surface};
    use crate::spatial::{Quat, exp};

    const SPACING: [f64; 2] = [0.4, 0.3];

    fn on(shape: Surface, heights: Vec<Vec<f64>>) -> Mechanism {
        on_field(shape, heights, SPACING, [0.1, -0.2, 0.05])
    }

    #[test]
    fn derivatives_match_differences() {
        let s = &mut Source::new(11);
        for (shape, count) in [
            (POINT, 3),
            (SPHERE, 3),
            (CAPSULE, 10),
            (BOX, 32),
            (hull(), 29),
            (CYLINDER, 12),
        ] {
            // what is in the ground at the knot holds no rim
            let (height, poses) = if shape == CYLINDER {
                (0.55, 120)
            } else {
                (0.3, 20)
            };
            let m = on(shape, rough(s, [6, 7], 0.1));
            assert_eq!(m.contacts.len(), count);
            let mut near = 0;
            for _ in 0..poses {
                let x = Vec3::new(1.0, 0.8, height) + s.vec3() * 0.3;
                let poses = [Pose::new(x, exp(&s.vec3()))];
                for c in &m.contacts {
                    let t = m.touch(c, &poses);
                    near += usize::from(t.gap < 0.2);
                    if (t.normal.x.abs() - 0.6).abs() > 1e-2 {
                        // a short step: regions of a triangle have curvatures of their own
                        check_with(&m, c, &poses, 1e-5);
                    }
                }
            }
            assert!(near > 20, "{near}");
        }
    }

    /// By sampling of the ground.
    #[test]
    fn the_least_gap_is_the_distance_from_the_ground() {
        let s = &mut Source::new(5);
        let heights = rough(s, [6, 7], 0.1);
        let field = Heights::new(&heights, SPACING).expect("valid");
        let mut m = on(SPHERE, heights.clone());
        let mut point = on(POINT, heights);
        for m in [&mut m, &mut point] {
            for c in &mut m.colliders {
                (c.position, c.orientation) = (Vec3::zeros(), Mat3::identity());
            }
        }
        for _ in 0..40 {
            let at = Vec3::new(1.0, 0.9, 0.1) + s.vec3().component_mul(&Vec3::new(0.6, 0.5, 0.05));
            let poses = [Pose::new(at, Quat::identity())];
            let least = |m: &Mechanism| {
                let gaps = m.contacts.iter().map(|c| m.touch(c, &poses).gap);
                gaps.fold(f64::INFINITY, f64::min)
            };
            let (mut nearest, mut below) = (f64::INFINITY, f64::NAN);
            for [a, b, c] in field.triangles() {
                let n = 60;
                for i in 0..=n {
                    for j in 0..=n - i {
                        let (u, v) = (f64::from(i) / f64::from(n), f64::from(j) / f64::from(n));
                        nearest = nearest.min((a + (b - a) * u + (c - a) * v - at).norm());
                    }
                }
                // in barycentric coordinates
                let flat = nalgebra::Matrix2::new(b.x - a.x, c.x - a.x, b.y - a.y, c.y - a.y);
                let uv = flat.try_inverse().expect("a triangle")
                    * nalgebra::Vector2::new(at.x - a.x, at.y - a.y);
                if uv.x >= 0.0 && uv.y >= 0.0 && uv.x + uv.y <= 1.0 {
                    below = a.z + (b.z - a.z) * uv.x + (c.z - a.z) * uv.y;
                }
            }
            if at.z > below + 0.02 && nearest < 0.2 {
                let found = least(&m);
                assert!((nearest - 0.13 - found).abs() < 1e-2, "{nearest} {found}");
                assert!(found <= nearest - 0.13 + 1e-12);
            }
            // a point is outside exactly where it is above the ground
            assert_eq!(least(&point) > 0.0, at.z > below);
        }
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        let flat = vec![vec![0.0; 3]; 2];
        assert!(Heights::new(&flat, SPACING).is_ok());
        let mut hole = flat.clone();
        hole[1][1] = f64::NAN;
        let mut short = flat.clone();
        short[1].pop();
        for (heights, spacing, words) in [
            (&hole, SPACING, "NaN"),
            (&short, SPACING, "row 2 of its heights has 2 of them"),
            (&vec![vec![0.0; 3]], SPACING, "two rows of two"),
            (&flat, [0.0, 1.0], "spacing"),
        ] {
            let e = Heights::new(heights, spacing).expect_err("refused");
            assert!(e.contains(words), "{e}");
        }
    }
}
