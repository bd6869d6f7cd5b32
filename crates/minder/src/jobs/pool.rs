//! The driver over children: equal loops, each with a set of its own, that share a schedule and
//! nothing else.
//!
//! A spawn blocks its thread until the child runs its program, so one thread uses one processor for
//! starting alone. Two equal loops, each spawning, waiting and hearing for half of the slots, took
//! 0.6 to 0.7 of the time of one (measured), and cost less than handing slots to threads that only
//! spawn.

use std::fmt;
use std::fs::File;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Attempt, HaltReason, JobCounts, JobResult, NextAction, Scheduler, SchedulerConfig};
use crate::{
    ChildSet, Command, Error, ErrorKind, Event, Outcome, Result, SpawnOptions, Stream, Termination, Token,
    Waker,
};

/// How long a loop without children sleeps at most before it looks again. Every reason to wake it
/// earlier rings.
const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);

/// The pause after a start that was refused for want of something; it doubles up to the longest.
const SHORTAGE_MIN: Duration = Duration::from_millis(10);
const SHORTAGE_MAX: Duration = Duration::from_secs(1);
/// How long a shortage lasts that is an error when no job of ours runs.
const SHORTAGE_PATIENCE: Duration = Duration::from_secs(1);

/// What a source of jobs has to offer.
#[derive(Debug)]
pub enum NextJob<J> {
    /// A job.
    Ready(J),
    /// Nothing now: whoever has more later calls [`JobPool::wake`].
    Pending,
    /// Nothing more.
    Exhausted,
}

/// What to start for a job.
#[derive(Debug)]
pub struct SpawnRequest {
    /// The command.
    pub command: Command,
    /// How the set treats it.
    pub options: SpawnOptions,
}

/// One loop's side of the caller: it turns jobs into commands and takes what comes of them.
pub trait JobHandler {
    /// What a job is to the caller.
    type Job: Send;

    /// The next job. Called with the schedule locked: it must not block.
    fn next_job(&mut self) -> NextJob<Self::Job>;
    /// Whether a job may start now, when so many others run. Called with the schedule locked, right
    /// before each start: it must not block. After a no the job is first in line, and whoever
    /// said so calls [`JobPool::wake`] when it may be otherwise; the end of a job asks anew, too.
    /// A yes is followed by `launch`.
    fn admit(&mut self, _start: Attempt, _running: u64) -> bool {
        true
    }
    /// What to start; an `Err` says that the job failed without being started.
    fn prepare(&mut self, start: Attempt, job: &Self::Job) -> std::result::Result<SpawnRequest, JobResult>;
    /// A job that was launched could not be started now, for want of descriptors, processes or
    /// memory. It is launched again later, perhaps by another loop.
    fn deferred(&mut self, _start: Attempt, _job: &Self::Job) {}
    /// A job was started. `outputs` may change how its output is handed over, and write to its
    /// input.
    fn started(&mut self, _start: Attempt, _job: &Self::Job, _token: Token, _outputs: &mut ChildControl<'_>) {
    }
    /// Takes an event of a running job: output, the end of a stream, room in its input, a stop. A
    /// `Some` ends the job.
    fn event(
        &mut self,
        start: Attempt,
        job: &Self::Job,
        event: Event,
        outputs: &mut ChildControl<'_>,
    ) -> Option<Termination>;
    /// Judges a job that is over. [`JobPool::is_last_attempt`] says here whether a failure would be
    /// its last word.
    fn finished(&mut self, start: Attempt, job: &Self::Job, outcome: Outcome) -> JobResult;
    /// Judges a job that could not be started.
    fn spawn_failed(&mut self, start: Attempt, job: &Self::Job, error: Error) -> JobResult;
    /// The loop ends with this error, and all jobs are going to be killed.
    fn worker_failed(&mut self, _error: &Error) {}
    /// When [`idle`](Self::idle) is to be called again at the latest. The loop does not end before
    /// this says `None`.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Called before the loop waits: the moment to write out what was gathered, and to change how
    /// output is handed over.
    fn idle(&mut self, _outputs: &mut ChildControl<'_>) {}
}

/// What a worker may do to its loop's running jobs.
#[derive(Debug)]
pub struct ChildControl<'a>(&'a mut ChildSet);

