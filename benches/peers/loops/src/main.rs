//! One wait for one of N descriptors: `minder` compared with other event loops and the bare system
//! call, in one process.
//!
//!     loops [--rounds N] [--objects N,N,...] [--budget-ms N]
//!
//! A cycle signals a pseudo-random one of N eventfds, waits, checks that exactly that one is
//! reported, and resets it. The same calls without the wait are measured in every round, and
//! subtracted. The candidates run one after the other; each is created anew in every round, so that
//! a signal never passes through the sets of the others.
//!
//! Prints rows of CSV; nanoseconds are per wait. The row `signal+reset` was subtracted from the
//! others of its round.

mod candidates;
mod round;

use anyhow::{Context, Result, bail};
use candidates::Candidate;
use round::{Cost, ObjectPicker};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Write;
use std::time::Duration;

/// The name in the rows of a cycle without a wait.
const CALLS: &str = "signal+reset";

/// Descriptors in addition to the objects: standard streams, sets, timers, wakers.
const SPARE: u64 = 32;

struct Options {
    rounds: usize,
    objects: Vec<usize>,
    /// The time for which one candidate runs in one round.
    budget: Duration,
}

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let limit = raise_limit();
    let mut out = std::io::stdout().lock();
    writeln!(out, "contestant,objects,round,waits,cpu_ns,wall_ns")?;
    let fits = |count: &&usize| limit.is_none_or(|limit| **count as u64 + SPARE <= limit);
    for count in options.objects.iter().filter(|count| !fits(count)) {
        eprintln!("loops: {count} objects left out: the limit of descriptors is {}", limit.unwrap_or(0));
    }
    let counts: Vec<usize> = options.objects.iter().filter(fits).copied().collect();
    let objects = objects(counts.iter().copied().max().unwrap_or(0))?;
    for round in 1..=options.rounds {
        for &count in &counts {
            for row in run_round(&objects[..count], round, options.budget)? {
                writeln!(out, "{row}")?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

/// Runs one round over the same objects: the calls without a wait, then every candidate.
fn run_round(objects: &[OwnedFd], round: usize, budget: Duration) -> Result<Vec<String>> {
    let picker = ObjectPicker::new(round);
    let row = |name: &str, waits: u32, Cost { cpu, wall }: Cost| {
        format!("{name},{},{round},{waits},{cpu:.1},{wall:.1}", objects.len())
    };
    let (cycles, calls) = round::measure(objects, None, picker, budget)?;
    let mut rows = vec![row(CALLS, cycles, calls)];
    for candidate in candidates::all() {
        let name = candidate.name();
        let mut candidate: Box<dyn Candidate> =
            candidate.open(objects).with_context(|| format!("{name}, {} objects", objects.len()))?;
        let (waits, cost) = round::measure(objects, Some(candidate.as_mut()), picker, budget)
            .with_context(|| format!("{name}, {} objects", objects.len()))?;
        rows.push(row(&name, waits, cost.less(calls)));
    }
    Ok(rows)
}

fn objects(count: usize) -> Result<Vec<OwnedFd>> {
    let one = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let all: Result<_, _> = (0..count).map(|_| one()).collect();
    all.with_context(|| format!("{count} eventfds"))
}

/// Raises the limit of descriptors as far as possible; returns it, or `None` without a limit.
fn raise_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // A refusal shows in the limit that is left.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut options =
            Self { rounds: 5, objects: vec![2, 64, 2048, 8192], budget: Duration::from_millis(30) };
        while let Some(arg) = args.next() {
            let value = args.next().with_context(|| format!("{arg} needs a value"))?;
            match arg.as_str() {
                "--rounds" => options.rounds = value.parse()?,
                "--objects" => {
                    options.objects = value.split(',').map(str::parse).collect::<Result<_, _>>()?
                }
                "--budget-ms" => options.budget = Duration::from_millis(value.parse()?),
                _ => {
                    bail!("unknown option `{arg}`; hint: loops [--rounds N] [--objects N,N] [--budget-ms N]")
                }
            }
        }
        if options.objects.contains(&0) {
            bail!("no objects, no wait; hint: --objects 2,64");
        }
        Ok(options)
    }
}
