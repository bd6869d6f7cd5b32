//! Coordinators that come and go, and agents that continue: `--detach`, `minder attach` and `minder cancel`.

use std::fs;
use std::time::Duration;

use minder::{Group, Size};
use minder_cluster::holder::{self, Holder, LastHolder, Who};
use minder_record::agents::keys;
use minder_record::run_state::{ComparedArgs, RunState};

use super::on_agents::{OnAgents, pid_of};
use super::*;

/// A job that waits until there is a file `again`.
const WAITS: &str = "until test -e again; do sleep 0.01; done";

/// Returns the lines of an output, sorted.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn go_on(on: &OnAgents) {
    fs::write(on.dir.path().join("again"), "").expect("write");
}

#[test]
fn detached_run_is_attached_to_as_if_it_ran_here() {
    let on = OnAgents::new();
    let script = format!("echo {{}} >>started; {WAITS}; echo o{{}}; echo e{{}} >&2; [ {{}} != 3 ]");
    let id = on.detach("-k --tag", &script, &["1", "2", "3", "4", "5", "6", "7", "8"]);
    let run = on.run_dir();
    assert_eq!(run.file_name().expect("a name").to_str(), Some(id.as_str()));
    assert_eq!(on.working().len(), 3);
    let attached = Run::start(&on.command("attach"));
    go_on(&on);
    let ended = attached.wait().exit_code(1);
    let expected: String = (1..=8).map(|job| format!("{job}\to{job}\n")).collect();
    assert_eq!(ended.text(), expected);
    let begun = format!("minder: attached to {id}: ");
    assert!(ended.err.starts_with(&begun) && ended.err.contains("8 jobs · 1 failed"), "{}", ended.err);
    assert!((1..=8).all(|job| ended.err.contains(&format!("{job}\te{job}\n"))), "{}", ended.err);
    assert_eq!(on.lines("started").len(), 8);
    on.wait_for_agents();

    // It has ended: nothing is shown again, and the exit status is the same.
    let before = fs::read_dir(&run).expect("read run").count();
    let again = Run::start(&on.command(&format!("attach {id}"))).wait().exit_code(1);
    assert_eq!(again.text(), "");
    let expected = format!("minder: nothing to attach to: run {id} is complete: ");
    assert!(again.err.starts_with(&expected), "{}", again.err);
    assert!(again.err.contains(&format!("(8 jobs, 1 failed: minder retry {id})")), "{}", again.err);
    assert_eq!(fs::read_dir(&run).expect("read run").count(), before, "nothing is recorded");
    let none = Run::start(&on.command("attach")).wait().exit_code(255);
    assert!(none.err.contains("no run on agents is without an end"), "{}", none.err);
}

#[test]
fn detached_input_of_a_pipe_is_read_to_its_end() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:2 -j2 -k --detach");
    let mut run = Run::start(command.arg(": >up{}; echo {}").stdin(Stdio::piped()));
    run.write(b"1\n2\n");
    on.wait_for("up2");
    run.read_for(Duration::from_millis(200));
    assert!(run.record().done.is_none(), "agents lack input");
    run.write(b"3\n");
    run.close();
    let id = run.wait().exit_code(0).text();
    on.wait_for_agents();
    let ended = Run::start(&on.command(&format!("attach {}", id.trim_end()))).wait().exit_code(0);
    assert_eq!(ended.text(), "1\n2\n3\n");
}

#[test]
fn agents_go_on_when_their_coordinator_is_killed_while_it_shows_output() {
    let on = OnAgents::new();
    let script = format!("echo {{}} >>started; case {{}} in 6|7|8) {WAITS};; esac; echo {{}}; [ {{}} != 2 ]");
    let mut run = on.start("--joblog log", &script, &["1", "2", "3", "4", "5", "6", "7", "8"]);
    run.wait_until("output", |record| text(&record.outs[0]).lines().count() == 5);
    // The output was written before that is recorded.
    let shown = || {
        let (state, _) = RunState::of_run(&on.run_dir(), ComparedArgs::None).expect("read state");
        state.unshown_by_agents.is_empty()
    };
    run.wait_until_true("the record of output", shown);
    run.kill();
    let first = run.wait().text();
    assert_eq!(on.working().len(), 3);
    go_on(&on);
    // All jobs count, also those that were shown.
    let second = Run::start(&on.command("attach")).wait().exit_code(1);
    let second = second.text();
    assert_eq!((sorted(&first), sorted(&second)), (vec!["1", "2", "3", "4", "5"], vec!["6", "7", "8"]));
    assert_eq!(on.lines("started").len(), 8);
    assert_eq!(on.lines("log").len(), 9, "a header, and a line for each job");
    let (state, _) = RunState::of_run(&on.run_dir(), ComparedArgs::All).expect("read state");
    assert!(state.is_complete() && state.failed.len() == 1);
}

