//! Polls all objects in a loop, 64 by each call, until one is signalled: what a program does that
//! has more objects than a call takes and no threads.

use std::io;
use std::sync::Arc;

use super::objects::Objects;
use super::types::{CALL_MAX, WaitBaseline};
use super::wfmo::List;

#[derive(Debug)]
pub(super) struct Scan {
    calls: Vec<List>,
    /// Keeps the handles open.
    _objects: Arc<Objects>,
}

impl Scan {
    pub(super) fn open(objects: Arc<Objects>) -> Self {
        let sources: Vec<_> = (0..objects.len()).map(|index| objects.source(index)).collect();
        let calls = sources.chunks(CALL_MAX).map(|sources| List::new(sources.iter().copied())).collect();
        Self { calls, _objects: objects }
    }
}

impl WaitBaseline for Scan {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        let found = self.poll()?;
        if found.is_none() {
            std::thread::yield_now();
        }
        Ok(found)
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        for (number, call) in self.calls.iter_mut().enumerate() {
            if let Some(position) = call.poll()? {
                return Ok(Some(number * CALL_MAX + position));
            }
        }
        Ok(None)
    }
}
