//! Whether every byte comes, every time.

use super::kind::{LIGHT, NATIVE, RELAY, STOCK_NIL};
use super::{Emacs, in_units};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use crate::table::markdown;
use anyhow::Result;
use minder_bench::Spread;

const SIZES: [usize; 2] = [8 << 20, 20 << 20];
/// The number of runs of each kind, in all rounds.
const RUNS: usize = 200;
const RUNS_QUICK: usize = 10;
const CONNECTIONS: [&str; 2] = ["pipe", "pty"];
/// Until the sentinel is called; until the process does not live.
const READERS: [&str; 2] = ["sentinel", "live"];
/// With its default settings, a run of Emacs can take minutes.
const KINDS: [Contestant; 4] = [STOCK_NIL, NATIVE, LIGHT, RELAY];

pub(super) fn bytes(bench: &Bench, emacs: &Emacs) -> Result<Answer> {
    let runs = if bench.quick { RUNS_QUICK } else { RUNS }.div_ceil(bench.rounds).to_string();
    let mut samples = Samples::default();
    for (connection, reader) in variants() {
        let which = (&*prefix(connection, reader), &KINDS[..], &SIZES[..]);
        emacs.add_rounds(bench, &mut samples, which, &["bytes", connection, reader, "{}", &runs])?;
    }
    let counts = counts(&samples, &emacs.present(&KINDS));
    let tables = format!(
        "Runs, runs in which something was missing, and the bytes that were missing in them:\n\n{counts}"
    );
    let remarks = vec![
        "Each run compares the MD5 of what the filter got, without decoding, with that of the file that \
         `cat` writes. sentinel: the reader waits until the sentinel is called. live: the reader stops as \
         soon as `process-live-p` (`minder-process-live-p`) is nil, and reads nothing after that, as much \
         code does."
            .into(),
        "Emacs is measured with `process-adaptive-read-buffering` nil only. The default changes when bytes \
         come, but not which, and a run could take minutes."
            .into(),
    ];
    Ok(Answer::with_goals(&samples, &goals_of(&samples), &tables, remarks))
}

fn variants() -> impl Iterator<Item = (&'static str, &'static str)> {
    CONNECTIONS.into_iter().flat_map(|connection| READERS.map(|reader| (connection, reader)))
}

/// Returns what the names of the numbers begin with.
fn prefix(connection: &str, reader: &str) -> String {
    format!("{connection}_{reader}_")
}

/// Returns the sum of a number over everything that was measured with a kind.
fn total(samples: &Samples, kind: Contestant, name: &str) -> Option<f64> {
    let names = variants().map(|(connection, reader)| prefix(connection, reader) + name);
    let parts = names.flat_map(|name| SIZES.map(|size| samples.total((&kind, size), name.as_str())));
    parts.flatten().map(|part| part.median).reduce(|sum, part| sum + part)
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let goal = |kind: Contestant| {
        let figure = total(samples, kind, "failures").and_then(|sum| Spread::of([sum]));
        let aim = if kind == STOCK_NIL { Aim::None } else { Aim::AtMost(0.0) };
        let what = format!("runs in which bytes were missing: {}", kind.title());
        Goal { what, unit: "", figure, aim }
    };
    KINDS.map(goal).into()
}

fn counts(samples: &Samples, kinds: &[Contestant]) -> String {
    let mut head = vec!["connection, reader, size".to_string()];
    head.extend(kinds.iter().map(|kind| kind.title()));
    let cell = |kind: &Contestant, size, prefix: &str| {
        let of = |name: &str| {
            samples.total((kind, size), format!("{prefix}{name}").as_str()).map(|sum| sum.median)
        };
        match (of("runs"), of("failures"), of("missing")) {
            (Some(runs), Some(failures), Some(missing)) => format!("{runs}: {failures}, {missing}"),
            _ => "–".into(),
        }
    };
    let mut rows = Vec::new();
    for (connection, reader) in variants() {
        for size in SIZES {
            let mut row = vec![format!("{connection}, {reader}, {}", in_units(size))];
            row.extend(kinds.iter().map(|kind| cell(kind, size, &prefix(connection, reader))));
            rows.push(row);
        }
    }
    markdown(&head.iter().map(String::as_str).collect::<Vec<_>>(), &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_all_rounds_and_sizes_are_counted() {
        let mut samples = Samples::default();
        for (round, size, failures) in [(0, SIZES[0], 0.0), (0, SIZES[1], 1.0), (1, SIZES[1], 2.0)] {
            let numbers = [("runs", 5.0), ("failures", failures), ("missing", failures * 10.0)];
            let numbers = numbers.map(|(name, value)| (format!("pty_live_{name}"), value)).to_vec();
            samples.add(round, (&NATIVE, size), numbers);
        }
        assert_eq!(total(&samples, NATIVE, "failures"), Some(3.0));
        assert_eq!(total(&samples, LIGHT, "failures"), None);
        let table = counts(&samples, &[NATIVE]);
        assert!(
            table.ends_with("| pty, live, 8 MiB | 5: 0, 0 |\n| pty, live, 20 MiB | 10: 3, 30 |\n"),
            "{table}"
        );
    }
}
