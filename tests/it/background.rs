//! Background sets: a set on its own thread, and a host that watches one descriptor.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use minder::poll::Poller;
use minder::{
    BackgroundSet, BackgroundSetOptions, ChildId, ChildSetOptions, Command, ErrorKind, Event, ExitStatus,
    OutputMode, OverflowPolicy, Restart, RestartPolicy, SpawnOptions, Stdio, Termination,
};

use crate::support::{EventLog, each_backend, limits, patience, patterned, readable, test_child};

/// A host with its own loop, which knows nothing but the descriptor.
struct Host {
    set: BackgroundSet,
    event_log: EventLog,
    /// The most bytes of output that one call takes.
    max: usize,
}

impl Host {
    fn new(limits: ChildSetOptions) -> Self {
        Self::of(BackgroundSet::new(limits).expect("start background set"))
    }

    fn of(set: BackgroundSet) -> Self {
        Self { set, event_log: EventLog::default(), max: usize::MAX }
    }

    fn spawn(&self, command: &Command, options: SpawnOptions) -> ChildId {
        self.set.spawn(command, options).expect("spawn test child")
    }

    /// Returns whether the poll handle is readable before `deadline`.
    fn has_events(&self, deadline: Instant) -> bool {
        readable(self.set.poll_handle(), deadline.saturating_duration_since(Instant::now()))
    }

    fn take(&mut self) -> usize {
        let mut events = Vec::new();
        let count = self.set.drain_events(&mut events, self.max);
        assert_eq!(count, events.len());
        for event in events {
            self.event_log.record(event);
        }
        count
    }

    /// Takes events until `enough`, and only when the poll handle announces them.
    fn wait_until(&mut self, enough: impl Fn(&EventLog) -> bool) {
        let until = patience();
        while !enough(&self.event_log) {
            assert!(
                self.has_events(until),
                "no event, while {} children are not done: {:?}",
                self.set.len(),
                self.set
            );
            assert!(self.take() > 0, "an announcement without an event");
        }
    }

    fn wait_all(&mut self) {
        let until = patience();
        while !self.set.is_empty() {
            assert!(
                self.has_events(until),
                "no event, while {} children are not done: {:?}",
                self.set.len(),
                self.set
            );
            assert!(self.take() > 0, "an announcement without an event");
        }
        assert!(!self.has_events(Instant::now()) && self.take() == 0, "an announcement after the end");
        assert!(self.set.take_error().is_none());
    }
}

/// Lets time pass, while the background set works.
fn meanwhile(time: Duration) {
    let poller = Poller::new().expect("create poller");
    poller
        .wait_deadline(&mut minder::poll::Events::new(), Some(Instant::now() + time))
        .expect("wait for events");
}

#[test]
fn hundred_children_deliver_every_byte() {
    each_backend(|backend| {
        let mut host = Host::new(limits(backend));
        host.max = 100_000;
        let (many, step) = if cfg!(windows) { (25, 12_044) } else { (100, 3011) };
        let sizes: Vec<usize> = (0..many).map(|child| child * step).collect();
        let children: Vec<ChildId> = sizes
            .iter()
            .map(|size| host.spawn(&test_child(&format!("both {size} 700")), SpawnOptions::default()))
            .collect();
        host.wait_all();
        for (id, size) in children.iter().zip(sizes) {
            let record = host.event_log.child(*id);
            assert!(
                record.outs.iter().all(|out| *out == patterned(size)),
                "{size} bytes became {:?}",
                record.outs.each_ref().map(Vec::len)
            );
            assert_eq!((record.eofs, record.exit), ([1, 1], Some(ExitStatus::Exited(0))));
        }
    });
}

