//! Figures of a recording, as SVG or PNG bytes.
//!
//! A figure is laid out as a display list (`sheet`), by `panel` for curves and `motion` for the
//! picture of the mechanism, and only then handed to a plotters backend (`paint`). Text is measured
//! with the embedded font, so that figures look alike everywhere.

mod axis;
mod contacts;
mod curves;
mod forces;
mod goal;
mod motion;
mod noise;
mod paint;
mod panel;
mod project;
mod rotation;
mod scene;
mod sheet;

#[cfg(test)]
mod degenerate;
#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use crate::format::recording::Recording;
pub(crate) use axis::nice_step;
pub(crate) use paint::FONT;
pub(crate) use paint::spelled;
pub(crate) use scene::traced;
use sheet::{Anchor, INK, MUTED, Rect, Sheet, fit};
pub(crate) use sheet::{PALETTE, Rgb};
use std::fmt;
use std::str::FromStr;

/// The kind of file a figure becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Scalable; text stays text.
    Svg,
    /// Two pixels per nominal pixel.
    Png,
}

impl Format {
    /// The customary ending of file names, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Svg => "svg",
            Format::Png => "png",
        }
    }
}

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Joint coordinates over time.
    Coordinates,
    /// Rates of the joint coordinates over time.
    Rates,
    /// Controls as steps, with their bounds.
    Controls,
    /// Constraint forces and moments over time.
    ConstraintForces,
    /// Stick and slip, forces, gap and slip of contacts over time.
    Contacts,
    /// Energies and work over time, and the energy error.
    Energy,
    /// Objective, violation and optimality per iteration; of `direct` complementarity as well.
    Convergence,
    /// A stroboscopic picture of the mechanism.
    Motion,
}

impl Figure {
    /// Every figure, in the order they are offered.
    pub const ALL: [Figure; 8] = [
        Figure::Coordinates,
        Figure::Rates,
        Figure::Controls,
        Figure::ConstraintForces,
        Figure::Contacts,
        Figure::Energy,
        Figure::Convergence,
        Figure::Motion,
    ];

    /// The name used on the command line and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Coordinates => "coordinates",
            Figure::Rates => "rates",
            Figure::Controls => "controls",
            Figure::ConstraintForces => "constraint_forces",
            Figure::Contacts => "contacts",
            Figure::Energy => "energy",
            Figure::Convergence => "convergence",
            Figure::Motion => "motion",
        }
    }

    /// The heading under the recording's title.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Coordinates => "Joint coordinates",
            Figure::Rates => "Joint rates",
            Figure::Controls => "Controls",
            Figure::ConstraintForces => "Constraint forces",
            Figure::Contacts => "Contacts",
            Figure::Energy => "Energy",
            Figure::Convergence => "Convergence",
            Figure::Motion => "Motion",
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Figure {
    type Err = PlotError;

    fn from_str(name: &str) -> Result<Self, PlotError> {
        let known = Figure::ALL.into_iter().find(|f| f.name() == name);
        known.ok_or_else(|| PlotError::UnknownFigure(name.to_owned()))
    }
}

/// Why a figure could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// No figure has this name.
    #[error("there is no figure `{0}`; known are {known}", known = Figure::ALL.map(Figure::name).join(", "))]
    UnknownFigure(String),
    /// The embedded font was not accepted.
    #[error("the embedded font cannot be read")]
    Font,
    /// The backend failed to draw or encode.
    #[error("drawing failed: {0}")]
    Drawing(String),
}

const WIDTH: f64 = 960.0;
/// Room for the two lines of heading, and around everything.
const HEADING: f64 = 62.0;
const MARGIN: f64 = 18.0;

/// Draws one figure; `None` when the recording holds nothing for it.
pub fn render(
    recording: &Recording,
    figure: Figure,
    format: Format,
) -> Result<Option<Vec<u8>>, PlotError> {
    layout(recording, figure)
        .map(|sheet| paint::paint(&sheet, format))
        .transpose()
}

/// Draws coordinates, rates, controls, what contacts do, motion and energy as one figure; `None` when there are none.
pub fn render_overview(
    recording: &Recording,
    format: Format,
) -> Result<Option<Vec<u8>>, PlotError> {
    layout_overview(recording)
        .map(|sheet| paint::paint(&sheet, format))
        .transpose()
}

