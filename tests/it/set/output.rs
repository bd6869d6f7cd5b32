//! Output that comes faster than it is taken.

use std::time::{Duration, Instant};

use minder::{
    Backend, ChildId, ChildSet, ChildSetOptions, Chunk, ErrorKind, Event, ExitStatus, NextEvent, OutputMode,
    OverflowPolicy, SpawnOptions, Stdio, Stream, Termination,
};

use crate::support::{
    EventLog, each_backend, kill_group_of, killed, limits, nameless_files, next_event, patience, patterned,
    test_child,
};
#[cfg(unix)]
use crate::support::{alone, quiet_child};

/// Small bounds: a chunk of 4 KiB, 16 KiB a child, 64 KiB in all.
fn tight(backend: Backend) -> ChildSetOptions {
    limits(backend).read_buffer_bytes(4 << 10).max_child_bytes(16 << 10).max_buffered_bytes(64 << 10)
}

/// Keeps events until none comes for a while. Before its first output a child
/// may start slowly.
fn hoard(set: &mut ChildSet, quiet: Duration) -> Vec<Event> {
    let mut kept: Vec<Event> =
        set.next_event_deadline(Some(patience())).expect("wait for event").into_event().into_iter().collect();
    while let Some(event) =
        set.next_event_deadline(Some(Instant::now() + quiet)).expect("wait for event").into_event()
    {
        kept.push(event);
    }
    kept
}

fn bytes_in(events: &[Event]) -> usize {
    let bytes = |event: &Event| if let Event::Output { chunk, .. } = event { chunk.len() } else { 0 };
    events.iter().map(bytes).sum()
}

#[test]
fn block_holds_the_child_within_the_limit() {
    each_backend(|backend| {
        let mut set = ChildSet::new(tight(backend)).expect("create set");
        let id = set.spawn(&test_child("spew 1000000"), SpawnOptions::default()).expect("spawn test child");
        let kept = hoard(&mut set, Duration::from_millis(150));
        assert!(set.buffered_bytes() <= 16 << 10, "{} bytes are held", set.buffered_bytes());
        assert!(
            bytes_in(&kept) >= 8 << 10 && bytes_in(&kept) <= 16 << 10,
            "{} bytes were reported",
            bytes_in(&kept)
        );
        assert!(!kept.iter().any(|event| matches!(event, Event::Exited { .. })), "the child did not block");
        let mut event_log = EventLog::default();
        for event in kept {
            event_log.record(event);
        }
        event_log.wait_all(&mut set);
        assert!(
            event_log.child(id).outs[0] == patterned(1_000_000),
            "{} bytes",
            event_log.child(id).outs[0].len()
        );
        assert_eq!((set.buffered_bytes(), event_log.outcome(id).dropped), (0, 0));
    });
}

/// A wait in the thread that keeps the chunks would not end.
#[test]
fn chunks_that_fill_the_memory_of_every_child_are_an_error() {
    each_backend(|backend| {
        for kills in [false, true] {
            let mut set = ChildSet::new(tight(backend)).expect("create set");
            let spawn = |set: &mut ChildSet, line| {
                set.spawn(&test_child(line), SpawnOptions::default()).expect("spawn test child")
            };
            let loud = [spawn(&mut set, "spew 300000"), spawn(&mut set, "both 300000 3000")];
            // It is waited for, since it needs no memory.
            let quiet = spawn(&mut set, "sleep-ms 100");
            let mut kept = Vec::new();
            let mut exits = Vec::new();
            let mut take = |set: &mut ChildSet, kept: &mut Vec<Chunk>| {
                let error = set.wait_all(None, |event| match event {
                    Event::Output { chunk, .. } => kept.push(chunk),
                    Event::Exited { child, .. } => exits.push(child),
                    _ => (),
                });
                let error = error.expect_err("wait in vain");
                assert_eq!((error.kind(), error.operation()), (ErrorKind::Limit, minder::Operation::Wait));
                assert!(error.to_string().contains("Chunk::into_vec"), "{error}");
                exits.len()
            };
            assert_eq!(take(&mut set, &mut kept), 1, "{quiet:?} has exited");
            let error = set.next_event(None).expect_err("wait in vain again");
            assert_eq!(error.kind(), ErrorKind::Limit);
            let timed = set.next_event(Some(Duration::from_millis(1))).expect("wait for a time");
            assert!(timed.into_event().is_none());
            if kills {
                for id in loud {
                    set.kill(id, Termination::IMMEDIATE).expect("kill test child");
                }
                assert_eq!(take(&mut set, &mut kept), 3, "the exits come first");
            }
            // No byte is lost.
            let mut bytes: usize = kept.drain(..).map(|chunk| chunk.into_vec().len()).sum();
            let mut exited = 0;
            let handle = |event| match event {
                Event::Output { chunk, .. } => bytes += chunk.len(),
                Event::Done { .. } => exited += 1,
                _ => (),
            };
            assert!(set.wait_all(None, handle).expect("wait for all") && exited == 2);
            assert!(kills || bytes == 900_000, "{bytes} bytes");
        }
    });
}

