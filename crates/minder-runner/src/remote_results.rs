//! The results of agents, as the coordinator takes them: each is a job of its run that needs no child.
//!
//! The thread that reads the input of other runs calls this. It reads the journals of all agents as they
//! grow, and hands on each result that counts once. From there on a result goes the way of every job: it is
//! counted, its output waits for its turn, is shown and recorded as shown.
//!
//! In the order of the input, a result is handed on when its turn comes. Until then only its number is in
//! memory, as part of a range. Results are then read by claims. So the memory that is needed grows with
//! agents and claims, and not with the jobs that wait.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use minder_cluster::beat::Beat;
use minder_cluster::round::Round;
use minder_cluster::spool::SpoolReader;
use minder_record::agents::{AGENTS, AgentKey, JOURNAL};
use minder_record::event::{JobFinished, OsBytes};
use minder_record::job_set::JobSet;
use minder_record::merge::{self, AgentEvent, Rounds};

use crate::claimed_jobs::job_args;
use crate::input::JobArgs;
use crate::local_agents::LocalAgents;
use crate::spooler::Spooler;
use crate::text::{count, os_error_text};

/// The time between two looks at the journals, for up to [`QUICK`] agents. More take longer.
const PAUSE: Duration = Duration::from_millis(20);
const QUICK: u32 = 50;
/// The most time between two looks at which agents there are, and the least between two looks at their beats.
const LIST_TIME: Duration = Duration::from_millis(500);
/// An error of the directory of the run ends the run if it lasts this long.
const ERROR_MAX: Duration = Duration::from_secs(30);
/// The number of bytes of journals that are read before results are handed on.
const READ_MAX: u64 = 1 << 20;
/// The most claims whose results are in memory, in the order of the input: one for each of the last rounds.
const TURNS_MAX: usize = 4;

/// The result of a job that ran on an agent.
#[derive(Debug)]
pub(crate) struct RemoteResult {
    pub(crate) ended: JobFinished,
    /// The directory of the agent, which has its output.
    pub(crate) dir: PathBuf,
    /// The name of its machine.
    pub(crate) node: Option<String>,
}

