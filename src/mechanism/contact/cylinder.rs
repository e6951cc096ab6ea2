//! Cylinders on all that has edges: capsules, boxes, hulls and other cylinders.
//!
//! Where a cylinder is not flat on what it meets, it touches by what is curved: a rim or the side, on a face, an end, an edge, a
//! vertex, a side or a rim of the other. What of that carries it is asked at a knot, of the planes that keep the bodies
//! apart along the normals of all such pairs of parts: those whose normal separates (or least overlaps) them as well as any other, and whose
//! places are within the parts now or at the next knot, are held; their gaps follow the parts exactly, also where these roll.
//!
//! Where an end comes to lie flat within a step the lowest point of its rim leaps from side to side. It is carried then by
//! points fixed on it: corners of a prism within the cylinder, whose outline is clipped as that of a polytope, or where the
//! axis of what lies across it leaves it.

use super::ball::Grown;
use super::crossing::{Crossing, Line};
use super::manifold;
use super::meeting::{CURVED, END, Meeting, OUTLINE, Part, SLOTS, TURN};
use super::ring::{Kind, Part as Shape, Ring};
use super::seam;
use super::sway::Sway;
use super::sweep::Sweep;
use super::{Collider, Surface, Touch};
use crate::spatial::{Pose, Vec3};
use std::f64::consts::TAU;

/// Part of the bodies' size by which what is held may separate them less than what separates them best: that of a cylinder
/// about to lie down, whose sides come to touch as well.
const NEARLY: f64 = 0.05;

/// Sine of the angle between axes below which they count as parallel, along which their ends carry: where they cross moves by a
/// thousand times what the bodies do.
pub(super) const PARALLEL: f64 = 1e-3;

/// The same of a side and an edge or another side below which the circle of the side where they cross is held rather than both lines. Its
/// gap has no pole where the lines are parallel. That of the lines is exact wherever they come to cross, but at a smaller angle a
/// motion by a millimeter takes the crossing along by more than 5 cm, and beyond the ends.
const LEVEL: f64 = 0.02;

/// Part of its length by which a place may be beyond the end of a side or an edge and still count as within: of cylinders side by
/// side, whose ends are level, rounding must not decide which ends carry.
const BEYOND: f64 = 1e-4;

/// Radius and length of what has an axis.
fn axial(c: &Collider) -> Option<(f64, f64)> {
    match c.surface {
        Surface::Cylinder { radius, length } | Surface::Capsule { radius, length } => {
            Some((radius, length))
        }
        _ => None,
    }
}

pub(super) fn is_cylinder(c: &Collider) -> bool {
    matches!(c.surface, Surface::Cylinder { .. })
}

pub(super) fn half(c: &Collider) -> f64 {
    axial(c).map_or(0.0, |(_, length)| 0.5 * length)
}

/// A point of a cylinder's rim by its angle, in parts of a turn: how far out it is, of radius one, and where, body frame.
pub(super) fn rim_point(c: &Collider, up: bool, part: u16) -> (Vec3, Vec3) {
    let (sin, cos) = (f64::from(part) / f64::from(TURN) * TAU).sin_cos();
    let out = Vec3::new(cos, sin, 0.0);
    let end = Vec3::z() * if up { half(c) } else { -half(c) };
    let at = c.position + c.orientation * (out * c.surface.radius() + end);
    (out, at)
}

/// A part in the body's frame.
fn shape(c: &Collider, part: Part) -> Shape {
    if let Surface::Heights(field) = &c.surface {
        return field.shape(c, part);
    }
    let solid = || {
        c.solid()
            .expect("only what has faces, edges and vertices has such parts")
    };
    let axis: Vec3 = c.orientation.column(2).into();
    let round = !is_cylinder(c);
    let radius = c.surface.radius();
    let placed = |kind, at, axis, about| Shape {
        kind,
        at,
        axis,
        about,
    };
    match part {
        Part::Ring(s) => {
            let at = c.position + axis * (half(c) * f64::from(s) / f64::from(END));
            let (own, about) = if round { (0.0, radius) } else { (radius, 0.0) };
            placed(Kind::Circle(own), at, axis, about)
        }
        Part::Side => placed(Kind::Line, c.position, axis, radius),
        Part::End(up) => {
            let out = if up { axis } else { -axis };
            placed(Kind::Plane, c.position + out * half(c), out, 0.0)
        }
        Part::Face(k) => {
            let s = solid();
            let face = &s.of.faces[k];
            placed(
                Kind::Plane,
                s.vertex(face.top),
                s.orientation * face.normal,
                0.0,
            )
        }
        Part::Edge(k) => {
            let s = solid();
            let (at, along, _) = s.local_edge(k);
            let at = s.position + s.orientation * at;
            placed(Kind::Line, at, s.orientation * along, 0.0)
        }
        Part::Vertex(k) => placed(Kind::Circle(0.0), solid().vertex(k), axis, 0.0),
        Part::Tip(up, part) => {
            let (out, at) = rim_point(c, up, part);
            let tangent = c.orientation * Vec3::new(-out.y, out.x, 0.0);
            placed(Kind::Line, at, tangent, 0.0)
        }
        Part::Tangent(code) => {
            let n = Part::normal(code);
            let about = if round { radius } else { 0.0 };
            let at = c.position + c.orientation * farthest(c, &n, about);
            placed(Kind::Plane, at, c.orientation * n, about)
        }
    }
}

