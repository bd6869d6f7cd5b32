//! Child: one process, for programs that have few of them. Several threads may wait for it, write to it and
//! kill it at the same time.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use minder::{ChildStderr, ChildStdin, ChildStdout, SharedChild, Size};

use crate::arg::{self, Opaque, free, handle, lock, required, store, store_structure};
use crate::command::{minder_command, minder_stream, with_command};
use crate::exit::minder_exit;
use crate::fork::Origin;
use crate::native::{self, minder_fd};
use crate::status::{Failure, call, minder_status, value};
use crate::termination::{minder_termination, termination};

/// A child process. Freed by minder_child_free().
#[derive(Debug)]
pub struct minder_child(());

/// A child and our ends of its pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    child: SharedChild,
    origin: Origin,
    /// `None` after it was closed. No thread holds the lock while it writes.
    stdin: Mutex<Option<Arc<ChildStdin>>>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Opaque for minder_child {
    type Inner = Pipes;
    const TAG: [u8; 8] = *b"mnd_chld";
}

impl Pipes {
    pub(crate) fn of(child: SharedChild) -> Self {
        Self {
            stdin: Mutex::new(child.take_stdin().map(Arc::new)),
            stdout: child.take_stdout(),
            stderr: child.take_stderr(),
            child,
            origin: Origin::here(),
        }
    }

    /// Returns it, unless it is a child of another process, of which this one learns nothing.
    fn here(&self) -> Result<&Self, Failure> {
        if !self.origin.is_left() {
            return Ok(self);
        }
        let reason = "the child is that of the parent of this forked process";
        Err(Failure::new(minder_status::MINDER_FORKED, reason))
    }

    /// Closes the input, after the writes of other threads that have begun.
    fn close_stdin(&self) {
        drop(lock(&self.stdin).take());
    }
}

fn no_pipe() -> Failure {
    Failure::invalid("the stream is not a pipe of this child, or was closed")
}

/// Starts a command, and stores the child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_spawn(
    command: *const minder_command,
    child: *mut *mut minder_child,
) -> minder_status {
    call(|| {
        required!(child);
        store!(child, std::ptr::null_mut());
        let started = with_command(handle!(command), |command| Ok(command.spawn()?.into_shared()?))?;
        store!(child, arg::new_handle(Pipes::of(started)));
        Ok(minder_status::MINDER_OK)
    })
}

/// Frees a child, and closes its pipes. It is not killed: if it still runs, it becomes a zombie when it
/// exits, until a later start or wait of this library reaps it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_free(child: *mut minder_child) {
    free!(child);
}

/// Returns the pid; 0 for NULL. No other process gets it before the child was waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_pid(child: *const minder_child) -> u32 {
    value(0, || Ok(handle!(child).child.id()))
}

/// Waits until the child exits, for at most `timeout`, and stores how it exited; `exit` may be NULL.
///
/// Returns MINDER_TIMED_OUT if it still runs. A time-out of 0 only asks. A wait without a limit
/// (MINDER_FOREVER) first closes the input of the child, which might otherwise wait for more. The outputs
/// stay open: read them before, since a child blocks while its pipe is full.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_wait(
    child: *const minder_child,
    timeout: i64,
    exit: *mut minder_exit,
) -> minder_status {
    call(|| {
        let child = handle!(child).here()?;
        let result = match arg::timeout(timeout) {
            Some(timeout) if timeout.is_zero() => child.child.try_wait()?,
            Some(timeout) => child.child.wait_timeout(timeout)?,
            None => {
                child.close_stdin();
                Some(child.child.wait()?)
            }
        };
        let Some(result) = result else { return Ok(minder_status::MINDER_TIMED_OUT) };
        store_structure!(exit, minder_exit::from(result));
        Ok(minder_status::MINDER_OK)
    })
}