#[test]
fn undrained_set_blocks_a_loud_child_and_loses_nothing() {
    each_backend(|backend| {
        let limits = limits(backend).max_buffered_bytes(1 << 20).max_child_bytes(256 << 10);
        let mut host = Host::new(limits);
        let loud = host.spawn(&test_child("spew 8000000"), SpawnOptions::default());
        let quiet = host.spawn(&test_child("spew 5000"), SpawnOptions::default());
        let until = patience();
        while host.set.buffered_bytes() < 192 << 10 && Instant::now() < until {
            meanwhile(Duration::from_millis(1));
        }
        meanwhile(Duration::from_millis(50));
        let waiting = host.set.buffered_bytes();
        assert!((192 << 10..=(256 << 10) + 5000).contains(&waiting), "{waiting} bytes wait");
        host.wait_all();
        assert_eq!(host.event_log.child(loud).outs[0], patterned(8_000_000));
        assert_eq!(host.event_log.child(quiet).outs[0], patterned(5000));
    });
}

#[test]
fn chunks_kept_by_the_host_count_against_the_limit() {
    let limits = ChildSetOptions::default().max_buffered_bytes(512 << 10).max_child_bytes(512 << 10);
    let set = BackgroundSet::new(limits).expect("start background set");
    let _loud = set.spawn(&test_child("spew 4000000"), SpawnOptions::default()).expect("spawn test child");
    let mut kept = Vec::new();
    let until = Instant::now() + Duration::from_millis(200);
    while Instant::now() < until {
        set.drain_events(&mut kept, usize::MAX);
        meanwhile(Duration::from_millis(1));
    }
    let bytes = |events: &[Event]| -> usize {
        events.iter().map(|event| if let Event::Output { chunk, .. } = event { chunk.len() } else { 0 }).sum()
    };
    let held = bytes(&kept);
    assert!(held <= 512 << 10, "{held} bytes were handed over while none were dropped");
    kept.clear();
    let mut host = Host::of(set);
    let until = patience();
    while !host.set.is_empty() && host.has_events(until) {
        host.take();
    }
    let rest = host.event_log.records.values().map(|record| record.outs[0].len()).sum::<usize>();
    assert_eq!(held + rest, 4_000_000);
}

/// A wait in the thread that keeps the chunks would not end.
#[test]
fn kept_chunks_that_stop_every_child_are_an_error() {
    let limits = ChildSetOptions::new().max_child_bytes(64 << 10);
    let set = BackgroundSet::new(limits).expect("create set");
    // The one without output ends first: it needs no memory.
    for line in ["spew 300000", "spew 300000", "sleep-ms 300"] {
        set.spawn(&test_child(line), SpawnOptions::default()).expect("spawn test child");
    }
    let mut kept = Vec::new();
    let error = set.wait_all(None, |event| kept.push(event)).expect_err("wait in vain");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Limit, minder::Operation::Wait), "{error}");
    assert!(kept.iter().any(|event| matches!(event, Event::Done { .. })), "the quiet child is done");
    assert!(!set.wait(Some(Duration::from_millis(300))).expect("wait for a time"), "other threads may drop");
    // No byte is lost.
    let bytes_of = |event: &Event| if let Event::Output { chunk, .. } = event { chunk.len() } else { 0 };
    let mut bytes: usize = kept.drain(..).map(|event| bytes_of(&event)).sum();
    assert!(set.wait_all(None, |event| bytes += bytes_of(&event)).expect("wait for all"));
    assert_eq!(bytes, 600_000);
}

/// Its bytes are in the queue, not with the host: another thread resumes it.
#[test]
fn wait_outlasts_a_paused_child_that_fills_its_memory() {
    let limits = ChildSetOptions::new().max_child_bytes(64 << 10);
    let set = BackgroundSet::new(limits).expect("create set");
    let id = set.spawn(&test_child("spew 300000"), SpawnOptions::default()).expect("spawn test child");
    set.pause_events(id).expect("pause events");
    let resumer = set.clone();
    let thread = std::thread::spawn(move || {
        // Long enough that the wait asks several times whether an event can come.
        meanwhile(Duration::from_millis(700));
        resumer.resume_events(id).expect("resume events");
    });
    assert!(set.wait(None).expect("wait for an event"));
    thread.join().expect("thread that resumes");
    let mut bytes = 0;
    let count = |event| {
        if let Event::Output { chunk, .. } = event {
            bytes += chunk.len();
        }
    };
    assert!(set.wait_all(None, count).expect("wait for all"));
    assert_eq!(bytes, 300_000);
}

