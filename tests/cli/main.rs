//! The command as a user runs it: what it prints where, what it writes, how it exits.

mod animate;
mod automatic;
mod blows;
mod coarse;
mod contacts;
mod energy;
mod gradient;
mod input;
mod inspect;
mod joints;
mod learners;
mod meshes;
mod plot;
mod rolling;
mod servos;
mod simulate;
mod solve;
mod verdicts;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const NAN: f64 = f64::NAN;

/// An empty directory of its own for a test, where the command runs.
pub(crate) struct Folder(pub(crate) PathBuf);

pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    /// Without line breaks and the marks at their edges.
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // it may not have been there
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("makes the folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("writes");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("UTF-8")
    }

    /// Everything in the folder, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("lists");
        let name = |e: std::io::Result<std::fs::DirEntry>| {
            e.expect("lists").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut c = Command::new(env!("CARGO_BIN_EXE_least-action"));
        c.current_dir(&self.0).args(arguments);
        c
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&self.command(arguments).output().expect("runs"))
    }

    /// Runs, expecting success and one JSON object alone on standard output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.run(arguments).ended(0).json()
    }

    /// A table: its columns, and its rows as numbers, NaN where a cell is empty.
    pub(crate) fn table(&self, name: &str) -> (Vec<String>, Vec<Vec<f64>>) {
        let text = self.text(name);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader
            .headers()
            .expect("a header")
            .iter()
            .map(str::to_owned)
            .collect();
        let number = |s: &str| {
            if s.is_empty() {
                NAN
            } else {
                s.parse().expect("a number")
            }
        };
        let row =
            |r: csv::Result<csv::StringRecord>| r.expect("a row").iter().map(number).collect();
        (columns, reader.records().map(row).collect())
    }
}

impl Run {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let err = text(&output.stderr);
        assert!(!err.contains("panicked"), "{err}");
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: err
                .replace('│', " ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        }
    }

    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        self
    }

    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out).expect("one JSON value");
        assert!(value.is_object(), "{value}");
        value
    }

    pub(crate) fn says(&self, words: &[&str]) {
        for w in words {
            assert!(self.err.contains(w), "`{w}` is missing in\n{}", self.err);
        }
    }

    /// Refused: status 2, nothing on standard output, and these words on the other.
    pub(crate) fn refused(self, words: &[&str]) {
        let run = self.ended(2);
        assert_eq!(run.out, "");
        run.says(words);
    }
}

/// Runs what is piped, and interrupts it as Ctrl-C does once it says a word.
#[cfg(unix)]
pub(crate) fn interrupted(mut command: Command, word: &str) -> Run {
    let mut child = command.spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let told = lines.find(|l| l.as_ref().is_ok_and(|l| l.contains(word)));
    assert!(told.is_some(), "it ended before");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill runs").success());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let mut output = child.wait_with_output().expect("ends");
    output.stderr = rest.join("\n").into_bytes();
    Run::of(&output)
}

pub(crate) fn problem(name: &str) -> String {
    format!("{}/problems/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn problem_text(name: &str) -> String {
    std::fs::read_to_string(problem(name)).expect("reads")
}

/// The problem's text with every `from` replaced.
pub(crate) fn changed(name: &str, from: &str, to: &str) -> String {
    let text = problem_text(name);
    assert!(text.contains(from), "`{from}` is not in {name}");
    text.replace(from, to)
}

pub(crate) fn number(v: &Value, name: &str) -> f64 {
    v[name]
        .as_f64()
        .unwrap_or_else(|| panic!("`{name}` is no number in {v:#}"))
}

pub(crate) fn numbers(v: &Value) -> Vec<f64> {
    let list = v.as_array().unwrap_or_else(|| panic!("no list: {v}"));
    list.iter().map(|n| n.as_f64().expect("a number")).collect()
}

pub(crate) fn names(v: &Value) -> Vec<&str> {
    let list = v.as_array().unwrap_or_else(|| panic!("no list: {v}"));
    list.iter().map(|n| n.as_str().expect("a name")).collect()
}

pub(crate) fn keys(v: &Value) -> Vec<&str> {
    v.as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

pub(crate) fn is_svg(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.trim_start().starts_with("<svg") && text.trim_end().ends_with("</svg>")
}

pub(crate) fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xaeB`\x82")
}
