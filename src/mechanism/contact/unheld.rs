//! Finds the parts of two bodies with edges or rims that overlap at the end of a step and are not held yet.
//!
//! Two convex bodies are apart if a plane separates them. If none does, along no normal of two parts of theirs, what separates them best is
//! held, too, and the step is solved again ([`exchange`](crate::contact)). Where the lowest point of a rim leaps within the step a point fixed
//! on the rim is held in its place, on a face, or its tangent across an edge, a side or another rim.

mod on_field;

use super::cylinder::{self, half, is_cylinder};
use super::edges::Arc;
use super::half_space;
use super::meeting::{Meeting, Part, SLOTS, TURN};
use super::plane::Plane;
use super::sway::FLAT;
use super::{Collider, Surface, Touch, between, edges, manifold, seam};
use crate::spatial::{Pose, Vec3};
use std::f64::consts::TAU;

type Sides<'a> = (&'a Collider, &'a Collider);
type Poses<'a> = (&'a Pose, &'a Pose);

/// Cosine of the angle by which a normal may turn within a step in which it is held: the impulse acts along the normal at the knot.
const TURNED: f64 = 0.5;
/// The same of the lowest point of a rim: one that sweeps around the rim while the impulse acts at the knot's adds energy, at a third of a
/// turn up to a sixth of a thrown coin's. Points fixed on the rim do not.
const SWEPT: f64 = 0.98;
/// Sine of the tilt of an end above which the lowest point goes along its rim by no more than twice what the normal turns.
const STEEP: f64 = 0.5;
/// Sine of the angle to another line below which the tangent at a point of a rim is not held: where they cross moves by twenty times what
/// the bodies do.
const ACROSS: f64 = 0.05;
/// Part of the depth of an overlap by which a gap may differ from what its normal separates the bodies by. At more, places of the bodies
/// that are not those of the gap are deeper along the normal.
const OTHER: f64 = 0.5;
/// Part of the depth of an overlap that a gap must have to be held at all: it is solved again, and what is left of the overlap is found then.
const PARTLY: f64 = 0.1;
/// Overlap, of that from which on a step is solved again, up to which what lies beside is not held: 1e-9 m, what all shapes are held to. What
/// remains of angles that are stored in parts of a turn is less.
const EXACT: f64 = 2.0;
/// Depth along the normal of what lies beside, of that of the overlap, at most: farther away is another side of the bodies.
const SIDE: f64 = 1e3;
/// How far what comes in over an edge may be below the other at the knot, of the smaller body's reach.
const ENTERS: f64 = 0.02;

/// How well something would hold two bodies that overlap. What is first in this order is held.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Rank {
    /// Within both bodies, apart at the knot.
    Held,
    /// The same, but other places are deeper along the same normal.
    Partly,
    /// Beside one of the bodies now or at the end: what slides off an edge, or comes in over one, within the step. Its plane keeps them
    /// apart, too.
    Beside,
    /// The lowest point of a rim sweeps along it within the step, which may add energy.
    Swept,
}

/// Two colliders, cylinders or polytopes, or one of them and a column of a height field, at a knot and at the end of a step.
pub(super) struct Unheld<'a> {
    of: Sides<'a>,
    now: Poses<'a>,
    end: Poses<'a>,
    /// m.
    below: f64,
    /// How much nearer the bodies count as at the end, m.
    closer: f64,
    held: [Meeting; SLOTS],
    /// The triangle of a column, if the first collider is a height field.
    column: Option<usize>,
    /// The largest separation of all normals, m.
    most: f64,
    /// Is what lies beside considered, because nothing else was found?
    considers_beside: bool,
    /// What may be held, how well, and of several which is best.
    best: Option<(Rank, f64, Meeting)>,
}

impl<'a> Unheld<'a> {
    /// What separates the bodies best of what is not held, if they overlap by more than `below`; [`Meeting::Apart`] if they come to overlap
    /// in this step and nothing would hold them.
    pub fn find(
        of: Sides<'a>,
        held: [Meeting; SLOTS],
        (now, end): (Poses<'a>, Poses<'a>),
        below: f64,
    ) -> Option<Meeting> {
        Self::find_closer(of, held, (now, end), (below, 0.0))
    }

