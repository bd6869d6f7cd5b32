//! One mechanism that starts a child.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Instant;

use minder::{
    Child, ChildId, ChildSet, ChildSetOptions, Command, ErrorKind, Group, SpawnOptions, Stdio, Termination,
};

use crate::error::{Error, Result};
use crate::stopwatch::{CpuAndWall, Stopwatch};
use crate::sys::exit::EXIT_TIMEOUT;
use crate::sys::spawn as sys;

/// The names of the mechanisms of `minder`.
const COMMAND: &str = "minder";
const SET: &str = "set";

/// Returns the names that [`SpawnBench::new`] takes.
///
/// | name | where | how |
/// | --- | --- | --- |
/// | `minder` | everywhere | [`Command::spawn`], with a new session and a pidfd, or a new job object |
/// | `set` | everywhere | [`ChildSet::spawn`], the same, and watched; the set is made once |
/// | `posix_spawn` | Unix | `std::process::Command`, without a session and a pidfd, for which it would fork |
/// | `fork` | Unix | `std::process::Command` with `setsid` in `pre_exec`, which makes it fork; no pidfd |
/// | `std` | Windows | `std::process::Command`, without a console; no job object |
/// | `create-process` | Windows | `CreatePipe` twice and `CreateProcessW`, without a console |
///
/// With `create-process` the child has no job object, and inherits every inheritable handle.
///
/// ```
/// assert_eq!(minder_bench::spawns().next(), Some("minder"));
/// ```
pub fn spawns() -> impl Iterator<Item = &'static str> {
    [COMMAND, SET].into_iter().chain(sys::BASELINES.iter().copied())
}

/// Returns a command that exits at once: `true` on Unix, `cmd.exe /d /c exit` on Windows.
///
/// ```
/// assert!(minder_bench::short_command().spawn()?.wait()?.status.success());
/// # Ok::<(), minder::Error>(())
/// ```
#[must_use]
pub fn short_command() -> Command {
    let (program, args) = sys::SHORT_COMMAND;
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// A mechanism that starts a command, with two pipes (standard output and error) and an empty
/// input.
///
/// It measures the call alone, and the CPU time of this process alone. The child's way into its
/// program and its exit are not counted. Reading the clocks twice is part of the measurement, and
/// costs about half a microsecond. Where CPU time has a coarse resolution
/// ([`Stopwatch::CPU_RESOLUTION`]), a measurement needs many starts.
///
/// ```
/// use minder_bench::{Ballast, SpawnBench, short_command};
/// let _large = Ballast::new(10)?;
/// let mut bench = SpawnBench::new("minder", &short_command())?;
/// let time = bench.spawn()?;
/// println!("{:?} of CPU time", time.cpu);
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct SpawnBench {
    mechanism: Mechanism,
    command: Command,
}

#[derive(Debug)]
enum Mechanism {
    Command,
    Set(Box<ChildSet>),
    Baseline(Box<sys::SpawnBaseline>),
}

impl SpawnBench {
    /// Prepares to start the program and arguments of a command; its other settings are the same
    /// for all mechanisms. A name without a slash is looked up in `PATH` now, so that the lookup is
    /// not measured: [`Command::spawn`] looks it up at each start, and the standard library lets
    /// the child do so.
    ///
    /// # Errors
    /// `Unsupported` for a name that is not in [`spawns`].
    pub fn new(mechanism: &str, child: &Command) -> Result<Self> {
        let mut command = Command::new(find_in_path(child.get_program()));
        command.args(child.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.group(Group::Session).die_with_parent(true);
        let mechanism = match mechanism {
            COMMAND => Mechanism::Command,
            SET => Mechanism::Set(Box::new(ChildSet::new(ChildSetOptions::default())?)),
            name => match sys::SpawnBaseline::new(name, &command) {
                Ok(baseline) => Mechanism::Baseline(Box::new(baseline)),
                Err(error) => {
                    return Err(Error::from_io("open the mechanism", Some(OsStr::new(name)), &error));
                }
            },
        };
        Ok(Self { mechanism, command })
    }

    /// Starts a child and measures that. Then waits for its exit, which is not measured.
    ///
    /// # Errors
    /// As [`Command::spawn`]; `InvalidInput` if the child does not exit within ten seconds: it is
    /// killed.
    pub fn spawn(&mut self) -> Result<CpuAndWall> {
        let program = Some(self.command.get_program());
        let time;
        let exited;
        match &mut self.mechanism {
            Mechanism::Command => {
                let stopwatch = Stopwatch::start();
                let child = self.command.spawn()?;
                time = stopwatch.elapsed();
                exited = wait(child)?;
            }
            Mechanism::Set(set) => {
                let stopwatch = Stopwatch::start();
                let child = set.spawn(&self.command, SpawnOptions::default())?;
                time = stopwatch.elapsed();
                exited = wait_in_set(set, child)?;
            }
            Mechanism::Baseline(baseline) => {
                let failed = |error| Error::from_io("start", program, &error);
                let stopwatch = Stopwatch::start();
                baseline.spawn().map_err(failed)?;
                time = stopwatch.elapsed();
                exited = baseline.wait(EXIT_TIMEOUT).map_err(failed)?;
            }
        }
        if !exited {
            let reason = "it did not end within 10 seconds; what is measured needs a child that \
                          ends at once, such as `true`";
            return Err(Error::new(ErrorKind::InvalidInput, "take the end of", program, reason));
        }
        Ok(time)
    }
}

/// Returns the path of a program in `PATH`. A name that is not found there stays as it is: the start
/// reports it.
fn find_in_path(program: &OsStr) -> OsString {
    if Path::new(program).components().count() != 1 {
        return program.to_owned();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates = env::split_paths(&path).map(|dir| dir.join(program));
    candidates.find(|file| file.is_file()).map_or_else(|| program.to_owned(), PathBuf::into_os_string)
}

/// Waits for a child, kills it if it does not exit in time, and returns whether it exited by itself.
fn wait(mut child: Child) -> Result<bool> {
    // The child's output is not read: its writes fail from here on.
    drop((child.stdout.take(), child.stderr.take()));
    let exited = child.wait_timeout(EXIT_TIMEOUT)?.is_some();
    if !exited {
        child.kill(Termination::IMMEDIATE)?;
        child.wait_timeout(EXIT_TIMEOUT)?;
    }
    Ok(exited)
}

/// Does the same for the only child of a set.
fn wait_in_set(set: &mut ChildSet, child: ChildId) -> Result<bool> {
    let exited = wait_until_empty(set)?;
    if !exited {
        set.kill(child, Termination::IMMEDIATE)?;
        wait_until_empty(set)?;
    }
    Ok(exited)
}

/// Waits until a set is empty, and returns whether it became so in time.
fn wait_until_empty(set: &mut ChildSet) -> Result<bool> {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while !set.is_empty() && set.next_event_deadline(Some(deadline))?.into_event().is_some() {}
    Ok(set.is_empty())
}
