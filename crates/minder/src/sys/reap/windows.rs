//! A child process on Windows: by its handle, which names one process and no other until it is closed.
//!
//! Its end is heard through a registered wait: a thread of the system's waits for many processes at once (63 with older
//! systems and Wine, any number since Windows 8) and only posts a packet to the port. The truth is the handle: it is
//! looked at again when the packet lands.

#![expect(unsafe_code, reason = "process handles and registered waits")]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{FILETIME, INVALID_HANDLE_VALUE, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, GetProcessTimes, INFINITE, RegisterWaitForSingleObject, TerminateProcess,
    UnregisterWaitEx, WT_EXECUTEINWAITTHREAD, WT_EXECUTEONLYONCE, WaitForSingleObject,
};

use crate::event::{Exit, Status, Usage};
use crate::sys::wait::{Core, Packet, Port, Report, Source, millis};

/// Whether the system says that no process has this number: it says the same of other mistakes.
pub(crate) fn is_nobody(_error: &io::Error) -> bool {
    false
}

/// A child of ours.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    watch: Option<Watch>,
    /// Until it is reaped.
    handle: Option<OwnedHandle>,
    /// The end, once seen.
    exit: Option<Exit>,
}

impl Process {
    pub(crate) fn new(pid: u32, handle: OwnedHandle) -> Self {
        Self { pid, watch: None, handle: Some(handle), exit: None }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// What a poller watches for the end of this process.
    pub(crate) fn source(&self) -> Source<'_> {
        match &self.handle {
            Some(handle) => Source::handle(handle),
            None => Source::Process(self.pid),
        }
    }

    /// Asks for a report with `token` when the process has ended.
    pub(crate) fn watch(&mut self, port: &mut Port, token: u64) -> io::Result<()> {
        if let Some(handle) = &self.handle {
            self.watch = Some(Watch::new(port, handle, token)?);
        }
        Ok(())
    }

    /// Takes the report: the end of the process, if it did end.
    pub(crate) fn progress(&mut self, port: &mut Port, _report: &Report) -> io::Result<Option<Exit>> {
        let exit = self.peek()?;
        if exit.is_some() {
            self.unwatch(port)?;
        }
        Ok(exit)
    }

    /// Asks for no more reports.
    pub(crate) fn unwatch(&mut self, _port: &mut Port) -> io::Result<()> {
        self.watch = None;
        Ok(())
    }

    /// Looks whether the number is still the child's own: it is, while its handle is open.
    pub(crate) fn check(&mut self) {}

    /// Whether it ended, and how; its number stays taken.
    pub(crate) fn peek(&mut self) -> io::Result<Option<Exit>> {
        if self.exit.is_none()
            && let Some(handle) = &self.handle
            && is_over(handle, Some(Duration::ZERO))?
        {
            self.exit = Some(Exit { status: Status::Exited(exit_code(handle)?), usage: usage(handle) });
        }
        Ok(self.exit)
    }

    /// Waits for the end until the deadline, or for ever. The number stays taken until [`reap`](Self::reap).
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Option<Exit>> {
        loop {
            // The clock is read before the child is looked at: a child that ends in between is not called late.
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if let Some(exit) = self.peek()? {
                return Ok(Some(exit));
            }
            match &self.handle {
                Some(handle) if left != Some(Duration::ZERO) => is_over(handle, left)?,
                _ => return Ok(None),
            };
        }
    }

    /// Lets the number go. Call it after `peek` said that the process ended.
    pub(crate) fn reap(&mut self) {
        self.watch = None;
        self.handle = None;
    }

    /// Whether it stopped: there is no job control here.
    pub(crate) fn stopped(&self) -> Option<i32> {
        None
    }

    /// Ends the process alone, with this exit code. Without effect when it is over.
    pub(crate) fn terminate(&self, code: u32) -> io::Result<()> {
        let Some(handle) = &self.handle else { return Ok(()) };
        // SAFETY: the handle is open, and has every right on our child.
        if unsafe { TerminateProcess(handle.as_raw_handle(), code) } != 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // It is refused for a process that is over, which is what was wanted.
        if is_over(handle, Some(Duration::ZERO))? { Ok(()) } else { Err(error) }
    }

