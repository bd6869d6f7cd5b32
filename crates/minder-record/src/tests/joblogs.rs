//! Joblogs of minder and of GNU parallel.

use std::thread::yield_now;
use std::time::{Duration, Instant};

use super::*;
use crate::joblog::{self, Joblog};
use crate::reader::Corruption;

/// The joblog of GNU parallel 20221122 with `--timeout 0.2`, for commands with a tab, a newline, a
/// failure and a signal.
const GNU: &[u8] = b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n\
    1\t:\t1795267459.489\t     0.000\t0\t2\t0\t0\techo 0; exit 0\n\
    3\t:\t1795267459.494\t     0.003\t0\t2\t2\t0\techo 2; exit 2\n\
    4\t:\t1795267459.571\t     0.000\t0\t6\t0\t0\tprintf \"a\tb\0\"\0echo x\n\
    5\t:\t1795267459.642\t     0.381\t0\t0\t-1\t15\tsleep 1\n\
    6\t:\t1795267460.132\t     0.000\t0\t0\t0\t15\tkill -TERM $$; true\n";

fn ranges(set: &JobSet) -> Vec<(u64, u64)> {
    set.ranges().collect()
}

pub(super) fn encoded(rows: &[(JobFinished, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (ended, command) in rows {
        joblog::encode(ended, joblog::HERE, command.as_bytes(), &mut out);
    }
    out
}

#[test]
fn joblog_of_gnu_parallel_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fs::write(&path, GNU).unwrap();
    let (progress, damage) = joblog::read(&path).unwrap();
    assert!(!damage.any());
    assert_eq!(ranges(&progress.done), [(1, 1), (3, 6)]);
    assert_eq!(ranges(&progress.failed), [(3, 3), (5, 6)]);
    assert_eq!(progress.last_job, 6);
}

#[test]
fn lines_are_those_of_gnu_parallel() {
    let gnu = |number: usize| GNU.split_inclusive(|&byte| byte == b'\n').nth(number).unwrap();
    let row = JobFinished {
        job: 4,
        at: 1_795_267_459.571,
        wall: 0.0,
        exit: Some(0),
        out: 6,
        ..JobFinished::default()
    };
    assert_eq!(encoded(&[(row, "printf \"a\tb\n\"\necho x")]), gnu(3));
    let row = JobFinished { job: 6, at: 1_795_267_460.132, signal: Some(15), ..JobFinished::default() };
    assert_eq!(encoded(&[(row, "kill -TERM $$; true")]), gnu(5));
    let row = JobFinished {
        job: 3,
        at: 1_795_267_459.494,
        wall: 0.003,
        exit: Some(2),
        out: 2,
        ..JobFinished::default()
    };
    assert_eq!(encoded(&[(row, "echo 2; exit 2")]), gnu(2));
}

#[test]
fn joblog_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fs::write(&path, "something else").unwrap();
    let log = Joblog::open(&path, false).unwrap();
    let missing = JobFinished { exit: None, error: Some("not found".to_owned()), ..ended(3) };
    log.append(&encoded(&[(ended(1), "a"), (failed(2), "b\tc\nd"), (missing, "")])).unwrap();
    drop(log);
    let log = Joblog::open(&path, true).unwrap();
    assert!(!log.was_cut());
    log.append(&encoded(&[(ended(2), "b")])).unwrap();
    let text = fs::read(&path).unwrap();
    assert_eq!(text.split(|&byte| byte == b'\n').count(), 6, "one header, four jobs");
    let (progress, damage) = joblog::read(&path).unwrap();
    assert!(!damage.any());
    assert_eq!((ranges(&progress.done), ranges(&progress.failed)), (vec![(1, 3)], vec![(3, 3)]));
}

/// Opens a joblog that was closed a moment ago. A process that another test starts has its lock until it
/// executes its program.
fn reopened(path: &Path) -> Joblog {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match Joblog::open(path, true) {
            Err(error) if error.kind() == std::io::ErrorKind::Other && Instant::now() < deadline => {
                yield_now()
            }
            opened => return opened.unwrap(),
        }
    }
}

#[test]
fn truncated_joblog_is_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    for len in 0..=GNU.len() {
        fs::write(&path, &GNU[..len]).unwrap();
        let whole = GNU[..len].iter().filter(|&&byte| byte == b'\n').count();
        let torn = len > 0 && GNU[len - 1] != b'\n';
        let (progress, damage) = joblog::read(&path).unwrap();
        assert_eq!(progress.done.len(), whole.saturating_sub(1) as u64);
        assert_eq!(damage, Corruption { torn_tail: torn, ..Corruption::default() });
        let log = reopened(&path);
        assert_eq!(log.was_cut(), torn, "{len}");
        log.append(&encoded(&[(ended(9), "x")])).unwrap();
        let (progress, damage) = joblog::read(&path).unwrap();
        assert!(!damage.any(), "{len}");
        assert_eq!(progress.done.len(), whole.saturating_sub(1) as u64 + 1);
    }
}

#[test]
fn damaged_lines_are_skipped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let bad: [&[u8]; 6] =
        [b"", b"x", b"0\t:\t1\t1\t0\t0\t0\t0\tx", b"7\t:", b"7\t:\tx\t1\t0\t0\t0\t0\tx", b"\xff\0\t"];
    for line in bad {
        fs::write(&path, [GNU, line, b"\n", GNU, b"8\t"].concat()).unwrap();
        let (progress, damage) = joblog::read(&path).unwrap();
        assert_eq!(ranges(&progress.done), [(1, 1), (3, 6)]);
        assert_eq!(damage, Corruption { torn_tail: true, bad_lines: 1, first_bad_line: Some(7) });
    }
}

#[test]
fn file_that_is_not_a_joblog_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("thesis.txt");
    for text in ["My thesis\nis long", "Se\n", "no newline"] {
        fs::write(&path, text).unwrap();
        assert_eq!(joblog::read(&path).is_err(), text.contains('\n'), "{text}");
        Joblog::open(&path, true).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn long_incomplete_line_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fs::write(&path, [GNU, &[b'x'; 200_000]].concat()).unwrap();
    assert!(Joblog::open(&path, true).unwrap().was_cut());
    assert_eq!(fs::read(&path).unwrap(), GNU);
}
