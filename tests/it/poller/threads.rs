//! Many threads on one poller: changes during waits, tokens that were forgotten, threads that end.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use minder::poll::{Events, Interest, Token};

#[cfg(unix)]
use super::modify_or_add;
use super::{
    COMPUTED_STEP, computed, counter, each_exact, each_handle, each_source, expect, expect_since, has_edge,
    lower, names, open, pipe, raise, served, settle, tokens, wait_events,
};
use crate::support::{each_backend, on_drop, patience, race_continues, race_time};

#[test]
fn change_takes_effect_in_a_wait_in_progress() {
    each_backend(|backend| {
        let poller = open(backend);
        let (reader, mut writer) = pipe().expect("create pipe");
        let (second, mut its_writer) = pipe().expect("create pipe");
        writer.write_all(b"x").expect("write bytes");
        for round in 0..100u64 {
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let mut events = Events::new();
                    poller.wait_deadline(&mut events, Some(patience())).expect("wait for events");
                    events.iter().map(|ready| ready.token).collect::<Vec<_>>()
                });
                // Some rounds begin before the other thread waits, some after.
                if round % 2 == 1 {
                    std::thread::park_timeout(Duration::from_millis(2));
                }
                poller.add(&reader, Token(round), Interest::READABLE).expect("add source");
                assert_eq!(waiting.join().expect("join waiter"), [Token(round)]);
            });
            poller.delete(&reader).expect("delete source");
        }
        // A change of interest, too.
        poller.add(&its_writer, Token(1), Interest::READABLE).expect("add source");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut events = Events::new();
                poller.wait_deadline(&mut events, Some(patience())).expect("wait for events")
            });
            std::thread::park_timeout(Duration::from_millis(20));
            poller.modify(&its_writer, Token(1), Interest::WRITABLE).expect("modify source");
            assert_eq!(waiting.join().expect("join waiter"), 1);
        });
        its_writer.write_all(b"x").expect("write bytes");
        drop(second);
    });
}

/// A deleted source is not reported by a wait that begins after `delete` returned, with any
/// activity of other threads.
#[test]
fn deleted_source_is_never_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let end = Instant::now() + race_time() / 4;
        let stop = AtomicBool::new(false);
        let (reader, mut writer) = pipe().expect("create pipe");
        let (other, mut noise) = pipe().expect("create pipe");
        writer.write_all(b"x").expect("write bytes");
        noise.write_all(b"x").expect("write bytes");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    poller.add(&other, Token(2), Interest::READABLE).expect("add source");
                    poller.delete(&other).expect("delete source");
                }
            });
            let _stop = on_drop(|| stop.store(true, Ordering::SeqCst));
            let mut round = 10;
            while Instant::now() < end {
                poller.add(&reader, Token(round), Interest::READABLE).expect("add source");
                let ready = tokens(&poller);
                assert!(
                    ready.contains(&round) && ready.iter().all(|token| [2, round].contains(token)),
                    "{ready:?}"
                );
                poller.delete(&reader).expect("delete source");
                assert!(!tokens(&poller).contains(&round), "reported after it was deleted");
                round += 1;
            }
        });
    });
}

/// Two threads wait on one poller. Both see a source that stays ready.
#[test]
fn change_reaches_every_wait_in_progress() {
    each_backend(|backend| {
        let poller = open(backend);
        let (reader, mut writer) = pipe().expect("create pipe");
        writer.write_all(b"x").expect("write bytes");
        for round in 0..50 {
            std::thread::scope(|scope| {
                let wait = || {
                    let mut events = Events::new();
                    poller.wait_deadline(&mut events, Some(patience())).expect("wait for events")
                };
                let waiting: Vec<_> = (0..3).map(|_| scope.spawn(wait)).collect();
                std::thread::park_timeout(Duration::from_millis(round % 4));
                poller.add(&reader, Token(1), Interest::READABLE).expect("add source");
                for waiter in waiting {
                    assert_eq!(
                        waiter.join().expect("join waiter"),
                        1,
                        "a wait missed the change, in round {round}"
                    );
                }
            });
            poller.delete(&reader).expect("delete source");
        }
    });
}

