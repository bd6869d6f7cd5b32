//! Output that waited and is handed over while its child continues, and output that is forwarded.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use minder::{
    Backend, ChildId, ChildSet, ChildSetOptions, ErrorKind, Event, Outcome, OutputMode, OverflowPolicy,
    SpawnOptions, Stdio, Stream, Termination,
};

use crate::support::{
    alone, each_backend, file, kill_group_of, limits, nameless_files, nap, next_event, patience, patterned,
    race_time, test_child,
};

/// The memory for output of [`tight`].
const TIGHT_BYTES: usize = 64 << 10;

/// Small bounds, and a directory for what finds no room.
pub(super) fn tight(backend: Backend, dir: &Path) -> ChildSetOptions {
    limits(backend)
        .read_buffer_bytes(4 << 10)
        .max_child_bytes(16 << 10)
        .max_buffered_bytes(TIGHT_BYTES)
        .spill_dir(dir)
}

/// Reads events as long as this condition holds.
#[track_caller]
pub(super) fn read_while(stream_log: &mut StreamLog, set: &mut ChildSet, holds: impl Fn() -> bool) {
    let until = patience();
    while holds() {
        assert!(Instant::now() < until, "it never came");
        read_for(stream_log, set, Duration::from_millis(10));
    }
}

/// Kept until the end, in memory and a file.
pub(super) fn at_end(files: bool) -> SpawnOptions {
    SpawnOptions::default()
        .overflow(OverflowPolicy::Spill)
        .output_mode(OutputMode::AtExit)
        .spill_as_file(files)
}

/// The reports about one child.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) outs: [Vec<u8>; 2],
    pub(super) eofs: [bool; 2],
    pub(super) exited: bool,
    pub(super) files: usize,
    pub(super) forwarded: [u64; 2],
    pub(super) done: Option<Outcome>,
}

/// The reports about all children. Where a stream is forwarded, what comes as output is written
/// after it.
#[derive(Debug, Default)]
pub(super) struct StreamLog {
    pub(super) records: HashMap<ChildId, Record>,
    sinks: HashMap<(ChildId, Stream), Arc<File>>,
}

impl StreamLog {
    fn take(&mut self, event: Event) {
        let Some(id) = event.child() else { return };
        let record = self.records.entry(id).or_default();
        assert!(record.done.is_none(), "{event:?} after Done");
        match event {
            Event::Output { stream, chunk: bytes, .. } => {
                assert!(!record.eofs[stream as usize], "{id:?}: {stream:?} after its end");
                record.outs[stream as usize].extend_from_slice(&bytes);
                if let Some(sink) = self.sinks.get(&(id, stream)) {
                    // A reader that is gone is what some tests are about.
                    let _ = (&**sink).write_all(&bytes);
                }
            }
            Event::Spilled { stream, file: mut spilled, .. } => {
                assert!(!record.eofs[stream as usize] && spilled.len > 0, "{id:?}: {stream:?} {spilled:?}");
                spilled.file.seek(SeekFrom::Start(spilled.start)).expect("seek in spill file");
                let read = (&spilled.file).take(spilled.len).read_to_end(&mut record.outs[stream as usize]);
                assert_eq!(read.expect("read spill file") as u64, spilled.len);
                record.files += 1;
                if let Some(path) = spilled.path {
                    std::fs::remove_file(path).expect("remove file");
                }
            }
            Event::Forwarded { stream, count, .. } => {
                assert!(!record.eofs[stream as usize] && count > 0, "{id:?}: {stream:?} {count}");
                record.forwarded[stream as usize] += count;
            }
            Event::Eof { stream, .. } => {
                assert!(
                    !std::mem::replace(&mut record.eofs[stream as usize], true),
                    "{stream:?} ended twice"
                );
            }
            Event::Exited { .. } => assert!(!std::mem::replace(&mut record.exited, true), "exited twice"),
            Event::Done { outcome, .. } => {
                assert!(record.exited, "done and not exited");
                record.done = Some(outcome);
            }
            _ => (),
        }
    }

