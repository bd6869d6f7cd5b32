//! Dates and times, as people read them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Returns the local time zone, or UTC if it is unknown.
pub(crate) fn local_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// Returns a time in seconds since 1970, relative to `now`: `today 14:02`, `yesterday 09:10`, `12 Nov
/// 17:40`, `3 Feb 2024 08:00`.
pub(crate) fn relative_date(at: f64, now: Timestamp, zone: &TimeZone) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
