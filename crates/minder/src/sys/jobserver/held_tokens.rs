//! The tokens that another process releases if this one is killed.

#[cfg(target_os = "linux")]
pub(crate) use super::token_record::HeldTokens;

/// The tokens that another process releases if this one is killed. It has no values: this system has no
/// guardian process.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) enum HeldTokens {}
