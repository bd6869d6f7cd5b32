//! Waiting for one of many objects, by our mechanisms and by baselines, in one form.

use std::sync::Arc;
use std::time::Instant;

use crate::poller::{Events, Poller, backends};
use crate::sys::lab as sys;
use crate::{Error, ErrorKind, Interest, Result, Token};

/// The names that [`Waiting::open`] takes: those of [`backends`](crate::backends), then the
/// baselines.
///
/// - Unix: `select`, with sets of any size, `bare-poll` and, on Linux, `bare-epoll`: the system
///   calls, with nothing around them. `thread-each`: a thread an object, blocked in a read, which
///   hands the news to the waiter; at most 4096.
/// - Windows: `bare-wfmo`: `WaitForMultipleObjects`, at most 64 objects. `scan`: the same call
///   without waiting, for 64 objects each. `threads-at-each-wait`: threads with 63 objects each
///   that are made for one wait. `posting-pool`: resident threads that stay in their calls, with 63
///   objects each, and post what they hear to a completion port.
/// - Everywhere `pool`: resident threads that wait for 63 objects each and are all sent off and
///   called back at each wait.
///
/// Those with threads have none up to 64 objects, but for `thread-each` and `posting-pool`.
pub fn waits() -> impl Iterator<Item = &'static str> {
    let baselines = sys::wait::BASELINES;
    backends().chain(baselines.iter().map(|(name, _)| *name))
}

/// Objects that can be signalled and reset, and that nobody waits for yet.
///
/// - Linux: eventfds. Other Unix: pipes. Windows: events that stay set until they are reset.
#[derive(Debug)]
pub struct Objects(Arc<sys::Objects>);

impl Objects {
    /// How many descriptors or handles one of them takes.
    pub const DESCRIPTORS: usize = sys::Objects::DESCRIPTORS;

    /// Sizes at which it is worth while to look on this system: 0, and those beside where something
    /// changes.
    pub const SIZES: &[u64] = sys::SIZES;

    /// Makes so many.
    ///
    /// # Errors
    /// `Exhausted` when there are too few descriptors.
    pub fn open(count: usize) -> Result<Self> {
        let objects =
            sys::Objects::open(count).map_err(|error| Error::new("make objects to wait for", error))?;
        Ok(Self(Arc::new(objects)))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Signals an object and resets it, with nobody who waits: what [`Waiting::cycle`] costs beyond
    /// this is the wait.
    ///
    /// # Errors
    /// Only those of system calls that should not fail.
    ///
    /// # Panics
    /// When there is no such object.
    pub fn rest(&self, index: usize) -> Result<()> {
        let rested = self.0.signal(index).and_then(|()| self.0.reset(index));
        rested.map_err(|error| Error::new("signal an object", error))
    }
}

/// One mechanism that watches objects, for the thread that opened it.
///
/// ```
/// use minder::ErrorKind;
/// use minder::lab::{Objects, Waiting, waits};
///
/// for mechanism in waits() {
///     let mut waiting = match Waiting::open(mechanism, Objects::open(50)?) {
///         // This machine does not have it.
///         Err(error) if error.kind() == ErrorKind::Unsupported => continue,
///         opened => opened?,
///     };
///     waiting.cycle(42)?;
///     waiting.cycle(7)?;
///     waiting.look()?;
/// }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug)]
pub struct Waiting {
    // Dropped before the objects.
    how: How,
    objects: Arc<sys::Objects>,
    /// A deadline that has come.
    past: Instant,
}

#[derive(Debug)]
enum How {
    Ours(Box<Poller>, Events),
    Baseline(Box<dyn sys::wait::Baseline>),
}

impl Waiting {
    /// Has a mechanism watch all these objects.
    ///
    /// # Errors
    /// `Unsupported` for a name that [`waits`] does not have, for a mechanism that this machine
    /// does not have, and for more objects than the mechanism takes; `Exhausted` when there are
    /// too few descriptors or threads.
    pub fn open(mechanism: &str, objects: Objects) -> Result<Self> {
        let objects = objects.0;
        let baseline = sys::wait::BASELINES.iter().find(|(name, _)| *name == mechanism);
        let how = match baseline {
            Some((_, open)) => {
                let opened = open(Arc::clone(&objects));
                How::Baseline(
                    opened.map_err(|error| Error::new("watch objects by", error).with_subject(mechanism))?,
                )
            }
            None => {
                let poller = Poller::with_backend(mechanism)?;
                for index in 0..objects.len() {
                    poller.add(objects.source(index), Token(index as u64), Interest::READABLE)?;
                }
                How::Ours(Box::new(poller), Events::new())
            }
        };
        Ok(Self { how, objects, past: Instant::now() })
    }

    /// Signals one object, waits until it is told, and resets it.
    ///
    /// # Errors
    /// `Other` when another object is told; those of system calls that should not fail.
    ///
    /// # Panics
    /// When there is no such object.
    pub fn cycle(&mut self, index: usize) -> Result<()> {
        let failed = |error| Error::new("wait for an object", error);
        self.objects.signal(index).map_err(failed)?;
        let (told, resets) = match &mut self.how {
            How::Ours(poller, events) => {
                poller.wait(events, None)?;
                (events.iter().next().map(|event| event.token.0 as usize), false)
            }
            How::Baseline(baseline) => loop {
                if let Some(told) = baseline.wait().map_err(failed)? {
                    break (Some(told), baseline.resets());
                }
            },
        };
        if told != Some(index) {
            let cause = "another one was told than the one that was signalled";
            return Err(Error::of_kind(ErrorKind::Other, "wait for an object", cause));
        }
        if resets { Ok(()) } else { self.objects.reset(index).map_err(failed) }
    }

    /// Looks, without waiting, for an object that is signalled, and finds none: nobody signalled
    /// any.
    ///
    /// # Errors
    /// `Other` when an object is told; those of system calls that should not fail.
    pub fn look(&mut self) -> Result<()> {
        let failed = |error| Error::new("look for an object", error);
        let told = match &mut self.how {
            How::Ours(poller, events) => poller.wait(events, Some(self.past))? > 0,
            How::Baseline(baseline) => baseline.look().map_err(failed)?.is_some(),
        };
        if told {
            let cause = "one was told and none was signalled";
            return Err(Error::of_kind(ErrorKind::Other, "look for an object", cause));
        }
        Ok(())
    }
}
