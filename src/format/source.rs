//! Files as they were read, and errors that point into them.

use crate::mechanism::ModelError;
use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Something wrong with a file: where, what was found and expected, and what to do about it.
///
/// `{}` prints the message (after the file's name where there is no place in it to point to), `{:#}` one line
/// `file:line:column: message; help`. As a [`miette::Diagnostic`] it shows the offending line.
#[derive(Clone)]
pub struct FormatError {
    path: PathBuf,
    text: Arc<str>,
    span: Option<Range<usize>>,
    message: String,
    help: String,
}

impl FormatError {
    /// An error about a file as a whole.
    pub fn of_file(path: &Path, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: "".into(),
            span: None,
            message: message.into(),
            help: help.into(),
        }
    }

    /// A failure of the file system; `action` says what was tried.
    pub(crate) fn io(path: &Path, action: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let help = match error.kind() {
            K::NotFound => "check the path",
            K::PermissionDenied => "check the file's permissions",
            K::IsADirectory => "give the path of a file",
            _ => "",
        };
        Self::of_file(path, format!("cannot {action}: {error}"), help)
    }

    /// An error at a place of a text that is no TOML.
    pub(super) fn in_text(
        (path, text): (&Path, &Arc<str>),
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            text: text.clone(),
            span: Some(first_line(text, span)),
            message: message.into(),
            help: help.into(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was found and what was expected.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The remedy; may be empty.
    pub fn help(&self) -> &str {
        &self.help
    }

    /// Bytes of the file that are meant.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    /// Line and column, from 1; columns count characters.
    pub fn position(&self) -> Option<(usize, usize)> {
        let before = self.text.get(..self.span.as_ref()?.start)?;
        let line = before.rfind('\n').map_or(0, |i| i + 1);
        Some((
            before.matches('\n').count() + 1,
            before[line..].chars().count() + 1,
        ))
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position() {
            Some((line, column)) if f.alternate() => {
                write!(f, "{}:{line}:{column}: ", self.path.display())?
            }
            Some(_) => {}
            None => write!(f, "{}: ", self.path.display())?,
        }
        f.write_str(&self.message)?;
        if f.alternate() && !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

impl fmt::Debug for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

impl std::error::Error for FormatError {}

impl SourceCode for FormatError {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let c = (*self.text).read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.path.display().to_string(),
            c.data(),
            *c.span(),
            c.line(),
            c.column(),
            c.line_count(),
        )))
    }
}

impl Diagnostic for FormatError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.help.is_empty()).then(|| Box::new(&self.help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.span.is_some().then_some(self as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span.clone()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(
            Some("here".into()),
            span,
        ))))
    }
}

/// One line is enough to find a place.
fn first_line(text: &str, span: Range<usize>) -> Range<usize> {
    let line = text[span.clone()].find('\n').unwrap_or(span.len());
    span.start..span.start + line
}

/// A value of the file and where it stands.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Of the name, empty for elements of lists.
    key: Range<usize>,
    value: Range<usize>,
    /// What an error points to.
    show: Range<usize>,
    /// By name, or by index.
    children: Vec<(String, Node)>,
}

impl Node {
    fn new(text: &str, key: Range<usize>, value: Range<usize>, content: &DeValue) -> Self {
        let mut node = Self::default();
        let mut show = value.clone();
        match content {
            DeValue::Table(table) => {
                node.add_table(text, table);
                // what is under a [header] goes by its name
                if !text[value.start..].starts_with('{') && !key.is_empty() {
                    show = key.clone();
                }
            }
            DeValue::Array(list) => {
                for (i, v) in list.iter().enumerate() {
                    node.children
                        .push((i.to_string(), Self::new(text, 0..0, v.span(), v.get_ref())));
                }
            }
            _ => {}
        }
        node.show = first_line(text, show);
        (node.key, node.value) = (key, value);
        node
    }

    fn add_table(&mut self, text: &str, table: &DeTable) {
        for (k, v) in table {
            let child = Self::new(text, k.span(), v.span(), v.get_ref());
            self.children.push((k.get_ref().to_string(), child));
        }
    }

    /// Notes where a value stands.
    fn insert(&mut self, path: &[&str], show: Range<usize>) {
        let Some((name, rest)) = path.split_first() else {
            (self.key, self.show) = (show.clone(), show);
            return;
        };
        let place = self.children.iter().position(|c| c.0 == *name);
        let place = place.unwrap_or_else(|| {
            self.children.push(((*name).into(), Self::default()));
            self.children.len() - 1
        });
        self.children[place].1.insert(rest, show);
    }

