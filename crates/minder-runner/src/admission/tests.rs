//! The policy with measurements of a test, and the monitor with a pool of the test.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use proptest::prelude::*;

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use super::metrics::{LimitDecision, Metrics};
use super::monitor::JobControl;
use super::policy::{PATIENCE, PERIOD};
use super::*;
use crate::conditions::{Conditions, Limit};

/// Measurements that a test sets.
#[derive(Clone, Debug, Default)]
struct FakeMetrics(Arc<Mutex<Given>>);

#[derive(Debug, Default)]
struct Given {
    load: f64,
    free: u64,
    swaps: minder_os::host_stats::SwapCounters,
    disk: Duration,
    answer: Option<LimitDecision>,
    asked: usize,
    fails: bool,
    unknown: bool,
    cannot_suspend: bool,
}

/// The memory of the test's machine.
const TOTAL: u64 = 1 << 40;

impl FakeMetrics {
    fn set(&self, change: impl FnOnce(&mut Given)) {
        change(&mut self.0.lock().expect("lock test state"));
    }

    fn get<T>(&self, value: impl FnOnce(&mut Given) -> T) -> io::Result<T> {
        let mut given = self.0.lock().expect("lock test state");
        match (given.unknown, given.fails) {
            (true, _) => Err(io::ErrorKind::Unsupported.into()),
            (_, true) => Err(io::ErrorKind::PermissionDenied.into()),
            _ => Ok(value(&mut given)),
        }
    }
}

impl Metrics for FakeMetrics {
    fn load(&mut self) -> io::Result<f64> {
        self.get(|given| given.load)
    }

    fn memory(&mut self) -> io::Result<minder_os::host_stats::Memory> {
        self.get(|given| minder_os::host_stats::Memory { available: given.free, total: TOTAL })
    }

    fn swaps(&mut self) -> io::Result<minder_os::host_stats::SwapCounters> {
        self.get(|given| given.swaps)
    }

    fn disks(&mut self) -> io::Result<HashMap<String, Duration>> {
        self.get(|given| HashMap::from([("vda".to_owned(), given.disk)]))
    }

    fn suspends(&self) -> bool {
        !self.0.lock().expect("lock test state").cannot_suspend
    }

    fn ask(&mut self, command: &str) -> (LimitDecision, Option<String>) {
        let mut given = self.0.lock().expect("lock test state");
        given.asked += 1;
        match given.answer {
            Some(answer) => (answer, None),
            None => (LimitDecision::Wait, Some(format!("{command} is odd"))),
        }
    }
}

fn policy(conditions: Conditions) -> (AdmissionPolicy, FakeMetrics) {
    let metrics = FakeMetrics::default();
    metrics.set(|given| given.free = TOTAL);
    (AdmissionPolicy::new(conditions, Box::new(metrics.clone())).expect("create policy"), metrics)
}

fn running(running: usize) -> Jobs {
    Jobs { running, suspended: 0, wanted: true }
}

fn suspended(running: usize, suspended: usize) -> Jobs {
    Jobs { running, suspended, wanted: true }
}

fn most(decision: Decision) -> usize {
    match decision {
        Decision::Start(room) => room.most,
        other => panic!("{other:?}"),
    }
}

#[test]
fn load_allows_as_many_starts_as_missing() {
    let (mut policy, metrics) = policy(Conditions { load: Some(8.0), ..Conditions::default() });
    let now = Instant::now();
    metrics.set(|given| given.load = 3.0);
    assert_eq!(most(policy.evaluate(now, running(2))), 7);
    metrics.set(|given| given.load = 7.0);
    assert_eq!(most(policy.evaluate(now, running(6))), 7);
    metrics.set(|given| given.load = 8.0);
    assert_eq!(policy.evaluate(now, running(7)), Decision::Wait(now + PERIOD));
    assert_eq!(policy.why(), Some("load 8 of 8"));
    metrics.set(|given| given.load = 7.9);
    assert_eq!(most(policy.evaluate(now, running(7))), 8);
    assert_eq!(policy.why(), None);
}

#[test]
fn foreign_load_does_not_hold_forever() {
    let (mut policy, metrics) = policy(Conditions { load: Some(1.0), ..Conditions::default() });
    let now = Instant::now();
    metrics.set(|given| given.load = 99.0);
    assert_eq!(policy.evaluate(now, running(0)), Decision::Wait(now + PERIOD));
    let late = now + PATIENCE;
    assert!(matches!(policy.evaluate(late - PERIOD, running(0)), Decision::Wait(_)));
    assert_eq!(policy.evaluate(late, running(0)), Decision::Start(Quota { most: 1, starts: 1 }));
    assert!(matches!(policy.evaluate(late + PERIOD, running(1)), Decision::Wait(_)));
    // The wait starts again here.
    assert!(matches!(policy.evaluate(late + PERIOD * 2, running(0)), Decision::Wait(_)));
    assert!(matches!(policy.evaluate(late + PATIENCE, running(0)), Decision::Wait(_)));
    assert!(matches!(policy.evaluate(late + PERIOD * 2 + PATIENCE, running(0)), Decision::Start(_)));
}