impl ChildControl<'_> {
    /// See [`ChildSet::start_streaming`].
    ///
    /// # Errors
    /// As there.
    pub fn start_streaming(&mut self, token: Token) -> Result<()> {
        self.0.start_streaming(token)
    }

    /// See [`ChildSet::forward`].
    ///
    /// # Errors
    /// As there.
    pub fn forward(&mut self, token: Token, stream: Stream, file: &Arc<File>) -> Result<()> {
        self.0.forward(token, stream, file)
    }

    /// See [`ChildSet::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self, token: Token, bytes: &[u8]) -> Result<usize> {
        self.0.write(token, bytes)
    }

    /// See [`ChildSet::close_stdin`].
    ///
    /// # Errors
    /// As there.
    pub fn close_stdin(&mut self, token: Token) -> Result<()> {
        self.0.close_stdin(token)
    }

    /// See [`ChildSet::kill`].
    ///
    /// # Errors
    /// As there.
    pub fn kill(&mut self, token: Token, how: Termination) -> Result<()> {
        self.0.kill(token, how)
    }

    /// See [`ChildSet::set_deadline`].
    ///
    /// # Errors
    /// As there.
    pub fn set_deadline(&mut self, token: Token, deadline: Option<(Instant, Termination)>) -> Result<()> {
        self.0.set_deadline(token, deadline)
    }

    /// See [`ChildSet::suspended_time`].
    ///
    /// # Errors
    /// As there.
    pub fn suspended_time(&self, token: Token) -> Result<Duration> {
        self.0.suspended_time(token)
    }

    /// See [`ChildSet::suspend`].
    ///
    /// # Errors
    /// As there.
    pub fn suspend(&mut self, token: Token) -> Result<()> {
        self.0.suspend(token)
    }

    /// See [`ChildSet::resume`].
    ///
    /// # Errors
    /// As there.
    pub fn resume(&mut self, token: Token) -> Result<()> {
        self.0.resume(token)
    }
}

/// What the loops share.
pub struct JobPool<J> {
    state: Mutex<State<J>>,
    wakers: Mutex<Vec<Waker>>,
    /// 0: go on. 1: ask the jobs to end. 2: insist.
    requested: AtomicU8,
    /// Counts the orders to stand still and to go on. After an odd one the jobs stand still.
    suspend_epoch: AtomicU64,
    workers: Mutex<WorkerCounts>,
    /// Rung when a loop obeyed, began or ended.
    acknowledged: Condvar,
    /// How jobs are asked to end.
    cancellation: Termination,
    /// How many jobs may run at once, for the loops' shares.
    max_running: AtomicUsize,
    /// Loops that sleep without a reason of their own to wake up.
    sleepers: AtomicUsize,
}

struct State<J> {
    scheduler: Scheduler<J>,
    source_exhausted: bool,
    /// Why nothing starts for a while.
    paused: bool,
    suspended: bool,
}

impl<J> State<J> {
    fn update_pause(&mut self) {
        self.scheduler.set_paused(self.paused || self.suspended);
    }
}

/// The loops that run.
#[derive(Debug, Default)]
struct WorkerCounts {
    running: usize,
    /// Those who carried out the last order to stand still or to go on.
    acknowledged: usize,
}

impl<J> fmt::Debug for JobPool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("order", &self.requested).finish_non_exhaustive()
    }
}

impl<J: Send> JobPool<J> {
    /// Makes a crew. `grace` is the time that jobs have to end after they were asked.
    pub fn new(rules: SchedulerConfig, grace: Duration) -> Self {
        let max_running = AtomicUsize::new(rules.max_running.max(1));
        let state = State {
            scheduler: Scheduler::new(rules),
            source_exhausted: false,
            paused: false,
            suspended: false,
        };
        Self {
            state: Mutex::new(state),
            wakers: Mutex::new(Vec::new()),
            requested: AtomicU8::new(0),
            suspend_epoch: AtomicU64::new(0),
            workers: Mutex::default(),
            acknowledged: Condvar::new(),
            cancellation: Termination::graceful(grace),
            max_running,
            sleepers: AtomicUsize::new(0),
        }
    }