#[test]
fn results_that_waited_for_their_turn_are_logged_once() {
    let on = OnAgents::new();
    let script = format!("case {{}} in 1) {WAITS};; esac; echo {{}}");
    // The halt policy counts each result at once.
    let run = on.start("-k --halt now,fail=9 --joblog log", &script, &["1", "2", "3", "4"]);
    on.wait_for_lines("log", 4);
    run.kill();
    assert_eq!(run.wait().text(), "");
    go_on(&on);
    let ended = Run::start(&on.command("attach")).wait().exit_code(0);
    assert_eq!((ended.text().as_str(), on.lines("log").len()), ("1\n2\n3\n4\n", 5));
}

#[test]
fn agent_that_is_killed_while_detached_costs_no_result() {
    let on = OnAgents::new();
    let script = format!("echo {{}} >>started; {WAITS}; echo {{}}");
    on.detach("-k", &script, &["1", "2", "3", "4", "5", "6"]);
    on.wait_for("started");
    kill_process(on.first_agent(), Signal::KILL).expect("kill agent");
    go_on(&on);
    let ended = Run::start(&on.command("attach")).wait().exit_code(0);
    assert_eq!(ended.text(), "1\n2\n3\n4\n5\n6\n");
    let (state, _) = RunState::of_run(&on.run_dir(), ComparedArgs::All).expect("read state");
    assert!(state.is_complete());
}

#[test]
fn run_whose_agents_are_gone_is_resumed() {
    let on = OnAgents::new();
    let script = format!("case {{}} in 4|5|6) {WAITS};; esac; echo {{}}");
    let id = on.detach("", &script, &["1", "2", "3", "4", "5", "6"]);
    on.wait_for_results(3);
    on.kill_agents();
    let ended = Run::start(&on.command("attach")).wait().exit_code(255);
    let shown = ended.text();
    assert_eq!(sorted(&shown), ["1", "2", "3"]);
    let expected = format!("no host works on the run any more, and 3 jobs left (minder resume {id})");
    assert!(ended.err.contains(&expected), "{}", ended.err);
    go_on(&on);
    let ended = Run::start(&on.command("resume")).wait().exit_code(0);
    let shown = ended.text();
    assert_eq!(sorted(&shown), ["4", "5", "6"]);
}

#[test]
fn results_wait_for_their_turn_until_the_rest_has_run() {
    let on = OnAgents::new();
    let script = format!("echo {{}} >>started; [ {{}} != 2 ] || {WAITS}; echo {{}}");
    on.detach("-k", &script, &["1", "2", "3", "4", "5", "6"]);
    on.wait_for_results(5);
    on.kill_agents();
    go_on(&on);
    // While the agents count as working, it waits for them. Then it starts others for job 2.
    let ended = Run::start(&on.command("resume")).wait().exit_code(0);
    assert_eq!(ended.text(), "1\n2\n3\n4\n5\n6\n");
    assert_eq!(on.lines("started"), ["1", "2", "2", "3", "4", "5", "6"]);
    assert!(on.run_dir().join("rounds/2").is_dir());
}

