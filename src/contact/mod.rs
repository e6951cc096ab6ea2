//! Contacts, joint limits and joint friction: their law, and the interior-point method for any step they are part of.
//!
//! # The law
//!
//! Impulses act at the knot, along `N(z)'` (the normal) and `B(z)'` (two tangents); gaps `phi` are taken at its successor,
//! `h` later. Scaled by the contact's effective mass `m_c = 1/(N M^-1 N')` as it was built, all unknowns of a contact are
//! velocities, m/s (rad/s where a joint turns; the mass of a limit is that of its coordinate in the tree, `1/(M^-1)_jj`):
//! the gap over the interval `s = phi(z+)/h`, the normal impulse `g`, that of
//! friction `b`, the multiplier `psi` of the cone; with the sliding velocity `eta = 1/2 (B(z) + B(z+)) V+`, whose mean of
//! both ends makes rolling second order. On the central path
//!
//! ```text
//! s g = kappa,    u0 psi + b . eta = kappa,    u0 eta + psi b = 0,    u0 = mu g
//! ```
//!
//! which for `kappa -> 0` is `0 <= s` complementary to `g >= 0` and friction of maximum dissipation in the circular cone
//! `|b| <= u0`. Friction of a joint has a bound `u0` of its own, `1/2 (h- + h)` times its torque or force; a limit has no
//! friction. A [`Cone::Linearized`] has `b = sum d_i b_i` with `b_i >= 0` along directions `d_i` instead:
//! `b_i (d_i . eta + psi) = kappa`, `(u0 - sum b_i) psi = kappa`. The path ends at `kappa = central_path g h`
//! ([`ContactOptions::central_path`]), where bodies rest `kappa/(g h)` over one interval above each other.
//!
//! Where bodies overlap at a knot by more than `OVERLAP`, since which of their features meet has changed within the step
//! before, a step leaves `9/10` of what is deeper, `s = (phi(z+) - 9/10 (phi(z) + OVERLAP))/h`: that is pushed out over
//! several steps, not with its depth over one of them as speed. A point fixed on a body over a half-space is pushed out at
//! once.
//!
//! In the read-out of velocities at a knot the gap over the interval before stands in, `s = phi(z)/h- + N v`, and
//! `eta = B(z) v`. What is open at the knot and whose gap is not along that line takes no part (`anticipated.rs`).
//!
//! # Blows
//!
//! What touches in a step though it comes near too fast to rest bounces instead, where it has a restitution `e`: the knot
//! has two velocities, `v` of the read-out and `v'` behind the blow, which changes them at once and within the joints,
//!
//! ```text
//! M (v' - v) - G' lambda - m_c (N' g + B' b) = 0,    G v' = 0,    s = N v' + e N v
//! ```
//!
//! (`s = phi(z)/h + N v'` where nothing bounces), and the step starts anew from `v'`. The law is one of velocities at the
//! knot: that of the intervals' gains energy where joints act. Impulses of the read-out and the blow are unknowns of the
//! step, as is what bounced.
//!
//! # Eliminated into the bodies
//!
//! The bodies' rows lose `m_c (N' g + B' b)`. Linearized, `(dg, db) = c - S (N+ dV, B+ dV)` with
//! `N+ = (d phi(z+)/dV)/h`, `B+ = d eta/dV` and `S` three by three, not symmetric: the blocks of the bodies gain
//! `m_c [N; B]' S [N+; B+]` and their right side `m_c [N; B]' c`, and no row is added to the step's matrix. Where stiffness `g/s` takes the digits of what is beside it,
//! the impulses become unknowns of their own, factored with pivots.
//!
//! # How a step is solved
//!
//! First, unless something bounces, by Newton's method at the end of the path itself, from the velocities and impulses of the step
//! before, while what touched, stuck and slid goes on to: there the friction of what slides goes with the sliding velocity and is
//! no unknown, as the curved boundary of the cone would let it turn by no angle. Of a quadruped's walk that is most steps, in two
//! or three iterations of one solve each.
//!
//! Else by Mehrotra's predictor-corrector with one step length for all unknowns, from the impulses of the step before or from
//! forces alone. An iteration assembles and factors once; it takes the affine direction (products to zero), centers by
//! `sigma = (left/now)^3` of the products that would leave, corrects to second order, and goes 0.995 of the way to the
//! boundary of the cones or more. Median 8 to 9 iterations from forces alone, 2 to 3 from the step before; 99 of 100 steps of
//! random drops within 13.
//!
//! With much friction the central path `H(y, kappa) = 0` need not fall monotonically: it may turn back in `kappa`, where
//! Newton's method finds nothing. As a curve in `(y, kappa)` it goes on (Sard), and is followed by its length with the
//! tangent as predictor and Newton's method across it as corrector (Keller 1977, pseudo-arclength continuation), with the
//! same factors bordered by one row and column; where it leaves the step's domain, friction grows from little to all of it
//! on another curve. Length is measured in `ln s`, `ln g`, `ln psi`, `b/u0` and the logarithm of the parameter.
//! Before that, friction with given bounds is solved for, and the bounds are moved to `mu g` of the solution, by turns.
//!
//! [`ContactOptions::max_iterations`] bounds all of that for one step.
//!
//! # Derivatives
//!
//! A contact's unknowns answer to what flows into it, `(phi(z+)/h, eta, kappa, u0)`, by the law linearized at the solution
//! (*consistent*), or at the same point moved onto the path at a larger `kappa`, `s - g` and `b - eta` kept (*relaxed*):
//! these tell of contacts that are not made and of friction that is not overcome.
//!
//! # For an integrator
//!
//! It adds rows and blocks of contacts to its own and gives in return what the solver asks for: to evaluate, to assemble,
//! to factor, to solve. Mechanisms without contacts pay for one comparison each.

