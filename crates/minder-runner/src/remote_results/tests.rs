//! Generated records: agents of several rounds, of which some were taken over. All results are taken in the
//! order of the input.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder_cluster::round::Round;
use minder_cluster::spool::SpoolWriter;
use minder_record::agents::{AgentKey, JOURNAL};
use minder_record::codec;
use minder_record::event::{
    AttemptFinished, AttemptStarted, Claimed, JobFinished, JournalEvent, OsBytes, OutputSegment, Sealed,
    SealedJournal,
};
use minder_record::job_set::JobSet;
use minder_record::run_state::{ComparedArgs, RunState};

use super::{Earlier, RemoteResults, look_time};

/// How large a record is.
#[derive(Clone, Copy)]
struct Size {
    jobs: u64,
    rounds: u32,
    /// The number of agents of each round.
    agents: u64,
    /// The number of jobs of a claim.
    claim: u64,
    /// Later rounds: each runs the jobs again whose number is a multiple of this.
    again: &'static [u64],
}

impl Size {
    fn claims(self) -> u64 {
        self.jobs.div_ceil(self.claim)
    }

    fn range(self, claim: u64) -> (u64, u64) {
        (claim * self.claim + 1, self.jobs.min((claim + 1) * self.claim))
    }

    /// Returns the round that has run a job last.
    fn round_of(self, job: u64) -> u32 {
        let again =
            (self.rounds + 1..).zip(self.again).filter(|(_, multiple)| job.is_multiple_of(**multiple));
        again.last().map_or(self.place((job - 1) / self.claim).0, |(round, _)| round)
    }

    /// Returns the round that has run a claim, and the agent, by its index.
    fn place(self, claim: u64) -> (u32, u64) {
        // Some bits of a multiplicative hash.
        let hash = claim.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        (1 + (hash % u64::from(self.rounds)) as u32, hash / u64::from(self.rounds) % self.agents)
    }
}

/// The agent that has the first half of a claim, and how much of its journal counts.
struct TakenOver {
    claim: u64,
    from: AgentKey,
    bytes: u64,
    to: usize,
}

/// Writes the journals of the agents of a round.
fn write_round(run: &Path, size: Size, round: u32, claims: &[(u64, u64)]) {
    let keys: Vec<AgentKey> = (0..size.agents).map(|_| AgentKey::random()).collect();
    let mut taken_over = Vec::new();
    let mut line = Vec::new();
    let mut at = 0;
    for (index, &key) in keys.iter().enumerate() {
        let mut text = Vec::new();
        codec::encode(&started(round), &mut text);
        while let Some(&(_, claim)) = claims.get(at).filter(|(agent, _)| *agent == index as u64) {
            at += 1;
            let (first, last) = size.range(claim);
            codec::encode(&claimed(claim, 1, (first, last)), &mut text);
            let half = first + (last - first) / 2;
            for job in first..=last {
                line.clear();
                codec::encode(&ended(job, round), &mut line);
                text.extend_from_slice(&line);
                // What it writes behind that place is superseded.
                if job == half && claim % 10 == 0 {
                    let to = (index + 1) % keys.len();
                    taken_over.push(TakenOver { claim, from: key, bytes: text.len() as u64, to });
                }
            }
        }
        if index % 2 == 0 {
            codec::encode(&JournalEvent::AttemptFinished(AttemptFinished::default()), &mut text);
        }
        fs::create_dir_all(key.dir(run)).expect("create directory");
        fs::write(key.dir(run).join(JOURNAL), text).expect("write journal");
    }
    for TakenOver { claim, from, bytes, to } in taken_over {
        let path = keys[to].dir(run).join(JOURNAL);
        let mut journal = BufWriter::new(OpenOptions::new().append(true).open(path).expect("open journal"));
        let (first, last) = size.range(claim);
        let half = first + (last - first) / 2;
        line.clear();
        codec::encode(&claimed(claim, 2, (first, last)), &mut line);
        let journals = vec![SealedJournal { agent: from, bytes }];
        codec::encode(&JournalEvent::Sealed(Sealed { claim: claim + 1, epoch: 2, journals }), &mut line);
        journal.write_all(&line).expect("append");
        for job in half + 1..=last {
            line.clear();
            codec::encode(&ended(job, round), &mut line);
            journal.write_all(&line).expect("append");
        }
    }
}

