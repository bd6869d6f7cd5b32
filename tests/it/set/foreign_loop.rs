//! Wakes, and the one descriptor or handle that a foreign loop watches.

#[cfg(unix)]
use std::os::fd::AsFd as _;
#[cfg(windows)]
use std::os::windows::io::AsHandle as _;
use std::time::{Duration, Instant};

use minder::{Backend, ChildSet, Event, SpawnOptions, Termination};
#[cfg(unix)]
use minder::{OutputMode, OverflowPolicy};

#[cfg(unix)]
use crate::support::alone;
use crate::support::{
    EventLog, each_backend, kill_group_of, limits, patience, quiet_child, readable, test_child,
};

fn watched(backend: Backend) -> ChildSet {
    ChildSet::new(limits(backend)).expect("create set")
}

/// Takes all that there is now.
fn take_all(set: &mut ChildSet, event_log: &mut EventLog) -> usize {
    let mut count = 0;
    while let Some(event) =
        set.next_event_deadline(Some(Instant::now())).expect("wait for event").into_event()
    {
        event_log.record(event);
        count += 1;
    }
    count
}

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(30);

#[test]
fn wake_ends_a_wait_on_another_thread() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        set.spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::default()).expect("spawn test child");
        let waker = set.waker();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            for round in receiver {
                assert_eq!(round, 0);
                waker.wake().expect("wake poller");
            }
        });
        let end = Instant::now() + crate::support::race_time() / 4;
        while Instant::now() < end {
            sender.send(0).expect("send to thread");
            let event = set.next_event_deadline(Some(patience())).expect("wait for event").into_event();
            assert!(matches!(event, Some(Event::Woken)), "a wake was lost: {event:?}");
        }
        drop(sender);
        thread.join().expect("join waker thread");
        // Many before one wait are one.
        let waker = set.waker();
        (0..100).for_each(|_| waker.wake().expect("wake poller"));
        let mut event_log = EventLog::default();
        assert_eq!(take_all(&mut set, &mut event_log), 1);
        set.kill_all(Termination::IMMEDIATE).expect("kill all children");
        event_log.wait_all(&mut set);
        drop(set);
        waker.wake().expect("wake dropped set");
    });
}

#[test]
#[cfg_attr(windows, ignore = "a set has no handle for a foreign loop yet")]
fn poll_handle_is_readable_exactly_while_events_wait() {
    each_backend(|backend| {
        let mut set = watched(backend);
        let mut event_log = EventLog::default();
        assert!(!readable(set.poll_handle().expect("get poll handle"), SHORT), "an empty set is readable");
        let mut command = test_child("cat");
        command.stdin(minder::Stdio::piped());
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        assert!(
            !readable(set.poll_handle().expect("get poll handle"), SHORT),
            "a silent child makes the set readable"
        );
        for round in 0..50 {
            assert_eq!(set.write(id, b"line\n").expect("write to stdin"), 5);
            assert!(
                readable(set.poll_handle().expect("get poll handle"), LONG),
                "output did not make the set readable in round {round}"
            );
            take_all(&mut set, &mut event_log);
            assert!(
                !readable(set.poll_handle().expect("get poll handle"), Duration::ZERO),
                "the set is readable after all events of round {round} were taken"
            );
        }
        set.waker().wake().expect("wake poller");
        assert!(
            readable(set.poll_handle().expect("get poll handle"), LONG),
            "a wake did not make the set readable"
        );
        take_all(&mut set, &mut event_log);
        assert!(!readable(set.poll_handle().expect("get poll handle"), SHORT));
        set.close_stdin(id).expect("close stdin");
        while !set.is_empty() {
            assert!(
                readable(set.poll_handle().expect("get poll handle"), LONG),
                "the exit did not make the set readable"
            );
            take_all(&mut set, &mut event_log);
        }
        assert_eq!(event_log.text(id), "line\n".repeat(50));
        // The thread of `poll` may look at the exit when the set has taken it. That is work for the set once.
        let has_work = |set: &mut ChildSet| readable(set.poll_handle().expect("get poll handle"), SHORT);
        if has_work(&mut set) {
            assert_eq!(take_all(&mut set, &mut event_log), 0);
        }
        assert!(!has_work(&mut set), "an empty set is readable");
    });
}

