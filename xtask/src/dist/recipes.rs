//! Files with which other systems make a package or an image: the templates of `packaging`, with the version,
//! the names of files and their checksums.

use super::program::{LINUX, LINUX_ARM, Target, WINDOWS};
use super::release::{self, Release};
use super::{archive, fill, stage};
use crate::run;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The directories of `packaging` that are handed out.
const DIRECTORIES: [&str; 5] = ["homebrew", "aur", "winget", "nix", "container"];

/// An archive of the release: the part of the names that stand for it, its target, and what makes it.
struct Archive {
    key: &'static str,
    /// `None` for the sources.
    target: Option<&'static Target>,
    make: super::Make,
}

const ARCHIVES: [Archive; 4] = [
    Archive { key: "SOURCE", target: None, make: archive::source },
    Archive { key: "LINUX", target: Some(&LINUX), make: archive::linux },
    Archive { key: "LINUX_ARM", target: Some(&LINUX_ARM), make: archive::linux_arm },
    Archive { key: "WINDOWS", target: Some(&WINDOWS), make: archive::windows },
];

/// Writes an archive with the filled files. An archive of the release that is absent is made.
pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    let mut values: Vec<(String, String)> =
        fill::values(release)?.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    for Archive { key, target, make } in &ARCHIVES {
        let dir = archive::name(&release.version, *target);
        let name = format!("{dir}.{}", if *key == "WINDOWS" { "zip" } else { "tar.gz" });
        let path = release.out.join(&name);
        if !path.exists() {
            made.extend(make(release)?);
        }
        let sum = run::read(run::command("sha256sum").arg("--").arg(&path))?;
        let sum = sum.split_whitespace().next().context("sha256sum prints nothing")?;
        values.push((format!("SHA256_{key}"), sum.to_owned()));
        values.push((format!("DIR_{key}"), dir));
        values.push((format!("FILE_{key}"), name));
    }
    let values: Vec<(&str, String)> = values.iter().map(|(name, value)| (&**name, value.clone())).collect();
    let top = release.build.join("recipes");
    release::remove(&top)?;
    for dir in DIRECTORIES {
        let from = format!("packaging/{dir}");
        for name in names(&release.source.join(&from))? {
            fill::file(release, &format!("{from}/{name}"), &top.join(dir).join(&name), &values)?;
        }
    }
    // Nix reads the checksums of the dependencies from it.
    stage::copy(&release.source.join("Cargo.lock"), &top.join("nix/Cargo.lock"))?;
    stage::copy(&release.source.join("packaging/README.md"), &top.join("README.md"))?;
    let name = format!("minder-{}-recipes", release.version);
    made.push(archive::tar_gz(release, &top, &name, &name)?);
    Ok(made)
}

/// Returns the names of the files in a directory.
fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}
