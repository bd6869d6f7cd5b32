//! `minder clock`: what it shows follows from what was asked and from what the system states. Never how
//! late a sleep was.
//!
//! Wine has no tick: it grants every request and states constants. These tests therefore do not show a
//! tick that changes, nor the rule of Windows 10, version 2004, by which a request holds for the processes
//! that made one.
#![cfg(any(target_os = "linux", windows))]

mod rows;

use std::path::Path;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use minder::clock::{Clock, SleepMethod};
#[cfg(target_os = "linux")]
use minder::{Group, Size};
use minder_bench::SleepWay;
#[cfg(target_os = "linux")]
use rustix::process::Signal;

#[cfg(windows)]
use super::interrupted;
#[cfg(target_os = "linux")]
use super::{PATIENCE, RunOutput, SOON, from, text};
use super::{Run, file, minder, path, pipe, run_to_end, temp_dir};
use crate::support::lives;
#[cfg(target_os = "linux")]
use crate::support::nap;
use rows::{Row, csv, json, number};

const STATE: &str = "item,property,value";
const SUMMARY: &str =
    "way,asked_ns,load,sleeps,early,min_ns,p50_ns,p90_ns,p99_ns,p999_ns,max_ns,mean_ns,cpu_ns";
const EACH: &str = "way,asked_ns,load,slept_ns,late_ns,cpu_ns";
const SWEEP: &str = "setting_ns,process,states_ns,step_ns,sleeps,mean_coarse_ns,mean_ns,p50_ns";
const WATCH: &str = "seconds,sleeps,early,p50_ns,p99_ns,max_ns,mean_ns,cpu_ns,load,states_ns";

/// The processes of one setting of a sweep.
const PROCESSES: [&str; 3] = ["setter", "other", "child"];

#[cfg(target_os = "linux")]
const INTERRUPTED: &str = "minder: interrupted; showing what was measured\n";
const TOO_EARLY: &str = "minder: interrupted before the first measurement\n";

/// Returns the ways to sleep of this machine.
fn ways() -> Vec<&'static str> {
    SleepWay::available().map(SleepWay::name).filter(|name| crate::support::has_backend(name)).collect()
}

/// Fails unless these columns are in ascending order.
fn assert_ascending(row: &Row, names: &[&str]) {
    let ascend = names.is_sorted_by(|one, other| number(row, one) <= number(row, other));
    assert!(ascend, "{names:?} do not ascend: {row:?}");
}

/// Returns the timer slack of this thread, which the processes that it starts have.
#[cfg(target_os = "linux")]
fn own_slack() -> String {
    rustix::thread::current_timer_slack().expect("read timer slack").to_string()
}

/// Fails unless the file is a chart with these words, each as a separate text.
fn assert_chart(chart: &Path, words: &[&str]) {
    let svg = file(chart);
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("no end of a tag: {piece}"));
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        match tag {
            _ if tag.ends_with('/') => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "{tag}"),
            _ => open.push(name),
        }
    }
    assert!(svg.starts_with("<svg") && open.is_empty(), "{open:?} in {svg}");
    for word in words {
        assert!(svg.lines().any(|line| line == *word), "{word} is missing:\n{svg}");
    }
}

/// Returns a directory, a chart in it, and arguments that ask for it.
fn with_chart(line: &str) -> (tempfile::TempDir, std::path::PathBuf, String) {
    let dir = temp_dir();
    let chart = dir.path().join("chart.svg");
    let line = format!("{line} --svg {}", path(&chart));
    (dir, chart, line)
}

/// Runs the command with a stdout that has no reader. It ends quietly, with 141.
fn run_without_reader(line: &str) {
    let (reader, writer) = pipe();
    drop(reader);
    Run::start(minder(line).stdout(writer)).wait().exit_code(141).stderr("");
}

/// Returns what a table command prints in a locale with UTF-8.
fn shown(line: &str) -> String {
    Run::start(minder(line).env("LC_ALL", "C.UTF-8")).wait().exit_code(0).stderr("").text()
}

#[test]
fn microseconds_have_the_unit_of_the_locale() {
    for (locale, unit) in [("C.UTF-8", "100 µs "), ("C", "100 us ")] {
        let text = Run::start(minder("clock").env("LC_ALL", locale)).wait().exit_code(0).text();
        assert!(text.contains(&format!("\nsleep {unit}")), "{locale}: {text}");
        assert_eq!(text.is_ascii(), locale == "C", "{text}");
        let rows = Run::start(minder("clock --csv").env("LC_ALL", locale)).wait().exit_code(0).text();
        assert!(rows.contains("100 us") && rows.is_ascii(), "{locale}: {rows}");
    }
}