    fn get(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|c| c.0 == name).map(|c| &c.1)
    }

    /// The names that lead to the innermost value at `span`.
    fn path_to(&self, span: &Range<usize>, path: &mut Vec<String>) -> bool {
        if span.is_empty() {
            // toml's word for the file as a whole
            return false;
        }
        for (name, child) in &self.children {
            path.push(name.clone());
            if child.path_to(span, path) || child.key == *span || child.value == *span {
                return true;
            }
            path.pop();
        }
        false
    }
}

/// A file, and where the values of it stand: one in TOML, or another whose values have names of TOML's.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    path: PathBuf,
    text: Arc<str>,
    root: Node,
}

impl Source {
    /// Reads.
    pub fn text(path: &Path) -> Result<String, FormatError> {
        if path.is_dir() {
            return Err(FormatError::of_file(
                path,
                "this is a directory",
                "give the path of a file in TOML or URDF",
            ));
        }
        let bytes = std::fs::read(path).map_err(|e| FormatError::io(path, "read the file", &e))?;
        String::from_utf8(bytes).map_err(|e| {
            let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = good.iter().filter(|b| **b == b'\n').count() + 1;
            FormatError::of_file(
                path,
                format!("line {line} is not UTF-8 text"),
                "save the file as UTF-8",
            )
        })
    }

    /// A file that is no TOML, with the places of what was read from it, by the names of TOML.
    pub fn with_places(path: &Path, text: Arc<str>) -> Self {
        Self {
            path: path.into(),
            text,
            root: Node::default(),
        }
    }