#[test]
fn agents_that_work_are_waited_for_by_resume_and_refuse_retry() {
    let on = OnAgents::new();
    let script = format!("echo {{}} >>started; [ {{}} != 2 ] || exit 1; {WAITS}; echo {{}}");
    let id = on.detach("-k", &script, &["1", "2", "3"]);
    on.wait_for_results(1);
    let retried = Run::start(&on.command("retry")).wait().exit_code(255);
    let expected = format!("agents still work on the run: wait for them first (minder attach {id})");
    assert!(retried.err.contains(&expected), "{}", retried.err);
    let mut resumed = Run::start(&on.command("resume"));
    resumed.wait_until("its beginning", |record| text(&record.outs[1]).contains("resuming"));
    go_on(&on);
    assert_eq!(resumed.wait().exit_code(1).text(), "1\n3\n");
    assert_eq!(on.lines("started"), ["1", "2", "3"]);
}

#[test]
fn second_coordinator_names_the_first() {
    let on = OnAgents::new();
    let id = on.detach("", &format!("{WAITS}; echo {{}}"), &["1"]);
    let mut first = Run::start(&on.command("attach"));
    first.wait_until("its beginning", |record| text(&record.outs[1]).contains("attached to"));
    let second = Run::start(&on.command("attach")).wait().exit_code(255);
    let node = minder_os::machine::name();
    let expected = format!("minder: run {id} is in use by another minder on {node} (pid {})\n", first.pid());
    assert_eq!(second.err, expected);
    go_on(&on);
    assert_eq!(first.wait().exit_code(0).text(), "1\n");
}

#[cfg(target_os = "linux")] // There are filters of system calls.
#[test]
fn coordinators_need_no_locks() {
    let on = OnAgents::new();
    let minder = |line: &str| {
        let mut command = from(env!("CARGO_BIN_EXE_seccomp_run"), "flock-none");
        command.arg(MINDER).args(arguments(line)).current_dir(on.dir.path());
        command.env("MINDER_STATE_DIR", on.dir.path().join("state"));
        command
    };
    let mut begin = minder("run --on local:2 --lost-after 4 --detach");
    let ended = Run::start(begin.arg(format!("{WAITS}; echo {{}}")).args([":::", "1"])).wait().exit_code(0);
    assert_eq!(ended.err, "");
    let mut first = Run::start(&minder("attach"));
    first.wait_until("its beginning", |record| text(&record.outs[1]).contains("attached to"));
    let second = Run::start(&minder("attach")).wait().exit_code(255);
    let holder = format!("is in use by another minder on {} (pid ", minder_os::machine::name());
    assert!(second.err.contains(&holder), "{}", second.err);
    go_on(&on);
    assert_eq!(first.wait().exit_code(0).text(), "1\n");
}

#[test]
fn coordinator_of_another_machine_is_observed() {
    let on = OnAgents::new();
    let id = on.detach("", &format!("{WAITS}; echo {{}}"), &["1"]);
    let run = on.run_dir();
    // As if this process were on another machine.
    let other = Who { node: "n7".to_owned(), boot: None, pid: 4711, started: None, version: "0".to_owned() };
    let last = holder::last(&run, &other).expect("read holders");
    assert_eq!(last, LastHolder::Over(1));
    let mut held = Holder::make(&run, &last, &other).expect("make").expect("the only one");
    let mut second = Run::start(&on.command("attach"));
    second.wait_until("its line", |record| text(&record.outs[1]).contains("waiting to see"));
    held.beat.beat(0, 0).expect("beat");
    let second = second.wait().exit_code(255);
    let expected = format!("minder: run {id} is in use by another minder on n7 (pid 4711)\n");
    assert!(second.err.ends_with(&expected), "{}", second.err);
    // Without beats, it counts as lost.
    go_on(&on);
    assert_eq!(Run::start(&on.command("attach")).wait().exit_code(0).text(), "1\n");
}

#[test]
fn coordinator_that_was_replaced_shows_nothing_more() {
    let on = OnAgents::new();
    let run = on.start("", &format!(": >up; {WAITS}; echo {{}}"), &["1"]);
    on.wait_for("up");
    fs::create_dir(on.run_dir().join("holder/2")).expect("create directory");
    let ended = run.wait().exit_code(255);
    assert!(ended.err.contains("another minder has taken it over (minder attach "), "{}", ended.err);
    assert!(!on.working().is_empty(), "its agents continue");
    go_on(&on);
    assert_eq!(Run::start(&on.command("attach")).wait().exit_code(0).text(), "1\n");
}

