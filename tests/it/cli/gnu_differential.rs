//! GNU parallel is the oracle. Its result for the same arguments, input and environment is what our
//! compatibility mode has to do.
//!
//! A table holds cases; each is run by GNU parallel and by us, one after the other in the same
//! directory, emptied in between. Where our rules require another result, the case names the
//! reason, and `docs/from-parallel.md` contains the same text.

mod case;
mod shell_words;
mod harness;
mod sources;
mod columns;
mod amount;
mod placeholders;
mod plus;
mod output;
mod order;
mod control;
mod pipe;
mod spread;
mod record;
mod results;
mod info;
mod shell;
mod errors;
mod semaphore;
mod option_aliases;
mod random;
mod manual;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::{Case, case, script};
use harness::{Implementation, Scene};

/// All tables, by name.
const TABLES: &[(&str, &[Case])] = &[
    ("sources", sources::CASES),
    ("columns", columns::CASES),
    ("amount", amount::CASES),
    ("placeholders", placeholders::CASES),
    ("plus", plus::CASES),
    ("output", output::CASES),
    ("order", order::CASES),
    ("control", control::CASES),
    ("pipe", pipe::CASES),
    ("spread", spread::CASES),
    ("record", record::CASES),
    ("results", results::CASES),
    ("info", info::CASES),
    ("shell", shell::CASES),
    ("errors", errors::CASES),
    ("semaphore", semaphore::CASES),
    ("option_aliases", option_aliases::CASES),
];

/// The number of cases of a table that run at once. Most of their time is GNU parallel's start.
const AT_ONCE: usize = 4;

/// Returns whether GNU parallel is installed. If not, prints why nothing is compared.
fn is_there() -> bool {
    let lacks = harness::lacks_parallel();
    if let Some(why) = &lacks {
        crate::support::skip(format_args!("{why}"));
    }
    lacks.is_none()
}

/// Runs a table with two implementations. Returns what is wrong with the cases in which they
/// disagree.
fn compare(cases: &[&Case], left: Implementation, right: Implementation) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(fault) = judge_times(case, left, right) {
                        faults.lock().expect("lock list of faults").push(fault);
                    }
                }
            });
        }
    });
    faults.into_inner().expect("lock is not poisoned")
}

/// One case in this many is run by default: half a minute of processor time. With `MINDER_LONG=1` it is
/// one in [`EVERY_LONG`].
const EVERY: u64 = 12;
const EVERY_LONG: u64 = 6;

/// Returns the cases of a table that this run compares: a sample, or all with `MINDER_ORACLE=full`.
/// `MINDER_SEED` repeats a choice.
fn chosen(cases: &[Case]) -> Vec<&Case> {
    if crate::support::is_full() {
        return cases.iter().collect();
    }
    let seed = random::seed();
    eprintln!("MINDER_SEED={seed}");
    let every = if crate::support::is_long() { EVERY_LONG } else { EVERY };
    cases
        .iter()
        .enumerate()
        .filter(|(at, _)| (*at as u64 + seed).is_multiple_of(every))
        .map(|(_, case)| case)
        .collect()
}

/// Compares us with GNU parallel; fails with all cases in which we do not agree.
fn check(cases: &[Case]) {
    if is_there() {
        let cases = chosen(cases);
        let faults = compare(&cases, Implementation::Gnu, Implementation::Ours);
        assert!(faults.is_empty(), "{} of {} differ\n\n{}", faults.len(), cases.len(), faults.join("\n"));
    }
}

/// The number of times that a case with a sleep is tried. On a busy machine a sleep may end after
/// another that is longer; a difference that is real comes each time.
const TRIES_ASLEEP: usize = 5;

/// Returns the difference of this case if it is there each time that the case is tried.
fn judge_times(case: &Case, left: Implementation, right: Implementation) -> Option<String> {
    let tries =
        if ["sleep", "timeout"].iter().any(|word| case.line.contains(word)) { TRIES_ASLEEP } else { 1 };
    let mut faults = (0..tries).map(|_| judge(case, left, right));
    let first = faults.next().flatten()?;
    faults.all(|fault| fault.is_some()).then_some(first)
}

/// Returns the difference between the two implementations in this case, if there is one.
fn judge(case: &Case, left: Implementation, right: Implementation) -> Option<String> {
    if case.needs.is_some_and(|module| !harness::has_module(module)) {
        crate::support::skip(format_args!(
            "{case}: GNU parallel lacks a module; hint: apt-get install libtext-csv-perl"
        ));
        return None;
    }
    let scene = Scene::new();
    let theirs = scene.run(case, left);
    let ours = scene.run(case, right);
    let agree = theirs == ours;
    // GNU parallel waits for itself now and then (`--shard`, seen): then there is nothing to compare
    // with. We may not.
    if left == Implementation::Gnu && theirs.hung() && !ours.hung() {
        crate::support::skip(format_args!("{case}: GNU parallel did not end"));
        return None;
    }
    if std::env::var_os("MINDER_ORACLE_SHOW").is_some() {
        eprint!("=== {case}\n{}", theirs.shown());
    }
    if case.differs.is_some() && left != right {
        return agree.then(|| format!("=== {case}\nno longer differs: take its reason out\n"));
    }
    (!agree).then(|| format!("=== {case}\n{}", theirs.compared_with(&ours)))
}

/// One test for each table.
macro_rules! tables {
    ($($table:ident),* $(,)?) => {
        $(#[test]
        fn $table() {
            check($table::CASES);
        })*

        #[test]
        fn every_table_has_a_test() {
            let run = [$(stringify!($table)),*];
            assert_eq!(TABLES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), run);
        }
    };
}

tables!(
    sources,
    columns,
    amount,
    placeholders,
    plus,
    output,
    order,
    control,
    pipe,
    spread,
    record,
    results,
    info,
    shell,
    errors,
    semaphore,
    option_aliases,
);

/// Finds unusable cases: GNU parallel itself must give one result. With
/// `MINDER_ORACLE_SHOW` in the environment, that result is printed.
#[test]
#[ignore = "a check of the cases, not of us: run it when cases change"]
fn gnu_parallel_agrees_with_itself() {
    let mut faults = Vec::new();
    for (name, cases) in TABLES {
        eprintln!("{name}: {}", cases.len());
        faults.extend(compare(&cases.iter().collect::<Vec<_>>(), Implementation::Gnu, Implementation::Gnu));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
