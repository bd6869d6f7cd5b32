//! Compile-checks the systems that this machine is not.
//!
//! Only checked: nothing is linked or run. What a target's own standard library is needed for comes
//! from the toolchain in use if it has that library, else from Debian's compiler, which builds it
//! from source, else from rustup.

use crate::{debian, install, run};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A system, what of ours is checked for it, and whether `cargo xtask test` does so too.
///
/// A target costs about a minute of processor time when its library is built for the first time, so
/// the ones that would tell little more than another are left to `cargo xtask targets`.
struct Target {
    triple: &'static str,
    packages: &'static [&'static str],
    in_test: bool,
    /// What the compiler calls for this target, also when nothing is linked.
    needs: &'static [install::Program],
}

/// Makes the import libraries of what is linked by name from a DLL (`raw-dylib`), for the GNU
/// target alone.
const DLLTOOL: install::Program =
    install::Program { name: "x86_64-w64-mingw32-dlltool", package: "binutils-mingw-w64-x86-64" };

const PACKAGES: &[&str] =
    &["minder-os", "minder-template", "minder-record", "minder", "minder-bench", "minder-cli"];

const TARGETS: [Target; 8] = [
    Target { triple: "x86_64-pc-windows-gnu", packages: PACKAGES, in_test: true, needs: &[DLLTOOL] },
    Target { triple: "x86_64-pc-windows-msvc", packages: PACKAGES, in_test: true, needs: &[] },
    Target { triple: "aarch64-apple-darwin", packages: PACKAGES, in_test: true, needs: &[] },
    Target { triple: "x86_64-unknown-freebsd", packages: PACKAGES, in_test: true, needs: &[] },
    Target { triple: "aarch64-unknown-linux-musl", packages: PACKAGES, in_test: true, needs: &[] },
    Target { triple: "x86_64-unknown-netbsd", packages: PACKAGES, in_test: true, needs: &[] },
    Target { triple: "x86_64-unknown-openbsd", packages: PACKAGES, in_test: true, needs: &[] },
    // Neither x86-64 nor aarch64: without `clone3`, by `posix_spawn` alone.
    Target {
        triple: "riscv64gc-unknown-linux-gnu",
        packages: &["minder-os", "minder"],
        in_test: false,
        needs: &[],
    },
];

/// `cargo xtask targets [--list] [NAME]...`: all of them, or those whose triple contains one of the
/// names.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if args.iter().any(|a| a == "--list") {
        for t in &TARGETS {
            println!(
                "{:<28} {:<20} {}",
                t.triple,
                t.packages.join(" "),
                if t.in_test { "also in test" } else { "" }
            );
        }
        return Ok(());
    }
    let wanted = |t: &&Target| args.is_empty() || args.iter().any(|a| t.triple.contains(a.as_str()));
    let chosen: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    if chosen.is_empty() {
        bail!("no target is called {}; cure: cargo xtask targets --list", args.join(" "));
    }
    match check(&chosen)? {
        missing if missing.is_empty() => Ok(()),
        missing => bail!("not checked: {}", missing.join("; ")),
    }
}

/// What `cargo xtask test` checks; returns what had to be left out, and why.
pub(crate) fn in_test() -> Result<Vec<install::Missing>> {
    let (chosen, others): (Vec<&Target>, Vec<&Target>) = TARGETS.iter().partition(|t| t.in_test);
    let mut missing = check(&chosen)?;
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|t| t.triple).collect();
        missing.push(format!("{} are left to `cargo xtask targets`, to save minutes", names.join(", ")));
    }
    Ok(missing)
}

fn check(chosen: &[&Target]) -> Result<Vec<install::Missing>> {
    let (mut missing, mut ready) = (Vec::new(), Vec::new());
    for target in chosen {
        let way = install::programs(target.needs).and_then(|()| way(target.triple));
        match way {
            Ok(way) => ready.push((way, *target)),
            Err(why) => missing.push(format!("{}: {why}", target.triple)),
        }
    }
    // Those of one kind are checked by one command: the first crates of a library come one after the
    // other, and those of several targets keep all processors busy.
    while let Some((way, first)) = ready.first().copied() {
        let alike = |(other, target): &(Way, &Target)| *other == way && target.packages == first.packages;
        let (together, rest): (Vec<_>, Vec<_>) = ready.into_iter().partition(alike);
        ready = rest;
        let triples: Vec<&str> = together.iter().map(|(_, target)| target.triple).collect();
        let start = std::time::Instant::now();
        if let Err(why) = run::run(&mut command(way, &triples, first.packages)) {
            // What the compiler says does not name the target.
            for triple in triples.iter().filter(|_| triples.len() > 1) {
                run::run(&mut command(way, &[triple], first.packages))
                    .with_context(|| format!("targets: {triple}"))?;
            }
            return Err(why).with_context(|| format!("targets: {}", triples.join(", ")));
        }
        eprintln!("targets: {} ok, {:.0} s", triples.join(", "), start.elapsed().as_secs_f64());
    }
    Ok(missing)
}

/// Which toolchain checks a target.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// The one in use, which has the target's library.
    Own,
    /// Debian's, which builds the library.
    Debian,
}

/// The first way that works.
fn way(triple: &str) -> Result<Way, install::Missing> {
    if has_library(triple) {
        return Ok(Way::Own);
    }
    let Err(no_debian) = debian::ready() else { return Ok(Way::Debian) };
    install::rustup(&["target", "add", triple]).map_err(|no_rustup| format!("{no_debian}; {no_rustup}"))?;
    Ok(Way::Own)
}

/// `cargo check` of the packages for these targets. A warning fails the check.
fn command(way: Way, triples: &[&str], packages: &[&str]) -> Command {
    let mut cmd = match way {
        Way::Debian => {
            let mut cmd = debian::cargo("check", triples);
            cmd.args(["-Z", "warnings"]).env("CARGO_BUILD_WARNINGS", "deny");
            cmd
        }
        Way::Own => {
            let mut cmd = run::cargo();
            cmd.arg("check").args(triples.iter().flat_map(|triple| ["--target", triple]));
            cmd
        }
    };
    cmd.args(packages.iter().flat_map(|package| ["-p", package]));
    // SQLite comes as C, and would need a C compiler for the target.
    cmd.arg("--no-default-features");
    cmd
}

/// Whether the toolchain in use has this target's standard library.
fn has_library(triple: &str) -> bool {
    let told = run::read(run::command("rustc").args(["--print", "target-libdir", "--target", triple]));
    let dir = told.unwrap_or_default();
    let entries = std::fs::read_dir(Path::new(dir.trim())).into_iter().flatten().flatten();
    entries.map(|e| e.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-"))
}