#[test]
fn drop_oldest_keeps_the_newest_bytes() {
    each_backend(|backend| {
        let limits = limits(backend).max_buffered_bytes(4 << 20).max_child_bytes(700_000);
        let mut host = Host::new(limits);
        // Small enough for a child that is slow under Wine.
        let size = if cfg!(windows) { 2_000_000 } else { 6_000_000 };
        let id = host.spawn(
            &test_child(&format!("spew {size}")),
            SpawnOptions::default().overflow(OverflowPolicy::DropOldest),
        );
        let pid = host.set.pid(id).expect("get pid");
        let until = patience();
        while crate::support::lives(pid) && Instant::now() < until {
            assert!(host.set.buffered_bytes() <= 700_000, "{} bytes wait", host.set.buffered_bytes());
            meanwhile(Duration::from_millis(1));
        }
        host.wait_all();
        let record = host.event_log.child(id);
        let heard = &record.outs[0];
        assert_eq!(heard.len() as u64 + host.event_log.outcome(id).dropped, size as u64);
        // What was still in the pipe when the child was gone may have been read after the first take.
        let most = 700_000 + (64 << 10);
        assert!(
            (600_000..=most).contains(&heard.len()) && patterned(size).ends_with(heard),
            "{} bytes heard",
            heard.len()
        );
    });
}

#[test]
fn spilled_output_returns_within_the_limit() {
    each_backend(|backend| {
        let limits = limits(backend).max_buffered_bytes(1 << 20).max_child_bytes(256 << 10);
        let mut host = Host::new(limits);
        let options = SpawnOptions::default().overflow(OverflowPolicy::Spill).output_mode(OutputMode::AtExit);
        let id = host.spawn(&test_child("spew 9000000"), options);
        assert!(host.has_events(patience()));
        meanwhile(Duration::from_millis(50));
        let waiting = host.set.buffered_bytes();
        assert!(waiting <= (1 << 20) + (64 << 10), "{waiting} bytes wait");
        host.max = 300_000;
        host.wait_all();
        assert_eq!(host.event_log.child(id).outs[0], patterned(9_000_000));
    });
}

#[test]
fn poll_handle_is_readable_exactly_while_events_wait() {
    each_backend(|backend| {
        for gather in [Duration::ZERO, Duration::from_millis(1)] {
            let options = BackgroundSetOptions::new().set(limits(backend)).coalesce_delay(gather);
            let mut host = Host::of(BackgroundSet::new(options).expect("start set"));
            assert!(!host.has_events(Instant::now()));
            let children: Vec<ChildId> =
                (0..20).map(|_| host.spawn(&test_child("lines 30 1"), SpawnOptions::default())).collect();
            host.max = 50;
            host.wait_all();
            let wanted: String = (0..30).map(|line| format!("line {line}\n")).collect();
            assert!(children.iter().all(|id| host.event_log.text(*id) == wanted));
        }
    });
}

#[test]
fn small_writes_are_coalesced() {
    let mut host = Host::new(ChildSetOptions::default());
    let id = host.spawn(&test_child("spew 20000 10"), SpawnOptions::default());
    let pid = host.set.pid(id).expect("get pid");
    let until = patience();
    while crate::support::lives(pid) && Instant::now() < until {
        meanwhile(Duration::from_millis(1));
    }
    host.wait_all();
    let record = host.event_log.child(id);
    assert_eq!(record.outs[0], patterned(20_000));
    assert!(record.chunks <= 3, "20,000 bytes, written ten at a time, came in {} chunks", record.chunks);
}

