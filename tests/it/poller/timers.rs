//! Timers: in time and never early, few wake-ups, and no interplay with what else a poller watches.

use std::time::{Duration, Instant};

use minder::ErrorKind;
use minder::poll::{Events, Interest, Poller, Readiness, Token};

use super::{counter, each_source, expect, look, lower, names, open, raise, settle, soon, wait_events};
use crate::support::{each_backend, patience};

const NONE: Duration = Duration::ZERO;

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn timer(token: u64) -> Readiness {
    let poller = Poller::new().expect("create poller");
    poller.add_timer(Token(token), Instant::now(), NONE).expect("add timer");
    look(&poller)[0]
}

#[test]
fn timer_is_reported_once_with_its_token() {
    each_backend(|backend| {
        let poller = open(backend);
        let deadline = Instant::now() + millis(2);
        poller.add_timer(Token(3), deadline, NONE).expect("add timer");
        let reported = wait_events(&poller, patience());
        assert!(Instant::now() >= deadline, "early");
        assert_eq!(names(&reported), [3]);
        let one = reported[0];
        assert!(one.expired && !one.readable && !one.writable && !one.closed, "{one:?}");
        assert_eq!(one, timer(3), "the same on every backend");
        assert_eq!(wait_events(&poller, Instant::now() + millis(3)), [], "reported twice");
    });
}

#[test]
fn timer_is_never_early() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut events = Events::new();
        for round in 0..300u64 {
            let deadline = Instant::now() + Duration::from_nanos(100_000 + round * 2_801);
            // Some waits have their own deadline before that, or behind it.
            poller.add_timer(Token(round), deadline, NONE).expect("add timer");
            let own = match round % 3 {
                0 => None,
                1 => Some(deadline - Duration::from_micros(50)),
                _ => Some(patience()),
            };
            while poller.wait_deadline(&mut events, own).expect("wait for events") == 0 {
                let own = own.expect("wait has a deadline");
                assert!(Instant::now() >= own, "the wait ended early");
            }
            assert!(Instant::now() >= deadline, "{:?} early", deadline - Instant::now());
            assert_eq!(events.iter().map(|ready| ready.token).collect::<Vec<_>>(), [Token(round)]);
        }
    });
}

#[test]
fn timers_with_tolerance_share_wakeups() {
    each_backend(|backend| {
        let poller = open(backend);
        let start = Instant::now() + millis(5);
        for number in 0..100 {
            poller.add_timer(Token(number), start + millis(number), millis(20)).expect("add timer");
        }
        let mut waits = 0;
        let mut reported = Vec::new();
        let mut events = Events::new();
        while reported.len() < 100 {
            poller.wait_deadline(&mut events, Some(patience())).expect("wait for events");
            let now = Instant::now();
            waits += 1;
            for ready in events.iter() {
                assert!(now >= start + millis(ready.token.0), "early");
                reported.push(ready.token.0);
            }
        }
        // 0 to 20 at 20, 21 to 41 at 41, … On a busy machine later ones come together.
        assert!(waits <= 8, "{waits} waits for 100 timers");
        assert_eq!(reported, (0..100).collect::<Vec<_>>(), "by their deadlines");
    });
}

/// A wait that ends for another reason also reports due timers.
#[test]
fn wait_ended_by_a_source_also_reports_due_timers() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        poller.add(&source, Token(1), Interest::READABLE).expect("add source");
        poller.add_timer(Token(2), Instant::now(), Duration::from_secs(3600)).expect("add timer");
        poller.add_timer(Token(3), Instant::now() + Duration::from_secs(60), NONE).expect("add timer");
        raise(&source);
        assert_eq!(names(&soon(&poller)), [1, 2]);
    });
}

#[test]
fn timers_follow_sources_in_deadline_order() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        raise(&source);
        poller.add(&source, Token(50), Interest::READABLE).expect("add source");
        let now = Instant::now();
        for (token, back) in [(4, 1), (1, 4), (3, 2), (2, 3)] {
            poller.add_timer(Token(token), now - millis(back), NONE).expect("add timer");
        }
        let mut events = Events::new();
        assert_eq!(poller.wait_deadline(&mut events, Some(now)).expect("wait for events"), 5);
        let reported: Vec<_> = events.iter().map(|ready| ready.token.0).collect();
        assert_eq!(reported, [50, 1, 2, 3, 4]);
    });
}

