//! `minder bench exit` and `minder bench spawn`: every mechanism, and nobody left behind.
#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicU32, Ordering};

use minder::lab;
use rustix::process::{Pid, Signal, kill_process};

use super::{Command, Live, ended, file, minder, path, text};
use crate::kit::lives;

/// Children that nobody else starts: for so many seconds, which name this test.
struct Sleep(String);

impl Sleep {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self(format!("1{:07}.{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// `minder` with these words and this child.
    fn minder(&self, line: &str) -> Command {
        let mut command = minder(line);
        command.arg("--child").arg(format!("sleep {}", self.0));
        command
    }

    /// Those of them that live.
    fn pids(&self) -> Vec<u32> {
        let wanted = format!("sleep\0{}\0", self.0);
        let all = std::fs::read_dir("/proc").expect("the list of processes").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| file(format!("/proc/{pid}/cmdline").as_ref()) == wanted && lives(*pid)).collect()
    }

    fn count(&self) -> usize {
        self.pids().len()
    }
}

/// The rows of CSV, without its names of columns, which are as given.
fn rows(csv: &str, columns: &str) -> Vec<Vec<String>> {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(columns), "{csv}");
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).expect("a pid"), signal).expect("a process to signal");
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("{cell} is no number"))
}

/// The mechanisms of this machine.
fn exits() -> Vec<&'static str> {
    lab::exits().filter(|name| crate::kit::has_backend(name)).collect()
}

const EXIT: &str = "mechanism,kind,live,round,exits,cpu_ns,wall_ns";
const SPAWN: &str = "mechanism,parent_mib,round,spawns,cpu_ns,wall_ns";

#[test]
fn every_mechanism_hears_every_exit() {
    let sleep = Sleep::new();
    let line = "bench exit --live 3,12 --rounds 2 --csv".to_owned();
    let line = exits().iter().fold(line, |line, name| format!("{line} --mechanism {name}"));
    let ended = Live::start(&sleep.minder(&line)).finish().code(0).says("");
    let rows = rows(&ended.text(), EXIT);
    for mechanism in exits() {
        for (kind, live) in [("one", "3"), ("burst", "3"), ("one", "12"), ("burst", "12")] {
            for round in ["1", "2"] {
                let row = rows.iter().find(|row| row[..4] == [mechanism, kind, live, round]);
                let row = row.unwrap_or_else(|| panic!("no {kind} of {mechanism} with {live} in {rows:?}"));
                assert!(number(&row[5]) > 0.0 && number(&row[6]) > 0.0, "{row:?}");
                assert!(if kind == "burst" { row[4] == live } else { number(&row[4]) > 0.0 }, "{row:?}");
            }
        }
    }
    assert_eq!(rows.len(), exits().len() * 8);
    assert_eq!(sleep.count(), 0);
}

#[test]
fn every_mechanism_starts_children() {
    let ended = ended("bench spawn --parent-mib 1,8 --rounds 1 --csv").code(0).says("");
    let rows = rows(&ended.text(), SPAWN);
    let heads: Vec<&[String]> = rows.iter().map(|row| &row[..3]).collect();
    let wanted = ["1", "8"].into_iter().flat_map(|size| lab::spawns().map(move |name| [name, size, "1"]));
    assert!(wanted.eq(heads.iter().map(|head| [&*head[0], &*head[1], &*head[2]])), "{heads:?}");
    assert!(rows.iter().flat_map(|row| &row[3..]).all(|cell| number(cell) > 0.0), "{rows:?}");
}

