//! Children that are started again after they exited.

use std::time::{Duration, Instant};

use minder::{
    ChildId, ChildSet, ChildSetOptions, Command, ErrorKind, Event, ExitStatus, NextEvent, Operation, Outcome,
    OverflowPolicy, Restart, RestartPolicy, SpawnOptions, Stdio, Termination,
};

use crate::support::{each_backend, limits, next_event, patience, quiet_child, test_child};

const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

fn policy(when: Restart) -> RestartPolicy {
    RestartPolicy::new(when).backoff(MS).jitter(0.0)
}

fn options(policy: RestartPolicy) -> SpawnOptions {
    SpawnOptions::new().restart(policy)
}

/// Writes the events of one child as short words.
fn words(set: &mut ChildSet, id: ChildId, until: impl Fn(&Event) -> bool) -> String {
    let mut words = Vec::new();
    loop {
        let event = next_event(set, patience());
        if matches!(event, Event::Woken) {
            continue;
        }
        assert_eq!(event.child(), Some(id));
        let is_last = until(&event);
        words.push(match &event {
            Event::Output { chunk, .. } => format!("{}", chunk.len()),
            Event::Eof { .. } => "eof".into(),
            Event::Exited { exit, .. } => exit.status.to_string(),
            Event::Restarting { restarts, delay, .. } => {
                format!("restarting-{restarts}-{}", delay.as_millis())
            }
            Event::Restarted { pid, .. } => {
                assert_eq!(set.pid(id).expect("a child that runs has a pid"), *pid);
                "restarted".into()
            }
            Event::RestartFailed { error, .. } => format!("failed-{:?}", error.operation()),
            Event::Done { outcome, .. } => format!("done-{}", outcome.exit.status),
            other => format!("{other:?}"),
        });
        if is_last {
            return words.join(" ");
        }
    }
}

/// A child that runs in the directory `work` of a new directory until its input ends.
fn child_in_directory() -> (tempfile::TempDir, Command) {
    let dir = tempfile::tempdir().expect("create directory");
    let work = dir.path().join("work");
    std::fs::create_dir(&work).expect("create directory");
    let mut command = quiet_child("cat");
    command.current_dir(&work).stdin(Stdio::piped());
    (dir, command)
}

fn is_done(event: &Event) -> bool {
    matches!(event, Event::Done { .. })
}

fn wait_for_done(set: &mut ChildSet) -> Outcome {
    let until = patience();
    loop {
        if let Event::Done { outcome, .. } = next_event(set, until) {
            return outcome;
        }
    }
}

#[test]
fn failing_child_is_restarted_under_the_same_id_up_to_the_limit() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut command = test_child("relay 5 0 3");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let policy = policy(Restart::OnFailure).max_backoff(3 * MS).max_restarts(Some(3));
        let id = set.spawn(&command, options(policy)).expect("spawn test child");
        let run = |next: &str| format!("5 exit 3 eof {next}");
        let expected = [
            run("restarting-1-1 restarted"),
            run("restarting-2-2 restarted"),
            run("restarting-3-3 restarted"),
            run("done-exit 3"),
        ];
        let mut observed = words(&mut set, id, is_done);
        // The exit and the end of the output come in any order.
        observed = observed.replace("eof exit 3", "exit 3 eof").replace("exit 3 5", "5 exit 3");
        assert_eq!(observed, expected.join(" "));
        assert!(set.is_empty() && set.pid(id).is_err());
    });
}

#[test]
fn exits_that_the_policy_does_not_name_end_the_child() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        for (when, code) in [(Restart::Never, 1), (Restart::OnFailure, 0)] {
            let child = quiet_child(&format!("exit {code}"));
            let id = set.spawn(&child, options(policy(when))).expect("spawn test child");
            assert_eq!(words(&mut set, id, is_done), format!("exit {code} done-exit {code}"));
        }
        let always = options(policy(Restart::Always).max_restarts(Some(1)));
        let id = set.spawn(&quiet_child("exit 0"), always).expect("spawn test child");
        assert_eq!(words(&mut set, id, is_done), "exit 0 restarting-1-1 restarted exit 0 done-exit 0");
    });
}

