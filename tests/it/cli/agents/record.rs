//! What the record, the joblog and the summary say of jobs that agents have run.

use std::collections::BTreeMap;

use minder_record::codec;
use minder_record::event::{Claimed, JournalEvent, Sealed, SealedJournal};

use super::*;

/// Returns the lines on stderr in some order, without the one that has times.
pub(super) fn without_times(ended: &RunOutput) -> Vec<String> {
    let lines = ended.err.lines().filter(|line| !line.contains(" CPU"));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn jobs_that_agents_cannot_start_are_named() {
    let on = OnAgents::new();
    let program = "./no-such-program-{}";
    let there = Run::start(on.command("run --on local:1 -j1 -k").args([program, ":::", "a", "b"])).wait();
    let here = Run::start(on.command("run -j1 -k").args([program, ":::", "a", "b"])).wait();
    assert!(there.err.contains("cannot run `./no-such-program-a`"), "{}", there.err);
    assert_eq!((there.status, without_times(&there)), (here.status, without_times(&here)));
    let halts = |flags: &str| {
        let line = format!("run {flags} -j1 --halt now,fail=1");
        Run::start(on.command(&line).args([program, ":::", "a", "b"])).wait().status
    };
    assert_eq!(halts("--on local:1"), halts("-k"));
}

#[test]
fn retries_of_agents_are_in_the_summary() {
    let on = OnAgents::new();
    let script = "test -e up{} && [ {} != 3 ] || { : >up{}; exit 1; }; echo {}";
    let ended = on.start("-k --retries 3", script, &["1", "2", "3"]).wait().exit_code(1);
    assert_eq!(ended.text(), "1\n2\n");
    assert!(ended.err.contains(" 4 retries "), "{}", ended.err);
    assert!(ended.err.contains("succeeded at try 2"), "{}", ended.err);
}

/// Returns the columns of the lines of a joblog, by job.
fn joblog(on: &OnAgents) -> BTreeMap<u64, Vec<String>> {
    let text = fs::read_to_string(on.dir.path().join("log")).expect("read joblog");
    let columns = |line: &str| line.split('\t').map(|column| column.trim().to_owned()).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().skip(1).map(columns).collect();
    let count = lines.len();
    let by_job: BTreeMap<u64, Vec<String>> =
        lines.into_iter().map(|columns| (columns[0].parse().expect("parse job"), columns)).collect();
    assert_eq!(by_job.len(), count, "a job has two lines: {text}");
    by_job
}

#[test]
fn joblog_lacks_no_line_after_a_kill_and_names_nodes() {
    let on = OnAgents::new();
    // The results without output are complete, although the coordinator has not shown them.
    let script = "case {} in 7) : >up; test -e again || sleep 100;; 1|2|3) echo {};; esac";
    let run = on.start("-k --joblog log", script, &["7", "1", "2", "3", "4", "5", "6"]);
    on.wait_for("up");
    on.wait_for_results(6);
    run.kill();
    run.wait();
    on.kill_agents();
    assert_eq!(joblog(&on).len(), 0);
    fs::write(on.dir.path().join("again"), "").expect("write");
    let resumed = Run::start(&on.command("resume")).wait().exit_code(0);
    assert_eq!(resumed.text(), "1\n2\n3\n");
    let lines = joblog(&on);
    assert_eq!(lines.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    let state = on.run_dir();
    let journal = fs::read_to_string(keys(&state).expect("read agents")[0].dir(&state).join("journal.jsonl"));
    let journal = journal.expect("read journal");
    let node =
        journal.split("\"node\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("find node");
    assert!(lines.values().all(|columns| columns[1] == node), "{lines:?}");
}

#[test]
fn many_files_of_output_need_few_descriptors() {
    let on = OnAgents::new();
    let jobs: Vec<String> = (1..=400).map(|number| number.to_string()).collect();
    let mut command = super::super::from("/bin/sh", "-c");
    command.env("MINDER_STATE_DIR", on.dir.path().join("state")).current_dir(on.dir.path());
    let line = "ulimit -n 60; exec \"$0\" run --on local:4 -j8 -k --quiet --success-output final \"$@\"";
    command.args([line, super::super::MINDER, "echo {}", ":::"]);
    let ended = Run::start(command.args(&jobs)).wait().exit_code(0);
    let expected: String = jobs.iter().map(|job| format!("{job}\n")).collect();
    assert_eq!(ended.text(), expected);
}

#[test]
fn removed_directory_of_an_agent_is_named() {
    let on = OnAgents::new();
    let script = "case {} in 1) : >up; test -e again || sleep 100;; esac; echo {}";
    let run = on.start("", script, &["1", "2", "3"]);
    on.wait_for("up");
    on.wait_for_results(2);
    run.kill();
    run.wait();
    on.kill_agents();
    let lost = keys(&on.run_dir()).expect("read agents")[0];
    fs::remove_dir_all(lost.dir(&on.run_dir())).expect("remove directory");
    fs::write(on.dir.path().join("again"), "").expect("write");
    let resumed = Run::start(&on.command("resume")).wait().exit_code(0);
    // One that had claimed nothing is not needed.
    let has_claimed = fs::read_dir(on.run_dir().join("rounds/1/claims")).expect("read claims").any(|claim| {
        fs::read_to_string(claim.expect("read entry").path()).expect("read claim").contains(&lost.to_string())
    });
    let line =
        format!("agent {lost} of the record in `{}` is missing: what only it ran", on.run_dir().display());
    assert_eq!(resumed.err.contains(&line), has_claimed, "{}", resumed.err);
    let again = Run::start(&on.command("resume")).wait().exit_code(0);
    assert!(!again.err.contains("is missing"), "{}", again.err);
}

/// Changes the name of the machine in the journal of an agent.
fn rename_node(run: &Path, agent: AgentKey, to: &str) {
    let path = agent.dir(run).join("journal.jsonl");
    let text = fs::read(&path).expect("read journal");
    let end = text.iter().position(|byte| *byte == b'\n').expect("find the end of the first line");
    let Ok(JournalEvent::AttemptStarted(mut started)) = codec::decode(&text[..end]) else {
        panic!("the first line is another event")
    };
    started.node = Some(to.to_owned());
    let mut changed = Vec::new();
    codec::encode(&JournalEvent::AttemptStarted(started), &mut changed);
    changed.extend_from_slice(&text[end + 1..]);
    fs::write(&path, changed).expect("write journal");
}

#[test]
fn log_names_nodes_and_superseded_results() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:2 -j1 -k --quiet");
    let script = "[ {} != 1 ] || until test -e up; do sleep 0.01; done; [ {} != 2 ] || : >up; echo {}";
    Run::start(command.args([script, ":::", "1", "2"])).wait().exit_code(0);
    let run = on.run_dir();
    let id = run.file_name().expect("find id").to_string_lossy().into_owned();
    let log = |flags: &str| {
        let ended = Run::start(&on.command(format!("log {id} {flags}").trim())).wait().exit_code(0);
        assert_eq!(ended.err, "");
        ended.text()
    };
    let head = |text: &str| text.lines().next().expect("find head").to_owned();
    assert!(!head(&log("")).contains("node"), "all agents have one node");
    assert_eq!(log("--follow").lines().count(), 3);
    let agents = keys(&run).expect("read agents");
    for (agent, node) in agents.iter().zip(["n1", "n2"]) {
        rename_node(&run, *agent, node);
    }
    let table = log("");
    assert!(head(&table).contains("arguments") && head(&table).contains(" node "), "{table}");
    assert!(table.contains(" n1 ") && table.contains(" n2 "), "{table}");
    let csv = log("--csv");
    assert!(head(&csv).contains(",cause,node,agent,"), "{csv}");
    for (agent, node) in agents.iter().zip(["n1", "n2"]) {
        assert!(csv.contains(&format!(",{node},{agent},")), "{csv}");
        assert!(log("--json").contains(&format!("\"node\":\"{node}\",\"agent\":\"{agent}\"")));
    }
    let mut query = on.command(&format!("log {id} --csv --sql"));
    let counted = Run::start(query.arg("select count(distinct node), count(agent) from jobs")).wait();
    assert!(counted.text().ends_with("2,2\r\n"), "{counted:?}");

    // The other agent takes the claim of job 1 over, and both write a result.
    let is_first = |key: &&AgentKey| {
        fs::read_to_string(key.dir(&run).join("journal.jsonl")).expect("read journal").contains("\"job\":1,")
    };
    let first = **agents.iter().filter(is_first).collect::<Vec<_>>().first().expect("find agent");
    let other = agents.iter().copied().find(|key| *key != first).expect("find the other agent");
    let mut lines = Vec::new();
    codec::encode(&JournalEvent::Claimed(Claimed { claim: 1, epoch: 2, first: 1, last: 1 }), &mut lines);
    let journals = vec![SealedJournal { agent: first, bytes: 0 }];
    codec::encode(&JournalEvent::Sealed(Sealed { claim: 1, epoch: 2, journals }), &mut lines);
    let ended = JobFinished { job: 1, exit: Some(3), ..JobFinished::default() };
    codec::encode(&JournalEvent::JobFinished(ended), &mut lines);
    let path = other.dir(&run).join("journal.jsonl");
    let mut text = fs::read(&path).expect("read journal");
    text.extend_from_slice(&lines);
    fs::write(&path, text).expect("write journal");
    let page = log("1");
    assert!(page.contains("exit 3") && page.contains(&format!("(agent {other})")), "{page}");
    assert!(page.contains("superseded: exit 0") && page.contains(&format!("(agent {first})")), "{page}");
    let page = log("2");
    assert!(page.contains("\nnode ") && !page.contains("superseded"), "{page}");

    // Damage is named.
    let text = fs::read(&path).expect("read journal");
    fs::write(&path, &text[..text.len() - 1]).expect("write journal");
    let path = first.dir(&run).join("journal.jsonl");
    fs::write(&path, &fs::read(&path).expect("read journal")[1..]).expect("write journal");
    let err = Run::start(&on.command(&format!("log {id}"))).wait().exit_code(0).err;
    let damaged = format!("is damaged: agent {first}: its first line cannot be read");
    let torn = format!("is damaged: agent {other}: its last line is incomplete");
    assert!(err.contains(&damaged) && err.contains(&torn), "{err}");
}

#[test]
fn results_that_wait_for_their_turn_are_shown_when_the_run_is_resumed() {
    let on = OnAgents::new();
    let script = "echo {} >>started; case {} in 9) : >up; test -e again || sleep 100;; esac; echo {}";
    let run = on.start("-k", script, &["9", "1", "2", "3", "4"]);
    on.wait_for("up");
    on.wait_for_results(4);
    run.signal(Signal::INT);
    assert_eq!(run.wait().text(), "");
    fs::write(on.dir.path().join("again"), "").expect("write");
    let resumed = Run::start(&on.command("resume")).wait().exit_code(0);
    assert_eq!(resumed.text(), "9\n1\n2\n3\n4\n");
    assert_eq!(on.lines("started"), ["1", "2", "3", "4", "9", "9"]);
}

#[test]
fn halt_counts_results_that_wait_for_their_turn() {
    let on = OnAgents::new();
    let begun = Instant::now();
    let ended = on.start("-k --halt now,fail=1", "[ {} != 3 ] || exit 9; sleep 100", &["1", "2", "3"]).wait();
    assert_eq!(ended.status, ExitStatus::Exited(9), "{ended:?}");
    assert!(begun.elapsed() < SOON);
}
