//! One wait of a set, and the events that follow from it.
//!
//! Each report and each timer goes to the [`Member`] that it concerns. What concerns more than one child
//! is decided here.

use std::time::{Duration, Instant};

use super::child::ChildState;
use super::ending::StoppedTrees;
use super::event::QueuedEvent;
use super::exit::DrainStep;
use super::member::Member;
use super::restart::{self, RunEnd};
use super::shared::SharedState;
use super::slab::{Endpoint, Slab};
use super::timers::TimerKind;
use crate::event::{ChildId, Event, Stream};
use crate::sys::process_tree::{ProcessSnapshot, ProcessTree, TreeTable};
use crate::sys::reap::reap_orphans;
use crate::sys::wait::{Report, WAKE_TOKEN};
use crate::termination::Termination;
use crate::{Error, ErrorKind, Operation, Result};

/// The longest time that one poll waits for files that accept no forwarded bytes.
const SPLICE_WAIT_MAX: Duration = Duration::from_millis(100);
/// The delay before the next retry of a spill file for which no descriptor was free.
const SPILL_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The children of a set, and their wait.
#[derive(Debug)]
pub(super) struct EventLoop {
    pub(super) children: Slab<ChildState>,
    pub(super) shared: SharedState,
    /// The reports of a wait. Kept for its memory.
    reports: Vec<Report>,
}

impl EventLoop {
    pub(super) fn new(shared: SharedState) -> Self {
        Self { children: Slab::default(), shared, reports: Vec::new() }
    }

