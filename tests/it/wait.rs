//! `Poller` and `Waker`: every clause of a backend's contract, on every backend.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use minder::{ErrorKind, Events, Interest, Poller, Readiness, Token};
use rustix::event::{EventfdFlags, eventfd};

use crate::kit::{each_backend, patience, race_time};

fn open(name: &str) -> Poller {
    let poller = Poller::with_backend(name).expect("a backend of this system");
    assert_eq!(poller.backend(), name);
    poller
}

/// What is ready now.
fn look(poller: &Poller) -> Vec<Readiness> {
    let mut events = Events::new();
    poller.wait(&mut events, Some(Instant::now())).expect("a look");
    let mut ready: Vec<_> = events.iter().collect();
    ready.sort_by_key(|ready| ready.token);
    ready
}

fn tokens(poller: &Poller) -> Vec<u64> {
    look(poller).iter().map(|ready| ready.token.0).collect()
}

fn full(reader: &PipeReader, writer: &mut PipeWriter) -> usize {
    rustix::io::ioctl_fionbio(&*writer, true).expect("a pipe");
    let _ = reader;
    let mut written = 0;
    while let Ok(count) = writer.write(&[b'x'; 4096]) {
        written += count;
    }
    written
}

#[test]
fn tells_a_readable_source_until_it_is_served() {
    each_backend(|name| {
        let poller = open(name);
        let (mut reader, mut writer) = pipe().expect("a pipe");
        poller.add(&reader, Token(7), Interest::READABLE).expect("a source");
        assert_eq!(tokens(&poller), [0; 0], "an empty pipe is ready");
        writer.write_all(b"ab").expect("a pipe");
        for _ in 0..3 {
            let ready = look(&poller);
            assert_eq!(ready.len(), 1);
            assert_eq!(ready[0].token, Token(7));
            assert!(ready[0].readable && !ready[0].writable && !ready[0].closed, "{ready:?}");
        }
        reader.read_exact(&mut [0]).expect("a byte");
        assert_eq!(tokens(&poller), [7], "one byte is left");
        reader.read_exact(&mut [0]).expect("a byte");
        assert_eq!(tokens(&poller), [0; 0]);
        drop(writer);
        let ready = look(&poller);
        assert!(
            ready.len() == 1 && ready[0].readable && ready[0].closed,
            "the other side is gone: {ready:?}"
        );
        poller.delete(&reader).expect("a source");
        assert_eq!(tokens(&poller), [0; 0], "told after it was deleted");
    });
}

#[test]
fn tells_a_writable_source_and_a_reader_that_is_gone() {
    each_backend(|name| {
        let poller = open(name);
        let (mut reader, mut writer) = pipe().expect("a pipe");
        poller.add(&writer, Token(1), Interest::WRITABLE).expect("a source");
        let ready = look(&poller);
        assert!(ready.len() == 1 && ready[0].writable && !ready[0].closed, "{ready:?}");
        let written = full(&reader, &mut writer);
        assert_eq!(tokens(&poller), [0; 0], "a full pipe is writable");
        reader.read_exact(&mut vec![0; written]).expect("all of it");
        assert_eq!(tokens(&poller), [1]);
        full(&reader, &mut writer);
        drop(reader);
        let ready = look(&poller);
        assert!(ready.len() == 1 && ready[0].writable && ready[0].closed, "{ready:?}");
        poller.delete(&writer).expect("a source");
    });
}

#[test]
fn tells_both_of_one_source() {
    each_backend(|name| {
        let poller = open(name);
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        poller.add(&ours, Token(5), Interest::BOTH).expect("a source");
        let ready = look(&poller);
        assert!(ready.len() == 1 && ready[0].writable && !ready[0].readable, "{ready:?}");
        (&theirs).write_all(b"x").expect("a pair");
        let ready = look(&poller);
        assert!(ready.len() == 1 && ready[0].writable && ready[0].readable, "{ready:?}");
        poller.modify(&ours, Token(6), Interest::READABLE).expect("a source");
        let ready = look(&poller);
        assert!(ready.len() == 1 && !ready[0].writable && ready[0].readable, "{ready:?}");
        assert_eq!(ready[0].token, Token(6), "the new token");
    });
}

