//! All objects are looked at again and again, 64 by each call, as long as none of them is
//! signalled: what a program does that has more objects than a call takes and wants no threads.

use std::io;
use std::sync::Arc;

use super::{Baseline, CALL_MAX, List, Objects};

#[derive(Debug)]
pub(super) struct Scan {
    calls: Vec<List>,
    /// Keeps the handles open.
    _objects: Arc<Objects>,
}

impl Scan {
    pub(super) fn open(objects: Arc<Objects>) -> Self {
        let sources: Vec<_> = (0..objects.len()).map(|index| objects.source(index)).collect();
        let calls = sources.chunks(CALL_MAX).map(|sources| List::of(sources.iter().copied())).collect();
        Self { calls, _objects: objects }
    }
}

impl Baseline for Scan {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        let found = self.look()?;
        if found.is_none() {
            std::thread::yield_now();
        }
        Ok(found)
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        for (number, call) in self.calls.iter_mut().enumerate() {
            if let Some(place) = call.look()? {
                return Ok(Some(number * CALL_MAX + place));
            }
        }
        Ok(None)
    }
}