#[test]
fn chunk_dropped_by_another_thread_makes_room() {
    each_backend(|backend| {
        let mut set = ChildSet::new(tight(backend)).expect("create set");
        let id =
            set.spawn(&test_child("both 500000 3000"), SpawnOptions::default()).expect("spawn test child");
        let (sender, receiver) = std::sync::mpsc::channel::<(Stream, Chunk)>();
        let taker = std::thread::spawn(move || {
            let mut outs = [Vec::new(), Vec::new()];
            for (stream, chunk) in receiver {
                outs[stream as usize].extend_from_slice(&chunk);
                // Late enough that the set is asleep, now and then.
                if outs[0].len() % 5 == 0 {
                    std::thread::yield_now();
                }
            }
            outs
        });
        let until = patience();
        let mut done = false;
        while !done {
            match next_event(&mut set, until) {
                Event::Output { stream, chunk, .. } => sender.send((stream, chunk)).expect("send to thread"),
                Event::Done { child: of, outcome, .. } => {
                    assert_eq!((of, outcome.exit.status), (id, ExitStatus::Exited(0)));
                    done = true;
                }
                _ => (),
            }
        }
        drop(sender);
        let outs = taker.join().expect("join taker");
        assert!(outs.iter().all(|out| *out == patterned(500_000)), "{} and {}", outs[0].len(), outs[1].len());
        assert_eq!(set.buffered_bytes(), 0);
    });
}

/// Room that is made in the very moment in which a child is held must not be missed.
#[test]
fn freed_room_is_never_missed() {
    each_backend(|backend| {
        let end = Instant::now() + crate::support::race_time() / 2;
        let mut rounds = 0;
        while Instant::now() < end {
            let limits = tight(backend).read_buffer_bytes(1 << 10).max_child_bytes(2 << 10);
            let mut set = ChildSet::new(limits).expect("create set");
            for _ in 0..3 {
                set.spawn(&test_child("spew 60000 1000"), SpawnOptions::default()).expect("spawn test child");
            }
            let (sender, receiver) = std::sync::mpsc::channel::<Chunk>();
            let dropper =
                std::thread::spawn(move || receiver.into_iter().map(|chunk| chunk.len()).sum::<usize>());
            let until = patience();
            while !set.is_empty() {
                let event = set.next_event_deadline(Some(until)).expect("wait for event").into_event();
                match event.unwrap_or_else(|| panic!("room was missed in round {rounds}")) {
                    Event::Output { chunk, .. } => sender.send(chunk).expect("send to thread"),
                    _ => continue,
                }
            }
            drop(sender);
            assert_eq!(dropper.join().expect("join dropper"), 180_000);
            rounds += 1;
        }
    });
}

