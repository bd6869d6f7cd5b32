//! `minder bench exit`: the end of one of many children.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use minder::lab::{self, Exits};

use super::{BenchSession, BenchSpec, Case, Measurement, chosen, command, conduct, judge, note, points};
use crate::flags::ExitFlags;

/// How many ends one measurement of `one` counts: ten for each child, within bounds. Few children
/// have to be replaced often.
const EXITS_MIN: usize = 20;
const EXITS_MAX: usize = 200;
/// How many children are started between two looks for Ctrl-C.
const START: usize = 250;
const ONE: &str = "one";
const BURST: &str = "burst";

pub(super) fn run(flags: &ExitFlags) -> Result<ExitCode> {
    let subject = BenchSpec {
        operation: "exit",
        size: "live",
        sizes: "live children",
        kinds: true,
        whose: "all threads",
        title: "Hearing that a child has ended",
        axis: "children that live",
        published: Vec::new(),
        note: note(),
    };
    let mechanisms = chosen(&lab::exits().collect::<Vec<_>>(), &flags.measure)?;
    let sizes = flags.live.as_ref().map_or(Exits::SIZES, |sizes| &sizes.0);
    let both = |point| [ONE, BURST].map(|kind| Case { kind: Some(kind), ..point });
    let points: Vec<Case> = points(sizes, &mechanisms).into_iter().flat_map(both).collect();
    let desk = BenchSession::enter()?;
    let child = match &flags.child {
        Some(line) => command(line),
        None => idle()?,
    };
    Exits::check(&child)?;
    // The burst follows on the same children.
    let mut crowd: Option<(&'static str, Exits)> = None;
    conduct(&subject, &flags.measure, desk, &points, |point, desk| {
        let size = usize::try_from(point.size)?;
        // One mechanism ends before the next begins: some of them take the ends of every child.
        let same = crowd.take().filter(|(name, exits)| *name == point.mechanism && exits.live() == size);
        let mut exits = match same {
            Some((_, exits)) => exits,
            None => gather(point.mechanism, &child, size, desk)?,
        };
        if point.kind == Some(BURST) {
            return Ok(Measurement::of(point.size, exits.burst().map_err(judge)?));
        }
        let ends = size.saturating_mul(10).clamp(EXITS_MIN, EXITS_MAX);
        let spent = exits.one_by_one(ends).map_err(judge)?;
        crowd = Some((point.mechanism, exits));
        Ok(Measurement::of(ends as u64, spent))
    })
}

/// A command that does nothing until it is killed: the system's, or this program.
fn idle() -> Result<minder::Command> {
    if let Some(command) = lab::idle() {
        return Ok(command);
    }
    let program = std::env::current_exe().context("cannot find this program, which is to be started")?;
    let mut command = minder::Command::new(program);
    command.args(["bench", "idle"]);
    Ok(command)
}

/// A mechanism with so many children.
fn gather(mechanism: &str, child: &minder::Command, size: usize, desk: &mut BenchSession) -> Result<Exits> {
    let mut exits = Exits::new(mechanism, child)?;
    while exits.live() < size {
        if desk.is_over() {
            bail!("interrupted");
        }
        exits.fill((exits.live() + START).min(size))?;
    }
    Ok(exits)
}