    pub(super) fn read_until(&mut self, set: &mut ChildSet, enough: impl Fn(&Self) -> bool) {
        let until = patience();
        while !enough(self) {
            let event = set.next_event_deadline(Some(until)).expect("wait for event").into_event();
            self.take(event.unwrap_or_else(|| panic!("nothing more came: {}", self.sizes())));
        }
    }

    pub(super) fn wait_all(&mut self, set: &mut ChildSet) {
        let until = patience();
        while !set.is_empty() {
            let event = set.next_event_deadline(Some(until)).expect("wait for event").into_event();
            self.take(event.unwrap_or_else(|| panic!("{} are not done: {}", set.len(), self.sizes())));
        }
        assert!(self.records.values().all(|record| record.done.is_some()), "not all are done");
    }

    fn sizes(&self) -> String {
        let one = |record: &Record| {
            format!("{:?} {:?} {:?}", record.outs.each_ref().map(Vec::len), record.forwarded, record.exited)
        };
        self.records.values().map(one).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn of(&mut self, id: ChildId) -> &Record {
        self.records.entry(id).or_default()
    }

    fn outcome(&mut self, id: ChildId) -> Outcome {
        self.of(id).done.expect("child is done")
    }
}

/// Reads for a while and keeps nothing.
fn read_for(stream_log: &mut StreamLog, set: &mut ChildSet, time: Duration) {
    let until = Instant::now() + time;
    while let Some(event) = set.next_event_deadline(Some(until)).expect("wait for event").into_event() {
        stream_log.take(event);
    }
}

/// Returns a pipe to forward to, and a thread that reads it: after a delay, with pauses between
/// reads.
fn sink(after_ms: u64, pause_ms: u64) -> (Arc<File>, JoinHandle<Vec<u8>>) {
    let (mut reader, writer) = std::io::pipe().expect("create pipe");
    let thread = std::thread::spawn(move || {
        nap(Duration::from_millis(after_ms));
        let mut all = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            match reader.read(&mut piece).expect("read pipe") {
                0 => return all,
                count => all.extend_from_slice(&piece[..count]),
            }
            if pause_ms > 0 {
                nap(Duration::from_millis(pause_ms));
            }
        }
    });
    (Arc::new(file(writer)), thread)
}

/// Returns a full pipe, its reader, and the number of bytes in it.
#[cfg(unix)]
fn full_pipe(nonblocking: bool) -> (Arc<File>, std::io::PipeReader, usize) {
    let (reader, writer) = std::io::pipe().expect("create pipe");
    let file = crate::support::file(writer);
    rustix::io::ioctl_fionbio(&file, true).expect("set nonblocking mode");
    let mut filled = 0;
    while let Ok(count) = (&file).write(&[b'#'; 4096]) {
        filled += count;
    }
    rustix::io::ioctl_fionbio(&file, nonblocking).expect("set nonblocking mode");
    (Arc::new(file), reader, filled)
}

/// Returns a thread that waits for a message, at most for the patience, and reads everything.
#[cfg(unix)]
fn read_later(mut reader: std::io::PipeReader, begin: mpsc::Receiver<()>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let _ = begin.recv_timeout(patience().saturating_duration_since(Instant::now()));
        drop(begin);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).expect("read to end");
        all
    })
}

/// Numbers that differ from round to round, and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[test]
fn start_streaming_at_random_moments_keeps_every_byte() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let end = Instant::now() + race_time();
    let mut round = 0;
    while round < 4 || Instant::now() < end {
        let backends = crate::support::backends();
        go_live_at_random(backends[round % backends.len()], round, &mut dice);
        round += 1;
    }
}

