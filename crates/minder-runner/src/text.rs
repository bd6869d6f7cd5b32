//! Text for people: errors on one line, counts, sizes, durations, and bytes that a terminal must
//! not interpret.

use std::io;

use minder_os::limits::is_out_of_descriptors;
use minder_os::system_paths::TEMP_DIR_VARIABLE;

pub use minder_os::{error_text as os_error_text, escape};

/// Formats an error and its context as one line. Errors of the library include their cause.
pub fn format_error(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    let mut exhausted = false;
    for cause in error.chain() {
        let of_system = cause.downcast_ref::<io::Error>();
        parts.push(of_system.map_or_else(|| cause.to_string(), os_error_text));
        exhausted |= of_system.is_some_and(is_out_of_descriptors);
        if let Some(error) = cause.downcast_ref::<minder::Error>() {
            exhausted = error.kind() == minder::ErrorKind::Exhausted;
            break;
        }
    }
    parts.join(": ") + if exhausted { " (`minder doctor` shows the limits)" } else { "" }
}

/// Describes why output that waits cannot be written to a file in this directory.
pub(crate) fn cannot_save_in(dir: &str, reason: &str) -> String {
    format!(
        "cannot save output in `{dir}`: {reason} (--tmpdir or {TEMP_DIR_VARIABLE} select another directory)"
    )
}

/// Formats a duration for people: `42 ms`, `1.42 s`, `18.2 s`, `4 min 7 s`, `2 h 5 min`.
pub fn time(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..10 => format!("{:.2} s", time.as_secs_f64()),
        10..100 => format!("{:.1} s", time.as_secs_f64()),
        100..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats a number of things: `1 job`, `2 jobs`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Formats a number of bytes with a binary unit: `812 B`, `1.2 KiB`, `34 MiB`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.5 KiB would be rounded to `1024 KiB`.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(value < 9.95);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Returns the beginning of a command line for a message, with characters escaped that a terminal
/// would interpret.
pub fn shorten(line: &str) -> String {
    const SHOWN_MAX: usize = 120;
    let line = escape(line.as_bytes());
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn time_formats_durations_for_people() {
        let texts =
            [42, 1_420, 18_240, 247_000, 7_500_000].map(|millis| super::time(Duration::from_millis(millis)));
        assert_eq!(texts, ["42 ms", "1.42 s", "18.2 s", "4 min 7 s", "2 h 5 min"]);
    }

    #[test]
    fn format_bytes_prints_two_to_four_digits() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10_240, "10 KiB"),
            (1_048_000, "1023 KiB"),
            (1 << 20, "1.0 MiB"),
            (2_147_483_648, "2.0 GiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(super::format_bytes(bytes), expected);
        }
    }
}
