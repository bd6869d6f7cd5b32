//! The jobs of an agent: those of ranges that it claims, and of ranges that it takes over from lost agents.
//!
//! The thread that reads the input of other runs calls this. It waits for files of a shared directory, which
//! may be slow, so that no worker thread does. A range is claimed when a worker thread has no job left.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use minder_cluster::beat::{Beat, Watch};
use minder_cluster::claim::{Claim, Claims, Taken, range_len};
use minder_cluster::holder;
use minder_cluster::round::Round;
use minder_cluster::spool::{SpoolReader, Spooled};
use minder_record::agents::{self, AgentKey, JOURNAL};
use minder_record::codec;
use minder_record::event::{Claimed, JournalEvent, OsBytes, Sealed};
use minder_record::job_set::JobSet;
use minder_record::merge::{ClaimState, state_of_claim};
use minder_record::reader::attempt_finished;

use crate::agent::Agent;
use crate::input::{InvalidArgument, JobArgs};
use crate::patience::ERROR_MAX;

/// The time between two looks at what other processes do, for up to [`QUICK`] agents. More take longer.
const PAUSE: Duration = Duration::from_millis(200);
const QUICK: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The time between two looks at the coordinator, while an agent waits for input.
const READER_TIME: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct ClaimedJobs {
    agent: Arc<Agent>,
    round: Round,
    claims: Claims,
    spool: SpoolReader,
    slots: u64,
    range: Option<Range>,
    /// When the first range was claimed: how fast this agent is.
    begun: Option<Instant>,
    /// The agents whose ranges this one may have to take over.
    peers: BTreeMap<AgentKey, Watch>,
    /// The claims that this agent leaves alone: every job has a result, or it has held them itself.
    closed: BTreeSet<u64>,
    /// The claims of others that were read: a complete one does not change.
    known: BTreeMap<u64, Claim>,
    /// Since when this agent has nothing to do, and since when a claim has no complete content.
    idle_since: Option<Instant>,
    unwritten: Option<(u64, Instant)>,
    /// The coordinator that still reads input, and when this agent looked at it.
    reader: Option<Reader>,
}

/// A coordinator that reads input.
#[derive(Debug)]
struct Reader {
    /// Its number as a holder of the run.
    number: u64,
    watch: Watch,
    looked: Instant,
}

/// A range of which this agent runs the jobs.
#[derive(Debug)]
struct Range {
    next: u64,
    last: u64,
    /// The jobs that have a result of an earlier agent.
    done: JobSet,
}

/// What there is to take over.
enum Takeover {
    /// A range, which is the current one now.
    Taken,
    /// Nothing yet: other agents work.
    Waits,
    /// Nothing, and nothing will be.
    Nothing,
}

impl ClaimedJobs {
    /// Opens the round of an agent that runs `slots` jobs at once.
    ///
    /// # Errors
    /// The round or the spool cannot be read.
    pub(crate) fn open(agent: Arc<Agent>, slots: usize) -> Result<Self> {
        let round = Round::open(&agent.run, agent.attempt)?;
        Ok(Self {
            claims: Claims::open(round.dir()),
            spool: SpoolReader::open(&agent.run)?,
            round,
            slots: slots as u64,
            range: None,
            begun: None,
            peers: BTreeMap::new(),
            closed: BTreeSet::new(),
            known: BTreeMap::new(),
            idle_since: None,
            unwritten: None,
            reader: None,
            agent,
        })
    }

    /// Returns whether the next job comes from a range that is not claimed yet.
    pub(crate) fn must_claim(&self) -> bool {
        self.range.as_ref().is_none_or(|range| range.next > range.last)
    }

