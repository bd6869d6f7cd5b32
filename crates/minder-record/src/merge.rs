//! Merges the journals of the agents of a run: which event of a job counts.
//!
//! A *round* is what one attempt has submitted. Its agents take *claims*: ranges of jobs. If an agent is
//! lost, another one makes the next *epoch* of each of its claims. Before it starts a job, it writes a
//! `sealed` event, which states how much of each older journal counts. An event behind that is
//! *superseded*. The result depends on the journals alone: not on the order in which they are read, nor on
//! any clock. `docs/design/cluster.md` has the reasons.
//!
//! The memory that this needs grows with agents and claims. It does not grow with jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::agents::{self, AgentKey, JOURNAL};
use crate::event::{
    AttemptFinished, AttemptHost, AttemptStarted, Claimed, JobFinished, JournalEvent, Sealed, SealedJournal,
};
use crate::job_set::JobSet;
use crate::journal::{Corruption, read_events, read_part};

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
/// let rounds = minder_record::merge::Rounds::read("no/such/run".as_ref()).expect("no agents are no error");
/// assert!(rounds.numbers().next().is_none());
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
    /// The epochs of each claim, by its number, in ascending order.
    claims: HashMap<u64, Vec<Epoch>>,
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
    /// The length of the complete lines that [`Round::visit`] has read.
    bytes: u64,
    /// Its claims, by their first job.
    claims: BTreeMap<u64, OwnClaim>,
}

/// A claim, as the journal of its agent has it.
#[derive(Debug)]
struct OwnClaim {
    number: u64,
    epoch: u32,
    last: u64,
    /// The part of the journal with the events of its jobs. Known after [`Round::visit`].
    part: Range<u64>,
}

/// One agent's hold on a claim.
#[derive(Debug)]
struct Epoch {
    epoch: u32,
    agent: AgentKey,
    /// How much of the journals of older epochs counts, if the agent has written that.
    seals: Option<Vec<(AgentKey, u64)>>,
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
        for key in agents::keys(run)? {
            let journal = key.dir(run).join(JOURNAL);
            match Agent::read(key, journal) {
                Ok((agent, found)) => {
                    rounds.by_attempt.entry(agent.started.attempt).or_default().add(agent, found);
                }
                // It was killed before its first event, so it has done no job.
                Err(error) if is_unbegun(&error) => (),
                Err(error) => rounds.unreadable.push((key, error)),
            }
        }
        rounds.by_attempt.values_mut().for_each(Round::sort);
        Ok(rounds)
    }

    /// Returns the numbers of the attempts that have submitted a round, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_attempt.keys().copied()
    }

    /// Returns the numbers of these attempts, and of those that have submitted a round.
    pub(crate) fn numbers_with(&self, attempts: &[u32]) -> BTreeSet<u32> {
        attempts.iter().copied().chain(self.numbers()).collect()
    }

    /// Takes the round of an attempt out.
    pub fn take(&mut self, attempt: u32) -> Option<Round> {
        self.by_attempt.remove(&attempt)
    }
}

/// What the first reading of a journal finds.
type Found = (Vec<Claimed>, Vec<Sealed>);

impl Agent {
    fn read(key: AgentKey, journal: PathBuf) -> io::Result<(Self, Found)> {
        let mut started = None;
        let mut host = None;
        let mut finished = None;
        let mut claimed = Vec::new();
        let mut sealed = Vec::new();
        let is_rare = |line: &[u8]| RARE.iter().any(|start| line.starts_with(start));
        let read = read_events(&journal, &is_rare, &mut |_, event| match event {
            JournalEvent::AttemptStarted(event) => started = Some(event),
            JournalEvent::Host(event) => host = Some(event),
            JournalEvent::AttemptFinished(event) => finished = Some(event),
            JournalEvent::Claimed(event) => claimed.push(event),
            JournalEvent::Sealed(event) => sealed.push(event),
            _ => (),
        });
        let error = match (&started, read) {
            (Some(_), read) => read.err(),
            (None, Err(error)) => return Err(error),
            // It was killed before its first event, which it waits for before it claims a job.
            (None, Ok(damage)) if damage.bad_lines == 0 && claimed.is_empty() => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (None, Ok(_)) => None,
        };
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "its first line cannot be read");
        let started = started.ok_or_else(wrong)?;
        let mut claims = BTreeMap::new();
        for Claimed { claim, epoch, first, last } in &claimed {
            let own = OwnClaim { number: *claim, epoch: *epoch, last: *last, part: 0..0 };
            if first <= last {
                claims.insert(*first, own);
            }
        }
        let corruption = Corruption::default();
        let agent = Self { key, started, host, finished, corruption, error, journal, bytes: 0, claims };
        Ok((agent, (claimed, sealed)))
    }

    /// Returns the first job of the claim with this job.
    fn claim_of(&self, job: u64) -> Option<u64> {
        let (&first, claim) = self.claims.range(..=job).next_back()?;
        (job <= claim.last).then_some(first)
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
    for &key in older {
        match Agent::read(key, key.dir(run).join(JOURNAL)) {
            Ok((agent, found)) => round.add(agent, found),
            Err(error) if is_unbegun(&error) => {
                journals.push(SealedJournal { agent: key, bytes: 0 });
            }
            Err(error) => return Err(error),
        }
    }
    round.sort();
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
        journals.push(SealedJournal { agent: agent.key, bytes: agent.bytes });
    }
    Ok(ClaimState { done, journals })
}

