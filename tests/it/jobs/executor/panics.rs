//! Panics of the caller's code: each is kept, and none ends or blocks a run.

use super::*;

#[test]
fn panic_of_an_item_reaches_its_finisher_and_harms_no_other() {
    let mut panics = Vec::new();
    let processor = |number: &mut u32| {
        if *number % 10 == 3 {
            resume_unwind(Box::new(*number));
        }
    };
    let summary = Executor::new(3).run(0..30, processor, |number, result| {
        if let Err(panic) = result {
            assert_eq!(panic.message(), None, "the payload is a number");
            panics.push(number);
        }
        CONTINUE
    });
    panics.sort_unstable();
    assert_eq!(panics, [3, 13, 23]);
    assert_eq!((summary.counts.succeeded, summary.counts.failed), (27, 3));
    let payload = catch_unwind(AssertUnwindSafe(|| summary.resume_first_panic())).expect_err("it panics");
    assert!(payload.downcast_ref::<u32>().is_some_and(|number| panics.contains(number)));
}

#[test]
fn panic_of_the_iterator_ends_the_items_and_is_kept() {
    let items = (0..10).map(|number| if number == 4 { resume_unwind(Box::new("broken")) } else { number });
    for executor in [Executor::serial(), Executor::new(2)] {
        let mut finished = Vec::new();
        let summary = executor.run(
            items.clone(),
            |_| (),
            |number, _| {
                finished.push(number);
                CONTINUE
            },
        );
        finished.sort_unstable();
        assert_eq!(finished, [0, 1, 2, 3]);
        assert_eq!(summary.first_panic.as_ref().and_then(|panic| panic.message()), Some("broken"));
    }
}

/// The threads are blocked, because nothing takes their results any more.
#[test]
fn panic_of_the_finisher_is_passed_on_after_the_items_have_ended() {
    let running = AtomicUsize::new(0);
    let processed = AtomicUsize::new(0);
    let run = || {
        let processor = |_: &mut usize| {
            running.fetch_add(1, Ordering::SeqCst);
            processed.fetch_add(1, Ordering::SeqCst);
            running.fetch_sub(1, Ordering::SeqCst);
        };
        Executor::new(4).run(0..1_000_000, processor, |_, _| {
            if processed.load(Ordering::SeqCst) > RESULTS_MAX / 2 {
                resume_unwind(Box::new("finisher"));
            }
            CONTINUE
        })
    };
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("the panic is passed on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"finisher"));
    assert_eq!(running.into_inner(), 0);
    assert!(processed.into_inner() < 1_000_000, "the rest was not started");
}

/// An iterator of three items that panics where its number says so.
struct Panicking {
    left: u32,
    in_size_hint: bool,
    in_drop: bool,
}

impl Iterator for Panicking {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        Some(self.left)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        assert!(!(self.in_size_hint && self.left < 3), "size_hint");
        (0, None)
    }
}

impl Drop for Panicking {
    fn drop(&mut self) {
        if self.in_drop && !thread::panicking() {
            panic!("drop");
        }
    }
}

#[test]
fn panic_of_an_iterator_that_is_asked_for_its_size_or_dropped_is_kept() {
    let text = |panic: &minder::jobs::TaskPanic| panic.message().map(str::to_owned);
    for executor in [Executor::new(3), Executor::serial()] {
        let items = Panicking { left: 3, in_size_hint: false, in_drop: true };
        let summary = executor.run(items, |_| (), |_, _| CONTINUE);
        assert_eq!(summary.counts.succeeded, 3);
        assert_eq!(summary.first_panic.as_ref().and_then(text).as_deref(), Some("drop"));

        let items = Panicking { left: 3, in_size_hint: false, in_drop: true };
        let summary = executor.run(items, |_| (), |_, _| ControlFlow::Break(()));
        assert!(summary.is_stopped);
        assert_eq!(summary.first_panic.as_ref().and_then(text).as_deref(), Some("drop"));
    }
    // The item that was read is still processed.
    let items = Panicking { left: 3, in_size_hint: true, in_drop: false };
    let summary = Executor::new(3).run(items, |_| (), |_, _| CONTINUE);
    assert_eq!(summary.counts.succeeded, 1);
    assert_eq!(summary.first_panic.as_ref().and_then(text).as_deref(), Some("size_hint"));
}

#[test]
fn panic_of_the_iterator_is_kept_in_every_order() {
    let items = (0..4_u32).map(|number| if number == 2 { panic!("no more") } else { number });
    let executor = Executor::with_config(SchedulerOptions::new().order(QueueOrder::LongestFirst));
    let mut finished = Vec::new();
    let finisher = |number, _| {
        finished.push(number);
        CONTINUE
    };
    let summary = executor.run_by_cost(items, |number| u64::from(*number), |_| (), finisher);
    assert_eq!(finished, [1, 0]);
    assert_eq!(
        summary.first_panic.and_then(|panic| panic.message().map(str::to_owned)).as_deref(),
        Some("no more")
    );
}

