//! Bugs that were fixed. Each test is named after the wrong behaviour.

use std::time::{Duration, Instant};

use minder::{ChildSet, ChildSetOptions, Event, OverflowPolicy, SpawnOptions, Termination};

use crate::support::{
    EventLog, kill_group_of, lives, nameless_files, nap, next_event, patience, patterned, test_child,
};

/// A grace period without an end was cut to five seconds.
// Windows has no request to exit: the first kill ends the child.
#[cfg(unix)]
#[test]
fn unlimited_grace_was_cut_to_five_seconds() {
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let mut event_log = EventLog::default();
    let id = set.spawn(&test_child("ignore-term 600000"), SpawnOptions::default()).expect("spawn test child");
    assert!(event_log.read_until(&mut set, patience(), |event_log| event_log.text(id) == "ready\n"));
    set.kill(id, Termination::graceful(Duration::MAX)).expect("kill child");
    let later = Instant::now() + Duration::from_millis(5300);
    assert!(
        !event_log.read_until(&mut set, later, |event_log| event_log.child(id).exit.is_some()),
        "it was killed"
    );
    set.kill(id, Termination::IMMEDIATE).expect("kill child");
    event_log.wait_all(&mut set);
}

/// The leader was reaped when its exit was reported. A later kill did not reach its descendants.
#[test]
fn rest_of_a_tree_survived_a_kill_after_its_leader_exited() {
    let limits = ChildSetOptions::default().leak_timeout(None);
    let mut set = ChildSet::new(limits).expect("create set");
    let mut event_log = EventLog::default();
    let id = set.spawn(&test_child("hold-stdout 600000"), SpawnOptions::default()).expect("spawn test child");
    assert!(event_log.read_until(&mut set, patience(), |event_log| event_log.child(id).exit.is_some()));
    assert!(!event_log.read_until(&mut set, Instant::now() + Duration::from_millis(50), |event_log| {
        event_log.child(id).done.is_some()
    }));
    set.kill(id, Termination::IMMEDIATE).expect("kill group");
    event_log.wait_all(&mut set);
    assert!(!event_log.outcome(id).left_running);
}

/// A deadline applied to the leader only. Descendants held the outputs forever.
#[test]
fn deadline_was_dropped_when_the_leader_exited() {
    let limits = ChildSetOptions::default().leak_timeout(None);
    let mut set = ChildSet::new(limits).expect("create set");
    let mut event_log = EventLog::default();
    // Under Wine, on a busy machine, a child needs long to start.
    let time = Duration::from_millis(if cfg!(windows) { 3000 } else { 300 });
    let options = SpawnOptions::default().deadline(Instant::now() + time, Termination::IMMEDIATE);
    let id = set.spawn(&test_child("hold-stdout 600000"), options).expect("spawn test child");
    event_log.wait_all(&mut set);
    assert!(event_log.outcome(id).exit.status.success(), "the leader ended by itself");
}

/// A read into an empty buffer was taken for end of file.
#[test]
fn zero_sized_buffer_ended_every_output() {
    let limits = ChildSetOptions::default().read_buffer_bytes(0).max_buffered_bytes(0).max_child_bytes(0);
    let mut set = ChildSet::new(limits).expect("create set");
    let id = set.spawn(&test_child("both 3000"), SpawnOptions::default()).expect("spawn test child");
    let mut event_log = EventLog::default();
    event_log.wait_all(&mut set);
    assert_eq!(event_log.child(id).outs, [patterned(3000), patterned(3000)]);
}

/// A buffer that no memory holds was a panic.
#[test]
fn oversized_buffer_panicked() {
    let error =
        ChildSet::new(ChildSetOptions::default().read_buffer_bytes(usize::MAX)).expect_err("too large");
    assert_eq!(error.kind(), minder::ErrorKind::InvalidInput);
    assert!(error.to_string().ends_with("`read_buffer_bytes` is more than 16 MiB"), "{error}");
    ChildSet::new(ChildSetOptions::default().read_buffer_bytes(16 << 20)).expect("create set");
}

