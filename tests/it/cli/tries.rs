//! Tries of jobs that are started again: they are recorded, counted and named.

use std::fs;

use minder::ExitStatus;
use rustix::process::{Pid, Signal, kill_process};

use super::record::Place;
use super::{Run, file};

/// A job that fails unless there is a file of its name.
const LINE: &str = "echo out {}; echo err {} >&2; echo {} >>../log; [ -e ../ok-{} ] || exit 3";

#[track_caller]
fn shown(place: &Place, line: &str) -> String {
    Run::start(&place.command(line)).wait().exit_code(0).text()
}

/// Runs two jobs that fail, and ends the run while they wait for their second try.
fn waiting(place: &Place) -> String {
    let mut command = place.command("run -j2 --retries 0 --retry-delay 60");
    let mut run = Run::start(command.args([LINE, ":::", "a", "b"]));
    run.wait_until_true("failed tries", || {
        fs::read_dir(place.at("state").join("runs")).is_ok_and(|mut runs| runs.next().is_some())
            && file(&place.run().join("attempt-1.jsonl")).matches(r#""event":"tried""#).count() == 2
    });
    let pid = Pid::from_raw(run.pid().cast_signed()).expect("valid pid");
    kill_process(pid, Signal::INT).expect("send signal");
    let ended = run.wait();
    assert!(matches!(ended.status, ExitStatus::Signaled { .. }), "{ended:?}");
    ended.err
}

#[test]
fn jobs_that_wait_for_a_retry_are_counted_and_recorded() {
    let place = Place::new();
    let said = waiting(&place);
    assert!(said.contains("minder: interrupted: no job runs\n"), "{said}");
    assert!(said.contains("0 of 2 done · 0 failed · 2 waiting for a retry"), "{said}");
    let page = shown(&place, "log last 2");
    assert!(page.contains("exit 3; another try was to follow"), "{page}");
    assert!(page.contains("    out b\n") && page.contains("    err b\n"), "{page}");
    let mut query = place.command("log last --csv --sql");
    let rows = Run::start(query.arg("select job, try, exit, tail, out_tail from tries order by job")).wait();
    assert_eq!(
        rows.text(),
        "job,try,exit,tail,out_tail\r\n1,1,3,\"err a\n\",\"out a\n\"\r\n2,1,3,\"err b\n\",\"out b\n\"\r\n"
    );
    // They have no result, and their last try failed.
    fs::write(place.at("ok-a"), "").expect("write file");
    fs::write(place.at("ok-b"), "").expect("write file");
    let again = Run::start(&place.command("retry -k")).wait().exit_code(0);
    assert_eq!(again.text(), "out a\nout b\n");
    assert!(again.err.contains("(2 of 2 failed)"), "{}", again.err);
    let nothing = Run::start(&place.command("retry")).wait().exit_code(0);
    assert!(nothing.err.contains("nothing to retry"), "{}", nothing.err);
}

#[test]
fn jobs_that_wait_for_a_retry_run_again_at_resume() {
    let place = Place::new();
    waiting(&place);
    fs::write(place.at("ok-a"), "").expect("write file");
    fs::write(place.at("ok-b"), "").expect("write file");
    let again = Run::start(&place.command("resume -k")).wait().exit_code(0);
    assert_eq!(again.text(), "out a\nout b\n");
}

/// A job that succeeds at its third try, and one that fails at each.
#[test]
fn success_at_a_later_try_is_named() {
    let place = Place::new();
    let line = "echo out {}; echo x >>../{}; [ {} = a ] && [ $(wc -l <../{}) = 3 ]";
    let mut command = place.command("run -j1 --retries 3");
    let ended = Run::start(command.args([line, ":::", "a", "b"])).wait().exit_code(1);
    assert_eq!(ended.text(), "out a\nout b\n", "only the last try of each is shown");
    assert!(ended.err.contains("4 retries · 1 flaky"), "{}", ended.err);
    assert!(ended.err.contains("(succeeded at try 3)"), "{}", ended.err);
    let list = shown(&place, "log last");
    assert!(list.contains("0 (flaky, 3 tries)") && list.contains("1 (3 tries)"), "{list}");
    let page = shown(&place, "log last 1");
    assert!(page.contains("1: exit 1, ") && page.contains("2: exit 1, "), "{page}");
    let report = shown(&place, "log last --junit");
    assert_eq!(report.matches("<flakyFailure message=\"exit 1\"").count(), 2, "{report}");
    assert_eq!(report.matches("<rerunFailure message=\"exit 1\"").count(), 2, "{report}");
    assert!(report.contains("tests=\"2\" failures=\"1\""), "{report}");
    let runs = shown(&place, "log");
    assert!(runs.contains(" 2       1 "), "tries are not jobs: {runs}");
}
