//! A workbook of measurements, medians and charts, which a spreadsheet program draws itself.

use anyhow::Result;
use minder_bench::{TurnaroundMeasurement, predict};
use rust_xlsxwriter::{Chart, ChartEmptyCells, ChartType, Format, Workbook, Worksheet};

use super::rows::columns;
use super::summary::{Group, Summary};
use minder_ui::rows::Value;

/// The size of a chart, in pixels, and the rows that it covers.
const CHART: (u32, u32) = (760, 420);
const CHART_ROWS: u32 = 23;

/// A value of a measurement.
type Column = fn(&TurnaroundMeasurement) -> f64;

/// Returns the bytes of the workbook.
///
/// # Errors
/// Those of the writer, such as for more rows than a sheet has.
pub(super) fn workbook(summary: &Summary, processors: usize) -> Result<Vec<u8>> {
    let mut book = Workbook::new();
    let bold = Format::new().set_bold();
    for group in summary.groups() {
        charts(book.add_worksheet(), &bold, summary, group)?;
    }
    medians(book.add_worksheet(), &bold, summary, processors)?;
    measurements(book.add_worksheet(), &bold, summary)?;
    Ok(book.save_to_buffer()?)
}

/// Writes the tables of a group, and a chart beside each.
fn charts(sheet: &mut Worksheet, bold: &Format, summary: &Summary, group: Group) -> Result<()> {
    // The rule of the lengths is in the title: `×` and spaces are allowed, and a name has 31 letters.
    let name = format!("{} {} ms {}", group.workload.name(), group.bias_ms, group.lengths.name());
    sheet.set_name(&name)?;
    let tables: [(&str, Column); 4] = [
        ("Elapsed time, ms", |it| it.elapsed.as_secs_f64() * 1e3),
        ("Mean relative turnaround", |it| it.turnaround),
        ("p95 relative turnaround", |it| it.turnaround_p95),
        ("Unresponsive time, ms", |it| it.unresponsive.as_secs_f64() * 1e3),
    ];
    let forms = summary.forms(group);
    let counts = summary.counts(group);
    let height = u32::try_from(counts.len())?;
    let mut top = 0;
    for (title, value) in tables {
        sheet.write_with_format(top, 0, title, bold)?;
        sheet.write_with_format(top + 1, 0, "computations", bold)?;
        let mut chart = Chart::new(ChartType::ScatterStraightWithMarkers);
        chart.title().set_name(&format!("{title}: {group}"));
        chart.x_axis().set_name("computations");
        chart.y_axis().set_name(title);
        chart.show_empty_cells_as(ChartEmptyCells::Connected);
        chart.set_width(CHART.0).set_height(CHART.1);
        for (row, count) in (top + 2..).zip(&counts) {
            sheet.write(row, 0, *count as f64)?;
        }
        for (column, form) in (1..).zip(&forms) {
            sheet.write_with_format(top + 1, column, form.to_string(), bold)?;
            for (row, count) in (top + 2..).zip(&counts) {
                if let Some(spread) = summary.spread(&group.case(*form, *count), value) {
                    sheet.write(row, column, spread.median)?;
                }
            }
            let last = top + 1 + height;
            let series = chart.add_series();
            series.set_name((name.as_str(), top + 1, column));
            series.set_categories((name.as_str(), top + 2, 0, last, 0));
            series.set_values((name.as_str(), top + 2, column, last, column));
        }
        sheet.insert_chart(top + 1, u16::try_from(forms.len())? + 2, &chart)?;
        top += (height + 4).max(CHART_ROWS);
    }
    sheet.set_column_width(0, 14)?;
    Ok(())
}

