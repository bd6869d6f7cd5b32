//! Sockets as readiness: one-shot polls of the Ancillary Function Driver, which complete into the
//! port.
//!
//! `select` and `WSAPoll` are built on this driver, whose interface is not documented. libuv, mio
//! and others use it in this way: no other interface reports readiness without reading, at a cost
//! that does not grow with the number of sockets.

#![expect(unsafe_code, reason = "the driver of sockets")]

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, FromRawHandle, OwnedHandle, RawSocket};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{FILE_OPEN, NtCreateFile};
use windows_sys::Win32::Foundation::{HANDLE, NTSTATUS, RtlNtStatusToDosError, UNICODE_STRING};
use windows_sys::Win32::Networking::WinSock::{
    POLLERR, POLLHUP, POLLRDNORM, POLLWRNORM, SIO_BASE_HANDLE, SOCKET, WSAGetLastError, WSAIoctl, WSAPOLLFD,
    WSAPoll,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_SHARE_READ, FILE_SHARE_WRITE, SYNCHRONIZE};
use windows_sys::Win32::System::IO::{DeviceIoControl, IO_STATUS_BLOCK};

use super::{CompletionPort, Operation, Submission};
use crate::interest::Interest;
use crate::sys::wait::Ready;

const IOCTL_AFD_POLL: u32 = 0x0001_2024;

const RECEIVE: u32 = 0x001;
const SEND: u32 = 0x004;
const DISCONNECT: u32 = 0x008;
const ABORT: u32 = 0x010;
const LOCAL_CLOSE: u32 = 0x020;
const ACCEPT: u32 = 0x080;
const CONNECT_FAIL: u32 = 0x100;

/// The request to the driver and its reply, in the same memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct AfdPollInfo {
    timeout: i64,
    count: u32,
    exclusive: u32,
    socket: HANDLE,
    events: u32,
    status: NTSTATUS,
}

/// A handle of the driver, which serves any number of sockets.
#[derive(Debug)]
pub(in crate::sys::wait) struct Afd {
    device: OwnedHandle,
    port: Arc<CompletionPort>,
}

impl Afd {
    pub(in crate::sys::wait) fn open(port: &Arc<CompletionPort>) -> io::Result<Self> {
        let mut name: Vec<u16> = r"\Device\Afd\minder".encode_utf16().collect();
        let bytes = size_of_val(&name[..]) as u16;
        let name = UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: name.as_mut_ptr() };
        let attributes = OBJECT_ATTRIBUTES {
            Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
            ObjectName: &raw const name,
            ..OBJECT_ATTRIBUTES::default()
        };
        let mut raw = null_mut();
        let mut status = IO_STATUS_BLOCK::default();
        let share = FILE_SHARE_READ | FILE_SHARE_WRITE;
        // SAFETY: the name, the attributes and both results outlive the call, which has finished
        // when it returns.
        let answer = unsafe {
            NtCreateFile(
                &mut raw,
                SYNCHRONIZE,
                &attributes,
                &mut status,
                null(),
                0,
                share,
                FILE_OPEN,
                0,
                null(),
                0,
            )
        };
        if answer < 0 {
            // SAFETY: it takes any number.
            let code = unsafe { RtlNtStatusToDosError(answer) };
            return Err(io::Error::from_raw_os_error(code.cast_signed()));
        }
        // SAFETY: the call above created the handle, and nothing else owns it.
        let device = unsafe { OwnedHandle::from_raw_handle(raw) };
        port.associate(device.as_handle())?;
        Ok(Self { device, port: Arc::clone(port) })
    }
}

/// A registered socket.
#[derive(Debug)]
pub(in crate::sys::wait) struct Poll {
    afd: Arc<Afd>,
    /// The socket as the caller knows it. A layered service provider may have wrapped it: the driver
    /// knows `base`.
    socket: SOCKET,
    base: SOCKET,
    events: u32,
    packet: Arc<Operation>,
}

impl Poll {
    /// # Errors
    /// The error of Winsock if `socket` is not a socket.
    pub(in crate::sys::wait) fn new(
        afd: &Arc<Afd>,
        socket: RawSocket,
        interest: Interest,
        packet: Arc<Operation>,
    ) -> io::Result<Self> {
        let socket = socket as SOCKET;
        let base = base_of(socket)?;
        let mut events = LOCAL_CLOSE | ABORT;
        if interest.is_readable() {
            events |= RECEIVE | ACCEPT | DISCONNECT;
        }
        if interest.is_writable() {
            events |= SEND | CONNECT_FAIL;
        }
        Ok(Self { afd: Arc::clone(afd), socket, base, events, packet })
    }

