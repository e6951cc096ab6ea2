//! A figure as a display list in nominal pixels: everything that can be decided without a backend is
//! decided here, so that SVG and PNG agree and layout can be tested.

use plotters::style::{FontFamily, FontStyle, IntoFont};

/// A colour; fading mixes with white rather than using transparency, so overlaps stay quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rgb(pub u8, pub u8, pub u8);

pub(super) const INK: Rgb = Rgb(0x26, 0x26, 0x26);
pub(super) const MUTED: Rgb = Rgb(0x66, 0x66, 0x66);
pub(super) const GUIDE: Rgb = Rgb(0xa0, 0xa0, 0xa0);
pub(super) const GRID: Rgb = Rgb(0xe6, 0xe6, 0xe6);
pub(super) const WHITE: Rgb = Rgb(0xff, 0xff, 0xff);

/// Okabe and Ito's colour-blind-safe palette, without the yellow that vanishes on white, then the darker ones of Tol's
/// muted palette, so that ten bodies have ten colours.
pub(crate) const PALETTE: [Rgb; 11] = [
    Rgb(0x00, 0x72, 0xb2),
    Rgb(0xd5, 0x5e, 0x00),
    Rgb(0x00, 0x9e, 0x73),
    Rgb(0xcc, 0x79, 0xa7),
    Rgb(0xe6, 0x9f, 0x00),
    Rgb(0x56, 0xb4, 0xe9),
    Rgb(0x4d, 0x4d, 0x4d),
    Rgb(0x88, 0x22, 0x55),
    Rgb(0x99, 0x99, 0x33),
    Rgb(0x33, 0x22, 0x88),
    Rgb(0xb0, 0x68, 0x40),
];

impl Rgb {
    /// `share` of this colour, the rest of `other`.
    pub(crate) fn mix(self, other: Rgb, share: f64) -> Rgb {
        let blend =
            |a: u8, b: u8| (f64::from(a) * share + f64::from(b) * (1.0 - share)).round() as u8;
        Rgb(
            blend(self.0, other.0),
            blend(self.1, other.1),
            blend(self.2, other.2),
        )
    }
}

/// Where a text sits relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

pub(super) type Point = (f64, f64);

/// What a sheet is made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Path {
        points: Vec<Point>,
        color: Rgb,
        width: f64,
    },
    /// A filled convex polygon.
    Area { points: Vec<Point>, color: Rgb },
    Disc {
        center: Point,
        radius: f64,
        color: Rgb,
    },
    /// `at` is on the baseline; `em` the font size; `up` reads from bottom to top.
    Text {
        at: Point,
        text: String,
        em: f64,
        anchor: Anchor,
        color: Rgb,
        up: bool,
    },
}

/// A rectangle, y down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub x0: f64,
    pub y0: f64,
    pub x1: f64,
    pub y1: f64,
}

impl Rect {
    pub(super) fn new(x0: f64, y0: f64, x1: f64, y1: f64) -> Self {
        Rect { x0, y0, x1, y1 }
    }

    pub(super) fn width(&self) -> f64 {
        self.x1 - self.x0
    }

    pub(super) fn height(&self) -> f64 {
        self.y1 - self.y0
    }
}

/// A white page with shapes on it, drawn in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sheet {
    pub size: (f64, f64),
    pub shapes: Vec<Shape>,
}

