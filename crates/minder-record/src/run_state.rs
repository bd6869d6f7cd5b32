//! The state of a run after all its attempts: which jobs to run, and which output to show, when the
//! run is resumed.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::agents::AgentKey;
use crate::error::{Context, Result};
use crate::event::{AttemptFinished, JobFinished, JournalEvent, OsBytes, OutputSegment};
use crate::job_set::JobSet;
use crate::merge::{AgentEvent, Rounds};
use crate::reader::{Corruption, read_journal, update_unshown};
use crate::store;

/// The state of a run.
#[derive(Debug, Default)]
pub struct RunState {
    /// Jobs that finished, successfully or not.
    pub done: JobSet,
    /// Those of them that failed when they last finished.
    pub failed: JobSet,
    /// Output that was saved and not shown yet, by job.
    pub unshown: BTreeMap<u64, Vec<OutputSegment>>,
    /// The arguments of the jobs with such output. Tags may need them.
    pub unshown_args: BTreeMap<u64, Vec<OsBytes>>,
    /// The directories with the output of attempts, by attempt, if they are not the directory of
    /// the run.
    pub outputs: BTreeMap<u32, OsBytes>,
    /// The jobs without a result whose last try failed.
    pub tried: JobSet,
    /// Jobs whose output agents have saved, and which was not shown yet.
    pub unshown_by_agents: JobSet,
    /// How many claims the journals of agents have, by round.
    pub claims: Vec<(u32, u64)>,
    /// The highest number of a finished job.
    pub last_job: u64,
    /// The end of the last attempt, unless it was killed after it had recorded a job.
    pub finished: Option<AttemptFinished>,
    /// Checksums of the arguments, if [`of_run`](Self::of_run) was asked for them.
    args: Option<Checksums>,
    blocks: Blocks,
}

/// A journal of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalName {
    /// That of an attempt.
    Attempt(u32),
    /// That of an agent.
    Agent(AgentKey),
}

/// The text for messages, such as `attempt 2`.
impl fmt::Display for JournalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attempt(number) => write!(f, "attempt {number}"),
            Self::Agent(key) => write!(f, "agent {key}"),
        }
    }
}

/// The arguments of a job that are compared when a run is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedArgs {
    /// None.
    None,
    /// All.
    All,
    /// All except the first, which is the name of a temporary file of minder.
    AfterFirst,
}

impl RunState {
    /// Reads all attempts of a run in the order of their numbers, which does not depend on the
    /// clock, and before each the agents of its round. Also returns the corruption of each damaged journal.
    ///
    /// The checksums of `compared`, for [`differs`](Self::differs), take 4 bytes for each job. The
    /// blocks of the input, for [`block`](Self::block), take 20.
    ///
    /// # Errors
    ///
    /// If the journal of an attempt or an agent cannot be read at all. Without it, its jobs would run again.
    pub fn of_run(dir: &Path, compared: ComparedArgs) -> Result<(Self, Vec<(JournalName, Corruption)>)> {
        let checksums = |first| Some(Checksums { by_job: Vec::new(), first });
        let args = match compared {
            ComparedArgs::None => None,
            ComparedArgs::All => checksums(0),
            ComparedArgs::AfterFirst => checksums(1),
        };
        let mut state = Self { args, ..Self::default() };
        let mut damaged = Vec::new();
        let unreadable = |path: &Path| format!("cannot read the record in `{}`", path.display());
        let mut rounds = Rounds::read(dir).context(|| unreadable(dir))?;
        if let Some((key, error)) = rounds.unreadable.pop() {
            return Err(error).context(|| unreadable(&key.dir(dir)));
        }
        let attempts = store::attempts(dir).context(|| unreadable(dir))?;
        for number in rounds.numbers_with(&attempts) {
            if let Some(mut round) = rounds.take(number) {
                round.visit(|event| state.apply_of_agent(&event));
                state.claims.push((number, round.claims()));
                for agent in round.into_agents() {
                    if let Some(error) = agent.error {
                        return Err(error).context(|| unreadable(&agent.key.dir(dir)));
                    }
                    damaged.extend(
                        Some((JournalName::Agent(agent.key), agent.corruption)).filter(|of| of.1.any()),
                    );
                }
            }
            if attempts.binary_search(&number).is_ok() {
                let path = dir.join(store::attempt_name(number));
                let damage =
                    read_journal(&path, |event| state.apply(&event)).context(|| unreadable(&path))?;
                damaged.extend(Some((JournalName::Attempt(number), damage)).filter(|of| of.1.any()));
            }
        }
        Ok((state, damaged))
    }

