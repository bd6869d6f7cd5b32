//! The coordinator of a run whose jobs run on agents: submits them, and takes the results.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder::Signal;
use minder::guard::ProcessGuard;
use minder::jobs::{HaltPolicy, Threshold};
use minder_cluster::round::Round;
use minder_cluster::spool::{SpoolReader, SpoolWriter};
use minder_record::event::OsBytes;

use crate::config::{AgentsConfig, RunConfig};
use crate::input::ArgumentReader;
use crate::local_agents::LocalAgents;
use crate::recorder::RunRecorder;
use crate::remote_results::RemoteResults;
use crate::resume::ResumeFilter;
use crate::spooler::Spooler;

/// What ends the agents of a run.
#[derive(Debug)]
pub(crate) struct Coordinator {
    round: Arc<Round>,
    agents: Arc<LocalAgents>,
}

impl Coordinator {
    /// Writes the arguments where agents find them, starts the agents, and returns where their results come
    /// from. A resumed run submits what is left.
    ///
    /// # Errors
    /// The run has no record, a file cannot be written, or an agent cannot be started.
    pub(crate) fn begin(
        config: &RunConfig,
        agents: &AgentsConfig,
        arguments: ArgumentReader,
        recorder: &RunRecorder,
        filter: &ResumeFilter,
    ) -> Result<(Self, RemoteResults)> {
        let Some(journal) = recorder.journal() else {
            bail!("agents work together by the record of the run, which cannot be written")
        };
        let run = journal.dir();
        let attempt = journal.attempt();
        let mut total = arguments.total();
        let mut jobs = None;
        let mut spooler = None;
        let names = || -> Vec<OsBytes> {
            arguments.names.iter().map(|name| OsBytes::from(name.as_os_str())).collect()
        };
        if config.record.mode.is_none() {
            let spool = SpoolWriter::create(run, &names())?;
            spooler = Some(Spooler::start(arguments, spool)?);
        } else {
            if config.record.by_joblog {
                // The record is new, and the joblog says which jobs are done.
                let spool = SpoolWriter::create(run, &names())?;
                Spooler::fill(arguments, spool)?;
            }
            let spooled = SpoolReader::open(run).and_then(|spool| spool.count());
            let spooled = spooled.context("cannot resume the run on agents")?;
            if !spooled.has_ended {
                bail!("the input of the run was not read to its end, and is lost: start it again");
            }
            let left = filter.left(spooled.jobs);
            total = Some(left.len() + filter.unshown_by_agents().len());
            jobs = Some(left);
        }
        let round = Arc::new(Round::create(run, attempt, jobs)?);
        let agents = Arc::new(LocalAgents::start(agents, run, attempt)?);
        let coordinator = Self { round: Arc::clone(&round), agents: Arc::clone(&agents) };
        let unshown = filter.unshown_by_agents().clone();
        let mut results = RemoteResults::open(run, attempt, round, agents, spooler, (total, unshown))?;
        let is_percentage = |halt: HaltPolicy| matches!(halt.threshold(), Threshold::Percent(_));
        results.needs_total = total.is_none() && config.control.halt.is_some_and(is_percentage);
        Ok((coordinator, results))
    }

    /// Ends the round, and its agents. Jobs that run have no result, and run again when the run is resumed. A
    /// signal kills them.
    pub(crate) fn end(&self, guard: &mut ProcessGuard, grace: Duration) {
        let is_end = |signal| matches!(signal, Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT);
        self.agents.end(&self.round, grace, || guard.next_signal().is_some_and(is_end));
    }
}

impl Drop for Coordinator {
    /// Ends the agents of a run that could not begin.
    fn drop(&mut self) {
        if !self.agents.is_ending() {
            self.agents.end(&self.round, Duration::ZERO, || true);
        }
    }
}
