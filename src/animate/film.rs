//! Films: a scene drawn picture by picture, with its title and the time.

use super::camera::Camera;
use super::encode::{Pictures, write_gif, write_png};
use super::look::{Color, along};
use super::mesh::{Mesh, vec3};
use super::raster::{Picture, Placed, Shadow};
use super::scene::{ARROW, Arrow, HEAD, PLUMP, Run, Scene};
use super::{AnimateError, Format};
use crate::plot::{FONT, spelled};
use crate::spatial::{Mat3, Quat, Vec3};
use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};

/// Pixels of a picture; each is the mean of `OVERSAMPLING` squared drawn ones.
const SIZE: [usize; 2] = [720, 480];
const OVERSAMPLING: usize = 2;
/// Pictures a second: players show a GIF whose pictures last less than two hundredths at another speed, and count
/// hundredths.
const GIF_RATE: f64 = 25.0;
const PNG_RATE: f64 = 30.0;
/// How long the last picture stays, s.
const REST: f64 = 0.8;

const BACKGROUND: Color = [1.0, 1.0, 1.0];
const FLOOR: Color = [0.955, 0.953, 0.945];
const LINES: Color = [0.86, 0.86, 0.85];
const INK: Color = [0.15, 0.15, 0.15];
const MUTED: Color = [0.4, 0.4, 0.4];
/// As in figures.
const FORCE: Color = [0.69, 0.06, 0.19];

/// Heights of texts and free pixels around them.
const TITLE: f32 = 19.0;
const TEXT: f32 = 15.0;
const MARGIN: f32 = 16.0;
/// Characters of a title or a name at most.
const MOST_CHARACTERS: usize = 60;

/// When pictures are taken.
pub(super) struct Plan {
    /// Times of the scene, s.
    pub times: Vec<f64>,
    /// Seconds of the scene in one of the film.
    pub speed: f64,
    pub rate: f64,
}

impl Plan {
    pub fn new(scene: &Scene, rate: f64) -> Plan {
        let ([start, end], speed) = (scene.span(), scene.speed());
        let duration = end - start;
        let count = (duration / speed * rate).ceil() as usize;
        let time = |i: usize| start + duration * i as f64 / count.max(1) as f64;
        Plan {
            times: (0..=count).map(time).collect(),
            speed,
            rate,
        }
    }
}

/// A film of the scene, as GIF or animated PNG; a single picture where nothing moves on.
///
/// # Errors
/// When it cannot be encoded.
pub fn render_film(scene: &Scene, format: Format) -> Result<Vec<u8>, AnimateError> {
    let rate = match format {
        Format::Gif => GIF_RATE,
        _ => PNG_RATE,
    };
    let plan = Plan::new(scene, rate);
    let film = Film::new(scene, plan.speed)?;
    let draw = |i: usize| film.picture(plan.times[i]);
    let pictures = Pictures {
        size: SIZE,
        count: plan.times.len(),
        rate: plan.rate,
        rest: REST,
        draw: &draw,
    };
    match format {
        Format::Gif => write_gif(&pictures),
        _ => write_png(&pictures),
    }
}

/// Everything that is the same in all pictures.
pub(super) struct Film<'a> {
    scene: &'a Scene,
    font: FontRef<'static>,
    head: Mesh,
    rod: Mesh,
    speed: f64,
    /// Where the bodies' middle is at the start.
    start: Vec3,
}

