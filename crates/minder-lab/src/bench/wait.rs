//! `minder bench wait`: one wait for one of many objects.

use std::process::ExitCode;

use anyhow::Result;
use minder_bench::{Case, WaitObjects, WaitSuite, waits};

use super::report::measure_and_report;
use super::selection::select_mechanisms;
use super::spec::{BenchSpec, note};
use crate::chart::Curve;
use crate::flags::WaitFlags;
use crate::measuring::Session;

/// Returns the words for tables, rows and charts.
pub(super) fn spec() -> BenchSpec {
    BenchSpec {
        operation: "wait",
        size: "objects",
        sizes: "objects",
        kinds: false,
        is_tiny: false,
        whose: "all threads",
        title: "Waiting for one of many objects",
        axis: "objects that are waited for",
        published: vec![published_pool()],
        note: note(),
    }
}

/// Measures what the flags ask for, and shows it.
pub(super) fn run(flags: &WaitFlags) -> Result<ExitCode> {
    let mechanisms = select_mechanisms(&waits().collect::<Vec<_>>(), &flags.measure)?;
    let sizes = flags.objects.as_ref().map_or(WaitObjects::SIZES, |sizes| &sizes.0);
    let cases = Case::grid(sizes, &mechanisms);
    let session = Session::start()?;
    let mut suite = WaitSuite::new(session.fd_limit());
    measure_and_report(&spec(), &flags.measure, session, &cases, &mut suite)
}

/// Returns the published cost of a pool of threads, for comparison.
fn published_pool() -> Curve {
    // The cost is linear in the number of objects; logarithmic axes show that as a curve.
    let linear = |objects: f64| (objects, 10e3 + 120e3 * (objects - 64.0) / (2048.0 - 64.0));
    let pool = [64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 1024.0, 2048.0].map(linear);
    let points = [(2.0, 1e3), (64.0, 1e3)].into_iter().chain(pool).collect();
    let label = "published: pool of waiter threads, Emacs on Windows, 6-core laptop";
    Curve { published: true, ..Curve::new(label, points) }
}
