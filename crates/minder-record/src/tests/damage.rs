//! Journals that were cut, or in which bytes changed.

use super::super::reader::{Corruption, tail_from};
use super::*;

/// Three whole lines, and where the last two of them begin.
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
    let damage = each(path, |row| rows.push(row)).unwrap();
    (rows, damage)
}

#[test]
fn a_journal_cut_at_every_byte_of_its_last_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attempt-1.jsonl");
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
fn every_bit_of_the_last_lines_flipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attempt-1.jsonl");
    let (some, text, start) = three();
    let second = lines(&some[..2]).len();
    for place in start..text.len() {
        for bit in 0..8 {
            let mut text = text.clone();
            text[place] ^= 1 << bit;
            fs::write(&path, &text).unwrap();
            let (read, damage) = read(&path);
            assert!(damage.any(), "byte {place}, bit {bit}");
            assert_eq!(read[0], some[0]);
            if place < second - 1 {
                // The line in the middle only.
                assert_eq!(read[1..], some[2..], "byte {place}, bit {bit}");
                let split = text[place] == b'\n';
                let bad_lines = if split { 2 } else { 1 };
                assert_eq!(damage, Corruption { torn_tail: false, bad_lines, first_bad_line: Some(2) });
            } else if place >= second {
                assert_eq!(read[1], some[1], "byte {place}, bit {bit}");
                assert!(damage.torn_tail);
            }
        }
    }
}

#[test]
fn a_long_journal_is_read_on_behind_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attempt-1.jsonl");
    let mut text = Vec::new();
    for job in 1..=3000 {
        text.extend(lines(&[JournalEvent::JobFinished(ended(job))]));
        match job {
            1000 => text.extend(b"\n"),
            // Longer than any line may be.
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
fn zeros_at_the_end_are_a_torn_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attempt-1.jsonl");
    let (some, mut text, _) = three();
    text.extend([0; 5000]);
    fs::write(&path, &text).unwrap();
    assert_eq!(read(&path), (some, Corruption { torn_tail: true, ..Corruption::default() }));
    fs::write(&path, "").unwrap();
    assert_eq!(read(&path), (Vec::new(), Corruption::default()));
}

#[test]
fn following_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attempt-1.jsonl");
    let (some, text, _) = three();
    let (mut offset, mut seen) = (0, Vec::new());
    for len in 0..=text.len() {
        fs::write(&path, &text[..len]).unwrap();
        let (next, damage) = tail_from(&path, offset, |row| seen.push(row)).unwrap();
        assert!(next >= offset && !damage.any());
        offset = next;
    }
    assert_eq!((seen, offset), (some, text.len() as u64));
    // Shorter than before: a write was taken back.
    fs::write(&path, "").unwrap();
    assert_eq!(tail_from(&path, offset, |_| ()).unwrap(), (0, Corruption::default()));
    fs::write(&path, "rubbish\n").unwrap();
    let (next, damage) = tail_from(&path, 0, |_| ()).unwrap();
    assert_eq!((next, damage.bad_lines), (8, 1));
}

#[test]
fn what_is_no_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    each(folder.path(), |_| ()).unwrap_err();
    let missing = folder.path().join("attempt-1.jsonl");
    each(&missing, |_| ()).unwrap_err();
    assert_eq!(read_run(folder.path()).unwrap().attempts.len(), 0);
    // A folder in the place of a journal is said, and the rest is read.
    fs::create_dir(&missing).unwrap();
    fs::write(folder.path().join("attempt-2.jsonl"), lines(&[JournalEvent::JobFinished(ended(1))])).unwrap();
    let run = read_run(folder.path()).unwrap();
    assert!(run.attempts[0].error.is_some() && run.manifest.is_err());
    assert_eq!(run.jobs.len(), 1);
    RunState::of_run(folder.path(), false).unwrap_err();
}
