//! The completion port: the kernel queue that receives everything a reactor or poller waits for.
//!
//! A port reports operations that have finished, not sources that are ready. It transports packets
//! ([`Operation`]): an `OVERLAPPED` with a token. An endpoint submits its packet with an operation
//! ([`CompletionPort::submit`]) or posts it without one ([`CompletionPort::post`]). While the
//! packet is in flight, the kernel's pointer counts as one reference to it. The port takes that
//! reference back when the packet completes. So an endpoint may be dropped at any time, and the
//! kernel never uses freed memory.
//!
//! Waiting for the port's handle itself is not documented. A foreign loop needs an event instead.

#![expect(unsafe_code, reason = "completion port calls, and packets that the kernel holds")]

use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;
use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetQueuedCompletionStatusEx, OVERLAPPED, OVERLAPPED_ENTRY,
};
use windows_sys::Win32::System::JobObjects::{
    JOBOBJECT_ASSOCIATE_COMPLETION_PORT, JobObjectAssociateCompletionPortInformation, SetInformationJobObject,
};
use windows_sys::Win32::System::SystemServices::JOB_OBJECT_MSG_ACTIVE_PROCESS_ZERO;

use super::millis::millis;
use super::operation::{Operation, Submission};
use super::port_sender::{KEY_PACKET, KEY_TIMER, KEY_WAKER, PortSender};
use super::timer::PortTimer;
use super::waker::Waker;
use crate::sys::last_error::done;
use crate::sys::wait::types::{RECHECK_TOKEN, Ready};

/// The most packets that one call takes. More packets stay in the kernel and come first in the next
/// call, so no source starves.
pub(in crate::sys::wait) const PACKETS_MAX: usize = 128;
/// The number of threads that the port lets run at the same time: effectively unlimited.
const THREADS_MAX: u32 = 1 << 16;
/// The time for which the last owner of a port waits for cancelled operations. Packets that are
/// still in flight after that are leaked, never freed.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Number of attempts of a callback to post, one millisecond apart.
const POSTS_MAX: u32 = 10_000;

/// The completion key of an interruption: a wait returns so that its caller checks its sources
/// again.
const KEY_INTERRUPT: usize = 4;

/// The first key of the reports of job objects: this key plus the token.
const KEY_JOBS: usize = 16;

/// The token of an interruption. No packet has it.
pub(in crate::sys::wait) const INTERRUPT_TOKEN: u64 = RECHECK_TOKEN - 2;

/// The shared part of a port. It lives as long as the port or any endpoint that was armed on it.
#[derive(Debug)]
pub(crate) struct CompletionPort {
    sender: Arc<PortSender>,
    waker: Arc<Waker>,
    timer: PortTimer,
    /// Number of packets that the kernel holds.
    in_flight: AtomicUsize,
    /// Packets whose endpoints are closed and whose operations continue: the last bytes of an
    /// input.
    lingering: Mutex<Vec<Weak<Operation>>>,
}