    /// Applies an event from the journal of an agent.
    fn apply_of_agent(&mut self, event: &AgentEvent<'_>) {
        let ended = &event.ended;
        match (event.counts, event.is_tried) {
            (false, _) => (),
            (true, true) => self.apply_tried(ended.job),
            (true, false) => {
                self.finished = None;
                self.set_finished(ended.job, ended.succeeded());
                if ended.kept.is_empty() {
                    self.unshown_by_agents.remove(ended.job);
                } else {
                    self.unshown_by_agents.insert(ended.job);
                }
                // Output of an earlier round is replaced.
                self.unshown.remove(&ended.job);
                self.unshown_args.remove(&ended.job);
                if let Some(args) = self.args.as_mut() {
                    args.put(ended.job, &ended.args);
                }
            }
        }
    }

    fn apply_tried(&mut self, job: u64) {
        if !self.done.contains(job) {
            self.tried.insert(job);
        }
    }

    /// Applies an event that was written later than all events before.
    pub fn apply(&mut self, event: &JournalEvent) {
        match event {
            JournalEvent::AttemptStarted(_)
            | JournalEvent::Host(_)
            | JournalEvent::Claimed(_)
            | JournalEvent::Sealed(_) => (),
            JournalEvent::AttemptFinished(finished) => self.finished = Some(finished.clone()),
            JournalEvent::OutputDir(outputs) => {
                self.outputs.insert(outputs.attempt, outputs.dir.clone());
            }
            JournalEvent::OutputShown(shown) => {
                for job in &shown.jobs {
                    self.unshown.remove(job);
                    self.unshown_args.remove(job);
                    self.unshown_by_agents.remove(*job);
                }
            }
            JournalEvent::OutputLost(lost) => {
                self.finished = None;
                for job in &lost.jobs {
                    self.forget(*job);
                }
            }
            JournalEvent::JobFinished(ended) => self.apply_finished(ended),
            JournalEvent::JobTried(tried) => self.apply_tried(tried.job),
        }
    }

    /// Returns whether the last attempt ended with no job left to run and no output left to show.
    pub fn is_complete(&self) -> bool {
        // A gap is a job whose event was lost, or whose journal was removed.
        self.finished.as_ref().is_some_and(|finished| finished.why.is_none())
            && self.done.len() == self.last_job
            && self.unshown.is_empty()
            && self.unshown_by_agents.is_empty()
    }

    /// Removes a job whose output is lost, as if it had never finished.
    pub fn forget(&mut self, job: u64) {
        self.done.remove(job);
        self.failed.remove(job);
        self.unshown.remove(&job);
        self.unshown_args.remove(&job);
        self.unshown_by_agents.remove(job);
    }

    fn apply_finished(&mut self, ended: &JobFinished) {
        self.finished = None;
        self.set_finished(ended.job, ended.succeeded());
        self.unshown_by_agents.remove(ended.job);
        update_unshown(&mut self.unshown, ended);
        if self.unshown.contains_key(&ended.job) {
            self.unshown_args.insert(ended.job, ended.args.clone());
        } else {
            self.unshown_args.remove(&ended.job);
        }
        if let Some(args) = self.args.as_mut() {
            args.put(ended.job, &ended.args);
        }
        self.blocks.put(ended);
    }

