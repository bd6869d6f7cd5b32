//! Items processed by two threads and finished by the caller's: the executor compared with scoped
//! threads that use bounded channels.

use crate::Options;
use crate::usage::{Stopwatch, monotonic};
use anyhow::{Result, ensure};
use crossbeam_channel::bounded;
use minder::jobs::Executor;
use rustix::thread::{Timespec, nanosleep};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::thread;

/// The capacity of a channel: as many items or results as an executor keeps waiting.
const CAPACITY: usize = 1024;
/// The duration of an item's work when the delay of its finisher is measured.
const WORK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// An item: it carries the time at which its processor ended.
type Item = (u64, u64);

pub(crate) fn measure(options: &Options) -> Result<String> {
    let items = u64::from(options.children);
    let (run, works) = match options.contestant.as_str() {
        "minder" => (executor as Run, false),
        "channels" => (channels as Run, false),
        "shared-iterator" => (shared_iterator as Run, false),
        "minder-delay" => (executor as Run, true),
        "channels-delay" => (channels as Run, true),
        "shared-iterator-delay" => (shared_iterator as Run, true),
        _ => return Err(options.unknown()),
    };
    let watch = Stopwatch::start()?;
    let mut finisher = Finisher::new(if works { options.children as usize } else { 0 });
    run(items, options.at_once, works, &mut finisher);
    let rows = watch.rows(options.children)?;
    ensure!(finisher.count == items && finisher.sum == items * (items - 1) / 2, "an item was lost");
    Ok(format!("{rows}delay_ns,{}\n", finisher.median()))
}

type Run = fn(u64, usize, bool, &mut Finisher);

/// The work of the caller's thread on each item: it counts and sums them, and keeps their delays.
struct Finisher {
    count: u64,
    sum: u64,
    delays: Vec<u64>,
}

impl Finisher {
    fn new(delays: usize) -> Self {
        Self { count: 0, sum: 0, delays: Vec::with_capacity(delays) }
    }

    fn finish(&mut self, (number, ended): Item) {
        self.count += 1;
        self.sum += number;
        if ended > 0 {
            self.delays.push(monotonic() - ended);
        }
    }

    fn median(&mut self) -> u64 {
        self.delays.sort_unstable();
        self.delays.get(self.delays.len() / 2).copied().unwrap_or_default()
    }
}

/// The processor: nothing, or a sleep that ends with a look at the clock.
fn process(number: u64, works: bool) -> Item {
    if !works {
        return (black_box(number), 0);
    }
    let _ = nanosleep(&WORK);
    (number, monotonic())
}

fn executor(items: u64, degree: usize, works: bool, finisher: &mut Finisher) {
    let summary = Executor::new(degree).run(
        0..items,
        |number| process(*number, works),
        |_, result| {
            if let Ok(item) = result {
                finisher.finish(item);
            }
            ControlFlow::Continue(())
        },
    );
    black_box(summary.threads);
}

/// A thread feeds a bounded channel, the processors take from it, and the caller takes from another.
fn channels(items: u64, degree: usize, works: bool, finisher: &mut Finisher) {
    let (send_item, take_item) = bounded(CAPACITY);
    let (send_result, take_result) = bounded(CAPACITY);
    thread::scope(|scope| {
        scope.spawn(move || (0..items).try_for_each(|number| send_item.send(number)));
        for _ in 0..degree {
            let take_item = take_item.clone();
            let send_result = send_result.clone();
            scope.spawn(move || take_item.iter().try_for_each(|item| send_result.send(process(item, works))));
        }
        drop(send_result);
        take_result.iter().for_each(|item| finisher.finish(item));
    });
}

/// The processors share the iterator, and the caller takes their results from a bounded channel.
fn shared_iterator(items: u64, degree: usize, works: bool, finisher: &mut Finisher) {
    let (send_result, take_result) = bounded(CAPACITY);
    let numbers = Mutex::new(0..items);
    thread::scope(|scope| {
        for _ in 0..degree {
            let numbers = &numbers;
            let send_result = send_result.clone();
            scope.spawn(move || {
                while let Some(number) = numbers.lock().ok().and_then(|mut numbers| numbers.next()) {
                    if send_result.send(process(number, works)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send_result);
        take_result.iter().for_each(|item| finisher.finish(item));
    });
}