impl Round {
    fn sort(&mut self) {
        self.claims.values_mut().for_each(|epochs| epochs.sort_by_key(|epoch| epoch.epoch));
    }

    fn add(&mut self, agent: Agent, (claimed, sealed): Found) {
        for Claimed { claim, epoch, .. } in claimed {
            self.epoch(claim, epoch, agent.key);
        }
        for Sealed { claim, epoch, journals } in sealed {
            let seals = journals.into_iter().map(|journal| (journal.agent, journal.bytes)).collect();
            // The first one counts: the agent has started jobs after it.
            self.epoch(claim, epoch, agent.key).seals.get_or_insert(seals);
        }
        self.agents.push(agent);
    }

    fn epoch(&mut self, claim: u64, epoch: u32, agent: AgentKey) -> &mut Epoch {
        let epochs = self.claims.entry(claim).or_default();
        let known = epochs.iter().position(|known| known.epoch == epoch && known.agent == agent);
        let index = known.unwrap_or_else(|| {
            epochs.push(Epoch { epoch, agent, seals: None });
            epochs.len() - 1
        });
        &mut epochs[index]
    }

    /// Returns the agents, in the order of their keys.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Returns the agents, in the order of their keys.
    pub fn into_agents(self) -> Vec<Agent> {
        self.agents
    }

    /// Returns the number of claims.
    pub fn claims(&self) -> usize {
        self.claims.len()
    }

    /// Returns how many bytes of the journal of an agent count for a claim that it made at this epoch.
    /// `None` if all do.
    fn limit(&self, claim: u64, epoch: u32, agent: AgentKey) -> Option<u64> {
        let later = self.claims.get(&claim)?.iter().filter(|other| other.epoch > epoch);
        // An epoch without seals has run no job.
        let seals = later.filter_map(|other| other.seals.as_ref()).next()?;
        Some(seals.iter().find(|seal| seal.0 == agent).map_or(0, |seal| seal.1))
    }

    /// Visits all events of jobs, agent by agent. In a round each job has at most one result that counts.
    /// Afterwards [`Agent::corruption`] and [`Agent::error`] are complete.
    pub fn visit(&mut self, mut visit: impl FnMut(AgentEvent<'_>)) -> Counts {
        let mut counts = Counts::default();
        for index in 0..self.agents.len() {
            counts.add(self.visit_agent(index, &mut visit));
        }
        counts
    }

    fn visit_agent(&mut self, index: usize, visit: &mut dyn FnMut(AgentEvent<'_>)) -> Counts {
        let agent = &self.agents[index];
        let key = agent.key;
        let limits: HashMap<u64, Option<u64>> = agent
            .claims
            .iter()
            .map(|(&first, own)| (first, self.limit(own.number, own.epoch, key)))
            .collect();
        let mut counts = Counts::default();
        let mut parts: HashMap<u64, Range<u64>> = HashMap::new();
        let node = agent.started.node.as_deref();
        let mut start = 0;
        let read = read_events(&agent.journal, &|_| true, &mut |end, event| {
            let start = std::mem::replace(&mut start, end);
            let (is_tried, ended) = match event {
                JournalEvent::JobFinished(ended) => (false, ended),
                JournalEvent::JobTried(ended) => (true, ended),
                _ => return,
            };
            let Some(first) = agent.claim_of(ended.job) else {
                counts.unclaimed += 1;
                return;
            };
            let is_counted = limits[&first].is_none_or(|limit| end <= limit);
            if !is_tried {
                *(if is_counted { &mut counts.counted } else { &mut counts.superseded }) += 1;
            }
            let part = parts.entry(first).or_insert(start..end);
            part.end = end;
            let claim = agent.claims[&first].number;
            visit(AgentEvent { agent: key, node, claim, counts: is_counted, is_tried, ended });
        });
        let agent = &mut self.agents[index];
        for (first, part) in parts {
            if let Some(own) = agent.claims.get_mut(&first) {
                own.part = part;
            }
        }
        agent.bytes = start;
        match read {
            Ok(corruption) => agent.corruption = corruption,
            Err(error) => agent.error = Some(error),
        }
        counts
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
            let Some(first) = agent.claim_of(job) else { continue };
            let own = &agent.claims[&first];
            let limit = self.limit(own.number, own.epoch, agent.key).unwrap_or(u64::MAX);
            let part = own.part.start..own.part.end.min(limit);
            read_part(&agent.journal, part, |event| {
                if let JournalEvent::JobFinished(ended) = event
                    && (first..=own.last).contains(&ended.job)
                {
                    results.insert(ended.job, (agent.key, ended));
                }
            })?;
        }
        Ok(results)
    }
}
