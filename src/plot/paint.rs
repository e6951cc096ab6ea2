//! From a sheet to SVG or PNG bytes, through plotters' backends.

use super::sheet::{Anchor, FAMILY, LINE_PER_EM, Point, Rgb, Shape, Sheet};
use super::{Format, PlotError};
use ab_glyph::{Font, FontRef};
use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle, register_font};
use std::borrow::Cow;
use std::sync::OnceLock;

pub(crate) static FONT: &[u8] = include_bytes!("../../assets/fonts/DejaVuSans.ttf");

/// Makes the embedded font known to plotters, once; whether it was accepted.
pub(super) fn register() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| register_font(FAMILY, FontStyle::Normal, FONT).is_ok())
}

/// The text as a bitmap shows it: what the embedded font cannot draw is spelled out, so that names stay apart. An SVG
/// keeps the characters, for its viewer's fonts.
pub(crate) fn spelled(text: &str) -> Cow<'_, str> {
    static GLYPHS: OnceLock<Option<FontRef>> = OnceLock::new();
    let font = GLYPHS.get_or_init(|| FontRef::try_from_slice(FONT).ok());
    let missing = |c: char| font.as_ref().is_some_and(|f| f.glyph_id(c).0 == 0);
    if text.is_ascii() || !text.chars().any(missing) {
        return Cow::Borrowed(text);
    }
    let spell = |c: char| match missing(c) {
        true => format!("[U+{:04X}]", c as u32),
        false => c.to_string(),
    };
    text.chars().map(spell).collect::<String>().into()
}

/// Backends count whole pixels: an SVG is drawn ten times larger and shown smaller by its view box.
const SVG_SCALE: f64 = 10.0;
/// A PNG has two pixels per nominal pixel, each the mean of `OVERSAMPLING` squared drawn ones.
const PNG_SCALE: f64 = 2.0;
const OVERSAMPLING: usize = 2;

/// How a backend understands a font size: size per em, and the baseline below the anchor, per em.
struct FontRule {
    size: f64,
    baseline: f64,
    /// What the embedded font lacks is spelled out.
    spelled: bool,
}

pub(super) fn paint(sheet: &Sheet, format: Format) -> Result<Vec<u8>, PlotError> {
    if !register() {
        return Err(PlotError::Font);
    }
    match format {
        Format::Svg => svg(sheet),
        Format::Png => png(sheet),
    }
}

fn svg(sheet: &Sheet) -> Result<Vec<u8>, PlotError> {
    let (width, height) = (sheet.size.0.round(), sheet.size.1.round());
    let inner = ((width * SVG_SCALE) as u32, (height * SVG_SCALE) as u32);
    let mut text = String::new();
    let mut backend = SVGBackend::with_string(&mut text, inner);
    // plotters writes font-size = size / 1.24 and, for texts hung from the top, dy = 0.76em.
    let rule = FontRule {
        size: 1.24,
        baseline: 0.76,
        spelled: false,
    };
    for shape in &sheet.shapes {
        match shape {
            Shape::Path {
                points,
                color,
                width,
            } => {
                let points: Vec<_> = points.iter().map(|p| scaled(*p, SVG_SCALE)).collect();
                backend
                    .draw_path(points, &style(*color, width * SVG_SCALE))
                    .map_err(backend_error)?;
            }
            other => draw(&mut backend, other, SVG_SCALE, &rule)?,
        }
    }
    backend.present().map_err(backend_error)?;
    drop(backend);
    let body = text.split_once('>').map_or("", |(_, rest)| rest);
    let header = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" \
         xmlns=\"http://www.w3.org/2000/svg\" stroke-linejoin=\"round\" stroke-linecap=\"round\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>",
        inner.0, inner.1
    );
    Ok((header + body).into_bytes())
}

fn png(sheet: &Sheet) -> Result<Vec<u8>, PlotError> {
    let scale = PNG_SCALE * OVERSAMPLING as f64;
    let (width, height) = (
        (sheet.size.0 * PNG_SCALE).round() as usize,
        (sheet.size.1 * PNG_SCALE).round() as usize,
    );
    let (wide, high) = (width * OVERSAMPLING, height * OVERSAMPLING);
    let mut pixels = vec![0xff_u8; wide * high * 3];
    {
        let mut backend = BitMapBackend::with_buffer(&mut pixels, (wide as u32, high as u32));
        // Drawn at `size` pixels of line height, with the baseline half a size below the anchor.
        let rule = FontRule {
            size: LINE_PER_EM,
            baseline: LINE_PER_EM / 2.0,
            spelled: true,
        };
        for shape in &sheet.shapes {
            match shape {
                Shape::Path {
                    points,
                    color,
                    width,
                } => stroke(&mut backend, points, *color, *width, scale)?,
                other => draw(&mut backend, other, scale, &rule)?,
            }
        }
        backend.present().map_err(backend_error)?;
    }
    let small = shrink(&pixels, wide, width, height);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(backend_error)?;
    writer.write_image_data(&small).map_err(backend_error)?;
    writer.finish().map_err(backend_error)?;
    Ok(bytes)
}

