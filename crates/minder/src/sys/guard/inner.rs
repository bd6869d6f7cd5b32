//! The inner guardian: the parent of the runner, in a separate session, so that no kill of a group
//! or session reaches it.
//!
//! Orphans become children of their nearest living ancestor that is a subreaper. A kill of the
//! user's group hits the outer guardian and the runner together. So only an ancestor outside that
//! group can inherit the jobs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getppid, kill_process, pidfd_open,
    set_parent_process_death_signal, setsid, wait,
};
use rustix::time::Timespec;

use super::config::FaultInjection;
use super::descendants::DescendantFinder;
use super::mask::{self, Mask};
use super::process::{
    AbortOnReturn, close_inherited, forbid_core, read_signal, rename, signalfd, wake_at_end_of,
};
use super::shared_page::SharedPage;
use super::tree_killer::TreeKiller;
use crate::sys::jobserver::HeldTokens;

/// The inner guardian, with its connections to the two other processes.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) page: &'static SharedPage,
    pub(super) outer: Pid,
    pub(super) runner: Pid,
    /// Never written: while a guardian holds it, the runner sees no end of file.
    pub(super) relay: OwnedFd,
    /// Wakes the outer guardian after a change of the shared page.
    pub(super) stop_event: OwnedFd,
    /// The kernel closes its other end when the runner exits.
    pub(super) runner_liveness: OwnedFd,
    /// Never written: the kernel closes it when this process exits.
    pub(super) own_liveness: OwnedFd,
    /// `true` if the deadline of the runner is watched.
    pub(super) watchdog: bool,
    pub(super) faults: FaultInjection,
    /// The jobserver tokens to release when the run is killed.
    pub(super) held_tokens: Option<Arc<HeldTokens>>,
}

/// Guards the run until it has finished, and exits.
pub(super) fn run(inner: Inner) -> ! {
    let _never = AbortOnReturn;
    // Blocks every signal that can be blocked. At shutdown the machine sends SIGTERM to all
    // processes, and the run needs time to end in order.
    let _ = Mask::full().block();
    if !inner.faults.late.is_zero() {
        let late = inner.faults.late;
        let late = Timespec { tv_sec: late.as_secs().cast_signed(), tv_nsec: late.subsec_nanos().into() };
        let _ = rustix::thread::nanosleep(&late);
    }
    // The order is the proof.
    // 1. Out of the user's group and session: from here on a kill of those leaves us alive. The runner
    //    was forked before, so it stays in them and may read the terminal.
    let _ = setsid();
    // 2. Have the kernel wake us, should we be stopped when the outer guardian dies.
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
    // 3. Open a pidfd of the outer guardian. If it died before step 2 or 3, our parent is another by now.
    let outer_pidfd =
        if inner.faults.no_pidfd { None } else { pidfd_open(inner.outer, PidfdFlags::empty()).ok() };
    // 4. Hide from `pkill` and `$(…)`, and leave no core dump and no busy mount.
    forbid_core();
    let _ = rustix::process::chdir(c"/");
    rename(c"run-guardian", &format!("run-guardian of {}", inner.runner.as_raw_nonzero()));
    let Ok(signals) = signalfd(&Mask::empty().with(libc::SIGCHLD).with(libc::SIGCONT)) else {
        mask::end_by(libc::SIGKILL)
    };
    let tree = DescendantFinder::of_guardian(inner.faults.no_children_file);
    let mut keep = vec![
        inner.relay.as_raw_fd(),
        inner.stop_event.as_raw_fd(),
        inner.runner_liveness.as_raw_fd(),
        inner.own_liveness.as_raw_fd(),
        signals.as_raw_fd(),
    ];
    keep.extend(outer_pidfd.iter().map(AsRawFd::as_raw_fd));
    keep.extend(tree.descriptor().map(AsRawFd::as_raw_fd));
    keep.extend(inner.held_tokens.iter().map(|tokens| tokens.fd()));
    close_inherited(&mut keep, true);
    // 5. Have the kernel wake us, should we be stopped when the runner dies.
    let _ = wake_at_end_of(&inner.runner_liveness);
    // 6. The runner may start jobs.
    if getppid() == Some(inner.outer) {
        let _ = inner.page.set_ready();
    }
    let mut killer = TreeKiller {
        tree,
        excluded: &[],
        reaps: true,
        wake: Some(signals.as_fd()),
        no_pidfd: inner.faults.no_pidfd,
    };
    let mut continued = false;
    loop {
        inner.check_runner(&mut killer);
        if std::mem::take(&mut continued) {
            inner.resume_runner();
        }
        inner.apply_requests();
        if outer_pidfd.as_ref().is_some_and(readable) || getppid() != Some(inner.outer) {
            inner.end(&mut killer);
        }
        let _ = inner.wait(&signals, outer_pidfd.as_ref());
        while let Some(number) = read_signal(signals.as_fd()) {
            continued |= number == libc::SIGCONT;
        }
    }
}

