//! Trials of packages for systems: installed, used, upgraded and removed as a user would.

mod machine;
pub(super) mod debian;
pub(super) mod rpm;
pub(super) mod recipes;
