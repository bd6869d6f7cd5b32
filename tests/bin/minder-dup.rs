//! The command again, so that the tests of this package can find it.

use std::process::ExitCode;

fn main() -> ExitCode {
    minder_cli::main(std::env::args_os())
}