#[test]
fn refuses_a_second_registration_and_unknown_sources() {
    each_backend(|name| {
        let poller = open(name);
        let (reader, writer) = pipe().expect("a pipe");
        poller.add(&reader, Token(1), Interest::READABLE).expect("a source");
        let error = poller.add(&reader, Token(2), Interest::READABLE).expect_err("twice");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let error = poller.modify(&writer, Token(2), Interest::WRITABLE).expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        let error = poller.delete(&writer).expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        poller.delete(&reader).expect("a source");
        assert_eq!(poller.delete(&reader).expect_err("gone").kind(), ErrorKind::NotFound);
        poller.add(&reader, Token(3), Interest::READABLE).expect("free again");
        let error = poller
            .add(&writer, Token(u64::MAX), Interest::WRITABLE)
            .expect_err("a token of the backend's own");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert_eq!(Poller::with_backend("no-such-backend").expect_err("no").kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn deleting_one_of_many_leaves_the_others() {
    each_backend(|name| {
        let poller = open(name);
        let pipes: Vec<_> = (0..20).map(|_| pipe().expect("a pipe")).collect();
        for (number, (reader, writer)) in pipes.iter().enumerate() {
            poller.add(reader, Token(number as u64), Interest::READABLE).expect("a source");
            (&*writer).write_all(b"x").expect("a pipe");
        }
        let mut left: Vec<u64> = (0..20).collect();
        // From the middle, the end and the start, in turns.
        for number in [10, 19, 0, 11, 18, 1, 5] {
            poller.delete(&pipes[number].0).expect("a source");
            left.retain(|token| *token != number as u64);
            assert_eq!(tokens(&poller), left, "after {number}");
        }
        poller.add(&pipes[19].0, Token(99), Interest::READABLE).expect("free again");
        left.push(99);
        assert_eq!(tokens(&poller), left);
    });
}

#[test]
fn never_ends_early() {
    each_backend(|name| {
        let poller = open(name);
        let mut events = Events::new();
        for number in 0..1000u32 {
            let time = Duration::from_nanos(200_000 + u64::from(number) * 2_801);
            let deadline = Instant::now() + time;
            let count = poller.wait(&mut events, Some(deadline)).expect("a wait");
            let late = Instant::now();
            assert!(late >= deadline, "{:?} early of {time:?}", deadline - late);
            assert_eq!((count, events.woken()), (0, false), "nothing happened");
        }
        // A deadline that is past, or the same again, is a look.
        let past = Instant::now() - Duration::from_secs(1);
        assert_eq!(poller.wait(&mut events, Some(past)).expect("a look"), 0);
        assert_eq!(poller.wait(&mut events, Some(past)).expect("a look"), 0);
    });
}

/// A deadline that was not reached must not end the next wait.
#[test]
fn a_deadline_that_was_given_up_ends_nothing() {
    each_backend(|name| {
        let poller = open(name);
        let (mut reader, mut writer) = pipe().expect("a pipe");
        poller.add(&reader, Token(1), Interest::READABLE).expect("a source");
        for _ in 0..50 {
            writer.write_all(b"x").expect("a pipe");
            let mut events = Events::new();
            let near = Instant::now() + Duration::from_millis(1);
            assert_eq!(poller.wait(&mut events, Some(near)).expect("a wait"), 1);
            reader.read_exact(&mut [0]).expect("a byte");
            let far = near + Duration::from_millis(2);
            assert_eq!(poller.wait(&mut events, Some(far)).expect("a wait"), 0);
            assert!(Instant::now() >= far && !events.woken());
        }
    });
}

#[test]
fn wakes_are_merged_and_the_next_wait_is_quiet() {
    each_backend(|name| {
        let poller = open(name);
        let waker = poller.waker();
        let mut events = Events::new();
        for _ in 0..20 {
            (0..10).for_each(|_| waker.wake().expect("a wake"));
            poller.notify().expect("a wake");
            assert_eq!(poller.wait(&mut events, Some(patience())).expect("a wait"), 0);
            assert!(events.woken(), "a wake was lost");
            poller.wait(&mut events, Some(Instant::now() + Duration::from_millis(1))).expect("a wait");
            assert!(!events.woken(), "eleven wakes were two");
        }
    });
}

#[test]
fn a_wake_is_told_beside_what_is_ready() {
    each_backend(|name| {
        let poller = open(name);
        let (reader, mut writer) = pipe().expect("a pipe");
        poller.add(&reader, Token(1), Interest::READABLE).expect("a source");
        writer.write_all(b"x").expect("a pipe");
        poller.notify().expect("a wake");
        let mut events = Events::new();
        let (mut woken, mut seen) = (false, false);
        for _ in 0..2 {
            seen |= poller.wait(&mut events, Some(patience())).expect("a wait") == 1;
            woken |= events.woken();
        }
        assert!(woken && seen);
    });
}

/// What a ringer stored before it rang is seen after the wait that it ended, however the threads meet.
#[test]
fn no_wake_is_ever_lost() {
    each_backend(|name| {
        let poller = open(name);
        let (stored, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let (seen, until) = (AtomicU64::new(0), patience());
        let time = race_time() / 2;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let waker = poller.waker();
                let (stored, stop) = (&stored, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::SeqCst) {
                        stored.fetch_add(1, Ordering::SeqCst);
                        waker.wake().expect("a wake");
                        std::hint::spin_loop();
                    }
                    // The very last one counts: nobody rings after it.
                    stored.fetch_add(1, Ordering::SeqCst);
                    waker.wake().expect("a wake");
                });
            }
            let (end, mut events) = (Instant::now() + time, Events::new());
            while Instant::now() < end {
                poller.wait(&mut events, Some(until)).expect("a wait");
                assert!(events.woken(), "the wait ended without a wake");
                seen.store(stored.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            let before_stop = stored.load(Ordering::SeqCst);
            stop.store(true, Ordering::SeqCst);
            // Each of the three stores once more at least.
            while seen.load(Ordering::SeqCst) < before_stop + 3 {
                poller.wait(&mut events, Some(until)).expect("a wait");
                assert!(events.woken(), "the last wake was lost");
                seen.store(stored.load(Ordering::SeqCst), Ordering::SeqCst);
            }
        });
    });
}

/// One thread rings once and waits for the answer: a ring that is lost stops both.
#[test]
fn a_wake_is_answered_by_a_wake() {
    each_backend(|name| {
        let (here, there) = (open(name), open(name));
        let (to_here, to_there) = (here.waker(), there.waker());
        let end = Instant::now() + race_time() / 2;
        let turns = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&turns);
        let thread = std::thread::spawn(move || {
            let mut events = Events::new();
            while theirs.load(Ordering::SeqCst) != u64::MAX {
                there.wait(&mut events, Some(patience())).expect("a wait");
                assert!(events.woken(), "a wake was lost on the way there");
                to_here.wake().expect("a wake");
            }
        });
        let mut events = Events::new();
        while Instant::now() < end {
            turns.fetch_add(1, Ordering::SeqCst);
            to_there.wake().expect("a wake");
            here.wait(&mut events, Some(patience())).expect("a wait");
            assert!(events.woken(), "a wake was lost on the way back");
        }
        turns.store(u64::MAX, Ordering::SeqCst);
        to_there.wake().expect("a wake");
        thread.join().expect("the other thread");
    });
}

#[test]
fn a_change_takes_effect_in_a_wait_that_goes_on() {
    each_backend(|name| {
        let poller = open(name);
        let (reader, mut writer) = pipe().expect("a pipe");
        let (second, mut its_writer) = pipe().expect("a pipe");
        writer.write_all(b"x").expect("a pipe");
        for round in 0..100u64 {
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let mut events = Events::new();
                    poller.wait(&mut events, Some(patience())).expect("a wait");
                    events.iter().map(|ready| ready.token).collect::<Vec<_>>()
                });
                // Some rounds begin before the other thread waits, some after.
                if round % 2 == 1 {
                    std::thread::park_timeout(Duration::from_millis(2));
                }
                poller.add(&reader, Token(round), Interest::READABLE).expect("a source");
                assert_eq!(waiting.join().expect("the waiter"), [Token(round)]);
            });
            poller.delete(&reader).expect("a source");
        }
        // A change of interest, too.
        poller.add(&its_writer, Token(1), Interest::READABLE).expect("a source");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut events = Events::new();
                poller.wait(&mut events, Some(patience())).expect("a wait")
            });
            std::thread::park_timeout(Duration::from_millis(20));
            poller.modify(&its_writer, Token(1), Interest::WRITABLE).expect("a source");
            assert_eq!(waiting.join().expect("the waiter"), 1);
        });
        its_writer.write_all(b"x").expect("a pipe");
        drop(second);
    });
}

