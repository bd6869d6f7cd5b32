//! Reads the record of a run: all its journals, and what they have of each job.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::agents::AgentKey;
use crate::codec::{LINE_MAX, decode};
use crate::error;
use crate::event::{AttemptFinished, AttemptHost, AttemptStarted, JobFinished, JournalEvent, OutputSegment};
use crate::journal::lines;
use crate::manifest::{Manifest, open_file};
use crate::merge::{Agent, AgentEvent, Round, Rounds};
use crate::store;

pub use crate::journal::{Corruption, attempt_finished, read_journal, tail_from};

/// An attempt at a run, without its jobs.
#[derive(Debug)]
pub struct Attempt {
    /// The number of the attempt, counted from 1.
    pub number: u32,
    /// The first event of its journal, if it is readable.
    pub started: Option<AttemptStarted>,
    /// The resources that it could use, unless the version is old.
    pub host: Option<AttemptHost>,
    /// The last event of its journal. `None` if the attempt still runs or was killed.
    pub finished: Option<AttemptFinished>,
    /// The damage of its journal.
    pub corruption: Corruption,
    /// The error that ended reading the journal early.
    pub error: Option<io::Error>,
}

/// The complete record of a run.
#[derive(Debug)]
pub struct Run {
    /// The manifest, or the reason why it cannot be read.
    pub manifest: error::Result<Manifest>,
    /// The attempts, in ascending order.
    pub attempts: Vec<Attempt>,
    /// The last event of each finished job, by job.
    pub jobs: BTreeMap<u64, JobFinished>,
    /// The failed tries of jobs that were started again, by job, in their order.
    pub tries: BTreeMap<u64, Vec<JobFinished>>,
    /// Output that was saved and not shown yet, by job.
    pub unshown: BTreeMap<u64, Vec<OutputSegment>>,
    /// The agents that have worked on the run, in the order of their rounds and of their keys.
    pub agents: Vec<Agent>,
    /// Agents whose journal does not say what they are.
    pub unreadable: Vec<(AgentKey, io::Error)>,
    /// The index of the agent that has run each job, if one has.
    pub agent_of: BTreeMap<u64, usize>,
    /// `true` if a process works on the run.
    pub alive: bool,
}

impl Run {
    /// Returns the agent that has run a job, and the name of its machine.
    pub fn place_of(&self, job: u64) -> Option<(AgentKey, Option<&str>)> {
        let agent = self.agents.get(*self.agent_of.get(&job)?)?;
        Some((agent.key, agent.started.node.as_deref()))
    }
}

/// Reads the complete record of a run, with the events of all its jobs.
///
/// # Errors
///
/// If the directory cannot be read. Errors of single files are in [`Run::manifest`] and
/// [`Attempt::error`].
pub fn read_run(dir: &Path) -> io::Result<Run> {
    // Checked first: if the attempt finishes while this function reads, its last event shows that.
    let alive = store::is_alive(dir);
    let manifest = Manifest::read(dir);
    let mut run = Run {
        manifest,
        attempts: Vec::new(),
        jobs: BTreeMap::new(),
        tries: BTreeMap::new(),
        unshown: BTreeMap::new(),
        agents: Vec::new(),
        unreadable: Vec::new(),
        agent_of: BTreeMap::new(),
        alive,
    };
    let mut rounds = Rounds::read(dir)?;
    run.unreadable = std::mem::take(&mut rounds.unreadable);
    let attempts = store::attempts(dir)?;
    for number in rounds.numbers_with(&attempts) {
        if let Some(round) = rounds.take(number) {
            read_round(round, &mut run);
        }
        if attempts.binary_search(&number).is_err() {
            continue;
        }
        let mut attempt = Attempt {
            number,
            started: None,
            host: None,
            finished: None,
            corruption: Corruption::default(),
            error: None,
        };
        let path = dir.join(store::attempt_name(number));
        let corruption = read_journal(&path, |event| match event {
            JournalEvent::AttemptStarted(started) => attempt.started = Some(started),
            JournalEvent::Host(host) => attempt.host = Some(host),
            JournalEvent::OutputDir(_) | JournalEvent::Claimed(_) | JournalEvent::Sealed(_) => (),
            JournalEvent::AttemptFinished(finished) => attempt.finished = Some(finished),
            JournalEvent::OutputLost(shown) | JournalEvent::OutputShown(shown) => {
                for job in &shown.jobs {
                    run.unshown.remove(job);
                }
            }
            JournalEvent::JobTried(tried) => run.tries.entry(tried.job).or_default().push(tried),
            JournalEvent::JobFinished(ended) => {
                update_unshown(&mut run.unshown, &ended);
                run.agent_of.remove(&ended.job);
                run.jobs.insert(ended.job, ended);
            }
        });
        match corruption {
            Ok(corruption) => attempt.corruption = corruption,
            Err(error) => attempt.error = Some(error),
        }
        run.attempts.push(attempt);
    }
    Ok(run)
}

