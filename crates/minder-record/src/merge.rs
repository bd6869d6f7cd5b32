//! Merges the journals of the agents of a run: which event of a job counts.
//!
//! A *round* is what one attempt has submitted. Its agents take *claims*: ranges of jobs. If an agent is
//! lost, another one makes the next *epoch* of each of its claims. Before it starts a job, it writes a
//! `sealed` event, which states how much of each older journal counts. An event behind that is
//! *superseded*. The result depends on the journals alone: not on the order in which they are read, nor on
//! any clock. `docs/design/cluster.md` has the reasons.
//!
//! Journals may grow meanwhile. First the claims and seals of all of them are read, then the events of jobs
//! up to the same place. So the seal of an agent is known before its results are visited. A result is visited
//! as one that counts once, even if a later seal leaves it out.
//!
//! The memory that this needs grows with agents and claims. It does not grow with jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::agents::{self, AgentKey, JOURNAL};
use crate::event::{
    AttemptFinished, AttemptHost, AttemptStarted, Claimed, JobFinished, JournalEvent, Sealed, SealedJournal,
};
use crate::job_set::JobSet;
use crate::journal::{Corruption, Position, read_part};

/// The beginnings of the lines that the first reading of a journal decodes. The others are events of jobs.
const RARE: [&[u8]; 6] = [
    b"{\"event\":\"begun\",",
    b"{\"event\":\"host\",",
    b"{\"event\":\"claimed\",",
    b"{\"event\":\"sealed\",",
    b"{\"event\":\"outputs\",",
    b"{\"event\":\"over\",",
];

/// The rounds of a run, by the attempt that submitted each.
///
/// ```
/// let mut rounds = minder_record::merge::Rounds::read("no/such/run".as_ref()).expect("it has no agents");
/// assert!(rounds.numbers().next().is_none());
/// // Later: what was appended since then.
/// rounds.read_more(&|_| 0);
/// rounds.rounds_mut().for_each(|(_, round)| _ = round.visit(|event| println!("{event:?}")));
/// ```
#[derive(Debug, Default)]
pub struct Rounds {
    by_attempt: BTreeMap<u32, Round>,
    /// The agents whose journal does not say to which round it belongs.
    pub unreadable: Vec<(AgentKey, io::Error)>,
}

/// The agents of one round.
#[derive(Debug, Default)]
pub struct Round {
    agents: Vec<Agent>,
    /// How much of the journals of older epochs counts, by claim and epoch.
    seals: BTreeMap<(u64, u32), Vec<(AgentKey, u64)>>,
    /// The jobs with a result that was visited and counts.
    counted: JobSet,
}

/// An agent, and what its journal says apart from jobs.
#[derive(Debug)]
pub struct Agent {
    /// Its name.
    pub key: AgentKey,
    /// The first event of its journal.
    pub started: AttemptStarted,
    /// The resources that it could use.
    pub host: Option<AttemptHost>,
    /// The last event of its journal. `None` if it still runs or was killed.
    pub finished: Option<AttemptFinished>,
    /// The damage of its journal. Known after [`Round::visit`].
    pub corruption: Corruption,
    /// The error that ended reading its journal early.
    pub error: Option<io::Error>,
    journal: PathBuf,
    /// The length of the file when it was read last.
    len: u64,
    /// The end of what was read for claims and seals, and of what [`Round::visit`] has visited.
    known: Position,
    visited: Position,
    /// `true` if a part of a line follows.
    has_rest: bool,
    /// What it holds, by the first job of the claim and the epoch.
    claims: BTreeMap<(u64, u32), OwnClaim>,
    /// A claim that it held before, and holds again once it has sealed it.
    again: Option<Claimed>,
}

/// A claim, as the journal of its agent has it.
#[derive(Debug)]
struct OwnClaim {
    number: u64,
    last: u64,
    /// The offset from which on events of its jobs belong to this epoch.
    start: u64,
    /// The part of the journal with these events. Known after [`Round::visit`].
    part: Range<u64>,
}

