//! The backend `wait_packets`: the kernel itself queues a packet when a handle is signalled.
//!
//! Windows 8 and later have it in `ntdll`, undocumented; newer language runtimes use it. It is
//! looked up at run time, is used only by name, and was never run: Wine does not have it.

#![expect(unsafe_code, reason = "three calls of ntdll that are not declared anywhere")]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{GENERIC_ALL, HANDLE, NTSTATUS, RtlNtStatusToDosError};

use super::{CompletionPort, Operation, WaitBackend, Watched};
use crate::backend::Backend;
use crate::sys::dynlib;

type Create = unsafe extern "system" fn(*mut HANDLE, u32, *const c_void) -> NTSTATUS;
type Associate = unsafe extern "system" fn(
    HANDLE,
    HANDLE,
    HANDLE,
    *mut c_void,
    *mut c_void,
    NTSTATUS,
    usize,
    *mut u8,
) -> NTSTATUS;
type Cancel = unsafe extern "system" fn(HANDLE, u8) -> NTSTATUS;

/// The backend: the three functions.
#[derive(Clone, Copy, Debug)]
pub(in crate::sys::wait) struct WaitPackets {
    create: Create,
    associate: Associate,
    cancel: Cancel,
}

impl WaitPackets {
    /// # Errors
    /// `Unsupported` where the operating system does not have it.
    pub(in crate::sys::wait) fn open() -> io::Result<Self> {
        let find = |name| dynlib::find(dynlib::NTDLL, name).ok_or(io::ErrorKind::Unsupported);
        let create = find(c"NtCreateWaitCompletionPacket")?;
        let associate = find(c"NtAssociateWaitCompletionPacket")?;
        let cancel = find(c"NtCancelWaitCompletionPacket")?;
        Ok(Self {
            // SAFETY: the function of this name has this form (as other programs declare it).
            create: unsafe { std::mem::transmute::<dynlib::DynamicFunction, Create>(create) },
            // SAFETY: as above.
            associate: unsafe { std::mem::transmute::<dynlib::DynamicFunction, Associate>(associate) },
            // SAFETY: as above.
            cancel: unsafe { std::mem::transmute::<dynlib::DynamicFunction, Cancel>(cancel) },
        })
    }
}

impl WaitBackend for WaitPackets {
    fn kind(&self) -> Backend {
        Backend::WaitPackets
    }

    fn watch(
        &self,
        port: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        let mut raw = null_mut();
        // SAFETY: `raw` outlives the call; no attributes.
        check(unsafe { (self.create)(&mut raw, GENERIC_ALL, null()) })?;
        // SAFETY: the call above created the handle, and nothing else owns it.
        let wait = unsafe { OwnedHandle::from_raw_handle(raw) };
        Ok(Box::new(PacketWait { calls: *self, wait, handle, packet, port: Arc::clone(port) }))
    }
}

/// A wait completion packet, an object of the kernel.
#[derive(Debug)]
struct PacketWait {
    calls: WaitPackets,
    wait: OwnedHandle,
    handle: Arc<OwnedHandle>,
    packet: Arc<Operation>,
    port: Arc<CompletionPort>,
}

impl Watched for PacketWait {
    fn arm(&mut self) -> io::Result<()> {
        let wait = self.wait.as_raw_handle();
        let handle = self.handle.as_raw_handle();
        let associate = self.calls.associate;
        self.port.lend_packet(&self.packet, |port, key, overlapped| {
            let key = std::ptr::without_provenance_mut(key);
            // SAFETY: all three handles are open. The kernel queues `overlapped` once, as `lend_packet`
            // requires.
            check(unsafe { associate(wait, port, handle, key, overlapped.cast(), 0, 0, null_mut()) })
        })
    }
}

impl Drop for PacketWait {
    fn drop(&mut self) {
        if !self.packet.is_in_flight() {
            return;
        }
        // A packet that is queued already stays in the port and completes.
        // SAFETY: the object is open.
        if unsafe { (self.calls.cancel)(self.wait.as_raw_handle(), 0) } == 0 {
            self.port.return_packet(&self.packet);
        }
    }
}

fn check(status: NTSTATUS) -> io::Result<()> {
    if status >= 0 {
        return Ok(());
    }
    // SAFETY: it takes any number.
    let code = unsafe { RtlNtStatusToDosError(status) };
    Err(io::Error::from_raw_os_error(code.cast_signed()))
}
