//! Items on threads: who runs what where, and that nothing is lost.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use minder::jobs::{
    Executor, HaltPolicy, HaltTrigger, JobResult, QueueOrder, RetryPolicy, SchedulerOptions, Task, Threshold,
};

use crate::support::{nap, patience};

mod model;
mod panics;

const CONTINUE: ControlFlow<()> = ControlFlow::Continue(());

/// The most results that the documentation says wait for the finisher.
const RESULTS_MAX: usize = 4096;

#[test]
fn finisher_runs_on_the_callers_thread_one_at_a_time_in_order_of_completion() {
    let caller = thread::current().id();
    let completed = Mutex::new(Vec::new());
    let mut finished = Vec::new();
    let processor = |number: &mut u32| {
        assert_ne!(thread::current().id(), caller);
        completed.lock().expect("no panic").push(*number);
    };
    // One thread, so that the order of completion is the order of the list.
    let summary = Executor::new(1).run(0..1000, processor, |number, result| {
        result.expect("no panic");
        assert_eq!(thread::current().id(), caller);
        finished.push(number);
        CONTINUE
    });
    assert_eq!(finished, *completed.lock().expect("no panic"));
    assert_eq!((finished.len(), summary.counts.succeeded, summary.threads), (1000, 1000, 1));
}

#[test]
fn finisher_runs_while_other_items_are_processed() {
    let (finished, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    // The second item ends only after the first was finished.
    let processor = |number: &mut u32| {
        if *number == 1 {
            let timeout = patience() - Instant::now();
            wait.lock().expect("no panic").recv_timeout(timeout).expect("the first item is finished");
        }
    };
    let summary = Executor::new(2).run(0..2, processor, |number, result| {
        result.expect("no panic");
        finished.send(number).expect("the receiver lives");
        CONTINUE
    });
    assert_eq!(summary.counts.succeeded, 2);
}

#[test]
fn degree_is_reached_and_never_exceeded() {
    const DEGREE: usize = 5;
    let running = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let all = Barrier::new(DEGREE);
    let processor = |_: &mut usize| {
        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(now, Ordering::SeqCst);
        all.wait(); // returns when as many run as may run
        running.fetch_sub(1, Ordering::SeqCst);
    };
    let summary = Executor::new(DEGREE).run(0..DEGREE * 10, processor, |_, _| CONTINUE);
    assert_eq!((most.into_inner(), summary.threads), (DEGREE, DEGREE));
    assert!(!summary.lacks_threads);
}

#[test]
fn threads_are_started_on_demand_and_no_more_than_items() {
    let threads = |degree, items: u32| Executor::new(degree).run(0..items, |_| (), |_, _| CONTINUE).threads;
    assert_eq!(threads(25, 0), 0);
    assert_eq!(threads(25, 1), 1);
    assert!((1..=3).contains(&threads(25, 3)));
    assert!((1..=4).contains(&threads(4, 100)));
    assert_eq!(Executor::new(0).run([1], |_| (), |_, _| CONTINUE).threads, 1, "at least one");
}

/// An iterator of five items whose size hint says that there are none.
struct Understated(std::ops::Range<u32>);

impl Iterator for Understated {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(0))
    }
}

#[test]
fn every_item_runs_when_the_size_hint_denies_them() {
    let timed = SchedulerOptions::new().max_running(3).retry(RetryPolicy::new().max_attempts(2));
    let random = SchedulerOptions::new().max_running(3).order(QueueOrder::Random);
    for executor in [
        Executor::serial(),
        Executor::new(1),
        Executor::new(3),
        Executor::with_config(timed),
        Executor::with_config(random),
    ] {
        let mut finished = Vec::new();
        let finisher = |number, _| {
            finished.push(number);
            CONTINUE
        };
        let summary = executor.run(Understated(0..5), |_| (), finisher);
        finished.sort_unstable();
        assert_eq!(finished, [0, 1, 2, 3, 4], "{executor:?}");
        assert_eq!((summary.counts.submitted, summary.counts.succeeded), (5, 5), "{executor:?}");
        assert!(summary.not_run.is_empty());
        // Stopped at the first one.
        let summary = executor.run(Understated(0..5), |_| (), |_, _| ControlFlow::Break(()));
        let ended = summary.counts.succeeded + summary.not_run.len() as u64;
        assert_eq!(summary.counts.submitted, ended, "{executor:?}");
        assert!(summary.is_stopped, "{executor:?}");
    }
}

