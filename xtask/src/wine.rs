//! Builds the Windows half and runs it under Wine, in a prefix of its own.
//!
//! Wine shows behaviour and counts. It shows neither absolute times nor the newest system calls of
//! Windows.

use crate::{debian, install, run, tree};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "x86_64-pc-windows-gnu";
const GCC: &str = "x86_64-w64-mingw32-gcc";
const PACKAGES: [&str; 3] = ["wine", "wine64", "gcc-mingw-w64-x86-64-win32"];

/// Named together each time, so that all runs are built from one set of features, and nothing
/// twice.
const OURS: [&str; 14] = [
    "-p",
    "minder-os",
    "-p",
    "minder-template",
    "-p",
    "minder-record",
    "-p",
    "minder",
    "-p",
    "minder-bench",
    "-p",
    "minder-cli",
    "-p",
    "minder-tests",
];

/// What is run, in order. All of it has to exist: a test that vanished is a failure.
///
/// The threads of the tests wait for processes more than they work: more of them than a small
/// machine has cores.
const RUNS: [Runs; 5] = [
    Runs {
        name: "the examples, which the tests run",
        needs: "crates/minder/examples/hundred.rs",
        args: &["build", "--examples", "--bins"],
        full: false,
    },
    Runs { name: "unit tests", needs: "crates/minder/src/lib.rs", args: &["test", "--lib"], full: false },
    Runs { name: "doc tests", needs: "crates/minder/src/lib.rs", args: &["test", "--doc"], full: false },
    Runs {
        name: "black-box tests",
        needs: "tests/it/windows.rs",
        args: &["test", "--test", "it", "--", "--test-threads=4"],
        full: false,
    },
    Runs {
        name: "black-box tests of 2048 and 3600 children",
        needs: "tests/it/windows.rs",
        args: &[
            "test",
            "--test",
            "it",
            "--",
            "windows::children_of_",
            "--ignored",
            "--test-threads=1",
            "--nocapture",
        ],
        full: true,
    },
];

/// One cargo command, and the file without which it would mean nothing.
struct Runs {
    name: &'static str,
    needs: &'static str,
    args: &'static [&'static str],
    /// Whether it takes so long that it has to be asked for.
    full: bool,
}

/// Rust's standard library wants `ProcessPrng`, which Wine has from version 9 or so; older Wine
/// gets this instead.
const STUB: &str = "\
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return SystemFunction036(p, (ULONG)n); }
";

/// `cargo xtask wine [--full]`, `cargo xtask wine CARGO ARGUMENTS`.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if let Err(missing) = ready() {
        bail!("{missing}");
    }
    match args {
        [] => everything(),
        [flag] if flag == "--full" => table(true),
        args => one(args.iter().map(String::as_str).collect::<Vec<_>>().as_slice()),
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

/// Runs the table, without what has to be asked for.
pub(crate) fn everything() -> Result<()> {
    table(false)
}

fn table(full: bool) -> Result<()> {
    let prefix = Prefix::open()?;
    for runs in RUNS.iter().filter(|runs| full || !runs.full) {
        eprintln!("wine: {}", runs.name);
        if !tree::root().join(runs.needs).exists() {
            bail!(
                "wine: {} is missing; cure: bring it back, or take `{}` out of the table",
                runs.needs,
                runs.name
            );
        }
        let (verb, rest) = runs.args.split_at(1);
        let args = [verb, &OURS, rest].concat();
        run(&prefix, &args).with_context(|| format!("wine: {}", runs.name))?;
    }
    Ok(())
}

/// Runs a cargo command. Of tests the exit status says too little: see [`is_whole`].
fn run(prefix: &Prefix, args: &[&str]) -> Result<()> {
    let mut cargo = prefix.cargo(args);
    match args.first() {
        Some(&"test") => {
            let said = run::run_heard(&mut cargo, &tree::target_dir().join("wine/said"))?;
            is_whole(&said)
        }
        _ => run::run(&mut cargo),
    }
}

/// Fails if a list of tests was begun and not ended. cargo and rustdoc take a program that Wine's
/// debugger or the end of Wine's server ended for one that succeeded.
fn is_whole(said: &str) -> Result<()> {
    let begun = |line: &&str| {
        let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
        count.is_some_and(|(count, s)| count.parse::<u32>().is_ok() && ["", "s"].contains(&s))
    };
    let ended = |line: &&str| line.starts_with("test result: ");
    if said.lines().filter(begun).count() != said.lines().filter(ended).count() {
        bail!("one of the programs above ended before its tests");
    }
    Ok(())
}

fn one(args: &[&str]) -> Result<()> {
    run(&Prefix::open()?, args)
}

/// A Wine prefix with its server; dropping it ends that server and what runs on it, and no other.
pub(crate) struct Prefix {
    dir: PathBuf,
}

impl Prefix {
    /// Makes the prefix, or takes the one that is there if the same Wine made it.
    pub(crate) fn open() -> Result<Self> {
        let home = tree::target_dir().join("wine");
        let prefix = Self { dir: home.join("prefix") };
        let mark = home.join("made-by");
        let version = run::read(run::command("wine").arg("--version"))?;
        if std::fs::read_to_string(&mark).is_ok_and(|made| made == version) {
            prefix.serve();
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
        prefix.serve();
        Ok(prefix)
    }

    /// Has the server stay when nobody is there for a while. One that is just about to end refuses
    /// a program that comes ("recvmsg: Connection reset by peer").
    fn serve(&self) {
        // Where a server runs already, this one leaves; without any, the first program starts one. It keeps
        // its stderr.
        let mut server = self.command("wineserver", &["-p600"]);
        let _ = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// A program that sees this prefix. Neither the offer to download Mono nor Wine's own log is
    /// wanted.
    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut cmd = run::command(program);
        self.enter(&mut cmd);
        cmd.args(args);
        cmd
    }

    fn enter(&self, cmd: &mut Command) {
        cmd.env("WINEPREFIX", &self.dir).env("WINEDEBUG", "-all").env("WINEDLLOVERRIDES", "mscoree=;mshtml=");
    }

    /// A cargo command whose programs run under Wine, at most half an hour each.
    ///
    /// `setarch -R` switches address randomisation off: with it, one start in some hundreds fails
    /// in Wine.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let mut cmd = debian::cargo(args.first().unwrap_or(&"test"), &[TARGET]);
        self.enter(&mut cmd);
        cmd.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "timeout -k 5 1800 setarch -R wine");
        // Processes share what of a program begins at a page. The rest Wine reads into the memory of each
        // of them, what debuggers want as well.
        cmd.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS", "-C link-arg=-Wl,--file-alignment=4096");
        cmd.env("CARGO_PROFILE_DEV_STRIP", "debuginfo").env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
        cmd.args(args.get(1..).unwrap_or_default());
        cmd
    }
}

/// A program of ours that was built with `--release`.
pub(crate) fn released(name: &str) -> PathBuf {
    tree::target_dir().join(format!("cross/{TARGET}/release/{name}.exe"))
}

impl Drop for Prefix {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; without a server the command fails, and that is as it should
        // be.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_begin_and_do_not_end_are_seen() {
        let whole = "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed\n";
        assert!(is_whole("").is_ok() && is_whole(whole).is_ok() && is_whole(&whole.repeat(2)).is_ok());
        assert!(is_whole(&format!("running jobs\nrunning 2 jobs\n{whole}")).is_ok());
        assert!(is_whole(&format!("running 24 tests\ntest a ... ok\nwine: Unhandled\n{whole}")).is_err());
    }
}
