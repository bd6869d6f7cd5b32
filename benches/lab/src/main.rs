//! `cargo bench-lab`: what minder costs beside its peers, in paired rounds. The questions of `bench-lab run`
//! are here.
//!
//! The method is in `docs/measurements/README.md`. Nothing here fails because a machine was slow.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its results")]

mod advise;
mod cost;
mod many_children;
mod machine;
mod meter;
mod peers;
mod table;
mod output;
mod question;
mod samples;
mod svg;
mod mechanisms;
mod library;
mod c;
mod ruby;
mod emacs;
mod clock;
mod cells;
mod compare;
mod backends;

use anyhow::{Context, Result, bail};
use peers::Peers;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::tree;

const HELP: &str = "\
cargo bench-lab COMMAND

  compare [BASE] [--rounds N] [--quick] [--only NAME]...
      Builds the commit BASE (the newest tag, or the last release) and this tree, and prints the ratios of
      what they cost per job, per start, in memory and in size.
  run [--rounds N] [--quick] [--only NAME]...
      Measures `minder run` beside other runners.
  output [--rounds N] [--quick] [--only NAME]...
      Measures the cost of output, and checks every byte of it.
  advise [--rounds N] [--quick]
      Compares what minder advise predicts with what the advised run takes.
  library [--rounds N] [--quick] [--only NAME]...
      Measures the library beside std, tokio and posix_spawn, with goals.
  c [--rounds N] [--quick]
      Measures the C interface beside the library in Rust, with a goal.
  ruby [--rounds N] [--quick] [--only NAME]...
      Measures the fiber scheduler of the gem beside other servers and schedulers, with goals.
  emacs [--rounds N] [--quick] [--only NAME]...
      Measures the package for Emacs beside processes of Emacs, with goals and a chart.
  clock [--rounds N] [--quick] [--only NAME]...
      Measures sleeps, timers and ticks beside std, tokio, spin_sleep and cyclictest, with goals.
  cells [--cells N] [--rounds N] [--quick] [--only NAME]...
      Measures heaps of cells beside Emacs, SBCL, Boehm's collector and Go, and JSON beside serde_json and
      sonic-rs, with goals; counts cache misses and branches by cachegrind.
  wait|exit|spawn [--rounds N] [--quick] [--only NAME]...
      Measures `minder bench` beside other programs, with goals and charts.
  wine [--rounds N] [--quick] [--only NAME]...
      Measures `minder bench` under Wine: ratios, not times of Windows.
  backends
      Writes the costs in docs/backends.md, from the rows in docs/measurements.
";

/// One question, and how it is answered.
struct Question {
    name: &'static str,
    what: &'static str,
    /// How many rounds tell enough, unless the caller says.
    rounds: usize,
    ask: fn(&Bench) -> Result<Answer>,
}

const QUESTIONS: [Question; 6] = [
    Question {
        name: "tiny",
        what: "cost per job, static child that exits immediately, 8 at once",
        rounds: 5,
        ask: cost::tiny,
    },
    Question { name: "true", what: "cost per job, /bin/true, 8 at once", rounds: 5, ask: cost::truth },
    Question { name: "one", what: "one job: wall time over a bare spawn", rounds: 40, ask: cost::one },
    Question {
        name: "version",
        what: "cost of starting and printing `--version`",
        rounds: 20,
        ask: cost::version,
    },
    Question {
        name: "live",
        what: "cost per job while thousands of other children live",
        rounds: 3,
        ask: many_children::live,
    },
    Question {
        name: "many",
        what: "thousands of captured children at once: memory, threads, descriptors",
        rounds: 3,
        ask: many_children::many,
    },
];

/// What a question needs to be answered.
struct Bench {
    peers: Peers,
    rounds: usize,
    quick: bool,
}

impl Bench {
    /// The number to use: the full one, or a tenth for a quick look.
    fn scaled(&self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }

    /// Where tables, rows and charts go: quick looks below target, full runs into
    /// docs/measurements.
    fn results(&self) -> PathBuf {
        if self.quick { tree::target_dir().join("bench") } else { tree::root().join("docs/measurements") }
    }

    fn round(&self, number: usize) {
        eprint!("\r  round {} of {} ", number + 1, self.rounds);
        if number + 1 == self.rounds {
            eprintln!();
        }
    }
}

/// Returns the order of candidates in a round: reversed in every other round, since a candidate
/// finds warmer caches after another one, and a busier machine after a heavy one.
fn round_order<T: Copy>(round: usize, all: &[T]) -> Vec<T> {
    if round.is_multiple_of(2) { all.to_vec() } else { all.iter().rev().copied().collect() }
}

