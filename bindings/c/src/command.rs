//! Command: a program, its arguments, and the environment in which it starts.
//!
//! A child inherits nothing by accident: it gets the three standard streams, no other descriptor, no
//! blocked signal, and the limit on descriptors that this process was started with. One command can be
//! started many times.
//!
//! A setter that fails is remembered: every later start of the command fails with the same error. So a
//! program may ignore the statuses of the setters and check that of the start.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::ffi::{c_char, c_int};
use std::fs::File;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use minder::{Command, Descriptors, Group, Size, Stdio};

use crate::arg::{self, Opaque, free, handle, text};
use crate::native::{self, minder_fd};
use crate::status::{Failure, call, minder_status, value};

/// One of the standard streams of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_stream {
    /// Standard input.
    MINDER_STDIN = 0,
    /// Standard output, or all output of a child on a terminal.
    MINDER_STDOUT = 1,
    /// Standard error.
    MINDER_STDERR = 2,
}

/// The connection of a standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_stdio {
    /// That of this process. The default of minder_command_spawn() and minder_set_spawn().
    MINDER_INHERIT = 0,
    /// The null device: an empty input, an output that is discarded.
    MINDER_NULL = 1,
    /// A pipe, whose other end the library has.
    MINDER_PIPE = 2,
    /// For MINDER_STDERR: whatever the standard output is connected to.
    MINDER_SAME_AS_STDOUT = 3,
}

/// The process group or session in which a child starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_group {
    /// A new process group, in the session of this process. The default.
    MINDER_GROUP_NEW = 0,
    /// The group of this process. The tree of the child cannot be killed as a whole.
    MINDER_GROUP_INHERIT = 1,
    /// A new session, without a terminal.
    MINDER_GROUP_SESSION = 2,
}

/// A program, its arguments and its environment. Freed by minder_command_free().
#[derive(Debug)]
pub struct minder_command(());

/// A command that is being described.
#[derive(Debug)]
pub(crate) struct Builder {
    command: Command,
    /// Why the first setter failed that did.
    failure: Option<Failure>,
    kept: Descriptors,
}

impl Opaque for minder_command {
    type Inner = RwLock<Builder>;
    const TAG: [u8; 8] = *b"mnd_cmd\0";
}

/// Calls `body` with a command that is complete.
pub(crate) fn with_command<T>(
    command: &RwLock<Builder>,
    body: impl FnOnce(&Command) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Several threads may start one command at the same time.
    let builder = command.read().unwrap_or_else(PoisonError::into_inner);
    match &builder.failure {
        None => body(&builder.command),
        Some(failure) => Err(failure.repeat()),
    }
}

/// Runs a setter, and remembers its failure.
fn set(
    command: *mut minder_command,
    change: impl FnOnce(&mut Builder) -> Result<(), Failure>,
) -> minder_status {
    call(|| {
        let mut builder = handle!(command).write().unwrap_or_else(PoisonError::into_inner);
        if let Err(failure) = change(&mut builder) {
            builder.failure.get_or_insert(failure.repeat());
            return Err(failure);
        }
        Ok(minder_status::MINDER_OK)
    })
}

fn unknown(name: &str, number: i32) -> Failure {
    Failure::invalid(format!("argument `{name}` is {number}, which the library does not know"))
}

fn set_stdio(command: &mut Command, stream: i32, stdio: Stdio) -> Result<(), Failure> {
    match stream {
        0 => command.stdin(stdio),
        1 => command.stdout(stdio),
        2 => command.stderr(stdio),
        _ => return Err(unknown("stream", stream)),
    };
    Ok(())
}

/// Creates a command that runs a program without arguments. A name with a slash is used as it is, and any
/// other is searched for in PATH.
///
/// Returns NULL if `program` is NULL or not UTF-8 (Windows). All functions accept that NULL and fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_new(program: *const c_char) -> *mut minder_command {
    value(std::ptr::null_mut(), || {
        let command = Command::new(text!(program));
        let builder = Builder { command, failure: None, kept: Descriptors::default() };
        Ok(arg::new_handle(RwLock::new(builder)))
    })
}

/// Frees a command. Children that it started are not affected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_free(command: *mut minder_command) {
    free!(command);
}

/// Adds one argument. The program receives it unchanged: no shell, no splitting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_arg(
    command: *mut minder_command,
    arg: *const c_char,
) -> minder_status {
    set(command, |builder| {
        builder.command.arg(text!(arg));
        Ok(())
    })
}

/// Adds several arguments: an array that ends with NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_args(
    command: *mut minder_command,
    args: *const *const c_char,
) -> minder_status {
    set(command, |builder| {
        let mut next = args;
        if next.is_null() {
            return Err(arg::null("args"));
        }
        loop {
            // SAFETY: the array of the caller ends with NULL, and `next` is not behind that.
            let arg = unsafe { next.read() };
            if arg.is_null() {
                return Ok(());
            }
            builder.command.arg(text!(arg));
            // SAFETY: the element that was read is not the last one.
            next = unsafe { next.add(1) };
        }
    })
}

