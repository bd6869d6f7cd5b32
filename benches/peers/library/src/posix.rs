//! `posix_spawn` and `pidfd_open` by hand: what a program without a library would call.

use anyhow::{Context, Result, ensure};
use nix::fcntl::OFlag;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use nix::unistd::Pid;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Starts one child after the other.
pub(crate) struct PosixSpawn {
    path: CString,
    args: [CString; 1],
    environment: Vec<CString>,
    attributes: PosixSpawnAttr,
    /// `true` if the input is `/dev/null` and the outputs are pipes; otherwise the streams are
    /// inherited.
    captures: bool,
}

impl PosixSpawn {
    /// Sets the attributes that a child of minder has: a new process group, no blocked signal, and
    /// the default action for `SIGPIPE`, which Rust ignores.
    pub(crate) fn new(program: &OsStr, captures: bool) -> Result<Self> {
        let path = CString::new(program.as_bytes())?;
        let mut attributes = PosixSpawnAttr::init()?;
        let group = PosixSpawnFlags::POSIX_SPAWN_SETPGROUP;
        let signals = PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF;
        attributes.set_flags(group | signals)?;
        attributes.set_pgroup(Pid::from_raw(0))?;
        attributes.set_sigmask(&SigSet::empty())?;
        let mut default = SigSet::empty();
        default.add(Signal::SIGPIPE);
        attributes.set_sigdefault(&default)?;
        let variable = |(mut name, value): (std::ffi::OsString, std::ffi::OsString)| {
            name.push("=");
            name.push(value);
            CString::new(name.into_vec())
        };
        let environment = std::env::vars_os().map(variable).collect::<Result<_, _>>()?;
        Ok(Self { args: [path.clone()], path, environment, attributes, captures })
    }

    /// Starts a child, waits until it exits, and closes what is left of it.
    pub(crate) fn run(&self) -> Result<()> {
        let mut actions = PosixSpawnFileActions::init()?;
        let pipes = if self.captures { Some((pipe()?, pipe()?)) } else { None };
        if let Some((stdout, stderr)) = &pipes {
            actions.add_open(0, c"/dev/null", OFlag::O_RDONLY, Mode::empty())?;
            actions.add_dup2(stdout.1.as_raw_fd(), 1)?;
            actions.add_dup2(stderr.1.as_raw_fd(), 2)?;
        }
        let pid = posix_spawn(&*self.path, &actions, &self.attributes, &self.args, &self.environment)?;
        let _readers = pipes.map(|(stdout, stderr)| (stdout.0, stderr.0));
        let pid = rustix::process::Pid::from_raw(pid.as_raw()).context("a pid of 0")?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        let exit = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)?.context("no exit")?;
        ensure!(exit.exit_status() == Some(0), "the child failed");
        Ok(())
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}
