//! One wait for one of N descriptors: `minder` beside other event loops and the bare system call,
//! in one process.
//!
//!     loops [--rounds N] [--objects N,N,...] [--budget-ms N]
//!
//! A turn signals a pseudo-random one of N eventfds, waits, looks whether exactly that one is told,
//! and resets it. What the same calls cost without the wait is measured beside it in every round,
//! and subtracted. Contestants take turns; each is made afresh in every round, so that a signal
//! never goes through the sets of the others.
//!
//! Prints rows of CSV; nanoseconds are per wait. The row `signal+reset` is what was subtracted from
//! the others of its round.

mod contestants;
mod turn;

use anyhow::{Context, Result, bail};
use contestants::Contestant;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Write;
use std::time::Duration;
use turn::{Cost, Dice};

/// What the rows of a turn without a wait are called.
const CALLS: &str = "signal+reset";

/// Descriptors beside the objects: standard streams, sets, timers, bells.
const SPARE: u64 = 32;

struct Asked {
    rounds: usize,
    objects: Vec<usize>,
    /// How long one contestant's part in one round is to take.
    budget: Duration,
}

fn main() -> Result<()> {
    let asked = Asked::parse(std::env::args().skip(1))?;
    let limit = raise_limit();
    let mut out = std::io::stdout().lock();
    writeln!(out, "contestant,objects,round,waits,cpu_ns,wall_ns")?;
    let fits = |count: &&usize| limit.is_none_or(|limit| **count as u64 + SPARE <= limit);
    for count in asked.objects.iter().filter(|count| !fits(count)) {
        eprintln!("loops: {count} objects left out: the limit of descriptors is {}", limit.unwrap_or(0));
    }
    let counts: Vec<usize> = asked.objects.iter().filter(fits).copied().collect();
    let objects = objects(counts.iter().copied().max().unwrap_or(0))?;
    for round in 1..=asked.rounds {
        for &count in &counts {
            for row in play(&objects[..count], round, asked.budget)? {
                writeln!(out, "{row}")?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

/// One round over the same objects: what the calls cost without a wait, then every contestant in
/// turn.
fn play(objects: &[OwnedFd], round: usize, budget: Duration) -> Result<Vec<String>> {
    let dice = Dice::new(round);
    let row = |name: &str, waits: u32, Cost { cpu, wall }: Cost| {
        format!("{name},{},{round},{waits},{cpu:.1},{wall:.1}", objects.len())
    };
    let (turns, calls) = turn::measure(objects, None, dice, budget)?;
    let mut rows = vec![row(CALLS, turns, calls)];
    for contestant in contestants::all() {
        let name = contestant.name();
        let mut contestant: Box<dyn Contestant> =
            contestant.open(objects).with_context(|| format!("{name}, {} objects", objects.len()))?;
        let (waits, cost) = turn::measure(objects, Some(contestant.as_mut()), dice, budget)
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

/// Allows as many descriptors as we may; says how many that is, unless there is no limit.
fn raise_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // A refusal shows in the limit that is left.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current
}

impl Asked {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut asked =
            Self { rounds: 5, objects: vec![2, 64, 2048, 8192], budget: Duration::from_millis(30) };
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} wants a value"))?;
            match word.as_str() {
                "--rounds" => asked.rounds = value.parse()?,
                "--objects" => asked.objects = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--budget-ms" => asked.budget = Duration::from_millis(value.parse()?),
                _ => bail!("`{word}` is no option; cure: loops [--rounds N] [--objects N,N] [--budget-ms N]"),
            }
        }
        if asked.objects.contains(&0) {
            bail!("no objects, no wait; cure: --objects 2,64");
        }
        Ok(asked)
    }
}
