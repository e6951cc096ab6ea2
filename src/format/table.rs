//! Tables of numbers over time: CSV files as `simulate` and `solve` write them.

use super::source::nearest;
use std::path::{Path, PathBuf};

/// What is wrong, and the remedy.
pub(super) type Complaint = (String, String);

/// The rows of a CSV file.
pub(super) struct Table {
    path: PathBuf,
    /// Without units.
    names: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

/// A column's name without its unit: `push` of `push [N]`.
fn bare(header: &str) -> String {
    let name = header.rsplit_once(" [").filter(|(_, u)| u.ends_with(']'));
    name.map_or(header, |(n, _)| n).trim().to_owned()
}

impl Table {
    pub fn read(path: &Path) -> Result<Self, Complaint> {
        let fail = |e: csv::Error| {
            (
                format!("cannot read `{}`: {e}", path.display()),
                "give the path of a trajectory as `simulate` and `solve` write it, .csv, relative to this file"
                    .to_owned(),
            )
        };
        let mut reader = csv::Reader::from_path(path).map_err(fail)?;
        let names = reader.headers().map_err(fail)?.iter().map(bare).collect();
        let rows = reader.records().collect::<Result<_, _>>().map_err(fail)?;
        Ok(Self {
            path: path.into(),
            names,
            rows,
        })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Is there a column of that name?
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }

    pub fn column(&self, name: &str) -> Result<usize, Complaint> {
        self.find(name).ok_or_else(|| {
            (
                format!("`{}` has no column `{name}`", self.path.display()),
                nearest(name, self.names.iter().map(String::as_str)),
            )
        })
    }

    fn text(&self, row: usize, column: usize) -> &str {
        self.rows[row].get(column).unwrap_or_default().trim()
    }

    pub fn is_empty(&self, row: usize, column: usize) -> bool {
        self.text(row, column).is_empty()
    }

    pub fn number(&self, row: usize, column: usize) -> Result<f64, Complaint> {
        let text = self.text(row, column);
        let value = text.parse::<f64>().ok().filter(|v| v.is_finite());
        value.ok_or_else(|| {
            (
                format!(
                    "`{}`, line {}: `{}` is `{text}`",
                    self.path.display(),
                    row + 2,
                    self.names[column]
                ),
                "expected a finite number".to_owned(),
            )
        })
    }

    /// The column of times, which ascend, s.
    pub fn times(&self) -> Result<Vec<f64>, Complaint> {
        let column = self.column("time")?;
        let mut last = f64::NEG_INFINITY;
        let mut ascending = |row: usize| {
            let t = self.number(row, column)?;
            if t <= last {
                let (path, line) = (self.path.display(), row + 2);
                let message = format!("`{path}`, line {line}: the time falls back to {t} s");
                return Err((message, "expected ascending times".to_owned()));
            }
            last = t;
            Ok(t)
        };
        (0..self.len()).map(&mut ascending).collect()
    }
}
