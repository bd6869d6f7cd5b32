//! A round: the jobs that one attempt submits to its agents.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use minder_record::agents::ROUNDS;
use minder_record::job_set::JobSet;
use minder_record::store::create_dirs;

use crate::claim::CLAIMS;
use crate::file;

/// The file with the jobs of a round. Without it, all jobs of the spool belong to the round.
const JOBS: &str = "jobs";
/// The file that ends a round.
const CANCEL: &str = "cancel";
/// The longest list of jobs: more than a million ranges.
const LIST_MAX: u64 = 64 << 20;

/// A round.
#[derive(Debug)]
pub struct Round {
    dir: PathBuf,
    /// `None` if it runs all jobs.
    jobs: Option<JobSet>,
}

impl Round {
    /// Creates the round of an attempt. `jobs` are the jobs that it runs, or `None` for all.
    ///
    /// # Errors
    ///
    /// The round exists, or a file cannot be written.
    pub fn create(run: &Path, attempt: u32, jobs: Option<JobSet>) -> io::Result<Self> {
        let dir = dir_of(run, attempt);
        if let Some(jobs) = &jobs {
            create_dirs(&dir)?;
            let mut text = String::new();
            for (first, last) in jobs.ranges() {
                text.push_str(&format!("{first} {last}\n"));
            }
            // So that a list that was cut off is noticed.
            text.push_str("end\n");
            file::write(&dir.join(JOBS), text.as_bytes())?;
        }
        create_dirs(&dir.join(CLAIMS))?;
        Ok(Self { dir, jobs })
    }

    /// Opens the round of an attempt.
    ///
    /// # Errors
    ///
    /// There is no such round, or the list of its jobs cannot be read, or is damaged.
    pub fn open(run: &Path, attempt: u32) -> io::Result<Self> {
        let dir = dir_of(run, attempt);
        std::fs::metadata(dir.join(CLAIMS)).map_err(|error| file::named("cannot open", &dir, &error))?;
        let path = dir.join(JOBS);
        let jobs = match file::read(&path, LIST_MAX)? {
            None => None,
            Some(text) => Some(parse(&text).ok_or_else(|| {
                let error = io::Error::new(io::ErrorKind::InvalidData, "it is damaged");
                file::named("cannot read", &path, &error)
            })?),
        };
        Ok(Self { dir, jobs })
    }

    /// Returns its jobs, if it does not run all jobs of the spool.
    pub fn jobs(&self) -> Option<&JobSet> {
        self.jobs.as_ref()
    }

