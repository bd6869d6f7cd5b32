//! Flags of `minder clock`.

use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use minder::clock::SLEEP_MAX;

use super::output::OutputFlags;
use minder_ui::units::{fine_time, time};

// See `crate::clock`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "Try: minder clock, minder clock measure --load 2",
    after_long_help = STATE
)]
#[expect(missing_docs, reason = "a doc comment would replace the one of the subcommand")]
pub struct ClockFlags {
    #[command(subcommand)]
    pub(crate) what: Option<Clock>,

    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

// What is measured, if it is not the state.
#[derive(Debug, Subcommand)]
pub(crate) enum Clock {
    /// Sleep by every mechanism of this system, and show how late each is.
    #[command(after_help = "Try: minder clock measure --time 250us --load 2", after_long_help = MEASURE)]
    Measure(SleepFlags),
    /// Show what a timer setting of one process does for its sleeps, for others and for its children.
    #[command(after_help = "Try: minder clock sweep --hold 1", after_long_help = SWEEP)]
    Sweep(SweepFlags),
    /// Show every second how late sleeps are, until Ctrl-C.
    #[command(after_help = "Try: minder clock watch --way timerfd", after_long_help = WATCH)]
    Watch(WatchFlags),
    /// Measures in a process of `clock sweep`.
    #[command(hide = true)]
    Probe(ProbeFlags),
}

/// Flags of a process of `minder clock sweep`.
#[derive(Debug, Args)]
pub(crate) struct ProbeFlags {
    /// What it does: see [`minder_bench::ProbeOptions`].
    #[arg(required = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
}

/// Flags of `minder clock measure`.
#[derive(Debug, Args)]
pub(crate) struct SleepFlags {
    /// How long to sleep; may be given several times, or as a list.
    ///
    /// 100us, 1.5ms, 0.25s: the units are ns, us, ms and s; at most a minute.
    #[arg(long, value_name = "TIME", value_delimiter = ',', default_value = "1ms,100us")]
    #[arg(value_parser = sleep_time)]
    pub(crate) time: Vec<Duration>,

    /// Measure only this way to sleep; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) way: Vec<String>,

    /// Sleep N times by each way.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,

    /// Measure also while N threads compute.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1000))]
    pub(crate) load: Option<u16>,

    /// With --csv or --json: print every sleep, not a summary of each way.
    #[arg(long)]
    pub(crate) each: bool,

    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// Flags of `minder clock sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepFlags {
    /// Hold each setting for TIME: 4, 0.5, 1m; at most a minute.
    #[arg(long, value_name = "TIME", default_value = "4", value_parser = hold_time)]
    pub(crate) hold: Duration,

    /// The settings: timer slack (Linux) or periods of the tick (Windows), in milliseconds [default:
    /// 1,2,3 … 15]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = value_parser!(u16).range(1..=1000))]
    pub(crate) setting: Vec<u16>,

    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// Flags of `minder clock watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchFlags {
    /// How long each sleep is: 100us, 1.5ms; at most a minute.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = sleep_time)]
    pub(crate) time: Duration,

    /// The way to sleep: a name of `minder clock measure`.
    #[arg(long, value_name = "NAME", default_value = "thread-sleep")]
    pub(crate) way: String,

    /// Print a line every TIME: 0.2, 1, 1m; at most an hour.
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = interval_time)]
    pub(crate) interval: Duration,

    /// Stop after N lines [default: at Ctrl-C]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) lines: Option<u64>,

    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// Parses the time of a sleep.
///
/// # Errors
/// One line that quotes the text.
fn sleep_time(text: &str) -> Result<Duration, String> {
    match fine_time(text)? {
        time if time > SLEEP_MAX => Err(format!("`{text}` is too long: the maximum is a minute")),
        time => Ok(time),
    }
}

/// Parses the time that a setting is held.
///
/// # Errors
/// One line that quotes the text.
fn hold_time(text: &str) -> Result<Duration, String> {
    bounded(text, Duration::from_millis(500), Duration::from_secs(60), "0.5 to 60")
}

/// Parses the time between two lines.
///
/// # Errors
/// One line that quotes the text.
fn interval_time(text: &str) -> Result<Duration, String> {
    bounded(text, Duration::from_millis(100), Duration::from_secs(3600), "0.1 to 3600")
}

fn bounded(text: &str, min: Duration, max: Duration, range: &str) -> Result<Duration, String> {
    match time(text)? {
        time if (min..=max).contains(&time) => Ok(time),
        _ => Err(format!("`{text}` is out of range: expected {range} seconds")),
    }
}

const STATE: &str = "\
Examples:
  minder clock                      what a sleep lasts here, and what is unusual
  minder clock --json | jq 'select(.property == \"timer_slack_ns\").value'
  minder clock measure              how late each way to sleep is
  minder clock measure --load 2     the same, and while two threads compute
  minder clock sweep                what a setting does for others
  minder clock watch                a line every second

The state takes about a second. It sleeps 200 times for 1 ms and for 100 µs, by
the sleep of the standard library and by the most exact timer of this system.

  unit       what the system states for a clock; deadlines have this unit
  step       the distance of two different readings, measured
  slack      how much later than its deadline the kernel may end a sleep of this
             process, so that timers share an interrupt; children inherit it
             (Linux)
  tick       most waits end at a tick (Windows)

