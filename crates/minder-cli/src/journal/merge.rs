//! What is done of a run, from all its attempts: what to run, and what to show, when it goes on.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::folder;
use super::read::{Damage, each, keep};
use super::row::{Ended, Piece, Row, Text};

/// What is done of a run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Jobs that ended, well or not.
    pub(crate) done: JobSet,
    /// Those of them whose last end was no success.
    pub(crate) failed: JobSet,
    /// Output that was kept and not shown, in the order of the jobs.
    pub(crate) unshown: BTreeMap<u64, Vec<Piece>>,
    /// The arguments of those jobs, which their tags may need.
    pub(crate) unshown_args: BTreeMap<u64, Vec<Text>>,
    /// Where the output of attempts lies, as far as that is not the run's folder.
    pub(crate) outputs: BTreeMap<u32, Text>,
    /// The highest number of a job that ended.
    pub(crate) last_job: u64,
    /// Checksums of the arguments, if they were asked for.
    args: Option<Checksums>,
}

impl Progress {
    /// Reads all attempts of a run, in the order of their numbers, whatever the clock said. With the damage of each attempt
    /// that has any. `with_args`: for [`differs`](Self::differs), at 4 bytes a job.
    ///
    /// # Errors
    /// When an attempt cannot be read at all: its jobs would run again.
    pub(crate) fn of_run(folder: &Path, with_args: bool) -> Result<(Self, Vec<(u32, Damage)>)> {
        let mut progress = Self { args: with_args.then(Checksums::default), ..Self::default() };
        let mut damaged = Vec::new();
        let unreadable = |path: &Path| format!("cannot read the record in `{}`", path.display());
        for number in folder::attempts(folder).with_context(|| unreadable(folder))? {
            let path = folder.join(folder::attempt_name(number));
            let damage = each(&path, |row| progress.add(&row)).with_context(|| unreadable(&path))?;
            if damage.any() {
                damaged.push((number, damage));
            }
        }
        Ok((progress, damaged))
    }

    /// Adds a row that was written later than those before.
    pub(crate) fn add(&mut self, row: &Row) {
        match row {
            Row::Begun(_) | Row::Over(_) => (),
            Row::Outputs(outputs) => _ = self.outputs.insert(outputs.attempt, outputs.folder.clone()),
            Row::Shown(shown) => {
                for job in &shown.jobs {
                    self.unshown.remove(job);
                    self.unshown_args.remove(job);
                }
            }
            Row::Lost(lost) => lost.jobs.iter().for_each(|job| self.lose(*job)),
            Row::Ended(ended) => self.ended(ended),
        }
    }

    /// Forgets the end of a job whose output is lost, as if there were no row of it.
    pub(crate) fn lose(&mut self, job: u64) {
        self.done.remove(job);
        self.failed.remove(job);
        self.unshown.remove(&job);
        self.unshown_args.remove(&job);
    }

    fn ended(&mut self, ended: &Ended) {
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
    pub(super) fn end(&mut self, job: u64, succeeded: bool) {
        self.done.insert(job);
        self.last_job = self.last_job.max(job);
        if succeeded {
            self.failed.remove(job);
        } else {
            self.failed.insert(job);
        }
    }

    /// Whether this job was recorded with other arguments than these: the input is not what it was.
    pub(crate) fn differs(&self, job: u64, args: &[Text]) -> bool {
        self.args.as_ref().is_some_and(|known| known.differs(job, args))
    }
}

/// Numbers of jobs, as ranges: a million jobs that all ended take as much as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobSet {
    /// First → last, disjoint and never adjacent.
    ranges: BTreeMap<u64, u64>,
}

impl JobSet {
    /// Adds a job. True: it was not there.
    pub(crate) fn insert(&mut self, job: u64) -> bool {
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
    pub(crate) fn remove(&mut self, job: u64) -> bool {
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

    pub(crate) fn contains(&self, job: u64) -> bool {
        self.ranges.range(..=job).next_back().is_some_and(|(_, &last)| job <= last)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many jobs there are.
    pub(crate) fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| (last - first).saturating_add(1)).fold(0, u64::saturating_add)
    }

    /// How many of the jobs from 1 to `last` there are.
    pub(crate) fn len_up_to(&self, last: u64) -> u64 {
        let len = |first: u64, end: u64| end.min(last).checked_sub(first.max(1)).map_or(0, |more| more + 1);
        self.ranges.range(..=last).map(|(&first, &end)| len(first, end)).sum()
    }

    /// The highest job.
    pub(crate) fn last(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(_, last)| *last)
    }

    /// The jobs, in order.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges().flat_map(|(first, last)| first..=last)
    }

    /// First and last of each range, in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&first, &last)| (first, last))
    }
}

/// A checksum of each job's arguments, at the place of its number; 0: not known.
#[derive(Debug, Default)]
struct Checksums(Vec<u32>);

impl Checksums {
    /// Jobs above are not remembered.
    const JOBS_MAX: u64 = 1 << 24;

    fn put(&mut self, job: u64, args: &[Text]) {
        if args.is_empty() || job >= Self::JOBS_MAX {
            return;
        }
        let place = usize::try_from(job).unwrap_or(usize::MAX);
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        self.0[place] = checksum(args);
    }

    fn differs(&self, job: u64, args: &[Text]) -> bool {
        let known = usize::try_from(job).ok().and_then(|place| self.0.get(place)).copied().unwrap_or(0);
        known != 0 && known != checksum(args)
    }
}

/// Of all columns, with a NUL behind each, which none contains; never 0.
fn checksum(args: &[Text]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for arg in args {
        hasher.update(&arg.0);
        hasher.update(&[0]);
    }
    hasher.finalize().max(1)
}
