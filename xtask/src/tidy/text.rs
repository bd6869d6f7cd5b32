//! Rules about every text file: what it must not contain, and which files have to exist.

use super::Finding;
use std::path::Path;

/// Paths of one machine, and references that mean nothing to a reader. (Written in two halves, since
/// this file is checked too.)
const BANNED: [(&str, &str); 5] = [
    (concat!("/wo", "rk/"), "a path of one machine; hint: write a relative path"),
    (concat!("/ro", "ot/"), "a path of one machine; hint: write a relative path"),
    (concat!("/ho", "me/"), "a path of one machine; hint: write a relative path, or `~`"),
    (concat!("../sha", "red"), "a path outside the repository; hint: write it here"),
    (concat!("issue", " #"), "a number that means nothing to a reader; hint: describe the problem"),
];

/// Files whose text comes from elsewhere.
const FOREIGN: [&str; 2] = ["Cargo.lock", "LICENSE-APACHE"];

/// Checks one file's text.
pub(crate) fn check(file: &Path, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if FOREIGN.iter().any(|f| file.ends_with(f)) {
        return found;
    }
    let whole = text.to_lowercase();
    let banned: Vec<_> = BANNED.iter().filter(|(word, _)| whole.contains(word)).collect();
    let snapshot = file.extension().is_some_and(|e| e == "snap");
    for (number, line) in text.lines().enumerate() {
        let mut add = |what: &str| found.push(Finding::new(file, number + 1, what));
        if line.ends_with([' ', '\t', '\r']) && !snapshot {
            add("white space at the end of the line; hint: remove it");
        }
        if line.contains('\t') && !snapshot {
            add("a tab; hint: write spaces, or `\\t` in a string");
        }
        if banned.is_empty() {
            continue;
        }
        let lower = line.to_lowercase();
        for (word, what) in &banned {
            if lower.match_indices(word).any(|(at, _)| starts_there(&lower, at, word)) {
                add(&format!("`{word}`: {what}"));
            }
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        found.push(Finding::new(
            file,
            text.lines().count(),
            "no line end at the end of the file; hint: add one",
        ));
    }
    found
}

/// Returns whether a path starts at `at`: `/b/` in `a/b/` does not.
fn starts_there(line: &str, at: usize, word: &str) -> bool {
    let before = line[..at].chars().next_back();
    !word.starts_with('/') || !before.is_some_and(|c| c.is_alphanumeric() || "._-/*}~".contains(c))
}

/// Checks that the files exist that every release needs, and that the change log has this version.
pub(crate) fn required(root: &Path) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        if !root.join(name).is_file() {
            found.push(Finding::new(Path::new(name), 1, "missing; hint: bring it back"));
        }
    }
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    if let Ok(log) = std::fs::read_to_string(root.join("CHANGELOG.md")) {
        found.extend(change_log(&manifest, &log));
    }
    found
}

fn change_log(manifest: &str, log: &str) -> Vec<Finding> {
    let file = Path::new("CHANGELOG.md");
    let mut found = Vec::new();
    if !log.lines().any(|l| l.starts_with("## ") && l.contains("Unreleased")) {
        found.push(Finding::new(file, 1, "no heading `## Unreleased`; hint: add it on top"));
    }
    let version =
        manifest.lines().find_map(|l| l.strip_prefix("version = \"")).and_then(|l| l.split('"').next());
    if let Some(version) = version.filter(|v| !log.contains(v)) {
        let what = format!("version {version} of Cargo.toml is not mentioned; hint: add a heading for it");
        found.push(Finding::new(file, 1, what));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(Path::new("a.md"), text).iter().map(|f| f.line).collect()
    }

    #[test]
    fn blanks_tabs_and_machine_paths_are_found() {
        assert_eq!(lines("good\nbad \n\tbad\ngood\n"), [2, 3]);
        assert_eq!(lines(&format!("see {}main\n", BANNED[0].0)), [1]);
        assert_eq!(lines(&format!("see net{}main\n", BANNED[0].0)), [] as [usize; 0]);
        assert_eq!(lines("no end"), [1]);
    }

    #[test]
    fn the_change_log_has_to_know_the_version() {
        let manifest = "version = \"1.2.3\"\n";
        assert!(change_log(manifest, "## Unreleased\n\n## 1.2.3\n").is_empty());
        assert_eq!(change_log(manifest, "## 1.2.2\n").len(), 2);
    }
}
