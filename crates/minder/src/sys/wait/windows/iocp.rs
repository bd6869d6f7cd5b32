//! The backend `iocp`: a registered wait, whose callback only posts to the port.
//!
//! The registration covers one signal, which is enough for the exit of a child. Another signal
//! would need another registration, so other handles use the waits of the thread pool, which can be
//! armed again.
//!
//! The operating system waits: since Windows 8 by its own completion port, for any number of
//! handles; before, and under Wine, by one thread for each 63 handles. (Raymond Chen, "The thread
//! pool wait uses a completion port", devblogs.microsoft.com, 6 April 2022.)

#![expect(unsafe_code, reason = "registered waits")]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use windows_sys::Win32::System::Threading::{
    INFINITE, RegisterWaitForSingleObject, UnregisterWaitEx, WT_EXECUTEINWAITTHREAD, WT_EXECUTEONLYONCE,
};

use super::callback::Callback;
use super::deferred_close::close;
use super::thread_pool::ThreadPool;
use super::{CompletionPort, Operation, WaitBackend, Watched};
use crate::backend::Backend;

/// The backend. The operating system keeps all state.
#[derive(Debug)]
pub(in crate::sys::wait) struct Iocp;

impl WaitBackend for Iocp {
    fn kind(&self) -> Backend {
        Backend::Iocp
    }

    fn watch(
        &self,
        port: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        ThreadPool.watch(port, handle, packet)
    }

    fn watch_once(
        &self,
        port: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        let port = Arc::clone(port);
        let callback = Callback::new(move || port.post_soon(&packet));
        Ok(Box::new(Registered { wait: AtomicPtr::new(null_mut()), handle, callback }))
    }
}

/// One handle, with the registered wait for it if there is one.
#[derive(Debug)]
struct Registered {
    /// The operating system's wait object.
    wait: AtomicPtr<c_void>,
    handle: Arc<OwnedHandle>,
    callback: Callback,
}

impl Watched for Registered {
    fn arm(&mut self) -> io::Result<()> {
        self.unregister();
        let mut wait = null_mut();
        let handle = self.handle.as_raw_handle();
        let context = self.callback.context();
        let flags = WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD;
        // SAFETY: the handle is open until the wait is unregistered; `signalled` follows no pointer.
        let answer = unsafe {
            RegisterWaitForSingleObject(&mut wait, handle, Some(signalled), context, INFINITE, flags)
        };
        if answer == 0 {
            return Err(io::Error::last_os_error());
        }
        *self.wait.get_mut() = wait;
        self.callback.count_wait();
        Ok(())
    }
}

impl Registered {
    /// Unregisters the wait, if there is one. Does not wait for a callback that is already running.
    fn unregister(&mut self) {
        let wait = std::mem::replace(self.wait.get_mut(), null_mut());
        if !wait.is_null() {
            // SAFETY: `arm` registered it, and it is unregistered once.
            unsafe { UnregisterWaitEx(wait, null_mut()) };
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.unregister();
        if self.callback.is_pending() {
            close(Arc::clone(&self.handle));
        }
    }
}

/// Runs on a thread of the operating system.
unsafe extern "system" fn signalled(context: *mut c_void, _timed_out: bool) {
    Callback::run(context);
}
