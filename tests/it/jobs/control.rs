//! Control of a pool while it runs.

use minder::jobs::{HaltPolicy, HaltTrigger, RetryPolicy, Threshold};

use super::*;

#[test]
fn paused_pool_starts_no_job() {
    let test = PoolTest::new(max_running(4), (0..12).map(|_| quiet_child(LONG)));
    test.run(|test| {
        test.wait_until("four run", |log| log.running.len() == 4);
        test.pool.set_paused(true);
        test.end_running();
        test.wait_until("four ended", |log| log.ends.len() == 4);
        test.assert_never("a start while paused", |log| log.starts.len() > 4);
        test.pool.set_paused(false);
        test.wait_until("four more run", |log| log.running.len() == 4);
        test.pool.kill();
    });
    assert_eq!(test.log.lock().expect("lock log").peak, 4);
}

/// A job that is not admission_limit stays first in line.
#[test]
fn handlers_limit_admission() {
    let test = PoolTest::new(max_running(8), (0..12).map(|_| quiet_child(LONG)));
    test.admission_limit.store(2, Ordering::SeqCst);
    test.run(|test| {
        test.wait_until("two run", |log| log.running.len() == 2);
        test.assert_never("a third", |log| log.running.len() > 2);
        test.admission_limit.store(5, Ordering::SeqCst);
        test.pool.wake();
        test.wait_until("five run", |log| log.running.len() == 5);
        test.end_running();
        test.wait_until("five others run", |log| log.ends.len() >= 5 && log.running.len() == 5);
        test.assert_never("a sixth", |log| log.running.len() > 5);
        let log = test.log.lock().expect("lock log");
        let jobs: Vec<u64> = log.starts.iter().map(|(start, _)| start.job).take(5).collect();
        assert_eq!(jobs.iter().collect::<HashSet<_>>(), (1..=5).collect::<Vec<u64>>().iter().collect());
        drop(log);
        test.pool.kill();
    });
}

#[test]
fn paused_pool_ends_when_no_job_is_left() {
    let test = PoolTest::new(max_running(4), (0..3).map(|_| quiet_child("exit 0")));
    test.run(|test| {
        test.wait_until("all started", |log| log.starts.len() == 3);
        test.pool.set_paused(true);
    });
    assert_eq!(test.pool.counts().succeeded, 3);
}

#[test]
fn max_running_changes_while_jobs_run() {
    let test = PoolTest::new(max_running(1), (0..40).map(|_| quiet_child(LONG)));
    test.run(|test| {
        test.wait_until("one runs", |log| log.running.len() == 1);
        test.assert_never("a second", |log| log.running.len() > 1);
        test.pool.set_max_running(5);
        test.wait_until("five run", |log| log.running.len() == 5);
        test.assert_never("a sixth", |log| log.running.len() > 5);
        test.pool.set_max_running(1);
        test.end_running();
        test.wait_until("one runs again", |log| log.running.len() == 1 && log.ends.len() >= 5);
        test.assert_never("a second", |log| log.running.len() > 1);
        test.pool.set_max_running(0);
        test.assert_never("more than one", |log| log.running.len() > 1);
        test.pool.set_max_running(8);
        test.wait_until("eight run", |log| log.running.len() == 8);
        test.pool.kill();
    });
    assert_eq!(test.log.lock().expect("lock log").peak, 8);
}

/// The second worker gets no job, and sleeps until the first one has ended.
#[test]
fn worker_without_a_share_ends_with_the_others() {
    let test = PoolTest::new(max_running(1), (0..20).map(|_| quiet_child("exit 0")));
    test.run(|_| ());
    assert_eq!(test.pool.counts().succeeded, 20);
    assert_eq!(test.log.lock().expect("lock log").peak, 1);
}

#[test]
fn last_attempt_is_flagged_when_it_finishes() {
    let config = max_running(2).retry(RetryPolicy::new().max_attempts(3));
    let test = PoolTest::new(config, [quiet_child("exit 1"), quiet_child("exit 0")]);
    test.run(|_| ());
    let log = test.log.lock().expect("lock log");
    let of = |job| {
        log.ends.iter().zip(&log.last).filter(move |((start, _), _)| start.job == job).map(|(_, last)| *last)
    };
    assert!(of(1).eq([false, false, true]) && of(2).eq([false]), "{log:?}");
    assert_eq!((test.pool.counts().failed, test.pool.counts().retried), (1, 2));
}

