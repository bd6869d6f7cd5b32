//! The state of a run after all its attempts: which jobs to run, and which output to show, when the
//! run is resumed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::error::{Context, Result};
use crate::event::{AttemptFinished, JobFinished, JournalEvent, OsBytes, OutputSegment};
use crate::reader::{Corruption, read_journal, update_unshown};
use crate::store;

/// The state of a run.
#[derive(Debug, Default)]
pub struct RunState {
    /// Jobs that finished, successfully or not.
    pub done: JobSet,
    /// Those of them that failed when they last finished.
    pub failed: JobSet,
    /// Output that was saved and not shown yet, by job.
    pub unshown: BTreeMap<u64, Vec<OutputSegment>>,
    /// The arguments of the jobs with such output. Tags may need them.
    pub unshown_args: BTreeMap<u64, Vec<OsBytes>>,
    /// The directories with the output of attempts, by attempt, if they are not the directory of
    /// the run.
    pub outputs: BTreeMap<u32, OsBytes>,
    /// The jobs without a result whose last try failed.
    pub tried: JobSet,
    /// The highest number of a finished job.
    pub last_job: u64,
    /// The end of the last attempt, unless it was killed after it had recorded a job.
    pub finished: Option<AttemptFinished>,
    /// Checksums of the arguments, if [`of_run`](Self::of_run) was asked for them.
    args: Option<Checksums>,
    blocks: Blocks,
}

/// The arguments of a job that are compared when a run is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedArgs {
    /// None.
    None,
    /// All.
    All,
    /// All except the first, which is the name of a temporary file of minder.
    AfterFirst,
}

impl RunState {
    /// Reads all attempts of a run in the order of their numbers, which does not depend on the
    /// clock. Also returns the corruption of each damaged journal.
    ///
    /// The checksums of `compared`, for [`differs`](Self::differs), take 4 bytes for each job. The
    /// blocks of the input, for [`block`](Self::block), take 20.
    ///
    /// # Errors
    ///
    /// If the journal of an attempt cannot be read at all. Without it, its jobs would run again.
    pub fn of_run(dir: &Path, compared: ComparedArgs) -> Result<(Self, Vec<(u32, Corruption)>)> {
        let checksums = |first| Some(Checksums { by_job: Vec::new(), first });
        let args = match compared {
            ComparedArgs::None => None,
            ComparedArgs::All => checksums(0),
            ComparedArgs::AfterFirst => checksums(1),
        };
        let mut state = Self { args, ..Self::default() };
        let mut damaged = Vec::new();
        let unreadable = |path: &Path| format!("cannot read the record in `{}`", path.display());
        for number in store::attempts(dir).context(|| unreadable(dir))? {
            let path = dir.join(store::attempt_name(number));
            let damage = read_journal(&path, |event| state.apply(&event)).context(|| unreadable(&path))?;
            if damage.any() {
                damaged.push((number, damage));
            }
        }
        Ok((state, damaged))
    }

    /// Applies an event that was written later than all events before.
    pub fn apply(&mut self, event: &JournalEvent) {
        match event {
            JournalEvent::AttemptStarted(_) | JournalEvent::Host(_) => (),
            JournalEvent::AttemptFinished(finished) => self.finished = Some(finished.clone()),
            JournalEvent::OutputDir(outputs) => {
                self.outputs.insert(outputs.attempt, outputs.dir.clone());
            }
            JournalEvent::OutputShown(shown) => {
                for job in &shown.jobs {
                    self.unshown.remove(job);
                    self.unshown_args.remove(job);
                }
            }
            JournalEvent::OutputLost(lost) => {
                self.finished = None;
                for job in &lost.jobs {
                    self.forget(*job);
                }
            }
            JournalEvent::JobFinished(ended) => self.apply_finished(ended),
            JournalEvent::JobTried(tried) => {
                if !self.done.contains(tried.job) {
                    self.tried.insert(tried.job);
                }
            }
        }
    }

    /// Returns whether the last attempt ended with no job left to run and no output left to show.
    pub fn is_complete(&self) -> bool {
        // A gap is a job whose event was lost, or whose journal was removed.
        self.finished.as_ref().is_some_and(|finished| finished.why.is_none())
            && self.done.len() == self.last_job
            && self.unshown.is_empty()
    }

    /// Removes a job whose output is lost, as if it had never finished.
    pub fn forget(&mut self, job: u64) {
        self.done.remove(job);
        self.failed.remove(job);
        self.unshown.remove(&job);
        self.unshown_args.remove(&job);
    }

    fn apply_finished(&mut self, ended: &JobFinished) {
        self.finished = None;
        self.set_finished(ended.job, ended.succeeded());
        update_unshown(&mut self.unshown, ended);
        if self.unshown.contains_key(&ended.job) {
            self.unshown_args.insert(ended.job, ended.args.clone());
        } else {
            self.unshown_args.remove(&ended.job);
        }
        if let Some(args) = self.args.as_mut() {
            args.put(ended.job, &ended.args);
        }
        self.blocks.put(ended);
    }

    /// Records that a job finished, later than all events before.
    pub(crate) fn set_finished(&mut self, job: u64, succeeded: bool) {
        self.done.insert(job);
        self.tried.remove(job);
        self.last_job = self.last_job.max(job);
        if succeeded {
            self.failed.remove(job);
        } else {
            self.failed.insert(job);
        }
    }

    /// Returns whether the journal has other arguments for this job. Then the input was changed.
    pub fn differs(&self, job: u64, args: &[OsBytes]) -> bool {
        self.args.as_ref().is_some_and(|known| known.differs(job, args))
    }

    /// Returns which bytes of the input the journal has for this job, if it read a block.
    pub fn block(&self, job: u64) -> Option<Range<u64>> {
        self.blocks.get(job)
    }