#[test]
fn blocked_children_stay_within_the_total_limit() {
    each_backend(|backend| {
        let mut set = ChildSet::new(tight(backend)).expect("create set");
        let ids: Vec<_> = (0..40)
            .map(|_| {
                set.spawn(&test_child("spew 100000"), SpawnOptions::default()).expect("spawn test child")
            })
            .collect();
        let kept = hoard(&mut set, Duration::from_millis(300));
        // A child that holds nothing may always hold one chunk.
        let bound = (64 << 10) + ids.len() * (4 << 10);
        assert!(set.buffered_bytes() <= bound, "{} bytes are held", set.buffered_bytes());
        let mut event_log = EventLog::default();
        for event in kept {
            event_log.record(event);
        }
        event_log.wait_all(&mut set);
        assert!(ids.iter().all(|id| event_log.child(*id).outs[0] == patterned(100_000)));
    });
}

#[test]
fn spill_keeps_order_and_bytes_while_nothing_is_taken() {
    each_backend(|backend| {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let limits = tight(backend).spill_dir(dir.path().to_owned());
        let mut set = ChildSet::new(limits).expect("create set");
        let options = SpawnOptions::default().overflow(OverflowPolicy::Spill);
        let id = set.spawn(&test_child("both 700000 5000"), options).expect("spawn test child");
        // The child is never blocked: it ends although nothing is taken but the first few chunks.
        let mut kept = Vec::new();
        let mut event_log = EventLog::default();
        let until = patience();
        loop {
            match next_event(&mut set, until) {
                event @ Event::Exited { .. } => {
                    kept.push(event);
                    break;
                }
                event => kept.push(event),
            }
        }
        assert!(set.buffered_bytes() <= 16 << 10, "{} bytes are held", set.buffered_bytes());
        assert!(!nameless_files(dir.path()).is_empty(), "nothing was spilled");
        let names = std::fs::read_dir(dir.path()).expect("list directory").count();
        assert!(names == 0 || cfg!(windows), "the file has a name");
        for event in kept {
            event_log.record(event);
        }
        event_log.wait_all(&mut set);
        let outs = &event_log.child(id).outs;
        assert!(outs.iter().all(|out| *out == patterned(700_000)), "{} and {}", outs[0].len(), outs[1].len());
        assert_eq!(event_log.child(id).eofs, [1, 1]);
        assert_eq!(nameless_files(dir.path()), [0; 0], "a file is left");
    });
}

#[test]
fn spill_continues_while_chunks_are_taken_slowly() {
    let mut set = ChildSet::new(tight(best())).expect("create set");
    let options = SpawnOptions::default().overflow(OverflowPolicy::Spill);
    let id = set.spawn(&test_child("both 400000 1000"), options).expect("spawn test child");
    let mut event_log = EventLog::default();
    let mut window = std::collections::VecDeque::new();
    let until = patience();
    while !set.is_empty() {
        let event = next_event(&mut set, until);
        window.push_back(event);
        // Three chunks stay in our hands, so that the file is read and written in turns.
        while window.len() > 3 {
            event_log.record(window.pop_front().expect("wait for event"));
        }
    }
    for event in window {
        event_log.record(event);
    }
    assert!(event_log.child(id).outs.iter().all(|out| *out == patterned(400_000)));
}

fn best() -> Backend {
    Backend::available().next().expect("find first backend")
}

#[test]
fn at_exit_output_is_delivered_contiguously() {
    each_backend(|backend| {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let limits = tight(backend).spill_dir(dir.path().to_owned());
        let mut set = ChildSet::new(limits).expect("create set");
        let options = SpawnOptions::default().overflow(OverflowPolicy::Spill).output_mode(OutputMode::AtExit);
        let sizes = [0, 10, 5_000, 16_385, 200_000, 300_000];
        let ids = sizes.map(|size| {
            set.spawn(&test_child(&format!("both {size} 999")), options).expect("spawn test child")
        });
        let (mut event_log, mut open): (_, Option<ChildId>) = (EventLog::default(), None);
        let until = patience();
        while !set.is_empty() {
            let event = next_event(&mut set, until);
            match event {
                Event::Output { child: id, .. } | Event::Eof { child: id, .. } => {
                    assert!(open.is_none_or(|open| open == id), "{id:?} between the chunks of {open:?}");
                    open = Some(id);
                }
                Event::Done { child: id, .. } => {
                    assert!(open.take().is_none_or(|open| open == id));
                }
                _ => assert_eq!(open, None, "{event:?} between the chunks of {open:?}"),
            }
            event_log.record(event);
        }
        for (id, size) in ids.into_iter().zip(sizes) {
            assert!(event_log.child(id).outs.iter().all(|out| *out == patterned(size)), "{size} bytes");
            assert_eq!((event_log.child(id).eofs, event_log.outcome(id).dropped), ([1, 1], 0));
        }
        assert_eq!(nameless_files(dir.path()), [0; 0], "a file is left");
    });
}

