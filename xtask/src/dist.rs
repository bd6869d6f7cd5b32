//! `cargo xtask dist`: the program to install, with its debugging information in a file next to it.
//!
//! The profile `dist` optimises across all crates. Debuggers and symbolizers find `minder.debug`
//! through the link that is left in the program (`.gnu_debuglink`), if both are in one directory.

use crate::{install, run, tree};
use anyhow::{Context, Result, bail};
use std::path::Path;

const PROFILE: &str = "dist";

const OBJCOPY: install::Program = install::Program { name: "objcopy", package: "binutils" };

/// Builds the program, and splits it.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("dist takes no arguments; hint: cargo xtask help");
    }
    if cfg!(target_os = "linux")
        && let Err(missing) = install::present(&[OBJCOPY])
    {
        bail!("cannot split off the debugging information: {missing}");
    }
    run::run(run::cargo().args([
        "build",
        "--profile",
        PROFILE,
        "--package",
        "minder-cli",
        "--bin",
        "minder",
    ]))?;
    let dir = tree::target_dir().join(PROFILE);
    if cfg!(target_os = "linux") {
        split(&dir.join("minder"), &dir.join("minder.debug"))?;
    }
    let name = format!("minder{}", std::env::consts::EXE_SUFFIX);
    for file in [name.as_str(), "minder.debug", "minder.dSYM", "minder.pdb"].map(|name| dir.join(name)) {
        if let Ok(about) = std::fs::metadata(&file) {
            println!("{:>12} bytes  {}", about.len(), file.display());
        }
    }
    Ok(())
}

/// Moves the debugging information of a program to a file, and leaves a link to it. The program in
/// the directory `deps` stays whole: cargo links both names to one file.
fn split(program: &Path, debug: &Path) -> Result<()> {
    let stripped = program.with_extension("stripped");
    run::run(run::command("objcopy").arg("--only-keep-debug").args([program, debug]))?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(debug);
    run::run(run::command("objcopy").arg("--strip-unneeded").arg(link).args([program, &stripped]))?;
    std::fs::rename(&stripped, program).with_context(|| format!("cannot replace {}", program.display()))
}
