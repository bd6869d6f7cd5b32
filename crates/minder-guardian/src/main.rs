//! The program of a guardian. The library starts it; `minder::guard::Guardian` describes it.

use std::process::ExitCode;

fn main() -> ExitCode {
    minder::guard::Guardian::run_program()
}