#[test]
fn set_without_memory_passes_on_one_event_at_a_time() {
    each_backend(|backend| {
        let set = BackgroundSetOptions::new().set(limits(backend).max_buffered_bytes(0)).max_input_bytes(0);
        let mut host = Host::of(BackgroundSet::new(set).expect("start set"));
        let quiet = host.spawn(&test_child("exit 3"), SpawnOptions::default());
        let loud = host.spawn(&test_child("both 5000"), SpawnOptions::default());
        let mut command = test_child("cat");
        command.stdin(Stdio::piped());
        let cat = host.spawn(&command, SpawnOptions::default());
        assert_eq!(host.set.write(cat, b"x").expect("write byte"), 1);
        host.set.close_stdin(cat).expect("close input");
        host.wait_all();
        assert_eq!(host.event_log.outcome(quiet).exit.status, ExitStatus::Exited(3));
        assert_eq!(host.event_log.child(loud).outs[0], patterned(5000));
        assert_eq!(host.event_log.child(cat).outs[0], b"x");
    });
}

#[test]
fn exit_follows_the_last_byte_unless_eager() {
    each_backend(|backend| {
        for at_once in [false, true] {
            let set = limits(backend).leak_timeout(None);
            let options = BackgroundSetOptions::new().set(set).eager_exit(at_once);
            let set = BackgroundSet::new(options).expect("start set");
            let id = set
                .spawn(&test_child("leave-lines 30 10"), SpawnOptions::default())
                .expect("spawn test child");
            let mut events = Vec::new();
            let until = patience();
            while !matches!(events.last(), Some(Event::Done { .. })) {
                assert!(Host::of(set.clone()).has_events(until));
                set.drain_events(&mut events, usize::MAX);
            }
            let exited = events
                .iter()
                .position(|event| matches!(event, Event::Exited { .. }))
                .expect("find exit event");
            let last = events
                .iter()
                .rposition(|event| matches!(event, Event::Output { .. }))
                .expect("find output event");
            assert_eq!(
                (exited < last, exited + 2 == events.len()),
                (at_once, !at_once),
                "{id:?}: {events:?}"
            );
        }
    });
}

#[test]
fn input_queue_is_bounded_and_closes_after_the_last_byte() {
    each_backend(|backend| {
        let options = BackgroundSetOptions::new().set(limits(backend)).max_input_bytes(100_000);
        let mut host = Host::of(BackgroundSet::new(options).expect("start set"));
        let mut command = test_child("cat");
        let id = host.spawn(command.stdin(Stdio::piped()), SpawnOptions::default());
        let bytes = patterned(3_000_000);
        let mut written = 0;
        let mut refused = 0;
        while written < bytes.len() {
            let count = host.set.write(id, &bytes[written..]).expect("write to stdin");
            assert!(count <= 100_000);
            written += count;
            if written < bytes.len() {
                refused += 1;
                host.wait_until(|event_log| event_log.child(id).writables >= refused);
            }
        }
        host.set.close_stdin(id).expect("close stdin");
        let error = host.set.write(id, b"x").expect_err("write to closed stdin");
        assert_eq!(error.kind(), ErrorKind::Unknown);
        host.wait_all();
        assert_eq!(host.event_log.child(id).outs[0], bytes);
        assert_eq!(host.set.write(id, b"x").map_err(|error| error.kind()), Err(ErrorKind::Unknown));
    });
}

#[test]
fn write_fails_after_the_child_closes_stdin() {
    let mut host = Host::new(ChildSetOptions::default());
    let mut command = test_child("close-stdin 60000");
    let id = host.spawn(command.stdin(Stdio::piped()), SpawnOptions::default());
    host.wait_until(|event_log| event_log.text(id) == "closed\n");
    let until = patience();
    let error = loop {
        match host.set.write(id, b"bytes") {
            Ok(_) => assert!(Instant::now() < until),
            Err(error) => break error,
        }
        meanwhile(Duration::from_millis(1));
    };
    assert_eq!(error.io_error().kind(), io::ErrorKind::BrokenPipe);
    host.set.stop(Duration::ZERO).expect("stop set");
}