#[test]
fn stable_run_ends_the_row_of_restarts() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let policy =
        policy(Restart::OnFailure).backoff(10 * MS).stable_after(Duration::ZERO).max_restarts(Some(1));
    let id = set.spawn(&quiet_child("exit 1"), options(policy)).expect("spawn test child");
    let mut restarts = 0;
    let observed = words(&mut set, id, |event| {
        // More than the limit, since no run is short.
        matches!(event, Event::Restarting { restarts: 5, .. })
    });
    observed.split("restarting-").skip(1).for_each(|rest| {
        restarts += 1;
        assert!(rest.starts_with(&format!("{restarts}-10")), "{observed}");
    });
    set.kill(id, Termination::IMMEDIATE).expect("kill a child between two runs");
    assert_eq!(words(&mut set, id, is_done), "done-exit 1");
}

#[test]
fn kill_ends_the_restarts_of_a_child() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let always = options(policy(Restart::Always).backoff(HOUR).max_backoff(HOUR));
        // While it runs.
        let id = set.spawn(&quiet_child("sleep-ms 600000"), always).expect("spawn test child");
        set.kill(id, Termination::IMMEDIATE).expect("kill test child");
        assert!(wait_for_done(&mut set).killed);
        // While it waits for its next start.
        let id = set.spawn(&quiet_child("exit 1"), always).expect("spawn test child");
        words(&mut set, id, |event| matches!(event, Event::Restarting { .. }));
        assert_eq!(set.len(), 1);
        assert_eq!(set.pid(id).expect_err("a pid without a process").kind(), ErrorKind::Unknown);
        assert_eq!(set.write(id, b"x").expect_err("an input without a process").kind(), ErrorKind::Unknown);
        assert!(matches!(set.next_event(Some(MS)).expect("wait"), NextEvent::TimedOut));
        set.suspend(id).or_else(crate::support::unless_unsupported).expect("suspend nothing");
        set.kill_all(Termination::IMMEDIATE).expect("kill a child between two runs");
        set.kill(id, Termination::IMMEDIATE).expect("kill it again");
        assert!(!wait_for_done(&mut set).killed, "nothing ran when it was killed");
        assert!(matches!(set.next_event(None).expect("wait"), NextEvent::Empty));
    });
}

#[test]
fn restart_on_request_needs_a_policy_and_waits_for_no_delay() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let lone = set.spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::new()).expect("spawn test child");
        let error = set.restart(lone, Termination::IMMEDIATE).expect_err("restart without a policy");
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, Operation::Spawn));
        set.kill(lone, Termination::IMMEDIATE).expect("kill test child");
        wait_for_done(&mut set);

        let patient = options(policy(Restart::OnFailure).backoff(HOUR).max_backoff(HOUR));
        let id = set.spawn(&quiet_child("sleep-ms 600000"), patient).expect("spawn test child");
        let first_pid = set.pid(id).expect("a pid");
        set.restart(id, Termination::IMMEDIATE).expect("restart a child that runs");
        let observed = words(&mut set, id, |event| matches!(event, Event::Restarted { .. }));
        assert!(observed.contains("restarting-1-0 restarted"), "{observed}");
        assert_ne!(set.pid(id).expect("a pid"), first_pid);
        set.kill(id, Termination::IMMEDIATE).expect("kill test child");
        wait_for_done(&mut set);

        let id = set.spawn(&quiet_child("exit 1"), patient).expect("spawn test child");
        words(&mut set, id, |event| matches!(event, Event::Restarting { .. }));
        set.restart(id, Termination::IMMEDIATE).expect("restart a child between two runs");
        let observed = words(&mut set, id, |event| matches!(event, Event::Restarting { .. }));
        assert!(observed.starts_with("restarted exit 1 restarting-2-"), "{observed}");
        set.kill(id, Termination::IMMEDIATE).expect("kill a child between two runs");
        wait_for_done(&mut set);
        assert_eq!(set.restart(id, Termination::IMMEDIATE).expect_err("restart").kind(), ErrorKind::Unknown);
    });
}

