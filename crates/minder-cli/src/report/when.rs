//! Times and sizes as people write them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// The user's time zone; UTC where that cannot be told.
pub(crate) fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// A moment, in seconds since 1970, seen from `now`: `today 14:02`, `yesterday 09:10`, `12 Nov
/// 17:40`, `3 Feb 2024 08:00`.
pub(crate) fn when(at: f64, now: Timestamp, zone: &TimeZone) -> String {
    // Seconds outside of what can be told saturate, and are refused.
    let Ok(moment) = Timestamp::from_second(at.floor() as i64) else { return "?".to_owned() };
    let (moment, now) = (moment.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let yesterday = now.date().saturating_sub(1.day());
    let form = match moment.date() {
        date if date == now.date() => "today %H:%M",
        date if date == yesterday => "yesterday %H:%M",
        date if date.year() == now.year() => "%-d %b %H:%M",
        _ => "%-d %b %Y %H:%M",
    };
    moment.strftime(form).to_string()
}

/// A number of bytes: `812 B`, `1.2 KiB`, `34 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    let (mut size, mut unit) = (bytes as f64, 0);
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    size /= 1024.0;
    while size >= 1023.5 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    if size < 9.95 { format!("{size:.1} {}", UNITS[unit]) } else { format!("{size:.0} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_near_or_have_a_date() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // 2026-11-21 00:30 there, 2026-11-20 22:30 in UTC.
        let now: Timestamp = "2026-11-20T22:30:00Z".parse().expect("a time");
        let seen = |text: &str| {
            let at: Timestamp = text.parse().expect("a time");
            when(at.as_second() as f64 + 0.9, now, &zone)
        };
        assert_eq!(seen("2026-11-20T22:02:00Z"), "today 00:02");
        assert_eq!(seen("2026-11-20T21:59:59Z"), "yesterday 23:59");
        assert_eq!(seen("2026-11-12T15:40:00Z"), "12 Nov 17:40");
        assert_eq!(seen("2024-02-03T06:00:00Z"), "3 Feb 2024 08:00");
        // A clock that was ahead.
        assert_eq!(seen("2026-11-22T22:00:00Z"), "23 Nov 00:00");
        assert_eq!([f64::MAX, f64::INFINITY, -1e18].map(|at| when(at, now, &zone)), ["?", "?", "?"]);
        assert_eq!(when(f64::NAN, now, &zone), "1 Jan 1970 02:00");
    }

    #[test]
    fn sizes_have_two_or_three_digits() {
        let texts = [0, 1023, 1024, 1536, 10_240, 1_048_000, 1 << 20, 2_147_483_648, u64::MAX].map(size);
        let wanted =
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "10 KiB", "1023 KiB", "1.0 MiB", "2.0 GiB", "16384 PiB"];
        assert_eq!(texts, wanted);
    }
}
