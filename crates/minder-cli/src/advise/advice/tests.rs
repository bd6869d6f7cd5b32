//! Advice for runs that are made up.

use super::*;
use std::time::Duration;

use minder_record::event::{AttemptFinished, AttemptHost, JobFinished};

/// A run of jobs with these wall, CPU and queue times, that took `elapsed` on two processors.
struct Recorded {
    facts: RunFacts,
    host: AttemptHost,
    end: AttemptFinished,
}

impl Recorded {
    fn new(slots: u64, elapsed: f64, jobs: &[(f64, f64, f64)]) -> Self {
        let mut facts = RunFacts::default();
        facts.begin_attempt();
        for (index, (wall, cpu, ready)) in jobs.iter().enumerate() {
            facts.add_job(&JobFinished {
                job: index as u64 + 1,
                at: index as f64,
                wall: *wall,
                user: Some(*cpu),
                system: Some(0.0),
                ready: Some(*ready),
                rss: Some(100 << 20),
                exit: Some(0),
                ..JobFinished::default()
            });
        }
        let cpu: f64 = jobs.iter().map(|(_, cpu, _)| cpu).sum();
        let end = AttemptFinished {
            elapsed,
            cpu_busy: Some(cpu),
            cpu_idle: Some((2.0 * elapsed - cpu).max(0.0)),
            own_rss: Some(10 << 20),
            ..AttemptFinished::default()
        };
        let host = AttemptHost { slots, cpus: 2, memory: Some(4 << 30) };
        Self { facts, host, end }
    }

    fn advice(mut self) -> Advice {
        self.facts.set_host(self.host);
        self.facts.add_end(self.end);
        self.facts.complete();
        advise(&self.facts, 64).expect("give advice")
    }
}

fn assert_near(value: f64, expected: f64, part: f64) {
    assert!((value - expected).abs() <= part * expected, "{value}, not {expected}");
}

#[test]
fn computing_jobs_get_as_many_slots_as_processors() {
    // 1 to 20 s of work, eight at once on two processors: four times as long as alone.
    let jobs: Vec<_> = (1..=20).map(|n| (f64::from(n) * 4.0, f64::from(n), f64::from(n) * 3.0)).collect();
    let advice = Recorded::new(8, 105.0, &jobs).advice();
    assert_eq!((advice.advised.slots, advice.limit), (2, Limit::Processors));
    assert_near(advice.cpu_part.0, 1.0, 0.01);
    assert_eq!(advice.cpu_part.0, advice.cpu_part.1);
    assert_near(advice.serial.elapsed, 210.0, 0.01);
    assert_near(advice.as_run.elapsed, 105.0, 0.05);
    assert_near(advice.advised.elapsed, 110.0, 0.06);
    assert_eq!(advice.busy, Some(1.0));
    let other = advice.other.expect("order matters");
    let (shortest, longest) = match advice.advised.order {
        Order::Shortest => (advice.advised, other),
        _ => (other, advice.advised),
    };
    assert!(shortest.mean < advice.as_run.mean / 1.5 && shortest.mean < longest.mean / 2.0);
    assert!(longest.elapsed <= shortest.elapsed);
    assert!(advice.error >= ERROR_MIN && advice.error < 0.2, "{}", advice.error);
    assert_eq!(advice.own, [1.0, 10.0, 20.0]);
}

#[test]
fn waiting_jobs_all_run_at_once() {
    let advice = Recorded::new(2, 50.0, &[(10.0, 0.0, 0.0); 10]).advice();
    assert_eq!((advice.advised.slots, advice.limit), (10, Limit::Jobs));
    assert_near(advice.advised.elapsed, 10.0, 0.001);
    assert_near(advice.serial.elapsed, 100.0, 0.001);
    assert_near(advice.as_run.elapsed, 50.0, 0.001);
    assert!(advice.doubts.contains(&Doubt::MoreWaiting));
    // All are equally long.
    assert_eq!((advice.advised.order, advice.other), (Order::Given, None));
    assert_near(advice.advised.mean, 1.0, 0.001);
}

#[test]
fn mixed_jobs_get_cores_divided_by_the_cpu_part() {
    let advice = Recorded::new(2, 250.0, &[(10.0, 5.0, 0.0); 50]).advice();
    assert_eq!(advice.limit, Limit::Processors);
    // Four would do if the jobs took turns.
    assert!((4..=9).contains(&advice.advised.slots), "{}", advice.advised.slots);
    assert!(advice.advised.elapsed < 160.0 && advice.advised.elapsed > 125.0);
}

