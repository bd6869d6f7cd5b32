//! A chain of cells, as in the published experiment: collections, and allocating again.

use super::{Lab, rounds, sample, source, timed};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Numbers, Samples};
use crate::table::grouped;
use anyhow::Result;
use std::path::Path;

/// The published number of cells, and that of a quick look.
const CELLS: usize = 105_910_837;
const CELLS_QUICK: usize = CELLS / 10;
/// The bytes of memory for each cell that the largest contestant needs: one that copies what lives.
const BYTES: u64 = 80;

const OURS: Contestant = Contestant { name: "minder", title: "minder" };
const MAINTAINED: Contestant =
    Contestant { name: "minder-maintained", title: "minder, after `Heap::maintain`" };
const EMACS: Contestant = Contestant { name: "emacs", title: "Emacs" };
const SBCL: Contestant = Contestant { name: "sbcl", title: "SBCL" };
const BOEHM: Contestant = Contestant { name: "boehm", title: "Boehm's collector, in C" };
const GO: Contestant = Contestant { name: "go", title: "Go" };
const ALL: [Contestant; 6] = [OURS, MAINTAINED, EMACS, SBCL, BOEHM, GO];

pub(super) fn chain(bench: &Bench, lab: &Lab) -> Result<Answer> {
    let wanted = lab.cells.unwrap_or(if bench.quick { CELLS_QUICK } else { CELLS });
    let cells = fitting(wanted, available_bytes());
    let missing = |who: &Contestant| match *who {
        EMACS => lab.emacs.as_ref().err().cloned(),
        SBCL => lab.sbcl.as_ref().err().cloned(),
        BOEHM => lab.boehm.as_ref().err().cloned(),
        GO => lab.go.as_ref().err().cloned(),
        _ => None,
    };
    let samples = rounds(bench, &ALL, cells, missing, |who| one(lab, who, cells))?;
    let tables = format!(
        "Nanoseconds of CPU time for each cell:\n\n{}\n\
         Milliseconds of a whole collection, CPU time and wall time:\n\n{}",
        costs(&samples, cells),
        pauses(&samples, cells)
    );
    let mut remarks = Vec::new();
    if cells < wanted {
        remarks.push(format!("{} cells do not fit into the free memory", grouped(wanted)));
    }
    remarks.push(format!(
        "{} cells; the published number is {}. CPU time of the whole process. Live: the second of two full \
         collections in a row. Half: about half of the cells were taken out of the chain at random; the time \
         is divided by all cells. Holes: as many cells as died are allocated. Dead: all cells were dropped. \
         Empty: all are allocated again. Counted: the ones in the bitmap that a sweep has left, which is \
         compared with the length of the chain; the baseline code is what a processor without popcnt \
         needs, on as many bits. Not in order: no cell is followed by its neighbour in memory; in the other \
         chains of live cells each is. Building includes the first use of memory.",
        grouped(cells),
        grouped(CELLS)
    ));
    remarks.push(
        "Emacs, SBCL and Go also collect what they have themselves. Emacs makes and thins the chain in byte \
         code, and collects only when it is asked to. Go collects while the program runs: its pause is a \
         part of the time. Boehm's collector and minder sweep when they allocate. SBCL copies what lives. \
         In SBCL and Boehm's collector the links are cut before the chain is dropped: any word of a stack \
         that is taken for an address would keep a part of it."
            .into(),
    );
    Ok(Answer::with_goals(&samples, &goals_of(&samples, cells), &tables, remarks))
}

/// Returns the number of cells, or a tenth of it for each time that the memory is too small.
fn fitting(wanted: usize, available: Option<u64>) -> usize {
    let mut cells = wanted;
    while cells > 100_000 && available.is_some_and(|bytes| cells as u64 * BYTES > bytes) {
        cells /= 10;
    }
    cells
}

/// Returns the free memory, where the system tells.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