impl Inner {
    fn stop_event(&self) {
        let _ = rustix::io::write(&self.stop_event, &1_u64.to_ne_bytes());
    }

    /// Sleeps until a child changed, or the outer guardian is gone.
    fn wait(&self, signals: &OwnedFd, outer_pidfd: Option<&OwnedFd>) -> io::Result<()> {
        let signals = PollFd::new(signals, PollFlags::IN);
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let pause = self.watchdog.then_some(&second);
        match outer_pidfd {
            Some(outer_pidfd) => poll(&mut [signals, PollFd::new(outer_pidfd, PollFlags::IN)], pause)?,
            // The parent-death signal wakes us; the second is for a kernel that loses it.
            None => poll(&mut [signals], Some(&second))?,
        };
        Ok(())
    }

    /// Takes all status changes of children; adopted processes are only reaped.
    fn check_runner(&self, killer: &mut TreeKiller<'_>) {
        let all = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
        loop {
            match wait(all) {
                Ok(Some((pid, status))) if pid == self.runner => self.runner_changed(status, killer),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn runner_changed(&self, status: WaitStatus, killer: &mut TreeKiller<'_>) {
        if status.stopping_signal() == Some(libc::SIGTSTP) {
            // The shell waits for the outer guardian, so that one has to stop too.
            self.page.set_stopped(true);
            self.stop_event();
        } else if status.stopped() {
            self.page.set_held(true);
        } else if status.continued() {
            self.page.set_held(false);
            // First the store, then the signal: see `Outer::stop`. An unnecessary SIGCONT would
            // discard the next Ctrl-Z, which may be pending in the outer guardian already.
            self.page.set_stopped(false);
            if self.page.outer_stops() {
                self.wake_outer();
            }
        } else if status.exited() || status.signaled() {
            self.page.set_wait_status(status.as_raw());
            self.end(killer);
        }
    }

    /// Kills the runner where the outer guardian asks for that, or if it is late. It dies of SIGKILL even if
    /// it is stopped, and its tree is killed when it is reaped. Only its parent can: until it is
    /// reaped, which happens here, its pid names no other process.
    fn apply_requests(&self) {
        if self.page.is_kill_requested() || self.watchdog && self.page.is_late() {
            let _ = kill_process(self.runner, Signal::KILL);
        }
    }

    /// Continues the runner with the outer guardian. Until it is reaped, which ends this process,
    /// its pid names no other process.
    fn resume_runner(&self) {
        if self.page.stopped() {
            let _ = kill_process(self.runner, Signal::CONT);
        }
    }

    /// Only while it is our parent, so that the pid cannot be another's.
    fn wake_outer(&self) {
        if getppid() == Some(self.outer) {
            let _ = kill_process(self.outer, Signal::CONT);
        }
    }

    /// The runner or the outer guardian is gone.
    fn end(&self, killer: &mut TreeKiller<'_>) -> ! {
        if self.page.exit_status().is_some() {
            // The run has finished: daemons keep running.
            mask::exit_now(0);
        }
        let release_tokens = || self.held_tokens.iter().for_each(|tokens| tokens.release_all());
        if getppid() != Some(self.outer) {
            // The build has seen the end already, and counts its tokens at its own end. The jobs live for
            // milliseconds. Once it is reaped, its pid may be another's.
            if self.page.wait_status().is_none() {
                let _ = kill_process(self.runner, Signal::KILL);
            }
            release_tokens();
        }
        let left = killer.run();
        release_tokens();
        self.page.set_survivors(left.count, left.first);
        mask::end_by(libc::SIGKILL)
    }
}

/// Returns whether the process behind a pidfd has ended.
fn readable(outer_pidfd: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(outer_pidfd, PollFlags::IN)], Some(&now)), Ok(1))
}
