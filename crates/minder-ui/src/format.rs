//! Dates, times and durations, as people read them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Returns the local time zone, or UTC if it is unknown.
pub fn local_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// Returns a time in seconds since 1970, relative to `now`: `today 14:02`, `yesterday 09:10`, `12 Nov
/// 17:40`, `3 Feb 2024 08:00`.
pub fn relative_date(at: f64, now: Timestamp, zone: &TimeZone) -> String {
    // The cast saturates, and a timestamp out of range is refused.
    let Ok(timestamp) = Timestamp::from_second(at.floor() as i64) else { return "?".to_owned() };
    let time = timestamp.to_zoned(zone.clone());
    let now = now.to_zoned(zone.clone());
    let yesterday = now.date().saturating_sub(1.day());
    let format = match time.date() {
        date if date == now.date() => "today %H:%M",
        date if date == yesterday => "yesterday %H:%M",
        date if date.year() == now.year() => "%-d %b %H:%M",
        _ => "%-d %b %Y %H:%M",
    };
    time.strftime(format).to_string()
}

/// Returns a time in seconds since 1970 as `2026-11-24 13:55:02`.
pub fn exact_date(at: f64, zone: &TimeZone) -> String {
    let Ok(timestamp) = Timestamp::from_second(at.floor() as i64) else { return "?".to_owned() };
    timestamp.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Joins items into lines of at most `width` characters, with a gap between two items.
pub fn fill_lines(items: &[impl AsRef<str>], gap: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items.iter().map(AsRef::as_ref) {
        let fits = |line: &&mut String| line.chars().count() + gap.len() + item.chars().count() <= width;
        match lines.last_mut().filter(fits) {
            Some(line) => *line = format!("{line}{gap}{item}"),
            None => lines.push(item.to_owned()),
        }
    }
    lines
}

/// Breaks a text at spaces into lines of at most `width` characters, if a width is given. A number stays
/// with its unit, the next word.
pub fn fill_text(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut().filter(|last| last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => *number = format!("{number} {word}"),
            None => words.push(word.to_owned()),
        }
    }
    fill_lines(&words, " ", width).join("\n")
}

/// Formats nanoseconds with three digits: `412 ns`, `1.23 µs`, `12.3 µs`, `130 µs`, `1.45 ms`. The
/// caller converts the unit to the characters of the locale.
pub fn nanos(ns: f64) -> String {
    let (value, unit) = match ns {
        ..999.5 => return format!("{:.0} ns", ns.max(0.0)),
        ..999.5e3 => (ns / 1e3, "µs"),
        ..999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    match value {
        ..9.995 => format!("{value:.2} {unit}"),
        ..99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanos_have_three_digits() {
        let values = [-1.0, 0.0, 4.4, 412.0, 999.6, 1_234.0, 12_340.0, 99_960.0, 130_000.0, 1.45e6, 2e9];
        let wanted = [
            "0 ns", "0 ns", "4 ns", "412 ns", "1.00 µs", "1.23 µs", "12.3 µs", "100 µs", "130 µs", "1.45 ms",
            "2.00 s",
        ];
        assert_eq!(values.map(nanos), wanted);
    }

    #[test]
    fn relative_date_omits_what_is_near() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // 2026-11-21 00:30 in this zone.
        let now: Timestamp = "2026-11-20T22:30:00Z".parse().expect("parse time");
        let formatted = |text: &str| {
            let at: Timestamp = text.parse().expect("parse time");
            relative_date(at.as_second() as f64 + 0.9, now, &zone)
        };
        assert_eq!(formatted("2026-11-20T22:02:00Z"), "today 00:02");
        assert_eq!(formatted("2026-11-20T21:59:59Z"), "yesterday 23:59");
        assert_eq!(formatted("2026-11-12T15:40:00Z"), "12 Nov 17:40");
        assert_eq!(formatted("2024-02-03T06:00:00Z"), "3 Feb 2024 08:00");
        // In the future: the clock was ahead.
        assert_eq!(formatted("2026-11-22T22:00:00Z"), "23 Nov 00:00");
        assert_eq!([f64::MAX, f64::INFINITY, -1e18].map(|at| relative_date(at, now, &zone)), ["?", "?", "?"]);
        assert_eq!(relative_date(f64::NAN, now, &zone), "1 Jan 1970 02:00");
    }

    #[test]
    fn fill_lines_breaks_at_the_width() {
        let items = ["aaa", "bbb", "cc"];
        assert_eq!(fill_lines(&items, "   ", 9), ["aaa   bbb", "cc"]);
        assert_eq!(fill_lines(&items, "   ", 2), ["aaa", "bbb", "cc"]);
    }

    #[test]
    fn texts_are_filled_at_spaces() {
        let wrapped = |text: &str, width| fill_lines(&text.split(' ').collect::<Vec<_>>(), " ", width);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 80), ["one two three"]);
        assert_eq!(wrapped("longer than that", 3), ["longer", "than", "that"]);
        assert_eq!(fill_text("one two three", Some(7)), "one two\nthree");
        assert_eq!(fill_text("one two three", None), "one two three");
        assert_eq!(fill_text("about 1.00 s, 2 jobs", Some(11)), "about\n1.00 s,\n2 jobs");
    }
}