#[test]
fn processors_that_other_programs_used_do_not_limit_jobs_that_wait() {
    for (cpu, others) in [(1.0, 89), (0.0, 95)] {
        let mut recorded = Recorded::new(2, 50.0, &[(10.0, cpu, 0.0); 10]);
        recorded.end.cpu_busy = Some(99.0);
        recorded.end.cpu_idle = Some(1.0);
        let advice = recorded.advice();
        assert_eq!((advice.advised.slots, advice.limit), (10, Limit::Jobs));
        assert!(advice.doubts.contains(&Doubt::OtherPrograms(others)), "{:?}", advice.doubts);
    }
}

#[test]
fn no_more_slots_than_used_if_the_jobs_used_the_processors() {
    let advice = Recorded::new(1, 25.0, &[(5.0, 10.0, 0.0); 5]).advice();
    assert_eq!((advice.advised.slots, advice.limit), (1, Limit::Busy));
    assert!(!advice.doubts.iter().any(|doubt| matches!(doubt, Doubt::OtherPrograms(_))));
}

#[test]
fn jobs_that_did_not_run_and_were_ended_early_count() {
    // 40 jobs of 200 that wait, 8 at once. The run was terminated, or killed.
    let recorded = |end: bool, total: Option<u64>| {
        let mut recorded = Recorded::new(8, 5.0, &[(1.0, 0.0, 0.0); 32]);
        recorded.end.why = Some("interrupted".to_owned());
        (recorded.end.cut, recorded.end.not_run) = (8, total.is_some().then_some(160));
        recorded.facts.set_request(total, Duration::ZERO);
        recorded.facts.set_host(recorded.host);
        if end {
            recorded.facts.add_end(recorded.end);
        }
        recorded.facts.complete();
        advise(&recorded.facts, 64).expect("give advice")
    };
    let terminated = recorded(true, Some(200));
    assert_eq!((terminated.slots, terminated.advised.slots, terminated.limit), (8, 200, Limit::Jobs));
    assert_eq!((terminated.recorded, terminated.ended_early, terminated.not_run), (32, 8, Some(160)));
    assert_eq!((terminated.jobs, terminated.simulated, terminated.total), (32, 200, Some(200)));
    assert_near(terminated.as_run.elapsed, 25.0, 0.001);
    assert_near(terminated.serial.elapsed, 200.0, 0.001);
    assert_eq!((terminated.measured, terminated.measured_whole()), (Some(5.0), None));
    assert!(terminated.error > 0.4, "{}", terminated.error);
    assert!(terminated.doubts.contains(&Doubt::NotRun), "{:?}", terminated.doubts);
    let killed = recorded(false, Some(200));
    assert_eq!((killed.advised.slots, killed.ended_early, killed.not_run), (200, 0, Some(168)));
    // How many jobs there are is not known.
    let unknown = recorded(false, None);
    assert_eq!((unknown.slots, unknown.advised.slots, unknown.total), (8, 32, None));
    assert!(unknown.error >= 0.5, "{}", unknown.error);
}

#[test]
fn no_fewer_slots_because_jobs_did_not_end_by_themselves() {
    let run = |total: Option<u64>, early: bool| {
        let mut recorded = Recorded::new(40, 1.2, &[(0.2, 0.0, 0.0); 2]);
        for job in 3..=if early { 81 } else { 2 } {
            recorded.facts.add_job(&JobFinished {
                job,
                at: 2.0,
                wall: 0.5,
                user: Some(0.0),
                system: Some(0.0),
                ready: Some(0.0),
                rss: Some(1 << 20),
                timed_out: true,
                ..JobFinished::default()
            });
        }
        recorded.facts.set_request(total, Duration::ZERO);
        if !early {
            recorded.end.why = Some("its output was closed".to_owned());
        }
        recorded.advice()
    };
    let early = run(Some(81), true);
    assert_eq!((early.slots, early.advised.slots, early.ended_early), (40, 81, 79));
    assert_near(early.serial.elapsed, 0.4 + 79.0 * 0.5, 0.001);
    assert!(early.error > 0.4 && early.doubts.contains(&Doubt::EndedEarly), "{}", early.error);
    let unknown = run(None, false);
    assert_eq!((unknown.slots, unknown.advised.slots), (40, 40));
}

