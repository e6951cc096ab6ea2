//! Ground and forces of contacts in the picture of the mechanism.

use super::axis::{Frame, drawable, nice_step, number};
use super::panel::{Ink, Row};
use super::project::{View, World};
use super::sheet::{GRID, GUIDE, Point, Rgb, Sheet, WHITE, distance};
use crate::format::recording::LEAST_FORCE;
use crate::format::recording::{Ground, Recording};

/// Apart from the bodies' palette.
const RED: Rgb = Rgb(0xb0, 0x10, 0x30);
/// The longest arrow, as a share of the picture.
const LONGEST: f64 = 0.2;
/// A force counts for the scale up to so many times their median: those of impacts are cut.
const PEAK: f64 = 4.0;
/// Marks of solid ground: apart along the surface, and their length, px.
const HATCH: (f64, f64) = (10.0, 8.0);

/// A part of a half-space's surface.
pub(super) struct Surface {
    /// At least three, or two of one that is seen edge-on.
    pub corners: Vec<Point>,
    /// Into what is solid, where it is seen edge-on.
    down: Option<Point>,
}

impl Surface {
    pub(super) fn new(ground: &Ground, view: &View) -> Option<Surface> {
        let world = |p: [f64; 3]| -> Option<World> {
            let fine = p.iter().all(|v| drawable(*v).is_some());
            fine.then(|| World::from(p))
        };
        let corners: Option<Vec<Point>> = (ground.corners.iter())
            .map(|c| Some(view.project(&world(*c)?)))
            .collect();
        let mut corners = corners.filter(|c| c.len() > 2)?;
        let (x, y) = view.project(&world(ground.normal)?);
        let down = (x.hypot(y) > 1.0 - 1e-9).then_some((-x, -y));
        if down.is_some() {
            let far = |from: Point, all: &[Point]| {
                let by =
                    |a: &&Point, b: &&Point| distance(from, **a).total_cmp(&distance(from, **b));
                all.iter().max_by(by).copied()
            };
            let one = far(corners[0], &corners)?;
            corners = vec![one, far(one, &corners)?];
        }
        Some(Surface { corners, down })
    }

    pub(super) fn legend(surfaces: &[Surface]) -> Vec<Row> {
        let ink = Ink {
            color: GUIDE,
            dash: None,
            width: 2.0,
        };
        let row = (Some(ink.into()), "ground".to_owned());
        surfaces.first().map(|_| row).into_iter().collect()
    }

    /// What lies below everything.
    pub(super) fn fill(&self, sheet: &mut Sheet, frame: &Frame) {
        if self.down.is_none() {
            let corners = self.corners.iter().map(|c| frame.at(*c)).collect();
            sheet.area(corners, GRID.mix(WHITE, 0.7));
        }
    }

    pub(super) fn edge(&self, sheet: &mut Sheet, frame: &Frame) {
        let mut corners: Vec<Point> = self.corners.iter().map(|c| frame.at(*c)).collect();
        let Some((x, y)) = self.down else {
            corners.push(corners[0]);
            sheet.path(corners, GUIDE, 1.0);
            return;
        };
        let ([a, b], down) = ([corners[0], corners[1]], (x, -y));
        let length = distance(a, b);
        sheet.path(corners, GUIDE, 2.0);
        if length == 0.0 {
            return;
        }
        let along = ((b.0 - a.0) / length, (b.1 - a.1) / length);
        for i in 0..(length / HATCH.0) as usize {
            let s = (i as f64 + 0.7) * HATCH.0;
            let from = (a.0 + along.0 * s, a.1 + along.1 * s);
            let by = |d: f64, s: f64| HATCH.1 * (d - 0.7 * s);
            let to = (from.0 + by(down.0, along.0), from.1 + by(down.1, along.1));
            sheet.line(from, to, GUIDE, 1.0);
        }
    }
}

/// An arrow, in metres on the page.
struct Arrow {
    instant: usize,
    from: Point,
    to: Point,
}

