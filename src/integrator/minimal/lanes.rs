//! Numbers, vectors and products of several rows side by side, for the machine's wide instructions.

use super::momentum::Blocks;
use crate::spatial::{Mat3, Vec3};
use std::ops::Range;

/// Rows side by side.
pub(super) const LANES: usize = 8;

/// A vector in every lane.
#[derive(Clone, Copy)]
pub(super) struct Wide(pub [[f64; LANES]; 3]);

pub(super) type Numbers = [f64; LANES];

impl Wide {
    pub const ZERO: Self = Self([[0.0; LANES]; 3]);

    pub fn from_rows(rows: &[Numbers]) -> Self {
        Self([rows[0], rows[1], rows[2]])
    }

    /// Adds `a x v`.
    #[inline(always)]
    pub fn add_cross(&mut self, a: &Vec3, v: &Self) {
        for l in 0..LANES {
            let (x, y, z) = (v.0[0][l], v.0[1][l], v.0[2][l]);
            self.0[0][l] += a.y * z - a.z * y;
            self.0[1][l] += a.z * x - a.x * z;
            self.0[2][l] += a.x * y - a.y * x;
        }
    }

    /// Adds `a s`.
    #[inline(always)]
    pub fn add_along(&mut self, a: &Vec3, s: &Numbers) {
        for (to, a) in self.0.iter_mut().zip(a.iter()) {
            for (to, s) in to.iter_mut().zip(s) {
                *to += a * s;
            }
        }
    }

    #[inline(always)]
    pub fn add(&mut self, v: &Self) {
        for (to, v) in self.0.iter_mut().zip(&v.0) {
            for (to, v) in to.iter_mut().zip(v) {
                *to += v;
            }
        }
    }

    /// `scale v`.
    #[inline(always)]
    pub fn scaled(v: &Self, scale: f64) -> Self {
        let mut out = *v;
        for row in &mut out.0 {
            *row = scaled(scale, row);
        }
        out
    }

    /// `m v`.
    #[inline(always)]
    pub fn times(m: &Mat3, v: &Self) -> Self {
        let mut out = Self::ZERO;
        for (r, out) in out.0.iter_mut().enumerate() {
            for (l, out) in out.iter_mut().enumerate() {
                *out = m[(r, 0)] * v.0[0][l] + m[(r, 1)] * v.0[1][l] + m[(r, 2)] * v.0[2][l];
            }
        }
        out
    }

    /// A body's matrix times what is of its translation and turn.
    #[inline(always)]
    pub fn of_body(by: &Blocks, [x, turned]: &[Self; 2]) -> [Self; 2] {
        match &by.coupled {
            None => [Self::scaled(x, by.mass), Self::times(&by.turn, turned)],
            Some(p) => {
                let (mut f, mut t) = (Self::times(&p.ff, x), Self::times(&p.tf, x));
                f.add(&Self::times(&p.ft, turned));
                t.add(&Self::times(&p.tt, turned));
                [f, t]
            }
        }
    }

    /// `a . v`
    #[inline(always)]
    pub fn dot(&self, a: &Vec3) -> Numbers {
        let v = &self.0;
        let mut out = [0.0; LANES];
        for (l, out) in out.iter_mut().enumerate() {
            *out = a.x * v[0][l] + a.y * v[1][l] + a.z * v[2][l];
        }
        out
    }

    pub fn lane(&self, l: usize) -> Vec3 {
        Vec3::new(self.0[0][l], self.0[1][l], self.0[2][l])
    }
}

#[inline(always)]
pub(super) fn add_times(to: &mut Numbers, by: f64, v: &Numbers) {
    for (to, v) in to.iter_mut().zip(v) {
        *to += by * v;
    }
}

#[inline(always)]
pub(super) fn scaled(scale: f64, v: &Numbers) -> Numbers {
    let mut out = *v;
    for out in &mut out {
        *out *= scale;
    }
    out
}

/// Writes the lanes that are rows into the column, of as many numbers as `height`.
#[inline(always)]
pub(super) fn write_rows(
    to: &mut [f64],
    height: usize,
    column: usize,
    rows: &Range<usize>,
    from: &Numbers,
) {
    let first = column * height + rows.start;
    match to[first..].first_chunk_mut() {
        Some(to) if rows.len() == LANES => *to = *from,
        _ => to[first..first + rows.len()].copy_from_slice(&from[..rows.len()]),
    }
}
