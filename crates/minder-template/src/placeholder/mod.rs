//! Placeholders: the texts that stand for them, what they take of a value, and how they change it.

pub(crate) mod expression;
pub(crate) mod intern;
pub(crate) mod path;
pub(crate) mod set;
pub(crate) mod site;
pub(crate) mod transform;
