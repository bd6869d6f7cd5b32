//! Decides what the outer guardian does when the runner does not react: plain data and deadlines.
//!
//! A runner that was stopped alone (`kill -STOP`), that hangs, or that has a thread which cannot
//! stop must not disable the user's keys. Ctrl-Z still brings back the shell's prompt, and Ctrl-C
//! three times kills the run.

use crate::sys::signal::Signal;
use std::time::{Duration, Instant};

/// The time that the runner has to stop after a Ctrl-Z. It waits one second for its own threads.
const STOP_MAX: Duration = Duration::from_secs(3);
/// The time for which a request to exit may stay unread before a further one counts as unanswered.
const UNREAD_MAX: Duration = Duration::from_secs(1);
/// Further requests count as unanswered from this time on: a busy runner may need a moment.
const REPEAT_WINDOW: Duration = Duration::from_millis(200);

/// The action of the outer guardian in place of the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Stop this process, so that the shell continues.
    Stop,
    /// Warn that the next request kills.
    Warn,
    /// Kill the runner.
    Kill,
}

/// The requests that the runner has not answered yet.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// The time by which the runner should have stopped.
    stop_by: Option<Instant>,
    /// Requests to exit, of which the first is not read yet.
    unread: Option<Unread>,
}

#[derive(Debug)]
struct Unread {
    /// Number of signals that the runner had read when the first was relayed.
    signals_read: u32,
    since: Instant,
    last: Instant,
    requests: u32,
    warned: bool,
}

impl Silence {
    /// Notes that `signal` was relayed to a runner that had read `signals_read` signals.
    pub(super) fn relayed(&mut self, signal: Signal, signals_read: u32, now: Instant) {
        if signal == Signal::TSTP {
            self.stop_by.get_or_insert(now + STOP_MAX);
        }
        if !signal.escalates() {
            return;
        }
        match self.unread.as_mut().filter(|unread| unread.signals_read == signals_read) {
            Some(unread) if now.duration_since(unread.last) >= REPEAT_WINDOW => {
                unread.requests += 1;
                unread.last = now;
            }
            Some(_) => {}
            None => {
                self.unread = Some(Unread { signals_read, since: now, last: now, requests: 1, warned: false })
            }
        }
    }

    /// Notes that the runner stopped.
    pub(super) fn stopped(&mut self) {
        self.stop_by = None;
    }

    /// Returns when to call [`step`](Self::step) again.
    pub(super) fn due(&self) -> Option<Instant> {
        let kill_at = self.unread.as_ref().filter(|unread| unread.requests > 2).map(Unread::kill_at);
        [self.stop_by, kill_at].into_iter().flatten().min()
    }

    /// Returns what to do now, for a runner that has read `signals_read` signals.
    pub(super) fn step(&mut self, signals_read: u32, now: Instant) -> Option<Step> {
        if self.unread.as_ref().is_some_and(|unread| unread.signals_read != signals_read) {
            self.unread = None;
        }
        if self.stop_by.is_some_and(|at| at <= now) {
            self.stop_by = None;
            return Some(Step::Stop);
        }
        let unread = self.unread.as_mut()?;
        if unread.requests > 2 && unread.kill_at() <= now {
            self.unread = None;
            return Some(Step::Kill);
        }
        (unread.requests == 2 && !std::mem::replace(&mut unread.warned, true)).then_some(Step::Warn)
    }
}

impl Unread {
    fn kill_at(&self) -> Instant {
        self.since + UNREAD_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn third_unread_request_kills() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut silence = Silence::default();
        silence.relayed(Signal::INT, 7, at(0));
        silence.relayed(Signal::TERM, 7, at(1));
        assert_eq!((silence.step(7, at(2)), silence.due()), (None, None), "one wish in two words");
        silence.relayed(Signal::INT, 7, at(300));
        assert_eq!(silence.step(7, at(300)), Some(Step::Warn));
        assert_eq!(silence.step(7, at(5000)), None, "said once");
        silence.relayed(Signal::INT, 7, at(600));
        assert_eq!(
            (silence.step(7, at(600)), silence.due()),
            (None, Some(at(1000))),
            "a busy runner has time"
        );
        assert_eq!(silence.step(7, at(1000)), Some(Step::Kill));
    }

    #[test]
    fn reading_runner_is_not_killed() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut silence = Silence::default();
        for wish in 0..9 {
            silence.relayed(Signal::INT, wish, at(u64::from(wish) * 300));
            assert_eq!(silence.step(wish + 1, at(u64::from(wish) * 300 + 10)), None);
        }
        silence.relayed(Signal::QUIT, 9, at(9000));
        silence.relayed(Signal::QUIT, 9, at(9300));
        silence.relayed(Signal::QUIT, 9, at(9600));
        assert_eq!((silence.step(10, at(20_000)), silence.due()), (None, None), "read at last");
    }

    #[test]
    fn unanswered_stop_stops_guardian_alone() {
        let start = Instant::now();
        let mut silence = Silence::default();
        silence.relayed(Signal::TSTP, 0, start);
        silence.relayed(Signal::TSTP, 0, start + Duration::from_secs(1));
        assert_eq!(silence.due(), Some(start + STOP_MAX), "counted from the first");
        assert_eq!(silence.step(1, start + STOP_MAX), Some(Step::Stop));
        assert_eq!(silence.due(), None);
        silence.relayed(Signal::TSTP, 1, start);
        silence.stopped();
        assert_eq!(silence.step(2, start + 2 * STOP_MAX), None);
    }
}
