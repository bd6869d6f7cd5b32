//! `minder bench spawn`: one start of a child.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use minder::lab::{self, Ballast, Spawns, Spent};

use super::{BenchSession, BenchSpec, Measurement, at_least, chosen, command, conduct, judge, note, points};
use crate::flags::SpawnFlags;
use crate::report::{format_error, message};

/// How many starts one measurement counts: no more than that, fewer when the time is over, but
/// some.
const SPAWNS_MAX: u64 = 100;
const SPAWNS_MIN: u64 = 5;
const TIME: Duration = at_least(64, Duration::from_millis(500));

pub(super) fn run(flags: &SpawnFlags) -> Result<ExitCode> {
    let subject = BenchSpec {
        operation: "spawn",
        size: "parent_mib",
        sizes: "MiB of the parent",
        kinds: false,
        whose: "the parent's",
        title: "Starting a child",
        axis: "MiB of the parent",
        published: Vec::new(),
        note: note(),
    };
    let mechanisms = chosen(&lab::spawns().collect::<Vec<_>>(), &flags.measure)?;
    let mut desk = BenchSession::enter()?;
    let child = flags.child.as_ref().map_or_else(lab::brief, command);
    // Ours says best what is wrong with a command.
    if let Some(mechanism) = lab::spawns().next() {
        let trial = child.clone();
        match desk.patiently(move || Spawns::new(mechanism, &trial)?.spawn()) {
            Some(started) => drop(started?),
            None => return Ok(desk.status()),
        }
    }
    let points = points(&sizes(flags)?, &mechanisms);
    let mut parent: Option<(u64, Ballast)> = None;
    conduct(&subject, &flags.measure, desk, &points, |point, desk| {
        if parent.as_ref().is_none_or(|(size, _)| *size != point.size) {
            // The old size goes before the new one comes.
            parent = None;
            parent = Some((point.size, Ballast::new(point.size)?));
        }
        measure(Spawns::new(point.mechanism, &child)?, desk)
    })
}

/// The sizes that this machine has the memory for; it is said which it has not.
///
/// # Errors
/// When it has none of them.
fn sizes(flags: &SpawnFlags) -> Result<Vec<u64>> {
    let mut fitting = Vec::new();
    let mut refused = Vec::new();
    for &mib in &flags.parent_mib.0 {
        match Ballast::fits(mib) {
            Ok(_) => fitting.push(mib),
            Err(error) => refused.push(anyhow::Error::new(error)),
        }
    }
    match refused.pop() {
        Some(last) if fitting.is_empty() => Err(last),
        last => {
            refused.into_iter().chain(last).for_each(|error| message(&format_error(&error)));
            Ok(fitting)
        }
    }
}

fn measure(mut spawns: Spawns, desk: &mut BenchSession) -> Result<Measurement> {
    let begun = Instant::now();
    let (mut count, mut total) = (0, Spent::default());
    while count < SPAWNS_MIN || (count < SPAWNS_MAX && begun.elapsed() < TIME) {
        let spent = spawns.spawn().map_err(judge)?;
        total.cpu += spent.cpu;
        total.wall += spent.wall;
        count += 1;
        if desk.is_over() {
            bail!("interrupted");
        }
    }
    Ok(Measurement::of(count, total))
}
