//! Measures several ways to sleep by turns.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use minder::clock::SleepSample;
use minder_bench::{BusyThreads, Lateness, SleepStats, SleepWay};

use super::output::{asked, columns, integer, nanoseconds, row};
use crate::measuring::Session;
use minder_ui::rows::{CsvTable, Value};
use minder_ui::time as time_text;

/// The turns in which the sleeps are measured, so that what else the machine does meets all cases.
const TURNS: usize = 10;
/// What a sleep takes in addition to its time, for the estimate of the time that is left.
const OVERHEAD: Duration = Duration::from_micros(100);

/// The columns of a summary.
pub(super) const SUMMARY: [&str; 13] = [
    "way", "asked_ns", "load", "sleeps", "early", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns",
    "max_ns", "mean_ns", "cpu_ns",
];

/// A way to sleep, a time to sleep, and how many threads compute meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) way: SleepWay,
    pub(super) time: Duration,
    pub(super) load: u16,
}

impl Case {
    /// Returns the values of the first columns.
    pub(super) fn values(&self) -> [Value; 3] {
        [Value::Text(self.way.name().to_owned()), nanoseconds(self.time), Value::Integer(self.load.into())]
    }
}

/// One case, and what was measured.
#[derive(Debug)]
pub(super) struct MeasuredCase {
    pub(super) case: Case,
    pub(super) lateness: Lateness,
    /// Why it could not be measured.
    pub(super) error: Option<String>,
}

/// All cases.
#[derive(Debug)]
pub(super) struct Sleeps(pub(super) Vec<MeasuredCase>);

impl Sleeps {
    /// Returns all combinations, in the order of the loads, then of the times, then of the ways.
    pub(super) fn new(ways: &[SleepWay], times: &[Duration], loads: &[u16]) -> Self {
        let mut cases = Vec::new();
        for &load in loads {
            for &time in times {
                cases.extend(ways.iter().map(|&way| MeasuredCase {
                    case: Case { way, time, load },
                    lateness: Lateness::default(),
                    error: None,
                }));
            }
        }
        Self(cases)
    }