/// A table for people, and the raw rows behind it.
struct Answer {
    table: String,
    remarks: Vec<String>,
    csv: String,
}

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
    match (verb, mechanisms::questions(verb)) {
        ("compare", _) => compare::main(options),
        ("run", _) => run(options),
        ("output", _) => output::main(options),
        ("advise", _) => advise::main(options),
        ("library", _) => library::main(options),
        ("c", _) => c::main(options),
        ("ruby", _) => ruby::main(options),
        ("emacs", _) => emacs::main(options),
        ("clock", _) => clock::main(options),
        ("cells", _) => cells::main(options),
        ("backends", _) if options.is_empty() => backends::write(),
        ("help" | "-h" | "--help", _) => {
            print!("{HELP}");
            Ok(())
        }
        (_, Some(questions)) => mechanisms::main(verb, questions, options),
        _ => bail!("unknown command `{verb}`: expected one of `cargo bench-lab help`"),
    }
}

fn run(options: &[String]) -> Result<()> {
    let asked = Asked::parse("run", &QUESTIONS.map(|q| q.name), options)?;
    let mut peers = Peers::ready()?;
    for question in
        QUESTIONS.iter().filter(|q| asked.only.is_empty() || asked.only.iter().any(|o| o == q.name))
    {
        let usual = if asked.quick { question.rounds.min(3) } else { question.rounds };
        let bench = Bench { peers, rounds: asked.rounds.unwrap_or(usual), quick: asked.quick };
        eprintln!("bench: {}: {}", question.name, question.what);
        let before = machine::load();
        let answer = (question.ask)(&bench).with_context(|| format!("bench {}", question.name))?;
        report("run", (question.name, question.what), &bench, &answer, &before)?;
        peers = bench.peers;
    }
    Ok(())
}

/// Prints the table, and keeps it and its rows.
fn report(
    verb: &str,
    (name, what): (&str, &str),
    bench: &Bench,
    answer: &Answer,
    load_before: &str,
) -> Result<()> {
    let again = format!(
        "cargo bench-lab {verb} --only {name} --rounds {}{}",
        bench.rounds,
        if bench.quick { " --quick" } else { "" }
    );
    let about = match verb {
        "run" | "output" => "minder run".into(),
        "advise" => "minder advise".into(),
        "library" => "the library minder".into(),
        "c" => "the C interface".into(),
        "ruby" => "the Ruby gem".into(),
        "emacs" => "the Emacs package".into(),
        "clock" => "minder::clock".into(),
        "cells" => "minder-cells".into(),
        "wine" => format!("minder bench {name} under Wine"),
        _ => format!("minder bench {verb}"),
    };
    let mut text = format!("# {about}: {what}\n\n{}\n", answer.table);
    for remark in answer.remarks.iter().chain(&bench.peers.left_out) {
        text.push_str(&format!("- {remark}\n"));
    }
    text.push_str(&machine::describe(&bench.peers, bench.rounds, load_before)?);
    text.push_str(&format!("- produced by: `{again}`\n- raw rows: `{verb}-{name}.csv`\n"));
    let dir = bench.results();
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join(format!("{verb}-{name}.csv")), &answer.csv)?;
    std::fs::write(dir.join(format!("{verb}-{name}.md")), &text)?;
    println!("{text}");
    Ok(())
}

/// The options of the command line.
#[derive(Default)]
struct Asked {
    rounds: Option<usize>,
    quick: bool,
    only: Vec<String>,
    /// The number of cells, for `cells` alone.
    cells: Option<usize>,
}

impl Asked {
    /// Reads the options of a verb that answers questions of these names.
    fn parse(verb: &str, names: &[&str], words: &[String]) -> Result<Self> {
        use lexopt::prelude::*;
        let mut asked = Self::default();
        let mut words = lexopt::Parser::from_args(words);
        while let Some(word) = words.next()? {
            match word {
                Long("quick") => asked.quick = true,
                Long("rounds") => asked.rounds = Some(words.value()?.parse::<usize>()?.max(1)),
                Long("only") => asked.only.push(words.value()?.string()?),
                Long("cells") if verb == "cells" => asked.cells = Some(words.value()?.parse()?),
                other => bail!("{verb}: {}; cure: cargo bench-lab help", other.unexpected()),
            }
        }
        if asked.cells.is_some_and(|cells| cells < 1_000) {
            bail!("--cells: expected at least 1000");
        }
        if let Some(unknown) = asked.only.iter().find(|o| !names.contains(&o.as_str())) {
            bail!("unknown name `{unknown}`; cure: one of {}", names.join(", "));
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_verb() {
        let parse = |verb: &str, line: &str| {
            let words: Vec<String> = line.split_whitespace().map(String::from).collect();
            Asked::parse(verb, &["json", "chain"], &words)
        };
        let asked = parse("cells", "--quick --cells 5000 --only json --rounds=0").unwrap();
        assert_eq!((asked.cells, asked.rounds, asked.quick), (Some(5_000), Some(1), true));
        assert_eq!(asked.only, ["json"]);
        for bad in ["--cells", "--cells x", "--cells 1", "--only nothing", "--nosuch", "json"] {
            assert!(parse("cells", bad).is_err(), "{bad}");
        }
        assert!(parse("run", "--cells 5000").is_err());
    }
}
