//! The results of agents, as the coordinator takes them: each is a job of its run that needs no child.
//!
//! The thread that reads the input of other runs calls this. It reads the journals of all agents as they
//! grow, and hands on each result that counts once. From there on a result goes the way of every job: it is
//! counted, its output waits for its turn, is shown and recorded as shown.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::Stream;
use minder_cluster::beat::Beat;
use minder_cluster::round::Round;
use minder_cluster::spool::SpoolReader;
use minder_record::agents::{self, AgentKey, JOURNAL};
use minder_record::event::{JobFinished, JournalEvent, OsBytes, OutputSegment};
use minder_record::job_set::JobSet;
use minder_record::reader::tail_events;
use minder_record::writer::{JournalWriter, output_path};

use crate::config::AgentsConfig;
use crate::input::JobArgs;
use crate::local_agents::{LocalAgents, OtherAgents};
use crate::spooler::Spooler;
use crate::text::count;

/// The time between two looks at the journals.
const PAUSE: Duration = Duration::from_millis(20);
/// The time between two looks at how many jobs agents run, for the status line.
const COUNT_TIME: Duration = Duration::from_millis(500);

/// The result of a job that ran on an agent.
#[derive(Debug)]
pub(crate) struct RemoteResult {
    pub(crate) ended: JobFinished,
    /// Where its output is.
    pub(crate) output: Vec<RemoteOutput>,
    /// `true` if an earlier coordinator has shown it. Then it is counted only.
    pub(crate) is_shown: bool,
}

/// A part of the output of such a job.
#[derive(Debug)]
pub(crate) struct RemoteOutput {
    pub(crate) stream: Stream,
    pub(crate) path: PathBuf,
    pub(crate) range: Range<u64>,
    /// `true` if the file has output of other jobs, too.
    pub(crate) is_shared: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RemoteResults {
    run: PathBuf,
    /// The number of results, if it is known.
    pub(crate) total: Option<u64>,
    /// `true` if the number is needed before the first result is taken.
    pub(crate) needs_total: bool,
    /// The rounds whose results are taken, by the attempts that submitted them.
    rounds: BTreeMap<u32, Arc<Round>>,
    spool: SpoolReader,
    /// What fills the spool, unless an earlier attempt did.
    spooler: Option<Spooler>,
    agents: Arc<LocalAgents>,
    earlier: Earlier,
    /// How many jobs agents have claimed that have no result yet, and when that was read last.
    pub(crate) open: Arc<AtomicU64>,
    counted: Instant,
    /// `true` once all of the input is in the spool.
    pub(crate) is_spooled: Arc<AtomicBool>,
    journals: BTreeMap<AgentKey, Tail>,
    /// How much of a journal counts for a claim, by the lowest epoch that says so.
    seals: HashMap<(u64, AgentKey), (u32, u64)>,
    /// The jobs whose results were handed on.
    given: JobSet,
    ready: VecDeque<(u64, JobArgs, Box<RemoteResult>)>,
}

/// What earlier attempts have left.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    /// The jobs that this attempt takes. `None` for all jobs of the input.
    pub(crate) jobs: Option<JobSet>,
    /// The jobs of earlier rounds whose output is to be shown, by the round with their results.
    pub(crate) unshown: BTreeMap<u32, JobSet>,
    /// The agents of an earlier attempt that may still work.
    pub(crate) agents: Option<OtherAgents>,
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

/// What was read of a journal.
#[derive(Debug, Default)]
struct Tail {
    offset: u64,
    /// The attempt that submitted the round of the agent. 0 until it is known.
    attempt: u32,
    /// The agent has ended.
    is_over: bool,
    /// Its claims by their first job: the number and the last job.
    claims: BTreeMap<u64, (u64, u64)>,
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
            rounds,
            spooler,
            agents,
            earlier,
            open: Arc::default(),
            counted: Instant::now(),
            is_spooled: Arc::default(),
            journals: BTreeMap::new(),
            seals: HashMap::new(),
            given: JobSet::default(),
            ready: VecDeque::new(),
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
        if let Some(jobs) = &self.earlier.jobs {
            self.is_spooled.store(true, Ordering::Relaxed);
            return Ok(Some(jobs.len()));
        }
        self.spooler.as_ref().map_or(Ok(()), Spooler::publish)?;
        let spooled = self.spool.count()?;
        self.is_spooled.store(spooled.has_ended, Ordering::Relaxed);
        Ok(spooled.has_ended.then_some(spooled.jobs))
    }

