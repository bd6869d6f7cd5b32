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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use minder_cluster::beat::Beat;
use minder_cluster::round::Round;
use minder_cluster::spool::SpoolReader;
use minder_os::files::open_no_follow;
use minder_record::agents::{AGENTS, AgentKey, JOURNAL};
use minder_record::event::{JobFinished, OsBytes, OutputSegment};
use minder_record::job_set::JobSet;
use minder_record::merge::{self, AgentEvent, Rounds};
use minder_record::writer::{JournalWriter, output_path};

use crate::claimed_jobs::job_args;
use crate::config::AgentsConfig;
use crate::input::JobArgs;
use crate::local_agents::{LocalAgents, OtherAgents};
use crate::patience::ERROR_MAX;
use crate::spooler::Spooler;
use crate::text::{count, os_error_text};

/// The time between two looks at the journals, for up to [`QUICK`] agents. More take longer.
const PAUSE: Duration = Duration::from_millis(20);
const QUICK: u32 = 50;
/// The most time between two looks at which agents there are, and the least between two looks at their beats.
const LIST_TIME: Duration = Duration::from_millis(500);
/// With more agents that share a directory over a network, the time between two looks at journals grows by
/// this for each: their server serves all of them.
const SERVED_QUICK: u32 = 8;
const SERVED_TIME: Duration = Duration::from_millis(100);
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
    /// `true` if an earlier coordinator has shown it. Then it is counted only.
    pub(crate) is_shown: bool,
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
    /// The rounds whose results are taken, by the attempts that submitted them.
    rounds: BTreeMap<u32, Arc<Round>>,
    spool: SpoolReader,
    /// What fills the spool, unless an earlier attempt did.
    spooler: Option<Spooler>,
    agents: Arc<LocalAgents>,
    earlier: Earlier,
    pub(crate) on_agents: Arc<OnAgents>,
    /// `true` once all of the input is in the spool.
    pub(crate) is_spooled: Arc<AtomicBool>,
    journals: Rounds,
    /// When the agents were listed, and how long that list is good for. A new directory shows by the time of
    /// the one that it is in. Its journal follows a moment later.
    listed: Option<Instant>,
    list_time: Duration,
    changed: Option<SystemTime>,
    /// When the beats were read, and the lengths of journals that they had.
    beats_read: Option<Instant>,
    /// The number of jobs, once the input has ended.
    spooled: Option<u64>,
    /// When the journals were looked at, and whether more was there than was read.
    looked: Option<Instant>,
    has_more: bool,
    announced: HashMap<AgentKey, u64>,
    /// `true` once all that earlier rounds have was read.
    has_read_all: bool,
    /// The jobs with a result that is taken, by the round that has it.
    found: BTreeMap<u32, JobSet>,
    /// Results that are handed on next.
    ready: VecDeque<(u32, AgentKey, JobFinished)>,
    /// In the order of the input: the last job that was handed on, and results of claims whose turn it is.
    passed: u64,
    turns: VecDeque<Turn>,
    /// Since when the directory of the run cannot be read.
    failing: Option<Instant>,
}

/// What earlier attempts have left.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    /// The jobs that this attempt takes. `None` for all jobs of the input.
    pub(crate) jobs: Option<JobSet>,
    /// The jobs of earlier rounds whose output is to be shown, by the round with their results.
    pub(crate) unshown: BTreeMap<u32, JobSet>,
    /// The agents of an earlier attempt that may still work, and the attempt.
    pub(crate) agents: Option<Arc<OtherAgents>>,
    pub(crate) attempt: Option<u32>,
    /// The round of those agents, if they must have ended. Its results are not taken.
    pub(crate) unwanted: Option<Arc<Round>>,
    /// The jobs of their round whose results were shown, and those whose output is lost.
    pub(crate) shown: JobSet,
    pub(crate) lost: JobSet,
    /// Why the run is not complete when each of these jobs has a result.
    pub(crate) incomplete: Option<&'static str>,
    /// What runs the jobs that are left when those agents have ended. `None` if nothing does.
    pub(crate) rest: Option<Rest>,
    /// The end of the message about jobs that are left.
    pub(crate) hint: String,
    /// `true` if only this machine uses the directory of the run: its hosts are reached by ssh.
    pub(crate) is_near: bool,
}

