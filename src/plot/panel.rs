//! Panels of curves over a shared horizontal axis, stacked, with legends beside them.

use super::axis::{
    Axis, Frame, LABEL, SMALL, Ticks, decade_ticks, drawable, extent, linear_ticks, pi_multiples,
    roomy,
};
use super::goal::{Mark, name, symbol};
use super::sheet::{Anchor, INK, MUTED, PALETTE, Point, Rect, Rgb, Sheet, fit, text_width};
use crate::format::recording::GoalKind;

/// One curve; `None` is a gap. On a logarithmic panel the values are logarithms already.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub name: String,
    pub ink: Ink,
    pub points: Vec<Option<Point>>,
    /// Bounds, drawn dashed across the panel.
    pub bounds: [Option<f64>; 2],
    /// What is wanted of it.
    pub goals: Vec<Mark>,
    /// A dot at every point, for a few iterations.
    pub dots: bool,
}

impl Curve {
    fn wanted(&self) -> impl Iterator<Item = f64> {
        self.goals.iter().map(|g| g.value)
    }

    fn draw(&self, sheet: &mut Sheet, frame: &Frame) {
        let lone = self.points.iter().flatten().count() == 1;
        for piece in self.points.split(|p| p.is_none()).filter(|p| !p.is_empty()) {
            let points: Vec<_> = piece.iter().flatten().map(|p| frame.at(*p)).collect();
            if self.dots || lone {
                let radius = if lone { 4.0 } else { 2.5 };
                points
                    .iter()
                    .for_each(|p| sheet.disc(*p, radius, self.ink.color));
            }
            self.ink.draw(sheet, points);
        }
    }
}

/// Colour, dashes and width of a curve, by its place in the group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ink {
    pub color: Rgb,
    pub dash: Option<(f64, f64)>,
    pub width: f64,
}

impl Ink {
    pub(super) fn nth(index: usize) -> Ink {
        let dash = [None, Some((9.0, 5.0)), Some((3.0, 5.0))][(index / PALETTE.len()).min(2)];
        Ink {
            color: PALETTE[index % PALETTE.len()],
            dash,
            width: 2.0,
        }
    }

    pub(super) fn draw(self, sheet: &mut Sheet, points: Vec<Point>) {
        if self.width >= BAR {
            return self.bars(sheet, &points);
        }
        match self.dash {
            None => sheet.path(points, self.color, self.width),
            Some(dash) => sheet.dashed(points, self.color, self.width, dash),
        }
    }
}

impl Ink {
    /// Level stretches, with straight ends and wide enough to be seen.
    fn bars(self, sheet: &mut Sheet, points: &[Point]) {
        for pair in points.windows(2) {
            let ([a, b], half) = ([pair[0], pair[1]], 0.5 * self.width);
            let x = b.0.max(a.0 + 1.5);
            let corners = [(a.0, -half), (x, -half), (x, half), (a.0, half)];
            sheet.area(corners.map(|(x, d)| (x, a.1 + d)).to_vec(), self.color);
        }
    }
}

/// Curves on one vertical axis.
#[derive(Clone, Debug, Default)]
pub(super) struct Panel {
    pub label: String,
    pub curves: Vec<Curve>,
    pub log: bool,
    /// Guides at multiples of pi.
    pub angle: bool,
    /// A range that crosses zero is widened to lie symmetric about it.
    pub symmetric: bool,
    /// Zero is in the range.
    pub zero: bool,
    /// Names of rows, from the top at heights -1, -2, ...; instead of numbers.
    pub rows: Vec<String>,
    /// Ends the legend, below the curves that have names.
    pub notes: Vec<Row>,
    /// What its bounds are called; `bounds` by default.
    pub bound_name: Option<&'static str>,
    /// It shows nothing but rounding.
    pub quiet: bool,
}

