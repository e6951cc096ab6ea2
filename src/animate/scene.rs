//! What an animation shows, whatever file it becomes: meshes and their places over time, forces, traces, the floor, and
//! where it is looked at from.

use super::AnimateError;
use super::frames::Frames;
use super::look::{Color, colors, shown};
use super::mesh::{Mesh, vec3};
use super::view::{Extent, View};
use crate::format::recording::{LEAST_FORCE, Recording};
use crate::plot::{PALETTE, nice_step, traced};
use crate::spatial::{Mat3, Quat, Vec3};
use nalgebra::Rotation3;
use std::collections::BTreeMap;

/// The longest arrow in parts of the mechanism's size.
const LONGEST: f64 = 0.35;
/// A force counts for the scale of arrows up to so many times their median: those of impacts are cut.
const PEAK: f64 = 4.0;
/// Radius of an arrow's shaft in the mechanism's sizes, and in its own lengths at most.
pub(super) const ARROW: f64 = 0.006;
pub(super) const PLUMP: f64 = 0.09;
/// Length of its head in radii of its shaft; it is twice as wide.
pub(super) const HEAD: f64 = 6.0;
/// Centres of more bodies than this are not traced.
const MOST_TRACED: usize = 16;
/// Times at which it is looked for how far everything comes.
const SAMPLED: usize = 60;
/// The camera goes with what travels farther than this, in its sizes.
const FAR: f64 = 15.0;
/// The floor's half width in parts of the scene's.
const FLOOR: f64 = 3.0;
/// What of the world is farther from the bodies than this part of how far they come is not looked at.
const NEAR: f64 = 0.1;
/// The floor's lines are this part of the scene apart at least.
const CELL: f64 = 0.08;
/// Half-spaces whose surfaces differ by less are one, m.
const SAME: f64 = 1e-6;
/// Of ground that is no level floor.
const GROUND: Color = [0.82, 0.81, 0.78];

/// A mesh on a body.
#[derive(Clone, Debug)]
pub struct Part {
    /// Index into the run's bodies; `None` is the world.
    pub body: Option<usize>,
    /// Index into the scene's meshes.
    pub mesh: usize,
    /// In the body's frame, m.
    pub position: Vec3,
    /// In the body's frame.
    pub orientation: Quat,
    /// sRGB, 0 to 1.
    pub color: Color,
    /// Throws a shadow.
    pub casts: bool,
}

/// A force of a contact, over the time before a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrow {
    /// Index into the run's frames.
    pub frame: usize,
    /// Where it acts, in the world, m.
    pub point: [f32; 3],
    /// On the contact's child, in the world, N.
    pub force: [f32; 3],
}

/// A point of a body whose path is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trace {
    /// Index into the run's bodies.
    pub body: usize,
    /// In the body's frame, m.
    pub point: [f32; 3],
    /// A foot or the tip of the mechanism, not a center of mass.
    pub is_main: bool,
}

/// A straight line between points of two bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bodies and points in their frames, m.
    pub ends: [(usize, [f32; 3]); 2],
}

/// One recording of the scene.
#[derive(Clone, Debug)]
pub struct Run {
    /// To tell it from the others.
    pub name: String,
    /// How it ended.
    pub status: String,
    /// Names.
    pub bodies: Vec<String>,
    /// sRGB, 0 to 1, of every body.
    pub colors: Vec<Color>,
    /// Of the run among several.
    pub color: Color,
    /// What is drawn.
    pub parts: Vec<Part>,
    /// Where it is.
    pub frames: Frames,
    /// By frame.
    pub arrows: Vec<Arrow>,
    /// Points with paths.
    pub traces: Vec<Trace>,
    /// What slides.
    pub links: Vec<Link>,
    /// Where it stands beside the others, m.
    pub offset: Vec3,
    /// Where its name is, m: at the end of its lane.
    pub label: Vec3,
}