fn go_live_at_random(backend: Backend, round: usize, dice: &mut Dice) {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let limits = tight(backend, dir.path())
        .spill_prefix((dice.below(2) == 0).then(|| "out-".to_owned()))
        .max_buffered_bytes(TIGHT_BYTES << dice.below(5));
    let mut set = ChildSet::new(limits).expect("create set");
    let hands = dice.below(12) as usize;
    let mut children = Vec::new();
    for _ in 0..=dice.below(16) {
        let size = [0, 50, 4096, 16_384, 70_000, 300_000][dice.below(6) as usize] + dice.below(50) as usize;
        let words = match dice.below(3) {
            0 => format!("script {size} {size} {} 0", dice.below(20)),
            _ => format!("both {size} {}", 100 + dice.below(9000)),
        };
        let files = dice.below(3) > 0;
        let id = set.spawn(&test_child(&words), at_end(files)).expect("spawn test child");
        children.push((id, size, words));
    }
    let mut stream_log = StreamLog::default();
    let mut held = VecDeque::new();
    let until = patience();
    while !set.is_empty() {
        assert!(Instant::now() < until, "round {round} on {backend} hangs: {}", stream_log.sizes());
        if dice.below(4) == 0 {
            let (id, ..) = children[dice.below(children.len() as u64) as usize];
            match set.start_streaming(id) {
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unknown, "{error}"),
                Ok(()) => assert!(set.pid(id).is_ok()),
            }
        }
        match set
            .next_event_deadline(Some(Instant::now() + Duration::from_micros(dice.below(3000))))
            .expect("wait for event")
            .into_event()
        {
            Some(event) => held.push_back(event),
            // A child may be blocked until one of the held chunks is released.
            None => held.drain(..).for_each(|event| stream_log.take(event)),
        }
        while held.len() > hands {
            stream_log.take(held.pop_front().expect("wait for event"));
        }
    }
    for event in held {
        stream_log.take(event);
    }
    for (id, size, words) in children {
        let record = stream_log.of(id);
        for out in &record.outs {
            let right = out.iter().zip(patterned(size)).take_while(|(a, b)| *a == b).count();
            assert!(
                right == size && out.len() == size,
                "{words}, round {round} on {backend}: {} bytes, {right} right",
                out.len()
            );
        }
        assert_eq!((record.eofs, stream_log.outcome(id).dropped), ([true; 2], 0), "{words}");
    }
    assert_eq!((set.buffered_bytes(), nameless_files(dir.path())), (0, vec![]));
    let left = std::fs::read_dir(dir.path()).expect("list directory").count();
    assert_eq!(left, 0, "spill files are left in round {round} on {backend}");
}

/// Earlier output must not wait for a child that writes nothing more.
#[test]
fn start_streaming_delivers_waiting_output_of_a_silent_child() {
    each_backend(|backend| {
        for files in [false, true] {
            let dir = tempfile::tempdir().expect("create temporary directory");
            let mut set = ChildSet::new(tight(backend, dir.path())).expect("create set");
            let mut command = test_child("cat");
            let id = set.spawn(command.stdin(Stdio::piped()), at_end(files)).expect("spawn test child");
            let bytes = patterned(300_000);
            let mut stream_log = StreamLog::default();
            feed(&mut set, &mut stream_log, id, &bytes[..200_000]);
            read_while(&mut stream_log, &mut set, || nameless_files(dir.path()).is_empty());
            assert!(stream_log.of(id).outs[0].is_empty(), "it is not live yet");
            set.start_streaming(id).expect("start streaming");
            set.start_streaming(id).expect("start streaming again");
            stream_log.read_until(&mut set, |stream_log| stream_log.records[&id].outs[0].len() == 200_000);
            feed(&mut set, &mut stream_log, id, &bytes[200_000..]);
            stream_log.read_until(&mut set, |stream_log| stream_log.records[&id].outs[0].len() == 300_000);
            set.close_stdin(id).expect("close stdin");
            stream_log.wait_all(&mut set);
            assert!(stream_log.of(id).outs[0] == bytes, "files: {files}");
            assert_eq!(stream_log.of(id).files, usize::from(files));
            assert_eq!(set.start_streaming(id).expect_err("stream after exit").kind(), ErrorKind::Unknown);
        }
    });
}

fn feed(set: &mut ChildSet, stream_log: &mut StreamLog, id: ChildId, mut bytes: &[u8]) {
    let until = patience();
    while !bytes.is_empty() {
        assert!(Instant::now() < until, "the child takes nothing");
        let count = set.write(id, bytes).expect("write to stdin");
        bytes = &bytes[count..];
        read_for(stream_log, set, Duration::from_millis(1));
    }
}

