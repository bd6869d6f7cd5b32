//! The library for C and C++, as `dist-c` installs it.

use super::archive;
use super::program::{self, LINUX_LIBRARY};
use super::release::{self, Release};
use crate::c::install_tree::{self, Layout};
use crate::c::library::{GUARDIAN, Library, Profile};
use crate::{c, run};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Builds the library and the program of a guardian. Returns the directory with both.
pub(super) fn build(release: &Release) -> Result<PathBuf> {
    let arguments = ["--package", "minder-c", "--package", GUARDIAN, "--lib", "--bin", GUARDIAN];
    program::build_libraries(release, &LINUX_LIBRARY, &arguments)
}

/// Returns the name of the archive and of the directory in it.
fn name(release: &Release) -> String {
    format!("libminder-{}-{}", release.version, LINUX_LIBRARY.triple)
}

/// Writes the tree below a prefix as an archive: headers, libraries, and files of pkg-config and CMake, which
/// find the library by their own place.
pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let built = build(release)?;
    let library = Library::of(&built, Profile::Dist)?;
    library.exported()?;
    library.check_name()?;
    let name = name(release);
    let dir = release.build.join(&name);
    release::remove(&dir)?;
    install_tree::install(&library, &Layout::new(&dir, None))?;
    archive::tar_gz(release, &dir, &name, &name).map(|file| vec![file])
}

/// Unpacks the archive, and builds programs with the library there.
pub(super) fn check(release: &Release, files: &[PathBuf]) -> Result<()> {
    let home = release.build.join("trial");
    release::empty(&home)?;
    run::run(run::command("tar").arg("-xf").args(files).arg("-C").arg(&home))?;
    let left_out = c::consumers::build_and_run(Path::new(&home.join(name(release))))?;
    if !left_out.is_empty() {
        bail!("not tried: {}", left_out.join("; "));
    }
    Ok(())
}
