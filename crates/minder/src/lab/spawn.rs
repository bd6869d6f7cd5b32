//! What it costs to start a child, by the size of its parent.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Meter, Spent};
use crate::command::{Command, Group, Stdio};
use crate::event::Token;
use crate::set::{ChildSet, ChildSetConfig, SpawnOptions};
use crate::sys::lab::exit::PATIENCE;
use crate::sys::lab::spawn as sys;
use crate::{Child, Error, ErrorKind, Result, Termination};

/// The names of ours.
const LONE: &str = "minder";
const SET: &str = "set";

/// The names that [`Spawns::new`] takes.
///
/// | name | where | how |
/// | --- | --- | --- |
/// | `minder` | everywhere | [`Command::spawn`], with a session of its own and a pidfd; on Windows with a job of its own |
/// | `set` | everywhere | [`ChildSet::spawn`], the same, and watched; what serves all children is made once |
/// | `posix_spawn` | Unix | `std::process::Command`; it gives the child no session and no pidfd, since it could not do so without a fork |
/// | `fork` | Unix | `std::process::Command` with `setsid` in `pre_exec`, which makes it fork; no pidfd |
/// | `std` | Windows | `std::process::Command`, without a console; no job |
/// | `create-process` | Windows | `CreatePipe` twice and `CreateProcessW`, without a console; no job, and the child inherits whatever can be inherited |
pub fn spawns() -> impl Iterator<Item = &'static str> {
    [LONE, SET].into_iter().chain(sys::BASELINES.iter().copied())
}

/// A command that ends at once, on every system.
#[must_use]
pub fn brief() -> Command {
    let (program, args) = sys::BRIEF;
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Memory that makes this process as large as a parent may be: mapped, written to, in pages of the
/// smallest size. It is given back when this is dropped.
#[derive(Debug)]
pub struct Ballast {
    _memory: sys::Ballast,
}

impl Ballast {
    /// Takes so many MiB.
    ///
    /// # Errors
    /// As [`fits`](Self::fits), and what the system says.
    pub fn new(mib: u64) -> Result<Self> {
        let bytes = Self::fits(mib)?;
        Ok(Self { _memory: sys::Ballast::new(bytes).map_err(|error| too_large(mib, error))? })
    }

    /// How many bytes that are, if the machine has so much free memory and 256 MiB besides, as far
    /// as it tells (Linux); what a container may have is not looked at.
    ///
    /// # Errors
    /// `Exhausted`; `InvalidInput` for 0.
    pub fn fits(mib: u64) -> Result<usize> {
        const SPARE: u64 = 256 << 20;
        let bytes = mib.checked_mul(1 << 20).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| too_large(mib, io::ErrorKind::OutOfMemory.into()))?;
        if bytes == 0 {
            return Err(too_large(mib, io::ErrorKind::InvalidInput.into()));
        }
        match minder_os::host_stats::memory() {
            Ok(memory) if memory.available < (bytes as u64).saturating_add(SPARE) => {
                let why = "this machine has not that much free memory and 256 MiB besides";
                Err(too_large(mib, io::ErrorKind::OutOfMemory.into()).with_kind(ErrorKind::Exhausted, why))
            }
            _ => Ok(bytes),
        }
    }
}

fn too_large(mib: u64, error: io::Error) -> Error {
    Error::new("make a parent of", error).with_subject(format!("{mib} MiB"))
}

/// One way to start a command, with two pipes (standard output and error) and an empty input.
///
/// What is measured is the call alone, by the CPU time of this process: the child's way into its
/// program, and its end, are its own. Two looks at the clock, of half a microsecond together, are
/// within the figure. Where CPU time goes on in steps ([`Meter::TICK`]), many starts are needed for
/// a figure that means something.
///
/// ```
/// use minder::lab::{Ballast, Spawns, brief};
/// let _large = Ballast::new(10)?;
/// let mut spawns = Spawns::new("minder", &brief())?;
/// let spent = spawns.spawn()?;
/// println!("{:?} of CPU", spent.cpu);
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug)]
pub struct Spawns {
    mechanism: Mechanism,
    command: Command,
}

