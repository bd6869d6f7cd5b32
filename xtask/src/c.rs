//! The C and C++ interface: its header, its samples and tests, and its installation.

pub(crate) mod header;
pub(crate) mod library;
mod compile;
mod programs;
pub(crate) mod install_tree;
pub(crate) mod consumers;

use crate::part::Part;
use crate::{install, run, tree};
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;

/// The checks that were left out, one line each.
type LeftOut = Vec<install::Missing>;

/// `cargo xtask c`
pub(crate) fn main(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("c takes no arguments; hint: cargo xtask help");
    }
    for why in check(Part::All)? {
        println!("skipped: {why}");
    }
    Ok(())
}

/// Checks the interface: the quick part is its functions, and programs in C that call them.
pub(crate) fn check(part: Part) -> Result<LeftOut> {
    if cfg!(not(target_os = "linux")) {
        return Ok(vec!["the samples are for Linux; hint: run it there".to_string()]);
    }
    if part.has_rest() {
        header::check()?;
    }
    let library = library::Library::build(library::Profile::Dev)?;
    library.check_name()?;
    let functions = library.exported()?;
    check_coverage(&functions)?;
    let tree = directory("installed");
    install_tree::install(&library, &install_tree::Layout::new(&tree, None))?;
    let mut left_out = LeftOut::new();
    left_out.extend(programs::run(&tree, part)?);
    if part.has_rest() {
        left_out.extend(compile::everything()?);
        left_out.extend(consumers::build_and_run(&tree)?);
    }
    Ok(left_out)
}

/// Builds the archive and the guardian's program with the profile of the tests.
pub(crate) fn build_for_tests() -> Result<()> {
    library::Library::build(library::Profile::Dev).map(drop)
}

/// The tests call every function.
fn check_coverage(functions: &[String]) -> Result<()> {
    let mut text = String::new();
    for name in ["abuse.c", "features.c", "cells.c"] {
        let path = tree::root().join(header::PACKAGE).join("tests").join(name);
        text += &std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    let missing: Vec<&str> =
        functions.iter().map(String::as_str).filter(|name| !text.contains(&format!("{name}("))).collect();
    ensure!(
        missing.is_empty(),
        "no test calls {}; hint: add it to {}/tests",
        missing.join(", "),
        header::PACKAGE
    );
    Ok(())
}

/// Returns a directory for what is built here.
fn directory(name: &str) -> PathBuf {
    tree::target_dir().join("c").join(name)
}

/// Runs a program, and checks that it succeeds and prints this.
fn expect(cmd: &mut std::process::Command, expected: &str) -> Result<()> {
    let (stdout, stderr) = run::read_both(cmd)?;
    ensure!(stdout == expected, "`{}` printed\n{stdout}{stderr}and not\n{expected}", run::show(cmd));
    Ok(())
}