#[test]
fn memfree_holds_and_kills_below_half() {
    let (mut policy, metrics) = policy(Conditions { memfree: Some(1000), ..Conditions::default() });
    let now = Instant::now();
    for (free, jobs, expected) in [
        (10_999, 3, Decision::Start(Quota { most: 13, starts: usize::MAX })),
        (1000, 3, Decision::Start(Quota { most: 4, starts: usize::MAX })),
        (999, 3, Decision::Wait(now + PERIOD)),
        (500, 3, Decision::Wait(now + PERIOD)),
        (499, 3, Decision::Kill),
        (499, 2, Decision::Kill),
        (0, 1, Decision::Wait(now + PERIOD)),
        (0, 0, Decision::Wait(now + PERIOD)),
    ] {
        metrics.set(|given| given.free = free);
        assert_eq!(policy.evaluate(now, running(jobs)), expected, "{free} {jobs}");
    }
    // A condition on memory has no patience limit.
    assert!(matches!(policy.evaluate(now + PATIENCE * 10, running(0)), Decision::Wait(_)));
}

#[test]
fn memsuspend_suspends_all_but_one() {
    let (mut policy, metrics) = policy(Conditions { memsuspend: Some(1000), ..Conditions::default() });
    let now = Instant::now();
    let wait = Decision::Wait(now + PERIOD);
    for (free, jobs, expected) in [
        (2000, suspended(4, 0), Decision::Start(Quota::ALL)),
        (1999, suspended(4, 0), Decision::Suspend(1)),
        (1000, suspended(4, 2), Decision::Suspend(1)),
        (1000, suspended(4, 3), wait),
        (999, suspended(4, 0), Decision::Suspend(3)),
        (999, suspended(4, 1), Decision::Suspend(2)),
        (0, suspended(4, 3), wait),
        (0, suspended(3, 3), Decision::Resume),
        (2000, suspended(3, 2), Decision::Resume),
        (2000, suspended(1, 0), Decision::Start(Quota::ALL)),
        (0, suspended(0, 0), Decision::Start(Quota { most: 1, starts: usize::MAX })),
    ] {
        metrics.set(|given| given.free = free);
        assert_eq!(policy.evaluate(now, jobs), expected, "{free} {jobs:?}");
    }
}

#[test]
fn noswap_requires_swapping_both_ways() {
    let (mut policy, metrics) = policy(Conditions { noswap: true, ..Conditions::default() });
    let now = Instant::now();
    let mut at = (0..).map(|seconds| now + PERIOD * seconds);
    let mut look = |ins, outs| {
        metrics.set(|given| {
            given.swaps = minder_os::host_stats::SwapCounters { pages_in: ins, pages_out: outs }
        });
        policy.evaluate(at.next().expect("time"), running(1))
    };
    assert!(matches!(look(5, 5), Decision::Wait(_)), "nothing to compare with");
    assert_eq!(look(9, 5), Decision::Start(Quota::ALL));
    assert_eq!(look(9, 8), Decision::Start(Quota::ALL));
    assert!(matches!(look(10, 9), Decision::Wait(_)));
    assert_eq!(look(10, 9), Decision::Start(Quota::ALL));
}

#[test]
fn busy_disks_hold_starts() {
    let (mut policy, metrics) = policy(Conditions { limit: Some(Limit::Io(50.0)), ..Conditions::default() });
    let now = Instant::now();
    let mut look = |ms: u64, busy: u64| {
        metrics.set(|given| given.disk = Duration::from_millis(busy));
        policy.evaluate(now + Duration::from_millis(ms), running(3))
    };
    assert!(matches!(look(0, 1000), Decision::Wait(_)));
    assert!(matches!(look(100, 1001), Decision::Wait(_)), "too short to say anything");
    assert_eq!(most(look(1000, 1499)), 4);
    assert!(matches!(look(2000, 1999), Decision::Wait(_)));
    assert_eq!(most(look(3000, 2000)), 4);
}

