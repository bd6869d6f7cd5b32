//! The package of RPM, in an empty directory, with the rpm of Debian: a system that uses RPM was not at hand.

use super::machine::{OLDER, need_root, same_files};
use crate::dist::layout::{self, RPM};
use crate::dist::linux_packages::write_rpm;
use crate::dist::program::LINUX;
use crate::dist::release::Release;
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Installs, upgrades and removes it.
pub(in crate::dist) fn check(release: &Release, files: &[PathBuf]) -> Result<()> {
    need_root()?;
    let home = tree::target_dir().join("packages");
    let root = home.join("rpm-root");
    if root.exists() {
        std::fs::remove_dir_all(&root)?;
    }
    // Debian's rpm keeps its database in the home directory of the user.
    let database = root.join("var/lib/rpm");
    std::fs::create_dir_all(&database)?;
    let rpm = |words: &[&str]| {
        let mut cmd = release.command("rpm");
        cmd.arg("--root").arg(&root).args(["--dbpath", "/var/lib/rpm"]).args(words);
        cmd
    };
    let top = layout::make(release, &LINUX, &RPM)?;
    let older = home.join(format!("minder-{OLDER}-1.x86_64.rpm"));
    write_rpm(release, &top, "x86_64", OLDER, &home)?;
    // The first one is for this machine.
    let newer = files.first().context("no package")?;
    let list = || run::read(run::command("find").args(["usr"]).current_dir(&root));
    run::run(&mut rpm(&["--initdb"]))?;
    // As the package `filesystem` has them; without it, nothing owns these directories.
    for dir in SYSTEM_DIRECTORIES {
        std::fs::create_dir_all(root.join(dir))?;
    }
    let before = list()?;
    for file in [&older, newer] {
        let file = file.to_str().context("the target directory is not UTF-8")?;
        run::run(&mut rpm(&["--upgrade", "--nodeps", "--ignoreos", "--noscripts", file]))?;
    }
    ensure!(
        run::read(&mut rpm(&["--query", "--queryformat", "%{VERSION}", "minder"]))? == release.version,
        "the upgrade left another version"
    );
    run::run(&mut rpm(&["--verify", "--nodeps", "minder"]))?;
    compare_with_list(&root, &run::read(&mut rpm(&["--query", "--list", "minder"]))?)?;
    // Without a library, a shell and `/proc`.
    let version = run::read(run::command("chroot").arg(&root).args(["/usr/bin/minder", "--version"]))?;
    ensure!(version.trim() == format!("minder {}", release.version), "`minder --version` prints {version}");
    run::run(&mut rpm(&["--erase", "--nodeps", "minder"]))?;
    same_files(&before, &list()?)?;
    std::fs::remove_dir_all(&root)?;
    Ok(())
}

/// The directories of a system with RPM into which the package puts files.
const SYSTEM_DIRECTORIES: [&str; 8] = [
    "usr/bin",
    "usr/libexec",
    "usr/share/doc",
    "usr/share/licenses",
    "usr/share/man/man1",
    "usr/share/bash-completion/completions",
    "usr/share/zsh/site-functions",
    "usr/share/fish/vendor_completions.d",
];

/// Checks that the files below a directory are those of the package.
fn compare_with_list(root: &Path, listed: &str) -> Result<()> {
    let found = run::read(run::command("find").args(["usr", "!", "-type", "d"]).current_dir(root))?;
    let mut found: Vec<String> = found.lines().map(|line| format!("/{line}")).collect();
    let mut listed: Vec<&str> =
        listed.lines().filter(|line| !root.join(line.trim_start_matches('/')).is_dir()).collect();
    found.sort();
    listed.sort_unstable();
    ensure!(found == listed, "the files are not those that the package lists");
    println!("dist: {} files, as the package lists them", found.len());
    Ok(())
}
