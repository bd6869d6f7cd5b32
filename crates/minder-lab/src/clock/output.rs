//! The form of what is shown: tables or rows, and a chart.

use std::time::Duration;

use minder_ui::format::nanos;
use minder_ui::rows::Value;
use minder_ui::symbols::Symbols;

/// What is said about all times that are measured under Wine.
const WINE_NOTE: &str = "under Wine, whose timers have no tick; these are not times of Windows";

/// Returns the note about all times, if there is one.
pub(super) fn note() -> Option<&'static str> {
    minder_bench::is_wine().then_some(WINE_NOTE)
}

/// Returns these names of columns, and that of the note if there is one.
pub(super) fn columns(names: &[&str]) -> Vec<String> {
    names.iter().copied().chain(note().map(|_| "note")).map(str::to_owned).collect()
}

/// Returns these values, and the note if there is one.
pub(super) fn row(values: impl IntoIterator<Item = Value>) -> Vec<Value> {
    values.into_iter().chain(note().map(|note| Value::Text(note.to_owned()))).collect()
}

pub(super) fn integer(number: usize) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns a time in nanoseconds.
pub(super) fn nanoseconds(time: Duration) -> Value {
    Value::Integer(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

/// Formats a time with three digits.
pub(super) fn short(time: Duration) -> String {
    nanos(time.as_nanos() as f64)
}

/// Formats a time that was asked for: `1 ms`, `1.5 ms`, `100 µs`, `2 s`.
pub(super) fn asked(time: Duration) -> String {
    let ns = time.as_nanos();
    let (divisor, unit) = match ns {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    format!("{} {unit}", ns as f64 / f64::from(divisor))
}

/// Formats a time that was asked for in ASCII, for rows and charts: `100 us`. They are the same in every
/// locale.
pub(super) fn asked_ascii(time: Duration) -> String {
    Symbols::Ascii.convert(&asked(time)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asked_times_have_all_digits() {
        let times = [700, 100_000, 1_500_000, 1_000_000, 2_000_000_000, 1_234_567];
        let texts = times.map(|ns| asked(Duration::from_nanos(ns)));
        assert_eq!(texts, ["700 ns", "100 µs", "1.5 ms", "1 ms", "2 s", "1.234567 ms"]);
        assert_eq!(asked_ascii(Duration::from_micros(100)), "100 us");
    }
}
