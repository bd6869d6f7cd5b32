//! Which jobs run when a run is taken up again.

use std::ffi::OsString;

use std::collections::HashMap;

use crate::config::ResumeMode;
use crate::config::RunConfig;
use crate::input::JobArgs;
use crate::input::fingerprint;
use minder_record::event::{JournalEvent, OsBytes};
use minder_record::reader::read_journal;
use minder_record::run_state::{JobSet, RunState};
use minder_record::store;

/// From how many earlier runs of a command the times are taken.
const RUNS_MAX: usize = 20;
/// How many times are remembered at most.
const TIMES_MAX: usize = 4_000_000;

/// What is known of earlier attempts.
#[derive(Debug, Default)]
pub(crate) struct ResumeFilter {
    mode: Option<ResumeMode>,
    progress: RunState,
}

impl ResumeFilter {
    pub(crate) fn new(mode: ResumeMode, progress: RunState) -> Self {
        Self { mode: Some(mode), progress }
    }

    /// Whether the job does not run this time.
    pub(crate) fn skips(&self, job: u64) -> bool {
        let done = &self.progress.done;
        let failed = &self.progress.failed;
        match self.mode {
            None => false,
            Some(ResumeMode::Rest) => done.contains(job),
            Some(ResumeMode::RestAndFailed) => done.contains(job) && !failed.contains(job),
            Some(ResumeMode::Failed) => !failed.contains(job),
        }
    }

    /// The last job that may be passed over; those behind it are passed over one by one, as they
    /// come.
    pub(crate) fn last(&self) -> u64 {
        self.done().last().unwrap_or(0)
    }

    /// How many of the first `total` jobs do not run.
    pub(crate) fn skipped(&self, total: u64) -> u64 {
        match self.mode {
            None => 0,
            // By ranges: there may be billions of jobs.
            Some(ResumeMode::Rest) => self.done().len_up_to(total),
            Some(ResumeMode::RestAndFailed) => {
                self.done().len_up_to(total).saturating_sub(self.progress.failed.len_up_to(total))
            }
            Some(ResumeMode::Failed) => total - self.progress.failed.len_up_to(total),
        }
    }

    /// Whether the arguments of a job that ended are others now than they were.
    pub(crate) fn differs(&self, job: u64, columns: &[OsString]) -> bool {
        let texts = || columns.iter().map(|value| OsBytes::from(value.as_os_str())).collect::<Vec<_>>();
        self.mode.is_some() && self.done().contains(job) && self.progress.differs(job, &texts())
    }

    fn done(&self) -> &JobSet {
        &self.progress.done
    }
}

/// What jobs of this command took in earlier runs, in seconds, by the marks of their arguments.
/// What cannot be read is not known.
pub(crate) fn costs(config: &RunConfig) -> HashMap<u64, f32> {
    let words: Vec<OsBytes> =
        config.record.words.iter().map(|word| OsBytes::from(word.as_os_str())).collect();
    let runs = store::state_root().and_then(|root| store::list(&root)).unwrap_or_default();
    let same =
        runs.into_iter().filter(|run| run.manifest.as_ref().is_ok_and(|manifest| manifest.words == words));
    let mut costs = HashMap::new();
    // The newest come first, and what they say stays.
    for run in same.take(RUNS_MAX) {
        for number in store::attempts(&run.dir).unwrap_or_default() {
            let _ = read_journal(&run.dir.join(store::attempt_name(number)), |row| {
                if let JournalEvent::JobFinished(ended) = row
                    && costs.len() < TIMES_MAX
                {
                    let columns = ended.args.iter().map(OsBytes::to_os).collect();
                    costs.entry(fingerprint(&JobArgs::Columns(columns))).or_insert(ended.wall as f32);
                }
            });
        }
    }
    costs
}