#[test]
fn state_has_sentences_clocks_and_remarks() {
    let text = shown("clock");
    for time in ["1 ms", "100 µs"] {
        let begin = format!("sleep {time} ");
        let sentence = text.lines().find(|line| line.starts_with(&begin));
        let sentence = sentence.unwrap_or_else(|| panic!("nothing about {time}:\n{text}"));
        let end = format!("({}: ", SleepMethod::most_exact());
        assert!(sentence.contains(" median ") && sentence.contains(&end), "{sentence}");
    }
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_head = |line: &&str| words(line) == ["clock", "unit", "step", "reading", "it"];
    let mut lines = text.lines().skip_while(|line| !is_head(line));
    assert!(lines.next().is_some(), "no table of clocks:\n{text}");
    for clock in Clock::ALL.into_iter().filter(|clock| clock.read().is_ok()) {
        let row = lines.next().unwrap_or_default();
        assert!(row.starts_with(clock.name()) && row.ends_with("s"), "{clock}: `{row}` in:\n{text}");
    }
    assert_eq!(lines.next(), Some(""), "{text}");
    let has_line = |name: &str, part: &str| {
        text.lines().any(|line| line.starts_with(&format!("{name} ")) && line.contains(part))
    };
    let source = Path::new("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    assert_eq!(has_line("clock source", ""), !file(source).trim().is_empty(), "{text}");
    assert_eq!(has_line("timer slack", "s (a sleep may end this"), cfg!(target_os = "linux"), "{text}");
    assert_eq!(has_line("tick", " without requests, at best "), cfg!(windows), "{text}");
    assert_eq!(has_line("", " while this program requested the fastest one"), cfg!(windows), "{text}");
    assert!(has_line("load", " processor"), "{text}");
    let is_usual = text.lines().any(|line| line == "Nothing is unusual.");
    assert_ne!(is_usual, text.lines().any(|line| line == "Unusual:"), "{text}");
    // Under Wine every time has a note.
    assert_eq!(text.starts_with("Note: under Wine, "), minder_bench::is_wine(), "{text}");
}

#[test]
fn state_rows_agree_with_the_system() {
    let text = run_to_end("clock --json").exit_code(0).stderr("").text();
    let rows = json(&text, STATE);
    let value = |item: &str, property: &str| {
        let item = format!("\"{item}\"");
        let property = format!("\"{property}\"");
        let row = rows.iter().find(|row| row["item"] == item && row["property"] == property);
        row.unwrap_or_else(|| panic!("no {property} of {item}:\n{text}"))["value"].clone()
    };
    let number = |item: &str, property: &str| value(item, property).parse::<f64>().expect("parse number");
    #[cfg(target_os = "linux")]
    {
        let slack = value("system", "timer_slack_ns");
        assert_eq!(slack, own_slack());
        // So /proc says.
        let of_child = crate::support::stdout_of(&crate::support::test_child("timer-slack leaf"));
        assert_eq!(slack, of_child.trim_end());
        assert_eq!(value("system", "tick_ns"), "null");
        assert!(number("system", "load") >= 0.0);
    }
    if cfg!(windows) {
        assert_eq!(value("system", "timer_slack_ns"), "null");
        let tick = ["tick_shortest_ns", "tick_ns", "tick_longest_ns"].map(|name| number("system", name));
        assert!(tick[0] > 0.0 && tick.is_sorted(), "{tick:?}");
        assert!(number("system", "tick_granted_ns") > 0.0);
    }
    assert_eq!(value("system", "precise"), format!("\"{}\"", SleepMethod::most_exact()));
    assert!(number("system", "processors") >= 1.0);
    for clock in Clock::ALL.into_iter().filter(|clock| clock.read().is_ok()) {
        assert!(number(&format!("clock {clock}"), "read_ns") > 0.0);
    }
    for way in ["thread-sleep", "precise"] {
        for time in ["1 ms", "100 us"] {
            let item = format!("sleep {way}, {time}");
            assert_eq!(number(&item, "sleeps"), 200.0);
            let late = ["p50_ns", "p99_ns", "max_ns"].map(|property| number(&item, property));
            assert!(late.is_sorted(), "{item}: {late:?}");
        }
    }
}

#[test]
fn state_is_written_as_csv_and_chart() {
    let (_dir, chart, line) = with_chart("clock --csv");
    let rows = csv(&run_to_end(&line).exit_code(0).stderr("").text(), STATE);
    assert!(rows.iter().any(|row| row["item"] == "sleep precise, 100 us" && number(row, "value") == 200.0));
    let titles = ["sleeps of 1 ms, idle", "sleeps of 100 us, idle"];
    assert_chart(&chart, &titles);
    assert_chart(&chart, &["How late sleeps end", "later than asked for", "thread-sleep", "precise"]);
}

/// Returns what `minder clock` states if it is started with this slack.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn state_with_slack(slack: Duration) -> String {
    let mut clock = minder("clock");
    let ended = Run::start(clock.env("LC_ALL", "C.UTF-8").timer_slack(slack)).wait().exit_code(0).stderr("");
    let text = ended.text();
    let (_, remarks) = text.split_once("\nUnusual:\n").unwrap_or_else(|| panic!("no remark:\n{text}"));
    // Remarks are wrapped.
    remarks.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn inherited_slack_is_unusual() {
    let remarks = state_with_slack(Duration::from_micros(400));
    assert!(remarks.contains("The timer slack is 400 µs, not 50 µs: sleeps and time-outs"), "{remarks}");
    let remarks = state_with_slack(Duration::from_nanos(1));
    assert!(remarks.contains("The timer slack is 1 ns, not 50 µs: timers of this process"), "{remarks}");
    // As a job, with the slack of the flag.
    let line = "run -j1 --no-record --timer-slack 0.3ms MINDER clock ::: --json";
    let rows = json(&run_to_end(line).exit_code(0).stderr("").text(), STATE);
    let of = |property: &str| rows.iter().find(|row| row["property"] == format!("\"{property}\""));
    assert_eq!(of("timer_slack_ns").expect("find the slack")["value"], "300000");
    let unusual = &of("unusual").expect("find a remark")["value"];
    assert!(unusual.starts_with("\"The timer slack is 300 us, not 50 us"), "{unusual}");
}

#[test]
fn every_way_has_a_row_in_every_table() {
    // Few sleeps: while other programs run, each waits for a processor, and for the load.
    let (_dir, chart, line) = with_chart("clock measure --count 4 --load 2");
    let text = shown(&line);
    let mut titles = Vec::new();
    for load in ["idle", "2 threads compute"] {
        for time in ["1 ms", "100 µs"] {
            let is_title =
                |line: &str| line.contains(&format!(" {time} ")) || line.contains(&format!(" {time},"));
            let mut lines = text.lines().skip_while(|line| {
                let is_head = line.starts_with("4 sleeps ") && line.contains(load) && is_title(line);
                !(is_head && line.ends_with("; how much later they end:"))
            });
            assert!(lines.next().is_some(), "no table of {time}, {load}:\n{text}");
            assert_eq!(lines.next(), Some(""));
            let head = lines.next().unwrap_or_default();
            let names: Vec<&str> = head.split_whitespace().collect();
            assert_eq!(names[..6], ["way", "p50", "p99", "p99.9", "max", "CPU"], "{text}");
            assert!(head.ends_with("  1 µs to 10 ms"), "{text}");
            let rows: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
            let first = |row: &&str| row.split(' ').next().unwrap_or_default().to_owned();
            assert_eq!(rows.iter().map(first).collect::<Vec<_>>(), ways(), "{text}");
            // Five times, and a bar at least.
            assert!(rows.iter().all(|row| row.split_whitespace().count() >= 12), "{text}");
            titles.push(format!("sleeps of {time}, {load}").replace('µ', "u"));
        }
    }
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    assert_chart(&chart, &titles);
    assert_chart(&chart, &ways());
    let labels = ["later than asked for", "one sleep of this many is as late or later (2: half of them)"];
    assert_chart(&chart, &labels);
}

#[test]
fn summaries_have_a_row_for_each_way_time_and_load() {
    let line = "clock measure --count 5 --time 200us,1ms,200us --load 1";
    let rows = csv(&run_to_end(&format!("{line} --csv")).exit_code(0).stderr("").text(), SUMMARY);
    let loads = ["0", "1"].into_iter();
    let cases = loads.flat_map(|load| ["200000", "1000000"].map(|time| (load, time)));
    let wanted: Vec<[&str; 3]> =
        cases.flat_map(|(load, time)| ways().into_iter().map(move |way| [way, time, load])).collect();
    let found: Vec<[&str; 3]> =
        rows.iter().map(|row| ["way", "asked_ns", "load"].map(|name| &*row[name])).collect();
    assert_eq!(found, wanted);
    for row in &rows {
        assert_eq!(row["sleeps"], "5", "{row:?}");
        // Windows may end the sleeps of its mechanisms a little early; those of the library never are.
        if cfg!(unix) || ["precise", "thrifty"].contains(&&*row["way"]) {
            assert_eq!(row["early"], "0", "{row:?}");
        }
        assert_ascending(row, &["min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"]);
        assert_ascending(row, &["min_ns", "mean_ns", "max_ns"]);
        assert!(number(row, "cpu_ns") >= 0.0, "{row:?}");
    }
    let line = "clock measure --count 3 --time 1ms --way precise --way thread-sleep --json";
    let rows = json(&run_to_end(line).exit_code(0).stderr("").text(), SUMMARY);
    let heads: Vec<[&str; 3]> =
        rows.iter().map(|row| ["way", "load", "sleeps"].map(|name| &*row[name])).collect();
    assert_eq!(heads, [["\"thread-sleep\"", "0", "3"], ["\"precise\"", "0", "3"]]);
}

#[test]
fn each_sleep_has_a_row() {
    let line = "clock measure --each --count 12 --time 1ms,50us --way thread-sleep --way precise --load 1";
    let rows = csv(&run_to_end(&format!("{line} --csv")).exit_code(0).stderr("").text(), EACH);
    for (way, time, load) in ["thread-sleep", "precise"]
        .into_iter()
        .flat_map(|way| ["1000000", "50000"].map(|time| (way, time)))
        .flat_map(|(way, time)| ["0", "1"].map(|load| (way, time, load)))
    {
        let of =
            rows.iter().filter(|row| row["way"] == way && row["asked_ns"] == time && row["load"] == load);
        assert_eq!(of.count(), 12, "{way}, {time} ns, {load} threads");
    }
    assert_eq!(rows.len(), 8 * 12);
    for row in &rows {
        let [asked, slept, late] = ["asked_ns", "slept_ns", "late_ns"].map(|name| number(row, name));
        assert_eq!(late, (slept - asked).max(0.0), "{row:?}");
        assert!(cfg!(windows) && row["way"] != "precise" || slept >= asked, "early: {row:?}");
    }
    let line = "clock measure --each --json --count 1 --time 1ms";
    let rows = json(&run_to_end(line).exit_code(0).stderr("").text(), EACH);
    let found: Vec<&str> = rows.iter().map(|row| row["way"].trim_matches('"')).collect();
    assert_eq!(found, ways());
}

#[test]
fn unknown_way_names_those_that_exist() {
    for line in ["clock measure --way timer", "clock watch --way timer"] {
        let ended = run_to_end(line).exit_code(255);
        let names: Vec<&str> = SleepWay::available().map(SleepWay::name).collect();
        let ended = ended.error_line(&["there is no way `timer` to sleep here", &names.join(", ")]);
        assert_eq!(ended.text(), "");
    }
}

/// Returns what the command does if the kernel refuses these system calls.
#[cfg(target_os = "linux")]
fn run_without(calls: &str, line: &str) -> RunOutput {
    Run::start(&from(env!("CARGO_BIN_EXE_seccomp_run"), &format!("{calls} MINDER {line}"))).wait()
}

#[cfg(target_os = "linux")]
#[test]
fn refused_ways_are_listed_and_the_others_measured() {
    const CALLS: &str = "timerfd_create,io_uring_setup";
    let is_refused = |name: &&str| ["timerfd", "io_uring"].contains(name);
    let (_dir, chart, line) = with_chart("clock measure --count 10 --time 1ms");
    let text = run_without(CALLS, &line).exit_code(0).stderr("").text();
    let (table, refused) = text.split_once("\nNot measured:\n").unwrap_or_else(|| panic!("{text}"));
    for way in SleepWay::available().map(SleepWay::name) {
        let has_row = table.lines().any(|line| line.split(' ').next() == Some(way));
        assert_ne!(has_row, is_refused(&way), "{way}:\n{text}");
    }
    let reasons = ["timerfd", "io_uring"]
        .map(|way| format!("  failed to sleep by `{way}`: function not implemented\n"));
    assert_eq!(refused, reasons.concat(), "{text}");
    assert_chart(&chart, &["poll", "precise"]);
    assert!(!file(&chart).contains("timerfd"));
    // Rows have no place for reasons: they are messages.
    let line = "clock measure --count 10 --time 1ms,2ms --csv --way timerfd --way poll";
    let ended = run_without(CALLS, line).exit_code(0);
    assert_eq!(csv(&ended.text(), SUMMARY).len(), 2);
    ended.error_line(&["failed to sleep by `timerfd`: function not implemented"]);
}

#[cfg(target_os = "linux")]
#[test]
fn command_fails_if_all_ways_are_refused() {
    const CALLS: &str = "timerfd_create,io_uring_setup";
    for line in [
        "clock measure --count 10 --load 1 --way timerfd --way io_uring",
        "clock measure --count 10 --way timerfd --csv",
        "clock watch --lines 1 --way timerfd",
    ] {
        let (_dir, chart, line) = with_chart(line);
        let ended = run_without(CALLS, &line).exit_code(255);
        let ended = ended.error_line(&["failed to sleep by `timerfd`: function not implemented"]);
        assert_eq!(ended.text(), "", "{line}");
        assert!(!chart.exists(), "{line} left a chart");
    }
    // The state goes without its most exact timer, and says so.
    let text = run_without(CALLS, "clock").exit_code(0).stderr("").text();
    assert!(text.contains("  The most exact timer, timerfd, cannot be made"), "{text}");
}

/// Returns the rows of the settings, which it checks.
fn sweep_rows(rows: &[Row], settings: &[&str]) {
    let wanted: Vec<[&str; 2]> =
        settings.iter().flat_map(|setting| PROCESSES.map(|process| [*setting, process])).collect();
    let found: Vec<[&str; 2]> =
        rows.iter().map(|row| ["setting_ns", "process"].map(|name| row[name].trim_matches('"'))).collect();
    assert_eq!(found, wanted);
    for row in rows {
        assert!(number(row, "sleeps") >= 1.0 && number(row, "states_ns") >= 0.0, "{row:?}");
        // Windows may end a sleep a little early.
        #[cfg(target_os = "linux")]
        {
            assert!(number(row, "mean_ns") >= 1e6 && number(row, "p50_ns") >= 1e6, "early: {row:?}");
            // The kernel reads the coarse clock at ticks only, so that a short sleep may have no length.
            assert!(number(row, "mean_coarse_ns") >= 0.0, "{row:?}");
            let setting = row["setting_ns"].clone();
            let has_setting =
                row["process"].trim_matches('"') != "other" && !["", "null"].contains(&&*setting);
            assert_eq!(row["states_ns"], if has_setting { setting } else { own_slack() }, "{row:?}");
        }
    }
}

/// On Linux the process with the setting and its child state it, and the other process has the slack of
/// this test. Wine states the same period of the tick to all of them.
#[test]
fn sweep_measures_three_processes_for_each_setting() {
    let line = "clock sweep --hold 0.5 --setting 15,2,15 --csv";
    let rows = csv(&run_to_end(line).exit_code(0).stderr("").text(), SWEEP);
    sweep_rows(&rows, &["", "2000000", "15000000"]);
    let (_dir, chart, line) = with_chart("clock sweep --hold 0.5 --setting 5 --json");
    let rows = json(&run_to_end(&line).exit_code(0).stderr("").text(), SWEEP);
    sweep_rows(&rows, &["null", "5000000"]);
    let setting = if cfg!(windows) { "tick" } else { "slack" };
    let x_label = format!("{setting} that the process has set, in milliseconds");
    let title = "What a timer setting of one process does for others";
    let panels = ["a sleep of 1 ms", "mean time of a sleep of 1 ms", "the coarse clock"];
    assert_chart(&chart, &panels);
    let curves = ["the process with the setting", "another process", "its child"];
    assert_chart(&chart, &curves);
    assert_chart(&chart, &[title, &x_label, "step of the coarse clock"]);
}

#[test]
fn sweep_has_a_table_with_a_row_for_each_setting() {
    let text = run_to_end("clock sweep --hold 0.5 --setting 3").exit_code(0).stderr("").text();
    let setting = if cfg!(windows) { "tick" } else { "slack" };
    let title = format!("The {setting} that the system states, the step of the coarse clock, ");
    assert!(text.lines().any(|line| line.starts_with(&title)), "{text}");
    let head = [setting, "it", "step", "sleep", "other", "step", "sleep", "child", "step", "sleep"];
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .skip_while(|row: &Vec<&str>| *row != head)
        .take_while(|row| !row.is_empty())
        .collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [setting, "none", "3 ms"], "{text}");
    assert!(rows.iter().all(|row| row.len() == head.len()), "{text}");
    #[cfg(target_os = "linux")]
    {
        assert_eq!([rows[2][1], rows[2][7]], ["3 ms"; 2], "{text}");
        assert_eq!(rows[2][4], rows[1][1], "{text}");
    }
    assert!(text.contains(&format!("`it` is a process with the {setting} ")), "{text}");
}