    /// An error at a place of the text.
    pub fn at_span(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> FormatError {
        FormatError::in_text((&self.path, &self.text), span, message, help)
    }

    /// Is there a value at the whole of a path?
    pub fn has<S: AsRef<str>>(&self, path: &[S]) -> bool {
        self.known(path) == path.len()
    }

    /// As many names of a path as lead to a value.
    pub fn known<S: AsRef<str>>(&self, path: &[S]) -> usize {
        let mut node = Some(&self.root);
        let known = path.iter().take_while(|name| {
            node = node.and_then(|n| n.get(name.as_ref()));
            node.is_some()
        });
        known.count()
    }

    /// Notes where a value stands.
    pub fn place(&mut self, path: &[&str], span: Range<usize>) {
        let show = first_line(&self.text, span);
        self.root.insert(path, show);
    }

    /// Parses.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FormatError> {
        let mut source = Self {
            path: path.into(),
            text: text.into(),
            root: Node::default(),
        };
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Err(FormatError::of_file(
                path,
                "the file is empty",
                "expected a problem or a mechanism in TOML",
            ));
        }
        let table = DeTable::parse(text).map_err(|e| source.toml(&e))?;
        source.root.value = 0..text.len();
        source.root.add_table(text, table.get_ref());
        Ok(source)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names at the top level.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.root.children.iter().map(|c| c.0.as_str())
    }

    /// Fills a specification.
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T, FormatError> {
        toml::from_str(&self.text).map_err(|e| self.toml(&e))
    }

    fn at(&self, span: Option<Range<usize>>, message: String, help: String) -> FormatError {
        let clamp = |s: Range<usize>| {
            let end = s.end.min(self.text.len());
            s.start.min(end)..end
        };
        FormatError {
            path: self.path.clone(),
            text: self.text.clone(),
            span: span.map(clamp),
            message,
            help,
        }
    }

    /// The deepest value that exists along `path`; the root if nothing of it does.
    fn find<S: AsRef<str>>(&self, path: &[S]) -> &Node {
        let mut node = &self.root;
        for name in path {
            match node.get(name.as_ref()) {
                Some(child) => node = child,
                None => break,
            }
        }
        node
    }

    /// An error at the deepest value that exists along `path`.
    pub fn error<S: AsRef<str>>(
        &self,
        path: &[S],
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> FormatError {
        let span = Some(self.find(path).show.clone()).filter(|s| !s.is_empty());
        self.at(span, message.into(), help.into())
    }

    /// An error about the name at the end of `path`, not its value.
    pub fn name_error<S: AsRef<str>>(
        &self,
        path: &[S],
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> FormatError {
        let span = Some(self.find(path).key.clone()).filter(|s| !s.is_empty());
        self.at(span, message.into(), help.into())
    }

    /// An error of the mechanism, which stands in this file under `prefix`.
    pub fn model(&self, prefix: &[&str], e: &ModelError) -> FormatError {
        let path: Vec<&str> = prefix
            .iter()
            .copied()
            .chain(e.path.iter().map(String::as_str))
            .collect();
        self.error(&path, e.message.clone(), e.help.clone())
    }

    fn toml(&self, e: &toml::de::Error) -> FormatError {
        let message = e.message().lines().next().unwrap_or_default();
        let mut span = e.span();
        let mut path = vec![];
        if let Some(s) = &span {
            self.root.path_to(s, &mut path);
        }
        let place = path.join(".");
        if let Some(field) = message.strip_prefix("missing field ") {
            if path.is_empty() {
                // the whole file is no place to point to
                return self.at(
                    None,
                    format!("missing field {field} at the top level"),
                    format!("add {} = ...", field.trim_matches('`')),
                );
            }
            let mut found = self.error(
                &path,
                format!("missing field {field} in `{place}`"),
                "add it to this table",
            );
            found.span = found.span.or(span);
            return found;
        }
        if path.is_empty() && self.root.children.is_empty() {
            let name = span.as_ref().and_then(|s| self.text.get(s.clone()));
            if let Some(name) = name.filter(|_| message == "duplicate key") {
                let message = format!("duplicate key: `{name}` is given twice");
                return self.at(span, message, "remove one of them".into());
            }
            return self.at(
                span,
                format!("this is not valid TOML: {message}"),
                String::new(),
            );
        }
        if let Some(s) = &mut span {
            let lines = self.text.get(s.clone()).and_then(|t| t.find('\n'));
            s.end = lines.map_or(s.end, |l| s.start + l);
        }
        let (unknown, help) = suggestion(message);
        let help = if help.is_empty() {
            remedy(message, &place)
        } else {
            help
        };
        let text = plain(message);
        let parent = path[..path.len().saturating_sub(1)].join(".");
        let message = match (place.as_str(), unknown) {
            ("", _) => text,
            // the place is the name itself
            (_, true) if message.starts_with("unknown field") => match parent.as_str() {
                "" => text,
                parent => format!("{text} in `{parent}`"),
            },
            (place, _) => format!("`{place}`: {text}"),
        };
        self.at(span, message, help)
    }
}

/// Names the type the way the file's author knows it.
fn plain(message: &str) -> String {
    let mut out = message.to_owned();
    for (rust, plain) in [
        ("expected f64", "expected a number"),
        (
            "expected u64",
            "expected a whole number that is not negative",
        ),
        (
            "expected usize",
            "expected a whole number that is not negative",
        ),
        ("expected a sequence", "expected a list"),
        ("expected an array of length", "expected a list of length"),
        ("invalid type: sequence", "invalid type: list"),
        ("invalid type: map", "invalid type: table"),
        ("expected a map", "expected a table"),
        (
            "wanted exactly 1 element, found 0 elements",
            "this table is empty, expected one name with its value",
        ),
        (
            "wanted exactly 1 element, more than 1 element",
            "this table has several names, expected one of them",
        ),
        ("unknown variant", "unknown name"),
        (" as i128", ""),
        (" as u128", ""),
    ] {
        out = out.replace(rust, plain);
    }
    if let Some(at) = out.find("expected struct ") {
        out.replace_range(at.., "expected a table");
    }
    if let Some((before, _)) = out.split_once(", expected")
        && before.starts_with("unknown ")
    {
        out.truncate(before.len());
    }
    out
}

/// What to do about a value of a wrong form at `place`.
fn remedy(message: &str, place: &str) -> String {
    if message.contains("expected a map") {
        format!("write a table for each name: [{place}.NAME] with its fields below")
    } else if message.contains("expected struct ") {
        format!("write a table: [{place}] with its fields below, or {{ field = value, .. }}")
    } else if message.contains("more than 1 element") {
        "keep one of the names; write the list's element again for each of the others".into()
    } else if message.contains("found 0 elements") && place.ends_with("quantity") {
        "name what is meant, as { joint = \"NAME\" }".into()
    } else {
        String::new()
    }
}

/// For unknown fields and variants, the nearest of those expected.
fn suggestion(message: &str) -> (bool, String) {
    let Some((unknown, expected)) = message.split_once(", expected ") else {
        return (false, String::new());
    };
    if !unknown.starts_with("unknown ") {
        return (false, String::new());
    }
    let names = |s: &str| {
        s.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let name = names(unknown).into_iter().next().unwrap_or_default();
    let expected = names(expected);
    (true, nearest(&name, expected.iter().map(String::as_str)))
}

/// A number for people: twelve digits, without the rounding of binary fractions behind them.
pub fn short(v: f64) -> f64 {
    format!("{v:.11e}").parse().unwrap_or(v)
}

/// A remedy that names the closest valid name, and the others.
pub(crate) fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str>) -> String {
    let valid: Vec<&str> = valid.collect();
    let list = valid.join("`, `");
    let best = valid
        .iter()
        .map(|v| (strsim::jaro_winkler(name, v), v))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        None => "there is none to refer to".into(),
        Some((score, best)) if score > 0.7 => {
            format!("did you mean `{best}`? valid names: `{list}`")
        }
        Some(_) => format!("valid names: `{list}`"),
    }
}
