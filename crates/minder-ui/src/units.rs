//! Parses sizes, counts and durations with the suffixes of GNU parallel.

use std::time::Duration;

/// Returns the factor of a suffix: `K` is 1024, `k` is 1000, and so on to `P` and `p`.
fn unit(letter: char) -> Option<u64> {
    let power = "kmgtp".find(letter.to_ascii_lowercase())? as u32 + 1;
    Some(if letter.is_ascii_uppercase() { 1024u64.pow(power) } else { 1000u64.pow(power) })
}

/// Parses a whole number, which may have a suffix: `1000`, `64K`, `1.5M`.
///
/// # Errors
/// The text is not such a number, or the number is too large.
pub fn count(text: &str) -> Result<u64, String> {
    let invalid = || {
        format!(
            "invalid number `{text}`: expected a number, which may have a suffix: K, M, G, T, P (powers of \
             1024) or k, m, g, t, p (of 1000)"
        )
    };
    let last = text.chars().last().ok_or_else(invalid)?;
    let (number, unit) = match unit(last) {
        Some(unit) => (&text[..text.len() - 1], unit),
        None => (text, 1),
    };
    if number.is_empty() || !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(invalid());
    }
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(unit).ok_or_else(|| format!("`{text}` is too large"));
    }
    match number.parse::<f64>() {
        Ok(number) if !number.is_finite() => Err(invalid()),
        Ok(number) if number * (unit as f64) < 1e18 => Ok((number * unit as f64).round() as u64),
        Ok(_) => Err(format!("`{text}` is too large")),
        Err(_) => Err(invalid()),
    }
}

/// Parses a [`count`] of at least 1.
///
/// # Errors
/// The text is not a count, or is 0.
pub fn positive(text: &str) -> Result<u64, String> {
    count(text).and_then(|number| match number {
        0 => Err(format!("`{text}` is too small: the minimum is 1")),
        number => Ok(number),
    })
}

/// Parses a number of bytes: `64k`, `16M`, `1G`.
///
/// # Errors
/// The text is not a [`count`], or does not fit into a `usize`.
pub fn size(text: &str) -> Result<usize, String> {
    usize::try_from(count(text)?).map_err(|_| format!("`{text}` is too large"))
}

/// Parses the argument of `--buffer`. With less than 64 kB, every job would wait for the disk.
///
/// # Errors
/// The text is not a [`size`], or is too small.
pub fn buffer(text: &str) -> Result<usize, String> {
    size(text).and_then(|bytes| match bytes {
        0..64_000 => Err(format!("`{text}` is too small: the minimum is 64k")),
        bytes => Ok(bytes),
    })
}

/// The maximum duration in seconds. Adding a longer one to a clock may overflow.
const TIME_MAX: f64 = 100.0 * 365.0 * 86_400.0;

/// Parses a duration in seconds, or in parts with the units ms, s, m, h and d: `10`, `0.5`, `2m`,
/// `500ms`, `1h30m`, `1d3.5h16.6m4s`.
///
/// # Errors
/// The text is not a duration, or is longer than 100 years.
pub fn time(text: &str) -> Result<Duration, String> {
    let invalid = || format!("invalid duration `{text}`: expected seconds, or a value such as 1h30m or 2d");
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| invalid())?;
        if let Some(after) = rest[end..].strip_prefix("ms") {
            sum += number / 1000.0;
            rest = after;
            continue;
        }
        let mut after = rest[end..].chars();
        sum += number
            * match after.next() {
                None | Some('s' | 'S') => 1.0,
                Some('m' | 'M') => 60.0,
                Some('h' | 'H') => 3600.0,
                Some('d' | 'D') => 86_400.0,
                Some(_) => return Err(invalid()),
            };
        rest = after.as_str();
    }
    if text.is_empty() || sum > TIME_MAX {
        return Err(invalid());
    }
    Ok(Duration::from_secs_f64(sum))
}