/// Adds what the agents of a round have done. Output that they have saved is shown by the attempt that waits
/// for them.
fn read_round(mut round: Round, run: &mut Run) {
    let first = run.agents.len();
    let keys: Vec<AgentKey> = round.agents().iter().map(|agent| agent.key).collect();
    round.visit(|event| {
        let AgentEvent { agent, counts, is_tried, ended, .. } = event;
        match (counts, is_tried) {
            (false, _) => (),
            (true, true) => run.tries.entry(ended.job).or_default().push(ended),
            (true, false) => {
                run.unshown.remove(&ended.job);
                let index = keys.binary_search(&agent).unwrap_or_default();
                run.agent_of.insert(ended.job, first + index);
                run.jobs.insert(ended.job, ended);
            }
        }
    });
    run.agents.extend(round.into_agents());
}

/// A start of a job that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The attempt at the run, counted from 1.
    pub attempt: u32,
    /// The agent that has run it, if one has.
    pub agent: Option<AgentKey>,
    /// The name of the agent's machine.
    pub node: Option<String>,
    /// `false` if another agent had taken the job over. Such a result is not used.
    pub counts: bool,
    /// `true` if the job failed and was to be started again.
    pub is_tried: bool,
    /// How it ended.
    pub ended: JobFinished,
}

/// Visits the starts of jobs that have ended, of all attempts at the run: those of agents, and then those of
/// the attempt itself. The starts of a job are in their order. A journal that cannot be read is left out:
/// [`read_run`] reports it.
///
/// ```
/// let dir = std::path::Path::new("no/such/run");
/// assert!(minder_record::reader::visit_starts(dir, &mut |start| println!("{start:?}")).is_err());
/// ```
///
/// # Errors
///
/// If the directory cannot be read.
pub fn visit_starts(dir: &Path, visit: &mut dyn FnMut(Start)) -> io::Result<()> {
    let mut rounds = Rounds::read(dir)?;
    let attempts = store::attempts(dir)?;
    for attempt in rounds.numbers_with(&attempts) {
        if let Some(mut round) = rounds.take(attempt) {
            round.visit(|event| {
                let AgentEvent { agent, node, counts, is_tried, ended, .. } = event;
                let node = node.map(str::to_owned);
                visit(Start { attempt, agent: Some(agent), node, counts, is_tried, ended });
            });
        }
        let of_attempt = |event| {
            let (is_tried, ended) = match event {
                JournalEvent::JobTried(ended) => (true, ended),
                JournalEvent::JobFinished(ended) => (false, ended),
                _ => return,
            };
            visit(Start { attempt, agent: None, node: None, counts: true, is_tried, ended });
        };
        let _ = read_journal(&dir.join(store::attempt_name(attempt)), of_attempt);
    }
    Ok(())
}

/// Returns the starts of a job as [`visit_starts`] visits them.
///
/// ```
/// let dir = std::path::Path::new("no/such/run");
/// assert!(minder_record::reader::starts(dir, 1).is_err());
/// ```
///
/// # Errors
///
/// If the directory cannot be read.
pub fn starts(dir: &Path, job: u64) -> io::Result<Vec<Start>> {
    let mut starts = Vec::new();
    visit_starts(dir, &mut |start| {
        if start.ended.job == job {
            starts.push(start);
        }
    })?;
    Ok(starts)
}

/// Returns the jobs whose events are in the first bytes of a journal.
///
/// # Errors
///
/// As [`read_journal`].
pub fn first_jobs(path: &Path, bytes_max: u64) -> io::Result<Vec<JobFinished>> {
    let mut reader = BufReader::new(io::Read::take(open_file(path)?, bytes_max));
    let mut jobs = Vec::new();
    lines(&mut reader, LINE_MAX, |_, line, _| {
        if let Some(Ok(JournalEvent::JobFinished(job))) = line.map(decode) {
            jobs.push(job);
        }
    })?;
    Ok(jobs)
}

/// Replaces the saved output of a job by that of its latest execution.
pub(crate) fn update_unshown(unshown: &mut BTreeMap<u64, Vec<OutputSegment>>, ended: &JobFinished) {
    if ended.kept.is_empty() {
        unshown.remove(&ended.job);
    } else {
        unshown.insert(ended.job, ended.kept.clone());
    }
}

/// Returns the first event of the last attempt, if it is readable.
///
/// ```
/// let dir = std::path::Path::new("no/such/run");
/// assert_eq!(minder_record::reader::last_started(dir), None);
/// ```
pub fn last_started(dir: &Path) -> Option<AttemptStarted> {
    let number = *store::attempts(dir).ok()?.last()?;
    let file = open_file(&dir.join(store::attempt_name(number))).ok()?;
    let mut line = Vec::new();
    io::Read::take(BufReader::new(file), 4096).read_until(b'\n', &mut line).ok()?;
    match decode(line.strip_suffix(b"\n")?) {
        Ok(JournalEvent::AttemptStarted(started)) => Some(started),
        _ => None,
    }
}
