//! `minder relay` without `--pty` at a terminal: a shell with job control, whose keys and prompts reach the
//! command.

use std::time::Duration;

use minder::{Command, Group, Size, Stdio};

use super::super::{MINDER, Run, STATE, children, file, path, temp_dir, text};
use super::{child_of, lives, signal, state, wait_for};
use rustix::process::Signal;

const PROMPT: &str = "shell> ";

/// An interactive bash on a new terminal. `$R` is `minder relay`.
struct Shell(Run);

impl Shell {
    fn start() -> Self {
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-i"]);
        command.group(Group::Terminal(Size::new(24, 200))).stdin(Stdio::inherit());
        command
            .env("R", format!("{MINDER} relay"))
            .env("MINDER_STATE_DIR", STATE)
            .env("HISTFILE", "/dev/null");
        command.env("PS1", PROMPT).env("TERM", "dumb");
        Self(Run::start(&command))
    }

    /// Types text, and returns how much was shown before.
    fn types(&mut self, keys: &str) -> usize {
        let shown = self.0.record().outs[0].len();
        self.0.write(keys.as_bytes());
        shown
    }

    /// Waits until this is shown after the first `from` bytes.
    fn waits_for(&mut self, shown: &str, from: usize) {
        self.0.wait_until(shown, |record| text(&record.outs[0][from..]).contains(shown));
    }

    /// Types a command line at the prompt, and waits for a text that the line itself does not contain. What
    /// is typed before the prompt may be lost: the shell changes the modes of the terminal.
    fn runs(&mut self, line: &str, shown: &str) {
        self.waits_for_prompt();
        self.answers(line, shown);
    }

    fn waits_for_prompt(&mut self) {
        self.0.wait_until("a prompt", |record| record.outs[0].ends_with(PROMPT.as_bytes()));
    }

    /// Types a line for a command that runs.
    fn answers(&mut self, line: &str, shown: &str) {
        let from = self.types(&format!("{line}\n"));
        self.waits_for(shown, from);
    }

    fn relay(&self) -> u32 {
        let find = || children(self.0.pid()).into_iter().find(|pid| name(*pid).starts_with("minder"));
        wait_for("the relay", || find().is_some());
        find().expect("find relay")
    }
}

fn name(pid: u32) -> String {
    file(std::path::Path::new(&format!("/proc/{pid}/comm")))
}

const ASK: &str = r#"sh -c 'printf "as""k: "; read x </dev/tty; echo g""ot $x'"#;

#[test]
fn prompt_works_as_without_a_relay() {
    let mut shell = Shell::start();
    for line in [format!("$R {ASK} | cat"), format!("echo in | $R {ASK} | cat"), format!("$R {ASK}")] {
        shell.runs(&line, "ask: ");
        shell.answers("text", "got text");
    }
    // The modes of the terminal, and an input that is the terminal.
    shell.runs(
        "$R sh -c 'stty -echo; stty echo; echo rea\"\"dy; read x; tty; echo g\"\"ot $x' | cat",
        "ready",
    );
    shell.answers("text", "got text");
    // A pager in the same pipeline reads keys.
    shell.runs(
        "$R seq 5 | sh -c 'cat >/dev/null; echo rea\"\"dy; read x </dev/tty; echo p\"\"ager $x'",
        "ready",
    );
    shell.answers("key", "pager key");
}

#[test]
fn key_reaches_the_command_once() {
    let mut shell = Shell::start();
    let dir = temp_dir();
    let count = path(dir.path()).to_owned() + "/count";
    let line = format!(
        "$R sh -c 'trap \"echo x >>{count}\" INT; echo rea\"\"dy; sleep 9; sleep 0.3; exit 5'; echo st$?"
    );
    shell.runs(&line, "ready");
    let child = child_of(shell.relay());
    wait_for("the sleep", || children(child).len() == 1);
    let from = shell.types("\x03");
    shell.waits_for("st5", from);
    assert_eq!(file(count.as_ref()), "x\n");
    wait_for("its end", || children(shell.0.pid()).is_empty());
    // kill(1) of the relay alone is passed on.
    shell.runs(
        "$R sh -c 'trap \"echo I\"\"NT; exit 6\" INT; echo rea\"\"dy; while :; do sleep 0.02; done'",
        "ready",
    );
    let from = shell.types("");
    signal(shell.relay(), Signal::INT);
    shell.waits_for("INT", from);
    // A command that the key ends.
    shell.runs("$R sh -c 'echo rea\"\"dy; exec sleep 600'", "ready");
    shell.types("\x03");
    shell.runs("echo s\"\"t$?", "st130");
}

