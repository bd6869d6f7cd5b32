//! Signals: those that minder gets go to the child.

use std::io::{self, IsTerminal};
use std::time::Duration;

use minder::guard::SignalSender;
use minder::{Signal, Termination};
use minder_os::processes::is_stopped;
use minder_os::signals;
use minder_os::terminal::is_in_foreground;

use super::session::{Output, Session};
use super::window::own_terminal_size;

/// How often, and for how long, a suspension waits for the child to stop: 50 ms in all.
const STOP_TRIES: u32 = 50;
const STOP_WAIT: Duration = Duration::from_millis(1);

impl Session {
    /// Forwards the signals that have come.
    pub(super) fn handle_signals(&mut self) {
        while let Some((signal, sender)) = self.guard.next_signal_and_sender() {
            self.handle_signal(signal, sender);
        }
    }

    fn handle_signal(&mut self, signal: Signal, sender: SignalSender) {
        let has_reached_child = self.has_reached_child(sender);
        let name = match signal {
            Signal::INT => "INT",
            Signal::QUIT => "QUIT",
            Signal::HUP => "HUP",
            Signal::TERM => "TERM",
            Signal::USR1 => "USR1",
            Signal::USR2 => "USR2",
            Signal::WINCH if has_reached_child => return,
            Signal::WINCH => return self.resize(),
            Signal::TSTP => return self.suspend(has_reached_child),
            Signal::CONT => return self.signal_tree("CONT"),
            _ => return,
        };
        if self.end.is_some() {
            self.is_hurried |= !matches!(signal, Signal::USR1 | Signal::USR2);
            return;
        }
        let is_key = matches!(signal, Signal::INT | Signal::QUIT);
        if is_key && has_reached_child {
            return;
        }
        if !((is_key || signal == Signal::HUP) && self.signal_foreground(name)) {
            self.signal(name);
        }
        // As a shell does: a child that is stopped gets the request to exit now.
        if matches!(signal, Signal::TERM | Signal::HUP) {
            self.signal("CONT");
        }
    }

    /// Returns whether the terminal has sent a key or its new size to the child as well. A hang-up does not
    /// reach it for certain.
    fn has_reached_child(&self, sender: SignalSender) -> bool {
        self.shares_group
            && match sender {
                SignalSender::Terminal => true,
                SignalSender::Unknown => is_in_foreground(),
                _ => false,
            }
    }

    /// Signals the group of the child, or the child alone if its group is ours. Where there are no signals,
    /// the child is killed. An error means that it has ended, or runs as another user.
    pub(super) fn signal(&mut self, name: &str) {
        let Some(signal) = signals::number(name).map(Signal::from_raw) else { return };
        if let Err(error) = self.child.signal(signal)
            && error.kind() == minder::ErrorKind::Unsupported
        {
            let _ = self.child.kill(Termination::IMMEDIATE);
        }
    }

    /// Signals the child and what it started.
    fn signal_tree(&mut self, name: &str) {
        let Some(signal) = signals::number(name).map(Signal::from_raw) else { return };
        if let Ok(how) = Termination::signals(&[(signal, Duration::ZERO)]) {
            // As above.
            let _ = self.child.kill(how);
        }
    }

    /// Signals the foreground processes of the child's terminal. Returns false if there are none.
    fn signal_foreground(&self, name: &str) -> bool {
        match (&self.output, signals::number(name)) {
            (Output::Here { stdout, .. }, Some(number)) if self.has_terminal => {
                stdout.signal_foreground(number).is_ok()
            }
            _ => false,
        }
    }

    /// Gives the child's terminal the size of ours. Without one, the signal is forwarded.
    fn resize(&mut self) {
        match (&self.output, own_terminal_size()) {
            (Output::Here { stdout, .. }, Some(size)) if self.has_terminal => {
                // It fails if the child has ended.
                let _ = stdout.resize_terminal(size);
            }
            _ if self.signal_foreground("WINCH") => (),
            _ if self.end.is_none() && signals::number("WINCH").is_some() => self.signal("WINCH"),
            _ => (),
        }
    }

    /// Waits for a moment until a key has stopped the child. A shell waits for this process alone, and takes
    /// the terminal when it has stopped: until the child runs again to find its signal, it would read what is
    /// typed at the prompt.
    fn wait_for_stop(&self) {
        for _ in 0..STOP_TRIES {
            // A child may handle the key in another way, and then nothing tells that it has.
            match is_stopped(self.child.id()) {
                Ok(false) => std::thread::park_timeout(STOP_WAIT),
                _ => break,
            }
        }
    }

    /// Suspends the child with what it started, and then this process, until it is continued. A key has
    /// stopped the child in its own way.
    fn suspend(&mut self, has_reached_child: bool) {
        if has_reached_child {
            self.wait_for_stop();
            return self.guard.suspend_self();
        }
        self.signal_tree("STOP");
        self.guard.suspend_self();
        let mut next = || self.guard.next_signal_and_sender();
        let mut waiting: Vec<_> = std::iter::from_fn(&mut next).collect();
        // The kernel ignores the request in a group that no shell watches, such as that of a process of
        // Emacs. There a program has sent it, and that program can continue us. At a terminal nothing would.
        if !waiting.iter().any(|(signal, _)| *signal == Signal::CONT) && !io::stdin().is_terminal() {
            self.guard.stop_self();
            waiting.extend(std::iter::from_fn(|| self.guard.next_signal_and_sender()));
        }
        for (signal, sender) in waiting {
            // A repeated request that came meanwhile is the same one.
            if signal != Signal::TSTP {
                self.handle_signal(signal, sender);
            }
        }
    }
}
