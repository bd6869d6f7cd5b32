//! `language_servers [--servers N] [--rounds N] [--deadline SECONDS] [LANGUAGE=COMMAND]…`: starts many
//! language servers in one set of children, and asks each for completions. By default these are 20 servers:
//! clangd and pylsp by turns.
//!
//! A message goes from the output of its server into cells, without a copy in between if it lies whole in a
//! chunk. It is read from there. Completions are kept in a heap, which collects while the servers work. The
//! program checks that every request is answered exactly once and that every server exits with 0.
//!
//! `LANGUAGE` is `cpp` or `python`, as in `cpp=ccls` or `python='pyright-langserver --stdio'`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its result")]

mod documents;
mod messages;
mod server;
mod figures;
mod results;
mod session;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use documents::Language;
use session::{Program, Session};

/// An error of any part.
type Failure = Box<dyn std::error::Error>;

const USAGE: &str =
    "usage: language_servers [--servers N] [--rounds N] [--deadline SECONDS] [cpp=COMMAND | python=COMMAND]…";

/// The options of the command line.
struct Options {
    servers: usize,
    rounds: usize,
    deadline: Duration,
    programs: Vec<Program>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options =
            Self { servers: 20, rounds: 3, deadline: Duration::from_secs(120), programs: Vec::new() };
        while let Some(arg) = args.next() {
            let mut number = || {
                let value = args.next().unwrap_or_default();
                value.parse().map_err(|_| format!("invalid value `{value}` for {arg}: expected a number"))
            };
            match arg.as_str() {
                "--servers" => options.servers = number()?,
                "--rounds" => options.rounds = number()?,
                "--deadline" => options.deadline = Duration::from_secs(number()? as u64),
                _ => options.programs.push(program(&arg)?),
            }
        }
        if options.programs.is_empty() {
            // Without a limit it returns thousands of items. Its index runs as SCHED_IDLE, and an exit waits
            // for it: on a busy machine that takes minutes.
            let clangd = "cpp=clangd -j=1 --background-index=false --pch-storage=memory --limit-results=0";
            options.programs = vec![program(clangd)?, program("python=pylsp")?];
        }
        Ok(options)
    }
}

/// Reads `LANGUAGE=COMMAND`.
fn program(arg: &str) -> Result<Program, Failure> {
    let parts = arg.split_once('=').and_then(|(language, line)| Some((Language::named(language)?, line)));
    let (language, line) = parts.ok_or_else(|| format!("invalid argument `{arg}`: {USAGE}"))?;
    Ok(Program { language, words: line.split_whitespace().map(str::to_owned).collect() })
}

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("language_servers: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let seconds = options.deadline.as_secs();
    let deadline = Instant::now().checked_add(options.deadline);
    let deadline = deadline.ok_or_else(|| format!("invalid value `{seconds}` for --deadline: too large"))?;
    let mut session = Session::new(options.rounds, deadline)?;
    // After a failure no server is left behind.
    let result = session.start(&options.programs, options.servers).and_then(|()| session.run());
    session.end()?;
    result?;
    println!("{}", session.figures());
    Ok(())
}
