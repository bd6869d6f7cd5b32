//! Shell lines for POSIX shells. The values are positional parameters.

pub(crate) mod names;
pub(crate) mod variables;
pub(crate) mod builtins;
pub(crate) mod flow;
pub(crate) mod scanner;
pub(crate) mod scan;
pub(crate) mod shell_text;
pub(crate) mod arithmetic;
pub(crate) mod expansion;
pub(crate) mod line;
pub(crate) mod redirection;
pub(crate) mod simple_command;
pub(crate) mod compound;
pub(crate) mod commands;
