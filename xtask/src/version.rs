//! The version: every file that states it, one command that sets it, and a rule that all agree.

use crate::tree;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// A statement of the version: a file, and the text on both sides of the version.
struct Place {
    file: &'static str,
    before: &'static str,
    after: &'static str,
}

const PLACES: [Place; 7] = [
    Place { file: "Cargo.toml", before: "\nversion = \"", after: "\"" },
    Place { file: "Cargo.toml", before: "\", version = \"", after: "\" }" },
    Place { file: "Cargo.toml", before: "\", version = \"=", after: "\" }" },
    Place { file: "bindings/ruby/lib/minder/version.rb", before: "VERSION = \"", after: "\"" },
    Place { file: "bindings/ruby/README.md", before: "target/ruby/minder-", after: ".gem" },
    Place { file: "bindings/emacs/minder.el", before: "\n;; Version: ", after: "\n" },
    Place { file: "bindings/emacs/README.md", before: "target/emacs/minder-", after: ".tar" },
];

/// Returns the version that all packages of the workspace have, from the manifest of the workspace.
pub(crate) fn of_workspace(manifest: &str) -> Result<&str> {
    let section = manifest.split("[workspace.package]").nth(1).unwrap_or_default();
    let line = section.lines().find_map(|line| line.strip_prefix("version = \""));
    line.and_then(|rest| rest.split('"').next()).context("Cargo.toml has no version in [workspace.package]")
}

/// Calls `read` with each file that states the version. Returns a line for each place that states another one
/// or none.
pub(crate) fn differing(read: impl Fn(&Path) -> Option<String>) -> Vec<(&'static Path, String)> {
    let manifest = read(Path::new("Cargo.toml")).unwrap_or_default();
    let version = of_workspace(&manifest).unwrap_or_default();
    let mut found = Vec::new();
    for place in &PLACES {
        let text = read(Path::new(place.file)).unwrap_or_default();
        let stated: Vec<&str> = stated(&text, place).collect();
        let why = match stated.iter().find(|other| **other != version) {
            Some(other) => format!("states version `{other}`, Cargo.toml `{version}`"),
            None if stated.is_empty() => format!("states no version after `{}`", place.before.trim()),
            None => continue,
        };
        found.push((Path::new(place.file), format!("{why}; hint: cargo xtask version {version}")));
    }
    found
}

/// Returns the versions that stand in this place.
fn stated<'a>(text: &'a str, place: &Place) -> impl Iterator<Item = &'a str> {
    let after = place.after;
    text.split(place.before)
        .skip(1)
        .filter_map(move |rest| rest.split_once(after).map(|(version, _)| version))
        .filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

/// `cargo xtask version [VERSION]`: prints the version, or writes another one wherever it stands, and gives
/// what is unreleased in the changelog its heading.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let manifest = std::fs::read_to_string(tree::root().join("Cargo.toml"))?;
    let old = of_workspace(&manifest)?;
    let [new] = args else {
        ensure!(args.is_empty(), "usage: cargo xtask version [VERSION]");
        println!("{old}");
        return Ok(());
    };
    check_form(new)?;
    for place in &PLACES {
        let path = tree::root().join(place.file);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let written = with_version(&text, place, new);
        std::fs::write(&path, written).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", place.file);
    }
    if new != old {
        let path = tree::root().join("CHANGELOG.md");
        std::fs::write(&path, released(&std::fs::read_to_string(&path)?, new)?)?;
        println!("CHANGELOG.md: add the date of the release to its heading");
    }
    Ok(())
}

fn check_form(version: &str) -> Result<()> {
    if let Some((number, _)) = version.split_once('-')
        && check_form(number).is_ok()
    {
        bail!(
            "`{version}` is a pre-release, which Debian, RPM, Python, Ruby and Arch each write differently; \
             hint: release {number}"
        );
    }
    let parts: Vec<&str> = version.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() != 3 || !parts.iter().all(is_number) {
        bail!("`{version}` is not a version such as 0.2.0");
    }
    Ok(())
}

/// Returns the text with another version wherever this place is.
fn with_version(text: &str, place: &Place, version: &str) -> String {
    let mut parts = text.split(place.before);
    let mut written = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        written += place.before;
        match rest.split_once(place.after) {
            Some((old, tail)) if old.starts_with(|c: char| c.is_ascii_digit()) => {
                written += &format!("{version}{}{tail}", place.after);
            }
            _ => written += rest,
        }
    }
    written
}

/// Moves what is unreleased below a heading of this version.
fn released(changelog: &str, version: &str) -> Result<String> {
    const UNRELEASED: &str = "\n## Unreleased\n";
    ensure!(changelog.contains(UNRELEASED), "CHANGELOG.md has no heading `## Unreleased`");
    Ok(changelog.replacen(UNRELEASED, &format!("{UNRELEASED}\n## {version}\n"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_that_of_the_workspace() {
        let manifest = "[workspace]\nversion = \"9\"\n\n[workspace.package]\nversion = \"0.2.1\" # why\n";
        assert_eq!(of_workspace(manifest).expect("find version"), "0.2.1");
        assert!(of_workspace("[workspace]\n").is_err());
    }

    #[test]
    fn every_place_is_found_and_changed() {
        let read = |path: &Path| std::fs::read_to_string(tree::root().join(path)).ok();
        assert_eq!(differing(read), []);
        for place in &PLACES {
            let text = read(Path::new(place.file)).expect("read file");
            let changed = with_version(&text, place, "12.34.56");
            assert_ne!(changed, text, "{}", place.before);
            assert!(stated(&changed, place).all(|version| version == "12.34.56"), "{}", place.before);
            let read =
                |path: &Path| if path == Path::new(place.file) { Some(changed.clone()) } else { read(path) };
            assert!(!differing(read).is_empty(), "{}", place.file);
        }
    }

    #[test]
    fn changelog_gets_a_heading_and_keeps_its_text() {
        let text = released("# Changelog\n\n## Unreleased\n\nnew\n", "0.2.0").expect("find heading");
        assert_eq!(text, "# Changelog\n\n## Unreleased\n\n## 0.2.0\n\nnew\n");
        assert!(released("# Changelog\n", "0.2.0").is_err());
        assert!(["1.2", "1.2.x", "1.2.3.4", "v1.2.3", "1..3"].iter().all(|text| check_form(text).is_err()));
        let refused = check_form("0.2.0-rc.1").expect_err("refuse a pre-release").to_string();
        assert!(refused.contains("pre-release") && refused.ends_with("release 0.2.0"), "{refused}");
    }
}
