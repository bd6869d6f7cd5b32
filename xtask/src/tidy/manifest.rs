//! Rules about `Cargo.toml`: every dependency has its reason, and packages depend downwards only.

use super::Finding;
use std::path::Path;

/// The packages of this workspace on which a package may depend; one that is not named may depend
/// on any.
const OURS: [(&str, &[&str]); 17] = [
    ("xtask", &[]),
    ("xtask/c-header", &[]),
    ("crates/minder-os", &[]),
    ("crates/minder-cells", &[]),
    ("crates/minder-template", &["minder-os"]),
    ("crates/minder-record", &["minder-os"]),
    ("crates/minder", &["minder-os"]),
    ("crates/minder-cluster", &["minder-os", "minder-record", "minder"]),
    ("crates/minder-guardian", &["minder"]),
    ("crates/minder-tokio", &["minder"]),
    ("bindings/c", &["minder", "minder-cells"]),
    ("bindings/emacs", &["minder"]),
    ("crates/minder-runner", &["minder-os", "minder-template", "minder-record", "minder-cluster", "minder"]),
    ("crates/minder-bench", &["minder-os", "minder-cells", "minder"]),
    ("crates/minder-ui", &["minder-os", "minder-record", "minder", "minder-runner"]),
    (
        "crates/minder-lab",
        &["minder-os", "minder-record", "minder", "minder-runner", "minder-bench", "minder-ui"],
    ),
    (
        "crates/minder-cli",
        &[
            "minder-os",
            "minder-template",
            "minder-record",
            "minder-cluster",
            "minder",
            "minder-runner",
            "minder-ui",
            "minder-lab",
        ],
    ),
];

/// The packages of this workspace that the tests and examples of a package may use as well.
const OURS_IN_TESTS: [(&str, &[&str]); 1] = [("crates/minder-cells", &["minder"])];

/// A line of a table of dependencies.
struct Dependency<'a> {
    line: usize,
    is_for_tests: bool,
    name: &'a str,
    text: &'a str,
    above: &'a str,
}

/// Checks one manifest.
pub(crate) fn check(file: &Path, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let place = file.parent().map(|p| p.display().to_string().replace('\\', "/")).unwrap_or_default();
    let of = |table: &[(&str, &'static [&'static str])]| {
        table.iter().find(|(package, _)| *package == place).map(|(_, may)| *may)
    };
    let ours = of(&OURS);
    let in_tests = of(&OURS_IN_TESTS).unwrap_or_default();
    for dep in dependencies(text) {
        let inherited = dep.text.contains("workspace = true");
        let ours_here = dep.text.contains("path = ");
        let reasoned = dep.text.contains('#') || dep.above.trim_start().starts_with('#');
        if !inherited && !ours_here && !reasoned {
            let what = format!("no reason for `{}`; hint: add it to the line, after a `#`", dep.name);
            found.push(Finding::new(file, dep.line, what));
        }
        let is_ours = dep.name == "minder" || dep.name.starts_with("minder-");
        let is_allowed = ours.is_none_or(|may| may.contains(&dep.name))
            || (dep.is_for_tests && in_tests.contains(&dep.name));
        if is_ours && !is_allowed {
            let what = format!(
                "{place} may not depend on `{}`; hint: move what needs it to a higher layer",
                dep.name
            );
            found.push(Finding::new(file, dep.line, what));
        }
    }
    found
}

fn dependencies(text: &str) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    let mut inside = false;
    let mut is_for_tests = false;
    let mut above = "";
    let mut open = 0_i32;
    for (number, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default().trim();
        if open == 0 && code.starts_with('[') {
            inside = code.trim_end_matches(']').ends_with("dependencies");
            is_for_tests = code.trim_end_matches(']').ends_with("dev-dependencies");
        } else if open == 0 && inside && !code.is_empty() {
            let name = code.split(['.', '=', ' ']).next().unwrap_or_default();
            found.push(Dependency { line: number + 1, is_for_tests, name, text: line, above });
        }
        let count = |c: char| i32::try_from(code.matches(c).count()).unwrap_or(0);
        if inside || open > 0 {
            open += if code.starts_with('[') && open == 0 {
                0
            } else {
                count('[') + count('{') - count(']') - count('}')
            };
        }
        above = line;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(file: &str, text: &str) -> Vec<usize> {
        check(Path::new(file), text).iter().map(|f| f.line).collect()
    }

    #[test]
    fn a_dependency_wants_a_reason() {
        let text = "[package]\nname = \"a\"\n[dependencies]\na = \"1\"\nb = \"1\" # for this\n# for that\n\
                    c = \"1\"\nd.workspace = true\n[target.'cfg(x)'.dependencies]\n\
                    e = { workspace = true, features = [\n    \"x\",\n] }\nf = \"1\"\n";
        assert_eq!(lines("Cargo.toml", text), [4, 13]);
    }

    #[test]
    fn packages_depend_downwards() {
        assert_eq!(lines("xtask/Cargo.toml", "[dependencies]\nminder.workspace = true\n"), [2]);
        assert_eq!(
            lines("crates/minder-cli/Cargo.toml", "[dependencies]\nminder.workspace = true\n"),
            [] as [usize; 0]
        );
        let tables = "[dependencies]\nminder.workspace = true\n[dev-dependencies]\nminder.workspace = true\n";
        assert_eq!(lines("crates/minder-cells/Cargo.toml", tables), [2]);
        assert_eq!(lines("crates/minder-record/Cargo.toml", tables), [2, 4]);
    }
}