/// Bytes that did not fit into the spill file were lost, or kept in memory without a limit.
#[cfg(target_os = "linux")] // A limit of the size of files.
#[test]
fn spilled_bytes_were_lost_on_a_full_disk() {
    crate::support::alone("regression::spilled_bytes_were_lost_on_a_full_disk", || {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        crate::spawn::ignore(libc::SIGXFSZ);
        let hard = getrlimit(Resource::Fsize).maximum;
        let limits = ChildSetOptions::default().read_buffer_bytes(4 << 10).max_child_bytes(16 << 10);
        let mut set = ChildSet::new(limits).expect("create set");
        let options = SpawnOptions::default().overflow(OverflowPolicy::Spill);
        let id = set.spawn(&test_child("both 500000"), options).expect("spawn test child");
        // The limit of a file lies within a chunk.
        setrlimit(Resource::Fsize, Rlimit { current: Some(100_001), maximum: hard })
            .expect("set resource limit");
        let mut kept = Vec::new();
        let mut errors = 0;
        let end = Instant::now() + Duration::from_millis(500);
        while let minder::NextEvent::Event(event) = set
            .next_event_deadline(Some(end))
            .map_err(|_| errors += 1)
            .unwrap_or(minder::NextEvent::Event(Event::Woken))
        {
            if !matches!(event, Event::Woken) {
                kept.push(event);
            }
            if Instant::now() >= end {
                break;
            }
        }
        assert!(errors > 0, "the full disk was not reported");
        assert!(set.buffered_bytes() <= 64 << 10, "{} bytes are held", set.buffered_bytes());
        setrlimit(Resource::Fsize, Rlimit { current: hard, maximum: hard }).expect("set resource limit");
        let mut event_log = EventLog::default();
        for event in kept {
            event_log.record(event);
        }
        event_log.wait_all(&mut set);
        let outs = &event_log.child(id).outs;
        assert!(outs.iter().all(|out| *out == patterned(500_000)), "{} and {}", outs[0].len(), outs[1].len());
    });
}

/// A spill file kept growing after all of its bytes were read back.
#[test]
fn empty_spill_file_kept_growing() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let limits = ChildSetOptions::default()
        .read_buffer_bytes(4 << 10)
        .max_child_bytes(8 << 10)
        .spill_dir(dir.path().to_owned());
    let mut set = ChildSet::new(limits).expect("create set");
    let mut event_log = EventLog::default();
    let mut command = test_child("cat");
    command.stdin(minder::Stdio::piped());
    let id = set
        .spawn(&command, SpawnOptions::default().overflow(OverflowPolicy::Spill))
        .expect("spawn test child");
    let piece = patterned(50_000);
    let mut largest = 0;
    for round in 1..=40 {
        let mut kept = Vec::new();
        let mut heard = 0;
        let mut written = 0;
        while written < piece.len() {
            written += set.write(id, &piece[written..]).expect("write to stdin");
            // What is reported stays in our hands, so that the rest goes to the file.
            while let Some(event) = set
                .next_event_deadline(Some(Instant::now() + Duration::from_millis(2)))
                .expect("wait for event")
                .into_event()
            {
                kept.push(event);
            }
        }
        for event in kept {
            event_log.record(event);
        }
        while heard < piece.len() * round {
            let event = set.next_event_deadline(Some(patience())).expect("wait for event").into_event();
            event_log
                .record(event.unwrap_or_else(|| {
                    panic!("round {round}: {heard} bytes; {} held", set.buffered_bytes())
                }));
            heard = event_log.child(id).outs[0].len();
        }
        largest = nameless_files(dir.path()).into_iter().max().unwrap_or(0).max(largest);
    }
    assert!(largest > 0, "nothing was spilled");
    assert!(largest <= 200_000, "the file of {} bytes a round grew to {largest}", piece.len());
    set.close_stdin(id).expect("close stdin");
    event_log.wait_all(&mut set);
    assert_eq!(event_log.child(id).outs[0], piece.repeat(40));
}

