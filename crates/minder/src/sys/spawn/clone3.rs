//! The system call `clone3`, which the C library does not offer. The child begins on another stack, so
//! each architecture needs its own instructions.

#![expect(unsafe_code, reason = "a system call that returns on another stack")]

use std::ffi::c_void;

/// The structure that the kernel reads: `struct clone_args` of Linux 5.7. An older kernel accepts it if
/// the members that it does not know are zero, and returns E2BIG otherwise.
#[repr(C)]
#[derive(Default)]
pub(super) struct CloneArgs {
    pub(super) flags: u64,
    pub(super) pidfd: u64,
    pub(super) child_tid: u64,
    pub(super) parent_tid: u64,
    pub(super) exit_signal: u64,
    pub(super) stack: u64,
    pub(super) stack_size: u64,
    pub(super) tls: u64,
    pub(super) set_tid: u64,
    pub(super) set_tid_size: u64,
    /// The descriptor of the directory of a cgroup, for `CLONE_INTO_CGROUP`.
    pub(super) cgroup: u64,
}

/// Makes the system call. In the parent it returns the child's pid or a negative error number. The
/// child calls `entry(context)`.
///
/// # Safety
/// `args` names a stack that is free, and `entry` never returns.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn clone3(
    args: &CloneArgs,
    entry: unsafe extern "C" fn(*mut c_void) -> !,
    context: *mut c_void,
) -> isize {
    let result: isize;
    // SAFETY: the child starts after `syscall`, on the stack that `args` names. Its registers are as
    // they are here, except rax, rcx, r11 and the stack pointer. The top of the stack is page-aligned,
    // and `call` then aligns it as the ABI requires.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") args,
            in("rsi") size_of::<CloneArgs>(),
            in("r12") context,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// See above.
///
/// # Safety
/// `args` names a stack that is free, and `entry` never returns.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn clone3(
    args: &CloneArgs,
    entry: unsafe extern "C" fn(*mut c_void) -> !,
    context: *mut c_void,
) -> isize {
    let result: isize;
    // SAFETY: the child starts after `svc`, on the stack that `args` names, whose top is page-aligned.
    // Its registers are as they are here, except x0 and the stack pointer.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            inlateout("x0") std::ptr::from_ref(args) as isize => result,
            in("x1") size_of::<CloneArgs>(),
            in("x8") libc::SYS_clone3,
            in("x20") context,
            in("x21") entry,
            lateout("x30") _,
        );
    }
    result
}

/// Refuses, as a kernel without the call does.
///
/// # Safety
/// None is needed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) unsafe fn clone3(
    _args: &CloneArgs,
    _entry: unsafe extern "C" fn(*mut c_void) -> !,
    _context: *mut c_void,
) -> isize {
    -(libc::ENOSYS as isize)
}
