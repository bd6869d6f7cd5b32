//! `--status-level`: a line for each job that ends, after its output; `--heartbeat`: lines while nothing
//! is written.

use regex::Regex;

use super::{Run, minder, run_with_input, shell};

/// Returns the lines on standard error before the summary. Times are replaced by `T`, and counters removed.
#[track_caller]
fn lines(flags: &str, line: &str, args: &[&str]) -> Vec<String> {
    let ended = Run::start(&shell(flags, line, args)).wait();
    let times = Regex::new(r"\d[0-9.]* (ms|s)\b").expect("compile pattern");
    let counters = Regex::new(r"(?m)^\[ *\d+(/\d+)?\] ").expect("compile pattern");
    let text = times.replace_all(&ended.err, "T");
    let text = counters.replace_all(&text, "").into_owned();
    let lines = text.lines().take_while(|line| !line.starts_with("minder: "));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

const LINE: &str = "echo out; echo err >&2; exit {}";

#[test]
fn line_follows_the_output_of_its_job() {
    for flags in ["-k", "-j1", "-k --no-record", "-k --spool", "-k --results -.csv"] {
        let lines = lines(&format!("{flags} --status-level pass"), LINE, &["0", "3", "0"]);
        let is_table = flags.contains(".csv");
        let results: Vec<&String> = lines.iter().filter(|line| *line != "err").collect();
        assert!(is_table || lines.iter().step_by(2).all(|line| line == "err"), "{flags}: {lines:?}");
        assert_eq!(results.len(), 3, "{flags}: {lines:?}");
        for (result, start) in results.iter().zip(["ok 1 T ", "FAIL 2 T (exit 3) ", "ok 3 T "]) {
            assert!(result.starts_with(start) && result.contains("err >&2"), "{flags}: {lines:?}");
        }
    }
    for flags in ["-u", "--lb", "-j4", "--success-output never"] {
        let lines = lines(&format!("{flags} --status-level pass"), LINE, &["0", "3", "0"]);
        let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
        assert_eq!((count("ok "), count("FAIL 2 T (exit 3) ")), (2, 1), "{flags}: {lines:?}");
    }
}

#[test]
fn lines_of_all_jobs_count_them() {
    let counters = |ended: super::RunOutput| {
        let lines =
            ended.err.lines().filter_map(|line| Some(line.strip_prefix('[')?.split_once(']')?.0.to_owned()));
        lines.collect::<Vec<_>>().join("|")
    };
    let of = |flags: &str| counters(Run::start(&shell(flags, "exit {}", &["0"; 12])).wait());
    let all = (1..=12).map(|job| format!("{job:>2}/12")).collect::<Vec<_>>().join("|");
    assert_eq!(of("-k --status-level pass"), all);
    assert_eq!(of("-j4 --status-level all"), all);
    assert_eq!(of("--status-level retry"), "");
    // An attempt that is repeated ends no job.
    let ended = Run::start(&shell("-j1 --retries 2 --status-level pass", "exit {}", &["3", "0"])).wait();
    assert_eq!(counters(ended), "0/2|1/2|2/2");
}

#[test]
fn level_selects_the_lines() {
    let line = "exit {}";
    let begin = Regex::new(r"^[a-zA-Z]+ \d T( \d/\d)?( \(exit 3\))?").expect("compile pattern");
    let of = |level: &str| {
        let lines = lines(&format!("-j1 --retries 3 --status-level {level}"), line, &["0", "3"]);
        lines.iter().filter_map(|line| Some(begin.find(line)?.as_str().to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(of("none"), [""; 0]);
    assert_eq!(of("fail"), ["FAIL 2 T (exit 3)"]);
    assert_eq!(of("retry"), ["retry 2 T 1/3 (exit 3)", "retry 2 T 2/3 (exit 3)", "FAIL 2 T (exit 3)"]);
    assert_eq!(of("slow"), of("retry"));
    assert_eq!(
        of("pass"),
        ["ok 1 T", "retry 2 T 1/3 (exit 3)", "retry 2 T 2/3 (exit 3)", "FAIL 2 T (exit 3)"]
    );
    let unstarted = run_with_input("run --status-level fail {}", b"/nonexistent/a\n");
    let err = unstarted.exit_code(1).err;
    assert!(
        err.lines()
            .any(|line| line.starts_with("FAIL     1           (") && line.ends_with(") /nonexistent/a")),
        "{err}"
    );
    run_with_input("run --quiet --status-level fail CHILD exit", b"0\n")
        .exit_code(255)
        .error_line(&["`--quiet` cannot be used with `--status-level`"]);
}

#[test]
fn heartbeat_breaks_the_silence() {
    let ended = run_with_input("run -j1 --heartbeat 0.2 CHILD sleep-ms", b"1500\n").exit_code(0);
    let lines: Vec<&str> = ended.err.lines().collect();
    assert!(lines.len() >= 2, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.starts_with("minder: 0/1 done · 1 running · 0 failed · ")),
        "{lines:?}"
    );
    let ended = run_with_input("run -j1 --heartbeat 20 CHILD sleep-ms", b"300\n").exit_code(0);
    ended.stderr("");
    run_with_input("run -j1 --heartbeat 0 CHILD sleep-ms", b"300\n").exit_code(0).stderr("");
    run_with_input("run --heartbeat never CHILD exit", b"0\n").exit_code(255).error_line(&["--heartbeat"]);
}

#[cfg(unix)]
#[test]
fn jobs_that_the_end_of_the_run_cut_off_are_not_failures() {
    for (level, has_line) in [("pass", false), ("all", true)] {
        let dir = super::temp_dir();
        let begun = dir.path().join("begun");
        let line = format!("exec CHILD touch {} 600000; : {{}}", super::path(&begun));
        let mut live = Run::start(&shell(&format!("--status-level {level}"), &line, &["x"]));
        live.wait_until_true("the job", || begun.exists());
        live.signal(rustix::process::Signal::INT);
        let ended = live.wait().killed_by(rustix::process::Signal::INT);
        assert_eq!(
            ended.err.lines().any(|line| line.starts_with("[0/1] cut      1 ")),
            has_line,
            "{}",
            ended.err
        );
        assert!(!ended.err.contains("FAIL"), "{}", ended.err);
    }
}

#[test]
#[ignore = "a job is slow after a minute"]
fn slow_jobs_are_reported_without_a_terminal() {
    let start = |flags: &str| Run::start(&minder(&format!("run {flags} -j2 CHILD sleep-ms ::: 1 1 1 70000")));
    let mut runs = ["--status-level slow", "--status-level pass", "--status-level retry", ""].map(start);
    // Longer than a run is waited for.
    runs[0].read_for(std::time::Duration::from_secs(66));
    let errs = runs.map(|run| run.wait().exit_code(0).err);
    for err in &errs[..2] {
        let lines: Vec<&str> = err.lines().filter(|line| line.contains("has been running for")).collect();
        assert_eq!(lines.len(), 1, "{err}");
        assert!(lines[0].starts_with("minder: job 4 has been running for 1 min"), "{err}");
        assert!(lines[0].contains(" sleep-ms 70000` (median "), "{err}");
    }
    assert_eq!(errs[2..], ["", ""]);
}