/// Two parts at a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Met {
    Crossing(Crossing),
    Ring(Ring),
}

/// The middle of the normals that a cylinder has at a point of its rim, world frame. The normal of the rim's tangent and another line is that
/// of the two which is nearer to it.
fn outward(c: &Collider, part: Part, pose: &Pose) -> Option<Vec3> {
    let Part::Tip(up, part) = part else {
        return None;
    };
    let mut out = rim_point(c, up, part).0;
    out.z = if up { 1.0 } else { -1.0 };
    Some(pose.r * (c.orientation * out))
}

/// The line that a part is, body frame: a place and its direction.
pub(super) fn line(c: &Collider, part: Part) -> Option<(Vec3, Vec3)> {
    let shape = shape(c, part);
    (shape.kind == Kind::Line).then_some((shape.at, shape.axis))
}

/// What two parts are; none where they are parallel.
pub(super) fn meet(
    (a, b): (&Collider, &Collider),
    [p, q]: [Part; 2],
    poses: (&Pose, &Pose),
    parallel: f64,
) -> Option<Met> {
    let shapes = [shape(a, p), shape(b, q)];
    if let [Kind::Line, Kind::Line] = shapes.map(|s| s.kind) {
        let lines = shapes.map(|s| Line {
            point: s.at,
            axis: s.axis,
            radius: s.about,
        });
        let of_field = match (&a.surface, p, q) {
            (Surface::Heights(field), Part::Edge(k), Part::Edge(_)) => {
                Some(poses.0.r * (a.orientation * field.out_of_edge(k)))
            }
            _ => None,
        };
        let against = outward(a, p, poses.0).or(outward(b, q, poses.1).map(|n| -n));
        let against = against.or(of_field).map(|n| {
            let axes = [poses.0.r * lines[0].axis, poses.1.r * lines[1].axis];
            axes[0].cross(&axes[1]).dot(&n) < 0.0
        });
        return Crossing::new(lines, poses, against, parallel).map(Met::Crossing);
    }
    Some(Met::Ring(Ring::new(shapes, poses)))
}

impl Met {
    pub fn touch(&self, poses: (&Pose, &Pose)) -> Touch {
        match self {
            Self::Crossing(c) => c.touch(poses),
            Self::Ring(r) => r.touch(),
        }
    }

    pub fn is_flat(&self, sway: &Sway, may_roll: bool) -> bool {
        match self {
            Self::Crossing(_) => false,
            Self::Ring(r) => r.is_flat(sway, may_roll),
        }
    }
}

/// The point of a collider farthest along a direction, collider frame, or of what is `about` within a round one.
pub(super) fn farthest(c: &Collider, n: &Vec3, about: f64) -> Vec3 {
    match c.surface {
        Surface::Cylinder { radius, length } => {
            let across = n.xy().norm();
            let out = if across > 0.0 {
                (radius - about) / across
            } else {
                0.0
            };
            Vec3::new(n.x * out, n.y * out, (0.5 * length - about).copysign(n.z))
        }
        Surface::Capsule { radius, length } => {
            let end = Vec3::z() * (0.5 * length).copysign(n.z);
            end + n
                .try_normalize(0.0)
                .map_or_else(Vec3::zeros, |n| n * (radius - about))
        }
        Surface::Sphere(radius) => n
            .try_normalize(0.0)
            .map_or_else(Vec3::zeros, |n| n * (radius - about)),
        _ => c.solid().map_or_else(Vec3::zeros, |s| s.farthest(n)),
    }
}

