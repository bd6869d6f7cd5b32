//! `minder advise`: which run it reads, what it says about runs of every kind, and its JSON. How
//! right the predictions are is a matter of `cargo bench-lab advise`.
#![cfg(any(target_os = "linux", windows))]

use std::fs;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

use minder::Command;

use super::{Run, RunOutput, minder};

/// A private state directory.
struct State(tempfile::TempDir);

impl State {
    fn new() -> Self {
        Self(super::temp_dir())
    }

    fn command(&self, line: &str, dir: &Path) -> Command {
        let mut command = minder(line);
        command.env("MINDER_STATE_DIR", self.0.path().join("state")).current_dir(dir);
        command
    }

    fn run(&self, line: &str) -> RunOutput {
        Run::start(&self.command(line, self.0.path())).wait()
    }

    /// Changes the record as if two processors had been busy all the time, and each job had these
    /// members.
    fn change_events(&self, of_jobs: &[(&str, &str)]) {
        let journal = self.journals().pop().expect("find journal");
        let text = fs::read_to_string(&journal).expect("read journal");
        let changed = text.lines().map(|line| {
            let is = |event: &str| line.starts_with(&format!("{{\"event\":\"{event}\""));
            let members: &[(&str, &str)] = match () {
                () if is("host") => &[("cpus", "2")],
                () if is("ended") => of_jobs,
                () if is("over") => &[("elapsed", "1.0"), ("cpu_busy", "2.0"), ("cpu_idle", "0.0")],
                () => &[],
            };
            with_members(line, members)
        });
        let changed: String = changed.collect();
        fs::write(&journal, changed).expect("write journal");
    }

    fn journals(&self) -> Vec<PathBuf> {
        let runs = fs::read_dir(self.0.path().join("state/runs")).expect("list runs").flatten();
        runs.map(|run| run.path().join("attempt-1.jsonl")).collect()
    }
}

/// Returns a line of a journal with other values of these members, and its checksum.
pub(super) fn with_members(line: &str, members: &[(&str, &str)]) -> String {
    let (body, _) = line.split_once(",\"crc\":").expect("find checksum");
    let mut body = body.to_owned();
    for (key, value) in members {
        let key = format!(",\"{key}\":");
        if let Some(at) = body.find(&key) {
            let start = at + key.len();
            let end = body[start..].find(',').map_or(body.len(), |len| start + len);
            body.replace_range(start..end, value);
        } else {
            body += &format!("{key}{value}");
        }
    }
    // CRC-32 as in zlib.
    let crc = !body.bytes().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    });
    format!("{body},\"crc\":\"{crc:08x}\"}}\n")
}

/// Returns the value of a key in pretty JSON: of the first line with it after `section`.
fn value<'a>(json: &'a str, section: &str, key: &str) -> &'a str {
    let (_, rest) =
        json.split_once(&format!("\"{section}\": ")).unwrap_or_else(|| panic!("{section}: {json}"));
    let (_, rest) = rest.split_once(&format!("\"{key}\": ")).unwrap_or_else(|| panic!("{key}: {json}"));
    rest.lines().next().expect("read value").trim_end_matches(',')
}

fn number(json: &str, section: &str, key: &str) -> f64 {
    value(json, section, key).parse().unwrap_or_else(|error| panic!("{section}.{key}: {error}: {json}"))
}

