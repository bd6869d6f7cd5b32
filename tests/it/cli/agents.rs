//! Agents: processes that share the jobs of a run, in a directory that all of them see.

mod record;
#[cfg(target_os = "linux")] // /proc, and FUSE.
mod faults;
#[cfg(target_os = "linux")]
mod faulty_dirs;

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

use super::on_agents::{OnAgents, pid_of};
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

    /// Starts an agent. Others count it as lost after four seconds of silence.
    fn agent(&self, slots: u32) -> Run {
        let line = format!("agent --attempt 1 -j{slots} --lost-after 4");
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
    // The first job waits for one of another agent.
    let script = "[ {#} = 1 ] || : >other; until test -e other; do sleep 0.01; done; echo {}; echo {#} >&2";
    let run = Submitted::new(&[script], &["--tag", "-k"], (1..=300).map(|n| format!("v{n}")));
    let agents: Vec<Run> = (0..3).map(|_| run.agent(1)).collect();
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
    let line = "agent --attempt 1 --lost-after 4";
    let ended = Run::start(minder(line).arg(&missing)).wait().exit_code(255);
    assert!(ended.err.contains("cannot read the manifest"), "{ended:?}");
    let line = format!("agent --attempt 7 {}", run.dir().display());
    let ended = Run::start(&minder(&line)).wait().exit_code(255);
    assert!(ended.err.contains("rounds/7"), "{ended:?}");
    fs::remove_dir_all(run.dir().join("spool")).expect("remove spool");
    let ended = run.agent(1).wait().exit_code(255);
    assert!(ended.err.contains("spool/arguments"), "{ended:?}");
}

#[test]
fn output_of_agents_is_shown_as_that_of_a_run() {
    let numbers: Vec<String> = (1..=200).map(|number| number.to_string()).collect();
    let jobs: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let on = OnAgents::new();
    let script = "echo o{}; echo e{} >&2; [ $(({} % 50)) != 0 ]";
    let flags = "-k --tag --quiet --joblog log";
    let there = on.start(flags, script, &jobs).wait();
    let mut here = on.command(&format!("run -j2 {flags}2"));
    let here = Run::start(here.arg(script).arg(":::").args(&jobs)).wait();
    assert_eq!((there.status, there.text()), (here.status, here.text()));
    assert_eq!((there.status, there.err), (ExitStatus::Exited(4), here.err));
    let mut logged: Vec<String> = on.lines("log").iter().map(|line| first_word(line)).collect();
    let mut expected: Vec<String> = on.lines("log2").iter().map(|line| first_word(line)).collect();
    logged.sort();
    expected.sort();
    assert_eq!(logged, expected);
}

fn first_word(line: &str) -> String {
    line.split('\t').next().unwrap_or_default().to_owned()
}

#[test]
fn joblog_says_what_agents_run_and_not_an_earlier_record() {
    let on = OnAgents::new();
    let run = |flags: &str, script: &str, jobs: &[&str]| {
        let run = on.start(&format!("-k --quiet --joblog log {flags}"), script, jobs).wait();
        (run.status, run.text().to_owned())
    };
    let is = |status, text: &str| (ExitStatus::Exited(status), text.to_owned());
    assert_eq!(run("", "echo {}; exit {}", &["0", "1"]), is(1, "0\n1\n"));
    // More arguments than before.
    assert_eq!(run("--resume", "echo {}; exit {}", &["0", "1", "2"]), is(1, "2\n"));
    // Another command, and its lines.
    assert_eq!(run("--resume-failed -v", "echo again{}", &["0", "1", "2"]), {
        is(0, "echo again1\nagain1\necho again2\nagain2\n")
    });
    assert_eq!(run("--resume", "echo {}; exit {}", &["0", "1", "2"]), is(0, ""));
}

#[test]
fn commands_of_agents_are_shown() {
    let on = OnAgents::new();
    let ended = on.start("-k -t", "echo x{}", &["a", "b"]).wait();
    assert_eq!((ended.status, ended.text().as_str()), (ExitStatus::Exited(0), "xa\nxb\n"));
    let shown = ended.err.lines().filter(|line| line.starts_with("echo x")).count();
    assert_eq!(shown, 2, "{}", ended.err);
}

