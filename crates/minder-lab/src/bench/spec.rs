//! What a subcommand measures, in words.

use minder_bench::{Case, is_wine};

use crate::chart::Curve;

/// The words of a subcommand, for tables, rows and charts.
#[derive(Clone, Debug)]
pub(super) struct BenchSpec {
    /// The operation that is measured: `wait`. The column of their number is called `waits`.
    pub(super) operation: &'static str,
    /// The column of sizes: `objects`, `parent_mib`.
    pub(super) size: &'static str,
    /// What a size counts, for people: `objects`, `MiB of the parent`.
    pub(super) sizes: &'static str,
    /// Whether cases have kinds, which then have a column.
    pub(super) kinds: bool,
    /// Whether an operation may take less than a nanosecond. Rows and tables then have more digits, and the
    /// chart shows the time of a million operations.
    pub(super) is_tiny: bool,
    /// Whose CPU time is measured: `all threads`.
    pub(super) whose: &'static str,
    /// The title of the chart.
    pub(super) title: &'static str,
    /// The label of the chart's horizontal axis.
    pub(super) axis: &'static str,
    /// Published curves, for comparison.
    pub(super) published: Vec<Curve>,
    /// A remark that accompanies every measurement.
    pub(super) note: Option<&'static str>,
}

impl BenchSpec {
    /// Returns an example for tests, without kinds and a note.
    #[cfg(test)]
    pub(super) fn example() -> Self {
        Self {
            operation: "wait",
            size: "objects",
            sizes: "objects",
            kinds: false,
            is_tiny: false,
            whose: "all threads",
            title: "wait",
            axis: "objects",
            published: Vec::new(),
            note: None,
        }
    }

    /// Returns the name of the column with the number of operations.
    pub(super) fn operations(&self) -> String {
        format!("{}s", self.operation)
    }

    /// Describes a case for the progress line: `wait: epoll, 64 objects`.
    pub(super) fn describe(&self, case: &Case) -> String {
        let kind = case.kind.map(|kind| format!(", {kind}")).unwrap_or_default();
        format!("{}: {}{kind}, {} {}", self.operation, case.mechanism, case.size, self.sizes)
    }
}

/// Returns the remark that accompanies every measurement on this machine.
pub(super) fn note() -> Option<&'static str> {
    is_wine().then_some("under Wine: these are not times of Windows")
}
