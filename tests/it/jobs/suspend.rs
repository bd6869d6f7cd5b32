//! Pools whose jobs are suspended.

use super::*;

#[test]
fn suspend_stops_all_jobs_and_starts_none() {
    let test = PoolTest::new(max_running(4), (0..12).map(|_| quiet_child("sleep-ms 30")));
    test.run(|test| {
        for _ in 0..3 {
            test.wait_until("some run", |log| !log.running.is_empty() || log.ends.len() == 12);
            test.pool.suspend();
            assert!(test.pool.wait_suspended(patience()));
            assert!(test.pool.wait_suspended(Instant::now()), "it stays so");
            // Earlier exits may still be reported.
            let end = Instant::now() + Duration::from_millis(50);
            while Instant::now() < end {
                std::thread::yield_now();
            }
            let (starts, ends) = test.counts();
            test.assert_never("a start or an end", |log| {
                (log.starts.len(), log.ends.len()) != (starts, ends)
            });
            test.pool.resume();
            assert!(!test.pool.wait_suspended(patience()), "at once");
        }
    });
    assert_eq!(test.pool.counts().succeeded, 12);
}

#[test]
fn suspended_jobs_can_be_ended() {
    for immediate in [false, true] {
        let test = PoolTest::new(max_running(4), (0..12).map(|_| quiet_child(LONG)));
        test.run(|test| {
            test.wait_until("four run", |log| log.running.len() == 4);
            test.pool.suspend();
            assert!(test.pool.wait_suspended(patience()));
            if immediate { test.pool.kill() } else { test.pool.cancel() }
        });
        let log = test.log.lock().expect("lock log");
        assert_eq!((log.starts.len(), log.ends.len()), (4, 4));
    }
}

/// Requests may follow each other faster than workers look: the last one counts, for all jobs.
#[test]
fn last_of_rapid_suspends_and_resumes_wins() {
    let test = PoolTest::new(max_running(6), (0..60).map(|_| quiet_child("sleep-ms 5")));
    test.run(|test| {
        let end = Instant::now() + crate::support::race_time() / 2;
        while Instant::now() < end && test.pool.counts().succeeded < 50 {
            test.pool.suspend();
            test.pool.resume();
            test.pool.suspend();
            assert!(test.pool.wait_suspended(patience()));
            test.pool.resume();
        }
        assert!(!test.pool.wait_suspended(patience()));
    });
    assert_eq!(test.pool.counts().succeeded, 60);
}

/// It waits for a worker whose handler is busy, but not beyond the deadline.
#[test]
fn wait_suspended_waits_for_a_busy_worker_until_the_deadline() {
    let test = PoolTest::new(max_running(2), (0..2).map(|_| quiet_child(LONG)));
    test.run(|test| {
        test.wait_until("both run", |log| log.running.len() == 2);
        let idle_lock = test.idle_lock.lock().expect("lock idle");
        let until = patience();
        test.pool.wake();
        while test.idle_blocked.load(Ordering::SeqCst) < WORKERS {
            assert!(Instant::now() < until, "a worker does not become idle");
            std::thread::yield_now();
        }
        test.pool.suspend();
        let deadline = Instant::now() + Duration::from_millis(50);
        assert!(!test.pool.wait_suspended(deadline) && Instant::now() >= deadline);
        drop(idle_lock);
        assert!(test.pool.wait_suspended(patience()));
        test.pool.kill();
    });
}
