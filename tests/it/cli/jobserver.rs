//! A run inside of a build of make: it takes part in what the build shares.
#![cfg(target_os = "linux")]

use std::ops::Range;
use std::path::Path;

use minder::{Command, Stdio};
use tempfile::TempDir;

use super::{MINDER, Run, RunOutput, STATE, file, path, temp_dir};
use crate::support::CHILD;

/// The text that make prints at its exit when tokens are missing.
const LOST: &str = "INTERNAL";

/// Runs `make` with these flags on a rule of this one line; `MINDER` and `CHILD` stand for the
/// programs. `None` without make.
fn make(flags: &str, rule: &str) -> Option<(RunOutput, TempDir)> {
    make_live(flags, rule).map(|(live, dir)| (live.wait(), dir))
}

/// Starts `make` as [`make`] does, without waiting for it.
fn make_live(flags: &str, rule: &str) -> Option<(Run, TempDir)> {
    let dir = temp_dir();
    let rule = rule.replace("MINDER", &format!("'{MINDER}'")).replace("CHILD", CHILD);
    std::fs::write(dir.path().join("Makefile"), format!("all:\n\t{rule}\n")).expect("write file");
    let mut command = Command::new("make");
    command.args(flags.split_whitespace()).args(["--no-print-directory", "-s", "-C", path(dir.path())]);
    command.env("MINDER_STATE_DIR", STATE).env("LC_ALL", "C.UTF-8").env_remove("MINDER_BACKEND");
    // Tests may themselves run inside of a build.
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CARGO_MAKEFLAGS"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let there = Command::new("make").arg("--version").stdout(Stdio::null()).spawn();
    match there {
        Ok(mut child) => drop(child.wait()),
        Err(error) => {
            crate::support::skip(format_args!("make does not run: {error}; hint: apt-get install make"));
            return None;
        }
    }
    Some((Run::start(&command), dir))
}

/// A job that sleeps, and prints when it began and when it ended. Both times lie within
/// the time in which its slot is taken, however late others notice it.
const TIMED: &str = "\"date +%s.%N; CHILD sleep-ms {}; date +%s.%N\"";

/// Returns how many of [`TIMED`] ran at the same time.
fn peak(ended: &RunOutput) -> usize {
    let text = ended.text();
    let times: Vec<f64> = text.lines().map(|line| line.parse().expect("parse time")).collect();
    let spans: Vec<Range<f64>> = times.chunks(2).map(|pair| pair[0]..pair[1]).collect();
    let at_once = |begin: f64| spans.iter().filter(|span| span.contains(&begin)).count();
    spans.iter().map(|span| at_once(span.start)).max().unwrap_or(0)
}

#[test]
fn jobs_run_within_the_tokens_of_make() {
    let rule = format!("+MINDER run --no-record -j8 {TIMED} ::: 201 202 203 204 205 206 207 208 209");
    let Some((ended, _dir)) = make("-j3", &rule) else { return };
    let ended = ended.exit_code(0);
    assert!(!ended.err.contains(LOST), "{}", ended.err);
    let peak = peak(&ended);
    assert!((2..=3).contains(&peak), "{peak} at once: {}", ended.text());
}

#[test]
fn pipe_jobs_ignore_tokens_and_run_at_once() {
    let rule = "+printf '1\\n2\\n3\\n' | MINDER run --no-record --pipe --shard 1 -j8 cat";
    let Some((ended, _dir)) = make("-j2", rule) else { return };
    let ended = ended.exit_code(0);
    assert!(ended.err.contains("run all at once") && !ended.err.contains(LOST), "{}", ended.err);
    assert_eq!(ended.sorted(), ["1", "2", "3"]);
}

#[test]
fn two_slots_lend_one_token() {
    let rule = format!("+MINDER run --no-record -j8 {TIMED} ::: 51 52 53 54");
    let Some((ended, _dir)) = make("-j2", &rule) else { return };
    let ended = ended.exit_code(0);
    assert!(!ended.err.contains(LOST));
    assert!(peak(&ended) <= 2, "{}", ended.text());
}

#[test]
fn failed_or_halted_run_returns_tokens() {
    for jobs in
        ["CHILD exit {} ::: 1 2 3 4 5 6", "CHILD kill-self {} ::: 9 15 9 15", "/no/such/program ::: 1 2 3"]
    {
        let Some((ended, _dir)) = make("-j3", &format!("+MINDER run --no-record --quiet -j8 {jobs}")) else {
            return;
        };
        assert!(!ended.exit_code(2).err.contains(LOST), "{jobs}");
    }
}

