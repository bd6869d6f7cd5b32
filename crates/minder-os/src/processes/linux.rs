//! Linux: the directories of processes in `/proc`.
//!
//! `/proc/PID/task/TID/children` would be shorter, but leaves children out when another one exits
//! meanwhile (proc_pid_task(5)). So the parents of all processes are read.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

use super::types::ChildProcess;

/// The flag of a process that was forked and has not replaced its program (`PF_FORKNOEXEC` in the
/// kernel's include/linux/sched.h).
const FORKED_ONLY: u64 = 0x40;

pub(super) fn children(pid: u32) -> io::Result<Vec<ChildProcess>> {
    let held = held(pid)?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(child) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        found.extend(read_child(child, pid, held.contains(&child)));
    }
    // With the mount option `hidepid`, the processes of other users are not listed, or cannot be read.
    let hidden: Vec<u32> = held.into_iter().filter(|pid| is_hidden(*pid)).collect();
    found.extend(hidden.into_iter().map(|pid| ChildProcess {
        pid,
        is_held: true,
        ..ChildProcess::default()
    }));
    found.sort_by_key(|child| child.pid);
    Ok(found)
}

/// Returns the processes of which a process has pidfds: see proc_pid_fdinfo(5).
fn held(pid: u32) -> io::Result<BTreeSet<u32>> {
    let mut held = BTreeSet::new();
    for entry in fs::read_dir(path(pid, "fdinfo"))? {
        // The descriptor may have been closed meanwhile.
        let text = fs::read_to_string(entry?.path()).unwrap_or_default();
        held.extend(text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse::<u32>().ok()));
    }
    Ok(held)
}

/// Returns whether a process exists that `/proc` does not show.
fn is_hidden(pid: u32) -> bool {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let exists = |pid| matches!(rustix::process::test_kill_process(pid), Ok(()) | Err(Errno::PERM));
    Stat::read(pid).is_none() && number.is_some_and(exists)
}

pub(super) fn is_running(pid: u32, started: u64) -> bool {
    Stat::read(pid).is_some_and(|stat| stat.started == started && !stat.is_zombie)
}

pub(super) fn start_time(pid: u32) -> Option<u64> {
    Stat::read(pid).map(|stat| stat.started)
}

pub(super) fn is_stopped(pid: u32) -> io::Result<bool> {
    Stat::read(pid).map(|stat| stat.is_stopped).ok_or_else(|| io::ErrorKind::NotFound.into())
}

pub(super) fn has_open(pid: u32, file: &Metadata) -> io::Result<bool> {
    let entries = match fs::read_dir(path(pid, "fd")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !Path::new("/proc/self").exists() => {
            return Err(io::Error::other("/proc is not mounted"));
        }
        entries => entries?,
    };
    for entry in entries {
        // Follows the link to the open file itself, also if its name is gone.
        let is_it = |opened: Metadata| opened.dev() == file.dev() && opened.ino() == file.ino();
        if fs::metadata(entry?.path()).is_ok_and(is_it) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a process, if `parent` is its parent and its own program runs.
fn read_child(pid: u32, parent: u32, is_held: bool) -> Option<ChildProcess> {
    let stat = Stat::read(pid).filter(|stat| stat.parent == parent && stat.runs_own_program())?;
    let strings = |name| split_nul(&fs::read(path(pid, name)).unwrap_or_default());
    let argv = strings("cmdline");
    let environment = strings("environ");
    // The pid may have been given to another process meanwhile, or the program was replaced.
    Stat::read(pid).filter(|again| *again == stat)?;
    let Stat { started, group, .. } = stat;
    let leads_group = group == pid;
    Some(ChildProcess { pid, leads_group, started, age: age(started), is_held, argv, environment })
}

fn path(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// The part of `/proc/PID/stat` that is read (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    is_zombie: bool,
    is_stopped: bool,
    parent: u32,
    group: u32,
    forked_only: bool,
    /// The time of its start since the machine started, in ticks.
    started: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(path(pid, "stat")).ok()?)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // The name of the program stands in parentheses, and may contain any bytes.
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let fields: Vec<&str> = std::str::from_utf8(&text[end + 1..]).ok()?.split_whitespace().collect();
        // The first field here is the third of the manual page.
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            is_zombie: matches!(field(3)?, "Z" | "X" | "x"),
            is_stopped: field(3)? == "T",
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            forked_only: field(9)?.parse::<u64>().ok()? & FORKED_ONLY != 0,
            started: field(22)?.parse().ok()?,
        })
    }

    fn runs_own_program(&self) -> bool {
        !self.is_zombie && !self.forked_only
    }
}

/// Returns the time since a start. The clock is that of the kernel's start times; `/proc/uptime` may
/// be that of a container.
fn age(started: u64) -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let now = Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    );
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let nanos = u128::from(started) * 1_000_000_000 / u128::from(ticks);
    now.saturating_sub(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

fn split_nul(bytes: &[u8]) -> Vec<OsString> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|byte| *byte == 0).map(|part| OsString::from_vec(part.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_parsed_behind_a_hostile_name() {
        let text = b"17 (a) Z 1 (b) S 12 16 16 0 -1 4194368 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0";
        let stat = Stat::parse(text).expect("parse stat");
        assert_eq!((stat.parent, stat.group, stat.started), (12, 16, 4711));
        assert!(stat.forked_only && !stat.is_zombie && !stat.runs_own_program() && !stat.is_stopped);
        let stopped =
            Stat::parse(&text.map(|byte| if byte == b'S' { b'T' } else { byte })).expect("parse stat");
        assert!(stopped.is_stopped);
        assert_eq!(Stat::parse(b"17 (a"), None);
        assert_eq!(Stat::parse(b"17 (a) S 1 2"), None);
    }

    #[test]
    fn own_process_has_its_files_open() {
        let file = tempfile::tempfile().expect("create temp file");
        let metadata = file.metadata().expect("read metadata");
        let own = std::process::id();
        assert!(has_open(own, &metadata).expect("read own descriptors"));
        drop(file);
        assert!(!has_open(own, &metadata).expect("read own descriptors"));
    }

    #[test]
    fn split_nul_keeps_empty_arguments() {
        assert_eq!(split_nul(b"a\0\0b\0"), ["a", "", "b"]);
        assert_eq!(split_nul(b""), [""; 0]);
    }
}