mod anticipated;
mod assembly;
mod attempts;
mod blow;
mod bounded;
mod cone;
mod delassus;
mod derivative;
mod element;
mod exchange;
mod extended;
mod interior;
mod memory;
mod newton;
mod options;
mod parameter;
mod path;
mod progress;
mod pyramid;
mod reaction;
mod refine;
mod start;
mod thrown;
mod unsolved;
mod work;

pub(crate) use assembly::Acts;
pub(crate) use blow::AfterBlow;
pub use blow::{Gap, Told, Touching};
pub(crate) use interior::Solver;
pub(crate) use newton::{Failed, NewtonSystem, View};
pub use options::{Cone, ContactOptions, Impacts};
pub(crate) use refine::Side;
pub use work::{ContactWork, Exchange, KnotWork, Loads};

use crate::block::Symbolic;
use crate::mechanism::{Body, Mechanism, Meeting, Row, Touch, Vec6, compliance};
use crate::spatial::{Mat3, Pose, Vec3};
use cone::{Law, Linear, Local, Target};
use delassus::Delassus;
use derivative::Response;
use extended::Extended;
use pyramid::{Facets, Pyramid};

/// Numbers of a contact among the unknowns: `s, g, psi, b`.
pub(crate) const UNKNOWNS: usize = 5;
/// Which of them are impulses.
pub(crate) const IMPULSES: [usize; 3] = [1, 3, 4];
/// The rows of the law, as many, that each of them is in.
pub(crate) const LAW: [&[usize]; UNKNOWNS] = [&[0, 1], &[1, 2, 3, 4], &[2, 3, 4], &[2, 3], &[2, 4]];
/// Numbers of a blow among them, behind those of all contacts: what the contact did ([`blow`]), `g, b` of the read-out and
/// the blow together, and the place that the blow acted on; zero where there was none.
pub(crate) const BLOW: usize = 5;

/// Impulses, as velocities, m/s, below which nothing acts. The end of the central path leaves less, with the default `central_path` and parts
/// of 0.01 s, if a gap is open by more than a micrometer.
const ACTS: f64 = 1e-6;

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A contact, by its index.
    Contact(usize),
    /// Coulomb friction of a joint's direction.
    Friction(usize, usize),
    /// A limit of a joint's coordinate: the upper one, or the lower.
    Limit(usize, usize, bool),
}

