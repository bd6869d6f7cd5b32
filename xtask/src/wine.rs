//! Builds the Windows half and runs it under Wine, in a separate prefix.
//!
//! Wine shows behaviour and counts. It shows neither absolute times nor the newest system calls of
//! Windows: `docs/windows.md` lists what is to be seen there.

pub(crate) mod modules;

use crate::{debian, install, run, tree};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
const GCC: &str = "x86_64-w64-mingw32-gcc";
const PACKAGES: [&str; 3] = ["wine", "wine64", "gcc-mingw-w64-x86-64-win32"];

/// The packages with code for Windows alone, and the one whose files other processes lock.
const DIFFERING: [&str; 5] = ["minder-os", "minder", "minder-cells", "minder-bench", "minder-record"];
/// The other packages.
const PORTABLE: [&str; 5] = ["minder-template", "minder-runner", "minder-ui", "minder-lab", "minder-cli"];

/// The selection of tests that run.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum Extent {
    /// Tests of code that differs on Windows; see [`modules`].
    Differing,
    /// All tests but those of thousands of children.
    All,
    /// All tests.
    Long,
}

/// The commands that run, in order. All of it has to exist: a test that vanished is a failure.
///
/// All use `cargo test`: with `cargo build` the standard library has no crate `test`, and cargo would
/// build every package once more.
const RUNS: [Runs; 6] = [
    Runs {
        name: "unit tests of code that differs on Windows",
        needs: "crates/minder/src/lib.rs",
        packages: &DIFFERING,
        args: &["--lib"],
        from: Extent::Differing,
    },
    Runs {
        name: "unit tests of other code",
        needs: "crates/minder-cli/src/lib.rs",
        packages: &PORTABLE,
        args: &["--lib"],
        from: Extent::All,
    },
    Runs {
        name: "doc tests",
        needs: "crates/minder/src/lib.rs",
        packages: &["minder-os", "minder", "minder-bench", "minder-record", "minder-template"],
        args: &["--doc"],
        from: Extent::All,
    },
    Runs {
        name: "the examples, which the tests run",
        needs: "crates/minder/examples/hundred.rs",
        packages: &["minder"],
        args: &["--examples", "--no-run"],
        from: Extent::Differing,
    },
    Runs {
        name: "black-box tests",
        needs: "tests/it/windows.rs",
        packages: &["minder-tests"],
        args: &["--test", "it", "--", THREADS],
        from: Extent::Differing,
    },
    Runs {
        name: "black-box tests of 2048 and 3600 children",
        needs: "tests/it/windows.rs",
        packages: &["minder-tests"],
        args: &[
            "--test",
            "it",
            "--",
            "windows::set_handles_",
            "--ignored",
            "--test-threads=1",
            "--nocapture",
        ],
        from: Extent::Long,
    },
];

/// The tests wait for processes more than they compute: they have more threads than a small machine
/// has cores.
const THREADS: &str = "--test-threads=4";

/// One cargo command, and the file without which it would test nothing.
struct Runs {
    name: &'static str,
    needs: &'static str,
    packages: &'static [&'static str],
    /// The arguments of `cargo test` after the packages.
    args: &'static [&'static str],
    /// The smallest extent that includes it.
    from: Extent,
}

/// Rust's standard library imports `ProcessPrng`, which Wine has since about version 9. Older ones get
/// this stub.
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
        [] => run_tests(Extent::All).map(drop),
        [flag] if flag == "--full" => run_tests(Extent::Long).map(drop),
        args => one(args.iter().map(String::as_str).collect::<Vec<_>>().as_slice()),
    }
}

/// Installs Wine and the compilers if they are missing.
pub fn ready() -> Result<(), install::Missing> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        return Err("Wine is used on Linux x86-64 only; hint: run it there".into());
    }
    debian::ready()?;
    let here = ["wine", "wineserver", GCC].iter().all(|p| run::find(p).is_some());
    if here { Ok(()) } else { install::apt(&PACKAGES) }
}

/// Runs the tests of an extent; returns the output of the test programs.
pub(crate) fn run_tests(extent: Extent) -> Result<String> {
    let prefix = Prefix::open()?;
    let mut output = String::new();
    let skips: Vec<String> =
        modules::PORTABLE.iter().map(|(module, _)| format!("--skip={module}::")).collect();
    for runs in RUNS.iter().filter(|runs| runs.from <= extent) {
        eprintln!("wine: {}", runs.name);
        if !tree::root().join(runs.needs).exists() {
            bail!(
                "wine: {} is missing; hint: bring it back, or take `{}` out of the table",
                runs.needs,
                runs.name
            );
        }
        let mut args = vec!["test"];
        args.extend(runs.packages.iter().flat_map(|package| ["-p", package]));
        args.extend(runs.args);
        if extent == Extent::Differing && runs.args.contains(&THREADS) {
            args.extend(skips.iter().map(String::as_str));
        }
        output.push_str(&run(&prefix, &args).with_context(|| format!("wine: {}", runs.name))?);
    }
    Ok(output)
}