/// Tells the other threads of a test to end, also when it fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A deleted source is not told by a wait that begins after `delete` returned, whatever other threads do.
#[test]
fn a_deleted_source_is_never_told() {
    each_backend(|name| {
        let poller = open(name);
        let end = Instant::now() + race_time() / 4;
        let stop = AtomicBool::new(false);
        let (reader, mut writer) = pipe().expect("a pipe");
        let (other, mut noise) = pipe().expect("a pipe");
        writer.write_all(b"x").expect("a pipe");
        noise.write_all(b"x").expect("a pipe");
        std::thread::scope(|scope| {
            // However this thread leaves, the other one ends.
            let _stop = Stop(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    poller.add(&other, Token(2), Interest::READABLE).expect("a source");
                    poller.delete(&other).expect("a source");
                }
            });
            let mut round = 10;
            while Instant::now() < end {
                poller.add(&reader, Token(round), Interest::READABLE).expect("a source");
                let ready = tokens(&poller);
                assert!(
                    ready.contains(&round) && ready.iter().all(|token| [2, round].contains(token)),
                    "{ready:?}"
                );
                poller.delete(&reader).expect("a source");
                assert!(!tokens(&poller).contains(&round), "told after it was deleted");
                round += 1;
            }
        });
    });
}

/// Two threads wait on one poller. Both see a source that stays ready.
#[test]
fn a_change_reaches_every_wait_that_goes_on() {
    each_backend(|name| {
        let poller = open(name);
        let (reader, mut writer) = pipe().expect("a pipe");
        writer.write_all(b"x").expect("a pipe");
        for round in 0..50 {
            std::thread::scope(|scope| {
                let wait = || {
                    let mut events = Events::new();
                    poller.wait(&mut events, Some(patience())).expect("a wait")
                };
                let waiting: Vec<_> = (0..3).map(|_| scope.spawn(wait)).collect();
                std::thread::park_timeout(Duration::from_millis(round % 4));
                poller.add(&reader, Token(1), Interest::READABLE).expect("a source");
                for waiter in waiting {
                    assert_eq!(
                        waiter.join().expect("the waiter"),
                        1,
                        "a wait missed the change, in round {round}"
                    );
                }
            });
            poller.delete(&reader).expect("a source");
        }
    });
}

