//! The licences of what is linked into the program, as their authors wrote them.

use super::release::{Release, write};
use crate::{install, run};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The beginnings of names of files with a licence, in capitals.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// What no package of cargo is.
const RUNTIME: &str = "\
The Rust standard library: MIT OR Apache-2.0, with the texts below.

On Linux the program contains the GNU C Library (glibc), under the GNU Lesser General Public License,
version 2.1 or later: https://www.gnu.org/licenses/old-licenses/lgpl-2.1.html. It is that of Debian 12,
whose sources are the package `glibc` of https://sources.debian.org. The sources of the program are in the
same release: `cargo xtask dist linux` links them with another version of glibc, and `cargo build --release`
with the one of your system.

The program contains SQLite, which is in the public domain: https://www.sqlite.org/copyright.html.
";

/// Writes the licences of all packages that the program for this target is built from.
pub(super) fn write_texts(release: &Release, triple: &str, path: &Path) -> Result<()> {
    let mut tree = run::cargo();
    release.enter(&mut tree);
    tree.args(["tree", "--locked", "--package", "minder-cli", "--edges", "normal", "--target", triple]);
    let listed = run::read(tree.args(["--prefix", "none", "--format", "{p}|{l}"]))?;
    // Packages with the same text stand together.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut packages: Vec<&str> = listed.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    packages.sort_unstable();
    packages.dedup();
    for package in packages {
        let (name, license) = package.split_once('|').context("cargo tree prints two columns")?;
        let mut words = name.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            bail!("unknown line `{package}`")
        };
        // Our own packages: their licences are beside the program.
        if words.next().is_some_and(|path| path.starts_with("(/")) {
            continue;
        }
        let dir = directory(&format!("{name}-{}", version.trim_start_matches('v')))?;
        let text = texts_in(&dir)?;
        texts.entry(text).or_default().push(format!("{name} {version} ({license})"));
    }
    let mut all = format!("What the program minder contains, and under which licences.\n\n{RUNTIME}");
    for (text, packages) in &texts {
        let line = "-".repeat(78);
        let _ = write!(all, "\n{line}\n{}\n{line}\n\n{}\n", packages.join("\n"), text.trim());
    }
    write(path, &all)
}

/// Returns the directory of the sources of a package.
fn directory(name: &str) -> Result<PathBuf> {
    let registries = install::cargo_home().context("no home directory")?.join("registry/src");
    let dirs = std::fs::read_dir(&registries)
        .with_context(|| format!("cannot list {}", registries.display()))?
        .flatten();
    let found = dirs.map(|registry| registry.path().join(name)).find(|dir| dir.is_dir());
    found.with_context(|| format!("the sources of {name} are not below {}", registries.display()))
}

/// Returns the texts of the files with licences in a directory.
fn texts_in(dir: &Path) -> Result<String> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .with_context(|| format!("cannot list {}", dir.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && is_license(path))
        .collect();
    files.sort();
    let mut text = String::new();
    for file in &files {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        text += &String::from_utf8_lossy(&bytes).replace('\r', "");
        text.push('\n');
    }
    if text.trim().is_empty() {
        text = "The package contains no text of its licence.".to_owned();
    }
    Ok(text)
}

fn is_license(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    NAMES.iter().any(|begin| name.starts_with(begin))
}
