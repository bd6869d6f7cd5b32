//! The end of one child: its process exits, its outputs end or fall silent, the rest of its process
//! tree exits, the caller takes its last events.
//!
//! These are separate and come in any order. The methods change only the child and return what the
//! set has to do.

use std::time::{Duration, Instant};

use super::child::{ChildState, Phase};
use super::stream::{StreamIo, StreamState};
use crate::chunk::Chunk;
use crate::event::Stream;
use crate::exit_status::Outcome;
use crate::sys::process_tree::{ProcessSnapshot, TreeSignal, main_thread_times};
use crate::sys::reactor::Reactor;
use crate::sys::wait::Report;
use crate::termination::{KILL_REPEAT_AFTER, Termination};
use crate::{Error, Operation, Result};

/// The meaning of a report about the child's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessStep {
    /// The process is still alive.
    Alive,
    /// The process exited just now.
    Exited,
    /// The process exited before; the report concerns the rest of its tree.
    TreeChanged,
}

/// The next event of a child that is being drained.
#[derive(Debug)]
pub(super) enum DrainStep {
    Output(Stream, Chunk),
    Forwarded(Stream, u64),
    SpillFile(Stream),
    Eof(Stream),
    /// Every stream has been handed over.
    Done,
}

/// The result of the timer for silent outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeakCheck {
    /// The timer is no longer needed.
    Stop,
    /// The outputs were active, or may not be judged now.
    CheckAgain(Instant),
    /// The outputs are silent, as far as was read.
    Silent,
}

/// The result of the timer of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeadlineCheck {
    /// There is no deadline, or it does not run now.
    None,
    /// The deadline comes later.
    CheckAgain(Instant),
    /// The child is killed in this way.
    TimedOut(Termination),
}

/// The result of the timer of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminationStep {
    /// No kill is under way.
    None,
    /// The tree is gone, or will never be: the kill is finished.
    Finished,
    CheckAgain(Instant),
}

impl ChildState {
    /// Handles a report about the child's process.
    pub(super) fn on_process_report(
        &mut self,
        reactor: &mut Reactor,
        report: &Report,
    ) -> Result<ProcessStep> {
        if self.has_exited() {
            return Ok(ProcessStep::TreeChanged);
        }
        let exit = self.process.progress(reactor, report).map_err(|error| {
            let subject = self.process.pid().to_string();
            Error::new("read the exit status of", error).during(Operation::Wait).with_subject(subject)
        })?;
        let Some(exit) = exit else { return Ok(ProcessStep::Alive) };
        self.phase = Phase::Exited(exit);
        Ok(ProcessStep::Exited)
    }

    /// Adds the times of its main thread to the exit. They are gone when the process is reaped.
    pub(super) fn read_thread_times(&mut self) {
        if let Phase::Exited(exit) = &mut self.phase
            && let Some(usage) = &mut exit.usage
        {
            usage.main_thread = main_thread_times(self.process.pid());
        }
    }

    /// Moves a child that exited, whose outputs ended and whose tree is not being killed, to
    /// [`Phase::Draining`]. Returns whether it did: then the set queues `QueuedEvent::Drain`.
    pub(super) fn begin_drain(&mut self) -> bool {
        let Phase::Exited(exit) = self.phase else { return false };
        if self.termination.is_some() || self.output.is_open() {
            return false;
        }
        self.phase = Phase::Draining(exit);
        true
    }

    /// Takes back [`begin_drain`](Self::begin_drain) if a kill was requested in between. Returns
    /// whether it did: the drain begins again when the tree is gone.
    pub(super) fn cancel_drain(&mut self) -> bool {
        let Phase::Draining(exit) = self.phase else { return false };
        if self.termination.is_none() {
            return false;
        }
        self.phase = Phase::Exited(exit);
        true
    }

    /// Returns the next event of a child that is being drained: its last bytes and the ends of its
    /// streams.
    pub(super) fn next_drained(&mut self, io: &StreamIo) -> Result<DrainStep> {
        for stream in Stream::BOTH {
            loop {
                let state = self.output.stream(stream);
                if let Some(chunk) = state.buffered.pop_front() {
                    return Ok(DrainStep::Output(stream, chunk));
                }
                if let Some(count) = state.take_forwarded() {
                    return Ok(DrainStep::Forwarded(stream, count));
                }
                if !state.is_spilled() {
                    if state.take_eof() {
                        return Ok(DrainStep::Eof(stream));
                    }
                    break;
                }
                if self.output.spill_as_file {
                    return Ok(DrainStep::SpillFile(stream));
                }
                // The memory limits are not checked: the caller takes one chunk at a time.
                if !self.output.read_back(stream, io)? {
                    break;
                }
            }
        }
        Ok(DrainStep::Done)
    }

    /// Closes and reaps a drained child and returns its outcome. `None` only for a child that did not
    /// exit. `snapshot` is shared by all children whose exits one wait reported.
    pub(super) fn reap(
        &mut self,
        reactor: &mut Reactor,
        snapshot: &mut Option<ProcessSnapshot>,
    ) -> Option<Outcome> {
        self.close(reactor);
        for stream in &mut self.output.streams {
            stream.spill = None;
        }
        if self.suspension.is_suspended() {
            // What the child left behind is stopped too, and no other process knows that.
            self.process.check();
            let _ = self.tree.signal_all(&self.process, TreeSignal::Continue);
        }
        // The zombie kept the pid, and with it the id of the process group, from being reused. The
        // caller could kill the group until now.
        self.process.reap();
        Some(Outcome {
            exit: self.exit()?,
            leaked: self.leaked,
            left_running: self.tree.left_running(snapshot),
            dropped: self.output.dropped,
            killed: self.killed,
            timed_out: self.timed_out,
            suspended: self.suspension.total(),
        })
    }

