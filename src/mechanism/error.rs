//! What is wrong with a description, and the checks that all descriptions share.

use indexmap::IndexMap;

/// What is wrong with a description: where, what, and what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}: {message}; {help}", .path.join("."))]
pub struct ModelError {
    /// The element as a path of names, as in the file: `joints`, `hinge`, `child`.
    pub path: Vec<String>,
    /// What was found and what was expected.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl ModelError {
    pub(crate) fn new<'a>(
        path: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into_iter().map(|s| s.as_ref().to_owned()).collect(),
            message: message.into(),
            help: help.into(),
        }
    }
}

/// Does the name mean the ground?
pub(super) fn is_world(name: &str) -> bool {
    name == "world"
}

/// Refuses vectors that are not finite.
pub(super) fn finite(kind: &str, name: &str, field: &str, v: &[f64; 3]) -> Result<(), ModelError> {
    if v.iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    Err(ModelError::new(
        [kind, name, field],
        format!("{field} of `{name}` is not finite: {v:?}"),
        "give three finite numbers",
    ))
}

/// Parent and child by name.
pub(super) fn ends<V>(
    kind: &str,
    name: &str,
    parent: &str,
    child: &str,
    bodies: &IndexMap<String, V>,
) -> Result<(Option<usize>, usize), ModelError> {
    let find = |field: &str, body: &str| {
        bodies
            .get_index_of(body)
            .ok_or_else(|| unknown_body([kind, name, field], name, body, bodies))
    };
    if is_world(child) {
        return Err(ModelError::new(
            [kind, name, "child"],
            format!("child of `{name}` is the world"),
            "make the world the parent and the body the child",
        ));
    }
    let parent = if is_world(parent) {
        None
    } else {
        Some(find("parent", parent)?)
    };
    let child = find("child", child)?;
    if parent == Some(child) {
        return Err(ModelError::new(
            [kind, name, "child"],
            format!(
                "`{name}` ties body `{}` to itself",
                bodies.get_index(child).map_or("", |b| b.0)
            ),
            "parent and child must differ",
        ));
    }
    Ok((parent, child))
}

/// A reference to a body that does not exist.
pub(super) fn unknown_body<V>(
    path: [&str; 3],
    name: &str,
    body: &str,
    bodies: &IndexMap<String, V>,
) -> ModelError {
    ModelError::new(
        path,
        format!("`{name}` refers to the unknown body `{body}`"),
        nearest(body, bodies.keys().map(String::as_str)),
    )
}

/// A remedy that names the closest valid name, and the others.
pub(crate) fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str> + Clone) -> String {
    let list = valid.clone().collect::<Vec<_>>().join("`, `");
    if list.is_empty() {
        return "there is none to refer to".into();
    }
    match valid
        .map(|v| (strsim::jaro_winkler(name, v), v))
        .max_by(|a, b| a.0.total_cmp(&b.0))
    {
        Some((score, best)) if score > 0.7 => {
            format!("did you mean `{best}`? valid names: `{list}`")
        }
        _ => format!("valid names: `{list}`"),
    }
}
