//! The command `minder`. Everything is in the library of this package, so that tests can call it.

use std::process::ExitCode;

fn main() -> ExitCode {
    minder_cli::main(std::env::args_os())
}