    /// Returns the next job, or `None` if no job is left that this agent could run. Waits for other agents,
    /// and for input that the coordinator still reads.
    ///
    /// # Errors
    /// The shared directory cannot be read or written for longer than [`ERROR_MAX`], or is damaged.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, JobArgs)>> {
        loop {
            if let Some(job) = self.range.as_mut().and_then(|range| range.next_job(&self.round)) {
                return Ok(Some((job, job_args(&mut self.spool, job)?)));
            }
            self.range = None;
            if !self.claim()? {
                return Ok(None);
            }
        }
    }

    /// Claims the next range. Returns `false` if no job is left, or if the agent ends.
    fn claim(&mut self) -> Result<bool> {
        // The next round may have begun: then no job of this one must start any more.
        if self.round.is_cancelled().unwrap_or(false) {
            return Ok(false);
        }
        let mut failing: Option<Instant> = None;
        loop {
            match self.try_claim() {
                Ok(Some(has_range)) => return Ok(has_range),
                Ok(None) => failing = None,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error.into()),
                Err(error) if failing.get_or_insert_with(Instant::now).elapsed() >= ERROR_MAX => {
                    return Err(error).context("cannot claim jobs");
                }
                Err(_) => (),
            }
            let pause = PAUSE.saturating_mul(self.agent.agents().div_ceil(QUICK).max(1));
            if !self.agent.pause(pause.min(PAUSE_MAX)) {
                return Ok(false);
            }
        }
    }

    /// Returns whether there is a range now, or `None` if that is not decided yet.
    fn try_claim(&mut self) -> io::Result<Option<bool>> {
        let count = self.spool.count()?;
        let elapsed = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let mut most = range_len(self.slots, self.agent.recorded(), elapsed);
        if count.has_ended {
            // Half of a fair share of what may be left: the last ranges are short.
            let agents = agents::keys(&self.agent.run)?.len();
            self.agent.note_agents(agents);
            let left = self.round.count(count.jobs).saturating_sub(self.claims.passed());
            most = most.min((left / (2 * agents.max(1) as u64)).max(self.slots));
        }
        let round = &self.round;
        let range = |after| round.range_after(after, most, count.jobs);
        let key = self.agent.key;
        let taken = match self.claims.take(key, range)? {
            Taken::Claim(claim) => Some(claim),
            Taken::Nothing if count.has_ended => {
                return Ok(match self.take_over()? {
                    Takeover::Taken => Some(true),
                    Takeover::Waits => None,
                    Takeover::Nothing => Some(false),
                });
            }
            Taken::Nothing if has_lost_reader(&mut self.reader, &self.agent, &self.spool)? => {
                return Ok(Some(false));
            }
            Taken::Nothing => None,
            Taken::Unwritten(number) => {
                let since = match self.unwritten {
                    Some((known, since)) if known == number => since,
                    _ => Instant::now(),
                };
                self.unwritten = Some((number, since));
                let is_lost = since.elapsed() >= self.agent.lost_after;
                if is_lost { self.claims.take_over_unwritten(number, key, range)? } else { None }
            }
        };
        let Some(claim) = taken else { return Ok(None) };
        self.begin(claim, None)?;
        Ok(Some(true))
    }

    /// Takes over a range of a lost agent.
    fn take_over(&mut self) -> io::Result<Takeover> {
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        let now = Instant::now();
        let mut waits = false;
        let mut known: BTreeMap<AgentKey, Peer> = BTreeMap::new();
        for (number, epoch) in self.claims.list()? {
            if self.closed.contains(&number) {
                continue;
            }
            let Some(claim) = self.read(number, epoch)? else {
                // Its agent is writing it, or was killed meanwhile.
                waits = true;
                continue;
            };
            let peer = match known.get(&claim.agent) {
                Some(peer) => *peer,
                None => *known.entry(claim.agent).or_insert(self.observe(claim.agent, now)?),
            };
            match peer {
                Peer::Works => waits = true,
                // Its beat may be older than this claim.
                Peer::HasNothing => {
                    let is_complete = self.is_complete(claim)?;
                    waits |= !is_complete;
                }
                Peer::Lost => {
                    if self.take_over_claim(claim)? {
                        return Ok(Takeover::Taken);
                    }
                }
            }
        }
        // Others notice what this agent does not wait for: the coordinator, or the next attempt at the run.
        let is_patient = since.elapsed() < self.agent.lost_after.saturating_mul(2);
        Ok(if waits && is_patient { Takeover::Waits } else { Takeover::Nothing })
    }

    /// Reads an epoch of a claim, once. `None` if its content is not complete.
    fn read(&mut self, number: u64, epoch: u32) -> io::Result<Option<Claim>> {
        if let Some(known) = self.known.get(&number).filter(|known| known.epoch == epoch) {
            return Ok(Some(*known));
        }
        let claim = self.claims.read(number, epoch)?;
        self.known.extend(claim.map(|claim| (number, claim)));
        Ok(claim)
    }

    /// Reads the beat and the end of the journal of another agent.
    fn observe(&mut self, key: AgentKey, now: Instant) -> io::Result<Peer> {
        let dir = key.dir(&self.agent.run);
        let watch = self.peers.entry(key).or_insert_with(|| Watch::new(now));
        watch.observe(Beat::read(&dir)?, now);
        Ok(match watch.beat() {
            _ if watch.is_lost(now, self.agent.lost_after) => Peer::Lost,
            _ if attempt_finished(&dir.join(JOURNAL)).is_some() => Peer::Lost,
            Some(beat) if beat.open == 0 => Peer::HasNothing,
            _ => Peer::Works,
        })
    }

    /// Returns whether each job of a claim has a result.
    fn is_complete(&mut self, claim: Claim) -> io::Result<bool> {
        let state = self.state_of(claim)?;
        let is_complete = Range::new(claim, state.done).next_job(&self.round).is_none();
        if is_complete {
            self.closed.insert(claim.number);
        }
        Ok(is_complete)
    }

    /// Takes over a claim, if jobs of it are left. Returns whether it is the current range now.
    fn take_over_claim(&mut self, old: Claim) -> io::Result<bool> {
        // Of a cancelled round, each agent leaves jobs.
        if self.is_complete(old)? || self.round.is_cancelled()? {
            return Ok(false);
        }
        let Some(claim) = self.claims.take_over(old, self.agent.key)? else { return Ok(false) };
        // Read again: what the old agent has written until now counts, and nothing later.
        let state = self.state_of(old)?;
        self.begin(claim, Some(state))?;
        Ok(true)
    }

    /// Reads what all agents until now have done of a claim.
    fn state_of(&self, claim: Claim) -> io::Result<ClaimState> {
        let mut older = Vec::new();
        for epoch in 1..=claim.epoch {
            older.extend(self.claims.read(claim.number, epoch)?.map(|claim| claim.agent));
        }
        state_of_claim(&self.agent.run, &older, claim.number, (claim.first, claim.last))
    }

    /// Records a claim, and makes it the current range. `state` is what older agents have done of it.
    fn begin(&mut self, claim: Claim, state: Option<ClaimState>) -> io::Result<()> {
        let Claim { number, epoch, first, last, .. } = claim;
        let mut lines = Vec::new();
        codec::encode(&JournalEvent::Claimed(Claimed { claim: number, epoch, first, last }), &mut lines);
        let mut done = JobSet::default();
        if let Some(state) = state {
            let sealed = Sealed { claim: number, epoch, journals: state.journals };
            codec::encode(&JournalEvent::Sealed(sealed), &mut lines);
            done = state.done;
        }
        // Nothing else would run the jobs of a claim that this agent has and does not know.
        self.agent.append(&lines)?;
        let range = Range::new(claim, done);
        let jobs = range.count(&self.round);
        self.begun.get_or_insert_with(Instant::now);
        self.closed.insert(number);
        self.agent.note_claimed(jobs);
        self.idle_since = None;
        self.range = Some(range);
        Ok(())
    }
}

