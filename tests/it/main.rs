//! Black-box tests: one file a module of the library, and what the command does.

#![expect(clippy::print_stderr, reason = "a test says what it skipped, and which backend failed")]

mod support;
mod spawn;
mod child;
mod one_child;
mod capture;
mod pipeline;
mod poller;
mod clock;
mod set;
mod bench;
mod regression;
mod reports;
mod cli;
#[cfg(unix)] // The shells of Unix; `cmd_lines` has cmd.exe.
mod template;
#[cfg(target_os = "linux")] // Guardians; on Windows job objects do their work (`spawn::windows::jobs`).
mod guard;
#[cfg(target_os = "linux")] // A separate program for the host; on Windows job objects do its work.
mod guardian;
#[cfg(target_os = "linux")] // A filter of system calls.
mod seccomp;
#[cfg(target_os = "linux")] // PID namespaces.
mod foreign_proc;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))] // ptrace(2), valgrind, and counts of one processor.
mod cost;
mod background;
#[cfg(target_os = "linux")] // `/proc` lists what a script leaves behind.
mod scripts;
#[cfg(windows)]
mod handle_sources;
mod jobs;
#[cfg(windows)]
mod cmd_lines;
#[cfg(windows)]
mod windows;
mod examples;
#[cfg(unix)] // Programs of Debian.
mod language_servers;
mod doctor;
#[cfg(windows)]
mod console;
#[cfg(windows)]
mod windows_paths;
