//! Queries about processes and descriptors on Unix and Linux, for tests.

#![expect(unsafe_code, reason = "signal actions of the test process")]

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Once;
use std::time::{Duration, Instant};

use minder::ExitStatus;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Returns whether this run tries all cases instead of a sample: with `MINDER_ORACLE=full`.
pub(crate) fn is_full() -> bool {
    std::env::var("MINDER_ORACLE").is_ok_and(|value| value == "full")
}

/// Gives children the default action of the signals that end a run, even if this process inherited
/// them as ignored.
///
/// A shell without job control ignores SIGINT and SIGQUIT for `cmd &`, and nohup(1) ignores SIGHUP.
/// execve(2) keeps ignored signals ignored, so a child could not be interrupted. This function
/// replaces "ignored" by an empty handler: execve resets caught signals to their default action,
/// and the test process itself still survives the signal.
///
/// The functions that build or start commands call it. Only the first call has an effect.
pub(crate) fn catch_ignored_signals() {
    static CAUGHT: Once = Once::new();
    CAUGHT.call_once(|| {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            catch_if_ignored(signal);
        }
    });
}

/// Installs an empty handler for a signal that this process ignores.
pub(crate) fn catch_if_ignored(signal: i32) {
    extern "C" fn handler(_signal: i32) {}
    // SAFETY: all zero is a value of a sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is a sigaction that the call may overwrite.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    assert_eq!(result, 0, "read action of signal {signal}");
    if action.sa_sigaction != libc::SIG_IGN {
        return;
    }
    action.sa_sigaction = handler as extern "C" fn(i32) as usize;
    // Calls of the test process are restarted if the signal arrives.
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler does nothing, and `action` is initialised.
    let result = unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    assert_eq!(result, 0, "catch signal {signal}");
}

/// Returns whether the descriptor becomes readable within this time.
pub(crate) fn readable(fd: BorrowedFd<'_>, within: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&time)) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => (),
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Runs a program to its end, with an empty input.
pub(crate) fn output(command: &mut std::process::Command) -> std::process::Output {
    catch_ignored_signals();
    command.stdin(std::process::Stdio::null()).output().expect("run program")
}

/// Returns one end of a pipe as a file.
pub(crate) fn file(end: impl Into<OwnedFd>) -> File {
    File::from(end.into())
}

/// Returns whether this is the status of a process that this signal killed.
pub(crate) fn killed(status: ExitStatus, by: i32) -> bool {
    matches!(status, ExitStatus::Signaled { signal, .. } if signal == by)
}

/// Kills a process.
pub(crate) fn end(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("valid pid");
    kill_process(pid, Signal::KILL).expect("signal process");
}

/// Kills the process group of a child.
pub(crate) fn kill_group_of(child: u32) {
    let group = Pid::from_raw(child.cast_signed()).expect("valid pid");
    kill_process_group(group, Signal::KILL).expect("signal process group");
}

/// Returns whether a process with this pid exists and is not a zombie.
#[cfg(target_os = "linux")]
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

/// Returns the pids of the children of this process, including zombies.
#[cfg(target_os = "linux")]
pub(crate) fn own_children() -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").expect("list directory").flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

/// Returns the number of open descriptors of this process, without the one that lists them.
#[cfg(target_os = "linux")]
pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("list directory").count() - 1
}

/// Returns the sizes of the unnamed files that this process has open in `dir`. Only Linux lists
/// them, in `/proc`.
pub(crate) fn nameless_files(dir: &std::path::Path) -> Vec<u64> {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let there = open.filter(|item| std::fs::read_link(item.path()).is_ok_and(|to| to.starts_with(dir)));
    there.filter_map(|item| std::fs::metadata(item.path()).ok()).map(|data| data.len()).collect()
}

/// Sleeps. Only for states that no descriptor announces, such as those of a process that is not our
/// child, and where a test needs time to pass, as between two keys.
pub(crate) fn nap(time: Duration) {
    let time =
        rustix::time::Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
    let _ = rustix::thread::nanosleep(&time);
}
