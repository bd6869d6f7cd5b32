//! Probes on Windows. Most mechanisms exist in every version that Rust supports; these are the
//! differences.
//!
//! Wine has the calls of Windows and its own limits. A function that only Wine has in `ntdll`
//! identifies it.

#![expect(unsafe_code, reason = "asking what there is")]

use crate::backend::Backend;
use std::io;
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use minder_os::grouped;
use windows_sys::Win32::System::JobObjects::IsProcessInJob;
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateWaitableTimerExW, GetCurrentProcess, TIMER_ALL_ACCESS,
};

use super::types::{Capability, limit};
use crate::sys::dynlib;

/// The longest path ("Maximum Path Length Limitation"), the longest command line (CreateProcessW),
/// and the longest one of `cmd.exe`.
const PATH_MAX: u64 = 32_767;
const LINE_MAX: u64 = 32_766;
const LINE_OF_CMD_MAX: u64 = 8_191;

/// Returns why a wait backend could not be opened.
pub(crate) fn refusal(_backend: Backend, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Unsupported => "this system does not have it".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns the mechanisms that start and kill children.
pub(crate) fn children() -> Vec<Capability> {
    let why_no_terminal = if dynlib::find(dynlib::KERNEL32, c"CreatePseudoConsole").is_some() {
        "minder does not use pseudo-consoles yet"
    } else {
        "Windows has pseudo-consoles from Windows 10, version 1809, on"
    };
    vec![
        Capability::available("children", "CreateProcessW").chosen(true),
        Capability::available("children", "job objects").note(outer_job()),
        Capability::available("children", "terminal").absent(why_no_terminal),
    ]
}

/// Returns whether this process runs in a job object: of a service, a container, a terminal. Jobs
/// of this library nest in it (since Windows 8). Processes may be able to leave the outer job, but
/// never the nested one.
fn outer_job() -> &'static str {
    // SAFETY: the call has no preconditions.
    let us = unsafe { GetCurrentProcess() };
    let mut held = 0;
    // SAFETY: the handle is that of this process, no job means any job, and `held` outlives the call.
    let answer = unsafe { IsProcessInJob(us, null_mut(), &mut held) };
    if answer == 0 || held == 0 { "" } else { "within the one that minder was started in" }
}

/// Returns the limits of command lines, paths, handles and timers.
pub(crate) fn limits() -> Vec<Capability> {
    let timer = if has_fine_timer() {
        "deadlines are met by a high-resolution timer"
    } else {
        "deadlines are met at a clock tick, up to 15.6 ms late: Windows has high-resolution timers from \
         Windows 10, version 1803, on"
    };
    let mut all = vec![
        limit(
            "arguments",
            Some(LINE_MAX),
            format!(
                "{} characters of command line, after quoting; {} for `cmd.exe`",
                grouped(LINE_MAX),
                grouped(LINE_OF_CMD_MAX)
            ),
        ),
        limit(
            "paths",
            Some(PATH_MAX),
            format!("{} characters for a path, 258 for the working directory of a job", grouped(PATH_MAX)),
        ),
        limit("descriptors", None, "handles and processes as far as memory reaches".to_owned()),
        limit("timer", None, timer.to_owned()),
    ];
    if let Some(version) = dynlib::wine() {
        all.push(limit("wine", None, format!("Wine {version}, not Windows: figures and limits are Wine's")));
    }
    all
}

/// Returns whether timers do not depend on the operating system's tick.
fn has_fine_timer() -> bool {
    let flags = CREATE_WAITABLE_TIMER_HIGH_RESOLUTION;
    // SAFETY: no attributes, no name.
    let raw = unsafe { CreateWaitableTimerExW(null(), null(), flags, TIMER_ALL_ACCESS) };
    if raw.is_null() {
        return false;
    }
    // SAFETY: the call above created the handle, and nothing else owns it.
    drop(unsafe { OwnedHandle::from_raw_handle(raw) });
    true
}