#[test]
fn streaming_child_is_blocked_at_the_limit() {
    each_backend(|backend| {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let mut set = ChildSet::new(tight(backend, dir.path())).expect("create set");
        let mut command = test_child("spew 100000000");
        command.stderr(Stdio::null());
        let id = set.spawn(&command, at_end(true)).expect("spawn test child");
        // Until there is a file; the child is not blocked.
        let patience = Instant::now() + Duration::from_secs(5);
        let until = || Instant::now() + Duration::from_millis(50);
        while set.next_event_deadline(Some(until())).expect("wait for event").into_event().is_some()
            || (nameless_files(dir.path()).is_empty() && Instant::now() < patience)
        {}
        set.start_streaming(id).expect("start streaming");
        let mut kept = Vec::new();
        let mut stream_log = StreamLog::default();
        let mut bytes = 0;
        let until = Instant::now() + Duration::from_millis(200);
        while let Some(event) = set.next_event_deadline(Some(until)).expect("wait for event").into_event() {
            match &event {
                Event::Output { chunk, .. } => bytes += chunk.len(),
                Event::Exited { .. } => panic!("the child was not blocked"),
                _ => (),
            }
            kept.push(event);
        }
        assert!(
            bytes <= 64 << 10 && set.buffered_bytes() <= 16 << 10,
            "{bytes} came, {} held",
            set.buffered_bytes()
        );
        assert_eq!(kept.iter().filter(|event| matches!(event, Event::Spilled { .. })).count(), 1);
        for event in kept {
            stream_log.take(event);
        }
        set.kill(id, Termination::IMMEDIATE).expect("kill child");
        stream_log.wait_all(&mut set);
        let reported = &stream_log.of(id).outs[0];
        assert!(*reported == patterned(reported.len()), "a byte is missing, or there twice");
    });
}

// Modes, numbers and links of files are those of Unix.
#[cfg(unix)]
#[test]
fn named_spill_files_are_private_and_skip_existing_names() {
    use std::os::unix::fs::MetadataExt;
    each_backend(|backend| {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let target = dir.path().join("secret");
        let dangling = dir.path().join("job-1");
        std::fs::write(dir.path().join("job-0"), "mine").expect("write file");
        std::os::unix::fs::symlink(&target, &dangling).expect("create symbolic link");
        std::os::unix::fs::symlink(dir.path().join("job-0"), dir.path().join("job-2"))
            .expect("create symbolic link");
        std::fs::create_dir(dir.path().join("job-3")).expect("create directory");
        let limits = tight(backend, dir.path()).spill_prefix(Some("job-".to_owned()));
        let mut set = ChildSet::new(limits).expect("create set");
        let live = set.spawn(&test_child("both 100000 3000"), at_end(true)).expect("spawn test child");
        let end = set.spawn(&test_child("both 100000 3000"), at_end(true)).expect("spawn test child");
        set.start_streaming(live).expect("start streaming");
        let mut stream_log = StreamLog::default();
        let mut names = Vec::new();
        let until = patience();
        while !set.is_empty() {
            let event = next_event(&mut set, until);
            if let Event::Spilled { file: spilled, .. } = &event {
                let path = spilled.path.clone().expect("get name");
                let data = std::fs::symlink_metadata(&path).expect("read metadata");
                assert_eq!(
                    (data.mode() & 0o7777, data.is_file(), path.parent()),
                    (0o600, true, Some(dir.path()))
                );
                assert_eq!(data.ino(), spilled.file.metadata().expect("read metadata").ino());
                names.push(path.file_name().expect("path has a file name").to_string_lossy().into_owned());
            }
            stream_log.take(event);
        }
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(
            names.iter().all(|name| name[4..].parse::<u32>().is_ok_and(|number| number > 3)),
            "{names:?}"
        );
        assert!(!target.exists() && std::fs::read(dir.path().join("job-0")).expect("read file") == b"mine");
        assert!(
            [live, end]
                .iter()
                .all(|id| stream_log.records[id].outs.iter().all(|out| *out == patterned(100_000)))
        );
        assert_eq!(std::fs::read_dir(dir.path()).expect("list directory").count(), 4);
    });
}