impl<'a> Film<'a> {
    pub fn new(scene: &'a Scene, speed: f64) -> Result<Film<'a>, AnimateError> {
        let font = FontRef::try_from_slice(FONT);
        Ok(Film {
            scene,
            font: font.map_err(|e| AnimateError::Encoding(e.to_string()))?,
            head: Mesh::head(),
            rod: Mesh::rod(),
            speed,
            start: scene.middle(scene.span()[0]),
        })
    }

    /// Red, green, blue of every pixel at a time.
    pub fn picture(&self, time: f64) -> Vec<u8> {
        let s = self.scene;
        let [width, height] = SIZE.map(|n| n * OVERSAMPLING);
        let mut picture = Picture::new(width, height, BACKGROUND);
        let moved = s.middle(time) - self.start;
        let shift = if s.view.follows { moved } else { Vec3::zeros() };
        let camera = Camera::new(&s.view, &shift, width, height);
        let light = s.view.light();
        let poses: Vec<_> = s.runs.iter().map(|r| r.frames.at(time)).collect();
        let (mut things, mut ground): (Vec<Placed>, Vec<Placed>) = (vec![], vec![]);
        for (run, poses) in s.runs.iter().zip(&poses) {
            for part in &run.parts {
                let (position, turn) = run.place(part, poses);
                let list = if part.casts { &mut things } else { &mut ground };
                list.push(Placed {
                    mesh: &s.meshes[part.mesh],
                    position,
                    turn,
                    scale: Vec3::repeat(1.0),
                    color: part.color,
                });
            }
            things.extend(self.links(run, poses));
        }
        let (middle, reach) = s.shadowed(&poses);
        let shadow = Shadow::new(&light, middle, reach, &things);
        for thing in things.iter().chain(&ground) {
            picture.solid(&camera, &light, &shadow, thing);
        }
        picture.floor(&camera, &s.floor, &shadow, [BACKGROUND, FLOOR, LINES]);
        for run in &s.runs {
            self.paths(&mut picture, &camera, run, time);
        }
        for run in &s.runs {
            for thing in self.forces(run, time) {
                picture.through(&camera, &light, &thing);
            }
        }
        let mut bytes = shrink(&picture);
        self.texts(&mut bytes, time);
        bytes
    }

    fn links<'s>(
        &'s self,
        run: &'s Run,
        poses: &'s [(Vec3, Quat)],
    ) -> impl Iterator<Item = Placed<'s>> {
        let at = move |(body, point): (usize, [f32; 3])| {
            let (x, q) = poses[body];
            run.offset + x + q * vec3(point)
        };
        run.links.iter().filter_map(move |l| {
            let (from, to) = (at(l.ends[0]), at(l.ends[1]));
            let (turn, length) = along(&from, &to)?;
            let radius = self.scene.rod_radius();
            Some(Placed {
                mesh: &self.rod,
                position: from,
                turn,
                scale: Vec3::new(radius, radius, length),
                color: run.colors[l.ends[0].0],
            })
        })
    }

    fn forces<'s>(&'s self, run: &'s Run, time: f64) -> impl Iterator<Item = Placed<'s>> {
        let of = move |a: &Arrow| {
            let (turn, length, radius) = self.scene.arrow(a)?;
            let from = run.offset + vec3(a.point);
            let neck = length - HEAD * radius;
            let piece = |mesh, start: f64, radius, length| Placed {
                mesh,
                position: from + turn * Vec3::z() * start,
                turn,
                scale: Vec3::new(radius, radius, length),
                color: FORCE,
            };
            Some([
                piece(&self.rod, 0.0, radius, neck),
                piece(&self.head, neck, 2.0 * radius, length - neck),
            ])
        };
        run.arrows_at(time).iter().filter_map(of).flatten()
    }

    /// Paths of feet, or of the tip, up to now.
    fn paths(&self, picture: &mut Picture, camera: &Camera, run: &Run, time: f64) {
        const RADIUS: f64 = 0.9 * OVERSAMPLING as f64;
        let (last, share) = run.frames.locate(time);
        for trace in run.traces.iter().filter(|t| t.is_main) {
            let at = |(x, q): (Vec3, Quat)| run.offset + x + q * vec3(trace.point);
            let frames = 0..=last;
            let mut points: Vec<Vec3> =
                frames.map(|f| at(run.frames.pose(f, trace.body))).collect();
            if share > 0.0 {
                points.push(at(run.frames.at(time)[trace.body]));
            }
            let color = run.colors[trace.body].map(|c| 0.8 * c);
            for pair in points.windows(2) {
                picture.line(camera, &pair[0], &pair[1], RADIUS, color);
            }
        }
    }

    fn texts(&self, bytes: &mut [u8], time: f64) {
        let s = self.scene;
        let baseline = MARGIN + TITLE * 0.8;
        self.write(bytes, [MARGIN, baseline], TITLE, INK, &s.title);
        let mut clock = format!("t = {time:.2} s");
        if self.speed != 1.0 {
            clock += &format!("   shown at {} of real time", times(self.speed));
        }
        let foot = SIZE[1] as f32 - MARGIN;
        self.write(bytes, [MARGIN, foot], TEXT, INK, &clock);
        let mut grid = format!("grid {} m", s.floor.cell);
        if s.arrow_scale > 0.0 {
            let more = if s.cuts_forces { " and more" } else { "" };
            grid = format!(
                "longest arrow {} N{more},   {grid}",
                two_digits(s.most_force)
            );
        }
        let x = SIZE[0] as f32 - MARGIN - self.width(&grid, TEXT);
        self.write(bytes, [x, foot], TEXT, MUTED, &grid);
        if s.runs.len() < 2 {
            return;
        }
        for (i, run) in s.runs.iter().enumerate() {
            let y = baseline + 24.0 + 21.0 * i as f32;
            square(bytes, [MARGIN, y - 11.0], 12.0, run.color);
            self.write(bytes, [MARGIN + 19.0, y], TEXT, INK, &run.name);
        }
    }

    fn width(&self, text: &str, size: f32) -> f32 {
        let font = self.font.as_scaled(PxScale::from(size));
        text.chars().map(|c| font.h_advance(font.glyph_id(c))).sum()
    }

    /// A text from a point on its baseline.
    fn write(&self, bytes: &mut [u8], [x, y]: [f32; 2], size: f32, color: Color, text: &str) {
        let font = self.font.as_scaled(PxScale::from(size));
        let short = match text.chars().count() > MOST_CHARACTERS {
            true => text
                .chars()
                .take(MOST_CHARACTERS - 1)
                .chain(['…'])
                .collect(),
            false => text.to_owned(),
        };
        let mut at = x;
        for c in spelled(&short).chars() {
            let glyph = font.glyph_id(c);
            let advance = font.h_advance(glyph);
            let placed = glyph.with_scale_and_position(PxScale::from(size), point(at, y));
            if let Some(outline) = self.font.outline_glyph(placed) {
                let corner = outline.px_bounds().min;
                outline.draw(|i, j, cover| {
                    let to = [corner.x + i as f32, corner.y + j as f32];
                    blend(bytes, to, color, cover.min(1.0));
                });
            }
            at += advance;
        }
    }
}