/// Means over squares of `OVERSAMPLING` pixels.
fn shrink(pixels: &[u8], wide: usize, width: usize, height: usize) -> Vec<u8> {
    let mut small = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let sum: u32 = (0..OVERSAMPLING * OVERSAMPLING)
                    .map(|i| {
                        (y * OVERSAMPLING + i / OVERSAMPLING) * wide
                            + x * OVERSAMPLING
                            + i % OVERSAMPLING
                    })
                    .map(|i| u32::from(pixels[i * 3 + channel]))
                    .sum();
                let count = (OVERSAMPLING * OVERSAMPLING) as u32;
                small.push(((sum + count / 2) / count) as u8);
            }
        }
    }
    small
}

/// Segment by segment with round joints: plotters' own outline of a thick path breaks up on sharp
/// turns and repeated points, and truncation makes its width depend on the direction.
fn stroke(
    backend: &mut BitMapBackend<'_>,
    points: &[Point],
    color: Rgb,
    width: f64,
    scale: f64,
) -> Result<(), PlotError> {
    let pen = style(color, 1.0);
    // A polygon includes the pixels of its outline, half a pixel on either side.
    let half = ((width * scale - 1.0) / 2.0).max(0.0);
    for pair in points.windows(2) {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        let length = (x1 - x0).hypot(y1 - y0);
        if length * scale < 0.5 {
            continue;
        }
        let reach = half / scale / length;
        let (dx, dy) = ((y0 - y1) * reach, (x1 - x0) * reach);
        let corners = [
            (x0 + dx, y0 + dy),
            (x1 + dx, y1 + dy),
            (x1 - dx, y1 - dy),
            (x0 - dx, y0 - dy),
        ];
        backend
            .fill_polygon(corners.map(|c| scaled(c, scale)), &pen)
            .map_err(backend_error)?;
    }
    for point in points {
        backend
            .draw_circle(scaled(*point, scale), half as u32, &pen, true)
            .map_err(backend_error)?;
    }
    Ok(())
}

/// Areas, discs and texts, which both backends draw well.
fn draw<B: DrawingBackend>(
    backend: &mut B,
    shape: &Shape,
    scale: f64,
    rule: &FontRule,
) -> Result<(), PlotError> {
    match shape {
        Shape::Area { points, color } => {
            let points: Vec<_> = points.iter().map(|p| scaled(*p, scale)).collect();
            backend.fill_polygon(points, &style(*color, 1.0))
        }
        Shape::Disc {
            center,
            radius,
            color,
        } => {
            let pen = style(*color, 1.0);
            backend.draw_circle(
                scaled(*center, scale),
                (radius * scale).round().max(1.0) as u32,
                &pen,
                true,
            )
        }
        Shape::Text {
            at,
            text,
            em,
            anchor,
            color,
            up,
        } => {
            let drop = rule.baseline * em;
            let at = if *up {
                (at.0 - drop, at.1)
            } else {
                (at.0, at.1 - drop)
            };
            let h_pos = match anchor {
                Anchor::Start => HPos::Left,
                Anchor::Middle => HPos::Center,
                Anchor::End => HPos::Right,
            };
            let (font, ink) = ((FAMILY, em * scale * rule.size), rgb(*color));
            let mut pen = TextStyle::from(font)
                .color(&ink)
                .pos(Pos::new(h_pos, VPos::Top));
            if *up {
                pen = pen.transform(FontTransform::Rotate270);
            }
            let text = match rule.spelled {
                true => spelled(text),
                false => text.into(),
            };
            backend.draw_text(&text, &pen, scaled(at, scale))
        }
        Shape::Path { .. } => Ok(()),
    }
    .map_err(backend_error)
}

fn scaled(point: Point, scale: f64) -> (i32, i32) {
    // A float to integer cast saturates; half the range keeps sums inside a backend from wrapping.
    let whole = |v: f64| (v * scale).round().clamp(-1e8, 1e8) as i32;
    (whole(point.0), whole(point.1))
}

fn rgb(color: Rgb) -> RGBColor {
    RGBColor(color.0, color.1, color.2)
}

fn style(color: Rgb, width: f64) -> ShapeStyle {
    ShapeStyle::from(rgb(color)).stroke_width(width.round().max(1.0) as u32)
}

fn backend_error(error: impl std::fmt::Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}
