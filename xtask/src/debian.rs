//! The toolchain that Debian packages with the source of its standard library: it can build that library for any system.
//!
//! A rustup toolchain knows a foreign system only when that system's library was downloaded for it, so this is the
//! way that works from a Debian mirror alone.

use crate::{install, run, tree};
use std::process::Command;

/// The packages: compiler, cargo, and the source of the standard library.
pub(crate) const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const RUSTC: &str = "/usr/bin/rustc";
const SOURCE: &str = "/usr/lib/rustlib/src/rust/library/Cargo.toml";

/// Sees to it that the toolchain is there.
pub(crate) fn ready() -> Result<(), install::Missing> {
    if !std::path::Path::new(SOURCE).exists() || !std::path::Path::new(RUSTC).exists() {
        install::apt(&PACKAGES)?;
    }
    let told = run::read(run::command(RUSTC).arg("--version")).map_err(|e| format!("{e:#}"))?;
    let minor = told.split('.').nth(1).and_then(|m| m.parse().ok()).unwrap_or(0);
    if minor < 95 {
        return Err(format!(
            "{RUSTC} is too old ({}); cure: apt-get install {}",
            told.trim(),
            PACKAGES.join(" ")
        ));
    }
    Ok(())
}

/// `cargo VERB` of that toolchain, for `target`, with the standard library built from source; more arguments may follow.
///
/// It builds into a folder of its own, so that two compilers do not overwrite each other's work.
pub(crate) fn cargo(verb: &str, target: &str) -> Command {
    let mut cmd = run::command("/usr/bin/cargo");
    for name in ["RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO", "CARGO_TARGET_DIR"]
    {
        cmd.env_remove(name);
    }
    cmd.env("RUSTC", RUSTC).env("RUSTDOC", "/usr/bin/rustdoc").env("RUSTC_BOOTSTRAP", "1");
    cmd.args([verb, "-Z", "build-std=std,panic_unwind", "--target", target, "--target-dir"]);
    cmd.arg(tree::target_dir().join("cross"));
    cmd
}
