//! One wait of a set, and everything that follows from it.
//!
//! Each report goes to the child that it concerns. The child returns what the set has to do, and the
//! functions here do it: queue events, arm timers, and keep the lists of children that wait for
//! something.

use std::time::{Duration, Instant};

use super::child::ChildState;
use super::child_set::ChildSet;
use super::deferred_reads::watch_failed;
use super::event::QueuedEvent;
use super::exit::{DeadlineCheck, DrainStep, LeakCheck, ProcessStep, TerminationStep};
use super::output::{Effect, pause_failed};
use super::read_turns::{MayRead, SLICE};
use super::slab::Endpoint;
use super::timers::{INTERVAL_MIN, TimerKind};
use crate::event::{ChildId, Event, Stream};
use crate::sys::pipe::{ReadOutcome, Writer};
use crate::sys::process_tree::{CHECK_IS_CHEAP, ProcessSnapshot, TreeTable};
use crate::sys::reap::reap_orphans;
use crate::sys::wait::{Report, WAKE_TOKEN};
use crate::{Error, Operation, Result};

/// The longest time that one poll waits for files that accept no forwarded bytes.
const SPLICE_WAIT_MAX: Duration = Duration::from_millis(100);
/// The delay before the next retry of a spill file for which no descriptor was free.
const SPILL_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The most reads of a stream at the exit of its child.
const EXIT_READS: usize = 4;

impl ChildSet {
    /// Waits once, until `until` at the latest, and handles all reports.
    pub(super) fn poll_once(&mut self, until: Option<Instant>) -> Result<()> {
        // A spill file that refused bytes is retried first. While it refuses them, the other children
        // continue, without a wait.
        let retried = if std::mem::take(&mut self.retry_due) { self.retry_paused() } else { Ok(()) };
        let retried = retried.or_else(|error| self.ignore_transient(error));
        let until = if retried.is_err() {
            Some(Instant::now())
        } else if self.retry_due {
            let retry_at = Instant::now() + SPILL_RETRY_DELAY;
            Some(until.map_or(retry_at, |until| until.min(retry_at)))
        } else {
            until
        };
        // It knows nothing of the exits that this wait reports.
        self.snapshot = None;
        self.io.splice_wait = Some(SPLICE_WAIT_MAX);
        self.io.poll_until = until;
        reap_orphans();
        let turns_since = self.read_turns.has_waiting().then(Instant::now);
        let mut reports = std::mem::take(&mut self.reports);
        let waited = self
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
        if let Some(since) = turns_since {
            self.read_turns.measure_pace(since.elapsed(), &self.children);
            let resumed = self.read_turns.hand_out(&mut self.children);
            result = result.and(self.resume_children(&resumed));
        }
        if self.timers.next_at().is_some() {
            self.expire_timers(Instant::now())?;
        }
        result
    }

    /// Gives a report to its endpoint. A report for a child that is done is dropped: the generation
    /// in its id does not match.
    fn dispatch(&mut self, report: &Report) -> Result<()> {
        if report.token == WAKE_TOKEN {
            self.events.push_back(QueuedEvent::Woken);
            return self.retry_paused();
        }
        let Some((id, endpoint)) = self.children.find(report.token) else { return Ok(()) };
        match endpoint {
            Endpoint::Process => self.on_process_report(id, report),
            Endpoint::Stdin => self.on_writable(id, report),
            Endpoint::Stdout => self.on_readable(id, Stream::Stdout, Some(report)).map(drop),
            Endpoint::Stderr => self.on_readable(id, Stream::Stderr, Some(report)).map(drop),
        }
    }

    fn on_writable(&mut self, id: ChildId, report: &Report) -> Result<()> {
        let writer = self.children.get_mut(id).and_then(|child| child.stdin.as_mut());
        let Some(writer) = writer else { return Ok(()) };
        let has_room = writer
            .ready(&mut self.io.reactor, report)
            .map_err(|error| Error::new("write to a child", error).during(Operation::Write))?;
        if has_room {
            self.on_room(id)?;
        }
        Ok(())
    }

    /// Reports that there is room in the input of a child, or continues to end it.
    pub(super) fn on_room(&mut self, id: ChildId) -> Result<()> {
        let writer = self.children.get_mut(id).and_then(|child| child.stdin.as_ref());
        if writer.is_some_and(Writer::is_ending) {
            return self.end_terminal(id);
        }
        self.events.push_back(QueuedEvent::Writable(id));
        Ok(())
    }

