//! The main thread's part: signals, the bar, and the end of the loops.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minder::{Events, Guard, Interest, Poller, Signal, Token};

use super::gates::{Gates, Tokens};
use super::roster::Entry;
use super::shared::Shared;
use crate::exit;
use crate::report::{Progress, Slow, View, count, say_if_heard};

/// How often signals are looked at where they cannot be waited for.
const TICK: Duration = Duration::from_millis(100);

/// How long the loops may take when all jobs should be dead: longer than a set waits for one that
/// cannot be killed.
const LATE: Duration = Duration::from_secs(7);

/// Where the main thread sits.
#[derive(Debug)]
pub(super) struct Desk {
    poller: Poller,
    /// Loops that still work.
    loops: AtomicUsize,
    /// Loops whose jobs are not over.
    busy: AtomicUsize,
    /// Whether only what waits is left to show: that takes as long as whoever reads it takes.
    rests: AtomicBool,
}

impl Desk {
    pub(super) fn new(loops: usize) -> minder::Result<Self> {
        let (poller, count) = (Poller::new()?, || AtomicUsize::new(loops));
        Ok(Self { poller, loops: count(), busy: count(), rests: AtomicBool::new(false) })
    }

    /// Runs a loop and tells the main thread of its end, be it by a panic. Whoever ends last does
    /// the rest: the main thread takes signals meanwhile.
    pub(super) fn attend<T>(&self, work: impl FnOnce() -> T, rest: impl FnOnce()) -> T {
        struct Leave<'a>(&'a Desk);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.loops.fetch_sub(1, Ordering::SeqCst);
                // It fails only for a descriptor that is not ours.
                let _ = self.0.poller.notify();
            }
        }
        let _leave = Leave(self);
        let done = work();
        if self.busy.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.rests.store(true, Ordering::SeqCst);
            rest();
        }
        done
    }

    /// Expects one loop less.
    pub(super) fn do_without(&self) {
        self.busy.fetch_sub(1, Ordering::SeqCst);
        self.loops.fetch_sub(1, Ordering::SeqCst);
    }

    /// Serves until all loops have ended. Returns the signal that ended the run, if one did.
    pub(super) fn serve(
        &self,
        guard: &mut Guard,
        shared: &Shared<'_>,
        progress: &Progress,
        begun: Instant,
    ) -> Option<Signal> {
        let mut watch = Watch::new(shared);
        guard.tell_orphaned(Arc::clone(shared.told_to_end()));
        let heard = self.poller.add(&guard.signals(), Token(0), Interest::READABLE).is_ok();
        let (mut events, mut wishes) = (Events::new(), Wishes::default());
        while self.loops.load(Ordering::SeqCst) > 0 {
            let tick = (!heard).then_some(TICK);
            let wait = [tick, progress.due(begun.elapsed())].into_iter().flatten().min();
            let next = wait.and_then(|wait| Instant::now().checked_add(wait));
            let deadline = [next, self.give_up_at(&wishes), watch.due()].into_iter().flatten().min();
            if let Err(error) = self.poller.wait(&mut events, deadline) {
                shared.fail(error.to_string());
                break;
            }
            while let Some(signal) = guard.next_signal() {
                take(signal, guard, shared, &mut wishes);
            }
            if self.give_up_at(&wishes).is_some_and(|at| Instant::now() >= at) {
                give_up(shared, &wishes);
            }
            let elapsed = begun.elapsed();
            progress.draw(elapsed, || view(shared, elapsed));
            watch.look(shared);
        }
        wishes.first
    }

    /// When no longer to wait. Whoever wished once only is to see all that ended.
    fn give_up_at(&self, wishes: &Wishes) -> Option<Instant> {
        wishes.give_up_at.filter(|_| wishes.killed || !self.rests.load(Ordering::SeqCst))
    }
}

/// How many running jobs a picture names at most.
const NAMED_MAX: usize = 8;

/// What the run looks like.
fn view(shared: &Shared<'_>, elapsed: Duration) -> View {
    let counts = shared.crew.counts();
    let named = |(job, entry): (u64, Entry)| (shared.name_of(job, &entry), entry.begun.elapsed());
    let jobs = if shared.plan.wish.jobs { NAMED_MAX } else { 1 };
    View {
        counts,
        total: shared.input.total(),
        input_over: shared.input.has_ended(),
        elapsed,
        running: shared.roster.oldest(jobs).into_iter().map(named).collect(),
        running_count: counts.running,
        median: shared.roster.median(),
        held: shared.admission.gates.as_ref().and_then(Gates::why),
        suspended: false,
    }
}

