//! Trajectory optimization and differentiable simulation of mechanisms.
//!
//! Every body keeps its six coordinates; joints are exact constraints, solved at once with the motion by Newton's
//! method on a block-sparse matrix whose factors cost time linear in the number of bodies. Trees make the same steps in
//! the joints' coordinates, by a recursion along the tree. The integrator is
//! variational (Bruedigam et al., *Multibody Syst. Dyn.* 2023; *WAFR* 2020): energy does not drift, momentum is kept,
//! loops stay closed. Its derivatives follow from the same matrix by the implicit function theorem.
//!
//! Data flows one way, and so do the arrows between modules; each knows only those above it:
//!
//! | module | what it holds |
//! |---|---|
//! | [`spatial`] | rotations and rigid-body inertia |
//! | [`block`] | sparse matrices of small dense blocks on a graph: ordering, factors, solves |
//! | [`mechanism`] | what there is: bodies, joints, springs, dampers, actuators; builder, kinematics; what can be seen of it |
//! | [`dynamics`] | the seam: traits between mechanics and optimization |
//! | [`contact`] | contacts, limits and friction of joints in any step: law and interior-point method |
//! | [`integrator`] | how it moves: one step and its derivatives |
//! | [`rollout`] | trajectories, the reverse sweep, batches, energy |
//! | [`control`] | what is wanted: costs, constraints, bounds |
//! | [`optimize`] | how it is found |
//! | [`format`](mod@format) | problem and mechanism files in, recordings out |
//! | [`plot`] | figures |
//! | [`animate`] | animations |
//!
//! # A problem, solved
//!
//! ```
//! use least_action::format::{self, Overrides};
//! use least_action::optimize::{self, Status};
//!
//! let lift = r#"
//!     title = "Lift"
//!     time_step = 0.05                       # s
//!     horizon = 1.0                          # s
//!
//!     [mechanism.bodies.arm]
//!     mass = 1.0                             # kg
//!     shape = { box = [0.05, 0.05, 0.6] }    # m
//!
//!     [mechanism.joints.shoulder]
//!     kind = "revolute"
//!     child = "arm"
//!     axis = [0.0, 1.0, 0.0]
//!     child_anchor = [0.0, 0.0, 0.3]
//!
//!     [mechanism.actuators.motor]
//!     joint = "shoulder"
//!     bounds = [-5.0, 5.0]                   # N m
//!
//!     [[costs]]
//!     quantity = { control = "motor" }
//!     weight = 0.01
//!
//!     [[constraints]]                        # at the end
//!     quantity = { joint = "shoulder" }
//!     equals = 1.5                           # rad
//!
//!     [[constraints]]
//!     quantity = { joint_rate = "shoulder" }
//!     equals = 0.0
//! "#;
//! let model = format::parse(lift, "lift.toml")?.build(&Overrides::default())?;
//! let solution = optimize::solve(&model.system, &model.problem)?;
//! assert_eq!(solution.status, Status::Converged, "{}", solution.reason);
//! println!("objective {:.6}", solution.objective);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same by hand: a mechanism by the builder of [`mechanism`], a [`integrator::System`] of it, a
//! [`control::Problem`] by the system's quantities, which [`dynamics::Observe::quantity`] finds by name. What files may
//! say stands at [`format`](mod@format).
//!
//! # How a control acts between knots
//!
//! A trajectory has one control `u_k` for each interval from knot `k` to knot `k + 1`. Two conventions say how it acts, both of second
//! order in the time step; costs, figures, substeps, policies and checks follow the one in use ([`integrator::Controls`], `controls` in a
//! file):
//!
//! - `held`, the default: `u_k` is constant over its interval (zero-order hold), as a digital controller acts. The control of the knot
//!   before is part of the state. A cost of the control counts for its interval.
//! - `linear`: the control is linear between knots and constant over the last interval. A cost of the control counts for half of both
//!   intervals that meet at its knot.
//!
//! The page `docs/accuracy.md` has the table of what follows, and says which results are exact, of second order, and refused.
//!
//! # A pendulum in a few lines
//!
//! ```
//! use least_action::integrator::{Choice, Mechanical, Options, System};
//! use least_action::mechanism::{BodySpec, JointKind, JointSpec, MechanismBuilder, Shape};
//! use least_action::rollout::{RolloutStats, Trajectory};
//! use least_action::dynamics::Step;
//!
//! let mechanism = MechanismBuilder::new()
//!     .body("rod", BodySpec::new(1.0).shape(Shape::Box([0.05, 0.05, 1.0])))
//!     .joint(
//!         "pivot",
//!         JointSpec::new(JointKind::Revolute, "rod")
//!             .axis([0.0, 1.0, 0.0])
//!             .anchors([0.0; 3], [0.0, 0.0, 0.5]),
//!     )
//!     .build()?;
//! let start = [1.0]; // rad
//! let system = System::new(Choice::default(), mechanism, &start, Options::default())?;
//! let x0 = system.start(&start, &[0.0], &[true])?;
//! let mut trajectory = Trajectory::new(&system, vec![0.01; 100], &x0);
//! let mut stats = RolloutStats::default();
//! trajectory.roll(&system, &mut system.work(), &mut stats)?;
//! println!("after 1 s at {:.4} rad", system.coordinate(trajectory.state(100), 0, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Units are SI, angles rad; quaternions are Hamilton's, scalar first, body to world; forces are given in the world
//! frame, torques and angular velocities in the body frame.

#![warn(missing_docs)]

pub mod animate;
pub mod block;
pub mod contact;
pub mod control;
pub mod dynamics;
pub mod format;
pub mod integrator;
pub mod mechanism;
pub mod optimize;
pub mod plot;
pub mod rollout;
pub mod spatial;

/// The matrices that cross the faces.
pub use nalgebra;
