//! The bar: how far the run is. It is drawn on stderr, on a terminal only.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use minder::exec::Counts;

use super::time;

/// Draws, or does nothing. Clones draw the same bar.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar, if it is wanted and stderr is a terminal.
    pub(crate) fn new(wanted: bool) -> Self {
        if !wanted || !stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        // The template is ours and has no mistake; the default style would do as well.
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self(Some(bar))
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Draws the state of the run.
    pub(crate) fn draw(&self, counts: &Counts, total: Option<u64>, elapsed: Duration) {
        if let Some(bar) = &self.0 {
            bar.set_message(line(counts, total, elapsed));
            bar.tick();
        }
    }

    /// Takes the bar away while somebody writes to the terminal.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the bar away for good.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn line(counts: &Counts, total: Option<u64>, elapsed: Duration) -> String {
    let done = counts.succeeded + counts.failed;
    let mut line = match total {
        Some(total) => format!("{done}/{total} done"),
        None => format!("{done} done"),
    };
    line += &format!(" · {} running · {} failed · {}", counts.running, counts.failed, time(elapsed));
    if let Some(total) = total.filter(|total| done > 0 && *total > done) {
        let left = elapsed.as_secs_f64() / done as f64 * (total - done) as f64;
        line += &format!(" · about {} left", time(Duration::from_secs_f64(left)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        let mut counts = Counts::default();
        (counts.succeeded, counts.failed, counts.running) = (1, 1, 1);
        let text = line(&counts, Some(3), Duration::from_secs(12));
        assert_eq!(text, "2/3 done · 1 running · 1 failed · 12.0 s · about 6.00 s left");
        assert_eq!(line(&counts, None, Duration::from_secs(1)), "2 done · 1 running · 1 failed · 1.00 s");
    }
}
