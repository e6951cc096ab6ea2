//! The joint chart at a state and its connection with the free one.

use super::{Charts, Knot, LinearModel, StepError};
use nalgebra::DMatrix;
use std::any::Any;
use std::sync::Arc;

/// The joint chart at a state by its products with vectors, where those are cheaper than matrices.
pub trait Chart: Any + std::fmt::Debug + Send + Sync {
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
    /// Frames of parts of the state, one after the other.
    Parts(Vec<Frame>),
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

/// Of nothing.
impl Default for Frame {
    fn default() -> Self {
        Self::Identity(0)
    }
}

impl Frame {
    /// Its chart, where it is of this kind and nobody shares it.
    pub(crate) fn chart_mut<C: Chart>(&mut self) -> Option<&mut C> {
        let Self::Chart(chart) = self else {
            return None;
        };
        let chart: &mut dyn Any = Arc::get_mut(chart)?;
        chart.downcast_mut()
    }

    /// Makes it one of so many parts, each from the part that was there.
    pub(crate) fn fill_parts<E>(
        &mut self,
        count: usize,
        mut fill: impl FnMut(usize, &mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut parts = match std::mem::take(self) {
            Self::Parts(parts) if parts.len() == count => parts,
            _ => vec![Self::default(); count],
        };
        let filled = (parts.iter_mut().enumerate()).try_for_each(|(i, part)| fill(i, part));
        *self = Self::Parts(parts);
        filled
    }

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
            Self::Parts(parts) => {
                let mut out = DMatrix::zeros(rows.nrows(), self.sizes().1);
                let (mut free, mut joint) = (0, 0);
                for part in parts {
                    let (nf, ndx) = part.sizes();
                    let own = part.times_embed(&rows.columns(free, nf).into_owned());
                    out.columns_mut(joint, ndx).copy_from(&own);
                    (free, joint) = (free + nf, joint + ndx);
                }
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
            Self::Parts(parts) => each(parts, free, joint, |p, f, j| p.embed_transposed(f, j)),
        }
    }

    /// A change of the joint chart in the free one.
    pub fn embed_into(&self, joint: &mut [f64], free: &mut [f64]) {
        match self {
            Self::Identity(_) => free.copy_from_slice(joint),
            Self::Dense(own) => product(&own.embed, joint, free),
            Self::Chart(c) => c.embed(joint, free),
            Self::Parts(parts) => each(parts, free, joint, |p, f, j| p.embed_into(j, f)),
        }
    }

    /// A change of the free chart in the joint one: the left inverse of [`Frame::embed_into`]. `free` is lost.
    pub fn project_into(&self, free: &mut [f64], joint: &mut [f64]) {
        match self {
            Self::Identity(_) => joint.copy_from_slice(free),
            Self::Dense(own) => product(&own.project, free, joint),
            Self::Chart(c) => c.project(free, joint),
            Self::Parts(parts) => each(parts, free, joint, |p, f, j| p.project_into(f, j)),
        }
    }

    /// Sizes of the free and of the joint chart.
    pub fn sizes(&self) -> (usize, usize) {
        match self {
            Self::Identity(n) => (*n, *n),
            Self::Dense(own) => own.embed.shape(),
            Self::Chart(c) => c.dims(),
            Self::Parts(parts) => parts.iter().fold((0, 0), |(nf, ndx), p| {
                let own = p.sizes();
                (nf + own.0, ndx + own.1)
            }),
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
            Self::Parts(parts) => blocks(parts.iter().map(Self::embed)),
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
            Self::Parts(parts) => blocks(parts.iter().map(Self::project)),
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

/// Visits the parts of a frame with theirs of both charts.
fn each(
    parts: &[Frame],
    mut free: &mut [f64],
    mut joint: &mut [f64],
    mut visit: impl FnMut(&Frame, &mut [f64], &mut [f64]),
) {
    for part in parts {
        let (nf, ndx) = part.sizes();
        let (own_free, own_joint);
        (own_free, free) = free.split_at_mut(nf);
        (own_joint, joint) = joint.split_at_mut(ndx);
        visit(part, own_free, own_joint);
    }
}

/// `a x`, allocating nothing.
fn product(a: &DMatrix<f64>, x: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (column, x) in a.column_iter().zip(x) {
        for (o, c) in out.iter_mut().zip(&column) {
            *o += c * x;
        }
    }
}

/// A matrix with these along its diagonal.
pub(crate) fn blocks(of: impl Iterator<Item = DMatrix<f64>>) -> DMatrix<f64> {
    let mut out = DMatrix::zeros(0, 0);
    for block in of {
        let ((rows, columns), own) = (out.shape(), block.shape());
        out = out.resize(rows + own.0, columns + own.1, 0.0);
        out.view_mut((rows, columns), own).copy_from(&block);
    }
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
