//! `animate`: trajectories that were written, in motion.

use super::{Failure, room, shown, write};
use least_action::animate::{Format, Scene, check, render};
use least_action::format::read_recording;
use least_action::format::recording::Recording;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// Trajectories, .json; several are shown beside each other
    #[arg(required = true, value_name = "TRAJECTORY")]
    trajectories: Vec<PathBuf>,
    /// .html: a page to look around in; .glb: a glTF scene for other programs; .gif or .png: a film, .png animated and
    /// with all colours [default: beside the first trajectory, .html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The kind of animation that a path's ending asks for.
pub fn format(path: &Path) -> Result<Format, Failure> {
    let ending = path.extension().and_then(|e| e.to_str());
    let known = Format::ALL
        .into_iter()
        .find(|f| Some(f.extension()) == ending);
    known.ok_or_else(|| {
        Failure::input(format!(
            "`{}` is no animation; end its path in .html, .glb, .gif or .png",
            path.display()
        ))
    })
}

/// Writes one recording's animation.
pub fn write_one(path: &Path, recording: &Recording) -> Result<PathBuf, Failure> {
    let format = format(path)?;
    let scene = Scene::new(&[(&*recording.title, recording)]);
    let bytes = scene.and_then(|s| render(&s, format));
    write(path, &bytes.map_err(Failure::input)?)
}

/// What tells the runs apart: their titles, or else as much of their paths as it takes.
fn names(paths: &[PathBuf], recordings: &[Recording]) -> Vec<String> {
    let distinct = |names: &[String]| {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        sorted.windows(2).all(|w| w[0] != w[1])
    };
    let titles: Vec<String> = recordings.iter().map(|r| r.title.clone()).collect();
    if distinct(&titles) {
        return titles;
    }
    let deepest = paths.iter().map(|p| p.components().count()).max();
    for depth in 1..=deepest.unwrap_or(1) {
        let end = |p: &PathBuf| {
            let parts: Vec<_> = p
                .with_extension("")
                .components()
                .map(|c| c.as_os_str().to_owned())
                .collect();
            let from = parts.len().saturating_sub(depth);
            let end: PathBuf = parts[from..].iter().collect();
            end.display().to_string()
        };
        let ends: Vec<String> = paths.iter().map(end).collect();
        if distinct(&ends) {
            return ends;
        }
    }
    // the same file again
    (1..)
        .map(|i| format!("run {i}"))
        .take(paths.len())
        .collect()
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let out = match &a.out {
        Some(out) => out.clone(),
        None => a.trajectories[0].with_extension("html"),
    };
    let format = format(&out)?;
    room(&out)?;
    let recordings: Vec<Recording> = (a.trajectories.iter())
        .map(|path| read_recording(path))
        .collect::<Result<_, _>>()?;
    let names = names(&a.trajectories, &recordings);
    for (path, recording) in a.trajectories.iter().zip(&recordings) {
        check(recording).map_err(|e| Failure::input(format!("{}: {e}", path.display())))?;
    }
    let each: Vec<(&str, &Recording)> = names.iter().map(String::as_str).zip(&recordings).collect();
    let scene = Scene::new(&each).map_err(Failure::input)?;
    let bytes = render(&scene, format).map_err(Failure::input)?;
    println!("wrote {}", shown(&write(&out, &bytes)?));
    Ok(())
}