/// The token of a source is the last one set, in every wait that began after.
#[test]
fn modified_token_is_used_from_then_on() {
    each_handle(|backend| {
        let poller = open(backend);
        let source = counter();
        let other = counter();
        raise(&source);
        raise(&other);
        poller.add(&source, Token(0), Interest::READABLE).expect("add source");
        let stop = AtomicBool::new(false);
        let end = Instant::now() + race_time() / 4;
        std::thread::scope(|scope| {
            // Waits and changes elsewhere, at the same time.
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    tokens(&poller);
                }
            });
            scope.spawn(|| {
                poller.add(&other, Token(u64::MAX / 2), Interest::READABLE).expect("add source");
                while !stop.load(Ordering::SeqCst) {
                    poller.modify(&other, Token(u64::MAX / 2), Interest::WRITABLE).expect("modify source");
                    poller.modify(&other, Token(u64::MAX / 2), Interest::READABLE).expect("modify source");
                }
            });
            let _stop = on_drop(|| stop.store(true, Ordering::SeqCst));
            let mut round = 0;
            while Instant::now() < end {
                round += 1;
                poller.modify(&source, Token(round), Interest::READABLE).expect("modify source");
                let reported = tokens(&poller);
                let own: Vec<_> = reported.iter().filter(|&&token| token != u64::MAX / 2).collect();
                assert_eq!(own, [&round], "reported {reported:?} in round {round}");
            }
        });
    });
}

/// A wait that is still running while a descriptor is reused reports nothing of the old file
/// one's.
// Only a descriptor is replaced in the moment in which it is closed.
#[cfg(unix)]
#[test]
fn replaced_descriptor_does_not_report_its_predecessor() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut place = counter();
        poller.add(&place, Token(0), Interest::READABLE).expect("add source");
        // A long list follows: a scan of all of it takes some time.
        let crowd: Vec<_> = (0..500).map(|_| counter()).collect();
        crowd.iter().for_each(|one| poller.add(one, Token(0), Interest::READABLE).expect("add source"));
        let stop = AtomicBool::new(false);
        let heard = AtomicU64::new(0);
        let end = Instant::now() + race_time() / 3;
        let wait = || {
            while !stop.load(Ordering::SeqCst) {
                for token in names(&wait_events(&poller, Instant::now() + Duration::from_millis(1))) {
                    heard.fetch_add(1, Ordering::SeqCst);
                    if token % 2 == 1 {
                        stop.store(true, Ordering::SeqCst);
                        return Err(token);
                    }
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..2).map(|_| scope.spawn(wait)).collect();
            let mut round = 0;
            // Odd tokens are those of files that are never ready. No file has another descriptor.
            while race_continues(end, heard.load(Ordering::SeqCst) > 0) && !stop.load(Ordering::SeqCst) {
                round += 2;
                modify_or_add(&poller, &place, round);
                let before = heard.load(Ordering::SeqCst);
                raise(&place);
                let until = patience();
                while round % 4 == 0 && heard.load(Ordering::SeqCst) == before && Instant::now() < until {
                    std::thread::yield_now();
                }
                let next = counter();
                rustix::io::dup2(&next, &mut place).expect("duplicate descriptor");
                drop(next);
                modify_or_add(&poller, &place, round + 1);
            }
            stop.store(true, Ordering::SeqCst);
            for waiter in waiters {
                assert_eq!(
                    waiter.join().expect("join waiter"),
                    Ok(()),
                    "a file that is never ready was reported"
                );
            }
        });
        assert!(heard.load(Ordering::SeqCst) > 0, "the race was never run");
    });
}