/// Two threads wait on one poller with deadlines of their own. (What is bounded here is a hang, not lateness.)
#[test]
fn each_of_two_waits_keeps_its_own_deadline() {
    each_backend(|name| {
        let poller = open(name);
        let waker = poller.waker();
        let far = patience();
        std::thread::scope(|scope| {
            let long = scope.spawn(|| {
                let mut events = Events::new();
                poller.wait(&mut events, Some(far)).expect("a wait");
                (Instant::now(), events.woken())
            });
            // The far deadline is asked for first in one half, and last in the other.
            for _ in 0..5 {
                std::thread::park_timeout(Duration::from_millis(5));
                let near = Instant::now() + Duration::from_millis(20);
                let mut events = Events::new();
                poller.wait(&mut events, Some(near)).expect("a wait");
                let now = Instant::now();
                assert!(now >= near, "early");
                assert!(now < far, "the near deadline was forgotten for the far one");
            }
            let short = scope.spawn(|| {
                let near = Instant::now() + Duration::from_millis(300);
                poller.wait(&mut Events::new(), Some(near)).expect("a wait");
                assert!(Instant::now() >= near, "early");
                assert!(Instant::now() < far, "the near deadline was forgotten for a later one");
            });
            std::thread::park_timeout(Duration::from_millis(30));
            let third = scope.spawn(|| {
                let mut events = Events::new();
                poller.wait(&mut events, Some(far)).expect("a wait");
                events.woken()
            });
            short.join().expect("the short wait");
            // One wake ends one wait.
            waker.wake().expect("a wake");
            while !long.is_finished() && !third.is_finished() {
                std::thread::yield_now();
                assert!(Instant::now() < far, "nobody took the wake");
            }
            while !(long.is_finished() && third.is_finished()) {
                waker.wake().expect("a wake");
                std::thread::park_timeout(Duration::from_millis(1));
                assert!(Instant::now() < far, "nobody took the wake");
            }
            assert!(long.join().expect("the long wait").1 && third.join().expect("the third"));
        });
    });
}