docs/clock.md describes how timers work on each system.

Exit status:
  0        the state is shown
  130      Ctrl-C, HUP, QUIT: what was measured is shown
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

const MEASURE: &str = "\
Examples:
  minder clock measure                          tables with histograms
  minder clock measure --time 50us,2ms          other sleeps
  minder clock measure --load 4                 idle, and with four busy threads
  minder clock measure --way timerfd --way poll --count 10000
  minder clock measure --svg sleeps.svg         and a chart
  minder clock measure --csv --each > each.csv  every sleep, for a program

Each way sleeps in turn, ten times a tenth of the sleeps, so that what else the
machine does meets all of them. No slack, tick or priority is changed.

Ways to sleep:
  thread-sleep     Rust's std::thread::sleep
  precise          minder::clock::Sleeper: the most exact timer of the system
  thrifty          the same for most of the time; it spins for the rest, at most
                   60 µs

Unix:
  clock-nanosleep  until an absolute time (not on macOS and OpenBSD)
  poll, ppoll      without descriptors; poll takes milliseconds, rounded up

Linux:
  epoll-ms, epoll-ns   epoll_wait, in milliseconds, and epoll_pwait2
  timerfd          a read of a timer descriptor; it has no timer slack
  io_uring         a time-out of a ring; it has no timer slack

macOS and BSD:
  kqueue           the time-out of kevent
  kqueue-timer     an EVFILT_TIMER (macOS, FreeBSD)

Windows:
  sleep            Sleep, in milliseconds; it ends at a tick
  waitable-timer   a waitable timer; it ends at a tick
  high-resolution-timer   the same without the tick (since version 1803)
  completion-port  the time-out of GetQueuedCompletionStatus; it ends at a tick

Columns of the tables:
  p50 p99 p99.9    50, 99 and 99.9 % of the sleeps were at most so late; `max`
                   is the latest
  CPU              the mean CPU time of one sleep
  1 µs to 10 ms    a histogram of the lateness: four bars for each factor of
                   ten; the first bar is less than 1 µs, the last one 10 ms and
                   more

Columns of --csv and --json, in nanoseconds:
  way asked_ns load sleeps early min_ns p50_ns p90_ns p99_ns p999_ns max_ns
  mean_ns cpu_ns
  with --each: way asked_ns load slept_ns late_ns cpu_ns

`load` is the number of threads that computed. `early` is the number of sleeps
that were shorter than asked for. The chart shows how late the latest of N
sleeps is. Under Wine each row has a column `note`: the times are those of Wine.

Exit status:
  0        all ways that this machine has were measured
  130      Ctrl-C, HUP, QUIT: the measurements so far are shown
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

const SWEEP: &str = "\
Examples:
  minder clock sweep                   1 to 15 ms, 4 s each: about a minute
  minder clock sweep --hold 1 --setting 1,5,10,15
  minder clock sweep --svg sweep.svg --csv > sweep.csv

A process has a setting: a timer slack of 1 to 15 ms (Linux), or a request for a
tick of 1 to 15 ms (Windows). Meanwhile it, a child of it and another process,
which set nothing, measure:

  states     what the system states to them: the slack, or the period of the
             tick
  step       the step of the coarse clock, which is read cheaply and changes at
             a tick
  sleep      the mean time of a sleep of 1 ms (Windows: Sleep(1)), by the
             monotonic clock

The first line is without a setting. The setting ends with the process that has
it, also after Ctrl-C and kill -9, so there is nothing to restore.

Columns of --csv and --json, in nanoseconds; the setting is null in the first
rows:
  setting_ns process states_ns step_ns sleeps mean_coarse_ns mean_ns p50_ns

`process` is setter, other or child. `mean_coarse_ns` is the mean sleep by the
coarse clock.

Exit status:
  0        all settings were measured
  130      Ctrl-C, HUP, QUIT: the measurements so far are shown
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

const WATCH: &str = "\
Examples:
  minder clock watch                         sleeps of 1 ms, a line every second
  minder clock watch --time 100us --way precise
  minder clock watch --lines 60 --csv > minute.csv
  minder clock watch --svg watch.svg         a chart after Ctrl-C

One sleep follows another, and each line sums up those of one interval. It uses
2 to 4 % of a processor for sleeps of 1 ms.

Columns:
  p50 p99 max      how late the sleeps were
  CPU              the CPU time of this thread, as a part of the interval
  load             the load average of the machine (not on Windows)
  slack, tick      what the system states now
  1 µs to 10 ms    a histogram, as in `minder clock measure`

Columns of --csv and --json, in nanoseconds, `seconds` since the start:
  seconds sleeps early p50_ns p99_ns max_ns mean_ns cpu_ns load states_ns

The chart has the last 10,000 lines.

Exit status:
  0        all lines were shown
  130      Ctrl-C, HUP, QUIT; the chart is written
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_limits() {
        assert_eq!(sleep_time("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(hold_time("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(interval_time("1h"), Ok(Duration::from_secs(3600)));
        for (text, result) in [
            ("61s", sleep_time("61s")),
            ("0.4", hold_time("0.4")),
            ("2m", hold_time("2m")),
            ("0", interval_time("0")),
            ("2h", interval_time("2h")),
        ] {
            assert!(result.is_err_and(|error| error.contains(&format!("`{text}`"))), "{text}");
        }
    }
}
