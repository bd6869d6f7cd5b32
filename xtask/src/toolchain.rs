//! Other toolchains than the one in use, by rustup.

use crate::{install, run};
use std::process::Command;

/// Installs a toolchain if rustup does not have it.
pub(crate) fn ready(name: &str) -> Result<(), install::Missing> {
    if run::succeeds(run::command("rustup").args(["run", name, "cargo", "--version"])) {
        return Ok(());
    }
    install::rustup(&["toolchain", "install", name, "--profile", "minimal"])
}

/// Installs a component of a toolchain, and the toolchain, if rustup does not have it. `verb` is a command of
/// cargo that needs it.
pub(crate) fn component(toolchain: &str, name: &str, verb: &str) -> Result<(), install::Missing> {
    ready(toolchain)?;
    if run::succeeds(cargo(toolchain).args([verb, "--version"])) {
        return Ok(());
    }
    install::rustup(&["component", "add", "--toolchain", toolchain, name])
}

/// Returns cargo of a toolchain.
pub(crate) fn cargo(toolchain: &str) -> Command {
    let mut cmd = run::command("rustup");
    // This program was started by a cargo that names its own compiler and documentation program.
    cmd.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("RUSTDOC");
    run::prepare_for_cargo(&mut cmd);
    cmd.args(["run", toolchain, "cargo"]);
    cmd
}
