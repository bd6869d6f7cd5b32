//! Results as tables and as a chart.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::{Context, Result};
use minder_bench::{Case, Measurement, Results, Stopwatch, median};

use super::errors::describe;
use super::spec::BenchSpec;
use crate::chart::{Axis, Chart, Curve, Panel, Scale, Unit, machine};
use minder_ui::format::nanos;
use minder_ui::rows::CsvTable;
use minder_ui::table::{Column, Table};

/// Whether CPU time has a coarse resolution: few operations then seem to cost nothing.
const IS_CPU_COARSE: bool = Stopwatch::CPU_RESOLUTION.as_millis() > 0;

/// The most panels of a chart that are beside each other.
const PANELS_MAX: usize = 3;

/// Returns what was not measured, with one line for each mechanism and reason.
pub(super) fn describe_unmeasured(spec: &BenchSpec, results: &Results<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in results.unmeasured() {
        let kind = entry.kind.map(|kind| format!(", {kind}")).unwrap_or_default();
        let sizes: Vec<String> = entry.sizes.iter().map(u64::to_string).collect();
        let reason = describe(entry.error);
        lines.push(format!("{}{kind}, {} {}: {reason}", entry.mechanism, sizes.join(", "), spec.sizes));
    }
    lines
}

/// Writes two tables of medians, of CPU time and of wall time, and what was not measured.
pub(super) fn write_tables(
    spec: &BenchSpec,
    results: &Results<'_>,
    rounds: u32,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !results.is_empty() {
        let BenchSpec { operation, whose, note, .. } = spec;
        if let Some(note) = note {
            writeln!(out, "Note: {note}.\n")?;
        }
        writeln!(out, "CPU time of one {operation}, {whose}{}:\n", describe_rounds(rounds))?;
        write_table(spec, results, |measurement| measurement.cpu_ns, out)?;
        writeln!(out, "\nWall time of one {operation}:\n")?;
        write_table(spec, results, |measurement| measurement.wall_ns, out)?;
    }
    let unmeasured = describe_unmeasured(spec, results);
    if !unmeasured.is_empty() {
        writeln!(out, "\nNot measured:")?;
    }
    for line in unmeasured {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn write_table(
    spec: &BenchSpec,
    results: &Results<'_>,
    value: impl Fn(&Measurement) -> f64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mechanisms = mechanisms(results);
    let mut columns = Vec::new();
    if !spec.kinds.is_empty() {
        columns.push(Column::left("kind"));
    }
    columns.push(Column::right(spec.size));
    columns.extend(mechanisms.iter().map(|name| Column::right(name)));
    let mut table = Table::new(out, columns);
    let mut rows: Vec<(Option<&str>, u64)> =
        results.cases().iter().map(|case| (case.kind, case.size)).collect();
    let kinds = kinds(results);
    rows.sort_by_key(|(kind, size)| (kinds.iter().position(|it| it == kind), *size));
    rows.dedup();
    for (kind, size) in rows {
        let mut cells = Vec::new();
        if !spec.kinds.is_empty() {
            cells.push(kind.unwrap_or_default().to_owned());
        }
        cells.push(size.to_string());
        for mechanism in &mechanisms {
            let median = case_median(results, mechanism, kind, size, &value);
            let format = if spec.is_tiny { tiny_nanos } else { nanos };
            cells.push(median.map_or("-".to_owned(), format));
        }
        table.row(&cells)?;
    }
    table.finish()
}

/// Formats nanoseconds, which may be less than one, with three digits: `0.0123 ns`, `2.81 ns`.
fn tiny_nanos(ns: f64) -> String {
    let ns = ns.max(0.0);
    let decimals = match ns {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        0.01.. => 4,
        _ => 5,
    };
    format!("{ns:.decimals$} ns")
}

/// The cost of one operation in nanoseconds: the median of a case, or that of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost<'a> {
    pub(super) mechanism: &'a str,
    pub(super) kind: Option<&'a str>,
    pub(super) size: u64,
    pub(super) ns: f64,
}

/// Returns a chart with a panel for each kind. It shows the medians of CPU time, or of wall time
/// where CPU time has a coarse resolution.
pub(super) fn chart(spec: &BenchSpec, results: &Results<'_>, rounds: u32) -> Chart {
    let value = |it: &Measurement| if IS_CPU_COARSE { it.wall_ns } else { it.cpu_ns };
    let cost = |(index, case): (usize, &Case)| {
        let Case { mechanism, kind, size } = *case;
        Some(Cost { mechanism, kind, size, ns: results.median(index, value)? })
    };
    let costs: Vec<Cost<'_>> = results.cases().iter().enumerate().filter_map(cost).collect();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    chart_of(spec, &costs, machine(processors, spec.note) + &describe_rounds(rounds), IS_CPU_COARSE)
}

/// Returns the chart of rows that were printed before.
///
/// # Errors
/// They do not have the columns of `spec`.
pub(super) fn redraw(spec: &BenchSpec, rows: &CsvTable, machine: &str) -> Result<Chart> {
    let place = |name: &str| rows.index(name).with_context(|| format!("the rows have no column `{name}`"));
    // Windows has a coarse CPU time. Rows from there have a note, since they are from Wine.
    let note = rows.index("note");
    let mechanism = place("mechanism")?;
    let size = place(spec.size)?;
    let round = place("round")?;
    let ns = place(if note.is_some() { "wall_ns" } else { "cpu_ns" })?;
    let kind = if spec.kinds.is_empty() { None } else { Some(place("kind")?) };
    let mut costs = Vec::new();
    let mut rounds = 1;
    for row in &rows.rows {
        rounds = rounds.max(row[round].parse()?);
        let kind = kind.map(|kind| row[kind].as_str());
        costs.push(Cost { mechanism: &row[mechanism], kind, size: row[size].parse()?, ns: row[ns].parse()? });
    }
    let note = note.and_then(|note| Some(format!(" ({})", rows.rows.first()?[note])));
    let subtitle = machine.to_owned() + &note.unwrap_or_default() + &describe_rounds(rounds);
    Ok(chart_of(spec, &costs, subtitle, rows.index("note").is_some()))
}

fn chart_of(spec: &BenchSpec, costs: &[Cost<'_>], subtitle: String, is_wall: bool) -> Chart {
    let operations = if spec.is_tiny { 1e6 } else { 1.0 };
    let what = if spec.is_tiny {
        format!("a million {}", spec.operations())
    } else {
        format!("one {}", spec.operation)
    };
    let label =
        if is_wall { format!("Wall time of {what}") } else { format!("CPU time of {what}, {}", spec.whose) };
    let axis = Axis { label, unit: Unit::Nanoseconds };
    let mut panels = Vec::new();
    for kind in unique(costs.iter().map(|cost| cost.kind)) {
        let mut curves = Vec::new();
        for mechanism in unique(costs.iter().map(|cost| cost.mechanism)) {
            let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            // A logarithmic axis has no 0.
            let is_own = |cost: &&Cost<'_>| (cost.mechanism, cost.kind) == (mechanism, kind) && cost.size > 0;
            for cost in costs.iter().filter(is_own) {
                values.entry(cost.size).or_default().push(cost.ns * operations);
            }
            let points = values.into_iter().filter_map(|(size, ns)| Some((size as f64, median(ns)?)));
            curves.push(Curve::new(mechanism, points.collect()));
        }
        curves.extend(spec.published.iter().cloned());
        let title = spec.kinds.iter().find(|(name, _)| Some(*name) == kind).map(|(_, title)| *title);
        panels.push(Panel {
            title: title.or(kind).unwrap_or_default().to_owned(),
            axis: axis.clone(),
            curves,
        });
    }
    Chart {
        title: spec.title.to_owned(),
        subtitle,
        x_axis: Axis { label: spec.axis.to_owned(), unit: Unit::Count },
        x_scale: Scale::Logarithmic,
        columns: panels.len().min(PANELS_MAX),
        panels,
    }
}

fn case_median(
    results: &Results<'_>,
    mechanism: &str,
    kind: Option<&str>,
    size: u64,
    value: impl Fn(&Measurement) -> f64,
) -> Option<f64> {
    let index = results
        .cases()
        .iter()
        .position(|case| case.mechanism == mechanism && case.kind == kind && case.size == size)?;
    results.median(index, value)
}

/// Returns the mechanisms in the order of the cases.
fn mechanisms(results: &Results<'_>) -> Vec<&'static str> {
    unique(results.cases().iter().map(|case| case.mechanism))
}

/// Returns the kinds in the order of the cases.
fn kinds(results: &Results<'_>) -> Vec<Option<&'static str>> {
    unique(results.cases().iter().map(|case| case.kind))
}

fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}

fn describe_rounds(rounds: u32) -> String {
    if rounds > 1 { format!(", median of {rounds} rounds") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use minder_bench::{WaitBench, WaitObjects};

    use super::*;

    fn measurement(cpu_ns: f64) -> Measurement {
        Measurement { operations: 50, cpu_ns, wall_ns: cpu_ns * 2.0 }
    }

    fn tables(spec: &BenchSpec, results: &Results<'_>, rounds: u32) -> String {
        let mut out = Vec::new();
        write_tables(spec, results, rounds, &mut out).expect("write tables");
        String::from_utf8(out).expect("decode tables")
    }

    #[test]
    fn tables_show_medians_and_list_what_was_not_measured() {
        let cases = Case::grid(&[2, 64], &["epoll", "pool"]);
        let mut results = Results::new(&cases);
        for index in [1, 3] {
            let objects = WaitObjects::open(0).expect("make no objects");
            results.add_error(index, WaitBench::open("magic", objects).expect_err("open unknown mechanism"));
        }
        let reason = results.unmeasured()[0].error.to_string();
        for cpu_ns in [300.0, 100.0, 200.0] {
            results.add(0, measurement(cpu_ns));
        }
        results.add(2, measurement(1500.0));
        let text = tables(&BenchSpec::example(), &results, 3);
        let wanted = format!(
            "\
CPU time of one wait, all threads, median of 3 rounds:

objects    epoll  pool
      2   200 ns     -
     64  1.50 us     -

Wall time of one wait:

objects    epoll  pool
      2   400 ns     -
     64  3.00 us     -

Not measured:
  pool, 2, 64 objects: {reason}
"
        );
        assert_eq!(text, wanted);
    }

    #[test]
    fn kinds_have_a_column_and_a_panel() {
        let kinds = &[("one", "one at a time"), ("burst", "all at once")];
        let spec = BenchSpec { kinds, ..BenchSpec::example() };
        let case = |kind| Case { mechanism: "floor", kind: Some(kind), size: 2 };
        let cases = [case("one"), case("burst")];
        let mut results = Results::new(&cases);
        results.add(0, measurement(10.0));
        results.add(1, measurement(20.0));
        let text = tables(&spec, &results, 1);
        let wanted = "\nkind   objects  floor\none          2  10 ns\nburst        2  20 ns\n";
        assert!(text.contains(wanted), "{text}");
        let chart = chart(&spec, &results, 5);
        let titles: Vec<&str> = chart.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["one at a time", "all at once"]);
    }

    #[test]
    fn tiny_operations_have_three_digits_and_a_million_in_the_chart() {
        let values = [-1.0, 0.0, 0.000_12, 0.0123, 0.123, 2.806, 15.62, 123.4];
        let wanted = [
            "0.00000 ns",
            "0.00000 ns",
            "0.00012 ns",
            "0.0123 ns",
            "0.123 ns",
            "2.81 ns",
            "15.6 ns",
            "123 ns",
        ];
        assert_eq!(values.map(tiny_nanos), wanted);
        let spec = BenchSpec { is_tiny: true, ..BenchSpec::example() };
        let cases = Case::grid(&[64], &["minder"]);
        let mut results = Results::new(&cases);
        results.add(0, measurement(0.5));
        assert!(tables(&spec, &results, 1).contains("\n     64  0.500 ns\n"));
        let chart = chart(&spec, &results, 1);
        let million = if IS_CPU_COARSE { 1e6 } else { 5e5 };
        assert_eq!(chart.panels[0].curves[0].points, [(64.0, million)]);
        assert!(chart.panels[0].axis.label.contains("a million waits"));
    }

    #[test]
    fn chart_of_rows_is_that_of_their_medians() {
        let text = "mechanism,objects,round,waits,cpu_ns,wall_ns\npool,64,1,9,30,1\npool,2,1,9,20,1\n\
                    libuv,2,1,9,5,1\npool,2,2,9,40,1\n";
        let rows = CsvTable::read(text).expect("read rows");
        let chart = redraw(&BenchSpec::example(), &rows, "a machine").expect("draw rows");
        assert_eq!(chart.subtitle, "a machine, median of 2 rounds");
        let curves: Vec<_> = chart.panels[0]
            .curves
            .iter()
            .map(|curve| (curve.label.as_str(), curve.points.as_slice()))
            .collect();
        assert_eq!(curves, [("pool", &[(2.0, 30.0), (64.0, 30.0)][..]), ("libuv", &[(2.0, 5.0)])]);
        let noted = CsvTable::read("mechanism,objects,round,cpu_ns,wall_ns,note\npool,2,1,0,7,under Wine\n");
        let chart = redraw(&BenchSpec::example(), &noted.expect("read rows"), "it").expect("draw rows");
        assert_eq!((&*chart.subtitle, chart.panels[0].curves[0].points[0].1), ("it (under Wine)", 7.0));
        assert!(redraw(&BenchSpec::example(), &CsvTable::new(&["mechanism"]), "").is_err());
    }

    #[test]
    fn note_accompanies_tables_and_chart() {
        let spec = BenchSpec { note: Some("under Wine"), ..BenchSpec::example() };
        let cases = Case::grid(&[0, 2], &["scan"]);
        let mut results = Results::new(&cases);
        results.add(0, measurement(10.0));
        results.add(1, measurement(20.0));
        assert!(tables(&spec, &results, 1).starts_with("Note: under Wine.\n\nCPU time"));
        let chart = chart(&spec, &results, 1);
        assert!(chart.subtitle.contains(" (under Wine), "), "{}", chart.subtitle);
        // Size 0 is not on the chart.
        assert_eq!(chart.panels[0].curves[0].points.len(), 1);
    }
}
