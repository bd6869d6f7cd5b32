//! The runners that are compared, and the children that they run.
//!
//! A runner that is not there, or that cannot run three jobs, is left out, and the report says so.

use crate::meter;
use crate::programs::{self, built, compile, minder};
use anyhow::{Result, anyhow, bail};
use xtask::{install, run};

/// The release of rust-parallel that figures were drawn with.
const RUST_PARALLEL: &str = "1.24.0";

/// A program that runs a command for each line of its standard input, with the line as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// One thread, vfork and exec: the floor.
    Raw,
    Minder,
    Xargs,
    RustParallel,
    Gnu,
}

impl AsRef<str> for Runner {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl Runner {
    /// All, in the order of every round.
    pub(crate) const ALL: [Self; 5] = [Self::Raw, Self::Minder, Self::RustParallel, Self::Xargs, Self::Gnu];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw vfork",
            Self::Minder => "minder run",
            Self::Xargs => "xargs -n1",
            Self::RustParallel => "rust-parallel",
            Self::Gnu => "GNU parallel",
        }
    }

    /// The most jobs worth waiting for: GNU parallel needs milliseconds for each.
    pub(crate) fn jobs_max(self) -> usize {
        if self == Self::Gnu { 400 } else { usize::MAX }
    }

    /// The words that ask for its version.
    pub(crate) fn version(self) -> Option<Vec<String>> {
        let program = match self {
            Self::Raw => return None,
            _ => self.words(1, "").swap_remove(0),
        };
        Some(vec![program, "--version".into()])
    }

    /// The command line that runs `child` for each line, `at_once` at a time.
    pub(crate) fn words(self, at_once: usize, child: &str) -> Vec<String> {
        let line = match self {
            Self::Raw => format!("{} -j{at_once} {child}", built("rawvfork")),
            Self::Minder => format!("{} run -j{at_once} {child} {{}}", minder().display()),
            Self::Xargs => format!("xargs -P{at_once} -n1 {child}"),
            Self::RustParallel => format!("{} -j{at_once} {child}", built("bin/rust-parallel")),
            Self::Gnu => format!("parallel --will-cite -j{at_once} {child} {{}}"),
        };
        line.split(' ').map(String::from).collect()
    }
}

/// What is there to be compared.
#[derive(Default)]
pub(crate) struct Peers {
    /// The runners that work here.
    pub(crate) runners: Vec<Runner>,
    /// One line for each that does not.
    pub(crate) left_out: Vec<String>,
}

impl Peers {
    /// Builds and installs what is needed, and tries every runner on three jobs.
    pub(crate) fn ready() -> Result<Self> {
        let mut peers = Self::none()?;
        compile_all()?;
        let mut failed = Vec::new();
        let minder = Self::build_minder();
        failed.extend(Self::rust_parallel().err().map(|why| format!("rust-parallel: {why:#}")));
        if run::find("parallel").is_none() {
            failed.extend(install::apt(&["parallel"]).err().map(|why| format!("GNU parallel: {why}")));
        }
        for runner in Runner::ALL {
            // Without a fresh build, the target directory may have an older program.
            let stale = if runner == Runner::Minder { minder.as_ref().err() } else { None };
            match stale.map_or_else(|| Self::works(runner), |why| Err(anyhow!("{why:#}"))) {
                Ok(()) => peers.runners.push(runner),
                Err(why) => peers.left_out.push(format!("left out: {}: {why:#}", runner.name())),
            }
        }
        for why in failed {
            eprintln!("bench: {why}");
        }
        Ok(peers)
    }

    /// Only minder, freshly built: for what is not about runners.
    pub(crate) fn of_minder_alone() -> Result<Self> {
        let peers = Self::none()?;
        Self::build_minder()?;
        Ok(peers)
    }

    /// Returns minder, freshly built, and the C programs: the loop, the children and the meter.
    pub(crate) fn with_floor() -> Result<Self> {
        let peers = Self::none()?;
        compile_all()?;
        Self::build_minder()?;
        Ok(peers)
    }

    /// No runner yet, and no minder that was built here.
    pub(crate) fn none() -> Result<Self> {
        std::fs::create_dir_all(built(""))?;
        Ok(Self::default())
    }

    fn build_minder() -> Result<()> {
        run::run(run::cargo().args(["build", "--release", "--package", "minder-cli", "--bin", "minder"]))
    }

    fn rust_parallel() -> Result<()> {
        let exact = format!("rust-parallel {RUST_PARALLEL}");
        let printed = run::read(run::command(built("bin/rust-parallel")).arg("--version"));
        if printed.is_ok_and(|version| version.trim() == exact) {
            return Ok(());
        }
        let mut cmd = run::cargo();
        cmd.args(["install", "rust-parallel", "--version", RUST_PARALLEL, "--locked", "--root"])
            .arg(built(""));
        run::run(cmd.arg("--target-dir").arg(built("build")))
    }

    /// Whether a runner runs three jobs and, unless it streams to one place anyway, hands on what
    /// they wrote.
    fn works(runner: Runner) -> Result<()> {
        let input = programs::input(std::iter::repeat_n("p0".to_string(), 3))?;
        let words = runner.words(2, &built("child"));
        meter::measure_to(&words, &input, &built("output"))?.checked(3)?;
        let lines = std::fs::read_to_string(built("output"))?.lines().count();
        if lines != 6 {
            bail!("three jobs of two lines gave {lines}");
        }
        Ok(())
    }
}

/// Compiles the loop, the children and the meter.
fn compile_all() -> Result<()> {
    for name in ["tiny", "child"] {
        compile(name, &["-static", "-nostdlib"], &[])?;
    }
    for name in ["rawvfork", "meter"] {
        compile(name, &["-static"], &[])?;
    }
    Ok(())
}