/// The jobs that are not in the hands of the coordinator.
#[derive(Debug, Default)]
pub(crate) struct OnAgents {
    /// Those that agents have claimed and not finished.
    pub(crate) open: AtomicU64,
    /// Those with a result that waits for its turn.
    pub(crate) succeeded: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl OnAgents {
    fn waiting(&self, ended: &JobFinished) -> &AtomicU64 {
        if ended.succeeded() { &self.succeeded } else { &self.failed }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RemoteResults {
    run: PathBuf,
    /// The number of results, if it is known.
    pub(crate) total: Option<u64>,
    /// `true` if the number is needed before the first result is taken.
    pub(crate) needs_total: bool,
    /// `true` if results are handed on in the order of the input.
    pub(crate) in_order: bool,
    /// The attempt that submitted the round.
    attempt: u32,
    round: Arc<Round>,
    spool: SpoolReader,
    /// What fills the spool, unless an earlier attempt did.
    spooler: Option<Spooler>,
    agents: Arc<LocalAgents>,
    pub(crate) on_agents: Arc<OnAgents>,
    rounds: Rounds,
    /// When the agents were listed, and how long that list is good for. A new directory shows by the time of
    /// the one that it is in. Its journal follows a moment later.
    listed: Option<Instant>,
    list_time: Duration,
    changed: Option<SystemTime>,
    /// When the beats were read, and the lengths of journals that they had.
    beats_read: Option<Instant>,
    announced: HashMap<AgentKey, u64>,
    /// The jobs of earlier rounds whose output is to be shown.
    unshown: JobSet,
    /// `true` once all that earlier rounds have was read.
    has_read_all: bool,
    /// The jobs with a result.
    found: JobSet,
    /// How many of them belong to the round.
    finished: u64,
    /// Results that are handed on next.
    ready: VecDeque<(u32, AgentKey, JobFinished)>,
    /// In the order of the input: the last job that was handed on, and results of claims whose turn it is.
    passed: u64,
    turns: VecDeque<Turn>,
    /// Since when the directory of the run cannot be read.
    failing: Option<Instant>,
}

/// The results of a claim.
#[derive(Debug)]
struct Turn {
    /// The attempt that submitted its round.
    attempt: u32,
    first: u64,
    last: u64,
    results: BTreeMap<u64, (AgentKey, JobFinished)>,
}

impl Turn {
    /// Returns whether it is that of the claim with this job.
    fn has(&self, attempt: u32, job: u64) -> bool {
        self.attempt == attempt && (self.first..=self.last).contains(&job)
    }
}

/// What [`RemoteResults::step`] finds.
enum Step {
    Result(u64, JobArgs, Box<RemoteResult>),
    /// More is to be read.
    More,
    /// This many jobs have no result yet.
    Waits(u64),
    /// Each job has a result.
    End,
}

impl RemoteResults {
    /// Takes the results of a round. `total` is the number of results, if it is known, and `unshown` are the
    /// jobs of earlier rounds whose output is to be shown.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub(crate) fn open(
        run: &Path,
        attempt: u32,
        round: Arc<Round>,
        agents: Arc<LocalAgents>,
        spooler: Option<Spooler>,
        (total, unshown): (Option<u64>, JobSet),
    ) -> Result<Self> {
        Ok(Self {
            spool: SpoolReader::open(run)?,
            run: run.to_owned(),
            total,
            needs_total: false,
            in_order: false,
            attempt,
            round,
            spooler,
            agents,
            on_agents: Arc::default(),
            rounds: Rounds::default(),
            listed: None,
            list_time: PAUSE,
            changed: None,
            beats_read: None,
            announced: HashMap::new(),
            unshown,
            has_read_all: false,
            found: JobSet::default(),
            finished: 0,
            ready: VecDeque::new(),
            passed: 0,
            turns: VecDeque::new(),
            failing: None,
        })
    }

    /// Reads the input to its end, and returns the number of results.
    ///
    /// # Errors
    /// The input cannot be read to its end.
    pub(crate) fn wait_for_total(&mut self) -> Result<u64> {
        loop {
            self.spooler.as_ref().map_or(Ok(()), Spooler::publish)?;
            let spooled = self.spool.count();
            if let Some(spooled) = self.unless_it_lasts(spooled)?
                && spooled.has_ended
            {
                return Ok(self.round.count(spooled.jobs) + self.unshown.len());
            }
            self.agents.wait(PAUSE)?;
        }
    }

    /// Returns the next result, or `None` if each job has one. Waits for it.
    ///
    /// # Errors
    /// The input cannot be read to its end, a journal cannot be read, or no agent works any more.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, JobArgs, Box<RemoteResult>)>> {
        let mut works = true;
        loop {
            self.spooler.as_ref().map_or(Ok(()), Spooler::publish)?;
            let step = self.step();
            match self.unless_it_lasts(step)? {
                Some(Step::Result(job, args, result)) => return Ok(Some((job, args, result))),
                Some(Step::More) => continue,
                Some(Step::End) => return Ok(None),
                Some(Step::Waits(_)) if !works && self.agents.is_ending() => return Ok(None),
                Some(Step::Waits(left)) if !works => {
                    let why = self.agents.message().map(|line| format!(": {line}")).unwrap_or_default();
                    bail!("all agents have ended, and {} left{why}", count(left, "job"));
                }
                Some(Step::Waits(_)) | None => (),
            }
            let agents = u32::try_from(self.announced.len()).unwrap_or(u32::MAX);
            works = self.agents.wait(PAUSE.saturating_mul(1 + agents / QUICK))?;
            if !works {
                // The last look finds everything.
                self.listed = None;
            }
        }
    }

    /// Returns `None` instead of an error that may pass: no descriptor is free, or a server does not answer.
    fn unless_it_lasts<T>(&mut self, tried: io::Result<T>) -> Result<Option<T>> {
        match tried {
            Ok(value) => {
                self.failing = None;
                Ok(Some(value))
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error.into()),
            Err(error) if self.failing.get_or_insert_with(Instant::now).elapsed() >= ERROR_MAX => {
                Err(error).context("cannot read the results of agents")
            }
            Err(_) => Ok(None),
        }
    }

    fn step(&mut self) -> io::Result<Step> {
        if let Some(step) = self.take_next()? {
            return Ok(step);
        }
        let has_more = self.read_more()?;
        if let Some(step) = self.take_next()? {
            return Ok(step);
        }
        if has_more {
            return Ok(Step::More);
        }
        let spooled = self.spool.count()?;
        let mut left = self.round.count(spooled.jobs).saturating_sub(self.finished);
        if self.in_order && left == 0 {
            // One that a later seal leaves out runs again.
            left = u64::from(self.next_in_order(spooled.jobs).is_some());
        }
        Ok(if spooled.has_ended && left == 0 { Step::End } else { Step::Waits(left) })
    }

    /// Returns the result that is handed on next, if it is there.
    fn take_next(&mut self) -> io::Result<Option<Step>> {
        let next = if self.in_order { self.take_in_order()? } else { self.ready.pop_front() };
        let Some((attempt, key, ended)) = next else { return Ok(None) };
        let job = ended.job;
        let args = match ended.args.as_slice() {
            // They are not recorded, or there are none.
            [] => job_args(&mut self.spool, job),
            args => Ok(JobArgs::Columns(args.iter().map(OsBytes::to_os).collect())),
        };
        let args = match args {
            Ok(args) => args,
            Err(error) => {
                // Another try needs it again.
                self.ready.push_front((attempt, key, ended));
                return Err(error);
            }
        };
        if self.in_order {
            self.passed = job;
            self.on_agents.waiting(&ended).fetch_sub(1, Ordering::Relaxed);
        }
        let node = self.rounds.round(attempt).and_then(|round| round.agent(key)?.started.node.clone());
        let result = Box::new(RemoteResult { ended, dir: key.dir(&self.run), node });
        Ok(Some(Step::Result(job, args, result)))
    }

    fn take_in_order(&mut self) -> io::Result<Option<(u32, AgentKey, JobFinished)>> {
        if let Some(again) = self.ready.pop_front() {
            return Ok(Some(again));
        }
        let Some(job) = self.next_in_order(u64::MAX).filter(|job| self.found.contains(*job)) else {
            return Ok(None);
        };
        // Of earlier rounds, the last one counts.
        let is_of_round = self.round.contains(job);
        let mut rounds = self.rounds.rounds_mut();
        let own = self.attempt;
        let Some((attempt, round)) =
            rounds.find(|(attempt, round)| (*attempt == own) == is_of_round && round.has_result(job))
        else {
            return Ok(None);
        };
        let is_its = |turn: &Turn| turn.has(attempt, job);
        if let Some(turn) = self.turns.iter_mut().find(|turn| is_its(turn))
            && let Some((key, ended)) = turn.results.remove(&job)
        {
            return Ok(Some((attempt, key, ended)));
        }
        let Some((first, last)) = round.claim_around(job) else { return Ok(None) };
        let mut results = round.results_around(job)?;
        // If it is not there, a later seal leaves it out. Then the job runs again.
        let next = results.remove(&job).map(|(key, ended)| (attempt, key, ended));
        self.turns.retain(|turn| !is_its(turn));
        self.turns.push_back(Turn { attempt, first, last, results });
        if self.turns.len() > TURNS_MAX {
            self.turns.pop_front();
        }
        Ok(next)
    }

    /// Returns the job whose turn it is, of the first `spooled` ones.
    fn next_in_order(&mut self, spooled: u64) -> Option<u64> {
        let of_round = self.round.range_after(self.passed, 1, spooled).map(|(first, _)| first);
        while let Some(job) = self.unshown.first_after(self.passed) {
            // It is gone: what earlier rounds have was read.
            if self.has_read_all && !self.found.contains(job) {
                self.unshown.remove(job);
                continue;
            }
            return of_round.into_iter().chain([job]).min();
        }
        of_round
    }

    /// Reads what the agents have written since the last call. Returns whether more is there.
    fn read_more(&mut self) -> io::Result<bool> {
        self.list_agents()?;
        if self.beats_read.is_none_or(|read| read.elapsed() >= LIST_TIME) {
            self.read_beats();
        }
        let Self { run, attempt: own, round, rounds, unshown, found, finished, in_order, .. } = self;
        let Self { ready, turns, on_agents, announced, has_read_all, .. } = self;
        for (attempt, agents) in rounds.rounds_mut() {
            let is_own = attempt == *own;
            // The output of an earlier round is known when the run is resumed. It grows no more.
            if !is_own && (*has_read_all || unshown.is_empty()) {
                continue;
            }
            agents.read_more(&|key| announced.get(&key).copied().unwrap_or(0));
            let has_more = agents.visit_some(READ_MAX, &mut |event: AgentEvent<'_>| {
                let AgentEvent { agent, counts, is_tried, ended, .. } = event;
                let job = ended.job;
                let of_round = round.contains(job);
                let is_wanted = if is_own { of_round } else { !of_round && unshown.contains(job) };
                if is_tried || !counts || !is_wanted || !found.insert(job) {
                    return;
                }
                *finished += u64::from(is_own);
                if !*in_order {
                    ready.push_back((attempt, agent, ended));
                    return;
                }
                on_agents.waiting(&ended).fetch_add(1, Ordering::Relaxed);
                if let Some(turn) = turns.iter_mut().find(|turn| turn.has(attempt, job)) {
                    turn.results.insert(job, (agent, ended));
                }
            });
            check(agents, run)?;
            if has_more {
                return Ok(true);
            }
        }
        *has_read_all = true;
        Ok(false)
    }