    /// Decides whether the outputs of a child that exited have been silent for `timeout`.
    pub(super) fn check_leak(&self, now: Instant, timeout: Duration) -> LeakCheck {
        // Suspended processes are not silent; resuming them arms the timer again.
        if self.is_draining() || !self.output.is_open() || self.suspension.is_suspended() {
            return LeakCheck::Stop;
        }
        let silent_at = self.output.last_activity().unwrap_or(now) + timeout;
        let is_paused = self.output.streams.iter().any(StreamState::is_paused);
        // A paused stream is not silent: we do not read it. A tree that is being killed closes the
        // pipes when it exits.
        if silent_at > now || self.termination.is_some() || is_paused {
            return LeakCheck::CheckAgain(silent_at.max(now + timeout));
        }
        LeakCheck::Silent
    }

    /// Takes the deadline if it has come, and notes what timed out. With `waits_for_outputs`, nothing else
    /// limits the wait for the outputs, so they are part of the child.
    pub(super) fn check_deadline(&mut self, now: Instant, waits_for_outputs: bool) -> DeadlineCheck {
        if self.is_draining() || self.suspension.is_suspended() {
            return DeadlineCheck::None;
        }
        match self.options.deadline {
            None => DeadlineCheck::None,
            Some((at, _)) if at > now => DeadlineCheck::CheckAgain(at),
            Some((_, how)) => {
                self.options.deadline = None;
                // It may exit before the kill looks: what timed out was killed.
                let is_alive = self.is_alive();
                self.timed_out |= is_alive || waits_for_outputs && self.output.is_open();
                self.killed |= is_alive;
                DeadlineCheck::TimedOut(how)
            }
        }
    }

    /// Finishes a kill if the tree is gone. Returns whether it was.
    pub(super) fn end_kill_if_tree_gone(&mut self) -> bool {
        let is_gone = self.termination.is_some() && !self.tree.is_alive(&ProcessSnapshot::now());
        if is_gone {
            self.termination = None;
        }
        is_gone
    }

    /// Continues a kill: sends the next signal when it is due, and finishes the kill when the tree is
    /// gone. `snapshot` is shared by all children whose timers expire together.
    pub(super) fn advance_termination(
        &mut self,
        now: Instant,
        snapshot: &mut Option<ProcessSnapshot>,
        take_snapshot: fn() -> ProcessSnapshot,
    ) -> TerminationStep {
        let has_exited = self.has_exited();
        let Some(termination) = &mut self.termination else { return TerminationStep::None };
        // A search of the whole process table is expensive. It is needed only after the exit, and is
        // made less and less often: it would use most of a processor during a long grace period.
        let is_alive = !has_exited
            || !termination.may_search(now)
            || self.tree.is_alive(snapshot.get_or_insert_with(take_snapshot));
        if !is_alive || termination.is_hopeless(now) {
            self.termination = None;
            return TerminationStep::Finished;
        }
        // An exit that this thread has not come to see comes with the next report.
        let is_dying = !has_exited
            && termination.repeats_kill(now).is_some_and(|first| {
                now < first + KILL_REPEAT_AFTER || matches!(self.process.peek(), Ok(Some(_)))
            });
        let signal = if is_dying { None } else { termination.next_signal(now) };
        let check_at = termination.check_at(now);
        if let Some(signal) = signal {
            // A process that may no longer be signalled is waited for. That must not end the wait for
            // the other children, so the error is ignored.
            self.process.check();
            let _ = self.tree.signal_all(&self.process, signal);
        }
        TerminationStep::CheckAgain(check_at)
    }

    /// Returns the signal that stopped the child since the last call, unless we stopped it.
    pub(super) fn poll_stop(&self) -> Option<i32> {
        if self.has_exited() || self.suspension.is_suspended() { None } else { self.process.stopped() }
    }

    /// Suspends the process and what it started.
    pub(super) fn suspend(&mut self) -> Result<()> {
        // Read before the child stops, so that its deadline loses no time.
        let now = Instant::now();
        if self.suspension.is_suspended() {
            return Ok(());
        }
        if self.termination.is_some() || self.is_draining() || self.between_runs().is_some() {
            // No process is left, or none will be, but another may be started.
            if self.restart.is_some() {
                self.suspension.start(now);
            }
            return Ok(());
        }
        self.process.check();
        if !self.tree.can_signal(&self.process) {
            return Ok(());
        }
        self.tree.signal_all(&self.process, TreeSignal::Stop).map_err(|error| {
            let subject = self.process.pid().to_string();
            Error::new("suspend", error).during(Operation::Suspend).with_subject(subject)
        })?;
        self.suspension.start(now);
        Ok(())
    }

    /// Lets the process and what it started run on after [`suspend`](Self::suspend).
    pub(super) fn continue_tree(&mut self) -> Result<()> {
        self.process.check();
        self.tree.signal_all(&self.process, TreeSignal::Continue).map_err(|error| {
            let subject = self.process.pid().to_string();
            Error::new("resume", error).during(Operation::Resume).with_subject(subject)
        })
    }
}
