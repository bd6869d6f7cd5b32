//! The ends of jobs, and the output of them that the record keeps.

use super::State;
use crate::cli::{Run, RunOutput, path, script, with_script};

/// Runs a shell line for these arguments.
fn lines(state: &State, flags: &str, line: &str, args: &[&str]) -> RunOutput {
    let mut command = state.command(&format!("run {flags}"));
    Run::start(with_script(&mut command, line).arg(":::").args(args)).wait()
}

/// Returns the jobs of the last run, one JSON object a line.
fn data(state: &State) -> Vec<String> {
    state.log("last --json").exit_code(0).text().lines().map(str::to_owned).collect()
}

#[test]
fn stdout_tail_of_failed_jobs_is_kept_in_every_mode() {
    let state = State::new();
    for flags in ["", "-j1", "-k", "--lb", "--spool", "--tag", "--results DIR", "--results DIR --quiet -k"] {
        let flags = flags.replace("DIR", path(&state.file("results")));
        for args in [&["a"][..], &["a", "b"]] {
            lines(&state, &flags, "echo first; echo assertion of {}; echo why >&2; exit 1", args);
            let jobs = data(&state);
            let wanted = r#""tail":"why\n","out_tail":"first\nassertion of a\n""#;
            assert!(jobs[0].contains(wanted), "{flags} {args:?}: {}", jobs[0]);
            let shown = state.log("last --failed").exit_code(0).text();
            let below = "    stdout:\n    first\n    assertion of a\n    stderr:\n    why\n";
            assert!(shown.contains(below), "{flags} {args:?}: {shown}");
        }
    }
    lines(&state, "", "echo fine", &["a"]).exit_code(0);
    assert!(data(&state)[0].contains(r#""tail":null,"out_tail":null"#), "it did not fail");
    lines(&state, "--redact-args", "echo secret; exit 1", &["a"]).exit_code(1);
    assert!(data(&state)[0].contains(r#""tail":null,"out_tail":null"#), "it may name arguments");
}

#[cfg(unix)] // Terminals of jobs' own.
#[test]
fn pty_tail_of_failed_jobs_is_kept() {
    let state = State::new();
    lines(&state, "--pty", "echo assertion >&2; exit 1", &["a", "b"]).exit_code(2);
    let shown = state.log("last --failed").exit_code(0).text();
    assert_eq!(shown.matches("    assertion\n").count(), 2, "{shown}");
}

#[test]
fn tail_of_large_output_is_its_end_or_absent() {
    let state = State::new();
    for bytes in [3_000, 500_000, 3_000_000] {
        for flags in ["-j1", "-j2", "--lb"] {
            let args = [bytes.to_string()];
            let line = "CHILD spew {}; echo; echo the end; exit 1";
            lines(&state, flags, line, &args.each_ref().map(String::as_str)).exit_code(1);
            let shown = state.log("last --failed").exit_code(0).text();
            // What passed without a copy is not known.
            let passed = bytes > 1 << 20 && data(&state)[0].contains(r#""out_tail":null"#);
            assert!(shown.ends_with("    the end\n") || passed, "{flags} {bytes}: {shown}");
            assert!(!passed || flags != "--lb", "{flags} {bytes}");
        }
    }
}

#[test]
fn timeouts_and_retries_are_recorded() {
    let state = State::new();
    let ended =
        lines(&state, "--timeout 0.2 --retries 2", "CHILD await {} x", &["nothing", "nothing"]).exit_code(2);
    assert!(ended.err.contains("2 jobs · 2 failed · 2 timed out · 2 retries"), "{}", ended.err);
    let shown = state.log("last").exit_code(0).text();
    assert_eq!(shown.matches("timed out (2 tries)").count(), 2, "{shown}");
    for job in data(&state) {
        assert!(job.contains(r#""timed_out":true,"attempts":2,"#), "{job}");
    }
    let mut command = state.command("log --json --sql");
    let query = "select jobs, r.failed, timed_out, retried, cut from runs r join attempts using (run)";
    let sums = Run::start(command.arg(query)).wait().exit_code(0).text();
    assert_eq!(sums, "{\"jobs\":2,\"failed\":2,\"timed_out\":2,\"retried\":2,\"cut\":0}\n");
    lines(&state, "", "exit 0", &["a"]).exit_code(0);
    assert!(data(&state)[0].contains(r#""timed_out":false,"attempts":1,"#));
}

#[test]
fn halted_run_lists_jobs_not_run() {
    let state = State::new();
    let ended = lines(&state, "-j1 --halt now,fail=1", "exit {}", &["0", "1", "0", "0"]).exit_code(1);
    assert!(ended.err.contains("2 of 4 done · 1 failed · 2 not started"), "{}", ended.err);
    let listed = state.log("").exit_code(0).text();
    assert!(listed.contains("enough have failed · 2 left · minder resume "), "{listed}");
    // Nothing was left.
    lines(&state, "-j1 --halt now,fail=1", "exit {}", &["0", "1"]).exit_code(1);
    let listed = state.log("-n1").exit_code(0).text();
    assert!(!listed.contains('·'), "{listed}");
}

#[cfg(unix)] // Signals ask for the end.
#[test]
fn summary_and_record_agree_after_a_signal() {
    let state = State::new();
    let go = state.file("go");
    let line = format!("if [ {{}} = w ]; then echo up; CHILD await {} x; fi; exit 0", path(&go));
    let mut command = state.command("run -j3 --lb");
    let mut live = Run::start(
        with_script(&mut command, &line).args([":::", "a", "b", "w", "c", "w", "d", "w", "e", "f"]),
    );
    live.wait_until("three that wait", |record| record.outs[0].len() == 9);
    live.signal(rustix::process::Signal::INT);
    let ended = live.wait();
    assert!(ended.err.contains("4 of 9 done · 0 failed · 3 cut off · 2 not started"), "{}", ended.err);
    let listed = state.log("").exit_code(0).text();
    let words: Vec<&str> = listed.lines().last().expect("find run").split_whitespace().collect();
    assert!(listed.contains("interrupted · 5 left · minder resume "), "{listed}");
    assert!(words.windows(2).any(|pair| pair == ["4", "0"]), "{listed}");
}

#[cfg(unix)] // A POSIX shell.
#[test]
fn job_that_a_halt_cuts_off_is_no_failure_though_it_had_attempts_left() {
    let state = State::new();
    let go = state.file("go");
    let line = format!(
        "case {{}} in fails) CHILD await {0} x; exit 3;; *) touch {0}; exec CHILD sleep-ms 600000;; esac",
        path(&go)
    );
    let words = [script(&line), [":::", "fails", "runs", "waits"].map(str::to_owned).to_vec()].concat();
    let ended = state.run("aaaa0001", "-j2 --retries 2 --halt now,fail=1", &words).exit_code(3);
    assert!(
        ended.err.contains("minder: 1 of 3 done · 1 failed · 1 retry · 1 stopped · 1 not started · "),
        "{}",
        ended.err
    );
    assert!(
        ended.err.contains("stopped: 1 job") && ended.err.contains("not started: 1 job "),
        "{}",
        ended.err
    );
}