impl CompletionPort {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        // SAFETY: asks for a new port: no file handle, no existing port, so nothing is borrowed.
        let raw =
            unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, std::ptr::null_mut(), 0, THREADS_MAX) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above created the handle, and nothing else owns it.
        let port = unsafe { OwnedHandle::from_raw_handle(raw) };
        let sender = Arc::new(PortSender::new(port));
        let waker = Arc::new(Waker::of_port(Arc::clone(&sender)));
        Ok(Arc::new(Self {
            sender,
            waker,
            timer: PortTimer::default(),
            in_flight: AtomicUsize::new(0),
            lingering: Mutex::default(),
        }))
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Makes the operations of `handle` complete into this port. A handle can never belong to
    /// another port.
    pub(crate) fn associate(&self, handle: BorrowedHandle<'_>) -> io::Result<()> {
        let port = self.sender.as_raw_handle();
        // SAFETY: both handles are borrowed, so open. `KEY_PACKET` promises that every operation of
        // this handle that queues a packet uses the `OVERLAPPED` of an `Operation`. Endpoints keep
        // associated handles private and start all such operations by `submit`.
        let raw = unsafe { CreateIoCompletionPort(handle.as_raw_handle(), port, KEY_PACKET, 0) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        self.sender.set_associated();
        Ok(())
    }

    /// Requests a report with `token` when the last process of the job has exited. The report is a hint:
    /// delivery is not guaranteed (`JOBOBJECT_ASSOCIATE_COMPLETION_PORT`). A token that does not
    /// fit into a key is an error.
    pub(crate) fn associate_job(&self, job: BorrowedHandle<'_>, token: u64) -> io::Result<()> {
        let key = usize::try_from(token).ok().and_then(|token| token.checked_add(KEY_JOBS));
        let key = std::ptr::without_provenance_mut(key.ok_or(io::ErrorKind::Unsupported)?);
        let association = JOBOBJECT_ASSOCIATE_COMPLETION_PORT {
            CompletionKey: key,
            CompletionPort: self.sender.as_raw_handle(),
        };
        let from = (&raw const association).cast();
        let size = size_of_val(&association) as u32;
        let class = JobObjectAssociateCompletionPortInformation;
        // From here on packets arrive that this process did not post.
        self.sender.set_associated();
        // SAFETY: the job is open. `from` is a local structure of this class and size.
        let answer = unsafe { SetInformationJobObject(job.as_raw_handle(), class, from, size) };
        done(answer)
    }

    /// Returns whether packets arrive that this process did not post.
    pub(super) fn is_associated(&self) -> bool {
        self.sender.is_associated()
    }

    /// Makes every sender set `event` as well, because a thread waits for that event in addition to
    /// the port. The event is the same in every call.
    pub(super) fn set_event_waiter(&self, event: &Arc<OwnedHandle>) {
        self.sender.set_event_waiter(event);
    }

    /// Ends the effect of [`set_event_waiter`](Self::set_event_waiter).
    pub(super) fn clear_event_waiter(&self) {
        self.sender.clear_event_waiter();
    }

    /// Takes all posted packets. Only for a port that receives no other packets.
    pub(super) fn take_posted(&self, ready: &mut Vec<Ready>) -> io::Result<()> {
        if !self.sender.has_posted() {
            return Ok(());
        }
        let before = ready.len();
        while self.dequeue(ready, Some(Duration::ZERO))? && ready.len() == before {}
        Ok(())
    }

    /// Sets the timer of the port to this deadline, which is `left` from now.
    pub(super) fn set_timer(&self, deadline: Instant, left: Duration) {
        self.timer.set(&self.sender, deadline, left);
    }

    /// Submits `packet` with the operation that `start` begins. The packet must not be in flight.
    ///
    /// # Safety
    /// `start` begins at most one operation with the pointer that it is given, as its last system
    /// call, and returns the result of that call. The operation is one of a handle that was
    /// associated with this port (and, if `skips`, configured to queue no packet for immediate
    /// success). Memory that the operation uses lives as long as the packet, and no other code
    /// changes it while the packet is in flight.
    pub(crate) unsafe fn submit(
        &self,
        packet: &Arc<Operation>,
        skips: bool,
        start: impl FnOnce(*mut OVERLAPPED) -> i32,
    ) -> io::Result<Submission> {
        let overlapped = self.lend_to_kernel(packet);
        let answer = start(overlapped);
        let error = if answer == 0 { Some(io::Error::last_os_error()) } else { None };
        match error {
            None if skips => {
                self.take_from_kernel(overlapped);
                Ok(Submission::Completed)
            }
            None => Ok(Submission::Pending),
            Some(error) if error.raw_os_error() == Some(ERROR_IO_PENDING.cast_signed()) => {
                Ok(Submission::Pending)
            }
            Some(error) => {
                // An operation that could not begin queues no packet.
                self.take_from_kernel(overlapped);
                Err(error)
            }
        }
    }

    /// Posts `packet` to the port, so that it completes without an operation. It must not be in
    /// flight.
    pub(crate) fn post(&self, packet: &Arc<Operation>) -> io::Result<()> {
        let overlapped = self.lend_to_kernel(packet);
        self.sender.send(KEY_PACKET, overlapped).inspect_err(|_| drop(self.take_from_kernel(overlapped)))
    }

    /// Posts `packet` from a thread that cannot report an error: if memory is short it retries for
    /// a while. Signals are merged: a packet that is in flight already is enough.
    pub(super) fn post_soon(&self, packet: &Arc<Operation>) {
        let Some(overlapped) = packet.begin() else { return };
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        for _ in 0..POSTS_MAX {
            if self.sender.send(KEY_PACKET, overlapped).is_ok() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        drop(self.take_from_kernel(overlapped));
    }

    /// Gives the kernel its reference to the packet.
    fn lend_to_kernel(&self, packet: &Arc<Operation>) -> *mut OVERLAPPED {
        let overlapped = packet.begin().expect("packet is already in flight");
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        overlapped
    }

    /// Takes the kernel's reference back: the operation has finished, or did not begin.
    fn take_from_kernel(&self, overlapped: *mut OVERLAPPED) -> Arc<Operation> {
        // SAFETY: all pointers that come here were made by `lend_to_kernel`, and each comes back once: by
        // the queue, which hands out every packet once, or from a call that queued none.
        let packet = unsafe { Operation::complete(overlapped) };
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
        packet
    }

    /// Interrupts one running wait, or else the next, with the token [`INTERRUPT_TOKEN`].
    pub(in crate::sys::wait) fn interrupt_wait(&self) -> io::Result<()> {
        self.sender.send(KEY_INTERRUPT, std::ptr::null())
    }

    /// Waits until there is something to report or the deadline has passed. Never returns earlier.
    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if let (Some(deadline), Some(left)) = (deadline, left)
                && !left.is_zero()
            {
                self.set_timer(deadline, left);
            }
            let is_full = self.dequeue(ready, left)?;
            // With nothing to report, the wait continues until a poll *after* the deadline finds
            // nothing. A full batch of packets without reports does not count, because it may hide
            // others.
            if ready.len() > before || left == Some(Duration::ZERO) && !is_full {
                return Ok(());
            }
        }
    }

    /// Makes one call, which takes packets from the queue, or waits for one. Returns whether it
    /// took as many as a call can take.
    fn dequeue(&self, ready: &mut Vec<Ready>, left: Option<Duration>) -> io::Result<bool> {
        let mut entries = [OVERLAPPED_ENTRY::default(); PACKETS_MAX];
        let mut count = 0;
        let port = self.sender.as_raw_handle();
        let list = entries.as_mut_ptr();
        let time = millis(left);
        // SAFETY: the port is open, and `list` has room for `PACKETS_MAX` entries.
        let answer =
            unsafe { GetQueuedCompletionStatusEx(port, list, PACKETS_MAX as u32, &mut count, time, 0) };
        if answer == 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed()) {
                Ok(false)
            } else {
                Err(error)
            };
        }
        self.sender.subtract_posted(count as usize);
        for entry in &entries[..count as usize] {
            match entry.lpCompletionKey {
                KEY_WAKER => {
                    self.waker.take_wakes(ready);
                    continue;
                }
                KEY_TIMER => continue,
                KEY_INTERRUPT => {
                    ready.push(Ready::none(INTERRUPT_TOKEN));
                    continue;
                }
                KEY_JOBS.. => {
                    // `lpOverlapped` of these packets is a pid, not a pointer.
                    if entry.dwNumberOfBytesTransferred == JOB_OBJECT_MSG_ACTIVE_PROCESS_ZERO {
                        ready.push(completed((entry.lpCompletionKey - KEY_JOBS) as u64));
                    }
                    continue;
                }
                _ => (),
            }
            let packet = self.take_from_kernel(entry.lpOverlapped);
            if let Some(token) = packet.token() {
                ready.push(completed(token));
            }
        }
        Ok(count as usize == PACKETS_MAX)
    }

    /// Lets the operation of `packet` continue after its endpoint is dropped; `handle` is closed
    /// when the packet completes. If the port is dropped first, the operation is cancelled.
    pub(crate) fn keep_alive(&self, packet: &Arc<Operation>, handle: Arc<OwnedHandle>) {
        packet.keep(handle);
        let mut lingering = self.lingering.lock();
        lingering.retain(|packet| packet.strong_count() > 0);
        lingering.push(Arc::downgrade(packet));
    }
}

