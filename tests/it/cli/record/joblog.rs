//! `--joblog`: GNU parallel's columns, written and read.

use std::fs;

use minder::{Command, Stdio};

use super::{Place, fails_first};
use crate::cli::{Run, file, with_script};

const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";
const ARGS: [&str; 5] = ["0", "3", "101", "a b", "-"];

/// Returns the columns of all rows. Only the form of times is checked.
fn rows(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    assert!(text.ends_with('\n'), "{text:?}");
    let form = |number: &str| {
        let (whole, part) =
            number.trim_start().split_once('.').unwrap_or_else(|| panic!("no point: {number:?}"));
        assert!(
            part.len() == 3 && whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit()),
            "{number:?}"
        );
    };
    let row = |line: &str| {
        let columns: Vec<&str> = line.splitn(9, '\t').collect();
        assert_eq!(columns.len(), 9, "{line:?}");
        form(columns[2]);
        form(columns[3]);
        assert!(columns[3].len() >= 10, "{line:?}");
        [&columns[..2], &columns[4..]].concat().join("\t")
    };
    lines.map(row).collect()
}

/// GNU parallel with these arguments, if it is there.
fn gnu(place: &Place, words: &[&str]) -> Option<()> {
    let mut command = Command::new("parallel");
    command
        .args(words)
        .current_dir(place.at("here"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Otherwise it looks for the shell among its parents.
    command.env("PARALLEL_SHELL", "/bin/sh").env_remove("PARALLEL");
    command.env("PARALLEL_HOME", place.at("gnu")).env("HOME", place.at("gnu"));
    let version = Command::new("parallel")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let version = version.ok().map(|mut child| {
        let text = crate::support::read_all(child.stdout.take());
        child.wait().map(|_| text)
    });
    if !version.is_some_and(|text| text.is_ok_and(|text| text.starts_with("GNU parallel"))) {
        crate::support::skip(format_args!("GNU parallel is not installed"));
        return None;
    }
    Run::start(&command).wait();
    Some(())
}

#[test]
fn columns_match_gnu_parallel() {
    let lines = [
        "echo {}; exit {}",
        "kill -9 $$; : {}",
        "printf %s {}; kill -TERM $$",
        "exec nothing-of-this-name {}",
    ];
    for line in lines {
        let place = Place::new();
        let words = ["-k", "-j1", "--joblog", "../gnu.log", line, ":::"];
        let Some(()) = gnu(&place, &[&words[..], &ARGS].concat()) else { return };
        let mut command = place.command("run --quiet -k -j1 --joblog ../own.log");
        Run::start(command.arg(line).arg(":::").args(ARGS)).wait();
        assert_eq!(rows(&file(&place.at("own.log"))), rows(&file(&place.at("gnu.log"))), "{line}");
    }
}

/// Takes up the joblog with each flag, in a fresh copy; what ran must be this.
fn taken_up(place: &Place, log: &str, line: &str, cases: &[(&str, &str)]) {
    let _ = fs::write(place.at("fixed"), "");
    for (flag, ran) in cases {
        let _ = fs::remove_file(place.at("log"));
        fs::write(place.at("joblog"), log).expect("write file");
        let mut command = place.command(&format!("run --quiet -k -j1 --no-record {flag} --joblog ../joblog"));
        let ended = Run::start(with_script(&mut command, line).args(super::INPUT)).wait().exit_code(0);
        assert_eq!(file(&place.at("log")), *ran, "{flag}: {}", ended.err);
        let before =
            rows(log.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect::<String>().as_str());
        let after = rows(&file(&place.at("joblog")));
        assert_eq!(after.len(), before.len() + ran.lines().count(), "{flag}");
        assert_eq!(after[..before.len()], before[..], "{flag}");
    }
}

const ALL: [(&str, &str); 3] =
    [("--resume", ""), ("--resume-failed", "b2\nb4\n"), ("--retry-failed", "b2\nb4\n")];
/// The last row, of `a5`, is torn.
const TORN: [(&str, &str); 3] =
    [("--resume", "a5\n"), ("--resume-failed", "b2\nb4\na5\n"), ("--retry-failed", "b2\nb4\n")];

#[test]
fn own_joblog_is_resumed() {
    let place = Place::new();
    let line = fails_first(&place);
    let mut command = place.command("run --quiet -k -j1 --no-record --joblog ../own.log");
    Run::start(with_script(&mut command, &line).args(super::INPUT)).wait().exit_code(2);
    let log = file(&place.at("own.log"));
    taken_up(&place, &log, &line, &ALL);
    let last = log.trim_end().rfind('\n').expect("find last row") + 1;
    for cut in [1, 2, 5, log.len() - last - 1] {
        taken_up(&place, &log[..log.len() - cut], &line, &TORN);
    }
}

#[test]
fn joblog_of_gnu_parallel_is_resumed() {
    let place = Place::new();
    let line = fails_first(&place);
    let words = ["-k", "-j1", "--joblog", "../gnu.log", &line];
    let Some(()) = gnu(&place, &[&words[..], &super::INPUT].concat()) else { return };
    let log = file(&place.at("gnu.log"));
    taken_up(&place, &log, &line, &ALL);
    taken_up(&place, &log[..log.len() - 3], &line, &TORN);
}

#[test]
fn gnu_parallel_resumes_our_joblog() {
    let place = Place::new();
    let line = fails_first(&place);
    let mut command = place.command("run --quiet -k -j1 --joblog ../own.log");
    Run::start(with_script(&mut command, &line).args(super::INPUT)).wait().exit_code(2);
    fs::write(place.at("fixed"), "").expect("write file");
    fs::remove_file(place.at("log")).expect("remove file");
    let words = ["-k", "-j1", "--resume-failed", "--joblog", "../own.log", &line];
    let Some(()) = gnu(&place, &[&words[..], &super::INPUT].concat()) else { return };
    assert_eq!(file(&place.at("log")), "b2\nb4\n");
}

#[test]
fn file_that_is_not_a_joblog_is_left_alone() {
    let place = Place::new();
    for text in ["no joblog\n", "1\t:\t0\n\n"] {
        fs::write(place.at("joblog"), text).expect("write file");
        let ended = place.ended("run --resume --joblog ../joblog CHILD append ../log ::: 1 2");
        ended.exit_code(255).error_line(&["joblog"]);
        assert_eq!(file(&place.at("joblog")), text, "it was changed");
        assert!(!place.at("log").exists(), "jobs ran");
    }
    place.ended("run --resume --joblog ../none CHILD append ../log ::: 1 2");
}

// Windows has no device that is always full.
#[cfg(unix)]
#[test]
fn unwritable_joblog_ends_the_run() {
    if !std::path::Path::new("/dev/full").exists() {
        crate::support::skip(format_args!("there is no /dev/full"));
        return;
    }
    let place = Place::new();
    place
        .ended("run --quiet --joblog /dev/full CHILD echo-args ::: 1 2")
        .exit_code(255)
        .error_line(&["joblog", "no space left"]);
}
