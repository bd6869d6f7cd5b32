//! Threads that compute while something else is measured.

use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use crate::{Error, Result};

/// Threads that use a processor each, until this is dropped.
///
/// ```
/// use minder_bench::BusyThreads;
///
/// let busy = BusyThreads::start(2)?;
/// drop(busy); // They have ended.
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "its threads end when it is dropped"]
pub struct BusyThreads {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyThreads {
    /// Starts this many threads.
    ///
    /// # Errors
    /// The system cannot start all of them. Those that were started end.
    pub fn start(count: usize) -> Result<Self> {
        let mut this = Self { ends: Arc::default(), threads: Vec::with_capacity(count) };
        for _ in 0..count {
            let ends = Arc::clone(&this.ends);
            let work = move || {
                while !ends.load(Ordering::Relaxed) {
                    spin_loop();
                }
            };
            let thread = Builder::new().name("load".into()).spawn(work);
            this.threads
                .push(thread.map_err(|error: io::Error| Error::from_io("start a thread", None, &error))?);
        }
        Ok(this)
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has no way to panic.
            let _ = thread.join();
        }
    }
}
