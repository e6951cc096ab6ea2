//! The interior-point method on published programs and where programs are not as they should be; direct transcription.

mod direct;
mod gaits;
mod programs;
mod solver;
mod substeps;
