//! The table of backends, best first.

use std::io;
use std::sync::Arc;

use super::WaitBackend;
use crate::backend::Backend;

/// A function that opens one backend.
type Open = fn() -> io::Result<Arc<dyn WaitBackend>>;

/// The backends of this operating system, best first.
pub(crate) const BACKENDS: &[(Backend, Open)] = &[
    #[cfg(any(target_os = "linux", target_os = "android"))]
    (Backend::Epoll, || Ok(Arc::new(super::epoll::Epoll::new()?))),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    (Backend::IoUring, || Ok(Arc::new(super::io_uring::Uring::new()?))),
    #[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    (Backend::Kqueue, || Ok(Arc::new(super::kqueue::Kqueue::new()?))),
    #[cfg(unix)]
    (Backend::Poll, || Ok(Arc::new(super::poll::Poll::new()?))),
    #[cfg(windows)]
    (Backend::Iocp, || Ok(Arc::new(super::windows::iocp::Iocp))),
    #[cfg(windows)]
    (Backend::WaitPool, || Ok(Arc::new(super::windows::wait_pool::WaitPool::default()))),
    #[cfg(windows)]
    (Backend::ThreadPool, || Ok(Arc::new(super::windows::thread_pool::ThreadPool))),
];

/// Opens a backend, or the best one that the kernel and the policy of the machine allow.
pub(crate) fn open(wanted: Option<Backend>) -> io::Result<Arc<dyn WaitBackend>> {
    let mut opened = Err(io::ErrorKind::Unsupported.into());
    for (_, open) in BACKENDS.iter().filter(|(backend, _)| wanted.is_none_or(|wanted| wanted == *backend)) {
        opened = open();
        let is_refused = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
        };
        if !opened.as_ref().is_err_and(is_refused) {
            break;
        }
    }
    opened
}
