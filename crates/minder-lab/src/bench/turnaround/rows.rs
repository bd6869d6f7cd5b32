//! Measurements as rows, which a later run reads again.

use std::time::Duration;

use anyhow::{Context, Result};
use minder_bench::{
    Form, Lengths, Order, PlannedRun, Runner, TurnaroundCase, TurnaroundMeasurement, Workload, predict,
};
use serde_json::{Map, Value as Json};

use crate::bench::spec::note;
use minder_ui::rows::{Value, integer, text};

/// The names of the columns.
const COLUMNS: [&str; 17] = [
    "workload",
    "runner",
    "degree",
    "order",
    "lengths",
    "bias_ms",
    "computations",
    "repetition",
    "processors",
    "elapsed_ms",
    "model_elapsed_ms",
    "turnaround",
    "model_turnaround",
    "turnaround_p95",
    "unresponsive_ms",
    "cpu_ms",
    "load",
];

/// The longest time, and the greatest turnaround of a computation of a millisecond: 100 years.
const MILLIS_MAX: f64 = 100.0 * 365.25 * 86_400e3;

/// A run, and what it found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) case: TurnaroundCase,
    pub(super) repetition: u32,
    /// The processors that the process might use.
    pub(super) processors: usize,
    pub(super) measurement: TurnaroundMeasurement,
    /// The load of the machine before, where it is known: see [`minder_os::host_stats::load`].
    pub(super) load: Option<f64>,
}

/// Returns the names of the columns.
pub(super) fn columns() -> Vec<String> {
    COLUMNS.into_iter().chain(note().map(|_| "note")).map(str::to_owned).collect()
}

impl Row {
    /// Returns the run of which this is the result.
    pub(super) fn run(&self) -> PlannedRun {
        PlannedRun { case: self.case, repetition: self.repetition }
    }

    /// Returns the values in the order of the columns.
    pub(super) fn values(&self) -> Vec<Value> {
        let Self { case, measurement, .. } = self;
        let model = predict(case, self.processors);
        let text = |name: &str| text(Some(name));
        let mut values = vec![
            text(case.workload.name()),
            text(case.form.runner.name()),
            integer(case.form.degree as u64),
            text(case.form.order.name()),
            text(case.lengths.name()),
            integer(case.bias_ms),
            integer(case.count as u64),
            integer(self.repetition.into()),
            integer(self.processors as u64),
            millis(measurement.elapsed),
            millis(model.elapsed),
            rounded(measurement.turnaround),
            rounded(model.turnaround),
            rounded(measurement.turnaround_p95),
            millis(measurement.unresponsive),
            millis(measurement.cpu),
            self.load.map_or(Value::Null, rounded),
        ];
        values.extend(note().map(text));
        values
    }

    /// Reads the object of a row.
    ///
    /// # Errors
    /// If a column is missing, has another type, or is a time beyond [`MILLIS_MAX`].
    pub(super) fn read(row: &Map<String, Json>) -> Result<Self> {
        let number = |name: &str| {
            row.get(name).and_then(Json::as_u64).with_context(|| format!("`{name}` is not a number"))
        };
        let real = |name: &str| {
            let number = row.get(name).and_then(Json::as_f64);
            let number = number.filter(|number| (0.0..=MILLIS_MAX).contains(number));
            number.with_context(|| format!("`{name}` is not a number"))
        };
        let time = |name: &str| -> Result<Duration> { Ok(Duration::try_from_secs_f64(real(name)? / 1e3)?) };
        let form = Form {
            runner: name(row, "runner", Runner::from_name)?,
            degree: usize::try_from(number("degree")?)?,
            order: name(row, "order", Order::from_name)?,
        };
        let case = TurnaroundCase {
            workload: name(row, "workload", Workload::from_name)?,
            form,
            lengths: name(row, "lengths", Lengths::from_name)?,
            bias_ms: number("bias_ms")?,
            count: usize::try_from(number("computations")?)?,
        };
        let turnarounds = (real("turnaround")?, real("turnaround_p95")?);
        let elapsed = time("elapsed_ms")?;
        let cpu = time("cpu_ms")?;
        Ok(Self {
            case,
            repetition: u32::try_from(number("repetition")?)?,
            processors: usize::try_from(number("processors")?)?,
            measurement: TurnaroundMeasurement::from_parts(
                elapsed,
                turnarounds,
                time("unresponsive_ms")?,
                cpu,
            ),
            load: row.get("load").and_then(Json::as_f64),
        })
    }

    /// Returns an example for tests: computations of 10 ms × i that took this time, serially.
    #[cfg(test)]
    pub(super) fn example(workload: Workload, count: usize, elapsed_ms: u64) -> Self {
        let form = Form { runner: Runner::Serial, degree: 1, order: Order::Longest };
        let case = TurnaroundCase { workload, form, lengths: Lengths::Ramp, bias_ms: 10, count };
        let millis = Duration::from_millis;
        let measurement =
            TurnaroundMeasurement::from_parts(millis(elapsed_ms), (2.5, 4.0), millis(20), millis(1));
        Self { case, repetition: 1, processors: 2, measurement, load: Some(0.25) }
    }
}

/// Reads a column that has one of several names.
fn name<T>(row: &Map<String, Json>, column: &str, read: impl Fn(&str) -> Option<T>) -> Result<T> {
    let found = row.get(column).and_then(Json::as_str).and_then(read);
    found.with_context(|| format!("`{column}` is unknown"))
}

/// Returns milliseconds: a microsecond is finer than any of the lengths.
fn millis(time: Duration) -> Value {
    rounded(time.as_secs_f64() * 1e3)
}

fn rounded(number: f64) -> Value {
    Value::Real((number * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder_ui::rows::{CsvTable, Format, Rows};

    #[test]
    fn row_is_read_as_it_was_written() {
        let row = Row::example(Workload::Io, 2, 31);
        let mut out = Vec::new();
        let mut rows = Rows::new(&mut out, Format::Json, columns()).expect("write columns");
        rows.row(&row.values()).expect("write row");
        rows.flush().expect("write rows");
        let line = String::from_utf8(out).expect("decode rows");
        assert!(
            line.starts_with(
                "{\"workload\":\"io\",\"runner\":\"serial\",\"degree\":1,\"order\":\"longest\",\
                 \"lengths\":\"ramp\",\"bias_ms\":10,\"computations\":2,\"repetition\":1,\"processors\":2,\
                 \"elapsed_ms\":31.0,\"model_elapsed_ms\":30.0,\"turnaround\":2.5,\"model_turnaround\":2.0,"
            ),
            "{line}"
        );
        let read = |line: &str| Row::read(&serde_json::from_str(line)?);
        assert_eq!(read(&line).expect("read row"), row);
        // CSV has the same values.
        let mut out = Vec::new();
        let mut rows = Rows::new(&mut out, Format::Csv, columns()).expect("write columns");
        rows.row(&row.values()).expect("write row");
        let table = CsvTable::read(&String::from_utf8(out).expect("decode rows")).expect("read rows");
        let object = table.objects().next().expect("find the row");
        assert_eq!(Row::read(&object).expect("read row"), row);
        let with = |text: &str| line.replace("31.0", text);
        for damaged in
            ["", "{}", "[1]", &line.replace("serial", "magic"), &with("-1.0"), &with("1e300"), &with("1e13")]
        {
            read(damaged).expect_err("read a damaged row");
        }
    }
}