    /// Returns the attempts that have submitted a round, in ascending order.
    ///
    /// # Errors
    ///
    /// The directory of the rounds exists, and cannot be read.
    pub fn attempts(run: &Path) -> io::Result<Vec<u32>> {
        let entries = match std::fs::read_dir(run.join(ROUNDS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut attempts = Vec::new();
        for entry in entries {
            attempts.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        attempts.sort_unstable();
        Ok(attempts)
    }

    /// Returns its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the first and the last job of the next range after `after`, with at most `most` jobs.
    /// `spooled` is the number of jobs whose arguments are known. `None` if no job is left.
    pub fn range_after(&self, after: u64, most: u64, spooled: u64) -> Option<(u64, u64)> {
        let Some(jobs) = &self.jobs else {
            let first = after.checked_add(1).filter(|first| *first <= spooled)?;
            return Some((first, spooled.min(after.saturating_add(most.max(1)))));
        };
        let first = jobs.first_after(after).filter(|first| *first <= spooled)?;
        let mut left = most.max(1);
        let mut last = first;
        for (from, to) in jobs.ranges_from(first) {
            let from = from.max(first);
            let to = to.min(spooled);
            if left == 0 || from > to {
                break;
            }
            let taken = left.min(to - from + 1);
            last = from + (taken - 1);
            left -= taken;
        }
        Some((first, last))
    }

    /// Returns whether a job belongs to the round.
    pub fn contains(&self, job: u64) -> bool {
        self.jobs.as_ref().is_none_or(|jobs| jobs.contains(job))
    }

    /// Returns how many of the first `spooled` jobs belong to the round.
    pub fn count(&self, spooled: u64) -> u64 {
        self.jobs.as_ref().map_or(spooled, |jobs| jobs.len_up_to(spooled))
    }

    /// Ends the round: agents look for this with each beat.
    ///
    /// # Errors
    ///
    /// The file cannot be created.
    pub fn cancel(&self) -> io::Result<()> {
        match file::create(&self.dir.join(CANCEL)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created.map(drop),
        }
    }

    /// Returns whether the round is to end.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn is_cancelled(&self) -> io::Result<bool> {
        Ok(file::read(&self.dir.join(CANCEL), 0)?.is_some())
    }
}

/// Returns the attempt that has submitted the newest round of a run, or `None` if the run has no round.
///
/// # Errors
///
/// The directory cannot be read.
pub fn newest(run: &Path) -> io::Result<Option<u32>> {
    let rounds = run.join(ROUNDS);
    let entries = match fs::read_dir(&rounds) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(|error| file::named("cannot read", &rounds, &error))?,
    };
    let mut newest = None;
    for entry in entries {
        let name = entry?.file_name();
        let attempt: Option<u32> = name.to_str().and_then(|name| name.parse().ok());
        // Without that directory, a process was killed before the round began.
        if attempt > newest && attempt.is_some_and(|it| dir_of(run, it).join(CLAIMS).is_dir()) {
            newest = attempt;
        }
    }
    Ok(newest)
}

fn dir_of(run: &Path, attempt: u32) -> PathBuf {
    run.join(ROUNDS).join(attempt.to_string())
}

/// Returns the jobs of a list, if it is complete, and its ranges ascend.
fn parse(text: &[u8]) -> Option<JobSet> {
    let mut jobs = JobSet::default();
    let mut before = 0;
    for line in str::from_utf8(text).ok()?.strip_suffix("end\n")?.lines() {
        let (first, last) = line.split_once(' ')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if first <= before || last < first {
            return None;
        }
        jobs.insert_range(first, last);
        before = last;
    }
    Some(jobs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn damaged_list_is_an_error() {
        for text in ["", "1 2\n", "1\nend\n", "2 1\nend\n", "1 3\n3 4\nend\n", "0 1\nend\n", "1 2\nend"] {
            assert!(parse(text.as_bytes()).is_none(), "{text:?}");
        }
        assert_eq!(parse(b"end\n").map(|jobs| jobs.len()), Some(0));
    }

    #[test]
    fn cancel_is_seen_by_others() {
        let run = tempfile::tempdir().expect("create directory");
        assert_eq!(newest(run.path()).expect("a run without rounds is accepted"), None);
        let round = Round::create(run.path(), 3, None).expect("create round");
        let other = Round::open(run.path(), 3).expect("open round");
        assert!(!other.is_cancelled().expect("look"));
        round.cancel().expect("cancel");
        round.cancel().expect("cancel again");
        assert!(other.is_cancelled().expect("look"));
        Round::create(run.path(), 12, None).expect("create round");
        assert_eq!(newest(run.path()).expect("read rounds"), Some(12));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn ranges_cover_each_job_once(
            jobs in proptest::option::of(proptest::collection::btree_set(1_u64..200, 0..60)),
            spooled in 0_u64..200,
            sizes in proptest::collection::vec(1_u64..20, 200),
        ) {
            let run = tempfile::tempdir().expect("create directory");
            let set = jobs.as_ref().map(|jobs| {
                let mut set = JobSet::default();
                jobs.iter().for_each(|job| _ = set.insert(*job));
                set
            });
            Round::create(run.path(), 1, set).expect("create round");
            let round = Round::open(run.path(), 1).expect("open round");
            let mut found = Vec::new();
            let mut after = 0;
            for most in sizes {
                let Some((first, last)) = round.range_after(after, most, spooled) else { break };
                prop_assert!(first > after && last >= first);
                let members: Vec<u64> = (first..=last).filter(|job| round.contains(*job)).collect();
                prop_assert!(members.len() as u64 <= most);
                prop_assert!(members.first() == Some(&first) && members.last() == Some(&last));
                found.extend(members);
                after = last;
            }
            let expected: Vec<u64> =
                (1..=spooled).filter(|job| jobs.as_ref().is_none_or(|jobs| jobs.contains(job))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
