//! Many jobs that write many lines at once: what a view costs, what it holds, and whether all came.

use super::fixtures::{Fixtures, Pipeline, seconds_per_gib};
use super::tools::Verdict;
use crate::bench::{Answer, Bench};
use crate::peers::{Peers, Runner};
use crate::programs::{built, input};
use crate::samples::{Numbers, Sample, Samples, fail};
use crate::table::{markdown, show};
use anyhow::{Result, bail};

const JOBS: usize = 64;

/// The samples have no further size.
const SIZE: usize = 0;

/// A runner with the flags that ask for a view.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Candidate {
    /// No capture: all children write into the one pipe. What is left of a runner's cost then.
    Raw,
    Minder(&'static str),
    Gnu(&'static str),
    Make(&'static str),
    RustParallel(&'static str),
}

use Candidate::{Gnu, Make, Minder, Raw, RustParallel};

/// Each job when it ends.
pub(super) fn grouped(bench: &Bench, (): &()) -> Result<Answer> {
    compare(bench, &[Raw, Minder(""), Make("-Otarget"), Make("-Oline"), Gnu(""), RustParallel("")])
}

/// In the order of input.
pub(super) fn keep(bench: &Bench, (): &()) -> Result<Answer> {
    compare(bench, &[Raw, Minder("-k"), Make("-Otarget"), Gnu("-k"), RustParallel("-k")])
}

/// Whole lines as they arrive. Make has no such view: what it calls `line` is a job here.
pub(super) fn lb(bench: &Bench, (): &()) -> Result<Answer> {
    compare(bench, &[Raw, Minder("--lb"), Gnu("--lb"), Make("-Oline")])
}

/// A file as the job's standard output, which make and GNU parallel give it always.
pub(super) fn spool(bench: &Bench, (): &()) -> Result<Answer> {
    compare(bench, &[Raw, Minder("--spool"), Minder(""), Make("-Otarget"), Gnu("")])
}

impl Candidate {
    fn name(self) -> String {
        let (name, flags) = match self {
            Raw => ("raw vfork, no capture", ""),
            Minder(flags) => ("minder run", flags),
            Gnu(flags) => ("GNU parallel", flags),
            Make(flags) => ("make", flags),
            RustParallel(flags) => ("rust-parallel", flags),
        };
        format!("{name} {flags}").trim().to_string()
    }

    /// Whether it is here at all.
    fn here(self, peers: &Peers) -> bool {
        let runner = match self {
            Raw => Runner::Raw,
            Minder(_) => Runner::Minder,
            Gnu(_) => Runner::Gnu,
            RustParallel(_) => Runner::RustParallel,
            Make(_) => return xtask::run::find("make").is_some(),
        };
        peers.runners.contains(&runner)
    }

    fn play(self, fixtures: &Fixtures, jobs: usize, bytes: usize) -> Result<Pipeline> {
        let writer = built("line_writer");
        let runner = match self {
            Raw => Runner::Raw.words(jobs, &writer),
            Minder(flags) => flagged(Runner::Minder.words(jobs, &writer), 2, flags),
            Gnu(flags) => flagged(Runner::Gnu.words(jobs, &writer), 1, flags),
            RustParallel(flags) => flagged(Runner::RustParallel.words(jobs, &writer), 1, flags),
            Make(flags) => make(fixtures, flags, jobs, &writer)?,
        };
        Ok(Pipeline {
            runner,
            reader: vec![built("verify"), jobs.to_string(), bytes.to_string()],
            input: input((0..jobs).map(|n| n.to_string()))?,
            env: vec![("LINE_WRITER_BYTES", bytes.to_string())],
            ..Pipeline::default()
        })
    }
}

/// Puts flags behind the first words.
fn flagged(mut words: Vec<String>, at: usize, flags: &str) -> Vec<String> {
    words.splice(at..at, flags.split_whitespace().map(String::from));
    words
}

/// A makefile with a target for each job. Make starts a plain command without a shell.
fn make(fixtures: &Fixtures, flags: &str, jobs: usize, child: &str) -> Result<Vec<String>> {
    let mut text = String::from("all:");
    (0..jobs).for_each(|n| text.push_str(&format!(" job{n}")));
    text.push_str(&format!("\njob%: ; @{child} $*\n"));
    let file = fixtures.file("makefile", &text)?.display().to_string();
    let line = format!("make --no-print-directory -s -r -R -j{jobs} {flags} -f {file}");
    Ok(line.split_whitespace().map(String::from).collect())
}

/// Returns the rate without the time after the end, in which the verifier makes all lines anew.
fn rate(sample: &Sample) -> Option<f64> {
    Some(sample.number("bytes")? / sample.number("wall_us")?)
}

fn compare(bench: &Bench, all: &[Candidate]) -> Result<Answer> {
    let bytes = bench.scaled(16 << 20);
    let fixtures = Fixtures::new()?;
    let mut samples = Samples::default();
    let all: Vec<(Candidate, String)> =
        all.iter().filter(|who| who.here(&bench.peers)).map(|who| (*who, who.name())).collect();
    for (who, name) in &all {
        if let Err(why) = trial(&fixtures, *who) {
            samples.leave_out(name, format!("{why:#}"));
        }
    }
    let points: Vec<(&String, usize)> = all.iter().map(|(_, name)| (name, SIZE)).collect();
    let sample = |(name, _): (&String, usize)| {
        let who = all.iter().find(|(_, known)| known == name).map_or(Raw, |(who, _)| *who);
        one(&fixtures, who, bytes)
    };
    samples.add_rounds(bench, &points, sample, fail)?;
    Ok(Answer::new(&samples, table(&samples, &all), said(bytes)))
}

fn one(fixtures: &Fixtures, who: Candidate, bytes: usize) -> Result<Numbers> {
    let seen = fixtures.run(&who.play(fixtures, JOBS, bytes)?)?;
    let mut numbers = vec![("tellers".into(), f64::from(u32::try_from(seen.tellers)?))];
    numbers.extend(Verdict::parse(&seen.printed)?.numbers());
    Ok(seen.numbers(numbers))
}

/// Three small jobs: a flag that is not known, or a view that is not there, shows before anything
/// is measured.
fn trial(fixtures: &Fixtures, who: Candidate) -> Result<()> {
    let seen = fixtures.run(&who.play(fixtures, 3, 10_000)?)?;
    let verdict = Verdict::parse(&seen.printed)?;
    let tellers = seen.tellers;
    seen.cost.checked(0)?;
    if tellers != 3 {
        bail!("{tellers} of three jobs said what they spent");
    }
    if who != Raw && !verdict.good() {
        bail!("three jobs of 10,000 bytes gave {verdict:?}");
    }
    Ok(())
}

fn table(samples: &Samples, all: &[(Candidate, String)]) -> String {
    let minder = all.iter().find(|(who, _)| matches!(who, Minder(_))).map_or("", |(_, name)| name);
    let line = |(_, name): &(Candidate, String)| {
        let at = (name, SIZE);
        let most =
            |number: &str| samples.spread(at, number).map_or_else(String::new, |it| it.max.to_string());
        vec![
            name.clone(),
            samples.cell(at, (seconds_per_gib, 1.0, 2)),
            show(samples.ratio(at, (minder, SIZE), seconds_per_gib), 2),
            samples.cell(at, (rate, 1.0, 0)),
            samples.cell(at, ("largest_hwm_kib", 1.0 / 1024.0, 1)),
            samples.cell(at, ("hwm_kib", 1.0 / 1024.0, 1)),
            samples.cell(at, ("files_kib", 1.0 / 1024.0, 0)),
            most("torn"),
            most("disorder"),
            most("wrong_jobs"),
            samples.cell(at, ("switches", 1.0, 0)),
            most("status"),
        ]
    };
    let head = [
        "runner",
        "runner CPU s/GiB",
        "x minder",
        "MB/s",
        "HWM MiB, largest process",
        "HWM MiB, all of the runner",
        "files MiB",
        "torn lines",
        "out of order",
        "wrong jobs",
        "job switches",
        "exit",
    ];
    markdown(&head, &all.iter().map(line).collect::<Vec<_>>())
}

fn said(bytes: usize) -> Vec<String> {
    vec![
        format!(
            "{JOBS} jobs of {bytes} bytes each, all at once, in lines of at most 200 bytes, written in \
             chunks of odd sizes from 1 byte to 100 KiB; through a pipe into a verifier that checks \
             every byte."
        ),
        "runner CPU: by wait4 of the runner's whole tree, minus the time that the children report \
         between the start of main and their exit. It includes the start and exit of the children; raw \
         has little else. Median [minimum-maximum]; x minder: to the first minder in the same round."
            .into(),
        "HWM: VmHWM of the runner's processes (with guardians, without children), sampled every 50 ms. \
         files: the length of all files in the directories for temporary files and for the record, and \
         of open unnamed files."
            .into(),
        "torn, out of order, wrong, exit: the maximum of all rounds. Job switches: as many as jobs if \
         each job's output is contiguous."
            .into(),
    ]
}
