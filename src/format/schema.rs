//! The JSON schema of problem files, for editors and other programs.

use super::problem::ProblemSpec;

/// The schema of a problem file: every field with its type, default and meaning.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(ProblemSpec).into()
}