#[test]
fn serial_form_does_the_same_on_the_callers_thread() {
    let caller = thread::current().id();
    for executor in [Executor::serial(), Executor::new(7).on_caller(true)] {
        let mut events = Vec::new();
        let log = Mutex::new(&mut events);
        let processor = |number: &mut i32| {
            assert_eq!(thread::current().id(), caller);
            log.lock().expect("no panic").push(*number);
            *number * 10
        };
        let summary = executor.run(1..=3, processor, |_, result| {
            log.lock().expect("no panic").push(result.expect("no panic"));
            CONTINUE
        });
        assert_eq!((summary.threads, summary.counts.succeeded), (0, 3));
        assert_eq!(events, [1, 10, 2, 20, 3, 30]);
    }
}

#[test]
fn items_are_read_when_a_thread_is_free() {
    const DEGREE: usize = 2;
    let read = AtomicUsize::new(0);
    let items = (0..1_000_000).inspect(|_| _ = read.fetch_add(1, Ordering::SeqCst));
    let mut finished = 0;
    let mut most = 0;
    let summary = Executor::new(DEGREE).run(
        items,
        |_| (),
        |_, _| {
            finished += 1;
            most = most.max(read.load(Ordering::SeqCst) - finished);
            CONTINUE
        },
    );
    assert_eq!((finished, summary.counts.succeeded), (1_000_000, 1_000_000));
    assert!(most <= RESULTS_MAX + DEGREE, "{most} items were read ahead");
}

#[test]
fn slow_finisher_stops_the_threads_until_there_is_room() {
    const DEGREE: usize = 2;
    let read = AtomicUsize::new(0);
    let changed = Condvar::new();
    let lock = Mutex::new(());
    let items = (0..10_000).inspect(|_| {
        read.fetch_add(1, Ordering::SeqCst);
        drop(lock.lock());
        changed.notify_all();
    });
    let mut finished = 0;
    Executor::new(DEGREE).run(
        items,
        |_| (),
        |_, _| {
            if finished == 0 {
                // All threads end up waiting for room. One more item is read by each of them at most.
                let full = |_: &mut ()| read.load(Ordering::SeqCst) < RESULTS_MAX / 2 + DEGREE;
                let guard = lock.lock().expect("no panic");
                let timeout = patience() - Instant::now();
                let waited = changed.wait_timeout_while(guard, timeout, full).expect("no panic");
                assert!(!waited.1.timed_out(), "the queue never filled");
            }
            finished += 1;
            CONTINUE
        },
    );
    assert_eq!(finished, 10_000);
}

/// Runs `test` on another thread, and fails if it takes too long.
fn bounded<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || done.send(test()));
    wait.recv_timeout(patience() - Instant::now()).expect("the run ends")
}

#[test]
fn results_are_finished_while_a_thread_waits_in_the_iterator() {
    // Each item comes from the finisher of the one before. Items succeed, fail, and panic in turn.
    let finished = bounded(|| {
        let (sender, items) = mpsc::channel();
        sender.send(0).expect("the receiver lives");
        let mut sender = Some(sender);
        let mut finished = Vec::new();
        Executor::new(2).run(
            items,
            |number: &mut u32| {
                // By now the other thread waits in the iterator.
                thread::yield_now();
                assert!(!number.is_multiple_of(2), "an even number");
            },
            |number, result| {
                finished.push((number, result.is_ok()));
                if let Some(next) = &sender {
                    next.send(number + 1).expect("the receiver lives");
                }
                if number == 99 {
                    sender = None;
                }
                CONTINUE
            },
        );
        finished
    });
    assert_eq!(finished, (0..=100).map(|number| (number, number % 2 == 1)).collect::<Vec<_>>());
}

