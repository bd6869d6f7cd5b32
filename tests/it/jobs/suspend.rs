//! Crews whose jobs are suspended.

use super::*;

#[test]
fn suspend_stops_all_jobs_and_starts_none() {
    let site = Site::new(degree(4), (0..12).map(|_| quiet_child("sleep-ms 30")));
    site.run(|site| {
        for _ in 0..3 {
            site.await_log("some run", |log| !log.running.is_empty() || log.ends.len() == 12);
            site.crew.suspend();
            assert!(site.crew.wait_suspended(patience()));
            assert!(site.crew.wait_suspended(Instant::now()), "it stays so");
            // Earlier exits may still be reported.
            let told = Instant::now() + Duration::from_millis(50);
            while Instant::now() < told {
                std::thread::yield_now();
            }
            let (starts, ends) = site.seen();
            site.never("news", |log| (log.starts.len(), log.ends.len()) != (starts, ends));
            site.crew.resume();
            assert!(!site.crew.wait_suspended(patience()), "at once");
        }
    });
    assert_eq!(site.crew.counts().succeeded, 12);
}

#[test]
fn suspended_jobs_can_be_ended() {
    for sharp in [false, true] {
        let site = Site::new(degree(4), (0..12).map(|_| quiet_child(LONG)));
        site.run(|site| {
            site.await_log("four run", |log| log.running.len() == 4);
            site.crew.suspend();
            assert!(site.crew.wait_suspended(patience()));
            if sharp { site.crew.kill() } else { site.crew.cancel() }
        });
        let log = site.log.lock().expect("lock log");
        assert_eq!((log.starts.len(), log.ends.len()), (4, 4));
    }
}

/// Orders that follow each other faster than the loops look: the last one counts, for all jobs.
#[test]
fn last_of_rapid_suspends_and_resumes_wins() {
    let site = Site::new(degree(6), (0..60).map(|_| quiet_child("sleep-ms 5")));
    site.run(|site| {
        let end = Instant::now() + crate::support::race_time() / 2;
        while Instant::now() < end && site.crew.counts().succeeded < 50 {
            site.crew.suspend();
            site.crew.resume();
            site.crew.suspend();
            assert!(site.crew.wait_suspended(patience()));
            site.crew.resume();
        }
        assert!(!site.crew.wait_suspended(patience()));
    });
    assert_eq!(site.crew.counts().succeeded, 60);
}

/// It waits for a loop that is busy with its worker, but not forever.
#[test]
fn wait_suspended_waits_for_a_busy_worker_until_the_deadline() {
    let site = Site::new(degree(2), (0..2).map(|_| quiet_child(LONG)));
    site.run(|site| {
        site.await_log("both run", |log| log.running.len() == 2);
        let gate = site.gate.lock().expect("lock gate");
        let until = patience();
        site.crew.wake();
        while site.at_gate.load(Ordering::SeqCst) < LOOPS {
            assert!(Instant::now() < until, "a loop does not become idle");
            std::thread::yield_now();
        }
        site.crew.suspend();
        let deadline = Instant::now() + Duration::from_millis(50);
        assert!(!site.crew.wait_suspended(deadline) && Instant::now() >= deadline);
        drop(gate);
        assert!(site.crew.wait_suspended(patience()));
        site.crew.kill();
    });
}