#[test]
fn kill_ends_a_child_and_rejects_an_unknown_token() {
    each_backend(|backend| {
        let mut host = Host::new(limits(backend));
        let id = host.spawn(&test_child("tree 3"), SpawnOptions::default());
        host.wait_until(|event_log| event_log.text(id).lines().count() == 3);
        host.set.kill(id, Termination::IMMEDIATE).expect("kill child");
        host.wait_all();
        assert!(host.event_log.child(id).exit.is_some_and(|status| crate::support::killed(status, 9)));
        for pid in host.event_log.text(id).lines() {
            assert!(!crate::support::lives(pid.parse().expect("parse number")), "{pid} lives");
        }
        assert_eq!(
            host.set.kill(id, Termination::IMMEDIATE).map_err(|error| error.kind()),
            Err(ErrorKind::Unknown)
        );
        assert_eq!(host.set.pid(id).map_err(|error| error.kind()), Err(ErrorKind::Unknown));
    });
}

#[test]
fn spawn_returns_the_error_of_a_missing_program() {
    let set = BackgroundSet::new(ChildSetOptions::default()).expect("start background set");
    let error = set
        .spawn(&Command::new("no-such-program-anywhere"), SpawnOptions::default())
        .expect_err("spawn missing program");
    assert_eq!(error.to_string(), "failed to start `no-such-program-anywhere`: not found in PATH");
    assert_eq!(set.len(), 0);
}

#[test]
fn undrained_child_counts_against_max_children() {
    let limits = ChildSetOptions::default().max_children(2);
    let mut host = Host::new(limits);
    for _ in 0..2 {
        host.spawn(&test_child("exit 3"), SpawnOptions::default());
    }
    let until = patience();
    while !host.has_events(until) {}
    meanwhile(Duration::from_millis(50));
    let error =
        host.set.spawn(&test_child("exit 0"), SpawnOptions::default()).expect_err("spawn third child");
    assert_eq!(error.kind(), ErrorKind::Limit);
    host.wait_all();
    host.spawn(&test_child("exit 0"), SpawnOptions::default());
    host.wait_all();
}

// Windows has no request to exit: the first kill ends the child.
#[cfg(unix)]
#[test]
fn stop_escalates_and_ends_the_set_for_all_handles() {
    each_backend(|backend| {
        let mut host = Host::new(limits(backend));
        let stubborn = host.spawn(&test_child("ignore-term 600000"), SpawnOptions::default());
        let loud = host.spawn(&test_child("spew 1000000000"), SpawnOptions::default());
        host.wait_until(|event_log| !event_log.text(stubborn).is_empty());
        let pids = [stubborn, loud].map(|id| host.set.pid(id).expect("get pid"));
        let other = host.set.clone();
        let grace = Duration::from_millis(60);
        let before = Instant::now();
        host.set.stop(grace).expect("stop set");
        assert!(before.elapsed() >= grace, "it was asked first");
        assert!(pids.iter().all(|pid| !crate::support::lives(*pid)));
        let error =
            other.spawn(&test_child("exit 0"), SpawnOptions::default()).expect_err("spawn in stopped set");
        assert_eq!(error.to_string(), "failed to start a child: the set was stopped");
        assert_eq!((other.drain_events(&mut Vec::new(), 1), other.len()), (0, 0));
        assert!(!Host::of(other.clone()).has_events(Instant::now()));
        other.stop(Duration::ZERO).expect("stop set again");
    });
}

