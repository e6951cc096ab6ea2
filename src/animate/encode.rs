//! Pictures to GIF and animated PNG. Only what changed since the picture before is written.

use super::AnimateError;
use color_quant::NeuQuant;
use rayon::prelude::*;

/// Pictures that are drawn at once: bounds the memory.
const BATCH: usize = 16;
/// Pictures, and one in so many of their pixels, that the colours of a GIF are chosen from.
const SAMPLED: (usize, usize) = (6, 5);
/// Its colours, one left for what did not change.
const COLORS: usize = 255;
const UNCHANGED: u8 = 255;
/// How thoroughly colours are sought, 1 to 30: 10 is the authors' advice.
const EFFORT: i32 = 10;
/// Bits of a channel by which the nearest colour is looked up.
const BITS: usize = 6;

/// A film to be.
pub(super) struct Pictures<'a> {
    pub size: [usize; 2],
    pub count: usize,
    /// A second.
    pub rate: f64,
    /// How long the last one stays, s.
    pub rest: f64,
    /// Red, green, blue of every pixel.
    pub draw: &'a (dyn Fn(usize) -> Vec<u8> + Sync),
}

/// Columns and rows.
type Window = [std::ops::Range<usize>; 2];

impl Pictures<'_> {
    /// Every picture in turn, with the part of it that differs from the one before.
    fn each(
        &self,
        mut see: impl FnMut(usize, &[u8], &[u8], Window) -> Result<(), AnimateError>,
    ) -> Result<(), AnimateError> {
        let mut before: Vec<u8> = vec![];
        for start in (0..self.count).step_by(BATCH) {
            let batch = start..(start + BATCH).min(self.count);
            let drawn: Vec<Vec<u8>> = batch.clone().into_par_iter().map(self.draw).collect();
            for (i, picture) in batch.zip(drawn) {
                see(i, &picture, &before, self.changed(&picture, &before))?;
                before = picture;
            }
        }
        Ok(())
    }

    /// How long a picture is shown, in these parts of a second.
    fn delay(&self, i: usize, parts: f64) -> u16 {
        let rest = if i + 1 == self.count { self.rest } else { 0.0 };
        ((1.0 / self.rate + rest) * parts).round() as u16
    }

    fn changed(&self, picture: &[u8], before: &[u8]) -> Window {
        let [width, height] = self.size;
        let row = |bytes: &[u8], y: usize| bytes[3 * width * y..3 * width * (y + 1)].to_vec();
        if before.is_empty() {
            return [0..width, 0..height];
        }
        let (mut columns, mut rows) = (width..0, height..0);
        for y in 0..height {
            let (new, old) = (row(picture, y), row(before, y));
            let differs = |x: &usize| new[3 * x..3 * x + 3] != old[3 * x..3 * x + 3];
            let Some(first) = (0..width).find(differs) else {
                continue;
            };
            let last = (first..width).rev().find(differs).unwrap_or(first);
            columns = columns.start.min(first)..columns.end.max(last + 1);
            rows = rows.start.min(y)..y + 1;
        }
        match rows.is_empty() {
            // a picture has one pixel at least
            true => [0..1, 0..1],
            false => [columns, rows],
        }
    }
}

fn failed(e: impl std::fmt::Display) -> AnimateError {
    AnimateError::Encoding(e.to_string())
}

