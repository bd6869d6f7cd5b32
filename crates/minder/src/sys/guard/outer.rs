//! The outer guardian: the process that the user started and the shell waits for.
//!
//! It relays signals to the runner, stops when the runner has stopped, and exits as the runner did.
//! When the inner guardian dies, it inherits the whole tree and kills it.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal as Number, WaitOptions, WaitStatus, kill_process, wait, waitpid};

use super::config::FaultInjection;
use super::descendants::{self, DescendantFinder};
use super::mask::{self, Mask};
use super::process::{
    AbortOnReturn, close_inherited, discard, end_like, forbid_core, read_sent, signalfd, wake_at_end_of,
};
use super::shared_page::SharedPage;
use super::signal::{SignalDebouncer, SignalSender};
use super::silence::{Silence, Step};
use super::tree_killer::{Survivors, TreeKiller};
use crate::sys::jobserver::HeldTokens;
use crate::sys::signal::Signal;
use crate::sys::time::timespec;

/// The outer guardian, with its connections to the inner guardian and the runner.
#[derive(Debug)]
pub(super) struct Outer {
    pub(super) page: &'static SharedPage,
    pub(super) inner: Pid,
    pub(super) relay: OwnedFd,
    pub(super) stop_event: OwnedFd,
    /// Its other end is closed when the inner guardian exits.
    pub(super) liveness: OwnedFd,
    /// Children that this process already had: `exec minder` in a shell keeps the shell's children.
    pub(super) excluded_pids: Vec<i32>,
    pub(super) faults: FaultInjection,
    /// Number of relayed signals.
    pub(super) relayed: Cell<u32>,
    /// The jobserver tokens to release when the tree is dead.
    pub(super) held_tokens: Option<Arc<HeldTokens>>,
}

/// Marks a relayed signal that the terminal has sent to the whole process group: see [`Signal::is_key`].
/// Numbers of signals are below it.
pub(super) const KEY_MARK: u8 = 0x80;

/// Guards the run until it has finished, and exits. The working directory stays the same: terminals
/// open a new window in the working directory of this process.
pub(super) fn run(outer: &Outer, relayed: &Mask) -> ! {
    let _never = AbortOnReturn;
    forbid_core();
    let guardian_signals = relayed.with(libc::SIGCHLD);
    // The runner may have exited when a signal is passed on. SIGPIPE must not kill this process then.
    let _ = guardian_signals.with(libc::SIGPIPE).block();
    let Ok(signals) = signalfd(&guardian_signals) else { mask::end_by(libc::SIGKILL) };
    // Standard error stays open, for one line about processes that could not be killed. That delays
    // no reader of it: the shell waits for this process anyway.
    let tree = DescendantFinder::of_guardian(outer.faults.no_children_file);
    let mut keep =
        [&outer.relay, &outer.stop_event, &outer.liveness, &signals].map(AsRawFd::as_raw_fd).to_vec();
    keep.extend(tree.descriptor().map(AsRawFd::as_raw_fd));
    keep.extend(outer.held_tokens.iter().map(|tokens| tokens.fd()));
    close_inherited(&mut keep, false);
    let mut killer = TreeKiller {
        tree,
        excluded: &outer.excluded_pids,
        reaps: true,
        wake: Some(signals.as_fd()),
        no_pidfd: outer.faults.no_pidfd,
    };
    // If this fails, a stopped outer guardian notices the inner one's death only after SIGCONT.
    let _ = wake_at_end_of(&outer.liveness);
    let mut repeats = SignalDebouncer::default();
    let mut silence = Silence::default();
    loop {
        outer.relay_signals(&signals, &mut repeats, &mut silence);
        outer.handle_stop_event(&mut silence);
        if let Some(status) = outer.reap() {
            outer.end(status, &mut killer);
        }
        outer.apply_step(&mut silence);
        let rest = silence.due().map(|at| timespec(at.saturating_duration_since(Instant::now())));
        let _ =
            poll(&mut [&signals, &outer.stop_event].map(|fd| PollFd::new(fd, PollFlags::IN)), rest.as_ref());
    }
}

impl Outer {
    /// Relays pending signals to the runner, through a pipe. The runner's own copy of a key's signal may
    /// still be pending there, and the kernel merges two signals of the same number (21 of 40 Ctrl-C
    /// were lost, measured).
    fn relay_signals(&self, signals: &OwnedFd, repeats: &mut SignalDebouncer, silence: &mut Silence) {
        while let Some((number, sender)) = read_sent(signals.as_fd()) {
            let (Some(signal), Ok(byte)) = (Signal::relayed(number), u8::try_from(number)) else {
                continue;
            };
            let is_key = sender == SignalSender::Terminal && signal.is_key();
            let byte = if is_key { byte | KEY_MARK } else { byte };
            let now = Instant::now();
            if repeats.counts(signal, now) {
                let signals_read = self.page.signals_read();
                // Full only when the runner has not read for 64 Ki signals.
                if rustix::io::write(&self.relay, &[byte]).is_ok() {
                    self.relayed.set(self.relayed.get().wrapping_add(1));
                    silence.relayed(signal, signals_read, now);
                }
            }
        }
    }