    /// Returns a child, unless it is done.
    pub(super) fn member(&mut self, id: ChildId) -> Option<Member<'_>> {
        let child = self.children.get_mut(id)?;
        Some(Member { id, child, shared: &mut self.shared })
    }

    /// Returns a child that the caller names.
    pub(super) fn find(&mut self, id: ChildId) -> Result<Member<'_>> {
        self.member(id).ok_or_else(child_gone)
    }

    /// Does something with every child, and returns the first error.
    pub(super) fn for_each(&mut self, act: impl FnMut(Member<'_>) -> Result<()>) -> Result<()> {
        self.for_each_of(self.children.ids(), act)
    }

    /// Does something with each of these children that is not done, and returns the first error.
    fn for_each_of(
        &mut self,
        ids: Vec<ChildId>,
        mut act: impl FnMut(Member<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut result = Ok(());
        for id in ids {
            if let Some(member) = self.member(id) {
                result = result.and(act(member));
            }
        }
        result
    }

    /// Kills and removes a child that could not be watched.
    pub(super) fn abandon(&mut self, id: ChildId) {
        if let Some(child) = self.children.remove(id) {
            child.abandon(&mut self.shared.io.reactor);
        }
    }

    /// Returns when the next timer expires.
    pub(super) fn next_timer_at(&self) -> Option<Instant> {
        let SharedState { timers, deferred_reads, read_turns, .. } = &self.shared;
        [timers.next_at(), deferred_reads.next_at(), read_turns.next_at()].into_iter().flatten().min()
    }

    /// Returns when a loop that watches the descriptor of the set waits again, at the latest: no report
    /// comes for a spill file that can be written again.
    pub(super) fn next_wait_at(&self) -> Option<Instant> {
        let retries = self.shared.memory_waiters.retry_due;
        let retry_at = retries.then(|| Instant::now() + SPILL_RETRY_DELAY);
        [self.next_timer_at(), retry_at].into_iter().flatten().min()
    }

    /// Waits once, until `until` at the latest, and handles all reports.
    pub(super) fn poll_once(&mut self, until: Option<Instant>) -> Result<()> {
        // A spill file that refused bytes is retried first. While it refuses them, the other children
        // continue, without a wait.
        let is_due = std::mem::take(&mut self.shared.memory_waiters.retry_due);
        let retried = if is_due { self.retry_paused() } else { Ok(()) };
        let until = if retried.is_err() {
            Some(Instant::now())
        } else if self.shared.memory_waiters.retry_due {
            let retry_at = Instant::now() + SPILL_RETRY_DELAY;
            Some(until.map_or(retry_at, |until| until.min(retry_at)))
        } else {
            until
        };
        // It knows nothing of the exits that this wait reports.
        self.shared.snapshot = None;
        self.shared.io.splice_wait = Some(SPLICE_WAIT_MAX);
        self.shared.io.poll_until = until;
        reap_orphans();
        let turns_since = self.shared.read_turns.has_waiting().then(Instant::now);
        let mut reports = std::mem::take(&mut self.reports);
        let waited = self
            .shared
            .io
            .reactor
            .wait(&mut reports, until)
            .map_err(|error| Error::new("wait for children", error).during(Operation::Wait));
        let mut result = retried.and(waited);
        for report in reports.drain(..) {
            let handled = self.dispatch(&report).or_else(|error| self.ignore_transient(error));
            result = result.and(handled);
        }
        self.reports = reports;
        self.prune_timers();
        if let Some(since) = turns_since {
            self.shared.read_turns.measure_pace(since.elapsed());
            let resumed = self.shared.read_turns.hand_out(&mut self.children);
            result = result.and(self.for_each_of(resumed, |mut member| member.resume_streams()));
        }
        if self.next_timer_at().is_some() {
            result = result.and(self.expire_timers(Instant::now()));
        }
        if self.shared.memory_waiters.take_retry_now() {
            result = result.and(self.retry_paused());
        }
        result
    }

    /// Gives a report to its endpoint. A report for a child that is done is dropped: the generation
    /// in its id does not match.
    fn dispatch(&mut self, report: &Report) -> Result<()> {
        if report.token == WAKE_TOKEN {
            self.shared.events.push(QueuedEvent::Woken);
            self.shared.memory_waiters.retry_now();
            return Ok(());
        }
        let (id, endpoint) = Endpoint::of_key(report.token);
        let Some(mut member) = self.member(id) else { return Ok(()) };
        match endpoint {
            Endpoint::Process => member.handle_process(report),
            Endpoint::Stdin => member.handle_input(report),
            Endpoint::Stdout => member.read(Stream::Stdout, Some(report)).map(drop),
            Endpoint::Stderr => member.read(Stream::Stderr, Some(report)).map(drop),
        }
    }

    /// Handles every timer that is due.
    fn expire_timers(&mut self, now: Instant) -> Result<()> {
        // One snapshot of the process table serves all kills.
        let mut snapshot = None;
        let is_many = self.children.len() >= TreeTable::TREES_MIN;
        let take_snapshot = if is_many { ProcessSnapshot::among_zombies } else { ProcessSnapshot::now };
        let mut result = Ok(());
        while let Some((id, kind)) = self.shared.timers.pop(now) {
            let Some(mut member) = self.member(id) else { continue };
            // A timer that was armed again for another time is skipped.
            if !member.child.armed.take(kind, now) {
                continue;
            }
            match kind {
                TimerKind::Leak => {
                    let checked = member.on_leak_timer(now);
                    result = result.and(checked.or_else(|error| self.ignore_transient(error)));
                }
                TimerKind::Termination => member.on_termination_timer(now, &mut snapshot, take_snapshot),
                TimerKind::Deadline => member.on_deadline_timer(now),
                TimerKind::Restart => restart::on_restart_timer(&mut member),
            }
        }
        for deferred in self.shared.deferred_reads.take_due(now) {
            if let Some(mut member) = self.member(deferred.id) {
                let polled = member.poll_deferred(deferred);
                result = result.and(polled.or_else(|error| self.ignore_transient(error)));
            }
        }
        let resumed = self.shared.read_turns.rotate_if_due(now, &mut self.children);
        result = result.and(self.for_each_of(resumed, |mut member| member.resume_streams()));
        if self.shared.timers.take_stop_poll(now, self.children.len() > 0) {
            result = result.and(self.for_each(|member| {
                // Stopped since the last poll, except by us.
                if let Some(signal) = member.child.poll_stop() {
                    member.shared.events.push(QueuedEvent::Stopped(member.id, signal));
                }
                Ok(())
            }));
        }
        result
    }

    /// Removes stale timers when they may be most of all.
    pub(super) fn prune_timers(&mut self) {
        let armed = |id| self.children.get(id).map(|child| &child.armed);
        self.shared.timers.prune(self.children.len(), armed);
    }

    /// Retries the streams that wait for memory or for their spill file.
    pub(super) fn retry_paused(&mut self) -> Result<()> {
        if self.shared.memory_waiters.ids().is_empty() {
            return Ok(());
        }
        // Before the room is checked: room that becomes free in between wakes the set.
        self.shared.io.budget.request_wakeup();
        let waiters = self.shared.memory_waiters.take();
        let retried = self.for_each_of(waiters, |mut member| member.retry_paused());
        retried.or_else(|error| self.ignore_transient(error))
    }

    /// Ignores an error that no descriptor is free for a spill file, while a child that is being
    /// read may exit and free some. The bytes wait, their stream is paused, and the next poll
    /// retries.
    fn ignore_transient(&self, error: Error) -> Result<()> {
        let may_exit = |id| {
            self.children.get(id).is_some_and(|child| {
                self.shared.read_turns.is_waiting(id, child)
                    || child.output.streams.iter().all(|stream| !stream.is_paused())
            })
        };
        let is_transient = error.kind() == ErrorKind::Exhausted
            && self.shared.memory_waiters.retry_due
            && self.children.ids().into_iter().any(may_exit);
        if is_transient { Ok(()) } else { Err(error) }
    }

    /// Fails if all children wait for memory that chunks of the caller hold: a wait in the thread that
    /// keeps them would not end. The caller has taken all events.
    pub(super) fn check_starved(&self) -> Result<()> {
        let waiters = self.shared.memory_waiters.ids();
        let Some(first) = waiters.first() else { return Ok(()) };
        let read_size = self.shared.io.config.read_buffer_bytes;
        let is_starved = |id| {
            let child = self.children.get(id);
            child.is_some_and(|child| {
                child.is_starved(read_size) && !self.shared.read_turns.is_waiting(id, child)
            })
        };
        if waiters.len() < self.children.len() || !waiters.iter().all(|id| is_starved(*id)) {
            return Ok(());
        }
        let reason = "chunks of output that the caller keeps fill the memory of every child: drop them, or \
                      take their bytes by `Chunk::into_vec`";
        let error = Error::of_kind(ErrorKind::Limit, "wait for", reason).during(Operation::Wait);
        let pid = self.children.get(*first).map(|child| child.process.pid().to_string());
        Err(error.with_subject(pid.unwrap_or_default()))
    }

    /// Kills all children. Many trees are stopped before the first is killed.
    pub(super) fn kill_all(&mut self, how: Termination) -> Result<()> {
        let stopped = (self.children.len() >= TreeTable::TREES_MIN).then(|| {
            let trees = self.children.values_mut().filter_map(|child| {
                child.process.check();
                let can_signal = child.tree.can_signal(&child.process);
                can_signal.then_some((&mut child.tree, &child.process))
            });
            StoppedTrees(ProcessTree::stop_all(&mut trees.collect::<Vec<_>>(), how.first()))
        });
        self.for_each(|mut member| member.kill(how, stopped.as_ref()))
    }

    /// Takes the next event from the queue.
    pub(super) fn pop_event(&mut self) -> Result<Option<Event>> {
        while let Some(queued) = self.shared.events.pop() {
            let event = self.take_event(queued);
            if !matches!(event, Ok(None)) {
                return event;
            }
        }
        Ok(None)
    }

    /// Returns the event of an entry of the queue. `None` if it has none any more.
    ///
    /// Each arm makes the whole result: an event is large, and one that the arms had in common would be
    /// copied.
    fn take_event(&mut self, queued: QueuedEvent) -> Result<Option<Event>> {
        match queued {
            QueuedEvent::Woken => Ok(Some(Event::Woken)),
            QueuedEvent::Writable(id) if self.children.get(id).is_none() => Ok(None),
            QueuedEvent::Writable(id) => Ok(Some(Event::Writable { child: id })),
            QueuedEvent::Eof(id, stream) => Ok(Some(Event::Eof { child: id, stream })),
            QueuedEvent::Stopped(id, signal) => Ok(Some(Event::Stopped { child: id, signal })),
            QueuedEvent::Output(id, stream) => {
                let child = self.children.get_mut(id);
                let chunk = child.and_then(|child| child.output.take_chunk(stream));
                Ok(chunk.map(|chunk| Event::Output { child: id, stream, chunk }))
            }
            QueuedEvent::Spilled(id, stream) => {
                Ok(self.member(id).and_then(|mut member| member.take_spill_file(stream)))
            }
            QueuedEvent::Forwarded(id, stream) => {
                let child = self.children.get_mut(id);
                let count = child.and_then(|child| child.output.take_forwarded(stream));
                Ok(count.map(|count| Event::Forwarded { child: id, stream, count }))
            }
            QueuedEvent::Exited(id) => match self.children.get(id).and_then(ChildState::exit) {
                Some(exit) => Ok(Some(Event::Exited { child: id, exit })),
                None => Ok(None),
            },
            QueuedEvent::Drain(id) => self.drain(id),
            QueuedEvent::Restarted(id) => {
                let pid = self.children.get(id).map(|child| child.process.pid());
                Ok(pid.map(|pid| Event::Restarted { child: id, pid }))
            }
            QueuedEvent::RestartFailed(id) => Ok(self.member(id).and_then(|member| {
                let error = member.child.restart.as_mut()?.error.take()?;
                Some(Event::RestartFailed { child: id, error })
            })),
            QueuedEvent::Abandoned(id) => {
                // It may have been started again since then.
                let outcome = self.children.get(id).and_then(ChildState::between_runs);
                Ok(outcome.map(|outcome| {
                    self.children.remove(id);
                    Event::Done { child: id, outcome }
                }))
            }
        }
    }

    /// Returns the next event of a child that is being drained. `None` if the queue has changed: the
    /// caller takes the next entry.
    fn drain(&mut self, id: ChildId) -> Result<Option<Event>> {
        let Some(mut member) = self.member(id) else { return Ok(None) };
        if member.child.cancel_drain() {
            return Ok(None);
        }
        // The entry stays first until the child is done. It is put back before anything can fail.
        member.shared.events.push_first(QueuedEvent::Drain(id));
        match member.child.next_drained(&member.shared.io)? {
            DrainStep::Output(stream, chunk) => Ok(Some(Event::Output { child: id, stream, chunk })),
            DrainStep::Forwarded(stream, count) => Ok(Some(Event::Forwarded { child: id, stream, count })),
            DrainStep::SpillFile(stream) => Ok(member.take_spill_file(stream)),
            DrainStep::Eof(stream) => Ok(Some(Event::Eof { child: id, stream })),
            DrainStep::Done => {
                member.leave_turns()?;
                member.shared.events.pop();
                match restart::end_run(&mut member) {
                    Some(RunEnd::Done(outcome)) => {
                        self.children.remove(id);
                        Ok(Some(Event::Done { child: id, outcome }))
                    }
                    Some(RunEnd::Restarting(event)) => Ok(Some(event)),
                    None => Ok(None),
                }
            }
        }
    }
}

/// The error for an id whose child is done, or that has no such stream.
pub(super) fn child_gone() -> Error {
    Error::of_kind(ErrorKind::Unknown, "reach a child", "it is done, or has no such stream")
        .during(Operation::Lookup)
}
