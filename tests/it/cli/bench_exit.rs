//! `minder bench exit` and `minder bench spawn`: every mechanism works, and no child is left.
#![cfg(any(target_os = "linux", windows))]

#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(target_os = "linux")]
use rustix::process::{Pid, Signal, kill_process};

#[cfg(target_os = "linux")]
use super::text;
use super::{Command, Run, file, minder, path, run_to_end};
#[cfg(target_os = "linux")]
use crate::support::lives;

/// Children of one test: the number of seconds that they sleep identifies them.
#[cfg(target_os = "linux")]
struct Sleep(String);

#[cfg(target_os = "linux")]
impl Sleep {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self(format!("1{:07}.{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the command that each of them runs.
    fn line(&self) -> String {
        format!("sleep {}", self.0)
    }

    /// Returns the pids of live children.
    fn pids(&self) -> Vec<u32> {
        let wanted = format!("sleep\0{}\0", self.0);
        let all = std::fs::read_dir("/proc").expect("list processes").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| file(format!("/proc/{pid}/cmdline").as_ref()) == wanted && lives(*pid)).collect()
    }

    fn count(&self) -> usize {
        self.pids().len()
    }
}

/// Children of one test: each has a file while it lives.
#[cfg(windows)]
struct Sleep(tempfile::TempDir);

#[cfg(windows)]
impl Sleep {
    fn new() -> Self {
        Self(super::temp_dir())
    }

    fn marker(&self) -> std::path::PathBuf {
        self.0.path().join("marker")
    }

    /// Returns the command that each of them runs.
    fn line(&self) -> String {
        format!("{} sleep {}", super::CONSOLE_CHILD, path(&self.marker()))
    }

    /// Returns the number of live children.
    fn count(&self) -> usize {
        let files = self.0.path().read_dir().expect("list markers").flatten();
        files.filter(|item| item.path() != self.marker()).count()
    }
}

impl Sleep {
    /// Returns `minder` with these arguments and this child.
    fn minder(&self, line: &str) -> Command {
        let mut command = minder(line);
        command.arg("--child").arg(self.line());
        command
    }
}

/// Returns the rows of CSV after the names of the columns, which it checks.
fn rows(csv: &str, columns: &str) -> Vec<Vec<String>> {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(&*super::bench::columns(columns)), "{csv}");
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[cfg(target_os = "linux")]
fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).expect("convert pid"), signal).expect("send signal");
}

/// Returns whether CPU time was counted. Its resolution on Windows is coarse, so there it may be 0.
fn is_cost(cpu: &str) -> bool {
    if cfg!(windows) { number(cpu) >= 0.0 } else { number(cpu) > 0.0 }
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("`{cell}` is not a number"))
}

/// Returns the mechanisms of this machine.
fn exits() -> Vec<&'static str> {
    minder_bench::exits().filter(|name| crate::support::has_backend(name)).collect()
}

const EXIT: &str = "mechanism,kind,live,round,exits,cpu_ns,wall_ns";
const SPAWN: &str = "mechanism,parent_mib,round,spawns,cpu_ns,wall_ns";

/// Numbers of children, and rounds. A start takes longer under Wine, and two children need 22
/// starts.
const LIVE: &[&str] = if cfg!(windows) { &["2"] } else { &["3", "12"] };
const ROUNDS: &[&str] = if cfg!(windows) { &["1"] } else { &["1", "2"] };

#[test]
fn every_mechanism_observes_every_exit() {
    let sleep = Sleep::new();
    let line = format!("bench exit --live {} --rounds {} --csv", LIVE.join(","), ROUNDS.len());
    let line = exits().iter().fold(line, |line, name| format!("{line} --mechanism {name}"));
    let ended = Run::start(&sleep.minder(&line)).wait().exit_code(0).stderr("");
    let rows = rows(&ended.text(), EXIT);
    for mechanism in exits() {
        for (live, kind) in LIVE.iter().flat_map(|live| [(*live, "one"), (*live, "burst")]) {
            for round in ROUNDS {
                let row = rows.iter().find(|row| row[..4] == [mechanism, kind, live, round]);
                let row = row.unwrap_or_else(|| panic!("no {kind} of {mechanism} with {live} in {rows:?}"));
                assert!(is_cost(&row[5]) && number(&row[6]) > 0.0, "{row:?}");
                assert!(if kind == "burst" { row[4] == live } else { number(&row[4]) > 0.0 }, "{row:?}");
            }
        }
    }
    assert_eq!(rows.len(), exits().len() * LIVE.len() * ROUNDS.len() * 2);
    assert_eq!(sleep.count(), 0);
}