    /// Sleeps `count` times for each case, and hands over the samples of each turn, until a signal
    /// cancels that. A case that fails is not measured again.
    ///
    /// # Errors
    /// A thread cannot be started; those of `handle`.
    pub(super) fn measure(
        &mut self,
        session: &mut Session,
        count: usize,
        mut handle: impl FnMut(&mut Session, &Case, &[SleepSample]) -> Result<()>,
    ) -> Result<()> {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let mut progress = Progress::new(self, count);
        for turn in 0..TURNS {
            let share = count * (turn + 1) / TURNS - count * turn / TURNS;
            let mut busy: Option<(u16, BusyThreads)> = None;
            for MeasuredCase { case, lateness, error } in &mut self.0 {
                if error.is_some() || share == 0 {
                    continue;
                }
                if busy.as_ref().map_or(0, |(load, _)| *load) != case.load {
                    busy = Some((case.load, BusyThreads::start(case.load.into())?));
                }
                session.show_line(&progress.line(case, turn));
                let Case { way, time, .. } = *case;
                let cancel = Arc::clone(&is_cancelled);
                let sleep = move || way.measure(time, share, &cancel);
                // A sleep cannot be cut short. One of a minute is left behind.
                let Some(slept) = session.run_abandonably(&is_cancelled, sleep)? else { return Ok(()) };
                match slept {
                    Ok(samples) => {
                        let handled = handle(session, case, &samples);
                        lateness.extend(samples);
                        handled?;
                    }
                    Err(failure) => *error = Some(failure.to_string()),
                }
                progress.add(case, share);
                if session.is_cancelled() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns what was measured, by times and loads.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[MeasuredCase]> {
        let is_same = |one: &MeasuredCase, other: &MeasuredCase| {
            (one.case.time, one.case.load) == (other.case.time, other.case.load)
        };
        self.0.chunk_by(is_same)
    }

    /// Returns the statistics of a case, if it was measured.
    pub(super) fn stats(&self, case: Case) -> Option<SleepStats> {
        self.0.iter().find(|it| it.case == case)?.lateness.stats()
    }

    /// Returns the summaries of what was measured, as rows.
    pub(super) fn summaries(&self) -> impl Iterator<Item = Vec<Value>> {
        self.0.iter().filter_map(|it| {
            let stats = it.lateness.stats()?;
            let counts = [stats.count, stats.early].map(integer);
            let times = [stats.min, stats.p50, stats.p90, stats.p99, stats.p999, stats.max, stats.mean];
            let times = times.into_iter().chain([stats.mean_cpu_time]).map(nanoseconds);
            Some(row(it.case.values().into_iter().chain(counts).chain(times)))
        })
    }

    /// Returns the same with the names of the columns.
    pub(super) fn table(&self) -> CsvTable {
        let mut table = CsvTable { columns: columns(&SUMMARY), rows: Vec::new() };
        self.summaries().for_each(|values| table.push(&values));
        table
    }

    /// Returns a line for each way that failed.
    ///
    /// # Errors
    /// All have failed.
    pub(super) fn failures(&self) -> Result<Vec<String>> {
        let mut lines: Vec<String> = Vec::new();
        for error in self.0.iter().filter_map(|it| it.error.as_ref()) {
            if !lines.contains(error) {
                lines.push(error.clone());
            }
        }
        match lines.first() {
            Some(first) if self.0.iter().all(|it| it.error.is_some()) => Err(anyhow!("{first}")),
            _ => Ok(lines),
        }
    }
}

/// Returns the ways of these names; all if there is none.
///
/// # Errors
/// This system has no way of this name.
pub(super) fn select_ways(names: &[String]) -> Result<Vec<SleepWay>> {
    let all: Vec<SleepWay> = SleepWay::available().collect();
    let named = |name: &String| all.iter().any(|way| way.name() == name);
    if let Some(name) = names.iter().find(|name| !named(name)) {
        let known: Vec<&str> = all.iter().map(|way| way.name()).collect();
        bail!("there is no way `{name}` to sleep here: there are {}", known.join(", "));
    }
    let is_asked = |way: &SleepWay| names.is_empty() || names.iter().any(|name| name == way.name());
    Ok(all.into_iter().filter(is_asked).collect())
}

/// Describes a load: `idle`, `2 threads compute`.
pub(super) fn load_text(load: u16) -> String {
    match load {
        0 => "idle".to_owned(),
        1 => "1 thread computes".to_owned(),
        load => format!("{load} threads compute"),
    }
}

/// How much was done, by the time that it takes at least.
struct Progress {
    started: Instant,
    total: Duration,
    done: Duration,
}

impl Progress {
    fn new(sleeps: &Sleeps, count: usize) -> Self {
        let total = sleeps.0.iter().map(|it| expected(&it.case, count)).sum();
        Self { started: Instant::now(), total, done: Duration::ZERO }
    }

    fn add(&mut self, case: &Case, count: usize) {
        self.done += expected(case, count);
    }

    fn line(&self, case: &Case, turn: usize) -> String {
        let left = self.total.saturating_sub(self.done);
        // What was slower than expected so far will be so from now on.
        let slower = self.started.elapsed().as_secs_f64() / self.done.as_secs_f64().max(1e-3);
        let left = left.mul_f64(slower.clamp(1.0, 100.0));
        let Case { way, time: asked_time, load } = case;
        let what = format!("{way}, {}, {}", asked(*asked_time), load_text(*load));
        format!("{what}: turn {} of {TURNS}, about {} left", turn + 1, time_text(left))
    }
}

fn expected(case: &Case, count: usize) -> Duration {
    (case.time + OVERHEAD) * u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_grouped_by_load_and_time() {
        let ways: Vec<SleepWay> = SleepWay::available().collect();
        let times = [Duration::from_millis(1), Duration::from_micros(100)];
        let sleeps = Sleeps::new(&ways, &times, &[0, 2]);
        let groups: Vec<(Duration, u16, usize)> =
            sleeps.groups().map(|group| (group[0].case.time, group[0].case.load, group.len())).collect();
        let all = ways.len();
        assert_eq!(groups, [(times[0], 0, all), (times[1], 0, all), (times[0], 2, all), (times[1], 2, all)]);
    }

    #[test]
    fn failures_are_named_once_unless_all_fail() {
        let ways: Vec<SleepWay> = SleepWay::available().collect();
        let mut sleeps = Sleeps::new(&ways[..2], &[Duration::ZERO], &[0, 1]);
        assert_eq!(sleeps.failures().expect("some did not fail"), [""; 0]);
        sleeps.0[0].error = Some("refused".into());
        sleeps.0[2].error = Some("refused".into());
        assert_eq!(sleeps.failures().expect("some did not fail"), ["refused"]);
        for it in &mut sleeps.0 {
            it.error = Some("refused".into());
        }
        assert!(sleeps.failures().is_err());
    }

    #[test]
    fn ways_have_names() {
        assert_eq!(select_ways(&[]).expect("select all").len(), SleepWay::available().count());
        let one = select_ways(&["thrifty".into()]).expect("select one");
        assert_eq!(one.iter().map(|way| way.name()).collect::<Vec<_>>(), ["thrifty"]);
        let error = select_ways(&["thrift".into()]).expect_err("select none").to_string();
        assert!(error.contains("`thrift`") && error.contains("thread-sleep"), "{error}");
    }
}