/// How many events of jobs count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The results that count.
    pub counted: u64,
    /// The results behind a seal.
    pub superseded: u64,
    /// The events of jobs that their agent had not claimed. They do not count.
    pub unclaimed: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.counted += other.counted;
        self.superseded += other.superseded;
        self.unclaimed += other.unclaimed;
    }
}

/// An event of a job, as [`Round::visit`] finds it.
#[derive(Debug)]
pub struct AgentEvent<'a> {
    /// The agent that wrote it.
    pub agent: AgentKey,
    /// The name of its machine.
    pub node: Option<&'a str>,
    /// The number of the claim that the job belongs to.
    pub claim: u64,
    /// `false` if the event is behind a seal.
    pub counts: bool,
    /// `true` if the job was to be started again.
    pub is_tried: bool,
    /// How the job ended.
    pub ended: JobFinished,
}

impl Rounds {
    /// Reads the claims and seals of all agents of a run. A run without agents has no rounds.
    ///
    /// # Errors
    ///
    /// If the directory of the agents exists and cannot be read. Errors of single journals are in
    /// [`unreadable`](Self::unreadable) and [`Agent::error`].
    pub fn read(run: &Path) -> io::Result<Self> {
        let mut rounds = Self::default();
        rounds.add_agents(run)?;
        Ok(rounds)
    }

    /// Does the same for agents that are not known yet.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn add_agents(&mut self, run: &Path) -> io::Result<()> {
        self.unreadable.clear();
        for key in agents::keys(run)? {
            if self.by_attempt.values().any(|round| round.index_of(key).is_ok()) {
                continue;
            }
            let mut seals = Vec::new();
            match Agent::open(key, run, &mut seals) {
                Ok(agent) => self.by_attempt.entry(agent.started.attempt).or_default().add(agent, seals),
                // It was killed before its first event, so it has done no job.
                Err(error) if is_unbegun(&error) => (),
                Err(error) => self.unreadable.push((key, error)),
            }
        }
        Ok(())
    }

    /// Reads what known agents of all rounds have appended. See [`Round::read_more`].
    pub fn read_more(&mut self, announced: &dyn Fn(AgentKey) -> u64) {
        self.by_attempt.values_mut().for_each(|round| round.read_more(announced));
    }

    /// Returns the numbers of the attempts that have submitted a round, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_attempt.keys().copied()
    }

    /// Returns the numbers of these attempts, and of those that have submitted a round.
    pub(crate) fn numbers_with(&self, attempts: &[u32]) -> BTreeSet<u32> {
        attempts.iter().copied().chain(self.numbers()).collect()
    }

    /// Returns the rounds with the numbers of their attempts, the latest first.
    pub fn rounds_mut(&mut self) -> impl Iterator<Item = (u32, &mut Round)> {
        self.by_attempt.iter_mut().rev().map(|(&attempt, round)| (attempt, round))
    }

    /// Returns the round of an attempt.
    pub fn round(&self, attempt: u32) -> Option<&Round> {
        self.by_attempt.get(&attempt)
    }

    /// Takes the round of an attempt out.
    pub fn take(&mut self, attempt: u32) -> Option<Round> {
        self.by_attempt.remove(&attempt)
    }
}