/// A factor as people say it.
fn times(speed: f64) -> String {
    match speed < 1.0 {
        true => format!("1/{}", (1.0 / speed * 100.0).round() / 100.0),
        false => format!("{} times the speed", (speed * 100.0).round() / 100.0),
    }
}

fn two_digits(v: f64) -> f64 {
    let rounded = format!("{v:.1e}").parse();
    rounded.unwrap_or(v)
}

fn blend(bytes: &mut [u8], [x, y]: [f32; 2], color: Color, cover: f32) {
    if !(x >= 0.0 && x < SIZE[0] as f32 && y >= 0.0 && y < SIZE[1] as f32) {
        return;
    }
    let at = 3 * (y as usize * SIZE[0] + x as usize);
    for (byte, c) in bytes[at..at + 3].iter_mut().zip(color) {
        let old = f32::from(*byte);
        *byte = (old + (255.0 * c - old) * cover).round() as u8;
    }
}

fn square(bytes: &mut [u8], [x, y]: [f32; 2], size: f32, color: Color) {
    for i in 0..size as usize {
        for j in 0..size as usize {
            blend(bytes, [x + i as f32, y + j as f32], color, 1.0);
        }
    }
}

/// Means over squares of drawn pixels.
fn shrink(picture: &Picture) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SIZE[0] * SIZE[1] * 3);
    let count = (OVERSAMPLING * OVERSAMPLING) as f32;
    for y in 0..picture.height / OVERSAMPLING {
        for x in 0..picture.width / OVERSAMPLING {
            let mut sum = [0.0_f32; 3];
            for i in 0..OVERSAMPLING * OVERSAMPLING {
                let (dx, dy) = (i % OVERSAMPLING, i / OVERSAMPLING);
                let from = (y * OVERSAMPLING + dy) * picture.width + x * OVERSAMPLING + dx;
                for (s, c) in sum.iter_mut().zip(picture.color[from]) {
                    *s += c;
                }
            }
            bytes.extend(sum.map(|s| (255.0 * s / count).round().clamp(0.0, 255.0) as u8));
        }
    }
    bytes
}

impl Scene {
    /// The mean of the places of the first run's bodies at a time, m: runs that part cannot all be kept in view.
    pub(super) fn middle(&self, time: f64) -> Vec3 {
        let poses = self.runs.first().map(|r| (r.frames.at(time), r.offset));
        let Some((poses, offset)) = poses.filter(|(poses, _)| !poses.is_empty()) else {
            return Vec3::zeros();
        };
        let sum: Vec3 = poses.iter().map(|(x, _)| *x).sum();
        sum / poses.len() as f64 + offset
    }

    /// A ball around everything that moves at these poses: middle and radius, m.
    fn shadowed(&self, poses: &[Vec<(Vec3, Quat)>]) -> (Vec3, f64) {
        let mut extent = super::view::Extent::default();
        for (run, poses) in self.runs.iter().zip(poses) {
            for part in run.parts.iter().filter(|p| p.body.is_some()) {
                let (x, turn) = run.place(part, poses);
                let [low, high] = self.meshes[part.mesh].bounds().unwrap_or_default();
                for i in 0..8 {
                    let pick = |k: usize| f64::from([low[k], high[k]][i >> k & 1]);
                    extent.see(x + turn * Vec3::new(pick(0), pick(1), pick(2)));
                }
            }
        }
        // so that the map's edge, which throws no shadow, is beside it
        (extent.middle(), 1.05 * extent.radius())
    }

    /// Turn, length and radius of the arrow of a force.
    pub(super) fn arrow(&self, a: &Arrow) -> Option<(Mat3, f64, f64)> {
        let force = vec3(a.force);
        let size = force.norm();
        let (turn, _) = along(&Vec3::zeros(), &force)?;
        let length = size.min(self.most_force) * self.arrow_scale;
        (length > 0.0).then(|| (turn, length, (ARROW * self.size).min(PLUMP * length)))
    }

    /// Of what joins sliding bodies, m.
    pub(super) fn rod_radius(&self) -> f64 {
        super::look::ROD * self.size
    }
}