/// Has no cost that can be known.
struct Priceless;

impl Task for Priceless {
    type Output = ();

    fn process(&mut self) {}

    fn cost(&self) -> u64 {
        panic!("priceless")
    }
}

#[test]
fn panic_of_a_cost_is_kept_and_its_item_runs() {
    let executor = Executor::with_config(SchedulerOptions::new().order(QueueOrder::ShortestFirst));
    let summary = executor.run_tasks([Priceless, Priceless], |_, _| CONTINUE);
    assert_eq!(summary.counts.succeeded, 2);
    assert_eq!(summary.first_panic.as_ref().and_then(|panic| panic.message()), Some("priceless"));
}

#[test]
fn panic_of_a_cost_closure_loses_no_item_in_any_order() {
    let orders = [QueueOrder::Fifo, QueueOrder::Random, QueueOrder::ShortestFirst, QueueOrder::LongestFirst];
    for order in orders {
        for is_serial in [false, true] {
            let config = SchedulerOptions::new().max_running(2).order(order);
            let executor = Executor::with_config(config).on_caller(is_serial);
            let cost = |number: &u64| if *number == 2 { panic!("priceless") } else { *number };
            let mut finished = Vec::new();
            let finisher = |number, _| {
                finished.push(number);
                CONTINUE
            };
            let summary = executor.run_by_cost(0..5, cost, |_| (), finisher);
            finished.sort_unstable();
            assert_eq!(finished, [0, 1, 2, 3, 4], "{order:?}");
            assert_eq!((summary.counts.succeeded, summary.not_run.len()), (5, 0), "{order:?}");
            if matches!(order, QueueOrder::ShortestFirst | QueueOrder::LongestFirst) {
                let panic = summary.first_panic.as_ref().and_then(|panic| panic.message());
                assert_eq!(panic, Some("priceless"));
            }
        }
    }
}

#[test]
fn items_before_a_panic_of_the_iterator_are_finished_or_returned() {
    let items = (0..10).map(|number| if number == 6 { resume_unwind(Box::new("broken")) } else { number });
    for order in [QueueOrder::Fifo, QueueOrder::LongestFirst] {
        let executor = Executor::with_config(SchedulerOptions::new().max_running(2).order(order));
        let mut seen = Vec::new();
        let finisher = |number, _| {
            seen.push(number);
            if seen.len() == 2 { ControlFlow::Break(()) } else { CONTINUE }
        };
        let summary = executor.run(items.clone(), |_| (), finisher);
        assert_eq!(seen.len(), 2);
        seen.extend(summary.not_finished.iter().chain(&summary.not_run));
        assert_eq!(summary.counts.submitted, seen.len() as u64, "{order:?}");
        seen.sort_unstable();
        // Each is there once, without a gap. After the stop the iterator is asked no more.
        assert!(seen.len() <= 6 && seen.iter().copied().eq(0..seen.len()), "{order:?}: {seen:?}");
        assert!(order == QueueOrder::Fifo || seen.len() == 6, "{seen:?}");
    }
}

/// An output whose first drop panics.
struct Fragile(bool);

impl Drop for Fragile {
    fn drop(&mut self) {
        if self.0 {
            panic!("an output that is not wanted");
        }
    }
}

/// Fails once.
struct FailsOnce(bool);

impl Task for FailsOnce {
    type Output = Fragile;

    fn process(&mut self) -> Fragile {
        Fragile(!std::mem::replace(&mut self.0, true))
    }

    fn result(&self, output: &Fragile) -> JobResult {
        if output.0 { JobResult::Failure } else { JobResult::Success }
    }
}

#[test]
fn panic_of_an_output_that_is_dropped_for_a_retry_is_kept() {
    let config = SchedulerOptions::new().retry(RetryPolicy::new().max_attempts(2));
    let summary = Executor::with_config(config).run_tasks([FailsOnce(false)], |_, _| CONTINUE);
    assert_eq!((summary.counts.succeeded, summary.counts.retried), (1, 1));
    assert!(summary.first_panic.is_some());
}

/// A panic whose payload panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        if !thread::panicking() {
            std::panic::panic_any(Self);
        }
    }
}

#[test]
fn panics_of_payloads_end_the_run() {
    struct Items(u32);
    impl Iterator for Items {
        type Item = u32;
        fn next(&mut self) -> Option<u32> {
            self.0 += 1;
            if self.0 == 3 { std::panic::panic_any(Grenade) } else { Some(self.0) }
        }
    }
    impl Drop for Items {
        fn drop(&mut self) {
            std::panic::panic_any(Grenade);
        }
    }
    let (succeeded, panic) = bounded(|| {
        let summary = Executor::new(2).run(Items(0), |_| (), |_, _| CONTINUE);
        (summary.counts.succeeded, summary.first_panic)
    });
    assert_eq!(succeeded, 2);
    let payload = panic.and_then(minder::jobs::TaskPanic::into_payload).expect("the first panic is kept");
    assert!(payload.is::<Grenade>());
    std::mem::forget(payload);
}
