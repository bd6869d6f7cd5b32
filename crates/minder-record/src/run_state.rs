//! What is done of a run, from all its attempts: what to run, and what to show, when it goes on.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::event::{JobFinished, JournalEvent, OsBytes, OutputSegment};
use super::reader::{Corruption, each, keep};
use super::store;

/// What is done of a run.
#[derive(Debug, Default)]
pub struct RunState {
    /// Jobs that ended, well or not.
    pub done: JobSet,
    /// Those of them whose last end was no success.
    pub failed: JobSet,
    /// Output that was kept and not shown, in the order of the jobs.
    pub unshown: BTreeMap<u64, Vec<OutputSegment>>,
    /// The arguments of those jobs, which their tags may need.
    pub unshown_args: BTreeMap<u64, Vec<OsBytes>>,
    /// Where the output of attempts lies, as far as that is not the run's folder.
    pub outputs: BTreeMap<u32, OsBytes>,
    /// The highest number of a job that ended.
    pub last_job: u64,
    /// Checksums of the arguments, if they were asked for.
    args: Option<Checksums>,
}

impl RunState {
    /// Reads all attempts of a run, in the order of their numbers, whatever the clock said. With
    /// the damage of each attempt that has any. `with_args`: for [`differs`](Self::differs), at
    /// 4 bytes a job.
    ///
    /// # Errors
    /// When an attempt cannot be read at all: its jobs would run again.
    pub fn of_run(folder: &Path, with_args: bool) -> Result<(Self, Vec<(u32, Corruption)>)> {
        let mut progress = Self { args: with_args.then(Checksums::default), ..Self::default() };
        let mut damaged = Vec::new();
        let unreadable = |path: &Path| format!("cannot read the record in `{}`", path.display());
        for number in store::attempts(folder).with_context(|| unreadable(folder))? {
            let path = folder.join(store::attempt_name(number));
            let damage = each(&path, |row| progress.add(&row)).with_context(|| unreadable(&path))?;
            if damage.any() {
                damaged.push((number, damage));
            }
        }
        Ok((progress, damaged))
    }

    /// Adds a row that was written later than those before.
    pub fn add(&mut self, row: &JournalEvent) {
        match row {
            JournalEvent::AttemptStarted(_) | JournalEvent::AttemptFinished(_) => (),
            JournalEvent::OutputDir(outputs) => {
                _ = self.outputs.insert(outputs.attempt, outputs.folder.clone())
            }
            JournalEvent::OutputShown(shown) => {
                for job in &shown.jobs {
                    self.unshown.remove(job);
                    self.unshown_args.remove(job);
                }
            }
            JournalEvent::OutputLost(lost) => lost.jobs.iter().for_each(|job| self.lose(*job)),
            JournalEvent::JobFinished(ended) => self.ended(ended),
        }
    }

    /// Forgets the end of a job whose output is lost, as if there were no row of it.
    pub fn lose(&mut self, job: u64) {
        self.done.remove(job);
        self.failed.remove(job);
        self.unshown.remove(&job);
        self.unshown_args.remove(&job);
    }

    fn ended(&mut self, ended: &JobFinished) {
        self.end(ended.job, ended.succeeded());
        keep(&mut self.unshown, ended);
        match self.unshown.contains_key(&ended.job) {
            true => drop(self.unshown_args.insert(ended.job, ended.args.clone())),
            false => drop(self.unshown_args.remove(&ended.job)),
        }
        if let Some(args) = self.args.as_mut() {
            args.put(ended.job, &ended.args);
        }
    }

    /// Adds an end of a job, later than those before.
    pub(crate) fn end(&mut self, job: u64, succeeded: bool) {
        self.done.insert(job);
        self.last_job = self.last_job.max(job);
        if succeeded {
            self.failed.remove(job);
        } else {
            self.failed.insert(job);
        }
    }

    /// Whether this job was recorded with other arguments than these: the input is not what it was.
    pub fn differs(&self, job: u64, args: &[OsBytes]) -> bool {
        self.args.as_ref().is_some_and(|known| known.differs(job, args))
    }
}

/// Numbers of jobs, as ranges: a million jobs that all ended take as much as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSet {
    /// First → last, disjoint and never adjacent.
    ranges: BTreeMap<u64, u64>,
}

impl JobSet {
    /// Adds a job. True: it was not there.
    pub fn insert(&mut self, job: u64) -> bool {
        let (mut first, mut last) = (job, job);
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

    /// Takes a job out. True: it was there.
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

    /// How many jobs there are.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| (last - first).saturating_add(1)).fold(0, u64::saturating_add)
    }

    /// How many of the jobs from 1 to `last` there are.
    pub fn len_up_to(&self, last: u64) -> u64 {
        let len = |first: u64, end: u64| end.min(last).checked_sub(first.max(1)).map_or(0, |more| more + 1);
        self.ranges.range(..=last).map(|(&first, &end)| len(first, end)).sum()
    }

    /// The highest job.
    pub fn last(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(_, last)| *last)
    }

    /// The jobs, in order.
    pub fn jobs(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges().flat_map(|(first, last)| first..=last)
    }

    /// First and last of each range, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&first, &last)| (first, last))
    }
}

/// A checksum of each job's arguments, at the place of its number; 0: not known.
#[derive(Debug, Default)]
struct Checksums(Vec<u32>);

impl Checksums {
    /// Jobs above are not remembered.
    const JOBS_MAX: u64 = 1 << 24;

    fn put(&mut self, job: u64, args: &[OsBytes]) {
        if args.is_empty() || job >= Self::JOBS_MAX {
            return;
        }
        let place = usize::try_from(job).unwrap_or(usize::MAX);
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        self.0[place] = checksum(args);
    }

    fn differs(&self, job: u64, args: &[OsBytes]) -> bool {
        let known = usize::try_from(job).ok().and_then(|place| self.0.get(place)).copied().unwrap_or(0);
        known != 0 && known != checksum(args)
    }
}

/// Of all columns, with a NUL behind each, which none contains; never 0.
fn checksum(args: &[OsBytes]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for arg in args {
        hasher.update(&arg.0);
        hasher.update(&[0]);
    }
    hasher.finalize().max(1)
}