    /// What holds bodies best that touch and that nothing of `held` holds.
    pub fn touching(of: Sides<'a>, held: [Meeting; SLOTS], now: Poses<'a>) -> Option<Meeting> {
        let closer = manifold::TOUCHING;
        let found = Self::find_closer(of, held, (now, now), (0.5 * closer, closer));
        found.filter(|found| *found != Meeting::Apart)
    }

    fn find_closer(
        of: Sides<'a>,
        held: [Meeting; SLOTS],
        (now, end): (Poses<'a>, Poses<'a>),
        (below, closer): (f64, f64),
    ) -> Option<Meeting> {
        if between::is_on_field(of) {
            return Self::find_on_field(of, held, (now, end), (below, closer));
        }
        let reach = (cylinder::reach(of.0), cylinder::reach(of.1));
        let span = end.1.point(&of.1.position) - end.0.point(&of.0.position);
        if span.norm() > reach.0 + reach.1 + closer {
            return None;
        }
        let mut all = Self::new(of, held, (now, end), below);
        all.closer = closer;
        for held in held {
            if held != Meeting::Apart && all.separates(&between::touch(of, (0, &held), end).normal)
            {
                return None;
            }
        }
        all.search();
        if all.most > -below {
            return None;
        }
        if all.best.is_none() && Self::depth(of, now) < EXACT * below {
            return Some(Meeting::Apart);
        }
        all.best.map(|(_, _, held)| held)
    }

    fn new(
        of: Sides<'a>,
        held: [Meeting; SLOTS],
        (now, end): (Poses<'a>, Poses<'a>),
        below: f64,
    ) -> Self {
        Self {
            of,
            now,
            end,
            below,
            closer: 0.0,
            held,
            column: None,
            most: f64::NEG_INFINITY,
            considers_beside: false,
            best: None,
        }
    }

    fn search(&mut self) {
        self.consider_all();
        if self.best.is_none() && self.most < -EXACT * self.below {
            self.considers_beside = true;
            self.consider_all();
        }
    }

    /// How deep the bodies overlap at a knot, along all normals of two parts of theirs, m.
    pub fn depth(of: Sides<'a>, now: Poses<'a>) -> f64 {
        if between::is_on_field(of) {
            return Self::depth_on_field(of, now);
        }
        // nothing is held
        let mut all = Self::new(of, [Meeting::Apart; SLOTS], (now, now), f64::INFINITY);
        all.consider_all();
        -all.most
    }

    /// How far a normal separates the bodies at the end.
    fn apart(&self, n: &Vec3) -> f64 {
        let (Some(triangle), Surface::Heights(field)) = (self.column, &self.of.0.surface) else {
            return cylinder::apart(self.of, self.end, n) - self.closer;
        };
        let ((ground, pose), (c, end)) = ((self.of.0, self.end.0), (self.of.1, self.end.1));
        let local = ground.orientation.tr_mul(&pose.r.tr_mul(n));
        let reach = field.reach_of_column(triangle, &local) + n.dot(&pose.point(&ground.position));
        -cylinder::support(c, end, &-n) - reach - self.closer
    }

    /// Is a normal of something that is held closed: by a neighbor of a solid, or by the ground beside a part of a height field?
    fn is_closed(&self, held: &Meeting, n: &Vec3) -> bool {
        let (Some(_), Surface::Heights(field)) = (self.column, &self.of.0.surface) else {
            return seam::is_closed(self.of, self.end, n);
        };
        let Meeting::Parts([part, _]) = *held else {
            return true;
        };
        let local = self.of.0.orientation.tr_mul(&self.end.0.r.tr_mul(n));
        !field.has_normal(part, &local)
    }

    /// Reach of the smaller body, m.
    fn size(&self) -> f64 {
        let own = cylinder::reach(self.of.1);
        match self.column {
            Some(_) => own,
            None => own.min(cylinder::reach(self.of.0)),
        }
    }

    fn separates(&mut self, n: &Vec3) -> bool {
        self.most = self.most.max(self.apart(n));
        self.is_apart()
    }

    /// Does a normal separate the bodies?
    fn is_apart(&self) -> bool {
        self.most > -self.below && self.below.is_finite()
    }

    fn sides(&self) -> [(&'a Collider, &'a Pose); 2] {
        [(self.of.0, self.end.0), (self.of.1, self.end.1)]
    }