impl Agent {
    /// Reads what the journal of an agent says apart from jobs.
    fn open(key: AgentKey, run: &Path, seals: &mut Vec<Sealed>) -> io::Result<Self> {
        let mut agent = Self {
            key,
            started: AttemptStarted::default(),
            host: None,
            finished: None,
            corruption: Corruption::default(),
            error: None,
            journal: key.dir(run).join(JOURNAL),
            len: 0,
            known: Position::default(),
            visited: Position::default(),
            has_rest: false,
            claims: BTreeMap::new(),
            again: None,
        };
        let read = agent.read_claims(seals);
        if agent.started.attempt > 0 {
            agent.error = read.err();
            return Ok(agent);
        }
        read?;
        let damage = agent.known.corruption(agent.has_rest);
        // It was killed before its first event, which it waits for before it claims a job.
        let is_unbegun = damage.bad_lines == 0 && agent.claims.is_empty();
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "its first line cannot be read");
        Err(if is_unbegun { io::ErrorKind::UnexpectedEof.into() } else { wrong() })
    }

    fn read_more(&mut self, announced: &dyn Fn(AgentKey) -> u64, seals: &mut Vec<Sealed>) -> io::Result<()> {
        let len = fs::symlink_metadata(&self.journal)?.len();
        let is_same = len == self.len && announced(self.key) <= len;
        if is_same { Ok(()) } else { self.read_claims(seals) }
    }

    /// Reads what was appended to its journal since the last call, apart from jobs.
    fn read_claims(&mut self, seals: &mut Vec<Sealed>) -> io::Result<()> {
        let Self { started, host, finished, claims, again, .. } = self;
        let is_rare = |line: &[u8]| RARE.iter().any(|start| line.starts_with(start));
        let rest = self.known.read(&self.journal, u64::MAX, &is_rare, &mut |end, event| match event {
            JournalEvent::AttemptStarted(event) => *started = event,
            JournalEvent::Host(event) => *host = Some(event),
            JournalEvent::AttemptFinished(event) => *finished = Some(event),
            JournalEvent::Claimed(claimed) => {
                let held = claims.range((claimed.first, 0)..=(claimed.first, u32::MAX)).next();
                if held.is_some() {
                    *again = Some(claimed);
                } else {
                    hold(claims, &claimed, end);
                }
            }
            JournalEvent::Sealed(sealed) => {
                let is_it =
                    |claimed: &Claimed| (claimed.claim, claimed.epoch) == (sealed.claim, sealed.epoch);
                if let Some(claimed) = again.take_if(|claimed| is_it(claimed)) {
                    hold(claims, &claimed, end);
                }
                seals.push(sealed);
            }
            _ => (),
        })?;
        self.has_rest = rest > 0;
        self.len = self.known.end + rest;
        Ok(())
    }

    /// Returns the first job of the claim with this job, and the epochs at which this agent holds it.
    fn holds_of(&self, job: u64) -> impl Iterator<Item = (u64, u32, &OwnClaim)> {
        let first = self.claims.range(..=(job, u32::MAX)).next_back().map_or(0, |((first, _), _)| *first);
        let holds = self.claims.range((first, 0)..=(first, u32::MAX));
        holds.filter(move |(_, own)| job <= own.last).map(|(&(first, epoch), own)| (first, epoch, own))
    }
}

/// Adds a claim to those of an agent. `start` is the offset from which on its events belong to it.
fn hold(claims: &mut BTreeMap<(u64, u32), OwnClaim>, claimed: &Claimed, start: u64) {
    let Claimed { claim: number, epoch, first, last } = *claimed;
    if first <= last {
        // A journal that became shorter is read again.
        claims.entry((first, epoch)).or_insert(OwnClaim { number, last, start, part: 0..0 });
    }
}

/// Returns whether reading a journal failed because it has no event yet.
fn is_unbegun(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
}

/// Which jobs of a claim have results, and how much of the journals was read to know that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimState {
    /// The jobs with a result that counts.
    pub done: JobSet,
    /// What the agent that takes the claim over has to write in its `sealed` event before it starts a job.
    pub journals: Vec<SealedJournal>,
}

