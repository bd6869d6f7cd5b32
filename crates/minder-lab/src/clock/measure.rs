//! `minder clock measure`: how late each way to sleep is.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use minder::clock::SleepSample;

use super::histogram::{Bars, HEADING};
use super::output::{asked, columns, nanoseconds, note, row, short};
use super::sleep_chart;
use super::sleeps::{Case, MeasuredCase, SUMMARY, Sleeps, load_text, select_ways};
use crate::chart::machine;
use crate::flags::SleepFlags;
use crate::measuring::{self, BufferedStdout, QuietEnd, Session};
use minder_ui::rows::{Rows, Value};
use minder_ui::table::{Column, Table};
use minder_ui::{count, message};

const EACH: [&str; 6] = ["way", "asked_ns", "load", "slept_ns", "late_ns", "cpu_ns"];

/// Measures what the flags ask for, and shows it.
pub(super) fn run(flags: &SleepFlags) -> Result<ExitCode> {
    let ways = select_ways(&flags.way)?;
    let mut times: Vec<Duration> = Vec::new();
    for time in &flags.time {
        if !times.contains(time) {
            times.push(*time);
        }
    }
    let loads: Vec<u16> = std::iter::once(0).chain(flags.load).collect();
    let format = flags.output.format();
    if flags.each && format.is_none() {
        anyhow::bail!("--each: every sleep is printed as --csv or --json");
    }
    let mut session = Session::start()?;
    let chart = measuring::open_file(&mut session, "chart", flags.output.svg.as_deref())?;
    let out = BufferedStdout::default();
    let mut rows_out = out.clone();
    let names = if flags.each { columns(&EACH) } else { columns(&SUMMARY) };
    let mut rows = format.map(|format| Rows::new(&mut rows_out, format, names)).transpose()?;

    let mut sleeps = Sleeps::new(&ways, &times, &loads);
    let count = usize::try_from(flags.count).unwrap_or(usize::MAX);
    let measured = sleeps.measure(&mut session, count, |session, case, samples| match &mut rows {
        Some(rows) if flags.each => {
            for sample in samples {
                rows.row(&each_row(case, sample))?;
            }
            out.flush_to_stdout(session)
        }
        _ => Ok(()),
    });
    session.clear_progress();
    let has_some = sleeps.0.iter().any(|it| it.lateness.stats().is_some());
    let chart = if has_some { chart } else { None };
    if let Err(error) = measured {
        // The reader of the rows is gone, and the chart has another one.
        if let Some(file) = chart
            && error.is::<QuietEnd>()
        {
            file.write_chart(&sleep_chart::chart(&sleeps.table(), &machine())?)?;
        }
        return Err(error);
    }
    session.announce_end(has_some);
    let failures = sleeps.failures()?;
    match &mut rows {
        Some(rows) => {
            if !flags.each {
                for values in sleeps.summaries() {
                    rows.row(&values)?;
                }
            }
            failures.iter().for_each(|line| message(line));
        }
        None => write_tables(&sleeps, &failures, &mut out.clone())?,
    }
    let shown = out.flush_to_stdout(&mut session);
    if let Some(file) = chart {
        file.write_chart(&sleep_chart::chart(&sleeps.table(), &machine())?)?;
    }
    shown?;
    Ok(session.exit_code())
}

fn each_row(case: &Case, sample: &SleepSample) -> Vec<Value> {
    let times = [sample.slept, sample.late(), sample.cpu_time].map(nanoseconds);
    row(case.values().into_iter().chain(times))
}

/// Writes a table for each time and load.
pub(super) fn write_tables(sleeps: &Sleeps, failures: &[String], out: &mut dyn Write) -> io::Result<()> {
    if let Some(note) = note() {
        writeln!(out, "Note: {note}.\n")?;
    }
    let bars = Bars::of_locale();
    let mut is_first = true;
    for group in sleeps.groups() {
        let Some(most) = group.iter().filter_map(|it| it.lateness.stats()).map(|stats| stats.count).max()
        else {
            continue;
        };
        if !std::mem::take(&mut is_first) {
            writeln!(out)?;
        }
        let Case { time, load, .. } = group[0].case;
        let sleeps = count(most as u64, "sleep");
        writeln!(
            out,
            "{} of {} by each way, {}; how much later they end:\n",
            sleeps,
            asked(time),
            load_text(load)
        )?;
        write_table(group, bars, out)?;
    }
    let early: Vec<String> = sleeps.0.iter().filter_map(early_line).collect();
    for (title, lines) in [("Shorter than asked for", early.as_slice()), ("Not measured", failures)] {
        if !lines.is_empty() {
            writeln!(out, "\n{title}:")?;
        }
        for line in lines {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn write_table(group: &[MeasuredCase], bars: Bars, out: &mut dyn Write) -> io::Result<()> {
    let numbers = ["p50", "p99", "p99.9", "max", "CPU"].map(Column::right);
    let columns = std::iter::once(Column::left("way")).chain(numbers).chain([Column::left(HEADING)]);
    let mut table = Table::new(out, columns.collect());
    for it in group {
        let Some(stats) = it.lateness.stats() else { continue };
        let times = [stats.p50, stats.p99, stats.p999, stats.max, stats.mean_cpu_time].map(short);
        let cells = std::iter::once(it.case.way.name().to_owned()).chain(times);
        let cells: Vec<String> = cells.chain([bars.draw(&it.lateness.histogram())]).collect();
        table.row(&cells)?;
    }
    table.finish()
}

/// Describes the sleeps that were too short, if there are some.
fn early_line(it: &MeasuredCase) -> Option<String> {
    let stats = it.lateness.stats().filter(|stats| stats.early > 0)?;
    let Case { way, time, load } = it.case;
    Some(format!("{way}, {}, {}: {} of {}", asked(time), load_text(load), stats.early, stats.count))
}
