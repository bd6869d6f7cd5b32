//! The relayed signals as the operating system numbers them; blocking, reading and raising them.
#![expect(unsafe_code, reason = "signal sets, dispositions and masks")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::c_int;

use crate::exit_status::ExitStatus;
use crate::sys::signal::Signal;

/// The signals that a guard relays.
const RELAYED: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
    Signal::WINCH,
];

impl Signal {
    /// Returns the signal, if a guard relays it.
    pub(super) fn relayed(number: c_int) -> Option<Signal> {
        let signal = Signal::from_raw(number);
        RELAYED.contains(&signal).then_some(signal)
    }

    /// Returns whether its default action ends a process.
    pub(super) fn ends(self) -> bool {
        !matches!(self, Signal::TSTP | Signal::CONT | Signal::WINCH)
    }
}

/// A set of signals.
#[derive(Clone, Copy)]
pub(super) struct Mask(pub(super) libc::sigset_t);

impl Mask {
    pub(super) fn empty() -> Mask {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `set` has room for one set, and the call fills it.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: filled by the line above; `sigemptyset` cannot fail on a valid pointer.
        Mask(unsafe { set.assume_init() })
    }

    #[cfg(target_os = "linux")]
    pub(super) fn full() -> Mask {
        let mut set = Mask::empty();
        // SAFETY: `set.0` is an initialised set of our own.
        unsafe { libc::sigfillset(&raw mut set.0) };
        set
    }

    pub(super) fn with(mut self, number: c_int) -> Mask {
        // SAFETY: `self.0` is an initialised set; a bad number is refused, and all of ours are
        // constants of the operating system.
        unsafe { libc::sigaddset(&raw mut self.0, number) };
        self
    }

    /// Returns the signals that a guard relays, without those that this process was started to ignore.
    /// A blocked signal is queued even if it is ignored, so relaying those would undo `nohup` and
    /// `sh -c 'minder … &'`.
    pub(super) fn relayed() -> Mask {
        let taken = RELAYED.iter().filter(|signal| !ignored(signal.as_raw()));
        taken.fold(Mask::empty(), |set, signal| set.with(signal.as_raw()))
    }

    /// Returns the relayed signals that request the end of the run.
    #[cfg(target_os = "linux")]
    pub(super) fn requests() -> Mask {
        let taken = RELAYED.iter().filter(|signal| signal.escalates() && !ignored(signal.as_raw()));
        taken.fold(Mask::empty(), |set, signal| set.with(signal.as_raw()))
    }

