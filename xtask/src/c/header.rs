//! `cargo xtask c-header`: the header of the C interface is the one that its sources describe.

use crate::{run, tree};
use anyhow::{Context, Result, bail};
use std::fs;

/// The package of the C interface.
pub(crate) const PACKAGE: &str = "bindings/c";
/// Its header, which is committed: a program that uses it needs no Rust.
const HEADER: &str = "bindings/c/include/minder.h";
/// The program that makes the header, in `xtask/c-header`.
const WRITER: &str = "xtask-c-header";

/// `cargo xtask c-header [--bless]`
pub(crate) fn main(args: &[String]) -> Result<()> {
    match args {
        [] => check(),
        [flag] if flag == "--bless" => bless(),
        _ => bail!("unknown option `{}` of c-header; cure: cargo xtask help", args.join(" ")),
    }
}

/// Checks that the header is up to date.
pub(crate) fn check() -> Result<()> {
    let path = tree::root().join(HEADER);
    let kept = fs::read_to_string(&path).with_context(|| format!("cannot read {HEADER}"))?;
    let made = written()?;
    let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    match differs.or_else(|| (kept != made).then(|| kept.lines().count().min(made.lines().count()))) {
        None => Ok(()),
        Some(line) => bail!(
            "{HEADER}:{}: {PACKAGE}/src describes another header; cure: cargo xtask c-header --bless",
            line + 1
        ),
    }
}

fn bless() -> Result<()> {
    fs::write(tree::root().join(HEADER), written()?).with_context(|| format!("cannot write {HEADER}"))
}

fn written() -> Result<String> {
    // With the features of the workspace: the step `test` has built all that it needs.
    run::run(run::cargo().args(["build", "--quiet", "--workspace", "--bin", WRITER]))?;
    let program = format!("{WRITER}{}", std::env::consts::EXE_SUFFIX);
    run::read(run::command(tree::target_dir().join("debug").join(program)).arg(PACKAGE))
}
