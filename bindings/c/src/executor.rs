//! Executor: runs a function for many objects, some at once, and another one for each that is done.
//!
//! The processor runs on threads of the library, at most `degree` at once. The finisher runs on the thread
//! that called minder_execute(), for one object at a time, as soon as its processor has ended: it needs no
//! locks. The same call with `serial` runs both on the caller's thread, one object after the other.
//!
//! An executor has no handle: everything about it is in its options, and it ends with its call.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::ffi::c_void;
use std::ops::ControlFlow;

use minder::jobs::{Executor, JobResult, QueueOrder, RetryPolicy, SchedulerOptions, Task};

use crate::arg::{self, Growing, options, store_structure};
use crate::status::{Failure, call, minder_status};

/// In which order objects start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_order {
    /// In the order of the array.
    MINDER_ORDER_FIFO = 0,
    /// Those with the least cost first: the best mean time until an object is done.
    MINDER_ORDER_SHORTEST_FIRST = 1,
    /// Those with the greatest cost first: the best time until all are done.
    MINDER_ORDER_LONGEST_FIRST = 2,
    /// By chance: the same seed gives the same order.
    MINDER_ORDER_RANDOM = 3,
}

/// The options of a run. Zero is the default of each.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_execute_options {
    /// The size of this structure.
    pub size: u32,
    /// The most processors at once. Default: as many as the machine has processors.
    pub degree: u32,
    /// One of minder_order.
    pub order: i32,
    /// Not 0: both functions run on the caller's thread, one object after the other.
    pub serial: i32,
    /// The number of times that an object is processed at most, until its processor returns 0.
    /// Default: once.
    pub max_attempts: u32,
    /// Zero.
    pub reserved: u32,
    /// The cost of each object, in any unit, for the orders by cost; NULL: they are equal.
    pub costs: *const u64,
    /// For MINDER_ORDER_RANDOM.
    pub seed: u64,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_execute_options {
    fn reserved(&self) -> u32 {
        self.reserved
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_execute_summary {
    /// The size of this structure.
    pub size: u32,
    /// The number of threads that were started.
    pub threads: u32,
    /// The number of objects whose processor returned 0 in the end.
    pub succeeded: u64,
    /// The number of objects whose processor returned another number in the end.
    pub failed: u64,
    /// The number of objects that were not processed, because the finisher stopped the run.
    pub not_run: u64,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_execute_summary {}

/// Processes an object, on any thread. Returns 0, or a number that the finisher gets. No exception and no
/// longjmp(3) may leave it.
pub type minder_processor = Option<unsafe extern "C" fn(user: *mut c_void, object: *mut c_void) -> i32>;

/// Finishes an object, on the thread of the caller, with what its processor returned. Returns 0 to
/// continue; with another number no further object starts, and the finisher is not called again, even for
/// objects that were processed before or still run. No exception and no longjmp(3) may leave it.
pub type minder_finisher =
    Option<unsafe extern "C" fn(user: *mut c_void, object: *mut c_void, result: i32) -> i32>;

/// A pointer of the caller that other threads get.
#[derive(Clone, Copy)]
struct Shared(*mut c_void);

// SAFETY: the caller of `minder_execute` lets other threads use its pointers during the call.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// An object, and how it is processed.
struct Object {
    object: Shared,
    user: Shared,
    cost: u64,
    processor: unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32,
}

impl Task for Object {
    type Output = i32;

    fn process(&mut self) -> i32 {
        // SAFETY: the caller passed a function that may be called with these pointers on any thread.
        unsafe { (self.processor)(self.user.0, self.object.0) }
    }

    fn cost(&self) -> u64 {
        self.cost
    }

    fn result(&self, output: &i32) -> JobResult {
        if *output == 0 { JobResult::Success } else { JobResult::Failure }
    }
}

impl minder_execute_options {
    fn executor(&self) -> Result<Executor, Failure> {
        let order = match self.order {
            0 => QueueOrder::Fifo,
            1 => QueueOrder::ShortestFirst,
            2 => QueueOrder::LongestFirst,
            3 => QueueOrder::Random,
            number => {
                let text = format!("option `order` is {number}, which the library does not know");
                return Err(Failure::invalid(text));
            }
        };
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let degree = if self.degree == 0 { processors() } else { self.degree as usize };
        let retry = RetryPolicy::new().max_attempts(self.max_attempts.max(1));
        let config = SchedulerOptions::new().max_running(degree).order(order).seed(self.seed).retry(retry);
        Ok(Executor::with_config(config).on_caller(self.serial != 0))
    }
}

/// Returns an empty vector with room for this many objects.
fn room_for(count: usize) -> Result<Vec<Object>, Failure> {
    if count > arg::longest::<Object>() {
        return Err(arg::too_long("objects", count));
    }
    let mut tasks = Vec::new();
    let no_memory = |_| {
        let text = format!("no memory is free for {count} objects");
        Failure::new(minder_status::MINDER_EXHAUSTED, text)
    };
    tasks.try_reserve_exact(count).map_err(no_memory)?;
    Ok(tasks)
}

/// Runs `processor` and then `finisher` for each of the `count` objects, and returns when all are
/// finished. The options and the summary may be NULL. `user` is passed to both functions.
///
/// The processors of several objects run at the same time. Two finishers never run at the same
/// time. The library does not touch the objects, and passes each to one processor at a time.
///
/// Returns MINDER_INVALID if `count` is more than memory can hold, and MINDER_EXHAUSTED if the memory for the
/// objects is not free. No function was called then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_execute(
    options: *const minder_execute_options,
    objects: *const *mut c_void,
    count: usize,
    processor: minder_processor,
    finisher: minder_finisher,
    user: *mut c_void,
    summary: *mut minder_execute_summary,
) -> minder_status {
    call(|| {
        let given: minder_execute_options = options!(options);
        let processor = processor.ok_or_else(|| arg::null("processor"))?;
        let finisher = finisher.ok_or_else(|| arg::null("finisher"))?;
        let executor = given.executor()?;
        let mut tasks = room_for(count)?;
        // SAFETY: the caller passes an array with this many elements.
        let objects = unsafe { arg::array(objects, count, "objects") }?;
        let costs = if given.costs.is_null() {
            &[]
        } else {
            // SAFETY: the caller passes an array with this many elements.
            unsafe { arg::array(given.costs, count, "costs") }?
        };
        let user = Shared(user);
        tasks.extend(objects.iter().enumerate().map(|(index, object)| {
            let cost = costs.get(index).copied().unwrap_or(0);
            Object { object: Shared(*object), user, cost, processor }
        }));
        let run = executor.run_tasks(tasks, |object, result| {
            // A processor of C does not panic.
            let result = result.unwrap_or(minder_status::MINDER_PANIC as i32);
            // SAFETY: the caller passed a function that may be called with these pointers on this thread.
            let wish = unsafe { finisher(user.0, object.object.0, result) };
            if wish == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let result = minder_execute_summary {
            size: 0,
            threads: u32::try_from(run.threads).unwrap_or(u32::MAX),
            succeeded: run.counts.succeeded,
            failed: run.counts.failed,
            not_run: count as u64 - run.counts.succeeded - run.counts.failed,
        };
        store_structure!(summary, result);
        Ok(minder_status::MINDER_OK)
    })
}
