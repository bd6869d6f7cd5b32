//! The host is killed, or ends by itself: what lives after that, and what does not.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use rustix::process::{Pid, Signal};

use crate::guard::harness::{
    Run, Setting, command_line, every_process, group_of, kill, send, send_group, stat, wait_for,
};

/// Starts a host in its own session with these settings and jobs.
pub(super) fn start(words: &[&str]) -> Run {
    let jobs = format!("jobs={}", env!("CARGO_BIN_EXE_guard_child"));
    let program = format!("program={}", env!("CARGO_BIN_EXE_guardian-dup"));
    let words = ["REPORT", &jobs, &program].iter().chain(words).map(|word| (*word).to_owned()).collect();
    Setting {
        program: Path::new(env!("CARGO_BIN_EXE_guardian_host")),
        words,
        stdin: Stdio::null(),
        stdout: Stdio::null(),
        stderr: Stdio::inherit(),
    }
    .start()
}

/// The pids that a host reported: the guardian, and the host.
pub(super) fn ready(run: &Run) -> (Pid, Pid) {
    let line = wait_for(|| run.lines().into_iter().find(|line| !line.is_empty())).expect("wait for a line");
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some("ready"), "{line}");
    let mut pid =
        || Pid::from_raw(words.next().expect("read pid").parse().expect("parse pid")).expect("valid pid");
    (pid(), pid())
}

/// Kills the host, and checks that nothing of its children is left, and that the guardian has exited.
fn expect_end(words: &[&str], alive: usize) {
    let mut run = start(words);
    let (guardian, host) = ready(&run);
    run.expect_alive(alive);
    let killed = Instant::now();
    kill(host);
    run.expect_gone(killed, &format!("{words:?}"));
    assert_eq!(run.shell_status(), 137);
    expect_exit(guardian);
    let escaped = run.alive();
    assert!(escaped.is_empty(), "{words:?}: {escaped:?} live after the exit of the guardian");
}

fn expect_exit(pid: Pid) {
    let gone = wait_for(|| stat(pid).is_none_or(|stat| stat[1] == "Z" || stat[1] == "X").then_some(()));
    assert!(gone.is_some(), "process {pid:?} is alive: {}", command_line(pid));
}

#[test]
fn killed_host_leaves_no_child() {
    expect_end(&["plain", "plain", "ignore"], 4);
}

#[test]
fn killed_host_leaves_no_stopped_child() {
    expect_end(&["plain", "stopped", "undying"], 4);
}

#[test]
fn killed_host_leaves_no_descendant_whose_parent_lives() {
    expect_end(&["nested", "setsid"], 1 + 11 + 1);
    expect_end(&["many"], 1 + 401);
}

#[test]
fn killed_host_leaves_none_of_many_children() {
    expect_end(&["copies=200", "plain"], 201);
}

/// The list is longer than the socket holds. The host kills the program, and starts one more child.
#[test]
fn killed_host_leaves_none_of_many_children_of_a_restarted_guardian() {
    expect_end(&["restart=1", "copies=600", "plain"], 602);
}

#[test]
fn tagged_daemons_and_forking_trees_end_with_the_host() {
    expect_end(&["tag=1", "daemon"], 2);
    expect_end(&["tag=1", "plain", "setsid", "daemon", "ignore", "stopped", "nested"], 17);
    expect_end(&["tag=1", "bush", "bush"], 3);
    expect_end(&["tag=1", "comet"], 2);
    let comets = [["tag=1"].as_slice(), &["comet"; 10]].concat();
    expect_end(&comets, 11);
}

#[test]
fn untagged_daemon_survives() {
    let mut run = start(&["daemon"]);
    let (guardian, host) = ready(&run);
    let daemon = wait_for(|| daemon_of(&run, host)).expect("wait for the daemon");
    kill(host);
    expect_exit(guardian);
    assert_eq!(run.shell_status(), 137);
    assert_eq!(run.alive(), [daemon], "a daemon leaves on purpose");
}

/// Returns the process of a run that is in another session than the host, and whose parent is gone. It
/// exists before the two processes that start it have exited.
fn daemon_of(run: &Run, host: Pid) -> Option<Pid> {
    let alive = run.alive();
    let [one] = *alive.iter().filter(|pid| **pid != host).collect::<Vec<_>>() else { return None };
    let [_, _, parent, _, session] = stat(*one)?;
    let has_parent = alive.iter().any(|pid| pid.to_string() == parent);
    (!has_parent && session != stat(host)?[4]).then_some(*one)
}

#[test]
fn grace_sends_sigterm_first() {
    // One that ignores the signal is killed after the grace.
    let run = start(&["grace=300", "plain", "ignore", "stopped"]);
    let (guardian, host) = ready(&run);
    run.expect_alive(4);
    let ignores = || run.alive().into_iter().find(|pid| ignores_sigterm(*pid));
    let ignoring = wait_for(ignores).expect("wait for the process that ignores the signal");
    let killed = Instant::now();
    kill(host);
    // A search of all processes takes longer than the process may live after its time.
    expect_exit(ignoring);
    let took = killed.elapsed();
    assert!(took.as_millis() >= 300, "it was killed after {took:?}");
    run.expect_gone(killed, "grace");
    expect_exit(guardian);
}

