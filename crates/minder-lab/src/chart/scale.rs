//! Axes: where a value is, and how it is labelled.

use std::ops::Range;

/// How positions on the horizontal axis grow. The vertical axis is always logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By the same distance for the same difference.
    Linear,
    /// By the same distance for the same ratio.
    Logarithmic,
}

/// The unit of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A time in nanoseconds, labelled as `10 us`.
    Nanoseconds,
    /// A ratio, labelled as `5 ×`.
    Times,
    /// A number, labelled as `5,000`.
    Count,
    /// A number of bytes, labelled as `64 KiB`.
    Bytes,
}

/// The least value for which a logarithmic axis has space: a nanosecond, one object, or a ratio of one.
/// Smaller ones are drawn at its start.
pub(super) const LEAST: f64 = 1.0;
/// The greatest ratio of the ends of an axis on which 2 and 5 of each decade have labels.
const LABELS_MAX: f64 = 1e3;

impl Scale {
    /// Returns the position of a value on the axis, from 0 to 1.
    pub(super) fn fraction(self, range: &Range<f64>, value: f64) -> f64 {
        match self {
            Self::Linear => (value - range.start) / (range.end - range.start),
            Self::Logarithmic => (value.max(range.start) / range.start).ln() / (range.end / range.start).ln(),
        }
    }

    /// Returns the least value that the range of the axis includes.
    pub(super) fn least(self) -> f64 {
        match self {
            Self::Linear => f64::MIN,
            Self::Logarithmic => LEAST,
        }
    }

    /// Adds a margin on both sides of a range.
    pub(super) fn widen(self, range: &Range<f64>) -> Range<f64> {
        match self {
            Self::Linear => {
                let margin = (range.end - range.start) * 0.05;
                range.start - margin..range.end + margin
            }
            Self::Logarithmic => range.start / 1.2..range.end * 1.2,
        }
    }
}

impl Unit {
    /// Formats a round number: `100 ns`, `10 us`, `2 ms`; `5 ×`; `5,000`; `64 KiB`.
    pub(super) fn format(self, number: f64) -> String {
        let (value, unit) = match (self, number * 1.001) {
            (Self::Count, _) => return grouped(number),
            (Self::Times, _) => (number, "×"),
            (Self::Nanoseconds, ..1e3) => (number, "ns"),
            (Self::Nanoseconds, ..1e6) => (number / 1e3, "us"),
            (Self::Nanoseconds, ..1e9) => (number / 1e6, "ms"),
            (Self::Nanoseconds, _) => (number / 1e9, "s"),
            (Self::Bytes, ..1048576.0) => (number / 1024.0, "KiB"),
            (Self::Bytes, _) => (number / 1048576.0, "MiB"),
        };
        format!("{} {unit}", tenths(value))
    }
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Formats a number with commas between its thousands.
fn grouped(number: f64) -> String {
    let text = tenths(number).to_string();
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// Returns the range of the values; a single value gets a margin on both sides.
pub(super) fn range(values: &[f64]) -> Range<f64> {
    let least = values.iter().copied().reduce(f64::min).unwrap_or(LEAST);
    let most = values.iter().copied().reduce(f64::max).unwrap_or(LEAST);
    if most > least { least..most } else { least / 2.0..most * 2.0 }
}

/// Extends a range to 1, 2 or 5 of a decade.
pub(super) fn round_outwards(range: &Range<f64>) -> Range<f64> {
    let near = |value: f64| {
        let decade = 10f64.powf(value.log10().floor());
        [0.5, 1.0, 2.0, 5.0, 10.0, 20.0].map(|step| step * decade)
    };
    let low = near(range.start).into_iter().rev().find(|step| *step <= range.start * 0.95);
    let high = near(range.end).into_iter().find(|step| *step >= range.end * 1.05);
    low.unwrap_or(range.start)..high.unwrap_or(range.end)
}

/// A line of the grid of a logarithmic axis.
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) is_whole_decade: bool,
    pub(super) is_labelled: bool,
}

/// Returns the lines of the grid of a logarithmic axis.
pub(super) fn ticks(range: &Range<f64>) -> Vec<Tick> {
    let first = range.start.log10().floor() as i32;
    let last = range.end.log10().ceil() as i32;
    let is_short = range.end / range.start <= LABELS_MAX;
    let tick = |decade: i32, step: i32| Tick {
        value: f64::from(step) * 10f64.powi(decade),
        is_whole_decade: step == 1,
        is_labelled: step == 1 || is_short && [2, 5].contains(&step),
    };
    let all = (first..=last).flat_map(|decade| (1..10).map(move |step| tick(decade, step)));
    // Powers are not exact, so the bounds have a small tolerance.
    all.filter(|tick| tick.value >= range.start * 0.999 && tick.value <= range.end * 1.001).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_begin_at_0_and_end_at_1() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let range = 1.0..15.0;
            assert_eq!([1.0, 15.0].map(|value| scale.fraction(&range, value)), [0.0, 1.0]);
            let wide = scale.widen(&range);
            assert!(wide.start < 1.0 && wide.end > 15.0, "{wide:?}");
        }
        assert_eq!(Scale::Linear.fraction(&(1.0..15.0), 8.0), 0.5);
        // A ratio of 1 is above the start of its axis, and no cost at the start.
        assert_eq!([1.0, 0.0].map(|value| Scale::Logarithmic.fraction(&(0.5..2.0), value)), [0.5, 0.0]);
    }

    #[test]
    fn axes_end_at_round_values() {
        assert_eq!(round_outwards(&(310.0..7.2e6)), 200.0..1e7);
        assert_eq!(round_outwards(&(1000.0..2000.0)), 500.0..5000.0);
        let whole: Vec<f64> = ticks(&(200.0..1e4))
            .into_iter()
            .filter(|tick| tick.is_whole_decade)
            .map(|tick| tick.value)
            .collect();
        assert_eq!(whole, [1e3, 1e4]);
        let labelled = |range| ticks(&range).into_iter().filter(|tick| tick.is_labelled).count();
        assert_eq!([labelled(200.0..1e4), labelled(1.0..1e4)], [6, 5]);
    }

    #[test]
    fn labels_have_units() {
        assert_eq!(
            [100.0, 1000.0, 20e3, 1e6, 1e9].map(|ns| Unit::Nanoseconds.format(ns)),
            ["100 ns", "1 us", "20 us", "1 ms", "1 s"]
        );
        assert_eq!([0.25, 15.0, 16384.0].map(|number| Unit::Count.format(number)), ["0.3", "15", "16,384"]);
        assert_eq!([65536.0, 1048576.0].map(|bytes| Unit::Bytes.format(bytes)), ["64 KiB", "1 MiB"]);
        assert_eq!(Unit::Times.format(5.0), "5 ×");
    }
}