impl Drop for CompletionPort {
    /// Waits for the packets that are still in flight. All endpoints have been dropped, because
    /// each holds an `Arc` of the port, and have cancelled their operations. The wait therefore
    /// takes microseconds. The port is not closed before: its packets would be lost and their
    /// memory with them.
    fn drop(&mut self) {
        for packet in std::mem::take(&mut *self.lingering.lock()).iter().filter_map(Weak::upgrade) {
            packet.cancel_kept();
        }
        let until = Instant::now() + DRAIN_MAX;
        let mut reports = Vec::new();
        while self.in_flight.load(Ordering::Acquire) > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.dequeue(&mut reports, Some(left)).is_err() {
                return;
            }
        }
    }
}

/// Returns the report of a completed packet. Its endpoint or source knows the meaning.
pub(super) fn completed(token: u64) -> Ready {
    Ready { readable: true, writable: true, ..Ready::none(token) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::reactor::Reactor;
    use crate::sys::wait::WAKE_TOKEN;

    /// A set may move to another thread, and so may all that it holds.
    #[test]
    fn reactor_waker_and_spawned_are_send_and_sync() {
        fn check<T: Send + Sync>() {}
        check::<(Reactor, Waker)>();
        check::<crate::sys::spawn::Spawned>();
    }

    #[test]
    fn wakes_are_merged_and_end_one_wait() {
        let mut port = Reactor::open(None).unwrap();
        let waker = port.waker();
        waker.wake().unwrap();
        waker.wake().unwrap();
        let mut reports = Vec::new();
        port.wait(&mut reports, None).unwrap();
        port.wait(&mut reports, Some(Instant::now())).unwrap();
        assert_eq!(reports.iter().map(|report| report.token).collect::<Vec<_>>(), [WAKE_TOKEN]);
    }

    #[test]
    fn wait_never_returns_before_deadline() {
        let mut port = Reactor::open(None).unwrap();
        for micros in [1, 100, 999, 1_001, 5_500, 16_001] {
            let deadline = Instant::now() + Duration::from_micros(micros);
            port.wait(&mut Vec::new(), Some(deadline)).unwrap();
            assert!(Instant::now() >= deadline, "{micros} us");
        }
    }

    #[test]
    fn packet_in_flight_keeps_itself_alive() {
        let mut port = Reactor::open(None).unwrap();
        let packet = Operation::new();
        packet.set_token(7);
        port.port().post(&packet).unwrap();
        assert_eq!(Arc::strong_count(&packet), 2);
        let mut reports = Vec::new();
        port.wait(&mut reports, None).unwrap();
        assert_eq!((reports[0].token, Arc::strong_count(&packet)), (7, 1));
        port.port().post(&packet).unwrap();
        packet.suppress();
        let weak = Arc::downgrade(&packet);
        drop(packet);
        assert!(weak.upgrade().is_some(), "the kernel holds a reference");
        port.wait(&mut reports, Some(Instant::now())).unwrap();
        assert_eq!((reports.len(), weak.strong_count()), (1, 0));
    }

    #[test]
    fn dropped_port_releases_posted_packets() {
        let port = Reactor::open(None).unwrap();
        let packet = Operation::new();
        port.port().post(&packet).unwrap();
        drop(port);
        assert_eq!(Arc::strong_count(&packet), 1);
    }
}
