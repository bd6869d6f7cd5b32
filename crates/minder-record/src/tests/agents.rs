//! Runs whose jobs ran on agents: which results count, and which runs stay.

use crate::agents::{AGENTS, AgentKey, HOLDERS, JOURNAL, ROUNDS, SPOOL};
use crate::merge::Rounds;
use crate::run_state::JournalName;

use super::*;

/// Writes the journal of an agent that claims the jobs from 1 to 9 and has these events.
fn agent(run: &Path, attempt: u32, rest: &[JournalEvent]) -> AgentKey {
    let key = AgentKey::random();
    fs::create_dir_all(key.dir(run)).unwrap();
    let started = AttemptStarted {
        version: "0.1.0".to_owned(),
        run: "61c0aa00".to_owned(),
        attempt,
        node: Some("n1".to_owned()),
        pid: 7,
        at: 1.0,
    };
    let claimed = Claimed { claim: 1, epoch: 1, first: 1, last: 9 };
    let first = [JournalEvent::AttemptStarted(started), JournalEvent::Claimed(claimed)];
    fs::write(key.dir(run).join(JOURNAL), [lines(&first), lines(rest)].concat()).unwrap();
    key
}

fn shown(jobs: &[u64]) -> JournalEvent {
    JournalEvent::OutputShown(JobList { jobs: jobs.to_vec() })
}

fn state(run: &Path) -> RunState {
    let (state, damaged) = RunState::of_run(run, ComparedArgs::All).unwrap();
    assert!(damaged.is_empty(), "{damaged:?}");
    state
}

fn jobs(set: &JobSet) -> Vec<u64> {
    set.jobs().collect()
}

#[test]
fn results_of_agents_are_done_and_unshown_until_an_attempt_shows_them() {
    let root = tempfile::tempdir().unwrap();
    let first = new_run(root.path());
    let dir = first.dir().to_owned();
    let events = [JournalEvent::JobFinished(kept(1)), JournalEvent::JobFinished(failed(2))];
    agent(&dir, 1, &events);
    agent(&dir, 1, &[JournalEvent::JobTried(failed(3)), JournalEvent::JobFinished(kept(4))]);
    let before = state(&dir);
    assert_eq!((jobs(&before.done), jobs(&before.failed)), (vec![1, 2, 4], vec![2]));
    assert_eq!((jobs(&before.tried), jobs(&before.unshown_by_agents)), (vec![3], vec![1, 4]));
    first.append(&lines(&[shown(&[1])])).unwrap();
    drop(first);
    assert_eq!(jobs(&state(&dir).unshown_by_agents), [4]);
    // An attempt without a round shows the rest.
    let second = resume(&dir).unwrap();
    second.append(&lines(&[shown(&[4])])).unwrap();
    assert!(state(&dir).unshown_by_agents.is_empty());
}

#[test]
fn later_round_replaces_results_of_an_earlier_one() {
    let root = tempfile::tempdir().unwrap();
    let first = new_run(root.path());
    let dir = first.dir().to_owned();
    agent(&dir, 1, &[JournalEvent::JobFinished(kept(1)), JournalEvent::JobFinished(failed(2))]);
    first.append(&lines(&[shown(&[1])])).unwrap();
    drop(first);
    agent(&dir, 2, &[JournalEvent::JobFinished(kept(2))]);
    // The attempt of the second round was killed before it wrote a journal.
    let after = state(&dir);
    assert_eq!((jobs(&after.done), jobs(&after.failed)), (vec![1, 2], vec![]));
    assert_eq!(jobs(&after.unshown_by_agents), [2]);
    assert!(!after.is_complete());
    let third = resume(&dir).unwrap();
    let over = JournalEvent::AttemptFinished(AttemptFinished::default());
    third.append(&lines(&[shown(&[2]), over])).unwrap();
    assert!(state(&dir).is_complete());
    // A result on this machine replaces those of agents, too.
    drop(third);
    let fourth = resume(&dir).unwrap();
    fourth.append(&lines(&[JournalEvent::JobFinished(failed(2))])).unwrap();
    assert_eq!(jobs(&state(&dir).failed), [2]);
}

#[test]
fn damage_of_an_agent_is_named_and_costs_its_lines_alone() {
    let root = tempfile::tempdir().unwrap();
    let run = new_run(root.path());
    let key = agent(run.dir(), 1, &[JournalEvent::JobFinished(ended(1))]);
    let path = key.dir(run.dir()).join(JOURNAL);
    let mut text = fs::read(&path).unwrap();
    text.extend_from_slice(&[0; 4096]);
    text.push(b'\n');
    text.extend_from_slice(&lines(&[
        JournalEvent::JobFinished(ended(2)),
        JournalEvent::JobFinished(ended(3)),
    ]));
    text.truncate(text.len() - 9);
    fs::write(&path, &text).unwrap();
    let (state, damaged) = RunState::of_run(run.dir(), ComparedArgs::None).unwrap();
    assert_eq!(jobs(&state.done), [1, 2]);
    let [(name, damage)] = damaged[..] else { panic!("{damaged:?}") };
    assert_eq!(name, JournalName::Agent(key));
    assert_eq!(name.to_string(), format!("agent {key}"));
    assert!(damage.torn_tail && damage.bad_lines == 1, "{damage}");
}

#[test]
fn agent_whose_journal_cannot_be_read_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let run = new_run(root.path());
    let key = agent(run.dir(), 1, &[JournalEvent::JobFinished(ended(1))]);
    let path = key.dir(run.dir()).join(JOURNAL);
    let text = fs::read(&path).unwrap();
    // The first line is damaged: the round is not known.
    fs::write(&path, &text[1..]).unwrap();
    let error = RunState::of_run(run.dir(), ComparedArgs::None).unwrap_err();
    assert!(error.to_string().contains(&key.to_string()), "{error}");
    // It was killed before its first event.
    fs::write(&path, &text[..20]).unwrap();
    assert!(state(run.dir()).done.is_empty());
    fs::remove_file(&path).unwrap();
    assert!(state(run.dir()).done.is_empty());
}

#[test]
fn events_of_jobs_that_were_not_claimed_do_not_count() {
    let root = tempfile::tempdir().unwrap();
    let run = new_run(root.path());
    agent(run.dir(), 1, &[JournalEvent::JobFinished(ended(1)), JournalEvent::JobFinished(ended(10))]);
    assert_eq!(jobs(&state(run.dir()).done), [1]);
    let mut rounds = Rounds::read(run.dir()).unwrap();
    let mut round = rounds.take(1).unwrap();
    let mut nodes = Vec::new();
    let counts = round.visit(|event| nodes.push(event.node.map(str::to_owned)));
    assert_eq!((counts.counted, counts.unclaimed), (1, 1));
    assert_eq!(nodes, [Some("n1".to_owned())]);
    assert_eq!(round.agents().len(), 1);
}

#[test]
fn shared_directories_belong_to_a_run() {
    for name in [AGENTS, ROUNDS, HOLDERS, SPOOL] {
        assert_eq!(store::file_kind(name), Some(store::FileKind::Shared), "{name}");
    }
}