/// A plane that everything stands on.
#[derive(Clone, Debug)]
pub struct Floor {
    /// In its middle, m.
    pub point: Vec3,
    /// Unit length.
    pub normal: Vec3,
    /// Along it, unit length.
    pub along: Vec3,
    /// Half of its width, m.
    pub reach: f64,
    /// Between the lines on it, m.
    pub cell: f64,
    /// A half-space's surface; else only there to show what is level.
    pub is_solid: bool,
}

/// Everything an animation is made from.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Those of the recordings.
    pub title: String,
    /// Used by parts.
    pub meshes: Vec<Mesh>,
    /// Beside each other.
    pub runs: Vec<Run>,
    /// Below it.
    pub floor: Floor,
    /// Where it is looked at from.
    pub view: View,
    /// Of a mechanism, m.
    pub size: f64,
    /// Length of an arrow, m/N.
    pub arrow_scale: f64,
    /// Forces above this are drawn no longer, N.
    pub most_force: f64,
    /// There are such.
    pub cuts_forces: bool,
}

impl Scene {
    /// Puts recordings beside each other, each under its name.
    ///
    /// # Errors
    /// When there is none, or one has poses that cannot be drawn.
    pub fn new(recordings: &[(&str, &Recording)]) -> Result<Scene, AnimateError> {
        let several = recordings.len() > 1;
        let mut meshes: Vec<Mesh> = vec![];
        let mut runs: Vec<Run> = vec![];
        let mut size = 0.0_f64;
        for (i, (name, recording)) in recordings.iter().enumerate() {
            let in_run = |e: AnimateError| e.of(name);
            let frames = Frames::new(recording).map_err(in_run)?;
            let (run, own) = run(name, recording, frames, several.then_some(i), &mut meshes);
            size = size.max(own);
            runs.push(run);
        }
        if runs.is_empty() {
            return Err(AnimateError::Empty);
        }
        let mut titles: Vec<&str> = recordings.iter().map(|(_, r)| &*r.title).collect();
        titles.dedup();
        // something to look at where all is at one point
        let size = if size > 0.0 { size } else { 1.0 };
        let level = floor_of(recordings);
        if level.is_none() {
            for ((_, recording), run) in recordings.iter().zip(&mut runs) {
                ground_parts(recording, run, &mut meshes);
            }
        }
        place_beside(&mut runs, &meshes, size);
        let (mut extent, mut close) = (Extent::default(), Extent::default());
        for run in &runs {
            let [all, own] = run.extents(&meshes);
            extent.add(&all);
            close.add(&own);
        }
        let follows = extent.travel > FAR * size;
        let view = View::new(&extent, &close, several, follows);
        let (normal, offset, is_solid) = level.unwrap_or_else(|| reference(&extent));
        let middle = extent.middle();
        let axis = if normal.x.abs() < 0.8 {
            Vec3::x()
        } else {
            Vec3::y()
        };
        let floor = Floor {
            point: middle - normal * (normal.dot(&middle) - offset),
            normal,
            along: (axis - normal * normal.dot(&axis)).normalize(),
            reach: FLOOR * extent.radius().max(size),
            cell: nice_step((0.25 * size).max(CELL * extent.radius())),
            is_solid,
        };
        let (arrow_scale, most_force, cuts_forces) = arrow_scale(&runs, size);
        Ok(Scene {
            title: titles.join(", "),
            meshes,
            floor,
            view,
            size,
            arrow_scale,
            most_force,
            cuts_forces,
            runs,
        })
    }

    /// From the first time of any run to the last, s.
    pub fn span(&self) -> [f64; 2] {
        let spans = self.runs.iter().map(|r| r.frames.span());
        spans.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], [c, d]| {
            [a.min(c), b.max(d)]
        })
    }
}

/// What lasts shorter is slowed down, what lasts longer hastened, s.
const SHORTEST: f64 = 2.0;
const LENGTHIEST: f64 = 20.0;

