pub mod block;
pub mod dynamics;
pub mod integrator;
pub mod mechanism;
pub mod spatial;
