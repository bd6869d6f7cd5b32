//! The state in which the output of jobs left the terminal: an incomplete line, and colors that are
//! still on.

use std::time::Instant;

/// The longest style that is restored. A job that sets more without a reset keeps the last part.
const STYLE_MAX: usize = 128;
/// The control sequence that switches all colors and attributes off.
pub(super) const RESET: &str = "\x1b[0m";

/// The state of the terminal after the output of jobs.
#[derive(Debug, Default)]
pub(super) struct OutputTrace {
    /// Since when the last line is incomplete.
    open_since: Option<Instant>,
    /// The control sequences (SGR, ECMA-48) since the last reset.
    style: String,
}

impl OutputTrace {
    /// Follows output that is written to the terminal. A control sequence that is divided between two
    /// writes is not seen.
    pub(super) fn push(&mut self, bytes: &[u8], now: Instant) {
        let Some(last) = bytes.last() else { return };
        self.open_since = (*last != b'\n').then_some(now);
        let sequences = bytes.split(|byte| *byte == b'\x1b').skip(1);
        for rest in sequences.filter_map(|sequence| sequence.strip_prefix(b"[")) {
            let length = rest.iter().take_while(|byte| matches!(byte, b'0'..=b'?')).count();
            if rest.get(length) == Some(&b'm') {
                self.push_style(&String::from_utf8_lossy(&rest[..length]));
            }
        }
    }

    fn push_style(&mut self, parameters: &str) {
        let resets = parameters.is_empty() || parameters == "0" || parameters.starts_with("0;");
        if resets || self.style.len() + parameters.len() > STYLE_MAX {
            self.style.clear();
        }
        let sequence = format!("\x1b[{parameters}m");
        let is_empty = matches!(parameters, "" | "0") || parameters.len() > STYLE_MAX;
        if !is_empty && !self.style.ends_with(&sequence) {
            self.style += &sequence;
        }
    }

    /// Returns since when the last line is incomplete.
    pub(super) fn open_since(&self) -> Option<Instant> {
        self.open_since
    }

    /// Records that the last line was ended.
    pub(super) fn end_line(&mut self) {
        self.open_since = None;
    }

    /// Returns the control sequences that switch the colors of the output on again; empty if none are on.
    pub(super) fn style(&self) -> &str {
        &self.style
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style_after(output: &[&str]) -> String {
        let mut trace = OutputTrace::default();
        output.iter().for_each(|text| trace.push(text.as_bytes(), Instant::now()));
        trace.style().to_owned()
    }

    #[test]
    fn trace_knows_the_colors_that_are_on() {
        for (output, style) in [
            (&["\x1b[31mred"][..], "\x1b[31m"),
            (&["\x1b[31m\x1b[1mbold red\n", "more"], "\x1b[31m\x1b[1m"),
            (&["\x1b[31mred\x1b[0m"], ""),
            (&["\x1b[31mred\x1b[m"], ""),
            (&["\x1b[31m", "\x1b[0;32mgreen"], "\x1b[0;32m"),
            (&["\x1b[38;2;1;2;3m\x1b[K\x1b[2J\x1b[?25l\x1b", "[1m"], "\x1b[38;2;1;2;3m"),
            (&["\x1b[", "\x1b[3"], ""),
        ] {
            assert_eq!(style_after(output), style, "{output:?}");
        }
        let endless = "\x1b[31m".repeat(1000);
        assert!(style_after(&[&endless]).len() <= 2 * STYLE_MAX);
        assert_eq!(style_after(&[&format!("\x1b[{}m", "1;".repeat(STYLE_MAX))]), "");
    }

    #[test]
    fn trace_knows_whether_the_last_line_is_complete() {
        let mut trace = OutputTrace::default();
        let now = Instant::now();
        for (output, is_open) in [("a", true), ("", true), ("b\n", false), ("\n10 %\r", true)] {
            trace.push(output.as_bytes(), now);
            assert_eq!(trace.open_since().is_some(), is_open, "{output:?}");
        }
        trace.end_line();
        assert_eq!(trace.open_since(), None);
    }
}