#[test]
fn jobs_that_wait_are_advised_to_run_at_once() {
    let state = State::new();
    state.run("run -j2 --tag CHILD sleep-ms ::: 300 310 320 330").exit_code(0);
    let json = state.run("advise --json").exit_code(0).stderr("").text();
    assert!(json.contains("\"jobs\": 4,"), "{json}");
    assert_eq!(
        (number(&json, "as_run", "slots"), number(&json, "one_by_one", "slots")),
        (2.0, 1.0),
        "{json}"
    );
    let serial = number(&json, "one_by_one", "elapsed");
    assert!(serial >= 1.25, "{json}");
    for section in ["advised", "as_run"] {
        let elapsed = number(&json, section, "elapsed");
        assert!(elapsed >= 0.32 && elapsed <= serial, "{section}: {json}");
        assert!(number(&json, section, "mean") <= number(&json, section, "p95"), "{section}: {json}");
    }
    let slots = number(&json, "advised", "slots");
    assert!(json.contains(&format!("\"flags\": \"-j{slots}")), "{json}");
    let error = json.lines().find_map(|line| line.trim().strip_prefix("\"error\": ")).expect("find error");
    assert!(error.trim_end_matches(',').parse::<f64>().is_ok_and(|error| error >= 0.03), "{json}");
    let text = state.run("advise last").exit_code(0).stderr("").text();
    for part in
        ["This work was ", "  one by one ", "  as it ran (-j2) ", "  advised (-j", "error on this run: "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let line = format!("  minder run --tag -j{slots}");
    assert!(text.contains(&line) && text.contains(" sleep-ms ::: …\n"), "{text}");
}

#[test]
fn last_run_of_this_directory_is_read_by_default() {
    let state = State::new();
    let here = state.0.path().join("here");
    let there = state.0.path().join("there");
    for (dir, jobs) in [(&here, "0 0 0"), (&there, "0 0 0 0 0")] {
        fs::create_dir(dir).expect("create directory");
        Run::start(&state.command(&format!("run CHILD exit ::: {jobs}"), dir)).wait().exit_code(0);
    }
    let jobs = |line: &str, dir: &Path| {
        let json = Run::start(&state.command(line, dir)).wait().exit_code(0).text();
        let line = json.lines().find_map(|line| line.trim().strip_prefix("\"jobs\": ").map(str::to_owned));
        line.expect("find number of jobs")
    };
    assert_eq!(jobs("advise --json", &here), "3,");
    assert_eq!(jobs("advise --json", &there), "5,");
    assert_eq!(jobs("advise --json last", &here), "5,");
    // No run was started here.
    assert_eq!(jobs("advise --json", state.0.path()), "5,");
}

#[test]
fn killed_and_old_records_are_read() {
    let state = State::new();
    state.run("run -j2 CHILD sleep-ms ::: 50 50 50").exit_code(0);
    let journal = state.journals().pop().expect("find journal");
    let text = fs::read_to_string(&journal).expect("read journal");
    let kept = |drop: &[&str]| {
        let lines = text.split_inclusive('\n');
        let lines =
            lines.filter(|line| !drop.iter().any(|event| line.contains(&format!("\"event\":\"{event}\""))));
        fs::write(&journal, lines.collect::<String>()).expect("write journal");
        state.run("advise").exit_code(0).stderr("").text()
    };
    let killed = kept(&["over"]);
    assert!(killed.contains("The run was killed, so its elapsed time is that of the model."), "{killed}");
    let old = kept(&["host"]);
    assert!(old.contains("How many jobs ran at once is not recorded: -j"), "{old}");
    assert!(old.contains("The number of processors is not recorded: "), "{old}");
}

#[test]
fn jobs_that_a_time_out_ended_count() {
    let state = State::new();
    state.run("run -j5 --timeout 0.4 CHILD sleep-ms ::: 5 6000 6000 6000 7 6000 6000").exit_code(5);
    let text = state.run("advise").exit_code(0).text();
    assert!(text.contains("\n7 of 7 jobs are in the record: 5 were ended early, 0 did not run.\n"), "{text}");
    // Two jobs ended by themselves: the run used more slots nevertheless.
    assert!(text.contains("; 7 jobs of ") && text.contains("  as it ran (-j5) "), "{text}");
    let json = state.run("advise --json").exit_code(0).text();
    assert!(number(&json, "advised", "slots") >= 5.0, "{json}");
    assert!(number(&json, "one_by_one", "elapsed") >= 2.0, "{json}");
    for part in ["\"total\": 7\n", "\"recorded\": 7,", "\"ended_early\": 5,", "\"not_run\": 0,"] {
        assert!(json.contains(part), "{part}: {json}");
    }
}

#[test]
fn jobs_that_did_not_run_count() {
    let state = State::new();
    // `--halt soon` ends no job early.
    state.run("run -j1 --halt soon,done=3 CHILD sleep-ms ::: 20 20 20 20 20 20 20 20").exit_code(0);
    let json = state.run("advise --json").exit_code(0).text();
    for part in ["\"total\": 8\n", "\"recorded\": 3,", "\"ended_early\": 0,", "\"not_run\": 5,"] {
        assert!(json.contains(part), "{part}: {json}");
    }
    assert!(number(&json, "one_by_one", "elapsed") >= 0.16, "{json}");
    let text = state.run("advise").exit_code(0).text();
    assert!(text.contains("\n3 of 8 jobs are in the record: 0 were ended early, 5 did not run.\n"), "{text}");
    // Killed: the last event is missing, and the manifest knows how many jobs there were.
    let journal = state.journals().pop().expect("find journal");
    let events = fs::read_to_string(&journal).expect("read journal");
    let events = events.split_inclusive('\n').filter(|line| !line.contains("\"event\":\"over\""));
    fs::write(&journal, events.collect::<String>()).expect("write journal");
    let text = state.run("advise").exit_code(0).text();
    assert!(text.contains("0 were ended early, 5 did not run, or were running at its end.\n"), "{text}");
}

#[cfg(target_os = "linux")] // How long jobs waited for a processor is recorded.
#[test]
fn other_programs_on_the_processors_do_not_limit_jobs_that_wait() {
    let state = State::new();
    // Loops of this process are another program to the run.
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        state.run("run -j2 CHILD sleep-ms ::: 100 100 100 100 100 100").exit_code(0);
        done.store(true, Ordering::Relaxed);
    });
    let json = state.run("advise --json").exit_code(0).text();
    assert!(json.contains("\"limit\": \"jobs\""), "{json}");
    assert_eq!(number(&json, "advised", "slots"), 6.0, "{json}");
    let text = state.run("advise").exit_code(0).text();
    assert!(text.contains("\nOther programs used "), "{text}");
}

