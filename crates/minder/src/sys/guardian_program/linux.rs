//! Ends the children on Linux: their groups, what left the groups and can be found, and repeats that
//! until several searches find nothing.
//!
//! A process belongs to the children if it is in a group of the list, if its parent belongs to them, or
//! if its environment has the tag. The parenthood is lost when a parent exits, since init and not this
//! program adopts its children. So everything is stopped first, which keeps parents in place and lets no
//! process start another one, and killed after the search.
//!
//! A process that forks and exits all the time has a new pid in each millisecond, and the table of a busy
//! machine takes longer to read. Only its tag shows that it belongs to the children. So after the table is
//! read, the pids that were assigned meanwhile are looked up, until none is newer, and what has the tag is
//! stopped at once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::target::Target;
use crate::sys::guardian::TAG;
use crate::sys::process_tree::{ProcEntry, each_newer_process, each_process, newest_pid, signal_process};

/// The number of times that a search is repeated that finds new processes, before all are killed.
const SEARCHES_MAX: usize = 8;
/// The number of searches in a row that have to find nothing.
const CLEAN_SEARCHES: u32 = 2;
/// The time for which newer processes are looked up in one search. Others of the machine may fork
/// all the time.
const LOOK_UP_TIME_MAX: Duration = Duration::from_millis(100);
/// If nothing new was found for this long, the rest has its SIGKILL and cannot act on it yet (an
/// unreachable file server), or may not be signalled by this user.
const QUIET_MAX: Duration = Duration::from_secs(1);
/// The longest time of all, for processes that never stop forking.
const TIME_MAX: Duration = Duration::from_secs(30);
const PAUSE_FIRST: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// A process that cannot be confused with a later one: its pid and its start time.
type Identity = (libc::pid_t, u64);

/// The list after the end of the host.
#[derive(Debug)]
pub(super) struct Ending {
    targets: Vec<Target>,
    /// The tag of the children, in the form of the variable.
    tag: Option<String>,
    /// The processes that were found so far. A process stays here when its parent is gone.
    known: HashSet<Identity>,
    /// `true` if a search found a process that no search had found before.
    found_new: bool,
}

impl Ending {
    pub(super) fn new(targets: Vec<Target>, tag: u64) -> Self {
        let tag = (tag != 0).then(|| format!("{tag:016x}"));
        Self { targets, tag, known: HashSet::new(), found_new: false }
    }