/// Forces of contacts at the instants shown, along the page as they are in space.
pub(super) struct Forces {
    arrows: Vec<Arrow>,
    /// N/m
    scale: f64,
    /// Larger forces are cut, N.
    cut: Option<f64>,
}

impl Forces {
    /// Of a picture of `size` metres.
    pub(super) fn new(recording: &Recording, chosen: &[usize], view: &View, size: f64) -> Forces {
        let norm = |f: &[f64; 3]| World::from(*f).norm();
        let all = || recording.contacts.iter().flat_map(|c| &c.forces);
        let sizes = all().filter_map(|f| drawable(norm(&f.force)));
        let least = LEAST_FORCE * sizes.fold(0.0, f64::max);
        let mut found = vec![];
        for f in all() {
            let whole = f.point.iter().chain(&f.force);
            if norm(&f.force) <= least || !whole.copied().all(|v| drawable(v).is_some()) {
                continue;
            }
            let (from, force) = (view.project(&f.point.into()), view.project(&f.force.into()));
            for (instant, _) in chosen.iter().enumerate().filter(|k| *k.1 == f.knot) {
                found.push((instant, from, force));
            }
        }
        let mut sizes: Vec<f64> = found.iter().map(|f| f.2.0.hypot(f.2.1)).collect();
        sizes.sort_by(f64::total_cmp);
        let (Some(largest), true) = (sizes.last(), size > 0.0) else {
            return Forces {
                arrows: vec![],
                scale: 1.0,
                cut: None,
            };
        };
        let shown = largest.min(PEAK * sizes[sizes.len() / 2]);
        let scale = nice_step(shown.max(f64::MIN_POSITIVE) / (LONGEST * size));
        let longest = LONGEST * size;
        let arrow = |(instant, from, force): (usize, Point, Point)| {
            let length = force.0.hypot(force.1) / scale;
            let by = if length > longest {
                longest / length
            } else {
                1.0
            } / scale;
            let to = (from.0 + by * force.0, from.1 + by * force.1);
            Arrow { instant, from, to }
        };
        Forces {
            arrows: found.into_iter().map(arrow).collect(),
            scale,
            cut: (*largest > longest * scale).then_some(longest * scale),
        }
    }

    pub(super) fn points(&self) -> impl Iterator<Item = &Point> {
        self.arrows.iter().flat_map(|a| [&a.from, &a.to])
    }

    pub(super) fn legend(&self) -> Vec<Row> {
        if self.arrows.is_empty() {
            return vec![];
        }
        let ink = Ink {
            color: RED,
            dash: None,
            width: 2.0,
        };
        let mut rows = vec![
            (Some(ink.into()), "contact force".to_owned()),
            (None, format!("{} N per m", number(self.scale, 3))),
        ];
        if let Some(cut) = self.cut {
            rows.push((None, format!("cut at {} N", number(cut, 2))));
        }
        rows
    }

    /// Points that carry force, and arrows in the tone of their instant.
    pub(super) fn draw(&self, sheet: &mut Sheet, frame: &Frame, last: usize) {
        for a in &self.arrows {
            let share = a.instant as f64 / last.max(1) as f64;
            let color = match a.instant == last {
                true => RED,
                false => RED.mix(WHITE, 0.25 + 0.5 * share),
            };
            let (from, to) = (frame.at(a.from), frame.at(a.to));
            sheet.disc(from, 2.5, color);
            let length = distance(from, to);
            if length < 1.0 {
                continue;
            }
            sheet.line(from, to, color, 2.0);
            let head = 8.0_f64.min(0.5 * length) / length;
            let (dx, dy) = ((to.0 - from.0) * head, (to.1 - from.1) * head);
            let barb = |side: f64| (to.0 - dx - side * 0.45 * dy, to.1 - dy + side * 0.45 * dx);
            sheet.area(vec![to, barb(1.0), barb(-1.0)], color);
        }
    }
}
