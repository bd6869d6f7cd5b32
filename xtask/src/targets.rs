//! Compile-checks other systems; nothing is linked or run.
//!
//! The target's standard library is that of the toolchain in use if it has one. Otherwise Debian's
//! compiler builds it from source, or rustup downloads it.

use crate::{debian, install, run, wine};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A system, the packages that are checked for it, and those that `cargo xtask test` checks.
///
/// A target costs about a minute of processor time when its library is built for the first time.
struct Target {
    triple: &'static str,
    packages: &'static [&'static str],
    in_test: InTest,
    /// The programs that the compiler calls for this target, also when nothing is linked.
    needs: &'static [install::Program],
}

/// The packages of a target that `cargo xtask test` checks without `--full`.
#[derive(Clone, Copy, PartialEq)]
enum InTest {
    /// All packages.
    All,
    /// The packages that contain code for one system alone. The others use their interface, which one
    /// more Unix than Linux checks.
    OfTheSystem,
    /// All packages if Wine cannot run: its tests compile the same.
    WithoutWine,
    /// Nothing: the code is the same as for another target.
    Nothing,
}

/// Makes the import libraries of functions that are linked by name from a DLL (`raw-dylib`); only the
/// GNU target needs it.
pub(crate) const DLLTOOL: install::Program =
    install::Program { name: "x86_64-w64-mingw32-dlltool", package: "binutils-mingw-w64-x86-64" };

const PACKAGES: &[&str] = &[
    "minder-os",
    "minder-cells",
    "minder-template",
    "minder-record",
    "minder-cluster",
    "minder",
    "minder-guardian",
    "minder-tokio",
    "minder-runner",
    "minder-bench",
    "minder-ui",
    "minder-lab",
    "minder-cli",
    "minder-c",
    "minder-emacs",
];

/// The same without the module for Emacs, which needs a dynamic library, which musl does not have, and
/// `waitid`, which OpenBSD does not have.
const WITHOUT_EMACS: &[&str] = match PACKAGES.split_last() {
    Some((_, rest)) => rest,
    None => &[],
};

const OF_THE_SYSTEM: &[&str] =
    &["minder-os", "minder-cells", "minder", "minder-tokio", "minder-bench", "minder-c"];

const TARGETS: [Target; 8] = [
    Target {
        triple: "x86_64-pc-windows-gnu",
        packages: PACKAGES,
        in_test: InTest::WithoutWine,
        needs: &[DLLTOOL],
    },
    Target { triple: "x86_64-pc-windows-msvc", packages: PACKAGES, in_test: InTest::Nothing, needs: &[] },
    Target { triple: "aarch64-apple-darwin", packages: PACKAGES, in_test: InTest::All, needs: &[] },
    Target { triple: "x86_64-unknown-freebsd", packages: PACKAGES, in_test: InTest::OfTheSystem, needs: &[] },
    Target {
        triple: "aarch64-unknown-linux-musl",
        packages: WITHOUT_EMACS,
        in_test: InTest::OfTheSystem,
        needs: &[],
    },
    Target { triple: "x86_64-unknown-netbsd", packages: PACKAGES, in_test: InTest::OfTheSystem, needs: &[] },
    Target {
        triple: "x86_64-unknown-openbsd",
        packages: WITHOUT_EMACS,
        in_test: InTest::OfTheSystem,
        needs: &[],
    },
    // Neither x86-64 nor aarch64: without `clone3`, by `posix_spawn` alone.
    Target {
        triple: "riscv64gc-unknown-linux-gnu",
        packages: OF_THE_SYSTEM,
        in_test: InTest::Nothing,
        needs: &[],
    },
];

/// `cargo xtask targets [--list] [NAME]...`: all of them, or those whose triple contains one of the
/// names.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if args.iter().any(|a| a == "--list") {
        for t in &TARGETS {
            let in_test = match t.in_test {
                InTest::All => "also in test",
                InTest::OfTheSystem => "also in test, minder-os and minder only",
                InTest::WithoutWine => "also in test without Wine",
                InTest::Nothing => "",
            };
            println!("{:<28} {:<72} {in_test}", t.triple, t.packages.join(" "));
        }
        return Ok(());
    }
    let wanted = |t: &&Target| args.is_empty() || args.iter().any(|a| t.triple.contains(a.as_str()));
    let chosen: Vec<Job> = TARGETS.iter().filter(wanted).map(|target| (target, target.packages)).collect();
    if chosen.is_empty() {
        bail!("unknown target {}; hint: cargo xtask targets --list", args.join(" "));
    }
    match check(&chosen)? {
        missing if missing.is_empty() => Ok(()),
        missing => bail!("not checked: {}", missing.join("; ")),
    }
}