/// How far a collider reaches along a direction, world frame, from the origin.
pub(super) fn support(c: &Collider, pose: &Pose, n: &Vec3) -> f64 {
    let local = c.orientation.tr_mul(&pose.r.tr_mul(n));
    let own = match c.surface {
        Surface::Cylinder { radius, length } => {
            radius * local.x.hypot(local.y) + 0.5 * length * local.z.abs()
        }
        Surface::Capsule { radius, length } => radius + 0.5 * length * local.z.abs(),
        Surface::Sphere(radius) => radius,
        _ => c.solid().map_or(0.0, |s| local.dot(&s.farthest(&local))),
    };
    own + n.dot(&pose.point(&c.position))
}

/// How far a unit normal, from the first to the second, separates two colliders.
pub(super) fn apart((a, b): (&Collider, &Collider), (p, q): (&Pose, &Pose), n: &Vec3) -> f64 {
    -support(b, q, &-n) - support(a, p, n)
}

/// Is a place, world frame, within a part?
pub(super) fn is_within(c: &Collider, part: Part, place: &Vec3, pose: &Pose) -> bool {
    let y = c
        .orientation
        .tr_mul(&(pose.r.tr_mul(&(place - pose.x)) - c.position));
    if let Surface::Heights(field) = &c.surface {
        return field.is_within(part, &y);
    }
    match part {
        Part::Ring(_) | Part::Vertex(_) | Part::Tip(..) | Part::Tangent(_) => true,
        Part::Side => y.z.abs() <= half(c) * (1.0 + 2.0 * BEYOND),
        Part::End(_) => y.x.hypot(y.y) <= c.surface.radius(),
        Part::Edge(k) => c.solid().is_some_and(|s| {
            let (from, along, length) = s.local_edge(k);
            let beyond = BEYOND * length;
            (-beyond..=length + beyond).contains(&along.dot(&(y - from)))
        }),
        Part::Face(k) => c.solid().is_some_and(|s| s.is_above(k, &y)),
    }
}

/// The parts of a collider that meet what is curved of another.
pub(super) fn parts(c: &Collider) -> impl Iterator<Item = Part> {
    let (edges, vertices, faces) = match c.surface {
        Surface::Box(_) | Surface::Hull(_) => c.solid().map_or((0, 0, 0), |s| {
            (s.of.edges.len(), s.of.points.len(), s.of.faces.len())
        }),
        _ => (0, 0, 0),
    };
    let own = [
        Part::Side,
        Part::Ring(-END),
        Part::Ring(END),
        Part::End(false),
        Part::End(true),
    ];
    let count = match c.surface {
        Surface::Cylinder { .. } => own.len(),
        // its ends are balls, on all of the other
        Surface::Capsule { .. } => 1,
        _ => 0,
    };
    let own = own.into_iter().take(count);
    own.chain((0..faces).map(Part::Face))
        .chain((0..edges).filter(|e| !c.buried.contains(e)).map(Part::Edge))
        .chain((0..vertices).map(Part::Vertex))
}

/// Two lines, one of them a cylinder's side, that are or may come to be nearly parallel, with the circle of the side where they cross in its
/// place. Of two sides that is the first's.
pub(super) fn leveled(
    of: (&Collider, &Collider),
    parts: [Part; 2],
    poses: (&Pose, &Pose),
    parallel: impl Fn(&Vec3) -> f64,
) -> [Part; 2] {
    let (colliders, poses) = ([of.0, of.1], [poses.0, poses.1]);
    let side = match parts {
        [Part::Side, Part::Side | Part::Edge(_)] => 0,
        [Part::Edge(_), Part::Side] => 1,
        _ => return parts,
    };
    let shapes = [0, 1].map(|k| shape(colliders[k], parts[k]));
    let [a, b] = [0, 1].map(|k| poses[k].r * shapes[k].axis);
    let square = a.cross(&b).norm_squared();
    if square > LEVEL.max(parallel(&a)).powi(2) {
        return parts;
    }
    let [p, q] = [0, 1].map(|k| poses[k].point(&shapes[k].at));
    let (own, other, span) = if side == 0 {
        (a, b, q - p)
    } else {
        (b, a, p - q)
    };
    let along = (own - other * own.dot(&other)).dot(&span) / square;
    let share = (along / half(colliders[side]) * f64::from(END)).round();
    // where they do not cross within the side its rims are nearest
    if share.is_nan() || share.abs() >= f64::from(END) {
        return parts;
    }
    let mut level = parts;
    level[side] = Part::Ring(share as i16);
    level
}