/// Reads what the agents of older epochs have done of the jobs from `first` to `last` of a claim.
///
/// ```
/// let state = minder_record::merge::state_of_claim("no/such/run".as_ref(), &[], 1, (1, 10));
/// assert!(state.expect("no journals are no error").done.is_empty());
/// ```
///
/// # Errors
///
/// A journal cannot be read. (An agent that has written no event yet has done no job.) Then its claims cannot
/// be taken over: what it did might count.
pub fn state_of_claim(
    run: &Path,
    older: &[AgentKey],
    claim: u64,
    (first, last): (u64, u64),
) -> io::Result<ClaimState> {
    let mut round = Round::default();
    let mut done = JobSet::default();
    let mut journals = Vec::new();
    for (index, &key) in older.iter().enumerate() {
        if older[..index].contains(&key) {
            continue;
        }
        let mut seals = Vec::new();
        match Agent::open(key, run, &mut seals) {
            Ok(agent) => round.add(agent, seals),
            Err(error) if is_unbegun(&error) => {
                journals.push(SealedJournal { agent: key, bytes: 0 });
            }
            Err(error) => return Err(error),
        }
    }
    round.visit(|event| {
        if event.claim == claim
            && event.counts
            && !event.is_tried
            && (first..=last).contains(&event.ended.job)
        {
            done.insert(event.ended.job);
        }
    });
    for agent in round.agents {
        if let Some(error) = agent.error {
            return Err(error);
        }
        journals.push(SealedJournal { agent: agent.key, bytes: agent.visited.end });
    }
    Ok(ClaimState { done, journals })
}

impl Round {
    fn index_of(&self, key: AgentKey) -> Result<usize, usize> {
        self.agents.binary_search_by_key(&key, |agent| agent.key)
    }

    fn add(&mut self, agent: Agent, seals: Vec<Sealed>) {
        if let Err(index) = self.index_of(agent.key) {
            self.agents.insert(index, agent);
        }
        self.add_seals(seals);
    }

    fn add_seals(&mut self, seals: Vec<Sealed>) {
        for Sealed { claim, epoch, journals } in seals {
            let limits = || journals.iter().map(|journal| (journal.agent, journal.bytes)).collect();
            // The first one counts: the agent has started jobs after it.
            self.seals.entry((claim, epoch)).or_insert_with(limits);
        }
    }

    /// Reads the claims and seals that known agents have appended. A journal is opened if its length has
    /// changed. On some network file systems that shows late: `announced` returns how long the journal of an
    /// agent is at least.
    pub fn read_more(&mut self, announced: &dyn Fn(AgentKey) -> u64) {
        let mut seals = Vec::new();
        for agent in &mut self.agents {
            agent.error = None;
            // An agent that has recorded its end writes nothing more.
            if agent.finished.is_none() {
                agent.error = agent.read_more(announced, &mut seals).err();
            }
        }
        self.add_seals(seals);
    }

    /// Returns the agents, in the order of their keys.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Returns an agent.
    pub fn agent(&self, key: AgentKey) -> Option<&Agent> {
        self.index_of(key).ok().map(|index| &self.agents[index])
    }

    /// Returns the number of claims, each counted for each agent that holds it.
    pub fn claims(&self) -> u64 {
        self.agents.iter().map(|agent| agent.claims.len() as u64).sum()
    }

    /// Returns the agents, in the order of their keys.
    pub fn into_agents(self) -> Vec<Agent> {
        self.agents
    }

