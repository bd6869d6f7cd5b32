//! `--keep-output`: the output of jobs that stays in the record, and how it is printed.

use std::fs;

use super::State;
use crate::cli::{Run, RunOutput, path, with_script};

/// Runs a shell line for these arguments.
fn lines(state: &State, flags: &str, line: &str, args: &[&str]) -> RunOutput {
    let mut command = state.command(&format!("run {flags}"));
    Run::start(with_script(&mut command, line).arg(":::").args(args)).wait()
}

/// Returns the names in the directory of the only run.
fn names(state: &State) -> Vec<String> {
    let dir = state.dir(&state.ids()[0]);
    let entries = fs::read_dir(dir).expect("list directory").flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[test]
fn output_is_kept_in_every_mode() {
    let state = State::new();
    let flags = ["", "-j1", "-k", "--lb", "--spool", "--tag", "--success-output never", "-j1 -v"];
    let results = ["--results DIR", "--results DIR --quiet -k"];
    for flags in flags.into_iter().chain(results).chain(["--lb -v --tag"]) {
        let flags = format!("--keep-output {}", flags.replace("DIR", path(&state.file("results"))));
        for args in [&["b"][..], &["a", "b"]] {
            // The last line of stdout has no end.
            let line = "echo out {}; echo err {} >&2; printf %s part";
            lines(&state, &flags, line, args).exit_code(0);
            let job = args.len();
            let read = |flag: &str| state.log(&format!("last {job} {flag}")).exit_code(0).stderr("").text();
            assert_eq!(
                (read("--stdout"), read("--stderr")),
                ("out b\npart".into(), "err b\n".into()),
                "{flags}"
            );
        }
    }
    let page = state.log("last 2").exit_code(0).text();
    assert!(page.contains("\nstdout      10 B\n    out b\n    part\n"), "{page}");
}

#[test]
fn large_outputs_of_jobs_at_once_are_kept_apart() {
    let state = State::new();
    for flags in ["--lb", "-j1", "-k -j3", "-j3 --spool"] {
        let line = "seq {}00000 {}60000; seq 30000 >&2";
        lines(&state, &format!("--keep-output {flags}"), line, &["1", "2", "3"]).exit_code(0);
        for job in 1..=3 {
            let numbers = |first: u64, last: u64| -> String {
                (first..=last).map(|number| format!("{number}\n")).collect()
            };
            let wanted = [numbers(job * 100_000, job * 100_000 + 60_000), numbers(1, 30_000)];
            for (stream, wanted) in ["stdout", "stderr"].into_iter().zip(wanted) {
                let text = state.log(&format!("last {job} --{stream}")).exit_code(0).stderr("").text();
                assert!(text == wanted, "{flags}: {stream} of job {job}: {} bytes", text.len());
            }
        }
    }
    // The page shows the end, and names the command for the rest.
    let page = state.log("last 2").exit_code(0).text();
    assert!(
        page.contains(" 2 --stdout shows it); its last lines:\n") && page.contains("    260000\n"),
        "{page}"
    );
}

#[test]
fn output_of_each_try_is_kept() {
    let state = State::new();
    let tries = state.file("tries");
    let line = format!("echo x >>{0}; echo try $(wc -l <{0}); exit 3", path(&tries));
    lines(&state, "--keep-output --retries 3", &line, &["a"]).exit_code(1);
    let read = |attempt: u32| state.log(&format!("last 1 --stdout --attempt {attempt}")).exit_code(0).text();
    assert_eq!([1, 2, 3].map(read), ["try 1\n", "try 2\n", "try 3\n"]);
    assert_eq!(state.log("last 1 --stdout").exit_code(0).text(), "try 3\n");
    state
        .log("last 1 --stdout --attempt 4")
        .exit_code(255)
        .error_line(&["job 1 has no attempt 4: it was started 3 times"]);
    // What runs again has the newest output, and the run is pruned with its files.
    Run::start(&state.command("retry --retries 1")).wait().exit_code(1);
    assert_eq!(state.log("last 1 --stdout").exit_code(0).text(), "try 4\n");
    // Those of the first attempt are still there, by the numbers on the page of the job.
    assert_eq!([1, 2, 3, 4].map(read), ["try 1\n", "try 2\n", "try 3\n", "try 4\n"]);
    state
        .log("last 1 --stdout --attempt 5")
        .exit_code(255)
        .error_line(&["job 1 has no attempt 5: it was started 4 times"]);
    let page = state.log("last 1").exit_code(0).text();
    for number in 1..=3 {
        assert!(page.contains(&format!("{number}: exit 3, ")), "{page}");
        assert!(page.contains(&format!("    try {number}\n")), "{page}");
    }
    assert!(names(&state).contains(&"stored-2".to_owned()));
    let record = state.dir(&state.ids()[0]);
    fs::remove_file(record.join("stored-2")).expect("remove file");
    state.log("last 1 --stdout").exit_code(255).error_line(&["cannot read `stored-2`: "]);
}

#[test]
fn nothing_is_kept_without_the_flag() {
    let state = State::new();
    lines(&state, "", "echo out {}", &["a"]).exit_code(0);
    assert_eq!(names(&state).iter().filter(|name| name.starts_with("stored")).count(), 0);
    let journal = crate::cli::file(&state.journal(&state.ids()[0]));
    assert!(!journal.contains("stored"), "{journal}");
    let why = "the stdout of job 1 is not in the record: `minder run --keep-output` keeps it";
    state.log("last 1 --stdout").exit_code(255).error_line(&[why]);
    // There is nothing to keep.
    assert_eq!(state.log("last 1 --stderr").exit_code(0).stderr("").text(), "");
    let page = state.log("last 1").exit_code(0).text();
    assert!(page.contains(" B (not stored; --keep-output stores it)\n"), "{page}");
}

#[test]
fn output_beyond_the_limit_of_a_run_is_named() {
    let state = State::new();
    // Nothing is stored, as if the file had been full before.
    lines(&state, "", "echo out; seq 9000 >&2; exit {}", &["0", "1"]).exit_code(1);
    let full = fs::File::create(state.dir(&state.ids()[0]).join("stored-1")).expect("create file");
    full.set_len(512 << 20).expect("set length");
    let limit = "`--keep-output` had stored 512 MiB, the limit of a run";
    let why = format!("the stdout of job 1 is not in the record: {limit}");
    state.log("last 1 --stdout").exit_code(255).error_line(&[&why]);
    state.log("last 2 --stderr").exit_code(0).error_line(&["only the last 2.0 KiB of ", limit]);
    let page = state.log("last 1").exit_code(0).text();
    assert!(page.contains(&format!(" B (not stored: {limit})\n")), "{page}");
}

#[test]
fn end_of_a_failed_job_is_printed_without_the_flag() {
    let state = State::new();
    lines(&state, "", "echo why; seq 9000 >&2; exit {}", &["3"]).exit_code(1);
    assert_eq!(state.log("last 1 --stdout").exit_code(0).stderr("").text(), "why\n");
    let ended = state.log("last 1 --stderr").exit_code(0).error_line(&["only the last 2.0 KiB of "]);
    assert!(ended.text().ends_with("8999\n9000\n"), "{}", ended.text());
}

#[test]
fn variable_sets_the_flag() {
    let state = State::new();
    let mut command = state.command("run");
    command.env("MINDER_RUN_KEEP_OUTPUT", "true");
    Run::start(with_script(&mut command, "echo {}").args([":::", "a"])).wait().exit_code(0);
    assert_eq!(state.log("last 1 --stdout").exit_code(0).text(), "a\n");
}
