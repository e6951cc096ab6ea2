//! Animations of recordings: a page to look around in, a scene for other programs, or a film.
//!
//! A [`Scene`] is made of recordings once; what it shows and from where is the same in every kind of file, which
//! [`render`] makes of it.
//!
#![doc = include_str!("../../docs/animations.md")]

mod camera;
mod encode;
mod film;
mod frames;
mod glb;
mod html;
mod look;
mod mesh;
mod raster;
mod scene;
#[cfg(test)]
mod tests;
mod view;

pub use film::render_film;
pub use frames::{Frames, MOST_RATE};
pub use glb::render_glb;
pub use html::render_html;
pub use look::Color;
pub use mesh::Mesh;
pub use scene::{Arrow, Floor, Link, Part, Run, Scene, Trace};
pub use view::View;

/// The kind of file an animation becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A page that shows it.
    Html,
    /// A scene with its motion for other programs.
    Glb,
    /// A film of few colours.
    Gif,
    /// A film, as animated PNG.
    Png,
}

impl Format {
    /// Every kind, in the order they are offered.
    pub const ALL: [Format; 4] = [Format::Html, Format::Glb, Format::Gif, Format::Png];

    /// The customary ending of file names, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Glb => "glb",
            Format::Gif => "gif",
            Format::Png => "png",
        }
    }
}

/// Why there is no animation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnimateError {
    /// Nothing to show.
    #[error("there are no knots to show; simulate or solve first")]
    Empty,
    /// Of a recording among others.
    #[error("{name}: {error}")]
    Run {
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: Box<AnimateError>,
    },
    /// Times ascend.
    #[error(
        "the time at knot {knot} is {time} s, which does not follow the one before; write the trajectory anew"
    )]
    Time {
        /// Where.
        knot: usize,
        /// s
        time: f64,
    },
    /// A pose is no place.
    #[error(
        "the pose of body `{body}` at knot {knot} ({time} s) is not finite, or no rotation; write the trajectory anew, or cut it before that knot"
    )]
    Pose {
        /// Its name.
        body: String,
        /// Where.
        knot: usize,
        /// s
        time: f64,
    },
    /// A file could not be made of it.
    #[error("the file cannot be made: {0}")]
    Encoding(String),
}

impl AnimateError {
    fn of(self, name: &str) -> AnimateError {
        AnimateError::Run {
            name: name.to_owned(),
            error: Box::new(self),
        }
    }
}

/// Are there poses to show?
///
/// # Errors
/// As [`Scene::new`].
pub fn check(recording: &crate::format::recording::Recording) -> Result<(), AnimateError> {
    Frames::new(recording).map(|_| ())
}

/// The bytes of a file of the scene.
///
/// # Errors
/// When a film cannot be encoded.
pub fn render(scene: &Scene, format: Format) -> Result<Vec<u8>, AnimateError> {
    match format {
        Format::Html => Ok(render_html(scene).into_bytes()),
        Format::Glb => render_glb(scene),
        Format::Gif | Format::Png => render_film(scene, format),
    }
}