#[test]
fn input_that_is_still_read_is_worked_on() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:2 --quiet -k");
    command.arg(": >up{}; echo {}");
    let mut run = Run::start(command.stdin(Stdio::piped()));
    run.write(b"1\n2\n");
    on.wait_for("up1");
    on.wait_for("up2");
    run.write(b"3\n");
    run.close();
    let ended = run.wait().exit_code(0);
    assert_eq!(ended.text(), "1\n2\n3\n");
}

#[test]
fn killed_agent_costs_no_result() {
    let on = OnAgents::new();
    let script = "echo {} >>started; case {} in 1|2) : >up; test -e again || sleep 100;; esac; echo {}";
    let jobs: Vec<String> = (1..=30).map(|number| number.to_string()).collect();
    let run = on.start("-k --quiet", script, &jobs.iter().map(String::as_str).collect::<Vec<_>>());
    on.wait_for("up");
    // The agent that runs the first job is the one that must be killed.
    let pid = on.first_agent();
    fs::write(on.dir.path().join("again"), "").expect("write");
    kill_process(pid, Signal::KILL).expect("kill agent");
    let ended = run.wait().exit_code(0);
    let expected: String = jobs.iter().map(|job| format!("{job}\n")).collect();
    assert_eq!(ended.text(), expected);
    let (state, _) = RunState::of_run(&on.run_dir(), ComparedArgs::All).expect("read state");
    assert!(state.is_complete());
}

#[test]
fn interrupted_run_is_resumed_on_agents() {
    let on = OnAgents::new();
    let script = "echo {} >>started; case {} in 7) : >up; test -e again || sleep 100;; esac; echo {}";
    let run = on.start("", script, &["1", "2", "3", "4", "5", "6", "7"]);
    on.wait_for("up");
    on.wait_for_results(6);
    run.signal(Signal::INT);
    let first = run.wait();
    assert!(first.err.contains("minder resume"), "{}", first.err);
    fs::write(on.dir.path().join("again"), "").expect("write");
    let second = Run::start(&on.command("resume")).wait().exit_code(0);
    let mut all: Vec<String> =
        format!("{}{}", first.text(), second.text()).lines().map(str::to_owned).collect();
    all.sort();
    assert_eq!(all, ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(on.lines("started"), ["1", "2", "3", "4", "5", "6", "7", "7"]);
    let third = Run::start(&on.command("resume")).wait().exit_code(0);
    assert!(third.err.contains("nothing to resume"), "{}", third.err);
}

#[test]
fn killed_coordinator_costs_no_output() {
    let on = OnAgents::new();
    let script = "case {} in 7) : >up; until test -e again; do sleep 0.01; done;; esac; echo {}";
    let run = on.start("-k", script, &["7", "1", "2", "3", "4", "5", "6"]);
    on.wait_for("up");
    run.kill();
    let first = run.wait().text();
    fs::write(on.dir.path().join("again"), "").expect("write");
    let second = Run::start(&on.command("resume")).wait().exit_code(0);
    // With -k, all wait for the first one.
    assert_eq!((first.as_str(), second.text().as_str()), ("", "7\n1\n2\n3\n4\n5\n6\n"));
    let (state, _) = RunState::of_run(&on.run_dir(), ComparedArgs::All).expect("read state");
    assert!(state.is_complete());
}

#[test]
fn jobs_whose_saved_output_is_gone_run_again() {
    let on = OnAgents::new();
    let script =
        "echo {} >>started; case {} in 1) : >up; until test -e again; do sleep 0.01; done;; esac; echo {}";
    let run = on.start("-k", script, &["1", "2", "3"]);
    on.wait_for("up");
    on.wait_for_results(2);
    run.kill();
    run.wait();
    for key in keys(&on.run_dir()).expect("read agents") {
        for entry in fs::read_dir(key.dir(&on.run_dir())).expect("read directory") {
            let path = entry.expect("read entry").path();
            if path.to_string_lossy().contains("/out-") {
                fs::remove_file(path).expect("remove output");
            }
        }
    }
    fs::write(on.dir.path().join("again"), "").expect("write");
    let resumed = Run::start(&on.command("resume")).wait().exit_code(0);
    assert_eq!(resumed.text(), "1\n2\n3\n");
    assert!(resumed.err.contains("what is lost will run again"), "{}", resumed.err);
    assert_eq!(on.lines("started"), ["1", "1", "2", "2", "3", "3"]);
}

#[test]
fn last_jobs_are_shared_by_all_agents() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:4 -j1 --quiet");
    let jobs: Vec<String> = (1..=24).map(|number| number.to_string()).collect();
    Run::start(command.arg("sleep 0.2; true {}").arg(":::").args(&jobs)).wait().exit_code(0);
    let counts = keys(&on.run_dir()).expect("read agents").into_iter().map(|key| {
        let journal = fs::read_to_string(key.dir(&on.run_dir()).join("journal.jsonl")).expect("read journal");
        journal.matches("\"event\":\"ended\"").count()
    });
    let counts: Vec<usize> = counts.collect();
    assert_eq!(counts.iter().sum::<usize>(), 24);
    // One that starts late on a loaded machine may have fewer.
    assert!(counts.iter().all(|count| *count <= 14), "{counts:?}");
}

