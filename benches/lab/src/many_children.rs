//! Thousands of children alive at once: what another child costs then, and what they hold.

use super::meter::{self, Cost};
use super::peers::Runner;
use super::table::{markdown, shown};
use super::{Answer, Bench, round_order};
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use xtask::run;

/// How many slots are left for short jobs while the sleepers hold the others.
const SLOTS: usize = 8;

/// How often the processes of a runner are sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// The cost of a short job with few children alive, and with thousands: the difference of two runs
/// with the same sleepers, of which one has the short jobs on top.
pub(crate) fn live(bench: &Bench) -> Result<Answer> {
    let sleepers = bench.scaled(6_000);
    let short = bench.scaled(10_000);
    let seconds = if bench.quick { 5 } else { 20 };
    let runners: Vec<Runner> = bench.peers.runners.iter().copied().filter(|r| holds_thousands(*r)).collect();
    let mut csv = format!("round,runner,sleepers,short_jobs,{}\n", meter::CSV);
    let mut costs: Vec<(Runner, f64, f64)> = Vec::new();
    for round in 0..bench.rounds {
        bench.round(round);
        for runner in round_order(round, &runners) {
            let mut run = |(sleepers, short): (usize, usize)| -> Result<f64> {
                let sleeping = std::iter::repeat_n(format!("s{seconds}"), sleepers);
                let input = bench.peers.input(sleeping.chain(std::iter::repeat_n("t".into(), short)))?;
                let words = runner.words(&bench.peers, sleepers + SLOTS, &bench.peers.built("child"));
                let cost = meter::measure(&bench.peers, &words, &input)?.checked(sleepers + short)?;
                writeln!(csv, "{round},{},{sleepers},{short},{}", runner.name(), cost.csv())?;
                Ok(cost.tree_us)
            };
            let all = round_order(round, &[(0, short), (sleepers, short), (sleepers, 0)]);
            let mut costs_us = all.into_iter().map(&mut run).collect::<Result<Vec<f64>>>()?;
            if round % 2 == 1 {
                costs_us.reverse();
            }
            let [few, both, asleep] = costs_us[..] else { unreachable!("three runs") };
            let each = f64::from(u32::try_from(short)?);
            costs.push((runner, few / each, (both - asleep) / each));
        }
    }
    let mut lines = Vec::new();
    for runner in runners {
        let mine = || costs.iter().filter(move |c| c.0 == runner);
        lines.push(vec![
            runner.name().to_string(),
            shown(mine().map(|c| c.1), 0),
            shown(mine().map(|c| c.2), 0),
            shown(mine().map(|c| c.2 / c.1), 2),
        ]);
    }
    let with = format!("us/job, {sleepers} alive");
    let head = ["runner", "tree CPU us/job, 8 alive", with.as_str(), "ratio"];
    let remarks = vec![
        format!(
            "{short} short jobs each. With {sleepers} sleepers of {seconds} s alive: a run of sleepers \
             and short jobs, minus a run of the sleepers alone."
        ),
        "raw and xargs wait by waitpid(-1), for which the kernel scans the living children, so they are \
         not a baseline here."
            .into(),
    ];
    Ok(Answer { table: markdown(&head, &lines), remarks, csv })
}

/// The runners that can hold thousands of children within minutes.
fn holds_thousands(runner: Runner) -> bool {
    matches!(runner, Runner::Raw | Runner::Minder | Runner::Xargs)
}

