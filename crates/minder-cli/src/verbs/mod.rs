//! One file a verb.

pub(crate) mod doctor;
pub(crate) mod log;
pub(crate) mod run;
pub(crate) mod sem;
