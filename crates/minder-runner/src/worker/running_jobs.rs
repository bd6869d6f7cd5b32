//! The running jobs of one worker thread.

use std::collections::{BTreeMap, BTreeSet};

use super::running_job::RunningJob;

/// The running jobs, by slot and by job number.
///
/// With the map and the sets, a wait costs as much as there is waiting work, not as much as there
/// are running jobs.
#[derive(Debug, Default)]
pub(super) struct RunningJobs {
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
}

impl RunningJobs {
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
}
