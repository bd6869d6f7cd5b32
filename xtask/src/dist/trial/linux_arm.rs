//! The archive for Linux on aarch64, in a virtual machine with the kernel of Debian for that processor.
//!
//! Its root file system is an archive in memory: the unpacked files of the release, and busybox. qemu-user
//! cannot run jobs with the program: qemu starts a thread before `main`, and the guard of a run has to be
//! entered before any thread is started.

use super::machine::example;
use crate::dist::release::{self, Release};
use crate::{install, run, tree};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

const TOOLS: [install::Program; 2] = [
    install::Program { name: "qemu-system-aarch64", package: "qemu-system-arm" },
    install::Program { name: "cpio", package: "cpio" },
];

/// The package that depends on the newest kernel for virtual machines.
const NEWEST: &str = "linux-image-cloud-arm64";
/// The longest time of the machine, which takes ten seconds.
const SECONDS: &str = "300";
const INIT: &str = include_str!("linux_arm.sh");

/// Makes in the directory `$1` a root file system with the programs `$2` (busybox) and the archive `$3`, and
/// packs it into the file `$4`.
const ROOT: &str = r#"set -eu
mkdir "$1/bin" "$1/root"
install "$2" "$1/bin/busybox"
tar -xzf "$3" --strip-components=1 -C "$1/root"
chmod 755 "$1/init"
cd "$1"
find . | cpio --create --format=newc --quiet --owner=+0:+0 >"$4""#;

/// Runs the program of the archive.
pub(in crate::dist) fn check(release: &Release, files: &[PathBuf]) -> Result<()> {
    install::programs(&TOOLS).map_err(anyhow::Error::msg)?;
    let home = tree::target_dir().join("packages/arm");
    let system = System::download(&home)?;
    let root = home.join("root");
    release::empty(&root)?;
    let [version, example] = [&release.version, &example()].map(|text| run::quote(OsStr::new(text)));
    let first = format!("#!/bin/busybox sh\nexport VERSION={version} EXAMPLE={example}\n");
    release::write(&root.join("init"), &(first + INIT))?;
    let packed = home.join("root.cpio");
    let mut make = run::command("sh");
    make.args(["-c", ROOT, "trial"]).arg(&root).arg(&system.busybox);
    // The first file is the archive, the second one has the debugging information.
    run::run(make.arg(files.first().context("no archive")?).arg(&packed))?;
    let mut machine = run::bounded(SECONDS, "qemu-system-aarch64");
    machine.args(["-M", "virt", "-cpu", "cortex-a57", "-smp", "2", "-m", "768", "-no-reboot"]);
    machine.args(["-nodefaults", "-display", "none", "-serial", "stdio", "-kernel"]).arg(&system.kernel);
    machine.args(["-append", "console=ttyAMA0 quiet panic=-1", "-initrd"]).arg(&packed);
    let (status, console) = run::Background::start(&mut machine, &home.join("console"))?.finish()?;
    for step in passed(&console, status)? {
        println!("dist: aarch64: {step}");
    }
    release::remove(&root)?;
    std::fs::remove_file(packed)?;
    Ok(())
}

/// What the machine needs from Debian. It is downloaded once: remove `target/packages/arm` for a newer one.
struct System {
    kernel: PathBuf,
    busybox: PathBuf,
}

impl System {
    fn download(home: &Path) -> Result<Self> {
        let system = Self { kernel: home.join("kernel"), busybox: home.join("busybox") };
        if system.kernel.is_file() && system.busybox.is_file() {
            return Ok(system);
        }
        let work = home.join("download");
        release::empty(&work)?;
        let unpacked = work.join("unpacked");
        let packages = install::OtherPackages::of("arm64", &work).map_err(anyhow::Error::msg)?;
        let image = packages.dependency(NEWEST, "linux-image-").map_err(anyhow::Error::msg)?;
        for package in [image.as_str(), "busybox-static"] {
            let file = packages.download(package).map_err(anyhow::Error::msg)?;
            run::run(run::command("dpkg-deb").arg("--extract").arg(file).arg(&unpacked))?;
        }
        let version = image.trim_start_matches("linux-image-");
        let found =
            [(format!("boot/vmlinuz-{version}"), &system.kernel), ("bin/busybox".into(), &system.busybox)];
        for (name, path) in found {
            std::fs::rename(unpacked.join(&name), path).with_context(|| format!("no {name} for aarch64"))?;
        }
        release::remove(&work)?;
        Ok(system)
    }
}

/// Returns the steps that passed, or an error with those that failed and the end of the console.
fn passed(console: &str, status: ExitStatus) -> Result<Vec<&str>> {
    const SHOWN: usize = 20;
    let lines: Vec<&str> = console.lines().map(str::trim_end).collect();
    let steps = |begin| lines.iter().filter_map(move |line| line.strip_prefix(begin)).collect::<Vec<_>>();
    let failed = steps("failed ");
    let why = match (failed.is_empty(), lines.contains(&"end")) {
        (true, true) => return Ok(steps("ok ")),
        (false, _) => format!("failed: {}", failed.join(", ")),
        (true, false) => {
            let last = steps("ok ").pop().unwrap_or("none");
            format!("the steps did not end in {SECONDS} seconds ({status}); the last one that passed: {last}")
        }
    };
    let end = lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default().join("\n");
    bail!("{why}; the end of the console:\n{end}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_names_what_failed_and_needs_the_end() {
        let passed = |console: &str| match passed(console, ExitStatus::default()) {
            Ok(steps) => steps.join(", "),
            Err(why) => format!("{why}"),
        };
        assert_eq!(passed("[ 0.1] boot\r\nok a b\r\nok c\r\nend\r\n"), "a b, c");
        assert_eq!(
            passed("ok a\r\nfailed b c\r\n    why\r\nfailed d\r\nend\r\n"),
            "failed: b c, d; the end of the console:\nok a\nfailed b c\n    why\nfailed d\nend"
        );
        let begin = "the steps did not end in 300 seconds (exit status: 0); the last one that passed: b;";
        assert!(passed("ok a\nok b").starts_with(begin));
        let lines: String = (0..30).map(|n| format!("line {n}\n")).collect();
        assert!(passed(&lines).contains("the end of the console:\nline 10\n"));
    }
}
