//! One thread for all children, in waitpid(-1). It reaps every child of this process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use minder::Child;
use rustix::process::WaitOptions;

use crate::sys::exit::exit_channel::ExitChannel;
use crate::sys::exit::process::{has_children, wait};
use crate::sys::exit::types::ObservedExit;
use crate::sys::exit::watcher::ExitWatcher;
use crate::sys::thread::spawn_small;

#[derive(Debug)]
pub(super) struct ThreadOne {
    exits: ExitChannel,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ThreadOne {
    pub(super) fn open() -> io::Result<Self> {
        if has_children() {
            return Err(io::Error::other("this process has other children, whose ends it would take"));
        }
        let exits = ExitChannel::new();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let sender = exits.sender();
        let thread_is_stopped = Arc::clone(&is_stopped);
        let thread = spawn_small(move || {
            while !thread_is_stopped.load(Ordering::Acquire) {
                match (wait(None, WaitOptions::empty()), &sender) {
                    (Ok(Some(exit)), Some(sender)) => {
                        // The receiver is gone while the children are cleaned up.
                        let _ = sender.send(exit);
                    }
                    // There is no child. `add` unparks this thread, and its token is not lost if it
                    // came just before.
                    _ => std::thread::park(),
                }
            }
        })?;
        Ok(Self { exits, is_stopped, thread: Some(thread) })
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl ExitWatcher for ThreadOne {
    fn add(&mut self, child: Child) -> io::Result<()> {
        child.into_pid();
        self.unpark();
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        self.exits.next(deadline)
    }
}

impl Drop for ThreadOne {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        self.unpark();
        if self.exits.close()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}
