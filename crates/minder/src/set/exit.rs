//! The ends of one child, kept apart: it exited, its outputs ended or fell silent, nobody of its
//! tree is left.

use std::time::{Duration, Instant};

use super::child::ChildState;
use super::{
    ChildSet, DeferredRead, Error, Event, INTERVAL_MIN, ProcessSnapshot, QueuedEvent, Report, Result, Stream,
    TimerKind, Token, TreeSignal,
};
use crate::event::Outcome;
use crate::sys::error::is_registration_limit;
use crate::sys::pipe::ReadOutcome;
use crate::sys::process_tree::CHECK_IS_CHEAP;

/// From this age on (twice it, at most) the outputs of a young child are listened to, silent or
/// not.
const READ_DELAY_MAX: Duration = Duration::from_millis(16);
/// How many reads of one stream follow an exit at once.
const DRAIN_READS: usize = 4;

impl ChildSet {
    /// A process may have ended.
    pub(super) fn exited(&mut self, token: Token, report: &Report) -> Result<()> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        if kid.exit.is_some() && CHECK_IS_CHEAP {
            // The child has ended before: this tells that nobody of its tree is left.
            self.finish_if_tree_gone(token);
            return Ok(());
        }
        let id = kid.process.pid();
        let exit = kid.process.progress(&mut self.reactor, report);
        let Some(exit) =
            exit.map_err(|error| Error::new("take the end of", error).with_subject(id.to_string()))?
        else {
            return Ok(());
        };
        kid.exit = Some(exit);
        let left = self.leave_turns(token);
        self.events.push_back(QueuedEvent::Exited(token));
        // What it wrote last is mostly there already, and so are the ends of its outputs: that saves a
        // wait.
        let mut result = left;
        for stream in [Stream::Stdout, Stream::Stderr] {
            for _ in 0..DRAIN_READS {
                match self.readable(token, stream, None) {
                    Ok(ReadOutcome::Data(_)) => (),
                    Ok(_) => break,
                    Err(error) => {
                        result = result.and(Err(error));
                        break;
                    }
                }
            }
        }
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        if kid.streams.iter().any(|out| out.reader.is_some())
            && let Err(error) = self.register_reader(token, INTERVAL_MIN)
        {
            result = result.and(Err(Error::new("hear a child", error)));
        }
        if CHECK_IS_CHEAP {
            // Mostly the others of its tree have ended with it.
            self.finish_if_tree_gone(token);
        }
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        if kid.streams.iter().any(|out| out.reader.is_some()) {
            let now = Instant::now();
            kid.last_activity = Some(now);
            if let Some(after) = self.limits.leak_timeout {
                self.arm(token, TimerKind::Leak, now + after);
            }
        }
        self.finish_if_drained(token);
        result
    }

    /// Queues the end of a child that exited and whose outputs ended.
    pub(super) fn finish_if_drained(&mut self, token: Token) {
        let Some(kid) = self.children.get_mut(token) else { return };
        if kid.is_over() && !std::mem::replace(&mut kid.done_queued, true) {
            self.events.push_back(QueuedEvent::Drain(token));
        }
    }

    /// The next event of a child that is over: its last bytes, the ends of its streams, its own
    /// end.
    pub(super) fn drain(&mut self, token: Token) -> Result<Option<Event>> {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let Some(kid) = self.children.get_mut(token) else { break };
            let out = &mut kid.streams[stream as usize];
            if let Some(bytes) = out.buffered.pop_front() {
                return Ok(Some(Event::Output(token, stream, bytes)));
            }
            if out.forwarded > 0 {
                return Ok(self.queue_forwarded(token, stream));
            }
            if out.spilled() && kid.options.spill_as_file {
                // Where there is no file, what it did not take comes next.
                return match self.take_spill_file(token, stream) {
                    None => self.pop_event(),
                    file => Ok(file),
                };
            }
            if out.spilled() {
                // No bound is needed here: one piece at a time is in the caller's hands.
                if self.read_back(token, stream)? {
                    return self.drain(token);
                }
            } else if std::mem::take(&mut out.eof_pending) {
                return Ok(Some(Event::Eof(token, stream)));
            }
        }
        self.leave_turns(token)?;
        self.events.pop_front();
        let Some(mut kid) = self.children.remove(token) else { return Ok(None) };
        kid.close(&mut self.reactor);
        kid.streams.iter_mut().filter_map(|out| out.spill.take()).for_each(drop);
        if kid.suspended.is_some() {
            // What it leaves behind lives on, and nobody else knows that it stands still.
            let _ = kid.tree.signal_all(&kid.process, TreeSignal::Continue);
        }
        // Only now: its exit was told, and until here it held the number of its group, which may be killed
        // late.
        kid.process.reap();
        let left_running = kid.tree.left_running();
        let Some(exit) = kid.exit else { return Ok(None) };
        let stood = kid.suspended_time + kid.suspended.map_or(Duration::ZERO, |since| since.elapsed());
        let ChildState { leaked, dropped, deadline_passed: killed, timed_out, .. } = kid;
        let outcome = Outcome { exit, leaked, left_running, dropped, killed, timed_out, suspended: stood };
        Ok(Some(Event::Done(token, outcome)))
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Instant) -> Result<()> {
        let mut living = None;
        while let Some((token, due)) = self.timers.pop(now) {
            if !self.children.get_mut(token).is_some_and(|kid| kid.armed.take(due, now)) {
                continue;
            }
            match due {
                TimerKind::Leak => self.leak(token, now)?,
                TimerKind::Killing => self.advance_termination(token, now, &mut living)?,
                TimerKind::Deadline => self.check_deadline(token, now),
            }
        }
        if self.timers.schedule_deferred_reads(now) {
            self.poll_deferred_reads(now)?;
        }
        if self.timers.schedule_read_turns(now) {
            self.rotate_turns(now)?;
        }
        if self.timers.schedule_stop_poll(now, self.children.len() > 0) {
            self.poll_stops();
        }
        Ok(())
    }

    /// Looks at the outputs of a young child after this time, instead of listening to them.
    pub(super) fn defer_read(&mut self, token: Token, pause: Duration) {
        let Some(kid) = self.children.get_mut(token) else { return };
        if std::mem::replace(&mut kid.looked_at, true) {
            return;
        }
        let due = Instant::now() + pause;
        self.deferred_reads.push(DeferredRead { token, due, pause });
        self.timers.fresh_at(due);
    }

    /// Listens to the outputs of a child. Those for which the backend has no room are looked at
    /// from now on, until it has.
    pub(super) fn register_reader(&mut self, token: Token, pause: Duration) -> std::io::Result<()> {
        match self.register_streams(token) {
            Err(error) => {
                self.defer_read(token, pause);
                if is_registration_limit(&error) { Ok(()) } else { Err(error) }
            }
            Ok(()) => Ok(()),
        }
    }

    /// Reads what young children wrote. One that talks is listened to from here on; one that is
    /// silent is looked at again after twice the time, and in the end listened to as well: most
    /// that are going to end soon have ended then.
    fn poll_deferred_reads(&mut self, now: Instant) -> Result<()> {
        let mut result = Ok(());
        for fresh in std::mem::take(&mut self.deferred_reads) {
            let DeferredRead { token, due, pause } = fresh;
            if due > now {
                self.deferred_reads.push(fresh);
                self.timers.fresh_at(due);
                continue;
            }
            let (mut silent, mut talks) = (pause < READ_DELAY_MAX, false);
            for stream in [Stream::Stdout, Stream::Stderr] {
                let read = self.readable(token, stream, None);
                talks |= matches!(read, Ok(ReadOutcome::Data(_)));
                silent &= matches!(read, Ok(ReadOutcome::WouldBlock | ReadOutcome::Eof));
                result = result.and(read.map(drop));
            }
            let Some(kid) = self.children.get_mut(token) else { continue };
            kid.looked_at = false;
            if silent && kid.exit.is_none() {
                self.defer_read(token, pause * 2);
                continue;
            }
            // The system may watch no more: then it is tried again, and no other is forgotten.
            let pause = if talks { INTERVAL_MIN } else { (pause * 2).min(READ_DELAY_MAX) };
            if let Err(error) = self.register_reader(token, pause) {
                result = result.and(Err(Error::new("hear a child", error)));
            }
        }
        result
    }

    /// Closes the outputs of a child that exited and is silent.
    pub(super) fn leak(&mut self, token: Token, now: Instant) -> Result<()> {
        let (Some(kid), Some(after)) = (self.children.get_mut(token), self.limits.leak_timeout) else {
            return Ok(());
        };
        if kid.done_queued || kid.streams.iter().all(|out| out.reader.is_none()) {
            return Ok(());
        }
        // Who stands still is not silent either; it is looked at again when it goes on.
        if kid.suspended.is_some() {
            return Ok(());
        }
        // A child that is held is not silent: it is we who do not listen. Who is being killed lets go by
        // dying.
        let silent_at = kid.last_activity.unwrap_or(now) + after;
        if silent_at > now || kid.termination.is_some() || kid.streams.iter().any(|out| out.paused) {
            self.arm(token, TimerKind::Leak, silent_at.max(now + after));
            return Ok(());
        }
        // When we come late, what was written meanwhile may not be read yet: that is no silence.
        for stream in [Stream::Stdout, Stream::Stderr] {
            let progress = self.readable(token, stream, None);
            // Held by us, or by the file that it is forwarded to.
            let held = self.children.get(token).is_some_and(|kid| {
                kid.streams[stream as usize].paused || kid.last_activity.is_some_and(|busy_at| busy_at > now)
            });
            if held || !matches!(progress, Ok(ReadOutcome::WouldBlock | ReadOutcome::Eof)) {
                self.arm(token, TimerKind::Leak, now + after);
                return progress.map(drop);
            }
        }
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        kid.leaked = kid.streams.iter().any(|out| out.reader.is_some());
        for stream in [Stream::Stdout, Stream::Stderr] {
            self.handle_eof(token, stream);
        }
        Ok(())
    }

    /// Looks at a tree that is being killed before it is time: when nobody is left, the timer will
    /// find nothing to do.
    fn finish_if_tree_gone(&mut self, token: Token) {
        let Some(kid) = self.children.get_mut(token) else { return };
        if kid.termination.is_some() && !kid.tree.is_alive(&ProcessSnapshot::now()) {
            kid.termination = None;
            self.finish_if_drained(token);
        }
    }

    /// Looks at a tree that is being killed: strikes when it is time, and lets go when nobody is
    /// left.
    pub(super) fn advance_termination(
        &mut self,
        token: Token,
        now: Instant,
        living: &mut Option<ProcessSnapshot>,
    ) -> Result<()> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        let Some(killing) = &mut kid.termination else { return Ok(()) };
        // A search of the whole process table is dear. It is needed once the child has ended, and is made
        // less and less often: a tree that has its grace would cost most of a processor.
        let alive = kid.exit.is_none()
            || !killing.may_search(now)
            || kid.tree.is_alive(living.get_or_insert_with(ProcessSnapshot::now));
        if !alive || killing.is_hopeless(now) {
            kid.termination = None;
            self.finish_if_drained(token);
            return Ok(());
        }
        if let Some(blow) = killing.due(now) {
            // Whom we may not kill any more, we wait for: that is no reason to end the wait for the others.
            kid.process.check();
            let _ = kid.tree.signal_all(&kid.process, blow);
        }
        let look_at = killing.check_at(now);
        self.arm(token, TimerKind::Killing, look_at);
        Ok(())
    }

    /// Finds the children that were stopped since the last look, but not by us.
    pub(super) fn poll_stops(&mut self) {
        for token in self.children.tokens() {
            let stopped = self
                .children
                .get(token)
                .filter(|kid| kid.exit.is_none() && kid.suspended.is_none())
                .and_then(|kid| kid.process.stopped());
            self.events.extend(stopped.map(|signal| QueuedEvent::Stopped(token, signal)));
        }
    }
}
