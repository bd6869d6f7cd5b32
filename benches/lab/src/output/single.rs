//! One job that writes as fast as it can, into a pipe: beside `cat`, on one processor and on two.

use super::super::peers::{Peers, Runner};
use super::super::table::{markdown, shown};
use super::super::{Answer, Bench, round_order};
use super::fixtures::{Fixtures, Peak, Pipeline, Seen};
use anyhow::{Context, Result, bail};
use std::fmt::Write;

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

    fn play(self, bench: &Bench, bytes: u64, cpus: &str) -> Result<Pipeline> {
        let peers = &bench.peers;
        let flood = vec![peers.built("line_flood"), bytes.to_string()];
        let given = |mut words: Vec<String>, at: usize, flags: &str| {
            words.splice(at..at, flags.split_whitespace().map(String::from));
            words.extend([":::".to_string(), bytes.to_string()]);
            words
        };
        let (feeder, runner) = match self {
            Nothing => (Vec::new(), flood),
            WideNothing => (Vec::new(), widened(peers, flood)),
            Cat => (flood, vec!["cat".to_string()]),
            WideCat => (flood, widened(peers, vec!["cat".to_string()])),
            Minder(flags) => (Vec::new(), given(Runner::Minder.words(peers, 1, &flood[0]), 2, flags)),
            Gnu(flags) => (Vec::new(), given(Runner::Gnu.words(peers, 1, &flood[0]), 1, flags)),
        };
        Ok(Pipeline {
            feeder,
            runner,
            reader: vec![peers.built("reader")],
            input: peers.input(std::iter::empty())?,
            env: Vec::new(),
            cpus: cpus.to_string(),
        })
    }
}

/// The same with larger pipes.
fn widened(peers: &Peers, mut words: Vec<String>) -> Vec<String> {
    words.insert(0, peers.built("widen"));
    words
}

struct Row {
    round: usize,
    cpus: String,
    who: Between,
    bytes: u64,
    wrong: u64,
    seen: Seen,
}

impl Row {
    fn rate(&self) -> f64 {
        as_float(self.bytes) / 1e6 / self.seen.wall.as_secs_f64()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of bytes and blocks, far below 2^52")]
fn as_float(n: u64) -> f64 {
    n as f64
}

/// Everything on one processor, then on two.
pub(super) fn one(bench: &Bench, fixtures: &Fixtures<'_>) -> Result<Answer> {
    let bytes = u64::try_from(bench.scaled(2 << 30))?;
    let sets = processors()?;
    let mut remarks = Vec::new();
    let mut candidates = Vec::new();
    for who in ALL.into_iter().filter(|who| who.here(&bench.peers)) {
        match trial(bench, fixtures, who, &sets[0]) {
            Ok(()) => candidates.push(who),
            Err(why) => remarks.push(format!("left out: {}: {why:#}", who.name())),
        }
    }
    let mut rows = Vec::new();
    for round in 0..bench.rounds {
        bench.round(round);
        for cpus in &sets {
            for who in round_order(round, &candidates) {
                let ([got, wrong], seen) = play(bench, fixtures, who, bytes, cpus)?;
                rows.push(Row { round, cpus: cpus.clone(), who, bytes: got, wrong, seen });
            }
        }
    }
    remarks.extend(said(bytes));
    Ok(Answer { table: table(&sets, &candidates, &rows, bytes), remarks, csv: csv(&rows)? })
}

/// A small job, to see that it works at all.
fn trial(bench: &Bench, fixtures: &Fixtures<'_>, who: Between, cpus: &str) -> Result<()> {
    let bytes = 1 << 20;
    let ([got, wrong], seen) = play(bench, fixtures, who, bytes, cpus)?;
    let tellers = seen.tellers;
    seen.cost.checked(0)?;
    if got != bytes || wrong > 0 || tellers != 1 {
        bail!(
            "of {bytes} bytes {got} came, {wrong} blocks were wrong, {tellers} writers said what they spent"
        );
    }
    Ok(())
}

fn play(
    bench: &Bench,
    fixtures: &Fixtures<'_>,
    who: Between,
    bytes: u64,
    cpus: &str,
) -> Result<([u64; 2], Seen)> {
    let seen = fixtures.run(&who.play(bench, bytes, cpus)?)?;
    let told: Vec<u64> = seen.told.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [got, wrong] = told[..] else { bail!("the reader printed `{}`", seen.told.trim()) };
    Ok(([got, wrong], seen))
}

/// The first processor that we may use, and the first two.
fn processors() -> Result<Vec<String>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let list =
        status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).context("no list of processors")?;
    let mut all = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>()?..=last.parse::<usize>()?);
    }
    let mut sets = vec![all[0].to_string()];
    if let [first, second, ..] = all[..] {
        sets.push(format!("{first},{second}"));
    }
    Ok(sets)
}

fn table(sets: &[String], candidates: &[Between], rows: &[Row], bytes: u64) -> String {
    let mut lines = Vec::new();
    for cpus in sets {
        let cat = |round: usize| rows.iter().find(|r| r.round == round && r.cpus == *cpus && r.who == Cat);
        for who in candidates {
            let mine = || rows.iter().filter(move |r| r.who == *who && r.cpus == *cpus);
            let column = |of: fn(&Row) -> f64, decimals| shown(mine().map(of), decimals);
            lines.push(vec![
                who.name(),
                cpus.clone(),
                column(Row::rate, 0),
                shown(mine().filter_map(|r| Some(r.rate() / cat(r.round)?.rate())), 2),
                column(|r| r.seen.runner_us / 1e6 / (as_float(r.bytes) / f64::from(1 << 30)), 2),
                column(|r| r.seen.peak.largest_kib / 1024.0, 1),
                column(|r| r.seen.peak.hwm_kib / 1024.0, 1),
                column(|r| r.seen.peak.files_kib / 1024.0, 0),
                mine().filter(|r| r.bytes != bytes || r.wrong > 0).count().to_string(),
                mine().map(|r| r.seen.cost.status).max().unwrap_or(0).to_string(),
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

fn csv(rows: &[Row]) -> Result<String> {
    let mut text = format!(
        "round,processors,between,bytes,wrong_blocks,runner_us,pipeline_us,{},{}\n",
        Peak::CSV,
        super::super::meter::CSV
    );
    for row in rows {
        writeln!(
            text,
            "{},{},{},{},{},{},{},{},{}",
            row.round,
            row.cpus.replace(',', "+"),
            row.who.name(),
            row.bytes,
            row.wrong,
            row.seen.runner_us,
            row.seen.wall.as_micros(),
            row.seen.peak.csv(),
            row.seen.cost.csv()
        )?;
    }
    Ok(text)
}