    /// Returns the next result, or `None` if each job has one. Waits for it.
    ///
    /// # Errors
    /// The input cannot be read to its end, a journal cannot be read, or no agent works any more.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, JobArgs, Box<RemoteResult>)>> {
        let mut works = true;
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Ok(Some(next));
            }
            self.poll()?;
            if !self.ready.is_empty() {
                continue;
            }
            let total = self.known_total()?;
            let given = self.given.len();
            if total == Some(given) || !works && self.agents.is_ending() {
                return self.earlier.incomplete.map_or(Ok(None), |why| bail!(why));
            }
            if !works {
                self.begin_rest()?;
            }
            works = self.agents.wait(PAUSE)? | self.other_agents_work()?;
        }
    }

    /// Returns whether agents of an earlier attempt may still work.
    fn other_agents_work(&mut self) -> Result<bool> {
        let Earlier { agents, unwanted, hint, .. } = &mut self.earlier;
        let Some(agents) = agents else { return Ok(false) };
        let may_work = agents.may_work();
        if unwanted.is_some() && agents.agents.works() {
            bail!("agents still work on the run: wait for them first{hint}");
        }
        Ok(may_work)
    }

    /// Starts agents for the jobs that are left, when those of an earlier attempt have ended.
    ///
    /// # Errors
    /// They cannot be started, or this attempt starts none.
    fn begin_rest(&mut self) -> Result<()> {
        let total = self.known_total()?;
        let left = count(total.unwrap_or(0).saturating_sub(self.given.len()), "job");
        let hint = &self.earlier.hint;
        let Some(rest) = self.earlier.rest.take() else {
            let is_cancelled = |round: &Arc<Round>| round.is_cancelled().unwrap_or(false);
            if total.is_none() {
                bail!("all agents have ended before the input was read to its end{}", self.message());
            }
            if self.rounds.values().any(is_cancelled) {
                bail!("the run was cancelled, and {left} left{hint}");
            }
            bail!("all agents have ended, and {left} left{}{hint}", self.message());
        };
        let mut left = JobSet::default();
        for job in self.earlier.jobs.iter().flat_map(JobSet::jobs) {
            if !self.given.contains(job) {
                left.insert(job);
            }
        }
        // An agent that counts as lost may only have been stopped: nothing of its round is taken any more.
        self.agents.cancel();
        self.earlier.unwanted.take().map_or(Ok(()), |round| round.cancel())?;
        self.earlier.agents = None;
        let (attempt, round) = rest.begin(Some(left), &self.agents)?;
        self.rounds = BTreeMap::from([(attempt, round)]);
        Ok(())
    }

    /// Returns what an agent has written, for the end of a message.
    pub(crate) fn message(&self) -> String {
        let line = LocalAgents::message(self.rounds.values().cloned());
        line.map(|line| format!(": {line}")).unwrap_or_default()
    }

    /// Reads what the agents have written since the last call.
    fn poll(&mut self) -> Result<()> {
        let keys = agents::keys(&self.run).context("cannot read the agents of the run")?;
        if self.counted.elapsed() >= COUNT_TIME {
            self.counted = Instant::now();
            let beats = keys.iter().filter(|key| self.journals.get(key).is_some_and(|tail| !tail.is_over));
            let beats = beats.filter_map(|key| Beat::read(&key.dir(&self.run)).ok()?);
            self.open.store(beats.map(|beat| beat.open).sum(), Ordering::Relaxed);
        }
        for key in keys {
            let path = key.dir(&self.run).join(JOURNAL);
            let tail = self.journals.entry(key).or_default();
            let mut results = Vec::new();
            let seals = &mut self.seals;
            let read = tail_events(&path, tail.offset, &mut |end, event| match event {
                JournalEvent::AttemptStarted(started) => tail.attempt = started.attempt,
                JournalEvent::Claimed(claimed) => {
                    tail.claims.insert(claimed.first, (claimed.claim, claimed.last));
                }
                JournalEvent::Sealed(sealed) => {
                    for journal in sealed.journals {
                        let seal = (sealed.epoch, journal.bytes);
                        let known = seals.entry((sealed.claim, journal.agent)).or_insert(seal);
                        *known = (*known).min(seal);
                    }
                }
                JournalEvent::JobFinished(ended) => results.push((end, ended)),
                JournalEvent::AttemptFinished(_) => tail.is_over = true,
                _ => (),
            });
            match read {
                Ok((offset, _)) => tail.offset = offset,
                // The agent begins, or is another attempt's that was removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
                }
            }
            for (end, ended) in results {
                self.take(key, end, ended)?;
            }
        }
        Ok(())
    }

    /// Takes a result, if it counts and was not handed on before.
    fn take(&mut self, key: AgentKey, end: u64, ended: JobFinished) -> Result<()> {
        let Some(tail) = self.journals.get(&key) else { return Ok(()) };
        let job = ended.job;
        let claim = tail.claims.range(..=job).next_back().filter(|(_, (_, last))| job <= *last);
        let Some((_, &(claim, _))) = claim else { return Ok(()) };
        let is_sealed_out = self.seals.get(&(claim, key)).is_some_and(|(_, bytes)| end > *bytes);
        let Earlier { jobs, unshown, agents, shown, lost, .. } = &self.earlier;
        let is_others = agents.as_ref().is_some_and(|agents| agents.agents.attempt() == tail.attempt);
        let is_of_round = self.rounds.get(&tail.attempt).is_some_and(|round| round.contains(job));
        let is_unshown = || unshown.get(&tail.attempt).is_some_and(|unshown| unshown.contains(job));
        let is_wanted = if is_of_round {
            !is_others || !lost.contains(job)
        } else {
            !self.rounds.values().any(|round| round.contains(job)) && is_unshown()
        };
        let is_of_attempt = jobs.as_ref().is_none_or(|jobs| jobs.contains(job));
        let is_shown = is_others && shown.contains(job);
        if is_sealed_out || !is_wanted || !is_of_attempt {
            return Ok(());
        }
        // The file may have been removed while no coordinator worked. Then the job runs again.
        let dir = key.dir(&self.run);
        if is_others && !is_shown && !ended.kept.iter().all(|segment| is_there(&dir, segment)) {
            return Ok(());
        }
        if !self.given.insert(job) {
            return Ok(());
        }
        let columns: Vec<OsString> = match ended.args.as_slice() {
            // They are not recorded.
            [] => self.spool.arguments(job)?.iter().map(OsBytes::to_os).collect(),
            args => args.iter().map(OsBytes::to_os).collect(),
        };
        let place = |segment: &OutputSegment| -> Result<RemoteOutput> {
            let end = segment.at.checked_add(segment.len).context("an event of an agent is damaged")?;
            Ok(RemoteOutput {
                stream: if segment.stream == 2 { Stream::Stderr } else { Stream::Stdout },
                path: output_path(&dir, &segment.file)?,
                range: segment.at..end,
                is_shared: segment.file.starts_with("out-"),
            })
        };
        let kept = if is_shown { &[] } else { ended.kept.as_slice() };
        let output = kept.iter().map(place).collect::<Result<_>>()?;
        let result = Box::new(RemoteResult { ended, output, is_shown });
        self.ready.push_back((job, JobArgs::Columns(columns), result));
        Ok(())
    }
}

/// Returns whether a file has this part of the output of a job.
fn is_there(dir: &Path, segment: &OutputSegment) -> bool {
    let len = output_path(dir, &segment.file).and_then(std::fs::symlink_metadata).map(|file| file.len());
    len.is_ok_and(|len| segment.at.checked_add(segment.len).is_some_and(|end| end <= len))
}
