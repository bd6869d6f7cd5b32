//! The parts that differ between operating systems: pipes, and reports of the exit of a child.
//!
//! | | Unix | Windows |
//! | --- | --- | --- |
//! | `Reader`, `Writer` | a descriptor that tokio watches | a file for the threads of the runtime |
//! | `ExitDescriptor` | the pidfd (Linux) | none: the exit is polled |

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::{ExitDescriptor, Reader, Writer};
#[cfg(windows)]
pub(crate) use self::windows::{ExitDescriptor, Reader, Writer};
