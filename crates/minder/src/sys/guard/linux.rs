//! The guard on Linux: two guardians around the runner, which watch each other.
//!
//! The first process becomes the outer guardian. It forks the inner one, which forks the runner.
//! Only the runner returns from [`Guard::install`]. The documentation of [`crate::guard::ProcessGuard`]
//! states the guarantees. The table shows which process detects which death. The detecting process
//! may be stopped at that moment, so the kernel wakes it by SIGCONT in every case:
//!
//! | dies | seen by | how | woken by |
//! | --- | --- | --- | --- |
//! | outer | inner | its pidfd, its parent | parent-death signal |
//! | inner | outer | SIGCHLD | the end of a pipe that only the inner holds, with `F_SETSIG` |
//! | runner | inner | SIGCHLD | the end of a pipe that only the runner holds, with `F_SETSIG` |
//! | both guardians | runner | end of file on the relay | parent-death signal |

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal as Number, getpgid, getpgrp, getpid, getppid, set_child_subreaper,
    set_parent_process_death_signal,
};

use super::config::{FaultInjection, GuardConfig};
use super::descendants::{self, DescendantFinder};
use super::inner::{self, Inner};
use super::mask::{self, Mask};
use super::outer::{self, KEY_MARK, Outer};
use super::process::{self, Fork, fork, read_sent, signalfd};
use super::shared_page::SharedPage;
use super::signal::{DeliveryPaths, ExitMode, SignalDebouncer, SignalSender};
use super::tree_killer::TreeKiller;
use crate::sys::jobserver::HeldTokens;
use crate::sys::process_tree::why_no_table;
use crate::sys::signal::Signal;

/// The most descriptors that a guardian opens: its signals, its list of children, a directory of
/// `/proc`, a pidfd.
const GUARDIAN_DESCRIPTORS: usize = 7;
/// The longest time that the inner guardian may take; 1 ms is usual.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// The runner's side of the guard.
#[derive(Debug)]
pub(crate) struct Guard {
    /// An epoll set of the relay and the signalfd of the runner. Without guardians, only a
    /// signalfd.
    signals: OwnedFd,
    role: Role,
    watchdog: bool,
    faults: FaultInjection,
    /// Set before the runner kills its tree.
    orphaned: Arc<AtomicBool>,
    held_tokens: Option<Arc<HeldTokens>>,
}

#[derive(Debug)]
enum Role {
    /// `liveness` is never written. The kernel closes it when the runner exits.
    Guarded {
        page: &'static SharedPage,
        outer: Pid,
        inner: Pid,
        /// Its reading end.
        relay: OwnedFd,
        /// A signalfd for requests that are sent to the runner itself.
        direct: OwnedFd,
        paths: DeliveryPaths,
        _liveness: OwnedFd,
    },
    Alone {
        reason: &'static str,
        repeats: SignalDebouncer,
    },
}

/// The deadline of the runner, which the inner guardian watches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watchdog(&'static SharedPage);

impl Watchdog {
    pub(crate) fn set_deadline(self, left: Option<Duration>) {
        self.0.set_deadline(left);
    }
}

/// The time for which a joined thread may still be listed: the kernel reports its exit before it
/// removes it (`mm_release` in the kernel's fork.c).
const JOIN_TIMEOUT: Duration = Duration::from_millis(50);