/// An element in the matrix of the step.
#[derive(Clone, Debug)]
struct Slot {
    source: Source,
    parent: Option<usize>,
    child: usize,
    /// The diagonal blocks of parent (0 where there is none) and child, in a matrix of bodies' blocks.
    own: [usize; 2],
    /// Blocks parent-child and child-parent.
    pair: Option<(usize, usize)>,
    /// Scales its impulses: kg, for rotations kg m^2. That of a limit or of joint friction is the inertia that the tree of joints
    /// shows along the coordinate, not that of its two bodies alone: between hinges a body of 1e-6 kg carries the impulses of a leg,
    /// `g` would be 1e6 rad/s, and rounding of the gap times `g` would exceed the end of the central path.
    mass: f64,
    /// `mass` divided by the effective mass of its two bodies alone, for an element of a joint in maximal coordinates; otherwise 0. A stiff
    /// element adds its stiffness times `mass` to the blocks of its bodies. The larger this ratio is, the more digits of the lighter body's
    /// own inertia are lost in that sum.
    contrast: f64,
}

/// The elements of a mechanism, with scalings of that as it was built: they stay where masses, sizes or gravity are
/// parameters, so that no derivative of theirs is missing from a gradient.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    slots: Vec<Slot>,
    /// Unknowns of the step, behind which those of contacts follow.
    rows: usize,
    options: ContactOptions,
    /// `central_path` times the size of gravity, or 9.81 where there is none, m/s^2.
    path: f64,
    /// Radius of gyration of every body, m: turns its angular velocities into velocities.
    sizes: Vec<f64>,
    /// Smallest mass, kg.
    lightest: f64,
    /// Of a linearized cone.
    pyramid: Option<Pyramid>,
    /// Has anything a restitution?
    elastic: bool,
    /// Elements whose points of rims, or vertices of hulls, may be exchanged, by the ends, hulls or pairs that they are of.
    rims: Vec<Vec<usize>>,
}

/// What a solution at a knot is of, beside its stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Moment {
    /// Whatever touches, touches.
    #[default]
    Plain,
    /// The blow before an interval of this length, s.
    Blow(f64),
    /// The step after a blow: nothing bounces again.
    AfterBlow,
}

/// An element at a knot and at the trial unknowns.
#[derive(Clone, Copy, Debug)]
struct Element {
    law: Law,
    /// The law itself, while there is less friction, or a given bound of it.
    whole: Law,
    /// Wrenches of unit impulses: along the normal, along the two tangents.
    normal: Row,
    tangents: [Row; 2],
    /// What of a contact meets, from the knot to its successor, and what was found at the knot.
    held: Meeting,
    found: Meeting,
    /// What the last solution of the step held, while it is solved again; then what the blow at its knot acts on.
    kept: Meeting,
    /// The contact at the knot.
    here: Touch,
    /// `phi/h` at the unknowns last evaluated, and the contact there.
    gap: f64,
    next: Touch,
    /// What rounding of positions may leave of it, m/s, and what rounding of its increment does.
    floor: f64,
    noise: f64,
    /// A half-space's distance is that of this point of the child, body frame.
    arm: Option<Vec3>,
    /// `N+` by the velocities of parent and child.
    by_velocity: [Vec6; 2],
    /// The rows of the sliding velocity at the unknowns last evaluated: means of both ends of the interval.
    slides: [Row; 2],
    /// `B+`, as last assembled: what those rows say, and how they turn with the end.
    slide_by_velocity: [[Vec6; 2]; 2],
    /// What rounding may leave of the sliding velocity, m/s, where a pyramid carries it along.
    slip_noise: f64,
    /// Derivatives of the sliding velocity by the configuration at the end.
    slide_turn: [[Vec6; 2]; 2],
    /// Restitution, where the contact comes near too fast to rest; else zero.
    restitution: f64,
    /// Does it bounce in the blow at the knot?
    bounces: bool,
    /// How it is treated, where the step is not to decide.
    told: Option<Touching>,
    /// Part that a step leaves of the overlap beyond [`assembly::OVERLAP`] at the knot.
    left: f64,
    /// Friction goes with the sliding velocity, on the central path at this parameter, rather than being an unknown.
    follows: Option<f64>,
    local: Local,
    linear: Linear,
    /// Are its impulses unknowns of their own, as last factored?
    is_unknown: bool,
    target: Target,
    direction: Local,
    /// Derivative of the gap at the successor.
    next_row: Row,
    response: Response,
    /// The affine direction, a direction and a point that may be returned to.
    affine: Local,
    spare: Local,
    point: Local,
    /// Of the central path, by its length: of `ln s`, `ln g`, `ln psi`, `b/u0`.
    tangent: [f64; 5],
}