#[test]
fn second_interrupt_kills_jobs_of_agents() {
    let on = OnAgents::new();
    let mut run = on.start("", "trap '' TERM INT; : >up; sleep 100", &["1"]);
    on.wait_for("up");
    let begun = Instant::now();
    run.signal(Signal::INT);
    on.wait_for_file(&on.run_dir().join("rounds/1/cancel"));
    // One that follows at once counts as the same key.
    run.read_for(Duration::from_millis(500));
    run.signal(Signal::INT);
    run.wait();
    assert!(begun.elapsed() < Duration::from_secs(8), "the jobs had their ten seconds");
}

#[test]
fn stopped_agent_ends_when_it_continues() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:2 -j1 --lost-after 4 --quiet -k");
    let script =
        "echo {} >>started; case {} in 1) : >up; until test -e again; do sleep 0.01; done;; esac; echo {}";
    let run = Run::start(command.args([script, ":::", "1", "2", "3", "4", "5", "6"]));
    on.wait_for("up");
    let pid = on.first_agent();
    kill_process(pid, Signal::STOP).expect("stop agent");
    fs::write(on.dir.path().join("again"), "").expect("write");
    // Another agent takes the job over. On a loaded machine the end of the job may be recorded before.
    let ended = run.wait().exit_code(0);
    assert_eq!(ended.text(), "1\n2\n3\n4\n5\n6\n");
    assert!(on.lines("started").iter().filter(|line| *line == "1").count() <= 2);
}

#[test]
fn failed_jobs_are_retried_on_agents() {
    let on = OnAgents::new();
    let script = "test {} != 2 || test -e again";
    on.start("--quiet", script, &["1", "2", "3"]).wait().exit_code(1);
    fs::write(on.dir.path().join("again"), "").expect("write");
    let retried = Run::start(&on.command("retry")).wait().exit_code(0);
    assert!(retried.err.contains("(1 of 3 failed)"), "{}", retried.err);
    let (state, _) = RunState::of_run(&on.run_dir(), ComparedArgs::All).expect("read state");
    assert!(state.is_complete() && state.failed.is_empty());
}

#[test]
fn halt_ends_the_agents() {
    let on = OnAgents::new();
    let begun = Instant::now();
    let ended = on.start("--halt now,fail=1", "[ {} != 3 ] || exit 9; sleep 100", &["1", "2", "3"]).wait();
    assert_eq!(ended.status, ExitStatus::Exited(9), "{ended:?}");
    assert!(begun.elapsed() < SOON);
}

