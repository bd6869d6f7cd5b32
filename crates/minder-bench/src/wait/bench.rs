//! One mechanism that waits for one of many objects.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use minder::poll::{Events, Interest, Poller, Token};
use minder::{Backend, ErrorKind};

use super::objects::WaitObjects;
use crate::error::{Error, Result};
use crate::sys::wait as sys;

/// Returns the names that [`WaitBench::open`] takes: those of [`Backend::available`], then the baselines.
///
/// - Unix: `select`, with sets of any size, `bare-poll` and, on Linux, `bare-epoll`: the system
///   calls without a library. `thread-each`: a thread for each object, blocked in a read, which
///   sends the index to the waiting thread; at most 4096.
/// - Windows: `bare-wfmo`: `WaitForMultipleObjects`, at most 64 objects. `scan`: the same call
///   without a wait, for 64 objects each. `threads-at-each-wait`: threads with 63 objects each that
///   are started for one wait. `posting-pool`: resident threads that stay in their calls, with 63
///   objects each, and post signalled objects to a completion port.
/// - Everywhere `pool`: resident threads that wait for 63 objects each and are all dispatched and
///   recalled at each wait.
///
/// Those with threads start none for up to 64 objects, except `thread-each` and `posting-pool`.
///
/// ```
/// assert!(minder_bench::waits().any(|name| name == "pool"));
/// ```
pub fn waits() -> impl Iterator<Item = &'static str> {
    Backend::available().map(Backend::name).chain(sys::BASELINES.iter().map(|(name, _)| *name))
}

/// A mechanism that watches objects, for the thread that opened it.
///
/// ```
/// use minder::ErrorKind;
/// use minder_bench::{WaitBench, WaitObjects, waits};
///
/// for mechanism in waits() {
///     let mut bench = match WaitBench::open(mechanism, WaitObjects::open(50)?) {
///         // This machine does not have it.
///         Err(error) if error.kind() == ErrorKind::Unsupported => continue,
///         opened => opened?,
///     };
///     bench.cycle(42)?;
///     bench.cycle(7)?;
///     bench.poll()?;
/// }
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct WaitBench {
    // Dropped before the objects.
    mechanism: Mechanism,
    objects: Arc<sys::Objects>,
    /// A deadline in the past, for a wait that does not block.
    past: Instant,
}

#[derive(Debug)]
enum Mechanism {
    Poller(Box<Poller>, Events),
    Baseline(Box<dyn sys::WaitBaseline>),
}

impl WaitBench {
    /// Makes a mechanism watch all these objects.
    ///
    /// # Errors
    /// `Unsupported` for a name that is not in [`waits`], for a mechanism that this machine does
    /// not have, and for more objects than the mechanism takes; `Exhausted` if there are too few
    /// descriptors or threads.
    pub fn open(mechanism: &str, objects: WaitObjects) -> Result<Self> {
        let objects = objects.0;
        let baseline = sys::BASELINES.iter().find(|(name, _)| *name == mechanism);
        let mechanism = match baseline {
            Some((name, open)) => {
                let opened = open(Arc::clone(&objects));
                let subject = Some(OsStr::new(name));
                Mechanism::Baseline(
                    opened.map_err(|error| Error::from_io("watch objects by", subject, &error))?,
                )
            }
            None => {
                let unknown = || {
                    let error = io::ErrorKind::Unsupported.into();
                    Error::from_io("open the mechanism", Some(OsStr::new(mechanism)), &error)
                };
                let backend = Backend::available().find(|backend| backend.name() == mechanism);
                let poller = Poller::with_backend(backend.ok_or_else(unknown)?)?;
                for index in 0..objects.len() {
                    poller.add(objects.source(index), Token(index as u64), Interest::READABLE)?;
                }
                Mechanism::Poller(Box::new(poller), Events::new())
            }
        };
        Ok(Self { mechanism, objects, past: Instant::now() })
    }

    /// Signals an object, waits until the mechanism reports it, and resets it.
    ///
    /// # Errors
    /// `Other` if the mechanism reports another object; those of system calls that do not fail for
    /// an open object.
    ///
    /// # Panics
    /// If there is no such object.
    pub fn cycle(&mut self, index: usize) -> Result<()> {
        const OPERATION: &str = "wait for an object";
        let failed = |error| Error::from_io(OPERATION, None, &error);
        self.objects.signal(index).map_err(failed)?;
        let mut is_reset = false;
        let reported = match &mut self.mechanism {
            Mechanism::Poller(poller, events) => {
                poller.wait(events, None)?;
                events.iter().next().map(|event| event.token.0 as usize)
            }
            Mechanism::Baseline(baseline) => {
                is_reset = baseline.resets();
                loop {
                    if let Some(reported) = baseline.wait().map_err(failed)? {
                        break Some(reported);
                    }
                }
            }
        };
        if reported != Some(index) {
            let reason = "another one was reported than the one that was signalled";
            return Err(Error::new(ErrorKind::Other, OPERATION, None, reason));
        }
        if !is_reset {
            self.objects.reset(index).map_err(failed)?;
        }
        Ok(())
    }

    /// Polls once while no object is signalled.
    ///
    /// # Errors
    /// `Other` if the mechanism reports an object; those of system calls that do not fail for an
    /// open object.
    pub fn poll(&mut self) -> Result<()> {
        const OPERATION: &str = "look for an object";
        let is_reported = match &mut self.mechanism {
            Mechanism::Poller(poller, events) => poller.wait_deadline(events, Some(self.past))? > 0,
            Mechanism::Baseline(baseline) => {
                let reported = baseline.poll();
                reported.map_err(|error| Error::from_io(OPERATION, None, &error))?.is_some()
            }
        };
        if is_reported {
            let reason = "one was reported and none was signalled";
            return Err(Error::new(ErrorKind::Other, OPERATION, None, reason));
        }
        Ok(())
    }
}
