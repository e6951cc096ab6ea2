//! Files: problems and mechanisms in, recordings of trajectories out.

pub mod recording;
