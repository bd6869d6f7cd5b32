//! The limits, the umask, the groups and the user of a child, which sets them itself.

#![expect(unsafe_code, reason = "system calls of a child that shares our memory")]

use std::io;

use super::SpawnStep;
use crate::process_attributes::{AttributeStep, ProcessAttributes, Resource, ResourceLimit};

// The calls with ids of 32 bits, where the others have 16.
use libc::{SYS_setgid as SYS_SETGID, SYS_setgroups as SYS_SETGROUPS, SYS_setuid as SYS_SETUID};
#[cfg(any(target_arch = "arm", target_arch = "x86"))]
use libc::{SYS_setgid32 as SYS_SETGID, SYS_setgroups32 as SYS_SETGROUPS, SYS_setuid32 as SYS_SETUID};
#[cfg(not(any(target_arch = "arm", target_arch = "x86")))]
use minder_os::sync::Mutex;

/// Sets the attributes of this process, the child, and leaves in `step` what it does. The order is that of
/// the standard library.
///
/// The functions of the C library would set the ids of all threads that it knows: those of the parent.
pub(super) fn apply(attributes: &ProcessAttributes, step: &mut SpawnStep) -> Result<(), i32> {
    // The child is in its cgroup already.
    let ProcessAttributes { limits, umask, groups, gid, uid, cgroup: _ } = attributes;
    for limit in limits {
        *step = SpawnStep::Attribute(AttributeStep::Limit(limit.resource));
        set_limit(limit)?;
    }
    if let Some(mask) = umask {
        // SAFETY: a number. The child has its own mask, without CLONE_FS.
        unsafe { libc::umask(*mask as libc::mode_t) };
    }
    if groups.is_some() || uid.is_some() {
        *step = SpawnStep::Attribute(AttributeStep::Groups);
        let list = groups.as_deref().unwrap_or_default();
        // SAFETY: the list belongs to the waiting parent.
        match check(unsafe { libc::syscall(SYS_SETGROUPS, list.len(), list.as_ptr()) }) {
            // Without the privilege for it, the groups stay that nothing was said about.
            Err(libc::EPERM) if groups.is_none() => (),
            result => result?,
        }
    }
    if let Some(gid) = gid {
        *step = SpawnStep::Attribute(AttributeStep::Gid);
        // SAFETY: a number.
        check(unsafe { libc::syscall(SYS_SETGID, *gid) })?;
    }
    if let Some(uid) = uid {
        *step = SpawnStep::Attribute(AttributeStep::Uid);
        // SAFETY: a number.
        check(unsafe { libc::syscall(SYS_SETUID, *uid) })?;
    }
    Ok(())
}

fn set_limit(limit: &ResourceLimit) -> Result<(), i32> {
    let resource = match limit.resource {
        Resource::AddressSpace => libc::RLIMIT_AS,
        Resource::CoreSize => libc::RLIMIT_CORE,
        Resource::CpuTime => libc::RLIMIT_CPU,
        Resource::Data => libc::RLIMIT_DATA,
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
        Resource::Processes => libc::RLIMIT_NPROC,
        Resource::Stack => libc::RLIMIT_STACK,
    };
    let value = |limit: Option<u64>| limit.unwrap_or(libc::RLIM64_INFINITY);
    let limit = libc::rlimit64 { rlim_cur: value(limit.soft), rlim_max: value(limit.hard) };
    // SAFETY: the kernel reads `limit`, and writes nothing. The call concerns this process only.
    check(unsafe { libc::prlimit64(0, resource, &limit, std::ptr::null_mut()) }.into())
}

fn check(result: libc::c_long) -> Result<(), i32> {
    if result < 0 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(()) }
}

/// Keeps this process as readable as it was, while children with another user or group start.
///
/// The kernel forbids others to trace or to read a process that changes its ids (`dumpable` in prctl(2)).
/// That is a property of the memory, which is ours as well: it has to stay until the child has left it, and
/// would stay for ever. The last of several threads that start such children restores it.
#[derive(Debug)]
pub(super) struct DumpableGuard(());

/// The number of threads that start such a child, and `dumpable` of this process before the first.
static STARTING: Mutex<(usize, libc::c_int)> = Mutex::new((0, 0));

impl DumpableGuard {
    /// Returns a guard if the attributes change the user or the group.
    pub(super) fn new(attributes: &ProcessAttributes) -> Option<Self> {
        if attributes.uid.is_none() && attributes.gid.is_none() {
            return None;
        }
        let (count, was) = &mut *STARTING.lock();
        if *count == 0 {
            // SAFETY: numbers only.
            *was = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) };
        }
        *count += 1;
        Some(Self(()))
    }
}

impl Drop for DumpableGuard {
    fn drop(&mut self) {
        let (count, was) = &mut *STARTING.lock();
        *count -= 1;
        // The kernel takes no other values.
        if *count == 0 && matches!(*was, 0 | 1) {
            // SAFETY: numbers only.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, *was) };
        }
    }
}