/// One that is never ready comes in the place of one that was, again and again, while others wait.
#[test]
fn new_source_does_not_report_the_one_it_replaced() {
    each_source(|backend| {
        let poller = open(backend);
        let stop = AtomicBool::new(false);
        let heard = AtomicU64::new(0);
        let end = Instant::now() + race_time() / 2;
        let loud = [(); 2].map(|()| counter());
        let quiet = [(); 2].map(|()| counter());
        std::thread::scope(|scope| {
            for (number, loud) in (0..).zip(&loud) {
                let poller = &poller;
                let stop = &stop;
                let heard = &heard;
                scope.spawn(move || {
                    let mut round = 0;
                    while !stop.load(Ordering::SeqCst) {
                        poller.add(loud, Token(2 * number), Interest::READABLE).expect("add source");
                        std::thread::yield_now();
                        let before = heard.load(Ordering::SeqCst);
                        raise(loud);
                        round += 1;
                        // In some rounds it goes when it was reported, in others just before.
                        while round % 4 == 0
                            && heard.load(Ordering::SeqCst) == before
                            && !stop.load(Ordering::SeqCst)
                        {
                            std::thread::yield_now();
                        }
                        poller.delete(loud).expect("delete source");
                        lower(loud);
                    }
                });
            }
            for (number, quiet) in (0..).zip(&quiet) {
                let poller = &poller;
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Ordering::SeqCst) {
                        poller.add(quiet, Token(2 * number + 1), Interest::READABLE).expect("add source");
                        std::thread::yield_now();
                        poller.delete(quiet).expect("delete source");
                    }
                });
            }
            let _stop = on_drop(|| stop.store(true, Ordering::SeqCst));
            while race_continues(end, heard.load(Ordering::SeqCst) > 0) {
                let reported = names(&wait_events(&poller, Instant::now() + Duration::from_millis(1)));
                heard.fetch_add(reported.len() as u64, Ordering::SeqCst);
                let quiet = reported.iter().all(|token| token % 2 == 0);
                assert!(quiet, "one that is never ready was reported: {reported:?}");
            }
        });
        assert!(heard.load(Ordering::SeqCst) > 0, "the race was never run");
    });
}

/// A source that was reported to one thread and served is reported to another thread that waits
/// still.
#[test]
fn source_served_by_one_thread_is_reported_to_others_again() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        poller.add(&source, Token(1), Interest::READABLE).expect("add source");
        for round in 0..20 {
            std::thread::scope(|scope| {
                let first = scope.spawn(|| names(&wait_events(&poller, patience())));
                let second = scope.spawn(|| names(&wait_events(&poller, patience())));
                if round % 2 == 0 {
                    settle();
                }
                raise(&source);
                let until = patience();
                while !first.is_finished() && !second.is_finished() && Instant::now() < until {
                    std::thread::yield_now();
                }
                lower(&source);
                // No thread waits again.
                raise(&source);
                let reported = [first, second].map(|waiter| waiter.join().expect("join waiter"));
                assert_eq!(reported, [[1], [1]], "round {round}");
            });
            lower(&source);
            served(&poller, "it was served");
        }
    });
}

/// Four threads add, change and delete their own sources; one waits. Nothing that was deleted is
/// reported by a wait that began later.
#[test]
fn deleted_tokens_are_never_reported_while_all_threads_change_sources() {
    each_handle(|backend| {
        let poller = open(backend);
        let stop = AtomicBool::new(false);
        let end = Instant::now() + race_time() / 3;
        // Of each thread, the lowest token that it may still have.
        let lowest: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let sources = [(); 4].map(|()| counter());
        std::thread::scope(|scope| {
            for ((thread, lowest), source) in (0u64..).zip(&lowest).zip(sources) {
                let poller = &poller;
                let stop = &stop;
                scope.spawn(move || {
                    raise(&source);
                    let mut number = 0;
                    let token = |number: u64| Token(thread << 32 | number);
                    while !stop.load(Ordering::SeqCst) {
                        poller.add(&source, token(number), Interest::READABLE).expect("add source");
                        number += 1;
                        poller
                            .modify(
                                &source,
                                token(number),
                                (Interest::READABLE | Interest::WRITABLE).oneshot(),
                            )
                            .expect("modify source");
                        lowest.store(number, Ordering::SeqCst);
                        poller.delete(&source).expect("delete source");
                        number += 1;
                        lowest.store(number, Ordering::SeqCst);
                    }
                });
            }
            let _stop = on_drop(|| stop.store(true, Ordering::SeqCst));
            let mut reported = 0;
            while race_continues(end, reported > 0) {
                let before: Vec<_> = lowest.iter().map(|lowest| lowest.load(Ordering::SeqCst)).collect();
                for token in tokens(&poller) {
                    let thread = (token >> 32) as usize;
                    let number = token & 0xffff_ffff;
                    let come_to = before[thread];
                    assert!(
                        number >= come_to,
                        "{number} of thread {thread} was reported, which had come to {come_to}"
                    );
                    reported += 1;
                }
            }
            assert!(reported > 0, "the race was never run");
        });
        expect_since(&poller, &[], "all were deleted");
    });
}