    pub(crate) fn reaped(&self) -> bool {
        self.handle.is_none()
    }
}

/// A registered wait for one process. It must be gone before the handle is closed; fields of [`Process`] are dropped in
/// their order.
#[derive(Debug)]
struct Watch {
    /// The wait object, a pointer of the system's.
    wait: AtomicPtr<c_void>,
    context: Arc<Context>,
}

/// What the system's thread needs.
#[derive(Debug)]
struct Context {
    core: Arc<Core>,
    packet: Arc<Packet>,
}

impl Watch {
    fn new(port: &Port, process: &OwnedHandle, token: u64) -> io::Result<Self> {
        let context = Arc::new(Context { core: Arc::clone(port.core()), packet: Packet::new() });
        context.packet.tell(token);
        let mut wait = null_mut();
        let flags = WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD;
        let (process, argument) = (process.as_raw_handle(), Arc::as_ptr(&context).cast());
        // SAFETY: the process handle stays open, and `argument` alive, until `drop` has seen the end of the wait; `ended`
        // takes what `argument` is.
        let answer = unsafe {
            RegisterWaitForSingleObject(&mut wait, process, Some(ended), argument, INFINITE, flags)
        };
        if answer == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { wait: AtomicPtr::new(wait), context })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.context.packet.mute();
        let wait = self.wait.load(Ordering::Relaxed);
        // This waits for a callback that runs just now, which is a matter of one posted packet; it never runs on this
        // thread, since it drops nothing of ours.
        // SAFETY: the wait was registered by `new` and is unregistered only here.
        if unsafe { UnregisterWaitEx(wait, INVALID_HANDLE_VALUE) } == 0 {
            // The callback may still come: what it uses is leaked rather than freed.
            std::mem::forget(Arc::clone(&self.context));
        }
    }
}

/// Runs once, on a thread of the system's, when the process has ended.
unsafe extern "system" fn ended(context: *mut c_void, _timed_out: bool) {
    // SAFETY: it is what `Watch::new` registered, which `Watch::drop` keeps alive until this function has returned.
    let context = unsafe { &*context.cast::<Context>() };
    // It fails only when the kernel has no memory for a packet, and then there is nobody here to tell.
    let _ = context.core.post(&context.packet);
}

/// Waits until the process has ended, for at most `left`.
fn is_over(process: &OwnedHandle, left: Option<Duration>) -> io::Result<bool> {
    // SAFETY: the handle is open.
    match unsafe { WaitForSingleObject(process.as_raw_handle(), millis(left)) } {
        WAIT_OBJECT_0 => Ok(true),
        WAIT_TIMEOUT => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The exit code of a process that is over: 32 bits, all of which may be used.
fn exit_code(process: &OwnedHandle) -> io::Result<i32> {
    let mut code = 0;
    // SAFETY: the handle is open, `code` outlives the call.
    let answer = unsafe { GetExitCodeProcess(process.as_raw_handle(), &mut code) };
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(code.cast_signed()) }
}

/// What the process used, without its descendants; `None` where the system does not say.
fn usage(process: &OwnedHandle) -> Option<Usage> {
    let process = process.as_raw_handle();
    let [mut start, mut end, mut system, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open, and the four locals outlive the call.
    if unsafe { GetProcessTimes(process, &mut start, &mut end, &mut system, &mut user) } == 0 {
        return None;
    }
    let mut memory = PROCESS_MEMORY_COUNTERS::default();
    let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    // SAFETY: the handle is open, and `memory` is as large as it is said to be.
    let known = unsafe { K32GetProcessMemoryInfo(process, &mut memory, size) } != 0;
    // Wine fills in zero for a process that is over.
    let max_rss = Some(memory.PeakWorkingSetSize as u64).filter(|&peak| known && peak > 0);
    Some(Usage { user: duration(user), system: duration(system), max_rss })
}

/// A time in units of 100 ns.
fn duration(time: FILETIME) -> Duration {
    let ticks = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos(ticks.saturating_mul(100))
}