#[test]
fn retry_starts_while_a_thread_waits_in_the_iterator() {
    let retried = bounded(|| {
        let (sender, items) = mpsc::channel();
        sender.send(Failing::new(1)).expect("the receiver lives");
        let config = SchedulerOptions::new().max_running(2).retry(RetryPolicy::new().max_attempts(2));
        let mut sender = Some(sender);
        let summary = Executor::with_config(config).run_tasks(items, |_, _| {
            sender = None; // the iterator ends after the retry
            CONTINUE
        });
        summary.counts.retried
    });
    assert_eq!(retried, 1);
}

/// An item that keeps the channel open from which it came.
struct Opener(#[expect(dead_code, reason = "dropped")] mpsc::Sender<Opener>);

#[test]
fn finisher_stops_a_run_whose_iterator_waits_for_an_item() {
    // The channel ends when the items that hold its sender have been finished.
    let summary = bounded(|| {
        let (sender, items) = mpsc::channel();
        let both = Barrier::new(2);
        for _ in 0..2 {
            sender.send(Opener(sender.clone())).expect("the receiver lives");
        }
        drop(sender);
        let processor = |_: &mut Opener| _ = both.wait();
        let mut finished = 0;
        let summary = Executor::new(3).run(items, processor, |item, _| {
            drop(item);
            finished += 1;
            if finished == 2 { ControlFlow::Break(()) } else { CONTINUE }
        });
        (summary.counts.succeeded, summary.is_stopped)
    });
    assert_eq!(summary, (2, true));
}

#[test]
fn item_that_was_read_during_the_stop_comes_back() {
    for retry in [RetryPolicy::new(), RetryPolicy::new().max_attempts(2)] {
        let is_reading = AtomicBool::new(false);
        let is_stopped = AtomicBool::new(false);
        let deadline = patience();
        let wait_for = |flag: &AtomicBool| {
            while !flag.load(Ordering::SeqCst) && Instant::now() < deadline {
                thread::yield_now();
            }
        };
        let items = (0..3).inspect(|number| {
            if *number == 1 {
                is_reading.store(true, Ordering::SeqCst);
                wait_for(&is_stopped);
                nap(Duration::from_millis(100)); // the finisher returns meanwhile
            }
        });
        let config = SchedulerOptions::new().max_running(2).retry(retry);
        let summary = Executor::with_config(config).run(
            items,
            |_| (),
            |number, _| {
                assert_eq!(number, 0);
                wait_for(&is_reading);
                is_stopped.store(true, Ordering::SeqCst);
                ControlFlow::Break(())
            },
        );
        assert_eq!((summary.counts.submitted, summary.counts.succeeded), (2, 1));
        assert_eq!(summary.not_run, [1]);
    }
}

/// Wants to run again and again.
struct Insatiable(AtomicUsize);

impl Task for &Insatiable {
    type Output = ();

    fn process(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn result(&self, (): &()) -> JobResult {
        if self.0.load(Ordering::SeqCst) < 1000 { JobResult::Requeue } else { JobResult::Success }
    }
}

#[test]
fn requeued_item_runs_until_it_is_done() {
    for attempts in [1, 2] {
        let tasks = [const { Insatiable(AtomicUsize::new(0)) }; 2];
        let config = SchedulerOptions::new().max_running(2).retry(RetryPolicy::new().max_attempts(attempts));
        let mut finished = 0;
        let summary = Executor::with_config(config).run_tasks(&tasks, |_, _| {
            finished += 1;
            CONTINUE
        });
        assert_eq!((finished, summary.counts.succeeded), (2, 2));
        assert!(tasks.iter().all(|task| task.0.load(Ordering::SeqCst) == 1000));
    }
}

#[test]
fn share_of_finished_items_halts_a_run_whose_items_are_known() {
    let halt = HaltPolicy::new(HaltTrigger::Finished, Threshold::Percent(50));
    let config = SchedulerOptions::new().order(QueueOrder::ShortestFirst).halt(Some(halt));
    let summary = Executor::with_config(config.clone()).run(0..10, |_| (), |_, _| CONTINUE);
    assert_eq!((summary.counts.succeeded, summary.not_run.len()), (5, 5));
    let summary =
        Executor::with_config(config).run_graph(0..10, [(0, 9)], |_| Ok::<_, ()>(()), |_, _| CONTINUE);
    assert_eq!(summary.expect("no cycle").counts.succeeded, 5);
}

#[test]
fn tiny_items_keep_no_thread_from_the_long_ones_after_them() {
    const TINY: u32 = 200_000;
    // Each of the last two items waits for the other, and the finisher of the item before for both.
    let arrived = AtomicUsize::new(0);
    let deadline = patience();
    let meet = || {
        while arrived.load(Ordering::SeqCst) < 2 && Instant::now() < deadline {
            thread::yield_now();
        }
    };
    let processor = |number: &mut u32| {
        if *number >= TINY {
            arrived.fetch_add(1, Ordering::SeqCst);
            meet();
        }
    };
    let summary = Executor::new(2).run(0..TINY + 2, processor, |number, _| {
        if number == TINY - 1 {
            meet();
        }
        CONTINUE
    });
    assert!(Instant::now() < deadline, "one thread took both items");
    assert_eq!((summary.counts.succeeded, summary.threads), (u64::from(TINY) + 2, 2));
}

#[test]
fn finisher_stops_the_rest_and_the_iterator_keeps_it() {
    let mut items = 0..100_000;
    let mut finished = 0;
    let summary = Executor::new(2).run(
        items.by_ref(),
        |_| (),
        |_, _| {
            finished += 1;
            if finished == 5 { ControlFlow::Break(()) } else { CONTINUE }
        },
    );
    // A thread may have read an item while the finisher returned.
    let not_run = summary.not_run.len();
    assert!(summary.is_stopped && not_run <= 2);
    assert_eq!(finished, 5, "the finisher is not called again");
    let not_finished = summary.not_finished.len() as u64;
    assert_eq!(summary.counts.succeeded, finished + not_finished);
    assert_eq!(items.len() as u64 + finished + not_finished + not_run as u64, 100_000);
}

#[test]
fn nothing_is_called_after_the_finisher_has_stopped_the_run() {
    let both = Barrier::new(2);
    let starts = AtomicUsize::new(0);
    let mut finished = Vec::new();
    let processor = |number: &mut u32| {
        starts.fetch_add(1, Ordering::SeqCst);
        if *number < 2 {
            both.wait();
        }
    };
    let summary = Executor::new(2).run_graph(
        0..6_u32,
        [(0, 2), (1, 2), (0, 3), (1, 3), (0, 4), (1, 5)],
        |number| {
            processor(number);
            Ok::<_, ()>(())
        },
        |number, _| {
            finished.push(number);
            ControlFlow::Break(())
        },
    );
    let mut summary = summary.expect("no cycle");
    summary.not_run.sort_unstable();
    // Both were processed at the same time. The second result came back to a run that was stopped.
    assert_eq!((finished.len(), starts.into_inner()), (1, 2));
    assert_eq!((summary.not_finished, summary.not_run), (vec![1 - finished[0]], vec![2, 3, 4, 5]));
}

#[test]
fn items_that_were_read_and_not_run_come_back() {
    let config = SchedulerOptions::new().order(QueueOrder::ShortestFirst);
    let mut summary = Executor::with_config(config).on_caller(true).run_by_cost(
        [5, 1, 4, 2, 3],
        |n| *n,
        |_| (),
        |n, _| if n == 2 { ControlFlow::Break(()) } else { CONTINUE },
    );
    summary.not_run.sort_unstable();
    assert_eq!(summary.not_run, [3, 4, 5]);
}

#[test]
fn order_is_by_cost_or_by_seed() {
    let started = |order, seed| {
        let config = SchedulerOptions::new().order(order).seed(seed);
        let mut started = Vec::new();
        Executor::with_config(config).run_by_cost(
            0..20_u64,
            |n| (*n * 7) % 20,
            |_| (),
            |n, _| {
                started.push(n);
                CONTINUE
            },
        );
        started
    };
    let by_cost = |shortest_first: bool| {
        let mut items: Vec<_> = (0..20_u64).collect();
        items.sort_by_key(|n| if shortest_first { (n * 7) % 20 } else { 20 - (n * 7) % 20 });
        items
    };
    assert_eq!(started(QueueOrder::Fifo, 0), (0..20).collect::<Vec<_>>());
    assert_eq!(started(QueueOrder::ShortestFirst, 0), by_cost(true));
    assert_eq!(started(QueueOrder::LongestFirst, 0), by_cost(false));
    let random = started(QueueOrder::Random, 1);
    assert_eq!(random, started(QueueOrder::Random, 1));
    assert_ne!(random, started(QueueOrder::Random, 2));
    assert_eq!(random.iter().collect::<HashSet<_>>().len(), 20);
}

/// Work that fails a number of times.
struct Failing {
    left: u32,
    attempts: Vec<Instant>,
}

impl Failing {
    fn new(failures: u32) -> Self {
        Self { left: failures, attempts: Vec::new() }
    }
}

impl Task for Failing {
    type Output = Result<(), u32>;

    fn process(&mut self) -> Self::Output {
        self.attempts.push(Instant::now());
        self.left.checked_sub(1).map_or(Ok(()), |left| {
            self.left = left;
            Err(left)
        })
    }

    fn result(&self, output: &Self::Output) -> JobResult {
        if output.is_ok() { JobResult::Success } else { JobResult::Failure }
    }
}

#[test]
fn failed_item_is_retried_after_its_delay_and_finished_once() {
    const DELAY: Duration = Duration::from_millis(20);
    let retry = RetryPolicy::new().max_attempts(3).backoff(DELAY);
    let executor = Executor::with_config(SchedulerOptions::new().max_running(2).retry(retry));
    let mut finished = Vec::new();
    let summary = executor.run_tasks([0, 1, 2, 3].map(Failing::new), |task, result| {
        let delays: Vec<_> = task.attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(delays.iter().zip([DELAY, DELAY * 2]).all(|(delay, least)| *delay >= least), "{delays:?}");
        finished.push((task.attempts.len(), result.expect("no panic")));
        CONTINUE
    });
    finished.sort_unstable();
    assert_eq!(finished, [(1, Ok(())), (2, Ok(())), (3, Ok(())), (3, Err(0))]);
    assert_eq!((summary.counts.failed, summary.counts.retried), (1, 5));
}

#[test]
fn halt_policy_starts_no_more_and_says_so() {
    let halt = HaltPolicy::new(HaltTrigger::Failed, Threshold::Count(2)).now(true);
    let executor = Executor::with_config(SchedulerOptions::new().halt(Some(halt)));
    let mut finished = 0;
    let summary = executor.run_tasks([1, 0, 1, 0, 0].map(Failing::new), |_, _| {
        finished += 1;
        CONTINUE
    });
    assert_eq!((finished, summary.counts.succeeded, summary.counts.failed), (3, 1, 2));
    assert!(summary.halted_by.is_some_and(|reason| reason.on == HaltTrigger::Failed));
    assert!(!summary.is_stopped);
}

#[test]
fn delay_between_starts_is_kept_by_all_threads() {
    const DELAY: Duration = Duration::from_millis(10);
    let executor = Executor::with_config(SchedulerOptions::new().max_running(4).delay(DELAY));
    let mut starts = Vec::new();
    let summary = executor.run(
        0..6,
        |_| Instant::now(),
        |_, start| {
            starts.push(start.expect("no panic"));
            CONTINUE
        },
    );
    assert_eq!(summary.counts.succeeded, 6);
    starts.sort_unstable();
    // The clock is read at the decision and again in the processor, which may be late.
    assert!(starts[5] - starts[0] >= DELAY * 4, "{starts:?}");
}

#[test]
fn each_item_has_a_different_processor() {
    type Work = Box<dyn Task<Output = String> + Send>;
    struct Upper(&'static str);
    struct Repeat(u32);
    impl Task for Upper {
        type Output = String;
        fn process(&mut self) -> String {
            self.0.to_uppercase()
        }
    }
    impl Task for Repeat {
        type Output = String;
        fn process(&mut self) -> String {
            "-".repeat(self.0 as usize)
        }
        fn cost(&self) -> u64 {
            self.0.into()
        }
        fn result(&self, _: &String) -> JobResult {
            JobResult::PermanentFailure
        }
    }
    let work: Vec<Work> = vec![Box::new(Repeat(3)), Box::new(Upper("a"))];
    let mut outputs = Vec::new();
    let executor = Executor::with_config(SchedulerOptions::new().order(QueueOrder::ShortestFirst));
    let summary = executor.run_tasks(work, |_, output| {
        outputs.push(output.expect("no panic"));
        CONTINUE
    });
    assert_eq!(outputs, ["A", "---"]);
    assert_eq!((summary.counts.succeeded, summary.counts.failed), (1, 1));
}

#[test]
fn dependents_start_after_their_dependencies_on_all_threads() {
    // 0 is the dependency of 1 and 2, which meet: two threads have to take them at the same time.
    let meeting = Barrier::new(2);
    let is_done = AtomicBool::new(false);
    let processor = |item: &mut u32| {
        if *item > 0 {
            assert!(is_done.load(Ordering::SeqCst), "item {item} started before the first was finished");
            meeting.wait();
        }
        Ok::<_, ()>(())
    };
    let edges = [(0, 1), (0, 2)];
    let summary = Executor::new(2).run_graph(0..3, edges, processor, |item, result| {
        result.expect("no panic").expect("it succeeds");
        if item == 0 {
            is_done.store(true, Ordering::SeqCst);
        }
        CONTINUE
    });
    assert_eq!(summary.expect("no cycle").counts.succeeded, 3);
}

/// While the finisher runs, the other thread has taken the last item that depends on nothing.
#[test]
fn dependents_start_on_a_new_thread_if_all_are_busy() {
    let is_taken = AtomicBool::new(false);
    let is_started = AtomicBool::new(false);
    let deadline = patience();
    let wait_for = |flag: &AtomicBool| {
        while !flag.load(Ordering::SeqCst) && Instant::now() < deadline {
            thread::yield_now();
        }
        assert!(flag.load(Ordering::SeqCst), "in time");
    };
    let processor = |item: &mut u32| {
        match *item {
            1 => {
                is_taken.store(true, Ordering::SeqCst);
                wait_for(&is_started);
            }
            2 => is_started.store(true, Ordering::SeqCst),
            _ => (),
        }
        Ok::<_, ()>(())
    };
    let summary = Executor::new(2).run_graph(0..3, [(0, 2)], processor, |item, result| {
        result.expect("no panic").expect("it succeeds");
        if item == 0 {
            wait_for(&is_taken);
        }
        CONTINUE
    });
    assert_eq!(summary.expect("no cycle").counts.succeeded, 3);
}

#[test]
fn dependents_of_an_error_come_back() {
    let attempts = AtomicUsize::new(0);
    let processor = |item: &mut u32| {
        if *item > 0 {
            return Ok(());
        }
        attempts.fetch_add(1, Ordering::SeqCst);
        Err("broken")
    };
    let mut errors = Vec::new();
    let retry = RetryPolicy::new().max_attempts(3);
    let executor = Executor::with_config(SchedulerOptions::new().max_running(2).retry(retry));
    let summary = executor.run_graph(0..4, [(0, 2), (2, 3), (1, 3)], processor, |item, result| {
        errors.extend(result.expect("no panic").err().map(|error| (item, error)));
        CONTINUE
    });
    let mut summary = summary.expect("no cycle");
    summary.not_run.sort_unstable();
    assert_eq!((summary.not_run, errors, attempts.into_inner()), (vec![2, 3], vec![(0, "broken")], 3));
    assert_eq!((summary.counts.succeeded, summary.counts.failed, summary.counts.skipped), (1, 1, 2));
}

#[test]
fn dependents_of_a_failed_item_come_back() {
    let processor = |item: &mut u32| {
        if *item == 0 {
            resume_unwind(Box::new(()));
        }
        Ok::<_, ()>(())
    };
    let edges = [(0, 2), (2, 3), (1, 3)];
    let summary = Executor::new(2).run_graph(0..4, edges, processor, |_, _| CONTINUE).expect("no cycle");
    let mut not_run = summary.not_run;
    not_run.sort_unstable();
    assert_eq!(not_run, [2, 3]);
    assert_eq!((summary.counts.succeeded, summary.counts.failed, summary.counts.skipped), (1, 1, 2));
}

#[test]
fn long_chain_of_dependencies_runs() {
    const LEN: usize = 100_000;
    let edges = (1..LEN).map(|item| (item - 1, item));
    let mut next = 0;
    let summary = Executor::new(2).run_graph(
        0..LEN,
        edges,
        |_| Ok::<_, ()>(()),
        |item, _| {
            assert_eq!(item, next);
            next += 1;
            CONTINUE
        },
    );
    assert_eq!(summary.expect("no cycle").counts.succeeded, LEN as u64);
}

#[test]
fn nothing_starts_if_an_edge_is_wrong() {
    let starts = AtomicUsize::new(0);
    let start = |_: &mut u32| Ok::<_, ()>(_ = starts.fetch_add(1, Ordering::SeqCst));
    for edges in [vec![(0, 1), (1, 2), (2, 0)], vec![(0, 3)], vec![(7, 0)]] {
        let edge = edges[edges.len() - 1];
        let error = Executor::new(2).run_graph(0..3, edges, start, |_, _| CONTINUE).expect_err("refused");
        assert_eq!(error.edge(), edge);
    }
    assert_eq!(starts.into_inner(), 0);
}

#[test]
fn items_run_with_as_many_threads_as_there_are() {
    for threads in [0, 1, 3] {
        let executor = Executor::new(8).fault_threads(Some(threads));
        let mut finished = Vec::new();
        let summary = executor.run(
            0..100,
            |_| thread::yield_now(),
            |number, _| {
                finished.push(number);
                CONTINUE
            },
        );
        finished.sort_unstable();
        assert_eq!(finished, (0..100).collect::<Vec<_>>());
        assert!(summary.threads <= threads, "{threads}: {}", summary.threads);
        // The last of them may have found no item left.
        assert!(threads > 0 || summary.lacks_threads);
    }
}

#[test]
fn runs_nest() {
    let inner = Executor::new(2);
    let mut total = 0;
    let processor = |n: &mut u64| {
        let mut sum = 0;
        inner.run(
            0..*n,
            |m| *m,
            |_, m| {
                sum += m.expect("no panic");
                CONTINUE
            },
        );
        sum
    };
    Executor::new(2).run([10, 20, 30], processor, |_, sum| {
        total += sum.expect("no panic");
        CONTINUE
    });
    assert_eq!(total, 45 + 190 + 435);
}
