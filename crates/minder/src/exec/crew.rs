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

use super::{Counts, Halted, Next, Rules, Schedule, Start, Verdict};
use crate::{
    ChildSet, Command, Error, ErrorKind, Event, Kill, Outcome, Result, SpawnOptions, Stream, Token, Waker,
};

/// How long a loop without children sleeps at most before it looks again. Every reason to wake it
/// earlier rings.
const NAP: Duration = Duration::from_secs(60);

/// The pause after a start that was refused for want of something; it doubles up to the longest.
const SHORTAGE_MIN: Duration = Duration::from_millis(10);
const SHORTAGE_MAX: Duration = Duration::from_secs(1);
/// How long a shortage lasts that is an error when no job of ours runs.
const SHORTAGE_PATIENCE: Duration = Duration::from_secs(1);

/// What a source of jobs has to offer.
#[derive(Debug)]
pub enum Supply<J> {
    /// A job.
    Job(J),
    /// Nothing now: whoever has more later calls [`Crew::wake`].
    Later,
    /// Nothing more.
    End,
}

/// What to start for a job.
#[derive(Debug)]
pub struct Launch {
    /// The command.
    pub command: Command,
    /// How the set treats it.
    pub options: SpawnOptions,
}

/// One loop's side of the caller: it turns jobs into commands and takes what comes of them.
pub trait Worker {
    /// What a job is to the caller.
    type Job: Send;

    /// The next job. Called with the schedule locked: it must not block.
    fn supply(&mut self) -> Supply<Self::Job>;
    /// Whether a job may start now, when so many others run. Called with the schedule locked, right
    /// before each start: it must not block. After a no the job is first in line, and whoever
    /// said so calls [`Crew::wake`] when it may be otherwise; the end of a job asks anew, too.
    /// A yes is followed by `launch`.
    fn admit(&mut self, _start: Start, _running: u64) -> bool {
        true
    }
    /// What to start; an `Err` says that the job failed without being started.
    fn launch(&mut self, start: Start, job: &Self::Job) -> std::result::Result<Launch, Verdict>;
    /// A job that was launched could not be started now, for want of descriptors, processes or
    /// memory. It is launched again later, perhaps by another loop.
    fn postponed(&mut self, _start: Start, _job: &Self::Job) {}
    /// A job was started. `outputs` may change how its output is handed over, and write to its
    /// input.
    fn started(&mut self, _start: Start, _job: &Self::Job, _token: Token, _outputs: &mut Outputs<'_>) {}
    /// Takes an event of a running job: output, the end of a stream, room in its input, a stop. A
    /// `Some` ends the job.
    fn event(
        &mut self,
        start: Start,
        job: &Self::Job,
        event: Event,
        outputs: &mut Outputs<'_>,
    ) -> Option<Kill>;
    /// Judges a job that is over. [`Crew::is_last_attempt`] says here whether a failure would be
    /// its last word.
    fn done(&mut self, start: Start, job: &Self::Job, outcome: Outcome) -> Verdict;
    /// Judges a job that could not be started.
    fn refused(&mut self, start: Start, job: &Self::Job, error: Error) -> Verdict;
    /// The loop ends with this error, and all jobs are going to be killed.
    fn broken(&mut self, _error: &Error) {}
    /// When [`idle`](Self::idle) is to be called again at the latest. The loop does not end before
    /// this says `None`.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Called before the loop waits: the moment to write out what was gathered, and to change how
    /// output is handed over.
    fn idle(&mut self, _outputs: &mut Outputs<'_>) {}
}

/// What a worker may do to its loop's running jobs.
#[derive(Debug)]
pub struct Outputs<'a>(&'a mut ChildSet);

impl Outputs<'_> {
    /// See [`ChildSet::go_live`].
    ///
    /// # Errors
    /// As there.
    pub fn go_live(&mut self, token: Token) -> Result<()> {
        self.0.go_live(token)
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
    pub fn kill(&mut self, token: Token, how: Kill) -> Result<()> {
        self.0.kill(token, how)
    }

    /// See [`ChildSet::set_deadline`].
    ///
    /// # Errors
    /// As there.
    pub fn set_deadline(&mut self, token: Token, deadline: Option<(Instant, Kill)>) -> Result<()> {
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
pub struct Crew<J> {
    state: Mutex<State<J>>,
    wakers: Mutex<Vec<Waker>>,
    /// 0: go on. 1: ask the jobs to end. 2: insist.
    order: AtomicU8,
    /// Counts the orders to stand still and to go on. After an odd one the jobs stand still.
    still: AtomicU64,
    loops: Mutex<Loops>,
    /// Rung when a loop obeyed, began or ended.
    obeyed: Condvar,
    /// How jobs are asked to end.
    ask: Kill,
    /// How many jobs may run at once, for the loops' shares.
    degree: AtomicUsize,
    /// Loops that sleep without a reason of their own to wake up.
    sleepers: AtomicUsize,
}

struct State<J> {
    schedule: Schedule<J>,
    ended: bool,
    /// Why nothing starts for a while.
    held: bool,
    suspended: bool,
}

impl<J> State<J> {
    fn hold(&mut self) {
        self.schedule.hold(self.held || self.suspended);
    }
}

/// The loops that run.
#[derive(Debug, Default)]
struct Loops {
    running: usize,
    /// Those who carried out the last order to stand still or to go on.
    obeyed: usize,
}

impl<J> fmt::Debug for Crew<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("order", &self.order).finish_non_exhaustive()
    }
}

impl<J: Send> Crew<J> {
    /// Makes a crew. `grace` is the time that jobs have to end after they were asked.
    pub fn new(rules: Rules, grace: Duration) -> Self {
        let degree = AtomicUsize::new(rules.degree.max(1));
        let state = State { schedule: Schedule::new(rules), ended: false, held: false, suspended: false };
        Self {
            state: Mutex::new(state),
            wakers: Mutex::new(Vec::new()),
            order: AtomicU8::new(0),
            still: AtomicU64::new(0),
            loops: Mutex::default(),
            obeyed: Condvar::new(),
            ask: Kill::after(grace),
            degree,
            sleepers: AtomicUsize::new(0),
        }
    }