impl Panel {
    /// What the vertical axis spans. Bounds count unless they would squash the curves.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        if !self.rows.is_empty() {
            return Some((-0.5 - self.rows.len() as f64, -0.5));
        }
        let data = extent(
            self.curves
                .iter()
                .flat_map(|c| c.points.iter().flatten())
                .map(|p| p.1),
        )?;
        let center = (data.0 + data.1) / 2.0;
        let reach = 10.0 * (data.1 - data.0).max(center.abs());
        let near = |b: &f64| reach == 0.0 || (b - center).abs() <= reach;
        let bounds = self
            .curves
            .iter()
            .flat_map(|c| c.bounds.into_iter().flatten().chain(c.wanted()))
            .filter(near);
        let zero = self.zero.then_some(0.0);
        let (lo, hi) = extent(bounds.chain([data.0, data.1]).chain(zero))?;
        if self.zero && (lo, hi) == (0.0, 0.0) {
            return Some((-0.06, 1.0));
        }
        if self.log {
            // Whole decades, and a little more so that no curve lies on the axis.
            return Some((lo.floor() - 0.3, hi.ceil().max(lo.floor() + 1.0) + 0.3));
        }
        let (lo, hi) = roomy((lo, hi), 0.06);
        if self.symmetric && lo < 0.0 && hi > 0.0 {
            let size = hi.max(-lo);
            return Some((-size, size));
        }
        Some((lo, hi))
    }

    /// What its legend tells of goals.
    fn goal_rows(&self) -> Vec<Row> {
        let (low, high) = self.range().unwrap_or_default();
        let goals = self.curves.iter().flat_map(|c| &c.goals);
        goal_rows(goals.map(|g| (g.kind, g.value >= low && g.value <= high)))
    }

    fn ticks(&self, range: (f64, f64), height: f64) -> Ticks {
        if !self.rows.is_empty() {
            let name = |(i, n): (usize, &String)| (-1.0 - i as f64, fit(n, SMALL, ROW_NAME));
            return Ticks {
                marks: self.rows.iter().enumerate().map(name).collect(),
                note: None,
            };
        }
        match self.log {
            true => decade_ticks(range, height / 32.0),
            false => linear_ticks(range, (height / 26.0).clamp(2.0, 8.0), false),
        }
    }

    /// Height of its own: that of rows, and of the legend beside them.
    fn height(&self) -> Option<f64> {
        let rows = self.rows.len().max(self.notes.len());
        (!self.rows.is_empty()).then_some((ROW + 2.0) * rows as f64)
    }
}

/// Panels above one another; none of them empty.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub panels: Vec<Panel>,
    pub x_label: String,
    /// Only whole numbers are ticked on the horizontal axis.
    pub whole_x: bool,
    /// Panels beyond [`MOST_PANELS`], left out.
    pub hidden: usize,
    /// Lines to be read below the panels.
    pub notes: Vec<String>,
}

/// Room above each panel (for a multiplier), and below the last (for the horizontal axis).
const HEAD: f64 = 26.0;
const FOOT: f64 = 52.0;
const SWATCH: f64 = 26.0;
pub(super) const ROW: f64 = 20.0;
/// Rows of a legend.
pub(super) const MOST_ROWS: usize = 10;
/// Lines as thick as that are bars.
pub(super) const BAR: f64 = 9.0;
/// Names of rows are cut to this.
const ROW_NAME: f64 = 120.0;
/// Dashes of bounds.
pub(super) const BOUND: (f64, f64) = (6.0, 5.0);
/// A figure of more panels than this would not be read.
const MOST_PANELS: usize = 8;

impl Stack {
    /// `None` when no panel has a point to draw.
    pub(super) fn new(panels: Vec<Panel>, x_label: &str, whole_x: bool) -> Option<Stack> {
        let mut panels: Vec<_> = panels.into_iter().filter(|p| p.range().is_some()).collect();
        let hidden = panels.len().saturating_sub(MOST_PANELS);
        panels.truncate(MOST_PANELS);
        (!panels.is_empty()).then(|| Stack {
            panels,
            x_label: x_label.to_owned(),
            whole_x,
            hidden,
            notes: vec![],
        })
    }

    /// Total height for panels of `panel` pixels each.
    pub(super) fn height(&self, panel: f64) -> f64 {
        let panels = self
            .panels
            .iter()
            .map(|p| p.height().unwrap_or(panel) + HEAD);
        panels.sum::<f64>() + FOOT
    }

