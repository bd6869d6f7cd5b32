//! The main thread's part: signals, the bar, and the end of the loops.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minder::{Events, Guard, Interest, Poller, Signal, Token};

use super::shared::Shared;
use crate::exit;
use crate::report::{Progress, View, count, say_if_heard};

/// How often signals are looked at where they cannot be waited for.
const TICK: Duration = Duration::from_millis(100);

/// How long the loops may take when all jobs should be dead: longer than a set waits for one that cannot be killed.
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

    /// Runs a loop and tells the main thread of its end, be it by a panic. Whoever ends last does the rest: the main thread
    /// takes signals meanwhile.
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
        let heard = self.poller.add(&guard.signals(), Token(0), Interest::READABLE).is_ok();
        let (mut events, mut wishes) = (Events::new(), Wishes::default());
        while self.loops.load(Ordering::SeqCst) > 0 {
            let tick = (!heard).then_some(TICK);
            let wait = [tick, progress.due(begun.elapsed())].into_iter().flatten().min();
            let next = wait.and_then(|wait| Instant::now().checked_add(wait));
            let deadline = [next, self.give_up_at(&wishes)].into_iter().flatten().min();
            if let Err(error) = self.poller.wait(&mut events, deadline) {
                shared.fail(error.to_string());
                break;
            }
            while let Some(signal) = guard.next_signal() {
                take(signal, guard, shared, &mut wishes);
            }
            if self.give_up_at(&wishes).is_some_and(|at| Instant::now() >= at) {
                give_up(&wishes);
            }
            let elapsed = begun.elapsed();
            progress.draw(elapsed, || view(shared, elapsed));
        }
        wishes.first
    }

    /// When no longer to wait. Whoever wished once only is to see all that ended.
    fn give_up_at(&self, wishes: &Wishes) -> Option<Instant> {
        wishes.give_up_at.filter(|_| wishes.killed || !self.rests.load(Ordering::SeqCst))
    }
}

/// What the run looks like.
fn view<'a>(shared: &Shared<'_>, elapsed: Duration) -> View<'a> {
    let counts = shared.crew.counts();
    View { counts, total: shared.input.total(), elapsed, running_count: counts.running, ..View::default() }
}

/// What was wished so far.
#[derive(Debug, Default)]
struct Wishes {
    first: Option<Signal>,
    killed: bool,
    /// When the loops are no longer waited for: one may hang in a write to somebody who does not read.
    give_up_at: Option<Instant>,
}

/// The first wish to end asks the jobs, the second kills them, the third no longer waits for those that cannot be killed.
fn take(signal: Signal, guard: &Guard, shared: &Shared<'_>, wishes: &mut Wishes) {
    match signal {
        Signal::Interrupt | Signal::Terminate | Signal::Hangup if wishes.first.is_none() => {
            wishes.first = Some(signal);
            wishes.give_up_at = Instant::now().checked_add(shared.plan.grace.saturating_add(LATE));
            let running = shared.crew.counts().running;
            shared.crew.cancel();
            if !shared.plan.quiet {
                let jobs = count(running, "running job");
                shared.stage.screen.aside(|| {
                    say_if_heard(&format!("{}: asked {jobs} to end; once more kills", name(signal)))
                });
            }
        }
        Signal::Interrupt | Signal::Terminate | Signal::Hangup | Signal::Quit if !wishes.killed => {
            wishes.first.get_or_insert(signal);
            wishes.killed = true;
            wishes.give_up_at = Some(Instant::now() + LATE);
            shared.crew.kill();
        }
        Signal::Interrupt | Signal::Terminate | Signal::Hangup | Signal::Quit => give_up(wishes),
        // A shell's prompt does not stand within the picture.
        Signal::Stop => shared.stage.screen.aside(|| guard.stop_self()),
        _ => (),
    }
}

/// Ends without order: the guardians sweep whatever is left, and name what they cannot end.
fn give_up(wishes: &Wishes) -> ! {
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