/// Lets timers at random moments of this time expire, with a tolerance of 20 ms. Checks that none is
/// early, and returns the number of waits and how much later than its tolerance each late timer was.
fn expire_at_random(poller: &Poller, count: u64, within: Duration) -> (usize, Vec<Duration>) {
    let tolerance = millis(20);
    let start = Instant::now() + millis(5);
    let mut random = 88_172_645_463_325_252u64;
    let deadlines: Vec<Instant> = (0..count)
        .map(|_| {
            // Marsaglia's xorshift64.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            start + Duration::from_nanos(random % u64::try_from(within.as_nanos()).expect("a short time"))
        })
        .collect();
    for (number, deadline) in (0..).zip(&deadlines) {
        poller.add_timer(Token(number), *deadline, tolerance).expect("add timer");
    }
    let mut waits = 0;
    let mut left = deadlines.len();
    let mut late = Vec::new();
    let mut events = Events::new();
    while left > 0 {
        left -= poller.wait_deadline(&mut events, Some(patience() + within)).expect("wait for events");
        waits += 1;
        let now = Instant::now();
        for ready in events.iter() {
            let deadline = deadlines[usize::try_from(ready.token.0).expect("an index")];
            assert!(now >= deadline, "{:?} early", deadline - now);
            if let Some(by) = now.checked_duration_since(deadline + tolerance) {
                late.push(by);
            }
        }
    }
    (waits, late)
}

/// Each wake-up serves the timers of 19.5 ms: half a millisecond of the tolerance is for its lateness.
#[test]
fn random_timers_share_wakeups_and_are_not_early() {
    each_backend(|backend| {
        let poller = open(backend);
        let (waits, _) = expire_at_random(&poller, 600, millis(600));
        assert!(waits <= 620 * 10 / 195 + 1, "{waits} waits");
    });
}

/// Prints how many timers were later than their tolerance: none on a quiet machine.
#[test]
#[ignore = "a measurement of 10 s for each backend, for a quiet machine"]
fn ten_thousand_random_timers_need_at_most_500_wakeups() {
    each_backend(|backend| {
        let poller = open(backend);
        let (waits, late) = expire_at_random(&poller, 10_000, Duration::from_secs(10));
        eprintln!("{backend}: {waits} waits, {} timers late, {:?} at most", late.len(), late.iter().max());
        assert!(waits <= 500, "{waits} waits");
    });
}

#[test]
fn timer_and_source_may_share_a_token() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        poller.add(&source, Token(1), Interest::READABLE).expect("add source");
        poller.add_timer(Token(1), Instant::now(), NONE).expect("add timer");
        raise(&source);
        let reported = look(&poller);
        assert_eq!(names(&reported), [1, 1]);
        assert!(reported.iter().any(|one| one.expired && !one.readable), "{reported:?}");
        assert!(reported.iter().any(|one| one.readable && !one.expired), "{reported:?}");
        poller.delete(&source).expect("delete source");
        poller.add_timer(Token(1), Instant::now(), NONE).expect("add timer with freed token");
        assert!(matches!(look(&poller)[..], [one] if one.expired && !one.readable));
    });
}

#[test]
fn timer_is_deleted_once_and_not_added_twice() {
    each_backend(|backend| {
        let poller = open(backend);
        let soon = Instant::now() + millis(5);
        poller.add_timer(Token(1), soon, NONE).expect("add timer");
        let error = poller.add_timer(Token(1), soon, NONE).expect_err("add timer with used token");
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains('1'), "{error}");
        poller.delete_timer(Token(1)).expect("delete timer");
        assert_eq!(poller.delete_timer(Token(1)).expect_err("delete timer again").kind(), ErrorKind::Unknown);
        assert_eq!(wait_events(&poller, soon + millis(3)), [], "reported though it was deleted");
        // One that was reported is gone, too.
        poller.add_timer(Token(1), soon, NONE).expect("add timer with freed token");
        expect(&poller, &[1]);
        assert_eq!(
            poller.delete_timer(Token(1)).expect_err("delete expired timer").kind(),
            ErrorKind::Unknown
        );
        // What is due and was not reported can be deleted.
        poller.add_timer(Token(2), soon, NONE).expect("add timer");
        poller.delete_timer(Token(2)).expect("delete timer");
        expect(&poller, &[]);
    });
}

#[test]
fn timer_added_during_a_wait_ends_it_in_time() {
    each_backend(|backend| {
        let poller = open(backend);
        for round in 0..40 {
            let limit = Duration::from_secs(10);
            let start = Instant::now();
            std::thread::scope(|scope| {
                // Without a deadline, with one, and with a later timer.
                if round % 3 == 2 {
                    poller.add_timer(Token(9), start + 2 * limit, NONE).expect("add timer");
                }
                let waiting = scope.spawn(|| wait_events(&poller, start + 2 * limit));
                if round % 4 == 0 {
                    settle();
                }
                let deadline = Instant::now() + millis(2);
                poller.add_timer(Token(round), deadline, NONE).expect("add timer");
                assert_eq!(names(&waiting.join().expect("join waiter")), [round]);
                let now = Instant::now();
                assert!(now >= deadline && now < start + limit, "{:?} after {deadline:?}", now - start);
            });
            let _ = poller.delete_timer(Token(9));
        }
    });
}

