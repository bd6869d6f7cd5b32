//! Control of a pool while it runs.

use minder::jobs::{HaltPolicy, HaltTrigger, Threshold};

use super::*;

#[test]
fn paused_pool_starts_no_job() {
    let site = Site::new(degree(4), (0..12).map(|_| quiet_child(LONG)));
    site.run(|site| {
        site.await_log("four run", |log| log.running.len() == 4);
        site.crew.set_paused(true);
        site.end_running();
        site.await_log("four ended", |log| log.ends.len() == 4);
        site.never("a start while held", |log| log.starts.len() > 4);
        site.crew.set_paused(false);
        site.await_log("four more run", |log| log.running.len() == 4);
        site.crew.kill();
    });
    assert_eq!(site.log.lock().expect("lock log").peak, 4);
}

/// A job that is not admitted stays first in line.
#[test]
fn handlers_limit_admission() {
    let site = Site::new(degree(8), (0..12).map(|_| quiet_child(LONG)));
    site.admitted.store(2, Ordering::SeqCst);
    site.run(|site| {
        site.await_log("two run", |log| log.running.len() == 2);
        site.never("a third", |log| log.running.len() > 2);
        site.admitted.store(5, Ordering::SeqCst);
        site.crew.wake();
        site.await_log("five run", |log| log.running.len() == 5);
        site.end_running();
        site.await_log("five others run", |log| log.ends.len() >= 5 && log.running.len() == 5);
        site.never("a sixth", |log| log.running.len() > 5);
        let log = site.log.lock().expect("lock log");
        let jobs: Vec<u64> = log.starts.iter().map(|(start, _)| start.job).take(5).collect();
        assert_eq!(jobs.iter().collect::<HashSet<_>>(), (1..=5).collect::<Vec<u64>>().iter().collect());
        drop(log);
        site.crew.kill();
    });
}

#[test]
fn paused_pool_ends_when_no_job_is_left() {
    let site = Site::new(degree(4), (0..3).map(|_| quiet_child("exit 0")));
    site.run(|site| {
        site.await_log("all started", |log| log.starts.len() == 3);
        site.crew.set_paused(true);
    });
    assert_eq!(site.crew.counts().succeeded, 3);
}

#[test]
fn max_running_changes_while_jobs_run() {
    let site = Site::new(degree(1), (0..40).map(|_| quiet_child(LONG)));
    site.run(|site| {
        site.await_log("one runs", |log| log.running.len() == 1);
        site.never("a second", |log| log.running.len() > 1);
        site.crew.set_max_running(5);
        site.await_log("five run", |log| log.running.len() == 5);
        site.never("a sixth", |log| log.running.len() > 5);
        site.crew.set_max_running(1);
        site.end_running();
        site.await_log("one runs again", |log| log.running.len() == 1 && log.ends.len() >= 5);
        site.never("a second", |log| log.running.len() > 1);
        site.crew.set_max_running(0);
        site.never("more than one", |log| log.running.len() > 1);
        site.crew.set_max_running(8);
        site.await_log("eight run", |log| log.running.len() == 8);
        site.crew.kill();
    });
    assert_eq!(site.log.lock().expect("lock log").peak, 8);
}

/// The second loop has no share, and sleeps without a child until all has ended.
#[test]
fn worker_without_a_share_ends_with_the_others() {
    let site = Site::new(degree(1), (0..20).map(|_| quiet_child("exit 0")));
    site.run(|_| ());
    assert_eq!(site.crew.counts().succeeded, 20);
    assert_eq!(site.log.lock().expect("lock log").peak, 1);
}

#[test]
fn last_attempt_is_flagged_when_it_finishes() {
    let mut rules = degree(2);
    rules.retry.max_attempts = 3;
    let site = Site::new(rules, [quiet_child("exit 1"), quiet_child("exit 0")]);
    site.run(|_| ());
    let log = site.log.lock().expect("lock log");
    let of = |job| {
        log.ends.iter().zip(&log.last).filter(move |((start, _), _)| start.job == job).map(|(_, last)| *last)
    };
    assert!(of(1).eq([false, false, true]) && of(2).eq([false]), "{log:?}");
    assert_eq!((site.crew.counts().failed, site.crew.counts().retried), (1, 2));
}

/// More than a pipe holds: the rest is written when there is room, from `event`.
#[test]
fn input_is_written_as_the_pipe_drains() {
    let mut command = test_child("cat");
    command.stdin(Stdio::Piped);
    let site = Site::new(degree(3), (0..6).map(|_| command.clone()));
    let input = patterned(600_000);
    site.note(|log| log.input = input.clone());
    site.run(|_| ());
    let log = site.log.lock().expect("lock log");
    assert_eq!(log.text.len(), 6);
    assert!(log.text.values().all(|text| *text == input));
}

#[test]
fn starts_are_delayed() {
    let mut rules = degree(4);
    rules.delay = Duration::from_millis(40);
    let site = Site::new(rules, (0..6).map(|_| quiet_child("exit 0")));
    let begun = Instant::now();
    site.run(|_| ());
    assert!(begun.elapsed() >= Duration::from_millis(5 * 40), "six starts need five pauses");
    assert_eq!(site.crew.counts().succeeded, 6);
}

#[test]
fn halt_ends_the_jobs_and_reports_its_rule() {
    let mut rules = degree(4);
    rules.halt = Some(HaltPolicy { on: HaltTrigger::Failed, at: Threshold::Percent(10), now: true });
    let jobs = (0..3)
        .map(|_| quiet_child(LONG))
        .chain([quiet_child("exit 1")])
        .chain((0..6).map(|_| quiet_child("exit 0")));
    let site = Site::new(rules, jobs);
    site.crew.set_total(Some(10));
    site.run(|_| ());
    assert_eq!(site.seen(), (4, 4));
    let by = site.crew.halted_by().expect("find halt rule");
    assert_eq!((by.on, by.now), (HaltTrigger::Failed, true));
}

#[cfg(unix)] // Windows has no request to exit: the first kill ends the child.
#[test]
fn cancel_with_sends_the_configured_signal() {
    let mut site = Site::new(degree(2), (0..2).map(|_| quiet_child(LONG)));
    let how =
        Termination::signals(&[(libc::SIGUSR1, Duration::from_secs(600))]).expect("create signal sequence");
    site.crew = JobPool::new(degree(2), Duration::ZERO).cancel_with(how);
    site.run(|site| {
        site.await_log("both run", |log| log.running.len() == 2);
        site.crew.cancel();
    });
    let by = |status| matches!(status, minder::ExitStatus::Signaled { signal: libc::SIGUSR1, .. });
    assert!(site.log.lock().expect("lock log").ends.iter().all(|(_, outcome)| by(outcome.exit.status)));
}