/// Hundreds of children exited, each with a full pipe that a grandchild held open. A slow host saw
/// their outputs marked as silent before they were read.
#[test]
fn unread_output_was_treated_as_silent() {
    let limits = ChildSetOptions::default().read_buffer_bytes(4 << 10);
    let mut set = ChildSet::new(limits).expect("create set");
    let mut ids = Vec::new();
    // Where a start is slow, there are fewer, so that the first grandchild is there when the last child
    // ends.
    for _ in 0..if cfg!(windows) { 100 } else { 300 } {
        let mut command = test_child("hold-stdout 120000 40000");
        command.stderr(minder::Stdio::null());
        ids.push(set.spawn(&command, SpawnOptions::default()).expect("spawn test child"));
    }
    let pids: Vec<u32> = ids.iter().map(|id| set.pid(*id).expect("get pid")).collect();
    while pids.iter().any(|pid| lives(*pid)) {
        nap(Duration::from_millis(1));
    }
    let mut event_log = EventLog::default();
    let mut exits = 0;
    let until = patience();
    while !set.is_empty() {
        let event = next_event(&mut set, until);
        // We are slow once per scan of processes.
        if matches!(event, Event::Exited { .. }) && exits % 100 == 50 {
            std::thread::park_timeout(Duration::from_millis(150));
        }
        exits += usize::from(matches!(event, Event::Exited { .. }));
        event_log.record(event);
    }
    let short = ids.iter().filter(|id| event_log.child(**id).outs[0].len() < 40_000).count();
    assert_eq!(short, 0, "outputs were cut off");
    assert!(ids.iter().all(|id| event_log.outcome(*id).leaked));
    for pid in pids {
        kill_group_of(pid);
    }
}

/// A write to an input for which the backend had no room failed, and closed the input.
// Windows has room for every pipe.
#[cfg(unix)]
#[test]
fn write_failed_when_the_backend_was_full() {
    const BYTES: usize = 1_000_000;
    crate::support::each_backend(|backend| {
        let limits = crate::support::limits(backend).fault_capacity(0);
        let mut set = ChildSet::new(limits).expect("create set");
        let mut command = test_child("cat");
        command.stdin(minder::Stdio::piped());
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        let bytes = patterned(BYTES);
        let mut written = 0;
        let mut event_log = EventLog::default();
        while written < BYTES {
            let count = set.write(id, &bytes[written..]).expect("write to stdin");
            written += count;
            let before = event_log.child(id).writables;
            assert!(
                written == BYTES
                    || event_log
                        .read_until(&mut set, patience(), |event_log| event_log.child(id).writables > before),
                "no room after {written} bytes"
            );
        }
        set.close_stdin(id).expect("close stdin");
        event_log.wait_all(&mut set);
        assert!(event_log.child(id).outs[0] == bytes);
    });
}

/// A child on a terminal with an empty input had no input, but a background set took bytes for it.
// A pseudo-console is not supported.
#[cfg(unix)]
#[test]
fn input_was_taken_for_a_terminal_child_without_one() {
    let set = minder::BackgroundSet::new(ChildSetOptions::default()).expect("create set");
    let mut command = test_child("sleep-ms 600000");
    command.group(minder::Group::Terminal(minder::Size::default()));
    let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
    let error = set.write(id, b"lost").expect_err("write without an input");
    assert_eq!(error.kind(), minder::ErrorKind::Unknown, "{error}");
    set.stop(Duration::ZERO).expect("stop set");
}

/// A child that had exited waited for the memory of events that the host did not take. The stop of the
/// set waited for the child before it dropped them.
#[test]
fn stop_failed_while_the_last_bytes_of_a_child_had_no_room() {
    // The exit is reported before the first byte is read.
    let limits = ChildSetOptions::default()
        .read_delay(Duration::from_secs(5))
        .read_buffer_bytes(4096)
        .max_buffered_bytes(4096);
    let set = minder::BackgroundSet::new(limits).expect("create set");
    set.spawn(&test_child("spew 20000"), SpawnOptions::default()).expect("spawn test child");
    let until = patience();
    while set.buffered_bytes() == 0 {
        assert!(Instant::now() < until, "the child wrote nothing");
        std::thread::yield_now();
    }
    set.stop(Duration::ZERO).expect("stop set");
}

/// A set closed a terminal when no process had it open any more. If the child was just closing its
/// last descriptor of the terminal, the kernel killed it by SIGHUP.
#[cfg(target_os = "linux")]
#[test]
fn child_that_closed_its_terminal_was_hung_up() {
    let end = Instant::now() + crate::support::race_time();
    let mut children = 0;
    while crate::support::race_continues(end, children > 0) {
        let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
        let mut event_log = EventLog::default();
        let mut ids = Vec::new();
        for _ in 0..16 {
            let mut command = test_child("steps tag close-in close-err close-out exit:7");
            command.group(minder::Group::Terminal(minder::Size::default()));
            ids.push(set.spawn(&command, SpawnOptions::default()).expect("spawn test child"));
        }
        event_log.wait_all(&mut set);
        for id in ids {
            let status = event_log.outcome(id).exit.status;
            assert_eq!(status, minder::ExitStatus::Exited(7), "after {children} children");
            children += 1;
        }
    }
}
