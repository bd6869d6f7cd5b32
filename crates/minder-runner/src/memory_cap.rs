//! The limit of memory of each job (`--memory-max`) by cgroups of version 2.
//!
//! ```text
//! the cgroup in which minder was started       passes the controller `memory` on
//!  └ minder-PID                                passes it on
//!     ├ runner                                 minder and its guardians
//!     └ job-NUMBER-START                       the processes of one attempt of a job: `memory.max`
//! ```
//!
//! A cgroup that passes `memory` on may contain no process ("No Internal Process Constraint" in the
//! documentation of the kernel). minder therefore moves itself and its guardians, and does so only if no
//! other process is there: it never moves those. After `kill -9` of minder the cgroups remain, empty; systemd
//! removes them with its scope.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use minder::guard::ProcessGuard;
use minder_os::cgroup::{Cgroup, Place};
use minder_os::sync::Mutex;

use crate::notice::Notice;
use crate::observer::Observer;
use crate::text::os_error_text;

/// The cgroup of minder and of its guardians.
const RUNNER: &str = "runner";
const CONTROL: &str = "cgroup.subtree_control";
const PROCESSES: &str = "cgroup.procs";
/// How long the end of a run waits for processes of its jobs, in all. They were killed, or stay.
const END_WAIT: Duration = Duration::from_millis(100);
/// The most levels of cgroups that are removed below that of a run. A job may have made some.
const DEPTH_MAX: usize = 8;

/// The cgroups of a run.
#[derive(Debug)]
pub(crate) struct JobCgroups {
    /// The cgroup in which minder was started.
    own: Cgroup,
    run: Cgroup,
    name: String,
    /// This process and its guardians.
    pids: Vec<u32>,
    /// The most bytes that the processes of a job use together.
    max: u64,
    /// The number of cgroups that were made for jobs.
    starts: AtomicU64,
    /// The cgroups of ended jobs that were not empty.
    busy: Mutex<VecDeque<String>>,
}

/// The cgroup of an attempt of a job. It is removed with this object.
#[derive(Debug)]
pub(crate) struct JobCgroup {
    run: Arc<JobCgroups>,
    cgroup: Cgroup,
    name: String,
}

/// Prepares the limit of `max` bytes for each job, if there is one. Returns `None`, after a message, if this
/// process may not make cgroups: the address space is limited then. Call it when the guardians are ready,
/// and before the first job.
pub(crate) fn prepare(
    max: Option<u64>,
    guard: &ProcessGuard,
    observer: &dyn Observer,
) -> Option<Arc<JobCgroups>> {
    let max = max?;
    let mut pids = vec![std::process::id()];
    pids.extend(guard.guardians().into_iter().flat_map(|guardians| [guardians.inner, guardians.outer]));
    match JobCgroups::new(max, pids) {
        Ok(cgroups) => Some(Arc::new(cgroups)),
        Err(Refused { reason, is_available }) => {
            observer.notice(&Notice::AddressSpaceLimited { reason, is_available });
            None
        }
    }
}

/// Why no job gets a cgroup.
#[derive(Debug)]
struct Refused {
    reason: String,
    /// `true` if the system has what is needed, and could delegate it.
    is_available: bool,
}

impl JobCgroups {
    fn new(max: u64, pids: Vec<u32>) -> Result<Self, Refused> {
        let absent = |reason: &str| Refused { reason: reason.to_owned(), is_available: false };
        let place = match Place::find() {
            Ok(Some(place)) => place,
            Ok(None) => return Err(absent("cgroups of version 2 are not mounted")),
            Err(error) => return Err(absent(&format!("cannot open its cgroup: {}", os_error_text(&error)))),
        };
        let has_memory = |cgroup: &Cgroup| lists(cgroup, "cgroup.controllers", "memory");
        if !has_memory(&place.root) && !has_memory(&place.own) {
            return Err(absent("cgroups of version 2 have no controller of memory here"));
        }
        let refused = |reason: &str| Refused { reason: reason.to_owned(), is_available: true };
        if !has_memory(&place.own) {
            return Err(refused("the cgroup of minder has no controller of memory"));
        }
        let own = place.own;
        match processes(&own) {
            // In a container it may be that of the host, and the root is in its place.
            Ok(found) if !found.contains(&pids[0]) => return Err(absent("its cgroup is not mounted here")),
            Ok(found) if found.iter().all(|pid| pids.contains(pid)) => (),
            Ok(_) => return Err(refused("other processes are in the cgroup of minder")),
            Err(error) => return Err(refused(&format!("cannot read its cgroup: {}", os_error_text(&error)))),
        }
        let name = format!("minder-{}", pids[0]);
        let not_delegated =
            |error: io::Error| refused(&format!("its cgroup is not delegated: {}", os_error_text(&error)));
        let run = own.create(&name).map_err(not_delegated)?;
        let cgroups = Self { own, run, name, pids, max, starts: AtomicU64::new(0), busy: Mutex::default() };
        cgroups.enter().map_err(|error| {
            cgroups.leave();
            not_delegated(error)
        })?;
        Ok(cgroups)
    }

