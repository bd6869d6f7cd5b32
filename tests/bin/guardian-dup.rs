//! The program `minder-guardian` again, so that the tests of this package can find it.

use std::process::ExitCode;

fn main() -> ExitCode {
    minder::guard::Guardian::run_program()
}