impl Scene {
    /// Seconds of it that are shown in one: what is over in a moment, or takes long, is shown at a round number of times its
    /// own speed.
    pub fn speed(&self) -> f64 {
        let [start, end] = self.span();
        let duration = end - start;
        // 1, 2 or 5 times a power of ten
        let round_down = |rough: f64| {
            let power = 10_f64.powf(rough.log10().floor());
            let digits = [1.0, 2.0, 5.0, 10.0].into_iter().map(|d| d * power);
            digits
                .filter(|d| *d <= rough * (1.0 + 1e-9))
                .fold(power, f64::max)
        };
        if duration <= 0.0 || (SHORTEST..=LENGTHIEST).contains(&duration) {
            1.0
        } else if duration < SHORTEST {
            round_down(duration / SHORTEST)
        } else {
            1.0 / round_down(LENGTHIEST / duration)
        }
    }
}

/// A run with the size of its mechanism, and its meshes among the others.
fn run(
    name: &str,
    recording: &Recording,
    frames: Frames,
    among: Option<usize>,
    meshes: &mut Vec<Mesh>,
) -> (Run, f64) {
    let r = recording;
    let colors = colors(r.bodies.len(), among);
    let mut size = 0.0;
    let shown = shown(r, &colors, |points| {
        let mut extent = Extent::default();
        for (body, point) in points {
            let (x, q) = frames.pose(0, *body);
            extent.see(x + q * point);
        }
        size = 2.0 * extent.radius();
        if size > 0.0 { size } else { 1.0 }
    });
    let parts = shown.into_iter().map(|s| Part {
        body: s.body,
        mesh: index_of(s.mesh, meshes),
        position: s.position,
        orientation: Quat::from_rotation_matrix(&Rotation3::from_matrix_unchecked(s.turn)),
        color: s.color,
        casts: true,
    });
    let parts = parts.collect();
    let single = |p: [f64; 3]| p.map(|v| v as f32);
    let known = |body: usize| body < r.bodies.len();
    let main = traced(r, |body, point| {
        let at = |frame: usize| {
            let (x, q) = frames.pose(frame, body);
            x + q * Vec3::from(point)
        };
        (1..frames.len()).map(|f| (at(f) - at(f - 1)).norm()).sum()
    });
    let main = main
        .into_iter()
        .filter(|(body, _)| known(*body))
        .map(|(body, point)| Trace {
            body,
            point: single(point),
            is_main: true,
        });
    let count = if r.bodies.len() > MOST_TRACED {
        0
    } else {
        r.bodies.len()
    };
    let centers = (0..count).map(|body| Trace {
        body,
        point: [0.0; 3],
        is_main: false,
    });
    let links = r.links.iter().filter(|l| known(l.parent) && known(l.child));
    let run = Run {
        name: name.to_owned(),
        status: r.status.clone(),
        bodies: r.bodies.clone(),
        color: super::look::color(PALETTE[among.unwrap_or(0) % PALETTE.len()]),
        colors,
        parts,
        arrows: arrows(r, &frames),
        traces: main.chain(centers).collect(),
        links: links
            .map(|l| Link {
                ends: [
                    (l.parent, single(l.parent_point)),
                    (l.child, single(l.child_point)),
                ],
            })
            .collect(),
        frames,
        offset: Vec3::zeros(),
        label: Vec3::zeros(),
    };
    (run, size)
}

/// Of equal meshes there is one.
fn index_of(mesh: Mesh, meshes: &mut Vec<Mesh>) -> usize {
    let known = meshes.iter().position(|m| *m == mesh);
    known.unwrap_or_else(|| {
        meshes.push(mesh);
        meshes.len() - 1
    })
}

