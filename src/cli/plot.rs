//! `plot`: figures of a trajectory that was written.

use super::{Failure, figure_format, room, shown, write};
use least_action::format::read_recording;
use least_action::plot::{Figure, render, render_overview};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// A trajectory, .json
    trajectory: PathBuf,
    /// .svg or .png; with several figures their names are appended [default: beside the trajectory, .svg]
    #[arg(long, value_name = "FIGURE")]
    out: Option<PathBuf>,
    /// Figures, separated by commas: coordinates, rates, controls, constraint_forces, contacts, energy, convergence,
    /// motion, or all; an overview if not given
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    what: Vec<String>,
}

pub fn run(a: &Arguments) -> Result<(), Failure> {
    let recording = read_recording(&a.trajectory)?;
    let out = a
        .out
        .clone()
        .unwrap_or_else(|| a.trajectory.with_extension("svg"));
    let format = figure_format(&out)?;
    room(&out)?;
    let figures: Vec<Figure> = if a.what.iter().any(|w| w == "all") {
        Figure::ALL.to_vec()
    } else {
        let parse = |w: &String| w.trim().parse().map_err(Failure::input);
        a.what.iter().map(parse).collect::<Result<_, _>>()?
    };
    let nothing = |what: &str| {
        Failure::input(format!(
            "{} holds nothing to draw for {what}; choose others with --what, or `all`",
            a.trajectory.display()
        ))
    };
    if figures.is_empty() {
        let bytes = render_overview(&recording, format).map_err(Failure::input)?;
        println!(
            "wrote {}",
            shown(&write(&out, &bytes.ok_or_else(|| nothing("an overview"))?)?)
        );
        return Ok(());
    }
    let mut drawn = vec![];
    for figure in &figures {
        match render(&recording, *figure, format).map_err(Failure::input)? {
            Some(bytes) => drawn.push((figure.name(), bytes)),
            None if a.what.iter().any(|w| w == "all") => {}
            None => return Err(nothing(figure.name())),
        }
    }
    for (name, bytes) in &drawn {
        let path = if figures.len() == 1 {
            out.clone()
        } else {
            let stem = out.file_stem().unwrap_or_default().to_string_lossy();
            out.with_file_name(format!("{stem}_{name}.{}", format.extension()))
        };
        println!("wrote {}", shown(&write(&path, bytes)?));
    }
    Ok(())
}