    /// Visits the events of jobs that were not visited yet, agent by agent. In a round each job has at most
    /// one result that counts. Afterwards [`Agent::corruption`] and [`Agent::error`] are complete.
    pub fn visit(&mut self, mut visit: impl FnMut(AgentEvent<'_>)) -> Counts {
        let mut counts = Counts::default();
        for index in 0..self.agents.len() {
            counts.add(self.visit_agent(index, u64::MAX, &mut visit));
        }
        counts
    }

    /// Visits some of these events: those in about `most` bytes. Returns whether others are left.
    pub fn visit_some(&mut self, most: u64, visit: &mut dyn FnMut(AgentEvent<'_>)) -> bool {
        let mut left = most;
        for index in 0..self.agents.len() {
            let before = self.agents[index].visited.end;
            self.visit_agent(index, before.saturating_add(left), visit);
            let Agent { known, visited, error, .. } = &self.agents[index];
            if error.is_some() {
                continue;
            }
            if visited.end == before && known.end > before {
                // The next line is longer.
                self.visit_agent(index, u64::MAX, visit);
                return true;
            }
            if known.end > visited.end {
                return true;
            }
            left = left.saturating_sub(visited.end.saturating_sub(before));
        }
        false
    }

    fn visit_agent(&mut self, index: usize, until: u64, visit: &mut dyn FnMut(AgentEvent<'_>)) -> Counts {
        let Self { agents, seals, counted } = self;
        let agent = &mut agents[index];
        let mut counts = Counts::default();
        if agent.visited.end == agent.known.end {
            agent.corruption = agent.visited.corruption(agent.has_rest);
            return counts;
        }
        let Agent { key, claims, .. } = agent;
        let node = agent.started.node.as_deref();
        let mut start = agent.visited.end;
        let until = agent.known.end.min(until);
        let read = agent.visited.read(&agent.journal, until, &|_| true, &mut |end, event| {
            let start = std::mem::replace(&mut start, end);
            let (is_tried, ended) = match event {
                JournalEvent::JobFinished(ended) => (false, ended),
                JournalEvent::JobTried(ended) => (true, ended),
                _ => return,
            };
            let job = ended.job;
            let first = claims.range(..=(job, u32::MAX)).next_back().map_or(0, |((first, _), _)| *first);
            let holds = claims.range_mut((first, 0)..=(first, u32::MAX)).rev();
            let mut holds = holds.filter(|(_, own)| job <= own.last && own.start < end);
            let Some((&(_, epoch), own)) = holds.next() else {
                counts.unclaimed += 1;
                return;
            };
            own.part.start = if own.part.is_empty() { start } else { own.part.start };
            own.part.end = end;
            let is_within = limit(seals, own.number, epoch, *key).is_none_or(|limit| end <= limit);
            // The second is one of a job that its agent has run twice.
            let is_counted = is_within && if is_tried { !counted.contains(job) } else { counted.insert(job) };
            if !is_tried {
                *(if is_counted { &mut counts.counted } else { &mut counts.superseded }) += 1;
            }
            visit(AgentEvent { agent: *key, node, claim: own.number, counts: is_counted, is_tried, ended });
        });
        agent.corruption = agent.visited.corruption(agent.has_rest);
        if let Err(error) = read {
            agent.error = Some(error);
        }
        counts
    }

    /// Returns whether a result of a job was visited that counts.
    pub fn has_result(&self, job: u64) -> bool {
        self.counted.contains(job)
    }

    /// Returns the first and the last job of the claim with this job, if there is one.
    pub fn claim_around(&self, job: u64) -> Option<(u64, u64)> {
        let mut holds = self.agents.iter().flat_map(|agent| agent.holds_of(job));
        holds.next().map(|(first, _, own)| (first, own.last))
    }

    /// Returns the results that count of the claim with this job, by job, and the agent of each. Reads the
    /// parts of the journals with this claim only, so it is complete after [`visit`](Self::visit).
    ///
    /// # Errors
    ///
    /// If a journal cannot be read.
    pub fn results_around(&self, job: u64) -> io::Result<BTreeMap<u64, (AgentKey, JobFinished)>> {
        let mut results = BTreeMap::new();
        for agent in &self.agents {
            for (first, epoch, own) in agent.holds_of(job) {
                let limit = limit(&self.seals, own.number, epoch, agent.key).unwrap_or(u64::MAX);
                let part = own.part.start..own.part.end.min(limit);
                read_part(&agent.journal, part, &mut |_, event| match event {
                    JournalEvent::JobFinished(ended) if (first..=own.last).contains(&ended.job) => {
                        results.entry(ended.job).or_insert((agent.key, ended));
                    }
                    _ => (),
                })?;
            }
        }
        Ok(results)
    }
}

/// Returns how many bytes of the journal of an agent count for a claim that it made at this epoch. `None` if
/// all do.
fn limit(
    seals: &BTreeMap<(u64, u32), Vec<(AgentKey, u64)>>,
    claim: u64,
    epoch: u32,
    agent: AgentKey,
) -> Option<u64> {
    // An epoch without seals has run no job.
    let later = (claim, epoch.checked_add(1)?)..=(claim, u32::MAX);
    let (_, limits) = seals.range(later).next()?;
    Some(limits.iter().find(|limit| limit.0 == agent).map_or(0, |limit| limit.1))
}
