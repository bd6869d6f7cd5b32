//! The table of backends, best first.

use std::io;
use std::sync::Arc;

use super::Backend;

/// A function that opens one backend.
type Open = fn() -> io::Result<Arc<dyn Backend>>;

/// The backends of this operating system, best first: name and opener.
pub(crate) const BACKENDS: &[(&str, Open)] = &[
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("epoll", || Ok(Arc::new(super::epoll::Epoll::new()?))),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("io_uring", || Ok(Arc::new(super::io_uring::Uring::new()?))),
    #[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    ("kqueue", || Ok(Arc::new(super::kqueue::Kqueue::new()?))),
    #[cfg(unix)]
    ("poll", || Ok(Arc::new(super::poll::Poll::new()?))),
    #[cfg(windows)]
    (super::windows::iocp::NAME, || Ok(Arc::new(super::windows::iocp::Iocp))),
    #[cfg(windows)]
    (super::windows::wait_pool::NAME, || Ok(Arc::new(super::windows::wait_pool::WaitPool::default()))),
    #[cfg(windows)]
    (super::windows::thread_pool::NAME, || Ok(Arc::new(super::windows::thread_pool::ThreadPool))),
    #[cfg(windows)]
    (super::windows::wait_packets::NAME, || Ok(Arc::new(super::windows::wait_packets::WaitPackets::open()?))),
];

/// Opens the backend of this name, or the best one.
pub(crate) fn open(name: Option<&str>) -> io::Result<Arc<dyn Backend>> {
    let found = BACKENDS.iter().find(|(known, _)| name.is_none_or(|name| name == *known));
    match found {
        Some((_, open)) => open(),
        None => Err(io::ErrorKind::Unsupported.into()),
    }
}
