//! What the record costs a job: tiny jobs with it and without, and the floor.

use super::fixtures::{Fixtures, Pipeline};
use crate::bench::{Answer, Bench};
use crate::peers::Runner;
use crate::processes::started;
use crate::programs::{built, input};
use crate::samples::{Numbers, Sample, Samples, fail, pairs};
use crate::table::{markdown, show};
use anyhow::{Result, bail};

/// The samples have no further size.
const SIZE: usize = 0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Raw,
    Record,
    NoRecord,
}

const ALL: [Way; 3] = [Way::Raw, Way::Record, Way::NoRecord];

impl AsRef<str> for Way {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw vfork",
            Self::Record => "minder run",
            Self::NoRecord => "minder run --no-record",
        }
    }

    fn play(self, jobs: usize) -> Result<Pipeline> {
        let runner = if self == Self::Raw { Runner::Raw } else { Runner::Minder };
        let mut words = runner.words(8, &built("tiny"));
        if self == Self::NoRecord {
            words.insert(2, "--no-record".into());
        }
        let input = input((0..jobs).map(|n| n.to_string()))?;
        Ok(Pipeline { runner: words, input, ..Pipeline::default() })
    }
}

/// The three in turn.
pub(super) fn record(bench: &Bench, (): &()) -> Result<Answer> {
    let jobs = bench.scaled(10_000);
    let fixtures = Fixtures::new()?;
    let mut samples = Samples::default();
    let here = |way: &Way| *way == Way::Raw || bench.peers.runners.contains(&Runner::Minder);
    let ways: Vec<Way> = ALL.into_iter().filter(here).collect();
    for way in &ways {
        if let Err(why) = fixtures.run(&way.play(3)?)?.cost.checked(0) {
            samples.leave_out(way, format!("{why:#}"));
        }
    }
    let sample = |(way, _): (&Way, usize)| one(&fixtures, *way, jobs);
    samples.add_rounds(bench, &pairs(&ways, &[SIZE]), sample, fail)?;
    let remarks = vec![
        format!(
            "{jobs} jobs of a static child that exits immediately, 8 at once, output to /dev/null. tree CPU: \
             the runner and its descendants, by wait4. Ratios and differences within the same round. Median \
             [minimum-maximum]."
        ),
        "files: the maximum in the directories for temporary files and for the record, sampled every 50 ms."
            .into(),
    ];
    Ok(Answer::new(&samples, table(&samples, &ways), remarks))
}

fn one(fixtures: &Fixtures, way: Way, jobs: usize) -> Result<Numbers> {
    let before = started();
    let seen = fixtures.run(&way.play(jobs)?)?;
    if started() < before + jobs {
        bail!("{} started fewer processes than it had jobs", way.name());
    }
    seen.cost.clone().checked(0)?;
    Ok(seen.numbers(vec![("jobs".into(), f64::from(u32::try_from(jobs)?))]))
}

/// Returns processor time of the whole tree for each job.
fn each(sample: &Sample) -> Option<f64> {
    Some(sample.number("tree_us")? / sample.number("jobs")?)
}

fn table(samples: &Samples, ways: &[Way]) -> String {
    let line = |way: &Way| {
        let at = (way, SIZE);
        let more = |one: &Sample, other: &Sample| Some(each(one)? - each(other)?);
        let over = if *way == Way::Record { samples.paired(at, (&Way::NoRecord, SIZE), more) } else { None };
        vec![
            way.name().to_string(),
            samples.cell(at, (each, 1.0, 1)),
            show(samples.ratio(at, (&Way::Raw, SIZE), each), 2),
            show(over, 1),
            samples.cell(at, ("hwm_kib", 1.0 / 1024.0, 1)),
            samples.cell(at, ("files_kib", 1.0, 0)),
        ]
    };
    let head = [
        "runner",
        "tree CPU us/job",
        "x raw",
        "over --no-record, us/job",
        "HWM MiB, all of the runner",
        "files KiB",
    ];
    markdown(&head, &ways.iter().map(line).collect::<Vec<_>>())
}
