//! Builds the Windows half and runs it under Wine, in a prefix of its own.
//!
//! Wine shows behaviour and counts. It shows neither absolute times nor the newest system calls of Windows.

use crate::{debian, install, run, tree};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-pc-windows-gnu";
const GCC: &str = "x86_64-w64-mingw32-gcc";
const PACKAGES: [&str; 3] = ["wine", "wine64", "gcc-mingw-w64-x86-64-win32"];

/// What is run, in order. All of it has to exist: a test that vanished is a failure.
const RUNS: [Runs; 2] = [
    Runs {
        name: "hundred children",
        needs: "crates/minder/examples/hundred.rs",
        args: &["run", "-p", "minder", "--example", "hundred"],
    },
    Runs {
        name: "unit tests of minder",
        needs: "crates/minder/src/lib.rs",
        args: &["test", "-p", "minder", "--lib"],
    },
];

/// One cargo command, and the file without which it would mean nothing.
struct Runs {
    name: &'static str,
    needs: &'static str,
    args: &'static [&'static str],
}

/// Rust's standard library wants `ProcessPrng`, which Wine has from version 9 or so; older Wine gets this instead.
const STUB: &str = "\
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return SystemFunction036(p, (ULONG)n); }
";

/// `cargo xtask wine [CARGO ARGUMENTS]`.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if let Err(missing) = ready() {
        bail!("{missing}");
    }
    if args.is_empty() {
        everything()
    } else {
        one(args.iter().map(String::as_str).collect::<Vec<_>>().as_slice())
    }
}

/// Sees to it that Wine and the compilers are there.
pub(crate) fn ready() -> Result<(), install::Missing> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        return Err("Wine is used on Linux x86-64 only; cure: such a machine".into());
    }
    debian::ready()?;
    let here = ["wine", "wineserver", GCC].iter().all(|p| run::find(p).is_some());
    if here { Ok(()) } else { install::apt(&PACKAGES) }
}

/// Runs the whole table.
pub(crate) fn everything() -> Result<()> {
    let prefix = Prefix::open()?;
    for runs in &RUNS {
        eprintln!("wine: {}", runs.name);
        if !tree::root().join(runs.needs).exists() {
            bail!(
                "wine: {} is missing; cure: bring it back, or take `{}` out of the table",
                runs.needs,
                runs.name
            );
        }
        run::run(&mut prefix.cargo(runs.args)).with_context(|| format!("wine: {}", runs.name))?;
    }
    Ok(())
}

fn one(args: &[&str]) -> Result<()> {
    let prefix = Prefix::open()?;
    run::run(&mut prefix.cargo(args))
}

/// A Wine prefix with its server; dropping it ends that server and what runs on it, and no other.
struct Prefix {
    dir: PathBuf,
}

impl Prefix {
    /// Makes the prefix, or takes the one that is there if the same Wine made it.
    fn open() -> Result<Self> {
        let home = tree::target_dir().join("wine");
        let prefix = Self { dir: home.join("prefix") };
        let mark = home.join("made-by");
        let version = run::read(run::command("wine").arg("--version"))?;
        if std::fs::read_to_string(&mark).is_ok_and(|made| made == version) {
            return Ok(prefix);
        }
        if prefix.dir.exists() {
            std::fs::remove_dir_all(&prefix.dir)?;
        }
        std::fs::create_dir_all(&home)?;
        let dll = stub(&home)?;
        run::run(&mut prefix.command("timeout", &["-k", "5", "240", "wineboot", "-i"]))?;
        std::fs::copy(dll, prefix.dir.join("drive_c/windows/system32/bcryptprimitives.dll"))?;
        std::fs::write(mark, version)?;
        Ok(prefix)
    }

    /// A program that sees this prefix. Neither the offer to download Mono nor Wine's own log is wanted.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut cmd = run::command(program);
        self.enter(&mut cmd);
        cmd.args(args);
        cmd
    }

    fn enter(&self, cmd: &mut Command) {
        cmd.env("WINEPREFIX", &self.dir).env("WINEDEBUG", "-all").env("WINEDLLOVERRIDES", "mscoree=;mshtml=");
    }

    /// A cargo command whose programs run under Wine, at most five minutes each.
    ///
    /// `setarch -R` switches address randomisation off: with it, one start in some hundreds fails in Wine.
    fn cargo(&self, args: &[&str]) -> Command {
        let mut cmd = debian::cargo(args.first().unwrap_or(&"test"), TARGET);
        self.enter(&mut cmd);
        cmd.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "timeout -k 5 300 setarch -R wine");
        cmd.args(args.get(1..).unwrap_or_default());
        cmd
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; without a server the command fails, and that is as it should be.
        let _ = self.command("timeout", &["20", "wineserver", "-k"]).output();
    }
}

fn stub(home: &Path) -> Result<PathBuf> {
    let (source, dll) = (home.join("bcryptprimitives.c"), home.join("bcryptprimitives.dll"));
    std::fs::write(&source, STUB)?;
    let mut gcc = run::command(GCC);
    gcc.args(["-shared", "-O2", "-s", "-o"]).args([&dll, &source]).arg("-ladvapi32");
    run::run(&mut gcc)?;
    Ok(dll)
}