/// Do the two make a place that other pairs of parts do not?
pub(super) fn is_pair(p: Part, q: Part) -> bool {
    use Part::{Edge, End, Face, Ring, Side, Vertex};
    matches!(
        (p, q),
        (Ring(_), Face(_) | End(_) | Edge(_) | Side | Ring(_))
            | (Face(_) | End(_) | Edge(_) | Side, Ring(_))
            | (Side, Edge(_) | Vertex(_) | Side)
            | (Edge(_) | Vertex(_), Side)
    )
}

/// A normal: how far it separates the bodies, and what of them meets along it, with what gap, if anything.
#[derive(Clone, Copy)]
struct Candidate {
    apart: f64,
    held: Meeting,
    gap: f64,
    /// Is it along the axis of a cylinder's end?
    flat: bool,
}

/// Candidates that separate the bodies best: more than any two bodies have parts that meet.
const BEST: usize = 24;

struct Candidates([Candidate; BEST]);

impl Candidates {
    fn new() -> Self {
        Self(
            [Candidate {
                apart: f64::NEG_INFINITY,
                held: Meeting::Apart,
                gap: f64::INFINITY,
                flat: false,
            }; BEST],
        )
    }

    fn add(&mut self, c: Candidate) {
        if let Some(at) = self.0.iter().position(|other| c.apart > other.apart) {
            self.0[at..].rotate_right(1);
            self.0[at] = c;
        }
    }
}

/// Two colliders, one of them a cylinder, now and at the next knot.
pub(super) struct Pair<'a> {
    pub of: (&'a Collider, &'a Collider),
    pub now: (&'a Pose, &'a Pose),
    pub next: (&'a Pose, &'a Pose),
    /// How they move against each other until then.
    pub sway: &'a Sway,
    pub sweep: &'a Sweep<'a>,
}