#[test]
fn stop_ends_children_blocked_on_full_buffers() {
    let limits = ChildSetOptions::default().max_buffered_bytes(128 << 10);
    let host = Host::new(limits);
    for _ in 0..4 {
        host.spawn(&test_child("spew 100000000"), SpawnOptions::default());
    }
    while host.set.buffered_bytes() == 0 {
        meanwhile(Duration::from_millis(1));
    }
    host.set.stop(Duration::from_millis(10)).expect("stop set");
}

#[test]
#[cfg(target_os = "linux")]
fn dropping_the_last_handle_ends_the_thread_and_kills_no_child() {
    crate::support::alone("background::dropping_the_last_handle_ends_the_thread_and_kills_no_child", || {
        let threads = || {
            let names = std::fs::read_dir("/proc/self/task").expect("list directory").flatten();
            let names =
                names.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
            names.filter(|name| name.trim() == "minder-set").count()
        };
        let before = crate::support::open_descriptors();
        let set = BackgroundSet::new(ChildSetOptions::default()).expect("start background set");
        let second = set.clone();
        let id =
            set.spawn(&test_child("sleep-ms 600000"), SpawnOptions::default()).expect("spawn test child");
        let pid = set.pid(id).expect("get pid");
        drop(set);
        assert_eq!((threads(), second.len()), (1, 1));
        drop(second);
        let until = patience();
        while (threads() > 0 || crate::support::open_descriptors() > before) && Instant::now() < until {
            meanwhile(Duration::from_millis(1));
        }
        assert_eq!((threads(), crate::support::open_descriptors()), (0, before));
        assert!(crate::support::lives(pid), "it was killed");
        crate::support::end(pid);
    });
}