    /// Does the lowest point of a rim stay on its side, and the normal as it is?
    fn stays(&self, held: &Meeting, [n, m]: [Vec3; 2]) -> bool {
        let parts = match held {
            Meeting::Parts(parts) => parts,
            Meeting::Edges { .. } => return n.dot(&m) > TURNED && self.crosses(held),
            _ => return true,
        };
        let colliders = [self.of.0, self.of.1];
        let poses = [[self.now.0, self.end.0], [self.now.1, self.end.1]];
        let keeps = |side: usize| {
            let c = colliders[side];
            if !is_cylinder(c) || !matches!(parts[side], Part::Ring(_)) {
                return true;
            }
            let out = |n: &Vec3, pose: &Pose| {
                let a = pose.r * c.orientation.column(2);
                let rho = a.cross(&n.cross(&a));
                (rho.norm() > FLAT).then(|| (rho.norm(), rho.normalize()))
            };
            let both = out(&n, poses[side][0]).zip(out(&m, poses[side][1]));
            both.is_some_and(|((tilt, p), (then, q))| {
                let limit = if tilt.min(then) > STEEP {
                    TURNED
                } else {
                    SWEPT
                };
                p.dot(&q) > limit
            })
        };
        n.dot(&m) > TURNED && keeps(0) && keeps(1) && self.crosses(held)
    }

    /// Does an edge, or the tangent at a point of a rim, cross the other line, now and at the end?
    fn crosses(&self, held: &Meeting) -> bool {
        let is_about_lines = match held {
            Meeting::Parts([Part::Edge(_), Part::Edge(_)]) => true,
            Meeting::Parts(parts) => parts.iter().any(|p| matches!(p, Part::Tip(..))),
            Meeting::Edges { .. } => true,
            _ => false,
        };
        !is_about_lines
            || [self.now, self.end].into_iter().all(|poses| {
                let lines = between::lines(self.of, held, poses);
                lines.is_none_or(|[u, v]| u.cross(&v).norm() > ACROSS)
            })
    }

    /// Is the place of two parts within both?
    fn is_within(&self, held: &Meeting, place: &Vec3) -> bool {
        let [(a, x), (b, y)] = self.sides();
        match *held {
            Meeting::Parts([p, q]) => {
                cylinder::is_within(a, p, place, x) && cylinder::is_within(b, q, place, y)
            }
            Meeting::Edges { edges: [p, q], .. } => {
                cylinder::is_within(a, Part::Edge(p), place, x)
                    && cylinder::is_within(b, Part::Edge(q), place, y)
            }
            Meeting::RimOnFace { side, face, .. } => {
                let part = plane([a, b][1 - usize::from(side)], face);
                let (on, pose) = [(a, x), (b, y)][1 - usize::from(side)];
                cylinder::is_within(on, part, place, pose)
            }
            Meeting::Vertex { side, face, .. } => {
                let (on, pose) = [(a, x), (b, y)][1 - side];
                cylinder::is_within(on, plane(on, face), place, pose)
            }
            _ => false,
        }
    }

    /// Notes how far a normal separates the bodies, and what may be held along it.
    fn consider(&mut self, held: Meeting) {
        let mut touch = between::touch(self.of, (0, &held), self.end);
        touch.gap -= self.closer;
        let apart = self.apart(&touch.normal);
        self.most = self.most.max(apart);
        if let (Some(_), Meeting::Parts([Part::Edge(_), _])) = (self.column, held) {
            // the column alone has normals that the ground beside it covers
            self.most = self.most.max(self.apart(&-touch.normal));
        }
        if touch.gap > -self.below
            || touch.gap > PARTLY * apart
            || self.considers_beside && apart < SIDE * self.most
            || self.held.contains(&held)
            || self.is_closed(&held, &touch.normal)
        {
            return;
        }
        let now = between::touch(self.of, (0, &held), self.now);
        let Some(rank) = self.rank(&held, [&now, &touch], apart) else {
            return;
        };
        // impulse times velocity, by mass and interval, of what is led to a gap of zero from the end of the step, and from the knot
        let worth = match rank {
            Rank::Beside => apart * (2.0 * (-now.gap).max(0.0) - apart),
            _ => apart,
        };
        let is_better =
            |(than, of, _): (Rank, f64, Meeting)| rank < than || rank == than && worth > of;
        if self.best.is_none_or(is_better) {
            self.best = Some((rank, worth, held));
        }
    }

