//! The durations of jobs in earlier runs of the same command.
//!
//! A job is known again by its arguments, a command by its words with their placeholders. The
//! newest run in which the job ended by itself counts. A time that a signal or a time-out cut short
//! counts only if there is no other.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use crate::config::RunConfig;
use crate::input::Durations;
use crate::input::JobArgs;
use crate::input::fingerprint;
use crate::observer::Observer;
use minder_record::event::{JobFinished, JournalEvent, OsBytes};
use minder_record::reader::read_journal;
use minder_record::store;

/// The most earlier runs of a command that are read.
const RUNS_MAX: usize = 20;
/// The most times that are kept.
const TIMES_MAX: usize = 4_000_000;
/// The most bytes of journals that are read for the order of the jobs. The newest run is always read.
pub(crate) const ORDER_BYTES_MAX: u64 = 1 << 30;
/// The most bytes of journals that are read for an estimate of the end.
const ESTIMATE_BYTES_MAX: u64 = 8 << 20;

/// Returns the mean duration of a job in earlier runs of the command, if the observer estimates the
/// end.
pub(crate) fn expected(config: &RunConfig, observer: &dyn Observer) -> Option<Duration> {
    if !observer.wants_history() {
        return None;
    }
    History::of_command(&config.record.command, ESTIMATE_BYTES_MAX).mean()
}

/// The durations of jobs, by the fingerprint of their arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    jobs: HashMap<u64, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Seconds.
    wall: f32,
    /// `true` if the job ended by itself.
    complete: bool,
}

impl History {
    /// Reads the newest runs of a command, until `bytes_max` is exceeded. Records that cannot be
    /// read are ignored.
    pub(crate) fn of_command(command: &[OsString], bytes_max: u64) -> Self {
        let command: Vec<OsBytes> =
            command.iter().map(|argument| OsBytes::from(argument.as_os_str())).collect();
        let runs = store::state_root().and_then(|root| store::list(&root)).unwrap_or_default();
        let same = runs
            .into_iter()
            .filter(|run| run.manifest.as_ref().is_ok_and(|manifest| manifest.words == command));
        let mut history = Self::default();
        let mut bytes = 0;
        for run in same.take(RUNS_MAX) {
            let mut attempts = store::attempts(&run.dir).unwrap_or_default();
            attempts.reverse();
            for number in attempts {
                let path = run.dir.join(store::attempt_name(number));
                bytes += fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len());
                if bytes > bytes_max && !history.jobs.is_empty() {
                    return history;
                }
                let _ = read_journal(&path, |event| {
                    if let JournalEvent::JobFinished(ended) = event {
                        history.add(&ended);
                    }
                });
            }
        }
        history
    }

    /// Adds a job of a run. Later calls concern earlier runs.
    fn add(&mut self, ended: &JobFinished) {
        if ended.error.is_some() {
            return;
        }
        let columns = ended.args.iter().map(OsBytes::to_os).collect();
        let complete = ended.signal.is_none() && !ended.timed_out && ended.cause.is_none();
        let entry = Entry { wall: ended.wall as f32, complete };
        let key = fingerprint(&JobArgs::Columns(columns));
        let has_room = self.jobs.len() < TIMES_MAX;
        match self.jobs.get_mut(&key) {
            Some(known) if !known.complete && complete => *known = entry,
            Some(_) => (),
            None if has_room => drop(self.jobs.insert(key, entry)),
            None => (),
        }
    }

    /// Returns `true` if no job is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns how long jobs are expected to take. For a job that never ran, it is the median of
    /// all others of the command.
    pub(crate) fn durations(self) -> Durations {
        let known: HashMap<u64, f32> = self.jobs.into_iter().map(|(job, entry)| (job, entry.wall)).collect();
        let mut walls: Vec<f32> = known.values().copied().collect();
        let middle = walls.len() / 2;
        let other =
            if walls.is_empty() { 0.0 } else { *walls.select_nth_unstable_by(middle, f32::total_cmp).1 };
        Durations { known, other }
    }

    /// Returns the mean of all jobs: what many of them are expected to take, each.
    pub(crate) fn mean(&self) -> Option<Duration> {
        if self.jobs.is_empty() {
            return None;
        }
        let sum: f64 = self.jobs.values().map(|entry| f64::from(entry.wall)).sum();
        Duration::try_from_secs_f64(sum / self.jobs.len() as f64).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(arg: &str, wall: f64) -> JobFinished {
        JobFinished { args: vec![OsBytes::from(arg)], wall, exit: Some(0), ..JobFinished::default() }
    }

    #[test]
    fn newest_complete_time_of_a_job_counts() {
        let mut history = History::default();
        assert!(
            history.is_empty() && history.mean().is_none() && history.clone().durations().known.is_empty()
        );
        let cut =
            |arg, wall| JobFinished { timed_out: true, exit: None, signal: Some(15), ..ended(arg, wall) };
        history.add(&ended("a", 1.0));
        history.add(&cut("b", 2.0));
        history.add(&cut("c", 3.0));
        history.add(&JobFinished { error: Some("gone".into()), ..ended("d", 0.0) });
        // An earlier run.
        history.add(&ended("a", 9.0));
        history.add(&ended("b", 8.0));
        history.add(&cut("c", 7.0));
        assert_eq!(history.mean(), Some(Duration::from_secs(4)));
        let durations = history.durations();
        let key = |arg: &str| fingerprint(&JobArgs::Columns(vec![arg.into()]));
        let known = ["a", "b", "c", "d"].map(|arg| durations.known.get(&key(arg)).copied());
        assert_eq!((known, durations.other), ([Some(1.0), Some(8.0), Some(3.0), None], 3.0));
    }
}