#[test]
fn restart_on_request_begins_the_row_again() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let limit = options(policy(Restart::Always).max_restarts(Some(2)));
    let id = set.spawn(&quiet_child("exit 1"), limit).expect("spawn test child");
    words(&mut set, id, |event| matches!(event, Event::Restarting { restarts: 2, .. }));
    set.restart(id, Termination::IMMEDIATE).expect("restart a child between two runs");
    let observed = words(&mut set, id, is_done);
    assert!(observed.contains(" restarting-4-2 "), "{observed}");
    assert!(observed.ends_with(" restarted exit 1 done-exit 1"), "{observed}");
}

#[test]
fn restart_on_request_after_the_last_failed_start_is_carried_out() {
    let (dir, command) = child_in_directory();
    let work = dir.path().join("work");
    let moved = dir.path().join("moved");
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let limit = options(policy(Restart::Always).max_restarts(Some(1)));
    let id = set.spawn(&command, limit).expect("spawn test child");
    set.close_stdin(id).expect("end the child");
    words(&mut set, id, |event| matches!(event, Event::Exited { .. }));
    std::fs::rename(&work, &moved).expect("move directory");
    words(&mut set, id, |event| matches!(event, Event::RestartFailed { .. }));
    // The child is done otherwise.
    std::fs::rename(&moved, &work).expect("move directory back");
    set.restart(id, Termination::IMMEDIATE).expect("restart a child that could not be started");
    assert_eq!(words(&mut set, id, |event| matches!(event, Event::Restarted { .. })), "restarted");
    set.kill(id, Termination::IMMEDIATE).expect("kill test child");
    wait_for_done(&mut set);
}

#[cfg(unix)]
#[test]
fn suspended_child_is_not_started_again_before_it_is_resumed() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let id = set.spawn(&quiet_child("exit 1"), options(policy(Restart::Always))).expect("spawn test child");
    words(&mut set, id, |event| matches!(event, Event::Restarting { .. }));
    set.suspend(id).expect("suspend a child between two runs");
    expect_start_after_resume(set, id);
}

#[cfg(unix)]
#[test]
fn child_that_is_suspended_while_it_is_killed_is_not_started_again_before_it_is_resumed() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let command = quiet_child("sleep-ms 600000");
    let id = set.spawn(&command, options(policy(Restart::Always))).expect("spawn test child");
    set.restart(id, Termination::IMMEDIATE).expect("restart test child");
    set.suspend(id).expect("suspend a child that is being killed");
    words(&mut set, id, |event| matches!(event, Event::Restarting { .. }));
    expect_start_after_resume(set, id);
}

/// Waits for a time in which a child that is not suspended would be started again, and resumes it.
#[cfg(unix)]
fn expect_start_after_resume(mut set: ChildSet, id: ChildId) {
    let until = Instant::now() + 50 * MS;
    loop {
        match set.next_event_deadline(Some(until)).expect("wait for event") {
            NextEvent::Event(Event::Woken) => (),
            NextEvent::TimedOut => break,
            other => panic!("{other:?}"),
        }
    }
    set.resume(id).expect("resume");
    let observed = words(&mut set, id, |event| matches!(event, Event::Restarted { .. }));
    assert_eq!(observed, "restarted");
    set.kill(id, Termination::IMMEDIATE).expect("kill test child");
    wait_for_done(&mut set);
}

