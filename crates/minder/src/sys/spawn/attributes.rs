//! The limits, the umask, the groups and the user of a child, which sets them itself.

#![expect(unsafe_code, reason = "system calls of a child that shares our memory")]

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::SpawnStep;
use crate::process_attributes::{AttributeStep, ProcessAttributes, Resource, ResourceLimit};

// The calls with ids of 32 bits, where the others have 16.
#[cfg(not(any(target_arch = "arm", target_arch = "x86")))]
use libc::{
    SYS_getuid as SYS_GETUID, SYS_setgid as SYS_SETGID, SYS_setgroups as SYS_SETGROUPS,
    SYS_setuid as SYS_SETUID,
};
#[cfg(any(target_arch = "arm", target_arch = "x86"))]
use libc::{
    SYS_getuid32 as SYS_GETUID, SYS_setgid32 as SYS_SETGID, SYS_setgroups32 as SYS_SETGROUPS,
    SYS_setuid32 as SYS_SETUID,
};

/// Sets the attributes of this process, the child, and leaves in `step` what it does. The order is that of
/// the standard library.
///
/// The functions of the C library would set the ids of all threads that it knows: those of the parent.
pub(super) fn apply(attributes: &ProcessAttributes, step: &mut SpawnStep) -> Result<(), i32> {
    let ProcessAttributes { limits, umask, groups, gid, uid } = attributes;
    for limit in limits {
        *step = SpawnStep::Attribute(AttributeStep::Limit(limit.resource));
        set_limit(limit)?;
    }
    if let Some(mask) = umask {
        // SAFETY: a number. The child has its own mask, without CLONE_FS.
        unsafe { libc::umask(*mask as libc::mode_t) };
    }
    // SAFETY: no arguments.
    let drops_groups = groups.is_none() && uid.is_some() && unsafe { libc::syscall(SYS_GETUID) } == 0;
    let groups = if drops_groups { Some(&[][..]) } else { groups.as_deref() };
    if let Some(groups) = groups {
        *step = SpawnStep::Attribute(AttributeStep::Groups);
        // SAFETY: the list belongs to the waiting parent.
        check(unsafe { libc::syscall(SYS_SETGROUPS, groups.len(), groups.as_ptr()) })?;
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

/// Keeps this process as readable as it was, while a child with another user or group starts.
///
/// The kernel forbids others to trace or to read a process that changes its ids (`dumpable` in prctl(2)).
/// That is a property of the memory, which is ours as well: it has to stay until the child has left it, and
/// would stay for ever. One thread at a time starts such a child, so that none allows it too early.
#[derive(Debug)]
pub(super) struct DumpableGuard {
    was_dumpable: bool,
    _alone: MutexGuard<'static, ()>,
}

impl DumpableGuard {
    /// Returns a guard if the attributes change the user or the group.
    pub(super) fn new(attributes: &ProcessAttributes) -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        if attributes.uid.is_none() && attributes.gid.is_none() {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: numbers only.
        let was_dumpable = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) } == 1;
        Some(Self { was_dumpable, _alone: alone })
    }
}

impl Drop for DumpableGuard {
    fn drop(&mut self) {
        if self.was_dumpable {
            // SAFETY: numbers only.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
        }
    }
}
