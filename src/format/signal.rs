//! Functions of time: what is described, as numbers at given times.

use super::problem::{ColumnSpec, SignalSpec};
use super::table::{Complaint, Table};
use std::f64::consts::TAU;
use std::path::Path;

/// The values of a signal at times, s. Files are looked for beside `folder`; a column goes by the name `own` by default.
///
/// # Errors
/// What is wrong, and the remedy.
pub(super) fn values(
    spec: &SignalSpec,
    folder: &Path,
    own: Option<&str>,
    times: &[f64],
) -> Result<Vec<f64>, Complaint> {
    let mut out = vec![spec.constant.unwrap_or(0.0); times.len()];
    let parts = [
        spec.constant.is_some(),
        spec.sine.is_some(),
        spec.spline.is_some(),
        spec.knots.is_some(),
        spec.csv.is_some(),
    ];
    if !parts.contains(&true) {
        let help = "give one of constant, sine, spline, knots, csv, or several that add up";
        return Err(("nothing says how it varies".into(), help.into()));
    }
    if let Some(s) = spec.sine {
        let with = |(o, t): (&mut f64, &f64)| {
            *o += s.amplitude * (TAU * s.frequency * t + s.phase).sin();
        };
        out.iter_mut().zip(times).for_each(with);
    }
    if let Some(points) = &spec.spline {
        let (t, v): (Vec<f64>, Vec<f64>) = points.iter().map(|p| (p[0], p[1])).unzip();
        let spline = Spline::new(t, v)?;
        let with = |(o, t): (&mut f64, &f64)| *o += spline.at(*t);
        out.iter_mut().zip(times).for_each(with);
    }
    if let Some(list) = &spec.knots {
        if list.len() != times.len() {
            let (got, n) = (list.len(), times.len());
            return Err((
                format!("knots holds {got} numbers"),
                format!("give one for each of {n} knots, the last included"),
            ));
        }
        out.iter_mut().zip(list).for_each(|(o, v)| *o += v);
    }
    if let Some((file, name)) = spec.csv.as_ref().map(ColumnSpec::parts) {
        let table = Table::read(&folder.join(file))?;
        let Some(column) = name.or(own) else {
            let help = "name it: csv = { file = \"..\", column = \"..\" }";
            return Err((
                "a quantity with several components has no column of its name".into(),
                help.into(),
            ));
        };
        let (t, column) = (table.times()?, table.column(column)?);
        // forces have no value at the last knot
        let rows = (0..table.len()).filter(|row| !table.is_empty(*row, column));
        let points: Vec<(f64, f64)> = rows
            .map(|row| Ok((t[row], table.number(row, column)?)))
            .collect::<Result<_, Complaint>>()?;
        if points.is_empty() {
            let help = "name a column that holds numbers";
            return Err((
                format!("`{file}` has no number in that column"),
                help.into(),
            ));
        }
        let with = |(o, t): (&mut f64, &f64)| *o += interpolated(&points, *t);
        out.iter_mut().zip(times).for_each(with);
    }
    match out.iter().position(|v| !v.is_finite()) {
        None => Ok(out),
        Some(i) => Err((
            format!("it is {} at {} s", out[i], times[i]),
            "give finite numbers".into(),
        )),
    }
}

/// Between points with ascending times linearly, outside of them the nearest.
pub(super) fn interpolated(points: &[(f64, f64)], t: f64) -> f64 {
    let after = points.partition_point(|p| p.0 <= t);
    match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
        (Some((t0, v0)), Some((t1, v1))) => v0 + (v1 - v0) * (t - t0) / (t1 - t0),
        (Some((_, v)), None) => v,
        (None, Some((_, v))) => *v,
        (None, None) => 0.0,
    }
}

/// A natural cubic spline: twice differentiable, without curvature at its ends.
#[derive(Clone, Debug)]
pub(super) struct Spline {
    t: Vec<f64>,
    v: Vec<f64>,
    /// Second derivatives.
    bend: Vec<f64>,
}