/// Writes a row for each case.
fn medians(sheet: &mut Worksheet, bold: &Format, summary: &Summary, processors: usize) -> Result<()> {
    sheet.set_name("medians")?.set_freeze_panes(1, 0)?;
    let names = [
        "workload",
        "lengths",
        "bias_ms",
        "form",
        "computations",
        "repetitions",
        "elapsed_ms",
        "min",
        "max",
        "model_elapsed_ms",
        "turnaround",
        "min",
        "max",
        "model_turnaround",
        "turnaround_p95",
        "unresponsive_ms",
        "cpu_ms",
        "cpu / serial",
    ];
    for (column, name) in (0..).zip(names) {
        sheet.write_with_format(0, column, name, bold)?;
    }
    let mut at = 1;
    for group in summary.groups() {
        for form in summary.forms(group) {
            for count in summary.counts(group) {
                let case = group.case(form, count);
                let spread = |value: Column| summary.spread(&case, value);
                let Some(elapsed) = spread(|it| it.elapsed.as_secs_f64() * 1e3) else { continue };
                let model = predict(&case, processors);
                let texts = [group.workload.name(), group.lengths.name(), &form.to_string()];
                for (column, text) in [0, 1, 3].into_iter().zip(texts) {
                    sheet.write(at, column, text)?;
                }
                let turnaround = spread(|it| it.turnaround);
                let median = |value| spread(value).map(|spread| spread.median);
                let numbers = [
                    (2, Some(group.bias_ms as f64)),
                    (4, Some(count as f64)),
                    (5, Some(summary.of_case(&case).count() as f64)),
                    (6, Some(elapsed.median)),
                    (7, Some(elapsed.min)),
                    (8, Some(elapsed.max)),
                    (9, Some(model.elapsed.as_secs_f64() * 1e3)),
                    (10, turnaround.map(|it| it.median)),
                    (11, turnaround.map(|it| it.min)),
                    (12, turnaround.map(|it| it.max)),
                    (13, Some(model.turnaround)),
                    (14, median(|it| it.turnaround_p95)),
                    (15, median(|it| it.unresponsive.as_secs_f64() * 1e3)),
                    (16, median(|it| it.cpu.as_secs_f64() * 1e3)),
                    (17, summary.over_serial(&case, |it| it.cpu.as_secs_f64()).map(|it| it.median)),
                ];
                for (column, number) in numbers {
                    if let Some(number) = number {
                        sheet.write(at, column, number)?;
                    }
                }
                at += 1;
            }
        }
    }
    Ok(())
}

/// Writes each measurement, with the columns of `--csv`.
fn measurements(sheet: &mut Worksheet, bold: &Format, summary: &Summary) -> Result<()> {
    sheet.set_name("measurements")?.set_freeze_panes(1, 0)?;
    for (column, name) in (0..).zip(columns()) {
        sheet.write_with_format(0, column, name, bold)?;
    }
    for (at, row) in (1..).zip(&summary.rows) {
        for (column, value) in (0..).zip(row.values()) {
            match value {
                Value::Integer(number) => sheet.write(at, column, number as f64)?,
                Value::Real(number) => sheet.write(at, column, number)?,
                Value::Text(text) => sheet.write(at, column, text)?,
                _ => continue,
            };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use minder_bench::Workload;

    use super::super::rows::Row;
    use super::*;

    #[test]
    fn workbook_is_an_archive_of_sheets_and_charts() {
        let rows = vec![
            Row::example(Workload::Io, 2, 31),
            Row::example(Workload::Io, 5, 150),
            Row::example(Workload::Cpu, 2, 30),
        ];
        let bytes = workbook(&Summary { rows }, 2).expect("write the workbook");
        assert!(bytes.starts_with(b"PK"));
        let has = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
        // Two groups with four charts each, and two more sheets.
        for name in ["xl/worksheets/sheet4.xml", "xl/charts/chart8.xml", "xl/workbook.xml"] {
            assert!(has(name), "{name}");
        }
        assert!(!has("xl/charts/chart9.xml"));
        assert!(workbook(&Summary { rows: vec![] }, 2).is_ok());
    }
}
