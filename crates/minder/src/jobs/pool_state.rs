//! The state that the loops of a pool share under its locks.

use super::config::{QueueOrder, SchedulerOptions};
use super::scheduler::Scheduler;
use crate::{Error, ErrorKind, Result};

pub(super) struct PoolState<J> {
    pub(super) scheduler: Scheduler<J>,
    pub(super) source_exhausted: bool,
    /// `true` if no job starts before the source is exhausted, because the order needs to know all
    /// jobs.
    pub(super) is_gathering: bool,
    /// By `JobPool::set_paused`.
    pub(super) paused: bool,
    /// By `JobPool::suspend`.
    pub(super) suspended: bool,
}

impl<J> PoolState<J> {
    pub(super) fn new(config: SchedulerOptions) -> Self {
        let is_gathering = config.order != QueueOrder::Fifo;
        let scheduler = Scheduler::new(config);
        let mut state =
            Self { scheduler, source_exhausted: false, is_gathering, paused: false, suspended: false };
        state.update_pause();
        state
    }

    pub(super) fn update_pause(&mut self) {
        self.scheduler.set_paused(self.paused || self.suspended || self.is_gathering);
    }

    /// Notes that there are no more jobs. Returns whether all of them were gathered first, so that some may
    /// start now.
    pub(super) fn note_exhausted(&mut self) -> bool {
        self.source_exhausted = true;
        let was_gathering = std::mem::take(&mut self.is_gathering);
        self.update_pause();
        self.scheduler.close();
        was_gathering
    }
}

/// The numbers of loops.
#[derive(Debug, Default)]
pub(super) struct WorkerCounts {
    /// The indexes of the loops that were started.
    started: Vec<usize>,
    pub(super) running: usize,
    /// The number of loops that carried out the last request to suspend or resume.
    pub(super) acknowledged: usize,
}

impl WorkerCounts {
    /// Counts a loop. Fails if one with this index was started before: the source is at its end, or that
    /// loop runs.
    pub(super) fn start(&mut self, index: usize) -> Result<()> {
        if self.started.contains(&index) {
            let reason = "a pool runs once; make another one";
            return Err(Error::of_kind(ErrorKind::InvalidInput, "run the jobs of the pool", reason));
        }
        self.started.push(index);
        self.running += 1;
        Ok(())
    }
}