fn started(attempt: u32) -> JournalEvent {
    let version = "0.1.0".to_owned();
    let run = "61c0aa00".to_owned();
    JournalEvent::AttemptStarted(AttemptStarted { version, run, attempt, node: None, pid: 1, at: 0.0 })
}

fn claimed(claim: u64, epoch: u32, (first, last): (u64, u64)) -> JournalEvent {
    JournalEvent::Claimed(Claimed { claim: claim + 1, epoch, first, last })
}

/// The result of a job. It has the number of its round in place of a size.
fn ended(job: u64, round: u32) -> JournalEvent {
    JournalEvent::JobFinished(JobFinished {
        job,
        args: vec![OsBytes::from(job.to_string().as_str())],
        exit: Some(0),
        out: round.into(),
        kept: vec![OutputSegment { stream: 1, file: "out-1-0".to_owned(), at: job * 8, len: 8 }],
        ..JobFinished::default()
    })
}

/// Writes the journal of an agent that runs some jobs again. Others are between those of a claim.
fn write_again(run: &Path, size: Size, round: u32, multiple: u64) {
    let key = AgentKey::random();
    let mut text = Vec::new();
    codec::encode(&started(round), &mut text);
    for claim in 0..size.jobs.div_ceil(10 * multiple) {
        let jobs = (claim * 10 + 1..=(claim + 1) * 10).map(|number| number * multiple);
        let jobs: Vec<u64> = jobs.filter(|job| *job <= size.jobs).collect();
        let (Some(&first), Some(&last)) = (jobs.first(), jobs.last()) else { break };
        codec::encode(&claimed(claim, 1, (first, last)), &mut text);
        jobs.iter().for_each(|job| codec::encode(&ended(*job, round), &mut text));
    }
    fs::create_dir_all(key.dir(run)).expect("create directory");
    fs::write(key.dir(run).join(JOURNAL), text).expect("write journal");
}

/// Writes a record, and takes all results in the order of the input. Returns the time that this took.
fn take_all(size: Size) -> Duration {
    let dir = tempfile::tempdir().expect("create directory");
    let run = dir.path().join("runs/61c0aa00");
    fs::create_dir_all(&run).expect("create directory");
    let mut places: Vec<(u32, u64, u64)> =
        (0..size.claims()).map(|claim| (size.place(claim).0, size.place(claim).1, claim)).collect();
    places.sort_unstable();
    for round in 1..=size.rounds {
        let claims: Vec<(u64, u64)> =
            places.iter().filter(|place| place.0 == round).map(|place| (place.1, place.2)).collect();
        write_round(&run, size, round, &claims);
    }
    drop(places);
    for (round, multiple) in (size.rounds + 1..).zip(size.again) {
        write_again(&run, size, round, *multiple);
    }
    let attempt = size.rounds + size.again.len() as u32;
    let mut left = JobSet::default();
    (1..=size.jobs).filter(|job| size.round_of(*job) == attempt).for_each(|job| _ = left.insert(job));
    SpoolWriter::create(&run, &[]).and_then(|mut spool| spool.publish(true)).expect("create spool");

    let begun = Instant::now();
    let (state, damaged) = RunState::of_run(&run, ComparedArgs::All).expect("read record");
    assert!(damaged.is_empty() && state.done.len() == size.jobs);
    assert_eq!(state.unshown_by_agents.len(), size.jobs);
    let mut unshown: BTreeMap<u32, JobSet> = BTreeMap::new();
    for job in (1..=size.jobs).filter(|job| !left.contains(*job)) {
        unshown.entry(size.round_of(job)).or_default().insert(job);
    }
    let round = Arc::new(Round::create(&run, attempt, Some(left)).expect("create round"));
    let rounds = BTreeMap::from([(attempt, round)]);
    let mut jobs = JobSet::default();
    jobs.insert_range(1, size.jobs);
    let earlier = Earlier { jobs: Some(jobs), unshown, ..Earlier::default() };
    let mut results = RemoteResults::open(&run, rounds, Arc::default(), None, earlier).expect("open results");
    results.in_order = true;
    let mut next = 1;
    while let Some((job, _, result)) = results.next().expect("take result") {
        assert_eq!((job, result.ended.job), (next, next));
        assert_eq!(result.ended.out, u64::from(size.round_of(job)), "job {job} is of another round");
        next += 1;
    }
    assert_eq!(next, size.jobs + 1);
    begun.elapsed()
}