impl Earlier {
    /// Returns whether the result of a job in the round of an attempt is taken. `dir` is that of its agent.
    fn wants(
        &self,
        rounds: &BTreeMap<u32, Arc<Round>>,
        attempt: u32,
        dir: &Path,
        ended: &JobFinished,
    ) -> bool {
        let job = ended.job;
        let is_others = self.attempt == Some(attempt);
        let is_wanted = if rounds.get(&attempt).is_some_and(|round| round.contains(job)) {
            !is_others || !self.lost.contains(job)
        } else {
            self.unshown.get(&attempt).is_some_and(|unshown| unshown.contains(job))
                && !rounds.values().any(|round| round.contains(job))
        };
        // The file may have been removed while no coordinator worked. Then the job runs again.
        let is_there = || {
            !is_others
                || self.is_shown(attempt, job)
                || ended.kept.iter().all(|segment| is_there(dir, segment))
        };
        is_wanted && self.jobs.as_ref().is_none_or(|jobs| jobs.contains(job)) && is_there()
    }

    /// Returns whether an earlier coordinator has shown the result of a job in the round of an attempt.
    fn is_shown(&self, attempt: u32, job: u64) -> bool {
        self.attempt == Some(attempt) && self.shown.contains(job)
    }
}

/// The round of this attempt, which begins when the agents of an earlier one have ended.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) agents: AgentsConfig,
    pub(crate) journal: Arc<JournalWriter>,
}

impl Rest {
    /// Submits these jobs, and starts agents for them.
    ///
    /// # Errors
    /// A file cannot be written, or an agent cannot be started.
    pub(crate) fn begin(self, jobs: Option<JobSet>, agents: &LocalAgents) -> Result<(u32, Arc<Round>)> {
        let attempt = self.journal.attempt();
        // From here on the attempt stays, since its number is that of the round.
        self.journal.append(&[])?;
        let round = Arc::new(Round::create(self.journal.dir(), attempt, jobs)?);
        agents.start(&self.agents, self.journal.dir(), attempt, &round)?;
        Ok((attempt, round))
    }
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
    /// Jobs have no result yet.
    Waits,
    /// Each job has a result.
    End,
}

