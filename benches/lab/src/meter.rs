//! Runs one program under `benches/peers/meter.c` and reads what it cost.

use crate::processes::started;
use crate::programs::{built, state};
use crate::samples::Numbers;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::run;

/// What one run cost.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    pub(crate) wall_us: f64,
    /// Processor time of the program and of all that was waited for below it.
    pub(crate) tree_us: f64,
    /// Processor time of the program that was started, alone, in ticks of the kernel.
    pub(crate) self_us: f64,
    pub(crate) status: i32,
    /// How many processes and threads the whole machine started meanwhile: at least one for every
    /// job.
    started: usize,
    errors: PathBuf,
}

impl Cost {
    /// Returns the cost if the program exited with 0 and can have run this number of jobs; otherwise an
    /// error with the program's message.
    pub(crate) fn checked(self, jobs: usize) -> Result<Self> {
        if self.status != 0 {
            let said = std::fs::read_to_string(&self.errors).unwrap_or_default();
            let first = said.lines().find(|l| !l.trim().is_empty()).unwrap_or("nothing on stderr");
            bail!("ended with {}: {}", self.status, first.trim());
        }
        if self.started < jobs {
            bail!("only {} processes were started for {jobs} jobs", self.started);
        }
        Ok(self)
    }

    /// Returns the numbers of a sample, with a prefix before their names.
    pub(crate) fn numbers(&self, prefix: &str) -> Numbers {
        let numbers = [
            ("wall_us", self.wall_us),
            ("tree_us", self.tree_us),
            ("self_us", self.self_us),
            ("status", self.status.into()),
        ];
        numbers.map(|(name, value)| (format!("{prefix}{name}"), value)).into()
    }
}

/// Runs `words` with `input` as standard input; output goes nowhere.
pub(crate) fn measure(words: &[String], input: &Path) -> Result<Cost> {
    measure_to(words, input, "/dev/null")
}

/// Runs `words` with `input` as standard input and the file `output` as standard output.
pub(crate) fn measure_to(words: &[String], input: &Path, output: &str) -> Result<Cost> {
    let before = started();
    run::finish(command(words, input)?.stdout(File::create(output)?))?;
    Ok(Cost { started: started() - before, ..read()? })
}

/// The metered command, ready to be started.
pub(crate) fn command(words: &[String], input: &Path) -> Result<Command> {
    let mut cmd = run::command(built("meter"));
    cmd.arg(built("cost")).args(words);
    cmd.stdin(File::open(input)?).stderr(File::create(built("errors"))?);
    cmd.env("XDG_STATE_HOME", state()).env("PARALLEL_HOME", state().join("gnu"));
    cmd.env("MINDER_STATE_DIR", state().join("minder"));
    // The same for all runners, whatever the user has set. GNU parallel would start the user's shell for
    // each job; the smaller shell is to its advantage. It reads options from the variable and from the
    // home directory.
    let home = state().join("home");
    std::fs::create_dir_all(&home)?;
    cmd.env("HOME", home).env("SHELL", "/bin/sh").env("PARALLEL_SHELL", "/bin/sh");
    cmd.env_remove("PARALLEL").env_remove("MAKEFLAGS").env_remove("XDG_CONFIG_HOME");
    cmd.env_remove("MINDER_BACKEND");
    Ok(cmd)
}

/// What the meter wrote when the command had ended.
pub(crate) fn read() -> Result<Cost> {
    let text = std::fs::read_to_string(built("cost")).context("the meter wrote nothing")?;
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [wall_us, tree_us, self_us, _maxrss, status] = numbers[..] else {
        bail!("the meter wrote `{}`", text.trim())
    };
    #[expect(clippy::cast_possible_truncation, reason = "an exit status is a small whole number")]
    let status = status as i32;
    Ok(Cost { wall_us, tree_us, self_us, status, started: 0, errors: built("errors").into() })
}
