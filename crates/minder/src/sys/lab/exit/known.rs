//! The least that an end can cost: `WaitForSingleObject` for a child that is known to have been
//! killed. It hears nothing else.

use std::io;
use std::time::Instant;

use super::children::Children;
use super::windows::is_over;
use super::{End, Hear};
use crate::sys::spawn::Spawned;

/// Waits for a known child.
#[derive(Debug, Default)]
pub(super) struct Known(Children);

impl Hear for Known {
    fn add(&mut self, child: Spawned) -> io::Result<()> {
        self.0.add(child);
        Ok(())
    }

    fn next(&mut self, awaited: u32, deadline: Instant) -> io::Result<Option<End>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if is_over(&self.0.handle(awaited)?, left)? { self.0.take(awaited).map(Some) } else { Ok(None) }
    }
}