#[test]
fn journals_of_many_agents_are_looked_at_seldom_unless_the_directory_is_of_this_machine() {
    let seconds = |agents, is_near| look_time(agents, is_near).as_secs_f64();
    assert_eq!([3, 8, 18, 108].map(|agents| seconds(agents, false)), [0.0, 0.0, 1.0, 10.0]);
    assert_eq!(seconds(1000, true), 0.0);
}

#[test]
fn results_of_several_rounds_are_taken_in_order() {
    take_all(Size { jobs: 3001, rounds: 4, agents: 7, claim: 25, again: &[] });
    take_all(Size { jobs: 40, rounds: 1, agents: 2, claim: 7, again: &[] });
    take_all(Size { jobs: 3001, rounds: 2, agents: 7, claim: 25, again: &[3, 5, 7] });
}

#[test]
fn results_of_another_coordinator_are_shown_once_and_need_their_output() {
    for in_order in [false, true] {
        let dir = tempfile::tempdir().expect("create directory");
        let run = dir.path().join("runs/61c0aa00");
        let agent = AgentKey::random().dir(&run);
        fs::create_dir_all(&agent).expect("create directory");
        let mut text = Vec::new();
        codec::encode(&started(1), &mut text);
        codec::encode(&claimed(0, 1, (1, 5)), &mut text);
        (1..=5).for_each(|job| codec::encode(&ended(job, 1), &mut text));
        fs::write(agent.join(JOURNAL), text).expect("write journal");
        // That of job 5 is gone.
        fs::write(agent.join("out-1-0"), [b'a'; 40]).expect("write output");
        SpoolWriter::create(&run, &[]).and_then(|mut spool| spool.publish(true)).expect("create spool");
        let jobs = |first, last| {
            let mut jobs = JobSet::default();
            jobs.insert_range(first, last);
            jobs
        };
        let rounds = BTreeMap::from([(1, Arc::new(Round::create(&run, 1, None).expect("create round")))]);
        let earlier = Earlier {
            jobs: Some(jobs(1, 5)),
            attempt: Some(1),
            shown: jobs(1, 1),
            lost: jobs(4, 4),
            hint: " (hint)".to_owned(),
            ..Earlier::default()
        };
        let agents = Arc::default();
        let mut results = RemoteResults::open(&run, rounds, agents, None, earlier).expect("open results");
        results.in_order = in_order;
        for (expected, is_shown) in [(1, true), (2, false), (3, false)] {
            let (job, _, result) = results.next().expect("take result").expect("another one");
            assert_eq!((job, result.is_shown), (expected, is_shown));
        }
        let why = results.next().expect_err("jobs are left").to_string();
        assert_eq!(why, "no host works on the run any more, and 2 jobs left (hint)");
    }
}

/// Writes 3 GB of journals. In release mode this takes two minutes.
#[cfg(target_os = "linux")] // The peak of memory is read from /proc.
#[test]
#[ignore = "it takes minutes"]
fn memory_does_not_grow_with_jobs() {
    // Each job as a record would take gigabytes.
    let took = take_all(Size { jobs: 10_000_000, rounds: 20, agents: 1000, claim: 250, again: &[] });
    let status = fs::read_to_string("/proc/self/status").expect("read status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("find the peak");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("parse the peak");
    assert!(kib < 200 << 10, "{kib} KiB, {took:?}");
}
