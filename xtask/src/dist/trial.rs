//! Trials of packages for systems: installed, used, upgraded and removed as a user would. The archive for
//! another processor is unpacked and used.

mod machine;
pub(super) mod debian;
pub(super) mod rpm;
pub(super) mod recipes;
pub(super) mod linux_arm;
