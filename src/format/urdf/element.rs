//! Elements of an XML file, read with their places. What nobody asks for is noted, not dropped.

use crate::format::source::{FormatError, nearest};
use indexmap::IndexMap;
use roxmltree::Node;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// A file that is being read.
pub(super) struct Reader<'a> {
    pub path: &'a Path,
    pub text: &'a Arc<str>,
    /// What was not understood: how often, and the line of the first.
    unread: RefCell<IndexMap<String, (usize, usize)>>,
}

impl<'a> Reader<'a> {
    pub fn new(path: &'a Path, text: &'a Arc<str>) -> Self {
        Self {
            path,
            text,
            unread: RefCell::default(),
        }
    }

    /// The line of a place, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// A remark; of those that say the same the first has its line told, and their number.
    pub fn note(&self, what: String, at: usize) {
        let mut unread = self.unread.borrow_mut();
        let line = self.line(at);
        unread.entry(what).or_insert((0, line)).0 += 1;
    }

    /// What was not understood or used, a sentence each.
    pub fn unread(&self) -> Vec<String> {
        let unread = self.unread.borrow();
        let say = |(what, (n, line)): (&String, &(usize, usize))| match n {
            1 => format!("line {line}: {what}"),
            _ => format!("line {line}: {what} ({n} times)"),
        };
        unread.iter().map(say).collect()
    }
}

/// An element.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub reader: &'a Reader<'a>,
    pub node: Node<'a, 'a>,
}

