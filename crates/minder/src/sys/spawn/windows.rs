//! Spawning on Windows: `CreateProcessW` into a job object, with an explicit list of inherited
//! handles.
//!
//! A child shares the console of this process. If there is none, it gets a hidden one.
//! `CreateProcessW` always gets the absolute path of the program, so it never searches. It never
//! gets a batch file: the `cmd.exe` of the system directory runs that, on a command line that
//! preserves every argument.
//!
//! A handle on the list has to be inheritable from its creation to the child's start. Children of
//! this library inherit only what is on their list. If other code of the host starts a process in
//! this moment without a list, that process inherits the handle as well and holds a pipe open.

mod search;
mod working_dir;
mod process_params;
mod process;
mod spawner;
mod command_line;

pub(crate) use self::command_line::CommandLineLimit;
pub(crate) use self::spawner::{NO_FILE, NO_PROGRAM, Spawner, is_no_program, start_guardian};