#[derive(Debug)]
enum Mechanism {
    Lone,
    Set(Box<ChildSet>),
    Baseline(Box<sys::Baseline>),
}

impl Spawns {
    /// Prepares to start this command: its program and its arguments; the rest is the same for all.
    /// A name without a slash is looked up in `PATH` now, so that this is no part of what is
    /// measured: [`Command::spawn`] does so at each start, and the standard library has the
    /// child do it.
    ///
    /// # Errors
    /// `Unsupported` for a name that is not among [`spawns`].
    pub fn new(mechanism: &str, child: &Command) -> Result<Self> {
        let refused = |error| Error::new("open the mechanism", error).with_subject(mechanism);
        let mut command = Command::new(found(&child.program));
        command.args(&child.args).stdin(Stdio::Null).stdout(Stdio::Piped).stderr(Stdio::Piped);
        command.group(Group::Session).die_with_parent(true);
        let mechanism = match mechanism {
            LONE => Mechanism::Lone,
            SET => Mechanism::Set(Box::new(ChildSet::new(ChildSetConfig::default())?)),
            name => Mechanism::Baseline(Box::new(sys::Baseline::new(name, &command).map_err(refused)?)),
        };
        Ok(Self { mechanism, command })
    }

    /// Starts one child and measures that; then waits for its end, which is not measured.
    ///
    /// # Errors
    /// As [`Command::spawn`]; `InvalidInput` for a child that does not end within ten seconds: it
    /// is killed.
    pub fn spawn(&mut self) -> Result<Spent> {
        let start = |error| Error::new("start", error).with_subject(self.command.get_program());
        let (spent, ended) = match &mut self.mechanism {
            Mechanism::Lone => {
                let meter = Meter::start();
                let child = self.command.spawn()?;
                let spent = meter.spent();
                (spent, wait(child)?)
            }
            Mechanism::Set(set) => {
                let meter = Meter::start();
                let token = set.spawn(&self.command, SpawnOptions::default())?;
                let spent = meter.spent();
                (spent, wait_in(set, token)?)
            }
            Mechanism::Baseline(baseline) => {
                let meter = Meter::start();
                baseline.spawn().map_err(start)?;
                let spent = meter.spent();
                (spent, baseline.wait(Instant::now() + PATIENCE).map_err(start)?)
            }
        };
        if !ended {
            let why = "it did not end within 10 seconds; what is measured needs a child that ends at once, such as `true`";
            return Err(Error::of_kind(ErrorKind::InvalidInput, "take the end of", why)
                .with_subject(self.command.get_program()));
        }
        Ok(spent)
    }
}

/// The program's path, if it is in `PATH`; who starts it says what is wrong if it is not.
fn found(program: &OsStr) -> OsString {
    let named = Path::new(program).components().count() == 1;
    let folders = env::var_os("PATH").filter(|_| named).unwrap_or_default();
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(program));
    paths.find(|path| path.is_file()).map_or_else(|| program.to_owned(), PathBuf::into_os_string)
}

/// Whether the child ended in time; it is killed if it did not.
fn wait(mut child: Child) -> Result<bool> {
    // Nobody reads what it writes.
    drop((child.take_stdout(), child.take_stderr()));
    let ended = child.wait_timeout(PATIENCE)?.is_some();
    if !ended {
        child.kill(Termination::IMMEDIATE)?;
        child.wait_timeout(PATIENCE)?;
    }
    Ok(ended)
}

/// The same in a set.
fn wait_in(set: &mut ChildSet, token: Token) -> Result<bool> {
    let ended = empty(set)?;
    if !ended {
        set.kill(token, Termination::IMMEDIATE)?;
        empty(set)?;
    }
    Ok(ended)
}

/// Whether all children of a set ended in time.
fn empty(set: &mut ChildSet) -> Result<bool> {
    let until = Instant::now() + PATIENCE;
    while !set.is_empty() && set.next(Some(until))?.is_some() {}
    Ok(set.is_empty())
}