/// A small separate file system, nearly full; `None` where we may not have one.
#[cfg(target_os = "linux")]
struct Disk(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl Disk {
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(dir.path());
        mount.stderr(std::process::Stdio::null());
        let mounted = mount.status().is_ok_and(|status| status.success());
        let disk = mounted.then(|| Self(dir))?;
        std::fs::write(disk.filler(), vec![0; 960 << 10]).expect("write file");
        Some(disk)
    }

    fn filler(&self) -> std::path::PathBuf {
        self.0.path().join("filler")
    }
}

#[cfg(target_os = "linux")]
impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

// A file system that is mounted for it.
#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_reported_and_loses_nothing() {
    each_backend(|backend| {
        for (files, named, live) in (0..8).map(|bits| (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0)) {
            let Some(disk) = Disk::new() else {
                eprintln!("a full disk: skipped, no file system may be mounted");
                return;
            };
            let what = format!("files {files}, named {named}, live {live}");
            let limits = tight(backend, disk.0.path()).spill_prefix(named.then(|| "out-".to_owned()));
            let mut set = ChildSet::new(limits).expect("create set");
            let id = set.spawn(&test_child("both 300000 3000"), at_end(files)).expect("spawn test child");
            let mut stream_log = StreamLog::default();
            let until = patience();
            // Both outputs are refused, one after the other.
            let mut errors = 0;
            while errors < 5 {
                match set.next_event_deadline(Some(until)) {
                    Ok(minder::NextEvent::Event(event)) => stream_log.take(event),
                    Ok(end) => panic!("{what}: {end:?} instead of an error"),
                    Err(error) => {
                        assert_eq!(error.io_error().kind(), std::io::ErrorKind::StorageFull, "{error}");
                        errors += 1;
                    }
                }
            }
            // Another child is not blocked meanwhile.
            let other =
                set.spawn(&test_child("lines 3 5"), SpawnOptions::default()).expect("spawn test child");
            while live && stream_log.of(other).done.is_none() {
                assert!(Instant::now() < until, "{what}: a blocked child blocks another one");
                if let Ok(minder::NextEvent::Event(event)) = set.next_event_deadline(Some(until)) {
                    stream_log.take(event);
                }
            }
            if live {
                set.start_streaming(id).expect("start streaming on a full disk");
            } else {
                std::fs::remove_file(disk.filler()).expect("remove file");
            }
            while !set.is_empty() {
                assert!(Instant::now() < until, "{what}: {}", stream_log.sizes());
                match set.next_event_deadline(Some(until)) {
                    Ok(minder::NextEvent::Event(event)) => stream_log.take(event),
                    Ok(_) => (),
                    Err(error) if live => panic!("{what}: {error}"),
                    Err(_) => (),
                }
            }
            for out in &stream_log.of(id).outs {
                assert!(*out == patterned(300_000), "{what}: {} bytes", out.len());
            }
            let left = std::fs::read_dir(disk.0.path()).expect("list directory").count();
            assert_eq!(left, usize::from(live), "{what}: a file is left");
        }
    });
}

#[test]
fn waiting_output_precedes_forwarded_output() {
    each_backend(|backend| {
        for (after_ms, pause_ms) in [(0, 0), (150, 0), (0, 5)] {
            let dir = tempfile::tempdir().expect("create temporary directory");
            let mut set = ChildSet::new(tight(backend, dir.path())).expect("create set");
            let id = set.spawn(&test_child("both 2000000 5000"), at_end(true)).expect("spawn test child");
            let (file, reader) = sink(after_ms, pause_ms);
            let mut stream_log = StreamLog::default();
            let early = set.forward(id, Stream::Stdout, &file).expect_err("forward before streaming");
            assert_eq!(early.kind(), ErrorKind::InvalidInput);
            read_for(&mut stream_log, &mut set, Duration::from_millis(3));
            stream_log.sinks.insert((id, Stream::Stdout), Arc::clone(&file));
            set.start_streaming(id).expect("start streaming");
            // At once, with bytes that wait.
            set.forward(id, Stream::Stdout, &file).expect("forward output");
            let mut spilled = 0;
            let until = patience();
            while !set.is_empty() {
                let event = next_event(&mut set, until);
                if let Event::Spilled { stream: Stream::Stdout, file: file_of, .. } = &event {
                    let mut bytes = vec![0; file_of.len as usize];
                    (&file_of.file).seek(SeekFrom::Start(file_of.start)).expect("seek in spill file");
                    (&file_of.file).read_exact(&mut bytes).expect("read bytes");
                    (&*file).write_all(&bytes).expect("write bytes");
                    spilled += bytes.len();
                }
                stream_log.take(event);
            }
            drop((file, std::mem::take(&mut stream_log.sinks)));
            let all = reader.join().expect("join reader");
            let right = all.iter().zip(patterned(2_000_000)).take_while(|(a, b)| *a == b).count();
            assert!(right == 2_000_000 && all.len() == right, "{} came, {right} right", all.len());
            let record = stream_log.of(id);
            assert_eq!(record.outs[0].len() as u64 + record.forwarded[0], 2_000_000, "{spilled} spilled");
            assert!(record.outs[1] == patterned(2_000_000) && record.forwarded[1] == 0, "stderr is ours");
            assert!(record.forwarded[0] > 0 || cfg!(not(target_os = "linux")), "nothing was forwarded");
            assert_eq!(record.eofs, [true; 2]);
        }
    });
}