#[test]
fn job_control_stops_and_continues_both() {
    let mut shell = Shell::start();
    shell.runs(&format!("$R {ASK} | cat"), "ask: ");
    let from = shell.types("\x1a");
    shell.waits_for("Stopped", from);
    shell.runs("fg", "cat\r\n");
    shell.answers("text", "got text");
    wait_for("the end of the job", || children(shell.0.pid()).is_empty());
    // In the background, the shell sees that the job wants the terminal.
    shell.waits_for_prompt();
    shell.types(&format!("$R {ASK} | cat &\n"));
    let relay = shell.relay();
    let child = child_of(relay);
    wait_for("the stop", || state(relay) == 'T' && state(child) == 'T');
    shell.runs("jobs", "Stopped");
    shell.runs("fg", "cat\r\n");
    shell.answers("text", "got text");
}

#[test]
fn stopped_command_gets_requests_to_exit() {
    for number in [Signal::TERM, Signal::HUP] {
        let mut shell = Shell::start();
        shell.waits_for_prompt();
        shell.types("$R sh -c 'kill -STOP $$; sleep 600'; echo st$?\n");
        let relay = shell.relay();
        let child = child_of(relay);
        wait_for("the stop", || state(child) == 'T');
        let from = shell.types("");
        signal(relay, number);
        shell.waits_for(&format!("st{}", 128 + number.as_raw()), from);
    }
}

#[test]
fn orphaned_group_gets_an_error_and_no_stop() {
    let mut shell = Shell::start();
    let dir = temp_dir();
    let out = path(dir.path()).to_owned() + "/out";
    // Its shell has exited when it reads: no process would continue the group.
    let line = format!("sh -c '$R sh -c \"sleep 0.3; read x </dev/tty; echo \\$? >{out}\" | cat &'");
    shell.types(&format!("{line}\n"));
    shell
        .0
        .wait_until_true("the end", || std::fs::read_to_string(&out).is_ok_and(|text| text.ends_with('\n')));
    assert_ne!(file(out.as_ref()), "0\n");
}

/// kill(1) names one process: what the command started gets nothing, with a relay and without.
#[test]
fn signal_to_one_process_reaches_the_command_alone() {
    for prefix in ["", "$R "] {
        let mut shell = Shell::start();
        shell.waits_for_prompt();
        let before = shell.types(&format!("{prefix}sh -c 'sleep 600 & echo pi\"\"d:$!:; wait'; echo st$?\n"));
        shell.waits_for(":\r\n", before);
        let shown = text(&shell.0.record().outs[0][before..]);
        let (_, pid) = shown.split_once("pid:").expect("find the pid");
        let grandchild: u32 = pid.split(':').next().unwrap_or_default().parse().expect("parse the pid");
        let started = children(shell.0.pid());
        let from = shell.types("");
        signal(started[0], Signal::TERM);
        shell.waits_for("st143", from);
        let survives = lives(grandchild);
        signal(grandchild, Signal::KILL);
        assert!(survives, "`{prefix}`: the grandchild got the signal, too");
    }
}

#[test]
fn kill_of_the_relay_ends_what_lost_its_parents() {
    let mut shell = Shell::start();
    shell.runs("$R sh -c '(sleep 600 & echo pi\"\"d:$!:); exec sleep 600' &", ":\r\n");
    let shown = text(&shell.0.record().outs[0]);
    let orphan = shown.rsplit("pid:").next().and_then(|rest| rest.split(':').next()).expect("find pid");
    let orphan: u32 = orphan.parse().expect("parse pid");
    let relay = shell.relay();
    let child = child_of(relay);
    signal(relay, Signal::KILL);
    let ended = || !lives(child) && !lives(orphan);
    shell.0.wait_until_true("the end of all", ended);
    shell.0.read_for(Duration::ZERO);
}
