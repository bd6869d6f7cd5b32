//! `Guardian` in this process, which has threads: starts, failures, and what is left after a drop.

use std::time::{Duration, Instant};

use minder::guard::{Guardian, GuardianOptions};
use minder::{ChildSet, ChildSetOptions, Command, ErrorKind, Event, SpawnOptions, Stdio, Termination};
use rustix::process::{Pid, Signal};

use crate::guard::harness::{kill, send, stat, wait_for};
use crate::support::{patience, quiet_child, read_all, test_child};

fn config() -> GuardianOptions {
    GuardianOptions::new().program(env!("CARGO_BIN_EXE_guardian-dup"))
}

fn start(config: &GuardianOptions) -> Guardian {
    Guardian::start(config).expect("start guardian")
}

fn pid(guardian: &Guardian) -> Pid {
    Pid::from_raw(guardian.pid().expect("pid of the program").cast_signed()).expect("valid pid")
}

/// Starts a process as other code does, outside of the library. It sleeps, unless it is given another task.
#[expect(clippy::disallowed_methods, reason = "a process that the library does not know")]
fn start_outside(group: bool, task: &[&str]) -> std::process::Child {
    use std::os::unix::process::CommandExt as _;
    let mut command = std::process::Command::new(crate::support::TEST_CHILD);
    command.args(task).stdin(std::process::Stdio::null());
    if group {
        command.process_group(0);
    }
    command.spawn().expect("start process")
}

const SLEEP: [&str; 2] = ["sleep-ms", "60000"];

fn end(mut process: std::process::Child) {
    process.kill().expect("kill process");
    process.wait().expect("reap process");
}

/// Returns how many descriptors the program has.
fn open_in(program: Pid) -> usize {
    std::fs::read_dir(format!("/proc/{program}/fd")).expect("list descriptors").count()
}

fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| stat[1] != "Z")
}

#[test]
fn guarded_children_run_as_others_do() {
    let guardian = start(&config());
    let mut set = ChildSet::new(ChildSetOptions::new().guardian(&guardian)).expect("create set");
    for code in 0..50 {
        set.spawn(&quiet_child(&format!("exit {code}")), SpawnOptions::new()).expect("start child");
    }
    let mut codes = Vec::new();
    let all = set.wait_all(Some(Duration::from_secs(60)), |event| {
        if let Event::Done { outcome, .. } = event {
            codes.push(outcome.exit.status.code().expect("exit code"));
        }
    });
    assert!(all.expect("wait"));
    codes.sort_unstable();
    assert_eq!(codes, (0..50).collect::<Vec<i32>>());
    let mut child = guardian.spawn(&test_child("exit 3")).expect("start child");
    assert_eq!(child.wait().expect("wait").status.code(), Some(3));
    let mut missing = Command::new("/no/such/program");
    let error = guardian.spawn(missing.stdin(Stdio::null())).expect_err("no program");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn reaped_and_failed_children_are_off_the_list() {
    let guardian = start(&config());
    let program = pid(&guardian);
    let open = || open_in(program);
    let before = open();
    for round in 0..40 {
        let mut child = guardian.spawn(&quiet_child("exit 0")).expect("start child");
        match round % 3 {
            0 => drop(child.wait().expect("wait")),
            1 => drop(child.wait_timeout(Duration::from_secs(60)).expect("wait")),
            _ => drop(child.kill_and_wait(Termination::IMMEDIATE).expect("kill")),
        }
        guardian.spawn(&Command::new("/no/such/program")).expect_err("no program");
    }
    assert!(wait_for(|| (open() == before).then_some(())).is_some(), "{} are open, not {before}", open());
    let given_up = guardian.spawn(&quiet_child("exit 0")).expect("start child").into_pid();
    let given_up = Pid::from_raw(given_up.cast_signed());
    rustix::process::waitpid(given_up, rustix::process::WaitOptions::empty()).expect("reap child");
    assert!(wait_for(|| (open() == before).then_some(())).is_some());
}

#[test]
fn drop_of_the_last_handle_reaps_the_program() {
    let guardian = start(&config());
    let program = pid(&guardian);
    let child = guardian.spawn(&quiet_child("sleep-ms 60000")).expect("start child");
    drop(guardian);
    assert!(is_alive(program), "the child has a handle");
    let child_pid = Pid::from_raw(child.id().cast_signed()).expect("valid pid");
    drop(child);
    assert!(stat(program).is_none(), "not even a zombie is left: {:?}", stat(program));
    assert!(is_alive(child_pid), "a drop releases");
    kill(child_pid);
    rustix::process::waitpid(Some(child_pid), rustix::process::WaitOptions::empty()).expect("reap child");
    // A program that is stopped is killed.
    let guardian = start(&config());
    let program = pid(&guardian);
    send(program, Signal::STOP);
    drop(guardian);
    assert!(stat(program).is_none());
}

#[test]
fn killed_program_is_an_error_of_the_next_start() {
    let guardian = start(&config());
    let mut child = guardian.spawn(&quiet_child("sleep-ms 60000")).expect("start child");
    kill(pid(&guardian));
    let error = wait_for(|| match guardian.spawn(&quiet_child("exit 0")) {
        Ok(mut child) => {
            child.wait().expect("wait");
            None
        }
        Err(error) => Some(error),
    });
    let error = error.expect("wait for the error");
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.to_string().ends_with("its guardian has exited: start another one"), "{error}");
    // The children run on, and can be waited for.
    child.kill_and_wait(Termination::IMMEDIATE).expect("kill");
}