    /// Ends jobs in this way when they are asked to, instead of by [`Kill::after`] with the grace.
    #[must_use]
    pub fn ask_by(mut self, how: Kill) -> Self {
        self.ask = how;
        self
    }

    /// The numbers so far.
    pub fn counts(&self) -> Counts {
        self.lock().schedule.counts()
    }

    /// Wakes the loops: there are more jobs, or something changed.
    pub fn wake(&self) {
        for waker in self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // It fails only for a descriptor that is not ours.
            let _ = waker.wake();
        }
    }

    /// Whether a failure of this attempt, whose job runs or is being judged, would be the job's
    /// last word. Not to be called from [`Worker::supply`].
    ///
    /// The answer holds: see [`Schedule::is_last_attempt`].
    pub fn is_last_attempt(&self, start: Start) -> bool {
        self.lock().schedule.is_last_attempt(start)
    }

    /// Changes how many jobs may run at once; at least one does. Those that run go on, also when
    /// they are more than that.
    pub fn set_degree(&self, degree: usize) {
        let degree = degree.max(1);
        let mut state = self.lock();
        state.schedule.set_degree(degree);
        self.degree.store(degree, Ordering::SeqCst);
        drop(state);
        self.wake();
    }

    /// Starts nothing while `held`. Jobs that run go on; the loops still end when nothing is left
    /// to do.
    pub fn hold(&self, held: bool) {
        let mut state = self.lock();
        state.held = held;
        state.hold();
        drop(state);
        self.wake();
    }

    /// Stops all jobs, until [`go_on`](Self::go_on), and starts nothing meanwhile: see
    /// [`ChildSet::suspend`]. It returns at once; [`suspended`](Self::suspended) waits until it
    /// is done. [`cancel`](Self::cancel) and [`kill`](Self::kill) end jobs that stand still,
    /// and those that are being ended do not stand still. A job that cannot be stopped goes on
    /// (Windows: all of them).
    pub fn suspend(&self) {
        self.stand_still(true);
    }