/// What is computed for the elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    elements: Vec<Element>,
    /// One for each element, where the cone is linearized.
    facets: Vec<Facets>,
    /// The central path's parameter, m^2/s^2.
    kappa: f64,
    /// Least parameter of a step.
    softness: f64,
    /// The larger parameter that linearizations use, if any.
    smoothing: f64,
    /// Parameter of the unsolved equations; is it that of the step prepared?
    level: Option<f64>,
    levelled: bool,
    /// Length by which gaps are divided, s.
    interval: f64,
    moment: Moment,
    /// Iterations of the step so far.
    spent: usize,
    /// Most iterations of a step that can be divided; `max_iterations` limits it, too.
    most: usize,
    /// Numbers that say which points of rims were held, as last read.
    places: Vec<f64>,
    /// Nothing touches at the start, where there is no interval before.
    idle: bool,
    /// The derivatives by the configuration are those of the last linearization.
    coupled: bool,
    /// The last iterate of the step's unknowns, a point on a curve, the Newton direction (to be subtracted), a copy of one, a right-hand side
    /// and a correction.
    last: Vec<f64>,
    point: Vec<f64>,
    delta: Vec<f64>,
    spare: Vec<f64>,
    rhs: Vec<f64>,
    more: Vec<f64>,
    /// The step's matrix without contacts.
    bare: Vec<f64>,
    /// Impulses that answer to a direction, three for each element, if the matrix is factored with pivots.
    collected: Vec<f64>,
    /// Where the blocks fail.
    extended: Option<Box<Extended>>,
    delassus: Option<Box<Delassus>>,
}

/// No contact, and no change of one.
const NOWHERE: Touch = Touch {
    gap: 0.0,
    normal: Vec3::new(0.0, 0.0, 0.0),
    point: Vec3::new(0.0, 0.0, 0.0),
};

/// Edges of the graph that contacts between bodies ask for.
pub(crate) fn edges(m: &Mechanism) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = |j: usize| (m.joints[j].parent, m.joints[j].child);
    let friction = with_friction(m).map(move |(j, _)| ends(j));
    let limit = limited(m).map(move |(j, ..)| ends(j));
    let touch = m.contacts.iter().map(|c| (c.parent, c.child));
    touch
        .chain(friction)
        .chain(limit)
        .filter_map(|(p, c)| p.map(|p| (p, c)))
}

/// Joint directions with Coulomb friction.
fn with_friction(m: &Mechanism) -> impl Iterator<Item = (usize, usize)> + '_ {
    m.coordinates()
        .filter(|&(j, i)| m.joints[j].directions[i].friction > 0.0)
}

/// Limits of joints: joint, direction, whether the upper one.
fn limited(m: &Mechanism) -> impl Iterator<Item = (usize, usize, bool)> + '_ {
    m.coordinates().flat_map(|(j, i)| {
        let d = &m.joints[j].directions[i];
        let sides = [(d.lower, false), (d.upper, true)];
        let closed = sides.into_iter().filter(|(bound, _)| bound.is_finite());
        closed.map(move |(_, upper)| (j, i, upper))
    })
}

impl Layout {
    pub(crate) fn new(
        m: &Mechanism,
        (symbolic, rows): (Option<&Symbolic>, usize),
        options: &ContactOptions,
        (inverse_inertia, poses): (&[Mat3], &[Pose]),
    ) -> Self {
        let slot = |r, c| {
            symbolic.map_or(0, |s| {
                s.slot(r, c).expect("an edge of the graph has its block")
            })
        };
        let pair = |p: Option<usize>, c| p.map(|p| (slot(p, c), slot(c, p)));
        let own = |p: Option<usize>, c| [p.map_or(0, |p| slot(p, p)), slot(c, c)];
        let touch = m.contacts.iter().enumerate().map(|(i, c)| Slot {
            source: Source::Contact(i),
            parent: c.parent,
            child: c.child,
            own: own(c.parent, c.child),
            pair: pair(c.parent, c.child),
            mass: c.effective_mass,
            contrast: 0.0,
        });
        let of_tree = m.coordinate_compliances(poses);
        let of_joint = |source, j: usize, i| {
            let joint = &m.joints[j];
            let (a, b) = m.ends(joint, poses);
            let row = joint.direction_row(i, a, b, &joint.relative(a, b));
            // a joint that closes a loop has no coordinate in the tree
            let own_compliance = of_tree.as_ref().and_then(|all| all[j].get(i)).copied();
            let bodies_alone = compliance(m, inverse_inertia, (joint.parent, joint.child), &row);
            let mass = 1.0 / own_compliance.unwrap_or(bodies_alone);
            Slot {
                source,
                parent: joint.parent,
                child: joint.child,
                own: own(joint.parent, joint.child),
                pair: pair(joint.parent, joint.child),
                mass,
                contrast: symbolic.map_or(0.0, |_| mass * bodies_alone),
            }
        };
        let friction = with_friction(m).map(|(j, i)| of_joint(Source::Friction(j, i), j, i));
        let limit = limited(m).map(|(j, i, up)| of_joint(Source::Limit(j, i, up), j, i));
        let slots: Vec<_> = touch.chain(friction).chain(limit).collect();
        Self {
            slots,
            rows,
            options: *options,
            path: options.central_path * m.gravity_scale(),
            sizes: m.bodies.iter().map(Body::radius_of_gyration).collect(),
            elastic: Self::is_elastic(m),
            // contacts come first among the elements
            rims: m.rims(),
            pyramid: match options.cone {
                Cone::SecondOrder => None,
                Cone::Linearized(directions) => Some(Pyramid::new(directions)),
            },
            lightest: m
                .bodies
                .iter()
                .map(|b| b.mass)
                .fold(f64::INFINITY, f64::min),
        }
    }

