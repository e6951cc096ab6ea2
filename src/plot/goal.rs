//! Marks of what costs and constraints want.

use super::axis::{Frame, drawable};
use super::sheet::{Point, Rgb, Sheet, WHITE};
use crate::format::recording::{Goal, GoalKind};

/// Half of a mark's size, px.
const SIZE: f64 = 5.0;
/// Radius of a ring, which may be around another mark, px.
const RING: f64 = 7.0;
/// Dots of a line along which something is wanted.
const DOTS: (f64, f64) = (2.0, 4.0);

/// Wanted of a curve, from one time to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    pub kind: GoalKind,
    pub value: f64,
    pub span: (f64, f64),
}

impl Mark {
    /// `None` where there is no such knot, or nothing that can be drawn.
    pub(super) fn new(goal: &Goal, time: &[f64]) -> Option<Mark> {
        let at = |k: usize| time.get(k).copied().and_then(drawable);
        Some(Mark {
            kind: goal.kind,
            value: drawable(goal.value)?,
            span: (at(goal.first)?, at(goal.last)?),
        })
    }

    pub(super) fn draw(&self, sheet: &mut Sheet, frame: &Frame, color: Rgb) {
        let (from, to) = (
            frame.at((self.span.0, self.value)),
            frame.at((self.span.1, self.value)),
        );
        if to.0 - from.0 > 2.0 * SIZE {
            sheet.dashed(vec![from, to], color, 1.5, DOTS);
            symbol(sheet, self.kind, from, color);
        }
        symbol(sheet, self.kind, to, color);
    }
}

/// What a legend calls it.
pub(super) fn name(kind: GoalKind) -> &'static str {
    match kind {
        GoalKind::Target => "target",
        GoalKind::Equal => "constraint =",
        GoalKind::Less => "constraint ≤",
        GoalKind::Greater => "constraint ≥",
    }
}

/// A bar across the direction to the side that is allowed, with an arrow along it as far as the direction lies in the page.
pub(super) fn boundary(sheet: &mut Sheet, (x, y): Point, (a, b): Point, color: Rgb) {
    let length = a.hypot(b);
    // seen along the direction there is no side
    let (along, share) = match length > 1e-3 {
        true => ((a / length, b / length), length.min(1.0)),
        false => ((0.0, 1.0), 0.0),
    };
    let at = |across: f64, ahead: f64| {
        let (across, ahead) = (across * SIZE, ahead * share * SIZE);
        (
            x - along.1 * across + along.0 * ahead,
            y + along.0 * across + along.1 * ahead,
        )
    };
    sheet.line(at(-2.0, 0.0), at(2.0, 0.0), color, 1.5);
    sheet.area(vec![at(-0.8, 0.0), at(0.8, 0.0), at(0.0, 1.4)], color);
}

/// A ring, a diamond, or a bar with an arrow to the side that is allowed.
pub(super) fn symbol(sheet: &mut Sheet, kind: GoalKind, (x, y): Point, color: Rgb) {
    let arrow = |sheet: &mut Sheet, down: f64| {
        sheet.line((x - SIZE, y), (x + SIZE, y), color, 1.5);
        let corners = [(-0.8, 0.0), (0.8, 0.0), (0.0, 1.4)];
        let corner = |(a, b): Point| (x + a * SIZE, y + down * b * SIZE);
        sheet.area(corners.map(corner).to_vec(), color);
    };
    match kind {
        GoalKind::Target => {
            sheet.disc((x, y), RING, color);
            sheet.disc((x, y), RING - 1.5, WHITE);
        }
        GoalKind::Equal => {
            let corners = [(-SIZE, 0.0), (0.0, -SIZE), (SIZE, 0.0), (0.0, SIZE)];
            sheet.area(corners.map(|(a, b)| (x + a, y + b)).to_vec(), color);
        }
        GoalKind::Less => arrow(sheet, 1.0),
        GoalKind::Greater => arrow(sheet, -1.0),
    }
}
