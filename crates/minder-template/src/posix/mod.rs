//! Shell lines for POSIX shells: values enter them as positional parameters.

pub(crate) mod builtins;
pub(crate) mod compound;
pub(crate) mod expansion;
pub(crate) mod flow;
pub(crate) mod line;
pub(crate) mod names;
pub(crate) mod redirection;
pub(crate) mod scan;
pub(crate) mod variables;
