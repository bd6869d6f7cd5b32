//! Random runs against a model: each item is finished once or comes back, and the degree holds.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The number of random runs, and that with `MINDER_LONG=1`. Wine is slow, and the threads are the
/// same there.
const RUNS: u32 = if cfg!(windows) { 500 } else { 2_000 };
const RUNS_LONG: u32 = 10_000;

/// The behaviour of an item at each attempt, and its cost.
#[derive(Clone, Debug)]
struct Plan {
    failures: u32,
    panics: bool,
    cost: u64,
    yields: u32,
}

#[derive(Clone, Debug)]
struct Run {
    plans: Vec<Plan>,
    degree: usize,
    is_serial: bool,
    order: QueueOrder,
    attempts: u32,
    /// Stop when this number of items is finished.
    stop_after: Option<usize>,
    halt_after: Option<u64>,
    /// Indexes of the plans, each the dependency of a later one.
    edges: Option<Vec<(usize, usize)>>,
    threads: Option<usize>,
}

fn runs() -> impl Strategy<Value = Run> {
    let plan = (0..3_u32, prop::bool::weighted(0.1), 0..9_u64, 0..3_u32)
        .prop_map(|(failures, panics, cost, yields)| Plan { failures, panics, cost, yields });
    let orders = [QueueOrder::Fifo, QueueOrder::ShortestFirst, QueueOrder::LongestFirst, QueueOrder::Random];
    let limits = (
        prop::option::weighted(0.2, 0..20_usize),
        prop::option::weighted(0.2, 1..6_u64),
        prop::option::weighted(0.1, 0..3_usize),
    );
    (prop::collection::vec(plan, 0..24), 1..6_usize, any::<bool>(), 0..orders.len(), 1..4_u32, limits)
        .prop_flat_map(|(plans, degree, is_serial, order, attempts, limits)| {
            (
                Just(plans.clone()),
                prop::option::weighted(0.3, prop::collection::vec((0..24_usize, 0..24_usize), 0..24)),
                Just((degree, is_serial, order, attempts, limits)),
            )
        })
        .prop_map(move |(plans, edges, (degree, is_serial, order, attempts, limits))| {
            let forward = |(a, b): (usize, usize)| (a.min(b), a.max(b));
            let edges = edges.map(|edges| {
                let edges = edges.into_iter().map(forward);
                edges.filter(|(first, second)| first < second && *second < plans.len()).collect()
            });
            let (stop_after, halt_after, threads) = limits;
            let order = orders[order];
            Run { plans, degree, is_serial, order, attempts, stop_after, halt_after, edges, threads }
        })
}

/// An item that records what happens to it.
struct Item<'a> {
    index: usize,
    plan: Plan,
    attempts: u32,
    running: &'a AtomicUsize,
    degree: usize,
    log: &'a Mutex<Vec<Step>>,
}

/// The steps of a run, in one order for all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Started(usize),
    Ended(usize),
    /// The finisher was called and has returned this.
    Finished(usize, ControlFlow<()>),
}

impl Task for Item<'_> {
    type Output = Result<usize, usize>;

    fn process(&mut self) -> Self::Output {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(running <= self.degree, "{running} items run");
        self.log.lock().expect("no panic with the lock").push(Step::Started(self.index));
        self.attempts += 1;
        (0..self.plan.yields).for_each(|_| thread::yield_now());
        self.log.lock().expect("no panic with the lock").push(Step::Ended(self.index));
        self.running.fetch_sub(1, Ordering::SeqCst);
        if self.plan.panics {
            resume_unwind(Box::new(self.index));
        }
        if self.attempts > self.plan.failures { Ok(self.index) } else { Err(self.index) }
    }

    fn cost(&self) -> u64 {
        self.plan.cost
    }

    fn result(&self, output: &Self::Output) -> JobResult {
        if output.is_ok() { JobResult::Success } else { JobResult::Failure }
    }
}

/// The end of an item.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Failed,
    Panicked,
    NotFinished,
    NotRun,
    NotRead,
}

