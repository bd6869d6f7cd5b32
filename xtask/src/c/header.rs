//! `cargo xtask c-header`: the headers of the C interface are those that its sources describe.

use crate::{run, tree};
use anyhow::{Context, Result, bail};
use std::fs;

/// The package of the C interface.
pub(crate) const PACKAGE: &str = "bindings/c";
/// Its headers, which are committed: a program that uses them needs no Rust.
const HEADERS: [&str; 2] = ["minder.h", "minder_cells.h"];
/// The program that makes a header, in `xtask/c-header`.
const WRITER: &str = "xtask-c-header";

/// `cargo xtask c-header [--bless]`
pub(crate) fn main(args: &[String]) -> Result<()> {
    match args {
        [] => check(),
        [flag] if flag == "--bless" => bless(),
        _ => bail!("unknown option `{}` of c-header; hint: cargo xtask help", args.join(" ")),
    }
}

/// Checks that the headers are up to date.
pub(crate) fn check() -> Result<()> {
    for (header, made) in written()? {
        let path = tree::root().join(&header);
        let kept = fs::read_to_string(&path).with_context(|| format!("cannot read {header}"))?;
        let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
        match differs.or_else(|| (kept != made).then(|| kept.lines().count().min(made.lines().count()))) {
            None => (),
            Some(line) => bail!(
                "{header}:{}: {PACKAGE}/src describes another header; hint: cargo xtask c-header --bless",
                line + 1
            ),
        }
    }
    Ok(())
}

fn bless() -> Result<()> {
    for (header, made) in written()? {
        fs::write(tree::root().join(&header), made).with_context(|| format!("cannot write {header}"))?;
    }
    Ok(())
}

/// Returns the path and the text of each header.
fn written() -> Result<Vec<(String, String)>> {
    // With the features of the workspace: the step `test` has built all that it needs.
    run::run(run::cargo().args(["build", "--quiet", "--workspace", "--bin", WRITER]))?;
    let program = format!("{WRITER}{}", std::env::consts::EXE_SUFFIX);
    let program = tree::target_dir().join("debug").join(program);
    let made = |name: &str| run::read(run::command(&program).args([PACKAGE, name]));
    HEADERS.iter().map(|name| Ok((format!("{PACKAGE}/include/{name}"), made(name)?))).collect()
}
