//! Files of a run. Every one is written beside its place and moved there when it is whole.

use super::recording::Recording;
use super::source::FormatError;
use crate::optimize::Checkpoint;
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file at once: what was there before stays until all of it is on the disk. Makes the directory.
///
/// # Errors
/// When the file cannot be written; nothing has then changed.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), FormatError> {
    write_with(path, |file| file.write_all(bytes))
}

/// The same, of what `content` writes into it.
fn write_with(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), FormatError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        return Err(FormatError::of_file(
            path,
            "this names no file",
            "give the path of a file",
        ));
    };
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .map_err(|e| FormatError::io(folder, "make the directory", &e))?;
    let unique = format!(
        ".{}-{}.tmp",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(unique);
    let temporary: PathBuf = folder.join(hidden);
    let whole = || {
        let file = std::fs::File::options()
            .write(true)
            .create_new(true)
            .open(&temporary)?;
        let mut file = BufWriter::with_capacity(BUFFER, file);
        content(&mut file)?;
        file.into_inner()?.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    whole().map_err(|e| {
        // it may not have been made
        let _ = std::fs::remove_file(&temporary);
        FormatError::io(path, "write the file", &e)
    })
}

/// Bytes that are gathered before they go to the disk.
const BUFFER: usize = 1 << 20;

/// Counts what goes through, and tells.
struct Counted<'a> {
    to: &'a mut dyn Write,
    bytes: u64,
    told: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.bytes += n as u64;
        if self.bytes - self.told >= BUFFER as u64 {
            self.told = self.bytes;
            (self.progress)(self.bytes);
        }
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Writes a recording, a checkpoint or feedback as JSON.
///
/// # Errors
/// When the file cannot be written.
pub fn write_json(path: &Path, what: &impl Serialize) -> Result<(), FormatError> {
    write_json_with(path, what, &mut |_| {})
}

/// [`write_json`] that reports the bytes written, every now and then.
///
/// # Errors
/// As [`write_json`].
pub fn write_json_with(
    path: &Path,
    what: &impl Serialize,
    progress: &mut dyn FnMut(u64),
) -> Result<(), FormatError> {
    write_with(path, |to| {
        let mut to = Counted {
            to,
            bytes: 0,
            told: 0,
            progress,
        };
        Ok(serde_json::to_writer(&mut to, what)?)
    })
}

/// Reads a checkpoint back.
///
/// # Errors
/// When the file cannot be read, or is not a whole checkpoint.
pub fn read_checkpoint(path: &Path) -> Result<Checkpoint, FormatError> {
    let bytes = std::fs::read(path).map_err(|e| FormatError::io(path, "read the file", &e))?;
    serde_json::from_slice(&bytes).map_err(|e| {
        FormatError::of_file(
            path,
            format!("this is not a checkpoint: {e}"),
            "solve anew, without --resume; that replaces it",
        )
    })
}

/// Writes a recording as a table: a row per knot, the time, every channel, and position and orientation of every body.
///
/// # Errors
/// When the file cannot be written.
pub fn write_csv(path: &Path, recording: &Recording) -> Result<(), FormatError> {
    write_csv_with(path, recording, &mut |_| {})
}

/// [`write_csv`] that reports the bytes written, every now and then.
///
/// # Errors
/// As [`write_csv`].
pub fn write_csv_with(
    path: &Path,
    recording: &Recording,
    progress: &mut dyn FnMut(u64),
) -> Result<(), FormatError> {
    let r = recording;
    let mut header = vec!["time [s]".to_owned()];
    header.extend(r.channels.iter().map(|c| match c.not_unique {
        true => format!("{} [{}, not unique]", c.name, c.unit),
        false => format!("{} [{}]", c.name, c.unit),
    }));
    for b in &r.bodies {
        header.extend(["x", "y", "z"].map(|a| format!("{b} {a} [m]")));
        header.extend(["w", "x", "y", "z"].map(|a| format!("{b} q{a}")));
    }
    write_with(path, |to| {
        let mut to = Counted {
            to,
            bytes: 0,
            told: 0,
            progress,
        };
        // names may need quotes, numbers do not
        let mut names = csv::Writer::from_writer(vec![]);
        names.write_record(&header)?;
        to.write_all(&names.into_inner().map_err(|e| e.into_error())?)?;
        let mut row: Vec<u8> = vec![];
        // the shortest text that reads back to the same bits
        let number = |row: &mut Vec<u8>, v: f64| match v.is_finite() {
            true => write!(row, "{v:?}"),
            false => Ok(()),
        };
        for (k, t) in r.time.iter().enumerate() {
            row.clear();
            number(&mut row, *t)?;
            for c in &r.channels {
                row.push(b',');
                if let Some(v) = c.values.get(k).copied().flatten() {
                    number(&mut row, v)?;
                }
            }
            for p in r.poses.get(k).into_iter().flatten() {
                for v in p.position.iter().chain(&p.orientation) {
                    row.push(b',');
                    number(&mut row, *v)?;
                }
            }
            row.push(b'\n');
            to.write_all(&row)?;
        }
        Ok(())
    })
}

/// Reads a recording back from JSON.
///
/// # Errors
/// When the file cannot be read, or is not a whole recording.
pub fn read_recording(path: &Path) -> Result<Recording, FormatError> {
    if path.is_dir() {
        return Err(FormatError::of_file(
            path,
            "this is a directory",
            "give the path of a trajectory's JSON file",
        ));
    }
    let bytes = std::fs::read(path).map_err(|e| FormatError::io(path, "read the file", &e))?;
    let help = "expected a trajectory as `simulate` and `solve` write it, .json";
    let recording: Recording = serde_json::from_slice(&bytes)
        .map_err(|e| FormatError::of_file(path, format!("this is not a trajectory: {e}"), help))?;
    match fault(&recording) {
        None => Ok(recording),
        Some(message) => Err(FormatError::of_file(path, message, help)),
    }
}

/// What does not fit together.
fn fault(r: &Recording) -> Option<String> {
    let (knots, bodies) = (r.time.len(), r.bodies.len());
    if knots == 0 {
        return Some("the trajectory has no knots".into());
    }
    if let Some(c) = r.channels.iter().find(|c| c.values.len() != knots) {
        return Some(format!(
            "channel `{}` has {} values, expected {knots}",
            c.name,
            c.values.len()
        ));
    }
    if r.poses.len() != knots {
        return Some(format!(
            "there are poses at {} knots, expected {knots}",
            r.poses.len()
        ));
    }
    if let Some(k) = r.poses.iter().position(|p| p.len() != bodies) {
        return Some(format!(
            "knot {k} has {} poses, expected {bodies}",
            r.poses[k].len()
        ));
    }
    let places = r
        .lines
        .iter()
        .map(|l| l.body)
        .chain(r.dots.iter().map(|d| d.body));
    if let Some(b) = places.flatten().find(|b| *b >= bodies) {
        return Some(format!(
            "a line or dot belongs to body {b}, there are {bodies}"
        ));
    }
    let links = r.links.iter().flat_map(|l| [l.parent, l.child]);
    if let Some(b) = links.into_iter().find(|b| *b >= bodies) {
        return Some(format!("a link is of body {b}, there are {bodies}"));
    }
    let wanted = r.channels.iter().flat_map(|c| &c.goals).map(|g| g.last);
    let wanted = wanted.chain(r.places.iter().map(|p| p.knot));
    if let Some(k) = wanted.into_iter().find(|k| *k >= knots) {
        return Some(format!(
            "something is wanted at knot {k}, there are {knots} knots"
        ));
    }
    if let Some(b) = r
        .places
        .iter()
        .filter_map(|p| p.body)
        .find(|b| *b >= bodies)
    {
        return Some(format!("a place is of body {b}, there are {bodies}"));
    }
    if let Some(b) = (r.visuals.iter().filter_map(|v| v.body)).find(|b| *b >= bodies) {
        return Some(format!("a visual is of body {b}, there are {bodies}"));
    }
    let corners = r.visuals.iter().flat_map(|v| {
        let beyond = |i: &&u32| **i as usize >= v.vertices.len();
        v.triangles.iter().flatten().find(beyond)
    });
    if let Some(i) = corners.into_iter().next() {
        return Some(format!(
            "a triangle of a visual has the vertex {i}, which there is not"
        ));
    }
    let children = r.contacts.iter().flat_map(|c| [Some(c.child), c.parent]);
    if let Some(b) = children.flatten().find(|b| *b >= bodies) {
        return Some(format!("a contact is of body {b}, there are {bodies}"));
    }
    let forces = r.contacts.iter().flat_map(|c| &c.forces);
    let beyond = forces.map(|f| f.knot).find(|k| *k >= knots);
    beyond.map(|k| format!("a contact has a force at knot {k}, there are {knots} knots"))
}
