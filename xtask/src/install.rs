//! Installs what a step needs where we may, and otherwise says why not and what would help.

use crate::run;
use std::process::Command;

/// Why something could not be had, and the cure, as one line.
pub(crate) type Missing = String;

/// Installs the packages, unless they are there: Debian and its kin, as root or by `sudo` without a password.
pub(crate) fn apt(packages: &[&str]) -> Result<(), Missing> {
    let absent: Vec<&str> = packages.iter().copied().filter(|p| !installed(p)).collect();
    if absent.is_empty() {
        return Ok(());
    }
    let names = absent.join(" ");
    if run::find("apt-get").is_none() {
        return Err(format!(
            "{names} missing, and no apt-get to install from; cure: install the like by hand"
        ));
    }
    let Some(admin) = administrator() else {
        return Err(format!("{names} missing, and no right to install; cure: sudo apt-get install {names}"));
    };
    if absent.iter().any(|p| !offered(p)) {
        // A fresh image has no lists. What comes out of it is seen below.
        let _ = run::run(apt_get(admin).arg("update"));
    }
    if let Some(unknown) = absent.iter().find(|p| !offered(p)) {
        return Err(format!(
            "this system's package lists have no {unknown}; cure: a Debian 12 machine or container"
        ));
    }
    let mut install = apt_get(admin);
    install.args(["install", "-y", "--no-install-recommends"]).args(&absent);
    run::run(&mut install).map_err(|e| format!("{e:#}; cure: sudo apt-get install {names}"))
}

/// Adds a component or a target to the toolchain in use, if rustup keeps it and answers within two minutes.
pub(crate) fn rustup(words: &[&str]) -> Result<(), Missing> {
    let cure = format!("cure: rustup {}", words.join(" "));
    if run::find("rustup").is_none() {
        return Err(format!("no rustup; {cure}"));
    }
    let mut cmd = match run::find("timeout") {
        Some(timeout) => {
            let mut cmd = run::command(timeout);
            cmd.args(["120", "rustup"]);
            cmd
        }
        None => run::command("rustup"),
    };
    run::run(cmd.args(words)).map_err(|e| format!("{e:#}; {cure}"))
}

fn installed(package: &str) -> bool {
    let told = run::read(run::command("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]));
    told.is_ok_and(|status| status == "installed")
}

fn offered(package: &str) -> bool {
    let told = run::read(run::command("apt-cache").args(["policy", package]));
    told.is_ok_and(|text| text.lines().any(|l| l.trim().starts_with("Candidate:") && !l.contains("(none)")))
}

#[derive(Clone, Copy)]
enum Admin {
    Root,
    Sudo,
}

fn administrator() -> Option<Admin> {
    if run::read(run::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0") {
        return Some(Admin::Root);
    }
    run::succeeds(run::command("sudo").args(["-n", "true"])).then_some(Admin::Sudo)
}

fn apt_get(admin: Admin) -> Command {
    let mut cmd = match admin {
        Admin::Root => run::command("apt-get"),
        Admin::Sudo => {
            let mut cmd = run::command("sudo");
            cmd.args(["-n", "apt-get"]);
            cmd
        }
    };
    cmd.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-o", "Acquire::Retries=3"]);
    cmd
}
