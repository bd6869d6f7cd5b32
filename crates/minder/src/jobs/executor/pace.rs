//! Measures the pace of tasks. Tiny tasks cost less than their way from thread to thread, so fewer
//! threads and fewer wake-ups finish them sooner.

use std::time::{Duration, Instant};

/// Tasks are tiny if a thread takes the next one after less than this time. Two threads that contend for
/// such tasks are slower than one.
const TINY: Duration = Duration::from_nanos(150);
/// The number of tasks that a thread processes between two looks at the clock: that costs half as
/// much as a tiny task.
const TASKS_PER_LOOK: u32 = 64;
/// Results are fast if they come at less than this interval. A wake-up for each would cost more than the
/// work for it.
const FAST: Duration = Duration::from_micros(1);

/// The pace of one thread's tasks, and of those of all threads.
#[derive(Debug)]
pub(super) struct TaskPace {
    /// The number of tasks that the thread took since the last look at the clock.
    tasks: u32,
    since: Instant,
    /// The number of tasks that all threads had taken then.
    taken: u64,
    is_crowded: bool,
}

impl TaskPace {
    pub(super) fn new() -> Self {
        // In a model of the threads time does not pass, so each thread finds its first tasks tiny.
        Self { tasks: 0, since: Instant::now(), taken: 0, is_crowded: cfg!(loom) }
    }

    /// Notes that the thread takes a task, after all threads have taken this number.
    pub(super) fn note(&mut self, taken: u64) {
        self.tasks += 1;
        if self.tasks == TASKS_PER_LOOK {
            let now = Instant::now();
            let time = now.duration_since(self.since);
            // A thread whose neighbours are busy with long tasks takes the tiny ones alone.
            let has_company = taken - self.taken > u64::from(TASKS_PER_LOOK) * 3 / 2;
            *self = Self {
                tasks: 0,
                since: now,
                taken,
                is_crowded: has_company && is_tiny(TASKS_PER_LOOK.into(), time),
            };
        }
    }

    /// Forgets the tasks so far.
    pub(super) fn restart(&mut self, taken: u64) {
        *self = Self { tasks: 0, since: Instant::now(), taken, is_crowded: false };
    }

    /// Returns whether several threads take tiny tasks.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded
    }
}

/// Returns whether this number of tasks in this time means that they are tiny.
pub(super) fn is_tiny(tasks: u64, time: Duration) -> bool {
    time.as_nanos() < TINY.as_nanos() * u128::from(tasks)
}

/// The pace of all results.
#[derive(Debug)]
pub(super) struct ResultPace {
    last: Instant,
    is_fast: bool,
}

impl ResultPace {
    pub(super) fn new() -> Self {
        Self { last: Instant::now(), is_fast: false }
    }

    /// Notes that this number of results has come since the last call.
    pub(super) fn note(&mut self, results: usize) {
        let now = Instant::now();
        self.is_fast = now.duration_since(self.last) < FAST * results as u32;
        self.last = now;
    }

    pub(super) fn is_fast(&self) -> bool {
        self.is_fast
    }
}
