//! What a question needs to be answered, and its answer.

use crate::goals::{self, Goal};
use crate::peers::Peers;
use crate::samples::Samples;
use minder_ui::rows::CsvTable;
use std::path::PathBuf;
use xtask::tree;

/// What a question needs to be answered.
pub(crate) struct Bench {
    pub(crate) peers: Peers,
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
}

/// A table for people, and the rows behind it.
pub(crate) struct Answer {
    pub(crate) table: String,
    pub(crate) remarks: Vec<String>,
    pub(crate) rows: CsvTable,
}

/// Returns the directory of tables, rows and charts: that of quick looks is below target, that of
/// full runs is docs/measurements.
pub(crate) fn results(quick: bool) -> PathBuf {
    if quick { tree::target_dir().join("bench") } else { tree::root().join("docs/measurements") }
}

/// Returns the order of candidates in a round: reversed in every other round, since a candidate
/// finds warmer caches after another one, and a busier machine after a heavy one.
pub(crate) fn round_order<T: Copy>(round: usize, all: &[T]) -> Vec<T> {
    if round.is_multiple_of(2) { all.to_vec() } else { all.iter().rev().copied().collect() }
}

impl Bench {
    /// Returns the number to use: the full one, or a tenth for a quick look.
    pub(crate) fn scaled(&self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }

    /// Shows that a round begins. They count from 0 here.
    pub(crate) fn round(&self, number: usize) {
        eprint!("\r  round {} of {} ", number + 1, self.rounds);
        if number + 1 == self.rounds {
            eprintln!();
        }
    }
}

impl Answer {
    /// Returns the answer that samples give, with their rows. What was left out comes before the
    /// remarks.
    pub(crate) fn new(samples: &Samples, table: String, remarks: Vec<String>) -> Self {
        Self { table, remarks: [samples.left_out(), remarks].concat(), rows: samples.rows() }
    }

    /// Returns such an answer with goals above its tables.
    pub(crate) fn with_goals(samples: &Samples, goals: &[Goal], tables: &str, remarks: Vec<String>) -> Self {
        Self::new(samples, goals::above(goals, tables), remarks)
    }
}
