//! epoll(7), level-triggered, without a library around it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use super::objects::Objects;
use super::types::WaitBaseline;

#[derive(Debug)]
pub(super) struct Epoll {
    epoll: OwnedFd,
    /// Keeps the descriptors open.
    _objects: Arc<Objects>,
}

impl Epoll {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for index in 0..objects.len() {
            epoll::add(&epoll, objects.source(index), EventData::new_u64(index as u64), EventFlags::IN)?;
        }
        Ok(Self { epoll, _objects: objects })
    }

    fn call(&self, timeout: Option<&Timespec>) -> io::Result<Option<usize>> {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 64];
        match epoll::wait(&self.epoll, &mut events, timeout) {
            Err(Errno::INTR) => Ok(None),
            result => Ok(result?.0.first().map(|event| event.data.u64() as usize)),
        }
    }
}

impl WaitBaseline for Epoll {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.call(None)
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        self.call(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
    }
}
