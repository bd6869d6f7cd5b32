//! Keys, `kill`, `nohup` and background: signals that reach the runner.

use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::harness::{MIX, Run, Setting, send, send_group, start, stat, wait_for};
use crate::support::{nap, patience};

/// A run as the foreground job of a shell on its own terminal.
struct Terminal {
    run: Run,
    keys: File,
}

impl Terminal {
    fn start(before: &[&str], words: &[&str]) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("open pseudo-terminal");
        grantpt(&ours).expect("grant pseudo-terminal");
        unlockpt(&ours).expect("unlock pseudo-terminal");
        let path = ptsname(&ours, Vec::new()).expect("get name").into_string().expect("decode text");
        let all: Vec<&str> = ["terminal", &path].into_iter().chain(before.iter().copied()).collect();
        let run = Setting::new(&all, words).start();
        Terminal { run, keys: File::from(ours) }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("write bytes");
    }
}

const SHELL: [&str; 2] = ["shell", "REPORT"];

#[test]
fn ctrl_c_is_one_signal() {
    let mut terminal = Terminal::start(&SHELL, &["ignore"]);
    let pids = terminal.run.ready();
    for pressed in 1..=40 {
        terminal.press("\x03");
        terminal.run.expect_line("signal SIGINT", pressed);
        nap(Duration::from_millis(205));
    }
    assert_eq!(terminal.run.count("signal SIGINT"), 40, "none came twice");
    send(pids.outer, Signal::TERM);
    terminal.run.expect_line("ended None Some(2)", 1);
}

#[test]
fn ctrl_z_and_fg_lose_no_signal() {
    let mut terminal = Terminal::start(&SHELL, &["plain"]);
    let pids = terminal.run.ready();
    for pressed in 1..=20 {
        terminal.press("\x1a");
        terminal.run.expect_line("stopped", pressed);
        terminal.run.expect_line("continued", pressed);
        // SIGCONT discards a pending stop signal (signal(7)). The inner guardian sends SIGCONT a moment
        // after `fg`, so a key that follows at once could be lost. No person is that fast.
        nap(Duration::from_millis(100));
    }
    assert_eq!(terminal.run.count("signal SIGTSTP"), 20);
    assert_eq!(terminal.run.count("stopped"), 20, "the shell saw each once");
    send(pids.outer, Signal::TERM);
    terminal.run.expect_line("ended None Some(2)", 1);
}

#[test]
fn session_leader_is_not_stopped() {
    // No shell watches: the kernel drops the stop, and the run continues.
    let mut terminal = Terminal::start(&[], &["plain"]);
    let pids = terminal.run.ready();
    for pressed in 1..=3 {
        terminal.press("\x1a");
        terminal.run.expect_line("continued", pressed);
    }
    send(pids.outer, Signal::TERM);
    assert_eq!(terminal.run.shell_status(), 130);
}

#[test]
fn runner_reads_the_terminal() {
    let mut terminal = Terminal::start(&SHELL, &["read=1"]);
    terminal.run.ready();
    terminal.press("hello\n");
    terminal.run.expect_line("read hello", 1);
}

#[test]
fn job_that_reads_the_terminal_is_killed() {
    let terminal = Terminal::start(&SHELL, &["terminal", "plain"]);
    let pids = terminal.run.ready();
    let killed = Instant::now();
    super::harness::kill(pids.outer);
    terminal.run.expect_gone(killed, "a job at the terminal");
}

#[test]
fn hangup_is_received() {
    let terminal = Terminal::start(&SHELL, &[]);
    terminal.run.ready();
    let Terminal { run, keys } = terminal;
    drop(keys);
    run.expect_line("signal SIGHUP", 1);
}

#[test]
fn nohup_ignores_hangup() {
    let terminal = Terminal::start(&["shell", "REPORT", "nohup"], &[]);
    let pids = terminal.run.ready();
    let Terminal { run, keys } = terminal;
    drop(keys);
    // Signals of one process are relayed in order of their numbers or later, so a hang-up would be here
    // by then.
    send(pids.outer, Signal::HUP);
    send(pids.outer, Signal::USR1);
    run.expect_line("signal SIGUSR1", 1);
    assert_eq!(run.count("signal SIGHUP"), 0, "{:?}", run.lines());
}

#[test]
fn background_run_receives_no_keyboard_signals() {
    let mut run = Setting::new(&["session", "background"], &[]).start();
    let pids = run.ready();
    send_group(pids.outer, Signal::INT);
    send_group(pids.outer, Signal::QUIT);
    send(pids.outer, Signal::USR1);
    run.expect_line("signal SIGUSR1", 1);
    send(pids.outer, Signal::TERM);
    assert_eq!(run.shell_status(), 130);
    assert_eq!(run.count("signal SIGINT") + run.count("signal SIGQUIT"), 0, "{:?}", run.lines());
}

#[test]
fn repeated_signal_within_200_ms_counts_once() {
    // `timeout -s INT` signals the process, then its group. Signals that are 200 ms apart count as two:
    // on a busy machine this test tries again.
    let until = patience();
    while Instant::now() < until {
        let run = start(&[]);
        let pids = run.ready();
        let begun = Instant::now();
        send(pids.outer, Signal::INT);
        run.expect_line("signal SIGINT", 1);
        send_group(pids.outer, Signal::INT);
        send(pids.outer, Signal::USR2);
        run.expect_line("signal SIGUSR2", 1);
        if run.count("signal SIGINT") == 1 {
            return;
        }
        assert!(begun.elapsed() > Duration::from_millis(200), "{:?}", run.lines());
    }
    panic!("the machine is too busy: two signals were never sent within 200 ms");
}