impl Pair<'_> {
    fn apart(&self, n: &Vec3) -> f64 {
        apart(self.of, self.now, n)
    }

    /// Where the parts meet is within both, now or at the next knot.
    fn is_within(&self, [p, q]: [Part; 2], place: &Vec3) -> bool {
        let (a, b) = self.of;
        let within = |place: &Vec3, (x, y): (&Pose, &Pose)| {
            is_within(a, p, place, x) && is_within(b, q, place, y)
        };
        within(place, self.now)
            || meet(self.of, [p, q], self.next, PARALLEL)
                .is_some_and(|m| within(&m.touch(self.next).point, self.next))
    }

    fn parts(&self, parts: [Part; 2], out: &mut Candidates) {
        let parts = leveled(self.of, parts, self.now, |axis| self.sway.parallel(axis));
        let Some(met) = meet(self.of, parts, self.now, PARALLEL) else {
            return;
        };
        let touch = met.touch(self.now);
        if seam::is_closed(self.of, self.now, &touch.normal)
            || !self.is_crossing_of_rims(parts, &touch.normal)
        {
            return;
        }
        let may_roll = matches!(
            parts,
            [Part::Ring(_), Part::Face(_)] | [Part::Face(_), Part::Ring(_)]
        );
        let nearer = self.nearer_rim(parts, &touch.normal);
        let flat = nearer.as_ref().unwrap_or(&met).is_flat(self.sway, may_roll);
        let carries = !flat && self.is_within(parts, &touch.point);
        out.add(Candidate {
            apart: self.apart(&touch.normal),
            held: Meeting::Parts(parts),
            gap: if carries { touch.gap } else { f64::INFINITY },
            flat,
        });
    }

    /// What meets of the other rim of a cylinder, if that is nearer to a face: it decides whether the cylinder comes to lie flat.
    fn nearer_rim(&self, mut parts: [Part; 2], n: &Vec3) -> Option<Met> {
        let side = match parts {
            [Part::Ring(_), Part::Face(_)] => 0,
            [Part::Face(_), Part::Ring(_)] => 1,
            _ => return None,
        };
        let (c, pose) = [(self.of.0, self.now.0), (self.of.1, self.now.1)][side];
        let Part::Ring(place) = &mut parts[side] else {
            return None;
        };
        let towards = n.dot(&(pose.r * c.orientation.column(2))) * [1.0, -1.0][side];
        if towards * f64::from(*place) >= 0.0 {
            return None;
        }
        *place = -*place;
        meet(self.of, parts, self.now, PARALLEL)
    }

    /// Do two rims cross at a normal, if the parts are such? A rim has the normals between those of its side and its end. Where the normal
    /// is that of a side, the side meets the other rim. Rims with parallel tangents are as two points in a plane: where they touch,
    /// their distance has no normal.
    fn is_crossing_of_rims(&self, parts: [Part; 2], n: &Vec3) -> bool {
        let [Part::Ring(s), Part::Ring(t)] = parts else {
            return true;
        };
        let axis = |c: &Collider, pose: &Pose, s: i16| -> Vec3 {
            pose.r * c.orientation.column(2) * f64::from(s.signum())
        };
        let a = axis(self.of.0, self.now.0, s);
        let b = axis(self.of.1, self.now.1, t);
        let (u, v) = (n.cross(&a), n.cross(&b));
        n.dot(&a) > PARALLEL
            && -n.dot(&b) > PARALLEL
            && u.cross(&v).norm() > PARALLEL * u.norm() * v.norm()
    }

    /// The ends of a cylinder, with what lies across them: places of its axis above the rim.
    fn ends(&self, side: usize, out: &mut Candidates) {
        let (colliders, poses) = ([self.of.0, self.of.1], [self.now.0, self.now.1]);
        let (own, other) = (colliders[side], colliders[1 - side]);
        let to_world = |c: &Collider, pose: &Pose| pose.r * c.orientation.column(2);
        let axis = to_world(own, poses[side]);
        for up in [false, true] {
            let n = if up { axis } else { -axis };
            let apart = self.apart(&if side == 0 { n } else { -n });
            let mut add = |held, gap| {
                out.add(Candidate {
                    apart,
                    held,
                    gap,
                    flat: true,
                });
            };
            add(Meeting::Apart, f64::INFINITY);
            let along = to_world(other, poses[1 - side]);
            if axial(other).is_none() || along.dot(&n).abs() >= self.sway.flat(&axis) {
                continue;
            }
            let sides = [0, 1].map(|k| (colliders[k], poses[k]));
            for share in across(sides, side) {
                let mut parts = [Part::End(up); 2];
                parts[1 - side] = Part::Ring(share);
                if let Some(met) = meet(self.of, parts, self.now, PARALLEL) {
                    add(Meeting::Parts(parts), met.touch(self.now).gap);
                }
            }
        }
    }

    /// What meets: corners and edges of the prisms within cylinders where these lie flat, then what is curved.
    pub fn search(&self) -> [Meeting; SLOTS] {
        let (a, b) = self.of;
        let size = reach(a).min(reach(b));
        let mut all = Candidates::new();
        for p in parts(a) {
            for q in parts(b).filter(|q| is_pair(p, *q)) {
                self.parts([p, q], &mut all);
            }
        }
        for (side, c) in [a, b].into_iter().enumerate() {
            if is_cylinder(c) {
                self.ends(side, &mut all);
            }
        }
        let least = all.0[0].apart - NEARLY * size;
        let mut places = [Meeting::Apart; SLOTS];
        let held = || all.0.iter().filter(|c| c.apart >= least);
        if let (true, Some(p), Some(q)) = (held().any(|c| c.flat), a.solid(), b.solid()) {
            let found = manifold::search((&p, &q), self.now, self.next, self.sweep, false);
            places[..OUTLINE].copy_from_slice(&found.places[..OUTLINE]);
        }
        let mut taken = 0;
        // the nearest, in an order that rounding of equal gaps does not change
        while taken < CURVED {
            let left = held().filter(|c| c.gap.is_finite() && !places[OUTLINE..].contains(&c.held));
            let Some(next) = left.min_by(|c, d| c.gap.total_cmp(&d.gap)) else {
                break;
            };
            places[OUTLINE + taken] = next.held;
            taken += 1;
        }
        places[OUTLINE..][..taken].sort_unstable_by_key(|held| match held {
            Meeting::Parts(parts) => Some(*parts),
            _ => None,
        });
        places
    }
}

