//! The processes, threads and descriptors that a script leaves behind.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::support::{nap, open_descriptors, own_children, patience};

/// A word in the arguments of a child and of all processes that it starts.
#[derive(Clone, Debug)]
pub(super) struct Tag(String);

impl Tag {
    /// The tag of all children of all scripts of this process.
    pub(super) fn of_process() -> Self {
        Self(format!("script-{}-", std::process::id()))
    }

    /// The tag of all children of a script.
    pub(super) fn of_script(seed: u64) -> Self {
        Self(format!("{}{seed}-", Self::of_process().0))
    }

    pub(super) fn of_child(seed: u64, number: usize) -> Self {
        Self(format!("{}{number}-", Self::of_script(seed).0))
    }

    pub(super) fn word(&self) -> &str {
        &self.0
    }

    /// Returns the pids of the processes with this tag for which `chosen` holds. It gets the command
    /// line; its words end with zeros. A zombie has no command line.
    pub(super) fn alive(&self, chosen: impl Fn(&str) -> bool) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("list directory").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            if line.contains(&self.0) && chosen(&line) && crate::support::lives(pid) {
                found.push(pid);
            }
        }
        found
    }

    /// Kills all processes with this tag, and waits until they are gone. A process that executes a
    /// program has no command line for a moment, so nothing has to be found several times.
    pub(super) fn kill_all(&self) {
        let until = patience();
        let mut empty = 0;
        while empty < 3 {
            let alive = self.alive(|_| true);
            empty = if alive.is_empty() { empty + 1 } else { 0 };
            assert!(Instant::now() < until, "{alive:?} live after SIGKILL");
            for pid in alive {
                // It may be gone by now.
                let _ = kill_process(Pid::from_raw(pid.cast_signed()).expect("valid pid"), Signal::KILL);
            }
            nap(Duration::from_millis(1));
        }
    }
}

/// Reaps the children that were dropped while they ran.
pub(super) fn reap_all() {
    for pid in own_children() {
        let pid = Pid::from_raw(pid.cast_signed()).expect("valid pid");
        waitpid(Some(pid), WaitOptions::empty()).expect("reap child");
    }
}

/// The numbers of descriptors and threads of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    descriptors: usize,
    threads: usize,
}

impl Held {
    pub(super) fn now() -> Self {
        let threads = std::fs::read_dir("/proc/self/task").expect("list directory").count();
        Self { descriptors: open_descriptors(), threads }
    }

    /// Fails if there are more than at `self`. The thread of a background set that was dropped ends a
    /// little later.
    pub(super) fn check(self) {
        let until = patience();
        loop {
            let now = Self::now();
            if now.descriptors <= self.descriptors && now.threads <= self.threads {
                return;
            }
            assert!(Instant::now() < until, "{self:?} became {now:?}: {:?}", open_files());
            nap(Duration::from_millis(1));
        }
    }
}

fn open_files() -> Vec<String> {
    let open = std::fs::read_dir("/proc/self/fd").expect("list directory").flatten();
    open.filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.display().to_string())).collect()
}