impl Sheet {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Sheet {
            size: (width, height),
            shapes: Vec::new(),
        }
    }

    pub(super) fn path(&mut self, points: Vec<Point>, color: Rgb, width: f64) {
        match points.as_slice() {
            [] => {}
            // A lone point has no length; it shows as a dot.
            [only] => self.disc(*only, width.max(1.0) * 1.25, color),
            _ => self.shapes.push(Shape::Path {
                points,
                color,
                width,
            }),
        }
    }

    pub(super) fn line(&mut self, from: Point, to: Point, color: Rgb, width: f64) {
        self.path(vec![from, to], color, width);
    }

    /// Like [`Sheet::path`], broken into dashes of `on` and gaps of `off` pixels.
    pub(super) fn dashed(
        &mut self,
        points: Vec<Point>,
        color: Rgb,
        width: f64,
        (on, off): (f64, f64),
    ) {
        let length: f64 = points.windows(2).map(|w| distance(w[0], w[1])).sum();
        // Dashes on a curve as dense as noise would be a grey smear and a huge file.
        if points.len() < 2 || length / (on + off) > 3000.0 {
            return self.path(points, color, width);
        }
        let (mut dash, mut left, mut drawing) = (vec![points[0]], on, true);
        for pair in points.windows(2) {
            let (mut from, to) = (pair[0], pair[1]);
            let mut rest = distance(from, to);
            while rest >= left {
                let share = if rest > 0.0 { left / rest } else { 1.0 };
                from = (
                    from.0 + (to.0 - from.0) * share,
                    from.1 + (to.1 - from.1) * share,
                );
                rest -= left;
                if drawing {
                    dash.push(from);
                    self.path(std::mem::take(&mut dash), color, width);
                } else {
                    dash = vec![from];
                }
                drawing = !drawing;
                left = if drawing { on } else { off };
            }
            left -= rest;
            if drawing {
                dash.push(to);
            }
        }
        if drawing && dash.len() > 1 {
            self.path(dash, color, width);
        }
    }

    pub(super) fn area(&mut self, points: Vec<Point>, color: Rgb) {
        self.shapes.push(Shape::Area { points, color });
    }

    pub(super) fn disc(&mut self, center: Point, radius: f64, color: Rgb) {
        self.shapes.push(Shape::Disc {
            center,
            radius,
            color,
        });
    }

    pub(super) fn text(
        &mut self,
        at: Point,
        text: impl Into<String>,
        em: f64,
        anchor: Anchor,
        color: Rgb,
    ) {
        let text = clean(&text.into());
        self.shapes.push(Shape::Text {
            at,
            text,
            em,
            anchor,
            color,
            up: false,
        });
    }

    pub(super) fn text_up(&mut self, at: Point, text: impl Into<String>, em: f64, color: Rgb) {
        let text = clean(&text.into());
        self.shapes.push(Shape::Text {
            at,
            text,
            em,
            anchor: Anchor::Middle,
            color,
            up: true,
        });
    }
}

pub(super) fn distance(a: Point, b: Point) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

/// Characters that XML 1.0 does not allow would make the SVG unreadable.
fn clean(text: &str) -> String {
    let banned = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars()
        .map(|c| if banned(c) { ' ' } else { c })
        .collect()
}

/// Family under which the embedded font is known; viewers of an SVG without it fall back.
pub(super) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

/// plotters scales a font by its line height, DejaVu Sans' is this many em.
pub(super) const LINE_PER_EM: f64 = 2384.0 / 2048.0;

const MOST_CHARS: usize = 400;

/// Width of a text in nominal pixels; from the embedded font, never a system font.
pub(super) fn text_width(text: &str, em: f64) -> f64 {
    super::paint::register();
    let font = (
        FontFamily::Name(FAMILY),
        1000.0 * LINE_PER_EM,
        FontStyle::Normal,
    )
        .into_font();
    // Nothing longer fits on a sheet; names come from files and may be of any length.
    let text: String = text.chars().take(MOST_CHARS).collect();
    let text = super::paint::spelled(&text);
    match font.box_size(&text) {
        Ok((width, _)) => f64::from(width) * em / 1000.0,
        Err(_) => 0.65 * em * text.chars().count() as f64,
    }
}

/// The text, cut to fit `width` pixels.
pub(super) fn fit(text: &str, em: f64, width: f64) -> String {
    let mut chars: Vec<char> = text.chars().take(MOST_CHARS).collect();
    if chars.len() == text.chars().count() && text_width(text, em) <= width {
        return text.to_owned();
    }
    loop {
        let cut: String = chars.iter().collect::<String>().trim_end().to_owned() + "…";
        if chars.is_empty() || text_width(&cut, em) <= width {
            return cut;
        }
        chars.pop();
    }
}
