//! Rules about one Rust file: its head, size and name, its idioms, and code that only some files may
//! contain.

use super::code::{self, Mention};
use super::{Finding, idioms, within};
use std::path::{Path, PathBuf};

/// The most lines that a file may have.
const LINES_MAX: usize = 800;

/// The most columns of a line.
const COLUMNS_MAX: usize = 110;

/// The directories that may contain `unsafe`.
const UNSAFE: [&str; 7] = [
    "crates/minder-cells/src/space.rs",
    "crates/minder/src/sys/",
    "crates/minder-bench/src/sys/",
    "crates/minder-os/src/",
    "bindings/c/src/",
    "bindings/emacs/src/",
    "tests/",
];

/// The directories that may contain `cfg` of a system, and those of `crates/*/src` that may use the
/// crates of [`OS_CRATES`]. The other code is the same everywhere.
const SYSTEMS: [&str; 11] = [
    "crates/minder-cells/src/space.rs",
    "crates/minder/examples/",
    "crates/minder/src/sys/",
    "crates/minder/src/os/",
    "crates/minder-bench/src/sys/",
    "crates/minder-tokio/src/sys/",
    "crates/minder-tokio/tests/",
    "crates/minder-os/src/",
    "bindings/",
    "tests/",
    "xtask/",
];

/// Crates whose functions are system calls.
const OS_CRATES: [&str; 4] = ["libc", "rustix", "windows_sys", "io_uring"];

/// Plain data: files of `minder` that use no other crate than std.
const STD_ONLY: [&str; 6] = [
    "crates/minder/src/random.rs",
    "crates/minder/src/command.rs",
    "crates/minder/src/group.rs",
    "crates/minder/src/exit_status.rs",
    "crates/minder/src/interest.rs",
    "crates/minder/src/backlog.rs",
];

/// The crates that other files of `minder` use outside of the directories in [`SYSTEMS`].
const OTHER_CRATES: [&str; 2] = ["minder_os", "memchr"];

/// The places that may sleep: the programs of the tests, the sleep of `minder-os`, and an opponent
/// of a benchmark.
const SLEEPERS: [&str; 3] =
    ["tests/bin/", "crates/minder-os/src/time.rs", "benches/peers/clock/src/std_sleep.rs"];

/// File names that do not name a subject.
const NAMELESS: [&str; 6] = ["utils", "util", "helpers", "helper", "common", "misc"];

/// Returns the places of the tables above where no file is.
pub(crate) fn places(files: &[PathBuf]) -> Vec<Finding> {
    let table = Path::new(file!());
    let all = UNSAFE.iter().chain(&SYSTEMS).chain(&STD_ONLY).chain(&SLEEPERS);
    let empty = all.filter(|place| !files.iter().any(|file| within(file, &[place])));
    empty.map(|place| Finding::new(table, 1, format!("{place} does not exist; hint: remove it"))).collect()
}

/// Checks one file; `code` is `text` without comments and strings.
pub(crate) fn check(file: &Path, text: &str, code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(head(file, text));
    let lines = text.lines().count();
    if lines > LINES_MAX {
        found.push(Finding::new(
            file,
            lines,
            format!("{lines} lines, {LINES_MAX} allowed; hint: split it by subject"),
        ));
    }
    let named =
        |part: &std::ffi::OsStr| NAMELESS.iter().any(|n| part == *n || part == format!("{n}.rs").as_str());
    if file.components().any(|c| named(c.as_os_str())) {
        found.push(Finding::new(
            file,
            1,
            "a name without a subject; hint: name the file after what it is about",
        ));
    }
    found.extend(danger(file, code));
    found.extend(wide_lines(file, text));
    for (line, what) in idioms::find(code) {
        found.push(Finding::new(file, line, what));
    }
    for (number, line) in code.lines().enumerate() {
        if line.contains("thread::sleep") && !within(file, &SLEEPERS) {
            let what = "thread::sleep; hint: wait for the event itself, with a deadline";
            found.push(Finding::new(file, number + 1, what));
        }
    }
    let unit_tests = file.file_name().is_some_and(|name| name == "tests.rs");
    if !within(file, &SYSTEMS) && !unit_tests {
        // Unit tests are at the end of their file; like any test they may differ by system.
        let code = code.split("\nmod tests {").next().unwrap_or_default();
        found.extend(systems(file, code));
        found.extend(crates(file, code));
    }
    found
}

/// Only the directories of the table use crates that make system calls, and plain data uses std alone.
fn crates(file: &Path, code: &str) -> Vec<Finding> {
    let others = if within(file, &STD_ONLY) { &OTHER_CRATES[..] } else { &[] };
    let is_denied = |name: &str| OS_CRATES.contains(&name) || others.contains(&name);
    let mentions = if within(file, &["crates/*/src/"]) { code::scan(code).mentions } else { Vec::new() };
    let denied = mentions.iter().filter(|mention| is_denied(&mention.path[0]));
    denied
        .map(|Mention { line, path, .. }| {
            let what =
                format!("uses the crate `{}`; hint: call a function of a lower layer that does it", path[0]);
            Finding::new(file, *line, what)
        })
        .collect()
}

/// Returns the lines that are too wide. rustfmt breaks code; `cargo +nightly fmt -- --config
/// wrap_comments=true,comment_width=100` wraps comments, indented ones at a few columns more.
fn wide_lines(file: &Path, text: &str) -> Vec<Finding> {
    let counted = text.lines().map(|line| line.chars().count()).enumerate();
    let wide = counted.filter(|(_, columns)| *columns > COLUMNS_MAX);
    wide.map(|(number, columns)| {
        let what = format!("{columns} columns, {COLUMNS_MAX} allowed; hint: break the line");
        Finding::new(file, number + 1, what)
    })
    .collect()
}

