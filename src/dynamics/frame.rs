//! The joint chart at a state and its connection with the free one.

use super::{Charts, Knot, LinearModel, StepError};
use nalgebra::DMatrix;
use std::sync::Arc;

/// The joint chart at a state by its products with vectors, where those are cheaper than matrices.
pub trait Chart: std::fmt::Debug + Send + Sync {
    /// Sizes of the free and of the joint chart.
    fn dims(&self) -> (usize, usize);

    /// The change in the free chart of a change in the joint chart.
    fn embed(&self, joint: &[f64], free: &mut [f64]);

    /// The transpose of [`Chart::embed`]: an adjoint in the free chart (which is lost) in the joint chart.
    fn embed_transposed(&self, free: &mut [f64], joint: &mut [f64]);

    /// The change in the joint chart of one in the free chart (which is lost): a left inverse of [`Chart::embed`].
    fn project(&self, free: &mut [f64], joint: &mut [f64]);
}

/// Connects the joint chart with the free one at a state.
#[derive(Clone, Debug)]
pub enum Frame {
    /// One chart of so many numbers serves for both.
    Identity(usize),
    /// Matrices; see [`Frame::dense`].
    Dense(DenseFrame),
    /// Products.
    Chart(Arc<dyn Chart>),
    /// A frame of part of the state, with so many numbers behind it for which one chart serves.
    Bordered(Box<Frame>, usize),
}

/// A frame by its matrices.
#[derive(Clone, Debug)]
pub struct DenseFrame {
    /// nf x ndx. Columns: changes of the state in the free chart, per (coordinate, rate).
    pub embed: DMatrix<f64>,
    /// Its left inverse, ndx x nf. Rows: (coordinate, rate) of a change in the free chart.
    pub project: DMatrix<f64>,
    /// What the next frame along a path aligns itself with, known to the integrator that made it alone; empty where frames
    /// are unique.
    pub(crate) memory: DMatrix<f64>,
}

impl Frame {
    /// A frame by the matrix [`DenseFrame::embed`] and its left inverse.
    pub fn dense(embed: DMatrix<f64>, project: DMatrix<f64>) -> Self {
        Self::Dense(DenseFrame {
            embed,
            project,
            memory: DMatrix::zeros(0, 0),
        })
    }

    /// Rows of derivatives in the free chart, in the joint chart: `rows * embed`.
    pub fn times_embed(&self, rows: &DMatrix<f64>) -> DMatrix<f64> {
        match self {
            Self::Identity(_) => rows.clone(),
            Self::Dense(own) => rows * &own.embed,
            Self::Chart(c) => {
                let (nf, ndx) = c.dims();
                let mut out = DMatrix::zeros(rows.nrows(), ndx);
                let (mut free, mut joint) = (vec![0.0; nf], vec![0.0; ndx]);
                for (row, mut out) in rows.row_iter().zip(out.row_iter_mut()) {
                    free.iter_mut().zip(&row).for_each(|(f, r)| *f = *r);
                    c.embed_transposed(&mut free, &mut joint);
                    out.iter_mut().zip(&joint).for_each(|(o, j)| *o = *j);
                }
                out
            }
            Self::Bordered(inner, n) => {
                let own = rows.ncols() - n;
                let part = inner.times_embed(&rows.columns(0, own).into_owned());
                let joint = part.ncols();
                let mut out = part.resize_horizontally(joint + n, 0.0);
                out.columns_mut(joint, *n).copy_from(&rows.columns(own, *n));
                out
            }
        }
    }

    /// An adjoint in the free chart, in the joint chart: `embed' free`. `free` is lost.
    pub fn embed_transposed(&self, free: &mut [f64], joint: &mut [f64]) {
        match self {
            Self::Identity(_) => joint.copy_from_slice(free),
            Self::Dense(own) => {
                for (joint, column) in joint.iter_mut().zip(own.embed.column_iter()) {
                    *joint = column.iter().zip(&*free).map(|(c, f)| c * f).sum();
                }
            }
            Self::Chart(c) => c.embed_transposed(free, joint),
            Self::Bordered(inner, n) => {
                let (own, border) = free.split_at_mut(free.len() - n);
                let (joint, rest) = joint.split_at_mut(joint.len() - n);
                inner.embed_transposed(own, joint);
                rest.copy_from_slice(border);
            }
        }
    }

