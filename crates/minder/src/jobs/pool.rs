//! The driver over children: equal worker loops, each with its own set, that share a scheduler and
//! nothing else.
//!
//! A spawn blocks its thread until the child runs its program, so one thread spends the time of one
//! processor on starting alone. Two equal loops, each of which spawns, waits and reads for half of
//! the slots, took 0.6 to 0.7 of the time of one (measured). That costs less than handing slots to
//! threads that only spawn.
//!
//! # Locks
//! `state` comes first: a thread that has locked `workers` never locks `state`. No lock is kept while a
//! loop waits, spawns or calls the handler, except in the
//! methods of [`JobSource`](super::JobSource).

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minder_os::sync::{Condvar, Mutex};

use super::config::{HaltReason, SchedulerOptions};
use super::handler::{ChildControl, JobHandler, NextJob};
use super::pool_state::{PoolState, WorkerCounts};
use super::scheduler::{Attempt, JobCounts, JobResult, NextAction};
use super::start_delay::{Idle, PendingStart, Shortage};
use crate::Termination;
use crate::poll::Waker;
use crate::{ChildId, ChildSet, ChildSetOptions, Error, ErrorKind, Event, NextEvent, Operation, Result};

/// The values of [`JobPool::requested`].
const CANCEL: u8 = 1;
const KILL: u8 = 2;

/// A pool of worker loops that share one scheduler.
///
/// It runs the jobs of one source, once. In the order
/// [`Fifo`](super::QueueOrder::Fifo), a job is taken from the source when it can start. The other orders need
/// to know all jobs: they start the first one when the source is exhausted. Jobs of a pool do not depend on
/// each other; those of a [`Scheduler`](super::Scheduler) and of an [`Executor`](super::Executor) may.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::jobs::{Attempt, ChildControl, JobHandler, JobPool, JobResult, JobSource, NextJob};
/// use minder::jobs::{SchedulerOptions, SpawnRequest};
/// use minder::{ChildSetOptions, Command, Error, Event, Outcome, Termination};
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::time::Duration;
///
/// /// Runs `sh -c 'exit JOB'` for the jobs 0 to 9.
/// struct Exits<'a>(&'a AtomicU32);
///
/// impl JobSource for Exits<'_> {
///     type Job = u32;
///
///     fn next_job(&mut self) -> NextJob<u32> {
///         let job = self.0.fetch_add(1, Ordering::Relaxed);
///         if job < 10 { NextJob::Ready(job) } else { NextJob::Exhausted }
///     }
/// }
///
/// impl JobHandler for Exits<'_> {
///     fn prepare(&mut self, _: Attempt, job: &u32) -> Result<SpawnRequest, JobResult> {
///         let mut command = Command::new("sh");
///         command.args(["-c", &format!("exit {job}")]);
///         Ok(SpawnRequest::new(command))
///     }
///     fn event(&mut self, _: Attempt, _: &u32, _: Event, _: &mut ChildControl<'_>) -> Option<Termination> {
///         None
///     }
///     fn finished(&mut self, _: Attempt, _: &u32, outcome: Outcome) -> JobResult {
///         if outcome.exit.status.success() { JobResult::Success } else { JobResult::Failure }
///     }
///     fn spawn_failed(&mut self, _: Attempt, _: &u32, _: Error) -> JobResult {
///         JobResult::PermanentFailure
///     }
/// }
///
/// let pool = JobPool::new(SchedulerOptions::new().max_running(4), Duration::from_secs(5));
/// let next = AtomicU32::new(0);
/// pool.run(2, &ChildSetOptions::new(), |_index| Exits(&next))?; // two threads share the jobs
/// let counts = pool.counts();
/// assert_eq!((counts.succeeded, counts.failed, counts.running), (1, 9, 0));
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
pub struct JobPool<J> {
    state: Mutex<PoolState<J>>,
    /// The wakers of the loops' sets.
    wakers: Mutex<Vec<Waker>>,
    /// 0, [`CANCEL`] or [`KILL`]. Only increases.
    requested: AtomicU8,
    /// Counts the requests to suspend and to resume. Odd while jobs are suspended. Stored with
    /// `state` and `workers` locked; each loop carries out the latest value.
    suspend_epoch: AtomicU64,
    workers: Mutex<WorkerCounts>,
    /// Notified when a loop acknowledged a request to suspend or resume, and when a loop ended.
    acknowledged: Condvar,
    /// The termination with which [`cancel`](Self::cancel) ends jobs.
    cancellation: Termination,
    /// The most jobs that may run at once, from which each loop computes its share.
    max_running: AtomicUsize,
    /// The number of loops that wait for another loop or for the source. A loop adds itself with
    /// `state` locked: a thread that changes the scheduler afterwards sees that it has to wake
    /// loops.
    sleepers: AtomicUsize,
}

