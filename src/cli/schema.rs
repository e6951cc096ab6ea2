//! `schema`: the JSON schema of problem files.

use super::{Failure, print_json};

pub fn run() -> Result<(), Failure> {
    print_json(&least_action::format::schema());
    Ok(())
}