/// Captured children, all alive at once: memory, threads and descriptors of the runner's own
/// processes.
pub(crate) fn many(bench: &Bench) -> Result<Answer> {
    let mut csv = format!(
        "round,runner,children,processes,hwm_kib,largest_hwm_kib,threads,descriptors,lines,{}\n",
        meter::CSV
    );
    let mut lines = Vec::new();
    for children in [bench.scaled(2_000), bench.scaled(6_000)] {
        let mut seen: Vec<(Runner, Peak, Cost)> = Vec::new();
        for round in 0..bench.rounds {
            bench.round(round);
            for runner in round_order(round, &bench.peers.runners)
                .into_iter()
                .filter(|r| holds_thousands(*r) || *r == Runner::RustParallel)
            {
                let (peak, cost) = watched(bench, runner, children)?;
                writeln!(csv, "{round},{},{children},{},{}", runner.name(), peak.csv(), cost.csv())?;
                seen.push((runner, peak, cost));
            }
        }
        for runner in &bench.peers.runners {
            let mine = || seen.iter().filter(|s| s.0 == *runner);
            if mine().next().is_none() {
                continue;
            }
            let column = |of: fn(&Peak) -> f64, decimals| shown(mine().map(|s| of(&s.1)), decimals);
            lines.push(vec![
                runner.name().to_string(),
                children.to_string(),
                column(|p| p.largest_kib / 1024.0, 1),
                column(|p| p.hwm_kib / 1024.0, 1),
                column(|p| p.threads, 0),
                column(|p| p.descriptors, 0),
                column(|p| p.lines, 0),
                shown(mine().map(|s| s.2.tree_us / 1e6), 2),
                shown(mine().map(|s| f64::from(s.2.status)), 0),
            ]);
        }
    }
    let head = [
        "runner",
        "children",
        "HWM MiB, largest process",
        "HWM MiB, all of the runner",
        "threads",
        "descriptors",
        "lines out",
        "tree CPU s",
        "exit",
    ];
    let remarks =
        vec![
        "Each child prints a line, sleeps, prints a line: fewer than two lines per child mean that \
         output was lost.".into(),
        "HWM: VmHWM from /proc of the runner's processes (with guardians, without children), the maximum \
         of samples every 200 ms.".into(),
        "raw and xargs do not capture: their children write to one file.".into(),
    ];
    Ok(Answer { table: markdown(&head, &lines), remarks, csv })
}

/// The most that was seen of a runner's own processes together.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    processes: f64,
    hwm_kib: f64,
    largest_kib: f64,
    threads: f64,
    descriptors: f64,
    lines: f64,
}

impl Peak {
    /// Adds one process, by its /proc/PID/status and the number of its open descriptors.
    fn add(&mut self, status: &str, open: usize) {
        let number = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0)
        };
        self.processes += 1.0;
        self.hwm_kib += number("VmHWM:");
        self.largest_kib = self.largest_kib.max(number("VmHWM:"));
        self.threads += number("Threads:");
        self.descriptors += f64::from(u32::try_from(open).unwrap_or(u32::MAX));
    }

    fn raise(&mut self, other: &Self) {
        self.processes = self.processes.max(other.processes);
        self.hwm_kib = self.hwm_kib.max(other.hwm_kib);
        self.largest_kib = self.largest_kib.max(other.largest_kib);
        self.threads = self.threads.max(other.threads);
        self.descriptors = self.descriptors.max(other.descriptors);
    }

    fn csv(&self) -> String {
        let Self { processes, hwm_kib, largest_kib, threads, descriptors, lines } = self;
        format!("{processes},{hwm_kib},{largest_kib},{threads},{descriptors},{lines}")
    }
}

fn watched(bench: &Bench, runner: Runner, children: usize) -> Result<(Peak, Cost)> {
    let seconds = if bench.quick { 3 } else { 15 };
    let peers = &bench.peers;
    let input = peers.input(std::iter::repeat_n(format!("p{seconds}"), children))?;
    let out = peers.built("output");
    let mut cmd = meter::command(peers, &runner.words(peers, children, &peers.built("child")), &input)?;
    let mut peak = Peak::default();
    let mut known = HashSet::new();
    run::watch(cmd.stdout(std::fs::File::create(&out)?), SAMPLE_INTERVAL, |meter| {
        peak.raise(&look(meter, &mut known))
    })?;
    let text = std::fs::read_to_string(Path::new(&out)).context("the output is gone")?;
    peak.lines = f64::from(u32::try_from(text.lines().count())?);
    // A runner that lost jobs is a result, too: lines and exit status have columns.
    Ok((peak, meter::read(peers)?))
}

/// Looks at the processes below the meter that are not jobs, and adds up those that the last look
/// saw too: a child on its way to its program is still a copy of the runner.
fn look(meter: u32, known: &mut HashSet<String>) -> Peak {
    let mut seen = Peak::default();
    let mut now = HashSet::new();
    let mut todo = children(&meter.to_string());
    while let Some(pid) = todo.pop() {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        if read("comm").trim() == "child" {
            continue;
        }
        todo.extend(children(&pid));
        if known.contains(&pid) {
            seen.add(
                &read("status"),
                std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count),
            );
        }
        now.insert(pid);
    }
    *known = now;
    seen
}

fn children(pid: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().map(String::from).collect::<Vec<_>>()).collect()
}
