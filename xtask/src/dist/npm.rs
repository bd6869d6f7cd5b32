//! The packages for npm: a script, and the program of each platform in a package that only it installs.

use super::program::{self, LINUX, LINUX_ARM, Target, WINDOWS};
use super::release::{self, Release, write};
use super::stage::copy;
use super::{archive, fill};
use crate::{install, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The packages in the repository.
const HOME: &str = "packaging/npm";
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
const NODE: [install::Program; 2] =
    [install::Program { name: "node", package: "nodejs" }, install::Program { name: "npm", package: "npm" }];

/// A platform, as node names it.
struct Platform {
    os: &'static str,
    cpu: &'static str,
    target: &'static Target,
}

impl Platform {
    fn package(&self) -> String {
        format!("minder-{}-{}", self.os, self.cpu)
    }
}

const LINUX_X64: Platform = Platform { os: "linux", cpu: "x64", target: &LINUX };
const LINUX_ARM64: Platform = Platform { os: "linux", cpu: "arm64", target: &LINUX_ARM };
const WINDOWS_X64: Platform = Platform { os: "win32", cpu: "x64", target: &WINDOWS };
const PLATFORMS: [&Platform; 3] = [&LINUX_X64, &LINUX_ARM64, &WINDOWS_X64];

/// Makes the package of the script, and that of Linux on x86-64.
pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let dir = directory(release, "minder")?;
    std::fs::create_dir_all(dir.join("bin"))?;
    for name in ["README.md", "bin/minder.js"] {
        copy(&release.source.join(HOME).join("minder").join(name), &dir.join(name))?;
    }
    let versions: Vec<String> = PLATFORMS
        .iter()
        .map(|platform| format!("    \"{}\": \"{}\"", platform.package(), release.version))
        .collect();
    let platforms = format!("{{\n{}\n  }}", versions.join(",\n"));
    package_json(release, "minder/package.json", &dir, vec![("PLATFORMS", platforms)])?;
    Ok(vec![pack(release, &dir, "minder")?, of_platform(release, &LINUX_X64)?])
}

pub(super) fn linux_arm(release: &Release) -> Result<Vec<PathBuf>> {
    Ok(vec![of_platform(release, &LINUX_ARM64)?])
}

pub(super) fn windows(release: &Release) -> Result<Vec<PathBuf>> {
    Ok(vec![of_platform(release, &WINDOWS_X64)?])
}

/// Makes the package with the program of a platform.
fn of_platform(release: &Release, platform: &Platform) -> Result<PathBuf> {
    let name = platform.package();
    let program = program::build(release, platform.target)?;
    let dir = directory(release, &name)?;
    std::fs::create_dir_all(dir.join("bin"))?;
    copy(&program.path, &dir.join("bin").join(platform.target.program))?;
    let text = format!("# {name}\n\nThe program of the package `minder` for this platform.\n");
    write(&dir.join("README.md"), &text)?;
    let values =
        vec![("PACKAGE", name.clone()), ("OS", platform.os.to_owned()), ("CPU", platform.cpu.to_owned())];
    package_json(release, "platform.json", &dir, values)?;
    pack(release, &dir, &name)
}

/// Returns an empty directory for the files of a package.
fn directory(release: &Release, package: &str) -> Result<PathBuf> {
    let dir = release.build.join("npm").join(package);
    release::empty(&dir)?;
    Ok(dir)
}

/// Writes `package.json` from a template, with these values besides those of the release.
fn package_json(
    release: &Release,
    template: &str,
    dir: &Path,
    mut values: Vec<(&'static str, String)>,
) -> Result<()> {
    values.extend(fill::values(release)?);
    fill::file(release, &format!("{HOME}/{template}"), &dir.join("package.json"), &values)
}

/// Writes the archive, with the licences. `npm pack` compresses with the zlib of its node; this archive
/// has the same files.
fn pack(release: &Release, dir: &Path, name: &str) -> Result<PathBuf> {
    for licence in LICENCES {
        copy(&release.source.join(licence), &dir.join(licence))?;
    }
    let made = archive::tar_gz(release, dir, "package", &format!("npm-{name}-{}", release.version))?;
    let file = release.out.join(format!("{name}-{}.tgz", release.version));
    std::fs::rename(&made, &file).with_context(|| format!("cannot rename {}", made.display()))?;
    Ok(file)
}

/// Installs the packages into an empty directory, runs them there and removes them.
pub(super) fn check(release: &Release, files: &[PathBuf]) -> Result<()> {
    install::programs(&NODE).map_err(anyhow::Error::msg)?;
    let trial = release.source.join(HOME).join("trial.mjs");
    run::run(run::bounded("300", "node").arg(trial).args(files))
}