/// Returns whether no coordinator reads the input any more, whose end was not reached. Looks once in a while.
fn has_lost_reader(known: &mut Option<Reader>, agent: &Agent, spool: &SpoolReader) -> io::Result<bool> {
    let now = Instant::now();
    if known.as_ref().is_some_and(|reader| now.duration_since(reader.looked) < READER_TIME) {
        return Ok(false);
    }
    let Some((number, has_ended)) = holder::newest(&agent.run)? else { return Ok(false) };
    let mut reader = match known.take() {
        Some(reader) if reader.number == number => Reader { looked: now, ..reader },
        _ => Reader { number, watch: Watch::new(now), looked: now },
    };
    reader.watch.observe(holder::beat_of(&agent.run, number)?, now);
    let is_lost = has_ended || reader.watch.is_lost(now, agent.lost_after);
    *known = Some(reader);
    // It may have read the end of the input just before its own end.
    Ok(is_lost && !spool.count()?.has_ended)
}

/// Reads the arguments of a job.
///
/// # Errors
/// The spool cannot be read, or is damaged.
pub(crate) fn job_args(spool: &mut SpoolReader, job: u64) -> io::Result<JobArgs> {
    Ok(match spool.job(job)? {
        Spooled::Arguments(arguments) => JobArgs::Columns(arguments.iter().map(OsBytes::to_os).collect()),
        Spooled::Unfit(why) => {
            let unknown =
                || io::Error::new(io::ErrorKind::InvalidData, "a newer minder has written the spool");
            JobArgs::Unfit(InvalidArgument::decode(&why).ok_or_else(unknown)?)
        }
    })
}

/// What is known of another agent.
#[derive(Clone, Copy)]
enum Peer {
    /// It runs jobs.
    Works,
    /// It works, and each job that it has taken has a result.
    HasNothing,
    /// It has ended, or was lost.
    Lost,
}

impl Range {
    fn new(claim: Claim, done: JobSet) -> Self {
        Self { next: claim.first, last: claim.last, done }
    }

    /// Takes the next job.
    fn next_job(&mut self, round: &Round) -> Option<u64> {
        while self.next <= self.last {
            let job = self.next;
            self.next += 1;
            if round.contains(job) && !self.done.contains(job) {
                return Some(job);
            }
        }
        None
    }

    fn count(&self, round: &Round) -> u64 {
        (self.next..=self.last).filter(|job| round.contains(*job) && !self.done.contains(*job)).count() as u64
    }
}