/// The foreign loop takes one event each time. The set stays readable while it has queued events.
#[test]
#[cfg_attr(windows, ignore = "a set has no handle for a foreign loop yet")]
fn queued_events_are_announced() {
    each_backend(|backend| {
        let mut set = watched(backend);
        let mut event_log = EventLog::default();
        let ids: Vec<_> = (0..20)
            .map(|_| set.spawn(&test_child("both 5000"), SpawnOptions::default()).expect("spawn test child"))
            .collect();
        while !set.is_empty() {
            assert!(
                readable(set.poll_handle().expect("get poll handle"), LONG),
                "the event was not announced"
            );
            if let Some(event) =
                set.next_event_deadline(Some(Instant::now())).expect("wait for event").into_event()
            {
                event_log.record(event);
            }
        }
        assert!(ids.iter().all(|id| event_log.child(*id).outs[1].len() == 5000));
    });
}

/// Returns the descriptor for which a loop waits.
#[cfg(unix)]
fn borrowed(fd: &std::os::fd::OwnedFd) -> std::os::fd::BorrowedFd<'_> {
    fd.as_fd()
}

/// Returns the handle for which a loop waits.
#[cfg(windows)]
fn borrowed(handle: &std::os::windows::io::OwnedHandle) -> std::os::windows::io::BorrowedHandle<'_> {
    handle.as_handle()
}

/// A loop that asked for the descriptor once, as most loops do.
fn foreign_loop(set: &mut ChildSet, event_log: &mut EventLog) {
    // A copy names the same descriptor, and needs no borrow of the set.
    let fd = set.poll_handle().expect("get poll handle").try_clone_to_owned().expect("duplicate handle");
    while !set.is_empty() {
        assert!(readable(borrowed(&fd), LONG), "the event was not announced; {} children left", set.len());
        take_all(set, event_log);
    }
}

#[test]
#[cfg_attr(windows, ignore = "a set has no handle for a foreign loop yet")]
fn silent_grandchild_is_abandoned_in_a_foreign_loop() {
    each_backend(|backend| {
        let mut set = watched(backend);
        let mut event_log = EventLog::default();
        let id = set
            .spawn(&test_child("hold-stdout 100000 10"), SpawnOptions::default())
            .expect("spawn test child");
        let pid = set.pid(id).expect("get pid");
        foreign_loop(&mut set, &mut event_log);
        assert!(event_log.outcome(id).leaked);
        kill_group_of(pid);
    });
}

#[test]
#[cfg_attr(windows, ignore = "a set has no handle for a foreign loop yet")]
fn deadline_is_enforced_in_a_foreign_loop() {
    each_backend(|backend| {
        let mut set = watched(backend);
        let mut event_log = EventLog::default();
        let deadline = Instant::now() + Duration::from_millis(200);
        let options = SpawnOptions::default().deadline(deadline, Termination::IMMEDIATE);
        set.spawn(&test_child("sleep-ms 600000"), options).expect("spawn test child");
        foreign_loop(&mut set, &mut event_log);
        assert!(Instant::now() >= deadline);
    });
}

// Windows has no request to exit: the first kill ends the child.
#[cfg(unix)]
#[test]
fn escalation_happens_in_a_foreign_loop() {
    each_backend(|backend| {
        let mut set = watched(backend);
        let mut event_log = EventLog::default();
        let fd = set.poll_handle().expect("get poll handle").try_clone_to_owned().expect("duplicate handle");
        let id =
            set.spawn(&test_child("ignore-term 600000"), SpawnOptions::default()).expect("spawn test child");
        assert!(event_log.read_until(&mut set, patience(), |event_log| event_log.text(id) == "ready\n"));
        take_all(&mut set, &mut event_log);
        set.kill(id, Termination::graceful(Duration::from_millis(100))).expect("kill child");
        while !set.is_empty() {
            assert!(readable(borrowed(&fd), LONG), "the time to insist was not announced");
            take_all(&mut set, &mut event_log);
        }
        assert!(!event_log.outcome(id).exit.status.success());
    });
}

