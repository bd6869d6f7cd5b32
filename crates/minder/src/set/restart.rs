//! Children that are started again after they exited.
//!
//! A child keeps its place in the table, and with it its id. Nothing of the last run is left when the
//! next begins: its pipes are closed, its process is reaped, and no list of the set names it.

use std::sync::Arc;
use std::time::Instant;

use super::child::{ChildState, Phase};
use super::child_set::{ChildSet, child_gone};
use super::event::QueuedEvent;
use super::timers::TimerKind;
use crate::event::{ChildId, Event};
use crate::sys::process_tree::ProcessSnapshot;
use crate::sys::spawn::Spawned;
use crate::termination::Termination;
use crate::{Error, ErrorKind, Operation, Result};

impl ChildState {
    /// Returns the state of the next run. This state keeps what belongs to the last run alone.
    fn next_run(&mut self, spawned: Spawned) -> Self {
        let mut next = Self::new(spawned, Arc::clone(&self.quota), self.options);
        next.take_lasting(self);
        if let Some(restart) = &mut next.restart {
            restart.begin_run();
        }
        next
    }

    /// Takes what outlives a run from the state of another run.
    fn take_lasting(&mut self, from: &mut Self) {
        for (stream, other) in self.streams.iter_mut().zip(&mut from.streams) {
            stream.forward = other.forward.take();
        }
        self.restart = from.restart.take();
    }
}

