//! Ranges, ticks and the frame that every panel shares.

use super::sheet::{Anchor, GRID, GUIDE, INK, MUTED, Point, Rect, Sheet, fit, text_width};
use std::f64::consts::PI;

/// Font size of tick and legend labels, and of axis names, px.
pub(super) const SMALL: f64 = 14.0;
pub(super) const LABEL: f64 = 15.0;

/// A value that can be drawn. Beyond this size, differences and squares overflow.
pub(super) fn drawable(value: f64) -> Option<f64> {
    (value.is_finite() && value.abs() < 1e150).then_some(value)
}

/// Smallest range holding all values; `None` without any.
pub(super) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((lo, hi)) => Some((v.min(lo), v.max(hi))),
    })
}

/// The range to show values of `lo..=hi` in: with `margin` on either side, and never empty. Values
/// that differ by rounding alone are shown as constant.
pub(super) fn roomy((lo, hi): (f64, f64), margin: f64) -> (f64, f64) {
    let (span, size) = (hi - lo, lo.abs().max(hi.abs()));
    if span <= 1e-11 * size || span < 1e-290 {
        let pad = if size < 1e-280 { 1.0 } else { 0.1 * size };
        return (lo - pad, hi + pad);
    }
    (lo - margin * span, hi + margin * span)
}

/// Ticks of an axis: values with labels, and what to multiply and add to the labels, if anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ticks {
    pub marks: Vec<(f64, String)>,
    pub note: Option<String>,
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
pub(crate) fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|d| d * power >= rough * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * power
}

/// About `count` round values within `lo..=hi`.
pub(super) fn linear_ticks((lo, hi): (f64, f64), count: f64, whole: bool) -> Ticks {
    let mut step = nice_step((hi - lo) / count.max(1.0));
    if whole {
        step = step.max(1.0);
    }
    let (first, last) = ((lo / step - 1e-9).ceil(), (hi / step + 1e-9).floor());
    if !(step.is_normal() && last - first < 100.0) {
        return Ticks::default();
    }
    if last - first < 1.0 && !whole && count < 20.0 {
        // A single tick tells no scale.
        return linear_ticks((lo, hi), 1.5 * count.max(1.0), whole);
    }
    let indices: Vec<f64> = (0..=(last - first) as i32)
        .map(|i| first + f64::from(i))
        .collect();
    // Far from zero, labels count from a round value nearby, so that they stay short.
    let far = first.abs().max(last.abs()) > 99_999.0 && !whole;
    let base = if far {
        ((first + last) / 200.0).round() * 100.0
    } else {
        0.0
    };
    let largest = (first - base).abs().max((last - base).abs()) * step;
    let power = match largest {
        v if v == 0.0 || (1e-3..99_999.5).contains(&v) => 0,
        v => (v.log10() + 1e-9).floor() as i32,
    };
    // The step in units of the last digit decides the decimals: 1, 2 and 5 need no more.
    let decimals = (power - (step.log10() + 1e-9).floor() as i32).clamp(0, 12) as usize;
    let label = |index: f64| {
        let value = (index - base) * step / 10_f64.powi(power);
        minus(&format!(
            "{:.*}",
            decimals,
            if value == 0.0 { 0.0 } else { value }
        ))
    };
    let mut note = Vec::new();
    if power != 0 {
        note.push(format!("×10{}", superscript(power)));
    }
    if base != 0.0 {
        note.push(format!(
            "{} {}",
            if base < 0.0 { "−" } else { "+" },
            number((base * step).abs(), 15)
        ));
    }
    Ticks {
        marks: indices.into_iter().map(|i| (i * step, label(i))).collect(),
        note: (!note.is_empty()).then(|| note.join(" ")),
    }
}

/// Powers of ten for an axis of decimal logarithms; at most `count` are labelled.
pub(super) fn decade_ticks((lo, hi): (f64, f64), count: f64) -> Ticks {
    let (first, last) = ((lo - 1e-9).ceil() as i32, (hi + 1e-9).floor() as i32);
    let stride = (f64::from(last - first + 1) / count.max(1.0))
        .ceil()
        .max(1.0) as i32;
    let marks = (first..=last)
        .filter(|p| p % stride == 0)
        .map(|p| (f64::from(p), format!("10{}", superscript(p))));
    Ticks {
        marks: marks.collect(),
        note: None,
    }
}

fn superscript(power: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' => '⁰',
        digit => char::from_u32(digit as u32 - u32::from('4') + u32::from('⁴')).unwrap_or(digit),
    };
    power.to_string().chars().map(raised).collect()
}

fn minus(text: &str) -> String {
    text.replace('-', "−")
}

/// A number for a caption, with at most `digits` significant ones and no trailing zeros.
pub(super) fn number(value: f64, digits: usize) -> String {
    let power = if value == 0.0 {
        0
    } else {
        value.abs().log10().floor() as i32
    };
    if !(-4..15).contains(&power) {
        return minus(&format!("{:.*e}", digits.min(3) - 1, value));
    }
    let decimals = (digits as i32 - 1 - power).max(0) as usize;
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    minus(text)
}