#[test]
fn busy_processors_get_no_more_jobs_than_before_if_nothing_tells_who_waited() {
    let state = State::new();
    state.run("run -j2 CHILD sleep-ms ::: 100 100 100 100 100 100").exit_code(0);
    state.change_events(&[("user", "0.01"), ("system", "0.0"), ("rss", "9999999"), ("main", "0.001")]);
    let json = state.run("advise --json").exit_code(0).text();
    assert!(json.contains("\"limit\": \"others\""), "{json}");
    assert_eq!(number(&json, "advised", "slots"), 2.0, "{json}");
}

#[test]
fn cpu_part_has_bounds_if_nothing_tells_who_had_the_processors() {
    let state = State::new();
    state.run("run -j2 CHILD sleep-ms ::: 100 100 100 100").exit_code(0);
    // The main thread did little of the work of each job.
    state.change_events(&[("user", "0.05"), ("system", "0.0"), ("rss", "9999999"), ("main", "0.001")]);
    let json = state.run("advise --json").exit_code(0).text();
    assert!(json.contains("\"cpu_part\": null,"), "{json}");
    assert!(json.contains("\"cpu_part_bounds\": [\n"), "{json}");
    let text = state.run("advise").exit_code(0).text();
    assert!(text.contains(" to 100 % CPU; 4 jobs of ") && !text.contains(" % waiting"), "{text}");
}

#[test]
fn delay_is_part_of_the_prediction() {
    let state = State::new();
    state.run("run -j4 --delay 0.1 CHILD sleep-ms ::: 10 10 10 10 10 10").exit_code(0);
    let json = state.run("advise --json").exit_code(0).text();
    assert!(json.contains("\"delay\": 0.1,"), "{json}");
    for section in ["as_run", "advised"] {
        assert!(number(&json, section, "elapsed") >= 0.5, "{section}: {json}");
    }
    let text = state.run("advise").exit_code(0).text();
    assert!(text.contains("\nTwo starts are at least 100 ms apart (--delay)"), "{text}");
}

#[test]
fn advised_line_has_the_sources_of_the_run() {
    let state = State::new();
    fs::write(state.0.path().join("list"), "0\n0\n0\n").expect("write list");
    let line = |line: &str| {
        state.run(line).exit_code(0);
        let text = state.run("advise last").exit_code(0).text();
        let line = text.lines().find_map(|line| line.strip_prefix("  minder run ")).expect("find the line");
        // The number of slots and the order depend on the times.
        let stays = |word: &&str| {
            !word.starts_with("-j")
                && !["--order", "shortest", "longest"].contains(word)
                && !word.contains("test_child")
        };
        line.split(' ').filter(stays).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("run -j3 -a list CHILD exit"), "-a list exit");
    assert_eq!(line("run -j3 CHILD exit :::: list"), "exit :::: list");
    assert_eq!(line("run -j9 CHILD exit {1} ::: 0 0 0 :::: list"), "exit '{1}' ::: … :::: list");
}

#[test]
fn damaged_manifest_is_named_and_the_slots_are_advised() {
    let state = State::new();
    state.run("run -j2 CHILD exit ::: 0 0").exit_code(0);
    let manifest = state.journals().pop().expect("find journal").with_file_name("manifest.json");
    let good = fs::read_to_string(&manifest).expect("read manifest");
    for bad in ["x".to_owned(), good.replace("\"typed\": [", "\"typed\": [[],")] {
        fs::write(&manifest, bad).expect("write manifest");
        let advised = state.run("advise last").exit_code(0);
        let why = format!("is damaged: cannot read the manifest `{}`: ", manifest.display());
        assert!(advised.err.contains(&why), "{advised:?}");
        assert!(advised.text().contains("\n  minder run -j2 …\n"), "{advised:?}");
        let json = state.run("advise last --json").exit_code(0).text();
        assert!(json.contains("\"flags\": \"-j2\""), "{json}");
    }
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn advised_line_is_the_same_command_to_a_shell() {
    let state = State::new();
    let run = |words: &[&str]| {
        let mut command = state.command("run -j2", state.0.path());
        Run::start(command.args(words)).wait().exit_code(0);
        let text = state.run("advise").exit_code(0).text();
        let line = text.lines().find_map(|line| line.strip_prefix("  minder run ")).expect("find the line");
        // The shell prints each argument, where the advice has values to fill in.
        let script = format!("printf '<%s>' {}", line.replace(":::", "").replace('…', ""));
        let mut shell = super::from("sh", "-c");
        let printed = Run::start(shell.arg(script)).wait().exit_code(0).text();
        let (_, after_flags) = printed.split_once("<-j").unwrap_or_else(|| panic!("{line}: {printed}"));
        let (_, command) = after_flags.split_once('>').expect("find the command");
        command.to_owned()
    };
    let template = "echo one >/dev/null\necho two {}";
    assert_eq!(run(&[template, ":::", "a", "b"]), format!("<{template}>"));
    assert_eq!(run(&["printf", "%s\x1b[m\n\n", ":::", "a", "b"]), "<printf><%s\x1b[m\n\n>");
}
