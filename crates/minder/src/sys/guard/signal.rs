//! The signals that a guard relays, named after their requests. Plain data.

use std::time::{Duration, Instant};

use crate::sys::signal::Signal;

impl Signal {
    /// Returns whether repeating the signal has a further meaning: a second Ctrl-C requests an
    /// immediate exit.
    pub(super) const fn escalates(self) -> bool {
        matches!(self, Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT)
    }

    /// Returns whether a key of the terminal requests the end with this signal. The kernel sends it to all
    /// processes of the foreground process group at once.
    #[cfg(target_os = "linux")]
    pub(super) const fn is_key(self) -> bool {
        matches!(self, Signal::INT | Signal::QUIT)
    }
}

/// The sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SignalSender {
    /// The kernel: for a key, a new size or a hang-up of the terminal. All processes of the foreground
    /// process group get a key.
    Terminal,
    /// A process, by kill(2) or a similar call.
    Process,
    /// It is not known: a guardian relayed the signal, or the operating system does not tell.
    Unknown,
}

/// The way in which a cancelled run exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitMode {
    /// With this exit status.
    Status(u8),
    /// By this signal's default action, so that a calling shell script sees the Ctrl-C and stops
    /// too. Only [`Signal::INT`], [`Signal::TERM`], [`Signal::HUP`],
    /// [`Signal::QUIT`], [`Signal::USR1`] and [`Signal::USR2`] end a process; for the others it
    /// is status 1. On Windows all of them are `STATUS_CONTROL_C_EXIT` (0xC000013A), with which the
    /// operating system ends console programs.
    Signal(Signal),
}

/// Distinguishes a second Ctrl-C from one that arrived twice: `timeout` signals its child and then
/// the group; a terminal and a supervisor may both relay the same request.
#[derive(Debug, Default)]
pub(super) struct SignalDebouncer {
    last: Option<(Signal, Instant)>,
}

impl SignalDebouncer {
    /// The same signal within this time is the same request.
    const REPEAT_WINDOW: Duration = Duration::from_millis(200);

    /// Returns whether `signal`, which arrived at `now`, is a new request.
    pub(super) fn counts(&mut self, signal: Signal, now: Instant) -> bool {
        if !signal.escalates() {
            return true;
        }
        match self.last {
            Some((last, at)) if last == signal && now.duration_since(at) < Self::REPEAT_WINDOW => false,
            _ => {
                self.last = Some((signal, now));
                true
            }
        }
    }
}

/// Distinguishes one request that arrived on two paths from two requests. The paths are the relay
/// and the runner itself. `kill` of the group uses both.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
pub(super) struct DeliveryPaths {
    /// The last request of each signal.
    last: Vec<(Signal, Instant, DeliveryPath)>,
}

#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryPath {
    Relayed,
    Direct,
    Both,
}

#[cfg(target_os = "linux")]
impl DeliveryPaths {
    /// The other copy of a request arrives within this time. It passes through another process,
    /// which may have to wait.
    const PAIR_WINDOW: Duration = Duration::from_secs(1);

    /// Returns whether `signal`, which the relay delivered at `now`, is a new request. The outer
    /// guardian has dropped repetitions.
    pub(super) fn relayed(&mut self, signal: Signal, now: Instant) -> bool {
        !signal.escalates() || self.counts(signal, now, DeliveryPath::Relayed, Duration::ZERO)
    }

    /// Returns whether `signal`, which the runner itself received at `now`, is a new request.
    pub(super) fn direct(&mut self, signal: Signal, now: Instant) -> bool {
        self.counts(signal, now, DeliveryPath::Direct, SignalDebouncer::REPEAT_WINDOW)
    }

    /// Returns whether the key's `signal`, which the terminal sent to the runner at `now`, is a new request.
    /// The relay marks its copy.
    pub(super) fn key(&mut self, signal: Signal, now: Instant) -> bool {
        self.counts(signal, now, DeliveryPath::Both, SignalDebouncer::REPEAT_WINDOW)
    }

    fn counts(&mut self, signal: Signal, now: Instant, path: DeliveryPath, apart: Duration) -> bool {
        if let Some((_, at, last)) = self.last.iter_mut().find(|(before, ..)| *before == signal) {
            let since = now.duration_since(*at);
            let is_second = ![path, DeliveryPath::Both].contains(last) && path != DeliveryPath::Both;
            if is_second && since < Self::PAIR_WINDOW {
                *last = DeliveryPath::Both;
                return false;
            }
            if since < apart {
                return false;
            }
        }
        self.last.retain(|(before, ..)| *before != signal);
        self.last.push((signal, now, path));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_signal_counts_once_within_window() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut repeats = SignalDebouncer::default();
        assert!(repeats.counts(Signal::INT, at(0)));
        assert!(!repeats.counts(Signal::INT, at(1)));
        assert!(!repeats.counts(Signal::INT, at(199)), "measured from the one that counted");
        assert!(repeats.counts(Signal::INT, at(200)));
        assert!(repeats.counts(Signal::TERM, at(201)), "another wish");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn signal_on_both_paths_counts_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut ways = DeliveryPaths::default();
        assert!(ways.direct(Signal::TERM, at(0)));
        assert!(!ways.relayed(Signal::TERM, at(300)), "the same, late");
        assert!(ways.relayed(Signal::TERM, at(301)), "another");
        assert!(!ways.direct(Signal::TERM, at(302)), "its twin");
        assert!(!ways.direct(Signal::TERM, at(303)), "a third copy");
        assert!(ways.direct(Signal::TERM, at(600)), "another");
        assert!(ways.direct(Signal::INT, at(601)), "another signal");
        assert!(!ways.relayed(Signal::TERM, at(602)) && !ways.relayed(Signal::INT, at(603)));
        assert!(ways.relayed(Signal::INT, at(604)), "the outer guardian has distinguished them");
        assert!(ways.relayed(Signal::TSTP, at(605)) && ways.relayed(Signal::TSTP, at(605)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn key_has_no_second_copy() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut ways = DeliveryPaths::default();
        assert!(ways.relayed(Signal::INT, at(0)));
        assert!(!ways.key(Signal::INT, at(100)), "`timeout` and the terminal");
        assert!(ways.key(Signal::INT, at(200)), "another");
        assert!(ways.relayed(Signal::INT, at(300)), "the outer guardian has distinguished them");
        assert!(!ways.direct(Signal::INT, at(301)), "its twin");
    }

    #[test]
    fn stop_and_resize_always_count() {
        let now = Instant::now();
        let mut repeats = SignalDebouncer::default();
        for signal in [Signal::TSTP, Signal::CONT, Signal::WINCH, Signal::USR1, Signal::USR2] {
            assert!(repeats.counts(signal, now) && repeats.counts(signal, now), "{signal:?}");
        }
    }
}