#[test]
fn forward_writes_at_the_file_position_and_rejects_other_kinds() {
    each_backend(|backend| {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let path = dir.path().join("out");
        let open = |path: &Path, append: bool| {
            let mut options = File::options();
            options.create(true).write(!append).append(append).open(path).expect("open file")
        };
        let mut plain = open(&path, false);
        plain.write_all(b"before ").expect("write bytes");
        #[cfg_attr(windows, expect(unused_mut, reason = "Unix has more cases"))]
        let mut cases = vec![
            (plain, cfg!(target_os = "linux")),
            (open(&dir.path().join("append"), true), false),
            // A file that is open for reading only.
            (File::open(&path).expect("open file"), false),
        ];
        #[cfg(unix)]
        {
            use rustix::pty::{OpenptFlags, openpt};
            cases.push((open(Path::new("/dev/full"), false), false));
            cases.push((open(Path::new("/dev/null"), false), false));
            let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("open pseudo-terminal");
            cases.push((File::from(terminal), false));
        }
        for (number, (file, passes)) in cases.into_iter().enumerate() {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let mut stream_log = StreamLog::default();
            let id =
                set.spawn(&test_child("spew 500000"), SpawnOptions::default()).expect("spawn test child");
            set.forward(id, Stream::Stdout, &Arc::new(file)).expect("forward to any file");
            stream_log.wait_all(&mut set);
            let record = stream_log.of(id);
            let expected = if passes { (0, 500_000) } else { (500_000, 0) };
            assert_eq!((record.outs[0].len(), record.forwarded[0]), expected, "case {number}");
            assert!(passes || record.outs[0] == patterned(500_000), "case {number}");
        }
        if cfg!(target_os = "linux") {
            let all = std::fs::read(&path).expect("read file");
            assert!(all[..7] == *b"before " && all[7..] == patterned(500_000), "{} bytes", all.len());
        }
    });
}

#[test]
fn closed_forward_reader_returns_the_rest_as_output() {
    // SIGPIPE keeps its default action here: a test binary ignores it, which would hide the signal.
    alone("set::streaming::closed_forward_reader_returns_the_rest_as_output", || {
        #[cfg(unix)]
        crate::spawn::restore_sigpipe();
        each_backend(|backend| {
            for takes in [0, 1, 300_000] {
                let mut set = ChildSet::new(limits(backend)).expect("create set");
                let id = set
                    .spawn(&test_child("spew 6000000"), SpawnOptions::default())
                    .expect("spawn test child");
                let (mut reader, writer) = std::io::pipe().expect("create pipe");
                let file = Arc::new(crate::support::file(writer));
                set.forward(id, Stream::Stdout, &file).expect("forward output");
                let thread = std::thread::spawn(move || {
                    let mut bytes = vec![0; takes];
                    reader.read_exact(&mut bytes).expect("read bytes");
                    assert!(bytes == patterned(takes));
                });
                if takes == 0 {
                    thread.join().expect("join reader");
                }
                let mut stream_log = StreamLog::default();
                stream_log.wait_all(&mut set);
                let record = stream_log.of(id);
                assert_eq!(record.outs[0].len() as u64 + record.forwarded[0], 6_000_000, "after {takes}");
                assert!(patterned(6_000_000).ends_with(&record.outs[0]), "after {takes}");
                assert!(!record.outs[0].is_empty(), "after {takes}: it was not gone");
                assert!(record.done.expect("child is done").exit.status.success());
            }
        });
    });
}

