//! The tree `usr` of a package for Linux, and the manifest of the tools that make packages from it.

use super::program::Target;
use super::release::{self, Release, write};
use super::{fill, stage};
use crate::run;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// The names under which minder has the command line of another tool.
pub(super) const LINKS: [&str; 3] = ["parallel", "sem", "xargs"];

/// The bytes that a package may take when it is installed.
const BYTES_MAX: u64 = 12 << 20;

/// The licences of what the program contains, in the directory of the stage.
const THIRD_PARTY: &str = "LICENSES-THIRD-PARTY.txt";

/// What differs between the two kinds of packages.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The directory of zsh's completions, below `usr/share/zsh`.
    zsh: &'static str,
    /// A file of `packaging/linux`, which says how to use the links.
    readme: &'static str,
}

pub(super) const DEB: Kind = Kind { name: "deb", zsh: "vendor-completions", readme: "README.Debian" };
pub(super) const RPM: Kind = Kind { name: "rpm", zsh: "site-functions", readme: "README.Fedora" };

/// Builds the program, and returns a directory with its tree and the file that the tool of this kind reads.
pub(super) fn make(release: &Release, target: &Target, kind: &Kind) -> Result<PathBuf> {
    let stage = stage::make(release, target)?;
    let top = stage.dir.with_file_name(kind.name);
    release::remove(&top)?;
    let share = top.join("usr/share");
    let doc = share.join("doc/minder");
    place(&stage.dir.join("minder"), &top.join("usr/bin/minder"))?;
    for (from, to) in [("man/man1", share.join("man/man1")), ("doc", doc.clone())] {
        for file in files(&stage.dir.join(from))? {
            place(&file, &to.join(file.file_name().context("a file has a name")?))?;
        }
    }
    for (from, to) in [
        ("README.md", doc.join("README.md")),
        ("CHANGELOG.md", doc.join("changelog")),
        ("completions/bash/minder", share.join("bash-completion/completions/minder")),
        ("completions/zsh/_minder", share.join("zsh").join(kind.zsh).join("_minder")),
        ("completions/fish/minder.fish", share.join("fish/vendor_completions.d/minder.fish")),
    ] {
        place(&stage.dir.join(from), &to)?;
    }
    compress(release, &files(&share.join("man/man1"))?)?;
    compress(release, &[doc.join("changelog")])?;
    place(&release.source.join("packaging/linux").join(kind.readme), &doc.join(kind.readme))?;
    let values = fill::values(release)?;
    if kind.name == DEB.name {
        debian(release, &stage.dir, &top, values)?;
    } else {
        fill::file(release, "packaging/linux/minder.spec", &top.join("minder.spec"), &values)?;
        fedora(&stage.dir, &top)?;
    }
    let bytes = run::read(run::command("du").args(["-s", "--apparent-size", "-B1"]).arg(top.join("usr")))?;
    let bytes: u64 = bytes.split_whitespace().next().unwrap_or_default().parse()?;
    ensure!(bytes <= BYTES_MAX, "the package takes {bytes} bytes, {BYTES_MAX} are allowed");
    Ok(top)
}

/// Writes what a package of Debian has besides.
fn debian(
    release: &Release,
    stage: &Path,
    top: &Path,
    mut values: Vec<(&'static str, String)>,
) -> Result<()> {
    // Cargo wants a source file.
    std::fs::create_dir_all(top.join("src"))?;
    write(&top.join("src/lib.rs"), "")?;
    let others = top.join("usr/share/doc/minder").join(THIRD_PARTY);
    place(&stage.join(THIRD_PARTY), &others)?;
    compress(release, &[others])?;
    let licence = std::fs::read_to_string(release.source.join("LICENSE-MIT"))?;
    let paragraph = |line: &str| if line.is_empty() { " .".to_owned() } else { format!(" {line}") };
    let licence: Vec<String> = licence.lines().skip(2).map(paragraph).collect();
    values.push(("MIT", licence.join("\n")));
    let at = format!("--date=@{}", release.epoch);
    values.push(("DATE", run::read(release.command("date").args(["-R", &at]))?.trim().to_owned()));
    for (from, to) in [
        ("copyright", "usr/share/doc/minder/copyright"),
        ("lintian-overrides", "usr/share/lintian/overrides/minder"),
        ("changelog", "changelog"),
        ("package.toml", "Cargo.toml"),
    ] {
        fill::file(release, &format!("packaging/linux/{from}"), &top.join(to), &values)?;
    }
    Ok(())
}

/// Writes what a package of Fedora has besides.
fn fedora(stage: &Path, top: &Path) -> Result<()> {
    for name in ["LICENSE-APACHE", "LICENSE-MIT", THIRD_PARTY] {
        place(&stage.join(name), &top.join("usr/share/licenses/minder").join(name))?;
    }
    let dir = top.join("usr/libexec/minder/bin");
    std::fs::create_dir_all(&dir)?;
    for name in LINKS {
        let mut link = run::command("ln");
        run::run(link.args(["-s", "../../../bin/minder"]).arg(dir.join(name)))?;
    }
    Ok(())
}

/// Copies a file, and makes its directory.
fn place(from: &Path, to: &Path) -> Result<()> {
    let dir = to.parent().context("a file is in a directory")?;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    stage::copy(from, to)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn compress(release: &Release, files: &[PathBuf]) -> Result<()> {
    run::run(release.command("gzip").args(["--best", "--no-name", "--force", "--"]).args(files))
}
