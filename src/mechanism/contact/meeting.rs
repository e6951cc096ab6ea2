//! What of two colliders meets at a place, held from a knot to the next.

use crate::spatial::Vec3;

/// Places of a pair: eight corners of the common outline, which two quadrilaterals have at most, and two edges.
pub(super) const PLACES: usize = 9;
pub(super) const OUTLINE: usize = PLACES - 1;
/// Places of what is curved: two rims and two edges where a cylinder lies across a face.
pub(super) const CURVED: usize = 4;
/// Those of prisms, then those.
pub(super) const SLOTS: usize = OUTLINE + CURVED;

/// From the middle of an axis to its end.
pub(super) const END: i16 = 1 << 14;

/// A part of a collider that a part of another meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// What a cylinder or a capsule is at a place of its axis: circle, ball. At `END` the rims.
    Ring(i16),
    /// Along the axis.
    Side,
    /// The plane of an end, the upper or the lower.
    End(bool),
    Face(usize),
    Edge(usize),
    Vertex(usize),
    /// The tangent of a cylinder's rim at a point fixed on it: is the rim that of the upper end, and the point's angle about the axis in parts
    /// of a turn, [`TURN`] of them.
    Tip(bool, u16),
    /// The plane that touches the collider, by its outward normal, coded as [`Part::tangent`] does.
    Tangent([i16; 2]),
}

impl Part {
    /// The plane that touches a collider and has an outward normal, collider frame. The normal is stored to some 3e-5 rad, as a place on
    /// an octahedron (Meyer, Suessmuth, Sussner, Stamminger, Greiner, On floating-point normal vectors, 2010).
    pub(super) fn tangent(n: &Vec3) -> Self {
        let p = n / (n.x.abs() + n.y.abs() + n.z.abs());
        let (x, y) = if p.z < 0.0 {
            folded(p.x, p.y)
        } else {
            (p.x, p.y)
        };
        Self::Tangent([x, y].map(|x| (x * f64::from(i16::MAX)).round() as i16))
    }

    /// Its normal.
    pub(super) fn normal([x, y]: [i16; 2]) -> Vec3 {
        let [x, y] = [x, y].map(|x| f64::from(x) / f64::from(i16::MAX));
        let z = 1.0 - x.abs() - y.abs();
        let (x, y) = if z < 0.0 { folded(x, y) } else { (x, y) };
        Vec3::new(x, y, z).normalize()
    }
}

/// The lower half of an octahedron about the upper.
fn folded(x: f64, y: f64) -> (f64, f64) {
    ((1.0 - y.abs()).copysign(x), (1.0 - x.abs()).copysign(y))
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Ring(END) => write!(f, "rim +"),
            Self::Ring(s) if *s == -END => write!(f, "rim -"),
            Self::Ring(_) => write!(f, "axis"),
            Self::Side => write!(f, "side"),
            Self::End(up) => write!(f, "end {}", if *up { '+' } else { '-' }),
            Self::Face(k) => write!(f, "face {k}"),
            Self::Edge(k) => write!(f, "edge {k}"),
            Self::Vertex(k) => write!(f, "vertex {k}"),
            Self::Tip(up, part) => {
                let end = if *up { '+' } else { '-' };
                write!(f, "rim {end} at {:.2} degrees", degrees(*part))
            }
            Self::Tangent(code) => {
                let n = Self::normal(*code);
                write!(f, "plane with normal ({:.3}, {:.3}, {:.3})", n.x, n.y, n.z)
            }
        }
    }
}

