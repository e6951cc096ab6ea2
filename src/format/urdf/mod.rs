//! Robots in URDF: <https://wiki.ros.org/urdf/XML>. Links become bodies in their own frames, joints those of the same kind,
//! mimics gears, transmissions actuators; what is not understood is told.

mod assemble;
#[cfg(test)]
mod broken_tests;
mod element;
mod hull;
mod mesh;
mod robot;
mod shapes;
#[cfg(test)]
mod tests;

use super::import::ImportSpec;
use super::recording::Visual;
use super::source::{FormatError, Source};
use crate::mechanism::MechanismBuilder;
use assemble::Assembly;
use element::{Element, Reader};
use robot::Robot;
use roxmltree::Document as Xml;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// A robot's file that was read.
pub(super) struct Imported {
    pub title: Option<String>,
    /// Places by the names of what they became.
    pub source: Source,
    pub builder: MechanismBuilder,
    pub visuals: Vec<Visual>,
    /// What was left out or done otherwise, a sentence each.
    pub remarks: Vec<String>,
    /// The largest speeds of joints, m/s or rad/s.
    pub speeds: Vec<(String, f64)>,
}

/// Is it XML?
pub(super) fn is_xml(path: &Path, text: &str) -> bool {
    let ending = path.extension();
    ending.is_some_and(|e| e.eq_ignore_ascii_case("urdf"))
        || text
            .trim_start_matches('\u{feff}')
            .trim_start()
            .starts_with('<')
}

/// Undeclared prefixes that are bound at most: files have one or two.
const PREFIXES: usize = 32;

/// The text in which every name with an undeclared prefix, `drake:mu`, is one without, `drake_mu`: places stay.
fn bind_prefixes(text: &str) -> Cow<'_, str> {
    let mut bound = Cow::Borrowed(text);
    for _ in 0..PREFIXES {
        let Err(roxmltree::Error::UnknownNamespace(prefix, _)) = Xml::parse(&bound) else {
            break;
        };
        let mut changed = bound.clone().into_owned();
        for before in ["<", "</", " ", "\t", "\n", "\r"] {
            let (from, to) = (format!("{before}{prefix}:"), format!("{before}{prefix}_"));
            changed = changed.replace(&from, &to);
        }
        if changed == *bound {
            break;
        }
        bound = Cow::Owned(changed);
    }
    bound
}

/// Reads a robot; `import` stands in the file `told`, where there is one.
pub(super) fn read(
    (path, text): (&Path, &str),
    import: (&ImportSpec, Option<&Source>),
) -> Result<Imported, FormatError> {
    let text: Arc<str> = text.trim_start_matches('\u{feff}').into();
    if text.trim().is_empty() {
        let help = "expected <robot name=\"..\"> with links and joints";
        return Err(FormatError::of_file(path, "the file is empty", help));
    }
    let bound = bind_prefixes(&text);
    let xml = Xml::parse(&bound).map_err(|e| {
        let at = e.pos();
        let before = text.split_inclusive('\n').take(at.row as usize - 1);
        let line: usize = before.map(str::len).sum();
        let rest = &text[line.min(text.len())..];
        let column = rest.char_indices().nth(at.col as usize - 1);
        let start = (line + column.map_or(0, |c| c.0)).min(text.len());
        let end = text[start..]
            .chars()
            .next()
            .map_or(start, |c| start + c.len_utf8());
        let message = format!("this is not valid XML: {e}");
        FormatError::in_text(
            (path, &text),
            start..end,
            message,
            "close what is opened, and quote attributes",
        )
    })?;
    let reader = Reader::new(path, &text);
    let root = Element {
        reader: &reader,
        node: xml.root_element(),
    };
    if root.tag() != "robot" {
        let help = match root.tag() {
            "mujoco" => "MJCF is not read; give a URDF, or a mechanism in TOML",
            _ => "expected <robot name=\"..\"> around links and joints",
        };
        return Err(root.error(format!("the file holds <{}>, no <robot>", root.tag()), help));
    }
    let robot = Robot::new(&root)?;
    let source = Source::with_places(path, text.clone());
    let assembly = Assembly::new(&robot, import, source)?;
    let mut remarks = assembly.remarks;
    remarks.extend(reader.unread());
    Ok(Imported {
        title: robot.name.clone(),
        source: assembly.source,
        builder: assembly.builder,
        visuals: assembly.visuals,
        remarks,
        speeds: assembly.speeds,
    })
}
