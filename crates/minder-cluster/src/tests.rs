//! Agents that share a run: threads that want the same claims, and histories in which agents are lost, taken
//! over, and work all the same.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use minder_record::agents::{AGENTS, AgentKey, JOURNAL};
use minder_record::codec;
use minder_record::event::{AttemptStarted, Claimed, JobFinished, JournalEvent, Sealed};
use minder_record::job_set::JobSet;
use minder_record::merge::{Counts, Rounds, state_of_claim};
use proptest::prelude::*;

use crate::claim::{Claim, Claims, FRONTIER, Taken};
use crate::round::Round;

/// The attempt of the round in these tests.
const ATTEMPT: u32 = 1;

/// Takes all ranges of a round of `jobs` jobs, each with at most `most`.
fn take_all(round: &Round, agent: AgentKey, jobs: u64, most: u64) -> Vec<Claim> {
    let mut claims = Claims::open(round.dir());
    let mut taken = Vec::new();
    loop {
        match claims.take(agent, |after| round.range_after(after, most, jobs)).expect("take") {
            Taken::Claim(claim) => taken.push(claim),
            Taken::Nothing => return taken,
            // Another thread writes it.
            Taken::Unwritten(_) => thread::yield_now(),
        }
    }
}

#[test]
fn threads_take_each_job_once() {
    let run = tempfile::tempdir().expect("create directory");
    Round::create(run.path(), ATTEMPT, None).expect("create round");
    let start = Barrier::new(8);
    let take = |most: u64| {
        start.wait();
        let round = Round::open(run.path(), ATTEMPT).expect("open round");
        take_all(&round, AgentKey::random(), 3000, most)
    };
    let taken: Vec<Vec<Claim>> = thread::scope(|scope| {
        let take = &take;
        let threads: Vec<_> = (1..=8).map(|most| scope.spawn(move || take(most))).collect();
        threads.into_iter().map(|thread| thread.join().expect("join")).collect()
    });
    assert!(taken.iter().filter(|claims| !claims.is_empty()).count() > 1, "one thread took all");
    let mut all: Vec<Claim> = taken.into_iter().flatten().collect();
    all.sort_by_key(|claim| claim.number);
    let mut after = 0;
    for (index, claim) in all.iter().enumerate() {
        assert_eq!((claim.number, claim.first, claim.epoch), (index as u64 + 1, after + 1, 1));
        after = claim.last;
    }
    assert_eq!(after, 3000);
}

#[test]
fn frontier_is_a_hint_only() {
    let run = tempfile::tempdir().expect("create directory");
    let round = Round::create(run.path(), ATTEMPT, None).expect("create round");
    let frontier = round.dir().join(FRONTIER);
    let take = |jobs| take_all(&round, AgentKey::random(), jobs, 10);
    assert_eq!(take(100).len(), 10);
    let text = fs::read_to_string(&frontier).expect("read frontier");
    assert_eq!(text, "00000000000000000011\n");
    for (hint, jobs, first) in [
        ("00000000000000000003\n", 110, 101),
        ("00000000000000009999\n", 120, 111),
        ("0", 130, 121),
        ("99999999999999999999\n", 140, 131),
    ] {
        fs::write(&frontier, hint).expect("write frontier");
        let taken = take(jobs);
        assert_eq!(taken.iter().map(|claim| claim.first).collect::<Vec<_>>(), [first], "{hint:?}");
    }
    fs::remove_file(&frontier).expect("remove frontier");
    assert_eq!(take(150).len(), 1);
}

