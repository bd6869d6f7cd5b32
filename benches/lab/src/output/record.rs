//! What the record costs a job: tiny jobs with it and without, beside the floor.

use super::super::peers::Runner;
use super::super::table::{markdown, shown};
use super::super::{Answer, Bench, round_order};
use super::fixtures::{Fixtures, Pipeline, Seen};
use anyhow::{Result, bail};
use std::fmt::Write;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Raw,
    Record,
    NoRecord,
}

const ALL: [Way; 3] = [Way::Raw, Way::Record, Way::NoRecord];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw vfork",
            Self::Record => "minder run",
            Self::NoRecord => "minder run --no-record",
        }
    }

    fn play(self, bench: &Bench, jobs: usize) -> Result<Pipeline> {
        let runner = if self == Self::Raw { Runner::Raw } else { Runner::Minder };
        let mut words = runner.words(&bench.peers, 8, &bench.peers.built("tiny"));
        if self == Self::NoRecord {
            words.insert(2, "--no-record".into());
        }
        let input = bench.peers.input((0..jobs).map(|n| n.to_string()))?;
        Ok(Pipeline { runner: words, input, ..Pipeline::default() })
    }
}

struct Row {
    round: usize,
    way: Way,
    /// Processor time of the whole tree, for each job.
    each_us: f64,
    seen: Seen,
}

/// The three in turn.
pub(super) fn record(bench: &Bench, fixtures: &Fixtures<'_>) -> Result<Answer> {
    let jobs = bench.scaled(10_000);
    let mut remarks = Vec::new();
    let mut ways = Vec::new();
    let here = |way: &Way| *way == Way::Raw || bench.peers.runners.contains(&Runner::Minder);
    for way in ALL.into_iter().filter(here) {
        match fixtures.run(&way.play(bench, 3)?)?.cost.checked(0) {
            Ok(_) => ways.push(way),
            Err(why) => remarks.push(format!("left out: {}: {why:#}", way.name())),
        }
    }
    let mut rows = Vec::new();
    for round in 0..bench.rounds {
        bench.round(round);
        for way in round_order(round, &ways) {
            let before = started();
            let seen = fixtures.run(&way.play(bench, jobs)?)?;
            if started() < before + jobs {
                bail!("{} started fewer processes than it had jobs", way.name());
            }
            let each_us = seen.cost.clone().checked(0)?.tree_us / f64::from(u32::try_from(jobs)?);
            rows.push(Row { round, way, each_us, seen });
        }
    }
    remarks.push(format!(
        "{jobs} jobs of a static child that exits immediately, 8 at once, output to /dev/null. tree CPU: \
         the runner and its descendants, by wait4. Ratios and differences within the same round. Median \
         [minimum-maximum]."
    ));
    remarks.push(
        "files: the maximum in the directories for temporary files and for the record, sampled \
        every 50 ms."
            .into(),
    );
    Ok(Answer { table: table(&ways, &rows), remarks, csv: csv(&rows, jobs)? })
}

/// How many processes and threads this machine has started since it was booted.
fn started() -> usize {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let number = text.lines().find_map(|l| l.strip_prefix("processes "));
    number.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

fn table(ways: &[Way], rows: &[Row]) -> String {
    let other =
        |round: usize, way: Way| rows.iter().find(|r| r.round == round && r.way == way).map(|r| r.each_us);
    let mut lines = Vec::new();
    for way in ways.iter().copied() {
        let mine = || rows.iter().filter(move |r| r.way == way);
        let over = mine().filter_map(|r| Some(r.each_us - other(r.round, Way::NoRecord)?));
        lines.push(vec![
            way.name().to_string(),
            shown(mine().map(|r| r.each_us), 1),
            shown(mine().filter_map(|r| Some(r.each_us / other(r.round, Way::Raw)?)), 2),
            if way == Way::Record && ways.contains(&Way::NoRecord) { shown(over, 1) } else { "-".into() },
            shown(mine().map(|r| r.seen.peak.hwm_kib / 1024.0), 1),
            shown(mine().map(|r| r.seen.peak.files_kib), 0),
        ]);
    }
    let head = [
        "runner",
        "tree CPU us/job",
        "x raw",
        "over --no-record, us/job",
        "HWM MiB, all of the runner",
        "files KiB",
    ];
    markdown(&head, &lines)
}

fn csv(rows: &[Row], jobs: usize) -> Result<String> {
    let mut text = format!("round,runner,jobs,{},{}\n", super::fixtures::Peak::CSV, super::super::meter::CSV);
    for Row { round, way, seen, .. } in rows {
        writeln!(text, "{round},{},{jobs},{},{}", way.name(), seen.peak.csv(), seen.cost.csv())?;
    }
    Ok(text)
}