/// What of two colliders meets at a place, held from a knot to the next. Its gap is a smooth function of the poses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// What the pair says, without search.
    #[default]
    Surfaces,
    /// Nothing is near: the distance of the colliders' places stands in.
    Apart,
    /// A vertex of a polytope (of the first collider, `side` 0, or of the second) on a face of the other.
    Vertex {
        /// Whose vertex.
        side: usize,
        /// Which.
        vertex: usize,
        /// Face of the other.
        face: usize,
    },
    /// Two edges that cross.
    Edges {
        /// Of the first and of the second.
        edges: [usize; 2],
        /// Is the normal against the product of the edges' directions?
        against: bool,
    },
    /// An edge of a polytope, on a capsule.
    Edge(usize),
    /// Parts of two colliders, one of them a cylinder.
    Parts([Part; 2]),
    /// A vertex of a hull, on a half-space.
    Corner(usize),
    /// A point fixed on a rim, by its angle about the axis in parts of a turn, [`TURN`] of them.
    OnRim(u16),
    /// Such a point of a cylinder, on the plane of a face of the other collider.
    RimOnFace {
        /// Whose rim: of the first collider (0) or of the second.
        side: u8,
        /// That of the upper end?
        up: bool,
        part: u16,
        face: usize,
    },
    /// A triangle of a height field, on a ball.
    Triangle(usize),
    /// Its plane, on a point or a rim.
    Plane(usize),
    /// A plane through an edge or a corner of a height field, by their number and the plane's normal, as [`Meeting::tilted`] stores it.
    Tilted(usize, [i16; 2]),
}

impl Meeting {
    /// What it is called; none where nothing was searched for, or nothing found.
    pub fn name(&self) -> Option<String> {
        Some(match self {
            Self::Surfaces | Self::Apart => return None,
            Self::Corner(vertex) => format!("vertex {vertex}"),
            Self::OnRim(part) => format!("rim at {:.2} degrees", degrees(*part)),
            Self::RimOnFace {
                side, part, face, ..
            } => {
                let [own, other] = [["first", "second"], ["second", "first"]][usize::from(*side)];
                let at = degrees(*part);
                format!("rim of the {own} at {at:.2} degrees on face {face} of the {other}")
            }
            Self::Vertex { side, vertex, face } => {
                let [own, other] = [["first", "second"], ["second", "first"]][*side];
                format!("vertex {vertex} of the {own} on face {face} of the {other}")
            }
            Self::Edges { edges: [a, b], .. } => format!("edge {a} across edge {b}"),
            Self::Edge(edge) => format!("edge {edge}"),
            Self::Parts([p, q]) => format!("{p} of the first on {q} of the second"),
            Self::Triangle(t) | Self::Plane(t) => format!("triangle {t}"),
            Self::Tilted(number, _) => format!("edge or corner {number}"),
        })
    }
}

/// The code of what has none.
const NOTHING: f64 = -1.0;

impl Meeting {
    /// What a step exchanges as a number of its unknowns, none of which is zero: points of rims, what is on height fields, and what a pair says
    /// are positive, others less than -1. -1 of what has none.
    pub(crate) fn code(&self) -> f64 {
        let turn = f64::from(TURN);
        match *self {
            Self::Surfaces => TWO_53,
            Self::Corner(vertex) => -3.0 - 2.0 * (CORNERS + vertex) as f64,
            Self::OnRim(part) => f64::from(part) + 1.0,
            Self::RimOnFace {
                side,
                up,
                part,
                face,
            } => {
                let which =
                    1.0 + f64::from(side) + 2.0 * f64::from(u8::from(up)) + 4.0 * face as f64;
                f64::from(part) + 1.0 + turn * which
            }
            Self::Parts([p, q]) => match (p.bits(), q.bits()) {
                (Some(p), Some(q)) => -2.0 - 2.0 * (p + q * PARTS) as f64,
                (None, Some(q)) => p
                    .field_bits()
                    .map_or(NOTHING, |p| field_code(q as usize + PARTS as usize * p, 3)),
                _ => NOTHING,
            },
            Self::Edges {
                edges: [a, b],
                against,
            } => match [a, b].map(|edge| Part::Edge(edge).bits()) {
                [Some(p), Some(q)] => {
                    let p = p + INDEX as u64 * (CROSSING + u64::from(against));
                    -2.0 - 2.0 * (p + q * PARTS) as f64
                }
                _ => NOTHING,
            },
            Self::Vertex { side, vertex, face } => {
                let bits = side + 2 * (vertex.min(INDEX - 1) + INDEX * face.min(INDEX - 1));
                -3.0 - 2.0 * bits as f64
            }
            Self::Triangle(t) => field_code(t, 0),
            Self::Plane(t) => field_code(t, 1),
            Self::Tilted(number, by) => {
                let [p, q] = by.map(|x| (i32::from(x) + HALF_TURN) as usize / COARSE);
                match number < NUMBERS {
                    true => field_code((number * STEPS + p) * STEPS + q, 2),
                    false => NOTHING,
                }
            }
            _ => NOTHING,
        }
    }

