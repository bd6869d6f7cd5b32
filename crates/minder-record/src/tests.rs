//! Records as a whole: what is written can be read back, even after damage.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::agents::AgentKey;
use crate::codec::{self, DecodeError, LINE_MAX};
use crate::event::{
    AttemptFinished, AttemptHost, AttemptStarted, Claimed, JobFinished, JobList, JournalEvent, OsBytes,
    OutputSegment, Sealed, SealedJournal,
};
use crate::job_set::JobSet;
use crate::manifest::{InputSource, Manifest};
use crate::reader::{read_journal, read_run};
use crate::run_state::{ComparedArgs, RunState};
use crate::store;
use crate::writer::{JournalWriter, RunLock};

mod agents;
mod damage;
mod faults;
mod dirs;
mod joblogs;
#[cfg(unix)]
mod unix;

/// Begins the next attempt at a run.
fn resume(dir: &Path) -> crate::Result<JournalWriter> {
    JournalWriter::resume(RunLock::acquire(dir)?, false)
}

/// A job that succeeded.
fn ended(job: u64) -> JobFinished {
    JobFinished { job, at: 1_763_731_172.25, wall: 0.5, exit: Some(0), out: 3, ..JobFinished::default() }
}

fn failed(job: u64) -> JobFinished {
    JobFinished { exit: Some(1), ..ended(job) }
}

fn kept(job: u64) -> JobFinished {
    let segment = OutputSegment { stream: 1, file: "out-1-0".to_owned(), at: job * 10, len: 10 };
    JobFinished { kept: vec![segment], ..ended(job) }
}

fn lines(events: &[JournalEvent]) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        codec::encode(event, &mut out);
    }
    out
}

fn events(path: &Path) -> Vec<JournalEvent> {
    let mut events = Vec::new();
    read_journal(path, |event| events.push(event)).unwrap();
    events
}

fn manifest(input: InputSource) -> Manifest {
    Manifest::new(Path::new("/work"), &["echo", "{}"], input)
}

fn over(why: Option<&str>) -> JournalEvent {
    JournalEvent::AttemptFinished(AttemptFinished {
        why: why.map(str::to_owned),
        ..AttemptFinished::default()
    })
}

#[test]
fn run_state_is_complete_after_an_attempt_that_left_nothing() {
    let state = |events: &[JournalEvent]| {
        let mut state = RunState::default();
        events.iter().for_each(|event| state.apply(event));
        state.is_complete()
    };
    let done = |job| JournalEvent::JobFinished(ended(job));
    let lost = JournalEvent::OutputLost(JobList { jobs: vec![1] });
    assert!(state(&[done(1), done(2), over(None)]));
    assert!(!state(&[done(1), done(2)]), "it was killed");
    assert!(!state(&[done(1), over(Some("interrupted"))]));
    assert!(!state(&[done(2), over(None)]), "the event of job 1 is lost");
    assert!(!state(&[done(1), over(None), lost.clone()]));
    assert!(!state(&[done(1), lost, over(None)]));
    assert!(!state(&[JournalEvent::JobFinished(kept(1)), over(None)]), "output was not shown");
    assert!(!state(&[done(1), over(None), JournalEvent::JobFinished(failed(1))]), "a retry was killed");
}

/// Creates a run without arguments.
fn new_run(root: &Path) -> JournalWriter {
    let lost = InputSource::Lost { why: "standard input was a pipe".to_owned() };
    JournalWriter::create(root, manifest(lost), None::<OsString>, false).unwrap()
}

fn journal_of(record: &JournalWriter) -> PathBuf {
    record.dir().join(format!("attempt-{}.jsonl", record.attempt()))
}

#[test]
fn line_has_specified_format() {
    let line = lines(&[JournalEvent::OutputShown(JobList { jobs: vec![1, 2] })]);
    let text = r#"{"event":"shown","jobs":[1,2]"#;
    let crc = crc32fast::hash(text.as_bytes());
    assert_eq!(String::from_utf8(line).unwrap(), format!("{text},\"crc\":\"{crc:08x}\"}}\n"));
}

