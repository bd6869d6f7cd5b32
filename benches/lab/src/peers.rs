//! The runners that are compared, and the children that they run.
//!
//! A runner that is not there, or that cannot run three jobs, is left out, and the report says so.

use super::meter;
use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use xtask::{install, run, tree};

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
    pub(crate) fn version(self, peers: &Peers) -> Option<Vec<String>> {
        let program = match self {
            Self::Raw => return None,
            _ => self.words(peers, 1, "").swap_remove(0),
        };
        Some(vec![program, "--version".into()])
    }

    /// The command line that runs `child` for each line, `at_once` at a time.
    pub(crate) fn words(self, peers: &Peers, at_once: usize, child: &str) -> Vec<String> {
        let line = match self {
            Self::Raw => format!("{} -j{at_once} {child}", peers.built("rawvfork")),
            Self::Minder => format!("{} run -j{at_once} {child} {{}}", peers.minder.display()),
            Self::Xargs => format!("xargs -P{at_once} -n1 {child}"),
            Self::RustParallel => format!("{} -j{at_once} {child}", peers.built("bin/rust-parallel")),
            Self::Gnu => format!("parallel --will-cite -j{at_once} {child} {{}}"),
        };
        line.split(' ').map(String::from).collect()
    }
}

/// What is there to be compared.
pub(crate) struct Peers {
    dir: PathBuf,
    minder: PathBuf,
    /// The runners that work here.
    pub(crate) runners: Vec<Runner>,
    /// One line for each that does not.
    pub(crate) left_out: Vec<String>,
}

impl Peers {
    /// Builds and installs what is needed, and tries every runner on three jobs.
    pub(crate) fn ready() -> Result<Self> {
        let mut peers = Self::none()?;
        peers.compile()?;
        let mut failed = Vec::new();
        let minder = peers.build_minder();
        failed.extend(peers.rust_parallel().err().map(|why| format!("rust-parallel: {why:#}")));
        if run::find("parallel").is_none() {
            failed.extend(install::apt(&["parallel"]).err().map(|why| format!("GNU parallel: {why}")));
        }
        for runner in Runner::ALL {
            // Without a fresh build, the target directory may have an older program.
            let stale = if runner == Runner::Minder { minder.as_ref().err() } else { None };
            match stale.map_or_else(|| peers.works(runner), |why| Err(anyhow!("{why:#}"))) {
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
        peers.build_minder()?;
        Ok(peers)
    }

    /// Returns minder, freshly built, and the C programs: the loop, the children and the meter.
    pub(crate) fn with_floor() -> Result<Self> {
        let peers = Self::none()?;
        peers.compile()?;
        peers.build_minder()?;
        Ok(peers)
    }

    /// No runner yet, and no minder that was built here.
    pub(crate) fn none() -> Result<Self> {
        let dir = tree::target_dir().join("peers");
        std::fs::create_dir_all(&dir)?;
        let minder = tree::target_dir().join(format!("release/minder{}", std::env::consts::EXE_SUFFIX));
        Ok(Self { dir, minder, runners: Vec::new(), left_out: Vec::new() })
    }

    /// The command that people use, as it was built here.
    pub(crate) fn minder(&self) -> &Path {
        &self.minder
    }

    /// The path of something that was built here.
    pub(crate) fn built(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Returns the directory of the runners' journals and settings; those of the user stay unchanged.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// A file with these lines, to be somebody's standard input.
    pub(crate) fn input(&self, lines: impl Iterator<Item = String>) -> Result<PathBuf> {
        let path = self.dir.join("input");
        let text: String = lines.map(|l| l + "\n").collect();
        std::fs::write(&path, text)?;
        Ok(path)
    }

    fn compile(&self) -> Result<()> {
        let from = tree::root().join("benches/peers");
        for (name, flags) in
            [("tiny", &["-nostdlib"][..]), ("child", &["-nostdlib"]), ("rawvfork", &[]), ("meter", &[])]
        {
            let mut cc = run::command("cc");
            cc.args(["-O2", "-static"]).args(flags).arg("-o").arg(self.dir.join(name));
            cc.arg(from.join(format!("{name}.c")));
            run::read(&mut cc).context("the C programs of benches/peers do not build; cure: a C compiler")?;
        }
        Ok(())
    }

    fn build_minder(&self) -> Result<()> {
        run::run(run::cargo().args(["build", "--release", "--package", "minder-cli", "--bin", "minder"]))
    }

    fn rust_parallel(&self) -> Result<()> {
        let exact = format!("rust-parallel {RUST_PARALLEL}");
        let told = run::read(run::command(self.built("bin/rust-parallel")).arg("--version"));
        if told.is_ok_and(|version| version.trim() == exact) {
            return Ok(());
        }
        let mut cmd = run::cargo();
        cmd.args(["install", "rust-parallel", "--version", RUST_PARALLEL, "--locked", "--root"])
            .arg(&self.dir);
        run::run(cmd.arg("--target-dir").arg(self.dir.join("build")))
    }

    /// Whether a runner runs three jobs and, unless it streams to one place anyway, hands on what
    /// they wrote.
    fn works(&self, runner: Runner) -> Result<()> {
        let input = self.input(std::iter::repeat_n("p0".to_string(), 3))?;
        let cost = meter::measure_to(
            self,
            &runner.words(self, 2, &self.built("child")),
            &input,
            &self.built("output"),
        )?;
        cost.checked(3)?;
        let lines = std::fs::read_to_string(self.built("output"))?.lines().count();
        if lines != 6 {
            bail!("three jobs of two lines gave {lines}");
        }
        Ok(())
    }
}
