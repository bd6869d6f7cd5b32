//! Jobs that minder asks to exit, and that answer with 0: none of them succeeded.

use minder::ExitStatus;
use rustix::process::{Pid, Signal, kill_process};

use super::record::Place;
use super::{Run, file};

/// A job that exits with 0 when it is asked to.
const POLITE: &str = "trap 'exit 0' TERM; echo {} >>../log; sleep 30 & wait";

fn run(place: &Place, flags: &str, jobs: &[&str]) -> super::RunOutput {
    let mut command = place.command(&format!("run {flags}"));
    Run::start(command.args([POLITE, ":::"]).args(jobs)).wait()
}

#[test]
fn time_out_that_is_answered_with_0_is_a_failure() {
    let place = Place::new();
    let ended = run(&place, "-j1 --timeout 0.3 --joblog ../jobs", &["a"]).exit_code(1);
    assert!(ended.err.contains("(timed out after 300 ms)"), "{}", ended.err);
    let row = file(&place.at("jobs"));
    let fields: Vec<&str> = row.lines().nth(1).expect("row of job").split('\t').collect();
    assert_eq!(fields[6..8], ["-1", "0"], "{row}");
    let journal = file(&place.run().join("attempt-1.jsonl"));
    assert!(journal.contains(r#""timed_out":true"#), "{journal}");
    let shown = Run::start(&place.command("log last --failed")).wait();
    assert!(shown.text().contains("timed out"), "{}", shown.text());
    let again = Run::start(&place.command("resume")).wait().exit_code(0);
    assert!(again.err.contains("is complete"), "it has a result: {}", again.err);
    // It failed, so `retry` runs it again.
    let again = Run::start(&place.command("retry")).wait().exit_code(1);
    assert!(again.err.contains("timed out"), "{}", again.err);
}

#[test]
fn time_out_that_is_answered_with_0_is_retried_and_halts() {
    let place = Place::new();
    let ended = run(&place, "-j1 --timeout 0.2 --retries 3", &["a"]).exit_code(1);
    assert!(ended.err.contains("2 retries"), "{}", ended.err);
    assert_eq!(file(&place.at("log")), "a\na\na\n");
    let place = Place::new();
    let ended = run(&place, "-j1 --timeout 0.2 --halt now,fail=1", &["a", "b", "c"]).exit_code(1);
    assert!(ended.err.contains("2 not started"), "{}", ended.err);
    assert_eq!(file(&place.at("log")), "a\n");
}

#[test]
fn time_out_that_closes_the_output_of_a_finished_job_is_a_failure() {
    let place = Place::new();
    let mut command = place.command("run -j1 --leak wait --timeout 0.5");
    let ended = Run::start(command.args(["sleep 30 & echo {}", ":::", "a"])).wait().exit_code(1);
    assert!(ended.text() == "a\n" && ended.err.contains("timed out"), "{}", ended.err);
}

/// Starts jobs, and sends a signal to the run when as many have begun.
fn interrupted(place: &Place, flags: &str, jobs: &[&str], begun: usize, signal: Signal) -> super::RunOutput {
    let mut command = place.command(&format!("run {flags}"));
    let mut run = Run::start(command.args([POLITE, ":::"]).args(jobs));
    run.wait_until_true("begun jobs", || file(&place.at("log")).lines().count() == begun);
    let pid = Pid::from_raw(run.pid().cast_signed()).expect("valid pid");
    kill_process(pid, signal).expect("send signal");
    let ended = run.wait();
    assert!(matches!(ended.status, ExitStatus::Signaled { .. }), "{ended:?}");
    ended
}

#[test]
fn interrupted_job_that_exits_with_0_runs_again() {
    std::thread::scope(|scope| {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            scope.spawn(move || expect_to_run_again(signal));
        }
    });
}

fn expect_to_run_again(signal: Signal) {
    let place = Place::new();
    let ended = interrupted(&place, "-j2 --joblog ../jobs", &["a", "b", "c"], 2, signal);
    assert!(
        ended.err.contains("0 of 3 done") && ended.err.contains("2 cut off"),
        "{signal:?}: {}",
        ended.err
    );
    assert_eq!(file(&place.at("jobs")).lines().count(), 1, "{signal:?}: only the header");
    let mut again = Run::start(&place.command("resume"));
    again.wait_until_true("begun jobs", || file(&place.at("log")).lines().count() == 4);
    let log = file(&place.at("log"));
    let mut jobs: Vec<&str> = log.lines().collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["a", "a", "b", "b"], "{signal:?}: both run again before c starts");
    let pid = Pid::from_raw(again.pid().cast_signed()).expect("valid pid");
    kill_process(pid, Signal::TERM).expect("send signal");
    again.wait();
}

