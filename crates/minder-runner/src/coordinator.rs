//! The coordinator of a run whose jobs run on agents: submits them, and takes the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::Signal;
use minder::guard::ProcessGuard;
use minder::jobs::{HaltPolicy, Threshold};
use minder_cluster::agents::RoundAgents;
use minder_cluster::spool::{SpoolReader, SpoolWriter};
use minder_os::sync::Mutex;
use minder_record::event::OsBytes;
use minder_record::job_set::JobSet;

use crate::attachment::Attachment;
use crate::config::{AgentsConfig, RunConfig};
use crate::input::ArgumentReader;
use crate::local_agents::{LocalAgents, OtherAgents};
use crate::observer::Observer;
use crate::reader_wait::Interrupted;
use crate::recorder::RunRecorder;
use crate::remote_results::{Earlier, RemoteResults, Rest};
use crate::resume::ResumeFilter;
use crate::spooler::Spooler;

/// The error for a run whose input is not complete in its record.
const INPUT_LOST: &str = "the input of the run was not read to its end, and is lost: start it again";
/// The longest time that agents may take to begin.
const BEGIN_MAX: Duration = Duration::from_secs(30);
/// The time between two looks whether they have begun.
const BEGIN_PAUSE: Duration = Duration::from_millis(20);

/// What ends the agents of a run.
#[derive(Debug)]
pub(crate) struct Coordinator {
    run: PathBuf,
    attempt: u32,
    lost_after: Duration,
    agents: Arc<LocalAgents>,
    /// The agents of an earlier coordinator whose results are taken.
    others: Option<Arc<OtherAgents>>,
    /// `true` once the agents have ended, or continue without this process.
    is_done: Mutex<bool>,
}

impl Coordinator {
    /// Writes the arguments where agents find them, starts the agents, and returns where their results come
    /// from. A resumed run submits what is left, when the agents of an earlier attempt have ended.
    ///
    /// # Errors
    /// The run has no record, a file cannot be written, or an agent cannot be started.
    pub(crate) fn begin(
        config: &RunConfig,
        agents: &AgentsConfig,
        arguments: ArgumentReader,
        recorder: &RunRecorder,
        filter: &ResumeFilter,
        observer: &Arc<dyn Observer>,
    ) -> Result<(Self, RemoteResults)> {
        let Some(journal) = recorder.journal() else {
            bail!("agents work together by the record of the run, which cannot be written")
        };
        let run = journal.dir();
        let mut coordinator = Self {
            run: run.to_owned(),
            attempt: journal.attempt(),
            lost_after: agents.lost_after,
            agents: Arc::new(LocalAgents::new(observer)),
            others: None,
            is_done: Mutex::new(false),
        };
        let own = Rest { agents: agents.clone(), journal: Arc::clone(journal) };
        let total = arguments.total();
        let mut rounds = BTreeMap::new();
        let mut earlier = Earlier::default();
        let mut spooler = None;
        match filter.attachment() {
            None if config.record.mode.is_none() => {
                let spool = SpoolWriter::create(run, &names(&arguments))?;
                spooler = Some(Spooler::start(arguments, spool)?);
                rounds.extend([own.begin(None, &coordinator.agents)?]);
            }
            None => {
                if config.record.by_joblog {
                    // The record is new, and the joblog says which jobs are done.
                    let spool = SpoolWriter::create(run, &names(&arguments))?;
                    Spooler::fill(arguments, spool)?;
                }
                let (left, jobs) = left(run, filter)?;
                earlier.unshown.clone_from(&filter.agents().unshown);
                earlier.jobs = Some(jobs);
                rounds.extend([own.begin(Some(left), &coordinator.agents)?]);
            }
            Some((attachment, jobs)) => {
                earlier = attach(config, attachment, jobs, filter, recorder)?;
                if attachment.must_be_over {
                    earlier.unwanted = Some(Arc::clone(&attachment.round));
                } else {
                    coordinator.others.clone_from(&earlier.agents);
                    coordinator.agents.take_round(&attachment.round);
                    rounds.insert(attachment.attempt, Arc::clone(&attachment.round));
                }
                if !config.record.coordination.attaches {
                    earlier.rest = Some(own);
                }
            }
        }
        earlier.is_near = agents.places.iter().all(|place| place.host.is_some());
        let agents = Arc::clone(&coordinator.agents);
        let mut results = RemoteResults::open(run, rounds, agents, spooler, earlier)?;
        results.total = results.total.or(total);
        let is_percentage = |halt: HaltPolicy| matches!(halt.threshold(), Threshold::Percent(_));
        results.needs_total = results.total.is_none() && config.control.halt.is_some_and(is_percentage);
        Ok((coordinator, results))
    }