/// More than a pipe holds: the rest is written when there is room, from `event`.
#[test]
fn input_is_written_as_the_pipe_drains() {
    let mut command = test_child("cat");
    command.stdin(Stdio::piped());
    let test = PoolTest::new(max_running(3), (0..6).map(|_| command.clone()));
    let input = patterned(600_000);
    test.note(|log| log.input = input.clone());
    test.run(|_| ());
    let log = test.log.lock().expect("lock log");
    assert_eq!(log.text.len(), 6);
    assert!(log.text.values().all(|text| *text == input));
}

#[test]
fn starts_are_delayed() {
    let config = max_running(4).delay(Duration::from_millis(40));
    let test = PoolTest::new(config, (0..6).map(|_| quiet_child("exit 0")));
    let begun = Instant::now();
    test.run(|_| ());
    assert!(begun.elapsed() >= Duration::from_millis(5 * 40), "six starts need five pauses");
    assert_eq!(test.pool.counts().succeeded, 6);
}

#[test]
fn halt_ends_the_jobs_and_reports_its_rule() {
    let halt = HaltPolicy::new(HaltTrigger::Failed, Threshold::Percent(10)).now(true);
    let config = max_running(4).halt(Some(halt));
    let jobs = (0..3)
        .map(|_| quiet_child(LONG))
        .chain([quiet_child("exit 1")])
        .chain((0..6).map(|_| quiet_child("exit 0")));
    let test = PoolTest::new(config, jobs);
    test.pool.set_total(Some(10));
    test.run(|_| ());
    assert_eq!(test.counts(), (4, 4));
    let by = test.pool.halted_by().expect("find halt rule");
    assert_eq!((by.on, by.now), (HaltTrigger::Failed, true));
}

#[cfg(unix)] // Windows has no request to exit: the first kill ends the child.
#[test]
fn cancel_with_sends_the_configured_signal() {
    let mut test = PoolTest::new(max_running(2), (0..2).map(|_| quiet_child(LONG)));
    let how = Termination::signals(&[(minder::Signal::USR1, Duration::from_secs(600))])
        .expect("create signal sequence");
    test.pool = JobPool::new(max_running(2), Duration::ZERO).cancel_with(how);
    test.run(|test| {
        test.wait_until("both run", |log| log.running.len() == 2);
        test.pool.cancel();
    });
    let by = |status| matches!(status, minder::ExitStatus::Signaled { signal: libc::SIGUSR1, .. });
    assert!(test.log.lock().expect("lock log").ends.iter().all(|(_, outcome)| by(outcome.exit.status)));
}

/// The other loop has no slot, and would sleep until the lost job is finished.
#[test]
fn panic_of_a_handler_ends_the_pool() {
    struct Panicking {
        in_finished: bool,
        jobs: u32,
    }
    impl JobSource for Panicking {
        type Job = ();
        fn next_job(&mut self) -> NextJob<()> {
            self.jobs += 1;
            if self.jobs > 3 { NextJob::Exhausted } else { NextJob::Ready(()) }
        }
    }
    impl JobHandler for Panicking {
        fn prepare(&mut self, _: Attempt, (): &()) -> Result<SpawnRequest, JobResult> {
            Ok(SpawnRequest::new(quiet_child("exit 0")))
        }
        fn event(&mut self, _: Attempt, (): &(), _: Event, _: &mut ChildControl<'_>) -> Option<Termination> {
            None
        }
        fn finished(&mut self, _: Attempt, (): &(), _: Outcome) -> JobResult {
            assert!(!self.in_finished, "the handler of this test panics");
            JobResult::Success
        }
        fn spawn_failed(&mut self, _: Attempt, (): &(), error: Error) -> JobResult {
            panic!("{error}");
        }
    }
    for in_finished in [true, false] {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let pool = JobPool::new(max_running(1), Duration::from_secs(1));
            let make = |index| {
                assert!(in_finished || index != 0, "no handler for the first loop");
                Panicking { in_finished, jobs: 0 }
            };
            let run = || pool.run(WORKERS, &ChildSetOptions::new(), make).map(drop);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            sender.send(result.is_err()).expect("send result");
        });
        let panicked = receiver.recv_timeout(patience().saturating_duration_since(Instant::now()));
        assert_eq!(panicked, Ok(true), "in finished: {in_finished}");
    }
}