impl<J> fmt::Debug for JobPool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobPool").field("requested", &self.requested).finish_non_exhaustive()
    }
}

impl<J: Send> JobPool<J> {
    /// Creates a pool. `grace` is the time between asking a job to exit and killing it.
    pub fn new(config: SchedulerOptions, grace: Duration) -> Self {
        let max_running = AtomicUsize::new(config.max_running.max(1));
        Self {
            state: Mutex::new(PoolState::new(config)),
            wakers: Mutex::default(),
            requested: AtomicU8::new(0),
            suspend_epoch: AtomicU64::new(0),
            workers: Mutex::default(),
            acknowledged: Condvar::new(),
            cancellation: Termination::graceful(grace),
            max_running,
            sleepers: AtomicUsize::new(0),
        }
    }

    /// Sets how [`cancel`](Self::cancel) ends jobs, in place of [`Termination::graceful`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::jobs::{JobPool, SchedulerOptions};
    /// use minder::{Signal, Termination};
    /// use std::time::Duration;
    ///
    /// // SIGINT first, as Ctrl-C at a terminal.
    /// let second = Duration::from_secs(1);
    /// let how = Termination::signals(&[(Signal::INT, second), (Signal::TERM, second)])?;
    /// let pool: JobPool<u32> = JobPool::new(SchedulerOptions::new(), second).cancel_with(how);
    /// # let _ = pool;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    #[must_use]
    pub fn cancel_with(mut self, how: Termination) -> Self {
        self.cancellation = how;
        self
    }

    /// Returns the present counts.
    pub fn counts(&self) -> JobCounts {
        self.state.lock().scheduler.counts()
    }

    /// Wakes the loops, because there are more jobs or a condition changed.
    pub fn wake(&self) {
        for waker in self.wakers.lock().iter() {
            // It fails only for a descriptor that is not ours.
            let _ = waker.wake();
        }
    }

    /// Returns whether a failure of this attempt would be final for its job. The attempt runs, or its
    /// result is being determined. Do not call this from [`JobSource::next_job`](super::JobSource::next_job).
    ///
    /// The answer stays valid: see [`Scheduler::is_last_attempt`](super::Scheduler::is_last_attempt).
    ///
    /// ```
    /// use minder::Outcome;
    /// use minder::jobs::{Attempt, JobPool, JobResult};
    ///
    /// /// A `JobHandler::finished` that reports a job only when it has failed for good.
    /// fn finished(pool: &JobPool<u32>, attempt: Attempt, outcome: Outcome) -> JobResult {
    ///     if outcome.exit.status.success() {
    ///         return JobResult::Success;
    ///     }
    ///     if pool.is_last_attempt(attempt) {
    ///         eprintln!("job {} failed: {}", attempt.job, outcome.exit.status);
    ///     }
    ///     JobResult::Failure
    /// }
    /// # let _ = finished;
    /// ```
    pub fn is_last_attempt(&self, attempt: Attempt) -> bool {
        self.state.lock().scheduler.is_last_attempt(attempt)
    }

    /// Changes how many jobs may run at once, at least one. Running jobs continue, even if they are
    /// more than that.
    ///
    /// ```
    /// use minder::jobs::{JobPool, SchedulerOptions};
    /// use std::time::Duration;
    ///
    /// let pool: JobPool<u32> = JobPool::new(SchedulerOptions::new(), Duration::from_secs(5));
    /// pool.set_total(Some(1000)); // the end of the input was read
    /// pool.set_max_running(8); // the user asked for more
    /// pool.set_paused(true);
    /// pool.wake(); // another thread has supplied a job
    /// assert_eq!(pool.counts().submitted, 0);
    /// ```
    pub fn set_max_running(&self, max_running: usize) {
        let max_running = max_running.max(1);
        let mut state = self.state.lock();
        state.scheduler.set_max_running(max_running);
        self.max_running.store(max_running, Ordering::SeqCst);
        drop(state);
        self.wake();
    }

