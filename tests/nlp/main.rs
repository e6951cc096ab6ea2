//! The interior-point method on published programs, and where programs are not as they should be.

mod programs;
mod solver;
