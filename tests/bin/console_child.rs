//! The program that the tests of consoles run: it creates a console, starts a program in it, and
//! presses keys. Windows only.
//!
//! `console_child press c|break JOBS MARKER PROGRAM ARGUMENT…` starts PROGRAM and waits until JOBS
//! processes have each written a line to MARKER; with 0 it waits until MARKER exists. Then it
//! presses the key, waits for PROGRAM, and prints its exit status and how many of the processes
//! still run.
//!
//! `console_child sleep MARKER` writes a line to MARKER and sleeps. While it runs, the file
//! `MARKER.PID` exists. A pid alone would not show that, since Windows reuses pids.

#![cfg_attr(windows, expect(unsafe_code, reason = "std cannot create a console or press its keys"))]
#![cfg_attr(windows, expect(clippy::print_stdout, reason = "the tests read the output"))]
#![cfg_attr(
    windows,
    expect(
        clippy::disallowed_methods,
        reason = "`sleep` is one of its commands, and the child is an ordinary program"
    )
)]

#[cfg(windows)]
mod append;

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
fn main() -> std::io::Result<()> {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    match words.as_slice() {
        ["sleep", marker, ..] => console::sleep(marker.as_ref()),
        ["press", key, jobs, marker, program, ..] => {
            let jobs = jobs.parse().expect("parse number");
            console::press(key, jobs, marker.as_ref(), program, &arguments[5..])
        }
        _ => panic!("invalid arguments: {words:?}"),
    }
}

#[cfg(windows)]
mod console {
    use std::ffi::OsString;
    use std::fs::OpenOptions;
    use std::io::{self, Write};
    use std::os::windows::fs::OpenOptionsExt;
    use std::os::windows::io::AsRawHandle;
    use std::os::windows::process::CommandExt;
    use std::path::Path;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};
    use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_DELETE_ON_CLOSE;
    use windows_sys::Win32::System::Console::{
        AllocConsole, CTRL_BREAK_EVENT, CTRL_C_EVENT, FreeConsole, GenerateConsoleCtrlEvent,
        SetConsoleCtrlHandler,
    };
    use windows_sys::Win32::System::Threading::CREATE_NEW_PROCESS_GROUP;

    /// Far beyond what the slowest machine needs.
    const PATIENCE: Duration = Duration::from_secs(60);
    /// The duration of a job that is not ended earlier.
    const LONG: Duration = Duration::from_secs(120);
    const LOOK: Duration = Duration::from_millis(10);

    pub(crate) fn sleep(marker: &Path) -> io::Result<()> {
        let mut own = marker.as_os_str().to_owned();
        own.push(format!(".{}", std::process::id()));
        let mut options = OpenOptions::new();
        // Windows closes the handles of a process on any exit.
        let _life = options.write(true).create_new(true).custom_flags(FILE_FLAG_DELETE_ON_CLOSE).open(own)?;
        let mut file = crate::append::append(marker)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
        drop(file);
        std::thread::sleep(LONG);
        Ok(())
    }

    pub(crate) fn press(
        key: &str,
        jobs: usize,
        marker: &Path,
        program: &str,
        words: &[OsString],
    ) -> io::Result<()> {
        // Wine's console host inherits each inheritable handle, and exits after this process. The
        // test would wait for the end of its pipes until then.
        let out = io::stdout();
        let err = io::stderr();
        for handle in [out.as_raw_handle(), err.as_raw_handle()] {
            // SAFETY: the handle is ours and stays open. The program that is started below gets a copy.
            done(unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0) })?;
        }
        // SAFETY: has no preconditions. It fails where there is no console, which is harmless.
        unsafe { FreeConsole() };
        // SAFETY: has no preconditions.
        done(unsafe { AllocConsole() })?;
        // SAFETY: the handler is a function of this program that does nothing.
        done(unsafe { SetConsoleCtrlHandler(Some(ignore_key), 1) })?;
        let mut command = Command::new(program);
        if key == "break" {
            // The leader of a process group ignores Ctrl-C and receives Ctrl-Break.
            command.creation_flags(CREATE_NEW_PROCESS_GROUP);
        }
        let mut child = command.args(words).spawn()?;
        let until = Instant::now() + PATIENCE;
        while !holds(marker, jobs) {
            assert!(Instant::now() < until && child.try_wait()?.is_none(), "not all jobs have started");
            std::thread::sleep(LOOK);
        }
        let (event, group) = if key == "break" { (CTRL_BREAK_EVENT, child.id()) } else { (CTRL_C_EVENT, 0) };
        // SAFETY: has no preconditions. Group 0 is every process of this console.
        let pressed = done(unsafe { GenerateConsoleCtrlEvent(event, group) });
        if pressed.is_err() {
            child.kill()?;
        }
        pressed?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            assert!(Instant::now() < until, "the program has not exited");
            std::thread::sleep(LOOK);
        };
        println!("{:08x} {}", status.code().unwrap_or_default(), left(marker)?);
        Ok(())
    }

    /// Returns whether the file exists and has at least this many lines.
    fn holds(marker: &Path, lines: usize) -> bool {
        std::fs::read(marker).is_ok_and(|text| text.iter().filter(|byte| **byte == b'\n').count() >= lines)
    }

    /// Returns how many of the processes that wrote to the marker still run.
    fn left(marker: &Path) -> io::Result<usize> {
        let directory = marker.parent().unwrap_or(marker).read_dir()?.flatten();
        let begin = format!("{}.", marker.file_name().unwrap_or_default().display());
        Ok(directory.filter(|item| item.file_name().display().to_string().starts_with(&begin)).count())
    }

    unsafe extern "system" fn ignore_key(_event: u32) -> i32 {
        1
    }

    fn done(answer: i32) -> io::Result<()> {
        if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
