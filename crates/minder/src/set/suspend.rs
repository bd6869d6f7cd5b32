//! Suspending and resuming children, and their deadlines, which do not run meanwhile.

use std::time::{Duration, Instant};

use super::child_set::{ChildSet, child_gone};
use super::timers::TimerKind;
use crate::event::ChildId;
use crate::sys::process_tree::TreeSignal;
use crate::termination::Termination;
use crate::{Error, Operation, Result};

impl ChildSet {
    /// Suspends a child with everything that it started, until [`resume`](Self::resume).
    ///
    /// The processes that a [`Termination`] would kill receive `SIGSTOP`. No
    /// [`Event::Stopped`](crate::Event::Stopped) reports that. While the child is suspended, its
    /// deadline does not run and its outputs do not count as silent
    /// ([`ChildSetOptions::leak_timeout`](crate::ChildSetOptions::leak_timeout)). Output that it wrote
    /// before is still handed over. A child whose run has ended, or is being killed, is not
    /// [started again](crate::SpawnOptions::restart) before it is resumed. Otherwise without
    /// effect on a child that is suspended, that is being killed, or that is done except for its last events.
    ///
    /// Dropping a set leaves suspended children suspended: resume them first.
    ///
    /// - Windows: always `Unsupported`.
    /// - Unix other than Linux: only the child's process group is stopped. With
    ///   [`Group::Inherit`](crate::Group::Inherit) that is the child alone.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, SpawnOptions, Termination};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
    /// set.suspend(child)?;
    /// assert!(!set.wait_all(Some(Duration::from_millis(10)), drop)?);
    /// assert!(set.suspended_time(child)? >= Duration::from_millis(10));
    /// set.resume(child)?;
    /// // All children, as when the user presses Ctrl-Z:
    /// set.suspend_all()?;
    /// set.resume_all()?;
    /// set.kill(child, Termination::IMMEDIATE)?;
    /// assert!(set.wait_all(None, drop)?);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    /// - `Unsupported`: the operating system cannot suspend processes.
    pub fn suspend(&mut self, id: ChildId) -> Result<()> {
        // Read before the child stops, so that its deadline loses no time.
        let now = Instant::now();
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        if child.suspension.is_suspended() {
            return Ok(());
        }
        if child.termination.is_some() || child.is_draining() || child.between_runs().is_some() {
            // No process is left, or none will be, but another may be started.
            if child.restart.is_some() {
                child.suspension.start(now);
            }
            return Ok(());
        }
        child.process.check();
        if !child.tree.can_signal(&child.process) {
            return Ok(());
        }
        child.tree.signal_all(&child.process, TreeSignal::Stop).map_err(|error| {
            let subject = child.process.pid().to_string();
            Error::new("suspend", error).during(Operation::Suspend).with_subject(subject)
        })?;
        child.suspension.start(now);
        Ok(())
    }

    /// Resumes a child that was [suspended](Self::suspend) (`SIGCONT`), with as much time until its
    /// deadline as it had. Without effect on any other child.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    pub fn resume(&mut self, id: ChildId) -> Result<()> {
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        if !child.suspension.is_suspended() {
            return Ok(());
        }
        child.process.check();
        child.tree.signal_all(&child.process, TreeSignal::Continue).map_err(|error| {
            let subject = child.process.pid().to_string();
            Error::new("resume", error).during(Operation::Resume).with_subject(subject)
        })?;
        let now = Instant::now();
        self.restart_deadline(id, now);
        let child = self.children.get(id).filter(|child| child.between_runs().is_some());
        if child.is_some_and(|child| !child.armed.has(TimerKind::Restart)) {
            // It was due meanwhile.
            self.arm(id, TimerKind::Restart, now);
        }
        self.update_poll_handle()
    }

    /// Suspends all children: see [`suspend`](Self::suspend). Tries every child, and returns the
    /// first error.
    ///
    /// # Errors
    /// As [`suspend`](Self::suspend).
    pub fn suspend_all(&mut self) -> Result<()> {
        let mut result = Ok(());
        for id in self.children.ids() {
            result = result.and(self.suspend(id));
        }
        result
    }

    /// Resumes all children: see [`resume`](Self::resume). Tries every child, and returns the first
    /// error.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_all(&mut self) -> Result<()> {
        let mut result = Ok(());
        for id in self.children.ids() {
            result = result.and(self.resume(id));
        }
        result
    }

    /// Changes or removes the deadline of a child: see
    /// [`SpawnOptions::deadline`](crate::SpawnOptions::deadline).
    ///
    /// A deadline that has passed kills the child in the next call of [`next_event`](Self::next_event).
    /// A kill that a deadline caused before is not taken back. For a suspended child, the time from now
    /// to the deadline is what it has left when it is resumed.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Termination};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let in_an_hour = Instant::now() + Duration::from_secs(3600);
    /// let options = SpawnOptions::new().deadline(in_an_hour, Termination::IMMEDIATE);
    /// let child = set.spawn(Command::new("sleep").arg("60"), options)?;
    /// set.set_deadline(child, Some((Instant::now(), Termination::IMMEDIATE)))?;
    /// set.wait_all(None, |event| {
    ///     if let Event::Done { outcome, .. } = event {
    ///         assert!(outcome.timed_out);
    ///     }
    /// })?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn set_deadline(&mut self, id: ChildId, deadline: Option<(Instant, Termination)>) -> Result<()> {
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        child.options.deadline = deadline;
        child.suspension.restart(Instant::now());
        self.arm_deadline(id);
        self.update_poll_handle()
    }

    /// Returns how long a child has been [suspended](Self::suspend) so far.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn suspended_time(&self, id: ChildId) -> Result<Duration> {
        let child = self.children.get(id).ok_or_else(child_gone)?;
        Ok(child.suspension.total())
    }

    /// Ends the suspension of a child, if it is suspended: moves its deadline by the time that it was
    /// suspended, and starts to look for silent outputs again.
    pub(super) fn restart_deadline(&mut self, id: ChildId, now: Instant) {
        let Some(child) = self.children.get_mut(id) else { return };
        let Some(suspended) = child.suspension.stop(now) else { return };
        if let Some((at, _)) = &mut child.options.deadline {
            *at = at.checked_add(suspended).unwrap_or(*at);
        }
        if child.has_exited() {
            child.note_activity();
            self.arm_leak_timer(id, now);
        }
        self.arm_deadline(id);
    }
}