#[test]
fn input_that_no_coordinator_reads_ends_the_agents() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:1 -j1 --lost-after 4 --quiet");
    let mut run = Run::start(command.arg("echo {}; : >up{}").stdin(Stdio::piped()));
    run.write(b"1\n");
    on.wait_for("up1");
    run.wait_until("output", |record| text(&record.outs[0]) == "1\n");
    run.kill();
    run.wait();
    on.wait_for_agents();
    let ended = Run::start(&on.command("attach")).wait().exit_code(255);
    assert!(ended.err.contains("the input of the run was not read to its end"), "{}", ended.err);
}

#[test]
fn interrupt_ends_the_agents_of_an_earlier_coordinator() {
    let on = OnAgents::new();
    let id = on.detach("", &format!(": >up{{}}; {WAITS}; echo {{}}"), &["1", "2"]);
    on.wait_for("up1");
    let mut run = Run::start(&on.command("attach"));
    run.wait_until("its beginning", |record| text(&record.outs[1]).contains("attached to"));
    run.signal(Signal::INT);
    let ended = run.wait().killed_by(Signal::INT);
    assert!(ended.err.contains(&format!("minder resume {id}")), "{}", ended.err);
    assert!(on.working().is_empty(), "they were waited for");
    assert!(ended.wall < SOON);
}

#[cfg(any(target_os = "linux", target_os = "android"))] // `/dev/full`.
#[test]
fn detached_run_whose_id_cannot_be_written_is_an_error() {
    let on = OnAgents::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open /dev/full");
    let mut command = on.command("run --on local:1 --detach");
    let ended = Run::start(command.args(["true", ":::", "1"]).stdout(full)).wait().exit_code(255);
    assert!(ended.err.contains("cannot write to standard output"), "{}", ended.err);
    Run::start(&on.command("attach last")).wait().exit_code(0);
}

#[test]
fn interrupt_may_detach() {
    let on = OnAgents::new();
    let mut run = on.start("--on-interrupt detach", &format!(": >up; {WAITS}; echo {{}}"), &["1", "2"]);
    on.wait_for("up");
    run.read_for(Duration::from_millis(300));
    run.signal(Signal::INT);
    let ended = run.wait().exit_code(0);
    assert!(ended.err.contains("detached from run ") && ended.text().is_empty(), "{}", ended.err);
    go_on(&on);
    let ended = Run::start(&on.command("attach")).wait().exit_code(0);
    let shown = ended.text();
    assert_eq!(sorted(&shown), ["1", "2"]);
}

#[test]
fn interrupt_cannot_detach_before_the_input_has_ended() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:1 -j1 --on-interrupt detach");
    let mut run = Run::start(command.arg(": >up; echo {}").stdin(Stdio::piped()));
    run.write(b"1\n");
    on.wait_for("up");
    run.signal(Signal::INT);
    run.wait_until("an answer", |record| text(&record.outs[1]).contains("cannot detach from the run"));
    run.read_for(Duration::from_millis(500));
    run.signal(Signal::INT);
    let ended = run.wait().killed_by(Signal::INT);
    assert!(ended.err.contains("its input is still being read"), "{}", ended.err);
}