#[test]
fn failed_start_is_reported_and_tried_again() {
    let (dir, command) = child_in_directory();
    let work = dir.path().join("work");
    let moved = dir.path().join("moved");
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let id = set.spawn(&command, options(policy(Restart::Always))).expect("spawn test child");
    // A directory of a process cannot be moved on Windows.
    set.close_stdin(id).expect("end the child");
    words(&mut set, id, |event| matches!(event, Event::Exited { .. }));
    std::fs::rename(&work, &moved).expect("move directory");
    let mut failures = 0;
    while failures < 3 {
        match next_event(&mut set, patience()) {
            Event::RestartFailed { child, error, .. } => {
                assert_eq!((child, error.operation()), (id, Operation::EnterDirectory));
                failures += 1;
            }
            Event::Restarting { .. } | Event::Eof { .. } => assert_eq!(failures, 0),
            other => panic!("{other:?}"),
        }
    }
    std::fs::rename(&moved, &work).expect("move directory back");
    words(&mut set, id, |event| matches!(event, Event::Restarted { .. }));
    // It runs with a new input.
    assert_eq!(set.write(id, b"text").expect("write to the next run"), 4);
    set.kill(id, Termination::IMMEDIATE).expect("kill test child");
    wait_for_done(&mut set);

    let limit = options(policy(Restart::Always).max_restarts(Some(2)));
    let id = set.spawn(&command, limit).expect("spawn test child");
    set.close_stdin(id).expect("end the child");
    words(&mut set, id, |event| matches!(event, Event::Exited { .. }));
    std::fs::rename(&work, &moved).expect("move directory");
    let observed = words(&mut set, id, is_done);
    let attempts = "restarting-1-1 failed-EnterDirectory failed-EnterDirectory done-exit 0";
    assert!(observed.ends_with(attempts), "{observed}");
}

#[test]
fn output_of_every_run_arrives_whatever_the_policy_for_memory_is() {
    each_backend(|backend| {
        for overflow in [OverflowPolicy::Block, OverflowPolicy::Spill] {
            let config = limits(backend).max_buffered_bytes(100_000).max_child_bytes(10_000);
            let mut set = ChildSet::new(config.read_buffer_bytes(4096)).expect("create set");
            let mut command = test_child("relay 300000 100000 1");
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let policy = policy(Restart::OnFailure).max_restarts(Some(2));
            let options = options(policy).overflow(overflow);
            for _ in 0..3 {
                set.spawn(&command, options).expect("spawn test child");
            }
            let mut bytes = 0;
            let mut held = None;
            let all_done = set
                .wait_all(Some(patience() - Instant::now()), |event| {
                    if let Event::Output { chunk, .. } = event {
                        bytes += chunk.len();
                        held = Some(chunk);
                    }
                })
                .expect("wait for all");
            assert!(all_done);
            assert_eq!(bytes, 3 * 3 * 400_000, "{overflow:?}");
            drop(held);
            assert_eq!(set.buffered_bytes(), 0);
        }
    });
}

#[test]
fn deadline_ends_a_child_for_good() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let at = Instant::now() + 200 * MS;
    let forever = options(policy(Restart::Always)).deadline(at, Termination::IMMEDIATE);
    set.spawn(&quiet_child("sleep-ms 10"), forever).expect("spawn a child that exits again and again");
    wait_for_done(&mut set);
    assert!(Instant::now() >= at);
}

#[test]
fn wait_all_ends_at_its_timeout_and_keeps_the_children() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let id = set.spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::new()).expect("spawn test child");
    let start = Instant::now();
    assert!(!set.wait_all(Some(20 * MS), |event| panic!("{event:?}")).expect("wait for all"));
    assert!(start.elapsed() >= 20 * MS);
    set.kill(id, Termination::IMMEDIATE).expect("kill test child");
    let mut statuses = Vec::new();
    let handle = |event| {
        if let Event::Done { child, outcome, .. } = event {
            statuses.push((child, outcome.exit.status));
        }
    };
    assert!(set.wait_all(None, handle).expect("wait for all"));
    assert!(matches!(statuses[..], [(child, status)] if child == id && status != ExitStatus::Exited(0)));
    assert!(set.wait_all(None, |event| panic!("{event:?}")).expect("wait for none"));
}