    /// A plane through an edge or a corner of a height field: its normal is stored as exactly as a code can hold.
    pub(super) fn tilted(number: usize, by: [i16; 2]) -> Self {
        let step = COARSE as i32;
        let coarse = |x: i16| {
            let nearest = (i32::from(x) + step / 2).div_euclid(step) * step;
            nearest.min(HALF_TURN - step) as i16
        };
        Self::Tilted(number, by.map(coarse))
    }

    /// The angle to another point of the same rim on the same part of the other, parts of a turn.
    pub(crate) fn angle_to(&self, other: &Self) -> Option<u16> {
        if let (Self::Parts(p), Self::Parts(q)) = (self, other) {
            let by = [0, 1].map(|side| p[side].angle_to(&q[side]));
            let turns = p.iter().any(|p| match p {
                Part::Tip(..) => true,
                Part::Ring(s) => s.unsigned_abs() < AT_RIM,
                _ => false,
            });
            return by[0].zip(by[1]).filter(|_| turns).map(|(a, b)| a.max(b));
        }
        let (p, q) = match (*self, *other) {
            (Self::OnRim(p), Self::OnRim(q)) => (p, q),
            (
                Self::RimOnFace { part: p, .. },
                Self::RimOnFace {
                    side,
                    up,
                    part: q,
                    face,
                },
            ) => {
                let moved = Self::RimOnFace {
                    side,
                    up,
                    part: p,
                    face,
                };
                (moved == *self).then_some((p, q))?
            }
            _ => return None,
        };
        Some(between(p, q))
    }

    /// Has it a number of its own?
    pub(crate) fn is_coded(&self) -> bool {
        self.code() != NOTHING
    }

    /// What has that number.
    pub(crate) fn decoded(code: f64) -> Self {
        let code = code.round();
        if code == TWO_53 {
            return Self::Surfaces;
        }
        if code <= -2.0 && code > -TWO_53 {
            let (bits, is_vertex) = ((-2.0 - code) as u64 / 2, code % 2.0 != 0.0);
            if is_vertex {
                if let Some(vertex) = (bits as usize).checked_sub(CORNERS) {
                    return Self::Corner(vertex);
                }
                let (side, bits) = ((bits & 1) as usize, (bits >> 1) as usize);
                let (vertex, face) = (bits % INDEX, bits / INDEX);
                return Self::Vertex { side, vertex, face };
            }
            let (first, second) = (bits % PARTS, bits / PARTS);
            let marked = first / INDEX as u64;
            let crossing = marked.checked_sub(CROSSING + EDGE).filter(|k| *k < 2);
            let first = first - INDEX as u64 * crossing.map_or(0, |k| CROSSING + k);
            let parts = [first, second].map(Part::of_bits);
            return match (parts, crossing) {
                ([Some(Part::Edge(a)), Some(Part::Edge(b))], Some(k)) => Self::Edges {
                    edges: [a, b],
                    against: k == 1,
                },
                ([Some(p), Some(q)], None) => Self::Parts([p, q]),
                _ => Self::Apart,
            };
        }
        if (FIELDS..TWO_53).contains(&code) {
            return Self::on_field((code - FIELDS) as usize);
        }
        if !(1.0..f64::from(u32::MAX)).contains(&code) {
            return Self::Apart;
        }
        let code = code as u32 - 1;
        let (part, which) = (
            (code % u32::from(TURN)) as u16,
            (code / u32::from(TURN)) as usize,
        );
        match which.checked_sub(1) {
            None => Self::OnRim(part),
            Some(which) => Self::RimOnFace {
                side: (which & 1) as u8,
                up: which & 2 != 0,
                part,
                face: which >> 2,
            },
        }
    }
}