    /// Returns the numbers in this set of signals that can be relayed.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn numbers(self) -> impl Iterator<Item = c_int> {
        // SAFETY: the set is initialised and only read.
        RELAYED
            .iter()
            .map(|signal| signal.as_raw())
            .filter(move |n| unsafe { libc::sigismember(&raw const self.0, *n) } == 1)
    }

    /// Blocks these signals in the calling thread. Returns the previous mask.
    #[cfg(target_os = "linux")]
    pub(super) fn block(&self) -> io::Result<Mask> {
        self.change(libc::SIG_BLOCK)
    }

    /// Unblocks these signals in the calling thread. Returns the previous mask. A pending signal is
    /// delivered before this function returns.
    pub(super) fn unblock(&self) -> io::Result<Mask> {
        self.change(libc::SIG_UNBLOCK)
    }

    fn change(&self, how: c_int) -> io::Result<Mask> {
        let mut before = Mask::empty();
        // SAFETY: both point to initialised sets that outlive the call.
        match unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) } {
            0 => Ok(before),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Returns whether the process ignores this signal.
fn ignored(number: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only asks; `action` has room for the answer.
    if unsafe { libc::sigaction(number, ptr::null(), action.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: zeroed, and filled by the call that has just succeeded.
    let action = unsafe { action.assume_init() };
    action.sa_sigaction == libc::SIG_IGN
}

/// Resets `SIGCHLD` to its default action. If it is ignored, as some parents leave it, the kernel reaps
/// children and discards their status.
pub(super) fn restore_sigchld() {
    if ignored(libc::SIGCHLD) {
        // Fails only for numbers that are not signals.
        let _ = set_disposition(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// `true` if [`handle_write_signals`] has given `SIGPIPE` a handler, or children inherit it as
/// ignored.
static SIGPIPE_HAS_HANDLER: AtomicBool = AtomicBool::new(false);

/// Installs a handler that does nothing for the signals of a failed write: `SIGPIPE`, which Rust's runtime
/// ignores, and `SIGXFSZ` (`ulimit -f`), unless the parent of this process ignores it. The write returns
/// its error.
///
/// Children inherit a `SIGPIPE` that the parent of this process made it ignore.
///
/// A handler is better than ignoring them: `execve` resets handlers and keeps ignored signals ignored
/// (signal(7)), so that a start would have to reset them in each child.
pub(super) fn handle_write_signals() {
    extern "C" fn nothing(_signal: c_int) {}
    let handler = nothing as extern "C" fn(c_int) as libc::sighandler_t;
    let is_inherited = minder_os::signals::inherited_ignored_sigpipe();
    if is_inherited || (ignored(libc::SIGPIPE) && set_disposition(libc::SIGPIPE, handler).is_ok()) {
        SIGPIPE_HAS_HANDLER.store(true, Ordering::Relaxed);
    }
    if !ignored(libc::SIGXFSZ) {
        // Fails only for numbers that are not signals.
        let _ = set_disposition(libc::SIGXFSZ, handler);
    }
}

/// Returns the signal that this process ignores and its children do not: Rust's runtime ignores
/// SIGPIPE in the host.
pub(in crate::sys) fn ignored_by_us() -> Option<c_int> {
    (!SIGPIPE_HAS_HANDLER.load(Ordering::Relaxed)).then_some(libc::SIGPIPE)
}

/// Resets a signal to its default action.
#[cfg(not(target_os = "linux"))]
pub(super) fn default_action(number: c_int) -> io::Result<()> {
    set_disposition(number, libc::SIG_DFL)
}

/// Installs a handler for a signal. System calls that it interrupts are restarted where the operating
/// system supports that.
#[cfg(not(target_os = "linux"))]
pub(super) fn handle(number: c_int, handler: extern "C" fn(c_int)) -> io::Result<()> {
    set_disposition(number, handler as *const () as libc::sighandler_t)
}

fn set_disposition(number: c_int, handler: libc::sighandler_t) -> io::Result<()> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all-zero is a valid `sigaction`: the default action, no flags, an empty mask.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is initialised; the handler is SIG_DFL or one of ours, which only make
    // async-signal-safe calls.
    match unsafe { libc::sigaction(number, &raw const *action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends a blocked signal to this process, where it is pending until it is unblocked.
pub(super) fn raise_blocked(number: c_int) {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: no memory is touched, and our own pid cannot be another's.
    unsafe { libc::kill(me, number) };
}

/// Terminates the process by the default action of a signal. Where that is impossible (pid 1), exits
/// with the status that a shell reports for that signal.
pub(super) fn end_by(number: c_int) -> ! {
    // Fails for SIGKILL, which has no other action anyway.
    let _ = set_disposition(number, libc::SIG_DFL);
    raise_blocked(number);
    let _ = Mask::empty().with(number).unblock();
    // Pid 1 of a container cannot kill itself.
    exit_now(128 + number)
}

/// Ends this process as a child has ended: with its code, or by its signal without a core file.
pub(crate) fn exit_like(status: ExitStatus) -> ! {
    match status {
        ExitStatus::Exited(code) => std::process::exit(code),
        ExitStatus::Signaled { signal, .. } => {
            forbid_core();
            end_by(signal)
        }
        ExitStatus::Unknown => std::process::exit(255),
    }
}

/// Disables core dumps. A core pattern that is a pipe ignores the limit; on Linux a process that may not
/// be dumped has no core at all.
fn forbid_core() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Exits without running destructors and without flushing buffers, of which another process has a
/// copy.
pub(super) fn exit_now(status: c_int) -> ! {
    // SAFETY: ends the process; nothing of it can observe what is left undone.
    unsafe { libc::_exit(status) }
}