fn check(run: &Run) -> Result<(), TestCaseError> {
    let retry = RetryPolicy::new().max_attempts(run.attempts);
    let halt = run.halt_after.map(|count| HaltPolicy::new(HaltTrigger::Failed, Threshold::Count(count)));
    let config = SchedulerOptions::new().max_running(run.degree).order(run.order).retry(retry).halt(halt);
    let executor = Executor::with_config(config).on_caller(run.is_serial).fault_threads(run.threads);
    let degree = if run.is_serial { 1 } else { run.degree };
    let running = AtomicUsize::new(0);
    let log = Mutex::new(Vec::new());
    let items = run.plans.iter().enumerate().map(|(index, plan)| Item {
        index,
        plan: plan.clone(),
        attempts: 0,
        running: &running,
        degree,
        log: &log,
    });
    let mut ends = BTreeMap::new();
    let mut twice = None;
    let mut finished = 0;
    let finisher = |item: Item<'_>, result: Result<Result<usize, usize>, _>| {
        let end = match result {
            Ok(Ok(index)) if index == item.index => End::Succeeded,
            Ok(Err(index)) if index == item.index => End::Failed,
            _ => End::Panicked,
        };
        if ends.insert(item.index, (end, item.attempts)).is_some() {
            twice = Some(item.index);
        }
        finished += 1;
        let is_last = run.stop_after.is_some_and(|count| finished >= count);
        let answer = if is_last { ControlFlow::Break(()) } else { CONTINUE };
        log.lock().expect("no panic with the lock").push(Step::Finished(item.index, answer));
        answer
    };
    let summary = match &run.edges {
        Some(edges) => executor.run_task_graph(items, edges.iter().copied(), finisher).expect("no cycle"),
        None => executor.run_tasks(items, finisher),
    };
    prop_assert_eq!(twice, None, "finished twice");
    for item in &summary.not_run {
        prop_assert!(ends.insert(item.index, (End::NotRun, item.attempts)).is_none(), "both");
    }
    for item in &summary.not_finished {
        prop_assert!(ends.insert(item.index, (End::NotFinished, item.attempts)).is_none(), "both");
    }
    let may_stop = run.stop_after.is_some() || run.halt_after.is_some();
    for (index, plan) in run.plans.iter().enumerate() {
        let (end, attempts) = ends.remove(&index).unwrap_or((End::NotRead, 0));
        let will_succeed = plan.failures < run.attempts;
        match end {
            End::Panicked => prop_assert!(plan.panics && attempts == 1),
            End::Succeeded => prop_assert!(!plan.panics && will_succeed && attempts == plan.failures + 1),
            // A failure is final earlier if the run is stopped.
            End::Failed => prop_assert!(!plan.panics && (attempts == run.attempts || may_stop)),
            End::NotFinished => prop_assert!(run.stop_after.is_some() && attempts > 0),
            End::NotRun => prop_assert!(may_stop || run.edges.is_some()),
            End::NotRead => {
                prop_assert!(may_stop && run.order == QueueOrder::Fifo && run.edges.is_none());
            }
        }
    }
    check_log(run, degree, &log.into_inner().expect("no panic with the lock"), may_stop)
}

/// Checks the order of starts: dependencies, the costs where one item runs at a time, and the stop.
fn check_log(run: &Run, degree: usize, log: &[Step], may_stop: bool) -> Result<(), TestCaseError> {
    let last = |step| log.iter().rposition(|other| *other == step);
    let first = |step| log.iter().position(|other| *other == step);
    for (before, after) in run.edges.iter().flatten() {
        if let Some(started) = first(Step::Started(*after)) {
            prop_assert!(last(Step::Finished(*before, CONTINUE)).is_some_and(|finished| finished < started));
            prop_assert!(run.plans[*before].failures < run.attempts && !run.plans[*before].panics);
        }
    }
    let calls = log.iter().filter(|step| matches!(step, Step::Finished(..)));
    prop_assert!(
        calls.rev().skip(1).all(|step| matches!(step, Step::Finished(_, ControlFlow::Continue(()))))
    );
    let never_retries = run.plans.iter().all(|plan| plan.failures == 0 || plan.panics) || run.attempts == 1;
    if degree == 1 && run.edges.is_none() && never_retries && !may_stop {
        let mut expected: Vec<_> = (0..run.plans.len()).collect();
        match run.order {
            QueueOrder::ShortestFirst => expected.sort_by_key(|index| run.plans[*index].cost),
            QueueOrder::LongestFirst => expected.sort_by_key(|index| 9 - run.plans[*index].cost),
            QueueOrder::Fifo => (),
            _ => return Ok(()),
        }
        let started: Vec<_> = log
            .iter()
            .filter_map(|step| match step {
                Step::Started(index) => Some(*index),
                _ => None,
            })
            .collect();
        prop_assert_eq!(started, expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if crate::support::is_long() { RUNS_LONG } else { RUNS },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn each_item_is_finished_once_or_comes_back(run in runs()) {
        check(&run)?;
    }
}