/// Two children have exited with their last bytes in their pipes, and the pipes that these are
/// forwarded to are full and not read.
// Windows cannot forward without a copy: the caller writes the output, and its own write blocks.
#[cfg(unix)]
#[test]
fn full_forward_pipe_blocks_only_its_child() {
    each_backend(|backend| {
        for nonblocking in [false, true] {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let mut stream_log = StreamLog::default();
            let (file, reader, filled) = full_pipe(nonblocking);
            // Less than a page, which is the pipe of a user that has many.
            let mut command = test_child("spew 4000");
            command.stderr(Stdio::null());
            let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
            set.forward(id, Stream::Stdout, &file).expect("forward output");
            // The pipe was enlarged: it is filled once more.
            rustix::io::ioctl_fionbio(&*file, true).expect("set nonblocking mode");
            let mut more = 0;
            while let Ok(count) = (&*file).write(&[b'#'; 4096]) {
                more += count;
            }
            rustix::io::ioctl_fionbio(&*file, nonblocking).expect("set nonblocking mode");
            let other =
                set.spawn(&test_child("lines 5 20"), SpawnOptions::default()).expect("spawn test child");
            let begun = Instant::now();
            let mut other_done = None;
            let mut late = Vec::new();
            let until = patience();
            let exited = |log: &mut StreamLog| !cfg!(target_os = "linux") || log.of(id).exited;
            while begun.elapsed() < Duration::from_millis(1200)
                || ((other_done.is_none() || !exited(&mut stream_log)) && Instant::now() < until)
            {
                let deadline = Instant::now() + Duration::from_millis(5);
                if let Some(event) =
                    set.next_event_deadline(Some(deadline)).expect("wait for event").into_event()
                {
                    stream_log.take(event);
                }
                late.push(Instant::now().saturating_duration_since(deadline));
                other_done = other_done.or_else(|| stream_log.of(other).done.map(|_| begun.elapsed()));
            }
            if cfg!(target_os = "linux") {
                assert!(stream_log.of(id).done.is_none(), "given up, with bytes in its pipe");
                assert!(stream_log.of(id).exited, "its exit is reported");
            }
            assert!(other_done.is_some(), "the other was not stream_log");
            // Most of them: a busy machine delays some.
            late.sort_unstable();
            let median = late[late.len() / 2];
            assert!(median < Duration::from_millis(250), "half of the waits ended {median:?} late, or later");
            let thread = read_later(reader, mpsc::channel().1);
            stream_log.sinks.insert((id, Stream::Stdout), Arc::clone(&file));
            stream_log.wait_all(&mut set);
            drop((file, std::mem::take(&mut stream_log.sinks)));
            let all = thread.join().expect("join reader");
            if cfg!(target_os = "linux") {
                assert!(all[filled + more..] == patterned(4_000), "{} came", all.len() - filled - more);
            }
            assert!(!stream_log.outcome(id).leaked, "it was the reader who was slow");
        }
    });
}

// A pseudo-console is not supported.
#[cfg(target_os = "linux")]
#[test]
fn terminal_forwarded_to_a_full_pipe_does_not_block_the_set() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut stream_log = StreamLog::default();
        let (file, reader, filled) = full_pipe(false);
        let mut command = minder::Command::new(crate::support::TEST_CHILD);
        command.args(["lines", "30", "5"]).group(minder::Group::Terminal(minder::Size::default()));
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        set.forward(id, Stream::Stdout, &file).expect("forward output");
        // The reader begins when a message arrives, or unblocks a blocked writer in the end.
        let (sender, begin) = mpsc::channel();
        let thread = read_later(reader, begin);
        read_for(&mut stream_log, &mut set, Duration::from_millis(300));
        sender.send(()).expect("the set waited for the reader");
        stream_log.sinks.insert((id, Stream::Stdout), Arc::clone(&file));
        stream_log.wait_all(&mut set);
        drop((file, std::mem::take(&mut stream_log.sinks)));
        let all = thread.join().expect("join reader");
        let lines: String = (0..30).map(|line| format!("line {line}\r\n")).collect();
        let marks = all.iter().filter(|byte| **byte == b'#').count();
        let text: Vec<u8> = all.into_iter().filter(|byte| *byte != b'#').collect();
        assert_eq!((marks, String::from_utf8_lossy(&text).into_owned()), (filled, lines));
    });
}

