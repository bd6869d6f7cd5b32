//! The guard on Windows: an event for Ctrl-C and similar requests, and no guardians.
//!
//! Guardians are not needed against a killed runner: a job object that kills on close takes its
//! processes with the last handle, and the kernel closes the handles of every process that exits.
#![expect(unsafe_code, reason = "an event and the console's handler")]

use crate::sys::signal::Signal;
use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle, IntoRawHandle, OwnedHandle};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::SeqCst};
use std::time::Instant;

use windows_sys::Win32::Foundation::{FALSE, TRUE};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
    SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::Threading::{ResetEvent, SetEvent};
use windows_sys::core::BOOL;

use super::config::{GuardConfig, Watchdog};
use super::signal::{ExitMode, SignalDebouncer, SignalSender};
use crate::exit_status::ExitStatus;
use crate::sys::event::event;

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// The one guard's event, for the handler; never closed.
static EVENT: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(ptr::null_mut());
/// One bit for each pending signal.
static PENDING: AtomicU32 = AtomicU32::new(0);

const BITS: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::HUP];

/// The event, duplicated for the host's loop.
#[derive(Debug)]
pub(crate) struct Guard {
    event: OwnedHandle,
    repeats: SignalDebouncer,
}

impl Guard {
    pub(crate) fn install(_: &GuardConfig) -> io::Result<Guard> {
        if INSTALLED.swap(true, SeqCst) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the process has a guard already"));
        }
        // It stays signalled until all was read.
        let event = event(true)?;
        EVENT.store(event.try_clone()?.into_raw_handle(), SeqCst);
        // SAFETY: the handler is a function of this program and only uses the two statics, set by now.
        if unsafe { SetConsoleCtrlHandler(Some(handle_console_event), TRUE) } == FALSE {
            return Err(io::Error::last_os_error());
        }
        Ok(Guard { event, repeats: SignalDebouncer::default() })
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn guardians(&self) -> Result<(u32, u32), &'static str> {
        Err("job objects hold the children")
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn kills_descendants(&self) -> bool {
        true
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the contract's form")]
    pub(crate) fn watchdog(&self) -> Option<Watchdog> {
        None
    }

    pub(crate) fn wait_ready(&self) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn signals(&self) -> BorrowedHandle<'_> {
        self.event.as_handle()
    }

    pub(crate) fn next_signal(&mut self) -> Option<(Signal, SignalSender)> {
        loop {
            // First the event, then the bits: one that comes between leaves the event set, and the next call
            // looks again.
            // SAFETY: the event is never closed.
            unsafe { ResetEvent(EVENT.load(SeqCst)) };
            let pending = PENDING.load(SeqCst);
            let bit = (0..BITS.len()).find(|bit| pending & (1 << bit) != 0)?;
            let rest = PENDING.fetch_and(!(1 << bit), SeqCst) & !(1 << bit);
            if rest != 0 {
                // SAFETY: as above.
                unsafe { SetEvent(EVENT.load(SeqCst)) };
            }
            if self.repeats.counts(BITS[bit], Instant::now()) {
                return Some((BITS[bit], SignalSender::Unknown));
            }
        }
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn suspend_self(&self) {}

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn stop_self(&self) {}

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn set_orphaned_flag(&mut self, _flag: Arc<AtomicBool>) {}

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn orphans(&self) -> Vec<(u32, String)> {
        Vec::new()
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn exit(self, status: u8) -> ! {
        std::process::exit(status.into())
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn terminate(self, ending: ExitMode) -> ! {
        // The exit code that Windows gives a console program after Ctrl-C, Ctrl-Break or a closed
        // window. `cmd.exe` uses it to decide whether to ask about continuing the batch file.
        const CONTROL_C_EXIT: i32 = 0xC000_013A_u32.cast_signed();
        std::process::exit(match ending {
            ExitMode::Status(status) => status.into(),
            ExitMode::Signal(_) => CONTROL_C_EXIT,
        })
    }
}

/// Ends this process as a child has ended: with its code.
pub(crate) fn exit_like(status: ExitStatus) -> ! {
    std::process::exit(status.code().unwrap_or(255))
}

/// Runs on a thread of the operating system. Saying TRUE to a closing console would end the process
/// at once when this returns; the operating system gives about five seconds otherwise, which the
/// run needs to end in order.
unsafe extern "system" fn handle_console_event(kind: u32) -> BOOL {
    let bit = match kind {
        CTRL_BREAK_EVENT => 0,
        CTRL_C_EVENT => 1,
        CTRL_CLOSE_EVENT | CTRL_LOGOFF_EVENT | CTRL_SHUTDOWN_EVENT => 2,
        _ => return FALSE,
    };
    PENDING.fetch_or(1 << bit, SeqCst);
    // SAFETY: stored before the handler was set, and never closed.
    unsafe { SetEvent(EVENT.load(SeqCst)) };
    if bit == 2 {
        // This thread may wait as long as it likes: the process ends by itself, or is ended by the
        // operating system.
        loop {
            std::thread::park();
        }
    }
    TRUE
}
