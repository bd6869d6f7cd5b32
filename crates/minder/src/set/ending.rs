//! The end of one child's process, and of what it started, as far as it concerns the set.
//!
//! `exit.rs` has the decisions of the child alone.

use std::time::{Duration, Instant};

use super::event::QueuedEvent;
use super::exit::{DeadlineCheck, LeakCheck, ProcessStep, TerminationStep};
use super::member::{Member, watch_failed};
use super::restart;
use super::slab::Endpoint;
use super::timers::{INTERVAL_MIN, TimerKind};
use crate::event::Stream;
use crate::sys::pipe::ReadOutcome;
use crate::sys::process_tree::{CHECK_IS_CHEAP, ProcessSnapshot, TreeTable};
use crate::sys::spawn::is_start_in_progress;
use crate::sys::wait::Report;
use crate::termination::{Termination, TerminationState};
use crate::{Error, Operation, Result};

/// The most reads of a stream at the exit of its child.
const EXIT_READS: usize = 4;

/// How often, and how much later each time, silent outputs are judged again while a start is in progress.
const LEAK_CHECKS_MAX: u8 = 20;
const LEAK_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The trees of all children, which were stopped before all are killed.
pub(super) struct StoppedTrees(pub(super) Option<TreeTable>);

impl Member<'_> {
    /// Handles a report about the process.
    pub(super) fn handle_process(&mut self, report: &Report) -> Result<()> {
        match self.child.on_process_report(&mut self.shared.io.reactor, report)? {
            ProcessStep::Alive => Ok(()),
            ProcessStep::Exited => {
                let is_read = match (&mut self.shared.thread_time_reads, self.child.started_at) {
                    (Some(reads), Some(started)) => reads.is_due(started, Instant::now()),
                    _ => self.shared.io.config.thread_times,
                };
                if is_read {
                    self.child.read_thread_times();
                }
                self.on_exit()
            }
            ProcessStep::TreeChanged => {
                if CHECK_IS_CHEAP {
                    self.end_kill_if_tree_gone();
                }
                Ok(())
            }
        }
    }

    /// Queues the exit, and reads what the child wrote last.
    fn on_exit(&mut self) -> Result<()> {
        let mut result = self.leave_turns();
        self.shared.events.push(QueuedEvent::Exited(self.id));
        // Its last bytes and the ends of its outputs are usually in the pipes already. Reading them
        // now saves a wait.
        for stream in Stream::BOTH {
            result = result.and(self.read_at_exit(stream));
        }
        if self.child.output.is_open() {
            result = result.and(self.register_streams(INTERVAL_MIN).map_err(watch_failed));
        }
        restart::kill_leftovers(self);
        if CHECK_IS_CHEAP {
            // The other processes of its tree have usually exited, too.
            self.end_kill_if_tree_gone();
        }
        self.watch_silence();
        self.shared.events.push_drain(self.id, self.child);
        result
    }

    fn read_at_exit(&mut self, stream: Stream) -> Result<()> {
        for _ in 0..EXIT_READS {
            match self.read(stream, None)? {
                ReadOutcome::Data(_) => (),
                ReadOutcome::Eof | ReadOutcome::WouldBlock => break,
            }
        }
        Ok(())
    }

    /// Looks for silent outputs from now on, if a child that exited left some open.
    fn watch_silence(&mut self) {
        if self.child.output.is_open() {
            let now = Instant::now();
            self.child.output.watch_activity(now);
            if let Some(timeout) = self.shared.io.config.leak_timeout {
                self.arm(TimerKind::Leak, now + timeout);
            }
        }
    }

    /// Closes the outputs of a child that exited, if they are silent.
    pub(super) fn on_leak_timer(&mut self, now: Instant) -> Result<()> {
        let Some(timeout) = self.shared.io.config.leak_timeout else { return Ok(()) };
        match self.child.check_leak(now, timeout) {
            LeakCheck::Stop => return Ok(()),
            LeakCheck::CheckAgain(at) => {
                self.arm(TimerKind::Leak, at);
                return Ok(());
            }
            LeakCheck::Silent => (),
        }
        // If this timer is late, the last bytes may not have been read yet.
        for stream in Stream::BOTH {
            let outcome = self.read(stream, None);
            let was_active = self.child.output.was_active_since(stream, now);
            if was_active || !matches!(outcome, Ok(ReadOutcome::WouldBlock | ReadOutcome::Eof)) {
                self.arm(TimerKind::Leak, now + timeout);
                return outcome.map(drop);
            }
        }
        // A child that another thread is starting may have the pipe, until its program is loaded. On a busy
        // machine that takes longer than any process of this child lives.
        if is_start_in_progress() && self.child.leak_checks < LEAK_CHECKS_MAX {
            self.child.leak_checks += 1;
            self.arm(TimerKind::Leak, now + LEAK_CHECK_INTERVAL);
            return Ok(());
        }
        self.child.leaked = self.child.output.is_open();
        // One after the other: the end of the child is queued after the ends of both streams.
        for stream in Stream::BOTH {
            self.child.output.stream(stream).close(&mut self.shared.io.reactor);
            self.end_stream(stream);
        }
        Ok(())
    }

    /// Arms the timer for the deadline. If it is armed for an earlier time, it is armed again when it
    /// expires.
    pub(super) fn arm_deadline(&mut self) {
        if let Some((at, _)) = self.child.options.deadline {
            self.arm(TimerKind::Deadline, at);
        }
    }

    /// Kills a child whose deadline has come.
    pub(super) fn on_deadline_timer(&mut self, now: Instant) {
        let waits_for_outputs = self.shared.io.config.leak_timeout.is_none();
        match self.child.check_deadline(now, waits_for_outputs) {
            DeadlineCheck::None => (),
            DeadlineCheck::CheckAgain(at) => self.arm(TimerKind::Deadline, at),
            DeadlineCheck::TimedOut(how) => {
                // A process that may no longer be signalled is waited for. That must not end the wait for the
                // other children, so the error is ignored.
                let _ = self.kill(how, None);
            }
        }
    }

    /// Continues a kill. `snapshot` is shared by all children whose timers expire together.
    pub(super) fn on_termination_timer(
        &mut self,
        now: Instant,
        snapshot: &mut Option<ProcessSnapshot>,
        take_snapshot: fn() -> ProcessSnapshot,
    ) {
        match self.child.advance_termination(now, snapshot, take_snapshot) {
            TerminationStep::None => (),
            TerminationStep::Finished => self.shared.events.push_drain(self.id, self.child),
            TerminationStep::CheckAgain(at) => self.arm(TimerKind::Termination, at),
        }
    }

    /// Finishes a kill before its timer is due, if the tree is gone. The timer then finds no kill.
    fn end_kill_if_tree_gone(&mut self) {
        if self.child.end_kill_if_tree_gone() {
            self.shared.events.push_drain(self.id, self.child);
        }
    }

    /// Kills the child, and ends its restarts. `stopped`, if all children are killed.
    pub(super) fn kill(&mut self, how: Termination, stopped: Option<&StoppedTrees>) -> Result<()> {
        restart::end_restarts(self);
        self.terminate(how, stopped)
    }

    /// Kills the present run of the child.
    pub(super) fn terminate(&mut self, how: Termination, stopped: Option<&StoppedTrees>) -> Result<()> {
        let now = Instant::now();
        self.child.process.check();
        if !self.child.tree.can_signal(&self.child.process) {
            if stopped.is_some() {
                // Other code has reaped the child since its tree was stopped.
                let _ = self.child.tree.signal_all(&self.child.process, how.first());
            }
            return Ok(());
        }
        // A stopped process handles no signal. The signal below is followed by SIGCONT.
        self.end_suspension(now);
        self.begin_kill(how, now, stopped)
    }

    /// Sends the first signal of a kill. The tree can be signalled.
    pub(super) fn begin_kill(
        &mut self,
        how: Termination,
        now: Instant,
        stopped: Option<&StoppedTrees>,
    ) -> Result<()> {
        self.child.killed |= self.child.is_alive();
        // A second kill replaces the first only if it comes to SIGKILL earlier.
        let termination = TerminationState::new(how, now);
        let replaces = match &self.child.termination {
            Some(current) => termination.escalates_at() < current.escalates_at(),
            None => true,
        };
        if replaces {
            self.child.termination = Some(Box::new(termination));
        }
        self.child.tree.watch(&self.shared.io.reactor, Endpoint::Process.key(self.id));
        // Its output is read from now on. Otherwise it could block in a write instead of exiting.
        let resumed = self.leave_turns();
        let table = stopped.and_then(|stopped| stopped.0.as_ref());
        let signalled = self.child.tree.signal_all_by(&self.child.process, how.first(), table);
        self.arm(TimerKind::Termination, termination.check_at(now));
        signalled.map_err(|error| {
            let subject = self.child.process.pid().to_string();
            Error::new("kill", error).during(Operation::Kill).with_subject(subject)
        })?;
        resumed
    }

    /// Resumes a child that was suspended.
    pub(super) fn resume(&mut self) -> Result<()> {
        if !self.child.suspension.is_suspended() {
            return Ok(());
        }
        self.child.continue_tree()?;
        let now = Instant::now();
        self.end_suspension(now);
        if self.child.between_runs().is_some() && !self.child.armed.has(TimerKind::Restart) {
            // It was due meanwhile.
            self.arm(TimerKind::Restart, now);
        }
        Ok(())
    }

    /// Ends the suspension of a child, if it is suspended: moves its deadline by the time that it was
    /// suspended, and starts to look for silent outputs again.
    pub(super) fn end_suspension(&mut self, now: Instant) {
        let Some(suspended) = self.child.suspension.stop(now) else { return };
        if let Some((at, _)) = &mut self.child.options.deadline {
            *at = at.checked_add(suspended).unwrap_or(*at);
        }
        if self.child.has_exited() {
            self.watch_silence();
        }
        self.arm_deadline();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use crate::sys::spawn::StartInProgress;
    use crate::{ChildSet, ChildSetOptions, Command, Event, Outcome, SpawnOptions, Stdio};

    fn outcome_of(line: &str) -> Outcome {
        let options = ChildSetOptions::default().leak_timeout(Some(Duration::from_millis(50)));
        let mut set = ChildSet::new(options).expect("create set");
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdout(Stdio::piped());
        set.spawn(&command, SpawnOptions::default()).expect("start child");
        let mut outcome = None;
        let is_done = set.wait_all(Some(Duration::from_secs(20)), |event| {
            if let Event::Done { outcome: found, .. } = event {
                outcome = Some(found);
            }
        });
        assert!(is_done.expect("wait for child"), "it ends in time");
        outcome.expect("the child has finished")
    }

    #[test]
    fn outputs_are_not_judged_during_a_start() {
        assert!(outcome_of("sleep 0.5 &").leaked);
        let _start = StartInProgress::new();
        assert!(!outcome_of("sleep 0.15 &").leaked, "as the copy in a child that another thread starts");
        assert!(outcome_of("sleep 20 &").leaked, "a bounded time");
    }
}
