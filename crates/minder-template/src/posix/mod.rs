//! Shell lines for POSIX shells. The values are positional parameters.

pub(crate) mod arithmetic;
pub(crate) mod builtins;
pub(crate) mod commands;
pub(crate) mod compound;
pub(crate) mod expansion;
pub(crate) mod flow;
pub(crate) mod line;
pub(crate) mod names;
pub(crate) mod redirection;
pub(crate) mod scan;
pub(crate) mod scanner;
pub(crate) mod shell_text;
pub(crate) mod simple_command;
pub(crate) mod variables;