    /// Records that a job finished, later than all events before.
    pub(crate) fn set_finished(&mut self, job: u64, succeeded: bool) {
        self.done.insert(job);
        self.tried.remove(job);
        self.last_job = self.last_job.max(job);
        if succeeded {
            self.failed.remove(job);
        } else {
            self.failed.insert(job);
        }
    }

    /// Returns whether the journal has other arguments for this job. Then the input was changed.
    pub fn differs(&self, job: u64, args: &[OsBytes]) -> bool {
        self.args.as_ref().is_some_and(|known| known.differs(job, args))
    }

    /// Returns which bytes of the input the journal has for this job, if it read a block.
    pub fn block(&self, job: u64) -> Option<Range<u64>> {
        self.blocks.get(job)
    }

    /// Returns the checksum that the journal has of the block of this job.
    pub fn block_checksum(&self, job: u64) -> Option<u32> {
        self.blocks.checksum(job)
    }
}

/// A checksum of the arguments of each job, by its number. 0 means unknown.
#[derive(Debug)]
struct Checksums {
    by_job: Vec<u32>,
    /// The first argument that counts.
    first: usize,
}

impl Checksums {
    /// Jobs with this number or a higher one are not checked. Limits the memory to 64 MiB.
    const JOBS_MAX: u64 = 1 << 24;

    fn put(&mut self, job: u64, args: &[OsBytes]) {
        let args = self.compared(args);
        if args.is_empty() || job >= Self::JOBS_MAX {
            return;
        }
        let index = usize::try_from(job).unwrap_or(usize::MAX);
        if self.by_job.len() <= index {
            self.by_job.resize(index + 1, 0);
        }
        self.by_job[index] = checksum(args);
    }

    fn differs(&self, job: u64, args: &[OsBytes]) -> bool {
        let known = usize::try_from(job).ok().and_then(|index| self.by_job.get(index)).copied().unwrap_or(0);
        known != 0 && known != checksum(self.compared(args))
    }

    fn compared<'a>(&self, args: &'a [OsBytes]) -> &'a [OsBytes] {
        args.get(self.first..).unwrap_or_default()
    }
}

/// The block of the input of each job, by its number.
#[derive(Debug, Default)]
struct Blocks {
    /// Offset and length. A length of 0 means unknown, because no job has an empty block.
    ranges: Vec<(u64, u64)>,
    /// Checksums. 0 means unknown. Empty if no block has one.
    checksums: Vec<u32>,
}

impl Blocks {
    /// Jobs with this number or a higher one are not checked. Limits the memory to 80 MiB.
    const JOBS_MAX: u64 = 1 << 22;

    fn put(&mut self, ended: &JobFinished) {
        let Ok(index) = usize::try_from(ended.job) else { return };
        if self.ranges.len() <= index {
            if ended.block_len == 0 || ended.job >= Self::JOBS_MAX {
                return;
            }
            self.ranges.resize(index + 1, (0, 0));
        }
        let checksum = ended.block_crc.unwrap_or(0);
        if self.checksums.len() <= index && checksum != 0 {
            self.checksums.resize(index + 1, 0);
        }
        // The last event of a job is the valid one, even if it is of an old version without blocks.
        self.ranges[index] = (ended.block_at, ended.block_len);
        if let Some(known) = self.checksums.get_mut(index) {
            *known = checksum;
        }
    }

    fn get(&self, job: u64) -> Option<Range<u64>> {
        let (at, len) = *self.ranges.get(usize::try_from(job).ok()?)?;
        (len > 0).then(|| at..at.saturating_add(len))
    }

    fn checksum(&self, job: u64) -> Option<u32> {
        let checksum = *self.checksums.get(usize::try_from(job).ok()?)?;
        (checksum != 0).then_some(checksum)
    }
}

/// Returns a checksum of all columns, each followed by a NUL byte, which no column contains. It is
/// never 0.
fn checksum(args: &[OsBytes]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for arg in args {
        hasher.update(&arg.0);
        hasher.update(&[0]);
    }
    hasher.finalize().max(1)
}
