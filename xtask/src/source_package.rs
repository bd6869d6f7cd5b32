//! Source packages of Debian: the tests of a program that is installed from its package.

use crate::{run, tree};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fetches a source package of the mirror, and unpacks what matches `patterns` into `target`, without the
/// first directory. Prefers a version that begins with `version` to newer ones.
pub(crate) fn fetch(package: &str, version: &str, patterns: &[&str], target: &Path) -> Result<()> {
    let apt = Sources::new(tree::target_dir().join("source-packages"))?;
    run::run(apt.command("apt-get").args(["-q", "update"]))?;
    let mut versions = versions(&run::read(apt.command("apt-cache").args(["showsrc", package]))?);
    versions.sort_by_key(|listed| !without_epoch(listed).starts_with(version));
    for listed in &versions {
        match apt.archive(&format!("{package}={listed}")) {
            Ok(archive) => return unpack(&archive, patterns, target),
            Err(why) => eprintln!("xtask: {why:#}"),
        }
    }
    bail!("no version of {package} can be fetched (listed: {})", versions.join(", "))
}

/// Returns a version without the number and colon that may be before it.
fn without_epoch(version: &str) -> &str {
    version.split_once(':').map_or(version, |(_, rest)| rest)
}

/// Unpacks what matches `patterns`.
fn unpack(archive: &Path, patterns: &[&str], target: &Path) -> Result<()> {
    let unpacked = target.with_extension("unpacked");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked)?;
    }
    std::fs::create_dir_all(&unpacked)?;
    let mut tar = run::command("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(&unpacked).args(["--strip-components=1", "--wildcards"]);
    run::run(tar.arg("--no-wildcards-match-slash").args(patterns))?;
    if target.exists() {
        std::fs::remove_dir_all(target)?;
    }
    std::fs::rename(unpacked, target)?;
    // It tells which version the directory has.
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    std::fs::write(target.join("ARCHIVE"), format!("{name}\n"))?;
    Ok(())
}

/// Returns the versions that `apt-cache showsrc` lists, each once.
fn versions(listed: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for version in listed.lines().filter_map(|line| line.strip_prefix("Version: ")) {
        if !found.iter().any(|known| known == version) {
            found.push(version.to_string());
        }
    }
    found
}

/// apt with a private list of the mirror's source packages. The settings of the system stay unchanged.
struct Sources {
    home: PathBuf,
    list: PathBuf,
}

impl Sources {
    fn new(home: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(home.join("lists/partial"))?;
        let modern = std::fs::read_to_string("/etc/apt/sources.list.d/debian.sources");
        // apt knows the format by the end of the name.
        let (name, text) = match modern {
            Ok(text) => ("source.sources", of_sources(&text)),
            Err(_) => {
                let text = std::fs::read_to_string("/etc/apt/sources.list").context("no mirror of Debian")?;
                ("source.list", of_list(&text))
            }
        };
        let list = home.join(name);
        std::fs::write(&list, text)?;
        Ok(Self { home, list })
    }

    /// Returns a command of apt that knows only these lists.
    fn command(&self, program: &str) -> Command {
        let lists = self.home.join("lists").display().to_string();
        let options = [
            format!("Dir::Etc::sourcelist={}", self.list.display()),
            "Dir::Etc::sourceparts=-".into(),
            format!("Dir::State::lists={lists}"),
            // The caches of the system describe other lists.
            "Dir::Cache::pkgcache=".into(),
            "Dir::Cache::srcpkgcache=".into(),
        ];
        let mut cmd = run::command(program);
        cmd.args(options.iter().flat_map(|option| ["-o", option]));
        cmd
    }

    /// Fetches the archive of the upstream sources.
    fn archive(&self, package: &str) -> Result<PathBuf> {
        let into = self.home.join("download");
        if into.exists() {
            std::fs::remove_dir_all(&into)?;
        }
        std::fs::create_dir_all(&into)?;
        let mut get = self.command("apt-get");
        get.args(["-q", "source", "--download-only", "--tar-only", package]).current_dir(&into);
        run::run(&mut get)?;
        for entry in std::fs::read_dir(&into)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".orig.tar.")) {
                return Ok(path);
            }
        }
        bail!("{package} has no upstream archive")
    }
}

/// Returns a list of packages in the format of deb822 as one of source packages.
fn of_sources(text: &str) -> String {
    let line =
        |line: &str| if line.starts_with("Types:") { "Types: deb-src" } else { line }.to_string() + "\n";
    text.lines().map(line).collect()
}

/// Returns the same of a list with a line for each suite.
fn of_list(text: &str) -> String {
    text.lines()
        .filter_map(|line| line.strip_prefix("deb "))
        .map(|rest| format!("deb-src {rest}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_packages_become_lists_of_sources() {
        assert_eq!(of_sources("Types: deb\nURIs: u\n"), "Types: deb-src\nURIs: u\n");
        assert_eq!(of_list("# x\ndeb u s main\ndeb-src u s main\n"), "deb-src u s main\n");
    }

    #[test]
    fn version_is_compared_without_its_epoch() {
        assert_eq!(without_epoch("1:28.2+1-15"), "28.2+1-15");
        assert_eq!(without_epoch("3.1.2-7"), "3.1.2-7");
    }

    #[test]
    fn each_listed_version_is_there_once() {
        let listed = "Package: a\nVersion: 2\n\nVersion: 1\nStandards-Version: 4\n\nVersion: 2\n";
        assert_eq!(versions(listed), ["2", "1"]);
    }
}