/// Returns whether SIGTERM is in the set of ignored signals: see proc_pid_status(5).
fn ignores_sigterm(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (Signal::TERM.as_raw() - 1)) != 0)
}

#[test]
fn kill_of_group_and_name_does_not_reach_the_guardian() {
    let run = start(&["session=1", "plain", "ignore"]);
    let (guardian, host) = ready(&run);
    assert_ne!(group_of(guardian), group_of(host));
    assert_eq!(stat(guardian).expect("read stat")[0], "minder-guardian");
    assert_eq!(command_line(guardian).trim_end(), "minder-guardian");
    let killed = Instant::now();
    send_group(host, Signal::KILL);
    run.expect_gone(killed, "group");
    expect_exit(guardian);

    let run = start(&["plain"]);
    let (guardian, host) = ready(&run);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::PIPE] {
        send(guardian, signal);
    }
    let killed = Instant::now();
    kill(host);
    run.expect_gone(killed, "signals to the guardian");
    expect_exit(guardian);
}

#[test]
fn fork_of_the_host_does_not_hide_its_end() {
    let run = start(&["forks=1", "plain", "ignore"]);
    let (guardian, host) = ready(&run);
    run.expect_alive(4);
    kill(host);
    expect_exit(guardian);
    let left = run.alive();
    assert_eq!(left.len(), 1, "the fork is not a guarded child, all others are");
    assert!(command_line(left[0]).contains("guardian_host"));
}

#[test]
fn stopped_host_keeps_its_children() {
    let run = start(&["plain"]);
    let (guardian, host) = ready(&run);
    run.expect_alive(2);
    send(host, Signal::STOP);
    send(guardian, Signal::STOP);
    send(guardian, Signal::CONT);
    assert_eq!(run.alive().len(), 2);
    let killed = Instant::now();
    kill(host);
    run.expect_gone(killed, "stopped host");
    expect_exit(guardian);
}

#[test]
fn stopped_guardian_ends_the_children_when_it_continues() {
    let mut run = start(&["plain", "ignore"]);
    let (guardian, host) = ready(&run);
    run.expect_alive(3);
    send(guardian, Signal::STOP);
    wait_for(|| stat(guardian).filter(|stat| stat[1] == "T")).expect("wait for the stop of the guardian");
    kill(host);
    // The kernel ends the host after the call.
    assert_eq!(run.shell_status(), 137);
    assert_eq!(run.alive().len(), 2);
    let continued = Instant::now();
    send(guardian, Signal::CONT);
    run.expect_gone(continued, "stopped guardian");
    expect_exit(guardian);
}

#[test]
fn dropped_guardian_releases_the_children() {
    let mut run = start(&["exit=1", "tag=1", "plain", "setsid"]);
    let (guardian, _) = ready(&run);
    assert_eq!(run.shell_status(), 0);
    expect_exit(guardian);
    run.expect_alive(2);
    assert_eq!(run.alive().len(), 2);
}

#[test]
fn killed_host_leaves_no_forked_process_that_was_guarded() {
    expect_end(&["forked=guarded", "plain", "setsid", "ignore", "stopped", "nested"], 1 + 4 + 11);
    expect_end(&["forked=guarded", "copies=200", "plain"], 201);
    expect_end(&["forked=guarded", "grace=10", "plain", "ignore"], 3);
}

#[test]
fn killed_host_leaves_no_forked_process_of_a_restarted_guardian() {
    expect_end(&["forked=guarded", "restart=1", "copies=20", "plain"], 22);
}

#[test]
fn released_forked_process_outlives_the_host() {
    let mut run = start(&["forked=released", "tag=1", "plain", "nested"]);
    let (guardian, host) = ready(&run);
    run.expect_alive(1 + 1 + 11);
    kill(host);
    expect_exit(guardian);
    assert_eq!(run.shell_status(), 137);
    assert_eq!(run.alive().len(), 1 + 11, "the program kills what is on its list only");
}

#[test]
fn set_holds_the_guardian() {
    expect_end(&["alone=1", "plain"], 2);
}

#[test]
fn children_hold_nothing_of_the_guardian() {
    let run = start(&["plain"]);
    let (guardian, host) = ready(&run);
    run.expect_alive(2);
    let sockets = |pid: Pid| {
        let links = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("list descriptors").flatten();
        let links = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    };
    let mine = run.alive();
    let child = mine.iter().find(|pid| **pid != host).expect("find child");
    assert_eq!((sockets(*child), sockets(host), sockets(guardian)), (0, 1, 1));
    // Its end, the null device twice, and pidfds of the host and the child. The last one is opened when the
    // guardian reads the record of the child, for which the host does not wait.
    let open = || std::fs::read_dir(format!("/proc/{guardian}/fd")).expect("list descriptors").count();
    wait_for(|| (open() >= 5).then_some(())).expect("wait until the guardian has the child");
    assert_eq!(open(), 5);
    let environment = std::fs::read(format!("/proc/{guardian}/environ")).expect("read environment");
    assert!(environment.is_empty());
    let others = every_process(|pid| stat(pid).is_some_and(|stat| stat[4] == guardian.to_string()));
    assert_eq!(others, [guardian], "it is alone in its session");
}