    /// Starts no jobs while `paused`. Running jobs continue. The loops still end when all jobs are
    /// done.
    pub fn set_paused(&self, paused: bool) {
        let mut state = self.state.lock();
        state.paused = paused;
        state.update_pause();
        drop(state);
        self.wake();
    }

    /// Suspends all jobs until [`resume`](Self::resume), and starts none meanwhile: see
    /// [`ChildSet::suspend`].
    ///
    /// Returns at once; [`wait_suspended`](Self::wait_suspended) waits until it is done.
    /// [`cancel`](Self::cancel) and [`kill`](Self::kill) end suspended jobs, too, and jobs that are
    /// being killed are not suspended. A job that cannot be suspended continues (on Windows all of
    /// them).
    ///
    /// ```
    /// use minder::jobs::{JobPool, SchedulerOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let pool: JobPool<u32> = JobPool::new(SchedulerOptions::new(), Duration::from_secs(5));
    /// // Ctrl-Z was pressed.
    /// pool.suspend();
    /// assert!(pool.wait_suspended(Instant::now() + Duration::from_secs(1)), "there is no loop to wait for");
    /// // … this process stops, and is continued …
    /// pool.resume();
    /// ```
    pub fn suspend(&self) {
        self.set_suspended(true);
    }

    /// Resumes all suspended jobs, including those that a [`JobHandler`] suspended.
    pub fn resume(&self) {
        self.set_suspended(false);
    }

    fn set_suspended(&self, suspended: bool) {
        // With `state` locked, no loop takes a job. A loop that took one before starts it, and
        // suspends it when it reads the new epoch.
        let mut state = self.state.lock();
        state.suspended = suspended;
        state.update_pause();
        let mut workers = self.workers.lock();
        // Every request gets a new epoch, even if it repeats the last: a loop may have started a job
        // after it carried out the last one.
        let epoch = self.suspend_epoch.load(Ordering::SeqCst);
        let step = if is_suspended(epoch) == suspended { 2 } else { 1 };
        self.suspend_epoch.store(epoch + step, Ordering::SeqCst);
        workers.acknowledged = 0;
        drop(workers);
        drop(state);
        self.wake();
    }

    /// Waits until every loop has carried out [`suspend`](Self::suspend), until `deadline` at the
    /// latest. Returns whether they have.
    ///
    /// A loop that is busy in its handler carries it out late. Returns `false` at once if jobs are not
    /// suspended, or are resumed meanwhile.
    pub fn wait_suspended(&self, deadline: Instant) -> bool {
        let mut workers = self.workers.lock();
        loop {
            if !is_suspended(self.suspend_epoch.load(Ordering::SeqCst)) {
                return false;
            }
            if workers.acknowledged == workers.running {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            workers = self.acknowledged.wait_timeout(workers, left);
        }
    }

    /// Returns the policy that stopped further starts, if one did.
    pub fn halted_by(&self) -> Option<HaltReason> {
        self.state.lock().scheduler.halted_by()
    }

    /// Sets how many jobs there are in total, once that is known. Percentages refer to it.
    pub fn set_total(&self, total: Option<u64>) {
        self.state.lock().scheduler.set_total(total);
    }

    /// Starts no more jobs. Running jobs continue.
    pub fn halt(&self) {
        self.state.lock().scheduler.halt();
        self.wake();
    }

    /// Starts no more jobs, and asks the running ones to exit. They are killed after the grace period.
    ///
    /// ```
    /// use minder::jobs::{JobPool, SchedulerOptions};
    /// use std::time::Duration;
    ///
    /// let pool: JobPool<u32> = JobPool::new(SchedulerOptions::new(), Duration::from_secs(5));
    /// pool.halt(); // one Ctrl-C: the running jobs may finish
    /// assert!(!pool.is_cancelled() && pool.halted_by().is_none(), "no policy has done it");
    /// pool.cancel(); // another one: they are asked to exit
    /// pool.kill(); // a third
    /// assert!(pool.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        self.request(CANCEL);
    }

    /// Starts no more jobs, and kills the running ones.
    pub fn kill(&self) {
        self.request(KILL);
    }

