//! The JSON schema of problem files, for editors and other programs.

use super::problem::ProblemSpec;

/// The schema of a problem file: every field with its type, default and meaning.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(ProblemSpec).into()
}

/// Names of the fields of a table.
pub(super) fn fields<T: schemars::JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T);
    let names = schema.get("properties").and_then(|all| all.as_object());
    names.map_or(vec![], |all| all.keys().cloned().collect())
}