/// A target, and the packages that are checked for it.
type Job = (&'static Target, &'static [&'static str]);

/// Checks what `cargo xtask test` checks, all of it if `full`; returns what was left out, and why.
pub(crate) fn in_test(full: bool) -> Result<Vec<install::Missing>> {
    let has_wine = wine::ready().is_ok();
    let packages = |target: &Target| match target.in_test {
        _ if full => Some(target.packages),
        InTest::All => Some(target.packages),
        InTest::OfTheSystem => Some(OF_THE_SYSTEM),
        InTest::WithoutWine => (!has_wine).then_some(target.packages),
        InTest::Nothing => None,
    };
    let chosen: Vec<Job> = TARGETS.iter().filter_map(|target| Some((target, packages(target)?))).collect();
    let mut missing = check(&chosen)?;
    let left = TARGETS.iter().filter(|target| target.in_test == InTest::Nothing && !full);
    let names: Vec<&str> = left.map(|target| target.triple).collect();
    if !names.is_empty() {
        missing.push(format!("{} are left to `cargo xtask targets`, to save minutes", names.join(", ")));
    }
    Ok(missing)
}

fn check(chosen: &[Job]) -> Result<Vec<install::Missing>> {
    let mut missing = Vec::new();
    let mut ready = Vec::new();
    for (target, packages) in chosen {
        let way = install::programs(target.needs).and_then(|()| way(target.triple));
        match way {
            Ok(way) => ready.push((way, target.triple, *packages)),
            Err(why) => missing.push(format!("{}: {why}", target.triple)),
        }
    }
    // Those of one kind are checked by one command: the first crates of a library come one after the
    // other, and those of several targets keep all processors busy.
    while let Some((way, _, packages)) = ready.first().copied() {
        let alike = |(other_way, _, other): &(Way, &str, &[&str])| *other_way == way && *other == packages;
        let (together, rest): (Vec<_>, Vec<_>) = ready.into_iter().partition(alike);
        ready = rest;
        let triples: Vec<&str> = together.iter().map(|(_, triple, _)| *triple).collect();
        let start = std::time::Instant::now();
        if let Err(why) = run::run(&mut command(way, &triples, packages)) {
            // The compiler's messages do not name the target.
            if triples.len() > 1 {
                for triple in &triples {
                    run::run(&mut command(way, &[triple], packages))
                        .with_context(|| format!("targets: {triple}"))?;
                }
            }
            return Err(why).with_context(|| format!("targets: {}", triples.join(", ")));
        }
        eprintln!("targets: {} ok, {:.0} s", triples.join(", "), start.elapsed().as_secs_f64());
    }
    Ok(missing)
}

/// The toolchain that checks a target.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// The one in use, which has the target's library.
    Own,
    /// Debian's, which builds the library.
    Debian,
    /// Debian's, with the library that the tests under Wine are linked to.
    DebianLinked,
}

/// The first way that works.
fn way(triple: &str) -> Result<Way, install::Missing> {
    if has_library(triple) {
        return Ok(Way::Own);
    }
    let Err(no_debian) = debian::ready() else {
        return Ok(if triple == wine::TARGET { Way::DebianLinked } else { Way::Debian });
    };
    install::rustup(&["target", "add", triple]).map_err(|no_rustup| format!("{no_debian}; {no_rustup}"))?;
    Ok(Way::Own)
}

/// `cargo check` of the packages for these targets. A warning fails the check.
fn command(way: Way, triples: &[&str], packages: &[&str]) -> Command {
    let mut cmd = match way {
        Way::Debian | Way::DebianLinked => {
            let mut cmd = debian::cargo("check", triples);
            cmd.args(["-Z", "warnings"]).env("CARGO_BUILD_WARNINGS", "deny");
            if way == Way::Debian {
                // Cargo builds the library even for a check. Without machine code and backtraces
                // that takes half the processor time.
                cmd.args(["-Z", "build-std-features=panic-unwind"]).env("RUSTFLAGS", "-Zno-codegen");
            }
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

/// Returns whether the toolchain in use has this target's standard library.
fn has_library(triple: &str) -> bool {
    let output = run::read(run::command("rustc").args(["--print", "target-libdir", "--target", triple]));
    let dir = output.unwrap_or_default();
    let entries = std::fs::read_dir(Path::new(dir.trim())).into_iter().flatten().flatten();
    entries.map(|e| e.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-"))
}