    /// Looks for new agents.
    fn list_agents(&mut self) -> io::Result<()> {
        let changed = fs::metadata(self.run.join(AGENTS)).and_then(|metadata| metadata.modified()).ok();
        if changed != self.changed {
            self.changed = changed;
            self.list_time = Duration::ZERO;
        }
        if self.listed.is_some_and(|listed| listed.elapsed() < self.list_time) {
            return Ok(());
        }
        self.rounds.add_agents(&self.run)?;
        if let Some((key, error)) = self.rounds.unreadable.pop() {
            return Err(cannot_read(key, &self.run, &error));
        }
        self.listed = Some(Instant::now());
        self.list_time = (self.list_time * 2).clamp(PAUSE, LIST_TIME);
        Ok(())
    }

    /// Reads the beats of the agents that have not ended.
    fn read_beats(&mut self) {
        self.announced.clear();
        let mut open = 0;
        let agents = self.rounds.round(self.attempt).map_or(&[][..], merge::Round::agents);
        for agent in agents.iter().filter(|agent| agent.finished.is_none()) {
            let beat = Beat::read(&agent.key.dir(&self.run)).ok().flatten();
            self.announced.insert(agent.key, beat.map_or(0, |beat| beat.journal));
            open += beat.map_or(0, |beat| beat.open);
        }
        self.on_agents.open.store(open, Ordering::Relaxed);
        self.beats_read = Some(Instant::now());
    }
}

/// Returns the first error of reading a journal. One that was removed has no more results.
fn check(round: &merge::Round, run: &Path) -> io::Result<()> {
    let errors = round.agents().iter().filter_map(|agent| Some((agent.key, agent.error.as_ref()?)));
    let mut errors = errors.filter(|(_, error)| error.kind() != io::ErrorKind::NotFound);
    errors.next().map_or(Ok(()), |(key, error)| Err(cannot_read(key, run, error)))
}

fn cannot_read(key: AgentKey, run: &Path, error: &io::Error) -> io::Error {
    let path = key.dir(run).join(JOURNAL);
    io::Error::new(error.kind(), format!("cannot read `{}`: {}", path.display(), os_error_text(error)))
}

#[cfg(test)]
mod tests;
