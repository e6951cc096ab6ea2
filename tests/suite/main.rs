//! The library from outside: physics, derivatives, optimizers, failures. One program, since linking each file of tests
//! on its own takes longer than running it.

mod argmin;
#[path = "../../examples/common/arm.rs"]
mod arm;
mod common;
mod conservation;
mod contact;
#[path = "../../examples/common/cranks.rs"]
#[allow(dead_code, reason = "the example uses more")]
mod cranks;
mod ddp;
mod ddp_mechanisms;
mod determinism;
#[path = "../../examples/common/disc.rs"]
mod disc;
#[path = "../../examples/common/drops.rs"]
#[allow(dead_code, reason = "the example uses more")]
mod drops;
mod elements;
mod episodes;
mod extremes;
mod free;
mod gradients;
mod identification;
mod in_motion;
#[path = "../../examples/common/knife_edge.rs"]
mod knife_edge;
mod language;
mod learners;
mod light;
#[path = "../../examples/methods.rs"]
#[allow(dead_code, reason = "the example prints a table")]
mod methods;
mod minimal;
mod multiple_shooting;
mod objective;
mod pages;
mod parameters;
mod physics;
#[path = "../../examples/common/planar.rs"]
mod planar;
#[path = "../../examples/argmin.rs"]
mod plugged;
mod policies;
mod problems;
mod random_trees;
mod receding;
mod replays;
mod resume;
mod robots;
mod rotation;
#[path = "../../examples/common/segments.rs"]
mod segments;
mod shooting;
mod small_problems;
mod smooth;
mod smoothing;
#[path = "../../examples/common/spheres.rs"]
mod spheres;
mod statistics;
mod stress;
#[path = "../../examples/common/strides.rs"]
#[allow(dead_code, reason = "the example uses more")]
mod strides;
#[path = "../../examples/common/trees.rs"]
#[allow(dead_code, reason = "the example uses more")]
mod trees;
mod two_balls;