impl Guard {
    pub(crate) fn install(config: &GuardConfig) -> io::Result<Guard> {
        if INSTALLED.swap(true, SeqCst) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the process has a guard already"));
        }
        if !descendants::is_alone(JOIN_TIMEOUT) {
            return Err(io::Error::other("the guard must be entered before any thread is started"));
        }
        mask::restore_sigchld();
        mask::handle_write_signals();
        let relayed = Mask::relayed();
        // Children start with an empty mask in any case, so the previous mask need not be kept.
        relayed.block()?;
        let reason = match (config.guardians, why_no_table()) {
            (false, _) => "not asked for",
            (true, Some(why)) => why,
            (true, None) => match set_child_subreaper(Some(getpid())) {
                Ok(()) => return fork_guardians(&relayed, config),
                Err(_) => "the kernel refuses to make the process a subreaper",
            },
        };
        let role = Role::Alone { reason, repeats: SignalDebouncer::default() };
        Ok(Guard::new(signalfd(&relayed)?, role, config))
    }

    fn new(signals: OwnedFd, role: Role, config: &GuardConfig) -> Guard {
        Guard {
            signals,
            role,
            watchdog: config.watchdog,
            faults: config.faults.clone(),
            orphaned: Arc::default(),
            held_tokens: config.held_tokens.clone(),
        }
    }

    pub(crate) fn set_orphaned_flag(&mut self, flag: Arc<AtomicBool>) {
        self.orphaned = flag;
    }

    pub(crate) fn guardians(&self) -> Result<(u32, u32), &'static str> {
        match &self.role {
            Role::Guarded { outer, inner, .. } => Ok((number(*outer), number(*inner))),
            Role::Alone { reason, .. } => Err(reason),
        }
    }

    pub(crate) fn kills_descendants(&self) -> bool {
        matches!(self.role, Role::Guarded { .. })
    }

    pub(crate) fn watchdog(&self) -> Option<Watchdog> {
        match &self.role {
            Role::Guarded { page, .. } if self.watchdog => Some(Watchdog(page)),
            _ => None,
        }
    }

    pub(crate) fn wait_ready(&self) -> io::Result<()> {
        let Role::Guarded { page, .. } = &self.role else { return Ok(()) };
        if page.wait_ready(READY_TIMEOUT)? {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the inner guardian does not answer"))
    }

    pub(crate) fn signals(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    pub(crate) fn next_signal(&mut self) -> Option<(Signal, SignalSender)> {
        loop {
            let relayed = self.read_relay();
            let (signal, sender) = match &mut self.role {
                Role::Guarded { page, direct, paths, outer, .. } => match relayed {
                    Some(byte) => {
                        let place = page.count_read_signal();
                        // The runner gets a key at the same moment as the jobs that share its process group.
                        // The relay's copy may come after their end.
                        let has_own_copy = byte & KEY_MARK != 0 && getpgid(Some(*outer)) == Ok(getpgrp());
                        let signal =
                            if has_own_copy { None } else { Signal::relayed((byte & !KEY_MARK).into()) };
                        let signal =
                            signal.filter(|signal| *signal != Signal::TSTP || !page.is_stop_done(place));
                        (
                            signal.filter(|signal| paths.relayed(*signal, Instant::now())),
                            SignalSender::Unknown,
                        )
                    }
                    None => {
                        let (number, sender) = read_sent(direct.as_fd())?;
                        let is_new = |signal: &Signal| match sender {
                            SignalSender::Process => paths.direct(*signal, Instant::now()),
                            // A hang-up also arrives through the relay, and counts there.
                            _ => signal.is_key() && paths.key(*signal, Instant::now()),
                        };
                        (Signal::relayed(number).filter(is_new), sender)
                    }
                },
                Role::Alone { repeats, .. } => {
                    let (number, sender) = read_sent(self.signals.as_fd())?;
                    let signal = Signal::relayed(number);
                    (signal.filter(|signal| repeats.counts(*signal, Instant::now())), sender)
                }
            };
            if let Some(signal) = signal {
                return Some((signal, sender));
            }
        }
    }

    fn read_relay(&self) -> Option<u8> {
        let Role::Guarded { relay, .. } = &self.role else { return None };
        let mut byte = [0];
        loop {
            match rustix::io::read(relay, &mut byte) {
                Ok(1) => return Some(byte[0]),
                // Both guardians are dead: no process is left above this one that would kill the
                // tree.
                Ok(_) => self.die_with_tree(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    pub(crate) fn suspend_self(&self) {
        // Sent to the process, as the terminal does: a pending direct copy and this one merge.
        mask::raise_blocked(libc::SIGTSTP);
        let stop = Mask::empty().with(libc::SIGTSTP);
        // The process stops here, and later continues from here.
        let _ = stop.unblock();
        let _ = stop.block();
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn stop_self(&self) {
        mask::raise_blocked(libc::SIGSTOP);
    }

    pub(crate) fn orphans(&self) -> Vec<(u32, String)> {
        let Role::Guarded { inner, .. } = &self.role else { return Vec::new() };
        let me = getpid().as_raw_nonzero().get();
        let mut tree = DescendantFinder::new(self.faults.no_children_file);
        tree.refresh();
        let mut children = Vec::new();
        tree.children(inner.as_raw_nonzero().get(), &mut children);
        let is_alive = |pid: &i32| {
            *pid != me
                && descendants::read_stat_of(*pid).is_some_and(|stat| !stat.has_exited() && !stat.exiting)
        };
        let with_name = |pid: i32| Some((pid.cast_unsigned(), descendants::name(pid)?));
        children.into_iter().filter(is_alive).filter_map(with_name).collect()
    }

    pub(crate) fn exit(self, status: u8) -> ! {
        if let Role::Guarded { page, .. } = &self.role {
            page.set_exit_status(status);
        }
        std::process::exit(status.into())
    }

    pub(crate) fn terminate(self, ending: ExitMode) -> ! {
        if let Role::Alone { .. } = &self.role {
            self.kill_own_tree();
        }
        process::forbid_core();
        match ending {
            ExitMode::Status(status) => mask::exit_now(status.into()),
            ExitMode::Signal(signal) if signal.ends() => mask::end_by(signal.as_raw()),
            ExitMode::Signal(_) => mask::exit_now(1),
        }
    }

    fn die_with_tree(&self) -> ! {
        self.orphaned.store(true, SeqCst);
        self.kill_own_tree();
        self.held_tokens.iter().for_each(|tokens| tokens.release_all());
        mask::end_by(libc::SIGKILL)
    }

    /// Kills the descendants that are linked to this process by their parents. Without a subreaper,
    /// daemons that init has adopted are not found.
    fn kill_own_tree(&self) {
        let tree = DescendantFinder::new(self.faults.no_children_file);
        TreeKiller { tree, excluded: &[], reaps: false, wake: None, no_pidfd: self.faults.no_pidfd }.run();
    }
}

/// Forks the guardians, and returns in the runner. After an error it returns in the process in
/// which the step failed.
fn fork_guardians(signals: &Mask, config: &GuardConfig) -> io::Result<Guard> {
    let faults = &config.faults;
    let page = SharedPage::new()?;
    let pipe = || pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
    let (relay_reads, relay) = pipe()?;
    let (inner_ends, inner_life) = pipe()?;
    let (runner_ends, runner_liveness) = pipe()?;
    let stop_event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    // The descriptors that the guardians open later have to be free now: a guardian that runs out of
    // them cannot guard, and could only exit.
    drop((0..GUARDIAN_DESCRIPTORS).map(|_| stop_event.try_clone()).collect::<io::Result<Vec<_>>>()?);
    let outer = getpid();
    let mut excluded_pids = Vec::new();
    let mut tree = DescendantFinder::new(faults.no_children_file);
    tree.refresh();
    tree.children(outer.as_raw_nonzero().get(), &mut excluded_pids);
    // A guardian closes every descriptor that it does not keep. The runner drops those that it does
    // not return.
    if let Fork::Parent(inner) = fork()? {
        let guardian = Outer {
            page,
            inner,
            relay,
            stop_event,
            liveness: inner_ends,
            excluded_pids,
            faults: faults.clone(),
            relayed: Cell::default(),
            held_tokens: config.held_tokens.clone(),
        };
        outer::run(&guardian, signals);
    }
    let inner = getpid();
    // Before the runner exists: it could leave orphans that this process does not inherit.
    set_child_subreaper(Some(inner))?;
    if let Fork::Parent(runner) = fork()? {
        page.set_runner(runner);
        inner::run(Inner {
            page,
            outer,
            runner,
            relay,
            stop_event,
            runner_liveness: runner_ends,
            own_liveness: inner_life,
            watchdog: config.watchdog,
            faults: faults.clone(),
            held_tokens: config.held_tokens.clone(),
        });
    }
    // First request the signal, then check the parent: if the inner guardian died before the request,
    // this process has another parent by now.
    set_parent_process_death_signal(Some(Number::CONT))?;
    if getppid() != Some(inner) {
        mask::end_by(libc::SIGKILL);
    }
    let direct = signalfd(&Mask::requests())?;
    let signals = readable_when_either(&relay_reads, &direct)?;
    let role = Role::Guarded {
        page,
        outer,
        inner,
        relay: relay_reads,
        direct,
        paths: DeliveryPaths::default(),
        _liveness: runner_liveness,
    };
    Ok(Guard::new(signals, role, config))
}

/// Returns one descriptor that is readable while one of these is. It must be created in the process
/// that reads: a signalfd reports to a poller only the signals of the process that added it
/// (signalfd(2)).
fn readable_when_either(relay: &OwnedFd, direct: &OwnedFd) -> io::Result<OwnedFd> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for fd in [relay, direct] {
        epoll::add(&set, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(set)
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}
