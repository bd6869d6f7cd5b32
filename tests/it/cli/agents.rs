//! Agents: processes that share the jobs of a run, in a directory that all of them see.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use minder_cluster::round::Round;
use minder_cluster::spool::SpoolWriter;
use minder_record::agents::{AgentKey, keys};
use minder_record::event::{JobFinished, OsBytes};
use minder_record::manifest::{InputSource, Manifest};
use minder_record::merge::{Counts, Rounds};
use minder_record::run_state::{ComparedArgs, RunState};
use minder_record::writer::JournalWriter;

use super::*;

/// A run whose jobs wait for agents. This process is its coordinator, which shows nothing.
struct Submitted {
    state: tempfile::TempDir,
    journal: JournalWriter,
    round: Round,
}

impl Submitted {
    /// Submits a job for each of these arguments.
    fn new(command: &[&str], flags: &[&str], jobs: impl Iterator<Item = String>) -> Self {
        let state = tempfile::tempdir().expect("create directory");
        let input = InputSource::Lost { why: "it is a test".to_owned() };
        let mut manifest = Manifest::new(state.path(), command, input);
        let typed: Vec<OsBytes> = flags.iter().map(|flag| OsBytes::from(*flag)).collect();
        manifest.flags.insert("typed".to_owned(), serde_json::to_value(typed).expect("encode"));
        let journal = JournalWriter::create(state.path(), manifest, [""; 0], false).expect("create run");
        let mut spool = SpoolWriter::create(journal.dir(), &[]).expect("create spool");
        for job in jobs {
            spool.push(&[OsBytes::from(job.as_str())]).expect("append");
        }
        spool.publish(true).expect("publish");
        let round = Round::create(journal.dir(), journal.attempt(), None).expect("create round");
        Self { state, journal, round }
    }

    fn dir(&self) -> &Path {
        self.journal.dir()
    }

    /// Starts an agent. Others count it as lost after a second of silence.
    fn agent(&self, slots: u32) -> Run {
        let line = format!("agent --attempt 1 -j{slots} --lost-after 1");
        Run::start(minder(&line).arg(self.dir()).env("MINDER_STATE_DIR", self.state.path()))
    }

    /// Returns the results that count, with their agents, in the order of the jobs.
    fn results(&self) -> (Vec<(AgentKey, JobFinished)>, Counts) {
        let mut rounds = Rounds::read(self.dir()).expect("read rounds");
        let mut results = Vec::new();
        let Some(mut round) = rounds.take(1) else { return (results, Counts::default()) };
        let counts = round.visit(|event| {
            if event.counts && !event.is_tried {
                assert!(event.node.is_some());
                results.push((event.agent, event.ended));
            }
        });
        results.sort_by_key(|(_, ended)| ended.job);
        (results, counts)
    }

    /// Returns what a job has written to its outputs.
    fn output(&self, agent: AgentKey, ended: &JobFinished) -> String {
        let part = |segment: &minder_record::event::OutputSegment| {
            let bytes = fs::read(agent.dir(self.dir()).join(&segment.file)).expect("read output");
            let start = segment.at as usize;
            String::from_utf8(bytes[start..start + segment.len as usize].to_vec()).expect("decode")
        };
        ended.kept.iter().map(part).collect()
    }

    /// Waits until files with these names exist in the directory of the jobs.
    fn wait_for(&self, names: &[&str]) {
        let until = Instant::now() + PATIENCE;
        while !names.iter().all(|name| self.state.path().join(name).exists()) {
            assert!(Instant::now() < until, "{names:?} are not there");
            std::thread::park_timeout(Duration::from_millis(10)); // There is no event for a file.
        }
    }
}

#[test]
fn agents_run_each_job_once_and_show_nothing() {
    let run =
        Submitted::new(&["echo {}; echo {#} >&2"], &["--tag", "-k"], (1..=300).map(|n| format!("v{n}")));
    let agents: Vec<Run> = (0..3).map(|_| run.agent(2)).collect();
    for agent in agents {
        let ended = agent.wait().exit_code(0);
        assert_eq!((ended.out.as_slice(), ended.err.as_str()), (&b""[..], ""));
    }
    let (results, counts) = run.results();
    assert_eq!(counts, Counts { counted: 300, superseded: 0, unclaimed: 0 });
    for (index, (agent, ended)) in results.iter().enumerate() {
        let job = index as u64 + 1;
        assert!(ended.succeeded() && ended.job == job, "{ended:?}");
        assert_eq!(ended.args, [OsBytes::from(format!("v{job}").as_str())]);
        assert_eq!(run.output(*agent, ended), format!("v{job}\n{job}\n"));
    }
    let working: BTreeSet<AgentKey> = results.iter().map(|(agent, _)| *agent).collect();
    assert!(working.len() > 1, "one agent ran all jobs");
    // A beat, a journal, and a file of each worker thread.
    for key in keys(run.dir()).expect("read agents") {
        let files = fs::read_dir(key.dir(run.dir())).expect("read directory").count();
        assert!(files <= 4, "{files} files");
    }
}

#[test]
fn jobs_of_a_killed_agent_run_elsewhere() {
    let script = "echo {} >>started; case {} in 1|2) : >up{}; test -e again || sleep 100;; esac; echo {}";
    let run = Submitted::new(&[script], &[], (1..=20).map(|n| n.to_string()));
    let lost = run.agent(2);
    run.wait_for(&["up1", "up2"]);
    lost.kill();
    fs::write(run.state.path().join("again"), "").expect("write");
    let rescuer = run.agent(2).wait().exit_code(0);
    assert_eq!(rescuer.err, "");
    let (results, counts) = run.results();
    assert_eq!((results.len(), counts.counted), (20, 20));
    assert!(results.iter().all(|(_, ended)| ended.succeeded()));
    let started = fs::read_to_string(run.state.path().join("started")).expect("read");
    assert_eq!(started.lines().count(), 22, "those in flight run twice, and no others: {started}");
    let (state, _) = RunState::of_run(run.dir(), ComparedArgs::All).expect("read state");
    assert_eq!(state.done.len(), 20);
}

#[test]
fn cancelled_round_ends_its_agents() {
    let run = Submitted::new(&[": >up{}; sleep 100"], &[], (1..=4).map(|n| n.to_string()));
    let agents: Vec<Run> = (0..2).map(|_| run.agent(2)).collect();
    run.wait_for(&["up1", "up2", "up3", "up4"]);
    run.round.cancel().expect("cancel");
    let begun = Instant::now();
    for agent in agents {
        let ended = agent.wait();
        assert_ne!(ended.status, ExitStatus::Exited(0), "{ended:?}");
    }
    assert!(begun.elapsed() < SOON);
    assert_eq!(run.results().0.len(), 0);
}

#[test]
fn agent_without_a_round_says_so() {
    let run = Submitted::new(&["echo {}"], &[], (1..=4).map(|n| n.to_string()));
    let missing: PathBuf = run.dir().join("../ffffffff");
    let line = "agent --attempt 1 --lost-after 1";
    let ended = Run::start(minder(line).arg(&missing)).wait().exit_code(255);
    assert!(ended.err.contains("cannot read the manifest"), "{ended:?}");
    fs::remove_dir_all(run.dir().join("spool")).expect("remove spool");
    let ended = run.agent(1).wait().exit_code(255);
    assert!(ended.err.contains("spool/arguments"), "{ended:?}");
}
