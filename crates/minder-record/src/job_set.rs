//! Sets of jobs.

use std::collections::BTreeMap;

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

    /// Adds the jobs from `first` to `last`.
    ///
    /// ```
    /// let mut jobs = minder_record::job_set::JobSet::default();
    /// jobs.insert(4);
    /// jobs.insert_range(2, 6);
    /// jobs.insert_range(7, 7);
    /// assert_eq!(jobs.ranges().collect::<Vec<_>>(), [(2, 7)]);
    /// ```
    pub fn insert_range(&mut self, mut first: u64, mut last: u64) {
        if last < first {
            return;
        }
        if let Some((&below, &end)) = self.ranges.range(..first).next_back()
            && end >= first - 1
        {
            first = below;
            last = last.max(end);
        }
        while let Some((&inside, &end)) = self.ranges.range(first..=last.saturating_add(1)).next() {
            self.ranges.remove(&inside);
            last = last.max(end);
        }
        self.ranges.insert(first, last);
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

    /// Returns the ranges that end at `job` or later, in ascending order.
    pub fn ranges_from(&self, job: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let start = self.ranges.range(..=job).next_back().map_or(job, |(&first, _)| first);
        self.ranges.range(start..).map(|(&first, &last)| (first, last)).filter(move |(_, last)| *last >= job)
    }

    /// Returns the first and the last job of each range, in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&first, &last)| (first, last))
    }
}