/// A backend may do work on behalf of the thread that asked for it. What that thread asked for
/// outlives it.
#[test]
fn sources_are_reported_after_the_registering_thread_exited() {
    each_source(|backend| {
        let poller = open(backend);
        let sources: Vec<_> = (0..20).map(|_| counter()).collect();
        let add = |from: usize, to: usize| {
            for (token, source) in (0..).zip(&sources).take(to).skip(from) {
                poller.add(source, Token(token), Interest::READABLE).expect("add source");
            }
        };
        std::thread::scope(|scope| {
            // One only registers; one registers and looks; one looks at what others registered.
            scope.spawn(|| add(0, 5)).join().expect("join thread");
            scope.spawn(|| (add(5, 10), tokens(&poller)).1).join().expect("join thread");
            scope.spawn(|| tokens(&poller)).join().expect("join thread");
        });
        expect(&poller, &[]);
        sources[..10].iter().for_each(raise);
        // A wait reports it, maybe a moment later: a kernel that worked for the thread first reports
        // that it ended.
        let mut reported = Vec::new();
        let until = patience();
        while reported != (0..10).collect::<Vec<_>>() {
            assert!(Instant::now() < until, "only {reported:?} are reported");
            let ready = wait_events(&poller, until);
            assert!(ready.iter().all(|one| !one.closed), "exit of a thread reported as a hang-up: {ready:?}");
            reported = names(&ready);
        }
        sources[..10].iter().for_each(lower);
        served(&poller, "all were served");
        // The last thread that waited here ends while another one waits.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| names(&wait_events(&poller, patience())));
            settle();
            scope
                .spawn(|| {
                    add(10, 20);
                    tokens(&poller)
                })
                .join()
                .expect("join thread");
            settle();
            raise(&sources[15]);
            assert_eq!(waiting.join().expect("join waiter"), [15]);
        });
        lower(&sources[15]);
        served(&poller, "it was served");
        // One-shot and edge-triggered sources.
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    poller
                        .modify(&sources[3], Token(103), Interest::READABLE.oneshot())
                        .expect("modify source");
                    if has_edge(backend) {
                        poller
                            .modify(&sources[4], Token(104), Interest::READABLE.edge())
                            .expect("modify source");
                    }
                    expect(&poller, &[]);
                })
                .join()
                .expect("join thread");
        });
        raise(&sources[3]);
        raise(&sources[4]);
        let expected = if has_edge(backend) { [103, 104] } else { [4, 103] };
        let mut reported = Vec::new();
        while !expected.iter().all(|token| reported.contains(token)) {
            assert!(Instant::now() < until, "only {reported:?} are reported");
            reported.extend(names(&wait_events(&poller, until)));
        }
        let once = reported.iter().filter(|&&token| token == 103).count();
        assert_eq!((once, tokens(&poller).contains(&103)), (1, false), "reported twice");
    });
}

