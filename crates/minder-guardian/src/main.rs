//! The program of a guardian. The library starts it; `minder::Guardian` describes it.

use std::process::ExitCode;

fn main() -> ExitCode {
    minder::Guardian::run_program()
}