impl Meeting {
    /// What of a height field has the number that [`field_code`] makes a code of.
    fn on_field(number: usize) -> Self {
        let (of, kind) = (number / KINDS, number % KINDS);
        match kind {
            0 => Self::Triangle(of),
            1 => Self::Plane(of),
            2 => {
                let by = [of / STEPS % STEPS, of % STEPS];
                let by = by.map(|step| (step as i32 * COARSE as i32 - HALF_TURN) as i16);
                Self::Tilted(of / STEPS / STEPS, by)
            }
            _ => {
                let (p, q) = (of / PARTS as usize, of % PARTS as usize);
                let parts = Part::of_field_bits(p).zip(Part::of_bits(q as u64));
                parts.map_or(Self::Apart, |(p, q)| Self::Parts([p, q]))
            }
        }
    }
}

/// A code of what is on a height field, of one of [`KINDS`]. Triangles are fewer than there are numbers.
fn field_code(number: usize, kind: usize) -> f64 {
    FIELDS + (KINDS * number + kind) as f64
}

/// What is on height fields is numbered from here, above points of rims.
const FIELDS: f64 = 4_294_967_296.0;
const KINDS: usize = 4;
/// Parts of half a turn that a stored normal has, by how many of them it is rounded, and how many different ones are left; numbers of edges and
/// corners that a code can hold beside two of them.
const HALF_TURN: i32 = 1 << 15;
const COARSE: usize = 1 << 3;
const STEPS: usize = 1 << 13;
const NUMBERS: usize = 1 << 24;
/// Numbers of faces, edges and vertices of a height field that a code can hold beside a part of a cylinder, and how many kinds these are.
const FIELD: usize = 1 << 26;
const OF_FIELD: usize = 3;

/// Parts of a turn by which the angles of points on a rim are stored: where one is the lowest point, the true one is lower by at most
/// 5e-9 of what the rim is tilted by (m). That is below 1e-9 m for what is tilted by less than 20 cm. More parts make the pieces narrower
/// on which the motion is smooth, and their codes would not be distinct.
pub(crate) const TURN: u16 = 1 << 15;

/// A circle there is a rim.
const AT_RIM: u16 = END.unsigned_abs();
/// Numbers of faces, edges and vertices in a code, and numbers of parts: those of two of them are less than 2^53.
const INDEX: usize = 1 << 16;
const PARTS: u64 = 1 << 20;
/// The kind of an edge in a code. That of the first of two edges that cross is higher by so much, and by one more if their normal is
/// against the product of their directions.
const EDGE: u64 = 4;
const CROSSING: u64 = 4;
/// Vertices on half-spaces are numbered from here, above those on faces.
const CORNERS: usize = 1 << 34;
const TWO_53: f64 = 9_007_199_254_740_992.0;

/// Between two angles, parts of a turn.
fn between(p: u16, q: u16) -> u16 {
    let by = p.abs_diff(q);
    by.min(TURN - by)
}

impl Part {
    /// As a number of 20 bits; none of a plane that touches.
    fn bits(self) -> Option<u64> {
        let index = |k: usize| (k < INDEX).then_some(k as u64);
        let (kind, number) = match self {
            Self::Ring(s) => (0, u64::from(s.cast_unsigned())),
            Self::Side => (1, 0),
            Self::End(up) => (2, u64::from(up)),
            Self::Face(k) => (3, index(k)?),
            Self::Edge(k) => (EDGE, index(k)?),
            Self::Vertex(k) => (5, index(k)?),
            Self::Tip(up, part) => (6, u64::from(part) + u64::from(TURN) * u64::from(up)),
            Self::Tangent(_) => return None,
        };
        Some(number + INDEX as u64 * kind)
    }

    /// As a number, of what a height field has.
    fn field_bits(self) -> Option<usize> {
        let (kind, k) = match self {
            Self::Face(k) => (0, k),
            Self::Edge(k) => (1, k),
            Self::Vertex(k) => (2, k),
            _ => return None,
        };
        (k < FIELD).then_some(OF_FIELD * k + kind)
    }

