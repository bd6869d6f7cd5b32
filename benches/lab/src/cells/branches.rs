//! What a processor does in each phase of `minder bench sweep`, counted by cachegrind.
//!
//! A phase is counted as the difference of two runs: one that ends when the phase begins, and one that ends
//! after it. The simulated processor is the same on every machine.

use super::{Lab, SAMPLE_TIMEOUT};
use crate::bench::{Answer, Bench};
use crate::programs::built;
use crate::samples::{Numbers, Samples};
use crate::table::{grouped, markdown};
use anyhow::{Context, Result};
use xtask::{install, run};

const CELLS: usize = 2_000_000;
const CELLS_QUICK: usize = 500_000;

/// Heaps, and the KiB of their blocks.
const HEAPS: [(&str, usize); 8] = [
    ("inline", 1),
    ("inline", 4),
    ("inline", 32),
    ("inline", 1024),
    ("inline-shuffled", 1),
    ("inline-shuffled", 32),
    ("minder", 64),
    ("minder-maintained", 64),
];
const PHASES: [&str; 5] = ["mark-live", "sweep-live", "sweep-half", "refill-half", "sweep-dead"];

/// What is shown, and the events of cachegrind that are added up for it.
const COUNTS: [(&str, &[&str]); 5] = [
    ("instructions", &["Ir"]),
    ("i1_misses", &["I1mr"]),
    ("d1_misses", &["D1mr", "D1mw"]),
    ("branches", &["Bc", "Bi"]),
    ("mispredicted", &["Bcm", "Bim"]),
];

/// Caches of a current processor: 32 KiB and 48 KiB of the first level, 2 MiB of the second, which cachegrind
/// takes for the last one.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=49152,12,64", "--LL=2097152,16,64"];

pub(super) fn branches(bench: &Bench, lab: &Lab) -> Result<Answer> {
    let wanted = install::Program { name: "valgrind", package: "valgrind" };
    install::programs(&[wanted]).map_err(anyhow::Error::msg)?;
    let cells = lab.cells.unwrap_or(if bench.quick { CELLS_QUICK } else { CELLS });
    let mut samples = Samples::default();
    for (heap, block) in HEAPS {
        eprintln!("  {heap}, {block} KiB");
        for phase in PHASES {
            let count = |end| count(lab, (heap, block), cells, (phase, end));
            let before = count("until")?;
            let after = count("through")?;
            let numbers = after.into_iter().zip(before).map(|((name, after), (_, before))| {
                // Two runs of the same program differ by some events.
                (format!("{phase}-{name}"), (after - before).max(0.0))
            });
            samples.add(1, (heap, block), numbers.collect());
        }
    }
    let mut table = String::new();
    for phase in PHASES {
        table.push_str(&format!("{}:\n\n{}\n", title(phase), counts(&samples, phase, cells)));
    }
    let version = run::read(run::command("valgrind").arg("--version")).unwrap_or_default();
    let remarks = vec![
        format!(
            "{} cells; counts for a thousand of them, by cachegrind ({}), which simulates {}, and a branch \
             predictor simpler than that of a current processor. D1 misses are of reads and writes.",
            grouped(cells),
            version.trim(),
            CACHES.join(" ")
        ),
        "Two runs, until a phase and through it, are subtracted: tens of events are noise.".into(),
    ];
    Ok(Answer::new(&samples, table.trim_end().to_string() + "\n", remarks))
}

/// Counts the events of one run.
fn count(
    lab: &Lab,
    (heap, block): (&str, usize),
    cells: usize,
    (phase, end): (&str, &str),
) -> Result<Numbers> {
    let file = built("cells/cachegrind");
    let mut cmd = run::bounded(SAMPLE_TIMEOUT, "valgrind");
    cmd.args(["-q", "--tool=cachegrind", "--branch-sim=yes"]);
    cmd.args(CACHES).arg(format!("--cachegrind-out-file={file}")).arg(&lab.program);
    cmd.args(["phase", heap, &block.to_string(), &cells.to_string(), phase, end]);
    run::read(&mut cmd)?;
    events(&std::fs::read_to_string(&file)?)
}

/// Reads the totals of a file of cachegrind.
fn events(text: &str) -> Result<Numbers> {
    let line = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.with_context(|| format!("cachegrind wrote no line `{name}`"))
    };
    let names = line("events:")?.split_whitespace();
    let totals: Vec<(&str, f64)> = names
        .zip(line("summary:")?.split_whitespace())
        .map(|(name, number)| Ok((name, number.parse()?)))
        .collect::<Result<_>>()?;
    let of = |event: &&str| {
        let found = totals.iter().find(|(name, _)| name == event);
        found.map(|(_, number)| *number).with_context(|| format!("cachegrind counted no `{event}`"))
    };
    COUNTS
        .iter()
        .map(|(name, events)| {
            let sum = events.iter().map(of).sum::<Result<f64>>()?;
            Ok(((*name).to_string(), sum))
        })
        .collect()
}

fn title(phase: &str) -> &'static str {
    match phase {
        "mark-live" => "Marking a chain that lives",
        "sweep-live" => "Sweeping it",
        "sweep-half" => "Sweeping after half of the cells died at random",
        "refill-half" => "Allocating as many as died",
        _ => "Sweeping after all cells died",
    }
}

/// Returns a table of one phase: a line for each heap, a column for each count, for a thousand cells.
fn counts(samples: &Samples, phase: &str, cells: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a number of cells")]
    // As many cells as died are allocated: half of them.
    let thousands = cells as f64 / 1e3 / if phase == "refill-half" { 2.0 } else { 1.0 };
    let head = ["heap", "KiB", "instructions", "I1 misses", "D1 misses", "branches", "mispredicted"];
    let line = |(heap, block): &(&str, usize)| {
        let cell = |(name, _): &(&str, &[&str])| {
            let spread = samples.spread((*heap, *block), format!("{phase}-{name}").as_str());
            spread.map_or_else(|| "–".to_string(), |spread| short(spread.median / thousands))
        };
        [(*heap).to_string(), block.to_string()].into_iter().chain(COUNTS.iter().map(cell)).collect()
    };
    markdown(&head, &HEAPS.iter().map(line).collect::<Vec<Vec<String>>>())
}

/// Returns a count for a thousand cells with about three digits.
fn short(count: f64) -> String {
    let decimals = [0.1, 10.0, 100.0].iter().filter(|limit| count < **limit).count();
    format!("{count:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_from_the_totals() {
        let text = "desc: x\nevents: Ir I1mr D1mr D1mw Bc Bcm Bi Bim\nfn=a\n1 1 1 1 1 1 1 1 1\n\
                    summary: 100 2 3 4 50 6 7 1\n";
        let numbers = events(text).unwrap();
        let values: Vec<f64> = numbers.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [100.0, 2.0, 7.0, 57.0, 7.0]);
        assert!(events("events: Ir\nsummary: 1\n").is_err() && events("").is_err());
    }

    #[test]
    fn table_has_a_line_for_each_heap() {
        let mut samples = Samples::default();
        samples.add(1, ("minder", 64), vec![("refill-half-branches".into(), 2_500.0)]);
        let table = counts(&samples, "refill-half", 1_000_000);
        assert_eq!(table.lines().count(), 2 + HEAPS.len());
        assert!(table.contains("| minder | 64 | – | – | – | 5.00 | – |"), "{table}");
    }
}
