//! A thread for each child, which waits in `WaitForSingleObject` and sends the exit to the waiting
//! thread.

use std::collections::HashMap;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use minder::Child;

use super::children::Children;
use crate::sys::exit::exit_channel::ExitChannel;
use crate::sys::exit::process::has_exited;
use crate::sys::exit::types::ObservedExit;
use crate::sys::exit::watcher::ExitWatcher;
use crate::sys::thread::spawn_small;

#[derive(Debug)]
pub(super) struct ThreadEach {
    exits: ExitChannel,
    threads: HashMap<u32, JoinHandle<()>>,
    /// Pids of children that have exited, whose threads are joined when the next child is added:
    /// outside of what is measured.
    exited: Vec<u32>,
    children: Children,
}

impl ThreadEach {
    pub(super) fn new() -> Self {
        Self {
            exits: ExitChannel::new(),
            threads: HashMap::new(),
            exited: Vec::new(),
            children: Children::default(),
        }
    }
}

impl ExitWatcher for ThreadEach {
    fn add(&mut self, child: Child) -> io::Result<()> {
        for pid in self.exited.drain(..) {
            if let Some(thread) = self.threads.remove(&pid) {
                let _ = thread.join();
            }
        }
        let pid = child.id();
        self.children.add(child)?;
        let process = self.children.handle(pid)?.try_clone_to_owned()?;
        let sender = self.exits.sender();
        let thread = spawn_small(move || {
            if let (Ok(true), Some(sender)) = (has_exited(&process, Duration::MAX), sender) {
                // The receiver reads the exit code. It is gone while the children are cleaned up.
                let _ = sender.send(ObservedExit { pid, killed: false });
            }
        })?;
        self.threads.insert(pid, thread);
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        let Some(ObservedExit { pid, .. }) = self.exits.next(deadline)? else { return Ok(None) };
        self.exited.push(pid);
        self.children.remove(pid).map(Some)
    }
}

impl Drop for ThreadEach {
    fn drop(&mut self) {
        if self.exits.close() {
            for (_, thread) in self.threads.drain() {
                let _ = thread.join();
            }
        }
    }
}