#[cfg(target_os = "linux")]
#[test]
fn many_restarts_leave_no_descriptor_and_no_zombie() {
    use crate::support::{alone, open_descriptors, own_children};
    alone("set::restart::many_restarts_leave_no_descriptor_and_no_zombie", || {
        each_backend(|backend| {
            let before = open_descriptors();
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let mut command = test_child("relay 1 1 1");
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let each = if crate::support::is_long() { 30 } else { 12 };
            let policy = policy(Restart::Always).max_backoff(MS).max_restarts(Some(each));
            for _ in 0..8 {
                let id = set.spawn(&command, options(policy)).expect("spawn test child");
                set.close_stdin(id).expect("close input");
            }
            let mut restarts = 0;
            while !set.is_empty() {
                // Each run is looked for among all processes of the machine, which may be many.
                if let Event::Restarted { child, .. } = next_event(&mut set, patience()) {
                    restarts += 1;
                    set.close_stdin(child).expect("close the input of the next run");
                }
            }
            assert_eq!(restarts, 8 * each);
            drop(set);
            assert_eq!(open_descriptors(), before);
            assert!(own_children().is_empty(), "{:?}", own_children());
        });
    });
}

/// A pidfd that stays open would make the next run need one descriptor more than the first.
#[cfg(target_os = "linux")]
#[test]
fn child_that_waits_to_be_started_again_holds_no_descriptor() {
    use crate::support::{alone, open_descriptors};
    alone("set::restart::child_that_waits_to_be_started_again_holds_no_descriptor", || {
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        let before = open_descriptors();
        let patient = options(policy(Restart::Always).backoff(HOUR).max_backoff(HOUR));
        let id = set.spawn(&test_child("exit 1"), patient).expect("spawn test child");
        words(&mut set, id, |event| matches!(event, Event::Restarting { .. }));
        assert_eq!(open_descriptors(), before);
        set.kill(id, Termination::IMMEDIATE).expect("kill a child between two runs");
        wait_for_done(&mut set);
    });
}

/// Each run reads a file from where the first began, and writes behind what the last has written. A pipe
/// is read only once.
#[test]
fn each_run_reads_the_input_file_from_its_start() {
    use std::io::{Read, Seek, Write};
    each_backend(|backend| {
        for append in [false, true] {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let dir = tempfile::tempdir().expect("create directory");
            let mut input = tempfile::tempfile().expect("create temporary file");
            input.write_all(b"read before\nlines\n").expect("write input");
            input.seek(std::io::SeekFrom::Start(12)).expect("set position");
            let path = dir.path().join("output");
            std::fs::write(&path, "old\n").expect("write output");
            let mut output = std::fs::OpenOptions::new();
            let mut output = output.append(append).write(true).open(&path).expect("open output");
            if !append {
                output.seek(std::io::SeekFrom::End(0)).expect("set position");
            }
            let mut command = quiet_child("cat");
            command.stdin(input).stdout(output);
            let twice = options(policy(Restart::Always).max_restarts(Some(2)));
            set.spawn(&command, twice).expect("spawn test child");
            assert!(wait_for_done(&mut set).exit.status.success());
            let text = std::fs::read_to_string(&path).expect("read output");
            assert_eq!(text, "old\nlines\nlines\nlines\n", "append: {append}");
        }
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let (reader, mut writer) = std::io::pipe().expect("create pipe");
        writer.write_all(b"lines\n").expect("write input");
        drop(writer);
        let mut output = tempfile::tempfile().expect("create temporary file");
        let copy = output.try_clone().expect("duplicate handle");
        let mut command = quiet_child("cat");
        command.stdin(reader).stdout(copy);
        let once = options(policy(Restart::Always).max_restarts(Some(1)));
        set.spawn(&command, once).expect("spawn test child");
        assert!(wait_for_done(&mut set).exit.status.success());
        let mut text = String::new();
        output.rewind().and_then(|()| output.read_to_string(&mut text)).expect("read output");
        assert_eq!(text, "lines\n");
    });
}