#[test]
fn run_that_was_interrupted_twice_is_resumed_at_once() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:2 -j1 --grace 60");
    let script = "trap '' TERM; echo {} >>begun; test -e again || sleep 100; echo {}";
    let mut run = Run::start(command.args([script, ":::", "1", "2"]));
    on.wait_for("begun");
    for _ in 0..2 {
        run.read_for(Duration::from_millis(400));
        run.signal(Signal::INT);
    }
    run.wait().killed_by(Signal::INT);
    fs::write(on.dir.path().join("again"), "").expect("write");
    let begun = Instant::now();
    let resumed = Run::start(&on.command("resume -k")).wait().exit_code(0);
    assert_eq!(resumed.text(), "1\n2\n");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[test]
fn run_whose_agents_have_all_ended_can_be_resumed() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:1 -j1 --lost-after 4");
    let script = ": >up; test -e again || sleep 100; echo {}";
    let run = Run::start(command.args([script, ":::", "1"]));
    on.wait_for("up");
    let agent = keys(&on.run_dir()).expect("read agents")[0];
    kill_process(pid_of(&on.run_dir(), agent), Signal::KILL).expect("kill agent");
    let ended = run.wait().exit_code(255);
    assert!(ended.err.contains("no host works on the run any more, and 1 job left"), "{}", ended.err);
    fs::write(on.dir.path().join("again"), "").expect("write");
    let resumed = Run::start(&on.command("resume")).wait().exit_code(0);
    assert_eq!(resumed.text(), "1\n");
}

#[test]
fn input_that_was_not_read_to_its_end_is_named() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:1 --quiet");
    let mut run = Run::start(command.arg(": >up{}").stdin(Stdio::piped()));
    run.write(b"1\n");
    on.wait_for("up1");
    run.kill();
    run.wait();
    let resumed = Run::start(&on.command("resume")).wait().exit_code(255);
    let expected = "the input of the run was not read to its end, and is lost: start it again";
    assert!(resumed.err.contains(expected), "{}", resumed.err);
    let agent = keys(&on.run_dir()).expect("read agents")[0];
    let journal = agent.dir(&on.run_dir()).join("journal.jsonl");
    let text = fs::read_to_string(&journal).expect("read journal");
    fs::write(&journal, &text[1..]).expect("write");
    let resumed = Run::start(&on.command("resume")).wait().exit_code(255);
    assert!(resumed.err.contains("its first line cannot be read"), "{}", resumed.err);
    fs::write(&journal, &text).expect("write");
    fs::remove_file(on.run_dir().join("spool/count")).expect("remove file");
    let resumed = Run::start(&on.command("resume")).wait().exit_code(255);
    assert!(resumed.err.contains("cannot resume the run on agents"), "{}", resumed.err);
}

#[test]
fn input_that_no_job_can_have_fails_its_job_alone() {
    let on = OnAgents::new();
    let lines = [&[b'x'; 200_000][..], b"\na\0b\nc\n"].concat();
    let there = Run::start(on.command("run --on local:1 -k echo").stdin(input(&lines))).wait();
    let here = Run::start(on.command("run -k echo").stdin(input(&lines))).wait();
    assert_eq!((there.status, there.text()), (here.status, here.text()));
    assert_eq!(there.status, ExitStatus::Exited(2));
    assert_eq!(record::without_times(&there), record::without_times(&here));
}

#[test]
fn agents_need_a_record_and_their_directory() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:1 echo ::: 1");
    let ended = Run::start(command.env("MINDER_STATE_DIR", "/proc/self/nothing")).wait().exit_code(255);
    assert!(ended.err.contains("the record of the run, which cannot be written"), "{}", ended.err);
    let run = Submitted::new(&["echo {}"], &[], (1..=2).map(|n| n.to_string()));
    let manifest = fs::read_to_string(run.dir().join("manifest.json")).expect("read manifest");
    let place = run.state.path().to_str().expect("decode path");
    fs::write(run.dir().join("manifest.json"), manifest.replace(place, "/no/such/place")).expect("write");
    let ended = run.agent(1).wait().exit_code(255);
    let expected = "cannot change to the directory of the run, `/no/such/place`";
    assert!(ended.err.contains(expected), "{}", ended.err);
}