fn one(lab: &Lab, who: &Contestant, cells: usize) -> Result<Numbers> {
    let number = cells.to_string();
    let found = |program: &Result<_, String>| program.clone().map_err(anyhow::Error::msg);
    match *who {
        EMACS => sample(&mut Lab::emacs("cells-chain", &[&number])),
        SBCL => {
            // Room for a copy of what lives, and for cells that were not collected yet.
            let mebibytes = ((cells * 64) >> 20) + 1024;
            let script = source("chain.lisp").display().to_string();
            let room = mebibytes.to_string();
            let words = ["--dynamic-space-size", &room, "--script", &script, &number];
            sample(&mut timed(Path::new("sbcl"), &words))
        }
        BOEHM => sample(&mut timed(&found(&lab.boehm)?, &[&number])),
        GO => sample(&mut timed(&found(&lab.go)?, &[&number])),
        _ => sample(&mut lab.ours(&["chain", who.name, &number])),
    }
}

fn goals_of(samples: &Samples, cells: usize) -> Vec<Goal> {
    let value = |who: Contestant, name| samples.spread((&who, cells), name);
    let thousandths = |who, name| value(who, name).map(|value| value.scaled(1e3));
    let at_most = Aim::AtMost;
    let mut goals = vec![
        Goal::of("all dead: the collection", " ms", value(OURS, "dead_ms"), at_most(2.0)),
        Goal::of("all dead, marks cleared before", " us", thousandths(MAINTAINED, "dead_ms"), at_most(100.0)),
        Goal::of("all live, a cell", " ns", value(OURS, "live_ns"), at_most(3.0)),
        Goal::of("half dead, a cell", " ns", value(OURS, "half_ns"), at_most(3.0)),
        Goal::of("allocation into empty blocks", " ns", value(OURS, "refill_dead_ns"), at_most(4.0)),
        Goal::of("allocation into random holes", " ns", value(OURS, "refill_half_ns"), at_most(9.0)),
        Goal::of(
            "cells counted after a sweep, a cell",
            " ps",
            thousandths(OURS, "counted_ns"),
            at_most(15.0),
        ),
        Goal::of(
            "the same by baseline code, a cell",
            " ps",
            thousandths(OURS, "counted_baseline_ns"),
            at_most(40.0),
        ),
        Goal::of("all live, not in order, a cell", " ns", value(OURS, "scattered_ns"), Aim::None),
        Goal::of("all dead, wall time", " ms", value(OURS, "dead_wall_ms"), Aim::None),
    ];
    for other in [EMACS, SBCL, BOEHM, GO] {
        for (what, name) in [("all dead", "dead_ms"), ("all live", "live_ms"), ("half dead", "half_ms")] {
            let what = format!("{what}: {} over minder", other.title);
            goals.push(Goal::ratio(what, samples.ratio((&other, cells), (&OURS, cells), name), Aim::None));
        }
    }
    goals
}

fn costs(samples: &Samples, cells: usize) -> String {
    let columns = [
        ("build", ("build_ns", 1.0, 1)),
        ("live", ("live_ns", 1.0, 2)),
        ("half", ("half_ns", 1.0, 2)),
        ("holes", ("refill_half_ns", 1.0, 2)),
        ("dead", ("dead_ns", 1.0, 4)),
        ("empty", ("refill_dead_ns", 1.0, 2)),
    ];
    samples.table("heap", (&ALL, Contestant::title), cells, &columns)
}

fn pauses(samples: &Samples, cells: usize) -> String {
    let columns = [
        ("live, CPU", ("live_ms", 1.0, 1)),
        ("live, wall", ("live_wall_ms", 1.0, 1)),
        ("half, CPU", ("half_ms", 1.0, 1)),
        ("half, wall", ("half_wall_ms", 1.0, 1)),
        ("dead, CPU", ("dead_ms", 1.0, 3)),
        ("dead, wall", ("dead_wall_ms", 1.0, 3)),
        ("dead, pause", ("dead_pause_ms", 1.0, 3)),
    ];
    samples.table("heap", (&ALL, Contestant::title), cells, &columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("cells-chain", |samples| goals_of(samples, CELLS));
    }

    #[test]
    fn chain_fits_into_memory() {
        assert_eq!(fitting(CELLS, None), CELLS);
        assert_eq!(fitting(CELLS, Some(10 << 30)), CELLS);
        assert_eq!(fitting(CELLS, Some(7 << 30)), CELLS_QUICK);
        assert_eq!(fitting(CELLS, Some(0)), CELLS / 10_000);
    }
}