/// The largest force of every contact in the time before each frame.
fn arrows(r: &Recording, frames: &Frames) -> Vec<Arrow> {
    let norm = |f: &[f64; 3]| Vec3::from(*f).norm();
    let largest = r
        .contacts
        .iter()
        .flat_map(|c| &c.forces)
        .map(|f| norm(&f.force));
    let largest = largest.filter(|f| f.is_finite()).fold(0.0, f64::max);
    let mut found: BTreeMap<(usize, usize), ([f64; 3], [f64; 3])> = BTreeMap::new();
    for (c, contact) in r.contacts.iter().enumerate() {
        for f in &contact.forces {
            let size = norm(&f.force);
            let fine = f.point.iter().all(|v| v.is_finite());
            if !(fine && size.is_finite() && size > LEAST_FORCE * largest) {
                continue;
            }
            let frame = frames.knots.partition_point(|k| *k < f.knot);
            let at = (frame.min(frames.len() - 1), c);
            if found.get(&at).is_none_or(|(_, old)| norm(old) < size) {
                found.insert(at, (f.point, f.force));
            }
        }
    }
    let single = |p: [f64; 3]| p.map(|v| v as f32);
    let arrow = |((frame, _), (point, force)): ((usize, usize), ([f64; 3], [f64; 3]))| Arrow {
        frame,
        point: single(point),
        force: single(force),
    };
    found.into_iter().map(arrow).collect()
}

/// m/N, the force of the longest arrow, and whether there are larger ones.
fn arrow_scale(runs: &[Run], size: f64) -> (f64, f64, bool) {
    let mut sizes: Vec<f64> = (runs.iter().flat_map(|r| &r.arrows))
        .map(|a| vec3(a.force).norm())
        .collect();
    sizes.sort_by(f64::total_cmp);
    let (Some(last), Some(median)) = (sizes.last(), sizes.get(sizes.len() / 2)) else {
        return (0.0, 0.0, false);
    };
    let most = last.min(PEAK * median);
    (LONGEST * size / most, most, most < *last)
}

/// The plane that all half-spaces of all recordings are: normal and distance from the origin.
fn floor_of(recordings: &[(&str, &Recording)]) -> Option<(Vec3, f64, bool)> {
    let mut all = recordings
        .iter()
        .flat_map(|(_, r)| &r.ground)
        .filter_map(|g| {
            let normal = Vec3::from(g.normal);
            Some((normal, normal.dot(&Vec3::from(*g.corners.first()?))))
        });
    let (normal, offset) = all.next()?;
    let same = |(n, o): (Vec3, f64)| (n - normal).amax() < SAME && (o - offset).abs() < SAME;
    (all.all(same) && offset.is_finite()).then_some((normal, offset, true))
}

/// A level below everything, which shows what is level where no ground does.
fn reference(extent: &Extent) -> (Vec3, f64, bool) {
    let below = extent.low().z - 0.02 * extent.radius();
    (Vec3::z(), below, false)
}

/// Half-spaces as what the recording shows of them.
fn ground_parts(recording: &Recording, run: &mut Run, meshes: &mut Vec<Mesh>) {
    for g in &recording.ground {
        let corners: Vec<Vec3> = g.corners.iter().map(|c| Vec3::from(*c)).collect();
        let finite = corners.iter().flat_map(|c| c.iter()).all(|v| v.is_finite());
        if corners.len() > 2 && finite {
            run.parts.push(Part {
                body: None,
                mesh: index_of(Mesh::polygon(&Vec3::from(g.normal), &corners), meshes),
                position: Vec3::zeros(),
                orientation: Quat::identity(),
                color: GROUND,
                casts: false,
            });
        }
    }
}

/// In lanes: along the horizontal axis along which they are narrow.
fn place_beside(runs: &mut [Run], meshes: &[Mesh], size: f64) {
    let extents: Vec<Extent> = runs
        .iter()
        .map(|r| {
            let [all, _] = r.extents(meshes);
            all
        })
        .collect();
    let width = |axis: usize| {
        let own = extents.iter().map(|e| e.high()[axis] - e.low()[axis]);
        own.fold(0.0, f64::max)
    };
    let axis = if width(0) < width(1) { 0 } else { 1 };
    let apart = 1.2 * width(axis) + 0.25 * size;
    for (i, run) in runs.iter_mut().enumerate() {
        run.offset[axis] = apart * i as f64;
        let lengthwise = 1 - axis;
        let ends = extents.iter().map(|e| e.low()[lengthwise]);
        run.label = run.offset + extents[i].middle();
        run.label[lengthwise] = ends.fold(f64::INFINITY, f64::min) - 0.1 * size;
        run.label.z = extents[i].low().z;
    }
}

