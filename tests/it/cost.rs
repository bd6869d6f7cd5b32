//! The costs of minder, in counts that the load of the machine does not change: system calls,
//! instructions, memory, bytes.
//!
//! Each count is compared with `cost/budget.toml`, which a person edits with a reason. The program under
//! test is a release build, which `cargo xtask cost` builds and names in `MINDER_COST`. With
//! `cargo xtask cost --print` the same counts are printed in the form of that file.
//!
//! A count per job is the difference of two runs with different numbers of jobs. So it does not contain
//! the start, which has separate counts.

mod budget;
mod callgrind;
mod invocation;
mod memory;
mod trace;

use std::fs;
use std::path::Path;

use budget::{check, median};
use invocation::{Invocation, Setting};
use trace::Calls;

/// The numbers of jobs of the two runs that are compared.
const JOBS: [usize; 2] = [200, 1200];

/// The numbers of instructions grow with each job, and valgrind is slow.
const JOBS_OF_VALGRIND: [usize; 2] = [100, 500];

/// The number of times that counts are taken if they depend on which events arrive together.
const TIMES: usize = 3;

/// Flags that record nothing.
const NO_RECORD: &[&str] = &["--no-record"];

/// Returns the difference of a number between two runs, for each job.
fn per_job(jobs: [usize; 2], count: impl Fn(usize) -> f64) -> f64 {
    let counts = jobs.map(count);
    (counts[1] - counts[0]) / (jobs[1] - jobs[0]) as f64
}

#[test]
fn system_calls_per_job() {
    let Some(setting) = Setting::new() else { return };
    let count = |jobs| trace::count(&setting.run(&[], jobs));
    let mut samples = Vec::new();
    for _ in 0..TIMES {
        let [few, many] = match (count(JOBS[0]), count(JOBS[1])) {
            (Ok(few), Ok(many)) => [few, many],
            (Err(why), _) | (_, Err(why)) => return crate::support::skip(format_args!("{why}")),
        };
        samples.push([few, many]);
    }
    let each = |of: fn(&Calls) -> u64| {
        let per_job =
            |[few, many]: &[Calls; 2]| (of(many) as f64 - of(few) as f64) / (JOBS[1] - JOBS[0]) as f64;
        // The least: on a busy machine fewer events arrive together, and a wait returns fewer of them.
        samples.iter().map(per_job).fold(f64::INFINITY, f64::min)
    };
    check(&[
        ("calls-per-job", each(|calls| calls.total() + calls.program)),
        ("calls-per-job-guardians", each(|calls| calls.outer + calls.inner)),
        ("calls-per-job-runner", each(|calls| calls.runner)),
        ("calls-per-job-child", each(|calls| calls.child)),
    ]);
}

#[test]
fn system_calls_of_a_start() {
    let Some(setting) = Setting::new() else { return };
    let calls = |invocation: &dyn Fn() -> Invocation| {
        let counts: Result<Vec<Calls>, _> = (0..TIMES).map(|_| trace::count(&invocation())).collect();
        counts.map(|counts| median(counts.iter().map(|calls| calls.total() as f64)))
    };
    let version = calls(&|| setting.version());
    let one = calls(&|| setting.run(&[], 1));
    let unrecorded = calls(&|| setting.run(NO_RECORD, 1));
    match (version, one, unrecorded) {
        (Ok(version), Ok(one), Ok(unrecorded)) => check(&[
            ("calls-version", version),
            ("calls-one-job", one),
            ("calls-one-job-no-record", unrecorded),
        ]),
        (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => crate::support::skip(format_args!("{why}")),
    }
}

#[test]
fn instructions_per_job() {
    let Some(setting) = Setting::with_valgrind() else { return };
    check(&[("instructions-per-job", instructions(&setting, &[]))]);
}

#[test]
fn instructions_per_job_without_a_record() {
    let Some(setting) = Setting::with_valgrind() else { return };
    let many_variables = setting.with_variables(137);
    check(&[
        ("instructions-per-job-no-record", instructions(&setting, NO_RECORD)),
        ("instructions-per-job-no-record-137-variables", instructions(&many_variables, NO_RECORD)),
    ]);
}

/// Returns the instructions for each job.
fn instructions(setting: &Setting, flags: &[&str]) -> f64 {
    per_job(JOBS_OF_VALGRIND, |jobs| callgrind::count(&setting.run(flags, jobs)))
}

#[test]
fn instructions_of_a_start() {
    let Some(setting) = Setting::with_valgrind() else { return };
    check(&[
        ("instructions-version", callgrind::count(&setting.version())),
        ("instructions-one-job-no-record", callgrind::count(&setting.run(NO_RECORD, 1))),
    ]);
}

#[test]
fn instructions_of_a_start_with_a_record() {
    let Some(setting) = Setting::with_valgrind() else { return };
    check(&[("instructions-one-job", callgrind::count(&setting.run(&[], 1)))]);
}

/// Without `--tag` the kernel moves the output. With it the program looks for the ends of lines.
#[test]
fn instructions_per_gib_of_output() {
    let Some(setting) = Setting::with_valgrind() else { return };
    let per_gib = |flags: &[&str], [small, large]: [usize; 2]| {
        let count = |mib| callgrind::count(&setting.output(flags, mib << 20));
        (count(large) - count(small)) * 1024.0 / (large - small) as f64
    };
    // How much arrives with one event depends on the load, and the smallest count the least.
    let moved = (0..TIMES).map(|_| per_gib(&[], [64, 320])).fold(f64::INFINITY, f64::min);
    check(&[("instructions-per-gib", moved), ("instructions-per-gib-tagged", per_gib(&["--tag"], [4, 20]))]);
}

#[test]
fn bytes_of_the_record_per_job() {
    let Some(setting) = Setting::new() else { return };
    let bytes = per_job(JOBS, |jobs| {
        let run = setting.run(&[], jobs);
        run.finish();
        size_of_tree(run.state()) as f64
    });
    check(&[("record-bytes-per-job", bytes)]);
}

#[test]
fn memory_of_a_run() {
    let Some(setting) = Setting::new() else { return };
    let samples: Vec<_> = (0..TIMES).map(|_| memory::measure(&setting)).collect();
    let of = |of: fn(&memory::Memory) -> f64| median(samples.iter().map(of));
    check(&[
        ("private-memory-kib-runner", of(|memory| memory.private_runner)),
        ("peak-memory-kib-front", of(|memory| memory.peak_front)),
        ("peak-memory-kib-runner", of(|memory| memory.peak_runner)),
    ]);
}

#[test]
fn size_of_the_program() {
    let Some(setting) = Setting::new() else { return };
    let size = fs::metadata(setting.program()).expect("read size of the program").len();
    check(&[("program-bytes", size as f64)]);
}

/// Returns the bytes of all files below a directory.
fn size_of_tree(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).expect("read directory").map(|entry| entry.expect("read entry").path());
    entries
        .map(|path| if path.is_dir() { size_of_tree(&path) } else { path.metadata().expect("size").len() })
        .sum()
}
