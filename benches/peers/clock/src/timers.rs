//! One-shot timers at random moments: wake-ups, lateness and CPU time.

use crate::Options;
use crate::numbers::{Numbers, Stopwatch, count, lateness, micros_after};
use crate::std_sleep::std_sleep;
use anyhow::Result;
use minder::poll::{Events, Poller, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The time from the choice of the deadlines to the earliest possible one: enough to add all timers.
const LEAD: Duration = Duration::from_millis(50);

pub(crate) fn measure(options: &Options) -> Result<Numbers> {
    let deadlines = deadlines(options);
    let watch = Stopwatch::start();
    let expired = match options.contestant.as_str() {
        "minder" => in_poller(&deadlines, options.time),
        "minder-exact" => in_poller(&deadlines, Duration::ZERO),
        "tokio" => in_tokio(&deadlines),
        "heap" => in_heap(&deadlines),
        _ => Err(options.unknown()),
    }?;
    let mut numbers = watch.stop();
    anyhow::ensure!(expired.late.len() == deadlines.len(), "a timer was lost");
    let tolerance = options.time.as_secs_f64() * 1e6;
    let too_late = expired.late.iter().filter(|late| **late > tolerance).count();
    numbers.extend([("wakeups", count(expired.wakeups)), ("too_late", count(too_late))]);
    numbers.extend(lateness(&expired.late));
    Ok(numbers)
}

/// The report of a contestant.
#[derive(Default)]
struct Expired {
    /// The number of waits of the thread.
    wakeups: usize,
    /// Microseconds from the deadline of each timer to the moment at which the program knew of it.
    late: Vec<f64>,
}

/// Returns random deadlines, the same for the same seed.
fn deadlines(options: &Options) -> Vec<Instant> {
    let start = Instant::now() + LEAD;
    let within = u64::try_from(options.within.as_nanos()).unwrap_or(u64::MAX);
    let mut random = options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        start + Duration::from_nanos(random % within)
    };
    (0..options.count).map(|_| next()).collect()
}

fn in_poller(deadlines: &[Instant], tolerance: Duration) -> Result<Expired> {
    let poller = Poller::new()?;
    for (number, deadline) in (0..).zip(deadlines) {
        poller.add_timer(Token(number), *deadline, tolerance)?;
    }
    let mut expired = Expired::default();
    let mut events = Events::new();
    while expired.late.len() < deadlines.len() {
        poller.wait(&mut events, None)?;
        expired.wakeups += 1;
        let now = Instant::now();
        for event in events.iter() {
            expired.late.push(micros_after(deadlines[usize::try_from(event.token.0)?], now));
        }
    }
    Ok(expired)
}

/// A task sleeps until each deadline.
fn in_tokio(deadlines: &[Instant]) -> Result<Expired> {
    let parks = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&parks);
    let count_park = move || {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().on_thread_park(count_park).build()?;
    let late = runtime.block_on(async {
        let sleep_until = async |deadline: Instant| {
            tokio::time::sleep_until(deadline.into()).await;
            micros_after(deadline, Instant::now())
        };
        let tasks: Vec<_> = deadlines.iter().map(|deadline| tokio::spawn(sleep_until(*deadline))).collect();
        let mut late = Vec::with_capacity(tasks.len());
        for task in tasks {
            late.push(task.await?);
        }
        Ok::<_, anyhow::Error>(late)
    })?;
    Ok(Expired { wakeups: parks.load(Ordering::Relaxed), late })
}

/// The simplest program: the thread sleeps until the earliest deadline of a heap.
fn in_heap(deadlines: &[Instant]) -> Result<Expired> {
    let mut heap: BinaryHeap<_> = deadlines.iter().copied().map(Reverse).collect();
    let mut expired = Expired::default();
    while let Some(Reverse(deadline)) = heap.pop() {
        let left = deadline.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std_sleep(left);
            expired.wakeups += 1;
        }
        expired.late.push(micros_after(deadline, Instant::now()));
    }
    Ok(expired)
}