/// Of the box around a part, in the body's frame.
fn corners(part: &Part, meshes: &[Mesh]) -> impl Iterator<Item = Vec3> {
    let bounds = meshes[part.mesh].bounds().unwrap_or_default();
    (0..8).map(move |corner| {
        let pick = |i: usize| f64::from(bounds[corner >> i & 1][i]);
        part.position + part.orientation * Vec3::new(pick(0), pick(1), pick(2))
    })
}

impl Run {
    /// How far it comes, where it stands; and how far about its middle, with that where it is at the start.
    fn extents(&self, meshes: &[Mesh]) -> [Extent; 2] {
        let (mut extent, mut close) = (Extent::default(), Extent::default());
        let stride = self.frames.len().div_ceil(SAMPLED).max(1);
        let last = self.frames.len() - 1;
        let mut from = vec![[f64::INFINITY; 3]; self.bodies.len()];
        let mut to = vec![[f64::NEG_INFINITY; 3]; self.bodies.len()];
        let mut first_middle: Option<Vec3> = None;
        for frame in (0..=last).step_by(stride).chain([last]) {
            let mut middle = Vec3::zeros();
            for b in 0..self.bodies.len() {
                let (x, _) = self.frames.pose(frame, b);
                middle += x / self.bodies.len() as f64;
                for i in 0..3 {
                    from[b][i] = from[b][i].min(x[i]);
                    to[b][i] = to[b][i].max(x[i]);
                }
            }
            let start = *first_middle.get_or_insert(middle);
            extent.travel = extent.travel.max((middle - start).norm());
            for part in &self.parts {
                let Some((x, q)) = part.body.map(|b| self.frames.pose(frame, b)) else {
                    continue;
                };
                for local in corners(part, meshes) {
                    let place = self.offset + x + q * local;
                    extent.see(place);
                    close.see(place - (middle - start));
                }
            }
        }
        // of the world what is near
        let (low, high) = (extent.low(), extent.high());
        let margin = Vec3::repeat(NEAR * (high - low).norm());
        for part in self.parts.iter().filter(|p| p.body.is_none()) {
            for local in corners(part, meshes) {
                let place = self.offset + local;
                extent.see(place.sup(&(low - margin)).inf(&(high + margin)));
            }
        }
        let moved = |i: usize| (0..self.bodies.len()).map(move |b| (b, i));
        for i in 0..3 {
            let spans = moved(i).map(|(b, i)| to[b][i] - from[b][i]);
            extent.motion[i] = spans.fold(0.0, f64::max);
        }
        [extent, close]
    }

    /// Where a part is at poses of the bodies: its place in the world, and the turn of its mesh.
    pub fn place(&self, part: &Part, poses: &[(Vec3, Quat)]) -> (Vec3, Mat3) {
        let (x, q) = match part.body {
            Some(b) => poses[b],
            None => (Vec3::zeros(), Quat::identity()),
        };
        let turn = (q * part.orientation).to_rotation_matrix().into_inner();
        (self.offset + x + q * part.position, turn)
    }

    /// The arrows at a time: those of the frame at which the interval it lies in ends.
    pub fn arrows_at(&self, time: f64) -> &[Arrow] {
        let (frame, share) = self.frames.locate(time);
        let frame = frame + usize::from(share > 0.0);
        let from = self.arrows.partition_point(|a| a.frame < frame);
        let to = self.arrows.partition_point(|a| a.frame <= frame);
        &self.arrows[from..to]
    }
}
