//! A child process on Windows, known by its handle, which names one process until it is closed.
//!
//! The backend of the port waits for the handle and only posts a packet. The packet is a hint: its
//! receiver checks the handle itself.

#![expect(unsafe_code, reason = "process handles")]

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{FILETIME, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, GetProcessTimes, TerminateProcess, WaitForSingleObject,
};

use crate::exit_status::{ExitInfo, ExitStatus, ResourceUsage};
use crate::sys::reactor::Reactor;
use crate::sys::wait::{Operation, Report, Watched, millis};

/// A child of ours.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    watch: Option<ExitWait>,
    /// Shared with the waits for it, so that the handle stays open until they have ended.
    handle: Arc<OwnedHandle>,
    reaped: bool,
    /// The end, once seen.
    exit: Option<ExitInfo>,
}

impl Process {
    pub(crate) fn new(pid: u32, handle: OwnedHandle) -> Self {
        Self { pid, watch: None, handle: Arc::new(handle), reaped: false, exit: None }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends the registration with a guardian: there is none.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn unregister(&mut self) {}

    /// Returns the handle of the process.
    pub(crate) fn handle(&self) -> BorrowedHandle<'_> {
        self.handle.as_handle()
    }

    /// Asks for a report with `token` when the process has ended.
    pub(crate) fn watch(&mut self, reactor: &mut Reactor, token: u64) -> io::Result<()> {
        if !self.reaped {
            let packet = Operation::new();
            packet.set_token(token);
            let watched = reactor.watch(Arc::clone(&self.handle), Arc::clone(&packet))?;
            self.watch = Some(ExitWait { packet, watched });
        }
        Ok(())
    }

    /// Takes the report: the end of the process, if it did end.
    pub(crate) fn progress(
        &mut self,
        reactor: &mut Reactor,
        _report: &Report,
    ) -> io::Result<Option<ExitInfo>> {
        let exit = self.peek()?;
        match &mut self.watch {
            Some(_) if exit.is_some() => self.unwatch(reactor)?,
            Some(watch) if !watch.packet.is_in_flight() => watch.watched.arm()?,
            _ => (),
        }
        Ok(exit)
    }

    /// Ends the reports.
    pub(crate) fn unwatch(&mut self, _reactor: &mut Reactor) -> io::Result<()> {
        self.watch = None;
        Ok(())
    }

    /// Returns what waits for the exit on another thread.
    #[expect(clippy::unnecessary_wraps, reason = "the contract's form")]
    pub(crate) fn exit_watch(&self) -> io::Result<ExitWatch> {
        Ok(ExitWatch { handle: Arc::clone(&self.handle) })
    }

    /// Checks whether the pid still belongs to the child. It does while the handle is open.
    pub(crate) fn check(&mut self) {}

    /// Returns how the process exited, or `None` while it runs. The pid stays in use.
    pub(crate) fn peek(&mut self) -> io::Result<Option<ExitInfo>> {
        let handle = &self.handle;
        if self.exit.is_none() && has_exited(handle, Some(Duration::ZERO))? {
            self.exit =
                Some(ExitInfo { status: ExitStatus::Exited(exit_code(handle)?), usage: usage(handle) });
        }
        Ok(self.exit)
    }

    /// Waits for the exit until the deadline, or without a limit. The pid stays in use until
    /// [`reap`](Self::reap).
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Option<ExitInfo>> {
        loop {
            // The clock is read before the child is looked at: a child that ends in between is not called
            // late.
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if let Some(exit) = self.peek()? {
                return Ok(Some(exit));
            }
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            has_exited(&self.handle, left)?;
        }
    }

    /// Returns how the process exited, if it has, and marks it as reaped.
    pub(crate) fn try_reap(&mut self) -> io::Result<Option<ExitInfo>> {
        let exit = self.peek()?;
        if exit.is_some() {
            self.reap();
        }
        Ok(exit)
    }

    /// Waits for the exit without a limit, and marks the process as reaped.
    pub(crate) fn wait_and_reap(&mut self) -> io::Result<ExitInfo> {
        loop {
            if let Some(exit) = self.wait(None)? {
                self.reap();
                return Ok(exit);
            }
        }
    }