/// A linear map from a range to pixels, with its ticks.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub range: (f64, f64),
    pub pixels: (f64, f64),
    pub ticks: Ticks,
    pub label: String,
}

impl Axis {
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value - self.range.0) / (self.range.1 - self.range.0);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Pixels the tick labels of a vertical axis need.
    pub(super) fn label_width(ticks: &Ticks) -> f64 {
        ticks
            .marks
            .iter()
            .map(|(_, label)| text_width(label, SMALL))
            .fold(0.0, f64::max)
    }
}

/// A pair of axes around a rectangle.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub x: Axis,
    pub y: Axis,
    /// Where the names of vertical axes are centred, so that those of a stack line up.
    pub name_x: f64,
    /// Tick labels and name of the horizontal axis are shown; only the lowest panel of a stack has them.
    pub foot: bool,
}

impl Frame {
    pub(super) fn rect(&self) -> Rect {
        Rect::new(
            self.x.pixels.0,
            self.y.pixels.1,
            self.x.pixels.1,
            self.y.pixels.0,
        )
    }

    pub(super) fn at(&self, (x, y): Point) -> Point {
        (self.x.at(x), self.y.at(y))
    }

    /// Grid, axes, ticks and names; drawn before any data.
    pub(super) fn draw(&self, sheet: &mut Sheet) {
        let rect = self.rect();
        let (left, bottom) = (rect.x0, rect.y1);
        let inside = |v: f64, a: f64, b: f64| v >= a - 0.5 && v <= b + 0.5;
        for (value, label) in &self.x.ticks.marks {
            let x = self.x.at(*value);
            if !inside(x, rect.x0, rect.x1) {
                continue;
            }
            sheet.line((x, rect.y0), (x, bottom), GRID, 1.0);
            sheet.line((x, bottom), (x, bottom + 5.0), INK, 1.0);
            if self.foot {
                sheet.text((x, bottom + 20.0), label, SMALL, Anchor::Middle, INK);
            }
        }
        for (value, label) in &self.y.ticks.marks {
            let y = self.y.at(*value);
            if inside(y, rect.y0, rect.y1) {
                sheet.line((left, y), (rect.x1, y), GRID, 1.0);
                sheet.line((left - 5.0, y), (left, y), INK, 1.0);
                sheet.text(
                    (left - 9.0, y + 0.36 * SMALL),
                    label,
                    SMALL,
                    Anchor::End,
                    INK,
                );
            }
        }
        sheet.line((left, rect.y0), (left, bottom), INK, 1.0);
        sheet.line((left, bottom), (rect.x1, bottom), INK, 1.0);
        if let Some(note) = &self.y.ticks.note {
            sheet.text(
                (left, rect.y0 - 7.0),
                note,
                SMALL - 1.0,
                Anchor::Start,
                MUTED,
            );
        }
        let name = short_name(&self.y.label, rect.height() + 20.0);
        sheet.text_up((self.name_x, (rect.y0 + rect.y1) / 2.0), name, LABEL, INK);
        if self.foot {
            let note = self
                .x
                .ticks
                .note
                .as_ref()
                .map(|n| format!(" ({n})"))
                .unwrap_or_default();
            let at = ((rect.x0 + rect.x1) / 2.0, bottom + 43.0);
            sheet.text(
                at,
                fit(&(self.x.label.clone() + &note), LABEL, rect.width()),
                LABEL,
                Anchor::Middle,
                INK,
            );
        }
    }

    /// Thin dashed horizontals at multiples of pi, named beyond the right end.
    pub(super) fn guides_at_pi(&self, sheet: &mut Sheet) {
        let rect = self.rect();
        for k in pi_multiples(self.y.range) {
            let y = self.y.at(k as f64 * PI);
            sheet.dashed(vec![(rect.x0, y), (rect.x1, y)], GUIDE, 1.0, (6.0, 5.0));
            let sign = if k < 0 { "−" } else { "" };
            let count = if k.abs() == 1 {
                String::new()
            } else {
                k.abs().to_string()
            };
            let at = (rect.x1 + 10.0, y + 0.36 * SMALL);
            sheet.text(at, format!("{sign}{count}π"), SMALL, Anchor::Start, MUTED);
        }
    }
}

/// Multiples of pi worth a guide in a range of angles: none in a range so wide that they would crowd,
/// nor zero, which has a grid line.
pub(super) fn pi_multiples((lo, hi): (f64, f64)) -> Vec<i64> {
    if hi - lo >= 8.0 * PI || lo.abs() > 1e6 {
        return Vec::new();
    }
    ((lo / PI).ceil() as i64..=(hi / PI).floor() as i64)
        .filter(|k| *k != 0)
        .collect()
}

/// `name [unit]`, or the unit alone where there is no room.
fn short_name(label: &str, room: f64) -> String {
    match label.rfind('[') {
        Some(unit) if text_width(label, LABEL) > room => fit(&label[unit..], LABEL, room),
        _ => fit(label, LABEL, room),
    }
}