/// A GIF that repeats.
pub(super) fn write_gif(pictures: &Pictures) -> Result<Vec<u8>, AnimateError> {
    let [width, height] = pictures.size;
    let palette = Palette::new(pictures);
    let mut bytes = vec![];
    let (w, h) = (width as u16, height as u16);
    let mut encoder = gif::Encoder::new(&mut bytes, w, h, &palette.colors).map_err(failed)?;
    encoder.set_repeat(gif::Repeat::Infinite).map_err(failed)?;
    pictures.each(|i, picture, before, [columns, rows]| {
        let mut buffer = Vec::with_capacity(columns.len() * rows.len());
        for y in rows.clone() {
            for x in columns.clone() {
                let at = 3 * (y * width + x);
                let own = palette.index(&picture[at..at + 3]);
                // colours that became one did not change either
                let same = before
                    .get(at..at + 3)
                    .is_some_and(|b| palette.index(b) == own);
                buffer.push(if same { UNCHANGED } else { own });
            }
        }
        let frame = gif::Frame {
            delay: pictures.delay(i, 100.0),
            dispose: gif::DisposalMethod::Keep,
            transparent: Some(UNCHANGED),
            left: columns.start as u16,
            top: rows.start as u16,
            width: columns.len() as u16,
            height: rows.len() as u16,
            buffer: buffer.into(),
            ..gif::Frame::default()
        };
        encoder.write_frame(&frame).map_err(failed)
    })?;
    drop(encoder);
    Ok(bytes)
}

/// The colours of a GIF.
struct Palette {
    colors: Vec<u8>,
    nearest: Vec<u8>,
}

impl Palette {
    fn new(pictures: &Pictures) -> Palette {
        let (most, stride) = SAMPLED;
        let count = pictures.count.min(most);
        let chosen: Vec<usize> = (0..count)
            .map(|i| i * (pictures.count - 1) / (count - 1).max(1))
            .collect();
        let drawn: Vec<Vec<u8>> = chosen.into_par_iter().map(pictures.draw).collect();
        let sample = |picture: &Vec<u8>| -> Vec<u8> {
            let pixels = picture.chunks_exact(3).step_by(stride);
            pixels.flat_map(|p| [p[0], p[1], p[2], 255]).collect()
        };
        let pixels: Vec<u8> = drawn.iter().flat_map(sample).collect();
        let mut colors = NeuQuant::new(EFFORT, COLORS, &pixels).color_map_rgb();
        // the background is most of every picture
        colors[..3].fill(255);
        colors.resize(3 * (COLORS + 1), 0);
        let nearest = (0..1 << (3 * BITS)).into_par_iter().map(|code: usize| {
            let level = |shift: usize| {
                let v = code >> (BITS * shift) & ((1 << BITS) - 1);
                (v * 255 / ((1 << BITS) - 1)) as i32
            };
            let wanted = [level(2), level(1), level(0)];
            let distance = |i: &usize| -> i32 {
                let of = |k: usize| i32::from(colors[3 * i + k]) - wanted[k];
                (0..3).map(|k| of(k) * of(k)).sum()
            };
            (0..COLORS).min_by_key(distance).unwrap_or(0) as u8
        });
        Palette {
            nearest: nearest.collect(),
            colors,
        }
    }

    fn index(&self, pixel: &[u8]) -> u8 {
        let code = pixel.iter().fold(0, |code, v| {
            let level = (usize::from(*v) * ((1 << BITS) - 1) + 127) / 255;
            code << BITS | level
        });
        self.nearest[code]
    }
}