/// Sets a variable in the environment of the child; removes it if `value` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_env(
    command: *mut minder_command,
    name: *const c_char,
    value: *const c_char,
) -> minder_status {
    set(command, |builder| {
        let name = text!(name);
        if value.is_null() {
            builder.command.env_remove(name);
        } else {
            builder.command.env(name, text!(value));
        }
        Ok(())
    })
}

/// Clears the environment of the child, including the variables that were set before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_env_clear(command: *mut minder_command) -> minder_status {
    set(command, |builder| {
        builder.command.env_clear();
        Ok(())
    })
}

/// Sets the working directory of the child. Default: that of this process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_current_dir(
    command: *mut minder_command,
    dir: *const c_char,
) -> minder_status {
    set(command, |builder| {
        builder.command.current_dir(text!(dir));
        Ok(())
    })
}

/// Connects a stream, one of minder_stream, as one of minder_stdio says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_stdio(
    command: *mut minder_command,
    stream: i32,
    stdio: i32,
) -> minder_status {
    set(command, |builder| {
        let stdio = match stdio {
            0 => Stdio::inherit(),
            1 => Stdio::null(),
            2 => Stdio::piped(),
            3 if stream == minder_stream::MINDER_STDERR as i32 => {
                builder.command.stderr_to_stdout();
                return Ok(());
            }
            _ => return Err(unknown("stdio", stdio)),
        };
        set_stdio(&mut builder.command, stream, stdio)
    })
}

/// Connects a stream to an open descriptor, which the library duplicates. MINDER_INVALID if it is not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_stdio_fd(
    command: *mut minder_command,
    stream: i32,
    fd: minder_fd,
) -> minder_status {
    set(command, |builder| {
        let file = native::duplicate(fd)?;
        set_stdio(&mut builder.command, stream, file.into())
    })
}

/// Connects a stream to a file, which is opened now. An input is read from it. For an output the file is
/// created if it is missing; it is emptied, or with `append` written at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_stdio_file(
    command: *mut minder_command,
    stream: i32,
    path: *const c_char,
    append: bool,
) -> minder_status {
    set(command, |builder| {
        let path = text!(path);
        let opened = if stream == minder_stream::MINDER_STDIN as i32 {
            File::open(path)
        } else {
            File::options().create(true).write(!append).truncate(!append).append(append).open(path)
        };
        let file = opened.map_err(|error| {
            let failure = Failure::from(error);
            failure.with_text(|reason| format!("failed to open `{}`: {reason}", path.display()))
        })?;
        set_stdio(&mut builder.command, stream, file.into())
    })
}

/// Passes an open descriptor to the child, with the same number, in addition to its streams: 3 or
/// more. The command takes the descriptor over, and closes it when it is freed. MINDER_INVALID if
/// it is not open, or the command has it already. Windows: a start fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_pass_fd(
    command: *mut minder_command,
    fd: minder_fd,
) -> minder_status {
    set(command, |builder| {
        // SAFETY: the caller gives the descriptor up, as the header states.
        unsafe { native::adopt(fd, &mut builder.kept) }?;
        builder.command.descriptors(&builder.kept);
        Ok(())
    })
}

/// Sets the process group or session of the child: one of minder_group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_group(command: *mut minder_command, group: i32) -> minder_status {
    set(command, |builder| {
        let group = match group {
            0 => Group::New,
            1 => Group::Inherit,
            2 => Group::Session,
            _ => return Err(unknown("group", group)),
        };
        builder.command.group(group);
        Ok(())
    })
}

/// Starts the child in a new session on a new pseudo-terminal of this size. The three streams are that
/// terminal, except an input that is MINDER_NULL. Linux, macOS and FreeBSD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_terminal(
    command: *mut minder_command,
    rows: u16,
    columns: u16,
) -> minder_status {
    set(command, |builder| {
        builder.command.group(Group::Terminal(Size::new(rows, columns)));
        Ok(())
    })
}

/// Adds to the niceness of the child and its descendants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_nice(command: *mut minder_command, nice: c_int) -> minder_status {
    set(command, |builder| {
        builder.command.nice(nice);
        Ok(())
    })
}

/// Sets the timer slack of the child, in nanoseconds, which its descendants inherit: the time by which
/// the kernel may delay its sleeps and time-outs. Linux; elsewhere a start fails with MINDER_UNSUPPORTED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_timer_slack(
    command: *mut minder_command,
    nanoseconds: u64,
) -> minder_status {
    set(command, |builder| {
        builder.command.timer_slack(Duration::from_nanos(nanoseconds));
        Ok(())
    })
}

/// Asks the kernel to kill the child when the thread that started it ends (Linux). The thread of a
/// minder_set lives as long as the set. On Windows every child dies with this process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_die_with_parent(
    command: *mut minder_command,
    yes: bool,
) -> minder_status {
    set(command, |builder| {
        builder.command.die_with_parent(yes);
        Ok(())
    })
}