    /// Lets all jobs go on that were suspended, those too that a [`Worker`] suspended by itself.
    pub fn go_on(&self) {
        self.stand_still(false);
    }

    fn stand_still(&self, still: bool) {
        // Nothing starts any more before a loop reads the order: what it starts before, it stops then.
        let mut state = self.lock();
        state.suspended = still;
        state.hold();
        let mut loops = self.loops();
        // Each is a new order: whoever passed one over may have started a job in between.
        let last = self.still.load(Ordering::SeqCst);
        self.still.store(last + if is_still(last) == still { 2 } else { 1 }, Ordering::SeqCst);
        loops.obeyed = 0;
        drop((loops, state));
        self.wake();
    }

    /// Waits until every loop has carried out [`suspend`](Self::suspend), at most until `deadline`,
    /// and says whether they have. A loop that is just busy with its worker obeys late. `false`
    /// at once if jobs are not suspended, or no longer.
    pub fn suspended(&self, deadline: Instant) -> bool {
        let mut loops = self.loops();
        loop {
            if !is_still(self.still.load(Ordering::SeqCst)) {
                return false;
            }
            if loops.obeyed == loops.running {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            loops = self.obeyed.wait_timeout(loops, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// By which rule nothing more starts, if it was one.
    pub fn halted_by(&self) -> Option<Halted> {
        self.lock().schedule.halted_by()
    }

    /// Says how many jobs there are in all, once that is known; percentages count from it.
    pub fn set_total(&self, total: Option<u64>) {
        self.lock().schedule.set_total(total);
    }

    fn loops(&self) -> MutexGuard<'_, Loops> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts nothing more; the jobs that run go on.
    pub fn halt(&self) {
        self.lock().schedule.halt();
        self.wake();
    }

    /// Starts nothing more, and asks the jobs that run to end; they are killed when their grace is
    /// over.
    pub fn cancel(&self) {
        self.command(1);
    }

    /// Starts nothing more, and kills the jobs that run.
    pub fn kill(&self) {
        self.command(2);
    }

    /// Whether the jobs that run were asked to end, or are killed.
    pub fn is_cancelled(&self) -> bool {
        self.order.load(Ordering::SeqCst) > 0
    }

    fn command(&self, order: u8) {
        // Nothing starts any more before a loop reads the order: what it starts before, it kills then.
        self.lock().schedule.halt();
        self.order.fetch_max(order, Ordering::SeqCst);
        self.wake();
    }

    /// Runs jobs on `set` until nothing is left to do. Call it once for each of `loops` loops, each
    /// with a set of its own and a `place` of its own, from 0. Each runs at most its share of
    /// the jobs that may run at once, which follows [`set_degree`](Self::set_degree): a loop
    /// whose share is none sleeps.
    ///
    /// # Errors
    /// `Exhausted` when no descriptor, process or memory is free for a second and no job of any
    /// loop runs whose end could free some. The crew is killed then. What [`ChildSet::next`]
    /// says otherwise.
    pub fn drive<W: Worker<Job = J>>(
        &self,
        set: &mut ChildSet,
        place: usize,
        loops: usize,
        worker: &mut W,
    ) -> Result<()> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(set.waker());
        let mut driver = Loop {
            crew: self,
            set,
            place,
            loops: loops.max(1),
            worker,
            running: Vec::new(),
            order: 0,
            still: 0,
            sleeps: false,
            shortage: None,
        };
        self.loops().running += 1;
        let result = driver.run();
        if let Err(error) = &result {
            // Told before any other loop's jobs are killed for it.
            driver.worker.broken(error);
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
struct Loop<'a, W: Worker> {
    crew: &'a Crew<W::Job>,
    set: &'a mut ChildSet,
    place: usize,
    loops: usize,
    worker: &'a mut W,
    /// By the index of the child's token.
    running: Vec<Option<(Start, W::Job)>>,
    order: u8,
    /// The last order to stand still or to go on that was carried out.
    still: u64,
    /// Whether this loop is counted among the sleepers.
    sleeps: bool,
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
enum Pause {
    /// Something of its own has to end first, or its slots are full.
    Own,
    /// The system is short of something. It may be free by then without an end of ours.
    Short(Instant),
    /// Something of another loop, or of the source, has to happen first.
    Foreign(Option<Instant>),
    /// Nothing more will start.
    Over,
}

impl<W: Worker> Loop<'_, W> {
    fn run(&mut self) -> Result<()> {
        loop {
            let pause = self.fill()?;
            self.obey()?;
            let due = self.worker.due();
            let deadline = match pause {
                Pause::Over if self.set.is_empty() && due.is_none() => {
                    self.worker.idle(&mut Outputs(self.set));
                    return Ok(());
                }
                Pause::Over | Pause::Own => None,
                Pause::Short(at) => Some(at),
                Pause::Foreign(at) => at.or_else(|| self.set.is_empty().then(|| Instant::now() + NAP)),
            };
            let deadline = [deadline, due].into_iter().flatten().min();
            let heard = self.hear(deadline);
            if std::mem::take(&mut self.sleeps) {
                self.crew.sleepers.fetch_sub(1, Ordering::SeqCst);
            }
            heard?;
        }
    }

    /// Takes events until a slot may have become free.
    fn hear(&mut self, deadline: Option<Instant>) -> Result<()> {
        loop {
            if !self.set.has_news() {
                self.worker.idle(&mut Outputs(self.set));
            }
            match self.set.next(deadline)? {
                None | Some(Event::Woken) => return Ok(()),
                Some(Event::Done(token, outcome)) => {
                    if let Some((start, job)) = self.running[token.index()].take() {
                        let verdict = self.worker.done(start, &job, outcome);
                        self.ended(start, job, verdict)?;
                    }
                    return Ok(());
                }
                Some(event) => self.pass(event)?,
            }
        }
    }

    fn pass(&mut self, event: Event) -> Result<()> {
        let Some(token) = event.token() else { return Ok(()) };
        let Some((start, job)) = self.running.get(token.index()).and_then(Option::as_ref) else {
            return Ok(());
        };
        match self.worker.event(*start, job, event, &mut Outputs(self.set)) {
            Some(how) => ignore_denied(self.set.kill(token, how)),
            None => Ok(()),
        }
    }

    /// Starts jobs while there are free slots.
    fn fill(&mut self) -> Result<Pause> {
        while self.set.len() < self.share() {
            let (start, job) = match self.take() {
                Ok(next) => next,
                Err(pause) => return Ok(pause),
            };
            let launch = match self.worker.launch(start, &job) {
                Ok(launch) => launch,
                Err(verdict) => {
                    self.ended(start, job, verdict)?;
                    continue;
                }
            };
            match self.set.spawn(&launch.command, launch.options) {
                Ok(token) => {
                    self.shortage = None;
                    self.worker.started(start, &job, token, &mut Outputs(self.set));
                    self.remember(token, start, job);
                }
                Err(error) if error.kind() == ErrorKind::Exhausted => {
                    self.worker.postponed(start, &job);
                    return self.put_back(start, job, error);
                }
                Err(error) => {
                    let verdict = self.worker.refused(start, &job, error);
                    self.ended(start, job, verdict)?;
                }
            }
        }
        if self.set.is_empty() {
            return Ok(self.rest());
        }
        Ok(Pause::Own)
    }

    /// How many jobs this loop may run at once.
    fn share(&self) -> usize {
        let degree = self.crew.degree.load(Ordering::SeqCst);
        degree / self.loops + usize::from(self.place < degree % self.loops)
    }

    /// What a loop does whose share is none, and that has no job any more.
    fn rest(&mut self) -> Pause {
        let state = self.crew.lock();
        if state.schedule.is_finished() {
            return Pause::Over;
        }
        self.sleep();
        Pause::Foreign(None)
    }

    /// Counts this loop among the sleepers. While the schedule is locked: whatever changes it later
    /// sees that there is somebody to ring.
    fn sleep(&mut self) {
        if !std::mem::replace(&mut self.sleeps, true) {
            self.crew.sleepers.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The next job, from the schedule or from the source.
    fn take(&mut self) -> std::result::Result<(Start, W::Job), Pause> {
        let mut state = self.crew.lock();
        let until = loop {
            match state.schedule.next(Instant::now()) {
                Next::Start(start, job) => {
                    if self.worker.admit(start, state.schedule.counts().running - 1) {
                        return Ok((start, job));
                    }
                    state.schedule.put_back(start, job);
                    break None;
                }
                Next::Over => return Err(Pause::Over),
                Next::Full | Next::Held => break None,
                Next::Later(at) => break Some(at),
                Next::Empty if state.ended => break None,
                Next::Empty => match self.worker.supply() {
                    Supply::Job(job) => _ = state.schedule.offer(job, &[], 0),
                    Supply::Later => break state.schedule.next_retry(),
                    Supply::End => {
                        state.ended = true;
                        state.schedule.close();
                    }
                },
            }
        };
        self.sleep();
        Err(Pause::Foreign(until))
    }

    /// Puts a job back for which nothing is free. It is tried again after a pause, since others
    /// than we may use up what is missing. That nothing becomes free for a while is an error if
    /// no job of ours runs.
    fn put_back(&mut self, start: Start, job: W::Job, error: Error) -> Result<Pause> {
        let now = Instant::now();
        let shortage = self.shortage.get_or_insert(Shortage { since: now, pause: SHORTAGE_MIN / 2 });
        shortage.pause = (shortage.pause * 2).min(SHORTAGE_MAX);
        let at = now + shortage.pause;
        let mut state = self.crew.lock();
        state.schedule.put_back(start, job);
        if !self.set.is_empty() || state.schedule.counts().running > 0 {
            shortage.since = now;
        } else if now.duration_since(shortage.since) >= SHORTAGE_PATIENCE {
            return Err(error);
        }
        if self.set.is_empty() {
            self.sleep();
        }
        Ok(Pause::Short(at))
    }

    fn remember(&mut self, token: Token, start: Start, job: W::Job) {
        let index = token.index();
        if self.running.len() <= index {
            self.running.resize_with(index + 1, || None);
        }
        self.running[index] = Some((start, job));
    }

    /// Tells the schedule, and those whom it concerns.
    fn ended(&mut self, start: Start, job: W::Job, verdict: Verdict) -> Result<()> {
        let mut state = self.crew.lock();
        let kill = state.schedule.ended(start, job, verdict, Instant::now());
        let over = state.schedule.is_over();
        drop(state);
        if kill {
            self.crew.cancel();
        } else if over || self.crew.sleepers.load(Ordering::SeqCst) > 0 {
            self.crew.wake();
        }
        Ok(())
    }

    /// Carries out an order that came since the last look.
    fn obey(&mut self) -> Result<()> {
        let order = self.crew.order.load(Ordering::SeqCst);
        if order > self.order {
            self.order = order;
            let how = if order == 1 { self.crew.ask } else { Kill::NOW };
            ignore_denied(self.set.kill_all(how))?;
        }
        let still = self.crew.still.load(Ordering::SeqCst);
        if still != self.still {
            // Whom we may not stop, or cannot, goes on: that is no reason to end the run.
            let _ = if is_still(still) { self.set.suspend_all() } else { self.set.resume_all() };
            self.still = still;
            let mut loops = self.crew.loops();
            loops.obeyed += usize::from(self.crew.still.load(Ordering::SeqCst) == still);
            drop(loops);
            self.crew.obeyed.notify_all();
        }
        Ok(())
    }
}

impl<W: Worker> Drop for Loop<'_, W> {
    fn drop(&mut self) {
        let mut loops = self.crew.loops();
        loops.running -= 1;
        let last = self.crew.still.load(Ordering::SeqCst);
        loops.obeyed -= usize::from(last != 0 && last == self.still);
        drop(loops);
        self.crew.obeyed.notify_all();
    }
}

/// Whether jobs stand still after this order.
fn is_still(order: u64) -> bool {
    order % 2 == 1
}

/// A process that became another user's cannot be killed by us; it is waited for instead.
fn ignore_denied(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unknown) => Ok(()),
        result => result,
    }
}