#[test]
fn drop_oldest_counts_every_byte() {
    each_backend(|backend| {
        for delivery in [OutputMode::Stream, OutputMode::AtExit] {
            let mut set = ChildSet::new(tight(backend)).expect("create set");
            let options = SpawnOptions::default().overflow(OverflowPolicy::DropOldest).output_mode(delivery);
            let ids: Vec<_> = (0..4)
                .map(|_| set.spawn(&test_child("both 300000 777"), options).expect("spawn test child"))
                .collect();
            let mut kept = Vec::new();
            let mut event_log = EventLog::default();
            let until = patience();
            while !set.is_empty() {
                // Taken chunks are kept, so that there is no room for long.
                kept.push(next_event(&mut set, until));
                assert!(
                    set.buffered_bytes() <= (64 << 10) + 4 * (8 << 10),
                    "{} bytes are held",
                    set.buffered_bytes()
                );
            }
            for event in kept {
                event_log.record(event);
            }
            for id in ids {
                let record = event_log.child(id);
                let outcome = event_log.outcome(id);
                let received = (record.outs[0].len() + record.outs[1].len()) as u64;
                assert_eq!(received + outcome.dropped, 600_000, "{delivery:?}: {received} bytes came");
                assert!(outcome.dropped > 0, "{delivery:?}: nothing was dropped");
                assert_eq!(record.eofs, [1, 1]);
                if delivery == OutputMode::AtExit {
                    assert!(
                        record.outs.iter().all(|out| patterned(300_000).ends_with(out)),
                        "the newest is kept"
                    );
                }
            }
        }
    });
}

#[test]
fn silent_grandchild_is_abandoned_after_the_leak_timeout() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let begun = Instant::now();
        let id = set
            .spawn(&test_child("hold-stdout 600000 50000"), SpawnOptions::default())
            .expect("spawn test child");
        let pid = set.pid(id).expect("get pid");
        let mut event_log = EventLog::default();
        let mut exited = None;
        let until = patience();
        while !set.is_empty() {
            event_log.record(next_event(&mut set, until));
            exited = exited.or_else(|| event_log.child(id).exit.map(|_| Instant::now()));
        }
        let outcome = event_log.outcome(id);
        assert!(outcome.leaked && outcome.left_running, "{outcome:?}");
        assert!(begun.elapsed() >= Duration::from_millis(100), "given up early");
        kill_group_of(pid);
        assert!(exited.is_some());
        assert_eq!(event_log.child(id).outs[0], patterned(50_000), "what was written before is kept");
        assert_eq!(event_log.child(id).eofs, [1, 1]);
    });
}

#[test]
fn silent_grandchild_is_awaited_without_a_leak_timeout() {
    let limits = ChildSetOptions::default().leak_timeout(None);
    let mut set = ChildSet::new(limits).expect("create set");
    let begun = Instant::now();
    let id = set.spawn(&test_child("hold-stdout 400"), SpawnOptions::default()).expect("spawn test child");
    let mut event_log = EventLog::default();
    event_log.wait_all(&mut set);
    assert!(begun.elapsed() >= Duration::from_millis(400), "it did not wait");
    assert!(!event_log.outcome(id).leaked);
}

#[test]
fn writing_grandchild_keeps_its_output_open() {
    each_backend(|backend| {
        let mut limits = limits(backend);
        // It writes for twice as long as silence is borne; that takes a start and more, which Wine may need
        // a second for.
        let (silence, period) = if cfg!(windows) { (3000, 300) } else { (500, 50) };
        limits = limits.leak_timeout(Some(Duration::from_millis(silence)));
        let mut set = ChildSet::new(limits).expect("create set");
        let lines = test_child(&format!("leave-lines 20 {period}"));
        let id = set.spawn(&lines, SpawnOptions::default()).expect("spawn test child");
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        let lines: String = (0..20).map(|line| format!("line {line}\n")).collect();
        assert_eq!((event_log.text(id), event_log.outcome(id).leaked), (lines, false));
    });
}