    /// Sends a request to the driver, unless one is pending. A socket that is ready now completes
    /// at once.
    pub(in crate::sys::wait) fn arm(&mut self) -> io::Result<()> {
        if self.packet.is_in_flight() {
            return Ok(());
        }
        let mut data = self.packet.data();
        data.buffer.resize(size_of::<AfdPollInfo>().div_ceil(size_of::<u64>()), 0);
        let memory = data.buffer.as_mut_ptr().cast::<AfdPollInfo>();
        let request = AfdPollInfo {
            timeout: i64::MAX,
            count: 1,
            exclusive: 0,
            socket: self.base as HANDLE,
            events: self.events,
            status: 0,
        };
        // SAFETY: the buffer is as large as a request, and aligned for it.
        unsafe { memory.write(request) };
        drop(data);
        let device = self.afd.device.as_raw_handle();
        let size = size_of::<AfdPollInfo>() as u32;
        let from = memory.cast_const().cast();
        let into = memory.cast();
        // SAFETY: the device is open, `overlapped` comes from `submit`, and the memory has the size
        // that the argument states.
        let start = |overlapped| unsafe {
            DeviceIoControl(device, IOCTL_AFD_POLL, from, size, into, size, null_mut(), overlapped)
        };
        // SAFETY: `start` is one call, on a device that was associated when it was opened and that
        // queues a packet for every completion. The memory belongs to the packet. Only this
        // function and `take_reply` touch it, while the packet is not in flight.
        let submission = unsafe { self.afd.port.submit(&self.packet, false, start) };
        submission.map(|submission| debug_assert_eq!(submission, Submission::Pending))
    }

    /// Returns the driver's reply after the packet has completed, without what no longer applies.
    /// Returns `None` if the socket is no longer ready.
    pub(in crate::sys::wait) fn take_reply(&self, token: u64) -> io::Result<Option<Ready>> {
        if self.packet.is_in_flight() {
            return Ok(None);
        }
        self.packet.result(&self.afd.device)?;
        let data = self.packet.data();
        // SAFETY: `arm` wrote a request here, the driver has replied, and the packet is not in flight.
        let reply = unsafe { data.buffer.as_ptr().cast::<AfdPollInfo>().read() };
        let events = if reply.count == 0 { 0 } else { reply.events };
        let broken = events & (ABORT | CONNECT_FAIL | LOCAL_CLOSE) != 0;
        // The reply may be older than the caller's last operation on the socket.
        let now = if broken { 0 } else { self.poll_now() };
        let ready = Ready {
            readable: self.events & RECEIVE != 0 && (broken || now & (POLLRDNORM | POLLHUP | POLLERR) != 0),
            writable: self.events & SEND != 0 && (broken || now & (POLLWRNORM | POLLERR) != 0),
            // The socket is still writable if the other side sends nothing more.
            closed: broken || now & POLLERR != 0,
            ..Ready::none(token)
        };
        Ok(Some(ready).filter(|ready| ready.readable || ready.writable))
    }

    /// Returns the current state of the socket.
    fn poll_now(&self) -> i16 {
        let mut pollfd = WSAPOLLFD { fd: self.socket, events: 0, revents: 0 };
        if self.events & RECEIVE != 0 {
            pollfd.events |= POLLRDNORM;
        }
        if self.events & SEND != 0 {
            pollfd.events |= POLLWRNORM;
        }
        // SAFETY: one structure, which outlives the call; it does not wait.
        let count = unsafe { WSAPoll(&mut pollfd, 1, 0) };
        if count > 0 { pollfd.revents } else { 0 }
    }

    /// Returns whether this can be used with `interest`, and for a socket that may have reused the
    /// number of the first one: a pending request is for the first one.
    pub(in crate::sys::wait) fn still_matches(&self, interest: Interest) -> bool {
        let requested = (self.events & RECEIVE != 0, self.events & SEND != 0);
        requested == (interest.is_readable(), interest.is_writable())
            && !self.packet.is_in_flight()
            && base_of(self.socket).is_ok_and(|base| base == self.base)
    }
}

/// Returns the base socket, which the driver knows, of a socket that may be layered.
fn base_of(socket: SOCKET) -> io::Result<SOCKET> {
    let mut base: SOCKET = 0;
    let mut count = 0;
    let into = (&raw mut base).cast();
    let size = size_of::<SOCKET>() as u32;
    // SAFETY: any number may be asked about; `base` has the size that the argument states.
    let answer =
        unsafe { WSAIoctl(socket, SIO_BASE_HANDLE, null(), 0, into, size, &mut count, null_mut(), None) };
    if answer != 0 {
        // SAFETY: the call has no preconditions.
        return Err(io::Error::from_raw_os_error(unsafe { WSAGetLastError() }));
    }
    Ok(base)
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.packet.suppress();
        if self.packet.is_in_flight() {
            self.packet.cancel(&self.afd.device);
        }
    }
}
