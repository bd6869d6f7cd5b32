//! Writes the results of a bare machine: the cost of each part, for the reader and in a line that
//! stays.

use crate::run;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// One part of the work, and its cost.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) seconds: f64,
    /// Bytes on disk that it added, negative if it removed some.
    pub(super) bytes: i64,
}

impl Part {
    pub(super) fn costs(&self) -> String {
        format!("{} {:.0} s {:.0} MB", self.name, self.seconds, self.bytes as f64 / 1e6)
    }
}

/// Returns a table of the parts.
pub(super) fn table(parts: &[Part]) -> String {
    let mut out = format!("{:<24} {:>9} {:>12}\n", "bare machine", "seconds", "MB on disk");
    for part in parts {
        let _ = writeln!(out, "{:<24} {:>9.0} {:>12.0}", part.name, part.seconds, part.bytes as f64 / 1e6);
    }
    out
}

/// Returns the line that stays: time, commit, result, costs.
pub(super) fn line(commit: &str, is_passed: bool, parts: &[Part]) -> Result<String> {
    let time = run::read(run::command("date").args(["-u", "+%Y-%m-%dT%H:%MZ"]))?;
    Ok(format!("{} {commit} {}", time.trim(), costs(is_passed, parts)))
}

fn costs(is_passed: bool, parts: &[Part]) -> String {
    let costs: Vec<String> = parts.iter().map(Part::costs).collect();
    format!("{}: {}", if is_passed { "passed" } else { "failed" }, costs.join(", "))
}

/// Appends a line to a file.
pub(super) fn append(path: &Path, line: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = std::fs::File::options().append(true).create(true).open(path).with_context(cannot)?;
    writeln!(file, "{line}").with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_the_result_and_the_costs() {
        let part = |name: &str| Part { name: name.to_owned(), seconds: 80.6, bytes: 512_000_000 };
        let parts = [part("Debian"), part("first command")];
        assert_eq!(costs(true, &parts), "passed: Debian 81 s 512 MB, first command 81 s 512 MB");
        assert!(costs(false, &[]).starts_with("failed"));
        assert!(line("abc", true, &parts).unwrap().contains("Z abc passed: Debian"));
    }
}
