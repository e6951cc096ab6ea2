//! What of two colliders meets at a place, held from a knot to the next.

use crate::spatial::Vec3;

/// Places of a pair: eight corners of the common outline, which two quadrilaterals have at most, and two edges.
pub(super) const PLACES: usize = 9;
pub(super) const OUTLINE: usize = PLACES - 1;
/// Places of what is curved: two rims and two edges where a cylinder lies across a face.
pub(super) const CURVED: usize = 4;
/// Those of prisms, then those.
pub(super) const SLOTS: usize = OUTLINE + CURVED;

/// More vertices than hulls have, as numbers of vertices are stored.
const VERTICES: f64 = (1 << 24) as f64;

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
        })
    }
}

impl Meeting {
    /// A point of a rim or a vertex, on a half-space or a face, as a number of a step's unknowns, none of which is zero; -1 of what has none.
    /// Numbers of vertices are below it.
    pub(crate) fn code(&self) -> f64 {
        let turn = f64::from(TURN);
        match *self {
            Self::Corner(vertex) => -2.0 - vertex as f64,
            Self::Vertex { side, vertex, face } => {
                -2.0 - VERTICES * (1.0 + side as f64 + 2.0 * face as f64) - vertex as f64
            }
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
            _ => -1.0,
        }
    }

    /// The angle to another point of the same rim on the same face, parts of a turn.
    pub(crate) fn angle_to(&self, other: &Self) -> Option<u16> {
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
        let by = p.abs_diff(q);
        Some(by.min(TURN - by))
    }

    /// What has that number.
    pub(crate) fn decoded(code: f64) -> Self {
        if code <= -2.0 && code.is_finite() {
            let (vertex, which) = (
                ((-2.0 - code) % VERTICES) as usize,
                ((-2.0 - code) / VERTICES) as usize,
            );
            return match which.checked_sub(1) {
                None => Self::Corner(vertex),
                Some(which) => Self::Vertex {
                    side: which & 1,
                    vertex,
                    face: which >> 1,
                },
            };
        }
        if code < 1.0 || code >= f64::from(u32::MAX) {
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

/// Parts of a turn by which the angles of points on a rim are stored: where one is the lowest point, the true one is lower by at most
/// 2e-8 of what the rim is tilted by (m). More parts make the pieces narrower on which the motion is smooth.
pub(crate) const TURN: u16 = 1 << 14;

/// About the axis, from the collider's x.
fn degrees(part: u16) -> f64 {
    360.0 * f64::from(part) / f64::from(TURN)
}
