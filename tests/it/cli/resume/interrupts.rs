//! Runs that are asked to end: they leave no orphan, and lose nothing that finished, in any view,
//! with a record or without.

use std::collections::BTreeSet;
use std::fs;

use minder::ExitStatus;
use rustix::process::Signal;

use super::output_checks::{Look, Shown, check};
use super::{Random, Running, Trial, kills, numbers};
use crate::cli::path;
use crate::support::CHILD;

/// Sends a signal to a run when its log has `lines` lines, and waits for its exit.
fn interrupt(trial: &mut Trial, signal: Signal, lines: usize) {
    let mut running = trial.start();
    running.wait_until("enough jobs", |_| trial.log().lines().count() >= lines);
    running.signal(signal);
    let (status, out, err) = running.wait();
    // The message comes at once, even if the live job has written part of a line.
    let err = without_notice(&err);
    let by = matches!(status, ExitStatus::Signaled { signal: by, .. } if by == signal.as_raw());
    assert!(by || status == ExitStatus::Exited(0), "{status:?}: {err}");
    let done: BTreeSet<usize> = if trial.flags.contains("--no-record") {
        numbers(&trial.log(), '-').into_iter().filter(|job| whole(&out, trial.seed, *job)).collect()
    } else {
        trial.recorded()
    };
    // A job notes its end in the log before it exits. Each of the running jobs may have been killed in
    // between.
    let noted = numbers(&trial.log(), '-').len();
    assert!(done.len() + trial.degree >= noted, "{noted} jobs finished, {} are recorded", done.len());
    let cut = numbers(&trial.log(), '+').into_iter().filter(|job| !done.contains(job)).collect();
    trial.shown.push(Shown { out, err, killed: false, cut });
    check(&trial.shown, Look::of(&trial.flags), trial.seed, &done, 0);
}

/// Removes the message about the signal: what is left are the bytes of jobs, and the summary.
fn without_notice(err: &str) -> String {
    let Some(at) = ["minder: interrupted: ", "minder: terminating: "].iter().find_map(|name| err.find(name))
    else {
        return err.to_owned();
    };
    let (before, rest) = err.split_at(at);
    let (_, after) = rest.split_once('\n').expect("the message is a line");
    format!("{before}{after}")
}

fn whole(out: &[u8], seed: usize, job: usize) -> bool {
    let work = super::output_checks::work(seed, job);
    work.is_empty() || stands_in(out, &work)
}

/// Returns whether `all` contains `part` at the beginning of a line.
fn stands_in(all: &[u8], part: &[u8]) -> bool {
    all.split_inclusive(|byte| *byte == b'\n')
        .scan(0, |at, line| Some(std::mem::replace(at, *at + line.len())))
        .any(|at| all[at..].starts_with(part))
}

#[test]
fn interrupt_loses_no_finished_job() {
    let mut random = Random::new("wishes");
    for flags in ["-k", "", "--lb", "--spool", "-k --spool", "--tag", "-k --no-record", "--no-record"] {
        for round in 0..kills().div_ceil(2) {
            let signal = [Signal::INT, Signal::TERM][round % 2];
            let mut trial = Trial::new(flags, random.below(1_000_000), 30);
            eprintln!("{flags}: {signal:?}, seed {}", trial.seed);
            interrupt(&mut trial, signal, random.below(60));
            if trial.flags.contains("--no-record") {
                assert!(!trial.file("state").exists(), "there is a record");
                continue;
            }
            trial.attempt(None);
            let cut = trial.shown[0].cut.len();
            assert_eq!(trial.recorded(), trial.all());
            check(&trial.shown, Look::of(&trial.flags), trial.seed, &trial.all(), cut);
        }
    }
}

#[test]
fn message_within_the_line_of_a_job_takes_no_byte_of_it() {
    let dir = crate::cli::temp_dir();
    let go = dir.path().join("go");
    let line = format!(
        "trap '' TERM; printf er >&2; until [ -e {} ]; do sleep 0.01; done; echo r{{}} >&2",
        path(&go)
    );
    let mut command = crate::cli::minder("run -k --no-record -j1");
    let mut live = crate::cli::Run::start(command.args([&line, ":::", "1"]));
    live.wait_until("part of a line", |record| crate::cli::text(&record.outs[1]).contains("er"));
    live.signal(Signal::TERM);
    live.wait_until("the message", |record| crate::cli::text(&record.outs[1]).contains("minder: "));
    fs::write(&go, "").expect("write file");
    let ended = live.wait().killed_by(Signal::TERM);
    let err = without_notice(&ended.err);
    assert!(err.starts_with("err1\nminder: 0 of 1 done"), "{err:?}");
}

/// Starts a run whose first job ignores SIGTERM and keeps running, and waits until all others have
/// exited.
fn stuck(trial: &Trial) -> Running {
    let log = trial.file("log");
    let go = trial.file("go");
    let line = format!(
        "trap '' TERM; [ {{}} != 1 ] || [ -e {} ] || exec {CHILD} sleep-ms 600000; \
         exec {CHILD} work {} {} {{}}",
        path(&go),
        path(&log),
        trial.seed
    );
    let mut words: Vec<String> =
        format!("run {}", trial.flags).split_whitespace().map(str::to_owned).collect();
    words.extend([line, ":::".to_owned()]);
    words.extend((1..=trial.jobs).map(|job| job.to_string()));
    let mut running = Running::start(&words, trial.dir.path(), true);
    let others = trial.jobs - 1;
    running.wait_until("the other jobs", |running| {
        let left =
            crate::cli::runner(running.child.id()).map_or(0, |runner| crate::cli::children(runner).len());
        numbers(&trial.log(), '-').len() == others && left == 1
    });
    assert!(!running.is_over());
    running
}

#[test]
fn jobs_waiting_behind_a_stuck_job_are_shown_on_interrupt() {
    let cases = [
        ("-k --grace 0", Signal::INT, 1),
        ("-k --grace 600", Signal::TERM, 2),
        ("-k --grace 0 --no-record", Signal::TERM, 1),
        ("-k --grace 600 --no-record", Signal::INT, 2),
        ("--grace 600", Signal::INT, 2),
    ];
    for (flags, signal, times) in cases {
        let mut trial = Trial::new(flags, 4_711, 20);
        let mut running = stuck(&trial);
        for _ in 0..times {
            running.signal(signal);
            // The same wish within 200 ms is taken for the same key.
            let _ = running.child.wait_timeout(std::time::Duration::from_millis(400));
        }
        let (status, out, err) = running.wait();
        assert!(
            matches!(status, ExitStatus::Signaled { signal: by, .. } if by == signal.as_raw()),
            "{status:?}: {err}"
        );
        let others: BTreeSet<usize> = (2..=trial.jobs).collect();
        trial.shown.push(Shown { out, err, killed: false, cut: BTreeSet::from([1]) });
        check(&trial.shown, Look::of(flags), trial.seed, &others, 0);
        if flags.contains("--no-record") {
            assert!(!trial.file("state").exists(), "there is a record");
            continue;
        }
        assert_eq!(trial.recorded(), others, "{flags}");
        fs::write(trial.file("go"), "").expect("write file");
        let (started, status) = trial.attempt(None);
        assert_eq!((started, status), (vec![1], ExitStatus::Exited(0)));
        check(&trial.shown, Look { ordered: false, ..Look::of(flags) }, trial.seed, &trial.all(), 0);
    }
}
