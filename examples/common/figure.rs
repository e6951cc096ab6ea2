//! What figures of examples share.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor;
use std::error::Error;

#[path = "font.rs"]
mod font;
pub use font::take_font;

/// A line of a legend beside a plot, at a height.
pub fn tell<B: DrawingBackend>(
    side: &DrawingArea<B, Shift>,
    name: &str,
    y: i32,
    color: RGBColor,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    side.draw(&PathElement::new([(0, y), (26, y)], color.stroke_width(2)))?;
    let style = TextStyle::from(("sans-serif", 16)).pos(text_anchor::Pos::new(
        text_anchor::HPos::Left,
        text_anchor::VPos::Center,
    ));
    side.draw(&Text::new(name.to_owned(), (34, y), style))?;
    Ok(())
}
