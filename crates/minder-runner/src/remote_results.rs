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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::Stream;
use minder_cluster::beat::Beat;
use minder_cluster::round::Round;
use minder_cluster::spool::SpoolReader;
use minder_record::agents::{self, AgentKey, JOURNAL};
use minder_record::event::{JobFinished, JournalEvent, OsBytes, OutputSegment};
use minder_record::job_set::JobSet;
use minder_record::joblog;
use minder_record::reader::tail_events;
use minder_record::writer::output_path;

use crate::input::JobArgs;
use crate::local_agents::LocalAgents;
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
    /// The machine, as a joblog names it.
    pub(crate) host: Arc<str>,
    /// Where its output is.
    pub(crate) output: Vec<RemoteOutput>,
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
    /// The attempt that submitted the round.
    attempt: u32,
    round: Arc<Round>,
    spool: SpoolReader,
    /// What fills the spool, unless an earlier attempt did.
    spooler: Option<Spooler>,
    agents: Arc<LocalAgents>,
    /// How many jobs agents have claimed that have no result yet, and when that was read last.
    pub(crate) open: Arc<AtomicU64>,
    counted: Instant,
    journals: BTreeMap<AgentKey, Tail>,
    /// How much of a journal counts for a claim, by the lowest epoch that says so.
    seals: HashMap<(u64, AgentKey), (u32, u64)>,
    /// The jobs of earlier rounds whose output is to be shown.
    unshown: JobSet,
    /// The jobs whose results were handed on.
    given: JobSet,
    /// How many of them belong to the round.
    finished: u64,
    ready: VecDeque<(u64, JobArgs, Box<RemoteResult>)>,
}

/// What was read of a journal.
#[derive(Debug, Default)]
struct Tail {
    offset: u64,
    /// The attempt that submitted the round of the agent. 0 until it is known.
    attempt: u32,
    /// The machine, as a joblog names it.
    host: Arc<str>,
    /// The agent has ended.
    is_over: bool,
    /// Its claims by their first job: the number and the last job.
    claims: BTreeMap<u64, (u64, u64)>,
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
            attempt,
            round,
            spooler,
            agents,
            open: Arc::default(),
            counted: Instant::now(),
            journals: BTreeMap::new(),
            seals: HashMap::new(),
            unshown,
            given: JobSet::default(),
            finished: 0,
            ready: VecDeque::new(),
        })
    }

    /// Reads the input to its end, and returns the number of results.
    ///
    /// # Errors
    /// The input cannot be read to its end.
    pub(crate) fn wait_for_total(&mut self) -> Result<u64> {
        loop {
            self.spooler.as_ref().map_or(Ok(()), Spooler::publish)?;
            let spooled = self.spool.count()?;
            if spooled.has_ended {
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
            if let Some(next) = self.ready.pop_front() {
                return Ok(Some(next));
            }
            self.poll()?;
            if !self.ready.is_empty() {
                continue;
            }
            self.spooler.as_ref().map_or(Ok(()), Spooler::publish)?;
            let spooled = self.spool.count()?;
            let left = self.round.count(spooled.jobs).saturating_sub(self.finished);
            if spooled.has_ended && left == 0 {
                return Ok(None);
            }
            if !works && self.agents.is_ending() {
                return Ok(None);
            }
            if !works {
                let why = self.agents.message().map(|line| format!(": {line}")).unwrap_or_default();
                bail!("all agents have ended, and {} left{why}", count(left, "job"));
            }
            works = self.agents.wait(PAUSE)?;
        }
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
                JournalEvent::AttemptStarted(started) => {
                    tail.attempt = started.attempt;
                    let node = started.node.filter(|node| *node != minder_os::machine::name());
                    tail.host = node.map_or(joblog::HERE.into(), Arc::from);
                }
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
        let is_wanted = if tail.attempt == self.attempt {
            self.round.contains(job)
        } else {
            self.unshown.contains(job) && !self.round.contains(job)
        };
        if is_sealed_out || !is_wanted || !self.given.insert(job) {
            return Ok(());
        }
        self.finished += u64::from(tail.attempt == self.attempt);
        let columns: Vec<OsString> = match ended.args.as_slice() {
            // They are not recorded.
            [] => self.spool.arguments(job)?.iter().map(OsBytes::to_os).collect(),
            args => args.iter().map(OsBytes::to_os).collect(),
        };
        let dir = key.dir(&self.run);
        let place = |segment: &OutputSegment| -> Result<RemoteOutput> {
            let end = segment.at.checked_add(segment.len).context("an event of an agent is damaged")?;
            Ok(RemoteOutput {
                stream: if segment.stream == 2 { Stream::Stderr } else { Stream::Stdout },
                path: output_path(&dir, &segment.file)?,
                range: segment.at..end,
                is_shared: segment.file.starts_with("out-"),
            })
        };
        let output = ended.kept.iter().map(place).collect::<Result<_>>()?;
        let host = Arc::clone(&tail.host);
        let result = Box::new(RemoteResult { ended, host, output });
        self.ready.push_back((job, JobArgs::Columns(columns), result));
        Ok(())
    }
}