impl ChildSet {
    /// Kills a child with everything that it started, and starts it again as soon as all of them have
    /// exited. The number of restarts in a row begins again. A child that waits for its next start is
    /// started now.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, Restart, SpawnOptions, Termination};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let options = SpawnOptions::new().restart(Restart::Always);
    /// let server = set.spawn(Command::new("sleep").arg("60"), options)?;
    /// let first_pid = set.pid(server)?;
    /// set.restart(server, Termination::IMMEDIATE)?; // its configuration has changed
    /// while let Some(event) = set.next_event(None)?.into_event() {
    ///     if let Event::Restarted { child, pid, .. } = event {
    ///         assert!(child == server && pid != first_pid);
    ///         set.kill(server, Termination::IMMEDIATE)?; // for good
    ///     }
    /// }
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`kill`](Self::kill), and:
    ///
    /// - `InvalidInput`: the child was started without a [`RestartPolicy`](crate::RestartPolicy), or
    ///   with [`Restart::Never`](crate::Restart::Never).
    pub fn restart(&mut self, id: ChildId, how: Termination) -> Result<()> {
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        let is_waiting = child.between_runs().is_some();
        let Some(restart) = &mut child.restart else {
            let reason = "it has no restart policy, or it was killed";
            let error = Error::of_kind(ErrorKind::InvalidInput, "restart a child", reason);
            return Err(error.during(Operation::Spawn));
        };
        if is_waiting {
            restart.begin_row();
            // Its last attempt may have failed.
            self.events.retain(|event| !matches!(event, QueuedEvent::Abandoned(other) if *other == id));
            let now = Instant::now();
            // One that is suspended is resumed, as by a kill.
            self.restart_deadline(id, now);
            self.arm(id, TimerKind::Restart, now);
            return self.update_poll_handle();
        }
        restart.requested = true;
        let terminated = self.terminate(id, how);
        if terminated.is_err()
            && let Some(restart) = self.children.get_mut(id).and_then(|child| child.restart.as_mut())
        {
            // The child runs on, and its exit is its own.
            restart.requested = false;
        }
        terminated
    }

    /// Kills what the run of a child left, which has exited, if its policy says so.
    pub(super) fn kill_leftovers(&mut self, id: ChildId) {
        let Some(child) = self.children.get_mut(id) else { return };
        let Some(restart) = &mut child.restart else { return };
        restart.note_exit();
        let Some(how) = restart.kill_leftovers() else { return };
        if child.termination.is_some() {
            return;
        }
        child.process.check();
        if !child.tree.can_signal(&child.process) {
            return;
        }
        // The table is read first: a kill is checked after 10 ms only, and most runs leave nothing.
        let snapshot = self.snapshot.get_or_insert_with(ProcessSnapshot::now);
        if child.tree.has_leftovers(snapshot) {
            // A process that may not be signalled is waited for.
            let _ = self.begin_kill(id, how, Instant::now());
        }
    }

    /// Ends the restarts of a child. One that has no process is done with that.
    pub(super) fn end_restarts(&mut self, id: ChildId) {
        if let Some(child) = self.children.get_mut(id)
            && child.restart.take().is_some()
            && child.between_runs().is_some()
        {
            self.events.push_back(QueuedEvent::Abandoned(id));
        }
    }

    /// Ends the run of a child whose events were all taken: the child is done, or it is started again
    /// later.
    pub(super) fn end_run(&mut self, id: ChildId) -> Option<Event> {
        let child = self.children.get_mut(id)?;
        let outcome = child.reap(&mut self.io.reactor, &mut self.snapshot)?;
        let next_start = child.restart.as_mut().and_then(|restart| {
            let delay = restart.after_run(&outcome)?;
            Some((delay, restart.restarts))
        });
        let Some((delay, restarts)) = next_start else {
            self.children.remove(id);
            return Some(Event::Done { child: id, outcome });
        };
        child.phase = Phase::BetweenRuns(outcome);
        child.process.release();
        self.remove_from_lists(id);
        self.arm(id, TimerKind::Restart, Instant::now() + delay);
        Some(Event::Restarting { child: id, outcome, delay, restarts })
    }

    /// Removes a child from the lists of children that wait for something, and the room in the input of its
    /// last run from the queue.
    fn remove_from_lists(&mut self, id: ChildId) {
        self.events.retain(|event| !matches!(event, QueuedEvent::Writable(other) if *other == id));
        let Some(child) = self.children.get_mut(id) else { return };
        if std::mem::take(&mut child.waits_for_memory) {
            self.memory_waiters.retain(|waiter| *waiter != id);
        }
        if std::mem::take(&mut child.read_deferred) {
            self.deferred_reads.retain(|deferred| deferred.id != id);
        }
    }

    /// Starts a child again.
    pub(super) fn on_restart_timer(&mut self, id: ChildId) {
        let Some(child) = self.children.get_mut(id) else { return };
        if child.between_runs().is_none() || child.suspension.is_suspended() {
            return;
        }
        let Some(restart) = &child.restart else { return };
        let rewound = restart.rewind_input().map_err(|error| {
            let error = Error::new("rewind the input of", error).during(Operation::Spawn);
            error.with_subject(restart.command.get_program())
        });
        let started = match rewound.map(|()| self.spawner.spawn(&restart.command)) {
            Ok(Ok(spawned)) => self.begin_run(id, spawned),
            Ok(Err(failure)) => Err(crate::spawn::explain(&restart.command, failure)),
            Err(error) => Err(error),
        };
        match started {
            Ok(()) => self.events.push_back(QueuedEvent::Restarted(id)),
            Err(error) => self.on_failed_start(id, error),
        }
    }

    /// Puts a new process in the place of the one whose run has ended. If it cannot be watched, it is
    /// killed, and the child waits as before.
    fn begin_run(&mut self, id: ChildId, spawned: Spawned) -> Result<()> {
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        let next = child.next_run(spawned);
        let last = std::mem::replace(child, next);
        if let Err(error) = self.watch_child(id) {
            if let Some(child) = self.children.get_mut(id) {
                let mut failed = std::mem::replace(child, last);
                child.take_lasting(&mut failed);
                self.discard(failed);
            }
            return Err(Error::new("watch a child", error).during(Operation::Watch));
        }
        self.arm_deadline(id);
        self.timers.child_started();
        Ok(())
    }

    /// Reports a failed start, and decides whether another attempt follows.
    fn on_failed_start(&mut self, id: ChildId, error: Error) {
        let restart = self.children.get_mut(id).and_then(|child| child.restart.as_mut());
        let Some(restart) = restart else { return };
        // A caller that takes no events finds the last error only.
        if restart.error.replace(error).is_none() {
            self.events.push_back(QueuedEvent::RestartFailed(id));
        }
        match restart.next_attempt() {
            Some(delay) => self.arm(id, TimerKind::Restart, Instant::now() + delay),
            None => self.events.push_back(QueuedEvent::Abandoned(id)),
        }
    }

    /// Returns the event of a child that was started again.
    pub(super) fn take_restarted(&self, id: ChildId) -> Option<Event> {
        let child = self.children.get(id)?;
        Some(Event::Restarted { child: id, pid: child.process.pid() })
    }

    /// Returns the event of a start that failed.
    pub(super) fn take_restart_error(&mut self, id: ChildId) -> Option<Event> {
        let error = self.children.get_mut(id)?.restart.as_mut()?.error.take()?;
        Some(Event::RestartFailed { child: id, error })
    }

    /// Returns the last event of a child that is not started again. `None` if it was, since then.
    pub(super) fn take_abandoned(&mut self, id: ChildId) -> Option<Event> {
        let outcome = self.children.get(id)?.between_runs()?;
        self.children.remove(id);
        Some(Event::Done { child: id, outcome })
    }
}
