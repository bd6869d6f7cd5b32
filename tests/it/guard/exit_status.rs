//! The exit status that the caller sees, and the processes that a normal end leaves alone.

use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

use rustix::process::{Pid, Signal};

use super::harness::{MIX, Setting, command_line, is_root, kill, send, skip, start, stat, wait_for};

#[test]
fn exit_statuses_are_repeated() {
    for (words, status) in [
        (["end=0"].as_slice(), 0),
        (&["end=3"], 3),
        (&["end=255"], 255),
        (&["end=die", "plain", "daemon"], 130),
        (&["end=return", "plain", "daemon"], 101),
        (&["end=3", "alone=1"], 3),
        (&["end=die", "alone=1"], 130),
    ] {
        let mut run = start(words);
        assert_eq!(run.status().code(), Some(status), "{words:?}");
        run.expect_gone(Instant::now(), &format!("{words:?}"));
    }
}

#[test]
fn fatal_signals_are_repeated() {
    // Not SIGSEGV: the language's own handler takes the first one that nothing caused.
    for signal in [Signal::SYS, Signal::ABORT, Signal::KILL, Signal::ILL] {
        let mut run = start(&["plain", "daemon"]);
        let pids = run.ready();
        send(pids.runner, signal);
        let status = run.status();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{signal:?}");
        run.expect_gone(Instant::now(), &format!("{signal:?}"));
    }
}

#[test]
fn daemon_outlives_a_normal_exit_and_is_reported() {
    let mut run = start(&["end=adopted", "daemon"]);
    assert_eq!(run.status().code(), Some(3));
    assert_eq!(run.count("adopted exe"), 1, "{:?}", run.lines());
    // The job that forked the daemon may still be exiting.
    let alive =
        wait_for(|| Some(run.alive()).filter(|alive| alive.len() <= 1)).unwrap_or_else(|| run.alive());
    assert_eq!(alive.len(), 1, "only the daemon: {alive:?}");
    kill(alive[0]);
}

#[test]
fn caller_is_charged_for_the_time_of_the_runner() {
    // Each has reaped the next, so the shell's `time` counts the jobs too.
    let before = children_us();
    let mut run = start(&["end=die", "plain"]);
    run.status();
    assert!(children_us() > before);
}

fn children_us() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("read file");
    let fields: Vec<&str> = text.rsplit_once(") ").expect("get name").1.split(' ').collect();
    // minflt of waited-for children: the finest of what is counted for them.
    fields[8].parse().expect("parse number")
}

#[test]
fn guardians_hold_no_outputs_and_have_other_names() {
    let mut setting = Setting::new(&["session"], &[]);
    setting.stdout = std::process::Stdio::piped();
    let run = setting.start();
    let pids = run.ready();
    for guardian in [pids.outer, pids.inner] {
        let open = std::fs::read_dir(format!("/proc/{guardian}/fd")).expect("list directory").flatten();
        let open: Vec<_> =
            open.filter_map(|fd| Some((fd.file_name(), std::fs::read_link(fd.path()).ok()?))).collect();
        let pipe = std::fs::read_link(format!("/proc/{}/fd/1", pids.runner)).expect("set permissions");
        assert!(open.iter().all(|fd| fd.1 != pipe), "{guardian} holds the output: {open:?}");
    }
    let [name, .., group, session] = stat(pids.inner).expect("read stat of process");
    assert_eq!(name, "run-guardian");
    assert_eq!(command_line(pids.inner).trim_end(), format!("run-guardian of {}", pids.runner));
    assert_eq!((group, session), (pids.inner.to_string(), pids.inner.to_string()));
    assert_eq!(
        stat(pids.runner).expect("read stat of process")[3],
        pids.outer.to_string(),
        "the runner stays in the user's group"
    );
}

#[test]
fn guard_works_as_pid_1_of_a_container() {
    if !is_root() {
        return skip("only root can make a pid namespace");
    }
    // The numbers are those inside: 1 the outer guardian, 2 the inner, 3 the runner.
    for (victim, status) in [(3, 137), (2, 137), (1, 1)] {
        let mut run = Setting::new(&["session", "container"], &MIX).start();
        let started = wait_for(|| {
            let ended = run.child.try_wait().expect("poll child");
            ended.map(|s| s.code()).or_else(|| run.lines().first().map(|_| None))
        });
        if started == Some(Some(77)) {
            return skip("pid namespaces are forbidden here");
        }
        assert_eq!(run.lines().first().map(String::as_str), Some("ready 1 2 3"));
        let outside = run
            .alive()
            .into_iter()
            .find(|pid| inside(*pid) == Some(victim))
            .expect("find process by its inner pid");
        let killed = Instant::now();
        kill(outside);
        assert_eq!(run.status().code(), Some(status), "victim {victim}");
        run.expect_gone(killed, &format!("container, {victim}"));
    }
}

/// Returns the pid of a process in its own pid namespace, or `None` if it is in ours.
fn inside(pid: Pid) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace();
    numbers.nth(1)?.parse().ok()
}

#[test]
fn earlier_children_are_spared() {
    // As `sh -c 'server & exec minder …'`: the server is a child of what becomes the outer guardian.
    let mut run = Setting::new(&["session", "server"], &["plain", "daemon"]).start();
    let pids = run.ready();
    kill(pids.inner);
    assert_eq!(run.shell_status(), 137);
    let server = run.alive();
    assert_eq!(server.len(), 1, "only the server lives: {server:?}");
    kill(server[0]);
}