/// Runs a cargo command; returns the output of tests. Their exit status is not enough: see
/// [`check_whole`].
fn run(prefix: &Prefix, args: &[&str]) -> Result<String> {
    let mut cargo = prefix.cargo(args);
    if args.first() != Some(&"test") {
        return run::run(&mut cargo).map(|()| String::new());
    }
    let output = run::run_captured(&mut cargo, &tree::target_dir().join("wine/output"))?;
    check_whole(&output)?;
    Ok(output)
}

/// Fails if a list of tests has a first line and no last one. cargo and rustdoc report success for a
/// program that Wine's debugger or the end of Wine's server has ended.
fn check_whole(output: &str) -> Result<()> {
    let begun = |line: &&str| {
        let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
        count.is_some_and(|(count, s)| count.parse::<u32>().is_ok() && ["", "s"].contains(&s))
    };
    let ended = |line: &&str| line.starts_with("test result: ");
    if output.lines().filter(begun).count() != output.lines().filter(ended).count() {
        bail!("one of the programs above ended before its tests");
    }
    Ok(())
}

fn one(args: &[&str]) -> Result<()> {
    run(&Prefix::open()?, args).map(drop)
}

/// A Wine prefix with its server. Dropping it ends that server and its programs; other prefixes are
/// left alone.
#[derive(Debug)]
pub struct Prefix {
    dir: PathBuf,
}

impl Prefix {
    /// Opens the existing prefix if the same version of Wine made it; otherwise makes a new one.
    pub fn open() -> Result<Self> {
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

    /// Makes the server stay for a while without programs. A server that is about to exit refuses a
    /// program that starts ("recvmsg: Connection reset by peer").
    fn serve(&self) {
        // If a server runs already, this one exits; without any, the first program starts one. The server
        // would keep our stderr open.
        let mut server = self.command("wineserver", &["-p600"]);
        let _ = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// Returns a command in this prefix, without Wine's log and its offer to download Mono.
    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut cmd = run::command(program);
        self.enter(&mut cmd);
        cmd.args(args);
        cmd
    }

    fn enter(&self, cmd: &mut Command) {
        cmd.env("WINEPREFIX", &self.dir).env("WINEDEBUG", "-all").env("WINEDLLOVERRIDES", "mscoree=;mshtml=");
    }

    /// Returns a cargo command whose programs run under Wine, at most half an hour each.
    ///
    /// `setarch -R` turns address randomisation off, which makes one start in some hundreds fail under
    /// Wine.
    pub fn cargo(&self, args: &[&str]) -> Command {
        let mut cmd = cargo(args.first().unwrap_or(&"test"));
        self.enter(&mut cmd);
        cmd.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "timeout -k 5 1800 setarch -R wine");
        cmd.args(args.get(1..).unwrap_or_default());
        cmd
    }
}

/// Returns `cargo VERB` for Windows, without Wine. What it builds is shared by all commands of this
/// function; more arguments may follow.
pub fn cargo(verb: &str) -> Command {
    let mut cmd = debian::cargo(verb, &[TARGET]);
    // Processes share the sections of a program that begin at a page. Wine reads the others into the
    // memory of each process, debugging information too.
    cmd.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS", "-C link-arg=-Wl,--file-alignment=4096");
    cmd.env("CARGO_PROFILE_DEV_STRIP", "debuginfo").env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    cmd.env("CARGO_PROFILE_DEV_DEBUG", "none");
    // The features of a dependency do not depend on the packages of a command: nothing is built
    // twice.
    cmd.args(["-Z", "feature-unification", "--config", "resolver.feature-unification=\"workspace\""]);
    cmd
}

/// Returns the path of a program that was built with `--release`.
pub fn released(name: &str) -> PathBuf {
    tree::target_dir().join(format!("cross/{TARGET}/release/{name}.exe"))
}

impl Drop for Prefix {
    fn drop(&mut self) {
        // The command fails without a server, which is expected; other failures are ignored.
        let _ = self.command("timeout", &["20", "wineserver", "-k"]).output();
    }
}

fn stub(home: &Path) -> Result<PathBuf> {
    let source = home.join("bcryptprimitives.c");
    let dll = home.join("bcryptprimitives.dll");
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
        assert!(
            check_whole("").is_ok() && check_whole(whole).is_ok() && check_whole(&whole.repeat(2)).is_ok()
        );
        assert!(check_whole(&format!("running jobs\nrunning 2 jobs\n{whole}")).is_ok());
        assert!(check_whole(&format!("running 24 tests\ntest a ... ok\nwine: Unhandled\n{whole}")).is_err());
    }
}
