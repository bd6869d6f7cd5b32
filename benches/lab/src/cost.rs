//! Cost per job: many small jobs, one job, no job at all.

use super::meter::{self, Cost};
use super::peers::Runner;
use super::table::{markdown, shown};
use super::{Answer, Bench, round_order};
use anyhow::Result;
use std::fmt::Write;

/// One runner's part in one round.
struct Row {
    round: usize,
    runner: Runner,
    jobs: usize,
    cost: Cost,
}

impl Row {
    fn each(&self, us: f64) -> f64 {
        us / self.count()
    }

    fn count(&self) -> f64 {
        f64::from(u32::try_from(self.jobs).unwrap_or(u32::MAX))
    }
}

/// A static child that ends at once.
pub(crate) fn tiny(bench: &Bench) -> Result<Answer> {
    per_job(bench, &bench.peers.built("tiny"), 10_000)
}

/// What users see.
pub(crate) fn truth(bench: &Bench) -> Result<Answer> {
    per_job(bench, "/bin/true", 2_000)
}

/// Every runner in turn, round after round, with lines on standard input that become the child's
/// only argument.
fn rounds(bench: &Bench, child: &str, at_once: usize, jobs: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for round in 0..bench.rounds {
        bench.round(round);
        for runner in round_order(round, &bench.peers.runners) {
            let jobs = jobs.min(runner.jobs_max());
            let input = bench.peers.input((0..jobs).map(|n| n.to_string()))?;
            let words = runner.words(&bench.peers, at_once, child);
            let cost = meter::measure(&bench.peers, &words, &input)?.checked(jobs)?;
            rows.push(Row { round, runner, jobs, cost });
        }
    }
    Ok(rows)
}

fn per_job(bench: &Bench, child: &str, jobs: usize) -> Result<Answer> {
    let jobs = bench.scaled(jobs);
    let rows = rounds(bench, child, 8, jobs)?;
    // The floor of the same round: paired with every other row of it.
    let raw = |row: &Row| rows.iter().find(|r| r.round == row.round && r.runner == Runner::Raw);
    let mut lines = Vec::new();
    for runner in &bench.peers.runners {
        let mine: Vec<&Row> = rows.iter().filter(|r| r.runner == *runner).collect();
        let ratio =
            |of: fn(&Row) -> f64| shown(mine.iter().filter_map(|row| Some(of(row) / of(raw(row)?))), 2);
        let tree: fn(&Row) -> f64 = |r| r.each(r.cost.tree_us);
        let wall: fn(&Row) -> f64 = |r| r.each(r.cost.wall_us);
        let own = mine.iter().filter_map(|row| {
            let floor = raw(row)?;
            Some(tree(row) - (tree(floor) - floor.each(floor.cost.self_us)))
        });
        lines.push(vec![
            runner.name().to_string(),
            mine.first().map_or(0, |r| r.jobs).to_string(),
            shown(mine.iter().map(|r| tree(r)), 0),
            ratio(tree),
            shown(own, 0),
            ratio(wall),
            format!(
                "{:.0}",
                minder_bench::median(mine.iter().map(|r| 1e6 / wall(r)).collect()).unwrap_or(0.0)
            ),
        ]);
    }
    let head = ["runner", "jobs", "tree CPU us/job", "x raw", "runner CPU us/job", "wall x raw", "jobs/s"];
    let remarks = vec![
        "tree CPU: the runner and its descendants, by wait4. Ratios: to raw in the same round. Median \
         [minimum-maximum]."
            .into(),
        "runner CPU: tree CPU minus the cost of raw's children in the same round (raw's tree minus raw's \
         own time, which is in ticks of 10 ms). It includes every process of the runner, with its \
         guardians, and the extra cost of its way to start children."
            .into(),
        "The numbers include the start and exit of the runner, which weigh more with fewer jobs.".into(),
    ];
    Ok(Answer { table: markdown(&head, &lines), remarks, csv: csv(&rows)? })
}

/// One job by each runner: what it adds to a bare spawn.
pub(crate) fn one(bench: &Bench) -> Result<Answer> {
    let rows = rounds(bench, &bench.peers.built("tiny"), 1, 1)?;
    let raw = |round: usize| rows.iter().find(|r| r.round == round && r.runner == Runner::Raw);
    let mut lines = Vec::new();
    for runner in &bench.peers.runners {
        let mine: Vec<&Row> = rows.iter().filter(|r| r.runner == *runner).collect();
        let over = mine.iter().filter_map(|r| Some((r.cost.wall_us - raw(r.round)?.cost.wall_us) / 1e3));
        lines.push(vec![
            runner.name().to_string(),
            shown(mine.iter().map(|r| r.cost.wall_us / 1e3), 2),
            shown(over, 2),
            shown(mine.iter().map(|r| r.cost.tree_us / 1e3), 2),
        ]);
    }
    let head = ["runner", "wall ms", "wall ms over raw", "tree CPU ms"];
    Ok(Answer { table: markdown(&head, &lines), remarks: Vec::new(), csv: csv(&rows)? })
}

/// Start, say the version, end.
pub(crate) fn version(bench: &Bench) -> Result<Answer> {
    let runners: Vec<Runner> =
        bench.peers.runners.iter().copied().filter(|r| r.version(&bench.peers).is_some()).collect();
    let input = bench.peers.input(std::iter::empty())?;
    let mut rows = Vec::new();
    for round in 0..bench.rounds {
        bench.round(round);
        for runner in round_order(round, &runners) {
            let Some(words) = runner.version(&bench.peers) else { continue };
            let cost = meter::measure(&bench.peers, &words, &input)?.checked(0)?;
            rows.push(Row { round, runner, jobs: 0, cost });
        }
    }
    let mut lines = Vec::new();
    for runner in runners {
        let mine = || rows.iter().filter(move |r| r.runner == runner);
        lines.push(vec![
            runner.name().to_string(),
            shown(mine().map(|r| r.cost.tree_us / 1e3), 2),
            shown(mine().map(|r| r.cost.wall_us / 1e3), 2),
        ]);
    }
    let table = markdown(&["program", "CPU ms", "wall ms"], &lines);
    Ok(Answer { table, remarks: Vec::new(), csv: csv(&rows)? })
}

fn csv(rows: &[Row]) -> Result<String> {
    let mut text = format!("round,runner,jobs,{}\n", meter::CSV);
    for row in rows {
        writeln!(text, "{},{},{},{}", row.round, row.runner.name(), row.jobs, row.cost.csv())?;
    }
    Ok(text)
}
