//! The verbs that mean something else on Windows, or only there.

#![expect(unsafe_code, reason = "console events, the end of this process, and its standard input")]

use std::io::{self, Write};
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};

use windows_sys::Win32::Foundation::{
    GetHandleInformation, HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation,
};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
    SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS, GetCurrentProcess, TerminateProcess,
};

use super::{Words, pause};

pub(super) fn act(words: &Words) -> io::Result<u8> {
    let word = |place| words.word(place);
    let number = |place| words.number(place);
    match word(0) {
        // ignore-term MS: takes no Ctrl-C and no Ctrl-Break from here on, which are the requests to exit
        // here.
        "ignore-term" => {
            ignore_requests()?;
            println!("ready");
            io::stdout().flush()?;
            pause(number(1));
        }
        // stubborn-tree: the same, with a child on our console and one without any. Prints the pids of all
        // three.
        "stubborn-tree" => {
            ignore_requests()?;
            let same = myself(&["sleep-ms", "600000"]).spawn()?.id();
            let stray = stray(&["sleep-ms", "600000"]).spawn()?.id();
            println!("{} {same} {stray}", std::process::id());
            io::stdout().flush()?;
            pause(600_000);
        }
        // session-stray MS: leaves a child without our console, prints both pids, and lives on for MS.
        "session-stray" => {
            let stray = stray(&["sleep-ms", "600000"]).spawn()?.id();
            println!("{} {stray}", std::process::id());
            io::stdout().flush()?;
            pause(number(1));
        }
        // leave-group MS: leaves a child that holds none of our streams, prints its pid, and exits.
        "leave-group" => {
            keep_streams();
            let child = myself(&["sleep-ms", word(1)]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            println!("{}", child.id());
        }
        "daemon" => pause(number(1)),
        // kill-self CODE: terminates itself, as another process would.
        "kill-self" => {
            // SAFETY: a pseudo-handle that is always valid.
            let own = unsafe { GetCurrentProcess() };
            // SAFETY: nothing of this process is looked at afterwards.
            unsafe { TerminateProcess(own, number(1) as u32) };
            pause(1000);
        }
        // holds HANDLE …: which of these numbers are handles of this process.
        "holds" => {
            for handle in words.0.iter().skip(1).filter_map(|word| word.parse::<usize>().ok()) {
                let mut flags = 0;
                // SAFETY: the number is looked up and not followed; `flags` outlives the call.
                let answer = unsafe { GetHandleInformation(handle as HANDLE, &mut flags) };
                println!("{handle} {}", answer != 0);
            }
        }
        verb => {
            eprintln!("test_child: no such verb: {verb}");
            return Ok(124);
        }
    }
    Ok(0)
}

pub(super) fn close_stdin() {
    // SAFETY: no pointers.
    let raw = unsafe { GetStdHandle(STD_INPUT_HANDLE) };
    // SAFETY: the handle of our input is ours, and nothing in this program reads from it any more.
    drop(unsafe { OwnedHandle::from_raw_handle(raw) });
}

/// Takes our streams from what our children inherit: all that is inheritable, as the standard
/// library starts them.
fn keep_streams() {
    for stream in [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
        // SAFETY: no pointers.
        let raw = unsafe { GetStdHandle(stream) };
        // SAFETY: the handle is ours; without one the call fails, and nothing is to be done.
        unsafe { SetHandleInformation(raw, HANDLE_FLAG_INHERIT, 0) };
    }
}

fn ignore_requests() -> io::Result<()> {
    unsafe extern "system" fn handler(event: u32) -> i32 {
        i32::from(matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT))
    }
    // SAFETY: the handler stays where it is, and uses nothing.
    let answer = unsafe { SetConsoleCtrlHandler(Some(handler), 1) };
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn myself(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.args(args).stdin(Stdio::null());
    command
}

/// One that no event of our console reaches.
fn stray(args: &[&str]) -> Command {
    let mut command = myself(args);
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
    command
}
