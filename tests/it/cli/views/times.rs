//! Output of finished jobs that is shown at once, after the last job, twice or never.

use super::{
    Run, Text, feed, file, files, is_known, minder, path, run_with_input, shell, temp_dir, texts, untangle,
};

/// Jobs of all sizes. Every third fails.
fn jobs() -> Vec<Text> {
    let jobs = texts(14, 200, 300_000).into_iter();
    jobs.map(|job| Text { code: usize::from(job.id % 3 == 1), ..job }).collect()
}

fn failed(jobs: &[Text]) -> Vec<usize> {
    jobs.iter().filter(|job| job.code != 0).map(|job| job.id).collect()
}

/// Runs the jobs, and looks at every byte of those that are shown. Returns the order of the jobs on
/// standard output; a job without output is not in it.
#[track_caller]
fn order(flags: &str, jobs: &[Text], is_shown: impl Fn(&Text) -> bool) -> Vec<usize> {
    let code = failed(jobs).len().try_into().expect("convert number");
    let ended = run_with_input(&format!("run --quiet {flags} CHILD text"), &feed(jobs)).exit_code(code);
    let hidden = |job: &Text| Text { lens: [0, 0], ..*job };
    let seen: Vec<Text> = jobs.iter().map(|job| if is_shown(job) { *job } else { hidden(job) }).collect();
    untangle(&ended.errors, 1, &seen, false);
    untangle(&ended.out, 0, &seen, false)
}

const VIEWS: [&str; 6] =
    ["-j4", "-j1", "-j4 -k", "-j4 --spool --sync", "-j4 --no-record", "-j4 -k --buffer 64k --no-record"];

#[test]
fn output_that_is_never_shown_is_left_out() {
    let jobs = jobs();
    for view in VIEWS {
        let only_failed = order(&format!("{view} --success-output never"), &jobs, |job| job.code != 0);
        assert!(!only_failed.is_empty() && only_failed.iter().all(|id| jobs[*id].code != 0), "{view}");
        order(&format!("{view} --failure-output never"), &jobs, |job| job.code == 0);
        order(&format!("{view} --failure-output never --success-output never"), &jobs, |_| false);
    }
}

#[test]
fn final_output_follows_all_other_in_the_order_of_the_input() {
    let jobs = jobs();
    for view in VIEWS {
        let ids = order(&format!("{view} --failure-output final"), &jobs, |_| true);
        let has_output = |id: &usize| jobs[*id].lens[0] > 0;
        let last: Vec<usize> = failed(&jobs).into_iter().filter(has_output).collect();
        assert_eq!(ids[ids.len() - last.len()..], last, "{view}");
        let ids = order(&format!("{view} --failure-output final --success-output final"), &jobs, |_| true);
        assert!(ids.is_sorted(), "{view}: {ids:?}");
        let ids = order(&format!("{view} --success-output final --failure-output never"), &jobs, |job| {
            job.code == 0
        });
        assert!(ids.is_sorted(), "{view}: {ids:?}");
    }
}

/// Runs three jobs, the second of which fails, and returns their outputs.
#[track_caller]
fn three(flags: &str) -> (String, String) {
    let line = "echo out {}; echo err {} >&2; test {} != 2";
    let mut command = shell(flags, line, &["1", "2", "3"]);
    let dir = temp_dir();
    let ended = Run::start(command.env("MINDER_STATE_DIR", dir.path())).wait().exit_code(1);
    // Nothing waits any more: the manifest, the lock and the journals are left.
    let kept = files(dir.path());
    assert!(kept <= 8, "{flags}: {kept} files are left");
    (ended.text().replace('\r', ""), ended.err)
}

