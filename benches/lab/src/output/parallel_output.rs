//! Many jobs that write many lines at once: what a view costs, what it holds, and whether all came.

use super::super::peers::{Peers, Runner};
use super::super::table::{markdown, shown};
use super::super::{Answer, Bench, round_order};
use super::fixtures::{Fixtures, Peak, Pipeline, Seen};
use super::tools::Verdict;
use anyhow::{Result, bail};
use std::fmt::Write;

const JOBS: usize = 64;

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
pub(super) fn grouped(bench: &Bench, fixtures: &Fixtures<'_>) -> Result<Answer> {
    compare(bench, fixtures, &[Raw, Minder(""), Make("-Otarget"), Make("-Oline"), Gnu(""), RustParallel("")])
}

/// In the order of input.
pub(super) fn keep(bench: &Bench, fixtures: &Fixtures<'_>) -> Result<Answer> {
    compare(bench, fixtures, &[Raw, Minder("-k"), Make("-Otarget"), Gnu("-k"), RustParallel("-k")])
}

/// Whole lines as they arrive. Make has no such view: what it calls `line` is a job here.
pub(super) fn lb(bench: &Bench, fixtures: &Fixtures<'_>) -> Result<Answer> {
    compare(bench, fixtures, &[Raw, Minder("--lb"), Gnu("--lb"), Make("-Oline")])
}

/// A file as the job's standard output, which make and GNU parallel give it always.
pub(super) fn spool(bench: &Bench, fixtures: &Fixtures<'_>) -> Result<Answer> {
    compare(bench, fixtures, &[Raw, Minder("--spool"), Minder(""), Make("-Otarget"), Gnu("")])
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

    fn play(self, bench: &Bench, fixtures: &Fixtures<'_>, jobs: usize, bytes: usize) -> Result<Pipeline> {
        let peers = &bench.peers;
        let writer = peers.built("line_writer");
        let runner = match self {
            Raw => Runner::Raw.words(peers, jobs, &writer),
            Minder(flags) => flagged(Runner::Minder.words(peers, jobs, &writer), 2, flags),
            Gnu(flags) => flagged(Runner::Gnu.words(peers, jobs, &writer), 1, flags),
            RustParallel(flags) => flagged(Runner::RustParallel.words(peers, jobs, &writer), 1, flags),
            Make(flags) => make(fixtures, flags, jobs, &writer)?,
        };
        Ok(Pipeline {
            runner,
            reader: vec![peers.built("verify"), jobs.to_string(), bytes.to_string()],
            input: peers.input((0..jobs).map(|n| n.to_string()))?,
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
fn make(fixtures: &Fixtures<'_>, flags: &str, jobs: usize, child: &str) -> Result<Vec<String>> {
    let mut text = String::from("all:");
    (0..jobs).for_each(|n| text.push_str(&format!(" job{n}")));
    text.push_str(&format!("\njob%: ; @{child} $*\n"));
    let file = fixtures.file("makefile", &text)?.display().to_string();
    let line = format!("make --no-print-directory -s -r -R -j{jobs} {flags} -f {file}");
    Ok(line.split_whitespace().map(String::from).collect())
}

/// One contestant's part in one round.
struct Row {
    round: usize,
    who: Candidate,
    seen: Seen,
    verdict: Verdict,
}

impl Row {
    fn gib(&self) -> f64 {
        as_float(self.verdict.bytes) / f64::from(1 << 30)
    }

    /// Processor seconds of the runner for a GiB that arrived.
    fn each(&self) -> f64 {
        self.seen.runner_us / 1e6 / self.gib()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of bytes and lines, far below 2^52")]
fn as_float(n: u64) -> f64 {
    n as f64
}

fn compare(bench: &Bench, fixtures: &Fixtures<'_>, all: &[Candidate]) -> Result<Answer> {
    let bytes = bench.scaled(16 << 20);
    let mut remarks = Vec::new();
    let mut candidates = Vec::new();
    for who in all.iter().copied().filter(|who| who.here(&bench.peers)) {
        match trial(bench, fixtures, who) {
            Ok(()) => candidates.push(who),
            Err(why) => remarks.push(format!("left out: {}: {why:#}", who.name())),
        }
    }
    let mut rows = Vec::new();
    for round in 0..bench.rounds {
        bench.round(round);
        for who in round_order(round, &candidates) {
            let seen = fixtures.run(&who.play(bench, fixtures, JOBS, bytes)?)?;
            let verdict = Verdict::parse(&seen.told)?;
            rows.push(Row { round, who, seen, verdict });
        }
    }
    remarks.extend(said(bytes));
    Ok(Answer { table: table(&candidates, &rows), remarks, csv: csv(&rows)? })
}

/// Three small jobs: a flag that is not known, or a view that is not there, shows before anything
/// is measured.
fn trial(bench: &Bench, fixtures: &Fixtures<'_>, who: Candidate) -> Result<()> {
    let seen = fixtures.run(&who.play(bench, fixtures, 3, 10_000)?)?;
    let verdict = Verdict::parse(&seen.told)?;
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

fn table(candidates: &[Candidate], rows: &[Row]) -> String {
    let minder =
        |round: usize| rows.iter().find(|r| r.round == round && matches!(r.who, Minder(_))).map(Row::each);
    let mut lines = Vec::new();
    for who in candidates {
        let mine = || rows.iter().filter(move |r| r.who == *who);
        let column = |of: fn(&Row) -> f64, decimals| shown(mine().map(of), decimals);
        let most = |of: fn(&Verdict) -> u64| mine().map(|r| of(&r.verdict)).max().unwrap_or(0).to_string();
        lines.push(vec![
            who.name(),
            column(Row::each, 2),
            over(&mine().filter_map(|r| Some(r.each() / minder(r.round)?)).collect::<Vec<_>>()),
            // The verifier makes all lines anew after the end: that is not the runner's time.
            column(|r| as_float(r.verdict.bytes) / r.seen.cost.wall_us, 0),
            column(|r| r.seen.peak.largest_kib / 1024.0, 1),
            column(|r| r.seen.peak.hwm_kib / 1024.0, 1),
            column(|r| r.seen.peak.files_kib / 1024.0, 0),
            most(|v| v.torn),
            most(|v| v.disorder),
            most(|v| v.wrong),
            column(|r| as_float(r.verdict.switches), 0),
            mine().map(|r| r.seen.cost.status).max().unwrap_or(0).to_string(),
        ]);
    }
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
    markdown(&head, &lines)
}

/// Ratios to a contestant that may not be there.
fn over(ratios: &[f64]) -> String {
    if ratios.is_empty() { "-".into() } else { shown(ratios.iter().copied(), 2) }
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

fn csv(rows: &[Row]) -> Result<String> {
    let mut text = format!(
        "round,runner,runner_us,tellers,pipeline_us,{},{},{}\n",
        Verdict::CSV,
        Peak::CSV,
        super::super::meter::CSV
    );
    for Row { round, who, seen, verdict } in rows {
        writeln!(
            text,
            "{round},{},{},{},{},{},{},{}",
            who.name().replace(',', ""),
            seen.runner_us,
            seen.tellers,
            seen.wall.as_micros(),
            verdict.csv(),
            seen.peak.csv(),
            seen.cost.csv()
        )?;
    }
    Ok(text)
}
