//! Full disks: simulated at every byte, and a real one.

use std::io;

use super::*;
use crate::append_file::{AppendTarget, LineWriter};

/// A file on a simulated disk of limited size. Its calls can be made to fail.
#[derive(Debug, Default)]
struct Disk {
    bytes: Vec<u8>,
    room: usize,
    /// The maximum number of bytes that one write accepts.
    write_max: usize,
    cannot_truncate: bool,
    cannot_sync: bool,
    writes: usize,
}

impl AppendTarget for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        if self.writes.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let taken = bytes.len().min(self.room - self.bytes.len()).min(self.write_max);
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        if self.cannot_truncate {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.bytes.truncate(usize::try_from(len).unwrap());
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.cannot_sync { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
    }
}

/// Reads the events on the disk, and whether the journal is damaged.
fn read(bytes: &[u8]) -> (Vec<JournalEvent>, bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attempt-1.jsonl");
    fs::write(&path, bytes).unwrap();
    let mut rows = Vec::new();
    let damage = read_journal(&path, |row| rows.push(row)).unwrap();
    (rows, damage.any())
}

/// Events that are appended together.
fn batches() -> Vec<Vec<JournalEvent>> {
    vec![
        vec![JournalEvent::JobFinished(ended(1))],
        vec![JournalEvent::JobFinished(kept(2)), JournalEvent::OutputShown(JobList { jobs: vec![2] })],
        vec![JournalEvent::AttemptFinished(AttemptFinished::default())],
    ]
}

#[test]
fn append_writes_all_or_nothing_if_disk_is_full() {
    let total: usize = batches().iter().map(|batch| lines(batch).len()).sum();
    for (room, write_max) in (0..=total).flat_map(|room| [(room, usize::MAX), (room, 7)]) {
        let mut file = LineWriter::new(Disk { room, write_max, ..Disk::default() }, 0, false);
        let mut written = Vec::new();
        for batch in batches() {
            // After a failure, a shorter batch may still fit.
            match file.append(&lines(&batch)) {
                Ok(()) => written.extend(batch),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
            }
        }
        assert_eq!(
            file.target().bytes,
            lines(&written),
            "room for {room}: exactly the batches that succeeded"
        );
        assert_eq!(read(&file.target().bytes), (written, false));
    }
}

#[test]
fn torn_line_is_truncated_later_if_truncation_fails() {
    for room in 0..=lines(&batches()[0]).len() + lines(&batches()[1]).len() {
        let mut file = LineWriter::new(
            Disk { room, write_max: usize::MAX, cannot_truncate: true, ..Disk::default() },
            0,
            false,
        );
        let mut written = Vec::new();
        for batch in batches() {
            if file.append(&lines(&batch)).is_ok() {
                written.extend(batch);
            }
        }
        // A reader skips the torn line. It may see complete events of a batch that failed.
        let (rows, _) = read(&file.target().bytes);
        assert_eq!(rows[..written.len()], written, "room for {room}");
        // When there is space again, the next append removes the torn line.
        file = LineWriter::new(
            Disk { room, write_max: usize::MAX, cannot_truncate: true, ..Disk::default() },
            0,
            false,
        );
        let first = file.append(&lines(&batches()[1])).is_ok();
        let mut disk = file;
        disk.change(|disk| {
            disk.room = usize::MAX;
            disk.cannot_truncate = false;
        });
        disk.append(&lines(&batches()[2])).unwrap();
        let mut expected = if first { batches()[1].clone() } else { Vec::new() };
        expected.extend(batches()[2].clone());
        assert_eq!(read(&disk.target().bytes), (expected, false), "room for {room}");
    }
}

#[test]
fn stream_ends_torn_line_with_newline() {
    let mut stream = LineWriter::stream(Disk { room: 10, write_max: usize::MAX, ..Disk::default() });
    stream.append(b"one\n").unwrap();
    stream.append(b"two is long\n").unwrap_err();
    stream.append(b"three\n").unwrap_err();
    stream.change(|disk| disk.room = 100);
    stream.append(b"four\n").unwrap();
    assert_eq!(stream.target().bytes, b"one\ntwo is\nfour\n");
}

#[test]
fn append_fails_if_sync_fails() {
    let disk = || Disk { room: 100, write_max: usize::MAX, cannot_sync: true, ..Disk::default() };
    let mut file = LineWriter::new(disk(), 0, true);
    file.append(b"one\n").unwrap_err();
    file.append(b"two\n").unwrap_err();
    assert_eq!(file.target().bytes, b"one\ntwo\n");
    LineWriter::new(disk(), 0, false).append(b"one\n").unwrap();
}

#[test]
fn create_fails_if_state_root_is_below_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let lost = || manifest(InputSource::Lost { why: String::new() });
    let error = JournalWriter::create(&file.join("state"), lost(), None::<OsString>, false).unwrap_err();
    assert!(format!("{error}").contains("cannot create a directory for the record in"), "{error}");
}

/// Fills a small tmpfs. Only root can mount one, and not in every container.
#[test]
fn journal_survives_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mount = |words: &[&str]| {
        let done = std::process::Command::new(words[0]).args(&words[1..]).arg(dir.path()).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs"]) {
        // Not by a macro, whose output is shown for failed tests only.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: journal_survives_full_disk: no right to mount one\n",
        );
        return;
    }
    let result = std::panic::catch_unwind(|| fill(dir.path()));
    assert!(mount(&["umount"]));
    result.unwrap();
}

fn fill(root: &Path) {
    let record = new_run(root);
    let mut output = minder_os::files::create_private_file(&record.dir().join("out-1-0")).unwrap();
    io::Write::write_all(&mut output, &[0; 20_000]).unwrap();
    let mut written = 0;
    let error = loop {
        match record.append(&lines(&[JournalEvent::JobFinished(ended(written + 1))])) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(fs::read(journal_of(&record)).unwrap().ends_with(b"\n"));
    let done = || {
        let (progress, damaged) = RunState::of_run(record.dir(), ComparedArgs::None).unwrap();
        assert!(damaged.is_empty());
        progress.done.ranges().collect::<Vec<_>>()
    };
    assert_eq!(done(), [(1, written)]);
    crate::writer::remove_outputs(record.dir());
    drop(output);
    record.append(&lines(&[JournalEvent::JobFinished(ended(written + 1))])).unwrap();
    assert_eq!(done(), [(1, written + 1)]);
    // A new run that does not fit leaves nothing.
    while record.append(&lines(&[JournalEvent::JobFinished(ended(1))])).is_ok() {}
    let arguments = vec!["x".repeat(1000); 100];
    let made = JournalWriter::create(
        root,
        manifest(InputSource::arguments(None, Vec::new(), None)),
        &arguments,
        false,
    );
    assert!(made.is_err());
    assert_eq!(fs::read_dir(root.join("runs")).unwrap().count(), 1);
}
