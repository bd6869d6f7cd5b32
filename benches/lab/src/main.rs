//! `cargo bench-lab`: compares minder with its peers, in paired rounds.
//!
//! The method is in `docs/measurements/README.md`. Nothing here fails because a machine was slow.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its results")]

mod table;
mod goals;
mod processes;
mod programs;
mod meter;
mod peers;
mod machine;
mod samples;
mod bench;
mod question;
mod run;
mod output;
mod advise;
mod mechanisms;
mod library;
mod c;
mod ruby;
mod emacs;
mod clock;
mod cells;
mod compare;
mod backends;
mod charts;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
cargo bench-lab COMMAND

  compare [BASE] [--rounds N] [--quick] [--only NAME]...
      Builds the commit BASE (the newest tag, or the last release) and this tree, and prints the ratios of
      what they cost per job, per start, in memory and in size.
  run [--rounds N] [--quick] [--only NAME]...
      Compares `minder run` with other runners.
  output [--rounds N] [--quick] [--only NAME]...
      Measures the cost of output, and checks every byte of it.
  advise [--rounds N] [--quick]
      Compares what minder advise predicts with what the advised run takes.
  library [--rounds N] [--quick] [--only NAME]...
      Compares the library with std, tokio and posix_spawn, with goals.
  c [--rounds N] [--quick]
      Compares the C interface with the library in Rust, with a goal.
  ruby [--rounds N] [--quick] [--only NAME]...
      Compares the fiber scheduler of the gem with other servers and schedulers, with goals.
  emacs [--rounds N] [--quick] [--only NAME]...
      Compares the package for Emacs with processes of Emacs, with goals and a chart.
  clock [--rounds N] [--quick] [--only NAME]...
      Compares sleeps, timers and ticks with std, tokio, spin_sleep and cyclictest, with goals.
  cells [--cells N] [--rounds N] [--quick] [--only NAME]...
      Compares heaps of cells with Emacs, SBCL, Boehm's collector and Go, and JSON with serde_json
      and sonic-rs, with goals; counts cache misses and branches by cachegrind.
  wait|exit|spawn [--rounds N] [--quick] [--only NAME]...
      Compares `minder bench` with other programs, with goals and charts.
  wine [--rounds N] [--quick] [--only NAME]...
      Measures `minder bench` under Wine: ratios, not times of Windows.
  charts
      Draws the charts in docs/measurements, from the rows there.
  backends
      Writes the costs in docs/backends.md, from the rows in docs/measurements.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match command(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bench-lab: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn command(args: &[String]) -> Result<()> {
    let (verb, options) = args.split_first().map_or(("", args), |(verb, rest)| (verb.as_str(), rest));
    let quick = options.iter().any(|word| word == "--quick");
    match (verb, mechanisms::questions(verb)) {
        ("compare", _) => return compare::main(options),
        ("help" | "-h" | "--help", _) => {
            print!("{HELP}");
            return Ok(());
        }
        ("charts", _) if options.is_empty() => return charts::write(&bench::results(false), None),
        ("backends", _) if options.is_empty() => return backends::write(),
        ("run", _) => run::main(options)?,
        ("output", _) => output::main(options)?,
        ("advise", _) => advise::main(options)?,
        ("library", _) => library::main(options)?,
        ("c", _) => c::main(options)?,
        ("ruby", _) => ruby::main(options)?,
        ("emacs", _) => emacs::main(options)?,
        ("clock", _) => clock::main(options)?,
        ("cells", _) => cells::main(options)?,
        (_, Some(questions)) => mechanisms::main(verb, questions, options)?,
        _ => bail!("unknown command `{verb}`: expected one of `cargo bench-lab help`"),
    }
    charts::write(&bench::results(quick), Some(verb))?;
    if quick { Ok(()) } else { backends::write() }
}