/// The exit and the end of the input are reported together, the input last.
#[cfg(target_os = "linux")]
#[test]
fn room_in_the_input_of_the_last_run_is_not_reported_after_it() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut command = quiet_child("sleep-ms 600000");
        command.stdin(Stdio::piped());
        let slow = policy(Restart::OnFailure).backoff(HOUR).max_backoff(HOUR);
        let id = set.spawn(&command, options(slow)).expect("spawn test child");
        assert!(set.write(id, &[0; 1 << 20]).expect("write to stdin") < 1 << 20);
        let pid = set.pid(id).expect("get pid");
        let killed = rustix::process::Pid::from_raw(pid.cast_signed()).expect("valid pid");
        rustix::process::kill_process(killed, rustix::process::Signal::KILL).expect("kill child");
        while crate::support::lives(pid) {
            std::thread::yield_now();
        }
        while !matches!(next_event(&mut set, patience()), Event::Restarting { .. }) {}
        let next = set.next_event(Some(Duration::ZERO)).expect("wait for event");
        assert!(matches!(next, NextEvent::TimedOut), "{next:?} between two runs");
    });
}

/// Runs a child twice that leaves a process in its group. Returns which of these live after each run.
#[cfg(unix)]
fn left_after_each_run(backend: minder::Backend, policy: RestartPolicy) -> Vec<bool> {
    use crate::support::lives;
    let mut set = ChildSet::new(limits(backend)).expect("create set");
    let policy = policy.max_restarts(Some(1));
    set.spawn(&test_child("leave-group 600000"), options(policy)).expect("spawn test child");
    let until = patience();
    let mut pid = 0;
    let mut left = Vec::new();
    loop {
        let outcome = match next_event(&mut set, until) {
            Event::Output { chunk, .. } => {
                pid = std::str::from_utf8(&chunk).expect("a number").trim().parse().expect("a number");
                continue;
            }
            Event::Restarting { outcome, .. } | Event::Done { outcome, .. } => outcome,
            _ => continue,
        };
        assert!(outcome.exit.status.success() && !outcome.killed, "{outcome:?}");
        assert_eq!(outcome.left_running, lives(pid));
        left.push(outcome.left_running);
        if outcome.left_running {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("valid pid");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("end what is left");
        }
        if set.is_empty() {
            return left;
        }
    }
}

#[cfg(unix)]
#[test]
fn what_a_run_leaves_is_killed_unless_the_policy_lets_it_run() {
    each_backend(|backend| {
        let always = policy(Restart::Always);
        assert_eq!(left_after_each_run(backend, always), [false, false]);
        let graceful = always.kill_leftovers(Some(HOUR));
        assert_eq!(left_after_each_run(backend, graceful), [false, false]);
        assert_eq!(left_after_each_run(backend, always.kill_leftovers(None)), [true, true]);
    });
}

/// A run that fails at once is not stable because its worker takes long to end.
#[cfg(unix)]
#[test]
fn time_that_leftovers_take_to_end_is_not_run_time() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let policy = policy(Restart::OnFailure)
        .max_restarts(Some(2))
        .stable_after(Duration::from_millis(400))
        .kill_leftovers(Some(Duration::from_millis(500)));
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' TERM; sleep 600 & exit 1"]);
    set.spawn(&command, options(policy)).expect("start a shell");
    let until = patience();
    let mut restarts = 0;
    loop {
        match next_event(&mut set, until) {
            Event::Restarted { .. } => restarts += 1,
            Event::Done { .. } => break,
            _ => (),
        }
    }
    assert_eq!(restarts, 2);
}

#[cfg(unix)]
#[test]
fn requested_restart_gives_what_is_left_its_pause() {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let script =
        "(trap 'sleep 0.2; echo cleaned; exit' TERM; echo ready; while :; do sleep 0.05; done) & wait";
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::piped());
    let streaming = options(policy(Restart::Always)).output_mode(minder::OutputMode::Stream);
    let id = set.spawn(&command, streaming).expect("start a shell");
    let until = patience();
    let mut output = Vec::new();
    loop {
        match next_event(&mut set, until) {
            Event::Output { chunk, .. } => {
                output.extend_from_slice(&chunk);
                if output == b"ready\n" {
                    set.restart(id, Termination::graceful(HOUR)).expect("restart the shell");
                }
            }
            Event::Restarting { .. } => break,
            _ => (),
        }
    }
    assert_eq!(String::from_utf8_lossy(&output), "ready\ncleaned\n");
    set.kill(id, Termination::IMMEDIATE).expect("kill the shell");
    wait_for_done(&mut set);
}