/// Parses a short duration: a number with one of the units ns, us and ms, or a [`time`].
///
/// # Errors
/// The text is neither.
pub fn fine_time(text: &str) -> Result<Duration, String> {
    let invalid = || format!("invalid duration `{text}`: expected a value such as 50us, 5ms or 0.1s");
    for (unit, nanos) in [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6)] {
        if let Some(number) = text.strip_suffix(unit) {
            // Digits only: no sign, no exponent, no name such as `inf`.
            let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            return match number.parse::<f64>() {
                Ok(number) if is_plain && number * nanos / 1e9 <= TIME_MAX => {
                    Ok(Duration::from_secs_f64(number * nanos / 1e9))
                }
                _ => Err(invalid()),
            };
        }
    }
    time(text).map_err(|_| invalid())
}

/// Parses a rate, such as 10/s, 100/m or 1/10s, and returns the time from one event to the next.
///
/// # Errors
/// The text has another form, or the rate is less than one a year or more than a million a second.
pub fn rate(text: &str) -> Result<Duration, String> {
    let invalid =
        || format!("invalid rate `{text}`: expected a number and a time, such as 10/s, 100/m or 1/10s");
    let (number, per) = text.split_once('/').ok_or_else(invalid)?;
    let number = number.parse::<u32>().ok().filter(|number| *number > 0).ok_or_else(invalid)?;
    let is_unit = per.starts_with(|first: char| first.is_ascii_alphabetic());
    let per = if is_unit { time(&format!("1{per}")) } else { time(per) }.map_err(|_| invalid())?;
    let interval = per / number;
    if interval < Duration::from_micros(1) || interval > Duration::from_secs(365 * 86_400) {
        return Err(format!("`{text}` is out of range: the limits are one a year and 1,000,000 a second"));
    }
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_a_number_and_a_time() {
        let rates = ["10/s", "100/m", "3/h", "1/10s", "2/0.5", "1000000/s"].map(rate);
        let millis = [100, 600, 1_200_000, 10_000, 250].map(Duration::from_millis);
        assert_eq!(rates[..5], millis.map(Ok));
        assert_eq!(rates[5], Ok(Duration::from_micros(1)));
        for invalid in ["", "10", "/s", "10/", "0/s", "-1/s", "1.5/s", "10/x", "10s", "2000000/s", "1/9999d"]
        {
            assert!(rate(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn fine_time_parses_short_units() {
        let times = ["50us", "1.5ms", "700ns", "2µs", "0.25", "1s"].map(fine_time);
        let expected = [50_000, 1_500_000, 700, 2_000, 250_000_000, 1_000_000_000].map(Duration::from_nanos);
        assert_eq!(times, expected.map(Ok));
        for invalid in ["", "us", "-1us", "1e3ms", "infms", "1xs", "99999999999999999999ms"] {
            assert!(fine_time(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn count_parses_suffixes() {
        let counts = ["0", "12", "64K", "64k", "1M", "1.5K", "2g", "1P"].map(|text| count(text).unwrap_or(7));
        assert_eq!(counts, [0, 12, 65_536, 64_000, 1 << 20, 1536, 2_000_000_000, 1 << 50]);
        for invalid in ["", "k", "x", "12x", "-1", "-1M", "999999999P", "1e3", "inf", "NaN", "0x10", "1 k"] {
            assert!(count(invalid).is_err(), "{invalid}");
        }
        for large in ["99999999999999999999", "99999999P", "1e3"] {
            assert_eq!(count(large).err().is_some_and(|why| why.ends_with("is too large")), large != "1e3");
        }
        assert_eq!((buffer("64k"), buffer("16M"), buffer("131072")), (Ok(64_000), Ok(16 << 20), Ok(131_072)));
        assert!(buffer("12k").is_err() && positive("0").is_err());
    }

    #[test]
    fn time_parses_units() {
        let times =
            ["10", "0.5", "2m", "1h30m", "1d", "1d3.5h16.6m4s", "250ms", "1m1ms"].map(|text| time(text).ok());
        let seconds = [10.0, 0.5, 120.0, 5400.0, 86_400.0, 100_000.0, 0.25, 60.001];
        assert_eq!(times, seconds.map(|seconds| Some(Duration::from_secs_f64(seconds))));
        for invalid in ["", "s", "1x", "-1", "1.2.3", "1e9", "99999999999999d", "ten"] {
            assert!(time(invalid).is_err(), "{invalid}");
        }
    }
}