    /// Asks everything to exit, and waits for that, for at most `grace`.
    pub(super) fn ask(&mut self, grace: Duration) {
        let deadline = Instant::now().checked_add(grace);
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            self.signal_targets(signal);
        }
        let mut asked = HashSet::new();
        let mut pause = PAUSE_FIRST;
        loop {
            let alive = self.search(None);
            for process in &alive {
                // What is in a group has been asked already.
                if !self.is_in_group(process) && asked.insert(identity(process)) {
                    for signal in [libc::SIGTERM, libc::SIGCONT] {
                        signal_process(identity(process), signal);
                    }
                }
            }
            if alive.is_empty() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return;
            }
            minder_os::time::pause(pause, deadline);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Kills until nothing is left that can be killed. Returns how many processes are left, and one of
    /// them.
    pub(super) fn kill(&mut self) -> Option<(usize, libc::pid_t)> {
        let started_at = Instant::now();
        let mut quiet_since = started_at;
        let mut pause = PAUSE_FIRST;
        let mut clean_searches = 0;
        loop {
            self.found_new = false;
            self.signal_targets(libc::SIGSTOP);
            self.stop_found();
            self.signal_targets(libc::SIGKILL);
            self.known.retain(|process| signal_process(*process, libc::SIGKILL));
            minder_os::time::pause(pause, None);
            let left = self.search(Some(libc::SIGSTOP));
            clean_searches = if left.is_empty() { clean_searches + 1 } else { 0 };
            let now = Instant::now();
            if clean_searches == CLEAN_SEARCHES {
                return None;
            }
            if self.found_new {
                quiet_since = now;
                pause = PAUSE_FIRST;
            }
            if now - quiet_since >= QUIET_MAX || now - started_at >= TIME_MAX {
                return left.first().map(|process| (left.len(), process.pid));
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Stops what is not in a group of the list, until a search finds nothing new.
    fn stop_found(&mut self) {
        let mut stopped = HashSet::new();
        for _ in 0..SEARCHES_MAX {
            let found = self.search(Some(libc::SIGSTOP));
            let new: Vec<Identity> =
                found.iter().map(identity).filter(|process| stopped.insert(*process)).collect();
            if new.is_empty() {
                return;
            }
            for process in new {
                signal_process(process, libc::SIGSTOP);
            }
        }
    }

    fn signal_targets(&self, signal: i32) {
        for target in &self.targets {
            target.signal(signal);
        }
    }

    /// Searches the process table for everything that belongs to the children and is not exiting. What has
    /// the tag gets the signal as soon as it is found.
    fn search(&mut self, signal: Option<i32>) -> Vec<ProcEntry> {
        let me = std::process::id().cast_signed();
        let newest = newest_pid();
        // Each process with whether it belongs to the children, whatever its parent is.
        let mut all: Vec<(ProcEntry, bool)> = Vec::new();
        let mut add = |process: ProcEntry| {
            if process.pid == me || process.pid <= 1 || process.exiting {
                return;
            }
            let is_tagged = self.tag.as_ref().is_some_and(|tag| has_tag(process.pid, tag));
            if is_tagged && let Some(signal) = signal {
                signal_process(identity(&process), signal);
            }
            all.push((process, is_tagged));
        };
        // What could not be read is read by the next search.
        let _ = each_process(&mut add);
        if self.tag.is_some()
            && let Some(newest) = newest
        {
            look_up_newer(newest, add);
        }
        // A number belongs to a child until its last process is reaped. If one is left after the table was
        // read, the number was the child's while it was read.
        self.targets.retain(Target::exists);
        let mut pids: HashSet<libc::pid_t> = HashSet::new();
        let mut found = Vec::new();
        // Parents may come later in the table than their children.
        loop {
            let (belong, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(process, is_tagged)| {
                *is_tagged || pids.contains(&process.parent) || self.is_root(process)
            });
            all = rest;
            if belong.is_empty() {
                return found;
            }
            for (process, _) in belong {
                // The table may have listed what was looked up as well.
                if pids.insert(process.pid) {
                    self.found_new |= self.known.insert(identity(&process));
                    found.push(process);
                }
            }
        }
    }

    /// Returns whether a process belongs to the children by what is known without its environment.
    fn is_root(&self, process: &ProcEntry) -> bool {
        self.known.contains(&identity(process))
            || self.is_in_group(process)
            || self.targets.iter().any(|target| target.pid == process.pid && target.leader_exists())
    }

    fn is_in_group(&self, process: &ProcEntry) -> bool {
        self.targets.iter().any(|target| target.leads_group && target.pid == process.group)
    }
}

/// Visits the processes that are newer than this pid, until none is newer than the last that was visited:
/// then each living process was visited, or is older. Stops after [`LOOK_UP_TIME_MAX`].
fn look_up_newer(mut newest: libc::pid_t, mut visit: impl FnMut(ProcEntry)) {
    let until = Instant::now() + LOOK_UP_TIME_MAX;
    while Instant::now() < until {
        let before = newest;
        match newest_pid() {
            Some(pid) if pid != before => newest = pid,
            _ => return,
        }
        each_newer_process(before, newest, &mut visit);
    }
}

fn identity(process: &ProcEntry) -> Identity {
    (process.pid, process.started)
}

/// Returns whether the environment of a process, as it was when its program started, has the tag.
fn has_tag(pid: libc::pid_t, tag: &str) -> bool {
    // The environment of another user's process cannot be read.
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    let mut variables = environment.split(|byte| *byte == 0);
    variables.any(|variable| {
        let value = variable.strip_prefix(TAG.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| value.split(|byte| *byte == b':').any(|part| part == tag.as_bytes()))
    })
}
