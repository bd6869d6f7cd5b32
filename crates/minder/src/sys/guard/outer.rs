//! The outer guardian: the process that the user started and the shell waits for.
//!
//! It relays signals to the runner, stops when the runner stopped, and repeats the runner's end; when the inner guardian
//! dies it inherits the whole tree and sweeps it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait, waitpid};

use super::Faults;
use super::board::Board;
use super::mask::{self, Mask};
use super::process::{
    NeverReturns, close_inherited, discard, end_like, forbid_core, read_signal, signalfd, wake_at_end_of,
};
use super::signal::{Repeats, Signal};
use super::sweep::{Left, Sweep};
use super::tree::{self, Tree};

/// What the outer guardian has of the two others.
#[derive(Debug)]
pub(super) struct Outer {
    pub(super) board: &'static Board,
    pub(super) inner: Pid,
    pub(super) relay: OwnedFd,
    pub(super) kick: OwnedFd,
    /// Ends with the inner guardian.
    pub(super) life: OwnedFd,
    /// Children from before: `exec minder` in a shell that had started some.
    pub(super) spared: Vec<i32>,
    pub(super) faults: Faults,
}

/// Guards until the end. Its working directory stays: terminals look it up to open a new window in the same place.
pub(super) fn run(outer: &Outer, relayed: &Mask) -> ! {
    let _never = NeverReturns;
    forbid_core();
    let heard = relayed.with(libc::SIGCHLD);
    // The runner may be gone when a signal is passed on; its reader's end must not end us.
    let _ = heard.with(libc::SIGPIPE).block();
    let Ok(signals) = signalfd(&heard) else { mask::end_by(libc::SIGKILL) };
    // The errors stay open, for one line about what could not be ended; the shell waits for this process anyway.
    let mut keep = [&outer.relay, &outer.kick, &outer.life, &signals].map(AsRawFd::as_raw_fd);
    close_inherited(&mut keep, false);
    // Should that fail, a stopped outer guardian only hears of the inner one's death when it is continued.
    let _ = wake_at_end_of(&outer.life);
    let mut repeats = Repeats::default();
    loop {
        outer.pass_on(&signals, &mut repeats);
        outer.answer_kick();
        if let Some(status) = outer.reap() {
            outer.end(status, &signals);
        }
        let _ = poll(&mut [&signals, &outer.kick].map(|fd| PollFd::new(fd, PollFlags::IN)), None);
    }
}

impl Outer {
    /// Through a pipe, not as a signal: the runner's own copy of a key's signal may still wait there, and two of the same
    /// number are one (21 of 40 Ctrl-C were lost, measured).
    fn pass_on(&self, signals: &OwnedFd, repeats: &mut Repeats) {
        while let Some(number) = read_signal(signals.as_fd()) {
            let (Some(signal), Ok(byte)) = (Signal::from_number(number), u8::try_from(number)) else {
                continue;
            };
            if repeats.counts(signal, Instant::now()) {
                // Full only when the runner has not read for 64 Ki signals.
                let _ = rustix::io::write(&self.relay, &[byte]);
            }
        }
    }

    /// The inner guardian has news of the runner: it may have stopped.
    fn answer_kick(&self) {
        let mut count = [0; 8];
        if rustix::io::read(&self.kick, &mut count).is_ok() && self.board.stopped() {
            self.stop();
        }
    }

    /// Reaps what ended; the inner guardian's status if it was among them.
    fn reap(&self) -> Option<WaitStatus> {
        let mut ended = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.inner => ended = Some(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => return ended,
            }
        }
    }

    /// Stops as the runner did, until `fg`. By SIGTSTP, not SIGSTOP: in a group that no shell watches (`ssh -t`, `script`)
    /// the system drops it, where SIGSTOP would freeze the run for ever.
    fn stop(&self) {
        // The order is the proof: no continuation may fall between the look and the stop.
        // 1. The stop waits, blocked; the kernel now throws away a SIGCONT that still waited.
        mask::raise_blocked(libc::SIGTSTP);
        // 2. If the runner goes on after this look, the inner guardian takes back the word and sends SIGCONT after it, which
        //    throws away the waiting stop, or wakes us.
        if self.board.stopped() {
            let _ = Mask::empty().with(libc::SIGTSTP).unblock();
            let _ = Mask::empty().with(libc::SIGTSTP).block();
        } else {
            discard(libc::SIGTSTP);
        }
    }

    /// The inner guardian is gone, in order or not.
    fn end(&self, inner: WaitStatus, signals: &OwnedFd) -> ! {
        let Some(runner) = self.board.runner() else {
            // It could not fork the runner, has said so, and ended.
            end_like(inner.as_raw());
        };
        if let Some(status) = self.board.leave() {
            // Ours only if the inner guardian was killed in the moment between the word and the exit.
            let _ = waitpid(Some(runner), WaitOptions::empty());
            mask::exit_now(status.into());
        }
        let mut sweep = Sweep {
            tree: Tree::new(self.faults.no_children_file),
            spared: &self.spared,
            reaps: true,
            wake: Some(signals.as_fd()),
            no_pidfd: self.faults.no_pidfd,
        };
        let own = sweep.run();
        let (count, first) = self.board.left();
        complain(if own.count > 0 { own } else { Left { count, first } });
        match self.board.status() {
            Some(runner) => end_like(runner),
            None => mask::end_by(libc::SIGKILL),
        }
    }
}

/// One line to the errors about processes that a run without privileges cannot end.
fn complain(left: Left) {
    if left.count == 0 {
        return;
    }
    let name = tree::name(left.first).unwrap_or_default();
    let others = if left.count > 1 { format!(" and {} more", left.count - 1) } else { String::new() };
    let line = format!(
        "minder: could not end process {} `{name}`{others}: it belongs to another user\n",
        left.first
    );
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
}
