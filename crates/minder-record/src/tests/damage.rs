//! Journals that were truncated, or in which bits changed.

use super::*;
use crate::reader::{Corruption, tail_from};

/// Returns three events, their lines, and the offset of the second line.
fn three() -> (Vec<JournalEvent>, Vec<u8>, usize) {
    let some = vec![
        JournalEvent::JobFinished(ended(1)),
        JournalEvent::JobFinished(kept(2)),
        JournalEvent::OutputShown(JobList { jobs: vec![1, 2] }),
    ];
    let text = lines(&some);
    let start = lines(&some[..1]).len();
    (some, text, start)
}

fn read(path: &Path) -> (Vec<JournalEvent>, Corruption) {
    let mut rows = Vec::new();
    let damage = read_journal(path, |row| rows.push(row)).unwrap();
    (rows, damage)
}

#[test]
fn truncated_journal_loses_only_its_last_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attempt-1.jsonl");
    let (some, text, start) = three();
    for len in start..=text.len() {
        fs::write(&path, &text[..len]).unwrap();
        let (read, damage) = read(&path);
        let whole = text[..len].iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(read, some[..whole], "cut at {len}");
        let torn_tail = text[len - 1] != b'\n';
        assert_eq!(damage, Corruption { torn_tail, ..Corruption::default() }, "cut at {len}");
    }
}

#[test]
fn flipped_bit_costs_only_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attempt-1.jsonl");
    let (some, text, start) = three();
    let second = lines(&some[..2]).len();
    for offset in start..text.len() {
        for bit in 0..8 {
            let mut text = text.clone();
            text[offset] ^= 1 << bit;
            fs::write(&path, &text).unwrap();
            let (read, damage) = read(&path);
            assert!(damage.any(), "byte {offset}, bit {bit}");
            assert_eq!(read[0], some[0]);
            if offset < second - 1 {
                // Only the middle line is lost.
                assert_eq!(read[1..], some[2..], "byte {offset}, bit {bit}");
                let split = text[offset] == b'\n';
                let bad_lines = if split { 2 } else { 1 };
                assert_eq!(damage, Corruption { torn_tail: false, bad_lines, first_bad_line: Some(2) });
            } else if offset >= second {
                assert_eq!(read[1], some[1], "byte {offset}, bit {bit}");
                assert!(damage.torn_tail);
            }
        }
    }
}

#[test]
fn reading_continues_after_damaged_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attempt-1.jsonl");
    let mut text = Vec::new();
    for job in 1..=3000 {
        text.extend(lines(&[JournalEvent::JobFinished(ended(job))]));
        match job {
            1000 => text.extend(b"\n"),
            // Longer than `LINE_MAX`.
            2000 => text.extend([vec![b'x'; LINE_MAX + 10], vec![b'\n']].concat()),
            _ => (),
        }
    }
    fs::write(&path, &text).unwrap();
    let (read, damage) = read(&path);
    assert_eq!(read.len(), 3000);
    assert_eq!(damage, Corruption { torn_tail: false, bad_lines: 2, first_bad_line: Some(1001) });
}

#[test]
fn zeros_at_the_end_count_as_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attempt-1.jsonl");
    let (some, mut text, _) = three();
    text.extend([0; 5000]);
    fs::write(&path, &text).unwrap();
    assert_eq!(read(&path), (some, Corruption { torn_tail: true, ..Corruption::default() }));
    fs::write(&path, "").unwrap();
    assert_eq!(read(&path), (Vec::new(), Corruption::default()));
}

#[test]
fn tail_from_continues_at_its_offset() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attempt-1.jsonl");
    let (some, text, _) = three();
    let mut offset = 0;
    let mut seen = Vec::new();
    for len in 0..=text.len() {
        fs::write(&path, &text[..len]).unwrap();
        let (next, damage) = tail_from(&path, offset, |row| seen.push(row)).unwrap();
        assert!(next >= offset && !damage.any());
        offset = next;
    }
    assert_eq!((seen, offset), (some, text.len() as u64));
    // The journal is shorter than before: a write was undone.
    fs::write(&path, "").unwrap();
    assert_eq!(tail_from(&path, offset, |_| ()).unwrap(), (0, Corruption::default()));
    fs::write(&path, "rubbish\n").unwrap();
    let (next, damage) = tail_from(&path, 0, |_| ()).unwrap();
    assert_eq!((next, damage.bad_lines), (8, 1));
}

#[test]
fn directory_in_place_of_journal_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    read_journal(dir.path(), |_| ()).unwrap_err();
    let missing = dir.path().join("attempt-1.jsonl");
    read_journal(&missing, |_| ()).unwrap_err();
    assert_eq!(read_run(dir.path()).unwrap().attempts.len(), 0);
    // A directory in place of a journal is an error of that attempt only.
    fs::create_dir(&missing).unwrap();
    fs::write(dir.path().join("attempt-2.jsonl"), lines(&[JournalEvent::JobFinished(ended(1))])).unwrap();
    let run = read_run(dir.path()).unwrap();
    assert!(run.attempts[0].error.is_some() && run.manifest.is_err());
    assert_eq!(run.jobs.len(), 1);
    RunState::of_run(dir.path(), ComparedArgs::None).unwrap_err();
}
