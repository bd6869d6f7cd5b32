//! The built library: its files, its exported symbols, its name.

use super::header;
use crate::{install, run, tree};
use anyhow::{Result, bail, ensure};
use std::path::PathBuf;

/// The package, as cargo names it.
const CRATE: &str = "minder-c";
/// The package and program of the guardian.
pub(crate) const GUARDIAN: &str = "minder-guardian";
/// The name that programs record.
pub(crate) const SONAME: &str = "libminder.so.0";
const PREFIX: &str = "minder_";
const BINUTILS: [install::Program; 3] = [
    install::Program { name: "nm", package: "binutils" },
    install::Program { name: "readelf", package: "binutils" },
    install::Program { name: "strip", package: "binutils" },
];

/// The profile with which the library is built.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Profile {
    /// For tests: of the libraries that the step `test` has built.
    Dev,
    /// To install.
    Dist,
}

/// The files of a built library.
pub(crate) struct Library {
    pub(crate) shared: PathBuf,
    pub(crate) archive: PathBuf,
    /// The program that ends children when their host is killed.
    pub(crate) guardian: PathBuf,
    pub(crate) profile: Profile,
}

impl Library {
    /// Builds the shared library and the archive.
    pub(crate) fn build(profile: Profile) -> Result<Self> {
        if let Err(missing) = install::present(&BINUTILS) {
            bail!("cannot check and strip the library: {missing}");
        }
        let mut cmd = run::cargo();
        let directory = match profile {
            Profile::Dev => {
                // With the features of the workspace, as the step `test`.
                cmd.args(["build", "--quiet", "--workspace", "--lib", "--bin", GUARDIAN]);
                "debug"
            }
            Profile::Dist => {
                cmd.args(["build", "--package", CRATE, "--package", GUARDIAN, "--lib", "--bin", GUARDIAN]);
                cmd.args(["--profile", "dist"]);
                "dist"
            }
        };
        run::run(&mut cmd)?;
        let directory = tree::target_dir().join(directory);
        Ok(Self {
            shared: directory.join("libminder_c.so"),
            archive: directory.join("libminder_c.a"),
            guardian: directory.join(GUARDIAN),
            profile,
        })
    }

    /// Returns the functions that the shared library exports, and checks that they are ours.
    pub(crate) fn exported(&self) -> Result<Vec<String>> {
        let listed = run::read(run::command("nm").args(["-D", "--defined-only"]).arg(&self.shared))?;
        let names: Vec<String> =
            listed.lines().filter_map(|line| line.split_whitespace().last()).map(String::from).collect();
        if let Some(foreign) = names.iter().find(|name| !name.starts_with(PREFIX)) {
            bail!(
                "the shared library exports `{foreign}`; hint: export functions of {} only",
                header::PACKAGE
            );
        }
        ensure!(!names.is_empty(), "the shared library exports nothing");
        Ok(names)
    }

    /// Checks the name that programs record.
    pub(crate) fn check_name(&self) -> Result<()> {
        let dynamic = run::read(run::command("readelf").arg("-d").arg(&self.shared))?;
        let is_named = dynamic.lines().any(|line| line.contains("(SONAME)") && line.contains(SONAME));
        ensure!(is_named, "the shared library has not the name {SONAME}; hint: {}/build.rs", header::PACKAGE);
        Ok(())
    }
}
