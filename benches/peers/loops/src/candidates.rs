//! The event loops that are compared, each used as its documentation recommends.

use anyhow::Result;
use minder::poll::Interest;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;

/// The most events that one wait may report: as many as minder's own backend takes in a call.
const EVENTS_MAX: usize = 256;

/// An event loop that watches the objects.
pub(crate) trait Candidate {
    /// Waits without a deadline; returns the index of the object if exactly one is reported. Arms
    /// again what the next wait needs.
    fn wait(&mut self) -> Result<Option<usize>>;
}

/// One candidate of the measurement.
pub(crate) enum Entry {
    /// The system call alone.
    Bare,
    /// The poller of minder over this backend, and edge-triggered.
    Minder(minder::Backend),
    MinderEdge,
    Mio,
    Polling,
    PollingOneshot,
}

/// Returns all candidates, in the order of every round.
pub(crate) fn all() -> Vec<Entry> {
    let ours = minder::Backend::available().map(Entry::Minder);
    let others = [Entry::MinderEdge, Entry::Mio, Entry::Polling, Entry::PollingOneshot];
    [Entry::Bare].into_iter().chain(ours).chain(others).collect()
}

impl Entry {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Bare => "bare-epoll".into(),
            Self::Minder(backend) => format!("minder {backend}"),
            Self::MinderEdge => "minder epoll edge".into(),
            Self::Mio => "mio".into(),
            Self::Polling => "polling".into(),
            Self::PollingOneshot => "polling oneshot".into(),
        }
    }

    /// Creates it, and registers all objects: for reading, with their indices as tokens.
    pub(crate) fn open<'a>(&self, objects: &'a [OwnedFd]) -> Result<Box<dyn Candidate + 'a>> {
        Ok(match self {
            Self::Bare => Box::new(Bare::new(objects)?),
            Self::Minder(backend) => Box::new(Minder::new(*backend, Interest::READABLE, objects)?),
            Self::MinderEdge => {
                Box::new(Minder::new(minder::Backend::Epoll, Interest::READABLE.edge(), objects)?)
            }
            Self::Mio => Box::new(Mio::new(objects)?),
            Self::Polling => Box::new(Polling::new(objects, polling::PollMode::Level)?),
            Self::PollingOneshot => Box::new(Polling::new(objects, polling::PollMode::Oneshot)?),
        })
    }
}

/// Returns the one index that is reported; `None` for any other number of them.
fn single(mut reported: impl Iterator<Item = usize>) -> Option<usize> {
    let first = reported.next()?;
    if reported.next().is_some() { None } else { Some(first) }
}

struct Bare(OwnedFd);

impl Bare {
    fn new(objects: &[OwnedFd]) -> Result<Self> {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        for (place, object) in objects.iter().enumerate() {
            epoll::add(&set, object, EventData::new_u64(place as u64), EventFlags::IN)?;
        }
        Ok(Self(set))
    }
}

impl Candidate for Bare {
    fn wait(&mut self) -> Result<Option<usize>> {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_MAX];
        let (reported, _) = epoll::wait(&self.0, &mut events, None)?;
        Ok(single(reported.iter().map(|event| event.data.u64() as usize)))
    }
}

struct Minder {
    poller: minder::poll::Poller,
    events: minder::poll::Events,
}

impl Minder {
    fn new(backend: minder::Backend, interest: minder::poll::Interest, objects: &[OwnedFd]) -> Result<Self> {
        let poller = minder::poll::Poller::with_backend(backend)?;
        for (place, object) in objects.iter().enumerate() {
            poller.add(object, minder::poll::Token(place as u64), interest)?;
        }
        Ok(Self { poller, events: minder::poll::Events::new() })
    }
}

impl Candidate for Minder {
    fn wait(&mut self) -> Result<Option<usize>> {
        self.poller.wait(&mut self.events, None)?;
        Ok(single(self.events.iter().map(|ready| ready.token.0 as usize)))
    }
}

/// Edge-triggered by design: the read that resets the object makes the next signal an edge.
struct Mio {
    poll: mio::Poll,
    events: mio::Events,
}

impl Mio {
    fn new(objects: &[OwnedFd]) -> Result<Self> {
        let poll = mio::Poll::new()?;
        for (place, object) in objects.iter().enumerate() {
            let mut source = mio::unix::SourceFd(&object.as_raw_fd());
            poll.registry().register(&mut source, mio::Token(place), mio::Interest::READABLE)?;
        }
        Ok(Self { poll, events: mio::Events::with_capacity(EVENTS_MAX) })
    }
}

impl Candidate for Mio {
    fn wait(&mut self) -> Result<Option<usize>> {
        self.poll.poll(&mut self.events, None)?;
        Ok(single(self.events.iter().map(|event| event.token().0)))
    }
}

/// Level-triggered, or oneshot, its default: then a reported descriptor is armed again.
struct Polling<'a> {
    poller: polling::Poller,
    events: polling::Events,
    objects: &'a [OwnedFd],
    mode: polling::PollMode,
}

impl<'a> Polling<'a> {
    fn new(objects: &'a [OwnedFd], mode: polling::PollMode) -> Result<Self> {
        let poller = polling::Poller::new()?;
        for (place, object) in objects.iter().enumerate() {
            // `add` is unsafe: the caller promises that the descriptor outlives the set. Here epoll gets the
            // descriptor directly, and `modify` sets the interest that polling needs.
            epoll::add(poller.as_fd(), object, EventData::new_u64(0), EventFlags::empty())?;
            poller.modify_with_mode(borrow(object), polling::Event::readable(place), mode)?;
        }
        let capacity = NonZeroUsize::new(EVENTS_MAX).unwrap_or(NonZeroUsize::MIN);
        Ok(Self { poller, events: polling::Events::with_capacity(capacity), objects, mode })
    }
}

impl Candidate for Polling<'_> {
    fn wait(&mut self) -> Result<Option<usize>> {
        self.events.clear();
        self.poller.wait(&mut self.events, None)?;
        let place = single(self.events.iter().map(|event| event.key));
        if let (Some(place), polling::PollMode::Oneshot) = (place, self.mode) {
            self.poller.modify(borrow(&self.objects[place]), polling::Event::readable(place))?;
        }
        Ok(place)
    }
}

fn borrow(object: &OwnedFd) -> BorrowedFd<'_> {
    object.as_fd()
}