#[test]
fn limit_command_runs_for_each_start() {
    let limit = Some(Limit::Command("ask".into()));
    let (mut policy, metrics) = policy(Conditions { limit, ..Conditions::default() });
    let now = Instant::now();
    let idle = Jobs { running: 1, suspended: 0, wanted: false };
    assert_eq!(policy.evaluate(now, idle), Decision::Start(Quota { most: usize::MAX, starts: 0 }));
    metrics.set(|given| assert_eq!(given.asked, 0));
    for (answer, jobs, expected) in [
        (Some(LimitDecision::Start), 1, Decision::Start(Quota { most: usize::MAX, starts: 1 })),
        (Some(LimitDecision::Wait), 1, Decision::Wait(now + PERIOD)),
        (Some(LimitDecision::Kill), 1, Decision::Kill),
        (Some(LimitDecision::Kill), 0, Decision::Wait(now + PERIOD)),
        (None, 0, Decision::Wait(now + PERIOD)),
    ] {
        metrics.set(|given| given.answer = answer);
        assert_eq!(policy.evaluate(now, running(jobs)), expected, "{answer:?}");
    }
    assert_eq!(policy.take_messages(), ["ask is odd"]);
    policy.evaluate(now, running(0));
    assert!(policy.take_messages().is_empty(), "reported before");
}

#[test]
fn impossible_condition_is_an_error_at_start() {
    let error = |conditions: Conditions, change: fn(&mut Given)| {
        let metrics = FakeMetrics::default();
        metrics.set(change);
        AdmissionPolicy::new(conditions, Box::new(metrics)).expect_err("create policy").to_string()
    };
    let unknown = |given: &mut Given| given.unknown = true;
    let none = Conditions::default;
    assert_eq!(
        error(Conditions { memfree: Some(1), ..none() }, unknown),
        "`--memfree` is not supported on this system"
    );
    assert_eq!(
        error(Conditions { load: Some(1.0), ..none() }, unknown),
        "`--load` is not supported on this system"
    );
    assert_eq!(
        error(Conditions { noswap: true, ..none() }, unknown),
        "`--noswap` is not supported on this system"
    );
    assert_eq!(
        error(Conditions { memsuspend: Some(1), ..none() }, |given| given.cannot_suspend = true),
        "`--memsuspend` is not supported on this system"
    );
    let limit = Some(Limit::Io(1.0));
    assert_eq!(
        error(Conditions { limit, ..none() }, unknown),
        "`--limit io` is not supported on this system"
    );
    assert_eq!(
        error(Conditions { memsuspend: Some(2 << 40), ..none() }, |_| ()),
        "--memsuspend: 2.0 TiB is more than the 1.0 TiB that this machine or its control group has"
    );
    let refused = |given: &mut Given| given.fails = true;
    assert_eq!(
        error(Conditions { load: Some(1.0), ..none() }, refused),
        "cannot check `--load`: permission denied"
    );
}

#[test]
fn failed_measurement_is_reported_once_and_holds_nothing() {
    let (mut policy, metrics) =
        policy(Conditions { load: Some(1.0), memfree: Some(1), ..Conditions::default() });
    metrics.set(|given| given.fails = true);
    assert_eq!(policy.evaluate(Instant::now(), running(3)), Decision::Start(Quota::ALL));
    assert_eq!(policy.evaluate(Instant::now(), running(3)), Decision::Start(Quota::ALL));
    assert_eq!(policy.take_messages().len(), 2);
}

/// Applies a decision to the jobs: starts, kills and suspensions take effect at once.
fn apply(decision: Decision, jobs: &mut Jobs, slots: usize) -> usize {
    match decision {
        Decision::Start(room) => {
            let more = room.most.min(slots).saturating_sub(jobs.running).min(room.starts);
            jobs.running += more;
            return more;
        }
        Decision::Kill => jobs.running -= 1,
        Decision::Suspend(count) => jobs.suspended += count,
        Decision::Resume => jobs.suspended -= 1,
        Decision::Wait(_) => (),
    }
    0
}

