//! Measurements as rows of CSV and JSON.

use minder_bench::{Case, Measurement};

use super::spec::BenchSpec;
use minder_ui::rows::{Value, integer, text};

/// Returns the names of the columns.
pub(super) fn columns(spec: &BenchSpec) -> Vec<String> {
    let operations = spec.operations();
    let mut names = vec!["mechanism"];
    if spec.kinds {
        names.push("kind");
    }
    names.extend([spec.size, "round", &operations, "cpu_ns", "wall_ns"]);
    if spec.note.is_some() {
        names.push("note");
    }
    names.into_iter().map(str::to_owned).collect()
}

/// Returns the values of one measurement, in the order of the columns.
pub(super) fn values(spec: &BenchSpec, case: &Case, round: u32, measurement: &Measurement) -> Vec<Value> {
    // A tenth of a nanosecond is finer than any clock, except as the mean of very many operations.
    let digits = if spec.is_tiny { 1e6 } else { 10.0 };
    let real = |number: f64| Value::Real((number * digits).round() / digits);
    let mut values = vec![text(Some(case.mechanism))];
    if spec.kinds {
        values.push(text(case.kind));
    }
    values.extend([
        integer(case.size),
        integer(round.into()),
        integer(measurement.operations),
        real(measurement.cpu_ns),
        real(measurement.wall_ns),
    ]);
    values.extend(spec.note.map(|note| text(Some(note))));
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder_ui::rows::{Format, Rows};

    fn write_row(kind: Option<&'static str>, format: Format) -> String {
        let spec = BenchSpec { kinds: kind.is_some(), ..BenchSpec::example() };
        let case = Case { mechanism: "epoll", kind, size: 64 };
        let measurement = Measurement { operations: 50, cpu_ns: 123.456, wall_ns: 246.912 };
        let mut out = Vec::new();
        let mut rows = Rows::new(&mut out, format, columns(&spec)).expect("write columns");
        rows.row(&values(&spec, &case, 3, &measurement)).expect("write row");
        rows.flush().expect("write rows");
        String::from_utf8(out).expect("decode rows")
    }

    #[test]
    fn row_has_a_value_for_each_column() {
        assert_eq!(
            write_row(None, Format::Csv),
            "mechanism,objects,round,waits,cpu_ns,wall_ns\r\nepoll,64,3,50,123.5,246.9\r\n"
        );
        assert_eq!(
            write_row(Some("one"), Format::Json),
            "{\"mechanism\":\"epoll\",\"kind\":\"one\",\"objects\":64,\"round\":3,\"waits\":50,\
             \"cpu_ns\":123.5,\"wall_ns\":246.9}\n"
        );
    }

    #[test]
    fn tiny_operations_have_more_digits() {
        let spec = BenchSpec { is_tiny: true, ..BenchSpec::example() };
        let case = Case { mechanism: "minder", kind: None, size: 64 };
        let measurement = Measurement { operations: 50, cpu_ns: 0.001_234_56, wall_ns: 2.8 };
        let values = values(&spec, &case, 1, &measurement);
        assert_eq!(values[4..], [Value::Real(0.001_235), Value::Real(2.8)]);
    }

    #[test]
    fn note_is_the_last_column() {
        let spec = BenchSpec { note: Some("under Wine"), ..BenchSpec::example() };
        assert_eq!(columns(&spec).last().map(String::as_str), Some("note"));
        let case = Case { mechanism: "scan", kind: None, size: 0 };
        let measurement = Measurement { operations: 50, cpu_ns: 1.0, wall_ns: 1.0 };
        let values = values(&spec, &case, 1, &measurement);
        assert_eq!(values.last(), Some(&Value::Text("under Wine".to_owned())));
    }
}