impl Spline {
    /// Through points.
    ///
    /// # Errors
    /// When times do not ascend or there is none.
    pub fn new(t: Vec<f64>, v: Vec<f64>) -> Result<Self, Complaint> {
        let n = t.len();
        let ascends = t.windows(2).all(|w| w[0] < w[1]);
        if n == 0 || !ascends || !t.iter().chain(&v).all(|x| x.is_finite()) {
            return Err((
                "the points of a spline do not ascend in time".into(),
                "give [time, value] pairs with ascending times, finite numbers".into(),
            ));
        }
        // tridiagonal equations of the second derivatives, by elimination
        let mut bend = vec![0.0; n];
        let (mut upper, mut right) = (vec![0.0; n], vec![0.0; n]);
        for i in 1..n.saturating_sub(1) {
            let (a, b) = (t[i] - t[i - 1], t[i + 1] - t[i]);
            let slope = 6.0 * ((v[i + 1] - v[i]) / b - (v[i] - v[i - 1]) / a);
            let pivot = 2.0 * (a + b) - a * upper[i - 1];
            upper[i] = b / pivot;
            right[i] = (slope - a * right[i - 1]) / pivot;
        }
        for i in (1..n.saturating_sub(1)).rev() {
            bend[i] = right[i] - upper[i] * bend[i + 1];
        }
        Ok(Self { t, v, bend })
    }

    /// Its value; before and behind its points that of the nearest.
    pub fn at(&self, time: f64) -> f64 {
        let (first, last) = (self.t[0], self.t[self.t.len() - 1]);
        let time = time.clamp(first, last);
        let i = self
            .t
            .partition_point(|t| *t <= time)
            .clamp(1, self.t.len().max(2) - 1);
        let (Some(t1), Some(v1)) = (self.t.get(i), self.v.get(i)) else {
            return self.v[0];
        };
        let (t0, v0) = (self.t[i - 1], self.v[i - 1]);
        let h = t1 - t0;
        let (a, b) = ((t1 - time) / h, (time - t0) / h);
        a * v0
            + b * v1
            + ((a * a * a - a) * self.bend[i - 1] + (b * b * b - b) * self.bend[i]) * h * h / 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A spline goes through its points, is linear through two and has no corner.
    #[test]
    fn a_spline_is_smooth_and_meets_its_points() {
        let (t, v) = (vec![0.0, 0.5, 1.5, 2.0], vec![1.0, -1.0, 0.5, 0.0]);
        let s = Spline::new(t.clone(), v.clone()).expect("ascends");
        for (t, v) in t.iter().zip(&v) {
            assert!((s.at(*t) - v).abs() < 1e-14);
        }
        let slope = |t: f64| (s.at(t + 1e-6) - s.at(t - 1e-6)) / 2e-6;
        for inner in [0.5, 1.5] {
            assert!((slope(inner - 1e-5) - slope(inner + 1e-5)).abs() < 1e-3);
        }
        assert!((s.at(3.0), s.at(-1.0)) == (0.0, 1.0));
        let line = Spline::new(vec![0.0, 2.0], vec![1.0, 3.0]).expect("ascends");
        assert!((line.at(0.7) - 1.7).abs() < 1e-15);
        let point = Spline::new(vec![1.0], vec![4.0]).expect("one");
        assert!((point.at(0.0) - 4.0).abs() < 1e-15);
        assert!(Spline::new(vec![1.0, 1.0], vec![0.0, 0.0]).is_err());
    }

    #[test]
    fn parts_add_up() {
        let spec = SignalSpec {
            constant: Some(1.0),
            knots: Some(vec![0.0, 2.0, 4.0]),
            sine: Some(crate::format::problem::SineSpec {
                amplitude: 2.0,
                frequency: 0.25,
                phase: 0.0,
            }),
            ..SignalSpec::default()
        };
        let v = values(&spec, Path::new(""), None, &[0.0, 1.0, 2.0]).expect("numbers");
        for (v, expected) in v.iter().zip([1.0, 5.0, 5.0]) {
            assert!((v - expected).abs() < 1e-14, "{v}");
        }
        assert!(values(&spec, Path::new(""), None, &[0.0]).is_err());
        assert!(values(&SignalSpec::default(), Path::new(""), None, &[0.0]).is_err());
    }
}
