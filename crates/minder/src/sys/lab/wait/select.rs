//! select(2), with sets of any size: the bits are ours, not those of `fd_set`.

#![expect(unsafe_code, reason = "select takes descriptors by their numbers")]

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use rustix::event::{FdSetElement, FdSetIter, Timespec, fd_set_insert, fd_set_num_elements, select};
use rustix::io::Errno;

use super::{Baseline, Objects};

pub(super) struct Select {
    /// Keeps the descriptors open.
    objects: Arc<Objects>,
    all: Vec<FdSetElement>,
    /// What the system is given, and writes over.
    ready: Vec<FdSetElement>,
    /// The place of the object with this descriptor.
    places: Vec<usize>,
    bound: i32,
}

impl std::fmt::Debug for Select {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Select").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}

impl Select {
    pub(super) fn open(objects: Arc<Objects>) -> Self {
        let numbers: Vec<i32> = (0..objects.len()).map(|index| objects.source(index).as_raw_fd()).collect();
        let bound = numbers.iter().max().map_or(0, |most| most + 1);
        let mut all = vec![FdSetElement::default(); fd_set_num_elements(numbers.len(), bound)];
        let mut places = vec![0; bound.cast_unsigned() as usize];
        for (place, number) in numbers.iter().enumerate() {
            fd_set_insert(&mut all, *number);
            places[number.cast_unsigned() as usize] = place;
        }
        Self { objects, ready: all.clone(), all, places, bound }
    }
}

impl Select {
    fn call(&mut self, timeout: Option<&Timespec>) -> io::Result<Option<usize>> {
        self.ready.copy_from_slice(&self.all);
        // SAFETY: all descriptors in the set are of `objects`, which are open as long as this lives.
        let result = unsafe { select(self.bound, Some(&mut self.ready), None, None, timeout) };
        match result {
            Err(Errno::INTR) => return Ok(None),
            result => result?,
        };
        let first = FdSetIter::new(&self.ready).next();
        Ok(first.map(|number| self.places[number.cast_unsigned() as usize]))
    }
}

impl Baseline for Select {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.call(None)
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        self.call(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
    }
}