#[test]
fn interrupt_asks_on_a_terminal() {
    let on = OnAgents::new();
    let mut command = on.command("run --on local:2 -j1 --lost-after 4");
    command.group(Group::Terminal(Size::new(24, 100))).stdin(Stdio::inherit()).env("TERM", "xterm");
    let mut run = Run::start(command.args([&format!(": >up{{}}; {WAITS}; echo o''k{{}}"), ":::", "1", "2"]));
    on.wait_for("up1");
    on.wait_for("up2");
    run.read_for(Duration::from_millis(500));
    let asked = |run: &mut Run, times: usize| {
        run.write(b"\x03");
        run.wait_until("the question", |record| {
            text(&record.outs[0]).matches("or go on? [c/d/g] ").count() == times
        });
        // One that follows at once counts as the same key.
        run.read_for(Duration::from_millis(500));
    };
    asked(&mut run, 1);
    run.write(b"x\n");
    run.wait_until("the question", |record| text(&record.outs[0]).matches("[c/d/g]").count() == 2);
    run.write(b"g\n");
    run.read_for(Duration::from_millis(300));
    assert!(run.record().done.is_none(), "it continues");
    asked(&mut run, 3);
    run.write(b"d\n");
    let ended = run.wait().exit_code(0);
    assert!(ended.text().contains("detached from run "), "{}", ended.text());
    assert_eq!(on.working().len(), 2);

    let mut command = on.command("attach");
    command.group(Group::Terminal(Size::new(24, 100))).stdin(Stdio::inherit()).env("TERM", "xterm");
    let mut run = Run::start(&command);
    run.wait_until("its beginning", |record| text(&record.outs[0]).contains("attached to"));
    run.read_for(Duration::from_millis(300));
    asked(&mut run, 1);
    // A second one ends the run.
    run.write(b"\x03");
    run.wait().killed_by(Signal::INT);
    assert!(on.working().is_empty());
}

#[test]
fn closed_output_of_a_later_coordinator_leaves_the_agents_alone() {
    let on = OnAgents::new();
    let script = format!("case {{}} in 2) {WAITS};; esac; echo {{}}");
    on.detach("-k", &script, &["1", "2"]);
    on.wait_for_results(1);
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" attach | :", MINDER]).current_dir(on.dir.path());
    shell.env("MINDER_STATE_DIR", on.dir.path().join("state"));
    Run::start(&shell).wait();
    assert!(!on.working().is_empty());
    go_on(&on);
    assert_eq!(Run::start(&on.command("attach")).wait().exit_code(0).text(), "1\n2\n");
}

#[test]
fn resumed_run_may_be_detached_from() {
    let on = OnAgents::new();
    let run = on.start("", &format!(": >up; {WAITS}; echo {{}}"), &["1", "2"]);
    on.wait_for("up");
    run.signal(Signal::INT);
    run.wait().killed_by(Signal::INT);
    let ended = Run::start(&on.command("resume --detach")).wait().exit_code(0);
    let again = Run::start(&on.command("resume --detach")).wait().exit_code(0);
    assert_eq!(ended.text(), again.text());
    assert_eq!(on.working().len(), 3, "the second one starts none");
    go_on(&on);
    let ended = Run::start(&on.command("attach")).wait().exit_code(0);
    let shown = ended.text();
    assert_eq!(sorted(&shown), ["1", "2"]);
}

#[test]
fn cancelled_run_can_be_resumed() {
    let on = OnAgents::new();
    let script = format!("case {{}} in 3|4) : >up{{}}; {WAITS};; esac; echo {{}}");
    let id = on.detach("", &script, &["1", "2", "3", "4"]);
    on.wait_for("up3");
    on.wait_for("up4");
    on.wait_for_results(2);
    let begun = Instant::now();
    let ended = Run::start(&on.command(&format!("cancel {id}"))).wait().exit_code(0);
    let expected = format!("minder: run {id}: 2 running jobs stopped, 2 of 4 done (minder resume {id})\n");
    assert_eq!(ended.err, expected);
    assert!(begun.elapsed() < SOON && on.working().is_empty());
    let again = Run::start(&on.command(&format!("cancel {id}"))).wait().exit_code(0);
    let expected = format!("minder: run {id}: no agent works on it, 2 of 4 done (minder resume {id})\n");
    assert_eq!(again.err, expected);
    go_on(&on);
    let ended = Run::start(&on.command("resume")).wait().exit_code(0);
    let shown = ended.text();
    assert_eq!(sorted(&shown), ["1", "2", "3", "4"]);
}

#[test]
fn cancelled_run_ends_its_coordinator() {
    let on = OnAgents::new();
    let run = on.start("", &format!(": >up{{}}; {WAITS}"), &["1", "2"]);
    on.wait_for("up1");
    on.wait_for("up2");
    let ended = Run::start(&on.command("cancel last")).wait().exit_code(0);
    assert!(ended.err.contains("2 running jobs stopped, 0 of 2 done"), "{}", ended.err);
    let ended = run.wait().exit_code(255);
    assert!(ended.err.contains("the run was cancelled, and 2 jobs left"), "{}", ended.err);
}

