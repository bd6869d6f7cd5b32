//! The tokens that a killed process owes to its build.

#[cfg(target_os = "linux")]
pub(crate) use super::held::Debt;

/// The tokens that a killed process owes. It has no values: this system has no guardian process that
/// could return them.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) enum Debt {}