    /// Marks the process as reaped. Call it after `peek` has returned the exit. The pid is released
    /// with the handle.
    pub(crate) fn reap(&mut self) {
        self.watch = None;
        self.reaped = true;
    }

    /// The handle stays open: it keeps the pid from being used for another process.
    pub(crate) fn release(&mut self) {}

    /// Returns the signal that stopped it: always `None`, because Windows has no job control.
    pub(crate) fn stopped(&self) -> Option<i32> {
        None
    }

    /// Terminates the process alone, with this exit code. Has no effect after the process has
    /// exited.
    pub(crate) fn terminate(&self, code: u32) -> io::Result<()> {
        if self.reaped {
            return Ok(());
        }
        let handle = &self.handle;
        // SAFETY: the handle is open, and has every right on our child.
        if unsafe { TerminateProcess(handle.as_raw_handle(), code) } != 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // The kernel refuses this for a process that has exited, which is the desired state.
        if has_exited(handle, Some(Duration::ZERO))? { Ok(()) } else { Err(error) }
    }

    pub(crate) fn reaped(&self) -> bool {
        self.reaped
    }

    /// Gives the process up.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn leave(&mut self) {}
}

/// Does nothing: a process needs no reaping.
pub(crate) fn reap_orphans() {}

/// Waits for the exit of a process while another thread may reap it.
#[derive(Debug)]
pub(crate) struct ExitWatch {
    handle: Arc<OwnedHandle>,
}

impl ExitWatch {
    /// Returns the handle of the process.
    pub(crate) fn handle(&self) -> BorrowedHandle<'_> {
        self.handle.as_handle()
    }

    /// Sleeps until the process may have exited, for at most `left`, or without a limit.
    pub(crate) fn sleep(&self, left: Option<Duration>) -> io::Result<()> {
        has_exited(&self.handle, left).map(drop)
    }
}

/// A wait for the exit of one process, and the packet that reports it.
#[derive(Debug)]
struct ExitWait {
    packet: Arc<Operation>,
    watched: Box<dyn Watched>,
}

impl Drop for ExitWait {
    fn drop(&mut self) {
        self.packet.suppress();
    }
}

/// Waits until the process has exited, for at most `left`. Returns whether it has.
fn has_exited(process: &OwnedHandle, left: Option<Duration>) -> io::Result<bool> {
    // SAFETY: the handle is open.
    match unsafe { WaitForSingleObject(process.as_raw_handle(), millis(left)) } {
        WAIT_OBJECT_0 => Ok(true),
        WAIT_TIMEOUT => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the exit code of a process that has exited: 32 bits, all of which are valid codes.
fn exit_code(process: &OwnedHandle) -> io::Result<i32> {
    let mut code = 0;
    // SAFETY: the handle is open, `code` outlives the call.
    let answer = unsafe { GetExitCodeProcess(process.as_raw_handle(), &mut code) };
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(code.cast_signed()) }
}

/// Returns the resources that the process used, without its descendants; `None` where the operating
/// system does not say.
fn usage(process: &OwnedHandle) -> Option<ResourceUsage> {
    let process = process.as_raw_handle();
    let [mut start, mut end, mut system, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open, and the four locals outlive the call.
    if unsafe { GetProcessTimes(process, &mut start, &mut end, &mut system, &mut user) } == 0 {
        return None;
    }
    let mut memory = PROCESS_MEMORY_COUNTERS::default();
    let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    // SAFETY: the handle is open, and `memory` is as large as the argument states.
    let known = unsafe { K32GetProcessMemoryInfo(process, &mut memory, size) } != 0;
    // Wine reports zero for a process that has exited.
    let max_rss = Some(memory.PeakWorkingSetSize as u64).filter(|&peak| known && peak > 0);
    Some(ResourceUsage { user: duration(user), system: duration(system), max_rss, main_thread: None })
}

/// A time in units of 100 ns.
fn duration(time: FILETIME) -> Duration {
    let ticks = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos(ticks.saturating_mul(100))
}