#[test]
fn blocked_child_is_not_treated_as_silent() {
    let mut set = ChildSet::new(tight(best())).expect("create set");
    let id = set.spawn(&test_child("spew 40000"), SpawnOptions::default()).expect("spawn test child");
    // The child exits with its last bytes in the pipe, and they stay unread for longer than silence is
    // borne.
    let kept = hoard(&mut set, Duration::from_millis(400));
    assert!(
        kept.iter().any(|event| matches!(event, Event::Exited { .. })),
        "40,000 bytes fit into bound and pipe"
    );
    let mut event_log = EventLog::default();
    for event in kept {
        event_log.record(event);
    }
    event_log.wait_all(&mut set);
    assert_eq!(event_log.child(id).outs[0], patterned(40_000));
    assert!(!event_log.outcome(id).leaked, "it was we who did not listen");
}

#[test]
fn chunk_outlives_its_set() {
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let mut command = test_child("spew 1000");
    command.stderr(Stdio::null());
    set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
    let mut chunks = Vec::new();
    while let Some(event) = set.next_event_deadline(Some(patience())).expect("wait for event").into_event() {
        match event {
            Event::Output { chunk, .. } => chunks.push(chunk),
            Event::Done { .. } => break,
            _ => (),
        }
    }
    assert!(set.buffered_bytes() >= 1000);
    drop(set);
    let bytes: Vec<u8> = chunks.into_iter().flat_map(Chunk::into_vec).collect();
    assert_eq!(bytes, patterned(1000));
}

#[test]
fn blocked_child_can_be_killed() {
    each_backend(|backend| {
        let mut set = ChildSet::new(tight(backend)).expect("create set");
        let id = set.spawn(&test_child("spew 100000000"), SpawnOptions::default()).expect("spawn test child");
        let kept = hoard(&mut set, Duration::from_millis(100));
        set.kill(id, Termination::IMMEDIATE).expect("kill child");
        let mut event_log = EventLog::default();
        for event in kept {
            event_log.record(event);
        }
        event_log.wait_all(&mut set);
        assert!(killed(event_log.outcome(id).exit.status, 9));
        let reported = &event_log.child(id).outs[0];
        assert!(*reported == patterned(reported.len()), "a byte is missing between");
    });
}

// A limit of descriptors.
#[cfg(unix)]
#[test]
fn spill_file_waits_for_a_descriptor_while_another_child_runs() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const BYTES: usize = 200_000;
    alone("set::output::spill_file_waits_for_a_descriptor_while_another_child_runs", || {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(96), maximum }).expect("set resource limit");
        each_backend(|backend| {
            // The first read needs the file. It follows no report of the backend.
            let limits = limits(backend).max_child_bytes(1).read_delay(Duration::from_millis(5));
            let mut set = ChildSet::new(limits).expect("create set");
            let running = set
                .spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::default())
                .expect("spawn test child");
            let options =
                SpawnOptions::default().overflow(OverflowPolicy::Spill).output_mode(OutputMode::AtExit);
            let id = set.spawn(&test_child(&format!("spew {BYTES}")), options).expect("spawn test child");
            let held: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
            let waited = set.next_event(Some(Duration::from_millis(200)));
            drop(held);
            assert!(matches!(waited, Ok(NextEvent::TimedOut)), "{backend}: {waited:?}");
            let mut event_log = EventLog::default();
            let came =
                event_log.read_until(&mut set, patience(), |event_log| event_log.child(id).done.is_some());
            assert!(came && event_log.child(id).outs[0] == patterned(BYTES), "{backend}");
            set.kill(running, Termination::IMMEDIATE).expect("kill child");
            event_log.wait_all(&mut set);
        });
    });
}
