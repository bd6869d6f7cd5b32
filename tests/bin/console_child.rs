//! The program that the tests of consoles run: it makes its own console, starts a program in
//! it, and presses keys. Windows only.
//!
//! `console_child press c|break JOBS MARKER PROGRAM ARGUMENT…` waits until that many processes have
//! written to MARKER, or until it is there if these are none; then it presses, and prints how the
//! program ended and how many of the processes are left. `console_child sleep MARKER` writes a line
//! there and sleeps. As long as it lives there is a file beside MARKER whose name has its number
//! behind MARKER's: a pid alone may have been reused.

#![cfg_attr(windows, expect(unsafe_code, reason = "a console of its own"))]
#![cfg_attr(windows, expect(clippy::print_stdout, reason = "output is what this program is for"))]
#![cfg_attr(
    windows,
    expect(
        clippy::disallowed_methods,
        reason = "it sleeps when it is told to, and starts its child as others do"
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
        _ => panic!("no such verb: {words:?}"),
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
    /// How long a job runs unless it is ended.
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
        // Wine's console host inherits what can be inherited, and ends after us.
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
        done(unsafe { SetConsoleCtrlHandler(Some(deaf), 1) })?;
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
        // SAFETY: has no preconditions. Group 0: all who share our console.
        let pressed = done(unsafe { GenerateConsoleCtrlEvent(event, group) });
        if pressed.is_err() {
            child.kill()?;
        }
        pressed?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            assert!(Instant::now() < until, "it goes on");
            std::thread::sleep(LOOK);
        };
        println!("{:08x} {}", status.code().unwrap_or_default(), left(marker)?);
        Ok(())
    }

    /// Whether the file is there and has that many lines.
    fn holds(marker: &Path, lines: usize) -> bool {
        std::fs::read(marker).is_ok_and(|text| text.iter().filter(|byte| **byte == b'\n').count() >= lines)
    }

    /// The number of living processes that wrote to the marker.
    fn left(marker: &Path) -> io::Result<usize> {
        let folder = marker.parent().unwrap_or(marker).read_dir()?.flatten();
        let begin = format!("{}.", marker.file_name().unwrap_or_default().display());
        Ok(folder.filter(|item| item.file_name().display().to_string().starts_with(&begin)).count())
    }

    unsafe extern "system" fn deaf(_event: u32) -> i32 {
        1
    }

    fn done(answer: i32) -> io::Result<()> {
        if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
