//! Guardian: a small program that ends the children of this process when it is killed, `kill -9` included.
//!
//! It is for a process that may not fork: an editor, an interpreter, a plugin. The program is
//! `minder-guardian`, which is installed with the library. Guarded are the children of a set with
//! minder_set_options.guardian, those of minder_guardian_spawn(), and processes of minder_guardian_guard().
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::ffi::c_char;

use minder::guard::{GuardedProcess, Guardian, GuardianOptions};

use crate::arg::{self, Growing, Opaque, free, handle, options, required, store, text};
use crate::child::{Pipes, minder_child};
use crate::command::{minder_command, with_command};
use crate::status::{call, minder_status, value};

/// The options with which the program is started. Zero is the default of each.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_guardian_options {
    /// The size of this structure.
    pub size: u32,
    /// Not 0: descendants are found even if they left the group and lost their parent (Linux).
    pub tag: i32,
    /// Not 0: the program is started again if it has exited. Otherwise the next start of a child fails.
    pub restart: i32,
    /// Not 0: the program prints to the standard error of this process what it could not kill.
    pub inherit_stderr: i32,
    /// The time between SIGTERM and SIGKILL. Default: the children are killed at once.
    pub grace: i64,
    /// The longest wait until the program is ready. Default: 10 s.
    pub start_timeout: i64,
    /// The path of the program; NULL: $MINDER_GUARDIAN, or `minder-guardian` in the directory of
    /// this program or in PATH.
    pub program: *const c_char,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_guardian_options {}

/// The program that ends children. Freed by minder_guardian_free().
#[derive(Debug)]
pub struct minder_guardian(());

impl Opaque for minder_guardian {
    type Inner = Guardian;
    const TAG: [u8; 8] = *b"mnd_grd\0";
}

/// A process on the list of a guardian. Freed by minder_guarded_free(), before the process is reaped.
#[derive(Debug)]
pub struct minder_guarded(());

impl Opaque for minder_guarded {
    type Inner = GuardedProcess;
    const TAG: [u8; 8] = *b"mnd_gpr\0";
}

/// Starts the program, waits until it is ready, and stores the handle. The options may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_guardian_new(
    options: *const minder_guardian_options,
    guardian: *mut *mut minder_guardian,
) -> minder_status {
    call(|| {
        required!(guardian);
        store!(guardian, std::ptr::null_mut());
        let given: minder_guardian_options = options!(options);
        let mut config = GuardianOptions::new()
            .tag(given.tag != 0)
            .restart(given.restart != 0)
            .inherit_stderr(given.inherit_stderr != 0);
        if let Some(grace) = arg::time_option(given.grace) {
            config = config.grace(grace);
        }
        if let Some(timeout) = arg::time_option(given.start_timeout) {
            config = config.start_timeout(timeout);
        }
        let program = given.program;
        if !program.is_null() {
            config = config.program(text!(program));
        }
        store!(guardian, arg::new_handle(Guardian::start(&config)?));
        Ok(minder_status::MINDER_OK)
    })
}

/// Frees a handle. Sets and children that are guarded keep the program; with the last of them it exits, and
/// children that still run are not guarded any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_guardian_free(guardian: *mut minder_guardian) {
    free!(guardian);
}

/// Returns the pid of the program; 0 on Windows, where job objects do its work, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_guardian_pid(guardian: *const minder_guardian) -> u32 {
    value(0, || Ok(handle!(guardian).pid().unwrap_or(0)))
}

/// Starts a guarded command, and stores the child: see minder_command_spawn().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_guardian_spawn(
    guardian: *const minder_guardian,
    command: *const minder_command,
    child: *mut *mut minder_child,
) -> minder_status {
    call(|| {
        required!(child);
        store!(child, std::ptr::null_mut());
        let guardian = handle!(guardian);
        let started =
            with_command(handle!(command), |command| Ok(guardian.spawn(command)?.into_shared()?))?;
        store!(child, arg::new_handle(Pipes::of(started)));
        Ok(minder_status::MINDER_OK)
    })
}

/// Puts a child of this process that was started by other code on the list, such as by fork(2), and stores
/// the handle. Not on Windows (MINDER_UNSUPPORTED).
///
/// The child is killed like the others, with its process group if it leads one at the time of this call. It
/// is not guarded before this call has returned. If this process may be killed in between, let the child
/// first read a byte from a pipe, which this process writes after the call: at end of file the child exits.
/// The child has to close its copy of the pipe's other end.
///
/// A pid that is not that of a child, or of one that was reaped, is MINDER_UNKNOWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_guardian_guard(
    guardian: *const minder_guardian,
    pid: u32,
    guarded: *mut *mut minder_guarded,
) -> minder_status {
    call(|| {
        required!(guarded);
        store!(guarded, std::ptr::null_mut());
        let process = handle!(guardian).guard(pid)?;
        store!(guarded, arg::new_handle(process));
        Ok(minder_status::MINDER_OK)
    })
}

/// Frees a handle, and removes the process from the list. To be called before the process is reaped by
/// wait(2) or a similar function: afterwards its pid and its group may be those of other processes. The
/// process runs on. In a process that was made by fork(2) the list stays as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_guarded_free(guarded: *mut minder_guarded) {
    free!(guarded);
}