    /// The frames of all panels in `area`; legends get what their names need, up to a quarter.
    pub(super) fn frames(&self, area: Rect) -> Vec<Frame> {
        let own: Vec<f64> = self.panels.iter().filter_map(Panel::height).collect();
        let shared = self.panels.len() - own.len();
        let room = area.height() - self.height(0.0);
        let share = (room / shared.max(1) as f64).max(20.0);
        let heights: Vec<f64> = self
            .panels
            .iter()
            .map(|p| p.height().unwrap_or(share))
            .collect();
        let ranges: Vec<_> = self
            .panels
            .iter()
            .map(|p| p.range().unwrap_or((0.0, 1.0)))
            .collect();
        let ticks: Vec<_> = self
            .panels
            .iter()
            .zip(&ranges)
            .zip(&heights)
            .map(|((p, r), height)| p.ticks(*r, *height))
            .collect();
        let labels = ticks.iter().map(Axis::label_width).fold(0.0, f64::max);
        let left = area.x0 + LABEL + 16.0 + labels + 9.0;
        let right = area.x1 - legend_gap(&self.panels) - self.legend_width(area);
        let xs = self
            .panels
            .iter()
            .flat_map(|p| p.curves.iter())
            .flat_map(|c| c.points.iter().flatten());
        let x_range = roomy(extent(xs.map(|p| p.0)).unwrap_or((0.0, 1.0)), 0.0);
        let x_ticks = linear_ticks(x_range, (right - left) / 90.0, self.whole_x);
        let frame = |(i, (range, ticks)): (usize, (&(f64, f64), Ticks))| {
            let above = heights[..i].iter().map(|h| h + HEAD).sum::<f64>();
            let (top, height) = (area.y0 + HEAD + above, heights[i]);
            let x = Axis {
                range: x_range,
                pixels: (left, right),
                ticks: x_ticks.clone(),
                label: self.x_label.clone(),
            };
            let label = self.panels[i].label.clone();
            let y = Axis {
                range: *range,
                pixels: (top + height, top),
                ticks,
                label,
            };
            Frame {
                x,
                y,
                name_x: area.x0 + LABEL,
                foot: i + 1 == self.panels.len(),
            }
        };
        ranges.iter().zip(ticks).enumerate().map(frame).collect()
    }

    fn legend_width(&self, area: Rect) -> f64 {
        let curves = self.panels.iter().flat_map(|p| p.curves.iter());
        let notes = self.panels.iter().flat_map(|p| p.notes.iter());
        let names = curves.map(|c| &c.name).chain(notes.map(|n| &n.1));
        let goals: Vec<Row> = self.panels.iter().flat_map(Panel::goal_rows).collect();
        let widest = (names.take(200))
            .chain(goals.iter().map(|g| &g.1))
            .map(|name| text_width(name, SMALL))
            .fold(text_width("bounds off scale", SMALL), f64::max);
        (widest + SWATCH + 8.0).min(area.width() / 4.0)
    }

    pub(super) fn draw(&self, sheet: &mut Sheet, area: Rect) {
        for (panel, frame) in self.panels.iter().zip(self.frames(area)) {
            frame.draw(sheet);
            if panel.angle {
                frame.guides_at_pi(sheet);
            }
            let rect = frame.rect();
            let bounds: Vec<_> = panel
                .curves
                .iter()
                .flat_map(|c| c.bounds)
                .flatten()
                .collect();
            let on_scale = |b: f64| b >= frame.y.range.0 && b <= frame.y.range.1;
            for curve in &panel.curves {
                for bound in curve.bounds.into_iter().flatten().filter(|b| on_scale(*b)) {
                    let y = frame.y.at(bound);
                    sheet.dashed(
                        vec![(rect.x0, y), (rect.x1, y)],
                        curve.ink.color,
                        1.0,
                        BOUND,
                    );
                }
                curve.draw(sheet, &frame);
            }
            let goals = || {
                panel
                    .curves
                    .iter()
                    .flat_map(|c| c.goals.iter().map(move |g| (c, g)))
            };
            for (curve, goal) in goals().filter(|g| on_scale(g.1.value)) {
                goal.draw(sheet, &frame, curve.ink.color);
            }
            let mut notes = panel.notes.clone();
            let name_of_bounds = panel.bound_name.unwrap_or("bounds");
            if bounds.iter().any(|b| on_scale(*b)) {
                let ink = Ink {
                    color: MUTED,
                    dash: Some(BOUND),
                    width: 1.0,
                };
                notes.push((Some(ink.into()), name_of_bounds.to_owned()));
            } else if !bounds.is_empty() {
                notes.push((None, format!("{name_of_bounds} off scale")));
            }
            notes.extend(panel.goal_rows());
            let named = panel.curves.iter().filter(|c| !c.name.is_empty());
            let rows = named.map(|c| (Some(c.ink.into()), c.name.clone()));
            let mut rows: Vec<Row> = rows.collect();
            let fits = (rect.height() / ROW) as usize;
            shorten(&mut rows, fits.saturating_sub(notes.len()));
            rows.extend(notes);
            let left = rect.x1 + legend_gap(&self.panels);
            legend(sheet, Rect::new(left, rect.y0, area.x1, rect.y1), &rows);
        }
    }
}