impl<'a> Element<'a> {
    pub fn tag(&self) -> &'a str {
        self.node.tag_name().name()
    }

    /// How messages call it: its tag, and its name where it has one.
    pub fn called(&self) -> String {
        match self.node.attribute("name") {
            Some(name) => format!("<{} name=\"{name}\">", self.tag()),
            None => match self.node.parent_element() {
                Some(p) => format!("<{}> of {}", self.tag(), self.with(p).called()),
                None => format!("<{}>", self.tag()),
            },
        }
    }

    fn with(&self, node: Node<'a, 'a>) -> Self {
        Self {
            reader: self.reader,
            node,
        }
    }

    pub fn span(&self) -> std::ops::Range<usize> {
        self.node.range()
    }

    pub fn error(&self, message: impl Into<String>, help: impl Into<String>) -> FormatError {
        let file = (self.reader.path, self.reader.text);
        FormatError::in_text(file, self.span(), message, help)
    }

    /// An error about an attribute.
    pub fn wrong(&self, name: &str, message: String, help: impl Into<String>) -> FormatError {
        let found = self.node.attribute_node(name);
        let file = (self.reader.path, self.reader.text);
        let span = found.map_or(self.span(), |a| a.range());
        FormatError::in_text(file, span, message, help)
    }

    /// Notes attributes and elements that are not among these.
    pub fn knows(&self, attributes: &[&str], elements: &[&str]) {
        for a in self.node.attributes() {
            if !attributes.contains(&a.name()) {
                let what = format!(
                    "attribute `{}` of <{}> is not understood and not used",
                    a.name(),
                    self.tag()
                );
                self.reader.note(what, a.range().start);
            }
        }
        for e in self.node.children().filter(Node::is_element) {
            let tag = e.tag_name().name();
            if !elements.contains(&tag) {
                let what = format!("<{tag}> in <{}> is not understood and not used", self.tag());
                self.reader.note(what, e.range().start);
            }
        }
    }

    pub fn children(&self, tag: &'static str) -> impl Iterator<Item = Self> + use<'a> {
        let own = *self;
        let elements = self.node.children().filter(Node::is_element);
        elements
            .filter(move |e| e.tag_name().name() == tag)
            .map(move |e| own.with(e))
    }

    /// The only element of a tag, if there is one.
    pub fn optional(&self, tag: &'static str) -> Result<Option<Self>, FormatError> {
        let mut all = self.children(tag);
        let first = all.next();
        match all.next() {
            None => Ok(first),
            Some(second) => Err(second.error(
                format!("{} has a second <{tag}>", self.called()),
                "keep one of them",
            )),
        }
    }

    /// The only element of a tag.
    pub fn child(&self, tag: &'static str) -> Result<Self, FormatError> {
        if let Some(found) = self.optional(tag)? {
            return Ok(found);
        }
        let others = self.node.children().filter(Node::is_element);
        let close = others
            .map(|e| e.tag_name().name())
            .find(|o| strsim::jaro_winkler(o, tag) > 0.85);
        let help = match close {
            Some(other) => format!("did you mean <{tag}> where it says <{other}>?"),
            None => format!("add <{tag} ..> to it"),
        };
        Err(self.error(format!("{} has no <{tag}>", self.called()), help))
    }

    pub fn text_of(&self, name: &str) -> Option<&'a str> {
        self.node.attribute(name)
    }

    /// An attribute that must be there and not be empty.
    pub fn attribute(&self, name: &str) -> Result<&'a str, FormatError> {
        match self.node.attribute(name).map(str::trim) {
            Some("") => Err(self.wrong(
                name,
                format!("{name} of {} is empty", self.called()),
                format!("write {name}=\"..\""),
            )),
            Some(text) => Ok(text),
            None => {
                let names: Vec<&str> = self.node.attributes().map(|a| a.name()).collect();
                let help = match names.is_empty() {
                    true => format!("write {name}=\"..\""),
                    false => format!("write {name}=\"..\"; it has `{}`", names.join("`, `")),
                };
                Err(self.error(format!("{} has no attribute `{name}`", self.called()), help))
            }
        }
    }

    fn parse(&self, name: &str, text: &str) -> Result<f64, FormatError> {
        let number = text.parse::<f64>().ok().filter(|v| v.is_finite());
        number.ok_or_else(|| {
            let help = match text.contains(',') {
                true => "numbers have a point, and spaces between them",
                false => "expected a finite number",
            };
            let message = format!("{name} of {} is `{text}`, no number", self.called());
            self.wrong(name, message, help)
        })
    }

    /// A number that must be there.
    pub fn number(&self, name: &str) -> Result<f64, FormatError> {
        self.parse(name, self.attribute(name)?)
    }

    /// A number that may be there.
    pub fn optional_number(&self, name: &str) -> Result<Option<f64>, FormatError> {
        match self.node.attribute(name) {
            None => Ok(None),
            Some(_) => self.number(name).map(Some),
        }
    }

    /// A length, m.
    pub fn length(&self, name: &str) -> Result<f64, FormatError> {
        let v = self.number(name)?;
        match v > 0.0 {
            true => Ok(v),
            false => {
                let message = format!("{name} of {} is {v}", self.called());
                Err(self.wrong(name, message, "expected a positive length, m"))
            }
        }
    }

    /// Numbers with spaces between them.
    pub fn vector<const N: usize>(&self, name: &str) -> Result<[f64; N], FormatError> {
        let text = self.attribute(name)?;
        let numbers = text
            .split_whitespace()
            .map(|t| self.parse(name, t))
            .collect::<Result<Vec<_>, _>>()?;
        let count = numbers.len();
        numbers.try_into().map_err(|_| {
            let message = format!("{name} of {} has {count} numbers", self.called());
            self.wrong(
                name,
                message,
                format!("expected {N} numbers with spaces between them"),
            )
        })
    }

    /// The same, or what stands for it where it is left out.
    pub fn vector_or<const N: usize>(
        &self,
        name: &str,
        otherwise: [f64; N],
    ) -> Result<[f64; N], FormatError> {
        match self.node.attribute(name) {
            None => Ok(otherwise),
            Some(_) => self.vector(name),
        }
    }

    /// One of several words.
    pub fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, FormatError> {
        let text = self.attribute(name)?;
        match words.iter().find(|w| w.0 == text) {
            Some((_, meant)) => Ok(*meant),
            None => {
                let message = format!("{name} of {} is `{text}`", self.called());
                let help = nearest(text, words.iter().map(|w| w.0));
                Err(self.wrong(name, message, help))
            }
        }
    }
}