/// The setting of a process of `sweep` holds for that process and its child alone. A test of `run` shows
/// that jobs inherit the slack of the user; this one, that they also do during and after a sweep.
#[cfg(target_os = "linux")]
#[test]
fn jobs_keep_their_slack_during_and_after_a_sweep() {
    let printed = || run_to_end("run -j1 --no-record CHILD timer-slack leaf ::: a").exit_code(0).text();
    let own = format!("{}\n", own_slack());
    let mut sweep = Run::start(&minder("clock sweep --hold 0.5 --setting 20 --csv"));
    while sweep.record().done.is_none() {
        assert_eq!(printed(), own, "during a sweep");
        sweep.read_for(Duration::from_millis(1));
    }
    sweep_rows(&csv(&sweep.wait().exit_code(0).text(), SWEEP), &["", "20000000"]);
    assert_eq!(printed(), own, "after a sweep");
    assert_eq!(format!("{}\n", own_slack()), own);
}

/// The processes of one sweep: the time that they measure identifies them.
#[cfg(target_os = "linux")]
struct Probes(String);

#[cfg(target_os = "linux")]
impl Probes {
    /// Returns those of a sweep that holds each setting for this number of tenths of a second, and less than
    /// a tenth more.
    fn new(tenths: u32) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(count < 10, "more sweeps than digits");
        Self(format!("{tenths}{:07}{count}", std::process::id()))
    }

    /// Returns the value of `--hold`.
    fn hold(&self) -> String {
        let (seconds, nanos) = self.0.split_at(self.0.len() - 9);
        format!("0{seconds}.{nanos}")
    }

    /// Returns the pids of those that live.
    fn pids(&self) -> Vec<u32> {
        let time = format!("\0{}\0", self.0);
        let all = std::fs::read_dir("/proc").expect("list processes").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_probe = |pid: &u32| {
            let line = file(Path::new(&format!("/proc/{pid}/cmdline")));
            line.contains("\0clock\0probe\0") && line.contains(&time) && lives(*pid)
        };
        pids.filter(is_probe).collect()
    }

    /// Waits until none lives, for a bounded time.
    fn wait_until_gone(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.pids().is_empty() {
            assert!(Instant::now() < deadline, "processes are left: {:?}", self.pids());
            nap(Duration::from_millis(5));
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn interrupted_sweep_leaves_no_process() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let probes = Probes::new(300);
        let (_dir, chart, line) = with_chart(&format!("clock sweep --hold {}", probes.hold()));
        let mut live = Run::start(&minder(&line));
        live.wait_until_true("three processes", || probes.pids().len() == 3);
        live.signal(signal);
        assert_eq!(live.wait().exit_code(status).stderr(TOO_EARLY).text(), "");
        probes.wait_until_gone();
        assert!(!chart.exists(), "there is nothing to draw");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn interrupted_sweep_shows_what_was_measured() {
    let probes = Probes::new(5);
    let line = format!("clock sweep --hold {} --csv", probes.hold());
    let mut live = Run::start(&minder(&line));
    live.wait_until("the first rows", |record| text(&record.outs[0]).lines().count() > 3);
    live.signal(Signal::INT);
    let rows = csv(&live.wait().exit_code(130).stderr(INTERRUPTED).text(), SWEEP);
    assert!(rows.len().is_multiple_of(3) && !rows.is_empty(), "{rows:?}");
    sweep_rows(&rows[..3], &[""]);
    probes.wait_until_gone();
    // The table comes at the end: when other processes live than the first ones, it has a row.
    let probes = Probes::new(5);
    let mut live = Run::start(&minder(&format!("clock sweep --hold {}", probes.hold())));
    live.wait_until_true("three processes", || probes.pids().len() == 3);
    let first = probes.pids();
    live.wait_until_true("other processes", || {
        let now = probes.pids();
        !now.is_empty() && now.iter().all(|pid| !first.contains(pid))
    });
    live.signal(Signal::TERM);
    let shown = live.wait().exit_code(143).stderr(INTERRUPTED).text();
    assert!(shown.lines().any(|line| line.trim_start().starts_with("none ")), "{shown}");
    probes.wait_until_gone();
}

#[cfg(target_os = "linux")]
#[test]
fn killed_sweep_leaves_no_process() {
    let probes = Probes::new(300);
    let mut live = Run::start(&minder(&format!("clock sweep --hold {}", probes.hold())));
    live.wait_until_true("three processes", || probes.pids().len() == 3);
    live.kill();
    probes.wait_until_gone();
    live.wait().killed();
    // A killed process takes its child with it; the command reports that.
    let probes = Probes::new(300);
    let mut live = Run::start(&minder(&format!("clock sweep --hold {}", probes.hold())));
    live.wait_until_true("three processes", || probes.pids().len() == 3);
    let setter = super::children(live.pid()).into_iter().find(|pid| !super::children(*pid).is_empty());
    crate::support::end(setter.expect("find the process with a child"));
    let ended = live.wait().exit_code(255);
    ended.error_line(&["failed to measure sleeps in another process: it ended with "]);
    probes.wait_until_gone();
}

/// Returns the live processes of the sweep that this process runs: its children, and theirs.
#[cfg(windows)]
fn probes_of(pid: u32) -> Vec<u32> {
    let probes = crate::support::children_of(pid);
    let children: Vec<u32> = probes.iter().flat_map(|probe| crate::support::children_of(*probe)).collect();
    [probes, children].concat()
}

/// Waits until all processes of a sweep run, and returns them. Under Wine a process whose start is
/// interrupted by the kill of its parent never exits. This therefore waits some time longer.
#[cfg(windows)]
fn started_probes(live: &mut Run, find: impl Fn() -> Vec<u32>) -> Vec<u32> {
    live.wait_until_true("three processes", || find().len() >= 3);
    live.read_for(Duration::from_secs(1));
    let probes = find();
    assert!(probes.len() >= 3, "{probes:?}");
    probes
}

/// Wine cannot send Ctrl-Break, which stands for SIGTERM.
#[cfg(windows)]
#[test]
fn ctrl_c_ends_sweep() {
    let (dir, chart, line) = with_chart("clock sweep --hold 30");
    let command = minder(&line);
    // It presses the key when the marker exists.
    let marker = dir.path().join("marker");
    let mut console = super::from(super::CONSOLE_CHILD, "press c 0");
    console.arg(&marker).arg(command.get_program()).args(command.get_args());
    // A group leader and its children ignore Ctrl-C.
    console.group(minder::Group::Inherit);
    let mut live = Run::start(&console);
    let pid = live.pid();
    let find = || crate::support::children_of(pid).into_iter().flat_map(probes_of).collect();
    let probes = started_probes(&mut live, find);
    std::fs::write(&marker, "").expect("write marker");
    live.wait_until_true("the end of all processes", || probes.iter().all(|pid| !lives(*pid)));
    let ended = live.wait().exit_code(0).stderr(TOO_EARLY);
    // The exit status of the command, 130, and no output before it.
    assert_eq!(ended.text(), "00000082 0\n");
    assert!(!chart.exists(), "there is nothing to draw");
}

#[cfg(windows)]
#[test]
fn killed_sweep_leaves_no_process() {
    let mut live = Run::start(&minder("clock sweep --hold 60"));
    let pid = live.pid();
    let probes = started_probes(&mut live, || probes_of(pid));
    live.kill();
    live.wait_until_true("the end of all processes", || probes.iter().all(|pid| !lives(*pid)));
    live.wait().killed();
}

#[test]
fn watch_prints_a_line_for_each_interval() {
    let text = shown("clock watch --lines 21 --interval 0.1");
    let states = if cfg!(windows) { "tick" } else { "slack" };
    let heading = ["s", "sleeps", "p50", "p99", "max", "CPU", "load", states, "1", "µs", "to", "10", "ms"];
    let lines: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| line.is_empty() || line.starts_with("Note: "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    // The heading comes again after 20 lines.
    let (headings, rows): (Vec<_>, Vec<_>) =
        lines.iter().enumerate().partition(|(_, line)| **line == heading);
    assert_eq!(headings.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 21], "{text}");
    assert_eq!(rows.len(), 21, "{text}");
    for (index, (_, row)) in (1..).zip(&rows) {
        let [seconds, sleeps] = [row[0], row[1]].map(|cell| cell.parse::<f64>().expect("parse number"));
        assert!(seconds >= f64::from(index) * 0.1 - 0.05 && sleeps >= 1.0, "{text}");
    }
}

#[test]
fn watch_writes_rows() {
    let line = "clock watch --lines 3 --interval 0.1 --time 200us --way precise";
    let rows = csv(&run_to_end(&format!("{line} --csv")).exit_code(0).stderr("").text(), WATCH);
    assert_eq!(rows.len(), 3);
    for (index, row) in (1..).zip(&rows) {
        // Each interval lasts that long at least.
        assert!(number(row, "seconds") >= f64::from(index) * 0.1 - 0.001, "{row:?}");
        assert!(number(row, "sleeps") >= 1.0 && row["early"] == "0", "{row:?}");
        assert_ascending(row, &["p50_ns", "p99_ns", "max_ns"]);
        #[cfg(target_os = "linux")]
        assert_eq!(row["states_ns"], own_slack(), "{row:?}");
        assert_eq!(row["load"].is_empty(), cfg!(windows), "{row:?}");
    }
    let (_dir, chart, line) = with_chart("clock watch --lines 2 --interval 0.1 --json");
    let rows = json(&run_to_end(&line).exit_code(0).stderr("").text(), WATCH);
    assert_eq!(rows.len(), 2);
    let labels = ["How late sleeps of 1 ms end", "seconds since the start", "later than asked for"];
    assert_chart(&chart, &labels);
    assert_chart(&chart, &["p50", "p99", "max"]);
}

#[cfg(target_os = "linux")] // The next test is that of Windows.
#[test]
fn interrupted_watch_writes_the_chart() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (_dir, chart, line) = with_chart("clock watch --interval 0.1");
        let mut live = Run::start(&minder(&line));
        live.wait_until("two lines", |record| text(&record.outs[0]).lines().count() > 2);
        live.signal(signal);
        let shown = live.wait().exit_code(status).stderr("").text();
        assert!(shown.lines().count() > 2 && shown.ends_with('\n'), "{shown}");
        assert_chart(&chart, &["p50", "p99", "max"]);
    }
}