/// Guides name themselves beyond the right end of the panel; the legend keeps clear of them.
fn legend_gap(panels: &[Panel]) -> f64 {
    let guided = |p: &Panel| p.angle && p.range().is_some_and(|r| !pi_multiples(r).is_empty());
    if panels.iter().any(guided) {
        46.0
    } else {
        20.0
    }
}

/// What stands before a name in a legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Swatch {
    Line(Ink),
    Goal(GoalKind),
}

impl From<Ink> for Swatch {
    fn from(ink: Ink) -> Self {
        Self::Line(ink)
    }
}

/// A row of a legend; the one that counts the rest has no swatch.
pub(super) type Row = (Option<Swatch>, String);

/// Names of the kinds of goals, each once, with whether any of them is on scale.
pub(super) fn goal_rows(goals: impl Iterator<Item = (GoalKind, bool)>) -> Vec<Row> {
    let mut kinds: Vec<(GoalKind, bool)> = vec![];
    for (kind, shown) in goals {
        match kinds.iter_mut().find(|k| k.0 == kind) {
            Some(known) => known.1 |= shown,
            None => kinds.push((kind, shown)),
        }
    }
    let row = |(kind, shown)| match shown {
        true => (Some(Swatch::Goal(kind)), name(kind).to_owned()),
        false => (None, format!("{} off scale", name(kind))),
    };
    kinds.into_iter().map(row).collect()
}

/// [`MOST_ROWS`], or as many as fit: the first ones and how many there are besides.
pub(super) fn shorten(rows: &mut Vec<Row>, fits: usize) {
    let (most, all) = (fits.clamp(2, MOST_ROWS), rows.len());
    if all > most {
        rows.truncate(most - 1);
        rows.push((None, format!("… {} more", all - most + 1)));
    }
}

/// Swatches and names from the top of `room`.
pub(super) fn legend(sheet: &mut Sheet, room: Rect, rows: &[Row]) {
    let mut y = room.y0 + 8.0 - ROW;
    for (swatch, name) in rows {
        y += ROW;
        let right = room.x0 + SWATCH - 6.0;
        match swatch {
            Some(Swatch::Line(ink)) => ink.draw(sheet, vec![(room.x0, y), (right, y)]),
            Some(Swatch::Goal(kind)) => symbol(sheet, *kind, (0.5 * (room.x0 + right), y), MUTED),
            None => {}
        }
        let color = if swatch.is_some() { INK } else { MUTED };
        let name = fit(name, SMALL, room.x1 - room.x0 - SWATCH);
        sheet.text(
            (room.x0 + SWATCH, y + 0.36 * SMALL),
            name,
            SMALL,
            Anchor::Start,
            color,
        );
    }
}

/// At most about `2 * BUCKETS` points: the first and last, and the smallest and largest of each
/// bucket, in order. What cannot be drawn becomes a gap.
pub(super) fn decimate(points: Vec<Option<Point>>) -> Vec<Option<Point>> {
    const BUCKETS: usize = 1000;
    let clean = |p: Point| Some((drawable(p.0)?, drawable(p.1)?));
    let points = points.into_iter().map(|p| p.and_then(clean));
    if points.len() <= 2 * BUCKETS {
        return points.collect();
    }
    let points: Vec<_> = points.collect();
    let size = points.len().div_ceil(BUCKETS);
    let ends = |bucket: &[Option<Point>]| {
        let known = || {
            bucket
                .iter()
                .enumerate()
                .filter_map(|(i, p)| p.map(|p| (i, p)))
        };
        let low = known().min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let high = known().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let mut kept: Vec<_> = [low, high].into_iter().flatten().collect();
        kept.sort_by_key(|k| k.0);
        kept.dedup_by_key(|k| k.0);
        // A bucket without any value is a gap.
        if kept.is_empty() {
            vec![None]
        } else {
            kept.into_iter().map(|k| Some(k.1)).collect()
        }
    };
    let mut kept: Vec<_> = points[..1].to_vec();
    kept.extend(points[1..points.len() - 1].chunks(size).flat_map(ends));
    kept.extend_from_slice(&points[points.len() - 1..]);
    kept
}
