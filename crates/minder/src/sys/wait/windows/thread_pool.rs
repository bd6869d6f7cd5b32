//! The backend `thread_pool`: waits of the operating system's thread pool, whose callbacks only post to the
//! port.
//!
//! Since Windows 8 the pool waits for any number of handles by one completion port; Wine uses a
//! thread for each 63 handles. Unlike a registered wait, a wait of the pool can be armed again. But
//! its callback runs on a worker of the pool that the whole process shares, and is late when other
//! code keeps all workers busy.

#![expect(unsafe_code, reason = "waits of the thread pool")]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use windows_sys::Win32::System::Threading::{
    CloseThreadpoolWait, CreateThreadpoolWait, PTP_CALLBACK_INSTANCE, PTP_WAIT, SetThreadpoolWait,
};

use super::callback::Callback;
use super::deferred_close::close;
use super::{CompletionPort, Operation, WaitBackend, Watched};
use crate::backend::Backend;

/// The backend. The operating system keeps all state.
#[derive(Debug)]
pub(in crate::sys::wait) struct ThreadPool;

impl WaitBackend for ThreadPool {
    fn kind(&self) -> Backend {
        Backend::ThreadPool
    }

    fn watch(
        &self,
        port: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        let port = Arc::clone(port);
        let callback = Callback::new(move || port.post_soon(&packet));
        // SAFETY: `signalled` follows no pointer; no environment means the pool of the process.
        let wait = unsafe { CreateThreadpoolWait(Some(signalled), callback.context(), null()) };
        if wait == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Box::new(PoolWait { wait, handle, callback }))
    }
}

/// One wait object of the pool.
#[derive(Debug)]
struct PoolWait {
    wait: PTP_WAIT,
    handle: Arc<OwnedHandle>,
    callback: Callback,
}

impl Watched for PoolWait {
    fn arm(&mut self) -> io::Result<()> {
        // SAFETY: the wait object is open; the handle stays open until `drop` has removed it. No
        // time-out.
        unsafe { SetThreadpoolWait(self.wait, self.handle.as_raw_handle(), null()) };
        self.callback.count_wait();
        Ok(())
    }
}

impl Drop for PoolWait {
    fn drop(&mut self) {
        // SAFETY: the wait object is open; it waits for nothing from here on.
        unsafe { SetThreadpoolWait(self.wait, null_mut(), null()) };
        // SAFETY: it is closed once; the operating system frees it when its last callback has
        // returned.
        unsafe { CloseThreadpoolWait(self.wait) };
        if self.callback.is_pending() {
            close(Arc::clone(&self.handle));
        }
    }
}

/// Runs on a worker of the pool, once for each `arm`.
unsafe extern "system" fn signalled(
    _instance: PTP_CALLBACK_INSTANCE,
    context: *mut c_void,
    _wait: PTP_WAIT,
    _result: u32,
) {
    Callback::run(context);
}
