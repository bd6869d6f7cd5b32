//! The event loops that are compared, each as its documentation says that it is to be used.

use anyhow::Result;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;

/// How many events one wait may tell: as many as minder's own backend takes in a call.
const EVENTS_MAX: usize = 256;

/// A loop that watches the objects and is told which of them is ready.
pub(crate) trait Contestant {
    /// Waits without a deadline; the place of the object, if exactly one was told. The next wait is
    /// told of the next signal: whatever has to be armed again is armed here.
    fn wait(&mut self) -> Result<Option<usize>>;
}

/// Who takes part.
pub(crate) enum Entry {
    /// The system call alone.
    Bare,
    /// Minder's front over the backend of this name, and edge-triggered.
    Minder(&'static str),
    MinderEdge,
    Mio,
    Polling,
    PollingOneshot,
}

/// All, in the order of every round.
pub(crate) fn all() -> Vec<Entry> {
    let ours = minder::backends().map(Entry::Minder);
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

    /// Makes it, and lets it watch all the objects: for reading, with their places as tokens.
    pub(crate) fn open<'a>(&self, objects: &'a [OwnedFd]) -> Result<Box<dyn Contestant + 'a>> {
        Ok(match self {
            Self::Bare => Box::new(Bare::new(objects)?),
            Self::Minder(backend) => Box::new(Minder::new(backend, minder::Interest::READABLE, objects)?),
            Self::MinderEdge => Box::new(Minder::new("epoll", minder::Interest::READABLE.edge(), objects)?),
            Self::Mio => Box::new(Mio::new(objects)?),
            Self::Polling => Box::new(Polling::new(objects, polling::PollMode::Level)?),
            Self::PollingOneshot => Box::new(Polling::new(objects, polling::PollMode::Oneshot)?),
        })
    }
}

/// What is told, if it is one thing.
fn single(mut told: impl Iterator<Item = usize>) -> Option<usize> {
    told.next().filter(|_| told.next().is_none())
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

impl Contestant for Bare {
    fn wait(&mut self) -> Result<Option<usize>> {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_MAX];
        let (told, _) = epoll::wait(&self.0, &mut events, None)?;
        Ok(single(told.iter().map(|event| event.data.u64() as usize)))
    }
}

struct Minder {
    poller: minder::Poller,
    events: minder::Events,
}

impl Minder {
    fn new(backend: &str, interest: minder::Interest, objects: &[OwnedFd]) -> Result<Self> {
        let poller = minder::Poller::with_backend(backend)?;
        for (place, object) in objects.iter().enumerate() {
            poller.add(object, minder::Token(place as u64), interest)?;
        }
        Ok(Self { poller, events: minder::Events::new() })
    }
}

impl Contestant for Minder {
    fn wait(&mut self) -> Result<Option<usize>> {
        self.poller.wait(&mut self.events, None)?;
        Ok(single(self.events.iter().map(|ready| ready.token.0 as usize)))
    }
}

/// Edge-triggered by design: the read that resets the object is what makes the next signal an edge.
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

impl Contestant for Mio {
    fn wait(&mut self) -> Result<Option<usize>> {
        self.poll.poll(&mut self.events, None)?;
        Ok(single(self.events.iter().map(|event| event.token().0)))
    }
}

/// Level-triggered, where nothing has to be armed again; or oneshot, its default, where whoever was
/// told is.
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
            // Its `add` is unsafe, since it asks for a promise that the descriptor outlives the set. Here the
            // system is told of the descriptor, and `modify` sets whatever polling wants of it.
            epoll::add(poller.as_fd(), object, EventData::new_u64(0), EventFlags::empty())?;
            poller.modify_with_mode(borrow(object), polling::Event::readable(place), mode)?;
        }
        let capacity = NonZeroUsize::new(EVENTS_MAX).unwrap_or(NonZeroUsize::MIN);
        Ok(Self { poller, events: polling::Events::with_capacity(capacity), objects, mode })
    }
}

impl Contestant for Polling<'_> {
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
