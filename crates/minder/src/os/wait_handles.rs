//! Descriptors and handles of what can be waited for, for other event loops.

#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
#[cfg(windows)]
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, RawHandle};

use crate::background::BackgroundSet;
use crate::child::Child;
use crate::shared_child::SharedChild;

/// The descriptor of [`poll_handle`](BackgroundSet::poll_handle).
#[cfg(unix)]
impl AsFd for BackgroundSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll_handle()
    }
}

/// The descriptor of [`poll_handle`](BackgroundSet::poll_handle).
#[cfg(unix)]
impl AsRawFd for BackgroundSet {
    fn as_raw_fd(&self) -> RawFd {
        self.poll_handle().as_raw_fd()
    }
}

/// The handle of [`poll_handle`](BackgroundSet::poll_handle).
#[cfg(windows)]
impl AsHandle for BackgroundSet {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.poll_handle()
    }
}

/// The handle of [`poll_handle`](BackgroundSet::poll_handle).
#[cfg(windows)]
impl AsRawHandle for BackgroundSet {
    fn as_raw_handle(&self) -> RawHandle {
        self.poll_handle().as_raw_handle()
    }
}

#[cfg(unix)]
impl Child {
    /// Returns the pidfd of the child: a descriptor that is readable from the child's exit on, for
    /// another event loop (pidfd_open(2)). `None` where the operating system has no pidfds.
    ///
    /// - Linux from 5.4 on, unless a sandbox forbids it.
    /// - Other Unix: `None`.
    /// - Windows: a child implements `AsHandle` instead.
    ///
    /// ```
    /// use minder::Command;
    /// use minder::poll::{Events, Interest, Poller, Token};
    /// let mut child = Command::new("true").spawn()?;
    /// if let Some(pidfd) = child.pidfd() {
    ///     // In place of another event loop.
    ///     let poller = Poller::new()?;
    ///     poller.add(&pidfd, Token(0), Interest::READABLE)?;
    ///     assert_eq!(poller.wait(&mut Events::new(), None)?, 1);
    /// }
    /// assert!(child.wait()?.status.success());
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.process().pidfd()
    }
}

#[cfg(unix)]
impl SharedChild {
    /// Returns a descriptor that is readable from the child's exit on: see [`Child::pidfd`].
    ///
    /// ```
    /// use minder::Command;
    /// use minder::poll::{Interest, Poller, Token};
    ///
    /// let child = Command::new("true").spawn()?.into_shared()?;
    /// if let Some(pidfd) = child.pidfd() {
    ///     let poller = Poller::new()?;
    ///     let _registration = poller.register(&pidfd, Token(0), Interest::READABLE)?;
    ///     assert_eq!(poller.wait(&mut minder::poll::Events::new(), None)?, 1);
    /// }
    /// assert!(child.wait()?.status.success());
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.exit_watch().pidfd()
    }
}

/// The handle of the process, which is signalled from its exit on.
#[cfg(windows)]
impl AsHandle for Child {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.process().handle()
    }
}

/// The handle of the process, which is signalled from its exit on.
#[cfg(windows)]
impl AsRawHandle for Child {
    fn as_raw_handle(&self) -> RawHandle {
        self.process().handle().as_raw_handle()
    }
}

/// The handle of the process, which is signalled from its exit on.
#[cfg(windows)]
impl AsHandle for SharedChild {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.exit_watch().handle()
    }
}

/// The handle of the process, which is signalled from its exit on.
#[cfg(windows)]
impl AsRawHandle for SharedChild {
    fn as_raw_handle(&self) -> RawHandle {
        self.exit_watch().handle().as_raw_handle()
    }
}
