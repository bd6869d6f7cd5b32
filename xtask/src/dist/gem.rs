//! The gems for Ruby: one with the Rust sources, and one with the library that is built from them.

use super::library;
use super::release::Release;
use super::stage::copy;
use crate::c::header::PACKAGE;
use crate::c::library::GUARDIAN;
use crate::ruby::{self, gem};
use crate::run;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Linux on x86-64, as RubyGems names it.
const PLATFORM: &str = "x86_64-linux";
const ARCHIVE: &str = "libminder_c.a";

/// Makes both gems. The second one is the first one with the library in place of the sources: an installation
/// compiles the shim in C alone, for any Ruby.
pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>> {
    ruby::ready().map_err(anyhow::Error::msg)?;
    let staged = gem::staged()?;
    let source = release.out.join(format!("minder-{}.gem", release.version));
    pack(release, &staged, &source)?;
    let built = library::build(release)?;
    let rust = staged.join("rust");
    std::fs::remove_dir_all(&rust).with_context(|| format!("cannot remove {}", rust.display()))?;
    let dir = staged.join("prebuilt").join(PLATFORM);
    ruby::copy_tree(&release.source.join(PACKAGE).join("include"), &dir.join("include"))?;
    for name in [ARCHIVE, GUARDIAN] {
        copy(&built.join(name), &dir.join(name))?;
    }
    run::run(run::command("strip").arg("--strip-debug").arg(dir.join(ARCHIVE)))?;
    run::run(run::command("strip").arg(dir.join(GUARDIAN)))?;
    let prebuilt = release.out.join(format!("minder-{}-{PLATFORM}.gem", release.version));
    pack(release, &staged, &prebuilt)?;
    Ok(vec![source, prebuilt])
}

fn pack(release: &Release, staged: &Path, gem: &Path) -> Result<()> {
    gem::pack(&mut release.command("gem"), staged, gem)
}

/// Installs each gem into an empty directory, and runs a program with it. The second one needs no cargo.
pub(super) fn check(_: &Release, files: &[PathBuf]) -> Result<()> {
    for file in files {
        let is_prebuilt = file.to_string_lossy().contains(PLATFORM);
        gem::try_gem_with(file, is_prebuilt.then_some("/bin/false"))?;
    }
    Ok(())
}