fn layout(recording: &Recording, figure: Figure) -> Option<Sheet> {
    let inside = |height: f64| Rect::new(MARGIN, HEADING, WIDTH - MARGIN, HEADING + height);
    if figure == Figure::Motion {
        let motion = motion::Motion::new(recording)?;
        let area = inside(motion.height(WIDTH - 2.0 * MARGIN, 620.0));
        let mut sheet = Sheet::new(WIDTH, area.y1 + MARGIN);
        let heading = format!("{}: {}", figure.title(), motion.caption());
        draw_heading(&mut sheet, recording, &heading);
        motion.draw(&mut sheet, area);
        return Some(sheet);
    }
    let stack = curves::stack(recording, figure)?;
    let panel = match stack.panels.len() {
        1 => 360.0,
        2 => 220.0,
        _ => 190.0,
    };
    let area = inside(stack.height(panel));
    let title = match figure {
        Figure::Contacts => format!("{}: {}", figure.title(), contacts::caption(recording)),
        _ => figure.title().to_owned(),
    };
    let mut sheet = Sheet::new(WIDTH, area.y1 + notes_height(&stack.notes) + MARGIN);
    draw_heading(&mut sheet, recording, &(title + &hidden(Some(&stack))));
    stack.draw(&mut sheet, area);
    draw_notes(&mut sheet, &stack.notes);
    Some(sheet)
}

fn layout_overview(recording: &Recording) -> Option<Sheet> {
    let over_time = [Figure::Coordinates, Figure::Rates, Figure::Controls];
    let panels = over_time
        .into_iter()
        .flat_map(|f| curves::panels(recording, f))
        .chain(contacts::overview(recording))
        .collect();
    let left = curves::over_time(panels);
    let motion = motion::Motion::new(recording);
    let energy = curves::stack(recording, Figure::Energy);
    let columns = [left.is_some(), motion.is_some() || energy.is_some()];
    let count = f64::from(columns.map(u8::from).iter().sum::<u8>());
    if count == 0.0 {
        return None;
    }
    const COLUMN: f64 = 760.0;
    const GUTTER: f64 = 36.0;
    const GAP: f64 = 16.0;
    let width = 2.0 * MARGIN + count * COLUMN + (count - 1.0) * GUTTER;
    let energy_height = energy.as_ref().map_or(0.0, |e| {
        e.height(if e.panels.len() > 1 { 110.0 } else { 180.0 })
    });
    let motion_height = |most: f64| {
        motion
            .as_ref()
            .map_or(0.0, |m| m.height(COLUMN, most) + GAP)
    };
    let left_height = left.as_ref().map_or(0.0, |s| {
        s.height(if s.panels.len() > 4 { 140.0 } else { 180.0 })
    });
    let height = left_height.max(motion_height(560.0) + energy_height);
    let notes = left.iter().chain(&energy).flat_map(|s| s.notes.clone());
    let notes: Vec<String> = notes.collect();
    let foot = notes_height(&notes);
    let mut sheet = Sheet::new(width, HEADING + height + foot + MARGIN);
    let caption = match &motion {
        Some(motion) => format!("Overview; motion at {}", motion.caption()),
        None => "Overview".to_owned(),
    };
    draw_heading(&mut sheet, recording, &(caption + &hidden(left.as_ref())));
    let bottom = HEADING + height;
    if let Some(left) = left {
        left.draw(
            &mut sheet,
            Rect::new(MARGIN, HEADING, MARGIN + COLUMN, bottom),
        );
    }
    let x = width - MARGIN - COLUMN;
    // The picture takes what it can use of the column, the energies the rest.
    let split = HEADING + motion_height(height - GAP - energy_height);
    if let Some(motion) = motion {
        motion.draw(&mut sheet, Rect::new(x, HEADING, x + COLUMN, split - GAP));
    }
    if let Some(energy) = energy {
        energy.draw(&mut sheet, Rect::new(x, split, x + COLUMN, bottom));
    }
    draw_notes(&mut sheet, &notes);
    Some(sheet)
}

const NOTE_ROW: f64 = 20.0;

fn notes_height(notes: &[String]) -> f64 {
    NOTE_ROW * notes.len() as f64
}

/// Lines below everything else.
fn draw_notes(sheet: &mut Sheet, notes: &[String]) {
    let (width, height) = sheet.size;
    let top = height - MARGIN - notes_height(notes);
    for (i, note) in notes.iter().enumerate() {
        let at = (MARGIN, top + NOTE_ROW * (i as f64 + 0.75));
        let note = fit(note, 13.0, width - 2.0 * MARGIN);
        sheet.text(at, note, 13.0, Anchor::Start, MUTED);
    }
}

/// Says so when panels are left out.
fn hidden(stack: Option<&panel::Stack>) -> String {
    match stack.map_or(0, |s| s.hidden) {
        0 => String::new(),
        n => format!("; {n} more units not shown"),
    }
}

fn draw_heading(sheet: &mut Sheet, recording: &Recording, heading: &str) {
    let room = sheet.size.0 - 2.0 * MARGIN;
    let title = if recording.title.trim().is_empty() {
        "untitled"
    } else {
        recording.title.trim()
    };
    sheet.text(
        (MARGIN, 32.0),
        fit(title, 20.0, room),
        20.0,
        Anchor::Start,
        INK,
    );
    sheet.text(
        (MARGIN, 54.0),
        fit(heading, 15.0, room),
        15.0,
        Anchor::Start,
        MUTED,
    );
}
