//! `minder relay`: runs one command in front of a slow reader.
//!
//! The main thread reads the output of the child into an [`OutputBuffer`] and handles signals. A second
//! thread writes the output: it may wait for the reader for as long as it likes. With `--pty` a third
//! thread passes on the input; without it the child inherits the input.
//!
//! Blocking writes need a thread. A non-blocking stream would need none, but the flag belongs to the open
//! file: it would change for every process that shares the stream.

mod buffer;
mod streams;
mod window;
mod session;
mod forward;

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use anyhow::{Context, Result};
use minder::guard::{GuardOptions, Guardian, GuardianOptions, ProcessGuard};
use minder::{Command, Descriptors, ErrorKind, Group, Size, Stdio};
use minder_os::stdio::{StdStream, close_std, stderr_is_stdout};
use minder_os::terminal::has_controlling_terminal;

use self::buffer::OutputBuffer;
use self::session::Session;
use self::window::own_terminal_size;
use crate::flags::RelayFlags;
use crate::ui::message;

/// The argument by which minder is started as the guardian of a relay, after the name of the subcommand.
const GUARDIAN_ARG: &str = "--run-guardian";
/// The exit statuses of env(1) and of POSIX shells for a command that cannot be started.
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Returns whether these are the arguments of the guardian of a relay.
pub(crate) fn is_guardian(args: &[OsString]) -> bool {
    let is = |at: usize, text: &str| args.get(at).is_some_and(|arg| arg == text);
    args.len() == 3 && is(1, "relay") && is(2, GUARDIAN_ARG)
}

/// Runs the command. Returns only if it cannot be started.
pub(crate) fn run(flags: &RelayFlags) -> Result<ExitCode> {
    // Runs before any file is opened: inherited descriptors are identified by their numbers.
    let descriptors = Descriptors::inherited();
    let guard = ProcessGuard::install(&GuardOptions::new().guardians(false))?;
    let buffer = OutputBuffer::new(flags.buffer)?;
    let (program, args) = flags.command.split_first().context("no command given")?;
    let mut command = Command::new(program);
    command.args(args).descriptors(&descriptors).stdout(Stdio::piped());
    command.stdin(if flags.pty { Stdio::piped() } else { Stdio::inherit() });
    // After `2>&1` both go through the same buffer, so that they stay in order. A terminal shows them at
    // once in any case, and programs look whether their errors go to one.
    if stderr_is_stdout() && !io::stderr().is_terminal() {
        command.stderr_to_stdout();
    }
    // With a controlling terminal, the child shares our process group. The terminal, its keys and the
    // job control of the shell then treat both alike, and the other processes of the pipeline as well.
    let shares_group = !flags.pty && has_controlling_terminal();
    if flags.pty {
        command.group(Group::Terminal(terminal_size(flags)));
    } else if shares_group {
        command.group(Group::Inherit);
    }
    // It is not dropped if an error ends this process: then the guardian kills the child.
    let guardian = ManuallyDrop::new(start_guardian(shares_group));
    let spawned = match &*guardian {
        Some(guardian) => guardian.spawn(&command),
        None => command.spawn(),
    };
    let child = match spawned {
        Ok(child) => child,
        Err(error) => return cannot_start(program, error),
    };
    if !flags.pty {
        // The process that writes to us gets a broken pipe when the child closes its input.
        let _ = close_std(StdStream::Input);
    }
    let session = Session::new(guard, child, flags, shares_group, buffer);
    let status = session.with_context(|| format!("cannot relay `{}`", program.display()))?.run()?;
    // The guardian leaves alone what the child has left running.
    drop(ManuallyDrop::into_inner(guardian));
    status.exit_process()
}

/// Starts the process that kills the child after a `kill -9` of this one: minder itself. With `tag`, it
/// recognises what the child started without a separate group.
fn start_guardian(tag: bool) -> Option<Guardian> {
    let program = std::env::current_exe();
    let config = GuardianOptions::new().arg("relay").arg(GUARDIAN_ARG).tag(tag);
    let started = match program {
        Ok(program) => Guardian::start(&config.program(program)).map_err(|error| error.reason()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(reason) = &started {
        message(&format!("a kill -9 of minder would leave the command running: no guardian: {reason}"));
    }
    started.ok()
}

/// Returns the size of the new terminal: as the flags say, else that of our own, else the usual one.
fn terminal_size(flags: &RelayFlags) -> Size {
    let own = own_terminal_size().unwrap_or_default();
    Size::new(flags.rows.unwrap_or(own.rows), flags.columns.unwrap_or(own.columns))
}

/// Prints why the command cannot be started.
fn cannot_start(program: &OsStr, error: minder::Error) -> Result<ExitCode> {
    let status = match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::PermissionDenied | ErrorKind::TooLong | ErrorKind::Other => CANNOT_EXECUTE,
        ErrorKind::Unsupported => {
            return Err(error).context("cannot start the command (--pty needs Linux, macOS or FreeBSD)");
        }
        _ => return Err(error.into()),
    };
    message(&format!("cannot start `{}`: {}", program.display(), error.reason()));
    Ok(ExitCode::from(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guardian_has_exact_arguments() {
        let is = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            is_guardian(&args)
        };
        assert!(is("minder relay --run-guardian") && !is("minder relay --run-guardian x"));
        assert!(!is("minder relay") && !is("minder run --run-guardian"));
    }
}