#[test]
fn job_that_limit_kills_and_that_exits_with_0_runs_again() {
    let place = Place::new();
    let [log, killed] = ["log", "killed"].map(|name| super::path(&place.at(name)).to_owned());
    // Once the job has begun, the condition asks for its end.
    let limit = format!("[ -e {killed} ] || [ ! -e {log} ] || exit 2");
    let job = format!(
        "trap 'echo >{killed}; exit 0' TERM; echo >>{log}; \
         [ -e {killed} ] || {{ sleep 30 & wait; }}; echo {{}}"
    );
    let mut command = place.command("run -j2 --delay 1.2");
    let ended = Run::start(command.args(["--limit", &limit, &job, ":::", "a", "b"])).wait().exit_code(0);
    // The condition is asked while a job waits.
    assert_eq!((ended.text().lines().count(), file(&place.at("log")).lines().count()), (2, 3), "{ended:?}");
}

/// Results that are held back do not keep a run that is to end.
#[test]
fn signal_ends_a_run_that_holds_results_back() {
    let place = Place::new();
    let mut command = place.command("run -j2 --hold-results 50");
    let mut run = Run::start(command.args(["echo {} >>../log", ":::", "a", "b"]));
    run.wait_until_true("ended jobs", || file(&place.at("log")).lines().count() == 2);
    let pid = Pid::from_raw(run.pid().cast_signed()).expect("valid pid");
    kill_process(pid, Signal::TERM).expect("send signal");
    let ended = run.wait();
    assert!(ended.wall.as_secs() < 30 && ended.err.contains("2 cut off"), "{ended:?}");
    let again = Run::start(&place.command("resume --hold-results 0")).wait().exit_code(0);
    assert!(again.err.contains("(2 of 2 left)"), "{}", again.err);
}

/// The output of jobs that `--halt now` ends is neither that of a success nor that of a failure.
#[test]
fn cancelled_jobs_have_their_own_output_time() {
    let line = "case {} in 2) until [ $(wc -l <../log) = 2 ]; do sleep 0.05; done; echo bad; exit 3;; \
                *) echo {} >>../log; echo victim; sleep 30;; esac";
    for (flags, victims) in [
        ("--failure-output final", 0),
        ("--failure-output immediate-final", 2),
        ("--failure-output never", 0),
        ("--failure-output never --cancelled-output immediate", 2),
        ("--success-output never", 2),
        ("--cancelled-output never", 0),
        ("--failure-output final --cancelled-output final", 2),
    ] {
        let place = Place::new();
        std::fs::write(place.at("log"), "").expect("write file");
        let mut command = place.command(&format!("run -j3 --halt now,fail=1 {flags}"));
        let ended = Run::start(command.args([line, ":::", "1", "2", "3"])).wait().exit_code(3);
        assert_eq!(ended.text().matches("victim").count(), victims, "{flags}: {ended:?}");
        assert!(ended.err.contains("stopped: 2 jobs"), "{flags}: {}", ended.err);
        let named = ended.err.matches("(cut off, ").count();
        assert_eq!(named, if flags.ends_with("--cancelled-output final") { 2 } else { 0 }, "{}", ended.err);
    }
}