    /// Radius of gyration of every body, m.
    pub(crate) fn sizes(&self) -> &[f64] {
        &self.sizes
    }

    /// Are there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Does a joint have limits or friction?
    pub(crate) fn acts_on(&self, joint: usize) -> bool {
        let own = |s: &Slot| match s.source {
            Source::Friction(j, _) | Source::Limit(j, ..) => j == joint,
            Source::Contact(_) => false,
        };
        self.slots.iter().any(own)
    }

    /// Bodies on which a contact, a limit or friction of a joint acts in the step solved last: of each, the child.
    pub(crate) fn touched<'a>(&'a self, memory: &'a Memory) -> impl Iterator<Item = usize> + 'a {
        let each = self.slots.iter().zip(&memory.elements);
        let acting = each.filter(|(_, e)| e.local.impulses().iter().any(|v| v.abs() > ACTS));
        acting.map(|(slot, _)| slot.child)
    }

    /// Are there contacts or limits, not friction in joints alone?
    pub(crate) fn has_gaps(&self) -> bool {
        let mut each = self.slots.iter();
        each.any(|s| !s.is_friction())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Numbers among the unknowns.
    pub(crate) fn unknowns(&self) -> usize {
        self.rim_points().end - self.rows
    }

    /// Those that say which points of rims were held ([`exchange`]).
    pub(crate) fn rim_points(&self) -> std::ops::Range<usize> {
        let first = self.blows().end;
        first..first + self.rims.iter().map(Vec::len).sum::<usize>()
    }

    /// Those of blows among the unknowns of the step, [`BLOW`] an element; none where nothing bounces.
    pub(crate) fn blows(&self) -> std::ops::Range<usize> {
        let facets = self.pyramid.as_ref().map_or(0, Pyramid::unknowns);
        let first = self.rows + (UNKNOWNS + facets) * self.slots.len();
        let count = if self.elastic { self.slots.len() } else { 0 };
        first..first + BLOW * count
    }

    /// The contact, limit or friction of a joint that has the largest impulse of the iterate at hand, if any has one.
    pub(crate) fn most_loaded(&self, memory: &Memory) -> Option<usize> {
        let size = |(e, slot): (&Element, &Slot)| {
            let [normal, first, second] = e.local.impulses();
            slot.mass * normal.hypot(first.hypot(second))
        };
        let sizes = memory.elements.iter().zip(&self.slots).map(size);
        let most = sizes.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (most.1 > 0.0).then_some(most.0)
    }

    /// Name of an element.
    pub(crate) fn name(&self, m: &Mechanism, element: usize) -> String {
        match self.slots[element].source {
            Source::Contact(i) => format!("contact `{}`", m.contacts[i].name),
            Source::Friction(j, i) => format!("friction of joint `{}`", m.coordinate_name((j, i))),
            Source::Limit(j, i, upper) => {
                let side = if upper { "upper" } else { "lower" };
                format!("{side} limit of joint `{}`", m.coordinate_name((j, i)))
            }
        }
    }
}
