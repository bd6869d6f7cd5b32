//! Verbs about jobs, in the sense of Windows: job objects.

#![expect(unsafe_code, reason = "job objects")]

use std::ffi::OsString;
use std::io;
use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr::null;
use std::time::{Duration, Instant};

use windows_sys::Win32::System::JobObjects::{AssignProcessToJobObject, CreateJobObjectW};
use windows_sys::Win32::System::Threading::{CREATE_BREAKAWAY_FROM_JOB, GetCurrentProcess};

use super::Words;

/// Does the verb, if it is one of these.
pub(super) fn act(words: &Words, args: &[OsString]) -> io::Result<Option<u8>> {
    match words.word(0) {
        // confined VERB …: enters a new job, starts the verb there by the library, and forwards
        // its output.
        "confined" => {
            enter_job()?;
            super::herd(1, &args[1..])?;
        }
        // break-away: tries to start a process outside of our job.
        "break-away" => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["exit", "0"]).stdin(Stdio::null()).creation_flags(CREATE_BREAKAWAY_FROM_JOB);
            match command.status() {
                Ok(_) => println!("left"),
                Err(error) => println!("{:?}", error.raw_os_error()),
            }
        }
        // burn MS: uses a processor for so long.
        "burn" => {
            let until = Instant::now() + Duration::from_millis(words.number(1) as u64);
            while Instant::now() < until {}
        }
        _ => return Ok(None),
    }
    Ok(Some(0))
}

fn enter_job() -> io::Result<()> {
    // SAFETY: no attributes and no name. The handle is never closed, which would change nothing.
    let job = unsafe { CreateJobObjectW(null(), null()) };
    // SAFETY: has no preconditions.
    let own = unsafe { GetCurrentProcess() };
    // SAFETY: a failure to make the job is one to enter it; both are handles of this process.
    let answer = unsafe { AssignProcessToJobObject(job, own) };
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