    /// Handles a notification from the inner guardian: the runner may have stopped.
    fn handle_stop_event(&self, silence: &mut Silence) {
        let mut count = [0; 8];
        if rustix::io::read(&self.stop_event, &mut count).is_ok() {
            silence.stopped();
            if self.page.stopped() {
                // The runner may have been stopped by its own copy of a key before it read ours.
                self.page.set_stops_done(self.relayed.get());
                self.stop(|| self.page.stopped());
            }
        }
    }

    /// Acts in place of a runner that is stopped, hangs, or has a thread that cannot stop.
    fn apply_step(&self, silence: &mut Silence) {
        match silence.step(self.page.signals_read(), Instant::now()) {
            None => {}
            // The shell shows its prompt. All of the runner that can stop has stopped, and
            // continues together with this process.
            Some(Step::Stop) => {
                // Such a runner reads the request only when it is continued, which `fg` does.
                if self.page.is_held() {
                    self.page.set_stops_done(self.relayed.get());
                }
                self.stop(|| true);
            }
            Some(Step::Warn) => print_line("minder: the run does not answer; another signal kills it\n"),
            Some(Step::Kill) => {
                print_line("minder: the run did not answer and was killed\n");
                self.page.request_kill();
                // The inner guardian is a child that is not reaped yet. The signal only wakes it.
                let _ = kill_process(self.inner, Number::CONT);
            }
        }
    }

    /// Reaps all children that have exited. Returns the status of the inner guardian if it has
    /// exited.
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

    /// Stops this process, as the runner did, until `fg`, if `wanted` still holds. It uses SIGTSTP:
    /// in a group that no shell watches (`ssh -t`, `script`) the kernel drops it. SIGSTOP would
    /// stop the run forever there.
    fn stop(&self, wanted: impl Fn() -> bool) {
        // The order of steps shows that no continuation is lost between the check and the stop.
        // 1. From here on the inner guardian sends SIGCONT when the runner continues.
        self.page.set_outer_stops(true);
        // 2. The stop signal is pending and blocked. The kernel discards an earlier pending SIGCONT.
        mask::raise_blocked(libc::SIGTSTP);
        // 3. If the runner continues after this check, the inner guardian clears the flag and then sends
        //    SIGCONT. That discards the pending stop, or wakes this process. If the runner continued
        //    before, the flag shows it.
        if wanted() {
            let _ = Mask::empty().with(libc::SIGTSTP).unblock();
            let _ = Mask::empty().with(libc::SIGTSTP).block();
            // 4. SIGCONT to this process alone continues the whole run. The inner guardian knows whether the
            //    runner is still stopped.
            if self.page.stopped() {
                let _ = kill_process(self.inner, Number::CONT);
            }
        } else {
            discard(libc::SIGTSTP);
        }
        self.page.set_outer_stops(false);
    }

    /// Finishes after the inner guardian has exited, by itself or by a signal.
    fn end(&self, inner: WaitStatus, killer: &mut TreeKiller<'_>) -> ! {
        let Some(runner) = self.page.runner() else {
            // The inner guardian could not fork the runner, reported that, and exited.
            end_like(inner.as_raw());
        };
        if let Some(status) = self.page.exit_status() {
            // The runner is a child of this process only if the inner guardian was killed between
            // its last store and its exit.
            let _ = waitpid(Some(runner), WaitOptions::empty());
            mask::exit_now(status.into());
        }
        let own = killer.run();
        self.held_tokens.iter().for_each(|tokens| tokens.release_all());
        let (count, first) = self.page.survivors();
        report_survivors(if own.count > 0 { own } else { Survivors { count, first } });
        match self.page.wait_status() {
            Some(runner) => end_like(runner),
            None => mask::end_by(libc::SIGKILL),
        }
    }
}

/// Prints one line to stderr and ignores write errors.
fn print_line(line: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
}

/// Prints one line to stderr about processes that a run without privileges cannot kill.
fn report_survivors(left: Survivors) {
    if left.count == 0 {
        return;
    }
    let name = descendants::name(left.first).unwrap_or_default();
    let name = name.escape_debug();
    let others = if left.count > 1 { format!(" and {} more", left.count - 1) } else { String::new() };
    let line = format!(
        "minder: could not end process {} `{name}`{others}: it belongs to another user\n",
        left.first
    );
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
}
