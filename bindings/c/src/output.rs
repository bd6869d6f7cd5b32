//! Output: one command, run to its end, with what it wrote.
#![expect(unsafe_code, reason = "functions with C linkage")]

use minder::{CaptureOptions, Output};

use crate::arg::{self, Growing, Opaque, free, handle, options, required, store, store_structure};
use crate::command::{minder_command, minder_stream, with_command};
use crate::exit::minder_exit;
use crate::status::{Failure, call, minder_status, value};
use crate::termination::{minder_termination, termination};

/// The options of a command that runs to its end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_output_options {
    /// The size of this structure.
    pub size: u32,
    /// Not 0: the standard error arrives in the standard output, in the order of the writes.
    pub merge_stderr: i32,
    /// The longest time for which the child may run, in nanoseconds. 0: without a limit.
    pub timeout: i64,
    /// The way in which it is killed after that.
    pub kill: *const minder_termination,
    /// The most bytes of output. 0: the default. More than that is MINDER_LIMIT.
    pub max_bytes: usize,
    /// The standard input of the child; NULL: nothing.
    pub input: *const u8,
    /// The number of bytes of `input`.
    pub input_len: usize,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_output_options {}

/// The output of a command, and its exit. Freed by minder_output_free().
#[derive(Debug)]
pub struct minder_output(());

impl Opaque for minder_output {
    type Inner = Output;
    const TAG: [u8; 8] = *b"mnd_out\0";
}

/// Starts a command, waits until it exits, and stores what it wrote. The options may be NULL.
///
/// A child that fails or is killed is not an error: see minder_output_exit(). Its outputs are pipes, and
/// its input is empty, unless the command or the options set them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_command_output(
    command: *const minder_command,
    options: *const minder_output_options,
    output: *mut *mut minder_output,
) -> minder_status {
    call(|| {
        required!(output);
        store!(output, std::ptr::null_mut());
        let given: minder_output_options = options!(options);
        let mut capture = CaptureOptions::new().merge_stderr(given.merge_stderr != 0);
        if let Some(timeout) = arg::time_option(given.timeout) {
            capture = capture.timeout(timeout).kill(termination!(given.kill));
        }
        if given.max_bytes != 0 {
            capture = capture.max_bytes(given.max_bytes);
        }
        if !given.input.is_null() {
            // SAFETY: the caller passes a range that it may read.
            capture = capture.input(unsafe { arg::byte_range(given.input, given.input_len, "input") }?);
        }
        // Not under the lock of the command, which may run for long.
        let command = with_command(handle!(command), |command| Ok(command.clone()))?;
        let mut result = command.output_with(capture)?;
        // The NUL that follows each output.
        result.stdout.push(0);
        result.stderr.push(0);
        store!(output, arg::new_handle(result));
        Ok(minder_status::MINDER_OK)
    })
}

/// Frees an output with its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_output_free(output: *mut minder_output) {
    free!(output);
}

/// Stores how the command exited.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_output_exit(
    output: *const minder_output,
    exit: *mut minder_exit,
) -> minder_status {
    call(|| {
        let output = handle!(output);
        let flags = minder_exit::from(output.status).with_usage(output.usage);
        let timed_out = output.timed_out;
        let value = minder_exit { timed_out, killed: timed_out, leaked: output.leaked, ..flags };
        store_structure!(exit, value);
        Ok(minder_status::MINDER_OK)
    })
}

/// Returns the bytes of MINDER_STDOUT or MINDER_STDERR, and stores their number. They are valid until the
/// output is freed. A NUL, which does not count, follows the last byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_output_bytes(
    output: *const minder_output,
    stream: i32,
    len: *mut usize,
) -> *const u8 {
    value(std::ptr::null(), || {
        store!(len, 0);
        let output = handle!(output);
        let bytes = match stream {
            _ if stream == minder_stream::MINDER_STDOUT as i32 => &output.stdout,
            _ if stream == minder_stream::MINDER_STDERR as i32 => &output.stderr,
            _ => return Err(Failure::invalid("argument `stream` is not an output")),
        };
        // Without the NUL at the end.
        store!(len, bytes.len() - 1);
        Ok(bytes.as_ptr())
    })
}
