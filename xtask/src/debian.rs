//! Debian's Rust toolchain, whose packages include the source of the standard library: it can build
//! that library for any system.
//!
//! A toolchain of rustup needs a download for each further system; this one needs a Debian mirror
//! alone.

use crate::{install, run, tree};
use std::path::Path;
use std::process::Command;

/// The packages: compiler, cargo, and the source of the standard library.
pub(crate) const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
/// The minor version of Rust that our manifests ask for.
const OLDEST: u32 = 95;
pub(crate) const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const SOURCE: &str = "/usr/lib/rustlib/src/rust/library/Cargo.toml";

/// Installs the toolchain if it is missing or too old.
pub(crate) fn ready() -> Result<(), install::Missing> {
    let is_whole = || [RUSTC, CARGO, SOURCE].iter().all(|file| std::path::Path::new(file).exists());
    if !is_whole() || version().is_none_or(|(_, minor)| minor < OLDEST) {
        // A fresh installation lists only the versions of its first release.
        install::newest(&PACKAGES)?;
    }
    let (text, minor) = version().ok_or_else(|| format!("{RUSTC} does not run"))?;
    if minor < OLDEST {
        let packages = PACKAGES.join(" ");
        return Err(format!("{RUSTC} is too old ({text}); hint: sudo apt-get install {packages}"));
    }
    Ok(())
}

/// Returns the compiler's description of itself, and the minor number of its version.
fn version() -> Option<(String, u32)> {
    let text = run::read(run::command(RUSTC).arg("--version")).ok()?;
    let minor = text.split('.').nth(1)?.parse().ok()?;
    Some((text.trim().to_owned(), minor))
}

/// Returns `cargo VERB` of that toolchain for `targets`, with the standard library built from source;
/// more arguments may follow.
///
/// It has a separate target directory, so that two compilers do not overwrite each other's results.
pub(crate) fn cargo(verb: &str, targets: &[&str]) -> Command {
    cargo_in(&tree::target_dir().join("cross"), verb, targets)
}

/// Returns the same command with another target directory, which no other compiler uses.
pub(crate) fn cargo_in(target_dir: &Path, verb: &str, targets: &[&str]) -> Command {
    let mut cmd = run::command(CARGO);
    for name in ["RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO", "CARGO_TARGET_DIR"]
    {
        cmd.env_remove(name);
    }
    run::prepare_for_cargo(&mut cmd);
    cmd.env("RUSTC", RUSTC).env("RUSTDOC", "/usr/bin/rustdoc").env("RUSTC_BOOTSTRAP", "1");
    cmd.args([verb, "-Z", "build-std=std,panic_unwind", "--target-dir"]).arg(target_dir);
    cmd.args(targets.iter().flat_map(|target| ["--target", target]));
    cmd
}