/// Kills the child with everything that it started, or sends the first signal of `how`. Returns at once.
/// Without effect after the child was waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_kill(
    child: *const minder_child,
    how: *const minder_termination,
) -> minder_status {
    call(|| {
        handle!(child).here()?.child.kill(termination!(how))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Kills the child with everything that it started, with all signals and pauses of `how`. Waits until all
/// of them have exited, and stores how the child exited; `exit` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_kill_and_wait(
    child: *const minder_child,
    how: *const minder_termination,
    exit: *mut minder_exit,
) -> minder_status {
    call(|| {
        let child = handle!(child).here()?;
        let how = termination!(how);
        child.close_stdin();
        store_structure!(exit, minder_exit::from(child.child.kill_and_wait(how)?));
        Ok(minder_status::MINDER_OK)
    })
}

/// Writes to the standard input of the child, which is MINDER_PIPE. Blocks while the pipe is full. Stores
/// how many bytes were written; less than `len` only after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_write(
    child: *const minder_child,
    bytes: *const u8,
    len: usize,
    written: *mut usize,
) -> minder_status {
    call(|| {
        store!(written, 0);
        let child = handle!(child).here()?;
        let bytes = arg::bytes!(bytes, len);
        let stdin = lock(&child.stdin).clone().ok_or_else(no_pipe)?;
        let mut stdin = &*stdin;
        let mut done = 0;
        while done < bytes.len() {
            match stdin.write(&bytes[done..]) {
                Ok(count) => done += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error.into()),
            }
            store!(written, done);
        }
        Ok(minder_status::MINDER_OK)
    })
}

/// Closes the standard input of the child: it reads the end of it. Without effect if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_close_stdin(child: *const minder_child) -> minder_status {
    call(|| {
        handle!(child).here()?.close_stdin();
        Ok(minder_status::MINDER_OK)
    })
}

/// Reads what the child wrote to MINDER_STDOUT or MINDER_STDERR, which is MINDER_PIPE. Blocks while there
/// is nothing. Stores how many bytes were read; 0 at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_read(
    child: *const minder_child,
    stream: i32,
    buffer: *mut u8,
    capacity: usize,
    count: *mut usize,
) -> minder_status {
    call(|| {
        required!(buffer);
        required!(count);
        store!(count, 0);
        let child = handle!(child).here()?;
        if capacity > arg::longest::<u8>() {
            return Err(arg::too_long("buffer", capacity));
        }
        // SAFETY: the caller passes a range that it may write.
        unsafe { buffer.write_bytes(0, capacity) };
        // SAFETY: the range is writable, and the line above has initialised it.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, capacity) };
        let read = match stream {
            _ if stream == minder_stream::MINDER_STDOUT as i32 => {
                read(child.stdout.as_ref().ok_or_else(no_pipe)?, buffer)
            }
            _ if stream == minder_stream::MINDER_STDERR as i32 => {
                read(child.stderr.as_ref().ok_or_else(no_pipe)?, buffer)
            }
            _ => return Err(no_pipe()),
        };
        store!(count, read?);
        Ok(minder_status::MINDER_OK)
    })
}

fn read(mut pipe: impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match pipe.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (),
            result => return result,
        }
    }
}

/// Returns our end of the pipe of a stream, for read(2), write(2) or a loop of the caller; MINDER_NO_FD if
/// the stream is not a pipe. It belongs to the child: do not close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_fd(child: *const minder_child, stream: i32) -> minder_fd {
    value(native::NO_FD, || {
        let child = handle!(child).here()?;
        let fd = match stream {
            0 => lock(&child.stdin).as_deref().map(native::fd_of),
            1 => child.stdout.as_ref().map(native::fd_of),
            2 => child.stderr.as_ref().map(native::fd_of),
            _ => None,
        };
        fd.ok_or_else(no_pipe)
    })
}

/// Sets the size of the terminal of a child that was started with minder_command_terminal().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_child_resize(
    child: *const minder_child,
    rows: u16,
    columns: u16,
) -> minder_status {
    call(|| {
        let size = Size::new(rows, columns);
        match &handle!(child).here()?.stdout {
            Some(stdout) => stdout.resize_terminal(size)?,
            None => return Err(no_pipe()),
        }
        Ok(minder_status::MINDER_OK)
    })
}
