//! Spawning on Windows: `CreateProcessW` into a job object, with a list of the only handles that
//! are inherited.
//!
//! A child shares our console. Where we have none it gets one that nobody sees. The operating system is
//! always told the absolute path of what it is to start, never left to search, and never handed a
//! batch file: that is run by the `cmd.exe` of the operating system's directory, on a line that this reads as we
//! mean it.
//!
//! What is on the list has to be inheritable from its making to the child's start. Our own children
//! never take what is not on their list; one that other code of the host starts in this moment,
//! without a list, does, and then holds a pipe open.

mod command_line;
mod process;
mod search;
mod process_params;
mod spawner;
mod working_dir;

pub(crate) use self::command_line::CommandLineLimit;
pub(crate) use self::spawner::{NO_FILE, NO_PROGRAM, Spawner, is_no_program};
