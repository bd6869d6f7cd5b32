//! The schedule by hand, and against a model.

use proptest::prelude::*;

use super::*;

fn rules(change: impl FnOnce(&mut SchedulerConfig)) -> SchedulerConfig {
    let mut rules = SchedulerConfig::default();
    change(&mut rules);
    rules
}

fn start<J: std::fmt::Debug>(schedule: &mut Scheduler<J>, now: Instant) -> (Attempt, J) {
    match schedule.next(now) {
        NextAction::Start(start, job) => (start, job),
        other => panic!("nothing starts: {other:?}"),
    }
}

#[test]
fn slots_are_the_lowest_free() {
    let mut schedule = Scheduler::new(rules(|rules| rules.max_running = 3));
    let now = Instant::now();
    (0..5).for_each(|job| _ = schedule.submit(job, &[], 0));
    let started: Vec<_> = (0..3).map(|_| start(&mut schedule, now)).collect();
    assert_eq!(started.iter().map(|(start, _)| start.slot).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(schedule.next(now), NextAction::Full);
    schedule.finish(started[1].0, 1, JobResult::Success, now);
    assert_eq!(start(&mut schedule, now).0.slot, 2);
}

#[test]
fn a_failed_job_comes_again_after_a_growing_pause() {
    let retry = RetryPolicy { max_attempts: 3, backoff: Duration::from_secs(1), ..RetryPolicy::default() };
    let mut schedule = Scheduler::new(rules(|rules| rules.retry = retry));
    let mut now = Instant::now();
    schedule.submit('x', &[], 0);
    schedule.close();
    for (attempt, pause) in [(1, 1), (2, 2)] {
        let (begun, job) = start(&mut schedule, now);
        assert_eq!(begun.attempt, attempt);
        schedule.finish(begun, job, JobResult::Failure, now);
        assert_eq!(schedule.next(now), NextAction::Later(now + Duration::from_secs(pause)));
        now += Duration::from_secs(pause);
    }
    let (begun, job) = start(&mut schedule, now);
    schedule.finish(begun, job, JobResult::Failure, now);
    assert_eq!((schedule.next(now), schedule.is_exhausted()), (NextAction::Finished, true));
    assert_eq!(schedule.counts(), JobCounts { submitted: 1, failed: 1, retried: 2, ..JobCounts::default() });
}

#[test]
fn cost_decides_where_it_is_asked_for() {
    for (order, expected) in
        [(QueueOrder::ShortestFirst, "bac"), (QueueOrder::LongestFirst, "cab"), (QueueOrder::Fifo, "abc")]
    {
        let mut schedule = Scheduler::new(rules(|rules| (rules.order, rules.max_running) = (order, 9)));
        for (job, cost) in [('a', 5), ('b', 1), ('c', 9)] {
            schedule.submit(job, &[], cost);
        }
        let got: String = (0..3).map(|_| start(&mut schedule, Instant::now()).1).collect();
        assert_eq!(got, expected, "{order:?}");
    }
}

#[test]
fn dependents_wait_and_are_skipped_with_their_own_dependents() {
    let mut schedule = Scheduler::new(rules(|rules| rules.max_running = 9));
    let now = Instant::now();
    let first = schedule.submit("first", &[], 0);
    let second = schedule.submit("second", &[first], 0);
    schedule.submit("third", &[second], 0);
    schedule.close();
    let (begun, job) = start(&mut schedule, now);
    assert_eq!(schedule.next(now), NextAction::Empty);
    schedule.finish(begun, job, JobResult::Success, now);
    let (begun, job) = start(&mut schedule, now);
    assert_eq!(job, "second");
    schedule.finish(begun, job, JobResult::Failure, now);
    assert!(schedule.is_exhausted());
    assert_eq!(
        schedule.counts(),
        JobCounts { submitted: 3, succeeded: 1, failed: 1, skipped: 1, ..JobCounts::default() }
    );
}

#[test]
fn a_chain_of_any_length_is_skipped() {
    const LENGTH: u64 = 200_000;
    let mut schedule = Scheduler::new(SchedulerConfig::default());
    let now = Instant::now();
    let mut before = schedule.submit((), &[], 0);
    for _ in 1..LENGTH {
        before = schedule.submit((), &[before], 0);
    }
    schedule.close();
    let (first, ()) = start(&mut schedule, now);
    schedule.finish(first, (), JobResult::Failure, now);
    assert_eq!(schedule.next(now), NextAction::Finished);
    let JobCounts { failed, skipped, .. } = schedule.counts();
    assert_eq!((failed, skipped), (1, LENGTH - 1));
}

#[test]
fn halting_starts_nothing_more() {
    let halt = HaltPolicy { on: HaltTrigger::Failed, at: Threshold::Count(1), now: true };
    let mut schedule = Scheduler::new(rules(|rules| (rules.halt, rules.max_running) = (Some(halt), 2)));
    let now = Instant::now();
    (0..9).for_each(|job| _ = schedule.submit(job, &[], 0));
    let (first, second) = (start(&mut schedule, now), start(&mut schedule, now));
    assert!(!schedule.finish(first.0, first.1, JobResult::Success, now));
    assert!(schedule.finish(second.0, second.1, JobResult::Failure, now), "those that run are to be ended");
    assert_eq!((schedule.next(now), schedule.is_exhausted()), (NextAction::Finished, true));
    assert_eq!(schedule.halted_by(), Some(HaltReason { on: HaltTrigger::Failed, now: true }));
}

/// At which number of ended jobs the halt comes, if `fates` says which fail.
fn halts_at(on: HaltTrigger, at: Threshold, total: Option<u64>, fates: &str) -> Option<usize> {
    let halt = HaltPolicy { on, at, now: false };
    let mut schedule = Scheduler::new(rules(|rules| rules.halt = Some(halt)));
    let now = Instant::now();
    schedule.set_total(total);
    (0..=fates.len()).for_each(|job| _ = schedule.submit(job, &[], 0));
    for (place, fate) in fates.chars().enumerate() {
        let (begun, job) = start(&mut schedule, now);
        let verdict = if fate == 'f' { JobResult::Failure } else { JobResult::Success };
        assert!(!schedule.finish(begun, job, verdict, now), "it was not to be now");
        if schedule.is_halted() {
            assert_eq!(schedule.halted_by(), Some(HaltReason { on, now: false }));
            return Some(place + 1);
        }
    }
    assert_eq!(schedule.halted_by(), None);
    None
}

#[test]
fn halts_come_at_a_count_or_a_share() {
    use {HaltTrigger::*, Threshold::*};
    assert_eq!(halts_at(Failed, Count(2), None, "sfsfs"), Some(4));
    assert_eq!(halts_at(Finished, Count(3), None, "sfsfs"), Some(3));
    assert_eq!(halts_at(Succeeded, Count(0), None, "ffsss"), Some(3), "not before one did");
    // Of a known total.
    assert_eq!(halts_at(Failed, Percent(10), Some(20), "ssssfsfss"), Some(7));
    assert_eq!(halts_at(Failed, Percent(1), Some(20), "sfss"), Some(2));
    assert_eq!(halts_at(Finished, Percent(30), Some(20), "ffsssssss"), Some(6));
    assert_eq!(halts_at(Succeeded, Percent(100), Some(3), "sss"), Some(3));
    assert_eq!(halts_at(Failed, Percent(50), Some(u64::MAX), "ffff"), None);
    // Of those that ended.
    assert_eq!(halts_at(Failed, Percent(50), None, "ffsss"), Some(3));
    assert_eq!(halts_at(Failed, Percent(50), None, "sssff"), None);
    assert_eq!(halts_at(Failed, Percent(50), None, "sssfff"), Some(6));
    assert_eq!(halts_at(Finished, Percent(1), None, "sssfff"), None);
}

#[test]
fn starts_keep_their_distance() {
    let delay = Duration::from_secs(2);
    let mut schedule = Scheduler::new(rules(|rules| (rules.delay, rules.max_running) = (delay, 9)));
    let now = Instant::now();
    (0..2).for_each(|job| _ = schedule.submit(job, &[], 0));
    let first = start(&mut schedule, now);
    assert_eq!(schedule.next(now), NextAction::Later(now + delay));
    let second = start(&mut schedule, now + delay);
    assert_eq!(schedule.next(now + delay), NextAction::Empty, "there may be no more, and then nobody waits");
    schedule.close();
    assert_eq!(schedule.next(now + delay), NextAction::Finished);
    schedule.finish(first.0, first.1, JobResult::Success, now);
    schedule.finish(second.0, second.1, JobResult::Success, now);
    assert!(schedule.is_exhausted());
}

#[test]
fn pauses_differ_by_the_jitter_and_the_seed() {
    let second = Duration::from_secs(1);
    let pauses = |jitter, seed| {
        let retry = RetryPolicy { max_attempts: 2, backoff: second, jitter, ..RetryPolicy::default() };
        let mut schedule =
            Scheduler::new(rules(|rules| (rules.retry, rules.seed, rules.max_running) = (retry, seed, 99)));
        let now = Instant::now();
        let mut pauses = Vec::new();
        for job in 0..50 {
            schedule.submit(job, &[], 0);
            let (begun, job) = start(&mut schedule, now);
            schedule.finish(begun, job, JobResult::Failure, now);
            let at = schedule.retries.drain().next().expect("another attempt").0.0;
            pauses.push(at - now);
        }
        pauses
    };
    assert!(pauses(0.0, 1).iter().chain(&pauses(f64::NAN, 1)).all(|pause| *pause == second));
    let some = pauses(0.25, 1);
    assert!(some.iter().all(|pause| (0.75..=1.25).contains(&pause.as_secs_f64())), "{some:?}");
    let (least, most) = (some.iter().min().expect("one"), some.iter().max().expect("one"));
    assert!(least.as_secs_f64() < 0.85 && most.as_secs_f64() > 1.15, "{some:?}");
    assert_eq!(some, pauses(0.25, 1));
    assert_ne!(some, pauses(0.25, 2));
    assert!(pauses(7.0, 1).iter().all(|pause| *pause <= 2 * second), "a jitter of one at most");
}

#[test]
fn while_held_nothing_starts_and_the_end_is_told() {
    let mut schedule = Scheduler::new(rules(|rules| rules.max_running = 9));
    let now = Instant::now();
    schedule.set_paused(true);
    assert_eq!(schedule.next(now), NextAction::Empty, "whether there is a job at all is to be found out");
    schedule.submit('a', &[], 0);
    assert_eq!(schedule.next(now), NextAction::Paused);
    schedule.set_paused(false);
    let (begun, job) = start(&mut schedule, now);
    schedule.set_paused(true);
    schedule.close();
    assert_eq!(schedule.next(now), NextAction::Finished);
    schedule.finish(begun, job, JobResult::Success, now);
    assert!(schedule.is_exhausted());
}

#[test]
fn a_promise_of_another_attempt_holds() {
    let retry = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
    let mut schedule = Scheduler::new(rules(|rules| (rules.retry, rules.max_running) = (retry, 9)));
    let now = Instant::now();
    (0..2).for_each(|job| _ = schedule.submit(job, &[], 0));
    let (first, second) = (start(&mut schedule, now), start(&mut schedule, now));
    assert!(!schedule.is_last_attempt(first.0));
    schedule.halt();
    assert!(!schedule.is_last_attempt(first.0) && schedule.is_last_attempt(second.0));
    schedule.finish(first.0, first.1, JobResult::Failure, now);
    schedule.finish(second.0, second.1, JobResult::Failure, now);
    assert!(schedule.is_exhausted());
    assert_eq!(schedule.counts(), JobCounts { submitted: 2, failed: 1, ..JobCounts::default() });
}

proptest! {
    /// Whatever happens: never more than the degree at once, every job to exactly one end, every slot once.
    #[test]
    fn every_job_comes_to_one_end(
        degree in 1usize..6,
        jobs in 0u64..40,
        attempts_max in 1u32..4,
        after in prop::collection::vec((1u64..40, 1u64..40), 0..12),
        fates in prop::collection::vec(0u8..4, 1..200),
    ) {
        let retry = RetryPolicy { max_attempts: attempts_max, ..RetryPolicy::default() };
        let mut schedule = Scheduler::new(rules(|rules| (rules.max_running, rules.retry) = (degree, retry)));
        let now = Instant::now();
        for job in 1..=jobs {
            let on: Vec<u64> = after.iter().filter(|(_, to)| *to == job).map(|(from, _)| *from).collect();
            schedule.submit(job, &on, 0);
        }
        schedule.close();
        let mut running: Vec<(Attempt, u64)> = Vec::new();
        let mut starts = 0;
        for &fate in fates.iter().cycle() {
            match schedule.next(now) {
                NextAction::Start(start, job) => {
                    starts += 1;
                    prop_assert!(running.iter().all(|(other, _)| other.slot != start.slot));
                    prop_assert!(start.slot as usize <= degree && start.job == job);
                    if fate == 3 { schedule.requeue(start, job) } else { running.push((start, job)) }
                }
                NextAction::Finished if running.is_empty() => break,
                _ => {
                    prop_assert!(!running.is_empty(), "nothing runs and nothing starts");
                    let (start, job) = running.swap_remove(usize::from(fate) % running.len());
                    let verdict = if fate == 0 { JobResult::Failure } else { JobResult::Success };
                    schedule.finish(start, job, verdict, now);
                }
            }
            prop_assert!(running.len() <= degree);
            prop_assert!(starts < 10_000, "it does not end");
            if fates.iter().all(|fate| *fate == 3) { break }
        }
        let counts = schedule.counts();
        if schedule.is_exhausted() {
            prop_assert_eq!(counts.succeeded + counts.failed + counts.skipped, jobs);
        }
    }
}