/// The key may come before the first line.
#[cfg(windows)]
#[test]
fn ctrl_c_ends_watch_and_writes_the_chart() {
    let (_dir, chart, line) = with_chart("clock watch --csv");
    let ended = interrupted(0, &chart, &minder(&line), 130);
    if csv(&ended.text(), WATCH).is_empty() {
        ended.stderr("minder: interrupted before the first line: there is no chart\n");
        assert!(!chart.exists());
    } else {
        ended.stderr("");
        assert_chart(&chart, &["p50", "p99", "max"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn interrupted_measurement_is_shown() {
    let line = "clock measure --count 10000 --time 1ms --way poll --each --csv";
    let (_dir, chart, line) = with_chart(line);
    let mut live = Run::start(&minder(&line));
    live.wait_until("the first turn", |record| text(&record.outs[0]).lines().count() > 1000);
    live.signal(Signal::TERM);
    let rows = csv(&live.wait().exit_code(143).stderr(INTERRUPTED).text(), EACH);
    assert!(rows.len() >= 1000, "{}", rows.len());
    assert_chart(&chart, &["sleeps of 1 ms, idle", "poll"]);
}

/// The kernel cannot end a sleep of a thread, so the command ends without it.
#[cfg(target_os = "linux")]
#[test]
fn signal_ends_command_in_a_sleep_of_a_minute() {
    for (line, err) in [
        ("clock measure --time 60s --count 1 --way clock-nanosleep", TOO_EARLY),
        ("clock watch --time 60s", "minder: interrupted before the first line: there is no chart\n"),
    ] {
        let (_dir, chart, line) = with_chart(line);
        let mut live = Run::start(&minder(&line));
        live.wait_until_true("the chart's file", || chart.exists());
        // The sleep begins soon after.
        live.read_for(Duration::from_millis(300));
        live.signal(Signal::INT);
        let ended = live.wait().exit_code(130).stderr(err);
        assert_eq!(ended.text(), "");
        assert!(ended.wall < SOON, "it waited for the end of a sleep: {:?}", ended.wall);
        assert!(!chart.exists());
    }
}

#[cfg(target_os = "linux")] // No pseudo console is made on Windows.
#[test]
fn progress_is_shown_on_a_terminal() {
    let on_terminal = |line: &str| {
        let mut command = minder(line);
        command.group(Group::Terminal(Size::new(24, 100))).env("TERM", "xterm");
        Run::start(&command).wait().exit_code(0).text()
    };
    let text = on_terminal("clock measure --count 20 --time 1ms --way poll --way precise");
    assert!(text.contains("\rpoll, 1 ms, idle: turn 1 of 10, about "), "{text:?}");
    assert!(text.contains("\rprecise, 1 ms, idle: turn 10 of 10, about "), "{text:?}");
    // The line is gone when the table comes.
    assert!(text.contains("\r\x1b[K20 sleeps "), "{text:?}");
    let text = on_terminal("clock sweep --hold 0.5 --setting 1 --csv");
    assert!(text.contains("\rnone: 1 of 2, about ") && text.contains("\r1 ms: 2 of 2, about "), "{text:?}");
}

#[test]
fn closed_stdout_ends_command_quietly() {
    for line in ["clock", "clock --json", "clock watch --csv", "clock sweep --hold 0.5 --csv"] {
        run_without_reader(line);
    }
    // Without a reader nothing more is measured; the chart has what was.
    let (_dir, chart, line) = with_chart("clock watch --interval 0.1");
    run_without_reader(&line);
    assert_chart(&chart, &["p50", "p99", "max"]);
    let (_dir, chart, line) = with_chart("clock measure --count 20 --csv --each");
    run_without_reader(&line);
    assert_chart(&chart, &[]);
}
