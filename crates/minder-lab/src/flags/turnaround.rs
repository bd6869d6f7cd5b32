//! Flags of `minder bench turnaround`.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, value_parser};

use super::file_name::file_name;
use super::output::{EACH_CSV, EACH_JSON, OutputFlags};
use super::sizes::{Sizes, sizes_up_to};

/// Flags of `minder bench turnaround`.
#[derive(Debug, Args)]
#[command(mut_arg("csv", |csv| csv.help(EACH_CSV)), mut_arg("json", |json| json.help(EACH_JSON)))]
#[command(mut_arg("svg", |svg| svg.help(
    "Also write charts of the medians over the number of computations, as SVG"
)))]
pub(crate) struct TurnaroundFlags {
    /// Take at most about a minute: 10 ms, 2, 8 and 17 computations, once.
    #[arg(long, conflicts_with_all = ["full", "minutes"])]
    pub(crate) quick: bool,

    /// Measure everything, which takes hours; an interrupted run is continued by the same command.
    ///
    /// The measurements are kept in a private file of the state directory, or in that of --results.
    #[arg(long)]
    pub(crate) full: bool,

    /// The most time that all runs may take in theory [default: 10; with --quick 1]
    ///
    /// Runs with long computations, and then repetitions, are left out until the others fit. If not
    /// even one repetition does, the greatest numbers of computations are left out, then degrees,
    /// then workloads. A line on stderr lists them.
    #[arg(long, value_name = "N", conflicts_with = "full")]
    #[arg(value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) minutes: Option<u64>,

    /// Keep the measurements in this file, and continue it: what it has is not measured again.
    ///
    /// The process locks an empty file beside it, whose name also ends in `.lock`. That file stays.
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().try_map(file_name))]
    pub(crate) results: Option<PathBuf>,

    /// Remove what the file of the measurements has, and start again.
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Measure only this workload: cpu, loops, io or mixed; may be given several times.
    #[arg(long, value_name = "NAME", hide_possible_values = true)]
    #[arg(value_parser = ["cpu", "loops", "io", "mixed"])]
    pub(crate) workload: Vec<String>,

    /// Measure only this form: serial, threads, children or timers; may be given several times.
    #[arg(long, value_name = "NAME", hide_possible_values = true)]
    #[arg(value_parser = ["serial", "threads", "children", "timers"])]
    pub(crate) runner: Vec<String>,

    /// Length of the first computation in milliseconds; computation I takes I times as long [default:
    /// 10,30,90; with --full also 270,810,2430]
    #[arg(long, value_name = "LIST", value_parser = bounded::<60_000>)]
    pub(crate) bias: Option<Sizes>,

    /// Numbers of computations [default: 2,5,8,11,14,17; with --equal 8,16,32]
    #[arg(long, value_name = "LIST", value_parser = bounded::<1_000>)]
    pub(crate) count: Option<Sizes>,

    /// How many run at once [default: 2,8,25; with --full 1,2,4,8,17,25]
    ///
    /// The greatest degree stands for all that are not less than the number of computations.
    #[arg(long, value_name = "LIST", value_parser = bounded::<1_000>)]
    pub(crate) degree: Option<Sizes>,

    /// Measure computations of the same length, that of --bias.
    #[arg(long)]
    pub(crate) equal: bool,

    /// How often each case is measured; once above a bias of 270 ms [default: 5; with --quick 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,

    #[command(flatten)]
    pub(crate) output: OutputFlags,

    /// Also write a workbook for a spreadsheet program: measurements, medians and charts.
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().try_map(file_name))]
    pub(crate) xlsx: Option<PathBuf>,
}

/// Parses a list of numbers up to `MAX`.
///
/// # Errors
/// One line that quotes the text.
fn bounded<const MAX: u64>(text: &str) -> Result<Sizes, String> {
    sizes_up_to(text, MAX)
}

/// The end of the long help.
pub(super) const HELP: &str = "\
Examples:
  minder bench turnaround --quick             medians, in about a minute
  minder bench turnaround --svg turn.svg      with charts, in ten minutes
  minder bench turnaround --full --xlsx t.xlsx   all; Ctrl-C, and continue
  minder bench turnaround --workload io --runner timers --minutes 1
  taskset -c 0 minder bench turnaround        on one processor
  minder bench turnaround --equal --bias 30   computations of the same length

The published test suite THRDPERF (1996): N computations, of which the I-th
takes I times the bias, run serially or concurrently, longest first, which is
the worst order, and shortest first.

Workloads:
  cpu       computes until the CPU clock of the thread has advanced by the
            length
  loops     computes a fixed number of loops, calibrated by that clock: the same
            work in every form, so CPU time shows what a form costs
  io        sleeps until the length has passed
  mixed     alternates: computations 1, 3, 5 … compute, and 2, 4, 6 … sleep

Forms:
  serial    one after the other on the caller's thread
  threads   threads of one pool, at most as many as the degree
  children  a child process for each, at most as many at once as the degree:
            minder itself
  timers    one thread that waits for all deadlines; only for io

Columns:
  workload runner degree order lengths bias_ms computations repetition
  processors elapsed_ms
  model_elapsed_ms turnaround model_turnaround turnaround_p95 unresponsive_ms
  cpu_ms load

turnaround is the mean over the computations of the time from the start of the
run until one is finished, divided by its length. The model shares the
processors equally between the computations that run, and has no other cost.
unresponsive_ms is the longest time for which the caller's thread was kept from
its next duty: by a computation if it is serial, else by its wait for a
processor; with children by starting them. cpu_ms is the CPU time of minder and
of the children. load is the number of other processes that were ready to run
before; on macOS and BSD it is the load average.

On Windows the CPU clock has steps of 1/64 s: cpu is calibrated loops there, and
cpu_ms is coarse. Under Wine each row has a column `note`.

Exit status:
  0        all runs were measured
  130      Ctrl-C, HUP, QUIT: the measurements so far are shown, and kept in the
           file if there is one
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bounded() {
        assert_eq!(bounded::<1_000>("2,17"), Ok(Sizes(vec![2, 17])));
        let error = bounded::<1_000>("2,1001").expect_err("parse a number above the bound");
        assert_eq!(error, "`1001` is out of range: expected 1 to 1000");
        for outside in ["0", "0..4", "2000000", "2..1001"] {
            let error = bounded::<1_000>(outside).expect_err("parse a number out of the range");
            assert_eq!(error, format!("`{outside}` is out of range: expected 1 to 1000"));
        }
    }
}
