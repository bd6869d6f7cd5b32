//! Starting children by the standard library and by `CreateProcessW`, and a large parent, on
//! Windows.

#![expect(unsafe_code, reason = "CreatePipe and CreateProcessW")]

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::iter::once;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsHandle, AsRawHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::process::{Command as StdCommand, Stdio};
use std::ptr::{null, null_mut};
use std::time::Duration;

use minder::Command;
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::System::Pipes::CreatePipe;
use windows_sys::Win32::System::Threading::{
    CreateProcessW, DETACHED_PROCESS, PROCESS_INFORMATION, STARTF_USESTDHANDLES, STARTUPINFOW,
    TerminateProcess,
};

use crate::sys::exit::{EXIT_TIMEOUT, has_exited};
use crate::sys::last_error::check;

/// The names of the baselines.
pub(crate) const BASELINES: &[&str] = &["std", "create-process"];

/// A program that exits at once, and its arguments.
pub(crate) const SHORT_COMMAND: (&str, &[&str]) = ("cmd.exe", &["/d", "/c", "exit"]);

/// A mechanism that starts a command, and the child that it started last.
#[derive(Debug)]
pub(crate) struct SpawnBaseline {
    mechanism: Mechanism,
    child: Option<OwnedHandle>,
}

#[derive(Debug)]
enum Mechanism {
    Std(StdCommand),
    CreateProcess {
        /// The command line as `CreateProcessW` takes it.
        line: Vec<u16>,
        /// `NUL`, which children inherit as their input.
        nul: File,
    },
}

impl SpawnBaseline {
    pub(crate) fn new(name: &str, command: &Command) -> io::Result<Self> {
        let mechanism = match name {
            "std" => {
                let mut std = StdCommand::new(command.get_program());
                std.args(command.get_args());
                std.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                std.creation_flags(DETACHED_PROCESS);
                Mechanism::Std(std)
            }
            "create-process" => {
                let line = command_line(command)?;
                let nul = File::options().read(true).write(true).open("NUL")?;
                make_inheritable(&nul)?;
                Mechanism::CreateProcess { line, nul }
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self { mechanism, child: None })
    }

    /// Starts a child and keeps it for [`wait`](Self::wait). It does nothing else, since it is what
    /// is measured.
    #[expect(clippy::disallowed_methods, reason = "the standard library is a baseline")]
    pub(crate) fn spawn(&mut self) -> io::Result<()> {
        let child = match &mut self.mechanism {
            // The child's output is not read: the conversion closes its pipes.
            Mechanism::Std(command) => command.spawn()?.into(),
            Mechanism::CreateProcess { line, nul } => create_process(line, nul)?,
        };
        self.child = Some(child);
        Ok(())
    }

    /// Waits for the child, kills it if it does not exit within `timeout`, and returns whether it
    /// exited by itself.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        let Some(child) = self.child.take() else { return Ok(true) };
        let exited = has_exited(&child, timeout)?;
        if !exited {
            // SAFETY: the handle is open, and the handle of a new process has all rights.
            check(unsafe { TerminateProcess(child.as_raw_handle(), 1) })?;
            has_exited(&child, EXIT_TIMEOUT)?;
        }
        Ok(exited)
    }
}

impl Drop for SpawnBaseline {
    fn drop(&mut self) {
        // Kills a child that was not waited for.
        let _ = self.wait(Duration::ZERO);
    }
}

/// Returns the program and its arguments as one line that ends with a zero. Quotes the program
/// only, and refuses arguments that need quotes.
fn command_line(command: &Command) -> io::Result<Vec<u16>> {
    let is_plain = |arg: &OsStr| {
        let is_special = |byte: &u8| matches!(byte, b' ' | b'\t' | b'"' | 0);
        !arg.is_empty() && !arg.as_encoded_bytes().iter().any(is_special)
    };
    let program = command.get_program();
    if !command.get_args().all(is_plain) || program.as_encoded_bytes().contains(&b'"') {
        let why = "the bare call is given words that need no quotation marks";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let mut line = vec![u16::from(b'"')];
    line.extend(program.encode_wide());
    line.push(u16::from(b'"'));
    for arg in command.get_args() {
        line.extend(once(u16::from(b' ')).chain(arg.encode_wide()));
    }
    line.push(0);
    Ok(line)
}

/// Makes two pipes and a process by the calls alone. The child inherits every inheritable handle of
/// this process.
fn create_process(line: &mut [u16], nul: &File) -> io::Result<OwnedHandle> {
    let (_stdout, child_stdout) = create_pipe()?;
    let (_stderr, child_stderr) = create_pipe()?;
    let startup = STARTUPINFOW {
        cb: size_of::<STARTUPINFOW>() as u32,
        dwFlags: STARTF_USESTDHANDLES,
        hStdInput: nul.as_raw_handle(),
        hStdOutput: child_stdout.as_raw_handle(),
        hStdError: child_stderr.as_raw_handle(),
        ..STARTUPINFOW::default()
    };
    let mut created = PROCESS_INFORMATION::default();
    let line = line.as_mut_ptr();
    let name = null_mut();
    // SAFETY: the line ends with a zero and is borrowed exclusively; the handles are open and
    // inheritable, and all that is pointed to outlives the call.
    let result = unsafe {
        CreateProcessW(
            name,
            line,
            null(),
            null(),
            1,
            DETACHED_PROCESS,
            null(),
            null(),
            &startup,
            &mut created,
        )
    };
    if result == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made this handle, and nothing else owns it.
    drop(unsafe { OwnedHandle::from_raw_handle(created.hThread) });
    // SAFETY: as above.
    Ok(unsafe { OwnedHandle::from_raw_handle(created.hProcess) })
}

/// Makes a pipe. Returns the end that this process reads, and the inheritable one of the child.
fn create_pipe() -> io::Result<(OwnedHandle, OwnedHandle)> {
    let mut reader = null_mut();
    let mut writer = null_mut();
    // SAFETY: the two locals outlive the call. Without attributes neither handle is inheritable yet.
    if unsafe { CreatePipe(&mut reader, &mut writer, null(), 0) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made this handle, and nothing else owns it.
    let reader = unsafe { OwnedHandle::from_raw_handle(reader) };
    // SAFETY: as above.
    let writer = unsafe { OwnedHandle::from_raw_handle(writer) };
    make_inheritable(&writer)?;
    Ok((reader, writer))
}

fn make_inheritable(handle: &impl AsHandle) -> io::Result<()> {
    let raw = handle.as_handle().as_raw_handle();
    // SAFETY: the handle is open.
    check(unsafe { SetHandleInformation(raw, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) })
}

/// Memory that was written to. Windows copies nothing of the parent when a child starts, which the
/// benchmark shows.
#[derive(Debug)]
pub(crate) struct MappedMemory {
    _memory: Vec<u8>,
}

impl MappedMemory {
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // Ones, so that every page is written to.
        memory.resize(bytes, 1);
        Ok(Self { _memory: memory })
    }
}
