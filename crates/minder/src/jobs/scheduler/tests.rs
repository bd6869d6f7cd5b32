//! The scheduler, step by step and with random inputs.

use std::time::Duration;

use proptest::prelude::*;

use super::super::config::{HaltPolicy, RetryPolicy};
use super::super::key_limits::WAITING_MAX;
use super::*;

mod model;

fn config(change: impl FnOnce(&mut SchedulerOptions)) -> SchedulerOptions {
    let mut config = SchedulerOptions::default();
    change(&mut config);
    config
}

fn start<J: std::fmt::Debug>(scheduler: &mut Scheduler<J>, now: Instant) -> (Attempt, J) {
    match scheduler.next(now) {
        NextAction::Start(attempt, job) => (attempt, job),
        other => panic!("no job starts: {other:?}"),
    }
}

#[test]
fn next_gives_the_lowest_free_slot() {
    let mut scheduler = Scheduler::new(config(|config| config.max_running = 3));
    let now = Instant::now();
    (0..5).for_each(|job| _ = scheduler.submit(job, 0));
    let started: Vec<_> = (0..3).map(|_| start(&mut scheduler, now)).collect();
    assert_eq!(started.iter().map(|(attempt, _)| attempt.slot).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(scheduler.next(now), NextAction::Full);
    scheduler.finish(started[1].0, 1, JobResult::Success, now);
    assert_eq!(start(&mut scheduler, now).0.slot, 2);
}

#[test]
fn failed_job_is_retried_after_a_growing_delay() {
    let retry = RetryPolicy::new().max_attempts(3).backoff(Duration::from_secs(1));
    let mut scheduler = Scheduler::new(config(|config| config.retry = retry));
    let mut now = Instant::now();
    scheduler.submit('x', 0);
    scheduler.close();
    for (attempt, delay) in [(1, 1), (2, 2)] {
        let (started, job) = start(&mut scheduler, now);
        assert_eq!(started.attempt, attempt);
        scheduler.finish(started, job, JobResult::Failure, now);
        assert_eq!(scheduler.next(now), NextAction::Later(now + Duration::from_secs(delay)));
        now += Duration::from_secs(delay);
    }
    let (attempt, job) = start(&mut scheduler, now);
    scheduler.finish(attempt, job, JobResult::Failure, now);
    assert_eq!((scheduler.next(now), scheduler.is_exhausted()), (NextAction::Finished, true));
    assert_eq!(scheduler.counts(), JobCounts { submitted: 1, failed: 1, retried: 2, ..JobCounts::default() });
}

#[test]
fn start_interval_limits_first_starts_alone() {
    let ms = Duration::from_millis;
    let options = |config: &mut SchedulerOptions| {
        (config.start_interval, config.max_running) = (ms(100), 9);
        config.retry = RetryPolicy::new().max_attempts(2);
    };
    let mut scheduler = Scheduler::new(config(options));
    let begin = Instant::now();
    for job in ["a", "b", "c", "d"] {
        scheduler.submit(job, 0);
    }
    let (attempt, job) = start(&mut scheduler, begin);
    assert_eq!(scheduler.next(begin), NextAction::Later(begin + ms(100)));
    scheduler.finish(attempt, job, JobResult::Failure, begin + ms(1));
    let (attempt, job) = start(&mut scheduler, begin + ms(1));
    assert_eq!((job, attempt.attempt), ("a", 2), "a later attempt waits for no turn");
    // The mean rate is kept when a start is a little late, and no burst follows a long pause.
    assert_eq!(start(&mut scheduler, begin + ms(105)).1, "b");
    let (attempt, job) = start(&mut scheduler, begin + ms(200));
    assert_eq!(job, "c");
    // A job that was put back was not started.
    scheduler.requeue(attempt, job);
    assert_eq!(start(&mut scheduler, begin + ms(300)).1, "c");
    assert_eq!(scheduler.next(begin + ms(300)), NextAction::Later(begin + ms(390)));
    assert_eq!(start(&mut scheduler, begin + ms(390)).1, "d");
}

#[test]
fn jobs_wait_for_their_key_without_holding_up_others() {
    let options = |config: &mut SchedulerOptions| (config.max_per_key, config.max_running) = (Some(2), 9);
    let mut scheduler = Scheduler::new(config(options));
    let now = Instant::now();
    for (job, key) in [("a1", 1), ("a2", 1), ("a3", 1), ("b1", 2), ("a4", 1)] {
        scheduler.submit_keyed(job, key, 0);
    }
    scheduler.submit("free", 0);
    let started: Vec<_> = (0..4).map(|_| start(&mut scheduler, now)).collect();
    assert_eq!(started.iter().map(|(_, job)| *job).collect::<Vec<_>>(), ["a1", "a2", "b1", "free"]);
    assert_eq!(scheduler.next(now), NextAction::Empty, "more jobs may have other keys");
    scheduler.close();
    scheduler.finish(started[2].0, "b1", JobResult::Success, now);
    assert_eq!(scheduler.next(now), NextAction::Empty, "no job of the first key has finished");
    scheduler.finish(started[0].0, "a1", JobResult::Success, now);
    let (third, job) = start(&mut scheduler, now);
    assert_eq!(job, "a3");
    // A start that did not happen keeps its place before the others of its key.
    scheduler.requeue(third, job);
    let (third, job) = start(&mut scheduler, now);
    assert_eq!((job, scheduler.next(now)), ("a3", NextAction::Empty));
    scheduler.finish(third, job, JobResult::Success, now);
    let (fourth, job) = start(&mut scheduler, now);
    assert_eq!(job, "a4");
    for (attempt, job) in [(fourth, "a4"), (started[1].0, "a2"), (started[3].0, "free")] {
        assert!(!scheduler.is_exhausted());
        scheduler.finish(attempt, job, JobResult::Success, now);
    }
    assert!(scheduler.is_exhausted());
}

#[test]
fn jobs_that_wait_for_their_key_are_limited() {
    let options = |config: &mut SchedulerOptions| (config.max_per_key, config.max_running) = (Some(1), 9);
    let mut scheduler = Scheduler::new(config(options));
    let now = Instant::now();
    let (first, _) = {
        scheduler.submit_keyed(0, 1, 0);
        start(&mut scheduler, now)
    };
    for job in 1..=WAITING_MAX {
        assert_eq!(scheduler.next(now), NextAction::Empty);
        scheduler.submit_keyed(job, 1, 0);
    }
    assert_eq!(scheduler.next(now), NextAction::Full);
    scheduler.submit_keyed(WAITING_MAX + 1, 1, 0);
    assert_eq!(scheduler.next(now), NextAction::Full);
    let mut running = first;
    for job in 0..=WAITING_MAX {
        scheduler.finish(running, job, JobResult::Success, now);
        let (next, number) = start(&mut scheduler, now);
        assert_eq!(number, job + 1, "in the order of the queue");
        running = next;
    }
}

#[test]
fn cost_decides_in_the_orders_by_cost() {
    for (order, expected) in
        [(QueueOrder::ShortestFirst, "bac"), (QueueOrder::LongestFirst, "cab"), (QueueOrder::Fifo, "abc")]
    {
        let mut scheduler = Scheduler::new(config(|config| (config.order, config.max_running) = (order, 9)));
        for (job, cost) in [('a', 5), ('b', 1), ('c', 9)] {
            scheduler.submit(job, cost);
        }
        let got: String = (0..3).map(|_| start(&mut scheduler, Instant::now()).1).collect();
        assert_eq!(got, expected, "{order:?}");
    }
}

#[test]
fn dependents_wait_and_are_skipped_after_a_failure() {
    let mut scheduler = Scheduler::new(config(|config| config.max_running = 9));
    let now = Instant::now();
    let first = scheduler.submit("first", 0);
    let second = scheduler.submit_after("second", &[first], 0).expect("the first was submitted");
    scheduler.submit_after("third", &[second], 0).expect("the second was submitted");
    scheduler.close();
    let (attempt, job) = start(&mut scheduler, now);
    assert_eq!(scheduler.next(now), NextAction::Empty);
    scheduler.finish(attempt, job, JobResult::Success, now);
    let (attempt, job) = start(&mut scheduler, now);
    assert_eq!(job, "second");
    scheduler.finish(attempt, job, JobResult::Failure, now);
    assert!(scheduler.is_exhausted());
    assert_eq!(
        scheduler.counts(),
        JobCounts { submitted: 3, succeeded: 1, failed: 1, skipped: 1, ..JobCounts::default() }
    );
}

#[test]
fn invalid_dependency_is_an_error_that_names_it() {
    let mut scheduler = Scheduler::new(SchedulerOptions::default());
    let now = Instant::now();
    let refuse = |scheduler: &mut Scheduler<char>, after: &[u64]| {
        let error = scheduler.submit_after('x', after, 0).expect_err("refused");
        assert_eq!(scheduler.counts().skipped, 0);
        error.to_string()
    };
    scheduler.submit('a', 0);
    let (attempt, job) = start(&mut scheduler, now);
    scheduler.finish(attempt, job, JobResult::Success, now);
    scheduler.submit('b', 0);
    assert_eq!(
        refuse(&mut scheduler, &[2, 0]),
        "cannot run job 3 after job 0: the first job has the number 1"
    );
    assert_eq!(refuse(&mut scheduler, &[3]), "cannot run job 3 after job 3: they are the same");
    assert_eq!(
        refuse(&mut scheduler, &[u64::MAX, 2]).rsplit(": ").next(),
        Some("job 18446744073709551615 is not submitted yet")
    );
    let forgotten = "cannot run job 3 after job 1: job 1 finished when no results were kept \
                     (call `keep_results` before it finishes)";
    assert_eq!(refuse(&mut scheduler, &[1]), forgotten);
    // From the first dependency on, results are kept. Nothing that was refused was added.
    let (attempt, job) = start(&mut scheduler, now);
    scheduler.finish(attempt, job, JobResult::Success, now);
    assert_eq!(scheduler.submit_after('c', &[2], 0), Ok(3));
    scheduler.close();
    assert_eq!(start(&mut scheduler, now).1, 'c');
    assert_eq!(scheduler.next(now), NextAction::Finished);
}

#[test]
fn job_that_depends_on_a_failed_one_is_skipped_however_late() {
    let mut scheduler = Scheduler::new(SchedulerOptions::default());
    let now = Instant::now();
    scheduler.keep_results();
    scheduler.submit('a', 0);
    let (attempt, job) = start(&mut scheduler, now);
    scheduler.finish(attempt, job, JobResult::Failure, now);
    assert_eq!(scheduler.submit_after('b', &[1], 0), Ok(2));
    assert_eq!(scheduler.submit_after('c', &[2], 0), Ok(3));
    scheduler.close();
    assert_eq!((scheduler.next(now), scheduler.counts().skipped), (NextAction::Finished, 2));
}

#[test]
#[should_panic(expected = "attempt 1 of job 1 does not run: its result was recorded, or it was put back")]
fn attempt_is_finished_once() {
    let mut scheduler = Scheduler::new(config(|config| config.max_running = 2));
    let now = Instant::now();
    (0..2).for_each(|job| _ = scheduler.submit(job, 0));
    let (attempt, job) = start(&mut scheduler, now);
    start(&mut scheduler, now);
    scheduler.finish(attempt, job, JobResult::Success, now);
    scheduler.finish(attempt, job, JobResult::Success, now);
}

#[test]
fn next_names_the_time_of_a_retry_while_no_other_job_waits() {
    let retry = RetryPolicy::new().max_attempts(2).backoff(Duration::from_secs(1));
    let mut scheduler = Scheduler::new(config(|config| config.retry = retry));
    let now = Instant::now();
    let due = now + Duration::from_secs(1);
    scheduler.submit('a', 0);
    let (attempt, job) = start(&mut scheduler, now);
    scheduler.finish(attempt, job, JobResult::Failure, now);
    assert_eq!(scheduler.next(now), NextAction::EmptyUntil(due));
    scheduler.set_paused(true);
    assert_eq!(scheduler.next(now), NextAction::EmptyUntil(due));
    assert_eq!(scheduler.next(due), NextAction::Paused);
    scheduler.set_paused(false);
    assert_eq!(start(&mut scheduler, due).1, 'a');
}

#[test]
fn requeued_job_runs_after_those_that_wait_in_every_order() {
    for order in [QueueOrder::Fifo, QueueOrder::ShortestFirst, QueueOrder::LongestFirst, QueueOrder::Random] {
        let mut scheduler = Scheduler::new(config(|config| config.order = order));
        let now = Instant::now();
        (0..3).for_each(|job| _ = scheduler.submit(job, 5));
        let (attempt, requeued) = start(&mut scheduler, now);
        scheduler.finish(attempt, requeued, JobResult::Requeue, now);
        for _ in 0..2 {
            let (attempt, job) = start(&mut scheduler, now);
            assert_ne!(job, requeued, "{order:?}");
            scheduler.finish(attempt, job, JobResult::Success, now);
        }
        assert_eq!(start(&mut scheduler, now).1, requeued);
    }
}

#[test]
fn long_chain_of_dependents_is_skipped() {
    const LENGTH: u64 = 200_000;
    let mut scheduler = Scheduler::new(SchedulerOptions::default());
    let now = Instant::now();
    let mut before = scheduler.submit((), 0);
    for _ in 1..LENGTH {
        before = scheduler.submit_after((), &[before], 0).expect("it was submitted");
    }
    scheduler.close();
    let (first, ()) = start(&mut scheduler, now);
    scheduler.finish(first, (), JobResult::Failure, now);
    assert_eq!(scheduler.next(now), NextAction::Finished);
    let JobCounts { failed, skipped, .. } = scheduler.counts();
    assert_eq!((failed, skipped), (1, LENGTH - 1));
}

#[test]
fn halt_stops_further_starts() {
    let halt = HaltPolicy { on: HaltTrigger::Failed, at: Threshold::Count(1), now: true };
    let mut scheduler = Scheduler::new(config(|config| (config.halt, config.max_running) = (Some(halt), 2)));
    let now = Instant::now();
    (0..9).for_each(|job| _ = scheduler.submit(job, 0));
    let (first_attempt, first_job) = start(&mut scheduler, now);
    let (second_attempt, second_job) = start(&mut scheduler, now);
    assert!(!scheduler.finish(first_attempt, first_job, JobResult::Success, now));
    assert!(
        scheduler.finish(second_attempt, second_job, JobResult::Failure, now),
        "the running jobs are to be killed"
    );
    assert_eq!((scheduler.next(now), scheduler.is_exhausted()), (NextAction::Finished, true));
    assert_eq!(scheduler.halted_by(), Some(HaltReason { on: HaltTrigger::Failed, now: true }));
}

/// Returns after how many finished jobs the halt takes effect. `results` has an `f` for each job
/// that fails.
fn halts_at(on: HaltTrigger, at: Threshold, total: Option<u64>, results: &str) -> Option<usize> {
    let halt = HaltPolicy { on, at, now: false };
    let mut scheduler = Scheduler::new(config(|config| config.halt = Some(halt)));
    let now = Instant::now();
    scheduler.set_total(total);
    (0..=results.len()).for_each(|job| _ = scheduler.submit(job, 0));
    for (index, result) in results.chars().enumerate() {
        let (attempt, job) = start(&mut scheduler, now);
        let outcome = if result == 'f' { JobResult::Failure } else { JobResult::Success };
        assert!(!scheduler.finish(attempt, job, outcome, now), "the running jobs continue");
        if scheduler.is_halted() {
            assert_eq!(scheduler.halted_by(), Some(HaltReason { on, now: false }));
            return Some(index + 1);
        }
    }
    assert_eq!(scheduler.halted_by(), None);
    None
}

#[test]
fn halt_takes_effect_at_a_count_or_percentage() {
    use {HaltTrigger::*, Threshold::*};
    assert_eq!(halts_at(Failed, Count(2), None, "sfsfs"), Some(4));
    assert_eq!(halts_at(Finished, Count(3), None, "sfsfs"), Some(3));
    assert_eq!(halts_at(Succeeded, Count(0), None, "ffsss"), Some(3), "not before a job was counted");
    // Of a known total.
    assert_eq!(halts_at(Failed, Percent(10), Some(20), "ssssfsfss"), Some(7));
    assert_eq!(halts_at(Failed, Percent(1), Some(20), "sfss"), Some(2));
    assert_eq!(halts_at(Finished, Percent(30), Some(20), "ffsssssss"), Some(6));
    assert_eq!(halts_at(Succeeded, Percent(100), Some(3), "sss"), Some(3));
    assert_eq!(halts_at(Failed, Percent(50), Some(u64::MAX), "ffff"), None);
    // Of the finished jobs.
    assert_eq!(halts_at(Failed, Percent(50), None, "ffsss"), Some(3));
    assert_eq!(halts_at(Failed, Percent(50), None, "sssff"), None);
    assert_eq!(halts_at(Failed, Percent(50), None, "sssfff"), Some(6));
    assert_eq!(halts_at(Finished, Percent(1), None, "sssfff"), None);
}

#[test]
fn starts_are_separated_by_the_delay() {
    let delay = Duration::from_secs(2);
    let mut scheduler = Scheduler::new(config(|config| (config.delay, config.max_running) = (delay, 9)));
    let now = Instant::now();
    (0..2).for_each(|job| _ = scheduler.submit(job, 0));
    let first = start(&mut scheduler, now);
    assert_eq!(scheduler.next(now), NextAction::Later(now + delay));
    let second = start(&mut scheduler, now + delay);
    assert_eq!(scheduler.next(now + delay), NextAction::Empty, "there may be no more jobs");
    scheduler.close();
    assert_eq!(scheduler.next(now + delay), NextAction::Finished);
    scheduler.finish(first.0, first.1, JobResult::Success, now);
    scheduler.finish(second.0, second.1, JobResult::Success, now);
    assert!(scheduler.is_exhausted());
}

#[test]
fn longest_delay_separates_starts() {
    let mut scheduler =
        Scheduler::new(config(|config| (config.delay, config.max_running) = (Duration::MAX, 9)));
    let now = Instant::now();
    (0..2).for_each(|job| _ = scheduler.submit(job, 0));
    start(&mut scheduler, now);
    assert!(matches!(scheduler.next(now), NextAction::Later(at) if at > now));
}

#[test]
fn delays_depend_on_jitter_and_seed() {
    let second = Duration::from_secs(1);
    let delays = |jitter, seed| {
        let retry = RetryPolicy::new().max_attempts(2).backoff(second).jitter(jitter);
        let mut scheduler = Scheduler::new(config(|config| {
            (config.retry, config.seed, config.max_running) = (retry, seed, 99)
        }));
        let now = Instant::now();
        let mut delays = Vec::new();
        for job in 0..50 {
            scheduler.submit(job, 0);
            let (attempt, job) = start(&mut scheduler, now);
            scheduler.finish(attempt, job, JobResult::Failure, now);
            let at = scheduler.retries.drain().next().expect("take the retry").0.0;
            delays.push(at - now);
        }
        delays
    };
    assert!(delays(0.0, 1).iter().chain(&delays(f64::NAN, 1)).all(|delay| *delay == second));
    let some = delays(0.25, 1);
    assert!(some.iter().all(|delay| (0.75..=1.25).contains(&delay.as_secs_f64())), "{some:?}");
    let shortest = some.iter().min().expect("find the shortest delay");
    let longest = some.iter().max().expect("find the longest delay");
    assert!(shortest.as_secs_f64() < 0.85 && longest.as_secs_f64() > 1.15, "{some:?}");
    assert_eq!(some, delays(0.25, 1));
    assert_ne!(some, delays(0.25, 2));
    assert!(delays(7.0, 1).iter().all(|delay| *delay <= 2 * second), "jitter is at most 1");
}

#[test]
fn paused_scheduler_starts_no_job_and_still_finishes() {
    let mut scheduler = Scheduler::new(config(|config| config.max_running = 9));
    let now = Instant::now();
    scheduler.set_paused(true);
    assert_eq!(scheduler.next(now), NextAction::Empty, "the caller finds out whether there is a job");
    scheduler.submit('a', 0);
    assert_eq!(scheduler.next(now), NextAction::Paused);
    scheduler.set_paused(false);
    let (attempt, job) = start(&mut scheduler, now);
    scheduler.set_paused(true);
    scheduler.close();
    assert_eq!(scheduler.next(now), NextAction::Finished);
    scheduler.finish(attempt, job, JobResult::Success, now);
    assert!(scheduler.is_exhausted());
}

#[test]
fn is_last_attempt_stays_valid_after_a_halt() {
    let retry = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
    let mut scheduler = Scheduler::new(config(|config| (config.retry, config.max_running) = (retry, 9)));
    let now = Instant::now();
    (0..2).for_each(|job| _ = scheduler.submit(job, 0));
    let (first_attempt, first_job) = start(&mut scheduler, now);
    let (second_attempt, second_job) = start(&mut scheduler, now);
    assert!(!scheduler.is_last_attempt(first_attempt));
    scheduler.halt();
    assert!(!scheduler.is_last_attempt(first_attempt) && scheduler.is_last_attempt(second_attempt));
    scheduler.finish(first_attempt, first_job, JobResult::Failure, now);
    scheduler.finish(second_attempt, second_job, JobResult::Failure, now);
    assert!(scheduler.is_exhausted());
    assert_eq!(scheduler.counts(), JobCounts { submitted: 2, failed: 1, ..JobCounts::default() });
}

proptest! {
    /// Never more than the maximum run at once, every job has one result, and no slot is used twice.
    #[test]
    fn every_job_is_counted_once(
        max_running in 1usize..6,
        jobs in 0u64..40,
        max_attempts in 1u32..4,
        after in prop::collection::vec((1u64..40, 1u64..40), 0..12),
        results in prop::collection::vec(0u8..4, 1..200),
    ) {
        let retry = RetryPolicy { max_attempts, ..RetryPolicy::default() };
        let mut scheduler = Scheduler::new(config(|config| {
            config.max_running = max_running;
            config.retry = retry;
        }));
        let now = Instant::now();
        for job in 1..=jobs {
            let on = after.iter().filter(|(from, to)| *to == job && from < to);
            let on: Vec<u64> = on.map(|(from, _)| *from).collect();
            scheduler.submit_after(job, &on, 0).expect("they were submitted");
        }
        scheduler.close();
        let mut running: Vec<(Attempt, u64)> = Vec::new();
        let mut starts = 0;
        for &result in results.iter().cycle() {
            match scheduler.next(now) {
                NextAction::Start(attempt, job) => {
                    starts += 1;
                    prop_assert!(running.iter().all(|(other, _)| other.slot != attempt.slot));
                    prop_assert!(attempt.slot as usize <= max_running && attempt.job == job);
                    if result == 3 { scheduler.requeue(attempt, job) } else { running.push((attempt, job)) }
                }
                NextAction::Finished if running.is_empty() => break,
                _ => {
                    prop_assert!(!running.is_empty(), "no job runs and none starts");
                    let (attempt, job) = running.swap_remove(usize::from(result) % running.len());
                    let outcome = if result == 0 { JobResult::Failure } else { JobResult::Success };
                    scheduler.finish(attempt, job, outcome, now);
                }
            }
            prop_assert!(running.len() <= max_running);
            prop_assert!(starts < 10_000, "the run does not end");
            if results.iter().all(|result| *result == 3) { break }
        }
        let counts = scheduler.counts();
        if scheduler.is_exhausted() {
            prop_assert_eq!(counts.succeeded + counts.failed + counts.skipped, jobs);
        }
    }
}