#[test]
fn unwritten_claim_stops_the_chain_until_it_is_taken_over() {
    let run = tempfile::tempdir().expect("create directory");
    let round = Round::create(run.path(), ATTEMPT, None).expect("create round");
    let one = AgentKey::random();
    let other = AgentKey::random();
    let range = |after| round.range_after(after, 10, 30);
    let mut claims = Claims::open(round.dir());
    assert!(matches!(claims.take(one, range).expect("take"), Taken::Claim(_)));
    // Its agent was killed before it wrote the content.
    fs::write(round.dir().join("claims/2.1"), "0123").expect("create");
    assert_eq!(claims.take(one, range).expect("take"), Taken::Unwritten(2));
    let mut others = Claims::open(round.dir());
    assert_eq!(others.take(other, range).expect("take"), Taken::Unwritten(2));
    let taken = others.take_over_unwritten(2, other, range).expect("take over").expect("it is the first");
    assert_eq!((taken.number, taken.epoch, taken.first, taken.last), (2, 2, 11, 20));
    assert_eq!(claims.take_over_unwritten(2, one, range).expect("take over"), None);
    // The chain continues behind the bounds of the second epoch.
    match claims.take(one, range).expect("take") {
        Taken::Claim(claim) => assert_eq!((claim.number, claim.first), (3, 21)),
        other => panic!("{other:?}"),
    }
    assert_eq!(claims.list().expect("list"), BTreeMap::from([(1, 1), (2, 2), (3, 1)]));
}

#[test]
fn lost_claim_is_taken_over_once() {
    let run = tempfile::tempdir().expect("create directory");
    let round = Round::create(run.path(), ATTEMPT, None).expect("create round");
    let old = take_all(&round, AgentKey::random(), 10, 10)[0];
    let claims = Claims::open(round.dir());
    let one = AgentKey::random();
    let other = AgentKey::random();
    let new = claims.take_over(old, one).expect("take over").expect("it is the first");
    assert_eq!(new, Claim { epoch: 2, agent: one, ..old });
    assert_eq!(claims.take_over(old, other).expect("take over"), None);
    assert_eq!(claims.read(1, 2).expect("read"), Some(new));
    assert!(claims.take_over(new, other).expect("take over").is_some());
}

/// An agent of a generated history.
struct Agent {
    key: AgentKey,
    journal: PathBuf,
    /// Its claims, with the jobs that it has still to run.
    work: Vec<(Claim, Vec<u64>)>,
    /// The others count it as lost. It may run on.
    is_lost: bool,
}

impl Agent {
    fn start(run: &Path) -> Self {
        let key = AgentKey::random();
        fs::create_dir_all(key.dir(run)).expect("create directory");
        let agent = Self { key, journal: key.dir(run).join(JOURNAL), work: Vec::new(), is_lost: false };
        agent.append(&JournalEvent::AttemptStarted(AttemptStarted {
            version: "0.1.0".to_owned(),
            run: "61c0aa00".to_owned(),
            attempt: ATTEMPT,
            node: None,
            pid: 1,
            at: 0.0,
        }));
        agent
    }

    fn append(&self, event: &JournalEvent) {
        let mut line = Vec::new();
        codec::encode(event, &mut line);
        self.append_bytes(&line);
    }

    fn append_bytes(&self, bytes: &[u8]) {
        let mut file =
            OpenOptions::new().append(true).create(true).open(&self.journal).expect("open journal");
        file.write_all(bytes).expect("append");
    }

    fn begin(&mut self, claim: Claim, jobs: Vec<u64>) {
        let Claim { number, epoch, first, last, .. } = claim;
        self.append(&JournalEvent::Claimed(Claimed { claim: number, epoch, first, last }));
        self.work.push((claim, jobs));
    }

    /// Runs the next job of a claim. Its exit status is not important. Returns its number.
    fn run_job(&mut self) -> Option<(u64, u64)> {
        let (claim, jobs) = self.work.iter_mut().find(|(_, jobs)| !jobs.is_empty())?;
        let number = claim.number;
        let job = jobs.remove(0);
        self.append(&JournalEvent::JobFinished(JobFinished { job, exit: Some(0), ..JobFinished::default() }));
        Some((number, job))
    }
}

/// A generated history of a run, and what must come of it.
struct History {
    run: tempfile::TempDir,
    round: Round,
    jobs: u64,
    agents: Vec<Agent>,
    /// The last epoch of each claim that was sealed, with its agent.
    owners: BTreeMap<u64, AgentKey>,
    /// The agent whose result of a job counts.
    expected: BTreeMap<u64, AgentKey>,
    superseded: u64,
    /// A reader that reads what was appended after each step, and what it has found.
    reader: Rounds,
    found: BTreeMap<u64, AgentKey>,
    counts: Counts,
}