    /// Ends the round, and its agents. Jobs that run have no result, and run again when the run is resumed. A
    /// signal kills them.
    pub(crate) fn end(&self, guard: &mut ProcessGuard, grace: Duration) {
        self.end_agents(grace, || guard.next_signal().is_some_and(is_end));
    }

    /// Returns whether the results of agents of an earlier coordinator are taken.
    pub(crate) fn has_others(&self) -> bool {
        self.others.as_ref().is_some_and(|others| others.matter())
    }

    /// Kills the agents that this process has started, and asks others to end.
    pub(crate) fn kill(&self) {
        self.end_agents(Duration::ZERO, || true);
    }

    fn end_agents(&self, grace: Duration, is_urgent: impl FnMut() -> bool) {
        if std::mem::replace(&mut *self.is_done.lock(), true) {
            return;
        }
        self.agents.end(self.others.as_deref(), grace, is_urgent);
    }

    /// Lets the agents continue without this process.
    pub(crate) fn leave(&self) {
        *self.is_done.lock() = true;
    }

    /// Waits until the agents of this attempt have begun, and all of the input is where they find it.
    ///
    /// # Errors
    /// The input cannot be read to its end, no agent has begun, or a signal has ended the run
    /// ([`Interrupted`]).
    pub(crate) fn wait_for_agents(
        &self,
        results: &mut RemoteResults,
        guard: &mut ProcessGuard,
    ) -> Result<()> {
        if self.has_others() {
            return Ok(());
        }
        let mut agents = RoundAgents::new(&self.run, self.attempt, self.lost_after);
        let until = Instant::now() + BEGIN_MAX;
        loop {
            let is_spooled = results.known_total()?.is_some();
            let works = self.agents.wait(BEGIN_PAUSE)?;
            agents.look(Instant::now()).context("cannot read the agents of the run")?;
            let begun = agents.iter().filter(|(_, agent)| agent.started.is_some()).count();
            let has_begun = begun > 0 && begun >= self.agents.working();
            if has_begun && is_spooled {
                return Ok(());
            }
            if begun == 0 && (!works || Instant::now() >= until) {
                self.agents.report();
                bail!("no agent of the run has begun");
            }
            if let Some(signal) = guard.next_signal().filter(|signal| is_end(*signal)) {
                return Err(Interrupted(signal).into());
            }
        }
    }
}

impl Drop for Coordinator {
    /// Ends the agents of a run that could not begin.
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn is_end(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT)
}

/// Returns what this attempt takes of a round of an earlier coordinator.
fn attach(
    config: &RunConfig,
    attachment: &Attachment,
    jobs: &JobSet,
    filter: &ResumeFilter,
    recorder: &RunRecorder,
) -> Result<Earlier> {
    let attaches = config.record.coordination.attaches;
    if !attachment.spooled.has_ended {
        // Its agents wait for input that no process reads any more.
        attachment.round.cancel()?;
        if !attaches {
            bail!(INPUT_LOST);
        }
    }
    let run = recorder.run().unwrap_or_default();
    let hint = match (attaches, attachment.must_be_over) {
        (true, _) => format!(" (minder resume {run})"),
        (false, true) => format!(" (minder attach {run})"),
        (false, false) => String::new(),
    };
    let mut unshown = filter.agents().unshown.clone();
    let mut lost = attachment.lost.clone();
    filter.agents().lost.jobs().for_each(|job| _ = lost.insert(job));
    if !attachment.must_be_over {
        unshown.remove(&attachment.attempt);
    }
    Ok(Earlier {
        jobs: Some(jobs.clone()),
        unshown,
        agents: attachment.agents.lock().take().map(|agents| Arc::new(OtherAgents::new(agents))),
        attempt: Some(attachment.attempt),
        unwanted: None,
        shown: attachment.shown.clone(),
        lost,
        incomplete: (!attachment.spooled.has_ended).then_some(INPUT_LOST),
        rest: None,
        hint,
        is_near: false,
    })
}

/// Returns the jobs that are to run, and all jobs whose results are taken.
fn left(run: &Path, filter: &ResumeFilter) -> Result<(JobSet, JobSet)> {
    let spooled = SpoolReader::open(run).and_then(|spool| spool.count());
    let spooled = spooled.context("cannot resume the run on agents")?;
    if !spooled.has_ended {
        bail!(INPUT_LOST);
    }
    let left = filter.left(spooled.jobs);
    let mut jobs = left.clone();
    let unshown = filter.agents().unshown.values().flat_map(JobSet::ranges);
    unshown.for_each(|(first, last)| jobs.insert_range(first, last));
    Ok((left, jobs))
}

/// Returns the names of the columns, as the spool has them.
fn names(arguments: &ArgumentReader) -> Vec<OsBytes> {
    arguments.names.iter().map(|name| OsBytes::from(name.as_os_str())).collect()
}