    /// Returns whether the running jobs were asked to exit, or killed.
    pub fn is_cancelled(&self) -> bool {
        self.requested.load(Ordering::SeqCst) > 0
    }

    fn request(&self, request: u8) {
        // Halted first: a loop that took a job before starts it, and kills it when it reads the
        // request.
        self.state.lock().scheduler.halt();
        self.requested.fetch_max(request, Ordering::SeqCst);
        self.wake();
    }

    /// Runs jobs until all are done, with `workers` threads: each has a set with this configuration, and
    /// the handler that `make_handler` returns for its index. Returns the handlers in the order of their
    /// indexes. One thread keeps about one processor busy with starting children.
    ///
    /// # Errors
    /// - `InvalidInput`: the pool has run before. Make another one: this one is at the end of its source.
    /// - As [`run_worker`](Self::run_worker) and [`ChildSet::new`]. All jobs are killed then.
    /// - `Exhausted`: a thread cannot be started.
    ///
    /// # Panics
    /// If a handler panics, after the jobs of the other threads were killed. Its own keep running.
    pub fn run<H: JobHandler<Job = J> + Send>(
        &self,
        workers: usize,
        config: &ChildSetOptions,
        make_handler: impl Fn(usize) -> H + Sync,
    ) -> Result<Vec<H>> {
        let workers = workers.max(1);
        let run_one = |index| {
            let _end = KillAfterPanic(self);
            let mut handler = make_handler(index);
            let result = ChildSet::new(config.clone())
                .inspect_err(|_| self.kill())
                .and_then(|mut set| self.run_worker(&mut set, index, workers, &mut handler));
            result.map(|()| handler)
        };
        let run_one = &run_one;
        std::thread::scope(|scope| {
            let spawn = |index| {
                let name = format!("minder-job-{index}");
                let thread = std::thread::Builder::new().name(name);
                thread.spawn_scoped(scope, move || run_one(index)).map_err(|error| {
                    self.kill();
                    Error::new("start the thread of a worker", error).during(Operation::Spawn)
                })
            };
            let threads: Vec<_> = (0..workers).map(spawn).collect();
            // Every thread is joined, whatever the others return.
            let mut results = Vec::new();
            for thread in threads {
                results.push(match thread.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok(result)) => result,
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    Err(error) => Err(error),
                });
            }
            results.into_iter().collect()
        })
    }

    /// Runs jobs on `set` until all are done: one loop of [`run`](Self::run), on the calling thread.
    ///
    /// Call it once for each of `workers` loops, on different threads, each with its own set and its
    /// own `index` from 0. Each loop runs at most its share of the jobs that may run at once, as
    /// [`set_max_running`](Self::set_max_running) sets it. A loop with a share of zero sleeps.
    ///
    /// ```
    /// # use minder::jobs::{Attempt, JobHandler, JobPool, JobResult, JobSource, NextJob};
    /// # use minder::jobs::{SchedulerOptions, SpawnRequest};
    /// # use minder::{Error, Outcome};
    /// # use std::time::Duration;
    /// # struct NoJobs;
    /// # impl JobSource for NoJobs {
    /// #     type Job = u32;
    /// #     fn next_job(&mut self) -> NextJob<u32> {
    /// #         NextJob::Exhausted
    /// #     }
    /// # }
    /// # impl JobHandler for NoJobs {
    /// #     fn prepare(&mut self, _: Attempt, _: &u32) -> Result<SpawnRequest, JobResult> {
    /// #         Err(JobResult::Success)
    /// #     }
    /// #     fn finished(&mut self, _: Attempt, _: &u32, _: Outcome) -> JobResult {
    /// #         JobResult::Success
    /// #     }
    /// #     fn spawn_failed(&mut self, _: Attempt, _: &u32, _: Error) -> JobResult {
    /// #         JobResult::PermanentFailure
    /// #     }
    /// # }
    /// # let mut handler = NoJobs;
    /// # let pool = JobPool::new(SchedulerOptions::new(), Duration::from_secs(5));
    /// use minder::{ChildSet, ChildSetOptions};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// pool.run_worker(&mut set, 0, 1, &mut handler)?; // the only loop, on this thread
    /// assert!(set.is_empty());
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `InvalidInput`: the set has children, whose events would be lost, or a loop with this index was
    ///   started before. The loop does not run then, and nothing is killed.
    /// - `Exhausted`: no descriptor, process or memory is free for a second, and no job of any loop
    ///   runs that could free some. All jobs are killed then.
    /// - Any error of [`ChildSet::next_event`].
    pub fn run_worker<H: JobHandler<Job = J>>(
        &self,
        set: &mut ChildSet,
        index: usize,
        workers: usize,
        handler: &mut H,
    ) -> Result<()> {
        if !set.is_empty() {
            let reason = "it has children already; pass a set without children";
            return Err(Error::of_kind(ErrorKind::InvalidInput, "run jobs on the set", reason));
        }
        self.workers.lock().start(index)?;
        self.wakers.lock().push(set.waker());
        let _end = KillAfterPanic(self);
        let mut worker = Worker {
            pool: self,
            set,
            index,
            workers: workers.max(1),
            handler,
            running: Vec::new(),
            requested: 0,
            suspend_epoch: 0,
            is_asleep: false,
            shortage: None,
            busy: Vec::new(),
        };
        let result = worker.run();
        if let Err(error) = &result {
            // Before the jobs of the other loops are killed because of it.
            worker.handler.worker_failed(error);
            self.kill();
        }
        // The other loops may sleep until all jobs are done.
        self.wake();
        result
    }
}

