//! Children that are started again after they exited.
//!
//! A child keeps its place in the table, and with it its id. Nothing of the last run is left when the
//! next begins: its pipes are closed, its process is reaped, and no list of the set names it.

use std::sync::Arc;
use std::time::Instant;

use super::child::{ChildState, Phase};
use super::event::QueuedEvent;
use super::member::{Member, watch_failed};
use super::timers::TimerKind;
use crate::event::Event;
use crate::exit_status::Outcome;
use crate::sys::process_tree::ProcessSnapshot;
use crate::sys::spawn::Spawned;
use crate::termination::Termination;
use crate::{Error, ErrorKind, Operation, Result};

impl ChildState {
    /// Returns the state of the next run. This state keeps what belongs to the last run alone.
    fn next_run(&mut self, spawned: Spawned) -> Self {
        let options = self.output.with_modes(self.options);
        let mut next = Self::new(spawned, Arc::clone(&self.output.quota), options);
        next.take_lasting(self);
        if let Some(restart) = &mut next.restart {
            restart.begin_run();
        }
        next
    }

    /// Takes what outlives a run from the state of another run.
    fn take_lasting(&mut self, from: &mut Self) {
        for (stream, other) in self.output.streams.iter_mut().zip(&mut from.output.streams) {
            stream.forward = other.forward.take();
        }
        self.restart = from.restart.take();
    }
}

/// The end of a run whose events were all taken.
#[derive(Debug)]
pub(super) enum RunEnd {
    /// The child is done.
    Done(Outcome),
    /// The child is started again later: this is the event that says so.
    Restarting(Event),
}

/// Kills the run of a child, and starts it again when its tree has exited.
pub(super) fn restart(member: &mut Member<'_>, how: Termination) -> Result<()> {
    let is_waiting = member.child.between_runs().is_some();
    let Some(restart) = &mut member.child.restart else {
        let reason = "it has no restart policy, or it was killed";
        let error = Error::of_kind(ErrorKind::InvalidInput, "restart a child", reason);
        return Err(error.during(Operation::Spawn));
    };
    if is_waiting {
        restart.begin_row();
        // Its last attempt may have failed.
        member.shared.events.remove_abandoned(member.id);
        let now = Instant::now();
        // One that is suspended is resumed, as by a kill.
        member.end_suspension(now);
        member.arm(TimerKind::Restart, now);
        return Ok(());
    }
    restart.requested = true;
    let terminated = member.terminate(how, None);
    if terminated.is_err()
        && let Some(restart) = &mut member.child.restart
    {
        // The child runs on, and its exit is its own.
        restart.requested = false;
    }
    terminated
}

/// Kills what the run that has exited left, if the child's policy says so.
pub(super) fn kill_leftovers(member: &mut Member<'_>) {
    let Some(restart) = &mut member.child.restart else { return };
    restart.note_exit();
    let Some(how) = restart.kill_leftovers() else { return };
    if member.child.termination.is_some() {
        return;
    }
    member.child.process.check();
    if !member.child.tree.can_signal(&member.child.process) {
        return;
    }
    // The table is read first: a kill is checked after 10 ms only, and most runs leave nothing.
    let snapshot = member.shared.snapshot.get_or_insert_with(ProcessSnapshot::now);
    if member.child.tree.has_leftovers(snapshot) {
        // A process that may not be signalled is waited for.
        let _ = member.begin_kill(how, Instant::now(), None);
    }
}

/// Ends the restarts of a child. One that has no process is done with that.
pub(super) fn end_restarts(member: &mut Member<'_>) {
    if member.child.restart.take().is_some() && member.child.between_runs().is_some() {
        member.shared.events.push(QueuedEvent::Abandoned(member.id));
    }
}

/// Ends the run of a child whose events were all taken. `None` only for a child that did not exit.
pub(super) fn end_run(member: &mut Member<'_>) -> Option<RunEnd> {
    let outcome = member.child.reap(&mut member.shared.io.reactor, &mut member.shared.snapshot)?;
    let next_start = member.child.restart.as_mut().and_then(|restart| {
        let delay = restart.after_run(&outcome)?;
        Some((delay, restart.restarts))
    });
    let Some((delay, restarts)) = next_start else { return Some(RunEnd::Done(outcome)) };
    member.child.phase = Phase::BetweenRuns(outcome);
    member.child.process.release();
    // No list names it, and the room in the input of its last run is gone.
    member.shared.events.remove_writable(member.id);
    member.shared.memory_waiters.remove(member.id, member.child);
    member.shared.deferred_reads.remove(member.id, member.child);
    member.arm(TimerKind::Restart, Instant::now() + delay);
    Some(RunEnd::Restarting(Event::Restarting { child: member.id, outcome, delay, restarts }))
}

/// Starts a child again whose time has come.
pub(super) fn on_restart_timer(member: &mut Member<'_>) {
    if member.child.between_runs().is_none() || member.child.suspension.is_suspended() {
        return;
    }
    let Some(restart) = &member.child.restart else { return };
    let rewound = restart.rewind_input().map_err(|error| {
        let error = Error::new("rewind the input of", error).during(Operation::Spawn);
        error.with_subject(restart.command.get_program())
    });
    let started = match rewound.map(|()| member.shared.spawner.spawn(&restart.command)) {
        Ok(Ok(spawned)) => begin_run(member, spawned),
        Ok(Err(failure)) => Err(crate::spawn::explain(&restart.command, failure)),
        Err(error) => Err(error),
    };
    match started {
        Ok(()) => member.shared.events.push(QueuedEvent::Restarted(member.id)),
        Err(error) => on_failed_start(member, error),
    }
}

/// Puts a new process in the place of the one whose run has ended. If it cannot be watched, it is
/// killed, and the child waits as before.
fn begin_run(member: &mut Member<'_>, spawned: Spawned) -> Result<()> {
    let next = member.child.next_run(spawned);
    let last = std::mem::replace(member.child, next);
    if let Err(error) = member.watch() {
        let mut failed = std::mem::replace(member.child, last);
        member.child.take_lasting(&mut failed);
        failed.abandon(&mut member.shared.io.reactor);
        return Err(watch_failed(error));
    }
    member.arm_deadline();
    member.shared.timers.child_started();
    Ok(())
}

/// Reports a failed start, and decides whether another attempt follows.
fn on_failed_start(member: &mut Member<'_>, error: Error) {
    let Some(restart) = &mut member.child.restart else { return };
    // A caller that takes no events finds the last error only.
    if restart.error.replace(error).is_none() {
        member.shared.events.push(QueuedEvent::RestartFailed(member.id));
    }
    match restart.next_attempt() {
        Some(delay) => member.arm(TimerKind::Restart, Instant::now() + delay),
        None => member.shared.events.push(QueuedEvent::Abandoned(member.id)),
    }
}
