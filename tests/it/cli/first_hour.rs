//! The first command lines that a new user types, and the second attempts.
//!
//! The tables are the files next to this one. A task has what is given, what is wanted, and
//! attempts as users of GNU parallel, xargs, nextest and make type them:
//!
//! ```text
//! task stop at the first failure
//! given printf 'echo start $1\n[ $1 != 2 ]\n' > job; chmod +x job
//! = start 1
//! = start 2
//! exit 1
//! $ minder run -j1 --fail-fast ./job ::: 1 2 3 4
//! then minder run -j1 --halt now,fail=1 ./job ::: 1 2 3 4
//! -> led
//! ```
//!
//! bash runs the lines. `=` is a line of standard output, in any order unless the task is `ordered`;
//! `exit` is left out for 0. `check` is a line that runs after the attempt, and whose output follows.
//! `err` is a part of standard error, `quiet` stands for none, and `terminal` runs the attempt in a
//! terminal. The outcome of an attempt is computed, never judged:
//!
//! - `right`: output and status are those of the task.
//! - `led`: a message of minder contains every word of a line `then` that is new in it, and that line
//!   is right. A word in capitals in the message stands for any word except flags. With `says`, the
//!   message also contains that text; a line `then` without a new word requires it.
//! - `silent`: minder says nothing, and the status is 0 or that of the task.
//! - `misled`: everything else.
//!
//! Several attempts may stand above the same `then` and outcome. The test compares each outcome with the
//! recorded one, so a message that leads no longer is an error. To count the outcomes of another build:
//!
//! ```text
//! MINDER_TRIAL=/path/to/minder cargo test --test it -- --ignored --nocapture first_hour::counts
//! ```

mod attempt;
mod table;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

use attempt::{Outcome, try_attempt};
use table::{Attempt, Task};

use super::MINDER;

/// The number of attempts that run at once: they wait for processes more than they work.
const AT_ONCE: usize = 4;

/// The names of the tables.
const TABLES: [&str; 5] = ["running", "failures", "input", "records", "unseen"];

/// Returns the tasks of the table of this name.
fn tasks(name: &str) -> Vec<Task> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("it/cli/first_hour");
    let text = std::fs::read_to_string(directory.join(name).with_extension("txt"));
    table::parse(&text.expect("read table"))
}

/// Runs every attempt of these tasks with this program, and returns the outcomes in order.
fn outcomes(tasks: &[Task], minder: &OsString) -> Vec<(Outcome, String)> {
    let attempts: Vec<(&Task, &Attempt)> =
        tasks.iter().flat_map(|task| task.attempts.iter().map(move |attempt| (task, attempt))).collect();
    let next = Mutex::new(attempts.iter().enumerate());
    let found = Mutex::new(BTreeMap::new());
    let take = || next.lock().expect("lock list").next();
    let work = || {
        while let Some((at, (task, attempt))) = take() {
            let outcome = try_attempt(task, attempt, minder);
            found.lock().expect("lock outcomes").insert(at, outcome);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().expect("join thread");
        }
    });
    let found = found.into_inner().expect("lock outcomes");
    assert_eq!(found.len(), attempts.len());
    found.into_values().collect()
}

fn check(name: &str) {
    let tasks = tasks(name);
    let outcomes = outcomes(&tasks, &MINDER.into());
    let attempts = tasks.iter().flat_map(|task| &task.attempts);
    let wrong = attempts.zip(&outcomes).filter(|(attempt, (outcome, _))| attempt.recorded != outcome.name());
    let wrong: Vec<String> = wrong
        .map(|(attempt, (outcome, said))| {
            let Attempt { line, recorded, .. } = attempt;
            format!("$ {line}\nrecorded: {recorded}\ncame: {}\n{said}", outcome.name())
        })
        .collect();
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

#[test]
fn attempts_about_running_are_as_recorded() {
    check("running");
}

#[test]
fn attempts_about_failures_are_as_recorded() {
    check("failures");
}

#[test]
fn attempts_about_input_are_as_recorded() {
    check("input");
}

#[test]
fn attempts_about_records_are_as_recorded() {
    check("records");
}

#[test]
fn unseen_attempts_are_as_recorded() {
    check("unseen");
}

/// Prints the outcomes of `MINDER_TRIAL`, and with `MINDER_TRIAL_ALL` what each attempt printed.
#[test]
#[ignore = "counts the outcomes of another build"]
fn counts() {
    let minder = std::env::var_os("MINDER_TRIAL").unwrap_or_else(|| MINDER.into());
    let shows_all = std::env::var_os("MINDER_TRIAL_ALL").is_some();
    let names = Outcome::ALL.map(Outcome::name);
    eprintln!("| task | attempts | {} |\n| --- | ---: | ---: | ---: | ---: | ---: |", names.join(" | "));
    for name in TABLES {
        let mut total = Vec::new();
        let tasks = tasks(name);
        let mut found = outcomes(&tasks, &minder).into_iter();
        for task in &tasks {
            let of_task: Vec<_> = found.by_ref().take(task.attempts.len()).collect();
            eprintln!("{}", row(&task.name, of_task.iter().map(|(outcome, _)| *outcome)));
            if shows_all {
                for (attempt, (outcome, said)) in task.attempts.iter().zip(&of_task) {
                    eprintln!("$ {}\n{}: {said}", attempt.line, outcome.name());
                }
            }
            total.extend(of_task.into_iter().map(|(outcome, _)| outcome));
        }
        eprintln!("{}", row(&format!("all of {name}"), total.iter().copied()));
    }
}

/// Returns a row of the table: how many attempts had each outcome.
fn row(name: &str, outcomes: impl Iterator<Item = Outcome> + Clone) -> String {
    let count = |of| outcomes.clone().filter(|outcome| *outcome == of).count();
    let counts = Outcome::ALL.map(|of| count(of).to_string());
    format!("| {name} | {} | {} |", outcomes.clone().count(), counts.join(" | "))
}