impl History {
    fn new(jobs: u64, agents: usize) -> Self {
        let run = tempfile::tempdir().expect("create directory");
        let round = Round::create(run.path(), ATTEMPT, None).expect("create round");
        fs::create_dir_all(run.path().join(AGENTS)).expect("create directory");
        let agents = (0..agents).map(|_| Agent::start(run.path())).collect();
        let reader = Rounds::read(run.path()).expect("read rounds");
        Self {
            run,
            round,
            jobs,
            agents,
            owners: BTreeMap::new(),
            expected: BTreeMap::new(),
            superseded: 0,
            reader,
            found: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// Lets an agent take the next range.
    fn take(&mut self, agent: usize, most: u64) -> bool {
        let mut claims = Claims::open(self.round.dir());
        let agent = &mut self.agents[agent];
        let range = |after| self.round.range_after(after, most, self.jobs);
        match claims.take(agent.key, range).expect("take") {
            Taken::Claim(claim) => {
                self.owners.insert(claim.number, agent.key);
                agent.begin(claim, (claim.first..=claim.last).collect());
                true
            }
            Taken::Nothing => false,
            Taken::Unwritten(number) => panic!("claim {number} is not complete"),
        }
    }

    fn run_job(&mut self, agent: usize) {
        let key = self.agents[agent].key;
        let Some((claim, job)) = self.agents[agent].run_job() else { return };
        if self.owners[&claim] == key {
            assert_eq!(self.expected.insert(job, key), None, "job {job} ran twice although it had counted");
        } else {
            self.superseded += 1;
        }
    }

    /// Counts an agent as lost. Another one takes its claims over.
    fn lose(&mut self, lost: usize, to: usize, seals: bool) {
        self.agents[lost].is_lost = true;
        let claims = Claims::open(self.round.dir());
        for (claim, _) in self.agents[lost].work.clone() {
            // It may have been taken over before, from this agent or an older one.
            let epoch = claims.list().expect("list")[&claim.number];
            let last = claims.read(claim.number, epoch).expect("read").expect("it is complete");
            let is_lost = |key| self.agents.iter().any(|agent| agent.key == key && agent.is_lost);
            if !is_lost(last.agent) {
                continue;
            }
            let new =
                claims.take_over(last, self.agents[to].key).expect("take over").expect("no other wants it");
            // It may be the agent itself, again.
            let older: Vec<AgentKey> = (1..new.epoch)
                .map(|epoch| claims.read(claim.number, epoch).expect("read").expect("it is complete").agent)
                .collect();
            if !seals {
                // It is killed between the two events, or before both.
                self.agents[to].append(&JournalEvent::Claimed(Claimed {
                    claim: new.number,
                    epoch: new.epoch,
                    first: new.first,
                    last: new.last,
                }));
                self.agents[to].work.push((new, Vec::new()));
                continue;
            }
            let state =
                state_of_claim(self.run.path(), &older, new.number, (new.first, new.last)).expect("read");
            let left = (new.first..=new.last).filter(|job| !state.done.contains(*job)).collect();
            // One that takes its own claim over runs each job once.
            self.agents[to].work.retain(|(old, _)| old.number != new.number);
            self.agents[to].begin(new, left);
            self.agents[to].append(&JournalEvent::Sealed(Sealed {
                claim: new.number,
                epoch: new.epoch,
                journals: state.journals,
            }));
            self.owners.insert(new.number, new.agent);
        }
    }

    /// Reads what was appended since the last call.
    fn read_on(&mut self) {
        self.reader.add_agents(self.run.path()).expect("read agents");
        self.reader.read_more(&|_| 0);
        for (_, round) in self.reader.rounds_mut() {
            let counts = visit(round, &mut self.found);
            self.counts.counted += counts.counted;
            self.counts.superseded += counts.superseded;
            self.counts.unclaimed += counts.unclaimed;
        }
    }

    /// Checks what readers of the journals find.
    fn check(&mut self) {
        self.read_on();
        let mut rounds = Rounds::read(self.run.path()).expect("read rounds");
        assert!(rounds.unreadable.is_empty(), "{:?}", rounds.unreadable);
        let Some(mut round) = rounds.take(ATTEMPT) else { return assert!(self.expected.is_empty()) };
        let mut found = BTreeMap::new();
        let counts = visit(&mut round, &mut found);
        assert_eq!(found, self.expected);
        assert_eq!(self.found, self.expected);
        let counted = self.expected.len() as u64;
        assert_eq!(counts, Counts { counted, superseded: self.superseded, unclaimed: 0 });
        assert_eq!(self.counts, counts);
        for (&job, &agent) in &self.expected {
            let around = round.results_around(job).expect("read claim");
            assert_eq!(around.get(&job).map(|found| found.0), Some(agent));
            assert!(around.keys().all(|job| self.expected.contains_key(job)));
        }
    }
}

/// Adds the results that count and were not visited yet.
fn visit(round: &mut minder_record::merge::Round, found: &mut BTreeMap<u64, AgentKey>) -> Counts {
    round.visit(|event| {
        if event.counts {
            let before = found.insert(event.ended.job, event.agent);
            assert_eq!(before, None, "job {} has two results", event.ended.job);
        }
    })
}

/// A step of a history. The numbers choose agents.
#[derive(Clone, Debug)]
enum Step {
    Take {
        agent: usize,
        most: u64,
    },
    Run {
        agent: usize,
        jobs: usize,
    },
    Lose {
        agent: usize,
        to: usize,
        seals: bool,
    },
    /// The end of a journal is cut in the middle of a line, or a block of it is lost.
    Tear {
        agent: usize,
        zeros: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let agent = 0..6_usize;
    prop_oneof![
        3 => (agent.clone(), 1..12_u64).prop_map(|(agent, most)| Step::Take { agent, most }),
        6 => (agent.clone(), 1..6_usize).prop_map(|(agent, jobs)| Step::Run { agent, jobs }),
        2 => (agent.clone(), agent.clone(), prop::bool::weighted(0.8))
            .prop_map(|(agent, to, seals)| Step::Lose { agent, to, seals }),
        1 => (agent, any::<bool>()).prop_map(|(agent, zeros)| Step::Tear { agent, zeros }),
    ]
}

proptest! {
    // Each case syncs some hundred files.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn each_job_has_one_result_whatever_agents_do(
        steps in proptest::collection::vec((step(), any::<bool>()), 0..80),
    ) {
        let mut history = History::new(100, 6);
        for (step, reads) in steps {
            match step {
                // A lost agent may still take a range: it does not know that it is lost.
                Step::Take { agent, most } => _ = history.take(agent, most),
                Step::Run { agent, jobs } => (0..jobs).for_each(|_| history.run_job(agent)),
                // Also to itself, or to one that is lost and works all the same.
                Step::Lose { agent, to, seals } => history.lose(agent, to, seals),
                Step::Tear { agent, zeros } => {
                    let agent = &history.agents[agent];
                    agent.append_bytes(if zeros { &[0; 100] } else { b"{\"event\":\"ended\",\"job\":1" });
                    agent.append_bytes(b"\n");
                }
            }
            if reads {
                history.read_on();
            }
        }
        history.check();
        // A new agent does what is left.
        history.agents.push(Agent::start(history.run.path()));
        let rescuer = history.agents.len() - 1;
        for lost in 0..rescuer {
            history.lose(lost, rescuer, true);
        }
        while history.take(rescuer, 10) {}
        for _ in 0..200 {
            history.run_job(rescuer);
        }
        prop_assert_eq!(history.expected.len(), 100);
        history.check();
    }
}

#[test]
fn journal_that_cannot_be_read_is_not_taken_over() {
    let run = tempfile::tempdir().expect("create directory");
    let key = AgentKey::random();
    let state = |key| state_of_claim(run.path(), &[key], 1, (1, 10));
    // It was killed before its first event.
    let empty = state(key).expect("a missing journal is accepted");
    assert_eq!((empty.done, empty.journals[0].bytes), (JobSet::default(), 0));
    fs::create_dir_all(key.dir(run.path()).join(JOURNAL)).expect("create directory");
    assert!(state(key).is_err());
}