    /// Reads a stream once, after a report or without one.
    pub(super) fn on_readable(
        &mut self,
        id: ChildId,
        stream: Stream,
        report: Option<&Report>,
    ) -> Result<ReadOutcome> {
        let is_reading = self.children.get_mut(id).is_some_and(|child| child.stream(stream).is_reading());
        if !is_reading {
            return Ok(ReadOutcome::WouldBlock);
        }
        let may_read = self.read_turns.may_read(id, stream, &mut self.children);
        let Some(child) = self.children.get_mut(id) else { return Ok(ReadOutcome::WouldBlock) };
        if let MayRead::Later { is_first } = may_read {
            if is_first {
                self.timers.schedule_read_turns(Instant::now() + SLICE);
            }
            child.stream(stream).pause(&mut self.io.reactor).map_err(pause_failed)?;
            return Ok(ReadOutcome::WouldBlock);
        }
        let step = child.read(stream, &mut self.io, report)?;
        self.apply(id, stream, step.effect)?;
        if let ReadOutcome::Data(count) = step.outcome
            && let Some(child) = self.children.get_mut(id)
        {
            self.read_turns.count(id, child, count as u64);
        }
        Ok(step.outcome)
    }

    /// Resumes children that have got a turn, or need none any more. Tries each, and returns the first error.
    fn resume_children(&mut self, ids: &[ChildId]) -> Result<()> {
        ids.iter().map(|id| self.resume_child(*id)).fold(Ok(()), Result::and)
    }

    /// Removes a child from the turns: it does not need one any more, or is done.
    pub(super) fn leave_turns(&mut self, id: ChildId) -> Result<()> {
        let child = self.children.get_mut(id);
        let is_paused = child.is_some_and(|child| self.read_turns.leave(id, child));
        if is_paused { self.resume_child(id) } else { Ok(()) }
    }

    fn apply(&mut self, id: ChildId, stream: Stream, effect: Effect) -> Result<()> {
        match effect {
            Effect::None => (),
            Effect::QueueOutput => self.queue_output(id, stream),
            Effect::QueueForwarded => self.events.push_back(QueuedEvent::Forwarded(id, stream)),
            Effect::Closed => self.on_closed(id, stream),
            Effect::WaitForMemory => {
                self.add_memory_waiter(id);
                // The wake-up is requested before the room is checked: see `chunk.rs`.
                self.io.budget.request_wakeup();
                self.retry_paused()?;
            }
            Effect::SpillRefused(error) => {
                self.retry_due = true;
                self.add_memory_waiter(id);
                return Err(error);
            }
            Effect::KeepTurn => {
                if let Some(child) = self.children.get_mut(id) {
                    self.read_turns.keep(id, child);
                }
            }
        }
        Ok(())
    }

    fn on_closed(&mut self, id: ChildId, stream: Stream) {
        self.queue_eof(id, stream);
        self.queue_drain(id);
    }

    fn on_process_report(&mut self, id: ChildId, report: &Report) -> Result<()> {
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        match child.on_process_report(&mut self.io.reactor, report)? {
            ProcessStep::Alive => Ok(()),
            ProcessStep::Exited => {
                let is_read = match (&mut self.thread_time_reads, child.started_at) {
                    (Some(reads), Some(started)) => reads.is_due(started, Instant::now()),
                    _ => self.io.config.thread_times,
                };
                if is_read {
                    child.read_thread_times();
                }
                self.on_exit(id)
            }
            ProcessStep::TreeChanged => {
                if CHECK_IS_CHEAP {
                    self.end_kill_if_tree_gone(id);
                }
                Ok(())
            }
        }
    }

    /// Queues the exit of a child, and reads what it wrote last.
    fn on_exit(&mut self, id: ChildId) -> Result<()> {
        let mut result = self.leave_turns(id);
        self.events.push_back(QueuedEvent::Exited(id));
        // Its last bytes and the ends of its outputs are usually in the pipes already. Reading them
        // now saves a wait.
        for stream in [Stream::Stdout, Stream::Stderr] {
            result = result.and(self.read_at_exit(id, stream));
        }
        let is_open = self.children.get(id).is_some_and(ChildState::has_open_streams);
        if is_open && let Err(error) = self.register_streams(id, INTERVAL_MIN) {
            result = result.and(Err(watch_failed(error)));
        }
        self.kill_leftovers(id);
        if CHECK_IS_CHEAP {
            // The other processes of its tree have usually exited, too.
            self.end_kill_if_tree_gone(id);
        }
        if let Some(child) = self.children.get_mut(id)
            && child.has_open_streams()
        {
            child.note_activity();
            self.arm_leak_timer(id, Instant::now());
        }
        self.queue_drain(id);
        result
    }

