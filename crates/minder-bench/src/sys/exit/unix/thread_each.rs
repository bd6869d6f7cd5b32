//! A thread for each child, which waits in waitpid(2) and sends the exit to the waiting thread.

use std::collections::HashMap;
use std::io;
use std::thread::JoinHandle;
use std::time::Instant;

use minder::Child;
use rustix::process::WaitOptions;

use crate::sys::exit::exit_channel::ExitChannel;
use crate::sys::exit::process::{to_pid, wait};
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
}

impl ThreadEach {
    pub(super) fn new() -> Self {
        Self { exits: ExitChannel::new(), threads: HashMap::new(), exited: Vec::new() }
    }
}

impl ExitWatcher for ThreadEach {
    fn add(&mut self, child: Child) -> io::Result<()> {
        for pid in self.exited.drain(..) {
            if let Some(thread) = self.threads.remove(&pid) {
                let _ = thread.join();
            }
        }
        let raw_pid = child.into_pid();
        let pid = to_pid(raw_pid)?;
        let sender = self.exits.sender();
        let thread = spawn_small(move || {
            if let (Ok(Some(exit)), Some(sender)) = (wait(Some(pid), WaitOptions::empty()), sender) {
                // The receiver is gone while the children are cleaned up.
                let _ = sender.send(exit);
            }
        })?;
        self.threads.insert(raw_pid, thread);
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        let exit = self.exits.next(deadline)?;
        self.exited.extend(exit.map(|exit| exit.pid));
        Ok(exit)
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