#[test]
fn cpu_part_is_a_range_if_nothing_tells_who_had_the_processors() {
    // Shells whose children computed, while other programs ran: the main thread tells nothing.
    let with = |busy: f64| {
        let mut recorded = Recorded::new(2, 5.0, &[]);
        for job in 1..=10 {
            recorded.facts.add_job(&JobFinished {
                job,
                at: job as f64,
                wall: 1.0,
                user: Some(0.13),
                system: Some(0.0),
                ready: Some(0.001),
                main: Some(0.001),
                rss: Some(1 << 20),
                exit: Some(0),
                ..JobFinished::default()
            });
        }
        (recorded.end.cpu_busy, recorded.end.cpu_idle) = (Some(10.0 * busy), Some(10.0 * (1.0 - busy)));
        recorded.advice()
    };
    let busy = with(1.0);
    assert_near(busy.cpu_part.0, 0.13, 0.01);
    assert_near(busy.cpu_part.1, 1.0, 0.01);
    assert_eq!((busy.advised.slots, busy.limit), (2, Limit::BusyByOthers));
    assert!(busy.error > 0.5, "{}", busy.error);
    let idle = with(0.5);
    assert_eq!(idle.cpu_part.0, idle.cpu_part.1);
}

#[test]
fn delay_between_starts_is_predicted() {
    let mut recorded = Recorded::new(4, 1.05, &[(0.05, 0.0, 0.0); 6]);
    recorded.facts.set_request(Some(6), Duration::from_millis(200));
    let advice = recorded.advice();
    assert_near(advice.as_run.elapsed, 1.05, 0.001);
    assert_near(advice.advised.elapsed, 1.05, 0.001);
    assert!(!advice.doubts.iter().any(|doubt| matches!(doubt, Doubt::Model(_))));
    // Each job has ended when the next one starts.
    assert_eq!((advice.advised.slots, advice.limit), (4, Limit::Delay));
    let mut recorded = Recorded::new(2, 50.0, &[(10.0, 0.0, 0.0); 10]);
    recorded.facts.set_request(Some(10), Duration::from_secs(2));
    let advice = recorded.advice();
    assert_eq!((advice.advised.slots, advice.limit), (5, Limit::Delay));
    assert_near(advice.advised.elapsed, 28.0, 0.001);
}

#[test]
fn memory_limits_only_where_it_is_the_jobs_own() {
    let with = |own, memory| {
        let mut recorded = Recorded::new(2, 50.0, &[(10.0, 0.0, 0.0); 10]);
        recorded.end.own_rss = own;
        recorded.host.memory = memory;
        let advice = recorded.advice();
        (advice.advised.slots, advice.limit, advice.memory.is_some())
    };
    assert_eq!(with(Some(1 << 20), Some(350 << 20)), (3, Limit::Memory, true));
    assert_eq!(with(Some(1 << 20), Some(10 << 20)), (1, Limit::Memory, true));
    assert_eq!(with(Some(1 << 20), Some(9000 << 20)), (10, Limit::Jobs, true));
    // Minder is as large as the jobs, which may be smaller.
    assert_eq!(with(Some(100 << 20), Some(350 << 20)), (10, Limit::Jobs, false));
    assert_eq!(with(None, Some(350 << 20)), (10, Limit::Jobs, false));
    assert_eq!(with(Some(1 << 20), None), (10, Limit::Jobs, false));
}

#[test]
fn old_records_give_a_wider_range() {
    let jobs: Vec<_> = (1..=20).map(|n| (f64::from(n) * 2.0, f64::from(n), f64::from(n))).collect();
    let new = Recorded::new(4, 105.0, &jobs).advice();
    let mut facts = RunFacts::default();
    facts.begin_attempt();
    for (index, (wall, cpu, _)) in jobs.iter().enumerate() {
        facts.add_job(&JobFinished {
            job: index as u64,
            at: index as f64 * 5.0,
            wall: *wall,
            user: Some(*cpu),
            system: Some(0.0),
            rss: Some(1 << 20),
            ..JobFinished::default()
        });
    }
    facts.add_end(AttemptFinished { elapsed: 105.0, ..AttemptFinished::default() });
    facts.complete();
    let old = advise(&facts, 2).expect("give advice");
    assert_eq!(old.advised.slots, 2);
    assert!(old.error > new.error, "{} {}", old.error, new.error);
    for doubt in [Doubt::Queue, Doubt::Machine, Doubt::Slots, Doubt::Processors] {
        assert!(old.doubts.contains(&doubt) && !new.doubts.contains(&doubt), "{doubt:?}");
    }
}

