//! Children that stand still, and deadlines, which then do so too.

use std::time::{Duration, Instant};

use super::{ChildSet, Termination, TimerKind, Token, TreeSignal, gone};
use crate::{Error, Result};

impl ChildSet {
    /// Stops a child with everything that it started, until [`resume`](Self::resume).
    ///
    /// The processes that a [`Termination`] would end get `SIGSTOP`. That is not told as
    /// [`Event::Stopped`](crate::Event::Stopped). Meanwhile the child's deadline stands still,
    /// and its outputs do not count as silent
    /// ([`ChildSetConfig::leak_timeout`](crate::ChildSetConfig::leak_timeout)); what it wrote
    /// before is handed over as ever. Without effect on a child that is suspended, that is
    /// being killed, or that is over.
    ///
    /// A set that is dropped leaves those that are suspended as they are: resume them before.
    ///
    /// # Errors
    /// `Unknown` for a child that is done; `PermissionDenied` for one that became another user's.
    ///
    /// - Windows: always `Unsupported`.
    /// - Unix other than Linux: only the child's group is stopped. With
    ///   [`Group::Inherit`](crate::Group::Inherit) that is the child alone.
    pub fn suspend(&mut self, token: Token) -> Result<()> {
        // Read before the child stops, so that none of its time is lost.
        let now = Instant::now();
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        if kid.suspended.is_some() || kid.termination.is_some() || kid.done_queued {
            return Ok(());
        }
        kid.process.check();
        if kid.process.reaped() {
            return Ok(());
        }
        let struck = kid.tree.signal_all(&kid.process, TreeSignal::Stop);
        let id = kid.process.pid();
        struck.map_err(|error| Error::new("suspend", error).with_subject(id.to_string()))?;
        kid.suspended = Some(now);
        Ok(())
    }

    /// Lets a child that was [suspended](Self::suspend) go on (`SIGCONT`), with as much time until
    /// its deadline as it had. Without effect on any other.
    ///
    /// # Errors
    /// `Unknown` for a child that is done; `PermissionDenied` for one that became another user's.
    pub fn resume(&mut self, token: Token) -> Result<()> {
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        if kid.suspended.is_none() {
            return Ok(());
        }
        kid.process.check();
        if !kid.process.reaped() {
            let struck = kid.tree.signal_all(&kid.process, TreeSignal::Continue);
            let id = kid.process.pid();
            struck.map_err(|error| Error::new("resume", error).with_subject(id.to_string()))?;
        }
        self.restart_deadline(token, Instant::now());
        self.update_poll_handle()
    }

    /// Suspends all children: see [`suspend`](Self::suspend). The first error is returned, after
    /// all were tried.
    ///
    /// # Errors
    /// As [`suspend`](Self::suspend).
    pub fn suspend_all(&mut self) -> Result<()> {
        let mut result = Ok(());
        for token in self.children.tokens() {
            result = result.and(self.suspend(token));
        }
        result
    }

    /// Resumes all children: see [`resume`](Self::resume). The first error is returned, after all
    /// were tried.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_all(&mut self) -> Result<()> {
        let mut result = Ok(());
        for token in self.children.tokens() {
            result = result.and(self.resume(token));
        }
        result
    }

    /// Changes the deadline of a child, or takes it away: see
    /// [`SpawnOptions::deadline`](crate::SpawnOptions::deadline). One that has passed ends the
    /// child with the next call of [`next`](Self::next); one that has ended the child already is
    /// not taken back. For a child that is suspended, what is left from now on is left when it goes
    /// on.
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn set_deadline(&mut self, token: Token, deadline: Option<(Instant, Termination)>) -> Result<()> {
        let now = Instant::now();
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        kid.options.deadline = deadline;
        if let Some(since) = &mut kid.suspended {
            kid.suspended_time += now.saturating_duration_since(*since);
            *since = now;
        }
        self.arm_deadline(token);
        self.update_poll_handle()
    }

    /// How long a child has stood still so far, by [`suspend`](Self::suspend).
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn suspended_time(&self, token: Token) -> Result<Duration> {
        let kid = self.children.get(token).ok_or_else(gone)?;
        Ok(kid.suspended_time + kid.suspended.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    /// Takes up again what stood still with the child, if it did.
    pub(super) fn restart_deadline(&mut self, token: Token, now: Instant) {
        let Some(kid) = self.children.get_mut(token) else { return };
        let Some(since) = kid.suspended.take() else { return };
        let stood = now.saturating_duration_since(since);
        kid.suspended_time += stood;
        if let Some((at, _)) = &mut kid.options.deadline {
            *at = at.checked_add(stood).unwrap_or(*at);
        }
        if kid.exit.is_some() {
            kid.last_activity = Some(now);
            if let Some(after) = self.limits.leak_timeout {
                self.arm(token, TimerKind::Leak, now + after);
            }
        }
        self.arm_deadline(token);
    }

    /// Makes sure that a timer comes no later than the child's deadline. One that comes earlier
    /// finds that out.
    pub(super) fn arm_deadline(&mut self, token: Token) {
        let Some(kid) = self.children.get_mut(token) else { return };
        let Some((at, _)) = kid.options.deadline else { return };
        self.arm(token, TimerKind::Deadline, at);
    }

    /// A timer for the child's deadline came.
    pub(super) fn check_deadline(&mut self, token: Token, now: Instant) {
        let Some(kid) = self.children.get_mut(token) else { return };
        if kid.done_queued || kid.suspended.is_some() {
            return;
        }
        match kid.options.deadline {
            Some((at, how)) if at <= now => {
                kid.options.deadline = None;
                kid.timed_out |= kid.runs();
                // Whom we may not kill any more, we wait for: that is no reason to end the wait for the
                // others.
                let _ = self.kill(token, how);
            }
            _ => self.arm_deadline(token),
        }
    }
}