    fn of_field_bits(bits: usize) -> Option<Self> {
        let k = bits / OF_FIELD;
        let part = [Self::Face(k), Self::Edge(k), Self::Vertex(k)][bits % OF_FIELD];
        (k < FIELD).then_some(part)
    }

    fn of_bits(bits: u64) -> Option<Self> {
        let number = bits % INDEX as u64;
        let k = number as usize;
        Some(match bits / INDEX as u64 {
            0 => Self::Ring((number as u16).cast_signed()),
            1 => Self::Side,
            2 => Self::End(number != 0),
            3 => Self::Face(k),
            EDGE => Self::Edge(k),
            5 => Self::Vertex(k),
            6 => Self::Tip(number >= u64::from(TURN), (number % u64::from(TURN)) as u16),
            _ => return None,
        })
    }

    /// The angle to another point of the same rim, none to the same part, parts of a turn. A sixteenth of half an axis between two of its
    /// circles counts as a 64th of a turn.
    fn angle_to(&self, other: &Self) -> Option<u16> {
        match (self, other) {
            (Self::Tip(up, p), Self::Tip(other, q)) if up == other => Some(between(*p, *q)),
            (Self::Ring(p), Self::Ring(q)) if p.unsigned_abs().max(q.unsigned_abs()) < AT_RIM => {
                Some(p.abs_diff(*q) / (AT_RIM / (TURN / 4)))
            }
            _ => (self == other).then_some(0),
        }
    }
}

/// About the axis, from the collider's x.
fn degrees(part: u16) -> f64 {
    360.0 * f64::from(part) / f64::from(TURN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_return_what_they_are_of() {
        let parts = [
            Part::Ring(-END),
            Part::Ring(END),
            Part::Ring(-3),
            Part::Side,
            Part::End(true),
            Part::End(false),
            Part::Face(5),
            Part::Edge(INDEX - 1),
            Part::Vertex(0),
            Part::Tip(false, TURN - 1),
            Part::Tip(true, 0),
        ];
        let vertex = |side, vertex, face| Meeting::Vertex { side, vertex, face };
        let mut all = vec![
            Meeting::OnRim(0),
            Meeting::OnRim(TURN - 1),
            vertex(0, 7, 0),
            vertex(1, 0, 13),
            vertex(1, INDEX - 1, INDEX - 1),
            Meeting::Surfaces,
            Meeting::Corner(0),
            Meeting::Corner(INDEX),
            Meeting::Triangle(0),
            Meeting::Plane(0),
            Meeting::Triangle(12_345),
            Meeting::Plane(12_345),
            Meeting::tilted(0, [i16::MIN; 2]),
            Meeting::tilted(NUMBERS - 1, [i16::MAX; 2]),
            Meeting::tilted(77, [-8, 16]),
        ];
        for p in parts {
            all.extend(parts.map(|q| Meeting::Parts([p, q])));
        }
        for edges in [[0, 0], [3, 11], [INDEX - 1, INDEX - 1]] {
            all.extend([false, true].map(|against| Meeting::Edges { edges, against }));
        }
        // of large height fields
        for k in [INDEX, FIELD - 1] {
            for p in [Part::Face(k), Part::Edge(k), Part::Vertex(k)] {
                all.extend([Part::Ring(-END), Part::Tip(true, 9)].map(|q| Meeting::Parts([p, q])));
            }
        }
        for (side, up) in [(0, true), (1, false)] {
            all.push(Meeting::RimOnFace {
                side,
                up,
                part: 17,
                face: 3,
            });
        }
        for (i, held) in all.iter().enumerate() {
            let code = held.code();
            assert!(
                code != 0.0 && code != -1.0 && code.fract() == 0.0,
                "{held:?}"
            );
            assert_eq!(Meeting::decoded(code), *held);
            assert!(all[..i].iter().all(|h| h.code() != code), "{held:?}");
        }
    }
}