#[test]
fn nothing_is_advised_without_jobs_or_times() {
    let mut facts = RunFacts::default();
    assert_eq!(advise(&facts, 2).err(), Some(Unadvisable::NoJob));
    let job = JobFinished { job: 1, wall: 1.0, ..JobFinished::default() };
    facts.add_job(&job);
    assert_eq!(advise(&facts, 2).err(), Some(Unadvisable::OneJob));
    facts.add_job(&JobFinished { job: 2, ..job });
    assert_eq!(advise(&facts, 2).err(), Some(Unadvisable::NoCpuTimes));
}

#[test]
fn jobs_get_more_than_other_programs_left_if_the_run_was_faster() {
    // One core of two is free, by the sum; but the jobs waited half of their time, and others
    // then used the processors.
    let mut recorded = Recorded::new(2, 50.0, &[(10.0, 5.0, 0.0); 10]);
    recorded.end.cpu_busy = Some(100.0);
    recorded.end.cpu_idle = Some(0.0);
    let advice = recorded.advice();
    assert_near(advice.as_run.elapsed, 50.0, 0.03);
    assert!(advice.doubts.contains(&Doubt::OtherPrograms(50)) && advice.error > 0.1);
}

/// Five jobs slept 0.1 to 0.5 s, while other programs used the processors. Of the first `unknown`,
/// how long they were ready is not known: their main thread did little of the work.
fn sleeping_with_other_programs(unknown: usize) -> Advice {
    let jobs = [0.1, 0.2, 0.3, 0.4, 0.5].map(|wall| (wall, 0.002, 0.01));
    let mut recorded = Recorded::new(2, 0.9, &jobs);
    recorded.facts = RunFacts::default();
    recorded.facts.begin_attempt();
    for (index, (wall, cpu, ready)) in jobs.into_iter().enumerate() {
        recorded.facts.add_job(&JobFinished {
            job: index as u64 + 1,
            at: index as f64,
            wall,
            user: Some(cpu),
            system: Some(0.0),
            ready: Some(ready),
            main: (index < unknown).then_some(cpu / 4.0),
            rss: Some(1 << 20),
            exit: Some(0),
            ..JobFinished::default()
        });
    }
    recorded.end.cpu_busy = Some(1.8);
    recorded.end.cpu_idle = Some(0.0);
    recorded.advice()
}

#[test]
fn sleeping_jobs_wait_while_other_programs_are_busy() {
    let known = sleeping_with_other_programs(0);
    assert!(!known.doubts.contains(&Doubt::Queue), "{:?}", known.doubts);
    assert_eq!((known.advised.slots, known.limit), (5, Limit::Jobs));
    let mut error = known.error;
    for unknown in [1, 3, 5] {
        let advice = sleeping_with_other_programs(unknown);
        assert_near(advice.serial.elapsed, known.serial.elapsed, 0.1);
        assert_near(advice.own[0], 0.1, 0.15);
        assert_near(advice.own[2], 0.5, 0.1);
        assert_eq!((advice.advised.slots, advice.limit), (2, Limit::BusyByOthers), "{unknown}");
        assert!(advice.doubts.contains(&Doubt::Queue), "{unknown}: {:?}", advice.doubts);
        // The more jobs, the less is known.
        assert!(advice.error > error, "{unknown}: {} {error}", advice.error);
        error = advice.error;
    }
}

#[test]
fn short_gaps_between_jobs_are_learned() {
    // 2,000 jobs of 1 ms at once took 2.6 s on one slot: 0.3 ms between two jobs.
    let advice = Recorded::new(1, 2.6, &[(0.001, 0.001, 0.0); 2000]).advice();
    assert_near(advice.as_run.elapsed, 2.6, 0.001);
    // A run that waited for its input is not explained by gaps.
    let slow = Recorded::new(1, 26.0, &[(0.001, 0.001, 0.0); 2000]).advice();
    assert_near(slow.as_run.elapsed, 2.0, 0.001);
    assert!(slow.doubts.iter().any(|doubt| matches!(doubt, Doubt::Model(_))) && slow.error > 0.5);
}