/// An animated PNG that repeats; a plain one of a single picture.
pub(super) fn write_png(pictures: &Pictures) -> Result<Vec<u8>, AnimateError> {
    let [width, height] = pictures.size;
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_filter(png::FilterType::Paeth);
    if pictures.count > 1 {
        let count = pictures.count as u32;
        encoder.set_animated(count, 0).map_err(failed)?;
        encoder.set_blend_op(png::BlendOp::Source).map_err(failed)?;
        encoder
            .set_dispose_op(png::DisposeOp::None)
            .map_err(failed)?;
    }
    let mut writer = encoder.write_header().map_err(failed)?;
    pictures.each(|i, picture, _, [columns, rows]| {
        if pictures.count > 1 {
            let delay = pictures.delay(i, 1000.0);
            writer.set_frame_delay(delay, 1000).map_err(failed)?;
            if i > 0 {
                writer.reset_frame_position().map_err(failed)?;
                let (w, h) = (columns.len() as u32, rows.len() as u32);
                writer.set_frame_dimension(w, h).map_err(failed)?;
                let (x, y) = (columns.start as u32, rows.start as u32);
                writer.set_frame_position(x, y).map_err(failed)?;
            }
        }
        let line = |y: usize| {
            let from = 3 * (y * width + columns.start);
            &picture[from..from + 3 * columns.len()]
        };
        let part: Vec<u8> = rows.flat_map(|y| line(y).iter().copied()).collect();
        writer.write_image_data(&part).map_err(failed)
    })?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: [usize; 2] = [9, 7];

    /// A red pixel that goes down the diagonal over white; at the end nothing changes any more.
    fn drawn(i: usize) -> Vec<u8> {
        let mut picture = vec![255; 3 * SIZE[0] * SIZE[1]];
        let at = 3 * (i.min(4) * SIZE[0] + i.min(4));
        picture[at..at + 3].copy_from_slice(&[200, 30, 30]);
        picture
    }

    fn pictures() -> Pictures<'static> {
        Pictures {
            size: SIZE,
            count: 6,
            rate: 25.0,
            rest: 0.5,
            draw: &drawn,
        }
    }

    #[test]
    fn a_gif_shows_what_was_drawn() {
        let bytes = write_gif(&pictures()).expect("a GIF");
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(bytes.as_slice()).expect("a header");
        assert_eq!((decoder.width(), decoder.height()), (9, 7));
        let mut canvas = vec![0; 4 * SIZE[0] * SIZE[1]];
        let mut delays = vec![];
        while let Some(frame) = decoder.read_next_frame().expect("a frame") {
            for (k, pixel) in frame.buffer.chunks_exact(4).enumerate() {
                let (x, y) = (k % usize::from(frame.width), k / usize::from(frame.width));
                let at = (y + usize::from(frame.top)) * SIZE[0] + x + usize::from(frame.left);
                if pixel[3] > 0 {
                    canvas[4 * at..4 * at + 4].copy_from_slice(pixel);
                }
            }
            let expected = drawn(delays.len());
            for (own, wanted) in canvas.chunks_exact(4).zip(expected.chunks_exact(3)) {
                let near = |i: usize| own[i].abs_diff(wanted[i]) < 24;
                assert!((0..3).all(near), "{own:?} {wanted:?}");
            }
            delays.push(frame.delay);
        }
        assert_eq!(delays, [4, 4, 4, 4, 4, 54]);
    }

    #[test]
    fn an_animated_png_shows_what_was_drawn() {
        let bytes = write_png(&pictures()).expect("a PNG");
        let mut reader = png::Decoder::new(bytes.as_slice())
            .read_info()
            .expect("a header");
        assert_eq!(
            reader.info().animation_control.map(|a| a.num_frames),
            Some(6)
        );
        let mut canvas = drawn(0);
        for i in 0..6 {
            let mut part = vec![0; reader.output_buffer_size()];
            reader.next_frame(&mut part).expect("a frame");
            let control = *reader.info().frame_control().expect("a frame's place");
            let (width, left) = (control.width as usize, control.x_offset as usize);
            for y in 0..control.height as usize {
                let to = 3 * ((y + control.y_offset as usize) * SIZE[0] + left);
                canvas[to..to + 3 * width]
                    .copy_from_slice(&part[3 * width * y..3 * width * (y + 1)]);
            }
            assert_eq!(canvas, drawn(i), "{i}");
        }
    }

    #[test]
    fn only_what_changed_is_written() {
        let p = pictures();
        let [columns, rows] = p.changed(&drawn(2), &drawn(1));
        assert_eq!((columns, rows), (1..3, 1..3));
        assert_eq!(p.changed(&drawn(5), &drawn(4)), [0..1, 0..1]);
        assert_eq!(p.changed(&drawn(0), &[]), [0..9, 0..7]);
    }
}
