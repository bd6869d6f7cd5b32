//! A Debian in a directory: its installation, and the namespaces in which its programs run.

use super::host;
use crate::{install, run};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

pub(crate) const DEBOOTSTRAP: install::Program =
    install::Program { name: "debootstrap", package: "debootstrap" };

/// Mounts in the directory `$1` what a machine has.
pub(crate) const MOUNT: &str = r#"set -e
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -t proc proc "$1/proc"
"#;

/// Installs the smallest Debian with these packages, and copies this machine's settings of the network.
pub(crate) fn install(root: &Path, packages: &[&str], log: &Path) -> Result<()> {
    if root.exists() {
        std::fs::remove_dir_all(root)?;
    }
    std::fs::create_dir_all(root)?;
    let source = host::source()?;
    let mut cmd = apart();
    cmd.args(["--mount-proc", "debootstrap", "--variant=minbase"]);
    cmd.arg(format!("--include={}", packages.join(",")));
    if let Some(keyring) = &source.keyring {
        cmd.arg(format!("--keyring={keyring}"));
    }
    cmd.arg(&source.suite).arg(root).arg(&source.mirror);
    host::copy_packages(root)?;
    // dpkg waits for the disk after each file otherwise, and nothing of the machine is kept.
    let settings = root.join("etc/dpkg/dpkg.cfg.d");
    std::fs::create_dir_all(&settings)?;
    std::fs::write(settings.join("unsafe-io"), "force-unsafe-io\n")?;
    println!("bare: installs {} from {}", source.suite, source.mirror);
    run::run_to_file(&mut cmd, log)?;
    std::fs::create_dir_all(root.join("root"))?;
    host::copy_settings(root)
}

/// Returns a command that runs its next argument in new mount and PID namespaces. The kernel kills
/// their processes with unshare, and unshare with this program.
pub(crate) fn apart() -> Command {
    let mut cmd = run::command("setpriv");
    cmd.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--kill-child", "--fork"]);
    cmd
}
