//! The project's own chores, behind one door: `cargo xtask VERB`.
//!
//! It depends on none of our crates, so it builds, and can say what is wrong, while they do not.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who started it")]

mod tree;
mod run;
mod install;
mod test;
mod tidy;
mod debian;
mod targets;
mod wine;
mod bench;
mod bare;
mod surroundings;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask VERB

  test [--list] [--only STEP]...   everything that CI checks; what is missing is installed or said to be skipped
  tidy                             checks the rules about the tree: import order, cfg, unsafe, file heads, manifests
  tidy --cycles                    prints the import cycles, and the imports that cause them
  tidy --hits DIRECTORY            prints the words, idioms and wide lines that xtask/allowances.txt counts
  tidy --lower                     lowers xtask/allowances.txt to the present counts
  tidy --order CRATE               prints the import order of a crate for xtask/layers, fitted to the present imports
  bare [--keep] [--again] [--only run|STEP]...     both commands of the README on a pristine Debian with a Rust toolchain alone;
                                   --keep: the machine stays in target/bare; --again: the one that stayed is used
  surroundings [--list] [--only NAME]... [--times N] [-- TEST...]   the tests of Linux under load, as another user, in other
                                   locales, folders, terminals …: each twice, and a table of what passed
  targets [--list] [NAME]...       compile-checks the other systems
  wine [--full]                    builds all tests for Windows and runs them under Wine; --full: those of thousands of children, too
  wine CARGO ARGUMENTS...          any cargo command, built for Windows and run under Wine
  bench run [--rounds N] [--quick] [--only NAME]   measures `minder run` beside its peers
  bench output [--rounds N] [--quick] [--only NAME]   the same for what it costs to see output, every byte checked
  bench wait|exit|spawn [--rounds N] [--quick] [--only NAME]   `minder bench` beside other programs, with goals and charts
  bench wine [--rounds N] [--quick] [--only NAME]   `minder bench` under Wine, in ratios: not times of Windows
  bench backends                   writes the costs in docs/backends.md anew, from the rows in docs/measurements
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let done = match args.first().map(String::as_str) {
        Some("test") => test::main(rest),
        Some("tidy") => tidy::main(rest),
        Some("targets") => targets::main(rest),
        Some("wine") => wine::main(rest),
        Some("bare") => bare::main(rest),
        Some("surroundings") => surroundings::main(rest),
        Some("bench") => bench::main(rest),
        Some("help" | "-h" | "--help") => {
            print!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("xtask: {e:#}");
            ExitCode::FAILURE
        }
    }
}