#[test]
fn status_and_log_show_a_detached_run() {
    let on = OnAgents::new();
    let script = format!("case {{}} in 3|4) : >up{{}}; {WAITS};; esac; [ {{}} != 2 ]");
    let id = on.detach("", &script, &["1", "2", "3", "4", "5"]);
    on.wait_for("up3");
    on.wait_for("up4");
    on.wait_for_results(3);
    // Beats say how many jobs are open.
    let until = Instant::now() + PATIENCE;
    loop {
        let ended = Run::start(&on.command("status")).wait().exit_code(0);
        let shown = ended.text();
        assert!(shown.starts_with(&format!("run {id} (detached): ")), "{shown}");
        assert!(shown.contains("3 of 5 done · 1 failed · "), "{shown}");
        assert_eq!(shown.matches(" ago\n").count(), 3, "{shown}");
        if shown.contains(" · 2 running · 0 left · ") {
            break;
        }
        assert!(Instant::now() < until, "{shown}");
        std::thread::park_timeout(Duration::from_millis(100)); // There is no event for a beat.
    }
    let ended = Run::start(&on.command(&format!("status --json {id}"))).wait().exit_code(0);
    let document: serde_json::Value = serde_json::from_str(&ended.text()).expect("parse status");
    assert_eq!((&document["done"], &document["total"]), (&3.into(), &5.into()));
    assert!(document["coordinator"].is_null(), "{document}");
    let agents = document["agents"].as_array().expect("a list of agents");
    assert_eq!(agents.len(), 3);
    let sum = |name: &str| agents.iter().map(|agent| agent[name].as_u64().expect("a number")).sum::<u64>();
    assert_eq!((sum("jobs"), sum("failed"), sum("running")), (3, 1, 2));
    assert!(agents.iter().all(|agent| agent["node"] == minder_os::machine::name() && agent["over"] == false));
    let listed = Run::start(&on.command("log")).wait().exit_code(0).text();
    let line = listed.lines().nth(1).expect("a run");
    assert!(line.contains("detached · minder attach ") && line.contains(" 3 "), "{line}");

    let mut followed = Run::start(&on.command("log --follow"));
    followed.wait_until("jobs", |record| text(&record.outs[0]).lines().count() >= 4);
    let mut attached = Run::start(&on.command("attach"));
    attached.wait_until("its beginning", |record| text(&record.outs[1]).contains("attached to"));
    let shown = Run::start(&on.command("status")).wait().exit_code(0).text();
    let node = minder_os::machine::name();
    assert!(shown.starts_with(&format!("run {id} (pid {} on {node}): ", attached.pid())), "{shown}");
    go_on(&on);
    attached.wait().exit_code(1);
    let followed = followed.wait().exit_code(0).text();
    assert_eq!(followed.lines().count(), 6, "{followed}");
    let listed = Run::start(&on.command("log")).wait().exit_code(0).text();
    assert!(listed.lines().nth(1).expect("a run").contains(" 5 "), "{listed}");
    let none = Run::start(&on.command("status")).wait().exit_code(0);
    assert!(none.err.contains("no run is running here"), "{}", none.err);
}

#[test]
fn agents_are_in_sessions_apart_and_keep_their_messages() {
    let on = OnAgents::new();
    on.detach("", &format!("{WAITS}; echo {{}}"), &["1"]);
    let run = on.run_dir();
    for key in keys(&run).expect("read agents") {
        let agent = pid_of(&run, key);
        // 0 is a session that began outside of the PID namespace, which rustix does not take.
        let session = |pid| nix::unistd::getsid(pid).expect("get session");
        let agent = nix::unistd::Pid::from_raw(agent.as_raw_nonzero().get());
        assert_ne!(session(Some(agent)), session(None));
    }
    let log = fs::metadata(run.join("rounds/1/agent-3.log")).expect("find file");
    let mode = std::os::unix::fs::PermissionsExt::mode(&log.permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(!run.join("rounds/1/agent-4.log").exists());
    go_on(&on);
    on.wait_for_agents();
}
