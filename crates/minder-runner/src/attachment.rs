//! A round of an earlier attempt whose results this attempt takes: its agents may still work.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use minder_cluster::agents::RoundAgents;
use minder_cluster::round::{self, Round};
use minder_cluster::spool::{Count, SpoolReader};
use minder_os::sync::Mutex;
use minder_record::event::JournalEvent;
use minder_record::job_set::JobSet;
use minder_record::reader::read_journal;
use minder_record::store;

use crate::config::{RecordConfig, ResumeMode};

/// The jobs whose output agents have saved, and no attempt has shown.
#[derive(Debug, Default)]
pub(crate) struct AgentOutput {
    /// The jobs, by the attempt whose round has their last result.
    pub(crate) unshown: BTreeMap<u32, JobSet>,
    /// Those with output that cannot be read. They are not in `unshown`.
    pub(crate) lost: JobSet,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// The attempt that submitted the round.
    pub(crate) attempt: u32,
    pub(crate) round: Arc<Round>,
    pub(crate) spooled: Count,
    /// Its agents, until the coordinator takes them.
    pub(crate) agents: Mutex<Option<RoundAgents>>,
    /// The jobs of the round whose results were counted and shown by an earlier coordinator.
    pub(crate) shown: JobSet,
    /// The jobs of the round whose output is lost. Their results are not taken.
    pub(crate) lost: JobSet,
    /// `true` if the results of the round are not wanted: its agents must have ended.
    pub(crate) must_be_over: bool,
}

impl Attachment {
    /// Looks for the newest round of a run, before anything else of the record is read: what its agents
    /// record from then on is taken by this attempt. `None` if all of its agents have ended, and this attempt
    /// may start its own.
    ///
    /// # Errors
    /// The run has no round, or the round or the spool cannot be read.
    pub(crate) fn find(run: &Path, config: &RecordConfig) -> Result<Option<Self>> {
        let Some(agents) = &config.agents else { return Ok(None) };
        let attaches = config.coordination.attaches;
        let Some(attempt) = round::newest(run)? else {
            if attaches {
                bail!("no agent has worked on the run (`minder resume` finishes it)");
            }
            return Ok(None);
        };
        let round = Arc::new(Round::open(run, attempt)?);
        let mut agents = RoundAgents::new(run, attempt, agents.lost_after);
        agents.look(Instant::now()).context("cannot read the agents of the run")?;
        if !attaches && !agents.may_work() {
            // One may only be about to begin. Now it claims nothing any more, or is seen.
            round.cancel()?;
            agents.look(Instant::now()).context("cannot read the agents of the run")?;
            if !agents.may_work() {
                return Ok(None);
            }
        }
        let (shown, lost) = shown_since(run, attempt)?;
        let spooled = SpoolReader::open(run).and_then(|spool| spool.count());
        Ok(Some(Self {
            attempt,
            round,
            spooled: spooled.context("cannot resume the run on agents")?,
            agents: Mutex::new(Some(agents)),
            shown,
            lost,
            must_be_over: !attaches && config.mode != Some(ResumeMode::Rest),
        }))
    }

    /// Adds the jobs of the round to a set.
    pub(crate) fn add_jobs(&self, jobs: &mut JobSet) {
        match self.round.jobs() {
            Some(of_round) => of_round.ranges().for_each(|(first, last)| jobs.insert_range(first, last)),
            None => jobs.insert_range(1, self.spooled.jobs),
        }
    }
}

/// Returns which jobs the coordinators have shown since a round began, and whose output they could not read.
/// No other coordinator works on the run.
fn shown_since(run: &Path, attempt: u32) -> Result<(JobSet, JobSet)> {
    let mut shown = JobSet::default();
    let mut lost = JobSet::default();
    let cannot = || format!("cannot read the record in `{}`", run.display());
    for number in store::attempts(run).with_context(cannot)? {
        if number < attempt {
            continue;
        }
        let visit = |event| {
            let (jobs, list) = match event {
                JournalEvent::OutputShown(list) => (&mut shown, list),
                JournalEvent::OutputLost(list) => (&mut lost, list),
                _ => return,
            };
            for job in list.jobs {
                jobs.insert(job);
            }
        };
        read_journal(&run.join(store::attempt_name(number)), visit).with_context(cannot)?;
    }
    Ok((shown, lost))
}