proptest! {
    /// With constant measurements, decisions change direction at most once, apart from the patience
    /// with a foreign load; and at least one job progresses.
    #[test]
    fn constant_measurements_do_not_alternate_decisions(
        load in proptest::option::of(0.01_f64..20.0),
        memfree in proptest::option::of(1_u64..1000),
        memsuspend in proptest::option::of(1_u64..1000),
        metrics in (0.0_f64..20.0, 0_u64..3000),
        jobs in 0_usize..12,
    ) {
        let (mut policy, given) = policy(Conditions { load, memfree, memsuspend, ..Conditions::default() });
        given.set(|it| (it.load, it.free) = metrics);
        let now = Instant::now();
        let mut jobs = running(jobs);
        let mut kinds = Vec::new();
        for second in 0..60 {
            let at = now + PERIOD * second;
            let decision = policy.evaluate(at, jobs);
            match decision {
                Decision::Kill => prop_assert!(jobs.running > 1),
                Decision::Suspend(count) => prop_assert!(count > 0 && jobs.running - jobs.suspended > count),
                Decision::Resume => prop_assert!(jobs.suspended > 0),
                Decision::Wait(until) => prop_assert!(until > at && policy.why().is_some()),
                Decision::Start(_) => prop_assert!(policy.why().is_none()),
            }
            apply(decision, &mut jobs, 20);
            prop_assert!(jobs.suspended == 0 || jobs.suspended < jobs.running);
            kinds.push(std::mem::discriminant(&decision));
        }
        kinds.dedup();
        prop_assert!(kinds.len() <= 4, "{:?}", kinds);
    }

    /// For any number of slots: a load that shows jobs a second late exceeds the limit by at most
    /// one evaluation's starts.
    #[test]
    fn late_load_is_exceeded_by_one_evaluation_at_most(limit in 1_usize..50, slots in 1_usize..1000) {
        let (mut policy, given) = policy(Conditions { load: Some(limit as f64), ..Conditions::default() });
        let now = Instant::now();
        let mut jobs = running(0);
        for second in 0..10 {
            given.set(|it| it.load = jobs.running as f64);
            let decision = policy.evaluate(now + PERIOD * second, jobs);
            apply(decision, &mut jobs, slots);
            prop_assert!(jobs.running <= limit);
        }
        prop_assert_eq!(jobs.running, limit.min(slots));
    }
}

/// A job pool that records calls.
#[derive(Debug)]
struct FakePool {
    calls: Mutex<mpsc::Sender<&'static str>>,
    running: AtomicUsize,
}

impl FakePool {
    fn new(running: usize) -> (Arc<Self>, mpsc::Receiver<&'static str>) {
        let (sender, receiver) = mpsc::channel();
        (Arc::new(Self { calls: sender.into(), running: running.into() }), receiver)
    }

    fn record_call(&self, what: &'static str) {
        // The receiver is gone at the end of a test.
        let _ = self.calls.lock().expect("lock test state").send(what);
    }
}

impl JobControl for FakePool {
    fn jobs(&self) -> Jobs {
        Jobs { running: self.running.load(Ordering::SeqCst), ..Jobs::default() }
    }

    fn set_paused(&self, held: bool) {
        self.record_call(if held { "hold" } else { "go" });
    }

    fn kill_youngest(&self) {
        self.record_call("kill");
    }

    fn suspend_youngest(&self) {
        self.record_call("suspend");
    }

    fn resume_oldest(&self) {
        self.record_call("resume");
    }

    fn warn(&self, _line: &str) {
        self.record_call("tell");
    }
}

fn wait_for(receiver: &mpsc::Receiver<&'static str>, invocation: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(rest) {
            Ok(heard) if heard == invocation => return,
            Ok(_) => (),
            Err(_) => panic!("no {invocation}"),
        }
    }
}

#[test]
fn monitor_decides_each_start_without_waiting_for_period() {
    let limit = Some(Limit::Command("ask".into()));
    let (policy, metrics) = policy(Conditions { limit, ..Conditions::default() });
    metrics.set(|given| given.answer = Some(LimitDecision::Start));
    let (pool, calls) = FakePool::new(0);
    let begun = Instant::now();
    let policies = AdmissionMonitor::start(policy, pool, Arc::default()).expect("start monitor");
    let mut started = 0;
    while started < 100 {
        while !policies.admit(started) {
            wait_for(&calls, "go");
        }
        started += 1;
    }
    metrics.set(|given| assert_eq!(given.asked, 100));
    assert!(begun.elapsed() < PERIOD * 50);
}

#[test]
fn monitor_pauses_kills_and_resumes() {
    let (policy, metrics) = policy(Conditions { memfree: Some(1000), ..Conditions::default() });
    metrics.set(|given| given.free = 100);
    let (pool, calls) = FakePool::new(2);
    let policies = AdmissionMonitor::start(policy, pool, Arc::default()).expect("start monitor");
    wait_for(&calls, "hold");
    wait_for(&calls, "kill");
    assert!(!policies.admit(2));
    assert_eq!(policies.why().as_deref(), Some("too little memory is free"));
    metrics.set(|given| given.free = 5000);
    wait_for(&calls, "go");
    assert!(policies.admit(2) && policies.admit(6) && !policies.admit(7));
    assert_eq!(policies.why(), None);
    drop(policies);
    wait_for(&calls, "go");
}

#[test]
fn admit_allows_all_without_conditions_and_jobserver() {
    let admission = AdmissionController::default();
    assert!(admission.admit(0).is_some() && admission.admit(usize::MAX).is_some());
}