#[test]
fn tables_have_a_row_for_each_kind_and_a_chart_has_curves() {
    let (sleep, folder) = (Sleep::new(), super::folder());
    let svg = folder.path().join("exit.svg");
    let mut command = sleep.minder("bench exit --live 2,4 --rounds 1 --mechanism floor --mechanism poll");
    let ended = Live::start(command.arg("--svg").arg(path(&svg))).finish().code(0).says("");
    let heads: Vec<String> =
        ended.text().lines().map(|line| line.split("  ").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(heads.iter().filter(|head| *head == "one").count(), 4, "{}", ended.text());
    assert_eq!(heads.iter().filter(|head| *head == "burst").count(), 4, "{}", ended.text());
    let chart = file(&svg);
    for part in ["Hearing that a child has ended", "children that live", "floor", "</svg>"] {
        assert!(chart.contains(part), "{part} is not in the chart");
    }
    Live::start(minder("bench spawn --parent-mib 1,2 --rounds 1 --svg").arg(path(&svg)))
        .finish()
        .code(0)
        .says("");
    let chart = file(&svg);
    for part in ["Starting a child", "MiB of the parent", "fork", "</svg>"] {
        assert!(chart.contains(part), "{part} is not in the chart");
    }
}

#[test]
fn an_interrupt_shows_what_was_measured_and_leaves_nobody() {
    let sleep = Sleep::new();
    let mut live = Live::start(&sleep.minder("bench exit --live 150 --rounds 1000 --csv"));
    live.until("row", |record| text(&record.outs[0]).lines().count() > 1);
    live.signal(Signal::INT);
    let ended = live.finish().code(130).says("minder: interrupted; showing what was measured\n");
    assert!(!rows(&ended.text(), EXIT).is_empty());
    assert_eq!(sleep.count(), 0);
}

#[test]
fn children_die_with_a_minder_that_is_killed() {
    for mechanism in ["epoll", "floor", "thread-each"] {
        let sleep = Sleep::new();
        let line = format!("bench exit --live 150 --rounds 1000 --csv --mechanism {mechanism}");
        let mut live = Live::start(&sleep.minder(&line));
        live.until_true("children", || sleep.count() > 50);
        live.signal(Signal::KILL);
        live.until_true("the end of all children", || sleep.count() == 0);
        live.finish().by(Signal::KILL);
    }
}

#[test]
fn a_child_that_is_of_no_use_is_named() {
    let with =
        |line: &str, child: &str| Live::start(minder(line).arg("--child").arg(child)).finish().code(255);
    for line in ["bench exit --live 5", "bench spawn --parent-mib 1"] {
        with(line, "no-such-program").complains(&["failed to start `no-such-program`: not found in PATH"]);
        with(line, " \t").complains(&["--child", "no program"]);
    }
    // At once, and a while after the first were measured.
    with("bench exit --live 5 --rounds 1000", "true").complains(&["`true`", "ended by itself"]);
    with("bench exit --live 250 --rounds 1000", "sleep 0.3").complains(&["`sleep`", "ended by itself"]);
}

#[test]
fn a_parent_that_is_too_large_is_left_out() {
    ended("bench spawn --parent-mib 1048576").code(255).complains(&["`1048576 MiB`", "free memory"]);
    let ended = ended("bench spawn --parent-mib 1,1048576 --rounds 1 --csv --mechanism minder").code(0);
    assert_eq!(rows(&ended.text(), SPAWN).len(), 1);
    ended.complains(&["`1048576 MiB`", "free memory"]);
}

#[test]
fn whoever_takes_every_exit_leaves_those_of_others_alone() {
    let sleep = Sleep::new();
    let mut shell = Command::new("sh");
    let minder = env!("CARGO_BIN_EXE_minder-dup");
    shell.args(["-c", "sleep \"$1\" >/dev/null 2>&1 & exec \"$0\" bench exit --live 2 --rounds 1 --csv"]);
    shell.args([minder, &sleep.0]).stdout(minder::Stdio::Piped).stderr(minder::Stdio::Piped);
    let ended = Live::start(&shell).finish().code(0);
    // It is not ours to take; it lived on.
    let stranger = sleep.pids();
    assert_eq!(stranger.len(), 1);
    stranger.iter().for_each(|pid| signal(*pid, Signal::KILL));
    for mechanism in exits() {
        let measured = rows(&ended.text(), EXIT).iter().any(|row| row[0] == mechanism);
        let refused =
            ended.err.lines().any(|line| line.contains(&format!("{mechanism}, one, 2 live children")));
        assert_eq!(
            measured,
            !matches!(mechanism, "sigchld-any" | "thread-one"),
            "{mechanism}\n{}",
            ended.err
        );
        assert_ne!(measured, refused, "{mechanism}\n{}", ended.err);
    }
}