    fn read_at_exit(&mut self, id: ChildId, stream: Stream) -> Result<()> {
        for _ in 0..EXIT_READS {
            match self.on_readable(id, stream, None)? {
                ReadOutcome::Data(_) => (),
                ReadOutcome::Eof | ReadOutcome::WouldBlock => break,
            }
        }
        Ok(())
    }

    /// Handles every timer that is due.
    fn expire_timers(&mut self, now: Instant) -> Result<()> {
        // One snapshot of the process table serves all kills.
        let mut snapshot = None;
        while let Some((id, kind)) = self.timers.pop(now) {
            // A child that is done, or a timer that was armed again for another time, is skipped.
            let is_armed = self.children.get_mut(id).is_some_and(|child| child.armed.take(kind, now));
            if !is_armed {
                continue;
            }
            match kind {
                TimerKind::Leak => self.on_leak_timer(id, now)?,
                TimerKind::Termination => self.on_termination_timer(id, now, &mut snapshot),
                TimerKind::Deadline => self.on_deadline_timer(id, now),
                TimerKind::Restart => self.on_restart_timer(id),
            }
        }
        if self.timers.take_deferred_reads(now) {
            self.poll_deferred_reads(now)?;
        }
        if self.timers.take_read_turns(now) {
            let resumed = self.read_turns.rotate(&mut self.children);
            if self.read_turns.has_waiting() {
                self.timers.schedule_read_turns(now + SLICE);
            }
            self.resume_children(&resumed)?;
        }
        if self.timers.take_stop_poll(now, self.children.len() > 0) {
            self.poll_stops();
        }
        Ok(())
    }

    /// Arms the timer that finds silent outputs of a child that exited.
    pub(super) fn arm_leak_timer(&mut self, id: ChildId, now: Instant) {
        if let Some(timeout) = self.io.config.leak_timeout {
            self.arm(id, TimerKind::Leak, now + timeout);
        }
    }

    /// Closes the outputs of a child that exited, if they are silent.
    fn on_leak_timer(&mut self, id: ChildId, now: Instant) -> Result<()> {
        let Some(timeout) = self.io.config.leak_timeout else { return Ok(()) };
        let Some(child) = self.children.get(id) else { return Ok(()) };
        match child.check_leak(now, timeout) {
            LeakCheck::Stop => return Ok(()),
            LeakCheck::CheckAgain(at) => {
                self.arm(id, TimerKind::Leak, at);
                return Ok(());
            }
            LeakCheck::Silent => (),
        }
        // If this timer is late, the last bytes may not have been read yet.
        for stream in [Stream::Stdout, Stream::Stderr] {
            let outcome = self.on_readable(id, stream, None);
            let was_active = self.children.get(id).is_some_and(|child| child.was_active_since(stream, now));
            if was_active || !matches!(outcome, Ok(ReadOutcome::WouldBlock | ReadOutcome::Eof)) {
                self.arm(id, TimerKind::Leak, now + timeout);
                return outcome.map(drop);
            }
        }
        if let Some(child) = self.children.get_mut(id) {
            child.leaked = child.has_open_streams();
        }
        // One after the other: the end of the child is queued after the ends of both streams.
        for stream in [Stream::Stdout, Stream::Stderr] {
            if let Some(child) = self.children.get_mut(id) {
                child.stream(stream).close(&mut self.io.reactor);
            }
            self.on_closed(id, stream);
        }
        Ok(())
    }

    /// Arms the timer for a child's deadline. If it is armed for an earlier time, it is armed again
    /// when it expires.
    pub(super) fn arm_deadline(&mut self, id: ChildId) {
        if let Some((at, _)) = self.children.get(id).and_then(|child| child.options.deadline) {
            self.arm(id, TimerKind::Deadline, at);
        }
    }

    /// Kills a child whose deadline has come.
    fn on_deadline_timer(&mut self, id: ChildId, now: Instant) {
        let waits_for_outputs = self.io.config.leak_timeout.is_none();
        let Some(child) = self.children.get_mut(id) else { return };
        match child.check_deadline(now, waits_for_outputs) {
            DeadlineCheck::None => (),
            DeadlineCheck::CheckAgain(at) => self.arm(id, TimerKind::Deadline, at),
            DeadlineCheck::TimedOut(how) => {
                // A process that may no longer be signalled is waited for. That must not end the wait for the
                // other children, so the error is ignored.
                let _ = self.kill(id, how);
            }
        }
    }