/// A dropped chunk wakes the set, which then reads on.
#[test]
#[cfg_attr(windows, ignore = "a set has no handle for a foreign loop yet")]
fn freed_buffer_is_announced_in_a_foreign_loop() {
    each_backend(|backend| {
        let limits = limits(backend).read_buffer_bytes(4 << 10).max_child_bytes(8 << 10);
        let mut set = ChildSet::new(limits).expect("create set");
        let id = set.spawn(&test_child("spew 300000"), SpawnOptions::default()).expect("spawn test child");
        let mut event_log = EventLog::default();
        let mut kept = Vec::new();
        let until = patience();
        while !set.is_empty() {
            assert!(Instant::now() < until, "{} bytes came", event_log.child(id).outs[0].len());
            if readable(set.poll_handle().expect("get poll handle"), SHORT) {
                while let Some(event) =
                    set.next_event_deadline(Some(Instant::now())).expect("wait for event").into_event()
                {
                    kept.push(event);
                }
            } else {
                // No event: all chunks are ours, or the child is slow.
                kept.drain(..).for_each(|event| event_log.record(event));
            }
        }
        for event in kept {
            event_log.record(event);
        }
        assert_eq!(event_log.child(id).outs[0].len(), 300_000);
    });
}

/// The backend watches the process and no more, so the set itself looks for room in the input.
#[test]
#[cfg_attr(windows, ignore = "a set has no handle for a foreign loop yet")]
fn room_in_an_unwatched_input_is_announced_in_a_foreign_loop() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend).fault_capacity(1)).expect("create set");
        let mut event_log = EventLog::default();
        let fd = set.poll_handle().expect("get poll handle").try_clone_to_owned().expect("duplicate handle");
        let mut command = quiet_child("count");
        command.stdin(minder::Stdio::piped());
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        // Without a timer of the start that would hide a missing one. Some backends look for the exit
        // repeatedly.
        let end = Instant::now() + Duration::from_millis(200);
        while Instant::now() < end && readable(borrowed(&fd), SHORT) {
            take_all(&mut set, &mut event_log);
        }
        assert!(set.write(id, &[b'x'; 1 << 20]).expect("write to stdin") < 1 << 20);
        let until = patience();
        loop {
            assert!(
                readable(borrowed(&fd), LONG) && Instant::now() < until,
                "{backend}: room is not announced"
            );
            let event = set.next_event_deadline(Some(Instant::now())).expect("wait for event").into_event();
            if matches!(event, Some(Event::Writable { child, .. }) if child == id) {
                break;
            }
        }
        set.kill(id, Termination::IMMEDIATE).expect("kill child");
        event_log.wait_all(&mut set);
    });
}

/// A spill file for which no descriptor was free is tried again. No report says when.
#[cfg(unix)]
#[test]
fn refused_spill_file_is_retried_in_a_foreign_loop() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    alone("set::foreign_loop::refused_spill_file_is_retried_in_a_foreign_loop", || {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(96), maximum }).expect("set resource limit");
        each_backend(|backend| {
            let mut set = ChildSet::new(limits(backend).max_child_bytes(1)).expect("create set");
            let mut event_log = EventLog::default();
            let fd =
                set.poll_handle().expect("get poll handle").try_clone_to_owned().expect("duplicate handle");
            let running = set
                .spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::default())
                .expect("spawn test child");
            let options =
                SpawnOptions::default().overflow(OverflowPolicy::Spill).output_mode(OutputMode::AtExit);
            let id = set.spawn(&test_child("spew 200000"), options).expect("spawn test child");
            let held: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
            let end = Instant::now() + Duration::from_millis(200);
            while Instant::now() < end {
                readable(borrowed(&fd), SHORT);
                take_all(&mut set, &mut event_log);
            }
            drop(held);
            while event_log.child(id).done.is_none() {
                assert!(readable(borrowed(&fd), LONG), "{backend}: the retry was not announced");
                take_all(&mut set, &mut event_log);
            }
            assert_eq!(event_log.child(id).outs[0].len(), 200_000, "{backend}");
            set.kill(running, Termination::IMMEDIATE).expect("kill child");
            event_log.wait_all(&mut set);
        });
    });
}