#[test]
fn default_child_can_be_measured() {
    let ended = run_to_end("bench exit --live 1 --rounds 1 --csv --mechanism floor").exit_code(0).stderr("");
    assert_eq!(rows(&ended.text(), EXIT).len(), 2);
}

#[test]
fn every_mechanism_starts_children() {
    // A case takes a second on Windows.
    let sizes: &[&str] = if cfg!(windows) { &["8"] } else { &["1", "8"] };
    let line = format!("bench spawn --parent-mib {} --rounds 1 --csv", sizes.join(","));
    let ended = run_to_end(&line).exit_code(0).stderr("");
    let rows = rows(&ended.text(), SPAWN);
    let heads: Vec<&[String]> = rows.iter().map(|row| &row[..3]).collect();
    let wanted = sizes.iter().flat_map(|size| minder_bench::spawns().map(move |name| [name, size, "1"]));
    assert!(wanted.eq(heads.iter().map(|head| [&*head[0], &*head[1], &*head[2]])), "{heads:?}");
    for row in &rows {
        assert!(number(&row[3]) > 0.0 && is_cost(&row[4]) && number(&row[5]) > 0.0, "{row:?}");
    }
}

#[test]
fn tables_have_a_row_for_each_kind_and_a_chart_has_curves() {
    let sleep = Sleep::new();
    let directory = super::temp_dir();
    let svg = directory.path().join("exit.svg");
    let second = if cfg!(windows) { "floor" } else { "poll" };
    let line = format!("bench exit --live 1,2 --rounds 1 --mechanism floor --mechanism {second}");
    let mut command = sleep.minder(&line);
    let ended = Run::start(command.arg("--svg").arg(path(&svg))).wait().exit_code(0).stderr("");
    let heads: Vec<String> =
        ended.text().lines().map(|line| line.split("  ").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(heads.iter().filter(|head| *head == "one").count(), 4, "{}", ended.text());
    assert_eq!(heads.iter().filter(|head| *head == "burst").count(), 4, "{}", ended.text());
    let chart = file(&svg);
    for part in ["Hearing that a child has ended", "children that live", "floor", "</svg>"] {
        assert!(chart.contains(part), "{part} is not in the chart");
    }
    let last = minder_bench::spawns().last().expect("find last mechanism");
    let line = format!("bench spawn --parent-mib 1,2 --rounds 1 --mechanism {last} --svg");
    Run::start(minder(&line).arg(path(&svg))).wait().exit_code(0).stderr("");
    let chart = file(&svg);
    for part in ["Starting a child", "MiB of the parent", last, "</svg>"] {
        assert!(chart.contains(part), "{part} is not in the chart");
    }
}

const INTERRUPTED: &str = "minder: interrupted; showing what was measured\n";

#[cfg(target_os = "linux")] // The next test is that of Windows.
#[test]
fn interrupt_shows_what_was_measured_and_leaves_no_child() {
    let sleep = Sleep::new();
    let mut live = Run::start(&sleep.minder("bench exit --live 150 --rounds 1000 --csv"));
    live.wait_until("row", |record| text(&record.outs[0]).lines().count() > 1);
    live.signal(Signal::INT);
    let ended = live.wait().exit_code(130).stderr(INTERRUPTED);
    assert!(!rows(&ended.text(), EXIT).is_empty());
    assert_eq!(sleep.count(), 0);
}

#[cfg(windows)]
#[test]
fn ctrl_c_shows_what_was_measured_and_leaves_no_child() {
    let sleep = Sleep::new();
    let command = sleep.minder("bench exit --live 2 --rounds 1000 --csv --mechanism floor");
    // More children than the first row needs.
    let ended = super::interrupted(60, &sleep.marker(), &command, 130).stderr(INTERRUPTED);
    assert!(!rows(&ended.text(), EXIT).is_empty());
    assert_eq!(sleep.count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn children_are_killed_when_minder_is_killed() {
    for mechanism in [exits()[0], "floor", "thread-each"] {
        let sleep = Sleep::new();
        let line = format!("bench exit --live 150 --rounds 1000 --csv --mechanism {mechanism}");
        let mut live = Run::start(&sleep.minder(&line));
        live.wait_until_true("children", || sleep.count() > 50);
        live.kill();
        live.wait_until_true("the end of all children", || sleep.count() == 0);
        live.wait().killed();
    }
}

/// Under Wine a child whose start is interrupted by the kill of its parent never exits. The test
/// therefore blocks the write of the first row by a full pipe, so that no child is being started
/// when it kills minder.
#[cfg(windows)]
#[test]
fn children_are_killed_when_minder_is_killed() {
    for mechanism in [exits()[0], "floor", "thread-each"] {
        let sleep = Sleep::new();
        let (_reader, mut writer) = super::pipe();
        // The default size of an anonymous pipe.
        std::io::Write::write_all(&mut writer, &[b'x'; 4096]).expect("fill pipe");
        let mut command =
            sleep.minder(&format!("bench exit --live 2 --rounds 1 --csv --mechanism {mechanism}"));
        let mut live = Run::start(command.stdout(writer));
        live.wait_until_true("the first children", || sleep.marker().exists());
        let mut starts = String::new();
        while std::mem::replace(&mut starts, file(&sleep.marker())) != starts || sleep.count() < 2 {
            live.read_for(std::time::Duration::from_millis(500));
        }
        live.kill();
        live.wait_until_true("the end of all children", || sleep.count() == 0);
        live.wait().killed();
    }
}

#[test]
fn unfit_child_is_reported() {
    // `--child` is split at spaces, and the path of test_child may have some: it is found in PATH.
    let dir = crate::support::test_child_dir();
    let with = |line: &str, child: &str| {
        let mut command = minder(line);
        Run::start(command.arg("--child").arg(child).env("PATH", &dir)).wait().exit_code(255)
    };
    for line in ["bench exit --live 5", "bench spawn --parent-mib 1"] {
        with(line, "no-such-program").error_line(&["failed to start `no-such-program`: not found in PATH"]);
        with(line, " \t").error_line(&["--child", "no program"]);
    }
    // Children that exit at once, and some that exit after the first measurements.
    let (many, life_ms) = if cfg!(windows) { (10, 1000) } else { (250, 300) };
    let children = [(5, "test_child exit 0".to_owned()), (many, format!("test_child sleep-ms {life_ms}"))];
    for (live, child) in children {
        let line = format!("bench exit --live {live} --rounds 1000");
        with(&line, &child).error_line(&["test_child", "ended by itself"]);
    }
}

#[test]
fn parent_beyond_free_memory_is_skipped() {
    run_to_end("bench spawn --parent-mib 1048576")
        .exit_code(255)
        .error_line(&["`1048576 MiB`", "free memory"]);
    let ended =
        run_to_end("bench spawn --parent-mib 1,1048576 --rounds 1 --csv --mechanism minder").exit_code(0);
    assert_eq!(rows(&ended.text(), SPAWN).len(), 1);
    ended.error_line(&["`1048576 MiB`", "free memory"]);
}

#[cfg(target_os = "linux")] // On Windows no mechanism reaps the children of others.
#[test]
fn mechanisms_that_reap_every_child_refuse_a_process_with_other_children() {
    let sleep = Sleep::new();
    let mut shell = Command::new("sh");
    let minder = env!("CARGO_BIN_EXE_minder-dup");
    shell.args(["-c", "sleep \"$1\" >/dev/null 2>&1 & exec \"$0\" bench exit --live 2 --rounds 1 --csv"]);
    shell.args([minder, &sleep.0]).stdout(minder::Stdio::piped()).stderr(minder::Stdio::piped());
    let ended = Run::start(&shell).wait().exit_code(0);
    // The other child was not reaped and is still alive.
    let other = sleep.pids();
    assert_eq!(other.len(), 1);
    for pid in &other {
        signal(*pid, Signal::KILL);
    }
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
