//! The built library: its files, its exported symbols, its name.

use super::header;
use crate::{install, run, tree};
use anyhow::{Result, bail, ensure};
use std::path::{Path, PathBuf};

/// The package, as cargo names it.
const CRATE: &str = "minder-c";
/// The package and program of the guardian.
pub(crate) const GUARDIAN: &str = "minder-guardian";
/// The name that programs record.
pub(crate) const SONAME: &str = "libminder.so.0";
/// The version of its functions, from `install/minder.map`.
const VERSION: &str = "MINDER_0";
const PREFIX: &str = "minder_";
/// The other libraries that a program with the archive links: `rustc --print native-static-libs`.
pub(crate) const STATIC_LIBS: [&str; 7] = ["gcc_s", "util", "rt", "pthread", "m", "dl", "c"];
const BINUTILS: [install::Program; 4] = [
    install::Program { name: "gcc", package: "gcc" },
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
    /// Builds the shared library, the archive and the program of a guardian.
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
        Self::of(&tree::target_dir().join(directory), profile)
    }

    /// Returns the library whose files cargo has built into a directory, and links the shared one with a
    /// version for its functions. rustc has no option for that.
    pub(crate) fn of(directory: &Path, profile: Profile) -> Result<Self> {
        let archive = directory.join("libminder_c.a");
        let shared = directory.join("libminder.so");
        let listed = dynamic_symbols(&directory.join("libminder_c.so"))?;
        if let Some(foreign) = listed.iter().find(|name| !name.starts_with(PREFIX)) {
            bail!(
                "the shared library exports `{foreign}`; hint: export functions of {} only",
                header::PACKAGE
            );
        }
        let map = tree::root().join(header::PACKAGE).join("install/minder.map");
        let mut link = run::command("gcc");
        link.arg("-shared").arg("-o").arg(&shared).arg(format!("-Wl,-soname,{SONAME}"));
        link.arg(format!("-Wl,--version-script={}", map.display()));
        link.args(["-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,-z,relro,-z,now"]);
        link.args(listed.iter().map(|name| format!("-Wl,-u,{name}"))).arg(&archive);
        run::read(link.args(STATIC_LIBS.map(|name| format!("-l{name}"))))?;
        Ok(Self { shared, archive, guardian: directory.join(GUARDIAN), profile })
    }

    /// Returns the functions that the shared library exports, and checks that they have a version.
    pub(crate) fn exported(&self) -> Result<Vec<String>> {
        let version = format!("@@{VERSION}");
        let mut names = Vec::new();
        for symbol in dynamic_symbols(&self.shared)?.into_iter().filter(|symbol| symbol != VERSION) {
            let Some(name) = symbol.strip_suffix(&version) else {
                bail!(
                    "`{symbol}` has not the version {VERSION}; hint: {}/install/minder.map",
                    header::PACKAGE
                );
            };
            names.push(name.to_owned());
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

/// Returns the symbols that a shared library defines, with their versions.
fn dynamic_symbols(library: &Path) -> Result<Vec<String>> {
    let listed = run::read(run::command("nm").args(["-D", "--defined-only"]).arg(library))?;
    Ok(listed.lines().filter_map(|line| line.split_whitespace().last()).map(String::from).collect())
}