/// A wake whose waiter exited ends the next wait.
#[test]
fn exiting_thread_takes_no_wake_along() {
    each_backend(|backend| {
        let poller = open(backend);
        for _ in 0..20 {
            let past = Instant::now();
            std::thread::scope(|scope| {
                scope
                    .spawn(|| {
                        let mut events = Events::new();
                        poller.wait_deadline(&mut events, Some(past)).expect("wait for events");
                    })
                    .join()
                    .expect("join thread");
            });
            poller.notify().expect("wake poller");
            let mut events = Events::new();
            poller.wait_deadline(&mut events, Some(patience())).expect("wait for events");
            assert!(events.woken());
        }
    });
}

/// Three threads look at the same time; each finds every ready source.
#[test]
fn concurrent_polls_all_find_a_ready_source() {
    each_handle(|backend| {
        let poller = open(backend);
        let source = counter();
        raise(&source);
        poller.add(&source, Token(1), Interest::READABLE).expect("add source");
        let end = Instant::now() + race_time() / 3;
        std::thread::scope(|scope| {
            let look = || {
                let mut looks = 0;
                while Instant::now() < end {
                    expect_since(&poller, &[1], &format!("after {looks} looks"));
                    looks += 1;
                }
            };
            let looking: Vec<_> = (0..3).map(|_| scope.spawn(look)).collect();
            for thread in looking {
                thread.join().expect("join polling thread");
            }
        });
    });
}

/// A thread may begin where another one ended: in its memory, and with more than one call takes to
/// hand over.
#[test]
fn new_thread_may_add_hundreds_of_sources_after_another_exited() {
    each_source(|backend| {
        let poller = open(backend);
        let sources: Vec<_> = (0..600).map(|_| counter()).collect();
        raise(&sources[0]);
        let run = |work: &(dyn Fn() -> Vec<u64> + Sync)| {
            std::thread::scope(|scope| scope.spawn(work).join().expect("join thread"))
        };
        for _ in 0..4 {
            assert_eq!(run(&|| tokens(&poller)), [0; 0]);
            let reported = run(&|| {
                for (token, source) in (0..).zip(&sources) {
                    poller.add(source, Token(token), Interest::READABLE).expect("add source");
                }
                tokens(&poller)
            });
            assert_eq!(reported, [0]);
            sources.iter().for_each(|source| poller.delete(source).expect("delete source"));
        }
    });
}

/// A source becomes ready in the very moment in which a wait looks at it, and nothing follows. No
/// look lasts, and no wait for nothing computes.
#[test]
fn poll_returns_while_a_source_becomes_ready_concurrently() {
    each_exact(|backend| {
        let poller = open(backend);
        let source = counter();
        poller.add(&source, Token(1), Interest::READABLE).expect("add source");
        let end = Instant::now() + race_time();
        let begun = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut round = 0;
                loop {
                    match begun.load(Ordering::SeqCst) {
                        u64::MAX => return,
                        now if now > round => round = now,
                        _ => {
                            std::hint::spin_loop();
                            continue;
                        }
                    }
                    (0..round % 97).for_each(|_| std::hint::spin_loop());
                    raise(&source);
                }
            });
            let _stop = on_drop(|| begun.store(u64::MAX, Ordering::SeqCst));
            let mut round = 0;
            let mut waits = 0;
            let mut time = Duration::ZERO;
            // Where rounds are slow, as with much other work, there is one wait anyway.
            while Instant::now() < end || waits == 0 {
                expect(&poller, &[]);
                round += 1;
                begun.store(round, Ordering::SeqCst);
                let last = patience();
                while tokens(&poller).is_empty() {
                    assert!(Instant::now() < last, "what became ready in round {round} is never reported");
                }
                lower(&source);
                if round % 100 == 0 || waits == 0 && Instant::now() >= end {
                    let before = computed();
                    assert_eq!(wait_events(&poller, Instant::now() + Duration::from_millis(2)), []);
                    time += computed() - before;
                    waits += 1;
                }
            }
            let most = COMPUTED_STEP + Duration::from_millis(1) * waits;
            assert!(time < most, "{waits} waits for nothing computed for {time:?}");
        });
    });
}