/// Kills all jobs if the thread of a loop panics: the other loops wait for jobs that never finish.
struct KillAfterPanic<'a, J: Send>(&'a JobPool<J>);

impl<J: Send> Drop for KillAfterPanic<'_, J> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.kill();
        }
    }
}

/// One loop.
struct Worker<'a, H: JobHandler> {
    pool: &'a JobPool<H::Job>,
    set: &'a mut ChildSet,
    index: usize,
    /// The number of loops of the pool.
    workers: usize,
    handler: &'a mut H,
    /// Indexed by [`ChildId::index`].
    running: Vec<Option<(Attempt, H::Job)>>,
    /// The last value of [`JobPool::requested`] that was carried out.
    requested: u8,
    /// The last value of [`JobPool::suspend_epoch`] that was carried out.
    suspend_epoch: u64,
    /// `true` if this loop counts in [`JobPool::sleepers`].
    is_asleep: bool,
    shortage: Option<Shortage>,
    /// Jobs with a slot whose program was open for writing.
    busy: Vec<PendingStart<H::Job>>,
}

impl<H: JobHandler> Worker<'_, H> {
    fn run(&mut self) -> Result<()> {
        loop {
            let idle = self.start_jobs()?;
            self.apply_requests()?;
            let due = self.handler.due();
            if let Idle::Finished = idle
                && self.set.is_empty()
                && self.busy.is_empty()
                && due.is_none()
            {
                self.handler.idle(&mut ChildControl(self.set));
                return Ok(());
            }
            let deadline = idle.deadline(self.set.is_empty());
            let busy = self.busy.iter().filter_map(|start| start.at).min();
            let deadline = [deadline, due, busy].into_iter().flatten().min();
            let processed = self.process_events(deadline);
            if std::mem::take(&mut self.is_asleep) {
                self.pool.sleepers.fetch_sub(1, Ordering::SeqCst);
            }
            processed?;
        }
    }

    /// Handles events until a slot may be free.
    fn process_events(&mut self, deadline: Option<Instant>) -> Result<()> {
        loop {
            if !self.set.has_pending_events() {
                self.handler.idle(&mut ChildControl(self.set));
            }
            // An event is matched where it was returned: moving it would copy it.
            match self.set.next_event_deadline(deadline) {
                Err(error) => return Err(error),
                Ok(NextEvent::Empty | NextEvent::TimedOut | NextEvent::Event(Event::Woken)) => return Ok(()),
                Ok(NextEvent::Event(Event::Done { child: id, outcome })) => {
                    if let Some((attempt, job)) = self.running.get_mut(id.index()).and_then(Option::take) {
                        let result = self.handler.finished(attempt, &job, outcome);
                        self.finish(attempt, job, result);
                    }
                    return Ok(());
                }
                Ok(NextEvent::Event(event)) => {
                    let Some(id) = event.child() else { continue };
                    let running = self.running.get(id.index()).and_then(Option::as_ref);
                    let Some((attempt, job)) = running else { continue };
                    if let Some(how) = self.handler.event(*attempt, job, event, &mut ChildControl(self.set)) {
                        ignore_denied(self.set.kill(id, how))?;
                    }
                }
            }
        }
    }

    /// Starts jobs while there are free slots. Returns why it stopped.
    fn start_jobs(&mut self) -> Result<Idle> {
        if let Some(idle) = self.start_busy_jobs()? {
            return Ok(idle);
        }
        while self.set.len() + self.busy.len() < self.share() {
            let (attempt, job) = match self.next_attempt() {
                Ok(next) => next,
                Err(idle) => return Ok(idle),
            };
            match self.handler.prepare(attempt, &job) {
                Ok(request) => {
                    if let Some(idle) = self.start(PendingStart::new(attempt, job, request))? {
                        return Ok(idle);
                    }
                }
                Err(result) => self.finish(attempt, job, result),
            }
        }
        Ok(if self.set.is_empty() { self.wait_for_share() } else { Idle::OwnJob })
    }

    /// Starts a job. Returns why the loop starts no other one, if it does not.
    fn start(&mut self, mut start: PendingStart<H::Job>) -> Result<Option<Idle>> {
        let (command, options) = &*start.request.parts;
        match self.set.spawn(command, *options) {
            Ok(id) => {
                self.shortage = None;
                self.handler.started(start.attempt, &start.job, id, &mut ChildControl(self.set));
                self.remember(id, start.attempt, start.job);
            }
            Err(error) if error.kind() == ErrorKind::Exhausted => {
                self.handler.deferred(start.attempt, &start.job);
                return self.requeue(start.attempt, start.job, error).map(Some);
            }
            Err(error) if start.delay(&error, Instant::now()) => self.busy.push(start),
            Err(error) => {
                let result = self.handler.spawn_failed(start.attempt, &start.job, error);
                self.finish(start.attempt, start.job, result);
            }
        }
        Ok(None)
    }

    /// Starts jobs whose program was open for writing a moment ago; drops them after a request to
    /// cancel.
    fn start_busy_jobs(&mut self) -> Result<Option<Idle>> {
        if self.busy.is_empty() {
            return Ok(None);
        }
        let is_cancelled = self.pool.is_cancelled();
        let now = Instant::now();
        let mut busy = std::mem::take(&mut self.busy).into_iter();
        while let Some(start) = busy.next() {
            if is_cancelled {
                self.handler.deferred(start.attempt, &start.job);
                self.pool.state.lock().scheduler.requeue(start.attempt, start.job);
            } else if start.at.is_some_and(|at| at > now) {
                self.busy.push(start);
            } else if let Some(idle) = self.start(start)? {
                self.busy.extend(busy);
                return Ok(Some(idle));
            }
        }
        Ok(None)
    }

    /// Returns how many jobs this loop may run at once.
    fn share(&self) -> usize {
        let max_running = self.pool.max_running.load(Ordering::SeqCst);
        max_running / self.workers + usize::from(self.index < max_running % self.workers)
    }

    /// Returns what a loop without jobs waits for while its share is zero.
    fn wait_for_share(&mut self) -> Idle {
        // Locked until the loop counts as a sleeper.
        let state = self.pool.state.lock();
        if state.scheduler.is_finished() {
            return Idle::Finished;
        }
        self.register_sleeper();
        Idle::Elsewhere(None)
    }

    /// Counts this loop as a sleeper. The caller holds the lock of the scheduler: see
    /// [`JobPool::sleepers`].
    fn register_sleeper(&mut self) {
        if !std::mem::replace(&mut self.is_asleep, true) {
            self.pool.sleepers.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns the next job, from the scheduler or from the source.
    fn next_attempt(&mut self) -> std::result::Result<(Attempt, H::Job), Idle> {
        // Locked until the loop counts as a sleeper.
        let mut state = self.pool.state.lock();
        let now = Instant::now();
        let until = loop {
            let due = match state.scheduler.next(now) {
                NextAction::Start(attempt, job) => {
                    if self.handler.admit(attempt, state.scheduler.counts().running - 1) {
                        return Ok((attempt, job));
                    }
                    state.scheduler.requeue(attempt, job);
                    break None;
                }
                NextAction::Finished => return Err(Idle::Finished),
                NextAction::Full => break None,
                NextAction::Paused if !state.is_gathering => break None,
                NextAction::Paused => None,
                NextAction::Later(at) => break Some(at),
                NextAction::Empty if state.source_exhausted => break None,
                NextAction::Empty => None,
                NextAction::EmptyUntil(at) => Some(at),
            };
            match self.handler.next_job() {
                NextJob::Ready(job) => {
                    let cost = self.handler.cost(&job);
                    match self.handler.key(&job) {
                        Some(key) => state.scheduler.submit_keyed(job, key, cost),
                        None => state.scheduler.submit(job, cost),
                    };
                }
                NextJob::Pending => break due,
                NextJob::Exhausted => {
                    if state.note_exhausted() {
                        self.pool.wake();
                    }
                }
            }
        };
        self.register_sleeper();
        Err(Idle::Elsewhere(until))
    }

    /// Puts a job back that could not be started because resources are exhausted. The loop tries
    /// again after a pause, because other processes may use the resources. Fails if nothing becomes
    /// free for a while and no job of the pool runs.
    fn requeue(&mut self, attempt: Attempt, job: H::Job, error: Error) -> Result<Idle> {
        let now = Instant::now();
        let mut state = self.pool.state.lock();
        state.scheduler.requeue(attempt, job);
        let may_end = !self.set.is_empty() || state.scheduler.counts().running > 0;
        let shortage = self.shortage.get_or_insert_with(|| Shortage::new(now));
        let Some(at) = shortage.next_try(now, may_end) else { return Err(error) };
        if self.set.is_empty() {
            self.register_sleeper();
        }
        Ok(Idle::Shortage(at))
    }

    fn remember(&mut self, id: ChildId, attempt: Attempt, job: H::Job) {
        let index = id.index();
        if self.running.len() <= index {
            self.running.resize_with(index + 1, || None);
        }
        self.running[index] = Some((attempt, job));
    }

    /// Passes a result to the scheduler, and wakes the loops that it concerns.
    fn finish(&mut self, attempt: Attempt, job: H::Job, result: JobResult) {
        let mut state = self.pool.state.lock();
        let kill_running = state.scheduler.finish(attempt, job, result, Instant::now());
        let is_exhausted = state.scheduler.is_exhausted();
        drop(state);
        if kill_running {
            self.pool.cancel();
        } else if is_exhausted || self.pool.sleepers.load(Ordering::SeqCst) > 0 {
            self.pool.wake();
        }
    }

    /// Carries out the requests to cancel, kill, suspend and resume.
    fn apply_requests(&mut self) -> Result<()> {
        let requested = self.pool.requested.load(Ordering::SeqCst);
        if requested > self.requested {
            self.requested = requested;
            let how = if requested == CANCEL { self.pool.cancellation } else { Termination::IMMEDIATE };
            ignore_denied(self.set.kill_all(how))?;
        }
        let epoch = self.pool.suspend_epoch.load(Ordering::SeqCst);
        if epoch != self.suspend_epoch {
            // A job that may not or cannot be suspended continues. That must not end the run.
            let _ = if is_suspended(epoch) { self.set.suspend_all() } else { self.set.resume_all() };
            self.suspend_epoch = epoch;
            let mut workers = self.pool.workers.lock();
            // A later request does not count as carried out. It was made with `workers` locked, so
            // the comparison is exact.
            if self.pool.suspend_epoch.load(Ordering::SeqCst) == epoch {
                workers.acknowledged += 1;
            }
            drop(workers);
            self.pool.acknowledged.notify_all();
        }
        Ok(())
    }
}

impl<H: JobHandler> Drop for Worker<'_, H> {
    fn drop(&mut self) {
        let mut workers = self.pool.workers.lock();
        workers.running -= 1;
        let epoch = self.pool.suspend_epoch.load(Ordering::SeqCst);
        if epoch != 0 && epoch == self.suspend_epoch {
            workers.acknowledged -= 1;
        }
        drop(workers);
        self.pool.acknowledged.notify_all();
    }
}

/// Returns whether jobs are suspended in this epoch.
fn is_suspended(epoch: u64) -> bool {
    epoch % 2 == 1
}

/// Ignores the error of a kill that the process now runs as another user, or is gone. The child is
/// waited for instead.
fn ignore_denied(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unknown) => Ok(()),
        result => result,
    }
}
