//! Measures one exit among many live children.

use minder::Command;

use super::bench::ExitBench;
use crate::case::{Case, Measurement};
use crate::error::Result;
use crate::rounds::Suite;

/// Bounds of the number of exits of one measurement of `one`, which is ten for each child: few
/// children would have to be replaced often.
const EXITS_MIN: usize = 20;
const EXITS_MAX: usize = 200;
/// The number of children that are started between two checks for cancellation.
const START_BATCH: usize = 250;

const ONE: &str = "one";
const BURST: &str = "burst";

/// Measures the exit of one of [`Case::size`] live children: the kill and its observation together.
///
/// A case of kind `one` kills children one by one. A case of kind `burst` kills all at once; it uses
/// the children of the case `one` before it, if mechanism and size are the same.
///
/// ```
/// # #[cfg(unix)] {
/// use minder_bench::{Case, ExitSuite, NoObserver, Results, idle_command, run_rounds};
///
/// let cases = ExitSuite::with_kinds(&Case::grid(&[3], &["floor"]));
/// let mut results = Results::new(&cases);
/// let command = idle_command().expect("Unix has `sleep`");
/// run_rounds(&mut ExitSuite::new(command), &mut results, 1, &mut NoObserver)?;
/// assert!(results.unmeasured().is_empty());
/// # }
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct ExitSuite {
    command: Command,
    /// The children that the case before left, and their mechanism.
    children: Option<(&'static str, ExitBench)>,
}

impl ExitSuite {
    /// The kinds of cases, in the order of measuring.
    pub const KINDS: [&str; 2] = [ONE, BURST];

    /// Makes a suite whose children run this command, which must not exit by itself.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self { command, children: None }
    }

    /// Returns each case once for each kind.
    #[must_use]
    pub fn with_kinds(cases: &[Case]) -> Vec<Case> {
        let kinds = |case: &Case| Self::KINDS.map(|kind| Case { kind: Some(kind), ..*case });
        cases.iter().flat_map(kinds).collect()
    }

    /// Starts children; `None` if it is cancelled before all are started.
    fn fill(
        &self,
        mechanism: &str,
        size: usize,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<ExitBench>> {
        let mut bench = ExitBench::new(mechanism, &self.command)?;
        while bench.live() < size {
            if is_cancelled() {
                return Ok(None);
            }
            bench.fill((bench.live() + START_BATCH).min(size))?;
        }
        Ok(Some(bench))
    }
}

impl Suite for ExitSuite {
    fn measure(
        &mut self,
        case: &Case,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Measurement>> {
        let size = usize::try_from(case.size).unwrap_or(usize::MAX);
        let mut bench = match self.children.take() {
            Some((mechanism, bench)) if mechanism == case.mechanism && bench.live() == size => bench,
            other => {
                // Some mechanisms reap every child, so the others end before one is opened.
                drop(other);
                let Some(bench) = self.fill(case.mechanism, size, is_cancelled)? else { return Ok(None) };
                bench
            }
        };
        if case.kind == Some(BURST) {
            return Ok(Some(Measurement::of(case.size, bench.burst()?)));
        }
        let exits = size.saturating_mul(10).clamp(EXITS_MIN, EXITS_MAX);
        let total = bench.one_by_one(exits)?;
        self.children = Some((case.mechanism, bench));
        Ok(Some(Measurement::of(exits as u64, total)))
    }
}
