//! The subcommands: one file or directory each.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod flag_help;
pub(crate) mod help;
pub(crate) mod candidates;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod relay;
pub(crate) mod run;
pub(crate) mod sem;
pub(crate) mod uninstall;
pub(crate) mod xargs;
pub(crate) mod advise;
pub(crate) mod status;
pub(crate) mod cancel;
