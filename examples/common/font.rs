//! The font of figures of examples.

use plotters::style::{FontStyle, register_font};

/// Takes that of the project's own figures.
pub fn take_font() -> Result<(), &'static str> {
    let font = include_bytes!("../../assets/fonts/DejaVuSans.ttf");
    register_font("sans-serif", FontStyle::Normal, font).map_err(|_| "the font cannot be read")
}
