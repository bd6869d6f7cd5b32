//! Starting children by the standard library and by the bare call, and a parent of a given size, on
//! Windows.

#![expect(unsafe_code, reason = "CreatePipe and CreateProcessW")]

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsHandle, AsRawHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::process::{Command as StdCommand, Stdio};
use std::ptr::{null, null_mut};
use std::time::Instant;

use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::System::Pipes::CreatePipe;
use windows_sys::Win32::System::Threading::{
    CreateProcessW, DETACHED_PROCESS, PROCESS_INFORMATION, STARTF_USESTDHANDLES, STARTUPINFOW,
};

use crate::command::Command;
use crate::sys::lab::exit::PATIENCE;
use crate::sys::last_error::done;
use crate::sys::reap::Process;

/// The names of the baselines that this system has.
pub(crate) const BASELINES: &[&str] = &["std", "create-process"];

/// A program that ends at once, and its arguments.
pub(crate) const BRIEF: (&str, &[&str]) = ("cmd.exe", &["/d", "/c", "exit"]);

/// One way to start a command, and the child that it started last.
#[derive(Debug)]
pub(crate) struct Baseline {
    how: How,
    child: Option<Process>,
}

#[derive(Debug)]
enum How {
    Std(StdCommand),
    /// The words as `CreateProcessW` takes them, and `NUL`, which children inherit.
    Bare(Vec<u16>, File),
}

impl Baseline {
    pub(crate) fn new(name: &str, command: &Command) -> io::Result<Self> {
        let how = match name {
            "std" => {
                let mut std = StdCommand::new(&command.program);
                std.args(&command.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                std.creation_flags(DETACHED_PROCESS);
                How::Std(std)
            }
            "create-process" => {
                let line = line(command)?;
                let null = File::options().read(true).write(true).open("NUL")?;
                inheritable(&null)?;
                How::Bare(line, null)
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self { how, child: None })
    }

    /// Starts one, and keeps it for [`wait`](Self::wait). Nothing else happens here: it is what is
    /// measured.
    #[expect(clippy::disallowed_methods, reason = "it is what others are compared with")]
    pub(crate) fn spawn(&mut self) -> io::Result<()> {
        self.child = Some(match &mut self.how {
            How::Std(command) => {
                let child = command.spawn()?;
                // Nobody reads what it writes: its pipes are closed here.
                Process::new(child.id(), child.into())
            }
            How::Bare(line, nul) => start(line, nul)?,
        });
        Ok(())
    }

    /// Whether the child ended before the deadline; it is killed if it did not, and gone in any
    /// case.
    pub(crate) fn wait(&mut self, deadline: Instant) -> io::Result<bool> {
        let Some(mut process) = self.child.take() else { return Ok(true) };
        let ended = process.wait(Some(deadline))?.is_some();
        if !ended {
            process.terminate(1)?;
            process.wait(Some(Instant::now() + PATIENCE))?;
        }
        process.reap();
        Ok(ended)
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        // Whoever was started and not waited for ends now.
        let _ = self.wait(Instant::now());
    }
}

/// The words in one line, ended by a zero. Nothing but the program's name is quoted: what would
/// need more is refused.
fn line(command: &Command) -> io::Result<Vec<u16>> {
    let plain = |arg: &OsStr| {
        let special = |byte: &u8| matches!(byte, b' ' | b'\t' | b'"' | 0);
        !arg.is_empty() && !arg.as_encoded_bytes().iter().any(special)
    };
    if !command.args.iter().all(|arg| plain(arg)) || command.program.as_encoded_bytes().contains(&b'"') {
        let why = "the bare call is given words that need no quotation marks";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let quote = std::iter::once(u16::from(b'"'));
    let program = quote.clone().chain(command.program.encode_wide()).chain(quote);
    let args = command.args.iter().flat_map(|arg| std::iter::once(u16::from(b' ')).chain(arg.encode_wide()));
    Ok(program.chain(args).chain([0]).collect())
}

/// Two pipes and a process, by the calls alone: every inheritable handle of this process goes to
/// the child.
fn start(line: &mut [u16], nul: &File) -> io::Result<Process> {
    let ((_out, their_out), (_err, their_err)) = (pipe()?, pipe()?);
    let startup = STARTUPINFOW {
        cb: size_of::<STARTUPINFOW>() as u32,
        dwFlags: STARTF_USESTDHANDLES,
        hStdInput: nul.as_raw_handle(),
        hStdOutput: their_out.as_raw_handle(),
        hStdError: their_err.as_raw_handle(),
        ..STARTUPINFOW::default()
    };
    let mut made = PROCESS_INFORMATION::default();
    let words = line.as_mut_ptr();
    let none = null_mut();
    // SAFETY: the line is ended by a zero and ours to be written to; the handles are open and
    // inheritable, and all that is pointed to outlives the call.
    let answer = unsafe {
        CreateProcessW(none, words, null(), null(), 1, DETACHED_PROCESS, null(), null(), &startup, &mut made)
    };
    if answer == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made it, and nobody else has it.
    drop(unsafe { OwnedHandle::from_raw_handle(made.hThread) });
    // SAFETY: as above.
    Ok(Process::new(made.dwProcessId, unsafe { OwnedHandle::from_raw_handle(made.hProcess) }))
}

/// A pipe: our end, and the one that the child inherits.
fn pipe() -> io::Result<(OwnedHandle, OwnedHandle)> {
    let (mut ours, mut theirs) = (null_mut(), null_mut());
    // SAFETY: the two locals outlive the call; no attributes, so that neither is inherited yet.
    if unsafe { CreatePipe(&mut ours, &mut theirs, null(), 0) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made it, and nobody else has it.
    let ours = unsafe { OwnedHandle::from_raw_handle(ours) };
    // SAFETY: as above.
    let theirs = unsafe { OwnedHandle::from_raw_handle(theirs) };
    inheritable(&theirs)?;
    Ok((ours, theirs))
}

fn inheritable(handle: &impl AsHandle) -> io::Result<()> {
    let raw = handle.as_handle().as_raw_handle();
    // SAFETY: the handle is open.
    let answer = unsafe { SetHandleInformation(raw, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) };
    done(answer)
}

/// Memory that was written to. Nothing of the parent is copied when a child starts here; that is
/// what it shows.
#[derive(Debug)]
pub(crate) struct Ballast {
    _memory: Vec<u8>,
}

impl Ballast {
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // Ones, so that every page is written to.
        memory.resize(bytes, 1);
        Ok(Self { _memory: memory })
    }
}
