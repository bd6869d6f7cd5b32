//! One job that writes as fast as it can, into a pipe: minder and `cat`, on one processor and on
//! two.

use super::fixtures::{Fixtures, Pipeline, Seen, seconds_per_gib};
use crate::bench::{Answer, Bench};
use crate::peers::{Peers, Runner};
use crate::processes::processors;
use crate::programs::{built, input};
use crate::samples::{Numbers, Sample, Samples, fail};
use crate::table::{markdown, show};
use anyhow::{Result, bail};

/// The samples have no further size.
const SIZE: usize = 0;

/// What stands between the writer and the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    /// The same pipes as in the next but one.
    WideNothing,
    Cat,
    /// With pipes of the size that minder gives them.
    WideCat,
    Minder(&'static str),
    Gnu(&'static str),
}

use Between::{Cat, Gnu, Minder, Nothing, WideCat, WideNothing};

const ALL: [Between; 9] =
    [Nothing, WideNothing, Cat, WideCat, Minder(""), Minder("-k"), Minder("--lb"), Gnu("--lb"), Gnu("")];

impl Between {
    fn name(self) -> String {
        match self {
            Nothing => "nothing".into(),
            WideNothing => "nothing, pipe of 1 MiB".into(),
            Cat => "cat".into(),
            WideCat => "cat, pipes of 1 MiB".into(),
            Minder(flags) => format!("minder run {flags}").trim().to_string(),
            Gnu(flags) => format!("GNU parallel {flags}").trim().to_string(),
        }
    }

    fn here(self, peers: &Peers) -> bool {
        match self {
            Nothing | WideNothing | Cat | WideCat => true,
            Minder(_) => peers.runners.contains(&Runner::Minder),
            Gnu(_) => peers.runners.contains(&Runner::Gnu),
        }
    }

    fn play(self, bytes: u64, cpus: &str) -> Result<Pipeline> {
        let flood = vec![built("line_flood"), bytes.to_string()];
        let given = |mut words: Vec<String>, at: usize, flags: &str| {
            words.splice(at..at, flags.split_whitespace().map(String::from));
            words.extend([":::".to_string(), bytes.to_string()]);
            words
        };
        let (feeder, runner) = match self {
            Nothing => (Vec::new(), flood),
            WideNothing => (Vec::new(), widened(flood)),
            Cat => (flood, vec!["cat".to_string()]),
            WideCat => (flood, widened(vec!["cat".to_string()])),
            Minder(flags) => (Vec::new(), given(Runner::Minder.words(1, &flood[0]), 2, flags)),
            Gnu(flags) => (Vec::new(), given(Runner::Gnu.words(1, &flood[0]), 1, flags)),
        };
        Ok(Pipeline {
            feeder,
            runner,
            reader: vec![built("reader")],
            input: input(std::iter::empty())?,
            env: Vec::new(),
            cpus: cpus.to_string(),
        })
    }
}

/// The same with larger pipes.
fn widened(mut words: Vec<String>) -> Vec<String> {
    words.insert(0, built("widen"));
    words
}

/// Returns megabytes per second.
fn rate(sample: &Sample) -> Option<f64> {
    Some(sample.number("bytes")? / sample.number("pipeline_us")?)
}

/// Everything on one processor, then on two.
pub(super) fn one(bench: &Bench, (): &()) -> Result<Answer> {
    let bytes = u64::try_from(bench.scaled(2 << 30))?;
    let fixtures = Fixtures::new()?;
    let sets = sets()?;
    let mut samples = Samples::default();
    let all: Vec<(Between, String)> =
        ALL.into_iter().filter(|who| who.here(&bench.peers)).map(|who| (who, who.name())).collect();
    for (who, name) in &all {
        if let Err(why) = trial(&fixtures, *who, &sets[0]) {
            samples.leave_out(name, format!("{why:#}"));
        }
    }
    let with = |cpus| all.iter().map(move |(_, name)| (name, cpus, SIZE));
    let points: Vec<(&String, &str, usize)> = sets.iter().map(String::as_str).flat_map(with).collect();
    let sample = |(name, cpus, _): (&String, &str, usize)| {
        let who = all.iter().find(|(_, known)| known == name).map_or(Nothing, |(who, _)| *who);
        let ([got, wrong], seen) = play(&fixtures, who, bytes, cpus)?;
        Ok(seen.numbers(numbers(got, wrong)))
    };
    samples.add_rounds(bench, &points, sample, fail)?;
    Ok(Answer::new(&samples, table(&samples, &sets, &all, bytes), said(bytes)))
}

#[expect(clippy::cast_precision_loss, reason = "counts of bytes and blocks, far below 2^52")]
fn numbers(got: u64, wrong: u64) -> Numbers {
    vec![("bytes".into(), got as f64), ("wrong_blocks".into(), wrong as f64)]
}

/// A small job, to see that it works at all.
fn trial(fixtures: &Fixtures, who: Between, cpus: &str) -> Result<()> {
    let bytes = 1 << 20;
    let ([got, wrong], seen) = play(fixtures, who, bytes, cpus)?;
    let tellers = seen.tellers;
    seen.cost.checked(0)?;
    if got != bytes || wrong > 0 || tellers != 1 {
        bail!(
            "of {bytes} bytes {got} came, {wrong} blocks were wrong, {tellers} writers said what they spent"
        );
    }
    Ok(())
}

fn play(fixtures: &Fixtures, who: Between, bytes: u64, cpus: &str) -> Result<([u64; 2], Seen)> {
    let seen = fixtures.run(&who.play(bytes, &cpus.replace('+', ","))?)?;
    let printed: Vec<u64> = seen.printed.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [got, wrong] = printed[..] else { bail!("the reader printed `{}`", seen.printed.trim()) };
    Ok(([got, wrong], seen))
}

/// The first processor that we may use, and the first two.
fn sets() -> Result<Vec<String>> {
    let all = processors()?;
    let mut sets = vec![all[0].to_string()];
    if let [first, second, ..] = all[..] {
        sets.push(format!("{first}+{second}"));
    }
    Ok(sets)
}

fn table(samples: &Samples, sets: &[String], all: &[(Between, String)], bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a number of bytes, far below 2^52")]
    let is_wrong = |it: &Sample| {
        let has_all = it.number("bytes")? >= bytes as f64;
        Some(f64::from(!has_all || it.number("wrong_blocks")? > 0.0))
    };
    let mut lines = Vec::new();
    for cpus in sets {
        for (_, name) in all {
            let at = (name, cpus.as_str(), SIZE);
            let cat = (Cat.name(), cpus.as_str(), SIZE);
            let status = samples.spread(at, "status");
            lines.push(vec![
                name.clone(),
                cpus.clone(),
                samples.cell(at, (rate, 1.0, 0)),
                show(samples.ratio(at, (&cat.0, cat.1, cat.2), rate), 2),
                samples.cell(at, (seconds_per_gib, 1.0, 2)),
                samples.cell(at, ("largest_hwm_kib", 1.0 / 1024.0, 1)),
                samples.cell(at, ("hwm_kib", 1.0 / 1024.0, 1)),
                samples.cell(at, ("files_kib", 1.0 / 1024.0, 0)),
                samples.total(at, is_wrong).map_or_else(String::new, |sum| sum.median.to_string()),
                status.map_or_else(String::new, |status| status.max.to_string()),
            ]);
        }
    }
    let head = [
        "between writer and reader",
        "processors",
        "MB/s",
        "x cat",
        "CPU s/GiB",
        "HWM MiB, largest process",
        "HWM MiB, all of the runner",
        "files MiB",
        "wrong rounds",
        "exit",
    ];
    markdown(&head, &lines)
}

fn said(bytes: u64) -> Vec<String> {
    vec![
        format!(
            "One job of {bytes} bytes, written and read in blocks of 64 KiB. Writer, runner and reader \
             are on the processors that the column names (taskset). x cat: the rate divided by that of \
             `writer | cat | reader` in the same round. Pipes have 64 KiB. minder enlarges its own to 1 \
             MiB; compare it with the contestants whose names mention 1 MiB. With two processors, rates \
             have two modes, which depend on how the kernel places the processes: see the rows."
        ),
        "MB/s: from before the first start to the last exit. CPU: of the processes between writer and \
         reader, including their start and that of the writer, without the writer's own time."
            .into(),
        "HWM, files: sampled every 50 ms. files: all files in the directories for temporary files and \
         for the record, and open unnamed files. Wrong rounds: bytes were missing, or blocks out of order."
            .into(),
    ]
}