#[test]
fn silent_grandchild_is_abandoned_while_forwarding() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let id = set
            .spawn(&test_child("hold-stdout 600000 50000"), SpawnOptions::default())
            .expect("spawn test child");
        let pid = set.pid(id).expect("get pid");
        let (file, reader) = sink(0, 0);
        set.forward(id, Stream::Stdout, &file).expect("forward output");
        let mut stream_log = StreamLog::default();
        stream_log.sinks.insert((id, Stream::Stdout), Arc::clone(&file));
        stream_log.wait_all(&mut set);
        kill_group_of(pid);
        drop((file, std::mem::take(&mut stream_log.sinks)));
        assert!(reader.join().expect("join reader") == patterned(50_000));
        let outcome = stream_log.outcome(id);
        assert!(outcome.leaked && stream_log.of(id).eofs == [true; 2], "{outcome:?}");
    });
}

#[test]
fn child_is_killed_while_forwarding() {
    each_backend(|backend| {
        for full in [false, true] {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let id =
                set.spawn(&test_child("spew 1000000000"), SpawnOptions::default()).expect("spawn test child");
            let (file, reader) = sink(if full { 600 } else { 0 }, 0);
            set.forward(id, Stream::Stdout, &file).expect("forward output");
            let mut stream_log = StreamLog::default();
            stream_log.sinks.insert((id, Stream::Stdout), Arc::clone(&file));
            read_for(&mut stream_log, &mut set, Duration::from_millis(60));
            set.kill(id, Termination::IMMEDIATE).expect("kill child");
            set.start_streaming(id).expect("start streaming again");
            set.forward(id, Stream::Stdout, &file).expect("forward output");
            stream_log.wait_all(&mut set);
            assert_eq!(
                set.forward(id, Stream::Stdout, &file).expect_err("forward after exit").kind(),
                ErrorKind::Unknown
            );
            drop((file, std::mem::take(&mut stream_log.sinks)));
            let all = reader.join().expect("join reader");
            let record = stream_log.of(id);
            assert_eq!(all.len() as u64, record.forwarded[0] + record.outs[0].len() as u64);
            assert!(all == patterned(all.len()), "a byte is missing, or there twice");
        }
    });
}

#[test]
fn start_streaming_works_on_an_exited_or_killed_child() {
    each_backend(|backend| {
        for (files, killed) in [(false, false), (true, false), (false, true), (true, true)] {
            let dir = tempfile::tempdir().expect("create temporary directory");
            let mut set = ChildSet::new(tight(backend, dir.path())).expect("create set");
            let id = set.spawn(&test_child("both 100000 1000"), at_end(files)).expect("spawn test child");
            let mut stream_log = StreamLog::default();
            // At its exit its last bytes are in the queue.
            stream_log.read_until(&mut set, |stream_log| {
                stream_log.records.get(&id).is_some_and(|record| record.exited)
            });
            if killed {
                set.kill(id, Termination::IMMEDIATE).expect("kill child");
            }
            let (file, reader) = sink(0, 0);
            set.start_streaming(id).expect("start streaming");
            let _ = set.forward(id, Stream::Stdout, &file);
            stream_log.wait_all(&mut set);
            drop(file);
            let record = stream_log.of(id);
            let forwarded = reader.join().expect("join reader");
            let out = [&record.outs[0][..], &forwarded].concat();
            assert!(out == patterned(100_000) && record.outs[1] == out, "{files} {killed}: {}", out.len());
            assert_eq!(record.eofs, [true; 2]);
        }
    });
}
