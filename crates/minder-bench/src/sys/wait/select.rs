//! select(2) with sets of any size: this file allocates the bits itself, without `fd_set`.

#![expect(unsafe_code, reason = "select takes descriptors as integers")]

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use rustix::event::{FdSetElement, FdSetIter, Timespec, fd_set_insert, fd_set_num_elements, select};
use rustix::io::Errno;

use super::objects::Objects;
use super::types::WaitBaseline;

pub(super) struct Select {
    /// Keeps the descriptors open.
    objects: Arc<Objects>,
    all: Vec<FdSetElement>,
    /// The set that is passed to the kernel, which overwrites it.
    ready: Vec<FdSetElement>,
    /// The index of the object with each descriptor.
    indices: Vec<usize>,
    /// One more than the highest descriptor.
    bound: i32,
}

impl std::fmt::Debug for Select {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Select").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}

impl Select {
    pub(super) fn open(objects: Arc<Objects>) -> Self {
        let fds: Vec<i32> = (0..objects.len()).map(|index| objects.source(index).as_raw_fd()).collect();
        let bound = fds.iter().max().map_or(0, |highest| highest + 1);
        let mut all = vec![FdSetElement::default(); fd_set_num_elements(fds.len(), bound)];
        let mut indices = vec![0; bound.cast_unsigned() as usize];
        for (index, fd) in fds.iter().enumerate() {
            fd_set_insert(&mut all, *fd);
            indices[fd.cast_unsigned() as usize] = index;
        }
        Self { objects, ready: all.clone(), all, indices, bound }
    }

    fn call(&mut self, timeout: Option<&Timespec>) -> io::Result<Option<usize>> {
        self.ready.copy_from_slice(&self.all);
        // SAFETY: all descriptors in the set belong to `objects`, which are open as long as `self`.
        let result = unsafe { select(self.bound, Some(&mut self.ready), None, None, timeout) };
        match result {
            Err(Errno::INTR) => return Ok(None),
            result => result?,
        };
        let first = FdSetIter::new(&self.ready).next();
        Ok(first.map(|fd| self.indices[fd.cast_unsigned() as usize]))
    }
}

impl WaitBaseline for Select {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.call(None)
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        self.call(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
    }
}