    fn on_termination_timer(&mut self, id: ChildId, now: Instant, snapshot: &mut Option<ProcessSnapshot>) {
        let is_many = self.children.len() >= TreeTable::TREES_MIN;
        let take_snapshot = if is_many { ProcessSnapshot::among_zombies } else { ProcessSnapshot::now };
        let Some(child) = self.children.get_mut(id) else { return };
        match child.advance_termination(now, snapshot, take_snapshot) {
            TerminationStep::None => (),
            TerminationStep::Finished => self.queue_drain(id),
            TerminationStep::CheckAgain(at) => self.arm(id, TimerKind::Termination, at),
        }
    }

    /// Finishes a kill before its timer is due, if the tree is gone. The timer then finds no kill.
    fn end_kill_if_tree_gone(&mut self, id: ChildId) {
        if self.children.get_mut(id).is_some_and(ChildState::end_kill_if_tree_gone) {
            self.queue_drain(id);
        }
    }

    /// Queues an event for each child that was stopped since the last poll, except by us.
    fn poll_stops(&mut self) {
        for id in self.children.ids() {
            let stopped = self.children.get(id).and_then(|child| child.poll_stop());
            if let Some(signal) = stopped {
                self.events.push_back(QueuedEvent::Stopped(id, signal));
            }
        }
    }

    /// Queues an event for each chunk in memory that has none.
    pub(super) fn queue_output(&mut self, id: ChildId, stream: Stream) {
        let Some(state) = self.children.get_mut(id).map(|child| child.stream(stream)) else { return };
        while state.queued_events < state.buffered.len() {
            state.queued_events += 1;
            self.events.push_back(QueuedEvent::Output(id, stream));
        }
    }

    /// Queues the end of a stream whose output is handed over as it arrives, once all of it is queued.
    pub(super) fn queue_eof(&mut self, id: ChildId, stream: Stream) {
        if self.children.get_mut(id).is_some_and(|child| child.take_streamed_eof(stream)) {
            self.events.push_back(QueuedEvent::Eof(id, stream));
        }
    }

    /// Queues the end of a child, once it exited, its outputs ended and no kill is under way.
    fn queue_drain(&mut self, id: ChildId) {
        if self.children.get_mut(id).is_some_and(ChildState::begin_drain) {
            self.events.push_back(QueuedEvent::Drain(id));
        }
    }

    /// Takes the next event from the queue.
    pub(super) fn pop_event(&mut self) -> Result<Option<Event>> {
        while let Some(queued) = self.events.pop_front() {
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
            QueuedEvent::Output(id, stream) => Ok(self.take_output(id, stream)),
            QueuedEvent::Spilled(id, stream) => Ok(self.take_spill_file(id, stream)),
            QueuedEvent::Forwarded(id, stream) => Ok(self.take_forwarded(id, stream)),
            QueuedEvent::Exited(id) => match self.children.get(id).and_then(|child| child.exit()) {
                Some(exit) => Ok(Some(Event::Exited { child: id, exit })),
                None => Ok(None),
            },
            QueuedEvent::Drain(id) => self.drain(id),
            QueuedEvent::Restarted(id) => Ok(self.take_restarted(id)),
            QueuedEvent::RestartFailed(id) => Ok(self.take_restart_error(id)),
            QueuedEvent::Abandoned(id) => Ok(self.take_abandoned(id)),
        }
    }

    /// Takes the oldest chunk of a stream. `None` if it was dropped to make room.
    fn take_output(&mut self, id: ChildId, stream: Stream) -> Option<Event> {
        let state = self.children.get_mut(id)?.stream(stream);
        state.queued_events -= 1;
        let chunk = state.buffered.pop_front()?;
        Some(Event::Output { child: id, stream, chunk })
    }

    /// Returns the next event of a child that is being drained. `None` if the queue has changed: the
    /// caller takes the next entry.
    fn drain(&mut self, id: ChildId) -> Result<Option<Event>> {
        let Some(child) = self.children.get_mut(id) else { return Ok(None) };
        if child.cancel_drain() {
            return Ok(None);
        }
        // The entry stays first until the child is done. It is put back before anything can fail.
        self.events.push_front(QueuedEvent::Drain(id));
        match child.next_drained(&self.io)? {
            DrainStep::Output(stream, chunk) => Ok(Some(Event::Output { child: id, stream, chunk })),
            DrainStep::Forwarded(stream) => Ok(self.take_forwarded(id, stream)),
            DrainStep::SpillFile(stream) => Ok(self.take_spill_file(id, stream)),
            DrainStep::Eof(stream) => Ok(Some(Event::Eof { child: id, stream })),
            DrainStep::Done => {
                self.leave_turns(id)?;
                self.events.pop_front();
                Ok(self.end_run(id))
            }
        }
    }
}
