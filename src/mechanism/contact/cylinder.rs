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
use super::meeting::{CURVED, END, Meeting, OUTLINE, Part, SLOTS};
use super::rim_points::rim_point;
use super::ring::{Kind, Part as Shape, Ring};
use super::seam;
use super::sway::Sway;
use super::sweep::Sweep;
use super::{Collider, Surface, Touch};
use crate::spatial::{Pose, Vec3};

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

/// A part in the body's frame.
fn shape(c: &Collider, part: Part) -> Shape {
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
        let against = outward(a, p, poses.0).or(outward(b, q, poses.1).map(|n| -n));
        let against = against.map(|n| {
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

    fn is_flat(&self, sway: &Sway) -> bool {
        match self {
            Self::Crossing(_) => false,
            Self::Ring(r) => r.is_flat(sway),
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
fn support(c: &Collider, pose: &Pose, n: &Vec3) -> f64 {
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
        let flat = met.is_flat(self.sway);
        let carries = !flat && self.is_within(parts, &touch.point);
        out.add(Candidate {
            apart: self.apart(&touch.normal),
            held: Meeting::Parts(parts),
            gap: if carries { touch.gap } else { f64::INFINITY },
            flat,
        });
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
            let (Some((_, length)), along) = (axial(other), to_world(other, poses[1 - side]))
            else {
                continue;
            };
            if along.dot(&n).abs() >= self.sway.flat(&axis) {
                continue;
            }
            // where the axis, seen along the other, leaves the circle
            let from = poses[1 - side].point(&other.position) - poses[side].point(&own.position);
            let (from, along) = [from, along].map(|v| v - axis * axis.dot(&v)).into();
            let square = along.norm_squared();
            let middle = -along.dot(&from) / square;
            let beside = (from + along * middle).norm_squared();
            let reach = (own.surface.radius().powi(2) - beside) / square;
            // parallel axes leave it nowhere
            if !(reach > 0.0 && reach.is_finite()) {
                continue;
            }
            for place in [middle - reach.sqrt(), middle + reach.sqrt()] {
                let share = (2.0 * place / length * f64::from(END)).round();
                if share.abs() >= f64::from(END) {
                    continue;
                }
                let mut parts = [Part::End(up); 2];
                parts[1 - side] = Part::Ring(share as i16);
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
mod tests {
    use crate::mechanism::contact::samples::{
        BOX, CAPSULE, CYLINDER, check_by, check_with, hull, plain, two,
    };
    use crate::mechanism::contact::{Ahead, Meeting};
    use crate::mechanism::samples::Source;
    use crate::mechanism::{Mechanism, Surface};
    use crate::spatial::{Pose, Vec3, exp};
    use parry3d_f64::math::{Pose3, Vector};
    use parry3d_f64::query;
    use parry3d_f64::shape::SharedShape;
    use std::f64::consts::FRAC_PI_2;

    fn least(m: &Mechanism, poses: &[Pose; 2]) -> f64 {
        let gaps = m.contacts.iter().map(|c| m.touch(c, poses).gap);
        gaps.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn derivatives_match_differences() {
        // a short step: normals turn quickly where an end is nearly flat
        let check = |m: &Mechanism, seed| check_by(m, seed, 1e-5);
        check(&two(1, CYLINDER, BOX), 2);
        check(&two(3, hull(), CYLINDER), 4);
        check(&two(5, CYLINDER, CYLINDER), 6);
        check(&two(7, CYLINDER, CAPSULE), 8);
        check(&two(9, CAPSULE, CYLINDER), 10);
    }

    /// Ends that lie flat: their corners on a face and on another end, crossings of rims and edges where they stick out, and what
    /// lies across one; by radius and length, too.
    #[test]
    fn derivatives_of_flat_ends_match_differences() {
        let quarter = Vec3::x() * FRAC_PI_2;
        let none = Vec3::zeros();
        let mut kinds = [0; 4];
        for (below, above, height, beside, turn) in [
            (BOX, CYLINDER, 0.1 + 0.25, none, none),
            (BOX, CYLINDER, 0.1 + 0.25, Vec3::new(0.25, 0.1, 0.0), none),
            (CYLINDER, CYLINDER, 0.5, Vec3::new(0.1, 0.05, 0.0), none),
            (CYLINDER, BOX, 0.25 + 0.1, Vec3::new(0.2, 0.0, 0.0), none),
            (
                CYLINDER,
                CYLINDER,
                0.25 + 0.3,
                Vec3::new(0.02, 0.01, 0.0),
                quarter,
            ),
            (CAPSULE, CYLINDER, 0.1 + 0.25, none, none),
        ] {
            let m = plain(two(1, below.clone(), above));
            let lying = match below {
                Surface::Capsule { .. } => quarter,
                _ => none,
            };
            let poses = [
                Pose::new(none, exp(&lying)),
                Pose::new(
                    Vec3::z() * (height + 1e-3) + beside,
                    exp(&(Vec3::z() * 0.1)) * exp(&turn),
                ),
            ];
            for c in &m.contacts {
                let held = m.meeting(c, &poses, &Ahead::NONE);
                let kind = match held {
                    Meeting::Vertex { .. } => 0,
                    Meeting::Edges { .. } => 1,
                    Meeting::Parts(_) => 2,
                    _ => 3,
                };
                // what lies along a rim turns and runs about it so quickly that differences see its fourth derivative, or rounding
                let slope = m.touch_slope(c, &held, &poses);
                let turns = slope
                    .normal
                    .iter()
                    .chain(&slope.point)
                    .map(|(x, phi)| x.amax().max(phi.amax()));
                if turns.fold(0.0, f64::max) < 10.0 {
                    kinds[kind] += 1;
                    check_with(&m, c, &poses, 1e-5);
                }
            }
        }
        assert!(kinds[..3].iter().all(|n| *n > 0), "{kinds:?}");
    }

    /// Side by side, ends level: a side and a rim meet at either end. Rims that touch beside each other have no normal.
    #[test]
    fn level_cylinders_side_by_side_are_held_at_both_ends() {
        for (turn, gap) in [
            (Vec3::zeros(), 0.0),
            (Vec3::x() * FRAC_PI_2, 1e-7),
            (Vec3::new(0.3, 0.5, 0.7), -1e-12),
            (Vec3::new(1.3, -0.2, 2.7), 1e-3),
        ] {
            let m = plain(two(1, CYLINDER, CYLINDER));
            let turned = exp(&turn);
            let beside = turned * Vec3::new(0.6 + gap, 0.0, 0.0);
            let poses = [Pose::new(Vec3::zeros(), turned), Pose::new(beside, turned)];
            let mut ends = [0; 2];
            for c in &m.contacts {
                let held = m.meeting(c, &poses, &Ahead::NONE);
                if held == Meeting::Apart {
                    continue;
                }
                let t = m.touch_of(c, &held, &poses);
                assert!((t.gap - gap).abs() < 1e-12, "{held:?} {t:?}");
                assert!(
                    (t.normal - turned * Vec3::x()).norm() < 1e-9,
                    "{held:?} {t:?}"
                );
                let local = turned.inverse() * t.point;
                assert!((local.z.abs() - 0.25).abs() < 1e-9, "{held:?} {t:?}");
                ends[usize::from(local.z > 0.0)] += 1;
                check_with(&m, c, &poses, 1e-5);
            }
            assert_eq!(ends, [2, 2]);
        }
    }

    /// A cylinder and a capsule that roll fast across an edge of a box, their axes at some angle to it.
    #[test]
    fn what_rolls_obliquely_is_held_by_an_edge() {
        for rod in [CYLINDER, CAPSULE] {
            let radius = rod.radius();
            let m = plain(two(1, rod, BOX));
            for angle in [0.05, 0.2, 0.5, 1.0_f64] {
                let axis = Vec3::new(-angle.sin(), angle.cos(), 0.0);
                let lies = exp(&(Vec3::z() * angle)) * exp(&(-Vec3::x() * FRAC_PI_2));
                let box_at = Vec3::new(-0.3, 0.0, -0.1 - radius);
                let mut poses = [Pose::identity(), Pose::identity()];
                let mut velocities = [0.0; 12];
                for c in &m.colliders {
                    let body = c.body.expect("a body's");
                    let is_box = matches!(c.surface, Surface::Box(_));
                    poses[body] = if is_box {
                        Pose::new(box_at, exp(&Vec3::zeros()))
                    } else {
                        Pose::new(Vec3::zeros(), lies)
                    };
                    if !is_box {
                        let spin = poses[body].r.tr_mul(&(axis * 30.0));
                        velocities[6 * body + 3..6 * body + 6].copy_from_slice(spin.as_slice());
                    }
                }
                let ahead = Ahead {
                    velocities: &velocities,
                    h: 0.01,
                };
                let crosses = m.contacts.iter().any(|c| {
                    let held = m.meeting(c, &poses, &ahead);
                    let t = m.touch_of(c, &held, &poses);
                    held != Meeting::Apart && t.gap.abs() < 1e-12 && t.point.xy().norm() < 1e-9
                });
                assert!(crosses, "{} at {angle}", m.colliders[0].surface.kind());
            }
        }
    }

    /// What parry's distances are exact to, at least.
    const NEAR: f64 = 1e-3;

    /// That of parry, whose cylinders have their axis along y.
    fn distance(m: &Mechanism, poses: &[Pose; 2]) -> f64 {
        let of = |i: usize| {
            let pose = &poses[i];
            let point = |v: &[f64; 3]| Vector::new(v[0], v[1], v[2]);
            let (shape, turn) = match &m.colliders[i].surface {
                Surface::Cylinder { radius, length } => {
                    (SharedShape::cylinder(0.5 * length, *radius), FRAC_PI_2)
                }
                Surface::Capsule { radius, length } => {
                    (SharedShape::capsule_z(0.5 * length, *radius), 0.0)
                }
                Surface::Box([x, y, z]) => (SharedShape::cuboid(0.5 * x, 0.5 * y, 0.5 * z), 0.0),
                Surface::Hull(hull) => {
                    let all: Vec<[f64; 3]> = hull.clone().into();
                    let all: Vec<_> = all.iter().map(point).collect();
                    (SharedShape::convex_hull(&all).expect("a hull"), 0.0)
                }
                other => panic!("{other:?}"),
            };
            let q = pose.q * crate::spatial::exp(&(Vec3::x() * turn));
            let by = q.scaled_axis();
            let at = Pose3::new(point(&pose.x.into()), point(&by.into()));
            (shape, at)
        };
        let ((a, p), (b, q)) = (of(0), of(1));
        query::contact(&p, &*a, &q, &*b, 10.0)
            .expect("a supported pair")
            .map_or(f64::INFINITY, |c| c.dist)
    }

    #[test]
    fn gaps_are_those_of_the_bodies_near_contact() {
        let pairs = [
            (CYLINDER, BOX),
            (hull(), CYLINDER),
            (CYLINDER, CYLINDER),
            (CAPSULE, CYLINDER),
        ];
        for (a, b) in pairs {
            let m = plain(two(1, a, b));
            let s = &mut Source::new(7);
            let (mut apart, mut over, mut exact, mut shallow) = (0, 0, 0, 0);
            for _ in 0..4000 {
                let poses = [s.pose(), s.pose()].map(|p| Pose::new(p.x * 0.45, p.q));
                let (truth, found) = (distance(&m, &poses), least(&m, &poses));
                if truth > NEAR {
                    apart += 1;
                    assert!(found > -1e-9, "apart by {truth}, gap {found}");
                    let is_near = truth < 0.1;
                    exact += usize::from(is_near && (found - truth).abs() < NEAR);
                } else if truth < -NEAR && truth > -0.02 {
                    over += 1;
                    shallow += usize::from(found > 0.5 * truth);
                }
            }
            // two rims may be found to meet where they overlap less
            let kinds = [0, 1].map(|i| m.colliders[i].surface.kind());
            assert!(
                apart > 1000 && over > 100 && exact > 500 && shallow <= 1,
                "{kinds:?} {apart} {over} {exact} {shallow}"
            );
        }
    }
}
