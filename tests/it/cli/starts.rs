//! When jobs start: `--rate` and `--limit-per`.

use std::time::{Duration, Instant};

use super::Run;
use super::record::Place;

#[test]
fn rate_spreads_starts_evenly() {
    let place = Place::new();
    let began = Instant::now();
    Run::start(&place.command("run -j8 --rate 20/s true ::: 1 2 3 4 5 6 7")).wait().exit_code(0);
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}

#[test]
fn rate_does_not_count_retries() {
    let place = Place::new();
    let began = Instant::now();
    let command = place.command("run --rate 1/m --retries 3 --no-record false ::: a");
    Run::start(&command).wait().exit_code(1);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// A job fails if more than two jobs of its host run.
const LINE: &str =
    "mkdir -p run; : >run/{1}.{2}; n=$(ls run | grep -c '^{1}[.]'); sleep 0.05; rm run/{1}.{2}; [ $n -le 2 ]";

#[test]
fn limit_per_counts_running_jobs_of_each_value() {
    let place = Place::new();
    let words = [LINE, ":::", "a", "b", "c", ":::", "1", "2", "3", "4", "5", "6", "7"];
    let mut command = place.command("run -j9 --limit-per {1} 2 --only [a-z0-9]+");
    Run::start(command.args(words)).wait().exit_code(0);
    // A failed job that runs again counts, too.
    let words = ["sh -c 'mkdir at-{1} && sleep 0.1; rmdir at-{1}; [ -e did-{2} ] || { : >did-{2}; false; }'"];
    let mut command = place.command("run -j9 --limit-per {1} 1 --retries 2 --only [a-z0-9]+");
    Run::start(command.args(words).args([":::", "a", "b", ":::", "1", "2", "3"])).wait().exit_code(0);
}

#[test]
fn jobs_of_other_values_pass_those_that_wait() {
    let place = Place::new();
    // The last job lets the first one end.
    let line = "if [ {1} = b ]; then : >go; else while [ ! -e go ]; do sleep 0.01; done; fi";
    let words = [line, ":::", "a", "a", "a", "a", "b"];
    let mut command = place.command("run -j3 --timeout 60 --limit-per {1} 1 --only [a-z]+");
    Run::start(command.args(words)).wait().exit_code(0);
}

#[test]
fn limit_per_is_kept_by_resume() {
    let place = Place::new();
    let line = "mkdir at-{1} || exit 9; sleep 0.05; rmdir at-{1}; [ {2} != 2 ] || [ -e ../ok ]";
    let words = [line, ":::", "a", "b", ":::", "1", "2", "3", "4"];
    let mut command = place.command("run -j8 --limit-per {1} 1 --halt soon,fail=1 --only [a-z0-9]+");
    let ended = Run::start(command.args(words)).wait();
    assert!(!ended.err.contains("(exit 9"), "{}", ended.err);
    std::fs::write(place.at("ok"), "").expect("write file");
    Run::start(&place.command("resume")).wait().exit_code(0);
    Run::start(&place.command("retry")).wait().exit_code(0);
}