#[test]
fn many_threads_share_one_set() {
    each_backend(|backend| {
        let mut host = Host::new(limits(backend));
        let all: Vec<(ChildId, usize)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    let set = host.set.clone();
                    scope.spawn(move || {
                        let start = |child: usize| {
                            let bytes = thread * 1000 + child;
                            let mut command = test_child(&format!("gate {bytes}"));
                            let id = set
                                .spawn(command.stdin(Stdio::piped()), SpawnOptions::default())
                                .expect("spawn test child");
                            set.close_stdin(id).expect("close stdin");
                            (id, bytes)
                        };
                        (0..if cfg!(windows) { 4 } else { 12 }).map(start).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("join thread")).collect()
        });
        host.wait_all();
        for (id, bytes) in all {
            assert_eq!(host.event_log.child(id).outs[0], patterned(bytes));
            assert_eq!(host.event_log.child(id).exit, Some(ExitStatus::Exited((bytes % 7) as i32)));
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn background_thread_blocks_signals_of_the_host() {
    let set = BackgroundSet::new(ChildSetOptions::default()).expect("start background set");
    set.spawn(&test_child("exit 0"), SpawnOptions::default()).expect("spawn test child");
    let mut seen = 0;
    for task in std::fs::read_dir("/proc/self/task").expect("list directory").flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        if field("Name:") == "minder-set" {
            let blocked = u64::from_str_radix(field("SigBlk:"), 16).expect("parse number");
            // All but the two that cannot be blocked and the two of the C library, 32 and 33.
            assert_eq!(blocked | 1 << 8 | 1 << 18 | 3 << 31, u64::MAX, "{blocked:x}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

/// Takes events until one of them is what the caller waits for, and returns the pid of each new run.
fn runs_until(set: &BackgroundSet, until: impl Fn(&Event) -> bool) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut events = Vec::new();
    loop {
        assert!(set.wait(Some(patience() - Instant::now())).expect("wait for events"), "no event");
        set.drain_events(&mut events, usize::MAX);
        for event in events.drain(..) {
            let is_last = until(&event);
            if let Event::Restarted { pid, .. } = event {
                pids.push(pid);
            }
            if is_last {
                return pids;
            }
        }
    }
}

#[test]
fn child_is_restarted_with_a_new_input_and_a_new_pid() {
    each_backend(|backend| {
        let set = BackgroundSet::new(limits(backend)).expect("start background set");
        let mut command = test_child("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let policy = RestartPolicy::new(Restart::Always).backoff(Duration::from_millis(1));
        let id = set.spawn(&command, SpawnOptions::new().restart(policy)).expect("spawn test child");
        let first = set.pid(id).expect("a pid");
        for round in 0..3 {
            assert_eq!(set.write(id, b"text").expect("write to a run"), 4);
            runs_until(&set, |event| matches!(event, Event::Output { chunk, .. } if **chunk == *b"text"));
            if round % 2 == 0 {
                set.close_stdin(id).expect("end the run");
            } else {
                set.restart(id, Termination::IMMEDIATE).expect("restart");
            }
            let pids = runs_until(&set, |event| matches!(event, Event::Restarted { .. }));
            assert_eq!(pids, [set.pid(id).expect("a pid")]);
            assert_ne!(pids, [first]);
        }
        set.kill(id, Termination::IMMEDIATE).expect("kill test child");
        runs_until(&set, |event| matches!(event, Event::Done { .. }));
        assert_eq!(set.len(), 0);
        set.stop(Duration::ZERO).expect("stop");
    });
}

#[test]
fn host_that_takes_no_events_bounds_the_queue_of_restarts() {
    // A start under Wine takes a fifth of a second on a busy machine.
    const RESTARTS: u32 = if cfg!(windows) { 100 } else { 150 };
    let set = BackgroundSet::new(ChildSetOptions::new()).expect("start background set");
    let policy = RestartPolicy::new(Restart::Always).backoff(Duration::ZERO).max_restarts(Some(RESTARTS));
    let mut command = test_child("exit 3");
    command.stdin(Stdio::null());
    let id = set.spawn(&command, SpawnOptions::new().restart(policy)).expect("spawn test child");
    // The last pid does not change any more. Nothing else tells of it while no event is taken.
    let until = patience();
    let mut last = (0, Instant::now());
    while last.1.elapsed() < Duration::from_secs(2) {
        assert!(Instant::now() < until, "{RESTARTS} runs are not done");
        let pid = set.pid(id).expect("a child whose end is not taken");
        if pid != last.0 {
            last = (pid, Instant::now());
        }
        meanwhile(Duration::from_millis(5));
    }
    let mut events = Vec::new();
    set.drain_events(&mut events, usize::MAX);
    let restarts: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Restarting { restarts, .. } => Some(*restarts),
            _ => None,
        })
        .collect();
    let last = u64::from(RESTARTS);
    assert_eq!(restarts, (last - 63..=last).collect::<Vec<_>>());
    assert!(matches!(events.last(), Some(Event::Done { .. })));
    set.stop(Duration::ZERO).expect("stop");
}

#[test]
fn wait_ends_at_its_timeout_and_after_a_stop() {
    let set = BackgroundSet::new(ChildSetOptions::new()).expect("start background set");
    set.spawn(&test_child("sleep-ms 600000"), SpawnOptions::new()).expect("spawn test child");
    let start = Instant::now();
    assert!(!set.wait(Some(Duration::from_millis(20))).expect("wait for events"));
    assert!(start.elapsed() >= Duration::from_millis(20));
    let other = set.clone();
    let waiter = std::thread::spawn(move || other.wait_all(None, drop));
    set.stop(Duration::ZERO).expect("stop");
    // It either saw that no child is left, or that the set was stopped.
    if let Err(error) = waiter.join().expect("join thread") {
        assert_eq!(error.operation(), minder::Operation::Wait);
    }
}

#[test]
fn wait_all_hands_over_every_event() {
    let set = BackgroundSet::new(ChildSetOptions::new()).expect("start background set");
    let mut command = test_child("spew 100000");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    for _ in 0..10 {
        set.spawn(&command, SpawnOptions::new()).expect("spawn test child");
    }
    let mut bytes = 0;
    let mut done = 0;
    let handle = |event| match event {
        Event::Output { chunk, .. } => bytes += chunk.len(),
        Event::Done { .. } => done += 1,
        _ => (),
    };
    assert!(set.wait_all(Some(patience() - Instant::now()), handle).expect("wait for all"));
    assert_eq!((bytes, done, set.len()), (1_000_000, 10, 0));
}

#[test]
fn every_thread_that_waits_for_all_children_returns_at_the_end() {
    let set = BackgroundSet::new(ChildSetOptions::new()).expect("start background set");
    for _ in 0..4 {
        set.spawn(&test_child("sleep-ms 100"), SpawnOptions::new()).expect("spawn test child");
    }
    let wait = || {
        let mut done = 0;
        let all_done = set.wait_all(Some(Duration::from_secs(60)), |event| {
            done += usize::from(matches!(event, Event::Done { .. }));
        });
        (all_done.expect("wait for children"), done)
    };
    let begun = Instant::now();
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(wait)).collect();
        threads.into_iter().map(|thread| thread.join().expect("join thread")).collect::<Vec<_>>()
    });
    assert!(results.iter().all(|(all_done, _)| *all_done) && begun.elapsed() < Duration::from_secs(30));
    assert_eq!(results.iter().map(|(_, done)| done).sum::<usize>(), 4);
}

#[test]
fn suspended_child_reports_nothing_until_it_is_resumed() {
    let mut host = Host::new(ChildSetOptions::default());
    let deadline = Instant::now() + Duration::from_secs(1);
    let options = SpawnOptions::default().deadline(deadline, Termination::IMMEDIATE);
    let child = host.spawn(&test_child("sleep-ms 600000"), options);
    if let Err(error) = host.set.suspend(child) {
        assert!(cfg!(windows) && error.kind() == ErrorKind::Unsupported, "{error}");
        return host.set.stop(Duration::ZERO).expect("stop set");
    }
    // Its deadline does not run while it is suspended.
    assert!(!host.has_events(deadline + Duration::from_millis(200)));
    host.set.resume(child).expect("resume child");
    host.wait_all();
    let outcome = host.event_log.outcome(child);
    assert!(outcome.timed_out && outcome.suspended > Duration::from_millis(200), "{outcome:?}");
    assert_eq!(host.set.resume(child).unwrap_err().kind(), ErrorKind::Unknown);
}

#[test]
fn user_value_comes_with_every_event_also_on_another_thread_and_after_restarts() {
    const CHILDREN: u64 = 40;
    let set = BackgroundSet::new(ChildSetOptions::new()).expect("start background set");
    let taker = std::thread::spawn({
        let set = set.clone();
        move || {
            let mut events = Vec::new();
            let mut users = HashMap::new();
            let mut done = 0;
            while done < CHILDREN {
                assert!(set.wait(Some(patience() - Instant::now())).expect("wait for events"), "no event");
                set.drain_events_with_user(&mut events, usize::MAX);
                for (event, user) in events.drain(..) {
                    let child = event.child().expect("it is about a child");
                    assert_eq!(*users.entry(child).or_insert(user), user, "{event:?}");
                    done += u64::from(matches!(event, Event::Done { .. }));
                }
            }
            users
        }
    });
    let policy = RestartPolicy::new(Restart::Always).backoff(Duration::ZERO).max_restarts(Some(2));
    let options = SpawnOptions::new().restart(policy);
    let mut command = test_child("exit 3");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let spawned: HashMap<ChildId, u64> = (0..CHILDREN)
        .map(|user| (set.spawn_with_user(&command, options, user).expect("spawn test child"), user))
        .collect();
    assert_eq!(taker.join().expect("join thread"), spawned);
    let ended = *spawned.keys().next().expect("a child");
    assert_eq!(set.user(ended).unwrap_err().kind(), ErrorKind::Unknown);
    set.stop(Duration::ZERO).expect("stop set");
}