#[test]
fn bytes_that_are_not_utf8_round_trip() {
    let args = vec![OsBytes(vec![b'a', 0xff, b'\n']), OsBytes("é\n\"\u{1}".into()), OsBytes(Vec::new())];
    let row = JournalEvent::JobFinished(JobFinished { args, ..ended(1) });
    let line = lines(std::slice::from_ref(&row));
    assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
    assert!(String::from_utf8_lossy(&line).contains(r#"{"base64":"Yf8K"}"#));
    assert_eq!(codec::decode(line.trim_ascii_end()), Ok(row));
}

#[test]
fn events_of_newer_versions_are_unknown_not_damaged() {
    let seal = |text: &str| format!("{text},\"crc\":\"{:08x}\"}}", crc32fast::hash(text.as_bytes()));
    let decode = |text: &str| codec::decode(seal(text).as_bytes());
    assert_eq!(decode(r#"{"event":"moved","to":3"#), Err(DecodeError::Unknown));
    assert_eq!(decode(r#"{"event":"shown","to":3"#), Err(DecodeError::Malformed));
    assert_eq!(decode(r#"{"event":"ended","job":"x""#), Err(DecodeError::Malformed));
    assert_eq!(decode(r#"{"event":"outputs","attempt":1"#), Err(DecodeError::Malformed));
    assert_eq!(decode(r#"{"event":"lost","job":1"#), Err(DecodeError::Malformed));
    assert_eq!(decode("[1"), Err(DecodeError::Malformed));
    // An unknown member is ignored.
    assert_eq!(
        decode(r#"{"event":"shown","jobs":[1],"new":{}"#),
        Ok(JournalEvent::OutputShown(JobList { jobs: vec![1] }))
    );
    for text in ["", "}", "{}", "\"crc\"", ",\"crc\":\"00000000\"}"] {
        assert!(codec::decode(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn encode_never_exceeds_line_max() {
    let args = vec![OsBytes(vec![1; LINE_MAX / 6]), OsBytes(vec![1; 100])];
    let line = lines(&[JournalEvent::JobFinished(JobFinished { args, ..ended(7) })]);
    assert_eq!(codec::decode(line.trim_ascii_end()), Ok(JournalEvent::JobFinished(ended(7))));
    let jobs: Vec<u64> = (10_000_000..10_600_000).collect();
    let shown = lines(&[JournalEvent::OutputShown(JobList { jobs: jobs.clone() })]);
    let mut read = Vec::new();
    for line in shown.split_inclusive(|&byte| byte == b'\n') {
        assert!(line.len() <= LINE_MAX);
        let Ok(JournalEvent::OutputShown(shown)) = codec::decode(line.trim_ascii_end()) else { panic!() };
        read.extend(shown.jobs);
    }
    assert_eq!(read, jobs);
}

#[test]
fn infinity_and_nan_are_written_as_zero() {
    let row =
        JournalEvent::JobFinished(JobFinished { wall: f64::NAN, user: Some(f64::INFINITY), ..ended(1) });
    let line = lines(&[row]);
    let expected = JournalEvent::JobFinished(JobFinished { wall: 0.0, user: Some(0.0), ..ended(1) });
    assert_eq!(codec::decode(line.trim_ascii_end()), Ok(expected));
}

#[test]
fn events_with_impossible_times_are_malformed() {
    let read = |event| codec::decode(lines(&[event]).trim_ascii_end()).map(drop);
    let job = |change: &dyn Fn(&mut JobFinished)| {
        let mut job = ended(1);
        change(&mut job);
        read(JournalEvent::JobFinished(job))
    };
    assert_eq!(job(&|job| (job.wall, job.user) = (3e9, Some(3e13))), Ok(()));
    assert_eq!(job(&|job| job.wall = 1e300), Err(codec::DecodeError::Malformed));
    assert_eq!(job(&|job| job.wall = 4e9), Err(codec::DecodeError::Malformed));
    assert_eq!(job(&|job| job.ready = Some(1e300)), Err(codec::DecodeError::Malformed));
    assert_eq!(job(&|job| job.system = Some(1e300)), Err(codec::DecodeError::Malformed));
    let over = AttemptFinished { elapsed: 1.0, cpu_idle: Some(1e300), ..AttemptFinished::default() };
    assert_eq!(read(JournalEvent::AttemptFinished(over)), Err(codec::DecodeError::Malformed));
}

#[test]
fn arguments_round_trip() {
    let root = tempfile::tempdir().unwrap();
    let arguments: Vec<OsString> = [&b"plain"[..], b"", b"two\nlines", b"\xff\xfe", b"tab\t"]
        .map(|bytes| minder_os::encoding::os_string_from_encoded(bytes.to_vec()))
        .into();
    let record = JournalWriter::create(
        root.path(),
        manifest(InputSource::arguments(None, Vec::new(), None)),
        &arguments,
        true,
    )
    .unwrap();
    let manifest = Manifest::read(record.dir()).unwrap();
    assert_eq!(manifest.run, record.run());
    assert_eq!(manifest.arguments(record.dir()).unwrap(), arguments);
    // A truncated file is refused.
    let path = record.dir().join("arguments");
    let bytes = fs::read(&path).unwrap();
    for len in 0..bytes.len() {
        fs::write(&path, &bytes[..len]).unwrap();
        assert!(manifest.arguments(record.dir()).is_err(), "{len}");
    }
}

#[test]
fn create_leaves_nothing_if_argument_contains_nul() {
    let root = tempfile::tempdir().unwrap();
    let made = JournalWriter::create(
        root.path(),
        manifest(InputSource::arguments(None, Vec::new(), None)),
        ["a\0b"],
        false,
    );
    assert!(format!("{}", made.unwrap_err()).contains("NUL"));
    assert_eq!(fs::read_dir(root.path().join("runs")).unwrap().count(), 0, "nothing is left");
}

#[test]
fn fingerprint_detects_changed_input() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    fs::write(&path, "a\nb\n").unwrap();
    let InputSource::File(marks) = InputSource::file(&path).unwrap() else { panic!() };
    let text = serde_json::to_string(&InputSource::File(marks.clone())).unwrap();
    assert_eq!(serde_json::from_str::<InputSource>(&text).unwrap(), InputSource::File(marks.clone()));
    marks.check().unwrap();
    fs::write(&path, "a\nb\nc\n").unwrap();
    assert!(marks.check().unwrap_err().to_string().contains("was changed"));
    fs::remove_file(&path).unwrap();
    marks.check().unwrap_err();
    InputSource::file(dir.path()).unwrap_err();
}

#[test]
fn resume_fails_while_run_is_locked() {
    let root = tempfile::tempdir().unwrap();
    let first = new_run(root.path());
    let error = resume(first.dir()).unwrap_err();
    let expected = format!("run {} is in use by another minder (pid {})", first.run(), std::process::id());
    assert_eq!(error.to_string(), expected);
    assert!(crate::store::is_alive(first.dir()));
    let dir = first.dir().to_owned();
    drop(first);
    assert!(!crate::store::is_alive(&dir));
    let second = resume(&dir).unwrap();
    assert_eq!(second.attempt(), 2);
    let JournalEvent::AttemptStarted(begun) = &events(&journal_of(&second))[0] else { panic!() };
    assert_eq!((begun.attempt, begun.run.as_str(), begun.pid), (2, second.run(), std::process::id()));
}

#[test]
fn is_alive_does_not_block_resume() {
    let root = tempfile::tempdir().unwrap();
    let dir = new_run(root.path()).dir().to_owned();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                crate::store::is_alive(&dir);
            }
        });
        let resumed = (0..50).map(|_| resume(&dir).map(drop));
        let refused: Vec<String> =
            resumed.filter_map(|resumed| Some(format!("{}", resumed.err()?))).collect();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(refused, [""; 0]);
    });
}

#[test]
fn discarded_attempt_removes_a_run_only_if_it_made_it() {
    let root = tempfile::tempdir().expect("create temp dir");
    let made = new_run(root.path());
    let dir = made.dir().to_owned();
    drop(made);
    // Without its journal, the attempt that resumes the run is number 1 again.
    fs::remove_file(dir.join(store::attempt_name(1))).expect("remove journal");
    let resumed = resume(&dir).expect("resume");
    assert_eq!((resumed.attempt(), resumed.discard()), (1, true));
    drop(resumed);
    assert!(Manifest::read(&dir).is_ok());
    assert!(store::attempts(&dir).expect("list attempts").is_empty());
    let made = new_run(root.path());
    let dir = made.dir().to_owned();
    assert!(made.discard());
    drop(made);
    assert!(!dir.exists());
}

#[test]
fn threads_append_complete_lines() {
    let root = tempfile::tempdir().unwrap();
    let record = new_run(root.path());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let record = &record;
            scope.spawn(move || {
                for job in 0..500 {
                    record.append(&lines(&[JournalEvent::JobFinished(ended(job * 2 + thread + 1))])).unwrap();
                }
            });
        }
    });
    let (progress, damaged) = RunState::of_run(record.dir(), ComparedArgs::None).unwrap();
    assert!(damaged.is_empty());
    assert_eq!(progress.done.ranges().collect::<Vec<_>>(), [(1, 1000)]);
}

#[test]
fn last_event_of_a_job_counts_even_if_clock_jumps() {
    let root = tempfile::tempdir().unwrap();
    let first = new_run(root.path());
    let JobFinished { at, .. } = ended(1);
    let first_rows =
        [failed(1), failed(2), ended(3), kept(4), kept(5), JobFinished { kept: kept(6).kept, ..failed(6) }];
    first.append(&lines(&first_rows.map(JournalEvent::JobFinished))).unwrap();
    let dir = first.dir().to_owned();
    drop(first);
    let second = resume(&dir).unwrap();
    // The clock jumps back and forth.
    let succeeded = JobFinished { at: at - 1e6, ..ended(1) };
    let again = JobFinished { at: 0.0, ..failed(3) };
    let over =
        AttemptFinished { succeeded: 2, failed: 1, elapsed: 1.0, cpu: 0.5, ..AttemptFinished::default() };
    let second_rows = [
        JournalEvent::JobFinished(succeeded.clone()),
        JournalEvent::OutputShown(JobList { jobs: vec![4] }),
        JournalEvent::JobFinished(again),
        JournalEvent::JobFinished(ended(6)),
        JournalEvent::AttemptFinished(over.clone()),
    ];
    second.append(&lines(&second_rows)).unwrap();
    let (progress, damaged) = RunState::of_run(&dir, ComparedArgs::None).unwrap();
    assert!(damaged.is_empty());
    assert_eq!(progress.done.ranges().collect::<Vec<_>>(), [(1, 6)]);
    assert_eq!(progress.failed.ranges().collect::<Vec<_>>(), [(2, 3)]);
    assert_eq!(progress.unshown.keys().copied().collect::<Vec<_>>(), [5]);
    assert_eq!(progress.last_job, 6);
    let run = read_run(&dir).unwrap();
    assert!(run.alive);
    assert_eq!(run.manifest.unwrap().run, second.run());
    assert_eq!(run.jobs[&1], succeeded);
    assert_eq!(run.unshown, progress.unshown);
    assert_eq!(run.attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((run.attempts[0].finished.as_ref(), run.attempts[1].finished.as_ref()), (None, Some(&over)));
    assert!(run.attempts[0].started.is_some());
}

#[test]
fn attempts_are_ordered_by_number_not_by_name() {
    let root = tempfile::tempdir().unwrap();
    let dir = new_run(root.path()).dir().to_owned();
    for number in 2..=10 {
        let record = resume(&dir).unwrap();
        assert_eq!(record.attempt(), number);
        let row = if number == 10 { ended(1) } else { failed(1) };
        record.append(&lines(&[JournalEvent::JobFinished(row)])).unwrap();
    }
    let (progress, _) = RunState::of_run(&dir, ComparedArgs::None).unwrap();
    assert_eq!(progress.failed, JobSet::default());
}

#[test]
fn differs_detects_changed_arguments() {
    let root = tempfile::tempdir().unwrap();
    let record = new_run(root.path());
    let args = |words: &[&str]| words.iter().map(|&word| OsBytes::from(word)).collect::<Vec<_>>();
    record
        .append(&lines(&[JournalEvent::JobFinished(JobFinished { args: args(&["a", "b"]), ..ended(2) })]))
        .unwrap();
    record.append(&lines(&[JournalEvent::JobFinished(ended(3))])).unwrap();
    let (progress, _) = RunState::of_run(record.dir(), ComparedArgs::All).unwrap();
    assert!(!progress.differs(2, &args(&["a", "b"])));
    assert!(progress.differs(2, &args(&["ab"])));
    assert!(progress.differs(2, &args(&["a"])));
    assert!(!progress.differs(1, &args(&["x"])) && !progress.differs(3, &args(&["x"])), "not recorded");
    let (progress, _) = RunState::of_run(record.dir(), ComparedArgs::None).unwrap();
    assert!(!progress.differs(2, &args(&["x"])), "not asked for");
    let (progress, _) = RunState::of_run(record.dir(), ComparedArgs::AfterFirst).unwrap();
    assert!(!progress.differs(2, &args(&["x", "b"])), "the first one may differ");
    assert!(progress.differs(2, &args(&["a", "x"])));
}

#[test]
fn block_is_that_of_the_last_event() {
    let root = tempfile::tempdir().unwrap();
    let record = new_run(root.path());
    let block = |job, at, len| {
        let block_crc = (job != 1).then_some(len as u32);
        let event = JobFinished { block_at: at, block_len: len, block_crc, ..ended(job) };
        JournalEvent::JobFinished(event)
    };
    record.append(&lines(&[block(1, 0, 9), block(2, 9, 8), block(3, 17, 3), block(2, 9, 7)])).unwrap();
    // An old version does not record the block.
    record.append(&lines(&[JournalEvent::JobFinished(ended(3))])).unwrap();
    let (progress, _) = RunState::of_run(record.dir(), ComparedArgs::None).unwrap();
    let blocks: Vec<_> = (0..5).map(|job| progress.block(job)).collect();
    assert_eq!(blocks, [None, Some(0..9), Some(9..16), None, None]);
    let checksums: Vec<_> = (0..5).map(|job| progress.block_checksum(job)).collect();
    assert_eq!(checksums, [None, None, Some(7), None, None]);
}

#[test]
fn job_set_merges_adjacent_jobs() {
    let mut set = JobSet::default();
    // Jobs finish slightly out of order.
    for job in 0..1_000_000 {
        set.insert(job ^ 5);
    }
    assert_eq!(set.ranges().collect::<Vec<_>>(), [(0, 999_999)]);
    assert_eq!(set.len(), 1_000_000);
    let mut edge = JobSet::default();
    assert!(edge.insert(u64::MAX) && edge.insert(0) && !edge.insert(0) && edge.insert(u64::MAX - 1));
    assert_eq!(edge.ranges().collect::<Vec<_>>(), [(0, 0), (u64::MAX - 1, u64::MAX)]);
    assert_eq!((edge.last(), JobSet::default().last()), (Some(u64::MAX), None));
    assert!(edge.remove(u64::MAX) && edge.remove(0) && !edge.remove(0));
    assert_eq!(edge.len(), 1);
}

/// Seconds, as precise as an event stores them.
fn seconds() -> impl Strategy<Value = f64> {
    (0..3_000_000_000_000_000_u64).prop_map(|micros| micros as f64 / 1e6)
}

fn text() -> impl Strategy<Value = OsBytes> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(OsBytes),
        any::<String>().prop_map(|text| OsBytes(text.into_bytes()))
    ]
}

fn segment() -> impl Strategy<Value = OutputSegment> {
    (1..=2_u8, any::<String>(), any::<u64>(), any::<u64>())
        .prop_map(|(stream, file, at, len)| OutputSegment { stream, file, at, len })
}

fn any_ended() -> impl Strategy<Value = JobFinished> {
    let what = (any::<u64>(), prop::collection::vec(text(), 0..4), seconds(), seconds());
    let times = || prop::option::of(seconds());
    let cost = (times(), times(), times(), times(), prop::option::of(any::<u64>()));
    let end = (any::<Option<i32>>(), any::<Option<i32>>(), any::<Option<String>>());
    let output =
        (any::<u64>(), any::<u64>(), any::<bool>(), any::<u64>(), (any::<u64>(), any::<Option<u32>>()));
    let last = (prop::option::of(text()), prop::option::of(text()));
    let left = (prop::collection::vec(segment(), 0..3), last, any::<Option<u32>>(), any::<Option<String>>());
    (what, cost, end, output, left).prop_map(
        |(
            (job, args, at, wall),
            (user, system, ready, main, rss),
            (exit, signal, error),
            (out, err, leaked, block_at, (block_len, block_crc)),
            (kept, (tail, out_tail), attempts, cause),
        )| {
            JobFinished {
                job,
                args,
                at,
                wall,
                user,
                system,
                ready,
                main,
                rss,
                exit,
                signal,
                error,
                out,
                err,
                leaked,
                sent: 0,
                block_at,
                block_len,
                block_crc,
                timed_out: false,
                stored: kept.clone(),
                kept,
                tail,
                out_tail,
                attempts,
                cause,
            }
        },
    )
}

fn any_event() -> impl Strategy<Value = JournalEvent> {
    let names = (any::<String>(), any::<String>(), any::<Option<String>>());
    let begun = (names, any::<u32>(), any::<u32>(), seconds()).prop_map(
        |((version, run, node), attempt, pid, at)| {
            JournalEvent::AttemptStarted(AttemptStarted { version, run, attempt, node, pid, at })
        },
    );
    let shown = any::<Vec<u64>>().prop_map(|jobs| JournalEvent::OutputShown(JobList { jobs }));
    let over = (any::<u64>(), any::<u64>(), seconds(), seconds(), any::<Option<String>>()).prop_map(
        |(succeeded, failed, elapsed, cpu, why)| {
            let over = AttemptFinished {
                succeeded,
                failed,
                elapsed,
                cpu,
                cpu_busy: why.as_ref().map(|_| cpu),
                own_rss: why.as_ref().map(|_| failed),
                why,
                ..AttemptFinished::default()
            };
            JournalEvent::AttemptFinished(over)
        },
    );
    let host = (any::<u64>(), any::<u64>(), any::<Option<u64>>())
        .prop_map(|(slots, cpus, memory)| JournalEvent::Host(AttemptHost { slots, cpus, memory }));
    let ended = any_ended().prop_map(JournalEvent::JobFinished);
    let claimed = (any::<u64>(), any::<u32>(), any::<u64>(), any::<u64>())
        .prop_map(|(claim, epoch, first, last)| JournalEvent::Claimed(Claimed { claim, epoch, first, last }));
    let sealed = (any::<u64>(), any::<u32>(), any::<Vec<u64>>()).prop_map(|(claim, epoch, lengths)| {
        let journal = |bytes| SealedJournal { agent: AgentKey::random(), bytes };
        let journals = lengths.into_iter().map(journal).collect();
        JournalEvent::Sealed(Sealed { claim, epoch, journals })
    });
    prop_oneof![4 => ended, 1 => begun, 1 => host, 1 => shown, 1 => over, 1 => claimed, 1 => sealed]
}

proptest! {
    #[test]
    fn events_round_trip(some in prop::collection::vec(any_event(), 0..8)) {
        let text = lines(&some);
        let read: Vec<JournalEvent> = text
            .split_inclusive(|&byte| byte == b'\n')
            .map(|line| codec::decode(line.strip_suffix(b"\n").unwrap()).unwrap())
            .collect();
        prop_assert_eq!(read, some);
    }

    #[test]
    fn job_set_behaves_like_a_set(
        steps in prop::collection::vec((any::<bool>(), 0..40_u64, 0..4_u64), 0..200),
    ) {
        let mut set = JobSet::default();
        let mut model = std::collections::BTreeSet::new();
        for (insert, job, more) in steps {
            if insert && more > 1 {
                set.insert_range(job, job + more);
                model.extend(job..=job + more);
            } else if insert {
                prop_assert_eq!(set.insert(job), model.insert(job));
            } else {
                prop_assert_eq!(set.remove(job), model.remove(&job));
            }
        }
        prop_assert_eq!(set.len(), model.len() as u64);
        for last in 0..48 {
            prop_assert_eq!(set.len_up_to(last), model.range(..=last).filter(|job| **job > 0).count() as u64);
        }
        prop_assert!((0..48).all(|job| set.contains(job) == model.contains(&job)));
        prop_assert!((0..48).all(|job| set.first_after(job) == model.range(job + 1..).next().copied()));
        let ranges: Vec<_> = set.ranges().collect();
        prop_assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", ranges);
        for job in 0..45 {
            let later: Vec<_> = ranges.iter().copied().filter(|range| range.1 >= job).collect();
            prop_assert_eq!(set.ranges_from(job).collect::<Vec<_>>(), later);
        }
    }
}