#[test]
fn watches_1025_and_4096_sources() {
    each_backend(|name| {
        for count in [1025u64, 4096] {
            let poller = open(name);
            let sources: Vec<OwnedFd> = (0..count)
                .map_while(|_| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok())
                .collect();
            if (sources.len() as u64) < count {
                eprintln!(
                    "{count} sources on {name}: skipped, since only {} descriptors are free",
                    sources.len()
                );
                return;
            }
            for (token, source) in (0..).zip(&sources) {
                poller.add(source, Token(token), Interest::READABLE).expect("a source");
            }
            assert_eq!(tokens(&poller), [0; 0]);
            for number in [0, 1, 1023, 1024, count as usize - 1] {
                rustix::io::write(&sources[number], &1u64.to_ne_bytes()).expect("an eventfd");
                assert_eq!(tokens(&poller), [number as u64]);
                rustix::io::read(&sources[number], &mut [0u8; 8]).expect("an eventfd");
            }
            for source in &sources {
                rustix::io::write(source, &1u64.to_ne_bytes()).expect("an eventfd");
            }
            // All are told, none twice as often as another is told once: nobody starves.
            let mut seen = vec![0u32; count as usize];
            let mut looks = 0;
            while seen.contains(&0) {
                looks += 1;
                assert!(looks <= count, "after {looks} looks some were not told");
                tokens(&poller).into_iter().for_each(|token| seen[token as usize] += 1);
            }
            let most = seen.iter().max().copied().unwrap_or(0);
            assert!(most <= 2, "one was told {most} times before another was told once");
            for source in &sources {
                poller.delete(source).expect("a source");
            }
            assert_eq!(tokens(&poller), [0; 0]);
        }
    });
}

#[test]
fn two_descriptors_of_one_pipe_are_two_sources() {
    each_backend(|name| {
        let poller = open(name);
        let (reader, writer) = pipe().expect("a pipe");
        let copy = reader.as_fd().try_clone_to_owned().expect("a copy");
        poller.add(&reader, Token(1), Interest::READABLE).expect("a source");
        poller.add(&copy, Token(2), Interest::READABLE).expect("two descriptors of one pipe are two sources");
        (&writer).write_all(b"x").expect("a pipe");
        assert_eq!(tokens(&poller), [1, 2]);
        poller.delete(&reader).expect("a source");
        drop(reader);
        assert_eq!(tokens(&poller), [2]);
        poller.delete(&copy).expect("a source");
    });
}

#[test]
fn a_plain_file_is_refused_or_always_ready() {
    each_backend(|name| {
        let poller = open(name);
        let file = tempfile::tempfile().expect("a file");
        match poller.add(&file, Token(1), Interest::READABLE) {
            Ok(()) => assert_eq!(tokens(&poller), [1]),
            Err(error) => assert!(error.to_string().starts_with("failed to watch a source: "), "{error}"),
        }
    });
}
