//! The end of `cargo xtask test`: the closing lines of test programs, how long each step took, and
//! what was left out. A second process of it writes its steps as lines, which are read here.

use std::fmt::Write as _;

/// A step that has finished.
#[derive(Debug, PartialEq)]
pub(crate) struct Finished {
    pub(crate) name: String,
    /// `true` if it left nothing out.
    pub(crate) is_whole: bool,
    pub(crate) seconds: f64,
    /// The processor time of its programs, where the system reports it.
    pub(crate) cpu: Option<f64>,
}

/// Everything that the last lines show.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) steps: Vec<Finished>,
    pub(crate) closing: Vec<String>,
    pub(crate) left_out: Vec<String>,
}

const PARTLY: &str = "done in part, see the end";

impl Finished {
    /// The line that ends the step's output.
    pub(crate) fn line(&self) -> String {
        let how = if self.is_whole { "done" } else { PARTLY };
        let cpu = self.cpu.map(|cpu| format!(", CPU {cpu:.1} s")).unwrap_or_default();
        format!("=== {}: {how}, {:.1} s{cpu}", self.name, self.seconds)
    }

    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.strip_prefix("=== ")?.split_once(": ")?;
        let (is_whole, rest) = match rest.strip_prefix(PARTLY) {
            Some(rest) => (false, rest),
            None => (true, rest.strip_prefix("done")?),
        };
        let mut times =
            rest.strip_prefix(", ")?.split(", CPU ").map(|time| time.strip_suffix(" s")?.parse().ok());
        Some(Self { name: name.to_string(), is_whole, seconds: times.next()??, cpu: times.next().flatten() })
    }
}

impl Report {
    /// Adds what another process of `cargo xtask test` has printed.
    pub(crate) fn add_output(&mut self, output: &str) {
        let mut is_summary = false;
        for line in output.lines() {
            if let Some(step) = Finished::parse(line) {
                self.steps.push(step);
            } else if line == CLOSING || line == table_head() {
                is_summary = true;
            } else if is_summary && line.contains("test result: ") {
                self.closing.push(line.to_string());
            } else if is_summary && line.starts_with("skipped: ") {
                self.left_out.push(line.to_string());
            }
        }
    }

    /// Returns the closing lines and the table of times.
    pub(crate) fn shown(&self) -> String {
        let mut out = String::new();
        if !self.closing.is_empty() {
            let _ = writeln!(out, "\n{CLOSING}");
        }
        for line in &self.closing {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "\n{}", table_head());
        for step in &self.steps {
            let cpu = step.cpu.map(|cpu| format!("{cpu:.0}")).unwrap_or_default();
            let _ = writeln!(out, "{:<8} {:>8.0} {cpu:>8}", step.name, step.seconds);
        }
        out
    }

    /// Returns what was left out, a line each.
    pub(crate) fn skipped(&self) -> String {
        self.left_out.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Returns the output of another process of `cargo xtask test`, up to its own summary.
pub(crate) fn without_summary(output: &str) -> &str {
    let starts = [CLOSING, &table_head()].map(|line| output.find(&format!("\n{line}\n")));
    &output[..starts.into_iter().flatten().min().unwrap_or(output.len())]
}

fn table_head() -> String {
    format!("{:<8} {:>8} {:>8}", "step", "seconds", "CPU")
}

const CLOSING: &str = "=== closing lines of the test programs";

/// Returns the lines with which test programs of Rust end.
pub(crate) fn closing_lines(output: &str) -> Vec<String> {
    output.lines().filter(|line| line.starts_with("test result: ")).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_another_process_are_read() {
        let mut there = Report::default();
        there.steps.push(Finished { name: "wine".into(), is_whole: false, seconds: 12.5, cpu: Some(3.0) });
        there.steps.push(Finished { name: "loom".into(), is_whole: true, seconds: 1.0, cpu: None });
        there.closing.push("wine: test result: ok. 3 passed".into());
        there.left_out.push("skipped: wine: why".into());
        let lines: String = there.steps.iter().map(|step| step.line() + "\n").collect();
        let output =
            format!("test result: ok. 3 passed\n=== wine: what\n{lines}{}{}", there.shown(), there.skipped());
        let mut here = Report::default();
        here.add_output(&output);
        assert_eq!(here.steps, there.steps);
        assert_eq!(here.closing, there.closing);
        assert_eq!(here.left_out, there.left_out);
        assert!(without_summary(&output).ends_with("=== loom: done, 1.0 s\n"), "{output}");
        assert!(here.shown().contains("wine           12        3\n"), "{}", here.shown());
    }
}