/// Two threads wait, one with its own near deadline. When it leaves, the other one reports the
/// timer.
#[test]
fn exiting_waiter_takes_no_timer_along() {
    each_backend(|backend| {
        let poller = open(backend);
        let start = Instant::now();
        let limit = Duration::from_secs(10);
        for round in 0..30u64 {
            std::thread::scope(|scope| {
                let long = scope.spawn(|| wait_events(&poller, start + 4 * limit));
                let short = scope.spawn(|| wait_events(&poller, Instant::now() + millis(3)));
                if round % 2 == 0 {
                    std::thread::park_timeout(millis(round % 4));
                }
                // The nudged thread may be the one that leaves before that.
                poller.add_timer(Token(round), Instant::now() + millis(6), NONE).expect("add timer");
                let mut reported = short.join().expect("join short wait");
                if reported.is_empty() {
                    reported = long.join().expect("join long wait");
                } else {
                    poller.notify().expect("wake poller");
                    assert_eq!(long.join().expect("join long wait"), []);
                }
                assert_eq!(names(&reported), [round]);
                assert!(start.elapsed() < limit, "the timer came with the deadline of the wait");
            });
        }
    });
}

#[test]
fn ten_thousand_timers_expire_in_order() {
    each_backend(|backend| {
        let poller = open(backend);
        let start = Instant::now() + millis(10);
        let at = |number: u64| start + Duration::from_micros(number * 7_919 % 10_000 * 5);
        for number in 0..10_000 {
            poller.add_timer(Token(number), at(number), millis(1)).expect("add timer");
        }
        // One in ten goes again.
        (0..10_000).step_by(10).for_each(|number| poller.delete_timer(Token(number)).expect("delete timer"));
        let mut events = Events::new();
        let mut reported = Vec::new();
        let mut waits = 0;
        while reported.len() < 9_000 {
            poller.wait_deadline(&mut events, Some(patience())).expect("wait for events");
            let now = Instant::now();
            waits += 1;
            for ready in events.iter() {
                assert!(now >= at(ready.token.0), "early");
                reported.push(ready.token.0);
            }
        }
        // 50 ms of deadlines, each a millisecond tolerant.
        assert!(waits <= 60, "{waits} waits");
        assert!(reported.windows(2).all(|pair| at(pair[0]) <= at(pair[1])), "not by their deadlines");
        assert_eq!(wait_events(&poller, Instant::now() + millis(2)), []);
        let mut tokens = reported;
        tokens.sort_unstable();
        tokens.dedup();
        assert!(tokens.len() == 9_000 && tokens.iter().all(|token| token % 10 != 0));
    });
}

/// A timer that never comes bounds nothing and breaks nothing.
#[test]
fn timer_at_the_latest_instant_is_kept() {
    each_backend(|backend| {
        let poller = open(backend);
        let latest = (0..63).rev().fold(Instant::now(), |latest, bit| {
            latest.checked_add(Duration::from_secs(1 << bit)).unwrap_or(latest)
        });
        poller.add_timer(Token(1), latest, Duration::MAX).expect("add timer");
        poller.add_timer(Token(2), latest, NONE).expect("add timer");
        let until = Instant::now() + millis(5);
        assert_eq!(wait_events(&poller, until), []);
        assert!(Instant::now() >= until);
        poller.add_timer(Token(3), until, Duration::MAX).expect("add timer");
        assert_eq!(names(&look(&poller)), [3], "a look takes what is due");
        poller.delete_timer(Token(1)).expect("delete timer");
        poller.delete_timer(Token(2)).expect("delete timer");
    });
}

/// A source that is never served does not keep timers from expiring.
#[test]
fn timers_expire_with_a_busy_source() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        raise(&source);
        poller.add(&source, Token(1000), Interest::READABLE).expect("add source");
        let start = Instant::now();
        (0..10).for_each(|number| {
            poller.add_timer(Token(number), start + millis(number), NONE).expect("add timer");
        });
        let mut left = 10;
        while left > 0 {
            let reported = wait_events(&poller, patience());
            assert!(reported.iter().any(|one| one.token == Token(1000)), "the source is ready");
            left -= reported.iter().filter(|one| one.expired).count();
            assert!(start.elapsed() < Duration::from_secs(10), "{left} timers did not come");
        }
        lower(&source);
    });
}
