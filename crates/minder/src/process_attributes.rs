//! The attributes that a child changes of itself before it executes its program: limits, umask,
//! groups and user. The cgroup is among them.

use std::fs::File;
use std::sync::Arc;

/// A resource that a process may use up to a limit: see [`Command::limit`](crate::Command::limit) and
/// setrlimit(2).
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use minder::{Command, Resource};
///
/// let mut command = Command::new("sh");
/// command.args(["-c", "ulimit -c; ulimit -n"]);
/// command.limit(Resource::CoreSize, Some(0), Some(0)).limit(Resource::OpenFiles, Some(30), Some(40));
/// assert_eq!(command.output()?.stdout, b"0\n30\n");
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// The address space of a process, in bytes: `RLIMIT_AS`.
    AddressSpace,
    /// The size of a core dump, in bytes: `RLIMIT_CORE`.
    CoreSize,
    /// The processor time of a process, in seconds: `RLIMIT_CPU`.
    CpuTime,
    /// The data segment of a process, in bytes: `RLIMIT_DATA`.
    Data,
    /// The size of a file that a process writes, in bytes: `RLIMIT_FSIZE`.
    FileSize,
    /// The memory that a process may lock, in bytes: `RLIMIT_MEMLOCK`.
    LockedMemory,
    /// One more than the highest descriptor of a process: `RLIMIT_NOFILE`.
    OpenFiles,
    /// The processes and threads of the user: `RLIMIT_NPROC`.
    Processes,
    /// The stack of the first thread of a process, in bytes: `RLIMIT_STACK`.
    Stack,
}

impl Resource {
    /// Returns the name for errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AddressSpace => "address space",
            Self::CoreSize => "core size",
            Self::CpuTime => "processor time",
            Self::Data => "data",
            Self::FileSize => "file size",
            Self::LockedMemory => "locked memory",
            Self::OpenFiles => "open files",
            Self::Processes => "processes",
            Self::Stack => "stack",
        }
    }
}

/// The attributes that a command sets. Few commands set any.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessAttributes {
    pub(crate) limits: Vec<ResourceLimit>,
    pub(crate) umask: Option<u32>,
    pub(crate) groups: Option<Vec<u32>>,
    pub(crate) gid: Option<u32>,
    pub(crate) uid: Option<u32>,
    /// The directory of the cgroup in which the child starts.
    pub(crate) cgroup: Option<Arc<File>>,
}

/// The limits of one resource. `None` means unlimited.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "only Linux sets them")]
pub(crate) struct ResourceLimit {
    pub(crate) resource: Resource,
    pub(crate) soft: Option<u64>,
    pub(crate) hard: Option<u64>,
}

/// Setting one of the attributes, which may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeStep {
    Limit(Resource),
    Umask,
    Groups,
    Gid,
    Uid,
    Cgroup,
}

impl ProcessAttributes {
    /// Returns the first step. `None` if there is none.
    #[allow(dead_code, reason = "other systems than Linux refuse it")]
    pub(crate) fn first_step(&self) -> Option<AttributeStep> {
        let limit = self.limits.first().map(|limit| AttributeStep::Limit(limit.resource));
        limit
            .or(self.umask.map(|_| AttributeStep::Umask))
            .or(self.groups.as_ref().map(|_| AttributeStep::Groups))
            .or(self.gid.map(|_| AttributeStep::Gid))
            .or(self.uid.map(|_| AttributeStep::Uid))
            .or(self.cgroup.as_ref().map(|_| AttributeStep::Cgroup))
    }
}