    /// Returns the checksum that the journal has of the block of this job.
    pub fn block_checksum(&self, job: u64) -> Option<u32> {
        self.blocks.checksum(job)
    }
}

/// A set of job numbers, stored as ranges. A million consecutive jobs take as much memory as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSet {
    /// The last job of each range by its first. The ranges are disjoint and not adjacent.
    ranges: BTreeMap<u64, u64>,
}

impl JobSet {
    /// Adds a job. Returns whether it was new.
    pub fn insert(&mut self, job: u64) -> bool {
        let mut first = job;
        let mut last = job;
        if let Some((&below, &end)) = self.ranges.range(..=job).next_back() {
            if job <= end {
                return false;
            }
            if job - 1 == end {
                first = below;
            }
        }
        if let Some(end) = job.checked_add(1).and_then(|above| self.ranges.remove(&above)) {
            last = end;
        }
        self.ranges.insert(first, last);
        true
    }

    /// Removes a job. Returns whether the set contained it.
    pub fn remove(&mut self, job: u64) -> bool {
        let Some((&first, &last)) = self.ranges.range(..=job).next_back() else { return false };
        if job > last {
            return false;
        }
        self.ranges.remove(&first);
        if first < job {
            self.ranges.insert(first, job - 1);
        }
        if job < last {
            self.ranges.insert(job + 1, last);
        }
        true
    }

    /// Returns whether the set contains this job.
    pub fn contains(&self, job: u64) -> bool {
        self.ranges.range(..=job).next_back().is_some_and(|(_, &last)| job <= last)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of jobs.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| (last - first).saturating_add(1)).fold(0, u64::saturating_add)
    }

    /// Returns the number of jobs from 1 to `last`.
    pub fn len_up_to(&self, last: u64) -> u64 {
        let len = |first: u64, end: u64| end.min(last).checked_sub(first.max(1)).map_or(0, |more| more + 1);
        self.ranges.range(..=last).map(|(&first, &end)| len(first, end)).sum()
    }

    /// Returns the highest job.
    pub fn last(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(_, last)| *last)
    }

    /// Returns the lowest job above `job`.
    pub fn first_after(&self, job: u64) -> Option<u64> {
        let next = job.checked_add(1)?;
        if self.contains(next) {
            return Some(next);
        }
        self.ranges.range(next..).next().map(|(&first, _)| first)
    }

    /// Returns the jobs in ascending order.
    pub fn jobs(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges().flat_map(|(first, last)| first..=last)
    }

    /// Returns the first and the last job of each range, in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&first, &last)| (first, last))
    }
}

/// A checksum of the arguments of each job, by its number. 0 means unknown.
#[derive(Debug)]
struct Checksums {
    by_job: Vec<u32>,
    /// The first argument that counts.
    first: usize,
}

impl Checksums {
    /// Jobs with this number or a higher one are not checked. Limits the memory to 64 MiB.
    const JOBS_MAX: u64 = 1 << 24;

    fn put(&mut self, job: u64, args: &[OsBytes]) {
        let args = self.compared(args);
        if args.is_empty() || job >= Self::JOBS_MAX {
            return;
        }
        let index = usize::try_from(job).unwrap_or(usize::MAX);
        if self.by_job.len() <= index {
            self.by_job.resize(index + 1, 0);
        }
        self.by_job[index] = checksum(args);
    }

    fn differs(&self, job: u64, args: &[OsBytes]) -> bool {
        let known = usize::try_from(job).ok().and_then(|index| self.by_job.get(index)).copied().unwrap_or(0);
        known != 0 && known != checksum(self.compared(args))
    }

    fn compared<'a>(&self, args: &'a [OsBytes]) -> &'a [OsBytes] {
        args.get(self.first..).unwrap_or_default()
    }
}

/// The block of the input of each job, by its number.
#[derive(Debug, Default)]
struct Blocks {
    /// Offset and length. A length of 0 means unknown, because no job has an empty block.
    ranges: Vec<(u64, u64)>,
    /// Checksums. 0 means unknown. Empty if no block has one.
    checksums: Vec<u32>,
}

impl Blocks {
    /// Jobs with this number or a higher one are not checked. Limits the memory to 80 MiB.
    const JOBS_MAX: u64 = 1 << 22;

    fn put(&mut self, ended: &JobFinished) {
        let Ok(index) = usize::try_from(ended.job) else { return };
        if self.ranges.len() <= index {
            if ended.block_len == 0 || ended.job >= Self::JOBS_MAX {
                return;
            }
            self.ranges.resize(index + 1, (0, 0));
        }
        let checksum = ended.block_crc.unwrap_or(0);
        if self.checksums.len() <= index && checksum != 0 {
            self.checksums.resize(index + 1, 0);
        }
        // The last event of a job is the valid one, even if it is of an old version without blocks.
        self.ranges[index] = (ended.block_at, ended.block_len);
        if let Some(known) = self.checksums.get_mut(index) {
            *known = checksum;
        }
    }

    fn get(&self, job: u64) -> Option<Range<u64>> {
        let (at, len) = *self.ranges.get(usize::try_from(job).ok()?)?;
        (len > 0).then(|| at..at.saturating_add(len))
    }

    fn checksum(&self, job: u64) -> Option<u32> {
        let checksum = *self.checksums.get(usize::try_from(job).ok()?)?;
        (checksum != 0).then_some(checksum)
    }
}

/// Returns a checksum of all columns, each followed by a NUL byte, which no column contains. It is
/// never 0.
fn checksum(args: &[OsBytes]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for arg in args {
        hasher.update(&arg.0);
        hasher.update(&[0]);
    }
    hasher.finalize().max(1)
}
