//! The order in which children are read while much waits in files: `Backlog`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use minder::{
    Backend, Backlog, ChildId, ChildSet, Command, Event, OutputMode, OverflowPolicy, SpawnOptions,
    Termination,
};

use crate::support::{
    EventLog, each_backend, file_of, limits, nap, next_event, patience, patterned, test_child,
};

/// Up to here all are read.
const EVEN_MAX: u64 = 256 << 10;
/// Writes until it is killed.
const ENDLESS: &str = "spew 1000000000000";

/// Returns a set with small bounds, which reads one child at a time, and its backlog.
fn set(backend: Backend) -> (ChildSet, Arc<Backlog>) {
    let backlog = Backlog::new(EVEN_MAX);
    let limits =
        limits(backend).max_child_bytes(64 << 10).max_buffered_bytes(1 << 20).backlog(Arc::clone(&backlog));
    (ChildSet::new(limits).expect("create set"), backlog)
}

/// Returns a child that writes the pattern as fast as it can: from a file, since making it takes
/// longer.
fn flood(bytes: usize) -> Command {
    let mut command = test_child("cat");
    command.stdin(file_of(&patterned(bytes)));
    command
}

fn kept(rank: u64) -> SpawnOptions {
    SpawnOptions::default().overflow(OverflowPolicy::Spill).output_mode(OutputMode::AtExit).rank(rank)
}

fn is_done(event_log: &EventLog, id: ChildId) -> bool {
    event_log.child(id).done.is_some()
}

/// Runs `act`, and returns the most bytes that waited in files meanwhile.
fn peak(backlog: &Backlog, act: impl FnOnce()) -> u64 {
    let over = AtomicBool::new(false);
    let most = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(backlog.bytes(), Ordering::Relaxed);
                nap(Duration::from_millis(1));
            }
        });
        let _end = crate::support::on_drop(|| over.store(true, Ordering::Relaxed));
        act();
    });
    most.into_inner()
}

#[test]
fn backlog_limits_concurrent_reads_and_delivers_every_byte() {
    const EACH: usize = 1 << 20;
    const CHILDREN: u64 = 48;
    each_backend(|backend| {
        let (mut set, backlog) = set(backend);
        let ids: Vec<_> = (0..CHILDREN)
            .map(|rank| set.spawn(&flood(EACH), kept(rank)).expect("spawn test child"))
            .collect();
        let mut event_log = EventLog::default();
        let peak = peak(&backlog, || event_log.wait_all(&mut set));
        for id in ids {
            assert!(
                event_log.child(id).outs[0] == patterned(EACH),
                "{} bytes",
                event_log.child(id).outs[0].len()
            );
        }
        // All of it would be 48 MiB. A loaded machine makes more of them be tried at a time.
        assert!(peak < 24 << 20, "{backend}: {peak} bytes waited");
        assert_eq!(backlog.bytes(), 0);
    });
}

#[test]
fn silent_child_holds_no_other() {
    each_backend(|backend| {
        let (mut set, _) = set(backend);
        let silent = set.spawn(&test_child("script 1000000 0 600000 0"), kept(0)).expect("spawn test child");
        let others: Vec<_> = (1..5)
            .map(|rank| set.spawn(&test_child("spew 2000000"), kept(rank)).expect("spawn test child"))
            .collect();
        let mut event_log = EventLog::default();
        let came = event_log
            .read_until(&mut set, patience(), |event_log| others.iter().all(|id| is_done(event_log, *id)));
        assert!(came && !is_done(&event_log, silent), "{backend}");
        set.kill(silent, Termination::IMMEDIATE).expect("kill child");
        event_log.wait_all(&mut set);
    });
}

#[test]
fn endless_child_leaves_others_a_share() {
    each_backend(|backend| {
        let (mut set, backlog) = set(backend);
        let endless = set.spawn(&test_child(ENDLESS), kept(0)).expect("spawn test child");
        let mut event_log = EventLog::default();
        // Until it has the turn.
        while backlog.bytes() < 4 * EVEN_MAX {
            set.next_event_deadline(Some(Instant::now() + Duration::from_millis(1)))
                .expect("wait for event")
                .into_event()
                .into_iter()
                .for_each(|event| event_log.record(event));
        }
        let other = set.spawn(&test_child("both 400000"), kept(1)).expect("spawn test child");
        let came = event_log.read_until(&mut set, patience(), |event_log| is_done(event_log, other));
        assert!(came && !is_done(&event_log, endless), "{backend}");
        assert!(event_log.child(other).outs.iter().all(|out| *out == patterned(400_000)), "{backend}");
        set.kill(endless, Termination::IMMEDIATE).expect("kill child");
        // Its output is dropped chunk by chunk: it may be large.
        let until = patience();
        while !set.is_empty() {
            set.next_event_deadline(Some(until))
                .expect("wait for event")
                .into_event()
                .expect("wait for exit");
        }
        assert_eq!(backlog.bytes(), 0);
    });
}