    /// Moves minder and its guardians into their cgroup, and then passes the controller on.
    fn enter(&self) -> io::Result<()> {
        let runner = self.run.create(RUNNER)?;
        for pid in &self.pids {
            runner.write(PROCESSES, &pid.to_string())?;
        }
        self.own.write(CONTROL, "+memory")?;
        // Before Linux 4.19 the kernel killed single processes of a job.
        self.run.read("memory.oom.group")?;
        self.run.write(CONTROL, "+memory")
    }

    /// Undoes [`enter`](Self::enter), and removes what it made. A failed step leaves the later ones to the
    /// kernel, which refuses them.
    fn leave(&self) {
        let _ = self.run.write(CONTROL, "-memory");
        let _ = self.own.write(CONTROL, "-memory");
        for pid in &self.pids {
            let _ = self.own.write(PROCESSES, &pid.to_string());
        }
        let _ = remove_tree(&self.own, &self.name, DEPTH_MAX);
    }

    /// Makes the cgroup of an attempt of a job, with its limit.
    ///
    /// # Errors
    /// Any error of the file system; `WouldBlock` if the system allows no more cgroups.
    pub(crate) fn create(self: &Arc<Self>, job: u64) -> io::Result<JobCgroup> {
        let name = format!("job-{job}-{}", self.starts.fetch_add(1, Ordering::Relaxed) + 1);
        let cgroup = self.run.create(&name)?;
        // From here on it is removed after an error, too.
        let made = JobCgroup { run: Arc::clone(self), cgroup, name };
        made.cgroup.write("memory.oom.group", "1")?;
        made.cgroup.write("memory.max", &self.max.to_string())?;
        match made.cgroup.write("memory.swap.max", "0") {
            // The kernel does not count swapped memory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => (),
            result => result?,
        }
        Ok(made)
    }

    /// Removes the cgroup of an ended job. If it is not empty, a later call removes it: processes that the
    /// job left running are in it, or its last process is about to leave it.
    fn remove(&self, name: String) {
        let earlier = self.busy.lock().pop_front();
        for name in earlier.into_iter().chain([name]) {
            if remove_tree(&self.run, &name, 0).is_err() {
                self.busy.lock().push_back(name);
            }
        }
    }

    /// Removes all cgroups of the run, and moves minder back. Call it when no job runs. Processes that jobs
    /// left running keep their cgroups with the limits, and then minder stays where it is.
    pub(crate) fn end(&self) {
        let end = Instant::now() + END_WAIT;
        let mut busy = std::mem::take(&mut *self.busy.lock());
        busy.retain(|name| {
            let left = end.saturating_duration_since(Instant::now());
            let _ = self.run.open(name).and_then(|cgroup| cgroup.wait_empty(left));
            remove_tree(&self.run, name, DEPTH_MAX).is_err()
        });
        if busy.is_empty() {
            self.leave();
        }
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }
}

impl JobCgroup {
    /// Returns the open directory.
    pub(crate) fn dir(&self) -> Arc<File> {
        self.cgroup.dir()
    }

    pub(crate) fn max(&self) -> u64 {
        self.run.max()
    }

    /// Returns whether the kernel has killed its processes at the limit.
    pub(crate) fn was_killed(&self) -> bool {
        // It also counts the kills of cgroups that the job made in this one.
        self.cgroup.read("memory.events").is_ok_and(|events| kills(&events) > 0)
    }
}

impl Drop for JobCgroup {
    fn drop(&mut self) {
        self.run.remove(std::mem::take(&mut self.name));
    }
}

/// Returns the number of processes that were killed, from the text of `memory.events`.
fn kills(events: &str) -> u64 {
    let count = events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    count.unwrap_or(0)
}

/// Returns whether a file of a cgroup has this word.
fn lists(cgroup: &Cgroup, file: &str, word: &str) -> bool {
    cgroup.read(file).is_ok_and(|text| text.split_ascii_whitespace().any(|found| found == word))
}

/// Returns the processes of a cgroup. One that is not visible here is 0.
fn processes(cgroup: &Cgroup) -> io::Result<Vec<u32>> {
    let text = cgroup.read(PROCESSES)?;
    Ok(text.lines().map(|line| line.parse().unwrap_or(0)).collect())
}

/// Removes a cgroup, and those in it down to this many levels.
fn remove_tree(parent: &Cgroup, name: &str, depth: usize) -> io::Result<()> {
    match parent.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if depth == 0 => Err(error),
        Err(_) => {
            let cgroup = parent.open(name)?;
            for name in cgroup.names()? {
                remove_tree(&cgroup, &name, depth - 1)?;
            }
            parent.remove(name)
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_of_memory_events_are_counted() {
        let events = "low 0\nhigh 0\nmax 31\noom 2\noom_kill 3\noom_group_kill 1\n";
        assert_eq!((kills(events), kills("oom 2\n"), kills("")), (3, 0, 0));
    }
}