impl RemoteResults {
    /// Takes the results of rounds.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub(crate) fn open(
        run: &Path,
        rounds: BTreeMap<u32, Arc<Round>>,
        agents: Arc<LocalAgents>,
        spooler: Option<Spooler>,
        earlier: Earlier,
    ) -> Result<Self> {
        Ok(Self {
            spool: SpoolReader::open(run)?,
            run: run.to_owned(),
            total: earlier.jobs.as_ref().map(JobSet::len),
            needs_total: false,
            in_order: false,
            rounds,
            spooler,
            agents,
            earlier,
            on_agents: Arc::default(),
            is_spooled: Arc::default(),
            journals: Rounds::default(),
            listed: None,
            list_time: PAUSE,
            changed: None,
            beats_read: None,
            spooled: None,
            looked: None,
            has_more: false,
            announced: HashMap::new(),
            has_read_all: false,
            found: BTreeMap::new(),
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
            if let Some(total) = self.known_total()? {
                return Ok(total);
            }
            self.agents.wait(PAUSE)?;
        }
    }

    /// Returns the number of results, if it is known by now.
    ///
    /// # Errors
    /// The input cannot be read to its end.
    pub(crate) fn known_total(&mut self) -> Result<Option<u64>> {
        self.spooler.as_ref().map_or(Ok(()), Spooler::publish)?;
        let total = self.spooled_total();
        Ok(self.unless_it_lasts(total)?.flatten())
    }

    fn spooled_total(&mut self) -> io::Result<Option<u64>> {
        if self.spooled.is_none() {
            self.spooled = match &self.earlier.jobs {
                Some(jobs) => Some(jobs.len()),
                None => Some(self.spool.count()?).filter(|count| count.has_ended).map(|count| count.jobs),
            };
            self.is_spooled.store(self.spooled.is_some(), Ordering::Relaxed);
        }
        Ok(self.spooled)
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
                Some(Step::End) => return self.end(),
                Some(Step::Waits) if !works && self.agents.is_ending() => return self.end(),
                Some(Step::Waits) if !works => self.begin_rest()?,
                Some(Step::Waits) | None => (),
            }
            let agents = u32::try_from(self.announced.len()).unwrap_or(u32::MAX);
            let pause = PAUSE.saturating_mul(1 + agents / QUICK);
            works = self.agents.wait(pause)? | self.other_agents_work()?;
            if !works {
                // The last look finds everything.
                self.listed = None;
                self.beats_read = None;
                self.looked = None;
            }
        }
    }

    /// Ends the results.
    fn end<T>(&self) -> Result<Option<T>> {
        self.earlier.incomplete.map_or(Ok(None), |why| bail!(why))
    }

    /// Returns whether agents of an earlier attempt may still work.
    fn other_agents_work(&mut self) -> Result<bool> {
        let Earlier { agents, unwanted, hint, .. } = &self.earlier;
        let Some(agents) = agents else { return Ok(false) };
        let may_work = agents.may_work();
        if unwanted.is_some() && agents.works() {
            bail!("agents still work on the run: wait for them first{hint}");
        }
        Ok(may_work)
    }

    /// Starts agents for the jobs that are left, when those of an earlier attempt have ended.
    ///
    /// # Errors
    /// They cannot be started, or this attempt starts none.
    fn begin_rest(&mut self) -> Result<()> {
        if self.in_order
            && let Some(job) = self.next_in_order(u64::MAX)
        {
            // If it had a result, a seal leaves that out.
            self.found.values_mut().for_each(|found| _ = found.remove(job));
        }
        let total = self.known_total()?;
        let Some(rest) = self.earlier.rest.take() else {
            let left = count(total.unwrap_or(0).saturating_sub(self.found_count()), "job");
            let hint = &self.earlier.hint;
            let is_cancelled = |round: &Arc<Round>| round.is_cancelled().unwrap_or(false);
            if total.is_none() {
                self.agents.report();
                bail!("no host works on the run any more, and its input was not read to its end");
            }
            if self.rounds.values().any(is_cancelled) {
                bail!("the run was cancelled, and {left} left{hint}");
            }
            self.agents.report();
            bail!("no host works on the run any more, and {left} left{hint}");
        };
        let mut left = JobSet::default();
        for job in self.earlier.jobs.iter().flat_map(JobSet::jobs) {
            if !self.found.values().any(|found| found.contains(job)) {
                left.insert(job);
            }
        }
        // An agent that counts as lost may only have been stopped: nothing of its round is taken any more.
        self.agents.cancel();
        self.earlier.unwanted.take().map_or(Ok(()), |round| round.cancel())?;
        self.earlier.agents.take().inspect(|others| others.forget());
        let (attempt, round) = rest.begin(Some(left), &self.agents)?;
        self.rounds = BTreeMap::from([(attempt, round)]);
        Ok(())
    }

    fn found_count(&self) -> u64 {
        self.found.values().map(JobSet::len).sum()
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
        let look_time = look_time(self.announced.len(), self.earlier.is_near);
        if self.has_more || self.looked.is_none_or(|looked| looked.elapsed() >= look_time) {
            self.has_more = self.read_more(look_time)?;
            self.looked = Some(Instant::now());
        }
        let has_more = self.has_more;
        if let Some(step) = self.take_next()? {
            return Ok(step);
        }
        if has_more {
            return Ok(Step::More);
        }
        let is_end = match self.spooled_total()? {
            None => false,
            // One that a later seal leaves out runs again.
            Some(total) if self.in_order => self.next_in_order(total).is_none(),
            Some(total) => total <= self.found_count(),
        };
        Ok(if is_end { Step::End } else { Step::Waits })
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
        let node = self.journals.round(attempt).and_then(|round| round.agent(key)?.started.node.clone());
        let is_shown = self.earlier.is_shown(attempt, job);
        let result = Box::new(RemoteResult { ended, dir: key.dir(&self.run), node, is_shown });
        Ok(Some(Step::Result(job, args, result)))
    }

    fn take_in_order(&mut self) -> io::Result<Option<(u32, AgentKey, JobFinished)>> {
        if let Some(again) = self.ready.pop_front() {
            return Ok(Some(again));
        }
        let Some(job) = self.next_in_order(u64::MAX) else { return Ok(None) };
        let mut rounds = self.journals.rounds_mut();
        let has_it = |attempt: &u32| self.found.get(attempt).is_some_and(|found| found.contains(job));
        let Some((attempt, round)) = rounds.find(|(attempt, _)| has_it(attempt)) else { return Ok(None) };
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

    /// Returns the job whose turn it is, up to this one.
    fn next_in_order(&self, last: u64) -> Option<u64> {
        match &self.earlier.jobs {
            Some(jobs) => jobs.first_after(self.passed),
            None => self.passed.checked_add(1).filter(|job| *job <= last),
        }
    }

    /// Reads what the agents have written since the last call. Returns whether more is there.
    fn read_more(&mut self, look_time: Duration) -> io::Result<bool> {
        self.list_agents()?;
        if self.beats_read.is_none_or(|read| read.elapsed() >= LIST_TIME.max(look_time * 2)) {
            self.read_beats();
        }
        let Self { run, rounds, earlier, journals, found, in_order, .. } = self;
        let Self { ready, turns, on_agents, announced, has_read_all, .. } = self;
        for (attempt, agents) in journals.rounds_mut() {
            let has_unshown = || earlier.unshown.get(&attempt).is_some_and(|unshown| !unshown.is_empty());
            // The output of an earlier round is known when the run is resumed. It grows no more.
            if !rounds.contains_key(&attempt) && (*has_read_all || !has_unshown()) {
                continue;
            }
            agents.read_more(&|key| announced.get(&key).copied().unwrap_or(0));
            let found = found.entry(attempt).or_default();
            let has_more = agents.visit_some(READ_MAX, &mut |event: AgentEvent<'_>| {
                let AgentEvent { agent, counts, is_tried, ended, .. } = event;
                let job = ended.job;
                let is_wanted = || earlier.wants(rounds, attempt, &agent.dir(run), &ended);
                if is_tried || !counts || !is_wanted() || !found.insert(job) {
                    return;
                }
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
        self.journals.add_agents(&self.run)?;
        if let Some((key, error)) = self.journals.unreadable.pop() {
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
        let rounds = self.rounds.keys().filter_map(|attempt| self.journals.round(*attempt));
        for agent in rounds.flat_map(merge::Round::agents).filter(|agent| agent.finished.is_none()) {
            let beat = Beat::read(&agent.key.dir(&self.run)).ok().flatten();
            self.announced.insert(agent.key, beat.map_or(0, |beat| beat.journal));
            open += beat.map_or(0, |beat| beat.open);
        }
        self.on_agents.open.store(open, Ordering::Relaxed);
        self.beats_read = Some(Instant::now());
    }
}

/// Returns the time between two looks at the journals of this number of agents.
fn look_time(agents: usize, is_near: bool) -> Duration {
    let agents = u32::try_from(agents).unwrap_or(u32::MAX);
    if is_near { Duration::ZERO } else { SERVED_TIME.saturating_mul(agents.saturating_sub(SERVED_QUICK)) }
}

/// Returns whether a file has this part of the output of a job.
fn is_there(dir: &Path, segment: &OutputSegment) -> bool {
    let Ok(path) = output_path(dir, &segment.file) else { return false };
    let end = segment.at.checked_add(segment.len);
    let has_it =
        |file: io::Result<fs::Metadata>| file.is_ok_and(|file| end.is_some_and(|end| end <= file.len()));
    // Some network file systems show the length of a file when it is opened.
    has_it(fs::symlink_metadata(&path)) || has_it(open_no_follow(&path).and_then(|file| file.metadata()))
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