#[test]
fn runner_receives_signals_sent_to_it() {
    let run = start(&[]);
    let pids = run.ready();
    send(pids.runner, Signal::INT);
    run.expect_line("signal SIGINT", 1);
    // The rest is only received by the started process.
    send(pids.runner, Signal::TSTP);
    send(pids.runner, Signal::USR1);
    send(pids.inner, Signal::TERM);
    send(pids.outer, Signal::WINCH);
    run.expect_line("signal SIGWINCH", 1);
    assert_eq!(run.lines().iter().filter(|l| l.starts_with("signal ")).count(), 2, "{:?}", run.lines());
    assert_eq!(run.alive().len(), 3);
}

#[test]
fn signal_to_the_group_counts_once() {
    let run = start(&[]);
    let pids = run.ready();
    for sent in 1..=20 {
        send_group(pids.outer, Signal::INT);
        run.expect_line("signal SIGINT", sent);
        nap(Duration::from_millis(250));
    }
    send(pids.outer, Signal::USR2);
    run.expect_line("signal SIGUSR2", 1);
    assert_eq!(run.count("signal SIGINT"), 20, "none came twice");
}

/// Starts a run whose stderr is a file, and returns the path of the file.
fn heard(words: &[&str]) -> (Run, std::path::PathBuf, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let path = dir.path().join("errors");
    let mut setting = Setting::new(&["session"], words);
    setting.stderr = File::create(&path).expect("create file").into();
    (setting.start(), path, dir)
}

#[test]
fn third_signal_ends_an_unresponsive_run() {
    let (mut run, errors, _dir) = heard(&MIX);
    let pids = run.ready();
    send(pids.runner, Signal::STOP);
    wait_for(|| stat(pids.runner).filter(|s| s[1] == "T")).expect("wait until process is stopped");
    // Three are enough. Where the guardian does not get to run in between, two that are pending are one
    // to it.
    let ended = wait_for(|| {
        send(pids.outer, Signal::INT);
        nap(Duration::from_millis(250));
        run.child.try_wait().expect("poll child")
    });
    assert!(ended.is_some(), "it does not end: {:?}", run.lines());
    let ended_at = Instant::now();
    assert_eq!(run.shell_status(), 137);
    run.expect_gone(ended_at, "a run that did not answer");
    let said = std::fs::read_to_string(errors).expect("read stderr file");
    assert_eq!(
        said,
        "minder: the run does not answer; another signal kills it\n\
         minder: the run did not answer and was killed\n"
    );
}

#[test]
fn unstoppable_run_returns_the_prompt() {
    let mut terminal = Terminal::start(&SHELL, &["unstopped=1", "plain"]);
    let pids = terminal.run.ready();
    for pressed in 1..=2 {
        terminal.press("\x1a");
        terminal.run.expect_line("stopped", pressed);
    }
    // And continues with it.
    send(pids.outer, Signal::USR1);
    terminal.run.expect_line("signal SIGUSR1", 1);
    send(pids.outer, Signal::TERM);
    terminal.run.expect_line("ended None Some(2)", 1);
}

#[test]
fn signals_arrive_without_guardians() {
    let mut run = start(&["alone=1"]);
    // It reports pids 0 for guardians, so it is found otherwise.
    wait_for(|| run.lines().into_iter().find(|l| l.starts_with("ready 0 0 ")))
        .expect("wait for line `ready`");
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(run.child.id()).expect("valid pid")).expect("valid pid");
    for (sent, heard) in [(Signal::USR1, "SIGUSR1"), (Signal::INT, "SIGINT"), (Signal::WINCH, "SIGWINCH")] {
        send(pid, sent);
        run.expect_line(&format!("signal {heard}"), 1);
    }
    send(pid, Signal::TERM);
    assert_eq!(run.shell_status(), 130);
}

#[test]
fn cancelled_run_sweeps_its_tree() {
    let mut run = start(&MIX);
    let pids = run.ready();
    let asked = Instant::now();
    send(pids.outer, Signal::TERM);
    assert_eq!(run.shell_status(), 130);
    run.expect_gone(asked, "cancelled");
}

#[test]
fn cancelled_run_without_guardians_sweeps_what_it_finds() {
    let mut run = start(&["alone=1", "plain", "setsid", "ignore", "stopped", "nested"]);
    run.expect_alive(1 + 15);
    run.expect_line(&format!("ready 0 0 {}", run.child.id()), 1);
    let asked = Instant::now();
    send(
        rustix::process::Pid::from_raw(i32::try_from(run.child.id()).expect("valid pid")).expect("valid pid"),
        Signal::TERM,
    );
    assert_eq!(run.shell_status(), 130);
    run.expect_gone(asked, "cancelled without guardians");
}

#[test]
fn only_the_runner_holds_the_output() {
    let mut setting = Setting::new(&["session"], &["say=hello"]);
    setting.stdout = std::process::Stdio::piped();
    let mut run = setting.start();
    let pids = run.ready();
    let mut output = run.child.stdout.take().expect("take stdout");
    for guardian in [pids.outer, pids.inner] {
        send(guardian, Signal::STOP);
    }
    for guardian in [pids.outer, pids.inner] {
        wait_for(|| stat(guardian).filter(|s| s[1] == "T")).expect("wait until process is stopped");
    }
    // Ends without a word: the guardians sleep on, or not, but hold nothing.
    send(pids.runner, Signal::KILL);
    // Would wait forever if a stopped guardian held the pipe.
    let mut text = String::new();
    output.read_to_string(&mut text).expect("read to end");
    assert_eq!(text, "hello");
    assert_eq!(run.shell_status(), 137, "the kernel wakes one after the other");
}
