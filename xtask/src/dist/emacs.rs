//! The package for Emacs, with the module.

use super::archive;
use super::program::{self, LINUX_LIBRARY};
use super::release::Release;
use crate::emacs::{self, GUARDIAN, MODULE, package};
use crate::run;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Makes the archive that `package-install-file` takes.
pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let arguments = ["--package", MODULE, "--package", GUARDIAN, "--lib", "--bin", GUARDIAN];
    let built = program::build_libraries(release, &LINUX_LIBRARY, &arguments)?;
    let name = format!("minder-{}", package::version()?);
    let staged = release.build.join("emacs").join(&name);
    emacs::stage(&built, &staged)?;
    package::complete(&staged)?;
    for file in ["minder-module.so", GUARDIAN] {
        run::run(run::command("strip").arg("--strip-unneeded").arg(staged.join(file)))?;
    }
    // `package.el` reads the name of the package from that of the directory.
    let file = format!("{name}-emacs-{}", LINUX_LIBRARY.triple);
    archive::tar(release, &staged, &name, &file).map(|file| vec![file])
}

/// Installs the package for a new user, and starts a child.
pub(super) fn check(_: &Release, files: &[PathBuf]) -> Result<()> {
    emacs::ready().map_err(anyhow::Error::msg)?;
    package::try_install(files.first().context("the package is one file")?)
}
