//! Thousands of children alive at once: what another child costs then, and what they hold.

use crate::bench::{Answer, Bench, round_order};
use crate::meter;
use crate::peers::Runner;
use crate::processes;
use crate::programs::{built, input};
use crate::samples::{Numbers, Sample, Samples, fail, pairs, raise};
use crate::table::markdown;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;
use xtask::run;

/// How many slots are left for short jobs while the sleepers hold the others.
const SLOTS: usize = 8;

/// How often the processes of a runner are sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// The cost of a short job with few children alive, and with thousands: the difference of two runs
/// with the same sleepers, of which one has the short jobs on top.
pub(super) fn live(bench: &Bench, (): &()) -> Result<Answer> {
    let sleepers = bench.scaled(6_000);
    let short = bench.scaled(10_000);
    let seconds = if bench.quick { 5 } else { 20 };
    let runners: Vec<Runner> = bench.peers.runners.iter().copied().filter(|r| holds_thousands(*r)).collect();
    let run = |runner: Runner, (name, sleepers, short): (&str, usize, usize)| -> Result<Numbers> {
        let sleeping = std::iter::repeat_n(format!("s{seconds}"), sleepers);
        let input = input(sleeping.chain(std::iter::repeat_n("t".into(), short)))?;
        let words = runner.words(sleepers + SLOTS, &built("child"));
        Ok(meter::measure(&words, &input)?.checked(sleepers + short)?.numbers(name))
    };
    let runs = [("few_", 0, short), ("both_", sleepers, short), ("asleep_", sleepers, 0)];
    let mut samples = Samples::default();
    let mut done = 0;
    let sample = |(runner, _): (&Runner, usize)| {
        let round = done / runners.len();
        done += 1;
        let mut numbers = vec![("short_jobs".to_string(), f64::from(u32::try_from(short)?))];
        for each in round_order(round, &runs) {
            numbers.extend(run(*runner, each)?);
        }
        Ok(numbers)
    };
    samples.add_rounds(bench, &pairs(&runners, &[sleepers]), sample, fail)?;
    let few = |it: &Sample| Some(it.number("few_tree_us")? / it.number("short_jobs")?);
    let many = |it: &Sample| {
        Some((it.number("both_tree_us")? - it.number("asleep_tree_us")?) / it.number("short_jobs")?)
    };
    let line = |runner: &Runner| {
        let at = (runner, sleepers);
        vec![
            runner.name().to_string(),
            samples.cell(at, (few, 1.0, 0)),
            samples.cell(at, (many, 1.0, 0)),
            samples.cell(at, (|it: &Sample| Some(many(it)? / few(it)?), 1.0, 2)),
        ]
    };
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
    Ok(Answer::new(&samples, markdown(&head, &runners.iter().map(line).collect::<Vec<_>>()), remarks))
}

/// The runners that can hold thousands of children within minutes.
fn holds_thousands(runner: Runner) -> bool {
    matches!(runner, Runner::Raw | Runner::Minder | Runner::Xargs)
}

/// Captured children, all alive at once: memory, threads and descriptors of the runner's own
/// processes.
pub(super) fn many(bench: &Bench, (): &()) -> Result<Answer> {
    let is_asked = |runner: &Runner| holds_thousands(*runner) || *runner == Runner::RustParallel;
    let runners: Vec<Runner> = bench.peers.runners.iter().copied().filter(is_asked).collect();
    let mut samples = Samples::default();
    for children in [bench.scaled(2_000), bench.scaled(6_000)] {
        let sample = |(runner, children): (&Runner, usize)| watched(bench, *runner, children);
        samples.add_rounds(bench, &pairs(&runners, &[children]), sample, fail)?;
    }
    let columns = [
        ("HWM MiB, largest process", ("largest_hwm_kib", 1.0 / 1024.0, 1)),
        ("HWM MiB, all of the runner", ("hwm_kib", 1.0 / 1024.0, 1)),
        ("threads", ("threads", 1.0, 0)),
        ("descriptors", ("descriptors", 1.0, 0)),
        ("lines out", ("lines", 1.0, 0)),
        ("tree CPU s", ("tree_us", 1e-6, 2)),
        ("exit", ("status", 1.0, 0)),
    ];
    let tables: Vec<String> = samples
        .sizes()
        .into_iter()
        .map(|children| {
            let table = samples.table("runner", (&runners, |it| it.name().into()), children, &columns);
            format!("{children} children:\n\n{table}")
        })
        .collect();
    let remarks =
        vec![
        "Each child prints a line, sleeps, prints a line: fewer than two lines per child mean that \
         output was lost.".into(),
        "HWM: VmHWM from /proc of the runner's processes (with guardians, without children), the maximum \
         of samples every 200 ms.".into(),
        "raw and xargs do not capture: their children write to one file.".into(),
    ];
    Ok(Answer::new(&samples, tables.join("\n"), remarks))
}

fn watched(bench: &Bench, runner: Runner, children: usize) -> Result<Numbers> {
    let seconds = if bench.quick { 3 } else { 15 };
    let input = input(std::iter::repeat_n(format!("p{seconds}"), children))?;
    let out = built("output");
    let mut cmd = meter::command(&runner.words(children, &built("child")), &input)?;
    let mut numbers = Numbers::new();
    let mut known = HashSet::new();
    run::watch(cmd.stdout(std::fs::File::create(&out)?), SAMPLE_INTERVAL, |meter| {
        raise(&mut numbers, look(meter, &mut known));
    })?;
    let text = std::fs::read_to_string(Path::new(&out)).context("the output is gone")?;
    numbers.push(("lines".into(), f64::from(u32::try_from(text.lines().count())?)));
    // A runner that lost jobs is a result, too: lines and exit status have columns.
    numbers.extend(meter::read()?.numbers(""));
    Ok(numbers)
}

/// Adds up what the runner's own processes hold.
fn look(meter: u32, known: &mut HashSet<String>) -> Numbers {
    let own = processes::look(meter, &["child"], known).own;
    let each = |number: &dyn Fn(&str) -> f64| own.iter().map(|pid| number(pid)).collect::<Vec<f64>>();
    let memory = each(&|pid| processes::status(pid, "VmHWM").unwrap_or(0.0));
    let threads = each(&|pid| processes::status(pid, "Threads").unwrap_or(0.0));
    let descriptors = each(&|pid| processes::entries(pid, "fd"));
    let numbers = [
        ("processes", processes::sum(&each(&|_| 1.0))),
        ("hwm_kib", processes::sum(&memory)),
        ("largest_hwm_kib", memory.iter().copied().fold(0.0, f64::max)),
        ("threads", processes::sum(&threads)),
        ("descriptors", processes::sum(&descriptors)),
    ];
    numbers.map(|(name, value)| (name.into(), value)).into()
}