    /// The matrix nf x ndx whose columns are changes of the state in the free chart, per (coordinate, rate).
    pub fn embed(&self) -> DMatrix<f64> {
        match self {
            Self::Identity(n) => DMatrix::identity(*n, *n),
            Self::Dense(own) => own.embed.clone(),
            Self::Chart(c) => {
                let (nf, ndx) = c.dims();
                columns(nf, ndx, |unit, out| c.embed(unit, out))
            }
            Self::Bordered(inner, n) => bordered(&inner.embed(), *n),
        }
    }

    /// Its left inverse, ndx x nf.
    pub fn project(&self) -> DMatrix<f64> {
        match self {
            Self::Identity(n) => DMatrix::identity(*n, *n),
            Self::Dense(own) => own.project.clone(),
            Self::Chart(c) => {
                let (nf, ndx) = c.dims();
                columns(ndx, nf, |unit, out| c.project(unit, out))
            }
            Self::Bordered(inner, n) => bordered(&inner.project(), *n),
        }
    }
}

/// [`Charts::linear_model_in`] of any dynamics: one push for every input.
pub fn model_by_pushes<D: Charts + ?Sized>(
    dynamics: &D,
    w: &mut D::Work,
    from: &Frame,
    to: &Frame,
    out: &mut LinearModel,
) {
    let dims = dynamics.dims();
    let (mut d, mut change) = (dims.inputs(), dims.outputs());
    let columns = dims.ndx + dims.nu + dims.np;
    let embed = from.embed();
    let mut full = DMatrix::zeros(dims.nf, columns);
    for i in 0..columns {
        d.clear();
        if i < dims.ndx {
            d.x.copy_from_slice(embed.column(i).as_slice());
        } else if i < dims.ndx + dims.nu {
            d.u[i - dims.ndx] = 1.0;
        } else {
            d.p[i - dims.ndx - dims.nu] = 1.0;
        }
        dynamics.push_in(w, &d, &mut change);
        full.column_mut(i).as_mut_slice().copy_from_slice(&change.x);
    }
    let joint = match to {
        Frame::Identity(_) => full,
        _ => to.project() * full,
    };
    out.a.copy_from(&joint.columns(0, dims.ndx));
    out.b.copy_from(&joint.columns(dims.ndx, dims.nu));
    out.p.copy_from(&joint.columns(dims.ndx + dims.nu, dims.np));
}

/// [`Charts::difference_by`] of any dynamics: the frame at the state led to, times what the two joint charts are to
/// each other, which is taken from central differences. It is for changes that keep the state one of the system.
///
/// # Errors
/// As [`Charts::frame`] and [`Charts::retract`], at that state.
pub fn difference_by_moves<D: Charts + ?Sized>(
    dynamics: &D,
    at: &Knot,
    x: &[f64],
    p: &[f64],
    frame: &Frame,
    to: &[f64],
    w: &mut D::Work,
) -> Result<DMatrix<f64>, StepError> {
    const STEP: f64 = 1e-4;
    let d = dynamics.dims();
    if dynamics.has_identity_frames() {
        return Ok(DMatrix::identity(d.ndx, d.nf));
    }
    let there = dynamics.frame(at, to, p, Some(frame), w)?;
    let mut between = DMatrix::<f64>::zeros(d.ndx, d.ndx);
    let (mut e, mut moved, mut out) = (vec![0.0; d.ndx], vec![0.0; d.nx], vec![0.0; d.ndx]);
    for (i, mut column) in between.column_iter_mut().enumerate() {
        for step in [STEP, -STEP] {
            e[i] = step;
            dynamics.retract(at, to, p, &there, &e, w, &mut moved)?;
            dynamics.difference(at, x, p, frame, &moved, w, &mut out);
            let changes = column.iter_mut().zip(&out);
            changes.for_each(|(c, o)| *c += o / (2.0 * step));
        }
        e[i] = 0.0;
    }
    Ok(between * there.project())
}

/// A matrix with an identity at its lower right.
pub(super) fn bordered(a: &DMatrix<f64>, n: usize) -> DMatrix<f64> {
    let (rows, columns) = a.shape();
    let mut out = DMatrix::zeros(rows + n, columns + n);
    out.view_mut((0, 0), (rows, columns)).copy_from(a);
    out.view_mut((rows, columns), (n, n)).fill_with_identity();
    out
}

/// The matrix of a product with vectors, which may spoil its argument.
fn columns(rows: usize, columns: usize, product: impl Fn(&mut [f64], &mut [f64])) -> DMatrix<f64> {
    let mut out = DMatrix::zeros(rows, columns);
    let mut unit = vec![0.0; columns];
    for (i, mut column) in out.column_iter_mut().enumerate() {
        unit.fill(0.0);
        unit[i] = 1.0;
        product(&mut unit, column.as_mut_slice());
    }
    out
}
