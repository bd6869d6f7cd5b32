//! Tables of medians: by the number of computations, and everything for the greatest number.

use std::io::{self, Write};
use std::time::Duration;

use minder_bench::{TurnaroundMeasurement, predict};

use super::summary::{Group, Summary};
use crate::bench::spec::note;
use minder_ui::count;
use minder_ui::format::nanos;
use minder_ui::table::{Column, Table};

/// Writes the tables of all groups.
pub(super) fn write(summary: &Summary, processors: usize, out: &mut dyn Write) -> io::Result<()> {
    if let Some(note) = note() {
        writeln!(out, "Note: {note}.\n")?;
    }
    for (at, group) in summary.groups().into_iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let repetitions = summary.repetitions(group);
        let rounds = if repetitions > 1 { format!(", median of {repetitions}") } else { String::new() };
        let on = count(processors as u64, "processor");
        writeln!(out, "{group}, on {on}{rounds}. Elapsed time by the number of computations:\n")?;
        by_count(summary, group, |it| it.elapsed.as_secs_f64(), |value| nanos(value * 1e9), out)?;
        writeln!(out, "\nMean relative turnaround:\n")?;
        by_count(summary, group, |it| it.turnaround, |value| format!("{value:.2}"), out)?;
        if let Some(most) = summary.counts(group).last() {
            writeln!(out, "\nOf {most} computations:\n")?;
            of_count(summary, group, *most, processors, out)?;
        }
    }
    Ok(())
}

fn by_count(
    summary: &Summary,
    group: Group,
    value: impl Fn(&TurnaroundMeasurement) -> f64,
    format: impl Fn(f64) -> String,
    out: &mut dyn Write,
) -> io::Result<()> {
    let counts = summary.counts(group);
    let mut columns = vec![Column::left("form")];
    columns.extend(counts.iter().map(|count| Column::right(&count.to_string())));
    let mut table = Table::new(out, columns);
    for form in summary.forms(group) {
        let mut cells = vec![form.to_string()];
        for &count in &counts {
            let spread = summary.spread(&group.case(form, count), &value);
            cells.push(spread.map_or("-".to_owned(), |spread| format(spread.median)));
        }
        table.row(&cells)?;
    }
    table.finish()
}

fn of_count(
    summary: &Summary,
    group: Group,
    most: usize,
    processors: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let names =
        ["elapsed", "min-max", "model", "turnaround", "model", "p95", "unresponsive", "CPU", "/ serial"];
    let columns = std::iter::once(Column::left("form")).chain(names.map(Column::right)).collect();
    let mut table = Table::new(out, columns);
    let time = |seconds: f64| nanos(seconds * 1e9);
    let seconds = |time: Duration| time.as_secs_f64();
    for form in summary.forms(group) {
        let case = group.case(form, most);
        let Some(elapsed) = summary.spread(&case, |it| seconds(it.elapsed)) else { continue };
        let model = predict(&case, processors);
        let median = |value: &dyn Fn(&TurnaroundMeasurement) -> f64| {
            summary.spread(&case, value).map_or(0.0, |spread| spread.median)
        };
        let ratio = summary.over_serial(&case, |it| seconds(it.cpu));
        table.row(&[
            form.to_string(),
            time(elapsed.median),
            format!("{}-{}", time(elapsed.min), time(elapsed.max)),
            time(seconds(model.elapsed)),
            format!("{:.2}", median(&|it| it.turnaround)),
            format!("{:.2}", model.turnaround),
            format!("{:.2}", median(&|it| it.turnaround_p95)),
            time(median(&|it| seconds(it.unresponsive))),
            time(median(&|it| seconds(it.cpu))),
            ratio.map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.median)),
        ])?;
    }
    table.finish()
}
