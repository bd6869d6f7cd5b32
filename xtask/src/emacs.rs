//! Emacs for the package: the directory that Emacs loads, with the module next to the Lisp files.

pub(crate) mod check;
pub(crate) mod package;
mod suites;

use crate::install::{Missing, Program};
use crate::{install, run, tree};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package in the repository.
const PACKAGE: &str = "bindings/emacs";
/// The package of cargo that is the module.
pub(crate) const MODULE: &str = "minder-emacs";
/// The package and program that ends children when Emacs is killed.
pub(crate) const GUARDIAN: &str = "minder-guardian";

/// `cargo xtask emacs`: builds the package that `package-install-file` takes, and tries it; or runs the tests
/// of Emacs.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let is_tried = match args[..] {
        [] => true,
        ["--no-trial"] => false,
        ["--suites"] => return suites::main(None),
        ["--suites", "--rounds", rounds] => return suites::main(Some(rounds.parse()?)),
        _ => bail!("emacs takes --no-trial or --suites [--rounds N]; hint: cargo xtask help"),
    };
    let archive = package::build(Profile::Release)?;
    if is_tried {
        if let Err(missing) = ready() {
            bail!("{missing}; or --no-trial");
        }
        package::try_install(&archive)?;
    }
    println!("{}", archive.display());
    Ok(())
}

/// The profile with which the module is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Profile {
    /// For tests: of the libraries that the step `test` has built.
    Dev,
    /// To measure and to install.
    Release,
}

/// Installs Emacs, if it is missing.
pub fn ready() -> Result<(), Missing> {
    install::programs(&[Program { name: "emacs", package: "emacs-nox" }])
}

/// Returns a directory for what is built here.
fn directory(name: &str) -> PathBuf {
    tree::target_dir().join("emacs").join(name)
}

/// Returns an Emacs that reads no file of the user, and that finds the package in `library`.
pub fn emacs(library: &Path) -> Command {
    let mut cmd = run::command("emacs");
    cmd.args(["-Q", "--batch", "-L"]).arg(library);
    cmd
}

/// Returns a command that runs `command` under timeout(1) with these arguments. What it writes to standard
/// error comes with the standard output: Emacs in batch mode writes its messages there.
fn bounded(command: &Command, timeout: &[&str]) -> Command {
    let mut bounded = run::command("sh");
    bounded.args(["-c", "exec timeout \"$@\" 2>&1", "sh"]).args(timeout);
    bounded.arg(command.get_program()).args(command.get_args());
    bounded
}

/// Builds the module, and puts it with the Lisp files and the program of a guardian into a new directory
/// `name`, which it returns.
pub fn staged(profile: Profile, name: &str) -> Result<PathBuf> {
    let built = build(profile)?;
    let staged = directory(name);
    stage(&built, &staged)?;
    Ok(staged)
}

/// Puts the same files into the directory `staged`; the module and the program are in the directory `built`.
pub(crate) fn stage(built: &Path, staged: &Path) -> Result<()> {
    if staged.exists() {
        // A file that the package no longer has must not be found.
        std::fs::remove_dir_all(staged)?;
    }
    std::fs::create_dir_all(staged)?;
    for file in lisp_files(&tree::root().join(PACKAGE))? {
        copy(&file, &staged.join(file.file_name().unwrap_or_default()))?;
    }
    // Emacs takes this suffix on macOS, too.
    copy(&built.join("libminder_module.so"), &staged.join("minder-module.so"))?;
    copy(&built.join(GUARDIAN), &staged.join(GUARDIAN))
}

/// Builds the module and the program of a guardian. Returns the directory with both.
fn build(profile: Profile) -> Result<PathBuf> {
    let mut cmd = run::cargo();
    let name = match profile {
        Profile::Dev => {
            // With the features of the workspace, as the step `test`.
            cmd.args(["build", "--quiet", "--workspace", "--lib", "--bin", GUARDIAN, "--bin", "minder"]);
            "debug"
        }
        Profile::Release => {
            cmd.args(["build", "--release", "--package", MODULE, "--package", GUARDIAN]);
            cmd.args(["--lib", "--bin", GUARDIAN]);
            "release"
        }
    };
    run::run(&mut cmd)?;
    Ok(tree::target_dir().join(name))
}

/// Returns the Lisp files of a directory, in the order of their names.
fn lisp_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "el") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
