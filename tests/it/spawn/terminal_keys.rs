//! Keys of the terminal that are pressed while a child is being started.

#![expect(unsafe_code, reason = "signals of a process that a test has for itself")]

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use minder::ExitStatus;

use super::count;
use crate::support::{alone, nap, own_children, patience, quiet_child};

/// The time for which the child stays in our group.
const LATE: Duration = Duration::from_millis(300);

/// Sends `signal` to our group while a child of ours is being started and is still in the group.
fn press(signal: i32) {
    // The parent receives the terminal's signals and lives on.
    count(signal);
    nix::unistd::setpgid(nix::unistd::Pid::this(), nix::unistd::Pid::from_raw(0))
        .expect("create process group");
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut command = quiet_child("exit 0");
        let mut child = command.fault_late(LATE).spawn().expect("spawn test child");
        let _ = sender.send(child.wait().expect("wait for child"));
    });
    let until = patience();
    let child = loop {
        if let Some(child) = own_children().pop() {
            break child;
        }
        assert!(Instant::now() < until, "no child is being started");
    };
    // SAFETY: numbers only; 0 is our own group, which the test has for itself.
    assert_eq!(unsafe { libc::kill(0, signal) }, 0);
    let still_ours = std::fs::read_link(PathBuf::from(format!("/proc/{child}/exe"))).ok();
    assert_eq!(still_ours, std::env::current_exe().ok(), "the child ran its program before the signal came");
    let exit = ended.recv_timeout(Duration::from_secs(20));
    if exit.is_err() {
        // Else the test itself would not end: a thread of it waits for the child.
        // SAFETY: numbers only; the child is not reaped yet.
        unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) };
        nap(Duration::from_millis(10));
    }
    let exit = exit.expect("child exits before the deadline");
    assert_eq!(exit.status, ExitStatus::Exited(0), "the child was to run its program");
}

#[test]
fn stop_during_spawn_does_not_stop_the_child() {
    alone("spawn::terminal_keys::stop_during_spawn_does_not_stop_the_child", || press(libc::SIGTSTP));
}

#[test]
fn interrupt_during_spawn_does_not_end_the_child() {
    alone("spawn::terminal_keys::interrupt_during_spawn_does_not_end_the_child", || press(libc::SIGINT));
}
