//! A release: its version, its time, its sources, and the directory of its files.

use super::program::Program;
use crate::{run, tree, version};
use anyhow::{Context, Result, bail, ensure};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What all parts of a release have in common.
pub(super) struct Release {
    pub(super) version: String,
    pub(super) commit: String,
    /// The time of the commit, in seconds since 1970: that of every file in an archive.
    pub(super) epoch: String,
    /// The sources of the commit, as `git archive` writes them.
    pub(super) source: PathBuf,
    /// Where cargo builds.
    pub(super) build: PathBuf,
    /// Where the files of the release are.
    pub(super) out: PathBuf,
    /// The programs that were built, by their target.
    pub(super) programs: RefCell<BTreeMap<&'static str, Program>>,
}

impl Release {
    /// Writes the sources of the last commit to a directory, and empties that of the files.
    pub(super) fn prepare() -> Result<Self> {
        let changed = run::read(run::command("git").args(["status", "--porcelain"]))?;
        if let Some(first) = changed.lines().next() {
            bail!("the tree has changes that no commit has, such as `{}`; hint: commit them", first.trim());
        }
        let home = tree::target_dir().join("packages");
        let head = run::read(run::command("git").args(["log", "-1", "--format=%H %ct"]))?;
        let (commit, epoch) = head.trim().split_once(' ').context("git names no commit")?;
        let manifest = std::fs::read_to_string(tree::root().join("Cargo.toml"))?;
        let release = Self {
            version: version::of_workspace(&manifest)?.to_owned(),
            commit: commit.to_owned(),
            epoch: epoch.to_owned(),
            source: home.join("source"),
            build: home.join("build"),
            out: home.join("files"),
            programs: RefCell::default(),
        };
        empty(&release.source)?;
        empty(&release.out)?;
        let archive = home.join("source.tar");
        let mut git = run::command("git");
        run::run(git.args(["archive", "--format=tar", "HEAD", "--output"]).arg(&archive))?;
        run::run(run::command("tar").arg("-xf").arg(&archive).arg("-C").arg(&release.source))?;
        std::fs::remove_file(archive)?;
        Ok(release)
    }

    /// Returns a command that runs in the sources, and whose times are that of the release.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = run::command(program);
        self.enter(&mut command);
        command
    }

    /// Makes a command run in the sources, and use the time of the release.
    pub(super) fn enter(&self, command: &mut Command) {
        command.current_dir(&self.source).env("SOURCE_DATE_EPOCH", &self.epoch).env("TZ", "UTC");
        command.env("LC_ALL", "C.UTF-8");
    }

    /// Writes the checksums of files of the release, in the form of `sha256sum`.
    pub(super) fn write_sums(&self, files: &[PathBuf]) -> Result<PathBuf> {
        let mut names: Vec<&str> =
            files.iter().filter_map(|file| file.file_name().and_then(|name| name.to_str())).collect();
        names.sort_unstable();
        let sums = self.out.join("SHA256SUMS");
        run::run_to_file(run::command("sha256sum").current_dir(&self.out).arg("--").args(names), &sums)?;
        Ok(sums)
    }
}

/// Writes what CHANGELOG.md says about the version, or about what is unreleased.
pub(super) fn notes(release: &Release) -> Result<Vec<PathBuf>> {
    let changelog = std::fs::read_to_string(release.source.join("CHANGELOG.md"))?;
    let section = section(&changelog, &release.version).or_else(|| section(&changelog, "Unreleased"));
    let section = section.context("CHANGELOG.md has no section for the version")?;
    ensure!(!section.trim().is_empty(), "the section of CHANGELOG.md is empty");
    let path = release.out.join(format!("minder-{}-notes.md", release.version));
    write(&path, &format!("{}\n", section.trim()))?;
    Ok(vec![path])
}

/// Returns the text below the heading `## NAME`, or `## NAME (DATE)`.
fn section<'a>(changelog: &'a str, name: &str) -> Option<&'a str> {
    let heading = format!("\n## {name}");
    let (_, rest) = changelog.split_once(&heading)?;
    let (first, text) = rest.split_once('\n')?;
    let is_name = first.is_empty() || first.starts_with(' ');
    is_name.then(|| text.find("\n## ").map_or(text, |end| &text[..end]))
}

/// Removes a directory, if it exists.
pub(super) fn remove(dir: &Path) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    Ok(())
}

/// Makes an empty directory.
pub(super) fn empty(dir: &Path) -> Result<()> {
    remove(dir)?;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

/// Writes a file, and names it in an error.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_ends_before_the_next_version() {
        let text =
            "# Changelog\n\n## Unreleased\n\nnew\n\n### A\n\n## 0.2.1 (2026-11-28)\n\nold\n\n## 0.2.10\n";
        assert_eq!(section(text, "Unreleased"), Some("\nnew\n\n### A\n"));
        assert_eq!(section(text, "0.2.1"), Some("\nold\n"));
        assert_eq!(section(text, "0.2"), None);
    }
}