    /// Ends jobs in this way when they are asked to, instead of by [`Termination::graceful`] with
    /// the grace.
    #[must_use]
    pub fn cancel_with(mut self, how: Termination) -> Self {
        self.cancellation = how;
        self
    }

    /// The numbers so far.
    pub fn counts(&self) -> JobCounts {
        self.lock().scheduler.counts()
    }

    /// Wakes the loops: there are more jobs, or something changed.
    pub fn wake(&self) {
        for waker in self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // It fails only for a descriptor that is not ours.
            let _ = waker.wake();
        }
    }

    /// Whether a failure of this attempt, whose job runs or is being judged, would be the job's
    /// last word. Not to be called from [`JobHandler::next_job`].
    ///
    /// The answer holds: see [`Scheduler::is_last_attempt`].
    pub fn is_last_attempt(&self, start: Attempt) -> bool {
        self.lock().scheduler.is_last_attempt(start)
    }

    /// Changes how many jobs may run at once; at least one does. Those that run go on, also when
    /// they are more than that.
    pub fn set_max_running(&self, degree: usize) {
        let degree = degree.max(1);
        let mut state = self.lock();
        state.scheduler.set_max_running(degree);
        self.max_running.store(degree, Ordering::SeqCst);
        drop(state);
        self.wake();
    }

    /// Starts nothing while `held`. Jobs that run go on; the loops still end when nothing is left
    /// to do.
    pub fn set_paused(&self, held: bool) {
        let mut state = self.lock();
        state.paused = held;
        state.update_pause();
        drop(state);
        self.wake();
    }

    /// Stops all jobs, until [`go_on`](Self::resume), and starts nothing meanwhile: see
    /// [`ChildSet::suspend`]. It returns at once; [`suspended`](Self::wait_suspended) waits until
    /// it is done. [`cancel`](Self::cancel) and [`kill`](Self::kill) end jobs that stand still,
    /// and those that are being ended do not stand still. A job that cannot be stopped goes on
    /// (Windows: all of them).
    pub fn suspend(&self) {
        self.set_suspended(true);
    }

    /// Lets all jobs go on that were suspended, those too that a [`JobHandler`] suspended by
    /// itself.
    pub fn resume(&self) {
        self.set_suspended(false);
    }

    fn set_suspended(&self, still: bool) {
        // Nothing starts any more before a loop reads the order: what it starts before, it stops then.
        let mut state = self.lock();
        state.suspended = still;
        state.update_pause();
        let mut loops = self.lock_workers();
        // Each is a new order: whoever passed one over may have started a job in between.
        let last = self.suspend_epoch.load(Ordering::SeqCst);
        self.suspend_epoch.store(last + if is_suspended(last) == still { 2 } else { 1 }, Ordering::SeqCst);
        loops.acknowledged = 0;
        drop((loops, state));
        self.wake();
    }

    /// Waits until every loop has carried out [`suspend`](Self::suspend), at most until `deadline`,
    /// and says whether they have. A loop that is just busy with its worker obeys late. `false`
    /// at once if jobs are not suspended, or no longer.
    pub fn wait_suspended(&self, deadline: Instant) -> bool {
        let mut loops = self.lock_workers();
        loop {
            if !is_suspended(self.suspend_epoch.load(Ordering::SeqCst)) {
                return false;
            }
            if loops.acknowledged == loops.running {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            loops = self.acknowledged.wait_timeout(loops, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// By which rule nothing more starts, if it was one.
    pub fn halted_by(&self) -> Option<HaltReason> {
        self.lock().scheduler.halted_by()
    }

    /// Says how many jobs there are in all, once that is known; percentages count from it.
    pub fn set_total(&self, total: Option<u64>) {
        self.lock().scheduler.set_total(total);
    }

    fn lock_workers(&self) -> MutexGuard<'_, WorkerCounts> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts nothing more; the jobs that run go on.
    pub fn halt(&self) {
        self.lock().scheduler.halt();
        self.wake();
    }

    /// Starts nothing more, and asks the jobs that run to end; they are killed when their grace is
    /// over.
    pub fn cancel(&self) {
        self.request(1);
    }

    /// Starts nothing more, and kills the jobs that run.
    pub fn kill(&self) {
        self.request(2);
    }

    /// Whether the jobs that run were asked to end, or are killed.
    pub fn is_cancelled(&self) -> bool {
        self.requested.load(Ordering::SeqCst) > 0
    }

    fn request(&self, order: u8) {
        // Nothing starts any more before a loop reads the order: what it starts before, it kills then.
        self.lock().scheduler.halt();
        self.requested.fetch_max(order, Ordering::SeqCst);
        self.wake();
    }

    /// Runs jobs on `set` until nothing is left to do. Call it once for each of `loops` loops, each
    /// with a set of its own and a `place` of its own, from 0. Each runs at most its share of
    /// the jobs that may run at once, which follows [`set_degree`](Self::set_max_running): a loop
    /// whose share is none sleeps.
    ///
    /// # Errors
    /// `Exhausted` when no descriptor, process or memory is free for a second and no job of any
    /// loop runs whose end could free some. The crew is killed then. What [`ChildSet::next`]
    /// says otherwise.
    pub fn run_worker<W: JobHandler<Job = J>>(
        &self,
        set: &mut ChildSet,
        place: usize,
        loops: usize,
        worker: &mut W,
    ) -> Result<()> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(set.waker());
        let mut driver = Worker {
            pool: self,
            set,
            index: place,
            workers: loops.max(1),
            handler: worker,
            running: Vec::new(),
            requested: 0,
            suspend_epoch: 0,
            is_asleep: false,
            shortage: None,
        };
        self.lock_workers().running += 1;
        let result = driver.run();
        if let Err(error) = &result {
            // Told before any other loop's jobs are killed for it.
            driver.handler.worker_failed(error);
            self.kill();
        }
        // The others may sleep until everything is over.
        self.wake();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One loop.
struct Worker<'a, W: JobHandler> {
    pool: &'a JobPool<W::Job>,
    set: &'a mut ChildSet,
    index: usize,
    workers: usize,
    handler: &'a mut W,
    /// By the index of the child's token.
    running: Vec<Option<(Attempt, W::Job)>>,
    requested: u8,
    /// The last order to stand still or to go on that was carried out.
    suspend_epoch: u64,
    /// Whether this loop is counted among the sleepers.
    is_asleep: bool,
    /// Since the last start was refused.
    shortage: Option<Shortage>,
}

/// The system refuses starts for want of descriptors, processes or memory.
struct Shortage {
    /// Since when, with no job of ours that could give something back.
    since: Instant,
    /// How long the loop waits before it tries again.
    pause: Duration,
}

/// Why a loop starts nothing at the moment.
enum Idle {
    /// Something of its own has to end first, or its slots are full.
    OwnJob,
    /// The system is short of something. It may be free by then without an end of ours.
    Shortage(Instant),
    /// Something of another loop, or of the source, has to happen first.
    Elsewhere(Option<Instant>),
    /// Nothing more will start.
    Finished,
}

impl<W: JobHandler> Worker<'_, W> {
    fn run(&mut self) -> Result<()> {
        loop {
            let pause = self.start_jobs()?;
            self.apply_requests()?;
            let due = self.handler.due();
            let deadline = match pause {
                Idle::Finished if self.set.is_empty() && due.is_none() => {
                    self.handler.idle(&mut ChildControl(self.set));
                    return Ok(());
                }
                Idle::Finished | Idle::OwnJob => None,
                Idle::Shortage(at) => Some(at),
                Idle::Elsewhere(at) => {
                    at.or_else(|| self.set.is_empty().then(|| Instant::now() + IDLE_WAIT_MAX))
                }
            };
            let deadline = [deadline, due].into_iter().flatten().min();
            let heard = self.process_events(deadline);
            if std::mem::take(&mut self.is_asleep) {
                self.pool.sleepers.fetch_sub(1, Ordering::SeqCst);
            }
            heard?;
        }
    }

    /// Takes events until a slot may have become free.
    fn process_events(&mut self, deadline: Option<Instant>) -> Result<()> {
        loop {
            if !self.set.has_pending_events() {
                self.handler.idle(&mut ChildControl(self.set));
            }
            match self.set.next(deadline)? {
                None | Some(Event::Woken) => return Ok(()),
                Some(Event::Done(token, outcome)) => {
                    if let Some((start, job)) = self.running[token.index()].take() {
                        let verdict = self.handler.finished(start, &job, outcome);
                        self.finish(start, job, verdict)?;
                    }
                    return Ok(());
                }
                Some(event) => self.handle_event(event)?,
            }
        }
    }

    fn handle_event(&mut self, event: Event) -> Result<()> {
        let Some(token) = event.token() else { return Ok(()) };
        let Some((start, job)) = self.running.get(token.index()).and_then(Option::as_ref) else {
            return Ok(());
        };
        match self.handler.event(*start, job, event, &mut ChildControl(self.set)) {
            Some(how) => ignore_denied(self.set.kill(token, how)),
            None => Ok(()),
        }
    }

    /// Starts jobs while there are free slots.
    fn start_jobs(&mut self) -> Result<Idle> {
        while self.set.len() < self.share() {
            let (start, job) = match self.next_attempt() {
                Ok(next) => next,
                Err(pause) => return Ok(pause),
            };
            let launch = match self.handler.prepare(start, &job) {
                Ok(launch) => launch,
                Err(verdict) => {
                    self.finish(start, job, verdict)?;
                    continue;
                }
            };
            match self.set.spawn(&launch.command, launch.options) {
                Ok(token) => {
                    self.shortage = None;
                    self.handler.started(start, &job, token, &mut ChildControl(self.set));
                    self.remember(token, start, job);
                }
                Err(error) if error.kind() == ErrorKind::Exhausted => {
                    self.handler.deferred(start, &job);
                    return self.requeue(start, job, error);
                }
                Err(error) => {
                    let verdict = self.handler.spawn_failed(start, &job, error);
                    self.finish(start, job, verdict)?;
                }
            }
        }
        if self.set.is_empty() {
            return Ok(self.wait_for_share());
        }
        Ok(Idle::OwnJob)
    }

    /// How many jobs this loop may run at once.
    fn share(&self) -> usize {
        let degree = self.pool.max_running.load(Ordering::SeqCst);
        degree / self.workers + usize::from(self.index < degree % self.workers)
    }

    /// What a loop does whose share is none, and that has no job any more.
    fn wait_for_share(&mut self) -> Idle {
        let state = self.pool.lock();
        if state.scheduler.is_finished() {
            return Idle::Finished;
        }
        self.register_sleeper();
        Idle::Elsewhere(None)
    }

    /// Counts this loop among the sleepers. While the schedule is locked: whatever changes it later
    /// sees that there is somebody to ring.
    fn register_sleeper(&mut self) {
        if !std::mem::replace(&mut self.is_asleep, true) {
            self.pool.sleepers.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The next job, from the schedule or from the source.
    fn next_attempt(&mut self) -> std::result::Result<(Attempt, W::Job), Idle> {
        let mut state = self.pool.lock();
        let until = loop {
            match state.scheduler.next(Instant::now()) {
                NextAction::Start(start, job) => {
                    if self.handler.admit(start, state.scheduler.counts().running - 1) {
                        return Ok((start, job));
                    }
                    state.scheduler.requeue(start, job);
                    break None;
                }
                NextAction::Finished => return Err(Idle::Finished),
                NextAction::Full | NextAction::Paused => break None,
                NextAction::Later(at) => break Some(at),
                NextAction::Empty if state.source_exhausted => break None,
                NextAction::Empty => match self.handler.next_job() {
                    NextJob::Ready(job) => _ = state.scheduler.submit(job, &[], 0),
                    NextJob::Pending => break state.scheduler.next_retry(),
                    NextJob::Exhausted => {
                        state.source_exhausted = true;
                        state.scheduler.close();
                    }
                },
            }
        };
        self.register_sleeper();
        Err(Idle::Elsewhere(until))
    }

    /// Puts a job back for which nothing is free. It is tried again after a pause, since others
    /// than we may use up what is missing. That nothing becomes free for a while is an error if
    /// no job of ours runs.
    fn requeue(&mut self, start: Attempt, job: W::Job, error: Error) -> Result<Idle> {
        let now = Instant::now();
        let shortage = self.shortage.get_or_insert(Shortage { since: now, pause: SHORTAGE_MIN / 2 });
        shortage.pause = (shortage.pause * 2).min(SHORTAGE_MAX);
        let at = now + shortage.pause;
        let mut state = self.pool.lock();
        state.scheduler.requeue(start, job);
        if !self.set.is_empty() || state.scheduler.counts().running > 0 {
            shortage.since = now;
        } else if now.duration_since(shortage.since) >= SHORTAGE_PATIENCE {
            return Err(error);
        }
        if self.set.is_empty() {
            self.register_sleeper();
        }
        Ok(Idle::Shortage(at))
    }

    fn remember(&mut self, token: Token, start: Attempt, job: W::Job) {
        let index = token.index();
        if self.running.len() <= index {
            self.running.resize_with(index + 1, || None);
        }
        self.running[index] = Some((start, job));
    }

    /// Tells the schedule, and those whom it concerns.
    fn finish(&mut self, start: Attempt, job: W::Job, verdict: JobResult) -> Result<()> {
        let mut state = self.pool.lock();
        let kill = state.scheduler.finish(start, job, verdict, Instant::now());
        let over = state.scheduler.is_exhausted();
        drop(state);
        if kill {
            self.pool.cancel();
        } else if over || self.pool.sleepers.load(Ordering::SeqCst) > 0 {
            self.pool.wake();
        }
        Ok(())
    }

    /// Carries out an order that came since the last look.
    fn apply_requests(&mut self) -> Result<()> {
        let order = self.pool.requested.load(Ordering::SeqCst);
        if order > self.requested {
            self.requested = order;
            let how = if order == 1 { self.pool.cancellation } else { Termination::IMMEDIATE };
            ignore_denied(self.set.kill_all(how))?;
        }
        let still = self.pool.suspend_epoch.load(Ordering::SeqCst);
        if still != self.suspend_epoch {
            // Whom we may not stop, or cannot, goes on: that is no reason to end the run.
            let _ = if is_suspended(still) { self.set.suspend_all() } else { self.set.resume_all() };
            self.suspend_epoch = still;
            let mut loops = self.pool.lock_workers();
            loops.acknowledged += usize::from(self.pool.suspend_epoch.load(Ordering::SeqCst) == still);
            drop(loops);
            self.pool.acknowledged.notify_all();
        }
        Ok(())
    }
}

impl<W: JobHandler> Drop for Worker<'_, W> {
    fn drop(&mut self) {
        let mut loops = self.pool.lock_workers();
        loops.running -= 1;
        let last = self.pool.suspend_epoch.load(Ordering::SeqCst);
        loops.acknowledged -= usize::from(last != 0 && last == self.suspend_epoch);
        drop(loops);
        self.pool.acknowledged.notify_all();
    }
}

/// Whether jobs stand still after this order.
fn is_suspended(order: u64) -> bool {
    order % 2 == 1
}

/// A process that became another user's cannot be killed by us; it is waited for instead.
fn ignore_denied(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unknown) => Ok(()),
        result => result,
    }
}
