//! Results as tables and as a chart.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::{Context, Result};
use minder_bench::{Measurement, Results, Stopwatch, median};

use super::errors::describe;
use super::spec::BenchSpec;
use crate::chart::{Axis, Chart, Curve, Panel, Scale, Unit, noted};
use minder_ui::format::nanos;
use minder_ui::rows::CsvTable;
use minder_ui::table::{Column, Table};

/// Whether CPU time has a coarse resolution: few operations then seem to cost nothing.
const IS_CPU_COARSE: bool = Stopwatch::CPU_RESOLUTION.as_millis() > 0;

/// The most panels of a chart in a row.
const PANELS_MAX: usize = 3;

/// What a kind is, for the title of its panel.
const KINDS: [(&str, &str); 9] = [
    ("one", "one child exits, the others live"),
    ("burst", "each of all that exit at once"),
    ("mark-live", "all cells live"),
    ("sweep-live", "all cells live"),
    ("mark-half", "half of the cells dead"),
    ("sweep-half", "half of the cells dead"),
    ("refill-half", "random holes"),
    ("sweep-dead", "all cells dead"),
    ("refill-dead", "an empty heap"),
];

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
    if spec.kinds {
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
        if spec.kinds {
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

/// Returns a chart of rows with a panel for each kind. It shows the medians of CPU time, or of wall
/// time where CPU time has a coarse resolution. The subtitle begins with the machine.
///
/// # Errors
/// They do not have the columns of `spec`.
pub(super) fn chart(spec: &BenchSpec, rows: &CsvTable, machine: &str) -> Result<Chart> {
    // Rows with a note are from Wine, which has the coarse CPU time of Windows.
    let is_wall = IS_CPU_COARSE || rows.index("note").is_some();
    let place = |name: &str| rows.index(name).with_context(|| format!("the rows have no column `{name}`"));
    let mechanism = place("mechanism")?;
    let size = place(spec.size)?;
    let round = place("round")?;
    let ns = place(if is_wall { "wall_ns" } else { "cpu_ns" })?;
    let kind = if spec.kinds { Some(place("kind")?) } else { None };
    let mut costs: Vec<Cost<'_>> = Vec::new();
    let mut rounds = 1;
    for row in &rows.rows {
        rounds = rounds.max(row[round].parse()?);
        let kind = kind.map_or("", |kind| &row[kind]);
        costs.push((kind, &row[mechanism], row[size].parse()?, row[ns].parse()?));
    }
    let what = if spec.is_tiny {
        format!("a million {}", spec.operations())
    } else {
        format!("one {}", spec.operation)
    };
    let label =
        if is_wall { format!("Wall time of {what}") } else { format!("CPU time of {what}, {}", spec.whose) };
    let axis = Axis { label, unit: Unit::Nanoseconds };
    let title = |kind: &str| {
        let what = KINDS.iter().find(|(name, _)| *name == kind);
        what.map_or(kind.to_owned(), |(_, what)| format!("{kind}: {what}"))
    };
    let panel =
        |kind: &str| Panel { title: title(kind), axis: axis.clone(), curves: curves(spec, &costs, kind) };
    let panels: Vec<Panel> = unique(costs.iter().map(|cost| cost.0)).into_iter().map(panel).collect();
    Ok(Chart {
        title: spec.title.to_owned(),
        subtitle: noted(machine, rows) + &describe_rounds(rounds),
        x_axis: Axis { label: spec.axis.to_owned(), unit: Unit::Count },
        x_scale: Scale::Logarithmic,
        columns: panels.len().min(PANELS_MAX),
        panels,
    })
}

/// The kind, the mechanism and the size of a row, and the nanoseconds of one operation.
type Cost<'a> = (&'a str, &'a str, u64, f64);

fn curves(spec: &BenchSpec, costs: &[Cost<'_>], kind: &str) -> Vec<Curve> {
    let operations = if spec.is_tiny { 1e6 } else { 1.0 };
    let curve = |mechanism: &str| {
        let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for cost in costs {
            // A logarithmic axis has no 0.
            if (cost.0, cost.1) == (kind, mechanism) && cost.2 > 0 {
                values.entry(cost.2).or_default().push(cost.3 * operations);
            }
        }
        let points = values.into_iter().filter_map(|(size, ns)| Some((size as f64, median(ns)?)));
        Curve::new(mechanism, points.collect())
    };
    let measured = unique(costs.iter().map(|cost| cost.1)).into_iter().map(curve);
    measured.chain(spec.published.iter().cloned()).collect()
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
    use minder_bench::{Case, WaitBench, WaitObjects};

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
     64  1.50 µs     -

Wall time of one wait:

objects    epoll  pool
      2   400 ns     -
     64  3.00 µs     -

Not measured:
  pool, 2, 64 objects: {reason}
"
        );
        assert_eq!(text, wanted);
    }

    #[test]
    fn kinds_have_a_column_and_a_panel() {
        let spec = BenchSpec { kinds: true, ..BenchSpec::example() };
        let case = |kind| Case { mechanism: "floor", kind: Some(kind), size: 2 };
        let cases = [case("one"), case("burst")];
        let mut results = Results::new(&cases);
        results.add(0, measurement(10.0));
        results.add(1, measurement(20.0));
        let text = tables(&spec, &results, 1);
        let wanted = "\nkind   objects  floor\none          2  10 ns\nburst        2  20 ns\n";
        assert!(text.contains(wanted), "{text}");
        let rows = "mechanism,kind,objects,round,cpu_ns,wall_ns\nfloor,one,2,1,1,1\nfloor,burst,2,1,1,1\n";
        let titles: Vec<String> = draw(&spec, rows).panels.into_iter().map(|panel| panel.title).collect();
        assert_eq!(titles, ["one: one child exits, the others live", "burst: each of all that exit at once"]);
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
        let chart = draw(&spec, "mechanism,objects,round,cpu_ns,wall_ns\nminder,64,1,0.5,0.5\n");
        assert_eq!(chart.panels[0].curves[0].points, [(64.0, 5e5)]);
        assert!(chart.panels[0].axis.label.contains("a million waits"));
    }

    fn draw(spec: &BenchSpec, rows: &str) -> Chart {
        chart(spec, &CsvTable::read(rows).expect("read rows"), "a machine").expect("draw rows")
    }

    #[test]
    fn chart_shows_the_medians_of_rows() {
        let rows = "mechanism,objects,round,waits,cpu_ns,wall_ns\npool,64,1,9,30,30\npool,2,1,9,20,20\n\
                    libuv,2,1,9,5,5\npool,2,2,9,40,40\npool,0,2,9,1,1\n";
        let chart = draw(&BenchSpec::example(), rows);
        assert_eq!(chart.subtitle, "a machine, median of 2 rounds");
        let curves: Vec<_> =
            chart.panels[0].curves.iter().map(|curve| (&*curve.label, &*curve.points)).collect();
        // Size 0 is not on the chart.
        assert_eq!(curves, [("pool", &[(2.0, 30.0), (64.0, 30.0)][..]), ("libuv", &[(2.0, 5.0)])]);
        assert!(super::chart(&BenchSpec::example(), &CsvTable::new(&["mechanism"]), "").is_err());
    }

    #[test]
    fn note_accompanies_tables_and_chart() {
        let spec = BenchSpec { note: Some("under Wine"), ..BenchSpec::example() };
        let cases = Case::grid(&[0, 2], &["scan"]);
        let mut results = Results::new(&cases);
        results.add(0, measurement(10.0));
        results.add(1, measurement(20.0));
        assert!(tables(&spec, &results, 1).starts_with("Note: under Wine.\n\nCPU time"));
        let chart = draw(&spec, "mechanism,objects,round,cpu_ns,wall_ns,note\nscan,2,1,0,7,under Wine\n");
        assert_eq!(chart.subtitle, "a machine (under Wine)");
        assert_eq!(chart.panels[0].curves[0].points, [(2.0, 7.0)]);
    }
}