/// Starts an endless child that is being read, and another that waits for its turn.
fn held(set: &mut ChildSet, backlog: &Backlog) -> [ChildId; 2] {
    let endless = set.spawn(&test_child(ENDLESS), kept(0)).expect("spawn test child");
    while backlog.bytes() < 4 * EVEN_MAX {
        assert!(
            set.next_event_deadline(Some(Instant::now() + Duration::from_millis(1)))
                .expect("wait for event")
                .into_event()
                .is_none()
        );
    }
    // At most a sixteenth of what the first writes is read of it.
    let other = set.spawn(&test_child(ENDLESS), kept(1)).expect("spawn test child");
    [endless, other]
}

#[test]
fn waiting_children_can_be_killed() {
    each_backend(|backend| {
        let (mut set, backlog) = set(backend);
        let ids = held(&mut set, &backlog);
        let until = patience();
        for id in [ids[1], ids[0]] {
            set.kill(id, Termination::IMMEDIATE).expect("kill child");
            let is_done = |event| matches!(event, Some(Event::Done { child: of, .. }) if of == id);
            while !is_done(set.next_event_deadline(Some(until)).expect("wait for event").into_event()) {
                assert!(Instant::now() < until, "{backend}: {id:?} is not done");
            }
        }
        assert_eq!((set.len(), backlog.bytes()), (0, 0));
    });
}

// Windows does not suspend processes.
#[cfg(unix)]
#[test]
fn suspended_child_holds_no_other() {
    each_backend(|backend| {
        let (mut set, backlog) = set(backend);
        let [endless, other] = held(&mut set, &backlog);
        set.suspend(endless).expect("suspend child");
        // More than its share: the other has the turn.
        let before = backlog.bytes();
        let until = patience();
        while backlog.bytes() < before + 32 * EVEN_MAX {
            assert!(Instant::now() < until, "{backend}: the other is held");
            assert!(
                set.next_event_deadline(Some(Instant::now() + Duration::from_millis(1)))
                    .expect("wait for event")
                    .into_event()
                    .is_none()
            );
        }
        set.resume(endless).expect("resume child");
        set.suspend(other).expect("suspend child");
        set.kill_all(Termination::IMMEDIATE).expect("kill all children");
        while !set.is_empty() {
            next_event(&mut set, until);
        }
    });
}

#[test]
fn streamed_child_is_read_first() {
    const EACH: usize = 2 << 20;
    each_backend(|backend| {
        let (mut set, backlog) = set(backend);
        let live = set
            .spawn(&flood(8 * EACH), SpawnOptions::default().overflow(OverflowPolicy::Block))
            .expect("spawn test child");
        let others: Vec<_> =
            (1..17).map(|rank| set.spawn(&flood(EACH), kept(rank)).expect("spawn test child")).collect();
        let mut event_log = EventLog::default();
        let mut waited = 0;
        let until = patience();
        while !is_done(&event_log, live) {
            event_log.record(next_event(&mut set, until));
            waited = waited.max(backlog.bytes());
        }
        // All of the others would be 32 MiB.
        assert!(waited < 16 << 20, "{backend}: {waited} bytes waited");
        event_log.wait_all(&mut set);
        assert!(event_log.child(live).outs[0] == patterned(8 * EACH));
        assert!(others.iter().all(|other| event_log.child(*other).outs[0] == patterned(EACH)));
    });
}

#[test]
fn start_streaming_ends_the_wait_for_a_turn() {
    // More than a sixteenth of what the first writes meanwhile.
    const EACH: usize = 16 << 20;
    each_backend(|backend| {
        let (mut set, backlog) = set(backend);
        let endless = set.spawn(&test_child(ENDLESS), kept(0)).expect("spawn test child");
        while backlog.bytes() < 4 * EVEN_MAX {
            assert!(
                set.next_event_deadline(Some(Instant::now() + Duration::from_millis(1)))
                    .expect("wait for event")
                    .into_event()
                    .is_none()
            );
        }
        let other = set.spawn(&test_child(&format!("spew {EACH}")), kept(1)).expect("spawn test child");
        let end = Instant::now() + Duration::from_millis(50);
        while Instant::now() < end {
            assert!(set.next_event_deadline(Some(end)).expect("wait for event").into_event().is_none());
        }
        set.start_streaming(other).expect("start streaming");
        let mut event_log = EventLog::default();
        assert!(
            event_log.read_until(&mut set, patience(), |event_log| is_done(event_log, other)),
            "{backend}"
        );
        assert!(event_log.child(other).outs[0] == patterned(EACH), "{backend}");
        set.kill(endless, Termination::IMMEDIATE).expect("kill child");
        while !set.is_empty() {
            set.next_event_deadline(Some(patience()))
                .expect("wait for event")
                .into_event()
                .expect("wait for exit");
        }
    });
}
