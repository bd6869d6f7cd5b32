//! Cost per job: many small jobs, one job, no job at all.

use crate::bench::{Answer, Bench};
use crate::meter;
use crate::peers::Runner;
use crate::programs::{built, input};
use crate::samples::{Numbers, Sample, Samples, fail, pairs};
use crate::table::{markdown, show};
use anyhow::Result;

/// The samples have no further size.
const SIZE: usize = 0;

/// A static child that ends at once.
pub(super) fn tiny(bench: &Bench, (): &()) -> Result<Answer> {
    per_job(bench, &built("tiny"), 10_000)
}

/// What users see.
pub(super) fn truth(bench: &Bench, (): &()) -> Result<Answer> {
    per_job(bench, "/bin/true", 2_000)
}

/// Samples these runners in turn, round after round.
fn rounds(bench: &Bench, runners: &[Runner], sample: impl Fn(Runner) -> Result<Numbers>) -> Result<Samples> {
    let mut samples = Samples::default();
    samples.add_rounds(bench, &pairs(runners, &[SIZE]), |(runner, _)| sample(*runner), fail)?;
    Ok(samples)
}

/// Runs a command with these jobs as lines of standard input, each of which is the only argument of
/// a child.
fn sample(words: &[String], jobs: usize) -> Result<Numbers> {
    let input = input((0..jobs).map(|job| job.to_string()))?;
    let mut numbers = vec![("jobs".into(), f64::from(u32::try_from(jobs)?))];
    numbers.extend(meter::measure(words, &input)?.checked(jobs)?.numbers(""));
    Ok(numbers)
}

/// Returns processor time of the runner and its descendants for each job.
fn tree(sample: &Sample) -> Option<f64> {
    Some(sample.number("tree_us")? / sample.number("jobs")?)
}

fn wall(sample: &Sample) -> Option<f64> {
    Some(sample.number("wall_us")? / sample.number("jobs")?)
}

/// Returns that of the runner alone: the children of raw, in the same round, are subtracted.
fn own(sample: &Sample, raw: &Sample) -> Option<f64> {
    Some(tree(sample)? - (tree(raw)? - raw.number("self_us")? / raw.number("jobs")?))
}

fn per_job(bench: &Bench, child: &str, jobs: usize) -> Result<Answer> {
    let jobs = bench.scaled(jobs);
    let samples = rounds(bench, &bench.peers.runners, |runner| {
        sample(&runner.words(8, child), jobs.min(runner.jobs_max()))
    })?;
    let line = |runner: &Runner| {
        let at = (runner, SIZE);
        let raw = (&Runner::Raw, SIZE);
        vec![
            runner.name().to_string(),
            jobs.min(runner.jobs_max()).to_string(),
            samples.cell(at, (tree, 1.0, 0)),
            show(samples.ratio(at, raw, tree), 2),
            show(samples.paired(at, raw, own), 0),
            show(samples.ratio(at, raw, wall), 2),
            samples.spread(at, wall).map_or_else(String::new, |wall| format!("{:.0}", 1e6 / wall.median)),
        ]
    };
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
    let lines: Vec<_> = bench.peers.runners.iter().map(line).collect();
    Ok(Answer::new(&samples, markdown(&head, &lines), remarks))
}

/// One job by each runner: what it adds to a bare spawn.
pub(super) fn one(bench: &Bench, (): &()) -> Result<Answer> {
    let samples = rounds(bench, &bench.peers.runners, |runner| sample(&runner.words(1, &built("tiny")), 1))?;
    let over = |sample: &Sample, raw: &Sample| Some((wall(sample)? - wall(raw)?) / 1e3);
    let line = |runner: &Runner| {
        let over = samples.paired((runner, SIZE), (&Runner::Raw, SIZE), over);
        vec![
            runner.name().to_string(),
            samples.cell((runner, SIZE), (wall, 1e-3, 2)),
            show(over, 2),
            samples.cell((runner, SIZE), (tree, 1e-3, 2)),
        ]
    };
    let head = ["runner", "wall ms", "wall ms over raw", "tree CPU ms"];
    let lines: Vec<_> = bench.peers.runners.iter().map(line).collect();
    Ok(Answer::new(&samples, markdown(&head, &lines), Vec::new()))
}

/// Start, say the version, end.
pub(super) fn version(bench: &Bench, (): &()) -> Result<Answer> {
    let has_version = |runner: &Runner| runner.version().is_some();
    let runners: Vec<Runner> = bench.peers.runners.iter().copied().filter(has_version).collect();
    let samples = rounds(bench, &runners, |runner| sample(&runner.version().unwrap_or_default(), 0))?;
    let columns = [("CPU ms", ("tree_us", 1e-3, 2)), ("wall ms", ("wall_us", 1e-3, 2))];
    let table = samples.table("program", (&runners, |runner| runner.name().into()), SIZE, &columns);
    Ok(Answer::new(&samples, table, Vec::new()))
}