#[test]
fn killed_program_is_started_again_with_the_list() {
    let guardian = start(&config().restart(true));
    let mut children: Vec<_> =
        (0..10).map(|_| guardian.spawn(&quiet_child("sleep-ms 60000")).expect("start child")).collect();
    children[3].kill_and_wait(Termination::IMMEDIATE).expect("kill");
    let first = pid(&guardian);
    kill(first);
    wait_for(|| stat(first).is_none_or(|stat| stat[1] == "Z").then_some(())).expect("wait for the end");
    let mut child = guardian.spawn(&quiet_child("sleep-ms 60000")).expect("start child");
    let second = pid(&guardian);
    assert!(second != first && is_alive(second) && stat(first).is_none(), "the first one is reaped");
    // The socket, the null device twice, and pidfds of this process and of the ten children.
    let open = || open_in(second);
    assert!(wait_for(|| (open() == 4 + 10).then_some(())).is_some(), "{} are open", open());
    child.kill_and_wait(Termination::IMMEDIATE).expect("kill");
    for (place, child) in children.iter_mut().enumerate().filter(|(place, _)| *place != 3) {
        child.kill_and_wait(Termination::IMMEDIATE).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
    assert!(wait_for(|| (open() == 4).then_some(())).is_some());
}

#[test]
fn stopped_program_makes_starts_fail_and_never_blocks() {
    let guardian = start(&config());
    let program = pid(&guardian);
    send(program, Signal::STOP);
    let mut children = Vec::new();
    let error = loop {
        assert!(Instant::now() < patience() && children.len() < 5000);
        match guardian.spawn(&quiet_child("exit 0")) {
            Ok(child) => children.push(child),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
    assert!(error.to_string().contains("its guardian does not read the list of children"), "{error}");
    // Their removals wait.
    let count = children.len();
    for child in &mut children {
        child.wait().expect("wait");
    }
    assert_eq!(guardian.spawn(&quiet_child("exit 0")).expect_err("still full").kind(), ErrorKind::Exhausted);
    send(program, Signal::CONT);
    let mut child = wait_for(|| guardian.spawn(&quiet_child("exit 0")).ok()).expect("start child");
    child.wait().expect("wait");
    let open = || open_in(program);
    assert!(wait_for(|| (open() == 4).then_some(())).is_some(), "{} of {count} are listed", open() - 4);
}

#[test]
fn guarded_process_is_on_the_list_until_it_is_dropped() {
    let guardian = start(&config());
    let program = pid(&guardian);
    let before = open_in(program);
    for group in [false, true] {
        let process = start_outside(group, &SLEEP);
        let guarded = guardian.guard(process.id()).expect("guard process");
        let again = guardian.guard(process.id()).expect("guard process twice");
        assert!(wait_for(|| (open_in(program) == before + 2).then_some(())).is_some());
        guarded.release();
        assert!(wait_for(|| (open_in(program) == before + 1).then_some(())).is_some());
        drop(again);
        assert!(wait_for(|| (open_in(program) == before).then_some(())).is_some());
        end(process);
    }
    // It keeps the program, like a child.
    let process = start_outside(true, &SLEEP);
    let guarded = guardian.guard(process.id()).expect("guard process");
    drop(guardian);
    assert!(is_alive(program));
    drop(guarded);
    assert!(stat(program).is_none(), "not even a zombie is left");
    end(process);
}

#[test]
fn process_that_is_no_child_cannot_be_guarded() {
    let guardian = start(&config());
    let kind = |pid: u32| guardian.guard(pid).expect_err("no child").kind();
    let mut reaped = start_outside(true, &["exit", "0"]);
    reaped.wait().expect("reap process");
    let parent = rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get().cast_unsigned());
    for pid in [0, 1, std::process::id(), parent, reaped.id(), (1 << 31) - 1, 1 << 31, u32::MAX] {
        assert_eq!(kind(pid), ErrorKind::Unknown, "{pid}");
    }
    let error = guardian.guard(std::process::id()).expect_err("no child");
    let text = format!(
        "failed to guard process `{}`: not a child of this process, or reaped already",
        std::process::id()
    );
    assert_eq!(error.to_string(), text);
    assert_eq!(kind(guardian.pid().expect("pid of the program")), ErrorKind::InvalidInput);
    // One that has exited and is not reaped still has its pid.
    let mut zombie = start_outside(true, &["exit", "0"]);
    let zombie_pid = Pid::from_raw(zombie.id().cast_signed()).expect("valid pid");
    wait_for(|| (!is_alive(zombie_pid)).then_some(())).expect("wait for the end");
    guardian.guard(zombie.id()).expect("guard process").release();
    zombie.wait().expect("reap process");
}

#[test]
fn program_that_does_not_read_or_has_exited_makes_guard_fail() {
    let guardian = start(&config());
    let process = start_outside(true, &SLEEP);
    let program = pid(&guardian);
    let before = open_in(program);
    send(program, Signal::STOP);
    let mut listed = Vec::new();
    let error = loop {
        assert!(Instant::now() < patience() && listed.len() < 5000);
        match guardian.guard(process.id()) {
            Ok(guarded) => listed.push(guarded),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
    // Their removals wait. Only the first one waits for room, and that for 100 ms.
    assert!(listed.len() > 100, "{}", listed.len());
    let half = Duration::from_millis(100) * u32::try_from(listed.len() / 2).expect("a small number");
    let began = Instant::now();
    drop(listed);
    assert!(began.elapsed() < half, "{:?}", began.elapsed());
    assert_eq!(guardian.guard(process.id()).expect_err("still full").kind(), ErrorKind::Exhausted);
    send(program, Signal::CONT);
    wait_for(|| guardian.guard(process.id()).ok()).expect("guard process").release();
    assert!(wait_for(|| (open_in(program) == before).then_some(())).is_some());
    kill(program);
    let error = wait_for(|| guardian.guard(process.id()).err()).expect("wait for the error");
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.to_string().ends_with("its guardian has exited: start another one"), "{error}");
    end(process);
}

#[test]
fn guard_starts_a_killed_program_again_with_the_list() {
    let guardian = start(&config().restart(true));
    let processes: Vec<_> = (0..3).map(|_| start_outside(true, &SLEEP)).collect();
    let mut listed: Vec<_> =
        processes.iter().map(|it| guardian.guard(it.id()).expect("guard process")).collect();
    listed.remove(0).release();
    // This one is reaped before it is released: its pid may be that of another process.
    let late = start_outside(true, &SLEEP);
    let late_guarded = guardian.guard(late.id()).expect("guard process");
    end(late);
    let first = pid(&guardian);
    kill(first);
    wait_for(|| (!is_alive(first)).then_some(())).expect("wait for the end");
    let process = start_outside(false, &SLEEP);
    let guarded = guardian.guard(process.id()).expect("guard process");
    let second = pid(&guardian);
    assert!(second != first && is_alive(second));
    // The socket, the null device twice, and pidfds of this process and of three others.
    assert!(wait_for(|| (open_in(second) == 4 + 3).then_some(())).is_some(), "{}", open_in(second));
    drop((guarded, listed, late_guarded));
    assert!(wait_for(|| (open_in(second) == 4).then_some(())).is_some());
    processes.into_iter().chain([process]).for_each(end);
}

#[test]
fn tag_is_in_the_environment_of_children() {
    let variable = |guardian: &Guardian, clear: bool| {
        let mut command = test_child("echo-env");
        if clear {
            command.env_clear();
        }
        let mut child = guardian.spawn(&command).expect("start child");
        let text = read_all(child.stdout.take());
        child.wait().expect("wait");
        let of =
            |line: &str| line.strip_prefix("\"MINDER_GUARDIAN_ID\"=\"")?.strip_suffix('"').map(str::to_owned);
        let mut values = text.lines().filter_map(of);
        let value = values.next().unwrap_or_default();
        assert_eq!(values.next(), None, "it is there once");
        value
    };
    let tagged = start(&config().tag(true));
    let value = variable(&tagged, false);
    assert!(
        value.len() >= 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':'),
        "{value}"
    );
    assert_eq!(variable(&tagged, true), value, "also in a cleared environment");
    let plain = start(&config());
    assert_ne!(variable(&plain, true), value);
    assert_ne!(variable(&start(&config().tag(true)), false), value, "each guardian has another one");
}

#[test]
fn wrong_programs_are_refused() {
    let refused = |path: &str| Guardian::start(&GuardianOptions::new().program(path)).expect_err("refused");
    let error = refused("/no/such/guardian");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let error = refused(crate::support::TEST_CHILD);
    assert_eq!(error.kind(), ErrorKind::Other, "{error}");
    assert!(error.to_string().contains("is this the program `minder-guardian`?"), "{error}");
    // One that says nothing and does not end.
    let slow = GuardianOptions::new()
        .program(crate::support::TEST_CHILD)
        .arg("sleep-ms")
        .arg("60000")
        .start_timeout(Duration::from_millis(50));
    let began = Instant::now();
    let error = Guardian::start(&slow).expect_err("refused");
    assert!(error.to_string().contains("it was not ready in time"), "{error}");
    assert!(began.elapsed() >= Duration::from_millis(50));
}

#[test]
fn program_without_a_host_says_so() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_guardian-dup"));
    command.stdin(Stdio::null());
    let output = command.output().expect("run program");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a library starts this program"), "{said}");
}