/// The file begins with a sentence about its purpose.
fn head(file: &Path, text: &str) -> Option<Finding> {
    let doc = text.lines().map_while(|l| l.strip_prefix("//!")).map(str::trim);
    let first: Vec<&str> = doc.take_while(|l| !l.is_empty()).collect();
    let Some(last) = first.last() else {
        return Some(Finding::new(
            file,
            1,
            "no `//!` sentence at the top; hint: describe what the file is for",
        ));
    };
    let ends = last.trim_end_matches(['*', '`', '_', ')']).ends_with(['.', ':', '?', '!']);
    (!ends)
        .then(|| Finding::new(file, first.len(), "the head is not a sentence; hint: end it with a full stop"))
}

/// `unsafe` only in the directories of the table, and announced at the top of the file.
fn danger(file: &Path, code: &str) -> Option<Finding> {
    let used = code.lines().position(|l| l.contains("unsafe") && words(l).any(|w| w == "unsafe"));
    let announced = code.lines().position(|l| l.starts_with("#![") && l.contains("expect(unsafe_code"));
    match (used, announced) {
        (Some(line), _) if !within(file, &UNSAFE) => Some(Finding::new(
            file,
            line + 1,
            format!("unsafe code; hint: call a safe function in {}", UNSAFE[0]),
        )),
        (Some(line), None) => {
            let what =
                "unsafe code; hint: `#![expect(unsafe_code, reason = \"...\")]` below the head of the file";
            Some(Finding::new(file, line + 1, what))
        }
        _ => None,
    }
}

/// Finds `cfg` of a system in attributes, in `cfg!` and in `cfg_attr`.
fn systems(file: &Path, code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut rest = 0;
    while let Some(at) = code[rest..].find("cfg").map(|i| i + rest) {
        rest = at + 3;
        let begins = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let tail = code[rest..].trim_start_matches("_attr").trim_start_matches('!');
        let Some(inner) = tail.strip_prefix('(').map(balanced) else { continue };
        if !begins {
            continue;
        }
        let asks = |w: &str| {
            matches!(
                w,
                "unix" | "windows" | "wasm" | "target_os" | "target_family" | "target_vendor" | "target_env"
            )
        };
        if words(inner).any(asks) && !words(inner).any(|w| w == "test") {
            let what = format!(
                "cfg({}) outside sys, os and tests; hint: decide it in sys and give it a name",
                inner.trim()
            );
            found.push(Finding::new(file, code[..at].lines().count().max(1), what));
        }
    }
    found
}

/// Returns the text up to the bracket that closes it.
fn balanced(text: &str) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..at];
        }
    }
    text
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(file: &str, text: &str) -> Vec<String> {
        let code = code::split(text).code;
        check(Path::new(file), text, &code).into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect()
    }

    #[test]
    fn a_clean_file_is_clean() {
        assert_eq!(
            findings("crates/minder/src/a.rs", "//! Says what.\n\n// unsafe, cfg(unix)\nfn f() {}\n"),
            [""; 0]
        );
    }

    #[test]
    fn each_rule_bites() {
        let one = |file, text, part: &str| {
            let found = findings(file, text);
            assert!(found.len() == 1 && found[0].contains(part), "{text:?}: {found:?}");
        };
        one("crates/minder/src/a.rs", "fn f() {}\n", "no `//!`");
        one("crates/minder/src/a.rs", "//! no sentence\n", "full stop");
        one("crates/minder/src/utils.rs", "//! A.\n", "subject");
        one("crates/minder/src/a.rs", "//! A.\nfn f() { unsafe {} }\n", "2: unsafe");
        one("crates/minder/src/sys/a.rs", "//! A.\nfn f() { unsafe {} }\n", "#![expect");
        one("crates/minder/src/a.rs", "//! A.\n#[cfg(any(unix, loom))]\nfn f() {}\n", "2: cfg");
        one("crates/minder/src/a.rs", "//! A.\nfn f() { if cfg!(windows) {} }\n", "2: cfg");
        one("crates/minder/src/a.rs", "//! A.\nuse std::thread::sleep;\n", "2: thread::sleep");
        one("crates/minder/src/a.rs", "//! A.\nuse {libc::c_int, std::io};\n", "2: uses the crate `libc`");
        one("crates/minder/src/random.rs", "//! A.\nfn f() { memchr::f() }\n", "2: uses the crate `memchr`");
        assert_eq!(findings("crates/minder/src/a.rs", "//! A.\nuse memchr::{memchr, libc};\n"), [""; 0]);
        assert_eq!(findings("crates/minder/src/sys/a.rs", "//! A.\nuse libc::c_int;\n"), [""; 0]);
        one("crates/minder/src/a.rs", "//! A.\nlet (a, b) = (c, d);\n", "2: `let (a, b)");
        let wide = format!("//! A.\n// {}\n", "ä".repeat(COLUMNS_MAX - 2));
        one("crates/minder/src/a.rs", &wide, "2: 111 columns");
        assert_eq!(findings("crates/minder/src/a.rs", &wide.replacen('ä', "", 1)), [""; 0]);
        one("crates/minder/src/a.rs", &format!("//! A.\n{}", "\n".repeat(LINES_MAX)), "lines");
        assert_eq!(findings("tests/it/a.rs", "//! A.\n#[cfg(unix)]\nfn f() {}\n"), [""; 0]);
        assert_eq!(
            findings("crates/minder/src/a.rs", "//! A.\nmod tests {\n    #[cfg(unix)]\n    fn f() {}\n}\n"),
            [""; 0]
        );
    }
}
