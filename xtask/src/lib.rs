//! The project's chores, as a library: `cargo xtask` is its program, and the benchmarks below `benches` find
//! files, run programs and install packages by it.
//!
//! xtask depends on no other crate of the project, so it builds while they do not.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore prints its results")]

pub mod tree;
mod part;
pub mod run;
mod artifacts;
pub mod install;
mod toolchain;
mod version;
mod test;
mod tidy;
mod debian;
mod targets;
pub mod wine;
mod api;
mod release;
mod bare;
mod c;
mod source_package;
pub mod ruby;
pub mod emacs;
mod python;
mod dist;
mod surroundings;
mod kernel;
mod cluster;
mod cost;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test [--all | --rest] [--only STEP]... [--full] [--sequential] | --list
      Checks the product on this system, in at most ten minutes. Installs what is missing, or lists it
      as skipped. --all: everything that CI checks; --rest: what --all adds; --only: the whole of a step;
      --full: every case, test and target; --sequential: one step after the other.
  tidy
      Checks the rules about the tree: import order, cycles, cfg, unsafe, words, idioms, manifests.
  tidy --cycles
      Prints the import cycles.
  api [--bless]
      Compares the public interface of the library with its list in crates/minder/api.
      --bless: writes the list.
  release-checks [--list] [NAME]...
      Checks before a release: dependencies, version, oldest Rust, documentation, packages. Takes
      minutes.
  version [VERSION]
      Prints the version. VERSION: writes it wherever the version stands, and gives what is unreleased in
      the changelog its heading.
  dist [--list | --twice | --try] [NAME]...
      Makes the files of a release from the last commit, in target/packages/files. --twice: makes them once
      more in another directory, and compares the bytes. --try: installs, uses and removes them.
  c
      Checks the C and C++ interface: header, symbols, samples, sanitizers, valgrind, installation.
  dist-c [--prefix DIR]
      Installs the library for C and C++ below DIR (/usr/local), or below $DESTDIR/DIR. With doxygen, the
      reference as HTML, too.
  c-header [--bless]
      Compares minder.h and minder_cells.h in bindings/c/include with the sources of the C interface.
      --bless: writes them.
  gem [--no-trial]
      Builds the gem for Ruby in target/ruby, with the Rust sources, and tries it in an empty directory.
  emacs [--no-trial | --suites [--rounds N]]
      Builds the module and the package for Emacs in target/emacs, and installs it in an empty directory.
      --suites: runs the tests of Emacs itself with processes of minder and with its own, by turns.
  python
      Tests the package for Python: the module, its types, and the wheel in an empty environment.
  bare [--all] [--keep] [--again] [--only run|STEP]...
      Runs both commands of the README on a pristine Debian with a Rust toolchain. --all: as CI, and so
      also `test --rest`; --keep: leaves the machine in target/bare/machine; --again: uses the machine
      that was left. A line for each machine is in target/bare/results.log.
  surroundings [--list] [--only NAME]... [--times N] [-- TEST...]
      Runs the tests of Linux under load, as another user, in other locales, directories and
      terminals, each twice, and prints how many passed.
  kernel [-- TEST...]
      Runs the tests that depend on the kernel on that of this Debian, in a virtual machine. TEST: runs
      the tests whose names contain one of these.
  cluster
      Runs the tests of runs on several machines, with those that take long: lost hosts, cut networks,
      directories that fail. Prints which of them could not run, and why.
  cost [--print]
      Counts system calls, instructions, memory and bytes of the release build, and compares them with
      tests/it/cost/budget.toml. --print: prints that file with the present counts.
  compare [BASE] [--rounds N] [--quick] [--only NAME]...
      Builds the commit BASE (the newest tag, or the last release) and this tree, and prints the ratios of
      what they cost per job, per start, in memory and in size.
  targets [--list] [NAME]...
      Compile-checks other systems.
  wine [--full]
      Builds all tests for Windows and runs them under Wine. --full: also those of thousands of
      children.
  wine CARGO ARGUMENTS...
      Runs any cargo command, built for Windows, under Wine.
";

/// Runs the chore that the command line names.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let done = match args.first().map(String::as_str) {
        Some("test") => test::main(rest),
        Some("tidy") => tidy::main(rest),
        Some("targets") => targets::main(rest),
        Some("wine") => wine::main(rest),
        Some("api") => api::main(rest),
        Some("release-checks") => release::main(rest),
        Some("version") => version::main(rest),
        Some("dist") => dist::main(rest),
        Some("bare") => match bare::main(rest) {
            Ok(code) => return code,
            Err(why) => Err(why),
        },
        Some("c") => c::main(rest),
        Some("dist-c") => c::install_tree::main(rest),
        Some("gem") => ruby::gem::main(rest),
        Some("emacs") => emacs::main(rest),
        Some("python") => python::main(rest),
        Some("c-header") => c::header::main(rest),
        Some("surroundings") => surroundings::main(rest),
        Some("kernel") => kernel::main(rest),
        Some("cluster") => cluster::main(rest),
        Some("cost") => cost::main(rest),
        // The benchmarks are other packages: see `cargo bench-lab help`.
        Some("compare") => run::run(run::cargo().args(["bench-lab", "compare"]).args(rest)),
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
            let hint = if e.is::<lexopt::Error>() { "; hint: cargo xtask help" } else { "" };
            eprintln!("xtask: {e:#}{hint}");
            ExitCode::FAILURE
        }
    }
}