/// Looks for jobs that run far longer than others, where somebody may want to know.
struct Watch {
    slow: Slow,
    at: Option<Instant>,
}

/// How often it looks.
const LOOK: Duration = Duration::from_secs(5);

impl Watch {
    fn new(shared: &Shared<'_>) -> Self {
        let wanted = shared.roster.is_wanted() && !shared.plan.quiet;
        let told = std::io::stderr().is_terminal() || shared.plan.wish.jobs;
        Self { slow: Slow::default(), at: (wanted && told).then(|| Instant::now() + LOOK) }
    }

    fn due(&self) -> Option<Instant> {
        self.at
    }

    fn look(&mut self, shared: &Shared<'_>) {
        let now = Instant::now();
        if self.at.is_none_or(|at| at > now) {
            return;
        }
        self.at = (!self.slow.is_over()).then(|| now + LOOK);
        let jobs = shared.roster.oldest(NAMED_MAX);
        let ages = jobs.iter().map(|(job, entry)| (*job, entry.begun.elapsed()));
        let name = |job: u64| {
            let its = jobs.iter().find(|(number, _)| *number == job);
            its.map(|(job, entry)| shared.name_of(*job, entry)).unwrap_or_default()
        };
        for line in self.slow.look(ages, shared.roster.median(), name) {
            shared.stage.screen.aside(|| say_if_heard(&line));
        }
    }
}

/// What was wished so far.
#[derive(Debug, Default)]
struct Wishes {
    first: Option<Signal>,
    killed: bool,
    /// When the loops are no longer waited for: one may hang in a write to somebody who does not
    /// read.
    give_up_at: Option<Instant>,
}

/// The first wish to end asks the jobs, the second kills them, the third no longer waits for those
/// that cannot be killed.
fn take(signal: Signal, guard: &Guard, shared: &Shared<'_>, wishes: &mut Wishes) {
    match signal {
        Signal::Interrupt | Signal::Terminate | Signal::Hangup if wishes.first.is_none() => {
            wishes.first = Some(signal);
            shared.told_to_end().store(true, Ordering::SeqCst);
            wishes.give_up_at = Instant::now().checked_add(shared.plan.grace.saturating_add(LATE));
            let running = shared.crew.counts().running;
            shared.crew.cancel();
            if !shared.plan.quiet {
                let jobs = count(running, "running job");
                let line = match minder::os::can_ask() {
                    true => format!("{}: asked {jobs} to end; once more kills", name(signal)),
                    false => format!("{}: ended {jobs}", name(signal)),
                };
                shared.stage.screen.aside_at_once(|| say_if_heard(&line));
            }
        }
        Signal::Interrupt | Signal::Terminate | Signal::Hangup | Signal::Quit if !wishes.killed => {
            wishes.first.get_or_insert(signal);
            wishes.killed = true;
            shared.told_to_end().store(true, Ordering::SeqCst);
            wishes.give_up_at = Some(Instant::now() + LATE);
            shared.crew.kill();
        }
        Signal::Interrupt | Signal::Terminate | Signal::Hangup | Signal::Quit => give_up(shared, wishes),
        Signal::Stop => stop(guard, shared),
        _ => (),
    }
}

/// How long a stop waits for jobs to stand still: a shell is not kept waiting by a loop that hangs
/// in a write.
const STOPPING: Duration = Duration::from_secs(1);

/// Ctrl-Z: the jobs stand still, then we do, and when we are let go on so are they.
fn stop(guard: &Guard, shared: &Shared<'_>) {
    shared.crew.suspend();
    let since = Instant::now();
    shared.crew.suspended(since + STOPPING);
    // A shell's prompt does not stand within the picture.
    shared.stage.screen.aside_at_once(|| guard.stop_self());
    shared.roster.stood_still(since.elapsed());
    shared.crew.go_on();
}

/// Ends without order: the guardians sweep whatever is left, and name what they cannot end.
fn give_up(shared: &Shared<'_>, wishes: &Wishes) -> ! {
    // Nothing is dropped here, and the build wants its tokens back.
    shared.admission.tokens.iter().for_each(Tokens::give_back);
    std::process::exit(i32::from(match wishes.first {
        Some(Signal::Terminate) => exit::TERMINATED,
        _ => exit::INTERRUPTED,
    }))
}

fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::Interrupt => "interrupted",
        Signal::Hangup => "hung up",
        _ => "told to end",
    }
}
