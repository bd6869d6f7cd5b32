//! Sizes, counts and times as they are typed: GNU parallel's suffixes.

use std::time::Duration;

/// What a suffix multiplies with: `K` is 1024, `k` is 1000, and so on to `P` and `p`.
fn unit(letter: char) -> Option<u64> {
    let power = "kmgtp".find(letter.to_ascii_lowercase())? as u32 + 1;
    Some(if letter.is_ascii_uppercase() { 1024u64.pow(power) } else { 1000u64.pow(power) })
}

/// A whole number, with a suffix: `1000`, `64K`, `1.5M`.
///
/// # Errors
/// One line that names the text.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is no number: digits, with K, M, G, T, P (of 1024) or k, m, g, t, p (of 1000) behind them"
        )
    };
    let last = text.chars().last().ok_or_else(wrong)?;
    let (number, unit) = match unit(last) {
        Some(unit) => (&text[..text.len() - 1], unit),
        None => (text, 1),
    };
    if number.is_empty() || !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(wrong());
    }
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(unit).ok_or_else(|| format!("`{text}` is too large"));
    }
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() && number * (unit as f64) < 1e18 => {
            Ok((number * unit as f64).round() as u64)
        }
        _ => Err(wrong()),
    }
}

/// A number from 1 on.
///
/// # Errors
/// As [`count`].
pub(crate) fn positive(text: &str) -> Result<u64, String> {
    count(text).and_then(|number| match number {
        0 => Err(format!("`{text}` is too little: at least 1")),
        number => Ok(number),
    })
}

/// `64k`, `16M`, `1G`, or bytes.
///
/// # Errors
/// As [`count`].
pub(crate) fn size(text: &str) -> Result<usize, String> {
    usize::try_from(count(text)?).map_err(|_| format!("`{text}` is too large"))
}

/// The size of the buffer: too little of it makes every job wait for the disk.
///
/// # Errors
/// As [`count`].
pub(crate) fn buffer(text: &str) -> Result<usize, String> {
    size(text).and_then(|bytes| match bytes {
        0..64_000 => Err(format!("`{text}` is too little: at least 64k")),
        bytes => Ok(bytes),
    })
}

/// The longest time that is meant: beyond it adding to a clock may fail.
const TIME_MAX: f64 = 100.0 * 365.0 * 86_400.0;

/// A time in seconds, or with s, m, h, d behind each part: `10`, `0.5`, `2m`, `1h30m`,
/// `1d3.5h16.6m4s`.
///
/// # Errors
/// One line that names the text.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("`{text}` is no time: seconds, or with s, m, h or d behind each part, as in 1h30m");
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        let mut after = rest[end..].chars();
        sum += number
            * match after.next() {
                None | Some('s' | 'S') => 1.0,
                Some('m' | 'M') => 60.0,
                Some('h' | 'H') => 3600.0,
                Some('d' | 'D') => 86_400.0,
                Some(_) => return Err(wrong()),
            };
        rest = after.as_str();
    }
    if text.is_empty() || sum > TIME_MAX {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_units() {
        let counts = ["0", "12", "64K", "64k", "1M", "1.5K", "2g", "1P"].map(|text| count(text).unwrap_or(7));
        assert_eq!(counts, [0, 12, 65_536, 64_000, 1 << 20, 1536, 2_000_000_000, 1 << 50]);
        for wrong in ["", "k", "x", "12x", "-1", "-1M", "999999999P", "1e3", "inf", "NaN", "0x10", "1 k"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert_eq!((buffer("64k"), buffer("16M"), buffer("131072")), (Ok(64_000), Ok(16 << 20), Ok(131_072)));
        assert!(buffer("12k").is_err() && positive("0").is_err());
    }

    #[test]
    fn times_have_units() {
        let times = ["10", "0.5", "2m", "1h30m", "1d", "1d3.5h16.6m4s"].map(|text| time(text).ok());
        let seconds = [10.0, 0.5, 120.0, 5400.0, 86_400.0, 100_000.0];
        assert_eq!(times, seconds.map(|seconds| Some(Duration::from_secs_f64(seconds))));
        for wrong in ["", "s", "1x", "-1", "1.2.3", "1e9", "99999999999999d", "ten"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
