//! The version of the running Linux kernel.

use std::fs;

/// Returns the first two numbers of the kernel's release, such as `(6, 18)`.
pub(super) fn kernel_version() -> Option<(u32, u32)> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