/// Places of the other's axis, parts of its half as `END` counts them, where it, seen along the axis of a cylinder, leaves the ends of that.
pub(super) fn across(
    sides: [(&Collider, &Pose); 2],
    side: usize,
) -> impl Iterator<Item = i16> + use<> {
    let ((own, at), (other, pose)) = (sides[side], sides[1 - side]);
    let to_world = |c: &Collider, pose: &Pose| pose.r * c.orientation.column(2);
    let (axis, along) = (to_world(own, at), to_world(other, pose));
    let from = pose.point(&other.position) - at.point(&own.position);
    let (from, along): (Vec3, Vec3) = [from, along].map(|v| v - axis * axis.dot(&v)).into();
    let square = along.norm_squared();
    let middle = -along.dot(&from) / square;
    let beside = (from + along * middle).norm_squared();
    let reach = (own.surface.radius().powi(2) - beside) / square;
    let length = axial(other).map_or(0.0, |(_, length)| length);
    // parallel axes leave it nowhere
    let is_crossing = length > 0.0 && reach > 0.0 && reach.is_finite();
    let places = [-1.0, 1.0].map(|sign| middle + sign * reach.max(0.0).sqrt());
    let shares = places.map(|place| (2.0 * place / length * f64::from(END)).round());
    let within = move |share: &f64| is_crossing && share.abs() < f64::from(END);
    shares.into_iter().filter(within).map(|share| share as i16)
}

/// Largest distance of a cylinder, a capsule or a polytope from its place, m.
pub(super) fn reach(c: &Collider) -> f64 {
    match axial(c) {
        Some((radius, length)) if is_cylinder(c) => radius.hypot(0.5 * length),
        Some((radius, length)) => radius + 0.5 * length,
        None => c.solid().map_or(0.0, |s| s.reach()),
    }
}

/// Directions of two lines, world frame, where both parts are such.
pub(super) fn lines(
    (a, b): (&Collider, &Collider),
    [p, q]: [Part; 2],
    (x, y): (&Pose, &Pose),
) -> Option<[Vec3; 2]> {
    let [p, q] = [shape(a, p), shape(b, q)];
    let lines = [p, q].iter().all(|s| s.kind == Kind::Line);
    lines.then(|| [x.r * p.axis, y.r * q.axis])
}

/// What a larger radius of the collider on `side` does.
pub(super) fn by_radius(
    of: (&Collider, &Collider),
    parts: [Part; 2],
    side: usize,
    poses: (&Pose, &Pose),
) -> Grown {
    let own = [of.0, of.1][side];
    match (parts[side], meet(of, parts, poses, 0.0)) {
        (Part::Ring(_), Some(Met::Ring(ring))) if is_cylinder(own) => {
            Grown::Moved(ring.by_radius(side))
        }
        (Part::Tip(up, part), _) => {
            let pose = [poses.0, poses.1][side];
            Grown::Moved(pose.r * own.orientation * rim_point(own, up, part).0)
        }
        (Part::Tangent(code), _) if is_cylinder(own) => {
            let n = Part::normal(code);
            let out = n.xy().try_normalize(0.0).unwrap_or_default();
            let pose = [poses.0, poses.1][side];
            Grown::Moved(pose.r * own.orientation * Vec3::new(out.x, out.y, 0.0))
        }
        (Part::Tangent(_), _) if own.solid().is_some() => Grown::Still,
        (Part::Ring(_) | Part::Side | Part::Tangent(_), _) => Grown::Radius,
        _ => Grown::Still,
    }
}

/// How a part moves, collider frame, when the collider's size along `axis` grows.
pub(super) fn by_size(c: &Collider, part: Part, axis: usize) -> Option<Vec3> {
    let z = |share: f64| Some(Vec3::z() * (0.5 * share));
    match part {
        Part::Ring(s) => z(f64::from(s) / f64::from(END)),
        Part::End(up) | Part::Tip(up, _) => z(if up { 1.0 } else { -1.0 }),
        Part::Side => None,
        Part::Face(k) => c.solid().map(|s| s.vertex_by_size(s.of.faces[k].top, axis)),
        Part::Edge(k) => c
            .solid()
            .map(|s| s.vertex_by_size(s.of.edges[k].ends[0], axis)),
        Part::Vertex(k) => c.solid().map(|s| s.vertex_by_size(k, axis)),
        Part::Tangent(code) => {
            let n = Part::normal(code);
            let side = farthest(c, &n, c.surface.radius())[axis];
            (side != 0.0).then(|| Vec3::ith(axis, 0.5_f64.copysign(side)))
        }
    }
}

#[cfg(test)]
#[path = "cylinder_tests.rs"]
mod tests;