    /// How well what is held would hold the bodies; none if it does not.
    fn rank(&self, held: &Meeting, [now, end]: [&Touch; 2], apart: f64) -> Option<Rank> {
        let was_apart = now.gap > -manifold::TOUCHING;
        let is_within = self.is_within(held, &end.point);
        let is_deepest = end.gap - apart <= OTHER * -end.gap;
        if !self.stays(held, [now.normal, end.normal]) {
            let turned = now.normal.dot(&end.normal) > TURNED;
            let may =
                self.considers_beside && turned && was_apart && is_within && self.crosses(held);
            return may.then_some(Rank::Swept);
        }
        match (was_apart, is_within, is_deepest) {
            (true, true, true) => Some(Rank::Held),
            (true, true, false) => Some(Rank::Partly),
            (true, false, true) if self.considers_beside => Some(Rank::Beside),
            (false, true, true) if self.considers_beside => {
                (now.gap > -ENTERS * self.size()).then_some(Rank::Beside)
            }
            _ => None,
        }
    }

    /// A point fixed on a rim on a line of the other, no farther along the rim than the gap at the knot allows, from that of the normal at
    /// the knot toward that of the end.
    fn consider_between(&mut self, held: impl Fn(u16) -> Meeting, [from, to]: [u16; 2]) {
        let gap = |part| between::touch(self.of, (0, &held(part)), self.now).gap;
        if gap(to) > -manifold::TOUCHING || gap(from) < -manifold::TOUCHING {
            return;
        }
        let by = (to + TURN - from) % TURN;
        let (by, back) = if by > TURN / 2 {
            (TURN - by, true)
        } else {
            (by, false)
        };
        let part = |by: u16| match back {
            true => (from + TURN - by) % TURN,
            false => (from + by) % TURN,
        };
        let (mut low, mut high) = (0, by);
        while high > low + 1 {
            let middle = low + (high - low) / 2;
            if gap(part(middle)) > -manifold::TOUCHING {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.consider(held(part(low)));
    }

    fn consider_all(&mut self) {
        let (a, b) = self.of;
        match (self.column, self.field(), &b.surface) {
            (Some(triangle), Some(field), Surface::Capsule { .. }) => {
                return self.consider_capsule(field, triangle);
            }
            (Some(triangle), ..) if !is_cylinder(b) => return self.consider_polytope(triangle),
            _ => {}
        }
        if !(is_cylinder(a) || is_cylinder(b)) {
            self.consider_faces(0);
            self.consider_faces(1);
            self.consider_edges();
            return;
        }
        for end in between::capsule_ends(self.of) {
            let n = between::touch(self.of, (end, &Meeting::Surfaces), self.end).normal;
            self.most = self.most.max(self.apart(&n));
        }
        if let (Some(triangle), Surface::Heights(field)) = (self.column, &a.surface) {
            for p in field.parts(triangle) {
                if self.is_apart() {
                    return;
                }
                self.consider_pairs(p);
            }
        }
        for p in cylinder::parts(a) {
            self.consider_pairs(p);
        }
        for side in [0, 1] {
            let (own, pose) = self.sides()[side];
            if !is_cylinder(own) {
                continue;
            }
            let axis = pose.r * own.orientation.column(2);
            for n in [axis, -axis] {
                self.most = self.most.max(self.apart(&n));
            }
            self.on_end(side);
        }
    }

    /// A part of the first and those of the second that it makes a place with.
    fn consider_pairs(&mut self, p: Part) {
        for q in cylinder::parts(self.of.1).filter(|q| cylinder::is_pair(p, *q)) {
            let parts = cylinder::leveled(self.of, [p, q], self.end, |_| 0.0);
            if let Some(met) = cylinder::meet(self.of, parts, self.end, cylinder::PARALLEL) {
                let n = met.touch(self.end).normal;
                self.most = self.most.max(self.apart(&n));
                // on a plane a point fixed on the rim is exact, however far the lowest one sweeps
                let is_plane = |p: &Part| matches!(p, Part::Face(_) | Part::End(_));
                if !parts.iter().any(is_plane) {
                    self.consider(Meeting::Parts(parts));
                }
                self.fixed([p, q], &n);
            }
        }
    }

    /// Vertices of the other polytope below the faces of one.
    fn consider_faces(&mut self, side: usize) {
        let [(own, x), (other, y)] = [self.sides()[side], self.sides()[1 - side]];
        let (Some(s), Some(o)) = (own.solid(), other.solid()) else {
            return;
        };
        let at = manifold::relative(&s, &o, (x, y));
        for face in 0..s.of.faces.len() {
            if self.is_apart() {
                return;
            }
            let plane = Plane::new(&s, &at, face);
            self.most = self.most.max(plane.apart(&o).0 - self.closer);
            for vertex in 0..o.of.points.len() {
                if plane.height(&o, vertex) - self.closer < -self.below {
                    let side = 1 - side;
                    self.consider(Meeting::Vertex { side, vertex, face });
                }
            }
        }
    }

    /// Edges of two polytopes across each other.
    fn consider_edges(&mut self) {
        let (Some(a), Some(b)) = (self.of.0.solid(), self.of.1.solid()) else {
            return;
        };
        let at = manifold::relative(&a, &b, self.end);
        for i in 0..a.of.edges.len() {
            let arc = Arc::new(&a, i, &at);
            for k in (0..b.of.edges.len()).filter(|k| arc.crosses(&b, *k)) {
                if self.is_apart() {
                    return;
                }
                if let Some(against) = edges::is_against(&a, &b, &at, [i, k]) {
                    let edges = [i, k];
                    self.consider(Meeting::Edges { edges, against });
                }
            }
        }
    }

    /// Points fixed on rims in place of rims.
    fn fixed(&mut self, parts: [Part; 2], n: &Vec3) {
        let sides = self.sides();
        for side in [0, 1] {
            let (c, pose) = sides[side];
            let Part::Ring(end) = parts[side] else {
                continue;
            };
            if !is_cylinder(c) {
                continue;
            }
            let up = end > 0;
            let toward = if side == 0 { -n } else { *n };
            let local = c.orientation.tr_mul(&pose.r.tr_mul(&toward));
            let lowest = half_space::lowest(&local, 0.0);
            let (on, _) = sides[1 - side];
            match parts[1 - side] {
                Part::Face(_) if self.column.is_some() => {
                    if let Some(part) = lowest {
                        let mut held = parts;
                        held[side] = Part::Tip(up, part);
                        self.consider(Meeting::Parts(held));
                    }
                }
                Part::Face(_) | Part::End(_) => {
                    if let (Some(part), Some(face)) = (lowest, face(on, parts[1 - side])) {
                        let side = side as u8;
                        self.consider(Meeting::RimOnFace {
                            side,
                            up,
                            part,
                            face,
                        });
                    }
                }
                Part::Edge(_) | Part::Side => {
                    let tip = |part| {
                        let mut held = parts;
                        held[side] = Part::Tip(up, part);
                        Meeting::Parts(held)
                    };
                    let crossings = self.crossings(side, parts[1 - side]);
                    for part in crossings.into_iter().chain([lowest]).flatten() {
                        self.consider(tip(part));
                    }
                    let before = between::touch(self.of, (0, &Meeting::Parts(parts)), self.now);
                    let was = [self.now.0, self.now.1][side];
                    let toward = if side == 0 {
                        -before.normal
                    } else {
                        before.normal
                    };
                    let local = c.orientation.tr_mul(&was.r.tr_mul(&toward));
                    if let (Some(from), Some(to)) = (half_space::lowest(&local, 0.0), lowest) {
                        self.consider_between(tip, [from, to]);
                    }
                }
                Part::Ring(other) if side == 0 && is_cylinder(on) => {
                    for tips in self.common(up, other > 0) {
                        self.consider(Meeting::Parts(tips));
                    }
                }
                _ => {}
            }
        }
    }

    /// A place in the frame of a collider, and a direction.
    fn local(&self, side: usize, place: &Vec3) -> Vec3 {
        let (c, pose) = self.sides()[side];
        let body = pose.r.tr_mul(&(place - pose.x));
        c.orientation.tr_mul(&(body - c.position))
    }

    /// Angles where a line of the other, seen along the axis, crosses a rim.
    fn crossings(&self, side: usize, part: Part) -> [Option<u16>; 2] {
        let (c, _) = self.sides()[side];
        let (on, pose) = self.sides()[1 - side];
        let Some((at, along)) = cylinder::line(on, part) else {
            return [None; 2];
        };
        let from = self.local(side, &pose.point(&at));
        let along = self.local(side, &pose.point(&(at + along))) - from;
        let square = along.xy().norm_squared();
        let middle = -along.xy().dot(&from.xy()) / square;
        let beside = (from.xy() + along.xy() * middle).norm_squared();
        let reach = (c.surface.radius().powi(2) - beside) / square;
        if !(reach > 0.0 && reach.is_finite()) {
            return [None; 2];
        }
        [-1.0, 1.0].map(|sign| {
            let p = from + along * (middle + sign * reach.sqrt());
            Some(angle(&p))
        })
    }

    /// Points of two rims, where these, seen along the axis of the first, cross.
    fn common(&self, up: bool, other: bool) -> impl Iterator<Item = [Part; 2]> + use<> {
        let [(a, x), (b, y)] = self.sides();
        let middle = |c: &Collider, up: bool| {
            c.position + c.orientation.column(2) * if up { half(c) } else { -half(c) }
        };
        let d = self.local(0, &y.point(&middle(b, other)));
        let (d, z) = (d.xy(), if up { half(a) } else { -half(a) });
        let [r, s] = [a.surface.radius(), b.surface.radius()];
        let square = d.norm_squared();
        let along = 0.5 * (square + r * r - s * s) / square;
        let out = r * r / square - along * along;
        let is_crossing = out > 0.0 && out.is_finite();
        let tips = [-1.0, 1.0].map(|sign| {
            let out = sign * out.max(0.0).sqrt();
            let p = Vec3::new(d.x * along - d.y * out, d.y * along + d.x * out, z);
            let place = x.point(&(a.position + a.orientation * p));
            let q = self.local(1, &place);
            [Part::Tip(up, angle(&p)), Part::Tip(other, angle(&q))]
        });
        tips.into_iter().filter(move |_| is_crossing)
    }

    /// What lies across the ends, and vertices of the other on them.
    fn on_end(&mut self, side: usize) {
        let (own, _) = self.sides()[side];
        let (other, pose) = self.sides()[1 - side];
        for up in [false, true] {
            for share in cylinder::across(self.sides(), side) {
                let mut parts = [Part::End(up); 2];
                parts[1 - side] = Part::Ring(share);
                self.consider(Meeting::Parts(parts));
            }
        }
        if let (Some(triangle), Surface::Heights(field)) = (self.column, &other.surface) {
            for vertex in field.corner_numbers(triangle) {
                let at = field.shape(other, Part::Vertex(vertex)).at;
                let p = self.local(side, &pose.point(&at));
                if p.xy().norm() <= own.surface.radius() && p.z.abs() <= half(own) + self.closer {
                    let end = Part::End(p.z > 0.0);
                    self.consider(Meeting::Parts([Part::Vertex(vertex), end]));
                }
            }
        }
        let Some(solid) = other.solid().filter(|_| !is_cylinder(other)) else {
            return;
        };
        for vertex in 0..solid.of.points.len() {
            let p = self.local(side, &pose.point(&solid.vertex(vertex)));
            if p.xy().norm() > own.surface.radius() || p.z.abs() > half(own) + self.closer {
                continue;
            }
            if let Some(face) = face(own, Part::End(p.z > 0.0)) {
                self.consider(Meeting::Vertex {
                    side: 1 - side,
                    vertex,
                    face,
                });
            }
        }
    }
}

/// The angle of a place about a cylinder's axis, parts of a turn.
fn angle(p: &Vec3) -> u16 {
    let part = p.y.atan2(p.x) / TAU * f64::from(TURN);
    part.rem_euclid(f64::from(TURN)).round() as u16 % TURN
}

/// The face of a polytope, or of the prism within a cylinder, that is a part.
fn face(c: &Collider, part: Part) -> Option<usize> {
    match part {
        Part::Face(k) => Some(k),
        Part::End(up) => {
            let faces = &c.solid()?.of.faces;
            faces.iter().position(|f| {
                if up {
                    f.normal.z > 0.5
                } else {
                    f.normal.z < -0.5
                }
            })
        }
        _ => None,
    }
}

/// The part that is a face.
fn plane(c: &Collider, face: usize) -> Part {
    if is_cylinder(c) {
        let up = c.solid().is_some_and(|s| s.of.faces[face].normal.z > 0.0);
        Part::End(up)
    } else {
        Part::Face(face)
    }
}

#[cfg(test)]
#[path = "unheld_tests.rs"]
mod tests;
