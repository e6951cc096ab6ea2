//! Progress: a bar on a terminal, plain lines elsewhere, nothing for what takes less than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Shows how far something has come.
pub struct Progress {
    bar: Option<ProgressBar>,
    what: &'static str,
    total: u64,
    start: Instant,
    last: Instant,
}

impl Progress {
    /// Of `total` pieces of work.
    pub fn new(what: &'static str, total: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len}\n{wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar.set_prefix(what);
            bar
        });
        let now = Instant::now();
        Self {
            bar,
            what,
            total,
            start: now,
            last: now,
        }
    }

    /// `done` pieces are done; `message` is only made when it is shown.
    pub fn at(&mut self, done: u64, message: impl FnOnce() -> String) {
        let now = Instant::now();
        match &self.bar {
            Some(bar) => {
                if now - self.last > Duration::from_millis(100) {
                    self.last = now;
                    bar.set_message(message());
                    bar.set_position(done);
                }
            }
            None => {
                if now - self.last > Duration::from_secs(1) {
                    self.last = now;
                    let seconds = (now - self.start).as_secs();
                    eprintln!(
                        "{} {done}/{} after {seconds} s  {}",
                        self.what,
                        self.total,
                        message()
                    );
                }
            }
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
