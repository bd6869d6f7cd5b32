//! Placeholders: their spellings, what they read from a job, and how they transform it.

pub(crate) mod intern;
pub(crate) mod path;
pub(crate) mod transform;
pub(crate) mod expression;
pub(crate) mod set;
pub(crate) mod site;
