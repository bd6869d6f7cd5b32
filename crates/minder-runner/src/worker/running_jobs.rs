//! The running jobs of one worker thread.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use minder::jobs::ChildControl;

use super::running_job::RunningJob;
use crate::context::RunContext;

/// The running jobs, by slot and by job number.
///
/// With the map and the sets, a wait costs as much as there is waiting work, not as much as there
/// are running jobs.
#[derive(Debug)]
pub(super) struct RunningJobs<'a> {
    pub(super) context: &'a RunContext<'a>,
    /// Boxed: a job moves several times.
    by_slot: Vec<Option<Box<RunningJob>>>,
    slot_of_job: BTreeMap<u64, u32>,
    /// Slots of jobs whose lines wait for the screen. The slot of a finished job is skipped when a
    /// set is used; the same applies to the two sets below.
    pub(super) blocked_lines: BTreeSet<u32>,
    /// Slots of jobs whose standard input waits for the reader.
    pub(super) starved_stdin: BTreeSet<u32>,
    /// Slots of jobs that have no time-out yet.
    pub(super) without_timeout: BTreeSet<u32>,
    /// The median on which the current time-outs are based.
    pub(super) median: Option<Duration>,
    /// The changes of the terminal's size that the jobs have seen.
    pub(super) resizes: u64,
    /// The number of submitted jobs when the other worker thread was last woken for its only job.
    pub(super) woken_for: u64,
    /// The number of jobs that count in [`RunStatus::unread`](crate::context::RunStatus::unread).
    unread: usize,
}

impl<'a> RunningJobs<'a> {
    /// Creates a table without jobs.
    pub(super) fn new(context: &'a RunContext<'a>) -> Self {
        Self {
            context,
            by_slot: Vec::new(),
            slot_of_job: BTreeMap::new(),
            blocked_lines: BTreeSet::new(),
            starved_stdin: BTreeSet::new(),
            without_timeout: BTreeSet::new(),
            median: None,
            resizes: 0,
            woken_for: 0,
            unread: 0,
        }
    }

    /// Adds a job that is about to start.
    pub(super) fn insert(&mut self, slot: u32, job: Box<RunningJob>) {
        let index = slot as usize;
        if self.by_slot.len() <= index {
            self.by_slot.resize_with(index + 1, || None);
        }
        self.slot_of_job.insert(job.number, slot);
        self.by_slot[index] = Some(job);
    }

    /// Removes a job and returns it.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Box<RunningJob>> {
        let job = self.by_slot.get_mut(slot as usize)?.take()?;
        self.slot_of_job.remove(&job.number);
        Some(job)
    }

    /// Returns the job in a slot.
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut RunningJob> {
        self.by_slot.get_mut(slot as usize)?.as_deref_mut()
    }

    /// Returns the slot of a job.
    pub(super) fn slot_of(&self, job: u64) -> Option<u32> {
        self.slot_of_job.get(&job).copied()
    }

    /// Returns all jobs, in any order.
    pub(super) fn jobs_mut(&mut self) -> impl Iterator<Item = &mut RunningJob> {
        self.by_slot.iter_mut().filter_map(|job| job.as_deref_mut())
    }

    /// Returns all slots with a job, in any order.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.slot_of_job.values().copied()
    }

    /// Does what was put off until no event is left: writes lines and input that had to wait, and carries
    /// out what other threads and the terminal ask for.
    pub(super) fn idle(&mut self, children: &mut ChildControl<'_>) {
        self.start_live_output(children);
        self.feed_starved(children);
        self.apply_requests(children);
        self.resize_terminals(children);
        self.update_median_timeouts(children);
        if self.context.status.is_shutting_down() {
            self.count_unread();
        }
        if self.context.sequencer.stdio.is_abandoned() {
            self.abandon_forwarded(children);
        }
    }

    /// Counts the jobs that have exited, and whose output could not be read to its end.
    fn count_unread(&mut self) {
        let unread = self.jobs_mut().filter(|running| running.has_exited).count();
        self.context.status.set_unread(std::mem::replace(&mut self.unread, unread), unread);
    }
}
