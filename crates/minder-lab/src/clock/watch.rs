//! `minder clock watch`: how late sleeps are, line by line.

use std::collections::VecDeque;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use minder::clock::resolution;
use minder_bench::{Lateness, SleepStats, SleepWay};
use minder_os::host_stats;

use super::histogram::{Bars, HEADING};
use super::output::{asked_ascii, columns, integer, nanoseconds, note, row, short};
use super::sleeps::select_ways;
use crate::chart::{Axis, Chart, Curve, Panel, Scale, Unit, machine};
use crate::flags::WatchFlags;
use crate::measuring::{self, BufferedStdout, Session};
use minder_ui::message;
use minder_ui::rows::{Rows, Value};

const COLUMNS: [&str; 10] =
    ["seconds", "sleeps", "early", "p50_ns", "p99_ns", "max_ns", "mean_ns", "cpu_ns", "load", "states_ns"];
/// The lines that a chart has at most.
const CHART_LINES: usize = 10_000;
/// The lines between two headings.
const HEADING_EVERY: u64 = 20;
/// The looks at the time in one interval.
const BATCHES: u32 = 20;

/// What one interval was like.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The time since the start, at the end of the interval.
    at: Duration,
    interval: Duration,
    stats: SleepStats,
    load: Option<f64>,
    /// The timer slack, or the period of the tick.
    states: Option<Duration>,
}

/// Measures until a signal ends it, or there are as many lines as asked for.
pub(super) fn run(flags: &WatchFlags) -> Result<ExitCode> {
    let way = select_ways(std::slice::from_ref(&flags.way))?[0];
    let format = flags.output.format();
    let mut session = Session::start()?;
    let chart = measuring::open_file(&mut session, "chart", flags.output.svg.as_deref())?;
    let out = BufferedStdout::default();
    let mut rows_out = out.clone();
    let mut rows = format.map(|format| Rows::new(&mut rows_out, format, columns(&COLUMNS))).transpose()?;
    if let (None, Some(note)) = (&rows, note()) {
        writeln!(out.clone(), "Note: {note}.\n")?;
    }
    let bars = Bars::of_locale();
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let mut recent: VecDeque<Line> = VecDeque::new();
    let mut number = 0;
    while flags.lines.is_none_or(|lines| number < lines) && !session.is_cancelled() {
        let begin = Instant::now();
        let time = flags.time;
        let end = begin + flags.interval;
        let cancel = Arc::clone(&is_cancelled);
        let measure = move || measure(way, time, end, &cancel);
        let Some(lateness) = session.run_abandonably(&is_cancelled, measure)? else { break };
        let lateness = lateness?;
        let Some(stats) = lateness.stats() else { break };
        let stated = resolution();
        let line = Line {
            at: started.elapsed(),
            interval: begin.elapsed(),
            stats,
            load: host_stats::load().ok(),
            states: stated.timer_slack.or(stated.tick.map(|tick| tick.current)),
        };
        match &mut rows {
            Some(rows) => rows.row(&values(&line))?,
            None => {
                if number % HEADING_EVERY == 0 {
                    writeln!(out.clone(), "{}", heading(stated.tick.is_some()))?;
                }
                writeln!(out.clone(), "{}", text(&line, &bars.draw(&lateness.histogram())))?;
            }
        }
        number += 1;
        if recent.len() == CHART_LINES {
            recent.pop_front();
        }
        recent.push_back(line);
        if let Err(error) = out.flush_to_stdout(&mut session) {
            write_chart(chart, flags, &recent)?;
            return Err(error);
        }
    }
    write_chart(chart, flags, &recent)?;
    Ok(session.exit_code())
}

fn write_chart(
    chart: Option<measuring::OutputFile>,
    flags: &WatchFlags,
    lines: &VecDeque<Line>,
) -> Result<()> {
    match chart {
        Some(file) if !lines.is_empty() => file.write_chart(&draw(flags, lines)),
        Some(_) => {
            message("interrupted before the first line: there is no chart");
            Ok(())
        }
        None => Ok(()),
    }
}

/// Sleeps until the end of the interval, and at least once.
fn measure(way: SleepWay, time: Duration, end: Instant, is_cancelled: &AtomicBool) -> Result<Lateness> {
    let mut lateness = Lateness::default();
    let batch = end.saturating_duration_since(Instant::now()) / BATCHES;
    let count = batch.as_nanos() / time.as_nanos().max(1);
    let count = usize::try_from(count).unwrap_or(usize::MAX).clamp(1, 1_000);
    let mut is_first = true;
    while (is_first || Instant::now() < end) && !is_cancelled.load(Ordering::Relaxed) {
        is_first = false;
        let samples = way.measure(time, count, is_cancelled).map_err(|error| anyhow!("{error}"))?;
        lateness.extend(samples);
    }
    Ok(lateness)
}

fn heading(has_tick: bool) -> String {
    let states = if has_tick { "tick" } else { "slack" };
    format!(
        "{:>8}  {:>7}  {:>7}  {:>7}  {:>7}  {:>5}  {:>5}  {:>7}  {HEADING}",
        "s", "sleeps", "p50", "p99", "max", "CPU", "load", states
    )
}

fn text(line: &Line, bars: &str) -> String {
    let Line { at, interval, stats, load, states } = line;
    let [p50, p99, max] = [stats.p50, stats.p99, stats.max].map(short);
    let cpu = stats.mean_cpu_time.as_secs_f64() * stats.count as f64 / interval.as_secs_f64() * 100.0;
    let load = load.map_or("-".to_owned(), |load| format!("{load:.1}"));
    let states = states.map_or("-".to_owned(), short);
    let at = at.as_secs_f64();
    let count = stats.count;
    format!("{at:8.1}  {count:7}  {p50:>7}  {p99:>7}  {max:>7}  {cpu:3.0} %  {load:>5}  {states:>7}  {bars}")
        .trim_end()
        .to_owned()
}

fn values(line: &Line) -> Vec<Value> {
    let Line { at, stats, load, states, .. } = line;
    let seconds = Value::Real((at.as_secs_f64() * 1e3).round() / 1e3);
    let counts = [stats.count, stats.early].map(integer);
    let cpu = stats.mean_cpu_time * u32::try_from(stats.count).unwrap_or(u32::MAX);
    let times = [stats.p50, stats.p99, stats.max, stats.mean, cpu].map(nanoseconds);
    let last = [load.map_or(Value::Null, Value::Real), states.map_or(Value::Null, nanoseconds)];
    row(std::iter::once(seconds).chain(counts).chain(times).chain(last))
}

fn draw(flags: &WatchFlags, lines: &VecDeque<Line>) -> Chart {
    let curve = |label: &str, value: &dyn Fn(&SleepStats) -> Duration| {
        let point = |it: &Line| (it.at.as_secs_f64(), value(&it.stats).as_nanos() as f64);
        Curve::new(label, lines.iter().map(point).collect())
    };
    let axis = Axis { label: "later than asked for".to_owned(), unit: Unit::Nanoseconds };
    let curves = vec![
        curve("p50", &|stats| stats.p50),
        curve("p99", &|stats| stats.p99),
        curve("max", &|stats| stats.max),
    ];
    Chart {
        title: format!("How late sleeps of {} end", asked_ascii(flags.time)),
        subtitle: format!(
            "{}{}, {}",
            machine(),
            note().map(|note| format!(" ({note})")).unwrap_or_default(),
            flags.way
        ),
        x_axis: Axis { label: "seconds since the start".to_owned(), unit: Unit::Count },
        x_scale: Scale::Linear,
        columns: 1,
        panels: vec![Panel { title: String::new(), axis, curves }],
    }
}