#[test]
fn immediate_final_output_is_shown_twice() {
    for flags in ["", "--no-record", "--spool", "--pty", "--sync"].into_iter().filter(|flags| is_known(flags))
    {
        let (out, err) = three(&format!("-k -j2 --failure-output immediate-final {flags}"));
        if flags != "--pty" {
            assert_eq!(out, "out 1\nout 2\nout 3\nout 2\n", "{flags}");
            let (before, after) = err.split_once("minder: output of `").expect("find heading");
            assert_eq!(before, "err 1\nerr 2\nerr 3\n", "{flags}");
            assert!(after.contains("(exit 1, ") && after.contains("err 2\nminder: 3 jobs"), "{flags}: {err}");
        } else {
            assert!(out.ends_with("out 3\nerr 3\nout 2\nerr 2\n"), "{out}");
        }
        let (out, _) = three(&format!("-j3 --tag --failure-output immediate-final {flags}"));
        assert_eq!(out.matches("2\tout 2\n").count(), 2, "{flags}: {out}");
    }
    let (out, err) = three("-k --quiet --success-output never --failure-output final");
    assert_eq!((out.as_str(), err.as_str()), ("out 2\n", "err 2\n"), "--quiet prints no heading");
}

#[test]
fn final_output_survives_the_death_of_the_run() {
    for when in ["final", "immediate-final"] {
        let dir = temp_dir();
        let at = |name: &str| dir.path().join(name);
        let line = format!(
            "case {{}} in 1) echo out 1; echo err 1 >&2; exit 3;; \
                *) CHILD touch {} 0; CHILD await {} end;; esac",
            path(&at("begun")),
            path(&at("go"))
        );
        let mut command = shell(&format!("-j1 --failure-output {when}"), &line, &["1", "2"]);
        let mut live = Run::start(command.env("MINDER_STATE_DIR", at("state")));
        live.wait_until_true("the second job", || at("begun").exists());
        let outer = live.pid();
        live.kill();
        live.wait_until_true("its end", || !crate::support::lives(outer));
        let killed = live.wait().text();
        assert_eq!(killed, if when == "final" { "" } else { "out 1\n" });
        std::fs::write(at("go"), "").expect("write file");
        let mut command = minder("run --resume last");
        let resumed = Run::start(command.env("MINDER_STATE_DIR", at("state"))).wait();
        assert_eq!(resumed.text(), if when == "final" { "end\nout 1\n" } else { "end\n" }, "{}", resumed.err);
        assert_eq!(resumed.err.contains("err 1\n"), when == "final", "{}", resumed.err);
        assert_eq!(file(&at("begun")), "");
    }
}

#[cfg(unix)]
#[test]
fn final_output_is_shown_after_ctrl_c() {
    let dir = temp_dir();
    let begun = dir.path().join("begun");
    let line =
        format!("case {{}} in 1) echo out; exit 3;; *) exec CHILD touch {} 600000;; esac", path(&begun));
    let mut live = Run::start(&shell("-j1 --failure-output final", &line, &["1", "2"]));
    live.wait_until_true("the second job", || begun.exists());
    live.signal(rustix::process::Signal::INT);
    let ended = live.wait().killed_by(rustix::process::Signal::INT);
    assert_eq!(ended.text(), "out\n");
}

#[test]
fn output_times_exclude_other_ways_to_show_output() {
    for (flags, why) in [
        ("--lb --success-output never", "`--success-output` cannot be used with `--line-buffer`"),
        ("-u --failure-output final", "`--failure-output` cannot be used with `--ungroup`"),
        ("--files --failure-output final", "`--failure-output` cannot be used with `--files`"),
        ("-o --failure-output immediate-final", "`--failure-output` cannot be used with `--tty`"),
        ("--results -.csv --failure-output final", "cannot be used with a table of `--results`"),
        ("--failure-output late", "expected one of immediate, immediate-final, final, never"),
    ] {
        run_with_input(&format!("run {flags} CHILD exit"), b"0\n").exit_code(255).error_line(&[why]);
    }
    run_with_input("run -u --failure-output immediate CHILD exit", b"0\n").exit_code(0);
}