/// Of the process that make started, the parent of the worker, and the worker.
#[test]
fn killed_run_returns_tokens() {
    for victim in 0..3 {
        // The other rule ends later, so that make counts its tokens when the guardians have done their
        // work.
        let own = "sh -c 'echo $$$$ >own; exec \"$$0\" run --no-record --quiet -j8 \"$$1\" sleep-ms {} ::: \
                   600001 600002 600003 600004 600005 600006' MINDER CHILD";
        let rule = format!("+{own}\nother:\n\t-CHILD await go over");
        let Some(there) = make_live("-k -j4 all other", &rule) else { return };
        let (mut live, dir) = there;
        let own = dir.path().join("own");
        let go = dir.path().join("go");
        let outer = || super::pids(&file(&own)).first().copied();
        // Three tokens are lent: one is the other rule's, and our first job needs none. If make is slow,
        // the run takes that token first, and has a fourth job.
        let jobs = || outer().and_then(super::runner).map(super::children).unwrap_or_default();
        let is_child = |pid: &u32| file(Path::new(&format!("/proc/{pid}/comm"))).starts_with("test_child");
        live.wait_until_true("three jobs", || jobs().iter().filter(|pid| is_child(pid)).count() >= 3);
        let outer = outer().expect("find run");
        let tree = super::tree(outer);
        let killed = [outer, super::children(outer)[0], super::runner(outer).expect("find runner")][victim];
        let pid = rustix::process::Pid::from_raw(killed.cast_signed()).expect("valid pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("signal process");
        live.wait_until("an error", |record| {
            String::from_utf8_lossy(&record.outs[1]).contains("Error 137")
                || String::from_utf8_lossy(&record.outs[1]).contains("Killed")
        });
        // The guardians return the tokens before they exit.
        live.wait_until_true("the end of the run", || tree.iter().all(|pid| super::has_exited(*pid)));
        std::fs::write(go, "").expect("write file");
        let ended = live.wait().exit_code(2);
        assert!(!ended.err.contains(LOST), "{victim}: {}", ended.err);
    }
}

#[test]
fn unreachable_jobserver_is_reported_once() {
    let rule = format!("MINDER run --no-record -j4 {TIMED} ::: 101 102 103 104 105 106");
    let Some((ended, _dir)) = make("-j3", &rule) else { return };
    let ended = ended.exit_code(0).stderr_contains("cannot use make's jobserver `3,4`");
    assert_eq!(ended.err.matches("jobserver").count(), 2, "{}", ended.err);
    assert!((2..=4).contains(&peak(&ended)), "{}", ended.text());
}

#[test]
fn no_jobserver_flag_ignores_tokens() {
    let rule = "MINDER run --no-record --no-jobserver -j4 CHILD sleep-ms {} ::: 1 2 3";
    let Some((ended, _dir)) = make("-j3", rule) else { return };
    assert_eq!(ended.exit_code(0).err, "");
    let rule = format!("+MINDER run --no-record --no-jobserver -j6 {TIMED} ::: 301 302 303 304 305 306");
    let Some((ended, _dir)) = make("-j2", &rule) else { return };
    let ended = ended.exit_code(0);
    assert!(!ended.err.contains(LOST));
    assert!(peak(&ended) > 2, "{}", ended.text());
}

#[test]
fn make_inside_a_job_joins_the_jobserver() {
    let inner = "all: a b c\\na b c:;@mkdir run.$$@; ls -d run.* | wc -l; sleep 0.4; rmdir run.$$@";
    let rule =
        format!("+printf '{inner}\\n' > inner.mk; MINDER run --no-record make -s -f inner.mk {{}} ::: all");
    let Some((ended, _dir)) = make("-j3", &rule) else { return };
    let ended = ended.exit_code(0);
    assert_eq!(ended.err, "");
    let most = ended.text().lines().filter_map(|line| line.trim().parse::<u32>().ok()).max();
    assert!(most.is_some_and(|most| (2..=3).contains(&most)), "{}", ended.text());
    let rule = "+MINDER run --no-record CHILD echo-env {} ::: 1";
    let Some((ended, _dir)) = make("-k -j3", rule) else { return };
    assert!(ended.exit_code(0).text().contains("jobserver"));
}

#[test]
fn closed_descriptors_are_removed_from_makeflags() {
    let rule = "+MINDER run --no-record --close-fds CHILD echo-env {} ::: 1";
    let Some((ended, _dir)) = make("-k -j3", rule) else { return };
    let text = ended.exit_code(0).text();
    assert!(!text.contains("--jobserver"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("\"MAKEFLAGS\"=") && line.contains('k')), "{text}");
    // A make within a job runs, and has nothing to complain about.
    let rule = "+printf 'a b:;@echo inner' > inner.mk; MINDER run --no-record --close-fds make -s -f \
        inner.mk {} ::: a b";
    let Some((ended, _dir)) = make("-j3", rule) else { return };
    let ended = ended.exit_code(0);
    assert_eq!((ended.text().as_str(), ended.err.as_str()), ("inner\ninner\n", ""));
}
